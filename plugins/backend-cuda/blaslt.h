/* SPDX-License-Identifier: MIT
 *
 * The interface of cuBLASLt that this plugin uses. Types and functions are declared here, so that
 * no NVIDIA header is needed. The activation of the plugin opens a library. If there is none, the
 * plugin computes matrix products with its own kernel. */
#ifndef TN_BACKEND_CUDA_BLASLT_H
#define TN_BACKEND_CUDA_BLASLT_H

#include "cu_api.h"

typedef int32_t blaslt_status;
typedef struct blaslt_algo {
    uint64_t data[8];
} blaslt_algo;
typedef struct blaslt_result {
    blaslt_algo algo;
    size_t workspace;
    blaslt_status state;
    float waves;
    int32_t reserved[4];
} blaslt_result;

enum {
    BLASLT_R_32F = 0,
    BLASLT_R_64F = 1,
    BLASLT_R_16F = 2,
    BLASLT_R_16BF = 14,
    BLASLT_COMPUTE_32F = 68,
    BLASLT_COMPUTE_64F = 70,
    BLASLT_COMPUTE_32F_FAST_TF32 = 77,
    BLASLT_DESC_TRANSA = 3,
    BLASLT_DESC_TRANSB = 4,
    BLASLT_LAYOUT_BATCH_COUNT = 5,
    BLASLT_LAYOUT_BATCH_STRIDE = 6,
    BLASLT_PREF_WORKSPACE = 1,
    BLASLT_PREF_ALIGN_A = 5 /* B, C and D are the next three numbers */
};

/* A cuBLASLt library. blaslt_open() opens the first one; a further one is opened only if no earlier
 * one starts on a device. */
struct blaslt_library {
    char name[4096];
    void *handle;
    bool tried; /* whether dlopen() was called for it */
#define BLASLT_FUNCTION(name, args) blaslt_status(*name) args;
#include "blaslt_functions.h"
};

/* The library that a device uses; it is chosen at the first matrix product on the device. */
struct blaslt_device {
    void *handle; /* from cublasLtCreate(); NULL: products use the kernel of matmul.cl */
    const struct blaslt_library *library;
    bool tried;          /* whether blaslt_start() has tried the libraries */
    _Atomic bool none;   /* whether no library starts on this device */
    _Atomic bool warned; /* whether an unexpected failure of a product was logged */
};

/* Sets the libraries to try, in this order: names or paths, separated by commas; "auto" stands for
 * NVIDIA's libraries, newest first, and "none" for no library. Opens the first one that can be
 * opened; logs a message if none can. If no library can be opened or none starts on a device,
 * matrix products use the kernel of this plugin. */
void blaslt_open(const char *names);
/* Returns whether blaslt_open() has found a library. */
bool blaslt_found(void);
/* Starts the first library that works on the device, which is called `name` in messages. Does this
 * only once per device. The caller holds the device's lock, and the device's context is current.
 * Returns whether a library works on the device. */
bool blaslt_start(struct blaslt_device *device, const char *name);
/* Writes the library that the device uses, such as ", cuBLASLt 13.0", for the description of the
 * device; "" if there is none. The caller holds the device's lock. */
void blaslt_describe(const struct blaslt_device *device, char *text, size_t size);
void blaslt_device_close(struct blaslt_device *device);
/* Returns the name of a status without its prefix, such as "INVALID_VALUE". */
const char *blaslt_status_name(blaslt_status status);

#endif
