/* SPDX-License-Identifier: MIT
 *
 * What the tests of operators and gradients share: running a suite in this process (device threads do not survive a fork), and small tensors. */
#ifndef TN_TESTS_OP_WITH_H
#define TN_TESTS_OP_WITH_H

#include <check.h>

#include <tenon/tenon.h>

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    tn_shutdown();
    return failed > 0;
}

#endif
