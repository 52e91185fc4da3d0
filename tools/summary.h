/* SPDX-License-Identifier: MIT
 *
 * The rows of `tenon summary`. */
#ifndef TN_TOOLS_SUMMARY_H
#define TN_TOOLS_SUMMARY_H

#include "count.h"

enum { NAME_SIZE = 192, SHAPE_SIZE = 128, LEVELS = 256 };

/* One call of a module. */
typedef struct row {
    tn_module *module;
    const char *type;
    char *path;           /* of a part of a script; NULL: the row is of a call */
    char name[NAME_SIZE]; /* the name of the module in its parent */
    char shape[SHAPE_SIZE];
    int depth;
    bool again, leaf;
    int64_t parameters, macs, bytes; /* without those of children; `bytes`: of the results */
} row;

typedef struct summary {
    row *rows;
    int64_t count, capacity;
    int64_t stack[LEVELS]; /* rows of the calls that have begun and not ended */
    int depth;
    int64_t macs; /* ops.macs at the last call of summary_settle() */
    op_count ops;
    bool failed;
} summary;

/* Adds the multiply-adds since the last call of summary_settle to the row of the innermost call. */
void summary_settle(summary *s);
/* Makes room for another row; sets `failed` if there is no memory. */
void summary_grow(summary *s);
/* A visitor of parameters that counts the elements of those of the module itself. */
tn_status summary_add_own(void *user, const char *path, tn_tensor *tensor);
/* Appends the shape of a result to the row: "[2, 10]", or "[2, 10], [2]" for several results. */
void summary_add_result(row *r, size_t *at, const tn_value *value);

/* summary_script.c: fills the rows with the parts of a script, by running its graph. */
tn_status summary_of_script(tn_module *script, const tn_pack *input, summary *s);

#endif
