/* SPDX-License-Identifier: MIT
 *
 * Encodes a text: splits it into pieces, and joins the bytes of a piece, always the pair of lowest
 * rank first. Pieces that were encoded before are copied. */
#include "bpe.h"

#include <string.h>

static const char end_of_text[] = "<|endoftext|>";
enum { END_LENGTH = sizeof end_of_text - 1 };

/* ---- numbers of tokens ----------------------------------------------------------------------- */

static tn_status make_room(struct bpe_ids *ids, uint64_t more)
{
    uint64_t capacity = ids->capacity > 0 ? ids->capacity : 1024;
    uint32_t *grown;

    while (capacity < ids->count + more)
        capacity *= 2;
    if (capacity == ids->capacity)
        return TN_OK;
    grown = tn_realloc(ids->at, capacity * sizeof *grown);
    if (grown == NULL)
        return TN_ERR_MEMORY;
    ids->at = grown;
    ids->capacity = capacity;
    return TN_OK;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* A token of a piece, as an element of a linked list. `next` of the last token is 0. When two
 * tokens are joined, the left one gets the new `id`, and the right one gets UINT32_MAX. */
struct symbol {
    uint32_t id, before, next;
};

/* A pair that may be joined: the symbol on the left and the merge. */
struct pair {
    uint32_t rank, at, left, right;
};

/* Memory for one piece: symbols, and a heap of pairs with the lowest rank first. */
struct joining {
    const struct bpe *bpe;
    struct symbol *symbols;
    struct pair *heap;
    uint64_t capacity, count;
};

static bool is_before(const struct pair *a, const struct pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(struct joining *j, struct pair pair)
{
    uint64_t at = j->count++;

    for (; at > 0 && is_before(&pair, &j->heap[(at - 1) / 2]); at = (at - 1) / 2)
        j->heap[at] = j->heap[(at - 1) / 2];
    j->heap[at] = pair;
}

static struct pair pop(struct joining *j)
{
    struct pair first = j->heap[0], last = j->heap[--j->count];
    uint64_t at = 0;

    for (;;) {
        uint64_t child = 2 * at + 1;

        if (child + 1 < j->count && is_before(&j->heap[child + 1], &j->heap[child]))
            child++;
        if (child >= j->count || !is_before(&j->heap[child], &last))
            break;
        j->heap[at] = j->heap[child];
        at = child;
    }
    j->heap[at] = last;
    return first;
}

/* Adds the pair that begins at a symbol, if it may be joined. */
static void offer(struct joining *j, uint32_t at)
{
    const struct symbol *left = &j->symbols[at];
    const struct bpe_merge *merge;

    if (left->next == 0)
        return;
    merge = bpe_find_merge(j->bpe, left->id, j->symbols[left->next].id);
    if (merge != NULL)
        push(j, (struct pair){ merge->rank, at, merge->left, merge->right });
}

static void join_all(struct joining *j, uint64_t length)
{
    j->count = 0;
    for (uint64_t i = 0; i < length; i++)
        offer(j, (uint32_t)i);
    while (j->count > 0) {
        struct pair pair = pop(j);
        struct symbol *left = &j->symbols[pair.at], *right = &j->symbols[left->next];

        /* One of the two may have been joined to another one meanwhile. */
        if (left->id != pair.left || left->next == 0 || right->id != pair.right)
            continue;
        left->id = bpe_find_merge(j->bpe, pair.left, pair.right)->id;
        left->next = right->next;
        right->id = UINT32_MAX;
        if (left->next != 0)
            j->symbols[left->next].before = pair.at;
        offer(j, pair.at);
        if (pair.at > 0)
            offer(j, left->before);
    }
}

/* Each join offers at most two pairs, so there are at most three for each byte. */
static tn_status joining_room(struct joining *j, uint64_t length)
{
    uint64_t capacity = j->capacity > 0 ? j->capacity : 64;

    if (length <= j->capacity)
        return TN_OK;
    while (capacity < length)
        capacity *= 2;
    tn_free(j->symbols);
    tn_free(j->heap);
    j->symbols = tn_malloc(capacity * sizeof *j->symbols);
    j->heap = tn_malloc(3 * capacity * sizeof *j->heap);
    j->capacity = j->symbols != NULL && j->heap != NULL ? capacity : 0;
    return j->capacity > 0 ? TN_OK : TN_ERR_MEMORY;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Where a piece was encoded before: in the text, and in the result. */
struct known {
    uint64_t at, length, id, ids;
};
enum { KNOWN = 1 << 16 }; /* entries of the table; a newer piece overwrites an older one */

struct encoding {
    const char *path;
    const unsigned char *text;
    struct joining joining;
    struct known *known;
    struct bpe_ids *ids;
};

static tn_status encode_piece(struct encoding *e, uint64_t at, uint64_t length)
{
    struct joining *j = &e->joining;
    tn_status status = joining_room(j, length);

    if (status == TN_OK)
        status = make_room(e->ids, length);
    if (status != TN_OK)
        return status;
    for (uint64_t i = 0; i < length; i++) {
        int64_t id = j->bpe->single[e->text[at + i]];

        if (id < 0)
            return tn_fail(TN_ERR_FORMAT, "%s: byte %llu: the vocabulary has no token for byte %d",
                           e->path, (unsigned long long)(at + i), e->text[at + i]);
        j->symbols[i] = (struct symbol){ (uint32_t)id, (uint32_t)(i > 0 ? i - 1 : 0),
                                         (uint32_t)(i + 1 < length ? i + 1 : 0) };
    }
    join_all(j, length);
    for (uint64_t i = 0; i < length; i++)
        if (j->symbols[i].id != UINT32_MAX)
            e->ids->at[e->ids->count++] = j->symbols[i].id;
    return TN_OK;
}

static tn_status add_piece(struct encoding *e, uint64_t at, uint64_t length)
{
    struct known *known = &e->known[bpe_hash(e->text + at, length) % KNOWN];
    uint64_t before = e->ids->count;
    tn_status status;

    if (known->length == length && memcmp(e->text + known->at, e->text + at, length) == 0) {
        status = make_room(e->ids, known->ids);
        if (status != TN_OK)
            return status;
        memcpy(e->ids->at + before, e->ids->at + known->id, known->ids * sizeof *e->ids->at);
        e->ids->count += known->ids;
        return TN_OK;
    }
    status = encode_piece(e, at, length);
    if (status == TN_OK)
        *known = (struct known){ at, length, before, e->ids->count - before };
    return status;
}

/* Adds the part from `at` up to `end`, which contains no end of a text. */
static tn_status add_part(struct encoding *e, uint64_t at, uint64_t end)
{
    tn_status status = TN_OK;

    while (at < end && status == TN_OK) {
        uint64_t length = bpe_piece(e->text + at, end - at);

        if (length > INT32_MAX)
            return tn_fail(TN_ERR_FORMAT,
                           "%s: byte %llu: a word is too long, got %llu bytes; expected at most %d",
                           e->path, (unsigned long long)at, (unsigned long long)length, INT32_MAX);
        status = add_piece(e, at, length);
        at += length;
    }
    return status;
}

static tn_status add_all(struct encoding *e, uint64_t size)
{
    const struct bpe *bpe = e->joining.bpe;
    uint64_t at = 0;
    tn_status status = TN_OK;

    while (at < size && status == TN_OK) {
        const unsigned char *found = bpe->end >= 0
                                         ? memmem(e->text + at, size - at, end_of_text, END_LENGTH)
                                         : NULL;
        uint64_t end = found != NULL ? (uint64_t)(found - e->text) : size;

        status = add_part(e, at, end);
        if (status == TN_OK && found != NULL)
            status = make_room(e->ids, 1);
        if (status == TN_OK && found != NULL)
            e->ids->at[e->ids->count++] = (uint32_t)bpe->end;
        at = found != NULL ? end + END_LENGTH : size;
    }
    return status;
}

tn_status bpe_encode(const struct bpe *bpe, const char *path, const unsigned char *text,
                     uint64_t size, struct bpe_ids *ids)
{
    struct encoding e = { .path = path, .text = text, .joining = { .bpe = bpe }, .ids = ids };
    uint64_t good = bpe_check(text, size);
    tn_status status;

    if (good < size)
        return tn_fail(TN_ERR_FORMAT, "%s: byte %llu: not UTF-8", path, (unsigned long long)good);
    e.known = tn_calloc(KNOWN, sizeof *e.known);
    status = e.known != NULL ? add_all(&e, size) : TN_ERR_MEMORY;
    tn_free(e.known);
    tn_free(e.joining.symbols);
    tn_free(e.joining.heap);
    return status;
}
