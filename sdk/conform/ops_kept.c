/* SPDX-License-Identifier: MIT
 *
 * Prepared calls (tn_op_prepare) and recorded calls. What a kernel prepares must not change its
 * results, and a kernel with TN_KERNEL_CAPTURE_SAFE must give the same results at each launch of a
 * recorded call. */
#include "ops.h"

#include <stdlib.h>

enum { KEPT_CASES = 4 }; /* cases of each dtype; all cases if the kernel has a prepare function */

/* Checks that a call gave the same bits as a plain call. */
static bool same_results(subject *s, where_from *w, tn_tensor *const *plain, tn_tensor *const *out,
                         const char *how)
{
    bool well = true;

    for (w->index = 0; w->index < w->one->def->n_outputs && well; w->index++)
        well = conform_same_bits(s, w, plain[w->index], out[w->index], how);
    w->index = 0;
    return well;
}

/* Reports a failure of the test with the last error; returns false. */
static bool failed(subject *s, const where_from *w, const char *what)
{
    char words[400];

    snprintf(words, sizeof words, "%s: %.300s", what, tn_error_text());
    return conform_differ(s, w, words);
}

static bool run_twice(subject *s, where_from *w, tn_prepared *kept, const attempt *a,
                      tn_tensor *const *plain, const char *how)
{
    const conform_case *one = w->one;
    tn_tensor *out[OPERANDS];

    for (int i = 0; i < 2; i++) {
        if (tn_prepared_run(kept, a->in, one->n_in, out, one->def->n_outputs) != TN_OK)
            return failed(s, w, how);
        if (!same_results(s, w, plain, out, how))
            return false;
    }
    return true;
}

/* Halves the elements of a float32 tensor on the device. Returns false if the tensor has another
 * dtype or is empty, or if copying fails. */
static bool halve(tn_tensor *x)
{
    int64_t count = tn_tensor_numel(x);
    size_t bytes = (size_t)count * sizeof(float);
    float *values;
    bool well;

    if (x == TN_NONE || tn_tensor_dtype(x) != TN_F32 || count == 0)
        return false;
    values = malloc(bytes);
    well = values != NULL && tn_tensor_copy_out(x, values, bytes) == TN_OK;
    for (int64_t i = 0; well && i < count; i++)
        values[i] /= 2;
    well = well && tn_tensor_copy_in(x, values, bytes) == TN_OK;
    free(values);
    return well;
}

/* Halves the float32 inputs of a prepared call, all of which are constant. The kernel must then
 * prepare again, so that the results follow the new values. */
static bool prepares_again(subject *s, where_from *w, tn_prepared *kept, const attempt *a)
{
    const conform_case *one = w->one;
    tn_tensor *plain[OPERANDS];
    bool changed = false;

    for (int64_t i = 0; i < one->n_in; i++)
        changed |= halve(a->in[i]);
    if (!changed)
        return true;
    if (tn_op_call(one->op, a->in, one->n_in, one->options, plain, one->def->n_outputs) != TN_OK) {
        tn_error_clear(); /* the operator may refuse the new values */
        return true;
    }
    return run_twice(s, w, kept, a, plain,
                     "as a prepared call, after its constant inputs were written to,");
}

/* Records a prepared call on a new stream and launches the record twice. */
static bool is_recorded(subject *s, where_from *w, tn_prepared *kept, const attempt *a)
{
    const conform_case *one = w->one;
    tn_stream *stream = tn_stream_new(s->device, NULL);
    tn_device_graph *graph = NULL;
    tn_tensor *out[OPERANDS];
    bool well = true;

    if (stream == NULL || tn_device_sync(s->device) != TN_OK || tn_stream_begin(stream) != TN_OK) {
        tn_stream_drop(stream);
        return failed(s, w, "creating a stream to record on");
    }
    if (tn_stream_capture_begin(stream) == TN_OK) {
        (void)tn_prepared_run(kept, a->in, one->n_in, out, one->def->n_outputs);
        graph = tn_stream_capture_end(stream);
        well = graph != NULL || failed(s, w, "recording a call");
    } else {
        well = tn_error_code() == TN_ERR_NOT_IMPLEMENTED || failed(s, w, "capture_begin");
        tn_error_clear();
    }
    for (int i = 0; i < 2 && graph != NULL && well; i++)
        well = tn_device_graph_launch(graph, stream) == TN_OK
                   ? same_results(s, w, a->out, out, "launched from a record")
                   : failed(s, w, "capture_launch");
    tn_stream_end();
    tn_device_graph_drop(graph);
    tn_stream_drop(stream);
    return well;
}

/* Returns true if x has the dtype and shape of y, and elements. */
static bool same_form(const tn_tensor *x, const tn_tensor *y)
{
    bool same = x != TN_NONE && tn_tensor_dtype(x) == tn_tensor_dtype(y) &&
                tn_tensor_ndim(x) == tn_tensor_ndim(y) && tn_tensor_numel(y) > 0;

    for (int32_t d = 0; same && d < tn_tensor_ndim(y); d++)
        same = tn_tensor_size(x, d) == tn_tensor_size(y, d);
    return same;
}

/* For each input that the kernel may overwrite (tn_kernel_def.inplace): runs a prepared call whose
 * output is a copy of this input. */
static bool in_place_of_each(subject *s, where_from *w, const attempt *a)
{
    const conform_case *one = w->one;
    tn_tensor *in[OPERANDS], *into[OPERANDS];
    tn_prepared *kept;
    bool well = true;

    for (int64_t i = 0; i < one->n_in && i < 64 && one->def->n_outputs > 0 && well; i++) {
        bool known = i == 0 &&
                     (one->def->flags & TN_OP_INPLACE) != 0; /* tested by in_place() in ops.c */

        if (known || !same_form(a->in[i], a->out[0]))
            continue;
        for (int64_t k = 0; k < one->n_in; k++)
            in[k] = a->in[k];
        in[i] = into[0] = tn_tensor_empty(tn_tensor_shape(a->in[i]), tn_tensor_dtype(a->in[i]),
                                          s->device);
        if (into[0] == NULL || tn_tensor_copy_async(into[0], a->in[i]) != TN_OK)
            return failed(s, w, "copying an input");
        for (int32_t k = 1; k < one->def->n_outputs; k++) {
            into[k] = tn_tensor_empty(tn_tensor_shape(a->out[k]), tn_tensor_dtype(a->out[k]),
                                      s->device);
            if (into[k] == NULL)
                return failed(s, w, "creating an output");
        }
        kept = tn_op_prepare(one->op, in, one->n_in, one->options, 0);
        if (kept != NULL && (tn_prepared_kernel(kept)->inplace >> i & 1) != 0) {
            well = tn_prepared_run_into(kept, in, one->n_in, into, one->def->n_outputs) == TN_OK ||
                   failed(s, w, "into an input that `inplace` names");
            for (int32_t k = 0; k < one->def->n_outputs && well; k++)
                well = conform_same_bits(s, w, a->out[k], into[k],
                                         "into an input that `inplace` names");
            s->c->checks++;
        }
        tn_prepared_drop(kept);
        tn_error_clear();
    }
    return well;
}

static bool is_kept(subject *s, where_from *w, const attempt *a)
{
    const conform_case *one = w->one;
    tally *row = &s->row[w->dtype];
    const tn_kernel_def *kernel;
    bool well = true;

    for (int64_t i = 0; i < one->n_in; i++)
        if (one->def->inputs[i < one->def->n_inputs ? i : one->def->n_inputs - 1].flags &
            TN_OPERAND_WRITTEN)
            return true;
    for (int constant = 0; constant < 2 && well; constant++) {
        tn_prepared *kept = tn_op_prepare(one->op, a->in, one->n_in, one->options,
                                          constant ? UINT64_MAX : 0);

        if (kept == NULL) { /* views, casts, decompositions and random numbers cannot be kept */
            well = tn_error_code() == TN_ERR_NOT_IMPLEMENTED || tn_error_code() == TN_ERR_TYPE ||
                   failed(s, w, "prepare");
            tn_error_clear();
            return well;
        }
        kernel = tn_prepared_kernel(kept);
        if (row->kept < KEPT_CASES || kernel->prepare != NULL)
            well = run_twice(s, w, kept, a, a->out, "as a prepared call");
        if (well && row->kept < KEPT_CASES && kernel->flags & TN_KERNEL_CAPTURE_SAFE)
            well = is_recorded(s, w, kept, a);
        if (well && !constant && kernel->inplace != 0)
            well = in_place_of_each(s, w, a);
        if (well && constant && kernel->prepare != NULL)
            well = prepares_again(s, w, kept, a);
        tn_prepared_drop(kept);
        s->c->checks++;
    }
    row->kept++;
    return well;
}

bool conform_kept(subject *s, where_from *w, const attempt *a)
{
    bool well;

    tn_device_begin(s->device); /* operators without inputs need a current device */
    well = is_kept(s, w, a);
    tn_device_end();
    return well;
}
