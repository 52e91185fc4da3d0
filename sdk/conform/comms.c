/* SPDX-License-Identifier: MIT
 *
 * Checks communicators, for tenon check, in a group of one process, where every exchange is a copy.
 * comms_ranks.c has the groups of several processes. */
#include "comms.h"

#include <stdlib.h>
#include <string.h>

/* Checks that a tensor has these bytes. */
static bool holds(conform *c, tn_tensor *tensor, const void *bytes, size_t size, const char *what)
{
    size_t n = 0;
    void *now = conform_bytes(tensor, &n);
    bool well = now != NULL && n == size && memcmp(now, bytes, size) == 0;

    c->checks++;
    free(now);
    return well ||
           conform_fail(c, "%s of %s in a group of one process: values differ from those sent",
                        what, tn_dtype_name(tn_tensor_dtype(tensor)));
}

/* Reports a failed exchange; returns whether it succeeded. */
static bool did(conform *c, tn_status status, const char *what)
{
    return status == TN_OK ||
           conform_fail(c, "%s in a group of one process: fails: %s", what, tn_error_text());
}

static bool reduces(conform *c, const tn_comm_def *def, tn_comm *comm, tn_tensor *x, tn_tensor *y,
                    const void *bytes, size_t size)
{
    tn_dtype dtype = tn_tensor_dtype(x);

    for (tn_reduction r = 0; r < TN_REDUCTION_COUNT; r++) {
        if ((r == TN_REDUCTION_AVERAGE && !is_float(dtype) && !is_complex(dtype)) ||
            ((r == TN_REDUCTION_MIN || r == TN_REDUCTION_MAX) && is_complex(dtype)))
            continue;
        if (def->all_reduce != NULL && (!did(c, tn_comm_all_reduce(comm, x, r), "all_reduce") ||
                                        !holds(c, x, bytes, size, "all_reduce")))
            return false;
        if (def->reduce_scatter != NULL &&
            (!did(c, tn_comm_reduce_scatter(comm, y, x, r), "reduce_scatter") ||
             !holds(c, y, bytes, size, "reduce_scatter") || tn_fill_(y, 0) == NULL))
            return false;
    }
    return true;
}

static bool moves(conform *c, const tn_comm_def *def, tn_comm *comm, tn_tensor *x, tn_tensor *y,
                  const void *bytes, size_t size)
{
    if (def->broadcast != NULL && (!did(c, tn_comm_broadcast(comm, x, 0), "broadcast") ||
                                   !holds(c, x, bytes, size, "broadcast")))
        return false;
    if (def->all_gather != NULL && (!did(c, tn_comm_all_gather(comm, y, x), "all_gather") ||
                                    !holds(c, y, bytes, size, "all_gather")))
        return false;
    if (def->send == NULL || def->recv == NULL)
        return true;
    return tn_fill_(y, 0) != NULL && did(c, tn_comm_send(comm, x, 0, 3), "send") &&
           did(c, tn_comm_recv(comm, y, 0, 3), "recv") && holds(c, y, bytes, size, "send and recv");
}

static bool check_dtype(conform *c, const tn_comm_def *def, tn_comm *comm, tn_dtype dtype)
{
    const double values[] = { 1, 0, 3, 100, 5, 7 };
    conform_tensor t = { .there = true, .dtype = TN_F64, .ndim = 2, .shape = { 2, 3 }, .count = 6 };
    uint64_t scope = tn_scope_begin();
    tn_tensor *x, *y;
    size_t size = 0;
    void *bytes = NULL;
    bool well;

    t.values = (double *)(uintptr_t)values;
    x = conform_tensor_make(&t, dtype, c->plugin->device, CONFORM_PLAIN, NULL);
    y = conform_tensor_make(&t, dtype, c->plugin->device, CONFORM_PLAIN, NULL);
    if (x != NULL && y != NULL && tn_fill_(y, 0) != NULL)
        bytes = conform_bytes(x, &size);
    well = bytes != NULL || conform_fail(c, "a tensor cannot be created: %s", tn_error_text());
    well = well && reduces(c, def, comm, x, y, bytes, size) &&
           moves(c, def, comm, x, y, bytes, size);
    free(bytes);
    tn_scope_end(scope);
    return well;
}

void conform_comm(conform *c)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_I64, TN_U8 };
    const tn_comm_def *def = (const tn_comm_def *)tn_registry_find(TN_KIND_tn_comm_def, c->subject);
    const tn_comm_args args = { TN_HEAD(tn_comm_args), .size = 1, .device = c->plugin->device,
                                .timeout = 5 };
    tn_comm *comm;
    bool well = true;

    if (conform_needs_options(def->options)) {
        conform_skip(c, "the communicator has options without a default");
        return;
    }
    comm = tn_comm_new(c->subject, &args);
    if (comm == NULL && tn_error_code() == TN_ERR_UNAVAILABLE)
        conform_skip(c, "%s", tn_error_text());
    else if (comm == NULL)
        conform_fail(c, "a group of one process: does not open: %s", tn_error_text());
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes && comm != NULL && well; i++)
        if (def->dtypes & TN_BIT(dtypes[i]))
            well = check_dtype(c, def, comm, dtypes[i]);
    if (comm != NULL && well && def->barrier != NULL) {
        c->checks++;
        did(c, tn_comm_barrier(comm), "barrier");
    }
    tn_comm_drop(comm);
    tn_error_clear();
    if (comm != NULL && well)
        conform_comm_ranks(c, def);
}
