/* SPDX-License-Identifier: MIT
 *
 * The tensors of a `.pt2` file. An archive has a member for each storage, and a table with the
 * storage, dtype, sizes, strides and offset of each tensor: tensors of one storage share their
 * memory, and entries that are equal are one tensor (tied weights). Older files have a file of
 * torch.save in the archive, which the format "pytorch" reads. */
#include "pt2.h"

#include <string.h>

/* ---- one tensor ------------------------------------------------------------------------------ */

const char *pt2_weights_dtype(json_int_t number)
{
    static const char *const names[] = { "",
                                         "uint8",
                                         "int8",
                                         "int16",
                                         "int32",
                                         "int64",
                                         "float16",
                                         "float32",
                                         "float64",
                                         "",
                                         "complex64",
                                         "complex128",
                                         "bool",
                                         "bfloat16",
                                         [28] = "uint16",
                                         [29] = "float8_e4m3fn",
                                         [30] = "float8_e5m2",
                                         [34] = "uint32",
                                         [35] = "uint64" };
    const char *name = number >= 0 && number < (json_int_t)(sizeof names / sizeof *names)
                           ? names[number]
                           : NULL;

    return name != NULL && name[0] != '\0' ? name : NULL;
}

struct description {
    const char *storage;
    tn_dtype dtype;
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS], offset;
    int64_t ndim;
    bool parameter, grad;
};

/* Reads a number of the table, {"as_int": 3}, which must not be negative. */
static bool read_size(const json_t *json, int64_t *out)
{
    const json_t *number = json_object_get(json, "as_int");

    *out = json_integer_value(number);
    return json_is_integer(number) && *out >= 0;
}

static bool read_sizes(const json_t *list, int64_t out[TN_MAX_DIMS], int64_t *count)
{
    *count = (int64_t)json_array_size(list);
    if (!json_is_array(list) || *count > TN_MAX_DIMS)
        return false;
    for (int64_t i = 0; i < *count; i++)
        if (!read_size(json_array_get(list, (size_t)i), &out[i]))
            return false;
    return true;
}

static tn_status wrong(const char *what, const char *expected)
{
    return tn_fail(TN_ERR_FORMAT, "%s: missing or wrong; expected %s", what, expected);
}

static tn_status read_meta(const json_t *meta, struct description *out)
{
    const json_t *dtype = json_object_get(meta, "dtype");
    const char *name = json_is_integer(dtype) ? pt2_weights_dtype(json_integer_value(dtype)) : NULL;
    int64_t strides;

    if (name == NULL)
        return wrong("dtype", "the number of a dtype that Tenon has, too");
    if (json_integer_value(json_object_get(meta, "layout")) != 7)
        return wrong("layout", "7, a tensor with strides");
    if (!read_sizes(json_object_get(meta, "sizes"), out->sizes, &out->ndim) ||
        !read_sizes(json_object_get(meta, "strides"), out->strides, &strides) ||
        strides != out->ndim || !read_size(json_object_get(meta, "storage_offset"), &out->offset))
        return wrong("sizes, strides, storage_offset", "integers from 0, as many strides as sizes");
    out->grad = json_is_true(json_object_get(meta, "requires_grad"));
    return tn_dtype_parse(name, &out->dtype);
}

static tn_status read_entry(const json_t *entry, struct description *out)
{
    const json_t *storage = json_object_get(entry, "path_name");

    memset(out, 0, sizeof *out);
    if (json_is_true(json_object_get(entry, "use_pickle")))
        return tn_fail(TN_ERR_REFUSED,
                       "a pickled object; expected a plain tensor: custom objects and "
                       "subclasses of tensors are not read");
    if (!json_is_string(storage) || json_string_value(storage)[0] == '\0' ||
        strpbrk(json_string_value(storage), "/\\") != NULL ||
        strcmp(json_string_value(storage), "..") == 0)
        return wrong("path_name", "the name of a member without folders");
    out->storage = json_string_value(storage);
    out->parameter = json_is_true(json_object_get(entry, "is_param"));
    return read_meta(json_object_get(entry, "tensor_meta"), out);
}

/* ---- storages -------------------------------------------------------------------------------- */

/* The storages that have been read, and the tensors that have been made, by their description. */
struct reading {
    struct pt2_file *file;
    const char *kind; /* "weights" or "constants" */
    tn_state *storages, *tensors;
    struct names bools; /* storages that have only bytes of 0 and 1 */
};

/* Checks the storage of a tensor of bools, once for all tensors in it. */
static tn_status check_bools(struct reading *r, const char *storage, tn_tensor *bytes)
{
    const unsigned char *at = tn_device_is_host(tn_tensor_device(bytes)) ? tn_tensor_data(bytes)
                                                                         : NULL;
    int64_t count = tn_tensor_numel(bytes);
    const char *name;

    if (names_find(&r->bools, storage) >= 0)
        return TN_OK;
    for (int64_t i = 0; i < count && at != NULL; i++)
        if (at[i] > 1)
            return wrong("bools", "bytes of 0 and 1");
    name = pt2_text(r->file, storage);
    return name != NULL ? names_add(&r->bools, name, 0) : TN_ERR_MEMORY;
}

/* Returns the bytes of a storage. */
static tn_tensor *storage_of(struct reading *r, const char *name)
{
    struct pt2_file *file = r->file;
    const struct zip_member *member;
    struct zip_reader reader;
    tn_tensor *bytes;

    if (tn_state_find(r->storages, name) >= 0)
        return tn_state_get(r->storages, name);
    member = pt2_archive_find(file, "%sdata/%s/%s", file->folder, r->kind, name);
    if (member == NULL || member->size > INT64_MAX) {
        tn_fail(TN_ERR_FORMAT, "storage data/%s/%s: missing", r->kind, name);
        return NULL;
    }
    if (zip_reader_open(&file->zip, member, &reader) != TN_OK)
        return NULL;
    bytes = tn_source_tensor(&reader.source, 0, TN_U8, TN_SHAPE((int64_t)member->size));
    if (zip_reader_close(&reader, bytes != NULL ? TN_OK : tn_error_last_code()) != TN_OK)
        return NULL;
    return tn_state_set(r->storages, name, bytes) == TN_OK ? bytes : NULL;
}

/* A text that two equal descriptions share, in which two different ones differ. */
static void describe(const struct description *d, char *out, size_t size)
{
    size_t length = (size_t)tn_snprint(out, size, "%zu %s %d %lld", strlen(d->storage), d->storage,
                                       (int)d->dtype, (long long)d->offset);

    for (int64_t i = 0; i < d->ndim && length < size; i++)
        length += (size_t)tn_snprint(out + length, size - length, " %lld:%lld",
                                     (long long)d->sizes[i], (long long)d->strides[i]);
}

static tn_tensor *tensor_of(struct reading *r, const struct description *d)
{
    char key[PROGRAM_PATH + 1024];
    tn_tensor *bytes, *tensor;

    describe(d, key, sizeof key);
    if (tn_state_find(r->tensors, key) >= 0)
        return tn_state_get(r->tensors, key);
    bytes = storage_of(r, d->storage);
    if (bytes == NULL || (d->dtype == TN_BOOL && check_bools(r, d->storage, bytes) != TN_OK))
        return NULL;
    tensor = tn_tensor_over(bytes, d->dtype, (tn_ints){ d->sizes, d->ndim }, d->strides, d->offset);
    return tensor != NULL && tn_state_set(r->tensors, key, tensor) == TN_OK ? tensor : NULL;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static tn_status add_slot(struct pt2_file *file, const char *path, tn_tensor *tensor,
                          bool parameter, bool grad)
{
    struct program *program = file->program;
    struct slot *slot = &program->slots[program->n_slots];
    const char *dot = strrchr(path, '.');
    char *above;
    tn_status status;

    if (strlen(path) >= PROGRAM_PATH || names_find(&file->slots, path) >= 0)
        return tn_fail(TN_ERR_FORMAT,
                       "given twice, or a name of %zu bytes; expected once, and less than %d",
                       strlen(path), PROGRAM_PATH);
    slot->path = pt2_text(file, path);
    above = arena_text(&program->arena, path, dot != NULL ? (size_t)(dot - path) : 0);
    if (slot->path == NULL || above == NULL)
        return TN_ERR_MEMORY;
    slot->name = dot != NULL ? slot->path + (dot - path) + 1 : slot->path;
    slot->part = pt2_program_part(file, above);
    slot->parameter = parameter;
    slot->grad = grad;
    if (slot->part < 0)
        return tn_error_last_code();
    status = names_add(&file->slots, slot->path, program->n_slots);
    if (status == TN_OK) {
        slot->tensor = tn_tensor_keep(tensor);
        program->n_slots++;
    }
    return status;
}

static tn_status read_tensor(struct reading *r, const char *path, const json_t *entry)
{
    struct description d;
    uint64_t scope = tn_scope_begin();
    tn_status status = read_entry(entry, &d);
    tn_tensor *tensor;

    if (status == TN_OK) {
        tensor = tensor_of(r, &d);
        status = tensor != NULL ? add_slot(r->file, path, tensor, d.parameter, d.grad)
                                : tn_error_last_code();
    }
    if (status != TN_OK)
        status = tn_error_prefix("tensor %.100s: ", path);
    tn_scope_end(scope);
    return status;
}

/* Makes space for `count` more slots. */
static tn_status reserve(struct pt2_file *file, uint64_t count)
{
    struct program *program = file->program;
    struct slot *more = arena_new(&program->arena, (uint64_t)program->n_slots + count + 1,
                                  sizeof *more);

    if (more == NULL)
        return TN_ERR_MEMORY;
    if (program->n_slots > 0)
        memcpy(more, program->slots, (size_t)program->n_slots * sizeof *more);
    program->slots = more;
    return TN_OK;
}

static tn_status read_table(struct reading *r, const struct zip_member *member)
{
    json_t *json = pt2_archive_json(r->file, member);
    json_t *table = json_object_get(json, "config"), *entry;
    const char *path;
    tn_status status = json == NULL             ? tn_error_last_code()
                       : !json_is_object(table) ? pt2_wrong("config", "an object")
                                                : reserve(r->file, json_object_size(table));

    json_object_foreach(table, path, entry)
    {
        if (status == TN_OK)
            status = read_tensor(r, path, entry);
    }
    json_decref(json);
    return status;
}

/* ---- files of torch.save --------------------------------------------------------------------- */

static tn_status add_state(struct pt2_file *file, const tn_state *state)
{
    tn_status status = reserve(file, (uint64_t)tn_state_count(state));

    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++) {
        tn_value value = tn_state_value(state, i);

        if (value.kind != TN_VALUE_TENSOR)
            return tn_fail(TN_ERR_REFUSED, "constant %.100s: wrong kind, got %s; expected a tensor",
                           tn_state_name(state, i), tn_value_kind_name(value.kind));
        status = add_slot(file, tn_state_name(state, i), value.as.tensor, false, false);
        if (status != TN_OK)
            tn_error_prefix("tensor %.100s: ", tn_state_name(state, i));
    }
    return status;
}

static tn_status read_saved(struct pt2_file *file, const struct zip_member *member)
{
    const tn_format_def *format = (const tn_format_def *)tn_registry_find(TN_KIND_tn_format_def,
                                                                          "pytorch");
    const char *plugin = tn_registry_plugin(TN_KIND_tn_format_def, "pytorch");
    tn_state *state = tn_state_new();
    struct zip_reader reader;
    tn_status status = format == NULL || state == NULL ? tn_error_last_code() : TN_OK;

    if (status == TN_OK && plugin != NULL && plugin[0] != '\0')
        status = tn_plugin_activate(plugin);
    if (status == TN_OK)
        status = zip_reader_open(&file->zip, member, &reader);
    if (status == TN_OK)
        status = zip_reader_close(&reader, format->load(format, &reader.source, state));
    if (status == TN_OK)
        status = add_state(file, state);
    tn_state_drop(state);
    return status;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static tn_status read_kind(struct pt2_file *file, const char *kind, const char *flat)
{
    struct reading r = { .file = file, .kind = kind };
    const struct zip_member *table, *saved;
    tn_status status;

    if (file->layout == PT2_FLAT) {
        saved = pt2_archive_find(file, "serialized_%s.pt", flat);
        /* An empty member stands for an empty state. */
        return saved != NULL && saved->size > 0 ? read_saved(file, saved) : TN_OK;
    }
    table = pt2_archive_find(file, "%sdata/%s/%s_%s_config.json", file->folder, kind, file->model,
                             kind);
    saved = pt2_archive_find(file, "%sdata/%s/%s.pt", file->folder, kind, file->model);
    if (table == NULL)
        return saved != NULL && saved->size > 0 ? read_saved(file, saved) : TN_OK;
    r.storages = tn_state_new();
    r.tensors = tn_state_new();
    status = r.storages != NULL && r.tensors != NULL ? read_table(&r, table) : TN_ERR_MEMORY;
    tn_state_drop(r.storages);
    tn_state_drop(r.tensors);
    names_free(&r.bools);
    return status;
}

tn_status pt2_weights_read(struct pt2_file *file)
{
    tn_status status = read_kind(file, "weights", "state_dict");

    return status == TN_OK ? read_kind(file, "constants", "constants") : status;
}
