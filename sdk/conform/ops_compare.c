/* SPDX-License-Identifier: MIT
 *
 * One call of an operator for the levels ops and grad, and the checks of its results: they must
 * equal those of the reference; inputs and the memory around them must not change; a second call,
 * and calls from several threads, must give the same bits. */
#include "ops.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

/* The factor of the tolerance: 1 for a kernel. Decompositions and gradients get 4 because each of
 * their steps rounds. */
static double allowance(const tally *row, tn_dtype dtype, bool gradients)
{
    bool steps = gradients || strncmp(row->route, "kernel", 6) != 0;

    return is_float(dtype) && dtype != TN_F64 && steps ? 4 : 1;
}

/* Returns true if an output has exactly one correct value, including the sign of 0. */
static bool is_exact(const where_from *w, tn_dtype dtype)
{
    static const char *const exact[] = { "cast", "copy", "neg", "abs", NULL };

    if (is_complex(w->dtype)) /* the absolute value is computed with rounding */
        return false;
    for (int i = 0; exact[i] != NULL && is_float(dtype) && strcmp(w->what, "output") == 0; i++)
        if (strcmp(w->one->def->name, exact[i]) == 0)
            return true;
    return false;
}

/* Compares the bytes of int64 tensors, because doubles cannot hold all integers of 64 bits. */
static bool same_integers(tn_tensor *got, tn_tensor *expected)
{
    size_t n = 0, m = 0;
    void *a, *b;
    bool same;

    if (tn_tensor_dtype(got) != TN_I64 || tn_tensor_dtype(expected) != TN_I64)
        return true;
    a = conform_bytes(got, &n);
    b = conform_bytes(expected, &m);
    same = a == NULL || b == NULL || (n == m && memcmp(a, b, n) == 0);
    free(a);
    free(b);
    return same;
}

/* Returns the place of the first byte of a bool tensor that is neither 0 nor 1; -1: there is none.
 * A byte of another value counts as true in some operators and as a number in others. */
static int64_t wrong_bool(tn_tensor *got)
{
    size_t size = 0;
    unsigned char *bytes;
    int64_t at = -1;

    if (tn_tensor_dtype(got) != TN_BOOL)
        return -1;
    bytes = conform_bytes(got, &size);
    for (size_t i = 0; bytes != NULL && i < size && at < 0; i++)
        at = bytes[i] > 1 ? (int64_t)i : -1;
    free(bytes);
    return at;
}

/* ---- one call ---- */

tn_status conform_inputs(const conform_case *one, tn_dtype from, tn_dtype dtype, bool wide,
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
            return tn_error_last_code();
        if (grad && t->grad && tn_tensor_set_requires_grad(a->in[i], true) != TN_OK)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* For an operator without outputs: the index of the first input that the operator writes to. All
 * later inputs are written to, too. */
static int64_t first_written(const conform_case *one)
{
    int64_t i = 0;

    while (i < one->def->n_inputs - 1 && (one->def->inputs[i].flags & TN_OPERAND_WRITTEN) == 0)
        i++;
    return i;
}

int32_t conform_results(const conform_case *one)
{
    return one->def->n_outputs > 0 ? one->def->n_outputs
                                   : (int32_t)(one->n_in - first_written(one));
}

tn_status conform_operator(const conform_case *one, tn_tensor *const *in, tn_tensor **out)
{
    int64_t first = first_written(one);
    tn_tensor *copies[OPERANDS];

    if (one->def->n_outputs > 0)
        return tn_op_call(one->op, in, one->n_in, one->options, out, one->def->n_outputs);
    for (int64_t i = 0; i < one->n_in; i++) {
        copies[i] = i < first ? in[i] : tn_clone(in[i]);
        if (copies[i] == NULL)
            return tn_error_last_code();
        if (i >= first)
            out[i - first] = copies[i];
    }
    return tn_op_call(one->op, copies, one->n_in, one->options, NULL, 0);
}

tn_status conform_call(const conform_case *one, const tn_device *device, uint64_t seed, attempt *a)
{
    tn_device_begin(device);
    tn_random_seed(seed);
    a->status = conform_operator(one, a->in, a->out);
    if (a->status == TN_OK)
        a->status = tn_device_sync(device);
    tn_device_end();
    return a->status;
}

/* ---- comparing ---- */

const char *const conform_layout_names[] = { "as given", "with gaps", "first dimension innermost" };

bool conform_differ(subject *s, const where_from *w, const char *words)
{
    return conform_fail(s->c, "case %s as %s, inputs %s: %s %lld: %s", w->one->name,
                        tn_dtype_name(w->dtype), w->layout, w->what, (long long)w->index, words);
}

bool conform_compare(subject *s, const where_from *w, tn_tensor *got, tn_tensor *expected)
{
    tn_dtype dtype = tn_tensor_dtype(got);
    double allowed = conform_tolerance(dtype), scale = 0, *a, *b;
    int64_t count_a = 0, count_b = 0;
    tally *row = &s->row[w->dtype < DTYPES ? w->dtype : TN_F32];
    double slack = allowance(row, w->dtype, s->gradients);
    char words[256];
    int digits = tn_dtype_size(dtype) >= 8 && dtype != TN_C64 ? 17 : 9;
    bool same = tn_tensor_ndim(got) == tn_tensor_ndim(expected);
    bool exact = is_exact(w, dtype) && tn_tensor_dtype(expected) == dtype;

    for (int32_t d = 0; same && d < tn_tensor_ndim(got); d++)
        same = tn_tensor_size(got, d) == tn_tensor_size(expected, d);
    if (!same) {
        char one[80], other[80];

        conform_shape_text(tn_tensor_shape(got).at, tn_tensor_ndim(got), one, sizeof one);
        conform_shape_text(tn_tensor_shape(expected).at, tn_tensor_ndim(expected), other,
                           sizeof other);
        snprintf(words, sizeof words, "wrong shape, got %s; expected %s, that of the reference",
                 one, other);
        return conform_differ(s, w, words);
    }
    a = conform_values(got, &count_a);
    b = a == NULL ? NULL : conform_values(expected, &count_b);
    if (b == NULL || count_a != count_b) {
        free(a);
        free(b);
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED) /* the device cannot copy the result */
            return conform_missing(s, w->one, w->dtype < DTYPES ? w->dtype : TN_F32);
        return conform_differ(
            s, w, tn_failed() ? tn_error_text() : "only one of result and reference is complex");
    }
    if (w->dtype < DTYPES && conform_tolerance(w->dtype) > allowed && allowed > 0)
        allowed = conform_tolerance(w->dtype); /* the inputs are narrower than the result */
    for (int64_t i = 0; i < count_b; i++)
        if (isfinite(b[i]) && fabs(b[i]) > scale)
            scale = fabs(b[i]);
    for (int64_t i = 0; i < count_b && same; i++) {
        double bound = allowed * slack * (1 + scale), off = fabs(a[i] - b[i]);

        if ((a[i] == b[i] && (a[i] != 0 || !exact || signbit(a[i]) == signbit(b[i]))) ||
            (isnan(a[i]) && isnan(b[i])))
            continue;
        if (exact)
            bound = 0;
        /* a value that is finite in float64 may overflow in a narrower dtype */
        if (isinf(a[i]) && !isnan(b[i]) && (a[i] > 0) == (b[i] > 0) && dtype != TN_F64 &&
            dtype != TN_C128 && fabs(b[i]) > (dtype == TN_F16 ? 65000 : 3e38))
            continue;
        if (bound > 0 && off <= bound && !(off == 0 && exact)) {
            row->worst = off / bound > row->worst ? off / bound : row->worst;
            continue;
        }
        snprintf(words, sizeof words,
                 "element %lld: wrong value, got %.*g; expected %.*g within %.3g", (long long)i,
                 digits, a[i], digits, b[i], bound);
        same = false;
    }
    free(a);
    free(b);
    if (same && !same_integers(got, expected)) {
        snprintf(words, sizeof words, "wrong integer: differs in bits that a double cannot hold");
        same = false;
    }
    if (same && wrong_bool(got) >= 0) {
        snprintf(words, sizeof words, "element %lld: wrong byte of a bool; expected 0 or 1",
                 (long long)wrong_bool(got));
        same = false;
    }
    row->elements += count_b;
    s->c->checks++;
    return same || conform_differ(s, w, words);
}

bool conform_untouched(subject *s, const where_from *w, const attempt *a, void *const *before,
                       const size_t *sizes)
{
    const conform_case *one = w->one;

    for (int64_t i = 0; i < one->n_in; i++) {
        int64_t last = one->def->n_inputs - 1;
        size_t size;
        void *now;
        bool same;

        if (before[i] == NULL)
            continue;
        now = conform_bytes(a->whole[i], &size);
        same = now != NULL && size == sizes[i] && memcmp(now, before[i], size) == 0;
        free(now);
        if (one->def->inputs[i < last ? i : last].flags & TN_OPERAND_UPDATED) {
            if (!conform_updated(s, w, a, i, !same))
                return false;
            continue;
        }
        if (!same)
            return conform_fail(s->c,
                                "case %s as %s, inputs %s: input %lld or the memory around it was "
                                "written to",
                                w->one->name, tn_dtype_name(w->dtype), w->layout, (long long)i);
    }
    return true;
}

bool conform_same_bits(subject *s, const where_from *w, tn_tensor *first, tn_tensor *second,
                       const char *how)
{
    size_t size_a = 0, size_b = 0;
    void *a = conform_bytes(first, &size_a), *b = conform_bytes(second, &size_b);
    bool same = a != NULL && b != NULL && size_a == size_b && memcmp(a, b, size_a) == 0;
    char words[120];

    free(a);
    free(b);
    snprintf(words, sizeof words, "the same call %s returned other bits", how);
    s->c->checks++;
    return same || conform_differ(s, w, words);
}

/* ---- several threads ---- */

/* What one of several threads does. */
typedef struct side {
    const conform_case *one;
    const tn_device *device;
    attempt *a;
    uint64_t seed;
    void *expected;
    size_t size;
    double until;
    char words[200];
} side;

enum { FEWEST = 4 };
/* The number of seconds for which threads call an operator again and again, so that their calls
 * overlap. Long cases, of which there are few, run for longer: calls then overlap even when the
 * threads share one processor, which switches between them only every few milliseconds. */
static const double meeting = 0.004, long_meeting = 0.1;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Calls the operator repeatedly and compares the result with that of a single thread. */
static void *beside(void *user)
{
    side *t = user;

    for (int i = 0; (i < FEWEST || now() < t->until) && t->words[0] == '\0'; i++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *out[OPERANDS] = { NULL };
        size_t size = 0;
        void *bytes = NULL;

        tn_device_begin(t->device);
        if (conform_operator(t->one, t->a->in, out) == TN_OK)
            bytes = conform_bytes(out[0], &size);
        if (bytes == NULL)
            snprintf(t->words, sizeof t->words, "%.199s", tn_error_text());
        else if (size != t->size || memcmp(bytes, t->expected, size) != 0)
            snprintf(t->words, sizeof t->words, "other bits than in a single thread");
        free(bytes);
        tn_device_end();
        tn_scope_end(scope);
        tn_error_clear();
    }
    return NULL;
}

enum { THREADS = 3 };

/* Prepares the case for one thread: multiplies its floats by `factor` (at most 1), so that every
 * thread has other numbers that the operator still accepts, and stores the result of a call.
 * Returns false if this is not possible. */
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
    if (conform_inputs(copy, from, dtype, false, s->device, CONFORM_AS_GIVEN, false, a) != TN_OK ||
        conform_call(copy, s->device, 7, a) != TN_OK) {
        tn_error_clear();
        return false;
    }
    *to = (side){ .one = copy, .device = s->device, .a = a, .seed = 7 };
    to->expected = conform_bytes(a->out[0], &to->size);
    return to->expected != NULL;
}

bool conform_in_threads(subject *s, const where_from *w, tn_dtype from)
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
        sides[i].until = now() + (w->one->in[0].count > 4000 ? long_meeting : meeting);
    for (int i = 0; i < THREADS; i++)
        running[i] = ready[i] && pthread_create(&thread[i], NULL, beside, &sides[i]) == 0;
    for (int i = 0; i < THREADS; i++) {
        if (running[i])
            pthread_join(thread[i], NULL);
        if (well && sides[i].words[0] != '\0') {
            char words[300];

            snprintf(words, sizeof words, "called from %d threads at once: %s", THREADS,
                     sides[i].words);
            well = conform_differ(s, w, words);
        }
        free(sides[i].expected);
        for (int64_t k = 0; k < w->one->n_in; k++)
            if (tensors[i][k].values != w->one->in[k].values)
                free(tensors[i][k].values);
    }
    s->c->checks++;
    return well;
}
