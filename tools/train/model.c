/* SPDX-License-Identifier: MIT
 *
 * Opens models: finds out whether a text is a spec, a layer or a file, and loads weights. */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "program.h"
#include "sdk/conform/conform.h"

enum { SPEC_MOST = 1 << 20, LIST_MOST = 6, LIST_SIZE = 400 };

/* The parts of a checkpoint (docs/guides/training.md). */
static const char model_part[] = "model.", optimizer_part[] = "optimizer.";

/* ---- weights --------------------------------------------------------------------------------- */

/* Writes the first names of a list, and how many more there are. */
static void list_text(const tn_names *names, const char *between, char *out, size_t size)
{
    int64_t count = tn_names_count(names), used = 0;
    out[0] = '\0';
    for (int64_t i = 0; i < count && used < (int64_t)size; i++) {
        int64_t left = (int64_t)size - used;
        if (i == LIST_MOST || (i > 0 && left < LIST_SIZE / 3)) {
            tn_snprint(out + used, (size_t)left, " and %lld more", (long long)(count - i));
            return;
        }
        used += tn_snprint(out + used, (size_t)left, "%s%s", i > 0 ? between : "",
                           tn_names_at(names, i));
    }
}

/* Returns the length of the prefix that the names of the file have and those of the module lack;
 * 0 if this does not explain the first missing name. */
static size_t extra_prefix(const tn_names *missing, const tn_names *unexpected)
{
    if (tn_names_count(missing) == 0)
        return 0;
    const char *wanted = tn_names_at(missing, 0);
    for (int64_t i = 0; i < tn_names_count(unexpected); i++) {
        const char *name = tn_names_at(unexpected, i);
        size_t length = strlen(name), tail = strlen(wanted);
        if (length > tail && strcmp(name + length - tail, wanted) == 0 &&
            name[length - tail - 1] == '.')
            return length - tail;
    }
    return 0;
}

/* Replaces the error of a load by one with the lists of a report. */
static tn_status does_not_fit(const char *path, tn_load_report *report)
{
    tn_names *missing = tn_load_report_missing(report),
             *unexpected = tn_load_report_unexpected(report),
             *errors = tn_load_report_errors(report);
    char absent[LIST_SIZE], extra[LIST_SIZE], wrong[LIST_SIZE], hint[160] = "";
    int64_t n_missing = tn_names_count(missing), n_unexpected = tn_names_count(unexpected),
            n_errors = tn_names_count(errors);
    tn_status code = tn_error_code();
    size_t prefix = extra_prefix(missing, unexpected);

    if (n_missing + n_unexpected + n_errors == 0)
        return tn_error_prefix("%s: ", path);
    list_text(missing, ", ", absent, sizeof absent);
    list_text(unexpected, ", ", extra, sizeof extra);
    list_text(errors, "; ", wrong, sizeof wrong);
    if (prefix > 0 && prefix < 80)
        tn_snprint(hint, sizeof hint, "; `tenon convert FROM TO --prefix %.*s` removes a prefix",
                   (int)prefix, tn_names_at(unexpected, 0));
    tn_error_clear();
    return tn_fail(code, "%s: does not fit the model%s%s%s%s%s%s%s", path, n_errors ? ": " : "",
                   n_errors ? wrong : "", n_missing ? "; missing: " : "", n_missing ? absent : "",
                   n_unexpected ? "; unexpected: " : "", n_unexpected ? extra : "", hint);
}

static void list_loose(const char *path, const char *what, const tn_names *names)
{
    char text[LIST_SIZE];
    if (tn_names_count(names) == 0)
        return;
    list_text(names, ", ", text, sizeof text);
    fprintf(stderr, "tenon: %s: %s: %s\n", path, what, text);
}

static tn_status load(tn_module *module, const tn_state *state, const char *path, uint32_t flags)
{
    bool loose = (flags & MODEL_LOOSE) != 0;
    tn_load_report *report = tn_load_report_new();
    if (report == NULL)
        return tn_error_last_code();
    tn_status status = tn_module_load_report(
        module, state,
        TN_LOAD_WHOLE | (loose ? 0 : (uint32_t)TN_LOAD_STRICT) |
            ((flags & MODEL_ASSIGN) != 0 ? (uint32_t)TN_LOAD_ASSIGN : 0),
        report);
    if (status != TN_OK) {
        status = does_not_fit(path, report);
    } else if (loose) {
        list_loose(path, "missing, so these keep their initial values",
                   tn_load_report_missing(report));
        list_loose(path, "unexpected, so these are ignored", tn_load_report_unexpected(report));
    }
    tn_load_report_drop(report);
    return status;
}

/* ---- files of tensors ------------------------------------------------------------------------ */

static tn_status keep_texts(model_notes *notes, const tn_state *state)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_meta_count(state) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(state, i);
        status = tn_state_set_meta(notes->texts, key, tn_state_meta(state, key));
    }
    return status;
}

static bool has_part(const tn_state *state, const char *prefix)
{
    for (int64_t i = 0; i < tn_state_count(state); i++)
        if (strncmp(tn_state_name(state, i), prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

/* Stores as metadata the values that `tenon train` writes into a checkpoint, which has no metadata.
 * */
static tn_status keep_values(model_notes *notes, const tn_state *state)
{
    static const struct {
        const char *value, *key;
    } rows[] = { { "value.spec", MODEL_SPEC },
                 { "value.classes", MODEL_CLASSES },
                 { "value.transform", MODEL_TRANSFORM },
                 { "value.program", MODEL_PROGRAM } };
    tn_status status = TN_OK;

    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == TN_OK; i++) {
        int64_t at = tn_state_find(state, rows[i].value);
        tn_value value = at >= 0 ? tn_state_value(state, at) : tn_value_none();

        if (value.kind == TN_VALUE_STRING && tn_state_meta(notes->texts, rows[i].key) == NULL)
            status = tn_state_set_meta(notes->texts, rows[i].key, value.as.s);
    }
    return status;
}

/* Reads the weights and the metadata of a file. Of a checkpoint, reads only the weights of the
 * model. */
static tn_state *read_weights(const char *path, model_notes *notes)
{
    /* The values are copied into the module, whose device may be another one. */
    const tn_device *host = tn_device_find("cpu");
    tn_state *state = NULL;
    if (host == NULL)
        return NULL;
    if (tn_device_begin(host) == TN_OK)
        state = tn_state_load_as(path, TN_FILE_MAP);
    tn_device_end();
    if (state == NULL || keep_texts(notes, state) != TN_OK) {
        tn_state_drop(state);
        return NULL;
    }
    if (!has_part(state, model_part) || !has_part(state, optimizer_part))
        return state;
    tn_state *part = keep_values(notes, state) == TN_OK ? tn_state_part(state, model_part) : NULL;
    tn_state_drop(state);
    return part;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Reads a file that may have a spec. *out is its text, which the caller frees; NULL if it is no
 * text, or begins with a brace, as an index of files of tensors does. */
static tn_status read_text(const char *path, char **out)
{
    const char *why = NULL;
    FILE *file = conform_open(path, &why);
    char *text = file != NULL ? tn_malloc(SPEC_MOST + 1) : NULL;
    size_t size = 0;

    if (text != NULL)
        size = fread(text, 1, SPEC_MOST, file);
    if (file != NULL && ferror(file))
        why = "cannot be read";
    if (file != NULL)
        fclose(file);
    if (why == NULL && text == NULL)
        return TN_ERR_MEMORY;
    if (why == NULL && size < SPEC_MOST && memchr(text, '\0', size) == NULL &&
        (size == 0 || text[0] != '{')) {
        text[size] = '\0';
        *out = text;
        return TN_OK;
    }
    tn_free(text);
    return why != NULL ? tn_fail(TN_ERR_IO, "%s: %s", path, why) : TN_OK;
}

/* Makes the module of a spec or a printed form. */
static tn_module *from_text(const char *text, const char *path, model_notes *notes)
{
    tn_module *module = tn_module_parse(text);
    if (module == NULL) {
        if (path != NULL)
            tn_error_prefix("%s: ", path);
        return NULL;
    }
    notes->spec = tn_strdup(text);
    if (notes->spec != NULL)
        return module;
    tn_module_drop(module);
    return NULL;
}

/* Makes the module of a script, and stores the names of its files as metadata. */
static tn_module *from_script(const char *path, model_notes *notes)
{
    tn_module *module = tn_module_from_file(path);
    const tn_state *files = module != NULL ? tn_script_files(module) : NULL;
    tn_status status = files != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < tn_state_count(files) && status == TN_OK; i++)
        if (tn_state_value(files, i).kind == TN_VALUE_STRING)
            status = tn_state_set_meta(notes->texts, tn_state_name(files, i),
                                       tn_state_value(files, i).as.s);
    notes->loaded = true;
    if (status == TN_OK)
        return module;
    tn_module_drop(module);
    return NULL;
}

/* Opens a file that stores a whole module, or a folder whose file does. If it has tensors alone,
 * says what is missing. */
static tn_module *from_module(const char *path, model_notes *notes)
{
    uint64_t mark = tn_error_mark();
    tn_module *module = tn_module_from_file(path);

    notes->loaded = module != NULL;
    if (module != NULL || strstr(tn_error_last()->message, MODEL_SPEC) == NULL)
        return module;
    tn_error_restore(mark);
    tn_fail(TN_ERR_FORMAT,
            "%s: has tensors, but no metadata \"" MODEL_SPEC "\" with the spec of the model; "
            "expected a spec in its place, and this file after --weights (train and finetune: "
            "--init)",
            path);
    return NULL;
}

/* Makes the module of a file of tensors, or of a file that stores whole modules. The library
 * chooses the file of a folder. A checkpoint has no program, but a copy beside it. */
static tn_module *from_tensors(const char *path, uint32_t flags, model_notes *notes)
{
    uint64_t mark = tn_error_mark();
    tn_state *state = read_weights(path, notes);
    const char *spec = state != NULL ? model_note(notes, MODEL_SPEC) : NULL,
               *program = state != NULL ? model_note(notes, MODEL_PROGRAM) : NULL;
    tn_module *module = NULL;

    if (state == NULL && tn_error_last_code() == TN_ERR_NOT_IMPLEMENTED) {
        tn_error_restore(mark);
        notes->loaded = true;
        return tn_module_from_file(path);
    }
    if (state != NULL && spec == NULL && program == NULL) {
        tn_state_drop(state);
        return model_note(notes, MODEL_SCRIPT) != NULL ? from_script(path, notes)
                                                       : from_module(path, notes);
    }
    if (state != NULL)
        module = spec != NULL ? from_text(spec, path, notes) : program_open(path, program);
    if (module != NULL && load(module, state, path, flags) != TN_OK) {
        tn_module_drop(module);
        module = NULL;
    }
    notes->loaded = module != NULL;
    tn_state_drop(state);
    return module;
}

static tn_module *from_file(const char *path, bool folder, uint32_t flags, model_notes *notes)
{
    char *text = NULL;
    /* a damaged file of tensors is no spec, also if it has text */
    bool tensors = folder || model_is_tensors(path);
    tn_status status = tensors ? TN_OK : read_text(path, &text);
    tn_module *module = NULL;

    if (status == TN_OK && text != NULL)
        module = from_text(text, path, notes);
    else if (status == TN_OK)
        module = from_tensors(path, flags, notes);
    tn_free(text);
    return module;
}

/* ---- what a text names ----------------------------------------------------------------------- */

/* Returns whether a plugin has a layer of this name. If not, and if `hint` is not NULL, stores the
 * message of the look-up there, which has the nearest name. */
static bool is_layer(const char *text, char *hint, size_t size)
{
    uint64_t mark = tn_error_mark();
    bool found = tn_registry_find(TN_KIND_tn_layer_def, text) != NULL;
    if (!found && hint != NULL)
        tn_snprint(hint, size, "%s", tn_error_last()->message);
    tn_error_restore(mark);
    return found;
}

static tn_module *find(const char *text, uint32_t flags, model_notes *notes)
{
    char hint[512] = "";
    struct stat found;
    size_t length = strlen(text);
    const char *path = text[0] == '@' ? text + 1 : text;
    bool call = text[0] != '@' && strchr(text, '(') != NULL;
    bool file = stat(path, &found) == 0;
    int why = errno;

    if (length == 0) {
        tn_fail(TN_ERR_VALUE, "model: empty; expected a spec, a layer or a file");
        return NULL;
    }
    if (text[0] == '@')
        return from_file(path, file && S_ISDIR(found.st_mode), flags, notes);
    if (file && ((call && text[length - 1] == ')') || is_layer(text, NULL, 0))) {
        tn_fail(TN_ERR_VALUE,
                "model %q: names a file and a layer; expected @%s for the file, or %s%s%s", text,
                text, call ? "another folder" : text, call ? "" : "()",
                call ? " for the spec" : " for the layer");
        return NULL;
    }
    if (file)
        return from_file(path, S_ISDIR(found.st_mode), flags, notes);
    if (call || is_layer(text, hint, sizeof hint))
        return from_text(text, NULL, notes);
    if (strpbrk(text, "/.") != NULL) { /* no layer has such a name */
        tn_fail(TN_ERR_IO, "model %q: cannot be opened: %s", text, strerror(why));
        return NULL;
    }
    tn_fail(TN_ERR_KEY, "model %q: no spec (it has no parentheses), no file (%s) and no layer (%s)",
            text, strerror(why), hint);
    return NULL;
}

/* ---- the model ------------------------------------------------------------------------------- */

tn_module *model_open(const char *text, const char *weights, uint32_t flags, model_notes *notes)
{
    notes->texts = tn_state_new();
    tn_module *module = notes->texts != NULL ? find(text, flags, notes) : NULL;
    if (module == NULL || weights == NULL)
        return module;
    tn_state *state = read_weights(weights, notes);
    tn_status status = state != NULL ? load(module, state, weights, flags) : tn_error_last_code();
    tn_state_drop(state);
    notes->loaded = status == TN_OK;
    if (status == TN_OK)
        return module;
    tn_module_drop(module);
    return NULL;
}

void model_notes_free(model_notes *notes)
{
    tn_free(notes->spec);
    tn_state_drop(notes->texts);
    *notes = (model_notes){ 0 };
}

const char *model_note(const model_notes *notes, const char *key)
{
    return notes->texts != NULL ? tn_state_meta(notes->texts, key) : NULL;
}
