/* SPDX-License-Identifier: MIT
 *
 * Weights that kernels of the CPU keep packed or transformed between calls: the results have the
 * same bits as those of the first call, for all ways in which convolutions and linear layers read
 * their weights, and a call after a change of the weight uses the new weight. */
#include "tests/op/suite.h"

static tn_tensor *normal(tn_ints shape, tn_dtype dtype, uint64_t key)
{
    return tn_philox_normal(tn_tensor_empty(shape, dtype, tn_device_find("cpu")), TN_NONE, 0, 1,
                            key, 0);
}

static int64_t prepared_bytes(void)
{
    tn_memory_stats stats;

    ck_assert_int_eq(tn_device_memory(tn_device_find("cpu"), &stats), TN_OK);
    return stats.prepared;
}

static void check_same(const char *name, tn_tensor *a, tn_tensor *b)
{
    ck_assert_msg(a != NULL && b != NULL, "%s: %s", name, tn_error_text());
    ck_assert_msg(tn_equal(a, b), "%s: other bits with a kept weight", name);
}

typedef struct layer {
    const char *name;
    tn_tensor *(*call)(const struct layer *layer, tn_tensor *x, tn_tensor *w, tn_tensor *bias);
    tn_dtype dtype;
    int64_t x[4], w[4];
    int32_t x_dims, w_dims;
    int64_t stride, padding, groups;
    int64_t least; /* bytes that are kept at least; 0: nothing is kept */
} layer;

static tn_tensor *convolution(const layer *l, tn_tensor *x, tn_tensor *w, tn_tensor *bias)
{
    return tn_convolution(x, w, bias, TN_INTS(l->stride, l->stride),
                          TN_INTS(l->padding, l->padding), tn_no_ints(), l->groups);
}

static tn_tensor *transposed(const layer *l, tn_tensor *x, tn_tensor *w, tn_tensor *bias)
{
    (void)bias;
    return tn_convolution_grad_input(x, w,
                                     TN_INTS((l->x[2] - 1) * l->stride - 2 * l->padding + l->w[2],
                                             (l->x[3] - 1) * l->stride - 2 * l->padding + l->w[3]),
                                     TN_INTS(l->stride, l->stride), TN_INTS(l->padding, l->padding),
                                     tn_no_ints(), l->groups);
}

static tn_tensor *linear(const layer *l, tn_tensor *x, tn_tensor *w, tn_tensor *bias)
{
    (void)l;
    return tn_linear(x, w, bias);
}

static tn_tensor *by_rows(const layer *l, tn_tensor *x, tn_tensor *w, tn_tensor *bias)
{
    (void)l;
    return tn_linear(x, tn_transpose(w, 0, 1), bias);
}

static tn_tensor *with_relu(const layer *l, tn_tensor *x, tn_tensor *w, tn_tensor *bias)
{
    tn_linear_activation_options o = TN_LINEAR_ACTIVATION_OPTIONS;
    tn_tensor *in[] = { x, w, bias, TN_NONE }, *out[2] = { NULL };

    (void)l;
    o.activation = "relu";
    return tn_op_call(tn_op_find("linear_activation", 0), in, 4, &o, out, 2) == TN_OK ? out[0]
                                                                                      : NULL;
}

/* The state is as wide as w, [4 H, H]. */
static tn_tensor *recurrent(const layer *l, tn_tensor *x, tn_tensor *w, tn_tensor *bias)
{
    tn_recurrent_steps_options o = TN_RECURRENT_STEPS_OPTIONS;
    tn_tensor *state = tn_tensor_full(TN_SHAPE(l->x[1], l->w[1]), 0.5, l->dtype, NULL);
    tn_tensor *in[] = { x, state, state, w, bias, TN_NONE }, *out[6] = { NULL };

    o.kind = "lstm";
    o.keep = false;
    return tn_op_call(tn_op_find("recurrent_steps", 0), in, 6, &o, out, 6) == TN_OK ? out[0] : NULL;
}

static const layer layers[] = {
    { "recurrent", recurrent, TN_F32, { 7, 3, 80 }, { 80, 20 }, 3, 2, 0, 0, 0, 80 * 20 * 4 },
    { "recurrent, few steps", recurrent, TN_F32, { 2, 3, 80 }, { 80, 20 }, 3, 2, 0, 0, 0, 0 },
    { "transposed, one window of many pixels",
      transposed,
      TN_F32,
      { 9, 40, 1, 1 },
      { 40, 24, 4, 4 },
      4,
      4,
      1,
      0,
      1,
      40 * 24 * 16 * 4 },
    { "windows of a row",
      convolution,
      TN_F32,
      { 2, 40, 9, 7 },
      { 24, 40, 3, 3 },
      4,
      4,
      1,
      1,
      1,
      24 * 360 * 4 },
    { "few channels",
      convolution,
      TN_F32,
      { 4, 3, 16, 16 },
      { 40, 3, 5, 5 },
      4,
      4,
      1,
      2,
      1,
      12000 },
    { "strides", convolution, TN_F64, { 2, 16, 12, 12 }, { 20, 16, 3, 3 }, 4, 4, 2, 1, 1, 23040 },
    { "bfloat16, in float32",
      convolution,
      TN_BF16,
      { 2, 16, 12, 12 },
      { 20, 16, 3, 3 },
      4,
      4,
      2,
      1,
      1,
      11520 },
    { "float16, Winograd",
      convolution,
      TN_F16,
      { 1, 32, 40, 40 },
      { 48, 32, 3, 3 },
      4,
      4,
      1,
      1,
      1,
      36 * 32 * 48 * 4 },
    { "bfloat16, transposed",
      transposed,
      TN_BF16,
      { 9, 32, 8, 8 },
      { 32, 24, 4, 4 },
      4,
      4,
      2,
      1,
      1,
      49152 },
    { "groups", convolution, TN_F32, { 2, 32, 9, 9 }, { 48, 16, 3, 3 }, 4, 4, 1, 1, 2, 27648 },
    { "Winograd",
      convolution,
      TN_F32,
      { 1, 32, 40, 40 },
      { 48, 32, 3, 3 },
      4,
      4,
      1,
      1,
      1,
      36 * 32 * 48 * 4 },
    { "depthwise", convolution, TN_F32, { 1, 64, 9, 9 }, { 64, 1, 5, 5 }, 4, 4, 1, 2, 64, 0 },
    { "transposed", transposed, TN_F32, { 9, 32, 8, 8 }, { 32, 24, 4, 4 }, 4, 4, 2, 1, 1, 49152 },
    { "transposed, as a convolution",
      transposed,
      TN_F32,
      { 2, 40, 8, 8 },
      { 40, 24, 3, 3 },
      4,
      4,
      1,
      1,
      1,
      24 * 360 * 4 },
    { "transposed, Winograd",
      transposed,
      TN_F32,
      { 1, 32, 40, 40 },
      { 32, 48, 3, 3 },
      4,
      4,
      1,
      1,
      1,
      36 * 32 * 48 * 4 },
    { "a few rows", linear, TN_F32, { 12, 700 }, { 90, 700 }, 2, 2, 0, 0, 0, 700 * 90 * 4 },
    { "five rows", linear, TN_F32, { 5, 700 }, { 90, 700 }, 2, 2, 0, 0, 0, 700 * 90 * 4 },
    { "four rows", linear, TN_F32, { 4, 700 }, { 90, 700 }, 2, 2, 0, 0, 0, 0 },
    { "many rows, a long depth",
      linear,
      TN_F32,
      { 200, 1300 },
      { 70, 1300 },
      2,
      2,
      0,
      0,
      0,
      364000 },
    { "many outputs", linear, TN_F64, { 8, 600 }, { 500, 600 }, 2, 2, 0, 0, 0, 2400000 },
    { "one row", linear, TN_F32, { 1, 64 }, { 64, 64 }, 2, 2, 0, 0, 0, 0 },
    { "one output", linear, TN_F32, { 64, 2000 }, { 1, 2000 }, 2, 2, 0, 0, 0, 0 },
    { "a weight by rows", by_rows, TN_F32, { 3, 9, 530 }, { 530, 130 }, 3, 2, 0, 0, 0, 275600 },
    { "with an activation", with_relu, TN_F32, { 10, 520 }, { 100, 520 }, 2, 2, 0, 0, 0, 208000 },
};

START_TEST(kept_weights_give_the_same_bits)
{
    const layer *l = &layers[_i];
    TN_SCOPE;
    tn_tensor *x = normal((tn_ints){ l->x, l->x_dims }, l->dtype, 1);
    tn_tensor *w = normal((tn_ints){ l->w, l->w_dims }, l->dtype, 2);
    tn_tensor *bias = normal(TN_SHAPE(l->call == by_rows ? l->w[1] : l->w[0]), l->dtype, 3);
    int64_t before = prepared_bytes(), kept;
    tn_tensor *first = l->call(l, x, w, bias);

    ck_assert_int_eq(prepared_bytes(), before);
    check_same(l->name, first, l->call(l, x, w, bias));
    kept = prepared_bytes() - before;
    check_same(l->name, first, l->call(l, x, w, bias));
    ck_assert_msg(l->least > 0 ? kept >= l->least : kept == 0, "%s: %lld bytes are kept", l->name,
                  (long long)kept);
    ck_assert_ptr_nonnull(tn_mul_scalar_(w, 2));
    first = l->call(l, x, w, bias);
    ck_assert_int_eq(prepared_bytes(), before); /* nothing of a weight that was written */
    check_same(l->name, first, l->call(l, x, tn_copy(w), bias));
    check_same(l->name, first, l->call(l, x, w, bias));
}
END_TEST

/* A convolution with and without what follows it uses the same kept weight. */
START_TEST(fused_kernels_share_the_weight)
{
    TN_SCOPE;
    tn_tensor *x = normal(TN_SHAPE(1, 32, 20, 20), TN_F32, 1);
    tn_tensor *w = normal(TN_SHAPE(48, 32, 3, 3), TN_F32, 2), *y[2] = { NULL };
    int64_t before = prepared_bytes(), after[2];

    for (int fused = 0; fused < 2; fused++) {
        for (int i = 0; i < 4; i++)
            y[fused] = fused ? tn_convolution_activation(x, w, TN_NONE, TN_NONE, TN_NONE, TN_NONE,
                                                         TN_NONE, TN_NONE, "none")
                             : tn_convolution(x, w);
        after[fused] = prepared_bytes();
    }
    ck_assert_int_gt(after[0], before);
    if (getenv("TENON_CHECK") == NULL) /* which wraps each kernel, with data of its own */
        ck_assert_int_eq(after[1], after[0]);
    check_same("in one", y[0], y[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kept weights");
    TCase *tests = tcase_create("kept weights");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, kept_weights_give_the_same_bits, 0,
                        (int)(sizeof layers / sizeof *layers));
    tcase_add_test(tests, fused_kernels_share_the_weight);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
