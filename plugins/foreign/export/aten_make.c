/* SPDX-License-Identifier: MIT
 *
 * Values and nodes of a program of PyTorch that is written (aten.h). */
#include "export/aten.h"
#include "pt2.h"

#include <math.h>
#include <string.h>

static void fail(struct aten_model *m, tn_status status)
{
    if (m->status == TN_OK)
        m->status = status;
}

void aten_make_fail(struct aten_call *call, const char *what)
{
    if (call->model->status == TN_OK)
        call->model->status = tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: node %s (%s): %s",
                                      call->model->graph.path, tn_node_name(call->node),
                                      call->def->name, what);
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *aten_make_name(struct aten_model *m, const char *begin, const char *wanted)
{
    char text[700], name[740];
    const char *copy;

    tn_snprint(text, sizeof text, "%s%.600s", begin, wanted);
    for (char *c = text; *c != '\0'; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
    if (text[0] >= '0' && text[0] <= '9')
        text[0] = '_';
    tn_snprint(name, sizeof name, "%s", text);
    for (int64_t i = 1; names_find(&m->taken, name) >= 0; i++)
        tn_snprint(name, sizeof name, "%s_%lld", text, (long long)i);
    copy = arena_text(&m->arena, name, strlen(name));
    if (copy == NULL || names_add(&m->taken, copy, 0) != TN_OK)
        fail(m, TN_ERR_MEMORY);
    return copy != NULL ? copy : "";
}

/* Names that Python, or the code that PyTorch generates, has for other things. */
void aten_make_reserve(struct aten_model *m)
{
    static const char *const names[] = {
        "abs",   "all",    "any",    "bin",   "bool",   "class", "complex", "copyright",
        "def",   "del",    "device", "dict",  "dir",    "eval",  "filter",  "float",
        "for",   "format", "hash",   "hex",   "id",     "if",    "in",      "inf",
        "input", "int",    "is",     "iter",  "lambda", "len",   "list",    "map",
        "max",   "min",    "nan",    "next",  "not",    "oct",   "or",      "ord",
        "pow",   "print",  "pytree", "range", "repr",   "round", "self",    "set",
        "slice", "sum",    "torch",  "tuple", "type",   "vars",  "zip",     "fx_pytree",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fail(m, names_add(&m->taken, names[i], 0));
}

const char *aten_make_of(const struct aten_model *m, const tn_node *node)
{
    int64_t at = node == TN_NODE_NONE ? -1 : names_find(&m->values, tn_node_name(node));

    return at >= 0 ? m->at[at] : NULL;
}

void aten_make_set(struct aten_model *m, const tn_node *node, const char *value)
{
    const char **more;

    if (m->status != TN_OK)
        return;
    if (m->n_at == m->at_capacity) {
        more = tn_realloc((void *)m->at, (size_t)(2 * m->at_capacity + 64) * sizeof(*more));
        if (more == NULL) {
            m->status = TN_ERR_MEMORY;
            return;
        }
        m->at = more;
        m->at_capacity = 2 * m->at_capacity + 64;
    }
    m->at[m->n_at] = value;
    fail(m, names_add(&m->values, tn_node_name(node), m->n_at++));
}

void aten_make_give(struct aten_call *call, int64_t index, const char *value)
{
    if (tn_node_is_no_grad(call->node)) { /* no gradient goes back through the call */
        aten_make_begin(call, "detach.default");
        aten_make_add(call, "self", aten_make_tensor(value), false);
        value = aten_make_end(call, 1);
    }
    aten_make_set(call->model, tn_node_item(call->node, index), value);
}

const char *aten_make_in(struct aten_call *call, const char *input)
{
    for (int32_t i = 0; i < call->def->n_inputs && i < tn_node_input_count(call->node); i++)
        if (strcmp(call->def->inputs[i].name, input) == 0)
            return aten_make_of(call->model, tn_node_input(call->node, i));
    return NULL;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void expression(const struct export_graph *g, const struct export_size *size, char *out,
                       size_t bytes)
{
    char b[60] = "";

    if (size->b >= 0)
        tn_snprint(b, sizeof b, "*s%d", (int)size->b);
    if (size->a < 0)
        tn_snprint(out, bytes, "%lld", (long long)size->number);
    else
        tn_snprint(out, bytes, "(%lld*s%d%s + %lld)", (long long)size->times, (int)size->a, b,
                   (long long)size->plus);
    (void)g;
}

static json_t *size_of(const char *text, int64_t number, bool varies)
{
    return varies ? json_pack("{s:{s:s, s:{s:I}}}", "as_expr", "expr_str", text, "hint", "as_int",
                              (json_int_t)number)
                  : json_pack("{s:I}", "as_int", (json_int_t)number);
}

static int dtype_number(tn_dtype dtype)
{
    for (int i = 0; i < 64; i++) {
        const char *name = pt2_weights_dtype(i);

        if (name != NULL && strcmp(name, tn_dtype_name(dtype)) == 0)
            return i;
    }
    return 0;
}

/* Strides are those of row-major order: PyTorch finds the right ones when it runs the program. */
json_t *aten_make_meta(struct aten_model *m, const tn_node *node, const tn_tensor *tensor,
                       bool grad)
{
    struct export_size at[TN_MAX_DIMS];
    json_t *sizes = json_array(), *strides = json_array();
    char stride[64 * TN_MAX_DIMS] = "1", text[200];
    bool varies = false;
    int64_t step = 1, ndim;
    tn_dtype dtype;
    tn_meta meta;

    if (tensor != NULL) {
        dtype = tn_tensor_dtype(tensor);
        ndim = tn_tensor_ndim(tensor);
        for (int64_t i = 0; i < ndim; i++)
            at[i] = export_sizes_number(tn_tensor_size(tensor, i));
    } else {
        dtype = tn_node_meta(node, &meta) == TN_OK ? meta.dtype : TN_F32;
        ndim = export_sizes_of(&m->graph, node, at);
    }
    for (int64_t i = ndim; i-- > 0;) {
        size_t used = strlen(stride);

        expression(&m->graph, &at[i], text, sizeof text);
        if (json_array_insert_new(sizes, 0, size_of(text, at[i].number, at[i].a >= 0)) != 0 ||
            json_array_insert_new(strides, 0, size_of(stride, step, varies)) != 0)
            fail(m, TN_ERR_MEMORY);
        tn_snprint(stride + used, sizeof stride - used, "*%s", text);
        varies |= at[i].a >= 0;
        step *= at[i].number > 0 ? at[i].number : 1;
    }
    if (dtype_number(dtype) == 0)
        fail(m, tn_fail(TN_ERR_TYPE,
                        "%s: dtype %s: PyTorch's files have no such dtype; expected "
                        "another",
                        m->graph.path, tn_dtype_name(dtype)));
    return json_pack("{s:i, s:o, s:b, s:{s:s, s:n}, s:o, s:{s:i}, s:i}", "dtype",
                     dtype_number(dtype), "sizes", sizes, "requires_grad", (int)grad, "device",
                     "type", "cpu", "index", "strides", strides, "storage_offset", "as_int", 0,
                     "layout", 7);
}

/* A node that computes an integer. */
static const char *integer(struct aten_model *m, const char *target, json_t *arguments,
                           const char *expr, int64_t number)
{
    const char *name = aten_make_name(m, "", "size");
    json_t *node = json_pack("{s:s, s:o, s:[{s:{s:s}}], s:{s:s}, s:n}", "target", target, "inputs",
                             arguments, "outputs", "as_sym_int", "as_name", name, "metadata",
                             "nn_module_stack", "L__self__,,tenon.Module",
                             "is_hop_single_tensor_return");

    if (json_array_append_new(m->nodes, node) != 0 ||
        json_object_set_new(m->sizes, name, size_of(expr, number, true)) != 0)
        fail(m, TN_ERR_MEMORY);
    return name;
}

static json_t *argument(const char *name, json_t *value, bool named)
{
    return json_pack("{s:s, s:o, s:i}", "name", name, "arg", value, "kind", named ? 2 : 1);
}

static json_t *sym(const char *name)
{
    return json_pack("{s:{s:s}}", "as_sym_int", "as_name", name);
}

static json_t *whole(int64_t number)
{
    return json_pack("{s:I}", "as_int", (json_int_t)number);
}

/* The value of a symbol: a size of an input, from which the expression is undone. */
static const char *symbol(struct aten_call *call, int32_t index)
{
    struct aten_model *m = call->model;
    struct export_size at[TN_MAX_DIMS];
    const char *name;
    char text[200];

    if (m->symbols[index] != NULL)
        return m->symbols[index];
    for (const tn_node *node = tn_graph_first(m->graph.graph); node; node = tn_node_next(node)) {
        int32_t ndim = tn_node_kind_of(node) == TN_NODE_INPUT ? export_sizes_of(&m->graph, node, at)
                                                              : 0;

        for (int32_t i = 0; i < ndim; i++) {
            if (at[i].a != index || at[i].b >= 0 || at[i].times == 0)
                continue;
            expression(&m->graph, &at[i], text, sizeof text);
            name = integer(
                m, "torch.ops.aten.sym_size.int",
                json_pack("[o, o]",
                          argument("self", aten_make_tensor(aten_make_of(m, node)), false),
                          argument("dim", whole(i), false)),
                text, at[i].number);
            if (at[i].plus != 0)
                name = integer(m, "_operator.sub",
                               json_pack("[o, o]", argument("a", sym(name), false),
                                         argument("b", whole(at[i].plus), false)),
                               text, at[i].number - at[i].plus);
            if (at[i].times != 1)
                name = integer(m, "_operator.floordiv",
                               json_pack("[o, o]", argument("a", sym(name), false),
                                         argument("b", whole(at[i].times), false)),
                               text, (at[i].number - at[i].plus) / at[i].times);
            return m->symbols[index] = name;
        }
    }
    aten_make_fail(call, "a size that varies is no size of an input of the program");
    return "";
}

static json_t *size_name(struct aten_call *call, const struct export_size *size)
{
    struct aten_model *m = call->model;
    const char *name = symbol(call, size->a);
    char text[200];

    expression(&m->graph, size, text, sizeof text);
    if (size->b >= 0)
        name = integer(m, "_operator.mul",
                       json_pack("[o, o]", argument("a", sym(name), false),
                                 argument("b", sym(symbol(call, size->b)), false)),
                       text, size->number);
    if (size->times != 1)
        name = integer(m, "_operator.mul",
                       json_pack("[o, o]", argument("a", sym(name), false),
                                 argument("b", whole(size->times), false)),
                       text, size->number);
    if (size->plus != 0)
        name = integer(m, "_operator.add",
                       json_pack("[o, o]", argument("a", sym(name), false),
                                 argument("b", whole(size->plus), false)),
                       text, size->number);
    return json_pack("{s:s}", "as_name", name);
}

json_t *aten_make_size(struct aten_call *call, const struct export_size *size)
{
    if (size->a < 0)
        return whole(size->number);
    return json_pack("{s:o}", "as_sym_int", size_name(call, size));
}

/* ---- arguments ------------------------------------------------------------------------------- */

json_t *aten_make_tensor(const char *name)
{
    return name != NULL ? json_pack("{s:{s:s}}", "as_tensor", "name", name)
                        : json_pack("{s:b}", "as_none", 1);
}

json_t *aten_make_list(const tn_ints *list)
{
    json_t *values = json_array();

    for (int64_t i = 0; i < list->count; i++)
        if (json_array_append_new(values, json_integer((json_int_t)list->at[i])) != 0)
            return NULL;
    return json_pack("{s:o}", "as_ints", values);
}

static json_t *number(double value)
{
    if (isnan(value) || isinf(value))
        return json_pack("{s:s}", "as_float",
                         isnan(value) ? "NaN"
                         : value > 0  ? "Infinity"
                                      : "-Infinity");
    return json_pack("{s:f}", "as_float", value);
}

static json_t *scalar(struct aten_call *call, tn_scalar value)
{
    switch (value.kind) {
    case TN_SCALAR_FLOAT: return number(value.as.f);
    case TN_SCALAR_BOOL: return json_pack("{s:b}", "as_bool", (int)(value.as.i != 0));
    case TN_SCALAR_INT: return whole(value.as.i);
    default:
        aten_make_fail(call, "a complex or unsigned number as an option; expected a real one below "
                             "2^63");
        return NULL;
    }
}

/* Integers, some of which may vary. */
static json_t *ints(struct aten_call *call, const char *option, const tn_ints *list)
{
    const struct export_graph *g = &call->model->graph;
    struct export_size size;
    bool varies = false;
    json_t *values;

    for (int64_t i = 0; i < list->count; i++)
        varies |= export_sizes_option(g, call->node, option, i, list->at[i]).a >= 0;
    if (!varies)
        return aten_make_list(list);
    values = json_array();
    for (int64_t i = 0; i < list->count; i++) {
        size = export_sizes_option(g, call->node, option, i, list->at[i]);
        if (json_array_append_new(values,
                                  size.a < 0 ? whole(size.number) : size_name(call, &size)) != 0)
            return NULL;
    }
    return json_pack("{s:o}", "as_sym_ints", values);
}

json_t *aten_make_option(struct aten_call *call, const char *option)
{
    const tn_option *row = call->def->options;
    const struct export_graph *g = &call->model->graph;
    struct export_size size;
    const char *at;

    while (row != NULL && row->name != NULL && strcmp(row->name, option) != 0)
        row++;
    if (row == NULL || row->name == NULL) {
        aten_make_fail(call, "its rule has a word that is neither an input nor an option");
        return NULL;
    }
    at = (const char *)call->options + row->offset;
    switch (row->kind) {
    case TN_OPTION_KIND_BOOL: return json_pack("{s:b}", "as_bool", (int)*(const bool *)at);
    case TN_OPTION_KIND_INT:
        if (*(const int64_t *)(const void *)at == INT64_MIN)
            return NULL;
        size = export_sizes_option(g, call->node, option, 0, *(const int64_t *)(const void *)at);
        return aten_make_size(call, &size);
    case TN_OPTION_KIND_FLOAT:
        return isnan(*(const double *)(const void *)at) ? NULL
                                                        : number(*(const double *)(const void *)at);
    case TN_OPTION_KIND_STRING:
        if (*(const char *const *)(const void *)at == NULL)
            return NULL;
        return json_pack("{s:s}", "as_string", *(const char *const *)(const void *)at);
    case TN_OPTION_KIND_INTS:
        if (((const tn_ints *)(const void *)at)->count < 0)
            return NULL;
        return ints(call, option, (const tn_ints *)(const void *)at);
    case TN_OPTION_KIND_DTYPE:
        if (*(const tn_dtype *)(const void *)at == TN_DTYPE_AUTO)
            return NULL;
        return json_pack("{s:i}", "as_scalar_type",
                         dtype_number(*(const tn_dtype *)(const void *)at));
    case TN_OPTION_KIND_SCALAR:
        if (((const tn_scalar *)(const void *)at)->kind == TN_SCALAR_NONE)
            return NULL;
        if (((const tn_scalar *)(const void *)at)->kind == TN_SCALAR_INT) {
            size = export_sizes_option(g, call->node, option, 0,
                                       ((const tn_scalar *)(const void *)at)->as.i);
            return aten_make_size(call, &size);
        }
        return scalar(call, *(const tn_scalar *)(const void *)at);
    default:
        aten_make_fail(call, "its rule has an option of another kind; expected a number or a text");
        return NULL;
    }
}

void aten_make_add(struct aten_call *call, const char *name, json_t *value, bool named)
{
    if (json_array_append_new(call->arguments, argument(name, value, named)) != 0)
        fail(call->model, TN_ERR_MEMORY);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

void aten_make_begin(struct aten_call *call, const char *target)
{
    call->target = target;
    call->arguments = json_array();
}

/* "L__self__layer1,layer1,torch.nn.Sequential;...": the modules around a node. */
static json_t *modules_of(struct aten_call *call)
{
    const char *path = tn_node_path(call->node) != NULL ? tn_node_path(call->node) : "";
    tn_module *script = call->model->graph.script;
    char text[4000], part[700], key[700];

    tn_snprint(text, sizeof text, "L__self__,,tenon.%.200s", tn_script_original(script));
    for (size_t at = 0; path[at] != '\0';) {
        uint64_t mark = tn_error_mark();
        tn_module *module;
        size_t used = strlen(text);

        at += strcspn(path + at, ".");
        tn_snprint(part, sizeof part, "%.*s", (int)(at < 600 ? at : 600), path);
        tn_snprint(key, sizeof key, "%s", part);
        for (char *c = key; *c != '\0'; c++)
            *c = *c == '.' ? '_' : *c;
        module = tn_module_find(script, part);
        tn_snprint(text + used, sizeof text - used, ";L__self__%s,%s,tenon.%.200s", key, part,
                   module != NULL && tn_script_original(module) != NULL ? tn_script_original(module)
                                                                        : "Module");
        tn_error_restore(mark);
        at += path[at] == '.';
    }
    return json_pack("{s:s}", "nn_module_stack", text);
}

const char *aten_make_end(struct aten_call *call, int64_t n_out)
{
    struct aten_model *m = call->model;
    json_t *outputs = json_array(), *node;
    char target[200];

    for (int64_t i = 0; i < n_out && i < ATEN_OUTPUTS; i++) {
        const tn_node *like = tn_node_item(call->node, i < tn_node_item_count(call->node) ? i : 0);
        tn_meta meta;
        bool grad = tn_node_meta(like, &meta) == TN_OK && (TN_BIT(meta.dtype) & TN_MASK_FLOAT) != 0;

        call->out[i] = aten_make_name(m, "", tn_node_name(call->node));
        if (json_array_append_new(outputs, aten_make_tensor(call->out[i])) != 0 ||
            json_object_set_new(m->tensors, call->out[i], aten_make_meta(m, like, NULL, grad)) != 0)
            fail(m, TN_ERR_MEMORY);
    }
    tn_snprint(target, sizeof target, "torch.ops.aten.%s", call->target);
    node = json_pack("{s:s, s:o, s:o, s:o, s:n, s:s}", "target", target, "inputs", call->arguments,
                     "outputs", outputs, "metadata", modules_of(call),
                     "is_hop_single_tensor_return", "name",
                     n_out > 1 ? aten_make_name(m, "", tn_node_name(call->node)) : call->out[0]);
    call->arguments = NULL;
    if (json_array_append_new(m->nodes, node) != 0)
        fail(m, TN_ERR_MEMORY);
    return call->out[0];
}

const char *aten_make_view(struct aten_call *call, const char *target, const char *x,
                           const char *argument_name, int64_t value)
{
    aten_make_begin(call, target);
    aten_make_add(call, "self", aten_make_tensor(x), false);
    aten_make_add(call, argument_name,
                  strcmp(argument_name, "dims") == 0 ? aten_make_list(&(tn_ints){ &value, 1 })
                                                     : whole(value),
                  false);
    return aten_make_end(call, 1);
}
