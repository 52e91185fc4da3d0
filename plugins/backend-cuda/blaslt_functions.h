/* SPDX-License-Identifier: MIT
 *
 * The list of cuBLASLt functions that this plugin uses. The includer defines
 * BLASLT_FUNCTION(name, arguments). */

/* clang-format off */
BLASLT_FUNCTION(cublasLtCreate, (void **handle))
BLASLT_FUNCTION(cublasLtDestroy, (void *handle))
BLASLT_FUNCTION(cublasLtGetVersion, (void))
BLASLT_FUNCTION(cublasLtMatmulDescCreate, (void **desc, int32_t compute, int32_t scale))
BLASLT_FUNCTION(cublasLtMatmulDescDestroy, (void *desc))
BLASLT_FUNCTION(cublasLtMatmulDescSetAttribute,
                (void *desc, int32_t attribute, const void *value, size_t size))
BLASLT_FUNCTION(cublasLtMatrixLayoutCreate,
                (void **layout, int32_t type, uint64_t rows, uint64_t columns, int64_t lead))
BLASLT_FUNCTION(cublasLtMatrixLayoutDestroy, (void *layout))
BLASLT_FUNCTION(cublasLtMatrixLayoutSetAttribute,
                (void *layout, int32_t attribute, const void *value, size_t size))
BLASLT_FUNCTION(cublasLtMatmulPreferenceCreate, (void **preference))
BLASLT_FUNCTION(cublasLtMatmulPreferenceDestroy, (void *preference))
BLASLT_FUNCTION(cublasLtMatmulPreferenceSetAttribute,
                (void *preference, int32_t attribute, const void *value, size_t size))
BLASLT_FUNCTION(cublasLtMatmulAlgoGetHeuristic,
                (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                int32_t want, blaslt_result *results, int32_t *got))
BLASLT_FUNCTION(cublasLtMatmul,
                (void *handle, void *desc, const void *alpha, const void *a_at, void *a, const void
                *b_at, void *b, const void *beta, const void *c_at, void *c, void *d_at, void *d,
                const blaslt_algo *algo, void *workspace, size_t workspace_bytes, CUstream stream))
#undef BLASLT_FUNCTION
/* clang-format on */
