/* SPDX-License-Identifier: MIT
 *
 * Where the stack of this thread ends. */
#include "core/base/stack.h"

#include <pthread.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/resource.h>
#endif

/* What a level may use before it asks again: kernels, texts of messages, functions of plugins. A
 * small stack keeps a half. */
#define RESERVE ((size_t)64 << 10)

_Thread_local tn__stack_end tn__stack_here TN__TLS_NEAR = { 0, SIZE_MAX };

#ifdef __linux__
/* Returns the size of the stack of `size` bytes from `low`, with what it may still grow by if it is
 * the one that the process began on. The C library lets that end at the next mapping, which is a
 * part of the stack itself where something else than the kernel makes it grow: under valgrind in a
 * forked process, for example. The kernel keeps mappings 128 MB away from it. */
static size_t grown(uintptr_t low, size_t size)
{
    const size_t gap = (size_t)128 << 20;
    uintptr_t began = (uintptr_t)getauxval(AT_RANDOM); /* put there when the process began */
    struct rlimit limit;

    if (began - low >= size || getrlimit(RLIMIT_STACK, &limit) != 0)
        return size;
    size_t most = limit.rlim_cur < gap ? (size_t)limit.rlim_cur : gap;
    return size < most ? most : size;
}
#endif

/* Returns the size of the stack, and sets *low to its lowest address; 0 if they are not known. */
static size_t ask(uintptr_t *low)
{
    size_t size = 0;
#ifdef __linux__
    pthread_attr_t attr;
    void *at;

    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return 0;
    if (pthread_attr_getstack(&attr, &at, &size) == 0) {
        size_t whole = grown((uintptr_t)at, size);
        *low = (uintptr_t)at + size - whole;
        size = whole;
    } else
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
