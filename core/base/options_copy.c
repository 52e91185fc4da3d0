/* SPDX-License-Identifier: MIT
 *
 * Copies of option structs. A copy contains the strings and arrays that the struct points to. */
#include "core/base/internal.h"

static size_t round_up(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

/* Returns the size of a copy. */
static size_t bytes_of(const tn_option *table, const void *options, size_t data_size)
{
    size_t size = round_up(data_size);

    for (const tn_option *row = table; row->kind != TN_OPTION_KIND_END; row++) {
        const void *at = (const char *)options + row->offset;

        if (row->kind == TN_OPTION_KIND_INTS || row->kind == TN_OPTION_KIND_FLOATS) {
            int64_t count = ((const tn_ints *)at)->count;

            size += count > 0 ? (size_t)count * 8 : 0;
        } else if (row->kind == TN_OPTION_KIND_STRING && *(const char *const *)at != NULL) {
            size += round_up(strlen(*(const char *const *)at) + 1);
        }
    }
    return size;
}

bool tn__option_differs(const tn_option *row, const void *options, const void *others)
{
    const void *a = (const char *)options + row->offset, *b = (const char *)others + row->offset;
    const tn_ints *x = a, *y = b; /* tn_floats has the same layout */

    if (row->kind == TN_OPTION_KIND_INTS || row->kind == TN_OPTION_KIND_FLOATS)
        return x->count != y->count || (x->count > 0 && memcmp(x->at, y->at, (size_t)x->count * 8));
    if (row->kind == TN_OPTION_KIND_STRING) {
        const char *s = *(const char *const *)a, *t = *(const char *const *)b;

        return s != t && (s == NULL || t == NULL || strcmp(s, t) != 0);
    }
    if (row->kind == TN_OPTION_KIND_SCALAR) {
        const tn_scalar *s = a, *t = b;

        return s->kind != t->kind || (s->kind != TN_SCALAR_NONE && s->as.u != t->as.u) ||
               (s->kind == TN_SCALAR_COMPLEX && memcmp(&s->as, &t->as, sizeof s->as) != 0);
    }
    return memcmp(a, b, tn__option_size(row)) != 0;
}

size_t tn__options_copy(const tn_option *table, const void *options, size_t data_size, void *space)
{
    char *copy = space, *tail;

    if (copy == NULL)
        return bytes_of(table, options, data_size);
    tail = copy + round_up(data_size);
    memcpy(copy, options, data_size);
    for (const tn_option *row = table; row->kind != TN_OPTION_KIND_END; row++) {
        void *at = copy + row->offset;

        if (row->kind == TN_OPTION_KIND_INTS || row->kind == TN_OPTION_KIND_FLOATS) {
            tn_ints *ints = at; /* tn_floats has the same layout */

            if (ints->count > 0) {
                memcpy(tail, ints->at, (size_t)ints->count * 8);
                ints->at = (const int64_t *)(void *)tail;
                tail += (size_t)ints->count * 8;
            }
        }
    }
    for (const tn_option *row = table; row->kind != TN_OPTION_KIND_END; row++) {
        const char **text = (const char **)(void *)(copy + row->offset);
        size_t length;

        if (row->kind != TN_OPTION_KIND_STRING || *text == NULL)
            continue;
        length = strlen(*text) + 1;
        memcpy(tail, *text, length);
        *text = tail;
        tail += round_up(length);
    }
    return (size_t)(tail - copy);
}
