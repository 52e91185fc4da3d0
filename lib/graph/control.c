/* SPDX-License-Identifier: MIT
 *
 * tn_cond and tn_loop: control flow that depends on values. They call functions of the program; a
 * trace or a plan of this thread records the call instead. */
#include "lib/graph/control.h"
#include "core/op/needed.h"
#include "core/tensor/trace.h"

const char *tn__control_name(tn_node_kind kind)
{
    return kind == TN_NODE_IF ? "tn_cond" : "tn_loop";
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool same_type(const tn_meta *a, const tn_meta *b)
{
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;

    for (int32_t d = 0; same && d < a->ndim; d++)
        same = a->shape[d] == b->shape[d];
    return same;
}

static void put_type(tn__text *text, const tn_meta *meta)
{
    tn__text_add(text, "%s", tn_dtype_name(meta->dtype));
    tn__tensor_text_ints(text, (tn_ints){ meta->shape, meta->ndim });
}

tn_status tn__control_check_bool(const tn_meta *meta, const char *what)
{
    tn__text text = { 0 };
    int64_t count = 1;
    tn_status status;

    for (int32_t d = 0; d < meta->ndim; d++)
        if (meta->shape[d] != 1)
            count = 0;
    if (meta->ndim < 0 || (meta->dtype == TN_BOOL && count == 1))
        return TN_OK;
    put_type(&text, meta);
    tn__text_put(&text, "", 1);
    status = tn_fail(TN_ERR_TYPE, "%s: wrong dtype or shape, got %s; expected one element of bool",
                     what, text.failed ? "another" : text.at);
    tn__text_free(&text);
    return status;
}

static tn_status differs(tn_node_kind kind, int block, int64_t i, const tn_meta *got,
                         const tn_meta *expected)
{
    tn__text text = { 0 };
    tn_status status;

    put_type(&text, got);
    tn__text_add(&text, "; expected ");
    put_type(&text, expected);
    tn__text_add(&text, kind == TN_NODE_IF ? ", as in then" : ", as the value that it replaces");
    tn__text_put(&text, "", 1);
    status = tn_fail(TN_ERR_VALUE, "%s: %s: result %lld: wrong dtype or shape, got %s",
                     tn__control_name(kind), tn__blocks_name(kind, block), (long long)i,
                     text.failed ? "another" : text.at);
    tn__text_free(&text);
    return status;
}

tn_status tn__control_check(tn_node_kind kind, int block, const tn_meta *got,
                            const tn_meta *expected, int64_t count)
{
    if (kind == TN_NODE_LOOP && block == 0)
        return tn__control_check_bool(got, "tn_loop: test: result");
    for (int64_t i = 0; i < count; i++)
        if (got[i].ndim >= 0 && expected[i].ndim >= 0 && !same_type(&got[i], &expected[i]))
            return differs(kind, block, i, &got[i], &expected[i]);
    return TN_OK;
}

/* Reads a predicate. */
static tn_status decide(const tn_tensor *tensor, const char *what, bool *yes)
{
    uint8_t value = 0;
    tn_meta meta;
    tn_status status;

    tn__tensor_meta(tensor, &meta);
    status = tn__control_check_bool(&meta, what);
    if (status == TN_OK)
        status = tn_tensor_copy_out((tn_tensor *)(uintptr_t)tensor, &value, sizeof value);
    *yes = value != 0;
    return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

tn_status tn__control_call(const tn__control *c, int block, tn_tensor *const *in, tn_tensor **out,
                           int64_t n_out)
{
    const char *name = tn__blocks_name(c->kind, block);
    uint64_t before = tn_error_mark();
    tn_status status;
    char what[32];

    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    status = tn_error_returned(c->fn[block](c->user, in, c->n_in, out, n_out), before,
                               "the function");
    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        if (!tn__tensor_ok(out[i])) {
            tn_snprint(what, sizeof what, "result %lld", (long long)i);
            status = tn__tensor_bad(out[i], what);
        }
    return status == TN_OK ? TN_OK : tn_error_prefix("%s: %s: ", tn__control_name(c->kind), name);
}

tn_status tn__control_apart(tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        tn_tensor *from = out[i];
        bool shared = false;

        for (int64_t k = 0; k < n_in && !shared; k++)
            shared = in[k]->storage == from->storage;
        for (int64_t k = 0; k < i && !shared; k++)
            shared = out[k]->storage == from->storage;
        if (shared)
            status = tn_op_call(tn__op_needed(TN__NEED_copy), &from, 1, NULL, &out[i], 1);
    }
    return status;
}

/* Ends a scope, and passes the results to the scope around it. */
static tn_status leave(uint64_t scope, tn_tensor **out, int64_t n_out, tn_status status)
{
    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        tn_tensor_keep(out[i]);
    tn_scope_end(scope);
    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        out[i] = tn_tensor_to_scope(out[i]);
        if (out[i] != NULL)
            continue;
        status = tn_error_last_code();
        while (++i < n_out)
            tn_tensor_drop(out[i]);
    }
    for (int64_t i = 0; i < n_out && status != TN_OK; i++)
        out[i] = NULL;
    return status;
}

static tn_status run_cond(const tn__control *c)
{
    uint64_t scope = tn_scope_begin();
    bool yes;
    tn_status status = decide(c->predicate, "tn_cond: predicate", &yes);

    if (status == TN_OK)
        status = tn__control_call(c, yes ? 0 : 1, c->in, c->out, c->n_out);
    if (status == TN_OK)
        status = tn__control_apart(c->in, c->n_in, c->out, c->n_out);
    return leave(scope, c->out, c->n_out, status);
}

/* One step: computes `next` from `now`, unless the test says that this was the last one. The caller
 * owns next[i]. */
static tn_status step(const tn__control *c, tn_tensor *const *now, tn_tensor **next, bool *goes)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *test = NULL;
    tn_status status = tn__control_call(c, 0, now, &test, 1);

    *goes = false;
    if (status == TN_OK)
        status = decide(test, "tn_loop: test: result", goes);
    if (status == TN_OK && *goes)
        status = tn__control_call(c, 1, now, next, c->n_out);
    for (int64_t i = 0; i < c->n_out && *goes && status == TN_OK; i++) {
        tn_meta got, expected;

        tn__tensor_meta(next[i], &got);
        tn__tensor_meta(now[i], &expected);
        if (!same_type(&got, &expected))
            status = differs(TN_NODE_LOOP, 1, i, &got, &expected);
    }
    for (int64_t i = 0; i < c->n_out && *goes && status == TN_OK; i++)
        tn_tensor_keep(next[i]);
    tn_scope_end(scope);
    return status;
}

static tn_status run_loop(const tn__control *c)
{
    size_t count = (size_t)c->n_out;
    tn_tensor **space = tn_calloc(2 * count + 1, sizeof(tn_tensor *)), **now, **next;
    uint64_t scope;
    tn_status status = TN_OK;

    if (space == NULL)
        return TN_ERR_MEMORY;
    now = space;
    next = space + count;
    for (size_t i = 0; i < count; i++)
        now[i] = tn_tensor_keep(c->in[i]);
    for (int64_t done = 0; status == TN_OK && (c->most < 0 || done < c->most); done++) {
        tn_tensor **before = now;
        bool goes;

        status = step(c, now, next, &goes);
        if (status != TN_OK || !goes)
            break;
        for (size_t i = 0; i < count; i++)
            tn_tensor_drop(now[i]);
        now = next;
        next = before;
    }
    scope = tn_scope_begin();
    for (size_t i = 0; i < count; i++)
        c->out[i] = now[i];
    if (status == TN_OK)
        status = tn__control_apart(c->in, c->n_in, c->out, c->n_out);
    status = leave(scope, c->out, c->n_out, status);
    for (size_t i = 0; i < count; i++)
        tn_tensor_drop(now[i]);
    tn_free(space);
    return status;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

void tn__control_carried(const tn_tensor *tensor, tn_meta *meta)
{
    tn__tensor_meta(tensor, meta);
    meta->flags = 0;
    meta->offset = 0;
    tn__op_meta_strides(meta);
}

static tn_status shapes_of(const tn__control *c, int block, tn_tensor **space, tn_meta *metas,
                           int64_t count)
{
    tn_status status = tn__control_call(c, block, c->in, space, count);

    for (int64_t i = 0; i < count && status == TN_OK; i++)
        tn__build_meta_of(space[i], &metas[i]);
    return status;
}

/* Writes the types of the results to the first half of `metas`. */
static tn_status shapes(const tn__control *c, tn_tensor **space, tn_meta *metas)
{
    tn_meta *first = metas, *second = metas + c->n_out, test;
    tn_status status;

    if (c->kind == TN_NODE_IF) {
        tn__tensor_meta(c->predicate, &test);
        status = tn__control_check_bool(&test, "tn_cond: predicate");
        if (status == TN_OK)
            status = shapes_of(c, 0, space, first, c->n_out);
    } else {
        status = shapes_of(c, 0, space, &test, 1);
        if (status == TN_OK)
            status = tn__control_check(c->kind, 0, &test, NULL, 1);
        for (int64_t i = 0; i < c->n_out; i++)
            tn__control_carried(c->in[i], &first[i]);
    }
    if (status == TN_OK)
        status = shapes_of(c, 1, space, second, c->n_out);
    return status == TN_OK ? tn__control_check(c->kind, 1, second, first, c->n_out) : status;
}

tn_status tn__control_shapes(const tn__control *c)
{
    size_t count = (size_t)c->n_out;
    tn_tensor **space = tn_calloc(count + 1, sizeof(tn_tensor *));
    tn_meta *metas = tn_calloc(2 * count + 1, sizeof *metas);
    uint64_t scope = tn_scope_begin();
    tn_status status = space != NULL && metas != NULL ? shapes(c, space, metas) : TN_ERR_MEMORY;

    for (size_t i = 0; i < count && status == TN_OK; i++) {
        c->out[i] = tn__trace_make_like(&metas[i], space[i]->device);
        if (c->out[i] == NULL)
            status = tn_error_last_code();
    }
    tn_free(space);
    tn_free(metas);
    return leave(scope, c->out, c->n_out, status);
}

/* ---- public ---------------------------------------------------------------------------------- */

static tn_status run(const tn__control *c)
{
    tn__tracer *tracer = tn__tracer_here;
    const char *name = tn__control_name(c->kind);
    char what[64];

    if (!tn__given(c->out != NULL || c->n_out <= 0, name))
        return TN_ERR_VALUE;
    for (int64_t i = 0; i < c->n_out; i++)
        c->out[i] = NULL;
    tn_snprint(what, sizeof what, "%s: function", name);
    if (!tn__given(c->fn[0] != NULL && c->fn[1] != NULL, what))
        return TN_ERR_VALUE;
    tn_snprint(what, sizeof what, "%s: in", name);
    if (!tn__given(c->in != NULL || c->n_in <= 0, what))
        return TN_ERR_VALUE;
    if (c->n_out < 1 || c->n_in < 0)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: wrong count, got %lld inputs and %lld results; expected 0 inputs or more, "
            "and at least one result",
            name, (long long)c->n_in, (long long)c->n_out);
    for (int64_t i = 0; i < c->n_in; i++)
        if (!tn__tensor_ok(c->in[i]))
            return tn__tensor_bad(c->in[i], what);
    if (tracer != NULL && (tracer->silent == 0 || tracer->kernel != NULL))
        return tracer->control(tracer, c);
    if (tracer != NULL)
        return tn__control_shapes(c);
    return c->kind == TN_NODE_IF ? run_cond(c) : run_loop(c);
}

tn_status tn_cond(tn_tensor *predicate, tn_block_fn then_fn, tn_block_fn else_fn,
                  tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out, void *user)
{
    const tn__control control = { .kind = TN_NODE_IF,
                                  .predicate = predicate,
                                  .fn = { then_fn, else_fn },
                                  .user = user,
                                  .in = in,
                                  .n_in = n_in,
                                  .out = out,
                                  .n_out = n_out };

    if (!tn__tensor_ok(predicate)) {
        for (int64_t i = 0; out != NULL && i < n_out; i++)
            out[i] = NULL;
        return tn__tensor_bad(predicate, "tn_cond: predicate");
    }
    return run(&control);
}

tn_status tn_loop(tn_block_fn test_fn, tn_block_fn body_fn, int64_t most, tn_tensor *const *in,
                  tn_tensor **out, int64_t count, void *user)
{
    const tn__control control = { .kind = TN_NODE_LOOP,
                                  .fn = { test_fn, body_fn },
                                  .user = user,
                                  .most = most,
                                  .in = in,
                                  .n_in = count,
                                  .out = out,
                                  .n_out = count };

    return run(&control);
}
