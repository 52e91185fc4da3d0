/* SPDX-License-Identifier: MIT
 *
 * DistributedDataParallel with shards: 1, 2 and 4 ranks give the same bits. */
#include "tests/parallel/suite.h"

enum { SHARDS = 4, SAMPLES = 2, STEPS = 6 };

static const char *spec;
static int dims;
static tn_ddp_options options;
static bool uneven; /* the last shard of each second step is empty, the others have weights */

static tn_tensor *input(int step, int shard)
{
    if (dims == 4)
        return numbers(TN_SHAPE(SAMPLES, 2, 8, 8), step * SHARDS + shard);
    if (dims == 3)
        return numbers(TN_SHAPE(SAMPLES, 5, 8), step * SHARDS + shard);
    return numbers(TN_SHAPE(SAMPLES, 8), step * SHARDS + shard);
}

static void backward(tn_module *net, int step, int shard)
{
    TN_SCOPE;
    tn_tensor *y;

    if (uneven && shard == SHARDS - 1 && step % 2 == 1) {
        NEED_OK(tn_ddp_skip(net));
        return;
    }
    if (uneven) /* the bits of the sum depend on the order; float64 shows them */
        NEED_OK(tn_ddp_weight(net, 1.0 / (3 + shard)));
    y = tn_module_call(net, tn_cast(input(step, shard), uneven ? TN_F64 : TN_F32));
    NEED_OK(tn_backward(tn_mean(tn_square(tn_add_scalar(y, -0.5)))));
}

static void train(void)
{
    tn_module *module, *net;
    tn_optimizer *opt;
    int here = SHARDS / size_;

    tn_random_seed((uint64_t)rank_ + 3);
    module = tn_module_parse(spec);
    NEED_OK(tn_module_to(module, NULL, uneven ? TN_F64 : TN_F32));
    options.size = sizeof options;
    options.shards = SHARDS;
    net = tn_ddp_new(module, group_, &options);
    NEED(net != NULL);
    tn_module_drop(module);
    opt = tn_optimizer_new(net, "Adam(lr=1e-2)");
    for (int i = 0; i < STEPS; i++) {
        NEED_OK(tn_module_zero_grad(net));
        for (int k = 0; k < here; k++)
            backward(net, i, rank_ * here + k);
        NEED_OK(tn_optimizer_step(opt));
    }
    NEED_OK(tn_ddp_broadcast_buffers(net));
    tell_state(net, false);
    tn_optimizer_drop(opt);
    tn_module_drop(net);
}

/* Compares 1, 2 and 4 ranks, and checks that the weights have moved. */
static void compare(const char *text, int input_dims)
{
    static struct found one;

    spec = text;
    dims = input_dims;
    on_ranks(1, train);
    one = found[0];
    ck_assert(isfinite(one.numbers[0]));
    for (int size = 2; size <= 4; size *= 2) {
        on_ranks(size, train);
        for (int r = 0; r < size; r++)
            same_numbers(&found[r], &one, 0);
    }
}

START_TEST(mlp_with_dropout_has_the_same_bits_on_1_2_and_4_ranks)
{
    options = (tn_ddp_options){ 0 };
    uneven = false;
    compare("Sequential(Linear(8, 16), ReLU(), Dropout(0.4), Linear(16, 3))", 2);
}
END_TEST

START_TEST(conv_net_with_statistics_has_the_same_bits_on_1_2_and_4_ranks)
{
    options = (tn_ddp_options){ .bucket_cap_mb = 1e-3 };
    uneven = false;
    compare("Sequential(Conv2d(2, 4, 3, padding=1), BatchNorm2d(4), ReLU(), MaxPool2d(2), "
            "Flatten(), Linear(64, 3))",
            4);
}
END_TEST

START_TEST(encoder_has_the_same_bits_on_1_2_and_4_ranks)
{
    options = (tn_ddp_options){ 0 };
    uneven = false;
    compare("TransformerEncoder(TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)", 3);
}
END_TEST

START_TEST(weights_and_empty_shards_keep_the_bits)
{
    options = (tn_ddp_options){ .average = TN_DDP_AVERAGE_SAMPLES };
    uneven = true;
    compare("Sequential(Linear(8, 16), Tanh(), BatchNorm1d(16), Linear(16, 3))", 2);
    uneven = false;
}
END_TEST

/* ---- the values ------------------------------------------------------------------------------ */

/* The gradient of a step with shards, and the mean of those of the shards in float64. */
static void compare_gradient(void)
{
    const tn_ddp_options four = { .size = sizeof four, .shards = SHARDS };
    tn_module *module = tn_module_parse("Linear(8, 3)"), *net = tn_ddp_new(module, NULL, &four);
    tn_tensor *weight = tn_module_find_tensor(module, "weight"), *sum;

    NEED(net != NULL);
    for (int k = 0; k < SHARDS; k++)
        backward(net, 0, k);
    tell(tn_tensor_grad(weight));
    /* a gradient of the program stays: the next step adds to it */
    for (int k = 0; k < SHARDS; k++)
        backward(net, 0, k);
    tell(tn_tensor_grad(weight));
    NEED_OK(tn_module_zero_grad(net));
    for (int k = 0; k < SHARDS; k++) {
        tn_tensor *y = tn_module_call(module, input(0, k));
        NEED_OK(tn_backward(tn_mean(tn_square(tn_add_scalar(y, -0.5)))));
    }
    sum = tn_cast(tn_tensor_grad(weight), TN_F64);
    tell(tn_mul_scalar(sum, 1.0 / SHARDS));
    tn_module_drop(net);
    tn_module_drop(module);
}

START_TEST(the_gradient_is_the_mean_over_the_shards)
{
    dims = 2;
    on_ranks(1, compare_gradient);
    for (int i = 0; i < 24; i++) {
        const double *n = found[0].numbers;
        ck_assert_double_eq_tol(n[i], n[48 + i], 1e-6);
        ck_assert_double_eq_tol(n[24 + i], 2 * n[48 + i], 1e-6);
    }
}
END_TEST

/* The same input in each shard of two steps. */
static void draw(void)
{
    const tn_ddp_options two = { .size = sizeof two, .shards = 2 };
    tn_module *module = tn_module_parse("Sequential(Linear(8, 8), Dropout(0.5))"),
              *net = tn_ddp_new(module, NULL, &two);

    NEED(net != NULL);
    for (int k = 0; k < 4; k++) {
        tn_tensor *y = tn_module_call(net, input(0, 0));

        tell(y);
        NEED_OK(tn_backward(tn_sum(y)));
    }
    tn_module_drop(net);
    tn_module_drop(module);
}

START_TEST(each_shard_of_each_step_has_random_numbers_of_its_own)
{
    const size_t bytes = 16 * sizeof(double);

    dims = 2;
    on_ranks(1, draw);
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < a; b++)
            ck_assert(memcmp(found[0].numbers + 16 * a, found[0].numbers + 16 * b, bytes) != 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ddp shards");
    TCase *tcase = tcase_create("ddp shards");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, mlp_with_dropout_has_the_same_bits_on_1_2_and_4_ranks);
    tcase_add_test(tcase, conv_net_with_statistics_has_the_same_bits_on_1_2_and_4_ranks);
    tcase_add_test(tcase, encoder_has_the_same_bits_on_1_2_and_4_ranks);
    tcase_add_test(tcase, weights_and_empty_shards_keep_the_bits);
    tcase_add_test(tcase, the_gradient_is_the_mean_over_the_shards);
    tcase_add_test(tcase, each_shard_of_each_step_has_random_numbers_of_its_own);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
