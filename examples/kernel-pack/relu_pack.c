/* SPDX-License-Identifier: MIT
 *
 * A kernel pack: a plugin with kernels for the device of another plugin. This relu is preferred to
 * the relu of the strict device, because it has priority 10 and TN_KERNEL_OVERRIDE. It queues its
 * work through the interface that the device publishes, and logs the number of its calls. Calls
 * that relu_supports() refuses (all but float32) go to the device's own kernel. */
#include <stdatomic.h>

#include "../strict-device/strict.h"

static _Atomic(const struct strict_api *) strict;
static _Atomic int64_t calls;

/* Returns the interface that the device publishes, NULL if there is none. Keeps the interface for
 * later calls. */
static const struct strict_api *find_api(void)
{
    const struct strict_api *api = atomic_load(&strict);
    if (!api) {
        const tn_device *device = tn_device_find("strict");
        api = device ? tn_device_native(device, STRICT_API_ID) : NULL;
        atomic_store(&strict, api);
    }
    return api;
}

/* Computes y = max(x, 0). Runs on the device's thread. */
static tn_status relu_body(struct strict_work *work)
{
    const struct strict_api *api = atomic_load(&strict);
    const struct strict_view *y = &work->view[0], *x = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do {
        double value = api->get(work, x, strict_place(x, index, y->ndim));
        api->set(work, y, strict_place(y, index, y->ndim), value < 0 ? 0 : value);
    } while (strict_step(index, y));
    return TN_OK;
}

static bool relu_supports(const tn_call *call, char *reason, size_t size)
{
    if (tn_view_dtype(call->in[0]) == TN_F32)
        return true;
    tn_snprint(reason, size, "this pack is for float32");
    return false;
}

static tn_status relu_run(const tn_call *call)
{
    const struct strict_api *api = find_api();
    if (!api)
        return tn_fail(TN_ERR_RUNTIME,
                       "strict: API %s: the device does not offer it; expected one that does",
                       STRICT_API_ID);
    int64_t count = atomic_fetch_add(&calls, 1) + 1;
    tn_log(TN_LOG_INFO, "relu pack: call %lld", (long long)count);
    return api->enqueue(call, relu_body, NULL);
}

static const tn_kernel_def relu = {
    TN_HEAD(tn_kernel_def),
    .op = "relu",
    .device = "strict",
    .name = "relu_pack",
    .revision = 1,
    .dtypes = TN_BIT(TN_F32) | TN_BIT(TN_F64),
    .priority = 10,
    .flags = TN_KERNEL_OVERRIDE | TN_KERNEL_CAPTURE_SAFE,
    .supports = relu_supports,
    .run = relu_run,
};

static const tn_requirement requirements[] = { { "org.example.strict", "1.0.0", "2.0.0", NULL },
                                               { NULL, NULL, NULL, NULL } };
static const void *const contributions[] = { &relu };

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),   .id = "org.example.relu-pack",
    .version = "1.0.0",   .help = "a faster relu for the strict device",
    .license = "MIT",     .contributions = contributions,
    .n_contributions = 1, .requires_ = requirements,
};
TN_PLUGIN_EXPORT(plugin);
