/* SPDX-License-Identifier: MIT
 *
 * The thread pool of tn_parallel_for. A call is divided into pieces (<tenon/base.h> calls them
 * ranges) and occupies one of a few slots. The threads of the pool and the calling thread claim its
 * pieces one by one from the slot's ticket until none is left. A ticket contains the number of the
 * call, its number of pieces and the next piece. A thread claims a piece by compare-and-swap of the
 * ticket; success proves that the call is not over, so that the thread may read the rest of the
 * slot. A thread that finds no piece spins for some tens of microseconds and then sleeps. */
#include "core/tensor/internal.h"

#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256
#define SLOTS 8 /* calls at the same time; any further call runs in its own thread only */
#define PIECES_MAX 1024
/* Rounds of 5 to 40 nanoseconds that a thread waits before it sleeps: about the time that it takes
 * to wake a sleeping thread. */
#define SPINS 5000

typedef tn_status part_function(void *user, int64_t begin, int64_t end);

struct slot {
    _Atomic uint64_t ticket; /* call number << 32 | pieces << 16 | next piece */
    _Atomic uint32_t done;   /* pieces that are finished */
    _Atomic uint32_t failed; /* the lowest piece that failed; PIECES_MAX: none */
    _Atomic bool taken;
    part_function *part;
    void *user;
    int64_t count, line;
    uint32_t pieces;
    const char *plugin;   /* the plugin that made the call */
    pthread_mutex_t lock; /* protects `error` */
    tn_error error;       /* the failure of piece `failed` */
} __attribute__((aligned(128)));

static struct slot slots[SLOTS] = { [0 ... SLOTS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

static struct {
    pthread_mutex_t config; /* held to start or stop threads */
    pthread_mutex_t sleep;  /* the mutex of both conditions */
    pthread_cond_t work, over;
    _Atomic uint32_t posted; /* incremented by every call that occupies a slot */
    _Atomic int sleepers, waiters;
    _Atomic int wanted;        /* number of threads including the caller; 0: not known yet */
    _Atomic int running;       /* threads that the pool has started */
    _Atomic bool stop, closed; /* closed: calls must not take a slot */
    _Atomic uint32_t calls;
    pthread_t threads[THREADS_MAX];
} pool = { .config = PTHREAD_MUTEX_INITIALIZER,
           .sleep = PTHREAD_MUTEX_INITIALIZER,
           .work = PTHREAD_COND_INITIALIZER,
           .over = PTHREAD_COND_INITIALIZER };

static _Thread_local bool in_piece;

/* Handlers of fork. In the child, the threads of the pool and the calls of other threads do not
 * exist. Locks that may be held for a long time are initialized again in the child; pool.sleep is
 * held for short times only, so it is held across the fork. */
static void before_fork(void)
{
    pthread_mutex_lock(&pool.sleep);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&pool.sleep);
}

static void in_child(void)
{
    pthread_mutex_init(&pool.config, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.over, NULL);
    atomic_store(&pool.running, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.waiters, 0);
    atomic_store(&pool.closed, false);
    for (int i = 0; i < SLOTS; i++) {
        pthread_mutex_init(&slots[i].lock, NULL);
        atomic_store(&slots[i].taken, false);
    }
    pthread_mutex_unlock(&pool.sleep);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void watch_fork(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* If `grain` is a multiple of this number of elements, all pieces are, except the last. Then pieces
 * of an array that begins at a cache line begin at cache lines, too: a loop over vectors that span
 * two cache lines takes half as long again. */
#define LINE 64

/* Returns the index at which a piece begins. The sizes of pieces differ by at most one `line`
 * (LINE, or 1 if grain is not a multiple of LINE); the last piece also has the remainder. */
static int64_t piece_begin(int64_t count, int64_t line, uint32_t pieces, uint32_t index)
{
    int64_t lines = count / line, rest = lines % pieces;
    return index == pieces ? count
                           : line * (lines / pieces * index + (index < rest ? index : rest));
}

/* Runs one piece in a scope of its own. If the piece fails, its failure is removed from the
 * thread's error records and stored in *error. */
static tn_status run_piece(part_function *part, void *user, int64_t begin, int64_t end,
                           tn_error *error)
{
    uint64_t scope = tn_scope_begin(), mark = tn_error_mark();
    bool nested = in_piece;
    tn_status status;

    in_piece = true;
    status = part(user, begin, end);
    in_piece = nested;
    if (tn__unlikely(status != TN_OK)) {
        if (tn__error_count() == mark || tn_error_last_code() != status)
            tn_fail(status, "tn_parallel_for: part: failed with %s and recorded no message",
                    tn_status_name(status));
        *error = *tn_error_last();
        tn_error_restore(mark);
    }
    tn_scope_end(scope);
    return status;
}

static tn_status run_in_line(int64_t count, int64_t line, uint32_t pieces, part_function *part,
                             void *user)
{
    for (uint32_t i = 0; i < pieces; i++) {
        tn_error error;
        tn_status status = run_piece(part, user, piece_begin(count, line, pieces, i),
                                     piece_begin(count, line, pieces, i + 1), &error);
        if (status != TN_OK) {
            tn__error_put(&error);
            return status;
        }
    }
    return TN_OK;
}

/* Records the failure of a piece, unless a lower piece has failed. Pieces are claimed in order, so
 * all pieces below the lowest failed one run; pieces above it may be skipped. */
static void note_failure(struct slot *slot, uint32_t index, const tn_error *error)
{
    pthread_mutex_lock(&slot->lock);
    if (index < atomic_load(&slot->failed)) {
        slot->error = *error;
        atomic_store(&slot->failed, index);
    }
    pthread_mutex_unlock(&slot->lock);
}

/* Claims and runs pieces of a slot until none is left. Returns whether it ran any. */
static bool help(struct slot *slot)
{
    uint64_t ticket = atomic_load_explicit(&slot->ticket, memory_order_acquire);
    bool helped = false;

    for (;;) {
        uint32_t next = ticket & 0xffff, pieces = ticket >> 16 & 0xffff;

        if (next >= pieces)
            return helped;
        if (!atomic_compare_exchange_weak_explicit(&slot->ticket, &ticket, ticket + 1,
                                                   memory_order_acq_rel, memory_order_acquire))
            continue;
        helped = true;
        if (next < atomic_load_explicit(&slot->failed, memory_order_relaxed)) {
            const char *before = tn__error_plugin(slot->plugin);
            tn_error error;
            if (run_piece(slot->part, slot->user,
                          piece_begin(slot->count, slot->line, pieces, next),
                          piece_begin(slot->count, slot->line, pieces, next + 1), &error) != TN_OK)
                note_failure(slot, next, &error);
            tn__error_plugin(before);
        }
        /* After the last piece is counted, another call may take the slot: do not read its members
         * below. */
        if (atomic_fetch_add(&slot->done, 1) + 1 == pieces && atomic_load(&pool.waiters) > 0) {
            pthread_mutex_lock(&pool.sleep);
            pthread_cond_broadcast(&pool.over);
            pthread_mutex_unlock(&pool.sleep);
        }
        ticket = atomic_load_explicit(&slot->ticket, memory_order_acquire);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *thread_main(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "tenon");
    while (!atomic_load(&pool.stop) && !tn__fork_is_child()) {
        uint32_t seen = atomic_load(&pool.posted);
        bool helped = false;

        for (int i = 0; i < SLOTS; i++)
            helped |= help(&slots[i]);
        if (helped)
            continue;
        int spins = SPINS;
        while (spins > 0 && atomic_load_explicit(&pool.posted, memory_order_relaxed) == seen) {
            relax();
            spins--;
        }
        if (spins > 0)
            continue;
        pthread_mutex_lock(&pool.sleep);
        atomic_fetch_add(&pool.sleepers, 1);
        while (atomic_load(&pool.posted) == seen && !atomic_load(&pool.stop))
            pthread_cond_wait(&pool.work, &pool.sleep);
        atomic_fetch_sub(&pool.sleepers, 1);
        pthread_mutex_unlock(&pool.sleep);
    }
    return NULL;
}

/* Starts the missing threads. If the system refuses some, the pool works with fewer. */
static void start_threads(void)
{
    sigset_t all, before;

    pthread_once(&once, watch_fork);
    /* Do not block: the thread that holds this lock starts threads itself, or waits until this call
     * is over (tn_set_num_threads). This call uses the threads that exist already. */
    if (pthread_mutex_trylock(&pool.config) != 0)
        return;
    sigfillset(&all); /* signals are delivered to the program's threads only */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int running = atomic_load(&pool.running), wanted = atomic_load(&pool.wanted) - 1;
    while (running < wanted && pthread_create(&pool.threads[running], NULL, thread_main, NULL) == 0)
        atomic_store(&pool.running, ++running);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (running < wanted)
        atomic_store(&pool.wanted, running + 1);
    pthread_mutex_unlock(&pool.config);
    if (running < wanted)
        tn__log(TN_LOG_WARNING,
                "the thread pool has %d threads instead of %d: the system refused to start more",
                running + 1, wanted + 1);
}

/* Joins all threads. No call may be under way; the caller holds pool.config. */
static void stop_threads(void)
{
    pthread_mutex_lock(&pool.sleep);
    atomic_store(&pool.stop, true);
    atomic_fetch_add(&pool.posted, 1);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.sleep);
    for (int i = atomic_load(&pool.running); i > 0; i--)
        pthread_join(pool.threads[i - 1], NULL);
    atomic_store(&pool.running, 0);
    atomic_store(&pool.stop, false);
}

/* Prevents new calls from taking a slot, and waits until all slots are free. */
static void close_pool(void)
{
    const struct timespec moment = { 0, 200000 };

    atomic_store(&pool.closed, true);
    for (int i = 0; i < SLOTS; i++)
        while (atomic_load(&slots[i].taken))
            nanosleep(&moment, NULL);
}

static void open_pool(void)
{
    atomic_store(&pool.closed, false);
}

/* ---- how many threads ------------------------------------------------------------------------ */

static int usable_cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* Returns 0 if memory ran out while the variable was read; the next call tries again. */
static int wanted_threads(void)
{
    const char *text;
    int64_t number = 0;

    if (tn__env_read("TENON_NUM_THREADS", &text) != TN_OK)
        return 0;
    if (text && tn_read_int(text, &number) && number >= 1 && number <= THREADS_MAX)
        return (int)number;
    number = usable_cores() > THREADS_MAX ? THREADS_MAX : usable_cores();
    if (text)
        tn__log(TN_LOG_WARNING,
                "TENON_NUM_THREADS=%q is not an integer from 1 to %d; %lld threads are used", text,
                THREADS_MAX, (long long)number);
    return (int)number;
}

int32_t tn_num_threads(void)
{
    int wanted = atomic_load_explicit(&pool.wanted, memory_order_relaxed);

    if (tn__likely(wanted > 0))
        return wanted;
    int unknown = 0;
    wanted = wanted_threads();
    if (wanted == 0)
        return 1;
    return atomic_compare_exchange_strong(&pool.wanted, &unknown, wanted) ? wanted : unknown;
}

tn_status tn_set_num_threads(int32_t count)
{
    char text[16];

    if (count < 1 || count > THREADS_MAX)
        return tn_fail(TN_ERR_VALUE,
                       "tn_set_num_threads: count: out of range, got %d; expected 1 to %d", count,
                       THREADS_MAX);
    if (in_piece)
        return tn_fail(
            TN_ERR_RUNTIME,
            "tn_set_num_threads: a part of tn_parallel_for cannot change the number of threads");
    tn_snprint(text, sizeof text, "%d", count);
    tn_status status = tn__env_program("TENON_NUM_THREADS", text);
    if (status != TN_OK)
        return status;
    tn__fork_is_child();
    pthread_once(&once, watch_fork);
    pthread_mutex_lock(&pool.config);
    close_pool();
    if (atomic_load(&pool.running) > count - 1)
        stop_threads();
    atomic_store(&pool.wanted, count);
    open_pool();
    pthread_mutex_unlock(&pool.config);
    return TN_OK;
}

void tn__thread_pool_shutdown(void)
{
    if (in_piece)
        return;
    pthread_mutex_lock(&pool.config);
    close_pool();
    stop_threads();
    atomic_store(&pool.wanted, 0);
    open_pool();
    pthread_mutex_unlock(&pool.config);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct slot *take_slot(void)
{
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load_explicit(&slots[i].taken, memory_order_relaxed) ||
            atomic_exchange(&slots[i].taken, true))
            continue;
        if (!atomic_load(&pool.closed))
            return &slots[i];
        atomic_store(&slots[i].taken, false);
        return NULL;
    }
    return NULL;
}

static void wake_threads(uint32_t pieces)
{
    atomic_fetch_add(&pool.posted, 1);
    int sleepers = atomic_load(&pool.sleepers);
    if (sleepers == 0)
        return;
    pthread_mutex_lock(&pool.sleep);
    if ((uint32_t)sleepers < pieces)
        pthread_cond_broadcast(&pool.work);
    else
        for (uint32_t i = 1; i < pieces; i++)
            pthread_cond_signal(&pool.work);
    pthread_mutex_unlock(&pool.sleep);
}

/* Waits until all pieces are finished. Returns false in a child process that was forked during the
 * call, where the threads that claimed the other pieces do not exist. */
static bool wait_for(struct slot *slot, uint32_t pieces)
{
    for (int spins = SPINS; spins > 0; spins--) {
        if (atomic_load_explicit(&slot->done, memory_order_acquire) == pieces)
            return true;
        relax();
    }
    if (tn__fork_is_child())
        return atomic_load(&slot->done) == pieces;
    pthread_mutex_lock(&pool.sleep);
    atomic_fetch_add(&pool.waiters, 1);
    while (atomic_load(&slot->done) != pieces)
        pthread_cond_wait(&pool.over, &pool.sleep);
    atomic_fetch_sub(&pool.waiters, 1);
    pthread_mutex_unlock(&pool.sleep);
    return true;
}

static tn_status run_in_pool(struct slot *slot, int64_t count, int64_t line, uint32_t pieces,
                             part_function *part, void *user)
{
    uint64_t call = atomic_fetch_add_explicit(&pool.calls, 1, memory_order_relaxed) + 1;
    tn_error error = { .code = TN_OK };

    slot->part = part;
    slot->user = user;
    slot->count = count;
    slot->line = line;
    slot->plugin = tn__error_plugin_id();
    atomic_store_explicit(&slot->done, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->failed, PIECES_MAX, memory_order_relaxed);
    atomic_store_explicit(&slot->ticket, (uint64_t)(uint32_t)call << 32 | (uint64_t)pieces << 16,
                          memory_order_release);
    wake_threads(pieces);
    help(slot);
    bool complete = wait_for(slot, pieces);
    if (atomic_load(&slot->failed) < PIECES_MAX)
        error = slot->error;
    atomic_store(&slot->taken, false);
    if (error.code != TN_OK) {
        tn__error_put(&error);
        return error.code;
    }
    if (!complete)
        return tn_fail(
            TN_ERR_RUNTIME,
            "tn_parallel_for: the process was forked during the call; the child has lost the "
            "parts that ran in other threads");
    return TN_OK;
}

tn_status tn_parallel_for(int64_t count, int64_t grain, part_function *part, void *user)
{
    int64_t pieces;

    if (!tn__given(part != NULL, "tn_parallel_for: part"))
        return TN_ERR_VALUE;
    if (count <= 0)
        return TN_OK;
    pieces = grain < 1 ? count : count / grain;
    if (pieces <= 1) /* common for small tensors: call directly, in the caller's scope */
        return part(user, 0, count);
    if (pieces > PIECES_MAX)
        pieces = PIECES_MAX;
    int64_t line = grain >= LINE && grain % LINE == 0 ? LINE : 1;
    int threads = in_piece || tn__fork_is_child() ? 1 : tn_num_threads();
    if (threads > 1) {
        struct slot *slot = take_slot();
        if (slot) {
            if (tn__unlikely(atomic_load(&pool.running) < threads - 1))
                start_threads();
            return run_in_pool(slot, count, line, (uint32_t)pieces, part, user);
        }
    }
    return run_in_line(count, line, (uint32_t)pieces, part, user);
}
