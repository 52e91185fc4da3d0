/* SPDX-License-Identifier: MIT
 *
 * Prepares a graph for a writer (graph.h): operators without a rule become those of their
 * decompositions. */
#include "export/graph.h"
#include "export/export.h"

#include <string.h>

enum { DEEPEST = 32, LISTED = 3000 };

const tn_op_def *export_def(const tn_node *node)
{
    return tn_op_definition(tn_node_op(node));
}

const void *export_option(const tn_node *node, const char *name)
{
    const tn_op_def *def = export_def(node);
    const char *options = tn_node_options(node);

    for (const tn_option *row = def->options; options && row && row->name; row++)
        if (strcmp(row->name, name) == 0)
            return options + row->offset;
    return NULL;
}

/* ---- operators without a rule ---------------------------------------------------------------- */

struct missing {
    char text[LISTED];
    size_t length;
    int64_t count; /* of different operators */
};

/* Adds an operator to the list, with the module that calls it first. */
static void list(struct missing *missing, const tn_node *node, const char *why)
{
    const char *name = tn_node_target(node), *path = tn_node_path(node);
    char entry[300], found[120];

    tn_snprint(found, sizeof found, "\n  %s ", name);
    if (strstr(missing->text, found) != NULL)
        return;
    missing->count++;
    tn_snprint(entry, sizeof entry, "%s%s%.150s%s", found, path != NULL && path[0] ? "in " : "",
               path != NULL ? path : "", why);
    if (missing->length + strlen(entry) < sizeof missing->text) {
        tn_snprint(missing->text + missing->length, sizeof missing->text - missing->length, "%s",
                   entry);
        missing->length += strlen(entry);
    }
}

static bool draws(const tn_node *node, const tn_op_def *def)
{
    const double *p;

    if ((def->flags & TN_OP_RANDOM) == 0)
        return false;
    p = export_option(node, "dropout_p");
    return p == NULL || *p > 0;
}

/* Replaces the calls without a rule once. Returns the number of calls that were replaced, -1 after
 * a failure. */
static int64_t expand(struct export_graph *g, export_known_fn *known, struct missing *missing)
{
    int64_t changed = 0;

    for (tn_node *node = tn_graph_first(g->graph), *next; node != NULL; node = next) {
        tn_node_kind kind = tn_node_kind_of(node);
        uint64_t mark = tn_error_mark();

        next = tn_node_next(node);
        if (kind == TN_NODE_IF || kind == TN_NODE_LOOP || kind == TN_NODE_REGION) {
            list(missing, node, " (control flow or compiled code)");
        } else if (kind == TN_NODE_OP && !known(node)) {
            const tn_op_def *def = export_def(node);

            while (next != NULL && tn_node_kind_of(next) == TN_NODE_ITEM)
                next = tn_node_next(next);
            if (def->decompose == NULL || def->decompose_dtypes != 0 || draws(node, def)) {
                list(missing, node, draws(node, def) ? " (draws random numbers)" : "");
            } else if (g->n_symbols > 0) {
                list(missing, node, " (only for fixed sizes)");
            } else if (tn_node_expand(node) == TN_OK) {
                changed++;
            } else if (tn_error_last_code() == TN_ERR_MEMORY) {
                return -1;
            } else {
                tn_error_restore(mark);
                list(missing, node, "");
            }
        }
    }
    return changed;
}

static tn_status expand_all(struct export_graph *g, export_known_fn *known)
{
    struct missing missing = { .text = "" };
    int64_t changed = 1;

    for (int i = 0; changed > 0 && i < DEEPEST; i++) {
        missing.length = 0;
        missing.count = 0;
        missing.text[0] = '\0';
        changed = expand(g, known, &missing);
    }
    if (changed < 0)
        return tn_error_last_code();
    if (missing.count > 0)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: %lld operators cannot be written in this format:%s\nexpected operators "
                       "that the format has, or with a decomposition into such",
                       g->path, (long long)missing.count, missing.text);
    return tn_graph_dead_code(g->graph) < 0 ? tn_error_last_code() : TN_OK;
}

/* ---- the graph ------------------------------------------------------------------------------- */

bool export_is_script(const tn_module *module)
{
    uint64_t mark = tn_error_mark();
    bool is = tn_script_original(module) != NULL;

    tn_error_restore(mark);
    return is;
}

tn_status export_graph_open(struct export_graph *g, tn_module *script, bool training,
                            const char *path, export_known_fn *known)
{
    const tn_graph *graph = tn_script_graph(script, training);
    tn_status status;

    *g = (struct export_graph){ .path = path, .script = script };
    if (graph == NULL)
        return tn_error_code() != TN_OK
                   ? tn_error_last_code()
                   : tn_fail(TN_ERR_REFUSED, "%s: the script has no graph for %s; expected one",
                             path, training ? "training" : "evaluation");
    g->graph = tn_graph_copy(graph);
    status = g->graph != NULL ? export_sizes_read(g) : tn_error_last_code();
    if (status == TN_OK)
        status = export_plain(g);
    if (status == TN_OK)
        status = expand_all(g, known);
    return status == TN_OK ? export_sizes_read(g) : status;
}

void export_graph_close(struct export_graph *g)
{
    tn_graph_drop(g->graph);
    tn_free(g->text);
    names_free(&g->types);
    names_free(&g->options);
    arena_free(&g->arena);
}
