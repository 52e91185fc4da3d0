/* SPDX-License-Identifier: MIT
 *
 * cuBLASLt as this plugin uses it: declarations of our own, the library opened when the plugin is activated, if it is there. */
#ifndef BLASLT_H
#define BLASLT_H

#include "cuda.h"

typedef int32_t blaslt_status;
typedef struct blaslt_algo {
    uint64_t data[8];
} blaslt_algo;
typedef struct blaslt_result {
    blaslt_algo algo;
    size_t workspace;
    blaslt_status state;
    float waves;
    int32_t reserved[4];
} blaslt_result;

enum {
    BLASLT_R_32F = 0,
    BLASLT_R_64F = 1,
    BLASLT_R_16F = 2,
    BLASLT_R_16BF = 14,
    BLASLT_COMPUTE_32F = 68,
    BLASLT_COMPUTE_64F = 70,
    BLASLT_COMPUTE_32F_FAST_TF32 = 77,
    BLASLT_DESC_TRANSA = 3,
    BLASLT_DESC_TRANSB = 4,
    BLASLT_LAYOUT_BATCH_COUNT = 5,
    BLASLT_LAYOUT_BATCH_STRIDE = 6,
    BLASLT_PREF_WORKSPACE = 1,
    BLASLT_PREF_ALIGN_A = 5 /* then B, C, D */
};

#define BLASLT_FUNCTIONS(X)                                                                        \
    X(cublasLtCreate, (void **handle))                                                             \
    X(cublasLtDestroy, (void *handle))                                                             \
    X(cublasLtGetVersion, (void))                                                                  \
    X(cublasLtMatmulDescCreate, (void **desc, int32_t compute, int32_t scale))                     \
    X(cublasLtMatmulDescDestroy, (void *desc))                                                     \
    X(cublasLtMatmulDescSetAttribute,                                                              \
      (void *desc, int32_t attribute, const void *value, size_t size))                             \
    X(cublasLtMatrixLayoutCreate,                                                                  \
      (void **layout, int32_t type, uint64_t rows, uint64_t columns, int64_t lead))                \
    X(cublasLtMatrixLayoutDestroy, (void *layout))                                                 \
    X(cublasLtMatrixLayoutSetAttribute,                                                            \
      (void *layout, int32_t attribute, const void *value, size_t size))                           \
    X(cublasLtMatmulPreferenceCreate, (void **preference))                                         \
    X(cublasLtMatmulPreferenceDestroy, (void *preference))                                         \
    X(cublasLtMatmulPreferenceSetAttribute,                                                        \
      (void *preference, int32_t attribute, const void *value, size_t size))                       \
    X(cublasLtMatmulAlgoGetHeuristic,                                                              \
      (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,             \
       int32_t want, blaslt_result *results, int32_t *got))                                        \
    X(cublasLtMatmul,                                                                              \
      (void *handle, void *desc, const void *alpha, const void *a_at, void *a, const void *b_at,   \
       void *b, const void *beta, const void *c_at, void *c, void *d_at, void *d,                  \
       const blaslt_algo *algo, void *workspace, size_t workspace_bytes, CUstream stream))

/* Says which libraries may be used: names or paths, separated by commas, in the order they are tried; "auto": those of NVIDIA, the newest
 * first; "none". Where none can be opened, which a line of the log says, and where none starts on a device, products use the kernel of this
 * plugin. */
void blaslt_open(const char *names);
/* ", cuBLASLt 13.0" for the line of a device, or nothing. */
void blaslt_words(struct cuda_device *device, char *text, size_t size);
void blaslt_device_close(struct cuda_device *device);

/* kernel->workspace and kernel->run of bmm. */
size_t blaslt_workspace(const tn_call *call);
tn_status blaslt_run_bmm(const tn_call *call);

#endif
