/* SPDX-License-Identifier: MIT
 *
 * Max pooling and its gradient on the CPU compared with plain loops: images, and gradients that
 * come in, with the channels first and last. Average pooling in both layouts. */
#include "tests/libcheck.h"
#include <math.h>
#include <stdlib.h>

#include <tenon/tenon.h>

enum { N = 3, C = 20, H = 9, W = 7, K = 3, STEP = 2, PAD = 1, DOWN = 5, ACROSS = 4 };

static float x[N][C][H][W], gy[N][C][DOWN][ACROSS], y[N][C][DOWN][ACROSS], gx[N][C][H][W];
static int64_t places[N][C][DOWN][ACROSS];

static void plain(void)
{
    for (int i = 0; i < N * C * H * W; i++)
        (&x[0][0][0][0])[i] = (float)(i * 7919 % 4201) - 2000;
    for (int i = 0; i < N * C * DOWN * ACROSS; i++)
        (&gy[0][0][0][0])[i] = (float)(i * 31 % 257) - 100;
    for (int i = 0; i < N * C * DOWN * ACROSS; i++) {
        int n = i / (C * DOWN * ACROSS), c = i / (DOWN * ACROSS) % C, h = i / ACROSS % DOWN,
            w = i % ACROSS, best = -1;

        for (int k = 0; k < K * K; k++) {
            int row = h * STEP - PAD + k / K, column = w * STEP - PAD + k % K;

            if (row >= 0 && row < H && column >= 0 && column < W &&
                (best < 0 || x[n][c][row][column] > x[n][c][best / W][best % W]))
                best = row * W + column;
        }
        y[n][c][h][w] = x[n][c][best / W][best % W];
        places[n][c][h][w] = best;
        gx[n][c][best / W][best % W] += gy[n][c][h][w];
    }
}

/* Returns the same numbers; if `last`, the channels come last in memory. */
static tn_tensor *laid(tn_tensor *from, bool last)
{
    tn_tensor *to;

    if (!last)
        return from;
    to = tn_permute(tn_tensor_empty(TN_SHAPE(tn_tensor_size(from, 0), tn_tensor_size(from, 2),
                                             tn_tensor_size(from, 3), tn_tensor_size(from, 1)),
                                    tn_tensor_dtype(from), NULL),
                    TN_INTS(0, 3, 1, 2));
    return tn_copy_(to, from);
}

static void equal(tn_tensor *got, const void *wanted, size_t bytes)
{
    char *numbers = malloc(bytes);

    ck_assert_msg(got != NULL, "%s", tn_error_last()->message);
    ck_assert_ptr_nonnull(numbers);
    ck_assert_int_eq(tn_tensor_copy_out(got, numbers, bytes), TN_OK);
    ck_assert_mem_eq(numbers, wanted, bytes);
    free(numbers);
}

START_TEST(every_layout_of_image_and_gradient_gives_the_same)
{
    plain();
    for (int way = 0; way < 4; way++) {
        TN_SCOPE;
        bool image_last = way & 1, gradient_last = way & 2;
        tn_tensor *image = laid(tn_tensor_from(x, TN_F32, TN_SHAPE(N, C, H, W)), image_last);
        tn_tensor *gradient = laid(tn_tensor_from(gy, TN_F32, TN_SHAPE(N, C, DOWN, ACROSS)),
                                   gradient_last);
        tn_tensor *where = NULL, *pooled = NULL, *back;

        ck_assert_int_eq(tn_max_pool(image, TN_INTS(K, K), &pooled, &where, TN_INTS(STEP, STEP),
                                     TN_INTS(PAD, PAD)),
                         TN_OK);
        equal(pooled, y, sizeof y);
        equal(where, places, sizeof places);
        /* Both results are laid out as the image is. */
        ck_assert_int_eq(tn_tensor_strides(pooled).at[1], image_last ? 1 : DOWN * ACROSS);
        ck_assert_int_eq(tn_tensor_strides(where).at[1], image_last ? 1 : DOWN * ACROSS);
        back = tn_max_pool_grad(gradient, where, TN_INTS(H, W));
        equal(back, gx, sizeof gx);
        /* It has the layout of the image, whatever its gradient has: the previous operator expects
         * that. */
        ck_assert_int_eq(tn_tensor_strides(back).at[1], image_last ? 1 : H * W);
    }
}
END_TEST

/* Equal elements and NaN: the first one in row-major order is the maximum, for few channels and
 * many, in both layouts. */
START_TEST(the_first_of_equal_maxima_is_the_one_in_every_layout)
{
    const int64_t channels[] = { 3, 40, 130 };

    for (int i = 0; i < 24; i++) {
        TN_SCOPE;
        const int64_t c = channels[i % 3], count = 2 * c * 11 * 10, step = 1 + i / 3 % 2;
        const bool two = i / 6 % 2, nan = i >= 12;
        const tn_ints kernel = two ? TN_INTS(2, 2) : TN_INTS(3, 3);
        tn_max_pool_options o = TN_MAX_POOL_OPTIONS;
        float *values = malloc((size_t)count * sizeof *values);
        tn_tensor *image, *pooled[2], *where[2];

        ck_assert_ptr_nonnull(values);
        for (int64_t k = 0; k < count; k++)
            values[k] = nan && k * 31 % 17 < 2 ? NAN : (float)(k * 7919 % 5);
        image = tn_tensor_from(values, TN_F32, TN_SHAPE(2, c, 11, 10));
        if (i % 2)
            image = tn_cast(image, TN_F64);
        free(values);
        o.stride = TN_INTS(step, step);
        o.padding = two ? TN_INTS(0, 1) : TN_INTS(1, 1);
        for (int last = 0; last < 2; last++)
            ck_assert_int_eq(tn_max_pool(laid(image, last), kernel, &pooled[last], &where[last],
                                         o.stride, o.padding),
                             TN_OK);
        ck_assert_int_eq(tn_tensor_strides(pooled[1]).at[1], 1);
        ck_assert_double_eq(tn_item(tn_sum(tn_ne(where[0], where[1]))), 0);
        ck_assert_double_eq(
            tn_item(tn_sum(tn_ne(tn_nan_to_num(pooled[0]), tn_nan_to_num(pooled[1])))), 0);
        ck_assert_double_eq(tn_item(tn_sum(tn_ne(tn_isnan(pooled[0]), tn_isnan(pooled[1])))), 0);
        ck_assert_int_eq(tn_item(tn_any(tn_isnan(pooled[0]))) > 0, nan);
    }
}
END_TEST

/* ---- against plain loops, for many shapes ---- */

struct figure {
    int64_t channels, high, wide, kernel[2], stride[2], padding[2], dilation[2];
};

static const struct figure figures[] = {
    { 1, 6, 8, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 } },
    { 3, 5, 9, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 1, 1 } },
    { 6, 7, 7, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 } },
    { 9, 7, 11, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 } },
    { 16, 6, 6, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 } },
    { 5, 1, 33, { 1, 2 }, { 1, 2 }, { 0, 0 }, { 1, 1 } },
    { 5, 1, 33, { 1, 3 }, { 1, 1 }, { 0, 1 }, { 1, 1 } },
    { 4, 8, 13, { 2, 3 }, { 1, 3 }, { 1, 1 }, { 3, 2 } },
    { 7, 4, 2, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
    { 2, 3, 3, { 3, 3 }, { 3, 3 }, { 1, 1 }, { 2, 2 } },
    { 12, 4, 4, { 4, 4 }, { 4, 4 }, { 0, 0 }, { 1, 1 } },
    { 130, 5, 6, { 2, 2 }, { 2, 2 }, { 0, 1 }, { 1, 1 } },
    { 300, 3, 4, { 1, 1 }, { 2, 2 }, { 0, 0 }, { 1, 1 } },
};

/* Whether v is the maximum of a window whose maximum so far is b, at a smaller index. */
static bool beats(float v, float b)
{
    return (isnan(v) && !isnan(b)) || v > b;
}

/* Computes the maximum of each window of a plane, and its index. Returns the number of windows. */
static int64_t pool_plane(const struct figure *f, const float *plane, float *most, int64_t *where)
{
    int64_t out[2], n = 0, size[2] = { f->high, f->wide };

    for (int d = 0; d < 2; d++)
        out[d] = (size[d] + 2 * f->padding[d] - f->dilation[d] * (f->kernel[d] - 1) - 1) /
                     f->stride[d] +
                 1;
    for (int64_t i = 0; i < out[0] * out[1]; i++, n++) {
        int64_t best = -1;

        for (int64_t k = 0; k < f->kernel[0] * f->kernel[1]; k++) {
            int64_t row = i / out[1] * f->stride[0] - f->padding[0] +
                          k / f->kernel[1] * f->dilation[0];
            int64_t column = i % out[1] * f->stride[1] - f->padding[1] +
                             k % f->kernel[1] * f->dilation[1];

            if (row >= 0 && row < f->high && column >= 0 && column < f->wide &&
                (best < 0 || beats(plane[row * f->wide + column], plane[best])))
                best = row * f->wide + column;
        }
        ck_assert_int_ge(best, 0);
        most[n] = plane[best];
        where[n] = best;
    }
    return n;
}

static void pool_figure(const struct figure *f, tn_dtype dtype, bool last, int number)
{
    enum { IMAGES = 2, MOST = 16384 };
    static float image[MOST], most[MOST], got[MOST];
    static int64_t where[MOST], got_where[MOST];
    int64_t area = f->high * f->wide, planes = IMAGES * f->channels, n = 0;
    tn_tensor *from, *pooled, *at;
    TN_SCOPE;

    ck_assert_int_le(planes * area, MOST);
    for (int64_t i = 0; i < planes * area; i++) {
        int64_t r = (i * 7919 + number * 104729) % 1009;
        image[i] = r % 13 == 0 ? NAN : r % 7 == 0 ? -INFINITY : (float)(r % 6) - 3;
    }
    for (int64_t i = 0; i < planes; i++)
        n += pool_plane(f, image + i * area, most + n, where + n);
    from = tn_tensor_from(image, TN_F32, TN_SHAPE(IMAGES, f->channels, f->high, f->wide));
    ck_assert_int_eq(tn_max_pool(laid(tn_cast(from, dtype), last), ((tn_ints){ f->kernel, 2 }),
                                 &pooled, &at, ((tn_ints){ f->stride, 2 }),
                                 ((tn_ints){ f->padding, 2 }), ((tn_ints){ f->dilation, 2 })),
                     TN_OK);
    ck_assert_int_eq(tn_tensor_numel(pooled), n);
    pooled = tn_cast(pooled, TN_F32);
    ck_assert_int_eq(tn_tensor_copy_out(pooled, got, (size_t)n * sizeof *got), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(at, got_where, (size_t)n * sizeof *got_where), TN_OK);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(got_where[i] == where[i] &&
                          (got[i] == most[i] || (isnan(got[i]) && isnan(most[i]))),
                      "figure %d, %s, last %d: window %d is %g at %d; expected %g at %d", number,
                      tn_dtype_name(dtype), (int)last, (int)i, (double)got[i], (int)got_where[i],
                      (double)most[i], (int)where[i]);
}

START_TEST(maxima_of_many_shapes_are_those_of_plain_loops)
{
    for (int i = 0; i < (int)(sizeof figures / sizeof figures[0]); i++)
        for (int way = 0; way < 4; way++)
            pool_figure(&figures[i], way & 1 ? TN_F64 : TN_F32, way & 2, i);
}
END_TEST

/* The order of the sums is that of the windows' elements in both layouts. */
START_TEST(averages_have_the_same_bits_in_every_layout)
{
    tn_avg_pool_options o = TN_AVG_POOL_OPTIONS;
    tn_avg_pool_grad_options g = TN_AVG_POOL_GRAD_OPTIONS;

    plain();
    o.stride = g.stride = TN_INTS(STEP, STEP);
    o.padding = g.padding = TN_INTS(PAD, PAD);
    for (int counts = 0; counts < 2; counts++) {
        TN_SCOPE;
        tn_tensor *image = tn_tensor_from(x, TN_F32, TN_SHAPE(N, C, H, W));
        tn_tensor *gradient = tn_tensor_from(gy, TN_F32, TN_SHAPE(N, C, DOWN, ACROSS));
        tn_tensor *first, *last, *back, *back_last;

        o.count_include_pad = g.count_include_pad = counts;
        first = tn_avg_pool(image, TN_INTS(K, K), o.stride, o.padding, o.ceil_mode,
                            o.count_include_pad);
        last = tn_avg_pool(laid(image, true), TN_INTS(K, K), o.stride, o.padding, o.ceil_mode,
                           o.count_include_pad);
        ck_assert_int_eq(tn_tensor_strides(first).at[1], DOWN * ACROSS);
        ck_assert_int_eq(tn_tensor_strides(last).at[1], 1);
        ck_assert_int_eq(tn_tensor_copy_out(first, y, sizeof y), TN_OK);
        equal(last, y, sizeof y);
        /* the window in the corner: 2 x 2 elements and, with padding, 9 */
        ck_assert_float_eq(y[0][0][0][0],
                           (x[0][0][0][0] + x[0][0][0][1] + x[0][0][1][0] + x[0][0][1][1]) /
                               (counts ? 9 : 4));
        back = tn_avg_pool_grad(gradient, TN_INTS(H, W), TN_INTS(K, K), g.stride, g.padding,
                                g.ceil_mode, g.count_include_pad);
        back_last = tn_avg_pool_grad(laid(gradient, true), TN_INTS(H, W), TN_INTS(K, K), g.stride,
                                     g.padding, g.ceil_mode, g.count_include_pad);
        ck_assert_int_eq(tn_tensor_strides(back_last).at[1], 1);
        ck_assert_int_eq(tn_tensor_copy_out(back, gx, sizeof gx), TN_OK);
        equal(back_last, gx, sizeof gx);
        /* the corner is only in the first window */
        ck_assert_float_eq(gx[0][0][0][0], gy[0][0][0][0] / (counts ? 9 : 4));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pooling");
    TCase *tests = tcase_create("max");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tests, every_layout_of_image_and_gradient_gives_the_same);
    tcase_add_test(tests, the_first_of_equal_maxima_is_the_one_in_every_layout);
    tcase_add_test(tests, maxima_of_many_shapes_are_those_of_plain_loops);
    tcase_add_test(tests, averages_have_the_same_bits_in_every_layout);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
