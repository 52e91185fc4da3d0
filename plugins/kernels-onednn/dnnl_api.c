/* SPDX-License-Identifier: MIT
 *
 * Opens oneDNN and makes messages for its errors. */
#include "dnnl_api.h"

#include <dlfcn.h>
#include <string.h>

struct dnnl_api dnnl;

tn_status dnnl_api_open(const char *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define DNNL_SYMBOL_(name) { #name, offsetof(struct dnnl_api, name) },
        DNNL_FUNCTIONS(DNNL_SYMBOL_)
#undef DNNL_SYMBOL_
            { "omp_get_max_threads", offsetof(struct dnnl_api, omp_get_max_threads) },
        { "omp_set_num_threads", offsetof(struct dnnl_api, omp_set_num_threads) },
    };
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    struct dnnl_api all = { .library = handle };

    if (!handle) {
        const char *why = dlerror();
        return tn_fail(TN_ERR_UNAVAILABLE, "oneDNN: cannot open %s: %s (Debian package libdnnl2)",
                       library, why ? why : "no reason given");
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(handle, symbols[i].name);

        if (!address)
            return tn_fail(TN_ERR_UNAVAILABLE,
                           "%s: function %s: missing; expected oneDNN %d with the OpenMP runtime",
                           library, symbols[i].name, DNNL_VERSION_MAJOR);
        memcpy((char *)&all + symbols[i].offset, &address, sizeof address);
    }
    const dnnl_version_t *version = all.dnnl_version();
    if (version->major != DNNL_VERSION_MAJOR || version->minor < DNNL_VERSION_MINOR)
        return tn_fail(
            TN_ERR_UNAVAILABLE,
            "%s: wrong version, got oneDNN %d.%d; expected %d.%d or a later minor version, because "
            "Tenon was compiled with the headers of that version",
            library, version->major, version->minor, DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR);
    dnnl_status_t error = all.dnnl_engine_create(&all.engine, dnnl_cpu, 0);
    if (error != dnnl_success)
        return dnnl_api_fail(error, "making an engine");
    dnnl = all;
    tn_log(TN_LOG_DEBUG, "onednn: version %d.%d.%d from %s", version->major, version->minor,
           version->patch, library);
    return TN_OK;
}

void dnnl_api_close(void)
{
    if (dnnl.engine)
        dnnl.dnnl_engine_destroy(dnnl.engine);
    dnnl.engine = NULL;
}

tn_status dnnl_api_fail(dnnl_status_t error, const char *what)
{
    static const char *const words[] = {
        [dnnl_out_of_memory] = "out of memory",
        [dnnl_invalid_arguments] = "invalid arguments",
        [dnnl_unimplemented] = "not implemented",
        [dnnl_runtime_error] = "runtime error",
    };
    const char *word = (size_t)error < sizeof words / sizeof *words ? words[error] : NULL;

    return tn_fail_native(error == dnnl_out_of_memory ? TN_ERR_MEMORY : TN_ERR_RUNTIME, (int)error,
                          "oneDNN: %s failed: %s (%d)", what, word ? word : "?", (int)error);
}

int dnnl_api_enter(void)
{
    int before = dnnl.omp_get_max_threads();
    if (before != 1)
        dnnl.omp_set_num_threads(1);
    return before;
}

void dnnl_api_leave(int before)
{
    if (before != 1)
        dnnl.omp_set_num_threads(before);
}
