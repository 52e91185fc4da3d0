/* SPDX-License-Identifier: MIT
 *
 * Convolutions and their gradients on the CPU compared with plain sums in double: all ways that
 * shapes choose between, images with channels first and last, and with TENON_MATH=exact. The
 * strides of images and results: test_conv_layouts.c. */
#include "tests/libcheck.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#include "tests/backend/conv_shapes.h"

static uint64_t state = 1;

static double number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-52 - 1;
}

static int64_t product(const int64_t *row)
{
    return row[0] * row[1] * row[2];
}

typedef struct sums {
    int64_t count[DIMS], n_x, n_w, n_y;
    double *x, *w, *b, *gy, *y, *gx, *gw;
} sums;

static double *random_numbers(int64_t n)
{
    double *out = malloc((size_t)n * sizeof *out);

    ck_assert_ptr_nonnull(out);
    for (int64_t i = 0; i < n; i++)
        out[i] = (double)(float)number();
    return out;
}

static void plain_sums(const shape *s, sums *r)
{
    int64_t in = s->channels / s->groups, out = s->outputs / s->groups;

    for (int d = 0; d < DIMS; d++)
        r->count[d] = (s->size[d] + 2 * s->padding[d] - s->dilation[d] * (s->kernel[d] - 1) - 1) /
                          s->stride[d] +
                      1;
    r->n_x = s->images * s->channels * product(s->size);
    r->n_w = s->outputs * in * product(s->kernel);
    r->n_y = s->images * s->outputs * product(r->count);
    r->x = random_numbers(r->n_x);
    r->w = random_numbers(r->n_w);
    r->b = random_numbers(s->outputs);
    r->gy = random_numbers(r->n_y);
    r->y = calloc((size_t)r->n_y, sizeof(double));
    r->gx = calloc((size_t)r->n_x, sizeof(double));
    r->gw = calloc((size_t)r->n_w, sizeof(double));
    for (int64_t i = 0; i < r->n_y; i++) {
        int64_t place = i % product(r->count), o = i / product(r->count) % s->outputs,
                image = i / product(r->count) / s->outputs;
        int64_t at[DIMS] = { place / r->count[2] / r->count[1], place / r->count[2] % r->count[1],
                             place % r->count[2] };
        r->y[i] = s->bias ? r->b[o] : 0;
        for (int64_t c = 0; c < in; c++)
            for (int64_t t = 0; t < product(s->kernel); t++) {
                int64_t k[DIMS] = { t / s->kernel[2] / s->kernel[1],
                                    t / s->kernel[2] % s->kernel[1], t % s->kernel[2] },
                        from = image * s->channels + o / out * in + c;
                bool inside = true;
                for (int d = 0; d < DIMS; d++) {
                    int64_t p = at[d] * s->stride[d] - s->padding[d] + k[d] * s->dilation[d];
                    inside = inside && p >= 0 && p < s->size[d];
                    from = from * s->size[d] + p;
                }
                if (!inside)
                    continue;
                int64_t w = (o * in + c) * product(s->kernel) + t;
                r->y[i] += r->x[from] * r->w[w];
                r->gx[from] += r->gy[i] * r->w[w];
                r->gw[w] += r->gy[i] * r->x[from];
            }
    }
}

static void forget(sums *r)
{
    free(r->x);
    free(r->w);
    free(r->b);
    free(r->gy);
    free(r->y);
    free(r->gx);
    free(r->gw);
}

/* Returns images of the shape [n, c, the last `dims` of `size`], with the channels last in memory
 * if `last`. */
static tn_tensor *images(const double *values, int dims, int64_t n, int64_t c, const int64_t *size,
                         tn_dtype dtype, bool last)
{
    int64_t all[5] = { n, c }, strides[5], next = c;
    tn_tensor *plain, *x;

    memcpy(all + 2, size + DIMS - dims, (size_t)dims * sizeof *all);
    plain = tn_tensor_from(values, TN_F64, (tn_ints){ all, 2 + dims });
    strides[1] = 1;
    for (int d = 1 + dims; d >= 2; d--) {
        strides[d] = next;
        next *= all[d];
    }
    strides[0] = next;
    x = last ? tn_tensor_empty_strided((tn_ints){ all, 2 + dims }, (tn_ints){ strides, 2 + dims },
                                       dtype, NULL)
             : tn_tensor_empty((tn_ints){ all, 2 + dims }, dtype, NULL);
    return tn_copy_(x, plain);
}

static void check_near(const char *name, const char *what, tn_tensor *tensor, const double *right,
                       int64_t n, double tolerance)
{
    double largest = 0, *values = malloc((size_t)n * sizeof *values);

    ck_assert_msg(tensor != NULL, "%s, %s: %s", name, what, tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(tensor), n);
    ck_assert_int_eq(tn_tensor_copy_out(tn_reshape(tn_cast(tensor, TN_F64), TN_SHAPE(n)), values,
                                        (size_t)n * sizeof *values),
                     TN_OK);
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(right[i]));
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(values[i] - right[i]) <= tolerance * largest,
                      "%s, %s: element %lld is %.9g instead of %.9g (at most %g)", name, what,
                      (long long)i, values[i], right[i], largest);
    free(values);
}

static void compare(const shape *s, const sums *r, tn_dtype dtype, bool last, double tolerance)
{
    TN_SCOPE;
    tn_convolution_options o = TN_CONVOLUTION_OPTIONS;
    tn_convolution_grad_input_options gi = TN_CONVOLUTION_GRAD_INPUT_OPTIONS;
    tn_convolution_grad_weight_options gw = TN_CONVOLUTION_GRAD_WEIGHT_OPTIONS;
    int from = DIMS - s->dims;
    tn_ints size = { s->size + from, s->dims }, kernel = { s->kernel + from, s->dims };
    tn_tensor *x, *w, *b, *gy, *y;

    o.stride = gi.stride = gw.stride = (tn_ints){ s->stride + from, s->dims };
    o.padding = gi.padding = gw.padding = (tn_ints){ s->padding + from, s->dims };
    o.dilation = gi.dilation = gw.dilation = (tn_ints){ s->dilation + from, s->dims };
    o.groups = gi.groups = gw.groups = s->groups;
    x = images(r->x, s->dims, s->images, s->channels, s->size, dtype, last);
    w = images(r->w, s->dims, s->outputs, s->channels / s->groups, s->kernel, dtype, false);
    gy = images(r->gy, s->dims, s->images, s->outputs, r->count, dtype, last);
    b = s->bias ? tn_cast(tn_tensor_from(r->b, TN_F64, TN_SHAPE(s->outputs)), dtype) : TN_NONE;
    y = tn_convolution(x, w, b, o.stride, o.padding, o.dilation, o.groups);
    check_near(s->name, "result", y, r->y, r->n_y, tolerance);
    if (last && s->dims >= 2)
        ck_assert_int_eq(tn_tensor_strides(y).at[1], 1);
    check_near(
        s->name, "gradient of x",
        tn_convolution_grad_input(gy, w, size, gi.stride, gi.padding, gi.dilation, gi.groups),
        r->gx, r->n_x, tolerance);
    check_near(
        s->name, "gradient of the weight",
        tn_convolution_grad_weight(gy, x, kernel, gw.stride, gw.padding, gw.dilation, gw.groups),
        r->gw, r->n_w, tolerance);
}

static void compare_all(double tolerance)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        sums r;

        plain_sums(&shapes[i], &r);
        for (int last = 0; last < 2; last++) {
            compare(&shapes[i], &r, TN_F32, last, tolerance);
            compare(&shapes[i], &r, TN_F64, last, 1e-13);
        }
        forget(&r);
    }
}

START_TEST(convolutions_are_plain_sums_within_2e_5)
{
    compare_all(2e-5);
}
END_TEST

START_TEST(with_math_exact_convolutions_are_plain_sums_within_1e_6)
{
    setenv("TENON_MATH", "exact", 1);
    compare_all(1e-6);
}
END_TEST

START_TEST(loops_of_every_instruction_set_agree)
{
    static const char *const sets[] = { "baseline", "avx2", "avx512" };

    setenv("TENON_CPU_ISA", sets[_i], 1);
    if (tn_tensor_full(TN_SHAPE(1), 0, TN_F32, NULL) == NULL) { /* not on this processor */
        tn_error_clear();
        return;
    }
    compare_all(2e-5);
}
END_TEST

/* Without channels, a convolution is the bias, and its gradients are empty. */
START_TEST(no_channels_give_the_bias)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64 };

    for (int d = 0; d < 2; d++)
        for (int bias = 0; bias < 2; bias++)
            for (int64_t step = 1; step <= 2; step++) {
                TN_SCOPE;
                tn_tensor *x = tn_tensor_empty(TN_SHAPE(2, 0, 9, 9), dtypes[d], NULL);
                tn_tensor *w = tn_tensor_empty(TN_SHAPE(6, 0, 3, 3), dtypes[d], NULL), *y;

                y = tn_convolution(
                    x, w, bias ? tn_tensor_full(TN_SHAPE(6), 2.5, dtypes[d], NULL) : TN_NONE,
                    TN_INTS(step, step));
                ck_assert_msg(y != NULL, "%s", tn_error_text());
                ck_assert_int_eq(tn_tensor_numel(y), 12 * (step == 1 ? 49 : 16));
                ck_assert(tn_equal(
                    y, tn_tensor_full(tn_tensor_shape(y), bias ? 2.5 : 0.0, dtypes[d], NULL)));
            }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convolution");
    TCase *tcase = tcase_create("convolution");
    SRunner *runner;
    int failed;

    setenv("TENON_PLUGINS", "!kernels-onednn", 1); /* it has a test of its own */
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, convolutions_are_plain_sums_within_2e_5);
    tcase_add_test(tcase, with_math_exact_convolutions_are_plain_sums_within_1e_6);
    tcase_add_loop_test(tcase, loops_of_every_instruction_set_agree, 0, 3);
    tcase_add_test(tcase, no_channels_give_the_bias);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
