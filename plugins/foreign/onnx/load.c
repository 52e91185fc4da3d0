/* SPDX-License-Identifier: MIT
 *
 * The format "onnx": models of ONNX, which many frameworks write. */
#include "foreign.h"
#include "onnx/onnx.h"

#include <string.h>

enum { HEADER = 20, FIELDS = 1000 }; /* bytes of two varints; fields that decide, at most */

/* Moves *at behind the field of a model that begins there. Returns its number, 0 if none does. */
static uint32_t skip_field(const tn_source *source, uint64_t *at)
{
    const uint32_t varints = 1u << 1 | 1u << 5;
    const uint32_t others = 1u << 2 | 1u << 3 | 1u << 4 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 14 |
                            1u << 20 | 1u << 25 | 1u << 26;
    unsigned char bytes[HEADER];
    const size_t size = source->size - *at < HEADER ? (size_t)(source->size - *at) : HEADER;
    struct wire head = { bytes, bytes + size };
    uint64_t tag, value;

    if (source->read(source->user, *at, bytes, size) != TN_OK ||
        wire_varint(&head, &tag) != TN_OK || wire_varint(&head, &value) != TN_OK || tag >> 3 > 26)
        return 0;
    *at += (uint64_t)(head.at - bytes);
    if ((tag & 7) == WIRE_VARINT)
        return varints >> (tag >> 3) & 1 ? (uint32_t)(tag >> 3) : 0;
    if ((tag & 7) != WIRE_BYTES || !(others >> (tag >> 3) & 1) || value > source->size - *at)
        return 0;
    *at += value;
    return (uint32_t)(tag >> 3);
}

/* A model has nothing but fields that models have, its version among them. Other files can begin
 * with the same bytes, as those of safetensors do. */
static bool recognize(const tn_format_def *self, const tn_source *source)
{
    const uint64_t mark = tn_error_mark();
    uint64_t at = 0;
    uint32_t number = 1;
    bool version = false;

    (void)self;
    for (int fields = 0; fields < FIELDS && at < source->size && number != 0; fields++) {
        number = skip_field(source, &at);
        version = version || number == 1;
    }
    tn_error_restore(mark);
    return version && number != 0;
}

/* Reads the whole file to the host; mapped files are not copied. */
static tn_status open_file(struct onnx_file *file)
{
    const tn_source *source = file->source;
    uint64_t scope = tn_scope_begin();
    tn_status status = tn_device_begin(tn_device_find("cpu"));

    if (status == TN_OK && source->size > INT64_MAX)
        status = tn_fail(TN_ERR_FORMAT, "size: too large, got %llu; expected at most 2^63 - 1",
                         (unsigned long long)source->size);
    if (status == TN_OK) {
        file->bytes = tn_source_tensor(source, 0, TN_U8, TN_SHAPE((int64_t)source->size));
        status = file->bytes != NULL ? TN_OK : tn_error_last_code();
    }
    tn_device_end();
    if (status == TN_OK) {
        tn_tensor_keep(file->bytes);
        file->start = tn_tensor_data(file->bytes);
        status = file->start != NULL ? TN_OK : tn_error_last_code();
    }
    tn_scope_end(scope);
    return status;
}

static tn_status read_program(const tn_source *source, struct program *program)
{
    struct onnx_file *file = tn_calloc(1, sizeof *file);
    tn_status status;

    if (file == NULL)
        return TN_ERR_MEMORY;
    file->source = source;
    file->program = program;
    status = open_file(file);
    if (status == TN_OK)
        status = onnx_model_read(file);
    if (status == TN_OK)
        status = onnx_write_text(file);
    if (status != TN_OK && strncmp(tn_error_text(), source->path, strlen(source->path)) != 0)
        status = tn_error_prefix("%s: onnx: ", source->path);
    names_free(&file->function_names);
    names_free(&file->slots);
    names_free(&file->parts);
    names_free(&file->initializers);
    tn_tensor_drop(file->bytes);
    tn_free(file);
    return status;
}

static struct program *new_program(const tn_source *source)
{
    struct program *program = program_new(source->path);

    if (program != NULL)
        program->rules_of = RULES_ONNX;
    return program;
}

static tn_module *load_module(const tn_format_def *self, const tn_source *source)
{
    struct program *program = new_program(source);
    tn_module *module = NULL;

    (void)self;
    if (program != NULL && read_program(source, program) == TN_OK &&
        program_bind(program) == TN_OK) {
        host_find(program);
        if (segments_divide(program) == TN_OK)
            module = module_make(program);
    }
    program_drop(program);
    return module;
}

/* The tensors, so that a module of another origin can load them, and the texts as metadata. */
static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    struct program *program = new_program(source);
    tn_status status = program != NULL ? read_program(source, program) : TN_ERR_MEMORY;

    (void)self;
    for (int64_t i = 0; status == TN_OK && i < program->n_slots; i++)
        if ((program->slots[i].flags & TN_SLOT_FLAG_NOT_PERSISTENT) == 0)
            status = tn_state_set(state, program->slots[i].path, program->slots[i].tensor);
    for (int64_t i = 0; status == TN_OK && i < tn_state_count(program->files); i++)
        status = tn_state_set_meta(state, tn_state_name(program->files, i),
                                   tn_state_value(program->files, i).as.s);
    program_drop(program);
    return status;
}

const tn_format_def onnx_format = {
    TN_HEAD(tn_format_def), .name = "onnx", .help = "models of ONNX",   .extensions = ".onnx",
    .recognize = recognize, .load = load,   .load_module = load_module, .save_module = onnx_write,
};
