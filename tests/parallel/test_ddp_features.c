/* SPDX-License-Identifier: MIT
 *
 * DistributedDataParallel: buffers, no_sync, names in states, modes and hooks, hooks that combine
 * the gradients, and ranks with fewer batches. */
#include "tests/parallel/suite.h"

static tn_module *wrap(const char *spec, tn_ddp_options options)
{
    tn_module *module = tn_module_parse(spec), *net;

    NEED(module != NULL);
    options.size = sizeof options;
    net = tn_ddp_new(module, group_, &options);
    NEED(net != NULL);
    tn_module_drop(module);
    return net;
}

static tn_tensor *loss_of(tn_module *net, int seed)
{
    return tn_mean(tn_square(tn_module_call(net, numbers(TN_SHAPE(4, 6), seed))));
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void keep_buffers(void)
{
    tn_module *net = wrap("Sequential(BatchNorm1d(6), Linear(6, 3))",
                          (tn_ddp_options){ .keep_buffers = true });

    for (int i = 0; i < 2; i++)
        NEED_OK(tn_backward(loss_of(net, 3 * rank_ + i)));
    tell(tn_module_find_tensor(net, "module.0.running_mean"));
    tn_module_drop(net);
}

static void evaluate(void)
{
    tn_module *net = wrap("Sequential(BatchNorm1d(6), Linear(6, 3))", (tn_ddp_options){ 0 });
    tn_tensor *mean = tn_module_find_tensor(net, "module.0.running_mean");

    NEED_OK(tn_backward(loss_of(net, rank_)));
    tell(mean);
    tn_module_eval(net);
    NEED(rank_ == 1 || loss_of(net, 1) != NULL); /* no exchange: rank 1 does not call */
    NEED_OK(tn_ddp_broadcast_buffers(net));
    tell(mean);
    tn_module_train(net, true);
    NEED_OK(tn_backward(loss_of(net, 0)));
    tell(mean);
    tn_module_drop(net);
}

START_TEST(buffers_follow_rank_0)
{
    on_ranks(2, evaluate);
    ck_assert_double_ne(found[0].numbers[0], found[1].numbers[0]); /* of one batch each */
    for (int i = 6; i < 18; i++)
        ck_assert_double_eq(found[0].numbers[i], found[1].numbers[i]);
    ck_assert_double_eq(found[1].numbers[6], found[0].numbers[0]);
    TN_PROVES("DST-006");
}
END_TEST

START_TEST(buffers_can_be_kept)
{
    on_ranks(2, keep_buffers);
    ck_assert_double_ne(found[0].numbers[0], found[1].numbers[0]);
}
END_TEST

/* What takes the place of a buffer is copied, too. */
static void replace_buffer(void)
{
    char name[16];
    tn_module *net = wrap("Sequential(BatchNorm1d(6), Linear(6, 3))", (tn_ddp_options){ 0 });

    NEED_OK(tn_module_set(tn_module_find(net, "module.0"), "running_mean",
                          numbers(TN_SHAPE(6), rank_)));
    NEED_OK(tn_ddp_broadcast_buffers(net));
    tell(tn_module_find_tensor(net, "module.0.running_mean"));
    tell(numbers(TN_SHAPE(6), 0));
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "more%d", i);
        NEED_OK(tn_module_add_buffer(tn_module_find(net, "module.1"), name,
                                     numbers(TN_SHAPE(1), rank_), 0));
    }
    NEED_OK(tn_ddp_broadcast_buffers(net));
    tell(tn_module_find_tensor(net, "module.1.more2"));
    NEED_OK(tn_module_remove(tn_module_find(net, "module.1"), "more0"));
    NEED_OK(tn_backward(loss_of(net, 0)));
    tn_module_drop(net);
}

START_TEST(buffers_may_be_replaced)
{
    on_ranks(2, replace_buffer);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 6; i++)
            ck_assert_double_eq(found[r].numbers[i], found[0].numbers[6 + i]);
    ck_assert_double_eq(found[1].numbers[12], found[0].numbers[12]);
}
END_TEST

/* ---- no_sync --------------------------------------------------------------------------------- */

static void accumulate(void)
{
    tn_module *net = wrap("Linear(6, 3)", (tn_ddp_options){ 0 });
    tn_tensor *weight = tn_module_find_tensor(net, "module.weight");

    {
        TN_NO_SYNC(net);
        NEED_OK(tn_backward(loss_of(net, rank_)));
    }
    tell(tn_tensor_grad(weight));
    NEED_OK(tn_backward(loss_of(net, rank_ + 2)));
    tell(tn_tensor_grad(weight));
    /* without zero_grad, the next step adds to the mean */
    NEED_OK(tn_backward(loss_of(net, rank_ + 2)));
    tell(tn_tensor_grad(weight));
    tn_module_drop(net);
}

START_TEST(in_no_sync_gradients_stay_those_of_the_rank)
{
    on_ranks(2, accumulate);
    ck_assert_double_ne(found[0].numbers[0], found[1].numbers[0]);
    for (int i = 18; i < 54; i++)
        ck_assert_double_eq(found[0].numbers[i], found[1].numbers[i]);
    TN_PROVES("DST-007");
}
END_TEST

/* ---- names, modes, hooks --------------------------------------------------------------------- */

static int calls;

static tn_status count_call(void *user, tn_module *module, const tn_pack *input, tn_pack *out,
                            tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    (void)input;
    (void)out;
    (void)outcome;
    calls++;
    return TN_OK;
}

static void name_and_call(void)
{
    tn_module *net = wrap("Sequential(Linear(6, 3), Dropout(0.5))", (tn_ddp_options){ 0 });
    tn_module *bare = tn_module_parse("Sequential(Linear(6, 3), Dropout(0.5))"), *copy;
    tn_state *state = tn_module_state(net);
    char text[256];

    NEED(bare != NULL && state != NULL);
    NEED(tn_state_find(state, "module.0.weight") >= 0 && tn_state_find(state, "0.weight") < 0);
    NEED(tn_module_load_state(bare, state, true) != TN_OK);
    tn_error_clear();
    NEED_OK(tn_state_strip_prefix(state, "module."));
    NEED_OK(tn_module_load_state(bare, state, true));
    tn_state_drop(state);
    tell(tn_module_find_tensor(bare, "0.weight"));
    tell(tn_module_find_tensor(net, "module.0.weight"));
    NEED(memcmp(found[0].numbers, found[0].numbers + 18, 18 * sizeof(double)) == 0);
    tn_module_repr(net, text, sizeof text);
    NEED(strncmp(text, "DistributedDataParallel(\n  (module): Sequential(\n    (0): Linear", 60) ==
         0);
    tn_module_eval(net);
    NEED(!tn_module_is_training(tn_module_find(net, "module.1")));
    tn_module_train(net, true);
    tn_module_hook_forward_pre(net, count_call, 0, NULL, NULL);
    tn_module_hook_forward_pre(tn_module_find(net, "module.0"), count_call, 0, NULL, NULL);
    NEED_OK(tn_backward(loss_of(net, 1)));
    NEED(calls == 2 && tn_module_parameter_count(net) == 21);
    copy = tn_module_copy(net);
    NEED(copy != NULL);
    NEED_OK(tn_backward(loss_of(copy, rank_)));
    tell(tn_tensor_grad(tn_module_find_tensor(copy, "module.0.weight")));
    tn_module_drop(copy);
    tn_module_drop(bare);
    tn_module_drop(net);
}

START_TEST(names_modes_hooks_and_copies_pass_through)
{
    on_ranks(1, name_and_call);
    TN_PROVES("DST-009", "DST-010", "LSD-028");
}
END_TEST

/* A copy is trained by the same group. */
static void train_copy(void)
{
    tn_module *net = wrap("Linear(6, 3)", (tn_ddp_options){ 0 }), *copy = tn_module_copy(net);

    NEED(copy != NULL);
    tn_module_drop(net);
    tn_module_eval(copy);
    tn_grad_begin(false);
    NEED(rank_ == 1 || loss_of(copy, 1) != NULL); /* no exchange: rank 1 does not call */
    tn_grad_end();
    tn_module_train(copy, true);
    NEED_OK(tn_backward(loss_of(copy, rank_)));
    tell_state(copy, true);
    tn_module_drop(copy);
}

START_TEST(a_copy_has_the_same_group)
{
    on_ranks(2, train_copy);
    same_numbers(&found[0], &found[1], 0);
}
END_TEST

/* ---- hooks that combine the gradients -------------------------------------------------------- */

static const char *packed;

static void train_packed(void)
{
    tn_module *net = wrap("Linear(6, 3)", (tn_ddp_options){ .comm_hook = packed });

    NEED_OK(tn_backward(loss_of(net, rank_)));
    tell_state(net, true);
    tn_module_drop(net);
}

START_TEST(gradients_are_sent_in_half_precision)
{
    static struct found full, half;

    packed = NULL;
    on_ranks(2, train_packed);
    full = found[0];
    packed = "bf16";
    on_ranks(2, train_packed);
    half = found[1];
    same_numbers(&found[0], &half, 0);
    same_numbers(&full, &half, 0.02);
    ck_assert(memcmp(full.numbers, half.numbers, 18 * sizeof(double)) != 0);
    packed = "fp16";
    on_ranks(2, train_packed);
    same_numbers(&full, &found[0], 0.002);
    ck_assert(memcmp(full.numbers, found[0].numbers, 18 * sizeof(double)) != 0);
    TN_PROVES("DST-011");
}
END_TEST

static tn_status doubled(void *user, tn_comm *group, const tn_ddp_bucket *bucket)
{
    int *seen = user;

    *seen += (int)bucket->parameters;
    NEED(bucket->index == 0 && bucket->count == 1 && bucket->parameters == 2);
    if (tn_comm_all_reduce(group, bucket->gradients, TN_REDUCTION_SUM) != TN_OK)
        return tn_error_last_code();
    return tn_mul_scalar_(bucket->gradients, 2.0) != NULL ? TN_OK : tn_error_last_code();
}

static void combine_by_program(void)
{
    tn_module *net = wrap("Linear(6, 3)", (tn_ddp_options){ 0 }), *plain;
    int seen = 0;

    plain = tn_module_keep(tn_module_child(net, "module"));
    NEED_OK(tn_backward(loss_of(net, rank_)));
    tell_state(net, true);
    NEED_OK(tn_module_zero_grad(net));
    NEED(tn_ddp_hook(net, doubled, &seen) == TN_ERR_RUNTIME);
    NEED(strstr(tn_error_text(), "tn_ddp_hook: net: its gradients are combined already") != NULL);
    tn_error_clear();
    tn_module_drop(net);
    net = tn_ddp_new(plain, group_, NULL);
    NEED(net != NULL);
    NEED_OK(tn_ddp_hook(net, doubled, &seen));
    NEED_OK(tn_backward(loss_of(net, rank_)));
    tell_state(net, true);
    NEED(seen == 2);
    tn_module_drop(plain);
    tn_module_drop(net);
}

START_TEST(a_function_of_the_program_combines_the_gradients)
{
    on_ranks(2, combine_by_program);
    for (int i = 0; i < 21; i++)
        ck_assert_double_eq(found[0].numbers[i] * 2, found[0].numbers[i + 21]);
    same_numbers(&found[0], &found[1], 0);
}
END_TEST

/* ---- the order of the buckets ---------------------------------------------------------------- */

static char first_paths[2][64];

static tn_status note_first(void *user, tn_comm *group, const tn_ddp_bucket *bucket)
{
    const int *step = user;

    if (bucket->index == 0)
        snprintf(first_paths[*step], sizeof first_paths[0], "%s", bucket->paths[0]);
    return tn_comm_all_reduce(group, bucket->gradients, TN_REDUCTION_SUM);
}

static tn_tensor *backwards(tn_module *self, tn_tensor *x)
{
    return tn_module_call_chain(self, "b a", x);
}

/* The layer that is registered first is called last, so its gradient arrives first. */
static void order_buckets(void)
{
    tn_ddp_options options = { .size = sizeof options, .bucket_cap_mb = 1e-5 };
    tn_module *module = tn_module_plain("Net"), *net;
    int step;

    NEED_OK(tn_module_add_children(module, "a=Linear(6, 6), b=Linear(6, 6)"));
    NEED_OK(tn_module_set_forward(module, backwards, NULL, NULL));
    net = tn_ddp_new(module, group_, &options);
    NEED(net != NULL);
    NEED_OK(tn_ddp_hook(net, note_first, &step));
    for (step = 0; step < 2; step++) {
        NEED_OK(tn_backward(loss_of(net, rank_)));
        tell_state(net, true);
        NEED_OK(tn_module_zero_grad(net));
    }
    NEED(strncmp(first_paths[0], "b.", 2) == 0 && strncmp(first_paths[1], "a.", 2) == 0);
    NEED(memcmp(found[rank_].numbers, found[rank_].numbers + 84, 84 * sizeof(double)) == 0);
    tn_module_drop(module);
    tn_module_drop(net);
}

START_TEST(after_the_first_step_buckets_have_the_order_of_backward)
{
    on_ranks(2, order_buckets);
    same_numbers(&found[0], &found[1], 0);
}
END_TEST

/* ---- ranks with fewer batches ---------------------------------------------------------------- */

/* Rank r has r + 1 batches; the parameters stay equal. */
static void train_uneven(void)
{
    tn_module *net = wrap("Sequential(BatchNorm1d(6), Linear(6, 3))",
                          (tn_ddp_options){ .average = TN_DDP_AVERAGE_SAMPLES });
    tn_optimizer *opt = tn_optimizer_new(net, "SGD(lr=0.1)");

    for (int i = 0; i <= 2; i++) {
        NEED_OK(tn_module_zero_grad(net));
        if (i <= rank_)
            NEED_OK(tn_backward(loss_of(net, 10 * rank_ + i)));
        else
            NEED_OK(tn_ddp_skip(net));
        NEED_OK(tn_optimizer_step(opt));
    }
    NEED_OK(tn_ddp_broadcast_buffers(net));
    tell_state(net, false);
    tn_optimizer_drop(opt);
    tn_module_drop(net);
}

static void join_others(void)
{
    tn_module *net = wrap("Sequential(BatchNorm1d(6), Linear(6, 3))", (tn_ddp_options){ 0 });

    for (int i = 0; i <= rank_; i++) {
        NEED_OK(tn_module_zero_grad(net));
        NEED_OK(tn_backward(loss_of(net, 10 * rank_ + i)));
        tell(tn_tensor_grad(tn_module_find_tensor(net, "module.1.weight")));
    }
    NEED_OK(tn_ddp_join(net));
    tn_module_drop(net);
}

START_TEST(ranks_with_fewer_batches_take_part_with_zeros)
{
    on_ranks(3, train_uneven);
    same_numbers(&found[0], &found[1], 0);
    same_numbers(&found[0], &found[2], 0);
    on_ranks(3, join_others);
    ck_assert_int_eq(found[0].count, 18);
    ck_assert_int_eq(found[2].count, 54);
    for (int i = 0; i < 36; i++)
        ck_assert_double_eq(found[1].numbers[i], found[2].numbers[i]);
    TN_PROVES("DST-013");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ddp features");
    TCase *tcase = tcase_create("ddp features");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, buffers_follow_rank_0);
    tcase_add_test(tcase, buffers_can_be_kept);
    tcase_add_test(tcase, buffers_may_be_replaced);
    tcase_add_test(tcase, in_no_sync_gradients_stay_those_of_the_rank);
    tcase_add_test(tcase, names_modes_hooks_and_copies_pass_through);
    tcase_add_test(tcase, a_copy_has_the_same_group);
    tcase_add_test(tcase, gradients_are_sent_in_half_precision);
    tcase_add_test(tcase, a_function_of_the_program_combines_the_gradients);
    tcase_add_test(tcase, after_the_first_step_buckets_have_the_order_of_backward);
    tcase_add_test(tcase, ranks_with_fewer_batches_take_part_with_zeros);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
