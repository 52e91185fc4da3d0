/* SPDX-License-Identifier: MIT
 *
 * Compilers of regions: the one of examples/graph_contributions.c against eager calls, and hostile
 * ones. */
#include "tests/graph/grown_op.h"

#include "tests/graph/exchange.h"

#include <pthread.h>

static const tn_device *cpu(void)
{
    return tn_device_find("cpu");
}

/* ---- compilers of this program --------------------------------------------------------------- */

typedef enum deed {
    TAKE,        /* claims the nodes in `wanted`, and computes relu(a + b) */
    SWALLOW,     /* ignores that a claim is refused */
    CLAIM_FAILS, /* fails with a message of its own */
    COMPILE_FAILS,
    RUN_FAILS,
    RUN_SILENT /* fails without a message */
} deed;

static deed what;
static int64_t wanted[4][4], counts[4]; /* sets to claim; a count of 0 ends them */
static int compiled, dropped, ran;
static int64_t seen_nodes, seen_in, seen_out, seen_constants;

static tn_status claim(const tn_compiler_def *self, const tn_region *graph, const tn_claims *claims)
{
    tn_status status = TN_OK;

    ck_assert_str_eq(self->name, "test");
    ck_assert_ptr_eq(graph->device, cpu());
    seen_nodes = graph->n_nodes;
    if (what == CLAIM_FAILS)
        return tn_fail(TN_ERR_UNAVAILABLE, "no licence");
    for (int i = 0; i < 4 && counts[i] != 0 && status == TN_OK; i++)
        status = claims->add(claims, counts[i] < 0 ? NULL : wanted[i],
                             counts[i] < 0 ? 2 : counts[i]);
    if (what == SWALLOW) {
        tn_error_clear();
        return TN_OK;
    }
    return status;
}

static tn_status compile(const tn_compiler_def *self, const tn_region *part, tn_program *out)
{
    (void)self;
    compiled++;
    if (what == COMPILE_FAILS && compiled == 2)
        return tn_fail(TN_ERR_UNAVAILABLE, "no code for %s", part->nodes[0].name);
    seen_in = part->n_in;
    seen_out = part->n_out;
    seen_constants = 0;
    for (int64_t v = 0; v < part->n_values; v++)
        seen_constants += part->values[v].constant != NULL;
    out->program = &compiled;
    out->workspace = 1000;
    return TN_OK;
}

static float *floats_of(const tn_view *view)
{
    return (float *)(void *)((char *)view->data + view->byte_offset);
}

/* relu(a + b) of six floats, whatever was claimed. */
static tn_status run(void *program, const tn_region_call *call)
{
    const float *a = floats_of(call->in[0]), *b = floats_of(call->in[call->n_in - 1]);
    float *y = floats_of(call->out[0]);

    ck_assert_ptr_eq(program, &compiled);
    ck_assert_str_eq(call->compiler->name, "test");
    ck_assert_int_eq(call->workspace->shape[0], 1000);
    ran++;
    if (what == RUN_FAILS)
        return tn_fail(TN_ERR_DEVICE, "broken");
    if (what == RUN_SILENT)
        return TN_ERR_DEVICE;
    for (int i = 0; i < 6; i++)
        y[i] = a[i] + b[i] < 0 ? 0 : a[i] + b[i];
    return TN_OK;
}

static void drop(void *program)
{
    ck_assert_ptr_eq(program, &compiled);
    dropped++;
}

static tn_compiler_def test = {
    TN_HEAD(tn_compiler_def), .name = "test",     .device = "cpu", .help = "for this test",
    .claim = claim,           .compile = compile, .run = run,      .drop = drop
};

static void want(int set, int64_t count, int64_t a, int64_t b)
{
    counts[set] = count;
    wanted[set][0] = a;
    wanted[set][1] = b;
}

/* Nodes 0 add, 1 exp of it, 2 relu of the sum, 3 mul of both; x and the constant c are summed. */
static tn_graph *diamond(tn_tensor *c)
{
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *sum = step(graph, "add()", x, tn_graph_constant(graph, "c", c));
    tn_node *up = step(graph, "exp()", sum, NULL), *out = step(graph, "relu()", sum, NULL);

    out = step(graph, "mul()", up, out);
    ck_ok(tn_graph_output(graph, &out, 1));
    return graph;
}

static tn_tensor *diamond_eager(tn_tensor *x, tn_tensor *c)
{
    tn_tensor *sum = tn_add(x, c);

    return tn_mul(tn_exp(sum), tn_relu(sum));
}

/* ---- the example ----------------------------------------------------------------------------- */

/* Two pairs of add and relu; the first pair has a transposed input. */
static tn_graph *two_pairs(tn_tensor *w)
{
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(3, 2), TN_F32);
    tn_node *slot = tn_graph_slot(graph, "w", w);
    tn_node *turned = step(graph, "transpose(dim0=0, dim1=1)", x, NULL);
    tn_node *a = step(graph, "relu()", step(graph, "add(alpha=-3)", turned, slot), NULL);
    tn_node *b = step(graph, "exp()", a, NULL);
    tn_node *c = step(graph, "relu()", step(graph, "add()", b, b), NULL);

    ck_ok(tn_graph_output(graph, (tn_node *[]){ a, c }, 2));
    return graph;
}

START_TEST(the_example_computes_what_eager_computes)
{
    use_example();
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = tn_reshape(numbers(-2), TN_SHAPE(3, 2)), *out[2], *eager[2];
    tn_graph *graph = two_pairs(w), *copy;
    ck_ok(tn_graph_run(graph, &x, 1, eager, 2));
    ck_ok(tn_graph_compile(graph, cpu(), NULL));
    ck_assert_str_eq(names_of(graph), "x w transpose pairs exp pairs_1 output");
    ck_assert_int_eq(tn_node_kind_of(tn_graph_find(graph, "pairs")), TN_NODE_REGION);
    ck_assert_str_eq(tn_node_compiler(tn_graph_find(graph, "pairs")), "pairs");
    ck_assert_int_eq(tn_node_input_count(tn_graph_find(graph, "pairs_1")), 1);
    ck_ok(tn_graph_lint(graph));
    copy = tn_graph_copy(graph);
    ck_ok(tn_graph_run(graph, &x, 1, out, 2));
    ck_same(out[0], eager[0]);
    ck_same(out[1], eager[1]);
    tn_graph_drop(graph);
    ck_ok(tn_graph_run(copy, &x, 1, out, 2)); /* the copy shares the compiled programs */
    ck_same(out[1], eager[1]);
    tn_tensor *wide = tn_tensor_full(TN_SHAPE(3, 5), 1, TN_F32, NULL);
    ck_assert_int_eq(tn_graph_run(copy, &wide, 1, out, 2), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "got float32[3, 5] on cpu:0; expected float32[3, 2], which pairs");
    ck_ok(tn_graph_compile(copy, cpu(), "pairs")); /* nothing is left to claim */
    ck_assert_str_eq(names_of(copy), "x w transpose pairs exp pairs_1 output");
    tn_graph_drop(copy);
}
END_TEST

START_TEST(gradients_through_a_region_are_those_of_its_operators)
{
    use_example();
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = tn_reshape(numbers(-2), TN_SHAPE(3, 2)), *out[2], *plain,
              *first;
    tn_graph *graph = two_pairs(w);
    const tn_backward_options again = { .size = sizeof again, .create_graph = 1 };
    ck_ok(tn_tensor_set_requires_grad(w, true));
    ck_ok(tn_graph_run(graph, &x, 1, out, 2));
    ck_ok(tn_backward(tn_sum(tn_mul(out[0], out[1]))));
    plain = tn_tensor_grad(w);
    tn_keep(plain);
    ck_ok(tn_tensor_set_grad(w, TN_NONE));
    ck_ok(tn_graph_compile(graph, cpu(), "pairs"));
    ck_ok(tn_graph_run(graph, &x, 1, out, 2));
    ck_assert(tn_tensor_requires_grad(out[1]));
    ck_ok(tn_backward(tn_sum(tn_mul(out[0], out[1]))));
    ck_same(tn_tensor_grad(w), plain);
    tn_tensor_drop(plain);
    ck_ok(tn_graph_run(graph, &x, 1, out, 2));
    tn_tensor *loss = tn_sum(out[1]);
    ck_assert_int_eq(tn_grad(&loss, NULL, 1, &w, &first, 1, &again), TN_ERR_NOT_IMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "compiler pairs: gradients of gradients"));
    tn_error_clear();
    tn_graph_drop(graph);
}
END_TEST

/* ---- claims ---------------------------------------------------------------------------------- */

START_TEST(what_is_claimed_is_replaced)
{
    TN_SCOPE;
    tn_graph *graph = diamond(numbers(-3));
    ck_ok(tn_register(&test));
    want(0, 2, 2, 0); /* relu before add: the core puts them in order */
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    ck_assert_int_eq(seen_nodes, 4);
    ck_assert_int_eq(compiled, 1);
    ck_assert_int_eq(seen_in, 2);
    ck_assert_int_eq(seen_out, 2); /* exp uses the sum, too */
    ck_assert_int_eq(seen_constants, 1);
    ck_assert_str_eq(names_of(graph), "x c test test_item test_item_1 exp mul output");
    tn_graph_drop(graph);
    ck_assert_int_eq(dropped, 1);
}
END_TEST

START_TEST(nodes_between_move_behind_a_region_that_they_depend_on)
{
    TN_SCOPE;
    tn_tensor *c = numbers(-3), *x = numbers(1), *out[3];
    tn_graph *graph = tn_graph_new();
    tn_node *in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *sum = step(graph, "add()", in, tn_graph_constant(graph, "c", c));
    tn_node *sort = step(graph, "sort()", sum, NULL), *neg = step(graph, "neg()", in, NULL);
    tn_node *relu = step(graph, "relu()", sum, NULL);
    ck_ok(tn_register(&test));
    ck_ok(tn_graph_output(graph, (tn_node *[]){ relu, tn_node_item(sort, 0), neg }, 3));
    want(0, 2, 0, 3);
    /* `run` writes only the first output; the sum is another one, for sort */
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    ck_assert_str_eq(names_of(graph), "x c neg test test_item test_item_1 sort sort_values "
                                      "sort_indices output");
    ck_ok(tn_graph_lint(graph));
    ck_ok(tn_graph_run(graph, &x, 1, out, 3));
    ck_assert_int_eq(ran, 1);
    ck_same(out[2], tn_neg(x));
    tn_graph_drop(graph);
}
END_TEST

START_TEST(wrong_claims_fail_with_the_name_of_the_compiler)
{
    static const struct {
        int64_t count[2], a[2], b[2];
        tn_status code;
        const char *words;
    } rows[] = {
        { { 1 }, { 4 }, { 0 }, TN_ERR_INDEX, "claim: node: out of range, got 4; expected 0 to 3" },
        { { 1 }, { -1 }, { 0 }, TN_ERR_INDEX, "claim: node: out of range, got -1" },
        { { 2 },
          { 0 },
          { 0 },
          TN_ERR_VALUE,
          "claim: node 0 (add): already claimed; expected each node once" },
        { { 1, 1 },
          { 0, 0 },
          { 0 },
          TN_ERR_VALUE,
          "claim: node 0 (add): already claimed; expected each node once" },
        { { 2 },
          { 0 },
          { 3 },
          TN_ERR_VALUE,
          "claim: not convex: node exp, which was not claimed, "
          "depends on a claimed node, and claimed node mul uses it" },
        { { -1 }, { 0 }, { 0 }, TN_ERR_VALUE, "claim: nodes: it is NULL; expected 2" },
    };
    TN_SCOPE;
    tn_tensor *c = numbers(-3), *x = numbers(1);
    tn_graph *graph = diamond(c);
    tn_node *sum = tn_graph_find(graph, "add");
    ck_ok(tn_register(&test));
    for (int swallow = 0; swallow < 2; swallow++)
        for (int i = 0; i < 6; i++) {
            char words[200];
            what = swallow ? SWALLOW : TAKE;
            for (int k = 0; k < 2; k++)
                want(k, rows[i].count[k], rows[i].a[k], rows[i].b[k]);
            ck_assert_int_eq(tn_graph_compile(graph, cpu(), "test"), rows[i].code);
            snprintf(words, sizeof words, "compiler test: %s", rows[i].words);
            ck_assert_msg(strncmp(tn_error_text(), words, strlen(words)) == 0, "%s",
                          tn_error_text());
            tn_error_clear();
            ck_assert(!tn_node_is_erased(sum));
            ck_assert_str_eq(names_of(graph), "x c add exp relu mul output");
        }
    ck_assert_int_eq(compiled, 0);
    ck_same(run1(graph, x), diamond_eager(x, c));
    tn_graph_drop(graph);
}
END_TEST

START_TEST(random_draws_and_writes_are_not_offered)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *a = step(graph, "exp()", x, NULL), *drop = step(graph, "dropout(p=0.5)", x, NULL);
    tn_node *b = step(graph, "relu()", a, NULL);
    ck_ok(tn_register(&test));
    ck_ok(tn_graph_output(graph, (tn_node *[]){ b, drop }, 2));
    want(0, 2, 0, 1);
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    ck_assert_int_eq(seen_nodes, 2);
    ck_assert_str_eq(names_of(graph), "x dropout test output");
    tn_node *slot = tn_graph_slot(graph, "p", numbers(0));
    x = tn_graph_find(graph, "x");
    ck_made(
        tn_graph_add_op(graph, NULL, "sgd_step(lr=1)", (tn_node *[]){ TN_NODE_NONE, slot, x }, 3));
    seen_nodes = 0;
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    ck_assert_int_eq(seen_nodes, 0);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(calls_that_keep_their_order_are_not_offered)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32), *a, *b, *exchange;

    register_exchange();
    a = step(graph, "exp()", x, NULL);
    exchange = step(graph, "test_exchange()", x, NULL);
    b = step(graph, "relu()", a, NULL);
    ck_ok(tn_register(&test));
    ck_ok(tn_graph_output(graph, (tn_node *[]){ b, exchange }, 2));
    want(0, 2, 0, 1);
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    ck_assert_int_eq(seen_nodes, 2);
    ck_assert_str_eq(names_of(graph), "x test_exchange test output");
    tn_graph_drop(graph);
}
END_TEST

/* Draws that depend on a region run after it. So do later draws, even if they do not depend on it,
 * because draws keep their order. */
START_TEST(draws_keep_their_order_around_a_region)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *a = step(graph, "exp()", x, NULL), *before = step(graph, "dropout(p=0.1)", x, NULL);
    tn_node *after = step(graph, "dropout(p=0.2)", a, NULL);
    tn_node *later = step(graph, "dropout(p=0.3)", x, NULL), *b = step(graph, "relu()", a, NULL);
    tn_node *c = step(graph, "mul()", a, later);

    ck_ok(tn_register(&test));
    ck_ok(tn_graph_output(graph, (tn_node *[]){ c, before, after, b }, 4));
    want(0, 2, 0, 2);
    ck_assert_int_eq(tn_graph_compile(graph, cpu(), "test"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE,
                   "claim: not convex: node dropout_2, which was not claimed, depends "
                   "on a claimed node or draws random numbers after one that does, "
                   "and claimed node mul uses it");
    want(0, 2, 0, 1);
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    ck_assert_str_eq(names_of(graph),
                     "x dropout test test_item test_item_1 dropout_1 dropout_2 mul output");
    tn_graph_drop(graph);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

START_TEST(a_compiler_that_fails_leaves_the_graph)
{
    TN_SCOPE;
    tn_tensor *c = numbers(-3), *x = numbers(1);
    tn_graph *graph = diamond(c);
    ck_ok(tn_register(&test));
    what = CLAIM_FAILS;
    ck_assert_int_eq(tn_graph_compile(graph, cpu(), "test"), TN_ERR_UNAVAILABLE);
    expect_failure(TN_ERR_UNAVAILABLE, "compiler test: no licence");
    what = COMPILE_FAILS;
    want(0, 1, 0, 0);
    want(1, 1, 1, 0);
    ck_assert_int_eq(tn_graph_compile(graph, cpu(), "test"), TN_ERR_UNAVAILABLE);
    expect_failure(TN_ERR_UNAVAILABLE, "compiler test: no code for exp");
    ck_assert_int_eq(compiled, 2);
    ck_assert_int_eq(dropped, 1); /* the first; the second one has no program */
    ck_assert_str_eq(names_of(graph), "x c add exp relu mul output");
    ck_same(run1(graph, x), diamond_eager(x, c));
    ck_assert_int_eq(tn_graph_compile(graph, cpu(), "tests"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "no plugin provides a compiler \"tests\"; did you mean \"test\"?");
    ck_assert_int_eq(tn_graph_compile(graph, cpu(), " , "), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_graph_compile(graph, tn_device_find("meta"), "test"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "compiler test: wrong device, got meta:0; it compiles for cpu");
    tn_graph_drop(graph);
}
END_TEST

START_TEST(a_run_that_fails_gives_nothing)
{
    TN_SCOPE;
    tn_tensor *c = numbers(-3), *x = numbers(1);
    tn_graph *graph = diamond(c);
    ck_ok(tn_register(&test));
    want(0, 2, 0, 2);
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    what = RUN_FAILS;
    ck_assert_ptr_null(run1(graph, x));
    expect_failure(TN_ERR_DEVICE, "node test: broken");
    what = RUN_SILENT;
    ck_assert_ptr_null(run1(graph, x));
    expect_failure(TN_ERR_DEVICE, "node test: test");
    what = TAKE;
    ck_made(run1(graph, x));
    ck_ok(tn_tensor_set_requires_grad(x, true));
    ck_assert_ptr_null(run1(graph, x));
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "node test: compiler test has no gradient "
                                           "(TN_COMPILER_TRAINS), and one would be recorded");
    ck_ok(tn_inference_begin(true));
    ck_made(run1(graph, x));
    tn_inference_end();
    ck_ok(tn_tensor_copy_in(c, (float[6]){ 0 }, 24));
    ck_assert_ptr_null(run1(graph, tn_detach(x)));
    expect_failure(TN_ERR_RUNTIME, "c: the tensor has changed since");
    tn_graph_drop(graph);
}
END_TEST

static void *run_often(void *graph)
{
    for (int i = 0; i < 100; i++) {
        TN_SCOPE;
        char a[256], b[256];
        tn_tensor *x = tn_reshape(numbers((float)i - 50), TN_SHAPE(3, 2)), *out[2], *w;
        w = tn_node_tensor(tn_graph_find(graph, "w"));
        if (tn_graph_run(graph, &x, 1, out, 2) != TN_OK)
            return graph;
        tn_tensor_text(out[0], a, sizeof a);
        tn_tensor_text(tn_relu(tn_add(tn_transpose(x, 0, 1), w, -3)), b, sizeof b);
        if (strcmp(a, b) != 0)
            return graph;
    }
    return NULL;
}

START_TEST(many_threads_run_one_program)
{
    use_example();
    TN_SCOPE;
    tn_graph *graph = two_pairs(numbers(-4));
    pthread_t threads[4];
    ck_ok(tn_graph_compile(graph, cpu(), NULL));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_often, graph), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    tn_graph_drop(graph);
}
END_TEST

static tn_status compile_and_run(tn_graph *graph, tn_tensor *x, tn_tensor *w)
{
    TN_SCOPE;
    tn_tensor *out[2] = { NULL, NULL };
    tn_status status = tn_graph_compile(graph, cpu(), "pairs");

    if (status == TN_OK)
        status = tn_graph_run(graph, &x, 1, out, 2);
    if (status == TN_OK)
        status = tn_backward(tn_sum(out[1]));
    tn_tensor_set_grad(w, TN_NONE);
    return status;
}

START_TEST(memory_that_fails_anywhere_is_an_error)
{
    use_example();
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = tn_reshape(numbers(-2), TN_SHAPE(3, 2));
    ck_ok(tn_tensor_set_requires_grad(w, true));
    tn_graph *graph = two_pairs(w);
    ck_ok(compile_and_run(graph, x, w));
    tn_graph_drop(graph);
    for (uint64_t n = 1;; n++) {
        graph = two_pairs(w);
        tn__memory_fail(n);
        tn_status status = compile_and_run(graph, x, w);
        uint64_t made = tn__memory_fail(0);
        ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        tn_error_clear();
        ck_ok(tn_graph_lint(graph));
        tn_graph_drop(graph);
        if (made < n)
            break;
    }
}
END_TEST

/* Of a call that uses what version 9 has added, a compiler of version 1 is told nothing. */
START_TEST(a_compiler_is_offered_the_calls_that_it_knows)
{
    TN_SCOPE;
    tn_graph *graph = grown_graph();

    ck_ok(tn_register(&test));
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    ck_assert_int_eq(seen_nodes, 2);
    ck_ok(tn_unregister(TN_KIND_tn_compiler_def, "test"));
    test.head.target = 9;
    ck_ok(tn_register(&test));
    ck_ok(tn_graph_compile(graph, cpu(), "test"));
    ck_assert_int_eq(seen_nodes, 3);
    tn_graph_drop(graph);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { the_example_computes_what_eager_computes,
                                   a_compiler_is_offered_the_calls_that_it_knows,
                                   gradients_through_a_region_are_those_of_its_operators,
                                   what_is_claimed_is_replaced,
                                   nodes_between_move_behind_a_region_that_they_depend_on,
                                   wrong_claims_fail_with_the_name_of_the_compiler,
                                   random_draws_and_writes_are_not_offered,
                                   calls_that_keep_their_order_are_not_offered,
                                   draws_keep_their_order_around_a_region,
                                   a_compiler_that_fails_leaves_the_graph,
                                   a_run_that_fails_gives_nothing,
                                   many_threads_run_one_program,
                                   memory_that_fails_anywhere_is_an_error,
                                   NULL };
    return suite_run("compilers", tests);
}
