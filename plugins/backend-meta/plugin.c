/* SPDX-License-Identifier: MIT
 *
 * The device "meta", whose tensors have a shape and a dtype but no memory. Operators only infer
 * shape and dtype of their results: for a device with TN_BACKEND_NO_MEMORY, the core allocates no
 * memory, copies nothing and runs no kernels, so this file defines none of these functions. This is
 * also the smallest complete backend; docs/plugins/backends.md explains it step by step.
 * `tenon new backend` creates the source of a backend that has memory. */
#include <tenon/plugin.h>

/* Sets the number of devices. A backend for hardware returns tn_fail(TN_ERR_UNAVAILABLE, "reason")
 * if there is no device. */
static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

/* Sets the handle that is passed to all other functions. A device without state can use any address
 * that belongs to the plugin. */
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
    tn_snprint(out->name, sizeof out->name, "shapes and dtypes");
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
    .help = "shapes and dtypes without memory",
    .flags = TN_BACKEND_NO_MEMORY | TN_BACKEND_AFTER_FORK,
    .enumerate = enumerate,
    .open = device_open,
    .close = device_close,
    .info = info,
};

static const void *const contributions[] = { &meta };

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),   .id = "tenon.meta",
    .version = "0.1.0",   .help = "the device meta: shapes and dtypes without memory",
    .license = "MIT",     .contributions = contributions,
    .n_contributions = 1,
};
TN_PLUGIN_EXPORT(plugin);
