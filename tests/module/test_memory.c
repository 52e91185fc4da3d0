/* SPDX-License-Identifier: MIT
 *
 * Law 4: every allocation of building, calling, training, saving and loading a small network is made to fail in turn:
 * an error each time, nothing left behind, and the file on the disk is the old one or the new one. */
#include "tests/module/probe.h"

#include <unistd.h>

static const float xs[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };
static const int64_t ys[4] = { 0, 1, 1, 0 };
static char file[128];

/* All that a small program does; whatever fails, what was made is dropped. */
static void use(void)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(fc=Linear(2, %d), act=ReLU(), out=Linear(3, 2))", 3);
    tn_module *copy = tn_module_parse("Sequential(fc=Linear(2, 3), act=ReLU(), out=Linear(3, 2))");
    tn_optimizer *optimizer = tn_optimizer_new(net, "Adam(lr=0.1, weight_decay=0.1, amsgrad=True)");
    tn_scheduler *scheduler = tn_scheduler_new(optimizer, "StepLR(step_size=%d)", 1);
    for (int step = 0; step < 2 && !tn_failed(); step++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from(xs, TN_F32, TN_SHAPE(4, 2));
        tn_tensor *y = tn_tensor_from(ys, TN_I64, TN_SHAPE(4));
        tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y, NULL);
        tn_module_zero_grad(net);
        tn_backward(loss);
        tn_optimizer_step(optimizer);
        tn_scheduler_step(scheduler);
    }
    char text[256];
    if (!tn_failed())
        tn_module_spec(net, text, sizeof text);
    if (!tn_failed())
        tn_module_repr(net, text, sizeof text);
    if (!tn_failed())
        tn_module_to(net, NULL, TN_F64);
    if (tn_registry_count(TN_KIND_tn_format) > 0) {
        tn_module_save(net, file);
        if (!tn_failed())
            tn_module_load(copy, file);
    }
    if (!tn_failed())
        tn_module_to(net, NULL, TN_F32);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
    tn_module_drop(copy);
    tn_module_drop(net);
}

START_TEST(each_allocation_of_a_small_network_fails_in_turn_law_4)
{
    tn_snprint(file, sizeof file, "memory-%d.safetensors", (int)getpid());
    use();
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    int64_t live = live_bytes(), nodes = tn_graph_node_count();
    uint64_t failures = 0;
    for (uint64_t n = 1; n < 100000; n++) {
        tn__fail_alloc(n);
        use();
        bool reached = tn__fail_alloc(0) >= n;
        ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        failures += tn_failed();
        tn_error_clear();
        ck_assert_int_eq(live_bytes(), live);
        ck_assert_int_eq(tn_graph_node_count(), nodes);
        if (!reached)
            break;
    }
    ck_assert_uint_gt(failures, 50);
    unlink(file);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { each_allocation_of_a_small_network_fails_in_turn_law_4, NULL };
    return suite_run("memory", tests);
}
