/* SPDX-License-Identifier: MIT
 *
 * Offers a graph to compilers. The sets of nodes that a compiler claims are checked, compiled, and
 * replaced by regions. */
#include "core/base/vector.h"
#include "lib/graph/private.h"
#include "core/tensor/boundary.h"

#include <tenon/runtime.h>

/* A set of nodes that the compiler has claimed. */
struct set {
    tn_node **nodes;
    int64_t count;
};

/* A graph that is offered to one compiler. */
struct offer {
    tn_graph *graph;
    const tn_device *device;
    const tn_compiler_def *def;
    tn__plugin *plugin;
    tn__region_flat flat;
    uint8_t *claimed; /* by index in flat.nodes */
    struct set *sets;
    int64_t n_sets, sets_capacity;
    tn_status failed; /* status of the first claim that was refused */
    char words[900];
};

/* ---- claims ---------------------------------------------------------------------------------- */

static bool is_known(const tn_node *value)
{
    return tn__graph_is_none(value) || value->meta->ndim >= 0;
}

/* Returns whether a compiler may claim the node: an operator with results that is not in a part
 * without gradients, draws no random numbers and need not keep its place in the order of calls. Its
 * shapes must be known, the compiler must know all that the call uses, and slots and constants that
 * it uses must be on the device. */
static bool is_offered(const tn_node *node, const tn_device *device, const struct offer *offer)
{
    char reason[160];
    bool offered = node->kind == TN_NODE_OP && !node->no_grad &&
                   !tn__node_uses_newer(node, &offer->def->head, offer->plugin, reason,
                                        sizeof reason) &&
                   (node->op->flags & (TN_OP_RANDOM | TN_OP_ORDERED)) == 0 && node->n_out > 0;

    for (int64_t i = 0; i < node->n_in && offered; i++)
        offered = is_known(node->in[i]) &&
                  (tn__graph_is_none(node->in[i]) || node->in[i]->held.tensor == NULL ||
                   node->in[i]->held.tensor->device == device);
    for (int32_t i = 0; i < node->n_out && offered; i++)
        offered = node->meta[i].ndim >= 0;
    return offered;
}

/* Returns whether the graph writes into tensors, or calls a module, which may do so. Such a graph
 * is not offered, because a region makes copies where operators may return views. */
static bool has_writes(const tn_graph *graph)
{
    for (const tn_node *node = graph->steps; node != NULL; node = node->next)
        if (node->kind == TN_NODE_INPLACE || node->kind == TN_NODE_CALL ||
            (node->op != NULL && (node->op->flags & (TN__OP_WRITES | TN__OP_UPDATES)) != 0))
            return true;
    return false;
}

static tn_status check_numbers(struct offer *offer, const int64_t *nodes, int64_t count)
{
    int64_t most = offer->flat.region.n_nodes;

    if (count < 1)
        return tn_fail(TN_ERR_VALUE, "claim: no nodes, got %lld; expected at least one",
                       (long long)count);
    if (nodes == NULL)
        return tn_fail(TN_ERR_VALUE, "claim: nodes: it is NULL; expected %lld numbers of nodes",
                       (long long)count);
    for (int64_t i = 0; i < count; i++) {
        if (nodes[i] < 0 || nodes[i] >= most)
            return tn__error_index(nodes[i], most, "claim: node: ");
        if (offer->claimed[nodes[i]])
            return tn_fail(TN_ERR_VALUE,
                           "claim: node %lld (%s): already claimed; expected each node once",
                           (long long)nodes[i], offer->flat.region.nodes[nodes[i]].name);
        offer->claimed[nodes[i]] = 1;
    }
    return TN_OK;
}

static tn_status add_set(struct offer *offer, const int64_t *nodes, int64_t count)
{
    size_t ids = (size_t)offer->graph->next_id + 1;
    uint8_t *marks = tn_calloc(2, ids);
    tn_node **set = tn_malloc((size_t)count * sizeof(tn_node *));
    tn_status status = TN_ERR_MEMORY;
    int64_t used = 0;

    if (marks != NULL && set != NULL &&
        tn__vector_room(&offer->sets, &offer->sets_capacity, offer->n_sets + 1,
                        sizeof *offer->sets)) {
        for (int64_t i = 0; i < count; i++)
            marks[offer->flat.nodes[nodes[i]]->id] = 1;
        for (int64_t i = 0; i < offer->flat.region.n_nodes; i++) /* in the order of the graph */
            if (marks[offer->flat.nodes[i]->id])
                set[used++] = offer->flat.nodes[i];
        status = tn__region_convex(offer->graph, &offer->flat, marks, marks + ids);
    }
    tn_free(marks);
    if (status == TN_OK)
        offer->sets[offer->n_sets++] = (struct set){ set, count };
    else
        tn_free(set);
    return status;
}

static tn_status claim(const tn_claims *claims, const int64_t *nodes, int64_t count)
{
    struct offer *offer;
    tn_status status;

    if (claims == NULL)
        return tn__error_refuse_null("tn_claims.add: claims");
    offer = claims->host;
    if (offer->failed != TN_OK)
        return tn_fail(offer->failed, "claim: an earlier claim was refused: %s", offer->words);
    status = check_numbers(offer, nodes, count);
    if (status == TN_OK)
        status = add_set(offer, nodes, count);
    if (status != TN_OK) {
        offer->failed = status;
        tn_snprint(offer->words, sizeof offer->words, "%s", tn_error_last()->message);
    }
    return status;
}

static tn_status ask_claims(struct offer *offer)
{
    const char *id = offer->plugin->id != NULL ? offer->plugin->id : "";
    const char *before = tn__error_plugin(id);
    tn_claims claims = { TN_HEAD(tn_claims), .add = claim, .host = offer };
    uint64_t mark = tn_error_mark();
    tn__boundary_thread thread;
    tn_status status;

    tn__boundary_enter(&thread);
    status = tn__error_status_of(offer->def->claim(offer->def, &offer->flat.region, &claims),
                                 offer->def->name);
    status = tn__boundary_leave(&thread, id, offer->def->name, status);
    if (offer->failed != TN_OK) { /* also if the compiler ignored the failure */
        tn_error_restore(mark);
        status = tn_fail(offer->failed, "%s", offer->words);
    }
    tn__error_plugin(before);
    return status;
}

/* ---- compiling ------------------------------------------------------------------------------- */

static tn__region *region_new(const struct offer *offer, const tn__region_flat *flat)
{
    const tn_region *plan = &flat->region;
    tn__region *region = tn_calloc(1, sizeof *region);

    if (region == NULL)
        return NULL;
    atomic_store_explicit(&region->refs, 1, memory_order_relaxed);
    region->def = offer->def;
    region->plugin = offer->plugin;
    region->device = offer->device;
    region->n_in = plan->n_in;
    region->n_out = plan->n_out;
    region->in = tn_calloc((size_t)(plan->n_in + plan->n_out), sizeof *region->in);
    region->body = region->in != NULL ? tn__region_body(flat) : NULL;
    if (region->body == NULL) {
        tn__region_drop(region);
        return NULL;
    }
    region->out = region->in + plan->n_in;
    for (int64_t i = 0; i < plan->n_in; i++)
        region->in[i] = *plan->values[plan->in[i]].meta;
    for (int64_t i = 0; i < plan->n_out; i++) {
        region->out[i] = *plan->values[plan->out[i]].meta;
        region->out[i].flags = 0; /* row-major, even if the operator makes other strides */
        region->out[i].offset = 0;
        tn__op_meta_strides(&region->out[i]);
    }
    return region;
}

static tn_status call_compile(const struct offer *offer, const tn_region *part, tn__region *region)
{
    const char *id = offer->plugin->id != NULL ? offer->plugin->id : "";
    const char *before = tn__error_plugin(id);
    tn_program program = { TN_HEAD(tn_program), .program = NULL };
    tn__boundary_thread thread;
    tn_status status;

    tn__boundary_enter(&thread);
    status = tn__error_status_of(offer->def->compile(offer->def, part, &program), offer->def->name);
    region->compiled = status == TN_OK;
    region->program = program.program;
    region->workspace = program.workspace;
    status = tn__boundary_leave(&thread, id, offer->def->name, status);
    tn__error_plugin(before);
    return status;
}

static tn_status compile_set(const struct offer *offer, const struct set *set)
{
    tn__region_flat flat;
    tn__region *region = NULL;
    tn_status status = tn__region_flatten(&flat, offer->graph, offer->device, set->nodes,
                                          set->count);

    /* A set whose results are not used is not compiled. */
    if (status == TN_OK && flat.region.n_out > 0) {
        region = region_new(offer, &flat);
        status = region != NULL ? call_compile(offer, &flat.region, region) : tn_error_last_code();
        if (status == TN_OK)
            status = tn__region_replace(offer->graph, &flat, region);
        else
            tn__region_drop(region);
    }
    tn__region_flat_free(&flat);
    return status;
}

static tn_status compile_sets(struct offer *offer)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < offer->n_sets && status == TN_OK; i++)
        status = compile_set(offer, &offer->sets[i]);
    if (status == TN_OK && offer->n_sets > 0)
        offer->graph->fixed = offer->def->name;
    return status;
}

static tn_status offer_nodes(struct offer *offer, tn_node **nodes)
{
    int64_t count = 0;
    tn_status status;

    for (tn_node *node = has_writes(offer->graph) ? NULL : offer->graph->steps; node != NULL;
         node = node->next)
        if (is_offered(node, offer->device, offer))
            nodes[count++] = node;
    if (count == 0)
        return TN_OK;
    status = tn__region_flatten(&offer->flat, offer->graph, offer->device, nodes, count);
    offer->claimed = tn_calloc((size_t)count, 1);
    if (offer->claimed == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = ask_claims(offer);
    return status == TN_OK ? compile_sets(offer) : status;
}

/* Offers the graph to one compiler and compiles the sets that it claims. */
static tn_status offer_to(tn_graph *graph, const tn_device *device, const tn__entry *entry)
{
    struct offer offer = { .graph = graph, .device = device, .plugin = entry->plugin };
    tn_node **nodes = tn_malloc(((size_t)graph->next_id + 1) * sizeof(tn_node *));
    tn_status status = TN_ERR_MEMORY;

    offer.def = (const tn_compiler_def *)entry->contribution;
    if (nodes != NULL)
        status = offer_nodes(&offer, nodes);
    tn_free(nodes);
    tn_free(offer.claimed);
    tn__region_flat_free(&offer.flat);
    for (int64_t i = 0; i < offer.n_sets; i++)
        tn_free(offer.sets[i].nodes);
    tn_free(offer.sets);
    return status == TN_OK ? TN_OK : tn_error_prefix("compiler %s: ", offer.def->name);
}

/* ---- which compilers ------------------------------------------------------------------------- */

/* A compiler whose plugin cannot be activated is skipped, as with kernels. */
static tn_status offer_if_active(tn_graph *graph, const tn_device *device, const tn__entry *entry)
{
    uint64_t mark = tn_error_mark(), failures = tn__memory_failures();

    if (tn__plugin_use(entry->plugin) == TN_OK)
        return offer_to(graph, device, entry);
    if (tn__memory_failures() != failures)
        return tn_error_last_code();
    tn_error_restore(mark);
    return TN_OK;
}

/* Offers the graph to all compilers for the type of the device, the highest priority first.
 * Compilers with the same priority follow in the order of their names. */
static tn_status offer_to_all(tn_graph *graph, const tn_device *device)
{
    const tn__entry *const *entries;
    int64_t count = tn__registry_all(TN_KIND_tn_compiler_def, &entries), last_place = -1;
    int64_t last = INT64_MAX;
    tn_status status = TN_OK;

    while (status == TN_OK) {
        const tn__entry *best = NULL;
        int64_t priority = INT64_MIN, place = -1;

        for (int64_t i = 0; i < count; i++) {
            const tn_compiler_def *def = (const tn_compiler_def *)entries[i]->contribution;
            bool done = def->priority > last || (def->priority == last && i <= last_place);

            if (!done && def->priority > priority &&
                strcmp(def->device, tn_device_type(device)) == 0) {
                best = entries[i];
                priority = def->priority;
                place = i;
            }
        }
        if (best == NULL)
            return TN_OK;
        last = priority;
        last_place = place;
        status = offer_if_active(graph, device, best);
    }
    return status;
}

static tn_status offer_to_named(tn_graph *graph, const tn_device *device, const char *name)
{
    const tn__entry *entry = tn__registry_use(TN_KIND_tn_compiler_def, name);
    const tn_compiler_def *def;

    if (entry == NULL)
        return tn_error_last_code();
    def = (const tn_compiler_def *)entry->contribution;
    if (strcmp(def->device, tn_device_type(device)) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_graph_compile: compiler %s: wrong device, got %s; it "
                       "compiles for %s",
                       def->name, tn_device_name(device), def->device);
    return offer_to(graph, device, entry);
}

static tn_status offer_to_list(tn_graph *graph, const tn_device *device, const char *names)
{
    tn_status status = TN_OK;
    char name[TN__NAME_LONGEST + 2];
    const char *at = names + strspn(names, " ,");

    if (*at == '\0')
        return tn_fail(TN_ERR_VALUE,
                       "tn_graph_compile: compilers: no name, got %q; expected names with commas "
                       "between, or NULL for all",
                       names);
    while (*at != '\0' && status == TN_OK) {
        size_t length = strcspn(at, " ,");

        tn_snprint(name, sizeof name, "%.*s", (int)(length < 1000 ? length : 1000), at);
        status = offer_to_named(graph, device, name);
        at += length;
        at += strspn(at, " ,");
    }
    return status;
}

tn_status tn_graph_compile(tn_graph *graph, const tn_device *device, const char *compilers)
{
    tn_graph *copy;
    tn_status status;

    if (!tn__not_null(graph, "tn_graph_compile: graph"))
        return tn_error_last_code();
    if (!tn__given(device != NULL, "tn_graph_compile: device"))
        return TN_ERR_VALUE;
    status = tn_registry_count(TN_KIND_tn_compiler_def) >= 0 ? TN_OK : tn_error_last_code();
    if (status == TN_OK)
        status = tn__device_usable(device);
    if (status == TN_OK)
        status = tn_graph_lint(graph);
    if (status != TN_OK)
        return status;
    copy = tn_graph_copy(graph);
    if (copy == NULL)
        return tn_error_last_code();
    status = compilers != NULL ? offer_to_list(copy, device, compilers)
                               : offer_to_all(copy, device);
    if (status == TN_OK)
        tn__graph_take(graph, copy);
    else
        tn_graph_drop(copy);
    return status;
}
