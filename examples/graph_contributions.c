/* SPDX-License-Identifier: MIT
 *
 * A plugin with minimal contributions for graphs and groups of processes: a pass that changes
 * nothing, a pass that removes unused nodes, a compiler that claims pairs of nodes, and a
 * communicator for one process. docs/plugins/graphs.md explains it step by step. */
#include <tenon/plugin.h>

#include <string.h>

/* ---- passes ---------------------------------------------------------------------------------- */

static tn_status nothing(const tn_pass_def *self, const tn_pass_args *args)
{
    (void)self;
    return args->report(args, "nothing to do");
}

/* Returns true if an unused node may be removed: it is an operator that returns tensors, draws no
 * random numbers, keeps its place among others of its kind, and writes no input. */
static bool is_pure(const tn_node *node)
{
    const tn_op_def *op;

    if (tn_node_kind_of(node) != TN_NODE_OP || tn_node_item_count(node) == 0)
        return false;
    op = tn_op_definition(tn_node_op(node));
    for (int32_t i = 0; i < op->n_inputs; i++)
        if ((op->inputs[i].flags & (TN_OPERAND_WRITTEN | TN_OPERAND_UPDATED)) != 0)
            return false;
    return (op->flags & (TN_OP_RANDOM | TN_OP_ORDERED)) == 0;
}

/* The number of users of a node and, if the node has several outputs, of its items. */
static int64_t users_of(const tn_node *node)
{
    int64_t users = tn_node_user_count(node);

    for (int64_t i = 0; tn_node_item_count(node) > 1 && i < tn_node_item_count(node); i++)
        users += tn_node_user_count(tn_node_item(node, i));
    return users;
}

/* Removes nodes without users. Repeats this, because removing a node can leave its inputs without
 * users. */
static tn_status unused(const tn_pass_def *self, const tn_pass_args *args)
{
    int64_t removed = 0;
    char words[64];
    bool again = true;

    (void)self;
    while (again) {
        again = false;
        for (tn_node *node = tn_graph_first(args->graph), *next; node; node = next) {
            next = tn_node_next(node);
            while (next && tn_node_kind_of(next) == TN_NODE_ITEM) /* removed with its operator */
                next = tn_node_next(next);
            if (!is_pure(node) || users_of(node) > 0)
                continue;
            if (tn_node_erase(node) != TN_OK)
                return tn_error_last_code();
            removed++;
            again = true;
        }
    }
    tn_snprint(words, sizeof words, "%lld removed", (long long)removed);
    return args->report(args, words);
}

static const tn_pass_def nothing_pass = { TN_HEAD(tn_pass_def), .name = "nothing",
                                          .help = "changes nothing", .flags = TN_PASS_EXACT,
                                          .run = nothing };
static const tn_pass_def unused_pass = {
    TN_HEAD(tn_pass_def),   .name = "unused",   .help = "removes nodes whose results are not used",
    .flags = TN_PASS_EXACT, .after = "nothing", .run = unused
};

/* ---- a compiler: y = relu(a + alpha b) in one loop ------------------------------------------- */

static bool is(const tn_region_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

/* Returns true if a value is float32 and has the shape of `like`, as the loop in run() requires.
 * Shapes are known when the graph is compiled; strides only at each call. */
static bool fits(const tn_region *region, int32_t value, const tn_meta *like)
{
    const tn_meta *meta = value >= 0 ? region->values[value].meta : NULL;

    if (!meta || meta->dtype != TN_F32 || meta->ndim != like->ndim)
        return false;
    for (int32_t d = 0; d < meta->ndim; d++)
        if (meta->shape[d] != like->shape[d])
            return false;
    return true;
}

/* Claims pairs of an add and a relu, if the relu is the only user of the sum. */
static tn_status claim(const tn_compiler_def *self, const tn_region *graph, const tn_claims *claims)
{
    (void)self;
    for (int64_t i = 0; i < graph->n_nodes; i++) {
        const tn_region_node *relu = &graph->nodes[i], *add;
        const tn_region_value *sum = is(relu, "relu") ? &graph->values[relu->in[0]] : NULL;
        int64_t uses = 0, pair[2];

        if (!sum || sum->node < 0 || sum->flags & TN_REGION_SEEN)
            continue;
        add = &graph->nodes[sum->node];
        for (int64_t k = 0; k < graph->n_nodes; k++)
            for (int32_t n = 0; n < graph->nodes[k].n_in; n++)
                uses += graph->nodes[k].in[n] == relu->in[0];
        if (!is(add, "add") || uses != 1 || !fits(graph, add->in[0], sum->meta) ||
            !fits(graph, add->in[1], sum->meta))
            continue;
        pair[0] = sum->node;
        pair[1] = i;
        if (claims->add(claims, pair, 2) != TN_OK)
            return tn_error_last_code();
    }
    return TN_OK;
}

struct program {
    float alpha;
    int a, b; /* indices of the inputs of the region; equal for x + x */
};

static tn_status compile(const tn_compiler_def *self, const tn_region *part, tn_program *out)
{
    const tn_region_node *add = &part->nodes[0];
    const tn_add_options *options = add->options;
    struct program *program = tn_calloc(1, sizeof *program);

    (void)self;
    if (!program)
        return TN_ERR_MEMORY;
    program->alpha = (float)tn_scalar_as_float(options->alpha);
    for (int i = 0; i < (int)part->n_in; i++) {
        if (part->in[i] == add->in[0])
            program->a = i;
        if (part->in[i] == add->in[1])
            program->b = i;
    }
    out->program = program;
    return TN_OK;
}

/* Moves `index` to the next element of the output in row-major order, and `at` to the offsets of
 * that element in both inputs. */
static void advance(const tn_view *out, int64_t *index, const tn_view *const *in, int64_t *at)
{
    for (int32_t d = out->ndim - 1; d >= 0; d--) {
        index[d]++;
        for (int k = 0; k < 2; k++)
            at[k] += in[k]->strides[d];
        if (index[d] < out->shape[d])
            return;
        for (int k = 0; k < 2; k++)
            at[k] -= index[d] * in[k]->strides[d];
        index[d] = 0;
    }
}

static tn_status run(void *data, const tn_region_call *call)
{
    const struct program *program = data;
    const tn_view *const in[2] = { call->in[program->a], call->in[program->b] };
    const tn_view *out = call->out[0];
    const float *a = (const float *)(const void *)((const char *)in[0]->data + in[0]->byte_offset);
    const float *b = (const float *)(const void *)((const char *)in[1]->data + in[1]->byte_offset);
    float *y = (float *)(void *)((char *)out->data + out->byte_offset);
    int64_t index[TN_MAX_DIMS] = { 0 }, at[2] = { 0, 0 }, count = 1;

    for (int32_t d = 0; d < out->ndim; d++)
        count *= out->shape[d];
    for (int64_t i = 0; i < count; i++) {
        float product = program->alpha * b[at[1]], sum = a[at[0]] + product;

        y[i] = sum < 0 ? 0 : sum; /* NaN stays NaN */
        advance(out, index, in, at);
    }
    return TN_OK;
}

static void drop(void *program)
{
    tn_free(program);
}

static const tn_compiler_def pairs = { TN_HEAD(tn_compiler_def),
                                       .name = "pairs",
                                       .device = "cpu",
                                       .help = "takes over relu(a + alpha b) of float32",
                                       .flags = TN_COMPILER_TRAINS | TN_COMPILER_CAPTURE_SAFE,
                                       .claim = claim,
                                       .compile = compile,
                                       .run = run,
                                       .drop = drop };

/* ---- a communicator of one process ----------------------------------------------------------- */

struct message {
    struct message *next;
    int32_t tag;
    size_t size;
    char bytes[];
};

struct group {
    const tn_device *device;
    struct message *first, **last; /* messages that were sent and not yet received */
};

static tn_status open_group(const tn_comm_def *self, const tn_comm_args *args, void **comm)
{
    struct group *group;

    if (args->size != 1)
        return tn_fail(TN_ERR_VALUE, "%s: size: too large, got %d; expected 1 process", self->name,
                       (int)args->size);
    if (!tn_device_is_host(args->device))
        return tn_fail(TN_ERR_VALUE,
                       "%s: device: wrong, got %s; expected a device with host memory", self->name,
                       tn_device_name(args->device));
    group = tn_calloc(1, sizeof *group);
    if (!group)
        return TN_ERR_MEMORY;
    group->device = args->device;
    group->last = &group->first;
    *comm = group;
    return TN_OK;
}

static void close_group(void *comm)
{
    struct group *group = comm;

    while (group->first) {
        struct message *next = group->first->next;
        tn_free(group->first);
        group->first = next;
    }
    tn_free(group);
}

static size_t size_of(const tn_view *view)
{
    size_t size = view->dtype.bits / 8u;

    for (int32_t d = 0; d < view->ndim; d++)
        size *= (size_t)view->shape[d];
    return size;
}

static char *bytes_of(const tn_view *view)
{
    return (char *)view->data + view->byte_offset;
}

/* all_reduce, broadcast and barrier. With one process, the result is the tensor itself, so input
 * and output are the same tensor; barrier has no tensors. */
static tn_status same(const tn_comm_call *call)
{
    return call->in == NULL || call->in->data == call->out->data
               ? TN_OK
               : tn_fail(TN_ERR_ASSERT,
                         "%s: in and out are different tensors; expected the same one",
                         call->def->name);
}

static tn_status copy(const tn_comm_call *call)
{
    memcpy(bytes_of(call->out), bytes_of(call->in), size_of(call->in));
    return TN_OK;
}

static tn_status send(const tn_comm_call *call)
{
    struct group *group = call->comm;
    size_t size = size_of(call->in);
    struct message *message = tn_malloc(sizeof *message + size);

    if (!message)
        return TN_ERR_MEMORY;
    message->next = NULL;
    message->tag = call->tag;
    message->size = size;
    memcpy(message->bytes, bytes_of(call->in), size);
    *group->last = message;
    group->last = &message->next;
    return TN_OK;
}

static tn_status recv(const tn_comm_call *call)
{
    struct group *group = call->comm;
    struct message **at = &group->first, *message;

    while (*at && (*at)->tag != call->tag)
        at = &(*at)->next;
    message = *at;
    if (!message)
        return tn_fail(TN_ERR_TIMEOUT, "%s: no message with tag %d was sent", call->def->name,
                       (int)call->tag);
    if (message->size != size_of(call->out))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: recv: wrong size, got a tensor of %zu bytes; expected %zu, as were sent",
            call->def->name, size_of(call->out), message->size);
    memcpy(bytes_of(call->out), message->bytes, message->size);
    *at = message->next;
    if (!message->next)
        group->last = at;
    tn_free(message);
    return TN_OK;
}

static const tn_comm_def alone = {
    TN_HEAD(tn_comm_def),    .name = "alone",    .help = "a group of one process",
    .dtypes = TN_MASK_ARITH, .open = open_group, .close = close_group,
    .all_reduce = same,      .broadcast = same,  .all_gather = copy,
    .reduce_scatter = copy,  .send = send,       .recv = recv,
    .barrier = same
};

TN_PLUGIN("org.example.graph_contributions", "1.0.0", &nothing_pass, &unused_pass, &pairs, &alone);
