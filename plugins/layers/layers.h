/* SPDX-License-Identifier: MIT
 *
 * The contributions of this plugin, for its table in plugin.c. */
#ifndef TENON_PLUGIN_LAYERS_H
#define TENON_PLUGIN_LAYERS_H

#include <tenon/plugin.h>

#include <string.h>

#include "schema.h"

/* X(name) for every layer and every initialization, by file. */
/* clang-format off */
#define LAYERS_ALL(X) \
    /* activation.c */ X(relu) X(leaky_relu) X(elu) X(celu) X(gelu) X(hardtanh) X(softshrink) \
    X(hardshrink) X(softplus) X(threshold) X(glu) X(prelu) X(rrelu) \
    /* attention.c */ X(multihead_attention) \
    /* container.c */ X(sequential) X(module_list) X(module_dict) X(parameter_list) \
    X(parameter_dict) X(residual) \
    /* conv.c */ X(conv1d) X(conv2d) X(conv3d) X(conv_transpose1d) X(conv_transpose2d) \
    X(conv_transpose3d) X(lazy_conv1d) X(lazy_conv2d) X(lazy_conv3d) X(lazy_conv_transpose1d) \
    X(lazy_conv_transpose2d) X(lazy_conv_transpose3d) \
    /* distance.c */ X(cosine_similarity) X(pairwise_distance) \
    /* dropout.c */ X(dropout) X(dropout1d) X(dropout2d) X(dropout3d) X(alpha_dropout) \
    X(feature_alpha_dropout) \
    /* embedding.c */ X(embedding) X(embedding_bag) \
    /* fold.c */ X(unfold) X(fold) \
    /* linear.c */ X(linear) X(plain_linear) X(lazy_linear) X(bilinear) X(identity) \
    /* loss.c */ X(mse_loss) X(l1_loss) X(smooth_l1_loss) X(huber_loss) X(bce_loss) \
    X(bce_with_logits_loss) X(kl_div_loss) X(poisson_nll_loss) X(gaussian_nll_loss) \
    X(hinge_embedding_loss) X(margin_ranking_loss) X(multi_margin_loss) X(multilabel_margin_loss) \
    X(multilabel_soft_margin_loss) X(soft_margin_loss) X(triplet_margin_loss) \
    X(cosine_embedding_loss) X(ctc_loss) \
    /* loss_adaptive.c */ X(adaptive_log_softmax) \
    /* loss_cross_entropy.c */ X(cross_entropy_loss) X(nll_loss) X(linear_cross_entropy) \
    /* loss_triplet.c */ X(triplet_with_distance) \
    /* norm.c */ X(batch_norm1d) X(batch_norm2d) X(batch_norm3d) X(instance_norm1d) \
    X(instance_norm2d) X(instance_norm3d) X(layer_norm) X(group_norm) X(rms_norm) \
    X(local_response_norm) X(lazy_batch_norm1d) X(lazy_batch_norm2d) X(lazy_batch_norm3d) \
    X(lazy_instance_norm1d) X(lazy_instance_norm2d) X(lazy_instance_norm3d) \
    /* pad.c */ X(zero_pad1d) X(constant_pad1d) X(reflection_pad1d) X(replication_pad1d) \
    X(circular_pad1d) X(zero_pad2d) X(constant_pad2d) X(reflection_pad2d) X(replication_pad2d) \
    X(circular_pad2d) X(zero_pad3d) X(constant_pad3d) X(reflection_pad3d) X(replication_pad3d) \
    X(circular_pad3d) \
    /* pool.c */ X(max_pool1d) X(max_pool2d) X(max_pool3d) X(avg_pool1d) X(avg_pool2d) \
    X(avg_pool3d) X(adaptive_avg_pool1d) X(adaptive_avg_pool2d) X(adaptive_avg_pool3d) \
    X(adaptive_max_pool1d) X(adaptive_max_pool2d) X(adaptive_max_pool3d) X(lp_pool1d) X(lp_pool2d) \
    X(lp_pool3d) \
    /* pool_fractional.c */ X(fractional_max_pool2d) X(fractional_max_pool3d) \
    /* pool_unpool.c */ X(max_unpool1d) X(max_unpool2d) X(max_unpool3d) \
    /* resample.c */ X(upsample) X(upsampling_nearest2d) X(upsampling_bilinear2d) X(pixel_shuffle) \
    X(pixel_unshuffle) X(channel_shuffle) \
    /* rnn.c */ X(rnn) X(lstm) X(gru) X(rnn_cell) X(lstm_cell) X(gru_cell) \
    /* shape.c */ X(flatten) X(unflatten) \
    /* softmax.c */ X(softmax) X(log_softmax) X(softmin) X(softmax2d) \
    /* transformer.c */ X(transformer_encoder_layer) X(transformer_decoder_layer) \
    /* transformer_stack.c */ X(transformer_encoder) X(transformer_decoder) X(transformer) \
    /* schema.c */ LAYERS_SCHEMA(X)
#define INITS_ALL(X) \
    /* init.c */ X(zeros) X(ones) X(constant) X(uniform) X(normal) X(kaiming_uniform) \
    X(kaiming_normal) X(xavier_uniform) X(xavier_normal) \
    /* init_matrix.c */ X(trunc_normal) X(eye) X(dirac) X(orthogonal) X(sparse)
/* clang-format on */
#define LAYERS_DECLARE(name) TN_HIDDEN extern const tn_layer_def layer_##name;
#define INITS_DECLARE(name) TN_HIDDEN extern const tn_init_def init_##name;
LAYERS_ALL(LAYERS_DECLARE)
INITS_ALL(INITS_DECLARE)
#undef LAYERS_DECLARE
#undef INITS_DECLARE

/* The descriptor of a layer: LAYER(linear, "Linear", .help = ..., ...). */
#define LAYER(id, name_, ...)                                                                      \
    const tn_layer_def layer_##id = { TN_HEAD(tn_layer_def), .name = name_, .version = 1,          \
                                      __VA_ARGS__ }

/* How many dimensions a layer such as "Conv2d" works on: the digit in its name. */
static inline int layers_dims(const tn_module *self)
{
    const char *type = tn_module_type(self);

    return type[strlen(type) - 2] - '0';
}

/* parameters.c: size * by, for the shape of one; an error if that exceeds the range of sizes. */
TN_HIDDEN tn_status layers_times(tn_module *self, const char *option, int64_t size, int64_t by,
                                 int64_t *out);
/* A parameter without values yet, or, where it is not wanted, its name alone. */
TN_HIDDEN tn_status layers_add(tn_module *self, const char *name, bool wanted, tn_ints shape);
/* The values of a parameter from an init, a number everywhere; nothing where the slot is empty. */
TN_HIDDEN tn_status layers_init(tn_module *self, const char *name, const char *init);
TN_HIDDEN tn_status layers_fill(tn_module *self, const char *name, double value);
TN_HIDDEN tn_status layers_spread(tn_module *self, const char *name, double bound);

/* loss.c: TN_OK where `word` is none, mean or sum. */
TN_HIDDEN tn_status layers_check_reduction(tn_module *self, const char *word);

/* init.c: the factor that keeps the variance after a nonlinearity: a number, its name, or the name
 * and its parameter. */
#define LAYERS_GAIN_HELP "factor, or the nonlinearity that follows: relu, tanh, ('leaky_relu', 0.2)"
TN_HIDDEN tn_status layers_gain(const tn_value *value, double *gain);

/* arguments.c: True or False, as specs have them. */
TN_HIDDEN const char *layers_truth(bool value);
/* A child from a spec that is formatted first / from a spec or module that an option holds. */
TN_HIDDEN tn_status layers_child(tn_module *self, const char *name, const char *format, ...)
    TN_ATTR(format(printf, 3, 4));
TN_HIDDEN tn_status layers_child_value(tn_module *self, const char *name, const tn_value *value);
/* The module that an option holds; the caller's. */
TN_HIDDEN tn_module *layers_module(const tn_value *value);
/* An empty repr, as PyTorch has it. */
TN_HIDDEN int64_t layers_no_words(tn_module *self, char *out, size_t size);
/* The values of a call by place or name, `count` of them; kind TN_VALUE_NONE where one was not
 * given. Then one of them as a tensor, which must be present, or as a bool, false if absent. */
TN_HIDDEN tn_status layers_take(tn_module *self, const tn_pack *input, const char *const *names,
                                int64_t count, tn_value *values);
TN_HIDDEN tn_status layers_tensor_of(tn_module *self, const char *name, const tn_value *value,
                                     tn_tensor **out);
TN_HIDDEN tn_status layers_flag_of(tn_module *self, const char *name, const tn_value *value,
                                   bool *out);

/* Calls a child with these tensors and those of the named values that were given; its first result.
 * NULL inputs give NULL without a new error. */
TN_HIDDEN tn_tensor *layers_call(tn_module *part, tn_tensor *const *in, int64_t n_in,
                                 const char *const *names, const tn_value *values, int64_t count);
/* One more result of a call; NULL is the error that made it so. */
TN_HIDDEN tn_status layers_give(tn_pack *output, tn_tensor *y);

/* What a repr writes: pieces one after the other; `used` counts what the whole needs. */
typedef struct layers_text {
    char *out;
    size_t size;
    int64_t used;
} layers_text;
TN_HIDDEN void layers_put(layers_text *text, const char *format, ...);
/* 3 or (3, 4), as PyTorch prints what it was given; `dims` more than 0: always that many, in
 * parentheses. */
TN_HIDDEN void layers_put_row(layers_text *text, tn_ints row, int64_t dims);

/* The status of an operator that returned a tensor or NULL. */
static inline tn_status status_of(const tn_tensor *result)
{
    return result != NULL ? TN_OK : tn_error_last_code();
}

#endif
