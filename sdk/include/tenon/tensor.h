/* SPDX-License-Identifier: MIT
 *
 * Dtypes, devices, streams, scopes, tensors, exchange with other libraries by DLPack, and
 * random numbers.
 * tenon-interface: tenon.tensor 0
 *
 * A tensor is a view of a storage: dtype, shape, strides (in elements) and offset. The innermost
 * scope of the thread owns the tensors that operators and module calls return. tn_tensor_keep adds
 * a reference that the caller owns and must drop with tn_tensor_drop. Functions with the tag
 * [null-through] fail without recording a new error if a tensor argument is NULL, so a nested
 * expression needs only one check at its end.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <tenon/value.h>

TN_BEGIN_DECLS

/* ---- dtypes ---------------------------------------------------------------------------------- */

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
    /* From here on for storage only: these dtypes can be copied and stored in files, but not
     * computed with. */
    TN_U16 = 12,
    TN_U32 = 13,
    TN_U64 = 14,
    TN_F8_E4M3 = 15,
    TN_F8_E5M2 = 16,
    /* 17 to 47 are reserved: 17 to 24 for i4, u4, i2, u2, f4_e2m1, f8_e8m0, f8_e4m3fnuz and
     * f8_e5m2fnuz, the others for future types. Tenon uses no number from 48 to 63: they are for
     * programs and plugins that mark data of their own. An element of a view has at least 8 bits:
     * values of fewer bits are packed in tensors of uint8, which only operators take that say so
     * (docs/abi.md, Packed values). */
    TN_DTYPE_COUNT,
    TN_DTYPE_PRIVATE = 48,
    TN_DTYPE_AUTO = 255 /* as an argument: the default dtype, or the dtype of the input */
};

/* A mask of dtypes is a uint64_t with bit TN_BIT(dtype) for each dtype. */
#define TN_BIT(dtype) (UINT64_C(1) << (dtype))
#define TN_MASK_FLOAT (TN_BIT(TN_F16) | TN_BIT(TN_BF16) | TN_BIT(TN_F32) | TN_BIT(TN_F64))
#define TN_MASK_COMPLEX (TN_BIT(TN_C64) | TN_BIT(TN_C128))
#define TN_MASK_INT                                                                                \
    (TN_BIT(TN_U8) | TN_BIT(TN_I8) | TN_BIT(TN_I16) | TN_BIT(TN_I32) | TN_BIT(TN_I64))
#define TN_MASK_ARITH (TN_MASK_FLOAT | TN_MASK_COMPLEX | TN_MASK_INT)
#define TN_MASK_ALL (TN_BIT(TN_DTYPE_COUNT) - 1)

/* Returns the name of a dtype in PyTorch and NumPy, such as "float32"; "?" if the dtype is unknown.
 * [static] */
TN_API const char *tn_dtype_name(tn_dtype dtype);
/* Stores the dtype with this name ("float32", "f32", "float") in `out`. For an unknown name fails
 * with TN_ERR_VALUE and a list of the names. */
TN_API tn_status tn_dtype_parse(const char *name, tn_dtype *out);
/* Returns the size of one element in bytes. */
TN_API size_t tn_dtype_size(tn_dtype dtype);
/* Returns the dtype of the result of arithmetic between two dtypes, by PyTorch's rules of
 * promotion. A storage-only dtype can be combined only with itself; otherwise returns TN_DTYPE_AUTO
 * and records a failure. */
TN_API tn_dtype tn_dtype_promote(tn_dtype a, tn_dtype b);

/* ---- the view, which is DLPack's DLTensor ---------------------------------------------------- */

#define TN_MAX_DIMS 16

/* Has the same binary layout as DLPack's DLTensor. Kernels receive tensors in this form, and
 * tensors are exchanged with PyTorch, NumPy, JAX and CuPy in this form. `data` is the memory handle
 * of the device: a pointer on devices of the host, a cl_mem with OpenCL. The first element is
 * `byte_offset` bytes after the start of `data`. */
typedef struct tn_view {
    void *data;
    struct {
        int32_t type; /* DLDeviceType, or TN_DEVICE_TYPE_FIRST + n without a DLPack number */
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

/* A flag of tn_meta: `strides` is set. Without this flag the tensor is row-major. */
enum { TN_META_STRIDED = 1 };
/* The dtype, shape and strides of a tensor without its data, as inference returns them. Strides are
 * in elements. The layout (280 bytes) never changes, because the struct is passed in arrays; only
 * `flags` and `reserved` can still get new meanings. */
typedef struct tn_meta {
    tn_dtype dtype;
    int32_t ndim;
    uint32_t flags;
    uint32_t reserved;
    int64_t offset; /* of a view: elements from the start of the storage */
    int64_t shape[TN_MAX_DIMS];
    int64_t strides[TN_MAX_DIMS];
} tn_meta;

/* Returns the dtype of a view; TN_DTYPE_AUTO if Tenon has no such dtype. */
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

/* Returns the device with this name, such as "cpu" or "cuda:1". Activates the plugin that provides
 * it. If the device is unavailable, the error message includes the result of loading that plugin.
 * [static] */
TN_API const tn_device *tn_device_find(const char *name);

/* tn_device_name returns the name of a device, always with an index ("cpu:0"), tn_device_type its
 * type ("cpu") and tn_device_index its index (0). For NULL they return "?", "?" and -1, so that
 * messages can use them. [static] [null-ok: device] */
TN_API const char *tn_device_name(const tn_device *device);
TN_API const char *tn_device_type(const tn_device *device);
TN_API int32_t tn_device_index(const tn_device *device);

/* tn_device_is_host returns whether the host can read and write the memory of tensors on the device
 * directly, with tn_tensor_data. tn_device_has_memory returns whether the device has memory at all
 * (`meta` has none). Both return false for NULL. [null-ok: device] */
TN_API bool tn_device_is_host(const tn_device *device);
TN_API bool tn_device_has_memory(const tn_device *device);

/* Waits until all work queued on the device is done. Returns the first failure of that work. */
TN_API tn_status tn_device_sync(const tn_device *device);

/* Returns the device on which this thread creates new tensors: the device of the innermost
 * tn_device_begin of this thread, or else of tn_set_default_device, or else of TENON_DEVICE, or
 * else cpu. Returns NULL and records a failure if that device is unavailable. [static] */
TN_API const tn_device *tn_default_device(void);

/* Sets the device on which the process creates new tensors: one name, or a list of names of which
 * the first available one is used, as in TENON_DEVICE: "cuda,cpu". */
TN_API tn_status tn_set_default_device(const char *names);

/* Sets the device on which this thread creates new tensors, until the matching tn_device_end. NULL
 * keeps the current device. If tn_device_begin fails (out of memory), the previous device stays in
 * use, and tn_device_end must still be called. [null-ok: device] */
TN_API tn_status tn_device_begin(const tn_device *device);
TN_API void tn_device_end(void);

/* Activates every backend and returns the number of devices, for listing them. */
TN_API int64_t tn_device_count(void);
/* Returns device `index`. [static] */
TN_API const tn_device *tn_device_at(int64_t index);

/* Returns whether kernels and copies of `device` can access the memory of `other` without the
 * host. */
TN_API bool tn_device_reaches(const tn_device *device, const tn_device *other);

/* Statistics of the core's allocator for one device, in bytes unless noted. The layout (96 bytes)
 * never changes. */
typedef struct tn_memory_stats {
    int64_t live;          /* used by tensors */
    int64_t cached;        /* free, and kept for later tensors */
    int64_t peak;          /* the largest value of `live` since the last tn_device_reset_peak */
    int64_t live_blocks;   /* number of blocks used by tensors */
    int64_t device_allocs; /* number of allocations from the device */
    int64_t requests;      /* number of allocations for tensors */
    int64_t trims;         /* number of times that memory ran out and the cached memory was freed */
    /* Data that kernels hold for prepared calls (tn_op_prepare) and for weights that calls repeat
     * (tn_kernel_def.prepare_key); not part of the numbers above. */
    int64_t prepared;
    int64_t reserved[4];
} tn_memory_stats;

/* Copies the memory statistics of the device to `out`. */
TN_API tn_status tn_device_memory(const tn_device *device, tn_memory_stats *out);
/* Sets `peak` of the statistics to the current value of `live`. */
TN_API tn_status tn_device_reset_peak(const tn_device *device);
/* Frees the memory that the allocator keeps for later tensors. */
TN_API tn_status tn_device_trim(const tn_device *device);

/* tn_default_dtype returns the dtype that new floating tensors have by default;
 * tn_set_default_dtype sets it for the process. It is float32 initially. */
TN_API tn_dtype tn_default_dtype(void);
TN_API tn_status tn_set_default_dtype(tn_dtype dtype);
/* Sets the default dtype of this thread until the matching tn_dtype_end. Complex dtypes are
 * accepted here too. TN_DTYPE_AUTO, and any dtype that is not floating or complex, leave the
 * default unchanged. */
TN_API tn_status tn_dtype_begin(tn_dtype dtype);
TN_API void tn_dtype_end(void);

/* ---- streams and events ---------------------------------------------------------------------- */

/* A stream is a queue of work of one device; the work runs in order. Each device has a default
 * stream. Between tn_stream_begin and tn_stream_end a thread uses another stream. An event marks a
 * position in a stream. */
typedef struct tn_stream tn_stream;
typedef struct tn_event tn_event;

/* Arguments of tn_stream_new. */
typedef struct tn_stream_args {
    tn_head head;
    int32_t priority; /* a lower number is served first; tn_device_info has the range */
    uint32_t reserved;
    /* Native handle of a stream that the program owns, which is then used and not destroyed. NULL:
     * a new stream is created. */
    void *external;
} tn_stream_args;

enum {
    TN_EVENT_TIMING = 1 /* the event can be used in tn_event_elapsed */
};

/* Arguments of tn_event_new. */
typedef struct tn_event_args {
    tn_head head;
    uint32_t flags; /* TN_EVENT_TIMING */
    uint32_t reserved;
    /* Native handle of an event that the program owns and has recorded, which is then used and not
     * destroyed. */
    void *external;
} tn_event_args;

/* Creates a stream of the device. NULL args: a stream of priority 0. Fails if the priority is
 * outside of the device's range, or if `external` is set and the device accepts no external
 * streams. [owned] [null-ok: args] */
TN_API tn_stream *tn_stream_new(const tn_device *device, const tn_stream_args *args);
/* Waits for the work of the stream, then frees the stream. [null-ok: stream] */
TN_API void tn_stream_drop(tn_stream *stream);
/* Makes `stream` the current stream of this thread on its device until the matching tn_stream_end.
 * If tn_stream_begin fails, the previous stream stays in use, and tn_stream_end must still be
 * called. */
TN_API tn_status tn_stream_begin(tn_stream *stream);
TN_API void tn_stream_end(void);
/* Waits until the work of the stream is done. Returns the first failure of that work. */
TN_API tn_status tn_stream_sync(tn_stream *stream);
/* Returns the current stream of this thread on the device: the stream in which this thread queues
 * its work. [borrowed] */
TN_API tn_stream *tn_stream_current(const tn_device *device);
/* Returns the native handle of a stream, such as a CUstream, for other libraries; NULL if the
 * device has none. [borrowed] */
TN_API void *tn_stream_native(tn_stream *stream);
/* Records an event at the current end of a stream; NULL: the current stream of this thread on the
 * device. `flags` is 0 or TN_EVENT_TIMING. [owned] [null-ok: stream] */
TN_API tn_event *tn_event_record(const tn_device *device, tn_stream *stream, uint32_t flags);
/* Returns the milliseconds between two events of the same device that were recorded with
 * TN_EVENT_TIMING. Waits for both. Returns NaN and records a failure for other events. */
TN_API double tn_event_elapsed(tn_event *from, tn_event *to);
/* Makes all later work of the stream wait for the event. The host does not wait.
 * [null-ok: stream] */
TN_API tn_status tn_event_wait(tn_event *event, tn_stream *stream);
/* tn_event_done returns whether the work before the event is done. tn_event_sync waits until it
 * is. */
TN_API bool tn_event_done(tn_event *event);
TN_API tn_status tn_event_sync(tn_event *event);
/* Frees an event. [null-ok: event] */
TN_API void tn_event_drop(tn_event *event);

/* ---- scopes ---------------------------------------------------------------------------------- */

/* tn_scope_begin opens a scope of this thread and returns its number. tn_scope_end first ends the
 * scopes that were opened after it, then drops all tensors that the scope owns. When out of memory,
 * tn_scope_begin returns 0 and records a failure; the enclosing scope then owns new tensors, and
 * tn_scope_end(0) does nothing. */
TN_API uint64_t tn_scope_begin(void);
TN_API void tn_scope_end(uint64_t scope);
/* Ends a scope, but moves `count` of its tensors to the enclosing scope. TN_NONE and NULL are
 * skipped. [array: tensors count] */
TN_API void tn_scope_end_with(uint64_t scope, tn_tensor *const *tensors, int64_t count);

#if defined(__GNUC__) || defined(__clang__)
TN_ATTR(unused) static inline void tn_scope_end_at(uint64_t *scope)
{
    tn_scope_end(*scope);
}
#define TN_PASTE_(a, b) a##b
#define TN_PASTE(a, b) TN_PASTE_(a, b)
/* A declaration that opens a scope. The scope ends with the block, however the block is left.
 * Variables that hooks or release functions use at that time must be declared before it. */
#define TN_SCOPE                                                                                   \
    uint64_t TN_PASTE(tn_scope_here_, __LINE__)                                                    \
        __attribute__((cleanup(tn_scope_end_at), unused)) = tn_scope_begin()
#endif

/* ---- tensors --------------------------------------------------------------------------------- */

/* Takes the place of an absent optional tensor. NULL, in contrast, always means an earlier
 * error. */
#define TN_NONE ((tn_tensor *)(uintptr_t)16)

/* Adds a reference for the caller and returns the tensor. [owned] [null-through] */
TN_API tn_tensor *tn_tensor_keep(tn_tensor *tensor);
/* Drops a reference of the caller. [null-ok: tensor] */
TN_API void tn_tensor_drop(tn_tensor *tensor);
#define tn_keep(tensor) tn_tensor_keep(tensor)
/* Moves one reference from the caller to the innermost scope. Returns the tensor. [scoped]
 * [null-through] [taken: tensor] */
TN_API tn_tensor *tn_tensor_to_scope(tn_tensor *tensor);

/* Creates a tensor whose values are undefined. NULL device: the default device; TN_DTYPE_AUTO: the
 * default dtype. Fails if a size is negative or the number of elements overflows. [scoped]
 * [null-ok: device] */
TN_API tn_tensor *tn_tensor_empty(tn_ints shape, tn_dtype dtype, const tn_device *device);
/* Like tn_tensor_empty, with strides that the caller chooses. Strides must not be negative, and two
 * elements must not share memory unless a stride is 0. [scoped] [null-ok: device] */
TN_API tn_tensor *tn_tensor_empty_strided(tn_ints shape, tn_ints strides, tn_dtype dtype,
                                          const tn_device *device);
/* Creates a tensor on the default device with a copy of the contiguous array `data`, which may be
 * freed afterwards. [scoped] */
TN_API tn_tensor *tn_tensor_from(const void *data, tn_dtype dtype, tn_ints shape);
/* Creates a tensor in which every element has the value `value`. [scoped] [null-ok: device] */
TN_API tn_tensor *tn_tensor_full(tn_ints shape, tn_scalar value, tn_dtype dtype,
                                 const tn_device *device);
#ifndef __cplusplus /* C++ converts numbers to tn_scalar itself */
/* Lets `value` be any number in C. A shape written as a literal (tn_ints){ at, count } contains a
 * comma, so the macro has a variant with five arguments. */
#define tn_tensor_full(...) TN__FULL(__VA_ARGS__, TN__FULL_5, TN__FULL_4, 0)(__VA_ARGS__)
#define TN__FULL(a, b, c, d, e, macro, ...) macro
#define TN__FULL_4(shape, value, dtype, device)                                                    \
    tn_tensor_full(shape, TN_SCALAR(value), dtype, device)
#define TN__FULL_5(at, count, value, dtype, device)                                                \
    tn_tensor_full(at, count, TN_SCALAR(value), dtype, device)
#endif
/* Creates a tensor that uses memory of the program, on a device of the host (NULL: cpu). NULL
 * strides: contiguous. `release` is called once, when no tensor uses the memory any more. [scoped]
 * [null-ok: release, user, device, strides] */
TN_API tn_tensor *tn_tensor_wrap(void *data, tn_dtype dtype, tn_ints shape, const int64_t *strides,
                                 const tn_device *device, void (*release)(void *user, void *data),
                                 void *user);
/* Creates another view of the storage of `tensor`. `offset` is the number of elements from the
 * start of the storage. Gradients do not flow through this view; the operators reshape, permute,
 * select and others like them make views that are differentiable. [scoped] [null-through] */
TN_API tn_tensor *tn_tensor_as_strided(tn_tensor *tensor, tn_ints shape, tn_ints strides,
                                       int64_t offset);

/* Kinds of memory. tn_device_info.memory_kinds says which of them a device has. */
typedef uint32_t tn_memory_kind;
enum {
    TN_MEMORY_DEVICE = 0, /* ordinary memory of the device */
    /* Memory of the host that all devices of the type can read and write directly. A tensor in it
     * is on the device cpu. */
    TN_MEMORY_PINNED = 1,
    TN_MEMORY_MANAGED = 2, /* memory that host and device both use, at the same address */
    TN_MEMORY_SHARED = 3   /* memory of the device that other processes can open */
};
#define TN_MEMORY_BIT(kind) (UINT64_C(1) << (kind))

/* tn_tensor_empty_in creates a tensor in memory of a kind, whose values are undefined. PINNED: the
 * tensor is on the host (on the device of type cpu), for tn_tensor_copy_async to and from `device`;
 * ordinary memory of the host if the device has no pinned memory, because only speed depends on it.
 * MANAGED: tn_tensor_data gives the host a pointer, whatever the device. SHARED: for
 * tn_tensor_share. Fails with TN_ERR_NOT_IMPLEMENTED if the device has no memory of this kind.
 * tn_tensor_memory_kind returns the kind of a tensor's memory. [scoped] [null-ok: device] */
TN_API tn_tensor *tn_tensor_empty_in(tn_ints shape, tn_dtype dtype, const tn_device *device,
                                     tn_memory_kind kind);
TN_API tn_memory_kind tn_tensor_memory_kind(const tn_tensor *tensor);

/* Returns the dtype of the elements. */
TN_API tn_dtype tn_tensor_dtype(const tn_tensor *tensor);
/* Returns the device of a tensor. [static] */
TN_API const tn_device *tn_tensor_device(const tn_tensor *tensor);
/* Returns the number of dimensions. */
TN_API int32_t tn_tensor_ndim(const tn_tensor *tensor);
/* Returns the size of dimension `dim`; a negative `dim` counts from the end. Returns -1 and records
 * a failure if `dim` is out of range. */
TN_API int64_t tn_tensor_size(const tn_tensor *tensor, int64_t dim);
/* tn_tensor_shape returns the shape, tn_tensor_strides the strides in elements. [borrowed] */
TN_API tn_ints tn_tensor_shape(const tn_tensor *tensor);
TN_API tn_ints tn_tensor_strides(const tn_tensor *tensor);
/* Returns the number of elements. */
TN_API int64_t tn_tensor_numel(const tn_tensor *tensor);
/* Returns the number of elements from the start of the storage to the first element of the
 * tensor. */
TN_API int64_t tn_tensor_offset(const tn_tensor *tensor);
TN_API bool tn_tensor_is_contiguous(const tn_tensor *tensor);
/* Returns whether two tensors share the same storage. */
TN_API bool tn_tensor_shares_storage(const tn_tensor *a, const tn_tensor *b);
/* tn_tensor_storage_size returns the size of the whole storage in bytes. tn_tensor_version returns
 * how often operators have written to the storage; for an inference tensor it returns 0 and records
 * a failure. */
TN_API size_t tn_tensor_storage_size(const tn_tensor *tensor);
TN_API uint64_t tn_tensor_version(const tn_tensor *tensor);
/* Returns whether the memory of the tensor is shared with processes that this process forks
 * (tn_module_share_memory). */
TN_API bool tn_tensor_is_shared(const tn_tensor *tensor);
/* Increases the version of the storage. To be called after other code than operators has written to
 * the memory. By calling it, a program promises to call it after each such write: kernels may again
 * keep data that they prepare from the memory (tn_kernel_def.prepare_key), as they do not after
 * tn_tensor_data. */
TN_API tn_status tn_tensor_touch(tn_tensor *tensor);
/* Returns the view of the tensor that kernels receive. It is valid as long as the tensor.
 * [borrowed] */
TN_API const tn_view *tn_tensor_view(const tn_tensor *tensor);
/* Returns a pointer to the first element of a tensor in memory that the host can use, after waiting
 * for queued work on it. For other memory returns NULL and records a failure, whose message says to
 * copy the tensor. [borrowed] */
TN_API void *tn_tensor_data(tn_tensor *tensor);

/* tn_tensor_copy_out copies all elements to host memory, tn_tensor_copy_in from host memory, in
 * row-major order of the shape, whatever the strides are. `bytes` must be exactly the size of all
 * elements. Both return when the copy is done. [array: data bytes] */
TN_API tn_status tn_tensor_copy_out(const tn_tensor *tensor, void *data, size_t bytes);
TN_API tn_status tn_tensor_copy_in(tn_tensor *tensor, const void *data, size_t bytes);

/* Copies a tensor to another tensor of the same shape, as the operator `copy` does, but without
 * gradients. A copy between a device and pinned memory of the host, of contiguous tensors of one
 * dtype, may still be running when the function returns. The tensor on the host may then be used
 * when the work queued so far on the current stream of the device is done (tn_stream_sync, an
 * event); tn_tensor_data waits for this work. All other copies behave like `copy`. */
TN_API tn_status tn_tensor_copy_async(tn_tensor *to, const tn_tensor *from);

/* Returns the value of a tensor with one element. Returns NaN and records a failure if the tensor
 * has another number of elements, or if a double cannot hold the value exactly (use
 * tn_tensor_scalar). Waits for queued work. */
TN_API double tn_tensor_item(tn_tensor *tensor);
#define tn_item(tensor) tn_tensor_item(tensor)

/* Exchanges the contents of two tensors: storage, shape, dtype and device. The tensor objects,
 * their requires_grad and the references to them stay. A tensor that has a gradient may only
 * receive contents of the same shape. For conversions of modules. */
TN_API tn_status tn_tensor_swap(tn_tensor *a, tn_tensor *b);

/* ---- DLPack ---------------------------------------------------------------------------------- */

/* The binary layout of DLPack 1.0's DLManagedTensor, declared here because the DLPack headers of
 * some systems are older. Any thread may call `deleter`, once. */
typedef struct tn_dlpack {
    tn_view tensor;
    void *manager_ctx;
    void (*deleter)(struct tn_dlpack *self);
} tn_dlpack;
/* The binary layout of DLPack 1.0's DLManagedTensorVersioned. Any thread may call `deleter`,
 * once. */
typedef struct tn_dlpack_versioned {
    struct {
        uint32_t major;
        uint32_t minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct tn_dlpack_versioned *self);
    uint64_t flags; /* 1: the tensor is read-only, 2: a copy was made */
    tn_view tensor;
} tn_dlpack_versioned;

/* Exports a tensor without copying it. The consumer must call `deleter` once. `stream` is the
 * stream of the consumer, as the native handle of the device: later work in it comes after Tenon's
 * work on the tensor. The function itself waits for that work, unless `stream` is the stream that
 * has it queued. Fails if the device has no DLPack number, or if the tensor is read-only (use
 * tn_tensor_to_dlpack_versioned). [owned] [null-ok: stream] */
TN_API tn_dlpack *tn_tensor_to_dlpack(tn_tensor *tensor, void *stream);
TN_API tn_dlpack_versioned *tn_tensor_to_dlpack_versioned(tn_tensor *tensor, void *stream);
/* Imports a tensor without copying it. Tenon calls `deleter` when the tensor is freed; if the
 * import fails, the caller must call it. Operators refuse to write to a tensor that was imported as
 * read-only. [scoped] [taken: managed] */
TN_API tn_tensor *tn_tensor_from_dlpack(tn_dlpack *managed);
TN_API tn_tensor *tn_tensor_from_dlpack_versioned(tn_dlpack_versioned *managed);

/* ---- random numbers -------------------------------------------------------------------------- */

/* Sets the seed of the random number generator. There is one counter-based generator (Philox
 * 4x32-10) for all devices: a seed, and a counter of blocks of four 32-bit words. An operator that
 * draws numbers for n elements reserves a range of blocks with tn_random_take. */
TN_API void tn_random_seed(uint64_t seed);
/* Reserves the blocks for `count` elements with `words` (1, 2 or 4) 32-bit words each. Stores the
 * seed and the number of the first block. Fails only when out of memory while reading TENON_SEED.
 * [null-ok: seed, block] */
TN_API tn_status tn_random_take(uint64_t count, uint32_t words, uint64_t *seed, uint64_t *block);
/* tn_random_get_state stores the state of the generator and tn_random_set_state restores it:
 * state[0] is the seed, state[1] the next block, state[2] the lane, as in the tensor `state` of the
 * operators philox_uniform and others. The lane of this generator is 0; tn_random_set_state refuses
 * other values. */
TN_API tn_status tn_random_get_state(uint64_t state[3]);
TN_API tn_status tn_random_set_state(const uint64_t state[3]);

/* ---- tensors over a storage of another dtype ------------------------------------------------- */

/* Creates a tensor that uses the storage of `tensor` with another dtype. `offset` and the strides
 * (NULL: row-major) count elements of that dtype, `offset` from the start of the storage. Gradients
 * do not flow through it. [scoped] [null-through] [null-ok: strides] */
TN_API tn_tensor *tn_tensor_over(tn_tensor *tensor, tn_dtype dtype, tn_ints shape,
                                 const int64_t *strides, int64_t offset);

/* ---- captures: recorded work of a stream ----------------------------------------------------- */

/* Recorded work of a stream, which can be launched any number of times without the host preparing
 * each operator again. The record refers to fixed memory: each launch reads the current values of
 * the input tensors (copy new values into them) and writes to the tensors that the recorded calls
 * returned. The record owns all memory that it uses until it is dropped. Memory that was freed
 * during the capture is only reused within the same capture. */
typedef struct tn_device_graph tn_device_graph;

/* Starts recording: from now on, work that this thread queues on `stream` (after tn_stream_begin)
 * is recorded instead of run. First waits for earlier work of the stream. Until the end of the
 * capture, kernels without TN_KERNEL_CAPTURE_SAFE, everything that waits for the device or reads
 * from it (tn_item, copies to and from the host, events) and random numbers fail with an error that
 * names the operation; the first failure ends the recording. Work on other streams and devices runs
 * at once and is not recorded. The default stream cannot record. Fails with TN_ERR_NOT_IMPLEMENTED
 * if the device cannot record work. */
TN_API tn_status tn_stream_capture_begin(tn_stream *stream);
/* Ends the recording and returns the recorded work. Must be called by the thread that started the
 * recording. If an operation failed in between, returns NULL and that failure. [owned] */
TN_API tn_device_graph *tn_stream_capture_end(tn_stream *stream);
/* Queues the recorded work once in a stream (NULL: the current stream), which may be another one
 * than the recorded stream. Launches of one graph run one after the other. [null-ok: stream] */
TN_API tn_status tn_device_graph_launch(tn_device_graph *graph, tn_stream *stream);
/* Waits for the launches of the graph, then frees it. [null-ok: graph] */
TN_API void tn_device_graph_drop(tn_device_graph *graph);

/* ---- exact value of a tensor with one element ------------------------------------------------ */

/* Stores the value of a tensor with one element in *out, exactly: kind BOOL, INT, FLOAT or COMPLEX,
 * and UINT for uint64 values above 2^63 - 1. Waits for queued work. On failure *out is of kind
 * NONE. */
TN_API tn_status tn_tensor_scalar(tn_tensor *tensor, tn_scalar *out);

/* ---- events of the program ------------------------------------------------------------------- */

/* Creates an event from one that the program or another library has recorded (args->external, such
 * as a CUevent), so that streams of Tenon can wait for it. The program must not destroy its event
 * before this one is dropped. tn_event_record makes events of Tenon. Fails with
 * TN_ERR_NOT_IMPLEMENTED if the device does not accept events of the program. [owned] */
TN_API tn_event *tn_event_new(const tn_device *device, const tn_event_args *args);
/* Returns the native handle of an event, such as a CUevent, for other libraries to wait for; NULL
 * if the device has none. [borrowed] */
TN_API void *tn_event_native(tn_event *event);

/* ---- memory shared between processes --------------------------------------------------------- */

enum {
    TN_SHARE_FD = 1 /* also opens a file descriptor of the memory, which the caller must close */
};

/* What another process needs to open the memory of a tensor: plain bytes, to be sent by any means.
 * The layout never changes. */
typedef struct tn_shared {
    char type[32]; /* type and index of the device */
    int32_t index;
    /* -1, or a file descriptor of the memory in this process. A receiver may use one that was sent
     * over a socket instead of the handle, and must write its own number or -1 here. */
    int32_t fd;
    uint64_t bytes;           /* the size of the whole memory */
    uint64_t offset;          /* of the tensor's first element, in bytes */
    unsigned char handle[64]; /* of the backend */
    uint64_t reserved[2];     /* 0 */
} tn_shared;

/* Describes the memory of a tensor of kind TN_MEMORY_SHARED for another process, after waiting for
 * the work on it. `flags`: TN_SHARE_FD. The tensor must live until the other process has opened the
 * memory; docs/plugins/backends.md says which devices need it longer. Fails with
 * TN_ERR_NOT_IMPLEMENTED if TN_SHARE_FD is given and the device has no file descriptors. */
TN_API tn_status tn_tensor_share(tn_tensor *tensor, uint32_t flags, tn_shared *out);
/* Creates a contiguous tensor over memory that another process has shared. NULL device: the device
 * that `shared` names. Fails if the memory no longer exists or is too small. Nothing orders the
 * accesses of the processes: they must agree on that. [scoped] [null-ok: device] */
TN_API tn_tensor *tn_tensor_open_shared(const tn_shared *shared, tn_ints shape, tn_dtype dtype,
                                        const tn_device *device);

TN_END_DECLS
#endif
