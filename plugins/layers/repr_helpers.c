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

static void put_item(layers_text *text, const tn_value *value)
{
    if (value->kind == TN_VALUE_INT)
        layers_put(text, "%lld", (long long)value->as.i);
    else if (value->kind == TN_VALUE_FLOAT)
        layers_put(text, "%g", value->as.f);
    else if (value->kind == TN_VALUE_BOOL)
        layers_put(text, "%b", value->as.i != 0);
    else if (value->kind == TN_VALUE_STRING)
        layers_put(text, "%q", value->as.s);
    else
        layers_put(text, "%s", tn_value_kind_name(value->kind));
}

void layers_put_value(layers_text *text, const tn_value *value)
{
    if (value->kind != TN_VALUE_LIST && value->kind != TN_VALUE_TUPLE) {
        put_item(text, value);
        return;
    }
    layers_put(text, "(");
    for (uint32_t i = 0; i < value->count; i++) {
        layers_put(text, i > 0 ? ", " : "");
        put_item(text, &value->as.list[i]);
    }
    layers_put(text, ")");
}
