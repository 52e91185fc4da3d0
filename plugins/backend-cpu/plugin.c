/* SPDX-License-Identifier: MIT
 *
 * The CPU backend as a plugin: the device type "cpu", its options and its kernels. */
#include <string.h>
#ifdef TN__HAVE_X86_LOOPS
#include <cpuid.h>
#endif

#include "base/kernels.h"
#include "simd/norm.h"
#include "conv/winograd.h"

const struct tn__loops *tn__loops = &tn__loops_base;
const struct tn__products *tn__products = &tn__products_base;
const struct tn__folds *tn__folds = &tn__loops_base_folds;
const tn__curves_table *tn__curves = &tn__loops_base_curves;
const struct tn__steps *tn__steps = &tn__loops_base_steps;
const struct tn__norms *tn__norms = &tn__loops_base_norms;
const struct tn__moves *tn__moves = &tn__loops_base_moves;
const struct tn__narrow *tn__narrow = &tn__loops_base_narrow;
tn__conversions_table *tn__conversions = &tn__loops_base_conversions;

static struct options {
    const char *blas;
    const char *isa;
} options_data;

static const tn_option options[] = {
    TN_OPTION_STRING(struct options, blas, "'auto'",
                     "auto, none or the absolute path of an OpenBLAS without threads of its own"),
    TN_OPTION_STRING(struct options, isa, "'auto'",
                     "instruction set of the inner loops: auto, baseline, avx2 or avx512"),
    TN_OPTION_END
};

static const struct {
    const struct tn__loops *loops;
    const struct tn__products *products;
    const struct tn__folds *folds;
    const tn__curves_table *curves;
    const struct tn__steps *steps;
    const struct tn__norms *norms;
    const struct tn__moves *moves;
    const struct tn__narrow *narrow;
    const struct tn__transforms *transforms;
    tn__conversions_table *conversions;
} variants[] = {
#define VARIANT(set)                                                                               \
    {                                                                                              \
        &tn__loops_##set, &tn__products_##set, &tn__loops_##set##_folds,                           \
            &tn__loops_##set##_curves, &tn__loops_##set##_steps, &tn__loops_##set##_norms,         \
            &tn__loops_##set##_moves, &tn__loops_##set##_narrow, &tn__loops_##set##_transforms,    \
            &tn__loops_##set##_conversions                                                         \
    }
#ifdef TN__HAVE_X86_LOOPS
    VARIANT(avx512),
    VARIANT(avx2),
#endif
    VARIANT(base),
};

#ifdef TN__HAVE_X86_LOOPS
/* Conversions of float16, which not every compiler's __builtin_cpu_supports knows. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

/* Whether this processor has what variant `name` was compiled for. */
static bool runs_here(const char *name)
{
#ifdef TN__HAVE_X86_LOOPS
    __builtin_cpu_init();
    if (strcmp(name, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma") && has_f16c();
    if (strcmp(name, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#endif
    (void)name;
    return true;
}

static tn_status choose_variant(const char *wanted)
{
    bool any = !wanted || strcmp(wanted, "auto") == 0, known = false;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const char *name = variants[i].loops->name;
        bool meant = any || strcmp(wanted, name) == 0;
        known |= meant;
        if (meant && runs_here(name)) {
            tn__loops = variants[i].loops;
            tn__products = variants[i].products;
            tn__folds = variants[i].folds;
            tn__curves = variants[i].curves;
            tn__steps = variants[i].steps;
            tn__norms = variants[i].norms;
            tn__moves = variants[i].moves;
            tn__narrow = variants[i].narrow;
            tn__transforms = variants[i].transforms;
            tn__conversions = variants[i].conversions;
            return TN_OK;
        }
    }
    if (known)
        return tn_fail(
            TN_ERR_UNAVAILABLE,
            "TENON_CPU_ISA=%s: this processor does not have it; auto takes the best it has",
            wanted);
    return tn_fail(TN_ERR_VALUE, "TENON_CPU_ISA=%s: auto, baseline, avx2 or avx512", wanted);
}

static tn_status activate(void)
{
    tn_status status = choose_variant(options_data.isa);
    uint64_t before = tn_error_mark();
    const char *math = tn_env_get("TENON_MATH");
    if (status == TN_OK && !math && tn_error_mark() != before)
        return tn_error_last()->code; /* no memory to read it: not the same as unset */
    tn__winograd_allowed = !math || strcmp(math, "exact") != 0;
    return status == TN_OK ? tn__blas_open(options_data.blas) : status;
}

#define FLOATS TN_MASK_FLOAT
#define NUMBERS (TN_MASK_FLOAT | TN_MASK_INT)
#define MORE (TN_MASK_ARITH | TN_BIT(TN_BOOL))
#define ORDERED (NUMBERS | TN_BIT(TN_BOOL))
#define FLOATS_COMPLEX (TN_MASK_FLOAT | TN_MASK_COMPLEX)
#define KERNEL(op, dtypes) TN_KERNEL(#op, "cpu", "tn_" #op, dtypes, tn__##op)

/* Whole numbers without uint64, which int64 does not order. */
#define WHOLE (TN_MASK_INT & ~TN_BIT(TN_U64))
#define WIDE (TN_BIT(TN_F32) | TN_BIT(TN_F64))
#define BITS (TN_MASK_INT | TN_BIT(TN_BOOL))
/* For some layouts only; the rest comes apart. */
#define WHERE(op_, dtypes_)                                                                        \
    {                                                                                              \
        TN_HEAD(tn_kernel), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,        \
                            .dtypes = dtypes_, .supports = tn__##op_##_takes, .run = tn__##op_     \
    }
/* By a row: its run function is that of them all, or of its family. */
#define ROW(op_, dtypes_, run_, ...)                                                               \
    {                                                                                              \
        TN_HEAD(tn_kernel), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,        \
                            .dtypes = dtypes_, .run = run_, .data = &(const struct tn__ew_row)     \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define ONE(op_, dtypes_, which) ROW(op_, dtypes_, tn__elementwise, which, 1, NULL)
#define TWO(op_, dtypes_, which) ROW(op_, dtypes_, tn__elementwise, which, 2, NULL)
#define WITH(op_, dtypes_, which) ROW(op_, dtypes_, tn__elementwise, which, 1, fill_##op_)
#define TWO_WITH(op_, dtypes_, which) ROW(op_, dtypes_, tn__elementwise, which, 2, fill_##op_)
/* On three tensors of one type. */
#define MIXTURE(op_)                                                                               \
    {                                                                                              \
        TN_HEAD(tn_kernel), .op = #op_, .device = "cpu", .name = "tn_" #op_, .revision = 1,        \
                            .dtypes = FLOATS, .supports = tn__mixtures_take, .run = tn__##op_      \
    }

#define FILL(op, p, q, r)                                                                          \
    static void fill_##op(const void *from, double *numbers)                                       \
    {                                                                                              \
        const tn_##op##_options *o = from;                                                         \
        (void)o;                                                                                   \
        numbers[0] = p;                                                                            \
        numbers[1] = q;                                                                            \
        numbers[2] = r;                                                                            \
    }
typedef void tn_relu6_options, tn_selu_options; /* without options */
#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946
FILL(add_scalar, o->value, 0, 0)
FILL(mul_scalar, o->value, 0, 0)
FILL(clamp, o->min, o->max, 0)
FILL(relu6, 0, 6, 0)
FILL(hardtanh, o->min_val, o->max_val, 0)
FILL(leaky_relu, o->negative_slope, 0, 0)
FILL(elu, 1, o->alpha, 1)
FILL(selu, SELU_SCALE, SELU_SCALE *SELU_ALPHA, 1)
FILL(celu, 1, o->alpha, 1 / o->alpha)
FILL(softshrink, o->lambd, 0, 0)
FILL(hardshrink, o->lambd, 0, 0)
FILL(softplus, o->beta, o->threshold, 0)
FILL(threshold, o->threshold, o->value, 0)
FILL(hardtanh_grad, o->min_val, o->max_val, 0)
FILL(leaky_relu_grad, o->negative_slope, 0, 0)
FILL(threshold_grad, o->threshold, 0, 0)
FILL(hardshrink_grad, o->lambd, 0, 0)
FILL(elu_grad, o->positive, o->negative, o->inner)
FILL(softplus_grad, o->beta, o->threshold, 0)

static const tn_kernel kernels[] = {
    KERNEL(copy, TN_MASK_ALL),
    KERNEL(fill, TN_MASK_ALL),
    KERNEL(flip, TN_MASK_ALL),
    KERNEL(narrow_grad, MORE),
    KERNEL(add, MORE),
    KERNEL(sub, TN_MASK_ARITH),
    TWO(mul, MORE, TN__MUL),
    KERNEL(div, FLOATS_COMPLEX | WHOLE),
    TWO(maximum, ORDERED, TN__MAXIMUM),
    TWO(minimum, ORDERED & ~TN_BIT(TN_U64), TN__MINIMUM),
    ROW(remainder, FLOATS | WHOLE, tn__rest, TN__REMAINDER, 2, NULL),
    ROW(fmod, FLOATS | WHOLE, tn__rest, TN__FMOD, 2, NULL),
    TWO(pow, NUMBERS, TN__POW),
    TWO(atan2, FLOATS, TN__ATAN2),
    WITH(add_scalar, TN_MASK_ARITH, TN__ADD_SCALAR),
    WITH(mul_scalar, TN_MASK_ARITH, TN__MUL_SCALAR),
    WITH(clamp, FLOATS | WHOLE, TN__CLAMP),
    ONE(neg, TN_MASK_ARITH, TN__NEG),
    ONE(exp, FLOATS_COMPLEX, TN__EXP),
    ONE(log, FLOATS_COMPLEX, TN__LOG),
    ONE(sqrt, FLOATS_COMPLEX, TN__SQRT),
    ONE(abs, FLOATS | WHOLE, TN__ABS),
    TN_KERNEL("abs", "cpu", "tn_abs_complex", TN_MASK_COMPLEX, tn__abs_complex),
    KERNEL(complex, FLOATS),
    ONE(conj, TN_MASK_COMPLEX, TN__CONJ),
    ONE(sign, FLOATS | WHOLE, TN__SIGN),
    ONE(floor, NUMBERS, TN__FLOOR),
    ONE(ceil, NUMBERS, TN__CEIL),
    ONE(trunc, NUMBERS, TN__TRUNC),
    ONE(round, NUMBERS, TN__ROUND),
    ONE(frac, FLOATS, TN__FRAC),
    ONE(square, TN_MASK_ARITH, TN__SQUARE),
    ONE(reciprocal, FLOATS_COMPLEX, TN__RECIPROCAL),
    ONE(rsqrt, FLOATS_COMPLEX, TN__RSQRT),
    ONE(expm1, FLOATS, TN__EXPM1),
    ONE(log1p, FLOATS, TN__LOG1P),
    ONE(log2, FLOATS_COMPLEX, TN__LOG2),
    ONE(log10, FLOATS_COMPLEX, TN__LOG10),
    ONE(sin, FLOATS_COMPLEX, TN__SIN),
    ONE(cos, FLOATS_COMPLEX, TN__COS),
    ONE(tan, FLOATS_COMPLEX, TN__TAN),
    ONE(asin, FLOATS_COMPLEX, TN__ASIN),
    ONE(acos, FLOATS_COMPLEX, TN__ACOS),
    ONE(atan, FLOATS_COMPLEX, TN__ATAN),
    ONE(sinh, FLOATS_COMPLEX, TN__SINH),
    ONE(cosh, FLOATS_COMPLEX, TN__COSH),
    ONE(tanh, FLOATS_COMPLEX, TN__TANH),
    ONE(erf, FLOATS, TN__ERF),
    ONE(erfc, FLOATS, TN__ERFC),
    ONE(erfinv, FLOATS, TN__ERFINV),
    TWO(eq, MORE, TN__EQ),
    TWO(ne, MORE, TN__NE),
    TWO(lt, ORDERED & ~TN_BIT(TN_U64), TN__LT),
    TWO(le, ORDERED & ~TN_BIT(TN_U64), TN__LE),
    TWO(gt, ORDERED & ~TN_BIT(TN_U64), TN__GT),
    TWO(ge, ORDERED & ~TN_BIT(TN_U64), TN__GE),
    ROW(bitwise_and, BITS, tn__bits_and, TN__BITWISE_AND, 2, NULL),
    ROW(bitwise_or, BITS, tn__bits_or, TN__BITWISE_OR, 2, NULL),
    ROW(bitwise_xor, BITS, tn__bits_xor, TN__BITWISE_XOR, 2, NULL),
    TN_KERNEL("bitwise_not", "cpu", "tn_bitwise_not", BITS, tn__bits_not),
    KERNEL(where, TN_MASK_ALL),
    KERNEL(convolution, WIDE),
    KERNEL(convolution_grad_input, WIDE),
    { TN_HEAD(tn_kernel), .op = "convolution_grad_weight", .device = "cpu",
      .name = "tn_convolution_grad_weight", .revision = 1, .dtypes = WIDE,
      .supports = tn__convolution_plain, .run = tn__convolution_grad_weight },
    KERNEL(max_pool, WIDE),
    KERNEL(max_pool_grad, WIDE),
    KERNEL(avg_pool, WIDE),
    KERNEL(avg_pool_grad, WIDE),
    WHERE(standardize, FLOATS),
    WHERE(standardize_grad, FLOATS),
    WHERE(standardize_relu, FLOATS),
    WHERE(standardize_relu_grad, FLOATS),
    ONE(relu, NUMBERS, TN__RELU),
    TWO(relu_grad, FLOATS, TN__RELU_GRAD),
    ONE(sigmoid, FLOATS_COMPLEX, TN__SIGMOID),
    WITH(relu6, FLOATS, TN__CLAMP),
    WITH(hardtanh, FLOATS, TN__CLAMP),
    WITH(leaky_relu, FLOATS, TN__LEAKY_RELU),
    WITH(elu, FLOATS, TN__ELU),
    WITH(selu, FLOATS, TN__ELU),
    WITH(celu, FLOATS, TN__ELU),
    WITH(softshrink, FLOATS, TN__SOFTSHRINK),
    WITH(hardshrink, FLOATS, TN__HARDSHRINK),
    WITH(softplus, FLOATS, TN__SOFTPLUS),
    WITH(threshold, FLOATS, TN__THRESHOLD),
    KERNEL(gelu, FLOATS),
    ONE(silu, FLOATS, TN__SILU),
    ONE(mish, FLOATS, TN__MISH),
    ONE(hardswish, FLOATS, TN__HARDSWISH),
    ONE(hardsigmoid, FLOATS, TN__HARDSIGMOID),
    ONE(logsigmoid, FLOATS, TN__LOGSIGMOID),
    ONE(tanhshrink, FLOATS, TN__TANHSHRINK),
    ONE(softsign, FLOATS, TN__SOFTSIGN),
    TWO(sigmoid_grad, FLOATS, TN__SIGMOID_GRAD),
    TWO(tanh_grad, FLOATS, TN__TANH_GRAD),
    TWO_WITH(hardtanh_grad, FLOATS, TN__HARDTANH_GRAD),
    TWO_WITH(leaky_relu_grad, FLOATS, TN__LEAKY_RELU_GRAD),
    TWO_WITH(threshold_grad, FLOATS, TN__THRESHOLD_GRAD),
    TWO(hardsigmoid_grad, FLOATS, TN__HARDSIGMOID_GRAD),
    TWO(hardswish_grad, FLOATS, TN__HARDSWISH_GRAD),
    TWO_WITH(hardshrink_grad, FLOATS, TN__HARDSHRINK_GRAD),
    TWO_WITH(elu_grad, FLOATS, TN__ELU_GRAD),
    TWO_WITH(softplus_grad, FLOATS, TN__SOFTPLUS_GRAD),
    TWO(silu_grad, FLOATS, TN__SILU_GRAD),
    TWO(mish_grad, FLOATS, TN__MISH_GRAD),
    KERNEL(gelu_grad, FLOATS),
    KERNEL(glu, FLOATS),
    KERNEL(prelu, FLOATS),
    WHERE(pow_scalar, FLOATS),
    KERNEL(nan_to_num, FLOATS),
    KERNEL(eye, ORDERED),
    KERNEL(tril, ORDERED),
    KERNEL(triu, ORDERED),
    MIXTURE(clamp_tensor),
    MIXTURE(lerp),
    MIXTURE(lerp_scalar),
    MIXTURE(addcmul),
    MIXTURE(addcdiv),
    KERNEL(sum, MORE),
    KERNEL(amax, ORDERED),
    KERNEL(argmax, NUMBERS),
    KERNEL(mean, FLOATS),
    KERNEL(var, FLOATS),
    KERNEL(std, FLOATS),
    KERNEL(norm, FLOATS),
    KERNEL(logsumexp, FLOATS),
    KERNEL(any, TN_BIT(TN_BOOL)), /* the result's type */
    KERNEL(all, TN_BIT(TN_BOOL)),
    KERNEL(prod, ORDERED),
    KERNEL(amin, ORDERED & ~TN_BIT(TN_U64)),
    KERNEL(argmin, FLOATS | WHOLE),
    KERNEL(cumsum, ORDERED),
    KERNEL(cumprod, ORDERED),
    KERNEL(sort, ORDERED & ~TN_BIT(TN_U64)),
    KERNEL(topk, ORDERED & ~TN_BIT(TN_U64)),
    KERNEL(gather, TN_MASK_ALL),
    KERNEL(index_select, TN_MASK_ALL),
    KERNEL(scatter, TN_MASK_ALL),
    KERNEL(scatter_add, NUMBERS),
    KERNEL(nonzero, ORDERED),
    KERNEL(arange, NUMBERS),
    KERNEL(linspace, FLOATS),
    WHERE(one_hot, TN_BIT(TN_I64)),
    WHERE(sgd_step, WIDE),
    WHERE(adam_step, WIDE),
    WHERE(total_norm, WIDE),
    KERNEL(bmm, NUMBERS),
    KERNEL(linear, FLOATS),
    KERNEL(attend, FLOATS),
    KERNEL(attend_grad, FLOATS),
    KERNEL(linear_activation, FLOATS),
    KERNEL(softmax, FLOATS),
    KERNEL(log_softmax, FLOATS),
    KERNEL(softmax_grad, FLOATS),
    KERNEL(log_softmax_grad, FLOATS),
    KERNEL(nll_loss, FLOATS),
    KERNEL(nll_loss_grad, FLOATS),
    KERNEL(mse_loss, WIDE),
    KERNEL(l1_loss, WIDE),
    KERNEL(smooth_l1_loss, WIDE),
    KERNEL(huber_loss, WIDE),
    KERNEL(soft_margin_loss, WIDE),
    KERNEL(margin_ranking_loss, WIDE),
    WHERE(poisson_nll_loss, WIDE),
    KERNEL(philox_uniform, FLOATS),
    KERNEL(philox_normal, FLOATS),
    KERNEL(philox_permutation, TN_BIT(TN_I64)),
};

static const void *const contributions[] = { &tn__backend_cpu };

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "tenon.cpu",
    .version = "0.1.0",
    .help = "tensors in the host's memory, operators on the processor",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = 1,
    .kernels = kernels,
    .n_kernels = (int64_t)(sizeof kernels / sizeof *kernels),
    .kernel_size = sizeof(tn_kernel),
    .options = options,
    .options_data = &options_data,
    .activate = activate,
    .deactivate = tn__scratch_drop,
};
TN_PLUGIN_EXPORT(plugin);
