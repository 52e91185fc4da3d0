/* SPDX-License-Identifier: MIT
 *
 * Operators with the errors (mutant_choose.h) that operators can have: blend, y = x + weight * z *
 * z with broadcasting; both, y = x^2 and z = x^3; track, which counts in an input; noise, which
 * draws. */
#include "mutant_choose.h"

struct options {
    uint32_t size;
    double weight;
};

static const struct options defaults = { sizeof(struct options), 0.5 };
static const tn_option table[] = { TN_OPTION_FLOAT(struct options, weight, "0.5", "of z^2"),
                                   TN_OPTION_END };
static const tn_option other_default[] = {
    TN_OPTION_FLOAT(struct options, weight, "0.25", "of z^2"), TN_OPTION_END
};

/* ---- blend ----------------------------------------------------------------------------------- */

static tn_status blend_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0], *z = infer->in[1];
    tn_meta *y = &infer->out[0];

    y->dtype = is("infer-dtype") ? TN_F32 : tn_view_dtype(x);
    y->ndim = is("infer-first") ? x->ndim : x->ndim > z->ndim ? x->ndim : z->ndim;
    for (int32_t d = 0; d < y->ndim; d++) {
        int32_t i = d - y->ndim + x->ndim, k = d - y->ndim + z->ndim;
        int64_t a = i >= 0 ? x->shape[i] : 1, b = k >= 0 ? z->shape[k] : 1;

        if (a != b && a != 1 && b != 1)
            return tn_fail(TN_ERR_VALUE, "blend: shapes: cannot be broadcast, got %lld and %lld",
                           (long long)a, (long long)b);
        y->shape[d] = is("infer-larger") ? (a > b ? a : b) : a == 1 ? b : a;
    }
    return TN_OK;
}

static tn_status blend_decompose(const tn_decompose *call)
{
    const struct options *o = call->options;
    tn_tensor *x = call->in[0], *z = call->in[1];
    double weight = is("option-ignored") ? 0.5 : o->weight;
    tn_tensor *square = tn_mul(z, z);

    if (is("decompose-differs"))
        square = tn_add_scalar(square, 0.125);
    if (is("decompose-writes"))
        tn_add_scalar_(x, 1);
    if (is("decompose-narrow"))
        square = tn_cast(tn_cast(square, TN_BF16), tn_tensor_dtype(z));
    if (is("autocast-overflows")) { /* 400 squared is beyond float16 */
        square = tn_mul_scalar(z, 400);
        square = tn_mul_scalar(tn_mul(square, square), 1.0 / 160000);
    }
    if (is("pointwise-sum"))
        square = tn_add(square, tn_sum(z));
    if (is("pointwise-place"))
        square = tn_add(
            square, tn_reshape(tn_arange(z, 0, (double)tn_tensor_numel(z)), tn_tensor_shape(z)));
    if (is("reads-unsaid"))
        weight += tn_tensor_item(tn_sum(z)) > 1e9;
    if (is("random-unsaid"))
        square = tn_add(square, tn_uniform(z));
    call->out[0] = tn_add(x, tn_mul_scalar(square, weight));
    if (is("decompose-random"))
        call->out[0] = tn_add_scalar(call->out[0], (double)(rand() % 2));
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

/* The sum of `gradient` over what was broadcast from the shape of `to`. */
static tn_tensor *reduced(tn_tensor *gradient, tn_tensor *to)
{
    int64_t dims[TN_MAX_DIMS], count = 0;
    int32_t more = tn_tensor_ndim(gradient) - tn_tensor_ndim(to);

    for (int32_t d = 0; d < tn_tensor_ndim(gradient); d++)
        if (d < more || (tn_tensor_size(to, d - more) == 1 && tn_tensor_size(gradient, d) != 1))
            dims[count++] = d;
    if (count == 0)
        return gradient;
    return tn_reshape(tn_sum(gradient, ((tn_ints){ dims, count })), tn_tensor_shape(to));
}

static tn_status blend_derive(tn_derive *d)
{
    const struct options *o = d->options;
    tn_tensor *x = d->in[0], *z = d->in[1], *g = d->gout[0], *gz;
    double weight = is("derive-option-ignored") ? 0.5 : o->weight;

    if (is("reads-in-derive"))
        weight += tn_tensor_item(tn_sum(z)) > 1e9;
    if (is("derive-cut"))
        z = tn_detach(z);
    if (is("derive-writes"))
        tn_mul_scalar_(g, 2);
    gz = tn_mul(g, tn_mul_scalar(z, (is("derive-factor") ? 1 : 2) * weight));
    if (is("derive-sign"))
        gz = tn_neg(gz);
    if (is("derive-swapped")) {
        tn_tensor *gx = g;

        g = gz;
        gz = gx;
    }
    if (is("derive-float"))
        gz = tn_cast(tn_cast(gz, TN_F32), tn_tensor_dtype(z));
    if (is("derive-first-only"))
        gz = TN_NONE;
    d->gin[0] = reduced(g, x);
    d->gin[1] = gz == TN_NONE ? gz : reduced(gz, z);
    return d->gin[0] != NULL && d->gin[1] != NULL ? TN_OK : tn_error_last_code();
}

static tn_operand blend_in[] = { { "x", 0, TN_MASK_FLOAT }, { "z", 0, TN_MASK_FLOAT } };
static const tn_operand blend_out[] = { { "y", 0, 0 } };
static tn_op_def blend = { TN_HEAD(tn_op_def),
                           .name = "blend",
                           .math = "y = x + weight * z^2",
                           .help = "An operator of the tests.",
                           .revision = 1,
                           .inputs = blend_in,
                           .n_inputs = 2,
                           .outputs = blend_out,
                           .n_outputs = 1,
                           .options = table,
                           .defaults = &defaults,
                           .options_size = sizeof(struct options),
                           .flags = TN_OP_POINTWISE,
                           .save_in = 3,
                           .infer = blend_infer,
                           .derive = blend_derive,
                           .decompose = blend_decompose };

/* ---- both ------------------------------------------------------------------------------------ */

static tn_status both_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    for (int32_t i = 0; i < 2; i++) {
        infer->out[i].dtype = tn_view_dtype(x);
        infer->out[i].ndim = x->ndim;
        for (int32_t d = 0; d < x->ndim; d++)
            infer->out[i].shape[d] = x->shape[d];
    }
    return TN_OK;
}

static tn_status both_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0], *square = tn_mul(x, x), *cube = tn_mul(square, x);

    call->out[0] = is("outputs-swapped") ? cube : square;
    call->out[1] = is("outputs-swapped") ? square : cube;
    return cube != NULL ? TN_OK : tn_error_last_code();
}

static tn_status both_derive(tn_derive *d)
{
    tn_tensor *x = d->in[0], *sum = TN_NONE;

    if (d->gout[0] != TN_NONE)
        sum = tn_mul(d->gout[0], tn_mul_scalar(x, 2));
    if (d->gout[1] != TN_NONE && !(is("derive-one-output") && sum != TN_NONE)) {
        tn_tensor *more = tn_mul(d->gout[1], tn_mul_scalar(tn_mul(x, x), 3));

        sum = sum == TN_NONE || is("derive-overwrites") ? more : tn_add(sum, more);
    }
    d->gin[0] = sum;
    return sum != NULL ? TN_OK : tn_error_last_code();
}

static const tn_operand both_in[] = { { "x", 0, TN_MASK_FLOAT } },
                        both_out[] = { { "y", 0, 0 }, { "z", 0, 0 } };
static tn_op_def both = { TN_HEAD(tn_op_def),
                          .name = "both",
                          .math = "y = x^2, z = x^3",
                          .help = "An operator of the tests.",
                          .revision = 1,
                          .inputs = both_in,
                          .n_inputs = 1,
                          .outputs = both_out,
                          .n_outputs = 2,
                          .save_in = 1,
                          .infer = both_infer,
                          .derive = both_derive,
                          .decompose = both_decompose };

/* ---- track and noise ------------------------------------------------------------------------- */

static tn_status same_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    infer->out[0].dtype = tn_view_dtype(x);
    infer->out[0].ndim = x->ndim;
    for (int32_t d = 0; d < x->ndim; d++)
        infer->out[0].shape[d] = x->shape[d];
    if (is("updates-denied") && infer->n_in > 1)
        infer->only_read = 2;
    return TN_OK;
}

static tn_status track_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0];

    call->out[0] = tn_mul_scalar(x, 2);
    if (call->out[0] == NULL)
        return tn_error_last_code();
    return is("updates-nothing") || tn_add_(call->in[1], tn_sum(tn_detach(x))) != NULL
               ? TN_OK
               : tn_error_last_code();
}

static tn_operand track_in[] = {
    { "x", 0, TN_MASK_FLOAT }, { "total", TN_OPERAND_NO_GRAD | TN_OPERAND_UPDATED, TN_MASK_FLOAT }
};
static const tn_op_def track = { TN_HEAD(tn_op_def),
                                 .name = "track",
                                 .math = "y = 2 x, total = total + sum of x",
                                 .help = "An operator of the tests.",
                                 .revision = 1,
                                 .inputs = track_in,
                                 .n_inputs = 2,
                                 .outputs = blend_out,
                                 .n_outputs = 1,
                                 .infer = same_infer,
                                 .decompose = track_decompose };

static tn_status noise_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0];

    call->out[0] = is("random-needless") ? tn_mul_scalar(x, 3) : tn_add(x, tn_uniform(x));
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_op_def noise = { TN_HEAD(tn_op_def),
                                 .name = "noise",
                                 .math = "y = x + u, u ~ U[0, 1)",
                                 .help = "An operator of the tests.",
                                 .revision = 1,
                                 .flags = TN_OP_RANDOM,
                                 .inputs = both_in,
                                 .n_inputs = 1,
                                 .outputs = blend_out,
                                 .n_outputs = 1,
                                 .infer = same_infer,
                                 .decompose = noise_decompose };

__attribute__((constructor)) static void changed(void)
{
    mutant_choose();
    if (is("save-nothing"))
        blend.save_in = 0;
    if (is("save-first"))
        blend.save_in = 1;
    if (is("default-differs"))
        blend.options = other_default;
    if (is("autocast-overflows") || is("autocast-unsupported"))
        blend.flags |= TN_OP_AUTOCAST_LOW | TN_OP_AUTOCAST_HOST_LOW;
    if (is("autocast-unsupported"))
        blend_in[0].dtypes = blend_in[1].dtypes = TN_BIT(TN_F32) | TN_BIT(TN_F64);
    if (is("reads-needless"))
        both.flags = TN_OP_READS;
    if (is("updates-unsaid"))
        track_in[1].flags = TN_OPERAND_NO_GRAD;
}

static const void *const contributions[] = { &blend, &both, &track, &noise };
static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "org.example.mutant",
    .version = "1.0.0",
    .help = "operators of the tests",
    .contributions = contributions,
    .n_contributions = 4,
};
TN_PLUGIN_EXPORT(plugin);
