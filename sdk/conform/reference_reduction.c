/* SPDX-License-Identifier: MIT
 *
 * The kernels of the reference that combine elements along dimensions: sums, extremes, scans,
 * sorting, matrix products, negative log-likelihood. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const reference_reduction_names[] = { "sum",    "prod",   "amax",     "amin",
                                                  "argmax", "argmin", "cumsum",   "cumprod",
                                                  "sort",   "bmm",    "nll_loss", "nll_loss_grad",
                                                  NULL };

/* ---- folds ---- */

static bool above(long double a, long double b) /* NaN is larger than all numbers */
{
    return isnan(a) ? !isnan(b) : a > b;
}

static bool below(long double a, long double b) /* NaN is smaller than all numbers */
{
    return isnan(a) ? !isnan(b) : a < b;
}

/* Combines two elements: '+' sum, '*' product, '>' maximum, '<' minimum. `whole`: as integers, with
 * wrap-around. */
static reference_number fold_two(char kind, reference_number all, reference_number x, bool whole)
{
    reference_number y = all;

    switch (kind) {
    case '+':
        y.re = whole ? (long double)(int64_t)((uint64_t)reference_whole(all.re) +
                                              (uint64_t)reference_whole(x.re))
                     : all.re + x.re;
        y.im = all.im + x.im;
        break;
    case '*':
        if (whole)
            y.re = (long double)(int64_t)((uint64_t)reference_whole(all.re) *
                                          (uint64_t)reference_whole(x.re));
        else
            y.re = x.im == 0 && all.im == 0 ? all.re * x.re : all.re * x.re - all.im * x.im;
        y.im = x.im == 0 && all.im == 0 ? 0 : all.re * x.im + all.im * x.re;
        break;
    case '>': return above(x.re, all.re) ? x : all;
    default: return below(x.re, all.re) ? x : all;
    }
    return y;
}

static bool whole_numbers(tn_dtype dtype)
{
    return !reference_is_float(dtype) && !reference_is_complex(dtype);
}

/* Returns the index of the output to which element i of x contributes. `gone` marks the reduced
 * dimensions. */
static int64_t output_of(const tn_view *x, const bool *gone, int64_t i)
{
    int64_t index[TN_MAX_DIMS], at = 0;

    for (int32_t d = x->ndim - 1; d >= 0; d--) {
        index[d] = i % x->shape[d];
        i /= x->shape[d];
    }
    for (int32_t d = 0; d < x->ndim; d++)
        if (!gone[d])
            at = at * x->shape[d] + index[d];
    return at;
}

/* Reduces the dimensions `dims` (none: all). With `argument`, the result is the index of the
 * extreme element. */
static tn_status fold(const tn_call *call, char kind, tn_ints dims, bool argument)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    bool gone[TN_MAX_DIMS] = { false };
    int64_t count = reference_count(y), *where;
    reference_number *to;
    reference_row row;
    tn_status status = reference_load(x, NULL, &row);

    for (int32_t d = 0; d < x->ndim; d++)
        gone[d] = dims.count <= 0;
    for (int64_t i = 0; i < dims.count && x->ndim > 0; i++)
        gone[dims.at[i] < 0 ? dims.at[i] + x->ndim : dims.at[i]] = true;
    to = malloc((size_t)(count + 1) * sizeof *to);
    where = malloc((size_t)(count + 1) * sizeof *where);
    if (status == TN_OK && (to == NULL || where == NULL))
        status = tn_fail(TN_ERR_MEMORY, "reference: out of memory");
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        to[i] = (reference_number){ kind == '*' ? 1 : 0, 0 };
        where[i] = -1;
    }
    for (int64_t i = 0; i < row.count && status == TN_OK; i++) {
        int64_t at = output_of(x, gone, i), place = i;
        bool first = where[at] < 0;

        if (argument && dims.count > 0) { /* the index along the dimension */
            reference_cut cut = reference_cut_at(x, dims.at[0]);

            place = i / cut.inner % cut.size;
        }
        if (kind == '+' || kind == '*') {
            to[at] = fold_two(kind, to[at], row.at[i], whole_numbers(row.dtype));
        } else if (first || (kind == '>' ? above(row.at[i].re, to[at].re)
                                         : below(row.at[i].re, to[at].re))) {
            to[at] = row.at[i];
            where[at] = place;
        }
    }
    for (int64_t i = 0; argument && i < count && status == TN_OK; i++)
        to[i] = (reference_number){ where[i], 0 };
    if (status == TN_OK)
        reference_store(y, to);
    reference_drop(&row);
    free(to);
    free(where);
    return status;
}

/* ---- along one dimension ---- */

static tn_status scan(const tn_call *call, char kind, int64_t dim, bool reverse)
{
    reference_cut cut = reference_cut_at(call->in[0], dim);
    reference_row row;
    tn_status status = reference_load(call->in[0], NULL, &row);

    for (int64_t line = 0; status == TN_OK && row.count > 0 && line < cut.outer * cut.inner;
         line++) {
        reference_number all = { kind == '*' ? 1 : 0, 0 };

        for (int64_t i = 0; i < cut.size; i++) {
            int64_t k = reverse ? cut.size - 1 - i : i;
            reference_number *at =
                &row.at[(line / cut.inner * cut.size + k) * cut.inner + line % cut.inner];

            all = fold_two(kind, all, *at, whole_numbers(row.dtype));
            *at = all;
        }
    }
    if (status == TN_OK)
        reference_store(call->out[0], row.at);
    reference_drop(&row);
    return status;
}

/* Insertion sort along one dimension, which is stable. */
static tn_status sort(const tn_call *call)
{
    const tn_sort_options *o = call->options;
    reference_cut cut = reference_cut_at(call->in[0], o->dim);
    reference_row row, places;
    tn_status status = reference_load(call->in[0], NULL, &row);

    places.at = NULL;
    if (status == TN_OK)
        status = reference_load(call->in[0], NULL, &places);
    for (int64_t line = 0; status == TN_OK && row.count > 0 && line < cut.outer * cut.inner;
         line++) {
        reference_number *x = row.at + line / cut.inner * cut.size * cut.inner + line % cut.inner;
        reference_number *p = places.at + (x - row.at);

        for (int64_t i = 0; i < cut.size; i++) {
            reference_number own = x[i * cut.inner];
            int64_t k = i;

            for (; k > 0 && (o->descending ? above(own.re, x[(k - 1) * cut.inner].re)
                                           : above(x[(k - 1) * cut.inner].re, own.re));
                 k--) {
                x[k * cut.inner] = x[(k - 1) * cut.inner];
                p[k * cut.inner] = p[(k - 1) * cut.inner];
            }
            x[k * cut.inner] = own;
            p[k * cut.inner] = (reference_number){ i, 0 };
        }
    }
    if (status == TN_OK) {
        reference_store(call->out[0], row.at);
        if (call->in[0]->ndim == 0)
            places.at[0] = (reference_number){ 0, 0 };
        reference_store(call->out[1], places.at);
    }
    reference_drop(&row);
    reference_drop(&places);
    return status;
}

/* ---- products ---- */

static tn_status bmm(const tn_call *call)
{
    const tn_view *va = call->in[0], *vb = call->in[1];
    int64_t n = va->shape[0], rows = va->shape[1], inner = va->shape[2], columns = vb->shape[2];
    bool whole = whole_numbers(tn_view_dtype(va));
    reference_number *to = malloc((size_t)(n * rows * columns + 1) * sizeof *to);
    reference_row a, b;
    tn_status status = reference_load(va, NULL, &a);

    b.at = NULL;
    if (status == TN_OK)
        status = reference_load(vb, NULL, &b);
    if (status == TN_OK && to == NULL)
        status = tn_fail(TN_ERR_MEMORY, "reference: out of memory");
    for (int64_t i = 0; i < n * rows * columns && status == TN_OK; i++) {
        const reference_number *x = a.at + i / columns * inner;
        const reference_number *y = b.at + (i / columns / rows * inner) * columns + i % columns;

        to[i] = (reference_number){ 0, 0 };
        for (int64_t k = 0; k < inner; k++)
            to[i] = fold_two('+', to[i], fold_two('*', x[k], y[k * columns], whole), whole);
    }
    if (status == TN_OK)
        reference_store(call->out[0], to);
    reference_drop(&a);
    reference_drop(&b);
    free(to);
    return status;
}

/* ---- negative log-likelihood ---- */

static bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

static tn_status wrong_target(const char *op, int64_t target, int64_t classes)
{
    return tn_fail(TN_ERR_INDEX, "%s: target: out of range, got %lld; expected one of %lld classes",
                   op, (long long)target, (long long)classes);
}

static tn_status nll_loss(const tn_call *call)
{
    const tn_nll_loss_options *o = call->options;
    int64_t n = call->in[0]->shape[0], classes = call->in[0]->shape[1];
    reference_number sum = { 0, 0 }, total = { 0, 0 };
    reference_row x, target;
    tn_status status = reference_load(call->in[0], NULL, &x);

    target.at = NULL;
    if (status == TN_OK)
        status = reference_load(call->in[1], NULL, &target);
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        int64_t t = reference_whole(target.at[i].re);
        long double own = 0;

        if (t != o->ignore_index) {
            if (t < 0 || t >= classes) {
                status = wrong_target(call->op, t, classes);
                break;
            }
            own = -x.at[i * classes + t].re;
            total.re += 1;
        }
        sum.re += own;
        target.at[i].re = own;
    }
    if (status == TN_OK) {
        if (is(o->reduction, "mean"))
            sum.re /= total.re;
        reference_store(call->out[0], is(o->reduction, "none") ? target.at : &sum);
        reference_store(call->out[1], &total);
    }
    reference_drop(&x);
    reference_drop(&target);
    return status;
}

static tn_status nll_loss_grad(const tn_call *call)
{
    const tn_nll_loss_grad_options *o = call->options;
    int64_t n = reference_count(call->in[1]), classes = o->classes;
    reference_number *to = calloc((size_t)(n * classes + 1), sizeof *to);
    reference_row gy, target, total;
    tn_status status = reference_load(call->in[0], NULL, &gy);

    target.at = total.at = NULL;
    if (status == TN_OK)
        status = reference_load(call->in[1], NULL, &target);
    if (status == TN_OK && call->in[2] != NULL)
        status = reference_load(call->in[2], NULL, &total);
    if (status == TN_OK && to == NULL)
        status = tn_fail(TN_ERR_MEMORY, "reference: out of memory");
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        int64_t t = reference_whole(target.at[i].re);
        long double g = gy.at[is(o->reduction, "none") ? i : 0].re;

        if (t == o->ignore_index)
            continue;
        if (t < 0 || t >= classes) {
            status = wrong_target(call->op, t, classes);
            break;
        }
        to[i * classes + t].re = is(o->reduction, "mean") ? -g / total.at[0].re : -g;
    }
    if (status == TN_OK)
        reference_store(call->out[0], to);
    reference_drop(&gy);
    reference_drop(&target);
    reference_drop(&total);
    free(to);
    return status;
}

/* ---- by name ---- */

tn_status reference_reduction(const tn_call *call)
{
    const char *op = call->op;
    tn_ints one = { NULL, 0 };

    if (is(op, "sum"))
        return fold(call, '+', ((const tn_sum_options *)call->options)->dims, false);
    if (is(op, "prod"))
        return fold(call, '*', ((const tn_prod_options *)call->options)->dims, false);
    if (is(op, "amax"))
        return fold(call, '>', ((const tn_amax_options *)call->options)->dims, false);
    if (is(op, "amin"))
        return fold(call, '<', ((const tn_amin_options *)call->options)->dims, false);
    if (is(op, "argmax") || is(op, "argmin")) {
        int64_t dim = is(op, "argmax") ? ((const tn_argmax_options *)call->options)->dim
                                       : ((const tn_argmin_options *)call->options)->dim;

        if (dim != INT64_MIN && call->in[0]->ndim > 0)
            one = (tn_ints){ &dim, 1 };
        return fold(call, is(op, "argmax") ? '>' : '<', one, true);
    }
    if (is(op, "cumsum")) {
        const tn_cumsum_options *o = call->options;

        return scan(call, '+', o->dim, o->reverse);
    }
    if (is(op, "cumprod"))
        return scan(call, '*', ((const tn_cumprod_options *)call->options)->dim, false);
    if (is(op, "sort"))
        return sort(call);
    if (is(op, "bmm"))
        return bmm(call);
    return is(op, "nll_loss") ? nll_loss(call) : nll_loss_grad(call);
}
