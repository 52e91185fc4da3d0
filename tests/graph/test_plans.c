/* SPDX-License-Identifier: MIT
 *
 * Plans: results with the bits of eager calls, tensors that use the same memory at different times,
 * bindings for other inputs, tensors that change, errors. */
#include <tenon/equality.h>

#include "tests/graph/plan_module.h"
#include "tests/spec/proves.h"

/* Returns the message with which a plan of the graph is refused. */
static const char *why_not(const tn_graph *graph)
{
    tn_plan *plan = tn_plan_new(graph, NULL);

    ck_assert_ptr_null(plan);
    return tn_error_last()->message;
}

/* ---- results --------------------------------------------------------------------------------- */

START_TEST(a_plan_computes_the_bits_of_the_module)
{
    TN_SCOPE;
    struct planned p = make(convolutional(), images(), NULL);
    tn_tensor *a = numbered(TN_SHAPE(2, 3, 8, 8), 0), *b = numbered(TN_SHAPE(2, 3, 8, 8), 5);
    tn_tensor *first, *second;

    ck_ok(tn_grad_begin(false));
    first = plan1(p.plan, a);
    second = plan1(p.plan, b);
    ck_same(second, eager(p.net, b));
    ck_same(first, eager(p.net, a)); /* the second run has not written into the first result */
    tn_grad_end();
    ck_assert_int_eq(stats_of(p.plan).bindings, 1);
    drop(&p);
}
END_TEST

START_TEST(results_may_be_inputs_slots_views_and_each_other)
{
    TN_SCOPE;
    tn_tensor *w = numbers(3), *x = numbers(-2), *out[6], *sum;
    tn_graph *graph = tn_graph_new();
    tn_node *in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *slot = tn_graph_slot(graph, "w", w);
    tn_node *add = step(graph, "add()", in, slot);
    tn_node *turned = step(graph, "transpose(dim0=0, dim1=1)", add, NULL);
    tn_node *row = step(graph, "narrow(dim=0, start=1, length=1)", in, NULL);
    tn_node *const values[] = { in, slot, add, add, turned, row };
    tn_plan *plan;

    ck_ok(tn_graph_output(graph, values, 6));
    plan = tn_plan_new(graph, NULL);
    ck_made(plan);
    ck_ok(tn_plan_run(plan, &x, 1, out, 6));
    sum = tn_add(x, w);
    ck_assert_ptr_eq(out[0], x);
    ck_assert_ptr_eq(out[1], w);
    ck_same(out[2], sum);
    ck_assert_ptr_eq(out[3], out[2]);
    ck_same(out[4], tn_transpose(sum, 0, 1));
    ck_same(out[5], tn_narrow(x, 0, 1, 1));
    ck_assert(out[4]->storage == out[2]->storage);
    ck_assert(out[5]->storage == x->storage);
    ck_ok(tn_plan_run(plan, &w, 1, out, 6)); /* the input is the slot's tensor, too */
    ck_same(out[2], tn_add(w, w));
    tn_plan_drop(plan);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(a_graph_without_tensors_runs_on_the_default_device)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *none = TN_NODE_NONE, *full, *out;
    tn_tensor *y;
    tn_plan *plan;

    full = tn_graph_add_op(graph, NULL, "full(shape=[2, 3], value=0.5, dtype=float32)", &none, 1);
    out = step(graph, "exp()", full, NULL);
    ck_ok(tn_graph_output(graph, &out, 1));
    ck_assert_ptr_null(tn_device_find("nowhere")); /* a failure before does not matter */
    plan = tn_plan_new(graph, NULL);
    ck_made(plan);
    tn_error_clear();
    for (int i = 0; i < 2; i++) {
        ck_ok(tn_plan_run(plan, NULL, 0, &y, 1));
        ck_same(y, tn_exp(tn_tensor_full(TN_SHAPE(2, 3), 0.5, TN_F32, NULL)));
        ck_assert_ptr_eq(tn_tensor_device(y), tn_default_device());
    }
    tn_plan_drop(plan);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(an_input_with_other_strides_gives_the_same_numbers)
{
    TN_SCOPE;
    struct planned p = make(convolutional(), images(), NULL);
    tn_tensor *x = numbered(TN_SHAPE(2, 3, 8, 8), 1), *wide, *view;

    ck_ok(tn_grad_begin(false));
    wide = tn_tensor_full(TN_SHAPE(2, 3, 8, 16), 0, TN_F32, NULL);
    view = tn_narrow(wide, 3, 4, 8);
    ck_made(tn_copy_(view, x));
    ck_same(plan1(p.plan, view), eager(p.net, view));
    ck_same(plan1(p.plan, x), eager(p.net, x));
    tn_grad_end();
    ck_assert_int_eq(stats_of(p.plan).bindings, 2);
    drop(&p);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(the_slab_is_near_its_lower_bound_and_nothing_overlaps)
{
    static const struct {
        const char *spec;
        int64_t shape[4], ndim;
    } cases[] = {
        { "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Conv2d(8, 16, 3), ReLU(), "
          "MaxPool2d(2), Flatten(), Linear(64, 10), Softmax(dim=1))",
          { 2, 3, 8, 8 },
          4 },
        { "TransformerEncoderLayer(16, 4, 32, batch_first=True)", { 2, 5, 16 }, 3 },
        { "Sequential(Linear(64, 256), GELU(), Linear(256, 64), LayerNorm(64), Linear(64, 8))",
          { 9, 64 },
          2 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TN_SCOPE;
        tn_tensor *x = numbered((tn_ints){ cases[i].shape, cases[i].ndim }, 2);
        struct planned p;
        tn_plan_stats stats;

        tn_random_seed(4);
        p = make(tn_module_new(cases[i].spec), x, NULL);
        stats = stats_of(p.plan);
        ck_assert_int_gt(stats.bytes_least, 0);
        ck_assert_int_ge(stats.bytes, stats.bytes_least);
        ck_assert_int_le(10 * stats.bytes, 11 * stats.bytes_least);
        ck_assert_int_gt(stats.bytes_apart, stats.bytes);
        ck_ok(tn__plan_verify(p.plan->bindings));
        ck_ok(tn_grad_begin(false));
        ck_same(plan1(p.plan, x), eager(p.net, x));
        tn_grad_end();
        drop(&p);
    }
}
END_TEST

START_TEST(the_verifier_sees_what_overlaps)
{
    TN_SCOPE;
    struct planned p = make(convolutional(), images(), NULL);
    tn__plan_binding *b = p.plan->bindings;
    int moved = 0;

    for (int64_t i = 0; i < b->n_roots; i++) {
        tn__plan_root *root = &b->roots[i];
        uint64_t offset = root->offset;

        if (root->same != i || root->place != TN__PLAN_SLAB || root->first > root->last)
            continue;
        root->offset = b->bytes;
        ck_assert_int_eq(tn__plan_verify(b), TN_ERR_ASSERT);
        expect_failure(TN_ERR_ASSERT, "outside of the slab");
        root->offset = offset;
        moved++;
    }
    ck_assert_int_gt(moved, 1);
    for (int64_t i = 0; i < b->n_roots; i++) {
        b->roots[i].offset = 0;
        b->roots[i].first = 0;
        b->roots[i].last = 1;
    }
    ck_assert_int_eq(tn__plan_verify(b), TN_ERR_ASSERT);
    expect_failure(TN_ERR_ASSERT, "overlap");
    drop(&p);
}
END_TEST

START_TEST(a_result_takes_over_memory_that_nobody_needs)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w);
    tn_plan *plan = tn_plan_new(graph, NULL);
    char text[1024];

    ck_made(plan);
    ck_assert_int_gt(tn_plan_print(plan, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "relu: "));
    ck_assert_ptr_nonnull(strstr(text, "float32[2, 3] in result, in place\n"));
    ck_assert_int_eq(stats_of(plan).bytes, 0); /* add, relu and mul: in the memory of the result */
    ck_assert_int_eq(stats_of(plan).steps, 3);
    ck_same(plan1(plan, x), small_eager(x, w));
    ck_same(plan1(plan, w), small_eager(w, w));
    tn_plan_drop(plan);
    tn_graph_drop(graph);
}
END_TEST

/* ---- bindings -------------------------------------------------------------------------------- */

START_TEST(other_sizes_get_bindings_of_which_a_few_are_kept)
{
    TN_SCOPE;
    struct planned p = make(convolutional(), images(), "[N, 3, 8, 8]");

    ck_ok(tn_grad_begin(false));
    for (int times = 0; times < 2; times++)
        for (int64_t n = 1; n < 6; n++) {
            tn_tensor *x = numbered(TN_SHAPE(n, 3, 8, 8), (int)n);

            ck_same(plan1(p.plan, x), eager(p.net, x));
            ck_assert_int_le(stats_of(p.plan).bindings, 2);
        }
    ck_assert_int_eq(stats_of(p.plan).bindings, 2);
    ck_assert_ptr_null(plan1(p.plan, numbered(TN_SHAPE(2, 3, 9, 9), 0)));
    ck_error(TN_ERR_VALUE, "tn_plan_run: ", "");
    tn_grad_end();
    drop(&p);
}
END_TEST

START_TEST(a_run_sees_what_slots_have_now)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2), *other = numbers(7), *turned;
    tn_graph *graph = small(w);
    tn_plan *plan = tn_plan_new(graph, NULL);

    ck_made(plan);
    ck_same(plan1(plan, x), small_eager(x, w));
    ck_made(tn_add_(w, x));
    ck_same(plan1(plan, x), small_eager(x, w));
    ck_ok(tn_tensor_swap(w, other)); /* other memory */
    ck_same(plan1(plan, x), small_eager(x, w));
    turned = tn_transpose(tn_reshape(numbers(9), TN_SHAPE(3, 2)), 0, 1);
    ck_ok(tn_tensor_swap(w, turned)); /* other strides */
    ck_same(plan1(plan, x), small_eager(x, w));
    ck_assert_int_eq(stats_of(plan).bindings, 1);
    tn_plan_drop(plan);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(a_plan_keeps_the_graph_that_it_was_made_of)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w);
    tn_plan *plan = tn_plan_new(graph, NULL), *later;
    tn_node *relu = tn_graph_find(graph, "relu"), *in = tn_node_input(relu, 0);
    tn_node *silu = tn_graph_add_op(graph, relu, "silu()", &in, 1);

    ck_assert_int_gt(tn_node_replace_uses(relu, silu), 0);
    ck_ok(tn_node_erase(relu));
    later = tn_plan_new(graph, NULL);
    ck_made(later);
    tn_graph_drop(graph);
    ck_same(plan1(plan, x), small_eager(x, w));
    ck_same(plan1(later, x), tn_mul(tn_silu(tn_add(x, tn_add(w, w))), x));
    tn_plan_drop(plan);
    tn_plan_drop(later);
}
END_TEST

START_TEST(passes_run_first_and_their_guards_hold)
{
    TN_SCOPE;
    struct planned p = make(convolutional(), images(), NULL);
    tn_plan *fused = plan_of(p.graph, 1, "conv_bn, dead");
    tn_tensor *x = numbered(TN_SHAPE(2, 3, 8, 8), 3), *weight;

    ck_made(fused);
    ck_assert_int_lt(stats_of(fused).steps, stats_of(p.plan).steps);
    ck_ok(tn_grad_begin(false));
    ck_assert_int_eq(tn_allclose(plan1(fused, x), eager(p.net, x), 2e-5, 2e-5), 1);
    weight = tn_module_find_tensor(p.net, "0.weight");
    ck_made(tn_add_(weight, weight));
    ck_same(plan1(p.plan, x), eager(p.net, x));
    ck_assert_ptr_null(plan1(fused, x));
    ck_error(TN_ERR_RUNTIME, "a slot whose values pass conv_bn has used", "has changed");
    tn_grad_end();
    tn_plan_drop(fused);
    ck_assert_ptr_null(plan_of(p.graph, 1, "nothing"));
    ck_error(TN_ERR_KEY, "tn_plan_new: ", "nothing");
    drop(&p);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(what_only_a_run_can_tell_is_refused_with_the_node)
{
    TN_SCOPE;
    tn_module *dropout = tn_module_new("Sequential(Sequential(Dropout(0.5)))"),
              *norm = tn_module_new("BatchNorm1d(3)");
    tn_tensor *x = numbers(1);
    tn_graph *graph = traced(dropout, x, TN_TRACE_THROUGH), *writes;
    tn_node *in, *node;

    why_not(graph);
    ck_error(TN_ERR_NOT_IMPLEMENTED,
             "tn_plan_new: node dropout (0.0): ", "a plan would repeat the same");
    tn_graph_drop(graph);
    writes = traced(norm, x, TN_TRACE_THROUGH);
    why_not(writes);
    ck_error(TN_ERR_NOT_IMPLEMENTED, "tn_plan_new: node add_scalar_: ", "it writes into a slot");
    tn_graph_drop(writes);
    graph = tn_graph_new();
    in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    node = step(graph, "nonzero()", in, NULL);
    ck_ok(tn_graph_output(graph, &node, 1));
    why_not(graph);
    ck_error(TN_ERR_NOT_IMPLEMENTED, "tn_plan_new: node nonzero: ", "depends on values");
    tn_graph_drop(graph);
    graph = tn_graph_new();
    in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    node = tn_graph_add_inplace(graph, NULL, "relu()", in, &in, 1);
    ck_made(node);
    ck_ok(tn_graph_output(graph, &node, 1));
    why_not(graph);
    ck_error(TN_ERR_NOT_IMPLEMENTED, "tn_plan_new: node relu_: ", "into an input of the graph");
    tn_graph_drop(graph);
    tn_module_drop(dropout);
    tn_module_drop(norm);
}
END_TEST

static tn_status hook(void *user, tn_module *module, const tn_pack *gin, const tn_pack *gout,
                      tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user, (void)module, (void)gin, (void)gout, (void)replacement, (void)outcome;
    return TN_OK;
}

START_TEST(calls_of_modules_are_what_they_call_and_hooks_are_refused)
{
    TN_SCOPE;
    tn_module *net = own(mixed_forward);
    tn_tensor *x = numbered(TN_SHAPE(2, 3), 1);
    tn_graph *graph, *hooked;
    tn_plan *plan;

    ck_ok(tn_module_eval(net));
    graph = traced(net, x, TN_TRACE_LEAVES);
    ck_assert_ptr_nonnull(strstr(names_of(graph), "fc"));
    plan = tn_plan_new(graph, NULL);
    ck_made(plan);
    ck_ok(tn_grad_begin(false));
    ck_same(plan1(plan, x), eager(net, x));
    tn_grad_end();
    tn_plan_drop(plan);
    tn_graph_drop(graph);
    tn_module_hook_backward(tn_module_find(net, "fc"), hook, 0, NULL, NULL);
    hooked = traced(net, x, TN_TRACE_LEAVES);
    why_not(hooked);
    ck_error(TN_ERR_NOT_IMPLEMENTED, "tn_plan_new: node fc: ", "it has hooks");
    tn_graph_drop(hooked);
    tn_module_drop(net);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2), *two[] = { x, x }, *out[2] = { x, x };
    tn_graph *graph = small(w), *empty = tn_graph_new();
    tn_plan *plan = tn_plan_new(graph, NULL);
    tn_plan_options how = TN_PLAN_OPTIONS;

    ck_assert_int_ne(tn_plan_run(plan, two, 2, out, 1), TN_OK);
    ck_error(TN_ERR_VALUE, "tn_plan_run: in: wrong count, got 2", "the graph has 1");
    ck_assert_ptr_null(out[0]);
    ck_assert_int_ne(tn_plan_run(plan, &x, 1, out, 2), TN_OK);
    ck_error(TN_ERR_VALUE, "tn_plan_run: out: wrong count, got 2", "the graph has 1");
    two[0] = TN_NONE;
    ck_assert_int_ne(tn_plan_run(plan, two, 1, out, 1), TN_OK);
    ck_error(TN_ERR_TYPE, "tn_plan_run: in", "TN_NONE");
    ck_assert_ptr_null(plan1(plan, tn_tensor_full(TN_SHAPE(4, 5), 1, TN_F32, NULL)));
    ck_error(TN_ERR_RUNTIME, "tn_plan_run: node add: add: ", "[4, 5]");
    ck_assert_ptr_null(tn_plan_new(empty, NULL));
    ck_error(TN_ERR_VALUE, "tn_plan_new: no outputs", "");
    how.size = 4;
    ck_assert_ptr_null(tn_plan_new(graph, &how));
    ck_error(TN_ERR_VALUE, "options.size: too small, got 4", "TN_PLAN_OPTIONS");
    ck_same(plan1(plan, x), small_eager(x, w));
    tn_plan_drop(plan);
    tn_graph_drop(graph);
    tn_graph_drop(empty);
}
END_TEST

START_TEST(a_run_that_would_record_gradients_is_refused)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w);
    tn_plan *plan = tn_plan_new(graph, NULL);

    ck_ok(tn_tensor_set_requires_grad(w, true));
    ck_assert_ptr_null(plan1(plan, x));
    ck_error(TN_ERR_RUNTIME, "tn_plan_run: ", " requires grad, and a plan records no gradient");
    ck_ok(tn_inference_begin(true));
    ck_same(plan1(plan, x), small_eager(x, w));
    tn_inference_end();
    ck_ok(tn_tensor_set_requires_grad(w, false));
    ck_same(plan1(plan, x), small_eager(x, w));
    tn_plan_drop(plan);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(a_changed_constant_is_refused)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = tn_graph_new();
    tn_node *in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *sum = step(graph, "add()", in, tn_graph_constant(graph, "c", w));
    tn_plan *plan;

    ck_ok(tn_graph_output(graph, &sum, 1));
    plan = tn_plan_new(graph, NULL);
    ck_same(plan1(plan, x), tn_add(x, w));
    ck_made(tn_add_(w, x));
    ck_assert_ptr_null(plan1(plan, x));
    ck_error(TN_ERR_RUNTIME, "c: the tensor has changed", "a constant must not change");
    tn_plan_drop(plan);
    tn_graph_drop(graph);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_plan_computes_the_bits_of_the_module,
                                   results_may_be_inputs_slots_views_and_each_other,
                                   a_graph_without_tensors_runs_on_the_default_device,
                                   an_input_with_other_strides_gives_the_same_numbers,
                                   the_slab_is_near_its_lower_bound_and_nothing_overlaps,
                                   the_verifier_sees_what_overlaps,
                                   a_result_takes_over_memory_that_nobody_needs,
                                   other_sizes_get_bindings_of_which_a_few_are_kept,
                                   a_run_sees_what_slots_have_now,
                                   a_plan_keeps_the_graph_that_it_was_made_of,
                                   passes_run_first_and_their_guards_hold,
                                   what_only_a_run_can_tell_is_refused_with_the_node,
                                   calls_of_modules_are_what_they_call_and_hooks_are_refused,
                                   wrong_arguments_are_refused,
                                   a_run_that_would_record_gradients_is_refused,
                                   a_changed_constant_is_refused,
                                   NULL };
    return suite_run("plans", tests);
}
