/* SPDX-License-Identifier: MIT
 *
 * tn_shutdown: releases what the library has acquired, when the program asks for it. */
#include "lib/data/internal.h"
#include "core/op/internal.h"

/* Shuts down the parts in the order of their dependence: first what calls plugins, then the
 * plugins, then what the plugins call. One copy of the registries stays, for objects that are still
 * alive and for messages of later calls, and the table of environment variables, whose strings must
 * live until the process ends. */
void tn_shutdown(void)
{
    tn__loaders_shutdown();
    tn__observers_shutdown();
    tn__devices_shutdown();
    tn__plugins_shutdown();
    tn__op_registry_shutdown();
    tn__thread_pool_shutdown();
    tn__log_shutdown();
}
