/* SPDX-License-Identifier: MIT
 *
 * Operators whose float16 and bfloat16 are computed by the CPU's kernels for float32: the result is
 * that of float32, rounded once, for every layout and for memory with gaps. The numbers are small
 * integers, so that no order of the sums changes a bit. */
#include "tests/op/suite.h"

enum { N = 2, C = 16, H = 9, W = 7, OUT = 24 };

static tn_tensor *whole(tn_ints shape, tn_dtype dtype, int64_t step)
{
    tn_tensor *x = tn_tensor_empty(shape, TN_F32, NULL);
    float *at = tn_tensor_data(x);

    for (int64_t i = 0; i < tn_tensor_numel(x); i++)
        at[i] = (float)(i * step % 9 - 4);
    return tn_cast(x, dtype);
}

/* The layouts of operands with four dimensions. */
enum layout { FIRST, LAST, GAPS, EXPANDED, LAYOUTS };

static tn_tensor *laid(tn_tensor *from, enum layout layout)
{
    tn_ints shape = tn_tensor_shape(from);
    tn_tensor *to;

    switch (layout) {
    case LAST:
        to = tn_permute(
            tn_tensor_empty(TN_SHAPE(shape.at[0], shape.at[2], shape.at[3], shape.at[1]),
                            tn_tensor_dtype(from), NULL),
            TN_INTS(0, 3, 1, 2));
        return tn_copy_(to, from);
    case GAPS:
        to = tn_narrow(
            tn_tensor_empty(TN_SHAPE(shape.at[0], shape.at[1], shape.at[2], shape.at[3] + 3),
                            tn_tensor_dtype(from), NULL),
            3, 2, shape.at[3]);
        return tn_copy_(to, from);
    case EXPANDED: return tn_expand(tn_narrow(from, 0, 0, 1), shape);
    default: return from;
    }
}

/* Calls an operator; operands have the dtype `dtype`. Returns its result. */
typedef tn_tensor *call(tn_dtype dtype, enum layout layout);

static tn_tensor *image(tn_dtype dtype, enum layout layout)
{
    return laid(whole(TN_SHAPE(N, C, H, W), dtype, 5), layout);
}

static tn_tensor *convolution(tn_dtype dtype, enum layout layout)
{
    return tn_convolution(image(dtype, layout),
                          laid(whole(TN_SHAPE(OUT, C, 3, 3), dtype, 7), layout),
                          whole(TN_SHAPE(OUT), dtype, 2), TN_INTS(1, 1), TN_INTS(1, 1));
}

static tn_tensor *strided(tn_dtype dtype, enum layout layout)
{
    return tn_convolution(image(dtype, layout), whole(TN_SHAPE(OUT, C, 3, 3), dtype, 7), TN_NONE,
                          TN_INTS(2, 2));
}

static tn_tensor *pointwise(tn_dtype dtype, enum layout layout)
{
    return tn_convolution(image(dtype, layout), whole(TN_SHAPE(OUT, C, 1, 1), dtype, 7), TN_NONE);
}

static tn_tensor *depthwise(tn_dtype dtype, enum layout layout)
{
    return tn_convolution(image(dtype, layout), whole(TN_SHAPE(C, 1, 3, 3), dtype, 7), TN_NONE,
                          TN_INTS(1, 1), TN_INTS(1, 1), tn_no_ints(), C);
}

static tn_tensor *grad_input(tn_dtype dtype, enum layout layout)
{
    return tn_convolution_grad_input(image(dtype, layout), whole(TN_SHAPE(C, OUT, 3, 3), dtype, 7),
                                     TN_INTS(H, W), TN_INTS(1, 1), TN_INTS(1, 1));
}

static tn_tensor *grad_weight(tn_dtype dtype, enum layout layout)
{
    return tn_convolution_grad_weight(image(dtype, layout),
                                      laid(whole(TN_SHAPE(N, OUT, H, W), dtype, 7), layout),
                                      TN_INTS(3, 3), TN_INTS(1, 1), TN_INTS(1, 1));
}

static tn_tensor *max_pool(tn_dtype dtype, enum layout layout)
{
    tn_tensor *y = NULL, *where;

    tn_max_pool(image(dtype, layout), TN_INTS(3, 3), &y, &where, TN_INTS(2, 2), TN_INTS(1, 1));
    return y;
}

static tn_tensor *max_pool_indices(tn_dtype dtype, enum layout layout)
{
    tn_tensor *y, *where = NULL;

    tn_max_pool(image(dtype, layout), TN_INTS(3, 3), &y, &where, TN_INTS(2, 2), TN_INTS(1, 1));
    return where;
}

static tn_tensor *max_pool_grad(tn_dtype dtype, enum layout layout)
{
    tn_tensor *y, *where;

    if (tn_max_pool(whole(TN_SHAPE(N, C, 2 * H, 2 * W), TN_F32, 5), TN_INTS(2, 2), &y, &where) !=
        TN_OK)
        return NULL;
    return tn_max_pool_grad(image(dtype, layout), where, TN_INTS(2 * H, 2 * W));
}

static tn_tensor *avg_pool(tn_dtype dtype, enum layout layout)
{
    return tn_avg_pool(image(dtype, layout), TN_INTS(3, 2), TN_INTS(2, 1), TN_INTS(1, 1));
}

static tn_tensor *avg_pool_grad(tn_dtype dtype, enum layout layout)
{
    return tn_avg_pool_grad(image(dtype, layout), TN_INTS(H + 1, W + 1), TN_INTS(2, 2),
                            TN_INTS(1, 1));
}

static tn_tensor *norm(tn_dtype dtype, enum layout layout)
{
    return tn_batch_norm(image(dtype, layout), whole(TN_SHAPE(C), dtype, 2),
                         tn_abs(whole(TN_SHAPE(C), dtype, 4)), whole(TN_SHAPE(C), dtype, 7),
                         whole(TN_SHAPE(C), dtype, 8));
}

static tn_tensor *norm_relu(tn_dtype dtype, enum layout layout)
{
    return tn_batch_norm_relu(image(dtype, layout), whole(TN_SHAPE(C), dtype, 2),
                              tn_abs(whole(TN_SHAPE(C), dtype, 4)), whole(TN_SHAPE(C), dtype, 7),
                              whole(TN_SHAPE(C), dtype, 8));
}

static const struct {
    const char *name;
    call *call;
} calls[] = {
    { "convolution", convolution },
    { "convolution with strides", strided },
    { "convolution of single pixels", pointwise },
    { "convolution of each channel", depthwise },
    { "convolution_grad_input", grad_input },
    { "convolution_grad_weight", grad_weight },
    { "max_pool", max_pool },
    { "max_pool, indices", max_pool_indices },
    { "max_pool_grad", max_pool_grad },
    { "avg_pool", avg_pool },
    { "avg_pool_grad", avg_pool_grad },
    { "batch_norm", norm },
    { "batch_norm_relu", norm_relu },
};

START_TEST(results_are_those_of_float32_rounded_once)
{
    static const tn_dtype dtypes[] = { TN_F16, TN_BF16 };

    for (int d = 0; d < 2; d++)
        for (enum layout layout = FIRST; layout < LAYOUTS; layout++) {
            TN_SCOPE;
            tn_tensor *wide = calls[_i].call(TN_F32, layout);
            tn_tensor *got = calls[_i].call(dtypes[d], layout);

            ck_assert_msg(wide != NULL && got != NULL, "%s: %s", calls[_i].name, tn_error_text());
            if (tn_tensor_dtype(wide) == TN_F32)
                wide = tn_cast(wide, dtypes[d]);
            ck_assert_int_eq(tn_tensor_dtype(got), tn_tensor_dtype(wide));
            ck_assert_msg(tn_equal(got, wide), "%s: dtype %d, layout %d", calls[_i].name, d,
                          (int)layout);
        }
}
END_TEST

/* The result of the fused operator is that of its parts, which round the norm before they add. */
START_TEST(a_residual_is_added_to_the_rounded_norm)
{
    for (enum layout layout = FIRST; layout < GAPS; layout++) {
        TN_SCOPE;
        tn_tensor *x = tn_mul_scalar(image(TN_BF16, layout), 0.37);
        tn_tensor *mean = whole(TN_SHAPE(C), TN_BF16, 2);
        tn_tensor *var = tn_abs(whole(TN_SHAPE(C), TN_BF16, 4));
        tn_tensor *residual = tn_mul_scalar(image(TN_BF16, layout), 1.7);
        tn_tensor *parts = tn_relu(tn_add(tn_batch_norm(x, mean, var), residual));
        tn_tensor *one = tn_batch_norm_relu(x, mean, var, TN_NONE, TN_NONE, residual);

        ck_assert_msg(parts != NULL && one != NULL, "%s", tn_error_text());
        ck_assert(tn_equal(one, parts));
    }
}
END_TEST

/* The result of a convolution of single pixels has the channels last, but a prepared call can write
 * into a contiguous tensor, for which the weight is read in place. */
START_TEST(prepared_calls_write_into_contiguous_tensors)
{
    static const tn_dtype dtypes[] = { TN_F16, TN_BF16, TN_F32 };
    static const int64_t sizes[] = { 1, 3 };

    for (int d = 0; d < 3; d++)
        for (int k = 0; k < 2; k++) {
            TN_SCOPE;
            tn_convolution_options o = TN_CONVOLUTION_OPTIONS;
            tn_tensor *x = whole(TN_SHAPE(2, 16, 4, 4), dtypes[d], 5);
            tn_tensor *w = whole(TN_SHAPE(40, 16, sizes[k], sizes[k]), dtypes[d], 7), *y = NULL,
                      *into;
            tn_tensor *in[] = { x, w, TN_NONE };
            tn_prepared *prepared;

            tn_grad_begin(false);
            prepared = tn_op_prepare(tn_op_find("convolution", 0), in, 3, &o, 2);
            ck_assert_msg(prepared != NULL, "%s", tn_error_text());
            ck_assert_int_eq(tn_prepared_run(prepared, in, 3, &y, 1), TN_OK);
            into = tn_tensor_empty(tn_tensor_shape(y), dtypes[d], NULL);
            ck_assert_msg(tn_prepared_run_into(prepared, in, 3, &into, 1) == TN_OK, "%s",
                          tn_error_text());
            ck_assert(tn_equal(into, y));
            tn_prepared_drop(prepared);
            tn_grad_end();
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("float32 call");
    TCase *tests = tcase_create("float32 call");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, results_are_those_of_float32_rounded_once, 0,
                        (int)(sizeof calls / sizeof *calls));
    tcase_add_test(tests, a_residual_is_added_to_the_rounded_norm);
    tcase_add_test(tests, prepared_calls_write_into_contiguous_tensors);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
