/* SPDX-License-Identifier: MIT
 *
 * tn_shutdown: releases what the library has acquired, when the program wants it. */
#include "core/data/internal.h"
#include "core/op/internal.h"

/* Shuts down the parts in the order of their dependence: first what calls plugins, then the
 * plugins, then what the plugins call. The table of environment variables stays, because its
 * strings must live until the process ends. */
void tn_shutdown(void)
{
    tn__loaders_shutdown();
    tn__observers_shutdown();
    tn__devices_shutdown();
    tn__plugins_shutdown();
    tn__pool_shutdown();
    tn__log_shutdown();
}
