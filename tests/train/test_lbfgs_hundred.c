/* SPDX-License-Identifier: MIT
 *
 * LBFGS over 100 steps with both line searches, for real and complex parameters: PyTorch's numbers
 * and calls of the closure, with a state that is saved and loaded half way. */
#include "tests/base/suite.h"

#include <math.h>

#include "lbfgs_hundred.h"

enum { N = 3, HALF = HUNDRED / 2 };

struct problem {
    tn_tensor *x, *y;
    tn_optimizer *optimizer;
    bool complex;
    double sign;
    int calls;
};

static tn_tensor *doubles(const double *values)
{
    return tn_tensor_from(values, TN_F64, TN_SHAPE(N));
}

static void make_parameters(struct problem *p)
{
    tn_tensor *x = doubles(hundred_start);

    if (p->complex)
        x = tn_complex(x, doubles(hundred_start + N));
    p->x = tn_parameter(x, true);
    p->y = tn_parameter(doubles(hundred_start + 2 * N), true);
}

static void make_optimizer(struct problem *p, int64_t row)
{
    p->optimizer = tn_optimizer_parse((tn_tensor *[]){ p->x, p->y }, 2, hundred[row].spec);
    ck_assert_msg(p->optimizer != NULL, "%s: %s", hundred[row].spec, tn_error_text());
}

/* Returns the square of each element; of a complex one, that of its absolute value. */
static tn_tensor *square(const struct problem *p, tn_tensor *x)
{
    int64_t last[] = { -1 };

    if (!p->complex)
        return tn_mul(x, x);
    x = tn_view_as_real(x);
    return tn_sum(tn_mul(x, x), ((tn_ints){ last, 1 }));
}

static tn_tensor *loss_of(void *user)
{
    struct problem *p = user;
    const double factor[] = { 0.5, 0.25 };
    tn_tensor *times, *apart, *loss;

    p->calls++;
    ck_assert_int_eq(tn_optimizer_zero_grad(p->optimizer), TN_OK);
    times = p->complex ? tn_tensor_from(factor, TN_C128, TN_SCALAR_SHAPE)
                       : tn_tensor_from(factor, TN_F64, TN_SCALAR_SHAPE);
    apart = tn_add_scalar(tn_sub(p->y, tn_mul(p->x, times)), -1);
    apart = square(p, apart);
    apart = tn_add(tn_mul_scalar(apart, 3), tn_mul(apart, apart));
    loss = tn_add(tn_mul(square(p, p->x), doubles(hundred_weights)), apart);
    loss = tn_mul_scalar(tn_sum(loss), p->sign);
    ck_assert_msg(tn_backward(loss) == TN_OK, "%s", tn_error_text());
    return loss;
}

/* Writes the numbers in the order of the table: real parts, imaginary parts, y. */
static int values_of(const struct problem *p, double *out)
{
    double x[2 * N];
    int at = 0, parts = p->complex ? 2 : 1;

    ck_assert_int_eq(tn_tensor_copy_out(tn_detach(p->x), x, (size_t)(parts * N) * sizeof *x),
                     TN_OK);
    for (int part = 0; part < parts; part++)
        for (int i = 0; i < N; i++)
            out[at++] = x[i * parts + part];
    ck_assert_int_eq(tn_tensor_copy_out(tn_detach(p->y), out + at, N * sizeof *out), TN_OK);
    return at + N;
}

static void compare(const struct problem *p, int64_t row, int at, double loss)
{
    double got[HUNDRED_SIZE];
    const char *spec = hundred[row].spec;
    int count = values_of(p, got), step = hundred_at[at];

    ck_assert_msg(p->calls == hundred[row].at[at].calls, "%s, step %d: %d calls; expected %d", spec,
                  step, p->calls, hundred[row].at[at].calls);
    ck_assert_msg(fabs(loss - hundred[row].at[at].loss) <= 1e-10,
                  "%s, step %d: loss %.17g; expected %.17g", spec, step, loss,
                  hundred[row].at[at].loss);
    for (int i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - hundred[row].at[at].values[i]) <= 1e-10,
                      "%s, step %d, number %d: %.17g is not %.17g", spec, step, i, got[i],
                      hundred[row].at[at].values[i]);
}

/* Replaces parameters and optimizer by new ones with the values and the state of the old ones. */
static void reload(struct problem *p, int64_t row)
{
    tn_tensor *x = p->x, *y = p->y;
    tn_state *state = tn_optimizer_save_state(p->optimizer);

    ck_assert_msg(state != NULL, "%s", tn_error_text());
    make_parameters(p);
    tn_grad_begin(false);
    ck_assert_ptr_nonnull(tn_copy_(p->x, x));
    ck_assert_ptr_nonnull(tn_copy_(p->y, y));
    tn_grad_end();
    tn_optimizer_drop(p->optimizer);
    make_optimizer(p, row);
    ck_assert_msg(tn_optimizer_load_state(p->optimizer, state) == TN_OK, "%s", tn_error_text());
    tn_state_drop(state);
}

START_TEST(a_hundred_steps_and_their_calls_are_those_of_pytorch)
{
    for (int64_t row = 0; row < tn__countof(hundred); row++) {
        TN_SCOPE;
        struct problem p = { .complex = hundred[row].complex,
                             .sign = strstr(hundred[row].spec, "maximize") != NULL ? -1 : 1 };
        int at = 0;

        make_parameters(&p);
        make_optimizer(&p, row);
        for (int i = 1; i <= HUNDRED; i++) {
            uint64_t scope = tn_scope_begin();
            tn_tensor *loss = tn_optimizer_step_with(p.optimizer, loss_of, &p);

            ck_assert_msg(loss != NULL, "%s: %s", hundred[row].spec, tn_error_text());
            if (i == hundred_at[at])
                compare(&p, row, at++, tn_tensor_item(loss));
            tn_scope_end(scope);
            if (i == HALF)
                reload(&p, row);
        }
        ck_assert_int_eq(at, HUNDRED_ROWS);
        tn_optimizer_drop(p.optimizer);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_hundred_steps_and_their_calls_are_those_of_pytorch,
        NULL,
    };
    return suite_run("train-lbfgs-hundred", tests);
}
