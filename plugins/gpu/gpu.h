/* SPDX-License-Identifier: MIT
 *
 * What the backends for OpenCL and CUDA share: the operators on the host's side (from a tn_call to the arguments of a kernel), which
 * see a device only through the few functions below. Each backend compiles these files into itself and defines those functions. */
#ifndef GPU_H
#define GPU_H

#include <tenon/plugin.h>

typedef int32_t i32;
typedef int64_t i64;
#include "../backend-opencl/layout.cl"

/* ---- kernels on the device ----------------------------------------------------------------------- */

/* How work items are counted. */
enum gpu_shape {
    GPU_ITEMS,  /* a work item each, in groups of 256 */
    GPU_GROUPS, /* a group of 256 each */
    GPU_TILES   /* a group of 16 x 16 each */
};

/* The texts that kernels are in: one program per text and type. */
#define GPU_TEXTS(X)                                                                               \
    X(elementwise)                                                                                 \
    X(functions) X(copy) X(move) X(reduce) X(matmul) X(softmax) X(loss) X(random) X(along)
#define GPU_TEXT_NAME_(name) GPU_TEXT_##name,
enum gpu_text { GPU_TEXTS(GPU_TEXT_NAME_) GPU_TEXT_COUNT };

/* All kernels: identifier, text, shape. On the device a kernel is called tn_<identifier>_<type>. */
/* clang-format off */
#define GPU_KERNELS(X) \
    X(add, elementwise, ITEMS) X(sub, elementwise, ITEMS) X(mul, elementwise, ITEMS) \
    X(div, elementwise, ITEMS) X(maximum, elementwise, ITEMS) X(relu_grad, elementwise, ITEMS) \
    X(add_scalar, elementwise, ITEMS) X(mul_scalar, elementwise, ITEMS) \
    X(neg, elementwise, ITEMS) X(exp, elementwise, ITEMS) X(log, elementwise, ITEMS) \
    X(sqrt, elementwise, ITEMS) X(relu, elementwise, ITEMS) X(sigmoid, elementwise, ITEMS) \
    X(map, functions, ITEMS) X(zip, functions, ITEMS) X(compare, functions, ITEMS) \
    X(clamp, functions, ITEMS) X(where, move, ITEMS) X(gather, move, ITEMS) \
    X(scatter, move, ITEMS) X(scatter_add, along, ITEMS) X(sort, along, ITEMS) \
    X(scan, along, GROUPS) X(nonzero, along, GROUPS) X(arange, along, ITEMS) X(prod, reduce, GROUPS) X(prod_item, reduce, ITEMS) \
    X(prod_part, reduce, GROUPS) X(prod_last, reduce, GROUPS) X(amin, reduce, GROUPS) \
    X(amin_item, reduce, ITEMS) \
    X(copy, copy, ITEMS) X(move, move, ITEMS) X(fill, move, ITEMS) X(sum, reduce, GROUPS) \
    X(sum_item, reduce, ITEMS) X(sum_part, reduce, GROUPS) X(sum_last, reduce, GROUPS) \
    X(amax, reduce, GROUPS) X(amax_item, reduce, ITEMS) X(argmax, reduce, GROUPS) \
    X(bmm, matmul, TILES) X(softmax, softmax, GROUPS) X(log_softmax_grad, softmax, GROUPS) \
    X(nll_loss, loss, GROUPS) X(nll_loss_grad, loss, ITEMS) X(philox_uniform, random, ITEMS) \
    X(philox_normal, random, ITEMS)
/* clang-format on */
#define GPU_KERNEL_NAME_(name, text, shape) GPU_##name,
enum gpu_kernel { GPU_KERNELS(GPU_KERNEL_NAME_) GPU_KERNEL_COUNT };

typedef struct gpu_kernel_row {
    const char *name;
    int32_t text;  /* enum gpu_text */
    int32_t shape; /* enum gpu_shape */
} gpu_kernel_row;

extern const gpu_kernel_row gpu_kernel_rows[GPU_KERNEL_COUNT];
/* "f32": how kernel names say a type. */
const char *gpu_type_name(tn_dtype dtype);
/* Writes "tn_add_f32". */
void gpu_kernel_text(char *out, size_t size, enum gpu_kernel kernel, tn_dtype type);

/* An argument of a kernel: where it lies and how long it is. Memory is a handle, sizeof(void *) long. */
typedef struct gpu_arg {
    const void *at;
    size_t size;
} gpu_arg;
#define GPU_ARG(value)                                                                             \
    {                                                                                              \
        &(value), sizeof(value)                                                                    \
    }

/* ---- what a backend defines ------------------------------------------------------------------------ */

/* Starts a kernel on the call's stream over x items, groups or tiles, z times (at most 65535). Nothing happens when one is zero. */
tn_status gpu_launch(const tn_call *call, enum gpu_kernel kernel, tn_dtype type, int64_t x,
                     int64_t z, const gpu_arg *args, int32_t count);
/* Copies bytes inside the device, in stream order. */
tn_status gpu_copy_bytes(const tn_call *call, void *to, uint64_t to_offset, void *from,
                         uint64_t from_offset, size_t bytes);
/* Reads bytes of the device behind what the stream has to do, and waits for them. */
tn_status gpu_read_bytes(const tn_call *call, void *to, void *from, uint64_t offset, size_t bytes);
/* The handle of the stream's gpu_error, which a kernel about to start may write to. */
void *gpu_error_memory(const tn_call *call);
/* Whether the device computes in this type; else writes why not. */
bool gpu_device_has(const tn_call *call, tn_dtype dtype, char *reason, size_t size);

/* ---- views ----------------------------------------------------------------------------------------- */

int64_t gpu_count(const tn_view *view);
/* Bytes of an element. */
int64_t gpu_item_size(const tn_view *view);
/* Elements from the start of the memory to the first one. */
int64_t gpu_offset(const tn_view *view);
bool gpu_dense(const tn_view *view);
/* A loop over views[0]'s shape, to which the others broadcast: dimensions of size 1 go, neighbours that lie one behind the other become one. */
void gpu_walk_make(gpu_walk *walk, const tn_view *const *views, int32_t count);
void gpu_walk4_make(gpu_walk4 *walk, const tn_view *const views[4]);
/* Rows along `dim` of views of one shape. */
tn_status gpu_rows_make(gpu_rows *rows, const tn_view *const *views, int32_t count, int64_t dim);
/* A number as kernels for this type take it: float, double or a whole number. */
typedef union gpu_scalar {
    float f;
    double d;
    int32_t i;
    int64_t l;
} gpu_scalar;
gpu_arg gpu_scalar_arg(gpu_scalar *scalar, tn_dtype dtype, double value);
/* The unsigned integer (or c128) that kernels of the text "move" take for elements of this size. */
tn_dtype gpu_as_bits(const tn_view *view);
/* The bits of a number stored as `dtype`, in words of 64 bits. */
void gpu_bits(tn_dtype dtype, double value, uint64_t bits[2]);
/* The words after a stream's synchronisation found an error record. */
tn_status gpu_error_say(const gpu_error *error, const char *device);

/* ---- operators ------------------------------------------------------------------------------------- */

/* y = x with conversion, any strides, x broadcasting to y. */
tn_status gpu_copy_view(const tn_call *call, const tn_view *to, const tn_view *from);
tn_status gpu_fill_view(const tn_call *call, const tn_view *to, double value);

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

/* The rows of a backend's kernel table: GPU_TABLE("opencl"). `bmm_run`, `bmm_workspace`: the backend's way to multiply. */
extern const enum gpu_kernel gpu_ids[GPU_KERNEL_COUNT];
extern const i32 gpu_functions[GPU_F_COUNT];
#define GPU_ROW(op_, device_, dtypes_, run_, data_, supports_, workspace_)                         \
    {                                                                                              \
        TN_HEAD(tn_kernel), .op = op_, .device = device_, .name = "tn_" op_, .revision = 1,        \
                            .dtypes = dtypes_, .flags = TN_KERNEL_DETERMINISTIC, .data = data_,    \
                            .supports = supports_, .workspace = workspace_, .run = run_            \
    }
#define GPU_PLAIN(op_, device_, dtypes_, run_)                                                     \
    GPU_ROW(op_, device_, dtypes_, run_, NULL, gpu_supports, NULL)
#define GPU_EACH(op_, id_, device_, dtypes_, run_)                                                 \
    GPU_ROW(op_, device_, dtypes_, run_, &gpu_ids[GPU_##id_], gpu_supports, NULL)
#define GPU_FUNCTION(op_, function_, device_, dtypes_, run_)                                       \
    GPU_ROW(op_, device_, dtypes_, run_, &gpu_functions[GPU_F_##function_], gpu_supports, NULL)
#define GPU_MAP(op_, function_, device_)                                                           \
    GPU_FUNCTION(op_, function_, device_, TN_MASK_FLOAT, gpu_run_map)
#define GPU_WHOLE(op_, function_, device_)                                                         \
    GPU_FUNCTION(op_, function_, device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_map)
#define GPU_ZIP(op_, function_, device_, dtypes_)                                                  \
    GPU_FUNCTION(op_, function_, device_, dtypes_, gpu_run_zip)
#define GPU_COMPARE(op_, function_, device_)                                                       \
    GPU_FUNCTION(op_, function_, device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL,            \
                 gpu_run_compare)
#define GPU_FUNCTIONS_TABLE(device_)                                                               \
    GPU_WHOLE("abs", ABS, device_), GPU_WHOLE("sign", SIGN, device_),                              \
        GPU_WHOLE("floor", FLOOR, device_), GPU_WHOLE("ceil", CEIL, device_),                      \
        GPU_WHOLE("trunc", TRUNC, device_), GPU_WHOLE("round", ROUND, device_),                    \
        GPU_MAP("expm1", EXPM1, device_), GPU_MAP("log1p", LOG1P, device_),                        \
        GPU_MAP("log2", LOG2, device_), GPU_MAP("log10", LOG10, device_),                          \
        GPU_MAP("sin", SIN, device_), GPU_MAP("cos", COS, device_), GPU_MAP("tan", TAN, device_),  \
        GPU_MAP("asin", ASIN, device_), GPU_MAP("acos", ACOS, device_),                            \
        GPU_MAP("atan", ATAN, device_), GPU_MAP("sinh", SINH, device_),                            \
        GPU_MAP("cosh", COSH, device_), GPU_MAP("tanh", TANH, device_),                            \
        GPU_MAP("erf", ERF, device_), GPU_MAP("erfc", ERFC, device_),                              \
        GPU_MAP("erfinv", ERFINV, device_),                                                        \
        GPU_ZIP("minimum", MINIMUM, device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL),        \
        GPU_ZIP("remainder", REMAINDER, device_, TN_MASK_FLOAT | GPU_MASK_INT),                    \
        GPU_ZIP("fmod", FMOD, device_, TN_MASK_FLOAT | GPU_MASK_INT),                              \
        GPU_ZIP("pow", POW, device_, TN_MASK_FLOAT | GPU_MASK_INT),                                \
        GPU_ZIP("atan2", ATAN2, device_, TN_MASK_FLOAT),                                           \
        GPU_ZIP("bitwise_and", AND, device_, GPU_MASK_INT | GPU_MASK_BOOL),                        \
        GPU_ZIP("bitwise_or", OR, device_, GPU_MASK_INT | GPU_MASK_BOOL),                          \
        GPU_ZIP("bitwise_xor", XOR, device_, GPU_MASK_INT | GPU_MASK_BOOL),                        \
        GPU_FUNCTION("bitwise_not", NOT, device_, GPU_MASK_INT | GPU_MASK_BOOL, gpu_run_map),      \
        GPU_COMPARE("eq", EQ, device_), GPU_COMPARE("lt", LT, device_),                            \
        GPU_COMPARE("le", LE, device_),                                                            \
        GPU_PLAIN("clamp", device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_clamp),                  \
        GPU_ROW("where", device_, TN_MASK_ALL, gpu_run_where, NULL, NULL, NULL),                   \
        GPU_ROW("complex", device_, TN_BIT(TN_F32) | TN_BIT(TN_F64), gpu_run_complex, NULL, NULL,  \
                NULL)
#define GPU_ALONG_TABLE(device_)                                                                   \
    GPU_ROW("prod", device_, TN_MASK_FLOAT | TN_BIT(TN_I64), gpu_run_prod, NULL, gpu_supports,     \
            gpu_workspace_reduce),                                                                 \
        GPU_ROW("amin", device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL, gpu_run_amin, NULL, \
                gpu_supports, gpu_workspace_reduce),                                               \
        GPU_PLAIN("argmin", device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_argmin),                \
        GPU_PLAIN("cumsum", device_, TN_MASK_FLOAT | TN_BIT(TN_I64), gpu_run_cumsum),              \
        GPU_PLAIN("cumprod", device_, TN_MASK_FLOAT | TN_BIT(TN_I64), gpu_run_cumprod),            \
        GPU_PLAIN("sort", device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL, gpu_run_sort),    \
        GPU_PLAIN("arange", device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_arange),                \
        GPU_ROW("gather", device_, TN_MASK_ALL, gpu_run_gather, NULL, NULL, NULL),                 \
        GPU_ROW("scatter", device_, TN_MASK_ALL, gpu_run_scatter, NULL, NULL, NULL),               \
        GPU_PLAIN("scatter_add", device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_scatter_add),      \
        GPU_ROW("nonzero", device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL, gpu_run_nonzero, \
                NULL, gpu_supports, gpu_workspace_nonzero)

#define GPU_TABLE(device_, bmm_run_, bmm_workspace_)                                               \
    GPU_EACH("add", add, device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL, gpu_run_binary),   \
        GPU_EACH("sub", sub, device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_binary),               \
        GPU_EACH("mul", mul, device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL,                \
                 gpu_run_binary),                                                                  \
        GPU_EACH("div", div, device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_div),                  \
        GPU_EACH("maximum", maximum, device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL,        \
                 gpu_run_binary),                                                                  \
        GPU_EACH("add_scalar", add_scalar, device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_scalar), \
        GPU_EACH("mul_scalar", mul_scalar, device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_scalar), \
        GPU_EACH("neg", neg, device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_unary),                \
        GPU_EACH("exp", exp, device_, TN_MASK_FLOAT, gpu_run_unary),                               \
        GPU_EACH("log", log, device_, TN_MASK_FLOAT, gpu_run_unary),                               \
        GPU_EACH("sqrt", sqrt, device_, TN_MASK_FLOAT, gpu_run_unary),                             \
        GPU_EACH("relu", relu, device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_unary),              \
        GPU_EACH("relu_grad", relu_grad, device_, TN_MASK_FLOAT, gpu_run_binary),                  \
        GPU_EACH("sigmoid", sigmoid, device_, TN_MASK_FLOAT, gpu_run_unary),                       \
        GPU_ROW("copy", device_, TN_MASK_ALL, gpu_run_copy, NULL, gpu_supports_copy, NULL),        \
        GPU_ROW("fill", device_, GPU_MASK_COPY, gpu_run_fill, NULL, NULL, NULL),                   \
        GPU_ROW("narrow_grad", device_, GPU_MASK_COPY, gpu_run_narrow_grad, NULL, NULL, NULL),     \
        GPU_ROW("sum", device_, TN_MASK_FLOAT | TN_BIT(TN_I64), gpu_run_sum, NULL, gpu_supports,   \
                gpu_workspace_reduce),                                                             \
        GPU_ROW("amax", device_, TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL, gpu_run_amax, NULL, \
                gpu_supports, gpu_workspace_reduce),                                               \
        GPU_PLAIN("argmax", device_, TN_MASK_FLOAT | GPU_MASK_INT, gpu_run_argmax),                \
        GPU_ROW("bmm", device_, TN_MASK_FLOAT | GPU_MASK_INT, bmm_run_, NULL, gpu_supports_bmm,    \
                bmm_workspace_),                                                                   \
        GPU_PLAIN("softmax", device_, TN_MASK_FLOAT, gpu_run_softmax),                             \
        GPU_PLAIN("log_softmax", device_, TN_MASK_FLOAT, gpu_run_log_softmax),                     \
        GPU_PLAIN("log_softmax_grad", device_, TN_MASK_FLOAT, gpu_run_log_softmax_grad),           \
        GPU_PLAIN("nll_loss", device_, TN_MASK_FLOAT, gpu_run_nll_loss),                           \
        GPU_PLAIN("nll_loss_grad", device_, TN_MASK_FLOAT, gpu_run_nll_loss_grad),                 \
        GPU_PLAIN("philox_uniform", device_, TN_MASK_FLOAT, gpu_run_philox_uniform),               \
        GPU_PLAIN("philox_normal", device_, TN_MASK_FLOAT, gpu_run_philox_normal),                 \
        GPU_FUNCTIONS_TABLE(device_), GPU_ALONG_TABLE(device_)

#endif
