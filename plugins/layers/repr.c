/* SPDX-License-Identifier: MIT
 *
 * Helpers for the repr of layers. */
#include "helpers.h"

void layers_put(layers_text *text, const char *format, ...)
{
    size_t used = (size_t)text->used;
    bool room = text->out != NULL && used < text->size;
    va_list args;

    va_start(args, format);
    text->used += tn_snprintv(room ? text->out + used : NULL, room ? text->size - used : 0, format,
                              args);
    va_end(args);
}

void layers_put_row(layers_text *text, tn_ints row, int64_t dims)
{
    int64_t count = dims > 0 ? dims : row.count;

    if (count == 1 && dims == 0) {
        layers_put(text, "%lld", (long long)row.at[0]);
        return;
    }
    layers_put(text, "(");
    for (int64_t i = 0; i < count; i++)
        layers_put(text, "%s%lld", i > 0 ? ", " : "", (long long)row.at[row.count == 1 ? 0 : i]);
    layers_put(text, count == 1 ? ",)" : ")");
}
