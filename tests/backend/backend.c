/* SPDX-License-Identifier: MIT
 *
 * The devices on which every test of this folder runs, and other helpers; see backend.h. */
#include "tests/backend/backend.h"
#include "tests/folders.h"

#include <sys/mman.h>

int64_t checks_made;

/* ---- devices --------------------------------------------------------------------------------- */

static char *said; /* shared by the tests' processes, so that a missing device is printed once */

/* Whether `words` ("cpu strict") contains the word. */
static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* Fails unless every device type in `words` works, of those in `only` (NULL: all). */
static void check_present(const char *words, const char *only)
{
    char type[32];
    for (size_t length; *words != '\0'; words += length + strspn(words + length, " ")) {
        length = strcspn(words, " ");
        snprintf(type, sizeof type, "%.*s", (int)length, words);
        ck_assert_msg((only && !has_word(only, type)) || tn_device_find(type) != NULL, "%s: %s",
                      type, tn_error_last()->message);
    }
}

enum { MOST_DEVICES = 32 };
static const tn_device *present[MOST_DEVICES + 1];
static int n_present;

/* Adds the first device of a type that works and has memory. */
static void add_device(const char *type, int64_t place)
{
    uint64_t mark = tn_error_mark();
    const tn_device *device = tn_device_find(type);
    if (device && tn_device_has_memory(device) && n_present < MOST_DEVICES)
        present[n_present++] = device;
    else if (!device && said && !__atomic_exchange_n(&said[place], 1, __ATOMIC_RELAXED))
        fprintf(stderr, "SKIP: %s: %s\n", type, tn_error_last()->message);
    tn_error_restore(mark);
}

const tn_device *const *devices(void)
{
    /* These come first, in this order: the random numbers for a device depend on how many devices
     * were tested before it. */
    static const char *const ours[] = { "cpu", "strict", "opencl", "cuda" };
    static bool looked;
    const char *only = getenv("TN_TEST_DEVICES");  /* for debugging: "cpu strict" */
    const char *needed = getenv("TN_TEST_NEEDED"); /* on a machine that has it: "cuda" */
    if (looked)
        return present;
    looked = true;
    check_present("cpu strict", only);
    check_present(needed ? needed : "", only);
    int64_t place = 0, types = tn_registry_count(TN_KIND_tn_backend_def);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++, place++)
        if (!only || has_word(only, ours[i]))
            add_device(ours[i], place);
    for (int64_t i = 0; i < types; i++, place++) {
        const char *type = tn_registry_name(TN_KIND_tn_backend_def, i);
        if (!has_word("cpu strict opencl cuda", type) && (!only || has_word(only, type)))
            add_device(type, place);
    }
    return present;
}

bool instruction_set(const char *name)
{
    setenv("TENON_CPU_ISA", name, 1);
    if (tn_device_find("cpu") != NULL)
        return true;
    ck_assert_msg(strstr(tn_error_text(), name) != NULL, "%s", tn_error_text());
    fprintf(stderr, "SKIP: %s\n", tn_error_text());
    return false;
}

bool device_has(const tn_device *device, const char *op, tn_dtype dtype)
{
    char route[256];
    const tn_op *found = tn_op_find(op, 0);
    ck_assert_msg(found != NULL, "%s: %s", op, tn_error_last()->message);
    tn_op_route(found, tn_device_type(device), dtype, route, sizeof route);
    return strncmp(route, "missing", 7) != 0;
}

/* ---- numbers of a dtype ---------------------------------------------------------------------- */

static double narrow_float(double x, int mantissa, int least)
{
    int exponent;
    if (x == 0 || isnan(x) || isinf(x))
        return x;
    x = (float)x; /* as PyTorch does: by way of float32 */
    frexp(x, &exponent);
    if (exponent - 1 < least)
        exponent = least + 1;
    double unit = ldexp(1, exponent - 1 - mantissa);
    return nearbyint(x / unit) * unit;
}

double stored(double x, tn_dtype dtype)
{
    switch (dtype) {
    case TN_F32: return (float)x;
    case TN_F16: x = narrow_float(x, 10, -14); return fabs(x) > 65504 ? copysign(INFINITY, x) : x;
    case TN_BF16: return narrow_float(x, 7, -126);
    case TN_BOOL: return x != 0;
    case TN_U8: return (uint8_t)(int64_t)x;
    case TN_I8: return (int8_t)(int64_t)x;
    case TN_I16: return (int16_t)(int64_t)x;
    case TN_I32: return (int32_t)(int64_t)x;
    case TN_I64: return (double)(int64_t)x;
    default: return x;
    }
}

double epsilon(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F64: return 0x1p-52;
    case TN_F32: return 0x1p-23;
    case TN_F16: return 0x1p-10;
    case TN_BF16: return 0x1p-7;
    default: return 0;
    }
}

static uint16_t half_bits(double x)
{
    int exponent;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    x = fabs(x);
    if (isnan(x))
        return 0x7e00;
    if (isinf(x))
        return sign | 0x7c00;
    if (x < 0x1p-14)
        return sign | (uint16_t)(x * 0x1p24);
    double m = frexp(x, &exponent);
    return sign | (uint16_t)((exponent + 14) << 10) | (uint16_t)((m * 2 - 1) * 1024);
}

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double x = exponent == 31 ? (mantissa ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                              : ldexp(mantissa, -24);
    return bits & 0x8000 ? -x : x;
}

/* A stored number to and from its bytes. */
static void encode(double x, tn_dtype dtype, void *to)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    switch (dtype) {
#define STORE(dtype_, T)                                                                           \
    case dtype_: {                                                                                 \
        T value = (T)x;                                                                            \
        memcpy(to, &value, sizeof value);                                                          \
        break;                                                                                     \
    }
        STORE(TN_BOOL, uint8_t)
        STORE(TN_U8, uint8_t)
        STORE(TN_I8, int8_t)
        STORE(TN_I16, int16_t)
        STORE(TN_I32, int32_t)
        STORE(TN_I64, int64_t)
        STORE(TN_U16, uint16_t)
        STORE(TN_U32, uint32_t)
        STORE(TN_U64, uint64_t)
        STORE(TN_F32, float)
        STORE(TN_F64, double)
    case TN_F16:
        bits = half_bits(x);
        memcpy(to, &(uint16_t){ (uint16_t)bits }, 2);
        break;
    case TN_BF16: memcpy(to, &(uint16_t){ (uint16_t)(bits >> 16) }, 2); break;
    case TN_C64: memcpy(to, (float[2]){ f, 0 }, 8); break;
    case TN_C128: memcpy(to, (double[2]){ x, 0 }, 16); break;
    default: ck_abort_msg("no numbers of %s in this test", tn_dtype_name(dtype));
    }
}

static double decode(const void *from, tn_dtype dtype)
{
    uint16_t half;
    uint32_t bits;
    float f;
    memcpy(&half, from, 2);
    switch (dtype) {
#define FETCH(dtype_, T)                                                                           \
    case dtype_: {                                                                                 \
        T value;                                                                                   \
        memcpy(&value, from, sizeof value);                                                        \
        return (double)value;                                                                      \
    }
        FETCH(TN_BOOL, uint8_t)
        FETCH(TN_U8, uint8_t)
        FETCH(TN_I8, int8_t)
        FETCH(TN_I16, int16_t)
        FETCH(TN_I32, int32_t)
        FETCH(TN_I64, int64_t)
        FETCH(TN_U16, uint16_t)
        FETCH(TN_U32, uint32_t)
        FETCH(TN_U64, uint64_t)
        FETCH(TN_F32, float)
        FETCH(TN_F64, double)
        FETCH(TN_C64, float)
        FETCH(TN_C128, double)
    case TN_F16: return half_value(half);
    case TN_BF16:
        bits = (uint32_t)half << 16;
        memcpy(&f, &bits, 4);
        return f;
    default: ck_abort_msg("no numbers of %s in this test", tn_dtype_name(dtype));
    }
    return 0;
}

/* ---- tensors --------------------------------------------------------------------------------- */

int64_t count_of(tn_ints shape)
{
    int64_t count = 1;
    for (int64_t i = 0; i < shape.count; i++)
        count *= shape.at[i];
    return count;
}

static tn_tensor *make(const tn_device *device, tn_dtype dtype, tn_ints shape, enum layout layout)
{
    int64_t strides[TN_MAX_DIMS], next = layout == EVERY_SECOND ? 2 : 1;
    if (layout == DENSE || shape.count == 0)
        return tn_tensor_empty(shape, dtype, device);
    for (int64_t k = 0; k < shape.count; k++) {
        int64_t i = layout == REVERSED ? k : shape.count - 1 - k;
        strides[i] = next;
        next *= shape.at[i] > 0 ? shape.at[i] : 1;
    }
    /* Within a larger tensor, so that the first element is not the storage's. */
    tn_tensor *whole = tn_tensor_empty(TN_SHAPE(next + 3), dtype, device);
    return tn_tensor_as_strided(whole, shape, (tn_ints){ strides, shape.count }, 3);
}

tn_tensor *put(const tn_device *device, tn_dtype dtype, tn_ints shape, const double *values,
               enum layout layout)
{
    size_t size = tn_dtype_size(dtype), count = (size_t)count_of(shape);
    char *bytes = malloc(count * size + 16);
    for (size_t i = 0; i < count; i++)
        encode(values[i], dtype, bytes + i * size);
    tn_tensor *tensor = make(device, dtype, shape, layout);
    there(tensor);
    ok(tn_tensor_copy_in(tensor, bytes, count * size));
    free(bytes);
    return tensor;
}

double *room(int64_t count)
{
    /* A block referenced from a table is not a leak; after it is freed only an old address
     * remains. */
    static double **rows;
    static size_t n;
    double *row = calloc((size_t)count + 1, sizeof *row);

    if (n % 64 == 0)
        rows = realloc(rows, (n + 64) * sizeof *rows);
    ck_assert_msg(row != NULL && rows != NULL, "no memory for %lld numbers", (long long)count);
    rows[n++] = row;
    return row;
}

double *get(tn_tensor *tensor)
{
    there(tensor);
    size_t count = (size_t)tn_tensor_numel(tensor);
    tn_dtype dtype = tn_tensor_dtype(tensor);
    size_t size = tn_dtype_size(dtype);
    char *bytes = malloc(count * size + 16);
    double *out = room((int64_t)count);
    ok(tn_tensor_copy_out(tensor, bytes, count * size));
    for (size_t i = 0; i < count; i++)
        out[i] = decode(bytes + i * size, dtype);
    free(bytes);
    return out;
}

void numbers(double *out, int64_t count, double low, double high, tn_dtype dtype)
{
    static uint64_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out[i] = stored(low + (high - low) * (double)(state >> 11) * 0x1p-53, dtype);
    }
}

void same(const char *what, const tn_device *device, tn_dtype dtype, tn_tensor *got,
          const double *expected, double ulps, double floor_)
{
    ck_assert_msg(got != NULL, "%s of %s on %s: %s", what, tn_dtype_name(dtype),
                  tn_device_name(device), tn_error_last()->message);
    int64_t count = tn_tensor_numel(got);
    double *numbers_got = get(got);
    for (int64_t i = 0; i < count; i++) {
        double size = fabs(expected[i]) > floor_ ? fabs(expected[i]) : floor_;
        double slack = ulps * epsilon(tn_tensor_dtype(got)) * size;
        bool equal = numbers_got[i] == expected[i] ||
                     (isnan(numbers_got[i]) && isnan(expected[i])) ||
                     fabs(numbers_got[i] - expected[i]) <= slack;
        if (!equal) /* an assertion of libcheck writes to a pipe each time: too slow here */
            ck_abort_msg("%s of %s on %s: element %lld of %lld is %.17g, expected %.17g", what,
                         tn_dtype_name(dtype), tn_device_name(device), (long long)i,
                         (long long)count, numbers_got[i], expected[i]);
    }
    checks_made += count;
    free(numbers_got);
}

static void unary_agrees_as(const struct unary *row, const tn_device *device, tn_dtype dtype,
                            tn_ints shape, enum layout layout, double floor_)
{
    TN_SCOPE;
    double x[60], y[60];
    int64_t count = count_of(shape);
    numbers(x, count, row->low, row->high, dtype);
    for (int64_t i = 0; i < count; i++)
        y[i] = stored(row->reference(x[i]), dtype);
    tn_tensor *in = put(device, dtype, shape, x, layout), *out = NULL;
    ok(tn_op_call(tn_op_find(row->op, 0), &in, 1, NULL, &out, 1));
    same(row->op, device, dtype, out, y, row->ulps, floor_);
    if ((tn_op_definition(tn_op_find(row->op, 0))->flags & TN_OP_INPLACE) == 0)
        return;
    ok(tn_op_call_into(tn_op_find(row->op, 0), &in, 1, NULL, in));
    same(row->op, device, dtype, in, y, row->ulps, floor_);
}

void unary_agrees(const struct unary *row, const tn_device *device, const tn_ints *shapes,
                  int64_t n_shapes, double floor_)
{
    static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
    for (size_t t = 0; t < sizeof floats / sizeof *floats; t++) {
        /* if it decomposes, the device needs the dtype for primitives; relu is one */
        bool has = device_has(device, row->op, floats[t]) && device_has(device, "relu", floats[t]);

        for (int64_t s = 0; s < n_shapes && has; s++)
            for (int layout = 0; layout < LAYOUTS; layout++)
                unary_agrees_as(row, device, floats[t], shapes[s], (enum layout)layout, floor_);
    }
}

/* ---- main ------------------------------------------------------------------------------------ */

int run_suite(const char *name, const TTest *const *tests, int count)
{
    char strict[TEST_PATH], pack[TEST_PATH], file[TEST_PATH], folders[4 * TEST_PATH];
    const char *more = getenv("TENON_PLUGIN_PATH_ADD"); /* a device outside the tree */
    snprintf(folders, sizeof folders, "%s:%s%s%s",
             built_path(strict, "examples/strict-device/.libs"),
             built_path(pack, "examples/kernel-pack/.libs"), more ? ":" : "", more ? more : "");
    setenv("TENON_PLUGIN_PATH_ADD", folders, 1);
    unsetenv("TENON_STRICT_FAIL");
    /* cuda is the fake of tests/fake-cuda; tests/device/run names the real one */
    setenv("TENON_CUDA_DRIVER", built_path(file, "tests/.libs/fake-cuda.so"), 0);
    setenv("TENON_CUDA_BLAS", file, 0);
    setenv("TENON_CUDA_KERNELS", source_path(file, "tests/fake-cuda/kernels"), 0);
    said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Suite *suite = suite_create(name);
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, 300);
    for (int i = 0; i < count; i++)
        tcase_add_test(group, tests[i]);
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
