/* SPDX-License-Identifier: MIT
 *
 * The kernels that a backend registers: rows of tn_kernel_def, included between the braces of the
 * array. They launch the kernels on the device, which kernel_names.h lists. The includer defines
 * GPU_DEVICE, the type of its devices (such as "opencl"); GPU_BMM_RUN and GPU_BMM_WORKSPACE, the
 * functions for its bmm kernel; and GPU_CAPTURE, which is TN_KERNEL_CAPTURE_SAFE, or 0 if the
 * backend cannot record work. An operator without a row runs by its decomposition in
 * plugins/ops/FAMILY.c. */

/* clang-format off */
#define GPU_ANY(op_, dtypes_, run_, data_, supports_, workspace_, flags_) \
    { TN_HEAD(tn_kernel_def), .op = op_, .device = GPU_DEVICE, .name = "tn_" op_, .revision = 1, \
      .dtypes = dtypes_, .flags = TN_KERNEL_DETERMINISTIC | (flags_), .user = data_, \
      .supports = supports_, .workspace = workspace_, .run = run_ },
#define GPU_ROW(op_, dtypes_, run_, data_, supports_, workspace_) \
    GPU_ANY(op_, dtypes_, run_, data_, supports_, workspace_, GPU_CAPTURE)
/* A kernel that cannot be recorded, because the host reads its results: the shape of the output, or
 * the error record for wrong indices and divisors of 0. */
#define GPU_READ(op_, dtypes_, run_, data_, supports_, workspace_) \
    GPU_ANY(op_, dtypes_, run_, data_, supports_, workspace_, 0)
#define GPU_PLAIN(op_, dtypes_, run_) GPU_ROW(op_, dtypes_, run_, NULL, gpu_supports, NULL)
/* GPU_OWN: an elementwise operator with a kernel of its own. GPU_FUNCTION: an elementwise operator
 * that is one of the functions (GPU_F_*) of the kernels map, zip and compare. */
#define GPU_OWN(op_, kernel_, dtypes_, run_) \
    GPU_ROW(op_, dtypes_, run_, &(const enum gpu_kernel){ GPU_##kernel_ }, gpu_supports, NULL)
#define GPU_FUNCTION(op_, function_, dtypes_, run_) \
    GPU_ROW(op_, dtypes_, run_, &(const i32){ GPU_F_##function_ }, gpu_supports, NULL)
#define GPU_REDUCE(op_, dtypes_, run_) \
    GPU_ROW(op_, dtypes_, run_, NULL, gpu_supports, gpu_workspace_reduce)
#define FLOATS TN_MASK_FLOAT
#define NUMBERS (TN_MASK_FLOAT | GPU_MASK_INT)
#define BITWISE (GPU_MASK_INT | GPU_MASK_BOOL)
#define REAL (TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL)
#define SUMMED (TN_MASK_FLOAT | TN_BIT(TN_I64))

/* activation, softmax */
GPU_OWN("relu", relu, NUMBERS, gpu_run_unary)
GPU_OWN("relu_grad", relu_grad, FLOATS, gpu_run_binary)
GPU_OWN("sigmoid", sigmoid, FLOATS, gpu_run_unary)
GPU_PLAIN("softmax", FLOATS, gpu_run_softmax)
GPU_PLAIN("log_softmax", FLOATS, gpu_run_log_softmax)
GPU_PLAIN("log_softmax_grad", FLOATS, gpu_run_log_softmax_grad)

/* arithmetic */
GPU_OWN("add", add, REAL, gpu_run_binary)
GPU_OWN("sub", sub, NUMBERS, gpu_run_binary)
GPU_OWN("mul", mul, REAL, gpu_run_binary)
GPU_OWN("div", div, FLOATS, gpu_run_div)
GPU_READ("div", GPU_MASK_INT, gpu_run_div, &(const enum gpu_kernel){ GPU_div }, gpu_supports, NULL)
GPU_OWN("maximum", maximum, REAL, gpu_run_binary)
GPU_OWN("add_scalar", add_scalar, NUMBERS, gpu_run_scalar)
GPU_OWN("mul_scalar", mul_scalar, NUMBERS, gpu_run_scalar)
GPU_OWN("neg", neg, NUMBERS, gpu_run_unary)
GPU_PLAIN("clamp", NUMBERS, gpu_run_clamp)
GPU_FUNCTION("minimum", MINIMUM, REAL, gpu_run_zip)
GPU_FUNCTION("remainder", REMAINDER, FLOATS, gpu_run_zip)
GPU_READ("remainder", GPU_MASK_INT, gpu_run_zip, &(const i32){ GPU_F_REMAINDER }, gpu_supports,
         NULL)
GPU_FUNCTION("fmod", FMOD, FLOATS, gpu_run_zip)
GPU_READ("fmod", GPU_MASK_INT, gpu_run_zip, &(const i32){ GPU_F_FMOD }, gpu_supports, NULL)
GPU_FUNCTION("pow", POW, NUMBERS, gpu_run_zip)
GPU_FUNCTION("atan2", ATAN2, FLOATS, gpu_run_zip)

/* compare */
GPU_FUNCTION("bitwise_and", AND, BITWISE, gpu_run_zip)
GPU_FUNCTION("bitwise_or", OR, BITWISE, gpu_run_zip)
GPU_FUNCTION("bitwise_xor", XOR, BITWISE, gpu_run_zip)
GPU_FUNCTION("bitwise_not", NOT, BITWISE, gpu_run_map)
GPU_FUNCTION("eq", EQ, REAL, gpu_run_compare)
GPU_FUNCTION("lt", LT, REAL, gpu_run_compare)
GPU_FUNCTION("le", LE, REAL, gpu_run_compare)
GPU_ROW("where", TN_MASK_ALL, gpu_run_where, NULL, NULL, NULL)

/* complex */
GPU_ROW("complex", TN_BIT(TN_F32) | TN_BIT(TN_F64), gpu_run_complex, NULL, NULL, NULL)

/* copy, creation, shape */
GPU_ROW("copy", TN_MASK_ALL, gpu_run_copy, NULL, gpu_supports_copy, NULL)
GPU_PLAIN("arange", NUMBERS, gpu_run_arange)
GPU_ROW("fill", GPU_MASK_COPY, gpu_run_fill, NULL, NULL, NULL)
GPU_ROW("narrow_grad", GPU_MASK_COPY, gpu_run_narrow_grad, NULL, NULL, NULL)

/* index */
GPU_READ("gather", TN_MASK_ALL, gpu_run_gather, NULL, NULL, NULL)
GPU_READ("scatter", TN_MASK_ALL, gpu_run_scatter, NULL, NULL, NULL)
GPU_READ("scatter_add", NUMBERS, gpu_run_scatter_add, NULL, gpu_supports, NULL)
GPU_READ("nonzero", REAL, gpu_run_nonzero, NULL, gpu_supports, gpu_workspace_nonzero)

/* loss */
GPU_READ("nll_loss", FLOATS, gpu_run_nll_loss, NULL, gpu_supports, NULL)
GPU_READ("nll_loss_grad", FLOATS, gpu_run_nll_loss_grad, NULL, gpu_supports, NULL)

/* matmul */
GPU_ROW("bmm", NUMBERS, GPU_BMM_RUN, NULL, gpu_supports_bmm, GPU_BMM_WORKSPACE)

/* random */
GPU_PLAIN("philox_uniform", FLOATS, gpu_run_philox_uniform)
GPU_PLAIN("philox_normal", FLOATS, gpu_run_philox_normal)

/* reduction, scan, sort */
GPU_REDUCE("sum", SUMMED, gpu_run_sum)
GPU_REDUCE("prod", SUMMED, gpu_run_prod)
GPU_REDUCE("amax", REAL, gpu_run_amax)
GPU_REDUCE("amin", REAL, gpu_run_amin)
GPU_PLAIN("argmax", NUMBERS, gpu_run_argmax)
GPU_PLAIN("argmin", NUMBERS, gpu_run_argmin)
GPU_PLAIN("cumsum", SUMMED, gpu_run_cumsum)
GPU_PLAIN("cumprod", SUMMED, gpu_run_cumprod)
GPU_PLAIN("sort", REAL, gpu_run_sort)

/* unary */
GPU_OWN("exp", exp, FLOATS, gpu_run_unary)
GPU_OWN("log", log, FLOATS, gpu_run_unary)
GPU_OWN("sqrt", sqrt, FLOATS, gpu_run_unary)
GPU_FUNCTION("abs", ABS, NUMBERS, gpu_run_map)
GPU_FUNCTION("sign", SIGN, NUMBERS, gpu_run_map)
GPU_FUNCTION("floor", FLOOR, NUMBERS, gpu_run_map)
GPU_FUNCTION("ceil", CEIL, NUMBERS, gpu_run_map)
GPU_FUNCTION("trunc", TRUNC, NUMBERS, gpu_run_map)
GPU_FUNCTION("round", ROUND, NUMBERS, gpu_run_map)
GPU_FUNCTION("expm1", EXPM1, FLOATS, gpu_run_map)
GPU_FUNCTION("log1p", LOG1P, FLOATS, gpu_run_map)
GPU_FUNCTION("log2", LOG2, FLOATS, gpu_run_map)
GPU_FUNCTION("log10", LOG10, FLOATS, gpu_run_map)
GPU_FUNCTION("sin", SIN, FLOATS, gpu_run_map)
GPU_FUNCTION("cos", COS, FLOATS, gpu_run_map)
GPU_FUNCTION("tan", TAN, FLOATS, gpu_run_map)
GPU_FUNCTION("asin", ASIN, FLOATS, gpu_run_map)
GPU_FUNCTION("acos", ACOS, FLOATS, gpu_run_map)
GPU_FUNCTION("atan", ATAN, FLOATS, gpu_run_map)
GPU_FUNCTION("sinh", SINH, FLOATS, gpu_run_map)
GPU_FUNCTION("cosh", COSH, FLOATS, gpu_run_map)
GPU_FUNCTION("tanh", TANH, FLOATS, gpu_run_map)
GPU_FUNCTION("erf", ERF, FLOATS, gpu_run_map)
GPU_FUNCTION("erfc", ERFC, FLOATS, gpu_run_map)
GPU_FUNCTION("erfinv", ERFINV, FLOATS, gpu_run_map)
/* clang-format on */
