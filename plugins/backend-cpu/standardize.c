/* SPDX-License-Identifier: MIT
 *
 * Normalisation in few passes: populations that are rows (the last dimensions) or channels (all but dimension 1) of numbers that lie
 * row by row. A population is one thread's, its sums in a fixed order, so the bits do not depend on the number of threads. */
#include <math.h>
#include <string.h>

#include "cpu.h"

enum { LANES = 16, ROWS_AT_ONCE = 64 };

/* Population p has `segments` stretches of `length` numbers, stretch s from (s * populations + p) * length on. */
struct people {
    int64_t populations, segments, length;
    /* How weight and bias go with it. */
    enum { NO_AFFINE, PER_ELEMENT, PER_POPULATION } affine;
    int64_t channels; /* PER_POPULATION: its number is p modulo this */
};

static bool dense(const tn_view *view)
{
    return view == NULL || tn__view_dense(view);
}

/* What kind of populations `dims` of x are; false where this file does not do them. */
static bool find_people(const tn_view *x, tn_ints dims, struct people *out)
{
    bool reduced[TN_MAX_DIMS] = { false };
    int32_t first = x->ndim;

    for (int64_t i = 0; i < dims.count; i++) {
        int64_t d = dims.at[i] < 0 ? dims.at[i] + x->ndim : dims.at[i];
        if (d < 0 || d >= x->ndim)
            return false;
        reduced[d] = true;
    }
    if (dims.count == 0 || !tn__view_dense(x) || tn__view_count(x) == 0)
        return false;
    out->channels = out->populations = out->segments = out->length = 1;
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
    /* All but dimension 1. */
    if (x->ndim < 2 || reduced[1] || !reduced[0] || first > 2)
        return false;
    out->segments = x->shape[0];
    out->populations = x->shape[1];
    return true;
}

/* Whether `part` (weight or bias, NULL for none) has a number for each element of a row, or for each channel. */
static bool find_affine(const tn_view *x, const tn_view *part, struct people *people)
{
    int64_t count = part ? tn__view_count(part) : 0, at = 0;
    int32_t lasting = 0;

    if (!part)
        return true;
    if (!tn__view_dense(part))
        return false;
    for (int32_t i = 0; i < part->ndim; i++)
        if (part->shape[i] != 1) {
            at = i - part->ndim + x->ndim;
            lasting++;
        }
    /* [..., C, 1, ...]: a number for each channel, which a population lies within */
    bool channel = x->ndim >= 2 &&
                   ((lasting == 1 && at == 1) || (lasting == 0 && x->shape[1] == 1));
    int64_t behind = 1;
    for (int32_t d = 2; d < x->ndim; d++)
        behind *= x->shape[d];
    if (channel && count == x->shape[1] && people->populations % count == 0 &&
        (people->segments > 1 || people->length == behind)) {
        if (people->affine == PER_ELEMENT)
            return false;
        people->affine = PER_POPULATION;
        people->channels = count;
        return true;
    }
    if (people->segments == 1 && count == people->length) {
        if (people->affine == PER_POPULATION)
            return false;
        /* Its shape is the end of x's. */
        int64_t end = 1;
        for (int32_t i = 0; i < part->ndim && i < x->ndim; i++) {
            if (end == people->length)
                break;
            if (part->shape[part->ndim - 1 - i] != x->shape[x->ndim - 1 - i])
                return false;
            end *= x->shape[x->ndim - 1 - i];
        }
        people->affine = PER_ELEMENT;
        return true;
    }
    return false;
}

static bool no(char *reason, size_t size)
{
    tn_snprint(
        reason, size,
        "populations have to be the last dimensions or all but dimension 1 of numbers that lie "
        "row by row");
    return false;
}

bool tn__standardize_takes(const tn_call *call, char *reason, size_t size)
{
    const tn_standardize_options *o = call->options;
    struct people people = { .affine = NO_AFFINE };

    return (find_people(call->in[0], o->dims, &people) &&
            find_affine(call->in[0], call->in[1], &people) &&
            find_affine(call->in[0], call->in[2], &people) &&
            (call->out == NULL || call->out[0] == NULL || dense(call->out[0]))) ||
           no(reason, size);
}

bool tn__standardize_grad_takes(const tn_call *call, char *reason, size_t size)
{
    const tn_standardize_grad_options *o = call->options;
    const tn_view *x = call->in[1];
    struct people people = { .affine = NO_AFFINE };
    tn_view shape = { .shape = (int64_t *)(uintptr_t)o->affine_shape.at,
                      .ndim = (int32_t)o->affine_shape.count };
    int64_t strides[TN_MAX_DIMS], next = 1;
    bool fits = find_people(x, o->dims, &people) && find_affine(x, call->in[4], &people) &&
                tn__view_dense(call->in[0]) && tn__view_dense(call->in[2]) &&
                tn__view_dense(call->in[3]);

    for (int32_t d = shape.ndim; d-- > 0; next *= shape.shape[d])
        strides[d] = next;
    shape.strides = strides;
    if (fits && shape.ndim > 0)
        fits = find_affine(x, &shape, &people);
    fits = fits && (call->out == NULL || call->out[0] == NULL || dense(call->out[0]));
    return fits || no(reason, size);
}

struct work {
    struct people people;
    double eps;
    const void *x, *gy, *weight, *bias, *mean_in, *var_in;
    void *y, *mean, *var, *gx, *gw, *gb;
    bool wants_affine;
};

#define PEOPLE(s, T)                                                                               \
    /* The sum of f over a stretch, in lanes. */                                                   \
    static double sum_##s(int64_t n, const T *x)                                                   \
    {                                                                                              \
        T lane[LANES] = { 0 };                                                                     \
        double all = 0;                                                                            \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            for (int k = 0; k < LANES; k++)                                                        \
                lane[k] += x[i + k];                                                               \
            if (i / LANES % 256 == 255) /* float32 sums are kept short */                          \
                for (int k = 0; k < LANES; k++) {                                                  \
                    all += (double)lane[k];                                                        \
                    lane[k] = 0;                                                                   \
                }                                                                                  \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            all += (double)x[i];                                                                   \
        for (int k = 0; k < LANES; k++)                                                            \
            all += (double)lane[k];                                                                \
        return all;                                                                                \
    }                                                                                              \
    static double squares_##s(int64_t n, const T *x, T mean)                                       \
    {                                                                                              \
        T lane[LANES] = { 0 };                                                                     \
        double all = 0;                                                                            \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            for (int k = 0; k < LANES; k++) {                                                      \
                T d = x[i + k] - mean;                                                             \
                lane[k] += d * d;                                                                  \
            }                                                                                      \
            if (i / LANES % 256 == 255)                                                            \
                for (int k = 0; k < LANES; k++) {                                                  \
                    all += (double)lane[k];                                                        \
                    lane[k] = 0;                                                                   \
                }                                                                                  \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            all += (double)(x[i] - mean) * (double)(x[i] - mean);                                  \
        for (int k = 0; k < LANES; k++)                                                            \
            all += (double)lane[k];                                                                \
        return all;                                                                                \
    }                                                                                              \
    static void one_##s(const struct work *w, int64_t p)                                           \
    {                                                                                              \
        const struct people *e = &w->people;                                                       \
        const T *weight = w->weight, *bias = w->bias;                                              \
        double n = (double)e->segments * (double)e->length, sum = 0, squares = 0;                  \
        for (int64_t i = 0; i < e->segments; i++)                                                  \
            sum += sum_##s(e->length, (const T *)w->x + (i * e->populations + p) * e->length);     \
        T mean = (T)(sum / n);                                                                     \
        for (int64_t i = 0; i < e->segments; i++)                                                  \
            squares += squares_##s(e->length,                                                      \
                                   (const T *)w->x + (i * e->populations + p) * e->length, mean);  \
        T var = (T)(squares / n), spread = (T)(1 / sqrt((double)var + w->eps));                    \
        ((T *)w->mean)[p] = mean;                                                                  \
        ((T *)w->var)[p] = var;                                                                    \
        T scale = spread, shift = 0;                                                               \
        if (e->affine == PER_POPULATION) {                                                         \
            scale *= weight ? weight[p % e->channels] : 1;                                         \
            shift = bias ? bias[p % e->channels] : 0;                                              \
        }                                                                                          \
        for (int64_t i = 0; i < e->segments; i++) {                                                \
            const T *x = (const T *)w->x + (i * e->populations + p) * e->length;                   \
            T *y = (T *)w->y + (i * e->populations + p) * e->length;                               \
            if (e->affine != PER_ELEMENT) {                                                        \
                TN__IVDEP                                                                          \
                for (int64_t k = 0; k < e->length; k++)                                            \
                    y[k] = (x[k] - mean) * scale + shift;                                          \
            } else {                                                                               \
                TN__IVDEP                                                                          \
                for (int64_t k = 0; k < e->length; k++)                                            \
                    y[k] = (x[k] - mean) * spread * (weight ? weight[k] : 1) +                     \
                           (bias ? bias[k] : 0);                                                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Sums over a population of g and of g times its place, g = gy weight; gx from them. */       \
    static void back_##s(const struct work *w, int64_t p, double *sum_gy, double *sum_gyu)         \
    {                                                                                              \
        const struct people *e = &w->people;                                                       \
        const T *weight = w->weight;                                                               \
        T mean = ((const T *)w->mean_in)[p];                                                       \
        T spread = (T)(1 / sqrt((double)((const T *)w->var_in)[p] + w->eps));                      \
        double n = (double)e->segments * (double)e->length, g1 = 0, g2 = 0;                        \
        bool each = e->affine == PER_ELEMENT && weight;                                            \
        for (int64_t i = 0; i < e->segments; i++) {                                                \
            const T *x = (const T *)w->x + (i * e->populations + p) * e->length;                   \
            const T *gy = (const T *)w->gy + (i * e->populations + p) * e->length;                 \
            T a[LANES] = { 0 }, b[LANES] = { 0 };                                                  \
            int64_t k = 0;                                                                         \
            for (; k + LANES <= e->length; k += LANES) {                                           \
                for (int j = 0; j < LANES; j++) {                                                  \
                    T g = each ? gy[k + j] * weight[k + j] : gy[k + j];                            \
                    a[j] += g;                                                                     \
                    b[j] += g * (x[k + j] - mean);                                                 \
                }                                                                                  \
                if (k / LANES % 256 == 255)                                                        \
                    for (int j = 0; j < LANES; j++) {                                              \
                        g1 += (double)a[j];                                                        \
                        g2 += (double)b[j];                                                        \
                        a[j] = b[j] = 0;                                                           \
                    }                                                                              \
            }                                                                                      \
            for (; k < e->length; k++) {                                                           \
                T g = each ? gy[k] * weight[k] : gy[k];                                            \
                g1 += (double)g;                                                                   \
                g2 += (double)g * (double)(x[k] - mean);                                           \
            }                                                                                      \
            for (int j = 0; j < LANES; j++) {                                                      \
                g1 += (double)a[j];                                                                \
                g2 += (double)b[j];                                                                \
            }                                                                                      \
        }                                                                                          \
        *sum_gy = g1;                                                                              \
        *sum_gyu = g2 * (double)spread;                                                            \
        T factor = e->affine == PER_POPULATION && weight ? weight[p % e->channels] : 1;            \
        T low = (T)(g1 / n), tilt = (T)(g2 * (double)spread * (double)spread / n);                 \
        for (int64_t i = 0; i < e->segments; i++) {                                                \
            const T *x = (const T *)w->x + (i * e->populations + p) * e->length;                   \
            const T *gy = (const T *)w->gy + (i * e->populations + p) * e->length;                 \
            T *gx = (T *)w->gx + (i * e->populations + p) * e->length, all = spread * factor;      \
            if (each) {                                                                            \
                TN__IVDEP                                                                          \
                for (int64_t k = 0; k < e->length; k++)                                            \
                    gx[k] = (gy[k] * weight[k] - low - (x[k] - mean) * tilt) * all;                \
            } else {                                                                               \
                TN__IVDEP                                                                          \
                for (int64_t k = 0; k < e->length; k++)                                            \
                    gx[k] = (gy[k] - low - (x[k] - mean) * tilt) * all;                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static tn_status forth_##s(void *user, int64_t begin, int64_t end)                             \
    {                                                                                              \
        for (int64_t p = begin; p < end; p++)                                                      \
            one_##s(user, p);                                                                      \
        return TN_OK;                                                                              \
    }                                                                                              \
    /* A channel and all populations of it, one after the other. */                                \
    static tn_status channels_##s(void *user, int64_t begin, int64_t end)                          \
    {                                                                                              \
        const struct work *w = user;                                                               \
        for (int64_t c = begin; c < end; c++) {                                                    \
            double gb = 0, gw = 0, sum, tilt;                                                      \
            for (int64_t p = c; p < w->people.populations; p += w->people.channels) {              \
                back_##s(w, p, &sum, &tilt);                                                       \
                gb += sum;                                                                         \
                gw += tilt;                                                                        \
            }                                                                                      \
            if (w->wants_affine) {                                                                 \
                ((T *)w->gb)[c] = (T)gb;                                                           \
                ((T *)w->gw)[c] = (T)gw;                                                           \
            }                                                                                      \
        }                                                                                          \
        return TN_OK;                                                                              \
    }                                                                                              \
    static tn_status rows_##s(void *user, int64_t begin, int64_t end)                              \
    {                                                                                              \
        double sum, tilt;                                                                          \
        for (int64_t p = begin; p < end; p++)                                                      \
            back_##s(user, p, &sum, &tilt);                                                        \
        return TN_OK;                                                                              \
    }                                                                                              \
    /* Columns [begin, end) of gw and gb, over all rows. */                                        \
    static tn_status columns_##s(void *user, int64_t begin, int64_t end)                           \
    {                                                                                              \
        const struct work *w = user;                                                               \
        const struct people *e = &w->people;                                                       \
        double gw[ROWS_AT_ONCE], gb[ROWS_AT_ONCE];                                                 \
        for (int64_t first = begin; first < end; first += ROWS_AT_ONCE) {                          \
            int64_t here = end - first < ROWS_AT_ONCE ? end - first : ROWS_AT_ONCE;                \
            memset(gw, 0, sizeof gw);                                                              \
            memset(gb, 0, sizeof gb);                                                              \
            for (int64_t p = 0; p < e->populations; p++) {                                         \
                const T *x = (const T *)w->x + p * e->length + first;                              \
                const T *gy = (const T *)w->gy + p * e->length + first;                            \
                T mean = ((const T *)w->mean_in)[p];                                               \
                T spread = (T)(1 / sqrt((double)((const T *)w->var_in)[p] + w->eps));              \
                for (int64_t k = 0; k < here; k++) {                                               \
                    gw[k] += (double)(gy[k] * ((x[k] - mean) * spread));                           \
                    gb[k] += (double)gy[k];                                                        \
                }                                                                                  \
            }                                                                                      \
            for (int64_t k = 0; k < here; k++) {                                                   \
                ((T *)w->gw)[first + k] = (T)gw[k];                                                \
                ((T *)w->gb)[first + k] = (T)gb[k];                                                \
            }                                                                                      \
        }                                                                                          \
        return TN_OK;                                                                              \
    }
PEOPLE(f32, float)
PEOPLE(f64, double)

static const void *at_of(const tn_view *view)
{
    return view ? tn__view_at(view) : NULL;
}

/* Populations for a thread at least: 32768 numbers are worth one. */
static int64_t grain_of(const struct people *e)
{
    int64_t each = e->segments * e->length;
    return each >= 32768 ? 1 : 32768 / each + 1;
}

tn_status tn__standardize(const tn_call *call)
{
    const tn_standardize_options *o = call->options;
    struct work w = { .eps = o->eps,
                      .x = at_of(call->in[0]),
                      .weight = at_of(call->in[1]),
                      .bias = at_of(call->in[2]),
                      .y = tn__view_at(call->out[0]),
                      .mean = tn__view_at(call->out[1]),
                      .var = tn__view_at(call->out[2]) };

    find_people(call->in[0], o->dims, &w.people);
    find_affine(call->in[0], call->in[1], &w.people);
    find_affine(call->in[0], call->in[2], &w.people);
    return tn_parallel_for(w.people.populations, grain_of(&w.people),
                           tn__ct_of(call->dtype) == TN__F32 ? forth_f32 : forth_f64, &w);
}

tn_status tn__standardize_grad(const tn_call *call)
{
    const tn_standardize_grad_options *o = call->options;
    const tn_view *x = call->in[1], *gw = call->out[1];
    bool single = tn__ct_of(call->dtype) == TN__F32;
    struct work w = { .eps = o->eps,
                      .gy = at_of(call->in[0]),
                      .x = at_of(x),
                      .mean_in = at_of(call->in[2]),
                      .var_in = at_of(call->in[3]),
                      .weight = at_of(call->in[4]),
                      .gx = tn__view_at(call->out[0]),
                      .gw = tn__view_at(gw),
                      .gb = tn__view_at(call->out[2]),
                      .wants_affine = o->affine_shape.count > 0 };
    tn_status status;

    find_people(x, o->dims, &w.people);
    find_affine(x, call->in[4], &w.people);
    if (w.wants_affine)
        find_affine(x, gw, &w.people);
    if (w.people.affine == PER_POPULATION)
        return tn_parallel_for(w.people.channels, grain_of(&w.people),
                               single ? channels_f32 : channels_f64, &w);
    status = tn_parallel_for(w.people.populations, grain_of(&w.people),
                             single ? rows_f32 : rows_f64, &w);
    if (status == TN_OK && w.wants_affine)
        status = tn_parallel_for(w.people.length, 64, single ? columns_f32 : columns_f64, &w);
    return status;
}
