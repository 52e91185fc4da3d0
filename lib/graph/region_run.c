/* SPDX-License-Identifier: MIT
 *
 * Runs a compiled region. Its program gets views of the inputs, and of outputs that the core has
 * allocated. If the call is recorded, backward computes the gradients with the operators of the
 * region. */
#include "lib/graph/private.h"
#include "core/tensor/boundary.h"
#include "core/tensor/thread.h"
#include "core/tensor/trace.h"

tn__region *tn__region_keep(tn__region *region)
{
    atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
    return region;
}

void tn__region_drop(tn__region *region)
{
    if (region == NULL || atomic_fetch_sub_explicit(&region->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (region->compiled && region->def->drop != NULL) {
        const char *id = region->plugin->id != NULL ? region->plugin->id : "";
        const char *before = tn__error_plugin(id);

        region->def->drop(region->program);
        tn__error_plugin(before);
    }
    tn_graph_drop(region->body);
    tn_free(region->in);
    tn_free(region);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* One run of a program: its arguments, and the memory that was allocated for it. */
struct running {
    const tn__region *region;
    tn_tensor *const *in;
    tn_tensor **out;
    tn_tensor *space;
    const tn_view **views;
};

static tn_status make_outputs(struct running *run)
{
    const tn__region *region = run->region;
    tn_meta meta = { .dtype = TN_U8, .ndim = 1 };

    for (int64_t i = 0; i < region->n_out; i++) {
        run->out[i] = tn__tensor_make(&region->out[i], region->device);
        if (run->out[i] == NULL)
            return tn_error_last_code();
    }
    if (region->workspace == 0)
        return TN_OK;
    meta.shape[0] = (int64_t)region->workspace;
    run->space = tn__tensor_make(&meta, region->device);
    return run->space != NULL ? TN_OK : tn_error_prefix("workspace: ");
}

/* Marks the memory as used by this stream. Memory from another stream is then not reused before
 * this stream has finished with it. */
static tn_status mark_use(const struct running *run, tn_stream *stream)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < run->region->n_in && status == TN_OK; i++)
        status = tn__storage_use(run->in[i]->storage, stream);
    for (int64_t i = 0; i < run->region->n_out && status == TN_OK; i++)
        status = tn__storage_use(run->out[i]->storage, stream);
    return status;
}

tn_status tn__region_call(const tn__region *region, const tn_view *const *in,
                          const tn_view *const *out, const tn_view *workspace, tn_stream *stream)
{
    const char *id = region->plugin->id != NULL ? region->plugin->id : "", *before;
    tn_region_call call = { TN_HEAD(tn_region_call),
                            .compiler = region->def,
                            .in = in,
                            .out = out,
                            .n_in = region->n_in,
                            .n_out = region->n_out,
                            .workspace = workspace,
                            .device = region->device->handle,
                            .stream = stream->handle };
    tn__boundary_thread thread;
    tn_status status;

    before = tn__error_plugin(id);
    tn__boundary_enter(&thread);
    tn__stream_lock(stream);
    status = region->def->run(region->program, &call);
    tn__stream_unlock(stream);
    status = tn__device_result(region->device, status, region->def->name);
    status = tn__boundary_leave(&thread, id, region->def->name, status);
    tn__error_plugin(before);
    if (status != TN_OK || !tn__boundary_on() || region->device->allocator == NULL)
        return status;
    if (tn__allocator_check(region->device->allocator) == TN_OK)
        return TN_OK;
    return tn_error_prefix("checked boundary: plugin %q: compiler %s wrote outside its outputs: ",
                           id, region->def->name);
}

static bool nothing_to_write(const struct running *run)
{
    for (int64_t i = 0; i < run->region->n_out; i++)
        if (run->out[i]->numel > 0)
            return false;
    return true;
}

/* While a trace looks for shapes, or a plan records: the program does not run. */
static tn_status skip(const struct running *run)
{
    const tn__region *region = run->region;
    const tn_call call = { TN_HEAD(tn_call), .in = run->views, .out = run->views + region->n_in,
                           .n_in = region->n_in, .n_out = (int32_t)region->n_out };
    const tn__kernel_step step = { .region = (tn__region *)(uintptr_t)region,
                                   .plugin = region->plugin->id,
                                   .call = &call,
                                   .in = run->in,
                                   .out = run->out,
                                   .device = region->device,
                                   .workspace = region->workspace };

    for (int64_t i = 0; i < region->n_out; i++)
        run->out[i]->storage->flags |= TN__STORAGE_PENDING;
    return tn__tracer_here->kernel != NULL ? tn__tracer_here->kernel(tn__tracer_here, &step)
                                           : TN_OK;
}

static tn_status run_views(struct running *run)
{
    const tn__region *region = run->region;
    tn_stream *stream;
    tn_status status = make_outputs(run);

    if (status != TN_OK || nothing_to_write(run))
        return status;
    for (int64_t i = 0; i < region->n_in; i++)
        run->views[i] = &run->in[i]->view;
    for (int64_t i = 0; i < region->n_out; i++)
        run->views[region->n_in + i] = &run->out[i]->view;
    if (tn__tracer_here != NULL)
        return skip(run);
    status = tn__plugin_use(region->plugin);
    if (status != TN_OK)
        return status;
    stream = tn_stream_current(region->device);
    if (stream == NULL)
        return tn_error_last_code();
    if (stream->lock != NULL)
        status = mark_use(run, stream);
    if (status != TN_OK)
        return status;
    return tn__region_call(region, run->views, run->views + region->n_in,
                           run->space != NULL ? &run->space->view : NULL, stream);
}

/* The caller owns out[i]. */
static tn_status run_program(const tn__region *region, tn_tensor *const *in, tn_tensor **out)
{
    struct running run = { .region = region, .in = in, .out = out };
    tn_status status = TN_ERR_MEMORY;

    for (int64_t i = 0; i < region->n_out; i++)
        out[i] = NULL;
    run.views = tn_malloc((size_t)(region->n_in + region->n_out) * sizeof(const tn_view *));
    if (run.views != NULL)
        status = run_views(&run);
    tn_tensor_drop(run.space);
    tn_free(run.views);
    for (int64_t i = 0; i < region->n_out && status != TN_OK; i++) {
        tn_tensor_drop(out[i]);
        out[i] = NULL;
    }
    return status;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static bool has_grad(const tn_tensor *tensor)
{
    return ((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(tensor->dtype)) != 0;
}

static tn_status forward(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    const tn__region *region = user;
    tn_status status = run_program(region, in, out);

    for (int64_t i = 0; i < region->n_out && status == TN_OK; i++) {
        out[i] = tn_tensor_to_scope(out[i]);
        if (out[i] == NULL)
            status = tn_error_last_code();
        else if (!has_grad(out[i]))
            status = tn_function_mark_non_differentiable(ctx, out[i]);
    }
    for (int64_t i = 0; i < region->n_in && status == TN_OK; i++)
        status = tn_function_save(ctx, in[i]);
    return status;
}

/* The arrays for one backward of a region, which runs the operators of the region again. */
struct again {
    tn_tensor **in, **out, **gout, **wanted, **gin;
    int64_t n_out, n_wanted;
};

static tn_status run_again(const tn__region *region, tn_function_ctx *ctx, tn_tensor *const *gout,
                           struct again *again)
{
    tn_status status = TN_OK;
    int64_t used = 0;

    for (int64_t i = 0; i < region->n_in && status == TN_OK; i++) {
        again->in[i] = tn_detach(tn_function_saved(ctx, i));
        if (again->in[i] == NULL)
            return tn_error_last_code();
        if (!tn_function_needs_grad(ctx, i))
            continue;
        status = tn_tensor_set_requires_grad(again->in[i], true);
        again->wanted[again->n_wanted++] = again->in[i];
    }
    if (status == TN_OK)
        status = tn_graph_run(region->body, again->in, region->n_in, again->out, region->n_out);
    for (int64_t i = 0; i < region->n_out && status == TN_OK; i++) {
        if (!tn_tensor_requires_grad(again->out[i]) || gout[i] == TN_NONE)
            continue;
        again->out[used] = again->out[i];
        again->gout[used++] = gout[i];
    }
    again->n_out = used;
    return status;
}

static tn_status gradients(const tn__region *region, tn_function_ctx *ctx, tn_tensor *const *gout,
                           tn_tensor **gin, struct again *again)
{
    tn_backward_options options = { .size = sizeof options, .allow_unused = 1 };
    tn_status status = tn_grad_begin(true);
    int64_t used = 0;

    if (status == TN_OK)
        status = run_again(region, ctx, gout, again);
    for (int64_t i = 0; i < again->n_wanted; i++)
        again->gin[i] = TN_NONE;
    if (status == TN_OK && again->n_out > 0)
        status = tn_grad(again->out, again->gout, again->n_out, again->wanted, again->gin,
                         again->n_wanted, &options);
    tn_grad_end();
    for (int64_t i = 0; i < region->n_in && status == TN_OK; i++)
        gin[i] = tn_function_needs_grad(ctx, i) ? again->gin[used++] : TN_NONE;
    return status;
}

static tn_status backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout, tn_tensor **gin)
{
    const tn__region *region = user;
    size_t n_in = (size_t)region->n_in + 1, n_out = (size_t)region->n_out + 1;
    tn_tensor **space;
    struct again again = { 0 };
    tn_status status;

    if (tn_grad_enabled())
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "compiler %s: gradients of gradients (create_graph) through a compiled "
                       "region are not supported; run the graph without this compiler",
                       region->def->name);
    space = tn_calloc(3 * n_in + 2 * n_out, sizeof(tn_tensor *));
    if (space == NULL)
        return TN_ERR_MEMORY;
    again.in = space;
    again.wanted = space + n_in;
    again.gin = space + 2 * n_in;
    again.out = space + 3 * n_in;
    again.gout = space + 3 * n_in + n_out;
    status = gradients(region, ctx, gout, gin, &again);
    tn_free(space);
    return status;
}

static void release(void *user)
{
    tn__region_drop(user);
}

static tn_status run_recorded(tn__region *region, tn_tensor *const *in, tn_tensor **out)
{
    tn_function function = {
        .name = region->def->name, .forward = forward, .backward = backward, .release = release
    };
    uint64_t scope = tn_scope_begin();
    tn_status status = tn_function_call(&function, tn__region_keep(region), in, region->n_in, out,
                                        region->n_out);

    for (int64_t i = 0; i < region->n_out && status == TN_OK; i++)
        tn_tensor_keep(out[i]);
    tn_scope_end(scope);
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

static tn_status check_inputs(const tn_node *node, tn_tensor *const *in, bool *recorded)
{
    const tn__region *region = node->region;
    tn_status status = TN_OK;
    char what[160];

    for (int64_t i = 0; i < region->n_in && status == TN_OK; i++) {
        tn_snprint(what, sizeof what, "compiler %s: input %s", region->def->name,
                   node->in[i]->name);
        status = tn__run_check_input(in[i], &region->in[i], "the compiled region", what);
        if (status == TN_OK && in[i]->device != region->device)
            status = tn_fail(TN_ERR_RUNTIME, "%s: wrong device, got %s; it was compiled for %s",
                             what, in[i]->device->name, region->device->name);
        *recorded |= tn__requires_grad(in[i]);
    }
    *recorded &= tn__grad_on();
    return status;
}

tn_status tn__region_run(tn_node *node, tn_tensor *const *in, tn_tensor **out)
{
    tn__region *region = node->region;
    bool recorded = false;
    tn_status status = check_inputs(node, in, &recorded);

    if (status != TN_OK)
        return status;
    if (!recorded)
        return run_program(region, in, out);
    if (region->def->flags & TN_COMPILER_TRAINS)
        return run_recorded(region, in, out);
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "compiler %s has no gradient (TN_COMPILER_TRAINS), and one would be recorded; "
                   "run the graph between tn_grad_begin(false) and tn_grad_end(), or without the "
                   "compiler",
                   region->def->name);
}
