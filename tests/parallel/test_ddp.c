/* SPDX-License-Identifier: MIT
 *
 * DistributedDataParallel beside one process that gets the whole batch. */
#include "tests/parallel/suite.h"

static const char mlp[] =
    "Sequential(Linear(6, 16), ReLU(), Linear(16, 16), Tanh(), Linear(16, 3))";
static const char conv[] = "Sequential(Conv2d(2, 4, 3, padding=1), ReLU(), Conv2d(4, 4, 3), "
                           "AdaptiveAvgPool2d(2), Flatten(), Linear(16, 3))";

enum { BATCH = 8, STEPS = 5 };

/* What `train` does. */
static struct plan {
    const char *net;
    bool pictures;
    tn_ddp_options options;
    bool uneven; /* ranks have 1, 3, ... samples */
    bool sums;   /* the loss is a sum over the samples */
    int micro;   /* batches of a step, all but the last in no_sync */
} plan;

static tn_module *make(void)
{
    tn_module *net;

    tn_random_seed((uint64_t)rank_ + 5); /* other values on each rank before the wrapping */
    net = tn_module_parse(plan.net);
    NEED(net != NULL);
    return net;
}

/* Wraps the module, and drops its reference. */
static tn_module *wrap(tn_module *module, tn_ddp_options options)
{
    tn_module *net;

    options.size = sizeof options;
    net = tn_ddp_new(module, group_, &options);
    NEED(net != NULL);
    tn_module_drop(module);
    return net;
}

/* The samples of this rank in a batch. */
static void share_of(int64_t *first, int64_t *count)
{
    *count = BATCH / size_;
    *first = rank_ * *count;
    if (plan.uneven && size_ == 2) {
        *count = rank_ == 0 ? 3 : 5;
        *first = rank_ == 0 ? 0 : 3;
    }
}

static tn_tensor *loss_of(tn_module *net, int64_t first, int64_t count, int step)
{
    tn_tensor *x = plan.pictures ? numbers(TN_SHAPE(BATCH, 2, 6, 6), step)
                                 : numbers(TN_SHAPE(BATCH, 6), step);
    tn_tensor *y = tn_module_call(net, tn_narrow(x, 0, first, count)), *loss;

    loss = tn_square(tn_sub(y, tn_narrow(numbers(TN_SHAPE(BATCH, 3), step + 50), 0, first, count)));
    return plan.sums ? tn_mul_scalar(tn_sum(loss), 0.02) : tn_mean(loss);
}

static void step(tn_module *net, int number)
{
    int64_t first, count, part;

    share_of(&first, &count);
    part = plan.micro > 1 ? count / plan.micro : count;
    for (int64_t at = 0; at < count; at += part) {
        TN_SCOPE;
        bool last = at + part >= count;
        /* the mean over the samples of all batches of a step needs no factor */
        bool divides = plan.micro > 1 && plan.options.average == TN_DDP_AVERAGE_RANKS;
        tn_tensor *loss;

        if (!last)
            NEED_OK(tn_ddp_no_sync_begin(net));
        loss = loss_of(net, first + at, part, number);
        NEED_OK(tn_backward(divides ? tn_mul_scalar(loss, 1.0 / plan.micro) : loss));
        if (!last)
            NEED_OK(tn_ddp_no_sync_end(net));
    }
}

static void train(void)
{
    tn_module *module = make(), *net = wrap(module, plan.options);
    tn_optimizer *opt = tn_optimizer_new(net, "SGD(lr=0.1, momentum=0.9)");

    for (int i = 0; i < STEPS; i++) {
        NEED_OK(tn_module_zero_grad(net));
        step(net, i);
        NEED_OK(tn_optimizer_step(opt));
    }
    tell_state(net, false);
    tell_state(net, true);
    tn_optimizer_drop(opt);
    tn_module_drop(net);
}

/* Trains on one rank and on others, and compares. */
static void compare(int size, double tolerance)
{
    static struct found one;

    on_ranks(1, train);
    one = found[0];
    on_ranks(size, train);
    for (int r = 0; r < size; r++)
        same_numbers(&found[r], &found[0], 0);
    same_numbers(&found[0], &one, tolerance);
}

START_TEST(ranks_train_like_one_process_with_the_whole_batch)
{
    plan = (struct plan){ .net = mlp };
    compare(2, 1e-5);
    compare(4, 1e-5);
    plan = (struct plan){ .net = conv, .pictures = true };
    compare(2, 1e-5);
    TN_PROVES("DST-001", "DST-003", "DST-004", "DST-005");
}
END_TEST

START_TEST(batches_of_different_sizes_are_averaged_over_their_samples)
{
    plan = (struct plan){ .net = mlp, .uneven = true };
    plan.options.average = TN_DDP_AVERAGE_SAMPLES;
    compare(2, 1e-5);
}
END_TEST

START_TEST(sums_of_the_ranks_are_the_gradient_of_a_sum)
{
    plan = (struct plan){ .net = mlp, .uneven = true, .sums = true };
    plan.options.average = TN_DDP_AVERAGE_NONE;
    compare(2, 1e-5);
}
END_TEST

START_TEST(many_small_buckets_give_the_same_gradients)
{
    plan = (struct plan){ .net = mlp };
    plan.options.bucket_cap_mb = 1e-4;
    compare(2, 1e-5);
}
END_TEST

START_TEST(batches_in_no_sync_are_accumulated)
{
    plan = (struct plan){ .net = mlp, .micro = 2 };
    compare(2, 1e-5);
    plan.options.average = TN_DDP_AVERAGE_SAMPLES;
    compare(2, 1e-5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ddp");
    TCase *tcase = tcase_create("ddp");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, ranks_train_like_one_process_with_the_whole_batch);
    tcase_add_test(tcase, batches_of_different_sizes_are_averaged_over_their_samples);
    tcase_add_test(tcase, sums_of_the_ranks_are_the_gradient_of_a_sum);
    tcase_add_test(tcase, many_small_buckets_give_the_same_gradients);
    tcase_add_test(tcase, batches_in_no_sync_are_accumulated);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
