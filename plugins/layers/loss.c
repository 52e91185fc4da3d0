/* SPDX-License-Identifier: MIT
 *
 * Losses as modules: input and target in, loss out. Their options are by name only, since PyTorch has others between them. */
#include "layers.h"

#include <string.h>

struct loss {
    int64_t ignore_index;
    const char *reduction;
    double label_smoothing;
};

static const tn_option cross_entropy_options[] = {
    TN_OPTION_ROW(struct loss, ignore_index, "-100", "a target that does not count",
                  TN_OPTION_KIND_INT, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct loss, reduction, "'mean'", "none, mean or sum", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct loss, label_smoothing, "0.0",
                  "share of the target that is spread over all classes", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static const tn_option nll_options[] = {
    TN_OPTION_ROW(struct loss, ignore_index, "-100", "a target that does not count",
                  TN_OPTION_KIND_INT, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct loss, reduction, "'mean'", "none, mean or sum", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status check(tn_module *self)
{
    const struct loss *s = tn_module_data(self);
    if (strcmp(s->reduction, "mean") != 0 && strcmp(s->reduction, "sum") != 0 &&
        strcmp(s->reduction, "none") != 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: %q is not a valid value for reduction; none, mean and sum are",
                       tn_module_type(self), s->reduction);
    if (!(s->label_smoothing >= 0.0 && s->label_smoothing <= 1.0))
        return tn_fail(TN_ERR_VALUE, "%s: label_smoothing must be between 0.0 and 1.0. Got: %g",
                       tn_module_type(self), s->label_smoothing);
    return TN_OK;
}

/* PyTorch prints a loss without its options. */
static int64_t repr(tn_module *self, char *out, size_t size)
{
    (void)self;
    return tn_snprint(out, size, "%s", "");
}

/* The two tensors, positional or by name. */
static tn_status take_two(const tn_pack *pack, tn_tensor **input, tn_tensor **target)
{
    int64_t positional = tn_pack_positional(pack);
    int64_t at[2] = { positional > 0 ? 0 : tn_pack_find(pack, "input"),
                      positional > 1 ? 1 : tn_pack_find(pack, "target") };
    if (tn_pack_count(pack) != 2 || at[0] < 0 || at[1] < 0 || at[0] == at[1])
        return tn_fail(TN_ERR_TYPE, "a loss takes two tensors, input and target, got %lld value%s",
                       (long long)tn_pack_count(pack), tn_pack_count(pack) == 1 ? "" : "s");
    *input = tn_pack_tensor(pack, at[0]);
    *target = tn_pack_tensor(pack, at[1]);
    return *input != NULL && *target != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status cross_entropy(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct loss *s = tn_module_data(self);
    tn_tensor *x = NULL, *target = NULL;
    tn_status status = take_two(input, &x, &target);
    if (status != TN_OK)
        return status;
    tn_cross_entropy_options options = TN_CROSS_ENTROPY_OPTIONS;
    options.reduction = s->reduction;
    options.ignore_index = s->ignore_index;
    options.label_smoothing = s->label_smoothing;
    return layers_give(output, tn_cross_entropy(x, target, &options));
}

static tn_status nll(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct loss *s = tn_module_data(self);
    tn_tensor *x = NULL, *target = NULL, *loss = NULL, *total = NULL;
    tn_status status = take_two(input, &x, &target);
    if (status != TN_OK)
        return status;
    tn_nll_loss_options options = TN_NLL_LOSS_OPTIONS;
    options.reduction = s->reduction;
    options.ignore_index = s->ignore_index;
    status = tn_nll_loss(x, target, &options, &loss, &total);
    return status == TN_OK ? layers_give(output, loss) : status;
}

const tn_layer layer_cross_entropy_loss = {
    TN_HEAD(tn_layer),
    .name = "CrossEntropyLoss",
    .help = "-log_softmax(input)[target], reduced",
    .options = cross_entropy_options,
    .data_size = sizeof(struct loss),
    .version = 1,
    .build = check,
    .call = cross_entropy,
    .repr = repr,
};

const tn_layer layer_nll_loss = {
    TN_HEAD(tn_layer),
    .name = "NLLLoss",
    .help = "-input[target], reduced; input has log-probabilities",
    .options = nll_options,
    .data_size = sizeof(struct loss),
    .version = 1,
    .build = check,
    .call = nll,
    .repr = repr,
};
