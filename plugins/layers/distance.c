/* SPDX-License-Identifier: MIT
 *
 * Distances between two tensors. */
#include "helpers.h"

struct distance {
    int64_t dim;
    double eps;
    double p;
    bool keepdim;
};

static const tn_option cosine_options[] = {
    TN_OPTION_ROW(struct distance, dim, "1", "dimension of the vectors", TN_OPTION_KIND_INT, 0),
    TN_OPTION_ROW(struct distance, eps, "1e-08", "lower bound of the norms", TN_OPTION_KIND_FLOAT,
                  0),
    TN_OPTION_END
};
static const tn_option pair_options[] = {
    TN_OPTION_ROW(struct distance, p, "2.0", "order of the norm", TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct distance, eps, "1e-06", "added to the difference", TN_OPTION_KIND_FLOAT,
                  0),
    TN_OPTION_ROW(struct distance, keepdim, "False", "keeps the last dimension with size 1",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

static tn_status take_two(tn_module *self, const tn_pack *input, tn_tensor **in)
{
    static const char *const names[] = { "x1", "x2" };

    if (tn_pack_count(input) != 2)
        return tn_fail(TN_ERR_TYPE, "%s: inputs: wrong number, got %lld; expected 2",
                       tn_module_type(self), (long long)tn_pack_count(input));
    for (int64_t i = 0; i < 2; i++) {
        int64_t at = i < tn_pack_positional(input) ? i : tn_pack_find(input, names[i]);

        if (at < 0)
            return tn_fail(TN_ERR_TYPE, "%s: argument %q: missing; expected a tensor",
                           tn_module_type(self), names[i]);
        in[i] = tn_pack_tensor(input, at);
        if (in[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status cosine_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct distance *s = tn_module_data(self);
    tn_tensor *in[2];
    tn_status status = take_two(self, input, in);

    return status == TN_OK ? layers_give(output, tn_cosine_similarity(in[0], in[1], s->dim, s->eps))
                           : status;
}

static tn_status pair_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct distance *s = tn_module_data(self);
    tn_tensor *in[2];
    tn_status status = take_two(self, input, in);

    return status == TN_OK
               ? layers_give(output, tn_pairwise_distance(in[0], in[1], s->p, s->eps, s->keepdim))
               : status;
}

#define DISTANCE(id, Name, table, call_, help_)                                                    \
    const tn_layer_def layer_##id = {                                                              \
        TN_HEAD(tn_layer_def),                                                                     \
        .name = #Name,                                                                             \
        .help = help_,                                                                             \
        .options = table,                                                                          \
        .data_size = sizeof(struct distance),                                                      \
        .version = 1,                                                                              \
        .call = call_,                                                                             \
        .repr = layers_no_words,                                                                   \
    };
DISTANCE(cosine_similarity, CosineSimilarity, cosine_options, cosine_call,
         "the cosine of the angle between two tensors along dim")
DISTANCE(pairwise_distance, PairwiseDistance, pair_options, pair_call,
         "the norm of the difference along the last dimension")
