/* SPDX-License-Identifier: MIT
 *
 * Rules that cut tensors, put them together, or move their elements. */
#include "onnx/onnx_rules.h"

#include <string.h>

/* ---- together -------------------------------------------------------------------------------- */

enum { HOST_MOST = 1 << 20 }; /* numbers of a list of the host, which nodes can double */

/* Integers of the host as one list. */
static tn_status concat_host(tn_rule_call *call)
{
    const tn_value *inputs = rule_value(call, "inputs");
    int64_t count = 0, n = 0, *numbers;

    for (uint32_t i = 0; i < inputs->count; i++)
        count += inputs->as.list[i].count;
    if (count > HOST_MOST)
        return rule_fail(call, TN_ERR_REFUSED, "inputs: %lld integers; expected at most %d",
                         (long long)count, HOST_MOST);
    numbers = rule_memory(call, count, sizeof *numbers);
    for (uint32_t i = 0; i < inputs->count && numbers != NULL; i++)
        for (uint32_t k = 0; k < inputs->as.list[i].count; k++)
            numbers[n++] = inputs->as.list[i].as.list[k].as.i;
    return numbers != NULL ? onnx_give_host(call, numbers, n) : call->status;
}

static bool all_host(const tn_value *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        const tn_value *item = &inputs->as.list[i];

        if (item->kind != TN_VALUE_LIST)
            return false;
        for (uint32_t k = 0; k < item->count; k++)
            if (item->as.list[k].kind != TN_VALUE_INT)
                return false;
    }
    return true;
}

static tn_status concat(tn_rule_call *call)
{
    int64_t count, axis = rule_int(call, "axis");
    tn_tensor **in;

    if (all_host(rule_value(call, "inputs")) && (axis == 0 || axis == -1))
        return concat_host(call);
    in = rule_tensors(call, "inputs", &count);
    return call->status == TN_OK ? rule_give(call, tn_cat(in, count, axis)) : call->status;
}

/* ---- apart ----------------------------------------------------------------------------------- */

static tn_status split_by(tn_rule_call *call, tn_tensor *x, int64_t dim, const int64_t *sizes,
                          int64_t count)
{
    int64_t at = 0;

    for (int64_t i = 0; i < count && call->status == TN_OK; i++) {
        if (sizes[i] < 0 || sizes[i] > tn_tensor_size(x, dim) - at)
            return rule_fail(call, TN_ERR_VALUE, "split: part %lld has %lld elements of %lld left",
                             (long long)i, (long long)sizes[i],
                             (long long)(tn_tensor_size(x, dim) - at));
        rule_give(call, tn_narrow(x, dim, at, sizes[i]));
        at += sizes[i];
    }
    return call->status;
}

/* Without sizes as many parts as the node has outputs, the last of which may be smaller. */
static tn_status split(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    int64_t dim = rule_axis(call, "axis", x), parts, whole, *sizes;
    tn_ints given = rule_ints(call, "split");

    if (call->status != TN_OK)
        return call->status;
    if (given.count >= 0)
        return split_by(call, x, dim, given.at, given.count);
    parts = rule_has(call, "num_outputs") ? rule_int(call, "num_outputs") : call->n_outputs;
    whole = tn_tensor_size(x, dim);
    if (parts < 1 || parts > 100000)
        return rule_fail(call, TN_ERR_VALUE,
                         "num_outputs: out of range, got %lld; expected 1 to 100000",
                         (long long)parts);
    sizes = rule_memory(call, parts, sizeof *sizes);
    for (int64_t i = 0, each = (whole + parts - 1) / parts; i < parts && sizes != NULL; i++) {
        sizes[i] = each < whole ? each : whole;
        whole -= sizes[i];
    }
    return sizes != NULL ? split_by(call, x, dim, sizes, parts) : call->status;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* One dimension; negative steps begin at the end. */
static tn_tensor *slice_dim(tn_tensor *x, int64_t dim, int64_t start, int64_t end, int64_t step)
{
    int64_t n = tn_tensor_size(x, dim), flipped[1] = { dim };

    if (step > 0) {
        start = clamp(start < 0 ? start + n : start, 0, n);
        end = clamp(end < 0 ? end + n : end, 0, n);
        return tn_slice(x, dim, start, end < start ? start : end, step);
    }
    start = clamp(start < 0 ? start + n : start, -1, n - 1);
    end = clamp(end < 0 ? (end < -n ? -1 : end + n) : end, -1, n - 1);
    if (start < end)
        start = end;
    /* Element i of x is n - 1 - i of the flipped tensor. */
    return tn_slice(tn_flip(x, (tn_ints){ flipped, 1 }), dim, n - 1 - start, n - 1 - end, -step);
}

static tn_status slice_host(tn_rule_call *call, tn_ints data, int64_t start, int64_t end,
                            int64_t step)
{
    int64_t n = data.count, count = 0, *out = rule_memory(call, n, sizeof *out);

    start = clamp(start < 0 ? start + n : start, step > 0 ? 0 : -1, step > 0 ? n : n - 1);
    end = clamp(end < 0 ? (end < -n ? -1 : end + n) : end, step > 0 ? 0 : -1, n);
    for (int64_t i = start; out != NULL && (step > 0 ? i < end : i > end); i += step)
        out[count++] = data.at[i];
    return out != NULL ? onnx_give_host(call, out, count) : call->status;
}

static tn_status slice(tn_rule_call *call)
{
    tn_ints starts = rule_ints(call, "starts"), ends = rule_ints(call, "ends");
    tn_ints axes = rule_ints(call, "axes"), steps = rule_ints(call, "steps");
    tn_tensor *x;
    tn_ints dims;

    if (call->status == TN_OK &&
        (ends.count != starts.count || (axes.count >= 0 && axes.count != starts.count) ||
         (steps.count >= 0 && steps.count != starts.count)))
        return rule_fail(call, TN_ERR_VALUE, "ends: wrong count; expected as many as starts");
    for (int64_t i = 0; i < starts.count; i++)
        if (steps.count > 0 && (steps.at[i] == 0 || steps.at[i] == INT64_MIN))
            return rule_fail(call, TN_ERR_VALUE, "steps: got 0; expected another step");
    if (call->status == TN_OK && starts.count == 1 && onnx_is_host(call, "data") &&
        rule_value(call, "data")->kind == TN_VALUE_LIST &&
        (steps.count < 1 || (steps.at[0] > -100000 && steps.at[0] < 100000)))
        return slice_host(call, rule_ints(call, "data"), starts.at[0], ends.at[0],
                          steps.count > 0 ? steps.at[0] : 1);
    x = rule_tensor(call, "data");
    dims = onnx_rule_dims(call, "axes", x != NULL ? tn_tensor_ndim(x) : 0);
    if (call->status == TN_OK && dims.count < 0 && starts.count > tn_tensor_ndim(x))
        return rule_fail(call, TN_ERR_VALUE, "starts: too many; expected at most %d",
                         (int)tn_tensor_ndim(x));
    for (int64_t i = 0; i < starts.count && call->status == TN_OK && x != NULL; i++)
        x = slice_dim(x, dims.count >= 0 ? dims.at[i] : i, starts.at[i], ends.at[i],
                      steps.count > 0 ? steps.at[i] : 1);
    return rule_give(call, x);
}

/* ---- padding --------------------------------------------------------------------------------- */

/* From all beginnings, then all ends, to pairs from the last dimension on. */
static tn_status pad_by(tn_rule_call *call, tn_tensor *x, tn_ints pads, tn_ints axes,
                        tn_scalar value)
{
    const char *mode = rule_text(call, "mode");
    int64_t sizes[2 * TN_MAX_DIMS] = { 0 }, n, k;
    bool none = true;
    tn_ints all;

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(x);
    k = axes.count >= 0 ? axes.count : n;
    if (pads.count != 2 * k)
        return rule_fail(call, TN_ERR_VALUE, "pads: %lld numbers; expected %lld",
                         (long long)pads.count, (long long)(2 * k));
    for (int64_t i = 0; i < k; i++) {
        int64_t dim = axes.count >= 0 ? axes.at[i] : i;

        sizes[2 * (n - 1 - dim)] = pads.at[i];
        sizes[2 * (n - 1 - dim) + 1] = pads.at[k + i];
        none = none && pads.at[i] == 0 && pads.at[k + i] == 0;
    }
    if (none)
        return rule_give(call, x);
    while (n > 1 && sizes[2 * n - 1] == 0 && sizes[2 * n - 2] == 0)
        n--;
    if (strcmp(mode, "edge") == 0)
        mode = "replicate";
    else if (strcmp(mode, "wrap") == 0)
        mode = "circular";
    all = (tn_ints){ sizes, 2 * n };
    return rule_give(call, strcmp(mode, "constant") == 0 ? tn_pad(x, all, mode, value)
                                                         : tn_pad(x, all, mode));
}

static tn_status pad(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "data");
    tn_ints pads = rule_ints(call, "pads");
    tn_ints axes = onnx_rule_dims(call, "axes", x != NULL ? tn_tensor_ndim(x) : 0);
    tn_scalar value = rule_has(call, "constant_value") ? rule_scalar(call, "constant_value")
                                                       : tn_scalar_int(0);

    return pad_by(call, x, pads, axes, value);
}

static tn_status pad_attributes(tn_rule_call *call)
{
    return pad_by(call, rule_tensor(call, "data"), rule_ints(call, "pads"), tn_none_ints(),
                  tn_scalar_float(rule_float(call, "value")));
}

/* ---- blocks of images ------------------------------------------------------------------------ */

enum { BLOCK_MOST = 1 << 15 }; /* so that the square of a block's size fits */

/* Moves between channels and places: x as [N, parts..., H, W] with the dimensions in this order. */
static tn_status depth_to_space(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    int64_t b = rule_int(call, "blocksize"), n, c, h, w;
    bool columns = onnx_is(call, "mode", "CRD");

    if (call->status != TN_OK)
        return call->status;
    if (b < 1 || b > BLOCK_MOST)
        return rule_fail(call, TN_ERR_VALUE, "blocksize: out of range, got %lld; expected 1 to %d",
                         (long long)b, BLOCK_MOST);
    if (tn_tensor_ndim(x) != 4 || tn_tensor_size(x, 1) % (b * b) != 0)
        return rule_fail(call, TN_ERR_VALUE, "input: expected [N, C, H, W], C divisible by %lld",
                         (long long)(b * b));
    n = tn_tensor_size(x, 0), c = tn_tensor_size(x, 1) / (b * b);
    h = tn_tensor_size(x, 2), w = tn_tensor_size(x, 3);
    x = columns ? tn_permute(tn_reshape(x, TN_SHAPE(n, c, b, b, h, w)), TN_INTS(0, 1, 4, 2, 5, 3))
                : tn_permute(tn_reshape(x, TN_SHAPE(n, b, b, c, h, w)), TN_INTS(0, 3, 4, 1, 5, 2));
    return rule_give(call, tn_reshape(x, TN_SHAPE(n, c, h * b, w * b)));
}

static tn_status space_to_depth(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    int64_t b = rule_int(call, "blocksize"), n, c, h, w;

    if (call->status != TN_OK)
        return call->status;
    if (b < 1 || b > BLOCK_MOST)
        return rule_fail(call, TN_ERR_VALUE, "blocksize: out of range, got %lld; expected 1 to %d",
                         (long long)b, BLOCK_MOST);
    if (tn_tensor_ndim(x) != 4 || tn_tensor_size(x, 2) % b != 0 || tn_tensor_size(x, 3) % b != 0)
        return rule_fail(call, TN_ERR_VALUE,
                         "input: expected [N, C, H, W], H and W divisible by %lld", (long long)b);
    n = tn_tensor_size(x, 0), c = tn_tensor_size(x, 1);
    h = tn_tensor_size(x, 2) / b, w = tn_tensor_size(x, 3) / b;
    x = tn_reshape(x, TN_SHAPE(n, c, h, b, w, b));
    x = onnx_is(call, "mode", "CRD") ? tn_permute(x, TN_INTS(0, 1, 3, 5, 2, 4))
                                     : tn_permute(x, TN_INTS(0, 3, 5, 1, 2, 4));
    return rule_give(call, tn_reshape(x, TN_SHAPE(n, c * b * b, h, w)));
}

static tn_status trilu(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    int64_t k = rule_has(call, "k") ? rule_int(call, "k") : 0;

    return rule_give(call, rule_int(call, "upper") != 0 ? tn_triu(x, k) : tn_tril(x, k));
}

/* The first lengths[i] elements of row i in reverse order. */
static tn_status reverse_sequence(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    tn_ints lengths = rule_ints(call, "sequence_lens");
    int64_t time = rule_axis(call, "time_axis", x), batch = rule_axis(call, "batch_axis", x);
    tn_tensor **rows;
    int64_t n;

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_size(x, batch);
    if (lengths.count != n || time == batch || n == 0)
        return rule_fail(call, TN_ERR_VALUE, "sequence_lens: %lld; expected %lld",
                         (long long)lengths.count, (long long)n);
    rows = rule_memory(call, n, sizeof *rows);
    for (int64_t i = 0; i < n && rows != NULL; i++) {
        tn_tensor *row = tn_narrow(x, batch, i, 1), *pair[2];
        int64_t length = lengths.at[i], whole = tn_tensor_size(x, time);

        if (length < 0 || length > whole)
            return rule_fail(call, TN_ERR_VALUE,
                             "sequence_lens: out of range, got %lld; expected 0 to %lld",
                             (long long)length, (long long)whole);
        pair[0] = tn_flip(tn_narrow(row, time, 0, length), TN_INTS(time));
        pair[1] = tn_narrow(row, time, length, whole - length);
        rows[i] = tn_cat(pair, 2, time);
        if (rows[i] == NULL)
            return rule_give(call, NULL);
    }
    return rows != NULL ? rule_give(call, tn_cat(rows, n, batch)) : call->status;
}

const tn_rule_def onnx_rules_parts[] = {
    { "Concat(*inputs, axis=1)", .call = concat, .host = TN_RULE_HOST_KEEPS },
    { "Split(input, split=None, axis=0, num_outputs=None)", .call = split },
    { "Slice(data, starts, ends, axes=None, steps=None)", .call = slice,
      .host = TN_RULE_HOST_KEEPS },
    { "Pad(data, pads, mode='constant', value=0.0)", .call = pad_attributes, .since = 2 },
    { "Pad(data, pads, constant_value=None, axes=None, mode='constant')", .call = pad,
      .since = 11 },
    { "DepthToSpace(input, blocksize, mode='DCR')", .call = depth_to_space },
    { "SpaceToDepth(input, blocksize, mode='DCR')", .call = space_to_depth },
    { "Trilu(input, k=None, upper=1)", .call = trilu },
    { "ReverseSequence(input, sequence_lens, time_axis=0, batch_axis=1)",
      .call = reverse_sequence },
    { .function = NULL },
};
