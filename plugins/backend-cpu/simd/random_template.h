/* SPDX-License-Identifier: MIT
 *
 * Computes elements [first, first + n) of a sequence of random numbers of type T, from words of
 * Philox (random.c). An element is made of `words_each` words, so that a block of four words has 4
 * / words_each elements; of() gets the words of an element as w[0][j], w[1][j], ... for block j. A
 * batch of BLOCKS blocks is computed at a time: first element 0 of all blocks, then element 1, and
 * so on. The element `first` may be in the middle of a block. */

typedef T NAME(random_formula)(uint32_t (*w)[BLOCKS], int j, T p0, T p1);
TN__INTO_LOOPS void NAME(random_loop)(const struct tn__philox *g, uint64_t first, int64_t n, T p0,
                                      T p1, T *y, const int words_each, NAME(random_formula) * of)
{
    const int per = 4 / words_each, batch = BLOCKS * per;
    uint32_t words[4][BLOCKS];
    T columns[4][BLOCKS], numbers[4 * BLOCKS];
    int64_t skip = (int64_t)(first % (uint64_t)per);
    struct tn__philox at = *g;
    at.block += first / (uint64_t)per;
    for (int64_t done = 0; done < n; at.block += BLOCKS, skip = 0) {
        philox(&at, words);
        for (int e = 0; e < per; e++)
            for (int j = 0; j < BLOCKS; j++)
                columns[e][j] = of(words + e * words_each, j, p0, p1);
        for (int j = 0; j < BLOCKS; j++)
            for (int e = 0; e < per; e++)
                numbers[j * per + e] = columns[e][j];
        int64_t count = n - done < batch - skip ? n - done : batch - skip;
        memcpy(y + done, numbers + skip, (size_t)count * sizeof *y);
        done += count;
    }
}
