/* SPDX-License-Identifier: MIT
 *
 * Devices for the tests of core/tensor, so that these need no plugin:
 *
 * - cpu: memory of the host; works after fork
 * - vault: two devices with opaque handles, streams whose work waits until the test continues it,
 *   all optional functions of a backend, and a special alignment
 * - brick: opaque handles and nothing else, no kernels, no streams
 * - ghost: no memory
 *
 * Every access of vault and brick is checked against its allocation. */
#ifndef TN_TESTS_TENSOR_FIXTURE_H
#define TN_TESTS_TENSOR_FIXTURE_H

#include "core/op/internal.h"
#include "core/op/needed.h"
#include "core/tensor/allocator.h"
#include "core/tensor/convert.h"
#include "core/base/dtype.h"

#include "tests/libcheck.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Counts of all backends together, and settings by which a test makes calls fail. */
typedef struct room_state {
    _Atomic int64_t allocs, frees, bytes; /* live ones in `bytes` */
    _Atomic int64_t limit;                /* of bytes; 0: none */
    _Atomic int64_t fail_alloc;           /* the n-th from now fails */
    _Atomic int32_t give_nothing;         /* alloc on the host returns TN_OK, but no memory */
    _Atomic int32_t lost;                 /* calls of vault return TN_ERR_LOST */
    _Atomic int32_t stream_failure;       /* the next stream_sync of vault fails */
    _Atomic int32_t capture_failure;      /* the next capture_begin of vault fails */
    _Atomic int32_t opened, closed;
    _Atomic int64_t copies_in, copies_out, copies, peers, fills, kernels, syncs, waits;
    _Atomic int64_t pinned;      /* live pieces of pinned memory */
    _Atomic int32_t priority;    /* of the newest stream */
    _Atomic int32_t hide_host;   /* managed memory of vault has no address of the host */
    _Atomic int64_t shared_open; /* pieces of shared memory that were opened and are live */
    void *_Atomic waited_for;    /* the event that a stream of vault waited for last */
} room_state;

extern room_state room;

/* Registers the devices and the kernels; each test calls it first. `brick` gets no kernels, the
 * others copy and fill. */
void room_open(void);
/* Registers the operators and kernels of the devices (fixture_kernels.c). */
void room_add_kernels(void);
/* Returns the address of bytes of memory with an opaque handle, after a check that they are inside
 * of their allocation. */
char *room_bytes(void *memory, uint64_t offset, size_t bytes);
/* The memory of the devices (fixture_memory.c). */
tn_status host_alloc(void *dev, tn_memory *memory);
void host_free(void *dev, const tn_memory *memory);
tn_status lump_alloc(void *dev, tn_memory *memory);
void lump_free(void *dev, const tn_memory *memory);
tn_status vault_alloc(void *dev, tn_memory *memory);
tn_status vault_share(void *dev, const tn_memory *memory, tn_share_args *args);
tn_status vault_open_shared(void *dev, const tn_share_args *args, tn_memory *memory);
/* tn_shutdown, then checks that all memory went back. */
void room_close(void);

/* Work on a stream of vault is not done until released. */
void stream_hold(const tn_stream *stream);
void stream_release(const tn_stream *stream);
/* The native handle of a stream of vault that the test owns. */
void *stream_external(void);
/* The native handle of the one event that the test owns and has recorded on the stream. */
void *event_external(const tn_stream *stream);

const tn_device *device(const char *name);

#define ok(call) ck_assert_msg((call) == TN_OK, "%s: %s", #call, tn_error_last()->message)
#define fails(call, code)                                                                          \
    do {                                                                                           \
        ck_assert_int_eq((call), code);                                                            \
        tn_error_clear();                                                                          \
    } while (0)
/* Fails unless the message of the last failure contains these words. Clears the failure. */
#define said(words)                                                                                \
    do {                                                                                           \
        ck_assert_msg(strstr(tn_error_last()->message, words) != NULL, "%s",                       \
                      tn_error_last()->message);                                                   \
        tn_error_clear();                                                                          \
    } while (0)

/* main of a test program: a suite of the tests in the table, each in a process of its own unless
 * CK_FORK=no. */
typedef struct test_row {
    const char *name;
    const TTest *test;
} test_row;
int run_tests(const char *name, const TTest *const *tests, int count);
#define RUN_TESTS(name, ...)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = { __VA_ARGS__ };                                              \
        return run_tests(name, tests, (int)(sizeof tests / sizeof *tests));                        \
    }

#endif
