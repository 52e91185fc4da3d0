/* SPDX-License-Identifier: MIT
 *
 * Which library this is, and how it is put away. */
#include "core/module/internal.h"

const char *tn_version(void)
{
    return PACKAGE_VERSION;
}

/* From the top of the house down: what calls plugins first, the plugins next, then what they
 * called. The environment table stays: its strings live until the process ends. */
void tn_shutdown(void)
{
    tn__observers_shutdown();
    tn__devices_shutdown();
    tn__plugins_shutdown();
    tn__pool_shutdown();
    tn__log_shutdown();
}
