/* SPDX-License-Identifier: MIT
 *
 * The struct by which plugins know the host. All plugins of a process get the same one; its address
 * distinguishes two copies of the core (docs/abi.md, rule 20). */
#include "core/plugin/private.h"

#include <strings.h>

/* Not const: two copies of the core in one process must have two of these, and the linker might
 * merge identical constants. */
static tn_host_info host = { TN_HEAD(tn_host_info) };
static pthread_once_t once = PTHREAD_ONCE_INIT;
_Atomic int32_t tn__boundary_mode = -1;

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

/* Returns 1 for yes, 0 for no, -1 for any other word. */
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
        /* no memory to read the variable: the next call tries again */
        return false;
    now = value && meaning_of(value) > 0; /* with another word, tn__host_check_mode() fails */
    atomic_store_explicit(&tn__boundary_mode, now, memory_order_relaxed);
    return now;
}
