/* SPDX-License-Identifier: MIT
 *
 * The table of all environment variables that the library reads. Each variable is read once, when
 * it is first used. An empty variable counts as unset. Set-uid programs ignore all variables. Rows
 * for options of plugins are added at run time and stay until the process ends. */
#include "core/base/internal.h"

#include <stdlib.h>
#include <sys/auxv.h>

#include <tenon/runtime.h>

struct row {
    const char *name;
    const char *fallback; /* the value when the variable is unset; NULL: none */
    const char *help;
    char *value;   /* the value from the environment; valid if `read` */
    char *program; /* the value that the program set, which overrides the environment */
    bool read;
    struct row *next;
};

static struct row core_rows[] = {
    { "TENON_DEVICE", "cpu",
      "device for new tensors: a list separated by commas, whose first usable device is taken",
      NULL, NULL, false, NULL },
    { "TENON_PLUGIN_PATH", NULL,
      "folders with plugins, separated by colons; replaces the folder of the installation", NULL,
      NULL, false, NULL },
    { "TENON_PLUGIN_PATH_ADD", NULL, "additional folders with plugins, separated by colons", NULL,
      NULL, false, NULL },
    { "TENON_PLUGINS", NULL,
      "plugins that may load: globs separated by commas; !GLOB denies; the last match decides",
      NULL, NULL, false, NULL },
    { "TENON_FALLBACK", "error",
      "for operators that a device lacks: error, or the name of a device that runs them instead",
      NULL, NULL, false, NULL },
    { "TENON_LOG", "warning",
      "level of the log: off, error, warning, info or debug; LEVEL:FILE writes to a file", NULL,
      NULL, false, NULL },
    { "TENON_LIBRARY", NULL, "path of libtenon for bindings of other languages", NULL, NULL, false,
      NULL },
    { "TENON_NUM_THREADS", NULL,
      "number of threads for kernels on the host; unset: one per core that the process may use",
      NULL, NULL, false, NULL },
    { "TENON_SEED", NULL, "first seed of the random number generator, a whole number", NULL, NULL,
      false, NULL },
    { "TENON_MATH", "default",
      "arithmetic: exact (no Winograd, no TF32), default (error within 2e-5), fast (TF32 etc.)",
      NULL, NULL, false, NULL },
    { "TENON_PREPARED", "1024",
      "most MiB that each device keeps of what kernels prepare from weights; 0: nothing", NULL,
      NULL, false, NULL },
    { "TENON_PROFILE", NULL,
      "files for a profile of the program, separated by colons: NAME.json (trace), .html, .txt",
      NULL, NULL, false, NULL },
    { "TENON_CHECK", "0",
      "1: check every call between core and plugins, and put guard zones around memory", NULL, NULL,
      false, NULL },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct row *added, **added_end = &added;
static int64_t added_count;

bool tn__env_trusted(void)
{
    return getauxval(AT_SECURE) == 0;
}

void tn__env_fork(int stage)
{
    if (stage < 0)
        pthread_mutex_lock(&lock);
    else
        pthread_mutex_unlock(&lock);
}

static struct row *row_at(int64_t index)
{
    struct row *row = added;

    if (index < tn__countof(core_rows))
        return &core_rows[index];
    for (index -= tn__countof(core_rows); index > 0; index--)
        row = row->next;
    return row;
}

static struct row *row_find(const char *name)
{
    for (int64_t i = 0; i < tn__countof(core_rows); i++)
        if (strcmp(core_rows[i].name, name) == 0)
            return &core_rows[i];
    for (struct row *row = added; row; row = row->next)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* Returns the value that applies. The value from the environment is copied, because the program may
 * change the environment later. */
static const char *value_of(struct row *row)
{
    if (row->program)
        return row->program;
    if (!row->read) {
        const char *value = tn__env_trusted() ? secure_getenv(row->name) : NULL;

        if (value && *value) {
            row->value = tn_strdup(value);
            if (!row->value)
                return row->fallback; /* `read` stays false: the next call tries again */
        }
        row->read = true;
    }
    return row->value ? row->value : row->fallback;
}

static const char *origin_of(const struct row *row)
{
    if (row->program)
        return "program";
    if (row->value)
        return "environment";
    const char *there = getenv(row->name);
    return !tn__env_trusted() && there && *there ? "ignored (set-uid)" : "default";
}

const char *tn_env_get(const char *name)
{
    const char *value = NULL;

    if (!tn__given(name != NULL, "tn_env_get: name"))
        return NULL;
    pthread_mutex_lock(&lock);
    struct row *row = row_find(name);
    if (row)
        value = value_of(row);
    pthread_mutex_unlock(&lock);
    return value;
}

tn_status tn__env_read(const char *name, const char **value)
{
    uint64_t before = tn__error_count();

    *value = tn_env_get(name);
    return tn__error_count() == before ? TN_OK : TN_ERR_MEMORY;
}

bool tn__env_known(const char *name, size_t length)
{
    bool known = false;

    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < tn__countof(core_rows) + added_count && !known; i++) {
        const struct row *row = row_at(i);
        known = strlen(row->name) == length && memcmp(row->name, name, length) == 0;
    }
    pthread_mutex_unlock(&lock);
    return known;
}

int64_t tn_env_count(void)
{
    pthread_mutex_lock(&lock);
    int64_t count = tn__countof(core_rows) + added_count;
    pthread_mutex_unlock(&lock);
    return count;
}

tn_status tn_env_at(int64_t index, tn_env_row *out)
{
    int64_t count = tn_env_count();

    if (!tn__given(out != NULL, "tn_env_at: out"))
        return TN_ERR_VALUE;
    if (index < 0 || index >= count)
        return tn__error_index(index, count, "tn_env_at: index: ");
    uint64_t before = tn__error_count();
    pthread_mutex_lock(&lock);
    struct row *row = row_at(index);
    *out = (tn_env_row){ .name = row->name, .value = value_of(row), .help = row->help };
    out->origin = origin_of(row);
    pthread_mutex_unlock(&lock);
    return tn__error_count() == before ? TN_OK : TN_ERR_MEMORY;
}

tn_status tn__env_add(const char *name, const char *help)
{
    size_t name_size = strlen(name) + 1, help_size = strlen(help) + 1;
    struct row *row = tn_calloc(1, sizeof *row + name_size + help_size);

    if (!row)
        return TN_ERR_MEMORY;
    char *text = (char *)(row + 1);
    row->name = memcpy(text, name, name_size);
    row->help = memcpy(text + name_size, help, help_size);
    pthread_mutex_lock(&lock);
    bool taken = row_find(name) != NULL;
    if (!taken) {
        *added_end = row;
        added_end = &row->next;
        added_count++;
    }
    pthread_mutex_unlock(&lock);
    if (taken) /* the plugin was queried before and its row exists */
        tn_free(row);
    return TN_OK;
}

tn_status tn__env_program(const char *name, const char *value)
{
    char *copy = NULL;

    if (value) {
        copy = tn_strdup(value);
        if (!copy)
            return TN_ERR_MEMORY;
    }
    pthread_mutex_lock(&lock);
    struct row *row = row_find(name);
    if (row) {
        char *before = row->program;
        row->program = copy;
        copy = before;
    }
    pthread_mutex_unlock(&lock);
    tn_free(copy);
    return TN_OK;
}

void tn__env_forget(void)
{
    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < tn__countof(core_rows) + added_count; i++) {
        struct row *row = row_at(i);
        tn_free(row->value);
        tn_free(row->program);
        row->value = row->program = NULL;
        row->read = false;
    }
    while (added) {
        struct row *row = added;
        added = row->next;
        tn_free(row);
    }
    added_end = &added;
    added_count = 0;
    pthread_mutex_unlock(&lock);
}
