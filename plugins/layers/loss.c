/* SPDX-License-Identifier: MIT
 *
 * Losses of two or three tensors. PyTorch's deprecated options size_average and reduce do not
 * exist; options that come after them in PyTorch must be given by name. Weights are buffers
 * (loss_weight.c). */
#include "helpers.h"
#include <string.h>

/* The options of all these layers. Each layer uses those that its table lists. */
struct loss {
    const char *reduction;
    double margin;
    double p;
    double eps;
    double beta;
    double delta;
    int64_t power;
    bool full;
    bool log_input;
    bool log_target;
    bool swap;
    int64_t blank;
    bool zero_infinity;
    tn_value weight, pos_weight; /* only until `build` makes them buffers */
};

#define WORD(def, help)                                                                            \
    TN_OPTION_ROW(struct loss, reduction, def, help, TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD)
#define REDUCTION WORD("'mean'", "none, mean or sum")
#define NUMBER(member, def, help)                                                                  \
    TN_OPTION_ROW(struct loss, member, def, help, TN_OPTION_KIND_FLOAT, 0)
#define WEIGHT(help) LAYERS_WEIGHT(struct loss, weight, help, 0)
#define FLAG(member, def, help)                                                                    \
    TN_OPTION_ROW(struct loss, member, def, help, TN_OPTION_KIND_BOOL, 0)

tn_status layers_check_reduction(tn_module *self, const char *word)
{
    if (strcmp(word, "mean") == 0 || strcmp(word, "sum") == 0 || strcmp(word, "none") == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   /* PyTorch's wording */
                   "%s: %q is not a valid value for reduction; expected none, mean or sum",
                   tn_module_type(self), word);
}

static tn_status check(tn_module *self)
{
    const struct loss *s = tn_module_data(self);
    bool batch = strcmp(tn_module_type(self), "KLDivLoss") == 0;

    if (strcmp(s->reduction, "mean") == 0 || strcmp(s->reduction, "sum") == 0 ||
        strcmp(s->reduction, "none") == 0 || (batch && strcmp(s->reduction, "batchmean") == 0))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   /* PyTorch's wording */
                   "%s: %q is not a valid value for reduction; expected none, mean%s or sum",
                   tn_module_type(self), s->reduction, batch ? ", batchmean" : "");
}

static tn_status check_weighted(tn_module *self)
{
    struct loss *s = tn_module_data(self);
    tn_status status = check(self);

    return status == TN_OK ? layers_weight_add(self, "weight", &s->weight) : status;
}

static tn_status check_weighted_twice(tn_module *self)
{
    struct loss *s = tn_module_data(self);
    tn_status status = check_weighted(self);

    return status == TN_OK ? layers_weight_add(self, "pos_weight", &s->pos_weight) : status;
}

static tn_status check_margins(tn_module *self)
{
    tn_status status = check_weighted(self);
    tn_tensor *weight = status == TN_OK ? tn_module_get(self, "weight") : NULL;

    if (weight == NULL || weight == TN_NONE || tn_tensor_ndim(weight) == 1)
        return status;
    return tn_fail(TN_ERR_VALUE,
                   /* PyTorch's wording */
                   "%s: expected weight to be None or 1D tensor, got %dD instead",
                   tn_module_type(self), (int)tn_tensor_ndim(weight));
}

/* Reads the inputs of a call: tensors by position or by these names; NULL ends the list of
 * names. */
static tn_status take(tn_module *self, const tn_pack *pack, const char *const *names,
                      tn_tensor **in)
{
    int64_t positional = tn_pack_positional(pack), count = 0;

    while (names[count] != NULL)
        count++;
    if (tn_pack_count(pack) != count)
        return tn_fail(TN_ERR_TYPE, "%s: inputs: wrong number, got %lld; expected %lld",
                       tn_module_type(self), (long long)tn_pack_count(pack), (long long)count);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i < positional ? i : tn_pack_find(pack, names[i]);

        if (at < 0)
            return tn_fail(TN_ERR_TYPE, "%s: argument %q: missing; expected a tensor",
                           tn_module_type(self), names[i]);
        in[i] = tn_pack_tensor(pack, at);
        if (in[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* Defines ID_call, which returns `result`, an expression of the tensors in[] and the options s. The
 * other arguments are the names of the tensors. */
#define CALL(id, result, ...)                                                                      \
    static tn_status id##_call(tn_module *self, const tn_pack *input, tn_pack *output)             \
    {                                                                                              \
        static const char *const names[] = { __VA_ARGS__, NULL };                                  \
        const struct loss *s = tn_module_data(self);                                               \
        tn_tensor *in[4];                                                                          \
        tn_status status = take(self, input, names, in);                                           \
        return status == TN_OK ? layers_give(output, result) : status;                             \
    }
#define LOSS_OF(id, name_, table, help_, build_)                                                   \
    LAYER(id, name_, .help = help_, .options = table, .data_size = sizeof(struct loss),            \
          .build = build_, .call = id##_call, .repr = layers_no_words)
#define LOSS(id, name_, table, help_) LOSS_OF(id, name_, table, help_, check)

static const tn_option plain[] = { REDUCTION, TN_OPTION_END };
static const tn_option weighted[] = { WEIGHT("factors of the losses; broadcast"), REDUCTION,
                                      TN_OPTION_END };

CALL(mse_loss, tn_mse_loss(in[0], in[1], s->reduction), "input", "target")
LOSS(mse_loss, "MSELoss", plain, "(input - target)^2, reduced");

CALL(l1_loss, tn_l1_loss(in[0], in[1], s->reduction), "input", "target")
LOSS(l1_loss, "L1Loss", plain, "|input - target|, reduced");

CALL(bce_loss, tn_binary_cross_entropy(in[0], in[1], tn_module_get(self, "weight"), s->reduction),
     "input", "target")
LOSS_OF(bce_loss, "BCELoss", weighted, "binary cross entropy of probabilities", check_weighted);

static const tn_option weighted_twice[] = {
    WEIGHT("factors of the losses; broadcast"), REDUCTION,
    LAYERS_WEIGHT(struct loss, pos_weight, "factors of the losses of positive targets; broadcast",
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

CALL(bce_with_logits_loss,
     tn_binary_cross_entropy_with_logits(in[0], in[1], tn_module_get(self, "weight"),
                                         tn_module_get(self, "pos_weight"), s->reduction),
     "input", "target")
LOSS_OF(bce_with_logits_loss, "BCEWithLogitsLoss", weighted_twice,
        "binary cross entropy of log-odds", check_weighted_twice);

CALL(soft_margin_loss, tn_soft_margin_loss(in[0], in[1], s->reduction), "input", "target")
LOSS(soft_margin_loss, "SoftMarginLoss", plain, "log(1 + e^(-target input)), reduced");

CALL(multilabel_margin_loss, tn_multilabel_margin_loss(in[0], in[1], s->reduction), "input",
     "target")
LOSS(multilabel_margin_loss, "MultiLabelMarginLoss", plain,
     "hinge loss between the target classes and the other classes");

CALL(multilabel_soft_margin_loss,
     tn_multilabel_soft_margin_loss(in[0], in[1], tn_module_get(self, "weight"), s->reduction),
     "input", "target")
LOSS_OF(multilabel_soft_margin_loss, "MultiLabelSoftMarginLoss", weighted,
        "binary cross entropy of log-odds, mean over classes", check_weighted);

static const tn_option smooth[] = { REDUCTION,
                                    TN_OPTION_ROW(struct loss, beta, "1.0",
                                                  "above this difference, the loss is linear",
                                                  TN_OPTION_KIND_FLOAT, TN_OPTION_KEYWORD),
                                    TN_OPTION_END };
CALL(smooth_l1_loss, tn_smooth_l1_loss(in[0], in[1], s->reduction, s->beta), "input", "target")
LOSS(smooth_l1_loss, "SmoothL1Loss", smooth,
     "quadratic for small differences, linear for larger "
     "differences");

static const tn_option huber[] = {
    TN_OPTION_ROW(struct loss, reduction, "'mean'", "none, mean or sum", TN_OPTION_KIND_STRING, 0),
    NUMBER(delta, "1.0", "above this difference, the loss is linear"), TN_OPTION_END
};
CALL(huber_loss, tn_huber_loss(in[0], in[1], s->reduction, s->delta), "input", "target")
LOSS(huber_loss, "HuberLoss", huber,
     "quadratic for small differences, linear with slope delta for "
     "larger differences");

static const tn_option kl[] = { WORD("'mean'", "none, mean, batchmean or sum"),
                                TN_OPTION_ROW(struct loss, log_target, "False",
                                              "whether target contains logarithms",
                                              TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
                                TN_OPTION_END };
CALL(kl_div_loss, tn_kl_div(in[0], in[1], s->reduction, s->log_target), "input", "target")
LOSS(kl_div_loss, "KLDivLoss", kl, "target (log target - input), reduced");

static const tn_option poisson[] = {
    FLAG(log_input, "True", "whether input contains logarithms"),
    FLAG(full, "False", "adds Stirling's approximation of log(target!)"),
    TN_OPTION_ROW(struct loss, eps, "1e-08", "added to input, so that its logarithm is finite",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_KEYWORD),
    REDUCTION, TN_OPTION_END
};
CALL(poisson_nll_loss,
     tn_poisson_nll_loss(in[0], in[1], s->reduction, s->log_input, s->full, s->eps), "input",
     "target")
LOSS(poisson_nll_loss, "PoissonNLLLoss", poisson, "e^input - target input, reduced");

static const tn_option gaussian[] = {
    TN_OPTION_ROW(struct loss, full, "False", "adds the constant log(2 pi) / 2",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct loss, eps, "1e-06", "the smallest variance", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_KEYWORD),
    REDUCTION, TN_OPTION_END
};
CALL(gaussian_nll_loss, tn_gaussian_nll_loss(in[0], in[1], in[2], s->reduction, s->full, s->eps),
     "input", "target", "var")
LOSS(gaussian_nll_loss, "GaussianNLLLoss", gaussian,
     "(log var + (input - target)^2 / var) / 2, reduced");

static const tn_option hinge[] = { NUMBER(margin, "1.0", "margin"), REDUCTION, TN_OPTION_END };
static const tn_option ranking[] = { NUMBER(margin, "0.0", "margin"), REDUCTION, TN_OPTION_END };
CALL(hinge_embedding_loss, tn_hinge_embedding_loss(in[0], in[1], s->reduction, s->margin), "input",
     "target")
LOSS(hinge_embedding_loss, "HingeEmbeddingLoss", hinge,
     "input where target is 1, max(0, margin - input) where it is -1");

CALL(margin_ranking_loss, tn_margin_ranking_loss(in[0], in[1], in[2], s->reduction, s->margin),
     "input1", "input2", "target")
LOSS(margin_ranking_loss, "MarginRankingLoss", ranking,
     "max(0, -target (input1 - input2) + margin), reduced");

CALL(cosine_embedding_loss, tn_cosine_embedding_loss(in[0], in[1], in[2], s->reduction, s->margin),
     "input1", "input2", "target")
LOSS(cosine_embedding_loss, "CosineEmbeddingLoss", ranking,
     "1 - cos where target is 1, max(0, cos - margin) where it is -1");

static const tn_option multi[] = {
    TN_OPTION_NAMED("p", struct loss, power, "1", "power, 1 or 2", TN_OPTION_KIND_INT, 0),
    NUMBER(margin, "1.0", "margin"), WEIGHT("a factor for each class"), REDUCTION, TN_OPTION_END
};
CALL(multi_margin_loss,
     tn_multi_margin_loss(in[0], in[1], tn_module_get(self, "weight"), s->reduction, s->power,
                          s->margin),
     "input", "target")
LOSS_OF(multi_margin_loss, "MultiMarginLoss", multi,
        "hinge loss between the target class and the other classes", check_margins);

static const tn_option triplet[] = { NUMBER(margin, "1.0", "margin"),
                                     NUMBER(p, "2.0", "order of the norm"),
                                     NUMBER(eps, "1e-06", "added to the differences"),
                                     FLAG(swap, "False",
                                          "uses the smaller of the two negative distances"),
                                     REDUCTION,
                                     TN_OPTION_END };
CALL(triplet_margin_loss,
     tn_triplet_margin_loss(in[0], in[1], in[2], s->reduction, s->margin, s->p, s->eps, s->swap),
     "anchor", "positive", "negative")
LOSS(triplet_margin_loss, "TripletMarginLoss", triplet,
     "max(0, |anchor - positive| - |anchor - negative| + margin), reduced");

static const tn_option ctc[] = {
    TN_OPTION_ROW(struct loss, blank, "0", "the class of the blank label", TN_OPTION_KIND_INT, 0),
    WORD("'mean'", "none, mean or sum"),
    TN_OPTION_ROW(struct loss, zero_infinity, "False", "replaces infinite losses with 0",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    TN_OPTION_END
};
CALL(ctc_loss, tn_ctc_loss(in[0], in[1], in[2], in[3], s->blank, s->reduction, s->zero_infinity),
     "log_probs", "targets", "input_lengths", "target_lengths")
LOSS(ctc_loss, "CTCLoss", ctc,
     "connectionist temporal classification: -log of the probability of the targets");
