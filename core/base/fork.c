/* SPDX-License-Identifier: MIT
 *
 * Support for fork(). The child process has only the forking thread, and must find the locks of
 * this folder unlocked. The handlers are registered by the first call of tn__fork_is_child(), not
 * when the library is loaded. */
#include "core/base/internal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool forked;

/* Locks in the order that all threads use: the log reads the environment while it holds its
 * lock. */
static void before(void)
{
    tn__log_fork(-1);
    tn__env_fork(-1);
}

static void in_parent(void)
{
    tn__env_fork(0);
    tn__log_fork(0);
}

static void in_child(void)
{
    atomic_store(&forked, true);
    tn__env_fork(1);
    tn__log_fork(1);
}

static void watch(void)
{
    pthread_atfork(before, in_parent, in_child);
}

bool tn__fork_is_child(void)
{
    pthread_once(&once, watch);
    return atomic_load_explicit(&forked, memory_order_relaxed);
}
