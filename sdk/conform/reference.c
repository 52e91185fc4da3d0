/* SPDX-License-Identifier: MIT
 *
 * The device type "reference": reads and writes elements, provides memory, and registers itself. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements ---- */

int64_t reference_count(const tn_view *view)
{
    int64_t count = 1;

    for (int32_t d = 0; d < view->ndim; d++)
        count *= view->shape[d];
    return count;
}

static long double from_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    long double x = exponent == 31 ? (fraction ? (long double)NAN : (long double)INFINITY)
                    : exponent     ? ldexpl(1024 + fraction, exponent - 25)
                                   : ldexpl(fraction, -24);

    return bits & 0x8000 ? -x : x;
}

static uint16_t to_half(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    int exponent;
    double steps;

    x = fabs(x);
    if (isnan(x))
        return sign | 0x7e00;
    if (x == 0)
        return sign;
    if (x >= 65520)
        return sign | 0x7c00;
    frexp(x, &exponent);
    if (exponent < -13)
        exponent = -13;
    steps = nearbyint(ldexp(x, 11 - exponent)); /* rounds to units of the last bit */
    if (exponent == -13 && steps < 1024)
        return sign | (uint16_t)steps;
    return (uint16_t)(sign + ((exponent + 13) << 10) + (int)steps);
}

static long double from_brain(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;

    memcpy(&x, &wide, sizeof x);
    return x;
}

static uint16_t to_brain(float x)
{
    uint32_t bits;

    if (isnan(x))
        return 0x7fc0;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Converts to an integer; INT64_MIN for a value outside the range of int64. */
static int64_t whole(long double x)
{
    return x >= -0x1p63L && x < 0x1p63L ? (int64_t)x : INT64_MIN;
}

static reference_number read_one(tn_dtype dtype, const char *at)
{
    reference_number n = { 0, 0 };
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
        float f32[2];
        double f64[2];
    } u;

    memcpy(&u, at, tn_dtype_size(dtype));
    switch (dtype) {
    case TN_BOOL: n.re = u.i8 != 0; break;
    case TN_U8: n.re = (uint8_t)u.i8; break;
    case TN_I8: n.re = u.i8; break;
    case TN_I16: n.re = u.i16; break;
    case TN_I32: n.re = u.i32; break;
    case TN_I64: n.re = u.i64; break;
    case TN_F16: n.re = from_half(u.u16); break;
    case TN_BF16: n.re = from_brain(u.u16); break;
    case TN_F32: n.re = u.f32[0]; break;
    case TN_F64: n.re = u.f64[0]; break;
    case TN_C64: n.re = u.f32[0], n.im = u.f32[1]; break;
    case TN_C128: n.re = u.f64[0], n.im = u.f64[1]; break;
    default: break;
    }
    return n;
}

static void write_one(tn_dtype dtype, char *at, reference_number n)
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
        float f32[2];
        double f64[2];
    } u;

    switch (dtype) {
    case TN_BOOL: u.i8 = n.re != 0 || n.im != 0; break;
    case TN_U8:
    case TN_I8: u.i8 = (int8_t)(uint64_t)whole(n.re); break;
    case TN_I16: u.i16 = (int16_t)(uint64_t)whole(n.re); break;
    case TN_I32: u.i32 = (int32_t)(uint64_t)whole(n.re); break;
    case TN_I64: u.i64 = whole(n.re); break;
    case TN_F16: u.u16 = to_half((float)n.re); break;
    case TN_BF16: u.u16 = to_brain((float)n.re); break;
    case TN_F32: u.f32[0] = (float)n.re; break;
    case TN_F64: u.f64[0] = (double)n.re; break;
    case TN_C64: u.f32[0] = (float)n.re, u.f32[1] = (float)n.im; break;
    case TN_C128: u.f64[0] = (double)n.re, u.f64[1] = (double)n.im; break;
    default: return;
    }
    memcpy(at, &u, tn_dtype_size(dtype));
}

/* Moves `index` to the next element of `shape` in row-major order. Returns false after the last
 * element. */
static bool next(int64_t *index, const int64_t *shape, int32_t ndim)
{
    for (int32_t d = ndim - 1; d >= 0; d--) {
        if (++index[d] < shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

tn_status reference_load(const tn_view *view, const tn_view *shape, reference_row *out)
{
    const tn_view *as = shape != NULL ? shape : view;
    int64_t index[TN_MAX_DIMS] = { 0 }, i = 0;
    const char *base = (const char *)view->data + view->byte_offset;

    out->dtype = tn_view_dtype(view);
    out->count = reference_count(as);
    out->at = malloc((size_t)(out->count > 0 ? out->count : 1) * sizeof *out->at);
    if (out->at == NULL)
        return tn_fail(TN_ERR_MEMORY, "reference: out of memory for %lld numbers",
                       (long long)out->count);
    if (out->count == 0)
        return TN_OK;
    do {
        int64_t place = 0;

        for (int32_t d = 0; d < view->ndim; d++)
            if (view->shape[d] != 1)
                place += index[as->ndim - view->ndim + d] * view->strides[d];
        out->at[i++] = read_one(out->dtype, base + place * (int64_t)tn_dtype_size(out->dtype));
    } while (next(index, as->shape, as->ndim));
    return TN_OK;
}

void reference_store(const tn_view *view, const reference_number *from)
{
    tn_dtype dtype = tn_view_dtype(view);
    int64_t index[TN_MAX_DIMS] = { 0 }, i = 0;
    char *base = (char *)view->data + view->byte_offset;

    if (reference_count(view) == 0)
        return;
    do {
        int64_t place = 0;

        for (int32_t d = 0; d < view->ndim; d++)
            place += index[d] * view->strides[d];
        write_one(dtype, base + place * (int64_t)tn_dtype_size(dtype), from[i++]);
    } while (next(index, view->shape, view->ndim));
}

void reference_drop(reference_row *row)
{
    free(row->at);
    row->at = NULL;
}

reference_cut reference_cut_at(const tn_view *view, int64_t dim)
{
    reference_cut cut = { 1, 1, 1 };

    if (dim < 0)
        dim += view->ndim;
    for (int32_t d = 0; d < view->ndim; d++)
        *(d < dim ? &cut.outer : d == dim ? &cut.size : &cut.inner) *= view->shape[d];
    return cut;
}

/* ---- the device ---- */

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

static tn_status open_one(const tn_backend_def *self, int32_t index, void **device)
{
    (void)self;
    static int only;

    (void)index;
    *device = &only;
    return TN_OK;
}

static void close_one(void *device)
{
    (void)device;
}

static tn_status info(void *device, tn_device_info *out)
{
    (void)device;
    tn_snprint(out->name, sizeof out->name, "the reference of tenon check");
    tn_snprint(out->driver, sizeof out->driver, "one thread");
    out->memory_free = -1;
    out->compute_units = 1;
    out->alignment = 16;
    out->dtypes = TN_MASK_ARITH | TN_BIT(TN_BOOL);
    return TN_OK;
}

static tn_status alloc(void *device, tn_memory *memory)
{
    (void)device;
    memory->handle = calloc(1, memory->bytes);
    return memory->handle != NULL
               ? TN_OK
               : tn_fail(TN_ERR_MEMORY, "reference: out of memory for %llu bytes",
                         (unsigned long long)memory->bytes);
}

static void give_back(void *device, const tn_memory *memory)
{
    (void)device;
    free(memory->handle);
}

static tn_status copy(void *device, const tn_copy_args *args)
{
    (void)device;
    memcpy((char *)args->to.memory + args->to.offset,
           (const char *)args->from.memory + args->from.offset, args->bytes);
    return TN_OK;
}

/* The device "counted" is the reference, except that the host cannot address its memory and must
 * copy. Copies to the host are counted here. */
static int64_t reads;

/* Returns true if a copy begins with a guard zone. With TENON_CHECK=1 the core copies a memory
 * block together with the guard zones around it; such copies must not be counted. */
static bool is_zone(const uint8_t *bytes, uint64_t count)
{
    if (count < 16)
        return false;
    for (int i = 0; i < 16; i++)
        if (bytes[i] != bytes[0])
            return false;
    return bytes[0] == 0xFB || bytes[0] == 0xDB;
}

static tn_status copy_counted(void *device, const tn_copy_args *args)
{
    const uint8_t *from = (const uint8_t *)args->from.memory + args->from.offset;

    reads += args->to.device == NULL && !is_zone(from, args->bytes);
    return copy(device, args);
}

int64_t reference_reads(void)
{
    return reads;
}

static const tn_backend_def counted = {
    TN_HEAD(tn_backend_def),
    .type = "counted",
    .help = "the reference of tenon check, whose values are counted when they are read",
    .flags = TN_BACKEND_AFTER_FORK,
    .enumerate = enumerate,
    .open = open_one,
    .close = close_one,
    .info = info,
    .alloc = alloc,
    .free = give_back,
    .copy = copy_counted,
};

static const tn_backend_def backend = {
    TN_HEAD(tn_backend_def),
    .type = "reference",
    .help = "the reference of tenon check: every primitive, slow and simple",
    .flags = TN_BACKEND_HOST_MEMORY | TN_BACKEND_AFTER_FORK,
    .enumerate = enumerate,
    .open = open_one,
    .close = close_one,
    .info = info,
    .alloc = alloc,
    .free = give_back,
    .copy = copy,
};

uint64_t conform_basic_dtypes(const char *op)
{
    /* These also compute indices (in pooling and cross entropy) and count batches. */
    static const char *const places[] = { "add_scalar", "arange", "copy", "gather", NULL };

    for (int i = 0; places[i] != NULL; i++)
        if (strcmp(op, places[i]) == 0)
            return TN_BIT(TN_F32) | TN_BIT(TN_I64);
    return TN_BIT(TN_F32);
}

enum { KERNELS = 256 };

static bool has_flags(const char *op, uint64_t flags)
{
    const tn_op_def *def = tn_op_definition(tn_op_find(op, 0));

    return def != NULL && (def->flags & flags) == flags;
}

/* Registers a kernel for each operator in `names` that has all of `flags`. */
static tn_status add(const char *type, const char *const *names,
                     tn_status (*run)(const tn_call *call), uint64_t flags)
{
    static tn_kernel_def kernels[KERNELS];
    static int used;

    for (; *names != NULL; names++) {
        const tn_kernel_def one = {
            TN_HEAD(tn_kernel_def),
            .op = *names,
            .device = type,
            .name = *names,
            .revision = 1,
            .dtypes = flags & TN_OP_BASIC ? conform_basic_dtypes(*names) : TN_MASK_ALL,
            .run = run,
        };
        tn_status status;

        if (!has_flags(*names, flags))
            continue;
        if (used == KERNELS)
            return tn_fail(TN_ERR_RUNTIME, "reference: too many kernels; expected at most %d",
                           KERNELS);
        kernels[used] = one;
        status = tn_register(&kernels[used++]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status add_device(const tn_backend_def *device, uint64_t flags)
{
    tn_status status = tn_register(device);

    if (status == TN_OK)
        status = add(device->type, reference_elementwise_names, reference_elementwise, flags);
    if (status == TN_OK)
        status = add(device->type, reference_reduction_names, reference_reduction, flags);
    if (status == TN_OK)
        status = add(device->type, reference_index_names, reference_index, flags);
    return status;
}

tn_status conform_reference(uint64_t flags)
{
    return add_device(&backend, flags);
}

const tn_device *reference_counted(void)
{
    static bool there;

    there = there || add_device(&counted, TN_OP_PRIMITIVE) == TN_OK;
    return there ? tn_device_find("counted") : NULL;
}
