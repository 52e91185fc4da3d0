/* SPDX-License-Identifier: MIT
 *
 * Reads the format "script" (script.h). The file is not trusted: the core checks modules, slots,
 * views and graphs as for a program, and everything else is checked here. */
#include "script.h"

#include <string.h>

struct reading {
    const tn_source *source;
    tn_state *state;     /* tensors and texts of the file */
    tn_state *constants; /* of the graphs, by their names */
    tn_module *root;     /* the tree, without layers */
    json_t *tree;        /* "tenon.script" */
};

static tn_status wrong(const struct reading *r, const char *what, const char *expected)
{
    return tn_fail(TN_ERR_FORMAT, "%s: script: %s: missing or wrong type; expected %s",
                   r->source->path, what, expected);
}

static tn_status prefix(const struct reading *r, const char *what, const char *name)
{
    return tn_error_prefix("%s: script: %s %q: ", r->source->path, what, name);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Parses a text of the metadata. Returns NULL and sets the error on failure; the caller drops it.
 */
static json_t *parse(const struct reading *r, const char *key)
{
    const char *text = tn_state_meta(r->state, key);
    json_error_t error;
    json_t *value = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL;

    if (text == NULL)
        wrong(r, key, "a text in the metadata");
    else if (value == NULL)
        tn_fail(TN_ERR_FORMAT, "%s: script: %s: byte %d: %s", r->source->path, key, error.position,
                error.text);
    return value;
}

static tn_status check_version(const struct reading *r)
{
    const json_t *version = json_object_get(r->tree, "version");

    if (!json_is_integer(version) || json_integer_value(version) < 1)
        return wrong(r, "version", "an integer from 1");
    if (json_integer_value(version) > SCRIPT_VERSION)
        return tn_fail(TN_ERR_VERSION,
                       "%s: script: version: newer than is known here, got %lld; expected %d",
                       r->source->path, (long long)json_integer_value(version), SCRIPT_VERSION);
    return TN_OK;
}

/* ---- operators ------------------------------------------------------------------------------- */

static tn_status check_operator(const struct reading *r, const char *name, const json_t *row,
                                const json_t *plugins)
{
    const json_t *revision = json_array_get(row, 0);
    const char *plugin = json_string_value(json_array_get(row, 1)), *version;
    uint64_t mark = tn_error_mark();
    const tn_op *op;
    long long have;

    if (!json_is_integer(revision) || plugin == NULL)
        return wrong(r, "operators", "a revision and a plugin for each");
    version = json_string_value(json_object_get(plugins, plugin));
    op = tn_op_find(name, 0);
    if (op == NULL) {
        tn_error_restore(mark);
        return tn_fail(TN_ERR_KEY,
                       "%s: script: operator %q: no plugin provides it; expected plugin %q%s%s, "
                       "which had it when the script was saved (tenon plugins lists those that "
                       "were found)",
                       r->source->path, name, plugin, version != NULL ? " " : "",
                       version != NULL ? version : "");
    }
    have = (long long)tn_op_definition(op)->revision;
    if (have == json_integer_value(revision))
        return TN_OK;
    return tn_fail(TN_ERR_VERSION,
                   "%s: script: operator %q: wrong revision, got %lld; expected %lld, of plugin %q",
                   r->source->path, name, have, (long long)json_integer_value(revision), plugin);
}

/* Checks the operators before the graphs are read, to name the plugin of one that is missing. */
static tn_status check_requires(const struct reading *r)
{
    json_t *all = parse(r, SCRIPT_REQUIRES), *row;
    const json_t *plugins = json_object_get(all, "plugins");
    json_t *operators = json_object_get(all, "operators");
    tn_status status = all != NULL ? TN_OK : tn_error_last_code();
    const char *name;

    if (status == TN_OK && !json_is_object(operators))
        status = wrong(r, SCRIPT_REQUIRES, "an object with operators");
    if (status == TN_OK)
        json_object_foreach(operators, name, row)
        {
            status = check_operator(r, name, row, plugins);
            if (status != TN_OK)
                break;
        }
    json_decref(all);
    return status;
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Finds the module that has the last part of a path; *name becomes that part. */
static tn_module *holder_of(const struct reading *r, const char *path, const char **name)
{
    const char *dot = strrchr(path, '.');
    char *above;
    tn_module *module;

    *name = dot != NULL ? dot + 1 : path;
    if (dot == NULL)
        return r->root;
    above = tn_strdup(path);
    if (above == NULL)
        return NULL;
    above[dot - path] = '\0';
    module = tn_module_find(r->root, above);
    tn_free(above);
    return module;
}

static tn_status add_module(struct reading *r, const json_t *row)
{
    const char *path = json_string_value(json_array_get(row, 0)), *name;
    const char *type = json_string_value(json_array_get(row, 1));
    const char *same = json_string_value(json_array_get(row, 2));
    tn_module *holder, *module;
    tn_status status;

    if (path == NULL || type == NULL)
        return wrong(r, "modules", "a path and a type for each");
    if (r->root == NULL) {
        if (path[0] != '\0')
            return wrong(r, "modules", "the root, with an empty path, as the first one");
        r->root = tn_module_plain(type);
        return r->root != NULL ? TN_OK : prefix(r, "module", path);
    }
    holder = holder_of(r, path, &name);
    module = holder == NULL ? NULL
             : same != NULL ? tn_module_find(r->root, same)
                            : tn_module_plain(type);
    if (module == NULL)
        return prefix(r, "module", path);
    if (tn_module_slot_kind(holder, name) != 0)
        status = tn_fail(TN_ERR_FORMAT, "there are two");
    else
        status = tn_module_add_child(holder, name, module);
    if (same == NULL)
        tn_module_drop(module);
    return status == TN_OK ? TN_OK : prefix(r, "module", path);
}

static tn_status add_modules(struct reading *r)
{
    const json_t *rows = json_object_get(r->tree, "modules");
    tn_status status = json_array_size(rows) > 0 ? TN_OK : wrong(r, "modules", "a list");

    for (size_t i = 0; i < json_array_size(rows) && status == TN_OK; i++)
        status = add_module(r, json_array_get(rows, i));
    return status;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static bool read_ints(const json_t *list, int64_t out[TN_MAX_DIMS], int64_t *count)
{
    *count = (int64_t)json_array_size(list);
    if (!json_is_array(list) || *count > TN_MAX_DIMS)
        return false;
    for (int64_t i = 0; i < *count; i++) {
        const json_t *value = json_array_get(list, (size_t)i);

        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return false;
        out[i] = json_integer_value(value);
    }
    return true;
}

/* Copies a tensor to memory of its own with these strides, which must leave no gaps. */
static tn_tensor *with_strides(tn_tensor *tensor, tn_ints strides)
{
    int64_t count = tn_tensor_numel(tensor);
    size_t size = (size_t)count * tn_dtype_size(tn_tensor_dtype(tensor));
    tn_tensor *memory = tn_tensor_empty((tn_ints){ &count, 1 }, tn_tensor_dtype(tensor),
                                        tn_tensor_device(tensor));
    tn_tensor *made = memory != NULL
                          ? tn_tensor_as_strided(memory, tn_tensor_shape(tensor), strides, 0)
                          : NULL;
    void *values = made != NULL ? tn_malloc(size + 1) : NULL;
    bool done = values != NULL && tn_tensor_copy_out(tensor, values, size) == TN_OK &&
                tn_tensor_copy_in(made, values, size) == TN_OK;

    tn_free(values);
    return done ? made : NULL;
}

/* Returns the tensor of a slot that is not the same as another. */
static tn_tensor *make_tensor(const struct reading *r, const json_t *slot, const char *name)
{
    const char *data = json_string_value(json_object_get(slot, "data"));
    const json_t *strides = json_object_get(slot, "strides");
    const json_t *shape = json_object_get(slot, "shape");
    const json_t *offset = json_object_get(slot, "offset");
    int64_t steps[TN_MAX_DIMS], sizes[TN_MAX_DIMS], n_steps = 0, n_sizes = 0;
    tn_tensor *tensor = tn_state_get(r->state, data != NULL ? data : name);

    if (tensor == NULL || (strides == NULL && shape == NULL && offset == NULL))
        return tensor;
    if (!read_ints(strides, steps, &n_steps) ||
        (shape != NULL && (!read_ints(shape, sizes, &n_sizes) || n_sizes != n_steps ||
                           !json_is_integer(offset) || json_integer_value(offset) < 0)) ||
        (shape == NULL && n_steps != tn_tensor_shape(tensor).count)) {
        wrong(r, "strides, shape and offset", "integers from 0, strides for each dimension");
        return NULL;
    }
    if (shape != NULL)
        return tn_tensor_as_strided(tensor, (tn_ints){ sizes, n_sizes },
                                    (tn_ints){ steps, n_steps }, json_integer_value(offset));
    return with_strides(tensor, (tn_ints){ steps, n_steps });
}

/* Returns the tensor of another slot, which has been read before. */
static tn_tensor *find_tensor(const struct reading *r, const char *path)
{
    static const char constants[] = SCRIPT_CONSTANTS ".";
    size_t length = sizeof constants - 1;

    return strncmp(path, constants, length) == 0 ? tn_state_get(r->constants, path + length)
                                                 : tn_module_find_tensor(r->root, path);
}

static tn_status add_slot(struct reading *r, const json_t *slot, const char *path)
{
    const char *same = json_string_value(json_object_get(slot, "same")), *name;
    const json_t *flags = json_object_get(slot, "flags");
    bool parameter = json_is_true(json_object_get(slot, "parameter"));
    bool grad = json_is_true(json_object_get(slot, "grad"));
    uint32_t bits = json_is_integer(flags) ? (uint32_t)json_integer_value(flags) : 0;
    tn_module *holder = holder_of(r, path, &name);
    tn_tensor *tensor = holder == NULL ? NULL
                        : same != NULL ? find_tensor(r, same)
                                       : make_tensor(r, slot, path);
    tn_status status;

    if (tensor != NULL && same == NULL && parameter)
        tensor = tn_parameter(tensor, grad);
    if (tensor == NULL)
        return tn_error_last_code();
    if (tn_module_slot_kind(holder, name) != 0)
        return tn_fail(TN_ERR_FORMAT, "there are two");
    if (!parameter && same == NULL && grad &&
        (status = tn_tensor_set_requires_grad(tensor, true)) != TN_OK)
        return status;
    status = parameter ? tn_module_add_parameter(holder, name, tensor)
                       : tn_module_add_buffer(holder, name, tensor, bits);
    if (status == TN_OK && parameter && (bits & TN_SLOT_FIXED_DTYPE) != 0)
        status = tn_module_set_fixed_dtype(holder, name, true);
    return status;
}

static tn_status add_constant(struct reading *r, const json_t *slot, const char *name)
{
    const char *same = json_string_value(json_object_get(slot, "same"));
    char path[1024];
    tn_tensor *tensor;

    tn_snprint(path, sizeof path, SCRIPT_CONSTANTS ".%s", name);
    tensor = same != NULL ? find_tensor(r, same) : make_tensor(r, slot, path);
    return tensor != NULL ? tn_state_set(r->constants, name, tensor) : tn_error_last_code();
}

static tn_status add_slots(struct reading *r, const char *key,
                           tn_status (*add)(struct reading *, const json_t *, const char *))
{
    const json_t *rows = json_object_get(r->tree, key);
    tn_status status = json_is_array(rows) ? TN_OK : wrong(r, key, "a list");

    for (size_t i = 0; i < json_array_size(rows) && status == TN_OK; i++) {
        const json_t *slot = json_array_get(rows, i);
        const char *path = json_string_value(json_object_get(slot, "path"));
        uint64_t scope = tn_scope_begin();

        status = path != NULL ? add(r, slot, path) : wrong(r, key, "a path for each slot");
        tn_scope_end(scope);
        if (status != TN_OK && path != NULL)
            status = prefix(r, "slot", path);
    }
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static tn_status add_file(const struct reading *r, tn_state *files, const json_t *row)
{
    const char *name = json_string_value(json_array_get(row, 0));
    bool text = json_is_true(json_array_get(row, 1));
    char path[1024], *bytes;
    tn_tensor *tensor;
    int64_t size;
    tn_status status;

    if (name == NULL)
        return wrong(r, "files", "a name for each");
    tn_snprint(path, sizeof path, SCRIPT_FILES "%s", name);
    tensor = tn_state_get(r->state, path);
    if (tensor == NULL)
        return prefix(r, "file", name);
    size = tn_tensor_numel(tensor);
    if (tn_tensor_dtype(tensor) != TN_U8 || (!text && size > UINT32_MAX))
        return wrong(r, path, "bytes");
    bytes = tn_malloc((size_t)size + 1);
    if (bytes == NULL)
        return TN_ERR_MEMORY;
    bytes[size] = '\0';
    status = tn_tensor_copy_out(tensor, bytes, (size_t)size);
    if (status == TN_OK && text && strlen(bytes) != (size_t)size)
        status = wrong(r, path, "a text");
    if (status == TN_OK)
        status = tn_state_set_value(
            files, name, text ? tn_value_string(bytes) : tn_value_bytes(bytes, (uint32_t)size));
    tn_free(bytes);
    return status;
}

static tn_status add_files(const struct reading *r, const tn_module *script)
{
    const json_t *rows = json_object_get(r->tree, "files");
    tn_state *files = tn_script_files(script);
    tn_status status = json_is_array(rows) ? TN_OK : wrong(r, "files", "a list");

    for (size_t i = 0; i < json_array_size(rows) && status == TN_OK; i++)
        status = add_file(r, files, json_array_get(rows, i));
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Reads the graphs and makes the script of the tree. */
static tn_module *make_script(const struct reading *r)
{
    static const char *const keys[] = { SCRIPT_GRAPH, SCRIPT_GRAPH_EVAL, SCRIPT_GRAPH_TRAIN };
    tn_graph *graphs[3];
    int64_t count = 0;
    tn_module *script = NULL;
    tn_status status = TN_OK;

    for (int i = 0; i < 3 && status == TN_OK; i++) {
        const char *text = tn_state_meta(r->state, keys[i]);

        if (text == NULL)
            continue;
        graphs[count] = tn_graph_parse(text, r->root, r->constants);
        if (graphs[count] != NULL)
            count++;
        else
            status = tn_error_prefix("%s: script: %s: ", r->source->path, keys[i]);
    }
    if (status == TN_OK && count == 0)
        status = wrong(r, SCRIPT_GRAPH, "a text in the metadata");
    if (status == TN_OK) {
        script = tn_script_new(r->root, graphs, count);
        if (script == NULL)
            tn_error_prefix("%s: ", r->source->path);
    }
    for (int64_t i = 0; i < count; i++)
        tn_graph_drop(graphs[i]);
    return script;
}

static tn_status read_tree(struct reading *r)
{
    tn_status status;

    r->tree = parse(r, SCRIPT_KEY);
    status = r->tree != NULL ? check_version(r) : tn_error_last_code();
    if (status == TN_OK)
        status = check_requires(r);
    if (status == TN_OK)
        status = add_modules(r);
    if (status == TN_OK)
        status = add_slots(r, "slots", add_slot);
    if (status == TN_OK)
        status = add_slots(r, "constants", add_constant);
    return status == TN_OK
               ? tn_module_train(r->root, json_is_true(json_object_get(r->tree, "training")))
               : status;
}

tn_module *script_load_module(const tn_format_def *self, const tn_source *source)
{
    struct reading r = { .source = source, .state = tn_state_new(), .constants = tn_state_new() };
    tn_status status = r.state != NULL && r.constants != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_module *script = NULL;

    if (status == TN_OK)
        status = safetensors_load(self, source, r.state);
    if (status == TN_OK)
        status = read_tree(&r);
    if (status == TN_OK)
        script = make_script(&r);
    if (script != NULL && add_files(&r, script) != TN_OK) {
        tn_module_drop(script);
        script = NULL;
    }
    if (r.root != NULL)
        tn_module_drop(r.root);
    json_decref(r.tree);
    tn_state_drop(r.constants);
    tn_state_drop(r.state);
    return script;
}
