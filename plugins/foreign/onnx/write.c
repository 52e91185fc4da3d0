/* SPDX-License-Identifier: MIT
 *
 * Writing ONNX files. A program keeps the model without the data of its initializers
 * (program->text); a file is that text with the tensors that the module has now. Texts of the user
 * (tn_program_files) are metadata of the model. */
#include "export/export.h"
#include "foreign.h"
#include "onnx/buffer.h"
#include "onnx/onnx.h"

#include <string.h>

enum { TEXT_MOST = 4096 }; /* bytes of a name, at most (model.c) */

/* ---- the text -------------------------------------------------------------------------------- */

/* The number of an initializer by its name, -1: another field. Of several names the last counts,
 * as when the file is read: two initializers never have the same number. */
static int64_t slot_named(const struct names *numbers, struct wire message)
{
    struct wire_field field;
    struct wire found = { NULL, NULL };
    char name[TEXT_MOST + 1];
    size_t length;
    tn_status status = TN_OK;

    while (wire_next(&message, &field, &status))
        if (field.number == 8 && field.type == WIRE_BYTES)
            found = field.bytes;
    length = (size_t)(found.end - found.at);
    if (length == 0 || length > TEXT_MOST)
        return -1;
    memcpy(name, found.at, length);
    name[length] = '\0';
    return names_find(numbers, name);
}

/* The graph without the data of slots: only their names stay. */
static void put_graph(struct buffer *b, const struct onnx_file *file, struct wire graph)
{
    struct buffer stub = { .status = TN_OK };
    struct wire_field field;
    const unsigned char *first = graph.at;
    tn_status status = TN_OK;

    for (; wire_next(&graph, &field, &status); first = graph.at) {
        int64_t slot = field.number == 5 && field.type == WIRE_BYTES
                           ? slot_named(&file->initializers, field.bytes)
                           : -1;

        if (slot < 0) {
            buffer_put(b, first, (size_t)(graph.at - first));
            continue;
        }
        stub.count = 0;
        buffer_bytes(&stub, 8, file->program->slots[slot].source,
                     strlen(file->program->slots[slot].source));
        buffer_bytes(b, 5, stub.at, stub.count);
        if (stub.status != TN_OK)
            b->status = stub.status;
    }
    tn_free(stub.at);
}

/* A text of the metadata, which can be long: the names of a thousand classes. */
static const char *metadata_text(struct onnx_file *file, struct wire bytes)
{
    size_t length = (size_t)(bytes.end - bytes.at);

    if (memchr(bytes.at, '\0', length) == NULL)
        return arena_text(&file->program->arena, (const char *)bytes.at, length);
    tn_fail(TN_ERR_FORMAT, "metadata: a text of %zu bytes with a NUL; expected none", length);
    return NULL;
}

static tn_status read_texts(struct onnx_file *file, struct wire message)
{
    struct wire_field field;
    const char *key = "", *value = "";
    tn_status status = TN_OK;

    while (status == TN_OK && wire_next(&message, &field, &status)) {
        if (field.type != WIRE_BYTES || field.number > 2)
            continue;
        *(field.number == 1 ? &key : &value) = metadata_text(file, field.bytes);
        if (key == NULL || value == NULL)
            return tn_error_last_code();
    }
    if (status != TN_OK || key[0] == '\0' || tn_state_find(file->program->files, key) >= 0)
        return status;
    return tn_state_set_value(file->program->files, key, tn_value_string(value));
}

tn_status onnx_write_text(struct onnx_file *file)
{
    struct wire model = { file->start, file->start + tn_tensor_numel(file->bytes) };
    struct buffer b = { .status = TN_OK }, graph = { .status = TN_OK };
    struct wire_field field;
    const unsigned char *first = model.at;
    tn_status status = TN_OK;

    for (; status == TN_OK && wire_next(&model, &field, &status); first = model.at) {
        if (field.number == 14 && field.type == WIRE_BYTES) {
            status = read_texts(file, field.bytes);
        } else if (field.number == 7 && field.type == WIRE_BYTES) {
            put_graph(&graph, file, field.bytes);
            buffer_bytes(&b, 7, graph.at, graph.count);
        } else {
            buffer_put(&b, first, (size_t)(model.at - first));
        }
    }
    tn_free(graph.at);
    if (status == TN_OK)
        status = graph.status != TN_OK ? graph.status : b.status;
    buffer_put(&b, "", 1);
    if (status != TN_OK || b.status != TN_OK) {
        tn_free(b.at);
        return status != TN_OK ? status : b.status;
    }
    file->program->text = (char *)b.at;
    file->program->text_size = b.count - 1;
    return TN_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A piece of the graph: bytes, and after them the data of a tensor. */
struct piece {
    struct buffer bytes;
    tn_tensor *tensor; /* NULL: none; owned */
};

struct writing {
    const tn_sink *sink;
    const struct program *program;
    tn_module *module;
    struct names sources; /* numbers of slots, by the names of their initializers */
    struct piece *at;
    int64_t count;
    uint64_t total;
};

/* The tensor that the module has for a slot; modules that took the place of another are refused. */
static tn_tensor *tensor_of(const struct writing *w, const struct slot *slot)
{
    const struct part *part = &w->program->parts[slot->part];
    tn_module *module = part->path[0] != '\0' ? tn_module_find(w->module, part->path) : w->module;
    tn_tensor *tensor;

    if (module == NULL)
        return NULL;
    if (programs_part(module) != part) {
        tn_fail(TN_ERR_TYPE, "module %s: another took its place, got %s; expected the program's",
                part->path, tn_module_type(module));
        return NULL;
    }
    tensor = tn_module_get(module, slot->name);
    if (tensor == TN_NONE) {
        tn_fail(TN_ERR_ATTR, "%s: the slot is empty; expected a tensor", slot->path);
        return NULL;
    }
    return tensor;
}

/* The message of a tensor up to its data. */
static tn_status put_tensor(struct writing *w, const struct slot *slot, struct piece *piece)
{
    struct buffer head = { .status = TN_OK };
    tn_tensor *tensor = tensor_of(w, slot);
    uint64_t type = tensor != NULL ? onnx_tensor_type(tn_tensor_dtype(tensor)) : 0, bytes;

    if (tensor == NULL)
        return tn_error_last_code();
    if (type == 0)
        return tn_fail(TN_ERR_TYPE, "%s: wrong dtype, got %s; expected one that ONNX has",
                       slot->path, tn_dtype_name(tn_tensor_dtype(tensor)));
    bytes = (uint64_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    for (int64_t i = 0; i < tn_tensor_ndim(tensor); i++)
        buffer_int(&head, 1, (uint64_t)tn_tensor_size(tensor, i));
    buffer_int(&head, 2, type);
    buffer_bytes(&head, 8, slot->source, strlen(slot->source));
    buffer_number(&head, 9 << 3 | WIRE_BYTES);
    buffer_number(&head, bytes);
    buffer_number(&piece->bytes, 5 << 3 | WIRE_BYTES);
    buffer_number(&piece->bytes, head.count + bytes);
    buffer_put(&piece->bytes, head.at, head.count);
    tn_free(head.at);
    piece->tensor = tn_tensor_keep(tensor);
    w->total += bytes;
    return head.status;
}

/* Cuts the graph into pieces, each of which ends with a tensor. */
static tn_status cut_graph(struct writing *w, struct wire graph)
{
    struct wire_field field;
    const unsigned char *first = graph.at;
    tn_status status = TN_OK;

    for (; status == TN_OK && wire_next(&graph, &field, &status); first = graph.at) {
        int64_t slot = field.number == 5 && field.type == WIRE_BYTES
                           ? slot_named(&w->sources, field.bytes)
                           : -1;

        if (slot < 0)
            buffer_put(&w->at[w->count].bytes, first, (size_t)(graph.at - first));
        else if (w->count == w->program->n_slots)
            status = tn_fail(TN_ERR_FORMAT, "graph: initializers given twice; expected once");
        else
            status = put_tensor(w, &w->program->slots[slot], &w->at[w->count++]);
    }
    for (int64_t i = 0; i <= w->count && status == TN_OK; i++) {
        w->total += w->at[i].bytes.count;
        status = w->at[i].bytes.status;
    }
    return status == TN_OK && w->total > INT32_MAX
               ? tn_fail(TN_ERR_VALUE, "the model has %llu bytes; expected less than 2^31",
                         (unsigned long long)w->total)
               : status;
}

static tn_status send(const struct writing *w, const void *from, size_t count)
{
    return count > 0 ? w->sink->write(w->sink->user, from, count) : TN_OK;
}

static tn_status send_tensor(const struct writing *w, tn_tensor *tensor)
{
    size_t bytes = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    void *data = tn_malloc(bytes + 1);
    tn_status status = data != NULL ? tn_tensor_copy_out(tensor, data, bytes) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = send(w, data, bytes);
    tn_free(data);
    return status;
}

static tn_status send_graph(const struct writing *w)
{
    struct buffer key = { .status = TN_OK };
    tn_status status;

    buffer_number(&key, 7 << 3 | WIRE_BYTES);
    buffer_number(&key, w->total);
    status = key.status == TN_OK ? send(w, key.at, key.count) : key.status;
    tn_free(key.at);
    for (int64_t i = 0; i <= w->count && status == TN_OK; i++) {
        status = send(w, w->at[i].bytes.at, w->at[i].bytes.count);
        if (status == TN_OK && w->at[i].tensor != NULL)
            status = send_tensor(w, w->at[i].tensor);
    }
    return status;
}

static tn_status send_texts(const struct writing *w)
{
    struct buffer all = { .status = TN_OK }, entry = { .status = TN_OK };
    const tn_state *files = w->program->files;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_state_count(files) && status == TN_OK; i++) {
        tn_value value = tn_state_value(files, i);
        const char *name = tn_state_name(files, i);

        if (value.kind != TN_VALUE_STRING) {
            status = tn_fail(TN_ERR_TYPE, "file %.100s: wrong kind, got %s; expected a text", name,
                             tn_value_kind_name(value.kind));
            continue;
        }
        entry.count = 0;
        buffer_bytes(&entry, 1, name, strlen(name));
        buffer_bytes(&entry, 2, value.as.s, strlen(value.as.s));
        buffer_bytes(&all, 14, entry.at, entry.count);
    }
    if (status == TN_OK)
        status = entry.status != TN_OK ? entry.status : all.status;
    if (status == TN_OK)
        status = send(w, all.at, all.count);
    tn_free(entry.at);
    tn_free(all.at);
    return status;
}

static tn_status write_model(struct writing *w)
{
    const unsigned char *text = (const unsigned char *)w->program->text;
    struct wire model = { text, text + w->program->text_size };
    struct wire_field field;
    const unsigned char *first = model.at;
    tn_status status = TN_OK;

    w->at = tn_calloc((size_t)w->program->n_slots + 2, sizeof *w->at);
    if (w->at == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < w->program->n_slots && status == TN_OK; i++)
        if (w->program->slots[i].source != NULL)
            status = names_add(&w->sources, w->program->slots[i].source, i);
    for (; status == TN_OK && wire_next(&model, &field, &status); first = model.at) {
        if (field.number == 7 && field.type == WIRE_BYTES) {
            status = cut_graph(w, field.bytes);
            if (status == TN_OK)
                status = send_graph(w);
        } else {
            status = send(w, first, (size_t)(model.at - first));
        }
    }
    return status == TN_OK ? send_texts(w) : status;
}

static tn_status write_program(const tn_sink *sink, tn_module *module)
{
    struct writing w = { .sink = sink, .module = module, .program = programs_of(module) };
    tn_status status = w.program != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && w.program->rules_of != RULES_ONNX)
        status = tn_fail(TN_ERR_TYPE,
                         "the program of %s; expected one of an .onnx file: make a "
                         "script of it first",
                         w.program->path);
    if (status == TN_OK && w.program->beside)
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                         "%s: constants, or initializers of inner graphs, have their data in other "
                         "files; expected them in the model",
                         w.program->path);
    if (status == TN_OK)
        status = write_model(&w);
    for (int64_t i = 0; i <= w.count && w.at != NULL; i++) {
        tn_free(w.at[i].bytes.at);
        tn_tensor_drop(w.at[i].tensor);
    }
    tn_free(w.at);
    names_free(&w.sources);
    return status;
}

tn_status onnx_write(const tn_format_def *self, const tn_sink *sink, tn_module *module)
{
    tn_status status = export_is_script(module) ? export_onnx(sink, module)
                                                : write_program(sink, module);

    (void)self;
    return status == TN_OK ? TN_OK : tn_error_prefix("%s: onnx: ", sink->path);
}
