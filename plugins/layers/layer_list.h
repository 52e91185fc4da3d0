/* SPDX-License-Identifier: MIT
 *
 * The list of all layers and initializations, ordered by file. plugin.c includes it twice, with
 * LAYER_ROW(id) and INIT_ROW(id) defined as a declaration and as an element of the table.
 *
 * A layer of one operator without options is not listed here: a line `layer Name` in the block of
 * the operator in sdk/operators/FAMILY.ops makes the layer, and its row in from_operators.h. */
/* clang-format off */
/* activation_with_options.c */
LAYER_ROW(relu) LAYER_ROW(leaky_relu) LAYER_ROW(elu) LAYER_ROW(celu) LAYER_ROW(gelu)
LAYER_ROW(hardtanh) LAYER_ROW(softshrink)
LAYER_ROW(hardshrink) LAYER_ROW(softplus) LAYER_ROW(threshold) LAYER_ROW(glu) LAYER_ROW(prelu)
LAYER_ROW(rrelu)
/* attention.c */
LAYER_ROW(multihead_attention)
/* container.c */
LAYER_ROW(sequential) LAYER_ROW(module_list) LAYER_ROW(module_dict) LAYER_ROW(parameter_list)
LAYER_ROW(parameter_dict) LAYER_ROW(residual)
/* conv.c */
LAYER_ROW(conv1d) LAYER_ROW(conv2d) LAYER_ROW(conv3d) LAYER_ROW(conv_transpose1d)
LAYER_ROW(conv_transpose2d)
LAYER_ROW(conv_transpose3d) LAYER_ROW(lazy_conv1d) LAYER_ROW(lazy_conv2d) LAYER_ROW(lazy_conv3d)
LAYER_ROW(lazy_conv_transpose1d) LAYER_ROW(lazy_conv_transpose2d) LAYER_ROW(lazy_conv_transpose3d)
/* distance.c */
LAYER_ROW(cosine_similarity) LAYER_ROW(pairwise_distance)
/* dropout.c */
LAYER_ROW(dropout) LAYER_ROW(dropout1d) LAYER_ROW(dropout2d) LAYER_ROW(dropout3d)
LAYER_ROW(alpha_dropout)
LAYER_ROW(feature_alpha_dropout) LAYER_ROW(stochastic_depth)
/* embedding.c */
LAYER_ROW(embedding) LAYER_ROW(embedding_bag)
/* fold.c */
LAYER_ROW(unfold) LAYER_ROW(fold)
/* linear.c */
LAYER_ROW(linear) LAYER_ROW(plain_linear) LAYER_ROW(lazy_linear) LAYER_ROW(bilinear)
LAYER_ROW(identity)
/* loss.c */
LAYER_ROW(mse_loss) LAYER_ROW(l1_loss) LAYER_ROW(smooth_l1_loss) LAYER_ROW(huber_loss)
LAYER_ROW(bce_loss)
LAYER_ROW(bce_with_logits_loss) LAYER_ROW(kl_div_loss) LAYER_ROW(poisson_nll_loss)
LAYER_ROW(gaussian_nll_loss)
LAYER_ROW(hinge_embedding_loss) LAYER_ROW(margin_ranking_loss) LAYER_ROW(multi_margin_loss)
LAYER_ROW(multilabel_margin_loss) LAYER_ROW(multilabel_soft_margin_loss) LAYER_ROW(soft_margin_loss)
LAYER_ROW(triplet_margin_loss) LAYER_ROW(cosine_embedding_loss) LAYER_ROW(ctc_loss)
/* loss_adaptive.c */
LAYER_ROW(adaptive_log_softmax)
/* loss_cross_entropy.c */
LAYER_ROW(cross_entropy_loss) LAYER_ROW(nll_loss) LAYER_ROW(linear_cross_entropy)
/* loss_triplet.c */
LAYER_ROW(triplet_with_distance)
/* norm.c */
LAYER_ROW(batch_norm1d) LAYER_ROW(batch_norm2d) LAYER_ROW(batch_norm3d) LAYER_ROW(instance_norm1d)
LAYER_ROW(instance_norm2d) LAYER_ROW(instance_norm3d) LAYER_ROW(group_norm)
LAYER_ROW(local_response_norm)
LAYER_ROW(lazy_batch_norm1d) LAYER_ROW(lazy_batch_norm2d) LAYER_ROW(lazy_batch_norm3d)
LAYER_ROW(lazy_instance_norm1d) LAYER_ROW(lazy_instance_norm2d) LAYER_ROW(lazy_instance_norm3d)
/* norm_last.c */
LAYER_ROW(layer_norm) LAYER_ROW(layer_norm2d) LAYER_ROW(rms_norm)
/* pad.c */
LAYER_ROW(zero_pad1d) LAYER_ROW(constant_pad1d) LAYER_ROW(reflection_pad1d)
LAYER_ROW(replication_pad1d)
LAYER_ROW(circular_pad1d) LAYER_ROW(zero_pad2d) LAYER_ROW(constant_pad2d)
LAYER_ROW(reflection_pad2d)
LAYER_ROW(replication_pad2d) LAYER_ROW(circular_pad2d) LAYER_ROW(zero_pad3d)
LAYER_ROW(constant_pad3d)
LAYER_ROW(reflection_pad3d) LAYER_ROW(replication_pad3d) LAYER_ROW(circular_pad3d)
/* parametrize.c, parametrize_lora.c, parametrize_orthogonal.c, parametrize_spectral.c */
LAYER_ROW(symmetric) LAYER_ROW(weight_norm) LAYER_ROW(lora) LAYER_ROW(orthogonal)
LAYER_ROW(spectral_norm)
/* pool.c */
LAYER_ROW(max_pool1d) LAYER_ROW(max_pool2d) LAYER_ROW(max_pool3d) LAYER_ROW(avg_pool1d)
LAYER_ROW(avg_pool2d)
LAYER_ROW(avg_pool3d) LAYER_ROW(adaptive_avg_pool1d) LAYER_ROW(adaptive_avg_pool2d)
LAYER_ROW(adaptive_avg_pool3d)
LAYER_ROW(adaptive_max_pool1d) LAYER_ROW(adaptive_max_pool2d) LAYER_ROW(adaptive_max_pool3d)
LAYER_ROW(lp_pool1d)
LAYER_ROW(lp_pool2d) LAYER_ROW(lp_pool3d)
/* pool_fractional.c */
LAYER_ROW(fractional_max_pool2d) LAYER_ROW(fractional_max_pool3d)
/* pool_unpool.c */
LAYER_ROW(max_unpool1d) LAYER_ROW(max_unpool2d) LAYER_ROW(max_unpool3d)
/* resample.c */
LAYER_ROW(upsample) LAYER_ROW(upsampling_nearest2d) LAYER_ROW(upsampling_bilinear2d)
LAYER_ROW(pixel_shuffle)
LAYER_ROW(pixel_unshuffle) LAYER_ROW(channel_shuffle)
/* rnn.c */
LAYER_ROW(rnn) LAYER_ROW(lstm) LAYER_ROW(gru) LAYER_ROW(rnn_cell) LAYER_ROW(lstm_cell)
LAYER_ROW(gru_cell)
/* shape.c */
LAYER_ROW(flatten) LAYER_ROW(unflatten) LAYER_ROW(permute)
/* softmax.c */
LAYER_ROW(softmax) LAYER_ROW(log_softmax) LAYER_ROW(softmin) LAYER_ROW(softmax2d)
/* transformer.c */
LAYER_ROW(transformer_encoder_layer) LAYER_ROW(transformer_decoder_layer)
/* transformer_stack.c */
LAYER_ROW(transformer_encoder) LAYER_ROW(transformer_decoder) LAYER_ROW(transformer)
/* from_operators.h, which is generated from the lines `layer` of the .ops files */
LAYERS_FROM_OPERATORS(LAYER_ROW)
/* init.c */
INIT_ROW(zeros) INIT_ROW(ones) INIT_ROW(constant) INIT_ROW(uniform) INIT_ROW(normal)
INIT_ROW(kaiming_uniform)
INIT_ROW(kaiming_normal) INIT_ROW(xavier_uniform) INIT_ROW(xavier_normal)
/* init_matrix.c */
INIT_ROW(trunc_normal) INIT_ROW(eye) INIT_ROW(dirac) INIT_ROW(orthogonal) INIT_ROW(sparse)
