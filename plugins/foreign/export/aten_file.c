/* SPDX-License-Identifier: MIT
 *
 * The archive of a program that is written (aten.h), as torch.export.load reads it. */
#include "export/aten.h"
#include "pt2.h"

#include <stdlib.h>
#include <string.h>

#define FOLDER "program/"

struct bytes {
    const void *at;
    size_t size;
};

static tn_status produce(const tn_sink *sink, const void *user)
{
    const struct bytes *bytes = user;

    return bytes->size > 0 ? sink->write(sink->user, bytes->at, bytes->size) : TN_OK;
}

static tn_status add(struct zip_writer *zip, const char *name, const void *at, size_t size)
{
    const struct bytes bytes = { at, size };
    char member[700];

    tn_snprint(member, sizeof member, FOLDER "%s", name);
    return zip_writer_add(zip, member, produce, &bytes);
}

static tn_status add_json(struct zip_writer *zip, const char *name, json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    tn_status status = text != NULL ? add(zip, name, text, strlen(text)) : TN_ERR_MEMORY;

    free(text);
    json_decref(json);
    return status;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* The form of arguments or results as PyTorch writes it: a text with JSON. */
static json_t *form(int64_t count, bool arguments)
{
    static const char leaf[] = "{\"type\":null,\"context\":null,\"children_spec\":[]}";
    size_t room = 400 + (size_t)count * (sizeof leaf + 1);
    char *text = tn_malloc(room);
    json_t *json;

    if (text == NULL)
        return NULL;
    tn_snprint(text, room, "[1,");
    if (arguments)
        tn_snprint(text + strlen(text), room - strlen(text),
                   "{\"type\":\"builtins.tuple\",\"context\":\"null\",\"children_spec\":[");
    if (arguments || count != 1)
        tn_snprint(text + strlen(text), room - strlen(text),
                   "{\"type\":\"builtins.tuple\",\"context\":\"null\",\"children_spec\":[");
    for (int64_t i = 0; i < count; i++)
        tn_snprint(text + strlen(text), room - strlen(text), "%s%s", i > 0 ? "," : "", leaf);
    if (arguments || count != 1)
        tn_snprint(text + strlen(text), room - strlen(text), "]}");
    if (arguments)
        tn_snprint(text + strlen(text), room - strlen(text),
                   ",{\"type\":\"builtins.dict\",\"context\":\"[]\",\"children_spec\":[]}]}");
    tn_snprint(text + strlen(text), room - strlen(text), "]");
    json = json_string(text);
    tn_free(text);
    return json;
}

static json_t *ranges(const struct aten_model *m)
{
    json_t *all = json_object();
    char name[24];

    for (int32_t i = 0; i < m->graph.n_symbols; i++) {
        tn_snprint(name, sizeof name, "s%d", (int)i);
        if (json_object_set_new(all, name,
                                json_pack("{s:I, s:n}", "min_val",
                                          (json_int_t)m->graph.symbols[i].least, "max_val")) != 0)
            return NULL;
    }
    return all;
}

static json_t *program_of(const struct aten_model *m)
{
    json_t *graph = json_pack(
        "{s:O, s:O, s:O, s:O, s:O, s:{}, s:b, s:{}, s:{}}", "inputs", m->inputs, "outputs",
        m->outputs, "nodes", m->nodes, "tensor_values", m->tensors, "sym_int_values", m->sizes,
        "sym_bool_values", "is_single_tensor_return", 0, "custom_obj_values", "sym_float_values");
    json_t *signature = json_pack("{s:O, s:O}", "input_specs", m->input_specs, "output_specs",
                                  m->output_specs);
    json_t *call = json_pack(
        "{s:s, s:{s:[], s:[], s:o, s:o, s:O}}", "fqn", "", "signature", "inputs", "outputs",
        "in_spec", form((int64_t)json_array_size(m->names), true), "out_spec",
        form((int64_t)json_array_size(m->outputs), false), "forward_arg_names", m->names);
    json_t *module = json_pack("{s:o, s:o, s:[o], s:{}, s:{}}", "graph", graph, "signature",
                               signature, "module_call_graph", call, "metadata",
                               "treespec_namedtuple_fields");

    return json_pack("{s:o, s:{s:i}, s:o, s:{s:i, s:i}, s:[s], s:s, s:[]}", "graph_module", module,
                     "opset_version", "aten", 10, "range_constraints", ranges(m), "schema_version",
                     "major", 8, "minor", 8, "verifiers", "TRAINING", "torch_version", "tenon",
                     "guards_code");
}

/* ---- tensors --------------------------------------------------------------------------------- */

static tn_status add_tensor(struct zip_writer *zip, const struct aten_slot *slot)
{
    size_t bytes = (size_t)tn_tensor_numel(slot->tensor) *
                   tn_dtype_size(tn_tensor_dtype(slot->tensor));
    void *data = tn_malloc(bytes + 1);
    char name[100];
    tn_status status = data != NULL ? tn_tensor_copy_out(slot->tensor, data, bytes) : TN_ERR_MEMORY;

    tn_snprint(name, sizeof name, "data/%s/%s", slot->persistent ? "weights" : "constants",
               slot->member);
    if (status == TN_OK)
        status = add(zip, name, data, bytes);
    tn_free(data);
    return status;
}

/* Tied tensors have one member. */
static tn_status add_tensors(struct aten_model *m, struct zip_writer *zip)
{
    tn_status status = TN_OK;
    int64_t count = 0;
    char name[40];

    for (struct aten_slot *slot = m->slots; slot != NULL && status == TN_OK; slot = slot->next) {
        const struct aten_slot *first = m->slots;

        while (first->tensor != slot->tensor || first->persistent != slot->persistent)
            first = first->next;
        if (first != slot) {
            slot->member = first->member;
            continue;
        }
        tn_snprint(name, sizeof name, "%s_%lld", slot->persistent ? "weight" : "tensor",
                   (long long)count++);
        slot->member = arena_text(&m->arena, name, strlen(name));
        status = slot->member != NULL ? add_tensor(zip, slot) : TN_ERR_MEMORY;
    }
    return status;
}

static tn_status add_table(struct aten_model *m, struct zip_writer *zip, bool persistent)
{
    json_t *rows = json_object();

    for (const struct aten_slot *slot = m->slots; slot != NULL; slot = slot->next)
        if (slot->persistent == persistent &&
            json_object_set_new(
                rows, slot->path,
                json_pack("{s:s, s:b, s:b, s:o}", "path_name", slot->member, "is_param",
                          (int)slot->parameter, "use_pickle", 0, "tensor_meta",
                          aten_make_meta(m, NULL, slot->tensor,
                                         slot->parameter &&
                                             tn_tensor_requires_grad(slot->tensor)))) != 0) {
            json_decref(rows);
            return TN_ERR_MEMORY;
        }
    return add_json(zip,
                    persistent ? "data/weights/model_weights_config.json"
                               : "data/constants/model_constants_config.json",
                    json_pack("{s:o}", "config", rows));
}

/* Texts and bytes among the files of the script, as extra files. */
static tn_status add_files(const struct aten_model *m, struct zip_writer *zip)
{
    const tn_state *files = tn_script_files(m->graph.script);
    tn_status status = files != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; status == TN_OK && i < tn_state_count(files); i++) {
        tn_value value = tn_state_value(files, i);
        char name[600];

        tn_snprint(name, sizeof name, "extra/%.500s", tn_state_name(files, i));
        status = add(zip, name, value.as.s,
                     value.kind == TN_VALUE_STRING ? strlen(value.as.s) : value.count);
    }
    return status;
}

static tn_status add_all(struct aten_model *m, struct zip_writer *zip)
{
    static const char *const texts[][2] = { { "archive_format", "pt2" },
                                            { "archive_version", "0" },
                                            { "byteorder", "little" },
                                            { ".data/version", "3\n" } };
    tn_status status = add_json(zip, "models/model.json", program_of(m));

    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == TN_OK; i++)
        status = add(zip, texts[i][0], texts[i][1], strlen(texts[i][1]));
    if (status == TN_OK)
        status = add_tensors(m, zip);
    if (status == TN_OK)
        status = add_table(m, zip, true);
    if (status == TN_OK)
        status = add_table(m, zip, false);
    if (status == TN_OK) /* PyTorch refuses an archive without it; it may be empty */
        status = add(zip, "data/sample_inputs/model.pt", NULL, 0);
    return status == TN_OK ? add_files(m, zip) : status;
}

tn_status aten_file_write(struct aten_model *m, const tn_sink *sink)
{
    struct zip_writer zip;
    tn_status status;

    zip_writer_open(&zip, sink);
    status = add_all(m, &zip);
    if (status == TN_OK)
        status = m->status;
    if (status == TN_OK)
        status = zip_writer_finish(&zip);
    zip_writer_close(&zip);
    return status;
}
