/* SPDX-License-Identifier: MIT
 *
 * The memory of a plan. A result takes over the memory of an operand that nobody needs afterwards,
 * where the kernel can compute in place. All other memory between steps is in one slab. Three
 * orders of the roots are tried: by first step, by size, and by the number of steps that need the
 * root, the largest first. Each root is placed in the smallest gap between the roots that are
 * needed at the same time.
 *
 * In training each root has a block of the caching allocator. Backward frees the blocks that
 * forward has saved, one by one, while it allocates gradients, which stay. One slab for both would
 * need more memory than eager calls. */
#include "lib/plan/plan.h"

#include <stdlib.h>

/* Devices need aligned operands; 256 bytes are enough for all known devices. */
enum { ALIGN = 256 };

static uint64_t aligned(uint64_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- in place -------------------------------------------------------------------------------- */

static bool same_view(const tn__plan_operand *a, const tn__plan_operand *b)
{
    size_t bytes = (size_t)a->view.ndim * sizeof(int64_t);

    return a->within == b->within && a->view.ndim == b->view.ndim &&
           memcmp(&a->view.dtype, &b->view.dtype, sizeof a->view.dtype) == 0 &&
           (bytes == 0 || (memcmp(a->view.shape, b->view.shape, bytes) == 0 &&
                           memcmp(a->view.strides, b->view.strides, bytes) == 0));
}

/* Whether the kernel of a step may write its first result over input i. */
static bool may_replace(const tn__plan_step *step, int64_t i)
{
    if (step->call.kernel == NULL || i >= 64)
        return false;
    if ((step->call.kernel->inplace >> i & 1) != 0)
        return true;
    return i == 0 && step->call.n_out == 1 && (step->op->def.flags & TN_OP_INPLACE) != 0 &&
           (tn__operand(step->op, 0)->flags & TN_OPERAND_APART) == 0;
}

/* Whether only the plan uses the memory of a root. */
static bool is_own(const tn__plan_root *root)
{
    return root->place == TN__PLAN_SLAB || root->place == TN__PLAN_BLOCK;
}

/* Lets the result of a step take over the memory of an input that ends there. */
static void replace(tn__plan_binding *b, int32_t at)
{
    const tn__plan_step *step = &b->steps[at];
    const tn__plan_operand *operands = &b->operands[step->first], *to = &operands[step->call.n_in];
    tn__plan_root *made = step->call.n_out > 0 ? &b->roots[to->root] : NULL, *root;

    for (int64_t i = 0; i < step->call.n_in && made != NULL; i++) {
        int64_t uses = 0;

        if (!may_replace(step, i) || operands[i].root < 0)
            continue;
        root = tn__plan_root_of(b, operands[i].root);
        for (int64_t k = 0; k < step->call.n_in; k++)
            uses += operands[k].root >= 0 && tn__plan_root_of(b, operands[k].root) == root;
        if (uses != 1 || !is_own(root) || root->last != at || made->first != at ||
            (!is_own(made) && made->place != TN__PLAN_FRESH) || root->size != made->size ||
            !same_view(&operands[i], to))
            continue;
        made->same = (int32_t)(root - b->roots);
        root->last = made->last;
        root->place = made->place;
        root->index = made->index;
        return;
    }
}

/* ---- the slab ---------------------------------------------------------------------------------
 */

/* A root of the slab. */
struct item {
    tn__plan_root *root;
    uint64_t size, offset;
};

static int by_size(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->root < y->root ? -1 : x->root > y->root;
}

static int by_step(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->root->first != y->root->first)
        return x->root->first < y->root->first ? -1 : 1;
    return by_size(a, b);
}

static int by_duration(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int32_t of_x = x->root->last - x->root->first, of_y = y->root->last - y->root->first;

    return of_x != of_y ? (of_x > of_y ? -1 : 1) : by_size(a, b);
}

static bool together(const tn__plan_root *a, const tn__plan_root *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Finds the smallest gap that item `at` fits in. `placed` are the items before it, in the order of
 * their offsets. */
static uint64_t best_gap(const struct item *items, int64_t at, struct item *const *placed)
{
    uint64_t end = 0, best = UINT64_MAX, found = 0;

    for (int64_t i = 0; i < at; i++) {
        const struct item *other = placed[i];

        if (!together(items[at].root, other->root))
            continue;
        if (other->offset >= end && other->offset - end >= items[at].size &&
            other->offset - end < best) {
            best = other->offset - end;
            found = end;
        }
        end = other->offset + other->size > end ? other->offset + other->size : end;
    }
    return best != UINT64_MAX ? found : end;
}

/* Gives each item an offset, in their order. Returns the size of the slab. `placed` is memory for
 * the function. */
static uint64_t place(struct item *items, int64_t count, struct item **placed)
{
    uint64_t bytes = 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t k = i;

        items[i].offset = best_gap(items, i, placed);
        for (; k > 0 && placed[k - 1]->offset > items[i].offset; k--)
            placed[k] = placed[k - 1];
        placed[k] = &items[i];
        if (items[i].offset + items[i].size > bytes)
            bytes = items[i].offset + items[i].size;
    }
    return bytes;
}

static void take(tn__plan_binding *b, const struct item *items, int64_t count, uint64_t bytes)
{
    for (int64_t i = 0; i < count; i++)
        items[i].root->offset = items[i].offset;
    b->bytes = bytes;
}

/* The most that is needed at one time. The items are in the order of their first steps. */
static tn_status least(tn__plan_binding *b, const struct item *items, int64_t count)
{
    uint64_t *ends = tn_calloc((size_t)b->n_steps + 2, sizeof *ends), live = 0;
    int64_t at = 0;

    if (ends == NULL)
        return TN_ERR_MEMORY;
    for (int64_t step = 0; step < b->n_steps; step++) {
        live -= ends[step];
        for (; at < count && items[at].root->first <= step; at++) {
            live += items[at].size;
            ends[items[at].root->last + 1] += items[at].size;
        }
        b->bytes_least = live > b->bytes_least ? live : b->bytes_least;
    }
    tn_free(ends);
    return TN_OK;
}

/* Finds the operands whose memory changes from run to run, and the roots that a run makes. */
static tn_status find_moving(tn__plan_binding *b)
{
    b->moving = tn__arena_alloc(b->arena, (size_t)(b->n_operands + 1) * sizeof *b->moving);
    b->made = tn__arena_alloc(b->arena, (size_t)(b->n_fresh + 1) * sizeof *b->made);
    if (b->moving == NULL || b->made == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < b->n_roots; i++)
        if (b->roots[i].same == i && b->roots[i].place == TN__PLAN_FRESH)
            b->made[b->n_made++] = (int32_t)i;
    for (int64_t i = 0; i < b->n_operands; i++) {
        int32_t root = b->operands[i].root;
        tn__plan_place place = root < 0 ? TN__PLAN_HELD : tn__plan_root_of(b, root)->place;

        if (place == TN__PLAN_INPUT || place == TN__PLAN_FRESH)
            b->moving[b->n_moving++] = i;
    }
    return TN_OK;
}

tn_status tn__plan_lay_out(tn__plan_binding *b)
{
    static int (*const orders[])(const void *a, const void *b) = { by_step, by_size, by_duration };
    struct item *items = tn_malloc((size_t)(b->n_roots + 1) * sizeof *items);
    struct item **placed = tn_malloc((size_t)(b->n_roots + 1) * sizeof(struct item *));
    tn_status status = items != NULL && placed != NULL ? TN_OK : TN_ERR_MEMORY;
    int64_t count = 0;
    uint64_t bytes;

    for (int32_t i = 0; i < b->n_steps && status == TN_OK; i++)
        replace(b, i);
    for (int64_t i = 0; i < b->n_roots && status == TN_OK; i++) {
        tn__plan_root *root = &b->roots[i];

        if (root->place == TN__PLAN_SLAB && root->first <= root->last)
            b->bytes_apart += aligned(root->size);
        if (root->same != i || root->place != TN__PLAN_SLAB || root->first > root->last)
            continue;
        items[count++] = (struct item){ root, aligned(root->size), 0 };
    }
    if (status == TN_OK) {
        qsort(items, (size_t)count, sizeof *items, by_step);
        status = least(b, items, count);
    }
    b->bytes = UINT64_MAX;
    for (size_t i = 0; i < sizeof orders / sizeof *orders && status == TN_OK; i++) {
        if (b->bytes == b->bytes_least)
            break;
        qsort(items, (size_t)count, sizeof *items, orders[i]);
        bytes = place(items, count, placed);
        if (bytes < b->bytes)
            take(b, items, count, bytes);
    }
    tn_free(placed);
    tn_free(items);
    return status == TN_OK ? find_moving(b) : status;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Puts each number from 0 to count - 1 into the row that `row_of` returns; -1: into no row. */
static tn_status make_lists(const tn__plan_binding *b, tn__plan_lists *lists, int64_t rows,
                            int64_t count,
                            int64_t (*row_of)(const tn__plan_binding *b, int64_t number))
{
    lists->first = tn__arena_alloc(b->arena, (size_t)(rows + 2) * sizeof *lists->first);
    lists->at = tn__arena_alloc(b->arena, (size_t)(count + 1) * sizeof *lists->at);
    if (lists->first == NULL || lists->at == NULL)
        return TN_ERR_MEMORY;
    memset(lists->first, 0, (size_t)(rows + 2) * sizeof *lists->first);
    for (int64_t i = 0; i < count; i++)
        if (row_of(b, i) >= 0)
            lists->first[row_of(b, i) + 2]++;
    for (int64_t i = 2; i < rows + 2; i++)
        lists->first[i] += lists->first[i - 1];
    for (int64_t i = 0; i < count; i++)
        if (row_of(b, i) >= 0)
            lists->at[lists->first[row_of(b, i) + 1]++] = (int32_t)i;
    return TN_OK;
}

static int64_t root_of_operand(const tn__plan_binding *b, int64_t operand)
{
    int32_t root = b->operands[operand].root;
    const tn__plan_root *own = root >= 0 ? tn__plan_root_of(b, root) : NULL;

    return own != NULL && own->place != TN__PLAN_HELD ? own - b->roots : -1;
}

static int64_t begin_of_root(const tn__plan_binding *b, int64_t i)
{
    const tn__plan_root *root = &b->roots[i];

    /* Without steps nothing begins: the values have no elements, or tn__plan_run_given makes them.
     */
    return root->same == i && root->place == TN__PLAN_BLOCK && root->first <= root->last &&
                   root->first < b->n_steps
               ? root->first
               : -1;
}

static int64_t end_of_root(const tn__plan_binding *b, int64_t i)
{
    const tn__plan_root *root = &b->roots[i];

    return root->same == i && (root->place == TN__PLAN_BLOCK || root->place == TN__PLAN_SAVED) &&
                   root->first <= root->last && root->last < b->n_steps
               ? root->last
               : -1;
}

/* The most that blocks need at one time, and what they would need without sharing. */
static void measure(tn__plan_binding *b)
{
    uint64_t live = 0;

    for (int64_t i = 0; i < b->n_roots; i++)
        if (b->roots[i].place == TN__PLAN_BLOCK && b->roots[i].first <= b->roots[i].last)
            b->bytes_apart += aligned(b->roots[i].size);
    for (int64_t step = 0; step < b->n_steps; step++) {
        for (int32_t k = b->begins.first[step]; k < b->begins.first[step + 1]; k++)
            live += aligned(b->roots[b->begins.at[k]].size);
        b->bytes = live > b->bytes ? live : b->bytes;
        for (int32_t k = b->ends.first[step]; k < b->ends.first[step + 1]; k++)
            if (b->roots[b->ends.at[k]].place == TN__PLAN_BLOCK)
                live -= aligned(b->roots[b->ends.at[k]].size);
    }
    b->bytes_least = b->bytes;
}

tn_status tn__plan_note_steps(tn__plan_binding *b)
{
    b->written = tn__arena_alloc(b->arena, (size_t)(b->n_roots + 1) * sizeof *b->written);
    if (b->written == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < b->n_roots; i++)
        if (b->roots[i].written)
            b->written[b->n_written++] = (int32_t)i;
    for (int64_t i = 0; i < b->n_draws; i++) {
        tn__plan_step *step = &b->steps[b->draws[i].step];
        const tn_op_def *def = &step->op->def;

        if (step->draws > 0)
            continue;
        step->draws = b->draws_bytes + 1;
        b->draws_bytes += tn__options_copy(def->options, step->call.options, def->options_size,
                                           NULL);
    }
    return TN_OK;
}

tn_status tn__plan_live(tn__plan_binding *b)
{
    tn_status status;

    for (int32_t i = 0; i < b->n_steps; i++)
        replace(b, i);
    status = make_lists(b, &b->uses, b->n_roots, b->n_operands, root_of_operand);
    if (status == TN_OK)
        status = make_lists(b, &b->begins, b->n_steps, b->n_roots, begin_of_root);
    if (status == TN_OK)
        status = make_lists(b, &b->ends, b->n_steps, b->n_roots, end_of_root);
    if (status == TN_OK)
        status = tn__plan_note_steps(b);
    if (status == TN_OK)
        measure(b);
    return status;
}

tn_status tn__plan_verify(const tn__plan_binding *b)
{
    for (int64_t i = 0; i < b->n_roots; i++) {
        const tn__plan_root *x = &b->roots[i];

        if (x->same != i || x->place != TN__PLAN_SLAB || x->first > x->last)
            continue;
        if (x->offset % ALIGN != 0 || x->offset + x->size > b->bytes)
            return tn_fail(TN_ERR_ASSERT, "plan: root %lld is outside of the slab", (long long)i);
        for (int64_t k = 0; k < i; k++) {
            const tn__plan_root *y = &b->roots[k];

            if (y->same == k && y->place == TN__PLAN_SLAB && together(x, y) &&
                x->offset < y->offset + y->size && y->offset < x->offset + x->size)
                return tn_fail(TN_ERR_ASSERT, "plan: roots %lld and %lld overlap", (long long)k,
                               (long long)i);
        }
    }
    return TN_OK;
}
