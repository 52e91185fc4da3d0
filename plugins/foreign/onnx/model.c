/* SPDX-License-Identifier: MIT
 *
 * The model of an ONNX file: its operator sets and functions. */
#include "onnx/onnx.h"

#include <string.h>

enum { TEXT_MOST = 4096 };

const char *onnx_model_text(struct onnx_file *file, struct wire bytes)
{
    size_t length = (size_t)(bytes.end - bytes.at);

    if (length > TEXT_MOST || memchr(bytes.at, '\0', length) != NULL) {
        tn_fail(TN_ERR_FORMAT, "a text of %zu bytes; expected at most %d, and no NUL", length,
                TEXT_MOST);
        return NULL;
    }
    return arena_text(&file->program->arena, (const char *)bytes.at, length);
}

/* ---- operator sets --------------------------------------------------------------------------- */

tn_status onnx_model_import(struct onnx_file *file, struct wire message,
                            struct onnx_imports *imports)
{
    struct wire_field field;
    struct onnx_import import = { "", 0 };
    tn_status status = TN_OK;

    while (status == TN_OK && wire_next(&message, &field, &status)) {
        if (field.number == 1 && field.type == WIRE_BYTES) {
            import.domain = onnx_model_text(file, field.bytes);
            status = import.domain != NULL ? TN_OK : tn_error_last_code();
        } else if (field.number == 2 && field.type == WIRE_VARINT) {
            import.version = (int64_t)field.value;
        }
    }
    if (status != TN_OK)
        return status;
    if (strcmp(import.domain, "ai.onnx") == 0)
        import.domain = "";
    if (imports->count == (int64_t)(sizeof imports->at / sizeof *imports->at))
        return tn_fail(TN_ERR_FORMAT, "opset_import: too many; expected at most %lld",
                       (long long)imports->count);
    if (import.domain[0] == '\0' && (import.version < 1 || import.version > 28))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "opset_import: version %lld of the operators of ONNX; expected 1 to 28",
                       (long long)import.version);
    imports->at[imports->count++] = import;
    return TN_OK;
}

/* ---- functions ------------------------------------------------------------------------------- */

static tn_status read_function(struct onnx_file *file, struct wire message)
{
    struct program *program = file->program;
    struct onnx_function function = { .message = message };
    struct wire_field field;
    const char *name = "", *domain = "";
    char full[2 * TEXT_MOST + 2];
    tn_status status = TN_OK;

    while (status == TN_OK && wire_next(&message, &field, &status)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1)
            name = onnx_model_text(file, field.bytes);
        else if (field.number == 10)
            domain = onnx_model_text(file, field.bytes);
        else if (field.number == 13)
            function.overload = field.bytes.at != field.bytes.end;
        if (name == NULL || domain == NULL)
            return tn_error_last_code();
    }
    if (status != TN_OK)
        return status;
    tn_snprint(full, sizeof full, "%s%s%s", domain, domain[0] != '\0' ? "." : "", name);
    function.name = arena_text(&program->arena, full, strlen(full));
    if (function.name == NULL)
        return TN_ERR_MEMORY;
    if (file->n_functions == file->functions_capacity) {
        int64_t capacity = 2 * file->functions_capacity + 16;
        struct onnx_function *more = arena_new(&program->arena, (uint64_t)capacity, sizeof *more);

        if (more == NULL)
            return TN_ERR_MEMORY;
        if (file->n_functions > 0)
            memcpy(more, file->functions, (size_t)file->n_functions * sizeof *more);
        file->functions = more;
        file->functions_capacity = capacity;
    }
    file->functions[file->n_functions] = function;
    /* Of several overloads the first one is found, and refused when it is called. */
    return names_find(&file->function_names, function.name) >= 0
               ? TN_OK
               : names_add(&file->function_names, function.name, file->n_functions++);
}

/* ---- the model ------------------------------------------------------------------------------- */

static tn_status read_parts(struct onnx_file *file, struct wire *graph)
{
    struct wire model = { file->start, file->start + tn_tensor_numel(file->bytes) };
    struct wire_field field;
    tn_status status = TN_OK;

    while (status == TN_OK && wire_next(&model, &field, &status)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 7 && graph->at != NULL)
            status = tn_fail(TN_ERR_FORMAT, "graph: given twice; expected once");
        else if (field.number == 7)
            *graph = field.bytes;
        else if (field.number == 8)
            status = onnx_model_import(file, field.bytes, &file->imports);
        else if (field.number == 25)
            status = read_function(file, field.bytes);
    }
    if (status == TN_OK && graph->at == NULL)
        status = tn_fail(TN_ERR_FORMAT, "graph: missing; expected a model of ONNX");
    return status;
}

tn_status onnx_model_read(struct onnx_file *file)
{
    struct wire graph = { NULL, NULL };
    tn_status status = read_parts(file, &graph);

    return status == TN_OK ? onnx_graph_read_main(file, graph) : status;
}
