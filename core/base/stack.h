/* SPDX-License-Identifier: MIT
 *
 * How much of the stack of this thread is left. Trees of modules are walked and called by functions
 * that call themselves, so their depth is limited by the stack, and a stack that is too small must
 * be an error. */
#ifndef TN_CORE_BASE_STACK_H
#define TN_CORE_BASE_STACK_H

#include "core/base/internal.h"

/* The lowest address of the stack, and how many bytes from there on are kept for what the innermost
 * level does. Until they are known, `reserve` is SIZE_MAX; where the system does not tell them, it
 * is 0. */
typedef struct tn__stack_end {
    uintptr_t low;
    size_t reserve;
} tn__stack_end;

extern _Thread_local tn__stack_end tn__stack_here TN__TLS_NEAR;

/* Asks the system for the end of the stack, and returns whether `address` is in the reserve. */
bool tn__stack_reaches(uintptr_t address);

/* Returns whether the stack has no room for another level. A program may call from a stack of its
 * own, as coroutines do; nothing is known of such a stack, and it is never low. */
static inline bool tn__stack_is_low(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    return tn__unlikely(here - tn__stack_here.low < tn__stack_here.reserve) &&
           tn__stack_reaches(here);
}

/* Sets the error of a function that needs more stack: `what` names the function or the object,
 * `depth` is its level. Returns the code. */
tn_status tn__stack_fail(const char *what, int64_t depth);

#endif
