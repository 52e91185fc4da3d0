/* SPDX-License-Identifier: MIT
 *
 * Reads a whole file that an option names. */
#include "tool.h"

#include <sys/stat.h>

#include "sdk/conform/conform.h"

char *read_file(const char *option, const char *path, size_t most, size_t *size)
{
    const char *why = NULL;
    FILE *file = conform_open(path, &why);
    struct stat about;
    char *bytes = NULL;

    if (file == NULL || fstat(fileno(file), &about) != 0) {
        tn_fail(TN_ERR_IO, "%s: %s: cannot be read: %s", option, path,
                why != NULL ? why : "its size is unknown");
    } else if (about.st_size > (off_t)most) {
        tn_fail(TN_ERR_FORMAT, "%s: %s: too large, got %lld bytes; expected at most %lld", option,
                path, (long long)about.st_size, (long long)most);
    } else if ((bytes = tn_malloc((size_t)about.st_size + 1)) != NULL) {
        *size = fread(bytes, 1, (size_t)about.st_size, file);
        bytes[*size] = '\0';
        bool sizeless = about.st_size == 0 && fgetc(file) != EOF;
        if (ferror(file) || sizeless || *size != (size_t)about.st_size) {
            tn_fail(TN_ERR_IO,
                    sizeless ? "%s: %s: a file without a size, as those of /proc; expected a copy"
                             : "%s: %s: cannot be read to its end",
                    option, path);
            tn_free(bytes);
            bytes = NULL;
        }
    }
    if (file != NULL)
        fclose(file);
    return bytes;
}
