/* SPDX-License-Identifier: MIT
 *
 * Flatten, Unflatten and Permute. */
#include "helpers.h"

#include <string.h>

/* ---- Flatten --------------------------------------------------------------------------------- */

struct flatten {
    int64_t start_dim;
    int64_t end_dim;
};

static const tn_option flatten_options[] = {
    TN_OPTION_ROW(struct flatten, start_dim, "1", "first dimension to merge", TN_OPTION_KIND_INT,
                  TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct flatten, end_dim, "-1", "last dimension to merge", TN_OPTION_KIND_INT,
                  TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_tensor *flatten_forward(tn_module *self, tn_tensor *input)
{
    const struct flatten *s = tn_module_data(self);

    return tn_flatten(input, s->start_dim, s->end_dim);
}

const tn_layer_def layer_flatten = {
    TN_HEAD(tn_layer_def),
    .name = "Flatten",
    .help = "merges the dimensions from start_dim to end_dim into one",
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
    TN_OPTION_ROW(struct unflatten, unflattened_size, NULL,
                  "the new sizes; one may be -1, which is computed", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

/* Copies the sizes into which a dimension of `size` is split. If x is `empty`, computes the one
 * that is -1, which tn_reshape cannot do then. */
static tn_status split(int64_t size, tn_ints sizes, bool empty, int64_t *to)
{
    int64_t product = 1, open = -1, left;
    bool fits = true;

    for (int64_t i = 0; i < sizes.count; i++) {
        to[i] = sizes.at[i];
        if (to[i] == -1 && open < 0)
            open = i;
        else
            fits = fits && to[i] >= 0 && !__builtin_mul_overflow(product, to[i], &product);
    }
    left = open < 0 ? 1 : product > 0 ? size / product : -1;
    if (open >= 0 && empty)
        to[open] = left;
    if (!fits || left < 0 || left * product != size)
        return tn_fail(TN_ERR_RUNTIME,
                       "Unflatten: unflattened_size: wrong sizes, got another product than %lld, "
                       "the size of the dimension; expected sizes with this product, one of which "
                       "may be -1",
                       (long long)size);
    return TN_OK;
}

static tn_tensor *unflatten_forward(tn_module *self, tn_tensor *input)
{
    const struct unflatten *s = tn_module_data(self);
    tn_ints shape = tn_tensor_shape(input), inner = s->unflattened_size;
    int64_t dim = s->dim < 0 ? s->dim + shape.count : s->dim;
    int64_t to[TN_MAX_DIMS];
    if (shape.count == 0) {
        tn_fail(TN_ERR_INDEX, "Unflatten: input: no dimensions; expected at least 1");
        return NULL;
    }
    if (dim < 0 || dim >= shape.count) {
        tn_fail(TN_ERR_INDEX,
                "Unflatten: dim: out of range, got %lld; expected %lld to %lld, a dimension of the "
                "input",
                (long long)s->dim, -(long long)shape.count, (long long)shape.count - 1);
        return NULL;
    }
    if (inner.count < 1 || shape.count - 1 + inner.count > TN_MAX_DIMS) {
        tn_fail(TN_ERR_VALUE,
                "Unflatten: unflattened_size: wrong count, got %lld sizes in place of one of the "
                "input's %lld dimensions; expected at least 1 size, and a result of at most %d "
                "dimensions",
                (long long)inner.count, (long long)shape.count, TN_MAX_DIMS);
        return NULL;
    }
    memcpy(to, shape.at, (size_t)dim * sizeof *to);
    if (split(shape.at[dim], inner, tn_tensor_numel(input) == 0, to + dim) != TN_OK)
        return NULL;
    memcpy(to + dim + inner.count, shape.at + dim + 1,
           (size_t)(shape.count - dim - 1) * sizeof *to);
    return tn_reshape(input, (tn_ints){ to, shape.count - 1 + inner.count });
}

const tn_layer_def layer_unflatten = {
    TN_HEAD(tn_layer_def),
    .name = "Unflatten",
    .help = "splits one dimension into several",
    .options = unflatten_options,
    .data_size = sizeof(struct unflatten),
    .version = 1,
    .forward = unflatten_forward,
};

/* ---- Permute --------------------------------------------------------------------------------- */

struct permute {
    tn_ints dims; /* count -1 (None): not known */
};

/* The printed form of torchvision's Permute has no dims, so that a module read from such a text
 * gets them later, by tn_module_option_set. */
static const tn_option permute_options[] = {
    TN_OPTION_ROW(struct permute, dims, "None",
                  "the order of the dimensions; None: not known, the module cannot be called",
                  TN_OPTION_KIND_INTS, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

static tn_tensor *permute_forward(tn_module *self, tn_tensor *input)
{
    const struct permute *s = tn_module_data(self);

    if (s->dims.count >= 0)
        return tn_permute(input, s->dims);
    tn_fail(
        TN_ERR_VALUE,
        "Permute: dims: not given, because the printed form has none; expected the order of the "
        "dimensions, set with tn_module_option_set or given as in Permute((0, 2, 3, 1))");
    return NULL;
}

const tn_layer_def layer_permute = {
    TN_HEAD(tn_layer_def),
    .name = "Permute",
    .help = "reorders the dimensions, as torchvision's layer does",
    .options = permute_options,
    .data_size = sizeof(struct permute),
    .version = 1,
    .forward = permute_forward,
    .repr = layers_no_words,
};
