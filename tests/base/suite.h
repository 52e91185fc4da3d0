/* SPDX-License-Identifier: MIT
 *
 * Shared by the test programs of this folder: a runner, and assertions over texts and failures. */
#ifndef TN_TESTS_BASE_SUITE_H
#define TN_TESTS_BASE_SUITE_H

#include "tests/libcheck.h"
#include <stdio.h>
#include <stdlib.h>

#include "core/base/internal.h"

#include <tenon/tenon.h>

/* Runs a list of tests that ends with NULL, each for at most `seconds` (0: without a limit).
 * Returns the exit status of the program. */
static inline int suite_run_for(const char *name, const TTest *const *tests, double seconds)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, seconds);
    for (; *tests; tests++)
        tcase_add_test(tcase, *tests);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run(const char *name, const TTest *const *tests)
{
    return suite_run_for(name, tests, 120);
}

/* Fails the test unless the last failure has this code and this text in its message. Clears the
 * failure. */
#define expect_failure(code_, words)                                                               \
    do {                                                                                           \
        ck_assert_str_eq(tn_status_name(tn_error_last_code()), tn_status_name(code_));             \
        if (!strstr(tn_error_last()->message, words))                                              \
            ck_abort_msg("expected the words \"%s\" in \"%s\"", words, tn_error_last()->message);  \
        tn_error_clear();                                                                          \
    } while (0)

#endif
