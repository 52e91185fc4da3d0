/* SPDX-License-Identifier: MIT
 *
 * An operator with options of every kind, for tenon check: y = flip(x, dims) * scale * (the sum of
 * weights + count), negative where `turned`; the option `name` changes nothing. With `slope`, its
 * derivative forgets the weights. */
#include "mutant_choose.h"

struct options {
    uint32_t size;
    tn_ints dims;
    tn_floats weights;
    int64_t count;
    double scale;
    bool turned;
    const char *name;
};

static const int64_t no_dims[] = { 0 };
static const double two_weights[] = { 0.5, 0.25 };
static const struct options defaults = {
    sizeof(struct options), { no_dims, 1 }, { two_weights, 2 }, 1, 1.0, false, "plain"
};
static const tn_option table[] = {
    TN_OPTION_INTS(struct options, dims, "(0,)", "turned round"),
    TN_OPTION_FLOATS(struct options, weights, "(0.5, 0.25)", "added up"),
    TN_OPTION_INT(struct options, count, "1", "added to them"),
    TN_OPTION_FLOAT(struct options, scale, "1.0", "multiplies all"),
    TN_OPTION_BOOL(struct options, turned, "False", "changes the sign"),
    TN_OPTION_STRING(struct options, name, "\"plain\"", "changes nothing"),
    TN_OPTION_END
};

static double factor(const struct options *o, bool weights)
{
    double sum = (double)o->count;

    for (int64_t i = 0; weights && i < o->weights.count; i++)
        sum += o->weights.at[i];
    return (o->turned ? -sum : sum) * o->scale;
}

static tn_status infer(tn_infer *infer)
{
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].ndim = infer->in[0]->ndim;
    for (int32_t d = 0; d < infer->in[0]->ndim; d++)
        infer->out[0].shape[d] = infer->in[0]->shape[d];
    return TN_OK;
}

static tn_status derive(tn_derive *d)
{
    const struct options *o = d->options;

    d->gin[0] = tn_mul_scalar(tn_flip(d->gout[0], o->dims), factor(o, !is("slope")));
    return TN_OK;
}

static tn_status decompose(const tn_decompose *call)
{
    const struct options *o = call->options;
    call->out[0] = tn_mul_scalar(tn_flip(call->in[0], o->dims), factor(o, true));
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_operand in[] = { { "x", 0, TN_MASK_FLOAT } }, out[] = { { "y", 0, 0 } };
static const tn_op_def op = { TN_HEAD(tn_op_def),
                              .name = "weigh",
                              .math = "y = flip(x, dims) * scale * (sum(weights) + count)",
                              .help = "options of every kind",
                              .revision = 1,
                              .inputs = in,
                              .outputs = out,
                              .n_inputs = 1,
                              .n_outputs = 1,
                              .options = table,
                              .defaults = &defaults,
                              .options_size = sizeof defaults,
                              .infer = infer,
                              .derive = derive,
                              .decompose = decompose };
TN_PLUGIN("org.example.weigh", "1.0.0", &op);
