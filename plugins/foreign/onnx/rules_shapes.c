/* SPDX-License-Identifier: MIT
 *
 * Rules for shapes, conversions and new tensors, and helpers for all rules. Shapes are integers of
 * the host. */
#include "onnx/onnx_rules.h"

#include "onnx/onnx.h"

#include <math.h>
#include <string.h>

enum { HOST_MOST = 64 }; /* numbers of a new list of the host */

/* ---- helpers --------------------------------------------------------------------------------- */

bool onnx_is_host(tn_rule_call *call, const char *name)
{
    const tn_value *value = rule_value(call, name);

    if (value->kind != TN_VALUE_LIST)
        return value->kind == TN_VALUE_INT;
    for (uint32_t i = 0; i < value->count; i++)
        if (value->as.list[i].kind != TN_VALUE_INT)
            return false;
    return true;
}

tn_status onnx_give_host(tn_rule_call *call, const int64_t *numbers, int64_t count)
{
    tn_value *items;

    if (count < 0)
        return rule_give_value(call, tn_value_int(numbers[0]));
    items = rule_memory(call, count, sizeof *items);
    for (int64_t i = 0; i < count && items != NULL; i++)
        items[i] = tn_value_int(numbers[i]);
    return items != NULL ? rule_give_value(call, tn_value_list(items, (uint32_t)count))
                         : call->status;
}

tn_dtype onnx_rule_dtype(tn_rule_call *call, const char *name)
{
    tn_dtype dtype = TN_DTYPE_AUTO;

    if (rule_has(call, name) && call->status == TN_OK) {
        tn_status status = onnx_tensor_dtype(rule_int(call, name), &dtype);

        if (status != TN_OK && call->status == TN_OK)
            call->status = status;
    }
    return dtype;
}

tn_ints onnx_rule_dims(tn_rule_call *call, const char *name, int64_t ndim)
{
    tn_ints dims = rule_ints(call, name);
    int64_t *at;
    uint64_t seen = 0;

    if (call->status != TN_OK || dims.count < 0)
        return dims;
    at = rule_memory(call, dims.count, sizeof *at);
    for (int64_t i = 0; i < dims.count && at != NULL; i++) {
        at[i] = dims.at[i] < 0 ? dims.at[i] + ndim : dims.at[i];
        if (at[i] < 0 || at[i] >= ndim || (seen >> at[i] & 1) != 0) {
            rule_fail(call, TN_ERR_INDEX,
                      "%s: out of range or repeated, got %lld; expected %lld to %lld", name,
                      (long long)dims.at[i], (long long)-ndim, (long long)ndim - 1);
            return tn_no_ints();
        }
        seen |= UINT64_C(1) << at[i];
    }
    return (tn_ints){ at, dims.count };
}

tn_tensor *onnx_number(double value, tn_tensor *like)
{
    return tn_full(like, TN_SCALAR_SHAPE, tn_scalar_float(value), tn_tensor_dtype(like));
}

bool onnx_is(tn_rule_call *call, const char *name, const char *word)
{
    const char *text = rule_text(call, name);

    return text != NULL && strcmp(text, word) == 0;
}

bool onnx_check_size(tn_rule_call *call, tn_ints shape)
{
    int64_t count = 1;

    for (int64_t i = 0; i < shape.count; i++)
        if (shape.at[i] < 0 || __builtin_mul_overflow(count, shape.at[i], &count) ||
            count > (INT64_C(1) << 32)) {
            rule_fail(call, TN_ERR_REFUSED,
                      "shape: negative, or more than 2^32 elements; expected a smaller tensor");
            return false;
        }
    return true;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static tn_ints shape_of(tn_rule_call *call, const char *name, int64_t *list)
{
    const tn_value *value = rule_value(call, name);

    list[0] = value->count;
    if (onnx_is_host(call, name))
        return (tn_ints){ list, value->kind == TN_VALUE_LIST ? 1 : 0 };
    return call->status == TN_OK && rule_tensor(call, name) != NULL
               ? tn_tensor_shape(rule_tensor(call, name))
               : tn_no_ints();
}

static tn_status shape(tn_rule_call *call)
{
    int64_t list, start = rule_int(call, "start"), end;
    tn_ints all = shape_of(call, "data", &list);

    end = rule_has(call, "end") ? rule_int(call, "end") : all.count;
    start += start < 0 ? all.count : 0;
    end += end < 0 ? all.count : 0;
    start = start < 0 ? 0 : start > all.count ? all.count : start;
    end = end < start ? start : end > all.count ? all.count : end;
    return call->status == TN_OK ? onnx_give_host(call, all.at + start, end - start) : call->status;
}

static tn_status size(tn_rule_call *call)
{
    int64_t list, count = 1;
    tn_ints all = shape_of(call, "data", &list);

    for (int64_t i = 0; i < all.count; i++)
        count *= all.at[i];
    return call->status == TN_OK ? onnx_give_host(call, &count, -1) : call->status;
}

/* ---- other shapes ---------------------------------------------------------------------------- */

static tn_status give_reshaped(tn_rule_call *call, tn_tensor *x, tn_ints wanted, bool allow_zero)
{
    int64_t sizes[TN_MAX_DIMS];
    tn_ints old;

    if (call->status != TN_OK)
        return call->status;
    old = tn_tensor_shape(x);
    if (wanted.count > TN_MAX_DIMS || wanted.count < 0)
        return rule_fail(call, TN_ERR_VALUE, "shape: wrong, got %lld sizes; expected at most %d",
                         (long long)wanted.count, TN_MAX_DIMS);
    for (int64_t i = 0; i < wanted.count; i++) {
        sizes[i] = wanted.at[i];
        if (sizes[i] != 0 || allow_zero)
            continue;
        if (i >= old.count)
            return rule_fail(call, TN_ERR_VALUE, "shape: size %lld is 0; expected a size of data",
                             (long long)i);
        sizes[i] = old.at[i];
    }
    return rule_give(call, tn_reshape(x, (tn_ints){ sizes, wanted.count }));
}

static tn_status reshape(tn_rule_call *call)
{
    tn_ints wanted = rule_ints(call, "shape");

    if (onnx_is_host(call, "data") && wanted.count <= 1 && call->status == TN_OK) {
        const tn_value *value = rule_value(call, "data");
        tn_ints data = rule_ints(call, "data");

        if (wanted.count == 0 && data.count == 1)
            return onnx_give_host(call, data.at, -1);
        if (wanted.count == 1 && value->kind == TN_VALUE_LIST &&
            (wanted.at[0] == -1 || wanted.at[0] == data.count))
            return rule_give_value(call, *value);
        if (wanted.count == 1 && value->kind == TN_VALUE_INT &&
            (wanted.at[0] == -1 || wanted.at[0] == 1))
            return onnx_give_host(call, data.at, 1);
    }
    return give_reshaped(call, rule_tensor(call, "data"), wanted, rule_int(call, "allowzero") != 0);
}

static tn_status flatten(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    int64_t axis = rule_int(call, "axis"), rows = 1, columns = 1;
    tn_ints sizes;

    if (call->status != TN_OK)
        return call->status;
    sizes = tn_tensor_shape(x);
    axis += axis < 0 ? sizes.count : 0;
    for (int64_t i = 0; i < sizes.count; i++)
        *(i < axis ? &rows : &columns) *= sizes.at[i];
    return rule_give(call, tn_reshape(x, TN_SHAPE(rows, columns)));
}

static tn_status transpose(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "data");
    int64_t reversed[TN_MAX_DIMS], n;
    tn_ints perm = rule_ints(call, "perm");

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(x);
    for (int64_t i = 0; i < n; i++)
        reversed[i] = n - 1 - i;
    return rule_give(call, tn_permute(x, perm.count < 0 ? (tn_ints){ reversed, n } : perm));
}

static tn_status squeeze(tn_rule_call *call)
{
    tn_ints axes = rule_ints(call, "axes");
    tn_tensor *x;

    if (onnx_is_host(call, "data") && rule_value(call, "data")->kind == TN_VALUE_LIST) {
        tn_ints data = rule_ints(call, "data");

        if (data.count == 1 && call->status == TN_OK)
            return onnx_give_host(call, data.at, -1);
    }
    x = rule_tensor(call, "data");
    if (call->status != TN_OK)
        return call->status;
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.at[i] + (axes.at[i] < 0 ? tn_tensor_ndim(x) : 0);

        if (axis < 0 || axis >= tn_tensor_ndim(x) || tn_tensor_size(x, axis) != 1)
            return rule_fail(call, TN_ERR_VALUE,
                             "axes: wrong, got %lld; expected a dimension of size 1",
                             (long long)axes.at[i]);
    }
    return rule_give(call, axes.count < 0 ? tn_squeeze(x) : tn_squeeze(x, axes));
}

static tn_status unsqueeze(tn_rule_call *call)
{
    tn_ints axes = rule_ints(call, "axes"), old;
    int64_t sizes[TN_MAX_DIMS], n, from = 0;
    uint64_t added = 0;
    tn_tensor *x;

    if (rule_value(call, "data")->kind == TN_VALUE_INT && axes.count == 1 &&
        (axes.at[0] == 0 || axes.at[0] == -1))
        return onnx_give_host(call, &rule_value(call, "data")->as.i, 1);
    x = rule_tensor(call, "data");
    if (call->status != TN_OK)
        return call->status;
    old = tn_tensor_shape(x);
    n = old.count + axes.count;
    if (axes.count < 0 || n > TN_MAX_DIMS)
        return rule_fail(call, TN_ERR_VALUE, "axes: wrong number, got %lld; expected 0 to %lld",
                         (long long)axes.count, (long long)(TN_MAX_DIMS - old.count));
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.at[i] + (axes.at[i] < 0 ? n : 0);

        if (axis < 0 || axis >= n || (added >> axis & 1) != 0)
            return rule_fail(call, TN_ERR_INDEX,
                             "axes: out of range or repeated, got %lld; expected %lld to %lld",
                             (long long)axes.at[i], (long long)-n, (long long)n - 1);
        added |= UINT64_C(1) << axis;
    }
    for (int64_t i = 0; i < n; i++)
        sizes[i] = (added >> i & 1) != 0 ? 1 : old.at[from++];
    return rule_give(call, tn_reshape(x, (tn_ints){ sizes, n }));
}

/* Sizes of 1 on either side broadcast. */
static tn_status expand(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    tn_ints wanted = rule_ints(call, "shape"), old;
    int64_t sizes[TN_MAX_DIMS], n;

    if (call->status != TN_OK)
        return call->status;
    old = tn_tensor_shape(x);
    n = wanted.count > old.count ? wanted.count : old.count;
    if (n > TN_MAX_DIMS)
        return rule_fail(call, TN_ERR_VALUE, "shape: too many sizes, got %lld; expected at most %d",
                         (long long)n, TN_MAX_DIMS);
    for (int64_t i = 0; i < n; i++) {
        int64_t a = i - (n - old.count), b = i - (n - wanted.count);

        sizes[i] = b < 0 ? old.at[a] : wanted.at[b];
        if (a >= 0 && sizes[i] == 1)
            sizes[i] = old.at[a];
    }
    if (!onnx_check_size(call, (tn_ints){ sizes, n }))
        return call->status;
    return rule_give(call, tn_expand(x, (tn_ints){ sizes, n }));
}

static tn_status tile(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    tn_ints times = rule_ints(call, "repeats"), old;
    int64_t sizes[TN_MAX_DIMS];

    if (call->status != TN_OK)
        return call->status;
    old = tn_tensor_shape(x);
    if (times.count != old.count)
        return rule_fail(call, TN_ERR_VALUE, "repeats: %lld numbers; expected %lld",
                         (long long)times.count, (long long)old.count);
    for (int64_t i = 0; i < old.count; i++)
        if (__builtin_mul_overflow(old.at[i], times.at[i], &sizes[i]))
            return rule_fail(call, TN_ERR_REFUSED,
                             "repeats: too large, got %lld; expected less than 2^32 elements",
                             (long long)times.at[i]);
    return onnx_check_size(call, (tn_ints){ sizes, old.count })
               ? rule_give(call, tn_repeat(x, times))
               : call->status;
}

/* Before version 6: how often, and along which dimension. */
static tn_status tile_once(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    int64_t count = rule_int(call, "tiles"), times[TN_MAX_DIMS];
    int64_t dim = rule_dim(call, "axis", x);

    for (int i = 0; i < TN_MAX_DIMS; i++)
        times[i] = 1;
    times[dim] = count;
    return call->status == TN_OK
               ? rule_give(call, tn_repeat(x, (tn_ints){ times, tn_tensor_ndim(x) }))
               : call->status;
}

static tn_status identity(tn_rule_call *call)
{
    return rule_give_value(call, *rule_value(call, "input"));
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* Before a cast to 8 bits: numbers beyond the greatest one become it, else infinite, or NaN where
 * there are no infinities, for which Tenon's cast saturates. */
static tn_tensor *in_range(tn_tensor *x, tn_dtype dtype, bool saturate)
{
    double most = dtype == TN_F8_E4M3 ? 448 : 57344;
    tn_tensor *y = rule_cast(x, TN_F32);

    if (y == NULL)
        return NULL;
    if (saturate)
        return tn_clamp(y, tn_scalar_float(-most), tn_scalar_float(most));
    if (dtype == TN_F8_E5M2)
        return y;
    return tn_where(tn_gt(tn_abs(y), onnx_number(464, y)), onnx_number(NAN, y), y);
}

/* Floating-point numbers are rounded towards zero. */
static tn_status cast_to(tn_rule_call *call, tn_dtype dtype)
{
    tn_tensor *x;

    if (dtype == TN_I64 && onnx_is_host(call, "input"))
        return identity(call);
    x = rule_tensor(call, "input");
    if (call->status != TN_OK)
        return call->status;
    if (dtype == TN_BOOL)
        return rule_give(call, tn_ne(x, onnx_number(0, x)));
    if (dtype == TN_F8_E4M3 || dtype == TN_F8_E5M2)
        return rule_give(call, tn_cast(in_range(x, dtype, rule_int(call, "saturate") != 0), dtype));
    return rule_give(call, rule_cast(x, dtype));
}

static tn_status cast(tn_rule_call *call)
{
    tn_dtype dtype = onnx_rule_dtype(call, "to");

    return call->status == TN_OK ? cast_to(call, dtype) : call->status;
}

static tn_status cast_like(tn_rule_call *call)
{
    tn_tensor *like = rule_tensor(call, "target_type");

    return call->status == TN_OK ? cast_to(call, tn_tensor_dtype(like)) : call->status;
}

/* The same bytes as another dtype of the same size. */
static tn_status bit_cast(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    tn_dtype dtype = onnx_rule_dtype(call, "to");
    unsigned char *bytes;
    size_t size;

    if (call->status != TN_OK)
        return call->status;
    size = tn_dtype_size(dtype);
    if (size != tn_dtype_size(tn_tensor_dtype(x)) || dtype == TN_BOOL)
        return rule_fail(call, TN_ERR_TYPE, "to: wrong, got %s; expected numbers of %d bytes",
                         tn_dtype_name(dtype), (int)tn_dtype_size(tn_tensor_dtype(x)));
    bytes = rule_memory(call, tn_tensor_numel(x) + 1, size);
    if (bytes == NULL)
        return call->status;
    if (tn_tensor_copy_out(x, bytes, (size_t)tn_tensor_numel(x) * size) != TN_OK)
        return rule_give(call, NULL);
    return rule_give(call, tn_tensor_from(bytes, dtype, tn_tensor_shape(x)));
}

/* ---- new tensors ----------------------------------------------------------------------------- */

static tn_status constant_of_shape(tn_rule_call *call)
{
    tn_ints sizes = rule_ints(call, "input");
    tn_tensor *value;

    if (call->status != TN_OK || !onnx_check_size(call, sizes))
        return call->status;
    if (sizes.count == 1 && sizes.at[0] <= HOST_MOST && onnx_is_host(call, "value") &&
        rule_ints(call, "value").count == 1) {
        int64_t *numbers = rule_memory(call, sizes.at[0], sizeof *numbers);

        for (int64_t i = 0; i < sizes.at[0] && numbers != NULL; i++)
            numbers[i] = rule_ints(call, "value").at[0];
        return numbers != NULL ? onnx_give_host(call, numbers, sizes.at[0]) : call->status;
    }
    if (!rule_has(call, "value"))
        return rule_give(call, tn_full(TN_NONE, sizes, tn_scalar_float(0.0), TN_F32));
    value = rule_tensor(call, "value");
    if (call->status != TN_OK)
        return call->status;
    if (sizes.count == 0)
        return rule_give(call, tn_reshape(value, TN_SCALAR_SHAPE));
    return rule_give(call, tn_expand(tn_reshape(value, TN_SCALAR_SHAPE), sizes));
}

static tn_status range(tn_rule_call *call)
{
    tn_scalar start = rule_scalar(call, "start"), limit = rule_scalar(call, "limit");
    tn_scalar delta = rule_scalar(call, "delta");
    tn_tensor *like = rule_tensor(call, "start");
    double steps;

    if (call->status != TN_OK)
        return call->status;
    steps = start.kind == TN_SCALAR_FLOAT ? (limit.as.f - start.as.f) / delta.as.f
            : delta.as.i == 0             ? 1e99
                              : ((double)limit.as.i - (double)start.as.i) / (double)delta.as.i;
    if (!(steps < 4294967296.0))
        return rule_fail(call, TN_ERR_REFUSED, "limit: more than 2^32 numbers");
    if (steps <= 0)
        return rule_give(call, tn_full(like, TN_SHAPE(0), tn_scalar_int(0), tn_tensor_dtype(like)));
    return rule_give(call, tn_arange(like, start, limit, delta, tn_tensor_dtype(like)));
}

static tn_status eye_like(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *row, *column;
    tn_dtype dtype = onnx_rule_dtype(call, "dtype");
    int64_t k = rule_int(call, "k");

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(x) != 2)
        return rule_fail(call, TN_ERR_VALUE, "input: %d dimensions; expected 2",
                         (int)tn_tensor_ndim(x));
    row = tn_add_scalar(tn_arange(x, tn_scalar_int(0), tn_scalar_int(tn_tensor_size(x, 0)),
                                  tn_scalar_int(1), TN_I64),
                        tn_scalar_int(k));
    column = tn_arange(x, tn_scalar_int(0), tn_scalar_int(tn_tensor_size(x, 1)), tn_scalar_int(1),
                       TN_I64);
    return rule_give(call, tn_cast(tn_eq(tn_unsqueeze(row, 1), column),
                                   dtype == TN_DTYPE_AUTO ? tn_tensor_dtype(x) : dtype));
}

const tn_rule_def onnx_rules_shapes[] = {
    { "Shape(data, start=0, end=None)", .call = shape, .host = TN_RULE_HOST_ALWAYS },
    { "Size(data)", .call = size, .host = TN_RULE_HOST_ALWAYS },
    { "Reshape(data, shape, allowzero=0)", .call = reshape, .host = TN_RULE_HOST_KEEPS },
    { "Flatten(input, axis=1)", .call = flatten },
    { "Transpose(data, perm=None)", .call = transpose },
    { "Squeeze(data, axes=None)", .call = squeeze, .host = TN_RULE_HOST_KEEPS },
    { "Unsqueeze(data, axes)", .call = unsqueeze, .host = TN_RULE_HOST_KEEPS },
    { "Expand(input, shape)", .call = expand },
    { "Tile(input, tiles, axis)", .call = tile_once, .since = 1 },
    { "Tile(input, repeats)", .call = tile, .since = 6 },
    { "Identity(input)", .call = identity, .host = TN_RULE_HOST_KEEPS },
    { "Cast(input, to, saturate=1, round_mode=*)", .call = cast, .since = 6,
      .host = TN_RULE_HOST_KEEPS },
    { "CastLike(input, target_type, saturate=1, round_mode=*)", .call = cast_like },
    { "BitCast(input, to)", .call = bit_cast },
    { "ConstantOfShape(input, value=None)", .call = constant_of_shape, .host = TN_RULE_HOST_KEEPS },
    { "Range(start, limit, delta, stash_type=*)", .call = range },
    { "EyeLike(input, dtype=None, k=0)", .call = eye_like },
    { .function = NULL },
};
