/* SPDX-License-Identifier: MIT
 *
 * DistributedDataParallel: modules that differ between ranks, parameters without gradients, changes
 * after the wrapping, and ranks that fail. All ranks get an error, and none waits for ever. */
#include "tests/parallel/suite.h"

#include <time.h>

static tn_module *make(const char *spec)
{
    tn_module *net = tn_module_parse(spec);

    NEED(net != NULL);
    return net;
}

static tn_module *wrap(const char *spec, const tn_ddp_options *options)
{
    tn_module *module = make(spec), *net = tn_ddp_new(module, group_, options);

    tn_module_drop(module);
    return net;
}

static tn_tensor *loss_of(tn_module *net)
{
    return tn_mean(tn_square(tn_module_call(net, numbers(TN_SHAPE(4, 6), rank_))));
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- wrapping -------------------------------------------------------------------------------- */

static void wrap_different_shapes(void)
{
    NEED(wrap(rank_ == 1 ? "Sequential(Linear(6, 4), Linear(4, 3))"
                         : "Sequential(Linear(6, 4), Linear(4, 2))",
              NULL) == NULL);
    NEED_ERROR(TN_ERR_VALUE,
               "1.weight: differs between ranks, got parameter float32 [2, 4] on rank "
               "0 and parameter float32 [3, 4] on rank 1");
    NEED(wrap(rank_ == 0 ? "Linear(6, 4)" : "Linear(6, 4, bias=False)", NULL) == NULL);
    NEED_ERROR(TN_ERR_VALUE, "names differ between ranks, got bias (parameter float32 [4]) on rank "
                             "0 and nothing (nothing) on rank 1");
    tn_ddp_options options = { .size = sizeof options, .find_unused_parameters = rank_ == 1 };
    NEED(wrap("Linear(6, 4)", &options) == NULL);
    NEED_ERROR(TN_ERR_VALUE, "options: differs between ranks");
    NEED(wrap("Sequential(ReLU(), Dropout(0.5))", NULL) == NULL);
    NEED_ERROR(TN_ERR_RUNTIME, "DistributedDataParallel is not needed when a module doesn't have "
                               "any parameter that requires a gradient.");
    NEED(wrap("Linear(6, 4)", NULL) != NULL); /* the group still works */
}

START_TEST(modules_that_differ_are_refused_on_all_ranks)
{
    on_ranks(2, wrap_different_shapes);
    TN_PROVES("DST-003");
}
END_TEST

static void wrap_wrong_options(void)
{
    static const struct {
        const char *spec, *words;
    } wrong[] = {
        { "bucket_cap_mb=0", "bucket_cap_mb: out of range, got 0.0; expected more than 0" },
        { "bucket_cap_mb=-1", "bucket_cap_mb: out of range" },
        { "bucket_cap_mb=nan", "bucket_cap_mb: out of range" },
        { "average='tokens'", "average: unknown, got \"tokens\"; expected ranks, samples or none" },
        { "comm_hook='fp8'", "comm_hook: unknown, got \"fp8\"; expected fp16, bf16 or None" },
        { "shards=3", "shards: wrong, got 3 with 1 rank; expected a power of two" },
        { "shards=-4", "shards: wrong" },
        { "shards=9223372036854775807", "shards: wrong" },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        NEED(tn_module_new("DistributedDataParallel(Linear(6, 4), %s)", wrong[i].spec) == NULL);
        NEED_ERROR(TN_ERR_VALUE, wrong[i].words);
    }
    NEED(tn_module_new("DistributedDataParallel(3)") == NULL);
    NEED_ERROR(TN_ERR_TYPE, "module: wrong type, got int; expected a module");
    tn_module *net = make("Linear(6, 4)");
    NEED(tn_ddp_skip(net) != TN_OK);
    NEED_ERROR(TN_ERR_TYPE, "tn_ddp_skip: net: wrong type, got Linear");
    tn_module *ddp = tn_ddp_new(net, NULL, NULL);
    NEED(tn_ddp_weight(ddp, -1) != TN_OK);
    NEED_ERROR(TN_ERR_VALUE, "weight: out of range, got -1");
    NEED(tn_ddp_no_sync_end(ddp) != TN_OK);
    NEED_ERROR(TN_ERR_RUNTIME, "no tn_ddp_no_sync_begin before it");
    tn_module_drop(net);
    tn_module_drop(ddp);
}

START_TEST(wrong_options_are_refused)
{
    on_ranks(1, wrap_wrong_options);
}
END_TEST

/* ---- parameters without a gradient ----------------------------------------------------------- */

/* A network whose second layer is not used on rank `unused_on`; -1: on all. */
static int unused_on;

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_child(self, "first", x);

    return unused_on == -1 || unused_on == rank_ ? y : tn_module_call_child(self, "second", y);
}

static tn_module *branches(bool find)
{
    const tn_ddp_options options = { .size = sizeof options, .find_unused_parameters = find };
    tn_module *module = tn_module_plain("Branches"), *net;

    NEED_OK(tn_module_add_children(module, "first=Linear(6, 6), second=Linear(6, 6)"));
    NEED_OK(tn_module_set_forward(module, forward, NULL, NULL));
    net = tn_ddp_new(module, group_, &options);
    NEED(net != NULL);
    tn_module_drop(module);
    return net;
}

static void use_a_part(void)
{
    tn_module *net;

    unused_on = 1;
    net = branches(false);
    NEED(tn_backward(loss_of(net)) != TN_OK);
    NEED(strstr(tn_error_text(), "second.weight (on 1 of 2), second.bias (on 1 of 2)") != NULL);
    NEED_ERROR(TN_ERR_RUNTIME,
               "Expected to have finished reduction in the prior iteration before starting a new "
               "one. This error indicates that your module has parameters that were not used in "
               "producing loss: ");
    unused_on = 7; /* used on all ranks */
    NEED_OK(tn_backward(loss_of(net)));
    tn_module_drop(net);
    net = branches(true);
    unused_on = 1;
    NEED_OK(tn_backward(loss_of(net)));
    tell_state(net, true);
    NEED(found[rank_].count == 2 * 42);
    NEED_OK(tn_module_zero_grad(net));
    unused_on = -1;
    NEED_OK(tn_backward(loss_of(net)));
    NEED(tn_tensor_grad(tn_module_find_tensor(net, "module.second.weight")) == TN_NONE);
    NEED(tn_tensor_grad(tn_module_find_tensor(net, "module.first.weight")) != TN_NONE);
    tn_module_drop(net);
}

/* The gradients that arrived in steps that failed are no part of the order of the next one. */
static void use_a_part_again(void)
{
    tn_module *net;

    unused_on = -1;
    net = branches(false);
    for (int i = 0; i < 3; i++) {
        NEED(tn_backward(loss_of(net)) != TN_OK);
        NEED_ERROR(TN_ERR_RUNTIME, "second.weight (on 2 of 2), second.bias (on 2 of 2)");
    }
    unused_on = 7;
    for (int i = 0; i < 2; i++) {
        NEED_OK(tn_module_zero_grad(net));
        NEED_OK(tn_backward(loss_of(net)));
    }
    tell_state(net, true);
    NEED(found[rank_].count == 2 * 42);
    tn_module_drop(net);
}

START_TEST(unused_parameters_are_an_error_or_count_as_zeros)
{
    on_ranks(2, use_a_part_again);
    same_numbers(&found[0], &found[1], 0);
    on_ranks(2, use_a_part);
    same_numbers(&found[0], &found[1], 0);
    TN_PROVES("DST-008");
}
END_TEST

/* ---- changes after the wrapping -------------------------------------------------------------- */

static int changed_on; /* a rank; -1: all */

/* Freezes a parameter and calls the module: ranks that did not change theirs learn it in backward
 * or forward. */
static void freeze(void)
{
    tn_module *net = wrap("Sequential(Linear(6, 4), Linear(4, 3))", NULL);
    bool changed = changed_on == -1 || changed_on == rank_;
    tn_tensor *loss;

    NEED_OK(tn_backward(loss_of(net)));
    if (changed)
        NEED_OK(tn_tensor_set_requires_grad(tn_module_find_tensor(net, "module.1.bias"), false));
    loss = loss_of(net);
    if (changed) {
        NEED(loss == NULL);
        NEED_ERROR(TN_ERR_RUNTIME, "parameter 1.bias: it lost requires_grad after the module was "
                                   "wrapped");
    } else {
        NEED(tn_backward(loss) != TN_OK);
        NEED_ERROR(TN_ERR_PEER, "");
    }
    tn_module_drop(net);
}

static void change_in_other_ways(void)
{
    tn_module *net = wrap("Sequential(Linear(6, 4), Linear(4, 3))", NULL);
    tn_module *last = tn_module_find(net, "module.1"), *more = make("Linear(3, 3)");

    NEED_OK(tn_module_set(last, "bias", tn_parameter(numbers(TN_SHAPE(3), 1), true)));
    NEED(loss_of(net) == NULL);
    NEED_ERROR(TN_ERR_RUNTIME, "parameter 1.bias: it was replaced by another tensor");
    NEED_OK(tn_module_remove(last, "bias"));
    NEED(loss_of(net) == NULL);
    NEED_ERROR(TN_ERR_RUNTIME, "parameter 1.bias: it was removed or lost requires_grad");
    NEED_OK(tn_module_add_child(tn_module_child(net, "module"), "2", more));
    NEED(loss_of(net) == NULL);
    NEED_ERROR(TN_ERR_RUNTIME, "parameter 2.weight: it was added or got requires_grad");
    tn_module_drop(more);
    tn_module_drop(net);
}

/* One rank has nobody to agree with. */
static void change_alone(void)
{
    tn_module *net = wrap("Sequential(Linear(6, 4), Linear(4, 3))", NULL);
    tn_tensor *bias = tn_parameter(numbers(TN_SHAPE(3), 1), true);

    NEED_OK(tn_backward(loss_of(net)));
    NEED_OK(tn_module_set(tn_module_find(net, "module.1"), "bias", bias));
    NEED_OK(tn_backward(loss_of(net)));
    NEED(tn_tensor_grad(bias) != TN_NONE);
    tn_module_drop(net);
}

/* All ranks cast the module: each learns it in forward, before it exchanges anything. */
static void cast_wrapped(void)
{
    tn_module *net = wrap("Sequential(Linear(6, 4), Linear(4, 3))", NULL);

    if (size_ > 1)
        NEED_OK(tn_backward(loss_of(net)));
    NEED_OK(tn_module_zero_grad(net));
    NEED_OK(tn_module_bfloat16(net));
    NEED((tn_module_call(net, tn_cast(numbers(TN_SHAPE(4, 6), 1), TN_BF16)) == NULL) ==
         (size_ > 1));
    if (size_ > 1)
        NEED_ERROR(TN_ERR_RUNTIME,
                   "parameter 0.weight: it changed from float32 on cpu:0 to bfloat16 "
                   "on cpu:0 after the module was wrapped");
    tn_module_drop(net);
}

START_TEST(changes_after_the_wrapping_are_found)
{
    on_ranks(2, cast_wrapped);
    on_ranks(1, cast_wrapped);
    on_ranks(2, change_in_other_ways);
    on_ranks(1, change_alone);
    changed_on = -1;
    on_ranks(2, freeze);
    for (changed_on = 0; changed_on < 2; changed_on++)
        on_ranks(2, freeze);
}
END_TEST

/* ---- backward -------------------------------------------------------------------------------- */

static tn_status fail_hook(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)user;
    (void)gradient;
    (void)replacement;
    return tn_fail(TN_ERR_RUNTIME, "a hook failed");
}

/* Backward fails on one rank; the others learn it when that rank goes on. */
static void fail_alone(void)
{
    tn_module *net = wrap("Sequential(Linear(6, 4), Linear(4, 3))", NULL);
    double since = seconds();
    tn_tensor *loss = loss_of(net);

    if (rank_ == 1)
        usleep(
            100000); /* rank 0 waits in bucket_wait: its last look at the group found no failure */
    if (rank_ == 1)
        tn_tensor_hook(tn_module_find_tensor(net, "module.0.weight"), fail_hook, NULL, NULL);
    NEED(tn_backward(loss) != TN_OK);
    if (rank_ == 1) {
        NEED_ERROR(TN_ERR_RUNTIME, "a hook failed");
        NEED(loss_of(net) == NULL);
        NEED_ERROR(TN_ERR_RUNTIME, "the last backward of this rank failed");
    } else {
        NEED_ERROR(TN_ERR_PEER, "bucket 0 (1.bias .. 0.weight): ");
    }
    NEED(seconds() - since < 10);
    tn_module_drop(net);
}

static void create_a_graph(void)
{
    const tn_backward_options again = { .size = sizeof again, .create_graph = true };
    tn_module *net = wrap("Linear(6, 3)", NULL);
    tn_tensor *loss = loss_of(net), *weight = tn_module_find_tensor(net, "module.weight");
    tn_tensor *gradient = NULL;

    NEED(tn_backward_from(&loss, NULL, 1, &again) != TN_OK);
    NEED_ERROR(TN_ERR_RUNTIME, "create_graph: not possible here");
    tn_module_drop(net);
    group_ = NULL;
    net = wrap("Linear(6, 3)", NULL);
    loss = loss_of(net);
    weight = tn_module_find_tensor(net, "module.weight");
    NEED_OK(tn_grad(&loss, NULL, 1, &weight, &gradient, 1, NULL));
    NEED(tn_tensor_grad(weight) == TN_NONE);
    loss = loss_of(net);
    tn_module_drop(net);
    NEED(tn_backward(loss) != TN_OK);
    NEED_ERROR(TN_ERR_RUNTIME, "the module was freed before backward");
}

START_TEST(what_backward_cannot_do_is_an_error)
{
    on_ranks(2, fail_alone);
    on_ranks(1, create_a_graph);
}
END_TEST

/* ---- lost ranks ------------------------------------------------------------------------------ */

static void until_a_rank_is_killed(void)
{
    tn_module *net = wrap("Sequential(Linear(6, 4), Linear(4, 3))", NULL);
    tn_status status = TN_OK;

    for (int i = 0; i < 3 && status == TN_OK; i++) {
        TN_SCOPE;
        tn_tensor *loss = loss_of(net);

        if (rank_ == 2 && i == 1)
            raise(SIGKILL);
        status = tn_backward(loss);
    }
    NEED(status != TN_OK);
    NEED_ERROR(TN_ERR_PEER, "rank 2");
    /* the module itself still works */
    NEED(tn_module_call(tn_module_child(net, "module"), numbers(TN_SHAPE(1, 6), 1)) != NULL);
    tn_module_drop(net);
}

START_TEST(the_others_end_when_a_rank_is_killed)
{
    pid_t pids[RANKS];
    double since = seconds();

    start_ranks(until_a_rank_is_killed, 4, pids);
    for (int r = 0; r < 4; r++)
        ck_assert_int_eq(end_rank(pids[r]), r == 2 ? -SIGKILL : 0);
    ck_assert_int_eq(rmdir(folder_), 0);
    ck_assert(seconds() - since < 15);
    TN_PROVES("DST-015");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ddp errors");
    TCase *tcase = tcase_create("ddp errors");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, modules_that_differ_are_refused_on_all_ranks);
    tcase_add_test(tcase, wrong_options_are_refused);
    tcase_add_test(tcase, unused_parameters_are_an_error_or_count_as_zeros);
    tcase_add_test(tcase, changes_after_the_wrapping_are_found);
    tcase_add_test(tcase, what_backward_cannot_do_is_an_error);
    tcase_add_test(tcase, the_others_end_when_a_rank_is_killed);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
