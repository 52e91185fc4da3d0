/* SPDX-License-Identifier: MIT
 *
 * Decimal digits of doubles and back, exactly and without the locale: shared by format.c and
 * number.c. */
#ifndef TN_CORE_BASE_NUMBER_H
#define TN_CORE_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No double has more significant digits than 767. */
#define TN__DIGITS_MAX 800

/* A finite number as 0.d1d2d3... times ten to the power `point`; no trailing zeros. Zero has count
 * 0, point 1. */
typedef struct tn__digits {
    char at[TN__DIGITS_MAX]; /* '0' to '9', not ended by NUL */
    int count;
    int point;
} tn__digits;

/* A binary floating-point type: bits of a significand, and the exponent of the smallest number. */
typedef struct tn__precision {
    int bits, least;
} tn__precision;
#define TN__PRECISION_DOUBLE ((tn__precision){ 53, -1074 })

/* The shortest decimal that reads back as `value` in the floating-point type `type`; of several the
 * nearest. `value` is a finite number of that type; its sign is ignored. */
void tn__number_shortest(double value, tn__precision type, tn__digits *out);

/* `count` significant digits, or, with `fixed`, `count` digits after the decimal point, rounded
 * half to even on the exact value. */
void tn__number_digits(double value, int count, bool fixed, tn__digits *out);

/* The number that the first characters of the text are: true with the length in *used. Out of range
 * is false with *used > 0. No sign, no inf, no nan. */
bool tn__number_read(const char *text, size_t length, double *out, size_t *used);

#endif
