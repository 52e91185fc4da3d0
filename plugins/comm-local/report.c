/* SPDX-License-Identifier: MIT
 *
 * The texts of failures. Boards remember the last calls of each rank, also of one that has ended:
 * they are the flight recorder. */
#include "report.h"

enum { CALL_TEXT = 256, RANKS_TEXT = 256 };

/* Writes a call, such as `all_reduce #12 (4096 float32, SUM)`. */
static const char *call_text(char *out, const struct board_call *call, uint64_t number)
{
    static const char *const reductions[] = { "SUM", "PRODUCT", "MIN", "MAX", "AVERAGE" };
    const bool reduces = call->kind == TN_EXCHANGE_ALL_REDUCE ||
                         call->kind == TN_EXCHANGE_REDUCE_SCATTER;
    char what[64] = "", how[32] = "";

    if (call->kind == TN_EXCHANGE_BROADCAST)
        tn_snprint(how, sizeof how, ", root %d", (int)call->root);
    else if (reduces && call->reduction < TN_REDUCTION_COUNT)
        tn_snprint(how, sizeof how, ", %s", reductions[call->reduction]);
    if (call->kind != TN_EXCHANGE_BARRIER)
        tn_snprint(what, sizeof what, " (%lld %s%s)", (long long)call->count,
                   tn_dtype_name((tn_dtype)call->dtype), how);
    tn_snprint(out, CALL_TEXT, "%s #%llu%s", exchange_name(call->kind), (unsigned long long)number,
               what);
    return out;
}

/* Writes what a rank did last, such as `has not joined; its last: broadcast #3 (...), done`. */
static const char *state_text(char *out, size_t size, const struct work *work, int32_t rank)
{
    const struct board *board = group_board(work->group, rank);
    const uint64_t posted = atomic_load(&board->posted), done = atomic_load(&board->done);
    char text[CALL_TEXT];

    if (posted > work->number)
        tn_snprint(out, size, "has joined and not finished");
    else if (posted == 0)
        tn_snprint(out, size, "has not joined; it has begun no exchange");
    else
        tn_snprint(out, size, "has not joined; its last: %s, %s",
                   call_text(text, &board->calls[(posted - 1) % BOARD_CALLS], posted - 1),
                   done >= posted ? "done" : "not finished");
    return out;
}

tn_status report_mismatch(const struct work *work, int32_t other, const struct board_call *call)
{
    const int32_t rank = work->group->rank;
    char own[CALL_TEXT], theirs[CALL_TEXT];

    call_text(own, &work->call, work->number);
    call_text(theirs, call, work->number);
    /* the same text on both ranks */
    return group_fail(work->group, TN_ERR_VALUE,
                      "the ranks ask for different exchanges: rank %d for %s, rank %d for %s; "
                      "expected the same calls in the same order",
                      (int)(rank < other ? rank : other), rank < other ? own : theirs,
                      (int)(rank < other ? other : rank), rank < other ? theirs : own);
}

tn_status report_lost(const struct work *work, int32_t rank)
{
    const bool left = work->group->peers[rank].left;
    char state[CALL_TEXT + 64], text[CALL_TEXT];

    return group_fail(work->group, TN_ERR_PEER, "rank %d %s: %s: it %s", (int)rank,
                      left ? "has left the group" : "is lost, its process has ended",
                      call_text(text, &work->call, work->number),
                      state_text(state, sizeof state, work, rank));
}

/* Tells whether other ranks wait for this one in the exchange. */
static bool is_late(const struct work *work, int32_t rank)
{
    const struct board *board = group_board(work->group, rank);

    return rank != work->group->rank && (atomic_load(&board->posted) <= work->number ||
                                         atomic_load(&board->written) <= work->first + work->read);
}

/* Writes the ranks that are late, or those that wait, separated by commas. */
static const char *ranks_text(char *out, const struct work *work, bool late)
{
    size_t length = 0;

    out[0] = '\0';
    for (int32_t r = 0; r < work->group->size && length + 16 < RANKS_TEXT; r++)
        if (is_late(work, r) == late)
            length += (size_t)tn_snprint(out + length, RANKS_TEXT - length, "%s%d",
                                         length > 0 ? ", " : "", (int)r);
    return out;
}

tn_status report_late(const struct work *work, double seconds)
{
    char text[CALL_TEXT], waiting[RANKS_TEXT], late[RANKS_TEXT], state[CALL_TEXT + 64];
    struct group *group = work->group;
    int32_t first = 0;

    if (exchange_is_message(work->call.kind))
        return group_fail(
            group, TN_ERR_TIMEOUT, "%s of %lld %s with tag %d: rank %d has not answered for %.1f s",
            exchange_name(work->call.kind), (long long)work->call.count,
            tn_dtype_name((tn_dtype)work->call.dtype), (int)work->tag, (int)work->peer, seconds);
    if (group->works != NULL)
        work = group->works; /* the exchange that holds up the others */
    while (first < group->size - 1 && !is_late(work, first))
        first++;
    return group_fail(
        group, TN_ERR_TIMEOUT, "%s: no progress for %.1f s; late: rank %s; waiting: %s; rank %d %s",
        call_text(text, &work->call, work->number), seconds, ranks_text(late, work, true),
        ranks_text(waiting, work, false), (int)first, state_text(state, sizeof state, work, first));
}
