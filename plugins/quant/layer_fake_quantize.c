/* SPDX-License-Identifier: MIT
 *
 * FakeQuantize: rounds its input to the numbers that integers can have, with a gradient, for
 * training. Also the parametrization of a weight in quantization-aware training. */
#include "modules.h"

struct fake {
    tn_value range; /* the module that records the range; None: that of each input */
    tn_dtype dtype;
    bool symmetric;
    int64_t dim; /* INT64_MIN (None): one scale */
    bool observe, fake;
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct fake, range, "None",
                  "the module that records the range: MovingAverageRange(); None: the range of "
                  "each input",
                  TN_OPTION_KIND_VALUE, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct fake, dtype, "'uint8'", "int8 or uint8", TN_OPTION_KIND_DTYPE,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct fake, symmetric, "False", "the range is symmetric about 0",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct fake, dim, "None",
                  "the dimension of channels, each with its own scale; None: one scale",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL | TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct fake, observe, "True", "calls in training mode change the scale",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct fake, fake, "True", "False: the result is the input", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    struct fake *s = tn_module_data(self);
    tn_ints shape = s->dim != INT64_MIN ? TN_SHAPE(0) : tn_no_ints();
    tn_module *range = NULL;
    tn_status status = TN_OK;

    if (s->dtype != TN_U8 && s->dtype != TN_I8)
        return tn_fail(TN_ERR_VALUE, "FakeQuantize: dtype: wrong, got %s; expected int8 or uint8",
                       tn_dtype_name(s->dtype));
    if (s->dim != INT64_MIN && s->range.kind != TN_VALUE_NONE)
        return tn_fail(TN_ERR_VALUE,
                       "FakeQuantize: dim: not possible with a range, which gives one scale, got "
                       "%lld; expected None",
                       (long long)s->dim);
    if (s->range.kind == TN_VALUE_SPEC)
        range = tn_module_parse(s->range.as.s);
    else if (s->range.kind == TN_VALUE_MODULE)
        range = tn_module_keep(s->range.as.module);
    else if (s->range.kind != TN_VALUE_NONE)
        return tn_fail(TN_ERR_TYPE,
                       "FakeQuantize: range: wrong type, got %s; expected a module, such as "
                       "MovingAverageRange()",
                       tn_value_kind_name(s->range.kind));
    if (s->range.kind != TN_VALUE_NONE)
        status = range != NULL ? tn_module_add_child(self, "range", range) : tn_error_last_code();
    tn_module_drop(range);
    if (status == TN_OK)
        status = quant_add_buffer(self, "scale", TN_F32, shape, 1, true);
    return status == TN_OK ? quant_add_buffer(self, "zero_point", s->dtype, shape, 0, true)
                           : status;
}

/* Chooses the scale for the range so far, or for x. */
static tn_status choose(tn_module *self, tn_tensor *x, tn_tensor **scale, tn_tensor **zero_point)
{
    const struct fake *s = tn_module_data(self);
    tn_module *range = s->range.kind != TN_VALUE_NONE ? tn_module_child(self, "range") : NULL;
    tn_tensor *low, *high;
    int64_t dims[TN_MAX_DIMS], count = 0;
    tn_ints reduced;

    if (range != NULL) {
        if (tn_module_call(range, tn_detach(x)) == NULL ||
            quant_range_get(range, &low, &high) != TN_OK)
            return tn_error_last_code();
        x = tn_stack(((tn_tensor *[]){ low, high }), 2, -1);
        dims[count++] = -1;
    } else {
        for (int64_t d = 0; d < tn_tensor_ndim(x); d++)
            if (d != s->dim && d - tn_tensor_ndim(x) != s->dim)
                dims[count++] = d;
    }
    reduced = (tn_ints){ dims, count };
    return tn_choose_qparams(tn_detach(x), scale, zero_point, reduced, false, INT64_MIN, s->dtype,
                             s->symmetric);
}

/* Sets the scale to use, and in training mode the buffers. A range of each input needs no training
 * mode: the scale is a function of the input alone. */
static tn_status find_scale(tn_module *self, tn_tensor *x, tn_tensor **scale,
                            tn_tensor **zero_point)
{
    const struct fake *s = tn_module_data(self);
    const bool training = tn_module_is_training(self);
    tn_status status;

    *scale = tn_module_get(self, "scale");
    *zero_point = tn_module_get(self, "zero_point");
    if (!s->observe || tn_tensor_numel(x) == 0 || (s->range.kind != TN_VALUE_NONE && !training))
        return TN_OK;
    status = tn_grad_begin(false);
    if (status != TN_OK)
        return status;
    status = choose(self, x, scale, zero_point);
    if (status == TN_OK && training)
        status = tn_module_set(self, "scale", *scale);
    if (status == TN_OK && training)
        status = tn_module_set(self, "zero_point", *zero_point);
    tn_grad_end();
    return status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct fake *s = tn_module_data(self);
    const bool signed_ = s->dtype == TN_I8;
    tn_tensor *scale, *zero_point;

    if (find_scale(self, x, &scale, &zero_point) != TN_OK)
        return NULL;
    if (!s->fake ||
        (s->range.kind != TN_VALUE_NONE && quant_range_is_empty(tn_module_child(self, "range"))))
        return x; /* without data there is no scale */
    return tn_fake_quantize(x, scale, zero_point, signed_ ? -128 : 0, signed_ ? 127 : 255,
                            s->dim != INT64_MIN ? s->dim : 0);
}

/* The number of channels comes with the state. */
static tn_status load_state(tn_module *self, tn_loading *loading)
{
    TN_SCOPE;
    tn_status status = quant_check_scale(self, loading, "scale");

    if (status == TN_OK)
        status = quant_range_entry(self, loading, "scale", NULL);
    if (status == TN_OK)
        status = quant_range_entry(self, loading, "zero_point", NULL);
    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

const tn_layer_def layer_fake_quantize = {
    TN_HEAD(tn_layer_def),
    .name = "FakeQuantize",
    .help = "x rounded to the numbers that integers can have; its gradient is 1 where x is not "
            "clamped",
    .options = options,
    .data_size = sizeof(struct fake),
    .version = 1,
    .build = build,
    .forward = forward,
    .load_state = load_state,
};
