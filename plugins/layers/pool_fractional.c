/* SPDX-License-Identifier: MIT
 *
 * Max pooling with windows at random positions, which are drawn in every call. */
#include "helpers.h"

enum { MOST = 3 };

struct fractional {
    tn_ints kernel_size;
    tn_ints output_size;
    tn_floats output_ratio;
    bool return_indices;
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct fractional, kernel_size, NULL, "size of a window", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct fractional, output_size, "None", "size of the result", TN_OPTION_KIND_INTS,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct fractional, output_ratio, "None",
                  "size of the result as a fraction of the input's, instead of output_size",
                  TN_OPTION_KIND_FLOATS, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct fractional, return_indices, "False",
                  "also returns the indices of the maxima", TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    int64_t dims = layers_dims(self);
    const struct fractional *s = tn_module_data(self);
    const char *type = tn_module_type(self);
    bool sized = s->output_size.count > 0, part = s->output_ratio.count > 0;
    const int64_t counts[] = { s->kernel_size.count, sized ? s->output_size.count : 1,
                               part ? s->output_ratio.count : 1 };
    static const char *const names[] = { "kernel_size", "output_size", "output_ratio" };

    if (sized == part)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: output_size or output_ratio: wrong number, got %s; expected one of them", type,
            sized ? "both" : "none");
    if (s->output_size.count == 0 || s->output_ratio.count == 0)
        return tn_fail(TN_ERR_VALUE, "%s: %s: empty; expected 1 or %lld numbers", type,
                       s->output_size.count == 0 ? "output_size" : "output_ratio", (long long)dims);
    for (int i = 0; i < 3; i++)
        if (counts[i] != 1 && counts[i] != dims)
            return tn_fail(TN_ERR_VALUE,
                           "%s: %s: wrong count, got %lld; expected 1 or %lld numbers", type,
                           names[i], (long long)counts[i], (long long)dims);
    for (int64_t i = 0; i < s->kernel_size.count; i++)
        if (s->kernel_size.at[i] < 1)
            return tn_fail(TN_ERR_VALUE,
                           "%s: kernel_size: out of range, got %lld; expected 1 or more", type,
                           (long long)s->kernel_size.at[i]);
    for (int64_t i = 0; i < s->output_size.count; i++)
        if (s->output_size.at[i] < 1)
            return tn_fail(TN_ERR_VALUE,
                           "%s: output_size: out of range, got %lld; expected 1 or more", type,
                           (long long)s->output_size.at[i]);
    for (int64_t i = 0; i < s->output_ratio.count; i++)
        if (!(s->output_ratio.at[i] > 0 && s->output_ratio.at[i] < 1))
            return tn_fail(
                TN_ERR_VALUE,
                /* PyTorch's wording */ "%s: output_ratio must be between 0 and 1, but got %g",
                type, s->output_ratio.at[i]);
    return TN_OK;
}

static tn_status call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    int64_t dims = layers_dims(self);
    const struct fractional *s = tn_module_data(self);
    int64_t kernel[MOST], size[MOST], drawn[3], ndim, before;
    tn_tensor *x, *samples, *y = NULL, *places = NULL;
    tn_status status;

    if (tn_pack_count(input) != 1)
        return tn_fail(TN_ERR_TYPE, "%s: inputs: wrong number, got %lld; expected 1",
                       tn_module_type(self), (long long)tn_pack_count(input));
    x = tn_pack_tensor(input, 0);
    if (x == NULL)
        return tn_error_last_code();
    ndim = tn_tensor_ndim(x);
    before = ndim - dims;
    if (before != 1 && before != 2)
        return tn_fail(TN_ERR_VALUE, "%s: expected %lldD or %lldD input (got %lldD input)",
                       tn_module_type(self), (long long)dims + 1, (long long)dims + 2,
                       (long long)ndim);
    for (int64_t d = 0; d < dims; d++) {
        int64_t whole = tn_tensor_size(x, (int32_t)(before + d));

        kernel[d] = s->kernel_size.at[s->kernel_size.count == 1 ? 0 : d];
        size[d] = s->output_ratio.count > 0
                      ? (int64_t)((double)whole *
                                  s->output_ratio.at[s->output_ratio.count == 1 ? 0 : d])
                      : s->output_size.at[s->output_size.count == 1 ? 0 : d];
    }
    for (int64_t d = 0; d < before; d++)
        drawn[d] = tn_tensor_size(x, (int32_t)d);
    drawn[before] = dims;
    samples = tn_tensor_empty((tn_ints){ drawn, before + 1 }, tn_tensor_dtype(x),
                              tn_tensor_device(x));
    samples = tn_uniform_(samples);
    if (samples == NULL)
        return tn_error_last_code();
    status = (dims == 2 ? tn_fractional_max_pool2d : tn_fractional_max_pool3d)(
        x, samples, (tn_ints){ kernel, dims }, (tn_ints){ size, dims }, &y, &places);
    if (status == TN_OK)
        status = tn_pack_add(output, NULL, tn_value_tensor(y));
    return status == TN_OK && s->return_indices ? tn_pack_add(output, NULL, tn_value_tensor(places))
                                                : status;
}

#define FRACTIONAL                                                                                 \
    .help = "the maximum of windows at random positions", .options = options,                      \
    .data_size = sizeof(struct fractional), .build = build, .call = call, .repr = layers_no_words
LAYER(fractional_max_pool2d, "FractionalMaxPool2d", FRACTIONAL);
LAYER(fractional_max_pool3d, "FractionalMaxPool3d", FRACTIONAL);
