/* SPDX-License-Identifier: MIT
 *
 * Weights of bytes in the order in which the loops read them (loops.h). */
#include "quant/quant.h"

#include <string.h>

enum { BYTES = TN__QUANT_PANEL * TN__QUANT_QUAD, LINE = 64 };

static size_t to_line(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static int64_t panels_of(const struct tn__quant_source *from)
{
    return (from->n + TN__QUANT_PANEL - 1) / TN__QUANT_PANEL;
}

static int64_t quads_of(const struct tn__quant_source *from)
{
    return from->taps * ((from->channels + TN__QUANT_QUAD - 1) / TN__QUANT_QUAD);
}

size_t tn__quant_weight_bytes(const struct tn__quant_source *from)
{
    return to_line(sizeof(struct tn__quant_weight)) +
           to_line((size_t)tn__quant_whole(from->n) * sizeof(int32_t)) +
           (size_t)(panels_of(from) * quads_of(from)) * BYTES;
}

struct packing {
    const struct tn__quant_source *from;
    struct tn__quant_weight *to;
};

/* Packs one output channel of a panel; returns the sum of its numbers. */
static int32_t pack_channel(const struct tn__quant_source *from, const uint8_t *at, uint8_t *to)
{
    const uint8_t flip = from->is_signed ? 128 : 0;
    const int64_t quads = (from->channels + TN__QUANT_QUAD - 1) / TN__QUANT_QUAD;
    uint32_t sum = 0;

    for (int64_t t = 0; t < from->taps; t++, at += from->tap_step, to += quads * BYTES)
        for (int64_t c = 0; c < from->channels; c++) {
            const uint8_t w = at[c * from->step] ^ flip;

            to[c / TN__QUANT_QUAD * BYTES + c % TN__QUANT_QUAD] = w;
            sum += w;
        }
    return (int32_t)sum;
}

/* Packs panels [begin, end). */
static tn_status pack(void *user, int64_t begin, int64_t end)
{
    const struct packing *p = user;
    const struct tn__quant_source *from = p->from;

    for (int64_t panel = begin; panel < end; panel++) {
        uint8_t *to = p->to->panels + panel * p->to->quads * BYTES;

        memset(to, 0, (size_t)p->to->quads * BYTES);
        for (int64_t c = 0; c < TN__QUANT_PANEL && panel * TN__QUANT_PANEL + c < from->n; c++) {
            const int64_t n = panel * TN__QUANT_PANEL + c;

            p->to->sums[n] = pack_channel(from, from->at + n * from->n_step,
                                          to + c * TN__QUANT_QUAD);
        }
    }
    return TN_OK;
}

struct tn__quant_weight *tn__quant_weight_pack(const struct tn__quant_source *from, void *memory)
{
    struct tn__quant_weight *w = memory;
    struct packing p = { from, w };
    size_t sums = (size_t)tn__quant_whole(from->n) * sizeof(int32_t);

    *w = (struct tn__quant_weight){ .n = from->n,
                                    .k = from->taps * from->channels,
                                    .quads = quads_of(from),
                                    .n_panels = panels_of(from) };
    w->sums = (int32_t *)(void *)((char *)memory + to_line(sizeof *w));
    w->panels = (uint8_t *)w->sums + to_line(sums);
    memset(w->sums, 0, sums);
    return tn_parallel_for(w->n_panels, 1 + 32768 / (1 + w->k * TN__QUANT_PANEL), pack, &p) == TN_OK
               ? w
               : NULL;
}
