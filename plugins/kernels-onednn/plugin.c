/* SPDX-License-Identifier: MIT
 *
 * A kernel pack: kernels of oneDNN for the cpu device, used for shapes for which they were measured
 * to be faster than the device's own kernels. */
#include <string.h>
#include <unistd.h>

#include "onednn.h"
#include "plan.h"

pid_t onednn_process;
bool onednn_all_shapes;

static struct options {
    const char *library, *shapes;
} options_data;

static const tn_option options[] = {
    TN_OPTION_STRING(struct options, library, "\"libdnnl.so.2\"", "oneDNN, a name or a path"),
    TN_OPTION_STRING(
        struct options, shapes, "'faster'",
        "the shapes for which oneDNN is used: faster (only if it was measured to be faster than "
        "the device's own kernels) or all"),
    TN_OPTION_END
};

#define CONVOLUTION(op_)                                                                           \
    {                                                                                              \
        TN_HEAD(tn_kernel_def),                                                                    \
            .op = op_, .device = "cpu", .name = "onednn_" op_, .revision = 1,                      \
            .dtypes = TN_BIT(TN_F32), .priority = 10, .flags = TN_KERNEL_OVERRIDE,                 \
            .supports = onednn_convolution_supports, .workspace = onednn_convolution_workspace,    \
            .run = onednn_convolution                                                              \
    }

/* An operator that is a convolution with an activation. Where oneDNN computes the convolution, the
 * core runs the operator's decomposition. So the bits are the same as those of two separate
 * calls. */
#define PARTS(op_)                                                                                 \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = op_, .device = "cpu", .name = "onednn_" op_, .revision = 1,  \
                                .dtypes = TN_BIT(TN_F32), .priority = 10,                          \
                                .flags = TN_KERNEL_OVERRIDE | TN_KERNEL_DECOMPOSE,                 \
                                .supports = onednn_convolution_supports                            \
    }

static const tn_kernel_def kernels[] = {
    PARTS("convolution_activation"),
    CONVOLUTION("convolution"),
    CONVOLUTION("convolution_grad_input"),
    CONVOLUTION("convolution_grad_weight"),
};

static const tn_requirement requirements[] = { { "tenon.cpu", "0.1.0", "1.0.0", NULL },
                                               { NULL, NULL, NULL, NULL } };

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    const char *shapes = options_data.shapes ? options_data.shapes : "faster";

    onednn_process = getpid();
    onednn_all_shapes = strcmp(shapes, "all") == 0;
    if (!onednn_all_shapes && strcmp(shapes, "faster") != 0)
        return tn_fail(TN_ERR_VALUE, "TENON_ONEDNN_SHAPES: unknown, got %s; expected faster or all",
                       shapes);
    return dnnl_api_open(options_data.library ? options_data.library : "libdnnl.so.2");
}

static void deactivate(const tn_plugin *self)
{
    (void)self;
    plan_forget_all();
    dnnl_api_close();
}

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "tenon.onednn",
    .version = "0.1.0",
    .help = "oneDNN's kernels for the cpu device, for shapes for which they are faster",
    .license = "MIT",
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof *kernels,
    .kernel_size = sizeof(tn_kernel_def),
    .flags = TN_PLUGIN_OWN_THREADS,
    .requires_ = requirements,
    .options = options,
    .options_data = &options_data,
    .activate = activate,
    .deactivate = deactivate,
};
TN_PLUGIN_EXPORT(plugin);
