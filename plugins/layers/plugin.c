/* SPDX-License-Identifier: MIT
 *
 * The standard layers and initializations: the list of them, and the plugin. */
#include "layers.h"

#include "schema.h"

/* X(id) for every layer and every initialization, by file. */
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
#define DECLARE_LAYER(name) TN_HIDDEN extern const tn_layer_def layer_##name;
#define DECLARE_INIT(name) TN_HIDDEN extern const tn_init_def init_##name;
LAYERS_ALL(DECLARE_LAYER)
INITS_ALL(DECLARE_INIT)
#undef DECLARE_LAYER
#undef DECLARE_INIT

#define LAYER_ROW(name) &layer_##name,
#define INIT_ROW(name) &init_##name,
static const void *const contributions[] = { LAYERS_ALL(LAYER_ROW) INITS_ALL(INIT_ROW) };

static const tn_plugin layers = {
    TN_HEAD(tn_plugin),
    .id = "tenon.layers",
    .version = "0.1.0",
    .help = "standard layers and initializations",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(layers);
