/* SPDX-License-Identifier: MIT
 *
 * The operator linear_packed with x in int8: the weight in panels of 16 output channels, which are
 * read at the speed of the memory (loops.h). */
#include <string.h>

#include "base/dtype.h"
#include "base/kernel.h"
#include "base/scratch.h"
#include "quant/quant.h"

enum {
    X,
    WEIGHT,
    SCALE,
    ZERO,
    BIAS,
    PANEL = TN__QUANT_PANEL,
    BLOCK = TN__QUANT_BLOCK,
    QUAD = TN__QUANT_QUAD,
    ROWS = 64 /* of x in one piece */
};

/* A weight in panels. Its scales are read where they are: they may change while the weight stays.
 */
struct weight {
    int64_t n, k, panels, groups, blocks, group; /* group: blocks of a group */
    int64_t panel_bytes, block_bytes; /* block_bytes: of blocks with their scale, else 0 */
    bool four_bits;
};

static const struct format {
    const char *name;
    int64_t block_bytes;
    int32_t zero; /* what the number 0 is without sign */
    bool four_bits;
} formats[] = {
    { "int8", 0, 128, false },  { "int4", 0, 8, true },  { "uint4", 0, 0, true },
    { "q8_0", 34, 128, false }, { "q4_0", 18, 8, true },
};
enum { INT8, INT4, UINT4, Q8_0, Q4_0, FORMATS };

static int format_of(const tn_call *call)
{
    const tn_linear_packed_options *o = call->options;
    int i = 0;

    while (i < FORMATS && strcmp(o->format, formats[i].name) != 0)
        i++;
    return i;
}

static struct weight shape_of(const tn_call *call)
{
    const tn_view *w = call->in[WEIGHT], *scale = call->in[SCALE];
    const struct format *f = &formats[format_of(call)];
    struct weight s = { .n = w->shape[0], .four_bits = f->four_bits };

    s.block_bytes = f->block_bytes;
    s.k = s.block_bytes > 0 ? w->shape[1] / s.block_bytes * BLOCK
                            : w->shape[1] * (s.four_bits ? 2 : 1);
    s.panels = (s.n + PANEL - 1) / PANEL;
    s.blocks = (s.k + BLOCK - 1) / BLOCK;
    s.groups = s.block_bytes > 0 ? s.blocks : scale->ndim == 2 ? scale->shape[1] : 1;
    s.group = s.groups > 1 ? s.blocks / s.groups : s.blocks;
    s.panel_bytes = s.blocks * PANEL * BLOCK / (s.four_bits ? 2 : 1);
    return s;
}

static bool supports_linear_packed(const tn_call *call, char *reason, size_t size)
{
    const tn_linear_packed_options *o = call->options;
    const tn_view *w = call->in[WEIGHT];
    struct weight s;

    if (!o->quantize_x || format_of(call) == FORMATS) {
        tn_snprint(reason, size, "format %s%s", o->format, o->quantize_x ? "" : " with x in float");
        return false;
    }
    s = shape_of(call);
    if (s.k == 0 || (s.groups > 1 && s.k / s.groups % BLOCK != 0)) {
        tn_snprint(reason, size, "32 does not divide the groups");
        return false;
    }
    if (tn__quant_dense(call->in[X]) && tn__quant_dense(w) && tn__quant_dense(call->in[SCALE]) &&
        tn__span_result_dense(call))
        return true;
    tn_snprint(reason, size, "x, weight, its scale or the result is not contiguous");
    return false;
}

/* ---- packing ---- */

static size_t all_bytes(const struct weight *w)
{
    return (size_t)(w->panels * w->panel_bytes) +
           (w->block_bytes > 0 ? (size_t)(w->panels * w->groups) * PANEL * sizeof(float) : 0);
}

static float *scales_of(const struct weight *w, const uint8_t *bytes)
{
    return (float *)(uintptr_t)(const void *)(bytes + w->panels * w->panel_bytes);
}

/* Number k of a channel without sign: what formats[].zero says is subtracted later. */
static uint8_t number_at(const uint8_t *row, int64_t k, int format)
{
    uint8_t four;

    switch (format) {
    case INT8: return row[k] ^ 128;
    case Q8_0: return row[k / BLOCK * 34 + 2 + k % BLOCK] ^ 128;
    case Q4_0:
        four = row[k / BLOCK * 18 + 2 + k % (BLOCK / 2)];
        return k % BLOCK < BLOCK / 2 ? four & 15 : four >> 4;
    default:
        four = k % 2 ? row[k / 2] >> 4 : row[k / 2] & 15;
        return format == INT4 ? four ^ 8 : four;
    }
}

struct packing {
    const tn_call *call;
    const struct weight *w;
    uint8_t *to;
};

static void pack_channel(const struct packing *p, uint8_t *to, const uint8_t *row)
{
    const int format = format_of(p->call);

    for (int64_t k = 0; k < p->w->k; k++) {
        const int64_t block = k / BLOCK, quad = k % BLOCK / QUAD;
        const uint8_t number = number_at(row, k, format);

        if (!p->w->four_bits)
            to[(block * 8 + quad) * PANEL * QUAD + k % QUAD] = number;
        else
            to[(block * 4 + quad % 4) * PANEL * QUAD + k % QUAD] |= (uint8_t)(number
                                                                              << (quad < 4 ? 0
                                                                                           : 4));
    }
}

/* The scales of the blocks of one channel, 16 numbers apart. */
static void pack_scales(const struct weight *w, const uint8_t *row, float *to)
{
    for (int64_t b = 0; b < w->blocks; b++) {
        uint16_t half;

        memcpy(&half, row + b * w->block_bytes, sizeof half);
        tn__dtype_load(TN_F16, TN__F32)(1, (const char *)&half, 2, (char *)(to + b * PANEL));
    }
}

static tn_status pack(void *user, int64_t begin, int64_t end)
{
    const struct packing *p = user;
    const tn_view *weight = p->call->in[WEIGHT];

    for (int64_t panel = begin; panel < end; panel++) {
        uint8_t *to = p->to + panel * p->w->panel_bytes;
        float *scales = scales_of(p->w, p->to) + panel * p->w->groups * PANEL;

        memset(to, 0, (size_t)p->w->panel_bytes);
        if (p->w->block_bytes > 0)
            memset(scales, 0, (size_t)(p->w->groups * PANEL) * sizeof *scales);
        for (int64_t n = panel * PANEL; n < (panel + 1) * PANEL && n < p->w->n; n++) {
            const uint8_t *row = (const uint8_t *)tn__view_at(weight) + n * weight->shape[1];

            pack_channel(p, to + n % PANEL * QUAD, row);
            if (p->w->block_bytes > 0)
                pack_scales(p->w, row, scales + n % PANEL);
        }
    }
    return TN_OK;
}

static tn_status pack_all(const tn_call *call, const struct weight *w, uint8_t *to)
{
    struct packing p = { call, w, to };

    return tn_parallel_for(w->panels, 1 + 32768 / (1 + w->panel_bytes), pack, &p);
}

static uint64_t key_linear_packed(const tn_call *call)
{
    return tn__span_view_count(call->in[WEIGHT]) >= 1024 ? 1 + (uint64_t)format_of(call) : 0;
}

static tn_status prepare_linear_packed(const tn_call *call, tn_prepared_data *out)
{
    struct weight w = shape_of(call);
    tn_status status;

    if (!(call->constant >> WEIGHT & 1))
        return TN_OK;
    out->bytes = all_bytes(&w);
    out->data = tn__scratch_own((size_t)out->bytes);
    if (out->data == NULL)
        return TN_ERR_MEMORY;
    status = pack_all(call, &w, out->data);
    if (status != TN_OK) {
        tn__scratch_free(out->data);
        out->data = NULL;
    }
    return status;
}

static void release(const tn_kernel_def *kernel, void *data)
{
    (void)kernel;
    tn__scratch_free(data);
}

/* ---- the product ---- */

struct run {
    const tn_call *call;
    struct weight w;
    const uint8_t *bytes;
    int64_t rows, x_step;
    int8_t *x;
    float *x_scale, *y; /* y: [rows][n] */
    int32_t *x_sum;
    const struct tn__quant_loops *loops;
    bool dot;
};

static tn_status quantize(void *user, int64_t begin, int64_t end)
{
    const struct run *r = user;
    const float *x = (const float *)(const void *)tn__view_at(r->call->in[X]);

    for (int64_t i = begin; i < end; i++)
        r->loops->x_blocks(r->w.k, x + i * r->w.k, r->x + i * r->x_step,
                           r->x_scale + i * r->w.blocks, r->x_sum + i * r->w.blocks);
    return TN_OK;
}

/* The scales and zero points of a panel, [groups][16] each. */
static void read_scales(const struct run *r, int64_t panel, float *scale, int32_t *zero)
{
    const tn_view *from = r->call->in[SCALE], *of_zero = r->call->in[ZERO];
    const int64_t first = panel * PANEL, groups = r->w.groups;
    const int64_t count = r->w.n - first < PANEL ? r->w.n - first : PANEL;
    const int32_t offset = formats[format_of(r->call)].zero;

    if (r->w.block_bytes > 0)
        memcpy(scale, scales_of(&r->w, r->bytes) + panel * groups * PANEL,
               (size_t)(groups * PANEL) * sizeof *scale);
    else
        r->loops->transpose(count, groups,
                            (const float *)(const void *)tn__view_at(from) + first * groups, scale);
    for (int64_t i = 0; i < groups * PANEL; i++)
        zero[i] = offset;
    for (int64_t c = 0; c < count && of_zero != NULL; c++)
        for (int64_t g = 0; g < groups; g++)
            zero[g * PANEL + c] += tn__quant_byte(of_zero, (first + c) * groups + g);
}

static void end_rows(const struct run *r, int64_t row, int64_t rows, int64_t panel, const float *y)
{
    const tn_view *bias = r->call->in[BIAS];
    const int64_t first = panel * PANEL;
    const int64_t n = r->w.n - first < PANEL ? r->w.n - first : PANEL;
    float shift[PANEL];

    for (int64_t c = 0; c < n && bias != NULL; c++)
        shift[c] = tn__quant_float(bias, first + c);

    for (int64_t i = 0; i < rows; i++, y += TN__QUANT_COLUMNS) {
        float *to = r->y + (row + i) * r->w.n + first;

        for (int64_t c = 0; c < n; c++)
            to[c] = bias != NULL ? y[c] + shift[c] : y[c];
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct run *r = user;
    const struct weight *w = &r->w;
    const int64_t numbers = w->groups * PANEL;
    float y[ROWS * TN__QUANT_COLUMNS], *scale = tn__scratch_take((size_t)numbers * 8);
    int32_t *zero = (int32_t *)(void *)(scale + numbers);

    if (scale == NULL)
        return TN_ERR_MEMORY;
    for (int64_t panel = begin; panel < end; panel++) {
        read_scales(r, panel, scale, zero);
        for (int64_t i = 0; i < r->rows; i += ROWS) {
            const struct tn__quant_blocks p = {
                .x = r->x + i * r->x_step,
                .x_scale = r->x_scale + i * w->blocks,
                .x_sum = r->x_sum + i * w->blocks,
                .x_step = r->x_step,
                .rows = r->rows - i < ROWS ? r->rows - i : ROWS,
                .blocks = w->blocks,
                .group = w->group,
                .panel = r->bytes + panel * w->panel_bytes,
                .scale = scale,
                .zero = zero,
                .y = y,
                .four_bits = w->four_bits,
                .dot = r->dot,
            };

            r->loops->blocks(&p);
            end_rows(r, i, p.rows, panel, y);
        }
    }
    tn__scratch_give(scale);
    return TN_OK;
}

static tn_status run_linear_packed(const tn_call *call)
{
    struct run r = { .call = call, .w = shape_of(call), .bytes = call->prepared };
    const int64_t count = tn__span_view_count(call->out[0]);
    uint8_t *own = NULL;
    char *memory;
    tn_status status = TN_OK;

    if (count == 0)
        return TN_OK;
    r.loops = tn__quant_loops_chosen(&r.dot);
    r.rows = count / r.w.n;
    r.x_step = r.w.blocks * BLOCK;
    r.y = (float *)(void *)tn__view_at(call->out[0]);
    memory = tn__scratch_take((size_t)r.rows * (size_t)r.w.blocks * (BLOCK + 8));
    if (r.bytes == NULL)
        r.bytes = own = tn__scratch_take(all_bytes(&r.w));
    if (memory == NULL || r.bytes == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK && own != NULL)
        status = pack_all(call, &r.w, own);
    if (status == TN_OK) {
        r.x_scale = (float *)(void *)memory;
        r.x_sum = (int32_t *)(void *)(r.x_scale + r.rows * r.w.blocks);
        r.x = (int8_t *)(r.x_sum + r.rows * r.w.blocks);
        status = tn_parallel_for(r.rows, 1 + 32768 / (1 + r.w.k), quantize, &r);
    }
    if (status == TN_OK)
        status = tn_parallel_for(r.w.panels, 1 + (1 << 19) / (1 + r.rows * PANEL * r.w.k), part,
                                 &r);
    tn__scratch_give(own);
    tn__scratch_give(memory);
    return status;
}

static const uint64_t dtypes[] = { TN_BIT(TN_F32), TN_BIT(TN_I8) | TN_BIT(TN_U8),
                                   TN_BIT(TN_F32), TN_BIT(TN_I8) | TN_BIT(TN_U8),
                                   TN_BIT(TN_F32), TN_BIT(TN_F32) };

static const tn_kernel_def kernels[] = {
    TN__KERNEL_KEEPS(linear_packed, TN_BIT(TN_F32), .supports = supports_linear_packed,
                     .operand_dtypes = dtypes, .weights = 1 << WEIGHT,
                     .prepare_key = key_linear_packed, .prepare = prepare_linear_packed,
                     .release = release),
};
TN__KERNEL_TABLE(quant_packed);
