/* SPDX-License-Identifier: MIT
 *
 * Reads the option --input of the commands that call a network. */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool input_read(const char *text, tn_dtype *dtype, int64_t *sizes, int64_t *count)
{
    const char *at = text, *colon = strchr(text, ':');
    *count = 0;
    if (colon != NULL && tn_dtype_parse(colon + 1, dtype) != TN_OK)
        return false;
    while (*at != '\0' && *at != ':') {
        char *end;
        errno = 0;
        long long size = strtoll(at, &end, 10);
        if (end == at || size < 0 || errno == ERANGE || *count == TN_MAX_DIMS ||
            !strchr(",x:", *end) ||
            ((*end == ',' || *end == 'x') && (end[1] < '0' || end[1] > '9'))) {
            tn_fail(TN_ERR_VALUE,
                    "--input: not a shape, got \"%s\"; expected sizes such as 1,3,224,224 or, with "
                    "a dtype, 8,20:int64",
                    text);
            return false;
        }
        sizes[(*count)++] = size;
        at = *end == ',' || *end == 'x' ? end + 1 : end;
    }
    return true;
}
