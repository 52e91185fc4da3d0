/* SPDX-License-Identifier: MIT
 *
 * Autocast: dtypes and values of operators compared with PyTorch's (make_autocast.py), nesting,
 * gradients, casts of parameters that a region keeps, and allocations that fail. */
#include "core/base/internal.h"
#include "tests/op/suite.h"

enum { MOST = 3, DIMS = 5, VALUES = 32 };

static const struct autocast_case {
    const char *name;
    tn_dtype low;
    char kind; /* inputs: f: float32, l: of the dtype `low`, m: only the first of that dtype */
    bool positive;
    int n_in;
    int64_t ndim[MOST], shape[MOST][DIMS];
    tn_dtype dtype;
    int count;
    double values[VALUES];
} cases[] = {
#include "tests/grad/autocast_cases.h"
};

static tn_tensor *input(const struct autocast_case *row, int which)
{
    float values[64];
    int64_t count = 1;
    tn_tensor *tensor;

    for (int64_t d = 0; d < row->ndim[which]; d++)
        count *= row->shape[which][d];
    for (int64_t k = 0; k < count; k++) {
        float step = (float)((k * 7 + which * 3) % 11);

        values[k] = row->positive ? 0.25F + step / 16 : (step - 5) / 4;
    }
    tensor = tn_tensor_from(values, TN_F32, (tn_ints){ row->shape[which], row->ndim[which] });
    return row->kind == 'l' || (row->kind == 'm' && which == 0) ? tn_cast(tensor, row->low)
                                                                : tensor;
}

static bool is(const struct autocast_case *row, const char *name)
{
    return strcmp(row->name, name) == 0;
}

/* Indices of two elements, for unpooling in `dims` dimensions. */
static tn_tensor *places(int64_t a, int64_t b, int dims)
{
    const int64_t at[2] = { a, b };

    return tn_tensor_from(at, TN_I64, dims == 1 ? TN_SHAPE(1, 1, 2) : TN_SHAPE(1, 1, 1, 2));
}

static tn_tensor *call(const struct autocast_case *row, tn_tensor **in)
{
    const tn_op *op = tn_op_find(row->name, 0);
    int64_t n_in = row->n_in;
    tn_tensor *out = NULL;

    if (is(row, "softmax"))
        return tn_softmax(in[0], -1);
    if (is(row, "log_softmax"))
        return tn_log_softmax(in[0], -1);
    if (is(row, "cat"))
        return tn_cat(in, 2, 0);
    if (is(row, "stack"))
        return tn_stack(in, 2, 0);
    if (is(row, "cumsum"))
        return tn_cumsum(in[0], 1);
    if (is(row, "einsum"))
        return tn_einsum(in, 2, "ij,jk->ik");
    if (is(row, "avg_pool3d"))
        return tn_avg_pool3d(in[0], TN_SHAPE(2));
    if (is(row, "max_pool3d"))
        return tn_max_pool3d(in[0], TN_SHAPE(2));
    if (is(row, "avg_pool2d"))
        return tn_avg_pool2d(in[0], TN_SHAPE(2));
    if (is(row, "local_response_norm"))
        return tn_local_response_norm(in[0], 3);
    if (is(row, "max_unpool1d"))
        return tn_max_unpool1d(in[0], places(1, 2, 1), TN_SHAPE(2));
    if (is(row, "max_unpool2d"))
        return tn_max_unpool2d(in[0], places(1, 6, 2), TN_SHAPE(2));
    if (is(row, "tensordot")) {
        return tn_tensordot(in[0], in[1], 2, TN_SHAPE(1), TN_SHAPE(0));
    }
    while (op != NULL && n_in < tn_op_definition(op)->n_inputs)
        in[n_in++] = TN_NONE;
    return tn_op_call(op, in, n_in, NULL, &out, 1) == TN_OK ? out : NULL;
}

START_TEST(operators_compute_in_the_dtypes_of_pytorch_s_autocast)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TN_SCOPE;
        const struct autocast_case *row = &cases[i];
        tn_tensor *in[MOST + 5], *y;
        double tolerance = row->dtype == TN_F32    ? 1e-5
                           : row->dtype == TN_BF16 ? 1.0 / 64
                                                   : 1.0 / 512;

        for (int k = 0; k < row->n_in; k++)
            in[k] = input(row, k);
        ck_assert_int_eq(tn_autocast_begin("cpu", row->low, true), TN_OK);
        y = call(row, in);
        tn_autocast_end();
        ck_assert_msg(y != NULL, "%s %c: %s", row->name, row->kind, tn_error_text());
        ck_assert_msg(tn_tensor_dtype(y) == row->dtype, "%s %s %c: got %s; expected %s", row->name,
                      tn_dtype_name(row->low), row->kind, tn_dtype_name(tn_tensor_dtype(y)),
                      tn_dtype_name(row->dtype));
        ck_assert_int_eq(tn_tensor_numel(y), row->count);
        for (int k = 0; k < row->count; k++) {
            double got = at(y, k), room = tolerance * (1 + fabs(row->values[k]));

            ck_assert_msg(fabs(got - row->values[k]) <= room, "%s %s %c [%d]: got %g; expected %g",
                          row->name, tn_dtype_name(row->low), row->kind, k, got, row->values[k]);
        }
    }
    FINE();
}
END_TEST

START_TEST(regions_nest_and_can_be_switched_off)
{
    TN_SCOPE;
    tn_tensor *x = tn_ones(TN_SHAPE(2, 2)), *wide = tn_cast(x, TN_F64);

    ck_assert(!tn_autocast_enabled("cpu"));
    ck_assert_int_eq(tn_autocast_dtype("cpu"), TN_BF16);
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_F16, true), TN_OK);
    ck_assert(tn_autocast_enabled("cpu"));
    ck_assert(!tn_autocast_enabled("meta"));
    ck_assert_int_eq(tn_tensor_dtype(tn_matmul(x, x)), TN_F16);
    ck_assert_int_eq(tn_tensor_dtype(tn_matmul(wide, wide)), TN_F64);
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_DTYPE_AUTO, true), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_matmul(x, x)), TN_BF16);
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_DTYPE_AUTO, false), TN_OK);
    ck_assert(!tn_autocast_enabled("cpu"));
    ck_assert_int_eq(tn_tensor_dtype(tn_matmul(x, x)), TN_F32);
    tn_autocast_end();
    tn_autocast_end();
    ck_assert_int_eq(tn_autocast_dtype("cpu"), TN_F16);
    /* a begin that fails changes nothing, and is ended as well */
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_F32, true), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "dtype: wrong, got float32; expected bfloat16 or float16");
    tn_autocast_end();
    ck_assert_int_eq(tn_autocast_begin("cup", TN_F16, true), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "device_type: no plugin provides it, got \"cup\"");
    tn_autocast_end();
    ck_assert(tn_autocast_enabled("cpu"));
    tn_autocast_end();
    ck_assert(!tn_autocast_enabled("cpu"));
    FINE();
    tn_autocast_end();
    FAILED(TN_ERR_RUNTIME, "no tn_autocast_begin in this thread");
    /* on devices with memory of their own: this loss is refused, sums are float32 */
    ck_assert_int_eq(tn_device_begin(tn_device_find("meta")), TN_OK);
    x = tn_tensor_empty(TN_SHAPE(2, 2), TN_F16, NULL);
    ck_assert_int_eq(tn_autocast_begin("meta", TN_DTYPE_AUTO, true), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_sum(x)), TN_F32);
    ck_assert_ptr_null(tn_binary_cross_entropy(x, x));
    FAILED(TN_ERR_RUNTIME, "binary_cross_entropy: unsafe to autocast");
    ck_assert_ptr_null(tn_binary_cross_entropy(x, x));
    FAILED(TN_ERR_RUNTIME, "binary_cross_entropy_with_logits");
    tn_autocast_end();
    tn_device_end();
    FINE();
}
END_TEST

START_TEST(gradients_pass_the_casts_and_backward_is_not_affected)
{
    TN_SCOPE;
    tn_tensor *w = tn_parameter(tn_mul_scalar(tn_ones(TN_SHAPE(2, 2)), 0.5), true);
    tn_tensor *x = tn_ones(TN_SHAPE(3, 2)), *loss;

    for (int inside = 0; inside < 2; inside++) {
        ck_assert_int_eq(tn_tensor_set_grad(w, TN_NONE), TN_OK);
        ck_assert_int_eq(tn_anomaly_begin(true), TN_OK);
        ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, true), TN_OK);
        loss = tn_mse_loss(tn_linear(x, w, TN_NONE), tn_zeros(TN_SHAPE(3, 2)));
        ck_assert_int_eq(tn_tensor_dtype(loss), TN_F32);
        if (inside)
            ck_assert_int_eq(tn_backward(loss), TN_OK);
        tn_autocast_end();
        if (!inside)
            ck_assert_int_eq(tn_backward(loss), TN_OK);
        tn_anomaly_end();
        ck_assert_int_eq(tn_tensor_dtype(tn_tensor_grad(w)), TN_F32);
        HAS(tn_tensor_grad(w), 1, 1, 1, 1);
    }
    FINE();
}
END_TEST

/* Returns how many nodes two calls of linear record. Casts add nodes, too; reused casts do not. */
static int64_t nodes_of_two_calls(tn_tensor *x, tn_tensor *w, bool write)
{
    int64_t before = tn_grad_node_count();
    tn_tensor *a = tn_linear(x, w, TN_NONE), *b;

    if (write) {
        tn_grad_begin(false);
        ck_assert_ptr_nonnull(tn_mul_scalar_(w, 2.0));
        tn_grad_end();
    }
    b = tn_linear(x, w, TN_NONE);
    ck_assert_double_eq(at(b, 0), write ? 2 * at(a, 0) : at(a, 0));
    return tn_grad_node_count() - before;
}

START_TEST(a_region_casts_a_parameter_once_until_it_is_written)
{
    TN_SCOPE;
    tn_tensor *w = tn_parameter(tn_ones(TN_SHAPE(2, 2)), true), *x = tn_ones(TN_SHAPE(3, 2));
    int64_t once, twice;

    ck_assert(tn_autocast_cache());
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, true), TN_OK);
    once = nodes_of_two_calls(x, w, false);
    tn_autocast_end();
    tn_set_autocast_cache(false);
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, true), TN_OK);
    twice = nodes_of_two_calls(x, w, false);
    tn_autocast_end();
    tn_set_autocast_cache(true);
    ck_assert_int_eq(twice, once + 1);
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, true), TN_OK);
    ck_assert_int_eq(nodes_of_two_calls(x, w, true), twice);
    tn_autocast_end();
    /* a call that is recorded does not reuse a cast that was not recorded */
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, true), TN_OK);
    tn_grad_begin(false);
    ck_assert_ptr_nonnull(tn_linear(x, w, TN_NONE));
    tn_grad_end();
    ck_assert_int_eq(tn_backward(tn_sum(tn_linear(x, w, TN_NONE))), TN_OK);
    tn_autocast_end();
    ck_assert_ptr_ne(tn_tensor_grad(w), TN_NONE);
    FINE();
}
END_TEST

START_TEST(every_allocation_of_a_region_can_fail)
{
    TN_SCOPE;
    tn_tensor *w = tn_parameter(tn_ones(TN_SHAPE(2, 2)), true), *x = tn_ones(TN_SHAPE(3, 2));
    bool done = false;

    ck_assert(!tn_autocast_enabled("cpu"));
    for (int64_t n = 1; !done; n++) {
        uint64_t scope = tn_scope_begin();
        tn_status status;
        tn_tensor *y;

        ck_assert_int_lt(n, 1000);
        tn__memory_fail(n);
        status = tn_autocast_begin("cpu", TN_BF16, true);
        y = tn_linear(x, w, TN_NONE);
        tn_autocast_end();
        done = (int64_t)tn__memory_fail(0) < n;
        ck_assert(done ? status == TN_OK && y != NULL
                       : tn_failed() && tn_error_code() == TN_ERR_MEMORY);
        ck_assert(!tn_autocast_enabled("cpu"));
        tn_error_clear();
        tn_scope_end(scope);
        ck_assert_int_eq(tn_grad_node_count(), 0);
    }
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("autocast");
    TCase *tcase = tcase_create("autocast");

    tcase_add_test(tcase, operators_compute_in_the_dtypes_of_pytorch_s_autocast);
    tcase_add_test(tcase, regions_nest_and_can_be_switched_off);
    tcase_add_test(tcase, gradients_pass_the_casts_and_backward_is_not_affected);
    tcase_add_test(tcase, a_region_casts_a_parameter_once_until_it_is_written);
    tcase_add_test(tcase, every_allocation_of_a_region_can_fail);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
