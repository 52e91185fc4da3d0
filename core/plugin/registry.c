/* SPDX-License-Identifier: MIT
 *
 * The registries, which find contributions by kind and name. A registry is an immutable sorted
 * snapshot: readers load one pointer and take no lock. A writer publishes a new snapshot; the old
 * one is kept until shutdown, because a reader may still use it. */
#include "core/plugin/private.h"

struct snapshot {
    struct snapshot *replaced; /* the previous snapshot */
    int64_t count;
    const tn__entry *at[];
};

enum { KINDS = 32 }; /* room for the rows of tn__kinds */

static _Atomic(struct snapshot *) current[KINDS]; /* in their order */

static const char *what_is(uint32_t kind)
{
    const tn__kind *row = tn__kind_of(kind);
    return !row ? "contribution" : row->what ? row->what : row->word;
}

static _Atomic(struct snapshot *) *slot_of(uint32_t kind)
{
    for (int64_t i = 0; i < KINDS && tn__kinds[i]; i++)
        if (tn__kinds[i]->kind == kind)
            return &current[i];
    return NULL;
}

static const struct snapshot *snapshot_of(uint32_t kind)
{
    _Atomic(struct snapshot *) *slot = slot_of(kind);
    return slot ? atomic_load_explicit(slot, memory_order_acquire) : NULL;
}

/* Returns the index of a name, or the index at which the name would be inserted. */
static int64_t place_of(const struct snapshot *all, const char *name, bool *found)
{
    int64_t low = 0, high = all ? all->count : 0;
    *found = false;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(all->at[middle]->name, name);
        if (!order) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

tn_status tn__registry_add(uint32_t kind, const char *name, const tn_head *contribution,
                           tn__plugin *plugin)
{
    _Atomic(struct snapshot *) *slot = slot_of(kind);
    tn_status status = TN_ERR_MEMORY;
    bool taken;
    if (!slot)
        return tn_fail(TN_ERR_REFUSED,
                       "registry: unknown kind of contributions, got %u; expected one of TN_KIND_*",
                       kind);
    tn__plugins_lock();
    struct snapshot *old = atomic_load_explicit(slot, memory_order_relaxed), *fresh = NULL;
    int64_t count = old ? old->count : 0, place = place_of(old, name, &taken);
    if (taken) {
        const tn__plugin *owner = old->at[place]->plugin;
        status = tn_fail(TN_ERR_REFUSED,
                         "%s %q of %s: refused; %s has registered the same name before",
                         what_is(kind), name, plugin->file, owner->file);
        goto out;
    }
    tn__entry *entry = tn__plugin_alloc(plugin, sizeof *entry);
    fresh = entry ? tn_malloc(sizeof *fresh + (size_t)(count + 1) * sizeof fresh->at[0]) : NULL;
    if (!fresh)
        goto out;
    *entry = (tn__entry){ name, contribution, plugin, 0 };
    fresh->replaced = old;
    fresh->count = count + 1;
    for (int64_t i = 0; i < count; i++)
        fresh->at[i + (i >= place)] = old->at[i];
    fresh->at[place] = entry;
    atomic_store_explicit(slot, fresh, memory_order_release);
    status = TN_OK;
out:
    tn__plugins_unlock();
    return status;
}

tn_status tn__registry_remove(uint32_t kind, const char *name, const tn__plugin *plugin)
{
    _Atomic(struct snapshot *) *slot = slot_of(kind);
    tn_status status = TN_OK;
    bool found = false;

    tn__plugins_lock();
    struct snapshot *old = slot ? atomic_load_explicit(slot, memory_order_relaxed) : NULL;
    int64_t place = place_of(old, name, &found);
    struct snapshot *fresh = NULL;
    if (!found)
        status = tn_fail(TN_ERR_KEY, "tn_unregister: no %s %q is registered", what_is(kind), name);
    else if (old->at[place]->plugin != plugin)
        status = tn_fail(
            TN_ERR_REFUSED,
            "tn_unregister: %s %q belongs to the plugin %q (%s); only what the program "
            "has registered by tn_register can be removed",
            what_is(kind), name, old->at[place]->plugin->id, old->at[place]->plugin->file);
    else if (!(fresh = tn_malloc(sizeof *fresh + (size_t)old->count * sizeof fresh->at[0])))
        status = TN_ERR_MEMORY;
    if (fresh) {
        fresh->replaced = old;
        fresh->count = old->count - 1;
        for (int64_t i = 0; i < fresh->count; i++)
            fresh->at[i] = old->at[i + (i >= place)];
        atomic_store_explicit(slot, fresh, memory_order_release);
    }
    tn__plugins_unlock();
    return status;
}

int64_t tn__registry_all(uint32_t kind, const tn__entry *const **entries)
{
    const struct snapshot *all = snapshot_of(kind);
    if (entries)
        *entries = all ? all->at : NULL;
    return all ? all->count : 0;
}

void tn__registry_unknown(uint32_t kind, const char *name)
{
    enum { SHOWN = 12, NEAREST_AMONG = 512 };
    const char *names[NEAREST_AMONG];
    tn__text text = { 0 };
    int64_t count = tn_registry_count(kind), used = 0;
    for (int64_t i = 0; i < count && used < NEAREST_AMONG; i++)
        names[used++] = tn_registry_name(kind, i);
    const char *near = tn__name_nearest(name, names, used);
    tn__text_add(&text, "no plugin provides %s %s %q",
                 strchr("aeiou", what_is(kind)[0]) ? "an" : "a", what_is(kind), name);
    if (near)
        tn__text_add(&text, "; did you mean %q?", near);
    else if (!count)
        tn__text_add(&text,
                     "; no plugin provides any %s: `tenon plugins` lists those that were "
                     "found",
                     what_is(kind));
    if (!count)
        tn__plugins_explain_none(&text);
    for (int64_t i = 0; !near && i < used && i < SHOWN; i++)
        tn__text_add(&text, "%s%s", i ? ", " : "; known: ", names[i]);
    if (!near && count > SHOWN)
        tn__text_add(&text, " and %lld more", (long long)(count - SHOWN));
    if (!near && count)
        tn__plugins_explain_folders(&text);
    size_t before = text.length;
    tn__text_add(&text, ". ");
    tn__plugins_explain(name, &text);
    if (text.at && text.length == before + 2)
        text.at[before] = 0;
    tn_fail(TN_ERR_KEY, "%s", text.failed || !text.at ? "no plugin provides it" : text.at);
    tn__text_free(&text);
}

static const tn__entry *find(uint32_t kind, const char *name)
{
    bool found;
    const struct snapshot *all = snapshot_of(kind);
    int64_t place = place_of(all, name, &found);
    return found ? all->at[place] : NULL;
}

const tn__entry *tn__registry_use(uint32_t kind, const char *name)
{
    if (tn__plugins_discover() != TN_OK)
        return NULL;
    const tn__entry *entry = find(kind, name);
    if (!entry) {
        tn__registry_unknown(kind, name);
        return NULL;
    }
    return tn__plugin_use(entry->plugin) == TN_OK ? entry : NULL;
}

void tn__registry_shutdown(void)
{
    for (int64_t k = 0; k < KINDS; k++) {
        struct snapshot *now = atomic_load_explicit(&current[k], memory_order_acquire);
        struct snapshot *old = now ? now->replaced : NULL;
        while (old) {
            struct snapshot *next = old->replaced;
            tn_free(old);
            old = next;
        }
        if (now)
            now->replaced = NULL;
    }
}

/* ---- public: some kinds have registries of their own ------------------------------------------
 */

int64_t tn_registry_count(uint32_t kind)
{
    if (tn__plugins_discover() != TN_OK)
        return -1;
    const tn__kind *row = tn__kind_of(kind);
    return row && row->count ? row->count() : tn__registry_all(kind, NULL);
}

const char *tn_registry_name(uint32_t kind, int64_t index)
{
    const tn__entry *const *entries;
    int64_t count = tn_registry_count(kind);
    if (index < 0 || index >= count) {
        tn__error_index(index, count, "%s: index: ", what_is(kind));
        return NULL;
    }
    const tn__kind *row = tn__kind_of(kind);
    if (row && row->name_at)
        return row->name_at(index);
    tn__registry_all(kind, &entries);
    return entries[index]->name;
}

/* Returns the descriptor with that name and sets *plugin. Returns NULL and sets the error if there
 * is none. */
static const tn_head *look_up(uint32_t kind, const char *name, tn__plugin **plugin)
{
    if (tn__plugins_discover() != TN_OK)
        return NULL;
    const tn__kind *row = tn__kind_of(kind);
    if (row && row->find)
        return row->find(name, plugin);
    const tn__entry *entry = find(kind, name);
    if (!entry)
        tn__registry_unknown(kind, name);
    *plugin = entry ? entry->plugin : NULL;
    return entry ? entry->contribution : NULL;
}

const tn_head *tn_registry_find(uint32_t kind, const char *name)
{
    tn__plugin *plugin;
    if (!tn__given(name != NULL, "tn_registry_find: name"))
        return NULL;
    return look_up(kind, name, &plugin);
}

const char *tn_registry_plugin(uint32_t kind, const char *name)
{
    tn__plugin *plugin = NULL;
    if (!tn__given(name != NULL, "tn_registry_plugin: name"))
        return NULL;
    return look_up(kind, name, &plugin) && plugin ? plugin->id : NULL;
}
