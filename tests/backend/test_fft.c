/* SPDX-License-Identifier: MIT
 *
 * Fourier transforms along one dimension against their definition, computed with long double: of
 * small and large sizes, powers and products of small primes and large primes, one line and many,
 * contiguous or not, with each instruction set, and on devices without a kernel. */
#include "tests/backend/backend.h"

enum kind { FORWARD, INVERSE, FROM_REAL, TO_REAL, KINDS };
static const char *const names[KINDS] = { "fft_c2c", "inverse fft_c2c", "fft_r2c", "fft_c2r" };

/* ROWS: contiguous lines. COLUMNS: the transformed dimension comes first. TURNED: it
 * comes first in memory, but last in the shape. APART: every second element. REPEATED: one line
 * with stride 0. */
enum arrangement { ROWS, COLUMNS, TURNED, APART, REPEATED, ARRANGEMENTS };

struct sample {
    enum kind kind;
    enum arrangement arrangement;
    tn_dtype part; /* of real and imaginary parts */
    int64_t n, lines;
};

static const double scale = 0.75;

/* ---- the definition -------------------------------------------------------------------------- */

static long double *cosines, *sines; /* [n]: of 2 pi i / n */
static int64_t table_n;

static void prepare_table(int64_t n)
{
    const long double pi = 3.14159265358979323846264338327950288L;

    if (n == table_n)
        return;
    free(cosines);
    free(sines);
    cosines = malloc((size_t)n * sizeof *cosines);
    sines = malloc((size_t)n * sizeof *sines);
    table_n = n;
    for (int64_t i = 0; i < n; i++) {
        cosines[i] = cosl(2 * pi * (long double)i / (long double)n);
        sines[i] = sinl(2 * pi * (long double)i / (long double)n);
    }
}

/* Element k of the transform of n complex numbers. */
static void define(const double *re, const double *im, int64_t n, int64_t k, bool inverse,
                   long double out[2])
{
    int64_t power = 0; /* j * k, modulo n */

    out[0] = out[1] = 0;
    for (int64_t j = 0; j < n; j++, power = (power + k) % n) {
        long double c = cosines[power], s = inverse ? sines[power] : -sines[power];

        out[0] += (long double)re[j] * c - (long double)im[j] * s;
        out[1] += (long double)re[j] * s + (long double)im[j] * c;
    }
}

/* ---- one case -------------------------------------------------------------------------------- */

/* The transposed matrix, in row-major order. */
static tn_tensor *crossed(tn_tensor *x)
{
    x = tn_transpose(x, 0, 1);
    return tn_copy_(tn_tensor_empty(tn_tensor_shape(x), tn_tensor_dtype(x), tn_tensor_device(x)),
                    x);
}

/* The tensor of `lines` lines of n elements as an input of the operator; *dim is the dimension of
 * the transform. */
static tn_tensor *arranged(const struct sample *s, tn_tensor *x, int64_t *dim)
{
    tn_tensor *both[2] = { x, tn_neg(x) };

    *dim = s->arrangement == COLUMNS ? 0 : -1;
    switch (s->arrangement) {
    case COLUMNS: return crossed(x);
    case TURNED: return tn_transpose(crossed(x), 0, 1);
    case APART: return tn_select(tn_stack(both, 2, -1), -1, 0);
    case REPEATED: return tn_expand(tn_narrow(x, 0, 0, 1), tn_tensor_shape(x));
    default: return x;
    }
}

static tn_tensor *transform(const struct sample *s, tn_tensor *x, int64_t dim)
{
    tn_fft_c2c_options c2c = TN_FFT_C2C_OPTIONS;
    tn_fft_r2c_options r2c = TN_FFT_R2C_OPTIONS;
    tn_fft_c2r_options c2r = TN_FFT_C2R_OPTIONS;

    c2c.dim = r2c.dim = c2r.dim = dim;
    c2c.scale = r2c.scale = c2r.scale = scale;
    c2c.inverse = s->kind == INVERSE;
    if (s->kind == FROM_REAL)
        return tn_fft_r2c(x, r2c.dim, r2c.scale);
    return s->kind == TO_REAL ? tn_fft_c2r(x, s->n, c2r.dim, c2r.scale)
                              : tn_fft_c2c(x, c2c.dim, c2c.inverse, c2c.scale);
}

/* Compares line `line` of the result, whose parts are re and im, with the definition for the input
 * line x, y. */
static void compare(const struct sample *s, const double *x, const double *y, int64_t line,
                    const double *re, const double *im, int64_t of_result)
{
    int64_t n = s->n, step = n <= 40 ? 1 : n / 17 + 1;
    double norm = 0;

    for (int64_t i = 0; i < n; i++)
        norm += x[i] * x[i] + y[i] * y[i];
    for (int64_t k = 0; k < of_result;
         k = k == of_result - 1 || k + step < of_result ? k + step : of_result - 1) {
        int64_t at = line * of_result + k;
        long double out[2];
        double apart;

        define(x, y, n, k, s->kind == INVERSE || s->kind == TO_REAL, out);
        apart = hypot(re[at] - scale * (double)out[0],
                      s->kind == TO_REAL ? 0 : im[at] - scale * (double)out[1]);
        ck_assert_msg(apart <= (2 + log2((double)n)) * epsilon(s->part) * sqrt(norm),
                      "%s of %s, n = %d, %d lines, arrangement %d: element %d of line %d is "
                      "(%.9g, %.9g), expected (%.9g, %.9g)",
                      names[s->kind], tn_dtype_name(s->part), (int)n, (int)s->lines,
                      (int)s->arrangement, (int)k, (int)line, re[at], im[at],
                      scale * (double)out[0], scale * (double)out[1]);
        checks_made++;
    }
}

static void check(const tn_device *device, const struct sample *s)
{
    TN_SCOPE;
    int64_t n = s->n, half = n / 2 + 1, given = s->kind == TO_REAL ? half : n;
    int64_t of_result = s->kind == FROM_REAL ? half : n, dim;
    double *re = room(s->lines * n + 1), *im = room(s->lines * n + 1), *x = room(n), *y = room(n);
    tn_ints shape = TN_SHAPE(s->lines, given);
    tn_tensor *in, *out, *both[2];

    numbers(re, s->lines * given, -1, 1, s->part);
    if (s->kind != FROM_REAL)
        numbers(im, s->lines * given, -1, 1, s->part);
    in = put(device, s->part, shape, re, DENSE);
    if (s->kind != FROM_REAL)
        in = tn_complex(in, put(device, s->part, shape, im, DENSE));
    in = arranged(s, in, &dim);
    out = transform(s, in, dim);
    there(out);
    if (s->arrangement == COLUMNS)
        out = tn_transpose(out, 0, 1);
    there(out);
    ck_assert_int_eq(tn_tensor_size(out, 0), s->lines);
    ck_assert_int_eq(tn_tensor_size(out, 1), of_result);
    if (s->lines == 0)
        return;
    prepare_table(n);
    both[0] = s->kind == TO_REAL ? out : tn_real(out);
    both[1] = s->kind == TO_REAL ? tn_mul_scalar(out, 0) : tn_imag(out);
    const double *got_re = get(both[0]), *got_im = get(both[1]);
    for (int64_t i = 0; i < 4; i++) {
        /* the first and the last line, and two others */
        int64_t line = i * (s->lines - 1) / 3, from = s->arrangement == REPEATED ? 0 : line;

        for (int64_t j = 0; j < n; j++) {
            int64_t at = j < given ? j : n - j;

            x[j] = re[from * given + at];
            y[j] = (j < given ? 1 : -1) * im[from * given + at];
        }
        if (s->kind == TO_REAL) /* these imaginary parts are ignored */
            y[0] = y[n % 2 == 0 ? n / 2 : 0] = 0;
        compare(s, x, y, line, got_re, got_im, of_result);
    }
}

static void check_sizes(const tn_device *device, const int64_t *sizes, int64_t lines)
{
    /* the strict device does not convert float32 to complex64, as the decomposition needs */
    bool strict = strcmp(tn_device_type(device), "strict") == 0;

    for (; *sizes > 0; sizes++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int arrangement = 0; arrangement < ARRANGEMENTS; arrangement++)
                for (int wide = 0; wide < 2; wide++) {
                    struct sample s = { (enum kind)kind, (enum arrangement)arrangement,
                                        wide ? TN_F64 : TN_F32, *sizes, lines };

                    if ((lines > 0 || arrangement != REPEATED) && !(strict && kind == FROM_REAL))
                        check(device, &s);
                }
}

/* Powers of each radix, their products, primes with a pass of their own and larger ones. */
static const int64_t small[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  12,
                                 13, 15, 16, 17, 18, 20, 25, 27, 31,  32,  33,
                                 48, 49, 59, 61, 62, 64, 67, 74, 100, 121, 0 };
static const int64_t middle[] = {
    122, 125, 128, 134, 135, 210, 243, 250, 256, 3 * 67, 360, 512, 0
};
static const int64_t large[] = { 1000, 1001, 1009, 1024, 2018, 4096, 10007, 32768, 0 };
static const int64_t batched[] = { 1000, 1009, 2048, 0 };

/* Checks that the CPU has a kernel of its own for the operator. */
static void has_kernel(const char *name, tn_dtype dtype)
{
    char route[256], kernel[64];

    snprintf(kernel, sizeof kernel, "tn_%s", name);
    tn_op_route(tn_op_find(name, 0), "cpu", dtype, route, sizeof route);
    ck_assert_msg(strstr(route, kernel) != NULL, "%s of %s: %s", name, tn_dtype_name(dtype), route);
}

static void check_set(const char *set)
{
    const tn_device *cpu;

    if (!instruction_set(set))
        return;
    cpu = tn_device_find("cpu");
    for (int wide = 0; wide < 2; wide++) { /* the dtype of the result chooses the kernel */
        has_kernel("fft_c2c", wide ? TN_C128 : TN_C64);
        has_kernel("fft_r2c", wide ? TN_C128 : TN_C64);
        has_kernel("fft_c2r", wide ? TN_F64 : TN_F32);
    }
    check_sizes(cpu, small, 1);
    check_sizes(cpu, small, 19);
    check_sizes(cpu, middle, 2);
    check_sizes(cpu, middle, 37);
    check_sizes(cpu, large, 1);
    check_sizes(cpu, batched, 18);
    ck_assert_int_gt(checks_made, 40000);
}

START_TEST(transforms_follow_the_definition_without_vectors)
{
    check_set("baseline");
}
END_TEST

START_TEST(transforms_follow_the_definition_with_avx2)
{
    check_set("avx2");
}
END_TEST

START_TEST(transforms_follow_the_definition_with_avx512)
{
    check_set("avx512");
}
END_TEST

START_TEST(transforms_of_other_devices_follow_the_definition)
{
    EACH_DEVICE(device)
    {
        if (strcmp(tn_device_type(device), "cpu") != 0 && device_has(device, "fft_c2c", TN_C128))
            check_sizes(device, small, 3);
    }
    ck_assert_int_gt(checks_made, 1000);
}
END_TEST

START_TEST(an_empty_batch_gives_an_empty_result)
{
    static const int64_t sizes[] = { 1, 2, 7, 64, 67, 0 };

    check_sizes(tn_device_find("cpu"), sizes, 0);
}
END_TEST

START_TEST(the_number_of_threads_does_not_change_a_bit)
{
    static const int64_t sizes[] = { 1000, 10007, 65536 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int64_t lines = 1; lines < 40; lines += 19) {
            TN_SCOPE;
            int64_t count = lines * sizes[i];
            double *values = room(count);
            tn_tensor *x, *y[2];

            numbers(values, count, -1, 1, TN_F32);
            x = put(tn_device_find("cpu"), TN_F32, TN_SHAPE(lines, sizes[i]), values, DENSE);
            for (int t = 0; t < 2; t++) {
                tn_set_num_threads(t == 0 ? 1 : 3);
                y[t] = tn_fft_r2c(x);
                there(y[t]);
            }
            ck_assert_mem_eq(tn_tensor_data(y[0]), tn_tensor_data(y[1]),
                             (size_t)tn_tensor_numel(y[0]) * 2 * sizeof(float));
        }
}
END_TEST

RUN_SUITE("fft", transforms_follow_the_definition_without_vectors,
          transforms_follow_the_definition_with_avx2, transforms_follow_the_definition_with_avx512,
          transforms_of_other_devices_follow_the_definition, an_empty_batch_gives_an_empty_result,
          the_number_of_threads_does_not_change_a_bit)
