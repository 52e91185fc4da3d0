/* SPDX-License-Identifier: MIT
 *
 * Long calls: the callback by which a program observes their progress and can cancel them. */
#include "core/base/internal.h"

static _Thread_local struct {
    tn_progress callback;
    void *user;
} progress;

void tn_set_progress(tn_progress callback, void *user)
{
    progress.callback = callback;
    progress.user = user;
}

tn_status tn_progress_report(const char *what, uint64_t done, uint64_t total)
{
    if (!tn__given(what != NULL, "tn_progress_report: what"))
        return TN_ERR_VALUE;
    if (!progress.callback || progress.callback(progress.user, what, done, total))
        return TN_OK;
    if (total)
        return tn_fail(TN_ERR_CANCELLED,
                       "%s: cancelled by the progress callback of the program, at %llu of %llu",
                       what, (unsigned long long)done, (unsigned long long)total);
    return tn_fail(TN_ERR_CANCELLED,
                   "%s: cancelled by the progress callback of the program, at %llu", what,
                   (unsigned long long)done);
}
