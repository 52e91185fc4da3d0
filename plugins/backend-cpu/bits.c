/* SPDX-License-Identifier: MIT
 *
 * Bits of whole numbers and truth values: where everything lies packed in one order, bytes are all the same, whatever the
 * type; else the loops of elementwise.c run. */
#include <string.h>

#include "cpu.h"

enum { GRAIN = 1 << 17 }; /* bytes */

/* Vectors of the compiler: as wide as the machine has them, at any address. */
typedef uint64_t wide __attribute__((vector_size(64), aligned(1), may_alias));

#define SEVEN 0x7f7f7f7f7f7f7f7fu
#define ONES 0x0101010101010101u

enum kind { AND, OR, XOR, NOT, FLIP };

struct job {
    enum kind kind;
    char *y;
    const char *a, *b;
};

#define BYTES(expr)                                                                                \
    {                                                                                              \
        for (; i + (int64_t)sizeof(wide) <= end; i += (int64_t)sizeof(wide)) {                     \
            wide a = *(const wide *)(const void *)(job->a + i),                                    \
                 b = *(const wide *)(const void *)(job->b + i);                                    \
            (void)b;                                                                               \
            *(wide *)(void *)(job->y + i) = (wide)(expr);                                          \
        }                                                                                          \
        for (; i < end; i++) {                                                                     \
            uint8_t a = (uint8_t)job->a[i], b = (uint8_t)job->b[i];                                \
            (void)b;                                                                               \
            job->y[i] = (char)(uint8_t)(expr);                                                     \
        }                                                                                          \
    }

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    int64_t i = begin;

    switch (job->kind) {
    case AND: BYTES(a & b) break;
    case OR: BYTES(a | b) break;
    case XOR: BYTES(a ^ b) break;
    case NOT: BYTES(~a) break;
    case FLIP: /* a truth value: what is not 0 is true */
        for (; i + (int64_t)sizeof(wide) <= end; i += (int64_t)sizeof(wide)) {
            wide a = *(const wide *)(const void *)(job->a + i);

            /* the highest bit of a byte says whether it is more than 0: no carry leaves it */
            a = (((a & SEVEN) + SEVEN) | a) >> 7 & ONES;
            *(wide *)(void *)(job->y + i) = a ^ ONES;
        }
        for (; i < end; i++)
            job->y[i] = (char)(job->a[i] == 0);
        break;
    }
    return TN_OK;
}

/* Whether all views have one shape and lie packed, row by row. */
static bool all_packed(const tn_call *call, int64_t *bytes)
{
    const tn_view *y = call->out[0];
    int64_t step = 1;

    for (int32_t d = y->ndim - 1; d >= 0; step *= y->shape[d--]) {
        if (y->shape[d] > 1 && y->strides[d] != step)
            return false;
        for (int64_t i = 0; i < call->n_in; i++)
            if (call->in[i]->ndim != y->ndim || call->in[i]->shape[d] != y->shape[d] ||
                (y->shape[d] > 1 && call->in[i]->strides[d] != step))
                return false;
    }
    *bytes = step * tn__view_item(y);
    return y->ndim > 0;
}

static char *first(const tn_view *view)
{
    return (char *)view->data + view->byte_offset;
}

static tn_status bits(const tn_call *call, enum kind kind, tn_status (*otherwise)(const tn_call *))
{
    struct job job = { .kind = kind };
    int64_t bytes = 0;

    if (!all_packed(call, &bytes))
        return otherwise(call);
    if (bytes == 0)
        return TN_OK;
    job.y = first(call->out[0]);
    job.a = first(call->in[0]);
    job.b = call->n_in > 1 ? first(call->in[1]) : job.a;
    return bytes <= GRAIN ? part(&job, 0, bytes) : tn_parallel_for(bytes, GRAIN, part, &job);
}

tn_status tn__bits_and(const tn_call *call)
{
    return bits(call, AND, tn__elementwise);
}

tn_status tn__bits_or(const tn_call *call)
{
    return bits(call, OR, tn__elementwise);
}

tn_status tn__bits_xor(const tn_call *call)
{
    return bits(call, XOR, tn__elementwise);
}

tn_status tn__bits_not(const tn_call *call)
{
    return bits(call, tn_view_dtype(call->in[0]) == TN_BOOL ? FLIP : NOT, tn__bitwise_not);
}
