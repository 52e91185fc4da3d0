/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers for all parameters of a group; the norm and the unscaling of their gradients.
 * Each element is read and written once. The elements are divided into pieces, which depend on the
 * sizes of the parameters alone, and the pieces are distributed to the threads. */
#include <math.h>
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "nn/optimizer.h"

enum {
    PIECE = 16384, /* elements of a piece */
    MOST = 5       /* tensors of one parameter: itself, its gradient and its state */
};

/* Positions of the inputs of each operator: optional numbers, then the list of tensors. */
enum { SGD_LR, SGD_LIST, ADAM_STEP = 0, ADAM_LR, ADAM_LIST, UNSCALE_FOUND = 0, UNSCALE_LIST };

struct work {
    const tn_call *call;
    const tn_view *const *list; /* n tensors, `group` for each parameter */
    int64_t n, group;
    enum tn__ct ct;
    /* one of `step`, `fold` and `scale` is not NULL */
    tn__step_run *const *step;
    const void *numbers;                                        /* of the step */
    void (*const *fold)(int64_t n, const void *x, double *out); /* for a norm */
    void (*const *scale)(int64_t n, double by, void *x, double *out);
    double by;
    int64_t *first; /* index of the first piece of each parameter; at the end, their number */
    double *parts;  /* norm: the result of each piece */
    double norm;    /* the combined results */
};

static bool same_order(const tn_view *a, const tn_view *b)
{
    for (int32_t d = 0; d < a->ndim; d++)
        if (a->shape[d] != 1 && a->strides[d] != b->strides[d])
            return false;
    return true;
}

/* Returns whether the elements of `view` fill their memory without gaps, in any order of the
 * dimensions. */
static bool packed(const tn_view *view)
{
    bool used[TN_MAX_DIMS] = { false };
    int64_t expect = 1;

    for (int32_t found = 0; found < view->ndim; found++) {
        int32_t at = -1;
        for (int32_t d = 0; d < view->ndim && at < 0; d++)
            if (!used[d] && (view->shape[d] == 1 || view->strides[d] == expect))
                at = d;
        if (at < 0)
            return false;
        used[at] = true;
        expect *= view->shape[at];
    }
    return true;
}

/* Tensors without gaps that have the strides of their parameter can be walked together in the order
 * of memory. */
bool tn__optimizer_takes(const tn_call *call, int64_t first, int64_t group, char *reason,
                         size_t size)
{
    const tn_view *const *list = call->in + first;

    for (int64_t i = 0; i < call->n_in - first; i++) {
        if (packed(list[i]) && same_order(list[i], list[i - i % group]))
            continue;
        tn_snprint(reason, size, "tensor %lld: expected the strides of its parameter, without gaps",
                   (long long)i);
        return false;
    }
    return true;
}

static int64_t sgd_group(const tn_call *call)
{
    return ((const tn_sgd_step_options *)call->options)->momentum != 0 ? 3 : 2;
}

static int64_t adam_group(const tn_call *call)
{
    return ((const tn_adam_step_options *)call->options)->amsgrad ? 5 : 4;
}

static bool supports_sgd_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, SGD_LIST, sgd_group(call), reason, size);
}

static bool supports_adam_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, ADAM_LIST, adam_group(call), reason, size);
}

/* Returns the index of the parameter to which piece `piece` belongs. */
static int64_t parameter_of(const struct work *w, int64_t piece)
{
    int64_t low = 0, high = w->n / w->group;

    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (w->first[middle] <= piece)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static tn_status pieces(void *user, int64_t begin, int64_t end)
{
    const struct work *w = user;
    int64_t parameter = parameter_of(w, begin);

    for (int64_t piece = begin; piece < end; piece++) {
        while (w->first[parameter + 1] <= piece)
            parameter++;
        const tn_view *const *views = w->list + parameter * w->group;
        int64_t from = (piece - w->first[parameter]) * PIECE,
                n = tn__span_view_count(views[0]) - from;
        void *at[MOST];
        for (int64_t k = 0; k < w->group; k++)
            at[k] = tn__view_at(views[k]) + from * tn__view_item(views[k]);
        n = n < PIECE ? n : PIECE;
        if (w->step)
            w->step[w->ct](n, w->numbers, at);
        else if (w->scale)
            w->scale[w->ct](n, w->by, at[0], &w->parts[piece]);
        else
            w->fold[w->ct](n, at[0], &w->parts[piece]);
    }
    return TN_OK;
}

/* Divides the tensors in the list, inputs [first, n_in), into pieces and computes them. `folds`:
 * combines the results of the pieces to w->norm. */
static tn_status run(struct work *w, int64_t first, bool folds)
{
    int64_t count = (w->call->n_in - first) / w->group, all = 0;
    tn_status status;

    w->list = w->call->in + first;
    w->n = w->call->n_in - first;
    for (int64_t i = 0; i < count; i++)
        all += (tn__span_view_count(w->list[i * w->group]) + PIECE - 1) / PIECE;
    w->ct = tn__dtype_ct(w->call->dtype);
    w->first = tn__scratch_take((size_t)(count + 1) * sizeof *w->first +
                                (folds ? (size_t)all * sizeof *w->parts : 0));
    if (!w->first)
        return TN_ERR_MEMORY;
    w->parts = (double *)(void *)(w->first + count + 1);
    w->first[0] = 0;
    for (int64_t i = 0; i < count; i++)
        w->first[i + 1] = w->first[i] +
                          (tn__span_view_count(w->list[i * w->group]) + PIECE - 1) / PIECE;
    status = tn_parallel_for(all, 2, pieces, w);
    for (int64_t i = 0; folds && i < all; i++) { /* in order: equal bits for any thread count */
        double part = w->parts[i];
        if (w->fold != tn__simd.optimizer->largest)
            w->norm += part;
        else if (part > w->norm || part != part)
            w->norm = part;
    }
    tn__scratch_give(w->first);
    return status;
}

tn_status tn__optimizer_run(const tn_call *call, int64_t first, int64_t group,
                            tn__step_run *const *step, const void *numbers)
{
    struct work w = { .call = call, .group = group, .step = step, .numbers = numbers };

    return run(&w, first, false);
}

double tn__optimizer_number(const tn_view *tensor, double option)
{
    if (tensor == NULL)
        return option;
    switch (tn_view_dtype(tensor)) {
    case TN_F64: return *(const double *)(const void *)tn__view_at(tensor);
    case TN_I64: return (double)*(const int64_t *)(const void *)tn__view_at(tensor);
    default: return (double)*(const float *)(const void *)tn__view_at(tensor);
    }
}

static tn_status run_sgd_step(const tn_call *call)
{
    const tn_sgd_step_options *o = call->options;
    double lr = tn__optimizer_number(call->in[SGD_LR], o->lr);
    struct tn__sgd numbers = { lr,          o->momentum, o->dampening, o->weight_decay,
                               o->nesterov, o->maximize, o->first };

    return tn__optimizer_run(call, SGD_LIST, sgd_group(call), tn__simd.optimizer->sgd, &numbers);
}

static tn_status run_adam_step(const tn_call *call)
{
    const tn_adam_step_options *o = call->options;
    double step = tn__optimizer_number(call->in[ADAM_STEP], (double)o->step);
    double lr = tn__optimizer_number(call->in[ADAM_LR], o->lr);
    double one = 1 - pow(o->beta1, step), two = 1 - pow(o->beta2, step);
    struct tn__adam numbers = {
        .weight_decay = o->decoupled ? 0 : o->weight_decay,
        .shrink = o->decoupled ? 1 - lr * o->weight_decay : 1,
        .follow1 = 1 - o->beta1,
        .keep2 = o->beta2,
        .follow2 = 1 - o->beta2,
        .rate = lr / one,
        .scale = 1 / sqrt(two),
        .eps = o->eps,
        .amsgrad = o->amsgrad,
        .maximize = o->maximize,
    };

    if (!(step >= 1))
        return tn_fail(TN_ERR_VALUE,
                       "adam_step: step_tensor: out of range, got %g; expected 1 or more", step);
    return tn__optimizer_run(call, ADAM_LIST, adam_group(call), tn__simd.optimizer->adam, &numbers);
}

static bool supports_total_norm(const tn_call *call, char *reason, size_t size)
{
    double p = ((const tn_total_norm_options *)call->options)->p;

    if (p == 1 || p == 2 || p == INFINITY)
        return tn__optimizer_takes(call, 0, 1, reason, size);
    tn_snprint(reason, size, "p: not supported, got %g; expected 1, 2 or inf", p);
    return false;
}

/* Writes the element of a 0-d tensor. */
static void put(const tn_view *view, double value)
{
    if (tn_view_dtype(view) == TN_F32)
        *(float *)(void *)tn__view_at(view) = (float)value;
    else
        *(double *)(void *)tn__view_at(view) = value;
}

static tn_status run_total_norm(const tn_call *call)
{
    double p = ((const tn_total_norm_options *)call->options)->p;
    struct work w = { .call = call,
                      .group = 1,
                      .fold = p == 1   ? tn__simd.optimizer->sum
                              : p == 2 ? tn__simd.optimizer->squares
                                       : tn__simd.optimizer->largest };
    tn_status status = run(&w, 0, true);
    double norm = p == 2 ? sqrt(w.norm) : w.norm;

    if (status == TN_OK)
        put(call->out[0], norm);
    return status;
}

static bool supports_unscale(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, UNSCALE_LIST, 1, reason, size);
}

static tn_status run_unscale(const tn_call *call)
{
    struct work w = { .call = call,
                      .group = 1,
                      .scale = tn__simd.optimizer->unscale,
                      .by = ((const tn_unscale_options *)call->options)->factor };
    tn_status status = run(&w, UNSCALE_LIST, true);

    if (status == TN_OK && isnan(w.norm))
        put(call->in[UNSCALE_FOUND], 1);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(sgd_step, TN__F32_F64, supports_sgd_step),
    TN__KERNEL_SUPPORTS(adam_step, TN__F32_F64, supports_adam_step),
    TN__KERNEL_SUPPORTS(total_norm, TN__F32_F64, supports_total_norm),
    TN__KERNEL_SUPPORTS(unscale, TN__F32_F64, supports_unscale),
};
TN__KERNEL_TABLE(optimizer);
