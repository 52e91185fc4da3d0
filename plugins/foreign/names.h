/* SPDX-License-Identifier: MIT
 *
 * A table from names to numbers. It does not copy the names. */
#ifndef TN_FOREIGN_NAMES_H
#define TN_FOREIGN_NAMES_H

#include <tenon/plugin.h>

struct names_entry {
    const char *name; /* NULL: free */
    int64_t number;
};

struct names {
    struct names_entry *at;
    uint64_t size, count; /* size is 0 or a power of two */
};

/* Returns the number of a name, -1 if the table does not have it. */
TN_HIDDEN int64_t names_find(const struct names *names, const char *name);
/* Adds a name that the table does not have. */
TN_HIDDEN tn_status names_add(struct names *names, const char *name, int64_t number);
TN_HIDDEN void names_free(struct names *names);

#endif
