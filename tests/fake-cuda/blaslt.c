/* SPDX-License-Identifier: MIT
 *
 * The part of cuBLASLt that backend-cuda uses, computed by the definition of a product:
 * column-major operands, transposition, batches. Opened with TENON_CUDA_BLAS. float32 and
 * float64; for other types it finds no algorithm, as the real one may. */
#include "tests/fake-cuda/fake.h"
#include "plugins/backend-cuda/blaslt.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct layout {
    int32_t type, batch;
    uint64_t rows, columns;
    int64_t lead, stride;
};

struct desc {
    int32_t compute, scale, transposed[2];
};

#define BLASLT_FUNCTION(name, args) EXPORT blaslt_status name args;
#include "plugins/backend-cuda/blaslt_functions.h"

blaslt_status cublasLtGetVersion(void)
{
    return 130000;
}

blaslt_status cublasLtCreate(void **handle)
{
    int call = fake_cuda.blas_creates++;

    if (call < 4 && fake_cuda.blas_create[call])
        return fake_cuda.blas_create[call];
    *handle = malloc(1);
    fake_cuda.blas_handles += *handle != NULL;
    return !*handle;
}

blaslt_status cublasLtDestroy(void *handle)
{
    fake_cuda.blas_handles--;
    free(handle);
    return 0;
}

blaslt_status cublasLtMatmulDescCreate(void **out, int32_t compute, int32_t scale)
{
    struct desc *desc = calloc(1, sizeof *desc);

    desc->compute = compute;
    desc->scale = scale;
    *out = desc;
    return 0;
}

blaslt_status cublasLtMatmulDescDestroy(void *desc)
{
    free(desc);
    return 0;
}

blaslt_status cublasLtMatmulDescSetAttribute(void *desc, int32_t attribute, const void *value,
                                             size_t size)
{
    struct desc *d = desc;

    if (size != 4 || (attribute != BLASLT_DESC_TRANSA && attribute != BLASLT_DESC_TRANSB))
        return 7;
    memcpy(&d->transposed[attribute - BLASLT_DESC_TRANSA], value, size);
    return 0;
}

blaslt_status cublasLtMatrixLayoutCreate(void **out, int32_t type, uint64_t rows, uint64_t columns,
                                         int64_t lead)
{
    struct layout *layout = calloc(1, sizeof *layout);

    *layout = (struct layout){
        .type = type, .batch = 1, .rows = rows, .columns = columns, .lead = lead
    };
    *out = layout;
    return lead < (int64_t)rows ? 7 : 0;
}

blaslt_status cublasLtMatrixLayoutDestroy(void *layout)
{
    free(layout);
    return 0;
}

blaslt_status cublasLtMatrixLayoutSetAttribute(void *layout, int32_t attribute, const void *value,
                                               size_t size)
{
    struct layout *l = layout;

    if (attribute == BLASLT_LAYOUT_BATCH_COUNT && size == 4)
        memcpy(&l->batch, value, size);
    else if (attribute == BLASLT_LAYOUT_BATCH_STRIDE && size == 8)
        memcpy(&l->stride, value, size);
    else
        return 7;
    return 0;
}

blaslt_status cublasLtMatmulPreferenceCreate(void **preference)
{
    *preference = malloc(1);
    return !*preference;
}

blaslt_status cublasLtMatmulPreferenceDestroy(void *preference)
{
    free(preference);
    return 0;
}

blaslt_status cublasLtMatmulPreferenceSetAttribute(void *preference, int32_t attribute,
                                                   const void *value, size_t size)
{
    (void)preference;
    (void)value;
    return (attribute == BLASLT_PREF_WORKSPACE && size == 8) ||
                   (attribute >= 5 && attribute <= 8 && size == 4)
               ? 0
               : 7;
}

blaslt_status cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c,
                                             void *d, void *preference, int32_t want,
                                             blaslt_result *results, int32_t *got)
{
    const struct layout *la = a;

    (void)handle;
    (void)desc;
    (void)b;
    (void)c;
    (void)d;
    (void)preference;
    fake_cuda.heuristics++;
    *got = want > 0 && (la->type == BLASLT_R_32F || la->type == BLASLT_R_64F);
    if (*got)
        memset(results, 0, sizeof *results);
    return *got ? 0 : 15;
}

struct product {
    struct desc desc;
    struct layout a, b, d;
    const void *a_at, *b_at;
    void *d_at;
};

static size_t span(const struct layout *l, size_t item)
{
    return (size_t)((l->batch - 1) * l->stride + ((int64_t)l->columns - 1) * l->lead +
                    (int64_t)l->rows) *
           item;
}

static int product_run(void *data)
{
    struct product p;
    size_t item;
    char *a, *b, *d;
    int64_t depth;

    memcpy(&p, data, sizeof p);
    item = p.d.type == BLASLT_R_64F ? 8 : 4;
    a = fake_memory((uint64_t)(uintptr_t)p.a_at, span(&p.a, item));
    b = fake_memory((uint64_t)(uintptr_t)p.b_at, span(&p.b, item));
    d = fake_memory((uint64_t)(uintptr_t)p.d_at, span(&p.d, item));
    if (!a || !b || !d)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    depth = (int64_t)(p.desc.transposed[0] ? p.a.rows : p.a.columns);
    for (int64_t z = 0; z < p.d.batch; z++)
        for (int64_t j = 0; j < (int64_t)p.d.columns; j++)
            for (int64_t i = 0; i < (int64_t)p.d.rows; i++) {
                double sum = 0;

                for (int64_t k = 0; k < depth; k++) {
                    int64_t ia = z * p.a.stride +
                                 (p.desc.transposed[0] ? k + i * p.a.lead : i + k * p.a.lead);
                    int64_t ib = z * p.b.stride +
                                 (p.desc.transposed[1] ? j + k * p.b.lead : k + j * p.b.lead);

                    sum += item == 8 ? ((double *)a)[ia] * ((double *)b)[ib]
                                     : (double)((float *)a)[ia] * ((float *)b)[ib];
                }
                if (item == 8)
                    ((double *)d)[z * p.d.stride + i + j * p.d.lead] = sum;
                else
                    ((float *)d)[z * p.d.stride + i + j * p.d.lead] = (float)sum;
            }
    return 0;
}

blaslt_status cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a_at, void *a,
                             const void *b_at, void *b, const void *beta, const void *c_at, void *c,
                             void *d_at, void *d, const blaslt_algo *algo, void *workspace,
                             size_t workspace_bytes, CUstream stream)
{
    struct product product = { .desc = *(struct desc *)desc,
                               .a = *(struct layout *)a,
                               .b = *(struct layout *)b,
                               .d = *(struct layout *)d,
                               .a_at = a_at,
                               .b_at = b_at,
                               .d_at = d_at };

    (void)handle;
    (void)alpha;
    (void)beta;
    (void)c_at;
    (void)c;
    if (fake_cuda.blas_matmul)
        return fake_cuda.blas_matmul;
    if (!algo || (workspace_bytes && !fake_memory((uint64_t)(uintptr_t)workspace, workspace_bytes)))
        return 7;
    fake_cuda.products++;
    fake_cuda.product_compute = product.desc.compute;
    fake_cuda.product_transposed[0] = product.desc.transposed[0];
    fake_cuda.product_transposed[1] = product.desc.transposed[1];
    fake_cuda.product_batch = product.d.batch;
    return fake_enqueue(stream, product_run, &product, sizeof product) ? 13 : 0;
}
