/* SPDX-License-Identifier: MIT
 *
 * Helpers for layers with windows: Unfold, Fold and MaxUnpool. */
#ifndef TN_LAYERS_WINDOW_H
#define TN_LAYERS_WINDOW_H

#include "helpers.h"

struct window {
    tn_ints output_size;
    tn_ints kernel_size;
    tn_ints dilation;
    tn_ints padding;
    tn_ints stride; /* count -1 (None, MaxUnpool only): kernel_size */
};

#define ROW(member, def, help, flags)                                                              \
    TN_OPTION_ROW(struct window, member, def, help, TN_OPTION_KIND_INTS, flags)

/* Memory for the numbers of one call. It is not in the module because several threads may call a
 * module at the same time. */
struct rows {
    int64_t at[5][3];
    int used;
};

/* Returns one number for each dimension; a single number is repeated. */
static inline tn_ints window_row(struct rows *rows, tn_ints given, int64_t dims)
{
    int64_t *row = rows->at[rows->used++];

    for (int64_t d = 0; d < dims; d++)
        row[d] = given.at[given.count == 1 ? 0 : d];
    return (tn_ints){ row, dims };
}

static inline tn_status window_counts(tn_module *self, tn_ints row, const char *name, int64_t dims)
{
    return row.count == 1 || row.count == dims
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "%s: %s: wrong count, got %lld; expected 1 or %lld numbers",
                         tn_module_type(self), name, (long long)row.count, (long long)dims);
}

/* Checks the options that all these layers have. MaxUnpool's stride may be None. */
static inline tn_status window_check(tn_module *self, int64_t dims)
{
    const struct window *s = tn_module_data(self);
    tn_status status = window_counts(self, s->kernel_size, "kernel_size", dims);

    if (status == TN_OK)
        status = window_counts(self, s->padding, "padding", dims);
    return status == TN_OK && s->stride.count >= 0 ? window_counts(self, s->stride, "stride", dims)
                                                   : status;
}

static inline void window_put(layers_text *text, const char *name, tn_ints row, int64_t dims)
{
    layers_put(text, "%s%s=", text->used > 0 ? ", " : "", name);
    layers_put_row(text, row, dims);
}

#endif
