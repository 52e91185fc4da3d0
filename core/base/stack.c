/* SPDX-License-Identifier: MIT
 *
 * Where the stack of this thread ends. */
#include "core/base/stack.h"

#include <pthread.h>

/* What a level may use before it asks again: kernels, texts of messages, functions of plugins. A
 * small stack keeps a half. */
#define RESERVE ((size_t)64 << 10)

_Thread_local tn__stack_end tn__stack_here TN__TLS_NEAR = { 0, SIZE_MAX };

/* Returns the size of the stack, and sets *low to its lowest address; 0 if they are not known. */
static size_t ask(uintptr_t *low)
{
    size_t size = 0;
#ifdef __linux__
    pthread_attr_t attr;
    void *at;

    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return 0;
    if (pthread_attr_getstack(&attr, &at, &size) == 0)
        *low = (uintptr_t)at;
    else
        size = 0;
    pthread_attr_destroy(&attr);
#endif
    return size;
}

bool tn__stack_reaches(uintptr_t address)
{
    tn__stack_end end = { 0, 0 };
    size_t size = ask(&end.low);

    /* Asked again each time before a refusal: the first thread's stack grows with the limit of the
     * process. */
    end.reserve = size / 2 < RESERVE ? size / 2 : RESERVE;
    tn__stack_here = end;
    return address - end.low < end.reserve;
}

tn_status tn__stack_fail(const char *what, int64_t depth)
{
    uintptr_t low;

    return tn_fail(TN_ERR_RUNTIME,
                   "%s: nested too deep for the stack of this thread, got %lld levels in %lld kB; "
                   "expected fewer levels, or a thread with a larger stack",
                   what, (long long)depth, (long long)(ask(&low) >> 10));
}
