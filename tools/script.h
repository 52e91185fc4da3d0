/* SPDX-License-Identifier: MIT
 *
 * Networks that are written with their graphs: tenon script and tenon convert. */
#ifndef TN_TOOLS_SCRIPT_H
#define TN_TOOLS_SCRIPT_H

#include "tool.h"

enum { SCRIPT_FILES = 16 };

typedef struct script_request {
    const char *model, *out, *weights, *passes, *dynamic;
    input_list inputs;
    const char *files[SCRIPT_FILES];
    int file_count;
    bool eval;     /* for evaluation only */
    tn_dtype cast; /* of the floating tensors; TN_DTYPE_AUTO: they stay */
} script_request;

/* Whether a name has more than this end. */
bool script_ends_with(const char *text, const char *end);
/* Writes the network to request->out, whose extension selects the format, and prints what was
 * written. A model that is a script or, for a file of its own format, a program, needs no inputs.
 * Returns the exit status. */
int script_write(const script_request *wanted, bool json);

#endif
