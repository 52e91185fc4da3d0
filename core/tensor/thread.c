/* SPDX-License-Identifier: MIT
 *
 * The state that a thread keeps for tensors, from the first time it is needed until the thread
 * ends. */
#include "core/tensor/thread.h"

__thread tn__thread *tn__thread_here __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;
static _Atomic uint64_t threads;

/* Counters of graph nodes. A thread has a counter for its lifetime and leaves its count in it. A
 * thread that finds no free counter uses tn__nodes_elsewhere, with others. */
enum { PLACES = 64 };
static struct {
    _Alignas(64) _Atomic int64_t nodes;
    _Atomic bool taken;
} places[PLACES];
_Atomic int64_t tn__nodes_elsewhere;

static _Atomic int64_t *take_place(void)
{
    for (int i = 0; i < PLACES; i++)
        if (!atomic_exchange_explicit(&places[i].taken, true, memory_order_acquire))
            return &places[i].nodes;
    return NULL;
}

static void leave_place(const _Atomic int64_t *nodes)
{
    for (int i = 0; i < PLACES; i++)
        if (nodes == &places[i].nodes)
            atomic_store_explicit(&places[i].taken, false, memory_order_release);
}

int64_t tn__thread_nodes_alive(void)
{
    int64_t sum = atomic_load_explicit(&tn__nodes_elsewhere, memory_order_relaxed);

    for (int i = 0; i < PLACES; i++)
        sum += atomic_load_explicit(&places[i].nodes, memory_order_relaxed);
    return sum;
}

static void at_thread_end(void *state)
{
    /* Not used: the value of the key is tn__thread_here, which tn__thread_free() reads. */
    (void)state;
    tn__thread_free();
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, at_thread_end) == 0;
}

tn__thread *tn__thread_make(void)
{
    tn__thread *thread = tn_calloc(1, sizeof *thread);

    if (thread == NULL)
        return NULL;
    pthread_once(&key_once, make_key);
    if (!key_made || pthread_setspecific(key, thread) != 0) {
        tn_free(thread);
        tn_fail(TN_ERR_MEMORY, "scopes: no thread-specific storage left for this thread");
        return NULL;
    }
    thread->nodes = take_place();
    thread->next_scope = (atomic_fetch_add(&threads, 1) + 1) << 40;
    tn__thread_here = thread;
    return thread;
}

static void free_pieces(tn__thread *thread)
{
    for (int i = 0; i < TN__PIECE_SIZES; i++)
        while (thread->pieces[i] != NULL) {
            void *piece = thread->pieces[i];

            TN__UNPOISON(piece, (size_t)(i + 1) * TN__PIECE_UNIT);
            memcpy(&thread->pieces[i], piece, sizeof piece);
            tn_free(piece);
        }
}

void tn__thread_free(void)
{
    tn__thread *thread = tn__thread_here;

    if (thread == NULL)
        return;
    tn__scope_end_all(thread);
    tn__autocast_free(thread);
    for (int i = 0; i < TN__MAX_CACHED_DEVICES; i++) {
        if (thread->caches[i] != NULL)
            tn__allocator_free_cache(thread->caches[i]);
        thread->caches[i] = NULL;
    }
    tn__tensor_free_objects(thread);
    tn__storage_free_objects(thread);
    free_pieces(thread);
    leave_place(thread->nodes);
    tn_free(thread->owned);
    tn_free(thread->marks);
    tn_free(thread->devices);
    tn_free(thread->streams);
    tn__thread_here = NULL;
    pthread_setspecific(key, NULL);
    tn_free(thread);
}
