/* SPDX-License-Identifier: MIT
 *
 * Functions that descriptors have to have, for tests that only register them. */
#ifndef TN_TESTS_PLUGIN_STUBS_H
#define TN_TESTS_PLUGIN_STUBS_H

#include "tests/plugin/suite.h"

static tn_status infer(tn_infer *infer)
{
    infer->out[0].dtype = TN_F32;
    infer->out[0].ndim = 0;
    return TN_OK;
}

static tn_tensor *forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    (void)self, (void)args;
    return TN_OK;
}

static tn_status schedule(tn_scheduler *self, tn_schedule_args *args)
{
    (void)self, (void)args;
    return TN_OK;
}

static tn_status fill(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    (void)data, (void)tensor;
    return TN_OK;
}

static TN_ATTR(unused) tn_status pass(const tn_pass_def *self, const tn_pass_args *args)
{
    (void)self, (void)args;
    return TN_OK;
}

static TN_ATTR(unused) tn_status
    claim(const tn_compiler_def *self, const tn_region *graph, const tn_claims *claims)
{
    (void)self, (void)graph, (void)claims;
    return TN_OK;
}

static TN_ATTR(unused) tn_status
    compile(const tn_compiler_def *self, const tn_region *part, tn_program *out)
{
    (void)self, (void)part, (void)out;
    return TN_OK;
}

static TN_ATTR(unused) tn_status run_region(void *program, const tn_region_call *call)
{
    (void)program, (void)call;
    return TN_OK;
}

static TN_ATTR(unused) tn_status
    open_group(const tn_comm_def *self, const tn_comm_args *args, void **comm)
{
    (void)self, (void)args, (void)comm;
    return TN_OK;
}

static TN_ATTR(unused) void close_group(void *comm)
{
    (void)comm;
}

static TN_ATTR(unused) tn_status open_data(tn_dataset_open *args)
{
    (void)args;
    return TN_OK;
}

static TN_ATTR(unused) tn_status get_sample(const tn_sample_args *args)
{
    return tn_pack_add(args->out, NULL, tn_value_int(args->index));
}

static TN_ATTR(unused) tn_status apply(tn_transform_args *args)
{
    return tn_pack_add(args->out, NULL, tn_pack_at(args->in, 0));
}

static TN_ATTR(unused) tn_tensor *mask(const tn_prune_def *self, const void *options,
                                       tn_tensor *scores, tn_tensor *mask)
{
    (void)self, (void)options, (void)scores;
    return mask;
}

#endif
