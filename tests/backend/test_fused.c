/* SPDX-License-Identifier: MIT
 *
 * Operators with what follows them in one, on the CPU: the bits of the operators one after the
 * other, whatever way a product takes and however many threads there are; no write out of bounds.
 */
#include "tests/libcheck.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

static void fine(void)
{
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}

static tn_tensor *drawn(tn_ints shape, tn_dtype dtype, uint64_t seed)
{
    tn_tensor *x = tn_philox_normal(tn_tensor_empty(shape, dtype, tn_device_find("cpu")), 0, 1,
                                    (int64_t)seed, 0);

    ck_assert_msg(x != NULL, "%s", tn_error_text());
    return x;
}

static void same_bits(tn_tensor *a, tn_tensor *b, const char *what)
{
    size_t bytes = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);

    fine();
    ck_assert_int_eq(tn_tensor_numel(a), tn_tensor_numel(b));
    ck_assert_int_eq(tn_tensor_copy_out(a, x, bytes), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(b, y, bytes), TN_OK);
    ck_assert_msg(memcmp(x, y, bytes) == 0, "%s", what);
    free(x);
    free(y);
}

static const char *const names[] = { "none", "relu", "gelu", "gelu_tanh", "silu" };

static tn_tensor *follow(int which, tn_tensor *z)
{
    tn_gelu_options tanh = TN_GELU_OPTIONS;

    tanh.approximate = "tanh";
    return which == 1   ? tn_relu(z)
           : which == 2 ? tn_gelu(z, NULL)
           : which == 3 ? tn_gelu(z, &tanh)
           : which == 4 ? tn_silu(z)
                        : z;
}

/* Rows, inputs, outputs: single rows, few, strips, strips the other way round (few rows, many
 * outputs) with one and two rounds of depth, last panels that are not full. */
static const int64_t sizes[][3] = { { 1, 30, 40 },     { 3, 64, 10 },    { 40, 33, 50 },
                                    { 128, 784, 512 }, { 64, 400, 120 }, { 17, 700, 95 },
                                    { 200, 256, 300 }, { 7, 1030, 64 } };

START_TEST(a_linear_layer_in_one_has_the_bits_of_its_parts)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64 };
    char what[100];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int d = 0; d < 2; d++)
            for (int f = 0; f < 5; f++)
                for (int parts = 0; parts < 4; parts++) {
                    TN_SCOPE;
                    const int64_t *s = sizes[i];
                    tn_tensor *x = drawn(TN_SHAPE(s[0], s[1]), dtypes[d], 1);
                    tn_tensor *w = drawn(TN_SHAPE(s[2], s[1]), dtypes[d], 2);
                    tn_tensor *b = parts & 1 ? drawn(TN_SHAPE(s[2]), dtypes[d], 3) : TN_NONE;
                    tn_tensor *r = parts & 2 ? drawn(TN_SHAPE(s[0], s[2]), dtypes[d], 4) : TN_NONE;
                    tn_tensor *z = tn_linear(x, w, b), *y, *before;
                    tn_tensor *whole = follow(f, z);

                    if (parts & 2)
                        whole = tn_add(whole, r, NULL);
                    ck_assert_int_eq(tn_linear_activation(x, w, b, r, names[f], &y, &before),
                                     TN_OK);
                    snprintf(what, sizeof what, "%lldx%lld to %lld, %s, parts %d", (long long)s[0],
                             (long long)s[1], (long long)s[2], names[f], parts);
                    same_bits(y, whole, what);
                    if (f > 1 || (f == 1 && (parts & 2)))
                        same_bits(before, z, what);
                    else
                        ck_assert_int_eq(tn_tensor_numel(before), 0);
                }
}
END_TEST

/* Against sums in double: the ways agree with what a product is, too. */
START_TEST(products_of_few_rows_are_right)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        TN_SCOPE;
        const int64_t *s = sizes[i];
        tn_tensor *x = drawn(TN_SHAPE(s[0], s[1]), TN_F32, 1),
                  *w = drawn(TN_SHAPE(s[2], s[1]), TN_F32, 2);
        tn_tensor *b = drawn(TN_SHAPE(s[2]), TN_F32, 3), *y = tn_linear(x, w, b);
        float *px = malloc(sizeof(float) * (size_t)(s[0] * s[1])),
              *pw = malloc(sizeof(float) * (size_t)(s[2] * s[1])),
              *pb = malloc(sizeof(float) * (size_t)s[2]),
              *py = malloc(sizeof(float) * (size_t)(s[0] * s[2]));

        fine();
        ck_assert_int_eq(tn_tensor_copy_out(x, px, sizeof(float) * (size_t)(s[0] * s[1])), TN_OK);
        ck_assert_int_eq(tn_tensor_copy_out(w, pw, sizeof(float) * (size_t)(s[2] * s[1])), TN_OK);
        ck_assert_int_eq(tn_tensor_copy_out(b, pb, sizeof(float) * (size_t)s[2]), TN_OK);
        ck_assert_int_eq(tn_tensor_copy_out(y, py, sizeof(float) * (size_t)(s[0] * s[2])), TN_OK);
        for (int64_t r = 0; r < s[0]; r++)
            for (int64_t c = 0; c < s[2]; c++) {
                double sum = pb[c];
                for (int64_t k = 0; k < s[1]; k++)
                    sum += (double)px[r * s[1] + k] * (double)pw[c * s[1] + k];
                ck_assert_msg(fabs(py[r * s[2] + c] - sum) < 1e-4 * (1 + fabs(sum)),
                              "%lldx%lld to %lld at %lld, %lld: %g, not %g", (long long)s[0],
                              (long long)s[1], (long long)s[2], (long long)r, (long long)c,
                              (double)py[r * s[2] + c], sum);
            }
        free(px);
        free(pw);
        free(pb);
        free(py);
    }
}
END_TEST

static tn_tensor *leaf(tn_tensor *x)
{
    tn_tensor_set_requires_grad(x, true);
    return x;
}

START_TEST(gradients_and_threads_do_not_change_a_bit)
{
    for (int f = 0; f < 5; f++)
        for (int sum = 0; sum < 2; sum++) {
            TN_SCOPE;
            tn_tensor *first[5] = { NULL };
            for (int threads = 1; threads <= 4; threads *= 2) {
                tn_tensor *x = leaf(drawn(TN_SHAPE(150, 300), TN_F32, 1));
                tn_tensor *w = leaf(drawn(TN_SHAPE(520, 300), TN_F32, 2));
                tn_tensor *b = leaf(drawn(TN_SHAPE(520), TN_F32, 3));
                tn_tensor *r = sum ? leaf(drawn(TN_SHAPE(150, 520), TN_F32, 4)) : TN_NONE;
                tn_tensor *c = drawn(TN_SHAPE(150, 520), TN_F32, 5), *y, *before;

                ck_assert_int_eq(tn_set_num_threads(threads), TN_OK);
                ck_assert_int_eq(tn_linear_activation(x, w, b, r, names[f], &y, &before), TN_OK);
                ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y, c), NULL)), TN_OK);
                tn_tensor *got[5] = { y, tn_tensor_grad(x), tn_tensor_grad(w), tn_tensor_grad(b),
                                      sum ? tn_tensor_grad(r) : y };
                if (threads == 1) {
                    tn_tensor *x2 = leaf(tn_clone(tn_detach(x))),
                              *w2 = leaf(tn_clone(tn_detach(w)));
                    tn_tensor *b2 = leaf(tn_clone(tn_detach(b)));
                    tn_tensor *y2 = follow(f, tn_linear(x2, w2, b2));
                    if (sum)
                        y2 = tn_add(y2, tn_detach(r), NULL);
                    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y2, c), NULL)), TN_OK);
                    same_bits(got[1], tn_tensor_grad(x2), names[f]);
                    same_bits(got[2], tn_tensor_grad(w2), names[f]);
                    same_bits(got[3], tn_tensor_grad(b2), names[f]);
                    if (sum)
                        same_bits(got[4], c, "what goes to the residual");
                    memcpy(first, got, sizeof first);
                }
                for (int i = 0; i < 5; i++)
                    same_bits(got[i], first[i], names[f]);
            }
        }
    ck_assert_int_eq(tn_set_num_threads(1), TN_OK);
}
END_TEST

/* As `x`, in memory with channels last. */
static tn_tensor *channels_last(tn_tensor *x)
{
    tn_ints s = tn_tensor_shape(x);
    int64_t strides[4] = { s.at[1] * s.at[2] * s.at[3], 1, s.at[3] * s.at[1], s.at[1] };

    return tn_copy_(tn_tensor_empty_strided(s, (tn_ints){ strides, 4 }, tn_tensor_dtype(x), NULL),
                    x);
}

START_TEST(normalisation_with_relu_has_the_bits_of_its_parts)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64 };
    static const int64_t dims[] = { 0, 2, 3 };

    for (int d = 0; d < 2; d++)
        for (int last = 0; last < 2; last++)
            for (int sum = 0; sum < 2; sum++)
                for (int threads = 1; threads <= 4; threads *= 2) {
                    TN_SCOPE;
                    tn_tensor *in[4], *again[4], *c, *y, *whole, *mean, *var;

                    ck_assert_int_eq(tn_set_num_threads(threads), TN_OK);
                    in[0] = drawn(TN_SHAPE(3, 37, 20, 11), dtypes[d], 1);
                    in[1] = drawn(TN_SHAPE(37, 1, 1), dtypes[d], 2);
                    in[2] = drawn(TN_SHAPE(37, 1, 1), dtypes[d], 3);
                    in[3] = drawn(TN_SHAPE(3, 37, 20, 11), dtypes[d], 4);
                    c = drawn(TN_SHAPE(3, 37, 20, 11), dtypes[d], 5);
                    if (last) {
                        in[0] = channels_last(in[0]);
                        in[3] = channels_last(in[3]);
                        c = channels_last(c);
                    }
                    for (int i = 0; i < 4; i++) {
                        again[i] = leaf(tn_clone(in[i]));
                        leaf(in[i]);
                    }
                    ck_assert_int_eq(tn_standardize_relu(in[0], in[1], in[2], sum ? in[3] : TN_NONE,
                                                         (tn_ints){ dims, 3 }, NULL, &y, &mean,
                                                         &var),
                                     TN_OK);
                    ck_assert_int_eq(tn_standardize(again[0], again[1], again[2],
                                                    (tn_ints){ dims, 3 }, NULL, &whole, &mean,
                                                    &var),
                                     TN_OK);
                    if (sum)
                        whole = tn_add(whole, again[3], NULL);
                    whole = tn_relu(whole);
                    same_bits(y, whole, "y");
                    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y, c), NULL)), TN_OK);
                    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(whole, c), NULL)), TN_OK);
                    for (int i = 0; i < 3 + sum; i++)
                        same_bits(tn_tensor_grad(in[i]), tn_tensor_grad(again[i]), "gradient");
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
    for (int training = 1; training >= 0; training--) {
        o.training = r.training = training == 1;
        o.momentum = r.momentum = 0.25;
        whole = tn_relu(tn_add(tn_batch_norm(x, mean[0], var[0], TN_NONE, TN_NONE, &o), x, NULL));
        y = tn_batch_norm_relu(x, mean[1], var[1], TN_NONE, TN_NONE, x, &r);
        same_bits(y, whole, "y");
        same_bits(mean[1], mean[0], "mean");
        same_bits(var[1], var[0], "var");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fused");
    TCase *cases = tcase_create("fused");
    SRunner *runner;
    int failed;

    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, a_linear_layer_in_one_has_the_bits_of_its_parts);
    tcase_add_test(cases, products_of_few_rows_are_right);
    tcase_add_test(cases, gradients_and_threads_do_not_change_a_bit);
    tcase_add_test(cases, normalisation_with_relu_has_the_bits_of_its_parts);
    tcase_add_test(cases, running_moments_move_as_with_batch_norm);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
