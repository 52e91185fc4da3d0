/* SPDX-License-Identifier: MIT
 *
 * Finds the data that were installed with this program. */
#include "tool.h"

#include <string.h>
#include <unistd.h>

const char *installed_folder(const char *relative, const char *compiled)
{
    static char folder[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    char *slash = length > 0 ? (folder[length] = 0, strrchr(folder, '/')) : NULL;

    if (slash == NULL)
        return compiled;
    snprintf(slash + 1, PATH_MAX, "%s", relative);
    return access(folder, R_OK) == 0 ? folder : compiled;
}
