/* SPDX-License-Identifier: MIT
 *
 * Operators as functions of ATen whose arguments are inputs and options (aten.h). */
#include "export/aten.h"

#include <math.h>
#include <string.h>

static tn_meta meta_of(const tn_node *node, int64_t input)
{
    tn_meta meta = { .ndim = -1 };

    if (tn_node_input(node, input) != TN_NODE_NONE)
        (void)tn_node_meta(tn_node_input(node, input), &meta);
    return meta;
}

static bool no_dims(const tn_node *node)
{
    const tn_ints *dims = export_option(node, "dims");

    return dims == NULL || dims->count <= 0;
}

static bool some_dims(const tn_node *node)
{
    return !no_dims(node);
}

/* Only values are used, and nothing is dropped. */
static bool is_attention(const tn_node *node)
{
    const double *p = export_option(node, "dropout_p");
    tn_meta q = meta_of(node, 0), k = meta_of(node, 1);

    return *p == 0 && q.ndim == 4 && k.ndim == 4 && q.shape[1] == k.shape[1] &&
           tn_node_user_count(tn_node_item(node, 1)) == 0;
}

static bool no_auto_padding(const tn_node *node)
{
    const char *const *padding = export_option(node, "auto_padding");
    const tn_ints *stride = export_option(node, "stride"), *pads = export_option(node, "padding");
    const tn_ints *dilation = export_option(node, "dilation");

    return (padding == NULL || *padding == NULL) && stride->count > 0 && pads->count > 0 &&
           dilation->count > 0;
}

static bool is_constant(const tn_node *node)
{
    const char *const *mode = export_option(node, "mode");

    return strcmp(*mode, "constant") == 0;
}

static bool no_rounding(const tn_node *node)
{
    const char *const *mode = export_option(node, "rounding_mode");

    return *mode == NULL;
}

static bool is_evaluation(const tn_node *node)
{
    const bool *training = export_option(node, "training");

    return training == NULL || !*training;
}

static bool same_sizes(const tn_node *node)
{
    tn_meta index = meta_of(node, 1), src = meta_of(node, 2);

    return index.ndim >= 0 && index.ndim == src.ndim;
}

/* Rows for one operator follow each other: the first one that fits counts. */
const struct aten_rule aten_write_rules[] = {
    { "relu", .text = "relu.default(self=x)" },
    { "sigmoid", .text = "sigmoid.default(self=x)" },
    { "relu6", .text = "relu6.default(self=x)" },
    { "leaky_relu", .text = "leaky_relu.default(self=x, negative_slope=negative_slope)" },
    { "prelu", .text = "prelu.default(self=x, weight=weight)" },
    { "elu", .text = "elu.default(self=x, alpha=alpha)" },
    { "selu", .text = "selu.default(self=x)" },
    { "celu", .text = "celu.default(self=x, alpha=alpha)" },
    { "gelu", .text = "gelu.default(self=x, *, approximate=approximate)" },
    { "silu", .text = "silu.default(self=x)" },
    { "mish", .text = "mish.default(self=x)" },
    { "hardtanh", .text = "hardtanh.default(self=x, min_val=min_val, max_val=max_val)" },
    { "hardswish", .text = "hardswish.default(self=x)" },
    { "hardsigmoid", .text = "hardsigmoid.default(self=x)" },
    { "logsigmoid", .text = "log_sigmoid.default(self=x)" },
    { "softshrink", .text = "softshrink.default(self=x, lambd=lambd)" },
    { "hardshrink", .text = "hardshrink.default(self=x, lambd=lambd)" },
    { "softplus", .text = "softplus.default(self=x, beta=beta, threshold=threshold)" },
    { "threshold", .text = "threshold.default(self=x, threshold=threshold, value=value)" },
    { "glu", .text = "glu.default(self=x, dim=dim)" },
    { "add", .text = "add.Tensor(self=a, other=b, *, alpha=alpha)" },
    { "sub", .text = "sub.Tensor(self=a, other=b, *, alpha=alpha)" },
    { "mul", .text = "mul.Tensor(self=a, other=b)" },
    { "div", .text = "div.Tensor(self=a, other=b)", .fits = no_rounding },
    { "div", .text = "div.Tensor_mode(self=a, other=b, *, rounding_mode=rounding_mode)" },
    { "maximum", .text = "maximum.default(self=a, other=b)" },
    { "minimum", .text = "minimum.default(self=a, other=b)" },
    { "remainder", .text = "remainder.Tensor(self=a, other=b)" },
    { "fmod", .text = "fmod.Tensor(self=a, other=b)" },
    { "pow", .text = "pow.Tensor_Tensor(self=a, exponent=b)" },
    { "atan2", .text = "atan2.default(self=a, other=b)" },
    { "add_scalar", .text = "add.Tensor(self=x, other=value)" },
    { "mul_scalar", .text = "mul.Tensor(self=x, other=value)" },
    { "pow_scalar", .text = "pow.Tensor_Scalar(self=x, exponent=exponent)" },
    { "neg", .text = "neg.default(self=x)" },
    { "clamp", .text = "clamp.default(self=x, min=min, max=max)" },
    { "lerp", .text = "lerp.Tensor(self=a, end=b, weight=weight)" },
    { "lerp_scalar", .text = "lerp.Scalar(self=a, end=b, weight=weight)" },
    { "addcmul", .text = "addcmul.default(self=x, tensor1=a, tensor2=b, *, value=value)" },
    { "addcdiv", .text = "addcdiv.default(self=x, tensor1=a, tensor2=b, *, value=value)" },
    { "eq", .text = "eq.Tensor(self=a, other=b)" },
    { "ne", .text = "ne.Tensor(self=a, other=b)" },
    { "lt", .text = "lt.Tensor(self=a, other=b)" },
    { "le", .text = "le.Tensor(self=a, other=b)" },
    { "gt", .text = "gt.Tensor(self=a, other=b)" },
    { "ge", .text = "ge.Tensor(self=a, other=b)" },
    { "bitwise_and", .text = "bitwise_and.Tensor(self=a, other=b)" },
    { "bitwise_or", .text = "bitwise_or.Tensor(self=a, other=b)" },
    { "bitwise_xor", .text = "bitwise_xor.Tensor(self=a, other=b)" },
    { "bitwise_not", .text = "bitwise_not.default(self=x)" },
    { "logical_and", .text = "logical_and.default(self=a, other=b)" },
    { "logical_or", .text = "logical_or.default(self=a, other=b)" },
    { "logical_xor", .text = "logical_xor.default(self=a, other=b)" },
    { "logical_not", .text = "logical_not.default(self=x)" },
    { "where", .text = "where.self(condition=condition, self=a, other=b)" },
    { "masked_fill", .text = "masked_fill.Scalar(self=x, mask=mask, value=value)" },
    { "isnan", .text = "isnan.default(self=x)" },
    { "isinf", .text = "isinf.default(self=x)" },
    { "cast", .text = "to.dtype(self=x, dtype=dtype)" },
    { "copy", .text = "clone.default(self=x)" },
    { "clone", .text = "clone.default(self=x)" },
    { "dropout", .text = "dropout.default(input=x, p=p, train=training)", .fits = is_evaluation },
    { "feature_dropout", .text = "feature_dropout.default(input=x, p=p, train=training)",
      .fits = is_evaluation },
    { "alpha_dropout", .text = "alpha_dropout.default(input=x, p=p, train=training)",
      .fits = is_evaluation },
    { "exp", .text = "exp.default(self=x)" },
    { "log", .text = "log.default(self=x)" },
    { "sqrt", .text = "sqrt.default(self=x)" },
    { "abs", .text = "abs.default(self=x)" },
    { "sign", .text = "sign.default(self=x)" },
    { "floor", .text = "floor.default(self=x)" },
    { "ceil", .text = "ceil.default(self=x)" },
    { "trunc", .text = "trunc.default(self=x)" },
    { "round", .text = "round.default(self=x)" },
    { "frac", .text = "frac.default(self=x)" },
    { "square", .text = "square.default(self=x)" },
    { "reciprocal", .text = "reciprocal.default(self=x)" },
    { "rsqrt", .text = "rsqrt.default(self=x)" },
    { "expm1", .text = "expm1.default(self=x)" },
    { "log1p", .text = "log1p.default(self=x)" },
    { "log2", .text = "log2.default(self=x)" },
    { "log10", .text = "log10.default(self=x)" },
    { "sin", .text = "sin.default(self=x)" },
    { "cos", .text = "cos.default(self=x)" },
    { "tan", .text = "tan.default(self=x)" },
    { "asin", .text = "asin.default(self=x)" },
    { "acos", .text = "acos.default(self=x)" },
    { "atan", .text = "atan.default(self=x)" },
    { "sinh", .text = "sinh.default(self=x)" },
    { "cosh", .text = "cosh.default(self=x)" },
    { "tanh", .text = "tanh.default(self=x)" },
    { "asinh", .text = "asinh.default(self=x)" },
    { "acosh", .text = "acosh.default(self=x)" },
    { "atanh", .text = "atanh.default(self=x)" },
    { "erf", .text = "erf.default(self=x)" },
    { "erfc", .text = "erfc.default(self=x)" },
    { "exp2", .text = "exp2.default(self=x)" },
    { "linear", .text = "linear.default(input=x, weight=weight, bias=bias)" },
    { "matmul", .text = "matmul.default(self=a, other=b)" },
    { "bmm", .text = "bmm.default(self=a, mat2=b)" },
    { "mv", .text = "mv.default(self=a, vec=x)" },
    { "dot", .text = "dot.default(self=a, tensor=b)" },
    { "addmm", .text = "addmm.default(self=x, mat1=a, mat2=b, *, beta=beta, alpha=alpha)" },
    { "baddbmm", .text = "baddbmm.default(self=x, batch1=a, batch2=b, *, beta=beta, "
                         "alpha=alpha)" },
    { "einsum", .text = "einsum.default(equation=equation, tensors=operands)" },
    { "scaled_dot_product_attention",
      .text = "scaled_dot_product_attention.default(query=q, key=k, value=v, attn_mask=mask, "
              "dropout_p=dropout_p, is_causal=is_causal, *, scale=scale, enable_gqa=enable_gqa)" },
    { "attend",
      .text = "scaled_dot_product_attention.default(query=q, key=k, value=v, attn_mask=mask, "
              "dropout_p=dropout_p, is_causal=is_causal, *, scale=scale)",
      .fits = is_attention },
    { "embedding", .text = "embedding.default(weight=weight, indices=index, *, "
                           "padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq)" },
    { "index_select", .text = "index_select.default(self=x, dim=dim, index=index)" },
    { "gather", .text = "gather.default(self=x, dim=dim, index=index)" },
    { "scatter", .text = "scatter.src(self=x, dim=dim, index=index, src=src)", .fits = same_sizes },
    { "scatter_add", .text = "scatter_add.default(self=x, dim=dim, index=index, src=src)",
      .fits = same_sizes },
    { "topk", .text = "topk.default(self=x, k=k, dim=dim, largest=largest)" },
    { "sort", .text = "sort.default(self=x, dim=dim, descending=descending)" },
    { "argmax", .text = "argmax.default(self=x, dim=dim, keepdim=keepdim)" },
    { "argmin", .text = "argmin.default(self=x, dim=dim, keepdim=keepdim)" },
    { "max_dim", .text = "max.dim(self=x, dim=dim, keepdim=keepdim)" },
    { "min_dim", .text = "min.dim(self=x, dim=dim, keepdim=keepdim)" },
    { "sum", .text = "sum.dim_IntList(self=x, dim=dims, keepdim=keepdim, *, dtype=dtype)" },
    { "mean", .text = "mean.dim(self=x, dim=dims, keepdim=keepdim, *, dtype=dtype)" },
    { "amax", .text = "amax.default(self=x, dim=dims, keepdim=keepdim)" },
    { "amin", .text = "amin.default(self=x, dim=dims, keepdim=keepdim)" },
    { "var",
      .text = "var.correction(self=x, dim=dims, *, correction=correction, "
              "keepdim=keepdim)",
      .fits = some_dims },
    { "var", .text = "var.correction(self=x, dim=None, *, correction=correction, "
                     "keepdim=keepdim)" },
    { "std",
      .text = "std.correction(self=x, dim=dims, *, correction=correction, "
              "keepdim=keepdim)",
      .fits = some_dims },
    { "std", .text = "std.correction(self=x, dim=None, *, correction=correction, "
                     "keepdim=keepdim)" },
    { "norm",
      .text = "linalg_vector_norm.default(self=x, ord=p, dim=dims, keepdim=keepdim, *, "
              "dtype=dtype)",
      .fits = some_dims },
    { "any", .text = "any.default(self=x)", .fits = no_dims },
    { "all", .text = "all.default(self=x)", .fits = no_dims },
    { "logsumexp", .text = "logsumexp.default(self=x, dim=dims, keepdim=keepdim)" },
    { "softmax", .text = "softmax.int(self=x, dim=dim)" },
    { "log_softmax", .text = "log_softmax.int(self=x, dim=dim)" },
    { "cumsum", .text = "cumsum.default(self=x, dim=dim, *, dtype=dtype)" },
    { "reshape", .text = "reshape.default(self=x, shape=shape)" },
    { "view", .text = "reshape.default(self=x, shape=shape)" },
    { "flatten", .text = "flatten.using_ints(self=x, start_dim=start_dim, end_dim=end_dim)" },
    { "permute", .text = "permute.default(self=x, dims=dims)" },
    { "transpose", .text = "transpose.int(self=x, dim0=dim0, dim1=dim1)" },
    { "expand", .text = "expand.default(self=x, size=shape)" },
    { "unsqueeze", .text = "unsqueeze.default(self=x, dim=dim)" },
    { "squeeze", .text = "squeeze.dims(self=x, dim=dims)", .fits = some_dims },
    { "squeeze", .text = "squeeze.default(self=x)" },
    { "narrow", .text = "narrow.default(self=x, dim=dim, start=start, length=length)" },
    { "select", .text = "select.int(self=x, dim=dim, index=index)" },
    { "slice", .text = "slice.Tensor(self=x, dim=dim, start=start, end=end, step=step)" },
    { "cat", .text = "cat.default(tensors=tensors, dim=dim)" },
    { "stack", .text = "stack.default(tensors=tensors, dim=dim)" },
    { "repeat", .text = "repeat.default(self=x, repeats=times)" },
    { "flip", .text = "flip.default(self=x, dims=dims)" },
    { "roll", .text = "roll.default(self=x, shifts=shifts, dims=dims)" },
    { "tril", .text = "tril.default(self=x, diagonal=diagonal)" },
    { "triu", .text = "triu.default(self=x, diagonal=diagonal)" },
    { "diagonal", .text = "diagonal.default(self=x, offset=offset, dim1=dim1, dim2=dim2)" },
    { "unfold", .text = "unfold.default(self=x, dimension=dim, size=window, step=step)" },
    { "pad", .text = "pad.default(self=x, pad=sizes, mode=mode, value=value)",
      .fits = is_constant },
    { "pad", .text = "pad.default(self=x, pad=sizes, mode=mode)" },
    { "fill", .text = "full_like.default(self=x, fill_value=value)" },
    { "one_hot", .text = "one_hot.default(self=x, num_classes=classes)" },
    { "pixel_shuffle", .text = "pixel_shuffle.default(self=x, upscale_factor=upscale_factor)" },
    { "pixel_unshuffle", .text = "pixel_unshuffle.default(self=x, "
                                 "downscale_factor=downscale_factor)" },
    { "channel_shuffle", .text = "channel_shuffle.default(self=x, groups=groups)" },
    { "layer_norm", .text = "layer_norm.default(input=x, normalized_shape=normalized_shape, "
                            "weight=weight, bias=bias, eps=eps)" },
    { "group_norm", .text = "group_norm.default(input=x, num_groups=num_groups, weight=weight, "
                            "bias=bias, eps=eps)" },
    { "rms_norm", .text = "rms_norm.default(input=x, normalized_shape=normalized_shape, "
                          "weight=weight, eps=eps)" },
    { "batch_norm",
      .text = "batch_norm.default(input=x, weight=weight, bias=bias, "
              "running_mean=running_mean, running_var=running_var, "
              "training=training, momentum=momentum, eps=eps, cudnn_enabled=True)",
      .fits = is_evaluation },
    { "instance_norm",
      .text = "instance_norm.default(input=x, weight=weight, bias=bias, "
              "running_mean=running_mean, running_var=running_var, "
              "use_input_stats=use_input_stats, momentum=momentum, eps=eps, cudnn_enabled=True)" },
    { "conv_transpose1d",
      .text = "conv_transpose1d.default(input=x, weight=weight, bias=bias, stride=stride, "
              "padding=padding, output_padding=output_padding, groups=groups, dilation=dilation)",
      .fits = no_auto_padding },
    { "conv_transpose2d",
      .text = "conv_transpose2d.input(input=x, weight=weight, bias=bias, stride=stride, "
              "padding=padding, output_padding=output_padding, groups=groups, dilation=dilation)",
      .fits = no_auto_padding },
    { "conv_transpose3d",
      .text = "conv_transpose3d.input(input=x, weight=weight, bias=bias, stride=stride, "
              "padding=padding, output_padding=output_padding, groups=groups, dilation=dilation)",
      .fits = no_auto_padding },
    { "max_pool1d", .text = "max_pool1d.default(self=x, kernel_size=kernel, *, stride=stride, "
                            "padding=padding, dilation=dilation, ceil_mode=ceil_mode)" },
    { "max_pool2d", .text = "max_pool2d.default(self=x, kernel_size=kernel, *, stride=stride, "
                            "padding=padding, dilation=dilation, ceil_mode=ceil_mode)" },
    { "max_pool3d", .text = "max_pool3d.default(self=x, kernel_size=kernel, *, stride=stride, "
                            "padding=padding, dilation=dilation, ceil_mode=ceil_mode)" },
    { "avg_pool1d", .text = "avg_pool1d.default(self=x, kernel_size=kernel, *, stride=stride, "
                            "padding=padding, ceil_mode=ceil_mode, "
                            "count_include_pad=count_include_pad)" },
    { "avg_pool2d", .text = "avg_pool2d.default(self=x, kernel_size=kernel, *, stride=stride, "
                            "padding=padding, ceil_mode=ceil_mode, "
                            "count_include_pad=count_include_pad, "
                            "divisor_override=divisor_override)" },
    { "avg_pool3d", .text = "avg_pool3d.default(self=x, kernel_size=kernel, *, stride=stride, "
                            "padding=padding, ceil_mode=ceil_mode, "
                            "count_include_pad=count_include_pad, "
                            "divisor_override=divisor_override)" },
    { .op = NULL },
};
