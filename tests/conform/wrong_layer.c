/* SPDX-License-Identifier: MIT
 *
 * Layers that are wrong on purpose, one for each value of WRONG, and one that is right: y = scale * factor * x with a
 * parameter `scale` and an option `factor`. What tenon check has to find at level layers. */
#include <stdio.h>
#include <stdlib.h>

#include <tenon/plugin.h>

#define RIGHT 0
#define CACHES 1  /* keeps the parameter's tensor in its struct */
#define HIDES 2   /* computes with a number that is not in the state */
#define FORGETS 3 /* its spec does not build the same */
#define MISPRINTS 4
#define COUNTS 5   /* writes a buffer in eval mode */
#define WIDENS 6   /* gives float32 whatever it gets */
#define CUTS 7     /* no gradient for the input */
#define CUTS_OWN 8 /* none for the parameter */
#define STEPS 9    /* changes its parameter in training */
#define FAILS 10   /* in training mode */
#define BORROWS 11 /* keeps the module of its building in its struct: a copy reads the original's */
#define ALTERS 12  /* a copy has another option */
#define STAYS 13   /* it cannot be copied */

struct layer {
    double factor, hidden;
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
    s->hidden = WRONG == HIDES ? (last += 0.125) : 0;
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
    return TN_OK;
}

static const tn_layer layer = { TN_HEAD(tn_layer),  .name = "Scaled",
                                .options = options, .data_size = sizeof(struct layer),
                                .build = build,     .forward = forward,
                                .repr = repr,       .copy = copy };
TN_PLUGIN("org.example.scaled", "1.0.0", &layer);
