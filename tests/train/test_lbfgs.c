/* SPDX-License-Identifier: MIT
 *
 * LBFGS: PyTorch's steps and calls of the closure, a state that is saved after every step, and what
 * is refused. */
#include "tests/base/suite.h"

#include <math.h>

#include "lbfgs.h"

enum { HALF = LBFGS_SIZE / 2 };

struct problem {
    tn_tensor *x, *y;
    tn_optimizer *optimizer;
    double sign;
    int calls;
    int fail_at; /* the call that fails; 0: none */
};

static tn_tensor *parameter_of(const double *values, tn_dtype dtype, const tn_device *device)
{
    tn_tensor *to = tn_tensor_empty(TN_SHAPE(HALF), dtype, device);

    return tn_parameter(tn_copy_(to, tn_tensor_from(values, TN_F64, TN_SHAPE(HALF))), true);
}

static struct problem problem_of(const char *spec, tn_dtype dtype, const tn_device *device)
{
    struct problem p = { .x = parameter_of(lbfgs_start, dtype, device),
                         .y = parameter_of(lbfgs_start + HALF, dtype, device),
                         .sign = strstr(spec, "maximize") != NULL ? -1 : 1 };

    p.optimizer = tn_optimizer_parse((tn_tensor *[]){ p.x, p.y }, 2, spec);
    ck_assert_msg(p.optimizer != NULL, "%s: %s", spec, tn_error_text());
    return p;
}

/* Rosenbrock's function for each pair of elements. */
static tn_tensor *rosenbrock(void *user)
{
    struct problem *p = user;
    tn_tensor *apart, *rest, *loss;

    if (++p->calls == p->fail_at) {
        tn_fail(TN_ERR_RUNTIME, "the data has ended");
        return NULL;
    }
    ck_assert_int_eq(tn_optimizer_zero_grad(p->optimizer), TN_OK);
    apart = tn_sub(p->y, tn_mul(p->x, p->x));
    rest = tn_add_scalar(tn_neg(p->x), 1);
    loss = tn_add(tn_mul_scalar(tn_mul(apart, apart), 100), tn_mul(rest, rest));
    loss = tn_mul_scalar(tn_sum(loss), p->sign);
    return tn_backward(loss) == TN_OK ? loss : NULL;
}

static double step(struct problem *p)
{
    tn_tensor *loss = tn_optimizer_step_with(p->optimizer, rosenbrock, p);

    ck_assert_msg(loss != NULL, "%s", tn_error_text());
    return tn_tensor_item(loss);
}

static void values_of(const struct problem *p, double *out)
{
    for (int i = 0; i < 2; i++) {
        tn_tensor *host = tn_tensor_empty(TN_SHAPE(HALF), TN_F64, tn_device_find("cpu"));

        host = tn_copy_(host, tn_detach(i == 0 ? p->x : p->y));
        ck_assert_int_eq(tn_tensor_copy_out(host, out + (ptrdiff_t)i * HALF, HALF * sizeof *out),
                         TN_OK);
    }
}

/* Compares with PyTorch's numbers after step k. */
static void compare(const struct problem *p, int64_t row, int k, double loss, double tolerance)
{
    double got[LBFGS_SIZE];

    values_of(p, got);
    ck_assert_msg(p->calls == lbfgs[row].at[k].calls, "%s, step %d: %d calls; expected %d",
                  lbfgs[row].spec, k, p->calls, lbfgs[row].at[k].calls);
    ck_assert_msg(fabs(loss - lbfgs[row].at[k].loss) <= tolerance * (1 + fabs(loss)),
                  "%s, step %d: loss %.17g; expected %.17g", lbfgs[row].spec, k, loss,
                  lbfgs[row].at[k].loss);
    for (int i = 0; i < LBFGS_SIZE; i++)
        ck_assert_msg(fabs(got[i] - lbfgs[row].at[k].values[i]) <=
                          tolerance * (1 + fabs(lbfgs[row].at[k].values[i])),
                      "%s, step %d, element %d: %.17g is not %.17g", lbfgs[row].spec, k, i, got[i],
                      lbfgs[row].at[k].values[i]);
}

/* The curvature of the function magnifies differences in rounding from step to step. */
static double tolerance_of(int step)
{
    return step < 2 ? 1e-10 : 1e-7;
}

START_TEST(steps_and_calls_are_those_of_pytorch)
{
    for (int64_t row = 0; row < tn__countof(lbfgs); row++) {
        TN_SCOPE;
        struct problem p = problem_of(lbfgs[row].spec, TN_F64, tn_device_find("cpu"));

        for (int k = 0; k < LBFGS_STEPS; k++)
            compare(&p, row, k, step(&p), tolerance_of(k));
        tn_optimizer_drop(p.optimizer);
    }
}
END_TEST

/* Each state was saved by PyTorch after some steps: the next steps are PyTorch's next steps. */
START_TEST(a_state_of_pytorch_continues_as_in_pytorch)
{
    const char *folder = getenv("abs_srcdir");

    for (int64_t row = 0; row < tn__countof(lbfgs); row++) {
        TN_SCOPE;
        struct problem p = problem_of(lbfgs[row].spec, TN_F64, tn_device_find("cpu"));
        const int saved = lbfgs[row].saved;
        const double *values = lbfgs[row].at[saved - 1].values;
        char path[1024];
        tn_state *state;

        tn_snprint(path, sizeof path, "%s/tests/train/files/lbfgs-%lld.pt",
                   folder != NULL ? folder : ".", (long long)row);
        state = tn_state_load(path);
        ck_assert_msg(state != NULL, "%s", tn_error_text());
        ck_assert_ptr_nonnull(tn_copy_(tn_detach(p.x), parameter_of(values, TN_F64, NULL)));
        ck_assert_ptr_nonnull(tn_copy_(tn_detach(p.y), parameter_of(values + HALF, TN_F64, NULL)));
        ck_assert_msg(tn_optimizer_load_state(p.optimizer, state) == TN_OK, "%s: %s", path,
                      tn_error_text());
        tn_state_drop(state);
        p.calls = lbfgs[row].at[saved - 1].calls;
        for (int k = saved; k < LBFGS_STEPS; k++) {
            if (k == saved + 1) { /* what Tenon saves of it continues, too */
                state = tn_optimizer_save_state(p.optimizer);
                ck_assert_int_eq(tn_optimizer_load_state(p.optimizer, state), TN_OK);
                tn_state_drop(state);
            }
            compare(&p, row, k, step(&p), tolerance_of(k));
        }
        tn_optimizer_drop(p.optimizer);
    }
}
END_TEST

/* After every step a new optimizer continues from copies of all states, which are set by name. */
START_TEST(a_saved_state_continues)
{
    for (int64_t row = 0; row < tn__countof(lbfgs); row++) {
        TN_SCOPE;
        struct problem p = problem_of(lbfgs[row].spec, TN_F64, tn_device_find("cpu"));

        for (int k = 0; k < LBFGS_STEPS; k++) {
            tn_tensor *both[] = { p.x, p.y };
            tn_optimizer *fresh = tn_optimizer_parse(both, 2, lbfgs[row].spec);

            for (int64_t i = 0; i < tn_optimizer_state_count(p.optimizer, 0); i++) {
                const char *name = tn_optimizer_state_name(p.optimizer, 0, i);
                tn_tensor *copy = tn_clone(tn_optimizer_state(p.optimizer, 0, name));

                ck_assert_int_eq(tn_optimizer_set_state(fresh, 0, name, copy), TN_OK);
            }
            ck_assert_int_eq(tn_optimizer_state_count(p.optimizer, 1), 0);
            tn_optimizer_drop(p.optimizer);
            p.optimizer = fresh;
            compare(&p, row, k, step(&p), tolerance_of(k));
        }
        tn_optimizer_drop(p.optimizer);
    }
}
END_TEST

START_TEST(every_device_finds_the_minimum)
{
    int64_t made = 0;

    for (int64_t d = 0; d < tn_device_count(); d++) {
        TN_SCOPE;
        const tn_device *device = tn_device_at(d);
        struct problem p;
        double got[LBFGS_SIZE];

        if (!tn_device_has_memory(device))
            continue;
        p = problem_of("LBFGS(line_search_fn='strong_wolfe')", TN_F32, device);
        for (int k = 0; k < 6; k++)
            step(&p);
        values_of(&p, got);
        for (int i = 0; i < LBFGS_SIZE; i++)
            ck_assert_msg(fabs(got[i] - 1) < 2e-2, "%s, element %d: %.9g", tn_device_name(device),
                          i, got[i]);
        ck_assert_ptr_eq(tn_tensor_device(tn_optimizer_state(p.optimizer, 0, "d")), device);
        tn_optimizer_drop(p.optimizer);
        made++;
    }
    ck_assert_int_ge(made, 1);
}
END_TEST

START_TEST(the_states_are_those_of_pytorch)
{
    TN_SCOPE;
    static const char *const names[] = { "d",          "t",      "old_dirs",       "old_stps",
                                         "ro",         "H_diag", "prev_flat_grad", "prev_loss",
                                         "func_evals", "n_iter" };
    struct problem p = problem_of("LBFGS(history_size=3, max_iter=8, lr=0.001)", TN_F64,
                                  tn_device_find("cpu"));

    step(&p);
    ck_assert_int_eq(tn_optimizer_state_count(p.optimizer, 0), tn__countof(names));
    for (int64_t i = 0; i < tn__countof(names); i++)
        ck_assert_str_eq(tn_optimizer_state_name(p.optimizer, 0, i), names[i]);
    ck_assert_double_eq(tn_tensor_item(tn_optimizer_state(p.optimizer, 0, "func_evals")), 8);
    ck_assert_double_eq(tn_tensor_item(tn_optimizer_state(p.optimizer, 0, "n_iter")), 8);
    ck_assert_int_eq(tn_tensor_shape(tn_optimizer_state(p.optimizer, 0, "old_dirs")).at[0], 3);
    ck_assert_int_eq(tn_tensor_shape(tn_optimizer_state(p.optimizer, 0, "old_dirs")).at[1],
                     LBFGS_SIZE);
    ck_assert_int_eq(tn_tensor_shape(tn_optimizer_state(p.optimizer, 0, "ro")).at[0], 3);
    /* A shorter history keeps the last changes. */
    ck_assert_int_eq(tn_optimizer_set(p.optimizer, 0, "history_size", 2), TN_OK);
    step(&p);
    ck_assert_int_eq(tn_tensor_shape(tn_optimizer_state(p.optimizer, 0, "ro")).at[0], 2);
    tn_optimizer_drop(p.optimizer);
}
END_TEST

/* A step whose closure fails leaves the state; in a line search also the parameters. */
START_TEST(a_closure_that_fails_leaves_the_state)
{
    static const char *const specs[] = { "LBFGS(line_search_fn='strong_wolfe')",
                                         "LBFGS(lr=0.001)" };

    for (int i = 0; i < 2; i++)
        for (int at = 1; at < 5; at++) {
            TN_SCOPE;
            struct problem p = problem_of(specs[i], TN_F64, tn_device_find("cpu"));

            p.fail_at = at;
            ck_assert_ptr_null(tn_optimizer_step_with(p.optimizer, rosenbrock, &p));
            expect_failure(TN_ERR_RUNTIME, "the data has ended");
            ck_assert_int_eq(tn_optimizer_state_count(p.optimizer, 0), 0);
            if (i == 0 && at == 2) {
                double got[LBFGS_SIZE];

                values_of(&p, got);
                ck_assert_mem_eq(got, lbfgs_start, sizeof got);
            }
            p.fail_at = 0;
            p.calls = 0;
            step(&p);
            ck_assert_double_eq(tn_tensor_item(tn_optimizer_state(p.optimizer, 0, "func_evals")),
                                p.calls);
            tn_optimizer_drop(p.optimizer);
        }
}
END_TEST

START_TEST(a_parameter_without_a_gradient_counts_as_one_with_zeros)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    struct problem p = problem_of("LBFGS(lr=0.001)", TN_F64, cpu);
    tn_tensor *other = parameter_of(lbfgs_start, TN_F64, cpu);
    tn_tensor *all[] = { p.x, other, p.y };
    double got[HALF];

    tn_optimizer_drop(p.optimizer);
    p.optimizer = tn_optimizer_parse(all, 3, lbfgs[0].spec);
    compare(&p, 0, 0, step(&p), 1e-10);
    ck_assert_int_eq(tn_tensor_copy_out(other, got, sizeof got), TN_OK);
    ck_assert_mem_eq(got, lbfgs_start, sizeof got);
    tn_optimizer_drop(p.optimizer);
}
END_TEST

START_TEST(what_it_cannot_do_is_refused)
{
    static const struct {
        const char *spec, *words;
        tn_status code;
    } wrong[] = {
        { "LBFGS(lr=-1)", "LBFGS: Invalid learning rate: -1.0; expected 0 or more", TN_ERR_VALUE },
        { "LBFGS(line_search_fn='armijo')", "only 'strong_wolfe' is supported", TN_ERR_VALUE },
        { "LBFGS(history_size=0)", "history_size: out of range, got 0", TN_ERR_VALUE },
        { "LBFGS(max_iter=None)", "max_iter", TN_ERR_TYPE },
    };
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    struct problem p = problem_of("LBFGS()", TN_F64, cpu);
    tn_tensor *complex = tn_parameter(tn_tensor_full(TN_SHAPE(2), 1, TN_C64, NULL), true);
    tn_tensor *shorter = parameter_of(lbfgs_start, TN_F32, cpu);
    tn_tensor *mixed[] = { p.x, p.y, shorter }, *parts[] = { p.x, complex };

    for (int64_t i = 0; i < tn__countof(wrong); i++) {
        ck_assert_msg(tn_optimizer_parse(&p.x, 1, wrong[i].spec) == NULL, "%s", wrong[i].spec);
        expect_failure(wrong[i].code, wrong[i].words);
    }
    ck_assert_int_eq(tn_optimizer_step(p.optimizer), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "missing 1 required positional argument: 'closure'");
    ck_assert_int_eq(tn_optimizer_add_group(p.optimizer, &shorter, 1, NULL), TN_OK);
    ck_assert_ptr_null(tn_optimizer_step_with(p.optimizer, rosenbrock, &p));
    expect_failure(TN_ERR_VALUE, "doesn't support per-parameter options (parameter groups)");
    tn_optimizer_drop(p.optimizer);
    p.optimizer = tn_optimizer_parse(mixed, 3, "LBFGS()");
    ck_assert_ptr_null(tn_optimizer_step_with(p.optimizer, rosenbrock, &p));
    expect_failure(TN_ERR_VALUE, "parameter 2: it is float32 on cpu:0; expected the dtype and the "
                                 "device of the first, float64 on cpu:0");
    tn_optimizer_drop(p.optimizer);
    p.optimizer = tn_optimizer_parse(parts, 2, "LBFGS()");
    ck_assert_ptr_null(tn_optimizer_step_with(p.optimizer, rosenbrock, &p));
    expect_failure(TN_ERR_VALUE, "parameter 1: it is complex64 on cpu:0; expected the dtype and "
                                 "the device of the first, float64 on cpu:0");
    tn_optimizer_drop(p.optimizer);
    ck_assert_int_eq(p.calls, 0);
    /* A state that is not whole. */
    p = problem_of("LBFGS(lr=0.001)", TN_F64, cpu);
    tn_optimizer_set_state(p.optimizer, 0, "n_iter",
                           tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_I64, NULL));
    ck_assert_ptr_null(tn_optimizer_step_with(p.optimizer, rosenbrock, &p));
    expect_failure(TN_ERR_VALUE, "state func_evals: missing; expected all states of the last step");
    tn_optimizer_set_state(p.optimizer, 0, "func_evals",
                           tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_I64, NULL));
    tn_optimizer_set_state(p.optimizer, 0, "d", tn_tensor_full(TN_SHAPE(2), 1, TN_F64, NULL));
    ck_assert_ptr_null(tn_optimizer_step_with(p.optimizer, rosenbrock, &p));
    expect_failure(TN_ERR_VALUE, "state d: wrong shape");
    tn_optimizer_drop(p.optimizer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        steps_and_calls_are_those_of_pytorch,
        a_state_of_pytorch_continues_as_in_pytorch,
        a_saved_state_continues,
        every_device_finds_the_minimum,
        the_states_are_those_of_pytorch,
        a_closure_that_fails_leaves_the_state,
        a_parameter_without_a_gradient_counts_as_one_with_zeros,
        what_it_cannot_do_is_refused,
        NULL,
    };
    return suite_run("train-lbfgs", tests);
}
