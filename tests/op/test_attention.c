/* SPDX-License-Identifier: MIT
 *
 * Attention over blocks, compared with attention that computes the whole matrix of scores: more
 * queries and keys than a block has, masks, shared heads, dropout; first and second derivatives;
 * memory; bits; layout of results. */
#include "tests/op/suite.h"

#include <stdio.h>

static uint64_t drawn;

/* Normal numbers, in the memory order that `order` names; NULL: row by row. */
static tn_tensor *numbers(tn_dtype dtype, tn_ints shape, const int64_t *order)
{
    int64_t away[TN_MAX_DIMS], back[TN_MAX_DIMS];
    tn_tensor *x;

    for (int64_t i = 0; i < shape.count; i++)
        away[i] = shape.at[order != NULL ? order[i] : i];
    for (int64_t i = 0; i < shape.count; i++)
        back[order != NULL ? order[i] : i] = i;
    x = tn_philox_normal(tn_tensor_empty((tn_ints){ away, shape.count }, TN_F64, NULL), TN_NONE, 0,
                         1, 3, (int64_t)(drawn += 1 << 20));
    return with_grad(tn_detach(tn_permute(tn_cast(x, dtype), (tn_ints){ back, shape.count })));
}

static tn_tensor *wide(tn_tensor *x)
{
    return tn_tensor_dtype(x) == TN_BOOL ? x : tn_cast(x, TN_F64);
}

static tn_tensor *shared(tn_tensor *x, int64_t times)
{
    tn_ints s = tn_tensor_shape(x);

    return tn_reshape(
        tn_expand(tn_unsqueeze(x, 2), TN_SHAPE(s.at[0], s.at[1], times, s.at[2], s.at[3])),
        TN_SHAPE(s.at[0], s.at[1] * times, s.at[2], s.at[3]));
}

/* Computes attention in float64 with the whole matrix of scores, by other operators. */
static tn_tensor *plainly(tn_tensor *q, tn_tensor *k, tn_tensor *v, tn_tensor *mask,
                          const tn_scaled_dot_product_attention_options *o)
{
    tn_dropout_options drop = TN_DROPOUT_OPTIONS;
    tn_tensor *s, *p;

    if (o->enable_gqa) {
        int64_t times = tn_tensor_size(q, 1) / tn_tensor_size(k, 1);

        k = shared(k, times);
        v = shared(v, times);
    }
    s = tn_mul_scalar(tn_matmul(wide(q), tn_transpose(wide(k), -2, -1)),
                      o->scale == o->scale ? o->scale
                                           : 1 / sqrt(fmax(1, (double)tn_tensor_size(q, -1))));
    if (o->is_causal)
        s = tn_masked_fill(
            s, tn_logical_not(tn_tril(tn_tensor_full(tn_tensor_shape(s), 1, TN_F64, NULL))),
            -INFINITY);
    if (mask != TN_NONE)
        s = tn_tensor_dtype(mask) == TN_BOOL ? tn_masked_fill(s, tn_logical_not(mask), -INFINITY)
                                             : tn_add(s, wide(mask));
    p = tn_softmax(s, -1);
    p = tn_masked_fill(p, tn_ne(tn_detach(p), tn_detach(p)), 0); /* rows of which nothing is kept */
    drop.p = o->dropout_p;
    if (o->dropout_p > 0) { /* drawn as for a tensor of q's dtype */
        tn_tensor *ones = tn_tensor_full(tn_tensor_shape(s), 1, tn_tensor_dtype(q), NULL);

        p = tn_mul(p, wide(tn_dropout(ones, drop.p, drop.training)));
    }
    return tn_matmul(p, wide(v));
}

static double largest(tn_tensor *x)
{
    return tn_tensor_numel(x) == 0 ? 0 : tn_item(tn_amax(tn_abs(wide(tn_detach(x)))));
}

static void near(const char *what, tn_tensor *got, tn_tensor *wanted, double within)
{
    double apart;

    ck_assert_msg(got != NULL && wanted != NULL, "%s: %s", what, tn_error_text());
    ck_assert(got != TN_NONE && wanted != TN_NONE);
    apart = largest(tn_sub(wide(got), wide(wanted)));
    ck_assert_msg(apart <= within * (1 + largest(wanted)), "%s: %g apart", what, apart);
}

/* Fails unless the result and all gradients are near those of plainly(). */
static void agree(const char *what, tn_tensor *q, tn_tensor *k, tn_tensor *v, tn_tensor *mask,
                  const tn_scaled_dot_product_attention_options *o, double within)
{
    static const char *const names[] = { "gq", "gk", "gv", "gmask" };
    tn_tensor *in[4] = { q, k, v, mask }, *got[4], *wanted[4], *y, *plain, *direction;
    int64_t n = mask != TN_NONE && tn_tensor_requires_grad(mask) ? 4 : 3;

    tn_random_seed(77);
    y = tn_scaled_dot_product_attention(q, k, v, mask, o->dropout_p, o->is_causal, o->scale,
                                        o->enable_gqa);
    tn_random_seed(77);
    plain = plainly(q, k, v, mask, o);
    near(what, y, plain, within);
    ck_assert_int_eq(tn_tensor_dtype(y), tn_tensor_dtype(q));
    direction = tn_detach(tn_sin(tn_mul_scalar(plain, 3)));
    y = tn_sum(tn_mul(wide(y), direction));
    plain = tn_sum(tn_mul(plain, direction));
    ck_assert_int_eq(tn_grad(&y, NULL, 1, in, got, n, NULL), TN_OK);
    ck_assert_int_eq(tn_grad(&plain, NULL, 1, in, wanted, n, NULL), TN_OK);
    for (int64_t i = 0; i < n; i++)
        near(names[i], got[i], wanted[i], 3 * within);
}

static const struct {
    tn_dtype dtype;
    double within;
} kinds[] = { { TN_F64, 1e-13 }, { TN_F32, 1e-5 }, { TN_BF16, 2e-2 }, { TN_F16, 3e-3 } };

START_TEST(blocks_give_what_the_matrix_of_scores_gives)
{
    /* rows, keys, features of q and v, heads, heads of k: within a block, several, many heads, odd
     * sizes, one */
    static const int64_t sizes[][6] = { { 5, 7, 4, 3, 2, 2 },       { 3, 260, 20, 9, 2, 1 },
                                        { 130, 300, 20, 9, 2, 1 },  { 270, 200, 33, 40, 2, 2 },
                                        { 140, 193, 8, 16, 12, 4 }, { 1, 1, 1, 1, 1, 1 },
                                        { 0, 3, 2, 2, 2, 2 },       { 3, 0, 2, 2, 2, 2 },
                                        { 3, 2, 0, 2, 2, 1 },       { 3, 2, 2, 0, 1, 1 },
                                        { 1, 515, 64, 33, 4, 2 } };
    static const int64_t order[] = { 0, 2, 1, 3 };

    for (size_t t = 0; t < sizeof kinds / sizeof kinds[0]; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int way = 0; way < 6; way++) {
                TN_SCOPE;
                char what[60];
                const int64_t *s = sizes[i];
                tn_scaled_dot_product_attention_options o = TN_SCALED_DOT_PRODUCT_ATTENTION_OPTIONS;
                tn_dtype dtype = kinds[t].dtype;
                tn_tensor *q = numbers(dtype, TN_SHAPE(2, s[4], s[0], s[2]), order),
                          *mask = TN_NONE;
                tn_tensor *k = numbers(dtype, TN_SHAPE(2, s[5], s[1], s[2]),
                                       way == 5 ? NULL : order);
                tn_tensor *v = numbers(dtype, TN_SHAPE(2, s[5], s[1], s[3]), order);

                snprintf(what, sizeof what, "dtype %d, size %d, way %d", (int)t, (int)i, way);
                o.enable_gqa = s[4] != s[5];
                o.is_causal = way == 1;
                if (way == 2) /* in rows 0, 3, 6 ... all keys are masked */
                    mask = tn_gt(tn_remainder(tn_arange(q, 0, (double)(s[0] * s[1])),
                                              tn_tensor_full((tn_ints){ NULL, 0 }, 3, dtype, NULL)),
                                 tn_tensor_full((tn_ints){ NULL, 0 }, 0.5, dtype, NULL)),
                    mask = tn_mul(
                        tn_cast(tn_reshape(mask, TN_SHAPE(s[0], s[1])), TN_I64),
                        tn_unsqueeze(
                            tn_remainder(tn_cast(tn_arange(q, 0, (double)s[0]), TN_I64),
                                         tn_tensor_full((tn_ints){ NULL, 0 }, 3, TN_I64, NULL)),
                            1)),
                    mask = tn_cast(mask, TN_BOOL);
                if (way == 3)
                    mask = numbers(dtype, TN_SHAPE(s[4], 1, s[1]), NULL);
                if (way == 4)
                    o.scale = 0.7;
                if (way == 5)
                    o.dropout_p = 0.3;
                agree(what, q, k, v, mask, &o, kinds[t].within);
                FINE();
            }
}
END_TEST

/* 2, 3 and 5 dimensions, batches that broadcast. */
START_TEST(leading_dimensions_broadcast)
{
    TN_SCOPE;
    tn_scaled_dot_product_attention_options o = TN_SCALED_DOT_PRODUCT_ATTENTION_OPTIONS;
    tn_tensor *k = numbers(TN_F64, TN_SHAPE(4, 3), NULL),
              *v = numbers(TN_F64, TN_SHAPE(4, 2), NULL);
    tn_tensor *mask = tn_gt(tn_detach(numbers(TN_F64, TN_SHAPE(3, 1, 2, 1, 4), NULL)),
                            tn_tensor_full((tn_ints){ NULL, 0 }, 0, TN_F64, NULL));

    agree("rows", numbers(TN_F64, TN_SHAPE(5, 3), NULL), k, v, TN_NONE, &o, 1e-14);
    agree("one batch", numbers(TN_F64, TN_SHAPE(6, 5, 3), NULL), k, v, TN_NONE, &o, 1e-14);
    agree("two batches", numbers(TN_F64, TN_SHAPE(3, 2, 5, 3), NULL),
          numbers(TN_F64, TN_SHAPE(2, 4, 3), NULL), v, TN_NONE, &o, 1e-14);
    agree("three batches", numbers(TN_F64, TN_SHAPE(3, 2, 2, 5, 3), NULL), k,
          numbers(TN_F64, TN_SHAPE(2, 1, 4, 2), NULL), mask, &o, 1e-14);
    agree("the mask has more", numbers(TN_F64, TN_SHAPE(2, 5, 3), NULL), k, v,
          numbers(TN_F64, TN_SHAPE(6, 1, 5, 4), NULL), &o, 1e-14);
    agree("a mask for each", numbers(TN_F64, TN_SHAPE(2, 5, 3), NULL), k, v,
          numbers(TN_F64, TN_SHAPE(2, 5, 4), NULL), &o, 1e-14);
    FINE();
}
END_TEST

/* The gradient of the sum of the cubes of all first gradients is that of plainly(). */
START_TEST(second_derivatives_are_those_of_the_plain_way)
{
    for (int way = 0; way < 3; way++) {
        TN_SCOPE;
        tn_scaled_dot_product_attention_options o = TN_SCALED_DOT_PRODUCT_ATTENTION_OPTIONS;
        tn_backward_options again = { .size = sizeof again, .create_graph = 1 };
        tn_tensor *in[] = { numbers(TN_F64, TN_SHAPE(1, 2, 3, 4), NULL),
                            numbers(TN_F64, TN_SHAPE(1, 1, 5, 4), NULL),
                            numbers(TN_F64, TN_SHAPE(1, 1, 5, 3), NULL),
                            numbers(TN_F64, TN_SHAPE(3, 5), NULL) };
        tn_tensor *result[2][4], *mask = way == 2 ? in[3] : TN_NONE;
        int64_t n = way == 2 ? 4 : 3;

        o.enable_gqa = true;
        o.dropout_p = way == 1 ? 0.4 : 0;
        for (int which = 0; which < 2; which++) {
            tn_tensor *y, *grads[4], *total = NULL;

            tn_random_seed(5);
            y = which == 0 ? tn_scaled_dot_product_attention(in[0], in[1], in[2], mask, o.dropout_p,
                                                             o.is_causal, o.scale, o.enable_gqa)
                           : plainly(in[0], in[1], in[2], mask, &o);
            y = tn_sum(tn_mul(y, tn_square(y)));
            ck_assert_msg(tn_grad(&y, NULL, 1, in, grads, n, &again) == TN_OK, "%s",
                          tn_error_text());
            for (int64_t i = 0; i < n; i++) {
                tn_tensor *part = tn_sum(tn_mul(grads[i], tn_square(grads[i])));

                total = total == NULL ? part : tn_add(total, part);
            }
            ck_assert_msg(tn_grad(&total, NULL, 1, in, result[which], n, NULL) == TN_OK, "%s",
                          tn_error_text());
        }
        for (int64_t i = 0; i < n; i++) {
            ck_assert_double_gt(largest(result[1][i]), 1e-6);
            near("second", result[0][i], result[1][i], 1e-12);
        }
        FINE();
    }
}
END_TEST

/* logsumexp is a result like y. */
START_TEST(logsumexp_has_a_gradient)
{
    TN_SCOPE;
    tn_tensor *q = numbers(TN_F64, TN_SHAPE(1, 2, 3, 4), NULL),
              *k = numbers(TN_F64, TN_SHAPE(1, 2, 5, 4), NULL), *in[] = { q, k };
    tn_tensor *y, *sums, *plain, *got[2], *wanted[2];

    ck_assert_int_eq(tn_attend(q, k, k, TN_NONE, TN_NONE, 0.5, &y, &sums), TN_OK);
    plain = tn_logsumexp(tn_mul_scalar(tn_matmul(q, tn_transpose(k, 2, 3)), 0.5),
                         ((tn_ints){ (const int64_t[]){ 3 }, 1 }));
    near("logsumexp", sums, plain, 1e-14);
    sums = tn_sum(tn_square(sums));
    plain = tn_sum(tn_square(plain));
    ck_assert_int_eq(tn_grad(&sums, NULL, 1, in, got, 2, NULL), TN_OK);
    ck_assert_int_eq(tn_grad(&plain, NULL, 1, in, wanted, 2, NULL), TN_OK);
    near("gq", got[0], wanted[0], 1e-13);
    near("gk", got[1], wanted[1], 1e-13);
    FINE();
}
END_TEST

static int64_t peak_of(int64_t keys)
{
    TN_SCOPE;
    tn_memory_stats stats;
    tn_tensor *q = with_grad(tn_tensor_full(TN_SHAPE(1, 2, keys, 16), 0.5, TN_F32, NULL));
    int64_t before;

    ck_assert_int_eq(tn_device_memory(tn_default_device(), &stats), TN_OK);
    before = stats.live;
    tn_device_reset_peak(tn_default_device());
    ck_assert_int_eq(tn_backward(tn_sum(tn_scaled_dot_product_attention(q, q, q))), TN_OK);
    ck_assert_int_eq(tn_device_memory(tn_default_device(), &stats), TN_OK);
    return stats.peak - before;
}

START_TEST(memory_grows_with_the_keys_not_with_their_square)
{
    int64_t few = peak_of(512), many = peak_of(2048);

    FINE();
    ck_assert_int_gt(few, 512 * 2 * 16 * 4); /* y at least */
    ck_assert_int_le(many, 5 * few);
    ck_assert_int_lt(many, INT64_C(2048) * 2048 * 2 * 4 / 8);
}
END_TEST

START_TEST(bits_do_not_depend_on_the_number_of_threads)
{
    static const int64_t sizes[][4] = { { 1, 2, 300, 260 }, { 5, 2, 150, 200 }, { 3, 4, 16, 20 } };
    int before = tn_num_threads();

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        TN_SCOPE;
        const int64_t *s = sizes[i];
        tn_tensor *in[] = { numbers(TN_F32, TN_SHAPE(s[0], s[1], s[2], 24), NULL),
                            numbers(TN_F32, TN_SHAPE(s[0], s[1], s[3], 24), NULL),
                            numbers(TN_F32, TN_SHAPE(s[0], s[1], s[3], 8), NULL) };
        tn_tensor *first[4];

        for (int threads = 1; threads <= 4; threads *= 2) {
            tn_tensor *y, *now[4];

            ck_assert_int_eq(tn_set_num_threads(threads), TN_OK);
            tn_random_seed(9);
            y = tn_scaled_dot_product_attention(in[0], in[1], in[2], TN_NONE, 0.2);
            now[3] = tn_detach(y);
            y = tn_sum(tn_mul(y, tn_square(y)));
            ck_assert_int_eq(tn_grad(&y, NULL, 1, in, now, 3, NULL), TN_OK);
            for (int j = 0; j < 4; j++) {
                if (threads == 1)
                    first[j] = now[j];
                ck_assert_double_eq(largest(tn_sub(first[j], now[j])), 0);
                ck_assert_double_gt(largest(now[j]), 0);
            }
        }
        FINE();
    }
    ck_assert_int_eq(tn_set_num_threads(before), TN_OK);
}
END_TEST

START_TEST(heads_of_a_joint_projection_are_read_and_written_where_they_lie)
{
    TN_SCOPE;
    tn_tensor *all = numbers(TN_F32, TN_SHAPE(2, 6, 3 * 8), NULL), *part[3], *y;

    for (int i = 0; i < 3; i++)
        part[i] = tn_transpose(tn_reshape(tn_narrow(all, 2, i * 8, 8), TN_SHAPE(2, 6, 2, 4)), 1, 2);
    y = tn_scaled_dot_product_attention(part[0], part[1], part[2]);
    ck_assert_ptr_nonnull(y);
    ck_assert(tn_tensor_is_contiguous(tn_transpose(y, 1, 2)));
    ck_assert(!tn_tensor_is_contiguous(y));
    FINE();
}
END_TEST

START_TEST(what_does_not_fit_is_refused_with_the_numbers)
{
    TN_SCOPE;
    tn_tensor *q = numbers(TN_F32, TN_SHAPE(2, 4, 3, 2), NULL), *y, *sums;
    tn_tensor *three = numbers(TN_F32, TN_SHAPE(2, 3, 3, 2), NULL);

    ck_assert_ptr_null(tn_scaled_dot_product_attention(q, three, three));
    FAILED(
        TN_ERR_RUNTIME,
        "k: wrong shape, got [2, 3, 3, 2]; expected dimensions before the last two that broadcast "
        "to [2, 4]");
    ck_assert_ptr_null(
        tn_scaled_dot_product_attention(q, three, q, numbers(TN_F32, TN_SHAPE(3, 3), NULL)));
    FAILED(
        TN_ERR_RUNTIME,
        "k: wrong shape, got [2, 3, 3, 2]; expected dimensions before the last two that broadcast "
        "to [2, 4]");
    ck_assert_ptr_null(
        tn_scaled_dot_product_attention(q, q, q, numbers(TN_F32, TN_SHAPE(3, 4), NULL)));
    FAILED(
        TN_ERR_RUNTIME,
        "mask: wrong shape, got [3, 4]; expected one that broadcasts to the scores [2, 4, 3, 3]");
    ck_assert_ptr_null(
        tn_scaled_dot_product_attention(q, q, q, numbers(TN_F64, TN_SHAPE(3, 3), NULL)));
    FAILED(TN_ERR_RUNTIME,
           "mask: wrong dtype, got float64 with q of float32; expected the same dtype: tn_cast the "
           "mask");
    ck_assert_ptr_null(tn_scaled_dot_product_attention(q, q, q, TN_NONE, 1.5));
    FAILED(TN_ERR_VALUE, "dropout_p: out of range, got 1.5");
    ck_assert_int_ne(tn_attend(q, three, three, TN_NONE, TN_NONE, 1, &y, &sums), TN_OK);
    FAILED(TN_ERR_RUNTIME, "G dividing H");
    ck_assert_int_ne(tn_attend(q, q, tn_cast(q, TN_F64), TN_NONE, TN_NONE, 1, &y, &sums), TN_OK);
    FAILED(TN_ERR_RUNTIME, "q or v: wrong dtype, got float32 and float64; expected the same");
    ck_assert_int_ne(
        tn_attend(q, q, q, numbers(TN_F32, TN_SHAPE(3, 3), NULL), TN_NONE, 1, &y, &sums, true),
        TN_OK);
    FAILED(TN_ERR_RUNTIME, "mask or is_causal: too many, got both");
}
END_TEST

START_TEST(a_refused_call_draws_no_random_numbers)
{
    TN_SCOPE;
    tn_tensor *q = numbers(TN_F32, TN_SHAPE(2, 4, 3, 2), NULL);
    tn_tensor *three = numbers(TN_F32, TN_SHAPE(2, 3, 3, 2), NULL);
    tn_tensor *mask = numbers(TN_F32, TN_SHAPE(3, 3), NULL);
    double wanted[4];

    tn_random_seed(5);
    tn_tensor *draws = tn_uniform_(tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL));
    for (int i = 0; i < 4; i++)
        wanted[i] = at(draws, i);
    tn_random_seed(5);
    ck_assert_ptr_null(tn_scaled_dot_product_attention(q, three, q, mask, 0.5));
    FAILED(
        TN_ERR_RUNTIME,
        "k: wrong shape, got [2, 3, 3, 2]; expected dimensions before the last two that broadcast "
        "to [2, 4]");
    draws = tn_uniform_(tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL));
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(at(draws, i), wanted[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attention");
    TCase *tcase = tcase_create("attention");

    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, blocks_give_what_the_matrix_of_scores_gives);
    tcase_add_test(tcase, leading_dimensions_broadcast);
    tcase_add_test(tcase, second_derivatives_are_those_of_the_plain_way);
    tcase_add_test(tcase, logsumexp_has_a_gradient);
    tcase_add_test(tcase, memory_grows_with_the_keys_not_with_their_square);
    tcase_add_test(tcase, bits_do_not_depend_on_the_number_of_threads);
    tcase_add_test(tcase, heads_of_a_joint_projection_are_read_and_written_where_they_lie);
    tcase_add_test(tcase, what_does_not_fit_is_refused_with_the_numbers);
    tcase_add_test(tcase, a_refused_call_draws_no_random_numbers);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
