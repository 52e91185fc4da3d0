/* SPDX-License-Identifier: MIT
 *
 * Every kernel of backend-opencl and backend-cuda against arithmetic in double, over layouts and
 * types. OpenCL runs on the driver that the loader finds (PoCL in CI), CUDA on the fake
 * driver, where the same kernel text is compiled as C. */
#include "tests/folders.h"
#include "tests/gpu/kernels.h"

struct direct here;
/* PoCL compiles each kernel slowly. The text is the same for all types, so OpenCL is tested with
 * fewer types. */
uint64_t tried = TN_MASK_ALL;
#define TRIED_IN_OPENCL                                                                            \
    (TN_BIT(TN_BOOL) | TN_BIT(TN_U8) | TN_BIT(TN_I32) | TN_BIT(TN_I64) | TN_BIT(TN_F16) |          \
     TN_BIT(TN_F32) | TN_BIT(TN_F64))

static Suite *suite_make(const char *name)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create("kernels");
    bool slow = getenv("TN_TEST_SLOW_DEVICE") != NULL;

    tcase_set_timeout(tcase, 300);
    suite_add_tcase(suite, tcase);
    add_elementwise(tcase, slow);
    add_copy(tcase, slow);
    add_reduction(tcase, slow);
    add_matmul(tcase, slow);
    add_loss(tcase, slow);
    add_random(tcase, slow);
    return suite;
}

int main(void)
{
    const char *which = getenv("TN_TEST_GPU");
    bool library = false;
    char file[TEST_PATH], name[64];
    SRunner *runner;
    int failed;

    if (!which)
        which = "opencl";
#ifdef NO_REAL_DRIVERS
    if (strcmp(which, "opencl") == 0) {
        printf("SKIP: OpenCL drivers are not built for ThreadSanitizer\n");
        return 77;
    }
#endif
    if (strcmp(which, "opencl") == 0 && !getenv("TN_TEST_ALL"))
        tried = TRIED_IN_OPENCL;
    snprintf(name, sizeof name, "plugins/.libs/backend-%s.so", which);
    if (!direct_load(&here, built_path(file, name))) {
        printf("SKIP: backend-%s was not built\n", which);
        return 77;
    }
    if (strcmp(which, "opencl") == 0)
        *(const char **)here.plugin->options_data = getenv("TENON_OPENCL_LIBRARY");
    if (strcmp(which, "cuda") == 0) {
        static char driver[TEST_PATH], kernels[TEST_PATH];
        const char **options = here.plugin->options_data, *blas = getenv("TN_TEST_BLAS");

        source_path(kernels, "tests/fake-cuda/kernels");
        options[0] = built_path(driver, "tests/.libs/fake-cuda.so");
        options[1] = blas ? driver : "none";
        options[2] = kernels;
        if (getenv("TENON_CUDA_DRIVER")) { /* on a device: the real driver (tests/device/run) */
            options[0] = getenv("TENON_CUDA_DRIVER");
            options[1] = blas ? blas : "none";
            options[2] = getenv("TENON_CUDA_KERNELS");
        }
        library = blas && strcmp(options[1], "none") != 0;
    }
    if (direct_open(&here, 0)) {
        printf("SKIP: %s\n", tn_error_text());
        return 77;
    }
    printf("%s: %s (%s)\n", which, here.info.name, here.info.driver);
    if (library && !strstr(here.info.driver, "cuBLASLt")) {
        direct_close(&here);
        printf("SKIP: cuBLASLt is asked for and not found\n");
        return 77;
    }
    runner = srunner_create(suite_make(which));
    /* one process: programs compiled for one test serve the next */
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (library &&
        (here.backend->info(here.device, &here.info) || !strstr(here.info.driver, "cuBLASLt "))) {
        printf("FAILED: cuBLASLt is there and did no product: %s\n", here.info.driver);
        failed++;
    }
    direct_close(&here);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
