/* SPDX-License-Identifier: MIT
 *
 * Autocast: the regions of a thread in which operators get inputs of lower precision, and the casts
 * of parameters that a region keeps. core/op/autocast.c casts. */
#ifndef TN_CORE_TENSOR_AUTOCAST_H
#define TN_CORE_TENSOR_AUTOCAST_H

#include "core/tensor/internal.h"

#include <tenon/grad.h>

/* Whether autocast is on in this thread, for any device type. */
extern _Thread_local bool tn__autocast_here TN__TLS_NEAR;
static inline bool tn__autocast_on(void)
{
    return tn__autocast_here;
}
/* Switches autocast off and returns whether it was on, for tn__autocast_resume(). */
static inline bool tn__autocast_pause(void)
{
    bool before = tn__autocast_here;

    tn__autocast_here = false;
    return before;
}
static inline void tn__autocast_resume(bool before)
{
    tn__autocast_here = before;
}

/* What a thread has set, for each device type. */
typedef struct tn__autocast_modes {
    uint8_t dtype[TN__MAX_DEVICE_TYPES]; /* dtype + 1; 0: off */
} tn__autocast_modes;

/* Returns the dtype of the region for a device type, TN_DTYPE_AUTO if autocast is off for it. */
tn_dtype tn__autocast_dtype_of(const tn__device_type *type);
/* Number of regions that this thread has begun and not ended. */
int64_t tn__autocast_depth(void);
void tn__autocast_get(tn__autocast_modes *modes);
/* Begins a region with the modes of another region, but without its casts. The caller must call
 * tn_autocast_end() even if this fails. */
tn_status tn__autocast_begin_with(const tn__autocast_modes *modes);

/* tn__autocast_cached() returns the cast of a tensor that the region keeps, NULL if there is none
 * that is up to date. tn__autocast_cache() makes the region keep a cast, if it keeps any. */
tn_tensor *tn__autocast_cached(const tn_tensor *tensor, tn_dtype dtype, bool recorded);
tn_status tn__autocast_cache(tn_tensor *tensor, tn_tensor *cast, bool recorded);

#endif
