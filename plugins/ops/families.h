/* SPDX-License-Identifier: MIT
 *
 * The operators of the other families beside the first ones, as lists. */
#ifndef TN_OPS_FAMILIES_H
#define TN_OPS_FAMILIES_H

/* clang-format off */
#define TN__REDUCTION_OPS(X) \
    X(prod) X(amin) X(argmin) X(max_dim) X(min_dim) X(var) X(std) X(norm) X(all) X(any) \
    X(logsumexp) X(cumsum) X(cumprod) X(sort) X(topk)
#define TN__INDEX_OPS(X) \
    X(gather) X(scatter) X(scatter_add) X(index_select) X(index_add) X(embedding) X(nonzero) \
    X(masked_select) X(index_put) X(embedding_bag)
#define TN__SHAPE_OPS(X) \
    X(slice) X(diagonal) X(unfold) X(cat) X(stack) X(repeat) X(flip) X(roll) X(pad) X(im2col) \
    X(fold)
#define TN__CREATION_OPS(X) X(arange) X(linspace) X(eye) X(one_hot) X(tril) X(triu) X(clone) X(full)
#define TN__PRODUCT_OPS(X) X(linear_activation) X(outer) X(dot) X(mv) X(addmm) X(baddbmm) X(bilinear) X(einsum)
#define TN__RANDOM_OPS(X) X(bernoulli) X(randint) X(philox_permutation) X(randperm) X(truncated_normal)
#define TN__CONVOLUTION_OPS(X) \
    X(convolution) X(convolution_grad_input) X(convolution_grad_weight) X(conv1d) X(conv2d) \
    X(conv3d) X(conv_transpose1d) X(conv_transpose2d) X(conv_transpose3d)
#define TN__POOLING_OPS(X) \
    X(max_pool) X(max_pool_grad) X(avg_pool) X(avg_pool_grad) X(max_pool1d) \
    X(max_pool1d_with_indices) X(adaptive_max_pool1d) X(adaptive_max_pool1d_with_indices) \
    X(avg_pool1d) X(adaptive_avg_pool1d) X(lp_pool1d) X(max_unpool1d) X(max_pool2d) \
    X(max_pool2d_with_indices) X(adaptive_max_pool2d) X(adaptive_max_pool2d_with_indices) \
    X(avg_pool2d) X(adaptive_avg_pool2d) X(lp_pool2d) X(max_unpool2d) X(max_pool3d) \
    X(max_pool3d_with_indices) X(adaptive_max_pool3d) X(adaptive_max_pool3d_with_indices) \
    X(avg_pool3d) X(adaptive_avg_pool3d) X(lp_pool3d) X(max_unpool3d)
#define TN__NORMALIZATION_OPS(X) \
    X(standardize) X(standardize_grad) X(standardize_relu) X(standardize_relu_grad) X(batch_norm) \
    X(batch_norm_relu) X(instance_norm) X(layer_norm) X(group_norm) X(rms_norm) X(local_response_norm) X(normalize) X(cosine_similarity) X(pairwise_distance) \
    X(cdist)
#define TN__LOSS_OPS(X) \
    X(mse_loss) X(l1_loss) X(smooth_l1_loss) X(huber_loss) X(binary_cross_entropy_each) \
    X(binary_cross_entropy) X(binary_cross_entropy_with_logits) X(kl_div) X(poisson_nll_loss) \
    X(gaussian_nll_loss) X(hinge_embedding_loss) X(margin_ranking_loss) X(multi_margin_loss) \
    X(multilabel_margin_loss) X(multilabel_soft_margin_loss) X(soft_margin_loss) \
    X(triplet_margin_loss) X(cosine_embedding_loss) X(cross_entropy_weighted) \
    X(nll_loss_weighted) X(ctc_loss)
#define TN__DROPOUT_OPS(X) \
    X(dropout) X(feature_dropout) X(alpha_dropout) X(feature_alpha_dropout) X(gumbel_softmax)
#define TN__RESAMPLE_OPS(X) \
    X(interpolate) X(pixel_shuffle) X(pixel_unshuffle) X(channel_shuffle) X(affine_grid) \
    X(grid_sample) X(fractional_max_pool2d) X(fractional_max_pool3d)
#define TN__ATTENTION_OPS(X) \
    X(attend) X(attend_grad) X(scaled_dot_product_attention) X(multi_head_attention) \
    X(multi_head_attention_with_weights) \
    X(rnn_sequence) X(lstm_sequence) X(gru_sequence) X(rnn_tanh_cell) X(rnn_relu_cell) X(lstm_cell) X(gru_cell)
#define TN__STEP_OPS(X) X(sgd_step) X(adam_step) X(total_norm)
#define TN__FAMILY_OPS(X) \
    TN__REDUCTION_OPS(X) TN__INDEX_OPS(X) TN__SHAPE_OPS(X) TN__CREATION_OPS(X) TN__PRODUCT_OPS(X) \
    TN__RANDOM_OPS(X) TN__CONVOLUTION_OPS(X) TN__POOLING_OPS(X) TN__NORMALIZATION_OPS(X) \
    TN__LOSS_OPS(X) TN__DROPOUT_OPS(X) TN__RESAMPLE_OPS(X) TN__ATTENTION_OPS(X) TN__STEP_OPS(X)
/* clang-format on */

#define TN__DECLARE_OP(name) extern const tn_op_def tn__op_##name;
TN__FAMILY_OPS(TN__DECLARE_OP)
#undef TN__DECLARE_OP

#endif
