/* SPDX-License-Identifier: MIT
 *
 * The C form of graphs: tables of the modules and tensors, and the function that makes them. The
 * modules have the types and paths of the original, so that files with its weights fit, but no
 * layers. */
#include <stdlib.h>
#include <string.h>

#include "graph_c.h"

/* Modules and tensors that have been written, with the path where each was first. */
typedef struct known {
    const void **at;
    char **paths;
    size_t count, capacity;
} known;

typedef struct tables {
    writer *w;
    known parts, slots;
    FILE *rows;       /* of the table that is being written */
    FILE *data;       /* the values of constants */
    const char *path; /* of the module whose tensors are being written */
    int count;        /* rows */
    int constants;
} tables;

static const char *find(const known *k, const void *object)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->at[i] == object)
            return k->paths[i];
    return NULL;
}

static tn_status add(known *k, const void *object, const char *path)
{
    if (k->count == k->capacity) {
        size_t capacity = 2 * k->capacity + 64;
        const void **at = realloc(k->at, capacity * sizeof *at);
        char **paths = at != NULL ? realloc(k->paths, capacity * sizeof *paths) : NULL;

        k->at = at != NULL ? at : k->at;
        k->paths = paths != NULL ? paths : k->paths;
        if (paths == NULL)
            return graph_c_out_of_memory();
        k->capacity = capacity;
    }
    k->at[k->count] = object;
    k->paths[k->count] = strdup(path);
    return k->paths[k->count++] != NULL ? TN_OK : graph_c_out_of_memory();
}

static void forget(known *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->paths[i]);
    free(k->at);
    free(k->paths);
}

static char *join(const char *path, const char *name)
{
    size_t size = strlen(path) + strlen(name) + 2;
    char *joined = malloc(size);

    if (joined != NULL)
        snprintf(joined, size, "%s%s%s", path, path[0] != '\0' ? "." : "", name);
    return joined;
}

/* ---- modules --------------------------------------------------------------------------------- */

static void put_text(FILE *to, const char *text)
{
    if (text != NULL)
        graph_c_string(to, text);
    else
        fputs("NULL", to);
}

/* Writes a row for each module below one, and remembers the modules. */
static tn_status put_parts(tables *t, tn_module *module, const char *path)
{
    tn_status status = add(&t->parts, module, path);

    for (int64_t i = 0; i < tn_module_child_count(module) && status == TN_OK; i++) {
        tn_module *child = tn_module_child_at(module, i);
        const char *name = tn_module_child_name(module, i), *first;
        char *below;
        piece row;

        /* put_constants writes the constants of a script. */
        if (child == NULL || (path[0] == '\0' && strcmp(name, "_constants") == 0))
            continue;
        below = join(path, name);
        if (below == NULL || !piece_begin(&row)) {
            free(below);
            return graph_c_out_of_memory();
        }
        first = find(&t->parts, child);
        fputs("{ ", row.to);
        put_text(row.to, path);
        fputs(", ", row.to);
        put_text(row.to, name);
        fputs(", ", row.to);
        put_text(row.to, first == NULL ? graph_c_type(child) : NULL);
        fputs(", ", row.to);
        put_text(row.to, first);
        fputs(" },", row.to);
        status = piece_end(&row, t->rows, 4);
        t->count++;
        if (status == TN_OK && first == NULL)
            status = put_parts(t, child, below);
        free(below);
    }
    return status;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct slot {
    const char *holder, *name;
    tn_tensor *tensor;
    uint32_t flags;
    const char *data; /* the array of its values; NULL: zeros, until weights are loaded */
} slot;

static tn_status put_slot(tables *t, const slot *one)
{
    const char *first = find(&t->slots, one->tensor);
    tn_ints shape = tn_tensor_shape(one->tensor);
    char *path = join(one->holder, one->name);
    tn_status status = path == NULL    ? graph_c_out_of_memory()
                       : first == NULL ? add(&t->slots, one->tensor, path)
                                       : TN_OK;
    piece row;

    free(path);
    if (status != TN_OK)
        return status;
    if (!piece_begin(&row))
        return graph_c_out_of_memory();
    fputs("{ ", row.to);
    put_text(row.to, one->holder);
    fputs(", ", row.to);
    put_text(row.to, one->name);
    fputs(", ", row.to);
    put_text(row.to, first);
    fputs(", ", row.to);
    graph_c_dtype(row.to, tn_tensor_dtype(one->tensor));
    fprintf(row.to, ", %s, ",
            !tn_tensor_is_parameter(one->tensor)   ? "BUFFER"
            : tn_tensor_requires_grad(one->tensor) ? "PARAMETER"
                                                   : "FROZEN");
    fprintf(row.to, "%u, %s, %d, { ", one->flags, one->data != NULL ? one->data : "NULL",
            (int)shape.count);
    for (int64_t i = 0; i < shape.count; i++)
        fprintf(row.to, "%s%lld", i > 0 ? ", " : "", (long long)shape.at[i]);
    fputs(shape.count == 0 ? "0 } }," : " } },", row.to);
    t->count++;
    return piece_end(&row, t->rows, 4);
}

static tn_status visit_tensor(void *user, const tn_visit *what)
{
    tables *t = user;
    slot one = { t->path, what->path, what->tensor, what->flags, NULL };

    return put_slot(t, &one);
}

static tn_status put_slots(tables *t)
{
    const tn_walk_options direct = { .size = sizeof direct,
                                     .flags = TN_WALK_DIRECT | TN_WALK_DUPLICATES };
    tn_status status = TN_OK;

    for (size_t i = 0; i < t->parts.count && status == TN_OK; i++) {
        t->path = t->parts.paths[i];
        status = tn_module_walk((tn_module *)(uintptr_t)t->parts.at[i],
                                TN_SLOT_PARAMETER | TN_SLOT_BUFFER, &direct, visit_tensor, t);
    }
    return status;
}

/* Passes have used the values of tensors: only those that the graph still reads are there, so that
 * a file with all weights does not fit. */
static tn_status put_used_slots(tables *t)
{
    tn_status status = TN_OK;

    for (tn_node *node = tn_graph_first(t->w->graph); node != NULL && status == TN_OK;
         node = tn_node_next(node)) {
        char *path;

        if (tn_node_kind_of(node) != TN_NODE_SLOT || tn_node_user_count(node) == 0)
            continue;
        path = strdup(tn_node_target(node));
        if (path != NULL) {
            char *dot = strrchr(path, '.');
            slot one = { "", path, tn_node_tensor(node), 0, NULL };

            if (dot != NULL) {
                *dot = '\0';
                one.holder = path;
                one.name = dot + 1;
            }
            status = put_slot(t, &one);
        } else {
            status = graph_c_out_of_memory();
        }
        free(path);
    }
    return status;
}

static tn_status put_constants(tables *t)
{
    tn_status status = TN_OK;

    for (tn_node *node = tn_graph_first(t->w->graph); node != NULL && status == TN_OK;
         node = tn_node_next(node)) {
        char data[32];
        slot one = { "_constants", NULL, NULL, TN_SLOT_FLAG_NOT_PERSISTENT, data };

        if (tn_node_kind_of(node) != TN_NODE_CONSTANT || tn_node_user_count(node) == 0)
            continue;
        one.name = tn_node_target(node);
        one.tensor = tn_node_tensor(node);
        snprintf(data, sizeof data, "values_%d", t->constants++);
        status = graph_c_data(t->data, data, one.tensor);
        if (status == TN_OK)
            status = put_slot(t, &one);
    }
    return status;
}

static bool has_constants(const tn_graph *graph)
{
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        if (tn_node_kind_of(node) == TN_NODE_CONSTANT && tn_node_user_count(node) > 0)
            return true;
    return false;
}

/* ---- the file -------------------------------------------------------------------------------- */

static const char part_struct[] =
    "/* The modules. `same` is the path of the same module if it is there twice. */\n"
    "static const struct part {\n"
    "    const char *holder, *name, *type, *same;\n"
    "} parts[] = {\n";

static const char slot_struct[] =
    "enum { BUFFER, PARAMETER, FROZEN };\n"
    "\n"
    "/* The tensors. `same` is the path of the same tensor if it is there twice. */\n"
    "static const struct slot {\n"
    "    const char *holder, *name, *same;\n"
    "    tn_dtype dtype;\n"
    "    int kind;\n"
    "    uint32_t flags; /* TN_SLOT_* */\n"
    "    const void *values;\n"
    "    int64_t ndim, shape[TN_MAX_DIMS];\n"
    "} slots[] = {\n";

static const char add_part_text[] =
    "static tn_status add_part(tn_module *net, const struct part *part)\n"
    "{\n"
    "    tn_module *holder = tn_module_find(net, part->holder);\n"
    "    tn_module *child =\n"
    "        part->same != NULL ? tn_module_find(net, part->same) : tn_module_plain(part->type);\n"
    "    tn_status status =\n"
    "        holder != NULL ? tn_module_add_child(holder, part->name, child) : "
    "tn_error_last_code();\n"
    "\n"
    "    if (part->same == NULL)\n"
    "        tn_module_drop(child);\n"
    "    return status;\n"
    "}\n\n";

static const char add_slot_text[] =
    "static tn_tensor *slot_tensor(tn_module *net, const struct slot *slot)\n"
    "{\n"
    "    tn_ints shape = { slot->shape, slot->ndim };\n"
    "    tn_tensor *tensor;\n"
    "\n"
    "    if (slot->same != NULL)\n"
    "        return tn_module_find_tensor(net, slot->same);\n"
    "    tensor = slot->values != NULL\n"
    "                 ? tn_tensor_from(slot->values, slot->dtype, shape)\n"
    "                 : tn_tensor_full(shape, tn_scalar_int(0), slot->dtype, NULL);\n"
    "    if (tensor == NULL || slot->kind == BUFFER)\n"
    "        return tensor;\n"
    "    return tn_parameter(tensor, slot->kind == PARAMETER);\n"
    "}\n\n"
    "static tn_status add_slot(tn_module *net, const struct slot *slot)\n"
    "{\n"
    "    tn_module *holder = tn_module_find(net, slot->holder);\n"
    "    tn_tensor *tensor = holder != NULL ? slot_tensor(net, slot) : NULL;\n"
    "\n"
    "    if (tensor == NULL)\n"
    "        return tn_error_last_code();\n"
    "    if (slot->kind != BUFFER)\n"
    "        return tn_module_add_parameter(holder, slot->name, tensor);\n"
    "    return tn_module_add_buffer(holder, slot->name, tensor, slot->flags);\n"
    "}\n\n";

static const char expect_text[] =
    "static bool expect(const char *name, tn_tensor *input, const int64_t *shape, int64_t ndim)\n"
    "{\n"
    "    tn_ints given = input != NULL ? tn_tensor_shape(input) : (tn_ints){ NULL, -1 };\n"
    "    int64_t same = 0;\n"
    "\n"
    "    while (given.count == ndim && same < ndim && given.at[same] == shape[same])\n"
    "        same++;\n"
    "    if (given.count == ndim && same == ndim)\n"
    "        return true;\n"
    "    if (input != NULL && given.count != ndim)\n"
    "        tn_fail(TN_ERR_VALUE, \"%s: wrong number of dimensions, got %lld; expected %lld, \"\n"
    "                \"as in the trace\", name, (long long)given.count, (long long)ndim);\n"
    "    else if (input != NULL)\n"
    "        tn_fail(TN_ERR_VALUE, \"%s: wrong size of dimension %lld, got %lld; expected \"\n"
    "                \"%lld, as in the trace\", name, (long long)same,\n"
    "                (long long)given.at[same], (long long)shape[same]);\n"
    "    return false;\n"
    "}\n\n";

static const char expect_mode_text[] =
    "static bool expect_mode(tn_module *self, bool training)\n"
    "{\n"
    "    if (tn_module_is_training(self) == training)\n"
    "        return true;\n"
    "    tn_fail(TN_ERR_VALUE, \"this code is for %s mode; expected tn_module_train(self, %s) \"\n"
    "            \"before the call\", training ? \"training\" : \"evaluation\",\n"
    "            training ? \"true\" : \"false\");\n"
    "    return false;\n"
    "}\n\n";

static const char expect_inference_text[] =
    "static bool expect_inference(tn_tensor *result)\n"
    "{\n"
    "    if (result == NULL || !tn_tensor_requires_grad(result))\n"
    "        return true;\n"
    "    tn_fail(TN_ERR_RUNTIME, \"this code is for inference, and a gradient would be \"\n"
    "            \"recorded; expected tn_grad_begin(false) before the call\");\n"
    "    return false;\n"
    "}\n\n";

static const char add_result_text[] =
    "static bool add_result(tn_pack *results, tn_tensor *result)\n"
    "{\n"
    "    return result != NULL && tn_pack_add(results, NULL, tn_value_tensor(result)) == TN_OK;\n"
    "}\n\n";

static void put_new(const writer *w, bool parts, bool slots)
{
    const char *kind = w->pack ? "call" : "forward";

    fprintf(w->to, "tn_module *%s_new(void)\n{\n", w->name);
    if (slots)
        fputs("    TN_SCOPE;\n", w->to);
    fputs("    tn_module *net = tn_module_plain(", w->to);
    graph_c_string(w->to, w->type);
    fprintf(w->to, ");\n    tn_status status = tn_module_set_%s(net, %s_%s, NULL, NULL);\n\n", kind,
            w->name, kind);
    if (parts)
        fputs("    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == TN_OK; i++)\n"
              "        status = add_part(net, &parts[i]);\n",
              w->to);
    if (slots)
        fputs("    for (size_t i = 0; i < sizeof slots / sizeof *slots && status == TN_OK; i++)\n"
              "        status = add_slot(net, &slots[i]);\n",
              w->to);
    fprintf(w->to,
            "    if (status == TN_OK)\n"
            "        status = tn_module_train(net, %s);\n"
            "    if (status == TN_OK)\n"
            "        return net;\n"
            "    tn_module_drop(net);\n"
            "    return NULL;\n}\n",
            w->train ? "true" : "false");
}

/* Writes a table as C code: `head` (the struct and the begin of the array), its rows, and the
 * functions that use the table. */
static void put_table(FILE *to, const char *head, const char *rows, const char *functions)
{
    fprintf(to, "%s%s};\n\n%s", head, rows, functions);
}

/* Writes the rows of a table into memory. */
static tn_status collect(tables *t, piece *rows, tn_status (*put)(tables *t))
{
    tn_status status;

    if (!piece_begin(rows))
        return graph_c_out_of_memory();
    t->rows = rows->to;
    t->count = 0;
    status = put(t);
    if (fclose(rows->to) != 0 && status == TN_OK)
        status = graph_c_out_of_memory();
    return status;
}

static tn_status all_parts(tables *t)
{
    tn_status status = put_parts(t, t->w->module, "");

    if (status == TN_OK && has_constants(t->w->graph)) {
        fputs("    { \"\", \"_constants\", \"Module\", NULL },\n", t->rows);
        t->count++;
    }
    return status;
}

static tn_status all_slots(tables *t)
{
    tn_status status = t->w->folded ? put_used_slots(t) : put_slots(t);

    return status == TN_OK ? put_constants(t) : status;
}

tn_status graph_c_module(writer *w)
{
    tables t = { .w = w, .data = w->to };
    piece parts = { 0 }, slots = { 0 };
    tn_status status = collect(&t, &parts, all_parts);
    int n_parts = t.count;

    if (status == TN_OK)
        status = collect(&t, &slots, all_slots);
    if (status == TN_OK) {
        fputs(t.constants > 0 ? "\n" : "", w->to);
        if (n_parts > 0)
            put_table(w->to, part_struct, parts.text, add_part_text);
        if (t.count > 0)
            put_table(w->to, slot_struct, slots.text, add_slot_text);
        fputs(w->train || w->eval ? expect_mode_text : "", w->to);
        fputs(w->fixed ? expect_text : "", w->to);
        fputs(w->inference ? expect_inference_text : "", w->to);
        fputs(w->pack ? add_result_text : "", w->to);
        status = graph_c_forward(w);
    }
    if (status == TN_OK)
        put_new(w, n_parts > 0, t.count > 0);
    free(parts.text);
    free(slots.text);
    forget(&t.parts);
    forget(&t.slots);
    return status;
}
