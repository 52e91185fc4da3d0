# SPDX-License-Identifier: MIT
#
# The rows of pytorch_operators.py for networks; the grammar is described there.

# OLD stands for parameters that PyTorch only keeps for old programs.
NETWORKS = """
# losses
mse_loss                     mse_loss input:T target:T OLD reduction weight:z
l1_loss                      l1_loss input:T target:T OLD reduction weight:z
smooth_l1_loss               smooth_l1_loss input:T target:T OLD reduction beta
huber_loss                   huber_loss input:T target:T reduction delta weight:z
binary_cross_entropy         binary_cross_entropy input:T target:T weight:O OLD reduction
binary_cross_entropy_with_logits
                             binary_cross_entropy_with_logits input:T target:T weight:O OLD
                             reduction pos_weight:O
kl_div                       kl_div input:T target:T OLD reduction log_target
poisson_nll_loss             poisson_nll_loss input:T target:T log_input full size_average:z eps
                             reduce:z reduction
gaussian_nll_loss            gaussian_nll_loss input:T target:T var:T full eps reduction
hinge_embedding_loss         hinge_embedding_loss input:T target:T margin OLD reduction
margin_ranking_loss          margin_ranking_loss input1:T input2:T target:T margin OLD reduction
multi_margin_loss            multi_margin_loss input:T target:T p margin weight:O OLD reduction
multilabel_margin_loss       multilabel_margin_loss input:T target:T OLD reduction
multilabel_soft_margin_loss  multilabel_soft_margin_loss input:T target:T weight:O OLD reduction
soft_margin_loss             soft_margin_loss input:T target:T OLD reduction
triplet_margin_loss          triplet_margin_loss anchor:T positive:T negative:T margin p eps swap
                             OLD reduction
cosine_embedding_loss        cosine_embedding_loss input1:T input2:T target:T margin OLD reduction
nll_loss                     nll_loss_weighted input:T target:T weight:O size_average:z ignore_index
                             reduce:z reduction
cross_entropy                cross_entropy_weighted input:T target:T weight:O size_average:z
                             ignore_index reduce:z reduction label_smoothing

# normalization and distances
layer_norm                   layer_norm input:T normalized_shape:i weight:O bias:O eps
group_norm                   group_norm input:T num_groups weight:O bias:O eps
rms_norm                     rms_norm input:T normalized_shape:i weight:O eps
local_response_norm          local_response_norm input:T size=neighbours alpha beta k
normalize                    normalize input:T p dim eps out:z
cosine_similarity            cosine_similarity x1:T x2:T dim eps
pairwise_distance            pairwise_distance x1:T x2:T p eps keepdim
cdist                        cdist x1:T x2:T p compute_mode:x
"""

# In 1, 2 and 3 dimensions, for which # stands.
IN_DIMS = """
conv#d               conv#d input:T weight:T bias:O stride:# padding:# dilation:# groups
conv_transpose#d     conv_transpose#d input:T weight:T bias:O stride:# padding:# output_padding:#
                     groups dilation:#
max_pool#d           max_pool#d input:T kernel_size:#=kernel stride:# padding:# dilation:# ceil_mode
                     return_indices:z
avg_pool#d           avg_pool#d input:T kernel_size:#=kernel stride:# padding:# ceil_mode
                     count_include_pad divisor_override
adaptive_avg_pool#d  adaptive_avg_pool#d input:T output_size:#
adaptive_max_pool#d  adaptive_max_pool#d input:T output_size:# return_indices:z
"""
