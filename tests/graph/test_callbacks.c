/* SPDX-License-Identifier: MIT
 *
 * Callbacks of the program that fail, in every way: whatever they return and record, the call that
 * runs them fails, tn_failed() is true, and the status is that of the last failure. Handlers that
 * change the graph that runs. */
#include "tests/graph/suite.h"

#include <stdatomic.h>

/* ---- ways to fail ---------------------------------------------------------------------------- */

enum way { SILENTLY, WITH_MESSAGE, OTHER_CODE, TAKEN, CLEARED, UNKNOWN, WAYS };
static const char *const ways[] = { "without a message",
                                    "with a message",
                                    "with a message of another code",
                                    "with a failure it took",
                                    "with a failure it cleared",
                                    "with an unknown status" };
static enum way way;
static atomic_int called; /* also from threads of the pool */

static tn_status fails(void)
{
    called++;
    switch (way) {
    case WITH_MESSAGE: return tn_fail(TN_ERR_VALUE, "the callback says why");
    case OTHER_CODE: tn_fail(TN_ERR_KEY, "the callback says why"); break;
    case TAKEN:
        tn_fail(TN_ERR_VALUE, "the callback says why");
        tn_error_take(NULL);
        break;
    case CLEARED:
        tn_fail(TN_ERR_VALUE, "the callback says why");
        tn_error_clear();
        break;
    case UNKNOWN: return (tn_status)4711;
    default: break;
    }
    return TN_ERR_VALUE;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static tn_module *net;
static tn_tensor *x;

static tn_status status_of(const void *result)
{
    return result != NULL ? TN_OK : tn_error_last_code();
}

static tn_status visit_tensor(void *user, const char *path, tn_tensor *tensor)
{
    (void)user, (void)path, (void)tensor;
    return fails();
}
static tn_status visit_module(void *user, const char *path, tn_module *module)
{
    (void)user, (void)path, (void)module;
    return fails();
}
static tn_status visit_any(void *user, const tn_visit *what)
{
    (void)user, (void)what;
    return fails();
}
static tn_status visit_after(void *user, tn_module *module)
{
    (void)user, (void)module;
    return fails();
}
static tn_status each_tensor(void)
{
    return tn_module_each_tensor(net, TN_SLOT_PARAMETER, false, visit_tensor, NULL);
}
static tn_status each(void)
{
    return tn_module_each(net, false, visit_module, NULL);
}
static tn_status walk(void)
{
    return tn_module_walk(net, TN_SLOT_CHILD, NULL, visit_any, NULL);
}
static tn_status apply(void)
{
    return tn_module_apply(net, visit_after, NULL);
}

static tn_status change(void *user, tn_tensor *tensor, tn_tensor **out)
{
    (void)user, (void)tensor, (void)out;
    return fails();
}
static tn_status convert(void)
{
    return tn_module_map(net, true, change, NULL);
}

static tn_status pre(void *user, tn_module *module, const tn_pack *input, tn_pack *replacement,
                     tn_hook_outcome *outcome)
{
    (void)user, (void)module, (void)input, (void)replacement, (void)outcome;
    return fails();
}
static tn_status post(void *user, tn_module *module, const tn_pack *input, const tn_pack *output,
                      tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user, (void)module, (void)input, (void)output, (void)replacement, (void)outcome;
    return fails();
}
static tn_status pre_hook(void)
{
    tn_hook_handle hook = tn_module_hook_forward_pre(net, pre, 0, NULL, NULL);
    tn_status status = status_of(tn_module_call(net, x));

    tn_hook_remove(hook);
    return status;
}
static tn_status forward_hook(void)
{
    tn_hook_handle hook = tn_module_hook_forward(net, post, 0, NULL, NULL);
    tn_status status = status_of(tn_module_call(net, x));

    tn_hook_remove(hook);
    return status;
}

static tn_tensor *forward_one(tn_module *self, tn_tensor *input)
{
    (void)self, (void)input;
    fails();
    return NULL;
}
static tn_status call_packs(tn_module *self, const tn_pack *input, tn_pack *output)
{
    (void)self, (void)input, (void)output;
    return fails();
}
static tn_status own_forward(void)
{
    tn_module *own = tn_module_plain("Own");
    tn_status status = tn_module_set_forward(own, forward_one, NULL, NULL);

    ck_ok(status);
    status = status_of(tn_module_call(own, x));
    tn_module_drop(own);
    return status;
}
static tn_status own_call(void)
{
    tn_module *own = tn_module_plain("Own");
    tn_status status = tn_module_set_call(own, call_packs, NULL, NULL);

    ck_ok(status);
    status = status_of(tn_module_call(own, x));
    tn_module_drop(own);
    return status;
}

static tn_tensor *get(void *user, tn_module *module, const char *name)
{
    (void)user, (void)module, (void)name;
    fails();
    return NULL;
}
static tn_status set(void *user, tn_module *module, const char *name, tn_tensor *tensor)
{
    (void)user, (void)module, (void)name, (void)tensor;
    return fails();
}
static tn_status copied(void *user, tn_module *copy, void **made)
{
    (void)user, (void)copy, (void)made;
    return fails();
}
static tn_module *computing(void)
{
    const tn_computed how = { .get = get, .set = set, .copy = copied };
    tn_module *own = tn_module_plain("Own");

    ck_ok(tn_module_add_computed(own, "c", &how, NULL));
    return own;
}
static tn_status computed_get(void)
{
    tn_module *own = computing();
    tn_status status = status_of(tn_module_get(own, "c"));

    tn_module_drop(own);
    return status;
}
static tn_status computed_set(void)
{
    tn_module *own = computing();
    tn_status status = tn_module_set(own, "c", x);

    tn_module_drop(own);
    return status;
}
static tn_status computed_copy(void)
{
    tn_module *own = computing(), *made = tn_module_copy(own);
    tn_status status = status_of(made);

    tn_module_drop(own);
    tn_module_drop(made);
    return status;
}

static tn_status before_state(void *user, tn_module *module, const char *prefix, uint32_t flags)
{
    (void)user, (void)module, (void)prefix, (void)flags;
    return fails();
}

static tn_graph *graph;
static tn_status handler(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                         tn_tensor **out, int64_t n_out)
{
    (void)user, (void)node, (void)in, (void)n_in, (void)out, (void)n_out;
    return fails();
}
static tn_status run_with(void)
{
    tn_tensor *out;
    tn_status status = tn_graph_run_with(graph, &x, 1, &out, 1, handler, NULL);

    ck_assert_ptr_null(out);
    return status;
}

static tn_status block(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                       int64_t n_out)
{
    (void)user, (void)in, (void)n_in, (void)out, (void)n_out;
    return fails();
}
static tn_status cond(void)
{
    tn_tensor *out;

    return tn_cond(tn_gt(tn_sum(x), tn_tensor_full(TN_SCALAR_SHAPE, 0, TN_F32, NULL)), block, block,
                   &x, 1, &out, 1, NULL);
}

static tn_status on_gradient(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)user, (void)gradient, (void)replacement;
    return fails();
}
static tn_status grad_hook(void)
{
    tn_tensor *leaf = tn_parameter(tn_clone(x), true);
    tn_tensor *y = tn_mul(leaf, leaf);
    tn_hook_handle hook = tn_tensor_hook(y, on_gradient, NULL, NULL);
    tn_status status = tn_backward(tn_sum(y));

    tn_hook_remove(hook);
    return status;
}

static tn_status recomputed(void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user, (void)in, (void)out;
    return fails();
}
static tn_status recompute(void)
{
    tn_tensor *out;

    return tn_recompute_call(recomputed, NULL, NULL, &x, 1, &out, 1, 0);
}
static tn_status gradcheck(void)
{
    tn_tensor *in = tn_parameter(tn_tensor_full(TN_SHAPE(2), 3, TN_F64, NULL), true);

    return tn_gradcheck(recomputed, NULL, &in, 1, 1, 1e-6, 1e-3);
}

static tn_tensor *closure(void *user)
{
    (void)user;
    fails();
    return NULL;
}
static tn_status closure_of_step(void)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1)");
    tn_status status = status_of(tn_optimizer_step_with(optimizer, closure, NULL));

    tn_optimizer_drop(optimizer);
    return status;
}
static tn_status step_hook(void *user, tn_optimizer *optimizer)
{
    (void)user, (void)optimizer;
    return fails();
}
static tn_status hook_of_step(void)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1)");
    tn_hook_handle hook = tn_optimizer_hook_step_pre(optimizer, step_hook, 0, NULL, NULL);
    tn_status status = tn_optimizer_step(optimizer);

    tn_hook_remove(hook);
    tn_optimizer_drop(optimizer);
    return status;
}
static tn_status statistics(void)
{
    return tn_module_update_statistics(net, closure, NULL, NULL);
}

static tn_status state_hook(void)
{
    tn_hook_handle hook = tn_module_hook_state_pre(net, before_state, NULL, NULL);
    tn_state *state = tn_module_state(net);
    tn_status status = status_of(state);

    tn_state_drop(state);
    tn_hook_remove(hook);
    return status;
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    (void)user, (void)begin, (void)end;
    return fails();
}
static tn_status parallel(void)
{
    return tn_parallel_for(8, 1, part, NULL);
}

static const struct {
    const char *name;
    tn_status (*call)(void);
} calls[] = {
    { "tn_module_each_tensor", each_tensor },
    { "tn_module_each", each },
    { "tn_module_walk", walk },
    { "tn_module_apply", apply },
    { "tn_module_map", convert },
    { "a hook before forward", pre_hook },
    { "a hook after forward", forward_hook },
    { "tn_module_set_forward", own_forward },
    { "tn_module_set_call", own_call },
    { "tn_computed.get", computed_get },
    { "tn_computed.set", computed_set },
    { "tn_computed.copy", computed_copy },
    { "a hook before tn_module_state", state_hook },
    { "tn_graph_run_with", run_with },
    { "tn_cond", cond },
    { "a hook on a gradient", grad_hook },
    { "tn_recompute_call", recompute },
    { "tn_gradcheck", gradcheck },
    { "tn_optimizer_step_with", closure_of_step },
    { "a hook before a step", hook_of_step },
    { "tn_module_update_statistics", statistics },
    { "tn_parallel_for", parallel },
};

static void begin(void)
{
    tn_node *a, *b;

    net = tn_module_new("Sequential(Linear(3, 3), BatchNorm1d(3))");
    x = numbers(-2);
    graph = tn_graph_new();
    a = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    b = tn_graph_add_op(graph, NULL, "relu()", &a, 1);
    b = tn_graph_add_op(graph, NULL, "neg()", &b, 1);
    ck_made(b);
    ck_ok(tn_graph_output(graph, &b, 1));
}

static void end(void)
{
    tn_graph_drop(graph);
    tn_module_drop(net);
}

START_TEST(a_callback_that_fails_in_any_way_makes_its_call_fail_with_a_record)
{
    TN_SCOPE;
    begin();
    for (int64_t i = 0; i < tn__countof(calls); i++)
        for (int w = 0; w < WAYS; w++) {
            way = (enum way)w;
            called = 0;
            tn_status status = calls[i].call();
            ck_assert_msg(called > 0, "%s: not called", calls[i].name);
            ck_assert_msg(status != TN_OK, "%s: succeeds though its callback fails %s",
                          calls[i].name, ways[w]);
            ck_assert_msg(tn_failed(), "%s: no record of a callback that fails %s", calls[i].name,
                          ways[w]);
            ck_assert_msg(tn_error_last_code() == status,
                          "%s: %s, but the record has %s (%s), of a callback that fails %s",
                          calls[i].name, tn_status_name(status),
                          tn_status_name(tn_error_last_code()), tn_error_last()->message, ways[w]);
            ck_assert_msg(tn_error_text()[0] != '\0', "%s: no text", calls[i].name);
            tn_error_clear();
        }
    end();
}
END_TEST

START_TEST(the_failure_of_a_callback_is_not_that_of_an_earlier_one)
{
    TN_SCOPE;
    begin();
    tn_fail(TN_ERR_VALUE, "long ago");
    tn_error_take(NULL);
    way = SILENTLY;
    ck_assert_int_eq(each_tensor(), TN_ERR_VALUE);
    ck_error(TN_ERR_VALUE, "tn_module_each_tensor: visit: failed with TN_ERR_VALUE",
             "recorded no message");
    end();
}
END_TEST

static tn_tensor *no_loss(void *user)
{
    (void)user;
    return NULL;
}

START_TEST(a_callback_that_returns_null_is_said_to)
{
    TN_SCOPE;
    tn_module *linear = tn_module_new("Linear(2, 2)");
    tn_optimizer *opt = tn_optimizer_new(linear, "SGD(lr=0.1)");
    ck_assert_ptr_null(tn_optimizer_step_with(opt, no_loss, NULL));
    ck_error(TN_ERR_RUNTIME, "the closure of tn_optimizer_step_with",
             "returned NULL and recorded no message");
    tn_optimizer_drop(opt);
    tn_module_drop(linear);
}
END_TEST

/* ---- handlers that change the graph ---------------------------------------------------------- */

enum edit { ERASE, ADD, INPUT, REPLACE, OUTPUT, PASS, EDITS };
static enum edit edit;

static tn_status edits(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                       tn_tensor **out, int64_t n_out)
{
    tn_node *first = tn_graph_first(graph), *relu = tn_node_next(first), *neg = tn_node_next(relu);
    tn_node *made;

    (void)user;
    if (called++ == 0)
        switch (edit) {
        case ERASE:
            tn_node_replace_uses(neg, relu);
            tn_node_erase(neg);
            break;
        case ADD:
            for (int i = 0; i < 100; i++) /* more nodes than the run has places for */
                tn_graph_add_op(graph, neg, "abs()", &relu, 1);
            break;
        case INPUT: tn_node_set_input(neg, 0, first); break;
        case REPLACE: tn_node_replace_uses(relu, first); break;
        case OUTPUT: tn_graph_output(graph, &relu, 1); break;
        case PASS:
            made = tn_graph_add_op(graph, relu, "abs()", &first, 1);
            tn_node_set_input(relu, 0, made);
            tn_graph_pass(graph, "decompose");
            break;
        default: break;
        }
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    return tn_node_is_erased(node) ? (out[0] = in[0], TN_OK)
                                   : tn_node_run(node, in, n_in, out, n_out);
}

START_TEST(a_handler_that_changes_the_graph_ends_the_run)
{
    for (int e = 0; e < EDITS; e++) {
        TN_SCOPE;
        tn_tensor *out;
        begin();
        edit = (enum edit)e;
        called = 0;
        ck_assert_msg(tn_graph_run_with(graph, &x, 1, &out, 1, edits, NULL) == TN_ERR_REFUSED,
                      "edit %d: %s", e, tn_error_text());
        ck_assert_int_eq(called, 1);
        ck_assert_ptr_null(out);
        ck_error(TN_ERR_REFUSED, "handler: it has changed the graph", "tn_graph_copy");
        ck_ok(tn_graph_lint(graph));
        ck_ok(tn_graph_run(graph, &x, 1, &out, 1)); /* the graph itself is whole */
        end();
    }
}
END_TEST

static tn_status drops(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                       tn_tensor **out, int64_t n_out)
{
    if (*(bool *)user)
        tn_graph_drop(graph);
    *(bool *)user = false;
    return tn_node_run(node, in, n_in, out, n_out);
}

START_TEST(a_handler_may_drop_the_graph)
{
    TN_SCOPE;
    bool yes = true;
    tn_tensor *out;
    begin();
    ck_ok(tn_graph_run_with(graph, &x, 1, &out, 1, drops, &yes));
    ck_same(out, tn_neg(tn_relu(x)));
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_callback_that_fails_in_any_way_makes_its_call_fail_with_a_record,
        the_failure_of_a_callback_is_not_that_of_an_earlier_one,
        a_callback_that_returns_null_is_said_to,
        a_handler_that_changes_the_graph_ends_the_run,
        a_handler_may_drop_the_graph,
        NULL
    };
    return suite_run("callbacks", tests);
}
