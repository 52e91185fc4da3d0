/* SPDX-License-Identifier: MIT
 *
 * For grow.sh: calls each operator of grown.ops as a program of version 1 or 2 (TN_TARGET) does.
 * The arguments say which version the host's operators have, and which the kernels (0: there are
 * none). */
#define GROWN_PROGRAM
#include "grown.h"

#include <stdio.h>
#include <stdlib.h>

static int host, pack, failures, calls;

/* Leaves something in the memory that the next call uses as its stack, and so in the padding of
 * its option struct. */
__attribute__((noinline)) static void dirty(void)
{
    volatile unsigned char space[4096];

    for (size_t i = 0; i < sizeof space; i++)
        space[i] = 0xa7;
}

static void check(const char *what, tn_tensor *y, double expected)
{
    double got = y != NULL ? tn_item(y) : 0;

    calls++;
    if (y == NULL || got < expected - 1e-3 || got > expected + 1e-3) {
        printf("%s: got %g (%s), expected %g\n", what, got, tn_error_text(), expected);
        failures++;
    }
    tn_error_clear();
}

static void check_refused(const char *what, tn_tensor *y, const char *words)
{
    calls++;
    if (y != NULL || strstr(tn_error_text(), words) == NULL) {
        printf("%s: expected an error with \"%s\", got %s\n", what, words, tn_error_text());
        failures++;
    }
    tn_error_clear();
}

/* What a call returns: `base` for version 1, and `added` more if the operator counts what version 2
 * added. A kernel runs if it knows all that the call uses (`uses` version), and counts what it
 * knows. */
static double result(int uses, double base, double added)
{
    bool kernel = pack > 0 && uses <= pack;

    return base + (kernel ? 1000 : 0) + (host == 2 && (!kernel || pack == 2) ? added : 0);
}

/* An operator with options. `own` and `given`: what the new option counts by default, and with
 * `value`. */
#if TN_TARGET < 2
#define ADDED(name_, own, given, ...)                                                              \
    dirty();                                                                                       \
    check(#name_, tn_##name_(x), result(1, 3, own));                                               \
    dirty();                                                                                       \
    check(#name_ " a", tn_##name_(x, 4.0, true), result(1, 7, own));
#else
#define ADDED(name_, own, given, ...)                                                              \
    dirty();                                                                                       \
    check(#name_, tn_##name_(x), result(1, 3, own));                                               \
    dirty();                                                                                       \
    check(#name_ " a", tn_##name_(x, 4.0, true), result(1, 7, own));                               \
    dirty();                                                                                       \
    if (host == 2)                                                                                 \
        check(#name_ " more", tn_##name_(x, 4.0, true, __VA_ARGS__), result(2, 7, given));         \
    else                                                                                           \
        check_refused(#name_ " more", tn_##name_(x, 4.0, true, __VA_ARGS__), "too large");
#endif

static void options(tn_tensor *x)
{
    static const double number = 2.5;
    const tn_floats one_float = { &number, 1 };

    (void)one_float; /* version 1 does not use it */
    ADDED(grown_bool_true, 3, 0, false)
    ADDED(grown_bool_false, 0, 3, true)
    ADDED(grown_int_none, 1.5, -21, -7)
    ADDED(grown_int, 15, 0, 0)
    ADDED(grown_float_none, 0.75, 0, 0.0)
    ADDED(grown_float, 4.5, 0, 0.0)
    ADDED(grown_text_none, 0.375, 0, "")
    ADDED(grown_text, 9, 12, "four")
    ADDED(grown_ints, 0, 15, TN_INTS(2, 3))
    ADDED(grown_ints_none, 2.25, 0, tn_no_ints())
    ADDED(grown_floats, 0, 7.5, one_float)
    ADDED(grown_floats_none, 2.25, 0, tn_no_floats())
    ADDED(grown_dtype_none, 1.125, 3.0 * TN_F64, TN_F64)
    ADDED(grown_dtype, 3.0 * TN_F32, 3.0 * TN_F64, TN_F64)
    ADDED(grown_scalar_none, 1.875, 0, 0)
    ADDED(grown_scalar, 9, -6, -2)
}

static void inputs(tn_tensor *x)
{
    const float number = 2;
    tn_tensor *two = tn_tensor_from(&number, TN_F32, TN_SHAPE(1));

    check("grown_first", tn_grown_first(x), result(1, 1, 0.5));
    check("grown_input", tn_grown_input(x), result(1, 3, 0));
    check("grown_output", tn_grown_output(x),
          host == 2 && pack == 1 ? 3 : result(1, 3, 0)); /* the old kernel makes no output z */
    dirty();
    check("grown_twice", tn_grown_twice(x, two), result(1, 25, 5));
    dirty();
    check("grown_twice t", tn_grown_twice(x, TN_NONE, 2.0, false), result(1, 3, 5));
#if TN_TARGET >= 2
    if (host == 2) {
        check("grown_first more", tn_grown_first(x, 2.0), result(2, 1, 2));
        check("grown_input late", tn_grown_input(x, 2.0, two), result(2, 3, 20));
        check("grown_twice late", tn_grown_twice(x, TN_NONE, 2.0, true, two), result(2, 5, 25));
        check("grown_twice last", tn_grown_twice(x, two, 2.0, true, TN_NONE, true, 1),
              result(2, 25, 7));
    } else {
        check_refused("grown_first more", tn_grown_first(x, 2.0), "too large");
        check_refused("grown_input late", tn_grown_input(x, 2.0, two), "inputs: wrong number");
        check_refused("grown_twice late", tn_grown_twice(x, TN_NONE, 2.0, true, two),
                      "inputs: wrong number");
        check_refused("grown_twice last", tn_grown_twice(x, two, 2.0, true, TN_NONE, true, 1),
                      "too large");
    }
#endif
}

int main(int argc, char **argv)
{
    const float one = 1;
    tn_tensor *x;

    if (argc != 3)
        return 2;
    host = atoi(argv[1]);
    pack = atoi(argv[2]);
    x = tn_tensor_from(&one, TN_F32, TN_SHAPE(1));
    options(x);
    inputs(x);
    printf("%d calls\n", calls);
    return failures > 0 || calls == 0;
}
