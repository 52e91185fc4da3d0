/* SPDX-License-Identifier: MIT
 *
 * MultiheadAttention. The names, order and initialization of its parameters are PyTorch's. The
 * results are the output and the weights, or only the output if need_weights is False. */
#include "helpers.h"

#include <math.h>
#include <string.h>

struct attention {
    int64_t embed_dim;
    int64_t num_heads;
    double dropout;
    bool bias;
    bool add_bias_kv;
    bool add_zero_attn;
    int64_t kdim; /* INT64_MIN: embed_dim */
    int64_t vdim;
    bool batch_first;
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct attention, embed_dim, "None",
                  "features of queries and of the output; None: those of the state that is loaded",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct attention, num_heads, "None",
                  "number of heads; must divide embed_dim. None: set it before a call",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct attention, dropout, "0.0",
                  "probability of dropping attention weights, in training", TN_OPTION_KIND_FLOAT,
                  0),
    TN_OPTION_ROW(struct attention, bias, "True", "whether the projections have biases",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct attention, add_bias_kv, "False", "adds a learned key and value",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct attention, add_zero_attn, "False", "adds a key and value of zeros",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct attention, kdim, "None", "features of keys; None: embed_dim",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct attention, vdim, "None", "features of values; None: embed_dim",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct attention, batch_first, "False", "tensors are [N, L, E], not [L, N, E]",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

static const char *const projections[] = { "q_proj_weight", "k_proj_weight", "v_proj_weight" };

/* Adds the parameters of the three projections: one matrix for all if keys and values have
 * embed_dim features, otherwise three. Slots of the unused form have no tensor. */
static tn_status add_projections(tn_module *self, int64_t kdim, int64_t vdim)
{
    const struct attention *s = tn_module_data(self);
    int64_t e = s->embed_dim, rows = 0;
    const int64_t columns[] = { e, kdim, vdim };
    bool one = kdim == e && vdim == e;
    tn_status status = layers_times(self, "embed_dim", e, 3, &rows);

    if (one && status == TN_OK)
        status = layers_add(self, "in_proj_weight", true, TN_SHAPE(rows, e));
    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = layers_add(self, projections[i], !one, TN_SHAPE(e, columns[i]));
    if (!one && status == TN_OK)
        status = tn_module_add_parameter(self, "in_proj_weight", TN_NONE);
    return status == TN_OK ? layers_add(self, "in_proj_bias", s->bias, TN_SHAPE(rows)) : status;
}

/* PyTorch's printed form has no sizes. The parameters of such a module get their shapes from the
 * state that is loaded, and out_proj is a child in the text. */
static tn_status build_unsized(tn_module *self)
{
    const struct attention *s = tn_module_data(self);
    tn_status status;

    if (s->num_heads != INT64_MIN && s->num_heads < 1)
        return tn_fail(TN_ERR_VALUE,
                       "MultiheadAttention: num_heads: out of range, got %lld; expected 1 or more",
                       (long long)s->num_heads);
    if (s->kdim != INT64_MIN || s->vdim != INT64_MIN || s->add_bias_kv)
        return tn_fail(TN_ERR_VALUE,
                       "MultiheadAttention: embed_dim: missing; expected a number with kdim, vdim "
                       "or add_bias_kv");
    status = tn_module_add_lazy(self, TN_SLOT_PARAMETER, "in_proj_weight");
    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = tn_module_add_parameter(self, projections[i], TN_NONE);
    if (status == TN_OK)
        status = s->bias ? tn_module_add_lazy(self, TN_SLOT_PARAMETER, "in_proj_bias")
                         : tn_module_add_parameter(self, "in_proj_bias", TN_NONE);
    if (status == TN_OK)
        status = tn_module_reserve_child(self, "out_proj");
    for (int i = 0; i < 2 && status == TN_OK; i++)
        status = tn_module_add_parameter(self, i == 0 ? "bias_k" : "bias_v", TN_NONE);
    return status;
}

static tn_status build(tn_module *self)
{
    const struct attention *s = tn_module_data(self);
    int64_t e = s->embed_dim, kdim = s->kdim == INT64_MIN ? e : s->kdim,
            vdim = s->vdim == INT64_MIN ? e : s->vdim;
    static const char *const more[] = { "bias_k", "bias_v" };
    tn_module *out;
    tn_status status;

    if (e == INT64_MIN)
        return build_unsized(self);
    if (s->num_heads == INT64_MIN)
        return tn_fail(
            TN_ERR_VALUE,
            "MultiheadAttention: num_heads: missing; expected the number of heads, which "
            "divides embed_dim");
    if (e < 1 || s->num_heads < 1 || e % s->num_heads != 0 || kdim < 1 || vdim < 1)
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */
                       "MultiheadAttention: embed_dim must be divisible by num_heads, and sizes "
                       "positive; got embed_dim %lld, num_heads %lld, kdim %lld, vdim %lld",
                       (long long)e, (long long)s->num_heads, (long long)kdim, (long long)vdim);
    if (!(s->dropout >= 0 && s->dropout <= 1))
        return tn_fail(
            TN_ERR_VALUE,
            "MultiheadAttention: dropout: out of range, got %g; expected a probability from 0 to 1",
            s->dropout);
    status = add_projections(self, kdim, vdim);
    if (status != TN_OK)
        return status;
    out = tn_module_new("NonDynamicallyQuantizableLinear(%lld, %lld, bias=%s)", (long long)e,
                        (long long)e, s->bias ? "True" : "False");
    if (out == NULL)
        return tn_error_last_code();
    status = tn_module_add_child(self, "out_proj", out);
    tn_module_drop(out);
    for (int i = 0; i < 2 && status == TN_OK; i++)
        status = layers_add(self, more[i], s->add_bias_kv, TN_SHAPE(1, 1, e));
    return status;
}

/* Whether the state has a tensor of this name; *at is its place. */
static bool in_state(const tn_loading *loading, const char *name, int64_t *at)
{
    char whole[512];
    int64_t length = tn_snprint(whole, sizeof whole, "%s%s", loading->prefix, name);

    *at = length < (int64_t)sizeof whole ? tn_state_find(loading->state, whole) : -1;
    return *at >= 0 && tn_state_value(loading->state, *at).kind == TN_VALUE_TENSOR;
}

/* Adds a parameter with the shape of `like`, where out_proj has its weight. */
static tn_status add_like(tn_module *self, const char *name, tn_tensor *like)
{
    tn_module *out = tn_module_child(self, "out_proj");
    tn_tensor *near = out != NULL ? tn_module_get(out, "weight") : like, *made;

    near = near != NULL && near != TN_NONE ? near : like;
    made = tn_tensor_empty(tn_tensor_shape(like), tn_tensor_dtype(near), tn_tensor_device(near));
    return made != NULL ? tn_module_add_parameter(self, name, tn_parameter(made, true))
                        : tn_error_last_code();
}

/* The printed form does not say which parameters there are either: those of the state. */
static tn_status load_unsized(tn_module *self, const tn_loading *loading)
{
    static const char *const names[] = { "in_proj_weight", "q_proj_weight", "k_proj_weight",
                                         "v_proj_weight",  "in_proj_bias",  "bias_k",
                                         "bias_v" };
    int64_t at;
    bool known = in_state(loading, "in_proj_weight", &at) ||
                 in_state(loading, "q_proj_weight", &at);
    tn_status status = TN_OK;

    for (size_t i = 0; i < sizeof names / sizeof *names && status == TN_OK && known; i++) {
        bool there = in_state(loading, names[i], &at);
        tn_tensor *like = there ? tn_state_tensor(loading->state, at) : NULL, *slot;
        uint64_t scope = tn_scope_begin();

        slot = tn_module_is_lazy(self, names[i]) ? NULL : tn_module_get(self, names[i]);
        if (there && slot == TN_NONE)
            status = add_like(self, names[i], like);
        else if (!there && slot != TN_NONE)
            status = tn_module_add_parameter(self, names[i], TN_NONE);
        tn_scope_end(scope);
    }
    return status;
}

static tn_status load_state(tn_module *self, tn_loading *loading)
{
    const struct attention *s = tn_module_data(self);
    tn_status status = s->embed_dim == INT64_MIN ? load_unsized(self, loading) : TN_OK;

    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

/* Projections are initialized by Xavier's rule; their biases and the bias of out_proj are 0. */
static tn_status reset(tn_module *self)
{
    static const struct {
        const char *name, *init;
    } rows[] = {
        { "in_proj_weight", "xavier_uniform()" },
        { "q_proj_weight", "xavier_uniform()" },
        { "k_proj_weight", "xavier_uniform()" },
        { "v_proj_weight", "xavier_uniform()" },
        { "in_proj_bias", "zeros()" },
        { "bias_k", "xavier_normal()" },
        { "bias_v", "xavier_normal()" },
    };
    tn_module *out = tn_module_child(self, "out_proj");
    tn_status status = out == NULL ? tn_error_last_code() : layers_fill(out, "bias", 0);

    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == TN_OK; i++)
        status = layers_init(self, rows[i].name, rows[i].init);
    return status;
}

/* ---- calling ---- */

enum { QUERY, KEY, VALUE, PADDED, NEED, MASK, AVERAGE, CAUSAL, ARGUMENTS };

static const char *const arguments[ARGUMENTS] = { "query",
                                                  "key",
                                                  "value",
                                                  "key_padding_mask",
                                                  "need_weights",
                                                  "attn_mask",
                                                  "average_attn_weights",
                                                  "is_causal" };

/* Returns an argument, given by position or name. Its kind is TN_VALUE_NONE if it is absent. */
static tn_value argument(const tn_pack *input, int which)
{
    static const tn_value none = { .kind = TN_VALUE_NONE };
    int64_t at = which < tn_pack_positional(input) ? which : tn_pack_find(input, arguments[which]);

    return at < 0 ? none : tn_pack_at(input, at);
}

static tn_status tensor_of(const tn_pack *input, int which, bool required, tn_tensor **out)
{
    tn_value value = argument(input, which);

    *out = TN_NONE;
    if (value.kind == TN_VALUE_TENSOR) {
        *out = value.as.tensor;
        return TN_OK;
    }
    if (value.kind == TN_VALUE_NONE)
        return required ? tn_fail(TN_ERR_TYPE, "MultiheadAttention: %s: missing; expected a tensor",
                                  arguments[which])
                        : TN_OK;
    return tn_fail(TN_ERR_TYPE, "MultiheadAttention: %s: wrong type, got %s; expected a tensor",
                   arguments[which], tn_value_kind_name(value.kind));
}

static bool truth_of(const tn_pack *input, int which, bool otherwise)
{
    tn_value value = argument(input, which);

    return value.kind == TN_VALUE_BOOL ? value.as.i != 0 : otherwise;
}

static tn_tensor *flat(tn_tensor *x)
{
    return x == TN_NONE ? x : tn_reshape(x, TN_SHAPE(-1));
}

/* Fails if the sizes are unknown: the printed form, from which the module was built, has none. */
static tn_status sizes_known(tn_module *self)
{
    const struct attention *s = tn_module_data(self);

    if (s->embed_dim != INT64_MIN)
        return TN_OK;
    if (s->num_heads == INT64_MIN)
        return tn_fail(
            TN_ERR_VALUE,
            "MultiheadAttention: num_heads: not known, because the printed form has none; "
            "expected it to be set with tn_module_option_set");
    if (tn_module_is_lazy(self, "in_proj_weight") || tn_module_child(self, "out_proj") == NULL)
        return tn_fail(
            TN_ERR_VALUE,
            "MultiheadAttention: embed_dim: not known, because the printed form has none; "
            "expected a state to be loaded first");
    return TN_OK;
}

static tn_status call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct attention *s = tn_module_data(self);
    tn_module *last = tn_module_child(self, "out_proj");
    tn_tensor *x[3], *padded, *mask, *y, *weights = NULL;
    bool batched, need = truth_of(input, NEED, true);
    double p = tn_module_is_training(self) ? s->dropout : 0;
    tn_status status = sizes_known(self);

    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = tensor_of(input, QUERY + i, true, &x[i]);
    if (status == TN_OK)
        status = tensor_of(input, PADDED, false, &padded);
    if (status == TN_OK)
        status = tensor_of(input, MASK, false, &mask);
    if (status != TN_OK || last == NULL)
        return status != TN_OK ? status : tn_error_last_code();
    if (truth_of(input, CAUSAL, false) && mask == TN_NONE)
        return tn_fail(TN_ERR_RUNTIME, "MultiheadAttention: Need attn_mask if specifying the "
                                       "is_causal hint.");
    batched = tn_tensor_ndim(x[QUERY]) == 3;
    for (int i = 0; i < 3; i++) {
        if (tn_tensor_ndim(x[i]) != (batched ? 3 : 2))
            return tn_fail(
                TN_ERR_RUNTIME,
                "MultiheadAttention: %s: wrong number of dimensions, got %d; expected query, key "
                "and value with three dimensions, or all with two",
                arguments[i], (int)tn_tensor_ndim(x[i]));
        x[i] = !batched ? tn_unsqueeze(x[i], 1) : s->batch_first ? tn_transpose(x[i], 0, 1) : x[i];
        if (x[i] == NULL)
            return tn_error_last_code();
    }
    if (!batched && padded != TN_NONE)
        padded = tn_unsqueeze(padded, 0);
    if (need) {
        tn_multi_head_attention_with_weights_options o =
            TN_MULTI_HEAD_ATTENTION_WITH_WEIGHTS_OPTIONS;

        o.dropout_p = p;
        o.add_zero_attn = s->add_zero_attn;
        o.average_attn_weights = truth_of(input, AVERAGE, true);
        status = tn_multi_head_attention_with_weights(
            x[QUERY], x[KEY], x[VALUE], tn_module_get(self, "in_proj_weight"),
            tn_module_get(self, "q_proj_weight"), tn_module_get(self, "k_proj_weight"),
            tn_module_get(self, "v_proj_weight"), tn_module_get(self, "in_proj_bias"),
            flat(tn_module_get(self, "bias_k")), flat(tn_module_get(self, "bias_v")),
            tn_module_get(last, "weight"), tn_module_get(last, "bias"), padded, mask, s->num_heads,
            &y, &weights, o.dropout_p, o.add_zero_attn, o.average_attn_weights);
        if (status != TN_OK)
            return status;
    } else {
        tn_multi_head_attention_options o = TN_MULTI_HEAD_ATTENTION_OPTIONS;

        o.dropout_p = p;
        o.add_zero_attn = s->add_zero_attn;
        y = tn_multi_head_attention(
            x[QUERY], x[KEY], x[VALUE], tn_module_get(self, "in_proj_weight"),
            tn_module_get(self, "q_proj_weight"), tn_module_get(self, "k_proj_weight"),
            tn_module_get(self, "v_proj_weight"), tn_module_get(self, "in_proj_bias"),
            flat(tn_module_get(self, "bias_k")), flat(tn_module_get(self, "bias_v")),
            tn_module_get(last, "weight"), tn_module_get(last, "bias"), padded, mask, s->num_heads,
            o.dropout_p, o.add_zero_attn);
    }
    y = !batched ? tn_select(y, 1, 0) : s->batch_first ? tn_transpose(y, 0, 1) : y;
    if (weights != NULL && !batched)
        weights = tn_select(weights, 0, 0);
    if (y == NULL || (need && weights == NULL))
        return tn_error_last_code();
    status = tn_pack_add(output, NULL, tn_value_tensor(y));
    return status == TN_OK && need ? tn_pack_add(output, NULL, tn_value_tensor(weights)) : status;
}

const tn_layer_def layer_multihead_attention = {
    TN_HEAD(tn_layer_def),
    .name = "MultiheadAttention",
    .help =
        "output, weights = module(query, key, value, key_padding_mask, need_weights, attn_mask, "
        "average_attn_weights, is_causal)",
    .options = options,
    .data_size = sizeof(struct attention),
    .version = 1,
    .build = build,
    .reset = reset,
    .call = call,
    .repr = layers_no_words,
    .load_state = load_state,
};
