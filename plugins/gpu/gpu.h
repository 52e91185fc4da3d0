/* SPDX-License-Identifier: MIT
 *
 * What the backends for OpenCL and CUDA share: the host's side of the operators, from a tn_call
 * to the arguments of a kernel. They use a device through the few functions below, which each
 * backend defines; it compiles these files into itself. */
#ifndef GPU_H
#define GPU_H

#include <tenon/plugin.h>

typedef int32_t i32;
typedef int64_t i64;
#include "kernels/base/layout.cl"

/* ---- kernels on the device ------------------------------------------------------------------- */

/* What the number of a launch counts. */
enum gpu_shape {
    GPU_ITEMS,  /* a work item each, in groups of 256 */
    GPU_GROUPS, /* a group of 256 each */
    GPU_TILES   /* a group of 16 x 16 each */
};

/* The texts in kernels/: one program per text and type on OpenCL, one module per text on CUDA. */
/* clang-format off */
#define GPU_TEXTS(X) \
    X(activation) X(arithmetic) X(compare) X(copy) X(creation) X(index) X(loss) X(matmul) \
    X(random) X(reduction) X(scan) X(softmax) X(sort) X(unary)
/* clang-format on */
#define GPU_TEXT_NAME_(name) GPU_TEXT_##name,
enum gpu_text { GPU_TEXTS(GPU_TEXT_NAME_) GPU_TEXT_COUNT };

#define GPU_KERNEL(name, text, shape) GPU_##name,
enum gpu_kernel {
#include "kernel_list.h"
    GPU_KERNEL_COUNT
};

typedef struct gpu_kernel_row {
    const char *name;
    int32_t text;  /* enum gpu_text */
    int32_t shape; /* enum gpu_shape */
} gpu_kernel_row;

extern const gpu_kernel_row gpu_kernel_rows[GPU_KERNEL_COUNT];
/* "f32": the type in names of kernels. */
const char *gpu_type_name(tn_dtype dtype);
/* Writes "tn_add_f32". */
void gpu_kernel_text(char *out, size_t size, enum gpu_kernel kernel, tn_dtype type);

/* An argument of a kernel: its address and size. Memory is passed as a handle of sizeof(void *)
 * bytes. */
typedef struct gpu_arg {
    const void *at;
    size_t size;
} gpu_arg;
#define GPU_ARG(value)                                                                             \
    {                                                                                              \
        &(value), sizeof(value)                                                                    \
    }

/* ---- what a backend defines ------------------------------------------------------------------ */

/* Starts a kernel on the call's stream over x items, groups or tiles, z times (at most 65535).
 * Does nothing when one of them is zero. */
tn_status gpu_launch(const tn_call *call, enum gpu_kernel kernel, tn_dtype type, int64_t x,
                     int64_t z, const gpu_arg *args, int32_t count);
/* Copies bytes inside the device, in stream order. */
tn_status gpu_copy_bytes(const tn_call *call, void *to, uint64_t to_offset, void *from,
                         uint64_t from_offset, size_t bytes);
/* Copies bytes to the host after all work of the stream, and waits for them. */
tn_status gpu_read_bytes(const tn_call *call, void *to, void *from, uint64_t offset, size_t bytes);
/* The handle of the stream's gpu_error, for a kernel that is started next and may write to it. */
void *gpu_error_memory(const tn_call *call);
/* Whether the device computes in this type; if not, writes why. */
bool gpu_device_supports(const tn_call *call, tn_dtype dtype, char *reason, size_t size);

/* ---- views ----------------------------------------------------------------------------------- */

int64_t gpu_count(const tn_view *view);
/* Bytes of an element. */
int64_t gpu_item_size(const tn_view *view);
/* Elements from the start of the memory to the first one. */
int64_t gpu_offset(const tn_view *view);
bool gpu_dense(const tn_view *view);
/* A loop over views[0]'s shape, to which the others broadcast. Dimensions of size 1 are dropped,
 * contiguous ones are merged. */
void gpu_walk_make(gpu_walk *walk, const tn_view *const *views, int32_t count);
void gpu_walk4_make(gpu_walk4 *walk, const tn_view *const views[4]);
/* Rows along `dim` of views of one shape. */
tn_status gpu_rows_make(gpu_rows *rows, const tn_view *const *views, int32_t count, int64_t dim);
/* A number as kernels of this type take it. */
typedef union gpu_scalar {
    float f;
    double d;
    int32_t i;
    int64_t l;
} gpu_scalar;
gpu_arg gpu_scalar_arg(gpu_scalar *scalar, tn_dtype dtype, tn_scalar value);
/* The type of elements of this size for kernels that only move them: an unsigned integer, or
 * c128. */
tn_dtype gpu_as_bits(const tn_view *view);
/* The bits of a number stored as `dtype`, in words of 64 bits. */
void gpu_bits(tn_dtype dtype, tn_scalar value, uint64_t bits[2]);
/* Fails with the message for the error record of a stream. */
tn_status gpu_error_fail(const gpu_error *error, const char *device);

/* ---- operators ------------------------------------------------------------------------------- */

/* y = x with conversion, any strides, x broadcasting to y. */
tn_status gpu_copy_view(const tn_call *call, const tn_view *to, const tn_view *from);
tn_status gpu_fill_view(const tn_call *call, const tn_view *to, tn_scalar value);
/* Fails where an input and the result have different types. */
tn_status gpu_same_types(const tn_call *call);
/* Runs the kernel that the row of the call names: from `from` to the result. */
tn_status gpu_run_one(const tn_call *call, const tn_view *from, tn_scalar number);

/* kernel->supports of all operators below. */
bool gpu_supports(const tn_call *call, char *reason, size_t size);
bool gpu_supports_copy(const tn_call *call, char *reason, size_t size);
bool gpu_supports_bmm(const tn_call *call, char *reason, size_t size);

#define GPU_MASK_INT                                                                               \
    (TN_BIT(TN_U8) | TN_BIT(TN_I8) | TN_BIT(TN_I16) | TN_BIT(TN_I32) | TN_BIT(TN_I64))
#define GPU_MASK_BOOL TN_BIT(TN_BOOL)
#define GPU_MASK_COPY (TN_MASK_ALL & ~(TN_BIT(TN_F8_E4M3) | TN_BIT(TN_F8_E5M2)))

/* The run functions. Those of elementwise kernels have the enum gpu_kernel in kernel->data. */
tn_status gpu_run_binary(const tn_call *call);
tn_status gpu_run_unary(const tn_call *call);
tn_status gpu_run_scalar(const tn_call *call);
/* These have the function, GPU_F_*, in kernel->data. */
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
