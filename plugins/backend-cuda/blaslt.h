/* SPDX-License-Identifier: MIT
 *
 * cuBLASLt as this plugin uses it: own declarations, so that no header of NVIDIA is needed, and
 * libraries that are opened when the plugin is activated, if there are any. */
#ifndef BLASLT_H
#define BLASLT_H

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
    BLASLT_PREF_ALIGN_A = 5 /* then B, C, D */
};

/* A library by name, opened when it is needed. */
struct blaslt_library {
    char name[4096];
    void *handle;
    bool tried; /* whether opening it was tried */
#define BLASLT_FUNCTION(name, args) blaslt_status(*name) args;
#include "blaslt_functions.h"
};

/* The library of a device, chosen at its first product. */
struct blaslt_device {
    void *handle; /* of `library`; NULL: no library, products use the kernel of matmul.cl */
    const struct blaslt_library *library;
    bool tried;          /* whether a choice was tried */
    _Atomic bool none;   /* whether no library starts on this device */
    _Atomic bool warned; /* whether an unexpected failure of a product was logged */
};

/* Sets the libraries that may be used: names or paths, separated by commas, in the order they
 * are tried; "auto": those of NVIDIA, newest first; "none". Where none can be opened, which is
 * logged, and where none starts on a device, products use the kernel of this plugin. */
void blaslt_open(const char *names);
/* Whether any library can be used. */
bool blaslt_found(void);
/* Starts the first library that works on the device called `name`, unless that was tried before.
 * The caller holds the device's lock, and its context is current. Returns whether there is one. */
bool blaslt_start(struct blaslt_device *device, const char *name);
/* Writes ", cuBLASLt 13.0" for the line of a device, or nothing. The caller holds the device's
 * lock. */
void blaslt_describe(const struct blaslt_device *device, char *text, size_t size);
void blaslt_device_close(struct blaslt_device *device);
/* "INVALID_VALUE". */
const char *blaslt_status_name(blaslt_status status);

#endif
