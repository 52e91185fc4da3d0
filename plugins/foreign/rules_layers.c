/* SPDX-License-Identifier: MIT
 *
 * The rules that are texts (rules.h describes them): functions of layers, losses, and Fourier
 * transforms. */
#include "rules.h"

const tn_rule_def rules_layers[] = {
    /* activations */
    { "aten.celu(self, alpha=1.0)", .text = "celu(self, alpha=alpha)" },
    { "aten.gelu(self, approximate='none')", .text = "gelu(self, approximate=approximate)" },
    { "aten.glu(self, dim=-1)", .text = "glu(self, dim=dim)" },
    { "aten.hardshrink(self, lambd=0.5)", .text = "hardshrink(self, lambd=lambd)" },
    { "aten.hardsigmoid(self)", .text = "hardsigmoid(self)" },
    { "aten.hardswish(self)", .text = "hardswish(self)" },
    { "aten.hardtanh(self, min_val=-1, max_val=1)",
      .text = "hardtanh(self, min_val=min_val, max_val=max_val)" },
    { "aten.leaky_relu(self, negative_slope=0.01)",
      .text = "leaky_relu(self, negative_slope=negative_slope)" },
    { "aten.log_sigmoid(self)", .text = "logsigmoid(self)" },
    { "aten.mish(self)", .text = "mish(self)" },
    { "aten.prelu(self, weight)", .text = "prelu(self, weight)" },
    { "aten.relu(self)", .text = "relu(self)" },
    { "aten.relu6(self)", .text = "relu6(self)" },
    { "aten.selu(self)", .text = "selu(self)" },
    { "aten.sigmoid(self)", .text = "sigmoid(self)" },
    { "aten.silu(self)", .text = "silu(self)" },
    { "aten.softplus(self, beta=1, threshold=20)",
      .text = "softplus(self, beta=beta, threshold=threshold)" },
    { "aten.softshrink(self, lambd=0.5)", .text = "softshrink(self, lambd=lambd)" },
    { "aten.threshold(self, threshold, value)",
      .text = "threshold(self, threshold=threshold, value=value)" },

    /* products with weights, convolutions */
    { "aten.linear(input, weight, bias=None)", .text = "linear(input, weight, bias)" },
    { "aten.conv1d.default(input, weight, bias=None, stride=[], padding=[], dilation=[], "
      "groups=1)",
      .text = "conv1d(input, weight, bias, stride=stride, padding=padding, dilation=dilation, "
              "groups=groups)" },
    { "aten.conv1d.padding(input, weight, bias=None, stride=[], padding='valid', dilation=[], "
      "groups=1)",
      .text = "conv1d(input, weight, bias, stride=stride, auto_padding=padding, dilation=dilation, "
              "groups=groups)" },
    { "aten.conv2d.default(input, weight, bias=None, stride=[], padding=[], dilation=[], "
      "groups=1)",
      .text = "conv2d(input, weight, bias, stride=stride, padding=padding, dilation=dilation, "
              "groups=groups)" },
    { "aten.conv2d.padding(input, weight, bias=None, stride=[], padding='valid', dilation=[], "
      "groups=1)",
      .text = "conv2d(input, weight, bias, stride=stride, auto_padding=padding, dilation=dilation, "
              "groups=groups)" },
    { "aten.conv3d.default(input, weight, bias=None, stride=[], padding=[], dilation=[], "
      "groups=1)",
      .text = "conv3d(input, weight, bias, stride=stride, padding=padding, dilation=dilation, "
              "groups=groups)" },
    { "aten.conv3d.padding(input, weight, bias=None, stride=[], padding='valid', dilation=[], "
      "groups=1)",
      .text = "conv3d(input, weight, bias, stride=stride, auto_padding=padding, dilation=dilation, "
              "groups=groups)" },
    { "aten.conv_transpose1d(input, weight, bias=None, stride=[], padding=[], output_padding=[], "
      "groups=1, dilation=[])",
      .text = "conv_transpose1d(input, weight, bias, stride=stride, padding=padding, "
              "output_padding=output_padding, groups=groups, dilation=dilation)" },
    { "aten.conv_transpose2d(input, weight, bias=None, stride=[], padding=[], output_padding=[], "
      "groups=1, dilation=[])",
      .text = "conv_transpose2d(input, weight, bias, stride=stride, padding=padding, "
              "output_padding=output_padding, groups=groups, dilation=dilation)" },
    { "aten.conv_transpose3d(input, weight, bias=None, stride=[], padding=[], output_padding=[], "
      "groups=1, dilation=[])",
      .text = "conv_transpose3d(input, weight, bias, stride=stride, padding=padding, "
              "output_padding=output_padding, groups=groups, dilation=dilation)" },

    /* normalization */
    { "aten.layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, "
      "cudnn_enable=*)",
      .text = "layer_norm(input, weight, bias, normalized_shape=normalized_shape, eps=eps)" },
    { "aten.group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=*)",
      .text = "group_norm(input, weight, bias, num_groups=num_groups, eps=eps)" },
    { "aten.rms_norm(input, normalized_shape, weight=None, eps=None)",
      .text = "rms_norm(input, weight, normalized_shape=normalized_shape, eps=eps)" },

    /* pooling and resampling */
    { "aten.adaptive_avg_pool1d(self, output_size)",
      .text = "adaptive_avg_pool1d(self, output_size=output_size)" },
    { "aten.adaptive_avg_pool2d(self, output_size)",
      .text = "adaptive_avg_pool2d(self, output_size=output_size)" },
    { "aten.adaptive_avg_pool3d(self, output_size)",
      .text = "adaptive_avg_pool3d(self, output_size=output_size)" },
    { "aten._adaptive_avg_pool2d(self, output_size)",
      .text = "adaptive_avg_pool2d(self, output_size=output_size)" },
    { "aten._adaptive_avg_pool3d(self, output_size)",
      .text = "adaptive_avg_pool3d(self, output_size=output_size)" },
    { "aten.adaptive_max_pool1d(self, output_size)",
      .text = "adaptive_max_pool1d_with_indices(self, output_size=output_size)" },
    { "aten.adaptive_max_pool2d(self, output_size)",
      .text = "adaptive_max_pool2d_with_indices(self, output_size=output_size)" },
    { "aten.adaptive_max_pool3d(self, output_size)",
      .text = "adaptive_max_pool3d_with_indices(self, output_size=output_size)" },
    { "aten.affine_grid_generator(theta, size, align_corners)",
      .text = "affine_grid(theta, output_size=size, align_corners=align_corners)" },
    { "aten.avg_pool1d(self, kernel_size, stride=[], padding=[], ceil_mode=False, "
      "count_include_pad=True)",
      .text = "avg_pool1d(self, kernel=kernel_size, stride=stride, padding=padding, "
              "ceil_mode=ceil_mode, "
              "count_include_pad=count_include_pad)" },
    { "aten.avg_pool2d(self, kernel_size, stride=[], padding=[], ceil_mode=False, "
      "count_include_pad=True, divisor_override=None)",
      .text = "avg_pool2d(self, kernel=kernel_size, stride=stride, padding=padding, "
              "ceil_mode=ceil_mode, "
              "count_include_pad=count_include_pad, divisor_override=divisor_override)" },
    { "aten.avg_pool3d(self, kernel_size, stride=[], padding=[], ceil_mode=False, "
      "count_include_pad=True, divisor_override=None)",
      .text = "avg_pool3d(self, kernel=kernel_size, stride=stride, padding=padding, "
              "ceil_mode=ceil_mode, "
              "count_include_pad=count_include_pad, divisor_override=divisor_override)" },
    { "aten.col2im(self, output_size, kernel_size, dilation, padding, stride)",
      .text = "fold(self, output_size=output_size, kernel=kernel_size, dilation=dilation, "
              "padding=padding, stride=stride)" },
    { "aten.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)",
      .text =
          "grid_sample(input, grid, mode=interpolation_mode{bilinear, nearest, bicubic}, "
          "padding_mode=padding_mode{zeros, border, reflection}, align_corners=align_corners)" },
    { "aten.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)",
      .text =
          "grid_sample(input, grid, mode=interpolation_mode{bilinear, nearest, bicubic}, "
          "padding_mode=padding_mode{zeros, border, reflection}, align_corners=align_corners)" },
    { "aten.grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners)",
      .text =
          "grid_sample(input, grid, mode=interpolation_mode{bilinear, nearest, bicubic}, "
          "padding_mode=padding_mode{zeros, border, reflection}, align_corners=align_corners)" },
    { "aten.im2col(self, kernel_size, dilation, padding, stride)",
      .text =
          "im2col(self, kernel=kernel_size, dilation=dilation, padding=padding, stride=stride)" },
    { "aten.max_pool1d(self, kernel_size, stride=[], padding=[], dilation=[], ceil_mode=False)",
      .text =
          "max_pool1d(self, kernel=kernel_size, stride=stride, padding=padding, dilation=dilation, "
          "ceil_mode=ceil_mode)" },
    { "aten.max_pool2d(self, kernel_size, stride=[], padding=[], dilation=[], ceil_mode=False)",
      .text =
          "max_pool2d(self, kernel=kernel_size, stride=stride, padding=padding, dilation=dilation, "
          "ceil_mode=ceil_mode)" },
    { "aten.max_pool3d(self, kernel_size, stride=[], padding=[], dilation=[], ceil_mode=False)",
      .text =
          "max_pool3d(self, kernel=kernel_size, stride=stride, padding=padding, dilation=dilation, "
          "ceil_mode=ceil_mode)" },
    { "aten.max_pool1d_with_indices(self, kernel_size, stride=[], padding=[], dilation=[], "
      "ceil_mode=False)",
      .text = "max_pool1d_with_indices(self, kernel=kernel_size, stride=stride, padding=padding, "
              "dilation=dilation, ceil_mode=ceil_mode)" },
    { "aten.max_pool2d_with_indices(self, kernel_size, stride=[], padding=[], dilation=[], "
      "ceil_mode=False)",
      .text = "max_pool2d_with_indices(self, kernel=kernel_size, stride=stride, padding=padding, "
              "dilation=dilation, ceil_mode=ceil_mode)" },
    { "aten.max_pool3d_with_indices(self, kernel_size, stride=[], padding=[], dilation=[], "
      "ceil_mode=False)",
      .text = "max_pool3d_with_indices(self, kernel=kernel_size, stride=stride, padding=padding, "
              "dilation=dilation, ceil_mode=ceil_mode)" },
    { "aten.pad(self, pad, mode='constant', value=None)",
      .text = "pad(self, sizes=pad, mode=mode, value=value)" },
    { "aten.constant_pad_nd(self, pad, value=0)", .text = "pad(self, sizes=pad, value=value)" },
    { "aten._pad_circular(self, pad)", .text = "pad(self, sizes=pad, mode='circular')" },
    { "aten._pad_enum(self, pad, mode, value=None)",
      .text =
          "pad(self, sizes=pad, mode=mode{reflect, replicate, circular, constant}, value=value)" },
    { "aten.reflection_pad1d(self, padding)", .text = "pad(self, sizes=padding, mode='reflect')" },
    { "aten.reflection_pad2d(self, padding)", .text = "pad(self, sizes=padding, mode='reflect')" },
    { "aten.reflection_pad3d(self, padding)", .text = "pad(self, sizes=padding, mode='reflect')" },
    { "aten.replication_pad1d(self, padding)",
      .text = "pad(self, sizes=padding, mode='replicate')" },
    { "aten.replication_pad2d(self, padding)",
      .text = "pad(self, sizes=padding, mode='replicate')" },
    { "aten.replication_pad3d(self, padding)",
      .text = "pad(self, sizes=padding, mode='replicate')" },

    /* losses */
    { "aten.binary_cross_entropy(self, target, weight=None, reduction=1)",
      .text = "binary_cross_entropy(self, target, weight, reduction=reduction{none, mean, sum})" },
    { "aten.binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, "
      "reduction=1)",
      .text = "binary_cross_entropy_with_logits(self, target, weight, pos_weight, "
              "reduction=reduction{none, mean, sum})" },
    { "aten.cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1)",
      .text = "cosine_embedding_loss(input1, input2, target, margin=margin, "
              "reduction=reduction{none, mean, sum})" },
    { "aten.hinge_embedding_loss(self, target, margin=1.0, reduction=1)",
      .text = "hinge_embedding_loss(self, target, margin=margin, reduction=reduction{none, mean, "
              "sum})" },
    { "aten.huber_loss(self, target, reduction=1, delta=1.0)",
      .text = "huber_loss(self, target, reduction=reduction{none, mean, sum}, delta=delta)" },
    { "aten.kl_div(self, target, reduction=1, log_target=False)",
      .text = "kl_div(self, target, reduction=reduction{none, mean, sum}, log_target=log_target)" },
    { "aten.l1_loss(self, target, reduction=1)",
      .text = "l1_loss(self, target, reduction=reduction{none, mean, sum})" },
    { "aten.margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1)",
      .text = "margin_ranking_loss(input1, input2, target, margin=margin, "
              "reduction=reduction{none, mean, sum})" },
    { "aten.mse_loss(self, target, reduction=1)",
      .text = "mse_loss(self, target, reduction=reduction{none, mean, sum})" },
    { "aten.multi_margin_loss(self, target, p=1, margin=1, weight=None, reduction=1)",
      .text = "multi_margin_loss(self, target, weight, p=p, margin=margin, "
              "reduction=reduction{none, mean, sum})" },
    { "aten.multilabel_margin_loss(self, target, reduction=1)",
      .text = "multilabel_margin_loss(self, target, reduction=reduction{none, mean, sum})" },
    { "aten.nll_loss(self, target, weight=None, reduction=1, ignore_index=-100)",
      .text = "nll_loss_weighted(self, target, weight, reduction=reduction{none, mean, sum}, "
              "ignore_index=ignore_index)" },
    { "aten.nll_loss2d(self, target, weight=None, reduction=1, ignore_index=-100)",
      .text = "nll_loss_weighted(self, target, weight, reduction=reduction{none, mean, sum}, "
              "ignore_index=ignore_index)" },
    { "aten.nll_loss_nd(self, target, weight=None, reduction=1, ignore_index=-100)",
      .text = "nll_loss_weighted(self, target, weight, reduction=reduction{none, mean, sum}, "
              "ignore_index=ignore_index)" },
    { "aten.poisson_nll_loss(input, target, log_input, full, eps, reduction)",
      .text = "poisson_nll_loss(input, target, log_input=log_input, full=full, eps=eps, "
              "reduction=reduction{none, mean, sum})" },
    { "aten.smooth_l1_loss(self, target, reduction=1, beta=1.0)",
      .text = "smooth_l1_loss(self, target, reduction=reduction{none, mean, sum}, beta=beta)" },
    { "aten.soft_margin_loss(self, target, reduction=1)",
      .text = "soft_margin_loss(self, target, reduction=reduction{none, mean, sum})" },
    { "aten.triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, "
      "swap=False, reduction=1)",
      .text =
          "triplet_margin_loss(anchor, positive, negative, margin=margin, p=p, eps=eps, swap=swap, "
          "reduction=reduction{none, mean, sum})" },

    /* Fourier transforms */
    { "aten.fft_fft(self, n=None, dim=-1, norm=None)",
      .text = "fft_fft(self, n=n, dim=dim, norm=norm)" },
    { "aten.fft_ifft(self, n=None, dim=-1, norm=None)",
      .text = "fft_ifft(self, n=n, dim=dim, norm=norm)" },
    { "aten.fft_rfft(self, n=None, dim=-1, norm=None)",
      .text = "fft_rfft(self, n=n, dim=dim, norm=norm)" },
    { "aten.fft_irfft(self, n=None, dim=-1, norm=None)",
      .text = "fft_irfft(self, n=n, dim=dim, norm=norm)" },
    { "aten.fft_hfft(self, n=None, dim=-1, norm=None)",
      .text = "fft_hfft(self, n=n, dim=dim, norm=norm)" },
    { "aten.fft_ihfft(self, n=None, dim=-1, norm=None)",
      .text = "fft_ihfft(self, n=n, dim=dim, norm=norm)" },
    { "aten.fft_fft2(self, s=None, dim=[-2, -1], norm=None)",
      .text = "fft_fft2(self, s=s, dims=dim, norm=norm)" },
    { "aten.fft_ifft2(self, s=None, dim=[-2, -1], norm=None)",
      .text = "fft_ifft2(self, s=s, dims=dim, norm=norm)" },
    { "aten.fft_rfft2(self, s=None, dim=[-2, -1], norm=None)",
      .text = "fft_rfft2(self, s=s, dims=dim, norm=norm)" },
    { "aten.fft_irfft2(self, s=None, dim=[-2, -1], norm=None)",
      .text = "fft_irfft2(self, s=s, dims=dim, norm=norm)" },
    { "aten.fft_fftn(self, s=None, dim=None, norm=None)",
      .text = "fft_fftn(self, s=s, dims=dim, norm=norm)" },
    { "aten.fft_ifftn(self, s=None, dim=None, norm=None)",
      .text = "fft_ifftn(self, s=s, dims=dim, norm=norm)" },
    { "aten.fft_rfftn(self, s=None, dim=None, norm=None)",
      .text = "fft_rfftn(self, s=s, dims=dim, norm=norm)" },
    { "aten.fft_irfftn(self, s=None, dim=None, norm=None)",
      .text = "fft_irfftn(self, s=s, dims=dim, norm=norm)" },
    { "aten.fft_fftshift(self, dim=None)", .text = "fft_fftshift(self, dims=dim)" },
    { "aten.fft_ifftshift(self, dim=None)", .text = "fft_ifftshift(self, dims=dim)" },
    { "aten.stft.default(self, n_fft, hop_length=None, win_length=None, window=None, "
      "normalized=False, onesided=None, return_complex=None, align_to_window=None)",
      .text =
          "stft(self, window, n_fft=n_fft, hop_length=hop_length, win_length=win_length, "
          "center=False, normalized=normalized, onesided=onesided, return_complex=return_complex, "
          "align_to_window=align_to_window)" },
    { "aten.stft.center(self, n_fft, hop_length=None, win_length=None, window=None, center=True, "
      "pad_mode='reflect', normalized=False, onesided=None, return_complex=None, "
      "align_to_window=None)",
      .text = "stft(self, window, n_fft=n_fft, hop_length=hop_length, win_length=win_length, "
              "center=center, pad_mode=pad_mode, normalized=normalized, onesided=onesided, "
              "return_complex=return_complex, align_to_window=align_to_window)" },
    { "aten.istft(self, n_fft, hop_length=None, win_length=None, window=None, center=True, "
      "normalized=False, onesided=None, length=None, return_complex=False)",
      .text = "istft(self, window, n_fft=n_fft, hop_length=hop_length, win_length=win_length, "
              "center=center, normalized=normalized, onesided=onesided, length=length, "
              "return_complex=return_complex)" },
    { .function = NULL },
};
