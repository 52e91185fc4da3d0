/* SPDX-License-Identifier: MIT
 *
 * The steps of a plan: while a recorder is the tracer of a thread, each kernel that would run is
 * recorded in its place. record.c records graphs, train_record.c calls of modules with
 * their gradients. */
#include "core/base/map.h"
#include "core/base/vector.h"
#include "core/grad/internal.h"
#include "lib/graph/control.h"
#include "lib/plan/plan.h"
#include "core/module/hooks.h"
#include "core/tensor/autocast.h"
#include "core/tensor/random_state.h"

static tn__plan_recorder *recorder_of(tn__tracer *tracer)
{
    return (tn__plan_recorder *)(void *)tracer;
}

static tn_status keep_failure(tn__plan_recorder *r)
{
    if (!r->failed)
        r->failure = *tn_error_last();
    r->failed = true;
    return tn_error_last_code();
}

/* ---- roots ----------------------------------------------------------------------------------- */

int32_t tn__plan_steps_root(tn__plan_recorder *r, tn__storage *storage)
{
    tn__plan_binding *b = r->b;
    void **value = tn__map_value(&r->roots, storage);
    bool traced = (storage->flags & TN__STORAGE_TRACED) != 0;

    if (value != NULL)
        return (int32_t)(intptr_t)*value - 1;
    if (b->n_roots >= INT32_MAX - 1 ||
        !tn__vector_room(&b->roots, &b->roots_capacity, b->n_roots + 1, sizeof *b->roots) ||
        tn__map_add(&r->roots, storage) < 0)
        return -1;
    b->roots[b->n_roots] = (tn__plan_root){ .place = !traced     ? TN__PLAN_HELD
                                                     : b->trains ? TN__PLAN_BLOCK
                                                                 : TN__PLAN_SLAB,
                                            .same = (int32_t)b->n_roots,
                                            .first = INT32_MAX,
                                            .last = -1,
                                            .size = storage->size,
                                            .version = atomic_load(&storage->version),
                                            .storage = tn__storage_keep(storage) };
    *tn__map_value(&r->roots, storage) = (void *)(intptr_t)(b->n_roots + 1);
    return (int32_t)b->n_roots++;
}

/* A step uses a tensor. Without a tensor the operand is absent. */
static tn_status add_operand(tn__plan_recorder *r, const tn_view *view, const tn_tensor *tensor)
{
    tn__plan_binding *b = r->b;
    tn__plan_operand *operand;
    tn__plan_root *root;
    int64_t *dims;

    if (!tn__vector_room(&b->operands, &b->operands_capacity, b->n_operands + 1,
                         sizeof *b->operands))
        return TN_ERR_MEMORY;
    operand = &b->operands[b->n_operands];
    *operand = (tn__plan_operand){ .root = -1 };
    b->n_operands++;
    if (view == NULL)
        return TN_OK;
    operand->root = tn__plan_steps_root(r, tensor->storage);
    dims = tn__arena_alloc(b->arena, (size_t)view->ndim * 2 * sizeof *dims + 1);
    if (operand->root < 0 || dims == NULL)
        return TN_ERR_MEMORY;
    operand->view = *view;
    operand->view.shape = dims;
    operand->view.strides = dims + view->ndim;
    for (int32_t d = 0; d < view->ndim; d++) {
        operand->view.shape[d] = view->shape[d];
        operand->view.strides[d] = view->strides[d];
    }
    root = &b->roots[operand->root];
    operand->within = view->byte_offset;
    if (root->place != TN__PLAN_HELD)
        operand->within -= tensor->storage->offset;
    root->first = b->n_steps < root->first ? (int32_t)b->n_steps : root->first;
    root->last = (int32_t)b->n_steps;
    return TN_OK;
}

static tn_status add_workspace(tn__plan_recorder *r, const tn__kernel_step *from)
{
    tn_meta meta = { .dtype = TN_U8, .ndim = 1, .shape = { (int64_t)from->workspace } };
    tn_tensor *space;
    tn_status status;

    if (from->workspace == 0)
        return TN_OK;
    space = tn__tensor_make(&meta, from->device);
    status = space != NULL ? add_operand(r, &space->view, space) : tn_error_last_code();
    tn_tensor_drop(space);
    return status;
}

/* ---- random numbers ----------------------------------------------------------------------------
 */

/* While a plan is recorded, these numbers are the seed and the first block. A run replaces them
 * among the options of the steps by the numbers that it has drawn. */
#define SEED UINT64_C(0x7E405EEDC0DE0D1F)
#define BLOCK UINT64_C(0x5EEDB10C00000000)

static tn_status take(tn__tracer *tracer, uint64_t blocks, uint64_t out[2])
{
    tn__plan_recorder *r = recorder_of(tracer);

    if (r->backward) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "tn_random_take: a derivative draws random numbers; expected numbers that forward "
                "has drawn");
        return keep_failure(r);
    }
    if (!tn__vector_room(&r->taken, &r->taken_capacity, r->n_taken + 1, sizeof *r->taken))
        return keep_failure(r);
    r->taken[r->n_taken++] = (struct tn__plan_taken){ r->blocks, blocks, blocks == 0 };
    out[0] = SEED;
    out[1] = BLOCK + r->blocks;
    r->blocks += blocks;
    return TN_OK;
}

static tn_status add_draw(tn__plan_recorder *r, const tn_option *row, const void *options)
{
    tn__plan_binding *b = r->b;
    uint64_t value;
    bool block;

    memcpy(&value, (const char *)options + row->offset, sizeof value);
    block = value >= BLOCK && value <= BLOCK + r->blocks;
    if (value != SEED && !block)
        return TN_OK;
    if (!tn__vector_room(&b->draws, &b->draws_capacity, b->n_draws + 1, sizeof *b->draws))
        return TN_ERR_MEMORY;
    b->draws[b->n_draws++] = (tn__plan_draw){ b->n_steps, row->offset, !block,
                                              block ? value - BLOCK : 0 };
    for (int64_t i = 0; i < r->n_taken && block; i++)
        r->taken[i].used |= value - BLOCK >= r->taken[i].first &&
                            value - BLOCK < r->taken[i].first + r->taken[i].count;
    return TN_OK;
}

static tn_status add_draws(tn__plan_recorder *r, const tn__plan_step *step)
{
    const tn_op_def *def = step->op != NULL ? &step->op->def : NULL;
    tn_status status = TN_OK;

    if (r->blocks == 0 || def == NULL || def->options == NULL ||
        step->call.options == def->defaults)
        return TN_OK;
    for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END && status == TN_OK;
         row++)
        if (row->kind == TN_OPTION_KIND_INT)
            status = add_draw(r, row, step->call.options);
    return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* tn_call.make_output: the shapes of all results are known. */
static tn_status no_output(const tn_call *call, int32_t index, tn_ints shape)
{
    (void)shape;
    return tn_fail(TN_ERR_RUNTIME, "%s: make_output: output %d exists already", call->op,
                   (int)index);
}

static tn_status check_written(tn__plan_recorder *r, const tn_tensor *tensor)
{
    int32_t root = tn__plan_steps_root(r, tensor->storage);
    tn__plan_place place;

    if (root < 0)
        return TN_ERR_MEMORY;
    place = r->b->roots[root].place;
    if (place == TN__PLAN_SLAB || place == TN__PLAN_BLOCK)
        return TN_OK;
    if (place == TN__PLAN_HELD && r->memory != NULL && !r->backward &&
        tn__map_value(r->memory, tensor->storage) != NULL) {
        r->b->roots[root].written = true;
        return TN_OK;
    }
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "it writes into %s, and a plan changes nothing but its results; expected "
                   "evaluation mode, or a graph without this write",
                   place == TN__PLAN_INPUT   ? "an input of the graph"
                   : place == TN__PLAN_SAVED ? "a value that forward has saved"
                                             : "a slot, or another tensor that exists");
}

/* Refuses what a plan cannot repeat. */
static tn_status check_step(tn__plan_recorder *r, const tn__kernel_step *from)
{
    tn_status status = TN_OK;

    if (from->device != r->b->device)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "it runs on %s, and the plan is for %s; expected one device for all steps",
                       from->device->name, r->b->device->name);
    for (int64_t i = 0; i < from->call->n_in && status == TN_OK; i++)
        if (from->call->in[i] != NULL && (from->writes >> (i < 63 ? i : 63) & 1) != 0)
            status = check_written(r, from->in[i]);
    for (int32_t i = 0; i < from->call->n_out && status == TN_OK; i++)
        status = check_written(r, from->out[i]);
    return status;
}

static tn_status copy_options(tn__plan_recorder *r, tn__plan_step *step)
{
    const void *options = step->call.options;
    const tn_op_def *def = step->op != NULL ? &step->op->def : NULL;
    void *space;

    if (options == NULL || def == NULL || def->options == NULL || options == def->defaults)
        return TN_OK;
    space = tn__arena_alloc(r->b->arena,
                            tn__options_copy(def->options, options, def->options_size, NULL));
    if (space == NULL)
        return TN_ERR_MEMORY;
    tn__options_copy(def->options, options, def->options_size, space);
    step->call.options = space;
    return TN_OK;
}

/* Appends the path of the module that is called, without the root. */
static void add_path(tn__text *text)
{
    tn__text path = { 0 };
    const char *at;

    tn__call_path(&path);
    tn__text_put(&path, "", 1);
    text->failed |= path.failed;
    at = path.failed ? "" : path.at;
    if (at[0] == '<')
        at += strcspn(at, ">") + 1;
    tn__text_add(text, "%s", at[0] == '.' ? at + 1 : at);
    tn__text_free(&path);
}

/* Returns a copy of a text in the memory of the binding, and frees the text. */
static const char *hold_text(tn__plan_recorder *r, tn__text *text)
{
    const char *held = NULL;

    tn__text_put(text, "", 1);
    if (text->failed)
        tn_fail(TN_ERR_MEMORY, "out of host memory: the name of a step");
    else
        held = tn__arena_text(r->b->arena, text->at, strlen(text->at));
    tn__text_free(text);
    return held;
}

/* The name of the node, or the path of the module and the operator. */
static tn_status name_step(tn__plan_recorder *r, tn__plan_step *step)
{
    tn__text text = { 0 };

    if (r->node != NULL) {
        step->name = r->node->name;
        step->path = r->node->path;
        return TN_OK;
    }
    if (r->backward)
        tn__text_add(&text, "backward");
    else
        add_path(&text);
    tn__text_add(&text, "%s%s", text.length > 0 ? "/" : "",
                 step->op != NULL ? step->op->def.name : "region");
    step->name = hold_text(r, &text);
    return step->name != NULL ? TN_OK : tn_error_last_code();
}

static tn_status add_step(tn__plan_recorder *r, const tn__kernel_step *from)
{
    tn__plan_binding *b = r->b;
    tn__plan_step *step;
    tn_status status = check_step(r, from);

    if (status != TN_OK)
        return status;
    if (b->n_steps >= INT32_MAX - 1 ||
        !tn__vector_room(&b->steps, &b->steps_capacity, b->n_steps + 1, sizeof *b->steps))
        return TN_ERR_MEMORY;
    step = &b->steps[b->n_steps];
    *step = (tn__plan_step){ .op = from->op,
                             .entry = from->entry,
                             .region = from->region,
                             .plugin = from->plugin,
                             .call = *from->call,
                             .first = b->n_operands,
                             .workspace = from->workspace > 0 };
    step->call.in = step->call.out = NULL;
    step->call.workspace = NULL;
    step->call.host = step->call.prepared = NULL;
    step->call.constant = 0;
    step->call.make_output = no_output;
    if (step->plugin == NULL)
        step->plugin = "";
    status = name_step(r, step);
    if (status == TN_OK)
        status = copy_options(r, step);
    if (status == TN_OK && r->b->trains)
        status = add_draws(r, step);
    for (int64_t i = 0; i < from->call->n_in && status == TN_OK; i++)
        status = add_operand(r, from->call->in[i], from->in[i]);
    for (int32_t i = 0; i < from->call->n_out && status == TN_OK; i++)
        status = add_operand(r, from->call->out[i], from->out[i]);
    if (status == TN_OK)
        status = add_workspace(r, from);
    if (status == TN_OK)
        b->n_steps++;
    return status;
}

/* Adds a step for a node with blocks. */
static tn_status add_control(tn__plan_recorder *r, const tn__blocks *blocks, tn_tensor *const *out)
{
    const tn_node *node = blocks->node;
    int64_t count = node->n_in + node->n_out;
    const tn_view **views = tn_malloc((size_t)count * sizeof *views);
    tn_call call = { .op = tn_node_target(node), .n_in = node->n_in, .n_out = node->n_out };
    tn__kernel_step step = { .call = &call, .in = blocks->in, .out = out };
    int64_t *symbols = NULL;
    tn_status status;

    if (views == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        views[i] = i < node->n_in ? &blocks->in[i]->view : &out[i - node->n_in]->view;
    call.in = views;
    call.out = views + node->n_in;
    step.device = r->b->device;
    for (int64_t i = 0; i < node->n_out && step.device == r->b->device; i++)
        step.device = out[i]->device;
    status = add_step(r, &step);
    tn_free(views);
    if (status == TN_OK && blocks->symbols != NULL) {
        symbols = tn__arena_alloc(r->b->arena, TN__SYMBOLS * sizeof *symbols);
        if (symbols == NULL)
            return TN_ERR_MEMORY;
        memcpy(symbols, blocks->symbols, TN__SYMBOLS * sizeof *symbols);
    }
    if (status == TN_OK) {
        r->b->steps[r->b->n_steps - 1].control = node;
        r->b->steps[r->b->n_steps - 1].symbols = symbols;
    }
    return status;
}

/* ---- functions of the tracer ----------------------------------------------------------------- */

static tn_status record_kernel(tn__tracer *tracer, const tn__kernel_step *from)
{
    tn__plan_recorder *r = recorder_of(tracer);
    tn_status status = TN_OK;

    if (tn__making.is.inference && r->b->trains && !r->inference)
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                         "it runs in inference mode within forward, and its result would not be "
                         "an inference tensor; use tn_grad_begin(false)");
    if (status == TN_OK)
        status = add_step(r, from);
    if (status == TN_OK)
        return TN_OK;
    if (from->op != NULL)
        tn_error_prefix("%s: ", from->op->def.name);
    return keep_failure(r);
}

/* The code of a layer reads a tensor that exists: the plan is for the values that it has. Fails if
 * a derivative reads the tensor, or if the plan is for training and the tensor requires grad. */
static bool note_read(tn__tracer *tracer, const tn_tensor *tensor)
{
    tn__plan_recorder *r = recorder_of(tracer);
    tn__plan_binding *b = r->b;
    tn__text path = { 0 };
    const char *who = "plan";

    if (b->trains) {
        add_path(&path);
        who = hold_text(r, &path);
    }
    if (r->backward || (r->memory != NULL && tensor->requires_grad)) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                r->backward
                    ? "a derivative reads the values of a tensor; expected a derivative that "
                      "only calls operators"
                    : "the code reads the values of a parameter, and training changes "
                      "them; expected a forward that only calls operators");
        keep_failure(r);
    } else if (who != NULL &&
               tn__vector_room(&b->reads, &b->reads_capacity, b->n_reads + 1, sizeof *b->reads)) {
        tn__graph_guard_set(&b->reads[b->n_reads++], (tn_tensor *)(uintptr_t)tensor, who);
    } else {
        keep_failure(r);
    }
    return false;
}

static tn_status refuse(tn__tracer *tracer, const tn_tensor *tensor, const char *function)
{
    tn__plan_recorder *r = recorder_of(tracer);

    if (tensor != NULL)
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "%s: it needs values that only a run has; expected steps that do not depend on "
                "values",
                function);
    else
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "%s: a plan would repeat the same result in each run; expected calls of operators, "
                "and no random numbers of the host",
                function);
    return keep_failure(r);
}

/* In training: a tensor from outside of the module must stay where it is. */
static tn_status guard_place(tn__plan_recorder *r, tn_tensor *tensor)
{
    if (!tn__tensor_ok(tensor) || (tensor->storage->flags & TN__STORAGE_TRACED) != 0 ||
        tn__map_value(r->tensors, tensor) != NULL)
        return TN_OK;
    for (int64_t i = 0; i < r->b->n_slots; i++)
        if (r->b->slots[i].tensor == tensor)
            return TN_OK;
    return tn__plan_slot_add(r->b, tensor);
}

/* In training: gradients go to inputs and to tensors of the module only. */
static tn_status check_history(const tn__plan_recorder *r, const tn_tensor *tensor)
{
    if (!tn__tensor_ok(tensor) || !tensor->requires_grad || !tn__grad_on() ||
        (tensor->storage->flags & TN__STORAGE_TRACED) != 0)
        return TN_OK;
    if (tn_tensor_is_leaf(tensor) ? tn__map_value(r->tensors, tensor) != NULL
                                  : tn__map_value(r->memory, tensor->storage) != NULL &&
                                        tn__grad_sequence(tensor) > r->last)
        return TN_OK;
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "it uses a tensor that requires a gradient and is neither an input nor a "
                   "parameter of the module; pass it as an input");
}

static tn_status call_op(tn__tracer *tracer, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                         const void *options, tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    tn__plan_recorder *r = recorder_of(tracer);

    if (r->tensors != NULL && !r->backward)
        for (int64_t i = 0; i < n_in; i++)
            if (tn__unlikely(check_history(r, in[i]) != TN_OK || guard_place(r, in[i]) != TN_OK))
                return keep_failure(r);
    if (tn__autocast_on() && r->depth > 0)
        r->uncached = true;
    return tn__call_plain(op, in, n_in, options, out, n_out, into);
}

/* The plan has what the module does now: its mode may not change, and hooks are not called. */
static bool module_begin(tn__tracer *tracer, tn_module *module, tn_tensor *input,
                         const tn_pack *pack, tn_status *status)
{
    tn__plan_recorder *r = recorder_of(tracer);
    tn__plan_binding *b = r->b;

    (void)input, (void)pack;
    if (r->tensors != NULL && tn__map_value(r->tensors, module) != NULL)
        return false; /* tn__plan_parts_hold() checks this module */
    if ((tn__hook_kinds(module) & TN__HOOKS_AROUND) != 0)
        *status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                          "%s: it has hooks, which a plan does not call; expected none",
                          module->type);
    else if (!tn__vector_room(&b->modules, &b->modules_capacity, b->n_modules + 1,
                              sizeof(tn_module *)) ||
             !tn__vector_room(&b->training, &b->training_capacity, b->n_modules + 1, sizeof(bool)))
        *status = TN_ERR_MEMORY;
    if (*status != TN_OK) {
        keep_failure(r);
        return false;
    }
    b->training[b->n_modules] = module->training;
    b->modules[b->n_modules++] = tn_module_keep(module);
    return false;
}

/* A node with blocks is one step, which the interpreter runs: here it only gives shapes. */
static tn_status record_control(tn__tracer *tracer, const tn__control *control)
{
    tn__plan_recorder *r = recorder_of(tracer);
    const tn__blocks *blocks = tn__blocks_of(control);
    tn_status status;

    if (blocks == NULL) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "%s: its functions are code of the program, which a plan cannot repeat; expected a "
                "graph (tn_module_trace), in which they are blocks",
                tn__control_name(control->kind));
        return keep_failure(r);
    }
    tracer->kernel = NULL;
    status = tn__control_shapes(control);
    tracer->kernel = record_kernel;
    if (status == TN_OK)
        status = add_control(r, blocks, control->out);
    for (int64_t i = 0; i < control->n_out && status != TN_OK; i++)
        control->out[i] = NULL;
    return status == TN_OK ? TN_OK : keep_failure(r);
}

static void training(tn__tracer *tracer)
{
    (void)tracer;
}

const tn__tracer tn__plan_tracer = {
    .silent = 1,
    .stale = note_read,
    .refuse = refuse,
    .op = call_op,
    .module_begin = module_begin,
    .control = record_control,
    .training = training,
    .kernel = record_kernel,
};

/* ---- the recording --------------------------------------------------------------------------- */

tn_status tn__plan_steps_run(tn__plan_recorder *r,
                             tn_status (*run)(tn__plan_recorder *recorder, void *user), void *user)
{
    bool making = tn__making.is.traced;
    struct tn__recompute_run *recomputing = tn__recompute_here;
    tn__random_record *random = tn__random_here;
    tn__tracer *before = tn__tracer_here;
    tn_status status;

    r->tracer = tn__plan_tracer;
    if (r->b->trains) {
        r->tracer.take = take;
        r->tracer.fuses = true;
        r->tracer.derives = r->backward;
    }
    r->last = tn__node_last();
    r->inference = tn__making.is.inference;
    r->depth = tn__autocast_depth();
    r->tracer.keeps_casts = r->depth == 0;
    tn__recompute_here = NULL; /* a recomputation that calls this must not record these operators */
    tn__random_here = NULL;
    tn__tracer_here = &r->tracer;
    tn__making.is.traced = true;
    tn__observers_traces(1);
    status = run(r, user);
    tn__observers_traces(-1);
    tn__making.is.traced = making;
    tn__tracer_here = before;
    tn__random_here = random;
    tn__recompute_here = recomputing;
    if (r->failed && status == TN_OK) { /* the code has ignored the failure */
        tn__error_put(&r->failure);
        status = tn_error_last_code();
    }
    return status;
}

void tn__plan_steps_free(tn__plan_recorder *r)
{
    tn__map_free(&r->roots);
    tn_free(r->taken);
}
