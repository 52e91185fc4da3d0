/* SPDX-License-Identifier: MIT
 *
 * The plugin for files of tensors: its list of formats and its setting. */
#include "formats.h"
#include "zip.h"

#define SETTING "TENON_FORMATS_UNPACKED_MAX"

static struct {
    int64_t unpacked_max;
} settings;

static const tn_option options[] = {
    TN_OPTION_INT(__typeof__(settings), unpacked_max, "4294967296",
                  "bytes of memory that one file may use beyond its own size"),
    TN_OPTION_END,
};

tn_status formats_unpacked(const tn_source *source, uint64_t *sum, uint64_t more)
{
    return zip_unpacked(source, sum, more, settings.unpacked_max, SETTING);
}

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    return zip_unpacked_check(settings.unpacked_max, SETTING);
}

static const void *const contributions[] = {
#ifdef TN_WITH_JANSSON
    &format_safetensors, &format_safetensors_index,
    &format_script,
#endif
    &format_checkpoint,  &format_npy,
    &format_npz,         &format_pytorch,
    &format_others, /* last: the formats before it know their files better */
};

static const tn_plugin formats = {
    TN_HEAD(tn_plugin),
    .id = "tenon.formats",
    .version = "0.1.0",
    .help = "files of tensors: safetensors, scripts, checkpoints, npy, npz, PyTorch's own",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
    .options = options,
    .options_data = &settings,
    .activate = activate,
};

TN_PLUGIN_EXPORT(formats);
