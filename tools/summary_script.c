/* SPDX-License-Identifier: MIT
 *
 * tenon summary of a script: its modules are not called, so the rows are those parts of its tree
 * whose operators the graph has, as the nodes say. */
#include <stdlib.h>
#include <string.h>

#include "summary.h"

typedef struct script {
    summary *s;
    tn_module *module;
} script;

/* Returns whether the path of a row is `path` or below it. If `path` is empty, no path is below it.
 */
static bool is_below(const row *r, const char *path, size_t length)
{
    return strlen(r->path) == length
               ? strncmp(r->path, path, length) == 0
               : length > 0 && strncmp(r->path, path, length) == 0 && r->path[length] == '.';
}

/* Returns the index of the row of a path, which it adds after the rows of its parent, if need be;
 * -1 without memory. */
static int64_t row_of(script *t, const char *path, size_t length)
{
    summary *s = t->s;
    size_t above = length;
    int64_t parent, at = s->count;
    row *r;

    for (int64_t i = 0; i < s->count; i++)
        if (strlen(s->rows[i].path) == length && strncmp(s->rows[i].path, path, length) == 0)
            return i;
    while (above > 0 && path[above - 1] != '.')
        above--;
    if (length > 0) {
        parent = row_of(t, path, above > 0 ? above - 1 : 0);
        if (parent < 0)
            return -1;
        for (at = parent + 1;
             at < s->count && above > 0 && is_below(&s->rows[at], path, above - 1);)
            at++;
        at = above > 0 ? at : s->count;
        s->rows[parent].leaf = false;
    }
    summary_grow(s);
    if (s->failed)
        return -1;
    memmove(&s->rows[at + 1], &s->rows[at], (size_t)(s->count - at) * sizeof *r);
    s->count++;
    r = &s->rows[at];
    *r = (row){ .path = strndup(path, length), .leaf = true };
    s->failed = r->path == NULL;
    if (s->failed)
        return -1;
    for (const char *dot = r->path; *dot != '\0'; dot++)
        r->depth += *dot == '.';
    r->depth += length > 0;
    snprintf(r->name, sizeof r->name, "%s", r->path + above);
    r->module = length > 0 ? tn_module_find(t->module, r->path) : t->module;
    r->type = r->module != NULL ? tn_script_original(r->module) : NULL;
    if (r->type == NULL) { /* the graph was made by hand, with paths that are not in the tree */
        tn_error_clear();
        r->type = "?";
    } else {
        tn_module_each_tensor(r->module, TN_SLOT_PARAMETER, false, summary_add_own, &r->parameters);
    }
    return at;
}

/* Replaces the results of a row. */
static void set_results(row *r, tn_tensor *const *out, int64_t count)
{
    size_t at = 0;

    r->shape[0] = '\0';
    r->bytes = 0;
    for (int64_t i = 0; i < count; i++) {
        tn_value value = tn_value_tensor(out[i]);

        summary_add_result(r, &at, &value);
    }
}

static tn_status run_node(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                          tn_tensor **out, int64_t n_out)
{
    script *t = user;
    const char *path = tn_node_path(node);
    int64_t index = row_of(t, path != NULL ? path : "", path != NULL ? strlen(path) : 0);
    tn_status status;

    if (index < 0)
        return tn_fail(TN_ERR_MEMORY, "table: out of memory");
    t->s->stack[0] = index;
    t->s->depth = 1;
    summary_settle(t->s);
    status = tn_node_run(node, in, n_in, out, n_out);
    summary_settle(t->s);
    /* The last result of a part is, so far, also the result of its container. */
    for (int64_t i = index; status == TN_OK && i >= 0; i--)
        if (i == index ||
            is_below(&t->s->rows[index], t->s->rows[i].path, strlen(t->s->rows[i].path)))
            set_results(&t->s->rows[i], out, n_out);
    return status;
}

tn_status summary_of_script(tn_module *module, const tn_pack *input, summary *s)
{
    script t = { s, module };
    tn_graph *graph = tn_graph_copy(tn_script_graph(module, tn_module_is_training(module)));
    int64_t n_in = tn_pack_count(input), n_out = graph != NULL ? tn_graph_output_count(graph) : 0;
    tn_tensor **in = calloc((size_t)n_in + 1, sizeof(tn_tensor *));
    tn_tensor **out = calloc((size_t)n_out + 1, sizeof(tn_tensor *));
    tn_status status = graph == NULL               ? tn_error_last_code()
                       : in == NULL || out == NULL ? tn_fail(TN_ERR_MEMORY, "table: out of memory")
                                                   : TN_OK;

    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        in[i] = tn_pack_at(input, i).as.tensor;
    if (status == TN_OK && row_of(&t, "", 0) < 0)
        status = tn_fail(TN_ERR_MEMORY, "table: out of memory");
    if (status == TN_OK)
        status = tn_graph_run_with(graph, in, n_in, out, n_out, run_node, &t);
    if (status == TN_OK)
        set_results(&s->rows[0], out, n_out);
    free(in);
    free(out);
    tn_graph_drop(graph);
    return status;
}
