/* SPDX-License-Identifier: MIT
 *
 * Libraries that are opened when a file first needs them: the plugin works without them. */
#ifndef TN_DATA_LIBRARY_H
#define TN_DATA_LIBRARY_H

#include <tenon/plugin.h>

struct data_library {
    const char *const *names;   /* its file, by all names that may be tried; ends with NULL */
    const char *const *symbols; /* the functions; ends with NULL */
    void *functions;            /* a struct of pointers to them, in this order */
    bool tried, found;
};

/* Opens the library, once. Returns whether all its functions are there. Any thread may call it. */
bool data_library_open(struct data_library *library);

#endif
