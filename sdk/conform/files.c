/* SPDX-License-Identifier: MIT
 *
 * Opening the files that the command line names. */
#include "conform.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *conform_open(const char *path, const char **why)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *stream = NULL;

    if (file >= 0 && fstat(file, &about) == 0 && !S_ISREG(about.st_mode))
        *why = "it is not a regular file";
    else if (file >= 0 && (stream = fdopen(file, "r")) != NULL)
        return stream;
    else
        *why = strerror(errno);
    if (file >= 0)
        close(file);
    return NULL;
}
