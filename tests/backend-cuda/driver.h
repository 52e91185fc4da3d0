/* SPDX-License-Identifier: MIT
 *
 * What the files of test_cuda share: the plugin and the fake driver beside it. */
#ifndef TESTS_BACKEND_CUDA_DRIVER_H
#define TESTS_BACKEND_CUDA_DRIVER_H

#include "tests/fake-cuda/fake.h"
#include "tests/gpu/direct.h"

#define PLUGIN TN_TEST_BUILDDIR "/plugins/.libs/backend-cuda.so"
#define DRIVER TN_TEST_BUILDDIR "/tests/.libs/fake-cuda.so"
#define KERNELS TN_TEST_SRCDIR "/tests/fake-cuda/kernels"

struct options {
    const char *driver, *blas, *kernels;
};

extern struct direct d;
extern struct fake_cuda *fake;

/* The plugin, not yet activated; the fake driver mapped beside it so that it can be told things. */
void load(void);
/* And its first device opened, also with the driver's cuBLASLt. */
void open_one(void);
void open_with_blas(void);
/* After everything was dropped: nothing is left with the driver, and nothing was done that a real one would punish. */
void close_clean(void);
void expect(tn_status got, tn_status want, const char *words);
struct array *ones(int64_t count);

/* The tests of each file: those that open the device themselves, and those that find it open. */
void add_products(TCase *to);
void add_failures(TCase *opened);

#endif
