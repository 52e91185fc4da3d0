/* SPDX-License-Identifier: MIT
 *
 * GPT-2 (Radford et al., 2019) as in transformers, with the names, the order and the
 * initialization of its GPT2LMHeadModel. lm_head and the embedding of tokens share one weight. */
#include "models.h"

#include <math.h>

struct gpt2 {
    int64_t vocab_size;
    int64_t n_positions;
    int64_t n_embd;
    int64_t n_layer;
    int64_t n_head;
    int64_t n_inner; /* of a network: INT64_MIN (None) is 4 * n_embd */
    double dropout;
    double layer_norm_epsilon;
};

#define DROPOUT_ROW TN_OPTION_FLOAT(struct gpt2, dropout, "0.1", "dropout probability, in training")
#define EPSILON_ROW                                                                                \
    TN_OPTION_FLOAT(struct gpt2, layer_norm_epsilon, "1e-05",                                      \
                    "added to the variance, for stability")
#define INNER_ROW                                                                                  \
    TN_OPTION_ROW(struct gpt2, n_inner, "None",                                                    \
                  "features between the linear layers; None: 4 n_embd", TN_OPTION_KIND_INT,        \
                  TN_OPTION_OPTIONAL)
static const tn_option attention_options[] = {
    TN_OPTION_INT_REQUIRED(struct gpt2, n_embd, "features"),
    TN_OPTION_INT_REQUIRED(struct gpt2, n_head, "attention heads; must divide n_embd"), DROPOUT_ROW,
    TN_OPTION_END
};
static const tn_option mlp_options[] = { TN_OPTION_INT_REQUIRED(struct gpt2, n_embd, "features"),
                                         INNER_ROW, DROPOUT_ROW, TN_OPTION_END };
static const tn_option block_options[] = {
    TN_OPTION_INT_REQUIRED(struct gpt2, n_embd, "features"),
    TN_OPTION_INT_REQUIRED(struct gpt2, n_head, "attention heads; must divide n_embd"),
    INNER_ROW,
    DROPOUT_ROW,
    EPSILON_ROW,
    TN_OPTION_END
};
static const tn_option options[] = {
    TN_OPTION_INT(struct gpt2, vocab_size, "50257", "number of different tokens"),
    TN_OPTION_INT(struct gpt2, n_positions, "1024", "longest sequence"),
    TN_OPTION_INT(struct gpt2, n_embd, "768", "features of a token"),
    TN_OPTION_INT(struct gpt2, n_layer, "12", "blocks"),
    TN_OPTION_INT(struct gpt2, n_head, "12", "attention heads; must divide n_embd"),
    INNER_ROW,
    DROPOUT_ROW,
    EPSILON_ROW,
    TN_OPTION_END
};

static long long inner(const struct gpt2 *s)
{
    return s->n_inner == INT64_MIN ? 4 * s->n_embd : s->n_inner;
}

static tn_status check_mlp(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    tn_status status = models_check_size(self, "n_embd", s->n_embd, 1);

    if (status == TN_OK && s->n_inner != INT64_MIN)
        status = models_check_size(self, "n_inner", s->n_inner, 1);
    return status == TN_OK ? models_check_share(self, "dropout", s->dropout) : status;
}

static tn_status check_attention(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    tn_status status = models_check_size(self, "n_embd", s->n_embd, 1);

    if (status == TN_OK)
        status = models_check_size(self, "n_head", s->n_head, 1);
    if (status == TN_OK)
        status = models_check_share(self, "dropout", s->dropout);
    if (status == TN_OK && s->n_embd % s->n_head != 0)
        status = tn_fail(
            TN_ERR_VALUE,
            "%s: n_head: does not divide n_embd, got %lld and %lld; expected a divisor",
            tn_module_type(self), (long long)s->n_head, (long long)s->n_embd);
    return status;
}

static tn_status check(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    tn_status status = models_check_size(self, "vocab_size", s->vocab_size, 1);

    if (status == TN_OK)
        status = models_check_size(self, "n_positions", s->n_positions, 1);
    if (status == TN_OK)
        status = models_check_count(self, "n_layer", s->n_layer);
    if (status == TN_OK)
        status = check_mlp(self);
    return status == TN_OK ? check_attention(self) : status;
}

/* ---- Conv1D: a Linear whose weight is transposed ---- */

struct conv1d {
    int64_t nf;
    int64_t nx;
};

static const tn_option conv1d_options[] = {
    TN_OPTION_INT_REQUIRED(struct conv1d, nf, "features of the result"),
    TN_OPTION_INT_REQUIRED(struct conv1d, nx, "features of the input"), TN_OPTION_END
};

static tn_status conv1d_build(tn_module *self)
{
    const struct conv1d *s = tn_module_data(self);
    tn_status status = models_check_size(self, "nf", s->nf, 1);

    if (status == TN_OK)
        status = models_check_size(self, "nx", s->nx, 1);
    if (status == TN_OK)
        status = models_add_parameter(self, "weight", TN_SHAPE(s->nx, s->nf));
    return status == TN_OK ? models_add_parameter(self, "bias", TN_SHAPE(s->nf)) : status;
}

static tn_status conv1d_reset(tn_module *self)
{
    tn_status status = models_init_one(self, "weight", "normal(std=0.02)");

    return status == TN_OK ? models_init_one(self, "bias", "zeros()") : status;
}

static tn_tensor *conv1d_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *weight = tn_module_get(self, "weight");

    return tn_linear(x, weight != NULL ? tn_transpose(weight, 0, 1) : NULL,
                     tn_module_get(self, "bias"));
}

static int64_t conv1d_repr(tn_module *self, char *out, size_t size)
{
    const struct conv1d *s = tn_module_data(self);

    return tn_snprint(out, size, "nf=%lld, nx=%lld", (long long)s->nf, (long long)s->nx);
}

MODEL(gpt2_conv1d, "gpt2.Conv1D", "Conv1D", .help = "y = x . weight + bias; weight is [nx, nf]",
      .options = conv1d_options, .data_size = sizeof(struct conv1d), .build = conv1d_build,
      .reset = conv1d_reset, .forward = conv1d_forward, .repr = conv1d_repr);

/* ---- NewGELUActivation ---- */

static tn_tensor *gelu_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_gelu(x, "tanh");
}

MODEL(gpt2_gelu, "gpt2.NewGELUActivation", "NewGELUActivation",
      .help = "GELU, approximated with tanh", .forward = gelu_forward);

/* ---- GPT2Attention ---- */

static tn_status attention_build(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    long long features = s->n_embd;
    tn_status status = check_attention(self);

    if (status != TN_OK)
        return status;
    return tn_module_add_children(self,
                                  "c_attn=gpt2.Conv1D(%lld, %lld), c_proj=gpt2.Conv1D(%lld, %lld), "
                                  "attn_dropout=Dropout(%g), resid_dropout=Dropout(%g)",
                                  3 * features, features, features, features, s->dropout,
                                  s->dropout);
}

/* [N, L, E] as [N, heads, L, E / heads] */
static tn_tensor *heads(tn_tensor *x, int64_t count)
{
    tn_ints shape = TN_SHAPE(tn_tensor_size(x, 0), tn_tensor_size(x, 1), count, -1);

    return tn_transpose(tn_reshape(x, shape), 1, 2);
}

static tn_tensor *attention_forward(tn_module *self, tn_tensor *x)
{
    const struct gpt2 *s = tn_module_data(self);
    tn_scaled_dot_product_attention_options o = TN_SCALED_DOT_PRODUCT_ATTENTION_OPTIONS;
    tn_tensor *part[3] = { NULL, NULL, NULL };

    if (tn_tensor_ndim(x) != 3) {
        tn_fail(TN_ERR_VALUE,
                "%s: input: wrong number of dimensions, got %d; expected 3: [N, L, E]",
                tn_module_type(self), (int)tn_tensor_ndim(x));
        return NULL;
    }
    o.is_causal = true;
    o.dropout_p = tn_module_is_training(self) ? s->dropout : 0;
    if (tn_chunk(tn_module_call_child(self, "c_attn", x), 3, -1, part, 3) != 3)
        return NULL;
    x = tn_scaled_dot_product_attention(heads(part[0], s->n_head), heads(part[1], s->n_head),
                                        heads(part[2], s->n_head), TN_NONE, o.dropout_p,
                                        o.is_causal);
    if (x == NULL)
        return NULL;
    return tn_module_call_chain(self, "c_proj resid_dropout",
                                tn_flatten(tn_transpose(x, 1, 2), 2, -1));
}

/* Files of old versions have the causal mask as buffers. */
static tn_status attention_load(tn_module *self, tn_loading *loading)
{
    static const char *const masks[] = { "bias", "masked_bias" };
    char name[512];
    tn_status status = TN_OK;

    for (int i = 0; i < 2 && status == TN_OK; i++) {
        tn_snprint(name, sizeof name, "%s%s", loading->prefix, masks[i]);
        if (tn_state_find(loading->state, name) >= 0)
            status = tn_state_remove(loading->state, name);
    }
    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

MODEL(gpt2_attention, "gpt2.GPT2Attention", "GPT2Attention",
      .help = "attention of each token to itself and those before", .options = attention_options,
      .data_size = sizeof(struct gpt2), .build = attention_build, .load_state = attention_load,
      .forward = attention_forward, .repr = models_no_words);

/* ---- GPT2MLP ---- */

static tn_status mlp_build(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    long long features = s->n_embd, wide = inner(s);
    tn_status status = check_mlp(self);

    if (status != TN_OK)
        return status;
    return tn_module_add_children(self,
                                  "c_fc=gpt2.Conv1D(%lld, %lld), c_proj=gpt2.Conv1D(%lld, %lld), "
                                  "act=gpt2.NewGELUActivation(), dropout=Dropout(%g)",
                                  wide, features, features, wide, s->dropout);
}

static tn_tensor *mlp_forward(tn_module *self, tn_tensor *x)
{
    return tn_module_call_chain(self, "c_fc act c_proj dropout", x);
}

MODEL(gpt2_mlp, "gpt2.GPT2MLP", "GPT2MLP", .help = "two linear layers with GELU between them",
      .options = mlp_options, .data_size = sizeof(struct gpt2), .build = mlp_build,
      .forward = mlp_forward, .repr = models_no_words);

/* ---- GPT2Block ---- */

static tn_status block_build(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    long long features = s->n_embd;
    tn_status status = check_mlp(self);

    if (status == TN_OK)
        status = check_attention(self);
    if (status != TN_OK)
        return status;
    return tn_module_add_children(
        self,
        "ln_1=LayerNorm(%lld, eps=%g), attn=gpt2.GPT2Attention(%lld, %lld, %g), "
        "ln_2=LayerNorm(%lld, eps=%g), mlp=gpt2.GPT2MLP(%lld, %lld, %g)",
        features, s->layer_norm_epsilon, features, (long long)s->n_head, s->dropout, features,
        s->layer_norm_epsilon, features, inner(s), s->dropout);
}

static tn_tensor *block_forward(tn_module *self, tn_tensor *x)
{
    x = tn_add(x, tn_module_call_chain(self, "ln_1 attn", x));
    return x != NULL ? tn_add(x, tn_module_call_chain(self, "ln_2 mlp", x)) : NULL;
}

MODEL(gpt2_block, "gpt2.GPT2Block", "GPT2Block",
      .help = "a block of gpt2_small: attention and two linear layers, each normalized first",
      .options = block_options, .data_size = sizeof(struct gpt2), .build = block_build,
      .forward = block_forward, .repr = models_no_words);

/* ---- GPT2Model ---- */

static tn_status model_build(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    long long features = s->n_embd;
    tn_status status = check(self);

    if (status != TN_OK)
        return status;
    return tn_module_add_children(
        self,
        "wte=Embedding(%lld, %lld), wpe=Embedding(%lld, %lld), drop=Dropout(%g), "
        "h=ModuleList({0..%lld}=gpt2.GPT2Block(%lld, %lld, %lld, %g, %g)), "
        "ln_f=LayerNorm(%lld, eps=%g)",
        (long long)s->vocab_size, features, (long long)s->n_positions, features, s->dropout,
        (long long)s->n_layer - 1, features, (long long)s->n_head, inner(s), s->dropout,
        s->layer_norm_epsilon, features, s->layer_norm_epsilon);
}

/* The weights of the last layer before each residual sum are initialized with smaller values: the
 * more such layers there are, the smaller. */
static tn_status model_reset(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    char init[64];
    tn_status status = models_init_all(self, "Embedding", "weight", "normal(std=0.02)");
    tn_walk *walk = tn_walk_begin(self, TN_SLOT_CHILD, NULL);

    tn_snprint(init, sizeof init, "normal(std=%g)", 0.02 / sqrt(2.0 * (double)s->n_layer));
    if (walk == NULL)
        status = tn_error_last_code();
    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk))
        if (tn_module_slot_kind(at->module, "c_proj") == TN_SLOT_CHILD)
            status = models_init_one(at->module, "c_proj.weight", init);
    tn_walk_end(walk);
    return status;
}

static tn_tensor *model_forward(tn_module *self, tn_tensor *words)
{
    const struct gpt2 *s = tn_module_data(self);
    tn_tensor *places, *x;

    if (models_check_tokens(self, words) != TN_OK)
        return NULL;
    if (tn_tensor_size(words, 1) > s->n_positions) {
        tn_fail(TN_ERR_VALUE,
                "%s: input: too long, got %lld tokens; expected at most %lld "
                "(n_positions)",
                tn_module_type(self), (long long)tn_tensor_size(words, 1),
                (long long)s->n_positions);
        return NULL;
    }
    places = tn_arange(words, tn_scalar_int(0), tn_scalar_int(tn_tensor_size(words, 1)));
    x = tn_add(tn_module_call_child(self, "wte", words), tn_module_call_child(self, "wpe", places));
    x = tn_module_call_children(tn_module_child(self, "h"), tn_module_call_child(self, "drop", x));
    return tn_module_call_child(self, "ln_f", x);
}

MODEL(gpt2_model, "gpt2.GPT2Model", "GPT2Model",
      .help = "features of tokens [N, L]; gpt2_small without its last layer", .options = options,
      .data_size = sizeof(struct gpt2), .build = model_build, .reset = model_reset,
      .forward = model_forward, .repr = models_no_words);

/* ---- GPT2LMHeadModel ---- */

static tn_status build(tn_module *self)
{
    const struct gpt2 *s = tn_module_data(self);
    tn_status status = check(self);
    tn_tensor *table;

    if (status != TN_OK)
        return status;
    status = tn_module_add_children(
        self,
        "transformer=gpt2.GPT2Model(%lld, %lld, %lld, %lld, %lld, %lld, %g, %g), "
        "lm_head=Linear(%lld, %lld, bias=False)",
        (long long)s->vocab_size, (long long)s->n_positions, (long long)s->n_embd,
        (long long)s->n_layer, (long long)s->n_head, inner(s), s->dropout, s->layer_norm_epsilon,
        (long long)s->n_embd, (long long)s->vocab_size);
    if (status != TN_OK)
        return status;
    table = tn_module_find_tensor(self, "transformer.wte.weight");
    return table != NULL ? tn_module_set(tn_module_child(self, "lm_head"), "weight", table)
                         : tn_error_last_code();
}

static tn_tensor *forward(tn_module *self, tn_tensor *words)
{
    return tn_module_call_chain(self, "transformer lm_head", words);
}

/* The published files are those of a GPT2Model: their names do not begin with "transformer.". */
static tn_status load(tn_module *self, tn_loading *loading)
{
    size_t prefix = strlen(loading->prefix);
    char name[512], to[544];
    tn_status status = TN_OK;

    tn_snprint(name, sizeof name, "%swte.weight", loading->prefix);
    if (tn_state_find(loading->state, name) < 0)
        return tn_module_load_own(self, loading);
    for (int64_t i = 0; i < tn_state_count(loading->state) && status == TN_OK; i++) {
        const char *entry = tn_state_name(loading->state, i);

        if (strlen(entry) >= sizeof name || strncmp(entry + prefix, "lm_head.", 8) == 0)
            continue;
        tn_snprint(name, sizeof name, "%s", entry + prefix);
        tn_snprint(to, sizeof to, "transformer.%s", name);
        status = models_rename(loading, name, to);
    }
    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

MODEL(gpt2_small, "gpt2_small", "GPT2LMHeadModel",
      .help = "the next token: logits [N, L, vocab_size] of tokens [N, L]", .options = options,
      .data_size = sizeof(struct gpt2), .build = build, .load_state = load, .forward = forward,
      .repr = models_no_words);
