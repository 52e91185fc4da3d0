/* SPDX-License-Identifier: MIT
 *
 * The numbers that bench/ops works on, by the kind that its table names. */
#include <stdlib.h>
#include <string.h>

#include "ops.h"

static double next_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static double number_of(const char *kind, uint64_t *state, int64_t limit)
{
    double u = next_number(state);

    if (strcmp(kind, "unit") == 0)
        return 0.01 + 0.98 * u;
    if (strcmp(kind, "above") == 0)
        return 0.5 + 1.5 * u;
    if (strcmp(kind, "over") == 0)
        return 1.01 + 9 * u;
    if (strcmp(kind, "sign") == 0)
        return u < 0.5 ? -1 : 1;
    if (strcmp(kind, "half") == 0)
        return u < 0.5;
    if (strcmp(kind, "below") == 0)
        return (double)(int64_t)(u * (double)limit);
    return 1.7 * (u + next_number(state) + next_number(state) - 1.5) *
           1.2; /* around 0, most within 2 */
}

tn_tensor *bench_tensor(const char *kind, int64_t limit, tn_ints shape, tn_dtype dtype,
                        uint64_t *state)
{
    int64_t count = 1;
    tn_tensor *result;
    float *values; /* exact for whole numbers, too: they are small */

    for (int64_t i = 0; i < shape.count; i++)
        count *= shape.at[i];
    values = malloc((size_t)count * sizeof *values);
    if (values == NULL)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        values[i] = strcmp(kind, "rising") == 0 ? (float)(5.0 * (double)i / (double)count - 2.5)
                                                : (float)number_of(kind, state, limit);
    result = tn_tensor_from(values, TN_F32, shape);
    free(values);
    return dtype == TN_F32 ? result : tn_cast(result, dtype);
}
