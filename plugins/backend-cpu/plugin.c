/* SPDX-License-Identifier: MIT
 *
 * The CPU backend as a plugin: the device type "cpu", its options and its kernels. */
#include <string.h>

#include "cpu.h"

const struct tn__loops *tn__loops = &tn__loops_base;
const struct tn__products *tn__products = &tn__products_base;

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
} variants[] = {
#ifdef TN__HAVE_X86_LOOPS
    { &tn__loops_avx512, &tn__products_avx512 },
    { &tn__loops_avx2, &tn__products_avx2 },
#endif
    { &tn__loops_base, &tn__products_base },
};

/* Whether this processor has what variant `name` was compiled for. */
static bool runs_here(const char *name)
{
#ifdef TN__HAVE_X86_LOOPS
    __builtin_cpu_init();
    if (strcmp(name, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma");
    if (strcmp(name, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
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
    return status == TN_OK ? tn__blas_open(options_data.blas) : status;
}

#define FLOATS TN_MASK_FLOAT
#define NUMBERS (TN_MASK_FLOAT | TN_MASK_INT)
#define MORE (TN_MASK_ARITH | TN_BIT(TN_BOOL))
#define ORDERED (NUMBERS | TN_BIT(TN_BOOL))
#define FLOATS_COMPLEX (TN_MASK_FLOAT | TN_MASK_COMPLEX)
#define KERNEL(op, dtypes) TN_KERNEL(#op, "cpu", "tn_" #op, dtypes, tn__##op)

static const tn_kernel kernels[] = {
    KERNEL(copy, TN_MASK_ALL),
    KERNEL(fill, TN_MASK_ALL),
    KERNEL(narrow_grad, MORE),
    KERNEL(add, MORE),
    KERNEL(sub, TN_MASK_ARITH),
    KERNEL(mul, MORE),
    KERNEL(div, FLOATS_COMPLEX),
    KERNEL(maximum, ORDERED),
    KERNEL(add_scalar, TN_MASK_ARITH),
    KERNEL(mul_scalar, TN_MASK_ARITH),
    KERNEL(neg, TN_MASK_ARITH),
    KERNEL(exp, FLOATS_COMPLEX),
    KERNEL(log, FLOATS_COMPLEX),
    KERNEL(sqrt, FLOATS_COMPLEX),
    KERNEL(relu, NUMBERS),
    KERNEL(relu_grad, FLOATS),
    KERNEL(sigmoid, FLOATS),
    KERNEL(sum, MORE),
    KERNEL(amax, ORDERED),
    KERNEL(argmax, NUMBERS),
    KERNEL(bmm, NUMBERS),
    KERNEL(linear, FLOATS),
    KERNEL(softmax, FLOATS),
    KERNEL(log_softmax, FLOATS),
    KERNEL(log_softmax_grad, FLOATS),
    KERNEL(nll_loss, FLOATS),
    KERNEL(nll_loss_grad, FLOATS),
    KERNEL(philox_uniform, FLOATS),
    KERNEL(philox_normal, FLOATS),
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
