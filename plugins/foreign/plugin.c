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
} settings;

static const tn_option options[] = {
    TN_OPTION_INT(__typeof__(settings), unpacked_max, "4294967296",
                  "bytes of memory that one file may use beyond its own size"),
    TN_OPTION_END,
};

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    return zip_unpacked_check(settings.unpacked_max, SETTING);
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
    .version = "0.1.0",
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
