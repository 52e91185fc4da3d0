/* SPDX-License-Identifier: MIT
 *
 * The second step of loading (docs/abi.md, rule 1): activating a plugin. A plugin is activated when
 * the first of its contributions is needed, once, by one thread, while other threads that need it
 * wait. The plugins that it requires are activated first. tn_shutdown deactivates plugins but never
 * unmaps their files (rule 16). */
#include "core/plugin/private.h"

static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;
/* Guards the members active, activating, thread and waits_for of all plugins. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* Returns whether waiting for `plugin` would be a deadlock: whether the thread that activates it
 * waits, directly or through further threads, for a plugin that this thread is activating. */
static bool would_wait_for_itself(const tn__plugin *plugin)
{
    for (int steps = 0; plugin && steps < 64; steps++) {
        if (pthread_equal(plugin->private->thread, pthread_self()))
            return true;
        const tn__plugin *next = NULL;
        for (tn__plugin *p = tn__plugins_first; p && !next; p = p->next)
            if (p->private->activating &&
                pthread_equal(p->private->thread, plugin->private->thread))
                next = p->private->waits_for;
        plugin = next;
    }
    return false;
}

/* Records, for all plugins that this thread is activating, the plugin that the thread is waiting
 * for (NULL: none). */
static void set_waiting(tn__plugin *on)
{
    for (tn__plugin *p = tn__plugins_first; p; p = p->next)
        if (p->private->activating && pthread_equal(p->private->thread, pthread_self()))
            p->private->waits_for = on;
}

/* Activates the required plugins and then the plugin itself. `failures` is the value of
 * tn__memory_failures() before. If it has changed, memory ran out: a failure does not go into the
 * load report, because the next use tries again. */
static tn_status run(tn__plugin *plugin, const uint64_t *failures)
{
    const tn_plugin *own = plugin->plugin;
    char words[900];
    uint64_t mark = tn_error_mark();
    for (const tn_requirement *need = own->requires_; need && need->id; need++) {
        tn__plugins_lock();
        tn__plugin *other = tn__plugin_by_id(need->id);
        tn__plugins_unlock();
        tn_status status = other ? tn__plugin_use(other) : TN_ERR_RUNTIME;
        if (status == TN_OK)
            continue;
        if (tn__memory_failures() != *failures)
            return tn_error_prefix("plugin %q: requires %q: ", plugin->id, need->id);
        tn__report_take_words(mark, words, sizeof words);
        tn__plugin_outcome(
            plugin, status == TN_ERR_UNAVAILABLE ? TN_OUTCOME_NOT_APPLICABLE : TN_OUTCOME_FAILED,
            TN_STAGE_ACTIVATE, status, "requires the plugin %q: %s", need->id, words);
        return status;
    }
    if (!own->activate)
        return TN_OK;
    const char *before = tn__error_plugin(plugin->id);
    tn_log(TN_LOG_DEBUG, "activating %s", plugin->file);
    tn_status status = tn__plugin_up.activate(own);
    tn__error_plugin(before);
    if (status == TN_OK)
        return TN_OK;
    if (tn__memory_failures() != *failures)
        return tn_error_prefix("plugin %q: not activated: ", plugin->id);
    tn__report_take_words(mark, words, sizeof words);
    tn__plugins_lock();
    tn__plugin_outcome(plugin,
                       status == TN_ERR_UNAVAILABLE ? TN_OUTCOME_NOT_APPLICABLE
                       : status == TN_ERR_REFUSED || status == TN_ERR_VERSION ? TN_OUTCOME_REFUSED
                                                                              : TN_OUTCOME_FAILED,
                       TN_STAGE_ACTIVATE, status, "%s", words);
    tn__plugins_unlock();
    return status;
}

/* Returns true if this thread must activate the plugin now, false if there is nothing left to do.
 * Waits while another thread activates it. *status is a failure if waiting would be a deadlock. */
static bool take_turn(tn__plugin *plugin, tn_status *status)
{
    tn__plugin_private *own = plugin->private;
    *status = TN_OK;
    while (own->activating) {
        if (pthread_equal(own->thread, pthread_self()))
            return false; /* its activate function uses one of its own contributions */
        if (would_wait_for_itself(plugin)) {
            *status = tn_fail(
                TN_ERR_RUNTIME,
                "plugin %q: cannot be activated in this thread; another thread activates the "
                "plugin and waits for this thread",
                plugin->id);
            return false;
        }
        set_waiting(plugin);
        pthread_cond_wait(&settled, &gate);
        set_waiting(NULL);
    }
    if (atomic_load_explicit(&plugin->active, memory_order_acquire))
        return false;
    own->activating = true;
    own->thread = pthread_self();
    own->waits_for = NULL;
    return true;
}

tn_status tn__plugin_use(tn__plugin *plugin)
{
    tn_status status;
    int32_t active = atomic_load_explicit(&plugin->active, memory_order_acquire);
    if (tn__likely(active > 0))
        return TN_OK;
    if (active < 0)
        return tn__plugin_fail(plugin);
    if (!plugin->private)
        return tn_fail(TN_ERR_RUNTIME, "plugin %q: not active", plugin->id);
    pthread_mutex_lock(&gate);
    bool mine = take_turn(plugin, &status);
    pthread_mutex_unlock(&gate);
    if (!mine) {
        active = atomic_load_explicit(&plugin->active, memory_order_acquire);
        return active < 0 && status == TN_OK ? tn__plugin_fail(plugin) : status;
    }
    uint64_t failures = tn__memory_failures();
    status = run(plugin, &failures);
    bool again = status != TN_OK && tn__memory_failures() != failures;
    if (status == TN_OK) {
        tn__plugins_lock();
        if (plugin->report.stage < TN_STAGE_ACTIVATE)
            plugin->report.stage = TN_STAGE_ACTIVATE;
        tn__plugins_unlock();
    }
    pthread_mutex_lock(&gate);
    plugin->private->activating = false;
    atomic_store_explicit(&plugin->active,
                          status == TN_OK ? 1
                          : again         ? 0
                                          : -1,
                          memory_order_release);
    pthread_cond_broadcast(&settled);
    pthread_mutex_unlock(&gate);
    tn__file_check_runtimes();
    return status == TN_OK || again ? status : tn__plugin_fail(plugin);
}

tn_status tn_plugin_activate(const char *id)
{
    if (!tn__given(id != NULL, "tn_plugin_activate: id"))
        return TN_ERR_VALUE;
    tn_status status = tn__plugins_discover();
    if (status != TN_OK)
        return status;
    tn__plugins_lock();
    tn__plugin *plugin = tn__plugin_by_id(id);
    for (tn__plugin *p = tn__plugins_first; p && !plugin; p = p->next)
        plugin = id[0] && !strcmp(p->id, id) ? p : NULL;
    const char *names[64];
    int64_t count = 0;
    for (tn__plugin *p = tn__plugins_first; p && count < tn__countof(names); p = p->next)
        if (p->id[0])
            names[count++] = p->id;
    tn__plugins_unlock();
    if (plugin)
        return tn__plugin_use(plugin);
    const char *near = tn__name_nearest(id, names, count);
    return tn_fail(TN_ERR_KEY,
                   "plugin %q: no plugin has this id%s%s; tn_plugin_report_at lists all that were "
                   "found",
                   id, near ? "; nearest: " : "", near ? near : "");
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Deactivates a plugin, and before it all plugins that require it. */
static void deactivate(tn__plugin *plugin)
{
    if (!plugin->plugin || !plugin->plugin->deactivate ||
        atomic_load_explicit(&plugin->active, memory_order_acquire) != 1)
        return;
    for (tn__plugin *p = tn__plugins_first; p; p = p->next) {
        const tn_requirement *need = p->plugin ? p->plugin->requires_ : NULL;
        for (; need && need->id; need++)
            if (!strcmp(need->id, plugin->id))
                deactivate(p);
    }
    if (atomic_load_explicit(&plugin->active, memory_order_acquire) != 1)
        return;
    tn_log(TN_LOG_DEBUG, "deactivating %s", plugin->file);
    const char *before = tn__error_plugin(plugin->id);
    plugin->plugin->deactivate(plugin->plugin);
    tn__error_plugin(before);
    tn__plugins_lock();
    tn__plugin_outcome(plugin, TN_OUTCOME_OK, TN_STAGE_VERSION, TN_ERR_RUNTIME,
                       "deactivated by tn_shutdown");
    tn__plugins_unlock();
    atomic_store(&plugin->ended, true);
    atomic_store_explicit(&plugin->active, -1, memory_order_release);
}

void tn__plugins_shutdown(void)
{
    int64_t count = 0;
    for (tn__plugin *p = tn__plugins_first; p; p = p->next)
        count++;
    for (int64_t i = count - 1; i >= 0; i--) {
        tn__plugin *p = tn__plugins_first;
        for (int64_t j = 0; j < i; j++)
            p = p->next;
        deactivate(p);
    }
    tn__registry_shutdown();
}
