/* SPDX-License-Identifier: MIT
 *
 * A hash map from addresses to addresses. Without values it serves as a set. */
#ifndef TN_CORE_BASE_MAP_H
#define TN_CORE_BASE_MAP_H

#include "core/base/index.h"

/* A map whose bytes are all zero is empty. */
typedef struct tn__map {
    struct tn__map_entry {
        const void *key;
        void *value;
    } * at; /* in the order of tn__map_add until the first removal */
    int64_t count, capacity;
    tn__index index;
} tn__map;

/* Adds a key with the value NULL. Returns 1 if the key is new, 0 if the map has it already, -1 and
 * sets the error if memory runs out. */
int tn__map_add(tn__map *map, const void *key);
/* Returns the address of the value of a key, for reading and writing, or NULL if the map does not
 * have the key. The address is valid until the next tn__map_add or tn__map_remove. */
void **tn__map_value(const tn__map *map, const void *key);
/* Does nothing if the map does not have the key. */
void tn__map_remove(tn__map *map, const void *key);
void tn__map_free(tn__map *map);

#endif
