/* SPDX-License-Identifier: MIT
 *
 * What the host is to a plugin: one struct, the same for all, whose address distinguishes two
 * copies of the core (rule 20). */
#include "core/plugin/private.h"

#include <strings.h>

/* Not const: two cores in one process have two of these, and identical constants might be
 * merged. */
static tn_host_info host = { TN_HEAD(tn_host_info) };
static pthread_once_t once = PTHREAD_ONCE_INIT;
_Atomic int32_t tn__check_mode = -1;

static void prepare(void)
{
    host.version = tn_version();
    host.interface_find = tn__plugin_up.host_interface;
}

const tn_host_info *tn__host_info(void)
{
    pthread_once(&once, prepare);
    return &host;
}

/* 1, 0, or -1 for a word that is neither. */
static int32_t meaning_of(const char *word)
{
    static const char *const words[] = { "0", "1", "false", "true", "off", "on" };
    for (int32_t i = 0; i < tn__countof(words); i++)
        if (!strcasecmp(word, words[i]))
            return i % 2;
    return -1;
}

tn_status tn__host_check_mode(void)
{
    const char *value;
    tn_status status = tn__env_read("TENON_CHECK", &value);
    if (status == TN_OK && value && meaning_of(value) < 0)
        status = tn_fail(TN_ERR_VALUE,
                         "TENON_CHECK: wrong value, got %q; expected 0, 1, false, true, off or on",
                         value);
    return status;
}

bool tn__host_ask_check_mode(void)
{
    const char *value;
    int32_t now;

    if (tn__env_read("TENON_CHECK", &value) != TN_OK)
        return false;                     /* no memory to read it: asked again at the next call */
    now = value && meaning_of(value) > 0; /* another word fails every look for plugins */
    atomic_store_explicit(&tn__check_mode, now, memory_order_relaxed);
    return now;
}
