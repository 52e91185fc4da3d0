/* SPDX-License-Identifier: MIT
 *
 * addmm of bfloat16, beta x + alpha a b, where instructions for bfloat16 compute the product: it
 * stays in float32 until the sum, which is rounded once. Other calls are decomposed. */
#include "base/kernel.h"
#include "base/scratch.h"
#include "matmul/bfloat16.h"

enum { PART = 65536 }; /* elements of the result that one thread combines at least */

struct sum {
    const tn_view *x, *y;
    const float *product;
    float beta, alpha;
};

static struct tn__product product_of(const tn_call *call, float *y)
{
    const tn_view *a = call->in[1], *b = call->in[2];
    struct tn__product p = {
        .batch = 1, .m = a->shape[0], .n = b->shape[1], .k = a->shape[1], .ct = TN__F32
    };

    p.a = tn__matrix_of(a, 0, 1);
    p.b = tn__matrix_of(b, 0, 1);
    p.y = (struct tn__matrix){ (char *)y, p.n * 4, 4, TN_F32, 4 };
    return p;
}

static bool supports_addmm(const tn_call *call, char *reason, size_t size)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    const struct tn__product p = product_of(call, NULL);
    bool same = x->ndim == 2 && x->shape[0] == p.m && x->shape[1] == p.n;

    for (int i = 0; same && i < 3; i++)
        same = tn_view_dtype(call->in[i]) == TN_BF16;
    if (same && (p.n == 1 || (x->strides[1] == 1 && y->strides[1] == 1)) && tn__bfloat16_take(&p) &&
        tn__bfloat16_unit())
        return true;
    tn_snprint(reason, size,
               "expected bfloat16, an x of the product's shape with contiguous rows, and a product "
               "that instructions for bfloat16 compute");
    return false;
}

/* Combines rows [begin, end). */
static tn_status combine(void *user, int64_t begin, int64_t end)
{
    const struct sum *s = user;
    const int64_t n = s->y->shape[1];
    float line[TN__CHUNK];

    for (int64_t i = begin; i < end; i++) {
        const char *x = tn__view_at(s->x) + i * s->x->strides[0] * 2;
        char *y = tn__view_at(s->y) + i * s->y->strides[0] * 2;
        for (int64_t j = 0; j < n; j += TN__CHUNK) {
            const int64_t here = n - j < TN__CHUNK ? n - j : TN__CHUNK;
            const float *product = s->product + i * n + j;
            if (s->beta != 0)
                tn__dtype_load(TN_BF16, TN__F32)(here, x + j * 2, 2, line);
            for (int64_t c = 0; c < here; c++)
                line[c] = (s->beta != 0 ? line[c] * s->beta : 0) + product[c] * s->alpha;
            tn__dtype_store(TN__F32, TN_BF16)(here, line, y + j * 2, 2);
        }
    }
    return TN_OK;
}

static tn_status run_addmm(const tn_call *call)
{
    const tn_addmm_options *o = call->options;
    const tn_view *y = call->out[0];
    float *product = tn__scratch_take((size_t)(y->shape[0] * y->shape[1]) * sizeof *product);
    struct tn__product p = product_of(call, product);
    struct sum s = { call->in[0], y, product, (float)tn_scalar_as_float(o->beta),
                     (float)tn_scalar_as_float(o->alpha) };
    tn_status status = product ? tn__bfloat16_run(&p) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = tn_parallel_for(p.m, 1 + PART / p.n, combine, &s);
    tn__scratch_give(product);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(addmm, TN_BIT(TN_BF16), supports_addmm),
};
TN__KERNEL_TABLE(addmm);
