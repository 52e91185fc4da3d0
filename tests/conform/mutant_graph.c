/* SPDX-License-Identifier: MIT
 *
 * A pass, a compiler and a communicator with one error each (mutant_choose.h). The compiler
 * replaces each relu of float32. */
#include <string.h>

#include "mutant_choose.h"

/* ---- the pass -------------------------------------------------------------------------------- */

static bool calls_op(const tn_node *node, const char *op)
{
    return tn_node_kind_of(node) == TN_NODE_OP &&
           strcmp(tn_op_definition(tn_node_op(node))->name, op) == 0;
}

/* relu of relu is relu. */
static tn_status twice(const tn_pass_def *self, const tn_pass_args *args)
{
    static int calls;

    (void)self;
    if (is("loses") && calls++ % 2 == 1)
        return tn_fail(TN_ERR_RUNTIME, "it was here before");
    for (tn_node *node = tn_graph_first(args->graph), *in; node; node = tn_node_next(node)) {
        if (!calls_op(node, "relu") || is("matches-nothing"))
            continue;
        in = tn_node_input(node, 0);
        if (is("other")) {
            tn_node *silu = tn_graph_add_op(args->graph, node, "silu()", &in, 1);

            if (!silu || tn_node_replace_uses(node, silu) < 0)
                return tn_error_last_code();
        } else if (calls_op(in, "relu") && tn_node_replace_uses(node, in) < 0) {
            return tn_error_last_code();
        }
    }
    return TN_OK;
}

/* ---- the compiler ---------------------------------------------------------------------------- */

static tn_status claim(const tn_compiler_def *self, const tn_region *graph, const tn_claims *claims)
{
    (void)self;
    for (int64_t i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i].op->name, "relu") == 0 &&
            graph->values[graph->nodes[i].out[0]].meta->dtype == TN_F32 &&
            claims->add(claims, &i, 1) != TN_OK)
            return tn_error_last_code();
    return TN_OK;
}

static tn_status compile(const tn_compiler_def *self, const tn_region *part, tn_program *out)
{
    int64_t *count = tn_malloc(sizeof *count);
    const tn_meta *meta = part->values[part->out[0]].meta;

    (void)self;
    if (!count)
        return TN_ERR_MEMORY;
    *count = 1;
    for (int32_t d = 0; d < meta->ndim; d++)
        *count *= meta->shape[d];
    out->program = count;
    return TN_OK;
}

static int64_t place_of(const tn_view *view, int64_t element)
{
    int64_t place = 0;

    for (int32_t d = view->ndim - 1; d >= 0; d--) {
        place += element % view->shape[d] * view->strides[d];
        element /= view->shape[d];
    }
    return place;
}

static tn_status run(void *program, const tn_region_call *call)
{
    const int64_t *count = program;
    const tn_view *in = call->in[0], *out = call->out[0];
    const float *x = (const float *)(const void *)((const char *)in->data + in->byte_offset);
    float *y = (float *)(void *)((char *)out->data + out->byte_offset);

    for (int64_t i = 0; i < *count && !is("forgets"); i++) {
        float value = x[is("strides") ? i : place_of(in, i)];

        y[i] = is("numberless") ? (value > 0 ? value : 0) : value < 0 ? 0 : value;
    }
    if (is("past"))
        y[*count] = 1;
    return TN_OK;
}

static void drop(void *program)
{
    tn_free(program);
}

/* ---- the communicator ------------------------------------------------------------------------ */

static tn_status open_group(const tn_comm_def *self, const tn_comm_args *args, void **comm)
{
    if (args->size != 1)
        return tn_fail(TN_ERR_VALUE, "%s: size: expected 1 process", self->name);
    *comm = NULL;
    return TN_OK;
}

static void close_group(void *comm)
{
    (void)comm;
}

static tn_status all_reduce(const tn_comm_call *call)
{
    float *x = (float *)(void *)((char *)call->out->data + call->out->byte_offset);

    if (is("silent"))
        return TN_ERR_PEER;
    if (is("halves") && call->reduction == TN_REDUCTION_AVERAGE)
        x[0] /= 2;
    return TN_OK;
}

static tn_status all_gather(const tn_comm_call *call)
{
    size_t size = call->in->dtype.bits / 8u;

    for (int32_t d = 0; d < call->in->ndim; d++)
        size *= (size_t)call->in->shape[d];
    if (!is("lazy"))
        memcpy((char *)call->out->data + call->out->byte_offset,
               (char *)call->in->data + call->in->byte_offset, size);
    return TN_OK;
}

static const tn_pass_def pass = { TN_HEAD(tn_pass_def), .name = "twice", .help = "for a test",
                                  .flags = TN_PASS_EXACT, .run = twice };
static const tn_compiler_def compiler = { TN_HEAD(tn_compiler_def),
                                          .name = "relus",
                                          .device = "cpu",
                                          .help = "for a test",
                                          .flags = TN_COMPILER_EXACT,
                                          .claim = claim,
                                          .compile = compile,
                                          .run = run,
                                          .drop = drop };
static const tn_comm_def comm = { TN_HEAD(tn_comm_def),     .name = "one",
                                  .help = "for a test",     .dtypes = TN_BIT(TN_F32),
                                  .open = open_group,       .close = close_group,
                                  .all_reduce = all_reduce, .all_gather = all_gather };
TN_PLUGIN("org.example.mutant", "1.0.0", &pass, &compiler, &comm);
