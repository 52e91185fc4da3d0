/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of forward hooks. */
#ifndef TN_TESTS_MODULE_FORWARD_HOOKS_H
#define TN_TESTS_MODULE_FORWARD_HOOKS_H

#include "tests/module/hooks.h"

static TN_ATTR(unused) tn_hook_handle pre(tn_module *m, struct act *a, uint32_t flags)
{
    tn_hook_handle handle = tn_module_hook_forward_pre(m, on_forward_pre, flags, a, act_release);
    ck_assert_msg(handle != 0, "%s", tn_error_text());
    return handle;
}

static TN_ATTR(unused) tn_hook_handle after(tn_module *m, struct act *a, uint32_t flags)
{
    tn_hook_handle handle = tn_module_hook_forward(m, on_forward, flags, a, act_release);
    ck_assert_msg(handle != 0, "%s", tn_error_text());
    return handle;
}

#endif
