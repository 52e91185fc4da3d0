/* SPDX-License-Identifier: MIT
 *
 * Opens libraries at run time. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool find_functions(const struct data_library *library, void *handle)
{
    char *to = library->functions;

    for (int i = 0; library->symbols[i] != NULL; i++, to += sizeof(void *)) {
        void *address = dlsym(handle, library->symbols[i]);

        if (address == NULL) {
            tn_log(TN_LOG_WARNING, "data: library: %s: missing; the library is not used",
                   library->symbols[i]);
            return false;
        }
        memcpy(to, &address, sizeof address);
    }
    return true;
}

bool data_library_open(struct data_library *library)
{
    bool found;

    pthread_mutex_lock(&lock);
    for (int i = 0; !library->tried && library->names[i] != NULL; i++) {
        void *handle = dlopen(library->names[i], RTLD_NOW | RTLD_LOCAL);

        if (handle == NULL)
            continue;
        library->found = find_functions(library, handle);
        if (library->found)
            break;
        dlclose(handle);
    }
    library->tried = true;
    found = library->found;
    pthread_mutex_unlock(&lock);
    return found;
}
