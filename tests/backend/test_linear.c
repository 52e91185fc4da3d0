/* SPDX-License-Identifier: MIT
 *
 * Linear layers with the activation and the sum that follow them, on the CPU: they must have the
 * bits of separate calls of the operators, for each way of computing the product and for any number
 * of threads. */
#include "tests/backend/fused.h"

static const char *const names[] = { "none", "relu", "gelu", "gelu_tanh", "silu" };

static tn_tensor *follow(int which, tn_tensor *z)
{
    return which == 1   ? tn_relu(z)
           : which == 2 ? tn_gelu(z)
           : which == 3 ? tn_gelu(z, "tanh")
           : which == 4 ? tn_silu(z)
                        : z;
}

/* Rows, inputs, outputs: a single row, few rows, strips, strips of the transposed product (few
 * rows, many outputs) with one and two blocks of depth, last panels that are not full. */
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
                        whole = tn_add(whole, r);
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

/* More columns than are computed at once: bias, activation and residual follow each part. */
START_TEST(a_wide_layer_has_the_values_of_its_parts)
{
    TN_SCOPE;
    tn_tensor *x = drawn(TN_SHAPE(7, 520), TN_F32, 1), *w = drawn(TN_SHAPE(12500, 520), TN_F32, 2);
    tn_tensor *b = drawn(TN_SHAPE(12500), TN_F32, 3), *r = drawn(TN_SHAPE(7, 12500), TN_F32, 4);
    tn_tensor *y, *before, *z[2], *whole;

    for (int64_t i = 0; i < 2; i++)
        z[i] = tn_linear(x, tn_narrow(w, 0, i * 6250, 6250), tn_narrow(b, 0, i * 6250, 6250));
    whole = tn_cat(z, 2, 1);
    ck_assert_int_eq(tn_linear_activation(x, w, b, r, "gelu", &y, &before), TN_OK);
    ck_assert_int_eq(tn_allclose(before, whole, 1e-5, 1e-4), 1);
    ck_assert_int_eq(tn_allclose(y, tn_add(tn_gelu(whole), r), 1e-5, 1e-4), 1);
    ck_assert_int_eq(tn_allclose(tn_linear(x, w, b), whole, 1e-5, 1e-4), 1);
}
END_TEST

/* Compared with sums in double: the ways could have equal bits and all be wrong. */
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

        ck_assert_msg(!tn_failed(), "%s", tn_error_text());
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
                ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y, c))), TN_OK);
                tn_tensor *got[5] = { y, tn_tensor_grad(x), tn_tensor_grad(w), tn_tensor_grad(b),
                                      sum ? tn_tensor_grad(r) : y };
                if (threads == 1) {
                    tn_tensor *x2 = leaf(tn_clone(tn_detach(x))),
                              *w2 = leaf(tn_clone(tn_detach(w)));
                    tn_tensor *b2 = leaf(tn_clone(tn_detach(b)));
                    tn_tensor *y2 = follow(f, tn_linear(x2, w2, b2));
                    if (sum)
                        y2 = tn_add(y2, tn_detach(r));
                    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y2, c))), TN_OK);
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

RUN_SUITE("linear", a_wide_layer_has_the_values_of_its_parts,
          a_linear_layer_in_one_has_the_bits_of_its_parts, products_of_few_rows_are_right,
          gradients_and_threads_do_not_change_a_bit)
