/* SPDX-License-Identifier: MIT
 *
 * The format "script": a script (tn_module_script) as a safetensors file. The tensors are there for
 * every reader; the metadata has the rest, as texts:
 *
 *   tenon.script       JSON: modules, slots and constants, files; script.h describes it
 *   tenon.graph        the graph, or tenon.graph.eval, tenon.graph.train and tenon.graph.mixed
 *   tenon.requires     JSON: the operators with their revisions and plugins
 *   tenon.functions    JSON: decompositions of operators of other plugins, if there are any
 *
 * "tenon.script" is the first text, so that the first bytes of the file show the format. */
#include "script.h"

#include <string.h>

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Appends to a list or sets a member, and takes over the reference to `value`. */
static tn_status append(json_t *list, json_t *value)
{
    return value != NULL && json_array_append_new(list, value) == 0 ? TN_OK : TN_ERR_MEMORY;
}

static tn_status set(json_t *object, const char *key, json_t *value)
{
    return value != NULL && json_object_set_new(object, key, value) == 0 ? TN_OK : TN_ERR_MEMORY;
}

static json_t *ints(tn_ints values)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < values.count && list != NULL; i++)
        if (append(list, json_integer((json_int_t)values.at[i])) != TN_OK) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

/* ---- what is written ------------------------------------------------------------------------- */

/* The memory that some tensors of the script share. */
struct storage {
    tn_tensor *one;    /* the first of these tensors; borrowed from the script */
    const char *path;  /* its path; borrowed from w->tensors */
    int64_t low, high; /* elements of the storage that the tensors have: [low, high) */
    bool whole;        /* written as one flat tensor `name`, whose views the tensors are */
    char name[40];
};

struct writing {
    tn_module *script;
    const char *path; /* of the file */
    tn_state *state;
    json_t *modules, *slots, *constants, *files;
    json_t *modes;     /* of the modules, each before those below it */
    bool mixed;        /* the modes are different */
    json_t *to;        /* `slots` or `constants`: where slots are added */
    char at[1024];     /* path of what is being added */
    tn_state *met;     /* by address: paths of modules and tensors, numbers of storages */
    tn_state *tensors; /* all different tensors, by the path where each was met first */
    struct storage *storages;
    int64_t *storage_of; /* by tensor: index in `storages` */
    int64_t n_storages;
};

static tn_status fail_utf8(const struct writing *w, const char *name)
{
    json_t *text = json_string(name);

    if (text == NULL)
        return tn_fail(TN_ERR_VALUE, "%s: script: name: not UTF-8, got %q; expected UTF-8", w->path,
                       name);
    json_decref(text);
    return TN_ERR_MEMORY;
}

/* Finds a module or tensor, or adds it. *first becomes the path where it was met before, NULL if it
 * is new. */
static tn_status meet(struct writing *w, const void *object, const char **first)
{
    char key[40];
    int64_t at;

    tn_snprint(key, sizeof key, "%p", object);
    at = tn_state_find(w->met, key);
    *first = at >= 0 ? tn_state_value(w->met, at).as.s : NULL;
    return at >= 0 ? TN_OK : tn_state_set_value(w->met, key, tn_value_string(w->at));
}

/* ---- storages -------------------------------------------------------------------------------- */

static bool same_view(const tn_tensor *a, const tn_tensor *b)
{
    tn_ints x = tn_tensor_shape(a), y = tn_tensor_shape(b);

    if (tn_tensor_dtype(a) != tn_tensor_dtype(b) || tn_tensor_offset(a) != tn_tensor_offset(b) ||
        x.count != y.count || memcmp(x.at, y.at, (size_t)x.count * sizeof *x.at) != 0)
        return false;
    return memcmp(tn_tensor_strides(a).at, tn_tensor_strides(b).at,
                  (size_t)x.count * sizeof *x.at) == 0;
}

/* Returns the number of elements from the first to the last one of a tensor. */
static int64_t extent(const tn_tensor *tensor)
{
    tn_ints shape = tn_tensor_shape(tensor), strides = tn_tensor_strides(tensor);
    int64_t last = 0;

    if (tn_tensor_numel(tensor) == 0)
        return 0;
    for (int64_t d = 0; d < shape.count; d++)
        last += (shape.at[d] - 1) * strides.at[d];
    return last + 1;
}

/* Returns the storage of a tensor, which it adds if it is new; NULL on failure. */
static struct storage *find_storage(struct writing *w, tn_tensor *tensor, const char *path)
{
    const tn_view *view = tn_tensor_view(tensor);
    int64_t offset = tn_tensor_offset(tensor), at;
    uint64_t begin = (uint64_t)(uintptr_t)view->data + view->byte_offset -
                     (uint64_t)offset * tn_dtype_size(tn_tensor_dtype(tensor));
    struct storage *storage;
    char key[60];

    tn_snprint(key, sizeof key, "storage %d.%d.%llu", (int)view->device.type, (int)view->device.id,
               (unsigned long long)begin);
    at = tn_state_find(w->met, key);
    if (at >= 0) {
        storage = &w->storages[tn_state_value(w->met, at).as.i];
        if (tn_tensor_shares_storage(storage->one, tensor))
            return storage;
    } else if (tn_state_set_value(w->met, key, tn_value_int(w->n_storages)) != TN_OK) {
        return NULL;
    }
    storage = &w->storages[w->n_storages++];
    *storage = (struct storage){ .one = tensor, .path = path, .low = offset, .high = offset };
    storage->whole = !tn_tensor_is_contiguous(tensor) && extent(tensor) != tn_tensor_numel(tensor);
    return storage;
}

/* Adds a tensor to its storage. The storage must be written as a whole if its tensors are different
 * views of it, or if they are not contiguous. find_storage() decides this for the first tensor. */
static tn_status place(struct writing *w, int64_t index)
{
    tn_tensor *tensor = tn_state_tensor(w->tensors, index);
    const char *path = tn_state_name(w->tensors, index);
    struct storage *storage = find_storage(w, tensor, path);
    int64_t from = tn_tensor_offset(tensor), end = from + extent(tensor);

    if (storage == NULL)
        return tn_error_last_code();
    if (tn_tensor_dtype(storage->one) != tn_tensor_dtype(tensor))
        return tn_fail(TN_ERR_TYPE,
                       "%s: script: %q: wrong dtype, got %s; expected %s as %q, which has the same "
                       "memory",
                       w->path, path, tn_dtype_name(tn_tensor_dtype(tensor)),
                       tn_dtype_name(tn_tensor_dtype(storage->one)), storage->path);
    if (storage->one != tensor &&
        (!same_view(storage->one, tensor) || !tn_tensor_is_contiguous(tensor)))
        storage->whole = true;
    storage->low = from < storage->low ? from : storage->low;
    storage->high = end > storage->high ? end : storage->high;
    w->storage_of[index] = storage - w->storages;
    return TN_OK;
}

/* Adds the values of a storage to the state. */
static tn_status add_storage(struct writing *w, struct storage *storage, int64_t *next)
{
    int64_t count = storage->high - storage->low, one = 1;
    tn_tensor *flat;

    if (!storage->whole)
        return tn_state_set(w->state, storage->path, storage->one);
    do /* until no slot has this path */
        tn_snprint(storage->name, sizeof storage->name, SCRIPT_STORAGES "%lld",
                   (long long)(*next)++);
    while (tn_state_find(w->tensors, storage->name) >= 0);
    flat = tn_tensor_as_strided(storage->one, (tn_ints){ &count, 1 }, (tn_ints){ &one, 1 },
                                storage->low);
    return flat != NULL ? tn_state_set(w->state, storage->name, flat) : tn_error_last_code();
}

static tn_status lay_out(struct writing *w)
{
    size_t count = (size_t)tn_state_count(w->tensors) + 1;
    tn_status status = TN_OK;
    int64_t next = 0;

    w->storages = tn_calloc(count, sizeof *w->storages);
    w->storage_of = tn_calloc(count, sizeof *w->storage_of);
    if (w->storages == NULL || w->storage_of == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < tn_state_count(w->tensors) && status == TN_OK; i++)
        status = place(w, i);
    for (int64_t i = 0; i < w->n_storages && status == TN_OK; i++)
        status = add_storage(w, &w->storages[i], &next);
    return status;
}

/* ---- modules and slots ----------------------------------------------------------------------- */

/* Appends a name to the path w->at. */
static tn_status push(struct writing *w, const char *name)
{
    size_t length = strlen(w->at), more = strlen(name);

    if (length + more + 2 > sizeof w->at)
        return tn_fail(TN_ERR_VALUE,
                       "%s: script: path: too long, got %zu bytes (%.40s...); expected at most %zu",
                       w->path, length + more + 1, w->at, sizeof w->at - 2);
    if (length > 0)
        w->at[length++] = '.';
    memcpy(w->at + length, name, more + 1);
    return TN_OK;
}

/* Adds a slot, so far without the place of its values. The path of its module is in w->at. */
static tn_status put_slot(void *user, const tn_visit *what)
{
    struct writing *w = user;
    size_t length = strlen(w->at);
    const char *first, *path = w->to == w->constants ? what->path : w->at;
    tn_status status = push(w, what->path);
    json_t *slot;

    if (status == TN_OK)
        status = meet(w, what->tensor, &first);
    if (status == TN_OK && first == NULL)
        status = tn_state_set(w->tensors, w->at, what->tensor);
    if (status != TN_OK)
        return status;
    slot = json_pack("{s:s}", "path", path);
    if (slot == NULL)
        return fail_utf8(w, w->at);
    w->at[length] = '\0';
    if (what->kind == TN_SLOT_PARAMETER)
        status = set(slot, "parameter", json_true());
    if (status == TN_OK && what->flags != 0 && w->to == w->slots)
        status = set(slot, "flags", json_integer((json_int_t)what->flags));
    if (status == TN_OK && first == NULL && tn_tensor_requires_grad(what->tensor))
        status = set(slot, "grad", json_true());
    if (status == TN_OK && first != NULL)
        status = set(slot, "same", json_string(first));
    if (status == TN_OK)
        return append(w->to, slot);
    json_decref(slot);
    return status;
}

/* Adds a module, whose path is in w->at, and those below it. */
static tn_status put_module(struct writing *w, tn_module *module)
{
    const tn_walk_options direct = { .size = sizeof direct,
                                     .flags = TN_WALK_DIRECT | TN_WALK_DUPLICATES };
    const char *first, *type = tn_script_original(module);
    size_t length = strlen(w->at);
    tn_status status = type != NULL ? meet(w, module, &first) : tn_error_last_code();

    if (status != TN_OK)
        return status;
    status = append(w->modules, first != NULL ? json_pack("[sss]", w->at, type, first)
                                              : json_pack("[ss]", w->at, type));
    if (status != TN_OK)
        return fail_utf8(w, w->at);
    if (first != NULL)
        return TN_OK;
    status = tn_module_walk(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, &direct, put_slot, w);
    for (int64_t i = 0; i < tn_module_child_count(module) && status == TN_OK; i++) {
        tn_module *child = tn_module_child_at(module, i);
        const char *name = tn_module_child_name(module, i);

        if (child == NULL || (length == 0 && strcmp(name, SCRIPT_CONSTANTS) == 0))
            continue;
        status = push(w, name);
        if (status == TN_OK)
            status = put_module(w, child);
        w->at[length] = '\0';
    }
    if (status != TN_OK)
        return status;
    w->mixed |= tn_module_is_training(module) != tn_module_is_training(w->script);
    json_t *mode = json_pack("[sb]", w->at, (int)tn_module_is_training(module));
    return mode != NULL && json_array_insert_new(w->modes, 0, mode) == 0 ? TN_OK : TN_ERR_MEMORY;
}

/* The constants of the graphs come last, without a module of their own. */
static tn_status put_constants(struct writing *w)
{
    const tn_walk_options direct = { .size = sizeof direct,
                                     .flags = TN_WALK_DIRECT | TN_WALK_DUPLICATES };
    tn_module *holder;
    tn_status status;

    if (tn_module_slot_kind(w->script, SCRIPT_CONSTANTS) != TN_SLOT_CHILD)
        return TN_OK;
    holder = tn_module_child(w->script, SCRIPT_CONSTANTS);
    w->to = w->constants;
    status = push(w, SCRIPT_CONSTANTS);
    return status == TN_OK ? tn_module_walk(holder, TN_SLOT_BUFFER, &direct, put_slot, w) : status;
}

/* Adds to a slot where its values are. */
static tn_status put_place(struct writing *w, json_t *slot, int64_t index)
{
    tn_tensor *tensor = tn_state_tensor(w->tensors, index);
    const struct storage *storage = &w->storages[w->storage_of[index]];
    tn_status status = TN_OK;

    if (!storage->whole) {
        if (tensor != storage->one)
            status = set(slot, "data", json_string(storage->path));
        return status != TN_OK || tn_tensor_is_contiguous(tensor)
                   ? status
                   : set(slot, "strides", ints(tn_tensor_strides(tensor)));
    }
    status = set(slot, "data", json_string(storage->name));
    if (status == TN_OK)
        status = set(slot, "offset",
                     json_integer((json_int_t)(tn_tensor_offset(tensor) - storage->low)));
    if (status == TN_OK)
        status = set(slot, "shape", ints(tn_tensor_shape(tensor)));
    return status == TN_OK ? set(slot, "strides", ints(tn_tensor_strides(tensor))) : status;
}

static tn_status put_places(struct writing *w)
{
    json_t *const lists[] = { w->slots, w->constants };
    tn_status status = TN_OK;
    int64_t next = 0;

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < json_array_size(lists[k]) && status == TN_OK; i++) {
            json_t *slot = json_array_get(lists[k], i);

            if (json_object_get(slot, "same") == NULL)
                status = put_place(w, slot, next++);
        }
    return status;
}

static tn_status put_files(struct writing *w)
{
    const tn_state *files = tn_script_files(w->script);
    tn_status status = files != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < tn_state_count(files) && status == TN_OK; i++) {
        const char *name = tn_state_name(files, i);
        tn_value value = tn_state_value(files, i);
        bool text = value.kind == TN_VALUE_STRING;
        int64_t size = text ? (int64_t)strlen(value.as.s) : (int64_t)value.count;
        char path[1024];
        tn_tensor *bytes;

        if (!text && value.kind != TN_VALUE_BYTES)
            return tn_fail(TN_ERR_TYPE,
                           "%s: script: file %q: wrong kind, got %s; expected a string or bytes",
                           w->path, name, tn_value_kind_name(value.kind));
        if (strlen(name) > SCRIPT_FILE_NAME)
            return tn_fail(TN_ERR_VALUE,
                           "%s: script: file: name: too long, got %zu bytes; expected at most %d",
                           w->path, strlen(name), SCRIPT_FILE_NAME);
        tn_snprint(path, sizeof path, SCRIPT_FILES "%s", name);
        if (tn_state_find(w->state, path) >= 0)
            return tn_fail(TN_ERR_KEY,
                           "%s: script: file %q: its name in the file, %q, is that of a tensor; "
                           "expected another name",
                           w->path, name, path);
        bytes = tn_tensor_from(size > 0 ? value.as.s : "", TN_U8, (tn_ints){ &size, 1 });
        status = bytes != NULL ? tn_state_set(w->state, path, bytes) : tn_error_last_code();
        if (status == TN_OK && append(w->files, json_pack("[sb]", name, text)) != TN_OK)
            status = fail_utf8(w, name);
    }
    return status;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Sets a text of the metadata to a JSON value, and takes over the reference. */
static tn_status put_json(struct writing *w, const char *key, json_t *value)
{
    size_t length = value != NULL ? json_dumpb(value, NULL, 0, JSON_COMPACT) : 0;
    char *text = length > 0 ? tn_malloc(length + 1) : NULL;
    tn_status status = TN_ERR_MEMORY;

    if (text != NULL && json_dumpb(value, text, length, JSON_COMPACT) == length) {
        text[length] = '\0';
        status = tn_state_set_meta(w->state, key, text);
    }
    tn_free(text);
    json_decref(value);
    return status;
}

static tn_status put_graph(struct writing *w, const char *key, const tn_graph *graph)
{
    int64_t length = tn_graph_print(graph, "text", NULL, 0);
    char *text = length >= 0 ? tn_malloc((size_t)length + 1) : NULL;
    tn_status status = text != NULL ? TN_OK : length < 0 ? tn_error_last_code() : TN_ERR_MEMORY;

    if (status == TN_OK && tn_graph_print(graph, "text", text, (size_t)length + 1) < 0)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = tn_state_set_meta(w->state, key, text);
    tn_free(text);
    return status;
}

/* Adds a row for an operator and, if it is the first one of its plugin, for the plugin. `inner`:
 * only decompositions call it. */
static tn_status put_needed(const char *name, int64_t revision, bool inner, json_t *operators,
                            json_t *plugins)
{
    const char *id = tn_registry_plugin(TN_KIND_tn_op_def, name);
    tn_plugin_report report;
    tn_status status;

    if (json_object_get(operators, name) != NULL)
        return TN_OK;
    status = set(operators, name,
                 inner ? json_pack("[Isb]", (json_int_t)revision, id != NULL ? id : "", 1)
                       : json_pack("[Is]", (json_int_t)revision, id != NULL ? id : ""));
    if (status != TN_OK || id == NULL || json_object_get(plugins, id) != NULL)
        return status;
    for (int64_t i = 0; i < tn_plugin_count(); i++)
        if (tn_plugin_report_at(i, &report) == TN_OK && strcmp(report.id, id) == 0)
            return set(plugins, id, json_string(report.version));
    return set(plugins, id, json_string(""));
}

/* Adds rows for the operators of a graph, and of the blocks in it. */
static tn_status put_needed_by(const tn_graph *graph, json_t *operators, json_t *plugins)
{
    tn_status status = TN_OK;

    for (const tn_node *node = graph != NULL ? tn_graph_first(graph) : NULL;
         node != NULL && status == TN_OK; node = tn_node_next(node)) {
        tn_node_kind kind = tn_node_kind_of(node);

        if (kind == TN_NODE_OP || kind == TN_NODE_INPLACE) {
            const tn_op_def *def = tn_op_definition(tn_node_op(node));

            status = put_needed(def->name, def->revision, false, operators, plugins);
        }
        for (int i = 0; i < 2 && status == TN_OK; i++)
            status = put_needed_by(tn_node_block(node, i), operators, plugins);
    }
    return status;
}

/* Adds the operators that only decompositions call, and writes the decompositions. */
static tn_status put_functions(struct writing *w, const tn_state *all, json_t *operators,
                               json_t *plugins)
{
    json_t *functions = json_array();
    tn_status status = functions != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < tn_state_count(all) && status == TN_OK; i++) {
        const char *name = tn_state_name(all, i);
        tn_value value = tn_state_value(all, i);

        if (value.kind == TN_VALUE_INT)
            status = put_needed(name, value.as.i, true, operators, plugins);
        else
            status = append(functions, json_pack("[ss]", name, value.as.s));
    }
    if (status == TN_OK && json_array_size(functions) > 0)
        return put_json(w, SCRIPT_FUNCTIONS, functions);
    json_decref(functions);
    return status;
}

static tn_status put_requires(struct writing *w)
{
    const tn_graph *graphs[] = { tn_script_graph(w->script, false),
                                 tn_script_graph(w->script, true),
                                 tn_script_graph_mixed(w->script) };
    json_t *operators = json_object(), *plugins = json_object();
    tn_state *all = tn_state_new();
    tn_graph *given[3];
    int64_t count = 0;
    tn_status status = operators != NULL && plugins != NULL && all != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int i = 0; i < 3 && status == TN_OK; i++) {
        given[count] = (tn_graph *)(uintptr_t)graphs[i];
        status = put_needed_by(graphs[i], operators, plugins);
        count += graphs[i] != NULL;
    }
    if (status == TN_OK)
        status = tn_graph_operators(given, count, all);
    if (status == TN_OK)
        status = put_functions(w, all, operators, plugins);
    tn_state_drop(all);
    if (status == TN_OK)
        return put_json(w, SCRIPT_REQUIRES,
                        json_pack("{so,so}", "operators", operators, "plugins", plugins));
    json_decref(operators);
    json_decref(plugins);
    return status;
}

static tn_status put_texts(struct writing *w)
{
    const tn_graph *eval = tn_script_graph(w->script, false);
    const tn_graph *train = tn_script_graph(w->script, true);
    const tn_graph *mixed = tn_script_graph_mixed(w->script);
    tn_status status = put_json(
        w, SCRIPT_KEY,
        json_pack("{si,sb,sO*,sO,sO,sO,sO}", "version", SCRIPT_VERSION, "training",
                  tn_module_is_training(w->script), "modes", w->mixed ? w->modes : NULL, "modules",
                  w->modules, "slots", w->slots, "constants", w->constants, "files", w->files));

    if (status == TN_OK && eval == train)
        status = put_graph(w, SCRIPT_GRAPH, eval);
    else if (status == TN_OK && eval != NULL)
        status = put_graph(w, SCRIPT_GRAPH_EVAL, eval);
    if (status == TN_OK && train != NULL && eval != train)
        status = put_graph(w, SCRIPT_GRAPH_TRAIN, train);
    if (status == TN_OK && mixed != NULL)
        status = put_graph(w, SCRIPT_GRAPH_MIXED, mixed);
    return status == TN_OK ? put_requires(w) : status;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static tn_status save_module(const tn_format_def *self, const tn_sink *sink, tn_module *module)
{
    struct writing w = { .script = module,
                         .path = sink->path,
                         .state = tn_state_new(),
                         .modules = json_array(),
                         .slots = json_array(),
                         .constants = json_array(),
                         .files = json_array(),
                         .modes = json_array(),
                         .met = tn_state_new(),
                         .tensors = tn_state_new() };
    tn_status status = w.state != NULL && w.met != NULL && w.tensors != NULL && w.modules != NULL &&
                               w.slots != NULL && w.constants != NULL && w.files != NULL &&
                               w.modes != NULL
                           ? TN_OK
                           : TN_ERR_MEMORY;

    w.to = w.slots;
    if (status == TN_OK && tn_script_files(module) == NULL)
        status = tn_error_prefix("%s: ", sink->path);
    if (status == TN_OK)
        status = put_module(&w, module);
    if (status == TN_OK)
        status = put_constants(&w);
    if (status == TN_OK)
        status = lay_out(&w);
    if (status == TN_OK)
        status = put_places(&w);
    if (status == TN_OK)
        status = put_files(&w);
    if (status == TN_OK)
        status = put_texts(&w);
    if (status == TN_OK)
        status = safetensors_save(self, sink, w.state);
    if (status == TN_ERR_MEMORY) /* JSON records no failure */
        tn_fail(TN_ERR_MEMORY, "%s: script: out of memory", sink->path);
    tn_state_drop(w.met);
    tn_state_drop(w.tensors);
    tn_free(w.storages);
    tn_free(w.storage_of);
    json_decref(w.modules);
    json_decref(w.slots);
    json_decref(w.constants);
    json_decref(w.files);
    json_decref(w.modes);
    tn_state_drop(w.state);
    return status;
}

const tn_format_def format_script = {
    TN_HEAD(tn_format_def),
    .name = "script",
    .help = "modules with their graphs, as safetensors: they run without their layers",
    .extensions = ".script",
    .recognize = script_recognize,
    .load = safetensors_load,
    .flags = TN_FORMAT_TEXTS,
    .load_module = script_load_module,
    .save_module = save_module,
};
