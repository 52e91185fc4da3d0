/* SPDX-License-Identifier: MIT
 *
 * Kernels that factor square matrices with LAPACK or solve with triangular ones: linalg_cholesky,
 * linalg_solve, linalg_inv, linalg_det, linalg_slogdet, linalg_solve_triangular. Only one thread at
 * a time calls the library (matmul/blas.h says why), so the matrices of a batch are computed one
 * after the other. */
#include <math.h>
#include <string.h>

#include "base/scratch.h"
#include "linalg/lapack.h"
#include "matmul/blas.h"

static const double one[2] = { 1, 0 };
static const float one_f32[2] = { 1, 0 };

static const void *one_of(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_C64 ? (const void *)one_f32 : (const void *)one;
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* Writes 0 to the elements of the n x n matrix above the diagonal (upper false) or below it. */
static void clear_triangle(char *x, int64_t n, int64_t item, bool upper)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t first = upper ? j + 1 : 0, end = upper ? n : j;
        memset(x + (j * n + first) * item, 0, (size_t)((end - first) * item));
    }
}

static tn_status not_positive(const struct tn__batch *batch, int64_t index, int info)
{
    char text[64];
    return tn_fail(TN_ERR_RUNTIME,
                   /* PyTorch's wording */
                   "linalg_cholesky: %sThe factorization could not be completed because the input "
                   "is not positive-definite (the leading minor of order %d is not "
                   "positive-definite).",
                   tn__lapack_batch_text(batch, index, text, sizeof text), info);
}

static tn_status run_linalg_cholesky(const tn_call *call)
{
    const tn_linalg_cholesky_options *o = call->options;
    const struct tn__lapack *lapack = tn__lapack_of(call->dtype);
    struct tn__batch batch = tn__lapack_batch_of(call->in[0], 2);
    int n = (int)call->in[0]->shape[call->in[0]->ndim - 1], info = 0;
    int64_t item = tn__view_item(call->in[0]);
    tn_status status = TN_OK;
    if (n == 0 || batch.count == 0)
        return TN_OK;
    char *x = tn__scratch_take((size_t)n * (size_t)n * (size_t)item);
    if (!x)
        return TN_ERR_MEMORY;
    for (int64_t k = 0; k < batch.count && status == TN_OK; k++) {
        struct tn__plane in = tn__lapack_plane_of(&batch, call->in[0], false, k),
                         out = tn__lapack_plane_of(&batch, call->out[0], false, k);
        tn__lapack_plane_read(&in, x, n);
        tn__blas_enter();
        lapack->potrf(o->upper ? "U" : "L", &n, x, &n, &info, 1);
        tn__blas_leave();
        if (info != 0)
            status = not_positive(&batch, k, info);
        clear_triangle(x, n, item, o->upper);
        tn__lapack_plane_write(x, n, &out);
    }
    tn__scratch_give(x);
    return status;
}

/* ---- solve and inverse ----------------------------------------------------------------------- */

/* Memory for the LU factorization of an n x n matrix and `columns` right-hand sides. */
struct factored {
    char *memory, *a, *b;
    int *pivots;
    int n, columns, info;
};

static bool take(struct factored *f, int64_t n, int64_t columns, int64_t item)
{
    size_t matrix = (size_t)(n * n * item), sides = (size_t)(n * columns * item);
    f->n = (int)n;
    f->columns = (int)columns;
    f->memory = tn__scratch_take(matrix + sides + (size_t)n * sizeof(int) + 16);
    f->a = f->memory;
    f->b = f->memory + matrix;
    f->pivots = (int *)(void *)(f->b + sides);
    return f->memory != NULL;
}

/* Factors the matrix f->a; f->info is then the number of the first pivot that is 0, or 0. */
static void factor(const struct tn__lapack *lapack, struct factored *f)
{
    tn__blas_enter();
    lapack->getrf(&f->n, &f->n, f->a, &f->n, f->pivots, &f->info);
    tn__blas_leave();
}

static void back_substitute(const struct tn__lapack *lapack, struct factored *f)
{
    int info;
    tn__blas_enter();
    lapack->getrs("N", &f->n, &f->columns, f->a, &f->n, f->pivots, f->b, &f->n, &info, 1);
    tn__blas_leave();
}

static tn_status run_linalg_solve(const tn_call *call)
{
    const tn_linalg_solve_options *o = call->options;
    const tn_view *a = call->in[0], *b = call->in[1], *y = call->out[0];
    const struct tn__lapack *lapack = tn__lapack_of(call->dtype);
    bool vector = y->ndim < 2 || b->ndim == 1 ||
                  (b->ndim == a->ndim - 1 &&
                   memcmp(b->shape, a->shape, (size_t)b->ndim * sizeof *b->shape) == 0);
    struct tn__batch batch = tn__lapack_batch_of(y, vector ? 1 : 2);
    int64_t n = a->shape[a->ndim - 1], item = tn__view_item(a);
    struct factored f;
    tn_status status = TN_OK;
    char text[64];
    if (batch.count == 0 || n == 0)
        return TN_OK;
    if (!take(&f, n, vector ? 1 : y->shape[y->ndim - (o->left ? 1 : 2)], item))
        return TN_ERR_MEMORY;
    for (int64_t k = 0; k < batch.count && status == TN_OK; k++) {
        struct tn__plane from = tn__lapack_plane_of(&batch, a, false, k),
                         right = tn__lapack_plane_of(&batch, b, vector, k),
                         to = tn__lapack_plane_of(&batch, y, vector, k);
        if (!o->left && !vector) { /* X A = B is A^T X^T = B^T */
            right = tn__lapack_plane_transposed(right);
            to = tn__lapack_plane_transposed(to);
        }
        if (!o->left)
            from = tn__lapack_plane_transposed(from);
        tn__lapack_plane_read(&from, f.a, n);
        tn__lapack_plane_read(&right, f.b, n);
        factor(lapack, &f);
        if (f.info != 0) {
            status = tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */
                             "linalg_solve: %sThe solver failed because the input matrix is "
                             "singular.",
                             tn__lapack_batch_text(&batch, k, text, sizeof text));
            break;
        }
        back_substitute(lapack, &f);
        tn__lapack_plane_write(f.b, n, &to);
    }
    tn__scratch_give(f.memory);
    return status;
}

static tn_status run_linalg_inv(const tn_call *call)
{
    const tn_view *a = call->in[0];
    const struct tn__lapack *lapack = tn__lapack_of(call->dtype);
    struct tn__batch batch = tn__lapack_batch_of(a, 2);
    int64_t n = a->shape[a->ndim - 1];
    struct factored f;
    tn_status status = TN_OK;
    char text[64];
    if (batch.count == 0 || n == 0)
        return TN_OK;
    if (!take(&f, n, n, tn__view_item(a)))
        return TN_ERR_MEMORY;
    for (int64_t k = 0; k < batch.count && status == TN_OK; k++) {
        struct tn__plane from = tn__lapack_plane_of(&batch, a, false, k),
                         to = tn__lapack_plane_of(&batch, call->out[0], false, k);
        tn__lapack_plane_read(&from, f.a, n);
        factor(lapack, &f);
        if (f.info != 0) {
            status = tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */
                             "linalg_inv: %sThe diagonal element %d is zero, the inversion could "
                             "not be completed because the input matrix is singular.",
                             tn__lapack_batch_text(&batch, k, text, sizeof text), f.info);
            break;
        }
        tn__lapack_plane_identity(call->dtype, f.b, n, n);
        back_substitute(lapack, &f);
        tn__lapack_plane_write(f.b, n, &to);
    }
    tn__scratch_give(f.memory);
    return status;
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* A number as its absolute value, as a logarithm, and its direction re + i im of length 1. The
 * product of many numbers does not overflow in this form. */
struct polar {
    double log, re, im;
};

static void read_number(tn_dtype dtype, const char *at, double *re, double *im)
{
    float f[2] = { 0 };
    double d[2] = { 0 };
    memcpy(dtype == TN_F32 || dtype == TN_C64 ? (void *)f : (void *)d, at, tn_dtype_size(dtype));
    *re = dtype == TN_F32 || dtype == TN_C64 ? (double)f[0] : d[0];
    *im = dtype == TN_F32 || dtype == TN_C64 ? (double)f[1] : d[1];
}

static void write_number(tn_dtype dtype, double re, double im, char *at)
{
    float f[2] = { (float)re, (float)im };
    double d[2] = { re, im };
    memcpy(at, dtype == TN_F32 || dtype == TN_C64 ? (const void *)f : (const void *)d,
           tn_dtype_size(dtype));
}

/* The product of the diagonal of a factored matrix, with the sign of the permutation. *whole_re and
 * *whole_im are the plain product. */
static struct polar determinant(tn_dtype dtype, const struct factored *f, double *whole_re,
                                double *whole_im)
{
    struct polar p = { 0, 1, 0 };
    int64_t item = (int64_t)tn_dtype_size(dtype);
    *whole_re = 1;
    *whole_im = 0;
    for (int i = 0; i < f->n; i++) {
        double re, im, size, turned;
        read_number(dtype, f->a + ((int64_t)i * f->n + i) * item, &re, &im);
        if (f->pivots[i] != i + 1) {
            re = -re;
            im = -im;
        }
        turned = *whole_re * re - *whole_im * im;
        *whole_im = *whole_re * im + *whole_im * re;
        *whole_re = turned;
        size = im == 0 ? fabs(re) : hypot(re, im);
        p.log += log(size);
        if (size == 0) {
            p.re = p.im = 0;
            continue;
        }
        re /= size;
        im /= size;
        turned = p.re * re - p.im * im;
        p.im = p.re * im + p.im * re;
        p.re = turned;
    }
    return p;
}

/* Factors each matrix of in[0] and calls write(call, batch, k, f) for it. */
static tn_status each_factored(const tn_call *call,
                               void (*write)(const tn_call *, const struct tn__batch *, int64_t,
                                             const struct factored *))
{
    const tn_view *a = call->in[0];
    struct tn__batch batch = tn__lapack_batch_of(a, 2);
    int64_t n = a->shape[a->ndim - 1];
    struct factored f;
    if (batch.count == 0)
        return TN_OK;
    if (!take(&f, n, 0, tn__view_item(a)))
        return TN_ERR_MEMORY;
    for (int64_t k = 0; k < batch.count; k++) {
        struct tn__plane from = tn__lapack_plane_of(&batch, a, false, k);
        tn__lapack_plane_read(&from, f.a, n);
        if (n > 0)
            factor(tn__lapack_of(call->dtype), &f);
        write(call, &batch, k, &f);
    }
    tn__scratch_give(f.memory);
    return TN_OK;
}

static void write_det(const tn_call *call, const struct tn__batch *batch, int64_t k,
                      const struct factored *f)
{
    double re, im;
    determinant(call->dtype, f, &re, &im);
    write_number(call->dtype, re, im, tn__lapack_batch_at(batch, call->out[0], 0, k));
}

static tn_status run_linalg_det(const tn_call *call)
{
    return each_factored(call, write_det);
}

static void write_slogdet(const tn_call *call, const struct tn__batch *batch, int64_t k,
                          const struct factored *f)
{
    double re, im;
    struct polar p = determinant(call->dtype, f, &re, &im);
    write_number(call->dtype, p.re, p.im, tn__lapack_batch_at(batch, call->out[0], 0, k));
    write_number(tn_view_dtype(call->out[1]), p.log, 0,
                 tn__lapack_batch_at(batch, call->out[1], 0, k));
}

static tn_status run_linalg_slogdet(const tn_call *call)
{
    return each_factored(call, write_slogdet);
}

/* ---- triangular systems ---------------------------------------------------------------------- */

static tn_status run_linalg_solve_triangular(const tn_call *call)
{
    const tn_linalg_solve_triangular_options *o = call->options;
    const tn_view *a = call->in[0], *b = call->in[1], *y = call->out[0];
    const struct tn__lapack *lapack = tn__lapack_of(call->dtype);
    struct tn__batch batch = tn__lapack_batch_of(y, 2);
    int64_t n = a->shape[a->ndim - 1], rows = y->shape[y->ndim - 2],
            columns = y->shape[y->ndim - 1];
    struct factored f;
    if (batch.count == 0 || rows == 0 || columns == 0)
        return TN_OK;
    if (!take(&f, n, o->left ? columns : rows, tn__view_item(a)))
        return TN_ERR_MEMORY;
    for (int64_t k = 0; k < batch.count; k++) {
        struct tn__plane from = tn__lapack_plane_of(&batch, a, false, k),
                         right = tn__lapack_plane_of(&batch, b, false, k),
                         to = tn__lapack_plane_of(&batch, y, false, k);
        int m = (int)rows, columns_ = (int)columns;
        tn__lapack_plane_read(&from, f.a, n);
        tn__lapack_plane_read(&right, f.b, rows);
        tn__blas_enter();
        lapack->trsm(o->left ? "L" : "R", o->upper ? "U" : "L", "N", o->unitriangular ? "U" : "N",
                     &m, &columns_, one_of(call->dtype), f.a, &f.n, f.b, &m, 1, 1, 1, 1);
        tn__blas_leave();
        tn__lapack_plane_write(f.b, rows, &to);
    }
    tn__scratch_give(f.memory);
    return TN_OK;
}

#define LAPACK_TYPES (TN__F32_F64 | TN_MASK_COMPLEX)
static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(linalg_cholesky, LAPACK_TYPES, tn__lapack_supports),
    TN__KERNEL_SUPPORTS(linalg_det, LAPACK_TYPES, tn__lapack_supports),
    TN__KERNEL_SUPPORTS(linalg_inv, LAPACK_TYPES, tn__lapack_supports),
    TN__KERNEL_SUPPORTS(linalg_slogdet, LAPACK_TYPES, tn__lapack_supports),
    TN__KERNEL_SUPPORTS(linalg_solve, LAPACK_TYPES, tn__lapack_supports),
    TN__KERNEL_SUPPORTS(linalg_solve_triangular, LAPACK_TYPES, tn__lapack_supports),
};
TN__KERNEL_TABLE(linalg_factor);
