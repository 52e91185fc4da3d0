/* SPDX-License-Identifier: MIT
 *
 * The version of this library. */
#include "core/base/internal.h"

const char *tn_version(void)
{
    return PACKAGE_VERSION;
}
