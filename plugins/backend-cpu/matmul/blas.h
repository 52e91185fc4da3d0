/* SPDX-License-Identifier: MIT
 *
 * OpenBLAS, an optional library for products of matrices. */
#ifndef TN_BACKEND_CPU_MATMUL_BLAS_H
#define TN_BACKEND_CPU_MATMUL_BLAS_H

#include <tenon/plugin.h>

enum { TN__BLAS_ROW_MAJOR = 101, TN__BLAS_NO_TRANS = 111, TN__BLAS_TRANS = 112 };

/* The two functions that are used; both are NULL if no library is open. */
struct tn__blas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);
    /* Large products do not use the library, because built-in code uses wider vectors on this
     * processor than the library does. */
    bool narrow;
};
extern struct tn__blas tn__blas;
/* Opens the library. `wanted` is "auto", "none" or the absolute path of a library; NULL means
 * "auto". If "auto" finds no library, built-in code is used; a path that cannot be used is an
 * error. */
tn_status tn__blas_open(const char *wanted);
/* Returns the address of the function `name` in the open library. Returns NULL if no library is
 * open or the library has no such function. */
void *tn__blas_symbol(const char *name);
/* Must enclose each call of a function of the library, so that one thread at a time is in the
 * library: the serial build of Debian takes its buffers without a lock, and two threads would get
 * wrong results. */
void tn__blas_enter(void);
void tn__blas_leave(void);

#endif
