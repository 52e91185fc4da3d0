/* SPDX-License-Identifier: MIT
 *
 * An operator of two outputs, y = x^2 and z = x^3, with the errors (mutant_choose.h) that its
 * derivative can have. */
#include "mutant_choose.h"

static tn_status pair_infer(tn_infer *infer)
{
    for (int32_t i = 0; i < 2; i++) {
        infer->out[i].dtype = tn_view_dtype(infer->in[0]);
        infer->out[i].ndim = infer->in[0]->ndim;
        for (int32_t d = 0; d < infer->in[0]->ndim; d++)
            infer->out[i].shape[d] = infer->in[0]->shape[d];
    }
    return TN_OK;
}

static tn_status pair_derive(tn_derive *d)
{
    tn_tensor *x = d->in[0], *sum = TN_NONE;

    if (is("first-only") && d->gout[0] == TN_NONE)
        return tn_fail(TN_ERR_VALUE, "pair: no gradient of y");
    if (d->gout[0] != TN_NONE)
        sum = tn_mul(d->gout[0], tn_mul_scalar(x, 2));
    if (d->gout[1] != TN_NONE && !is("deaf")) {
        tn_tensor *more = tn_mul(d->gout[1], tn_mul_scalar(tn_mul(x, x), 3));

        sum = sum == TN_NONE ? more : tn_add(sum, more);
    }
    d->gin[0] = sum;
    return TN_OK;
}

static tn_status pair_decompose(const tn_decompose *call)
{
    call->out[0] = tn_mul(call->in[0], call->in[0]);
    call->out[1] = tn_mul(call->out[0], call->in[0]);
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_operand pair_in[] = { { "x", 0, TN_MASK_FLOAT } },
                        pair_out[] = { { "y", 0, 0 }, { "z", 0, 0 } };
static const tn_op_def pair = { TN_HEAD(tn_op_def),
                                .name = "pair",
                                .math = "y = x^2, z = x^3",
                                .help = "the second and the third power",
                                .revision = 1,
                                .inputs = pair_in,
                                .outputs = pair_out,
                                .n_inputs = 1,
                                .n_outputs = 2,
                                .save_in = 1,
                                .infer = pair_infer,
                                .derive = pair_derive,
                                .decompose = pair_decompose };
TN_PLUGIN("org.example.mutant", "1.0.0", &pair);
