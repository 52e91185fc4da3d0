/* SPDX-License-Identifier: MIT
 *
 * What quantized layers have in common: buffers, the scale of the input, states with floats. */
#include "modules.h"

#include <math.h>
#include <stdarg.h>

static const struct {
    const char *word;
    uint32_t value;
} activations[] = {
    { "none", QUANT_NONE },     { "block", QUANT_BLOCK },   { "row", QUANT_ROW },
    { "tensor", QUANT_TENSOR }, { "static", QUANT_STATIC },
};

uint32_t quant_activation(const tn_module *self, const char *word, uint32_t allowed)
{
    char known[96];
    int64_t used = 0;

    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if ((activations[i].value & allowed) == 0)
            continue;
        if (word != NULL && strcmp(activations[i].word, word) == 0)
            return activations[i].value;
        quant_put(known, sizeof known, &used, "%s%s", used > 0 ? ", " : "", activations[i].word);
    }
    tn_fail(TN_ERR_VALUE,
            "%s: activation: not possible with this weight, got %q; expected one of %s",
            tn_module_type(self), word != NULL ? word : "None", known);
    return 0;
}

void quant_put(char *out, size_t size, int64_t *used, const char *format, ...)
{
    bool room = out != NULL && (size_t)*used < size;
    va_list args;

    va_start(args, format);
    *used += tn_snprintv(room ? out + *used : NULL, room ? size - (size_t)*used : 0, format, args);
    va_end(args);
}

char *quant_joined(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 1;
    char *text = tn_malloc(size);

    if (text != NULL)
        tn_snprint(text, size, "%s%s", a, b);
    return text;
}

/* ---- building -------------------------------------------------------------------------------- */

tn_status quant_add_buffer(tn_module *self, const char *name, tn_dtype dtype, tn_ints shape,
                           double value, bool fixed)
{
    tn_tensor *tensor = tn_tensor_full(shape, TN_SCALAR(value), dtype, NULL);

    if (tensor == NULL)
        return tn_error_prefix("%s: %s: ", tn_module_type(self), name);
    return tn_module_add_buffer(self, name, tensor, fixed ? TN_SLOT_FLAG_FIXED_DTYPE : 0);
}

tn_status quant_add_scales(tn_module *self, bool bias, int64_t out, tn_ints scales,
                           uint32_t activation)
{
    tn_status status = bias ? quant_add_buffer(self, "bias", TN_DTYPE_AUTO, TN_SHAPE(out), 0, false)
                            : tn_module_add_buffer(self, "bias", TN_NONE, 0);

    if (status == TN_OK && scales.count > 0)
        status = quant_add_buffer(self, "weight_scale", TN_F32, scales, 1, true);
    if (status == TN_OK && activation == QUANT_STATIC)
        status = quant_add_buffer(self, "input_scale", TN_F32, tn_no_ints(), 1, true);
    if (status == TN_OK && activation == QUANT_STATIC)
        status = quant_add_buffer(self, "input_zero_point", TN_U8, tn_no_ints(), 0, true);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Returns whether a tensor has the dimensions of another one, but for the last. */
static bool has_rows_of(tn_tensor *tensor, tn_tensor *own)
{
    bool same = tn_tensor_ndim(tensor) == tn_tensor_ndim(own);

    for (int32_t d = 0; same && d + 1 < tn_tensor_ndim(own); d++)
        same = tn_tensor_size(tensor, d) == tn_tensor_size(own, d);
    return same;
}

/* Fails if the rows of a weight of floats do not become those of the module, which may have the
 * size of its bytes, or if the scales do not fit. `scale`: TN_NONE if there are none. */
static tn_status check_weight(tn_module *self, const quant_format *format, tn_tensor *weight,
                              const char *name, tn_tensor *scale, const char *scale_name)
{
    const int64_t bytes = tn_tensor_size(tn_module_get(self, "weight"), -1);
    const int64_t in = tn_tensor_size(weight, -1);
    const int64_t own = format->per_byte > 0 ? bytes * format->per_byte
                                             : bytes / format->bytes * format->block;
    int64_t scales;

    if (in != own)
        return tn_fail(TN_ERR_VALUE, "%s: %s: wrong size of rows, got %lld floats; expected %lld",
                       tn_module_type(self), name, (long long)in, (long long)own);
    if (scale == TN_NONE)
        return TN_OK;
    scales = tn_tensor_numel(tn_module_get(self, "weight_scale"));
    if (tn_tensor_numel(scale) != scales)
        return tn_fail(TN_ERR_VALUE, "%s: %s: wrong number of scales, got %lld; expected %lld",
                       tn_module_type(self), scale_name, (long long)tn_tensor_numel(scale),
                       (long long)scales);
    return TN_OK;
}

tn_status quant_check_numbers(const tn_module *self, const char *name, tn_tensor *x, bool scale)
{
    tn_tensor *plain = tn_cast(tn_detach(x), TN_F32);
    const int64_t count = plain != NULL ? tn_tensor_numel(plain) : 0;
    float *data;
    tn_status status = plain != NULL ? TN_OK : tn_error_last_code();

    if (status != TN_OK || count == 0 || !tn_device_has_memory(tn_tensor_device(plain)))
        return status;
    data = tn_malloc((size_t)count * sizeof *data);
    status = data != NULL ? tn_tensor_copy_out(plain, data, (size_t)count * sizeof *data)
                          : TN_ERR_MEMORY;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        if (!isfinite(data[i]) || (scale && data[i] <= 0))
            status = tn_fail(TN_ERR_VALUE,
                             "%s: %s: wrong number, got %g at element %lld; expected %s",
                             tn_module_type(self), name, (double)data[i], (long long)i,
                             scale ? "scales, which are positive and finite" : "finite numbers");
    tn_free(data);
    return status;
}

tn_status quant_check_scale(tn_module *self, tn_loading *loading, const char *name)
{
    char *key;
    int64_t at;
    tn_status status = TN_OK;

    if (tn_module_slot_kind(self, name) != TN_SLOT_BUFFER)
        return TN_OK; /* reading the entry would make it an expected one */
    key = quant_joined(loading->prefix, name);
    if (key == NULL)
        return TN_ERR_MEMORY;
    at = tn_state_find(loading->state, key);
    if (at >= 0 && tn_state_value(loading->state, at).kind == TN_VALUE_TENSOR)
        status = quant_check_numbers(self, key, tn_state_tensor(loading->state, at), true);
    tn_free(key);
    return status;
}

/* Fails if a weight of integers is not that of the format: as other integers, the same bytes mean
 * other numbers. */
static tn_status check_integers(const tn_module *self, const quant_format *format,
                                tn_tensor *weight, tn_tensor *own, const char *name)
{
    if (tn_tensor_dtype(weight) == tn_tensor_dtype(own))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: %s: wrong dtype, got %s; expected %s, as %s is stored, or floats",
                   tn_module_type(self), name, tn_dtype_name(tn_tensor_dtype(weight)),
                   tn_dtype_name(tn_tensor_dtype(own)), format->name);
}

/* Replaces the weight at index `at` of a state by integers, and its scales at `scale_name`. */
static tn_status replace_weight(tn_module *self, tn_state *state, int64_t at,
                                const char *scale_name, const quant_format *format, int64_t group)
{
    tn_tensor *weight = tn_state_tensor(state, at), *own = tn_module_get(self, "weight");
    tn_tensor *integers, *scale = TN_NONE;
    int64_t given = tn_state_find(state, scale_name);
    tn_status status;

    if (weight == NULL || own == NULL)
        return tn_error_last_code();
    if ((TN_BIT(tn_tensor_dtype(weight)) & TN_MASK_FLOAT) == 0)
        return check_integers(self, format, weight, own, tn_state_name(state, at));
    if (!has_rows_of(weight, own) ||
        (format->per_byte == 1 && tn_tensor_size(weight, -1) != tn_tensor_size(own, -1)))
        return TN_OK; /* the load reports what does not fit */
    if (given >= 0 && format->scales)
        scale = tn_state_tensor(state, given);
    if (scale == NULL)
        return tn_error_last_code();
    status = check_weight(self, format, weight, tn_state_name(state, at), scale, scale_name);
    if (status == TN_OK)
        status = quant_check_numbers(self, tn_state_name(state, at), weight, false);
    if (status == TN_OK)
        status = quant_weight(format, group, weight, &integers, &scale);
    if (status == TN_OK)
        status = tn_state_set(state, tn_state_name(state, at), integers);
    return status == TN_OK && scale != TN_NONE ? tn_state_set(state, scale_name, scale) : status;
}

tn_status quant_load(tn_module *self, tn_loading *loading, const quant_format *format,
                     int64_t group)
{
    TN_SCOPE;
    char *name = quant_joined(loading->prefix, "weight");
    char *scale_name = quant_joined(loading->prefix, "weight_scale");
    int64_t at = name != NULL ? tn_state_find(loading->state, name) : -1;
    tn_status status = name != NULL && scale_name != NULL ? tn_grad_begin(false) : TN_ERR_MEMORY;

    if (status == TN_OK) {
        status = quant_check_scale(self, loading, "weight_scale");
        if (status == TN_OK)
            status = quant_check_scale(self, loading, "input_scale");
        if (status == TN_OK && at >= 0)
            status = replace_weight(self, loading->state, at, scale_name, format, group);
        tn_grad_end();
    }
    tn_free(name);
    tn_free(scale_name);
    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

/* ---- the input ------------------------------------------------------------------------------- */

tn_status quant_without_gradient(const tn_module *self, tn_tensor *x)
{
    if (!tn_module_is_training(self) || !tn_grad_enabled() || !tn_tensor_requires_grad(x))
        return TN_OK;
    return tn_fail(
        TN_ERR_NOT_IMPLEMENTED,
        "%s: input: requires a gradient, which integers do not have; expected evaluation "
        "mode (tn_module_train(net, false)): train the float network, with the scheme "
        "int8_qat and its operator fake_quantize, and convert it afterwards",
        tn_module_type(self));
}

tn_status quant_take_input(tn_module *self, tn_tensor *x, uint32_t activation, const tn_ints *row,
                           quant_input *out)
{
    tn_status status = TN_OK;

    if (activation == QUANT_ROW && row == NULL)
        return tn_quantize_rows(x, &out->integers, &out->scale, &out->zero_point);
    if (activation == QUANT_STATIC) {
        out->scale = tn_module_get(self, "input_scale");
        out->zero_point = tn_module_get(self, "input_zero_point");
    } else if (activation == QUANT_ROW) {
        status = tn_choose_qparams(x, &out->scale, &out->zero_point, *row, true);
    } else {
        status = tn_choose_qparams(x, &out->scale, &out->zero_point);
    }
    if (status != TN_OK)
        return status;
    out->integers = tn_quantize(x, out->scale, out->zero_point);
    return out->integers != NULL ? TN_OK : tn_error_last_code();
}

tn_tensor *quant_bias(tn_module *self, tn_dtype dtype)
{
    tn_tensor *bias = tn_module_get(self, "bias");

    return bias == NULL || bias == TN_NONE ? bias : tn_cast(bias, dtype);
}
