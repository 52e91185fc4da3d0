/* SPDX-License-Identifier: MIT
 *
 * Interfaces that plugins provide to each other: checked when a plugin is queried, found by plugins
 * that require the provider. */
#include "core/plugin/private.h"

#include <tenon/query.h>

enum { MOST_ROWS = 1024 };

/* Returns whether an interface id is the id of the plugin, or begins with that id and a dot. */
static bool belongs_to(const char *id, const char *plugin)
{
    size_t length = strlen(plugin);

    return !strncmp(id, plugin, length) && (id[length] == '.' || id[length] == '\0');
}

static bool letters_fit(const char *id)
{
    size_t length = strlen(id);

    return length < 128 && strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789._-") == length;
}

/* Returns the row of the newest revision in [min, max], NULL if there is none. */
static const tn_interface_row *row_of(const tn__plugin *plugin, const char *id, uint32_t min,
                                      uint32_t max)
{
    const tn_interface_row *best = NULL;

    for (const tn_interface_row *row = plugin->plugin ? plugin->plugin->interfaces : NULL;
         row && row->id; row++)
        if (!strcmp(row->id, id) && row->revision >= min && row->revision <= max &&
            (!best || row->revision > best->revision))
            best = row;
    return best;
}

/* Returns a plugin other than `but` that provides an interface with this id, NULL if there is
 * none. */
static const tn__plugin *giver_of(const char *id, const tn__plugin *but)
{
    for (const tn__plugin *p = tn__plugins_first; p; p = p->next)
        if (p != but && p->private->negotiated && row_of(p, id, 0, UINT32_MAX))
            return p;
    return NULL;
}

static tn_status row_acceptable(const tn__plugin *plugin, const tn_interface_row *rows, int64_t at)
{
    const tn_interface_row *row = &rows[at];
    const tn__plugin *other;

    if (!letters_fit(row->id) || !belongs_to(row->id, plugin->id))
        return tn_fail(TN_ERR_VALUE,
                       "interface %q: wrong id; expected one that begins with the id of the plugin "
                       "(\"%s.name\") and has only letters, digits, `.`, `_` and `-`",
                       row->id, plugin->id);
    if (tn__plugin_up.host_interface(row->id, 0, UINT32_MAX, NULL, NULL))
        return tn_fail(
            TN_ERR_REFUSED,
            "interface %q: id: taken by the host; expected an id that begins with the plugin's id",
            row->id);
    if (!row->table || row->size < sizeof(void *))
        return tn_fail(TN_ERR_VALUE,
                       "interface %q: wrong table, got %u bytes%s; expected at least one function",
                       row->id, row->size, row->table ? "" : " and NULL");
    if (row->reserved)
        return tn_fail(TN_ERR_VERSION,
                       "interface %q: reserved: reserved in Tenon %s; expected NULL", row->id,
                       tn_version());
    for (int64_t i = 0; i < at; i++)
        if (!strcmp(rows[i].id, row->id) && rows[i].revision == row->revision)
            return tn_fail(TN_ERR_VALUE, "interface %q: revision %u is declared twice", row->id,
                           row->revision);
    other = giver_of(row->id, plugin);
    if (other)
        return tn_fail(TN_ERR_REFUSED, "interface %q: provided by %s (%s), which was found first",
                       row->id, other->id, other->file);
    return TN_OK;
}

tn_status tn__interfaces_check(const tn__plugin *plugin)
{
    const tn_interface_row *rows = plugin->plugin->interfaces;
    tn_status status = TN_OK;

    for (int64_t i = 0; rows && rows[i].id && status == TN_OK; i++)
        status = i < MOST_ROWS ? row_acceptable(plugin, rows, i)
                               : tn_fail(TN_ERR_VALUE,
                                         "interfaces: more than %d rows, or no row with a NULL "
                                         "id at the end",
                                         MOST_ROWS);
    return status;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Returns the plugin that `self` belongs to: `self` is the host's copy of its descriptor, or the
 * plugin's own struct. */
static tn__plugin *asker_of(const tn_plugin *self)
{
    for (tn__plugin *p = tn__plugins_first; p; p = p->next)
        if (p->private->negotiated && (p->plugin == self || !strcmp(p->id, self->id)))
            return p;
    return NULL;
}

static bool requires_it(const tn_plugin *self, const char *id)
{
    for (const tn_requirement *need = self->requires_; need && need->id; need++)
        if (!strcmp(need->id, id))
            return true;
    return false;
}

/* Returns the loaded plugin that provides the interface. Returns NULL and sets the error if there
 * is none or if `self` does not require it. */
static tn__plugin *giver_for(const tn_plugin *self, const char *id)
{
    tn__plugin *asker = self ? asker_of(self) : NULL;
    const tn__plugin *giver = giver_of(id, asker);

    if (self && !asker) {
        tn_fail(TN_ERR_VALUE, "tn_interface_find: self: not the descriptor of a loaded plugin");
        return NULL;
    }
    if (!giver) {
        tn_fail(TN_ERR_KEY,
                "interface %q: no plugin provides it; `tenon plugins` prints which plugins were "
                "loaded, and why others were not",
                id);
        return NULL;
    }
    if (asker && !requires_it(asker->plugin, giver->id)) {
        tn_fail(TN_ERR_REFUSED,
                "interface %q: provided by %q, which is not among the requirements of the plugin "
                "%q",
                id, giver->id, asker->id);
        return NULL;
    }
    return (tn__plugin *)(uintptr_t)giver;
}

const void *tn_interface_find(const tn_plugin *self, const tn_interface_need *need,
                              uint32_t *revision)
{
    const tn_interface_row *row;
    tn__plugin *giver;

    if (!tn__given(need && need->id, "tn_interface_find: need") ||
        !tn__given(!self || self->id, "tn_interface_find: self") || tn__plugins_discover() != TN_OK)
        return NULL;
    if (need->reserved) {
        tn_fail(TN_ERR_VALUE, "interface %q: need: reserved: nonzero, got %u; expected 0", need->id,
                need->reserved);
        return NULL;
    }
    tn__plugins_lock();
    giver = giver_for(self, need->id);
    tn__plugins_unlock();
    if (!giver || tn__plugin_use(giver) != TN_OK)
        return NULL;
    row = row_of(giver, need->id, need->min, need->max);
    if (!row) {
        tn_fail(TN_ERR_VERSION, "interface %q: %s has no revision from %u to %u", need->id,
                giver->id, need->min, need->max);
        return NULL;
    }
    if (row->revision == 0 ? row->size != need->size : row->size < need->size) {
        tn_fail(TN_ERR_VERSION,
                "interface %q: compiled against another %s, got %u bytes; expected %u: compile it "
                "again",
                need->id, row->revision ? "version" : "draft", need->size, row->size);
        return NULL;
    }
    if (revision)
        *revision = row->revision;
    return row->table;
}
