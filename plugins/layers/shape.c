/* SPDX-License-Identifier: MIT
 *
 * Flatten and Unflatten. */
#include "layers.h"

#include <string.h>

/* ---- Flatten --------------------------------------------------------------------------------- */

struct flatten {
    int64_t start_dim;
    int64_t end_dim;
};

static const tn_option flatten_options[] = {
    TN_OPTION_ROW(struct flatten, start_dim, "1", "first dimension to become one",
                  TN_OPTION_KIND_INT, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct flatten, end_dim, "-1", "last dimension to become one", TN_OPTION_KIND_INT,
                  TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_tensor *flatten_forward(tn_module *self, tn_tensor *input)
{
    const struct flatten *s = tn_module_data(self);
    tn_flatten_options options = TN_FLATTEN_OPTIONS;
    options.start_dim = s->start_dim;
    options.end_dim = s->end_dim;
    return tn_flatten(input, &options);
}

const tn_layer_def layer_flatten = {
    TN_HEAD(tn_layer_def),
    .name = "Flatten",
    .help = "dimensions start_dim..end_dim become one",
    .options = flatten_options,
    .data_size = sizeof(struct flatten),
    .version = 1,
    .forward = flatten_forward,
};

/* ---- Unflatten ------------------------------------------------------------------------------- */

struct unflatten {
    int64_t dim;
    tn_ints unflattened_size;
};

static const tn_option unflatten_options[] = {
    TN_OPTION_ROW(struct unflatten, dim, NULL, "the dimension to split", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct unflatten, unflattened_size, NULL, "the sizes it becomes; -1 once",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_tensor *unflatten_forward(tn_module *self, tn_tensor *input)
{
    const struct unflatten *s = tn_module_data(self);
    tn_ints shape = tn_tensor_shape(input), inner = s->unflattened_size;
    int64_t dim = s->dim < 0 ? s->dim + shape.count : s->dim;
    int64_t to[TN_MAX_DIMS];
    if (dim < 0 || dim >= shape.count) {
        tn_fail(TN_ERR_INDEX,
                "Unflatten: dim: out of range, got %lld; the input has %lld dimensions",
                (long long)s->dim, (long long)shape.count);
        return NULL;
    }
    if (inner.count < 1 || shape.count - 1 + inner.count > TN_MAX_DIMS) {
        tn_fail(TN_ERR_VALUE,
                "Unflatten: unflattened_size: wrong count, got %lld for one of %lld dimensions; "
                "expected 1 to %d dimensions in all",
                (long long)inner.count, (long long)shape.count, TN_MAX_DIMS);
        return NULL;
    }
    memcpy(to, shape.at, (size_t)dim * sizeof *to);
    memcpy(to + dim, inner.at, (size_t)inner.count * sizeof *to);
    memcpy(to + dim + inner.count, shape.at + dim + 1,
           (size_t)(shape.count - dim - 1) * sizeof *to);
    return tn_reshape(input, (tn_ints){ to, shape.count - 1 + inner.count });
}

const tn_layer_def layer_unflatten = {
    TN_HEAD(tn_layer_def),
    .name = "Unflatten",
    .help = "one dimension becomes several",
    .options = unflatten_options,
    .data_size = sizeof(struct unflatten),
    .version = 1,
    .forward = unflatten_forward,
};
