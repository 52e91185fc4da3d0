/* SPDX-License-Identifier: MIT
 *
 * Networks from which channels were removed are built again by their specs, and load their states.
 */
#include "tests/module/prune_network.h"

/* Halves a network, and builds it again. */
static void build_again(const char *text, tn_ints shape, int64_t results, const char *weight,
                        int64_t channels)
{
    TN_SCOPE;
    tn_module *net = network(text), *again;
    tn_tensor *x = random_tensor(shape);
    int64_t length;
    double before[MOST_VALUES];
    tn_state *state;
    char *spec;

    halve(net, x, results);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, weight), 0), channels);
    result(net, x, before, results);
    length = tn_module_spec(net, NULL, 0);
    spec = malloc((size_t)length + 1);
    ck_assert_int_eq(tn_module_spec(net, spec, (size_t)length + 1), length);
    again = parsed(spec);
    ck_assert_str_eq(tn_module_type(again), tn_module_type(net));
    ck_assert_int_eq(tn_module_parameter_count(again), tn_module_parameter_count(net));
    state = tn_module_state(net);
    ok(tn_module_load_state(again, state, true));
    ok(tn_module_eval(again));
    expect_close(again, x, before, results);
    /* and once more */
    halve(again, x, results);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(again, weight), 0), channels / 2);
    tn_state_drop(state);
    tn_module_drop(again);
    tn_module_drop(net);
    free(spec);
}

START_TEST(a_spec_builds_the_smaller_network)
{
    build_again("Sequential(Linear(6, 8), ReLU(), Linear(8, 3))", TN_SHAPE(5, 6), 15, "0.weight",
                4);
    build_again("Sequential(a=Conv2d(3, 8, 3), b=BatchNorm2d(8), c=ReLU(), d=Sequential("
                "Conv2d(8, 8, 3, groups=8), BatchNorm2d(8), Conv2d(8, 4, 1)), e=Flatten(), "
                "f=Linear(16, 5))",
                TN_SHAPE(2, 3, 6, 6), 10, "d.0.weight", 4);
    build_again("resnet18(num_classes=10, width=8)", TN_SHAPE(2, 3, 32, 32), 20,
                "layer4.1.conv2.weight", 32);
    build_again("resnet50(num_classes=4, width=8, layers=[1, 1])", TN_SHAPE(2, 3, 32, 32), 8,
                "layer2.0.conv3.weight", 32);
}
END_TEST

/* The printed form names classes of Python: it has the sizes and the names of the state, but no
 * forward. */
START_TEST(a_printed_form_has_the_sizes_but_no_forward)
{
    TN_SCOPE;
    tn_module *net = network("resnet18(num_classes=10, width=8)"), *again;
    tn_tensor *x = random_tensor(TN_SHAPE(1, 3, 32, 32));
    static char text[1 << 16];
    tn_state *state;

    halve(net, x, 10);
    ck_assert_int_lt(tn_module_repr(net, text, sizeof text), (int64_t)sizeof text);
    again = parsed(text);
    ck_assert_str_eq(tn_module_type(again), "ResNet");
    state = tn_module_state(net);
    ok(tn_module_load_state(again, state, true));
    ck_assert_ptr_null(tn_module_call(again, x));
    tn_error_clear();
    tn_state_drop(state);
    tn_module_drop(again);
    tn_module_drop(net);
}
END_TEST

/* A mask that was not removed is in the state, but not in the spec. */
START_TEST(a_mask_that_stays_needs_a_pruned_network)
{
    TN_SCOPE;
    tn_module *net = network("Sequential(Linear(3, 4), ReLU(), Linear(4, 2))"), *again;
    tn_tensor *x = random_tensor(TN_SHAPE(5, 3));
    double before[10];
    char text[1024];
    tn_state *state;

    ok(tn_prune_from_mask(net, "2.weight", tensor(TN_SHAPE(2, 4), 0, 1, 0, 1, 0, 0, 0, 1)));
    ok(tn_prune_compact(net, &x, 1, NULL, NULL));
    result(net, x, before, 10);
    tn_module_spec(net, text, sizeof text);
    again = parsed(text);
    state = tn_module_state(net);
    ck_assert_int_ne(tn_module_load_state(again, state, true), TN_OK);
    tn_error_clear();
    ok(tn_prune(again, "2.weight", "Identity"));
    ok(tn_module_load_state(again, state, true));
    ok(tn_module_eval(again));
    expect_close(again, x, before, 10);
    tn_state_drop(state);
    tn_module_drop(again);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_spec_builds_the_smaller_network,
        a_printed_form_has_the_sizes_but_no_forward,
        a_mask_that_stays_needs_a_pruned_network,
        NULL,
    };

    return suite_run("reload pruned networks", tests);
}
