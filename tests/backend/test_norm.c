/* SPDX-License-Identifier: MIT
 *
 * Normalization with the relu and the sum that follow it, on the CPU: they must have the bits of
 * separate calls of the operators. */
#include "tests/backend/fused.h"

/* As `x`, in memory with channels last. */
static tn_tensor *channels_last(tn_tensor *x)
{
    tn_ints s = tn_tensor_shape(x);
    int64_t strides[4] = { s.at[1] * s.at[2] * s.at[3], 1, s.at[3] * s.at[1], s.at[1] };

    return tn_copy_(tn_tensor_empty_strided(s, (tn_ints){ strides, 4 }, tn_tensor_dtype(x), NULL),
                    x);
}

START_TEST(normalization_with_relu_has_the_bits_of_its_parts)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64 };
    static const int64_t dims[] = { 0, 2, 3 };

    for (int i = 0; i < 48; i++) {
        TN_SCOPE;
        tn_standardize_relu_options r = TN_STANDARDIZE_RELU_OPTIONS;
        const tn_dtype dtype = dtypes[i & 1];
        const bool last = i & 2, sum = i & 4, limited = i & 8;
        tn_tensor *in[4], *again[4], *c, *y, *whole, *mean, *var;

        ck_assert_int_eq(tn_set_num_threads(1 << i / 16), TN_OK);
        r.max = limited ? 0.5 : NAN;
        in[0] = drawn(TN_SHAPE(3, 37, 20, 11), dtype, 1);
        in[1] = drawn(TN_SHAPE(37, 1, 1), dtype, 2);
        in[2] = drawn(TN_SHAPE(37, 1, 1), dtype, 3);
        in[3] = drawn(TN_SHAPE(3, 37, 20, 11), dtype, 4);
        c = drawn(TN_SHAPE(3, 37, 20, 11), dtype, 5);
        if (last) {
            in[0] = channels_last(in[0]);
            in[3] = channels_last(in[3]);
            c = channels_last(c);
        }
        for (int k = 0; k < 4; k++) {
            again[k] = leaf(tn_clone(in[k]));
            leaf(in[k]);
        }
        ck_assert_int_eq(tn_standardize_relu(in[0], in[1], in[2], sum ? in[3] : TN_NONE,
                                             ((tn_ints){ dims, 3 }), &y, &mean, &var, r.eps, r.max),
                         TN_OK);
        ck_assert_int_eq(tn_standardize(again[0], again[1], again[2], ((tn_ints){ dims, 3 }),
                                        &whole, &mean, &var),
                         TN_OK);
        if (sum)
            whole = tn_add(whole, again[3]);
        whole = limited ? tn_hardtanh(whole, 0.0, r.max) : tn_relu(whole);
        same_bits(y, whole, "y");
        ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y, c))), TN_OK);
        ck_assert_int_eq(tn_backward(tn_sum(tn_mul(whole, c))), TN_OK);
        for (int k = 0; k < 3 + sum; k++)
            same_bits(tn_tensor_grad(in[k]), tn_tensor_grad(again[k]), "gradient");
    }
    ck_assert_int_eq(tn_set_num_threads(1), TN_OK);
}
END_TEST

START_TEST(running_moments_move_as_with_batch_norm)
{
    TN_SCOPE;
    tn_batch_norm_options o = TN_BATCH_NORM_OPTIONS;
    tn_batch_norm_relu_options r = TN_BATCH_NORM_RELU_OPTIONS;
    tn_tensor *x = drawn(TN_SHAPE(4, 3, 5, 5), TN_F32, 1), *mean[2], *var[2], *y, *whole;

    for (int i = 0; i < 2; i++) {
        mean[i] = tn_tensor_full(TN_SHAPE(3), 0.5, TN_F32, tn_device_find("cpu"));
        var[i] = tn_tensor_full(TN_SHAPE(3), 2, TN_F32, tn_device_find("cpu"));
    }
    for (int i = 0; i < 4; i++) {
        o.training = r.training = i < 2;
        r.max = i & 1 ? 0.75 : NAN;
        o.momentum = r.momentum = 0.25;
        whole = tn_add(tn_batch_norm(x, mean[0], var[0], TN_NONE, TN_NONE, o.training, o.momentum),
                       x);
        whole = i & 1 ? tn_hardtanh(whole, 0.0, r.max) : tn_relu(whole);
        y = tn_batch_norm_relu(x, mean[1], var[1], TN_NONE, TN_NONE, x, r.training, r.momentum,
                               r.eps, r.max);
        same_bits(y, whole, "y");
        same_bits(mean[1], mean[0], "mean");
        same_bits(var[1], var[0], "var");
    }
}
END_TEST

/* A call that records gradients is decomposed; one that does not has a kernel. */
START_TEST(evaluation_has_the_same_bits_with_and_without_gradients)
{
    for (int i = 0; i < 64; i++) {
        TN_SCOPE;
        tn_batch_norm_relu_options r = TN_BATCH_NORM_RELU_OPTIONS;
        const tn_dtype dtype = i & 1 ? TN_F64 : TN_F32;
        const bool last = i & 2, relu = i & 4, more = i & 8, affine = i & 16;
        tn_tensor *x = drawn(TN_SHAPE(3, 21, 7, 9), dtype, 1), *way[2], *part[4];
        tn_tensor *residual = relu && more ? drawn(TN_SHAPE(3, 21, 7, 9), dtype, 2) : TN_NONE;

        r.max = i & 32 ? 0.5 : NAN;
        for (uint64_t k = 0; k < 4; k++)
            part[k] = drawn(TN_SHAPE(21), dtype, 3 + k);
        part[1] = tn_square(part[1]);
        if (!affine)
            part[2] = part[3] = TN_NONE;
        if (last)
            x = tn_transpose(tn_copy(tn_transpose(x, 1, 3)), 1, 3);
        if (last && residual != TN_NONE)
            residual = tn_transpose(tn_copy(tn_transpose(residual, 1, 3)), 1, 3);
        for (int k = 0; k < 2; k++) {
            tn_tensor *at = k == 0 ? x : leaf(tn_detach(x));

            way[k] = relu ? tn_batch_norm_relu(at, part[0], part[1], part[2], part[3], residual,
                                               r.training, r.momentum, r.eps, r.max)
                          : tn_batch_norm(at, part[0], part[1], part[2], part[3]);
            ck_assert_msg(way[k] != NULL, "%s", tn_error_text());
            ck_assert_int_eq(tn_tensor_requires_grad(way[k]), k);
            for (int d = 0; d < 4; d++)
                ck_assert_int_eq(tn_tensor_strides(way[k]).at[d], tn_tensor_strides(x).at[d]);
        }
        same_bits(way[0], way[1], "evaluation");
    }
}
END_TEST

RUN_SUITE("norm", normalization_with_relu_has_the_bits_of_its_parts,
          running_moments_move_as_with_batch_norm,
          evaluation_has_the_same_bits_with_and_without_gradients)
