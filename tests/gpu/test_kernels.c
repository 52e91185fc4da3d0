/* SPDX-License-Identifier: MIT
 *
 * Every kernel of backend-opencl and backend-cuda against arithmetic in double, over layouts and types. OpenCL runs on whatever
 * the loader finds (PoCL here); CUDA on the fake driver, where the same kernel text is compiled as C. */
#include "tests/gpu/direct.h"

static struct direct here;
/* PoCL takes a while for each kernel that it has not seen: there, fewer types, as the text is the same. */
static uint32_t tried = TN_MASK_ALL;
#define TRIED_IN_OPENCL                                                                            \
    (TN_BIT(TN_BOOL) | TN_BIT(TN_U8) | TN_BIT(TN_I32) | TN_BIT(TN_I64) | TN_BIT(TN_F16) |          \
     TN_BIT(TN_F32) | TN_BIT(TN_F64))

/* Types with which a kernel is tried. */
#define FLOATS (TN_BIT(TN_F16) | TN_BIT(TN_BF16) | TN_BIT(TN_F32) | TN_BIT(TN_F64))
#define INTS (TN_BIT(TN_U8) | TN_BIT(TN_I8) | TN_BIT(TN_I16) | TN_BIT(TN_I32) | TN_BIT(TN_I64))

static double tolerance(tn_dtype dtype)
{
    return dtype == TN_F16    ? 2e-3
           : dtype == TN_BF16 ? 1.6e-2
           : dtype == TN_F64  ? 1e-13
           : dtype == TN_F32  ? 2e-6
                              : 0;
}

static void close_to(double got, double want, double relative, const char *what, int64_t at)
{
    bool fine = isnan(want) ? isnan(got)
                            : got == want || fabs(got - want) <= relative * (1 + fabs(want));

    ck_assert_msg(fine, "%s, element %lld: %.17g, expected %.17g", what, (long long)at, got, want);
}

/* Small numbers that are exact in every type; for floating ones halves and signs as well. */
static void numbers(struct array *a, int64_t seed)
{
    bool floating = FLOATS & TN_BIT(a->dtype),
         is_signed = floating || (TN_BIT(a->dtype) & (INTS & ~TN_BIT(TN_U8)));

    for (int64_t i = 0; i < a->count; i++) {
        double v = (double)((i * 7 + seed * 5) % 11);

        if (a->dtype == TN_BOOL)
            v = (double)((i + seed) % 2);
        if (is_signed)
            v -= 4;
        if (floating)
            v = v / 2 + 0.25;
        array_set(a, i, v);
    }
    array_up(a);
}

static const int64_t shape3[] = { 3, 5, 7 };
#define COUNT3 105

/* ---- elementwise -------------------------------------------------------------------------------------------- */

struct binary {
    const char *op;
    uint32_t dtypes;
    double (*f)(double a, double b);
};

static double f_add(double a, double b)
{
    return a + 2 * b;
}
static double f_sub(double a, double b)
{
    return a - 3 * b;
}
static double f_mul(double a, double b)
{
    return a * b;
}
static double f_div(double a, double b)
{
    return a / b;
}
static double f_maximum(double a, double b)
{
    return a != a || a > b ? a : b;
}
static double f_relu_grad(double a, double b)
{
    return b <= 0 ? 0 : a;
}
static const tn_add_options add_options = { sizeof add_options, 2 };
static const tn_sub_options sub_options = { sizeof sub_options, 3 };
static const struct binary binaries[] = { { "add", FLOATS | INTS, f_add },
                                          { "sub", FLOATS | INTS, f_sub },
                                          { "mul", FLOATS | INTS | TN_BIT(TN_BOOL), f_mul },
                                          { "div", FLOATS, f_div },
                                          { "maximum", FLOATS | INTS | TN_BIT(TN_BOOL), f_maximum },
                                          { "relu_grad", FLOATS, f_relu_grad } };

static const void *options_of(const char *op)
{
    return strcmp(op, "add") == 0   ? (const void *)&add_options
           : strcmp(op, "sub") == 0 ? (const void *)&sub_options
                                    : NULL;
}

/* In the type's own arithmetic: integers wrap. */
static double wrapped(tn_dtype dtype, double v)
{
    return dtype == TN_U8    ? (uint8_t)(int64_t)v
           : dtype == TN_I8  ? (int8_t)(int64_t)v
           : dtype == TN_I16 ? (int16_t)(int64_t)v
                             : v;
}

static void try_binary(const struct binary *row, tn_dtype dtype, enum layout la, enum layout lb,
                       enum layout ly)
{
    struct array *a = array_new(&here, dtype, 3, shape3, la),
                 *b = array_new(&here, dtype, 3, shape3, lb);
    struct array *y = array_new(&here, dtype, 3, shape3, ly);
    struct array *const in[] = { a, b }, *const out[] = { y };

    numbers(a, 1);
    numbers(b, 2);
    array_up(y);
    CALL(&here, row->op, options_of(row->op), in, out);
    array_down(y);
    for (int64_t i = 0; i < COUNT3; i++)
        close_to(array_get(y, i), wrapped(dtype, row->f(array_get(a, i), array_get(b, i))),
                 tolerance(dtype), row->op, i);
    array_drop(a);
    array_drop(b);
    array_drop(y);
}

START_TEST(operators_of_two_inputs_work_in_every_type_and_layout)
{
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++)
            if (binaries[i].dtypes & tried & TN_BIT(dtype))
                try_binary(&binaries[i], (tn_dtype)dtype, (enum layout)(dtype % LAYOUTS),
                           (enum layout)((dtype + 1) % LAYOUTS), (enum layout)(dtype % 3));
    for (int la = 0; la < LAYOUTS; la++)
        for (int lb = 0; lb < LAYOUTS; lb++)
            for (int ly = 0; ly < REPEATED; ly++)
                try_binary(&binaries[0], TN_F32, (enum layout)la, (enum layout)lb, (enum layout)ly);
}
END_TEST

START_TEST(inputs_broadcast_from_their_own_shapes)
{
    const int64_t a_shape[] = { 3, 1, 7 }, b_shape[] = { 5, 1 };
    struct array *a = array_new(&here, TN_F32, 3, a_shape, TURNED),
                 *b = array_new(&here, TN_F32, 2, b_shape, GAPS);
    struct array *y = array_new(&here, TN_F32, 3, shape3, TURNED);
    struct array *const in[] = { a, b }, *const out[] = { y };

    numbers(a, 1);
    numbers(b, 2);
    CALL(&here, "mul", NULL, in, out);
    array_down(y);
    for (int64_t i = 0; i < COUNT3; i++)
        close_to(array_get(y, i), array_get(a, i / 35 * 7 + i % 7) * array_get(b, i / 7 % 5), 0,
                 "mul", i);
    array_drop(a);
    array_drop(b);
    array_drop(y);
}
END_TEST

static double f_neg(double a)
{
    return -a;
}
static double f_relu(double a)
{
    return a < 0 ? 0 : a;
}
static double f_sigmoid(double a)
{
    return 1 / (1 + exp(-a));
}
static const struct {
    const char *op;
    uint32_t dtypes;
    double (*f)(double a);
    bool positive;
} unaries[] = { { "neg", FLOATS | (INTS & ~TN_BIT(TN_U8)), f_neg, false },
                { "exp", FLOATS, exp, false },
                { "log", FLOATS, log, true },
                { "sqrt", FLOATS, sqrt, true },
                { "relu", FLOATS | INTS, f_relu, false },
                { "sigmoid", FLOATS, f_sigmoid, false } };

START_TEST(operators_of_one_input_work_in_every_type_and_in_place)
{
    for (size_t r = 0; r < sizeof unaries / sizeof *unaries; r++)
        for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
            struct array *x, *y, *before;

            if (!(unaries[r].dtypes & tried & TN_BIT(dtype)))
                continue;
            x = array_new(&here, (tn_dtype)dtype, 3, shape3, (enum layout)(dtype % 3));
            before = array_new(&here, (tn_dtype)dtype, 3, shape3, PLAIN);
            y = dtype % 2
                    ? x
                    : array_new(&here, (tn_dtype)dtype, 3, shape3, (enum layout)((dtype + 1) % 3));
            numbers(x, 1);
            for (int64_t i = 0; i < COUNT3; i++) {
                if (unaries[r].positive)
                    array_set(x, i, fabs(array_get(x, i)));
                array_set(before, i, array_get(x, i));
            }
            array_up(x);
            {
                struct array *const in[] = { x }, *const out[] = { y };
                CALL(&here, unaries[r].op, NULL, in, out);
            }
            array_down(y);
            for (int64_t i = 0; i < COUNT3; i++)
                close_to(array_get(y, i), unaries[r].f(array_get(before, i)),
                         tolerance((tn_dtype)dtype), unaries[r].op, i);
            if (y != x)
                array_drop(y);
            array_drop(before);
            array_drop(x);
        }
}
END_TEST

START_TEST(infinity_and_nan_go_where_they_should)
{
    static const double xs[] = { -INFINITY, -1000, -0.0, 0.0, 1000, INFINITY, NAN };
    const int64_t shape[] = { 7 };
    struct array *x = array_new(&here, TN_F32, 1, shape, PLAIN),
                 *y = array_new(&here, TN_F32, 1, shape, PLAIN);
    struct array *one = array_new(&here, TN_F32, 1, (const int64_t[]){ 1 }, PLAIN);
    struct array *const in[] = { x }, *const out[] = { y }, *const two[] = { one, x };

    for (int i = 0; i < 7; i++)
        array_set(x, i, xs[i]);
    array_up(x);
    CALL(&here, "sigmoid", NULL, in, out);
    array_down(y);
    for (int i = 0; i < 7; i++)
        close_to(array_get(y, i), f_sigmoid(xs[i]), 1e-6, "sigmoid", i);
    CALL(&here, "relu", NULL, in, out);
    array_down(y);
    for (int i = 0; i < 7; i++)
        close_to(array_get(y, i), f_relu(xs[i]), 0, "relu", i);
    array_set(one, 0, 1);
    array_up(one);
    CALL(&here, "maximum", NULL, two, out);
    array_down(y);
    for (int i = 0; i < 7; i++)
        close_to(array_get(y, i), isnan(xs[i]) ? NAN : xs[i] > 1 ? xs[i] : 1, 0, "maximum", i);
    array_set(one, 0, NAN);
    array_up(one);
    CALL(&here, "maximum", NULL, two, out);
    array_down(y);
    for (int i = 0; i < 7; i++)
        ck_assert(isnan(array_get(y, i)));
    array_drop(x);
    array_drop(y);
    array_drop(one);
}
END_TEST

START_TEST(a_number_is_added_in_the_type_of_the_result)
{
    const tn_add_scalar_options plus = { sizeof plus, 0.5 };
    const tn_mul_scalar_options times = { sizeof times, 3 };
    struct array *whole = array_new(&here, TN_I32, 3, shape3, TURNED),
                 *y = array_new(&here, TN_F32, 3, shape3, PLAIN);
    struct array *z = array_new(&here, TN_I32, 3, shape3, GAPS);
    struct array *const in[] = { whole }, *const out[] = { y }, *const out2[] = { z };

    numbers(whole, 1);
    CALL(&here, "add_scalar", &plus, in, out);
    CALL(&here, "mul_scalar", &times, in, out2);
    array_down(y);
    array_down(z);
    for (int64_t i = 0; i < COUNT3; i++) {
        close_to(array_get(y, i), array_get(whole, i) + 0.5, 0, "add_scalar", i);
        close_to(array_get(z, i), array_get(whole, i) * 3, 0, "mul_scalar", i);
    }
    array_drop(whole);
    array_drop(y);
    array_drop(z);
}
END_TEST

/* ---- copies --------------------------------------------------------------------------------------------------- */

START_TEST(copies_convert_between_all_types)
{
    for (int from = 0; from <= TN_U64; from++)
        for (int to = 0; to <= TN_U64; to++) {
            if (!(tried & TN_BIT(to)))
                continue;
            struct array *x = array_new(&here, (tn_dtype)from, 3, shape3,
                                        (enum layout)((from + to) % LAYOUTS));
            struct array *y = array_new(&here, (tn_dtype)to, 3, shape3, (enum layout)(to % 3));
            struct array *const in[] = { x }, *const out[] = { y };
            bool narrow = to == TN_BOOL;

            for (int64_t i = 0; i < COUNT3; i++)
                array_set(x, i, from == TN_BOOL ? (double)(i % 2) : (double)(i * 3 % 100));
            array_up(x);
            CALL(&here, "copy", NULL, in, out);
            array_down(y);
            for (int64_t i = 0; i < COUNT3; i++) {
                double want = array_get(x, i);
                close_to(array_get(y, i), narrow ? want != 0 : want, 0, tn_dtype_name((tn_dtype)to),
                         i);
            }
            array_drop(x);
            array_drop(y);
        }
}
END_TEST

START_TEST(rounding_to_short_floats_is_to_nearest_even)
{
    static const struct {
        double from;
        uint16_t half, brain;
    } rows[] = { { 1.0 + 1.0 / 2048, 0x3c00, 0x3f80 }, /* a tie goes to even */
                 { 1.0 + 3.0 / 2048, 0x3c02, 0x3f80 },
                 { 1.00390625, 0x3c04, 0x3f80 }, /* for bfloat16 a tie */
                 { 1.01171875, 0x3c0c, 0x3f82 },
                 { 65519, 0x7bff, 0x4780 },
                 { 65520, 0x7c00, 0x4780 },
                 { -5.9604644775390625e-08, 0x8001, 0xb380 },
                 { 2.98023223876953125e-08, 0x0000, 0x3300 },
                 { INFINITY, 0x7c00, 0x7f80 } };
    const int64_t shape[] = { 9 };
    struct array *x = array_new(&here, TN_F32, 1, shape, PLAIN),
                 *h = array_new(&here, TN_F16, 1, shape, PLAIN);
    struct array *b = array_new(&here, TN_BF16, 1, shape, PLAIN);
    struct array *const in[] = { x }, *const half[] = { h }, *const brain[] = { b };

    for (int i = 0; i < 9; i++)
        array_set(x, i, rows[i].from);
    array_up(x);
    CALL(&here, "copy", NULL, in, half);
    CALL(&here, "copy", NULL, in, brain);
    array_down(h);
    array_down(b);
    for (int i = 0; i < 9; i++) {
        ck_assert_msg(((uint16_t *)h->host)[i] == rows[i].half, "%.17g as float16: %04x",
                      rows[i].from, ((uint16_t *)h->host)[i]);
        ck_assert_msg(((uint16_t *)b->host)[i] == rows[i].brain, "%.17g as bfloat16: %04x",
                      rows[i].from, ((uint16_t *)b->host)[i]);
    }
    array_drop(x);
    array_drop(h);
    array_drop(b);
}
END_TEST

START_TEST(fill_writes_its_view_and_nothing_else)
{
    for (int dtype = 0; dtype <= TN_U64; dtype++)
        for (int layout = 0; layout < REPEATED; layout++) {
            const tn_fill_options options = { sizeof options, dtype == TN_BOOL ? 1 : 3 };
            struct array *y = array_new(&here, (tn_dtype)dtype, 3, shape3, (enum layout)layout);
            struct array *const in[] = { y }, *const out[] = { y };
            size_t others = 0;

            array_up(y);
            CALL(&here, "fill", &options, in, out);
            array_down(y);
            for (int64_t i = 0; i < COUNT3; i++) {
                close_to(array_get(y, i), options.value, 0, "fill", i);
                memset(array_at(y, i), 0, (size_t)y->item);
            }
            for (size_t i = 0; i < y->bytes; i++)
                others += y->host[i] == 0x5a;
            ck_assert_uint_eq(others, y->bytes - (size_t)(COUNT3 * y->item));
            array_drop(y);
        }
}
END_TEST

START_TEST(narrow_grad_is_zero_around_its_place)
{
    const int64_t inner[] = { 3, 2, 7 };
    const tn_narrow_grad_options options = { sizeof options, { shape3, 3 }, 1, 2 };
    struct array *gy = array_new(&here, TN_F32, 3, inner, TURNED),
                 *gx = array_new(&here, TN_F32, 3, shape3, GAPS);
    struct array *const in[] = { gy }, *const out[] = { gx };

    numbers(gy, 3);
    CALL(&here, "narrow_grad", &options, in, out);
    array_down(gx);
    for (int64_t i = 0; i < COUNT3; i++) {
        int64_t row = i / 7 % 5;
        double want = row == 2 || row == 3 ? array_get(gy, i / 35 * 14 + (row - 2) * 7 + i % 7) : 0;
        close_to(array_get(gx, i), want, 0, "narrow_grad", i);
    }
    array_drop(gy);
    array_drop(gx);
}
END_TEST

/* ---- reductions ------------------------------------------------------------------------------------------------- */

static void try_reduce(tn_dtype dtype, int ndim, const int64_t *shape, enum layout layout,
                       const int64_t *dims, int n_dims, bool keepdim)
{
    const tn_sum_options options = { sizeof options, { dims, n_dims }, keepdim, TN_DTYPE_AUTO };
    bool goes[TN_MAX_DIMS] = { false }, integral = !(FLOATS & TN_BIT(dtype));
    int64_t kept[TN_MAX_DIMS] = { 0 }, outputs = 1;
    int n_kept = 0;
    struct array *x = array_new(&here, dtype, ndim, shape, layout), *s, *m;
    double *sums, *tops;

    for (int i = 0; i < n_dims; i++)
        goes[dims[i] < 0 ? dims[i] + ndim : dims[i]] = true;
    for (int i = 0; i < ndim; i++)
        if (n_dims == 0)
            goes[i] = true;
    for (int i = 0; i < ndim; i++) {
        if (!goes[i] || keepdim)
            kept[n_kept++] = goes[i] ? 1 : shape[i];
        outputs *= goes[i] ? 1 : shape[i];
    }
    s = array_new(&here, integral ? TN_I64 : dtype, n_kept, kept, n_kept > 1 ? TURNED : PLAIN);
    m = array_new(&here, dtype, n_kept, kept, PLAIN);
    sums = calloc((size_t)outputs, sizeof *sums);
    tops = calloc((size_t)outputs, sizeof *tops);
    for (int64_t o = 0; o < outputs; o++)
        tops[o] = -INFINITY;
    numbers(x, 1);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t rest = i, o = 0, step = 1;

        for (int d = ndim - 1; d >= 0; d--) {
            if (!goes[d]) {
                o += rest % shape[d] * step;
                step *= shape[d];
            }
            rest /= shape[d];
        }
        sums[o] += array_get(x, i);
        tops[o] = fmax(tops[o], array_get(x, i));
    }
    {
        struct array *const in[] = { x }, *const sum[] = { s }, *const top[] = { m };

        CALL(&here, "sum", &options, in, sum);
        CALL(&here, "amax", &options, in, top);
    }
    array_down(s);
    array_down(m);
    for (int64_t o = 0; o < outputs; o++) {
        close_to(array_get(s, o), sums[o], 4 * tolerance(dtype), "sum", o);
        close_to(array_get(m, o), tops[o], 0, "amax", o);
    }
    free(sums);
    free(tops);
    array_drop(x);
    array_drop(s);
    array_drop(m);
}

START_TEST(sums_and_largest_ones_over_any_dimensions)
{
    static const int64_t dims[][3] = { { 0 }, { 1 }, { -1 }, { 0, 2 }, { 1, 2 }, { 0, 1, 2 } };
    static const int counts[] = { 1, 1, 1, 2, 2, 3 };

    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int i = 0; i < 6; i++)
            try_reduce(TN_F32, 3, shape3, (enum layout)layout, dims[i], counts[i], i % 2);
    for (int dtype = 0; dtype <= TN_F64; dtype++) {
        if (!(tried & TN_BIT(dtype)))
            continue;
        try_reduce((tn_dtype)dtype, 3, shape3, TURNED, dims[3], 2, false);
        try_reduce((tn_dtype)dtype, 3, shape3, GAPS, NULL, 0, false);
    }
    try_reduce(TN_F32, 1, (const int64_t[]){ 300 }, PLAIN, NULL, 0, true);
    try_reduce(TN_F32, 2, (const int64_t[]){ 5, 300 }, TURNED, (const int64_t[]){ 1 }, 1, false);
    try_reduce(TN_F32, 2, (const int64_t[]){ 5000, 2 }, TURNED, (const int64_t[]){ 1 }, 1, false);
}
END_TEST

START_TEST(a_long_sum_is_cut_into_pieces)
{
    for (int dtype = TN_I32; dtype <= TN_F64; dtype++) {
        if (dtype == TN_F16 || dtype == TN_BF16 || !(tried & TN_BIT(dtype)))
            continue;
        try_reduce((tn_dtype)dtype, 1, (const int64_t[]){ 66001 }, PLAIN, NULL, 0, false);
        try_reduce((tn_dtype)dtype, 2, (const int64_t[]){ 2, 33333 }, TURNED,
                   (const int64_t[]){ 1 }, 1, true);
    }
}
END_TEST

START_TEST(a_long_sum_of_short_floats_adds_up_in_float32)
{
    /* 40000 ones: added in float16 they would stop at 2048 */
    const int64_t shape[] = { 40000 };
    const tn_sum_options options = TN_SUM_OPTIONS;
    struct array *x = array_new(&here, TN_F16, 1, shape, PLAIN),
                 *y = array_new(&here, TN_F16, 0, NULL, PLAIN);
    struct array *const in[] = { x }, *const out[] = { y };

    for (int64_t i = 0; i < 40000; i++)
        array_set(x, i, 1);
    array_up(x);
    CALL(&here, "sum", &options, in, out);
    array_down(y);
    close_to(array_get(y, 0), 40000, 0, "sum", 0);
    array_drop(x);
    array_drop(y);
}
END_TEST

START_TEST(an_empty_sum_is_zero)
{
    const int64_t shape[] = { 2, 0, 3 }, kept[] = { 2, 3 }, dim = 1;
    const tn_sum_options options = { sizeof options, { &dim, 1 }, false, TN_DTYPE_AUTO };
    struct array *x = array_new(&here, TN_F32, 3, shape, PLAIN),
                 *y = array_new(&here, TN_F32, 2, kept, PLAIN);
    struct array *const in[] = { x }, *const out[] = { y };

    array_up(y);
    CALL(&here, "sum", &options, in, out);
    array_down(y);
    for (int i = 0; i < 6; i++)
        close_to(array_get(y, i), 0, 0, "sum", i);
    array_drop(x);
    array_drop(y);
}
END_TEST

START_TEST(argmax_gives_the_first_of_equals_and_nan_is_largest)
{
    const int64_t shape[] = { 3, 600 }, kept[] = { 3 };
    const tn_argmax_options along = { sizeof along, 1, false },
                            all = { sizeof all, INT64_MIN, false };
    struct array *x = array_new(&here, TN_F32, 2, shape, TURNED),
                 *y = array_new(&here, TN_I64, 1, kept, GAPS);
    struct array *z = array_new(&here, TN_I64, 0, NULL, PLAIN);
    struct array *const in[] = { x }, *const out[] = { y }, *const out0[] = { z };

    for (int64_t i = 0; i < 1800; i++)
        array_set(x, i, -5);
    array_set(x, 17, 3);
    array_set(x, 555, 3);
    array_set(x, 600 + 599, NAN);
    array_set(x, 600 + 300, NAN);
    array_up(x);
    CALL(&here, "argmax", &along, in, out);
    CALL(&here, "argmax", &all, in, out0);
    array_down(y);
    array_down(z);
    close_to(array_get(y, 0), 17, 0, "argmax", 0);
    close_to(array_get(y, 1), 300, 0, "argmax", 1);
    close_to(array_get(y, 2), 0, 0, "argmax", 2);
    close_to(array_get(z, 0), 900, 0, "argmax", 0);
    array_drop(x);
    array_drop(y);
    array_drop(z);
}
END_TEST

/* ---- products --------------------------------------------------------------------------------------------------- */

static void try_bmm(tn_dtype dtype, int64_t batch, int64_t m, int64_t k, int64_t n, enum layout la,
                    enum layout lb, enum layout ly)
{
    const int64_t sa[] = { batch, m, k }, sb[] = { batch, k, n }, sy[] = { batch, m, n };
    struct array *a = array_new(&here, dtype, 3, sa, la), *b = array_new(&here, dtype, 3, sb, lb);
    struct array *y = array_new(&here, dtype, 3, sy, ly);
    struct array *const in[] = { a, b }, *const out[] = { y };

    numbers(a, 1);
    numbers(b, 2);
    array_up(y);
    CALL(&here, "bmm", NULL, in, out);
    array_down(y);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t z = i / (m * n), row = i / n % m, column = i % n;
        double want = 0;

        for (int64_t j = 0; j < k; j++)
            want += array_get(a, (z * m + row) * k + j) * array_get(b, (z * k + j) * n + column);
        close_to(array_get(y, i), wrapped(dtype, want), 4 * tolerance(dtype), "bmm", i);
    }
    array_drop(a);
    array_drop(b);
    array_drop(y);
}

START_TEST(products_of_matrices_of_any_size_and_layout)
{
    for (int la = 0; la < LAYOUTS; la++)
        for (int lb = 0; lb < LAYOUTS; lb++)
            try_bmm(TN_F32, 2, 5, 19, 7, (enum layout)la, (enum layout)lb,
                    (enum layout)((la + lb) % 3));
    try_bmm(TN_F32, 1, 65, 33, 130, PLAIN, PLAIN, PLAIN);
    try_bmm(TN_F32, 1, 1, 40, 66, PLAIN, TURNED, PLAIN);
    try_bmm(TN_F32, 3, 1, 1, 1, PLAIN, PLAIN, PLAIN);
    try_bmm(TN_F64, 2, 64, 16, 64, TURNED, PLAIN, PLAIN);
    try_bmm(TN_F16, 1, 9, 20, 9, PLAIN, PLAIN, PLAIN);
    try_bmm(TN_I32, 1, 9, 20, 9, PLAIN, TURNED, PLAIN);
    try_bmm(TN_I64, 1, 9, 20, 9, GAPS, TURNED, PLAIN);
    try_bmm(TN_F32, 2, 3, 0, 4, PLAIN, PLAIN, GAPS);
    try_bmm(TN_F32, 0, 3, 2, 4, PLAIN, PLAIN, PLAIN);
}
END_TEST

/* ---- softmax and losses ----------------------------------------------------------------------------------------- */

START_TEST(softmax_sums_to_one_along_any_dimension)
{
    for (int dim = -1; dim < 3; dim++)
        for (int dtype = TN_F16; dtype <= TN_F64; dtype++) {
            if (!(tried & TN_BIT(dtype)))
                continue;
            const tn_softmax_options options = { sizeof options, dim };
            struct array *x = array_new(&here, (tn_dtype)dtype, 3, shape3,
                                        (enum layout)((dim + 1) % LAYOUTS));
            struct array *y = array_new(&here, (tn_dtype)dtype, 3, shape3, TURNED);
            struct array *l = array_new(&here, (tn_dtype)dtype, 3, shape3, GAPS);
            struct array *g = array_new(&here, (tn_dtype)dtype, 3, shape3, PLAIN);
            struct array *const in[] = { x }, *const out[] = { y }, *const logs[] = { l };
            struct array *const back[] = { y, l }, *const grads[] = { g };
            int64_t inner = dim == 0 ? 35 : dim == 1 ? 7 : 1, length = shape3[dim < 0 ? 2 : dim];

            numbers(x, 1);
            CALL(&here, "softmax", &options, in, out);
            CALL(&here, "log_softmax", &options, in, logs);
            array_down(y);
            array_down(l);
            CALL(&here, "log_softmax_grad", &options, back, grads);
            array_down(g);
            for (int64_t i = 0; i < COUNT3; i++) {
                int64_t first = i / (inner * length) * (inner * length) + i % inner;
                double total = 0, gy = 0, want;

                for (int64_t j = 0; j < length; j++) {
                    total += exp(array_get(x, first + j * inner));
                    gy += array_get(y, first + j * inner);
                }
                want = exp(array_get(x, i)) / total;
                close_to(array_get(y, i), want, tolerance((tn_dtype)dtype), "softmax", i);
                close_to(array_get(l, i), log(want), 2 * tolerance((tn_dtype)dtype), "log_softmax",
                         i);
                close_to(array_get(g, i), array_get(y, i) - exp(array_get(l, i)) * gy,
                         4 * tolerance((tn_dtype)dtype), "log_softmax_grad", i);
            }
            array_drop(x);
            array_drop(y);
            array_drop(l);
            array_drop(g);
        }
}
END_TEST

static const int64_t classes[] = { 6, 4 };
static const int64_t six[] = { 6 };
static const int64_t targets[] = { 3, -100, 0, 1, 1, 2 };

static void try_loss(tn_dtype dtype, const char *reduction)
{
    const tn_nll_loss_options options = { sizeof options, reduction, -100 };
    const tn_nll_loss_grad_options back_options = { sizeof back_options, 4, reduction, -100 };
    bool each = strcmp(reduction, "none") == 0, mean = strcmp(reduction, "mean") == 0;
    struct array *x = array_new(&here, dtype, 2, classes, TURNED),
                 *t = array_new(&here, TN_I64, 1, six, GAPS);
    struct array *y = array_new(&here, dtype, each, six, each ? GAPS : PLAIN),
                 *total = array_new(&here, dtype, 0, NULL, PLAIN);
    struct array *gx = array_new(&here, dtype, 2, classes, TURNED);
    struct array *const in[] = { x, t }, *const out[] = { y, total },
                        *const back[] = { y, t, total }, *const grads[] = { gx };
    double sum = 0;

    numbers(x, 1);
    for (int i = 0; i < 6; i++)
        array_set(t, i, (double)targets[i]);
    array_up(t);
    CALL(&here, "nll_loss", &options, in, out);
    ck_assert_int_eq(here.backend->stream_sync(here.device, here.stream), TN_OK);
    array_down(y);
    array_down(total);
    close_to(array_get(total, 0), 5, 0, "total", 0);
    for (int i = 0; i < 6; i++) {
        double v = targets[i] < 0 ? 0 : -array_get(x, i * 4 + targets[i]);

        sum += v;
        if (each)
            close_to(array_get(y, i), v, 0, "nll_loss", i);
    }
    if (!each)
        close_to(array_get(y, 0), mean ? sum / 5 : sum, tolerance(dtype), "nll_loss", 0);
    /* the loss itself serves as gy */
    CALL(&here, "nll_loss_grad", &back_options, back, grads);
    array_down(gx);
    for (int64_t i = 0; i < 24; i++) {
        double gy = array_get(y, each ? i / 4 : 0) / (mean ? 5 : 1);
        close_to(array_get(gx, i), targets[i / 4] == i % 4 ? -gy : 0, tolerance(dtype),
                 "nll_loss_grad", i);
    }
    array_drop(x);
    array_drop(t);
    array_drop(y);
    array_drop(total);
    array_drop(gx);
}

START_TEST(losses_and_their_derivatives)
{
    for (int dtype = TN_F16; dtype <= TN_F64; dtype++) {
        if (!(tried & TN_BIT(dtype)))
            continue;
        try_loss((tn_dtype)dtype, "mean");
        try_loss((tn_dtype)dtype, "sum");
        try_loss((tn_dtype)dtype, "none");
    }
}
END_TEST

START_TEST(a_target_out_of_range_is_said_at_the_next_synchronisation_and_once)
{
    const tn_nll_loss_options options = { sizeof options, "mean", -100 };
    struct array *x = array_new(&here, TN_F32, 2, classes, PLAIN),
                 *t = array_new(&here, TN_I64, 1, six, PLAIN);
    struct array *y = array_new(&here, TN_F32, 0, NULL, PLAIN),
                 *total = array_new(&here, TN_F32, 0, NULL, PLAIN);
    struct array *const in[] = { x, t }, *const out[] = { y, total };
    float loss;

    numbers(x, 1);
    for (int i = 0; i < 6; i++)
        array_set(t, i, i == 2 ? 4 : 0);
    array_up(t);
    CALL(&here, "nll_loss", &options, in, out);
    ck_assert_int_eq(here.backend->stream_sync(here.device, here.stream), TN_ERR_INDEX);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "nll_loss on"));
    ck_assert_ptr_nonnull(
        strstr(tn_error_text(), "target[2] is 4, which is out of range for 4 classes"));
    tn_error_clear();
    ck_assert_int_eq(here.backend->stream_sync(here.device, here.stream), TN_OK);
    /* who reads the result waits for it, too */
    CALL(&here, "nll_loss", &options, in, out);
    ck_assert_int_eq(
        here.backend->copy_out(here.device, here.stream, &loss, y->memory, 0, sizeof loss),
        TN_ERR_INDEX);
    tn_error_clear();
    ck_assert_int_eq(here.backend->stream_sync(here.device, here.stream), TN_OK);
    ck_assert(call_into(&here, "nll_loss", &(tn_nll_loss_options){ sizeof options, "average", 0 },
                        in, 2, out, 2) == TN_ERR_VALUE);
    tn_error_clear();
    array_drop(x);
    array_drop(t);
    array_drop(y);
    array_drop(total);
}
END_TEST

/* ---- random numbers --------------------------------------------------------------------------------------------- */

/* Philox 4x32-10 once more, from the paper. */
static void philox(uint64_t seed, uint64_t block, uint32_t out[4])
{
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), 0, 0 },
             k[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };

    for (int round = 0; round < 10; round++) {
        uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
        uint32_t next[4] = { (uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q,
                             (uint32_t)(p >> 32) ^ c[3] ^ k[1], (uint32_t)p };

        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

START_TEST(uniform_numbers_are_equal_to_the_bit)
{
    const tn_philox_uniform_options options = { sizeof options, -1.5, 2.7, 0x123456789abcdef,
                                                ((int64_t)1 << 32) - 2 };
    struct array *f = array_new(&here, TN_F32, 3, shape3, TURNED),
                 *d = array_new(&here, TN_F64, 3, shape3, GAPS);
    struct array *const in_f[] = { f }, *const in_d[] = { d };

    CALL(&here, "philox_uniform", &options, in_f, in_f);
    CALL(&here, "philox_uniform", &options, in_d, in_d);
    array_down(f);
    array_down(d);
    for (int64_t i = 0; i < COUNT3; i++) {
        uint32_t w[4];
        double want;

        philox((uint64_t)options.seed, (uint64_t)options.block + (uint64_t)i / 4, w);
        want = fmaf((float)(w[i % 4] >> 8) * 0x1p-24f, (float)(2.7 - -1.5), -1.5f);
        close_to(array_get(f, i), want, 0, "uniform float32", i);
        philox((uint64_t)options.seed, (uint64_t)options.block + (uint64_t)i / 2, w);
        want = fma((double)(((uint64_t)w[i % 2 * 2] << 32 | w[i % 2 * 2 + 1]) >> 11) * 0x1p-53,
                   2.7 - -1.5, -1.5);
        close_to(array_get(d, i), want, 0, "uniform float64", i);
    }
    array_drop(f);
    array_drop(d);
}
END_TEST

START_TEST(normal_numbers_are_equal_within_a_few_units)
{
    const tn_philox_normal_options options = { sizeof options, 1, 2, 7, 5 };
    struct array *f = array_new(&here, TN_F32, 3, shape3, PLAIN),
                 *d = array_new(&here, TN_F64, 3, shape3, PLAIN);
    struct array *const in_f[] = { f }, *const in_d[] = { d };
    const double turn = 6.283185307179586;

    CALL(&here, "philox_normal", &options, in_f, in_f);
    CALL(&here, "philox_normal", &options, in_d, in_d);
    array_down(f);
    array_down(d);
    for (int64_t i = 0; i < COUNT3; i++) {
        uint32_t w[4];
        double u1, u2;

        philox(7, 5 + (uint64_t)i / 2, w);
        u1 = ((w[i % 2 * 2] >> 8) + 1) * 0x1p-24;
        u2 = (w[i % 2 * 2 + 1] >> 8) * 0x1p-24;
        close_to(array_get(f, i), 1 + 2 * sqrt(-2 * log(u1)) * cos(turn * u2), 3e-6,
                 "normal float32", i);
        philox(7, 5 + (uint64_t)i, w);
        u1 = (double)((((uint64_t)w[0] << 32 | w[1]) >> 11) + 1) * 0x1p-53;
        u2 = (double)(((uint64_t)w[2] << 32 | w[3]) >> 11) * 0x1p-53;
        close_to(array_get(d, i), 1 + 2 * sqrt(-2 * log(u1)) * cos(turn * u2), 1e-13,
                 "normal float64", i);
    }
    array_drop(f);
    array_drop(d);
}
END_TEST

/* ---- edges ------------------------------------------------------------------------------------------------------- */

START_TEST(nothing_happens_for_empty_tensors_and_one_element_works_without_dimensions)
{
    const int64_t empty[] = { 2, 0 };
    struct array *a = array_new(&here, TN_F32, 2, empty, PLAIN),
                 *y = array_new(&here, TN_F32, 2, empty, PLAIN);
    struct array *p = array_new(&here, TN_F32, 0, NULL, PLAIN),
                 *q = array_new(&here, TN_F32, 0, NULL, GAPS);
    struct array *const in[] = { a, a }, *const out[] = { y }, *const in0[] = { p, p },
                        *const out0[] = { q };

    CALL(&here, "add", NULL, in, out);
    CALL(&here, "copy", NULL, in, out);
    array_set(p, 0, 2.5);
    array_up(p);
    CALL(&here, "add", NULL, in0, out0);
    array_down(q);
    close_to(array_get(q, 0), 5, 0, "add", 0);
    array_drop(a);
    array_drop(y);
    array_drop(p);
    array_drop(q);
}
END_TEST

START_TEST(sixteen_dimensions_are_not_too_many)
{
    const int64_t shape[] = { 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1 };
    struct array *a = array_new(&here, TN_F32, 16, shape, TURNED),
                 *y = array_new(&here, TN_F32, 16, shape, PLAIN);
    struct array *const in[] = { a, a }, *const out[] = { y };

    numbers(a, 1);
    CALL(&here, "add", NULL, in, out);
    array_down(y);
    for (int64_t i = 0; i < 256; i++)
        close_to(array_get(y, i), 2 * array_get(a, i), 0, "add", i);
    array_drop(a);
    array_drop(y);
}
END_TEST

/* For a slow device (oclgrind): the kernels in which work items meet, one type, one layout each. */
START_TEST(groups_work_together)
{
    const int64_t dim = 1;

    try_reduce(TN_F32, 2, (const int64_t[]){ 2, 70 }, PLAIN, &dim, 1, false);
    try_reduce(TN_F32, 2, (const int64_t[]){ 2, 7 }, TURNED, &dim, 1, false);
    try_bmm(TN_F32, 1, 3, 20, 65, TURNED, PLAIN, PLAIN);
    try_loss(TN_F32, "mean");
}
END_TEST

static Suite *suite_make(const char *name)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create("kernels");

    tcase_set_timeout(tcase, 300);
    suite_add_tcase(suite, tcase);
    if (getenv("TN_TEST_SLOW_DEVICE")) {
        tcase_add_test(tcase, groups_work_together);
        tcase_add_test(tcase, inputs_broadcast_from_their_own_shapes);
        tcase_add_test(tcase, argmax_gives_the_first_of_equals_and_nan_is_largest);
        tcase_add_test(tcase, an_empty_sum_is_zero);
        return suite;
    }
    tcase_add_test(tcase, operators_of_two_inputs_work_in_every_type_and_layout);
    tcase_add_test(tcase, inputs_broadcast_from_their_own_shapes);
    tcase_add_test(tcase, operators_of_one_input_work_in_every_type_and_in_place);
    tcase_add_test(tcase, infinity_and_nan_go_where_they_should);
    tcase_add_test(tcase, a_number_is_added_in_the_type_of_the_result);
    tcase_add_test(tcase, copies_convert_between_all_types);
    tcase_add_test(tcase, rounding_to_short_floats_is_to_nearest_even);
    tcase_add_test(tcase, fill_writes_its_view_and_nothing_else);
    tcase_add_test(tcase, narrow_grad_is_zero_around_its_place);
    tcase_add_test(tcase, sums_and_largest_ones_over_any_dimensions);
    tcase_add_test(tcase, a_long_sum_is_cut_into_pieces);
    tcase_add_test(tcase, a_long_sum_of_short_floats_adds_up_in_float32);
    tcase_add_test(tcase, an_empty_sum_is_zero);
    tcase_add_test(tcase, argmax_gives_the_first_of_equals_and_nan_is_largest);
    tcase_add_test(tcase, products_of_matrices_of_any_size_and_layout);
    tcase_add_test(tcase, softmax_sums_to_one_along_any_dimension);
    tcase_add_test(tcase, losses_and_their_derivatives);
    tcase_add_test(tcase, a_target_out_of_range_is_said_at_the_next_synchronisation_and_once);
    tcase_add_test(tcase, uniform_numbers_are_equal_to_the_bit);
    tcase_add_test(tcase, normal_numbers_are_equal_within_a_few_units);
    tcase_add_test(tcase,
                   nothing_happens_for_empty_tensors_and_one_element_works_without_dimensions);
    tcase_add_test(tcase, sixteen_dimensions_are_not_too_many);
    return suite;
}

int main(void)
{
    const char *which = getenv("TN_TEST_GPU");
    char file[4096];
    SRunner *runner;
    int failed;

    if (!which)
        which = "opencl";
#ifdef NO_REAL_DRIVERS
    if (strcmp(which, "opencl") == 0) {
        printf("SKIP: OpenCL drivers are not built for ThreadSanitizer\n");
        return 77;
    }
#endif
    if (strcmp(which, "opencl") == 0 && !getenv("TN_TEST_ALL"))
        tried = TRIED_IN_OPENCL;
    snprintf(file, sizeof file, "%s/plugins/.libs/backend-%s.so", TN_TEST_BUILDDIR, which);
    if (!direct_load(&here, file)) {
        printf("SKIP: backend-%s was not built\n", which);
        return 77;
    }
    if (strcmp(which, "opencl") == 0)
        *(const char **)here.plugin->options_data = getenv("TENON_OPENCL_LIBRARY");
    if (strcmp(which, "cuda") == 0) {
        static char driver[4096], kernels[4096];
        const char **options = here.plugin->options_data, *blas = getenv("TN_TEST_BLAS");

        snprintf(driver, sizeof driver, "%s/tests/.libs/fake-cuda.so", TN_TEST_BUILDDIR);
        snprintf(kernels, sizeof kernels, "%s/tests/fake-cuda/kernels", TN_TEST_SRCDIR);
        options[0] = driver;
        options[1] = blas ? driver : "none";
        options[2] = kernels;
        if (getenv("TN_TEST_REAL")) { /* tests/device/run */
            options[0] = "libcuda.so.1";
            options[1] = blas ? blas : "auto";
            options[2] = "";
        }
    }
    if (direct_open(&here, 0)) {
        printf("SKIP: %s\n", tn_error_text());
        return 77;
    }
    printf("%s: %s (%s)\n", which, here.info.name, here.info.driver);
    runner = srunner_create(suite_make(which));
    /* one process: programs compiled for one test serve the next */
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    direct_close(&here);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
