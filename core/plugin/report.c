/* SPDX-License-Identifier: MIT
 *
 * The list of plugins and the load report, which has one line for every file and folder that was
 * examined (docs/abi.md, rule 18). Lines and their strings live as long as the process. */
#include "core/plugin/private.h"

_Atomic(tn__plugin *) tn__plugins_first;
static tn__plugin *last;
static int64_t lines;
static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

static void make_lock(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

void tn__plugins_lock(void)
{
    pthread_once(&lock_once, make_lock);
    pthread_mutex_lock(&lock);
}

void tn__plugins_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- the list -------------------------------------------------------------------------------- */

void *tn__plugin_alloc(tn__plugin *plugin, size_t size)
{
    const size_t before = (sizeof(tn__plugin_block) + 15) & ~(size_t)15;
    char *block = tn_calloc(1, before + size);
    if (!block)
        return NULL;
    tn__plugins_lock();
    ((tn__plugin_block *)block)->next = plugin->private->blocks;
    plugin->private->blocks = (tn__plugin_block *)block;
    tn__plugins_unlock();
    return block + before;
}

static const char *keep_text(tn__plugin *plugin, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = tn__plugin_alloc(plugin, size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

tn__plugin *tn__plugin_add(const char *file)
{
    tn__plugin *plugin = tn_calloc(1, sizeof *plugin);
    tn__plugin_private *private = tn_calloc(1, sizeof *private);
    if (!plugin || !private)
        goto failed;
    plugin->private = private;
    plugin->file = keep_text(plugin, file);
    if (!plugin->file)
        goto failed;
    plugin->id = plugin->version = "";
    plugin->report = (tn_plugin_report){
        .id = "", .version = "", .file = plugin->file, .help = "", .reason = ""
    };
    if (last)
        last->next = plugin;
    else
        tn__plugins_first = plugin;
    last = plugin;
    lines++;
    return plugin;
failed:
    tn_free(private);
    tn_free(plugin);
    return NULL;
}

tn__plugin *tn__plugin_by_id(const char *id)
{
    for (tn__plugin *p = tn__plugins_first; p; p = p->next)
        if (p->private->negotiated && !strcmp(p->id, id))
            return p;
    return NULL;
}

tn__plugin *tn__plugin_by_file(const char *file)
{
    for (tn__plugin *p = tn__plugins_first; p; p = p->next)
        if (!strcmp(p->file, file))
            return p;
    return NULL;
}

tn__plugin *tn__plugin_by_inode(const struct stat *at)
{
    for (tn__plugin *p = tn__plugins_first; p; p = p->next)
        if (p->private->inode == (uint64_t)at->st_ino && p->private->device == (uint64_t)at->st_dev)
            return p;
    return NULL;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

static const char *words_of(tn__plugin *plugin, const char *format, va_list args)
{
    tn__text text = { 0 };
    uint64_t mark = tn_error_mark();
    tn__text_addv(&text, format, args);
    const char *kept = text.failed ? NULL : keep_text(plugin, text.at ? text.at : "");
    tn__text_free(&text);
    tn_error_restore(mark);
    return kept ? kept : "out of memory for the reason";
}

void tn__plugin_outcome(tn__plugin *plugin, tn_outcome outcome, tn_stage stage, tn_status code,
                        const char *format, ...)
{
    va_list args;
    tn__plugins_lock();
    va_start(args, format);
    plugin->report.reason = words_of(plugin, format, args);
    va_end(args);
    plugin->report.outcome = (int32_t)outcome;
    plugin->report.stage = (int32_t)stage;
    plugin->private->code = code;
    if (outcome != TN_OUTCOME_OK)
        atomic_store_explicit(&plugin->active, -1, memory_order_release);
    tn__plugins_unlock();
}

void tn__plugin_reason(tn__plugin *plugin, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    plugin->report.reason = words_of(plugin, format, args);
    va_end(args);
}

void tn__plugin_line(const tn__plugin *plugin, tn__text *text)
{
    if (plugin->id[0])
        tn__text_add(text, "plugin %q (%s): ", plugin->id, plugin->file);
    else
        tn__text_add(text, "plugin %s %s: ",
                     plugin->private && plugin->private->folder ? "folder" : "file", plugin->file);
    tn__text_add(text, "%s at %s%s%s", tn_outcome_name(plugin->report.outcome),
                 tn_stage_name(plugin->report.stage), plugin->report.reason[0] ? ": " : "",
                 plugin->report.reason);
}

tn_status tn__plugin_fail(const tn__plugin *plugin)
{
    tn__text text = { 0 };
    tn_status code = plugin->private && plugin->private->code ? plugin->private->code
                                                              : TN_ERR_RUNTIME;
    if (atomic_load(&plugin->ended))
        return tn_fail(
            code,
            "the library was shut down: tn_shutdown deactivated the plugin %q (%s), which this "
            "call needs; call tn_shutdown last",
            plugin->id, plugin->file);
    tn__plugins_lock();
    tn__plugin_line(plugin, &text);
    tn__plugins_unlock();
    if (text.failed || !text.at)
        tn_fail(code, "plugin %q: %s", plugin->id, plugin->report.reason);
    else
        tn_fail(code, "%s", text.at);
    tn__text_free(&text);
    return code;
}

void tn__report_take_words(uint64_t mark, char *words, size_t size)
{
    tn_snprint(words, size, "%s",
               tn__error_count() > mark ? tn_error_last()->message : "failed without a message");
    tn_error_restore(mark);
}

void tn__plugin_probed(tn__plugin *plugin, tn_status status)
{
    const tn_error *error = tn_error_last();
    const char *words = status != TN_OK && error && error->code != TN_OK
                            ? error->message
                            : "failed without a message";
    if (!plugin->private)
        return;
    tn__plugins_lock();
    int32_t active = atomic_load_explicit(&plugin->active, memory_order_acquire);
    if (status == TN_OK) /* the reason may name refused contributions: it stays */
        plugin->report.stage = TN_STAGE_PROBE;
    else
        tn__plugin_outcome(
            plugin, status == TN_ERR_UNAVAILABLE ? TN_OUTCOME_NOT_APPLICABLE : TN_OUTCOME_FAILED,
            TN_STAGE_PROBE, status, "%s", words);
    /* Other contributions of the plugin, such as another device type, remain usable. */
    atomic_store_explicit(&plugin->active, active, memory_order_release);
    tn__plugins_unlock();
}

/* Returns whether the plugin's line of the report concerns `name`: the last part of its id, the
 * name of its file, or a device type that it provides. */
static bool is_about(const tn__plugin *plugin, const char *name, size_t length)
{
    const char *part = strrchr(plugin->id, '.');
    part = part ? part + 1 : plugin->id;
    if (strlen(part) == length && !strncmp(part, name, length))
        return true;
    part = strrchr(plugin->file, '/');
    part = part ? part + 1 : plugin->file;
    part += !strncmp(part, "lib", 3) ? 3 : 0;
    if (!strncmp(part, name, length) && (!part[length] || part[length] == '.'))
        return true;
    const tn_plugin *own = plugin->plugin;
    for (int64_t i = 0; own && i < own->n_contributions; i++) {
        const tn_backend_def *backend = own->contributions[i];
        if (backend && backend->head.kind == TN_KIND_tn_backend_def &&
            TN_HAS(backend, tn_backend_def, type) && backend->type &&
            strlen(backend->type) == length && !strncmp(backend->type, name, length))
            return true;
    }
    return false;
}

void tn__plugins_explain(const char *name, tn__text *text)
{
    size_t length = strcspn(name, ":");
    tn__plugins_lock();
    bool any = false;
    for (tn__plugin *p = tn__plugins_first; p; p = p->next) {
        if (p->report.outcome == TN_OUTCOME_OK && !p->report.refused)
            continue;
        if (!length || !is_about(p, name, length))
            continue;
        if (any)
            tn__text_add(text, "; ");
        tn__plugin_line(p, text);
        any = true;
    }
    tn__plugins_unlock();
}

/* ---- public ---------------------------------------------------------------------------------- */

int64_t tn_plugin_count(void)
{
    if (tn__plugins_discover() != TN_OK)
        return -1;
    tn__plugins_lock();
    int64_t count = lines;
    tn__plugins_unlock();
    return count;
}

tn_status tn_plugin_report_at(int64_t index, tn_plugin_report *out)
{
    if (!tn__given(out != NULL, "tn_plugin_report_at: out"))
        return TN_ERR_VALUE;
    tn_status status = tn__plugins_discover();
    if (status != TN_OK)
        return status;
    tn__unused_kernels_update(false);
    tn__plugins_lock();
    tn__plugin *p = index < 0 ? NULL : tn__plugins_first;
    for (int64_t i = 0; p && i < index; i++)
        p = p->next;
    if (p) {
        *out = p->report;
        out->active = atomic_load_explicit(&p->active, memory_order_acquire) == 1;
    }
    int64_t count = lines;
    tn__plugins_unlock();
    if (!p)
        return tn__error_index(index, count, "load report: index: ");
    return TN_OK;
}

const char *tn_outcome_name(int32_t outcome)
{
    static const char *const names[] = { "OK", "NOT APPLICABLE", "REFUSED", "FAILED" };
    return outcome >= 0 && outcome < tn__countof(names) ? names[outcome] : "?";
}

const char *tn_stage_name(int32_t stage)
{
    static const char *const names[] = { "found", "readable", "owner",    "dlopen", "symbol",
                                         "query", "version",  "activate", "probe" };
    return stage >= 0 && stage < tn__countof(names) ? names[stage] : "?";
}
