/* SPDX-License-Identifier: MIT
 *
 * The message for trees and calls that are too deep. */
#include "core/module/depth.h"

tn_status tn__depth_fail(const char *what, int64_t depth)
{
    if (depth <= TN__MODULE_DEPTH)
        return tn__stack_fail(what, depth);
    return tn_fail(TN_ERR_RUNTIME, "%s: nested too deep; expected at most %d levels", what,
                   TN__MODULE_DEPTH);
}
