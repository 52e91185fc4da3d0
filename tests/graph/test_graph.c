/* SPDX-License-Identifier: MIT
 *
 * Graphs that a program builds node by node: results, properties of nodes, edits, errors. */
#include "tests/graph/suite.h"

#include <math.h>
#include <pthread.h>

START_TEST(a_graph_computes_what_its_operators_compute)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w);
    ck_assert_str_eq(names_of(graph), "x w add relu mul output");
    ck_ok(tn_graph_lint(graph));
    ck_same(run1(graph, x), small_eager(x, w));
    /* of another shape and type, too: no node depends on the declared ones */
    tn_tensor *wide = tn_tensor_full(TN_SHAPE(4, 2, 3), 1.5, TN_F64, NULL);
    ck_same(run1(graph, wide), small_eager(wide, w));
    ck_ok(tn_tensor_copy_in(w, (float[6]){ 1, 2, 3, 4, 5, 6 }, 24)); /* a slot may change */
    ck_same(run1(graph, x), small_eager(x, w));
    tn_graph_drop(graph);
}
END_TEST

START_TEST(gradients_flow_as_in_eager_calls)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2), *v = numbers(-4);
    ck_ok(tn_tensor_set_requires_grad(w, true));
    ck_ok(tn_tensor_set_requires_grad(v, true));
    tn_graph *graph = small(w);
    ck_ok(tn_backward(tn_sum(run1(graph, x))));
    ck_ok(tn_backward(tn_sum(small_eager(x, v))));
    ck_same(tn_tensor_grad(w), tn_tensor_grad(v));
    tn_graph_drop(graph);
}
END_TEST

START_TEST(nodes_say_what_they_are)
{
    TN_SCOPE;
    tn_graph *graph = small(numbers(0));
    tn_node *add = tn_graph_find(graph, "add"), *x = tn_graph_find(graph, "x");
    tn_node *mul = tn_graph_find(graph, "mul"), *w = tn_graph_find(graph, "w");
    char text[64];
    tn_meta meta;
    ck_assert_int_eq(tn_node_kind_of(x), TN_NODE_INPUT);
    ck_assert_int_eq(tn_node_kind_of(w), TN_NODE_SLOT);
    ck_assert_int_eq(tn_node_kind_of(add), TN_NODE_OP);
    ck_assert_int_eq(tn_node_kind_of(tn_graph_find(graph, "output")), TN_NODE_OUTPUT);
    ck_assert_ptr_eq(tn_node_op(add), tn_op_find("add", 0));
    ck_assert_double_eq(tn_scalar_as_float(((const tn_add_options *)tn_node_options(add))->alpha),
                        2);
    ck_assert_int_eq(tn_node_spec(add, text, sizeof text), 12);
    ck_assert_str_eq(text, "add(alpha=2)");
    ck_assert_int_eq(tn_node_input_count(add), 2);
    ck_assert_ptr_eq(tn_node_input(add, 1), w);
    ck_assert_int_eq(tn_node_user_count(x), 2);
    ck_assert_ptr_eq(tn_node_user(x, 0), add);
    ck_assert_ptr_eq(tn_node_user(x, 1), mul);
    ck_assert_ptr_eq(tn_node_item(add, 0), add);
    ck_assert_int_eq(tn_node_item_count(tn_graph_find(graph, "output")), 0);
    ck_ok(tn_node_meta(mul, &meta));
    ck_assert_int_eq(meta.dtype, TN_F32);
    ck_assert_int_eq(meta.ndim, 2);
    ck_assert_int_eq(meta.shape[1], 3);
    ck_assert_int_eq(meta.strides[0], 3);
    ck_assert_int_eq(tn_graph_input_count(graph), 1);
    ck_assert_int_eq(tn_graph_output_count(graph), 1);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(types_and_shapes_are_inferred_with_promotion)
{
    static const struct {
        const char *spec;
        tn_dtype a, b, expected;
    } rows[] = { { "add()", TN_I32, TN_F32, TN_F32 },
                 { "add()", TN_I32, TN_I64, TN_I64 },
                 { "div()", TN_I32, TN_I32, TN_F32 },
                 { "lt()", TN_F32, TN_F64, TN_BOOL },
                 { "matmul()", TN_F64, TN_F64, TN_F64 } };
    for (int i = 0; i < 5; i++) {
        TN_SCOPE;
        tn_graph *graph = tn_graph_new();
        tn_node *a = tn_graph_input(graph, "a", TN_SHAPE(3, 3), rows[i].a);
        tn_node *b = tn_graph_input(graph, "b", TN_SHAPE(3, 3), rows[i].b);
        tn_node *c = step(graph, rows[i].spec, a, b);
        tn_node *t = step(graph, "transpose(dim0=0, dim1=1)", c, NULL);
        tn_tensor *in[2] = { tn_tensor_full(TN_SHAPE(3, 3), 2, rows[i].a, NULL),
                             tn_tensor_full(TN_SHAPE(3, 3), 3, rows[i].b, NULL) },
                  *out[2];
        tn_meta meta, turned;
        ck_ok(tn_node_meta(c, &meta));
        ck_assert_int_eq(meta.dtype, rows[i].expected);
        ck_ok(tn_graph_output(graph, (tn_node *[]){ c, t }, 2));
        ck_ok(tn_graph_run(graph, in, 2, out, 2));
        ck_assert_int_eq(tn_tensor_dtype(out[0]), rows[i].expected);
        ck_ok(tn_node_meta(t, &turned)); /* a view: its strides are inferred */
        for (int d = 0; d < 2; d++) {
            ck_assert_int_eq(turned.shape[d], tn_tensor_shape(out[1]).at[d]);
            ck_assert_int_eq(turned.strides[d], tn_tensor_strides(out[1]).at[d]);
        }
        tn_graph_drop(graph);
    }
}
END_TEST

START_TEST(operators_with_several_outputs_have_items)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *sort = step(graph, "sort(descending=True)", x, NULL);
    tn_tensor *in = numbers(1), *out[2];
    tn_meta meta;
    ck_assert_str_eq(names_of(graph), "x sort sort_values sort_indices");
    ck_assert_int_eq(tn_node_item_count(sort), 2);
    ck_assert_int_eq(tn_node_kind_of(tn_node_item(sort, 1)), TN_NODE_ITEM);
    ck_ok(tn_node_meta(tn_node_item(sort, 1), &meta));
    ck_assert_int_eq(meta.dtype, TN_I64);
    ck_ok(tn_graph_output(graph, (tn_node *[]){ tn_node_item(sort, 0), tn_node_item(sort, 1) }, 2));
    ck_ok(tn_graph_run(graph, &in, 1, out, 2));
    ck_same(out[0], tn_tensor_from((float[6]){ 3, 2, 1, 6, 5, 4 }, TN_F32, TN_SHAPE(2, 3)));
    ck_same(out[1], tn_tensor_from((int64_t[6]){ 2, 1, 0, 2, 1, 0 }, TN_I64, TN_SHAPE(2, 3)));
    ck_assert_int_eq(tn_node_meta(sort, &meta), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "makes 2 tensors");
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "relu()", &sort, 1));
    expect_failure(TN_ERR_VALUE, "tn_node_item returns each");
    ck_assert_int_eq(tn_node_erase(tn_node_item(sort, 0)), TN_ERR_REFUSED);
    expect_failure(TN_ERR_REFUSED, "is an output of node sort; erase that");
    ck_assert_int_eq(tn_node_erase(sort), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "still had 2 users in the graph");
    ck_ok(tn_graph_output(graph, &x, 1));
    ck_ok(tn_node_erase(sort));
    ck_assert_str_eq(names_of(graph), "x output_1");
    tn_graph_drop(graph);
}
END_TEST

START_TEST(optional_inputs_and_option_structs)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_tensor *weight = numbers(0), *x = numbers(1);
    tn_node *in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *w = tn_graph_constant(graph, "w", weight);
    tn_node *linear = tn_graph_add_op(graph, NULL, "linear", (tn_node *[]){ in, w, TN_NODE_NONE },
                                      3);
    tn_sum_options options = TN_SUM_OPTIONS;
    tn_node *sum;
    ck_made(linear);
    ck_assert_ptr_eq(tn_node_input(linear, 2), TN_NODE_NONE);
    {
        int64_t dims[1] = { 1 }; /* copied: gone when the graph runs */
        options.dims = (tn_ints){ dims, 1 };
        options.keepdim = true;
        sum = tn_graph_add_call(graph, NULL, tn_op_find("sum", 0), &options, &linear, 1);
        dims[0] = 77;
    }
    ck_made(sum);
    ck_ok(tn_graph_output(graph, &sum, 1));
    options.dims = TN_INTS(1);
    ck_same(run1(graph, x),
            tn_sum(tn_linear(x, weight, TN_NONE), options.dims, options.keepdim, options.dtype));
    ck_assert_ptr_null(
        tn_graph_add_op(graph, NULL, "linear", (tn_node *[]){ in, TN_NODE_NONE, w }, 3));
    expect_failure(TN_ERR_TYPE, "got TN_NODE_NONE");
    ck_ok(tn_tensor_copy_in(weight, (float[6]){ 1, 1, 1, 1, 1, 1 }, 24));
    ck_assert_ptr_null(run1(graph, x));
    expect_failure(TN_ERR_RUNTIME,
                   "w: the tensor has changed since the graph was built; a constant must");
    tn_graph_drop(graph);
}
END_TEST

START_TEST(shapes_that_only_a_run_knows_stay_open)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *places = step(graph, "nonzero()", x, NULL), *sum = step(graph, "sum()", places, NULL);
    tn_tensor *in = numbers(-1);
    tn_meta meta;
    ck_ok(tn_node_meta(places, &meta));
    ck_assert_int_eq(meta.ndim, -1);
    ck_ok(tn_node_meta(sum, &meta));
    ck_assert_int_eq(meta.ndim, -1);
    ck_ok(tn_graph_output(graph, &sum, 1));
    ck_ok(tn_graph_lint(graph));
    ck_same(run1(graph, in), tn_sum(tn_nonzero(in)));
    tn_graph_drop(graph);
}
END_TEST

START_TEST(nodes_are_replaced_and_erased)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w), *before = tn_graph_copy(graph);
    tn_node *relu = tn_graph_find(graph, "relu"), *in = tn_node_input(relu, 0);
    tn_node *silu = tn_graph_add_op(graph, relu, "silu()", &in, 1);
    ck_assert_str_eq(names_of(graph), "x w add silu relu mul output");
    ck_assert_int_eq(tn_node_erase(relu), TN_ERR_RUNTIME);
    ck_assert_str_eq(tn_error_text(),
                     "Tried to erase Node relu but it still had 1 users in the graph");
    tn_error_clear();
    ck_assert_int_eq(tn_node_replace_uses(relu, silu), 1);
    ck_ok(tn_node_erase(relu));
    ck_assert(tn_node_is_erased(relu));
    ck_assert_str_eq(tn_node_name(relu), "relu");
    ck_assert_ptr_eq(tn_node_input(relu, 0), in);
    ck_assert_ptr_null(tn_node_next(relu));
    ck_assert(!tn_failed());
    ck_assert_int_eq(tn_node_user_count(in), 1);
    ck_ok(tn_graph_lint(graph));
    ck_same(run1(graph, x), tn_mul(tn_silu(tn_add(x, w, 2.0)), x));
    ck_same(run1(before, x), small_eager(x, w)); /* a copy is of its own */
    ck_assert_int_eq(tn_node_erase(relu), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "node relu was erased");
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "relu()", &relu, 1));
    expect_failure(TN_ERR_RUNTIME, "node relu was erased");
    /* its name is free again */
    ck_assert_str_eq(tn_node_name(step(graph, "relu()", in, NULL)), "relu");
    tn_graph_drop(before);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(names_are_unique)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "relu_1", TN_SHAPE(2), TN_F32);
    for (int i = 0; i < 3; i++)
        x = step(graph, "relu()", x, NULL);
    ck_assert_str_eq(names_of(graph), "relu_1 relu relu_2 relu_3");
    ck_assert_ptr_null(tn_graph_input(graph, "relu", TN_SHAPE(2), TN_F32));
    expect_failure(TN_ERR_VALUE, "\"relu\" is taken");
    ck_assert_ptr_null(tn_graph_input(graph, "a b", TN_SHAPE(2), TN_F32));
    expect_failure(TN_ERR_VALUE, "0x20 at byte 2 is not accepted");
    ck_assert_ptr_null(tn_graph_find(graph, "rellu"));
    expect_failure(TN_ERR_KEY, "no node \"rellu\"; did you mean relu?");
    tn_graph_drop(graph);
}
END_TEST

START_TEST(a_failing_node_is_named)
{
    TN_SCOPE;
    tn_graph *graph = small(numbers(0));
    tn_tensor *odd = tn_tensor_full(TN_SHAPE(5), 1, TN_F32, NULL), *out = odd;
    ck_assert_int_ne(tn_graph_run(graph, &odd, 1, &out, 1), TN_OK);
    ck_assert_ptr_null(out);
    ck_assert_msg(strncmp(tn_error_text(), "node add: add: ", 15) == 0, "%s", tn_error_text());
    tn_error_clear();
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "add(beta=2)", NULL, 0));
    expect_failure(TN_ERR_KEY, "beta");
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "adds()", NULL, 0));
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "add");
    tn_node *x = tn_graph_find(graph, "x");
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "add()", &x, 1));
    expect_failure(TN_ERR_VALUE, "inputs: wrong number, got 1; expected 2");
    tn_node *y = tn_graph_input(graph, "y", TN_SHAPE(5), TN_F32);
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "add()", (tn_node *[]){ x, y }, 2));
    ck_assert_str_eq(names_of(graph), "x w y add relu mul output");
    tn_error_clear();
    ck_assert_ptr_eq(tn_node_next(tn_graph_find(graph, "output")), NULL);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(hostile_edits_are_refused)
{
    TN_SCOPE;
    tn_graph *graph = small(numbers(0)), *other = small(numbers(0));
    tn_node *add = tn_graph_find(graph, "add"), *mul = tn_graph_find(graph, "mul");
    tn_node *foreign = tn_graph_find(other, "mul"), *x = tn_graph_find(graph, "x");
    tn_tensor *in = numbers(0), *out;
    /* a cycle */
    ck_ok(tn_node_set_input(add, 0, mul));
    ck_assert_int_eq(tn_graph_lint(graph), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "node mul does not come before this node");
    ck_assert_int_eq(tn_graph_run(graph, &in, 1, &out, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "node add: input 0: node mul does not come before this node");
    ck_assert_int_eq(tn_graph_pass(graph, "nothing"), TN_ERR_VALUE);
    tn_error_clear();
    ck_ok(tn_node_set_input(add, 0, add));
    ck_assert_int_eq(tn_graph_lint(graph), TN_ERR_VALUE);
    tn_error_clear();
    ck_ok(tn_node_set_input(add, 0, x));
    ck_ok(tn_graph_lint(graph));
    ck_assert_int_eq(tn_node_set_input(add, 0, foreign), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "node mul is of another graph");
    ck_assert_int_eq(tn_node_set_input(add, 2, x), TN_ERR_INDEX);
    expect_failure(TN_ERR_INDEX, "node add: index: out of range, got 2; expected 0 to 1");
    ck_assert_int_eq(tn_node_set_input(add, 0, TN_NODE_NONE), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_int_eq(tn_node_set_input(add, 0, tn_graph_find(graph, "output")), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "makes 0 tensors");
    ck_assert_int_eq(tn_node_replace_uses(add, foreign), -1);
    expect_failure(TN_ERR_VALUE, "of another graph");
    ck_assert_int_eq(tn_graph_output(graph, &foreign, 1), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_ptr_null(tn_graph_add_op(graph, x, "relu()", &x, 1));
    expect_failure(TN_ERR_VALUE, "tn_graph_add_op: before: node x is an input");
    ck_assert_ptr_null(tn_graph_add_inplace(graph, x, "relu()", add, &x, 1));
    expect_failure(TN_ERR_VALUE, "tn_graph_add_inplace: before: node x is an input");
    ck_assert_ptr_null(tn_graph_add_op(graph, foreign, "relu()", &x, 1));
    expect_failure(TN_ERR_VALUE, "of another graph");
    /* other shapes after an edit */
    tn_node *y = tn_graph_input(graph, "y", TN_SHAPE(7), TN_F32);
    ck_ok(tn_node_set_input(add, 0, y));
    ck_assert_int_ne(tn_graph_lint(graph), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "node add: add: "));
    tn_error_clear();
    tn_graph_drop(graph);
    tn_graph_drop(other);
}
END_TEST

START_TEST(null_is_refused_everywhere)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_tensor *x = numbers(0), *out = x;
    tn_meta meta;
    ck_assert_ptr_null(tn_graph_keep(NULL));
    ck_assert_ptr_null(tn_graph_copy(NULL));
    ck_assert_int_ne(tn_graph_lint(NULL), TN_OK);
    ck_assert_int_ne(tn_graph_run(NULL, &x, 1, &out, 1), TN_OK);
    ck_assert_ptr_null(tn_graph_input(NULL, "x", TN_SHAPE(1), TN_F32));
    ck_assert_ptr_null(tn_graph_input(graph, NULL, TN_SHAPE(1), TN_F32));
    ck_assert_ptr_null(tn_graph_input(graph, "x", TN_SHAPE(-1), TN_F32));
    ck_assert_ptr_null(tn_graph_slot(graph, "x", NULL));
    ck_assert_ptr_null(tn_graph_slot(graph, "x", TN_NONE));
    ck_assert_ptr_null(tn_graph_constant(graph, NULL, x));
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, NULL, NULL, 0));
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "relu()", NULL, 1));
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "relu()", NULL, -1));
    ck_assert_ptr_null(tn_graph_add_op(graph, NULL, "3", NULL, 0));
    ck_assert_ptr_null(tn_graph_add_call(graph, NULL, NULL, NULL, NULL, 0));
    ck_assert_int_ne(tn_graph_output(graph, NULL, 1), TN_OK);
    ck_assert_ptr_null(tn_graph_first(NULL));
    ck_assert_ptr_null(tn_node_next(NULL));
    ck_assert_ptr_null(tn_node_name(NULL));
    ck_assert_ptr_null(tn_node_name(TN_NODE_NONE));
    ck_assert_int_eq(tn_node_kind_of(NULL), 0);
    ck_assert_int_ne(tn_node_meta(NULL, &meta), TN_OK);
    ck_assert_int_ne(tn_node_erase(NULL), TN_OK);
    ck_assert_int_eq(tn_node_replace_uses(NULL, NULL), -1);
    ck_assert_int_ne(tn_node_set_input(NULL, 0, NULL), TN_OK);
    ck_assert_int_eq(tn_node_spec(NULL, NULL, 0), -1);
    ck_assert_int_eq(tn_graph_report(NULL, NULL, 0), -1);
    ck_assert_int_ne(tn_graph_pass(graph, NULL), TN_OK);
    ck_assert_int_ne(tn_graph_compile(graph, NULL, NULL), TN_OK);
    tn_error_clear();
    ck_assert_int_eq(tn_graph_lint(graph), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "no outputs; call tn_graph_output first");
    ck_assert_int_eq(tn_graph_run(graph, NULL, 0, NULL, 0), TN_ERR_VALUE);
    tn_error_clear();
    ck_ok(tn_graph_output(graph, NULL, 0));
    ck_ok(tn_graph_run(graph, NULL, 0, NULL, 0));
    ck_assert_int_eq(tn_graph_run(graph, &x, 1, NULL, 0), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "in: wrong count, got 1; the graph has 0");
    ck_assert_int_eq(tn_graph_run(graph, NULL, 0, &out, 1), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "out: wrong count, got 1; the graph has 0");
    ck_assert_ptr_null(out);
    tn_graph_drop(graph);
    tn_graph_drop(NULL);
}
END_TEST

START_TEST(a_slot_follows_its_tensor)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2),
              *row = tn_tensor_from((float[3]){ 1, -2, 3 }, TN_F32, TN_SHAPE(3));
    tn_graph *graph = small(w);
    tn_meta meta;
    ck_ok(tn_tensor_swap(w, row));
    ck_same(run1(graph, x), small_eager(x, w));
    ck_ok(tn_graph_lint(graph));
    ck_ok(tn_node_meta(tn_graph_find(graph, "w"), &meta));
    ck_assert_int_eq(meta.ndim, 1);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(operators_that_write_run_in_order)
{
    TN_SCOPE;
    tn_tensor *p = numbers(1), *g = numbers(2), *q = numbers(1), *out;
    tn_sgd_step_options options = TN_SGD_STEP_OPTIONS;
    tn_graph *graph = tn_graph_new();
    tn_node *slot = tn_graph_slot(graph, "p", p);
    tn_node *in = tn_graph_input(graph, "g", TN_SHAPE(2, 3), TN_F32);
    tn_node *node = tn_graph_add_op(graph, NULL, "sgd_step(lr=0.5)",
                                    (tn_node *[]){ TN_NODE_NONE, slot, in }, 3);
    tn_node *after = step(graph, "relu()", slot, NULL);
    ck_made(node);
    options.lr = 0.5;
    ck_assert_int_eq(tn_node_item_count(node), 0);
    ck_ok(tn_graph_output(graph, &after, 1));
    ck_ok(tn_graph_lint(graph));
    ck_ok(tn_graph_run(graph, &g, 1, &out, 1));
    ck_ok(tn_op_call(tn_op_find("sgd_step", 0), (tn_tensor *[]){ TN_NONE, q, g }, 3, &options, NULL,
                     0));
    ck_same(out, tn_relu(q));
    ck_same(p, q);
    tn_graph_drop(graph);
}
END_TEST

/* ---- threads and memory ---------------------------------------------------------------------- */

static void *run_often(void *graph)
{
    for (int i = 0; i < 100; i++) {
        TN_SCOPE;
        tn_tensor *x = numbers((float)i - 50);
        tn_tensor *w = tn_node_tensor(tn_graph_find(graph, "w"));
        char a[256], b[256];
        tn_tensor_text(run1(graph, x), a, sizeof a);
        tn_tensor_text(small_eager(x, w), b, sizeof b);
        if (strcmp(a, b) != 0)
            return graph;
    }
    return NULL;
}

START_TEST(many_threads_run_one_graph)
{
    TN_SCOPE;
    tn_graph *graph = small(numbers(-4));
    pthread_t threads[4];
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

/* Builds, copies, edits and runs; stops at the first failure. */
static bool live(void *user)
{
    TN_SCOPE;
    tn_tensor *w = ((tn_tensor **)user)[0], *x = ((tn_tensor **)user)[1];
    tn_graph *graph = tn_graph_new(), *copy = NULL;
    tn_node *in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *slot = tn_graph_slot(graph, "w", w);
    tn_node *add = tn_graph_add_op(graph, NULL, "add(alpha=2)", (tn_node *[]){ in, slot }, 2);
    tn_node *sort = tn_graph_add_op(graph, NULL, "sort()", &add, 1);
    tn_node *sum = sort != NULL ? tn_graph_add_op(graph, NULL, "sum(dims=[0])",
                                                  (tn_node *[]){ tn_node_item(sort, 0) }, 1)
                                : NULL;
    tn_tensor *out = NULL;
    bool well = sum != NULL && tn_graph_output(graph, &sum, 1) == TN_OK &&
                (copy = tn_graph_copy(graph)) != NULL && tn_graph_lint(copy) == TN_OK &&
                tn_node_replace_uses(tn_graph_find(copy, "add"), tn_graph_find(copy, "x")) == 1 &&
                tn_graph_run(graph, &x, 1, &out, 1) == TN_OK &&
                tn_graph_run(copy, &x, 1, &out, 1) == TN_OK;
    tn_graph_drop(copy);
    tn_graph_drop(graph);
    return well;
}

START_TEST(memory_that_fails_anywhere_is_an_error)
{
    TN_SCOPE;
    tn_tensor *both[2] = { numbers(1), numbers(2) };
    ck_assert(live(both));
    ck_assert_int_gt(fail_each_allocation(live, both), 50);
    ck_assert(live(both));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_graph_computes_what_its_operators_compute,
                                   gradients_flow_as_in_eager_calls,
                                   nodes_say_what_they_are,
                                   types_and_shapes_are_inferred_with_promotion,
                                   operators_with_several_outputs_have_items,
                                   optional_inputs_and_option_structs,
                                   shapes_that_only_a_run_knows_stay_open,
                                   nodes_are_replaced_and_erased,
                                   names_are_unique,
                                   a_failing_node_is_named,
                                   hostile_edits_are_refused,
                                   null_is_refused_everywhere,
                                   operators_that_write_run_in_order,
                                   a_slot_follows_its_tensor,
                                   many_threads_run_one_graph,
                                   memory_that_fails_anywhere_is_an_error,
                                   NULL };
    return suite_run("graph", tests);
}
