/* SPDX-License-Identifier: MIT
 *
 * Files with the profile; the end of the name chooses the kind. */
#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_ROWS = 40 };

static void tables_add(output *t, const result *r)
{
    ceiling_flops();
    table_summary(t, r);
    text_put(t, "\nBy operator, self without and total with what is inside:\n\n");
    table_add(t, r, TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, TABLE_ROWS);
    text_put(t, "\nBy module, self without the modules inside:\n\n");
    table_add(t, r, TN_PROFILE_BY_MODULE, TN_PROFILE_SORT_TOTAL, TABLE_ROWS);
}

static const struct {
    const char *end;
    void (*add)(output *t, const result *r);
} kinds[] = { { ".json", trace_add }, { ".html", page_add }, { ".txt", tables_add } };

/* Removes what a failed write has left, but never a device or a pipe. */
static void remove_file(const char *path)
{
    struct stat about;

    if (lstat(path, &about) == 0 && S_ISREG(about.st_mode))
        unlink(path);
}

/* Opens the file. A pipe without a reader, for which open() would wait, fails with ENXIO. */
static FILE *create(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    FILE *out = file >= 0 && fcntl(file, F_SETFL, 0) == 0 ? fdopen(file, "w") : NULL;
    int error = errno;

    if (out == NULL && file >= 0)
        close(file);
    errno = error;
    return out;
}

static tn_status save(const char *path, const output *t)
{
    FILE *out = create(path);
    size_t wrote;

    if (out == NULL)
        return tn_fail(TN_ERR_IO, "profile: %s: cannot be written: %s", path,
                       errno == ENXIO ? "it is a pipe that nobody reads; start its reader first"
                                      : strerror(errno));
    wrote = fwrite(t->at, 1, t->size, out);
    int error = errno;
    if (fclose(out) != 0) {
        error = wrote == t->size ? errno : error;
        wrote = 0;
    }
    if (wrote == t->size)
        return TN_OK;
    remove_file(path);
    return tn_fail(TN_ERR_IO, "profile: %s: cannot be written: %s", path, strerror(error));
}

tn_status write_file(const char *path)
{
    size_t length = path != NULL ? strlen(path) : 0, kind = 0;
    output t = { .at = NULL };
    tn_status status;

    while (kind < sizeof kinds / sizeof *kinds) {
        size_t end = strlen(kinds[kind].end);
        if (length > end && strcmp(path + length - end, kinds[kind].end) == 0)
            break;
        kind++;
    }
    if (kind == sizeof kinds / sizeof *kinds)
        return tn_fail(TN_ERR_VALUE,
                       "profile: path: unknown kind of file, got %q; expected NAME.json, NAME.html "
                       "or NAME.txt",
                       path);
    kinds[kind].add(&t, result_get());
    status = t.failed ? tn_fail(TN_ERR_MEMORY, "profile: %s: out of memory", path) : save(path, &t);
    text_free(&t);
    return status;
}

void write_list(const char *paths)
{
    while (*paths != '\0') {
        size_t length = strcspn(paths, ":");
        char *path = tn_malloc(length + 1);
        uint64_t mark = tn_error_mark();
        tn_status status = path != NULL ? TN_OK : TN_ERR_MEMORY;
        if (status == TN_OK) {
            memcpy(path, paths, length);
            path[length] = '\0';
            status = length > 0 ? write_file(path) : TN_OK;
        }
        if (status != TN_OK)
            tn_log(TN_LOG_WARNING, "TENON_PROFILE: %s", tn_error_last()->message);
        tn_error_restore(mark);
        tn_free(path);
        paths += length + (paths[length] == ':');
    }
}
