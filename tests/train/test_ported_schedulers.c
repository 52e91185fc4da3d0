/* SPDX-License-Identifier: MIT
 *
 * Ports of PyTorch's tests of schedulers (test/optim/test_lrscheduler.py), under the same names.
 * docs/reference/ported-tests.md lists all names. */
#include "schedulers.h"

START_TEST(rates_are_those_of_the_tests_of_pytorch)
{
    ck_assert_int_gt(follow_cases(SCHEDULERS_FILE, 1e-12), 85);
}
END_TEST

/* ---- warnings: test_old_pattern_*, test_new_pattern_* ---------------------------------------- */

static int warnings;

static void count_warnings(void *user, int level, const char *plugin, const char *text)
{
    (void)user, (void)plugin;
    warnings += level == TN_LOG_WARNING && strstr(text, "before tn_optimizer_step") != NULL;
}

static void give_gradients(tn_optimizer *optimizer)
{
    TN_SCOPE;
    double one = 1;

    for (int64_t i = 0; i < tn_optimizer_count(optimizer); i++)
        tn_tensor_set_grad(tn_optimizer_parameter(optimizer, i),
                           tn_tensor_from(&one, TN_F64, TN_SHAPE(1)));
}

/* Steps 35 times, the optimizer first or last; with a state, the scheduler continues at step 10.
 * Returns how often a warning was logged. */
static int warnings_of(const char *spec, bool optimizer_first, bool resumes)
{
    tn_optimizer *optimizer = two_groups("SGD(lr=0.05)");
    tn_scheduler *scheduler = tn_scheduler_parse(optimizer, spec);

    if (resumes)
        ck_assert_int_eq(
            tn_scheduler_set_state(scheduler, "steps=10, initial=[0.01, 0.01], last=[0.01, 0.01]"),
            TN_OK);
    warnings = 0;
    tn_set_log_sink(count_warnings, NULL);
    for (int i = 0; i < 35; i++) {
        give_gradients(optimizer);
        if (optimizer_first)
            ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
        ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
        if (!optimizer_first)
            ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    }
    tn_set_log_sink(NULL, NULL);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
    return warnings;
}

START_TEST(a_rate_that_is_never_used_gives_a_warning)
{
    static const char step[] = "StepLR(3, gamma=0.1)";

    ck_assert_int_eq(warnings_of(step, false, false), 1);
    ck_assert_int_eq(warnings_of(step, false, true), 1);
    ck_assert_int_eq(warnings_of(step, true, false), 0);
    ck_assert_int_eq(warnings_of(step, true, true), 0);
    /* test_sequentiallr_no_warnings */
    ck_assert_int_eq(
        warnings_of("SequentialLR([LinearLR(0.5, 0.1, 5), ExponentialLR(0.9)], [5])", true, false),
        0);
}
END_TEST

/* ---- groups that are added later ------------------------------------------------------------- */

static const double plateau_metrics[20] = { 1,   1,   1,   1,   1,   1,   1,   0.6, 0.5, 0.5,
                                            0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 };

static void add_group(tn_optimizer *optimizer)
{
    TN_SCOPE;
    double zero = 0;
    tn_tensor *p = tn_parameter(tn_tensor_from(&zero, TN_F64, TN_SHAPE(1)), true);

    ck_assert_int_eq(tn_optimizer_add_group(optimizer, &p, 1, "lr=0.05"), TN_OK);
}

/* test_add_param_group_does_not_break_reduce_lr_on_plateau */
START_TEST(a_group_that_is_added_later_is_reduced_too)
{
    const double both[2] = { 0.5, 0.5 };
    tn_optimizer *optimizer = groups_with("SGD(lr=0.05)", both);
    tn_scheduler *scheduler = tn_scheduler_parse(
        optimizer, "ReduceLROnPlateau(threshold=0.1, patience=5, cooldown=5)");

    for (int i = 0; i < 20; i++) {
        double wanted = i < 6 ? 0.5 : i < 17 ? 0.05 : 0.005;

        if (i == 8)
            add_group(optimizer);
        ck_assert_int_eq(tn_scheduler_step_with(scheduler, plateau_metrics[i]), TN_OK);
        ck_assert_double_eq_tol(option(optimizer, 0, "lr"), wanted, 1e-12);
        ck_assert_double_eq_tol(option(optimizer, 1, "lr"), wanted, 1e-12);
    }
    ck_assert_double_eq_tol(option(optimizer, 2, "lr"), 0.005, 1e-12);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
}
END_TEST

/* test_add_param_group_errors_reduce_lr_on_plateau */
START_TEST(too_few_min_lrs_for_the_groups_are_an_error)
{
    tn_optimizer *optimizer = two_groups("SGD(lr=0.05)");
    tn_scheduler *scheduler = tn_scheduler_parse(
        optimizer, "ReduceLROnPlateau(threshold=1e-5, patience=0, min_lr=[1e-5, 1e-4])");

    add_group(optimizer);
    ck_assert_int_eq(tn_scheduler_step_with(scheduler, 1), TN_OK);
    ck_assert_int_eq(tn_scheduler_step_with(scheduler, 1.3), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "The number of param groups in the `optimizer` (3) differs from "
                                   "when `ReduceLROnPlateau` was initialized (2)");
    for (int64_t i = 0; i < 3; i++)
        ck_assert_double_eq(option(optimizer, i, "lr"), i == 1 ? 0.35 : 0.05);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
}
END_TEST

/* ---- states ---------------------------------------------------------------------------------- */

static const char *const all[] = {
    "LambdaLR()",
    "MultiplicativeLR()",
    "StepLR(step_size=30)",
    "MultiStepLR(milestones=[30, 80])",
    "ConstantLR()",
    "LinearLR()",
    "ExponentialLR(gamma=0.9)",
    "PolynomialLR()",
    "CosineAnnealingLR(T_max=10)",
    "ChainedScheduler([ConstantLR(), ConstantLR()])",
    "SequentialLR([ConstantLR(), ConstantLR()], milestones=[2])",
    "ReduceLROnPlateau()",
    "CyclicLR(base_lr=0.01, max_lr=0.1)",
    "OneCycleLR(max_lr=0.01, total_steps=10, anneal_strategy='linear')",
    "CosineAnnealingWarmRestarts(T_0=20)",
    "SWALR(swa_lr=0.01)",
};

static tn_scheduler *scheduler_of(tn_optimizer *optimizer, const char *spec)
{
    tn_scheduler *scheduler = tn_scheduler_lambda(optimizer, spec, factor, NULL);

    ck_assert_msg(scheduler != NULL, "%s: %s", spec, tn_error_text());
    return scheduler;
}

static tn_status advance(tn_scheduler *scheduler, double metric)
{
    return strcmp(tn_scheduler_type(scheduler), "ReduceLROnPlateau") == 0
               ? tn_scheduler_step_with(scheduler, metric)
               : tn_scheduler_step(scheduler);
}

/* test_lr_scheduler_state_dict_load, and the tests test_*_state_dict: the state is the same after a
 * save and a load, before the first step and after some. */
START_TEST(a_state_that_was_loaded_is_the_state_that_was_saved)
{
    for (int64_t i = 0; i < tn__countof(all); i++) {
        tn_optimizer *optimizer = two_groups("SGD(lr=0.05, momentum=0.9)");
        tn_scheduler *scheduler = scheduler_of(optimizer, all[i]);

        for (int step = 0; step < 10; step++) {
            char saved[2048], text[2048];
            tn_scheduler *again = scheduler_of(optimizer, all[i]);

            ck_assert_int_lt(tn_scheduler_state_text(scheduler, saved, sizeof saved), 2048);
            ck_assert_msg(tn_scheduler_set_state(again, saved) == TN_OK, "%s", tn_error_text());
            tn_scheduler_state_text(again, text, sizeof text);
            ck_assert_str_eq(text, saved);
            ck_assert_int_eq(tn_scheduler_steps(again), step);
            for (int64_t group = 0; group < 2; group++) {
                double one, other;

                ck_assert_int_eq(tn_scheduler_last_rate(scheduler, group, &one), TN_OK);
                ck_assert_int_eq(tn_scheduler_last_rate(again, group, &other), TN_OK);
                ck_assert(one == other);
            }
            tn_scheduler_drop(again);
            ck_assert_msg(step == 9 || advance(scheduler, step) == TN_OK, "%s", tn_error_text());
        }
        tn_scheduler_drop(scheduler);
        tn_optimizer_drop(optimizer);
    }
}
END_TEST

/* test_lr_scheduler_checkpoint, test_lr_scheduler_checkpoint_on_plateau,
 * test_cos_anneal_lr_continue: a new optimizer and a new scheduler with the states of the old ones
 * have their rates, and the rates at the start are those at the start of the old scheduler. */
START_TEST(optimizer_and_schedule_continue_from_their_states)
{
    for (int64_t i = 0; i < tn__countof(all); i++) {
        tn_optimizer *optimizer = two_groups("AdamW(lr=0.05)"), *other = two_groups("AdamW()");
        tn_scheduler *scheduler = scheduler_of(optimizer, all[i]), *again;
        tn_state *state;
        char text[2048];

        for (int step = 0; step < 3; step++) {
            give_gradients(optimizer);
            ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
            ck_assert_int_eq(advance(scheduler, step), TN_OK);
        }
        state = tn_optimizer_save_state(optimizer);
        tn_scheduler_state_text(scheduler, text, sizeof text);
        again = scheduler_of(other, all[i]);
        ck_assert_int_eq(tn_scheduler_set_state(again, text), TN_OK);
        ck_assert_int_eq(tn_optimizer_load_state(other, state), TN_OK);
        for (int step = 3; step < 9; step++) {
            for (int64_t group = 0; group < 2; group++) {
                double rate = (double)NAN;

                ck_assert(option(optimizer, group, "lr") == option(other, group, "lr"));
                ck_assert_int_eq(tn_scheduler_last_rate(again, group, &rate), TN_OK);
                ck_assert(rate == option(other, group, "lr"));
            }
            ck_assert_int_eq(advance(scheduler, step), TN_OK);
            ck_assert_int_eq(advance(again, step), TN_OK);
        }
        tn_state_drop(state);
        tn_scheduler_drop(again);
        tn_scheduler_drop(scheduler);
        tn_optimizer_drop(optimizer);
        tn_optimizer_drop(other);
    }
}
END_TEST

/* test_constant_initial_lr, test_constant_initial_params_*: a change by the program after the start
 * does not change the initial rates. */
START_TEST(the_initial_rates_stay)
{
    for (int64_t i = 0; i < tn__countof(all); i++) {
        tn_optimizer *optimizer = two_groups("SGD(lr=0.1, momentum=0.9)");
        tn_scheduler *scheduler = scheduler_of(optimizer, all[i]);
        char before[2048], after[2048], *end;

        tn_scheduler_state_text(scheduler, before, sizeof before);
        for (int step = 0; step < 2; step++) {
            ck_assert_int_eq(tn_optimizer_set(optimizer, -1, "lr", 0.01), TN_OK);
            ck_assert_int_eq(advance(scheduler, step), TN_OK);
        }
        tn_scheduler_state_text(scheduler, after, sizeof after);
        ck_assert_int_eq(strncmp(before, "steps=0, ", 9), 0);
        ck_assert_int_eq(strncmp(after, "steps=2, ", 9), 0);
        end = strchr(before, ']');
        ck_assert_ptr_nonnull(end);
        ck_assert_mem_eq(before + 9, after + 9, end - (before + 9));
        tn_scheduler_drop(scheduler);
        tn_optimizer_drop(optimizer);
    }
}
END_TEST

/* ---- CosineAnnealingWarmRestarts with a step as argument ------------------------------------- */

START_TEST(warm_restarts_refuse_a_step_below_0_and_wrap_a_state)
{
    tn_optimizer *optimizer = two_groups("SGD(lr=0.05)");
    tn_scheduler *scheduler = tn_scheduler_parse(optimizer, "CosineAnnealingWarmRestarts(T_0=4)");
    static const double wrong[] = { -1, -0.5, (double)INFINITY, -(double)INFINITY };

    for (int64_t i = 0; i < tn__countof(wrong); i++) {
        ck_assert_int_eq(tn_scheduler_step_with(scheduler, wrong[i]), TN_ERR_VALUE);
        expect_failure(TN_ERR_VALUE, "Expected non-negative epoch, but got");
    }
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.05);
    /* test_CosineAnnealingWarmRestarts_T_cur_reset */
    for (int epoch = 7; epoch < 10; epoch++) {
        char text[512], wanted[32];

        ck_assert_int_eq(tn_scheduler_step_with(scheduler, epoch), TN_OK);
        ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
        tn_scheduler_state_text(scheduler, text, sizeof text);
        tn_snprint(wanted, sizeof wanted, "T_cur=%d.0, T_i=4", (epoch + 1) % 4);
        ck_assert_msg(strstr(text, wanted) != NULL, "%s", text);
    }
    /* 10 + 20 + 40 + 80 + 160 steps: the restart is exactly at 310. */
    tn_scheduler_drop(scheduler);
    scheduler = tn_scheduler_parse(optimizer, "CosineAnnealingWarmRestarts(T_0=10, T_mult=2)");
    ck_assert_int_eq(tn_optimizer_set(optimizer, -1, "lr", 0.0), TN_OK);
    ck_assert_int_eq(tn_scheduler_step_with(scheduler, 310), TN_OK);
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.05);
    /* 10 + 30 + 90 + 270 + 810 steps; PyTorch's logarithm misses this restart */
    tn_scheduler_drop(scheduler);
    scheduler = tn_scheduler_parse(optimizer, "CosineAnnealingWarmRestarts(T_0=10, T_mult=3)");
    ck_assert_int_eq(tn_scheduler_step_with(scheduler, 1210), TN_OK);
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.05);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(what_the_tests_of_pytorch_expect_to_be_refused_is_refused)
{
    static const struct {
        const char *name, *optimizer, *spec, *words;
    } refused[] = {
        { "test_linearlr_start_factor_limits1", "SGD()", "LinearLR(0.0, total_iters=4)",
          "Starting multiplicative factor" },
        { "test_linearlr_start_factor_limits2", "SGD()", "LinearLR(1.1, total_iters=4)",
          "Starting multiplicative factor" },
        { "test_cycle_lr_invalid_mode", "SGD()", "CyclicLR(0, 0, mode='CATS')", "mode is invalid" },
        { "test_cycle_lr_cycle_momentum_fail_with_momentumless_optimizer", "Rprop()",
          "CyclicLR(1, 5, cycle_momentum=True)", "momentum" },
        { "test_onecycle_lr_invalid_anneal_strategy", "SGD()",
          "OneCycleLR(1e-3, 10, anneal_strategy='CATS')", "anneal_strategy must" },
        { "test_onecycle_lr_invalid_pct_start", "SGD()", "OneCycleLR(1e-3, 10, pct_start=1.1)",
          "pct_start" },
        { "test_onecycle_lr_cannot_calculate_total_steps", "SGD()", "OneCycleLR(1e-3)",
          "You must define either total_steps" },
        { "test_swalr_hypers", "SGD()", "SWALR(1.0, anneal_strategy='exponential')",
          "anneal_strategy must" },
        { "test_swalr_hypers", "SGD()", "SWALR(1.0, anneal_epochs=-1)", "anneal_epochs must" },
        { "test_swalr_hypers", "SGD()", "SWALR(1.0, anneal_epochs=1.7)", "anneal_epochs" },
        { "test_swalr_hypers", "SGD()", "SWALR([1.0, 0.1, 0.01])", "swa_lr must" },
        { "test_multiplicative_lr_with_lr_lambda", "SGD()", "MultiplicativeLR(0.95)",
          "MultiplicativeLR" },
    };

    for (int64_t i = 0; i < tn__countof(refused); i++) {
        tn_optimizer *optimizer = two_groups(refused[i].optimizer);

        ck_assert_msg(tn_scheduler_parse(optimizer, refused[i].spec) == NULL, "%s",
                      refused[i].name);
        ck_assert_msg(strstr(tn_error_last()->message, refused[i].words) != NULL, "%s: %s",
                      refused[i].name, tn_error_last()->message);
        tn_error_clear();
        tn_optimizer_drop(optimizer);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rates_are_those_of_the_tests_of_pytorch,
        a_rate_that_is_never_used_gives_a_warning,
        a_group_that_is_added_later_is_reduced_too,
        too_few_min_lrs_for_the_groups_are_an_error,
        a_state_that_was_loaded_is_the_state_that_was_saved,
        optimizer_and_schedule_continue_from_their_states,
        the_initial_rates_stay,
        warm_restarts_refuse_a_step_below_0_and_wrap_a_state,
        what_the_tests_of_pytorch_expect_to_be_refused_is_refused,
        NULL,
    };
    return suite_run("ported-schedulers", tests);
}
