/* SPDX-License-Identifier: MIT
 *
 * Writes the program of a module as a `.pt2` file, in the layout of PyTorch from 2.7 on: the
 * program's text as it was read, and the tensors that the module has now. Tied tensors stay tied,
 * and tensors that share a storage still do. */
#include "pt2.h"

#include "export/export.h"

#include <string.h>

#define FOLDER "program/"

/* A tensor of a slot as it is now. */
struct saved {
    const struct slot *slot;
    tn_tensor *tensor; /* owned */
    int64_t storage;   /* the index of the first one with this storage */
    int64_t begin;     /* bytes of the storage before the part that is written */
};

struct writing {
    struct zip_writer zip;
    struct program *program;
    struct saved *at;
    int64_t count;
};

/* ---- members --------------------------------------------------------------------------------- */

struct bytes {
    const void *at;
    size_t size;
};

static tn_status produce(const tn_sink *sink, const void *user)
{
    const struct bytes *bytes = user;

    return bytes->size > 0 ? sink->write(sink->user, bytes->at, bytes->size) : TN_OK;
}

static tn_status add(struct writing *w, const char *name, const void *at, size_t size)
{
    const struct bytes bytes = { at, size };
    char member[PROGRAM_PATH + 100];

    tn_snprint(member, sizeof member, FOLDER "%s", name);
    return zip_writer_add(&w->zip, member, produce, &bytes);
}

static tn_status add_text(struct writing *w, const char *name, const char *text)
{
    return add(w, name, text, strlen(text));
}

/* ---- the tensors of the module --------------------------------------------------------------- */

static bool is_constant(const struct slot *slot)
{
    return (slot->flags & TN_SLOT_FLAG_NOT_PERSISTENT) != 0;
}

/* A module that replaced one of the program does not compute what the program's text says. */
static tn_status check_modules(const struct writing *w, tn_module *root)
{
    for (int64_t i = 1; i < w->program->n_parts; i++) {
        const struct part *part = &w->program->parts[i];
        tn_module *module = tn_module_find(root, part->path);

        if (module == NULL)
            return tn_error_last_code();
        if (programs_part(module) != part)
            return tn_fail(TN_ERR_REFUSED,
                           "%s: pt2: module %.100s: replaced by %s, which the program does not "
                           "have; expected the program's own module: assign other tensors to it, "
                           "or save a script",
                           w->zip.sink->path, part->path, tn_module_type(module));
    }
    return TN_OK;
}

static tn_status collect(struct writing *w, tn_module *root)
{
    w->at = tn_calloc((size_t)w->program->n_slots + 1, sizeof *w->at);
    if (w->at == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < w->program->n_slots; i++) {
        const struct slot *slot = &w->program->slots[i];
        const char *path = w->program->parts[slot->part].path;
        tn_module *module = path[0] != '\0' ? tn_module_find(root, path) : root;
        tn_tensor *tensor = module != NULL ? tn_module_get(module, slot->name) : NULL;
        struct saved *saved = &w->at[w->count];

        if (tensor == NULL)
            return tn_error_last_code();
        if (tensor == TN_NONE)
            return tn_fail(TN_ERR_ATTR,
                           "%s: pt2: tensor %.100s: the slot is empty; expected a tensor",
                           w->zip.sink->path, slot->path);
        *saved = (struct saved){ slot, tn_tensor_keep(tensor), w->count, 0 };
        for (int64_t k = 0; k < w->count && saved->storage == w->count; k++)
            if (w->at[k].storage == k && is_constant(w->at[k].slot) == is_constant(slot) &&
                tn_tensor_shares_storage(w->at[k].tensor, tensor))
                saved->storage = k;
        w->count++;
    }
    return TN_OK;
}

/* ---- storages -------------------------------------------------------------------------------- */

/* The bytes of its storage that a tensor covers. */
static void range_of(const tn_tensor *tensor, int64_t *begin, int64_t *end)
{
    tn_ints shape = tn_tensor_shape(tensor), strides = tn_tensor_strides(tensor);
    int64_t size = (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
    int64_t first = tn_tensor_offset(tensor), last = first;

    for (int64_t i = 0; i < shape.count; i++)
        *(strides.at[i] < 0 ? &first : &last) += (shape.at[i] - 1) * strides.at[i];
    *begin = first * size;
    *end = tn_tensor_numel(tensor) > 0 ? (last + 1) * size : *begin;
}

/* Writes what the tensors of storage `index` cover of it. */
static tn_status write_storage(struct writing *w, int64_t index, const char *name)
{
    int64_t begin = INT64_MAX, end = 0;
    tn_tensor *whole;
    void *bytes;
    tn_status status;

    for (int64_t i = index; i < w->count; i++) {
        int64_t from, to;

        if (w->at[i].storage != index)
            continue;
        range_of(w->at[i].tensor, &from, &to);
        begin = from < begin ? from : begin;
        end = to > end ? to : end;
    }
    begin -= begin % 64; /* a multiple of the size of every dtype */
    end = end > begin ? end : begin;
    for (int64_t i = index; i < w->count; i++)
        if (w->at[i].storage == index)
            w->at[i].begin = begin;
    if (end == begin)
        return add(w, name, NULL, 0);
    bytes = tn_malloc((size_t)(end - begin));
    whole = tn_tensor_over(w->at[index].tensor, TN_U8, TN_SHAPE(end - begin), NULL, begin);
    status = bytes == NULL   ? TN_ERR_MEMORY
             : whole == NULL ? tn_error_last_code()
                             : tn_tensor_copy_out(whole, bytes, (size_t)(end - begin));
    if (status == TN_OK)
        status = add(w, name, bytes, (size_t)(end - begin));
    tn_free(bytes);
    return status;
}

static tn_status write_storages(struct writing *w)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < w->count && status == TN_OK; i++) {
        uint64_t scope = tn_scope_begin();
        char name[80];

        tn_snprint(name, sizeof name,
                   is_constant(w->at[i].slot) ? "data/constants/tensor_%lld"
                                              : "data/weights/weight_%lld",
                   (long long)i);
        if (w->at[i].storage == i)
            status = write_storage(w, i, name);
        tn_scope_end(scope);
    }
    return status;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static int dtype_number(tn_dtype dtype)
{
    for (int i = 0; i < 64; i++) {
        const char *name = pt2_weights_dtype(i);

        if (name != NULL && strcmp(name, tn_dtype_name(dtype)) == 0)
            return i;
    }
    return 0;
}

/* Returns NULL if there is no memory. */
static json_t *sizes_of(tn_ints sizes)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < sizes.count; i++)
        if (json_array_append_new(list, json_pack("{s:I}", "as_int", (json_int_t)sizes.at[i])) !=
            0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* The row of a tensor. Returns NULL if there is no memory, or, with an error, if the format has no
 * such dtype. */
static json_t *entry_of(const struct saved *saved, const char *path)
{
    const tn_tensor *tensor = saved->tensor;
    int64_t size = (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
    int dtype = dtype_number(tn_tensor_dtype(tensor));
    char name[40];

    if (dtype == 0) {
        tn_fail(TN_ERR_TYPE,
                "%s: pt2: tensor %.100s: PyTorch's files have no dtype %s; expected another: "
                "convert the module first",
                path, saved->slot->path, tn_dtype_name(tn_tensor_dtype(tensor)));
        return NULL;
    }
    tn_snprint(name, sizeof name, is_constant(saved->slot) ? "tensor_%lld" : "weight_%lld",
               (long long)saved->storage);
    return json_pack(
        "{s:s, s:b, s:b, s:{s:i, s:o, s:b, s:{s:s, s:n}, s:o, s:{s:I}, s:i}}", "path_name", name,
        "is_param", (int)saved->slot->parameter, "use_pickle", 0, "tensor_meta", "dtype", dtype,
        "sizes", sizes_of(tn_tensor_shape(tensor)), "requires_grad",
        (int)(saved->slot->parameter && tn_tensor_requires_grad(tensor)), "device", "type", "cpu",
        "index", "strides", sizes_of(tn_tensor_strides(tensor)), "storage_offset", "as_int",
        (json_int_t)(tn_tensor_offset(tensor) - saved->begin / size), "layout", 7);
}

static tn_status no_memory(const struct writing *w)
{
    return tn_fail(TN_ERR_MEMORY, "%s: pt2: out of memory", w->zip.sink->path);
}

static tn_status write_table(struct writing *w, bool constants)
{
    const char *name = constants ? "data/constants/model_constants_config.json"
                                 : "data/weights/model_weights_config.json";
    json_t *rows = json_object(), *table = json_pack("{s:o}", "config", rows);
    tn_status status = table != NULL ? TN_OK : no_memory(w);
    char *text = NULL;

    for (int64_t i = 0; i < w->count && status == TN_OK; i++) {
        uint64_t mark = tn_error_mark();
        json_t *entry;

        if (is_constant(w->at[i].slot) != constants)
            continue;
        entry = entry_of(&w->at[i], w->zip.sink->path);
        if (json_object_set_new(rows, w->at[i].slot->path, entry) != 0)
            status = tn_error_mark() != mark ? tn_error_last_code() : no_memory(w);
    }
    if (status == TN_OK)
        text = json_dumps(table, JSON_COMPACT);
    if (status == TN_OK)
        status = text != NULL ? add_text(w, name, text) : no_memory(w);
    json_decref(table);
    free(text);
    return status;
}

/* ---- the archive ----------------------------------------------------------------------------- */

static tn_status write_files(struct writing *w)
{
    const tn_state *files = w->program->files;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_state_count(files) && status == TN_OK; i++) {
        tn_value value = tn_state_value(files, i);
        char name[PROGRAM_PATH];

        if (tn_snprint(name, sizeof name, "extra/%s", tn_state_name(files, i)) >=
            (int64_t)sizeof name)
            status = tn_fail(TN_ERR_VALUE,
                             "%s: pt2: file %.100s...: the name is too long; expected fewer than "
                             "%d bytes",
                             w->zip.sink->path, tn_state_name(files, i), PROGRAM_PATH - 6);
        else if (value.kind == TN_VALUE_STRING)
            status = add_text(w, name, value.as.s);
        else if (value.kind == TN_VALUE_BYTES)
            status = add(w, name, value.as.s, value.count);
        else
            status = tn_fail(TN_ERR_TYPE,
                             "%s: pt2: file %.100s: wrong kind, got %s; expected a text "
                             "or bytes",
                             w->zip.sink->path, tn_state_name(files, i),
                             tn_value_kind_name(value.kind));
    }
    return status;
}

/* PyTorch refuses an archive without a member for examples of inputs; it may be empty. */
static tn_status write_all(struct writing *w, tn_module *module)
{
    tn_status status = check_modules(w, module);

    if (status == TN_OK)
        status = collect(w, module);
    if (status == TN_OK)
        status = add_text(w, "archive_format", "pt2");
    if (status == TN_OK)
        status = add(w, "models/model.json", w->program->text, w->program->text_size);
    if (status == TN_OK)
        status = write_storages(w);
    if (status == TN_OK)
        status = write_table(w, false);
    if (status == TN_OK)
        status = write_table(w, true);
    if (status == TN_OK)
        status = add(w, "data/sample_inputs/model.pt", NULL, 0);
    if (status == TN_OK)
        status = write_files(w);
    if (status == TN_OK)
        status = add_text(w, "archive_version", "0");
    if (status == TN_OK)
        status = add_text(w, "byteorder", "little");
    if (status == TN_OK)
        status = add_text(w, ".data/version", "3\n");
    return status == TN_OK ? zip_writer_finish(&w->zip) : status;
}

static tn_status write_program(const tn_sink *sink, tn_module *module)
{
    struct writing w = { .program = programs_of(module) };
    tn_status status;

    if (w.program != NULL && w.program->rules_of != RULES_ATEN)
        return tn_fail(TN_ERR_TYPE, "%s: pt2: the program of %s; expected one of a .pt2 file",
                       sink->path, w.program->path);
    if (w.program == NULL)
        return tn_error_prefix("%s: pt2: ", sink->path);
    zip_writer_open(&w.zip, sink);
    status = write_all(&w, module);
    for (int64_t i = 0; i < w.count; i++)
        tn_tensor_drop(w.at[i].tensor);
    tn_free(w.at);
    zip_writer_close(&w.zip);
    return status;
}

tn_status pt2_write(const tn_format_def *self, const tn_sink *sink, tn_module *module)
{
    tn_status status;

    (void)self;
    if (!export_is_script(module))
        return write_program(sink, module);
    status = export_pt2(sink, module);
    return status == TN_OK ? TN_OK : tn_error_prefix("%s: pt2: ", sink->path);
}
