/* SPDX-License-Identifier: MIT
 *
 * Discovery of plugins, once per process: first the folders of TENON_PLUGIN_PATH (or the
 * compiled-in folder if it is not set), then those of TENON_PLUGIN_PATH_ADD; in each folder all
 * *.so files, sorted by name. After the files were loaded, requirements are resolved and
 * contributions registered. */
#include "core/base/vector.h"
#include "core/plugin/private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static _Atomic bool done;
static bool under_way;

/* Only one thread at a time discovers or loads plugins. The lock is recursive because plugins may
 * call the library meanwhile. */
static pthread_mutex_t turn;
static pthread_once_t turn_once = PTHREAD_ONCE_INIT;

static void make_turn(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&turn, &kind);
    pthread_mutexattr_destroy(&kind);
}

static void take_turn(void)
{
    pthread_once(&turn_once, make_turn);
    pthread_mutex_lock(&turn);
}

/* ---- folders --------------------------------------------------------------------------------- */

struct names {
    char **at;
    int64_t count, capacity;
};

static void free_names(struct names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        tn_free(names->at[i]);
    tn_free(names->at);
}

static tn_status add_name(struct names *names, const char *name)
{
    if (!tn__vector_room(&names->at, &names->capacity, names->count + 1, sizeof *names->at))
        return TN_ERR_MEMORY;
    names->at[names->count] = tn_strdup(name);
    return names->at[names->count] ? names->count++, TN_OK : TN_ERR_MEMORY;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a line to the load report for a folder that is not searched. */
static tn_status folder_line(const char *folder, tn_outcome outcome, tn_stage stage,
                             const char *words)
{
    if (tn__plugin_by_file(folder))
        return TN_OK;
    tn__plugin *plugin = tn__plugin_add(folder);
    if (!plugin)
        return TN_ERR_MEMORY;
    plugin->private->folder = true;
    tn_log(TN_LOG_WARNING, "plugin folder %s: %s", folder, words);
    tn__plugin_outcome(plugin, outcome, stage,
                       outcome == TN_OUTCOME_REFUSED ? TN_ERR_REFUSED : TN_ERR_IO, "%s", words);
    return TN_OK;
}

/* Lists the plugins of a folder, in *broken the errno if it cannot be read to its end. */
static tn_status read_folder(DIR *open, struct names *names, int *broken)
{
    tn_status status = TN_OK;
    struct dirent *entry;
    while (status == TN_OK && (errno = 0, entry = readdir(open))) {
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] != '.' && length > 3 && !strcmp(entry->d_name + length - 3, ".so"))
            status = add_name(names, entry->d_name);
    }
    *broken = errno;
    if (names->count > 1)
        qsort(names->at, (size_t)names->count, sizeof *names->at, by_name);
    return status;
}

static tn_status discover_folder(const char *folder, bool must_exist)
{
    char words[400], real[PATH_MAX], path[PATH_MAX];
    struct names names = { 0 };
    struct stat at;
    if (folder[0] != '/')
        return folder_line(folder, TN_OUTCOME_REFUSED, TN_STAGE_FOUND,
                           "not an absolute path; the current folder is never searched");
    if (!realpath(folder, real) || stat(real, &at)) {
        if (!must_exist)
            return TN_OK;
        tn_snprint(words, sizeof words, "the folder cannot be found: %s", strerror(errno));
        return folder_line(folder, TN_OUTCOME_FAILED, TN_STAGE_FOUND, words);
    }
    if (!S_ISDIR(at.st_mode))
        return folder_line(folder, TN_OUTCOME_FAILED, TN_STAGE_FOUND,
                           "the plugin path names it, but it is not a folder");
    if (!tn__file_check_owner(&at, "folder", words, sizeof words) ||
        !tn__file_check_above(real, words, sizeof words))
        return folder_line(real, TN_OUTCOME_REFUSED, TN_STAGE_OWNER, words);
    DIR *open = opendir(real);
    if (!open) {
        tn_snprint(words, sizeof words, "the folder cannot be read: %s", strerror(errno));
        return folder_line(real, TN_OUTCOME_FAILED, TN_STAGE_READABLE, words);
    }
    int broken;
    tn_status status = read_folder(open, &names, &broken);
    if (status == TN_OK && broken != 0) {
        tn_snprint(words, sizeof words, "the folder cannot be read to its end: %s",
                   strerror(broken));
        status = folder_line(real, TN_OUTCOME_FAILED, TN_STAGE_READABLE, words);
    }
    closedir(open);
    for (int64_t i = 0; status == TN_OK && i < names.count; i++) {
        if (tn_snprint(path, sizeof path, "%s/%s", real[1] ? real : "", names.at[i]) >=
            (int64_t)sizeof path)
            continue; /* the path is too long to be opened */
        if (!tn__load_file(path))
            status = TN_ERR_MEMORY;
    }
    free_names(&names);
    return status;
}

tn_status tn__discover_path(const char *folders, bool must_exist)
{
    tn_status status = TN_OK;
    while (folders && *folders && status == TN_OK) {
        size_t length = strcspn(folders, ":");
        char *folder = length ? tn_malloc(length + 1) : NULL;
        if (length && !folder)
            return TN_ERR_MEMORY;
        if (length) {
            memcpy(folder, folders, length);
            folder[length] = 0;
            status = discover_folder(folder, must_exist);
        }
        tn_free(folder);
        folders += length + (folders[length] == ':');
    }
    return status;
}

/* ---- requirements (docs/abi.md, rule 0) ------------------------------------------------------ */

/* Compares versions such as "1.10.0" and "1.9" number by number, up to the first part that is not a
 * number. Returns < 0, 0 or > 0. */
int tn__plugin_compare_versions(const char *a, const char *b)
{
    for (;;) {
        char *end_a, *end_b;
        unsigned long x = isdigit((unsigned char)*a) ? strtoul(a, &end_a, 10) : 0;
        unsigned long y = isdigit((unsigned char)*b) ? strtoul(b, &end_b, 10) : 0;
        if (x != y)
            return x < y ? -1 : 1;
        a = isdigit((unsigned char)*a) ? end_a : a;
        b = isdigit((unsigned char)*b) ? end_b : b;
        if (*a != '.' && *b != '.')
            return 0;
        a += *a == '.';
        b += *b == '.';
    }
}

static bool settle(tn__plugin *plugin);

static bool requirement_met(tn__plugin *plugin, const tn_requirement *need)
{
    const char *min = need->min ? need->min : "", *max = need->max ? need->max : "";
    tn__plugin *other = tn__plugin_by_id(need->id);
    tn__text why = { 0 };
    if (!other) {
        for (tn__plugin *p = tn__plugins_first; p && !other; p = p->next)
            other = !strcmp(p->id, need->id) ? p : NULL;
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_REFUSED,
                           "requires the plugin %q, which was not found%s%s", need->id,
                           other ? ": " : "", other ? other->report.reason : "");
        return false;
    }
    if (other->private->mark == 1) {
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_REFUSED,
                           "requires the plugin %q, which requires this plugin: a cycle", need->id);
        return false;
    }
    if ((*min && tn__plugin_compare_versions(other->version, min) < 0) ||
        (*max && tn__plugin_compare_versions(other->version, max) >= 0)) {
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_REFUSED,
                           "requires the plugin %q in a version%s%s%s%s; %s is version %s",
                           need->id, *min ? " from " : "", min, *max ? " below " : "", max,
                           other->file, other->version);
        return false;
    }
    if (settle(other))
        return true;
    tn__plugin_line(other, &why);
    tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_REFUSED,
                       "requires the plugin %q, which cannot be used: %s", need->id,
                       why.at ? why.at : "");
    tn__text_free(&why);
    return false;
}

/* Checks the requirements of a plugin, recursively. Returns whether the plugin can be used. */
static bool settle(tn__plugin *plugin)
{
    tn__plugin_private *own = plugin->private;
    if (own->mark >= 2 || !own->negotiated)
        return own->negotiated && plugin->report.outcome == TN_OUTCOME_OK;
    own->mark = 1;
    bool good = plugin->report.outcome == TN_OUTCOME_OK;
    const tn_requirement *need = own->descriptor.requires_;
    for (; good && need && need->id; need++)
        good = requirement_met(plugin, need);
    own->mark = 2;
    return good;
}

/* Registers the contributions of one pass, first those of the plugins that this plugin requires. */
static tn_status contribute(tn__plugin *plugin, int pass)
{
    const tn_requirement *need = plugin->private->descriptor.requires_;
    tn_status status = TN_OK;
    if (plugin->private->mark != 2 || plugin->private->distributed ||
        plugin->report.outcome != TN_OUTCOME_OK)
        return TN_OK;
    plugin->private->distributed = true; /* in this pass */
    for (; need && need->id && status == TN_OK; need++) {
        tn__plugin *other = tn__plugin_by_id(need->id);
        if (other)
            status = contribute(other, pass);
    }
    return status == TN_OK ? tn__contribute(plugin, pass) : status;
}

tn_status tn__plugins_settle(void)
{
    tn__plugin *p;
    tn_status status = TN_OK;
    tn__plugins_lock();
    for (p = tn__plugins_first; p; p = p->next)
        if (p->private->negotiated && !p->private->mark)
            settle(p);
    tn__plugins_unlock();
    for (int pass = 0; pass < TN__PASS_COUNT; pass++) {
        for (p = tn__plugins_first; p; p = p->next)
            p->private->distributed = p->private->mark != 2;
        for (p = tn__plugins_first; p && status == TN_OK; p = p->next)
            status = contribute(p, pass);
        if (status != TN_OK)
            return status;
    }
    for (p = tn__plugins_first; p; p = p->next)
        if (p->private->mark == 2)
            p->private->mark = 3; /* all contributions are registered */
    tn__unused_kernels_update(true);
    return TN_OK;
}

/* ---- the whole discovery --------------------------------------------------------------------- */

static tn_status discover(void)
{
    const char *replaced = NULL, *more = NULL, *policy;
    tn_status status = tn__host_check_mode();
    if (status == TN_OK)
        status = tn__env_read("TENON_PLUGINS", &policy);
    if (status == TN_OK)
        status = tn__env_read("TENON_PLUGIN_PATH", &replaced);
    if (status == TN_OK)
        status = tn__env_read("TENON_PLUGIN_PATH_ADD", &more);
    if (status != TN_OK)
        return status;
    tn__plugins_lock();
    for (const tn__static_plugin *s = tn__static_plugins; s->name && status == TN_OK; s++)
        status = tn__load_static(s->name, s->query);
    if (status == TN_OK)
        status = tn__discover_path(replaced ? replaced : tn__plugin_folder(), replaced != NULL);
    if (status == TN_OK)
        status = tn__discover_path(more, true);
    tn__plugins_unlock();
    return status;
}

tn_status tn__plugins_discover(void)
{
    tn_status status = TN_OK;
    if (tn__likely(atomic_load_explicit(&done, memory_order_acquire)))
        return TN_OK;
    take_turn();
    if (!atomic_load_explicit(&done, memory_order_acquire) && !under_way) {
        under_way = true; /* calls from inside plugins see the plugins found so far */
        status = discover();
        if (status == TN_OK)
            status = tn__plugins_settle();
        if (status == TN_OK) {
            tn__options_warn_unknown();
            tn__filter_warn();
            tn__file_check_runtimes();
            atomic_store_explicit(&done, true, memory_order_release);
        }
        under_way = false;
    }
    pthread_mutex_unlock(&turn);
    return status;
}

tn_status tn_plugin_load(const char *path)
{
    char real[PATH_MAX];
    if (!tn__given(path != NULL, "tn_plugin_load: path"))
        return TN_ERR_VALUE;
    tn_status status = tn__plugins_discover();
    if (status != TN_OK)
        return status;
    if (!realpath(path, real))
        return tn_fail_native(TN_ERR_IO, errno, "plugin file %s: cannot be found: %s", path,
                              strerror(errno));
    take_turn();
    tn__plugins_lock();
    tn__plugin *plugin = tn__load_file(real);
    tn__plugins_unlock();
    status = plugin ? tn__plugins_settle() : TN_ERR_MEMORY;
    if (status == TN_OK && plugin->report.outcome != TN_OUTCOME_OK)
        status = tn__plugin_fail(plugin);
    pthread_mutex_unlock(&turn);
    tn__file_check_runtimes();
    return status;
}
