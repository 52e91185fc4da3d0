/* SPDX-License-Identifier: MIT
 *
 * The functions with which a program queries nodes. */
#include "lib/graph/private.h"

bool tn__graph_node_asked(const tn_node *node, const char *what)
{
    if (node != NULL && !tn__graph_is_none(node))
        return true;
    tn__graph_node_check(NULL, node, what);
    return false;
}

bool tn__graph_node_in_range(const tn_node *node, int64_t index, int64_t count, const char *what)
{
    if (index >= 0 && index < count)
        return true;
    tn__error_index(index, count, "%s: node %s: index: ", what, node->name);
    return false;
}

tn_node *tn_node_next(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_next: node") && !node->erased ? node->next : NULL;
}

tn_node_kind tn_node_kind_of(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_kind_of: node") ? node->kind : 0;
}

const char *tn_node_name(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_name: node") ? node->name : NULL;
}

tn_node *tn_node_input(const tn_node *node, int64_t index)
{
    return tn__graph_node_asked(node, "tn_node_input: node") &&
                   tn__graph_node_in_range(node, index, node->n_in, "tn_node_input")
               ? node->in[index]
               : NULL;
}

int64_t tn_node_input_count(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_input_count: node") ? node->n_in : -1;
}

tn_node *tn_node_user(const tn_node *node, int64_t index)
{
    return tn__graph_node_asked(node, "tn_node_user: node") &&
                   tn__graph_node_in_range(node, index, node->n_users, "tn_node_user")
               ? node->users[index].user
               : NULL;
}

int64_t tn_node_user_count(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_user_count: node") ? node->n_users : -1;
}

tn_node *tn_node_item(const tn_node *node, int64_t index)
{
    if (!tn__graph_node_asked(node, "tn_node_item: node") ||
        !tn__graph_node_in_range(node, index, node->n_out, "tn_node_item"))
        return NULL;
    return node->items != NULL ? node->items[index] : (tn_node *)(uintptr_t)node;
}

int64_t tn_node_item_count(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_item_count: node") ? node->n_out : -1;
}

const tn_op *tn_node_op(const tn_node *node)
{
    if (!tn__graph_node_asked(node, "tn_node_op: node"))
        return NULL;
    if (node->op != NULL)
        return node->op;
    tn_fail(TN_ERR_TYPE,
            "tn_node_op: node %s is not a call of an operator; expected TN_NODE_OP or "
            "TN_NODE_INPLACE",
            node->name);
    return NULL;
}

const void *tn_node_options(const tn_node *node)
{
    return tn_node_op(node) != NULL ? node->options : NULL;
}

int64_t tn_node_spec(const tn_node *node, char *out, size_t size)
{
    tn__text text = { 0 };

    if (tn_node_op(node) == NULL)
        return -1;
    tn__text_add(&text, "%s(", node->op->def.name);
    if (node->options != NULL)
        tn__options_print(node->op->def.options, node->options, true, &text);
    tn__text_put(&text, ")", 1);
    return tn__text_give(&text, out, size);
}

tn_tensor *tn_node_tensor(const tn_node *node)
{
    if (!tn__graph_node_asked(node, "tn_node_tensor: node"))
        return NULL;
    if (node->held.tensor != NULL)
        return node->held.tensor;
    tn_fail(TN_ERR_TYPE, "tn_node_tensor: node %s is neither a slot nor a constant", node->name);
    return NULL;
}

tn_status tn_node_meta(const tn_node *node, struct tn_meta *out)
{
    if (!tn__given(out != NULL, "tn_node_meta: out"))
        return TN_ERR_VALUE;
    if (!tn__graph_node_asked(node, "tn_node_meta: node"))
        return tn_error_last_code();
    if (node->n_out != 1)
        return tn__graph_value_check(NULL, node, false, "tn_node_meta: node");
    *out = node->meta[0];
    return TN_OK;
}

const char *tn_node_compiler(const tn_node *node)
{
    if (!tn__graph_node_asked(node, "tn_node_compiler: node"))
        return NULL;
    if (node->region != NULL)
        return node->region->def->name;
    tn_fail(TN_ERR_TYPE, "tn_node_compiler: node %s is not a region; expected TN_NODE_REGION",
            node->name);
    return NULL;
}

bool tn__node_uses_newer(const tn_node *node, const tn_head *head, const tn__plugin *plugin,
                         char *reason, size_t size)
{
    uint32_t present = 0;

    if (node->op == NULL || node->op->newest <= head->target || node->op->plugin == plugin)
        return false;
    for (int64_t i = 0; i < node->n_in && i < TN_MAX_OPERANDS; i++)
        present |= (uint32_t)!tn__graph_is_none(node->in[i]) << i;
    return tn__op_uses_newer(node->op, head->target, present,
                             node->options != NULL ? node->options : node->op->def.defaults, reason,
                             size);
}
