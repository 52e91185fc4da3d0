/* SPDX-License-Identifier: MIT
 *
 * A differentiable function of the program: two callbacks, which need no registration. */
#include "core/base/vector.h"
#include "core/grad/private.h"
#include "core/tensor/trace.h"

typedef enum kept_for { SAVED, DIRTY, FLAT } kept_for;

typedef struct kept {
    tn_tensor *tensor; /* owned */
    kept_for role;
} kept;

struct tn_function_ctx {
    const char *name;
    bool forward;
    bool bare;  /* missing gradients are TN_NONE in backward, not zeros */
    kept *kept; /* only in forward */
    int32_t count;
    int64_t capacity;
    tn_tensor *const *in; /* only in forward */
    int64_t n_in;
    uint32_t need;  /* only in backward */
    tn__node *node; /* only in backward */
    tn_tensor **saved;
};

static tn_status keep(tn_function_ctx *ctx, tn_tensor *tensor, kept_for role, const char *who)
{
    if (ctx == NULL || !ctx->forward)
        return tn_fail(TN_ERR_RUNTIME, "%s: called outside of a function's forward", who);
    if (!tn__tensor_ok(tensor))
        return tn__tensor_bad(tensor, who);
    if (!tn__vector_room(&ctx->kept, &ctx->capacity, ctx->count + 1, sizeof *ctx->kept))
        return TN_ERR_MEMORY;
    ctx->kept[ctx->count++] = (kept){ tn_tensor_keep(tensor), role };
    return TN_OK;
}

tn_status tn_function_save(tn_function_ctx *ctx, tn_tensor *tensor)
{
    return keep(ctx, tensor, SAVED, "tn_function_save");
}

tn_status tn_function_mark_dirty(tn_function_ctx *ctx, tn_tensor *tensor)
{
    return keep(ctx, tensor, DIRTY, "tn_function_mark_dirty");
}

tn_status tn_function_mark_non_differentiable(tn_function_ctx *ctx, tn_tensor *tensor)
{
    return keep(ctx, tensor, FLAT, "tn_function_mark_non_differentiable");
}

tn_status tn_function_set_materialize_grads(tn_function_ctx *ctx, bool materialize)
{
    if (ctx == NULL || !ctx->forward)
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_function_set_materialize_grads: called outside of a function's forward");
    ctx->bare = !materialize;
    return TN_OK;
}

bool tn_function_needs_grad(tn_function_ctx *ctx, int64_t index)
{
    int64_t n_in = ctx == NULL ? 0 : ctx->forward ? ctx->n_in : ctx->node->n_in;

    if (index < 0 || index >= n_in) {
        tn__error_index(index, n_in, "tn_function_needs_grad: input: ");
        return false;
    }
    if (ctx->forward)
        return tn__tensor_ok(ctx->in[index]) && tn__requires_grad(ctx->in[index]);
    return ctx->need >> (index < 31 ? index : 31) & 1;
}

/* Returns whether forward has marked a tensor for this role. */
static bool is_marked(const tn_function_ctx *ctx, const tn_tensor *tensor, kept_for role)
{
    for (int32_t i = 0; i < ctx->count; i++)
        if (ctx->kept[i].tensor == tensor && ctx->kept[i].role == role)
            return true;
    return false;
}

tn_tensor *tn_function_saved(tn_function_ctx *ctx, int64_t index)
{
    if (ctx == NULL || ctx->forward) {
        tn_fail(TN_ERR_RUNTIME, "tn_function_saved: called outside of a function's backward");
        return NULL;
    }
    if (index < 0 || index >= ctx->node->n_saved) {
        tn__error_index(index, ctx->node->n_saved, "function %s: saved tensor: index: ", ctx->name);
        return NULL;
    }
    if (ctx->saved[index] == NULL)
        tn__node_stale(ctx->node);
    return ctx->saved[index];
}

/* Makes an output that uses the memory of an input a view of that input. */
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

/* Saves in the node the tensors that forward asked to save. Those that are not outputs keep their
 * history. */
static tn_status build_saved(tn_function_ctx *ctx, tn__node *node, tn_tensor *const *out,
                             int64_t n_out)
{
    tn_status status = TN_OK;
    tn__saved *saved = node->saved;

    for (int32_t i = 0; i < ctx->count && status == TN_OK; i++) {
        tn_tensor *tensor = ctx->kept[i].tensor;
        int32_t output = -1;

        if (ctx->kept[i].role != SAVED)
            continue;
        for (int64_t k = 0; k < n_out; k++)
            if (out[k] == tensor)
                output = (int32_t)k;
        status = tn__node_save(saved, tensor, output, output >= 0, false);
        if (status == TN_OK && output < 0 && saved->tensor != tensor) {
            tn__edge edge;

            status = tn__grad_edge(tensor, &edge);
            if (status == TN_OK)
                status = tn__grad_attach_edge(&edge, saved->tensor);
        }
        saved++;
    }
    return status;
}

static void build_made(tn__made *made, tn_tensor *const *out, int64_t n_out)
{
    for (int64_t i = 0; i < n_out; i++) {
        tn__tensor_meta(out[i], &made[i].meta);
        made[i].meta.flags = 0;
        made[i].meta.offset = 0;
        made[i].device = out[i]->device;
    }
}

/* Makes the node the history of the outputs. */
static tn_status build_history(const tn_function_ctx *ctx, tn__node *node, tn_tensor *const *in,
                               int64_t n_in, tn_tensor **out, int64_t n_out)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        if (((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(out[i]->dtype)) == 0 ||
            is_marked(ctx, out[i], FLAT))
            continue;
        if (is_marked(ctx, out[i], DIRTY))
            status = n_out == 1 ? tn__grad_rebase(node, out[i])
                                : tn__node_attach(node, out[i], (int32_t)i);
        else if ((status = tn__node_attach(node, out[i], (int32_t)i)) == TN_OK)
            status = mark_view(out[i], in, n_in);
    }
    return status;
}

static tn_status build(tn_function_ctx *ctx, const tn_function *function, void *user,
                       tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out,
                       tn__node **made)
{
    size_t name_size = strlen(ctx->name) + 1, made_size = ctx->bare ? 0 : sizeof(tn__made);
    int64_t n_sizes = 0, *sizes;
    int32_t n_saved = 0;
    tn_status status = TN_OK;
    tn__node *node;
    void *tail;

    made_size *= (size_t)n_out;
    for (int64_t i = 0; i < n_in; i++)
        n_sizes += tn__is_none(in[i]) ? 0 : in[i]->view.ndim;
    for (int32_t i = 0; i < ctx->count; i++)
        n_saved += ctx->kept[i].role == SAVED;
    node = tn__node_new(TN__NODE_FUNCTION, "", (int32_t)n_in, (int32_t)n_out, n_saved, n_sizes,
                        made_size + name_size, &tail);
    if (node == NULL)
        return TN_ERR_MEMORY;
    /* Nothing to release if a step below fails. */
    memset(&node->as.function, 0, sizeof node->as.function);
    memcpy((char *)tail + made_size, ctx->name, name_size);
    node->name = (char *)tail + made_size;
    if (!ctx->bare) {
        build_made(tail, out, n_out);
        node->as.function.made = tail;
    }
    sizes = n_in > 0 ? node->seen[0].shape : NULL;
    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        status = tn__node_input(node, (int32_t)i, in[i], true, &sizes);
    if (status == TN_OK)
        status = build_saved(ctx, node, out, n_out);
    if (status == TN_OK)
        status = build_history(ctx, node, in, n_in, out, n_out);
    if (status != TN_OK) {
        tn__node_drop(node);
        return status;
    }
    node->as.function.calls = *function; /* from here on the node releases `user` */
    node->as.function.user = user;
    *made = node;
    return TN_OK;
}

/* Checks that each tensor that forward marked dirty is an input and an output. If the call is
 * recorded (`wanted`), also checks that the tensor may be changed in place. */
static tn_status check_dirty(const tn_function_ctx *ctx, tn_tensor *const *out, int64_t n_out,
                             bool wanted)
{
    for (int32_t i = 0; i < ctx->count; i++) {
        tn_tensor *tensor = ctx->kept[i].tensor;
        bool given = false, input = false;
        tn_status status;

        if (ctx->kept[i].role != DIRTY)
            continue;
        for (int64_t k = 0; k < n_out; k++)
            given |= out[k] == tensor;
        for (int64_t k = 0; k < ctx->n_in; k++)
            input |= ctx->in[k] == tensor;
        if (!given || !input)
            return tn_fail(
                TN_ERR_RUNTIME,
                "function %s: a tensor marked dirty is not among its %s; a tensor changed in place "
                "must be an input and be returned as an output",
                ctx->name, input ? "outputs" : "inputs");
        if (!wanted)
            continue;
        status = tn__grad_changeable(ctx->name, "", tensor);
        if (status != TN_OK)
            return status;
        if (n_out > 1 && tensor->autograd != NULL && tensor->autograd->base != NULL)
            return tn_fail(TN_ERR_RUNTIME,
                           "function %s: it changes a view in place and has %lld outputs; expected "
                           "one output",
                           ctx->name, (long long)n_out);
    }
    return TN_OK;
}

/* Makes out[i] owned references. An output that has a history already and is not marked dirty, or
 * that occurs twice, is replaced by an alias. */
static tn_status own_outputs(const tn_function_ctx *ctx, tn_tensor **out, int64_t n_out)
{
    for (int64_t i = 0; i < n_out; i++) {
        bool dirty;
        tn_tensor *own;

        if (!tn__tensor_ok(out[i])) {
            for (int64_t k = 0; k < i; k++)
                tn_tensor_drop(out[k]);
            return tn_fail(TN_ERR_RUNTIME,
                           "function %s: its forward returned no output %lld; "
                           "expected a tensor in each element of `out`",
                           ctx->name, (long long)i);
        }
        dirty = is_marked(ctx, out[i], DIRTY);
        own = out[i]->autograd != NULL && !dirty ? tn__tensor_alias(out[i])
                                                 : tn_tensor_keep(out[i]);
        for (int64_t k = 0; k < i && own == out[i]; k++)
            if (out[k] == own) {
                tn_tensor_drop(own);
                own = tn__tensor_alias(out[k]);
            }
        if (own == NULL) {
            for (int64_t k = 0; k < i; k++)
                tn_tensor_drop(out[k]);
            return tn_error_last_code();
        }
        /* The alias gets the mark of the original. */
        if (own != out[i] && is_marked(ctx, out[i], FLAT)) {
            for (int32_t k = 0; k < ctx->count; k++)
                if (ctx->kept[k].tensor == out[i] && ctx->kept[k].role == FLAT) {
                    tn_tensor_drop(ctx->kept[k].tensor);
                    ctx->kept[k].tensor = tn_tensor_keep(own);
                }
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
    uint64_t mark = tn_error_mark();
    tn__node *node = NULL;
    tn_status status;

    tn_grad_begin(false);
    status = tn_error_returned(function->forward(ctx, user, in, out), mark, function->name);
    tn_grad_end();
    ctx->forward = false;
    if (status == TN_OK)
        /* An input that is returned must not get this history itself: an alias gets it. */
        for (int64_t i = 0; i < n_in; i++)
            for (int64_t k = 0; k < n_out; k++)
                if (out[k] == in[i] && tn__tensor_ok(in[i]) && in[i]->autograd == NULL &&
                    !is_marked(ctx, in[i], DIRTY)) {
                    out[k] = tn_tensor_detach(in[i]);
                    if (out[k] == NULL)
                        status = tn_error_last_code();
                }
    if (status == TN_OK)
        status = check_dirty(ctx, out, n_out, wanted);
    if (status == TN_OK)
        status = own_outputs(ctx, out, n_out);
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
    if (!tn__given(function != NULL, "tn_function_call: function"))
        return TN_ERR_VALUE;
    if (!tn__given(in != NULL || n_in <= 0, "tn_function_call: in") ||
        !tn__given(out != NULL || n_out <= 0, "tn_function_call: out")) {
        if (function->release != NULL)
            function->release(user);
        return TN_ERR_VALUE;
    }
    tn_function_ctx ctx = { .name = function->name != NULL ? function->name : "function",
                            .forward = true,
                            .in = in,
                            .n_in = n_in };
    bool wanted = false, given = false;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        if (in[i] == NULL) {
            char what[192];
            tn_snprint(what, sizeof what, "%s: input %lld", ctx.name, (long long)i);
            status = tn_error_null(what);
        } else if (!tn__is_none(in[i]))
            wanted |= tn__grad_on() && tn__requires_grad(in[i]);
    }
    if (tn__unlikely(tn__making.is.traced) && status == TN_OK &&
        (tn__tracer_here->silent == 0 ||
         (tn__tracer_here->take != NULL && (function->flags & TN_FUNCTION_OPERATORS) == 0)))
        status = tn__tracer_here->refuse(tn__tracer_here, NULL, ctx.name);
    if (status == TN_OK && (function->flags & ~(uint32_t)TN_FUNCTION_OPERATORS) != 0)
        status = tn_fail(
            TN_ERR_VALUE,
            "function %s: flags: unknown, got 0x%x; expected TN_FUNCTION_OPERATORS (1) "
            "or 0",
            ctx.name, function->flags);
    if (status == TN_OK && function->reserved32 != 0)
        status = tn_fail(TN_ERR_VALUE, "function %s: reserved32: nonzero, got %u; expected 0",
                         ctx.name, function->reserved32);
    if (status == TN_OK)
        status = tn__error_reserved((const void *const *)function->reserved,
                                    tn__countof(function->reserved), "tn_function");
    if (status == TN_OK && (function->forward == NULL || (wanted && function->backward == NULL)))
        status = tn_fail(TN_ERR_VALUE, "function %s: %s: it is NULL; expected a function", ctx.name,
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
            status = tn_error_last_code();
            while (++i < n_out)
                tn_tensor_drop(out[i]);
        }
    }
    if (status != TN_OK)
        for (int64_t i = 0; i < n_out; i++)
            out[i] = NULL;
    return status;
}

/* Fills `whole` with the gradients of the outputs, and with zeros for missing ones. The caller owns
 * them. */
static tn_status materialize(const tn__node *node, tn_tensor *const *gout, tn_tensor **whole)
{
    const tn__made *made = node->as.function.made;

    for (int32_t i = 0; i < node->n_out; i++) {
        if (!tn__is_none(gout[i]))
            whole[i] = tn_tensor_keep(gout[i]);
        else
            whole[i] = tn__grad_zeros(&made[i].meta, made[i].device);
        if (whole[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

tn_status tn__function_run(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                           tn_tensor **gin)
{
    tn_function_ctx ctx = { .name = node->name, .node = node, .need = need };
    tn_tensor **whole;
    tn_status status;
    bool stale;

    ctx.saved = tn_calloc((size_t)(node->n_saved + node->n_out) + 1, sizeof *ctx.saved);
    if (ctx.saved == NULL)
        return TN_ERR_MEMORY;
    whole = ctx.saved + node->n_saved;
    for (int32_t i = 0; i < node->n_in; i++)
        gin[i] = NULL;
    status = tn__node_unpack(node, ctx.saved, &stale);
    for (int32_t i = 0; i < node->n_saved && status == TN_OK; i++)
        if (record && node->saved[i].is_output && ctx.saved[i] != NULL)
            status = tn__node_attach_saved(node, &node->saved[i], &ctx.saved[i]);
    if (status == TN_OK && node->as.function.made != NULL)
        status = materialize(node, gout, whole);
    uint64_t mark = tn_error_mark();
    if (status == TN_OK)
        status = tn_error_returned(
            node->as.function.calls.backward(&ctx, node->as.function.user,
                                             node->as.function.made != NULL ? whole : gout, gin),
            mark, node->name);
    for (int32_t i = 0; i < node->n_in && status == TN_OK; i++)
        if ((need >> (i < 31 ? i : 31) & 1) && gin[i] == NULL)
            status = tn_failed() ? tn_error_last_code()
                                 : tn_fail(TN_ERR_RUNTIME,
                                           "input %d: no gradient returned; expected a tensor, or "
                                           "TN_NONE for zero",
                                           (int)i);
    for (int32_t i = 0; i < node->n_saved + node->n_out; i++)
        if (ctx.saved[i] != NULL)
            tn_tensor_drop(ctx.saved[i]);
    tn_free(ctx.saved);
    return status;
}
