/* SPDX-License-Identifier: MIT
 *
 * Options of a module by name: tn_module_option_get and tn_module_option_set. */
#include "tests/op/suite.h"
#include "tests/module/suite.h"

#include <math.h>

/* Returns the option in a new pack, which the caller drops. */
static tn_pack *got(tn_module *module, const char *name)
{
    tn_pack *pack = tn_pack_new();

    ck_assert_msg(tn_module_option_get(module, name, pack) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_pack_count(pack), 1);
    ck_assert_str_eq(tn_pack_name(pack, 0), name);
    return pack;
}

static void expect_int(tn_module *module, const char *name, int64_t wanted)
{
    tn_pack *pack = got(module, name);
    tn_value value = tn_pack_at(pack, 0);

    ck_assert(value.kind == TN_VALUE_INT || value.kind == TN_VALUE_BOOL);
    ck_assert_int_eq(value.as.i, wanted);
    tn_pack_drop(pack);
}

static void set(tn_module *module, const char *name, tn_value value)
{
    ck_assert_msg(tn_module_option_set(module, name, value) == TN_OK, "%s", tn_error_text());
}

static void expect_print(tn_module *module, const char *wanted)
{
    char text[256];

    tn_module_repr(module, text, sizeof text);
    ck_assert_str_eq(text, wanted);
}

START_TEST(options_of_every_kind_are_read)
{
    tn_module *conv = parsed("Conv2d(2, 4, 3, stride=(2, 1), padding_mode='reflect')");
    tn_module *norm = parsed("BatchNorm2d(4, momentum=None)");
    tn_pack *pack = got(conv, "stride");
    tn_value value = tn_pack_at(pack, 0);

    ck_assert_int_eq(value.kind, TN_VALUE_TUPLE);
    ck_assert_int_eq(value.count, 2);
    ck_assert_int_eq(value.as.list[0].as.i, 2);
    tn_pack_drop(pack);
    pack = got(conv, "padding_mode");
    ck_assert_str_eq(tn_pack_at(pack, 0).as.s, "reflect");
    tn_pack_drop(pack);
    pack = got(norm, "momentum");
    ck_assert_int_eq(tn_pack_at(pack, 0).kind, TN_VALUE_NONE);
    tn_pack_drop(pack);
    pack = got(norm, "eps");
    ck_assert_double_eq(tn_pack_at(pack, 0).as.f, 1e-5);
    tn_pack_drop(pack);
    expect_int(norm, "num_features", 4);
    expect_int(norm, "track_running_stats", 1);
    tn_module_drop(conv);
    tn_module_drop(norm);
}
END_TEST

START_TEST(a_convolution_computes_with_the_stride_that_was_set)
{
    TN_SCOPE;
    tn_module *conv = parsed("Conv2d(1, 1, 1, bias=False)");
    tn_tensor *x = tn_ones(TN_SHAPE(1, 1, 4, 4)), *weight = tn_module_get(conv, "weight");
    tn_value two[2] = { tn_value_int(2), tn_value_int(1) };

    ck_assert_int_eq(tn_tensor_size(tn_module_call(conv, x), 2), 4);
    set(conv, "stride", tn_value_tuple(two, 2));
    ck_assert_int_eq(tn_tensor_size(tn_module_call(conv, x), 2), 2);
    ck_assert_int_eq(tn_tensor_size(tn_module_call(conv, x), 3), 4);
    expect_print(conv, "Conv2d(1, 1, kernel_size=(1, 1), stride=(2, 1), bias=False)");
    ck_assert_ptr_eq(tn_module_get(conv, "weight"), weight);
    set(conv, "stride", tn_value_int(4));
    ck_assert_int_eq(tn_tensor_size(tn_module_call(conv, x), 3), 1);
    set(conv, "padding", tn_value_string("valid"));
    tn_module_drop(conv);
}
END_TEST

/* As in PyTorch, where the buffers stay, and are still used in evaluation. */
START_TEST(a_batch_norm_stops_tracking)
{
    TN_SCOPE;
    tn_module *norm = parsed("BatchNorm1d(1)");
    tn_tensor *x = tn_reshape(tn_arange(TN_NONE, 0, 4), TN_SHAPE(4, 1));

    x = tn_cast(x, TN_F32);
    set(norm, "track_running_stats", tn_value_bool(false));
    ck_assert_ptr_nonnull(tn_module_call(norm, x));
    HAS(tn_module_get(norm, "running_mean"), 0);
    ck_assert_int_eq(tn_module_eval(norm), TN_OK);
    ck_assert_double_eq_tol(at(tn_module_call(norm, x), 3), 3, 1e-4);
    ck_assert_int_eq(tn_module_train(norm, true), TN_OK);
    set(norm, "track_running_stats", tn_value_bool(true));
    set(norm, "momentum", tn_value_float(0.5));
    ck_assert_ptr_nonnull(tn_module_call(norm, x));
    HAS(tn_module_get(norm, "running_mean"), 0.75);
    tn_module_drop(norm);
}
END_TEST

START_TEST(values_derived_from_options_follow_them)
{
    TN_SCOPE;
    tn_module *pool = parsed("AdaptiveAvgPool2d(1)"), *permute = parsed("Permute()");
    tn_tensor *x = tn_ones(TN_SHAPE(1, 2, 6, 4));
    tn_value sizes[2] = { tn_value_none(), tn_value_int(2) };
    tn_value order[4] = { tn_value_int(0), tn_value_int(2), tn_value_int(3), tn_value_int(1) };

    set(pool, "output_size", tn_value_tuple(sizes, 2));
    ck_assert_int_eq(tn_tensor_size(tn_module_call(pool, x), 2), 6);
    ck_assert_int_eq(tn_tensor_size(tn_module_call(pool, x), 3), 2);
    set(permute, "dims", tn_value_list(order, 4));
    ck_assert_int_eq(tn_tensor_size(tn_module_call(permute, x), 3), 2);
    tn_module_drop(pool);
    tn_module_drop(permute);
}
END_TEST

/* As PyTorch does: MViT's pools have lists. */
START_TEST(pools_print_their_numbers_as_they_were_given)
{
    static const char *const same[] = {
        ("MaxPool3d(kernel_size=[1, 3, 3], stride=[1, 2, 2], padding=[0, 1, 1], dilation=1, "
         "ceil_mode=False)"),
        "MaxPool2d(kernel_size=(3, 2), stride=[2], padding=0, dilation=(1, 1), ceil_mode=True)",
        "AvgPool2d(kernel_size=[3, 3], stride=2, padding=[1, 1])",
        "LPPool2d(norm_type=2, kernel_size=[2, 3], stride=None, ceil_mode=False)",
        "AvgPool1d(kernel_size=(3,), stride=(2,), padding=(0,))",
    };
    tn_value two[2] = { tn_value_int(2), tn_value_int(1) };
    tn_module *pool, *copy;
    tn_pack *pack;

    for (int64_t i = 0; i < tn__countof(same); i++) {
        pool = parsed(same[i]);
        expect_print(pool, same[i]);
        tn_module_drop(pool);
    }
    pool = parsed("AvgPool1d([3])");
    expect_print(pool, "AvgPool1d(kernel_size=(3,), stride=(3,), padding=(0,))");
    tn_module_drop(pool);
    pool = parsed("AvgPool2d([3, 3])");
    expect_print(pool, "AvgPool2d(kernel_size=[3, 3], stride=[3, 3], padding=0)");
    pack = got(pool, "kernel_size");
    ck_assert_int_eq(tn_pack_at(pack, 0).kind, TN_VALUE_LIST);
    ck_assert_int_eq(tn_pack_at(pack, 0).as.list[1].as.i, 3);
    tn_pack_drop(pack);
    set(pool, "stride", tn_value_tuple(two, 2));
    copy = tn_module_copy(pool);
    expect_print(copy, "AvgPool2d(kernel_size=[3, 3], stride=(2, 1), padding=0)");
    set(copy, "stride", tn_value_list(two, 2));
    expect_print(copy, "AvgPool2d(kernel_size=[3, 3], stride=[2, 1], padding=0)");
    expect_print(pool, "AvgPool2d(kernel_size=[3, 3], stride=(2, 1), padding=0)");
    set(copy, "stride", tn_value_none());
    expect_print(copy, "AvgPool2d(kernel_size=[3, 3], stride=[3, 3], padding=0)");
    tn_module_drop(copy);
    tn_module_drop(pool);
}
END_TEST

START_TEST(the_weight_of_a_loss_is_its_buffer)
{
    TN_SCOPE;
    tn_module *loss = parsed("CrossEntropyLoss()");
    tn_value numbers[2] = { tn_value_float(0.5), tn_value_int(2) };
    tn_tensor *ones = tn_ones(TN_SHAPE(2));
    tn_pack *pack = got(loss, "weight");

    ck_assert_int_eq(tn_pack_at(pack, 0).kind, TN_VALUE_NONE);
    tn_pack_drop(pack);
    set(loss, "weight", tn_value_list(numbers, 2));
    HAS(tn_module_get(loss, "weight"), 0.5, 2);
    set(loss, "ignore_index", tn_value_int(1)); /* another option leaves it alone */
    HAS(tn_module_get(loss, "weight"), 0.5, 2);
    set(loss, "weight", tn_value_tensor(ones));
    pack = got(loss, "weight");
    ck_assert_ptr_eq(tn_pack_tensor(pack, 0), ones);
    tn_pack_drop(pack);
    set(loss, "weight", tn_value_none());
    ck_assert_ptr_eq(tn_module_get(loss, "weight"), TN_NONE);
    tn_module_drop(loss);
}
END_TEST

static void refused(const char *spec, const char *name, tn_value value, tn_status code,
                    const char *words)
{
    tn_module *module = parsed(spec);
    char before[512], after[512];

    tn_module_spec(module, before, sizeof before);
    ck_assert_msg(tn_module_option_set(module, name, value) == code, "%s: %s: %s", spec, name,
                  tn_error_text());
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s", tn_error_text());
    tn_error_clear();
    tn_module_spec(module, after, sizeof after);
    ck_assert_str_eq(before, after);
    tn_module_drop(module);
}

START_TEST(what_cannot_be_set_is_refused_and_changes_nothing)
{
    tn_pack *pack = tn_pack_new();
    tn_module *linear = parsed("Linear(2, 3)");

    refused("Conv2d(1, 1, 1)", "strides", tn_value_int(2), TN_ERR_KEY, "no option \"strides\"");
    refused("Conv2d(1, 1, 1)", "stride", tn_value_string("x"), TN_ERR_TYPE, "\"stride\"");
    refused("Conv2d(1, 1, 1)", "stride", tn_value_int(0), TN_ERR_VALUE, "stride");
    refused("Conv2d(2, 2, 1)", "groups", tn_value_int(2), TN_ERR_VALUE, "'weight' depends on it");
    refused("Linear(2, 3)", "in_features", tn_value_int(4), TN_ERR_VALUE, "'weight'");
    refused("Linear(2, 3)", "bias", tn_value_bool(false), TN_ERR_VALUE, "'bias' depends on it");
    refused("BatchNorm2d(3, affine=False)", "num_features", tn_value_int(4), TN_ERR_VALUE,
            "'running_mean' depends on it");
    refused("BatchNorm2d(3, track_running_stats=False)", "track_running_stats", tn_value_bool(true),
            TN_ERR_VALUE, "'running_mean' depends on it");
    refused("TransformerEncoderLayer(4, 2, 8)", "dropout", tn_value_float(0.5), TN_ERR_VALUE,
            "depends on it");
    refused("Dropout(0.5)", "p", tn_value_float(1.5), TN_ERR_VALUE, "between 0 and 1");
    refused("LazyLinear(3)", "bias", tn_value_bool(false), TN_ERR_VALUE, "'bias' depends on it");
    refused("Sequential(ReLU())", "entries", tn_value_int(4), TN_ERR_KEY, "no option");
    refused("CrossEntropyLoss()", "weight", tn_value_string("x"), TN_ERR_TYPE, "weight");
    ck_assert_int_eq(tn_module_option_get(linear, "size", pack), TN_ERR_KEY);
    FAILED(TN_ERR_KEY, "Linear: no option \"size\"; accepted: in_features, out_features, bias");
    ck_assert_int_ne(tn_module_option_get(NULL, "size", pack), TN_OK);
    tn_error_clear();
    tn_pack_drop(pack);
    tn_module_drop(linear);
}
END_TEST

static tn_status change_inside(void *user, tn_module *module, const tn_pack *input,
                               tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user, (void)input, (void)replacement, (void)outcome;
    ck_assert_int_eq(tn_module_option_set(module, "p", tn_value_float(0.25)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "the module is being called");
    return TN_OK;
}

START_TEST(a_module_that_is_being_called_keeps_its_options)
{
    TN_SCOPE;
    tn_module *module = parsed("Dropout(0.5)");
    tn_hook_handle hook = tn_module_hook_forward_pre(module, change_inside, 0, NULL, NULL);

    ck_assert_msg(tn_module_call(module, tn_ones(TN_SHAPE(2))) != NULL, "%s", tn_error_text());
    tn_hook_remove(hook);
    set(module, "p", tn_value_float(0.25));
    expect_print(module, "Dropout(p=0.25, inplace=False)");
    tn_module_drop(module);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        options_of_every_kind_are_read,
        a_convolution_computes_with_the_stride_that_was_set,
        a_batch_norm_stops_tracking,
        values_derived_from_options_follow_them,
        pools_print_their_numbers_as_they_were_given,
        the_weight_of_a_loss_is_its_buffer,
        what_cannot_be_set_is_refused_and_changes_nothing,
        a_module_that_is_being_called_keeps_its_options,
        NULL,
    };
    return suite_run("options of modules", tests);
}
