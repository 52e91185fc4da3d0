/* SPDX-License-Identifier: MIT
 *
 * A device with the basic kernels and no others (sdk/operators, flag basic) trains a convolutional
 * network with Adam as the CPU does. */
#include <math.h>
#include <string.h>

#include <tenon/tenon.h>

#include "sdk/conform/reference.h"
#include "tests/op/suite.h"

enum { STEPS = 4, BATCH = 4, SIDE = 8, MOST = 25 };

static int64_t others;

static void saw(void *user, uint64_t token, const tn_op_event *event)
{
    (void)user, (void)token;
    if (event->kernel != NULL && strcmp(event->kernel->device, "reference") == 0 &&
        (event->op->flags & TN_OP_BASIC) == 0)
        others++;
}

static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "test.kernels",
                                          .op_end = saw };

/* The loss of each step. */
static void train(const char *text, const char *device_name, double losses[STEPS])
{
    const tn_device *device = tn_device_find(device_name);
    float pixels[BATCH * SIDE * SIDE];
    int64_t classes[BATCH] = { 3, 1, 4, 1 };
    tn_module *net;
    tn_optimizer *adam;

    ck_assert_msg(device != NULL, "%s", tn_error_text());
    tn_random_seed(7);
    net = tn_module_parse(text);
    ck_assert_msg(net != NULL, "%s", tn_error_text());
    ck_assert_msg(tn_module_to(net, device, TN_DTYPE_AUTO) == TN_OK, "%s", tn_error_text());
    adam = tn_optimizer_new(net, "Adam(lr=0.01)");
    for (int i = 0; i < BATCH * SIDE * SIDE; i++)
        pixels[i] = (float)(i * 37 % 101) / 101;
    for (int step = 0; step < STEPS; step++) {
        TN_SCOPE;
        tn_device_begin(device);
        tn_tensor *x = tn_tensor_from(pixels, TN_F32, TN_SHAPE(BATCH, 1, SIDE, SIDE));
        tn_tensor *y = tn_tensor_from(classes, TN_I64, TN_SHAPE(BATCH));
        tn_device_end();
        tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);
        tn_module_zero_grad(net);
        tn_backward(loss);
        tn_optimizer_step(adam);
        losses[step] = tn_item(loss);
        ck_assert_msg(!tn_failed(), "%s: %s", device_name, tn_error_text());
    }
    tn_optimizer_drop(adam);
    tn_module_drop(net);
}

START_TEST(a_convolutional_network_trains_with_the_basic_kernels)
{
    static const char *const nets[] = {
        "Sequential(Conv2d(1, 4, 3, padding=1), BatchNorm2d(4), ReLU(), MaxPool2d(2), "
        "Conv2d(4, 6, 3), ReLU(), Flatten(), Linear(24, 10))",
        "Sequential(Conv2d(1, 4, 3, stride=2), ReLU(), Dropout(0.25), AvgPool2d(2), Flatten(), "
        "Linear(4, 10))",
    };
    double here[STEPS], there[STEPS];

    ck_assert_msg(conform_reference(TN_OP_BASIC) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_register(&observer), TN_OK);
    for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
        train(nets[n], "cpu", here);
        train(nets[n], "reference", there);
        for (int i = 0; i < STEPS; i++)
            ck_assert_msg(fabs(here[i] - there[i]) < 1e-4, "net %d, step %d: %.9g, got %.9g",
                          (int)n, i, here[i], there[i]);
        ck_assert_msg(here[STEPS - 1] < here[0], "%g to %g", here[0], here[STEPS - 1]);
    }
    ck_assert_int_eq(others, 0);
}
END_TEST

START_TEST(they_are_few_and_primitives)
{
    int64_t count = 0;

    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op_def *def = tn_op_definition(tn_op_find(tn_op_name_at(i), 0));

        if ((def->flags & TN_OP_BASIC) == 0)
            continue;
        count++;
        ck_assert_msg(def->flags & TN_OP_PRIMITIVE, "%s", def->name);
    }
    ck_assert_msg(count > 0 && count <= MOST, "%lld", (long long)count);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("basic kernels");
    TCase *tests = tcase_create("basic kernels");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_convolutional_network_trains_with_the_basic_kernels);
    tcase_add_test(tests, they_are_few_and_primitives);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
