/* SPDX-License-Identifier: MIT
 *
 * Parametrizations of a program, as in PyTorch's test/nn/test_parametrization.py, and what the
 * tests of parametrizations share. */
#ifndef TN_TESTS_MODULE_PARAMETRIZE_H
#define TN_TESTS_MODULE_PARAMETRIZE_H

#include "tests/op/suite.h"
#include "tests/module/suite.h"
#include "tests/spec/proves.h"

/* ---- parametrizations ---- */

/* x.triu(1) - x.triu(1)^T */
TN_ATTR(unused) static tn_tensor *skew(tn_module *self, tn_tensor *x)
{
    tn_tensor *upper = tn_triu(x, 1);

    (void)self;
    return tn_sub(upper, tn_transpose(upper, 0, 1));
}

TN_ATTR(unused) static tn_tensor *doubled(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_mul_scalar(x, 2.0);
}

TN_ATTR(unused) static tn_status halved(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    tn_tensor *half = tn_mul_scalar(value, 0.5);

    (void)self;
    return half != NULL ? tn_pack_add(originals, NULL, tn_value_tensor(half))
                        : tn_error_last_code();
}

TN_ATTR(unused) static tn_tensor *plus_one(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_add_scalar(x, 1.0);
}

TN_ATTR(unused) static tn_status minus_one(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    tn_tensor *less = tn_add_scalar(value, -1.0);

    (void)self;
    return less != NULL ? tn_pack_add(originals, NULL, tn_value_tensor(less))
                        : tn_error_last_code();
}

TN_ATTR(unused) static tn_tensor *unchanged(tn_module *self, tn_tensor *x)
{
    (void)self;
    return x;
}

/* A parametrization of the program, with or without a right inverse. */
TN_ATTR(unused)
static tn_module *own(const char *type, tn_tensor *(*forward)(tn_module *self, tn_tensor *input),
                      tn_status (*inverse)(tn_module *self, tn_tensor *value, tn_pack *originals))
{
    tn_module *module = tn_module_plain(type);

    ck_assert_int_eq(tn_module_set_forward(module, forward, NULL, NULL), TN_OK);
    if (inverse != NULL)
        ck_assert_int_eq(tn_parametrize_set_inverse(module, inverse), TN_OK);
    return module;
}

/* Parametrizes a tensor, and drops the parametrization. */
TN_ATTR(unused)
static tn_status with(tn_module *module, const char *name, tn_module *parametrization,
                      uint32_t flags)
{
    tn_status status = tn_parametrize(module, name, parametrization, flags);

    tn_module_drop(parametrization);
    return status;
}

/* The outer product of two vectors. */
TN_ATTR(unused)
static tn_status rank_one(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *y = tn_outer(tn_pack_tensor(input, 0), tn_pack_tensor(input, 1));

    (void)self;
    return y != NULL ? tn_pack_add(output, NULL, tn_value_tensor(y)) : tn_error_last_code();
}

TN_ATTR(unused)
static tn_status rank_one_inverse(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    tn_tensor *row = tn_select(value, 0, 0), *column = tn_select(value, 1, 0);
    tn_status status;

    (void)self;
    column = tn_div(column, tn_select(row, 0, 0));
    status = tn_pack_add(originals, NULL, tn_value_tensor(column));
    return status == TN_OK ? tn_pack_add(originals, NULL, tn_value_tensor(row)) : status;
}

TN_ATTR(unused) static tn_module *rank_one_module(void)
{
    tn_module *module = tn_module_plain("RankOne");

    ck_assert_int_eq(tn_module_set_call(module, rank_one, NULL, NULL), TN_OK);
    ck_assert_int_eq(tn_parametrize_set_inverse(module, rank_one_inverse), TN_OK);
    return module;
}

/* ---- what a module is like ---- */

TN_ATTR(unused) static const char *printed(tn_module *module)
{
    static char text[4096];

    ck_assert_int_gt(tn_module_repr(module, text, sizeof text), 0);
    return text;
}

/* The names of the state, each with a space after it. */
TN_ATTR(unused) static const char *keys(tn_module *module)
{
    static char text[4096];
    tn_state *state = tn_module_state(module);
    int64_t used = 0;

    ck_assert_msg(state != NULL, "%s", tn_error_text());
    text[0] = '\0';
    for (int64_t i = 0; i < tn_state_count(state); i++)
        used += tn_snprint(text + used, sizeof text - (size_t)used, "%s ", tn_state_name(state, i));
    tn_state_drop(state);
    return text;
}

TN_ATTR(unused) static bool equal_values(tn_tensor *a, tn_tensor *b)
{
    bool same = a != NULL && b != NULL && tn_tensor_numel(a) == tn_tensor_numel(b);

    for (int64_t i = 0; same && i < tn_tensor_numel(a); i++)
        same = at(a, i) == at(b, i);
    return same;
}

#endif
