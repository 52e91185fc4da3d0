/* SPDX-License-Identifier: MIT
 *
 * Amounts: how many units a method prunes. A whole number is a count; a number with a decimal point
 * is a fraction. So 1 and 1.0 differ. */
#include "prune.h"

#include <math.h>

tn_status prune_amount_check(const char *who, tn_scalar amount)
{
    static const char *const words[] = { "None", "a bool", "", "", "a complex number" };
    char text[64];
    double number = tn_scalar_as_float(amount);

    if (amount.kind != TN_SCALAR_INT && amount.kind != TN_SCALAR_UINT &&
        amount.kind != TN_SCALAR_FLOAT)
        return tn_fail(
            TN_ERR_TYPE, "%s: amount: wrong type, got %s; expected a number of units or a fraction",
            who,
            amount.kind < sizeof words / sizeof *words ? words[amount.kind] : "an unknown kind");
    if (amount.kind == TN_SCALAR_FLOAT ? number >= 0 && number <= 1 : number >= 0)
        return TN_OK;
    if (amount.kind == TN_SCALAR_FLOAT)
        tn_snprint(text, sizeof text, "%g", number);
    else
        tn_snprint(text, sizeof text, "%lld", (long long)amount.as.i);
    return tn_fail(TN_ERR_VALUE,
                   "%s: amount: out of range, got %s; expected a fraction from 0.0 to 1.0, or a "
                   "number of units of 0 or more",
                   who, text);
}

int64_t prune_amount_of(const char *who, tn_scalar amount, int64_t size)
{
    if (amount.kind == TN_SCALAR_FLOAT)
        return (int64_t)rint(amount.as.f * (double)size); /* to even, as Python's round() */
    if (amount.kind == TN_SCALAR_INT && amount.as.i <= size)
        return amount.as.i;
    tn_fail(TN_ERR_VALUE,
            "%s: amount: larger than the number of units to prune, got %llu; expected at most %lld",
            who, (unsigned long long)amount.as.u, (long long)size);
    return -1;
}
