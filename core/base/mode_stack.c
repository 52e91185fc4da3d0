/* SPDX-License-Identifier: MIT
 *
 * The previous values of a thread's modes: for each pair of begin and end that nests
 * (tn_dtype_begin, tn_grad_begin, ...), the value before each begin. The memory is allocated at the
 * first begin of a thread and freed when the thread ends. It is not thread-local storage itself,
 * because the loader has little space for that: a program that opens libtenon with dlopen after
 * other libraries might fail to load it. */
#include "core/base/internal.h"

#include <stdlib.h>

struct stacks {
    uint16_t before[TN__MODE_KINDS][TN__MODE_DEPTH]; /* value + 1; 0: not stored */
};

static _Thread_local struct stacks *here TN__TLS_NEAR;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

static void at_thread_end(void *stacks)
{
    here = NULL;
    free(stacks);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, at_thread_end) == 0;
}

static struct stacks *make(void)
{
    /* Not from the program's allocator (tn_set_allocator): tn_shutdown() must free all memory of
     * that allocator, but cannot free what belongs to other threads. */
    struct stacks *fresh = calloc(1, sizeof *fresh);

    pthread_once(&key_once, make_key);
    if (fresh != NULL && key_made && pthread_setspecific(key, fresh) == 0)
        return here = fresh;
    free(fresh);
    return NULL;
}

bool tn__mode_stack_push(tn__mode_kind kind, int32_t depth, uint8_t before)
{
    struct stacks *stacks = tn__likely(here != NULL) ? here : make();

    if (stacks == NULL)
        return false;
    stacks->before[kind][depth] = (uint16_t)(before + 1);
    return true;
}

bool tn__mode_stack_pop(tn__mode_kind kind, int32_t depth, uint8_t *before)
{
    const uint16_t *place = here != NULL ? &here->before[kind][depth] : NULL;

    if (place == NULL || *place == 0)
        return false;
    *before = (uint8_t)(*place - 1);
    return true;
}
