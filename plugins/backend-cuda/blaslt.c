/* SPDX-License-Identifier: MIT
 *
 * Opens cuBLASLt libraries and chooses one for each device. blaslt_matmul.c calls the libraries. */
#include "blaslt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_LIBRARIES = 8 };
static struct blaslt_library libraries[MOST_LIBRARIES];
static int n_libraries;
static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;

static bool open_one(struct blaslt_library *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define BLASLT_FUNCTION(name, args) { #name, offsetof(struct blaslt_library, name) },
#include "blaslt_functions.h"
    };
    void *handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL);

    library->tried = true;
    if (!handle)
        return false;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(handle, symbols[i].name);

        if (!address) {
            tn_log(TN_LOG_WARNING, "cuda: %s has no function %s and is not used", library->name,
                   symbols[i].name);
            return false;
        }
        memcpy((char *)library + symbols[i].offset, &address, sizeof address);
    }
    library->handle = handle;
    return true;
}

static bool opened(struct blaslt_library *library)
{
    bool there;

    pthread_mutex_lock(&libraries_lock);
    there = library->handle || (!library->tried && open_one(library));
    pthread_mutex_unlock(&libraries_lock);
    return there;
}

static void names_split(const char *names)
{
    n_libraries = 0;
    while (*names && n_libraries < MOST_LIBRARIES) {
        size_t length = strcspn(names, ",");
        struct blaslt_library *library = &libraries[n_libraries];

        memset(library, 0, sizeof *library);
        if (length >= sizeof library->name)
            tn_log(TN_LOG_WARNING,
                   "cuda: TENON_CUDA_BLAS: a name is too long and is ignored, got %d bytes; "
                   "expected at most %d",
                   (int)length, (int)sizeof library->name - 1);
        else if (length > 0)
            memcpy(libraries[n_libraries++].name, names, length);
        names += length + (names[length] == ',');
    }
}

void blaslt_open(const char *names)
{
    bool automatic = strcmp(names, "auto") == 0, any = false;

    names_split(automatic ? "libcublasLt.so.13,libcublasLt.so.12,libcublasLt.so.11"
                : strcmp(names, "none") == 0 ? ""
                                             : names);
    for (int i = 0; i < n_libraries && !any; i++)
        any = opened(&libraries[i]);
    if (any || n_libraries == 0)
        return;
    n_libraries = 0;
    if (automatic)
        tn_log(TN_LOG_INFO, "cuda: no libcublasLt was found; matrix products use Tenon's kernel");
    else
        tn_log(TN_LOG_WARNING,
               "cuda: TENON_CUDA_BLAS=%s: no library can be opened; matrix products use Tenon's "
               "kernel",
               names);
}

void blaslt_describe(const struct blaslt_device *device, char *text, size_t size)
{
    text[0] = '\0';
    if (device->handle) {
        int version = (int)device->library->cublasLtGetVersion();

        tn_snprint(text, size, ", cuBLASLt %d.%d", version / 10000, version % 10000 / 100);
    } else if (n_libraries > 0 && !device->tried) {
        tn_snprint(text, size, ", cuBLASLt"); /* the library starts at the first product */
    }
}

bool blaslt_found(void)
{
    return n_libraries > 0;
}

void blaslt_device_close(struct blaslt_device *device)
{
    if (device->handle)
        device->library->cublasLtDestroy(device->handle);
    device->handle = NULL;
    device->tried = false;
    atomic_store(&device->none, false);
}

const char *blaslt_status_name(blaslt_status status)
{
    static const struct {
        blaslt_status status;
        const char *name;
    } names[] = { { 1, "NOT_INITIALIZED" }, { 3, "ALLOC_FAILED" },   { 7, "INVALID_VALUE" },
                  { 8, "ARCH_MISMATCH" },   { 11, "MAPPING_ERROR" }, { 13, "EXECUTION_FAILED" },
                  { 14, "INTERNAL_ERROR" }, { 15, "NOT_SUPPORTED" }, { 16, "LICENSE_ERROR" } };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].status == status)
            return names[i].name;
    return "unknown";
}

/* Chooses the library for a device. Logs one warning that names all libraries that did not start,
 * and what matrix products use instead. */
static void start(struct blaslt_device *device, const char *device_name)
{
    char failures[768] = "";
    size_t used = 0;

    device->tried = true;
    for (int i = 0; i < n_libraries && !device->handle; i++) {
        blaslt_status error;

        if (!opened(&libraries[i]))
            continue;
        error = libraries[i].cublasLtCreate(&device->handle);
        device->library = &libraries[i];
        if (!error)
            break;
        device->handle = NULL;
        /* Only the file name: three full paths would be too long for a line of the log. */
        const char *slash = strrchr(libraries[i].name, '/');
        if (used < sizeof failures)
            used += (size_t)tn_snprint(failures + used, sizeof failures - used,
                                       "%s%s: CUBLAS_STATUS_%s (%d)", used > 0 ? ", " : "",
                                       slash ? slash + 1 : libraries[i].name,
                                       blaslt_status_name(error), (int)error);
    }
    atomic_store(&device->none, !device->handle);
    if (used > 0)
        tn_log(TN_LOG_WARNING, "cuda: cuBLASLt does not start on %s (%s); matrix products use %s",
               device_name, failures, device->handle ? device->library->name : "Tenon's kernel");
}

bool blaslt_start(struct blaslt_device *device, const char *name)
{
    if (!device->tried)
        start(device, name);
    return device->handle;
}
