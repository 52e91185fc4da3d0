/* SPDX-License-Identifier: MIT
 *
 * The plugin: its options, its kernels, and its activation, which opens NVIDIA's libraries. */
#include "cuda.h"

static const tn_option options[] = {
    TN_OPTION_STRING(struct cuda_options, driver, "\"libcuda.so.1\"",
                     "the driver library to open, a name or a path"),
    TN_OPTION_STRING(
        struct cuda_options, blas, "\"auto\"",
        "the cuBLASLt library for matrix products: names or paths, separated by commas, of which "
        "the first that starts is used; \"none\": Tenon's own kernel"),
    TN_OPTION_STRING(
        struct cuda_options, kernels, "\"\"",
        "a folder with NAME.fatbin files to load in place of the kernels inside the plugin"),
    TN_OPTION_END
};

#define GPU_DEVICE "cuda"
#define GPU_BMM_RUN cuda_run_bmm
#define GPU_BMM_WORKSPACE cuda_workspace_bmm
#define GPU_CAPTURE TN_KERNEL_CAPTURE_SAFE
static const tn_kernel_def kernels[] = {
#include "../gpu/kernel_defs.h"
};

static const void *const contributions[] = { &cuda_backend };

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    tn_status status;

    if (!cuda_kernels_found())
        return tn_fail(TN_ERR_UNAVAILABLE,
                       "CUDA: built without kernels, because configure found no nvcc; configure "
                       "with --with-cuda=yes, or set TENON_CUDA_KERNELS to a folder with the "
                       "kernels as files");
    status = cu_api_open(cuda_options.driver ? cuda_options.driver : "libcuda.so.1");
    if (!status)
        blaslt_open(cuda_options.blas ? cuda_options.blas : "auto");
    return status;
}

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "tenon.cuda",
    .version = "0.1.0",
    .help = "the device type cuda, through NVIDIA's driver library",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = 1,
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof *kernels,
    .kernel_size = sizeof(tn_kernel_def),
    .options = options,
    .options_data = &cuda_options,
    .activate = activate,
};

TN_PLUGIN_EXPORT(plugin);
