/* SPDX-License-Identifier: MIT
 *
 * The device type "strict" as a plugin. The device is slow and checks every access. It shows
 * whether a program, a layer or the core makes a wrong assumption: that the host can read device
 * memory, or that work is done when a call returns. */
#include "strict.h"

static struct options {
    const char *fail;
} options_data;

static const tn_option options[] = {
    TN_OPTION_STRING(
        struct options, fail, "''",
        "failures to inject, separated by commas: alloc:N, alloc:N+, memory:BYTES, lost:N, "
        "slow:MICROS, kernel:OP:N, kernel:OP:N+"),
    TN_OPTION_END
};

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    return options_data.fail ? strict_inject(options_data.fail) : TN_OK;
}

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

static tn_status info(void *device, tn_device_info *out)
{
    tn_snprint(out->name, sizeof out->name, "strict device%s",
               strict_lost(device) ? " (lost)" : "");
    tn_snprint(out->driver, sizeof out->driver, "one thread, every access checked");
    out->memory_total = 0;
    out->memory_free = -1;
    out->compute_units = 1;
    out->alignment = 16;
    out->memory_kinds = TN_MEMORY_BIT(TN_MEMORY_DEVICE) | TN_MEMORY_BIT(TN_MEMORY_PINNED);
    out->dtypes = TN_MASK_INT | TN_BIT(TN_BOOL) | TN_BIT(TN_F32) | TN_BIT(TN_F64);
    return TN_OK;
}

/* Pinned memory is host memory, which the device's thread reads and writes directly. */
static tn_status alloc_pinned(tn_memory *memory)
{
    memory->host = memory->handle = tn_malloc((size_t)memory->bytes);
    return memory->host ? TN_OK : TN_ERR_MEMORY;
}

static tn_status device_alloc(void *device, tn_memory *memory)
{
    uint64_t handle = 0;
    if (strict_lost(device))
        return tn_fail(TN_ERR_LOST, "strict: the device is lost");
    if (memory->kind == TN_MEMORY_PINNED)
        return alloc_pinned(memory);
    if (memory->kind != TN_MEMORY_DEVICE)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "strict: memory: unsupported kind, got %u; expected device or pinned memory",
                       memory->kind);
    tn_status status = strict_alloc((size_t)memory->bytes, &handle);
    memory->handle = (void *)(uintptr_t)handle;
    return status;
}

static void device_free(void *device, const tn_memory *memory)
{
    (void)device;
    if (memory->kind == TN_MEMORY_PINNED)
        tn_free(memory->handle);
    else
        strict_free((uint64_t)(uintptr_t)memory->handle);
}

static void counts(uint64_t *kernels, uint64_t *violations, uint64_t *bytes)
{
    *kernels = strict_kernels_run();
    *violations = strict_violations();
    *bytes = strict_allocated();
}

static const void *native(void *device, const char *id)
{
    static const struct strict_api api = { sizeof api, strict_enqueue, strict_get,
                                           strict_set, strict_inject,  counts };
    static const char wanted[] = STRICT_API_ID;
    (void)device;
    for (size_t i = 0; i < sizeof wanted; i++)
        if (id[i] != wanted[i])
            return NULL;
    return &api;
}

static const tn_backend_def strict = {
    TN_HEAD(tn_backend_def),
    .type = "strict",
    .help = "a checking device with memory of its own, asynchronous, with failures on demand",
    .flags = TN_BACKEND_ASYNC,
    .enumerate = enumerate,
    .open = strict_open,
    .close = strict_close,
    .info = info,
    .alloc = device_alloc,
    .free = device_free,
    .stream_new = strict_stream_new,
    .stream_drop = strict_stream_drop,
    .stream_sync = strict_stream_sync,
    .event_new = strict_event_new,
    .event_drop = strict_event_drop,
    .event_record = strict_event_record,
    .event_wait = strict_event_wait,
    .event_sync = strict_event_sync,
    .event_query = strict_event_query,
    .copy = strict_copy,
    .native = native,
    .capture_begin = strict_capture_begin,
    .capture_end = strict_capture_end,
    .capture_launch = strict_capture_launch,
    .capture_drop = strict_capture_drop,
};

#define FLOATS (TN_BIT(TN_F32) | TN_BIT(TN_F64))
#define NUMBERS (FLOATS | TN_MASK_INT)
#define MORE (NUMBERS | TN_BIT(TN_BOOL))
/* Kernels that only queue work can be recorded: TN_KERNEL_CAPTURE_SAFE. */
#define ROW(op_, dtypes_, run_, flags_)                                                            \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = #op_, .device = "strict", .name = "tn_" #op_, .revision = 1, \
                                .dtypes = dtypes_, .run = run_, .flags = flags_                    \
    }
#define KERNEL(op, dtypes) ROW(op, dtypes, strict_##op, TN_KERNEL_CAPTURE_SAFE)

/* These operators share one function, which looks up the name of the operator in a table. */
#define FUNCTION(op, dtypes) ROW(op, dtypes, strict_function, TN_KERNEL_CAPTURE_SAFE)
#define BITS (TN_MASK_INT | TN_BIT(TN_BOOL))

/* A copy without conversion moves bytes and supports every dtype; a conversion supports only the
 * dtypes in MORE. */
static bool copy_supports(const tn_call *call, char *reason, size_t size)
{
    tn_dtype from = tn_view_dtype(call->in[0]), to = tn_view_dtype(call->out[0]);
    if (from == to || ((TN_BIT(from) | TN_BIT(to)) & ~MORE) == 0)
        return true;
    tn_snprint(reason, size, "the strict device does not convert %s to %s", tn_dtype_name(from),
               tn_dtype_name(to));
    return false;
}

static const tn_kernel_def kernels[] = {
    { TN_HEAD(tn_kernel_def), .op = "copy", .device = "strict", .name = "tn_copy", .revision = 1,
      .flags = TN_KERNEL_CAPTURE_SAFE, .dtypes = TN_MASK_ALL, .supports = copy_supports,
      .run = strict_copy_kernel },
    KERNEL(fill, MORE),
    KERNEL(narrow_grad, MORE),
    KERNEL(add, MORE),
    KERNEL(sub, NUMBERS),
    KERNEL(mul, MORE),
    KERNEL(div, NUMBERS),
    KERNEL(maximum, MORE),
    KERNEL(add_scalar, NUMBERS),
    KERNEL(mul_scalar, NUMBERS),
    KERNEL(neg, NUMBERS),
    KERNEL(exp, FLOATS),
    KERNEL(log, FLOATS),
    KERNEL(sqrt, FLOATS),
    KERNEL(relu, NUMBERS),
    KERNEL(relu_grad, FLOATS),
    KERNEL(sigmoid, FLOATS),
    KERNEL(sum, MORE),
    KERNEL(amax, MORE),
    KERNEL(argmax, NUMBERS),
    KERNEL(bmm, NUMBERS),
    KERNEL(nll_loss, FLOATS),
    KERNEL(nll_loss_grad, FLOATS),
    KERNEL(philox_uniform, FLOATS),
    KERNEL(philox_normal, FLOATS),
    FUNCTION(abs, NUMBERS),
    FUNCTION(sign, NUMBERS),
    FUNCTION(floor, NUMBERS),
    FUNCTION(ceil, NUMBERS),
    FUNCTION(trunc, NUMBERS),
    FUNCTION(round, NUMBERS),
    FUNCTION(remainder, NUMBERS),
    FUNCTION(fmod, NUMBERS),
    FUNCTION(pow, NUMBERS),
    FUNCTION(expm1, FLOATS),
    FUNCTION(log1p, FLOATS),
    FUNCTION(log2, FLOATS),
    FUNCTION(log10, FLOATS),
    FUNCTION(sin, FLOATS),
    FUNCTION(cos, FLOATS),
    FUNCTION(tan, FLOATS),
    FUNCTION(asin, FLOATS),
    FUNCTION(acos, FLOATS),
    FUNCTION(atan, FLOATS),
    FUNCTION(sinh, FLOATS),
    FUNCTION(cosh, FLOATS),
    FUNCTION(tanh, FLOATS),
    FUNCTION(erf, FLOATS),
    FUNCTION(erfc, FLOATS),
    FUNCTION(erfinv, FLOATS),
    FUNCTION(atan2, FLOATS),
    FUNCTION(minimum, MORE),
    FUNCTION(eq, MORE),
    FUNCTION(lt, MORE),
    FUNCTION(le, MORE),
    FUNCTION(bitwise_and, BITS),
    FUNCTION(bitwise_or, BITS),
    FUNCTION(bitwise_xor, BITS),
    FUNCTION(bitwise_not, BITS),
    KERNEL(clamp, NUMBERS),
    KERNEL(where, MORE),
    KERNEL(complex, FLOATS),
    KERNEL(prod, MORE),
    KERNEL(amin, MORE),
    KERNEL(argmin, NUMBERS),
    KERNEL(cumsum, MORE),
    KERNEL(cumprod, MORE),
    KERNEL(sort, MORE),
    KERNEL(arange, NUMBERS),
    KERNEL(gather, MORE),
    KERNEL(scatter, MORE),
    KERNEL(scatter_add, NUMBERS),
    ROW(nonzero, MORE, strict_nonzero, 0), /* not capture-safe: waits for the count */
};

static const void *const contributions[] = { &strict };

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "org.example.strict",
    .version = "1.0.0",
    .help = "the strict device: every access checked, failures on demand",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = 1,
    .kernels = kernels,
    .n_kernels = (int64_t)(sizeof kernels / sizeof *kernels),
    .kernel_size = sizeof(tn_kernel_def),
    .options = options,
    .options_data = &options_data,
    .activate = activate,
};
TN_PLUGIN_EXPORT(plugin);
