/* SPDX-License-Identifier: MIT
 *
 * Law 4: every allocation of a step of each optimizer is made to fail in turn. The step fails with
 * an error of memory, or succeeds, and a step after it succeeds. */
#include "tests/base/suite.h"

#include <math.h>

enum { SIZE = 6 };

static const char *const specs[] = {
    "NAdam(capturable=True)",
    "RAdam(weight_decay=0.1)",
    "Adagrad(capturable=True, lr_decay=0.5)",
    "Adadelta()",
    "Adamax(maximize=True)",
    "RMSprop(momentum=0.5, centered=True)",
    "Rprop()",
    "ASGD(t0=0, capturable=True)",
    "Lion(weight_decay=0.1)",
    "Adafactor()",
    "Muon()",
    "LBFGS(lr=0.01, max_iter=4)",
    "LBFGS(line_search_fn='strong_wolfe', max_iter=4, history_size=2)",
};

struct problem {
    tn_tensor *parameter;
    tn_optimizer *optimizer;
};

/* The sum of (p - 1)^2 * (1, 10, 1, 10, ...). */
static tn_tensor *closure(void *user)
{
    static const double weights[SIZE] = { 1, 10, 1, 10, 1, 10 };
    struct problem *p = user;
    tn_tensor *apart = tn_add_scalar(p->parameter, -1), *loss;

    if (tn_optimizer_zero_grad(p->optimizer) != TN_OK)
        return NULL;
    loss = tn_mul(tn_mul(apart, apart), tn_tensor_from(weights, TN_F64, TN_SHAPE(2, 3)));
    loss = tn_sum(loss);
    return loss != NULL && tn_backward(loss) == TN_OK ? loss : NULL;
}

static tn_status step(struct problem *p)
{
    TN_SCOPE;

    return tn_optimizer_step_with(p->optimizer, closure, p) != NULL ? TN_OK : tn_error_code();
}

static struct problem begin(const char *spec)
{
    static const double start[SIZE] = { 2, -1, 0.5, 3, -2, 0 };
    struct problem p = { .parameter = tn_parameter(tn_tensor_from(start, TN_F64, TN_SHAPE(2, 3)),
                                                   true) };

    p.optimizer = tn_optimizer_parse(&p.parameter, 1, spec);
    ck_assert_msg(p.optimizer != NULL, "%s: %s", spec, tn_error_text());
    return p;
}

/* Makes each allocation of step `before` + 1 fail. Returns how many steps failed. */
static int64_t walk(const char *spec, int before)
{
    int64_t failures = 0;
    bool reached = true;

    for (uint64_t n = 1; reached; n++) {
        TN_SCOPE;
        struct problem p = begin(spec);
        double got[SIZE];
        tn_status status;

        ck_assert_uint_lt(n, 20000);
        for (int k = 0; k < before; k++)
            ck_assert_msg(step(&p) == TN_OK, "%s: %s", spec, tn_error_text());
        tn__memory_fail(n);
        status = step(&p);
        reached = tn__memory_fail(0) >= n;
        ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "%s, allocation %d: %s", spec,
                      (int)n, tn_error_text());
        failures += status != TN_OK;
        tn_error_clear();
        ck_assert_msg(step(&p) == TN_OK, "%s, after allocation %d: %s", spec, (int)n,
                      tn_error_text());
        ck_assert_int_eq(tn_tensor_copy_out(p.parameter, got, sizeof got), TN_OK);
        for (int k = 0; k < SIZE; k++)
            ck_assert_msg(isfinite(got[k]), "%s, allocation %d", spec, (int)n);
        tn_optimizer_drop(p.optimizer);
    }
    return failures;
}

START_TEST(each_allocation_of_a_step_fails_in_turn_law_4)
{
    for (int64_t i = 0; i < tn__countof(specs); i++)
        for (int before = 0; before < 3; before++)
            ck_assert_int_gt(walk(specs[i], before), 3);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { each_allocation_of_a_step_fails_in_turn_law_4, NULL };

    return suite_run("optim-memory", tests);
}
