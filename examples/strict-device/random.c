/* SPDX-License-Identifier: MIT
 *
 * The kernels of philox_uniform and philox_normal on the strict device. */
#include <math.h>

#include "strict.h"

static void philox(uint64_t seed, uint64_t block, uint64_t lane, uint32_t c[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    c[0] = (uint32_t)block;
    c[1] = (uint32_t)(block >> 32);
    c[2] = (uint32_t)lane;
    c[3] = (uint32_t)(lane >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t p0 = (uint64_t)c[0] * 0xD2511F53u, p1 = (uint64_t)c[2] * 0xCD9E8D57u;
        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
    }
}

static double bits53(const uint32_t *w)
{
    return (double)(((uint64_t)w[0] << 32 | w[1]) >> 11);
}

static double uniform(const struct strict_work *work, tn_dtype dtype, uint64_t i)
{
    uint32_t w[4];
    uint64_t per = dtype == TN_F32 ? 4 : 2;
    philox((uint64_t)work->whole[0], (uint64_t)work->whole[1] + i / per, (uint64_t)work->whole[2],
           w);
    if (dtype == TN_F32)
        return fmaf((float)(w[i % 4] >> 8) * 0x1p-24f, (float)(work->real[1] - work->real[0]),
                    (float)work->real[0]);
    return fma(bits53(&w[2 * (i % 2)]) * 0x1p-53, work->real[1] - work->real[0], work->real[0]);
}

static double normal(const struct strict_work *work, tn_dtype dtype, uint64_t i)
{
    static const double turn = 6.283185307179586476925286766559;
    uint32_t w[4];
    uint64_t per = dtype == TN_F32 ? 2 : 1;
    philox((uint64_t)work->whole[0], (uint64_t)work->whole[1] + i / per, (uint64_t)work->whole[2],
           w);
    const uint32_t *own = &w[dtype == TN_F32 ? 2 * (i % 2) : 0];
    double u1, u2;
    if (dtype == TN_F32) {
        u1 = ((double)(own[0] >> 8) + 1) * 0x1p-24;
        u2 = (double)(own[1] >> 8) * 0x1p-24;
    } else {
        u1 = (bits53(own) + 1) * 0x1p-53;
        u2 = bits53(own + 2) * 0x1p-53;
    }
    return work->real[0] + work->real[1] * (sqrt(-2 * log(u1)) * cos(turn * u2));
}

static tn_status draw(struct strict_work *work,
                      double (*number)(const struct strict_work *work, tn_dtype dtype, uint64_t i))
{
    const struct strict_view *y = &work->view[0], *state = &work->view[2];
    int64_t index[TN_MAX_DIMS] = { 0 };
    uint64_t i = 0;
    if (strict_count(y) == 0)
        return TN_OK;
    if (state->dtype != TN_DTYPE_AUTO) {
        work->whole[0] = strict_get_int(work, state, 0);
        work->whole[1] = (int64_t)((uint64_t)work->whole[1] +
                                   (uint64_t)strict_get_int(work, state, state->strides[0]));
        work->whole[2] = strict_get_int(work, state, 2 * state->strides[0]);
    }
    do
        strict_set(work, y, strict_place(y, index, y->ndim), number(work, y->dtype, i++));
    while (strict_step(index, y));
    return TN_OK;
}

static tn_status uniform_body(struct strict_work *work)
{
    return draw(work, uniform);
}

static tn_status normal_body(struct strict_work *work)
{
    return draw(work, normal);
}

static tn_status fill_uniform(const tn_call *call, struct strict_work *work)
{
    const tn_philox_uniform_options *options = call->options;
    work->real[0] = options->low;
    work->real[1] = options->high;
    work->whole[0] = options->seed;
    work->whole[1] = options->block;
    return TN_OK;
}

static tn_status fill_normal(const tn_call *call, struct strict_work *work)
{
    const tn_philox_normal_options *options = call->options;
    work->real[0] = options->mean;
    work->real[1] = options->std;
    work->whole[0] = options->seed;
    work->whole[1] = options->block;
    return TN_OK;
}

STRICT_KERNEL(philox_uniform)
{
    return strict_enqueue(call, uniform_body, fill_uniform);
}
STRICT_KERNEL(philox_normal)
{
    return strict_enqueue(call, normal_body, fill_normal);
}
