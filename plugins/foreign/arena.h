/* SPDX-License-Identifier: MIT
 *
 * Memory of a program: many small pieces, which are freed together. */
#ifndef TN_FOREIGN_ARENA_H
#define TN_FOREIGN_ARENA_H

#include <tenon/plugin.h>

struct arena_block;

struct arena {
    struct arena_block *last;
    size_t used, size; /* of the last block, in bytes */
};

/* Returns `count` pieces of `size` bytes, filled with zeros; NULL and an error if there is no
 * memory or if the product is too large. */
TN_HIDDEN void *arena_new(struct arena *arena, uint64_t count, size_t size);
/* Copies the first `length` bytes of a text and adds a NUL. */
TN_HIDDEN char *arena_text(struct arena *arena, const char *text, size_t length);
TN_HIDDEN void arena_free(struct arena *arena);

#endif
