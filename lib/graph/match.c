/* SPDX-License-Identifier: MIT
 *
 * Finds the places where a graph computes a pattern, and replaces them. */
#include "core/base/vector.h"
#include "lib/graph/private.h"

enum { DEEPEST = 32, MOST = 256 };

/* A pattern: a call of an operator, or a name that stands for any value. */
struct expr {
    const char *name; /* NULL: a call. "" stands for an absent input */
    int index;        /* of the name in search.names and search.bound */
    const tn_op *op;
    const tn__spec *options; /* only the named arguments */
    struct expr **args;
    int64_t count;
};

struct search {
    tn_graph *graph;
    tn__arena *arena;
    tn__spec *specs[2 * MOST]; /* to be freed */
    int n_specs;
    const char *names[MOST];
    int n_names;
    tn_node *bound[MOST];   /* the values that the names stand for */
    tn_node *matched[MOST]; /* the calls of the match, the root first */
    int n_matched;
    uint8_t *used; /* by the id of a node: whether an earlier match has it */
    int64_t limit; /* nodes with this id or a larger one are replacements */
};

/* ---- reading a pattern ----------------------------------------------------------------------- */

static struct expr *read_expr(struct search *s, const char *text, int depth);

static struct expr *name_expr(struct search *s, const char *name)
{
    struct expr *expr = tn__arena_alloc(s->arena, sizeof *expr);
    int i = 0;

    if (expr == NULL)
        return NULL;
    *expr = (struct expr){ .name = name };
    while (i < s->n_names && strcmp(s->names[i], name) != 0)
        i++;
    if (i >= MOST) {
        tn_fail(TN_ERR_VALUE, "tn_graph_replace: pattern: too many names; expected at most %d",
                MOST);
        return NULL;
    }
    s->names[i] = name;
    s->n_names += i == s->n_names;
    expr->index = i;
    return expr;
}

static struct expr *argument(struct search *s, const tn_value *value, int depth)
{
    static const char none[] = "";

    if (value->kind == TN_VALUE_STRING)
        return name_expr(s, value->as.s);
    if (value->kind == TN_VALUE_SPEC)
        return read_expr(s, value->as.s, depth + 1);
    if (value->kind == TN_VALUE_NONE) {
        struct expr *expr = tn__arena_alloc(s->arena, sizeof *expr);

        if (expr != NULL)
            *expr = (struct expr){ .name = none };
        return expr;
    }
    tn_fail(TN_ERR_VALUE,
            "tn_graph_replace: pattern: wrong argument, got %s; expected a name, a call or None, "
            "and options by name",
            tn__value_kind_name(value->kind));
    return NULL;
}

static struct expr *read_expr(struct search *s, const char *text, int depth)
{
    tn__spec *spec = depth < DEEPEST && s->n_specs < 2 * MOST ? tn__spec_parse(text) : NULL;
    struct expr *expr;

    if (spec == NULL) {
        if (depth >= DEEPEST || s->n_specs >= 2 * MOST)
            tn_fail(TN_ERR_VALUE,
                    "tn_graph_replace: pattern: too large; expected at most %d levels and %d calls",
                    DEEPEST, 2 * MOST);
        return NULL;
    }
    s->specs[s->n_specs++] = spec;
    if (strchr(text, '(') == NULL) /* a name alone */
        return name_expr(s, spec->type);
    expr = tn__arena_alloc(s->arena, sizeof *expr);
    if (expr == NULL)
        return NULL;
    *expr = (struct expr){ .options = spec, .op = tn_op_find(spec->type, 0) };
    expr->args = tn__arena_alloc(s->arena, ((size_t)spec->count + 1) * sizeof(struct expr *));
    if (expr->op == NULL || expr->args == NULL)
        return NULL;
    if (expr->op->def.n_outputs != 1) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "tn_graph_replace: pattern: operator %s has %d outputs; expected one", spec->type,
                (int)expr->op->def.n_outputs);
        return NULL;
    }
    for (int64_t i = 0; i < spec->count; i++)
        if (spec->names[i] == NULL &&
            (expr->args[expr->count++] = argument(s, &spec->values[i], depth)) == NULL)
            return NULL;
    return expr;
}

/* ---- matching -------------------------------------------------------------------------------- */

/* Appends the options of a pattern as arguments. */
static void put_options(tn__text *text, const struct expr *expr)
{
    bool first = true;

    for (int64_t i = 0; i < expr->options->count; i++)
        if (expr->options->names[i] != NULL) {
            tn__text_add(text, "%s%s=", first ? "" : ", ", expr->options->names[i]);
            tn__value_print(&expr->options->values[i], text);
            first = false;
        }
}

/* Returns whether a node has the options that the pattern names. */
static bool options_match(const struct expr *expr, const tn_node *node)
{
    const tn_op_def *def = &expr->op->def;
    bool same = true;

    for (int64_t i = 0; i < expr->options->count && same; i++) {
        const char *name = expr->options->names[i];
        tn_pack *pack = name != NULL ? tn_pack_new() : NULL;
        const tn_option *row = def->options != NULL && name != NULL
                                   ? tn__options_find(def->options, name)
                                   : NULL;
        tn__text a = { 0 }, b = { 0 };

        if (name == NULL)
            continue;
        same = row != NULL && pack != NULL && tn__options_get(row, node->options, pack) == TN_OK &&
               tn_pack_count(pack) == 1;
        if (same) {
            tn_value value = tn_pack_at(pack, 0);

            tn__value_print(&value, &a);
            tn__value_print(&expr->options->values[i], &b);
            same = !a.failed && !b.failed && a.length == b.length &&
                   memcmp(a.at, b.at, a.length) == 0;
        }
        tn__text_free(&a);
        tn__text_free(&b);
        tn_pack_drop(pack);
    }
    return same;
}

static bool match(struct search *s, const struct expr *expr, tn_node *node)
{
    if (expr->name != NULL && expr->name[0] == '\0')
        return tn__graph_is_none(node);
    if (expr->name != NULL) {
        if (tn__graph_is_none(node) ||
            (s->bound[expr->index] != NULL && s->bound[expr->index] != node))
            return false;
        s->bound[expr->index] = node;
        return true;
    }
    if (tn__graph_is_none(node) || node->kind != TN_NODE_OP || node->op != expr->op ||
        node->n_in != expr->count || node->writes != 0 || node->id >= s->limit ||
        s->used[node->id] || s->n_matched >= MOST || !options_match(expr, node))
        return false;
    s->matched[s->n_matched++] = node;
    for (int64_t i = 0; i < expr->count; i++)
        if (!match(s, expr->args[i], node->in[i]))
            return false;
    return true;
}

static bool is_matched(const struct search *s, const tn_node *node)
{
    for (int i = 0; i < s->n_matched; i++)
        if (s->matched[i] == node)
            return true;
    return false;
}

/* Returns whether a match can be replaced: no inner value is used elsewhere, and no other node
 * between its first node and its last writes or calls a module. */
static bool is_closed(const struct search *s)
{
    int left = s->n_matched;

    for (int i = 1; i < s->n_matched; i++)
        for (int64_t k = 0; k < s->matched[i]->n_users; k++)
            if (!is_matched(s, s->matched[i]->users[k].user))
                return false;
    for (const tn_node *node = s->graph->steps; node != NULL && left > 0; node = node->next) {
        if (is_matched(s, node))
            left--;
        else if (left < s->n_matched && (node->writes != 0 || node->kind == TN_NODE_CALL))
            return false;
    }
    return true;
}

/* ---- replacing ------------------------------------------------------------------------------- */

/* Builds the nodes of the replacement before the root of the match. */
static tn_node *build(struct search *s, const struct expr *expr, tn_node *root)
{
    tn_node **in, *node = NULL;
    tn__text text = { 0 };
    tn__spec *spec;
    char *whole;

    if (expr->name != NULL)
        return expr->name[0] == '\0' ? TN_NODE_NONE : s->bound[expr->index];
    in = tn__arena_alloc(s->arena, ((size_t)expr->count + 1) * sizeof(tn_node *));
    for (int64_t i = 0; in != NULL && i < expr->count; i++)
        if ((in[i] = build(s, expr->args[i], root)) == NULL)
            return NULL;
    tn__text_add(&text, "%s(", expr->op->def.name);
    put_options(&text, expr);
    tn__text_put(&text, ")", 1);
    whole = tn__text_take(&text);
    spec = in != NULL && whole != NULL ? tn__spec_parse(whole) : NULL;
    if (spec != NULL)
        node = tn__build_op(s->graph, root,
                            &(tn__built){ .op = expr->op, .spec = spec, .no_grad = root->no_grad },
                            in, expr->count);
    if (node != NULL && (tn__graph_set_text(&node->path, root->path) != TN_OK ||
                         tn__graph_set_text(&node->type, root->type) != TN_OK))
        node = NULL;
    tn__spec_free(spec);
    tn_free(whole);
    return node;
}

static tn_status replace(struct search *s, const struct expr *with)
{
    tn_node *root = s->matched[0], *value = build(s, with, root);
    tn_status status = value != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && (value->n_out != 1 || tn_node_replace_uses(root, value) < 0))
        status = tn_error_last_code();
    for (int i = 0; i < s->n_matched && status == TN_OK; i++) {
        s->used[s->matched[i]->id] = 1;
        if (s->matched[i]->n_users == 0)
            tn__graph_node_remove(s->matched[i]);
    }
    return status;
}

static int64_t replace_all(struct search *s, const struct expr *pattern, const struct expr *with)
{
    int64_t found = 0;
    tn_node *next;

    for (tn_node *node = s->graph->steps; node != NULL; node = next) {
        next = node->next;
        memset(s->bound, 0, sizeof s->bound);
        s->n_matched = 0;
        if (!match(s, pattern, node) || !is_closed(s))
            continue;
        if (replace(s, with) != TN_OK)
            return -1;
        found++;
    }
    return found;
}

/* The graph is changed only if all replacements can be made: they are made in a copy. */
static int64_t replace_in_copy(struct search *s, tn_graph *graph, const char *pattern,
                               const char *replacement)
{
    struct expr *from = read_expr(s, pattern, 0), *to;
    int known = s->n_names;
    int64_t found = -1;

    to = from != NULL ? read_expr(s, replacement, 0) : NULL;
    if (to == NULL)
        return -1;
    if (from->op == NULL || s->n_names > known) {
        tn_fail(TN_ERR_VALUE,
                from->op == NULL
                    ? "tn_graph_replace: pattern: it is a name; expected a call of an operator"
                    : "tn_graph_replace: replacement: the pattern has no name %q",
                s->n_names > known ? s->names[known] : "");
        return -1;
    }
    s->graph = tn_graph_copy(graph);
    s->limit = graph->next_id;
    s->used = tn_calloc((size_t)graph->next_id + 1, 1);
    if (s->graph != NULL && s->used != NULL)
        found = replace_all(s, from, to);
    if (found > 0 && tn_graph_lint(s->graph) != TN_OK)
        found = -1;
    if (found > 0)
        tn__graph_take(graph, s->graph);
    else
        tn_graph_drop(s->graph);
    return found;
}

int64_t tn_graph_replace(tn_graph *graph, const char *pattern, const char *replacement)
{
    struct search *s;
    int64_t found = -1;

    if (!tn__not_null(graph, "tn_graph_replace: graph") ||
        !tn__given(pattern != NULL, "tn_graph_replace: pattern") ||
        !tn__given(replacement != NULL, "tn_graph_replace: replacement") ||
        tn_graph_lint(graph) != TN_OK)
        return -1;
    s = tn_calloc(1, sizeof *s);
    if (s != NULL && (s->arena = tn__arena_new()) != NULL)
        found = replace_in_copy(s, graph, pattern, replacement);
    for (int i = 0; s != NULL && i < s->n_specs; i++)
        tn__spec_free(s->specs[i]);
    if (s != NULL) {
        tn__arena_free(s->arena);
        tn_free(s->used);
    }
    tn_free(s);
    return found;
}
