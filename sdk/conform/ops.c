/* SPDX-License-Identifier: MIT
 *
 * The levels ops and grad of tenon check: every operator that a device runs, forward and backward, in all its dtypes and
 * several layouts, against the reference, which computes in float64. */
#include "conform.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reference.h"

#define DTYPES ((tn_dtype)(TN_C128 + 1))

/* Second derivatives: of so many cases, while they are likely to take so many seconds of the processor. */
enum { OPERANDS = 64, SECONDS = 12, WORTH = 4 };

/* Operators whose results jump where a rounding error decides: the reference computes them in the dtype itself. */
static const char *const jumping[] = { "softplus",
                                       "philox_uniform",
                                       "philox_normal",
                                       "floor",
                                       "ceil",
                                       "trunc",
                                       "round",
                                       "frac",
                                       "sign",
                                       "div",
                                       "remainder",
                                       "fmod",
                                       "eq",
                                       "ne",
                                       "lt",
                                       "le",
                                       "gt",
                                       "ge",
                                       "argmax",
                                       "argmin",
                                       "sort",
                                       "topk",
                                       "max_dim",
                                       "min_dim",
                                       "isclose",
                                       "nonzero",
                                       "cast",
                                       "arange",
                                       "linspace",
                                       "bucketize",
                                       "hardshrink",
                                       "heaviside",
                                       "nan_to_num",
                                       "isfinite",
                                       "isinf",
                                       "pow",
                                       "copy",
                                       "fill",
                                       "full",
                                       NULL };

typedef struct tally {
    int64_t cases, failed, missing;
    bool repeated; /* and called from several threads */
    double worst;
    char route[96];
} tally;

typedef struct subject {
    conform *c;
    const tn_device *device;
    uint32_t dtypes; /* that the device computes with */
    bool gradients;
    tally row[DTYPES];
    int64_t refused, called;
    int seconds; /* cases of which second derivatives were looked at */
    clock_t spent;
} subject;

static bool is_in(const char *const *list, const char *name)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static bool is_float(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}

static bool is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}

/* The dtype of a case: of its first float or complex input, else of its first. */
static tn_dtype dtype_of(const conform_case *one)
{
    tn_dtype dtype = TN_F32;
    bool found = false;

    for (int64_t i = 0; i < one->n_in; i++) {
        const conform_tensor *t = &one->in[i];

        if (t->there && (is_float(t->dtype) || is_complex(t->dtype)))
            return t->dtype;
        if (t->there && !found) {
            dtype = t->dtype;
            found = true;
        }
    }
    return dtype;
}

/* Whether the operator takes the case with its inputs of `from` as `dtype`. */
static bool accepts(const conform_case *one, tn_dtype from, tn_dtype dtype)
{
    for (int64_t i = 0; i < one->n_in; i++) {
        const tn_operand *operand =
            &one->def->inputs[i < one->def->n_inputs ? i : one->def->n_inputs - 1];

        if (one->in[i].there && one->in[i].dtype == from && operand->dtypes != 0 &&
            !(operand->dtypes & TN_BIT(dtype)))
            return false;
    }
    return true;
}

/* What a kernel may be off in a type; what comes apart rounds at every step, and so do gradients. */
static double allowance(const tally *row, tn_dtype dtype, bool gradients)
{
    bool steps = gradients || strncmp(row->route, "kernel", 6) != 0;

    return is_float(dtype) && dtype != TN_F64 && steps ? 4 : 1;
}

/* ---- one call ---- */

typedef struct attempt {
    tn_tensor *in[OPERANDS], *whole[OPERANDS], *out[OPERANDS];
    tn_status status;
} attempt;

/* Inputs in `dtype` where the case has `from`; on the reference in float64 where `wide` says so. */
static tn_status make_inputs(const conform_case *one, tn_dtype from, tn_dtype dtype, bool wide,
                             const tn_device *device, conform_layout layout, bool grad, attempt *a)
{
    for (int64_t i = 0; i < one->n_in; i++) {
        const conform_tensor *t = &one->in[i];
        tn_dtype own = t->dtype == from ? dtype : t->dtype;

        a->in[i] = TN_NONE;
        a->whole[i] = NULL;
        if (!t->there)
            continue;
        a->in[i] = conform_tensor_make(t, own, device, layout, &a->whole[i]);
        if (a->in[i] != NULL && wide && is_float(own) && own != TN_F64)
            a->in[i] = tn_copy_(tn_tensor_empty(tn_tensor_shape(a->in[i]), TN_F64, device),
                                a->in[i]);
        if (a->in[i] != NULL && wide && own == TN_C64)
            a->in[i] = tn_copy_(tn_tensor_empty(tn_tensor_shape(a->in[i]), TN_C128, device),
                                a->in[i]);
        if (a->in[i] == NULL)
            return tn_error_code();
        if (grad && t->grad && tn_tensor_set_requires_grad(a->in[i], true) != TN_OK)
            return tn_error_code();
    }
    return TN_OK;
}

/* How many tensors a call gives: of an operator that has no outputs, those that it writes into. */
static int32_t results(const conform_case *one)
{
    return one->def->n_outputs > 0 ? one->def->n_outputs : (int32_t)one->n_in;
}

/* What is written into are copies, so that the inputs serve again. */
static tn_status run(const conform_case *one, tn_tensor *const *in, tn_tensor **out)
{
    if (one->def->n_outputs > 0)
        return tn_op_call(one->op, in, one->n_in, one->options, out, one->def->n_outputs);
    for (int64_t i = 0; i < one->n_in; i++) {
        out[i] = tn_clone(in[i]);
        if (out[i] == NULL)
            return tn_error_code();
    }
    return tn_op_call(one->op, out, one->n_in, one->options, NULL, 0);
}

static tn_status call(const conform_case *one, const tn_device *device, uint64_t seed, attempt *a)
{
    tn_device_begin(device);
    tn_random_seed(seed);
    a->status = run(one, a->in, a->out);
    if (a->status == TN_OK)
        a->status = tn_device_sync(device);
    tn_device_end();
    return a->status;
}

/* ---- comparing ---- */

typedef struct where_from {
    const conform_case *one;
    tn_dtype dtype;
    const char *layout, *what;
    int64_t index;
} where_from;

static const char *const layout_names[] = { "as given", "with gaps", "first dimension innermost" };

static bool differ(subject *s, const where_from *w, const char *words)
{
    return conform_fail(s->c, "case %s as %s, inputs %s: %s %lld: %s", w->one->name,
                        tn_dtype_name(w->dtype), w->layout, w->what, (long long)w->index, words);
}

/* Shapes, then elements, against what the reference gave. */
static bool compare(subject *s, const where_from *w, tn_tensor *got, tn_tensor *expected)
{
    tn_dtype dtype = tn_tensor_dtype(got);
    double allowed = conform_tolerance(dtype), scale = 0, *a, *b;
    int64_t count_a = 0, count_b = 0;
    tally *row = &s->row[w->dtype < DTYPES ? w->dtype : TN_F32];
    double slack = allowance(row, w->dtype, s->gradients);
    char words[200];
    bool same = tn_tensor_ndim(got) == tn_tensor_ndim(expected);

    for (int32_t d = 0; same && d < tn_tensor_ndim(got); d++)
        same = tn_tensor_size(got, d) == tn_tensor_size(expected, d);
    if (!same)
        return differ(s, w, "its shape is not the reference's");
    a = conform_values(got, &count_a);
    b = a == NULL ? NULL : conform_values(expected, &count_b);
    if (b == NULL || count_a != count_b) {
        free(a);
        free(b);
        return differ(s, w, tn_failed() ? tn_error_text() : "complex and real");
    }
    if (w->dtype < DTYPES && conform_tolerance(w->dtype) > allowed && allowed > 0)
        allowed = conform_tolerance(w->dtype); /* a wider result of narrow inputs */
    for (int64_t i = 0; i < count_b; i++)
        if (isfinite(b[i]) && fabs(b[i]) > scale)
            scale = fabs(b[i]);
    for (int64_t i = 0; i < count_b && same; i++) {
        double bound = allowed * slack * (1 + scale), off = fabs(a[i] - b[i]);

        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
            continue;
        /* what is finite in float64 may be too large for a narrow type */
        if (isinf(a[i]) && !isnan(b[i]) && (a[i] > 0) == (b[i] > 0) && dtype != TN_F64 &&
            dtype != TN_C128 && fabs(b[i]) > (dtype == TN_F16 ? 65000 : 3e38))
            continue;
        if (bound > 0 && off <= bound) {
            row->worst = off / bound > row->worst ? off / bound : row->worst;
            continue;
        }
        snprintf(words, sizeof words, "element %lld is %.9g, the reference has %.9g (%.3g allowed)",
                 (long long)i, a[i], b[i], bound);
        same = false;
    }
    free(a);
    free(b);
    s->c->checks++;
    return same || differ(s, w, words);
}

/* Whether the bytes between and beside the elements are as they were. */
static bool untouched(subject *s, const where_from *w, const conform_case *one, tn_tensor **whole,
                      void *const *before, const size_t *sizes)
{
    for (int64_t i = 0; i < one->n_in; i++) {
        size_t size;
        void *now;
        bool same;

        if (before[i] == NULL)
            continue;
        now = conform_bytes(whole[i], &size);
        same = now != NULL && size == sizes[i] && memcmp(now, before[i], size) == 0;
        free(now);
        if (!same)
            return conform_fail(s->c,
                                "case %s as %s, inputs %s: input %lld or the memory around it was "
                                "written to",
                                w->one->name, tn_dtype_name(w->dtype), w->layout, (long long)i);
    }
    return true;
}

/* Twice the same call: twice the same bits. */
static bool same_bits(subject *s, const where_from *w, tn_tensor *first, tn_tensor *second,
                      const char *how)
{
    size_t size_a = 0, size_b = 0;
    void *a = conform_bytes(first, &size_a), *b = conform_bytes(second, &size_b);
    bool same = a != NULL && b != NULL && size_a == size_b && memcmp(a, b, size_a) == 0;
    char words[120];

    free(a);
    free(b);
    snprintf(words, sizeof words, "the same call %s gave other bits", how);
    s->c->checks++;
    return same || differ(s, w, words);
}

/* ---- several threads ---- */

typedef struct side {
    const conform_case *one;
    const tn_device *device;
    attempt *a;
    uint64_t seed;
    void *expected;
    size_t size;
    char words[200];
} side;

static void *beside(void *user)
{
    side *t = user;

    for (int i = 0; i < 4 && t->words[0] == '\0'; i++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *out[OPERANDS] = { NULL };
        size_t size = 0;
        void *bytes = NULL;

        tn_device_begin(t->device);
        if (run(t->one, t->a->in, out) == TN_OK)
            bytes = conform_bytes(out[0], &size);
        if (bytes == NULL)
            snprintf(t->words, sizeof t->words, "%.199s", tn_error_text());
        else if (size != t->size || memcmp(bytes, t->expected, size) != 0)
            snprintf(t->words, sizeof t->words, "other bits than alone");
        free(bytes);
        tn_device_end();
        tn_scope_end(scope);
        tn_error_clear();
    }
    return NULL;
}

enum { THREADS = 3 };

/* The case with its floats made smaller: other numbers for every thread, which an operator takes as well. */
static bool prepare(subject *s, conform_case *copy, conform_tensor *tensors,
                    const conform_case *one, double factor, tn_dtype from, tn_dtype dtype,
                    attempt *a, side *to)
{
    *copy = *one;
    copy->in = tensors;
    for (int64_t i = 0; i < one->n_in; i++) {
        conform_tensor *t = &tensors[i];
        int64_t values;

        *t = one->in[i];
        if (!t->there || !(is_float(t->dtype) || is_complex(t->dtype)))
            continue;
        values = t->count * (is_complex(t->dtype) ? 2 : 1);
        t->values = malloc((size_t)(values + 1) * sizeof *t->values);
        if (t->values == NULL)
            return false;
        for (int64_t k = 0; k < values; k++)
            t->values[k] = one->in[i].values[k] * factor;
    }
    if (make_inputs(copy, from, dtype, false, s->device, CONFORM_AS_GIVEN, false, a) != TN_OK ||
        call(copy, s->device, 7, a) != TN_OK) {
        tn_error_clear();
        return false;
    }
    *to = (side){ copy, s->device, a, 7, NULL, 0, "" };
    to->expected = conform_bytes(a->out[0], &to->size);
    return to->expected != NULL;
}

static bool in_threads(subject *s, const where_from *w, tn_dtype from)
{
    static const double factors[THREADS] = { 1, 0.5, 0.25 };
    static conform_tensor tensors[THREADS][OPERANDS];
    static attempt attempts[THREADS];
    conform_case copies[THREADS];
    pthread_t thread[THREADS];
    side sides[THREADS];
    bool ready[THREADS] = { false }, running[THREADS] = { false }, well = true;

    memset(tensors, 0, sizeof tensors);
    memset(sides, 0, sizeof sides);
    for (int i = 0; i < THREADS; i++)
        ready[i] = prepare(s, &copies[i], tensors[i], w->one, factors[i], from, w->dtype,
                           &attempts[i], &sides[i]);
    for (int i = 0; i < THREADS; i++)
        running[i] = ready[i] && pthread_create(&thread[i], NULL, beside, &sides[i]) == 0;
    for (int i = 0; i < THREADS; i++) {
        if (running[i])
            pthread_join(thread[i], NULL);
        if (well && sides[i].words[0] != '\0') {
            char words[300];

            snprintf(words, sizeof words, "called from %d threads at once: %s", THREADS,
                     sides[i].words);
            well = differ(s, w, words);
        }
        free(sides[i].expected);
        for (int64_t k = 0; k < w->one->n_in; k++)
            if (tensors[i][k].values != w->one->in[k].values)
                free(tensors[i][k].values);
    }
    s->c->checks++;
    return well;
}

/* ---- one case ---- */

static void note_route(subject *s, const conform_case *one, tn_dtype dtype)
{
    tally *row = &s->row[dtype];

    if (row->route[0] == '\0' &&
        tn_op_route(one->op, tn_device_type(s->device), dtype, row->route, sizeof row->route) < 0)
        tn_error_clear();
}

/* What the device does not do is no failure, when it says so. */
static bool missing(subject *s, const conform_case *one, tn_dtype dtype)
{
    if (tn_error_code() != TN_ERR_NOT_IMPLEMENTED)
        return conform_fail(s->c, "case %s as %s: %s", one->name, tn_dtype_name(dtype),
                            tn_error_text());
    tn_error_clear();
    s->row[dtype].missing++;
    return false;
}

static bool jumps(const conform_case *one)
{
    return is_in(jumping, one->def->name) || (one->def->flags & TN_OP_RANDOM) != 0;
}

static bool in_place(subject *s, const where_from *given, tn_dtype from, tn_tensor *const *expected)
{
    where_from here = *given, *w = &here;
    const conform_case *one = given->one;
    attempt a;
    tn_tensor *into;
    size_t size = 0;
    char *before, *after;
    bool well = true, other = false;
    int64_t index[TN_MAX_DIMS] = { 0 };
    const conform_tensor *t = &one->in[0];

    here.layout = "with gaps, written in place";
    if (make_inputs(one, from, w->dtype, false, s->device, CONFORM_APART, false, &a) != TN_OK)
        return missing(s, one, w->dtype);
    into = a.in[0];
    if (tn_tensor_dtype(into) != tn_tensor_dtype(expected[0]) ||
        tn_tensor_numel(into) != tn_tensor_numel(expected[0]) || tn_tensor_numel(into) == 0 ||
        tn_tensor_ndim(into) != tn_tensor_ndim(expected[0]))
        return true;
    before = conform_bytes(a.whole[0], &size);
    tn_device_begin(s->device);
    tn_random_seed(7);
    a.status = tn_op_call_into(one->op, a.in, one->n_in, one->options, into);
    tn_device_end();
    if (a.status != TN_OK) {
        free(before);
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED) {
            tn_error_clear();
            return true;
        }
        return differ(s, w, tn_error_text());
    }
    after = conform_bytes(a.whole[0], &size);
    /* elements may change, what lies between them may not */
    if (before != NULL && after != NULL) {
        size_t each = tn_dtype_size(tn_tensor_dtype(into));
        int64_t held = (int64_t)(size / each);
        bool *own = calloc((size_t)held, sizeof *own);
        const tn_view *view = tn_tensor_view(into);

        for (int64_t i = 0; own != NULL && i < t->count; i++) {
            int64_t place = 3;

            for (int32_t d = 0; d < t->ndim; d++)
                place += index[d] * view->strides[d];
            own[place] = true;
            for (int32_t d = t->ndim - 1; d >= 0 && ++index[d] == t->shape[d]; d--)
                index[d] = 0;
        }
        for (int64_t i = 0; own != NULL && i < held && !other; i++)
            other = !own[i] &&
                    memcmp(before + i * (int64_t)each, after + i * (int64_t)each, each) != 0;
        free(own);
    }
    free(before);
    free(after);
    if (other)
        well = differ(s, w, "in place: memory between the elements was written to");
    return well && compare(s, w, into, expected[0]);
}

static bool forward(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype)
{
    attempt ref, a, again;
    bool wide = !jumps(one), well = true;
    where_from w = { one, dtype, layout_names[0], "output", 0 };
    void *before[OPERANDS] = { NULL };
    size_t sizes[OPERANDS];

    if (make_inputs(one, from, dtype, wide, tn_device_find("reference"), CONFORM_AS_GIVEN, false,
                    &ref) != TN_OK ||
        call(one, tn_device_find("reference"), 7, &ref) != TN_OK)
        return conform_fail(s->c, "case %s as %s: the reference itself: %s", one->name,
                            tn_dtype_name(dtype), tn_error_text());
    for (int layout = 0; layout < CONFORM_LAYOUTS && well; layout++) {
        w.layout = layout_names[layout];
        if (make_inputs(one, from, dtype, false, s->device, (conform_layout)layout, false, &a) !=
            TN_OK)
            return missing(s, one, dtype);
        for (int64_t i = 0; i < one->n_in; i++)
            before[i] = one->in[i].there ? conform_bytes(a.whole[i], &sizes[i]) : NULL;
        if (call(one, s->device, 7, &a) != TN_OK) {
            if (layout == CONFORM_BACKWARD && (one->def->flags & TN_OP_VIEW) && s->called > 0)
                tn_error_clear(); /* there is no view of memory in this order, which is an answer */
            else if (layout > 0)  /* a device does an operator for all strides, or not at all */
                well = conform_fail(
                    s->c, "case %s as %s: it runs with inputs as given, but not with inputs %s: %s",
                    one->name, tn_dtype_name(dtype), w.layout, tn_error_text());
            else
                well = missing(s, one, dtype);
        } else {
            s->called++;
            for (int32_t i = 0; i < results(one) && well; i++) {
                w.index = i;
                well = compare(s, &w, a.out[i], ref.out[i]);
            }
            w.index = 0;
            if (well)
                well = untouched(s, &w, one, a.whole, before, sizes);
        }
        for (int64_t i = 0; i < one->n_in; i++) {
            free(before[i]);
            before[i] = NULL;
        }
    }
    if (well && !s->row[dtype].repeated && tn_tensor_numel(a.out[0]) >= 4) {
        s->row[dtype].repeated = true;
        again = a;
        if (call(one, s->device, 7, &again) != TN_OK)
            well = differ(s, &w, tn_error_text());
        for (; w.index < results(one) && well; w.index++)
            well = same_bits(s, &w, a.out[w.index], again.out[w.index], "again");
        w.index = 0;
        if (well && !(one->def->flags & TN_OP_RANDOM))
            well = in_threads(s, &w, from);
    }
    if (well && (one->def->flags & TN_OP_INPLACE))
        well = in_place(s, &w, from, ref.out);
    return well;
}

/* ---- gradients ---- */

static tn_tensor *cotangent_of(const conform_case *one, tn_tensor *out)
{
    int64_t count = tn_tensor_numel(out), parts = is_complex(tn_tensor_dtype(out)) ? 2 : 1;
    conform_tensor t = { .there = true, .ndim = tn_tensor_ndim(out), .count = count };
    double *values = malloc((size_t)(count * parts + 1) * sizeof *values);
    int64_t step = 1;
    tn_tensor *to;

    if (values == NULL)
        return NULL;
    t.dtype = parts == 2 ? TN_C128 : TN_F64;
    for (int32_t d = t.ndim - 1; d >= 0; d--) {
        t.shape[d] = tn_tensor_size(out, d);
        t.strides[d] = step;
        step *= t.shape[d] > 0 ? t.shape[d] : 1;
    }
    for (int64_t i = 0; i < count * parts; i++)
        values[i] = one->has_cotangent && one->cotangent.count == count * parts
                        ? one->cotangent.values[i]
                        : 0.25 * (double)(i * 7 % 11) - 1;
    t.values = values;
    to = conform_tensor_make(&t, tn_tensor_dtype(out), tn_tensor_device(out), CONFORM_AS_GIVEN,
                             NULL);
    free(values);
    return to;
}

static tn_status backward(const conform_case *one, attempt *a)
{
    tn_tensor *cotangent;

    if (!tn_tensor_requires_grad(a->out[0]))
        return TN_OK;
    cotangent = cotangent_of(one, a->out[0]);
    if (cotangent == NULL)
        return tn_error_code();
    return tn_backward_from(a->out, &cotangent, 1, NULL);
}

static bool gradient(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype)
{
    attempt ref, a;
    where_from w = { one, dtype, layout_names[0], "gradient", 0 };
    bool any = false, well = true;

    for (int64_t i = 0; i < one->n_in; i++)
        any = any || (one->in[i].there && one->in[i].grad);
    if (!any)
        return true;
    if (make_inputs(one, from, dtype, !jumps(one), tn_device_find("reference"), CONFORM_AS_GIVEN,
                    true, &ref) != TN_OK ||
        call(one, tn_device_find("reference"), 7, &ref) != TN_OK || backward(one, &ref) != TN_OK) {
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED) { /* no derivative: nothing to compare */
            tn_error_clear();
            return true;
        }
        return conform_fail(s->c, "case %s as %s: the reference itself: %s", one->name,
                            tn_dtype_name(dtype), tn_error_text());
    }
    if (make_inputs(one, from, dtype, false, s->device, CONFORM_AS_GIVEN, true, &a) != TN_OK ||
        call(one, s->device, 7, &a) != TN_OK || backward(one, &a) != TN_OK ||
        tn_device_sync(s->device) != TN_OK)
        return missing(s, one, dtype);
    s->called++;
    for (int64_t i = 0; i < one->n_in && well; i++) {
        tn_tensor *got, *expected;

        if (!one->in[i].there || !one->in[i].grad)
            continue;
        got = tn_tensor_grad(a.in[i]);
        expected = tn_tensor_grad(ref.in[i]);
        w.index = i;
        if ((got == TN_NONE) != (expected == TN_NONE))
            well = differ(s, &w,
                          got == TN_NONE ? "none came, the reference has one"
                                         : "there is one, the reference has none");
        else if (got != TN_NONE)
            well = compare(s, &w, got, expected);
    }
    return well;
}

/* ---- finite differences ---- */

typedef struct closure {
    const conform_case *one;
    tn_tensor *const *in; /* all of them; those with a gradient are replaced */
} closure;

static tn_status again_with(void *user, tn_tensor *const *in, tn_tensor **out)
{
    closure *code = user;
    tn_tensor *all[OPERANDS], *results[OPERANDS];
    tn_status status;
    int64_t next = 0;

    for (int64_t i = 0; i < code->one->n_in; i++)
        all[i] = code->one->in[i].there && code->one->in[i].grad ? in[next++] : code->in[i];
    tn_random_seed(7);
    status = tn_op_call(code->one->op, all, code->one->n_in, code->one->options, results,
                        code->one->def->n_outputs);
    if (status == TN_OK)
        out[0] = results[0];
    return status;
}

/* Where a derivative is not the slope on purpose. */
static const struct exception {
    const char *op, *reason;
} exceptions[] = {
    { "embedding", "the row padding_idx gets no gradient" },
    { "embedding_bag", "the row padding_idx gets no gradient" },
    { "gaussian_nll_loss", "variances below eps get a gradient as if they were not raised to it" },
    { NULL, NULL },
};

/* Small, finite, real, and something to differentiate. */
static int64_t differentiable(const conform_case *one)
{
    int64_t n = 0;

    if (one->def->flags & TN_OP_RANDOM)
        return 0;
    for (const struct exception *e = exceptions; e->op != NULL; e++)
        if (strcmp(e->op, one->def->name) == 0)
            return 0;
    for (int64_t i = 0; i < one->n_in; i++) {
        const conform_tensor *t = &one->in[i];

        if (!t->there)
            continue;
        if (is_complex(t->dtype) || (t->grad && t->count > 64))
            return 0;
        for (int64_t k = 0; k < t->count; k++)
            if (!isfinite(t->values[k]) || fabs(t->values[k]) > 1e3)
                return 0;
        n += t->grad;
    }
    return n;
}

/* All floats as float64. */
static tn_status make_doubles(const conform_case *one, const tn_device *device, attempt *a)
{
    for (int64_t i = 0; i < one->n_in; i++) {
        const conform_tensor *t = &one->in[i];

        a->in[i] = TN_NONE;
        if (!t->there)
            continue;
        a->in[i] = conform_tensor_make(t, is_float(t->dtype) ? TN_F64 : t->dtype, device,
                                       CONFORM_PLAIN, NULL);
        if (a->in[i] == NULL || (t->grad && tn_tensor_set_requires_grad(a->in[i], true) != TN_OK))
            return tn_error_code();
    }
    return TN_OK;
}

/* Second derivatives take a walk for each element: of small cases only. */
static bool second_too(const conform_case *one)
{
    int64_t count = 0;

    for (int64_t i = 0; i < one->n_in; i++)
        count += one->in[i].there && one->in[i].grad ? one->in[i].count : 0;
    return count <= 24;
}

/* Whether tn_gradcheck found no slope. A derivative that is not a number where there is a slope is wrong. */
static bool no_slope(const char *words)
{
    const char *number = strstr(words, "differences say ");

    return number != NULL && !isfinite(strtod(number + 16, NULL));
}

/* A derivative is right when it is the slope: at the case's own values, or, where these sit on a corner, beside them. */
static bool slopes(subject *s, conform_case *one)
{
    char words[400] = "";
    int64_t n = differentiable(one);

    for (int turn = 0; turn < 3 && n > 0; turn++) {
        attempt a;
        tn_tensor *chosen[OPERANDS];
        closure code = { one, a.in };
        int64_t next = 0;
        clock_t began, first;
        tn_status status;
        bool twice = false;

        if (make_doubles(one, s->device, &a) != TN_OK || call(one, s->device, 7, &a) != TN_OK) {
            tn_error_clear();
            return true; /* the other half of this level says what is wrong */
        }
        if (tn_tensor_dtype(a.out[0]) != TN_F64 || !tn_tensor_requires_grad(a.out[0]))
            return true;
        for (int64_t i = 0; i < one->n_in; i++)
            if (one->in[i].there && one->in[i].grad)
                chosen[next++] = a.in[i];
        tn_device_begin(s->device);
        began = clock();
        status = tn_gradcheck(again_with, &code, chosen, n, 1, 1e-6, 1e-4);
        first = clock() - began;
        if (status == TN_OK && s->seconds < SECONDS &&
            s->spent + 20 * first < WORTH * CLOCKS_PER_SEC && second_too(one)) {
            began = clock();
            twice = true;
            s->seconds++;
            status = tn_gradgradcheck(again_with, &code, chosen, n, 1, 1e-6, 1e-3);
            s->spent += clock() - began;
        }
        tn_device_end();
        s->c->checks++;
        if (status == TN_OK)
            return true;
        if (status == TN_ERR_NOT_IMPLEMENTED || no_slope(tn_error_text())) {
            tn_error_clear();
            return true; /* no derivative, or none at these values */
        }
        if (words[0] == '\0')
            snprintf(words, sizeof words, "%s%.360s", twice ? "second derivatives: " : "",
                     tn_error_text());
        tn_error_clear();
        for (int64_t i = 0; i < one->n_in; i++) /* elsewhere */
            for (int64_t k = 0; one->in[i].there && one->in[i].grad && k < one->in[i].count; k++)
                one->in[i].values[k] += 0.00713 * (double)((k * 7 + i) % 23 + 1);
    }
    return words[0] == '\0' ||
           conform_fail(s->c, "case %s: finite differences: %s", one->name, words);
}

/* ---- all cases of an operator ---- */

/* A case that has to be refused: an error with words, nothing made, and the device goes on. */
static void refuse(subject *s, const conform_case *one)
{
    attempt a;
    tn_status status;

    memset(&a, 0, sizeof a);
    if (make_inputs(one, TN_DTYPE_AUTO, TN_DTYPE_AUTO, false, s->device, CONFORM_AS_GIVEN, false,
                    &a) != TN_OK) {
        tn_error_clear();
        return;
    }
    status = call(one, s->device, 7, &a);
    s->refused++;
    s->c->checks++;
    if (status == TN_OK)
        conform_fail(s->c, "case %s has to be refused, and was accepted", one->name);
    else if (tn_error_text()[0] == '\0')
        conform_fail(s->c, "case %s was refused without words", one->name);
    tn_error_clear();
}

static bool take(void *user, conform_case *one)
{
    subject *s = user;
    tn_dtype from = dtype_of(one);
    uint64_t scope;

    if (one->n_in > OPERANDS || results(one) > OPERANDS)
        return true;
    if (one->refused) {
        scope = tn_scope_begin();
        if (!s->gradients)
            refuse(s, one);
        tn_scope_end(scope);
        return true;
    }
    for (int dtype = 0; dtype < (int)DTYPES && s->c->verdict != CONFORM_FAIL; dtype++) {
        tally *row = &s->row[dtype];
        bool own = dtype == (int)from, cast = is_float(from) && is_float((tn_dtype)dtype);

        if ((!own && !cast) || !(s->dtypes & TN_BIT(dtype)) ||
            (s->gradients && !is_float((tn_dtype)dtype) && !is_complex((tn_dtype)dtype)))
            continue;
        if (!own && !accepts(one, from, (tn_dtype)dtype))
            continue;
        note_route(s, one, (tn_dtype)dtype);
        /* Narrow types take part with the cases that were written for them, and kernels with a few of the others. */
        if (!own && tn_dtype_size((tn_dtype)dtype) < 4 &&
            (row->cases >= 4 || s->gradients || strncmp(row->route, "kernel", 6) != 0))
            continue;
        scope = tn_scope_begin();
        row->cases++;
        if (s->gradients ? !gradient(s, one, from, (tn_dtype)dtype)
                         : !forward(s, one, from, (tn_dtype)dtype))
            row->failed += s->c->verdict == CONFORM_FAIL;
        tn_error_clear();
        tn_scope_end(scope);
    }
    if (s->gradients && s->c->verdict != CONFORM_FAIL && is_float(from) &&
        (s->dtypes & TN_BIT(TN_F64)) && s->c->plugin->ops) {
        scope = tn_scope_begin();
        slopes(s, one);
        tn_error_clear();
        tn_scope_end(scope);
    }
    return s->c->verdict != CONFORM_FAIL;
}

static void work(conform *c, bool gradients)
{
    subject *s = calloc(1, sizeof *s);
    tn_device_info info;
    char words[400];
    int64_t cases, missed = 0;

    if (s == NULL) {
        conform_fail(c, "no memory");
        return;
    }
    memset(&info, 0, sizeof info);
    info.head.size = sizeof info;
    s->c = c;
    s->device = c->plugin->device;
    s->gradients = gradients;
    if (tn_device_describe(s->device, &info) != TN_OK) {
        conform_fail(c, "the device does not say what it is: %s", tn_error_text());
        free(s);
        return;
    }
    s->dtypes = info.dtypes;
    cases = conform_cases(c->plugin->options->cases, c->subject, take, s, words, sizeof words);
    for (int i = 0; i < (int)DTYPES; i++) {
        const tally *row = &s->row[i];

        if (row->cases == 0)
            continue;
        missed += row->missing;
        if (row->missing == row->cases && strncmp(row->route, "kernel", 6) == 0)
            conform_fail(c, "%s is there for %s, and takes none of the %lld cases", row->route,
                         tn_dtype_name((tn_dtype)i), (long long)row->cases);
        conform_row(c, c->subject, tn_dtype_name((tn_dtype)i),
                    row->missing == row->cases           ? "missing"
                    : strcmp(row->route, "missing") == 0 ? "promotion"
                                                         : row->route,
                    row->cases - row->missing, row->failed, row->worst);
    }
    if (cases < 0)
        conform_fail(c, "the cases: %s", words);
    else if (cases == 0)
        conform_fail(
            c, "there is no case for this operator: --cases FILE gives some (docs/conform.md)");
    else if (c->verdict == CONFORM_PASS && c->checks == 0)
        conform_skip(c, missed > 0 ? "the device has no way to run it for any dtype of the cases"
                                   : "nothing to differentiate");
    free(s);
}

void conform_op(conform *c)
{
    work(c, false);
}

void conform_gradient(conform *c)
{
    work(c, true);
}

bool conform_concerns(const conform_plugin *plugin, const char *op)
{
    const char *owner = tn_registry_plugin(TN_KIND_tn_op_def, op);

    return plugin->backend || (owner != NULL && strcmp(owner, plugin->id) == 0) ||
           conform_runs(plugin, op);
}

bool conform_runs(const conform_plugin *plugin, const char *op)
{
    const tn_op *handle = tn_op_find(op, 0);
    char route[200], mark[160];

    if (handle == NULL) {
        tn_error_clear();
        return false;
    }
    snprintf(mark, sizeof mark, "%s)",
             strrchr(plugin->options->file, '/') != NULL ? strrchr(plugin->options->file, '/') + 1
                                                         : plugin->options->file);
    for (int dtype = 0; dtype < (int)DTYPES; dtype++) {
        if (tn_op_route(handle, tn_device_type(plugin->device), (tn_dtype)dtype, route,
                        sizeof route) < 0)
            tn_error_clear();
        else if (strstr(route, mark) != NULL)
            return true;
    }
    return false;
}
