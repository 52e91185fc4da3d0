/* SPDX-License-Identifier: MIT
 *
 * Tracing: which code of a module is refused, and that a trace changes nothing. */
#include "tests/graph/suite.h"
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

static tn_tensor *branching_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *mean = tn_mean(tn_module_call_child(self, "fc", x));
    return tn_item(mean) > 0 ? tn_relu(x) : tn_neg(x); /* tn_item fails; the code continues */
}

static tn_module *outsider;

static tn_tensor *outside_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_module_call(outsider, x);
}

static tn_tensor *random_forward(tn_module *self, tn_tensor *x)
{
    uint64_t seed, block;
    (void)self;
    return tn_random_take(4, 1, &seed, &block) == TN_OK ? tn_relu(x) : NULL;
}

static tn_tensor *storing_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_relu(x);
    return tn_module_set(self, "seen", y) == TN_OK ? y : NULL;
}

static tn_tensor *reading_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *seen = tn_module_get(self, "seen");
    tn_add_(seen, tn_relu(x));
    return tn_mul_scalar(x, TN_SCALAR(tn_item(tn_module_get(self, "count")))); /* not written */
}

static tn_tensor *stale_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *count = tn_module_get(self, "count");
    tn_add_scalar_(count, TN_SCALAR(1.0));
    return tn_mul_scalar(x, TN_SCALAR(tn_item(count)));
}

START_TEST(values_and_foreign_modules_are_refused)
{
    TN_SCOPE;
    tn_module *module = own(branching_forward);
    tn_state *before = tn_module_state(module), *after;
    ck_assert_ptr_null(tn_module_trace(module, numbers(0), NULL));
    ck_error(TN_ERR_RUNTIME, "the value of %mean (Net) is asked for while tracing (tn_item)",
             "cannot depend on values");
    after = tn_module_state(module);
    for (int64_t i = 0; i < tn_state_count(before); i++)
        ck_same(tn_state_tensor(before, i), tn_state_tensor(after, i));
    tn_state_drop(before);
    tn_state_drop(after);
    ck_made(tn_module_call(module, numbers(0))); /* works as before */
    tn_module_drop(module);
    module = own(outside_forward);
    outsider = tn_module_new("Linear(3, 3)");
    ck_assert_ptr_null(tn_module_trace(module, numbers(0), NULL));
    ck_error(TN_ERR_KEY, "module is not installed as a submodule", "Linear");
    tn_module_drop(outsider);
    tn_module_drop(module);
    module = own(random_forward);
    ck_assert_ptr_null(tn_module_trace(module, numbers(0), NULL));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "tn_random_take", "one node");
    tn_module_drop(module);
    module = tn_module_new("LazyLinear(3)");
    ck_assert_ptr_null(tn_module_trace(module, numbers(0), NULL));
    ck_error(TN_ERR_RUNTIME, "without shape", "call it once");
    tn_module_drop(module);
    TN_PROVES("FX-005", "SCR-012");
}
END_TEST

START_TEST(buffers_are_not_changed_by_a_trace)
{
    TN_SCOPE;
    tn_module *module = tn_module_plain("Net");
    tn_tensor *x = numbers(1);
    ck_ok(tn_module_add_buffer(module, "seen", numbers(0), 0));
    ck_ok(tn_module_add_buffer(module, "count", tn_zeros(TN_SCALAR_SHAPE), 0));
    ck_ok(tn_module_set_forward(module, storing_forward, NULL, NULL));
    ck_assert_ptr_null(tn_module_trace(module, x, NULL));
    ck_error(TN_ERR_RUNTIME, "the value of %relu (Net)", "tn_module_set");
    ck_same(tn_module_get(module, "seen"), numbers(0));
    ck_ok(tn_module_set_forward(module, reading_forward, NULL, NULL));
    tn_graph *graph = tn_module_trace(module, x, NULL); /* a value that nothing has written */
    ck_made(graph);
    ck_same(tn_module_get(module, "seen"), numbers(0));
    ck_assert_uint_eq(tn_tensor_version(tn_module_get(module, "seen")), 0);
    tn_graph_drop(graph);
    ck_ok(tn_module_set_forward(module, stale_forward, NULL, NULL));
    ck_assert_ptr_null(tn_module_trace(module, x, NULL));
    ck_error(TN_ERR_RUNTIME, "the value of %add_scalar_ (Net)", "tn_item");
    ck_assert_double_eq(tn_item(tn_module_get(module, "count")), 0);
    tn_module_drop(module);
}
END_TEST

START_TEST(failures_of_the_module_are_failures_of_the_trace)
{
    TN_SCOPE;
    tn_module *net = convolutional();
    tn_tracing_options how = TN_TRACING_OPTIONS;
    ck_assert_ptr_null(tn_module_trace(net, numbers(0), NULL));
    ck_error(TN_ERR_RUNTIME, "module \"0\" (Conv2d)", "conv");
    how.flags = 3;
    ck_assert_ptr_null(tn_module_trace(net, images(), &how));
    ck_error(TN_ERR_VALUE, "flags", "0x3");
    ck_assert_ptr_null(tn_module_trace(net, TN_NONE, NULL));
    ck_error(TN_ERR_TYPE, "input", "TN_NONE");
    ck_made(tn_module_call(net, images())); /* no trace is left open */
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { values_and_foreign_modules_are_refused,
                                   buffers_are_not_changed_by_a_trace,
                                   failures_of_the_module_are_failures_of_the_trace, NULL };
    return suite_run("trace_refusals", tests);
}
