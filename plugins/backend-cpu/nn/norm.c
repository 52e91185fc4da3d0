/* SPDX-License-Identifier: MIT
 *
 * Normalization in few passes over the memory; simd/norm.c has the loops. A population is the set
 * of elements that share mean and variance: a row (the last dimensions of x) or a channel (all
 * dimensions but dimension 1). Tensors are contiguous, or have the channels last. float16 and
 * bfloat16 are converted to float32 first. */
#include "nn/norm.h"

#include "base/scratch.h"
#include "base/span.h"
#include "op/float32_call.h"
#include "simd/simd.h"

bool tn__norm_is_channels_last(const tn_view *view)
{
    int64_t next = view->shape[1];

    if (view->shape[1] > 1 && view->strides[1] != 1)
        return false;
    for (int32_t d = view->ndim; d-- > 2; next *= view->shape[d])
        if (view->shape[d] > 1 && view->strides[d] != next)
            return false;
    return view->shape[0] <= 1 || view->strides[0] == next;
}

bool tn__norm_has_layout(const struct tn__norm_layout *layout, const tn_view *view)
{
    return view == NULL ||
           (layout->channels_last ? tn__norm_is_channels_last(view) : tn__span_view_dense(view));
}

/* Describes in *out the populations that the reduced dimensions `dims` of x form. Returns false if
 * the kernels cannot compute them. */
static bool find_layout(const tn_view *x, tn_ints dims, struct tn__norm_layout *out)
{
    bool reduced[TN_MAX_DIMS] = { false };
    int32_t first = x->ndim;

    for (int64_t i = 0; i < dims.count; i++) {
        int64_t d = dims.at[i] < 0 ? dims.at[i] + x->ndim : dims.at[i];
        if (d < 0 || d >= x->ndim)
            return false;
        reduced[d] = true;
    }
    if (dims.count == 0 || tn__span_view_count(x) == 0)
        return false;
    out->channels = out->populations = out->segments = out->length = 1;
    bool others = x->ndim > 1 && !reduced[1];
    for (int32_t d = 0; d < x->ndim; d++)
        others = others && (d == 1 || reduced[d]);
    if (others && tn__norm_is_channels_last(x)) {
        out->channels_last = true;
        out->populations = x->shape[1];
        out->segments = tn__span_view_count(x) / x->shape[1];
        return true;
    }
    if (!tn__span_view_dense(x))
        return false;
    while (first > 0 && reduced[first - 1])
        out->length *= x->shape[--first];
    bool rows = true;
    for (int32_t d = 0; d < first; d++)
        rows &= !reduced[d];
    if (rows) {
        for (int32_t d = 0; d < first; d++)
            out->populations *= x->shape[d];
        return true;
    }
    /* All dimensions but dimension 1 are reduced. */
    if (x->ndim < 2 || reduced[1] || !reduced[0] || first > 2)
        return false;
    out->segments = x->shape[0];
    out->populations = x->shape[1];
    return true;
}

/* Describes in layout->affine whether `part`, the weight or the bias, has a number for each element
 * of a row or for each channel. NULL changes nothing. Returns false for other shapes. */
static bool find_affine(const tn_view *x, const tn_view *part, struct tn__norm_layout *layout)
{
    int64_t count = part ? tn__span_view_count(part) : 0, at = 0;
    int32_t lasting = 0;

    if (!part)
        return true;
    if (!tn__span_view_dense(part))
        return false;
    for (int32_t i = 0; i < part->ndim; i++)
        if (part->shape[i] != 1) {
            at = i - part->ndim + x->ndim;
            lasting++;
        }
    /* the shape [C, 1, ...]: a number for each channel, and each population is in one channel */
    bool channel = x->ndim >= 2 &&
                   ((lasting == 1 && at == 1) || (lasting == 0 && x->shape[1] == 1));
    int64_t behind = 1;
    for (int32_t d = 2; d < x->ndim; d++)
        behind *= x->shape[d];
    if (channel && count == x->shape[1] && layout->populations % count == 0 &&
        (layout->segments > 1 || layout->length == behind)) {
        if (layout->affine == TN__PER_ELEMENT)
            return false;
        layout->affine = TN__PER_POPULATION;
        layout->channels = count;
        return true;
    }
    if (layout->segments == 1 && count == layout->length) {
        if (layout->affine == TN__PER_POPULATION)
            return false;
        /* The shape of `part` must be equal to the last dimensions of x. */
        int64_t end = 1;
        for (int32_t i = 0; i < part->ndim && i < x->ndim; i++) {
            if (end == layout->length)
                break;
            if (part->shape[part->ndim - 1 - i] != x->shape[x->ndim - 1 - i])
                return false;
            end *= x->shape[x->ndim - 1 - i];
        }
        layout->affine = TN__PER_ELEMENT;
        return true;
    }
    return false;
}

static bool no(char *reason, size_t size)
{
    tn_snprint(reason, size,
               "expected a contiguous tensor reduced over its last dimensions, or a contiguous or "
               "channels-last tensor reduced over all dimensions but dimension 1");
    return false;
}

/* Returns whether the dtype of `part`, a weight, bias or moment, can be used with x: x's dtype or,
 * for an x of float16 or bfloat16, any float of at most 32 bits. */
static bool reads(const tn_view *x, const tn_view *part)
{
    return !part || tn_view_dtype(part) == tn_view_dtype(x) ||
           (tn__float16_index(tn_view_dtype(x)) >= 0 && part->dtype.bits <= 32);
}

static bool same_type(const tn_view *x, const tn_view *other)
{
    return tn_view_dtype(x) == tn_view_dtype(other);
}

static bool takes(const tn_call *call, tn_ints dims, struct tn__norm_layout *layout)
{
    return reads(call->in[0], call->in[1]) && reads(call->in[0], call->in[2]) &&
           find_layout(call->in[0], dims, layout) &&
           find_affine(call->in[0], call->in[1], layout) &&
           find_affine(call->in[0], call->in[2], layout) &&
           (call->out == NULL || tn__norm_has_layout(layout, call->out[0]));
}

static bool supports_standardize(const tn_call *call, char *reason, size_t size)
{
    const tn_standardize_options *o = call->options;
    struct tn__norm_layout layout = { .affine = TN__NO_AFFINE };

    return takes(call, o->dims, &layout) || no(reason, size);
}

static bool supports_standardize_relu(const tn_call *call, char *reason, size_t size)
{
    const tn_standardize_relu_options *o = call->options;
    struct tn__norm_layout layout = { .affine = TN__NO_AFFINE };

    return (takes(call, o->dims, &layout) && layout.affine != TN__PER_ELEMENT &&
            (!call->in[3] || same_type(call->in[0], call->in[3])) &&
            tn__norm_has_layout(&layout, call->in[3])) ||
           no(reason, size);
}

/* Returns whether the kernels can compute this gradient, and describes its layout. in[0] is gy;
 * in[at] and the inputs after it are x, mean, variance and weight. */
static bool back_takes(const tn_call *call, int at, tn_ints dims, tn_ints affine_shape,
                       struct tn__norm_layout *layout)
{
    const tn_view *const *in = call->in + at, *x = in[0];
    tn_view shape = { .shape = (int64_t *)(uintptr_t)affine_shape.at,
                      .ndim = (int32_t)affine_shape.count };
    int64_t strides[TN_MAX_DIMS], next = 1;
    bool fits = same_type(x, call->in[0]) && reads(x, in[1]) && reads(x, in[2]) &&
                reads(x, in[3]) && find_layout(x, dims, layout) && find_affine(x, in[3], layout) &&
                tn__norm_has_layout(layout, call->in[0]) && tn__span_view_dense(in[1]) &&
                tn__span_view_dense(in[2]);

    for (int32_t d = shape.ndim; d-- > 0; next *= shape.shape[d])
        strides[d] = next;
    shape.strides = strides;
    if (fits && shape.ndim > 0)
        fits = find_affine(x, &shape, layout);
    return fits && (call->out == NULL || tn__norm_has_layout(layout, call->out[0]));
}

static bool supports_standardize_grad(const tn_call *call, char *reason, size_t size)
{
    const tn_standardize_grad_options *o = call->options;
    struct tn__norm_layout layout = { .affine = TN__NO_AFFINE };

    return back_takes(call, 1, o->dims, o->affine_shape, &layout) || no(reason, size);
}

static bool supports_standardize_relu_grad(const tn_call *call, char *reason, size_t size)
{
    const tn_standardize_relu_grad_options *o = call->options;
    struct tn__norm_layout layout = { .affine = TN__NO_AFFINE };

    return (back_takes(call, 2, o->dims, o->affine_shape, &layout) &&
            layout.affine != TN__PER_ELEMENT && same_type(call->in[2], call->in[1]) &&
            tn__norm_has_layout(&layout, call->in[1]) &&
            (call->out == NULL || !o->residual || tn__norm_has_layout(&layout, call->out[3]))) ||
           no(reason, size);
}

static const void *at_of(const tn_view *view)
{
    return view ? tn__view_at(view) : NULL;
}

/* Returns the least number of populations for one thread: those of about 32768 elements. */
static int64_t grain_of(const struct tn__norm_layout *e)
{
    int64_t each = e->segments * e->length;
    return each >= 32768 ? 1 : 32768 / each + 1;
}

/* Channels last, in three steps: `sums` adds up blocks of rows, `moments` computes two numbers for
 * each channel from these sums (forward: mean and variance; backward: those that gx needs), and
 * `rows` computes the result block by block. */
static tn_status in_blocks(struct tn__norm_work *w, int64_t item, tn__norm_part *sums,
                           tn__norm_part *moments, tn__norm_part *rows)
{
    const struct tn__norm_layout *e = &w->layout;
    int64_t blocks = (e->segments + TN__NORM_ROWS - 1) / TN__NORM_ROWS,
            grain = 1 + 32768 / (e->populations * TN__NORM_ROWS);
    tn_status status;

    w->sums = tn__scratch_take((size_t)(blocks * 2 * e->populations * item));
    if (!w->sums)
        return TN_ERR_MEMORY;
    status = tn_parallel_for(blocks, grain, sums, w);
    if (status == TN_OK)
        status = tn_parallel_for(e->populations, 1 + 4096 / blocks, moments, w);
    if (status == TN_OK)
        status = tn_parallel_for(blocks, grain, rows, w);
    tn__scratch_give(w->sums);
    return status;
}

static tn_status forward(const tn_call *call, tn_ints dims, struct tn__norm_work *w)
{
    int which = tn__dtype_ct(call->dtype) == TN__F64;

    w->x = at_of(call->in[0]);
    w->weight = at_of(call->in[1]);
    w->bias = at_of(call->in[2]);
    w->y = tn__view_at(call->out[0]);
    w->mean = tn__view_at(call->out[1]);
    w->var = tn__view_at(call->out[2]);
    find_layout(call->in[0], dims, &w->layout);
    find_affine(call->in[0], call->in[1], &w->layout);
    find_affine(call->in[0], call->in[2], &w->layout);
    if (w->layout.channels_last)
        return in_blocks(w, tn__view_item(call->in[0]), tn__simd.norm->last_sums[which],
                         tn__simd.norm->last_moments[which], tn__simd.norm->last_forward[which]);
    return tn_parallel_for(w->layout.populations, grain_of(&w->layout),
                           tn__simd.norm->forward[which], w);
}

static tn_status standardize(const tn_call *call)
{
    const tn_standardize_options *o = call->options;
    struct tn__norm_work w = { .eps = o->eps };

    return forward(call, o->dims, &w);
}

static tn_status standardize_relu(const tn_call *call)
{
    const tn_standardize_relu_options *o = call->options;
    struct tn__norm_work w = {
        .eps = o->eps, .relu = true, .max = o->max, .residual = at_of(call->in[3])
    };

    return forward(call, o->dims, &w);
}

/* Computes the gradient. in[0] is gy; in[at] and the inputs after it are x, mean, variance and
 * weight. */
static tn_status back(const tn_call *call, int at, tn_ints dims, bool wants_affine,
                      struct tn__norm_work *w)
{
    const tn_view *const *in = call->in + at, *x = in[0], *gw = call->out[1];
    int which = tn__dtype_ct(call->dtype) == TN__F64;
    tn_status status = TN_OK;

    w->gy = at_of(call->in[0]);
    w->x = at_of(x);
    w->mean_in = at_of(in[1]);
    w->var_in = at_of(in[2]);
    w->weight = at_of(in[3]);
    w->gx = tn__view_at(call->out[0]);
    w->gw = tn__view_at(gw);
    w->gb = tn__view_at(call->out[2]);
    w->wants_affine = wants_affine;
    find_layout(x, dims, &w->layout);
    find_affine(x, in[3], &w->layout);
    if (wants_affine)
        find_affine(x, gw, &w->layout);
    if (w->layout.channels_last)
        return in_blocks(w, tn__view_item(x), tn__simd.norm->last_back_sums[which],
                         tn__simd.norm->last_back_moments[which], tn__simd.norm->last_back[which]);
    if (w->layout.affine == TN__PER_POPULATION)
        return tn_parallel_for(w->layout.channels, grain_of(&w->layout),
                               tn__simd.norm->channels[which], w);
    if (wants_affine) /* first, because gx may have the memory of gy */
        status = tn_parallel_for(w->layout.length, 64, tn__simd.norm->columns[which], w);
    if (status == TN_OK)
        status = tn_parallel_for(w->layout.populations, grain_of(&w->layout),
                                 tn__simd.norm->rows[which], w);
    return status;
}

static tn_status standardize_grad(const tn_call *call)
{
    const tn_standardize_grad_options *o = call->options;
    struct tn__norm_work w = { .eps = o->eps };

    return back(call, 1, o->dims, o->affine_shape.count > 0, &w);
}

static tn_status standardize_relu_grad(const tn_call *call)
{
    const tn_standardize_relu_grad_options *o = call->options;
    struct tn__norm_work w = { .eps = o->eps,
                               .max = o->max,
                               .gate = at_of(call->in[1]),
                               .gr = o->residual ? tn__view_at(call->out[3]) : NULL };

    return back(call, 2, o->dims, o->affine_shape.count > 0, &w);
}

/* ---- float16 and bfloat16 -------------------------------------------------------------------- */

/* Conversion between a tensor and a copy in float32. All tensors that the kernels above take fill
 * their memory without gaps, so the elements are converted in the order of memory. */
struct packed {
    const tn_view *from;
    float *to;
};

static tn_status widen(void *user, int64_t begin, int64_t end)
{
    const struct packed *p = user;
    int64_t item = tn__view_item(p->from);

    tn__dtype_load(tn_view_dtype(p->from),
                   TN__F32)(end - begin, tn__view_at(p->from) + begin * item, item, p->to + begin);
    return TN_OK;
}

static tn_status narrow_again(void *user, int64_t begin, int64_t end)
{
    const struct packed *p = user;
    int64_t item = tn__view_item(p->from);

    tn__dtype_store(TN__F32, tn_view_dtype(p->from))(end - begin, p->to + begin,
                                                     tn__view_at(p->from) + begin * item, item);
    return TN_OK;
}

enum {
    WIDEST = 8,           /* maximum number of inputs, and of results, of a kernel */
    CONVERT_GRAIN = 32768 /* minimum number of elements for one thread */
};

/* Returns the number of float32 that copies of all `from` not in float32 need. offsets[i] becomes
 * the position of the copy of from[i]; views[i] then becomes a copy of *from[i]. If from[i] needs
 * no copy, offsets[i] becomes -1, and views[i] is not set. */
static int64_t need(tn_view *views, const tn_view *const *from, int64_t n, int64_t *offsets)
{
    int64_t total = 0;

    for (int64_t i = 0; i < n; i++) {
        offsets[i] = -1;
        if (!from[i] || tn_view_dtype(from[i]) == TN_F32)
            continue;
        offsets[i] = total;
        total += (tn__span_view_count(from[i]) + 15) / 16 * 16;
        views[i] = *from[i];
    }
    return total;
}

/* Calls `run` with inputs and results in float32: converts the inputs before, the results after. */
static tn_status as_float32(const tn_call *call, tn_status (*run)(const tn_call *))
{
    if (tn__float16_index(call->dtype) < 0)
        return run(call);
    tn_view in[WIDEST], out[WIDEST];
    const tn_view *in_at[WIDEST], *out_at[WIDEST];
    int64_t in_offset[WIDEST], out_offset[WIDEST];
    int64_t ins = need(in, call->in, call->n_in, in_offset),
            outs = need(out, call->out, call->n_out, out_offset);
    float *memory = tn__scratch_take((size_t)(ins + outs) * sizeof *memory);
    tn_call wide = *call;
    tn_status status = TN_OK;

    if (!memory)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < call->n_in; i++) {
        in_at[i] = call->in[i];
        if (in_offset[i] < 0)
            continue;
        struct packed p = { call->in[i], memory + in_offset[i] };
        if (status == TN_OK)
            status = tn_parallel_for(tn__span_view_count(p.from), CONVERT_GRAIN, widen, &p);
        in[i].data = p.to;
        in[i].byte_offset = 0;
        tn__view_as_floats(&in[i], 32);
        in_at[i] = &in[i];
    }
    for (int64_t i = 0; i < call->n_out; i++) {
        out_at[i] = call->out[i];
        if (out_offset[i] < 0)
            continue;
        out[i].data = memory + ins + out_offset[i];
        out[i].byte_offset = 0;
        tn__view_as_floats(&out[i], 32);
        out_at[i] = &out[i];
    }
    wide.in = in_at;
    wide.out = out_at;
    wide.dtype = TN_F32;
    if (status == TN_OK)
        status = run(&wide);
    for (int64_t i = 0; i < call->n_out && status == TN_OK; i++) {
        if (out_offset[i] < 0)
            continue;
        struct packed p = { call->out[i], memory + ins + out_offset[i] };
        status = tn_parallel_for(tn__span_view_count(p.from), CONVERT_GRAIN, narrow_again, &p);
    }
    tn__scratch_give(memory);
    return status;
}

static tn_status run_standardize(const tn_call *call)
{
    return as_float32(call, standardize);
}

static tn_status run_standardize_relu(const tn_call *call)
{
    return as_float32(call, standardize_relu);
}

static tn_status run_standardize_grad(const tn_call *call)
{
    return as_float32(call, standardize_grad);
}

static tn_status run_standardize_relu_grad(const tn_call *call)
{
    return as_float32(call, standardize_relu_grad);
}

static tn_status run_batch_norm(const tn_call *call)
{
    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, 0, run_batch_norm);
    return tn__norm_batch(call);
}

static tn_status run_batch_norm_relu(const tn_call *call)
{
    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, 0, run_batch_norm_relu);
    return tn__norm_batch_relu(call);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_OVER_SUPPORTS(batch_norm, TN__FLOATS, 1, tn__norm_supports_running),
    TN__KERNEL_OVER_SUPPORTS(batch_norm_relu, TN__FLOATS, 1, tn__norm_supports_running),
    TN__KERNEL_OVER_SUPPORTS(standardize, TN__FLOATS, 1, supports_standardize),
    TN__KERNEL_OVER_SUPPORTS(standardize_grad, TN__FLOATS, 1, supports_standardize_grad),
    TN__KERNEL_OVER_SUPPORTS(standardize_relu, TN__FLOATS, 1, supports_standardize_relu),
    TN__KERNEL_OVER_SUPPORTS(standardize_relu_grad, TN__FLOATS, 1, supports_standardize_relu_grad),
};
TN__KERNEL_TABLE(norm);
