/* SPDX-License-Identifier: MIT
 *
 * Calls that write into values become calls that return new values: later uses of the value that
 * was written use the result. If it is a part of another, x[2:4], that is put together again, too.
 * Where another value that shares the memory is used later, this would change what the graph
 * computes, and the graph is refused. */
#include "export/graph.h"
#include "program.h"

#include <string.h>

struct sharing {
    struct export_graph *g;
    const tn_node **roots; /* by number: the node that made the memory of this one */
    int64_t count;
    struct names numbers; /* of nodes, by name */
};

static int64_t number_of(const struct sharing *s, const tn_node *node)
{
    return names_find(&s->numbers, tn_node_name(node));
}

/* Operators that are decomposed, but whose results are new tensors, too. */
static bool makes(const char *name)
{
    static const char *const begins[] = { "conv",          "linear",     "batch_norm", "group_norm",
                                          "instance_norm", "layer_norm", "rms_norm",   "add",
                                          "mul",           "sub",        "clone" };

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/* The node whose memory the value of a node is, or may be: views and operators that are decomposed
 * can return parts of their first input. */
static const tn_node *root_of(const struct sharing *s, const tn_node *node)
{
    const tn_op_def *def;
    tn_node *from = NULL;

    switch (tn_node_kind_of(node)) {
    case TN_NODE_INPLACE: from = tn_node_input(node, tn_node_input_count(node) - 1); break;
    case TN_NODE_ITEM: from = tn_node_input(node, 0); break;
    case TN_NODE_OP:
        def = export_def(node);
        if (((def->flags & TN_OP_VIEW) != 0 ||
             ((def->flags & TN_OP_PRIMITIVE) == 0 && !makes(def->name))) &&
            tn_node_input_count(node) > 0)
            from = tn_node_input(node, 0);
        break;
    default: break;
    }
    if (from == NULL || from == TN_NODE_NONE)
        return node;
    return s->roots[number_of(s, from)];
}

static tn_status find_roots(struct sharing *s)
{
    tn_status status = TN_OK;

    for (tn_node *node = tn_graph_first(s->g->graph); node != NULL; node = tn_node_next(node))
        s->count++;
    s->roots = tn_calloc((size_t)s->count + 1, sizeof(*s->roots));
    if (s->roots == NULL)
        return TN_ERR_MEMORY;
    s->count = 0;
    for (tn_node *node = tn_graph_first(s->g->graph); node != NULL && status == TN_OK;
         node = tn_node_next(node)) {
        status = names_add(&s->numbers, tn_node_name(node), s->count);
        if (status == TN_OK)
            s->roots[s->count] = root_of(s, node);
        s->count++;
    }
    return status;
}

/* The value of which `value` is a part along one dimension; NULL: none. */
static tn_node *whole_of(const tn_node *value)
{
    static const char *const parts[] = { "slice", "narrow", "select" };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (tn_node_kind_of(value) == TN_NODE_OP && strcmp(tn_node_target(value), parts[i]) == 0)
            return tn_node_input(value, 0);
    return NULL;
}

/* Whether a value is the one that is written, or one of which it is a part. */
static bool is_around(const tn_node *value, const tn_node *write)
{
    const tn_node *at = tn_node_input(write, tn_node_input_count(write) - 1);

    for (; at != NULL; at = whole_of(at))
        if (at == value)
            return true;
    return false;
}

/* Fails if a node after `write` uses a value from before it that may share the memory. */
static tn_status check_write(const struct sharing *s, const tn_node *write)
{
    int64_t number = number_of(s, write);
    const tn_node *root = s->roots[number];

    /* The tensor that a caller gives as an input stays as it is. */
    if (tn_node_kind_of(root) == TN_NODE_SLOT)
        return tn_fail(TN_ERR_REFUSED,
                       "%s: node %s writes into the tensor %s; expected a graph that changes no "
                       "tensors but its own",
                       s->g->path, tn_node_name(write), tn_node_target(root));
    for (const tn_node *node = tn_node_next(write); node != NULL; node = tn_node_next(node))
        for (int64_t i = 0; i < tn_node_input_count(node); i++) {
            const tn_node *value = tn_node_input(node, i);
            int64_t other = value != TN_NODE_NONE ? number_of(s, value) : -1;

            if (other >= 0 && other < number && s->roots[other] == root && !is_around(value, write))
                return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                               "%s: node %s writes into a value whose memory %s shares, which %s "
                               "uses later; expected writes only into values that nothing else "
                               "reads, and into their parts",
                               s->g->path, tn_node_name(write), tn_node_name(value),
                               tn_node_name(node));
        }
    return TN_OK;
}

static tn_node *add(struct export_graph *g, tn_node *before, const char *spec, tn_node *value)
{
    return tn_graph_add_op(g->graph, before, spec, &value, 1);
}

/* The result in the dtype and shape of the tensor that the call writes into. */
static tn_node *fitted(struct export_graph *g, tn_node *write, tn_node *value)
{
    tn_node *into = tn_node_input(write, tn_node_input_count(write) - 1);
    char spec[60 + 24 * TN_MAX_DIMS];
    tn_meta wanted, got;
    bool same;
    size_t used;

    if (tn_node_meta(into, &wanted) != TN_OK || tn_node_meta(value, &got) != TN_OK)
        return NULL;
    if (got.dtype != wanted.dtype) {
        tn_snprint(spec, sizeof spec, "cast(%s)", tn_dtype_name(wanted.dtype));
        value = add(g, write, spec, value);
    }
    same = got.ndim == wanted.ndim;
    for (int32_t i = 0; same && i < got.ndim; i++)
        same = got.shape[i] == wanted.shape[i];
    if (same || value == NULL)
        return value;
    if (g->n_symbols > 0) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "%s: node %s writes a value of another shape, and sizes vary; expected the shape "
                "of the tensor",
                g->path, tn_node_name(write));
        return NULL;
    }
    tn_snprint(spec, sizeof spec, "expand(shape=[");
    for (int32_t i = 0; i < wanted.ndim; i++) {
        used = strlen(spec);
        tn_snprint(spec + used, sizeof spec - used, "%s%lld", i > 0 ? ", " : "",
                   (long long)wanted.shape[i]);
    }
    used = strlen(spec);
    tn_snprint(spec + used, sizeof spec - used, "])");
    return add(g, write, spec, value);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Where a part lies along its dimension. */
struct place {
    int64_t dim, start, end, step;
    bool dropped; /* select: the part lacks the dimension */
};

static struct place place_of(const tn_node *part, const tn_meta *whole)
{
    const char *name = tn_node_target(part);
    int64_t dim = *(const int64_t *)export_option(part, "dim");
    struct place place = { .dim = dim < 0 ? dim + whole->ndim : dim, .step = 1 };
    int64_t size = whole->shape[place.dim];

    if (strcmp(name, "select") == 0) {
        place.start = *(const int64_t *)export_option(part, "index");
        place.dropped = true;
    } else {
        place.start = *(const int64_t *)export_option(part, "start");
    }
    if (place.start == INT64_MIN)
        place.start = 0;
    place.start += place.start < 0 ? size : 0;
    place.start = place.start < 0 ? 0 : place.start > size ? size : place.start;
    place.end = place.start + 1;
    if (strcmp(name, "narrow") == 0)
        place.end = place.start + *(const int64_t *)export_option(part, "length");
    if (strcmp(name, "slice") == 0) {
        place.end = *(const int64_t *)export_option(part, "end");
        place.step = *(const int64_t *)export_option(part, "step");
        place.end = place.end == INT64_MIN ? size : place.end < 0 ? place.end + size : place.end;
        place.end = place.end > size ? size : place.end < place.start ? place.start : place.end;
    }
    return place;
}

static bool varies(const struct export_graph *g, const tn_node *value)
{
    struct export_size at[TN_MAX_DIMS];
    int32_t ndim = export_sizes_of(g, value, at);

    for (int32_t i = 0; i < ndim; i++)
        if (at[i].a >= 0)
            return true;
    return false;
}

/* `whole` with `value` in the place of its part. */
static tn_node *put_together(struct export_graph *g, tn_node *before, tn_node *part, tn_node *value)
{
    tn_node *whole = whole_of(part), *pieces[3];
    struct place place;
    tn_meta meta;
    char spec[120];
    int64_t n = 0;

    if (tn_node_meta(whole, &meta) != TN_OK)
        return NULL;
    place = place_of(part, &meta);
    if (place.step != 1 || varies(g, whole)) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "%s: node %s writes into %s, a part of a tensor %s; expected parts of neighbouring "
                "elements of tensors of fixed sizes",
                g->path, tn_node_name(before), tn_node_name(part),
                place.step != 1 ? "with a step" : "whose sizes vary");
        return NULL;
    }
    if (place.dropped) {
        tn_snprint(spec, sizeof spec, "unsqueeze(dim=%lld)", (long long)place.dim);
        value = add(g, before, spec, value);
    }
    if (place.start > 0) {
        tn_snprint(spec, sizeof spec, "narrow(dim=%lld, start=0, length=%lld)",
                   (long long)place.dim, (long long)place.start);
        pieces[n++] = add(g, before, spec, whole);
    }
    pieces[n++] = value;
    if (place.end < meta.shape[place.dim]) {
        tn_snprint(spec, sizeof spec, "narrow(dim=%lld, start=%lld, length=%lld)",
                   (long long)place.dim, (long long)place.end,
                   (long long)(meta.shape[place.dim] - place.end));
        pieces[n++] = add(g, before, spec, whole);
    }
    if (n == 1)
        return value;
    tn_snprint(spec, sizeof spec, "cat(dim=%lld)", (long long)place.dim);
    return tn_graph_add_op(g->graph, before, spec, pieces, n);
}

/* The nodes after `write` use `made` in place of `value`. */
static tn_status use_later(tn_node *write, const tn_node *value, tn_node *made)
{
    tn_status status = TN_OK;

    for (tn_node *node = tn_node_next(write); node != NULL; node = tn_node_next(node))
        for (int64_t i = 0; i < tn_node_input_count(node) && status == TN_OK; i++)
            if (tn_node_input(node, i) == value)
                status = tn_node_set_input(node, i, made);
    return status;
}

static tn_status replace(struct export_graph *g, tn_node *write)
{
    int64_t count = tn_node_input_count(write) - 1;
    tn_node *in[TN_MAX_OPERANDS], *made, *value;
    tn_status status = TN_OK;

    if (count > TN_MAX_OPERANDS)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: node %s: too many inputs", g->path,
                       tn_node_name(write));
    for (int64_t i = 0; i < count; i++)
        in[i] = tn_node_input(write, i);
    made = tn_graph_add_call(g->graph, write, tn_node_op(write), tn_node_options(write), in, count);
    if (made != NULL)
        made = fitted(g, write, made);
    if (made == NULL || tn_node_replace_uses(write, made) < 0)
        return tn_error_last_code();
    value = tn_node_input(write, count);
    for (tn_node *whole; status == TN_OK && made != NULL; value = whole) {
        status = use_later(write, value, made);
        whole = whole_of(value);
        if (whole == NULL)
            break;
        made = put_together(g, write, value, made);
    }
    if (status == TN_OK && made == NULL)
        status = tn_error_last_code();
    return status == TN_OK ? tn_node_erase(write) : status;
}

tn_status export_plain(struct export_graph *g)
{
    struct sharing s = { .g = g };
    tn_status status = find_roots(&s);

    for (tn_node *node = tn_graph_first(g->graph); node != NULL && status == TN_OK;
         node = tn_node_next(node))
        if (tn_node_kind_of(node) == TN_NODE_INPLACE)
            status = check_write(&s, node);
    for (tn_node *node = tn_graph_first(g->graph), *next; node != NULL && status == TN_OK;
         node = next) {
        next = tn_node_next(node);
        if (tn_node_kind_of(node) == TN_NODE_INPLACE)
            status = replace(g, node);
    }
    tn_free((void *)s.roots);
    names_free(&s.numbers);
    return status;
}
