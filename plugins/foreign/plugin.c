/* SPDX-License-Identifier: MIT
 *
 * The plugin for programs of other frameworks, which become modules: its list of formats and its
 * setting. */
#include "foreign.h"
#include "program.h"

#include "zip.h"

#define SETTING "TENON_FOREIGN_UNPACKED_MAX"

static struct {
    int64_t unpacked_max;
    int64_t onnx_opset, onnx_inside_max;
} settings;

static const tn_option options[] = {
    TN_OPTION_INT(__typeof__(settings), unpacked_max, "4294967296",
                  "bytes of memory that one file may use beyond its own size"),
    TN_OPTION_INT(__typeof__(settings), onnx_opset, "17",
                  "version of the operators of models of ONNX that are written, from 17 to 23"),
    TN_OPTION_INT(__typeof__(settings), onnx_inside_max, "1073741824",
                  "bytes of tensors from which on they are in a file beside a model of ONNX"),
    TN_OPTION_END,
};

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    if (settings.onnx_opset < 17 || settings.onnx_opset > 23)
        return tn_fail(TN_ERR_VALUE,
                       "TENON_FOREIGN_ONNX_OPSET: out of range, got %lld; expected "
                       "17 to 23",
                       (long long)settings.onnx_opset);
    if (settings.onnx_inside_max < 0)
        return tn_fail(TN_ERR_VALUE,
                       "TENON_FOREIGN_ONNX_INSIDE_MAX: negative, got %lld; expected "
                       "a number of bytes",
                       (long long)settings.onnx_inside_max);
    return zip_unpacked_check(settings.unpacked_max, SETTING);
}

int64_t foreign_onnx_opset(void)
{
    return settings.onnx_opset;
}

int64_t foreign_onnx_inside(void)
{
    return settings.onnx_inside_max;
}

tn_status foreign_unpacked(const tn_source *source, uint64_t *sum, uint64_t more)
{
    return zip_unpacked(source, sum, more, settings.unpacked_max, SETTING);
}

#ifndef TN_WITH_JANSSON
/* So that a file says what is missing. */
static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    (void)source;
    return false;
}

static tn_module *load_module(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    (void)source;
    tn_fail(TN_ERR_NOT_IMPLEMENTED,
            "programs of PyTorch (.pt2) need jansson, which Tenon was built without; build it "
            "with --with-jansson (Debian: libjansson-dev)");
    return NULL;
}

const tn_format_def foreign_pt2 = {
    TN_HEAD(tn_format_def), .name = "pt2",          .help = "programs that torch.export.save wrote",
    .extensions = ".pt2",   .recognize = recognize, .load_module = load_module,
};
#endif

static const tn_interface_row interfaces[] = {
    { "tenon.foreign.programs", 0, sizeof programs_api, &programs_api, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const void *const contributions[] = { &foreign_pt2, &onnx_format };

static const tn_plugin foreign = {
    TN_HEAD(tn_plugin),
    .id = "tenon.foreign",
    .version = FOREIGN_VERSION,
    .help = "programs of other frameworks as modules: PyTorch's .pt2, ONNX",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
    .options = options,
    .options_data = &settings,
    .activate = activate,
    .interfaces = interfaces,
};

TN_PLUGIN_EXPORT(foreign);
