/* SPDX-License-Identifier: MIT
 *
 * Arrays that grow: allocation. */
#include "core/base/vector.h"

enum { VECTOR_LEAST = 8 };

bool tn__vector_extend(void *array, const void *first, int64_t *capacity, int64_t count,
                       size_t size)
{
    int64_t more = *capacity > VECTOR_LEAST / 2 ? *capacity : VECTOR_LEAST / 2;
    void *old, *grown;
    size_t bytes;

    if (tn__mul_overflow(more, 2, &more) || more < count)
        more = count;
    if (tn__mul_overflow(more, size, &bytes)) {
        tn_fail(TN_ERR_MEMORY, "out of host memory: cannot allocate %lld elements of %zu bytes",
                (long long)more, size);
        return false;
    }
    memcpy(&old, array, sizeof old);
    if (first != NULL && old == first) {
        grown = tn_malloc(bytes);
        if (grown != NULL)
            memcpy(grown, first, (size_t)*capacity * size);
    } else {
        grown = tn_realloc(old, bytes);
    }
    if (grown == NULL)
        return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = more;
    return true;
}
