/* SPDX-License-Identifier: MIT
 *
 * libcheck, with assertions that are cheap if they hold. libcheck writes the line of each assertion
 * to a pipe whenever it runs, so that it can say after which line a test crashed. Tests that check
 * every element of a tensor would spend most of their time on these writes. With this header, a
 * test writes each line only the first time. */
#ifndef TN_TESTS_LIBCHECK_H
#define TN_TESTS_LIBCHECK_H

#include <check.h>

static inline void libcheck_mark(const char *file, int line)
{
    static unsigned char written[4096];

    if (!__atomic_exchange_n(&written[line % (int)sizeof written], 1, __ATOMIC_RELAXED))
        _mark_point(file, line);
}

/* The other assertions of libcheck call ck_assert_msg with a text. */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
    ((expr)                                                                                        \
         ? libcheck_mark(__FILE__, __LINE__)                                                       \
         : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__))

#endif
