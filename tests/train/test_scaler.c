/* SPDX-License-Identifier: MIT
 *
 * Scaling of gradients: the scales and skipped steps of PyTorch (make_scaler.py), the state as
 * text, what is refused, and training of a convolutional network in bfloat16. */
#include <stdio.h>

#include "core/base/internal.h"
#include "tests/op/suite.h"

#include "scaler.h"

static const tn_grad_scaler_options of_reference = { 1000.3, 1.7, 0.3, 4, true };

static void set_bad_gradient(tn_tensor *weight, int step)
{
    float values[3];
    tn_tensor *gradient = tn_tensor_grad(weight);

    ck_assert_int_eq(tn_tensor_copy_out(gradient, values, sizeof values), TN_OK);
    values[step % 3] = step % 2 ? INFINITY : NAN;
    ck_assert_int_eq(tn_tensor_copy_in(gradient, values, sizeof values), TN_OK);
}

START_TEST(scales_and_steps_are_those_of_pytorch)
{
    TN_SCOPE;
    tn_tensor *weight = tn_parameter(VEC(1, -2, 0.5), true);
    tn_optimizer *opt = tn_optimizer_parse(&weight, 1, "SGD(lr=0.01)");
    tn_grad_scaler *scaler = tn_grad_scaler_new(&of_reference), *other;
    char text[256];

    for (int step = 0; step < 100; step++) {
        TN_SCOPE;
        bool bad = step * 31 % 17 == 0 || step * 31 % 17 == 5, taken;

        ck_assert_int_eq(tn_optimizer_zero_grad(opt), TN_OK);
        ck_assert_int_eq(tn_backward(tn_grad_scaler_scale(scaler, tn_sum(tn_mul(weight, weight)))),
                         TN_OK);
        if (bad)
            set_bad_gradient(weight, step);
        ck_assert_int_eq(tn_grad_scaler_step(scaler, opt, &taken), TN_OK);
        ck_assert_int_eq(taken, !bad);
        ck_assert_int_eq(tn_grad_scaler_update(scaler), TN_OK);
        ck_assert_double_eq(tn_grad_scaler_get(scaler), scaler_rows[step].scale);
        ck_assert_int_eq(scaler->growth_tracker, scaler_rows[step].tracker);
        /* the state survives a text to the bit */
        ck_assert_int_lt(tn_grad_scaler_state(scaler, text, sizeof text), (int64_t)sizeof text);
        other = tn_grad_scaler_new(NULL);
        ck_assert_msg(tn_grad_scaler_set_state(other, text) == TN_OK, "%s", tn_error_text());
        ck_assert_double_eq(tn_grad_scaler_get(other), scaler_rows[step].scale);
        ck_assert_int_eq(other->growth_tracker, scaler_rows[step].tracker);
        ck_assert_int_eq(other->options.growth_interval, 4);
        ck_assert_double_eq(other->options.growth_factor, 1.7);
        tn_grad_scaler_drop(other);
    }
    HAS(weight, scaler_weight[0], scaler_weight[1], scaler_weight[2]);
    tn_grad_scaler_drop(scaler);
    tn_optimizer_drop(opt);
    FINE();
}
END_TEST

START_TEST(calls_in_the_wrong_order_are_refused)
{
    TN_SCOPE;
    tn_tensor *weight = tn_parameter(VEC(1, -2, 0.5), true);
    tn_optimizer *opt = tn_optimizer_parse(&weight, 1, "SGD(lr=0.01)");
    tn_grad_scaler_options options = TN_GRAD_SCALER_OPTIONS;
    tn_grad_scaler *scaler = tn_grad_scaler_new(NULL), *off;

    ck_assert_double_eq(tn_grad_scaler_get(scaler), 65536);
    ck_assert_int_ne(tn_grad_scaler_step(scaler, opt, NULL), TN_OK);
    FAILED(TN_ERR_RUNTIME, "Attempted step but _scale is None.");
    ck_assert_int_eq(tn_backward(tn_grad_scaler_scale(scaler, tn_sum(tn_mul(weight, weight)))),
                     TN_OK);
    ck_assert_int_ne(tn_grad_scaler_update(scaler), TN_OK);
    FAILED(TN_ERR_RUNTIME, "No inf checks were recorded prior to update.");
    ck_assert_int_eq(tn_grad_scaler_unscale_(scaler, opt), TN_OK);
    HAS(tn_tensor_grad(weight), 2, -4, 1);
    ck_assert_int_ne(tn_grad_scaler_unscale_(scaler, opt), TN_OK);
    FAILED(TN_ERR_RUNTIME, "unscale_() has already been called on this optimizer");
    ck_assert_int_eq(tn_grad_scaler_step(scaler, opt, NULL), TN_OK);
    HAS(weight, 0.98, -1.96, 0.49);
    ck_assert_int_ne(tn_grad_scaler_step(scaler, opt, NULL), TN_OK);
    FAILED(TN_ERR_RUNTIME, "step() has already been called since the last update().");
    ck_assert_int_ne(tn_grad_scaler_unscale_(scaler, opt), TN_OK);
    FAILED(TN_ERR_RUNTIME, "unscale_() is being called after step().");
    ck_assert_int_eq(tn_grad_scaler_update(scaler), TN_OK);
    ck_assert_int_ne(tn_grad_scaler_set_state(scaler, ""), TN_OK);
    FAILED(TN_ERR_RUNTIME, "The source state dict is empty");
    ck_assert_int_ne(tn_grad_scaler_set_state(scaler, "scale=1, growth=2"), TN_OK);
    FAILED(TN_ERR_VALUE, "wrong text");
    tn_grad_scaler_drop(scaler);
    options.growth_factor = 1;
    ck_assert_ptr_null(tn_grad_scaler_new(&options));
    FAILED(TN_ERR_VALUE, "The growth factor must be > 1.0");
    options.growth_factor = 2;
    options.backoff_factor = 1;
    ck_assert_ptr_null(tn_grad_scaler_new(&options));
    FAILED(TN_ERR_VALUE, "The backoff factor must be < 1.0");
    options.enabled = false;
    off = tn_grad_scaler_new(&options);
    ck_assert_double_eq(tn_grad_scaler_get(off), 1);
    ck_assert_ptr_eq(tn_grad_scaler_scale(off, weight), weight);
    ck_assert_int_eq(tn_grad_scaler_step(off, opt, NULL), TN_OK);
    ck_assert_int_eq(tn_grad_scaler_update(off), TN_OK);
    tn_grad_scaler_drop(off);
    tn_optimizer_drop(opt);
    FINE();
}
END_TEST

START_TEST(every_allocation_of_a_step_can_fail)
{
    TN_SCOPE;
    tn_tensor *weight = tn_parameter(VEC(1, -2, 0.5), true);
    tn_optimizer *opt = tn_optimizer_parse(&weight, 1, "SGD(lr=0.01)");
    bool done = false;

    for (int64_t n = 1; !done; n++) {
        TN_SCOPE;
        tn_grad_scaler *scaler;
        tn_status status = TN_ERR_MEMORY;

        ck_assert_int_lt(n, 1000);
        ck_assert_int_eq(tn_tensor_set_grad(weight, VEC(1, 1, 1)), TN_OK);
        tn__memory_fail((uint64_t)n);
        scaler = tn_grad_scaler_new(NULL);
        if (scaler != NULL && tn_grad_scaler_scale(scaler, weight) != NULL)
            status = tn_grad_scaler_step(scaler, opt, NULL);
        done = (int64_t)tn__memory_fail(0) < n;
        ck_assert(done ? status == TN_OK : tn_failed() && tn_error_code() == TN_ERR_MEMORY);
        tn_error_clear();
        tn_grad_scaler_drop(scaler);
    }
    tn_optimizer_drop(opt);
    FINE();
}
END_TEST

/* Trains a small convolutional network on the bundled digits and returns its accuracy on those that
 * it has not seen, in percent. */
static double train(bool autocast)
{
    enum { EPOCHS = 3, ROOM = 359 };
    tn_dataset *seen = tn_dataset_parse("Digits(split='train')");
    tn_dataset *unseen = tn_dataset_parse("Digits(split='test')");
    tn_loader *batches = tn_loader_new(seen, "batch_size=32, shuffle=True, seed=3");
    tn_loader *whole = tn_loader_new(unseen, "batch_size=%d", ROOM);
    tn_module *net;
    tn_optimizer *opt;
    tn_pack *pack;
    int64_t found[ROOM], labels[ROOM];
    double right = 0;

    ck_assert_msg(batches != NULL && whole != NULL, "%s", tn_error_text());
    tn_random_seed(7);
    net = tn_module_new("Sequential(Conv2d(1, 8, 3, padding=1), ReLU(), MaxPool2d(2), "
                        "Conv2d(8, 16, 3, padding=1), ReLU(), MaxPool2d(2), Flatten(), "
                        "Linear(64, 10))");
    ck_assert_msg(net != NULL, "%s", tn_error_text());
    opt = tn_optimizer_new(net, "Adam(lr=1e-2)");
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        while ((pack = tn_loader_next(batches)) != NULL) {
            TN_SCOPE;
            tn_tensor *x = tn_reshape(tn_pack_tensor(pack, 0), TN_SHAPE(-1, 1, 8, 8)), *loss;

            ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, autocast), TN_OK);
            loss = tn_cross_entropy(tn_module_call(net, x), tn_pack_tensor(pack, 1));
            tn_autocast_end();
            ck_assert_int_eq(tn_optimizer_zero_grad(opt), TN_OK);
            ck_assert_msg(tn_backward(loss) == TN_OK, "%s", tn_error_text());
            ck_assert_int_eq(tn_optimizer_step(opt), TN_OK);
        }
    pack = tn_loader_next(whole);
    ck_assert_msg(pack != NULL, "%s", tn_error_text());
    TN_SCOPE;
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, autocast), TN_OK);
    tn_tensor *y = tn_module_call(net, tn_reshape(tn_pack_tensor(pack, 0), TN_SHAPE(-1, 1, 8, 8)));
    tn_autocast_end();
    ck_assert_int_eq(tn_tensor_dtype(y), autocast ? TN_BF16 : TN_F32);
    ck_assert_int_eq(tn_tensor_copy_out(tn_argmax(y, 1), found, sizeof found), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(tn_pack_tensor(pack, 1), labels, sizeof labels), TN_OK);
    for (int i = 0; i < ROOM; i++)
        right += found[i] == labels[i];
    tn_optimizer_drop(opt);
    tn_module_drop(net);
    tn_loader_drop(batches);
    tn_loader_drop(whole);
    tn_dataset_drop(seen);
    tn_dataset_drop(unseen);
    FINE();
    return 100.0 * right / ROOM;
}

START_TEST(a_network_trained_in_bfloat16_is_as_accurate_as_in_float32)
{
    double wide = train(false), low = train(true);

    printf("accuracy in float32 %.1f %%, in bfloat16 %.1f %%\n", wide, low);
    ck_assert_msg(wide > 90 && low > wide - 1, "float32: %g %%, bfloat16: %g %%", wide, low);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scaler");
    TCase *tcase = tcase_create("scaler");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, scales_and_steps_are_those_of_pytorch);
    tcase_add_test(tcase, calls_in_the_wrong_order_are_refused);
    tcase_add_test(tcase, every_allocation_of_a_step_can_fail);
    tcase_add_test(tcase, a_network_trained_in_bfloat16_is_as_accurate_as_in_float32);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
