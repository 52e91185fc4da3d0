/* SPDX-License-Identifier: MIT
 *
 * Floating numbers as decimal digits, for printing. */
#ifndef TN_CORE_TENSOR_DECIMAL_H
#define TN_CORE_TENSOR_DECIMAL_H

#include "core/tensor/internal.h"

#define TN__DECIMAL_MAX 20

/* A finite number: digits d1 d2 ... with the value 0.d1d2... * 10^point. */
typedef struct tn__decimal {
    char digits[TN__DECIMAL_MAX + 1];
    int count, point;
    bool negative;
} tn__decimal;

/* The fewest digits that read back as the same number of its type, which `value` is. */
void tn__decimal_shortest(double value, tn_dtype dtype, tn__decimal *d);
/* The exact value with `places` digits behind the first one, without zeros at the end. */
void tn__decimal_scientific(double value, int places, tn__decimal *d);
/* Rounds the exact value to `places` digits behind the point, of a number below 1e8 / behind the
 * first digit; when there are more. */
void tn__decimal_cut_positional(double value, int places, tn__decimal *d);
void tn__decimal_cut_scientific(double value, int places, tn__decimal *d);

#endif
