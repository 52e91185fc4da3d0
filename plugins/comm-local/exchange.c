/* SPDX-License-Identifier: MIT
 *
 * Exchanges of all ranks. An exchange is cut into rounds. In a round, each rank copies a part of
 * its tensor to a buffer of its board (`write`), combines a slice of the buffers of all ranks if
 * the kind needs that (`reduce`), and takes what it needs from the buffers (`read`). A rank may be
 * BOARD_BUFFERS rounds ahead of the others. */
#include "exchange.h"

#include <poll.h>
#include <sched.h>
#include <string.h>

#include "message.h"
#include "reduce.h"
#include "report.h"

enum {
    SMALL = 16 << 10, /* bytes up to which each rank combines all, instead of its slice */
    /* how a wait uses the processor */
    SPINS = 2000,
    SPINS_PER_YIELD = 50,
    LOOK = 100000,        /* ns after which connections are read again */
    NAP = 50000,          /* ns between two looks, */
    LONG_NAP = 1000000,   /* and after a */
    LONG_WAIT = 100000000 /* long wait */
};

/* The part of the tensors that a round moves: of `bytes` bytes from `at` on. */
struct part {
    size_t at, bytes;
    int buffer;
};

/* How a kind of exchange works. Functions may be NULL. */
struct kind {
    const char *name;
    bool pieces; /* a buffer has a piece of this size for each rank */
    void (*write)(struct work *work, const struct part *part);
    void (*reduce)(struct work *work, const struct part *part);
    void (*read)(struct work *work, const struct part *part);
};

static char *buffer_of(const struct work *work, int32_t rank, const struct part *part)
{
    return group_board(work->group, rank)->buffers[part->buffer];
}

/* ---- the kinds ------------------------------------------------------------------------------- */

static void write_part(struct work *work, const struct part *part)
{
    char *to = buffer_of(work, work->group->rank, part);

    memcpy(to, work->in + part->at, part->bytes);
    frame_write(work->group, to, part->bytes);
}

/* Stores the pieces for all ranks one after the other. */
static void write_pieces(struct work *work, const struct part *part)
{
    char *to = buffer_of(work, work->group->rank, part);

    for (int32_t r = 0; r < work->group->size; r++)
        memcpy(to + (size_t)r * part->bytes, work->in + (size_t)r * work->bytes + part->at,
               part->bytes);
    frame_write(work->group, to, (size_t)work->group->size * part->bytes);
}

static void write_root(struct work *work, const struct part *part)
{
    if (work->call.root == work->group->rank)
        write_part(work, part);
}

/* Combines the bytes from `at` on of the buffers of all ranks. `own`: what this rank has there. */
static void combine(struct work *work, const struct part *part, size_t at, size_t bytes,
                    const char *own, char *out)
{
    const char *sources[REDUCE_RANKS];

    for (int32_t r = 0; r < work->group->size; r++)
        sources[r] = r == work->group->rank ? own : buffer_of(work, r, part) + at;
    reduce_tree(work->call.dtype, work->call.reduction, sources, work->group->size,
                (int64_t)(bytes / work->element), out);
}

/* Returns where the slice of a rank begins in a part. */
static size_t slice(const struct work *work, const struct part *part, int32_t rank)
{
    const size_t count = part->bytes / work->element;

    return count * (size_t)rank / (size_t)work->group->size * work->element;
}

/* Two ranks read as many bytes whether they combine all or half and copy the other half. */
static bool combines_all(const struct work *work)
{
    return work->group->size == 2 || work->bytes <= SMALL;
}

static void reduce_slice(struct work *work, const struct part *part)
{
    const int32_t rank = work->group->rank;
    const size_t at = slice(work, part, rank), bytes = slice(work, part, rank + 1) - at;
    char *own = buffer_of(work, rank, part) + at;

    if (combines_all(work))
        return;
    combine(work, part, at, bytes, own, own);
    frame_write(work->group, own, bytes);
}

static void read_reduced(struct work *work, const struct part *part)
{
    char *out = work->out + part->at;

    if (combines_all(work)) {
        combine(work, part, 0, part->bytes, work->in + part->at, out);
        return;
    }
    for (int32_t r = 0; r < work->group->size; r++) {
        const size_t at = slice(work, part, r), bytes = slice(work, part, r + 1) - at;

        memcpy(out + at, buffer_of(work, r, part) + at, bytes);
    }
}

static void read_own_piece(struct work *work, const struct part *part)
{
    const size_t at = (size_t)work->group->rank * part->bytes;
    const char *own = work->in + (size_t)work->group->rank * work->bytes + part->at;

    combine(work, part, at, part->bytes, own, work->out + part->at);
}

static void read_root(struct work *work, const struct part *part)
{
    if (work->call.root != work->group->rank)
        memcpy(work->out + part->at, buffer_of(work, work->call.root, part), part->bytes);
}

static void read_all(struct work *work, const struct part *part)
{
    for (int32_t r = 0; r < work->group->size; r++)
        memcpy(work->out + (size_t)r * work->bytes + part->at, buffer_of(work, r, part),
               part->bytes);
}

static const struct kind kinds[TN_EXCHANGE_COUNT] = {
    [TN_EXCHANGE_ALL_REDUCE] = { "all_reduce", false, write_part, reduce_slice, read_reduced },
    [TN_EXCHANGE_BROADCAST] = { "broadcast", false, write_root, NULL, read_root },
    [TN_EXCHANGE_ALL_GATHER] = { "all_gather", false, write_part, NULL, read_all },
    [TN_EXCHANGE_REDUCE_SCATTER] = { "reduce_scatter", true, write_pieces, NULL, read_own_piece },
    [TN_EXCHANGE_BARRIER] = { "barrier", false, NULL, NULL, NULL },
    [TN_EXCHANGE_SEND] = { "send", false, NULL, NULL, NULL },
    [TN_EXCHANGE_RECV] = { "recv", false, NULL, NULL, NULL },
};

const char *exchange_name(uint32_t kind)
{
    return kind < TN_EXCHANGE_COUNT ? kinds[kind].name : "?";
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Counters of a board by their place in it. */
enum {
    POSTED = offsetof(struct board, posted),
    WRITTEN = offsetof(struct board, written),
    REDUCED = offsetof(struct board, reduced),
    READ = offsetof(struct board, read),
    DONE = offsetof(struct board, done)
};

static _Atomic uint64_t *counter(const struct group *group, int32_t rank, size_t which)
{
    return (_Atomic uint64_t *)(void *)((char *)group_board(group, rank) + which);
}

/* Returns the least value of a counter of all ranks. */
static uint64_t least(const struct group *group, size_t which)
{
    uint64_t value = UINT64_MAX;

    for (int32_t r = 0; r < group->size; r++) {
        uint64_t one = atomic_load_explicit(counter(group, r, which), memory_order_acquire);

        value = one < value ? one : value;
    }
    return value;
}

/* Shows a new value of a counter of this rank to the others. */
static void publish(struct group *group, size_t which, uint64_t value)
{
    _Atomic uint64_t *at = counter(group, group->rank, which);

    atomic_store_explicit(at, value, memory_order_release);
    frame_write(group, at, sizeof value);
}

/* ---- one exchange ---------------------------------------------------------------------------- */

static size_t most_of(const struct work *work)
{
    const size_t all = BOARD_BUFFER;

    return kinds[work->call.kind].pieces ? all / (size_t)work->group->size / BOARD_LINE * BOARD_LINE
                                         : all;
}

static struct part part_of(const struct work *work, uint64_t round)
{
    const size_t most = most_of(work), at = (size_t)round * most;
    const size_t left = work->bytes - at;

    return (struct part){ at, left < most ? left : most,
                          (int)((work->first + round) % BOARD_BUFFERS) };
}

/* Shows the other ranks what this rank asks for. */
static void post(struct work *work)
{
    struct group *group = work->group;
    struct board_call *call = &group_board(group, group->rank)->calls[work->number % BOARD_CALLS];

    work->first = group->rounds;
    *call = work->call;
    frame_write(group, call, sizeof *call);
    publish(group, POSTED, work->number + 1);
    work->posted = true;
}

static bool same_call(const struct board_call *a, const struct board_call *b)
{
    return a->kind == b->kind && a->reduction == b->reduction && a->dtype == b->dtype &&
           a->root == b->root && a->count == b->count;
}

/* Compares what all ranks ask for. Fails if they differ. */
static tn_status compare(struct work *work)
{
    struct group *group = work->group;

    for (int32_t r = 0; r < group->size; r++) {
        const struct board_call *other = &group_board(group, r)->calls[work->number % BOARD_CALLS];

        if (!same_call(&work->call, other))
            return report_mismatch(work, r, other);
    }
    work->compared = true;
    return TN_OK;
}

/* Each of these performs one round if the other ranks are ready for it, and tells whether it
 * did. */
static bool write_round(struct work *work)
{
    const struct kind *kind = &kinds[work->call.kind];
    const uint64_t round = work->first + work->written;
    const struct part part = part_of(work, work->written);

    if (work->written == work->rounds || round >= least(work->group, READ) + BOARD_BUFFERS)
        return false;
    if (kind->write != NULL)
        kind->write(work, &part);
    work->written++;
    publish(work->group, WRITTEN, round + 1);
    return true;
}

static bool reduce_round(struct work *work)
{
    const uint64_t round = work->first + work->reduced;
    const struct part part = part_of(work, work->reduced);

    if (work->reduced == work->written || least(work->group, WRITTEN) <= round)
        return false;
    kinds[work->call.kind].reduce(work, &part);
    work->reduced++;
    publish(work->group, REDUCED, round + 1);
    return true;
}

static bool read_round(struct work *work, bool reduces)
{
    const struct kind *kind = &kinds[work->call.kind];
    const uint64_t round = work->first + work->read;
    const struct part part = part_of(work, work->read);

    if (work->read == (reduces ? work->reduced : work->written) ||
        least(work->group, reduces ? REDUCED : WRITTEN) <= round)
        return false;
    if (kind->read != NULL)
        kind->read(work, &part);
    work->read++;
    publish(work->group, READ, round + 1);
    return true;
}

/* Performs the rounds that are possible now. Reading comes first, while the buffers are in the
 * caches. */
static void run_rounds(struct work *work)
{
    const bool reduces = work->call.kind == TN_EXCHANGE_ALL_REDUCE && !combines_all(work);
    bool more = true;

    while (more && work->read < work->rounds && work->group->failed == TN_OK) {
        more = work->compared && read_round(work, reduces);
        more = (work->compared && reduces && reduce_round(work)) || more;
        more = write_round(work) || more;
    }
}

/* Does what is possible now for the first exchange of the group; tells whether it is done. */
static tn_status advance(struct work *work, bool *done)
{
    struct group *group = work->group;

    if (!work->posted)
        post(work);
    if (!work->compared) {
        run_rounds(work); /* fills the buffers */
        if (group->failed != TN_OK || least(group, POSTED) <= work->number)
            return group->failed;
        if (compare(work) != TN_OK)
            return group->failed;
    }
    run_rounds(work);
    *done = work->read == work->rounds;
    return group->failed;
}

/* Fails if a rank is gone that the first exchange still needs. */
static tn_status check_ranks(const struct work *work)
{
    struct group *group = work->group;
    const uint64_t end = work->first + work->rounds;

    for (int32_t r = 0; r < group->size; r++)
        if (r != group->rank && group->peers[r].gone &&
            (atomic_load(&group_board(group, r)->posted) <= work->number ||
             atomic_load(&group_board(group, r)->read) < end))
            return report_lost(work, r);
    return TN_OK;
}

tn_status exchange_progress(struct group *group)
{
    /* reading connections costs a system call each: with shared memory, they seldom matter */
    const bool often = !group->shared || group->messages != NULL;
    const int64_t now = often ? 0 : group_now();
    bool done = true, looked = often || now - group->looked > LOOK;

    if (group->failed == TN_OK && atomic_load_explicit(&group->aborted, memory_order_acquire))
        group_fail(group, TN_ERR_PEER, "rank %d has aborted the group", (int)group->rank);
    if (group->failed == TN_OK && looked) {
        group->looked = now;
        frame_pump(group);
    }
    while (group->failed == TN_OK && group->works != NULL && done) {
        struct work *work = group->works;

        done = false;
        if (advance(work, &done) != TN_OK || !done)
            break;
        publish(group, DONE, work->number + 1);
        group->rounds += work->rounds;
        work->done = true;
        group->works = work->next;
        if (group->works == NULL)
            group->works_end = &group->works;
    }
    /* after the exchanges that can still be completed without a rank that has failed or is gone */
    if (group->failed == TN_OK)
        message_advance(group);
    if (group->failed == TN_OK)
        frame_report(group);
    if (group->failed == TN_OK && group->works != NULL && looked)
        check_ranks(group->works);
    if (group->failed == TN_OK && !group->shared)
        frame_flush(group);
    return group->failed;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *first_of(const tn_view *view)
{
    return view != NULL ? (const char *)view->data + view->byte_offset : NULL;
}

static int64_t count_of(const tn_view *view)
{
    int64_t count = 1;

    for (int32_t d = 0; view != NULL && d < view->ndim; d++)
        count *= view->shape[d];
    return view != NULL ? count : 0;
}

/* Performs an exchange in a group of one: a copy. */
static tn_status run_alone(struct work *work)
{
    const bool copies = work->out != NULL && work->out != work->in;

    if (copies && !work->group->host)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "local: %s: the device has no host memory; expected "
                       "an exchange in place",
                       exchange_name(work->call.kind));
    if (copies)
        memcpy(work->out, work->in, work->bytes);
    work->done = true;
    return TN_OK;
}

static void fill(struct work *work, const tn_comm_call *call)
{
    const tn_exchange kind = call->exchange;
    const tn_view *one = kind == TN_EXCHANGE_REDUCE_SCATTER || kind == TN_EXCHANGE_RECV ? call->out
                                                                                        : call->in;

    *work = (struct work){ .group = call->comm, .peer = call->peer, .tag = call->tag };
    work->call.kind = kind;
    work->call.reduction = call->reduction;
    work->call.root = kind == TN_EXCHANGE_BROADCAST ? call->peer : 0;
    work->call.count = count_of(one);
    work->call.dtype = one != NULL ? tn_view_dtype(one) : TN_U8;
    work->element = tn_dtype_size(work->call.dtype);
    work->bytes = (size_t)work->call.count * work->element;
    work->in = first_of(call->in);
    work->out = (char *)(uintptr_t)first_of(call->out);
}

tn_status exchange_start(struct work *work, const tn_comm_call *call)
{
    struct group *group = call->comm;
    size_t most;

    fill(work, call);
    if (exchange_is_message(call->exchange) && !group->host)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "local: %s: the device has no host memory",
                       exchange_name(call->exchange));
    if (call->exchange == TN_EXCHANGE_SEND)
        return message_send(work);
    if (call->exchange == TN_EXCHANGE_RECV)
        return message_receive(work);
    if (group->size == 1)
        return run_alone(work);
    most = most_of(work);
    work->rounds = work->bytes > 0 ? (work->bytes + most - 1) / most : 1;
    work->number = group->calls++;
    *group->works_end = work;
    group->works_end = &work->next;
    exchange_progress(group);
    return work->done ? TN_OK : group->failed;
}

/* Leaves the processor to others for a moment: for a short time at first, then for longer. */
static void rest(struct group *group, int64_t since)
{
    struct pollfd sockets[REDUCE_RANKS];
    nfds_t count = 0;
    const struct timespec nap = { 0, group_now() - since < LONG_WAIT ? NAP : LONG_NAP };

    for (int32_t r = 0; r < group->size; r++)
        if (r != group->rank && !group->peers[r].gone)
            sockets[count++] = (struct pollfd){
                group->peers[r].socket,
                (short)(POLLIN | (group->peers[r].out != NULL ? POLLOUT : 0)), 0
            };
    ppoll(sockets, count, &nap, NULL);
}

/* Without shared memory, the others wait until this rank has sent all, and only calls send. */
static bool is_waiting(const struct work *work)
{
    const struct group *group = work->group;

    return !work->done || (group->size > 1 && !group->shared && frame_pending(group));
}

tn_status exchange_wait(struct work *work)
{
    struct group *group = work->group;
    const int64_t since = group_now();

    if (!work->done && work->call.kind == TN_EXCHANGE_RECV && work->peer == group->rank)
        return group_fail(group, TN_ERR_TIMEOUT,
                          "no message with tag %d was sent by this rank to itself", (int)work->tag);
    for (int64_t n = 1; is_waiting(work); n++) {
        if (exchange_progress(group) != TN_OK)
            return work->done ? TN_OK : group->failed;
        if (!is_waiting(work))
            break;
        if (n < SPINS) {
            if (n % SPINS_PER_YIELD == 0)
                sched_yield();
            continue;
        }
        rest(group, since);
        group->looked = 0;
        if ((double)(group_now() - since) > group->timeout * 1e9)
            return report_late(work, (double)(group_now() - since) / 1e9);
    }
    return TN_OK;
}

static void forget(struct work **first)
{
    while (*first != NULL) {
        struct work *work = *first;

        *first = work->next;
        work->next = NULL;
    }
}

void exchange_forget(struct group *group)
{
    forget(&group->works);
    group->works_end = &group->works;
    forget(&group->messages);
    group->messages_end = &group->messages;
}
