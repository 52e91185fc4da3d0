/* SPDX-License-Identifier: MIT
 *
 * Floating-point numbers as decimal digits, from the exact texts that tn_snprint writes. */
#include "print.h"

#include <math.h>
#include <string.h>

/* The bits of the numbers of a dtype, and the exponent of its smallest positive number. Of float8,
 * those of double: with its own, 448 would be printed as 450. */
static void precision_of(tn_dtype dtype, int *bits, int *least)
{
    switch (dtype) {
    case TN_F16: *bits = 11, *least = -24; break;
    case TN_BF16: *bits = 8, *least = -133; break;
    case TN_F32:
    case TN_C64: *bits = 24, *least = -149; break;
    default: *bits = 53, *least = -1074; break;
    }
}

/* Reads the digits of a text: 12.5, 1.25e+01. */
static void take(const char *text, decimal *d)
{
    const char *at = text + (*text == '-');
    int64_t exponent = 0;
    bool behind = false; /* the point */

    d->negative = *text == '-';
    d->count = d->point = 0;
    for (; *at != '\0' && *at != 'e'; at++) {
        if (*at == '.') {
            behind = true;
        } else if (*at != '0' || d->count > 0) {
            if (d->count < DECIMAL_MAX)
                d->digits[d->count++] = *at;
            d->point += !behind;
        } else {
            d->point -= behind;
        }
    }
    if (*at == 'e')
        tn_read_int(at + 1 + (at[1] == '+'), &exponent);
    d->point += (int)exponent;
    while (d->count > 0 && d->digits[d->count - 1] == '0')
        d->count--;
    if (d->count == 0) {
        d->digits[d->count++] = '0';
        d->point = 1;
    }
    d->digits[d->count] = '\0';
}

/* Adds one unit of digit `count` to the digits. */
static void next_above(decimal *d, int count)
{
    while (d->count < count)
        d->digits[d->count++] = '0';
    while (d->count > 0 && d->digits[d->count - 1] == '9')
        d->count--;
    if (d->count > 0) {
        d->digits[d->count - 1]++;
    } else {
        d->digits[d->count++] = '1';
        d->point++;
    }
    d->digits[d->count] = '\0';
}

static bool reads_back(const decimal *d, double value, int bits, int least)
{
    char text[48];
    double read;

    tn_snprint(text, sizeof text, "0.%se%d", d->digits, d->point);
    return tn_read_float(text, &read) && element_rounded(read, bits, least) == fabs(value);
}

void decimal_shortest(double value, tn_dtype dtype, decimal *d)
{
    char text[64];
    int bits, least;

    precision_of(dtype, &bits, &least);
    tn_snprint(text, sizeof text, "%g", value);
    take(text, d);
    if (bits == 53 || value == 0)
        return;
    /* Of the numbers with so many digits, the nearest one or, at a power of two, where the next
     * lower number of the dtype is nearer than the next higher one, the one above. */
    for (int places = 0; places < 17; places++) {
        double nearest;

        tn_snprint(text, sizeof text, "%.*e", places, value);
        take(text, d);
        if (reads_back(d, value, bits, least))
            return;
        if (tn_read_float(text, &nearest) && fabs(nearest) < fabs(value)) {
            next_above(d, places + 1);
            if (reads_back(d, value, bits, least))
                return;
        }
    }
}

void decimal_scientific(double value, int places, decimal *d)
{
    char text[64];

    tn_snprint(text, sizeof text, "%.*e", places, value);
    take(text, d);
}

void decimal_cut_positional(double value, int places, decimal *d)
{
    char text[64];

    if (d->count - d->point <= places)
        return;
    tn_snprint(text, sizeof text, "%.*f", places, value);
    take(text, d);
}

void decimal_cut_scientific(double value, int places, decimal *d)
{
    if (d->count - 1 > places)
        decimal_scientific(value, places, d);
}
