/* SPDX-License-Identifier: MIT
 *
 * OpenBLAS, where it is found. */
#ifndef TN_BACKEND_CPU_MATMUL_BLAS_H
#define TN_BACKEND_CPU_MATMUL_BLAS_H

#include <tenon/plugin.h>

enum { TN__BLAS_ROW_MAJOR = 101, TN__BLAS_NO_TRANS = 111, TN__BLAS_TRANS = 112 };

/* The two functions that are used; both NULL without a BLAS. */
struct tn__blas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);
    /* Large products use the own tiles anyway: these use wider vectors than this BLAS does here. */
    bool narrow;
};
extern struct tn__blas tn__blas;
/* `wanted`: "auto", "none" or the path of a library. Only an explicit path that cannot be used
 * is an error. */
tn_status tn__blas_open(const char *wanted);
/* Around each call: the build without threads, as Debian builds it, takes its buffers without a
 * lock and gives wrong results when two threads are in it. */
void tn__blas_enter(void);
void tn__blas_leave(void);

#endif
