/* SPDX-License-Identifier: MIT
 *
 * What the tests of chains of modules share: hooks of every kind, inputs, comparing bits. */
#ifndef TN_TESTS_MODULE_CHAINS_H
#define TN_TESTS_MODULE_CHAINS_H

#include "tests/op/suite.h"
#include "tests/module/suite.h"

/* ---- hooks that do nothing but count --------------------------------------------------------- */

static int ran;

static inline tn_status on_pre(void *user, tn_module *module, const tn_pack *input, tn_pack *to,
                               tn_hook_outcome *outcome)
{
    (void)user, (void)module, (void)input, (void)to, (void)outcome;
    ran++;
    return TN_OK;
}

static inline tn_status on_forward(void *user, tn_module *module, const tn_pack *input,
                                   const tn_pack *output, tn_pack *to, tn_hook_outcome *outcome)
{
    (void)output;
    return on_pre(user, module, input, to, outcome);
}

enum { PRE, FORWARD, BACK_PRE, BACK, GLOBAL_PRE, GLOBAL, GLOBAL_BACK, OBSERVER, HOOKS };

static inline tn_hook_handle hooked(tn_module *m, int kind)
{
    switch (kind) {
    case PRE: return tn_module_hook_forward_pre(m, on_pre, 0, NULL, NULL);
    case FORWARD: return tn_module_hook_forward(m, on_forward, 0, NULL, NULL);
    case BACK_PRE: return tn_module_hook_backward_pre(m, on_pre, 0, NULL, NULL);
    case BACK: return tn_module_hook_backward(m, on_forward, 0, NULL, NULL);
    case GLOBAL_PRE: return tn_global_hook_forward_pre(on_pre, 0, NULL, NULL);
    case GLOBAL: return tn_global_hook_forward(on_forward, 0, NULL, NULL);
    case GLOBAL_BACK: return tn_global_hook_backward(on_forward, 0, NULL, NULL);
    default: return 0;
    }
}

static inline void same_bits(tn_tensor *a, tn_tensor *b, const char *what)
{
    size_t bytes = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);

    ck_assert_msg(!tn_failed(), "%s: %s", what, tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(a), tn_tensor_numel(b));
    ck_assert_int_eq(tn_tensor_copy_out(a, x, bytes), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(b, y, bytes), TN_OK);
    ck_assert_msg(memcmp(x, y, bytes) == 0, "%s", what);
    free(x);
    free(y);
}

static inline tn_tensor *input(tn_ints shape, bool last)
{
    tn_tensor *x = tn_philox_normal(tn_tensor_empty(shape, TN_F32, NULL), TN_NONE, 0, 1, 7, 0);

    if (last && shape.count == 4)
        x = tn_permute(tn_copy(tn_permute(x, TN_INTS(0, 2, 3, 1))), TN_INTS(0, 3, 1, 2));
    ck_assert_msg(x != NULL, "%s", tn_error_text());
    return x;
}

#endif
