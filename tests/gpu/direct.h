/* SPDX-License-Identifier: MIT
 *
 * A backend without the core: loads the plugin's file and calls its kernels with a tn_call of the
 * test. So the test decides exactly what a kernel gets: strides, offsets, aliases. */
#ifndef TN_TESTS_GPU_DIRECT_H
#define TN_TESTS_GPU_DIRECT_H

#include "tests/libcheck.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plugin/internal.h"
#include <tenon/ops.h>
#include <tenon/query.h>

/* Drivers are not built with ThreadSanitizer, which would report false races. */
#if TN_BUILD_TSAN
#define NO_REAL_DRIVERS 1
#endif

/* A plugin, and one device and stream of it. */
struct direct {
    const tn_plugin *plugin;
    const tn_backend_def *backend;
    void *device, *stream;
    tn_device_info info;
};

static inline bool direct_load(struct direct *d, const char *file)
{
    tn_plugin_info out = { TN_HEAD(tn_plugin_info) };
    tn_error error = { 0 };
    union {
        void *object;
        tn_plugin_query_fn *query;
    } symbol;
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    memset(d, 0, sizeof *d);
    if (!handle)
        return false;
    symbol.object = dlsym(handle, TN_PLUGIN_SYMBOL);
    if (!symbol.object || symbol.query(tn__host_info(), &out, &error)) {
        printf("%s cannot be used: %s\n", file, symbol.object ? error.message : "no symbol");
        exit(EXIT_FAILURE);
    }
    d->plugin = out.plugin;
    d->backend = d->plugin->contributions[0];
    return true;
}

static inline void direct_close(struct direct *d)
{
    if (d->stream)
        d->backend->stream_drop(d->device, d->stream);
    if (d->device)
        d->backend->close(d->device);
    if (d->plugin->deactivate)
        d->plugin->deactivate(d->plugin);
    d->stream = NULL;
    d->device = NULL;
}

/* ---- the backend's functions, with their arguments in a row ---- */

static inline tn_status direct_alloc(const tn_backend_def *backend, void *device, size_t bytes,
                                     void **out)
{
    tn_memory memory = { TN_HEAD(tn_memory), .bytes = bytes > 0 ? bytes : 1 };
    tn_status status = backend->alloc(device, &memory);

    *out = memory.handle;
    return status;
}

static inline void direct_free(const tn_backend_def *backend, void *device, void *handle,
                               size_t bytes)
{
    const tn_memory memory = { TN_HEAD(tn_memory), .bytes = bytes, .handle = handle };

    backend->free(device, &memory);
}

static inline tn_status direct_copy(const tn_backend_def *backend, void *stream, tn_copy_end to,
                                    tn_copy_end from, size_t bytes)
{
    const tn_copy_args args = { TN_HEAD(tn_copy_args), .to = to, .from = from, .bytes = bytes,
                                .stream = stream };

    return backend->copy(from.device ? from.device : to.device, &args);
}

static inline tn_status direct_copy_in(const tn_backend_def *backend, void *device, void *stream,
                                       void *memory, uint64_t offset, const void *from,
                                       size_t bytes)
{
    return direct_copy(backend, stream, (tn_copy_end){ device, memory, offset },
                       (tn_copy_end){ NULL, (void *)(uintptr_t)from, 0 }, bytes);
}

static inline tn_status direct_copy_out(const tn_backend_def *backend, void *device, void *stream,
                                        void *to, void *memory, uint64_t offset, size_t bytes)
{
    return direct_copy(backend, stream, (tn_copy_end){ NULL, to, 0 },
                       (tn_copy_end){ device, memory, offset }, bytes);
}

static inline tn_status direct_stream_new(const tn_backend_def *backend, void *device,
                                          void **stream)
{
    const tn_stream_args args = { TN_HEAD(tn_stream_args) };

    return backend->stream_new(device, &args, stream);
}

static inline tn_status direct_event_new(const tn_backend_def *backend, void *device,
                                         uint32_t flags, void **event)
{
    const tn_event_args args = { TN_HEAD(tn_event_args), .flags = flags };

    return backend->event_new(device, &args, event);
}

/* Activates and opens device `index`; TN_ERR_UNAVAILABLE when there is none. */
static inline tn_status direct_open(struct direct *d, int32_t index)
{
    int32_t count = 0;
    tn_status status = d->plugin->activate ? d->plugin->activate(d->plugin) : TN_OK;

    if (!status)
        status = d->backend->enumerate(d->backend, &count);
    if (!status)
        status = d->backend->open(d->backend, index, &d->device);
    if (!status)
        status = direct_stream_new(d->backend, d->device, &d->stream);
    d->info = (tn_device_info){ TN_HEAD(tn_device_info) };
    return status ? status : d->backend->info(d->device, &d->info);
}

/* ---- arrays: a host copy, device memory, a view ---------------------------------------------- */

enum layout { PLAIN, TURNED, GAPS, REPEATED, LAYOUTS };

struct array {
    tn_view view;
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    tn_dtype dtype;
    int64_t count, item;
    size_t bytes;
    char *host;
    void *memory;
    struct direct *d;
};

static inline void view_type(tn_view *view, tn_dtype dtype)
{
    static const uint8_t codes[] = { 6, 1, 0, 0, 0, 0, 2, 4, 2, 2, 5, 5, 1, 1, 1, 10, 12 };

    view->dtype.code = codes[dtype];
    view->dtype.bits = (uint8_t)(8 * tn_dtype_size(dtype));
    view->dtype.lanes = 1;
}

/* PLAIN: row-major. TURNED: dimensions in reverse order. GAPS: every second element of a
 * larger block, at an offset. REPEATED: the first dimension has stride 0 (for inputs). */
static inline struct array *array_new(struct direct *d, tn_dtype dtype, int ndim,
                                      const int64_t *shape, enum layout layout)
{
    struct array *a = calloc(1, sizeof *a);
    int64_t step = layout == GAPS ? 2 : 1, extent = 1;

    a->d = d;
    a->dtype = dtype;
    a->item = (int64_t)tn_dtype_size(dtype);
    a->count = 1;
    for (int i = 0; i < ndim; i++) {
        int at = layout == TURNED ? i : ndim - 1 - i;

        a->shape[at] = shape[at];
        a->strides[at] = layout == REPEATED && at == 0 ? 0 : step;
        if (!(layout == REPEATED && at == 0))
            step *= shape[at] ? shape[at] : 1;
        a->count *= shape[at];
    }
    extent = step + 8;
    a->bytes = (size_t)(extent * a->item);
    a->host = calloc(1, a->bytes);
    memset(a->host, 0x5a, a->bytes);
    view_type(&a->view, dtype);
    a->view.ndim = ndim;
    a->view.shape = a->shape;
    a->view.strides = a->strides;
    a->view.byte_offset = layout == GAPS ? (uint64_t)(3 * a->item) : 0;
    ck_assert_int_eq(direct_alloc(d->backend, d->device, a->bytes, &a->memory), TN_OK);
    a->view.data = a->memory;
    return a;
}

static inline void array_drop(struct array *a)
{
    direct_free(a->d->backend, a->d->device, a->memory, a->bytes);
    free(a->host);
    free(a);
}

static inline char *array_at(struct array *a, int64_t linear)
{
    int64_t place = 0;

    for (int i = a->view.ndim - 1; i >= 0; i--) {
        place += linear % a->shape[i] * a->strides[i];
        linear /= a->shape[i];
    }
    return a->host + a->view.byte_offset + place * a->item;
}

static inline double half_value(uint16_t x)
{
    int exponent = x >> 10 & 31, rest = x & 1023;
    double y = exponent == 31 ? (rest ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + rest, exponent - 25)
                              : ldexp(rest, -24);
    return x & 0x8000 ? -y : y;
}

static inline double array_get(struct array *a, int64_t linear)
{
    const char *at = array_at(a, linear);
    union {
        uint8_t u8;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f;
        double d;
    } v;

    memcpy(&v, at, (size_t)(a->item > 8 ? 8 : a->item));
    switch (a->dtype) {
    case TN_BOOL:
    case TN_U8: return v.u8;
    case TN_I8: return v.i8;
    case TN_I16: return v.i16;
    case TN_I32: return v.i32;
    case TN_I64: return (double)v.i64;
    case TN_F16: return half_value(v.u16);
    case TN_BF16: v.u32 = (uint32_t)v.u16 << 16; return v.f;
    case TN_F32:
    case TN_C64: return v.f;
    case TN_U16: return v.u16;
    case TN_U32: return v.u32;
    case TN_U64: return (double)v.u64;
    default: return v.d;
    }
}

/* The caller gives numbers that the type has exactly. */
static inline void array_set(struct array *a, int64_t linear, double value)
{
    char *at = array_at(a, linear);
    union {
        int64_t i64;
        uint64_t u64;
        float f;
        double d;
        uint32_t u32;
        uint16_t u16;
    } v = { 0 };
    int exponent;
    double size = fabs(value);

    switch (a->dtype) {
    case TN_F16:
        if (isnan(value)) {
            v.u16 = 0x7e00;
        } else if (isinf(value)) {
            v.u16 = 0x7c00;
        } else if (size > 0) {
            frexp(size, &exponent);
            v.u16 = (uint16_t)(((exponent + 14) << 10) + (int)ldexp(size, 11 - exponent) - 1024);
        }
        if (signbit(value))
            v.u16 |= 0x8000;
        break;
    case TN_BF16:
        v.f = (float)value;
        v.u32 >>= 16;
        break;
    case TN_F32:
    case TN_C64: v.f = (float)value; break;
    case TN_F64:
    case TN_C128: v.d = value; break;
    case TN_U64: v.u64 = (uint64_t)value; break;
    default: v.i64 = (int64_t)value; break;
    }
    memcpy(at, &v, (size_t)(a->item > 8 ? 8 : a->item));
    if (a->item == 16)
        memset(at + 8, 0, 8);
}

static inline void array_up(struct array *a)
{
    ck_assert_int_eq(
        direct_copy_in(a->d->backend, a->d->device, a->d->stream, a->memory, 0, a->host, a->bytes),
        TN_OK);
}

static inline void array_down(struct array *a)
{
    ck_assert_int_eq(
        direct_copy_out(a->d->backend, a->d->device, a->d->stream, a->host, a->memory, 0, a->bytes),
        TN_OK);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static inline const tn_kernel_def *kernel_find(struct direct *d, const char *op)
{
    for (int64_t i = 0; i < d->plugin->n_kernels; i++)
        if (strcmp(d->plugin->kernels[i].op, op) == 0)
            return &d->plugin->kernels[i];
    ck_abort_msg("there is no kernel for %s", op);
    return NULL;
}

/* Runs `op`; allocates and frees the kernel's workspace, like the core. */
static inline tn_status call_into(struct direct *d, const char *op, const void *options,
                                  struct array *const *in, int n_in, struct array *const *out,
                                  int n_out)
{
    const tn_view *ins[4], *outs[2];
    tn_call call = { TN_HEAD(tn_call),
                     .op = op,
                     .in = ins,
                     .out = outs,
                     .n_in = n_in,
                     .n_out = n_out,
                     .options = options,
                     .device = d->device,
                     .stream = d->stream,
                     .dtype = out[0]->dtype,
                     .kernel = kernel_find(d, op) };
    const struct {
        const char *op;
    } by_input[] = { { "argmax" }, { "nll_loss" }, { "nll_loss_grad" } };
    char reason[256] = "";
    struct array *workspace = NULL;
    size_t bytes;
    tn_status status;

    for (int i = 0; i < n_in; i++)
        ins[i] = in[i] ? &in[i]->view : NULL;
    for (int i = 0; i < n_out; i++)
        outs[i] = &out[i]->view;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(by_input[i].op, op) == 0)
            call.dtype = in[0]->dtype;
    if (!(call.kernel->dtypes & TN_BIT(call.dtype)))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s has no kernel for %s", op,
                       tn_dtype_name(call.dtype));
    if (call.kernel->supports && !call.kernel->supports(&call, reason, sizeof reason))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s", reason);
    bytes = call.kernel->workspace ? call.kernel->workspace(&call) : 0;
    if (bytes) {
        const int64_t length = (int64_t)bytes;

        workspace = array_new(d, TN_U8, 1, &length, PLAIN);
        call.workspace = &workspace->view;
    }
    status = call.kernel->run(&call);
    if (workspace) {
        d->backend->stream_sync(d->device, d->stream);
        array_drop(workspace);
    }
    return status;
}

#define CALL(d, op, options, in, out)                                                              \
    ck_assert_msg(call_into(d, op, options, in, (int)(sizeof(in) / sizeof *(in)), out,             \
                            (int)(sizeof(out) / sizeof *(out))) == TN_OK,                          \
                  "%s failed: %s", op, tn_error_text())

#endif
