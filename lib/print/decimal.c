/* SPDX-License-Identifier: MIT
 *
 * Floating-point numbers as decimal digits. */
#include "lib/print/decimal.h"
#include "core/base/number.h"

#include <math.h>

static tn__precision precision_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F16: return (tn__precision){ 11, -24 };
    case TN_BF16: return (tn__precision){ 8, -133 };
    case TN_F32:
    case TN_C64: return (tn__precision){ 24, -149 };
    default:
        return TN__PRECISION_DOUBLE; /* also for float8: with its own precision, 448 would be
                                        printed as 450 */
    }
}

static void take(const tn__digits *from, double value, tn__decimal *d)
{
    d->negative = signbit(value);
    d->count = from->count < TN__DECIMAL_MAX ? from->count : TN__DECIMAL_MAX;
    d->point = from->point;
    memcpy(d->digits, from->at, (size_t)d->count);
    if (d->count == 0)
        d->digits[d->count++] = '0';
    d->digits[d->count] = '\0';
}

void tn__decimal_shortest(double value, tn_dtype dtype, tn__decimal *d)
{
    tn__digits digits;

    tn__number_shortest(value, precision_of(dtype), &digits);
    take(&digits, value, d);
}

void tn__decimal_scientific(double value, int places, tn__decimal *d)
{
    tn__digits digits;

    tn__number_digits(value, places + 1, false, &digits);
    take(&digits, value, d);
}

void tn__decimal_cut_positional(double value, int places, tn__decimal *d)
{
    tn__digits digits;

    if (d->count - d->point <= places)
        return;
    tn__number_digits(value, places, true, &digits);
    take(&digits, value, d);
}

void tn__decimal_cut_scientific(double value, int places, tn__decimal *d)
{
    if (d->count - 1 > places)
        tn__decimal_scientific(value, places, d);
}
