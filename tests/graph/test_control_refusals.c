/* SPDX-License-Identifier: MIT
 *
 * What a trace of tn_cond and tn_loop refuses, and texts of blocks that are wrong. */
#include "tests/graph/control.h"

#include "core/base/internal.h"

static tn_tensor *leaked;

static tn_status pass(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                      int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = tn_relu(in[0]);
    return TN_OK;
}

static tn_status row(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = tn_select(in[0], 0, 0);
    return TN_OK;
}

static tn_status writes(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                        int64_t n_out)
{
    (void)n_in, (void)n_out;
    tn_add_scalar_(tn_reshape(tn_module_get(user, "scale"), TN_SHAPE(6)), TN_SCALAR(1.0));
    out[0] = in[0];
    return TN_OK;
}

static tn_status writes_its_input(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                                  int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = tn_relu_(in[0]);
    return TN_OK;
}

static tn_status reads(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                       int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = tn_mul_scalar(in[0], TN_SCALAR(tn_item(tn_sum(in[0]))));
    return TN_OK;
}

static tn_status leaks(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                       int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    leaked = tn_tensor_keep(tn_neg(in[0]));
    out[0] = tn_relu(leaked);
    return TN_OK;
}

static tn_status trains(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                        int64_t n_out)
{
    (void)n_in, (void)n_out;
    out[0] = tn_module_call_child(user, "norm", in[0]);
    return TN_OK;
}

static tn_status deeper(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                        int64_t n_out)
{
    return tn_cond(sum_above(in[0], 0), deeper, pass, in, n_in, out, n_out, user);
}

static tn_block_fn branch;

static tn_tensor *branch_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y;
    tn_status status;

    leaked = NULL;
    status = tn_cond(sum_above(x, 1), pass, branch, &x, 1, &y, 1, self);
    if (status == TN_OK && leaked != NULL)
        y = tn_add(y, leaked);
    tn_tensor_drop(leaked);
    return status == TN_OK ? y : NULL;
}

static const struct {
    tn_block_fn branch;
    tn_status code;
    const char *part, *more;
} refused[] = {
    { row, TN_ERR_VALUE, "tn_cond: else: result 0: wrong dtype or shape, got float32[3]",
      "expected float32[2, 3], as in then" },
    { writes, TN_ERR_NOT_IMPLEMENTED, "tn_cond: else: it writes into %scale", "from outside" },
    { writes_its_input, TN_ERR_NOT_IMPLEMENTED, "tn_cond: else: it writes into %input",
      "from outside" },
    { reads, TN_ERR_RUNTIME, "the value of %sum (Net) is asked for", "except by tn_cond and" },
    { leaks, TN_ERR_NOT_IMPLEMENTED, "made and not returned", "" },
    { trains, TN_ERR_NOT_IMPLEMENTED, "it writes into %norm_", "from outside" },
    { deeper, TN_ERR_VALUE, "calls: nested too deep; expected at most 32 levels", "tn_cond" },
};

START_TEST(wrong_functions_are_refused)
{
    TN_SCOPE;
    tn_module *module = own(branch_forward), *norm = tn_module_new("BatchNorm1d(3)");
    tn_state *before;
    ck_ok(tn_module_add_child(module, "norm", norm));
    before = tn_module_state(module);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        branch = refused[i].branch;
        ck_assert_msg(tn_module_trace(module, numbers(1), NULL) == NULL, "function %d", (int)i);
        ck_error(refused[i].code, refused[i].part, refused[i].more);
    }
    branch = pass;
    tn_graph_drop(traced(module, numbers(1), 0)); /* no trace is left open */
    for (int64_t i = 0; i < tn_state_count(before); i++)
        ck_same(tn_state_tensor(before, i), tn_state_get(before, tn_state_name(before, i)));
    tn_state_drop(before);
    tn_module_drop(norm);
    tn_module_drop(module);
}
END_TEST

/* ---- texts ----------------------------------------------------------------------------------- */

#define HEAD "graph(%self : Net, %x : float32[2], %p : bool[]):  # tenon.graph 1\n"
#define THEN "    block then(%x : float32[2]):\n"
#define ELSE "    block else(%x : float32[2]):\n"
#define END "  return (%y)\n"

static const struct {
    const char *text, *part, *more;
} wrong[] = {
    { HEAD "  %y = prim::If(%p, %x)\n" END, "line 3", "expected block then(...):" },
    { HEAD "  %y = prim::If(%p, %x)\n" ELSE "      return (%x)\n" END, "line 3", "block then" },
    { HEAD "  %y = prim::If(%p, %x)\n" THEN "      return (%x)\n" END, "line 5", "block else" },
    { HEAD "  %y = prim::If(%p, %x)\n" THEN, "return (...) of the block", "" },
    { HEAD "  %y = prim::If(%p, %x)\n" THEN "      return (%y)\n", "no node", "y" },
    { HEAD "  %y = prim::If(%p, %x)\n" THEN "      return (%p)\n", "no node", "p" },
    { HEAD "  %y = prim::If(%p, %x)\n" THEN "      return ()\n" ELSE "      return ()\n" END,
      "y: wrong number of results, got 0", "at least one" },
    { HEAD "  %y = prim::If(%p, %x)\n" THEN "      return (%x)\n" ELSE
           "      return (%x, %x)\n" END,
      "else: outputs: wrong number, got 2", "expected 1" },
    { HEAD "  %y = prim::If(%p)\n" THEN "      return (%x)\n" ELSE "      return (%x)\n" END,
      "then: inputs: wrong number, got 1", "expected 0" },
    { HEAD "  %y = prim::If(%x, %x)\n" THEN "      return (%x)\n" ELSE "      return (%x)\n" END,
      "predicate: wrong dtype or shape, got float32[2]", "bool" },
    { HEAD "  %y = prim::If()\n    block then():\n      return ()\n    block else():\n"
           "      return ()\n" END,
      "y: wrong number of results, got 0", "at least one" },
    { HEAD "  %y = prim::If[most=3](%p, %x)\n" THEN, "line 2", "expected (" },
    { HEAD "  %y = prim::Loop[most=-3](%x)\n", "line 2", "a number of steps" },
    { HEAD "  %y = prim::Loop[most=x](%x)\n", "line 2", "a number of steps" },
    { HEAD "  %y = prim::Loop(%x)\n    block test(%x : float32[2]):\n      return (%x)\n"
           "    block body(%x : float32[2]):\n      return (%x)\n" END,
      "tn_loop: test: result: wrong dtype or shape, got float32[2]", "bool" },
    { HEAD "  %y = prim::Loop(%p)\n    block test(%p : bool[]):\n      return (%p)\n"
           "    block body(%p : bool[]):\n      return (%p, %p)\n" END,
      "at least one, and for a loop not more than the 1 inputs", "" },
    { HEAD "  %y = prim::If(%p, %x)\n" THEN "      %z = relu_(%x!)\n      return (%z)\n" ELSE
           "      return (%x)\n" END,
      "then: node z: it writes into x", "from outside" },
    { HEAD "  %y = prim::If(%p, %x)\n" THEN
           "      %w = prim::GetAttr[name=\"scale\"](%self)\n      return (%x)\n" ELSE
           "      return (%x)\n" END,
      "node w: wrong kind for a block", "" },
    { HEAD "  %y = prim::If(%p, %x, alpha=2)\n" THEN, "only values before this place", "" },
    { HEAD "  %y = prim::If(%p, none)\n" THEN "      return (%x)\n" ELSE "      return (%x)\n" END,
      "TN_NODE_NONE", "tn_cond: input" },
    { HEAD "  %y : float32[3] = prim::If(%p, %x)\n" THEN "      return (%x)\n" ELSE
           "      return (%x)\n" END,
      "wrong type", "float32[2]" },
};

START_TEST(wrong_texts_are_refused)
{
    TN_SCOPE;
    tn_module *module = own(branch_forward);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_ptr_null(tn_graph_parse(wrong[i].text, module, NULL));
        ck_error(tn_error_last()->code, wrong[i].part, wrong[i].more);
    }
    tn_module_drop(module);
}
END_TEST

/* Blocks in blocks: 31 levels are read, 33 are not. */
START_TEST(deep_texts_are_refused)
{
    TN_SCOPE;
    for (int levels = 31; levels <= 33; levels += 2) {
        char text[16384];
        int at = snprintf(text, sizeof text, "%s", HEAD);
        tn_graph *graph;
        for (int i = 0; i < levels; i++)
            at += snprintf(text + at, sizeof text - (size_t)at,
                           "%%y = prim::If(%%p, %%x, %%p)\n"
                           "block then(%%x : float32[2], %%p : bool[]):\n");
        for (int i = 0; i < levels; i++)
            at += snprintf(text + at, sizeof text - (size_t)at,
                           "return (%%x)\nblock else(%%x : float32[2], %%p : bool[]):\n"
                           "return (%%x)\n");
        snprintf(text + at, sizeof text - (size_t)at, "return (%%y)\n");
        graph = tn_graph_parse(text, NULL, NULL);
        if (levels < 32) {
            ck_made(graph);
        } else {
            ck_assert_ptr_null(graph);
            ck_error(TN_ERR_FORMAT, "levels of blocks", "");
        }
        tn_graph_drop(graph);
    }
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Traces, prints, reads and runs. Returns false if one of these fails. */
static bool live(void *user)
{
    TN_SCOPE;
    tn_module *module = user;
    tn_tensor *x = numbers(1), *y = NULL;
    tn_graph *graph = x != NULL ? tn_module_trace(module, x, NULL) : NULL, *read = NULL;
    char text[8192];

    if (graph != NULL && tn_graph_print(graph, "text", text, sizeof text) > 0)
        read = tn_graph_parse(text, module, NULL);
    if (read != NULL)
        y = run1(read, x);
    tn_graph_drop(read);
    tn_graph_drop(graph);
    return y != NULL;
}

START_TEST(each_allocation_that_fails_is_an_error)
{
    TN_SCOPE;
    static tn_tensor *(*const forwards[])(tn_module *, tn_tensor *) = { cond_forward,
                                                                        nested_forward };
    for (int f = 0; f < 2; f++) {
        tn_module *module = own(forwards[f]);
        tn_tensor *before = tn_module_call(module, numbers(1));
        ck_assert(live(module));
        ck_assert_int_gt(fail_each_allocation(live, module), 100);
        ck_same(tn_module_call(module, numbers(1)), before);
        tn_module_drop(module);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { wrong_functions_are_refused, wrong_texts_are_refused,
                                   deep_texts_are_refused, each_allocation_that_fails_is_an_error,
                                   NULL };
    return suite_run("control_refusals", tests);
}
