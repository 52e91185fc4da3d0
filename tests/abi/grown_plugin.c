/* SPDX-License-Identifier: MIT
 *
 * For grow.sh: the operators of grown.ops as a plugin, or with -DPACK kernels for them, which add
 * 1000. Compiled with the schema of version 1 or 2. */
#include "grown.h"
#include "schema.h"

static const float *values(const tn_view *view)
{
    return (const float *)(const void *)((const char *)view->data + view->byte_offset);
}

#ifdef PACK

static tn_status add_total(const tn_call *call, const tn_option *table)
{
    double y = 1000 + (double)values(call->in[0])[0] + grown_total(table, call->options);

    for (int64_t i = 1; i < call->n_in; i++)
        if (call->in[i] != NULL)
            y += 10 * (double)values(call->in[i])[0];
    for (int32_t i = 0; i < call->n_out; i++)
        ((float *)(uintptr_t)values(call->out[i]))[0] = (float)y;
    return TN_OK;
}

/* The definition is only read for the table of options of the version. */
#define RUN(name_)                                                                                 \
    static const tn_op_def def_##name_ = { TN_HEAD(tn_op_def), TN_SCHEMA_##name_ };                \
    static tn_status run_##name_(const tn_call *call)                                              \
    {                                                                                              \
        return add_total(call, def_##name_.options);                                               \
    }                                                                                              \
    static const tn_kernel_def name_ = TN_KERNEL(#name_, "cpu", #name_ ".pack", TN_BIT(TN_F32),    \
                                                 run_##name_);
GROWN(RUN)
#define ADDRESS(name_) &name_,
TN_PLUGIN("org.tenon.grownpack", "1.0.0", GROWN(ADDRESS));

#else

static tn_status like_x(tn_infer *infer)
{
    for (int32_t i = 0; i < infer->n_out; i++) {
        infer->out[i].dtype = tn_view_dtype(infer->in[0]);
        infer->out[i].ndim = 1;
        infer->out[i].shape[0] = infer->in[0]->shape[0];
    }
    return TN_OK;
}

static tn_status decompose(const tn_decompose *call)
{
    double total = grown_total(call->op->options, call->options);
    tn_tensor *y = tn_add_scalar(call->in[0], tn_scalar_float(total));

    for (int64_t i = 1; i < call->n_in; i++)
        if (call->in[i] != TN_NONE)
            y = tn_add(y, tn_mul_scalar(call->in[i], tn_scalar_float(10)));
    for (int32_t i = 0; i < call->n_out; i++)
        call->out[i] = i == 0 ? y : call->in[0];
    return y != NULL ? TN_OK : tn_error_last_code();
}

#define OP(name_)                                                                                  \
    static const tn_op_def name_ = { TN_HEAD(tn_op_def), TN_SCHEMA_##name_, .infer = like_x,       \
                                     .decompose = decompose };
GROWN(OP)
#define ADDRESS(name_) &name_,
TN_PLUGIN("org.tenon.grown", "1.0.0", GROWN(ADDRESS));

#endif
