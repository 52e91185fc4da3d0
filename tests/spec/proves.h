/* SPDX-License-Identifier: MIT
 *
 * A test says which rows of the behaviour specification it has just proven, after its assertions:
 *     TN_PROVES("REG-001", "REG-002");
 * It counts when the line is reached and the test program passes: `make spec` reads the logs. */
#ifndef TN_TESTS_SPEC_PROVES_H
#define TN_TESTS_SPEC_PROVES_H

#include <stdio.h>

#define TN_PROVES(...)                                                                             \
    do {                                                                                           \
        static const char *const rows_[] = { __VA_ARGS__ };                                        \
        for (size_t i_ = 0; i_ < sizeof rows_ / sizeof rows_[0]; i_++)                             \
            printf("\nPROVES %s\n", rows_[i_]);                                                    \
        fflush(stdout);                                                                            \
    } while (0)

#endif
