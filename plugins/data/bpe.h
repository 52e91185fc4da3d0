/* SPDX-License-Identifier: MIT
 *
 * Byte-level byte pair encoding, as GPT-2 has it: texts become numbers of tokens. */
#ifndef TN_DATA_BPE_H
#define TN_DATA_BPE_H

#include "data.h"

/* A token: its bytes and its number. */
struct bpe_token {
    uint32_t at, length; /* in bpe.bytes; length 0: an empty place in the table */
    uint32_t id;
};

/* Two tokens that are joined, the lowest rank first. */
struct bpe_merge {
    uint32_t left, right, id, rank; /* rank UINT32_MAX: an empty place in the table */
};

struct bpe {
    unsigned char *bytes;
    uint64_t used;
    struct bpe_token *tokens; /* a hash table of `token_places` places */
    uint64_t token_places;
    struct bpe_merge *merges; /* a hash table of `merge_places` places */
    uint64_t merge_places;
    int64_t size;        /* the largest number of a token, plus 1 */
    int64_t single[256]; /* the tokens of one byte; -1: none */
    int64_t end;         /* the token <|endoftext|>; -1: none */
};

/* Numbers of tokens. */
struct bpe_ids {
    uint32_t *at;
    uint64_t count, capacity;
};

/* ---- bpe_vocabulary.c ---- */

/* Reads vocab.json and merges.txt of a folder. Returns NULL on failure. */
struct bpe *bpe_open(const char *folder);
void bpe_free(struct bpe *bpe);
/* Returns the number of the token with these bytes, -1: none. */
int64_t bpe_find(const struct bpe *bpe, const unsigned char *bytes, uint64_t length);
/* Returns the merge of two tokens, NULL: none. */
const struct bpe_merge *bpe_find_merge(const struct bpe *bpe, uint32_t left, uint32_t right);
/* A hash of bytes. */
uint64_t bpe_hash(const void *bytes, uint64_t length);

/* ---- bpe_split.c ---- */

/* Returns the position of the first byte that is not UTF-8; `size` if there is none. */
uint64_t bpe_check(const unsigned char *text, uint64_t size);
/* Returns the length of the first piece of a text: an ending such as 's, a word, number or
 * punctuation with the space before it, or white space. The text is valid UTF-8 and not empty. */
uint64_t bpe_piece(const unsigned char *text, uint64_t size);
/* Reads one code point, which must be valid, and moves *at after it. */
uint32_t bpe_next(const unsigned char *text, uint64_t *at);

/* ---- bpe.c ---- */

/* Appends the tokens of a text. `path` is for messages. */
tn_status bpe_encode(const struct bpe *bpe, const char *path, const unsigned char *text,
                     uint64_t size, struct bpe_ids *ids);

#endif
