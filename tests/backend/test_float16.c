/* SPDX-License-Identifier: MIT
 *
 * float16 and bfloat16 with every instruction set: all their numbers, rounding from float32, signs,
 * index_add, sums of columns and of rows, and functions of three tensors. */
#include "tests/backend/backend.h"

static const tn_dtype types[] = { TN_F16, TN_BF16 };
enum { ALL = 65536, INFINITE_F16 = 0x7c00, INFINITE_BF16 = 0x7f80 };

static tn_tensor *from_bits(const uint16_t *bits, int64_t n, tn_dtype dtype)
{
    tn_tensor *x = tn_tensor_from(bits, dtype, (tn_ints){ &n, 1 });
    there(x);
    return x;
}

static const uint16_t *bits_of(tn_tensor *x)
{
    there(x);
    return tn_tensor_data(x);
}

static bool odd(uint16_t bits, tn_dtype dtype)
{
    return (bits & 0x7fff) > (dtype == TN_F16 ? INFINITE_F16 : INFINITE_BF16);
}

static void check_all_numbers(void)
{
    static uint16_t all[ALL];
    for (int t = 0; t < 2; t++)
        for (int64_t skip = 0; skip < 40; skip += 13) { /* a NaN at other places of a vector */
            TN_SCOPE;
            for (int64_t i = 0; i < ALL; i++)
                all[i] = (uint16_t)((i * 40503 + skip) & 0xffff); /* in no order */
            tn_tensor *x = from_bits(all + skip, ALL - skip, types[t]);
            tn_tensor *wide = tn_cast(x, TN_F32);
            const uint16_t *same = bits_of(tn_cast(wide, types[t])), *neg = bits_of(tn_neg(x)),
                           *size = bits_of(tn_abs(x));
            const float *f = tn_tensor_data(wide);
            for (int64_t i = 0; i < ALL - skip; i++) {
                uint16_t b = all[skip + i];
                if (odd(b, types[t]))
                    ck_assert(f[i] != f[i] && odd(same[i], types[t]));
                else
                    ck_assert_msg(same[i] == b, "%s %04x: %04x", tn_dtype_name(types[t]), b,
                                  same[i]);
                ck_assert_int_eq(neg[i], b ^ 0x8000);
                ck_assert_int_eq(size[i], b & 0x7fff);
            }
        }
}

/* Rounds numbers between each number of the type and the next one: the middle is rounded to the
 * even number, a number beside the middle to the nearer one. */
static void check_rounding(void)
{
    static uint16_t low[ALL / 2];
    static float between[3 * ALL / 2];
    for (int t = 0; t < 2; t++) {
        TN_SCOPE;
        int64_t n = types[t] == TN_F16 ? INFINITE_F16 : INFINITE_BF16;
        for (int64_t i = 0; i < n; i++)
            low[i] = (uint16_t)i;
        const float *f = tn_tensor_data(tn_cast(from_bits(low, n, types[t]), TN_F32));
        for (int64_t i = 0; i < n; i++) {
            double step = types[t] == TN_F16 ? 32 : 0x1p120,
                   next = i + 1 < n ? (double)f[i + 1] : (double)f[i] + step;
            between[3 * i + 1] = (float)(((double)f[i] + next) / 2);
            between[3 * i] = nextafterf(between[3 * i + 1], 0);
            between[3 * i + 2] = nextafterf(between[3 * i + 1], INFINITY);
        }
        int64_t count = 3 * n;
        const uint16_t *to = bits_of(
            tn_cast(tn_tensor_from(between, TN_F32, (tn_ints){ &count, 1 }), types[t]));
        for (int64_t i = 0; i < n; i++) {
            ck_assert_msg(to[3 * i] == i && to[3 * i + 1] == (i + 1) / 2 * 2 &&
                              to[3 * i + 2] == i + 1,
                          "%s %04llx: %04x %04x %04x", tn_dtype_name(types[t]),
                          (unsigned long long)i, to[3 * i], to[3 * i + 1], to[3 * i + 2]);
        }
    }
}

enum { ROWS = 37, COLUMNS = 41, TAKEN = 90 };

/* index_add with indices that occur many times: each sum is rounded to the type, in the order of
 * the index. */
static void check_sums_at_places(void)
{
    const tn_device *device = tn_default_device();
    static double x[ROWS * COLUMNS], y[TAKEN * COLUMNS], want[ROWS * COLUMNS];
    int64_t places[TAKEN], each[TAKEN * COLUMNS], shape[2] = { ROWS, COLUMNS },
                                                  taken[2] = { TAKEN, COLUMNS };
    for (int64_t i = 0; i < TAKEN; i++)
        places[i] = i * i % ROWS;
    for (int64_t i = 0; i < TAKEN * COLUMNS; i++)
        each[i] = i * 7 % ROWS;
    for (int t = 0; t < 2; t++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            TN_SCOPE;
            numbers(x, ROWS * COLUMNS, -3, 3, types[t]);
            numbers(y, TAKEN * COLUMNS, -3, 3, types[t]);
            tn_tensor *to = put(device, types[t], (tn_ints){ shape, 2 }, x, (enum layout)layout);
            tn_tensor *of = put(device, types[t], (tn_ints){ taken, 2 }, y, (enum layout)layout);
            tn_tensor *rows = tn_tensor_from(places, TN_I64, TN_SHAPE(TAKEN));
            tn_tensor *index = tn_tensor_from(each, TN_I64, (tn_ints){ taken, 2 });
            memcpy(want, x, sizeof want);
            for (int64_t i = 0; i < TAKEN * COLUMNS; i++) {
                double *at = want + places[i / COLUMNS] * COLUMNS + i % COLUMNS;
                *at = stored(*at + y[i], types[t]);
            }
            same("index_add", device, types[t], tn_index_add(to, rows, of, 0), want, 0, 0);
            memcpy(want, x, sizeof want);
            for (int64_t i = 0; i < TAKEN * COLUMNS; i++) {
                double *at = want + each[i] * COLUMNS + i % COLUMNS;
                *at = stored(*at + y[i], types[t]);
            }
            same("scatter_add", device, types[t], tn_scatter_add(to, index, of, 0), want, 0, 0);
            each[TAKEN * COLUMNS - 3] = ROWS;
            index = tn_tensor_from(each, TN_I64, (tn_ints){ taken, 2 });
            each[TAKEN * COLUMNS - 3] = 0;
            ck_assert_ptr_null(tn_scatter_add(to, index, of, 0));
            ck_assert_ptr_nonnull(strstr(tn_error_text(), "index 37 is out of bounds"));
            tn_error_clear();
        }
}

/* Functions of x, y and z with elements in [a, b]. The result in the narrow type must equal the
 * result in float32, rounded once. */
typedef tn_tensor *one_of(tn_tensor *x, tn_tensor *y, tn_tensor *z);

static tn_tensor *columns_softmax(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    (void)y, (void)z;
    return tn_softmax(x, 0);
}

static tn_tensor *columns_log_softmax(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    (void)y, (void)z;
    return tn_log_softmax(x, 0);
}

static tn_tensor *columns_log_softmax_grad(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    (void)z;
    return tn_log_softmax_grad(x, y, 0);
}

static tn_tensor *mixed(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    return tn_addcmul(x, y, z, 0.5);
}

static tn_tensor *mixed_quotient(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    return tn_addcdiv(x, y, z, -1.5);
}

static tn_tensor *between(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    return tn_lerp(x, tn_select(y, 0, 0), z); /* one row for all */
}

static tn_tensor *a_third_between(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    (void)z;
    return tn_lerp_scalar(x, y, 0.3);
}

static tn_tensor *row_sums(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    const int64_t last = 1;
    (void)y, (void)z;
    return tn_sum(x, TN_INTS(last));
}

static tn_tensor *column_sums(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    const int64_t first = 0;
    (void)y, (void)z;
    return tn_sum(x, TN_INTS(first));
}

static tn_tensor *row_norms(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    const int64_t last = 1;
    (void)y, (void)z;
    return tn_norm(x, 2.0, TN_INTS(last));
}

static tn_tensor *standard(tn_tensor *x, tn_tensor *y, tn_tensor *z, int64_t dim, int which)
{
    tn_tensor *out[3];
    ok(tn_standardize(x, tn_clone(tn_select(y, 0, 0)), tn_clone(tn_select(z, 0, 0)),
                      ((tn_ints){ &dim, 1 }), &out[0], &out[1], &out[2]));
    ck_assert_int_eq(tn_tensor_dtype(out[1]), TN_F32);
    return out[which];
}

static tn_tensor *standard_rows(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    return standard(x, y, z, 1, 0);
}

static tn_tensor *standard_columns(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    return standard(x, y, z, 0, 0);
}

static tn_tensor *spread_of_rows(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    return standard(x, y, z, 1, 2);
}

static tn_tensor *back_from_standard(tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    tn_tensor *weight = tn_clone(tn_select(z, 0, 0));
    tn_tensor_set_requires_grad(weight, true);
    tn_tensor *out[3];
    const int64_t last = 1;
    ok(tn_standardize(tn_detach(x), weight, TN_NONE, ((tn_ints){ &last, 1 }), &out[0], &out[1],
                      &out[2]));
    ok(tn_backward(tn_sum(tn_mul(out[0], y))));
    return tn_tensor_grad(weight);
}

static const struct {
    const char *name;
    one_of *of;
    double units; /* of the narrow type */
} ways[] = {
    { "softmax of columns", columns_softmax, 1 },
    { "log_softmax of columns", columns_log_softmax, 1 },
    { "log_softmax_grad of columns", columns_log_softmax_grad, 1 },
    { "addcmul", mixed, 0 },
    { "addcdiv", mixed_quotient, 0 },
    { "lerp", between, 0 },
    { "lerp_scalar", a_third_between, 0 },
    { "clamp_tensor", tn_clamp_tensor, 0 },
    { "sum of rows", row_sums, 1 },
    { "sum of columns", column_sums, 1 },
    { "norm of rows", row_norms, 1 },
    { "standardize rows", standard_rows, 4 },
    { "standardize columns", standard_columns, 4 },
    { "variance of rows", spread_of_rows, 4 },
    { "gradient of standardize", back_from_standard, 40 }, /* the product before it is rounded */
};

static void check_ways(int64_t rows, int64_t columns)
{
    const tn_device *device = tn_default_device();
    int64_t shape[2] = { rows, columns }, count = rows * columns;
    double *x = room(count), *y = room(count), *z = room(count);
    for (int t = 0; t < 2; t++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
                TN_SCOPE;
                tn_tensor *in[3], *wide[3];
                double *from[3] = { x, y, z };
                for (int i = 0; i < 3; i++) {
                    numbers(from[i], count, i == 2 ? 0.25 : -2, 2, types[t]);
                    in[i] = put(device, types[t], (tn_ints){ shape, 2 }, from[i],
                                (enum layout)layout);
                    wide[i] = tn_cast(in[i], TN_F32);
                }
                tn_tensor *got = ways[k].of(in[0], in[1], in[2]),
                          *want = ways[k].of(wide[0], wide[1], wide[2]);
                there(got);
                there(want);
                same(ways[k].name, device, tn_tensor_dtype(got), got,
                     get(tn_cast(want, tn_tensor_dtype(got))), ways[k].units, 1);
            }
}

static void check(const char *name)
{
    if (!instruction_set(name))
        return;
    check_ways(1, 1);
    check_ways(7, 5);
    check_ways(33, 130);
    check_ways(130, 67);
    check_ways(2, 600);
    check_ways(5000, 4); /* rows longer than a buffer, transposed */
    check_ways(9000, 5); /* too long for blocks */
    check_all_numbers();
    check_rounding();
    check_sums_at_places();
}

START_TEST(narrow_floats_with_the_best_instruction_set)
{
    check("auto");
}
END_TEST

START_TEST(narrow_floats_with_avx2)
{
    check("avx2");
}
END_TEST

START_TEST(narrow_floats_with_the_baseline)
{
    check("baseline");
}
END_TEST

RUN_SUITE("float16", narrow_floats_with_the_best_instruction_set, narrow_floats_with_avx2,
          narrow_floats_with_the_baseline)
