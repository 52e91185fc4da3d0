/* SPDX-License-Identifier: MIT
 *
 * Convolutions with the batch norm, the sum and the activation that follow them, on the CPU: they
 * must have the bits of separate calls of the operators, for each way of computing the convolution,
 * each order of strides and any number of threads. */
#include "tests/backend/fused.h"

enum { DIMS = 3 };

typedef struct shape {
    const char *name;
    int dims;
    int64_t images, channels, outputs, groups;
    int64_t size[DIMS], kernel[DIMS], stride, padding, dilation;
} shape;

static const shape shapes[] = {
    { "single pixels", 2, 2, 20, 40, 1, { 7, 5 }, { 1, 1 }, 1, 0, 1 },
    { "single pixels, stride", 2, 2, 32, 33, 1, { 8, 7 }, { 1, 1 }, 2, 0, 1 },
    { "single pixels, deep", 2, 1, 1100, 70, 1, { 7, 7 }, { 1, 1 }, 1, 0, 1 },
    { "one output", 2, 2, 12, 1, 1, { 9, 11 }, { 1, 1 }, 1, 0, 1 },
    { "few channels", 2, 2, 3, 40, 1, { 9, 17 }, { 3, 3 }, 1, 1, 1 },
    { "few channels, stride", 2, 1, 3, 20, 1, { 45, 17 }, { 7, 7 }, 2, 3, 1 },
    { "tiles", 2, 3, 32, 48, 1, { 16, 19 }, { 3, 3 }, 1, 1, 1 },
    { "tiles, many outputs", 2, 1, 64, 288, 1, { 14, 14 }, { 3, 3 }, 1, 1, 1 },
    { "copied windows", 2, 2, 40, 300, 1, { 9, 10 }, { 3, 3 }, 2, 1, 1 },
    { "copied windows in parts", 2, 1, 130, 35, 1, { 6, 7 }, { 3, 3 }, 2, 1, 1 },
    { "dilation", 2, 1, 33, 18, 1, { 11, 9 }, { 3, 3 }, 1, 2, 2 },
    { "groups", 2, 2, 24, 36, 3, { 8, 9 }, { 3, 3 }, 1, 1, 1 },
    { "depthwise", 2, 2, 37, 37, 37, { 9, 30 }, { 3, 3 }, 1, 1, 1 },
    { "depthwise, stride", 2, 2, 64, 64, 64, { 13, 14 }, { 3, 3 }, 2, 1, 1 },
    { "depthwise, wide", 2, 1, 19, 19, 19, { 5, 40 }, { 5, 5 }, 1, 2, 1 },
    { "depthwise, dilation", 2, 1, 33, 33, 33, { 12, 13 }, { 3, 3 }, 1, 2, 2 },
    { "one dimension", 1, 2, 16, 24, 1, { 50 }, { 5 }, 2, 2, 1 },
    { "one dimension, depthwise", 1, 2, 20, 20, 20, { 33 }, { 3 }, 1, 1, 1 },
    { "three dimensions", 3, 1, 6, 9, 1, { 5, 6, 7 }, { 3, 3, 3 }, 1, 1, 1 },
    { "one pixel", 2, 1, 40, 24, 1, { 3, 3 }, { 3, 3 }, 1, 0, 1 },
};
static const char *const names[] = { "none", "relu", "relu6", "silu", "hardswish" };
enum { SHAPES = sizeof shapes / sizeof *shapes, NAMES = sizeof names / sizeof *names };

/* The tensors of a call; TN_NONE where it has none. */
struct parts {
    tn_tensor *in[8];
    tn_convolution_activation_options o;
    int64_t numbers[3][DIMS];
};

static tn_tensor *follow(int which, tn_tensor *z)
{
    return which == 1   ? tn_relu(z)
           : which == 2 ? tn_relu6(z)
           : which == 3 ? tn_silu(z)
           : which == 4 ? tn_hardswish(z)
                        : z;
}

static tn_tensor *convolved(const struct parts *p)
{
    return tn_convolution(p->in[0], p->in[1], p->in[2], p->o.stride, p->o.padding, p->o.dilation,
                          p->o.groups);
}

static tn_tensor *by_parts(const struct parts *p, int which)
{
    tn_tensor *y = convolved(p);

    if (p->in[3] != TN_NONE)
        y = tn_batch_norm(y, p->in[3], p->in[4], p->in[5], p->in[6], false, 0.1, p->o.eps);
    if (p->in[7] != TN_NONE)
        y = tn_add(y, p->in[7]);
    return follow(which, y);
}

static tn_tensor *in_one(const struct parts *p, const char *name)
{
    tn_tensor *const *in = p->in;

    return tn_convolution_activation(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], name,
                                     p->o.stride, p->o.padding, p->o.dilation, p->o.groups,
                                     p->o.eps);
}

/* Returns x with the channels last. */
static tn_tensor *last(tn_tensor *x)
{
    int64_t there[5] = { 0 }, back[5] = { 0 };
    int32_t n = tn_tensor_ndim(x);

    for (int32_t d = 1; d < n; d++) {
        there[d] = d + 1 < n ? d + 1 : 1;
        back[d] = d == 1 ? n - 1 : d - 1;
    }
    return tn_permute(tn_copy(tn_permute(x, (tn_ints){ there, n })), (tn_ints){ back, n });
}

/* norm: 0 none, 1 without weight and bias, 2 with them. */
static void fill(struct parts *p, const shape *s, tn_dtype dtype, bool channels_last, bool bias,
                 int norm)
{
    int64_t x[2 + DIMS] = { s->images, s->channels },
                  w[2 + DIMS] = { s->outputs, s->channels / s->groups };

    memset(p, 0, sizeof *p);
    p->o = (tn_convolution_activation_options)TN_CONVOLUTION_ACTIVATION_OPTIONS;
    for (int d = 0; d < s->dims; d++) {
        x[2 + d] = s->size[d];
        w[2 + d] = s->kernel[d];
        p->numbers[0][d] = s->stride;
        p->numbers[1][d] = s->padding;
        p->numbers[2][d] = s->dilation;
    }
    p->o.stride = (tn_ints){ p->numbers[0], s->dims };
    p->o.padding = (tn_ints){ p->numbers[1], s->dims };
    p->o.dilation = (tn_ints){ p->numbers[2], s->dims };
    p->o.groups = s->groups;
    p->o.eps = 1e-3;
    for (int i = 0; i < 8; i++)
        p->in[i] = TN_NONE;
    p->in[0] = drawn((tn_ints){ x, 2 + s->dims }, dtype, 1);
    if (channels_last)
        p->in[0] = last(p->in[0]);
    p->in[1] = drawn((tn_ints){ w, 2 + s->dims }, dtype, 2);
    if (bias)
        p->in[2] = drawn(TN_SHAPE(s->outputs), dtype, 3);
    if (norm > 0) {
        p->in[3] = drawn(TN_SHAPE(s->outputs), dtype, 4);
        p->in[4] = tn_square(drawn(TN_SHAPE(s->outputs), dtype, 5));
    }
    if (norm > 1) {
        p->in[5] = drawn(TN_SHAPE(s->outputs), dtype, 6);
        p->in[6] = drawn(TN_SHAPE(s->outputs), dtype, 7);
    }
}

static void same_strides(const tn_tensor *a, const tn_tensor *b, const char *what)
{
    for (int32_t d = 0; d < tn_tensor_ndim(a); d++)
        ck_assert_msg(tn_tensor_strides(a).at[d] == tn_tensor_strides(b).at[d], "%s: strides",
                      what);
}

START_TEST(a_convolution_in_one_has_the_bits_of_its_parts)
{
    char what[120];

    for (int i = 0; i < SHAPES; i++)
        for (int way = 0; way < 2 * 2 * 2 * 3; way++) {
            TN_SCOPE;
            bool first = way & 1, bias = way & 2, wide = way & 4;
            struct parts p;
            tn_tensor *z;

            fill(&p, &shapes[i], wide ? TN_F64 : TN_F32, !first, bias, way / 8);
            z = convolved(&p);
            for (int sum = 0; sum < 2; sum++)
                for (int f = 0; f < NAMES; f++) {
                    tn_tensor *y;

                    if (sum)
                        p.in[7] = tn_add(drawn(tn_tensor_shape(z), tn_tensor_dtype(z), 8),
                                         tn_mul_scalar(z, 0.5));
                    p.in[7] = sum ? last(p.in[7]) : TN_NONE;
                    snprintf(what, sizeof what, "%s: %s, way %d, sum %d", shapes[i].name, names[f],
                             way, sum);
                    y = in_one(&p, names[f]);
                    same_bits(y, by_parts(&p, f), what);
                    same_strides(y, by_parts(&p, f), what);
                }
        }
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    for (int i = 0; i < SHAPES; i++) {
        TN_SCOPE;
        struct parts p;
        tn_tensor *parts;

        fill(&p, &shapes[i], TN_F32, true, true, 2);
        p.in[7] = last(drawn(tn_tensor_shape(convolved(&p)), TN_F32, 8));
        parts = by_parts(&p, 2);
        for (int threads = 1; threads <= 4; threads *= 2) {
            ck_assert_int_eq(tn_set_num_threads(threads), TN_OK);
            for (int again = 0; again < 3; again++) /* later calls use kept weights */
                same_bits(in_one(&p, "relu6"), parts, shapes[i].name);
        }
    }
    ck_assert_int_eq(tn_set_num_threads(1), TN_OK);
}
END_TEST

/* Fails unless both have the same bits. Any NaN equals any other: which NaN a sum of two NaNs is,
 * is the choice of the compiler. */
static void same_numbers(tn_tensor *a, tn_tensor *b, const char *what)
{
    size_t bytes = (size_t)tn_tensor_numel(a) * sizeof(float);
    float *x = malloc(bytes), *y = malloc(bytes);

    ck_assert_int_eq(tn_tensor_copy_out(a, x, bytes), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(b, y, bytes), TN_OK);
    for (int64_t i = 0; i < tn_tensor_numel(a); i++)
        ck_assert_msg((isnan(x[i]) && isnan(y[i])) || memcmp(&x[i], &y[i], sizeof *x) == 0,
                      "%s: %g, not %g", what, (double)x[i], (double)y[i]);
    free(x);
    free(y);
}

/* NaN, infinities and zeros of both signs in everything that follows. */
START_TEST(special_numbers_pass_as_through_the_parts)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 6.0f, -3.0f, 3.0f };

    for (int f = 0; f < NAMES; f++)
        for (int norm = 0; norm < 3; norm++) {
            TN_SCOPE;
            struct parts p;
            shape s = { "special", 2, 1, 8, 32, 1, { 4, 5 }, { 1, 1 }, 1, 0, 1 };
            float more[8 * 20];
            tn_tensor *z;

            fill(&p, &s, TN_F32, true, false, norm);
            for (int i = 0; i < 8 * 20; i++)
                more[i] = odd[i % 8];
            p.in[0] = tn_tensor_from(more, TN_F32, TN_SHAPE(1, 8, 4, 5));
            if (f % 2 == 0)
                p.in[1] = tn_tensor_full(TN_SHAPE(32, 8, 1, 1), -0.0, TN_F32, NULL);
            z = convolved(&p);
            p.in[7] = last(tn_neg(z));
            same_numbers(in_one(&p, names[f]), by_parts(&p, f), names[f]);
            p.in[7] = TN_NONE;
            same_numbers(in_one(&p, names[f]), by_parts(&p, f), names[f]);
        }
}
END_TEST

/* A sum with other strides: row-major, expanded, every second element. The result has the strides
 * that the sum of the parts has. */
START_TEST(the_strides_of_the_sum_are_those_of_the_parts)
{
    for (int i = 0; i < SHAPES; i++)
        for (int kind = 0; kind < 4; kind++)
            for (int norm = 0; norm < 2; norm++) {
                TN_SCOPE;
                struct parts p;
                tn_tensor *z, *y, *r;
                int64_t twice[2 + DIMS];

                fill(&p, &shapes[i], TN_F32, i & 1, true, norm);
                z = convolved(&p);
                memcpy(twice, tn_tensor_shape(z).at, (size_t)(2 + shapes[i].dims) * sizeof *twice);
                twice[1] *= 2;
                r = kind == 0   ? drawn(tn_tensor_shape(z), TN_F32, 8)
                    : kind == 1 ? tn_expand(drawn(TN_SHAPE(1), TN_F32, 8), tn_tensor_shape(z))
                    : kind == 2
                        ? tn_slice(drawn((tn_ints){ twice, 2 + shapes[i].dims }, TN_F32, 8), 1,
                                   INT64_MIN, INT64_MIN, 2)
                        : tn_slice(last(drawn((tn_ints){ twice, 2 + shapes[i].dims }, TN_F32, 8)),
                                   1, INT64_MIN, INT64_MIN, 2);
                p.in[7] = r;
                y = in_one(&p, "relu");
                same_bits(y, by_parts(&p, 1), shapes[i].name);
                same_strides(y, by_parts(&p, 1), shapes[i].name);
            }
}
END_TEST

START_TEST(gradients_are_those_of_the_parts)
{
    for (int f = 0; f < NAMES; f++)
        for (int way = 0; way < 6; way++) {
            TN_SCOPE;
            struct parts p[2];
            tn_tensor *weights, *y[2];

            for (int k = 0; k < 2; k++) {
                fill(&p[k], &shapes[4], TN_F32, true, true, way / 2);
                if (way & 1)
                    p[k].in[7] = drawn(tn_tensor_shape(convolved(&p[k])), TN_F32, 8);
                for (int i = 0; i < 8; i++)
                    if (p[k].in[i] != TN_NONE && i != 3 && i != 4) {
                        p[k].in[i] = leaf(tn_detach(p[k].in[i]));
                    }
                y[k] = k == 0 ? in_one(&p[k], names[f]) : by_parts(&p[k], f);
                weights = drawn(tn_tensor_shape(y[k]), TN_F32, 9);
                ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y[k], weights))), TN_OK);
            }
            same_bits(y[0], y[1], names[f]);
            for (int i = 0; i < 8; i++)
                if (p[0].in[i] != TN_NONE && i != 3 && i != 4)
                    same_bits(tn_tensor_grad(p[0].in[i]), tn_tensor_grad(p[1].in[i]), names[f]);
        }
}
END_TEST

START_TEST(other_dtypes_are_computed_by_the_parts)
{
    static const tn_dtype dtypes[] = { TN_F16, TN_BF16 };

    for (int d = 0; d < 2; d++)
        for (int f = 0; f < NAMES; f++) {
            TN_SCOPE;
            struct parts p;

            fill(&p, &shapes[4], dtypes[d], true, true, 2);
            p.in[7] = last(drawn(tn_tensor_shape(convolved(&p)), dtypes[d], 8));
            same_bits(in_one(&p, names[f]), by_parts(&p, f), names[f]);
            for (int i = 3; i < 7; i++) /* a norm of float32, as autocast leaves it */
                p.in[i] = tn_cast(p.in[i], TN_F32);
            same_bits(in_one(&p, names[f]), by_parts(&p, f), names[f]);
        }
    for (int i = 3; i < 7; i++) {
        TN_SCOPE;
        struct parts p;

        fill(&p, &shapes[6], TN_F32, true, true, 2);
        p.in[i] = tn_cast(p.in[i], TN_F64);
        same_bits(in_one(&p, "relu"), by_parts(&p, 1), "one tensor in float64");
    }
}
END_TEST

static void refused(struct parts *p, int i, tn_tensor *with, const char *text)
{
    tn_tensor *before = p->in[i];

    p->in[i] = with;
    ck_assert_ptr_null(in_one(p, "relu"));
    ck_assert_msg(strstr(tn_error_text(), text) != NULL, "%s, not %s", tn_error_text(), text);
    p->in[i] = before;
    tn_error_clear();
}

START_TEST(wrong_inputs_are_refused)
{
    TN_SCOPE;
    struct parts p;

    fill(&p, &shapes[4], TN_F32, true, true, 2);
    ck_assert_ptr_null(in_one(&p, "tanh"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(),
                                 "convolution_activation: activation: unknown, got \"tanh\"; "
                                 "expected none, relu, relu6, silu or hardswish"));
    tn_error_clear();
    refused(&p, 0, drawn(TN_SHAPE(2, 4, 9, 17), TN_F32, 1), "x: wrong number of channels, got 4");
    refused(&p, 1, drawn(TN_SHAPE(40, 3, 3, 3), TN_F64, 1), "x or weight: wrong dtype");
    refused(&p, 3, TN_NONE, "running_mean or running_var: one is missing");
    refused(&p, 4, TN_NONE, "running_mean or running_var: one is missing");
    refused(&p, 3, drawn(TN_SHAPE(39), TN_F32, 1),
            "running_mean: wrong shape, got [39]; expected [40]");
    refused(&p, 5, drawn(TN_SHAPE(40, 1), TN_F32, 1), "norm_weight: wrong shape");
    refused(&p, 6, drawn(TN_SHAPE(1), TN_F32, 1), "norm_bias: wrong shape");
    refused(&p, 7, drawn(TN_SHAPE(2, 40, 9, 1), TN_F32, 1),
            "residual: wrong shape, got [2, 40, 9, 1]; expected the shape of the result, "
            "[2, 40, 9, 17]");
    refused(&p, 7, drawn(TN_SHAPE(2, 40, 9, 17), TN_F64, 1), "x or residual: wrong dtype");
    p.in[3] = p.in[4] = TN_NONE;
    refused(&p, 6, TN_NONE, "norm_weight: given without running_mean and running_var");
    fill(&p, &shapes[4], TN_F32, true, true, 2);
    p.o.eps = 0;
    refused(&p, 2, p.in[2], "eps: out of range, got 0.0; expected a number greater than 0");
}
END_TEST

RUN_SUITE("convolution_activation", a_convolution_in_one_has_the_bits_of_its_parts,
          threads_do_not_change_a_bit, special_numbers_pass_as_through_the_parts,
          the_strides_of_the_sum_are_those_of_the_parts, gradients_are_those_of_the_parts,
          other_dtypes_are_computed_by_the_parts, wrong_inputs_are_refused)
