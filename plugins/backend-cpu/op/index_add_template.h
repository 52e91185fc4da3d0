/* SPDX-License-Identifier: MIT
 *
 * Adds a run of n elements of type T at the places of an index: see index_template.h. */

static int64_t NAME(add_run)(RUN_PARAMETERS)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        T v, w;
        memcpy(&at, index + i * si, sizeof at);
        if ((uint64_t)at >= size)
            return i;
        char *to = x + i * sx + at * step;
        memcpy(&v, to, sizeof v);
        memcpy(&w, other + i * so, sizeof w);
        v = (T)(v + w);
        memcpy(to, &v, sizeof v);
    }
    return n;
}
