/* SPDX-License-Identifier: MIT
 *
 * A CUDA driver without a GPU: what tests can read and set. It is opened with TENON_CUDA_DRIVER,
 * like the real one, and exports this struct as `fake_cuda`. Kernels are the real text, compiled
 * as C and run one work item after the other. Work is queued and only done when something waits
 * for it, so that code fails which relies on work being done at once. */
#ifndef TN_TESTS_FAKE_CUDA_FAKE_H
#define TN_TESTS_FAKE_CUDA_FAKE_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_DEVICES 4

struct fake_cuda {
    /* what the driver reports; may be set before cuInit */
    int devices;
    int version;       /* 13000 */
    int init_result;   /* of cuInit */
    size_t memory;     /* of a device, bytes */
    int module_result; /* of cuModuleLoadData */
    int no_peers;      /* no device can access the memory of another one */
    int managed;       /* the devices have managed memory */

    /* the `fail_after`-th call of `fail_function` from now on returns `fail_code` (0: never) */
    const char *fail_function;
    int fail_after;
    int fail_code;

    /* what happened so far */
    long calls;
    long inits;
    long retained; /* primary contexts that are held now */
    long live;     /* device allocations */
    long live_pinned;
    long live_opened; /* memory of other processes */
    long live_streams;
    long live_events;
    long live_modules;
    long live_graphs; /* graphs and their executable forms */
    long graph_launches;
    size_t used[FAKE_DEVICES];
    unsigned char peers[FAKE_DEVICES][FAKE_DEVICES]; /* access was enabled, from one to the other */
    long direct, staged; /* copies between devices: with that access, and through the host */
    int priority;        /* of the newest stream */
    long launches;
    long items;          /* work items of all of them */
    long queued;         /* queued work that is not done yet */
    int blas_create[4];  /* what the next calls of cublasLtCreate return */
    int blas_creates;    /* calls of cublasLtCreate */
    int blas_handles;    /* handles that are alive */
    int blas_matmul;     /* if not 0, cublasLtMatmul returns this and computes nothing */
    long products;       /* calls of cublasLtMatmul */
    int product_compute; /* the last call: compute type, transposed operands, batches */
    int product_transposed[2];
    int product_batch;
    long heuristics;
    char kernel[64]; /* the last one started */
    unsigned grid[3], block[3];
    long misuse; /* calls without a context, with dead handles, out of bounds */
    char misuse_text[128];
};

extern struct fake_cuda fake_cuda;

/* The host address of device memory, for the fakes themselves; NULL when [at, at + bytes) is not
 * inside one allocation. */
void *fake_memory(uint64_t at, size_t bytes);
/* Queues work on a stream; `run` gets a copy of `data`. Returns a CUresult. */
int fake_enqueue(void *stream, int (*run)(void *data), const void *data, size_t size);

/* kernels.c, generated */
struct fake_kernel {
    const char *name;
    int kind; /* 0 items, 1 groups, 2 tiles */
    int params;
    const size_t *sizes;
    int (*run)(void **params, int64_t x, int64_t z); /* over x items or groups, z times */
};
extern const struct fake_kernel fake_kernels[];
extern const size_t fake_kernel_count;
extern _Thread_local int64_t fake_item, fake_group, fake_z;

#endif
