/* SPDX-License-Identifier: MIT
 *
 * The plugin: its options, its kernels, and its activation, which opens the OpenCL loader. */
#include "opencl.h"

#include <dlfcn.h>

static const tn_option options[] = {
    TN_OPTION_STRING(struct opencl_options, library, "\"libOpenCL.so.1\"",
                     "the OpenCL loader to open, a name or a path"),
    TN_OPTION_STRING(struct opencl_options, build, "\"\"",
                     "additional options for the OpenCL compiler, such as -cl-fast-relaxed-math"),
    TN_OPTION_INT(struct opencl_options, seconds, "30",
                  "the longest time of one step when drivers are tried in a child process, 1 to "
                  "86400"),
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

/* Returns whether the program itself has opened the drivers. Then they work here, and a child of
 * fork would have them without their threads. */
static bool opened_before(const char *library)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

    if (!handle)
        handle = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    const char *library = opencl_options.library ? opencl_options.library : "libOpenCL.so.1";

    if (opencl_options.seconds < 1 || opencl_options.seconds > 86400)
        return tn_fail(TN_ERR_VALUE,
                       "TENON_OPENCL_SECONDS: out of range, got %lld; expected 1 to 86400",
                       (long long)opencl_options.seconds);
    tn_status status = opened_before(library) ? TN_OK
                                              : opencl_probe_drivers(library, opencl_probes);

    return status == TN_OK ? cl_api_open(library) : status;
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
