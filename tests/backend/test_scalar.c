/* SPDX-License-Identifier: MIT
 *
 * Numbers of every kind as options of operators, on every device: integers that a double does not
 * hold, complex numbers, bool. Expected are the rules of 64-bit and of complex arithmetic; what is
 * refused is what PyTorch refuses. */
#include <complex.h>

#include "tests/backend/backend.h"

#define BIG ((int64_t)9007199254740993) /* 2^53 + 1 */

/* ---- tensors of exact elements --------------------------------------------------------------- */

static tn_tensor *from(const tn_device *device, tn_dtype dtype, int64_t count, const void *elements)
{
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(count), dtype, device);
    there(x);
    ok(tn_tensor_copy_in(x, elements, (size_t)count * tn_dtype_size(dtype)));
    return x;
}

static tn_tensor *mask(const tn_device *device)
{
    static const bool on[4] = { true, true, true, true };
    return from(device, TN_BOOL, 4, on);
}

static tn_tensor *matrix(tn_tensor *x)
{
    return tn_reshape(x, TN_SHAPE(2, 2));
}

static tn_tensor *eye(tn_tensor *x)
{
    static const int64_t ones[4] = { 1, 0, 0, 1 };
    return tn_cast(matrix(from(tn_tensor_device(x), TN_I64, 4, ones)), tn_tensor_dtype(x));
}

/* ---- the operators --------------------------------------------------------------------------- */

static tn_tensor *by_fill(tn_tensor *x, tn_scalar s)
{
    return tn_fill(x, s);
}
static tn_tensor *by_fill_in_place(tn_tensor *x, tn_scalar s)
{
    return tn_fill_(tn_copy(x), s);
}
static tn_tensor *by_tensor_full(tn_tensor *x, tn_scalar s)
{
    return tn_tensor_full(TN_SHAPE(4), s, tn_tensor_dtype(x), tn_tensor_device(x));
}
static tn_tensor *by_full(tn_tensor *x, tn_scalar s)
{
    return tn_full(x, TN_SHAPE(4), s, tn_tensor_dtype(x));
}
static tn_tensor *by_mask(tn_tensor *x, tn_scalar s)
{
    return tn_masked_fill(x, mask(tn_tensor_device(x)), s);
}
static tn_tensor *by_pad(tn_tensor *x, tn_scalar s)
{
    return tn_narrow(tn_pad(x, TN_SHAPE(4, 0), "constant", s), 0, 0, 4);
}
static tn_tensor *by_threshold(tn_tensor *x, tn_scalar s)
{
    return tn_threshold(x, INT64_MAX, s);
}
static tn_tensor *by_add_scalar(tn_tensor *x, tn_scalar s)
{
    return tn_add_scalar(x, s);
}
static tn_tensor *by_add_scalar_in_place(tn_tensor *x, tn_scalar s)
{
    return tn_add_scalar_(tn_copy(x), s);
}
static tn_tensor *by_mul_scalar(tn_tensor *x, tn_scalar s)
{
    return tn_mul_scalar(x, s);
}
static tn_tensor *by_add(tn_tensor *x, tn_scalar s)
{
    return tn_add(x, x, s);
}
static tn_tensor *by_sub(tn_tensor *x, tn_scalar s)
{
    return tn_sub(x, x, s);
}
static tn_tensor *by_addcmul(tn_tensor *x, tn_scalar s)
{
    return tn_addcmul(x, x, x, s);
}
static tn_tensor *by_addcdiv(tn_tensor *x, tn_scalar s)
{
    return tn_addcdiv(x, x, tn_mul(x, x), s);
}
static tn_tensor *by_lerp(tn_tensor *x, tn_scalar s)
{
    return tn_lerp_scalar(x, tn_mul(x, x), s);
}
static tn_tensor *by_index_add(tn_tensor *x, tn_scalar s)
{
    static const int64_t places[4] = { 0, 1, 2, 3 };
    return tn_index_add(x, from(tn_tensor_device(x), TN_I64, 4, places), x, 0, s);
}
static tn_tensor *by_addmm_alpha(tn_tensor *x, tn_scalar s)
{
    return tn_reshape(tn_addmm(matrix(x), eye(x), matrix(x), 1, s), TN_SHAPE(4));
}
static tn_tensor *by_addmm_beta(tn_tensor *x, tn_scalar s)
{
    return tn_reshape(tn_addmm(matrix(x), eye(x), matrix(x), s), TN_SHAPE(4));
}
static tn_tensor *by_min(tn_tensor *x, tn_scalar s)
{
    return tn_clamp(x, s);
}
static tn_tensor *by_max(tn_tensor *x, tn_scalar s)
{
    return tn_clamp(x, tn_scalar_none(), s);
}
static tn_tensor *by_pow(tn_tensor *x, tn_scalar s)
{
    return tn_pow_scalar(x, s);
}

/* The four elements of the result; false where the device has no kernel for it. */
static bool result(const char *name, const tn_device *device, tn_tensor *y, void *out, size_t item)
{
    if (y == NULL && tn_error_last_code() == TN_ERR_NOT_IMPLEMENTED &&
        strcmp(tn_device_name(device), "cpu") != 0) {
        tn_error_clear();
        return false;
    }
    ck_assert_msg(y != NULL, "%s on %s: %s", name, tn_device_name(device),
                  tn_error_last()->message);
    ok(tn_tensor_copy_out(y, out, 4 * item));
    checks_made++;
    return true;
}

/* ---- integers -------------------------------------------------------------------------------- */

typedef uint64_t u64;
#define RULE(name, expr)                                                                           \
    static int64_t name(int64_t x, int64_t s)                                                      \
    {                                                                                              \
        (void)x, (void)s;                                                                          \
        return (int64_t)(expr);                                                                    \
    }
RULE(is_value, s)
RULE(is_sum, (u64)x + (u64)s)
RULE(is_product, (u64)x *(u64)s)
RULE(is_scaled_sum, (u64)x + (u64)s * (u64)x)
RULE(is_scaled_difference, (u64)x - (u64)s * (u64)x)
RULE(is_scaled_square, (u64)x + (u64)s * (u64)x * (u64)x)
RULE(is_greater, x > s ? x : s)
RULE(is_less, x < s ? x : s)

static const struct {
    const char *name;
    tn_tensor *(*made)(tn_tensor *x, tn_scalar s);
    int64_t (*expected)(int64_t x, int64_t s);
} whole_rows[] = {
    { "fill", by_fill, is_value },
    { "fill_", by_fill_in_place, is_value },
    { "tn_tensor_full", by_tensor_full, is_value },
    { "full", by_full, is_value },
    { "masked_fill", by_mask, is_value },
    { "pad", by_pad, is_value },
    { "threshold", by_threshold, is_value },
    { "add_scalar", by_add_scalar, is_sum },
    { "add_scalar_", by_add_scalar_in_place, is_sum },
    { "mul_scalar", by_mul_scalar, is_product },
    { "add", by_add, is_scaled_sum },
    { "sub", by_sub, is_scaled_difference },
    { "addcmul", by_addcmul, is_scaled_square },
    { "index_add", by_index_add, is_scaled_sum },
    { "addmm, alpha", by_addmm_alpha, is_scaled_sum },
    { "addmm, beta", by_addmm_beta, is_scaled_sum },
    { "clamp, min", by_min, is_greater },
    { "clamp, max", by_max, is_less },
};

START_TEST(integers_of_64_bits_are_exact_in_every_operator)
{
    static const int64_t x[4] = { 3, -BIG, BIG + 1, 1 };
    static const int64_t numbers[] = { BIG, -BIG, INT64_MAX, INT64_MIN, INT64_MAX - 1, 0, -1, 7 };
    int64_t got[4];
    EACH_DEVICE(device)
    {
        for (size_t r = 0; r < sizeof whole_rows / sizeof *whole_rows; r++) {
            for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
                TN_SCOPE;
                tn_tensor *y = whole_rows[r].made(from(device, TN_I64, 4, x),
                                                  tn_scalar_int(numbers[n]));
                if (!result(whole_rows[r].name, device, y, got, sizeof *got))
                    continue;
                for (int i = 0; i < 4; i++)
                    ck_assert_msg(got[i] == whole_rows[r].expected(x[i], numbers[n]),
                                  "%s on %s: %lld and %lld: got %lld; expected %lld",
                                  whole_rows[r].name, tn_device_name(device), (long long)x[i],
                                  (long long)numbers[n], (long long)got[i],
                                  (long long)whole_rows[r].expected(x[i], numbers[n]));
            }
        }
    }
    ck_assert_int_ge(checks_made, 2 * 8 * 12);
}
END_TEST

START_TEST(ranges_of_integers_are_exact)
{
    static const struct {
        int64_t start, end, step, count, last;
    } rows[] = { { BIG, BIG + 3, 1, 3, BIG + 2 },
                 { INT64_MAX - 4, INT64_MAX, 2, 2, INT64_MAX - 2 },
                 { INT64_MIN, INT64_MIN + 7, 3, 3, INT64_MIN + 6 },
                 { INT64_MIN, INT64_MAX, INT64_MAX, 3, INT64_MAX - 1 },
                 { 5, -BIG, -BIG, 2, 5 - BIG },
                 { INT64_MAX, INT64_MIN, INT64_MIN, 2, -1 },
                 { 4, 4, 1, 0, 0 } };
    tn_arange_options o = TN_ARANGE_OPTIONS;
    EACH_DEVICE(device)
    {
        tn_tensor *like = tn_tensor_full(TN_SHAPE(1), 0, TN_I64, device);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            int64_t got[4] = { 0 };
            o.step = TN_SCALAR(rows[r].step);
            tn_tensor *y = tn_arange(like, rows[r].start, rows[r].end, o.step);
            there(y);
            ck_assert_int_eq(tn_tensor_dtype(y), TN_I64);
            ck_assert_int_eq(tn_tensor_numel(y), rows[r].count);
            ok(tn_tensor_copy_out(y, got, (size_t)rows[r].count * sizeof *got));
            if (rows[r].count > 0)
                ck_assert_int_eq(got[0], rows[r].start);
            if (rows[r].count > 0)
                ck_assert_int_eq(got[rows[r].count - 1], rows[r].last);
        }
    }
    ck_assert_ptr_null(tn_arange(TN_NONE, 0, TN_SCALAR(2.0 * I)));
    ck_assert(strstr(tn_error_last()->message, "end: not real, got 0.0+2.0j") != NULL);
}
END_TEST

START_TEST(narrow_integers_refuse_what_they_cannot_hold)
{
    static const struct {
        tn_dtype dtype;
        int64_t number;
    } rows[] = { { TN_I32, (int64_t)1 << 31 }, { TN_I32, BIG },     { TN_U8, 256 }, { TN_U8, -1 },
                 { TN_I16, INT64_MIN },        { TN_I8, INT64_MAX } };
    EACH_DEVICE(device)
    {
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            TN_SCOPE;
            tn_tensor *x = tn_tensor_full(TN_SHAPE(4), 1, rows[r].dtype, device);
            tn_scalar s = tn_scalar_int(rows[r].number);
            char text[32];
            snprintf(text, sizeof text, "got %lld;", (long long)rows[r].number);
            ck_assert_ptr_null(by_fill(x, s));
            ck_assert_msg(strstr(tn_error_last()->message, text) != NULL, "%s",
                          tn_error_last()->message);
            ck_assert_ptr_null(by_mask(x, s));
            ck_assert_ptr_null(by_pad(x, s));
            ck_assert_ptr_null(by_tensor_full(x, s));
            ck_assert_ptr_null(by_full(x, s));
        }
    }
}
END_TEST

/* An integer is rounded to float32 once: 2^62 + 2^38 + 1 becomes 2^62 + 2^39. A double in between
 * would lose the 1, and then the middle would be rounded to the even 2^62. */
START_TEST(integers_become_floats_with_one_rounding)
{
    int64_t number = ((int64_t)1 << 62) + ((int64_t)1 << 38) + 1;
    float got[4];
    double wide[4];
    static const double zeros[4];
    EACH_DEVICE(device)
    {
        tn_tensor *x = from(device, TN_F32, 4, zeros);
        if (result("fill", device, by_fill(x, tn_scalar_int(number)), got, sizeof *got))
            ck_assert(got[0] == (float)number);
        if (result("add_scalar", device, by_add_scalar(x, tn_scalar_int(BIG)), got, sizeof *got))
            ck_assert(got[0] == (float)BIG);
        x = from(device, TN_F64, 4, zeros);
        if (result("add_scalar", device, by_add_scalar(x, tn_scalar_int(BIG)), wide, sizeof *wide))
            ck_assert(wide[0] == 9007199254740992.0);
    }
}
END_TEST

/* ---- complex numbers ------------------------------------------------------------------------- */

typedef double complex z;
#define COMPLEX_RULE(name, expr)                                                                   \
    static z name(z x, z s)                                                                        \
    {                                                                                              \
        (void)x, (void)s;                                                                          \
        return expr;                                                                               \
    }
COMPLEX_RULE(z_value, s)
COMPLEX_RULE(z_sum, x + s)
COMPLEX_RULE(z_product, x *s)
COMPLEX_RULE(z_scaled_sum, x + s * x)
COMPLEX_RULE(z_scaled_difference, x - s * x)
COMPLEX_RULE(z_scaled_square, x + s * x * x)
COMPLEX_RULE(z_scaled_quotient, x + s / x)
COMPLEX_RULE(z_mixture, x + s * (x * x - x))
COMPLEX_RULE(z_power, cpow(x, s))

static const struct complex_row {
    const char *name;
    tn_tensor *(*made)(tn_tensor *x, tn_scalar s);
    z (*expected)(z x, z s);
    bool promotes; /* a real tensor becomes complex; else a complex number is refused */
} complex_rows[] = {
    { "fill", by_fill, z_value, false },
    { "fill_", by_fill_in_place, z_value, false },
    { "tn_tensor_full", by_tensor_full, z_value, false },
    { "full", by_full, z_value, false },
    { "masked_fill", by_mask, z_value, false },
    { "pad", by_pad, z_value, false },
    { "add_scalar", by_add_scalar, z_sum, true },
    { "mul_scalar", by_mul_scalar, z_product, true },
    { "pow_scalar", by_pow, z_power, true },
    { "add", by_add, z_scaled_sum, false },
    { "sub", by_sub, z_scaled_difference, false },
    { "addcmul", by_addcmul, z_scaled_square, false },
    { "addcdiv", by_addcdiv, z_scaled_quotient, false },
    { "lerp_scalar", by_lerp, z_mixture, false },
    { "index_add", by_index_add, z_scaled_sum, false },
    { "addmm, alpha", by_addmm_alpha, z_scaled_sum, false },
    { "addmm, beta", by_addmm_beta, z_scaled_sum, false },
};
enum { COMPLEX_ROWS = sizeof complex_rows / sizeof *complex_rows };

static const z elements[4] = { 1 + 2 * I, -0.5 + 0.25 * I, -2 * I, 3 };
static const z factors[] = { 2 - 3 * I, -I, 0.5, -1.25 + 0.75 * I };

static void agrees(const struct complex_row *row, const tn_device *device, tn_dtype dtype, z s)
{
    TN_SCOPE;
    tn_tensor *x = tn_cast(from(device, TN_C128, 4, elements), dtype),
              *y = x != NULL ? row->made(x, TN_SCALAR(s)) : NULL;
    double limit = dtype == TN_C64 ? 4e-6 : 1e-14;
    z got[4];
    if (!result(row->name, device, y != NULL ? tn_cast(y, TN_C128) : NULL, got, sizeof *got))
        return;
    ck_assert_int_eq(tn_tensor_dtype(y), dtype);
    for (int i = 0; i < 4; i++) {
        z expected = row->expected(elements[i], s);
        ck_assert_msg(cabs(got[i] - expected) <= limit * (1 + cabs(expected)),
                      "%s on %s: (%g, %g) and (%g, %g): got (%g, %g); expected (%g, %g)", row->name,
                      tn_device_name(device), creal(elements[i]), cimag(elements[i]), creal(s),
                      cimag(s), creal(got[i]), cimag(got[i]), creal(expected), cimag(expected));
    }
}

START_TEST(complex_numbers_keep_both_parts_in_every_operator)
{
    EACH_DEVICE(device)
    {
        if (tn_tensor_full(TN_SHAPE(1), 0, TN_C128, device) == NULL) {
            tn_error_clear();
            continue;
        }
        for (int r = 0; r < COMPLEX_ROWS; r++)
            for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
                agrees(&complex_rows[r], device, TN_C64, factors[k]);
                agrees(&complex_rows[r], device, TN_C128, factors[k]);
            }
    }
    ck_assert_int_ge(checks_made, 2 * 4 * COMPLEX_ROWS);
}
END_TEST

START_TEST(a_complex_number_and_a_real_tensor_are_complex_or_refused)
{
    static const struct {
        tn_dtype dtype, result;
    } types[] = { { TN_F32, TN_C64 },
                  { TN_F64, TN_C128 },
                  { TN_BF16, TN_C64 },
                  { TN_I64, TN_C64 },
                  { TN_U8, TN_C64 } };
    for (int r = 0; r < COMPLEX_ROWS; r++) {
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            TN_SCOPE;
            tn_tensor *x = tn_tensor_full(TN_SHAPE(4), 2, types[t].dtype, NULL);
            tn_tensor *y = complex_rows[r].made(x, tn_scalar_complex(1, 2));
            z got[4], expected = complex_rows[r].expected(2, 1 + 2 * I);
            if (!complex_rows[r].promotes) {
                ck_assert_msg(y == NULL, "%s takes 1+2j", complex_rows[r].name);
                tn_error_clear();
                continue;
            }
            there(y);
            ck_assert_int_eq(tn_tensor_dtype(y), types[t].result);
            ok(tn_tensor_copy_out(tn_cast(y, TN_C128), got, sizeof got));
            ck_assert(cabs(got[3] - expected) < 1e-5);
        }
    }
    /* In place the tensor stays real. */
    ck_assert_ptr_null(tn_add_scalar_(tn_tensor_full(TN_SHAPE(4), 2, TN_F32, NULL), 2.0 * I));
    ck_assert_ptr_null(by_min(tn_tensor_full(TN_SHAPE(4), 2, TN_F32, NULL), TN_SCALAR(2.0 * I)));
    tn_error_clear();
    /* A complex number whose imaginary part is 0 can be stored in a real tensor. */
    there(by_fill(tn_tensor_full(TN_SHAPE(4), 2, TN_F32, NULL), tn_scalar_complex(3, 0)));
}
END_TEST

/* ---- bool, and what is no number ------------------------------------------------------------- */

START_TEST(bool_follows_the_rules_of_pytorch)
{
    static const bool flags[4] = { true, false, true, false };
    bool got[4];
    int64_t whole[4];
    EACH_DEVICE(device)
    {
        tn_tensor *x = from(device, TN_BOOL, 4, flags), *y;
        tn_scalar yes = tn_scalar_bool(true), no = tn_scalar_bool(false);
        if (result("add", device, y = by_add_scalar(x, yes), got, sizeof *got))
            ck_assert(tn_tensor_dtype(y) == TN_BOOL && got[0] && got[1] && got[2] && got[3]);
        if (result("mul", device, y = by_mul_scalar(x, yes), got, sizeof *got))
            ck_assert(tn_tensor_dtype(y) == TN_BOOL && got[0] && !got[1] && got[2] && !got[3]);
        if (result("mul", device, y = by_mul_scalar(x, no), got, sizeof *got))
            ck_assert(!got[0] && !got[1]);
        if (result("add", device, y = by_add_scalar(x, TN_SCALAR(BIG)), whole, sizeof *whole))
            ck_assert(tn_tensor_dtype(y) == TN_I64 && whole[0] == BIG + 1 && whole[1] == BIG);
        if (result("add alpha", device, y = by_add(x, no), got, sizeof *got))
            ck_assert(got[0] && !got[1]);
        if (result("fill", device, by_fill(x, TN_SCALAR(2)), got, sizeof *got))
            ck_assert(got[0] && got[1]);
        if (result("fill", device, by_fill(x, TN_SCALAR(0.0 + 0.5 * I)), got, sizeof *got))
            ck_assert(got[1]);
        if (result("add", device, by_add_scalar(tn_cast(x, TN_I64), yes), whole, sizeof *whole))
            ck_assert(whole[0] == 2 && whole[1] == 1);
    }
    tn_tensor *x = from(NULL, TN_BOOL, 4, flags);
    ck_assert_int_eq(tn_tensor_dtype(tn_add_scalar(x, 2.5)), tn_default_dtype());
    ck_assert_ptr_null(by_add(tn_cast(x, TN_I64), tn_scalar_bool(true)));
    ck_assert(strstr(tn_error_last()->message, "Boolean alpha only supported") != NULL);
}
END_TEST

START_TEST(what_is_no_number_is_refused_by_name)
{
    static const struct {
        const char *name;
        tn_tensor *(*made)(tn_tensor *x, tn_scalar s);
        const char *argument;
    } rows[] = { { "fill", by_fill, "value" },
                 { "full", by_full, "value" },
                 { "masked_fill", by_mask, "value" },
                 { "pad", by_pad, "value" },
                 { "add_scalar", by_add_scalar, "value" },
                 { "mul_scalar", by_mul_scalar, "value" },
                 { "pow_scalar", by_pow, "exponent" },
                 { "add", by_add, "alpha" },
                 { "sub", by_sub, "alpha" },
                 { "addcmul", by_addcmul, "value" },
                 { "addcdiv", by_addcdiv, "value" },
                 { "lerp_scalar", by_lerp, "weight" },
                 { "index_add", by_index_add, "alpha" },
                 { "addmm", by_addmm_alpha, "alpha" },
                 { "addmm", by_addmm_beta, "beta" },
                 { "clamp", by_min, "min" },
                 { "clamp", by_max, "max" } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tn_tensor *x = tn_tensor_full(TN_SHAPE(4), 2, TN_F32, NULL);
        tn_scalar s = tn_scalar_int(1);
        char text[64];
        s.kind = 77;
        ck_assert_ptr_null(rows[r].made(x, s));
        snprintf(text, sizeof text, "%s: unknown kind of number, got 77", rows[r].argument);
        ck_assert_msg(strstr(tn_error_last()->message, text) != NULL, "%s: %s", rows[r].name,
                      tn_error_last()->message);
        s = tn_scalar_int(1);
        s.reserved = 5;
        ck_assert_ptr_null(rows[r].made(x, s));
        ck_assert_msg(strstr(tn_error_last()->message, "`reserved`: nonzero, got 5") != NULL,
                      "%s: %s", rows[r].name, tn_error_last()->message);
        ck_assert_ptr_null(rows[r].made(x, tn_scalar_none()));
        ck_assert_msg(strstr(tn_error_last()->message, "missing") != NULL, "%s: %s", rows[r].name,
                      tn_error_last()->message);
        tn_error_clear();
    }
}
END_TEST

/* ---- reading --------------------------------------------------------------------------------- */

START_TEST(an_element_of_every_dtype_is_read_exactly)
{
    static const float single = 0.1f;
    static const double wide = -0.0;
    static const z pair = 1 - 2 * I;
    static const u64 large = UINT64_MAX;
    static const bool yes = true;
    static const int64_t least = INT64_MIN, odd = BIG;
    tn_scalar s;
    EACH_DEVICE(device)
    {
        ok(tn_tensor_scalar(from(device, TN_F32, 1, &single), &s));
        ck_assert(s.kind == TN_SCALAR_FLOAT && s.as.f == (double)single);
        ok(tn_tensor_scalar(from(device, TN_F64, 1, &wide), &s));
        ck_assert(s.kind == TN_SCALAR_FLOAT && signbit(s.as.f));
        ok(tn_tensor_scalar(from(device, TN_BOOL, 1, &yes), &s));
        ck_assert(s.kind == TN_SCALAR_BOOL && s.as.i == 1);
        ok(tn_tensor_scalar(from(device, TN_I64, 1, &least), &s));
        ck_assert(s.kind == TN_SCALAR_INT && s.as.i == INT64_MIN);
        ok(tn_tensor_scalar(from(device, TN_I64, 1, &odd), &s));
        ck_assert(s.kind == TN_SCALAR_INT && s.as.i == BIG);
    }
    ok(tn_tensor_scalar(from(NULL, TN_U64, 1, &large), &s));
    ck_assert(s.kind == TN_SCALAR_UINT && s.as.u == UINT64_MAX);
    ok(tn_tensor_scalar(from(NULL, TN_C128, 1, &pair), &s));
    ck_assert(s.kind == TN_SCALAR_COMPLEX && s.as.c[0] == 1 && s.as.c[1] == -2);
    ck_assert_int_eq(tn_tensor_scalar(tn_tensor_full(TN_SHAPE(2), 1, TN_F32, NULL), &s),
                     TN_ERR_VALUE);
    ck_assert_uint_eq(s.kind, TN_SCALAR_NONE);
}
END_TEST

START_TEST(an_item_that_a_double_cannot_hold_is_refused)
{
    static const int64_t fits[] = { BIG - 1, -BIG + 1, INT64_MIN, 0, BIG + 1 },
                         lost[] = { BIG, -BIG, INT64_MAX };
    static const z real = 3, pair = 3 + I;
    static const u64 large = UINT64_MAX;
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++)
        ck_assert(tn_item(from(NULL, TN_I64, 1, &fits[i])) == (double)fits[i]);
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        ck_assert(isnan(tn_item(from(NULL, TN_I64, 1, &lost[i]))));
        ck_assert(strstr(tn_error_last()->message, "read it with tn_tensor_scalar") != NULL);
        tn_error_clear();
    }
    ck_assert(tn_item(from(NULL, TN_C128, 1, &real)) == 3);
    ck_assert(isnan(tn_item(from(NULL, TN_C128, 1, &pair))));
    ck_assert(strstr(tn_error_last()->message, "read it with tn_tensor_scalar") != NULL);
    ck_assert(isnan(tn_item(from(NULL, TN_U64, 1, &large))));
    tn_error_clear();
}
END_TEST

START_TEST(numbers_of_c_have_the_kind_of_their_type)
{
    const float f = 0.5f;
    ck_assert(TN_SCALAR(2).kind == TN_SCALAR_INT && TN_SCALAR(2).as.i == 2);
    ck_assert(TN_SCALAR((char)3).as.i == 3 && TN_SCALAR((uint8_t)255).as.i == 255);
    ck_assert(TN_SCALAR(INT64_MIN).as.i == INT64_MIN);
    ck_assert(TN_SCALAR((uint64_t)7).kind == TN_SCALAR_INT);
    ck_assert(TN_SCALAR(UINT64_MAX).kind == TN_SCALAR_UINT);
    ck_assert(TN_SCALAR(f).kind == TN_SCALAR_FLOAT && TN_SCALAR(f).as.f == 0.5);
    ck_assert(TN_SCALAR((bool)1).kind == TN_SCALAR_BOOL);
    ck_assert(TN_SCALAR(1 + 2.0 * I).kind == TN_SCALAR_COMPLEX);
    ck_assert(TN_SCALAR(TN_SCALAR(1 + 2.0 * I)).as.c[1] == 2);
    ck_assert_uint_eq(sizeof(tn_scalar), 24);
    /* The wrapper is still a function. */
    tn_tensor *(*function)(tn_tensor *, tn_scalar) = tn_mul_scalar;
    tn_tensor *x = function(tn_tensor_full(TN_SHAPE(1), BIG, TN_I64, NULL), tn_scalar_int(1));
    tn_scalar s;
    ok(tn_tensor_scalar(x, &s));
    ck_assert(s.as.i == BIG);
}
END_TEST

RUN_SUITE("scalar", integers_of_64_bits_are_exact_in_every_operator, ranges_of_integers_are_exact,
          narrow_integers_refuse_what_they_cannot_hold, integers_become_floats_with_one_rounding,
          complex_numbers_keep_both_parts_in_every_operator,
          a_complex_number_and_a_real_tensor_are_complex_or_refused,
          bool_follows_the_rules_of_pytorch, what_is_no_number_is_refused_by_name,
          an_element_of_every_dtype_is_read_exactly, an_item_that_a_double_cannot_hold_is_refused,
          numbers_of_c_have_the_kind_of_their_type)
