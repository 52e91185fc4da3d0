/* SPDX-License-Identifier: MIT
 *
 * The sizes of a run: the values of the symbols, and the options that depend on them. */
#include "lib/graph/private.h"

/* Fails, because an input does not have the dtype and shape of its node. */
static tn_status misfit(const tn_graph *graph, const tn_node *node, const tn_tensor *tensor)
{
    tn__text got = { 0 }, expected = { 0 };
    tn_status status;

    tn__tensor_text(&got, tensor);
    tn__text_type(&expected, node, 0);
    for (int32_t i = 0; i < graph->n_symbols; i++)
        tn__text_add(&expected, i == 0 ? ", with %s >= %lld" : ", %s >= %lld",
                     graph->symbols[i].name, (long long)graph->symbols[i].least);
    tn__text_put(&got, "", 1);
    tn__text_put(&expected, "", 1);
    status = tn_fail(TN_ERR_VALUE,
                     "tn_graph_run: input %s: wrong dtype or shape, got %s; expected %s, the same "
                     "in all inputs",
                     node->name, got.failed ? "?" : got.at, expected.failed ? "?" : expected.at);
    tn__text_free(&got);
    tn__text_free(&expected);
    return status;
}

/* Binds the symbols of one size of an input, or compares the size with symbols that are bound.
 * A product of two symbols says nothing about its factors: it is only compared. */
static bool bind_size(const tn_graph *graph, const tn__expr *expr, int64_t size, bool *known,
                      int64_t *symbols)
{
    int64_t value;

    if (expr->b >= 0)
        return known[expr->a] && known[expr->b] && tn__symbols_value(expr, symbols) == size;
    if (expr->times == 0 || tn__sub_overflow(size, expr->plus, &value) || value % expr->times != 0)
        return false;
    value /= expr->times;
    if (value < graph->symbols[expr->a].least || (known[expr->a] && symbols[expr->a] != value))
        return false;
    symbols[expr->a] = value;
    known[expr->a] = true;
    return true;
}

/* Whether a tensor fits an input node. With `products` only sizes that are products are looked at,
 * otherwise everything else. */
static bool bind_input(const tn_graph *graph, const tn_node *node, const tn_tensor *tensor,
                       bool products, bool *known, int64_t *symbols)
{
    bool same = tensor->view.ndim == node->meta->ndim &&
                tn__run_fits(graph, node->meta->dtype, tensor->dtype);

    for (int32_t d = 0; same && d < node->meta->ndim; d++) {
        const tn__expr *expr = tn__symbols_find(node, -1, d);
        int64_t size = tensor->view.shape[d];

        if ((expr != NULL && expr->b >= 0) != products)
            continue;
        same = expr != NULL ? bind_size(graph, expr, size, known, symbols)
                            : size == node->meta->shape[d];
    }
    return same;
}

tn_status tn__symbols_bind(const tn_graph *graph, tn_tensor *const *in, int64_t *symbols)
{
    bool known[TN__SYMBOLS] = { false };

    for (int products = 0; products < 2; products++) {
        int64_t k = 0;

        for (const tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node);
             node = node->next) {
            if (node->kind != TN_NODE_INPUT)
                continue;
            if (!bind_input(graph, node, in[k], products == 1, known, symbols))
                return misfit(graph, node, in[k]);
            k++;
        }
    }
    return TN_OK;
}

tn_status tn__symbols_options(const tn_node *node, const int64_t *symbols, void **options)
{
    const tn_op_def *def = &node->op->def;
    void *copy = NULL;

    *options = NULL;
    for (int64_t i = 0; i < node->n_exprs; i++) {
        const tn__expr *expr = &node->exprs[i];
        int64_t value = tn__symbols_value(expr, symbols);

        if (expr->row < 0)
            continue;
        if (copy == NULL) {
            copy = tn_malloc(
                tn__options_copy(def->options, node->options, def->options_size, NULL));
            if (copy == NULL)
                return TN_ERR_MEMORY;
            tn__options_copy(def->options, node->options, def->options_size, copy);
        }
        *tn__symbols_place(&def->options[expr->row], copy, expr->item) = value;
    }
    *options = copy;
    return TN_OK;
}
