/* SPDX-License-Identifier: MIT
 *
 * Saves and loads states and modules: chooses the format, opens the file, and calls the format's
 * functions. */
#include "lib/io/private.h"
#include "core/module/hooks.h"
#include "core/tensor/boundary.h"

#include <ctype.h>

/* ---- which format ---------------------------------------------------------------------------- */

/* Returns whether `path` ends in one of the extensions, such as ".a .b". Case does not matter. */
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

static const tn_format_def *format_of(const tn__entry *entry)
{
    return (const tn_format_def *)entry->contribution;
}

const tn__entry *tn__file_format(const char *path)
{
    const tn__entry *const *all = NULL;
    int64_t count = tn__registry_all(TN_KIND_tn_format_def, &all);
    for (int64_t i = 0; i < count; i++)
        if (has_extension(path, format_of(all[i])->extensions))
            return all[i];
    return NULL;
}

/* Returns the first format that recognizes the content. A plugin that cannot be used is skipped;
 * its line in the load report says why. */
static const tn__entry *by_content(const tn_source *source)
{
    const tn__entry *const *all = NULL;
    int64_t count = tn__registry_all(TN_KIND_tn_format_def, &all);
    for (int64_t i = 0; i < count; i++) {
        uint64_t mark = tn_error_mark();
        bool known = format_of(all[i])->recognize != NULL &&
                     (all[i]->plugin == NULL || tn__plugin_use(all[i]->plugin) == TN_OK) &&
                     format_of(all[i])->recognize(format_of(all[i]), source);
        tn_error_restore(mark);
        if (known)
            return all[i];
    }
    return NULL;
}

/* Appends the names of formats, "safetensors (.safetensors), npy (.npy)", for error texts: all
 * formats that have an extension or, with `to_save`, those that can save a single file. */
static void put_formats(tn__text *text, bool to_save)
{
    const tn__entry *const *all = NULL;
    int64_t count = tn__registry_all(TN_KIND_tn_format_def, &all), named = 0;
    for (int64_t i = 0; i < count; i++) {
        const tn_format_def *format = format_of(all[i]);
        if (format->extensions == NULL)
            continue;
        if (to_save && ((format->save == NULL && format->save_module == NULL) ||
                        (format->flags & TN_FORMAT_INDEX) != 0))
            continue;
        tn__text_add(text, "%s%s (%s)", named++ > 0 ? ", " : "", all[i]->name, format->extensions);
    }
    if (named == 0)
        tn__text_add(text, "none: no plugin with a format is loaded");
}

static tn_status no_format(const char *path, const char *what, bool to_save)
{
    tn__text text = { 0 };
    put_formats(&text, to_save);
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
        tn_value value = tn_state_value(state, i);
        if (value.kind == TN_VALUE_TENSOR)
            total += (uint64_t)tn_tensor_numel(value.as.tensor) *
                     tn_dtype_size(tn_tensor_dtype(value.as.tensor));
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

/* What is saved: a state or a module; the other is NULL. */
struct saved {
    const tn_state *state;
    tn_module *module;
};

static tn_status call_save(const tn_format_def *format, const tn_sink *sink,
                           const struct saved *what)
{
    return what->module != NULL ? format->save_module(format, sink, what->module)
                                : format->save(format, sink, what->state);
}

static tn_status save_with(const tn__entry *entry, tn__writer *writer, const struct saved *what)
{
    const char *before = NULL;
    tn_status status = enter(entry, &before);
    if (status == TN_OK) {
        uint64_t scope = tn_scope_begin();
        tn__boundary_thread thread;
        tn__boundary_enter(&thread);
        status = tn__error_status_of(call_save(format_of(entry), &writer->sink, what), entry->name);
        status = tn__boundary_leave(&thread, entry->plugin != NULL ? entry->plugin->id : "",
                                    entry->name, status);
        tn_scope_end(scope);
        tn__error_plugin_back(before);
    }
    if (status == TN_OK)
        return tn__writer_commit(writer);
    tn__writer_abort(writer);
    return status;
}

static tn_status write_file(const tn__entry *entry, const char *path, const struct saved *what,
                            tn__file_set *set)
{
    uint64_t mark = tn_error_mark();
    uint64_t bytes = what->state != NULL ? state_bytes(what->state) : 0;
    tn_status status = TN_OK;
    for (int named = 0; named < 2; named++) {
        tn__writer writer;
        status = tn__writer_open(&writer, path, bytes, named == 1, set);
        if (status == TN_OK)
            status = save_with(entry, &writer, what);
        if (status == TN_OK || !writer.unlinkable)
            break;
        if (named == 0)
            tn_error_restore(mark);
    }
    return status;
}

tn_status tn__file_save(const tn__entry *entry, const char *path, const tn_state *state,
                        tn__file_set *set)
{
    const struct saved what = { state, NULL };
    if (format_of(entry)->save == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: format %s: %s", path, entry->name,
                       format_of(entry)->save_module != NULL
                           ? "stores modules, not states; use tn_module_save"
                           : "can be read, not written");
    return write_file(entry, path, &what, set);
}

/* Checks that all entries are tensors, for a format that stores nothing else. */
static tn_status check_tensors(const tn_state *state, const char *path, const char *format)
{
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind != TN_VALUE_TENSOR)
            return tn_fail(TN_ERR_TYPE,
                           "%s: entry \"%s\": wrong kind, got %s; expected a tensor (format %s "
                           "stores nothing else)",
                           path, tn_state_name(state, i), tn__value_kind_name(value.kind), format);
    }
    return TN_OK;
}

static tn_status save(const char *path, const tn_state *state)
{
    tn_status status = tn__io_load_formats();
    if (status != TN_OK)
        return status;
    const tn__entry *entry = tn__file_format(path);
    if (entry == NULL)
        return no_format(path, "no format has this extension", true);
    uint32_t flags = format_of(entry)->flags;
    if ((flags & TN_FORMAT_INDEX) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: this is the name of an index; use tn_state_save_parts, which writes "
                       "an index and the files that it names",
                       path);
    tn__file_set_sweep(path);
    if ((flags & TN_FORMAT_VALUES) != 0)
        return tn__file_save(entry, path, state, NULL);
    if ((flags & TN_FORMAT_TEXTS) == 0) {
        status = check_tensors(state, path, entry->name);
        return status == TN_OK ? tn__file_save(entry, path, state, NULL) : status;
    }
    tn_state *plain = tn__metadata_from_state(state, path);
    status = plain != NULL ? tn__file_save(entry, path, plain, NULL) : tn_error_last_code();
    tn_state_drop(plain);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

static tn_status load_from(const tn__entry *entry, tn__reader *reader, tn_state *state)
{
    const char *before = NULL;
    if (entry == NULL)
        return no_format(reader->source.path, "no format recognizes its content or its extension",
                         false);
    if (format_of(entry)->load == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: format %s: %s", reader->source.path,
                       entry->name,
                       format_of(entry)->load_module != NULL
                           ? "stores modules, not states; use tn_module_from_file"
                           : "can be written, not read");
    tn_status status = enter(entry, &before);
    if (status != TN_OK)
        return status;
    uint64_t scope = tn_scope_begin();
    tn__boundary_thread thread;
    tn__boundary_enter(&thread);
    status = tn__error_status_of(format_of(entry)->load(format_of(entry), &reader->source, state),
                                 entry->name);
    status = tn__boundary_leave(&thread, entry->plugin != NULL ? entry->plugin->id : "",
                                entry->name, status);
    tn_scope_end(scope);
    tn__error_plugin_back(before);
    return status;
}

tn_state *tn__file_load(const char *path, uint32_t flags, bool *index)
{
    tn__reader reader;
    tn_status status = tn__io_load_formats();
    if (status == TN_OK)
        status = tn__reader_open(&reader, path, flags);
    if (status != TN_OK)
        return NULL;
    /* Often no format recognizes a damaged file, but the format of its extension can still say what
     * is wrong. */
    const tn__entry *entry = by_content(&reader.source);
    if (entry == NULL)
        entry = tn__file_format(path);
    bool is_index = entry != NULL && (format_of(entry)->flags & TN_FORMAT_INDEX) != 0;
    tn_state *state = tn_state_new();
    if (state == NULL)
        status = TN_ERR_MEMORY;
    else if (is_index && !*index)
        status = tn_fail(
            TN_ERR_FORMAT,
            "%s: this file is an index, named in another index; expected a file of tensors", path);
    else
        status = load_from(entry, &reader, state);
    tn__reader_close(&reader);
    *index = is_index;
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

tn_status tn__file_load_index(const char *path, tn_state **index)
{
    tn__reader reader;
    uint64_t mark = tn_error_mark();
    tn_status status = tn__reader_open(&reader, path, 0);
    *index = NULL;
    if (status == TN_OK) {
        const tn__entry *entry = by_content(&reader.source);
        if (entry == NULL)
            entry = tn__file_format(path);
        if (entry != NULL && (format_of(entry)->flags & TN_FORMAT_INDEX) != 0) {
            *index = tn_state_new();
            status = *index != NULL ? load_from(entry, &reader, *index) : TN_ERR_MEMORY;
        }
        tn__reader_close(&reader);
    }
    if (status != TN_OK) {
        tn_state_drop(*index);
        *index = NULL;
    }
    tn_error_restore(mark);
    return status;
}

static tn_state *load(const char *path, uint32_t flags)
{
    bool index = true;
    char *found = NULL;
    tn_status status = tn__io_load_formats();
    if (status != TN_OK || tn__folder_find(path, &found) != TN_OK)
        return NULL;
    const char *file = found != NULL ? found : path;
    tn_state *state = tn__file_load(file, flags, &index);
    if (state != NULL && index)
        state = tn__shards_load(state, file, flags);
    if (state != NULL)
        state = tn__metadata_to_state(state, file);
    tn_free(found);
    return state;
}

/* ---- public ---------------------------------------------------------------------------------- */

tn_status tn_state_save(const tn_state *state, const char *path)
{
    if (state == NULL || path == NULL)
        return tn__error_null_of("tn_state_save", "state, path", state, path);
    return save(path, state);
}

tn_state *tn_state_load_as(const char *path, uint32_t flags)
{
    if (path == NULL) {
        tn_error_null("tn_state_load: path");
        return NULL;
    }
    if ((flags & ~(uint32_t)(TN_FILE_MAP | TN_FILE_READ_ONLY)) != 0 || flags == TN_FILE_READ_ONLY) {
        tn_fail(TN_ERR_VALUE,
                "%s: flags: wrong, got 0x%x; expected 0, TN_FILE_MAP (1), or TN_FILE_MAP with "
                "TN_FILE_READ_ONLY (3)",
                path, flags);
        return NULL;
    }
    return load(path, flags);
}

tn_state *tn_state_load(const char *path)
{
    return tn_state_load_as(path, 0);
}

/* Fails if a part of a script has hooks, because no file could call them. */
static tn_status check_hooks(tn_module *module, const char *path)
{
    tn__walk walk = { 0 };
    tn_status status = tn__walk_collect(module, TN_SLOT_CHILD, false, &walk);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++) {
        if ((tn__hooks_kinds(&walk.at[i].module->hooks) & TN__HOOKS_AROUND) != 0)
            status = tn_fail(TN_ERR_REFUSED,
                             "%s: script: module %q has hooks, which a file cannot hold; expected "
                             "none: call tn_module_unhook first",
                             path, walk.at[i].path);
    }
    tn__walk_free(&walk);
    return status;
}

tn_status tn_module_save(tn_module *module, const char *path)
{
    if (module == NULL || path == NULL)
        return tn__error_null_of("tn_module_save", "module, path", module, path);
    tn_status status = tn__io_load_formats();
    const tn__entry *entry = status == TN_OK ? tn__file_format(path) : NULL;
    if (entry != NULL && format_of(entry)->save_module != NULL) {
        const struct saved what = { NULL, module };
        if (module->frozen != 0)
            status = check_hooks(module, path);
        return status == TN_OK ? write_file(entry, path, &what, NULL) : status;
    }
    if (status != TN_OK)
        return status;
    tn_state *state = tn_module_state(module);
    status = state != NULL ? save(path, state) : tn_error_last_code();
    tn_state_drop(state);
    return status;
}

tn_status tn_module_load(tn_module *module, const char *path)
{
    if (module == NULL || path == NULL)
        return tn__error_null_of("tn_module_load", "module, path", module, path);
    bool empty;
    tn_status status = tn__load_take_wanted(module, &empty);
    tn_state *state = status == TN_OK ? tn_state_load_as(path, empty ? TN_FILE_MAP : 0) : NULL;
    if (state == NULL)
        return tn_error_last_code();
    status = tn_module_load_report(
        module, state, TN_LOAD_STRICT | TN_LOAD_WHOLE | (empty ? TN_LOAD_TAKE : 0u), NULL);
    if (status != TN_OK)
        tn_error_prefix("%s: ", path);
    tn_state_drop(state);
    return status;
}

/* ---- whole modules --------------------------------------------------------------------------- */

static tn_module *load_module_from(const tn__entry *entry, tn__reader *reader)
{
    const char *before = NULL;
    const tn_format_def *format = format_of(entry);
    tn_module *module = NULL;
    if (enter(entry, &before) != TN_OK)
        return NULL;
    uint64_t scope = tn_scope_begin(), failures = tn_error_mark();
    tn__boundary_thread thread;
    tn__boundary_enter(&thread);
    module = format->load_module(format, &reader->source);
    if (module == NULL && tn_error_mark() == failures)
        tn_fail(TN_ERR_RUNTIME, "%s: load_module returned NULL and recorded no message",
                entry->name);
    tn_status status = tn__boundary_leave(&thread, entry->plugin != NULL ? entry->plugin->id : "",
                                          entry->name,
                                          module != NULL ? TN_OK : tn_error_last_code());
    if (status != TN_OK) {
        tn_module_drop(module);
        module = NULL;
    }
    tn_scope_end(scope);
    tn__error_plugin_back(before);
    return module;
}

/* Makes the module of a file, *whole if the format stores whole modules. Otherwise returns NULL and
 * sets *format to the name of the format, without an error. */
static tn_module *whole_module(const char *file, const char **format, bool *whole)
{
    tn__reader reader;
    tn_module *module = NULL;
    if (tn__reader_open(&reader, file, 0) != TN_OK)
        return NULL;
    const tn__entry *entry = by_content(&reader.source);
    if (entry == NULL)
        entry = tn__file_format(file);
    if (entry == NULL) {
        no_format(file, "no format recognizes its content or its extension", false);
    } else {
        *format = entry->name;
        *whole = format_of(entry)->load_module != NULL;
        if (*whole)
            module = load_module_from(entry, &reader);
    }
    tn__reader_close(&reader);
    return module;
}

/* Makes the module of a state with a spec. The values are copied into the module, whose device may
 * be another one. */
static tn_module *module_of_state(const char *file, const char *format)
{
    const tn_device *host = tn_device_find(TN__HOST_DEVICE_TYPE);
    tn_state *state = NULL;
    if (host == NULL)
        return NULL;
    if (tn_device_begin(host) == TN_OK)
        state = load(file, 0);
    tn_device_end();
    tn_module *module = state != NULL ? tn__state_module(state, file, format) : NULL;
    tn_state_drop(state);
    return module;
}

tn_module *tn_module_from_file(const char *path)
{
    const char *format = NULL;
    char *found = NULL;
    bool whole = false;
    if (path == NULL) {
        tn_error_null("tn_module_from_file: path");
        return NULL;
    }
    if (tn__io_load_formats() != TN_OK || tn__folder_find(path, &found) != TN_OK)
        return NULL;
    const char *file = found != NULL ? found : path;
    tn_module *module = whole_module(file, &format, &whole);
    if (format != NULL && !whole)
        module = module_of_state(file, format);
    tn_free(found);
    return module;
}
