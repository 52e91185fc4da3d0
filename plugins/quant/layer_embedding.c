/* SPDX-License-Identifier: MIT
 *
 * QuantizedEmbedding: Embedding with a table of integers. */
#include "modules.h"

struct embedding {
    int64_t num_embeddings;
    int64_t embedding_dim;
    int64_t padding_idx; /* INT64_MIN (None): no padding row */
    const char *weight;
    int64_t group;
    const quant_format *format; /* set by build */
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct embedding, num_embeddings, NULL, "rows of the table", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct embedding, embedding_dim, NULL, "length of a row", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct embedding, padding_idx, "None",
                  "index of the row for padding; it is a row like any other here",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct embedding, weight, "'int8'",
                  "how the table is stored: int8, int4, q8_0 or q4_0", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct embedding, group, "0",
                  "numbers of a row that share a scale; 0: all of the row", TN_OPTION_KIND_INT,
                  TN_OPTION_KEYWORD | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    struct embedding *s = tn_module_data(self);
    const char *type = tn_module_type(self);
    int64_t scales[2];
    tn_status status;

    if (s->num_embeddings < 0 || s->embedding_dim < 1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: num_embeddings or embedding_dim: out of range, got %lld and %lld; "
                       "expected at least 0 and 1",
                       type, (long long)s->num_embeddings, (long long)s->embedding_dim);
    if (s->padding_idx != INT64_MIN &&
        (s->padding_idx >= s->num_embeddings || s->padding_idx < -s->num_embeddings))
        return tn_fail(TN_ERR_VALUE,
                       "%s: padding_idx: out of range, got %lld for %lld rows; expected a row",
                       type, (long long)s->padding_idx, (long long)s->num_embeddings);
    s->format = quant_format_find(type, s->weight);
    if (s->format == NULL ||
        quant_format_check(s->format, type, s->group, s->embedding_dim) != TN_OK)
        return tn_error_last_code();
    status = quant_add_buffer(
        self, "weight", s->format->per_byte == 1 ? TN_I8 : TN_U8,
        TN_SHAPE(s->num_embeddings, quant_format_row(s->format, s->embedding_dim)), 0, true);
    /* Without elements, and not in the state: its dtype, which conversions change, is that of the
     * result. */
    if (status == TN_OK)
        status = tn_module_add_buffer(self, "result",
                                      tn_tensor_empty(TN_SHAPE(0), TN_DTYPE_AUTO, NULL),
                                      TN_SLOT_FLAG_NOT_PERSISTENT);
    scales[0] = s->num_embeddings;
    scales[1] = s->group > 0 ? s->embedding_dim / s->group : 0;
    if (status == TN_OK && s->format->scales)
        status = quant_add_buffer(self, "weight_scale", TN_F32,
                                  (tn_ints){ scales, s->group > 0 ? 2 : 1 }, 1, true);
    return status;
}

static tn_status load_state(tn_module *self, tn_loading *loading)
{
    const struct embedding *s = tn_module_data(self);

    return quant_load(self, loading, s->format, s->group);
}

/* The rows are selected as integers, so only what is used becomes floats. */
static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct embedding *s = tn_module_data(self);
    tn_tensor *index = tn_reshape(x, TN_SHAPE(-1)), *scale = TN_NONE, *rows;
    tn_ints shape = tn_tensor_shape(x);
    int64_t sizes[TN_MAX_DIMS + 1];

    if (shape.count >= TN_MAX_DIMS) {
        tn_fail(TN_ERR_VALUE, "%s: input: too many dimensions, got %lld; expected at most %d",
                tn_module_type(self), (long long)shape.count, TN_MAX_DIMS - 1);
        return NULL;
    }
    rows = tn_index_select(tn_module_get(self, "weight"), index, 0);
    if (s->format->scales)
        scale = tn_index_select(tn_module_get(self, "weight_scale"), index, 0);
    rows = tn_dequantize_packed(rows, scale, TN_NONE, s->format->name,
                                tn_tensor_dtype(tn_module_get(self, "result")));
    if (rows == NULL)
        return NULL;
    memcpy(sizes, shape.at, (size_t)shape.count * sizeof *sizes);
    sizes[shape.count] = s->embedding_dim;
    return tn_reshape(rows, ((tn_ints){ sizes, shape.count + 1 }));
}

const tn_layer_def layer_quantized_embedding = {
    TN_HEAD(tn_layer_def),
    .name = "QuantizedEmbedding",
    .help = "Embedding with a table of integers; gives floats",
    .options = options,
    .data_size = sizeof(struct embedding),
    .version = 1,
    .build = build,
    .forward = forward,
    .load_state = load_state,
    .flags = TN_LAYER_READS_INPUT,
};
