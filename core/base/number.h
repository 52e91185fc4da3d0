/* SPDX-License-Identifier: MIT
 *
 * Conversion of doubles to decimal digits and back, exact and independent of the locale: shared by
 * print.c and number.c. */
#ifndef TN_CORE_BASE_NUMBER_H
#define TN_CORE_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A double has at most 767 significant decimal digits. */
#define TN__DIGITS_MAX 800

/* The absolute value of a finite number: 0.d1d2d3... times ten to the power `point`, without
 * trailing zeros. Zero has count 0 and point 1. */
typedef struct tn__digits {
    char at[TN__DIGITS_MAX]; /* characters '0' to '9', without a final NUL */
    int count;
    int point;
} tn__digits;

/* A binary floating-point type: the number of bits of its significand, and the exponent (of two) of
 * its smallest positive number. */
typedef struct tn__precision {
    int bits, least;
} tn__precision;
#define TN__PRECISION_DOUBLE ((tn__precision){ 53, -1074 })

/* Computes the shortest decimal number that reads back as `value` in the floating-point type
 * `type`; if there are several, the nearest to `value`. `value` is a finite number of that type;
 * its sign is ignored. */
void tn__number_shortest(double value, tn__precision type, tn__digits *out);

/* Computes `count` significant digits, or, if `fixed`, `count` digits after the decimal point.
 * Rounds the exact value half to even. */
void tn__number_digits(double value, int count, bool fixed, tn__digits *out);

/* Reads the number at the beginning of the text. Returns true and sets *used to the length that was
 * read. Returns false if there is no number (*used is 0) or if it is too large (*used > 0). A sign,
 * inf and nan are not read. */
bool tn__number_read(const char *text, size_t length, double *out, size_t *used);

#endif
