/* SPDX-License-Identifier: MIT
 *
 * bmm with cuBLASLt. The library's matrices are column-major, so y = a b is computed as
 * y^T = b^T a^T: rows in Tenon are columns in the library. Products that the library does not
 * support (integers, or no dimension with stride 1) use the kernel in matmul.cl. */
#include "cuda.h"

#include <string.h>

/* The key of a cached plan: all properties of a product on which the library's choice of an
 * algorithm depends. Keys are compared as bytes. */
struct plan_key {
    int64_t m, n, k, batch;
    int64_t lead[3], stride[3]; /* leading dimension and batch stride of b, a and y */
    int32_t transposed[2];
    int32_t type, compute;
    uint32_t align[3];
    uint32_t used; /* 1 in every key, so that an empty slot of the table differs from it */
};

struct cuda_plan {
    struct plan_key key;
    blaslt_algo algo;
    size_t workspace;
};

/* Starts the device's library and allocates its table of plans if that has not been done. Returns
 * whether the device has both. */
static bool ready(struct cuda_device *device)
{
    bool yes;

    pthread_mutex_lock(&device->lock);
    yes = blaslt_start(&device->blas, device->name);
    if (yes && !device->plans)
        device->plans = tn_calloc(CUDA_PLANS, sizeof *device->plans);
    yes = yes && device->plans;
    pthread_mutex_unlock(&device->lock);
    return yes;
}

/* ---- the key of a product -------------------------------------------------------------------- */

static bool type_of(tn_dtype dtype, int32_t *type, int32_t *compute)
{
    const char *math = tn_env_get("TENON_MATH");

    switch (dtype) {
    case TN_F32:
        *type = BLASLT_R_32F;
        *compute = math && strcmp(math, "fast") == 0 ? BLASLT_COMPUTE_32F_FAST_TF32
                                                     : BLASLT_COMPUTE_32F;
        return true;
    case TN_F64:
        *type = BLASLT_R_64F;
        *compute = BLASLT_COMPUTE_64F;
        return true;
    case TN_F16:
        *type = BLASLT_R_16F;
        *compute = BLASLT_COMPUTE_32F;
        return true;
    case TN_BF16:
        *type = BLASLT_R_16BF;
        *compute = BLASLT_COMPUTE_32F;
        return true;
    default: return false;
    }
}

static uint32_t alignment_of(const tn_view *view)
{
    uint64_t at = (uint64_t)(uintptr_t)view->data + view->byte_offset;
    uint32_t align = 256;

    while (align > 1 && at % align)
        align /= 2;
    return align;
}

/* Determines the leading dimension of a matrix for the library, and whether the library must
 * transpose the matrix. Returns false if the library cannot read the matrix, for example because
 * neither dimension has stride 1. */
static bool matrix_of(const tn_view *view, int64_t *lead, int32_t *transposed)
{
    int64_t rows = view->shape[1], columns = view->shape[2];
    int64_t down = view->strides[1], along = view->strides[2];

    if ((along == 1 || columns == 1) && (rows == 1 || down >= columns)) {
        *lead = rows == 1 ? columns : down;
        *transposed = 0;
        return true;
    }
    if ((down == 1 || rows == 1) && (columns == 1 || along >= rows)) {
        *lead = columns == 1 ? rows : along;
        *transposed = 1;
        return true;
    }
    return false;
}

static bool key_make(struct plan_key *key, const tn_call *call)
{
    struct cuda_device *device = call->device;
    const tn_view *y = call->out[0], *a = call->in[0], *b = call->in[1];
    const tn_view *views[] = { b, a, y };
    int32_t y_transposed;

    memset(key, 0, sizeof *key);
    if (!blaslt_found() || atomic_load(&device->blas.none) ||
        !type_of(call->dtype, &key->type, &key->compute) ||
        !matrix_of(b, &key->lead[0], &key->transposed[0]) ||
        !matrix_of(a, &key->lead[1], &key->transposed[1]) ||
        !matrix_of(y, &key->lead[2], &y_transposed) || y_transposed || y->shape[0] > INT32_MAX)
        return false;
    key->batch = y->shape[0];
    key->m = y->shape[1];
    key->n = y->shape[2];
    key->k = a->shape[2];
    for (int i = 0; i < 3; i++) {
        key->stride[i] = views[i]->shape[0] == 1 ? 0 : views[i]->strides[0];
        key->align[i] = alignment_of(views[i]);
    }
    key->used = 1;
    return key->m > 0 && key->n > 0 && key->k > 0 && key->batch > 0;
}

/* ---- calling the library --------------------------------------------------------------------- */

struct product {
    void *desc;
    void *layouts[3];
};

static void product_drop(const struct blaslt_library *lt, struct product *product)
{
    for (int i = 0; i < 3; i++)
        if (product->layouts[i])
            lt->cublasLtMatrixLayoutDestroy(product->layouts[i]);
    if (product->desc)
        lt->cublasLtMatmulDescDestroy(product->desc);
}

static blaslt_status product_make(const struct blaslt_library *lt, struct product *product,
                                  const struct plan_key *key)
{
    /* The library computes y^T = b^T a^T, of shapes [n, m] = [n, k] [k, m]. */
    const int64_t rows[3] = { key->transposed[0] ? key->k : key->n,
                              key->transposed[1] ? key->m : key->k, key->n };
    const int64_t columns[3] = { key->transposed[0] ? key->n : key->k,
                                 key->transposed[1] ? key->k : key->m, key->m };
    int32_t batch = (int32_t)key->batch;
    blaslt_status error;

    memset(product, 0, sizeof *product);
    error = lt->cublasLtMatmulDescCreate(&product->desc, key->compute,
                                         key->compute == BLASLT_COMPUTE_64F ? BLASLT_R_64F
                                                                            : BLASLT_R_32F);
    if (!error)
        error = lt->cublasLtMatmulDescSetAttribute(product->desc, BLASLT_DESC_TRANSA,
                                                   &key->transposed[0], sizeof(int32_t));
    if (!error)
        error = lt->cublasLtMatmulDescSetAttribute(product->desc, BLASLT_DESC_TRANSB,
                                                   &key->transposed[1], sizeof(int32_t));
    for (int i = 0; i < 3 && !error; i++) {
        error = lt->cublasLtMatrixLayoutCreate(&product->layouts[i], key->type, (uint64_t)rows[i],
                                               (uint64_t)columns[i], key->lead[i]);
        if (!error && batch > 1)
            error = lt->cublasLtMatrixLayoutSetAttribute(
                product->layouts[i], BLASLT_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
        if (!error && batch > 1)
            error = lt->cublasLtMatrixLayoutSetAttribute(
                product->layouts[i], BLASLT_LAYOUT_BATCH_STRIDE, &key->stride[i], sizeof(int64_t));
    }
    return error;
}

static blaslt_status algorithm_find(struct cuda_device *device, const struct product *product,
                                    const struct plan_key *key, size_t workspace,
                                    struct cuda_plan *plan)
{
    const struct blaslt_library *lt = device->blas.library;
    const uint32_t align[4] = { key->align[0], key->align[1], key->align[2], key->align[2] };
    void *preference = NULL;
    blaslt_result result;
    int32_t got = 0;
    blaslt_status error = lt->cublasLtMatmulPreferenceCreate(&preference);

    memset(&result, 0, sizeof result);
    if (!error)
        error = lt->cublasLtMatmulPreferenceSetAttribute(preference, BLASLT_PREF_WORKSPACE,
                                                         &workspace, sizeof workspace);
    for (int i = 0; i < 4 && !error; i++)
        error = lt->cublasLtMatmulPreferenceSetAttribute(preference, BLASLT_PREF_ALIGN_A + i,
                                                         &align[i], sizeof align[i]);
    if (!error)
        error = lt->cublasLtMatmulAlgoGetHeuristic(
            device->blas.handle, product->desc, product->layouts[0], product->layouts[1],
            product->layouts[2], product->layouts[2], preference, 1, &result, &got);
    if (preference)
        lt->cublasLtMatmulPreferenceDestroy(preference);
    if (!error && (got < 1 || result.state))
        error = 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    if (!error) {
        plan->key = *key;
        plan->algo = result.algo;
        plan->workspace = result.workspace;
    }
    return error;
}

/* Gets the plan for a product from the table, or asks the library for an algorithm and adds the new
 * plan to the table. A slot of the table is overwritten by the next key with the same hash. */
static blaslt_status plan_get(struct cuda_device *device, const struct product *product,
                              const struct plan_key *key, size_t workspace, struct cuda_plan *out)
{
    const unsigned char *bytes = (const unsigned char *)key;
    uint64_t hash = 14695981039346656037u;
    struct cuda_plan *slot;
    blaslt_status error = 0;

    for (size_t i = 0; i < sizeof *key; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    pthread_mutex_lock(&device->lock);
    slot = &device->plans[hash % CUDA_PLANS];
    if (memcmp(&slot->key, key, sizeof *key) == 0 && slot->workspace <= workspace) {
        *out = *slot;
    } else {
        error = algorithm_find(device, product, key, workspace, out);
        if (!error)
            *slot = *out;
    }
    pthread_mutex_unlock(&device->lock);
    return error;
}

size_t cuda_workspace_bmm(const tn_call *call)
{
    const struct cuda_device *device = call->device;
    struct plan_key key;

    if (!key_make(&key, call))
        return 0;
    return device->capability[0] >= 9 ? (size_t)32 << 20 : (size_t)4 << 20;
}

/* Logs a failure of the library; the caller then computes the product with the kernel of matmul.cl,
 * which reports an error if the device itself has failed. Unsupported shapes are logged as debug
 * messages; the first other failure on a device is logged as a warning. */
static void refused(struct cuda_device *device, const struct plan_key *key, blaslt_status error)
{
    bool expected = error == 7 || error == 15; /* INVALID_VALUE, NOT_SUPPORTED */
    bool first = !expected && !atomic_exchange(&device->blas.warned, true);

    tn_log(first ? TN_LOG_WARNING : TN_LOG_DEBUG,
           "cuda: %s cannot compute a product of [%lld, %lld, %lld] by [%lld, %lld] on %s: "
           "CUBLAS_STATUS_%s (%d); Tenon's kernel is used",
           device->blas.library->name, (long long)key->batch, (long long)key->m, (long long)key->k,
           (long long)key->k, (long long)key->n, device->name, blaslt_status_name(error),
           (int)error);
}

tn_status cuda_run_bmm(const tn_call *call)
{
    struct cuda_device *device = call->device;
    struct cuda_stream *stream = call->stream;
    const tn_view *y = call->out[0], *a = call->in[0], *b = call->in[1];
    const double one = 1, zero = 0;
    const float one_f = 1, zero_f = 0;
    bool wide = call->dtype == TN_F64;
    size_t bytes = call->workspace ? cuda_workspace_bmm(call) : 0;
    struct product product = { 0 };
    struct cuda_plan plan;
    struct plan_key key;
    const struct blaslt_library *lt;
    blaslt_status error;
    tn_status status;

    if (!key_make(&key, call))
        return gpu_run_bmm(call);
    status = cuda_enter(device);
    if (status)
        return status;
    if (!ready(device)) {
        cuda_leave();
        return gpu_run_bmm(call);
    }
    lt = device->blas.library;
    error = product_make(lt, &product, &key);
    if (!error)
        error = plan_get(device, &product, &key, bytes, &plan);
    if (!error)
        error = lt->cublasLtMatmul(
            device->blas.handle, product.desc, wide ? (const void *)&one : &one_f,
            (char *)b->data + b->byte_offset, product.layouts[0], (char *)a->data + a->byte_offset,
            product.layouts[1], wide ? (const void *)&zero : &zero_f,
            (char *)y->data + y->byte_offset, product.layouts[2], (char *)y->data + y->byte_offset,
            product.layouts[2], &plan.algo,
            bytes ? (char *)call->workspace->data + call->workspace->byte_offset : NULL, bytes,
            stream->stream);
    product_drop(lt, &product);
    cuda_leave();
    if (error) {
        refused(device, &key, error);
        return gpu_run_bmm(call);
    }
    return TN_OK;
}
