/* SPDX-License-Identifier: MIT
 *
 * The C form of graphs: the forward, which calls the operators. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "graph_c.h"
#include "tools/wrappers.h"

enum { LINE = 96 };

/* ---- text ------------------------------------------------------------------------------------ */

/* Writes a statement, in lines that break after commas. */
static void put_lines(FILE *to, const char *text, int indent)
{
    int width = LINE - indent;

    fprintf(to, "%*s", indent, "");
    while ((int)strlen(text) > width) {
        int at = width;
        bool quoted = false;

        for (int i = 0, end = width; i < end; i++) {
            if (quoted && text[i] == '\\')
                i++;
            else if (text[i] == '"')
                quoted = !quoted;
            if (!quoted && text[i] == ' ' && i > 0 && strchr(",={", text[i - 1]) != NULL)
                at = i;
        }
        if (at == width)
            break;
        fprintf(to, "%.*s\n%*s", at, text, indent + 4, "");
        text += at + 1;
        width = LINE - indent - 4;
    }
    fprintf(to, "%s\n", text);
}

bool piece_begin(piece *p)
{
    *p = (piece){ 0 };
    p->to = open_memstream(&p->text, &p->length);
    return p->to != NULL;
}

tn_status graph_c_out_of_memory(void)
{
    return tn_fail(TN_ERR_MEMORY, "tenon graph: out of memory");
}

/* Ends a piece and writes it as a statement. */
tn_status piece_end(piece *p, FILE *to, int indent)
{
    bool good = ferror(p->to) == 0;

    good = fclose(p->to) == 0 && good;
    if (good)
        put_lines(to, p->text, indent);
    free(p->text);
    return good ? TN_OK : graph_c_out_of_memory();
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_reserved(const char *name)
{
    static const char *const words[] = {
        "auto",       "bool",     "break",       "case",
        "char",       "const",    "continue",    "default",
        "do",         "double",   "else",        "enum",
        "extern",     "false",    "float",       "for",
        "goto",       "if",       "inline",      "int",
        "long",       "register", "restrict",    "return",
        "short",      "signed",   "sizeof",      "static",
        "struct",     "switch",   "true",        "typedef",
        "typeof",     "union",    "unsigned",    "void",
        "volatile",   "while",    "self",        "given",
        "results",    "ok",       "NULL",        "NAN",
        "INFINITY",   "asm",      "unix",        "linux",
        "signbit",    "expect",   "expect_mode", "expect_inference",
        "add_result", "isnan",    "isinf",       "isfinite",
        "alignas",    "alignof",  "nullptr",     "constexpr",
        "user",       "in",       "n_in",        "out",
        "n_out"
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return strncmp(name, "tn_", 3) == 0 || strncmp(name, "TN_", 3) == 0 ||
           (name[0] == '_' && (name[1] == '_' || isupper((unsigned char)name[1])));
}

/* Returns the variable of a node: its name or, if that is reserved, `v_` and the name, with as many
 * more `_` as needed to differ from the names of other nodes. */
const char *graph_c_variable(const writer *w, const tn_node *node, char out[NAME])
{
    uint64_t mark = tn_error_mark();

    snprintf(out, NAME, "%s", tn_node_name(node));
    if (is_reserved(out)) {
        snprintf(out, NAME, "v_%s", tn_node_name(node));
        while (tn_graph_find(w->graph, out) != NULL && strlen(out) + 1 < NAME) {
            memmove(out + 2, out + 1, strlen(out));
            out[1] = '_';
        }
        tn_error_restore(mark);
    }
    return out;
}

static const char *argument(const writer *w, const tn_node *node, char out[NAME])
{
    return node == TN_NODE_NONE ? "TN_NONE" : graph_c_variable(w, node, out);
}

static const wrapper *wrapper_of(const tn_node *node)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));

    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (strcmp(wrappers[i].op, def->name) == 0 && wrappers[i].revision == (int)def->revision)
            return &wrappers[i];
    tn_fail(TN_ERR_NOT_IMPLEMENTED,
            "tenon graph: node %s: no function of <tenon/ops.h> calls the operator %s (revision "
            "%u); expected operators of Tenon, which --passes decompose may leave",
            tn_node_name(node), def->name, def->revision);
    return NULL;
}

/* ---- calls of operators ---------------------------------------------------------------------- */

/* Returns how many options a call must give: all up to the last that is not the default. */
static int option_count(const tn_node *node, int needed)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));
    const void *options = tn_node_options(node);
    int count = needed;

    if (def->options == NULL || options == NULL)
        return needed;
    for (int i = needed; def->options[i].name != NULL; i++)
        if (!graph_c_is_default(&def->options[i], options, def->defaults))
            count = i + 1;
    return count;
}

/* Writes the inputs [first, end) of a call as an array NODE_SUFFIX. */
void graph_c_list(writer *w, const tn_node *node, const char *suffix, int64_t first, int64_t end)
{
    char name[NAME], in[NAME];
    piece line;

    if (!piece_begin(&line)) {
        w->failed = true;
        return;
    }
    fprintf(line.to, "tn_tensor *%s_%s[] = { ", graph_c_variable(w, node, name), suffix);
    for (int64_t i = first; i < end; i++)
        fprintf(line.to, "%s%s", argument(w, tn_node_input(node, i), in),
                i + 1 < end ? ", " : " };");
    w->failed |= piece_end(&line, w->to, 4) != TN_OK;
}

/* Returns the number of values that a call gets, without the tensor that it writes. */
static int64_t value_count(const tn_node *node)
{
    return tn_node_input_count(node) - (tn_node_kind_of(node) == TN_NODE_INPLACE);
}

static void put_separator(FILE *to, bool *any)
{
    fputs(*any ? ", " : "", to);
    *any = true;
}

static void put_inputs(writer *w, FILE *to, const tn_node *node, bool *any)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));
    char name[NAME];

    for (int32_t i = 0; i < def->n_inputs; i++) {
        put_separator(to, any);
        if ((def->inputs[i].flags & TN_OPERAND_LIST) != 0)
            fprintf(to, "%s_in, %lld", graph_c_variable(w, node, name),
                    (long long)(value_count(node) - i));
        else
            fputs(argument(w, tn_node_input(node, i), name), to);
    }
}

/* Writes the options [first, end) of a call. */
static void put_options(FILE *to, const tn_node *node, int first, int end, bool *any)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));

    for (int i = first; i < end; i++) {
        put_separator(to, any);
        graph_c_option(to, &def->options[i], tn_node_options(node));
    }
}

static int64_t list_of(const tn_op_def *def)
{
    return def->n_inputs > 0 && (def->inputs[def->n_inputs - 1].flags & TN_OPERAND_LIST) != 0
               ? def->n_inputs - 1
               : -1;
}

/* A node whose value is not used can fail unnoticed, so `ok` keeps its result. */
static void begin_call(const writer *w, const tn_node *node, FILE *to)
{
    char name[NAME];

    if (tn_node_user_count(node) > 0)
        fprintf(to, "tn_tensor *%s = ", graph_c_variable(w, node, name));
    else
        fputs("ok = ", to);
}

static void end_call(const tn_node *node, FILE *to)
{
    fputs(tn_node_user_count(node) > 0 ? ";" : " != NULL && ok;", to);
}

/* An operator with several results, or none. */
static tn_status put_several(writer *w, const tn_node *node, const wrapper *how)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));
    char name[NAME], item[NAME];
    bool any = false;
    piece line;

    graph_c_variable(w, node, name);
    for (int32_t i = 0; i < def->n_outputs; i++) {
        tn_node *at = tn_node_item(node, i);

        if (at != NULL && !tn_node_is_erased(at) && at != node)
            fprintf(w->to, "    tn_tensor *%s;\n", graph_c_variable(w, at, item));
        else
            fprintf(w->to, "    tn_tensor *%s_%d;\n", name, (int)i);
    }
    if (!piece_begin(&line))
        return graph_c_out_of_memory();
    fprintf(line.to, "ok = tn_%s(", how->function);
    put_inputs(w, line.to, node, &any);
    put_options(line.to, node, 0, how->needed, &any);
    for (int32_t i = 0; i < def->n_outputs; i++) {
        tn_node *at = tn_node_item(node, i);

        put_separator(line.to, &any);
        if (at != NULL && !tn_node_is_erased(at) && at != node)
            fprintf(line.to, "&%s", graph_c_variable(w, at, item));
        else
            fprintf(line.to, "&%s_%d", name, (int)i);
    }
    put_options(line.to, node, how->needed, option_count(node, how->needed), &any);
    fputs(") == TN_OK && ok;", line.to);
    return piece_end(&line, w->to, 4);
}

static tn_status put_op(writer *w, const tn_node *node)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));
    const wrapper *how = wrapper_of(node);
    bool inplace = tn_node_kind_of(node) == TN_NODE_INPLACE, any = false;
    int64_t last = tn_node_input_count(node) - 1;
    char name[NAME];
    piece line;

    if (how == NULL)
        return tn_error_last_code();
    if (list_of(def) >= 0)
        graph_c_list(w, node, "in", list_of(def), value_count(node));
    if (def->n_outputs != 1)
        return put_several(w, node, how);
    if (!piece_begin(&line))
        return graph_c_out_of_memory();
    begin_call(w, node, line.to);
    fprintf(line.to, "tn_%s%s(", how->function, inplace ? "_" : "");
    if (inplace && (def->flags & TN_OP_INTO) != 0) {
        any = true;
        fputs(argument(w, tn_node_input(node, last), name), line.to);
    }
    put_inputs(w, line.to, node, &any);
    put_options(line.to, node, 0, option_count(node, how->needed), &any);
    fputs(")", line.to);
    end_call(node, line.to);
    return piece_end(&line, w->to, 4);
}

/* Writes a struct `NODE_options` with the options that are not the default. Returns whether there
 * is one. */
static bool put_struct(writer *w, const tn_node *node)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));
    const void *options = tn_node_options(node);
    char name[NAME], upper[NAME];

    if (option_count(node, 0) == 0)
        return false;
    graph_c_variable(w, node, name);
    snprintf(upper, sizeof upper, "%s", def->name);
    for (char *at = upper; *at != '\0'; at++)
        *at = (char)toupper((unsigned char)*at);
    fprintf(w->to, "    tn_%s_options %s_options = TN_%s_OPTIONS;\n", def->name, name, upper);
    for (const tn_option *option = def->options; option->name != NULL; option++) {
        piece line;

        if (graph_c_is_default(option, options, def->defaults))
            continue;
        if (!piece_begin(&line))
            return w->failed = true;
        fprintf(line.to, "%s_options.%s = ", name, option->name);
        graph_c_option(line.to, option, options);
        fputs(";", line.to);
        w->failed |= piece_end(&line, w->to, 4) != TN_OK;
    }
    return true;
}

/* A call that writes into a tensor that is not its first input. */
static tn_status put_out(writer *w, const tn_node *node)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));
    int64_t count = tn_node_input_count(node) - 1;
    char name[NAME], into[NAME];
    bool options;
    piece line;

    if (wrapper_of(node) == NULL)
        return tn_error_last_code();
    graph_c_variable(w, node, name);
    fprintf(w->to, "    static tn_op_ref %s_op = { \"%s\", %u, NULL };\n", name, def->name,
            def->revision);
    graph_c_list(w, node, "in", 0, count);
    options = put_struct(w, node);
    if (!piece_begin(&line))
        return graph_c_out_of_memory();
    begin_call(w, node, line.to);
    fprintf(line.to, "tn_op_call1_into(&%s_op, %s_in, %lld, ", name, name, (long long)count);
    fprintf(line.to, options ? "&%s_options" : "NULL", name);
    fprintf(line.to, ", %s)", argument(w, tn_node_input(node, count), into));
    end_call(node, line.to);
    return piece_end(&line, w->to, 4);
}

static bool is_out_form(const tn_node *node)
{
    const tn_op_def *def = tn_op_definition(tn_node_op(node));

    return (def->flags & TN_OP_INTO) == 0 &&
           tn_node_input(node, 0) != tn_node_input(node, tn_node_input_count(node) - 1);
}

/* ---- the forward ----------------------------------------------------------------------------- */

static void put_slot(writer *w, const tn_node *node)
{
    char name[NAME];
    piece line;

    if (!piece_begin(&line)) {
        w->failed = true;
        return;
    }
    fprintf(line.to, "tn_tensor *%s = tn_module_find_tensor(self, ",
            graph_c_variable(w, node, name));
    if (tn_node_kind_of(node) == TN_NODE_CONSTANT) {
        char path[NAME + 32];

        snprintf(path, sizeof path, "_constants.%s", tn_node_target(node));
        graph_c_string(line.to, path);
    } else {
        graph_c_string(line.to, tn_node_target(node));
    }
    fputs(");", line.to);
    w->failed |= piece_end(&line, w->to, 4) != TN_OK;
}

static void put_input(writer *w, const tn_node *node, int64_t index)
{
    char name[NAME];

    graph_c_variable(w, node, name);
    if (tn_node_user_count(node) == 0 && !w->fixed) {
        if (!w->pack)
            fprintf(w->to, "    (void)%s;\n", name);
        return;
    }
    if (w->pack)
        fprintf(w->to, "    tn_tensor *%s = tn_pack_tensor(given, %lld);\n", name,
                (long long)index);
    if (w->fixed) { /* integers of the graph are those of these shapes */
        tn_meta meta;

        if (tn_node_meta(node, &meta) != TN_OK || meta.ndim < 0)
            return;
        fprintf(w->to, "    static const int64_t %s_shape[] = { ", name);
        for (int32_t i = 0; i < meta.ndim; i++)
            fprintf(w->to, "%s%lld", i > 0 ? ", " : "", (long long)meta.shape[i]);
        fprintf(w->to, "%s };\n", meta.ndim == 0 ? "0" : "");
        fprintf(w->to, "    ok = expect(\"%s\", %s, %s_shape, %d) && ok;\n", name, name, name,
                (int)meta.ndim);
    }
}

/* Switches the recording of gradients as the node needs it. */
static void put_recording(writer *w, bool no_grad)
{
    if (no_grad != w->no_grad)
        fputs(no_grad ? "    ok = tn_grad_begin(false) == TN_OK && ok;\n" : "    tn_grad_end();\n",
              w->to);
    w->no_grad = no_grad;
}

tn_status graph_c_node(writer *w, const tn_node *node, int64_t *inputs)
{
    switch (tn_node_kind_of(node)) {
    case TN_NODE_INPUT: put_input(w, node, (*inputs)++); return TN_OK;
    case TN_NODE_SLOT:
    case TN_NODE_CONSTANT:
        if (tn_node_user_count(node) > 0)
            put_slot(w, node);
        return TN_OK;
    case TN_NODE_OP:
    case TN_NODE_INPLACE:
        put_recording(w, tn_node_is_no_grad(node));
        return tn_node_kind_of(node) == TN_NODE_INPLACE && is_out_form(node) ? put_out(w, node)
                                                                             : put_op(w, node);
    case TN_NODE_ITEM: return TN_OK;
    case TN_NODE_OUTPUT: put_recording(w, false); return TN_OK;
    case TN_NODE_IF:
    case TN_NODE_LOOP: put_recording(w, tn_node_is_no_grad(node)); return graph_c_control(w, node);
    case TN_NODE_CALL:
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "tenon graph: node %s: the C form has no calls of modules; expected a graph "
                       "of operators, without --layers",
                       tn_node_name(node));
    default:
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "tenon graph: node %s: the C form has no such node; expected operators",
                       tn_node_name(node));
    }
}

static void put_return(writer *w, const tn_node *output)
{
    int64_t count = tn_node_input_count(output);
    char name[NAME];

    if (!w->pack) {
        graph_c_variable(w, tn_node_input(output, 0), name);
        if (w->inference)
            fprintf(w->to, "    return ok && expect_inference(%s) ? %s : NULL;\n", name, name);
        else
            fprintf(w->to, "    return ok ? %s : NULL;\n", name);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        graph_c_variable(w, tn_node_input(output, i), name);
        if (w->inference)
            fprintf(w->to, "    ok = ok && expect_inference(%s);\n", name);
        fprintf(w->to, "    ok = ok && add_result(results, %s);\n", name);
    }
    fputs("    return ok ? TN_OK : tn_error_last_code();\n", w->to);
}

static bool is_held(const tn_node *node)
{
    return tn_node_kind_of(node) == TN_NODE_SLOT || tn_node_kind_of(node) == TN_NODE_CONSTANT;
}

static bool uses_self(const tn_graph *graph)
{
    for (const tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        if (is_held(node) && tn_node_user_count(node) > 0)
            return true;
    return false;
}

tn_status graph_c_forward(writer *w)
{
    const tn_node *output = NULL;
    int64_t inputs = 0;
    char name[NAME];
    tn_status status = graph_c_blocks(w);

    if (status != TN_OK)
        return status;
    if (w->pack) {
        fprintf(w->to,
                "static tn_status %s_call(tn_module *self, const tn_pack *given, "
                "tn_pack *results)\n{\n",
                w->name);
    } else {
        const tn_node *input = tn_graph_first(w->graph);

        while (input != NULL && tn_node_kind_of(input) != TN_NODE_INPUT)
            input = tn_node_next(input);
        fprintf(w->to, "static tn_tensor *%s_forward(tn_module *self, tn_tensor *%s)\n{\n", w->name,
                input != NULL ? graph_c_variable(w, input, name) : "input");
    }
    fputs("    bool ok = true;\n", w->to);
    if (!w->train && !w->eval && !uses_self(w->graph))
        fputs("    (void)self;\n", w->to);
    if (w->train || w->eval)
        fprintf(w->to, "    ok = expect_mode(self, %s);\n", w->train ? "true" : "false");
    for (const tn_node *node = tn_graph_first(w->graph); node != NULL; node = tn_node_next(node)) {
        status = graph_c_node(w, node, &inputs);
        if (status != TN_OK)
            return status;
        output = node;
    }
    put_return(w, output);
    fputs("}\n\n", w->to);
    return w->failed ? graph_c_out_of_memory() : TN_OK;
}
