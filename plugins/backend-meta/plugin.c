/* SPDX-License-Identifier: MIT
 *
 * The device "meta": shapes and types without memory. Operators infer what they would return and
 * stop there: the core asks a device with TN_BACKEND_NO_MEMORY for no memory, copies nothing and
 * runs no kernels, so there are none here. This is also the smallest complete backend;
 * docs/plugins/backends.md explains it step by step. `tenon new backend` begins one that has
 * memory. */
#include <tenon/plugin.h>

/* How many devices there are. One that looks for hardware returns tn_fail(TN_ERR_UNAVAILABLE,
 * "why not") where there is none. */
static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

/* The handle that all other functions get. A device without a state can give any address of its
 * own. */
static tn_status device_open(const tn_backend_def *self, int32_t index, void **device)
{
    (void)self;
    static char the_device;
    (void)index;
    *device = &the_device;
    return TN_OK;
}

static void device_close(void *device)
{
    (void)device;
}

static tn_status info(void *device, tn_device_info *out)
{
    (void)device;
    tn_snprint(out->name, sizeof out->name, "shapes and types");
    tn_snprint(out->driver, sizeof out->driver, "none");
    out->memory_total = 0;
    out->memory_free = -1;
    out->compute_units = 0;
    out->alignment = 1;
    out->dtypes = TN_MASK_ALL;
    return TN_OK;
}

static const tn_backend_def meta = {
    TN_HEAD(tn_backend_def),
    .type = "meta",
    .help = "shapes and types without memory",
    .flags = TN_BACKEND_NO_MEMORY | TN_BACKEND_AFTER_FORK,
    .enumerate = enumerate,
    .open = device_open,
    .close = device_close,
    .info = info,
};

static const void *const contributions[] = { &meta };

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),   .id = "tenon.meta",
    .version = "0.1.0",   .help = "the device meta: shapes and types without memory",
    .license = "MIT",     .contributions = contributions,
    .n_contributions = 1,
};
TN_PLUGIN_EXPORT(plugin);
