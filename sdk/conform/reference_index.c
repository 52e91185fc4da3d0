/* SPDX-License-Identifier: MIT
 *
 * The kernels of the reference for copies, selection, indexing and random numbers. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const reference_index_names[] = { "copy",           "where",         "complex",
                                              "arange",         "gather",        "scatter",
                                              "scatter_add",    "nonzero",       "narrow_grad",
                                              "philox_uniform", "philox_normal", NULL };

static tn_status no_memory(void)
{
    return tn_fail(TN_ERR_MEMORY, "reference: out of memory");
}

/* ---- copies and choices ---- */

static tn_status copy(const tn_call *call)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    reference_row row;
    tn_status status;

    if (tn_dtype_size(tn_view_dtype(x)) > 0 && tn_view_dtype(x) == tn_view_dtype(y) &&
        ((TN_BIT(tn_view_dtype(x)) & (TN_MASK_FLOAT | TN_MASK_INT | TN_MASK_COMPLEX)) == 0) &&
        tn_view_dtype(x) != TN_BOOL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "reference: dtype %s: no arithmetic",
                       tn_dtype_name(tn_view_dtype(x)));
    status = reference_load(x, y, &row);
    if (status == TN_OK)
        reference_store(y, row.at);
    reference_drop(&row);
    return status;
}

static tn_status where(const tn_call *call)
{
    reference_row row[3] = { { NULL, 0, TN_BOOL }, { NULL, 0, TN_BOOL }, { NULL, 0, TN_BOOL } };
    tn_status status = TN_OK;

    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = reference_load(call->in[i], call->out[0], &row[i]);
    for (int64_t i = 0; status == TN_OK && i < row[0].count; i++)
        row[1].at[i] = row[0].at[i].re != 0 ? row[1].at[i] : row[2].at[i];
    if (status == TN_OK)
        reference_store(call->out[0], row[1].at);
    for (int i = 0; i < 3; i++)
        reference_drop(&row[i]);
    return status;
}

static tn_status complex_of(const tn_call *call)
{
    reference_row re, im = { NULL, 0, TN_BOOL };
    tn_status status = reference_load(call->in[0], call->out[0], &re);

    if (status == TN_OK)
        status = reference_load(call->in[1], call->out[0], &im);
    for (int64_t i = 0; status == TN_OK && i < re.count; i++)
        re.at[i].im = im.at[i].re;
    if (status == TN_OK)
        reference_store(call->out[0], re.at);
    reference_drop(&re);
    reference_drop(&im);
    return status;
}

static long double exact(tn_scalar scalar)
{
    return scalar.kind == TN_SCALAR_INT ? (long double)scalar.as.i
                                        : (long double)tn_scalar_as_float(scalar);
}

static tn_status arange(const tn_call *call)
{
    const tn_arange_options *o = call->options;
    int64_t count = reference_count(call->out[0]);
    reference_number *to = calloc((size_t)(count + 1), sizeof *to);

    if (to == NULL)
        return no_memory();
    for (int64_t i = 0; i < count; i++)
        to[i].re = exact(o->start) + (long double)i * exact(o->step);
    reference_store(call->out[0], to);
    free(to);
    return TN_OK;
}

/* ---- indices ---- */

/* Computes the position in x that element i of an index tensor selects: the coordinates of element
 * i, with coordinate `dim` replaced by `value`. */
static tn_status place_of(const tn_call *call, const tn_view *x, const tn_view *index, int64_t dim,
                          int64_t i, int64_t value, int64_t *out)
{
    int64_t at[TN_MAX_DIMS], place = 0;

    if (dim < 0)
        dim += x->ndim;
    for (int32_t d = index->ndim - 1; d >= 0; d--) {
        at[d] = i % index->shape[d];
        i /= index->shape[d];
    }
    if (x->ndim == 0) {
        *out = 0;
        return value == 0 ? TN_OK
                          : tn_fail(TN_ERR_INDEX, "%s: index: out of range, got %lld; expected 0",
                                    call->op, (long long)value);
    }
    if (value < 0 || value >= x->shape[dim])
        return tn_fail(TN_ERR_INDEX,
                       "%s: index: out of range, got %lld; expected 0 to %lld in dimension %lld",
                       call->op, (long long)value, (long long)x->shape[dim] - 1, (long long)dim);
    for (int32_t d = 0; d < x->ndim; d++)
        place = place * x->shape[d] + (d == dim ? value : index->ndim > 0 ? at[d] : 0);
    *out = place;
    return TN_OK;
}

/* Computes the position in src of the element with the coordinates of element i of the index
 * tensor. src may be larger than the index tensor. */
static int64_t in_source(const tn_view *src, const tn_view *index, int64_t i)
{
    int64_t at[TN_MAX_DIMS], place = 0;

    for (int32_t d = index->ndim - 1; d >= 0; d--) {
        at[d] = i % index->shape[d];
        i /= index->shape[d];
    }
    for (int32_t d = 0; d < src->ndim; d++)
        place = place * src->shape[d] + (index->ndim > 0 ? at[d] : 0);
    return place;
}

/* gather ('g'), scatter ('=') and scatter_add ('+'). */
static tn_status by_index(const tn_call *call, char kind, int64_t dim)
{
    const tn_view *x = call->in[0], *index = call->in[1],
                  *src = call->n_in > 2 ? call->in[2] : NULL;
    reference_row row, which = { NULL, 0, TN_BOOL }, from = { NULL, 0, TN_BOOL };
    tn_status status = reference_load(x, NULL, &row);

    if (status == TN_OK)
        status = reference_load(index, NULL, &which);
    if (status == TN_OK && src != NULL)
        status = reference_load(src, NULL, &from);
    for (int64_t i = 0; status == TN_OK && i < which.count; i++) {
        int64_t place;

        status = place_of(call, x, index, dim, i, reference_whole(which.at[i].re), &place);
        if (status != TN_OK)
            break;
        if (kind == 'g') {
            which.at[i] = row.at[place];
        } else {
            reference_number own = from.at[in_source(src, index, i)];

            if (kind == '+' && !reference_is_float(row.dtype) && !reference_is_complex(row.dtype))
                row.at[place].re = (long double)(int64_t)((uint64_t)reference_whole(
                                                              row.at[place].re) +
                                                          (uint64_t)reference_whole(own.re));
            else if (kind == '+')
                row.at[place].re += own.re, row.at[place].im += own.im;
            else
                row.at[place] = own;
        }
    }
    if (status == TN_OK)
        reference_store(call->out[0], kind == 'g' ? which.at : row.at);
    reference_drop(&row);
    reference_drop(&which);
    reference_drop(&from);
    return status;
}

static tn_status nonzero(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t shape[2] = { 0, x->ndim }, found = 0;
    reference_number *to;
    reference_row row;
    tn_status status = reference_load(x, NULL, &row);

    for (int64_t i = 0; status == TN_OK && i < row.count; i++)
        shape[0] += row.at[i].re != 0 || row.at[i].im != 0;
    if (status == TN_OK)
        status = call->make_output(call, 0, (tn_ints){ shape, 2 });
    to = calloc((size_t)(shape[0] * shape[1] + 1), sizeof *to);
    if (status == TN_OK && to == NULL)
        status = no_memory();
    for (int64_t i = 0; status == TN_OK && i < row.count; i++) {
        int64_t rest = i;

        if (row.at[i].re == 0 && row.at[i].im == 0)
            continue;
        for (int32_t d = x->ndim - 1; d >= 0; d--) {
            to[found * x->ndim + d].re = (long double)(rest % x->shape[d]);
            rest /= x->shape[d];
        }
        found++;
    }
    if (status == TN_OK)
        reference_store(call->out[0], to);
    reference_drop(&row);
    free(to);
    return status;
}

static tn_status narrow_grad(const tn_call *call)
{
    const tn_narrow_grad_options *o = call->options;
    reference_cut to = reference_cut_at(call->out[0], o->dim),
                  from = reference_cut_at(call->in[0], o->dim);
    reference_number *all = calloc((size_t)(reference_count(call->out[0]) + 1), sizeof *all);
    reference_row row;
    tn_status status = reference_load(call->in[0], NULL, &row);

    if (status == TN_OK && all == NULL)
        status = no_memory();
    for (int64_t i = 0; status == TN_OK && i < row.count; i++) {
        int64_t outer = i / (from.size * from.inner), along = i / from.inner % from.size;

        all[(outer * to.size + along + o->start) * to.inner + i % from.inner] = row.at[i];
    }
    if (status == TN_OK)
        reference_store(call->out[0], all);
    reference_drop(&row);
    free(all);
    return status;
}

/* ---- random numbers: Philox 4x32-10, Salmon and others 2011 ---- */

static void words(uint64_t seed, uint64_t block, uint64_t lane, uint32_t *w)
{
    uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)lane,
                      (uint32_t)(lane >> 32) };

    for (int round = 0; round < 10; round++) {
        uint64_t left = (uint64_t)0xD2511F53u * c[0], right = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t mixed[4] = { (uint32_t)(right >> 32) ^ c[1] ^ key[0], (uint32_t)right,
                              (uint32_t)(left >> 32) ^ c[3] ^ key[1], (uint32_t)left };

        memcpy(c, mixed, sizeof c);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    memcpy(w, c, sizeof c);
}

/* Converts 24 bits of a word or, if `wide`, 53 bits of two words to a number in [0, 1). With
 * `one_more` = 1 the number is in (0, 1], as needed for a logarithm. */
static double share(const uint32_t *w, bool wide, int one_more)
{
    if (!wide)
        return ((double)(w[0] >> 8) + one_more) * 0x1p-24;
    return ((double)(((uint64_t)w[0] << 32 | w[1]) >> 11) + one_more) * 0x1p-53;
}

static tn_status draw(const tn_call *call, bool normal)
{
    const tn_philox_uniform_options *u = call->options; /* valid if !normal; `n` if normal */
    const tn_philox_normal_options *n = call->options;
    bool wide = tn_view_dtype(call->out[0]) == TN_F64;
    int64_t count = reference_count(call->out[0]), each = (wide ? 2 : 1) * (normal ? 2 : 1);
    uint64_t seed = (uint64_t)(normal ? n->seed : u->seed),
             first = (uint64_t)(normal ? n->block : u->block), lane = 0;
    reference_number *to = calloc((size_t)(count + 1), sizeof *to);
    const tn_view *state = call->in[1];
    uint32_t w[4];

    if (to == NULL)
        return no_memory();
    if (state != NULL) {
        const char *at = (const char *)state->data + state->byte_offset;

        seed = ((const uint64_t *)(const void *)at)[0];
        first += ((const uint64_t *)(const void *)at)[state->strides[0]];
        lane = ((const uint64_t *)(const void *)at)[2 * state->strides[0]];
    }
    for (int64_t i = 0; i < count; i++) {
        const uint32_t *own = w + i * each % 4;

        words(seed, first + (uint64_t)(i * each / 4), lane, w);
        if (normal) {
            double radius = sqrt(-2 * log(share(own, wide, 1)));

            to[i].re = n->mean + n->std * (radius * cos(6.283185307179586476925286766559 *
                                                        share(own + each / 2, wide, 0)));
        } else if (wide) {
            to[i].re = fma(share(own, true, 0), u->high - u->low, u->low);
        } else {
            to[i].re = fmaf((float)share(own, false, 0), (float)(u->high - u->low), (float)u->low);
        }
    }
    reference_store(call->out[0], to);
    free(to);
    return TN_OK;
}

/* ---- by name ---- */

tn_status reference_index(const tn_call *call)
{
    const char *op = call->op;

    if (strcmp(op, "copy") == 0)
        return copy(call);
    if (strcmp(op, "where") == 0)
        return where(call);
    if (strcmp(op, "complex") == 0)
        return complex_of(call);
    if (strcmp(op, "arange") == 0)
        return arange(call);
    if (strcmp(op, "gather") == 0)
        return by_index(call, 'g', ((const tn_gather_options *)call->options)->dim);
    if (strcmp(op, "scatter") == 0)
        return by_index(call, '=', ((const tn_scatter_options *)call->options)->dim);
    if (strcmp(op, "scatter_add") == 0)
        return by_index(call, '+', ((const tn_scatter_add_options *)call->options)->dim);
    if (strcmp(op, "nonzero") == 0)
        return nonzero(call);
    if (strcmp(op, "narrow_grad") == 0)
        return narrow_grad(call);
    return draw(call, strcmp(op, "philox_normal") == 0);
}
