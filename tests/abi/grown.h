/* SPDX-License-Identifier: MIT
 *
 * The number that the operators of grown.ops compute from their options: the k-th option counts k
 * times. */
#ifndef TN_TESTS_ABI_GROWN_H
#define TN_TESTS_ABI_GROWN_H

#ifdef GROWN_PROGRAM
#include <tenon/tenon.h>
#else
#include <tenon/plugin.h>
#endif

#include <math.h>
#include <string.h>

#define GROWN(X)                                                                                   \
    X(grown_bool_true)                                                                             \
    X(grown_bool_false)                                                                            \
    X(grown_int_none)                                                                              \
    X(grown_int)                                                                                   \
    X(grown_float_none)                                                                            \
    X(grown_float)                                                                                 \
    X(grown_text_none)                                                                             \
    X(grown_text)                                                                                  \
    X(grown_ints)                                                                                  \
    X(grown_ints_none)                                                                             \
    X(grown_floats)                                                                                \
    X(grown_floats_none)                                                                           \
    X(grown_dtype_none)                                                                            \
    X(grown_dtype)                                                                                 \
    X(grown_scalar_none)                                                                           \
    X(grown_scalar)                                                                                \
    X(grown_first)                                                                                 \
    X(grown_input)                                                                                 \
    X(grown_output)                                                                                \
    X(grown_twice)

static inline double grown_number(const tn_option *row, const void *options)
{
    const void *at = (const char *)options + row->offset;
    const tn_ints *ints = (const tn_ints *)at;
    const tn_floats *floats = (const tn_floats *)at;
    const tn_scalar *scalar = (const tn_scalar *)at;
    const char *text;
    double sum = 0;

    switch (row->kind) {
    case TN_OPTION_KIND_BOOL: return *(const bool *)at;
    case TN_OPTION_KIND_INT: return *(const int64_t *)at == INT64_MIN ? 0.5 : *(const int64_t *)at;
    case TN_OPTION_KIND_FLOAT: return isnan(*(const double *)at) ? 0.25 : *(const double *)at;
    case TN_OPTION_KIND_STRING:
        memcpy(&text, at, sizeof text);
        return text == NULL ? 0.125 : (double)strlen(text);
    case TN_OPTION_KIND_INTS:
        for (int64_t i = 0; i < ints->count; i++)
            sum += (double)ints->at[i];
        return ints->count < 0 ? 0.75 : sum;
    case TN_OPTION_KIND_FLOATS:
        for (int64_t i = 0; i < floats->count; i++)
            sum += floats->at[i];
        return floats->count < 0 ? 0.75 : sum;
    case TN_OPTION_KIND_DTYPE:
        return *(const tn_dtype *)at == TN_DTYPE_AUTO ? 0.375 : (double)*(const tn_dtype *)at;
    default: return scalar->kind == TN_SCALAR_NONE ? 0.625 : tn_scalar_as_float(*scalar);
    }
}

static inline double grown_total(const tn_option *table, const void *options)
{
    double total = 0;

    for (int k = 0; table != NULL && table[k].kind != TN_OPTION_KIND_END; k++)
        total += (k + 1) * grown_number(&table[k], options);
    return total;
}

#endif
