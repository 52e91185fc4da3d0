/* SPDX-License-Identifier: MIT
 *
 * Training on every device: a small network learns xor with the same losses on all devices; on the
 * CPU with the same bits for any number of threads. */
#include "tests/backend/backend.h"

enum { STEPS = 120 };

static void train(const tn_device *device, int steps, double *losses)
{
    static const float xs[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };
    static const int64_t ys[4] = { 0, 1, 1, 0 };
    ok(tn_set_default_device(tn_device_name(device)));
    tn_random_seed(1);
    tn_module *net = tn_module_new("Sequential(Linear(2, 16), ReLU(), Linear(16, 2))");
    there(net);
    tn_optimizer *opt = tn_optimizer_new(net, "Adam(lr=3e-2)");
    there(opt);
    for (int step = 0; step < steps; step++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from(xs, TN_F32, TN_SHAPE(4, 2));
        tn_tensor *y = tn_tensor_from(ys, TN_I64, TN_SHAPE(4));
        tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);
        ok(tn_module_zero_grad(net));
        ok(tn_backward(loss));
        ok(tn_optimizer_step(opt));
        ck_assert_ptr_eq(tn_tensor_device(loss), device);
        losses[step] = tn_item(loss);
    }
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    tn_optimizer_drop(opt);
    tn_module_drop(net);
}

START_TEST(xor_is_learned_on_every_device_with_the_same_losses)
{
    double first[STEPS], losses[STEPS];
    bool have = false;
    EACH_DEVICE(device)
    {
        train(device, STEPS, losses);
        ck_assert_msg(losses[STEPS - 1] < 0.1, "%s: loss %g after %d steps", tn_device_name(device),
                      losses[STEPS - 1], STEPS);
        for (int i = 0; i < STEPS; i++) {
            if (!have)
                first[i] = losses[i];
            ck_assert_msg(fabs(losses[i] - first[i]) <= 1e-4 * (1 + (double)i / 20),
                          "%s: loss %.9g at step %d, %.9g on %s", tn_device_name(device), losses[i],
                          i, first[i], tn_device_name(devices()[0]));
        }
        have = true;
    }
}
END_TEST

START_TEST(losses_on_the_cpu_are_equal_to_the_bit_for_any_number_of_threads)
{
    double first[30], losses[30];
    const tn_device *cpu = tn_device_find("cpu");
    for (int threads = 1; threads <= 4; threads *= 2) {
        ok(tn_set_num_threads(threads));
        train(cpu, 30, losses);
        if (threads == 1)
            memcpy(first, losses, sizeof first);
        ck_assert_mem_eq(first, losses, sizeof first);
    }
}
END_TEST

/* Wide enough that several threads share products, sums and elementwise operators. */
START_TEST(a_wide_network_is_equal_to_the_bit_for_any_number_of_threads)
{
    double first[2], losses[2];
    const tn_device *cpu = tn_device_find("cpu");
    ok(tn_set_default_device("cpu"));
    for (int threads = 1; threads <= 4; threads *= 2) {
        ok(tn_set_num_threads(threads));
        tn_random_seed(3);
        tn_module *net = tn_module_new("Sequential(Linear(300, 512), ReLU(), Linear(512, 10))");
        tn_optimizer *opt = tn_optimizer_new(net, "SGD(lr=0.1, momentum=0.9)");
        there(opt);
        for (int step = 0; step < 2; step++) {
            TN_SCOPE;
            tn_tensor *x = tn_philox_normal(tn_tensor_empty(TN_SHAPE(160, 300), TN_F32, cpu),
                                            TN_NONE, 0, 1, 9, 0);
            tn_tensor *y = tn_tensor_full(TN_SHAPE(160), 3, TN_I64, cpu);
            tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);
            ok(tn_module_zero_grad(net));
            ok(tn_backward(loss));
            ok(tn_optimizer_step(opt));
            losses[step] = tn_item(loss);
        }
        tn_optimizer_drop(opt);
        tn_module_drop(net);
        if (threads == 1)
            memcpy(first, losses, sizeof first);
        ck_assert_mem_eq(first, losses, sizeof first);
    }
    ck_assert_double_lt(first[1], first[0]);
}
END_TEST

/* Trains a network for three steps. Returns all weights in a row; `count`: how many numbers. */
static float *learn(const char *net_spec, tn_tensor *x, int64_t *count)
{
    tn_module *net;
    tn_optimizer *opt;
    float *all = NULL;

    tn_random_seed(5);
    net = tn_module_parse(net_spec);
    there(net);
    opt = tn_optimizer_new(net, "SGD(lr=0.05, momentum=0.9)");
    there(opt);
    for (int step = 0; step < 3; step++) {
        TN_SCOPE;
        tn_tensor *y = tn_tensor_full(TN_SHAPE(tn_tensor_size(x, 0)), 3, TN_I64, NULL);
        ok(tn_module_zero_grad(net));
        ok(tn_backward(tn_cross_entropy(tn_module_call(net, x), y)));
        ok(tn_optimizer_step(opt));
    }
    *count = 0;
    for (int64_t i = 0; i < tn_optimizer_count(opt); i++) {
        tn_tensor *weight = tn_optimizer_parameter(opt, i);
        int64_t n = tn_tensor_numel(weight);
        all = realloc(all, (size_t)(*count + n) * sizeof *all);
        ck_assert_ptr_nonnull(all);
        ok(tn_tensor_copy_out(weight, all + *count, (size_t)n * sizeof *all));
        *count += n;
    }
    tn_optimizer_drop(opt);
    tn_module_drop(net);
    return all;
}

static void same_for_threads(const char *net, tn_tensor *x)
{
    int64_t first_count = 0, count;
    float *first = NULL, *now;

    for (int threads = 1; threads <= 4; threads *= 2) {
        ok(tn_set_num_threads(threads));
        now = learn(net, x, &count);
        if (first == NULL) {
            first = now;
            first_count = count;
            continue;
        }
        ck_assert_int_eq(count, first_count);
        ck_assert_mem_eq(first, now, (size_t)count * sizeof *now);
        free(now);
    }
    free(first);
}

/* Large enough for Winograd's tiles, and with a stride, pooling and normalization. */
START_TEST(a_network_of_convolutions_learns_the_same_to_the_bit_for_any_number_of_threads)
{
    TN_SCOPE;
    static const char net[] =
        "Sequential(Conv2d(3, 32, 3, padding=1), BatchNorm2d(32), ReLU(), "
        "Conv2d(32, 32, 3, padding=1), ReLU(), MaxPool2d(2), Conv2d(32, 40, 3, stride=2), "
        "BatchNorm2d(40), ReLU(), Flatten(), Linear(640, 10))";
    static const int64_t last[4] = { 1200, 1, 60, 3 };
    tn_tensor *x, *side;

    ok(tn_set_default_device("cpu"));
    x = tn_philox_normal(tn_tensor_empty(TN_SHAPE(4, 3, 20, 20), TN_F32, NULL), TN_NONE, 0, 1, 9,
                         0);
    side = tn_copy_(
        tn_tensor_empty_strided(TN_SHAPE(4, 3, 20, 20), (tn_ints){ last, 4 }, TN_F32, NULL), x);
    same_for_threads(net, x);
    same_for_threads(net, side);
}
END_TEST

START_TEST(a_transformer_learns_the_same_to_the_bit_for_any_number_of_threads)
{
    TN_SCOPE;
    static const char net[] =
        "Sequential(TransformerEncoderLayer(64, 4, dim_feedforward=192, dropout=0.0, "
        "batch_first=True), Flatten(), Linear(2560, 10))";

    ok(tn_set_default_device("cpu"));
    same_for_threads(net, tn_philox_normal(tn_tensor_empty(TN_SHAPE(6, 40, 64), TN_F32, NULL),
                                           TN_NONE, 0, 1, 9, 0));
}
END_TEST

RUN_SUITE("training", xor_is_learned_on_every_device_with_the_same_losses,
          losses_on_the_cpu_are_equal_to_the_bit_for_any_number_of_threads,
          a_wide_network_is_equal_to_the_bit_for_any_number_of_threads,
          a_network_of_convolutions_learns_the_same_to_the_bit_for_any_number_of_threads,
          a_transformer_learns_the_same_to_the_bit_for_any_number_of_threads)
