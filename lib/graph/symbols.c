/* SPDX-License-Identifier: MIT
 *
 * Sizes that may vary. A module is traced at several sizes of its inputs; the integers that differ
 * between the graphs must be a multiple of a symbol, or of the product of two, plus a constant. A
 * run reads the symbols from its inputs and computes these integers. */
#include "lib/graph/tracing.h"

#include <errno.h>
#include <stdlib.h>

/* ---- expressions ----------------------------------------------------------------------------- */

int64_t tn__symbols_value(const tn__expr *expr, const int64_t *symbols)
{
    int64_t value;

    if (tn__mul_overflow(expr->times, symbols[expr->a], &value) ||
        (expr->b >= 0 && tn__mul_overflow(value, symbols[expr->b], &value)) ||
        tn__add_overflow(value, expr->plus, &value))
        return INT64_MIN;
    return value;
}

int64_t tn__symbols_now(const tn_graph *graph, const tn__expr *expr)
{
    int64_t values[TN__SYMBOLS];

    for (int32_t i = 0; i < TN__SYMBOLS; i++)
        values[i] = graph->symbols[i].value;
    return tn__symbols_value(expr, values);
}

/* Finds an expression of a symbol, or of a product of two, that has the value values[k] where the
 * symbols have the values symbols[k], for k = 0, 1 and 2. */
static bool fit(const int64_t *values, int64_t (*symbols)[TN__SYMBOLS], int32_t count,
                tn__expr *out)
{
    for (int32_t b = -1; b < count; b++) /* one symbol before products of two */
        for (int32_t a = 0; a < count && (b < 0 || a <= b); a++) {
            int64_t x = symbols[0][a] * (b < 0 ? 1 : symbols[0][b]);
            int64_t y = symbols[1][a] * (b < 0 ? 1 : symbols[1][b]);

            if (x == y || (values[1] - values[0]) % (y - x) != 0)
                continue;
            out->a = a;
            out->b = b;
            out->times = (values[1] - values[0]) / (y - x);
            out->plus = values[0] - out->times * x;
            if (tn__symbols_value(out, symbols[2]) == values[2])
                return true;
        }
    return false;
}

void tn__symbols_text(tn__text *text, const tn_graph *graph, const tn__expr *expr)
{
    if (expr->times != 1)
        tn__text_add(text, "%lld*", (long long)expr->times);
    tn__text_add(text, "%s", graph->symbols[expr->a].name);
    if (expr->b >= 0)
        tn__text_add(text, "*%s", graph->symbols[expr->b].name);
    if (expr->plus != 0)
        tn__text_add(text, expr->plus > 0 ? "+%lld" : "%lld", (long long)expr->plus);
}

static bool read_number(const char *at, char **end, int64_t *out)
{
    errno = 0;
    *out = strtoll(at, end, 10);
    return errno == 0 && *end != at;
}

/* Reads [NUMBER*]NAME[*NAME][+NUMBER], or -NUMBER at the end. Returns the end, NULL if `at` has no
 * such text. */
const char *tn__symbols_read(const tn_graph *graph, const char *at, tn__expr *out)
{
    char *end;
    int names = 0;

    *out = (tn__expr){ .b = -1, .times = 1 };
    if ((*at >= '0' && *at <= '9') || *at == '-') {
        if (!read_number(at, &end, &out->times) || *end != '*')
            return NULL;
        at = end + 1;
    }
    do {
        size_t length = 0;
        int32_t i = 0;

        while ((at[length] >= 'a' && at[length] <= 'z') ||
               (at[length] >= 'A' && at[length] <= 'Z') ||
               (at[length] >= '0' && at[length] <= '9') || at[length] == '_')
            length++;
        while (i < graph->n_symbols && (strncmp(graph->symbols[i].name, at, length) != 0 ||
                                        graph->symbols[i].name[length] != '\0'))
            i++;
        if (length == 0 || i == graph->n_symbols)
            return NULL;
        *(names == 0 ? &out->a : &out->b) = i;
        at += length;
    } while (++names < 2 && *at == '*' && *at++);
    if (*at != '+' && *at != '-')
        return at;
    return read_number(at, &end, &out->plus) ? end : NULL;
}

tn_status tn__symbols_add(tn_node *node, const tn__expr *expr)
{
    if (!tn__vector_room(&node->exprs, &node->exprs_capacity, node->n_exprs + 1,
                         sizeof *node->exprs))
        return TN_ERR_MEMORY;
    node->exprs[node->n_exprs++] = *expr;
    return TN_OK;
}

const tn__expr *tn__symbols_find(const tn_node *node, int32_t row, int32_t item)
{
    for (int64_t i = 0; i < node->n_exprs; i++)
        if (node->exprs[i].row == row && node->exprs[i].item == item)
            return &node->exprs[i];
    return NULL;
}

int64_t *tn__symbols_place(const tn_option *row, void *options, int64_t item)
{
    void *at = (char *)options + row->offset;

    if (row->kind == TN_OPTION_KIND_INT)
        return at;
    if (row->kind == TN_OPTION_KIND_SCALAR)
        return ((tn_scalar *)at)->kind == TN_SCALAR_INT ? &((tn_scalar *)at)->as.i : NULL;
    if (row->kind != TN_OPTION_KIND_INTS || item >= ((tn_ints *)at)->count)
        return NULL;
    return (int64_t *)(uintptr_t)((tn_ints *)at)->at + item;
}

/* ---- comparing graphs ------------------------------------------------------------------------ */

struct traces {
    tn_graph *graphs[3];
    int64_t symbols[3][TN__SYMBOLS];
    int32_t count; /* of graphs that are compared */
};

/* Reports that `what`, followed by `name`, varies. */
static tn_status differs(const tn_node *node, const char *what, const char *name)
{
    return tn_fail(
        TN_ERR_NOT_IMPLEMENTED,
        "tn_module_trace: node %s (%s): %s%s varies with the sizes in a way that symbols cannot "
        "express; expected the same operators for all sizes, and integers such as 2 * N * M + 1: "
        "give a number instead of a symbol in `dynamic`",
        node->name, node->path != NULL && node->path[0] != '\0' ? node->path : "root", what, name);
}

/* Compares one integer of three graphs, and keeps an expression if it varies. */
static tn_status compare(const struct traces *traces, tn_node *node, const int64_t *values,
                         int32_t row, int32_t item, const char *what, const char *name)
{
    tn__expr expr;

    if (values[0] == values[1] && values[1] == values[2])
        return TN_OK;
    if (!fit(values, (int64_t(*)[TN__SYMBOLS])(uintptr_t)traces->symbols,
             traces->graphs[0]->n_symbols, &expr))
        return differs(node, what, name);
    expr.row = row;
    expr.item = item;
    return tn__symbols_add(node, &expr);
}

static bool same_option(const tn_option *row, const void *a, const void *b)
{
    tn_pack *packs[2] = { tn_pack_new(), tn_pack_new() };
    bool same = packs[0] != NULL && packs[1] != NULL &&
                tn__options_get(row, a, packs[0]) == TN_OK &&
                tn__options_get(row, b, packs[1]) == TN_OK &&
                tn__values_match(packs[0], packs[1], "option") == TN_OK;

    tn_pack_drop(packs[0]);
    tn_pack_drop(packs[1]);
    return same;
}

static tn_status compare_options(const struct traces *traces, tn_node *const *nodes)
{
    const tn_option *table = nodes[0]->op->def.options;
    tn_status status = TN_OK;

    for (int32_t r = 0; table[r].kind != TN_OPTION_KIND_END && status == TN_OK; r++) {
        int64_t *places[3], values[3];
        bool ints = table[r].kind == TN_OPTION_KIND_INTS;
        uint64_t mark = tn_error_mark();
        int64_t i = 0;

        if (ints &&
            (((tn_ints *)(void *)((char *)nodes[0]->options + table[r].offset))->count !=
                 ((tn_ints *)(void *)((char *)nodes[1]->options + table[r].offset))->count ||
             ((tn_ints *)(void *)((char *)nodes[0]->options + table[r].offset))->count !=
                 ((tn_ints *)(void *)((char *)nodes[2]->options + table[r].offset))->count))
            return differs(nodes[0], "its option ", table[r].name);
        for (; status == TN_OK; i++) {
            for (int k = 0; k < 3; k++)
                places[k] = tn__symbols_place(&table[r], nodes[k]->options, i);
            if (places[0] == NULL || places[1] == NULL || places[2] == NULL)
                break;
            for (int k = 0; k < 3; k++)
                values[k] = *places[k];
            status = compare(traces, nodes[0], values, r, (int32_t)i, "its option ", table[r].name);
            if (!ints) {
                i++;
                break;
            }
        }
        if (i == 0 && !ints && status == TN_OK) {
            bool same = same_option(&table[r], nodes[0]->options, nodes[1]->options) &&
                        same_option(&table[r], nodes[0]->options, nodes[2]->options);

            tn_error_restore(mark);
            status = same ? TN_OK : differs(nodes[0], "its option ", table[r].name);
        }
    }
    return status;
}

static bool same_constant(const tn_tensor *a, const tn_tensor *b)
{
    return a == b || (a->dtype == b->dtype && a->numel == b->numel && a->contiguous &&
                      b->contiguous && tn_device_is_host(a->device) && b->device == a->device &&
                      memcmp((const char *)a->view.data + a->view.byte_offset,
                             (const char *)b->view.data + b->view.byte_offset,
                             (size_t)a->numel * tn_dtype_size((tn_dtype)a->dtype)) == 0);
}

static tn_status compare_graphs(const struct traces *traces);

/* Compares the blocks of nodes. */
static tn_status compare_blocks(const struct traces *traces, tn_node *const *nodes)
{
    struct traces inner = *traces;
    tn_status status = TN_OK;

    for (int block = 0; block < 2 && status == TN_OK; block++) {
        for (int k = 0; k < 3; k++)
            inner.graphs[k] = nodes[k]->blocks[block];
        status = compare_graphs(&inner);
    }
    return status;
}

/* Compares the nodes, which are at the same place of three graphs. */
static tn_status compare_nodes(const struct traces *traces, tn_node *const *nodes)
{
    tn_node *first = nodes[0];
    tn_status status = TN_OK;

    for (int k = 1; k < 3; k++) {
        const tn_node *other = nodes[k];
        bool same = other != NULL && other->kind == first->kind && other->op == first->op &&
                    other->n_in == first->n_in && other->n_out == first->n_out &&
                    other->no_grad == first->no_grad && other->most == first->most &&
                    strcmp(other->name, first->name) == 0 &&
                    (other->callee == NULL || other->callee->module == first->callee->module);

        for (int64_t i = 0; same && i < first->n_in; i++)
            same = tn__graph_is_none(first->in[i])
                       ? tn__graph_is_none(other->in[i])
                       : !tn__graph_is_none(other->in[i]) && first->in[i]->id == other->in[i]->id;
        if (!same)
            return differs(first, "the list of operators", "");
        if (first->kind == TN_NODE_CONSTANT &&
            !same_constant(first->held.tensor, other->held.tensor))
            return differs(first, "the constant tensor", "");
    }
    if (first->options != NULL)
        status = compare_options(traces, nodes);
    if (tn__graph_has_blocks(first))
        status = compare_blocks(traces, nodes);
    for (int32_t o = 0; o < first->n_out && status == TN_OK; o++)
        for (int32_t d = 0; d < first->meta[o].ndim && status == TN_OK; d++) {
            int64_t values[3];

            if (nodes[1]->meta[o].ndim != first->meta[o].ndim ||
                nodes[2]->meta[o].ndim != first->meta[o].ndim)
                return differs(first, "its number of dimensions", "");
            for (int k = 0; k < 3; k++)
                values[k] = nodes[k]->meta[o].shape[d];
            status = compare(traces, first, values, -1 - o, d, "a size of its result", "");
        }
    return status;
}

static tn_status compare_graphs(const struct traces *traces)
{
    tn_node *nodes[3];
    tn_status status = TN_OK;

    for (int k = 0; k < 3; k++)
        nodes[k] = traces->graphs[k]->first;
    while (nodes[0] != NULL && status == TN_OK) {
        status = compare_nodes(traces, nodes);
        for (int k = 0; k < 3; k++)
            nodes[k] = nodes[k] != NULL ? nodes[k]->next : NULL;
    }
    if (status == TN_OK && (nodes[1] != NULL || nodes[2] != NULL))
        status = differs(traces->graphs[0]->output, "the list of operators", "");
    return status;
}

/* Checks that a graph has the integers that the expressions give for its sizes. */
static bool holds(const tn_graph *graph, const tn_graph *other, const int64_t *symbols)
{
    const tn_node *a = graph->first, *b = other->first;

    for (; a != NULL && b != NULL; a = a->next, b = b->next) {
        if (a->kind != b->kind || a->op != b->op || strcmp(a->name, b->name) != 0)
            return false;
        for (int32_t o = 0; o < a->n_out; o++)
            for (int32_t d = 0; d < a->meta[o].ndim; d++) {
                const tn__expr *expr = tn__symbols_find(a, -1 - o, d);

                if (b->meta[o].ndim != a->meta[o].ndim ||
                    b->meta[o].shape[d] !=
                        (expr != NULL ? tn__symbols_value(expr, symbols) : a->meta[o].shape[d]))
                    return false;
            }
        for (int i = 0; i < 2 && tn__graph_has_blocks(a); i++)
            if (!holds(a->blocks[i], b->blocks[i], symbols))
                return false;
        for (int64_t i = 0; i < a->n_exprs; i++)
            if (a->exprs[i].row >= 0) {
                const int64_t *place = tn__symbols_place(&a->op->def.options[a->exprs[i].row],
                                                         b->options, a->exprs[i].item);

                if (place == NULL || *place != tn__symbols_value(&a->exprs[i], symbols))
                    return false;
            }
    }
    return a == NULL && b == NULL;
}

/* ---- the text of tn_tracing_options.dynamic -------------------------------------------------- */

/* A dimension of an input: times * symbol, or fixed (symbol -1). */
struct dim {
    int32_t symbol;
    int64_t times;
};

struct dynamic {
    struct dim *dims; /* TN_MAX_DIMS for each input */
    int32_t *ndims;
    tn_graph *names; /* has the symbols, and no nodes */
};

static tn_status wrong(const char *text, const char *at, const char *expected)
{
    return tn_fail(TN_ERR_FORMAT, "tn_module_trace: dynamic: %q: column %lld: expected %s", text,
                   (long long)(at - text + 1), expected);
}

static int32_t symbol_of(tn_graph *graph, const char *name, size_t length)
{
    int32_t i = 0;

    while (i < graph->n_symbols && (strncmp(graph->symbols[i].name, name, length) != 0 ||
                                    graph->symbols[i].name[length] != '\0'))
        i++;
    if (i == graph->n_symbols && i < TN__SYMBOLS && length < sizeof graph->symbols[i].name) {
        memcpy(graph->symbols[i].name, name, length);
        graph->symbols[i].name[length] = '\0';
        graph->symbols[i].least = 1;
        graph->n_symbols++;
    }
    return i < graph->n_symbols ? i : -1;
}

static tn_status read_dim(const char *text, const char **at, const tn_tensor *tensor, int32_t d,
                          struct dim *out, tn_graph *graph)
{
    char *end;
    int64_t number = 1, size;
    size_t length = 0;
    bool has = **at >= '0' && **at <= '9';

    if (has) {
        number = strtoll(*at, &end, 10);
        *at = end;
    }
    *out = (struct dim){ -1, number };
    if (d >= tensor->view.ndim)
        return wrong(text, *at, "as many sizes as the input has dimensions");
    size = tensor->view.shape[d];
    if (has && **at != '*')
        return number == size ? TN_OK : wrong(text, *at, "the size of the input, or a name");
    *at += has;
    while (((*at)[length] >= 'a' && (*at)[length] <= 'z') ||
           ((*at)[length] >= 'A' && (*at)[length] <= 'Z') || (*at)[length] == '_')
        length++;
    if (length == 0 || number < 1 || size % number != 0 || size == 0)
        return wrong(text, *at, "a name, and a size of the input that is a multiple of its factor");
    out->symbol = symbol_of(graph, *at, length);
    if (out->symbol < 0)
        return wrong(text, *at, "at most 8 names of 23 letters or less");
    if (graph->symbols[out->symbol].value == 0)
        graph->symbols[out->symbol].value = size / number;
    if (graph->symbols[out->symbol].value != size / number)
        return wrong(text, *at, "the same size wherever a name occurs");
    *at += length;
    return TN_OK;
}

static tn_status read_dynamic(const char *text, tn_tensor *const *in, int64_t count,
                              struct dynamic *out)
{
    const char *at = text;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        at += strspn(at, i > 0 ? " ," : " ");
        if (*at++ != '[')
            return wrong(text, at - 1, "[ and the sizes of an input");
        for (int32_t d = 0; status == TN_OK && *(at += strspn(at, " ")) != ']'; d++) {
            if (d > 0 && *at++ != ',')
                return wrong(text, at - 1, "a comma or ]");
            at += strspn(at, " ");
            status = read_dim(text, &at, in[i], d, &out->dims[i * TN_MAX_DIMS + d], out->names);
            out->ndims[i] = d + 1;
        }
        if (status == TN_OK && out->ndims[i] != in[i]->view.ndim)
            return wrong(text, at, "as many sizes as the input has dimensions");
        at++;
    }
    at += status == TN_OK ? strspn(at, " ") : 0;
    return status != TN_OK || *at == '\0' ? status
                                          : wrong(text, at, "the end: one shape per input");
}

/* ---- tracing at several sizes ---------------------------------------------------------------- */

/* Traces of a module, whose inputs have the sizes that the text of `dynamic` says. */
struct several {
    tn__symbols_make make; /* first: trace_at gets its address */
    const tn__symbols_call *call;
    const struct dynamic *dynamic;
};

/* Traces with inputs whose dynamic sizes follow from these values of the symbols. */
static tn_graph *trace_at(const tn__symbols_make *make, const int64_t *symbols)
{
    const tn__symbols_call *call = ((const struct several *)(const void *)make)->call;
    const struct dynamic *dynamic = ((const struct several *)(const void *)make)->dynamic;
    uint64_t scope = tn_scope_begin();
    tn_tensor **in = tn_malloc(((size_t)call->count + 1) * sizeof(tn_tensor *));
    tn_graph *graph = NULL;
    bool good = in != NULL;

    for (int64_t i = 0; i < call->count && good; i++) {
        tn_meta meta;

        tn__tensor_meta(call->in[i], &meta);
        for (int32_t d = 0; d < meta.ndim; d++) {
            const struct dim *dim = &dynamic->dims[i * TN_MAX_DIMS + d];

            if (dim->symbol >= 0)
                meta.shape[d] = dim->times * symbols[dim->symbol];
        }
        meta.flags = 0;
        in[i] = tn__trace_make_like(&meta, call->in[i]->device);
        good = in[i] != NULL;
    }
    if (good)
        graph = call->trace(call, in);
    tn_free(in);
    tn_scope_end(scope);
    return graph;
}

static void give_symbols(tn_graph *graph)
{
    for (tn_node *node = graph->steps; node != NULL; node = node->next)
        tn__blocks_symbols(node);
}

static tn_status make_all(const tn__symbols_make *how, const tn_graph *names, struct traces *traces)
{
    tn_graph *first, *small;
    int64_t ones[TN__SYMBOLS];
    uint64_t mark;
    tn_status status;

    for (int32_t s = 0; s < names->n_symbols; s++) {
        int64_t value = names->symbols[s].value;

        value = value < 2 ? 2 : value;
        /* Each symbol grows by an amount of its own from trace to trace. So a size that depends on
         * one symbol cannot be mistaken for a size that depends on another. */
        traces->symbols[0][s] = value;
        traces->symbols[1][s] = value + 1 + s;
        traces->symbols[2][s] = value + 2 + 3 * s;
        ones[s] = 1;
    }
    for (int k = 0; k < 3; k++) {
        traces->graphs[k] = how->make(how, traces->symbols[k]);
        if (traces->graphs[k] == NULL)
            return tn_error_last_code();
    }
    first = traces->graphs[0];
    memcpy(first->symbols, names->symbols, sizeof first->symbols);
    first->n_symbols = names->n_symbols;
    for (int32_t s = 0; s < first->n_symbols; s++)
        first->symbols[s].value = traces->symbols[0][s];
    give_symbols(first);
    status = compare_graphs(traces);
    if (status != TN_OK)
        return status;
    mark = tn_error_mark();
    small = how->make(how, ones);
    for (int32_t s = 0; s < first->n_symbols; s++)
        first->symbols[s].least = small != NULL && holds(first, small, ones) ? 1 : 2;
    give_symbols(first);
    tn_error_restore(mark);
    tn_graph_drop(small);
    return TN_OK;
}

tn_graph *tn__symbols_fit(const tn__symbols_make *how, const tn_graph *names)
{
    struct traces traces = { .count = 0 };
    tn_status status = make_all(how, names, &traces);

    for (int k = status == TN_OK ? 1 : 0; k < 3; k++)
        tn_graph_drop(traces.graphs[k]);
    return status == TN_OK ? traces.graphs[0] : NULL;
}

tn_graph *tn__symbols_trace(const tn__symbols_call *call, const char *text)
{
    struct dynamic dynamic = { .names = tn_graph_new() };
    const struct several several = { { trace_at }, call, &dynamic };
    tn_graph *graph = NULL;
    tn_status status = TN_ERR_MEMORY;

    dynamic.dims = tn_calloc((size_t)call->count * TN_MAX_DIMS + 1, sizeof *dynamic.dims);
    dynamic.ndims = tn_calloc((size_t)call->count + 1, sizeof *dynamic.ndims);
    if (dynamic.names != NULL && dynamic.dims != NULL && dynamic.ndims != NULL)
        status = read_dynamic(text, call->in, call->count, &dynamic);
    if (status == TN_OK && dynamic.names->n_symbols == 0)
        graph = call->trace(call, call->in);
    else if (status == TN_OK)
        graph = tn__symbols_fit(&several.make, dynamic.names);
    tn_free(dynamic.dims);
    tn_free(dynamic.ndims);
    tn_graph_drop(dynamic.names);
    return graph;
}
