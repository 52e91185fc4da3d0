/* SPDX-License-Identifier: MIT
 *
 * The plugin for files of tensors: its list of formats and its setting. */
#include "formats.h"

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
    if (__builtin_add_overflow(*sum, more, sum) || *sum > (uint64_t)settings.unpacked_max)
        return tn_fail(
            TN_ERR_REFUSED,
            "%s: unpacked data: too large for a file of %llu bytes; expected at most %lld bytes "
            "more than the file; if you trust it, raise TENON_FORMATS_UNPACKED_MAX",
            source->path, (unsigned long long)source->size, (long long)settings.unpacked_max);
    return TN_OK;
}

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    return settings.unpacked_max >= 0
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         "TENON_FORMATS_UNPACKED_MAX: negative, got %lld; expected a "
                         "number of bytes",
                         (long long)settings.unpacked_max);
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
