/* SPDX-License-Identifier: MIT
 *
 * TripletMarginWithDistanceLoss: triplet loss with a module of two inputs as its distance. */
#include "helpers.h"
#include <string.h>

struct triplet {
    tn_value distance_function;
    double margin;
    bool swap;
    const char *reduction;
};

static const tn_option triplet_options[] = {
    TN_OPTION_ROW(struct triplet, distance_function, "None",
                  "a module of two inputs; None: PairwiseDistance()", TN_OPTION_KIND_VALUE,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct triplet, margin, "1.0", "margin", TN_OPTION_KIND_FLOAT, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct triplet, swap, "False", "uses the smaller of the two negative distances",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct triplet, reduction, "'mean'", "none, mean or sum", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status triplet_build(tn_module *self)
{
    const struct triplet *s = tn_module_data(self);
    tn_status status = layers_check_reduction(self, s->reduction);

    if (status == TN_OK && !(s->margin > 0))
        status = tn_fail(TN_ERR_VALUE,
                         "TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                         "got %g instead",
                         s->margin);
    if (status != TN_OK)
        return status;
    return s->distance_function.kind == TN_VALUE_NONE
               ? layers_child(self, "distance_function", "PairwiseDistance()")
               : layers_child_value(self, "distance_function", &s->distance_function);
}

static tn_tensor *distance(tn_module *self, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *const in[] = { a, b };

    return layers_call(tn_module_child(self, "distance_function"), in, 2, NULL, NULL, 0);
}

static tn_status triplet_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static const char *const names[] = { "anchor", "positive", "negative" };
    const struct triplet *s = tn_module_data(self);
    tn_value v[3];
    tn_tensor *x[3] = { NULL, NULL, NULL }, *near, *far, *y;
    tn_status status = layers_take(self, input, names, 3, v);

    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = layers_tensor_of(self, names[i], &v[i], &x[i]);
    if (status != TN_OK)
        return status;
    near = distance(self, x[0], x[1]);
    far = near != NULL ? distance(self, x[0], x[2]) : NULL;
    if (far != NULL && s->swap)
        far = tn_minimum(far, distance(self, x[1], x[2]));
    y = tn_clamp(tn_add_scalar(tn_sub(near, far), s->margin), 0);
    if (strcmp(s->reduction, "mean") == 0)
        y = tn_mean(y);
    else if (strcmp(s->reduction, "sum") == 0)
        y = tn_sum(y);
    return layers_give(output, y);
}

const tn_layer_def layer_triplet_with_distance = {
    TN_HEAD(tn_layer_def),
    .name = "TripletMarginWithDistanceLoss",
    .help = "max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced",
    .options = triplet_options,
    .data_size = sizeof(struct triplet),
    .version = 1,
    .build = triplet_build,
    .call = triplet_call,
    .repr = layers_no_words,
};
