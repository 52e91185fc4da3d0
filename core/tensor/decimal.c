/* SPDX-License-Identifier: MIT
 *
 * Floating numbers as decimal digits. */
#include "core/tensor/decimal.h"
#include "core/tensor/convert.h"

#include <math.h>

/* Whether the text reads back as the same number of the type. */
static bool reads_back(const char *text, double value, tn_dtype dtype)
{
    double back;

    if (!tn_read_float(text, &back))
        return false;
    switch (dtype) {
    case TN_F16: return tn__f16_bits(back) == tn__f16_bits(value);
    case TN_BF16: return tn__bf16_bits(back) == tn__bf16_bits(value);
    case TN_F32:
    case TN_C64: return (float)back == (float)value;
    default:
        return back ==
               value; /* 448 in float8 reads back from "450", too: nobody wants to see that */
    }
}

void tn__decimal_take_apart(const char *text, tn__decimal *d)
{
    int64_t exponent = 0;
    const char *e = strchr(text, 'e');

    d->count = 0;
    for (const char *at = text; at < e; at++)
        if (*at >= '0' && *at <= '9' && d->count < TN__DIGITS_MAX)
            d->digits[d->count++] = *at;
    (void)tn_read_int(e[1] == '+' ? e + 2 : e + 1, &exponent);
    d->point = (int)exponent + 1;
    while (d->count > 1 && d->digits[d->count - 1] == '0')
        d->count--;
    d->digits[d->count] = '\0';
}

void tn__decimal_shortest(double value, tn_dtype dtype, tn__decimal *d)
{
    char text[48];

    d->negative = signbit(value);
    value = fabs(value);
    if (value == 0) {
        strcpy(d->digits, "0");
        d->count = 1;
        d->point = 1;
        return;
    }
    for (int precision = 0; precision < 17; precision++) {
        tn_snprint(text, sizeof text, "%.*e", precision, value);
        if (reads_back(text, value, dtype))
            break;
    }
    tn__decimal_take_apart(text, d);
}

void tn__decimal_cut_positional(double value, int places, tn__decimal *d)
{
    char text[400];

    if (d->count - d->point <= places)
        return;
    tn_snprint(text, sizeof text, "%.*f", places, fabs(value));
    d->count = 0;
    d->point = 0;
    for (const char *at = text; *at != '\0' && *at != '.'; at++)
        d->point++;
    {
        /* Only numbers below 1e8 come here, so that all digits fit. */
        bool leading = true;
        for (const char *at = text; *at != '\0'; at++) {
            if (*at == '.')
                continue;
            if (leading && *at == '0') {
                d->point--;
                continue;
            }
            leading = false;
            if (d->count < TN__DIGITS_MAX)
                d->digits[d->count++] = *at;
        }
    }
    while (d->count > 0 && d->digits[d->count - 1] == '0')
        d->count--;
    if (d->count == 0) {
        d->digits[d->count++] = '0';
        d->point = 1;
    }
    d->digits[d->count] = '\0';
}

void tn__decimal_cut_scientific(double value, int places, tn__decimal *d)
{
    char text[48];

    if (d->count - 1 <= places)
        return;
    tn_snprint(text, sizeof text, "%.*e", places, fabs(value));
    tn__decimal_take_apart(text, d);
}
