/* SPDX-License-Identifier: MIT
 *
 * A hash map from addresses to addresses. */
#include "core/base/map.h"
#include "core/base/vector.h"

static int64_t find(const tn__map *map, const void *key, uint32_t hash)
{
    int64_t at = -1, place;

    while ((place = tn__index_next(&map->index, hash, &at)) >= 0)
        if (map->at[place].key == key)
            break;
    return place;
}

int tn__map_add(tn__map *map, const void *key)
{
    uint32_t hash = tn__hash_address(key);

    if (find(map, key, hash) >= 0)
        return 0;
    if (!tn__vector_room(&map->at, &map->capacity, map->count + 1, sizeof *map->at) ||
        !tn__index_add(&map->index, hash, map->count))
        return -1;
    map->at[map->count++] = (struct tn__map_entry){ key, NULL };
    return 1;
}

void **tn__map_value(const tn__map *map, const void *key)
{
    int64_t place = find(map, key, tn__hash_address(key));

    return place >= 0 ? &map->at[place].value : NULL;
}

void tn__map_remove(tn__map *map, const void *key)
{
    uint32_t hash = tn__hash_address(key);
    int64_t place = find(map, key, hash), last = map->count - 1;

    if (place < 0)
        return;
    tn__index_remove(&map->index, hash, place);
    if (place < last) {
        tn__index_move(&map->index, tn__hash_address(map->at[last].key), last, place);
        map->at[place] = map->at[last];
    }
    map->count--;
}

void tn__map_free(tn__map *map)
{
    tn_free(map->at);
    tn__index_free(&map->index);
    *map = (tn__map){ .at = NULL };
}
