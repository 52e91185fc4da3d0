/* SPDX-License-Identifier: MIT
 *
 * Comparison of numbers for replay_opinfo: elements of all dtypes as doubles, tolerances, and the
 * numbers in which PyTorch is wrong. */
#ifndef TN_TESTS_ORACLE_REPLAY_NUMBERS_H
#define TN_TESTS_ORACLE_REPLAY_NUMBERS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

/* ---- elements -------------------------------------------------------------------------------- */

static double half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(fraction + 1024, exponent - 25);

    return bits >> 15 != 0 ? -value : value;
}

/* Part `i` of a row of numbers; complex numbers have two parts. */
static double part(const void *data, tn_dtype dtype, int64_t i)
{
    const char *at = data;
    uint32_t bits;
    float single;

    switch (dtype) {
    case TN_BOOL:
    case TN_U8: return ((const uint8_t *)at)[i];
    case TN_I8: return ((const int8_t *)at)[i];
    case TN_I16: return ((const int16_t *)(const void *)at)[i];
    case TN_I32: return ((const int32_t *)(const void *)at)[i];
    case TN_I64: return (double)((const int64_t *)(const void *)at)[i];
    case TN_F16: return half(((const uint16_t *)(const void *)at)[i]);
    case TN_BF16:
        bits = (uint32_t)((const uint16_t *)(const void *)at)[i] << 16;
        memcpy(&single, &bits, sizeof single);
        return single;
    case TN_F32:
    case TN_C64: return ((const float *)(const void *)at)[i];
    default: return ((const double *)(const void *)at)[i];
    }
}

static double step_of(tn_dtype dtype)
{
    return dtype == TN_F64 || dtype == TN_C128  ? 1e-10
           : dtype == TN_F32 || dtype == TN_C64 ? 1e-5
           : dtype == TN_F16                    ? 2e-3
           : dtype == TN_BF16                   ? 1.6e-2
                                                : 0;
}

/* The numbers of a tensor as doubles, malloc'd. Exact but for int64 beyond 2^53. */
static double *numbers_of(const void *data, tn_dtype dtype, int64_t parts)
{
    double *numbers = malloc((size_t)(parts + 1) * sizeof *numbers);

    for (int64_t i = 0; numbers != NULL && i < parts; i++)
        numbers[i] = part(data, dtype, i);
    return numbers;
}

/* ---- where PyTorch is wrong ------------------------------------------------------------------ */

/* Returns whether our number is right although it differs from `theirs`, PyTorch's number. */
typedef bool judge(double ours, double theirs);

/* PyTorch computes sin(k * pi) as a small number, not 0, so that its result at a pole is finite. */
static bool is_pole(double ours, double theirs)
{
    return isinf(ours) && isfinite(theirs);
}

static bool is_infinite_limit(double ours, double theirs)
{
    return isinf(ours) && isnan(theirs);
}

static bool is_finite_limit(double ours, double theirs)
{
    return isfinite(ours) && !isfinite(theirs);
}

/* The difference is at most 1e-7 * (1 + |theirs|). */
static bool is_rounded(double ours, double theirs)
{
    return fabs(ours - theirs) <= 1e-7 * (1 + fabs(theirs));
}

static struct known {
    const char *op, *what; /* `what` as compare gets it */
    judge *right;
    const char *reason;
    int64_t seen;
} known[] = {
    { "digamma", "gradient", is_pole, "trigamma is infinite at its poles", 0 },
    { "polygamma", "output", is_pole, "polygamma is infinite at its poles", 0 },
    { "polygamma", "gradient", is_pole, "polygamma is infinite at its poles", 0 },
    { "i0", "output", is_infinite_limit, "i0 is infinite at infinity", 0 },
    { "i0", "gradient", is_infinite_limit, "i1 is infinite at infinity", 0 },
    { "i1", "output", is_infinite_limit, "i1 is infinite at infinity", 0 },
    { "hypot", "gradient", is_finite_limit,
      "a derivative of hypot is at most 1, also where gradient / result overflows", 0 },
    { "linalg_householder_product", "second gradient", is_rounded,
      "automatic differentiation of the plain product agrees with ours; PyTorch's own formula "
      "loses half of the digits of float64",
      0 },
    { "renorm", "gradient", is_finite_limit,
      "for p = inf it is NaN in complex64, and in complex128 as ours", 0 },
};

static bool known_wrong(const char *op, const char *what, double ours, double theirs)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].op, op) == 0 && strcmp(known[i].what, what) == 0 &&
            known[i].right(ours, theirs)) {
            known[i].seen++;
            return true;
        }
    return false;
}

/* Operators of Hermitian matrices: only the Hermitian part of a gradient is defined. */
static bool is_hermitian(const char *op)
{
    return strcmp(op, "linalg_cholesky") == 0 || strcmp(op, "linalg_eigh") == 0;
}

/* Replaces the square matrices of n x n elements by their Hermitian parts. `parts` is 2 for complex
 * numbers. */
static void make_hermitian(double *at, int64_t count, int64_t n, int64_t parts)
{
    for (int64_t first = 0; first < count; first += n * n * parts)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                for (int64_t k = 0; k < parts; k++) {
                    double *a = &at[first + (i * n + j) * parts + k],
                           *b = &at[first + (j * n + i) * parts + k];
                    double sign = k == 1 ? -1 : 1, mean = (*a + sign * *b) / 2;

                    *a = mean;
                    *b = sign * mean;
                }
}

static void print_known(void)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].seen > 0)
            printf("PyTorch is wrong in %lld numbers of %s (%s): %s\n", (long long)known[i].seen,
                   known[i].op, known[i].what, known[i].reason);
}

#endif
