/* SPDX-License-Identifier: MIT
 *
 * A layer for tests of tenon check at level layers: y = scale * factor * x with a parameter `scale`
 * and an option `factor`. Each value of WRONG puts one error into it, which tenon check must find;
 * with RIGHT, EXTRA, TENSORS and LISTED it has none. */
#include <stdio.h>
#include <stdlib.h>

#include <tenon/plugin.h>

#define RIGHT 0
#define CACHES 1  /* keeps the parameter's tensor in its struct */
#define HIDES 2   /* computes with a number that is not in the state */
#define FORGETS 3 /* its spec does not build the same */
#define MISPRINTS 4
#define COUNTS 5   /* writes a buffer in eval mode */
#define WIDENS 6   /* returns float32 for inputs of every dtype */
#define CUTS 7     /* no gradient for the input */
#define CUTS_OWN 8 /* none for the parameter */
#define STEPS 9    /* changes its parameter in training */
#define FAILS 10   /* in training mode */
#define BORROWS 11 /* keeps its module in its struct: a copy reads the original's */
#define ALTERS 12  /* a copy has another option */
#define STAYS 13   /* it cannot be copied */
#define EXTRA 14   /* right: extra state, a list of values of every kind */
#define KEEPS 15   /* ignores the extra state that it is given */
#define TICKS 16   /* its extra state changes in eval mode */
#define CLINGS 17  /* a copy has extra state of its own */
#define TENSORS 18 /* right: extra state is a tensor; results are a list with a number */
#define LISTED 19  /* right: list and scalar options */

#define HAS_EXTRA (WRONG >= EXTRA && WRONG <= TENSORS)

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
    s->hidden = WRONG == HIDES || HAS_EXTRA ? (last += 0.125) : 0;
    s->cached = WRONG == CACHES ? tn_tensor_keep(scale) : NULL;
    if (WRONG == FORGETS)
        s->factor += 1;
    if (status == TN_OK && WRONG == COUNTS)
        status = tn_module_add_buffer(self, "calls", tn_tensor_full(TN_SHAPE(1), 0, TN_F32, NULL),
                                      0);
    return status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct layer *s = tn_module_data(self);
    tn_tensor *scale = WRONG == CACHES ? s->cached
                                       : tn_module_get(WRONG == BORROWS ? s->owner : self, "scale"),
              *y;

    if (WRONG == FAILS && tn_module_is_training(self))
        return tn_fail(TN_ERR_RUNTIME, "not in this mode"), NULL;
    if (WRONG == COUNTS && tn_add_scalar_(tn_module_get(self, "calls"), 1) == NULL)
        return NULL;
    if (WRONG == STEPS && tn_module_is_training(self)) {
        tn_grad_begin(false);
        tn_add_scalar_(scale, 1);
        tn_grad_end();
    }
    y = tn_mul(WRONG == CUTS ? tn_detach(x) : x, WRONG == CUTS_OWN ? tn_detach(scale) : scale);
    y = tn_mul_scalar(y, s->factor + s->hidden);
    if (WRONG == TICKS)
        ((struct layer *)tn_module_data(self))->calls++;
    return WRONG == WIDENS ? tn_cast(y, TN_F32) : y;
}

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct layer *s = tn_module_data(self);
    char text[64];

    snprintf(text, sizeof text, "%g", s->factor + (WRONG == MISPRINTS));
    return tn_snprint(out, size, "%s", text);
}

static tn_status copy(tn_module *self, tn_module *from)
{
    struct layer *s = tn_module_data(self);

    (void)from;
    if (WRONG == STAYS)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "there can be one only");
    s->owner = WRONG == BORROWS ? s->owner : self;
    s->factor += WRONG == ALTERS;
    s->calls += WRONG == CLINGS;
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

    if (WRONG == TENSORS)
        return tn_pack_add(
            out, NULL,
            tn_value_tensor(tn_tensor_full(TN_SHAPE(2), s->hidden, TN_F64, tn_device_find("cpu"))));
    return tn_pack_add(out, NULL, (tn_value){ TN_VALUE_LIST, 4, { .list = list } });
}

static tn_status set_extra_state(tn_module *self, const tn_value *value)
{
    struct layer *s = tn_module_data(self);

    if (WRONG == KEEPS)
        return TN_OK;
    if (WRONG == TENSORS) {
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

static const tn_layer_def layer = {
    TN_HEAD(tn_layer_def),
    .name = "Scaled",
    .options = WRONG == LISTED ? listed_options : options,
    .data_size = WRONG == LISTED ? sizeof(struct listed) : sizeof(struct layer),
    .build = WRONG == LISTED ? NULL : build,
    .forward = WRONG == LISTED    ? listed_forward
               : WRONG == TENSORS ? NULL
                                  : forward,
    .call = WRONG == TENSORS ? call : NULL,
    .repr = WRONG == LISTED ? NULL : repr,
    .copy = WRONG == LISTED ? NULL : copy,
    .get_extra_state = HAS_EXTRA ? get_extra_state : NULL,
    .set_extra_state = HAS_EXTRA ? set_extra_state : NULL,
};
TN_PLUGIN("org.example.scaled", "1.0.0", &layer);
