/* SPDX-License-Identifier: MIT
 *
 * The graph as an object: references, copies, guards, and queries. */
#include "core/base/vector.h"
#include "lib/graph/private.h"

tn_status tn__graph_node_failed(const char *name, const char *path)
{
    return path != NULL && path[0] != '\0' ? tn_error_prefix("node %s (%s): ", name, path)
                                           : tn_error_prefix("node %s: ", name);
}

/* ---- guards ---------------------------------------------------------------------------------- */

void tn__graph_guard_set(tn__guard *guard, tn_tensor *tensor, const char *who)
{
    guard->tensor = tn_tensor_keep(tensor);
    guard->storage = tn__storage_keep(tensor->storage);
    guard->version = atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
    guard->who = who;
}

void tn__graph_guard_drop(tn__guard *guard)
{
    if (guard->tensor == NULL)
        return;
    if (guard->storage != NULL)
        tn__storage_drop(guard->storage);
    tn_tensor_drop(guard->tensor);
    guard->tensor = NULL;
}

bool tn__graph_guard_holds(const tn__guard *guard)
{
    return guard->tensor->storage == guard->storage &&
           atomic_load_explicit(&guard->storage->version, memory_order_relaxed) == guard->version;
}

tn_status tn__graph_guard_slots(tn_graph *graph, const char *who)
{
    for (tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node); node = node->next) {
        if (node->kind != TN_NODE_SLOT)
            continue;
        if (!tn__vector_room(&graph->guards, &graph->guards_capacity, graph->n_guards + 1,
                             sizeof *graph->guards))
            return TN_ERR_MEMORY;
        tn__graph_guard_set(&graph->guards[graph->n_guards++], node->held.tensor, who);
    }
    return TN_OK;
}

/* ---- creating and freeing -------------------------------------------------------------------- */

tn_graph *tn_graph_new(void)
{
    tn_graph *graph = tn_calloc(1, sizeof *graph);

    if (graph != NULL) {
        atomic_store_explicit(&graph->refs, 1, memory_order_relaxed);
        graph->training = -1;
    }
    return graph;
}

tn_graph *tn_graph_keep(tn_graph *graph)
{
    if (tn__not_null(graph, "tn_graph_keep: graph"))
        atomic_fetch_add_explicit(&graph->refs, 1, memory_order_relaxed);
    return graph;
}

static void free_list(tn_node *node)
{
    while (node != NULL) {
        tn_node *next = node->next;

        tn__graph_node_free(node);
        node = next;
    }
}

static void drop_guards(tn_graph *graph)
{
    for (int64_t i = 0; i < graph->n_guards; i++)
        tn__graph_guard_drop(&graph->guards[i]);
    tn_free(graph->guards);
    graph->guards = NULL;
    graph->n_guards = graph->guards_capacity = 0;
}

tn_status tn__graph_ask(tn_graph *graph, const char *path, bool training)
{
    tn__asked *asked;

    for (int64_t i = 0; i < graph->n_asked; i++)
        if (strcmp(graph->asked[i].path, path) == 0)
            return TN_OK;
    if (!tn__vector_room(&graph->asked, &graph->asked_capacity, graph->n_asked + 1,
                         sizeof *graph->asked))
        return TN_ERR_MEMORY;
    asked = &graph->asked[graph->n_asked];
    *asked = (tn__asked){ tn_strdup(path), training };
    if (asked->path == NULL)
        return TN_ERR_MEMORY;
    graph->n_asked++;
    return TN_OK;
}

bool tn__graph_is_mixed(const tn_graph *graph)
{
    for (int64_t i = 1; i < graph->n_asked; i++)
        if (graph->asked[i].training != graph->asked[0].training)
            return true;
    return false;
}

void tn_graph_drop(tn_graph *graph)
{
    if (graph == NULL || atomic_fetch_sub_explicit(&graph->refs, 1, memory_order_acq_rel) != 1)
        return;
    free_list(graph->first);
    free_list(graph->erased);
    tn__name_table_free(&graph->names);
    tn_free(graph->named);
    tn_free(graph->report);
    tn_free(graph->type);
    tn_pack_drop(graph->in);
    tn_pack_drop(graph->out);
    for (int64_t i = 0; i < graph->n_asked; i++)
        tn_free(graph->asked[i].path);
    tn_free(graph->asked);
    drop_guards(graph);
    tn_free(graph);
}

/* Exchanges the contents of two graphs, except the reference counts, which other threads may change
 * meanwhile. */
static void exchange(tn_graph *a, tn_graph *b)
{
    enum { FROM = offsetof(tn_graph, first), SIZE = sizeof(tn_graph) - FROM };
    char space[SIZE];

    memcpy(space, (char *)a + FROM, SIZE);
    memcpy((char *)a + FROM, (char *)b + FROM, SIZE);
    memcpy((char *)b + FROM, space, SIZE);
}

void tn__graph_take(tn_graph *graph, tn_graph *from)
{
    uint64_t edits = graph->edits;

    for (tn_node *node = from->first; node != NULL; node = node->next)
        node->graph = graph;
    for (tn_node *node = from->erased; node != NULL; node = node->next)
        node->graph = graph;
    exchange(graph, from);
    graph->edits = edits + 1;
    /* The program may have pointers to the nodes in `from`, so they are kept as erased nodes. */
    for (tn_node *list = from->first, *next; list != NULL; list = next) {
        next = list->next;
        list->erased = true;
        list->prev = NULL;
        list->next = from->erased;
        from->erased = list;
    }
    from->first = from->last = NULL;
    for (tn_node *list = from->erased, *next; list != NULL; list = next) {
        next = list->next;
        list->graph = graph;
        list->next = graph->erased;
        graph->erased = list;
    }
    from->erased = NULL;
    tn_graph_drop(from);
}

/* ---- modules that are called ----------------------------------------------------------------- */

tn__callee *tn__graph_callee_new(tn_module *module, const tn_pack *in, const tn_pack *out)
{
    tn__callee *callee = tn_calloc(1, sizeof *callee);

    if (callee == NULL)
        return NULL;
    atomic_store_explicit(&callee->refs, 1, memory_order_relaxed);
    callee->module = tn_module_keep(module);
    if ((in != NULL && (callee->in = tn__values_with(in, NULL)) == NULL) ||
        (out != NULL && (callee->out = tn__values_with(out, NULL)) == NULL)) {
        tn__graph_callee_drop(callee);
        return NULL;
    }
    return callee;
}

tn__callee *tn__graph_callee_keep(tn__callee *callee)
{
    atomic_fetch_add_explicit(&callee->refs, 1, memory_order_relaxed);
    return callee;
}

void tn__graph_callee_drop(tn__callee *callee)
{
    if (callee == NULL || atomic_fetch_sub_explicit(&callee->refs, 1, memory_order_acq_rel) != 1)
        return;
    tn_module_drop(callee->module);
    tn_pack_drop(callee->in);
    tn_pack_drop(callee->out);
    tn_free(callee);
}

/* ---- texts ----------------------------------------------------------------------------------- */

tn_status tn__graph_set_text(char **to, const char *text)
{
    char *copy = text != NULL ? tn_strdup(text) : NULL;

    if (text != NULL && copy == NULL)
        return TN_ERR_MEMORY;
    tn_free(*to);
    *to = copy;
    return TN_OK;
}

/* Words that mean something else than a node in the form of code. */
static bool is_word_of_code(const char *name)
{
    static const char *const words[] = { "True", "False",  "None",    "none", "inf",
                                         "nan",  "return", "no_grad", "self", "CONSTANTS" };

    for (size_t i = 0; i < tn__countof(words); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

void tn__graph_name_of(const char *path, char *out, size_t size)
{
    bool digit = path[0] >= '0' && path[0] <= '9';
    bool other = digit || path[0] == '\0' || is_word_of_code(path);

    tn_snprint(out, size, "%s%s", other ? "_" : "", path);
    for (char *at = out; *at != '\0'; at++)
        if (!((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
              (*at >= 'A' && *at <= 'Z')))
            *at = '_';
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Returns a copy of a node, with its id but without inputs. */
static tn_node *copy_node(tn_graph *to, const tn_node *from)
{
    tn_node *node = tn__graph_node_copy(to, from, true);

    if (node == NULL)
        return NULL;
    node->id = from->id;
    node->index = from->index;
    if (from->held.tensor != NULL) {
        node->held = from->held;
        tn_tensor_keep(node->held.tensor);
        if (node->held.storage != NULL)
            tn__storage_keep(node->held.storage);
    }
    if (from->region != NULL)
        node->region = tn__region_keep(from->region);
    tn__graph_node_link(node, NULL);
    if (node->kind == TN_NODE_OUTPUT)
        to->output = node;
    to->n_inputs += node->kind == TN_NODE_INPUT;
    return node;
}

tn_status tn__graph_copy_inputs(const tn_node *from, tn_node *to, tn_node *const *copies)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < from->n_in && status == TN_OK; i++) {
        tn_node *in = from->in[i];

        if (tn__graph_is_none(in))
            to->in[i] = in;
        else if (to->kind == TN_NODE_ITEM)
            to->in[i] = copies[in->id];
        else
            status = tn__graph_node_use(to, i, copies[in->id]);
    }
    if (status == TN_OK && from->items != NULL) {
        to->items = tn_malloc((size_t)from->n_out * sizeof *to->items);
        if (to->items == NULL)
            return TN_ERR_MEMORY;
        for (int32_t i = 0; i < from->n_out; i++)
            to->items[i] = copies[from->items[i]->id];
    }
    return status;
}

tn_status tn__graph_copy_guards(const tn_graph *from, tn_graph *to)
{
    if (!tn__vector_room(&to->guards, &to->guards_capacity, from->n_guards, sizeof *to->guards))
        return TN_ERR_MEMORY;
    for (; to->n_guards < from->n_guards; to->n_guards++) {
        to->guards[to->n_guards] = from->guards[to->n_guards];
        tn_tensor_keep(to->guards[to->n_guards].tensor);
        tn__storage_keep(to->guards[to->n_guards].storage);
    }
    return TN_OK;
}

static tn_status copy_into(const tn_graph *from, tn_graph *to, tn_node **copies)
{
    tn_status status = tn__graph_copy_guards(from, to);

    to->training = from->training;
    to->evaluates = from->evaluates;
    memcpy(to->symbols, from->symbols, sizeof to->symbols);
    to->n_symbols = from->n_symbols;
    if (status == TN_OK)
        status = tn__graph_set_text(&to->type, from->type);
    for (int64_t i = 0; i < from->n_asked && status == TN_OK; i++)
        status = tn__graph_ask(to, from->asked[i].path, from->asked[i].training);
    if (status == TN_OK && from->in != NULL && (to->in = tn__values_with(from->in, NULL)) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK && from->out != NULL &&
        (to->out = tn__values_with(from->out, NULL)) == NULL)
        status = tn_error_last_code();
    for (tn_node *node = from->first; node != NULL && status == TN_OK; node = node->next) {
        copies[node->id] = copy_node(to, node);
        if (copies[node->id] == NULL)
            status = tn_error_last_code();
    }
    for (tn_node *node = from->first; node != NULL && status == TN_OK; node = node->next)
        status = tn__graph_copy_inputs(node, copies[node->id], copies);
    to->next_id = from->next_id;
    to->fixed = from->fixed;
    to->inference = from->inference;
    if (status == TN_OK && from->report != NULL) {
        to->report = tn_strdup(from->report);
        status = to->report != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    return status;
}

tn_graph *tn_graph_copy(const tn_graph *graph)
{
    tn_graph *copy;
    tn_node **copies;
    tn_status status;

    if (!tn__not_null(graph, "tn_graph_copy: graph"))
        return NULL;
    copy = tn_graph_new();
    copies = tn_calloc((size_t)graph->next_id + 1, sizeof *copies);
    status = copy != NULL && copies != NULL ? copy_into(graph, copy, copies) : TN_ERR_MEMORY;
    tn_free(copies);
    if (status == TN_OK)
        return copy;
    tn_graph_drop(copy);
    return NULL;
}

/* ---- queries --------------------------------------------------------------------------------- */

tn_node *tn_graph_first(const tn_graph *graph)
{
    return tn__not_null(graph, "tn_graph_first: graph") ? graph->first : NULL;
}

tn_node *tn_graph_find(const tn_graph *graph, const char *name)
{
    int64_t place;
    const char *near;

    if (!tn__not_null(graph, "tn_graph_find: graph") ||
        !tn__given(name != NULL, "tn_graph_find: name"))
        return NULL;
    place = tn__name_table_find(&graph->names, name, strlen(name));
    if (place >= 0)
        return graph->named[place].node;
    near = tn__name_nearest(name, (const char *const *)graph->names.names, graph->names.count);
    tn_fail(TN_ERR_KEY, "tn_graph_find: no node %q%s%s%s", name,
            near != NULL ? "; did you mean " : "", near != NULL ? near : "",
            near != NULL ? "?" : "");
    return NULL;
}

int64_t tn_graph_input_count(const tn_graph *graph)
{
    return tn__not_null(graph, "tn_graph_input_count: graph") ? graph->n_inputs : -1;
}

int64_t tn_graph_output_count(const tn_graph *graph)
{
    if (!tn__not_null(graph, "tn_graph_output_count: graph"))
        return -1;
    return graph->output != NULL ? graph->output->n_in : 0;
}

int64_t tn_graph_report(const tn_graph *graph, char *out, size_t size)
{
    tn__text text = { 0 };

    if (!tn__not_null(graph, "tn_graph_report: graph"))
        return -1;
    if (graph->report != NULL)
        tn__text_put(&text, graph->report, strlen(graph->report));
    return tn__text_give(&text, out, size);
}
