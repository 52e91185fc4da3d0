/* SPDX-License-Identifier: MIT
 *
 * Unused kernels: no plugin provides their operator in that revision, or their device type. They
 * may be meant for a plugin that is loaded later, or their names may be misspelt. The plugin's line
 * of the load report and the log name them; the line no longer does when such a plugin has been
 * loaded. */
#include "core/plugin/kind.h"
#include "core/plugin/private.h"

enum { IDLE_SHOWN = 3 };

static _Atomic bool stale; /* something was registered since the last update */

void tn__unused_kernels_stale(void)
{
    atomic_store_explicit(&stale, true, memory_order_release);
}

static void tell(tn__plugin *plugin, const char *words)
{
    tn__plugin_private *own = plugin->private;
    if (own && own->idle_count++ < IDLE_SHOWN)
        tn__text_add(&own->idle, "%s%s", own->idle.length ? "; " : "", words);
}

/* Updates the text about unused kernels in the plugin's line. Returns true if there are unused
 * kernels and the text has changed. */
static bool settle_line(tn__plugin *plugin)
{
    tn__plugin_private *own = plugin->private;
    char before[64];
    tn_snprint(before, sizeof before, "%lld kernel%s never run%s: ", (long long)own->idle_count,
               own->idle_count == 1 ? "" : "s", own->idle_count == 1 ? "s" : "");
    if (own->idle_count > IDLE_SHOWN)
        tn__text_add(&own->idle, "; and %lld more", (long long)own->idle_count - IDLE_SHOWN);
    const char *words = own->idle.failed ? "out of memory for their names" : own->idle.at;
    tn__text line = { 0 };
    if (own->idle_count)
        tn__text_add(&line, "%s%s", before, words);
    const char *now = line.at ? line.at : "";
    bool changed = strcmp(now, own->idle_line ? own->idle_line : "") != 0;
    if (changed) {
        size_t size = strlen(now) + 1;
        char *kept = tn__plugin_alloc(plugin, size);
        own->idle_line = kept ? memcpy(kept, now, size) : "kernels never run";
        if (plugin->report.outcome == TN_OUTCOME_OK)
            tn__plugin_reason_compose(plugin);
    }
    tn__text_free(&line);
    tn__text_free(&own->idle);
    return changed && own->idle_count;
}

void tn__unused_kernels_update(bool aloud)
{
    if (!atomic_exchange_explicit(&stale, false, memory_order_acq_rel))
        return;
    uint64_t mark = tn_error_mark();
    tn__text news = { 0 };
    tn__plugins_lock();
    for (tn__plugin *p = tn__plugins_first; p; p = p->next)
        p->private->idle_count = 0;
    for (const tn__kind *const *all = tn__kinds; *all; all++)
        if ((*all)->unused)
            (*all)->unused(tell);
    for (tn__plugin *p = tn__plugins_first; p; p = p->next)
        if (settle_line(p) && aloud)
            tn__text_add(&news, "plugin %q (%s): %s\n", p->id, p->file, p->private->idle_line);
    tn__plugins_unlock();
    /* The log may call a sink of the program, which must not run under a lock. */
    for (char *line = news.failed ? NULL : news.at, *end; line && (end = strchr(line, '\n'));
         line = end + 1) {
        *end = 0;
        tn_log(TN_LOG_WARNING, "%s", line);
    }
    tn__text_free(&news);
    tn_error_restore(mark);
}
