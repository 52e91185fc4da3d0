/* SPDX-License-Identifier: MIT
 *
 * The threads of a loader, which read batches ahead. A thread takes the next batch of the epoch
 * that no other thread reads yet and puts the result, or the failure, in the slot of that batch;
 * tn_loader_next takes the slots in the order of the batches. */
#include "lib/data/internal.h"
#include "lib/data/loader.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

/* ---- loaders that have threads --------------------------------------------------------------- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t list_once = PTHREAD_ONCE_INIT;
static tn_loader *list;

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&list_lock);
}

/* After a fork the threads do not exist in the child, so the child must not wait for them. */
static void in_child(void)
{
    list = NULL;
    pthread_mutex_unlock(&list_lock);
}

/* The threads must not run code of plugins while the process ends. */
static void prepare_list(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
    (void)atexit(tn__loaders_shutdown);
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool may_claim(const tn_loader *loader)
{
    const tn__crew *crew = &loader->crew;

    return crew->running && crew->claimed < crew->given + crew->window &&
           crew->claimed < atomic_load_explicit(&loader->batches, memory_order_relaxed);
}

static void *thread_main(void *user)
{
    tn_loader *loader = user;
    tn__crew *crew = &loader->crew;

    pthread_setname_np(pthread_self(), "tenon-loader");
    pthread_mutex_lock(&crew->lock);
    while (!crew->stop) {
        tn__batch batch;
        int64_t number;

        if (!may_claim(loader)) {
            pthread_cond_wait(&crew->work, &crew->lock);
            continue;
        }
        number = crew->claimed++;
        crew->busy++;
        pthread_mutex_unlock(&crew->lock);
        tn__loader_read(loader, number, &batch);
        pthread_mutex_lock(&crew->lock);
        crew->slots[number % crew->window] = (tn__slot){ batch, true };
        crew->busy--;
        pthread_cond_broadcast(&crew->ready);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Starts the threads. If the system refuses some, the loader works with fewer. */
static tn_status start_threads(tn_loader *loader)
{
    tn__crew *crew = &loader->crew;
    int64_t wanted = loader->options.workers;
    sigset_t all, before;
    int error = 0;

    sigfillset(&all); /* signals are delivered to the program's threads only */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (crew->count < wanted && error == 0) {
        error = pthread_create(&crew->threads[crew->count], NULL, thread_main, loader);
        crew->count += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (crew->count == 0)
        return tn_fail_native(TN_ERR_RUNTIME, error,
                              "loader: workers: the system refused to start "
                              "a thread (error %d)",
                              error);
    if (crew->count < wanted)
        tn__log(TN_LOG_WARNING,
                "the loader has %lld threads instead of %lld: the system refused to start more",
                (long long)crew->count, (long long)wanted);
    return TN_OK;
}

/* Ensures that the threads run. The caller holds the gate, but not crew->lock. */
static tn_status start(tn_loader *loader)
{
    tn__crew *crew = &loader->crew;
    int64_t workers = loader->options.workers;
    tn_status status;

    if (tn__likely(crew->count > 0))
        return TN_OK;
    pthread_once(&list_once, prepare_list);
    if (crew->threads == NULL)
        crew->threads = tn_calloc((size_t)workers, sizeof *crew->threads);
    crew->window = workers * loader->options.prefetch;
    if (crew->slots == NULL)
        crew->slots = tn_calloc((size_t)crew->window, sizeof *crew->slots);
    if (crew->threads == NULL || crew->slots == NULL)
        return TN_ERR_MEMORY;
    pthread_mutex_lock(&list_lock);
    pthread_mutex_lock(&crew->lock);
    crew->process = getpid();
    crew->stop = false;
    status = start_threads(loader);
    pthread_mutex_unlock(&crew->lock);
    if (status == TN_OK) {
        crew->next = list;
        list = loader;
    }
    pthread_mutex_unlock(&list_lock);
    return status;
}

/* Waits until no thread reads, and drops what they have read. The caller holds crew->lock. */
static void discard(tn__crew *crew)
{
    crew->running = false;
    atomic_store(&crew->halt, true);
    while (crew->busy > 0)
        pthread_cond_wait(&crew->ready, &crew->lock);
    atomic_store(&crew->halt, false);
    for (int64_t i = 0; crew->slots != NULL && i < crew->window; i++) {
        tn__batch_clear(&crew->slots[i].batch);
        crew->slots[i].ready = false;
    }
}

/* Ends the threads of a loader that was in the list, and that the caller has taken out of it. */
static void stop_threads(tn_loader *loader)
{
    tn__crew *crew = &loader->crew;
    int64_t count;

    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    discard(crew);
    crew->claimed = crew->given;
    count = crew->count;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
    for (int64_t i = 0; i < count; i++)
        pthread_join(crew->threads[i], NULL);
    pthread_mutex_lock(&crew->lock);
    crew->count = 0;
    pthread_cond_broadcast(&crew->ready);
    pthread_mutex_unlock(&crew->lock);
}

static bool is_thread_of(const tn_loader *loader)
{
    for (int64_t i = 0; i < loader->crew.count; i++)
        if (pthread_equal(loader->crew.threads[i], pthread_self()))
            return true;
    return false;
}

/* Takes the loader out of the list, NULL: the first one. Returns NULL if it is not in the list. The
 * threads of a loader are ended without the lock, because a dataset may use another loader. */
static tn_loader *unlist(const tn_loader *loader)
{
    tn_loader **at = &list, *found;

    pthread_mutex_lock(&list_lock);
    while (*at != NULL && loader != NULL && *at != loader)
        at = &(*at)->crew.next;
    found = *at;
    /* If a dataset calls exit(), its thread cannot wait for itself. */
    if (found != NULL && loader == NULL && is_thread_of(found))
        found = NULL;
    if (found != NULL)
        *at = found->crew.next;
    pthread_mutex_unlock(&list_lock);
    return found;
}

void tn__loaders_shutdown(void)
{
    tn_loader *loader;

    while ((loader = unlist(NULL)) != NULL)
        stop_threads(loader);
}

/* ---- for the loader -------------------------------------------------------------------------- */

tn_status tn__loader_crew_init(tn__crew *crew)
{
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    pthread_cond_init(&crew->ready, NULL);
    return TN_OK;
}

tn_status tn__loader_take(tn_loader *loader, int64_t number, tn__batch *batch)
{
    tn__crew *crew = &loader->crew;
    tn_status status = start(loader);
    tn__slot *slot;

    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&crew->lock);
    slot = &crew->slots[number % crew->window];
    if (!crew->running) {
        crew->running = true;
        crew->claimed = crew->given = number;
        pthread_cond_broadcast(&crew->work);
    }
    while (!slot->ready && !crew->stop)
        pthread_cond_wait(&crew->ready, &crew->lock);
    if (slot->ready) {
        *batch = slot->batch;
        *slot = (tn__slot){ 0 };
        crew->given = number + 1;
        pthread_cond_signal(&crew->work);
    } else {
        status = tn_fail(TN_ERR_RUNTIME, "tn_loader_next: the library was shut down meanwhile; "
                                         "expected no tn_shutdown during the call");
    }
    pthread_mutex_unlock(&crew->lock);
    return status;
}

void tn__loader_rewind(tn_loader *loader, int64_t number)
{
    tn__crew *crew = &loader->crew;

    if (loader->options.workers == 0)
        return;
    pthread_mutex_lock(&crew->lock);
    discard(crew);
    crew->claimed = crew->given = number;
    pthread_mutex_unlock(&crew->lock);
}

bool tn__loader_is_lost(const tn_loader *loader)
{
    return tn__unlikely(loader->crew.process != 0) && loader->crew.process != getpid();
}

void tn__loader_crew_free(tn_loader *loader)
{
    tn__crew *crew = &loader->crew;

    /* In a forked child the locks may be held by threads that do not exist. What these threads have
     * read, or were reading, stays allocated. */
    if (tn__loader_is_lost(loader)) {
        tn_free(crew->threads);
        tn_free(crew->slots);
        return;
    }
    if (unlist(loader) != NULL) {
        stop_threads(loader);
    } else {
        /* tn_shutdown may be ending the threads. */
        pthread_mutex_lock(&crew->lock);
        while (crew->count > 0)
            pthread_cond_wait(&crew->ready, &crew->lock);
        pthread_mutex_unlock(&crew->lock);
    }
    tn_free(crew->threads);
    tn_free(crew->slots);
    pthread_mutex_destroy(&crew->lock);
    pthread_cond_destroy(&crew->work);
    pthread_cond_destroy(&crew->ready);
}
