/* SPDX-License-Identifier: MIT
 *
 * Element types, devices, tensors, scopes, exchange by DLPack.
 * tenon-interface: tenon.tensor 0
 *
 * A tensor is a view of a storage: dtype, shape, strides (in elements), offset. What an operator or
 * a call returns belongs to the thread's innermost scope; tn_tensor_keep adds a reference of the
 * caller's own, paired with tn_tensor_drop. A NULL tensor argument makes a call fail without a new
 * error where the function says [null-through]; so a nested expression needs only one check at its
 * end. */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <tenon/value.h>

TN_BEGIN_DECLS

/* ---- element types --------------------------------------------------------------------------- */

typedef uint32_t tn_dtype;
enum {
    TN_BOOL = 0,
    TN_U8 = 1,
    TN_I8 = 2,
    TN_I16 = 3,
    TN_I32 = 4,
    TN_I64 = 5,
    TN_F16 = 6,
    TN_BF16 = 7,
    TN_F32 = 8,
    TN_F64 = 9,
    TN_C64 = 10,
    TN_C128 = 11,
    TN_U16 = 12, /* from here on storage only: copies and files, no arithmetic */
    TN_U32 = 13,
    TN_U64 = 14,
    TN_F8_E4M3 = 15,
    TN_F8_E5M2 = 16,
    /* 17 to 31 are reserved: i4, u4, i2, u2, f4_e2m1, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz and later
     * ones. A view has no less than 8 bits per element: packed types are uint8 tensors. */
    TN_DTYPE_COUNT,
    TN_DTYPE_AUTO = 255 /* as an argument: the default, or the input's */
};

/* A mask of dtypes has 64 bits. */
#define TN_BIT(dtype) (UINT64_C(1) << (dtype))
#define TN_MASK_FLOAT (TN_BIT(TN_F16) | TN_BIT(TN_BF16) | TN_BIT(TN_F32) | TN_BIT(TN_F64))
#define TN_MASK_COMPLEX (TN_BIT(TN_C64) | TN_BIT(TN_C128))
#define TN_MASK_INT                                                                                \
    (TN_BIT(TN_U8) | TN_BIT(TN_I8) | TN_BIT(TN_I16) | TN_BIT(TN_I32) | TN_BIT(TN_I64))
#define TN_MASK_ARITH (TN_MASK_FLOAT | TN_MASK_COMPLEX | TN_MASK_INT)
#define TN_MASK_ALL (TN_BIT(TN_DTYPE_COUNT) - 1)

/* "float32", as PyTorch and NumPy say it; "?" if unknown. [static] */
TN_API const char *tn_dtype_name(tn_dtype dtype);
/* The dtype of such a name ("float32", "f32", "float"); TN_ERR_VALUE lists the names.
 */
TN_API tn_status tn_dtype_parse(const char *name, tn_dtype *out);
/* Bytes of one element. */
TN_API size_t tn_dtype_size(tn_dtype dtype);
/* The type of the result of arithmetic between the two, as PyTorch promotes; storage-only types
 * promote with themselves alone: TN_DTYPE_AUTO and an error otherwise. */
TN_API tn_dtype tn_dtype_promote(tn_dtype a, tn_dtype b);

/* ---- the view, which is DLPack's DLTensor ---------------------------------------------------- */

#define TN_MAX_DIMS 16

/* Layout of DLTensor, to the byte: what kernels see, and what is exchanged with PyTorch, NumPy,
 * JAX, CuPy. `data` is the memory handle of the device: a pointer for devices of the host, a cl_mem
 * for OpenCL; the address of the first element is data and byte_offset together. */
typedef struct tn_view {
    void *data;
    struct {
        int32_t
            type; /* DLDeviceType, or TN_DEVICE_TYPE_FIRST + n for types DLPack has no number for */
        int32_t id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code; /* DLDataTypeCode */
        uint8_t bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; never NULL inside Tenon */
    uint64_t byte_offset;
} tn_view;

/* The dtype of a view, TN_DTYPE_AUTO for what Tenon has no type for. */
static inline tn_dtype tn_view_dtype(const tn_view *view)
{
    /* DLPack's codes: int 0, uint 1, float 2, bfloat 4, complex 5, bool 6, float8_e4m3fn 10,
     * float8_e5m2 12 */
    switch (view->dtype.lanes > 1 ? 0 : view->dtype.code * 256 + view->dtype.bits) {
    case 0 * 256 + 8: return TN_I8;
    case 0 * 256 + 16: return TN_I16;
    case 0 * 256 + 32: return TN_I32;
    case 0 * 256 + 64: return TN_I64;
    case 1 * 256 + 8: return TN_U8;
    case 1 * 256 + 16: return TN_U16;
    case 1 * 256 + 32: return TN_U32;
    case 1 * 256 + 64: return TN_U64;
    case 2 * 256 + 16: return TN_F16;
    case 2 * 256 + 32: return TN_F32;
    case 2 * 256 + 64: return TN_F64;
    case 4 * 256 + 16: return TN_BF16;
    case 5 * 256 + 64: return TN_C64;
    case 5 * 256 + 128: return TN_C128;
    case 6 * 256 + 8: return TN_BOOL;
    case 10 * 256 + 8: return TN_F8_E4M3;
    case 12 * 256 + 8: return TN_F8_E5M2;
    default: return TN_DTYPE_AUTO;
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

/* The device of a name, "cpu", "cuda:1"; activates the plugin that provides it. When it is
 * unavailable, the error includes its line of the load report. Never freed. [static]
 */
TN_API const tn_device *tn_device_find(const char *name);

/* Its name, always with an index: "cpu:0". The type alone: "cpu". For messages, NULL is "?", "?"
 * and -1. [static] [null-ok: device] */
TN_API const char *tn_device_name(const tn_device *device);
TN_API const char *tn_device_type(const tn_device *device);
TN_API int tn_device_index(const tn_device *device);

/* Whether tensor memory of the device can be read and written by the host through tn_tensor_data;
 * whether it has memory at all (`meta` has none). False for NULL. [null-ok: device] */
TN_API bool tn_device_is_host(const tn_device *device);
TN_API bool tn_device_has_memory(const tn_device *device);

/* Waits until all work queued on the device is done and returns its failures. */
TN_API tn_status tn_device_sync(const tn_device *device);

/* The device where new tensors go: the innermost tn_device_begin of this thread, else
 * tn_set_default_device, else TENON_DEVICE, else cpu. NULL and an error when it is unavailable.
 * [static] */
TN_API const tn_device *tn_default_device(void);

/* Sets the device of the process for new tensors: a name, or a preference list as TENON_DEVICE has:
 * "cuda,cpu". */
TN_API tn_status tn_set_default_device(const char *names);

/* The same for this thread until the paired end. NULL device: as it was. Where begin fails (out of
 * memory), the previous device stays in use, and the end is still required. [null-ok:
 * device] */
TN_API tn_status tn_device_begin(const tn_device *device);
TN_API void tn_device_end(void);

/* The number of devices known after activating every backend, and each of them; for listing. */
TN_API int64_t tn_device_count(void);
/* [static] */
TN_API const tn_device *tn_device_at(int64_t index);

/* Whether kernels and copies of `device` reach the memory of `other` without the host. */
TN_API bool tn_device_reaches(const tn_device *device, const tn_device *other);

/* What the core's allocator holds on a device, in bytes. Frozen at 96 bytes. */
typedef struct tn_memory_stats {
    int64_t live;   /* in tensors */
    int64_t cached; /* held for reuse */
    int64_t peak;   /* the most `live` ever was since the last reset */
    int64_t live_blocks;
    int64_t device_allocs; /* times the device itself was asked for memory */
    int64_t requests;      /* times a tensor asked */
    int64_t trims;         /* times memory ran out and the cache was given back */
    int64_t prepared;      /* by kernels for kept calls (tn_op_prepare), not in the numbers above */
    int64_t reserved[4];
} tn_memory_stats;

/* The bytes that tensors of the device hold, now and at most. */
TN_API tn_status tn_device_memory(const tn_device *device, tn_memory_stats *out);
/* Resets the peak. */
TN_API tn_status tn_device_reset_peak(const tn_device *device);
/* Gives cached memory back to the device. */
TN_API tn_status tn_device_trim(const tn_device *device);

/* The default dtype of new floating tensors, float32 unless set (per process). */
TN_API tn_dtype tn_default_dtype(void);
TN_API tn_status tn_set_default_dtype(tn_dtype dtype);
/* The same for this thread until the paired end; complex types are accepted here, too.
 * TN_DTYPE_AUTO, and any other type: unchanged. */
TN_API tn_status tn_dtype_begin(tn_dtype dtype);
TN_API void tn_dtype_end(void);

/* ---- streams and events ---------------------------------------------------------------------- */

/* Work of one device in order. Each device has a default stream; a thread may use another between
 * begin and end. */
typedef struct tn_stream tn_stream;
typedef struct tn_event tn_event;

/* A stream to be made. */
typedef struct tn_stream_args {
    tn_head head;
    int32_t priority; /* a lower number is served first; the range is in tn_device_info */
    uint32_t reserved;
    void *external; /* the native handle of a stream of the program, which is used and not dropped;
                       NULL: a new one */
} tn_stream_args;

enum {
    TN_EVENT_TIMING = 1 /* the event can be given to tn_event_elapsed */
};

/* A stream of the device; NULL args: of usual priority. A priority outside of the device's range,
 * and an external stream where the device takes none, are errors. [owned] [null-ok: args] */
TN_API tn_stream *tn_stream_new(const tn_device *device, const tn_stream_args *args);
/* Waits for the stream's work first. [null-ok: stream] */
TN_API void tn_stream_drop(tn_stream *stream);
/* Work of this thread on the stream's device goes there until the paired end. Where begin fails,
 * the previous stream stays in use, and the end is still required. */
TN_API tn_status tn_stream_begin(tn_stream *stream);
TN_API void tn_stream_end(void);
/* Waits for its work; returns the first failure of that work. */
TN_API tn_status tn_stream_sync(tn_stream *stream);
/* The one that this thread's work on the device goes to. [borrowed] */
TN_API tn_stream *tn_stream_current(const tn_device *device);
/* Its native handle (CUstream), for other libraries; NULL where the device has none. [borrowed] */
TN_API void *tn_stream_native(tn_stream *stream);
/* Records an event at the current position of the stream. NULL stream: the current one of the
 * device. `flags`: 0 or TN_EVENT_TIMING. [owned] [null-ok: stream] */
TN_API tn_event *tn_event_record(const tn_device *device, tn_stream *stream, uint32_t flags);
/* Milliseconds from one event to another of the same device, both with TN_EVENT_TIMING; waits for
 * both. NAN and an error otherwise. */
TN_API double tn_event_elapsed(tn_event *from, tn_event *to);
/* Makes later work of the stream wait for the event; the host does not wait. [null-ok:
 * stream] */
TN_API tn_status tn_event_wait(tn_event *event, tn_stream *stream);
/* Whether it was reached; waits until it is. */
TN_API bool tn_event_done(tn_event *event);
TN_API tn_status tn_event_sync(tn_event *event);
/* [null-ok: event] */
TN_API void tn_event_drop(tn_event *event);

/* ---- scopes ---------------------------------------------------------------------------------- */

/* Opens a scope of this thread and returns its number; tn_scope_end drops what the scope owns, and
 * first ends the scopes that were opened inside it. 0 and an error when out of memory: the
 * enclosing scope then owns new tensors, and ending 0 does nothing. */
TN_API uint64_t tn_scope_begin(void);
TN_API void tn_scope_end(uint64_t scope);
/* Ends the scope but moves `count` tensors (TN_NONE and NULL are skipped) to the enclosing one.
 * [array: tensors count] */
TN_API void tn_scope_end_with(uint64_t scope, tn_tensor *const *tensors, int64_t count);

#if defined(__GNUC__) || defined(__clang__)
TN_ATTR(unused) static inline void tn_scope_end_at(uint64_t *scope)
{
    tn_scope_end(*scope);
}
#define TN_PASTE_(a, b) a##b
#define TN_PASTE(a, b) TN_PASTE_(a, b)
/* A declaration: opens a scope that ends with the block, however the block is left. */
#define TN_SCOPE                                                                                   \
    uint64_t TN_PASTE(tn_scope_here_, __LINE__)                                                    \
        __attribute__((cleanup(tn_scope_end_at), unused)) = tn_scope_begin()
#endif

/* ---- tensors --------------------------------------------------------------------------------- */

/* The absent optional tensor. NULL is always an error that happened earlier. */
#define TN_NONE ((tn_tensor *)(uintptr_t)16)

/* Adds a reference for the caller and returns the tensor. [owned] [null-through] */
TN_API tn_tensor *tn_tensor_keep(tn_tensor *tensor);
/* [null-ok: tensor] */
TN_API void tn_tensor_drop(tn_tensor *tensor);
#define tn_keep(tensor) tn_tensor_keep(tensor)
/* Transfers one reference from the caller to the innermost scope. Returns the tensor.
 * [scoped] [null-through] [taken: tensor] */
TN_API tn_tensor *tn_tensor_to_scope(tn_tensor *tensor);

/* Memory for a tensor, its values undefined. NULL device: the default one; TN_DTYPE_AUTO: the
 * default. Negative sizes and sizes that overflow are errors. [scoped] [null-ok:
 * device] */
TN_API tn_tensor *tn_tensor_empty(tn_ints shape, tn_dtype dtype, const tn_device *device);
/* The same with strides of the caller's choice (not negative; no two elements may share memory
 * unless a stride is 0). [scoped] [null-ok: device] */
TN_API tn_tensor *tn_tensor_empty_strided(tn_ints shape, tn_ints strides, tn_dtype dtype,
                                          const tn_device *device);
/* A tensor on the default device with a copy of `data`, which is contiguous. `data` may be freed at
 * once. [scoped] */
TN_API tn_tensor *tn_tensor_from(const void *data, tn_dtype dtype, tn_ints shape);
/* Filled with a number. [scoped] [null-ok: device] */
TN_API tn_tensor *tn_tensor_full(tn_ints shape, tn_scalar value, tn_dtype dtype,
                                 const tn_device *device);
#ifndef __cplusplus /* where numbers convert by themselves */
/* The value may be any number of C; the shape may be a literal (tn_ints){ at, count }, which has a
 * comma of its own. */
#define tn_tensor_full(...) TN__FULL(__VA_ARGS__, TN__FULL_5, TN__FULL_4, 0)(__VA_ARGS__)
#define TN__FULL(a, b, c, d, e, macro, ...) macro
#define TN__FULL_4(shape, value, dtype, device)                                                    \
    tn_tensor_full(shape, TN_SCALAR(value), dtype, device)
#define TN__FULL_5(at, count, value, dtype, device)                                                \
    tn_tensor_full(at, count, TN_SCALAR(value), dtype, device)
#endif
/* A tensor over memory of the program, on a device of the host (NULL: cpu); `release` is called
 * once when no tensor uses it any more. [scoped] [null-ok: release, user, device,
 * strides] */
TN_API tn_tensor *tn_tensor_wrap(void *data, tn_dtype dtype, tn_ints shape, const int64_t *strides,
                                 const tn_device *device, void (*release)(void *user, void *data),
                                 void *user);
/* Another view of the same storage. `offset` counts elements from the storage's start. No gradient
 * flows through it: the operators reshape, permute, select and similar are the differentiable form.
 * [scoped] [null-through] */
TN_API tn_tensor *tn_tensor_as_strided(tn_tensor *tensor, tn_ints shape, tn_ints strides,
                                       int64_t offset);

/* A tensor on the host (on the device of type cpu), its values undefined, whose memory `device`
 * (NULL: the default one) copies from and to by itself: what tn_tensor_copy_async needs. A device
 * that has no such memory gets ordinary memory, which tn_tensor_is_pinned tells. [scoped]
 * [null-ok: device] */
TN_API tn_tensor *tn_tensor_pinned(tn_ints shape, tn_dtype dtype, const tn_device *device);
TN_API bool tn_tensor_is_pinned(const tn_tensor *tensor);

/* Properties of a tensor. */
TN_API tn_dtype tn_tensor_dtype(const tn_tensor *tensor);
/* [static] */
TN_API const tn_device *tn_tensor_device(const tn_tensor *tensor);
/* The number of dimensions. */
TN_API int32_t tn_tensor_ndim(const tn_tensor *tensor);
/* Size of dimension `dim`, counted from the end when negative; -1 and an error out of range. */
TN_API int64_t tn_tensor_size(const tn_tensor *tensor, int64_t dim);
/* [borrowed] */
TN_API tn_ints tn_tensor_shape(const tn_tensor *tensor);
TN_API tn_ints tn_tensor_strides(const tn_tensor *tensor);
/* The number of elements. */
TN_API int64_t tn_tensor_numel(const tn_tensor *tensor);
/* Elements from the start of the storage to the first element. */
TN_API int64_t tn_tensor_offset(const tn_tensor *tensor);
TN_API bool tn_tensor_is_contiguous(const tn_tensor *tensor);
/* Whether two tensors share the same storage. */
TN_API bool tn_tensor_shares_storage(const tn_tensor *a, const tn_tensor *b);
/* Bytes of the whole storage; how often it was written through an operator. */
TN_API size_t tn_tensor_storage_size(const tn_tensor *tensor);
TN_API uint64_t tn_tensor_version(const tn_tensor *tensor);
/* Whether its memory is shared with processes that this one forks (tn_module_share_memory). */
TN_API bool tn_tensor_is_shared(const tn_tensor *tensor);
/* Records that the storage was written by other means than operators. */
TN_API tn_status tn_tensor_touch(tn_tensor *tensor);
/* The view that kernels get; valid as long as the tensor. [borrowed] */
TN_API const tn_view *tn_tensor_view(const tn_tensor *tensor);
/* Pointer to the first element on a device of the host (which has first finished its work on it);
 * NULL and an error elsewhere, which says to copy. [borrowed] */
TN_API void *tn_tensor_data(tn_tensor *tensor);

/* Copies all elements, in row-major order of the shape, to / from host memory of exactly `bytes`
 * bytes, whatever the strides; waits. [array: data bytes] */
TN_API tn_status tn_tensor_copy_out(const tn_tensor *tensor, void *data, size_t bytes);
TN_API tn_status tn_tensor_copy_in(tn_tensor *tensor, const void *data, size_t bytes);

/* Copies a tensor to another of the same shape, as the operator `copy` does without gradients, and
 * may return before it is done: between a device and pinned memory of the host, where both are
 * contiguous and of one type. The host's side is then ready once the device's current stream has
 * been waited for (tn_stream_sync, an event), as tn_tensor_data does. All other copies are done as
 * usual. */
TN_API tn_status tn_tensor_copy_async(tn_tensor *to, const tn_tensor *from);

/* The only element of a one-element tensor as a number; NAN and an error otherwise, also where a
 * double does not hold it exactly (tn_tensor_scalar does). Waits. */
TN_API double tn_tensor_item(tn_tensor *tensor);
#define tn_item(tensor) tn_tensor_item(tensor)

/* Exchanges the contents of two tensors (storage, shape, dtype, device); both objects, their
 * requires_grad and their references stay. A tensor that has a gradient takes its shape only. For
 * conversion of modules. */
TN_API tn_status tn_tensor_swap(tn_tensor *a, tn_tensor *b);

/* The tensor as NumPy would print it, abbreviated past 1000 elements; with dtype when it is not the
 * default one. Writes at most `size` bytes; returns the length of the whole text, -1 on error.
 * [null-ok: out] */
TN_API int64_t tn_tensor_text(tn_tensor *tensor, char *out, size_t size);

/* ---- DLPack ---------------------------------------------------------------------------------- */

/* Layouts of DLPack 1.0; Debian's header is older. deleter: any thread, once. */
typedef struct tn_dlpack {
    tn_view tensor;
    void *manager_ctx;
    void (*deleter)(struct tn_dlpack *self);
} tn_dlpack;
/* The form with a version and flags. deleter: any thread, once. */
typedef struct tn_dlpack_versioned {
    struct {
        uint32_t major;
        uint32_t minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct tn_dlpack_versioned *self);
    uint64_t flags; /* 1: read only, 2: a copy was made */
    tn_view tensor;
} tn_dlpack_versioned;

/* Exports the tensor without a copy: the consumer calls `deleter` once. `stream` is the consumer's,
 * as the device's native handle (0 or NULL: the work is waited for); its later work is ordered
 * after Tenon's. A device that has no DLPack number is an error. [owned] [null-ok:
 * stream] */
TN_API tn_dlpack *tn_tensor_to_dlpack(tn_tensor *tensor, void *stream);
TN_API tn_dlpack_versioned *tn_tensor_to_dlpack_versioned(tn_tensor *tensor, void *stream);
/* Imports a tensor without a copy; Tenon then calls `deleter` (on failure the caller must). A
 * read-only one is refused for writing later. [scoped] [taken: managed] */
TN_API tn_tensor *tn_tensor_from_dlpack(tn_dlpack *managed);
TN_API tn_tensor *tn_tensor_from_dlpack_versioned(tn_dlpack_versioned *managed);

/* ---- random numbers -------------------------------------------------------------------------- */

/* One counter-based generator (Philox 4x32-10) for all devices: a seed, and a counter of blocks of
 * four 32-bit words. An operator that draws n elements takes a range of it with tn_random_take. */
TN_API void tn_random_seed(uint64_t seed);
/* Takes the blocks for `count` elements, `words` (1, 2 or 4) 32-bit words each, and gives seed and
 * first block. Fails only when out of memory while reading TENON_SEED. [null-ok: seed,
 * block] */
TN_API tn_status tn_random_take(uint64_t count, uint32_t words, uint64_t *seed, uint64_t *block);
/* Saves and restores: state[0] seed, state[1] next block; the others are 0, and refused if not. */
TN_API tn_status tn_random_get_state(uint64_t state[4]);
TN_API tn_status tn_random_set_state(const uint64_t state[4]);

/* ---- storage with another type --------------------------------------------------------------- */

/* A tensor over the storage of another with a different type: `offset` and strides (NULL:
 * row-major) count elements of that type from the storage's start. No gradient flows through it.
 * [scoped] [null-through] [null-ok: strides] */
TN_API tn_tensor *tn_tensor_over(tn_tensor *tensor, tn_dtype dtype, tn_ints shape,
                                 const int64_t *strides, int64_t offset);

/* ---- recorded work --------------------------------------------------------------------------- */

/* Work that a stream recorded, to be done as often as it is launched, without the host's part of
 * it. The record refers to memory: each launch reads what the inputs hold then (copy new values
 * into them), and writes the tensors that the recorded calls returned. It holds all memory that it
 * uses until it is dropped; what was freed during the capture serves later work of the same capture
 * and no other. */
typedef struct tn_device_graph tn_device_graph;

/* From here on, work of this thread on the stream (tn_stream_begin makes it the current one) is
 * recorded and not done. Waits for its earlier work. Refused until the end, by name: kernels
 * without TN_KERNEL_CAPTURE_SAFE, whatever waits for the device or reads from it (tn_item, copies
 * to and from the host, events), and random numbers; the first failure ends the recording. Work on
 * other streams and devices is done at once, and is not in the record. The default stream does not
 * record; a device that cannot is TN_ERR_NOT_IMPLEMENTED. */
TN_API tn_status tn_stream_capture_begin(tn_stream *stream);
/* Ends the recording, in the thread that began it. After a failure meanwhile: NULL, and that
 * failure. [owned] */
TN_API tn_device_graph *tn_stream_capture_end(tn_stream *stream);
/* Does the work once, in the order of the stream (NULL: the current one), which need not be the one
 * that recorded. Launches of a graph follow each other. [null-ok: stream] */
TN_API tn_status tn_device_graph_launch(tn_device_graph *graph, tn_stream *stream);
/* Waits for its launches. [null-ok: graph] */
TN_API void tn_device_graph_drop(tn_device_graph *graph);

/* ---- exact numbers --------------------------------------------------------------------------- */

/* The only element of a one-element tensor as a number of its kind, which nothing is lost of: bool,
 * int64, double, complex; of uint64 above 2^63 - 1 UINT. Waits. On failure *out is of kind NONE. */
TN_API tn_status tn_tensor_scalar(tn_tensor *tensor, tn_scalar *out);

TN_END_DECLS
#endif
