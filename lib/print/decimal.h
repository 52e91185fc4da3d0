/* SPDX-License-Identifier: MIT
 *
 * Floating-point numbers as decimal digits, for printing. */
#ifndef TN_LIB_PRINT_DECIMAL_H
#define TN_LIB_PRINT_DECIMAL_H

#include "core/tensor/internal.h"

#define TN__DECIMAL_MAX 20

/* A finite number: digits d1 d2 ... with the value 0.d1d2... * 10^point. */
typedef struct tn__decimal {
    char digits[TN__DECIMAL_MAX + 1];
    int count, point;
    bool negative;
} tn__decimal;

/* Finds the fewest digits that read back as the same number of the dtype. The dtype must be able to
 * hold `value`. */
void tn__decimal_shortest(double value, tn_dtype dtype, tn__decimal *d);
/* Rounds the exact value to `places` digits after the first one, without zeros at the end. */
void tn__decimal_scientific(double value, int places, tn__decimal *d);
/* Round the exact value to `places` digits after the point (of a number below 1e8), or after the
 * first digit. Do nothing if `d` has no more digits than that. */
void tn__decimal_cut_positional(double value, int places, tn__decimal *d);
void tn__decimal_cut_scientific(double value, int places, tn__decimal *d);

#endif
