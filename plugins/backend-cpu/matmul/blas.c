/* SPDX-License-Identifier: MIT
 *
 * OpenBLAS, opened with dlopen at activation. Only a build without threads is suitable: a build
 * with threads starts them when it is loaded, and they compete with the host's thread pool for the
 * cores. So this file searches where distributions install the serial build. It never opens a
 * library by a bare name, because the dynamic linker could find a threaded build. */
#include <dlfcn.h>
#include <glob.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "matmul/blas.h"
#include "simd/simd.h"

struct tn__blas tn__blas;

/* How often the end of the process looks whether BLAS is free, each time after a millisecond. */
enum { END_WAITS = 5000 };

/* The open library, NULL if there is none. It is never closed. */
static void *opened;

/* A lock: the id of the process that has a thread in BLAS, 0 if it is free. It is not a mutex,
 * because a mutex that another thread held at a fork would stay locked in the child forever. Here
 * the child finds the id of its parent and takes the lock: no thread of the child is in BLAS. */
static _Atomic int32_t inside;

/* Whether this thread is in BLAS or waits for it. */
static _Thread_local bool here;

void tn__blas_enter(void)
{
    here = true;
    int32_t me = (int32_t)getpid();
    for (;;) {
        int32_t holder = 0;
        if (atomic_compare_exchange_strong(&inside, &holder, me))
            return;
        if (holder != 0 && holder != me && atomic_compare_exchange_strong(&inside, &holder, me))
            return;
        sched_yield();
    }
}

void tn__blas_leave(void)
{
    atomic_store(&inside, 0);
    here = false;
}

/* exit() calls the destructor of OpenBLAS, which frees what its functions use, while other threads
 * still run. This destructor takes the lock and keeps it, so that those threads wait for the end of
 * the process in tn__blas_enter(). It runs first: glibc calls the destructors of libraries that do
 * not depend on each other in the order in which they were loaded. It waits for a limited
 * time, because a thread may stay in BLAS; if exit() was called in BLAS, by a signal handler, it
 * does not wait. */
__attribute__((destructor)) static void keep_threads_out(void)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    int32_t me = (int32_t)getpid();

    if (opened == NULL || here)
        return;
    for (int i = 0; i < END_WAITS; i++) {
        int32_t holder = 0;
        if (atomic_compare_exchange_strong(&inside, &holder, me) || holder != me)
            return;
        nanosleep(&pause, NULL);
    }
}

/* Paths of the serial build: Debian and its derivatives, Fedora and its derivatives, own builds. */
static const char *const places[] = {
#if defined(__x86_64__)
    "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
#elif defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0",
#endif
    "/usr/lib64/libopenblas-r*.so",
    "/usr/local/lib/openblas-serial/libopenblas.so.0",
};

/* Returns the flags for dlopen. If the program already contains a BLAS, RTLD_DEEPBIND keeps the
 * symbols of that BLAS from replacing those of the library. The sanitizers refuse RTLD_DEEPBIND:
 * *possible is false when it is needed and cannot be used. */
static int open_flags(bool *possible)
{
    *possible = true;
    if (!dlsym(RTLD_DEFAULT, "cblas_sgemm"))
        return RTLD_NOW | RTLD_LOCAL;
    if (dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init"))
        *possible = false;
#ifdef RTLD_DEEPBIND
    return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#else
    *possible = false;
    return RTLD_NOW | RTLD_LOCAL;
#endif
}

/* Opens the library `path`. Returns false and writes the reason to `why` if it cannot be used. */
static bool try_open(const char *path, char *why, size_t size)
{
    bool possible;
    int flags = open_flags(&possible);
    if (!possible) {
        tn_snprint(why, size, "the program already contains a BLAS with the same symbols");
        return false;
    }
    void *library = dlopen(path, flags);
    if (!library) {
        const char *reason = dlerror();
        tn_snprint(why, size, "%s", reason ? reason : "it cannot be opened");
        return false;
    }
    void *sgemm = dlsym(library, "cblas_sgemm"), *dgemm = dlsym(library, "cblas_dgemm"),
         *parallel = dlsym(library, "openblas_get_parallel");
    int threads = 0;
    if (parallel) {
        int (*get)(void);
        memcpy(&get, &parallel, sizeof get);
        threads = get();
    }
    if (!sgemm || !dgemm || threads != 0) {
        tn_snprint(why, size,
                   threads ? "it was built with threads" : "it has no cblas_sgemm or cblas_dgemm");
        dlclose(library);
        return false;
    }
    memcpy(&tn__blas.sgemm, &sgemm, sizeof sgemm);
    memcpy(&tn__blas.dgemm, &dgemm, sizeof dgemm);
    /* OpenBLAS before 0.3.22 uses its Haswell kernels on every AMD processor, even with AVX-512. */
    void *core = dlsym(library, "openblas_get_corename");
    if (core && strcmp(tn__simd.name, "avx512") == 0) {
        char *(*name)(void);
        memcpy(&name, &core, sizeof name);
        tn__blas.narrow = strcmp(name(), "Haswell") == 0 || strcmp(name(), "Zen") == 0;
    }
    opened = library;
    tn_log(TN_LOG_DEBUG, "cpu: matrix products use %s%s", path,
           tn__blas.narrow ? "; large products use built-in code with AVX-512" : "");
    return true;
}

void *tn__blas_symbol(const char *name)
{
    return opened ? dlsym(opened, name) : NULL;
}

tn_status tn__blas_open(const char *wanted)
{
    char why[512] = "no serial build was found";
    tn__blas.sgemm = NULL;
    tn__blas.dgemm = NULL;
    opened = NULL;
    if (wanted && strcmp(wanted, "none") == 0)
        return TN_OK;
    if (wanted && strcmp(wanted, "auto") != 0) {
        if (wanted[0] != '/')
            return tn_fail(
                TN_ERR_VALUE,
                "TENON_CPU_BLAS: unknown, got %s; expected auto, none or the absolute path "
                "of a library",
                wanted);
        if (!try_open(wanted, why, sizeof why))
            return tn_fail(
                TN_ERR_UNAVAILABLE,
                "TENON_CPU_BLAS: the library cannot be used, got %s: %s; expected a serial "
                "OpenBLAS, auto (searches for one) or none (uses built-in code)",
                wanted, why);
        tn__blas.narrow = false; /* the user chose this library, so all products may use it */
        return TN_OK;
    }
#ifndef TN_WITH_OPENBLAS
    return TN_OK; /* configure --without-openblas: only an explicit path opens a library */
#endif
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t found;
        bool open = false;
        if (glob(places[i], 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc && !open; k++)
            open = try_open(found.gl_pathv[k], why, sizeof why);
        globfree(&found);
        if (open)
            return TN_OK;
    }
    tn_log(TN_LOG_INFO, "cpu: no usable OpenBLAS (%s); matrix products use built-in code", why);
    return TN_OK;
}
