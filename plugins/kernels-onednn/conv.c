/* SPDX-License-Identifier: MIT
 *
 * Convolution and its two derivatives with oneDNN, for float32 activations with channels last. The
 * batch is divided into parts; their number depends only on the size of the batch. Each part is
 * computed in one thread, and partial gradients are added in the order of the parts. So the bits of
 * the result do not depend on the number of threads. worth() selects the shapes for which oneDNN
 * was measured to be faster; see docs/plugins/kernels-onednn.md. */
#include <string.h>
#include <unistd.h>

#include "onednn.h"
#include "plan.h"

enum { ALIGN = 64 };

static int64_t up(size_t bytes)
{
    return (int64_t)((bytes + ALIGN - 1) / ALIGN * ALIGN);
}

static char *at(const tn_view *view)
{
    return (char *)view->data + view->byte_offset;
}

/* A call of any of the three operators. x always is the activation with the input channels, y the
 * activation with the output channels; each can be an input or the output of the call. */
struct job {
    struct shape shape;
    const tn_view *x, *y, *weight, *bias;
    int64_t batch, parts;
};

static void read_row(tn_ints given, int64_t dims, int64_t otherwise, int64_t *out)
{
    for (int64_t i = 0; i < dims; i++)
        out[i] = given.count <= 0 ? otherwise : given.at[given.count == 1 ? 0 : i];
}

/* Returns the largest number of parts of equal size, at most `most`, into which the batch can be
 * divided. */
static int64_t cut(int64_t batch, int64_t most)
{
    int64_t parts = batch < most ? batch : most;
    while (parts > 1 && batch % parts != 0)
        parts--;
    return parts;
}

static void job_fill(struct job *job, enum plan_kind kind, tn_ints stride, tn_ints padding,
                     tn_ints dilation, int64_t groups)
{
    struct shape *s = &job->shape;
    s->kind = kind;
    s->dims = job->x->ndim - 2;
    s->groups = groups;
    s->bias = job->bias != NULL;
    s->inputs = job->x->shape[1];
    s->outputs = job->y->shape[1];
    for (int64_t i = 0; i < s->dims; i++) {
        s->x[i] = job->x->shape[2 + i];
        s->y[i] = job->y->shape[2 + i];
        s->kernel[i] = job->weight->shape[2 + i];
    }
    read_row(stride, s->dims, 1, s->stride);
    read_row(padding, s->dims, 0, s->padding);
    read_row(dilation, s->dims, 1, s->dilation);
    job->batch = job->x->shape[0];
    job->parts = cut(job->batch, kind == PLAN_WEIGHT ? 4 : 8);
    s->images = job->parts > 0 ? job->batch / job->parts : 0;
}

static struct job job_of(const tn_call *call)
{
    struct job job;
    const tn_view *out = call->out ? call->out[0] : NULL;

    memset(&job, 0, sizeof job);
    if (strcmp(call->op, "convolution") == 0) {
        const tn_convolution_options *o = call->options;
        job.x = call->in[0], job.weight = call->in[1], job.bias = call->in[2], job.y = out;
        job_fill(&job, PLAN_FORWARD, o->stride, o->padding, o->dilation, o->groups);
    } else if (strcmp(call->op, "convolution_activation") == 0) {
        const tn_convolution_activation_options *o = call->options;
        job.x = call->in[0], job.weight = call->in[1], job.bias = call->in[2], job.y = out;
        job_fill(&job, PLAN_FORWARD, o->stride, o->padding, o->dilation, o->groups);
    } else if (strcmp(call->op, "convolution_grad_input") == 0) {
        const tn_convolution_grad_input_options *o = call->options;
        job.y = call->in[0], job.weight = call->in[1], job.x = out;
        job_fill(&job, PLAN_INPUT, o->stride, o->padding, o->dilation, o->groups);
    } else {
        const tn_convolution_grad_weight_options *o = call->options;
        job.y = call->in[0], job.x = call->in[1], job.weight = out;
        job_fill(&job, PLAN_WEIGHT, o->stride, o->padding, o->dilation, o->groups);
    }
    return job;
}

/* ---- for which calls oneDNN is used ---------------------------------------------------------- */

/* Checks whether a view is dense with channels last: the channels have stride 1, and the other
 * dimensions follow in row-major order. */
static bool channels_last(const tn_view *view)
{
    int64_t expect = 1;
    if (view->shape[1] != 1 && view->strides[1] != 1)
        return false;
    expect = view->shape[1];
    for (int32_t d = view->ndim - 1; d >= 2; expect *= view->shape[d--])
        if (view->shape[d] != 1 && view->strides[d] != expect)
            return false;
    return view->shape[0] == 1 || view->strides[0] == expect;
}

static bool rows(const tn_view *view)
{
    int64_t expect = 1;
    for (int32_t d = view->ndim; d-- > 0; expect *= view->shape[d])
        if (view->shape[d] != 1 && view->strides[d] != expect)
            return false;
    return true;
}

static int64_t count(const tn_view *view)
{
    int64_t n = 1;
    for (int32_t d = 0; d < view->ndim; d++)
        n *= view->shape[d];
    return n;
}

/* Returns whether the cpu backend can use Winograd's algorithm for this shape. It does so if it
 * expects that to be faster, unless TENON_MATH=exact. */
static bool winograd(const struct shape *s)
{
    for (int64_t d = 0; d < s->dims; d++)
        if (s->kernel[d] != 3 || s->stride[d] != 1 || s->dilation[d] != 1)
            return false;
    return s->inputs % 16 == 0 && s->outputs % 16 == 0 && s->inputs >= 32 && s->outputs >= 32;
}

/* Returns whether oneDNN was measured to be faster than the cpu backend's own kernels for this
 * shape (see bench/convolutions and docs/plugins/kernels-onednn.md). */
static bool worth(const struct job *job)
{
    enum { POINT = 16384, MANY = 64 };
    const struct shape *s = &job->shape;

    if (s->dims != 2) /* only 2-d convolutions were measured */
        return false;
    if (s->groups > 1)
        return true;
    if (s->kernel[0] == 1 && s->kernel[1] == 1)
        return s->inputs * s->outputs <= POINT;
    if (winograd(s))
        return false;
    /* One window of many pixels, as in the first layer of a DCGAN: the backend multiplies the
     * images of a batch together. */
    if (s->kind == PLAN_INPUT && s->y[0] == 1 && s->y[1] == 1)
        return false;
    return s->kind != PLAN_WEIGHT || s->inputs < MANY || s->outputs < MANY;
}

/* Returns whether parts that run at the same time may disturb each other. The gradient of a 1x1
 * weight with a stride had other bits in some runs while other processes used the cores, with
 * oneDNN 2.6.3 and AVX2, and never if one part ran at a time. */
static bool unsafe(const struct shape *s)
{
    bool strided = false;
    for (int64_t d = 0; d < s->dims; d++) {
        if (s->kernel[d] != 1)
            return false;
        strided = strided || s->stride[d] != 1;
    }
    return s->kind == PLAN_WEIGHT && strided;
}

bool onednn_convolution_supports(const tn_call *call, char *reason, size_t size)
{
    const char *why = NULL;
    if (call->out == NULL || call->out[0] == NULL) {
        tn_snprint(reason, size, "the strides of the result are not known yet");
        return false;
    }
    struct job job = job_of(call);
    if (getpid() != onednn_process)
        why = "oneDNN is not used in a child after fork";
    else if (job.shape.dims < 1 || job.shape.dims > DIMS || count(job.x) == 0 ||
             count(job.y) == 0 || count(job.weight) == 0)
        why = "there is nothing to compute";
    else if (job.parts < 2)
        why = "the batch cannot be divided among threads";
    else if (!channels_last(job.x) || !channels_last(job.y))
        why = "the activations are not channels last";
    else if (!rows(job.weight) || (job.bias && !rows(job.bias)))
        why = "the weight or the bias is not contiguous";
    else if (unsafe(&job.shape))
        why = "oneDNN's gradient of a 1x1 weight with a stride varies from run to run";
    else if (!onednn_all_shapes && !worth(&job))
        why = "the device's own kernel is faster for this shape";
    if (!why) {
        struct plan *plan = plan_take(&job.shape);
        if (!plan || !plan->main)
            why = "oneDNN has no implementation for this shape, or the process ends";
        plan_give(plan);
    }
    if (why)
        tn_snprint(reason, size, "%s", why);
    return why == NULL;
}

/* ---- computing ------------------------------------------------------------------------------- */

/* The layout of the workspace: first the weight in oneDNN's order (for PLAN_WEIGHT, one gradient
 * for each part), then scratch memory for each part. The scratch memory of a part is large enough
 * for the convolution and for the reordering. The members are sizes in bytes. */
struct room {
    int64_t weight, scratch, total;
};

static struct room room_of(const struct job *job, const struct plan *plan)
{
    struct room room = { 0, 0, 0 };
    bool many = plan->shape.kind == PLAN_WEIGHT;
    room.weight = plan->reorder || many ? up(dnnl.dnnl_memory_desc_get_size(&plan->weight)) : 0;
    room.scratch = up(plan->scratch > plan->reorder_scratch ? plan->scratch
                                                            : plan->reorder_scratch);
    room.total = room.weight * (many ? job->parts : 1) + room.scratch * job->parts + ALIGN;
    return room;
}

size_t onednn_convolution_workspace(const tn_call *call)
{
    struct job job = job_of(call);
    struct plan *plan = plan_take(&job.shape);
    size_t bytes = plan && plan->main ? (size_t)room_of(&job, plan).total : 0;
    plan_give(plan);
    return bytes;
}

struct argument {
    int index;
    const dnnl_memory_desc_t *desc;
    void *data;
};

static tn_status execute(dnnl_primitive_t primitive, const struct argument *arguments, int n)
{
    dnnl_exec_arg_t args[6];
    dnnl_stream_t stream = NULL;
    int before = dnnl_api_enter(), made = 0;
    dnnl_status_t error = dnnl.dnnl_stream_create(&stream, dnnl.engine, dnnl_stream_default_flags);

    for (; made < n && error == dnnl_success; made++) {
        args[made].arg = arguments[made].index;
        args[made].memory = NULL;
        error = dnnl.dnnl_memory_create(&args[made].memory, arguments[made].desc, dnnl.engine,
                                        arguments[made].data);
    }
    if (error == dnnl_success)
        error = dnnl.dnnl_primitive_execute(primitive, stream, n, args);
    if (error == dnnl_success)
        error = dnnl.dnnl_stream_wait(stream);
    for (int i = 0; i < made; i++)
        if (args[i].memory)
            dnnl.dnnl_memory_destroy(args[i].memory);
    if (stream)
        dnnl.dnnl_stream_destroy(stream);
    dnnl_api_leave(before);
    return error == dnnl_success ? TN_OK : dnnl_api_fail(error, "a convolution");
}

struct work {
    const struct job *job;
    const struct plan *plan;
    char *weight, *scratch;
    struct room room;
    dnnl_memory_desc_t scratch_desc;
};

static void scratch_desc(dnnl_memory_desc_t *desc, size_t bytes)
{
    dnnl_dims_t dims = { (int64_t)bytes };
    dnnl.dnnl_memory_desc_init_by_tag(desc, 1, dims, dnnl_u8, dnnl_x);
}

static tn_status one_part(const struct work *w, int64_t part)
{
    const struct plan *plan = w->plan;
    const struct shape *s = &plan->shape;
    int64_t images = part * s->images;
    char *x = at(w->job->x) + images * w->job->x->strides[0] * 4;
    char *y = at(w->job->y) + images * w->job->y->strides[0] * 4;
    char *weight = w->weight + (s->kind == PLAN_WEIGHT ? part * w->room.weight : 0);
    char *scratch = w->scratch + part * w->room.scratch;
    struct argument list[5];
    int n = 0;

    list[n++] = (struct argument){ s->kind == PLAN_INPUT ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC,
                                   &plan->x, x };
    list[n++] = (struct argument){ s->kind == PLAN_FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST,
                                   &plan->y, y };
    list[n++] = (struct argument){ s->kind == PLAN_WEIGHT ? DNNL_ARG_DIFF_WEIGHTS
                                                          : DNNL_ARG_WEIGHTS,
                                   &plan->weight, weight };
    if (s->kind == PLAN_FORWARD && s->bias)
        list[n++] = (struct argument){ DNNL_ARG_BIAS, &plan->bias, at(w->job->bias) };
    if (plan->scratch > 0)
        list[n++] = (struct argument){ DNNL_ARG_SCRATCHPAD, &w->scratch_desc, scratch };
    return execute(plan->main, list, n);
}

static tn_status some_parts(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = one_part(user, i);
    return status;
}

/* Adds the partial gradients of all parts to that of the first part, in the order of the parts. */
static tn_status add_parts(void *user, int64_t begin, int64_t end)
{
    const struct work *w = user;
    float *sum = (float *)(void *)w->weight;
    for (int64_t part = 1; part < w->job->parts; part++) {
        const float *more = (const float *)(const void *)(w->weight + part * w->room.weight);
        for (int64_t i = begin; i < end; i++)
            sum[i] += more[i];
    }
    return TN_OK;
}

static tn_status reorder(const struct work *w, const dnnl_memory_desc_t *from, void *in,
                         const dnnl_memory_desc_t *to, void *out)
{
    struct argument list[3] = { { DNNL_ARG_FROM, from, in }, { DNNL_ARG_TO, to, out } };
    dnnl_memory_desc_t scratch;
    int n = 2;
    if (w->plan->reorder_scratch > 0) {
        scratch_desc(&scratch, w->plan->reorder_scratch);
        list[n++] = (struct argument){ DNNL_ARG_SCRATCHPAD, &scratch, w->scratch };
    }
    return execute(w->plan->reorder, list, n);
}

tn_status onednn_convolution(const tn_call *call)
{
    struct job job = job_of(call);
    struct plan *plan = plan_take(&job.shape);
    struct work w = { .job = &job, .plan = plan };
    tn_status status = TN_OK;

    if (!plan)
        return TN_ERR_MEMORY;
    if (!plan->main) { /* supports() found a plan that was dropped since */
        plan_give(plan);
        return tn_fail(TN_ERR_RUNTIME, "oneDNN: a convolution: the process ends, and no plan is "
                                       "made any more");
    }
    w.room = room_of(&job, plan);
    scratch_desc(&w.scratch_desc, plan->scratch);
    char *memory = at(call->workspace);
    memory += (ALIGN - (uintptr_t)memory % ALIGN) % ALIGN;
    bool many = job.shape.kind == PLAN_WEIGHT;
    w.weight = w.room.weight ? memory : at(job.weight);
    w.scratch = memory + w.room.weight * (many ? job.parts : 1);
    if (!many && plan->reorder)
        status = reorder(&w, &plan->plain, at(job.weight), &plan->weight, w.weight);
    if (status == TN_OK)
        status = tn_parallel_for(job.parts, 1, some_parts, &w);
    if (status == TN_OK && many) {
        int64_t floats = (int64_t)(dnnl.dnnl_memory_desc_get_size(&plan->weight) / sizeof(float));
        status = tn_parallel_for(floats, 65536, add_parts, &w);
        if (status == TN_OK && plan->reorder)
            status = reorder(&w, &plan->weight, w.weight, &plan->plain, at(job.weight));
        else if (status == TN_OK)
            memcpy(at(job.weight), w.weight, (size_t)floats * sizeof(float));
    }
    plan_give(plan);
    return status;
}
