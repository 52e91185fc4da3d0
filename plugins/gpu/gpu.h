/* SPDX-License-Identifier: MIT
 *
 * The code that the backends for OpenCL and CUDA share: the host side of the operators, which
 * turns a tn_call into the arguments of a kernel. These files are compiled into each of the two
 * backends. They use a device only through a few functions, declared below, that each backend
 * defines. */
#ifndef TN_GPU_GPU_H
#define TN_GPU_GPU_H

#include <tenon/plugin.h>

typedef int32_t i32;
typedef int64_t i64;
#include "kernels/base/layout.cl"

/* ---- kernels on the device ------------------------------------------------------------------- */

/* How gpu_launch() divides its `x` units of work among work items. */
enum gpu_shape {
    GPU_ITEMS,  /* one work item for each unit, in groups of 256 */
    GPU_GROUPS, /* one group of 256 work items for each unit */
    GPU_TILES   /* one group of 16 x 16 work items for each unit */
};

/* The kernel texts, which are the files in kernels/. The OpenCL backend compiles one program per
 * text and dtype, the CUDA backend has one module per text. */
/* clang-format off */
#define GPU_TEXTS(X) \
    X(activation) X(arithmetic) X(compare) X(copy) X(creation) X(index) X(loss) X(matmul) \
    X(random) X(reduction) X(scan) X(softmax) X(sort) X(unary)
/* clang-format on */
#define GPU_TEXT_NAME_(name) GPU_TEXT_##name,
enum gpu_text { GPU_TEXTS(GPU_TEXT_NAME_) GPU_TEXT_COUNT };

#define GPU_KERNEL(name, text, shape) GPU_##name,
enum gpu_kernel {
#include "kernel_names.h"
    GPU_KERNEL_COUNT
};

typedef struct gpu_kernel_row {
    const char *name;
    int32_t text;  /* enum gpu_text */
    int32_t shape; /* enum gpu_shape */
} gpu_kernel_row;

extern const gpu_kernel_row gpu_kernel_rows[GPU_KERNEL_COUNT];
/* Returns the name of a dtype as it is used in names of kernels, such as "f32". */
const char *gpu_type_name(tn_dtype dtype);
/* Writes the name of a kernel on the device, such as "tn_add_f32", to `out`. */
void gpu_kernel_text(char *out, size_t size, enum gpu_kernel kernel, tn_dtype type);

/* An argument of a kernel: the address and size of its value. The value for device memory is a
 * handle of sizeof(void *) bytes. */
typedef struct gpu_arg {
    const void *at;
    size_t size;
} gpu_arg;
#define GPU_ARG(value)                                                                             \
    {                                                                                              \
        &(value), sizeof(value)                                                                    \
    }

/* ---- functions that a backend defines -------------------------------------------------------- */

/* Starts a kernel on the call's stream for x work items, groups or tiles, as the kernel's gpu_shape
 * says, repeated z times (at most 65535) in the third dimension. Does nothing if x or z is zero. */
tn_status gpu_launch(const tn_call *call, enum gpu_kernel kernel, tn_dtype type, int64_t x,
                     int64_t z, const gpu_arg *args, int32_t count);
/* Enqueues a copy from one memory of the device to another on the call's stream. */
tn_status gpu_copy_bytes(const tn_call *call, void *to, uint64_t to_offset, void *from,
                         uint64_t from_offset, size_t bytes);
/* Copies bytes to host memory `to`, after all work that is already in the call's stream. Returns
 * when the bytes are there. */
tn_status gpu_read_bytes(const tn_call *call, void *to, void *from, uint64_t offset, size_t bytes);
/* Returns the device memory of the stream's gpu_error, as an argument for a kernel that can record
 * an error. The next synchronization of the stream, or the next copy to the host that waits, reads
 * that memory and returns the error. */
void *gpu_error_memory(const tn_call *call);
/* Checks whether the device can compute in this dtype; if not, writes the reason. */
bool gpu_device_supports(const tn_call *call, tn_dtype dtype, char *reason, size_t size);

/* ---- views ----------------------------------------------------------------------------------- */

/* Number of elements. */
int64_t gpu_count(const tn_view *view);
/* Bytes of one element. */
int64_t gpu_item_size(const tn_view *view);
/* Offset of the view's first element from the start of its memory, in elements. */
int64_t gpu_offset(const tn_view *view);
/* Returns whether the view is contiguous in row-major order. */
bool gpu_dense(const tn_view *view);
/* Fills *walk for a loop over the shape of views[0]; the other views are broadcast to it.
 * Dimensions of size 1 are dropped, and neighbouring dimensions are merged if the strides of all
 * views allow it. */
void gpu_walk_make(gpu_walk *walk, const tn_view *const *views, int32_t count);
void gpu_walk4_make(gpu_walk4 *walk, const tn_view *const views[4]);
/* Fills *rows for a loop over the rows along dimension `dim`; all views have the same shape. Fails
 * if `dim` is out of range. Views without dimensions have one row of one element, for any `dim`. */
tn_status gpu_rows_make(gpu_rows *rows, const tn_view *const *views, int32_t count, int64_t dim);
/* A number in the type C in which kernels compute (see kernels/base/types.cl). gpu_scalar_arg()
 * converts `value` to that type for elements of type `dtype`, stores it in *scalar, which must live
 * until the launch, and returns it as a kernel argument. */
typedef union gpu_scalar {
    float f;
    double d;
    int32_t i;
    int64_t l;
} gpu_scalar;
gpu_arg gpu_scalar_arg(gpu_scalar *scalar, tn_dtype dtype, tn_scalar value);
/* Returns the dtype for which kernels that only move elements of this size are compiled: an
 * unsigned integer for 1 to 8 bytes, complex128 for 16 bytes. */
tn_dtype gpu_as_bits(const tn_view *view);
/* Converts a number to an element of `dtype` and writes the bits of that element. */
void gpu_bits(tn_dtype dtype, tn_scalar value, uint64_t bits[2]);
/* Sets the error that a kernel has recorded in a stream's gpu_error, and returns its status. */
tn_status gpu_error_fail(const gpu_error *error, const char *device);

/* ---- operators ------------------------------------------------------------------------------- */

/* Copies `from` to `to` with conversion of the dtype, for any strides; `from` is broadcast. */
tn_status gpu_copy_view(const tn_call *call, const tn_view *to, const tn_view *from);
tn_status gpu_fill_view(const tn_call *call, const tn_view *to, tn_scalar value);
/* Fails if an input and the result have different dtypes. */
tn_status gpu_same_types(const tn_call *call);
/* Runs the elementwise kernel of the call's row in the kernel table, with input `from`. `number` is
 * passed to the kernel as its scalar argument. */
tn_status gpu_run_one(const tn_call *call, const tn_view *from, tn_scalar number);

/* Functions for kernel->supports. */
bool gpu_supports(const tn_call *call, char *reason, size_t size);
bool gpu_supports_copy(const tn_call *call, char *reason, size_t size);
bool gpu_supports_bmm(const tn_call *call, char *reason, size_t size);

#define GPU_MASK_INT                                                                               \
    (TN_BIT(TN_U8) | TN_BIT(TN_I8) | TN_BIT(TN_I16) | TN_BIT(TN_I32) | TN_BIT(TN_I64))
#define GPU_MASK_BOOL TN_BIT(TN_BOOL)
#define GPU_MASK_COPY (TN_MASK_ALL & ~(TN_BIT(TN_F8_E4M3) | TN_BIT(TN_F8_E5M2)))

/* Functions for kernel->run. For the next three, and for gpu_run_div, kernel->user points to the
 * enum gpu_kernel. */
tn_status gpu_run_binary(const tn_call *call);
tn_status gpu_run_unary(const tn_call *call);
tn_status gpu_run_scalar(const tn_call *call);
/* For the next three, kernel->user points to the number of the function, GPU_F_* of layout.cl. */
tn_status gpu_run_map(const tn_call *call);
tn_status gpu_run_zip(const tn_call *call);
tn_status gpu_run_compare(const tn_call *call);
tn_status gpu_run_div(const tn_call *call);
tn_status gpu_run_clamp(const tn_call *call);
tn_status gpu_run_where(const tn_call *call);
tn_status gpu_run_complex(const tn_call *call);
tn_status gpu_run_copy(const tn_call *call);
tn_status gpu_run_fill(const tn_call *call);
tn_status gpu_run_narrow_grad(const tn_call *call);
tn_status gpu_run_sum(const tn_call *call);
tn_status gpu_run_amax(const tn_call *call);
tn_status gpu_run_argmax(const tn_call *call);
tn_status gpu_run_amin(const tn_call *call);
tn_status gpu_run_argmin(const tn_call *call);
tn_status gpu_run_prod(const tn_call *call);
tn_status gpu_run_cumsum(const tn_call *call);
tn_status gpu_run_cumprod(const tn_call *call);
tn_status gpu_run_sort(const tn_call *call);
tn_status gpu_run_arange(const tn_call *call);
tn_status gpu_run_gather(const tn_call *call);
tn_status gpu_run_scatter(const tn_call *call);
tn_status gpu_run_scatter_add(const tn_call *call);
tn_status gpu_run_nonzero(const tn_call *call);
size_t gpu_workspace_nonzero(const tn_call *call);
size_t gpu_workspace_reduce(const tn_call *call);
tn_status gpu_run_bmm(const tn_call *call);
tn_status gpu_run_softmax(const tn_call *call);
tn_status gpu_run_log_softmax(const tn_call *call);
tn_status gpu_run_log_softmax_grad(const tn_call *call);
tn_status gpu_run_nll_loss(const tn_call *call);
tn_status gpu_run_nll_loss_grad(const tn_call *call);
tn_status gpu_run_philox_uniform(const tn_call *call);
tn_status gpu_run_philox_normal(const tn_call *call);

#endif
