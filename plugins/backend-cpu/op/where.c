/* SPDX-License-Identifier: MIT
 *
 * Choice between two tensors by a third: bytes are moved as they are, whatever they mean. */
#include "base/kernel.h"
#include "base/span.h"
#include "simd/simd.h"

enum { GRAIN = 32768 };

struct pair {
    uint64_t low, high;
};

/* Operands: result, condition, a, b. */
#define CHOOSE(name, T)                                                                            \
    static void name(void *user, int64_t n, char *const *at, const int64_t *stride)                \
    {                                                                                              \
        const int64_t w = (int64_t)sizeof(T);                                                      \
        const uint8_t *c = (const uint8_t *)at[1];                                                 \
        T *y = (T *)(void *)at[0];                                                                 \
        const T *a = (const T *)(const void *)at[2], *b = (const T *)(const void *)at[3];          \
        (void)user;                                                                                \
        if (stride[0] == w && stride[1] == 1 && stride[2] == w && stride[3] == w) {                \
            TN__IVDEP for (int64_t i = 0; i < n; i++)                                              \
            {                                                                                      \
                const T ai = a[i], bi = b[i];                                                      \
                y[i] = c[i] ? ai : bi;                                                             \
            }                                                                                      \
        } else if (stride[0] == w && stride[1] == 1 && stride[2] == w && stride[3] == 0) {         \
            const T bi = *b;                                                                       \
            TN__IVDEP for (int64_t i = 0; i < n; i++)                                              \
            {                                                                                      \
                const T ai = a[i];                                                                 \
                y[i] = c[i] ? ai : bi;                                                             \
            }                                                                                      \
        } else if (stride[0] == w && stride[1] == 1 && stride[2] == 0 && stride[3] == w) {         \
            const T ai = *a;                                                                       \
            TN__IVDEP for (int64_t i = 0; i < n; i++)                                              \
            {                                                                                      \
                const T bi = b[i];                                                                 \
                y[i] = c[i] ? ai : bi;                                                             \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const char *from = c[i * stride[1]] ? at[2] + i * stride[2]                        \
                                                    : at[3] + i * stride[3];                       \
                *(T *)(void *)(at[0] + i * stride[0]) = *(const T *)(const void *)from;            \
            }                                                                                      \
        }                                                                                          \
    }
CHOOSE(choose_1, uint8_t)
CHOOSE(choose_2, uint16_t)
CHOOSE(choose_4, uint32_t)
CHOOSE(choose_8, uint64_t)
CHOOSE(choose_16, struct pair)

struct job {
    struct tn__span span;
    tn__span_body *body;
};

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, job->body, NULL);
    return TN_OK;
}

static tn_status run_where(const tn_call *call)
{
    const tn_view *views[4] = { call->out[0], call->in[0], call->in[1], call->in[2] };
    struct job job;
    switch (tn__view_item(call->out[0])) {
    case 1: job.body = choose_1; break;
    case 2: job.body = choose_2; break;
    case 4: job.body = choose_4; break;
    case 8: job.body = choose_8; break;
    default: job.body = choose_16;
    }
    tn__span_make(&job.span, 4, views, false);
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
}

static const tn_kernel kernels[] = {
    TN__KERNEL(where, TN_MASK_ALL),
};
TN__KERNEL_TABLE(where);
