/* SPDX-License-Identifier: MIT
 *
 * Weights as integers: the formats in which layers store them, and the choice of scales. */
#include "modules.h"

static const quant_format formats[] = {
    { "int8", true, 1, 0, 0, -128, 127 },
    { "int4", true, 2, 0, 0, -8, 7 },
    { "q8_0", false, 0, 32, 34, 0, 0 },
    { "q4_0", false, 0, 32, 18, 0, 0 },
};

const quant_format *quant_format_find(const char *who, const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (name != NULL && strcmp(formats[i].name, name) == 0)
            return &formats[i];
    tn_fail(TN_ERR_VALUE, "%s: weight: unknown format, got %q; expected int8, int4, q8_0 or q4_0",
            who, name != NULL ? name : "None");
    return NULL;
}

tn_status quant_format_check(const quant_format *format, const char *who, int64_t group, int64_t in)
{
    if (group < 0 || (group > 0 && (!format->scales || in % group != 0)))
        return tn_fail(TN_ERR_VALUE, "%s: group: %s, got %lld for %lld numbers; expected %s", who,
                       group < 0         ? "negative"
                       : !format->scales ? "the format has its own"
                                         : "does not divide the row",
                       (long long)group, (long long)in,
                       format->scales ? "0 (one scale for each row) or a divisor" : "0");
    if (in % (format->per_byte > 0 ? format->per_byte : format->block) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: weight: %s needs rows that are a multiple of %lld, got %lld; expected "
                       "another format, such as int8",
                       who, format->name,
                       (long long)(format->per_byte > 0 ? format->per_byte : format->block),
                       (long long)in);
    return TN_OK;
}

int64_t quant_format_row(const quant_format *format, int64_t in)
{
    if (format->per_byte > 0)
        return in / format->per_byte;
    return in / format->block > INT64_MAX / format->bytes ? INT64_MAX
                                                          : in / format->block * format->bytes;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static tn_tensor *rounded(const quant_format *format, tn_tensor *rows, tn_tensor *scale)
{
    return tn_quantize(rows, scale, TN_NONE, 0, INT64_MIN, TN_I8, format->least, format->most);
}

/* Sums the squared errors of each row. */
static tn_tensor *errors_of(tn_tensor *rows, tn_tensor *integers, tn_tensor *scale)
{
    tn_tensor *error = tn_sub(tn_dequantize(integers, scale), rows);

    return tn_sum(tn_mul(error, error), TN_INTS(1));
}

/* Chooses the scales of rows [N, K]: starts with the scales that hold the largest
 * magnitudes, and keeps for each row the best of some smaller ones. Four bits gain from clipping
 * more than eight, which need few candidates. */
static tn_status choose_scales(const quant_format *format, tn_tensor *rows, tn_tensor **scale)
{
    const int steps = format->most > 7 ? 6 : 16;
    tn_tensor *whole, *zero_point, *best = NULL;

    if (tn_choose_qparams(rows, &whole, &zero_point, TN_INTS(1), false, INT64_MIN, TN_I8, true,
                          format->least, format->most) != TN_OK)
        return tn_error_last_code();
    *scale = whole;
    for (int step = 0; step <= steps; step++) {
        tn_tensor *tried = tn_mul_scalar(whole, TN_SCALAR(1 - step * 0.03));
        tn_tensor *q = rounded(format, rows, tried);
        tn_tensor *error = errors_of(rows, q, tried), *better;

        if (error == NULL)
            return tn_error_last_code();
        if (best == NULL) {
            best = error;
            continue;
        }
        better = tn_lt(error, best);
        best = tn_where(better, error, best);
        *scale = tn_where(better, tried, *scale);
        if (*scale == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

tn_status quant_weight(const quant_format *format, int64_t group, tn_tensor *weight,
                       tn_tensor **integers, tn_tensor **scale)
{
    tn_ints shape = tn_tensor_shape(weight);
    const int64_t out = shape.at[0];
    const int64_t in = out > 0 ? tn_tensor_numel(weight) / out : shape.at[shape.count - 1];
    const int64_t groups = group > 0 ? in / group : 1;
    tn_tensor *w = tn_cast(tn_detach(weight), TN_F32);

    if (!format->scales) {
        *integers = tn_quantize_packed(w, format->name);
        return *integers != NULL ? TN_OK : tn_error_last_code();
    }
    w = tn_reshape(w, TN_SHAPE(out * groups, in / groups));
    if (*scale != TN_NONE)
        *scale = tn_reshape(*scale, TN_SHAPE(out * groups));
    else if (w == NULL || choose_scales(format, w, scale) != TN_OK)
        return tn_error_last_code();
    *integers = rounded(format, w, *scale);
    if (group > 0)
        *scale = tn_reshape(*scale, TN_SHAPE(out, groups));
    *integers = tn_reshape(*integers, shape);
    if (format->per_byte == 2)
        *integers = tn_pack_int4(*integers);
    return *integers != NULL && *scale != NULL ? TN_OK : tn_error_last_code();
}
