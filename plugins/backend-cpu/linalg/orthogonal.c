/* SPDX-License-Identifier: MIT
 *
 * Kernels of decompositions with orthogonal factors by LAPACK: linalg_qr, linalg_eigh, linalg_svd.
 * Only one thread at a time calls the library (matmul/blas.h says why), so the matrices of a batch
 * are computed one after the other. */
#include <string.h>

#include "base/scratch.h"
#include "linalg/lapack.h"
#include "matmul/blas.h"

/* Parts of one block of scratch memory. The first pass, without memory, adds up the sizes. */
struct parts {
    char *memory;
    size_t used;
};

static void *part(struct parts *p, int64_t count, int64_t item)
{
    size_t at = p->used;
    p->used += ((size_t)(count * item) + 63) / 64 * 64;
    return p->memory ? p->memory + at : NULL;
}

static bool is_complex(tn_dtype dtype)
{
    return dtype == TN_C64 || dtype == TN_C128;
}

/* The size of the dtype of singular values and eigenvalues. */
static int64_t real_size(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_C64 ? 4 : 8;
}

/* Returns the size of a workspace that LAPACK wrote as a number to work[0]. Float32 may have
 * rounded it down, so it gets larger by 1 in 2^20. */
static int64_t asked_size(tn_dtype dtype, const void *work)
{
    float f;
    double d;
    if (real_size(dtype) == 4) {
        memcpy(&f, work, sizeof f);
        d = (double)f;
    } else {
        memcpy(&d, work, sizeof d);
    }
    int64_t size = (int64_t)d;
    return size + size / (1 << 20) + 1;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- QR -------------------------------------------------------------------------------------- */

struct qr {
    char *a, *q, *tau, *work;
    int m, n, k, q_columns, lwork;
};

static void layout_qr(struct parts *p, struct qr *w, int64_t item)
{
    int64_t wide = w->n > w->q_columns ? w->n : w->q_columns;
    w->a = part(p, (int64_t)w->m * w->n, item);
    w->q = part(p, (int64_t)w->m * wide, item);
    w->tau = part(p, w->k, item);
    w->work = part(p, w->lwork, item);
}

/* Factors w->a: R is left in its upper triangle, Q in w->q. */
static void factor_qr(const struct tn__lapack *lapack, struct qr *w, int64_t item)
{
    int info;
    tn__blas_enter();
    lapack->geqrf(&w->m, &w->n, w->a, &w->m, w->tau, w->work, &w->lwork, &info);
    if (w->q_columns > 0) {
        memcpy(w->q, w->a, (size_t)w->m * (size_t)smaller(w->n, w->q_columns) * (size_t)item);
        lapack->orgqr(&w->m, &w->q_columns, &w->k, w->q, &w->m, w->tau, w->work, &w->lwork, &info);
    }
    tn__blas_leave();
}

static void ask_qr(const struct tn__lapack *lapack, tn_dtype dtype, struct qr *w)
{
    double size[2] = { 0 };
    int info, ask = -1;
    int64_t most;
    tn__blas_enter();
    lapack->geqrf(&w->m, &w->n, NULL, &w->m, NULL, size, &ask, &info);
    most = asked_size(dtype, size);
    if (w->q_columns > 0) {
        lapack->orgqr(&w->m, &w->q_columns, &w->k, NULL, &w->m, NULL, size, &ask, &info);
        if (asked_size(dtype, size) > most)
            most = asked_size(dtype, size);
    }
    tn__blas_leave();
    w->lwork = (int)most;
}

/* Writes the upper triangle of w->a to r and 0 below it. */
static void write_r(struct qr *w, const struct tn__plane *r, int64_t item)
{
    for (int64_t j = 0; j < w->n && j + 1 < w->m; j++)
        memset(w->a + (j * w->m + j + 1) * item, 0, (size_t)((w->m - j - 1) * item));
    tn__lapack_plane_write(w->a, w->m, r);
}

static tn_status run_linalg_qr(const tn_call *call)
{
    const tn_linalg_qr_options *o = call->options;
    const tn_view *x = call->in[0], *q = call->out[0], *r = call->out[1];
    const struct tn__lapack *lapack = tn__lapack_of(call->dtype);
    struct tn__batch batch = tn__lapack_batch_of(x, 2);
    bool has_q = strcmp(o->mode, "r") != 0;
    int64_t item = tn__view_item(x);
    struct qr w = { .m = (int)x->shape[x->ndim - 2], .n = (int)x->shape[x->ndim - 1] };
    struct parts parts = { NULL, 0 };
    w.k = (int)smaller(w.m, w.n);
    w.q_columns = has_q ? (int)q->shape[q->ndim - 1] : 0;
    if (batch.count == 0 || w.m == 0 || (w.k == 0 && w.q_columns == 0))
        return TN_OK;
    if (w.k > 0)
        ask_qr(lapack, call->dtype, &w);
    layout_qr(&parts, &w, item);
    parts = (struct parts){ tn__scratch_take(parts.used + 1), 0 };
    if (!parts.memory)
        return TN_ERR_MEMORY;
    layout_qr(&parts, &w, item);
    for (int64_t i = 0; i < batch.count; i++) {
        struct tn__plane from = tn__lapack_plane_of(&batch, x, false, i);
        if (w.k > 0) {
            struct tn__plane to = tn__lapack_plane_of(&batch, r, false, i);
            tn__lapack_plane_read(&from, w.a, w.m);
            factor_qr(lapack, &w, item);
            write_r(&w, &to, item);
        } else {
            tn__lapack_plane_identity(call->dtype, w.q, w.m, w.q_columns);
        }
        if (has_q) {
            struct tn__plane to = tn__lapack_plane_of(&batch, q, false, i);
            tn__lapack_plane_write(w.q, w.m, &to);
        }
    }
    tn__scratch_give(parts.memory);
    return TN_OK;
}

/* ---- eigenvalues ----------------------------------------------------------------------------- */

struct eigh {
    char *a, *w, *work, *rwork;
    int *iwork;
    int n, lwork, lrwork, liwork, info;
};

static void layout_eigh(struct parts *p, struct eigh *e, tn_dtype dtype)
{
    int64_t item = (int64_t)tn_dtype_size(dtype);
    e->a = part(p, (int64_t)e->n * e->n, item);
    e->w = part(p, e->n, real_size(dtype));
    e->work = part(p, e->lwork, item);
    e->rwork = part(p, e->lrwork, real_size(dtype));
    e->iwork = part(p, e->liwork, sizeof(int));
}

static void factor_eigh(const tn_call *call, struct eigh *e)
{
    const struct tn__lapack *lapack = tn__lapack_of(call->dtype);
    const tn_linalg_eigh_options *o = call->options;
    tn__blas_enter();
    if (is_complex(call->dtype))
        lapack->heevd("V", o->uplo, &e->n, e->a, &e->n, e->w, e->work, &e->lwork, e->rwork,
                      &e->lrwork, e->iwork, &e->liwork, &e->info, 1, 1);
    else
        lapack->syevd("V", o->uplo, &e->n, e->a, &e->n, e->w, e->work, &e->lwork, e->iwork,
                      &e->liwork, &e->info, 1, 1);
    tn__blas_leave();
}

static void ask_eigh(const tn_call *call, struct eigh *e)
{
    double size[2] = { 0 }, real = 0;
    int whole = 0;
    struct eigh ask = { .n = e->n, .lwork = -1, .lrwork = -1, .liwork = -1 };
    ask.work = (char *)size;
    ask.rwork = (char *)&real;
    ask.iwork = &whole;
    factor_eigh(call, &ask);
    e->lwork = (int)asked_size(call->dtype, size);
    e->lrwork = is_complex(call->dtype) ? (int)asked_size(call->dtype, &real) : 0;
    e->liwork = whole;
}

static void write_values(const void *numbers, const tn_view *view, const struct tn__batch *batch,
                         int64_t index)
{
    struct tn__plane to = tn__lapack_plane_of(batch, view, true, index);
    tn__lapack_plane_write(numbers, to.rows, &to);
}

static tn_status no_values(const char *name, const struct tn__batch *batch, int64_t index,
                           bool finite)
{
    char text[64];
    return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */
                   finite ? "%s: %sThe algorithm failed to converge because the input matrix is "
                            "ill-conditioned or has too many repeated values."
                          : "%s: %sThe algorithm failed to converge because the input matrix "
                            "contained non-finite values.",
                   name, tn__lapack_batch_text(batch, index, text, sizeof text));
}

/* Whether the elements of the triangle that is read are finite. */
static bool triangle_finite(const tn_call *call, const struct eigh *e)
{
    const tn_linalg_eigh_options *o = call->options;
    bool upper = o->uplo[0] == 'U', finite = true;
    int64_t item = (int64_t)tn_dtype_size(call->dtype), n = e->n;
    for (int64_t j = 0; j < n && finite; j++)
        finite = tn__lapack_plane_finite(call->dtype, e->a + (j * n + (upper ? 0 : j)) * item,
                                         upper ? j + 1 : n - j);
    return finite;
}

static tn_status run_linalg_eigh(const tn_call *call)
{
    const tn_view *x = call->in[0];
    struct tn__batch batch = tn__lapack_batch_of(x, 2);
    struct eigh e = { .n = (int)x->shape[x->ndim - 1] };
    struct parts parts = { NULL, 0 };
    tn_status status = TN_OK;
    if (batch.count == 0 || e.n == 0)
        return TN_OK;
    ask_eigh(call, &e);
    layout_eigh(&parts, &e, call->dtype);
    parts = (struct parts){ tn__scratch_take(parts.used), 0 };
    if (!parts.memory)
        return TN_ERR_MEMORY;
    layout_eigh(&parts, &e, call->dtype);
    for (int64_t i = 0; i < batch.count && status == TN_OK; i++) {
        struct tn__plane from = tn__lapack_plane_of(&batch, x, false, i),
                         to = tn__lapack_plane_of(&batch, call->out[1], false, i);
        bool finite;
        tn__lapack_plane_read(&from, e.a, e.n);
        finite = triangle_finite(call, &e);
        e.info = 0;
        if (finite)
            factor_eigh(call, &e);
        if (!finite || e.info != 0) {
            status = no_values("linalg_eigh", &batch, i, finite);
            break;
        }
        write_values(e.w, call->out[0], &batch, i);
        tn__lapack_plane_write(e.a, e.n, &to);
    }
    tn__scratch_give(parts.memory);
    return status;
}

/* ---- singular values ------------------------------------------------------------------------- */

struct svd {
    char *a, *s, *u, *vh, *work, *rwork;
    int *iwork;
    int m, n, k, u_columns, vh_rows, lwork, info;
};

static void layout_svd(struct parts *p, struct svd *w, tn_dtype dtype)
{
    int64_t item = (int64_t)tn_dtype_size(dtype), small = w->k, large = w->m + w->n - w->k;
    int64_t first = 5 * small * small + 5 * small,
            second = 2 * large * small + 2 * small * small + small;
    w->a = part(p, (int64_t)w->m * w->n, item);
    w->s = part(p, w->k, real_size(dtype));
    w->u = part(p, (int64_t)w->m * w->u_columns, item);
    w->vh = part(p, (int64_t)w->vh_rows * w->n, item);
    w->work = part(p, w->lwork, item);
    /* LAPACK's documentation of gesdd has these sizes. */
    w->rwork = part(p, is_complex(dtype) ? (first > second ? first : second) : 0, real_size(dtype));
    w->iwork = part(p, 8 * (int64_t)w->k, sizeof(int));
}

static void factor_svd(const tn_call *call, struct svd *w)
{
    const struct tn__lapack *lapack = tn__lapack_of(call->dtype);
    const tn_linalg_svd_options *o = call->options;
    const char *job = o->full_matrices ? "A" : "S";
    tn__blas_enter();
    if (is_complex(call->dtype))
        lapack->gesdd_complex(job, &w->m, &w->n, w->a, &w->m, w->s, w->u, &w->m, w->vh, &w->vh_rows,
                              w->work, &w->lwork, w->rwork, w->iwork, &w->info, 1);
    else
        lapack->gesdd(job, &w->m, &w->n, w->a, &w->m, w->s, w->u, &w->m, w->vh, &w->vh_rows,
                      w->work, &w->lwork, w->iwork, &w->info, 1);
    tn__blas_leave();
}

static void ask_svd(const tn_call *call, struct svd *w)
{
    double size[2] = { 0 };
    struct svd ask = *w;
    ask.work = (char *)size;
    ask.lwork = -1;
    factor_svd(call, &ask);
    w->lwork = (int)asked_size(call->dtype, size);
}

/* One matrix of the batch. */
static tn_status one_svd(const tn_call *call, const struct tn__batch *batch, int64_t i,
                         struct svd *w)
{
    struct tn__plane from = tn__lapack_plane_of(batch, call->in[0], false, i),
                     u = tn__lapack_plane_of(batch, call->out[0], false, i),
                     vh = tn__lapack_plane_of(batch, call->out[2], false, i);
    if (w->k == 0) {
        tn__lapack_plane_identity(call->dtype, w->u, w->m, w->u_columns);
        tn__lapack_plane_identity(call->dtype, w->vh, w->vh_rows, w->n);
    } else {
        bool finite;
        tn__lapack_plane_read(&from, w->a, w->m);
        finite = tn__lapack_plane_finite(call->dtype, w->a, (int64_t)w->m * w->n);
        w->info = 0;
        if (finite)
            factor_svd(call, w);
        if (!finite || w->info != 0)
            return no_values("linalg_svd", batch, i, finite);
        write_values(w->s, call->out[1], batch, i);
    }
    tn__lapack_plane_write(w->u, w->m, &u);
    tn__lapack_plane_write(w->vh, w->vh_rows, &vh);
    return TN_OK;
}

static tn_status run_linalg_svd(const tn_call *call)
{
    const tn_view *x = call->in[0], *u = call->out[0], *vh = call->out[2];
    struct tn__batch batch = tn__lapack_batch_of(x, 2);
    struct svd w = { .m = (int)x->shape[x->ndim - 2], .n = (int)x->shape[x->ndim - 1] };
    struct parts parts = { NULL, 0 };
    tn_status status = TN_OK;
    w.k = (int)smaller(w.m, w.n);
    w.u_columns = (int)u->shape[u->ndim - 1];
    w.vh_rows = (int)vh->shape[vh->ndim - 2];
    if (batch.count == 0)
        return TN_OK;
    if (w.k > 0)
        ask_svd(call, &w);
    layout_svd(&parts, &w, call->dtype);
    parts = (struct parts){ tn__scratch_take(parts.used + 1), 0 };
    if (!parts.memory)
        return TN_ERR_MEMORY;
    layout_svd(&parts, &w, call->dtype);
    for (int64_t i = 0; i < batch.count && status == TN_OK; i++)
        status = one_svd(call, &batch, i, &w);
    tn__scratch_give(parts.memory);
    return status;
}

#define LAPACK_TYPES (TN__F32_F64 | TN_MASK_COMPLEX)
static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(linalg_eigh, LAPACK_TYPES, tn__lapack_supports),
    TN__KERNEL_SUPPORTS(linalg_qr, LAPACK_TYPES, tn__lapack_supports),
    TN__KERNEL_SUPPORTS(linalg_svd, LAPACK_TYPES, tn__lapack_supports),
};
TN__KERNEL_TABLE(linalg_orthogonal);
