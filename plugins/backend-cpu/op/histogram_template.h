/* SPDX-License-Identifier: MIT
 *
 * Counts the elements of type T in each bin. */

/* Adds n contiguous elements to the tables of bins; elements outside count in the last one. */
static void NAME(count)(const struct job *job, int64_t n, const void *x, int64_t *counts)
{
    const T low = (T)job->min, high = (T)job->max, range = (T)(job->max - job->min),
            bins = (T)job->bins, *at = x;
    const int32_t last = (int32_t)job->bins - 1;
    int32_t bin[TN__CHUNK];
    for (int64_t i = 0; i < n; i++) {
        bool inside = (at[i] >= low) & (at[i] <= high);
        T place = (at[i] - low) / range * bins;
        /* Limited first: rounded ends may be further apart than `range`. */
        place = place < (T)last ? place : (T)last;
        bin[i] = inside ? (int32_t)place : last + 1;
    }
    for (int64_t i = 0; i < n; i++)
        counts[(i & (job->tables - 1)) * (job->bins + 1) + bin[i]]++;
}
