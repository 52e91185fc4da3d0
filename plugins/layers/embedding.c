/* SPDX-License-Identifier: MIT
 *
 * Embedding and EmbeddingBag: rows of a table, selected by index. */
#include "helpers.h"

#include <math.h>
#include <string.h>

struct embedding {
    int64_t num_embeddings;
    int64_t embedding_dim;
    int64_t padding_idx; /* INT64_MIN (None): no padding row */
    double max_norm;     /* NAN (None): no limit */
    double norm_type;
    bool scale_grad_by_freq;
    bool sparse;      /* must be false: not supported */
    const char *mode; /* EmbeddingBag only, like include_last_offset */
    bool include_last_offset;
};

/* clang-format off */
#define MAX_NORM_OPTIONS \
    TN_OPTION_ROW(struct embedding, max_norm, "None", \
                  "rows with a larger norm are scaled down to max_norm in place when looked up", \
                  TN_OPTION_KIND_FLOAT, TN_OPTION_OPTIONAL), \
    TN_OPTION_ROW(struct embedding, norm_type, "2.0", "order of the norm", TN_OPTION_KIND_FLOAT, 0)
#define SPARSE_HELP "must be False: sparse tensors are not supported"
/* clang-format on */

static const tn_option options[] = {
    TN_OPTION_ROW(struct embedding, num_embeddings, NULL, "rows of the table", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct embedding, embedding_dim, NULL, "length of a row", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct embedding, padding_idx, "None",
                  "index of the row that starts as zeros and gets no gradient", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    MAX_NORM_OPTIONS,
    TN_OPTION_ROW(struct embedding, scale_grad_by_freq, "False",
                  "divides the gradient of each row by the number of times that the input has it",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct embedding, sparse, "False", SPARSE_HELP, TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    struct embedding *s = tn_module_data(self);

    if (s->num_embeddings < 0 || s->embedding_dim < 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: num_embeddings or embedding_dim: negative, got %lld and %lld; expected "
                       "0 or more",
                       tn_module_type(self), (long long)s->num_embeddings,
                       (long long)s->embedding_dim);
    if (s->sparse)
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "%s: sparse: not supported, got True; expected False, which gives the same gradient "
            "as a dense tensor",
            tn_module_type(self));
    if (s->padding_idx != INT64_MIN) {
        if (s->padding_idx >= s->num_embeddings || s->padding_idx < -s->num_embeddings)
            return tn_fail(TN_ERR_VALUE,
                           /* PyTorch's wording */
                           "%s: padding_idx %lld must be within num_embeddings %lld; expected "
                           "%lld to %lld",
                           tn_module_type(self), (long long)s->padding_idx,
                           (long long)s->num_embeddings, (long long)-s->num_embeddings,
                           (long long)s->num_embeddings - 1);
        if (s->padding_idx < 0)
            s->padding_idx += s->num_embeddings;
    }
    return layers_add(self, "weight", true, TN_SHAPE(s->num_embeddings, s->embedding_dim));
}

static tn_status reset(tn_module *self)
{
    const struct embedding *s = tn_module_data(self);
    tn_status status = layers_init(self, "weight", "normal()");

    if (status == TN_OK && s->padding_idx != INT64_MIN)
        status = status_of(
            tn_fill_(tn_select(tn_module_get(self, "weight"), 0, s->padding_idx), 0));
    return status;
}

/* Scales the rows that are looked up so that their norm is at most max_norm: in place, without
 * recording a gradient. Writes nothing if no row is too long, so that threads may share a table
 * whose rows are short enough. */
static tn_status shorten(const struct embedding *s, tn_tensor *weight, tn_tensor *index)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *rows, *length, *limit, *longer, *any, *one, *factor;
    tn_scalar found = tn_scalar_none();
    tn_status status;

    tn_grad_begin(false);
    rows = tn_embedding(weight, index);
    length = tn_norm(rows, s->norm_type, TN_INTS(-1), true);
    limit = tn_tensor_full(TN_SHAPE(1), s->max_norm, tn_tensor_dtype(weight),
                           tn_tensor_device(weight));
    longer = tn_gt(length, limit);
    any = tn_any(longer);
    status = status_of(any);
    if (status == TN_OK && tn_device_has_memory(tn_tensor_device(any)))
        status = tn_tensor_scalar(any, &found);
    if (status == TN_OK && found.as.i != 0) {
        one = tn_tensor_full(TN_SHAPE(1), 1, tn_tensor_dtype(weight), tn_tensor_device(weight));
        factor = tn_where(longer, tn_div(limit, tn_add_scalar(length, 1e-7)), one);
        status = status_of(tn_index_put_(weight, tn_mul(rows, factor), &index, 1));
    }
    tn_grad_end();
    tn_scope_end(scope);
    return status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct embedding *s = tn_module_data(self);
    tn_tensor *weight = tn_module_get(self, "weight");

    if (!isnan(s->max_norm) && shorten(s, weight, x) != TN_OK)
        return NULL;
    return tn_embedding(weight, x, s->padding_idx, s->scale_grad_by_freq);
}

static void put_max_norm(layers_text *text, const struct embedding *s)
{
    if (!isnan(s->max_norm))
        layers_put(text, ", max_norm=%g", s->max_norm);
    if (s->norm_type != 2)
        layers_put(text, ", norm_type=%g", s->norm_type);
}

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct embedding *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "%lld, %lld", (long long)s->num_embeddings, (long long)s->embedding_dim);
    if (s->padding_idx != INT64_MIN)
        layers_put(&text, ", padding_idx=%lld", (long long)s->padding_idx);
    put_max_norm(&text, s);
    if (s->scale_grad_by_freq)
        layers_put(&text, ", scale_grad_by_freq=True");
    return text.used;
}

const tn_layer_def layer_embedding = {
    TN_HEAD(tn_layer_def),
    .name = "Embedding",
    .help = "rows of a table, by index; weight [num_embeddings, embedding_dim]",
    .options = options,
    .data_size = sizeof(struct embedding),
    .version = 1,
    .build = build,
    .reset = reset,
    .forward = forward,
    .repr = repr,
};

/* ---- EmbeddingBag ---------------------------------------------------------------------------- */

static const tn_option bag_options[] = {
    TN_OPTION_ROW(struct embedding, num_embeddings, NULL, "rows of the table", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct embedding, embedding_dim, NULL, "length of a row", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    MAX_NORM_OPTIONS,
    TN_OPTION_ROW(struct embedding, scale_grad_by_freq, "False", "must be False: not supported",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct embedding, mode, "'mean'", "sum, mean or max", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct embedding, sparse, "False", SPARSE_HELP, TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct embedding, include_last_offset, "False",
                  "the last offset is the number of indices", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct embedding, padding_idx, "None",
                  "index of the row that is ignored and gets no gradient", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL | TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status bag_build(tn_module *self)
{
    const struct embedding *s = tn_module_data(self);

    if (strcmp(s->mode, "sum") != 0 && strcmp(s->mode, "mean") != 0 && strcmp(s->mode, "max") != 0)
        return tn_fail(TN_ERR_VALUE,
                       "EmbeddingBag: mode: unknown, got %q; expected sum, mean or max", s->mode);
    if (s->scale_grad_by_freq)
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "EmbeddingBag: scale_grad_by_freq: not supported, got True; expected False; divide the "
            "gradient of weight by how often each row was read");
    return build(self);
}

/* Arguments: input, offsets, per_sample_weights, by position or name. The last two may be absent or
 * None. */
static tn_status bag_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static const char *const names[] = { "input", "offsets", "per_sample_weights" };
    const struct embedding *s = tn_module_data(self);
    tn_tensor *in[3] = { TN_NONE, TN_NONE, TN_NONE }, *weight = tn_module_get(self, "weight"), *y;

    for (int64_t i = 0; i < 3; i++) {
        int64_t at = i < tn_pack_positional(input) ? i : tn_pack_find(input, names[i]);

        if (at < 0 && i == 0)
            return tn_fail(TN_ERR_TYPE,
                           "EmbeddingBag: argument \"input\": missing; expected a tensor");
        if (at < 0 || (i > 0 && tn_pack_at(input, at).kind == TN_VALUE_NONE))
            continue;
        in[i] = tn_pack_tensor(input, at);
        if (in[i] == NULL)
            return tn_error_last_code();
    }
    if (!isnan(s->max_norm) && shorten(s, weight, in[0]) != TN_OK)
        return tn_error_last_code();
    y = tn_embedding_bag(weight, in[0], in[1], in[2], s->mode, s->padding_idx,
                         s->include_last_offset);
    return y == NULL ? tn_error_last_code() : tn_pack_add(output, NULL, tn_value_tensor(y));
}

static int64_t bag_repr(tn_module *self, char *out, size_t size)
{
    const struct embedding *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "%lld, %lld", (long long)s->num_embeddings, (long long)s->embedding_dim);
    put_max_norm(&text, s);
    layers_put(&text, ", mode='%s'", s->mode);
    if (s->padding_idx != INT64_MIN)
        layers_put(&text, ", padding_idx=%lld", (long long)s->padding_idx);
    return text.used;
}

const tn_layer_def layer_embedding_bag = {
    TN_HEAD(tn_layer_def),
    .name = "EmbeddingBag",
    .help = "sum, mean or maximum of rows of a table: module(input, offsets, per_sample_weights)",
    .options = bag_options,
    .data_size = sizeof(struct embedding),
    .version = 1,
    .build = bag_build,
    .reset = reset,
    .call = bag_call,
    .repr = bag_repr,
};
