/* SPDX-License-Identifier: MIT
 *
 * What the host is to a plugin: one struct, the same for all, whose address tells two copies of
 * the core apart (rule 20). */
#include "core/plugin/loader.h"

/* Not const: two cores in one process have two of these, and identical constants might be
 * merged. */
static tn_host_info host = { TN_HEAD(tn_host_info), .interface_find = tn__host_interface };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic int32_t checked = -1;

static void prepare(void)
{
    host.version = tn_version();
}

const tn_host_info *tn__host_info(void)
{
    pthread_once(&once, prepare);
    return &host;
}

bool tn__checked(void)
{
    int32_t now = atomic_load_explicit(&checked, memory_order_relaxed);
    if (tn__likely(now >= 0))
        return now;
    const char *value;
    if (tn__plugin_env("TENON_CHECK", &value) != TN_OK)
        return false; /* no memory to read it: asked again at the next call */
    now = value && *value && strcmp(value, "0") && strcmp(value, "off");
    atomic_store_explicit(&checked, now, memory_order_relaxed);
    return now;
}
