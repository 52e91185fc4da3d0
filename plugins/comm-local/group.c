/* SPDX-License-Identifier: MIT
 *
 * The life of a group: opening, failing, closing. */
#include "group.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"
#include "mesh.h"
#include "message.h"
#include "reduce.h"
#include "world.h"

enum {
    MOST_SECONDS = 1000000,
    CLOSE_MS = 1000 /* the longest time for the last frames */
};

int64_t group_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- failure --------------------------------------------------------------------------------- */

/* Tells the other ranks why this one fails. */
static void report_failure(struct group *group)
{
    const size_t most = sizeof group->peers->text - 1, length = strlen(group->reason);
    const struct frame frame = { FRAME_FAILURE, 0, (uint64_t)group->failed,
                                 length < most ? length : most };

    frame_cut(group);
    for (int32_t r = 0; r < group->size; r++)
        if (r != group->rank)
            frame_put(group, r, &frame, group->reason, true, NULL);
    frame_flush(group);
}

tn_status group_fail(struct group *group, tn_status code, const char *format, ...)
{
    va_list args;

    /* what another rank has reported is the reason of what fails here */
    if (group->failed != TN_OK || frame_report(group) != TN_OK)
        return group->failed;
    group->failed = code;
    va_start(args, format);
    tn_snprintv(group->reason, sizeof group->reason, format, args);
    va_end(args);
    exchange_forget(group);
    if (!group->closing)
        report_failure(group);
    return code;
}

tn_status group_refuse(const struct group *group)
{
    return tn_fail(group->failed, "local: rank %d: %s", (int)group->rank, group->reason);
}

tn_status group_enter(struct group *group)
{
    tn_status status;

    if (group->process != getpid())
        return tn_fail(TN_ERR_RUNTIME,
                       "local: the group belongs to process %d, which has forked "
                       "this one; open a group in this process",
                       (int)group->process);
    pthread_mutex_lock(&group->lock);
    if (group->failed == TN_OK)
        return TN_OK;
    status = group_refuse(group);
    pthread_mutex_unlock(&group->lock);
    return status;
}

tn_status group_leave(struct group *group, tn_status status)
{
    const bool failed = group->failed != TN_OK;

    if (failed && status != TN_OK)
        status = group_refuse(group);
    pthread_mutex_unlock(&group->lock);
    if (!failed && atomic_load(&group->aborted))
        group_abort(group); /* it came while the group was locked */
    return status;
}

tn_status group_abort(void *comm)
{
    struct group *group = comm;

    atomic_store_explicit(&group->aborted, true, memory_order_release);
    if (group->process != getpid() || pthread_mutex_trylock(&group->lock) != 0)
        return TN_OK; /* the call that has the lock sees the flag */
    group_fail(group, TN_ERR_PEER, "rank %d has aborted the group", (int)group->rank);
    pthread_mutex_unlock(&group->lock);
    return TN_OK;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Returns the time limit of the program, or that of TENON_COMM_TIMEOUT. */
static double timeout_of(const tn_comm_args *args)
{
    return args->timeout > 0 ? args->timeout : world_given.timeout;
}

static tn_status check_args(const tn_comm_args *args, const char *token)
{
    const double timeout = timeout_of(args);

    if (!tn_device_is_host(args->device) && args->size > 1)
        return tn_fail(TN_ERR_VALUE,
                       "local: device: wrong, got %s; expected a device with host memory for more "
                       "than one process",
                       tn_device_name(args->device));
    if (args->size > REDUCE_RANKS)
        return tn_fail(TN_ERR_VALUE, "local: size: too large, got %d; expected at most %d",
                       (int)args->size, (int)REDUCE_RANKS);
    if (!(timeout > 0 && timeout <= MOST_SECONDS))
        return tn_fail(TN_ERR_VALUE,
                       "local: timeout: wrong, got %g; expected more than 0 and at "
                       "most %d seconds",
                       timeout, (int)MOST_SECONDS);
    if (*token != '\0' &&
        (strlen(token) != MESH_TOKEN || strspn(token, "0123456789abcdefABCDEF") != MESH_TOKEN))
        return tn_fail(TN_ERR_VALUE,
                       "local: token: wrong, got %zu characters; expected %d hexadecimal digits",
                       strlen(token), (int)MESH_TOKEN);
    return TN_OK;
}

static struct group *group_new(const tn_comm_args *args)
{
    struct group *group = tn_calloc(1, sizeof *group);

    if (group == NULL)
        return NULL;
    group->rank = args->rank;
    group->size = args->size;
    group->process = getpid();
    group->host = tn_device_is_host(args->device);
    group->timeout = timeout_of(args);
    group->works_end = &group->works;
    group->messages_end = &group->messages;
    group->inbox_end = &group->inbox;
    group->boards.file = -1;
    group->peers = tn_calloc((size_t)group->size, sizeof *group->peers);
    if (group->peers == NULL || pthread_mutex_init(&group->lock, NULL) != 0) {
        tn_free(group->peers);
        tn_free(group);
        return NULL;
    }
    for (int32_t r = 0; r < group->size; r++) {
        group->peers[r].socket = -1;
        group->peers[r].out_end = &group->peers[r].out;
    }
    return group;
}

static void group_free(struct group *group)
{
    for (int32_t r = 0; r < group->size; r++)
        frame_close(&group->peers[r]);
    while (group->inbox != NULL) {
        struct message *next = group->inbox->next;

        message_free(group->inbox);
        group->inbox = next;
    }
    board_free(&group->boards);
    pthread_mutex_destroy(&group->lock);
    tn_free(group->peers);
    tn_free(group);
}

tn_status group_open(const tn_comm_def *self, const tn_comm_args *args, void **comm)
{
    const char *option = ((const struct group_options *)args->data)->token;
    const char *token = *option != '\0' ? option : world_given.token;
    struct mesh_address address;
    tn_status status = check_args(args, token);
    struct group *group;

    (void)self;
    if (status == TN_OK && args->size > 1)
        status = mesh_read_address(&address, args->address, args->size);
    if (status == TN_OK && args->size > 1 && address.tcp && *token == '\0')
        status = tn_fail(TN_ERR_VALUE,
                         "local: token: missing for %q; expected %d hexadecimal "
                         "digits, because any program of this host could connect",
                         args->address, (int)MESH_TOKEN);
    if (status != TN_OK)
        return status;
    group = group_new(args);
    if (group == NULL)
        return tn_error_last_code();
    if (group->size > 1) {
        group->shared = !address.tcp;
        status = mesh_connect(group, &address, token);
    }
    if (status != TN_OK) {
        group_free(group);
        return status;
    }
    *comm = group;
    return TN_OK;
}

/* ---- close ----------------------------------------------------------------------------------- */

/* Says farewell, and waits a short time until all frames are sent and, without shared memory, until
 * the others have read them: what a socket holds is lost if it is closed with unread data. */
static void say_farewell(struct group *group)
{
    const struct frame frame = { FRAME_LEAVE, 0, 0, 0 };
    const int64_t end = group_now() + (int64_t)CLOSE_MS * 1000000;
    bool more = true;

    group->closing = true;
    for (int32_t r = 0; r < group->size; r++)
        if (r != group->rank)
            frame_put(group, r, &frame, NULL, true, NULL);
    frame_flush(group);
    while (more && group_now() < end) {
        more = frame_pending(group);
        for (int32_t r = 0; r < group->size && !group->shared; r++)
            more = more || (r != group->rank && !group->peers[r].gone && !group->peers[r].left);
        if (more) {
            const struct timespec nap = { 0, 200000 };

            nanosleep(&nap, NULL);
            group->failed = TN_OK; /* read on, whatever has failed */
            frame_pump(group);
        }
    }
}

void group_close(void *comm)
{
    struct group *group = comm;

    if (group->process == getpid()) /* a child must not speak for its parent */
        say_farewell(group);
    group_free(group);
}
