/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of modules. */
#ifndef TN_TESTS_MODULE_SUITE_H
#define TN_TESTS_MODULE_SUITE_H

#include "tests/base/suite.h"

/* The module of a spec. */
static inline tn_module *parsed(const char *text)
{
    tn_module *module = tn_module_parse(text);

    ck_assert_msg(module != NULL, "%s: %s", text, tn_error_text());
    return module;
}

#endif
