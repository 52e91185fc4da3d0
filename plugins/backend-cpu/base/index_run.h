/* SPDX-License-Identifier: MIT
 *
 * Processing a run of indices and the elements that they select. */
#ifndef TN_BACKEND_CPU_BASE_INDEX_RUN_H
#define TN_BACKEND_CPU_BASE_INDEX_RUN_H

#include <stdint.h>
#include <string.h>

#include "base/vectorize.h"

/* A run of n indices. All strides are in bytes: for i < n, index[i] is at index + i * si. It
 * selects the element at x + i * sx + index[i] * step, which belongs to the element at
 * other + i * so. An index must be below `size`. */
struct tn__index_run {
    int64_t n;
    char *x;
    int64_t sx, step;
    uint64_t size;
    const char *index;
    int64_t si;
    char *other;
    int64_t so;
};

/* Processes the selected element x and the element of the other tensor that belongs to it. */
typedef void tn__index_element(const void *user, char *x, char *other);

/* Calls `element` for the indices of a run, in order, up to the first that is out of bounds.
 * Returns the number of indices before that one, or n. `user` is passed to `element`. Both
 * functions are inlined, so that the loop contains no call. */
TN__INTO_LOOPS int64_t tn__index_run_each(const struct tn__index_run *run,
                                          tn__index_element *element, const void *user)
{
    const struct tn__index_run r = *run; /* a copy, which stores through `x` cannot change */
    for (int64_t i = 0; i < r.n; i++) {
        int64_t at;
        memcpy(&at, r.index + i * r.si, sizeof at);
        if ((uint64_t)at >= r.size)
            return i;
        element(user, r.x + i * r.sx + at * r.step, r.other + i * r.so);
    }
    return r.n;
}

/* The same, with a loop of its own for runs in which index, x and the other tensor are contiguous;
 * `size` is a constant, the bytes of an element. */
TN__INTO_LOOPS int64_t tn__index_run_sized(const struct tn__index_run *run,
                                           tn__index_element *element, const void *user,
                                           int64_t size)
{
    const struct tn__index_run r = *run;
    if (r.sx != 0 || r.step != size || r.si != (int64_t)sizeof(int64_t) || r.so != size)
        return tn__index_run_each(run, element, user);
    for (int64_t i = 0; i < r.n; i++) {
        int64_t at;
        memcpy(&at, r.index + i * (int64_t)sizeof at, sizeof at);
        if ((uint64_t)at >= r.size)
            return i;
        element(user, r.x + at * size, r.other + i * size);
    }
    return r.n;
}

/* Defines NAME(name_run), which calls NAME(name) for each index of a run and returns what
 * tn__index_run_each() returns. For templates, where NAME(x) adds the type to a name. */
typedef int64_t tn__index_run_function(const struct tn__index_run *run);
#define TN__INDEX_RUN(name)                                                                        \
    static int64_t NAME(name##_run)(const struct tn__index_run *run)                               \
    {                                                                                              \
        return tn__index_run_sized(run, NAME(name), NULL, (int64_t)sizeof(T));                     \
    }

#endif
