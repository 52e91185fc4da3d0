/* SPDX-License-Identifier: MIT
 *
 * Sees the begin and the end of backward. Forward passes its results through a function node; its
 * derivative runs at the begin. The node has one more input, the token, which comes from a node
 * that is older than those of all forwards of this thread. Of the nodes whose gradients are
 * complete, backward runs the youngest first, so the derivative of that node runs when all nodes of
 * the module have run and the gradients of its parameters have arrived. */
#include "ddp.h"

#include <math.h>
#include <string.h>

/* ---- begin ----------------------------------------------------------------------------------- */

/* What the node of a forward knows. */
typedef struct passage {
    ddp *ddp;
    bool combines; /* the forward was not in no_sync */
    double batch;
    int64_t count; /* results */
} passage;

static void passage_release(void *user)
{
    passage *p = user;

    ddp_drop(p->ddp);
    tn_free(p);
}

static tn_status pass_forward(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                              tn_tensor **out)
{
    const passage *p = user;

    for (int64_t i = 0; i < p->count; i++)
        out[i] = in[i + 1];
    return tn_function_set_materialize_grads(ctx, false);
}

tn_status walk_begin(ddp *d, bool combines, double weight)
{
    tn_status status = TN_OK;

    d->combines = d->shards > 0 ? d->shard == d->shards_here - 1 : combines;
    d->walk_weight = isnan(d->weight) ? weight : d->weight;
    d->walking = d->began = true;
    d->n_arrivals = 0; /* those of a walk that has failed count for nothing */
    if (!ddp_is_alone(d))
        status = bucket_allocate(d);
    if (status == TN_OK)
        status = share_begin(d);
    return status;
}

static void warn_about_sync(ddp *d, const passage *p)
{
    if (d->warned_sync || p->combines == (d->no_sync == 0))
        return;
    d->warned_sync = true;
    tn_log(TN_LOG_WARNING,
           "DistributedDataParallel: a forward %s no_sync has its backward %s it; the forward "
           "decides. Put both inside, or both outside",
           p->combines ? "outside of" : "in", p->combines ? "in" : "outside of");
}

static tn_status begin(const passage *p)
{
    ddp *d = p->ddp;

    if (d->closed)
        return tn_fail(TN_ERR_RUNTIME, "DistributedDataParallel: the module was freed before "
                                       "backward; expected tn_module_drop after it");
    if (tn_grad_enabled())
        return tn_fail(TN_ERR_RUNTIME,
                       "DistributedDataParallel: create_graph: not possible here, because combined "
                       "gradients have no graph; expected tn_grad on the child `module`");
    warn_about_sync(d, p);
    if (!d->walking)
        return walk_begin(d, p->combines, p->batch);
    d->combines = d->combines || (p->combines && d->shards == 0);
    return TN_OK;
}

static tn_status pass_backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                               tn_tensor **gin)
{
    const passage *p = user;
    tn_status status = TN_OK;

    gin[0] = TN_NONE;
    for (int64_t i = 0; i < p->count; i++)
        gin[i + 1] = gout[i];
    if (tn_function_needs_grad(ctx, 0)) {
        gin[0] = p->ddp->one;
        status = begin(p);
    } else if (!p->ddp->warned_grad) {
        p->ddp->warned_grad = true;
        tn_log(TN_LOG_WARNING, "DistributedDataParallel: tn_grad returns the gradients of this "
                               "rank; only tn_backward combines those of all ranks");
    }
    return status == TN_OK ? TN_OK : ddp_failed(p->ddp);
}

static const tn_function pass = { .name = "DistributedDataParallel",
                                  .forward = pass_forward,
                                  .backward = pass_backward,
                                  .release = passage_release };

/* ---- end ------------------------------------------------------------------------------------- */

static tn_status token_forward(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                               tn_tensor **out)
{
    (void)ctx;
    (void)user;
    out[0] = in[0];
    return TN_OK;
}

static tn_status token_backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                                tn_tensor **gin)
{
    (void)ctx;
    (void)gout;
    gin[0] = TN_NONE;
    return step_end(user, false);
}

/* `user` is the ddp; the node is reached only through nodes that hold a reference to it. */
static const tn_function token = { .name = "DistributedDataParallel.end",
                                   .forward = token_forward,
                                   .backward = token_backward };

void walk_forget(ddp *d)
{
    tn_tensor_drop(d->token);
    tn_tensor_drop(d->origin);
    tn_tensor_drop(d->one);
    d->token = d->origin = d->one = NULL;
}

tn_status walk_prepare(ddp *d)
{
    TN_SCOPE;
    tn_tensor *out = NULL;
    tn_status status;

    if (d->token != NULL && pthread_equal(d->thread, pthread_self()))
        return TN_OK;
    walk_forget(d);
    d->thread = pthread_self();
    d->one = tn_tensor_keep(tn_tensor_full(TN_SHAPE(1), tn_scalar_float(1), TN_F32, NULL));
    d->origin = tn_tensor_keep(tn_tensor_full(TN_SHAPE(1), tn_scalar_float(0), TN_F32, NULL));
    status = d->one != NULL && d->origin != NULL ? tn_tensor_set_requires_grad(d->origin, true)
                                                 : tn_error_last_code();
    tn_grad_begin(true);
    if (status == TN_OK)
        status = tn_function_call(&token, d, &d->origin, 1, &out, 1);
    tn_grad_end();
    d->token = status == TN_OK ? tn_tensor_keep(out) : NULL;
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* The tensors of a result that require gradients. */
typedef struct results {
    tn_tensor **at; /* at[0] is the token */
    int64_t count, room;
} results;

static tn_status collect(results *r, const tn_value *value)
{
    tn_status status = TN_OK;
    bool list = value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE ||
                value->kind == TN_VALUE_DICT;

    for (uint32_t i = 0; list && i < value->count && status == TN_OK; i++)
        status = collect(r, &value->as.list[i]);
    if (value->kind != TN_VALUE_TENSOR || value->as.tensor == TN_NONE ||
        !tn_tensor_requires_grad(value->as.tensor))
        return status;
    if (r->count == r->room) {
        int64_t room = r->room * 2 + 4;
        tn_tensor **grown = tn_realloc(r->at, (size_t)room * sizeof *grown);

        if (grown == NULL)
            return TN_ERR_MEMORY;
        r->at = grown;
        r->room = room;
    }
    r->at[r->count++] = value->as.tensor;
    return TN_OK;
}

/* Replaces the tensors, in the order of collect(), in a value whose lists are copied. */
static tn_status replace(tn_value *value, tn_tensor *const **next)
{
    bool list = value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE ||
                value->kind == TN_VALUE_DICT;
    tn_status status = TN_OK;
    tn_value *copy;

    if (value->kind == TN_VALUE_TENSOR && value->as.tensor != TN_NONE &&
        tn_tensor_requires_grad(value->as.tensor))
        value->as.tensor = *(*next)++;
    if (!list || value->count == 0)
        return TN_OK;
    copy = tn_malloc(value->count * sizeof *copy);
    if (copy == NULL) {
        value->count = 0;
        return TN_ERR_MEMORY;
    }
    memcpy(copy, value->as.list, value->count * sizeof *copy);
    value->as.list = copy;
    for (uint32_t i = 0; i < value->count; i++)
        if (replace(&copy[i], next) != TN_OK)
            status = TN_ERR_MEMORY;
    return status;
}

static void free_lists(const tn_value *value)
{
    bool list = value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE ||
                value->kind == TN_VALUE_DICT;

    if (!list || value->count == 0)
        return;
    for (uint32_t i = 0; i < value->count; i++)
        free_lists(&value->as.list[i]);
    tn_free((void *)(uintptr_t)value->as.list);
}

static tn_status put_back(tn_pack *output, tn_tensor *const *tensors)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_pack_count(output) && status == TN_OK; i++) {
        tn_value value = tn_pack_at(output, i);

        status = replace(&value, &tensors);
        if (status == TN_OK)
            status = tn_pack_set(output, i, value);
        free_lists(&value);
    }
    return status;
}

/* Calls the node. `r` has room for the results after the inputs. */
static tn_status call_node(ddp *d, results *r, double batch)
{
    passage *p = tn_malloc(sizeof *p);

    if (p == NULL)
        return TN_ERR_MEMORY;
    *p = (passage){ d, d->no_sync == 0, batch, r->count - 1 };
    ddp_keep(d);
    return tn_function_call(&pass, p, r->at, r->count, r->at + r->count, r->count - 1);
}

tn_status walk_watch(ddp *d, tn_pack *output, double batch)
{
    results r = { NULL, 0, 0 };
    tn_value first = tn_value_tensor(d->token);
    tn_status status = collect(&r, &first);

    for (int64_t i = 0; i < tn_pack_count(output) && status == TN_OK; i++) {
        tn_value value = tn_pack_at(output, i);

        status = collect(&r, &value);
    }
    if (status == TN_OK && r.count > 1) {
        tn_tensor **grown = tn_realloc(r.at, (size_t)r.count * 2 * sizeof *grown);

        r.at = grown != NULL ? grown : r.at;
        status = grown != NULL ? call_node(d, &r, batch) : TN_ERR_MEMORY;
        if (status == TN_OK)
            status = put_back(output, r.at + r.count);
    }
    tn_free(r.at);
    return status;
}
