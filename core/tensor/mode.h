/* SPDX-License-Identifier: MIT
 *
 * Modes of a thread that can be nested: gradient, inference and anomaly mode. */
#ifndef TN_CORE_TENSOR_MODE_H
#define TN_CORE_TENSOR_MODE_H

#include "core/tensor/internal.h"

#include <tenon/grad.h>

/* Whether gradients are off in this thread, as the innermost tn_grad_begin or tn_inference_begin
 * says. */
extern _Thread_local bool tn__grad_off_here TN__TLS_NEAR;

static inline bool tn__grad_on(void)
{
    return !tn__grad_off_here;
}
/* Begin and end a level of a mode. `depth` is the number of levels, `here` the value of the mode,
 * `now` its new value. `who` is named in errors. */
tn_status tn__mode_begin(tn__mode_kind kind, int32_t *depth, bool *here, bool now, const char *who);
void tn__mode_end(tn__mode_kind kind, int32_t *depth, bool *here, const char *who);

/* Read and restore gradient, inference and anomaly mode, in this order: the number of levels of
 * each, and in `now` whether gradients are off, whether inference mode is on, and whether anomaly
 * mode is on. Restoring works no matter how many levels have begun or ended in between. */
void tn__modes_get(int32_t depth[3], bool now[3]);
void tn__modes_set(const int32_t depth[3], const bool now[3]);
/* Number of levels of anomaly mode, which core/grad/anomaly.c begins and ends. */
extern _Thread_local int32_t tn__anomaly_depth;

/* Whether anomaly mode is on in this thread. */
extern _Thread_local bool tn__anomaly_here TN__TLS_NEAR;
static inline bool tn__anomaly_on(void)
{
    return tn__anomaly_here;
}

#endif
