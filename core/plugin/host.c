/* SPDX-License-Identifier: MIT
 *
 * What the host is to a plugin: one struct, the same for all, whose address tells two copies of
 * the core apart (rule 20). */
#include "core/plugin/loader.h"

/* Not const: two cores in one process have two of these, and identical constants might be
 * merged. */
static tn_host_info host = { TN_HEAD(tn_host_info), .interface_find = tn__host_interface };
static pthread_once_t once = PTHREAD_ONCE_INIT;
_Atomic int32_t tn__check_mode = -1;

static void prepare(void)
{
    host.version = tn_version();
}

const tn_host_info *tn__host_info(void)
{
    pthread_once(&once, prepare);
    return &host;
}

bool tn__check_mode_ask(void)
{
    const char *value;
    int32_t now;

    if (tn__plugin_env("TENON_CHECK", &value) != TN_OK)
        return false; /* no memory to read it: asked again at the next call */
    now = value && *value && strcmp(value, "0") && strcmp(value, "off");
    atomic_store_explicit(&tn__check_mode, now, memory_order_relaxed);
    return now;
}
