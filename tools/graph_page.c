/* SPDX-License-Identifier: MIT
 *
 * A page that shows a graph: the nodes in their order, in boxes for the modules that call them,
 * with dtypes, shapes and times, and the memory of a plan over its steps. It refers to no other
 * file and is complete without its script. */
#include "graph_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const unsigned char tn_embed_graph_style[], tn_embed_graph_script[];

enum { RUNS = 3, DEEP = 32, TEXT = 1024, NAMES = 8, HUES = 6 };

/* ---- text ------------------------------------------------------------------------------------ */

static void put(const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<': fputs("&lt;", stdout); break;
        case '>': fputs("&gt;", stdout); break;
        case '&': fputs("&amp;", stdout); break;
        case '"': fputs("&quot;", stdout); break;
        default: putchar(*text); break;
        }
}

static void put_bytes(int64_t bytes)
{
    char text[32];

    bytes_text(bytes, text, sizeof text);
    put(text);
}

/* ---- times ----------------------------------------------------------------------------------- */

/* The least time of each node that computes something, in the order of the graph. */
typedef struct times {
    tn_node **nodes;
    double *least;
    int64_t count, next;
    int run;
} times;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tn_status run_node(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                          tn_tensor **out, int64_t n_out)
{
    times *t = user;
    double begin = now(), took;
    tn_status status = tn_node_run(node, in, n_in, out, n_out);

    if (status == TN_OK && n_out > 0)
        status = tn_device_sync(tn_tensor_device(out[0]));
    took = now() - begin;
    if (t->run == 0 || took < t->least[t->next])
        t->least[t->next] = took;
    t->nodes[t->next++] = node;
    return status;
}

static tn_status measure(times *t, tn_graph *graph, tn_tensor *const *in, int64_t n_in)
{
    tn_tensor **out = calloc((size_t)tn_graph_output_count(graph) + 1, sizeof(tn_tensor *));
    tn_status status = tn_grad_begin(false);
    int64_t count = 1;

    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        count++;
    t->nodes = calloc((size_t)count, sizeof(tn_node *));
    t->least = calloc((size_t)count, sizeof *t->least);
    if (out == NULL || t->nodes == NULL || t->least == NULL)
        status = tn_fail(TN_ERR_MEMORY, "tenon graph: out of memory");
    for (t->run = 0; t->run < RUNS && status == TN_OK; t->run++) {
        TN_SCOPE;
        t->next = 0;
        status = tn_graph_run_with(graph, in, n_in, out, tn_graph_output_count(graph), run_node, t);
        t->count = t->next;
    }
    tn_grad_end();
    free(out);
    return status;
}

static double time_of(const times *t, const tn_node *node)
{
    for (int64_t i = 0; i < t->count; i++)
        if (t->nodes[i] == node)
            return t->least[i];
    return -1;
}

static double longest(const times *t)
{
    double most = 0;

    for (int64_t i = 0; i < t->count; i++)
        most = t->least[i] > most ? t->least[i] : most;
    return most;
}

static double total(const times *t)
{
    double sum = 0;

    for (int64_t i = 0; i < t->count; i++)
        sum += t->least[i];
    return sum;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int64_t bytes_of(const tn_node *node)
{
    tn_meta meta;
    int64_t bytes;

    if (tn_node_meta(node, &meta) != TN_OK || meta.ndim < 0)
        return 0;
    bytes = (int64_t)tn_dtype_size(meta.dtype);
    for (int32_t d = 0; d < meta.ndim; d++)
        bytes *= meta.shape[d];
    return bytes;
}

static void put_type(const tn_node *node)
{
    tn_meta meta;

    if (tn_node_meta(node, &meta) != TN_OK || meta.ndim < 0) {
        fputs("?", stdout);
        return;
    }
    printf("%s[", tn_dtype_name(meta.dtype));
    for (int32_t d = 0; d < meta.ndim; d++)
        printf("%s%" PRId64, d > 0 ? ", " : "", meta.shape[d]);
    fputs("]", stdout);
}

static bool is_leaf(const tn_node *node)
{
    tn_node_kind kind = tn_node_kind_of(node);

    return kind == TN_NODE_SLOT || kind == TN_NODE_CONSTANT;
}

/* Returns the node that is shown for an operand. For one output of an operator this is the
 * operator. */
static const tn_node *shown(const tn_node *node)
{
    return tn_node_kind_of(node) == TN_NODE_ITEM ? tn_node_input(node, 0) : node;
}

static void put_call(const tn_node *node);

/* The graphs of a node with blocks, in tables that can be opened. */
static void put_blocks(const tn_node *node, const char *const *names)
{
    printf("<b>%s</b>", tn_node_target(node));
    for (int i = 0; i < 2; i++) {
        printf("<details class=\"block\"><summary>%s</summary><table><tbody>\n", names[i]);
        for (const tn_node *at = tn_graph_first(tn_node_block(node, i)); at != NULL;
             at = tn_node_next(at)) {
            if (tn_node_kind_of(at) == TN_NODE_ITEM)
                continue;
            printf("<tr><td class=\"name\">%s</td><td class=\"call\">", tn_node_name(at));
            put_call(at);
            fputs("</td><td>", stdout);
            for (int64_t k = 0; k < tn_node_input_count(at); k++) {
                const tn_node *in = tn_node_input(at, k);

                printf("%s%s", k > 0 ? " " : "", in == TN_NODE_NONE ? "none" : tn_node_name(in));
            }
            fputs("</td><td class=\"type\">", stdout);
            for (int64_t k = 0; k < tn_node_item_count(at); k++) {
                fputs(k > 0 ? "<br>" : "", stdout);
                put_type(tn_node_item(at, k));
            }
            fputs("</td></tr>\n", stdout);
        }
        fputs("</tbody></table></details>", stdout);
    }
}

/* Writes what the node calls, with its options. */
static void put_call(const tn_node *node)
{
    static const char *const branches[] = { "then", "else" }, *const parts[] = { "test", "body" };
    char text[TEXT] = "";

    switch (tn_node_kind_of(node)) {
    case TN_NODE_INPUT: fputs("input", stdout); return;
    case TN_NODE_OUTPUT: fputs("output", stdout); return;
    case TN_NODE_CALL: put(tn_module_type(tn_node_module(node))); return;
    case TN_NODE_REGION: put(tn_node_compiler(node)); return;
    case TN_NODE_IF: put_blocks(node, branches); return;
    case TN_NODE_LOOP: put_blocks(node, parts); return;
    default: break;
    }
    if (tn_node_spec(node, text, sizeof text) >= 0) {
        char *options = strchr(text, '(');

        if (options != NULL)
            *options = '\0';
        printf("<b>%s%s</b>", text, tn_node_kind_of(node) == TN_NODE_INPLACE ? "_" : "");
        if (options != NULL && strcmp(options + 1, ")") != 0) {
            fputs(" <small>(", stdout);
            put(options + 1);
            fputs("</small>", stdout);
        }
    }
    tn_error_clear();
}

static void put_operands(const tn_node *node)
{
    for (int64_t i = 0; i < tn_node_input_count(node); i++) {
        const tn_node *in = tn_node_input(node, i);

        if (i > 0)
            fputs(" ", stdout);
        if (in == TN_NODE_NONE) {
            fputs("<i>none</i>", stdout);
        } else if (is_leaf(in)) {
            const char *target = tn_node_target(in), *dot = strrchr(target, '.');

            fputs("<span class=\"slot\" title=\"", stdout);
            put(target);
            fputs(" : ", stdout);
            put_type(in);
            fputs("\">", stdout);
            put(dot != NULL ? dot + 1 : target);
            fputs("</span>", stdout);
        } else {
            const char *name = tn_node_name(shown(in));

            printf("<a href=\"#n-%s\">%s</a>", name, tn_node_name(in));
        }
    }
}

static void put_row(const tn_node *node, const times *t, double most)
{
    double took = time_of(t, node);
    int64_t bytes = 0;

    printf("<tr id=\"n-%s\"><td class=\"name\">%s</td><td class=\"call\">", tn_node_name(node),
           tn_node_name(node));
    put_call(node);
    fputs("</td><td class=\"in\">", stdout);
    put_operands(node);
    fputs("</td><td class=\"type\">", stdout);
    for (int64_t i = 0; i < tn_node_item_count(node); i++) {
        fputs(i > 0 ? "<br>" : "", stdout);
        put_type(tn_node_item(node, i));
        bytes += bytes_of(tn_node_item(node, i));
    }
    fputs("</td><td class=\"size\">", stdout);
    if (bytes > 0)
        put_bytes(bytes);
    fputs("</td><td class=\"time\">", stdout);
    if (took >= 0)
        printf("<span class=\"bar\" style=\"width:%.1f%%\"></span><span>%.1f</span>",
               most > 0 ? 100 * took / most : 0, 1e6 * took);
    fputs("</td></tr>\n", stdout);
}

/* ---- boxes of modules ------------------------------------------------------------------------ */

typedef struct boxes {
    char path[TEXT]; /* that of the open boxes */
    int depth;
    bool table; /* a table is open in the innermost box */
} boxes;

static void close_table(boxes *b)
{
    if (b->table)
        fputs("</tbody></table>", stdout);
    b->table = false;
}

static void open_table(boxes *b)
{
    if (!b->table)
        fputs("<table><tbody>\n", stdout);
    b->table = true;
}

/* Returns the length of the part of `path` that `open` begins with, in whole names. */
static size_t common(const char *open, const char *path)
{
    size_t at = 0, last = 0;

    while (open[at] != '\0' && open[at] == path[at]) {
        at++;
        if (open[at] == '.' && path[at] == '.')
            last = at;
    }
    if ((open[at] == '\0' || open[at] == '.') && (path[at] == '\0' || path[at] == '.'))
        last = at;
    return last;
}

static int names_in(const char *path)
{
    int count = path[0] != '\0';

    for (; *path != '\0'; path++)
        count += *path == '.';
    return count;
}

/* Opens and closes boxes, so that those of the names of `path` are open. */
static void go_to(boxes *b, const char *path)
{
    size_t keep = common(b->path, path);
    const char *at = path + keep;

    if (strcmp(b->path, path) == 0)
        return;
    close_table(b);
    for (int close = names_in(b->path + keep + (b->path[keep] == '.')); close > 0; close--) {
        fputs("</details>\n", stdout);
        b->depth--;
    }
    at += *at == '.';
    while (*at != '\0' && b->depth < DEEP) {
        size_t length = strcspn(at, ".");
        char name[TEXT];

        snprintf(name, sizeof name, "%.*s", (int)length, at);
        printf("<details open class=\"hue%d\"><summary>", b->depth % HUES);
        put(name);
        fputs("</summary>\n", stdout);
        b->depth++;
        at += length + (at[length] == '.');
    }
    snprintf(b->path, sizeof b->path, "%s", path);
}

/* Returns the path under which a node is shown. A node without a path is shown under that of the
 * node before it. */
static const char *place_of(const tn_node *node, const boxes *b)
{
    const char *path = tn_node_path(node);
    tn_node_kind kind = tn_node_kind_of(node);

    if (kind == TN_NODE_INPUT || kind == TN_NODE_OUTPUT)
        return "";
    if (path == NULL || strlen(path) >= sizeof b->path || names_in(path) > DEEP) {
        tn_error_clear();
        return b->path;
    }
    return path;
}

static void put_nodes(const tn_graph *graph, const times *t)
{
    boxes b = { .path = "" };
    double most = longest(t);

    fputs("<section id=\"graph\"><svg id=\"edges\" aria-hidden=\"true\"></svg>\n", stdout);
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node)) {
        if (is_leaf(node) || tn_node_kind_of(node) == TN_NODE_ITEM)
            continue;
        go_to(&b, place_of(node, &b));
        open_table(&b);
        put_row(node, t, most);
    }
    go_to(&b, "");
    close_table(&b);
    fputs("</section>\n", stdout);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A rectangle for each value: the steps from left to right, the memory from top to bottom. */
static tn_status put_values(tn_plan *plan, const tn_plan_stats *stats)
{
    tn_plan_value value;
    tn_status status = TN_OK;

    printf("<svg id=\"memory\" viewBox=\"0 0 1000 260\" preserveAspectRatio=\"none\" role=\"img\" "
           "aria-label=\"memory of the values over the steps\">");
    for (int64_t i = 0; i < stats->values && status == TN_OK; i++) {
        double x = 1000.0 / (double)stats->steps, y = 260.0 / (double)stats->bytes;

        status = tn_plan_value_at(plan, i, &value);
        if (status != TN_OK)
            break;
        printf("<rect class=\"hue%d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>",
               (int)(i % HUES), x * (double)value.first, y * (double)value.offset,
               x * (double)(value.last - value.first + 1), y * (double)value.bytes);
        put(value.node);
        fputs(": ", stdout);
        put_bytes(value.bytes);
        printf(", steps %" PRId64 " to %" PRId64 "</title></rect>", value.first, value.last);
    }
    fputs("</svg>\n", stdout);
    return status;
}

static tn_status put_memory(const tn_graph *graph)
{
    tn_plan *plan = tn_plan_new(graph, NULL);
    tn_plan_stats stats;
    tn_status status = TN_OK;

    fputs("<h2>Memory of a plan</h2>\n", stdout);
    if (plan == NULL) {
        fputs("<p>There is no plan: ", stdout);
        put(tn_error_text());
        fputs("</p>\n", stdout);
        tn_error_clear();
        return TN_OK;
    }
    status = tn_plan_describe(plan, &stats);
    if (status == TN_OK) {
        printf("<p>%" PRId64 " steps. The values between them need ", stats.steps);
        put_bytes(stats.bytes);
        fputs("; the lower bound is ", stdout);
        put_bytes(stats.bytes_least);
        fputs(", without sharing it would be ", stdout);
        put_bytes(stats.bytes_apart);
        fputs(". Steps go from left to right, memory from top to bottom.</p>\n", stdout);
        if (stats.bytes > 0)
            status = put_values(plan, &stats);
    }
    tn_plan_drop(plan);
    return status;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_head(const graph_page *page, const times *t)
{
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
          "name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>",
          stdout);
    put(page->model);
    fputs("</title><style>\n", stdout);
    fputs((const char *)tn_embed_graph_style, stdout);
    fputs("</style></head><body>\n<h1>", stdout);
    put(page->model);
    fputs("</h1>\n<p>Input ", stdout);
    put(page->inputs);
    printf(", %s mode", page->train ? "training" : "evaluation");
    if (page->passes != NULL) {
        fputs("; passes: ", stdout);
        put(page->passes);
    }
    printf(". %" PRId64
           " nodes compute something, in %.3f ms on %s. A time is the least of %d runs "
           "of the node by itself, in microseconds.</p>\n",
           t->count, 1e3 * total(t), tn_device_name(tn_default_device()), RUNS);
}

static void put_report(const tn_graph *graph)
{
    char text[4096];

    if (tn_graph_report(graph, text, sizeof text) <= 0)
        return;
    fputs("<pre>", stdout);
    put(text);
    fputs("</pre>\n", stdout);
}

tn_status graph_page_write(const graph_page *page, tn_graph *graph, tn_tensor *const *in,
                           int64_t n_in)
{
    times t = { .count = 0 };
    tn_status status = measure(&t, graph, in, n_in);

    if (status == TN_OK) {
        put_head(page, &t);
        put_report(graph);
        put_nodes(graph, &t);
        status = put_memory(graph);
        fputs("<script>\n", stdout);
        fputs((const char *)tn_embed_graph_script, stdout);
        fputs("</script></body></html>\n", stdout);
    }
    free(t.nodes);
    free(t.least);
    return status;
}
