/* SPDX-License-Identifier: MIT
 *
 * Ports of PyTorch's tests of averaged models (test/optim/test_swa_utils.py), under the same names.
 * docs/reference/ported-tests.md lists all names. */
#include "tests/base/suite.h"

#include <math.h>
#include <unistd.h>

enum { UPDATES = 10, MOST = 16, OBJECTS = 100, BATCH = 5 };

static const char net_spec[] =
    "Sequential(Conv2d(1, 5, 3), ReLU(), MaxPool2d(2), BatchNorm2d(5, momentum=0.3), "
    "Conv2d(5, 2, 3), ReLU(), Linear(5, 5), ReLU(), Linear(5, 10))";

static tn_tensor *on(tn_tensor *tensor, const tn_device *device)
{
    return tn_copy_(tn_tensor_empty(tn_tensor_shape(tensor), tn_tensor_dtype(tensor), device),
                    tn_detach(tensor));
}

/* Adds random numbers to tensors of a module. */
static void disturb(tn_tensor *const *tensors, int64_t count)
{
    tn_grad_begin(false);
    for (int64_t i = 0; i < count; i++) {
        TN_SCOPE;
        tn_tensor *noise = tn_sub(tn_rand(tn_tensor_shape(tensors[i])),
                                  tn_tensor_full(TN_SCALAR_SHAPE, 0.5, TN_F32, NULL));

        ck_assert_msg(tn_add_(tensors[i], on(noise, tn_tensor_device(tensors[i]))) != NULL, "%s",
                      tn_error_text());
    }
    tn_grad_end();
}

static void expect_close(tn_tensor *got, tn_tensor *wanted, const char *what)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");

    ck_assert_msg(tn_allclose(on(got, cpu), on(wanted, cpu), 1.3e-6, 1e-5) == 1, "%s: %s", what,
                  tn_error_text());
}

/* The average of `value` after update `i`, by the formula of the rule. */
static tn_tensor *next_average(tn_tensor *before, tn_tensor *value, int i, double decay)
{
    double weight = isnan(decay) ? 1.0 / (i + 1) : i == 0 ? 1 : 1 - decay;

    return tn_add(tn_mul_scalar(before, 1 - weight), tn_mul_scalar(tn_detach(value), weight));
}

static void follow(tn_module *net, const tn_device *device, double decay)
{
    TN_SCOPE;
    tn_average_options options = TN_AVERAGE_OPTIONS;
    tn_tensor *list[MOST], *averages[MOST], *wanted[MOST];
    int64_t count = tn_module_parameters(net, list, MOST);
    tn_module *average;

    ck_assert_int_le(count, MOST);
    options.device = device;
    options.kind = isnan(decay) ? TN_AVERAGE_EQUAL : TN_AVERAGE_EXPONENTIAL;
    options.decay = isnan(decay) ? 0.5 : decay;
    average = tn_average_new(net, &options);
    ck_assert_msg(average != NULL, "%s", tn_error_text());
    for (int64_t i = 0; i < count; i++)
        wanted[i] = tn_mul_scalar(tn_detach(list[i]), 0);
    for (int i = 0; i < UPDATES; i++) {
        disturb(list, count);
        for (int64_t k = 0; k < count; k++)
            wanted[k] = next_average(wanted[k], list[k], i, decay);
        ck_assert_msg(tn_average_update(average, net) == TN_OK, "%s", tn_error_text());
    }
    ck_assert_int_eq(tn_module_parameters(average, averages, MOST), count);
    for (int64_t i = 0; i < count; i++) {
        expect_close(averages[i], wanted[i], "an averaged parameter");
        ck_assert_ptr_eq(tn_tensor_device(averages[i]),
                         device != NULL ? device : tn_tensor_device(list[i]));
    }
    ck_assert_int_eq(tn_average_count(average), UPDATES);
    if (device != NULL)
        ck_assert_ptr_eq(tn_tensor_device(tn_module_get(average, "n_averaged")), device);
    tn_module_drop(average);
}

/* test_averaged_model_all_devices */
START_TEST(averages_on_every_device_of_a_model_on_every_device)
{
    for (int64_t a = 0; a < tn_device_count(); a++)
        for (int64_t b = 0; b < tn_device_count(); b++)
            for (int ema = 0; ema < 2; ema++) {
                tn_module *net;

                if (!tn_device_has_memory(tn_device_at(a)) ||
                    !tn_device_has_memory(tn_device_at(b)))
                    continue;
                net = tn_module_new("%s", net_spec);
                ck_assert_int_eq(tn_module_to(net, tn_device_at(a), TN_DTYPE_AUTO), TN_OK);
                follow(net, tn_device_at(b), ema == 1 ? 0.999 : (double)NAN);
                tn_module_drop(net);
            }
}
END_TEST

/* test_averaged_model_mixed_device: each layer on a device of its own. */
START_TEST(averages_stay_on_the_devices_of_their_layers)
{
    const tn_device *last = NULL;

    for (int64_t i = 0; i < tn_device_count(); i++)
        if (tn_device_has_memory(tn_device_at(i)))
            last = tn_device_at(i);
    for (int ema = 0; ema < 2; ema++) {
        tn_module *net = tn_module_new("Sequential(Conv2d(1, 5, 3), Linear(5, 10))");

        ck_assert_int_eq(tn_module_to(tn_module_child(net, "0"), last, TN_DTYPE_AUTO), TN_OK);
        follow(net, NULL, ema == 1 ? 0.999 : (double)NAN);
        tn_module_drop(net);
    }
}
END_TEST

/* test_averaged_model_state_dict, test_averaged_model_default_avg_fn_picklable */
START_TEST(an_averaged_model_is_loaded_from_the_state_of_another)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Conv2d(1, 5, 3), BatchNorm2d(5), Linear(5, 10))");
    tn_module *one = tn_average_new(net, NULL), *other = tn_average_new(net, NULL);
    tn_tensor *list[MOST], *a[MOST], *b[MOST];
    int64_t count = tn_module_parameters(net, list, MOST);
    char path[64];
    tn_state *state;

    for (int i = 0; i < UPDATES; i++) {
        disturb(list, count);
        ck_assert_int_eq(tn_average_update(one, net), TN_OK);
    }
    state = tn_module_state(one);
    tn_snprint(path, sizeof path, "ported-%d.safetensors", (int)getpid());
    ck_assert_int_eq(tn_state_save(state, path), TN_OK);
    tn_state_drop(state);
    state = tn_state_load(path);
    unlink(path);
    ck_assert_int_eq(tn_module_load_state(other, state, true), TN_OK);
    tn_state_drop(state);
    ck_assert_int_eq(tn_module_parameters(one, a, MOST), count);
    ck_assert_int_eq(tn_module_parameters(other, b, MOST), count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(tn_equal(tn_detach(a[i]), tn_detach(b[i])), 1);
    ck_assert_int_eq(tn_average_count(other), UPDATES);
    tn_module_drop(one);
    tn_module_drop(other);
    tn_module_drop(net);
}
END_TEST

static tn_tensor *own_rule(void *user, tn_tensor *average, tn_tensor *value, int64_t count)
{
    (void)user, (void)count;
    return tn_add(tn_mul_scalar(average, 0.9), tn_mul_scalar(value, 0.1));
}

/* test_averaged_model_exponential */
START_TEST(exponential_averages_with_and_without_buffers)
{
    static const char *const buffers[] = { "1.running_mean", "1.running_var" };

    for (int way = 0; way < 4; way++) {
        TN_SCOPE;
        tn_module *net = tn_module_new(
            "Sequential(Conv2d(1, 5, 3), BatchNorm2d(5, momentum=0.3), Linear(5, 10))");
        tn_average_options options = TN_AVERAGE_OPTIONS;
        tn_tensor *list[MOST], *averages[MOST], *wanted[MOST];
        int64_t parameters = tn_module_parameters(net, list, MOST), count = parameters;
        tn_module *average;

        for (int i = 0; i < 2; i++)
            list[count++] = tn_module_find_tensor(net, buffers[i]);
        options.use_buffers = way / 2 == 1;
        if (way % 2 == 1) {
            options.one = own_rule;
        } else {
            options.kind = TN_AVERAGE_EXPONENTIAL;
            options.decay = 0.9;
        }
        average = tn_average_new(net, &options);
        for (int64_t i = 0; i < count; i++)
            wanted[i] = tn_mul_scalar(tn_detach(list[i]), 0);
        for (int i = 0; i < UPDATES; i++) {
            disturb(list, count);
            for (int64_t k = 0; k < count; k++)
                wanted[k] = k < parameters || options.use_buffers
                                ? next_average(wanted[k], list[k], i, 0.9)
                                : tn_clone(list[k]);
            ck_assert_int_eq(tn_average_update(average, net), TN_OK);
        }
        ck_assert_int_eq(tn_module_parameters(average, averages, MOST), parameters);
        for (int i = 0; i < 2; i++)
            averages[parameters + i] = tn_module_find_tensor(tn_module_child(average, "module"),
                                                             buffers[i]);
        for (int64_t i = 0; i < count; i++)
            expect_close(averages[i], wanted[i], i < parameters ? "a parameter" : "a buffer");
        tn_module_drop(average);
        tn_module_drop(net);
    }
}
END_TEST

/* ---- running statistics ---------------------------------------------------------------------- */

struct loader {
    tn_tensor *all;
    int64_t at;
};

static tn_tensor *next_batch(void *user)
{
    struct loader *loader = user;

    if (loader->at == OBJECTS)
        return TN_NONE;
    loader->at += BATCH;
    return tn_narrow(loader->all, 0, loader->at - BATCH, BATCH);
}

/* The mean and variance of the values that the norm gets, over all objects and places. */
static void expect_statistics(tn_module *net, tn_tensor *all)
{
    TN_SCOPE;
    tn_module *norm = tn_module_child(net, "1");
    tn_tensor *x = tn_detach(tn_module_call(tn_module_child(net, "0"), all)), *mean, *squares;
    tn_sum_options over = TN_SUM_OPTIONS;
    double count;

    if (tn_tensor_ndim(x) == 4)
        x = tn_transpose(x, 1, 3);
    x = tn_reshape(tn_copy(x), TN_SHAPE(-1, tn_tensor_size(x, -1)));
    count = (double)tn_tensor_size(x, 0);
    over.dims = (tn_ints){ (int64_t[]){ 0 }, 1 };
    mean = tn_mul_scalar(tn_sum(x, over.dims), 1 / count);
    squares = tn_mul_scalar(tn_sum(tn_square(x), over.dims), 1 / count);
    ck_assert_int_eq(tn_allclose(tn_module_get(norm, "running_mean"), mean, 1.3e-6, 1e-5), 1);
    ck_assert_int_eq(
        tn_allclose(tn_module_get(norm, "running_var"), tn_sub(squares, tn_square(mean)), 0, 1e-1),
        1);
}

static void update(const char *spec, tn_ints shape, bool training)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("%s", spec), *norm;
    struct loader loader = { tn_rand(shape), 0 };
    char text[256];

    ck_assert_msg(net != NULL, "%s", tn_error_text());
    norm = tn_module_child(net, "1");
    ck_assert_int_eq(tn_module_train(net, training), TN_OK);
    for (int round = 0; round < 2; round++) {
        loader.at = 0;
        ck_assert_msg(tn_module_update_statistics(net, next_batch, &loader, NULL) == TN_OK, "%s",
                      tn_error_text());
        expect_statistics(net, loader.all);
        ck_assert_int_eq(tn_module_is_training(net), training);
        tn_module_repr(norm, text, sizeof text);
        ck_assert_ptr_nonnull(strstr(text, "momentum=0.3"));
        /* The second round begins with other statistics. */
        tn_grad_begin(false);
        ck_assert_ptr_nonnull(tn_fill_(tn_module_get(norm, "running_mean"), 0));
        ck_assert_ptr_nonnull(tn_fill_(tn_module_get(norm, "running_var"), 1));
        tn_grad_end();
    }
    tn_module_drop(net);
}

/* test_update_bn_dnn, test_update_bn_cnn, test_bn_update_eval_momentum */
START_TEST(running_statistics_are_those_of_all_batches)
{
    static const char dnn[] = "Sequential(Linear(5, 100), BatchNorm1d(100, momentum=0.3))";
    static const char cnn[] =
        "Sequential(Conv2d(3, 10, 3, padding=1), BatchNorm2d(10, momentum=0.3))";

    update(dnn, TN_SHAPE(OBJECTS, 5), true);
    update(cnn, TN_SHAPE(OBJECTS, 3, 5, 5), true);
    update(cnn, TN_SHAPE(OBJECTS, 3, 5, 5), false);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        averages_on_every_device_of_a_model_on_every_device,
        averages_stay_on_the_devices_of_their_layers,
        an_averaged_model_is_loaded_from_the_state_of_another,
        exponential_averages_with_and_without_buffers,
        running_statistics_are_those_of_all_batches,
        NULL,
    };
    return suite_run("ported-averaging", tests);
}
