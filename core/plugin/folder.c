/* SPDX-License-Identifier: MIT
 *
 * The folder of plugins that belongs to this library. Its path is compiled in. If the installed
 * tree was copied elsewhere, the folder relative to the library is used instead, so that the copy
 * does not load plugins from the original tree. */
#include "core/plugin/private.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#ifndef TN_PLUGIN_DIR
#define TN_PLUGIN_DIR ""
#endif

static char folder[PATH_MAX] = TN_PLUGIN_DIR;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Finds the folder that contains the file of libtenon. Returns false if the core is linked into a
 * program. */
static bool own_folder(char real[PATH_MAX])
{
    Dl_info where;
    if (!dladdr((const void *)&tn__plugins_first, &where) || !where.dli_fname ||
        where.dli_fname[0] != '/' || !realpath(where.dli_fname, real))
        return false;
    char *slash = strrchr(real, '/');
    bool library = !strncmp(slash + 1, "libtenon", 8);
    *(slash == real ? slash + 1 : slash) = 0;
    return library;
}

bool tn__folder_beside(const char *compiled, const char *own, char *out, size_t size)
{
    char libdir[PATH_MAX], real[PATH_MAX], tail[32];
    size_t length = strlen(compiled),
           ending = (size_t)tn_snprint(tail, sizeof tail, "/tenon/%d", TN_ABI_MAJOR);
    if (length <= ending || length >= sizeof libdir || strcmp(compiled + length - ending, tail))
        return false; /* configured independently of the library's folder: does not move with it */
    tn_snprint(libdir, sizeof libdir, "%.*s", (int)(length - ending), compiled);
    if (realpath(libdir, real) && !strcmp(real, own))
        return false;
    return tn_snprint(out, size, "%s%s", own[1] ? own : "", tail) < (int64_t)size;
}

static void find(void)
{
    char own[PATH_MAX], beside[PATH_MAX];
    if (!own_folder(own) || !tn__folder_beside(TN_PLUGIN_DIR, own, beside, sizeof beside))
        return;
    memcpy(folder, beside, sizeof folder);
    tn_log(TN_LOG_DEBUG, "libtenon is in %s: the folder of plugins is %s instead of " TN_PLUGIN_DIR,
           own, folder);
}

const char *tn__plugin_folder(void)
{
    pthread_once(&once, find);
    return folder;
}
