/* SPDX-License-Identifier: MIT
 *
 * The end of the library, at the program's wish. */
#include "core/op/internal.h"

/* From higher folders to lower ones: what calls plugins first, the plugins next, then what they
 * called. The environment table stays: its strings live until the process ends. */
void tn_shutdown(void)
{
    tn__observers_shutdown();
    tn__devices_shutdown();
    tn__plugins_shutdown();
    tn__pool_shutdown();
    tn__log_shutdown();
}
