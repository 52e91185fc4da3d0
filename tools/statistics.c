/* SPDX-License-Identifier: MIT
 *
 * Statistics of the values of a tensor, for tenon inspect. */
#include "files.h"

#include <math.h>
#include <stdlib.h>

enum { CHUNK = 1 << 16 }; /* elements that are converted to float64 at a time */

/* Converts the elements of a tensor to float64, chunk by chunk, and calls `take` with each chunk.
 * Returns the first failure. */
static tn_status each_chunk(tn_tensor *tensor, void (*take)(statistics *s, double value),
                            statistics *s)
{
    TN_SCOPE;
    double *values = malloc(CHUNK * sizeof *values);
    tn_tensor *flat = tn_reshape(tensor, TN_SHAPE(-1));
    tn_status status = values == NULL ? tn_fail(TN_ERR_MEMORY, "statistics: out of memory")
                       : flat == NULL ? tn_error_last_code()
                                      : TN_OK;
    for (int64_t at = 0, count = tn_tensor_numel(tensor); at < count && status == TN_OK;
         at += CHUNK) {
        TN_SCOPE;
        int64_t size = count - at < CHUNK ? count - at : CHUNK;
        tn_tensor *piece = tn_cast(tn_narrow(flat, 0, at, size), TN_F64);
        status = piece != NULL ? tn_tensor_copy_out(piece, values, (size_t)size * sizeof *values)
                               : tn_error_last_code();
        for (int64_t i = 0; i < size && status == TN_OK; i++)
            take(s, values[i]);
    }
    free(values);
    return status;
}

static void add_value(statistics *s, double value)
{
    if (isnan(value)) {
        s->nan++;
        return;
    }
    if (s->numbers++ == 0)
        s->least = s->most = value;
    s->least = value < s->least ? value : s->least;
    s->most = value > s->most ? value : s->most;
    s->sum += value;
    if (isinf(value)) {
        s->infinite++;
        return;
    }
    if (s->numbers == s->infinite + 1)
        s->low = s->high = value;
    s->low = value < s->low ? value : s->low;
    s->high = value > s->high ? value : s->high;
}

static void add_to_bin(statistics *s, double value)
{
    if (!isfinite(value))
        return;
    /* Halves first: the difference of two values can overflow. */
    double width = s->high / 2 - s->low / 2;
    double place = width > 0 ? (value / 2 - s->low / 2) / width * STATISTICS_BINS : 0;
    int bin = place < STATISTICS_BINS ? (int)place : STATISTICS_BINS - 1;
    s->bins[bin]++;
}

bool statistics_of(tn_tensor *tensor, statistics *out)
{
    tn_dtype dtype = tn_tensor_dtype(tensor);
    uint64_t mark = tn_error_mark();
    *out = (statistics){ .known = false };
    if (tn_tensor_numel(tensor) == 0 || dtype == TN_C64 || dtype == TN_C128)
        return true;
    tn_status status = each_chunk(tensor, add_value, out);
    if (status == TN_OK)
        status = each_chunk(tensor, add_to_bin, out);
    if (status == TN_ERR_NOT_IMPLEMENTED) {
        tn_error_restore(mark);
        *out = (statistics){ .known = false };
        return true;
    }
    out->known = status == TN_OK;
    out->mean = out->numbers > 0 ? (double)(out->sum / (long double)out->numbers) : 0;
    return out->known;
}

void statistics_row(const statistics *of, char *out, size_t size)
{
    int64_t most = 0;
    size_t length = 0;
    out[0] = '\0';
    for (int i = 0; i < STATISTICS_BINS; i++)
        most = of->bins[i] > most ? of->bins[i] : most;
    for (int i = 0; i < STATISTICS_BINS && most > 0 && length < size; i++) {
        int height = (int)ceil(8.0 * (double)of->bins[i] / (double)most);
        if (height == 0)
            length += (size_t)snprintf(out + length, size - length, " ");
        else /* U+2581 to U+2588 */
            length += (size_t)snprintf(out + length, size - length, "\xe2\x96%c",
                                       (char)(0x80 + height));
    }
}
