/* SPDX-License-Identifier: MIT
 *
 * The format "script": a script (tn_module_script) as a safetensors file. The tensors are there for
 * every reader; the metadata has the rest, as texts:
 *
 *   tenon.script       JSON: modules, slots and constants, files; script.h describes it
 *   tenon.graph        the graph, or tenon.graph.eval and tenon.graph.train
 *   tenon.requires     JSON: the operators with their revisions and plugins
 *
 * "tenon.script" is the first text, so that the first bytes of the file show the format. */
#include "script.h"

#include <string.h>

static const char start[] = "{\"__metadata__\":{\"" SCRIPT_KEY "\":";

bool script_recognize(const tn_format_def *self, const tn_source *source)
{
    char found[sizeof start - 1];

    (void)self;
    return source->size > 8 + sizeof found &&
           source->read(source->user, 8, found, sizeof found) == TN_OK &&
           memcmp(found, start, sizeof found) == 0;
}

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

/* A tensor object of the script, or a module: the path where it was met first. */
struct met {
    const void *object;
    char *path;
};

struct met_list {
    struct met *at;
    int64_t count, capacity;
};

struct writing {
    tn_module *script;
    const char *path; /* of the file */
    tn_state *state;
    json_t *modules, *slots, *constants, *files;
    json_t *to;    /* `slots` or `constants`: where slots are added */
    char at[1024]; /* path of what is being added */
    struct met_list seen_modules, seen_tensors;
    tn_tensor **tensors; /* those of seen_tensors */
    int64_t *flat;       /* number of the storage that is written as a whole; -1: none */
    int64_t n_flat;
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

/* Finds an object, or adds it. *first becomes its path, NULL if it is new. */
static tn_status meet(struct met_list *list, const void *object, const char *path,
                      const char **first)
{
    *first = NULL;
    for (int64_t i = 0; i < list->count; i++)
        if (list->at[i].object == object) {
            *first = list->at[i].path;
            return TN_OK;
        }
    if (list->count == list->capacity) {
        int64_t capacity = 2 * list->capacity + 64;
        struct met *at = tn_realloc(list->at, (size_t)capacity * sizeof *at);

        if (at == NULL)
            return TN_ERR_MEMORY;
        list->at = at;
        list->capacity = capacity;
    }
    list->at[list->count].object = object;
    list->at[list->count].path = tn_strdup(path);
    return list->at[list->count++].path != NULL ? TN_OK : TN_ERR_MEMORY;
}

static void forget(struct met_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        tn_free(list->at[i].path);
    tn_free(list->at);
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

/* Adds a tensor that has the elements [low, high) of a storage. */
static tn_status add_flat(struct writing *w, tn_tensor *like, int64_t low, int64_t high,
                          const char *name)
{
    int64_t count = high - low, one = 1;
    tn_tensor *flat = tn_tensor_as_strided(like, (tn_ints){ &count, 1 }, (tn_ints){ &one, 1 }, low);

    return flat != NULL ? tn_state_set(w->state, name, flat) : tn_error_last_code();
}

/* Decides whether the storage of tensor `first` must be written as a whole, because its tensors are
 * different views of it or one whose elements overlap, and adds it to the state. */
static tn_status lay_out_storage(struct writing *w, int64_t first)
{
    tn_tensor *one = w->tensors[first];
    int64_t low = tn_tensor_offset(one), high = low + extent(one);
    bool whole = !tn_tensor_is_contiguous(one) && extent(one) != tn_tensor_numel(one);
    char name[40];

    for (int64_t i = first + 1; i < w->seen_tensors.count; i++) {
        tn_tensor *other = w->tensors[i];
        int64_t from = tn_tensor_offset(other), end = from + extent(other);

        if (!tn_tensor_shares_storage(one, other))
            continue;
        if (tn_tensor_dtype(one) != tn_tensor_dtype(other))
            return tn_fail(
                TN_ERR_TYPE, "%s: script: %q: wrong dtype, got %s; %q has the same memory as %s",
                w->path, w->seen_tensors.at[i].path, tn_dtype_name(tn_tensor_dtype(other)),
                w->seen_tensors.at[first].path, tn_dtype_name(tn_tensor_dtype(one)));
        whole = whole || !same_view(one, other) || !tn_tensor_is_contiguous(one);
        low = from < low ? from : low;
        high = end > high ? end : high;
    }
    for (int64_t i = first; i < w->seen_tensors.count; i++)
        if (i == first || tn_tensor_shares_storage(one, w->tensors[i]))
            w->flat[i] = whole ? w->n_flat : -1;
    if (!whole)
        return tn_state_set(w->state, w->seen_tensors.at[first].path, one);
    tn_snprint(name, sizeof name, SCRIPT_STORAGES "%lld", (long long)w->n_flat++);
    return add_flat(w, one, low, high, name);
}

static tn_status lay_out(struct writing *w)
{
    int64_t count = w->seen_tensors.count;
    tn_status status;

    w->tensors = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    w->flat = tn_calloc((size_t)count + 1, sizeof *w->flat);
    if (w->tensors == NULL || w->flat == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        w->tensors[i] = (tn_tensor *)(uintptr_t)w->seen_tensors.at[i].object;
        w->flat[i] = -2;
    }
    status = TN_OK;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        if (w->flat[i] == -2)
            status = lay_out_storage(w, i);
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
        status = meet(&w->seen_tensors, what->tensor, w->at, &first);
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
    tn_status status = type != NULL ? meet(&w->seen_modules, module, w->at, &first)
                                    : tn_error_last_code();

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
    return status;
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
static tn_status put_place(struct writing *w, json_t *slot, int64_t i)
{
    tn_tensor *tensor = w->tensors[i];
    char name[40];
    int64_t first = i, low = tn_tensor_offset(tensor);
    tn_status status;

    for (int64_t k = 0; k < w->seen_tensors.count; k++)
        if (tn_tensor_shares_storage(tensor, w->tensors[k])) {
            int64_t from = tn_tensor_offset(w->tensors[k]);

            first = k < first ? k : first;
            low = from < low ? from : low;
        }
    if (w->flat[i] < 0) {
        if (first != i)
            status = set(slot, "data", json_string(w->seen_tensors.at[first].path));
        else
            status = TN_OK;
        return status != TN_OK || tn_tensor_is_contiguous(tensor)
                   ? status
                   : set(slot, "strides", ints(tn_tensor_strides(tensor)));
    }
    tn_snprint(name, sizeof name, SCRIPT_STORAGES "%lld", (long long)w->flat[i]);
    status = set(slot, "data", json_string(name));
    if (status == TN_OK)
        status = set(slot, "offset", json_integer((json_int_t)(tn_tensor_offset(tensor) - low)));
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
            return tn_fail(TN_ERR_TYPE, "%s: script: file %q: wrong kind; expected a text or bytes",
                           w->path, name);
        if (strlen(name) > 900)
            return tn_fail(TN_ERR_VALUE,
                           "%s: script: file: name too long, got %zu bytes; "
                           "expected 900",
                           w->path, strlen(name));
        tn_snprint(path, sizeof path, SCRIPT_FILES "%s", name);
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

/* Adds a row for the operator of a node and, if it is the first one of its plugin, for the plugin.
 */
static tn_status put_needed(const tn_node *node, json_t *operators, json_t *plugins)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));
    const char *id = tn_registry_plugin(TN_KIND_tn_op_def, def->name);
    tn_plugin_report report;
    tn_status status;

    if (json_object_get(operators, def->name) != NULL)
        return TN_OK;
    status = set(operators, def->name,
                 json_pack("[Is]", (json_int_t)def->revision, id != NULL ? id : ""));
    if (status != TN_OK || id == NULL || json_object_get(plugins, id) != NULL)
        return status;
    for (int64_t i = 0; i < tn_plugin_count(); i++)
        if (tn_plugin_report_at(i, &report) == TN_OK && strcmp(report.id, id) == 0)
            return set(plugins, id, json_string(report.version));
    return set(plugins, id, json_string(""));
}

static tn_status put_requires(struct writing *w)
{
    json_t *operators = json_object(), *plugins = json_object();
    tn_status status = operators != NULL && plugins != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int i = 0; i < 2 && status == TN_OK; i++) {
        const tn_graph *graph = tn_script_graph(w->script, i == 1);

        for (const tn_node *node = graph != NULL ? tn_graph_first(graph) : NULL;
             node != NULL && status == TN_OK; node = tn_node_next(node))
            if (tn_node_kind_of(node) == TN_NODE_OP || tn_node_kind_of(node) == TN_NODE_INPLACE)
                status = put_needed(node, operators, plugins);
    }
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
    tn_status status = put_json(w, SCRIPT_KEY,
                                json_pack("{si,sb,sO,sO,sO,sO}", "version", SCRIPT_VERSION,
                                          "training", tn_module_is_training(w->script), "modules",
                                          w->modules, "slots", w->slots, "constants", w->constants,
                                          "files", w->files));

    if (status == TN_OK && eval == train)
        status = put_graph(w, SCRIPT_GRAPH, eval);
    else if (status == TN_OK && eval != NULL)
        status = put_graph(w, SCRIPT_GRAPH_EVAL, eval);
    if (status == TN_OK && train != NULL && eval != train)
        status = put_graph(w, SCRIPT_GRAPH_TRAIN, train);
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
                         .files = json_array() };
    tn_status status = w.state != NULL && w.modules != NULL && w.slots != NULL &&
                               w.constants != NULL && w.files != NULL
                           ? TN_OK
                           : tn_fail(TN_ERR_MEMORY, "%s: script: out of memory", sink->path);

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
    forget(&w.seen_modules);
    forget(&w.seen_tensors);
    tn_free(w.tensors);
    tn_free(w.flat);
    json_decref(w.modules);
    json_decref(w.slots);
    json_decref(w.constants);
    json_decref(w.files);
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
