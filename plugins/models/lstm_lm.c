/* SPDX-License-Identifier: MIT
 *
 * A language model with an LSTM, with the names, the order and the initialization of the RNNModel
 * of PyTorch's example word_language_model. It returns logits. */
#include "models.h"

struct lm {
    int64_t vocab_size;
    int64_t embedding_dim;
    int64_t hidden_size;
    int64_t num_layers;
    double dropout;
    bool tie_weights;
};

static const tn_option options[] = {
    TN_OPTION_INT_REQUIRED(struct lm, vocab_size, "number of different tokens"),
    TN_OPTION_INT(struct lm, embedding_dim, "200", "features of a token"),
    TN_OPTION_INT(struct lm, hidden_size, "200", "features of the state"),
    TN_OPTION_INT(struct lm, num_layers, "2", "layers of the LSTM"),
    TN_OPTION_FLOAT(struct lm, dropout, "0.2", "dropout probability, in training"),
    TN_OPTION_BOOL(struct lm, tie_weights, "False",
                   "the last layer has the weight of the table; needs embedding_dim = hidden_size"),
    TN_OPTION_END
};

static tn_status check(tn_module *self)
{
    const struct lm *s = tn_module_data(self);
    tn_status status = models_check_size(self, "vocab_size", s->vocab_size, 1);

    if (status == TN_OK)
        status = models_check_size(self, "embedding_dim", s->embedding_dim, 1);
    if (status == TN_OK)
        status = models_check_size(self, "hidden_size", s->hidden_size, 1);
    if (status == TN_OK)
        status = models_check_count(self, "num_layers", s->num_layers);
    if (status == TN_OK)
        status = models_check_share(self, "dropout", s->dropout);
    if (status == TN_OK && s->tie_weights && s->embedding_dim != s->hidden_size)
        status = tn_fail(
            TN_ERR_VALUE,
            "%s: tie_weights: embedding_dim and hidden_size differ, got %lld and %lld; "
            "expected equal sizes",
            tn_module_type(self), (long long)s->embedding_dim, (long long)s->hidden_size);
    return status;
}

static tn_status build(tn_module *self)
{
    const struct lm *s = tn_module_data(self);
    tn_tensor *table;
    tn_status status = check(self);

    if (status == TN_OK)
        status = tn_module_add_children(
            self,
            "drop=Dropout(%g), encoder=Embedding(%lld, %lld), "
            "rnn=LSTM(%lld, %lld, num_layers=%lld, dropout=%g, batch_first=True), "
            "decoder=Linear(%lld, %lld)",
            s->dropout, (long long)s->vocab_size, (long long)s->embedding_dim,
            (long long)s->embedding_dim, (long long)s->hidden_size, (long long)s->num_layers,
            s->num_layers > 1 ? s->dropout : 0.0, (long long)s->hidden_size,
            (long long)s->vocab_size);
    if (status != TN_OK || !s->tie_weights)
        return status;
    table = tn_module_find_tensor(self, "encoder.weight");
    return table != NULL ? tn_module_set(tn_module_child(self, "decoder"), "weight", table)
                         : tn_error_last_code();
}

static tn_status reset(tn_module *self)
{
    static const char range[] = "uniform(a=-0.1, b=0.1)";
    tn_status status = models_init_one(self, "encoder.weight", range);

    if (status == TN_OK)
        status = models_init_one(self, "decoder.weight", range);
    return status == TN_OK ? models_init_one(self, "decoder.bias", "zeros()") : status;
}

/* Calls the LSTM with x and the states of the call, and adds its results to `output`. */
static tn_status recur(tn_module *self, const tn_pack *input, tn_tensor *x, tn_pack *output)
{
    tn_pack *in = tn_pack_new();
    tn_status status = in == NULL || x == NULL ? tn_error_last_code()
                                               : tn_pack_add(in, NULL, tn_value_tensor(x));

    for (int64_t i = 1; i < tn_pack_count(input) && status == TN_OK; i++)
        status = tn_pack_add(in, tn_pack_name(input, i), tn_pack_at(input, i));
    if (status == TN_OK)
        status = tn_module_call_pack(tn_module_child(self, "rnn"), in, output);
    tn_pack_drop(in);
    return status;
}

/* Returns logits, and the states if the call has an argument for them, which may be None. */
static tn_status call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_pack *out;
    tn_tensor *x, *y = NULL;
    tn_status status;

    if (tn_pack_positional(input) < 1 || tn_pack_at(input, 0).kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE,
                       "%s: input: missing, or not a tensor; expected a tensor of tokens",
                       tn_module_type(self));
    x = tn_pack_tensor(input, 0);
    status = models_check_tokens(self, x);
    if (status != TN_OK)
        return status;
    x = tn_module_call_chain(self, "encoder drop", x);
    out = tn_pack_new();
    status = out != NULL ? recur(self, input, x, out) : tn_error_last_code();
    if (status == TN_OK)
        y = tn_module_call_chain(self, "drop decoder", tn_pack_tensor(out, 0));
    if (status == TN_OK)
        status = y != NULL ? tn_pack_add(output, NULL, tn_value_tensor(y)) : tn_error_last_code();
    if (tn_pack_count(input) > 1)
        for (int64_t i = 1; i < tn_pack_count(out) && status == TN_OK; i++)
            status = tn_pack_add(output, NULL, tn_pack_at(out, i));
    tn_pack_drop(out);
    return status;
}

MODEL(lstm_lm, "lstm_lm", "RNNModel",
      .help = "the next token: logits [N, L, vocab_size] of tokens [N, L]; with states: logits, "
              "(h_n, c_n) = module(input, (h_0, c_0) or None)",
      .options = options, .data_size = sizeof(struct lm), .build = build, .reset = reset,
      .call = call, .repr = models_no_words);
