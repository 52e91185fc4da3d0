/* SPDX-License-Identifier: MIT
 *
 * Sorting of elements of type T by their key, an unsigned integer of PASSES bytes. */

/* Sorts n elements, with `from` and `to` as buffers. Returns the buffer that has the result. */
static T *NAME(sort)(int64_t n, T *from, T *to)
{
    int64_t count[NAME(PASSES)][BYTES];
    if (n <= BY_INSERTION) {
        for (int64_t i = 1; i < n; i++) {
            T x = from[i];
            int64_t k = i;
            for (; k > 0 && NAME(key)(from[k - 1]) > NAME(key)(x); k--)
                from[k] = from[k - 1];
            from[k] = x;
        }
        return from;
    }
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < NAME(PASSES); p++)
            count[p][BYTE(NAME(key)(from[i]), p)]++;
    for (int p = 0; p < NAME(PASSES); p++) {
        int64_t next = 0;
        if (count[p][BYTE(NAME(key)(from[0]), p)] == n) /* all keys have the same byte p */
            continue;
        for (int b = 0; b < BYTES; b++) {
            int64_t here = count[p][b];
            count[p][b] = next;
            next += here;
        }
        for (int64_t i = 0; i < n; i++)
            to[count[p][BYTE(NAME(key)(from[i]), p)]++] = from[i];
        T *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* Moves the k smallest of n elements to the front, unsorted, but equal keys keep their order. The
 * keys are examined byte by byte, from the highest: elements whose byte is below that of the k-th
 * smallest are selected, elements with an equal byte are examined again by their next byte. */
static void NAME(select)(int64_t n, int64_t k, T *x, T *room)
{
    int64_t sure = 0;
    for (int p = NAME(PASSES) - 1; p >= 0 && n > k - sure; p--) {
        int64_t count[BYTES] = { 0 }, below = 0, left = 0;
        uint64_t edge = 0;
        T *rest = x + sure;
        for (int64_t i = 0; i < n; i++)
            count[BYTE(NAME(key)(rest[i]), p)]++;
        while (below + count[edge] < k - sure)
            below += count[edge++];
        for (int64_t i = 0; i < n; i++) {
            uint64_t b = BYTE(NAME(key)(rest[i]), p);
            if (b < edge)
                x[sure++] = rest[i];
            else if (b == edge)
                room[left++] = rest[i];
        }
        memcpy(x + sure, room, (size_t)left * sizeof *x);
        n = left;
    }
}

/* Moves the k smallest of n elements to the front, sorted; k is at most FEW. A sorted list has the
 * smallest elements so far, and most elements are only compared with its last. */
static void NAME(few)(int64_t n, int64_t k, T *x)
{
    T best[FEW];
    int64_t have = 0;
    for (int64_t i = 0; i < n; i++) {
        if (have == k && NAME(key)(x[i]) >= NAME(key)(best[k - 1]))
            continue;
        int64_t at = have < k ? have++ : k - 1;
        for (; at > 0 && NAME(key)(best[at - 1]) > NAME(key)(x[i]); at--)
            best[at] = best[at - 1];
        best[at] = x[i];
    }
    memcpy(x, best, (size_t)k * sizeof *x);
}

/* Finds the first k keys of a long line. Keys below `limit`, the k-th key so far, are collected in
 * a buffer; when it is full, all but the first k are dropped and `limit` is lowered. */
static void NAME(first_of_many)(const struct job *job, int64_t line, T *keys, T *room,
                                void *numbers)
{
    const char *x = tn__span_lines_at(&job->lines, 0, line);
    int64_t n = job->lines.length, step = job->lines.step[0], k = job->k, have = 0;
    uint64_t limit = 0;
    bool all = true;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t count = n - at < CHUNK ? n - at : CHUNK;
        job->load(count, x + at * step, step, numbers);
        have += NAME(keys_below)(job, count, numbers, at, limit, all, keys + have);
        if (have <= room_for(k) - CHUNK && (at + CHUNK < n || have <= k))
            continue;
        NAME(select)(have, k, keys, room);
        have = k;
        all = false;
        limit = 0;
        for (int64_t i = 0; i < k; i++)
            limit = NAME(key)(keys[i]) > limit ? NAME(key)(keys[i]) : limit;
    }
}
