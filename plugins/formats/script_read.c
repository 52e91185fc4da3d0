/* SPDX-License-Identifier: MIT
 *
 * Reads the format "script" (script.h). The file is not trusted: the core checks modules, slots,
 * views and graphs as for a program, and everything else is checked here. */
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

/* More modules than any program has, counted by their paths. */
enum { PATHS = 1 << 20 };

struct reading {
    const tn_source *source;
    tn_state *state;                                 /* tensors and texts of the file */
    tn_state *constants;                             /* of the graphs, by their names */
    tn_state *operators;                             /* revisions, decompositions */
    tn_module *root;                                 /* the tree, without layers */
    json_t *tree;                                    /* "tenon.script" */
    json_t *modules, *slots, *constant_rows, *files; /* borrowed from `tree` */
    json_t *modes;                                   /* of the modules; NULL: all have one */
    int training;
    int64_t paths; /* how many paths modules with several paths may still add */
};

/* An element of "slots" or "constants"; borrowed from the tree. */
struct slot {
    const char *path, *data, *same;
    json_t *strides, *shape;
    json_int_t flags, offset;
    int parameter, grad;
};

static tn_status wrong(const struct reading *r, const char *what, const char *expected)
{
    return tn_fail(TN_ERR_FORMAT, "%s: script: %s: missing or wrong; expected %s", r->source->path,
                   what, expected);
}

static tn_status prefix(const struct reading *r, const char *what, const char *name)
{
    return tn_error_prefix("%s: script: %s %q: ", r->source->path, what, name);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Fails with the message of jansson: a value does not have the form that json_unpack_ex
 * expected. */
static tn_status wrong_form(const struct reading *r, const char *what, const json_error_t *error)
{
    return tn_fail(TN_ERR_FORMAT, "%s: script: %s: %s", r->source->path, what, error->text);
}

static tn_status check_version(struct reading *r)
{
    const json_t *version = json_object_get(r->tree, "version");
    json_error_t error;

    if (!json_is_integer(version) || json_integer_value(version) < 1)
        return wrong(r, "version", "an integer from 1");
    if (json_integer_value(version) > SCRIPT_VERSION)
        return tn_fail(TN_ERR_VERSION,
                       "%s: script: version: newer than is known here, got %lld; expected %d",
                       r->source->path, (long long)json_integer_value(version), SCRIPT_VERSION);
    return json_unpack_ex(r->tree, &error, JSON_STRICT, "{s:o,s:b,s?o,s?o,s?o,s?o,s?o}", "version",
                          &version, "training", &r->training, "modes", &r->modes, "modules",
                          &r->modules, "slots", &r->slots, "constants", &r->constant_rows, "files",
                          &r->files) == 0
               ? TN_OK
               : wrong_form(r, SCRIPT_KEY, &error);
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

/* Counts the modules below a module by their paths, as most functions visit them: there can be
 * exponentially many. Returns false if there are more than *left. */
static bool count_paths(tn_module *module, int64_t *left)
{
    for (int64_t i = 0; i < tn_module_child_count(module); i++) {
        tn_module *child = tn_module_child_at(module, i);

        if (child != NULL && (--*left < 0 || !count_paths(child, left)))
            return false;
    }
    return true;
}

static tn_status too_many_paths(void)
{
    return tn_fail(TN_ERR_FORMAT, "modules: too many paths; expected at most %d", PATHS);
}

/* Adds a module, or with `same` one more path of a module. */
static tn_status add_to_tree(struct reading *r, const char *path, const char *type,
                             const char *same)
{
    const char *name;
    tn_module *holder = holder_of(r, path, &name), *module;
    tn_status status;

    module = holder == NULL ? NULL
             : same != NULL ? tn_module_find(r->root, same)
                            : tn_module_plain(type);
    if (module == NULL)
        return tn_error_last_code();
    if (tn_module_slot_kind(holder, name) != 0)
        status = tn_fail(TN_ERR_FORMAT, "given twice; expected once");
    else if (same != NULL && !count_paths(module, &r->paths))
        status = too_many_paths();
    else
        status = tn_module_add_child(holder, name, module);
    if (same == NULL)
        tn_module_drop(module);
    return status;
}

static tn_status add_module(struct reading *r, json_t *row)
{
    const char *path, *type, *same = NULL;
    bool is_same = json_array_size(row) > 2;
    json_error_t error;
    tn_status status;

    if (json_unpack_ex(row, &error, JSON_STRICT, is_same ? "[sss]" : "[ss]", &path, &type, &same) !=
        0)
        return wrong_form(r, "modules", &error);
    if (r->root != NULL) {
        status = add_to_tree(r, path, type, same);
    } else {
        if (path[0] != '\0' || is_same)
            return wrong(r, "modules", "the root, with an empty path, as the first one");
        r->root = tn_module_plain(type);
        status = r->root != NULL ? TN_OK : tn_error_last_code();
    }
    return status == TN_OK ? TN_OK : prefix(r, "module", path);
}

static tn_status add_modules(struct reading *r)
{
    tn_status status = json_array_size(r->modules) > 0 ? TN_OK : wrong(r, "modules", "a list");
    int64_t left = PATHS;

    r->paths = PATHS;
    for (size_t i = 0; i < json_array_size(r->modules) && status == TN_OK; i++)
        status = add_module(r, json_array_get(r->modules, i));
    if (status == TN_OK && !count_paths(r->root, &left)) {
        too_many_paths();
        status = tn_error_prefix("%s: script: ", r->source->path);
    }
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

/* Returns the tensor of a slot that is not the same as another. `name` is its name in the file,
 * unless the slot has another. */
static tn_tensor *make_tensor(const struct reading *r, const struct slot *slot, const char *name)
{
    int64_t steps[TN_MAX_DIMS], sizes[TN_MAX_DIMS], n_steps = 0, n_sizes = 0;
    tn_tensor *tensor = tn_state_get(r->state, slot->data != NULL ? slot->data : name);
    tn_tensor *made = tensor;

    if (tensor == NULL)
        return NULL;
    if ((slot->shape != NULL) != (slot->offset >= 0) ||
        (slot->shape != NULL && !read_ints(slot->shape, sizes, &n_sizes)) ||
        (slot->strides != NULL && !read_ints(slot->strides, steps, &n_steps)) ||
        (slot->strides == NULL
             ? slot->shape != NULL
             : n_steps != (slot->shape != NULL ? n_sizes : tn_tensor_ndim(tensor)))) {
        tn_fail(TN_ERR_FORMAT, "strides, shape and offset: do not fit together; expected integers "
                               "from 0, shape only with offset, and strides for each dimension");
        return NULL;
    }
    if (slot->shape != NULL)
        made = tn_tensor_as_strided(tensor, (tn_ints){ sizes, n_sizes },
                                    (tn_ints){ steps, n_steps }, slot->offset);
    else if (slot->strides != NULL)
        made = with_strides(tensor, (tn_ints){ steps, n_steps });
    else if (slot->data != NULL) /* the slot with this name has the tensor itself */
        made = tn_tensor_as_strided(tensor, tn_tensor_shape(tensor), tn_tensor_strides(tensor),
                                    tn_tensor_offset(tensor));
    if (made != NULL && slot->parameter)
        return tn_parameter(made, slot->grad != 0);
    return made != NULL && slot->grad && tn_tensor_set_requires_grad(made, true) != TN_OK ? NULL
                                                                                          : made;
}

/* Returns the tensor of a slot: its own, or that of a slot that has been read before. */
static tn_tensor *tensor_of(const struct reading *r, const struct slot *slot, const char *name)
{
    static const char constants[] = SCRIPT_CONSTANTS ".";
    size_t length = sizeof constants - 1;

    if (slot->same == NULL)
        return make_tensor(r, slot, name);
    return strncmp(slot->same, constants, length) == 0
               ? tn_state_get(r->constants, slot->same + length)
               : tn_module_find_tensor(r->root, slot->same);
}

static tn_status add_slot(struct reading *r, const struct slot *slot)
{
    const char *name;
    uint32_t flags = (uint32_t)slot->flags;
    tn_module *holder = holder_of(r, slot->path, &name);
    tn_tensor *tensor = holder != NULL ? tensor_of(r, slot, slot->path) : NULL;
    tn_status status;

    if (tensor == NULL)
        return tn_error_last_code();
    if (tn_module_slot_kind(holder, name) != 0)
        return tn_fail(TN_ERR_FORMAT, "given twice; expected once");
    if (!slot->parameter)
        return tn_module_add_buffer(holder, name, tensor, flags);
    if ((flags & ~(uint32_t)TN_SLOT_FLAG_FIXED_DTYPE) != 0)
        return tn_fail(TN_ERR_FORMAT,
                       "flags: wrong for a parameter, got 0x%x; expected 0 or "
                       "TN_SLOT_FLAG_FIXED_DTYPE (%d)",
                       (unsigned)flags, TN_SLOT_FLAG_FIXED_DTYPE);
    status = tn_module_add_parameter(holder, name, tensor);
    return status == TN_OK && flags != 0 ? tn_module_set_fixed_dtype(holder, name, true) : status;
}

static tn_status add_constant(struct reading *r, const struct slot *slot)
{
    char path[1024];
    tn_tensor *tensor;

    if (strlen(slot->path) + sizeof SCRIPT_CONSTANTS + 1 > sizeof path)
        return tn_fail(TN_ERR_FORMAT, "its name is too long, got %zu bytes; expected at most %zu",
                       strlen(slot->path), sizeof path - sizeof SCRIPT_CONSTANTS - 1);
    if (tn_state_find(r->constants, slot->path) >= 0)
        return tn_fail(TN_ERR_FORMAT, "given twice; expected once");
    tn_snprint(path, sizeof path, SCRIPT_CONSTANTS ".%s", slot->path);
    tensor = tensor_of(r, slot, path);
    return tensor != NULL ? tn_state_set(r->constants, slot->path, tensor) : tn_error_last_code();
}

static tn_status read_slot(const struct reading *r, json_t *row, const char *what,
                           struct slot *slot)
{
    json_error_t error;

    *slot = (struct slot){ .offset = -1 };
    if (json_unpack_ex(row, &error, JSON_STRICT, "{s:s,s?s,s?s,s?o,s?o,s?I,s?I,s?b,s?b}", "path",
                       &slot->path, "data", &slot->data, "same", &slot->same, "strides",
                       &slot->strides, "shape", &slot->shape, "flags", &slot->flags, "offset",
                       &slot->offset, "parameter", &slot->parameter, "grad", &slot->grad) != 0)
        return wrong_form(r, what, &error);
    if (slot->flags >= 0 && slot->flags <= UINT32_MAX)
        return TN_OK;
    tn_fail(TN_ERR_FORMAT, "flags: out of range, got %lld; expected 0 to 0x%x",
            (long long)slot->flags, UINT32_MAX);
    return prefix(r, "slot", slot->path);
}

static tn_status add_slots(struct reading *r, json_t *rows, const char *what,
                           tn_status (*add)(struct reading *, const struct slot *))
{
    tn_status status = json_is_array(rows) ? TN_OK : wrong(r, what, "a list");

    for (size_t i = 0; i < json_array_size(rows) && status == TN_OK; i++) {
        uint64_t scope = tn_scope_begin();
        struct slot slot;

        status = read_slot(r, json_array_get(rows, i), what, &slot);
        if (status == TN_OK && (status = add(r, &slot)) != TN_OK)
            status = prefix(r, "slot", slot.path);
        tn_scope_end(scope);
    }
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static tn_status add_file(const struct reading *r, tn_state *files, json_t *row)
{
    const char *name;
    int text;
    char path[1024], *bytes;
    json_error_t error;
    tn_tensor *tensor;
    int64_t size;
    tn_status status;

    if (json_unpack_ex(row, &error, JSON_STRICT, "[sb]", &name, &text) != 0)
        return wrong_form(r, "files", &error);
    if (strlen(name) > SCRIPT_FILE_NAME)
        return wrong(r, "files", "names of at most 900 bytes");
    if (tn_state_find(files, name) >= 0) {
        tn_fail(TN_ERR_FORMAT, "given twice; expected once");
        return prefix(r, "file", name);
    }
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
    tn_state *files = tn_script_files(script);
    tn_status status = json_is_array(r->files) ? TN_OK : wrong(r, "files", "a list");

    for (size_t i = 0; i < json_array_size(r->files) && status == TN_OK; i++)
        status = add_file(r, files, json_array_get(r->files, i));
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Reads the graphs and makes the script of the tree. */
static tn_module *make_script(const struct reading *r)
{
    static const char *const keys[] = { SCRIPT_GRAPH, SCRIPT_GRAPH_EVAL, SCRIPT_GRAPH_TRAIN,
                                        SCRIPT_GRAPH_MIXED };
    tn_graph *graphs[4];
    int64_t count = 0;
    tn_module *script = NULL;
    tn_status status = TN_OK;

    for (int i = 0; i < 4 && status == TN_OK; i++) {
        const char *text = tn_state_meta(r->state, keys[i]);

        if (text == NULL)
            continue;
        graphs[count] = tn_graph_parse_with(text, r->root, r->constants, r->operators);
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

/* Gives the modules their modes: an outer module comes before the inner ones, because the mode goes
 * to all modules below. */
static tn_status set_modes(const struct reading *r)
{
    int64_t left = 4 * (int64_t)PATHS;
    tn_status status = json_is_array(r->modes) ? TN_OK : wrong(r, "modes", "a list");

    for (size_t i = 0; i < json_array_size(r->modes) && status == TN_OK; i++) {
        const char *path;
        int training;
        json_error_t error;
        tn_module *module;

        if (json_unpack_ex(json_array_get(r->modes, i), &error, JSON_STRICT, "[sb]", &path,
                           &training) != 0)
            return wrong_form(r, "modes", &error);
        module = tn_module_find(r->root, path);
        if (module == NULL)
            return prefix(r, "mode of module", path);
        if (!count_paths(module, &left)) {
            too_many_paths();
            return tn_error_prefix("%s: script: modes: ", r->source->path);
        }
        status = tn_module_train(module, training != 0);
    }
    return status;
}

static tn_status read_tree(struct reading *r)
{
    tn_status status;

    r->tree = script_parse(r->source->path, r->state, SCRIPT_KEY);
    status = r->tree != NULL ? check_version(r) : tn_error_last_code();
    if (status == TN_OK)
        status = script_check_requires(r->source->path, r->state, r->operators);
    if (status == TN_OK)
        status = add_modules(r);
    if (status == TN_OK)
        status = add_slots(r, r->slots, "slots", add_slot);
    if (status == TN_OK)
        status = add_slots(r, r->constant_rows, "constants", add_constant);
    if (status == TN_OK)
        status = tn_module_train(r->root, r->training != 0);
    return status == TN_OK && r->modes != NULL ? set_modes(r) : status;
}

tn_module *script_load_module(const tn_format_def *self, const tn_source *source)
{
    struct reading r = { .source = source,
                         .state = tn_state_new(),
                         .constants = tn_state_new(),
                         .operators = tn_state_new() };
    tn_status status = r.state != NULL && r.constants != NULL && r.operators != NULL
                           ? TN_OK
                           : TN_ERR_MEMORY;
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
    tn_state_drop(r.operators);
    tn_state_drop(r.constants);
    tn_state_drop(r.state);
    return script;
}
