/* SPDX-License-Identifier: MIT
 *
 * A layer with the errors (mutant_choose.h) that layers can have: Gate(features, scale=2.0,
 * bias=True, rate=0.25) computes y = scale * x * weight + bias, drops elements in training mode,
 * and counts its calls in a buffer then; `mean` is a buffer, the number of calls in training is
 * extra state.
 */
#include "mutant_choose.h"

struct layer {
    int64_t features;
    double scale, rate;
    bool bias;
    int64_t calls; /* extra state */
    tn_tensor *kept, *cached;
    tn_module *self;
    void *memory;
    double hidden;
};

static const tn_option options[] = {
    TN_OPTION_INT_REQUIRED(struct layer, features, "size of the last dimension"),
    TN_OPTION_FLOAT(struct layer, scale, "2.0", "of the weight"),
    TN_OPTION_BOOL(struct layer, bias, "True", "whether a bias is added"),
    TN_OPTION_FLOAT(struct layer, rate, "0.25", "of elements that are 0 in training"), TN_OPTION_END
};

static tn_status fill(tn_module *self)
{
    const struct layer *s = tn_module_data(self);
    tn_status status = tn_init(tn_module_get(self, "weight"), "uniform(0.5, 1.5)");

    if (status == TN_OK && s->bias && !is("reset-one") && !is("parameter-hidden"))
        status = tn_init(tn_module_get(self, "bias"), "uniform(-1.0, 1.0)");
    return status;
}

static tn_status build(tn_module *self)
{
    static double last;
    struct layer *s = tn_module_data(self);
    const tn_ints shape = TN_SHAPE(s->features);
    tn_tensor *weight = tn_parameter(tn_tensor_empty(shape, TN_DTYPE_AUTO, NULL), true), *bias;
    tn_status status = tn_module_add_parameter(self, "weight", weight);

    bias = s->bias ? tn_parameter(tn_tensor_full(shape, 0, TN_DTYPE_AUTO, NULL), true) : TN_NONE;
    if (status == TN_OK && !is("parameter-hidden"))
        status = tn_module_add_parameter(self, "bias", bias);
    if (status == TN_OK)
        status = tn_module_add_buffer(self, "mean", tn_tensor_full(shape, 0.5, TN_DTYPE_AUTO, NULL),
                                      is("buffer-not-saved") ? TN_SLOT_FLAG_NOT_PERSISTENT : 0);
    s->memory = tn_malloc(4096);
    s->self = self;
    s->hidden = is("number-hidden") ? (last += 0.125) : 0;
    if (is("parameter-cached") || is("parameter-hidden"))
        s->cached = tn_tensor_keep(is("parameter-hidden") ? bias : weight);
    if (is("option-changed"))
        s->scale += 1;
    if (is("init-in-build") && status == TN_OK)
        status = fill(self);
    return s->memory != NULL ? status : TN_ERR_MEMORY;
}

static tn_status reset(tn_module *self)
{
    if (is("init-random")) {
        tn_tensor *weight = tn_module_get(self, "weight");

        return tn_copy_(weight, tn_tensor_full(tn_tensor_shape(weight), (double)(rand() % 8),
                                               TN_F32, NULL)) != NULL
                   ? TN_OK
                   : tn_error_last_code();
    }
    return is("init-in-build") ? TN_OK : fill(self);
}

static void destroy(tn_module *self)
{
    struct layer *s = tn_module_data(self);

    if (!is("destroy-leaks"))
        tn_free(s->memory);
    if (is("destroy-twice"))
        tn_free(s->memory);
    tn_tensor_drop(s->cached);
    if (!is("keeps-input-leaks"))
        tn_tensor_drop(s->kept);
}

static tn_status copy(tn_module *self, tn_module *from)
{
    struct layer *s = tn_module_data(self);

    (void)from;
    s->self = is("copy-borrows") ? s->self : self;
    s->cached = s->cached != NULL ? tn_tensor_keep(s->cached) : NULL;
    s->kept = NULL;
    if (is("copy-shares"))
        return TN_OK; /* both free the memory */
    s->memory = tn_malloc(4096);
    if (is("copy-forgets"))
        s->calls = 0;
    if (is("copy-option"))
        s->scale = 2;
    return s->memory != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_tensor *dropped(tn_module *self, tn_tensor *y)
{
    const struct layer *s = tn_module_data(self);
    tn_tensor *draw = tn_tensor_empty(tn_tensor_shape(y), tn_tensor_dtype(y), tn_tensor_device(y));

    if (tn_init(draw, "uniform(0.0, 1.0)") != TN_OK)
        return NULL;
    draw = tn_add_scalar(draw, is("rate-ignored") ? -0.25 : -s->rate);
    return tn_mul(y, tn_cast(tn_ceil(tn_relu(draw)), tn_tensor_dtype(y)));
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    struct layer *s = tn_module_data(self);
    tn_module *own = is("copy-borrows") ? s->self : self;
    tn_tensor *weight = is("parameter-cached") ? s->cached : tn_module_get(own, "weight");
    tn_tensor *bias = is("parameter-hidden") ? s->cached : tn_module_get(own, "bias"), *y;
    bool training = tn_module_is_training(self);

    if (is("writes-input"))
        tn_add_scalar_(tn_detach(x), 1);
    if (is("keeps-input") || is("keeps-input-leaks")) {
        if (is("keeps-input"))
            tn_tensor_drop(s->kept);
        s->kept = tn_tensor_keep(x);
    }
    if (is("leaks-result"))
        tn_tensor_keep(tn_mul(x, x));
    if (is("gradient-cut"))
        x = tn_detach(x);
    if (is("gradient-cut-weight"))
        weight = tn_detach(weight);
    if (is("parameter-narrow"))
        weight = tn_cast(tn_cast(weight, TN_F32), tn_tensor_dtype(weight));
    y = tn_add(tn_mul_scalar(tn_mul(x, weight), (is("scale-ignored") ? 2 : s->scale) + s->hidden),
               tn_module_get(own, "mean"));
    if (s->bias)
        y = tn_add(y, bias);
    if ((training && !is("train-ignored")) || is("eval-ignored"))
        y = dropped(self, y);
    if (training || is("eval-counts"))
        s->calls++;
    if (training) {
        tn_grad_begin(false);
        tn_add_scalar_(tn_module_get(own, "mean"), 0.125);
        tn_grad_end();
    }
    if (training && is("training-writes")) {
        tn_grad_begin(false);
        tn_add_scalar_(weight, 1);
        tn_grad_end();
    }
    if (is("eval-buffer")) {
        tn_grad_begin(false);
        tn_add_scalar_(tn_module_get(own, "mean"), 0.5);
        tn_grad_end();
    }
    if (is("draws-of-its-own"))
        y = tn_add_scalar(y, (double)(rand() % 8));
    if (is("result-float"))
        y = tn_cast(y, TN_F32);
    return y;
}

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct layer *s = tn_module_data(self);

    return tn_snprint(out, size, "%lld, scale=%g, bias=%s, rate=%g", (long long)s->features,
                      s->scale + is("repr-lies"), s->bias ? "True" : "False", s->rate);
}

static tn_status get_extra_state(tn_module *self, tn_pack *out)
{
    const struct layer *s = tn_module_data(self);

    return tn_pack_add(out, NULL, tn_value_int(s->calls));
}

static tn_status set_extra_state(tn_module *self, const tn_value *value)
{
    struct layer *s = tn_module_data(self);

    if (value->kind != TN_VALUE_INT)
        return tn_fail(TN_ERR_TYPE, "extra state: expected an int");
    if (!is("extra-state-ignored"))
        s->calls = value->as.i;
    return TN_OK;
}

static const tn_layer_def layer = {
    TN_HEAD(tn_layer_def),
    .name = "Gate",
    .help = "a layer of the tests",
    .options = options,
    .data_size = sizeof(struct layer),
    .build = build,
    .reset = reset,
    .destroy = destroy,
    .copy = copy,
    .forward = forward,
    .repr = repr,
    .get_extra_state = get_extra_state,
    .set_extra_state = set_extra_state,
};
TN_PLUGIN("org.example.mutant", "1.0.0", &layer);
