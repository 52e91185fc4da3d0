/* SPDX-License-Identifier: MIT
 *
 * The plugin: its options, its kernels, and its activation, which opens the OpenCL loader. */
#include "opencl.h"

static const tn_option options[] = {
    TN_OPTION_STRING(struct opencl_options, library, "\"libOpenCL.so.1\"",
                     "the OpenCL loader to open, a name or a path"),
    TN_OPTION_STRING(struct opencl_options, build, "\"\"",
                     "additional options for the OpenCL compiler, such as -cl-fast-relaxed-math"),
    TN_OPTION_END
};

#define GPU_DEVICE "opencl"
#define GPU_BMM_RUN gpu_run_bmm
#define GPU_BMM_WORKSPACE NULL
#define GPU_CAPTURE 0
static const tn_kernel_def kernels[] = {
#include "../gpu/kernel_defs.h"
};

static const void *const contributions[] = { &opencl_backend };

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    return cl_api_open(opencl_options.library ? opencl_options.library : "libOpenCL.so.1");
}

static void deactivate(const tn_plugin *self)
{
    (void)self;
    opencl_reset();
}

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "tenon.opencl",
    .version = "0.1.0",
    .help = "the device type opencl, through the ICD loader",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = 1,
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof *kernels,
    .kernel_size = sizeof(tn_kernel_def),
    .options = options,
    .options_data = &opencl_options,
    .activate = activate,
    .deactivate = deactivate,
};

TN_PLUGIN_EXPORT(plugin);
