/* SPDX-License-Identifier: MIT
 *
 * The compiler `fuse` of regions: elementwise operators on float32 or float64 that use each other's
 * results. A program computes a block of elements with the loops of the kernels, operator by
 * operator, in buffers that stay in the cache; only the last result goes to memory. Arithmetic that
 * uses the result before it is one chain, whose results stay in registers (simd/chain.c). Each
 * result is rounded as in separate calls, so the results have the same bits. */
#include <string.h>

#include "base/scratch.h"
#include "op/elementwise.h"
#include "op/fuse.h"
#include "simd/simd.h"

enum {
    BLOCK = 1024, /* elements of a buffer */
    MOST_NODES = 64,
    MOST_BUFFERS = 8,
    GRAIN = 32768 /* elements that the calling thread computes alone */
};

/* ---- operators ------------------------------------------------------------------------------- */

/* A loop and its numbers. */
struct operation {
    enum tn__ew op;
    int32_t inputs;
    double numbers[3];
};

/* Finds the kernel of an operator that is one loop. */
static const struct tn__ew_row *find_row(const char *op, tn_dtype dtype)
{
    const tn_kernel_def *rows;
    size_t count = tn__plugin_kernels(&rows);

    for (size_t i = 0; i < count; i++)
        if (rows[i].run == tn__elementwise && (rows[i].dtypes & TN_BIT(dtype)) != 0 &&
            strcmp(rows[i].op, op) == 0)
            return rows[i].user;
    return NULL;
}

static bool is(const tn_region_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

/* Kernels that choose a loop. */
static bool chosen(const tn_region_node *node, tn_dtype dtype, struct operation *out)
{
    out->inputs = 2;
    if (is(node, "add") || is(node, "sub")) {
        tn_scalar alpha = is(node, "add") ? ((const tn_add_options *)node->options)->alpha
                                          : ((const tn_sub_options *)node->options)->alpha;
        bool one = tn_scalar_as_float(alpha) == 1 && tn_scalar_imag(alpha) == 0;

        out->op = !one ? TN__EW_add_alpha : is(node, "add") ? TN__EW_add : TN__EW_sub;
        out->numbers[0] = one ? 0 : tn__elementwise_number(dtype, alpha);
        if (!one && is(node, "sub"))
            out->numbers[0] = -out->numbers[0];
        return true;
    }
    if (is(node, "div")) {
        out->op = TN__EW_div;
        return ((const tn_div_options *)node->options)->rounding_mode == NULL;
    }
    if (is(node, "gelu")) {
        bool tanh = strcmp(((const tn_gelu_options *)node->options)->approximate, "tanh") == 0;

        out->op = tanh ? TN__EW_gelu_tanh : TN__EW_gelu;
        out->inputs = 1;
        return true;
    }
    return false;
}

static bool same_shape(const tn_meta *a, const tn_meta *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

/* Whether the elements are in row-major order without gaps. */
static bool row_major(const tn_meta *meta)
{
    int64_t next = 1;

    for (int32_t d = meta->ndim; d-- > 0 && (meta->flags & TN_META_STRIDED) != 0;) {
        if (meta->shape[d] != 1 && meta->strides[d] != next)
            return false;
        next *= meta->shape[d];
    }
    return true;
}

/* Returns whether a node can be a step of a program. If so, sets *out to the step's operation. */
static bool takes(const tn_region *region, int64_t number, struct operation *out)
{
    const tn_region_node *node = &region->nodes[number];
    const tn_meta *y = region->values[node->out[0]].meta;
    const struct tn__ew_row *row;

    *out = (struct operation){ .inputs = 0 };
    if (node->n_out != 1 || node->op->revision != 1 || (y->dtype != TN_F32 && y->dtype != TN_F64) ||
        !row_major(y))
        return false;
    row = find_row(node->op->name, y->dtype);
    if (row != NULL) {
        tn_view view = { .ndim = y->ndim, .shape = (int64_t *)(uintptr_t)y->shape };
        const tn_view *to = &view;
        tn_call call = { .op = node->op->name, .options = node->options, .out = &to, .n_out = 1 };

        tn__view_as_floats(&view, y->dtype == TN_F32 ? 32 : 64);
        view.dtype.lanes = 1;
        out->op = row->op;
        out->inputs = row->inputs;
        if (row->fill)
            row->fill(&call, out->numbers);
    } else if (!chosen(node, y->dtype, out)) {
        return false;
    }
    if (node->n_in != out->inputs ||
        !tn__loop_of(out->op, y->dtype == TN_F32 ? TN__F32 : TN__F64) ||
        (out->op >= TN__EW_eq && out->op <= TN__EW_ge))
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->in[i] < 0 || region->values[node->in[i]].meta->dtype != y->dtype)
            return false;
    return true;
}

/* ---- sets of nodes --------------------------------------------------------------------------- */

struct sets {
    const tn_region *region;
    int64_t *root; /* of the set of a node; -1: the node is in no set */
    int64_t *size; /* of the set of a root */
    int64_t *user; /* the only node that uses the result; -1: none, -2: several */
};

static void find_users(struct sets *s)
{
    for (int64_t i = 0; i < s->region->n_nodes; i++)
        s->user[i] = -1;
    for (int64_t i = 0; i < s->region->n_nodes; i++) {
        const tn_region_node *node = &s->region->nodes[i];

        for (int32_t k = 0; k < node->n_in; k++) {
            int64_t from = node->in[k] >= 0 ? s->region->values[node->in[k]].node : -1;

            if (from >= 0)
                s->user[from] = s->user[from] == -1 || s->user[from] == i ? i : -2;
        }
    }
}

/* Adds the set of each operand to the set of node i, if nothing else uses the operand, if it has
 * the shape of the node's result, and if the set does not become too large. Then every path out of
 * a set begins at its last node, so that the set can run as one. */
static void join(struct sets *s, int64_t i)
{
    const tn_region_node *node = &s->region->nodes[i];
    const tn_meta *y = s->region->values[node->out[0]].meta;

    s->root[i] = i;
    s->size[i] = 1;
    for (int32_t k = 0; k < node->n_in; k++) {
        const tn_region_value *value = &s->region->values[node->in[k]];
        int64_t from = value->node;

        if (from < 0 || s->root[from] != from || s->user[from] != i ||
            (value->flags & TN_REGION_SEEN) != 0 || !same_shape(value->meta, y) ||
            s->size[i] + s->size[from] > MOST_NODES)
            continue;
        for (int64_t n = 0; n <= from; n++)
            if (s->root[n] == from)
                s->root[n] = i;
        s->size[i] += s->size[from];
    }
}

static tn_status claim_sets(const struct sets *s, const tn_claims *claims)
{
    int64_t nodes[MOST_NODES];
    tn_status status = TN_OK;

    for (int64_t i = 0; i < s->region->n_nodes && status == TN_OK; i++) {
        int64_t count = 0;

        if (s->root[i] != i || s->size[i] < 2)
            continue;
        for (int64_t n = 0; n <= i; n++)
            if (s->root[n] == i)
                nodes[count++] = n;
        status = claims->add(claims, nodes, count);
    }
    return status;
}

static tn_status claim(const tn_compiler_def *self, const tn_region *graph, const tn_claims *claims)
{
    struct sets s = { .region = graph };
    struct operation operation;
    tn_status status = TN_OK;

    (void)self;
    if (graph->n_nodes == 0)
        return TN_OK;
    s.root = tn_malloc((size_t)(3 * graph->n_nodes) * sizeof *s.root);
    if (!s.root)
        return TN_ERR_MEMORY;
    s.size = s.root + graph->n_nodes;
    s.user = s.size + graph->n_nodes;
    find_users(&s);
    for (int64_t i = 0; i < graph->n_nodes; i++) {
        s.root[i] = -1;
        if (takes(graph, i, &operation))
            join(&s, i);
    }
    status = claim_sets(&s, claims);
    tn_free(s.root);
    return status;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Where an operand is: an input of the region, or a buffer. */
struct place {
    int32_t input, buffer; /* one of them is -1 */
};

struct step {
    tn__ew_loop *loop;
    enum tn__ew op;
    double numbers[3];
    int32_t to; /* the buffer; the last step writes the result */
    struct place from[2];
    /* Of a chain: what the step does, the operand that is not the result of the step before it
     * (-1: none), and the number of steps of the chain that begins here (0: none). */
    enum tn__chain_op link;
    int32_t other, chain;
};

struct program {
    int64_t item; /* bytes of an element */
    int32_t n_steps, n_in, n_buffers;
    struct step steps[MOST_NODES];
};

/* Chooses buffers for the results of a set. */
struct allocation {
    const tn_region *region;
    /* For each value: the number of its later uses; its buffer, or -1. */
    int32_t *left, *buffer;
    bool used[MOST_NODES];
};

static int32_t take_buffer(struct allocation *a, struct program *p)
{
    int32_t free = 0;

    while (a->used[free])
        free++;
    a->used[free] = true;
    p->n_buffers = free + 1 > p->n_buffers ? free + 1 : p->n_buffers;
    return free;
}

static int32_t input_of(const tn_region *region, int32_t value)
{
    int32_t i = 0;

    while (i < region->n_in && region->in[i] != value)
        i++;
    return i;
}

static void add_step(struct allocation *a, struct program *p, int64_t number)
{
    const tn_region_node *node = &a->region->nodes[number];
    struct step *step = &p->steps[p->n_steps++];
    struct operation operation;
    tn_dtype dtype = a->region->values[node->out[0]].meta->dtype;

    takes(a->region, number, &operation);
    memcpy(step->numbers, operation.numbers, sizeof step->numbers);
    step->op = operation.op;
    step->loop = tn__loop_of(operation.op, dtype == TN_F32 ? TN__F32 : TN__F64);
    for (int32_t k = 0; k < node->n_in; k++) {
        int32_t value = node->in[k];
        bool inside = a->region->values[value].node >= 0;

        step->from[k] = (struct place){ inside ? -1 : input_of(a->region, value),
                                        inside ? a->buffer[value] : -1 };
        if (inside && --a->left[value] == 0)
            a->used[a->buffer[value]] = false; /* the result may have the memory of an operand */
    }
    if (node->n_in == 1)
        step->from[1] = step->from[0];
    step->to = a->buffer[node->out[0]] = take_buffer(a, p);
}

/* Describes a step as part of a chain in which operand `result` comes from the step before it.
 * Returns false if no chain can contain it. */
static bool link_step(struct step *step, int32_t result)
{
    step->other = 1 - result;
    switch (step->op) {
    case TN__EW_mul: step->link = TN__CHAIN_MUL; return true;
    case TN__EW_add: step->link = TN__CHAIN_ADD; return true;
    case TN__EW_sub: step->link = result == 0 ? TN__CHAIN_SUB : TN__CHAIN_SUB_FROM; return true;
    default: step->other = -1;
    }
    switch (step->op) {
    case TN__EW_mul_scalar: step->link = TN__CHAIN_MUL_SCALAR; return true;
    case TN__EW_add_scalar: step->link = TN__CHAIN_ADD_SCALAR; return true;
    case TN__EW_relu: step->link = TN__CHAIN_RELU; return true;
    default: return false;
    }
}

/* Finds chains: steps of which each uses the result of the step before it, once. */
static void find_chains(struct program *p)
{
    for (int32_t s = 0, count; s<p->n_steps; s += count> 0 ? count : 1) {
        count = link_step(&p->steps[s], 0) ? 1 : 0;
        while (count > 0 && s + count < p->n_steps) {
            struct step *next = &p->steps[s + count];
            int32_t before = next[-1].to;
            bool left = next->from[0].buffer == before, right = next->from[1].buffer == before;

            if (!link_step(next, left ? 0 : 1) || (next->other >= 0 ? left == right : !left))
                break;
            count++;
        }
        p->steps[s].chain = count > 1 ? count : 0;
    }
}

static tn_status compile(const tn_compiler_def *self, const tn_region *part, tn_program *out)
{
    struct allocation a = { .region = part };
    struct program *p = tn_calloc(1, sizeof *p);

    (void)self;
    a.left = tn_calloc((size_t)(2 * part->n_values), sizeof *a.left);
    if (!p || !a.left) {
        tn_free(p);
        tn_free(a.left);
        return TN_ERR_MEMORY;
    }
    a.buffer = a.left + part->n_values;
    for (int64_t i = 0; i < part->n_nodes; i++)
        for (int32_t k = 0; k < part->nodes[i].n_in; k++)
            a.left[part->nodes[i].in[k]]++;
    p->item = (int64_t)tn_dtype_size(part->values[part->out[0]].meta->dtype);
    p->n_in = (int32_t)part->n_in;
    for (int64_t i = 0; i < part->n_nodes; i++)
        add_step(&a, p, i);
    find_chains(p);
    tn_free(a.left);
    out->program = p;
    return TN_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* How a run reads an input. */
struct source {
    const char *at;
    int64_t stride;       /* if it is read in place: bytes of an element, 0 for a single element */
    bool gathered;        /* the input has other strides and is copied to a buffer first */
    struct tn__span span; /* of this copy: operand 0 is row-major, operand 1 is the input */
};

struct job {
    const struct program *program;
    struct source *sources;
    char *to;
    bool chained; /* one chain computes everything, and needs no buffers */
};

struct gathering {
    char *to;
    int64_t item;
};

static void gather(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    struct gathering *g = user;

    if (g->item == 4)
        for (int64_t i = 0; i < n; i++)
            ((float *)(void *)g->to)[i] = *(const float *)(const void *)(at[1] + i * stride[1]);
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)(void *)g->to)[i] = *(const double *)(const void *)(at[1] + i * stride[1]);
    g->to += n * g->item;
}

/* The memory of one block. */
struct block {
    const struct job *job;
    char *memory; /* buffers, then those of gathered inputs */
    int64_t begin, count;
};

/* Returns where an operand is, and its stride. */
static const char *operand_at(const struct block *b, struct place place, int64_t *stride)
{
    const struct program *p = b->job->program;
    const struct source *source = &b->job->sources[place.input];
    int64_t number = place.input < 0 ? place.buffer : p->n_buffers + place.input;

    *stride = p->item;
    if (place.input < 0 || source->gathered)
        return b->memory + number * BLOCK * p->item;
    *stride = source->stride;
    return source->at + b->begin * source->stride;
}

static char *result_at(const struct block *b, int32_t s)
{
    const struct program *p = b->job->program;

    return s + 1 < p->n_steps ? b->memory + p->steps[s].to * BLOCK * p->item
                              : b->job->to + b->begin * p->item;
}

/* Runs the chain that begins with step s. Returns the number of elements that it computed: those of
 * the block's whole vectors, 0 if an operand is a single element. */
static int64_t run_chain(const struct block *b, int32_t s)
{
    const struct program *p = b->job->program;
    const struct step *step = &p->steps[s];
    const struct tn__simd_chain *chain = tn__simd.chain;
    const int type = p->item == 4 ? 0 : 1;
    const int64_t count = b->count / chain->elements[type] * chain->elements[type];
    struct tn__chain_step steps[MOST_NODES];
    int64_t stride;
    const char *x = operand_at(b, step->from[0], &stride);

    for (int32_t i = 0; i < step->chain && stride != 0; i++) {
        const struct step *one = &step[i];

        steps[i] = (struct tn__chain_step){ .op = one->link, .number = one->numbers[0] };
        if (one->other >= 0)
            steps[i].other = operand_at(b, one->from[one->other], &stride);
    }
    if (stride == 0 || count == 0)
        return 0;
    chain->run[type](count, result_at(b, s + step->chain - 1), x, steps, step->chain);
    return count;
}

/* Runs a step for the elements of the block from `first` on. */
static void run_step(const struct block *b, int32_t s, int64_t first)
{
    const struct program *p = b->job->program;
    const struct step *step = &p->steps[s];
    const char *from[2];
    int64_t stride[2];

    for (int32_t k = 0; k < 2; k++)
        from[k] = operand_at(b, step->from[k], &stride[k]) + first * stride[k];
    step->loop(b->count - first, result_at(b, s) + first * p->item, p->item, from[0], stride[0],
               from[1], stride[1], step->numbers);
}

static void run_block(const struct block *b)
{
    const struct program *p = b->job->program;

    for (int32_t i = 0; i < p->n_in; i++)
        if (b->job->sources[i].gathered) {
            struct gathering g = { b->memory + (p->n_buffers + i) * BLOCK * p->item, p->item };

            tn__span_walk(&b->job->sources[i].span, b->begin, b->begin + b->count, gather, &g);
        }
    for (int32_t s = 0, steps; s < p->n_steps; s += steps) {
        const int64_t done = p->steps[s].chain > 0 ? run_chain(b, s) : 0;

        steps = p->steps[s].chain > 0 ? p->steps[s].chain : 1;
        for (int32_t i = 0; i < steps && done < b->count; i++)
            run_step(b, s + i, done);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    const struct program *p = job->program;
    char *memory = tn__scratch_take((size_t)((p->n_buffers + p->n_in) * BLOCK * p->item));

    if (!memory)
        return TN_ERR_MEMORY;
    for (int64_t i = begin, count; i < end; i += count) {
        const int64_t least = tn__simd.chain->elements[p->item == 4 ? 0 : 1];

        count = job->chained && end - i > BLOCK ? (end - i) / least * least : BLOCK;
        count = count < end - i ? count : end - i;
        run_block(&(struct block){ job, memory, i, count });
    }
    tn__scratch_give(memory);
    return TN_OK;
}

static void see_source(const struct program *p, const tn_view *y, const tn_view *x,
                       struct source *out)
{
    const tn_view *views[2] = { y, x };

    *out = (struct source){ .at = tn__view_at(x), .stride = p->item };
    if (tn__span_view_count(x) == 1) {
        out->stride = 0;
        return;
    }
    out->gathered = tn__span_view_count(x) != tn__span_view_count(y);
    for (int32_t d = x->ndim, e = y->ndim; d > 0 && !out->gathered; d--, e--)
        out->gathered = x->shape[d - 1] > 1 && x->strides[d - 1] != y->strides[e - 1];
    if (out->gathered)
        tn__span_make(&out->span, 2, views, true);
}

static tn_status run(void *program, const tn_region_call *call)
{
    const struct program *p = program;
    int64_t count = tn__span_view_count(call->out[0]);
    struct job job = { .program = p, .to = tn__view_at(call->out[0]) };
    tn_status status;

    if (count == 0)
        return TN_OK;
    job.sources = tn__scratch_take((size_t)(p->n_in + 1) * sizeof *job.sources);
    if (!job.sources)
        return TN_ERR_MEMORY;
    job.chained = p->steps[0].chain == p->n_steps;
    for (int32_t i = 0; i < p->n_in; i++) {
        see_source(p, call->out[0], call->in[i], &job.sources[i]);
        job.chained = job.chained && !job.sources[i].gathered && job.sources[i].stride != 0;
    }
    status = count <= GRAIN ? part(&job, 0, count) : tn_parallel_for(count, GRAIN / 2, part, &job);
    tn__scratch_give(job.sources);
    return status;
}

static void drop(void *program)
{
    tn_free(program);
}

const tn_compiler_def tn__compiler_fuse = {
    TN_HEAD(tn_compiler_def),
    .name = "fuse",
    .device = "cpu",
    .help = "elementwise operators on float32 and float64, block by block",
    .priority = -10, /* asked after compilers for more operators */
    .flags = TN_COMPILER_EXACT | TN_COMPILER_TRAINS,
    .claim = claim,
    .compile = compile,
    .run = run,
    .drop = drop
};
