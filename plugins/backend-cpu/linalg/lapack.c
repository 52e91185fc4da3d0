/* SPDX-License-Identifier: MIT
 *
 * Finds LAPACK in the open OpenBLAS, and copies matrices between tensors and LAPACK's layout. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "linalg/lapack.h"
#include "matmul/blas.h"

enum { FLOAT32, FLOAT64, COMPLEX64, COMPLEX128, TYPES };
static struct tn__lapack functions[TYPES];
static bool complete;

/* A function: its place in struct tn__lapack and its names for the four types, NULL where the
 * type has none. */
#define FUNCTION(member, s, d, c, z)                                                               \
    {                                                                                              \
        offsetof(struct tn__lapack, member),                                                       \
        {                                                                                          \
            s, d, c, z                                                                             \
        }                                                                                          \
    }
static const struct {
    size_t offset;
    const char *name[TYPES];
} wanted[] = {
    FUNCTION(potrf, "spotrf_", "dpotrf_", "cpotrf_", "zpotrf_"),
    FUNCTION(getrf, "sgetrf_", "dgetrf_", "cgetrf_", "zgetrf_"),
    FUNCTION(getrs, "sgetrs_", "dgetrs_", "cgetrs_", "zgetrs_"),
    FUNCTION(trsm, "strsm_", "dtrsm_", "ctrsm_", "ztrsm_"),
    FUNCTION(geqrf, "sgeqrf_", "dgeqrf_", "cgeqrf_", "zgeqrf_"),
    FUNCTION(orgqr, "sorgqr_", "dorgqr_", "cungqr_", "zungqr_"),
    FUNCTION(syevd, "ssyevd_", "dsyevd_", NULL, NULL),
    FUNCTION(heevd, NULL, NULL, "cheevd_", "zheevd_"),
    FUNCTION(gesdd, "sgesdd_", "dgesdd_", NULL, NULL),
    FUNCTION(gesdd_complex, NULL, NULL, "cgesdd_", "zgesdd_"),
};

void tn__lapack_find(void)
{
    complete = true;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (int t = 0; t < TYPES; t++) {
            void *found = wanted[i].name[t] ? tn__blas_symbol(wanted[i].name[t]) : NULL;
            memcpy((char *)&functions[t] + wanted[i].offset, &found, sizeof found);
            complete &= found != NULL || wanted[i].name[t] == NULL;
        }
}

const struct tn__lapack *tn__lapack_of(tn_dtype dtype)
{
    return &functions[dtype == TN_F32   ? FLOAT32
                      : dtype == TN_F64 ? FLOAT64
                      : dtype == TN_C64 ? COMPLEX64
                                        : COMPLEX128];
}

bool tn__lapack_supports(const tn_call *call, char *reason, size_t size)
{
    if (!complete) {
        tn_snprint(reason, size,
                   "needs LAPACK, which was not found: expected a serial OpenBLAS with LAPACK "
                   "(Debian: libopenblas0-serial); TENON_CPU_BLAS names one");
        return false;
    }
    for (int64_t i = 0; i < call->n_in; i++)
        for (int32_t d = call->in[i]->ndim; d-- > 0 && d >= call->in[i]->ndim - 2;)
            if (call->in[i]->shape[d] > INT_MAX / 64) {
                tn_snprint(reason, size,
                           "a matrix is too large for LAPACK, got size %lld; expected at most %d",
                           (long long)call->in[i]->shape[d], INT_MAX / 64);
                return false;
            }
    return true;
}

/* ---- batches --------------------------------------------------------------------------------- */

struct tn__batch tn__lapack_batch_of(const tn_view *view, int32_t inner)
{
    struct tn__batch batch = { view->shape, view->ndim - inner, 1 };
    for (int32_t d = 0; d < batch.ndim; d++)
        batch.count *= view->shape[d];
    return batch;
}

char *tn__lapack_batch_at(const struct tn__batch *batch, const tn_view *view, int32_t inner,
                          int64_t index)
{
    int64_t offset = 0, item = tn__view_item(view);
    int32_t own = view->ndim - inner;
    for (int32_t d = batch->ndim; d-- > 0;) {
        int32_t at = d - (batch->ndim - own);
        if (at >= 0 && view->shape[at] > 1)
            offset += index % batch->shape[d] * view->strides[at];
        index /= batch->shape[d];
    }
    return (char *)view->data + view->byte_offset + offset * item;
}

const char *tn__lapack_batch_text(const struct tn__batch *batch, int64_t index, char *text,
                                  size_t size)
{
    text[0] = '\0';
    if (batch->ndim > 0)
        tn_snprint(text, size, "(Batch element %lld): ", (long long)index);
    return text;
}

/* ---- matrices -------------------------------------------------------------------------------- */

struct tn__plane tn__lapack_plane_of(const struct tn__batch *batch, const tn_view *view,
                                     bool vector, int64_t index)
{
    int32_t inner = vector ? 1 : 2, row = view->ndim - inner;
    int64_t item = tn__view_item(view);
    struct tn__plane x = { .at = tn__lapack_batch_at(batch, view, inner, index),
                           .rows = view->shape[row],
                           .columns = vector ? 1 : view->shape[row + 1],
                           .row_step = view->strides[row] * item,
                           .column_step = vector ? 0 : view->strides[row + 1] * item,
                           .item = item };
    return x;
}

struct tn__plane tn__lapack_plane_transposed(struct tn__plane x)
{
    struct tn__plane y = x;
    y.rows = x.columns;
    y.columns = x.rows;
    y.row_step = x.column_step;
    y.column_step = x.row_step;
    return y;
}

void tn__lapack_plane_read(const struct tn__plane *from, void *to, int64_t ld)
{
    int64_t item = from->item;
    for (int64_t j = 0; j < from->columns; j++) {
        const char *x = from->at + j * from->column_step;
        char *y = (char *)to + j * ld * item;
        switch (item) {
        case 4:
            for (int64_t i = 0; i < from->rows; i++)
                memcpy(y + i * 4, x + i * from->row_step, 4);
            break;
        case 8:
            for (int64_t i = 0; i < from->rows; i++)
                memcpy(y + i * 8, x + i * from->row_step, 8);
            break;
        default:
            for (int64_t i = 0; i < from->rows; i++)
                memcpy(y + i * 16, x + i * from->row_step, 16);
        }
    }
}

void tn__lapack_plane_write(const void *from, int64_t ld, const struct tn__plane *to)
{
    int64_t item = to->item;
    for (int64_t i = 0; i < to->rows; i++) {
        const char *x = (const char *)from + i * item;
        char *y = to->at + i * to->row_step;
        switch (item) {
        case 4:
            for (int64_t j = 0; j < to->columns; j++)
                memcpy(y + j * to->column_step, x + j * ld * 4, 4);
            break;
        case 8:
            for (int64_t j = 0; j < to->columns; j++)
                memcpy(y + j * to->column_step, x + j * ld * 8, 8);
            break;
        default:
            for (int64_t j = 0; j < to->columns; j++)
                memcpy(y + j * to->column_step, x + j * ld * 16, 16);
        }
    }
}

bool tn__lapack_plane_finite(tn_dtype dtype, const void *numbers, int64_t count)
{
    bool single = dtype == TN_F32 || dtype == TN_C64;
    const float *f = numbers;
    const double *d = numbers;
    bool finite = true;
    if (dtype == TN_C64 || dtype == TN_C128)
        count *= 2;
    for (int64_t i = 0; i < count; i++)
        finite &= single ? isfinite(f[i]) != 0 : isfinite(d[i]) != 0;
    return finite;
}

void tn__lapack_plane_identity(tn_dtype dtype, void *to, int64_t rows, int64_t columns)
{
    int64_t item = (int64_t)tn_dtype_size(dtype);
    bool single = dtype == TN_F32 || dtype == TN_C64;
    const float f = 1;
    const double d = 1;
    memset(to, 0, (size_t)(rows * columns * item));
    for (int64_t i = 0; i < rows && i < columns; i++) {
        char *at = (char *)to + (i + i * rows) * item;
        memcpy(at, single ? (const void *)&f : (const void *)&d, single ? sizeof f : sizeof d);
    }
}
