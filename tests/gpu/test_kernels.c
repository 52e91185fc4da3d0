/* SPDX-License-Identifier: MIT
 *
 * Every kernel of backend-opencl and backend-cuda against arithmetic in double, over layouts and types. OpenCL runs on whatever
 * the loader finds (PoCL here); CUDA on the fake driver, where the same kernel text is compiled as C. */
#include "tests/gpu/kernels.h"

struct direct here;
/* PoCL takes a while for each kernel that it has not seen: there, fewer types, as the text is the same. */
uint32_t tried = TN_MASK_ALL;
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
    add_copies(tcase, slow);
    add_sums(tcase, slow);
    add_losses(tcase, slow);
    add_draws(tcase, slow);
    return suite;
}

int main(void)
{
    const char *which = getenv("TN_TEST_GPU");
    char file[4096];
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
    snprintf(file, sizeof file, "%s/plugins/.libs/backend-%s.so", TN_TEST_BUILDDIR, which);
    if (!direct_load(&here, file)) {
        printf("SKIP: backend-%s was not built\n", which);
        return 77;
    }
    if (strcmp(which, "opencl") == 0)
        *(const char **)here.plugin->options_data = getenv("TENON_OPENCL_LIBRARY");
    if (strcmp(which, "cuda") == 0) {
        static char driver[4096], kernels[4096];
        const char **options = here.plugin->options_data, *blas = getenv("TN_TEST_BLAS");

        snprintf(driver, sizeof driver, "%s/tests/.libs/fake-cuda.so", TN_TEST_BUILDDIR);
        snprintf(kernels, sizeof kernels, "%s/tests/fake-cuda/kernels", TN_TEST_SRCDIR);
        options[0] = driver;
        options[1] = blas ? driver : "none";
        options[2] = kernels;
        if (getenv("TN_TEST_REAL")) { /* tests/device/run */
            options[0] = "libcuda.so.1";
            options[1] = blas ? blas : "auto";
            options[2] = "";
        }
    }
    if (direct_open(&here, 0)) {
        printf("SKIP: %s\n", tn_error_text());
        return 77;
    }
    printf("%s: %s (%s)\n", which, here.info.name, here.info.driver);
    runner = srunner_create(suite_make(which));
    /* one process: programs compiled for one test serve the next */
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    direct_close(&here);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
