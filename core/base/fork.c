/* SPDX-License-Identifier: MIT
 *
 * fork: the child has one thread, and finds the locks of this folder free. The handlers are
 * registered by the first call that needs to know, not when the library is loaded. */
#include "core/base/internal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool forked;

/* In the order in which threads take these locks: the log asks the environment. */
static void before(void)
{
    tn__log_fork(-1);
    tn__env_fork(-1);
    tn__pool_fork(-1);
}

static void in_parent(void)
{
    tn__pool_fork(0);
    tn__env_fork(0);
    tn__log_fork(0);
}

static void in_child(void)
{
    atomic_store(&forked, true);
    tn__pool_fork(1);
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
