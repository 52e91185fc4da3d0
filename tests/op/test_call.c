/* SPDX-License-Identifier: MIT
 *
 * Calls as programs make them: finding operators, what is wrong with a call, options, promotion,
 * memory of results, results written into existing tensors. */
#include "core/op/internal.h"
#include "tests/op/suite.h"

START_TEST(operators_are_found_by_name_and_revision)
{
    const char *before = "";

    ck_assert_ptr_nonnull(tn_op_find("add", 0));
    ck_assert_ptr_eq(tn_op_find("add", 0), tn_op_find("add", 1));
    ck_assert_ptr_null(tn_op_find("add", 7));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "operator \"add\": no revision 7; the newest is 1");
    ck_assert_ptr_null(tn_op_find("sofmax", 0));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "did you mean \"softmax\"?");
    ck_assert_int_gt(tn_op_count(), 40);
    for (int64_t i = 0; i < tn_op_count(); i++) {
        ck_assert_int_lt(strcmp(before, tn_op_name_at(i)), 0);
        before = tn_op_name_at(i);
    }
    ck_assert_ptr_null(tn_op_name_at(tn_op_count()));
    FAILED(TN_ERR_INDEX, "operator");
    ck_assert_str_eq(tn_op_definition(tn_op_find("relu", 0))->math, "y = max(x, 0)");
}
END_TEST

START_TEST(what_is_wrong_with_a_call_is_said)
{
    TN_SCOPE;
    const tn_op *add = tn_op_find("add", 0);
    tn_tensor *x = VEC(1, 2), *in[3] = { x, NULL, x }, *y = x;
    tn_tensor *elsewhere = tn_tensor_empty(TN_SHAPE(2), TN_F32, tn_device_find("meta"));

    ck_assert_int_eq(tn_op_call(add, in, 3, NULL, &y, 1), TN_ERR_VALUE);
    ck_assert_ptr_null(y);
    FAILED(TN_ERR_VALUE, "add: inputs: wrong number, got 3; expected 2 (a, b)");
    in[1] = TN_NONE;
    tn_op_call(add, in, 2, NULL, &y, 1);
    FAILED(TN_ERR_VALUE, "add: b: no tensor, got TN_NONE");
    in[1] = elsewhere;
    tn_op_call(add, in, 2, NULL, &y, 1);
    FAILED(TN_ERR_RUNTIME, "add: a is float32[2] on cpu:0, b is float32[2] on meta:0");
    tn_softmax(tn_tensor_full(TN_SHAPE(2), 1, TN_I64, NULL), 0);
    FAILED(TN_ERR_TYPE,
           "softmax: x is int64[2] on cpu:0; expected one of float16 bfloat16 float32 float64");
    tn_add(x, VEC(1, 2, 3));
    FAILED(TN_ERR_RUNTIME,
           "add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton "
           "dimension 0");
    tn_softmax(x, 1);
    FAILED(TN_ERR_INDEX,
           "softmax: Dimension out of range (expected to be in range of [-1, 0], but got 1)");
    tn_op_call(tn_op_find("softmax", 0), &x, 1, NULL, &y, 1);
    FAILED(TN_ERR_VALUE, "softmax: dim");
    tn_op_call(add, in, 2, NULL, in, 2);
    FAILED(TN_ERR_VALUE, "add: outputs: wrong count, got space for 2; expected 1");
    tn_matmul(VEC(1, 2), VEC(1, 2, 3));
    FAILED(TN_ERR_RUNTIME, "matmul: shapes cannot be multiplied ([2] and [3])");
    tn_view_to(tn_transpose(tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL), 0, 1), TN_SHAPE(6));
    FAILED(
        TN_ERR_RUNTIME,
        "view: view size [6] is not compatible with input tensor's size [3, 2] and stride [1, 3]");
}
END_TEST

START_TEST(groups_of_a_transposed_convolution_divide_its_channels)
{
    TN_SCOPE;
    tn_conv_transpose1d_options o = TN_CONV_TRANSPOSE1D_OPTIONS;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 4, 3), 1, TN_F32, NULL);
    tn_tensor *weight = tn_tensor_full(TN_SHAPE(4, 2, 1), 1, TN_F32, NULL);

    for (int64_t groups = -1; groups <= 4; groups++) {
        tn_tensor *y;

        o.groups = groups;
        y = tn_conv_transpose1d(x, weight, TN_NONE, o.stride, o.padding, o.output_padding,
                                o.groups);
        if (groups < 1 || groups == 3) {
            char words[80];

            ck_assert_ptr_null(y);
            tn_snprint(words, sizeof words,
                       "groups: wrong count, got %lld; expected a divisor of the 4 channels",
                       (long long)groups);
            FAILED(TN_ERR_VALUE, words);
            continue;
        }
        ck_assert_msg(y != NULL, "%s", tn_error_text());
        ck_assert_int_eq(tn_tensor_size(y, 1), 2 * groups);
        for (int64_t i = 0; i < tn_tensor_numel(y); i++)
            ck_assert_double_eq(at(y, i), 4.0 / (double)groups); /* each the channels of a group */
    }
}
END_TEST

START_TEST(null_goes_through_without_a_new_error)
{
    TN_SCOPE;
    tn_tensor *bad = tn_add(VEC(1, 2), VEC(1, 2, 3));
    char text[1024];

    ck_assert_ptr_null(bad);
    tn_snprint(text, sizeof text, "%s", tn_error_text());
    ck_assert_ptr_null(tn_relu(tn_add(VEC(1), bad)));
    ck_assert_int_eq(tn_backward(bad), TN_ERR_RUNTIME);
    ck_assert_str_eq(tn_error_text(), text);
    tn_error_clear();
    ck_assert_ptr_null(tn_relu(NULL)); /* without an earlier error, NULL is an error itself */
    ck_assert(tn_failed());
    tn_error_clear();
}
END_TEST

START_TEST(the_steady_state_allocates_nothing)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3, 4), *y = VEC(1, 2, 3, 4);

    if (getenv("TENON_CHECK") != NULL) /* memory with guard zones is not cached */
        return;
    for (int i = 0; i < 100; i++) {
        TN_SCOPE;

        if (i == 50)
            tn__memory_fail(0);
        tn_add(x, y);
        tn_relu(x);
    }
    ck_assert_uint_eq(tn__memory_fail(0), 0);
    FINE();
}
END_TEST

START_TEST(options_of_other_versions_are_completed_or_refused)
{
    TN_SCOPE;
    struct {
        uint32_t size;
    } shorter = { sizeof shorter };
    struct {
        tn_add_options known;
        uint64_t more;
    } longer = { TN_ADD_OPTIONS, 0 };
    const tn_op *add = tn_op_find("add", 0);
    tn_tensor *in[2] = { VEC(1, 2), VEC(1, 1) }, *y;

    ck_assert_int_eq(tn_op_call(add, in, 2, &shorter, &y, 1), TN_OK);
    HAS(y, 2, 3);
    /* 0 need not be the default of what `add` does not know */
    longer.known.size = sizeof longer;
    ck_assert_int_eq(tn_op_call(add, in, 2, &longer, &y, 1), TN_ERR_VERSION);
    FAILED(TN_ERR_VERSION, "sets an option that this version of the operator lacks");
    shorter.size = 0;
    tn_op_call(add, in, 2, &shorter, &y, 1);
    FAILED(TN_ERR_VALUE, "options.size: too small, got 0");
}
END_TEST

START_TEST(types_are_promoted_as_pytorch_does)
{
    TN_SCOPE;
    static const struct {
        tn_dtype a, b;
        int dims_b;
        tn_dtype sum, quotient;
    } rows[] = {
        { TN_F32, TN_F64, 1, TN_F64, TN_F64 },   { TN_F32, TN_F64, 0, TN_F32, TN_F32 },
        { TN_I64, TN_F32, 1, TN_F32, TN_F32 },   { TN_I64, TN_F64, 0, TN_F64, TN_F64 },
        { TN_I64, TN_F16, 0, TN_F16, TN_F16 },   { TN_U8, TN_I8, 1, TN_I16, TN_F32 },
        { TN_I8, TN_I64, 0, TN_I8, TN_F32 },     { TN_F16, TN_BF16, 1, TN_F32, TN_F32 },
        { TN_F16, TN_I64, 1, TN_F16, TN_F16 },   { TN_I32, TN_I64, 1, TN_I64, TN_F32 },
        { TN_F32, TN_C64, 1, TN_C64, TN_C64 },   { TN_F64, TN_C64, 0, TN_C128, TN_C128 },
        { TN_C64, TN_F64, 1, TN_C128, TN_C128 }, { TN_BF16, TN_F64, 0, TN_BF16, TN_BF16 },
    };
    const tn_device *meta = tn_device_find("meta");

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_tensor *a = tn_tensor_empty(TN_SHAPE(2), rows[i].a, meta);
        tn_tensor *b = tn_tensor_empty(rows[i].dims_b ? TN_SHAPE(2) : TN_SCALAR_SHAPE, rows[i].b,
                                       meta);
        tn_tensor *sum = tn_add(a, b), *quotient = tn_div(a, b);

        FINE();
        ck_assert_msg(tn_tensor_dtype(sum) == rows[i].sum &&
                          tn_tensor_dtype(quotient) == rows[i].quotient,
                      "row %zu: %s, %s", i, tn_dtype_name(tn_tensor_dtype(sum)),
                      tn_dtype_name(tn_tensor_dtype(quotient)));
    }
}
END_TEST

START_TEST(elementwise_results_keep_the_order_of_strides)
{
    TN_SCOPE;
    tn_tensor *x = tn_permute(tn_tensor_full(TN_SHAPE(2, 3, 4), 1, TN_F32, NULL), TN_INTS(2, 0, 1));
    tn_tensor *rows = tn_tensor_full(TN_SHAPE(4, 2, 3), 1, TN_F32, NULL);
    tn_tensor *y;

    y = tn_relu(x);
    ck_assert_mem_eq(tn_tensor_strides(y).at, tn_tensor_strides(x).at, 3 * sizeof(int64_t));
    y = tn_mul(x, x);
    ck_assert_mem_eq(tn_tensor_strides(y).at, tn_tensor_strides(x).at, 3 * sizeof(int64_t));
    y = tn_add(x, VEC(1, 2, 3));
    ck_assert_mem_eq(tn_tensor_strides(y).at, tn_tensor_strides(x).at, 3 * sizeof(int64_t));
    y = tn_cast(x, TN_F64);
    ck_assert_mem_eq(tn_tensor_strides(y).at, tn_tensor_strides(x).at, 3 * sizeof(int64_t));
    ck_assert(tn_tensor_is_contiguous(tn_add(x, rows)));
    ck_assert(tn_tensor_is_contiguous(tn_copy(x)));
    ck_assert(tn_tensor_is_contiguous(tn_relu(tn_narrow(x, 0, 0, 2))));
    FINE();
}
END_TEST

START_TEST(results_can_go_into_a_tensor_that_is_there)
{
    TN_SCOPE;
    tn_tensor *out = VEC(0, 0), *in[2] = { VEC(1, 2), VEC(3, 4) }, *wide = tn_cast(out, TN_F64),
              *leaf = LEAF(1, 2);
    const tn_op *add = tn_op_find("add", 0), *matmul = tn_op_find("matmul", 0);

    ck_assert_int_eq(tn_op_call_into(add, in, 2, NULL, out), TN_OK);
    HAS(out, 4, 6);
    ck_assert_uint_ge(tn_tensor_version(out), 1);
    ck_assert_int_eq(tn_op_call_into(add, in, 2, NULL, wide), TN_OK);
    HAS(wide, 4, 6);
    in[0] = leaf;
    ck_assert_int_eq(tn_op_call_into(add, in, 2, NULL, out), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "don't support automatic differentiation");
    tn_tensor *m[2] = { tn_tensor_full(TN_SHAPE(2, 2), 1, TN_F32, NULL),
                        tn_tensor_full(TN_SHAPE(2, 2), 2, TN_F32, NULL) };
    tn_tensor *product = tn_tensor_full(TN_SHAPE(2, 2), 0, TN_F32, NULL);
    ck_assert_int_eq(tn_op_call_into(matmul, m, 2, NULL, product), TN_OK);
    HAS(product, 4, 4, 4, 4);
    ck_assert_int_eq(tn_op_call_into(matmul, m, 2, NULL, m[0]), TN_ERR_NOT_IMPLEMENTED);
    FAILED(TN_ERR_NOT_IMPLEMENTED, "no in-place form");
    ck_assert_int_eq(tn_op_call_into(matmul, m, 2, NULL, m[1]), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "share memory");
}
END_TEST

START_TEST(random_numbers_depend_on_the_seed_alone)
{
    TN_SCOPE;
    uint64_t state[3];
    tn_tensor *a, *b, *c;

    tn_random_seed(7);
    a = tn_uniform(tn_tensor_empty(TN_SHAPE(5), TN_F32, NULL));
    tn_random_get_state(state);
    b = tn_normal(tn_tensor_empty(TN_SHAPE(3), TN_F64, NULL));
    tn_random_seed(7);
    c = tn_uniform_(tn_tensor_empty(TN_SHAPE(5), TN_F32, NULL));
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq(at(a, i), at(c, i));
    tn_random_set_state(state);
    c = tn_normal_(tn_tensor_empty(TN_SHAPE(3), TN_F64, NULL));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(at(b, i), at(c, i));
    FINE();
    ck_assert_ptr_null(tn_uniform(a, 2));
    FAILED(TN_ERR_RUNTIME, "expects to return a [low, high) range, but found low=2.0 > high=1.0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("call");
    TCase *tests = tcase_create("call");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, operators_are_found_by_name_and_revision);
    tcase_add_test(tests, what_is_wrong_with_a_call_is_said);
    tcase_add_test(tests, groups_of_a_transposed_convolution_divide_its_channels);
    tcase_add_test(tests, null_goes_through_without_a_new_error);
    tcase_add_test(tests, the_steady_state_allocates_nothing);
    tcase_add_test(tests, options_of_other_versions_are_completed_or_refused);
    tcase_add_test(tests, types_are_promoted_as_pytorch_does);
    tcase_add_test(tests, elementwise_results_keep_the_order_of_strides);
    tcase_add_test(tests, results_can_go_into_a_tensor_that_is_there);
    tcase_add_test(tests, random_numbers_depend_on_the_seed_alone);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
