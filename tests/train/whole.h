/* SPDX-License-Identifier: MIT
 *
 * Helpers of the tests of optimizers as a whole. */
#ifndef TN_TESTS_TRAIN_WHOLE_H
#define TN_TESTS_TRAIN_WHOLE_H

#include "tests/base/suite.h"
#include "tests/spec/proves.h"

#include <math.h>

#include "states.h"

#include <tenon/tenon.h>

/* Two parameters of a float64 vector each, and an optimizer with a group for each. */
struct pair {
    tn_tensor *parameters[2];
    tn_optimizer *optimizer;
};

static inline struct pair pair_new(const char *spec, const double *values)
{
    static const char *const second[1] = { "second" };
    static const char *const first[1] = { "first" };
    struct pair pair;
    TN_SCOPE;

    for (int i = 0; i < 2; i++) {
        tn_tensor *value = tn_tensor_from(values + (ptrdiff_t)i * STATE_SIZE, TN_F64,
                                          TN_SHAPE(STATE_SIZE));
        pair.parameters[i] = tn_tensor_keep(tn_parameter(value, true));
    }
    pair.optimizer = tn_optimizer_parse_named(pair.parameters, first, 1, spec);
    ck_assert_msg(pair.optimizer != NULL, "%s", tn_error_text());
    ck_assert_int_eq(
        tn_optimizer_add_group_named(pair.optimizer, pair.parameters + 1, second, 1, "lr=0.02"),
        TN_OK);
    return pair;
}

static inline void pair_free(struct pair *pair)
{
    tn_optimizer_drop(pair->optimizer);
    tn_tensor_drop(pair->parameters[0]);
    tn_tensor_drop(pair->parameters[1]);
}

static inline void pair_step(const struct pair *pair, int step)
{
    TN_SCOPE;
    for (int i = 0; i < 2; i++) {
        tn_tensor *gradient = tn_tensor_from(state_gradients[step] + (ptrdiff_t)i * STATE_SIZE,
                                             TN_F64, TN_SHAPE(STATE_SIZE));
        ck_assert_int_eq(tn_tensor_set_grad(pair->parameters[i], gradient), TN_OK);
    }
    ck_assert_msg(tn_optimizer_step(pair->optimizer) == TN_OK, "%s", tn_error_text());
}

static inline void pair_values(const struct pair *pair, double *out)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(tn_tensor_copy_out(pair->parameters[i], out + (ptrdiff_t)i * STATE_SIZE,
                                            STATE_SIZE * sizeof *out),
                         TN_OK);
}

#endif
