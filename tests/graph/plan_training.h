/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of plans of training: a compiled network and the same network that runs
 * eagerly, whose losses, gradients and states must have the same bits. */
#ifndef TN_TESTS_GRAPH_PLAN_TRAINING_H
#define TN_TESTS_GRAPH_PLAN_TRAINING_H

#include "tests/graph/plan_module.h"

#define TRAIN "plan(train=True)"

struct pair {
    tn_module *net, *eager;
};

/* Takes over the reference to `net`. */
static TN_ATTR(unused) struct pair pair_of(tn_module *net)
{
    struct pair p = { .net = net };

    ck_made(net);
    p.eager = tn_module_copy(net);
    ck_made(p.eager);
    ck_ok(tn_module_compile(net, TRAIN));
    return p;
}

static TN_ATTR(unused) void drop_pair(struct pair *p)
{
    tn_module_drop(p->net);
    tn_module_drop(p->eager);
}

/* The first result. */
static TN_ATTR(unused) tn_tensor *call_of(tn_module *net, tn_tensor *x)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor *y = NULL;

    ck_ok(tn_pack_add(in, NULL, tn_value_tensor(x)));
    if (tn_module_call_pack(net, in, out) == TN_OK) {
        y = tn_pack_at(out, 0).as.tensor;
        tn_tensor_to_scope(tn_tensor_keep(y));
    }
    tn_pack_drop(in);
    tn_pack_drop(out);
    return y;
}

static TN_ATTR(unused) tn_tensor *loss_of(tn_tensor *y)
{
    return tn_mean(tn_square(y));
}

/* All parameters have the same gradients, or both none. */
static TN_ATTR(unused) void same_gradients(tn_module *a, tn_module *b)
{
    tn_tensor *p[64], *q[64];
    int64_t count = tn_module_parameters(a, p, 64), with = 0;

    ck_assert_int_le(count, 64);
    ck_assert_int_eq(tn_module_parameters(b, q, 64), count);
    for (int64_t i = 0; i < count; i++) {
        tn_tensor *x = tn_tensor_grad(p[i]), *y = tn_tensor_grad(q[i]);

        ck_assert_int_eq(x == TN_NONE, y == TN_NONE);
        if (x == TN_NONE)
            continue;
        ck_same(x, y);
        with++;
    }
    ck_assert_int_gt(with, 0);
}

static TN_ATTR(unused) void same_draws(const uint64_t a[3])
{
    uint64_t b[3];

    ck_ok(tn_random_get_state(b));
    ck_assert(a[0] == b[0] && a[1] == b[1]);
}

/* A step of each: the losses, the gradients and the random numbers that were drawn are the same. */
static TN_ATTR(unused) void step_pair(struct pair *p, tn_optimizer *const rules[2], tn_tensor *x,
                                      uint64_t seed)
{
    tn_tensor *losses[2];
    uint64_t state[3];

    for (int i = 0; i < 2; i++) {
        tn_module *net = i == 0 ? p->eager : p->net;
        tn_tensor *y;

        tn_random_seed(seed);
        ck_ok(tn_module_zero_grad(net));
        y = call_of(net, x);
        ck_made(y);
        losses[i] = loss_of(y);
        ck_ok(tn_backward(losses[i]));
        if (i == 0)
            ck_ok(tn_random_get_state(state));
        else
            same_draws(state);
    }
    ck_same(losses[1], losses[0]);
    same_gradients(p->net, p->eager);
    for (int i = 0; i < 2; i++)
        ck_ok(tn_optimizer_step(rules[i]));
}

/* What is printed of the plans of a module; static memory. */
static TN_ATTR(unused) const char *plans_of(tn_module *net)
{
    static char text[1 << 16];

    ck_assert_int_ge(tn_module_compile_print(net, false, text, sizeof text), 0);
    return text;
}

static TN_ATTR(unused) int64_t plans_made(tn_module *net)
{
    const char *text = plans_of(net);
    int64_t count = 0;

    for (const char *at = text; (at = strstr(at, "plan for")) != NULL; at++)
        count++;
    return count;
}

/* Both networks give the same results and gradients. */
static TN_ATTR(unused) void ck_pair(struct pair *p, tn_tensor *x)
{
    tn_tensor *y[2];

    for (int i = 0; i < 2; i++) {
        tn_module *net = i == 0 ? p->eager : p->net;

        ck_ok(tn_module_zero_grad(net));
        tn_random_seed(3);
        y[i] = tn_module_call(net, x);
        ck_made(y[i]);
        ck_ok(tn_backward(loss_of(y[i])));
    }
    ck_same(y[1], y[0]);
    same_gradients(p->net, p->eager);
}

#endif
