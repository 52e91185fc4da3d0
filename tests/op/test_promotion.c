/* SPDX-License-Identifier: MIT
 *
 * Types of results. Every operator of two promoted inputs, and every operator of one input and a
 * number, as the registry lists them, with all pairs of real dtypes: tensors, 0-d tensors and
 * numbers at the ends of their ranges. The judge is the same operator in float64, wherever the
 * operands fit the dtype in which the operator computes. */
#include "tests/op/suite.h"

#include <stdio.h>

#define EXACT 0x1p53 /* beyond, float64 does not hold every integer */

static const tn_dtype dtypes[] = { TN_BOOL, TN_U8,  TN_I8,   TN_I16, TN_I32,
                                   TN_I64,  TN_F16, TN_BF16, TN_F32, TN_F64 };
enum { DTYPES = sizeof dtypes / sizeof *dtypes, MOST = 9 };

/* The smallest and largest number of a dtype, and its bits before rounding. */
static const struct {
    double low, high;
    int bits;
} ranges[TN_DTYPE_COUNT] = {
    [TN_BOOL] = { 0, 1, 1 },
    [TN_U8] = { 0, 255, 8 },
    [TN_I8] = { -128, 127, 8 },
    [TN_I16] = { -32768, 32767, 16 },
    [TN_I32] = { -0x1p31, 0x1p31 - 1, 32 },
    [TN_I64] = { -0x1p63, 0x1p62, 53 },
    [TN_F16] = { -65504, 65504, 11 },
    [TN_BF16] = { -0x1.fep127, 0x1.fep127, 8 },
    [TN_F32] = { -0x1.fffffep127, 0x1.fffffep127, 24 },
    [TN_F64] = { -0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023, 53 },
};

static bool is_float(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}

static bool fits(double value, tn_dtype dtype)
{
    int exponent;

    if (value < ranges[dtype].low || value > ranges[dtype].high)
        return false;
    if (!is_float(dtype))
        return value == trunc(value);
    return fmod(ldexp(frexp(value, &exponent), ranges[dtype].bits), 1) == 0;
}

/* Writes numbers of the dtype, with the ends of integer ranges, and returns how many. */
static int values_of(tn_dtype dtype, double *out)
{
    static const double some[] = { 0, 1, 2, 3, 100, -1, -3, 0.5, -2.5 };
    int count = 0;

    for (int i = 0; i < MOST - 2; i++) {
        double value = some[is_float(dtype) ? i + 2 : i];

        if (fits(value, dtype))
            out[count++] = value;
    }
    if (!is_float(dtype) && dtype != TN_BOOL) {
        out[count++] = ranges[dtype].low;
        out[count++] = ranges[dtype].high;
    }
    return count;
}

/* A column [n, 1] or a row [n] of these numbers, a 0-d tensor if n is 0. */
static tn_tensor *tensor_of(const double *values, int n, bool column, tn_dtype dtype)
{
    int64_t shape[2] = { n, 1 };
    tn_tensor *wide = tn_tensor_from(values, TN_F64, (tn_ints){ shape, n == 0 ? 0 : 1 + column });

    return tn_cast(wide, dtype);
}

/* The dtype in which the operator computed: that of the result, of comparisons the promoted one. */
static tn_dtype computed_in(tn_tensor *y, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *sum = tn_tensor_dtype(y) == TN_BOOL ? tn_add(a, b) : y;

    ck_assert_ptr_nonnull(sum);
    return tn_tensor_dtype(sum);
}

/* Returns whether the result of one element is that of float64, as far as it has to be. */
static bool is_right(double got, double right, tn_dtype dtype)
{
    double unit = ldexp(1, 1 - ranges[dtype].bits);

    if (dtype == TN_BOOL)
        return got == (right != 0);
    if (isnan(right) || isinf(right) || fabs(right) > ranges[dtype].high / 2 ||
        right < ranges[dtype].low)
        return true;
    if (!is_float(dtype))
        return fabs(right) >= EXACT || got == trunc(right);
    return fabs(got - right) <= 8 * unit * (fabs(right) + 0x1p-8);
}

static int64_t compared;

/* Compares all elements of y with those of `right`, a result of float64. a and b are the operands
 * as they broadcast, in float64. */
static void compare(const char *name, tn_tensor *y, tn_tensor *right, tn_tensor *a, tn_tensor *b,
                    tn_dtype in, const char *what)
{
    tn_tensor *all[4] = { tn_cast(y, TN_F64), tn_cast(right, TN_F64), a, b };
    int64_t count = tn_tensor_numel(y);
    double *at[4];

    ck_assert_int_eq(tn_tensor_numel(right), count);
    for (int i = 0; i < 4; i++) {
        at[i] = malloc((size_t)count * sizeof(double));
        all[i] = tn_copy(tn_expand(all[i], tn_tensor_shape(y)));
        ck_assert_int_eq(tn_tensor_copy_out(all[i], at[i], (size_t)count * sizeof(double)), TN_OK);
    }
    for (int64_t k = 0; k < count; k++) {
        if (!fits(at[2][k], in) || !fits(at[3][k], in))
            continue;
        compared++;
        ck_assert_msg(is_right(at[0][k], at[1][k], tn_tensor_dtype(y)),
                      "%s: %s: %g and %g give %s %.17g; expected %.17g", name, what, at[2][k],
                      at[3][k], tn_dtype_name(tn_tensor_dtype(y)), at[0][k], at[1][k]);
    }
    for (int i = 0; i < 4; i++)
        free(at[i]);
}

static tn_tensor *call(const tn_op *op, tn_tensor *a, tn_tensor *b, const void *options)
{
    tn_tensor *in[2] = { a, b }, *out[1] = { NULL };

    if (a == NULL || b == NULL || tn_op_call(op, in, 2, options, out, 1) != TN_OK)
        return NULL;
    return out[0];
}

/* ---- two tensors ----------------------------------------------------------------------------- */

static bool takes_two(const tn_op_def *def)
{
    const uint64_t other = TN_OPERAND_OPTIONAL | TN_OPERAND_NO_PROMOTE | TN_OPERAND_LIST;
    const tn_option *row = def->options;

    for (; row != NULL && row->kind != TN_OPTION_KIND_END; row++)
        if (row->flags & TN_OPTION_REQUIRED)
            return false;
    return def->n_inputs == 2 && def->n_outputs == 1 && (def->flags & TN_OP_POINTWISE) != 0 &&
           (def->flags & (TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT)) != 0 &&
           ((def->inputs[0].flags | def->inputs[1].flags) & other) == 0;
}

static void check_pair(const tn_op *op, tn_dtype da, tn_dtype db, int form)
{
    const char *name = tn_op_definition(op)->name;
    double va[MOST], vb[MOST];
    int na = values_of(da, va), nb = values_of(db, vb);
    char what[80];

    snprintf(what, sizeof what, "%s %s, %s %s", form == 2 ? "0-d" : "tensor", tn_dtype_name(da),
             form == 1 ? "0-d" : "tensor", tn_dtype_name(db));
    for (int k = 0; k < (form == 1 ? nb : form == 2 ? na : 1); k++) {
        TN_SCOPE;
        const double *pa = form == 2 ? va + k : va, *pb = form == 1 ? vb + k : vb;
        int ca = form == 2 ? 0 : na, cb = form == 1 ? 0 : nb;
        tn_tensor *a = tensor_of(pa, ca, true, da), *b = tensor_of(pb, cb, false, db), *y, *right;
        tn_tensor *wide_a = tn_cast(a, TN_F64), *wide_b = tn_cast(b, TN_F64);

        y = call(op, a, b, NULL);
        if (y == NULL) { /* a division by zero, or dtypes that the operator refuses */
            tn_error_clear();
            continue;
        }
        right = call(op, wide_a, wide_b, NULL);
        if (right == NULL) {
            tn_error_clear();
            return;
        }
        compare(name, y, right, wide_a, wide_b, computed_in(y, a, b), what);
    }
}

START_TEST(operators_of_two_tensors_agree_with_float64_for_all_pairs_of_dtypes)
{
    int operators = 0;

    compared = 0;
    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op *op = tn_op_find(tn_op_name_at(i), 0);

        /* ldexp of 0 is NaN where 2^b is infinite in float32, as in PyTorch. */
        if (!takes_two(tn_op_definition(op)) || strcmp(tn_op_name_at(i), "ldexp") == 0)
            continue;
        operators++;
        for (int a = 0; a < DTYPES; a++)
            for (int b = 0; b < DTYPES; b++)
                for (int form = 0; form < 3; form++)
                    check_pair(op, dtypes[a], dtypes[b], form);
    }
    ck_assert_int_ge(operators, 25);
    ck_assert_int_ge(compared, 100000);
}
END_TEST

/* sub of bool is refused, as in PyTorch; the incomplete gamma functions take floats only. */
static bool never_mixes(const char *name, tn_dtype other)
{
    return strncmp(name, "igamma", 6) == 0 ? !is_float(other)
                                           : strcmp(name, "sub") == 0 && other == TN_BOOL;
}

START_TEST(operators_that_promote_floats_accept_integers_and_bool_beside_them)
{
    int checked = 0;

    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op *op = tn_op_find(tn_op_name_at(i), 0);
        const char *name = tn_op_definition(op)->name;
        double half = 0.5, one = 1;

        if (!takes_two(tn_op_definition(op)))
            continue;
        for (int d = 0; d < DTYPES; d++) {
            TN_SCOPE;
            tn_tensor *x = tensor_of(&half, 1, false, TN_F16), *y;
            tn_tensor *other = tensor_of(&one, 1, false, dtypes[d]);

            if (never_mixes(name, dtypes[d]))
                continue;
            if (call(op, x, x, NULL) == NULL) {
                tn_error_clear();
                break;
            }
            y = call(op, x, other, NULL);
            ck_assert_msg(y != NULL, "%s: float16 and %s: %s", name, tn_dtype_name(dtypes[d]),
                          tn_error_last()->message);
            y = call(op, other, x, NULL);
            ck_assert_msg(y != NULL, "%s: %s and float16: %s", name, tn_dtype_name(dtypes[d]),
                          tn_error_last()->message);
            checked++;
        }
    }
    ck_assert_int_ge(checked, 15 * DTYPES);
}
END_TEST

/* ---- a tensor and a number ------------------------------------------------------------------- */

/* Returns the only option of an operator of one input that is a number and may be set alone. */
static const tn_option *number_of(const tn_op_def *def)
{
    const tn_option *row = def->options, *found = NULL;

    if (def->n_inputs != 1 || def->n_outputs != 1 || (def->flags & TN_OP_POINTWISE) == 0)
        return NULL;
    for (; row != NULL && row->kind != TN_OPTION_KIND_END; row++) {
        if (row->kind == TN_OPTION_KIND_SCALAR && found == NULL)
            found = row;
        else if (row->flags & TN_OPTION_REQUIRED)
            return NULL;
    }
    return found;
}

static tn_tensor *with_number(const tn_op *op, const tn_option *row, tn_tensor *x, tn_scalar number)
{
    const tn_op_def *def = tn_op_definition(op);
    uint64_t space[32];
    tn_tensor *out = NULL;

    ck_assert_uint_le(def->options_size, sizeof space);
    memcpy(space, def->defaults, def->options_size);
    memcpy((char *)space + row->offset, &number, sizeof number);
    if (x == NULL || tn_op_call(op, &x, 1, space, &out, 1) != TN_OK) {
        tn_error_clear();
        return NULL;
    }
    return out;
}

static void check_number(const tn_op *op, const tn_option *row, tn_dtype dtype, tn_scalar number)
{
    TN_SCOPE;
    const char *name = tn_op_definition(op)->name;
    double values[MOST], value = tn_scalar_as_float(number);
    int count = values_of(dtype, values);
    tn_tensor *x = tensor_of(values, count, false, dtype), *wide = tn_cast(x, TN_F64);
    tn_tensor *y = with_number(op, row, x, number), *right = with_number(op, row, wide, number);
    char what[80];

    if (y == NULL || right == NULL)
        return;
    snprintf(what, sizeof what, "%s and the %s", tn_dtype_name(dtype),
             number.kind == TN_SCALAR_FLOAT ? "float" : "integer");
    compare(name, y, right, wide, tensor_of(&value, 0, false, TN_F64), tn_tensor_dtype(y), what);
}

START_TEST(operators_of_a_tensor_and_a_number_agree_with_float64)
{
    static const int64_t integers[] = { 0, 1, 2, -1, 127, 200, 255, 300, 32768, 1LL << 40 };
    static const double floats[] = { 0, 1, 2, 0.5, -1, 200, 300, 1e5 };
    int operators = 0;

    compared = 0;
    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op *op = tn_op_find(tn_op_name_at(i), 0);
        const tn_option *row = number_of(tn_op_definition(op));

        if (row == NULL)
            continue;
        operators++;
        for (int d = 0; d < DTYPES; d++) {
            for (size_t k = 0; k < sizeof integers / sizeof *integers; k++)
                check_number(op, row, dtypes[d], tn_scalar_int(integers[k]));
            for (size_t k = 0; k < sizeof floats / sizeof *floats; k++)
                check_number(op, row, dtypes[d], tn_scalar_float(floats[k]));
        }
    }
    ck_assert_int_ge(operators, 4);
    ck_assert_int_ge(compared, 2000);
}
END_TEST

START_TEST(the_dtype_depends_on_the_kind_of_a_number_and_not_on_its_value)
{
    int checked = 0;

    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op *op = tn_op_find(tn_op_name_at(i), 0);
        const tn_option *row = number_of(tn_op_definition(op));

        for (int d = 0; d < DTYPES && row != NULL; d++) {
            TN_SCOPE;
            double one = 1;
            tn_tensor *x = tensor_of(&one, 1, false, dtypes[d]);
            tn_tensor *whole = with_number(op, row, x, tn_scalar_float(2)),
                      *other = with_number(op, row, x, tn_scalar_float(2.5));

            if (whole == NULL || other == NULL)
                continue;
            checked++;
            ck_assert_msg(tn_tensor_dtype(whole) == tn_tensor_dtype(other),
                          "%s: %s and 2.0 give %s, 2.5 gives %s", tn_op_definition(op)->name,
                          tn_dtype_name(dtypes[d]), tn_dtype_name(tn_tensor_dtype(whole)),
                          tn_dtype_name(tn_tensor_dtype(other)));
        }
    }
    ck_assert_int_ge(checked, 4 * DTYPES - 2);
}
END_TEST

/* ---- rows that were wrong -------------------------------------------------------------------- */

static bool near(double got, double expected)
{
    return got == expected || fabs(got - expected) <= 1e-6 * fabs(expected);
}

static void gives(tn_tensor *y, tn_dtype dtype, double first, double second)
{
    double got[2];

    ck_assert_msg(y != NULL, "%s", tn_error_last()->message);
    ck_assert_int_eq(tn_tensor_dtype(y), dtype);
    ck_assert_int_eq(tn_tensor_copy_out(tn_cast(y, TN_F64), got, sizeof got), TN_OK);
    ck_assert_msg(near(got[0], first) && near(got[1], second),
                  "got %.9g, %.9g; expected %.9g, %.9g", got[0], got[1], first, second);
}

static tn_tensor *two(tn_dtype dtype, double a, double b)
{
    return tensor_of((const double[]){ a, b }, 2, false, dtype);
}

static tn_tensor *lone(tn_dtype dtype, double a)
{
    return tensor_of(&a, 0, false, dtype);
}

START_TEST(true_division_reads_integers_before_they_are_narrowed)
{
    TN_SCOPE;
    gives(tn_div(two(TN_I16, 16384, -8192), lone(TN_I32, 32768)), TN_F32, 0.5, -0.25);
    gives(tn_div(two(TN_U8, 128, 64), lone(TN_I64, 256)), TN_F32, 0.5, 0.25);
    gives(tn_div(two(TN_I8, 100, -50), lone(TN_I64, 1000)), TN_F32, 0.1, -0.05);
    gives(tn_div(two(TN_I32, 1 << 30, 1), lone(TN_I64, 0x1p40)), TN_F32, 0x1p-10, 0x1p-40);
    gives(tn_div(lone(TN_I64, 1000), two(TN_I8, 100, -50)), TN_F32, 10, -20);
}
END_TEST

START_TEST(a_float_number_makes_integers_float_even_if_it_is_whole)
{
    TN_SCOPE;
    tn_tensor *x = two(TN_U8, 200, 100);

    gives(tn_mul_scalar(x, 2.0), TN_F32, 400, 200);
    gives(tn_mul_scalar(x, 2), TN_U8, 144, 200);
    gives(tn_add_scalar(x, 100.0), TN_F32, 300, 200);
    gives(tn_pow_scalar(x, 2.0), TN_F32, 40000, 10000);
    gives(tn_pow_scalar(two(TN_I32, 3, 4), 2), TN_I32, 9, 16);
    gives(tn_pow_scalar(two(TN_BOOL, 1, 0), (bool)false), TN_BOOL, 1, 1);
    gives(tn_pow_scalar(two(TN_BOOL, 1, 0), (bool)true), TN_BOOL, 1, 0);
    gives(tn_pow_scalar(two(TN_BOOL, 1, 0), 0), TN_I64, 1, 1);
    gives(tn_clamp(x, 0.0, 150.0), TN_F32, 150, 100);
    gives(tn_clamp(x, 0, 150), TN_U8, 150, 100);
    gives(tn_arange(TN_NONE, 3.0, 5.0), TN_F32, 3, 4);
    gives(tn_arange(TN_NONE, 3, 5), TN_I64, 3, 4);
    ck_assert_ptr_null(tn_mul_scalar_(x, 2.0)); /* its dtype cannot change */
    tn_error_clear();
    ck_assert_ptr_null(tn_add(x, x, 2.0));
    tn_error_clear();
}
END_TEST

START_TEST(powers_of_2_that_a_half_cannot_hold_leave_0_and_infinity)
{
    TN_SCOPE;
    tn_tensor *x = two(TN_F16, -INFINITY, 0), *y = two(TN_F16, 1, 3);

    gives(tn_ldexp(x, two(TN_I8, -127, 127)), TN_F16, -INFINITY, 0);
    gives(tn_ldexp(y, two(TN_I8, -20, 14)), TN_F16, 0x1p-20, 49152);
    ck_assert(isnan(tn_tensor_item(tn_select(tn_ldexp(x, two(TN_F16, 0, INFINITY)), 0, 1))));
}
END_TEST

START_TEST(integers_and_bool_are_promoted_beside_floats)
{
    TN_SCOPE;
    tn_tensor *f = two(TN_F32, 0.5, 2), *n = two(TN_I64, 2, 3), *flag = two(TN_BOOL, 1, 0);
    tn_tensor *values = NULL, *indices = NULL;

    gives(tn_addcdiv(f, n, n), TN_F32, 1.5, 3);
    gives(tn_addcmul(f, n, flag), TN_F32, 2.5, 2);
    gives(tn_addcmul(n, n, flag, 2.0), TN_I64, 6, 3);
    gives(tn_logaddexp(f, n), TN_F32, 2.2014132779827524, 3.3132616875182228);
    gives(tn_hypot(n, f), TN_F32, 2.0615528128088303, 3.605551275463989);
    gives(tn_bitwise_left_shift(n, flag), TN_I64, 4, 3);
    gives(tn_gcd(n, flag), TN_I64, 1, 3);
    gives(tn_lcm(flag, n), TN_I64, 2, 0);
    gives(tn_hardtanh(n, -1, 2.5), TN_I64, 2, 2);
    gives(tn_clamp(flag, 0, 2), TN_I64, 1, 0);
    gives(tn_sgn(flag), TN_BOOL, 1, 0);
    gives(tn_mse_loss(f, n, "none"), TN_F32, 2.25, 1);
    gives(tn_huber_loss(n, f, "none"), TN_F32, 1, 0.5);
    ck_assert_int_eq(tn_max_dim(flag, 0, &values, &indices), TN_OK);
    ck_assert(tn_tensor_dtype(values) == TN_BOOL && tn_tensor_item(values) == 1);
    ck_assert(tn_tensor_item(indices) == 0);
    ck_assert_int_eq(tn_min_dim(flag, 0, &values, &indices), TN_OK);
    ck_assert(tn_tensor_item(values) == 0 && tn_tensor_item(indices) == 1);
    ck_assert_ptr_null(tn_addcdiv(n, n, n));
    ck_assert_int_eq(tn_error_last_code(), TN_ERR_NOT_IMPLEMENTED);
    ck_assert_ptr_null(tn_mse_loss(n, n));
    ck_assert_ptr_null(tn_gcd(flag, flag));
    tn_error_clear();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        true_division_reads_integers_before_they_are_narrowed,
        a_float_number_makes_integers_float_even_if_it_is_whole,
        powers_of_2_that_a_half_cannot_hold_leave_0_and_infinity,
        integers_and_bool_are_promoted_beside_floats,
        operators_of_two_tensors_agree_with_float64_for_all_pairs_of_dtypes,
        operators_that_promote_floats_accept_integers_and_bool_beside_them,
        operators_of_a_tensor_and_a_number_agree_with_float64,
        the_dtype_depends_on_the_kind_of_a_number_and_not_on_its_value
    };
    Suite *suite = suite_create("promotion");
    TCase *tcase = tcase_create("all");

    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
