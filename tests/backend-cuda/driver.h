/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of test_cuda: the plugin and the fake driver. */
#ifndef TN_TESTS_BACKEND_CUDA_DRIVER_H
#define TN_TESTS_BACKEND_CUDA_DRIVER_H

#include "tests/fake-cuda/fake.h"
#include "tests/gpu/optional.h"

#define PLUGIN TN_TEST_BUILDDIR "/plugins/.libs/backend-cuda.so"
#define DRIVER TN_TEST_BUILDDIR "/tests/.libs/fake-cuda.so"
#define KERNELS TN_TEST_SRCDIR "/tests/fake-cuda/kernels"

struct options {
    const char *driver, *blas, *kernels;
};

extern struct direct d;
extern struct fake_cuda *fake;

/* Loads the plugin without activating it, and the fake driver, to control it. */
void load(void);
/* The same, with the first device opened; open_with_blas: with the driver's cuBLASLt, too. */
void open_one(void);
void open_with_blas(void);
/* Closes the device. Fails unless the driver then holds nothing, and has seen no misuse. */
void close_clean(void);
void expect(tn_status got, tn_status want, const char *words);
struct array *ones(int64_t count);

/* Adds the tests of a file: those that open the device themselves, and those that find it open. */
void add_products(TCase *to);
void add_memory(TCase *to);
void add_failures(TCase *opened);
void add_captures(TCase *opened);

#endif
