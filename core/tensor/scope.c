/* SPDX-License-Identifier: MIT
 *
 * Scopes own the tensors that operators return. A thread has one array of references; each scope
 * owns the part of it that begins at its mark. The references before the first mark belong to the
 * root scope, which ends with the thread. */
#include "core/tensor/thread.h"

#define ROOT_WARNING 65536
#define THREAD_OF(number) ((number) >> 40)

/* Drops the references from `start` to the end of the array. Release functions may run, and may
 * push and drop tensors themselves: each reference leaves the array before it is dropped. */
static void drop_from(tn__thread *thread, int64_t start)
{
    while (thread->n_owned > start)
        tn_tensor_drop(thread->owned[--thread->n_owned]);
}

uint64_t tn_scope_begin(void)
{
    tn__thread *thread = tn__thread_get();
    tn__scope_mark *mark;

    if (tn__unlikely(thread == NULL) || (tn__unlikely(thread->n_marks >= thread->marks_capacity) &&
                                         !tn__vector_room(&thread->marks, &thread->marks_capacity,
                                                          thread->n_marks + 1, sizeof *mark)))
        return 0;
    mark = &thread->marks[thread->n_marks++];
    mark->number = ++thread->next_scope;
    mark->start = thread->n_owned;
    return mark->number;
}

static inline bool is_innermost(const tn__thread *thread, uint64_t number)
{
    return thread != NULL && thread->n_marks > 0 &&
           thread->marks[thread->n_marks - 1].number == number;
}

/* Returns the place of a scope among the marks; -1 if the scope has ended. */
static int64_t find(const tn__thread *thread, uint64_t number)
{
    if (is_innermost(thread, number))
        return thread->n_marks - 1;
    for (int64_t i = thread->n_marks - 1; i >= 0; i--)
        if (thread->marks[i].number <= number)
            return thread->marks[i].number == number ? i : -1;
    return -1;
}

/* Returns whether a scope belongs to another thread. The numbers of a thread only grow, so a scope
 * of this thread that is not among the marks has ended. */
static bool is_foreign(const tn__thread *thread, uint64_t number)
{
    return number != 0 && (thread == NULL || THREAD_OF(number) != THREAD_OF(thread->next_scope));
}

void tn_scope_end(uint64_t scope)
{
    tn__thread *thread = tn__thread_here;
    int64_t at;

    if (tn__likely(is_innermost(thread, scope))) {
        /* The mark stays while tensors are dropped, so scopes that release functions begin are
         * above it. */
        at = thread->n_marks - 1;
        drop_from(thread, thread->marks[at].start);
        thread->n_marks = at;
        return;
    }
    if (is_foreign(thread, scope)) {
        tn_fail(
            TN_ERR_RUNTIME,
            "tn_scope_end: scope %llu was not begun by this thread; the thread that begins a scope "
            "must end it",
            (unsigned long long)scope);
        return;
    }
    if (thread == NULL || scope == 0 || (at = find(thread, scope)) < 0)
        return;
    drop_from(thread, thread->marks[at].start);
    thread->n_marks = at;
}

void tn_scope_end_with(uint64_t scope, tn_tensor *const *tensors, int64_t count)
{
    tn__thread *thread = tn__thread_here;
    int64_t at, start, kept;

    if (is_foreign(thread, scope) || count <= 0 || tensors == NULL) {
        tn_scope_end(scope);
        tn__given(tensors != NULL || count <= 0, "tn_scope_end_with: tensors");
        return;
    }
    if (thread == NULL || scope == 0 || (at = find(thread, scope)) < 0)
        return;
    kept = start = thread->marks[at].start;
    if (!tn__vector_room(&thread->owned, &thread->owned_capacity, start + count + 1,
                         sizeof *thread->owned)) {
        /* No memory for new references. Instead, the references that this scope owns to these
         * tensors move to the front, and only those behind them are dropped. */
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = kept; k < thread->n_owned; k++)
                if (thread->owned[k] == tensors[i]) {
                    thread->owned[k] = thread->owned[kept];
                    thread->owned[kept++] = tensors[i];
                    break;
                }
        drop_from(thread, kept);
        thread->n_marks = at;
        return;
    }
    for (int64_t i = 0; i < count; i++)
        if (tn__tensor_ok(tensors[i]))
            tn_tensor_keep(tensors[i]);
    drop_from(thread, start);
    thread->n_marks = at;
    for (int64_t i = 0; i < count; i++)
        if (tn__tensor_ok(tensors[i]))
            thread->owned[thread->n_owned++] = tensors[i];
}

tn_tensor *tn__scope_push(tn_tensor *tensor)
{
    tn__thread *thread = tn__thread_here;

    if (tn__unlikely(thread == NULL || thread->n_owned >= thread->owned_capacity)) {
        thread = tn__thread_get();
        if (thread == NULL || !tn__vector_room(&thread->owned, &thread->owned_capacity,
                                               thread->n_owned + 1, sizeof *thread->owned)) {
            tn_tensor_drop(tensor);
            return NULL;
        }
    }
    thread->owned[thread->n_owned++] = tensor;
    if (tn__unlikely(thread->n_marks == 0 && thread->n_owned >= ROOT_WARNING && !thread->warned)) {
        thread->warned = true;
        tn__log(
            TN_LOG_WARNING,
            "%d tensors are held by the root scope of this thread, until the thread ends: open a "
            "scope (TN_SCOPE; or tn_scope_begin) around each step",
            ROOT_WARNING);
    }
    return tensor;
}

tn_tensor *tn_tensor_to_scope(tn_tensor *tensor)
{
    if (!tn__tensor_ok(tensor)) {
        if (tensor == NULL)
            tn__tensor_bad(tensor, "tn_tensor_to_scope");
        return tensor;
    }
    return tn__scope_push(tensor);
}

void tn__scope_end_all(tn__thread *thread)
{
    do {
        thread->n_marks = 0;
        drop_from(thread, 0);
    } while (thread->n_owned > 0 || thread->n_marks > 0);
}
