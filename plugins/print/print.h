/* SPDX-License-Identifier: MIT
 *
 * What the files of this plugin share: texts that grow, elements of tensors as numbers, numbers as
 * decimal digits. */
#ifndef TN_PRINT_PRINT_H
#define TN_PRINT_PRINT_H

#include <tenon/plugin.h>

#include <tenon/print.h>

/* ---- text.c ---------------------------------------------------------------------------------- */

typedef struct output {
    char *at; /* NULL: empty */
    size_t length, room;
    bool failed; /* out of memory */
} output;

TN_HIDDEN void text_put(output *text, const char *bytes, size_t count);
TN_HIDDEN void text_add(output *text, const char *format, ...);
/* Copies a text to out[size] as tn_snprint does, and frees it. Returns its length, -1 on failure.
 */
TN_HIDDEN int64_t text_give(output *text, char *out, size_t size);
TN_HIDDEN void text_free(output *text);

/* ---- element.c ------------------------------------------------------------------------------- */

/* Returns an element of an integer dtype; negative numbers as their two's complement. */
TN_HIDDEN uint64_t element_whole(const void *at, tn_dtype dtype);
/* Returns the real or the imaginary part of an element of a floating-point or complex dtype. */
TN_HIDDEN double element_real(const void *at, tn_dtype dtype, bool imaginary);
/* Returns the number of float16 that is nearest to a number. */
TN_HIDDEN double element_as_f16(double value);
/* Returns the number with `bits` significant bits that is nearest to a finite number; the last bit
 * stands for 2^least or more. */
TN_HIDDEN double element_rounded(double value, int bits, int least);

/* ---- decimal.c ------------------------------------------------------------------------------- */

enum { DECIMAL_MAX = 20 };

/* A finite number: digits d1 d2 ... with the value 0.d1d2... * 10^point. */
typedef struct decimal {
    char digits[DECIMAL_MAX + 1];
    int count, point;
    bool negative;
} decimal;

/* Finds the fewest digits that read back as the same number of the dtype. The dtype must be able to
 * hold `value`. */
TN_HIDDEN void decimal_shortest(double value, tn_dtype dtype, decimal *d);
/* Rounds the exact value to `places` digits after the first one, without zeros at the end. */
TN_HIDDEN void decimal_scientific(double value, int places, decimal *d);
/* Round the exact value to `places` digits after the point (of a number below 1e8), or after the
 * first digit. Do nothing if `d` has no more digits than that. */
TN_HIDDEN void decimal_cut_positional(double value, int places, decimal *d);
TN_HIDDEN void decimal_cut_scientific(double value, int places, decimal *d);

/* ---- tensor.c -------------------------------------------------------------------------------- */

TN_HIDDEN int64_t print_tensor(tn_tensor *tensor, char *out, size_t size);

#endif
