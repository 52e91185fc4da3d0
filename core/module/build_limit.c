/* SPDX-License-Identifier: MIT
 *
 * Limits what one call may build. A short spec can ask for any number of modules (repeats, layers
 * of a recurrent network). Therefore the slots that a call makes are counted and limited, and the
 * program is asked from time to time whether to continue. */
#include "core/base/stack.h"
#include "core/module/internal.h"

enum { EACH = 64 }; /* steps from one report of progress to the next */

static _Thread_local struct {
    int64_t depth, made, steps;
} build;

tn_status tn__build_limit_begin(void)
{
    if (build.depth > 0 && tn__stack_is_low())
        return tn__stack_fail("modules", build.depth);
    if (build.depth++ == 0)
        build.made = build.steps = 0;
    return TN_OK;
}

void tn__build_limit_end(void)
{
    build.depth--;
}

tn_status tn__build_limit_step(void)
{
    if (build.depth == 0 || build.steps++ % EACH != 0)
        return TN_OK;
    return tn_progress_report("modules and tensors built", (uint64_t)build.made, 0);
}

tn_status tn__build_limit_count(const char *name)
{
    if (build.depth == 0)
        return TN_OK;
    if (build.made == TN__BUILD_MAX)
        return tn_fail(TN_ERR_VALUE,
                       "\"%s\": too many modules, parameters and buffers; expected at most %d in "
                       "one call: build the parts with separate calls",
                       name, TN__BUILD_MAX);
    build.made++;
    return tn__build_limit_step();
}
