/* SPDX-License-Identifier: MIT
 *
 * Schedulers: PyTorch's rates and momenta, step by step and after a save and a load in the middle;
 * what is refused; hostile states; memory failures. */
#include "tests/base/suite.h"
#include "tests/spec/proves.h"

#include "schedulers.h"

START_TEST(schedulers_give_the_rates_and_momenta_of_pytorch)
{
    ck_assert_int_gt(follow_cases(SCHEDULERS_FILE, 1e-12), 50);
    TN_PROVES("LRS-001", "LRS-002", "LRS-004", "LRS-005", "LRS-006", "LRS-007", "LRS-008",
              "LRS-009", "LRS-010", "LRS-012", "LRS-013", "LRS-014");
}
END_TEST

static const struct {
    const char *spec, *words;
} refused[] = {
    { "StepLR(0)", "step_size: out of range" },
    { "MultiStepLR()", "milestones" },
    { "ConstantLR(1.5)", "Constant multiplicative factor expected to be between 0 and 1" },
    { "LinearLR(0)", "Starting multiplicative factor expected to be greater than 0" },
    { "LinearLR(0.5, 2)", "Ending multiplicative factor expected to be between 0 and 1" },
    { "PolynomialLR(0)", "total_iters: out of range" },
    { "CosineAnnealingLR(0)", "T_max: out of range" },
    { "CosineAnnealingWarmRestarts(0)", "Expected positive integer T_0, but got 0" },
    { "CosineAnnealingWarmRestarts(1, 0)", "Expected integer T_mult >= 1, but got 0" },
    { "CyclicLR([0.1, 0.2, 0.3], 1)", "base_lr must have the same length as" },
    { "CyclicLR(0.1, 1, mode='x')", "mode is invalid and scale_fn is None" },
    { "OneCycleLR(0.1)", "You must define either total_steps OR" },
    { "OneCycleLR(0.1, -1)", "Expected positive integer total_steps, but got -1" },
    { "OneCycleLR(0.1, epochs=0, steps_per_epoch=1)",
      "Expected positive integer epochs, but got 0" },
    { "OneCycleLR(0.1, epochs=4611686018427387904, steps_per_epoch=9)", "too many steps" },
    { "OneCycleLR(0.1, 9, pct_start=1.5)", "Expected float between 0 and 1 pct_start" },
    { "OneCycleLR(0.1, 9, anneal_strategy='x')", "anneal_strategy must be one of 'cos' or" },
    { "SWALR([0.1, 0.2, 0.3])", "swa_lr must have the same length as optimizer.param_groups" },
    { "SWALR(0.1, -1)", "anneal_epochs must be equal or greater than 0, got -1" },
    { "SWALR(0.1, anneal_strategy='x')", "anneal_strategy must by one of 'cos' or 'linear'" },
    { "ReduceLROnPlateau(factor=1)", "Factor should be < 1.0" },
    { "ReduceLROnPlateau('x')", "mode x is unknown!" },
    { "ReduceLROnPlateau(threshold_mode='x')", "threshold mode x is unknown!" },
    { "ReduceLROnPlateau(min_lr=[1, 2, 3])", "expected 2 min_lrs, got 3" },
    { "LambdaLR()", "function: it is missing" },
    { "MultiplicativeLR()", "function: it is missing" },
    { "SequentialLR([], [])", "expects at least one scheduler, but got no scheduler." },
    { "SequentialLR(3, [])", "schedulers: wrong type" },
    { "SequentialLR([3], [])", "wrong type, got int" },
    { "SequentialLR([StepLR(1)], [1])", "one more than the number of milestone points" },
    { "SequentialLR([StepLR(1), StepLR(2), StepLR(3)], [5, 4])", "milestones: not increasing" },
    { "SequentialLR([StepLR(1), OneCycleLR(0.1)], [5])", "You must define either" },
    { "SequentialLR([ReduceLROnPlateau(), StepLR(1)], [5])",
      "does not support `ReduceLROnPlateau`" },
    { "ChainedScheduler([])", "expects at least one scheduler to be chained" },
    { "ChainedScheduler([StepLR(1), ReduceLROnPlateau()])", "but got one at index 1" },
    { "ChainedScheduler([Missing()])", "Missing" },
};

START_TEST(what_pytorch_refuses_is_refused_and_changes_no_rate)
{
    tn_optimizer *optimizer = two_groups("SGD(lr=0.2, momentum=0.9)");
    for (int64_t i = 0; i < tn__countof(refused); i++) {
        ck_assert_msg(tn_scheduler_parse(optimizer, refused[i].spec) == NULL, "%s",
                      refused[i].spec);
        ck_assert_msg(strstr(tn_error_last()->message, refused[i].words) != NULL, "%s: %s",
                      refused[i].spec, tn_error_last()->message);
        tn_error_clear();
        ck_assert(option(optimizer, 0, "lr") == 0.2 && option(optimizer, 1, "lr") == 0.35);
    }
    /* A deep nest is refused or parsed, without an overflow of the stack. */
    tn_optimizer_drop(optimizer);
    char *deep = tn_malloc(1 << 16);
    size_t at = 0;
    for (int i = 0; i < 1000; i++)
        at += (size_t)tn_snprint(deep + at, (1 << 16) - at, "ChainedScheduler([");
    at += (size_t)tn_snprint(deep + at, (1 << 16) - at, "StepLR(1)");
    for (int i = 0; i < 1000; i++)
        at += (size_t)tn_snprint(deep + at, (1 << 16) - at, "])");
    optimizer = two_groups("SGD(lr=0.2)");
    ck_assert_ptr_null(tn_scheduler_parse(optimizer, deep));
    ck_assert(tn_failed());
    tn_error_clear();
    tn_free(deep);
    tn_optimizer_drop(optimizer);
    optimizer = two_groups("Adam(lr=0.2)");
    tn_scheduler *one = tn_scheduler_parse(optimizer, "ReduceLROnPlateau()");
    ck_assert_int_ne(tn_scheduler_step(one), TN_OK);
    expect_failure(TN_ERR_VALUE, "expected a call of tn_scheduler_step_with");
    tn_scheduler_drop(one);
    tn_optimizer_drop(optimizer);
    TN_PROVES("LRS-011");
}
END_TEST

START_TEST(hostile_states_are_refused_and_change_nothing)
{
    static const char *const spec = "SequentialLR([LinearLR(0.1, total_iters=5), "
                                    "CosineAnnealingWarmRestarts(9)], milestones=[5])";
    tn_optimizer *optimizer = two_groups("SGD(lr=0.2)");
    tn_scheduler *scheduler = tn_scheduler_parse(optimizer, spec);
    char text[2048], now[2048], cut[2048];
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
    int64_t length = tn_scheduler_state_text(scheduler, text, sizeof text);
    for (int64_t i = 0; i < length; i++) {
        tn_snprint(cut, sizeof cut, "%.*s", (int)i, text);
        ck_assert_msg(tn_scheduler_set_state(scheduler, cut) != TN_OK, "%s", cut);
        tn_error_clear();
        tn_scheduler_state_text(scheduler, now, sizeof now);
        ck_assert_str_eq(now, text);
    }
    static const char *const wrong[] = {
        "steps=7, children=[LinearLR(steps=1)]",
        "steps=7, children=[StepLR(steps=1), CosineAnnealingWarmRestarts(steps=1)]",
        "steps=7, children=[LinearLR(steps=1), CosineAnnealingWarmRestarts(steps=-1)]",
        "steps=9223372036854775807, children=[LinearLR(steps=1), "
        "CosineAnnealingWarmRestarts(steps=1)]",
        "steps=1, initial=[1, 2, 3], last=[1, 2, 3], children=[LinearLR(steps=1), "
        "CosineAnnealingWarmRestarts(steps=1)]",
        "steps=1, initial=['x'], last=[1], children=[LinearLR(steps=1), "
        "CosineAnnealingWarmRestarts(steps=1)]",
    };
    for (int64_t i = 0; i < tn__countof(wrong); i++) {
        ck_assert_msg(tn_scheduler_set_state(scheduler, wrong[i]) != TN_OK, "%s", wrong[i]);
        tn_error_clear();
        tn_scheduler_state_text(scheduler, now, sizeof now);
        ck_assert_str_eq(now, text);
    }
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
}
END_TEST

static int warnings;

static void count_warnings(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    warnings += level == TN_LOG_WARNING && strstr(text, "before tn_optimizer_step") != NULL;
}

START_TEST(a_step_before_the_optimizers_first_step_warns_once)
{
    tn_optimizer *optimizer = two_groups("SGD(lr=0.2)");
    tn_scheduler *scheduler = tn_scheduler_parse(optimizer, "ChainedScheduler([StepLR(1)])");
    warnings = 0;
    tn_set_log_sink(count_warnings, NULL);
    tn_scheduler_step(scheduler);
    tn_scheduler_step(scheduler);
    ck_assert_int_eq(warnings, 1);
    tn_scheduler_drop(scheduler);
    scheduler = tn_scheduler_parse(optimizer, "StepLR(1)");
    tn_optimizer_set_steps(optimizer, 0, 1);
    tn_scheduler_step(scheduler);
    tn_set_log_sink(NULL, NULL);
    ck_assert_int_eq(warnings, 1);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
    TN_PROVES("LRS-003");
}
END_TEST

static tn_status no_hook(void *user, tn_optimizer *optimizer)
{
    (void)user;
    (void)optimizer;
    return TN_OK;
}

static void count_release(void *user)
{
    ++*(int *)user;
}

START_TEST(a_schedule_keeps_its_optimizer_and_not_the_other_way_round)
{
    tn_optimizer *optimizer = two_groups("SGD(lr=0.2)");
    tn_scheduler *scheduler = tn_scheduler_parse(optimizer, "StepLR(1)");
    double rate = 0;
    int freed = 0;

    ck_assert(tn_optimizer_hook_step(optimizer, no_hook, 0, &freed, count_release) != 0);
    tn_optimizer_drop(optimizer);
    ck_assert_int_eq(freed, 0);
    ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
    ck_assert_int_eq(tn_scheduler_last_rate(scheduler, 0, &rate), TN_OK);
    ck_assert_double_eq_tol(rate, 0.02, 1e-12);
    tn_scheduler_drop(scheduler);
    ck_assert_int_eq(freed, 1);
    TN_PROVES("LRS-015", "LRS-017");
}
END_TEST

/* The rate is that of the descriptor's user. */
static tn_status take_users_rate(tn_scheduler *self, tn_schedule_args *args)
{
    args->rates[0] = *(const double *)tn_scheduler_user(self);
    return TN_OK;
}

START_TEST(a_step_reaches_the_user_of_its_descriptor)
{
    static double rates[2] = { 0.5, 0.25 };
    tn_scheduler_def def = { TN_HEAD(tn_scheduler_def), .name = "UsersRate", .user = &rates[0],
                             .step = take_users_rate };
    tn_scheduler_def other = def;
    tn_optimizer *optimizer = two_groups("SGD(lr=0.1)");
    other.name = "OthersRate";
    other.user = &rates[1];
    ck_assert_int_eq(tn_register(&def), TN_OK);
    ck_assert_int_eq(tn_register(&other), TN_OK);
    tn_scheduler *first = tn_scheduler_new(optimizer, "UsersRate()");
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.5);
    tn_scheduler *second = tn_scheduler_new(optimizer, "OthersRate()");
    ck_assert_double_eq(option(optimizer, 0, "lr"), 0.25);
    ck_assert_ptr_eq(tn_scheduler_user(first), &rates[0]);
    ck_assert_double_eq(option(optimizer, 1, "lr"), 0.35);
    tn_scheduler_drop(second);
    tn_scheduler_drop(first);
    tn_optimizer_drop(optimizer);
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_scheduler_def, "UsersRate"), TN_OK);
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_scheduler_def, "OthersRate"), TN_OK);
}
END_TEST

START_TEST(each_allocation_fails_in_turn_and_nothing_is_lost)
{
    static const char *const spec = "SequentialLR([LinearLR(0.1), ChainedScheduler([CyclicLR(0.1, "
                                    "1, 4), StepLR(3)]), OneCycleLR(0.1, 9)], [1, 2])";
    tn_optimizer *optimizer = two_groups("Adam(lr=0.2)");
    bool done = false;
    for (uint64_t n = 1; !done && n < 100000; n++) {
        char text[4096];
        tn__memory_fail(n);
        tn_scheduler *scheduler = tn_scheduler_parse(optimizer, spec);
        for (int i = 0; i < 3 && !tn_failed(); i++)
            tn_scheduler_step(scheduler);
        if (!tn_failed())
            tn_scheduler_state_text(scheduler, text, sizeof text);
        if (!tn_failed())
            tn_scheduler_set_state(scheduler, text);
        done = tn__memory_fail(0) < n;
        ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "%s", tn_error_text());
        ck_assert(done != tn_failed());
        tn_error_clear();
        tn_scheduler_drop(scheduler);
    }
    ck_assert(done);
    tn_optimizer_drop(optimizer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        schedulers_give_the_rates_and_momenta_of_pytorch,
        what_pytorch_refuses_is_refused_and_changes_no_rate,
        hostile_states_are_refused_and_change_nothing,
        a_step_before_the_optimizers_first_step_warns_once,
        a_schedule_keeps_its_optimizer_and_not_the_other_way_round,
        a_step_reaches_the_user_of_its_descriptor,
        each_allocation_fails_in_turn_and_nothing_is_lost,
        NULL,
    };
    return suite_run("schedulers", tests);
}
