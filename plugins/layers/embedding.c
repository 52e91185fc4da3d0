/* SPDX-License-Identifier: MIT
 *
 * Embedding: rows of a table, by number. */
#include "layers.h"

struct embedding {
    int64_t num_embeddings;
    int64_t embedding_dim;
    int64_t padding_idx; /* INT64_MIN: none */
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct embedding, num_embeddings, NULL, "rows of the table", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct embedding, embedding_dim, NULL, "length of a row", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct embedding, padding_idx, "None",
                  "the row that begins as zeros and gets no gradient", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    struct embedding *s = tn_module_data(self);
    tn_tensor *weight;
    tn_status status;

    if (s->num_embeddings < 0 || s->embedding_dim < 0)
        return tn_fail(TN_ERR_VALUE,
                       "Embedding: num_embeddings and embedding_dim are sizes, got "
                       "%lld and %lld",
                       (long long)s->num_embeddings, (long long)s->embedding_dim);
    if (s->padding_idx != INT64_MIN) {
        if (s->padding_idx >= s->num_embeddings || s->padding_idx < -s->num_embeddings)
            return tn_fail(TN_ERR_VALUE,
                           "Embedding: padding_idx %lld must be within num_embeddings "
                           "%lld",
                           (long long)s->padding_idx, (long long)s->num_embeddings);
        if (s->padding_idx < 0)
            s->padding_idx += s->num_embeddings;
    }
    weight = tn_tensor_empty(TN_SHAPE(s->num_embeddings, s->embedding_dim), TN_DTYPE_AUTO, NULL);
    if (weight == NULL)
        return tn_error_last()->code;
    status = tn_init(weight, "normal()");
    if (status == TN_OK && s->padding_idx != INT64_MIN)
        status = status_of(tn_fill_(tn_select(weight, 0, s->padding_idx), 0));
    return status == TN_OK ? tn_module_add_parameter(self, "weight", weight) : status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct embedding *s = tn_module_data(self);
    tn_embedding_options o = TN_EMBEDDING_OPTIONS;

    o.padding_idx = s->padding_idx;
    return tn_embedding(tn_module_get(self, "weight"), x, &o);
}

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct embedding *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "%lld, %lld", (long long)s->num_embeddings, (long long)s->embedding_dim);
    if (s->padding_idx != INT64_MIN)
        layers_put(&text, ", padding_idx=%lld", (long long)s->padding_idx);
    return text.used;
}

const tn_layer layer_embedding = {
    TN_HEAD(tn_layer),
    .name = "Embedding",
    .help = "rows of a table, by their numbers; weight [num_embeddings, embedding_dim]",
    .options = options,
    .data_size = sizeof(struct embedding),
    .version = 1,
    .build = build,
    .forward = forward,
    .repr = repr,
};
