/* SPDX-License-Identifier: MIT
 *
 * LAPACK, the part of OpenBLAS that solves linear systems and computes decompositions, and helpers
 * for kernels that call it. LAPACK stores matrices by columns: element (i, j) of a matrix of m rows
 * is at i + j * m. */
#ifndef TN_BACKEND_CPU_LINALG_LAPACK_H
#define TN_BACKEND_CPU_LINALG_LAPACK_H

#include "base/kernel.h"
#include "base/span.h"

/* The functions for one dtype. Arguments are those of LAPACK, all by address; Fortran appends the
 * length of each text. */
struct tn__lapack {
    void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t);
    void (*getrf)(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
    void (*getrs)(const char *trans, const int *n, const int *columns, const void *a,
                  const int *lda, const int *pivots, void *b, const int *ldb, int *info, size_t);
    void (*trsm)(const char *side, const char *uplo, const char *trans, const char *diag,
                 const int *m, const int *n, const void *alpha, const void *a, const int *lda,
                 void *b, const int *ldb, size_t, size_t, size_t, size_t);
    void (*geqrf)(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                  const int *lwork, int *info);
    void (*orgqr)(const int *m, const int *n, const int *k, void *a, const int *lda,
                  const void *tau, void *work, const int *lwork, int *info);
    /* The eigenvalues of a symmetric or Hermitian matrix. The functions for complex numbers have
     * the additional arguments rwork and lrwork. */
    void (*syevd)(const char *job, const char *uplo, const int *n, void *a, const int *lda, void *w,
                  void *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t,
                  size_t);
    void (*heevd)(const char *job, const char *uplo, const int *n, void *a, const int *lda, void *w,
                  void *work, const int *lwork, void *rwork, const int *lrwork, int *iwork,
                  const int *liwork, int *info, size_t, size_t);
    /* The singular value decomposition for real numbers and for complex numbers. */
    void (*gesdd)(const char *job, const int *m, const int *n, void *a, const int *lda, void *s,
                  void *u, const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork,
                  int *iwork, int *info, size_t);
    void (*gesdd_complex)(const char *job, const int *m, const int *n, void *a, const int *lda,
                          void *s, void *u, const int *ldu, void *vt, const int *ldvt, void *work,
                          const int *lwork, void *rwork, int *iwork, int *info, size_t);
};

/* Looks the functions up in the library that tn__blas_open() opened. */
void tn__lapack_find(void);
/* Returns the functions for the dtype float32, float64, complex64 or complex128. Only valid if
 * tn__lapack_supports() returns true. */
const struct tn__lapack *tn__lapack_of(tn_dtype dtype);
/* The `supports` of all kernels that use LAPACK: false if no library with LAPACK is open, or if a
 * size of a matrix is more than INT_MAX / 64 (LAPACK has 32-bit integers). */
bool tn__lapack_supports(const tn_call *call, char *reason, size_t size);

/* Matrices of a batch. The first n_batch dimensions of the result select a matrix; an input
 * broadcasts along them. */
struct tn__batch {
    const int64_t *shape;
    int32_t ndim;
    int64_t count;
};
/* The batch of a view whose last `inner` dimensions are those of a matrix or vector. */
struct tn__batch tn__lapack_batch_of(const tn_view *view, int32_t inner);
/* Returns the address of matrix `index` of the view, whose last `inner` dimensions are those of a
 * matrix or vector. */
char *tn__lapack_batch_at(const struct tn__batch *batch, const tn_view *view, int32_t inner,
                          int64_t index);

/* A matrix in a tensor. Steps are in bytes. */
struct tn__plane {
    char *at;
    int64_t rows, columns, row_step, column_step, item;
};
/* Matrix `index` of a view. If `vector` is true, the last dimension is a vector, a single
 * column. */
struct tn__plane tn__lapack_plane_of(const struct tn__batch *batch, const tn_view *view,
                                     bool vector, int64_t index);
struct tn__plane tn__lapack_plane_transposed(struct tn__plane x);
/* Copies between a tensor and a matrix stored by columns, `ld` elements apart. */
void tn__lapack_plane_read(const struct tn__plane *from, void *to, int64_t ld);
void tn__lapack_plane_write(const void *from, int64_t ld, const struct tn__plane *to);
/* Whether all elements of a matrix of `count` numbers are finite. */
bool tn__lapack_plane_finite(tn_dtype dtype, const void *numbers, int64_t count);
/* Writes the identity to a matrix stored by columns. */
void tn__lapack_plane_identity(tn_dtype dtype, void *to, int64_t rows, int64_t columns);
/* Writes to `text`, and returns, how a message names matrix `index`: "(Batch element 3): ", or ""
 * if there is no batch. */
const char *tn__lapack_batch_text(const struct tn__batch *batch, int64_t index, char *text,
                                  size_t size);

#endif
