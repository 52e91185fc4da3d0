/* SPDX-License-Identifier: MIT
 *
 * A layer, y = scale * factor * x with a parameter `scale` and an option `factor`, with the errors
 * (mutant_choose.h) that tenon check finds at level layers. With `extra`, `tensors` and `listed` it
 * has none: extra state that is a list, extra state that is a tensor and results in a list, options
 * that are lists. */
#include <stdio.h>
#include <stdlib.h>

#include "mutant_choose.h"

static bool has_extra(void)
{
    return is("extra") || is("keeps") || is("ticks") || is("clings") || is("tensors");
}

struct layer {
    double factor, hidden;
    int64_t calls; /* in the extra state, as hidden is */
    tn_tensor *cached;
    tn_module *owner;
};

static const tn_option options[] = { TN_OPTION_FLOAT(struct layer, factor, "2.0", "of the scale"),
                                     TN_OPTION_END };

static tn_status build(tn_module *self)
{
    static double last;
    struct layer *s = tn_module_data(self);
    tn_tensor *scale = tn_parameter(tn_tensor_full(TN_SHAPE(3), 1.5, TN_DTYPE_AUTO, NULL), true);
    tn_status status = tn_module_add_parameter(self, "scale", scale);

    s->owner = self;
    s->hidden = is("hides") || has_extra() ? (last += 0.125) : 0;
    s->cached = is("caches") ? tn_tensor_keep(scale) : NULL;
    if (is("forgets"))
        s->factor += 1;
    if (status == TN_OK && is("counts"))
        status = tn_module_add_buffer(self, "calls", tn_tensor_full(TN_SHAPE(1), 0, TN_F32, NULL),
                                      0);
    return status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct layer *s = tn_module_data(self);
    tn_tensor *scale = is("caches") ? s->cached
                                    : tn_module_get(is("borrows") ? s->owner : self, "scale"),
              *y;

    if (is("fails") && tn_module_is_training(self))
        return tn_fail(TN_ERR_RUNTIME, "not in this mode"), NULL;
    if (is("counts") && tn_add_scalar_(tn_module_get(self, "calls"), 1) == NULL)
        return NULL;
    if (is("steps") && tn_module_is_training(self)) {
        tn_grad_begin(false);
        tn_add_scalar_(scale, 1);
        tn_grad_end();
    }
    y = tn_mul(is("cuts") ? tn_detach(x) : x, is("cuts-own") ? tn_detach(scale) : scale);
    y = tn_mul_scalar(y, s->factor + s->hidden);
    if (is("ticks"))
        ((struct layer *)tn_module_data(self))->calls++;
    return is("widens") ? tn_cast(y, TN_F32) : y;
}

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct layer *s = tn_module_data(self);
    char text[64];

    snprintf(text, sizeof text, "%g", s->factor + (is("misprints")));
    return tn_snprint(out, size, "%s", text);
}

static tn_status copy(tn_module *self, tn_module *from)
{
    struct layer *s = tn_module_data(self);

    (void)from;
    if (is("stays"))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "there can be one only");
    s->owner = is("borrows") ? s->owner : self;
    s->factor += is("alters");
    s->calls += is("clings");
    return TN_OK;
}

/* [hidden, (calls, True), "words", None]; or hidden as a tensor */
static tn_status get_extra_state(tn_module *self, tn_pack *out)
{
    const struct layer *s = tn_module_data(self);
    const tn_value pair[] = { tn_value_int(s->calls), tn_value_bool(true) };
    const tn_value list[] = { tn_value_float(s->hidden),
                              { TN_VALUE_TUPLE, 2, { .list = pair } },
                              tn_value_string("words"),
                              { .kind = TN_VALUE_NONE } };

    if (is("tensors"))
        return tn_pack_add(
            out, NULL,
            tn_value_tensor(tn_tensor_full(TN_SHAPE(2), s->hidden, TN_F64, tn_device_find("cpu"))));
    return tn_pack_add(out, NULL, (tn_value){ TN_VALUE_LIST, 4, { .list = list } });
}

static tn_status set_extra_state(tn_module *self, const tn_value *value)
{
    struct layer *s = tn_module_data(self);

    if (is("keeps"))
        return TN_OK;
    if (is("tensors")) {
        double both[2];
        tn_status status = value->kind == TN_VALUE_TENSOR
                               ? tn_tensor_copy_out(value->as.tensor, both, sizeof both)
                               : tn_fail(TN_ERR_TYPE, "extra state: expected a tensor");

        s->hidden = both[0];
        return status;
    }
    if (value->kind != TN_VALUE_LIST || value->count != 4)
        return tn_fail(TN_ERR_TYPE, "extra state: expected a list of 4 values");
    s->hidden = value->as.list[0].as.f;
    s->calls = value->as.list[1].as.list[0].as.i;
    return TN_OK;
}

/* The result, and a list: half of it, and a number. */
static tn_status call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *y = forward(self, tn_pack_tensor(input, 0)), *half = tn_mul_scalar(y, 0.5);
    const tn_value pair[] = { tn_value_tensor(half), tn_value_int(3) };

    if (half == NULL || tn_pack_add(output, NULL, tn_value_tensor(y)) != TN_OK)
        return TN_ERR_RUNTIME;
    return tn_pack_add(output, NULL, (tn_value){ TN_VALUE_LIST, 2, { .list = pair } });
}

/* y = x * (the sum of weights, sizes and count); y = x if `on` is False */
struct listed {
    tn_ints sizes;
    tn_floats weights;
    int64_t count;
    const char *label;
    bool on;
};

static const tn_option listed_options[] = {
    TN_OPTION_INTS(struct listed, sizes, "(1, 2)", "added up"),
    TN_OPTION_FLOATS(struct listed, weights, "(0.5, 0.25)", "added up"),
    TN_OPTION_INT(struct listed, count, "1", "added"),
    TN_OPTION_STRING(struct listed, label, "\"plain\"", "printed only"),
    TN_OPTION_BOOL(struct listed, on, "True", "whether all that counts"),
    TN_OPTION_END
};

static tn_tensor *listed_forward(tn_module *self, tn_tensor *x)
{
    const struct listed *s = tn_module_data(self);
    double sum = (double)s->count;

    for (int64_t i = 0; i < s->sizes.count; i++)
        sum += (double)s->sizes.at[i];
    for (int64_t i = 0; i < s->weights.count; i++)
        sum += s->weights.at[i];
    return tn_mul_scalar(x, s->on ? sum : 1);
}

static tn_layer_def layer = {
    TN_HEAD(tn_layer_def), .name = "Scaled",
    .options = options,    .data_size = sizeof(struct layer),
    .build = build,        .forward = forward,
    .repr = repr,          .copy = copy,
};

__attribute__((constructor)) static void choose_members(void)
{
    if (has_extra()) {
        layer.get_extra_state = get_extra_state;
        layer.set_extra_state = set_extra_state;
    }
    if (is("tensors")) {
        layer.forward = NULL;
        layer.call = call;
    }
    if (is("listed")) {
        layer = (tn_layer_def){ TN_HEAD(tn_layer_def), .name = "Scaled", .options = listed_options,
                                .data_size = sizeof(struct listed), .forward = listed_forward };
    }
}

TN_PLUGIN("org.example.mutant", "1.0.0", &layer);
