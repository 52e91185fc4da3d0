/* SPDX-License-Identifier: MIT
 *
 * The C form of graphs: one source file, in which a function makes the module. Everything is
 * written into memory first, so that a failure leaves nothing half written. */
#include "graph_c.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether the first line of a graph's text has this word after the inputs. */
static bool has_word(const char *line, const char *word)
{
    const char *at = strstr(line, "# tenon.graph ");
    size_t length = strlen(word);

    for (at = at != NULL ? strchr(at, ',') : NULL; at != NULL; at = strchr(at + 1, ','))
        if (strncmp(at + 2, word, length) == 0 && strchr(",(", at[2 + length]) != NULL)
            return true; /* a parenthesis: paths of modules follow */
    return false;
}

/* Reads what the graph is for, which only its text says. */
static tn_status read_words(writer *w)
{
    int64_t length = tn_graph_print(w->graph, "text", NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;

    if (length < 0)
        return tn_error_last_code();
    if (text == NULL)
        return graph_c_out_of_memory();
    if (tn_graph_print(w->graph, "text", text, (size_t)length + 1) < 0) {
        free(text);
        return tn_error_last_code();
    }
    text[strcspn(text, "\n")] = '\0';
    w->train = has_word(text, "train");
    w->eval = has_word(text, "eval");
    w->fixed = has_word(text, "fixed") || has_word(text, "typed");
    w->folded = has_word(text, "folded");
    w->inference = has_word(text, "inference");
    free(text);
    w->eval &= !w->train;
    return TN_OK;
}

const char *graph_c_type(tn_module *module)
{
    uint64_t mark = tn_error_mark();
    const char *type = tn_script_original(module);

    tn_error_restore(mark);
    return type != NULL ? type : tn_module_type(module);
}

/* Makes the name of the functions from the type of the module. */
static void name_functions(writer *w)
{
    size_t length = 0;

    if (isdigit((unsigned char)w->type[0]))
        w->name[length++] = 'n';
    for (const char *at = w->type; *at != '\0' && length + 16 < NAME; at++)
        w->name[length++] = isalnum((unsigned char)*at) ? (char)tolower((unsigned char)*at) : '_';
    w->name[length] = '\0';
}

static int count_inputs(const tn_graph *graph)
{
    return (int)tn_graph_input_count(graph);
}

static void put_input_types(const writer *w)
{
    for (tn_node *node = tn_graph_first(w->graph); node != NULL; node = tn_node_next(node)) {
        tn_meta meta;

        if (tn_node_kind_of(node) != TN_NODE_INPUT || tn_node_meta(node, &meta) != TN_OK)
            continue;
        fprintf(w->to, " *   %s: %s [", tn_node_name(node), tn_dtype_name(meta.dtype));
        for (int32_t i = 0; i < meta.ndim; i++)
            fprintf(w->to, "%s%lld", i > 0 ? ", " : "", (long long)meta.shape[i]);
        fputs("]\n", w->to);
    }
}

/* The model may be any text, so what could end or begin a comment is left out. */
static void put_comment(const writer *w)
{
    int column = 3;
    char last = ' ';

    fputs("/* ", w->to);
    for (const char *at = w->model; *at != '\0'; at++) {
        bool wrap = *at == ' ' && column > 72;

        if (wrap)
            fputs("\n *", w->to);
        if (wrap)
            last = ' ';
        if (isprint((unsigned char)*at) && !(last == '*' && *at == '/') &&
            !(last == '/' && *at == '*')) {
            putc(*at, w->to);
            last = *at;
        }
        column = wrap ? 4 : column + 1;
    }
    fprintf(w->to,
            " as C,\n * written by tenon graph of Tenon %s.\n"
            " *\n"
            " *     tn_module *net = %s_new();\n"
            "%s"
            " *\n"
            " * makes a module without layers, %s, whose forward calls operators. %s\n"
            " * Compile with `pkg-config --cflags --libs tenon`. Inputs of the trace:\n",
            tn_version(), w->name,
            w->folded ? "" : " *     tn_module_load(net, \"weights.safetensors\");\n",
            w->train ? "for training" : "for evaluation",
            w->folded ? "Values of\n * weights are in this file, because passes have used them."
                      : "The tensors\n * have the paths of the original, and are zero until they "
                        "are loaded.");
    put_input_types(w);
    fputs(" */\n#include <math.h>\n\n#include <tenon/tenon.h>\n\n", w->to);
    fprintf(w->to, "tn_module *%s_new(void);\n\n", w->name);
}

tn_status graph_c_write(const char *model, tn_module *module, const tn_graph *graph)
{
    writer w = { .graph = graph, .module = module, .model = model };
    piece file;
    tn_status status;

    w.type = graph_c_type(module);
    name_functions(&w);
    w.pack = count_inputs(graph) != 1 || tn_graph_output_count(graph) != 1;
    status = read_words(&w);
    if (status != TN_OK)
        return status;
    if (!piece_begin(&file))
        return graph_c_out_of_memory();
    w.to = file.to;
    put_comment(&w);
    status = graph_c_module(&w);
    free((void *)w.blocks);
    free(w.most);
    if ((ferror(file.to) != 0) + (fclose(file.to) != 0) > 0 && status == TN_OK)
        status = graph_c_out_of_memory();
    if (status == TN_OK && fputs(file.text, stdout) < 0)
        status = tn_fail(TN_ERR_IO, "standard output: cannot be written");
    free(file.text);
    return status;
}
