/* SPDX-License-Identifier: MIT
 *
 * The modes of a thread that nest: gradient, inference and anomaly mode. */
#ifndef TN_CORE_TENSOR_MODE_H
#define TN_CORE_TENSOR_MODE_H

#include "core/tensor/internal.h"

/* A mode of the thread that nests: what it was before, a bit for each level. What it is now is a
 * variable of its own, for fast access. */
typedef struct tn__grad_mode {
    int32_t depth;
    uint64_t before[16];
} tn__grad_mode;
/* Grad mode of the thread: the innermost tn_grad_begin. */
extern _Thread_local bool tn__grad_off_here TN__TLS_NEAR;

static inline bool tn__grad_on(void)
{
    return !tn__grad_off_here; /* also in inference mode */
}
/* `here` is what the mode is now; `who` is named in the error of an end without begin. */
tn_status tn__mode_begin(tn__grad_mode *mode, bool *here, bool now, const char *who);
void tn__mode_end(tn__grad_mode *mode, bool *here, const char *who);

/* Gradient, inference and anomaly mode, in this order: how deep they are nested, and what they
 * are. Setting puts back what was asked for before, however many have begun or ended since. */
void tn__modes_get(int32_t depth[3], bool now[3]);
void tn__modes_set(const int32_t depth[3], const bool now[3]);
/* The part of core/grad/anomaly.c in it. */
extern _Thread_local tn__grad_mode tn__anomaly_mode;

/* Anomaly mode of the thread. */
extern _Thread_local bool tn__anomaly_here TN__TLS_NEAR;
static inline bool tn__anomaly_on(void)
{
    return tn__anomaly_here;
}

#endif
