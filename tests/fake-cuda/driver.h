/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the fake driver: driver.c (contexts, modules, launches),
 * memory.c, streams.c, ipc.c. Every function of the driver begins with BEGIN and ends with
 * fake_leave, which hold one lock. */
#ifndef TN_TESTS_FAKE_CUDA_DRIVER_H
#define TN_TESTS_FAKE_CUDA_DRIVER_H

#include "plugins/backend-cuda/cu_api.h"
#include "tests/fake-cuda/fake.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICE_BIT                                                                                 \
    ((uint64_t)1                                                                                   \
     << 60) /* no host pointer has these addresses: the host crashes when it uses device memory */
#define INVALID_VALUE 1
#define NOT_INITIALIZED 3
#define INVALID_DEVICE 101
#define INVALID_CONTEXT 201
#define INVALID_HANDLE 400
#define NOT_FOUND 500
#define FAKE_CONTEXTS 16

struct fake_block {
    struct fake_block *next;
    char *at;
    size_t size;
    struct CUctx_st *context;
    bool pinned, managed;
    bool opened; /* it belongs to another process (ipc.c) */
    int file;    /* of shared memory; -1: the memory was not shared */
};
extern struct fake_block *fake_blocks;

struct CUctx_st {
    int device;
    int retained;
    int sticky; /* the result of every later call */
};

struct work {
    struct work *next;
    int (*run)(void *data);
    struct CUstream_st *wait_stream; /* NULL: calls `run`; else waits for this stream, */
    long wait_count;                 /* until it has done so many pieces of work */
    size_t size;                     /* of data */
    char data[];
};

struct CUstream_st {
    struct CUctx_st *context;
    struct work *first, **last;
    long queued, done;
    bool running;
    struct CUgraph_st *record; /* gets the work while the stream records */
    struct CUstream_st *next;  /* list of all, dropped ones too: events may point at them */
};

/* Recorded work; its copy that is launched has the same struct. */
struct CUgraph_st {
    struct work *first, **last;
};

struct CUevent_st {
    struct CUstream_st *stream; /* NULL: never recorded */
    long count;
    bool timing;
    struct CUevent_st *next; /* list of all: those of a lost device are never destroyed */
};

/* The contexts that this thread pushed. */
extern _Thread_local struct CUctx_st *fake_stack[FAKE_CONTEXTS];
extern _Thread_local int fake_depth;

void fake_enter(void);
CUresult fake_leave(CUresult result);
/* Counts misuse, which is undefined on a real driver; returns `result`. */
CUresult fake_misuse(const char *text, CUresult result);
/* What every call does first; 0 to continue. */
CUresult fake_begin(const char *function, bool needs_context);

#define BEGIN(name, needs_context)                                                                 \
    {                                                                                              \
        CUresult begun_ = fake_begin(name, needs_context);                                         \
        if (begun_)                                                                                \
            return fake_leave(begun_);                                                             \
    }

/* The block that holds [at, at + bytes) of a device's memory, or NULL. */
struct fake_block *fake_block_find(uint64_t at, size_t bytes);

/* Does the work of a stream up to number `until`. */
CUresult fake_stream_run(struct CUstream_st *stream, long until);
void fake_streams_run(void);
/* The result of a function that must not be called while the stream records; counts misuse. */
CUresult fake_records(const struct CUstream_st *stream, const char *function);
CUresult fake_queue(struct CUstream_st *stream, int (*run)(void *data), const void *data,
                    size_t size);

#define CU_FUNCTION(name, symbol, args) EXPORT CUresult fake_##name args __asm__(symbol);
#include "plugins/backend-cuda/cu_functions.h"

#endif
