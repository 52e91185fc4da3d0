/* SPDX-License-Identifier: MIT
 *
 * An operator, y = x^3, with the errors (mutant_choose.h) that its derivative can have. */
#include "mutant_choose.h"

static bool sulks;

static tn_status cube_infer(tn_infer *infer)
{
    if (is("sulks") && infer->in[0]->ndim == 0) {
        sulks = true; /* and fails all later calls */
        return tn_fail(TN_ERR_VALUE, "a number has no cube here");
    }
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].ndim = infer->in[0]->ndim;
    for (int32_t d = 0; d < infer->in[0]->ndim; d++)
        infer->out[0].shape[d] = infer->in[0]->shape[d];
    return TN_OK;
}

static tn_status cube_derive(tn_derive *d)
{
    tn_tensor *x = is("cut") ? tn_detach(d->in[0]) : d->in[0];
    tn_tensor *g = is("cut") ? tn_detach(d->gout[0]) : d->gout[0];

    if (is("unfed") || is("hushed")) { /* no memory, no gradient, no error */
        void *block = tn_malloc(64);

        tn_free(block);
        if (block == NULL) {
            tn_error_clear();
            d->gin[0] = is("unfed") ? TN_NONE : NULL;
            return TN_OK;
        }
    }
    if (is("forgets")) { /* if one allocation fails, the other block is lost */
        void *first = tn_malloc(64), *second = tn_malloc(64);

        if (first == NULL || second == NULL)
            return TN_ERR_MEMORY;
        tn_free(first);
        tn_free(second);
    }
    if (is("no-slope")) /* 0 / 0 */
        x = tn_div(tn_sub(x, x), tn_sub(x, x));
    d->gin[0] = tn_mul(g, tn_mul_scalar(tn_mul(x, x), is("gradient") || is("straight") ? 2 : 3));
    return TN_OK;
}

static tn_status cube_decompose(const tn_decompose *call)
{
    call->out[0] = tn_mul(tn_mul(call->in[0], call->in[0]),
                          sulks ? tn_neg(call->in[0]) : call->in[0]);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_operand cube_in[] = { { "x", 0, TN_MASK_FLOAT } }, cube_out[] = { { "y", 0, 0 } };
static tn_op_def cube = { TN_HEAD(tn_op_def),    .name = "cube",
                          .math = "y = x^3",     .help = "the third power",
                          .revision = 1,         .flags = 0,
                          .inputs = cube_in,     .outputs = cube_out,
                          .n_inputs = 1,         .n_outputs = 1,
                          .save_in = 1,          .infer = cube_infer,
                          .derive = cube_derive, .decompose = cube_decompose };
/* Also right: the derivative is another function, and is declared so. */
__attribute__((constructor)) static void declare(void)
{
    cube.flags = is("straight") ? TN_OP_STRAIGHT_THROUGH : 0;
}

TN_PLUGIN("org.example.mutant", "1.0.0", &cube);
