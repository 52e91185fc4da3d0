/* SPDX-License-Identifier: MIT
 *
 * The modes of a thread that nest: gradient, inference and anomaly mode. */
#ifndef TN_CORE_TENSOR_MODE_H
#define TN_CORE_TENSOR_MODE_H

#include "core/tensor/internal.h"

/* Grad mode of the thread: the innermost tn_grad_begin. */
extern _Thread_local bool tn__grad_off_here TN__TLS_NEAR;

static inline bool tn__grad_on(void)
{
    return !tn__grad_off_here; /* also in inference mode */
}
/* A mode that nests: how deep it is, and what it is now (`here`). `who` is named in errors. */
tn_status tn__mode_begin(tn__level_kind kind, int32_t *depth, bool *here, bool now,
                         const char *who);
void tn__mode_end(tn__level_kind kind, int32_t *depth, bool *here, const char *who);

/* Gradient, inference and anomaly mode, in this order: how deep they are nested, and what they
 * are. Setting puts back what was asked for before, however many have begun or ended since. */
void tn__modes_get(int32_t depth[3], bool now[3]);
void tn__modes_set(const int32_t depth[3], const bool now[3]);
/* The part of core/grad/anomaly.c in it. */
extern _Thread_local int32_t tn__anomaly_depth;

/* Anomaly mode of the thread. */
extern _Thread_local bool tn__anomaly_here TN__TLS_NEAR;
static inline bool tn__anomaly_on(void)
{
    return tn__anomaly_here;
}

#endif
