/* SPDX-License-Identifier: MIT
 *
 * In-place forms of operators that choose, scan, compare and multiply. The numbers are PyTorch's,
 * derivatives are compared with central differences. */
#include "tests/op/suite.h"

#define INTS(...)                                                                                  \
    tn_tensor_from((const int64_t[]){ __VA_ARGS__ }, TN_I64,                                       \
                   TN_SHAPE((int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))))
#define ROWS(tensor) tn_reshape(tensor, TN_SHAPE(2, -1))

/* 1 to 6 in two rows, every other element of memory, so that strides count. */
static tn_tensor *table(void)
{
    tn_tensor *base = VEC(1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0);

    return tn_select(tn_reshape(base, TN_SHAPE(2, 3, 2)), 2, 0);
}

START_TEST(what_indices_choose_is_written_in_place)
{
    TN_SCOPE;
    tn_tensor *x = table(), *some[2];

    ck_assert_ptr_eq(tn_scatter_(x, ROWS(INTS(2, 0, 1, 1)), ROWS(VEC(7, 8, 9, 10)), 1), x);
    HAS(x, 8, 2, 7, 4, 10, 6);
    x = table();
    tn_scatter_add_(x, ROWS(INTS(1, 0, 1, 1, 1, 0)), ROWS(VEC(10, 20, 30, 40, 50, 60)), 0);
    HAS(x, 1, 22, 63, 54, 55, 36);
    x = table();
    tn_index_add_(x, INTS(2, 0, 2), ROWS(VEC(10, 20, 30, 40, 50, 60)), 1, 0.5);
    FINE();
    HAS(x, 11, 2, 23, 29, 5, 56);
    x = table();
    some[0] = INTS(1, 0, 1), some[1] = INTS(0, -1, 0);
    tn_index_put_(x, VEC(0.5f, 0.25f, 2), some, 2, true);
    HAS(x, 1, 2, 3.25, 6.5, 5, 6);
    some[0] = INTS(1, 0);
    tn_index_put_(x, VEC(9, 8, 7), some, 1);
    HAS(x, 9, 8, 7, 9, 8, 7);
    FINE();
}
END_TEST

START_TEST(scans_triangles_products_and_comparisons_are_written_in_place)
{
    TN_SCOPE;
    tn_tensor *x, *i = INTS(3, 0, 2), *square = ROWS(VEC(1, 2, 3, 4));

    HAS(tn_cumsum_(table(), 1), 1, 3, 6, 4, 9, 15);
    HAS(tn_cumprod_(table(), 0), 1, 2, 3, 4, 10, 18);
    HAS(tn_cumsum_(tn_cast(i, TN_I32), 0), 3, 3, 5);
    HAS(tn_tril_(table()), 1, 0, 0, 4, 5, 0);
    HAS(tn_triu_(table(), 1), 0, 2, 3, 0, 0, 6);
    x = tn_copy(square);
    tn_addmm_(x, square, ROWS(VEC(5, 6, 7, 8)), 0.5, 2);
    HAS(x, 38.5, 45, 87.5, 102);
    x = tn_copy(square);
    HAS(tn_addmm_(x, x, x), 8, 12, 18, 26);
    x = tn_reshape(tn_copy(square), TN_SHAPE(1, 2, 2));
    HAS(tn_baddbmm_(x, x, x), 8, 12, 18, 26);
    HAS(tn_lt_(table(), VEC(2, 2, 9)), 1, 0, 1, 0, 0, 1);
    HAS(tn_ge_(table(), VEC(2, 2, 9)), 0, 1, 0, 1, 1, 0);
    HAS(tn_logical_and_(VEC(0, 2, 3), VEC(1, 0, 5)), 0, 0, 1);
    HAS(tn_logical_not_(INTS(0, 2, 3)), 1, 0, 0);
    x = tn_eq_(INTS(0, 2, 3), VEC(0, 2.5f, 3));
    HAS(x, 1, 0, 1);
    ck_assert_int_eq(tn_tensor_dtype(x), TN_I64);
    x = tn_ne(VEC(0, 1), VEC(0, 0));
    ck_assert_ptr_eq(tn_eq_(x, tn_eq(VEC(0, 0), VEC(0, 0))), x);
    ck_assert_int_eq(tn_tensor_dtype(x), TN_BOOL);
    HAS(x, 0, 1);
    FINE();
}
END_TEST

START_TEST(what_is_read_in_another_order_may_not_be_what_is_written)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3), *i = INTS(1, 0, 0), *other = VEC(5, 6, 7);

    ck_assert_ptr_null(tn_scatter_(x, i, x, 0));
    FAILED(TN_ERR_RUNTIME,
           "scatter: unsupported operation: src and the written-to tensor partly share");
    ck_assert_ptr_null(tn_scatter_(i, i, INTS(5, 6, 7), 0));
    FAILED(TN_ERR_RUNTIME, "index and the written-to tensor partly share");
    ck_assert_ptr_null(tn_scatter_add_(x, i, x, 0));
    FAILED(TN_ERR_RUNTIME, "src and the written-to tensor partly share");
    ck_assert_ptr_null(tn_index_add_(x, i, x, 0));
    FAILED(TN_ERR_RUNTIME, "src and the written-to tensor partly share");
    ck_assert_ptr_null(tn_index_put_(x, x, &i, 1));
    FAILED(TN_ERR_RUNTIME, "values and the written-to tensor partly share");
    ck_assert_ptr_null(tn_index_put_(i, INTS(5, 6, 7), &i, 1));
    FAILED(TN_ERR_RUNTIME, "indices and the written-to tensor partly share");
    HAS(x, 1, 2, 3);
    HAS(i, 1, 0, 0);
    HAS(tn_scatter(x, i, x, 0), 3, 1, 3); /* into a new tensor all is well */
    ck_assert_ptr_null(tn_cumsum_(tn_eq(x, x), 0));
    FAILED(TN_ERR_RUNTIME, "result type int64 can't be cast to the desired output type bool");
    ck_assert_ptr_null(tn_lt_(VEC(1, 2), ROWS(VEC(1, 2, 3, 4))));
    FAILED(TN_ERR_RUNTIME, "lt: ");
    ck_assert_ptr_null(tn_scatter_(x, INTS(0, 1, 3), other, 0)); /* nothing is half written */
    FAILED(TN_ERR_INDEX, "index 3 is out of bounds for dimension 0 with size 3");
    HAS(x, 1, 2, 3);
    ck_assert_ptr_null(tn_index_add_(x, INTS(0, 1, -1), other, 0));
    FAILED(TN_ERR_INDEX, "index -1 is out of bounds");
    HAS(x, 1, 2, 3);
    FINE();
}
END_TEST

/* ---- derivatives ----------------------------------------------------------------------------- */

static tn_tensor *input(double first)
{
    double values[6];

    for (int i = 0; i < 6; i++)
        values[i] = first + sin(1.7 * i + first) + 0.013 * i;
    return tn_tensor_from(values, TN_F64, TN_SHAPE(2, 3));
}

/* The forms; each writes to y, and b is another input. */
static tn_tensor *scatter_form(tn_tensor *y, tn_tensor *b)
{
    return tn_scatter_(y, ROWS(INTS(2, 0, 1, 0)), b, 1);
}

static tn_tensor *scatter_add_form(tn_tensor *y, tn_tensor *b)
{
    return tn_scatter_add_(y, ROWS(INTS(2, 0, 1, 1)), b, 1);
}

static tn_tensor *index_add_form(tn_tensor *y, tn_tensor *b)
{
    return tn_index_add_(y, INTS(1, 0), b, 0, -2);
}

static tn_tensor *index_put_form(tn_tensor *y, tn_tensor *b)
{
    return tn_index_put_(y, b, (tn_tensor *[]){ INTS(1, 0) }, 1);
}

static tn_tensor *index_put_sum_form(tn_tensor *y, tn_tensor *b)
{
    return tn_index_put_(y, b, (tn_tensor *[]){ INTS(1, 1) }, 1, true);
}

static tn_tensor *tril_form(tn_tensor *y, tn_tensor *b)
{
    return tn_mul_(tn_tril_(y), b);
}

static tn_tensor *triu_form(tn_tensor *y, tn_tensor *b)
{
    return tn_mul_(tn_triu_(y), b);
}

static tn_tensor *cumsum_form(tn_tensor *y, tn_tensor *b)
{
    return tn_mul_(tn_cumsum_(y, 1), b);
}

static tn_tensor *cumprod_form(tn_tensor *y, tn_tensor *b)
{
    (void)b;
    return tn_cumprod_(y, 1);
}

static tn_tensor *addmm_form(tn_tensor *y, tn_tensor *b)
{
    return tn_addmm_(y, tn_matmul(b, tn_transpose(b, 0, 1)), b, 0.5, 2);
}

static tn_tensor *addmm_view_form(tn_tensor *y, tn_tensor *b)
{
    return tn_addmm_(tn_narrow(y, 1, 0, 2), b, tn_transpose(b, 0, 1));
}

static tn_tensor *lt_form(tn_tensor *y, tn_tensor *b)
{
    return tn_lt_(tn_narrow(y, 1, 0, 1), tn_narrow(b, 1, 0, 1));
}

static tn_tensor *logical_or_form(tn_tensor *y, tn_tensor *b)
{
    return tn_logical_or_(tn_narrow(y, 1, 1, 1), tn_narrow(b, 1, 0, 1));
}

static const struct {
    const char *name;
    tn_tensor *(*write)(tn_tensor *y, tn_tensor *b);
} forms[] = {
    { "scatter", scatter_form },
    { "scatter_add", scatter_add_form },
    { "index_add", index_add_form },
    { "index_put", index_put_form },
    { "index_put_sum", index_put_sum_form },
    { "tril", tril_form },
    { "triu", triu_form },
    { "cumsum", cumsum_form },
    { "cumprod", cumprod_form },
    { "addmm", addmm_form },
    { "addmm_view", addmm_view_form },
    { "lt", lt_form },
    { "logical_or", logical_or_form },
};

static tn_status value_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    tn_tensor *y = tn_mul_scalar(in[0], 1.5), *written = forms[*(int *)user].write(y, in[1]);

    out[0] = written != NULL ? tn_mul(tn_mul(y, y), in[1]) : NULL;
    return out[0] != NULL ? TN_OK : tn_error_code();
}

START_TEST(derivatives_in_place_agree_with_central_differences)
{
    for (int i = 0; i < (int)(sizeof forms / sizeof forms[0]); i++) {
        TN_SCOPE;
        tn_tensor *in[2] = { input(0.4), input(1.1) };
        tn_status status = tn_gradcheck(value_of, &i, in, 2, 1, 1e-5, 1e-6);

        ck_assert_msg(status == TN_OK, "%s: %s", forms[i].name, tn_error_text());
        status = tn_gradgradcheck(value_of, &i, in, 2, 1, 1e-5, 1e-5);
        ck_assert_msg(status == TN_OK, "%s, second: %s", forms[i].name, tn_error_text());
    }
    FINE();
}
END_TEST

/* ---- activations that save their result ------------------------------------------------------ */

enum { RELU6, HARDTANH, HARDTANH_ROUNDED, LEAKY, LEAKY_NEGATIVE, ACTIVATIONS };

static tn_tensor *activated(int which, tn_tensor *x, bool inplace)
{
    switch (which) {
    case RELU6: return inplace ? tn_relu6_(x) : tn_relu6(x);
    case HARDTANH: return inplace ? tn_hardtanh_(x, -0.5, 2) : tn_hardtanh(x, -0.5, 2);
    case HARDTANH_ROUNDED: /* bfloat16 has no 0.1 */
        return inplace ? tn_hardtanh_(x, -0.1, 0.1) : tn_hardtanh(x, -0.1, 0.1);
    case LEAKY: return inplace ? tn_leaky_relu_(x, 0.25) : tn_leaky_relu(x, 0.25);
    default: return inplace ? tn_leaky_relu_(x, -2) : tn_leaky_relu(x, -2);
    }
}

static int64_t requests(void)
{
    tn_memory_stats stats;

    ck_assert_int_eq(tn_device_memory(tn_device_find("cpu"), &stats), TN_OK);
    return stats.requests;
}

static const double points[] = { -INFINITY, -7,  -0.5, -0.25, -0.1001, -0.0, 0,       0.0999,
                                 0.1001,    0.5, 2,    5.5,   6,       6.5,  INFINITY };
enum { POINTS = sizeof points / sizeof points[0] };

/* Computes the gradient of each point; `taken`: tensors that the call allocated. */
static void gradient_of(int which, tn_dtype dtype, bool inplace, double *gradient, int64_t *taken)
{
    TN_SCOPE;
    tn_tensor *from = tn_tensor_from(points, TN_F64, TN_SHAPE(POINTS));
    tn_tensor *x = with_grad(tn_cast(from, dtype)), *y = tn_mul_scalar(x, 1);
    int64_t before = requests();

    y = activated(which, y, inplace);
    *taken = requests() - before;
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul_scalar(y, 3))), TN_OK);
    for (int i = 0; i < POINTS; i++)
        gradient[i] = at(tn_tensor_grad(x), i);
    FINE();
}

START_TEST(activations_in_place_save_the_result_if_that_suffices)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
    double want[POINTS], got[POINTS];
    int64_t taken, ignored;

    for (int d = 0; d < 4; d++)
        for (int i = 0; i < ACTIVATIONS; i++) {
            bool kept = i != LEAKY;

            gradient_of(i, dtypes[d], false, want, &ignored);
            gradient_of(i, dtypes[d], true, got, &taken);
            ck_assert_msg((taken > 0) == kept, "activation %d, %s: %d tensors were made", i,
                          tn_dtype_name(dtypes[d]), (int)taken);
            for (int k = 0; k < POINTS; k++)
                ck_assert_msg(got[k] == want[k], "activation %d, %s: gradient at %g is %g, not %g",
                              i, tn_dtype_name(dtypes[d]), points[k], got[k], want[k]);
        }
}
END_TEST

START_TEST(gradients_of_activations_in_place_are_those_of_pytorch_at_the_bounds)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(-1, 0, 3, 6, 7, NAN), *y = tn_mul_scalar(x, 1), *view;

    tn_relu6_(y);
    tn_backward(tn_sum(y));
    HAS(tn_tensor_grad(x), 0, 0, 1, 0, 0, 1);
    tn_tensor_set_grad(x, TN_NONE);
    y = tn_mul_scalar(x, 1);
    view = tn_narrow(y, 0, 2, 3); /* the rest of y keeps its gradient */
    tn_relu6_(view);
    tn_backward(tn_sum(y));
    HAS(tn_tensor_grad(x), 1, 1, 1, 0, 0, 1);
    y = tn_mul_scalar(x, 1);
    tn_relu6_(y);
    tn_add_scalar_(y, 1);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(x), 1, 1, 2, 0, 0, 2);
    FINE();
}
END_TEST

/* ---- one activation in place after another, as layers ---- */

/* `result`: saves its result, so that nothing may be written over it before backward. The rows are
 * those of PyTorch. */
static const struct layer {
    const char *name;
    bool result;
} layers[] = { { "ReLU(inplace=%s)", true },
               { "LeakyReLU(0.25, inplace=%s)", true },
               { "ELU(inplace=%s)", true },
               { "SELU(inplace=%s)", true },
               { "CELU(inplace=%s)", true },
               { "ReLU6(inplace=%s)", false },
               { "Hardtanh(-0.5, 2, inplace=%s)", false },
               { "Threshold(0.3, 0.2, inplace=%s)", false },
               { "SiLU(inplace=%s)", false },
               { "Hardswish(inplace=%s)", false },
               { "Hardsigmoid(inplace=%s)", false },
               { "Mish(inplace=%s)", false } };
enum { LAYERS = sizeof layers / sizeof layers[0] };

/* Trains a step of `first` and `second` after a product. Returns the status of backward; on success
 * with the gradient of each point. */
static tn_status trained(const struct layer *first, const struct layer *second, bool inplace,
                         double *gradient)
{
    TN_SCOPE;
    const char *value = inplace ? "True" : "False";
    tn_tensor *x = with_grad(input(-0.4)), *y = tn_mul_scalar(x, 2);
    const struct layer *both[2] = { first, second };
    tn_status status;

    for (int i = 0; i < 2; i++) {
        char spec[64];
        tn_module *layer;

        tn_snprint(spec, sizeof spec, both[i]->name, value);
        layer = tn_module_new("%s", spec);
        ck_assert_msg(layer != NULL, "%s", tn_error_text());
        y = tn_module_call(layer, y);
        tn_module_drop(layer);
    }
    status = tn_backward(tn_sum(tn_mul(y, input(2))));
    for (int i = 0; i < 6 && status == TN_OK; i++)
        gradient[i] = at(tn_tensor_grad(x), i);
    return status;
}

START_TEST(an_activation_in_place_trains_after_another_wherever_pytorch_does)
{
    double want[6], got[6];

    for (int i = 0; i < LAYERS; i++)
        for (int k = 0; k < LAYERS; k++) {
            tn_status status = trained(&layers[i], &layers[k], true, got);

            if (layers[i].result) {
                ck_assert_int_eq(status, TN_ERR_RUNTIME);
                FAILED(TN_ERR_RUNTIME, "has been modified by an inplace operation");
                continue;
            }
            ck_assert_msg(status == TN_OK, "%s, then %s: %s", layers[i].name, layers[k].name,
                          tn_error_text());
            ck_assert_int_eq(trained(&layers[i], &layers[k], false, want), TN_OK);
            for (int n = 0; n < 6; n++)
                ck_assert_msg(fabs(got[n] - want[n]) < 1e-12, "%s, then %s: %g for %g",
                              layers[i].name, layers[k].name, got[n], want[n]);
        }
    FINE();
}
END_TEST

/* ---- elu, selu, celu: the gradient by the result, as in PyTorch ---- */

enum { ELU, SELU, CELU, ELU_ZERO, ELU_NEGATIVE, ELU_INFINITE, CELU_NEGATIVE, EXPONENTIALS };
static const struct exponential {
    double positive, negative, inner; /* x > 0 ? positive x : negative (e^(inner x) - 1) */
    bool kept;                        /* the result does not suffice */
} exponentials[EXPONENTIALS] = {
    { 1, 1.5, 1, false },
    { 1.0507009873554804934193349852946,
      1.0507009873554804934193349852946 * 1.6732632423543772848170429916717, 1, false },
    { 1, 0.75, 1 / 0.75, false },
    { 1, 0, 1, false },
    { 1, -2, 1, true },
    { 1, INFINITY, 1, true },
    { 1, -2, -0.5, true }
};

static tn_tensor *exponential(int which, tn_tensor *x, bool inplace)
{
    double alpha = exponentials[which].negative;

    switch (which) {
    case SELU: return inplace ? tn_selu_(x) : tn_selu(x);
    case CELU:
    case CELU_NEGATIVE: return inplace ? tn_celu_(x, alpha) : tn_celu(x, alpha);
    default: return inplace ? tn_elu_(x, alpha) : tn_elu(x, alpha);
    }
}

/* Returns a copy of the gradient of 3 f(x), and the result; `taken`: tensors that the call made. */
static tn_tensor *slope_of(int which, tn_tensor *x, bool inplace, tn_tensor **y, int64_t *taken)
{
    int64_t before;

    *y = tn_mul_scalar(x, 1);
    before = requests();
    *y = exponential(which, *y, inplace);
    *taken = requests() - before;
    tn_tensor_set_grad(x, TN_NONE);
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul_scalar(*y, 3))), TN_OK);
    return tn_copy(tn_tensor_grad(x));
}

START_TEST(exponential_units_in_place_save_their_result)
{
    static const tn_dtype dtypes[] = { TN_F64, TN_F32, TN_F16, TN_BF16 };
    static const double close[] = { 1e-14, 1e-6, 1e-2, 6e-2 };

    for (int d = 0; d < 4; d++)
        for (int i = 0; i < EXPONENTIALS; i++) {
            TN_SCOPE;
            const struct exponential *e = &exponentials[i];
            int64_t taken, ignored;
            tn_tensor *x = with_grad(
                          tn_cast(tn_tensor_from(points, TN_F64, TN_SHAPE(POINTS)), dtypes[d])),
                      *y, *want = slope_of(i, x, false, &y, &ignored),
                      *got = slope_of(i, x, true, &y, &taken);

            ck_assert_msg((taken > 0) == e->kept, "unit %d, %s: %d tensors were made", i,
                          tn_dtype_name(dtypes[d]), (int)taken);
            for (int k = 0; k < POINTS; k++) {
                double by_x = at(want, k), by_y = at(got, k), value = at(y, k);

                if (e->kept)
                    ck_assert(by_y == by_x || (isnan(by_y) && isnan(by_x)));
                else if (d == 0) /* these bits are those of PyTorch's formula */
                    ck_assert_msg(
                        by_y == 3 * (value <= 0 ? (value + e->negative) * e->inner : e->positive),
                        "unit %d: gradient at %g is %.17g", i, points[k], by_y);
                ck_assert_msg(e->kept || fabs(by_y - by_x) <= close[d] * 5,
                              "unit %d, %s: gradient at %g is %g, not %g", i,
                              tn_dtype_name(dtypes[d]), points[k], by_y, by_x);
            }
            FINE();
        }
}
END_TEST

START_TEST(exponential_units_in_place_have_the_gradients_of_pytorch)
{
    static const double want[3][6] = { { 0.22404180765538761, 2.7293879687068503, 4.5, 3, 3, 0 },
                                       { 0.2625918362407944, 3.1990234591335156, 5.27429802254213,
                                         3.1521029620664414, 3.1521029620664414, 0 },
                                       { 0.05494691666620266, 1.540251357097776, 3, 3, 3, 0 } };
    const double from[] = { -3, -0.5, 0, 0.25, INFINITY, -INFINITY };

    for (int i = ELU; i <= CELU; i++) {
        TN_SCOPE;
        tn_tensor *x = with_grad(tn_tensor_from(from, TN_F64, TN_SHAPE(6))), *y;
        int64_t ignored;
        tn_tensor *got = slope_of(i, x, true, &y, &ignored);

        for (int k = 0; k < 6; k++)
            ck_assert_double_eq_tol(at(got, k), want[i][k], 1e-15);
        y = tn_mul_scalar(x, 1);
        exponential(i, y, true);
        tn_add_scalar_(y, 1); /* the result was saved: it may not change */
        ck_assert_int_eq(tn_backward(tn_sum(y)), TN_ERR_RUNTIME);
        FAILED(TN_ERR_RUNTIME, "is at version 2; expected version 1");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("in-place forms");
    TCase *tests = tcase_create("forms");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, what_indices_choose_is_written_in_place);
    tcase_add_test(tests, scans_triangles_products_and_comparisons_are_written_in_place);
    tcase_add_test(tests, what_is_read_in_another_order_may_not_be_what_is_written);
    tcase_add_test(tests, derivatives_in_place_agree_with_central_differences);
    tcase_add_test(tests, activations_in_place_save_the_result_if_that_suffices);
    tcase_add_test(tests, gradients_of_activations_in_place_are_those_of_pytorch_at_the_bounds);
    tcase_add_test(tests, an_activation_in_place_trains_after_another_wherever_pytorch_does);
    tcase_add_test(tests, exponential_units_in_place_save_their_result);
    tcase_add_test(tests, exponential_units_in_place_have_the_gradients_of_pytorch);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
