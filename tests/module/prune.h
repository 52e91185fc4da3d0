/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of pruning. */
#ifndef TN_TESTS_MODULE_PRUNE_H
#define TN_TESTS_MODULE_PRUNE_H

#include "core/module/internal.h"
#include "tests/module/suite.h"
#include "tests/spec/proves.h"

#include <tenon/tenon.h>

#define ok(call) ck_assert_msg((call) == TN_OK, "%s: %s", #call, tn_error_text())

enum { MOST_VALUES = 4096 };

/* Reads a tensor of this size. */
static inline void values_of(tn_tensor *tensor, double *out, int64_t count)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *wide;

    ck_assert_msg(tensor != NULL && tensor != TN_NONE, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(tensor), count);
    wide = tn_cast(tensor, TN_F64);
    ok(tn_tensor_copy_out(wide, out, (size_t)count * sizeof *out));
    tn_scope_end(scope);
}

static inline void expect_values(tn_tensor *tensor, int64_t count, const double *wanted)
{
    double got[MOST_VALUES];

    ck_assert_int_le(count, MOST_VALUES);
    values_of(tensor, got, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - wanted[i]) <= 1e-6 * fabs(wanted[i]), "[%d]: %.9g, not %.9g",
                      (int)i, got[i], wanted[i]);
}

#define expect(tensor, ...)                                                                        \
    do {                                                                                           \
        const double wanted_[] = { __VA_ARGS__ };                                                  \
        expect_values(tensor, (int64_t)(sizeof wanted_ / sizeof *wanted_), wanted_);               \
    } while (0)

static inline tn_tensor *numbers(tn_ints shape, const double *values)
{
    tn_tensor *made = tn_tensor_empty(shape, TN_F64, NULL);
    int64_t count = tn_tensor_numel(made);

    ok(tn_tensor_copy_in(made, values, (size_t)count * sizeof *values));
    made = tn_cast(made, TN_F32);
    ck_assert_ptr_nonnull(made);
    return made;
}

/* A float32 tensor of literal values. */
#define tensor(shape, ...) numbers(shape, (const double[]){ __VA_ARGS__ })

/* A module with one parameter, "weight". */
static inline tn_module *holder(tn_tensor *values)
{
    tn_module *module = tn_module_plain("Holder");
    tn_tensor *parameter = tn_parameter(values, true);

    ck_assert_ptr_nonnull(module);
    ok(tn_module_add_parameter(module, "weight", parameter));
    return module;
}

static inline int64_t zeros_of(tn_tensor *tensor)
{
    double values[MOST_VALUES];
    int64_t count = tn_tensor_numel(tensor), zeros = 0;

    ck_assert_int_le(count, MOST_VALUES);
    values_of(tensor, values, count);
    for (int64_t i = 0; i < count; i++)
        zeros += values[i] == 0;
    return zeros;
}

/* The names of the state, in order, with a blank after each. */
static inline void names_of(tn_module *module, char *out, size_t size)
{
    tn_state *state = tn_module_state(module);

    out[0] = '\0';
    ck_assert_ptr_nonnull(state);
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        size_t used = strlen(out);

        tn_snprint(out + used, size - used, "%s ", tn_state_name(state, i));
    }
    tn_state_drop(state);
}

static inline void expect_names(tn_module *module, const char *names)
{
    char got[1024];

    names_of(module, got, sizeof got);
    ck_assert_str_eq(got, names);
}

#endif
