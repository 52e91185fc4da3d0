/* SPDX-License-Identifier: MIT
 *
 * The CPU backend as a plugin: the device type "cpu", its options and its kernels. */
#include <assert.h>
#include <pthread.h>
#include <string.h>
#if defined(TN__HAVE_AVX2) || defined(TN__HAVE_AVX512)
#include <cpuid.h>
#endif

#include "base/kernel.h"
#include "base/scratch.h"
#include "conv/winograd.h"
#include "device.h"
#include "linalg/lapack.h"
#include "matmul/bfloat16.h"
#include "matmul/blas.h"
#include "op/fuse.h"
#include "simd/simd.h"

static struct options {
    const char *blas;
    const char *isa;
} options_data;

static const tn_option options[] = {
    TN_OPTION_STRING(struct options, blas, "'auto'",
                     "auto, none or the absolute path of a serial OpenBLAS"),
    TN_OPTION_STRING(struct options, isa, "'auto'",
                     "instruction set of the inner loops: auto, baseline, avx2, avx512, or "
                     "avx512_bf16 or amx, which are avx512 with products of bfloat16; auto chooses "
                     "them where they are faster"),
    TN_OPTION_END
};

#define TABLE(table, set) .table = &tn__simd_##table##_##set,
#define VARIANT(set)                                                                               \
    {                                                                                              \
        .name = #set, TN__SIMD_TABLES(TABLE, set)                                                  \
    }
/* The instruction sets, the best one first. */
static const struct tn__simd variants[] = {
#ifdef TN__HAVE_AVX512
    VARIANT(avx512),
#endif
#ifdef TN__HAVE_AVX2
    VARIANT(avx2),
#endif
    VARIANT(baseline),
};
struct tn__simd tn__simd = VARIANT(baseline);

#if defined(TN__HAVE_AVX2) || defined(TN__HAVE_AVX512)
/* Returns whether the processor has F16C, the float16 conversions. Some compilers'
 * __builtin_cpu_supports does not know "f16c". */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

/* Returns whether this processor has the instruction set `name`. */
static bool runs_here(const char *name)
{
#if defined(TN__HAVE_AVX2) || defined(TN__HAVE_AVX512)
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

/* The values of the option isa, after "auto" the best one first: a set of loops, and what may
 * compute products of bfloat16. */
static const struct {
    const char *name, *loops, *products;
} choices[] = {
    { "auto", NULL, NULL },
    { "amx", "avx512", "amx" },
    { "avx512_bf16", "avx512", "avx512_bf16" },
    { "avx512", "avx512", NULL },
    { "avx2", "avx2", NULL },
    { "baseline", "baseline", NULL },
};

/* Chooses the set of loops `name`, or the best one if it is NULL. */
static bool choose_loops(const char *name)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if ((!name || strcmp(name, variants[i].name) == 0) && runs_here(variants[i].name)) {
            tn__simd = variants[i];
            return true;
        }
    return false;
}

static tn_status choose_variant(const char *wanted)
{
    const size_t count = sizeof choices / sizeof *choices;
    size_t i = 0;
    while (i < count && strcmp(wanted ? wanted : "auto", choices[i].name) != 0)
        i++;
    if (i == count)
        return tn_fail(TN_ERR_VALUE,
                       "TENON_CPU_ISA: unknown, got %s; expected auto, baseline, avx2, "
                       "avx512, avx512_bf16 or amx",
                       wanted);
    if (!choose_loops(choices[i].loops) || !tn__bfloat16_allow(choices[i].products))
        return tn_fail(
            TN_ERR_UNAVAILABLE,
            "TENON_CPU_ISA: not supported by this processor or this build, got %s; expected auto "
            "or another instruction set",
            wanted);
    if (i == 0 && strcmp(tn__simd.name, "avx512") == 0)
        (void)tn__bfloat16_allow(tn__bfloat16_best());
    return TN_OK;
}

static void deactivate(const tn_plugin *self)
{
    (void)self;
    tn__fft_plan_drop();
    tn__scratch_drop();
}

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    tn_status status = choose_variant(options_data.isa);
    uint64_t before = tn_error_mark();
    const char *math = tn_env_get("TENON_MATH");
    if (status == TN_OK && !math && tn_error_mark() != before)
        return tn_error_last_code(); /* memory ran out: unknown whether TENON_MATH is set */
    tn__winograd_allowed = !math || strcmp(math, "exact") != 0;
    if (status == TN_OK)
        status = tn__blas_open(options_data.blas);
    if (status == TN_OK)
        tn__lapack_find();
    return status;
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define REFERENCE(family) &tn__kernels_##family,
static const struct tn__kernel_table *const tables[] = { TN__KERNEL_FAMILIES(REFERENCE) };

enum { MOST_KERNELS = 320 };
static tn_kernel_def kernels[MOST_KERNELS];

static const void *const contributions[] = { &tn__backend_cpu, &tn__compiler_fuse };

static tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "tenon.cpu",
    .version = "0.1.0",
    .help = "tensors in the host's memory, operators on the processor",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = sizeof contributions / sizeof *contributions,
    .kernels = kernels,
    .kernel_size = sizeof(tn_kernel_def),
    .options = options,
    .options_data = &options_data,
    .activate = activate,
    .deactivate = deactivate,
};

/* Copies the kernel tables of all files, one after the other, into the plugin's single table. */
static void join_tables(void)
{
    int64_t count = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        assert(count + (int64_t)tables[i]->count <= MOST_KERNELS);
        memcpy(kernels + count, tables[i]->rows, tables[i]->count * sizeof *kernels);
        count += (int64_t)tables[i]->count;
    }
    plugin.n_kernels = count;
}

size_t tn__plugin_kernels(const tn_kernel_def **rows)
{
    *rows = kernels;
    return (size_t)plugin.n_kernels;
}

/* Returns the descriptor and joins the tables on the first call: the host may ask for the
 * descriptor several times and from several threads. */
static const tn_plugin *joined(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_tables);
    return &plugin;
}
TN_PLUGIN_EXPORT(*joined());
