/* SPDX-License-Identifier: MIT
 *
 * Rules that need code for products, convolutions, pooling, resampling, losses and Fourier
 * transforms. */
#include "rules.h"

#include <math.h>
#include <string.h>

static bool is_complex(const tn_tensor *x)
{
    return tn_tensor_dtype(x) == TN_C64 || tn_tensor_dtype(x) == TN_C128;
}

/* ---- products -------------------------------------------------------------------------------- */

/* dot with the conjugate of the first vector. */
static tn_status vdot(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *other = rule_tensor(call, "other");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_dot(is_complex(self) ? tn_conj(self) : self, other));
}

/* Sums over the last dimensions of both. */
static tn_status inner(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *other = rule_tensor(call, "other");

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(self) == 0 || tn_tensor_ndim(other) == 0)
        return rule_give(call, tn_mul(self, other));
    return rule_give(call, tn_tensordot(self, other, 2, TN_INTS(-1), TN_INTS(-1)));
}

static bool is(tn_scalar number, double value)
{
    return number.kind == TN_SCALAR_FLOAT ? number.as.f == value
                                          : number.kind == TN_SCALAR_INT && number.as.i == value;
}

/* beta * self + alpha * product. */
static tn_status add_product(tn_rule_call *call, tn_tensor *product)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_scalar alpha = rule_scalar(call, "alpha"), beta = rule_scalar(call, "beta");

    if (call->status != TN_OK)
        return call->status;
    if (is(beta, 0)) /* self has no influence, even if it is NaN */
        return rule_give(call, tn_mul_scalar(product, alpha));
    return rule_give(call, tn_add(is(beta, 1) ? self : tn_mul_scalar(self, beta), product, alpha));
}

static tn_status addmv(tn_rule_call *call)
{
    return add_product(call, tn_mv(rule_tensor(call, "mat"), rule_tensor(call, "vec")));
}

static tn_status addr(tn_rule_call *call)
{
    return add_product(call, tn_outer(rule_tensor(call, "vec1"), rule_tensor(call, "vec2")));
}

static tn_status addbmm(tn_rule_call *call)
{
    tn_tensor *products = tn_bmm(rule_tensor(call, "batch1"), rule_tensor(call, "batch2"));

    return add_product(call, tn_sum(products, TN_INTS(0)));
}

static tn_status multi_dot(tn_rule_call *call)
{
    int64_t n;
    tn_tensor **all = rule_tensors(call, "tensors", &n), *y;

    if (call->status != TN_OK)
        return call->status;
    y = n > 0 ? all[0] : NULL;
    for (int64_t i = 1; i < n; i++)
        y = tn_matmul(y, all[i]);
    return n > 0 ? rule_give(call, y)
                 : rule_fail(call, TN_ERR_VALUE, "tensors: empty; expected at least one");
}

static tn_status matrix_power(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *y = NULL;
    int64_t n = rule_int(call, "n");

    if (call->status != TN_OK)
        return call->status;
    if (n < 0) {
        self = tn_linalg_inv(self);
        n = n == INT64_MIN ? INT64_MAX : -n;
    }
    if (n == 0)
        return rule_give(call,
                         tn_expand(tn_eye(self, tn_tensor_size(self, -1)), tn_tensor_shape(self)));
    for (; n > 0 && self != NULL; n /= 2) {
        if (n % 2 != 0)
            y = y == NULL ? self : tn_matmul(y, self);
        if (n > 1)
            self = tn_matmul(self, self);
    }
    return rule_give(call, self != NULL ? y : NULL);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

static tn_status convolution(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *weight = rule_tensor(call, "weight");
    tn_tensor *bias = rule_optional(call, "bias");
    tn_ints stride = rule_ints(call, "stride"), padding = rule_ints(call, "padding");
    tn_ints dilation = rule_ints(call, "dilation"), output = rule_ints(call, "output_padding");
    int64_t groups = rule_int(call, "groups"), ndim;
    bool transposed = rule_bool(call, "transposed");

    if (call->status != TN_OK)
        return call->status;
    ndim = tn_tensor_ndim(weight) - 2;
    if (!transposed && ndim + 2 == tn_tensor_ndim(x))
        return rule_give(call, tn_convolution(x, weight, bias, stride, padding, dilation, groups));
    switch (ndim) {
    case 1:
        return rule_give(call, transposed
                                   ? tn_conv_transpose1d(x, weight, bias, stride, padding, output,
                                                         groups, dilation)
                                   : tn_conv1d(x, weight, bias, stride, padding, dilation, groups));
    case 2:
        return rule_give(call, transposed
                                   ? tn_conv_transpose2d(x, weight, bias, stride, padding, output,
                                                         groups, dilation)
                                   : tn_conv2d(x, weight, bias, stride, padding, dilation, groups));
    case 3:
        return rule_give(call, transposed
                                   ? tn_conv_transpose3d(x, weight, bias, stride, padding, output,
                                                         groups, dilation)
                                   : tn_conv3d(x, weight, bias, stride, padding, dilation, groups));
    default:
        return rule_fail(call, TN_ERR_VALUE,
                         "weight: wrong number of dimensions, got %lld; expected 3 to 5",
                         (long long)ndim + 2);
    }
}

/* ---- pooling and resampling ------------------------------------------------------------------ */

/* The operator wants the windows, from which it computes the size of the result; the size alone
 * leads to the same places, since indices count elements of the whole image. */
static tn_status max_unpool(tn_rule_call *call, int64_t ndim)
{
    tn_tensor *self = rule_tensor(call, "self"), *indices = rule_tensor(call, "indices"), *flat;
    tn_ints size = rule_ints(call, "output_size"), old;
    int64_t shape[TN_MAX_DIMS], rows[TN_MAX_DIMS], all = 1, given = 1, before;

    if (call->status != TN_OK)
        return call->status;
    before = tn_tensor_ndim(self) - ndim;
    if (before < 1 || size.count != ndim)
        return rule_fail(
            call, TN_ERR_VALUE,
            "output_size: wrong count, got %lld; expected %lld sizes and an image with "
            "channels",
            (long long)size.count, (long long)ndim);
    old = tn_tensor_shape(self);
    for (int64_t d = 0; d < ndim; d++) {
        all *= size.at[d] > 0 && all <= INT64_MAX / size.at[d] ? size.at[d] : 0;
        given *= old.at[before + d];
        shape[before + d] = size.at[d];
    }
    for (int64_t d = 0; d < before; d++)
        shape[d] = rows[d] = old.at[d];
    rows[before] = all;
    flat = tn_full(self, ((tn_ints){ rows, before + 1 }), 0);
    rows[before] = given;
    flat = tn_scatter(flat, tn_reshape(indices, (tn_ints){ rows, before + 1 }),
                      tn_reshape(self, (tn_ints){ rows, before + 1 }), before);
    return rule_give(call, tn_reshape(flat, (tn_ints){ shape, before + ndim }));
}

static tn_status max_unpool2d(tn_rule_call *call)
{
    return max_unpool(call, 2);
}

static tn_status max_unpool3d(tn_rule_call *call)
{
    return max_unpool(call, 3);
}

/* The mode is in the name of the function. */
static const char *mode_of(const tn_rule_call *call)
{
    static const char *const modes[][2] = {
        { "nearest_exact", "nearest-exact" },
        { "nearest", "nearest" },
        { "bicubic", "bicubic" },
        { "bilinear", "bilinear" },
        { "trilinear", "trilinear" },
        { "linear", "linear" },
    };

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strstr(call->name, modes[i][0]) != NULL)
            return modes[i][1];
    return "";
}

/* With `scales` the sizes are those of the file, and the samples are 1 / scale apart. */
static tn_status resample(tn_rule_call *call, tn_tensor *x, tn_floats scales)
{
    tn_ints size = rule_ints(call, "output_size"), expected;
    bool align = rule_bool(call, "align_corners");
    const char *mode = mode_of(call);

    if (call->status != TN_OK)
        return call->status;
    if (scales.count <= 0)
        return rule_give(call, tn_interpolate(x, size, mode, align));
    if (size.count > 0) {
        /* The operator takes one of both: the scales, if the sizes are what follows from them. */
        expected = tn_tensor_shape(x);
        for (int64_t d = 0; d < size.count; d++)
            if (scales.count != size.count || expected.count != size.count + 2 ||
                (double)size.at[d] != trunc((double)expected.at[d + 2] * scales.at[d]))
                return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                                 "output_size: other than the scales times the size of the input");
    }
    return rule_give(call, tn_interpolate(x, tn_no_ints(), mode, align, scales));
}

/* The overloads .vec: sizes or scales. */
static tn_status upsample(tn_rule_call *call)
{
    tn_floats scales = rule_has(call, "output_size") ? tn_no_floats()
                                                     : rule_floats(call, "scale_factors");

    return resample(call, rule_tensor(call, "input"), scales);
}

/* The other overloads: sizes, and scales that are given for all dimensions or for none. */
static tn_status upsample_sized(tn_rule_call *call)
{
    double *scales = rule_memory(call, call->count, sizeof *scales);
    int64_t n = 0, absent = 0;

    for (int64_t i = 0; i < call->count && scales != NULL; i++) {
        if (strncmp(call->names[i], "scales", 6) != 0)
            continue;
        if (call->values[i].kind == TN_VALUE_NONE)
            absent++;
        else
            scales[n++] = rule_float(call, call->names[i]);
    }
    if (n > 0 && absent > 0)
        return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                         "scales: given for %lld of %lld dimensions; expected all or none",
                         (long long)n, (long long)(n + absent));
    return resample(call, rule_tensor(call, "self"), (tn_floats){ scales, n });
}

/* ---- losses ---------------------------------------------------------------------------------- */

static const char *reduction(tn_rule_call *call)
{
    static const char *const words[] = { "none", "mean", "sum" };
    int64_t given = rule_int(call, "reduction");

    if (given >= 0 && given < 3)
        return words[given];
    rule_fail(call, TN_ERR_VALUE, "reduction: unknown, got %lld; expected 0 to 2",
              (long long)given);
    return "mean";
}

static tn_status cross_entropy(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *target = rule_tensor(call, "target");
    tn_tensor *weight = rule_optional(call, "weight");
    const char *how = reduction(call);
    int64_t ignored = rule_int(call, "ignore_index");
    double smoothing = rule_float(call, "label_smoothing");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(
        call, weight == TN_NONE && tn_tensor_dtype(target) == TN_I64
                  ? tn_cross_entropy(self, target, how, ignored, smoothing)
                  : tn_cross_entropy_weighted(self, target, weight, how, ignored, smoothing));
}

/* The second result, the sum of the weights, is only for the derivative. */
static tn_status nll_loss(tn_rule_call *call)
{
    rule_give(call, tn_nll_loss_weighted(rule_tensor(call, "self"), rule_tensor(call, "target"),
                                         rule_optional(call, "weight"), reduction(call),
                                         rule_int(call, "ignore_index")));
    return rule_give_none(call);
}

/* ---- Fourier transforms inside of PyTorch ---------------------------------------------------- */

/* The name of a factor: none, 1 / sqrt(n) or 1 / n, for the transform to frequencies or back. */
static const char *factor(tn_rule_call *call, bool forward)
{
    int64_t kind = rule_int(call, "normalization");

    if (kind == 1)
        return "ortho";
    return (kind == 0) == forward ? "backward" : "forward";
}

static tn_status r2c(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_ints dims = rule_ints(call, "dim");
    bool onesided = rule_bool(call, "onesided");

    return rule_give(call, onesided ? tn_fft_rfftn(self, tn_none_ints(), dims, factor(call, true))
                                    : tn_fft_fftn(self, tn_none_ints(), dims, factor(call, true)));
}

static tn_status c2c(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_ints dims = rule_ints(call, "dim");
    bool forward = rule_bool(call, "forward");

    return rule_give(call, forward ? tn_fft_fftn(self, tn_none_ints(), dims, factor(call, true))
                                   : tn_fft_ifftn(self, tn_none_ints(), dims, factor(call, false)));
}

static tn_status c2r(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_ints dims = rule_ints(call, "dim");
    int64_t sizes[TN_MAX_DIMS], last = rule_int(call, "last_dim_size");

    if (call->status != TN_OK || dims.count > TN_MAX_DIMS)
        return rule_fail(call, TN_ERR_VALUE,
                         "dim: too many dimensions, got %lld; expected at most %d",
                         (long long)dims.count, TN_MAX_DIMS);
    for (int64_t d = 0; d < dims.count; d++)
        sizes[d] = d == dims.count - 1 ? last : tn_tensor_size(self, dims.at[d]);
    return rule_give(
        call, tn_fft_irfftn(self, ((tn_ints){ sizes, dims.count }), dims, factor(call, false)));
}

const tn_rule_def rules_products[] = {
    { "aten.vdot(self, other)", .call = vdot },
    { "aten.inner(self, other)", .call = inner },
    { "aten.addmv(self, mat, vec, beta=1, alpha=1)", .call = addmv },
    { "aten.addr(self, vec1, vec2, beta=1, alpha=1)", .call = addr },
    { "aten.addbmm(self, batch1, batch2, beta=1, alpha=1)", .call = addbmm },
    { "aten.linalg_multi_dot(tensors)", .call = multi_dot },
    { "aten.matrix_power(self, n)", .call = matrix_power, .copies = true },
    { "aten.linalg_matrix_power(self, n)", .call = matrix_power, .copies = true },
    { "aten.convolution(input, weight, bias, stride, padding, dilation, transposed, "
      "output_padding, groups)",
      .call = convolution },
    { "aten._convolution(input, weight, bias, stride, padding, dilation, transposed, "
      "output_padding, groups, benchmark=*, deterministic=*, cudnn_enabled=*, allow_tf32=*)",
      .call = convolution },
    { "aten.max_unpool2d(self, indices, output_size)", .call = max_unpool2d },
    { "aten.max_unpool3d(self, indices, output_size, stride=*, padding=*)", .call = max_unpool3d },
    { "aten.upsample_nearest1d.vec(input, output_size, scale_factors, align_corners=False)",
      .call = upsample },
    { "aten.upsample_nearest1d.default(self, output_size, scales=None, align_corners=False)",
      .call = upsample_sized },
    { "aten.upsample_nearest2d.vec(input, output_size, scale_factors, align_corners=False)",
      .call = upsample },
    { "aten.upsample_nearest2d.default(self, output_size, scales_h=None, scales_w=None, "
      "align_corners=False)",
      .call = upsample_sized },
    { "aten.upsample_nearest3d.vec(input, output_size, scale_factors, align_corners=False)",
      .call = upsample },
    { "aten.upsample_nearest3d.default(self, output_size, scales_d=None, scales_h=None, "
      "scales_w=None, align_corners=False)",
      .call = upsample_sized },
    { "aten._upsample_nearest_exact1d.vec(input, output_size, scale_factors, align_corners=False)",
      .call = upsample },
    { "aten._upsample_nearest_exact1d.default(self, output_size, scales=None, align_corners=False)",
      .call = upsample_sized },
    { "aten._upsample_nearest_exact2d.vec(input, output_size, scale_factors, align_corners=False)",
      .call = upsample },
    { "aten._upsample_nearest_exact2d.default(self, output_size, scales_h=None, scales_w=None, "
      "align_corners=False)",
      .call = upsample_sized },
    { "aten._upsample_nearest_exact3d.vec(input, output_size, scale_factors, align_corners=False)",
      .call = upsample },
    { "aten._upsample_nearest_exact3d.default(self, output_size, scales_d=None, scales_h=None, "
      "scales_w=None, align_corners=False)",
      .call = upsample_sized },
    { "aten.upsample_linear1d.vec(input, output_size, align_corners, scale_factors)",
      .call = upsample },
    { "aten.upsample_linear1d.default(self, output_size, align_corners, scales=None)",
      .call = upsample_sized },
    { "aten.upsample_bilinear2d.vec(input, output_size, align_corners, scale_factors)",
      .call = upsample },
    { "aten.upsample_bilinear2d.default(self, output_size, align_corners, scales_h=None, "
      "scales_w=None)",
      .call = upsample_sized },
    { "aten.upsample_bicubic2d.vec(input, output_size, align_corners, scale_factors)",
      .call = upsample },
    { "aten.upsample_bicubic2d.default(self, output_size, align_corners, scales_h=None, "
      "scales_w=None)",
      .call = upsample_sized },
    { "aten.upsample_trilinear3d.vec(input, output_size, align_corners, scale_factors)",
      .call = upsample },
    { "aten.upsample_trilinear3d.default(self, output_size, align_corners, scales_d=None, "
      "scales_h=None, scales_w=None)",
      .call = upsample_sized },
    { "aten.cross_entropy_loss(self, target, weight=None, reduction=1, ignore_index=-100, "
      "label_smoothing=0.0)",
      .call = cross_entropy },
    { "aten.nll_loss_forward(self, target, weight, reduction, ignore_index)", .call = nll_loss },
    { "aten.nll_loss2d_forward(self, target, weight, reduction, ignore_index)", .call = nll_loss },
    { "aten._fft_r2c(self, dim, normalization, onesided)", .call = r2c },
    { "aten._fft_c2c(self, dim, normalization, forward)", .call = c2c },
    { "aten._fft_c2r(self, dim, normalization, last_dim_size)", .call = c2r },
    { .function = NULL },
};
