/* SPDX-License-Identifier: MIT
 *
 * A program's own differentiable function: two callbacks, no registration. */
#include "core/grad/parts.h"

typedef struct kept {
    tn_tensor *tensor; /* owned */
    uint64_t version;
} kept;

struct tn_function_ctx {
    const char *name;
    bool forward;
    kept *kept; /* in forward */
    int32_t count, capacity;
    tn__node *node; /* in backward */
    tn_tensor **saved;
};

tn_status tn_function_save(tn_function_ctx *ctx, tn_tensor *tensor)
{
    if (ctx == NULL || !ctx->forward)
        return tn_fail(TN_ERR_RUNTIME, "tn_function_save outside of a function's forward");
    if (!tn__tensor_ok(tensor))
        return tn__tensor_bad(tensor, "tn_function_save");
    if (ctx->count == ctx->capacity) {
        int32_t capacity = ctx->capacity > 0 ? 2 * ctx->capacity : 4;
        kept *more = tn_realloc(ctx->kept, (size_t)capacity * sizeof *more);

        if (more == NULL)
            return TN_ERR_MEMORY;
        ctx->kept = more;
        ctx->capacity = capacity;
    }
    ctx->kept[ctx->count].tensor = tn_tensor_keep(tensor);
    ctx->kept[ctx->count].version = tn_tensor_version(tensor);
    ctx->count++;
    return TN_OK;
}

tn_tensor *tn_function_saved(tn_function_ctx *ctx, int64_t index)
{
    if (ctx == NULL || ctx->forward) {
        tn_fail(TN_ERR_RUNTIME, "tn_function_saved outside of a function's backward");
        return NULL;
    }
    if (index < 0 || index >= ctx->node->n_saved) {
        tn_fail(TN_ERR_INDEX, "function %s: saved tensor %lld of %d", ctx->name, (long long)index,
                (int)ctx->node->n_saved);
        return NULL;
    }
    if (ctx->saved[index] == NULL)
        tn__node_stale(ctx->node);
    return ctx->saved[index];
}

/* An output over an input's memory is a view of that input. */
static tn_status mark_view(tn_tensor *out, tn_tensor *const *in, int64_t n_in)
{
    for (int64_t i = 0; i < n_in; i++)
        if (!tn__is_none(in[i]) && in[i]->storage == out->storage && out->autograd->base == NULL) {
            tn_status status = tn__grad_view(out, in[i]);

            if (status != TN_OK)
                return status;
            out->autograd->of_function = true;
        }
    return TN_OK;
}

static tn_status build(tn_function_ctx *ctx, const tn_function *function, void *user,
                       tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out,
                       tn__node **made)
{
    size_t name_size = strlen(ctx->name) + 1;
    int64_t n_sizes = 0, *sizes;
    tn_status status = TN_OK;
    tn__node *node;
    void *tail;

    for (int64_t i = 0; i < n_in; i++)
        n_sizes += tn__is_none(in[i]) ? 0 : in[i]->view.ndim;
    node = tn__node_new(TN__NODE_FUNCTION, "", (int32_t)n_in, (int32_t)n_out, ctx->count, n_sizes,
                        name_size, &tail);
    if (node == NULL)
        return TN_ERR_MEMORY;
    memcpy(tail, ctx->name, name_size);
    node->name = tail;
    sizes = n_in > 0 ? node->seen[0].shape : NULL;
    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        status = tn__node_input(node, (int32_t)i, in[i], true, &sizes);
    for (int32_t i = 0; i < ctx->count && status == TN_OK; i++) {
        int32_t output = -1;

        for (int64_t k = 0; k < n_out; k++)
            if (out[k] == ctx->kept[i].tensor)
                output = (int32_t)k;
        status = tn__node_save(&node->saved[i], ctx->kept[i].tensor, output, output >= 0, false);
        node->saved[i].version = ctx->kept[i].version;
        if (status == TN_OK && output < 0 && node->saved[i].tensor != ctx->kept[i].tensor) {
            tn__edge edge;

            status = tn__grad_edge(ctx->kept[i].tensor, &edge);
            if (status == TN_OK)
                status = tn__edge_attach(&edge, node->saved[i].tensor);
        }
    }
    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        if ((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(out[i]->dtype))
            if ((status = tn__node_attach(node, out[i], (int32_t)i)) == TN_OK)
                status = mark_view(out[i], in, n_in);
    if (status != TN_OK) {
        tn__node_drop(node);
        return status;
    }
    node->as.function.calls = *function; /* from here on the node releases `user` */
    node->as.function.user = user;
    *made = node;
    return TN_OK;
}

/* An output that is one of the inputs, or has a history of its own, becomes a tensor of its own. */
static tn_status own_outputs(const tn_function *function, tn_tensor **out, int64_t n_out)
{
    for (int64_t i = 0; i < n_out; i++) {
        tn_tensor *own;

        if (!tn__tensor_ok(out[i])) {
            for (int64_t k = 0; k < i; k++)
                tn_tensor_drop(out[k]);
            return tn_fail(TN_ERR_RUNTIME, "function %s: its forward gave no output %lld",
                           function->name != NULL ? function->name : "function", (long long)i);
        }
        own = out[i]->autograd != NULL ? tn__shell(out[i]) : tn_tensor_keep(out[i]);
        for (int64_t k = 0; k < i && own == out[i]; k++)
            if (out[k] == own) {
                tn_tensor_drop(own);
                own = tn__shell(out[k]);
            }
        if (own == NULL) {
            for (int64_t k = 0; k < i; k++)
                tn_tensor_drop(out[k]);
            return tn_error_last()->code;
        }
        out[i] = own;
    }
    return TN_OK;
}

static tn_status call(tn_function_ctx *ctx, const tn_function *function, void *user,
                      tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out,
                      bool wanted, bool *given)
{
    uint64_t scope = tn_scope_begin();
    tn__node *node = NULL;
    tn_status status;

    tn_grad_begin(false);
    status = tn__status_of(function->forward(ctx, user, in, out), function->name);
    tn_grad_end();
    ctx->forward = false;
    if (status == TN_OK)
        for (int64_t i = 0; i < n_in; i++) /* the input itself: not its history a second time */
            for (int64_t k = 0; k < n_out; k++)
                if (out[k] == in[i] && tn__tensor_ok(in[i]) && in[i]->autograd == NULL) {
                    out[k] = tn_tensor_detach(in[i]);
                    if (out[k] == NULL)
                        status = tn_error_last()->code;
                }
    if (status == TN_OK)
        status = own_outputs(function, out, n_out);
    if (status == TN_OK && wanted) {
        status = build(ctx, function, user, in, n_in, out, n_out, &node);
        if (status != TN_OK)
            for (int64_t i = 0; i < n_out; i++)
                tn_tensor_drop(out[i]);
        *given = node != NULL;
        tn__node_drop(node);
    }
    if (status != TN_OK)
        for (int64_t i = 0; i < n_out; i++)
            out[i] = NULL;
    tn_scope_end(scope);
    return status;
}

tn_status tn_function_call(const tn_function *function, void *user, tn_tensor *const *in,
                           int64_t n_in, tn_tensor **out, int64_t n_out)
{
    tn_function_ctx ctx = { .name = function->name != NULL ? function->name : "function",
                            .forward = true };
    bool wanted = false, given = false;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        if (in[i] == NULL)
            status = tn__null_input(ctx.name);
        else if (!tn__is_none(in[i]))
            wanted |= tn__grad_on() && tn__requires_grad(in[i]);
    }
    if (status == TN_OK && (function->forward == NULL || (wanted && function->backward == NULL)))
        status = tn_fail(TN_ERR_VALUE, "function %s has no %s", ctx.name,
                         function->forward == NULL ? "forward" : "backward");
    if (status == TN_OK)
        status = call(&ctx, function, user, in, n_in, out, n_out, wanted, &given);
    for (int32_t i = 0; i < ctx.count; i++)
        tn_tensor_drop(ctx.kept[i].tensor);
    tn_free(ctx.kept);
    if (!given && function->release != NULL)
        function->release(user);
    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        out[i] = tn__scope_push(out[i]);
        if (out[i] == NULL) {
            status = tn_error_last()->code;
            while (++i < n_out)
                tn_tensor_drop(out[i]);
        }
    }
    if (status != TN_OK)
        for (int64_t i = 0; i < n_out; i++)
            out[i] = NULL;
    return status;
}

tn_status tn__function_run(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                           tn_tensor **gin)
{
    tn_function_ctx ctx = { .name = node->name, .node = node };
    tn_status status;
    bool stale;

    ctx.saved = tn_calloc((size_t)node->n_saved + 1, sizeof *ctx.saved);
    if (ctx.saved == NULL)
        return TN_ERR_MEMORY;
    for (int32_t i = 0; i < node->n_in; i++)
        gin[i] = NULL;
    status = tn__node_unpack(node, ctx.saved, &stale);
    for (int32_t i = 0; i < node->n_saved && status == TN_OK; i++)
        if (record && node->saved[i].is_output && ctx.saved[i] != NULL) {
            tn_tensor *fresh = tn__shell(ctx.saved[i]);

            if (fresh == NULL) {
                status = tn_error_last()->code;
                break;
            }
            tn_tensor_drop(ctx.saved[i]);
            ctx.saved[i] = fresh;
            status = tn__node_attach(node, fresh, node->saved[i].operand);
        }
    if (status == TN_OK)
        status = tn__status_of(
            node->as.function.calls.backward(&ctx, node->as.function.user, gout, gin), node->name);
    for (int32_t i = 0; i < node->n_in && status == TN_OK; i++)
        if ((need >> (i < 31 ? i : 31) & 1) && gin[i] == NULL)
            status = tn_failed() ? tn_error_last()->code
                                 : tn_fail(TN_ERR_RUNTIME,
                                           "gave nothing for input %d; TN_NONE says zero", (int)i);
    for (int32_t i = 0; i < node->n_saved; i++)
        if (ctx.saved[i] != NULL)
            tn_tensor_drop(ctx.saved[i]);
    tn_free(ctx.saved);
    return status;
}
