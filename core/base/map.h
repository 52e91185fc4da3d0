/* SPDX-License-Identifier: MIT
 *
 * A map from addresses to addresses; also a set, where the values are not used. */
#ifndef TN_CORE_BASE_MAP_H
#define TN_CORE_BASE_MAP_H

#include "core/base/index.h"

/* Zero-initialized: empty. */
typedef struct tn__map {
    struct tn__map_entry {
        const void *key;
        void *value;
    } * at; /* in the order in which they were added, until one is removed */
    int64_t count, capacity;
    tn__index index;
} tn__map;

/* 1: the key was new; 0: it was there; -1: no memory, with an error. */
int tn__map_add(tn__map *map, const void *key);
/* The value of a key (NULL at first), to be read or written; NULL for a key that is not there.
 * Valid until the next tn__map_add. */
void **tn__map_value(const tn__map *map, const void *key);
/* Nothing for a key that is not there. */
void tn__map_remove(tn__map *map, const void *key);
void tn__map_free(tn__map *map);

#endif
