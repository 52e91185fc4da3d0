/* SPDX-License-Identifier: MIT
 *
 * Nodes: creating and freeing, names, order, uses, and the functions with which a program changes
 * nodes; node_query.c has those with which it queries them. */
#include "core/base/vector.h"
#include "lib/graph/private.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* Gives the node a name that is unique in its graph: `from` or, if that is taken, "from_1" and so
 * on; with `exact`, a taken name is an error. The characters `.` and `-`, which names of operators
 * and compilers may contain, become `_`. */
static tn_status take_name(tn_graph *graph, tn_node *node, const char *from, bool exact)
{
    enum { LONG = 3 * TN__NAME_LONGEST };
    char base[LONG + 24], name[LONG + 24];
    int64_t first, place;

    /* An exact name may be one that was made here, with its number. */
    tn_snprint(base, exact ? sizeof base : LONG, "%s", from);
    for (char *at = base; *at != '\0'; at++)
        *at = (char)(*at == '.' || *at == '-' ? '_' : *at);
    first = tn__name_table_find(&graph->names, base, strlen(base));
    if (first >= 0 && exact)
        return tn_fail(TN_ERR_VALUE,
                       "graph: name: %q is taken; expected a name that no other node has", base);
    tn_snprint(name, sizeof name, "%s", base);
    while (first >= 0 && tn__name_table_find(&graph->names, name, strlen(name)) >= 0)
        tn_snprint(name, sizeof name, "%s_%lld", base, (long long)++graph->named[first].next);
    node->name = tn_strdup(name);
    if (node->name == NULL || !tn__vector_room(&graph->named, &graph->named_capacity,
                                               graph->names.count + 1, sizeof *graph->named))
        return TN_ERR_MEMORY;
    place = tn__name_table_add(&graph->names, name);
    if (place < 0)
        return TN_ERR_MEMORY;
    graph->named[place] = (tn__named){ node, 0 };
    return TN_OK;
}

static void give_name_back(tn_node *node)
{
    tn_graph *graph = node->graph;
    int64_t place = tn__name_table_find(&graph->names, node->name, strlen(node->name));

    if (place < 0 || graph->named[place].node != node)
        return;
    tn__name_table_remove(&graph->names, place);
    memmove(graph->named + place, graph->named + place + 1,
            (size_t)(graph->names.count - place) * sizeof *graph->named);
}

tn_status tn__graph_node_rename(tn_node *node, const char *name)
{
    char *before = node->name;
    tn_status status;

    if (strcmp(before, name) == 0)
        return TN_OK;
    node->name = NULL;
    status = take_name(node->graph, node, name, true);
    if (status != TN_OK) {
        tn_free(node->name);
        node->name = before;
        return status;
    }
    name = node->name;
    node->name = before;
    give_name_back(node);
    node->name = (char *)(uintptr_t)name;
    tn_free(before);
    return TN_OK;
}

/* ---- creating and freeing -------------------------------------------------------------------- */

void tn__graph_node_free(tn_node *node)
{
    if (node == NULL)
        return;
    tn_free(node->name);
    tn_free(node->options);
    tn__options_release(node->option_block);
    tn_free(node->in);
    tn_free(node->users);
    tn_free(node->items);
    tn_free(node->meta);
    tn__graph_guard_drop(&node->held);
    tn__region_drop(node->region);
    tn__graph_callee_drop(node->callee);
    tn__blocks_drop(node);
    tn_free(node->exprs);
    tn_free(node->target);
    tn_free(node->path);
    tn_free(node->type);
    tn_free(node);
}

tn_node *tn__graph_node_new(tn_graph *graph, tn_node_kind kind, const char *base, bool exact,
                            int64_t n_in, int32_t n_out)
{
    tn_node *node = tn_calloc(1, sizeof *node);
    tn_status status = TN_ERR_MEMORY;

    if (node == NULL)
        return NULL;
    node->graph = graph;
    node->kind = kind;
    node->n_in = n_in;
    node->n_out = n_out;
    node->in = tn_calloc((size_t)n_in + 1, sizeof *node->in);
    node->meta = tn_calloc((size_t)n_out + 1, sizeof *node->meta);
    if (node->in != NULL && node->meta != NULL)
        status = take_name(graph, node, base, exact);
    if (status != TN_OK) {
        tn__graph_node_free(node);
        return NULL;
    }
    node->id = graph->next_id++;
    return node;
}

/* ---- uses ------------------------------------------------------------------------------------ */

static tn__use *use_of(const tn_node *value, const tn_node *user)
{
    for (int64_t i = 0; i < value->n_users; i++)
        if (value->users[i].user == user)
            return &value->users[i];
    return NULL;
}

/* Reserves space for one more user, so that use_add() cannot fail. */
static tn_status use_room(tn_node *value)
{
    return tn__graph_is_none(value) || tn__vector_room(&value->users, &value->users_capacity,
                                                       value->n_users + 1, sizeof *value->users)
               ? TN_OK
               : TN_ERR_MEMORY;
}

/* `fresh`: the user is a new node, so that it can only be the last of the users. A search through
 * all of them would make the time to build a graph quadratic. */
static void use_add(tn_node *value, tn_node *user, bool fresh)
{
    tn__use *use;

    if (tn__graph_is_none(value))
        return;
    if (fresh)
        use = value->n_users > 0 && value->users[value->n_users - 1].user == user
                  ? &value->users[value->n_users - 1]
                  : NULL;
    else
        use = use_of(value, user);
    if (use == NULL) {
        use = &value->users[value->n_users++];
        *use = (tn__use){ user, 0 };
    }
    use->count++;
    value->n_uses++;
}

static void use_remove(tn_node *value, tn_node *user)
{
    tn__use *use;

    if (value == NULL || tn__graph_is_none(value))
        return;
    use = use_of(value, user);
    value->n_uses--;
    if (--use->count > 0)
        return;
    value->n_users--;
    memmove(use, use + 1, (size_t)(value->users + value->n_users - use) * sizeof *use);
}

tn_status tn__graph_node_use(tn_node *node, int64_t index, tn_node *value)
{
    if (use_room(value) != TN_OK)
        return TN_ERR_MEMORY;
    node->in[index] = value;
    use_add(value, node, true);
    return TN_OK;
}

static void uses_end(tn_node *node)
{
    for (int64_t i = 0; i < node->n_in && node->kind != TN_NODE_ITEM; i++)
        use_remove(node->in[i], node);
}

/* ---- order ----------------------------------------------------------------------------------- */

void tn__graph_node_link(tn_node *node, tn_node *before)
{
    tn_graph *graph = node->graph;

    graph->edits++;
    if (tn__graph_is_leaf(node))
        before = graph->steps;
    node->next = before;
    node->prev = before != NULL ? before->prev : graph->last;
    *(node->prev != NULL ? &node->prev->next : &graph->first) = node;
    *(before != NULL ? &before->prev : &graph->last) = node;
    if (!tn__graph_is_leaf(node) && before == graph->steps)
        graph->steps = node;
}

void tn__graph_node_unlink(tn_node *node)
{
    tn_graph *graph = node->graph;

    graph->edits++;
    if (graph->steps == node)
        graph->steps = node->next;
    *(node->prev != NULL ? &node->prev->next : &graph->first) = node->next;
    *(node->next != NULL ? &node->next->prev : &graph->last) = node->prev;
    node->next = node->prev = NULL;
}

void tn__graph_node_move(tn_node *node, tn_node *before)
{
    tn__graph_node_unlink(node);
    tn__graph_node_link(node, before);
    for (int32_t i = 0; node->items != NULL && i < node->n_out; i++) {
        tn__graph_node_unlink(node->items[i]);
        tn__graph_node_link(node->items[i], before);
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

tn_status tn__graph_node_items(tn_node *node)
{
    char name[2 * TN__NAME_LONGEST];

    if (node->n_out < 2)
        return TN_OK;
    node->items = tn_calloc((size_t)node->n_out, sizeof *node->items);
    if (node->items == NULL)
        return TN_ERR_MEMORY;
    for (int32_t i = 0; i < node->n_out; i++) {
        const char *own = node->op != NULL ? node->op->def.outputs[i].name : NULL;

        if (own != NULL)
            tn_snprint(name, sizeof name, "%.60s_%.60s", node->name, own);
        else
            tn_snprint(name, sizeof name, "%.60s_item", node->name);
        node->items[i] = tn__graph_node_new(node->graph, TN_NODE_ITEM, name, false, 1, 1);
        if (node->items[i] == NULL)
            return tn_error_last_code();
        node->items[i]->index = i;
        node->items[i]->in[0] = node;
        node->items[i]->meta[0] = node->meta[i];
    }
    return TN_OK;
}

void tn__graph_node_link_items(tn_node *node)
{
    for (int32_t i = 0; node->items != NULL && i < node->n_out; i++)
        tn__graph_node_link(node->items[i], i > 0 ? node->items[i - 1]->next : node->next);
}

void tn__graph_node_undo(tn_node *node)
{
    if (node == NULL)
        return;
    for (int32_t i = 0; node->items != NULL && i < node->n_out; i++)
        if (node->items[i] != NULL) {
            give_name_back(node->items[i]);
            tn__graph_node_free(node->items[i]);
        }
    uses_end(node);
    give_name_back(node);
    tn__graph_node_free(node);
}

tn_node *tn__graph_node_copy(tn_graph *to, const tn_node *from, bool exact_name)
{
    tn_node *node = tn__graph_node_new(to, from->kind, from->name, exact_name, from->n_in,
                                       from->n_out);

    if (node == NULL)
        return NULL;
    node->op = from->op;
    if (from->n_out > 0)
        memcpy(node->meta, from->meta, (size_t)from->n_out * sizeof *node->meta);
    if (!tn__vector_room(&node->exprs, &node->exprs_capacity, from->n_exprs, sizeof *node->exprs)) {
        tn__graph_node_undo(node);
        return NULL;
    }
    if (from->n_exprs > 0)
        memcpy(node->exprs, from->exprs, (size_t)from->n_exprs * sizeof *node->exprs);
    node->n_exprs = from->n_exprs;
    node->writes = from->writes;
    node->no_grad = from->no_grad;
    node->part = from->part;
    node->slot = from->slot;
    if (from->callee != NULL)
        node->callee = tn__graph_callee_keep(from->callee);
    if (from->options != NULL)
        node->options = tn_malloc(from->op->def.options_size);
    if ((from->options != NULL && node->options == NULL) ||
        tn__graph_set_text(&node->target, from->target) != TN_OK ||
        tn__graph_set_text(&node->path, from->path) != TN_OK ||
        tn__graph_set_text(&node->type, from->type) != TN_OK ||
        tn__blocks_copy(node, from) != TN_OK) {
        tn__graph_node_undo(node);
        return NULL;
    }
    if (from->options == NULL)
        return node;
    memcpy(node->options, from->options, from->op->def.options_size);
    node->option_block = tn__options_share(from->option_block);
    return node;
}

static void retire(tn_node *node)
{
    tn_graph *graph = node->graph;

    tn__graph_node_unlink(node);
    uses_end(node);
    give_name_back(node);
    if (graph->output == node)
        graph->output = NULL;
    graph->n_inputs -= node->kind == TN_NODE_INPUT;
    node->erased = true;
    node->next = graph->erased;
    graph->erased = node;
}

void tn__graph_node_remove(tn_node *node)
{
    for (int32_t i = 0; node->items != NULL && i < node->n_out; i++)
        retire(node->items[i]);
    retire(node);
}

/* ---- checks of arguments --------------------------------------------------------------------- */

tn_status tn__graph_node_check(const tn_graph *graph, const tn_node *node, const char *what)
{
    if (node == NULL)
        return tn_error_null(what);
    if (tn__graph_is_none(node))
        return tn_fail(TN_ERR_TYPE, "%s: no node, got TN_NODE_NONE; expected a node", what);
    if (graph != NULL && node->graph != graph)
        return tn_fail(TN_ERR_VALUE,
                       "%s: node %s is of another graph; expected a node of this graph", what,
                       node->name);
    if (node->erased)
        return tn_fail(TN_ERR_RUNTIME, "%s: node %s was erased; expected a node of the graph", what,
                       node->name);
    return TN_OK;
}

tn_status tn__graph_value_check(const tn_graph *graph, const tn_node *node, bool optional,
                                const char *what)
{
    tn_status status;

    if (optional && tn__graph_is_none(node))
        return TN_OK;
    status = tn__graph_node_check(graph, node, what);
    if (status != TN_OK || node->n_out == 1)
        return status;
    return tn_fail(TN_ERR_VALUE,
                   "%s: node %s makes %d tensors; expected a node that makes one (tn_node_item "
                   "returns each)",
                   what, node->name, (int)node->n_out);
}

/* ---- changing nodes -------------------------------------------------------------------------- */

/* Returns whether an input may be TN_NODE_NONE. */
static bool is_optional(const tn_node *node, int64_t index)
{
    return node->op != NULL && (node->kind == TN_NODE_OP || index < node->n_in - 1) &&
           (tn__operand(node->op, index)->flags & TN_OPERAND_OPTIONAL) != 0;
}

tn_status tn_node_set_input(tn_node *node, int64_t index, tn_node *value)
{
    tn_status status = tn__graph_node_check(NULL, node, "tn_node_set_input: node");

    if (status != TN_OK)
        return status;
    if (node->kind == TN_NODE_ITEM || node->kind == TN_NODE_REGION)
        return tn_fail(
            TN_ERR_REFUSED,
            "tn_node_set_input: inputs of node %s cannot be changed; expected no item and "
            "no region",
            node->name);
    if (!tn__graph_node_in_range(node, index, node->n_in, "tn_node_set_input"))
        return TN_ERR_INDEX;
    status = tn__graph_value_check(node->graph, value, is_optional(node, index),
                                   "tn_node_set_input: value");
    if (status == TN_OK)
        status = use_room(value);
    if (status != TN_OK)
        return status;
    node->graph->edits++;
    use_add(value, node, false);
    use_remove(node->in[index], node);
    node->in[index] = value;
    return TN_OK;
}

int64_t tn_node_replace_uses(tn_node *node, tn_node *value)
{
    int64_t count = 0, kept = 0;

    if (tn__graph_value_check(NULL, node, false, "tn_node_replace_uses: node") != TN_OK ||
        tn__graph_value_check(node->graph, value, false, "tn_node_replace_uses: value") != TN_OK)
        return -1;
    if (node == value)
        return 0;
    if (!tn__vector_room(&value->users, &value->users_capacity, value->n_users + node->n_users,
                         sizeof *value->users) ||
        tn__graph_inherit(value, node) != TN_OK)
        return -1;
    node->graph->edits++;
    while (node->n_users > kept) {
        tn_node *user = node->users[kept].user;

        /* The node that makes the new value may itself use the old value. It keeps that use. */
        if (user == value || (value->kind == TN_NODE_ITEM && user == value->in[0])) {
            kept++;
            continue;
        }
        for (int64_t i = 0; i < user->n_in; i++)
            if (user->in[i] == node) {
                use_add(value, user, false);
                use_remove(node, user);
                user->in[i] = value;
            }
        count++;
    }
    return count;
}

tn_status tn_node_erase(tn_node *node)
{
    tn_status status = tn__graph_node_check(NULL, node, "tn_node_erase: node");
    int64_t users = 0;

    if (status != TN_OK)
        return status;
    if (node->kind == TN_NODE_ITEM)
        return tn_fail(TN_ERR_REFUSED,
                       "tn_node_erase: node %s is an output of node %s; erase that node instead",
                       node->name, node->in[0]->name);
    for (int32_t i = 0; node->items != NULL && i < node->n_out; i++)
        users += node->items[i]->n_users;
    users += node->n_users;
    if (users > 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "Tried to erase Node %s but it still had %lld users in the graph",
                       node->name, (long long)users);
    tn__graph_node_remove(node);
    return TN_OK;
}
