/* SPDX-License-Identifier: MIT
 *
 * Saving and loading states: which format, and the order of things around it. */
#include "core/io/internal.h"

#include <ctype.h>

/* ---- which format ---------------------------------------------------------------------------- */

/* Whether `path` ends in one of the extensions ".a .b" (case does not matter). */
static bool has_extension(const char *path, const char *extensions)
{
    size_t length = strlen(path);
    for (const char *at = extensions; at != NULL && *at != '\0';) {
        size_t size = strcspn(at, " ");
        if (size > 0 && size < length) {
            const char *end = path + length - size;
            size_t same = 0;
            while (same < size &&
                   tolower((unsigned char)end[same]) == tolower((unsigned char)at[same]))
                same++;
            if (same == size)
                return true;
        }
        at += size;
        at += strspn(at, " ");
    }
    return false;
}

static const tn_format *format_of(const tn__entry *entry)
{
    return (const tn_format *)entry->contribution;
}

static const tn__entry *by_extension(const char *path)
{
    const tn__entry *const *all = NULL;
    int64_t count = tn__registry_all(TN_KIND_tn_format, &all);
    for (int64_t i = 0; i < count; i++)
        if (has_extension(path, format_of(all[i])->extensions))
            return all[i];
    return NULL;
}

/* The first format that knows the content; a plugin that cannot be used is passed over, its line in the load report says why. */
static const tn__entry *by_content(const tn_source *source)
{
    const tn__entry *const *all = NULL;
    int64_t count = tn__registry_all(TN_KIND_tn_format, &all);
    for (int64_t i = 0; i < count; i++) {
        uint64_t mark = tn_error_mark();
        bool known = format_of(all[i])->recognize != NULL &&
                     (all[i]->plugin == NULL || tn__plugin_use(all[i]->plugin) == TN_OK) &&
                     format_of(all[i])->recognize(source);
        tn_error_restore(mark);
        if (known)
            return all[i];
    }
    return NULL;
}

/* "safetensors (.safetensors), npy (.npy)", for error texts. */
static void put_formats(tn__text *text)
{
    const tn__entry *const *all = NULL;
    int64_t count = tn__registry_all(TN_KIND_tn_format, &all);
    for (int64_t i = 0; i < count; i++)
        tn__text_add(text, "%s%s (%s)", i > 0 ? ", " : "", all[i]->name,
                     format_of(all[i])->extensions != NULL ? format_of(all[i])->extensions : "");
    if (count == 0)
        tn__text_add(text, "none: no plugin with a format is loaded");
}

static tn_status no_format(const char *path, const char *what)
{
    tn__text text = { 0 };
    put_formats(&text);
    tn_status status = tn_fail(TN_ERR_FORMAT, "%s: %s; formats: %s", path, what,
                               text.at != NULL ? text.at : "?");
    tn__text_free(&text);
    return status;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static uint64_t state_bytes(const tn_state *state)
{
    uint64_t total = 0;
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        const tn_tensor *tensor = tn_state_tensor(state, i);
        total += (uint64_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    }
    return total;
}

static tn_status enter(const tn__entry *entry, const char **before)
{
    if (entry->plugin != NULL) {
        tn_status status = tn__plugin_use(entry->plugin);
        if (status != TN_OK)
            return status;
    }
    *before = tn__error_plugin(entry->plugin != NULL ? entry->plugin->id : "");
    return TN_OK;
}

tn_status tn__file_save(const char *path, const tn_state *state)
{
    tn_status status = tn__plugins_discover();
    if (status != TN_OK)
        return status;
    const tn__entry *entry = by_extension(path);
    if (entry == NULL)
        return no_format(path, "no format has this extension");
    if (format_of(entry)->save == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: format %s can be read, not written", path,
                       entry->name);
    tn__writer writer;
    status = tn__writer_open(&writer, path, state_bytes(state));
    if (status != TN_OK)
        return status;
    const char *before = NULL;
    status = enter(entry, &before);
    if (status == TN_OK) {
        uint64_t scope = tn_scope_begin();
        status = tn__status_of(format_of(entry)->save(&writer.sink, state), entry->name);
        tn_scope_end(scope);
        tn__error_plugin(before);
    }
    if (status == TN_OK)
        return tn__writer_commit(&writer);
    tn__writer_abort(&writer);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

tn_status tn__file_load(const char *path, tn_state *state)
{
    tn__reader reader;
    tn_status status = tn__plugins_discover();
    if (status == TN_OK)
        status = tn__reader_open(&reader, path);
    if (status != TN_OK)
        return status;
    /* A damaged file is recognized by nobody; its extension still finds somebody who can say what is wrong. */
    const tn__entry *entry = by_content(&reader.source);
    if (entry == NULL)
        entry = by_extension(path);
    const char *before = NULL;
    if (entry == NULL) {
        status = no_format(path, "no format knows its content or its extension");
    } else if (format_of(entry)->load == NULL) {
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: format %s can be written, not read", path,
                         entry->name);
    } else if ((status = enter(entry, &before)) == TN_OK) {
        uint64_t scope = tn_scope_begin();
        status = tn__status_of(format_of(entry)->load(&reader.source, state), entry->name);
        tn_scope_end(scope);
        tn__error_plugin(before);
    }
    tn__reader_close(&reader);
    return status;
}
