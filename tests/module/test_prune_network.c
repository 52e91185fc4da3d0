/* SPDX-License-Identifier: MIT
 *
 * Channels of networks: which belong together, masks of whole channels, and networks from which
 * channels are removed without a change of the results. */
#include <tenon/parametrize.h>

#include "tests/module/prune_network.h"

static void expect_spec(tn_module *net, const char *wanted)
{
    char text[4096];

    tn_module_spec(net, text, sizeof text);
    ck_assert_str_eq(text, wanted);
}

START_TEST(rows_of_linear_layers_are_removed_prn_019)
{
    TN_SCOPE;
    tn_module *net = network(
        "Sequential(Linear(6, 8), ReLU(), Linear(8, 4), Tanh(), Linear(4, 3))");
    tn_tensor *x = random_tensor(TN_SHAPE(5, 6)), *weight = tn_module_find_tensor(net, "0.weight");
    tn_prune_report report = halve(net, x, 15);

    expect_spec(net, "Sequential(Linear(in_features=6, out_features=4, bias=True), "
                     "ReLU(inplace=False), Linear(in_features=4, out_features=2, bias=True), "
                     "Tanh(), Linear(in_features=2, out_features=3, bias=True))");
    ck_assert_int_eq(report.channels_before, 15);
    ck_assert_int_eq(report.channels_removed, 6);
    ck_assert_int_eq(report.parameters_before, 6 * 8 + 8 + 8 * 4 + 4 + 4 * 3 + 3);
    ck_assert_int_eq(report.parameters_after, 6 * 4 + 4 + 4 * 2 + 2 + 2 * 3 + 3);
    ck_assert_ptr_eq(tn_module_find_tensor(net, "0.weight"), weight);
    ck_assert_int_eq(tn_tensor_size(weight, 0), 4);
    ck_assert(tn_tensor_requires_grad(weight));
    /* it can still be trained */
    ok(tn_module_train(net, true));
    ok(tn_backward(tn_sum(tn_module_call(net, x))));
    ck_assert_int_eq(tn_tensor_size(tn_tensor_grad(weight), 0), 4);
    tn_module_drop(net);
}
END_TEST

START_TEST(channels_go_through_convolutions_normalizations_and_flatten)
{
    TN_SCOPE;
    tn_module *net = network(
        "Sequential(Conv2d(3, 8, 3, padding=1), BatchNorm2d(8), ReLU(), MaxPool2d(2), "
        "Conv2d(8, 8, 3, padding=1, groups=8), BatchNorm2d(8), Hardswish(), Conv2d(8, 6, 1, "
        "bias=False), BatchNorm2d(6), ReLU(), Flatten(), Linear(54, 4))");
    tn_tensor *x = random_tensor(TN_SHAPE(2, 3, 6, 6));

    halve(net, x, 8);
    expect_spec(
        net,
        "Sequential(Conv2d(in_channels=3, out_channels=4, kernel_size=(3,), stride=(1,), "
        "padding=1, dilation=(1,), groups=1, bias=True, padding_mode='zeros'), "
        "BatchNorm2d(num_features=4, eps=1e-05, momentum=0.1, affine=True, "
        "track_running_stats=True, bias=True), ReLU(inplace=False), MaxPool2d(kernel_size=(2,), "
        "stride=None, padding=(0,), dilation=(1,), return_indices=False, ceil_mode=False), "
        "Conv2d(in_channels=4, out_channels=4, kernel_size=(3,), stride=(1,), padding=1, "
        "dilation=(1,), groups=4, bias=True, padding_mode='zeros'), BatchNorm2d(num_features=4, "
        "eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, bias=True), "
        "Hardswish(inplace=False), Conv2d(in_channels=4, out_channels=3, kernel_size=(1,), "
        "stride=(1,), padding=0, dilation=(1,), groups=1, bias=False, padding_mode='zeros'), "
        "BatchNorm2d(num_features=3, eps=1e-05, momentum=0.1, affine=True, "
        "track_running_stats=True, bias=True), ReLU(inplace=False), Flatten(start_dim=1, "
        "end_dim=-1), Linear(in_features=27, out_features=4, bias=True))");
    tn_module_drop(net);
}
END_TEST

static tn_status count_call(void *user, tn_module *module, const tn_pack *input,
                            tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)module, (void)input, (void)replacement, (void)outcome;
    ++*(int *)user;
    return TN_OK;
}

START_TEST(channels_that_a_residual_connection_adds_go_together)
{
    TN_SCOPE;
    tn_module *net = network("resnet18(num_classes=10)");
    tn_tensor *x = random_tensor(TN_SHAPE(1, 3, 32, 32));
    int calls = 0;
    tn_hook_handle hook = tn_module_hook_forward_pre(net, count_call, 0, &calls, NULL);
    tn_prune_report report = halve(net, x, 10);

    /* Modules whose results no module reads together are tested together: three groups of twelve
     * calls, instead of ten calls for each of the 21 modules. This is done twice, and two calls
     * compare the results. Without groups there would be over 400 calls. */
    tn_hook_remove(hook);
    ck_assert_int_le(calls, 130);
    /* half of the channels, except the ten results */
    ck_assert_int_eq(report.channels_removed * 2 + 10, report.channels_before);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "layer4.1.conv2.weight"), 0), 256);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "layer4.0.downsample.0.weight"), 1),
                     128);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "conv1.weight"), 1), 3);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "fc.weight"), 1), 256);
    ck_assert_msg(report.parameters_after * 3.9 < (double)report.parameters_before, "%lld of %lld",
                  (long long)report.parameters_after, (long long)report.parameters_before);
    TN_PROVES("PRN-019");
    tn_module_drop(net);
}
END_TEST

static tn_tensor *side_by_side(tn_module *self, tn_tensor *x)
{
    tn_tensor *parts[3] = { tn_module_call_child(self, "a", x), tn_module_call_child(self, "b", x),
                            tn_module_call_child(self, "c", x) };

    /* a and b side by side; c is added to b alone */
    parts[1] = parts[2] != NULL ? tn_add(parts[1], parts[2]) : NULL;
    return tn_module_call_child(self, "d", tn_relu(tn_cat(parts, 2, 1)));
}

START_TEST(a_module_reads_parts_of_several_modules)
{
    TN_SCOPE;
    tn_module *net = tn_module_plain("Joined");
    tn_tensor *x = random_tensor(TN_SHAPE(5, 3));
    tn_prune_report report;

    ok(tn_module_add_children(net, "a=Linear(3, 4), b=Linear(3, 6), c=Linear(3, 6), "
                                   "d=Linear(10, 2)"));
    ok(tn_module_set_forward(net, side_by_side, NULL, NULL));
    ok(tn_module_eval(net));
    report = halve(net, x, 10);
    ck_assert_int_eq(report.channels_before, 4 + 6 + 6 + 2);
    ck_assert_int_eq(report.channels_removed, 2 + 3 + 3);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "c.weight"), 0), 3);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "d.weight"), 1), 5);
    tn_module_drop(net);
}
END_TEST

START_TEST(masks_alone_and_columns_that_nobody_reads)
{
    TN_SCOPE;
    tn_module *net = network("Sequential(Linear(3, 4), ReLU(), Linear(4, 2))");
    tn_tensor *x = random_tensor(TN_SHAPE(5, 3));
    double before[10];
    tn_prune_report report;

    /* Nothing reads the channels 0 and 2 of the first layer. */
    ok(tn_prune_from_mask(net, "2.weight", tensor(TN_SHAPE(2, 4), 0, 1, 0, 1, 0, 0, 0, 1)));
    result(net, x, before, 10);
    ck_assert_int_eq(tn_module_parameter_count(net), 26);
    ok(tn_prune_compact(net, &x, 1, "ChannelGroups(strict=True)", &report));
    ck_assert_int_eq(report.channels_removed, 2);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "0.weight"), 0), 2);
    /* One entry of the mask is left, so the mask stays, and is smaller. */
    expect(tn_module_find_tensor(net, "2.weight_mask"), 1, 1, 0, 1);
    expect_close(net, x, before, 10);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_channel_with_a_value_of_its_own_stays)
{
    TN_SCOPE;
    /* The weights are masked, but the bias makes a constant of the channel. */
    tn_module *net = network("Sequential(Linear(3, 4), Linear(4, 2))");
    tn_tensor *x = random_tensor(TN_SHAPE(5, 3));
    tn_prune_report report;

    ok(tn_prune(net, "0.weight", "LnStructured(amount=2, n=1, dim=0)"));
    ok(tn_prune_compact(net, &x, 1, NULL, &report));
    ck_assert_int_eq(report.channels_removed, 0);
    ck_assert_int_eq(tn_module_parameter_count(net), 26);
    ck_assert(tn_is_pruned(net));
    tn_module_drop(net);
    /* A normalization adds a bias to the channel of a masked filter. */
    net = network("Sequential(Conv1d(2, 4, 1, bias=False), BatchNorm1d(4), Conv1d(4, 2, 1))");
    x = random_tensor(TN_SHAPE(2, 2, 5));
    ok(tn_prune(net, "0.weight", "LnStructured(amount=2, n=1, dim=0)"));
    ok(tn_prune_compact(net, &x, 1, NULL, &report));
    ck_assert_int_eq(report.channels_removed, 0);
    ck_assert_int_eq(report.channels_kept, 2);
    tn_module_drop(net);
    /* Channels of the network's results are never removed. */
    net = network("Linear(3, 4)");
    x = random_tensor(TN_SHAPE(5, 3));
    ok(tn_prune(net, "weight", "LnStructured(amount=2, n=1, dim=0)"));
    ok(tn_prune(net, "bias", "L1Unstructured(amount=1.0)"));
    ok(tn_prune_compact(net, &x, 1, NULL, &report));
    ck_assert_int_eq(report.channels_kept, 2);
    ck_assert_int_eq(tn_module_parameter_count(net), 16);
    tn_module_drop(net);
}
END_TEST

START_TEST(one_channel_stays_when_all_are_masked)
{
    TN_SCOPE;
    tn_module *net = network("Sequential(Linear(3, 4), ReLU(), Linear(4, 2))");
    tn_tensor *x = random_tensor(TN_SHAPE(5, 3));
    double before[10];

    ok(tn_prune(net, "0.weight", "L1Unstructured(amount=1.0)"));
    ok(tn_prune(net, "0.bias", "L1Unstructured(amount=1.0)"));
    result(net, x, before, 10);
    ok(tn_prune_compact(net, &x, 1, NULL, NULL));
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "0.weight_orig"), 0), 1);
    expect_close(net, x, before, 10);
    tn_module_drop(net);
}
END_TEST

/* ---- what is not known ----------------------------------------------------------------------- */

static tn_tensor *sum_of_rows(tn_module *self, tn_tensor *x)
{
    x = tn_module_call_child(self, "a", x);
    x = x != NULL ? tn_softmax(x, -1) : NULL; /* mixes the channels */
    return tn_module_call_child(self, "b", x);
}

START_TEST(an_unknown_structure_is_named_and_nothing_changes)
{
    TN_SCOPE;
    tn_module *net = network("Sequential(Linear(3, 4), LayerNorm(4), Linear(4, 2))");
    tn_tensor *x = random_tensor(TN_SHAPE(5, 3));
    tn_prune_report report;
    double before[10];
    char text[1024], after[1024];

    ok(tn_prune_from_mask(net, "0.weight",
                          tensor(TN_SHAPE(4, 3), 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1)));
    ok(tn_prune(net, "0.bias", "L1Unstructured(amount=1.0)"));
    result(net, x, before, 10);
    tn_module_spec(net, text, sizeof text);
    ck_assert_int_eq(tn_prune_compact(net, &x, 1, NULL, &report), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED,
                   "\"0\" (Linear): channel 0 cannot be removed, because \"1\" (LayerNorm) uses it "
                   "in a way that is not known: LayerNorm: its layer does not describe channels");
    tn_module_spec(net, after, sizeof after);
    ck_assert_str_eq(text, after);
    expect_close(net, x, before, 10);
    ck_assert_int_eq(tn_prune_count(net, "0.weight"), 1);
    ok(tn_prune_compact(net, &x, 1, "ChannelGroups(strict=False)", &report));
    ck_assert_int_eq(report.channels_removed, 0);
    tn_module_drop(net);

    net = tn_module_plain("Mixed");
    ok(tn_module_add_children(net, "a=Linear(3, 4), b=Linear(4, 2)"));
    ok(tn_module_set_forward(net, sum_of_rows, NULL, NULL));
    ok(tn_prune(net, "a.weight", "L1Unstructured(amount=1.0)"));
    ok(tn_prune(net, "a.bias", "L1Unstructured(amount=1.0)"));
    ck_assert_int_eq(tn_prune_compact(net, &x, 1, NULL, &report), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "because \"b\" (Linear) uses it in a way that is not "
                                           "known: it mixes the channels");
    tn_module_drop(net);

    net = network("Sequential(Conv1d(2, 4, 1, groups=2), Conv1d(4, 2, 1))");
    x = random_tensor(TN_SHAPE(2, 2, 5));
    ok(tn_prune_channels(net, &x, 1, "LnStructured(amount=0.5, n=1, dim=0)", &report));
    ck_assert_int_eq(report.channels_removed, 0);
    tn_module_drop(net);
}
END_TEST

/* ---- computed tensors ------------------------------------------------------------------------ */

#define FIVE "Sequential(Linear(4, 6), ReLU(), Linear(6, 4), ReLU(), Linear(4, 2))"
#define HALF "LnStructured(amount=0.5, n=2, dim=0)"

START_TEST(a_parametrized_layer_stays_and_other_channels_go)
{
    static const struct {
        const char *name, *how, *second; /* `second`: one more parametrized tensor, or NULL */
        int64_t removed;                 /* of the ten channels that are no results */
    } rows[] = {
        { "4.weight", "WeightNorm", NULL, 3 },
        { "4.weight", "LoRA(rank=1)", "4.bias", 3 },
        { "4.bias", "ReLU", NULL, 3 },
        { "0.weight", "WeightNorm", NULL, 2 },
        { "0.weight", "SpectralNorm", "0.bias", 2 },
        { "2.weight", "LoRA(rank=2)", NULL, 0 },
        { "2.weight", "WeightNorm", "2.bias", 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_module *net = network(FIVE);
        tn_tensor *x = random_tensor(TN_SHAPE(5, 4));
        double before[10];
        tn_prune_report report;

        ok(tn_parametrize_parse(net, rows[i].name, rows[i].how));
        if (rows[i].second != NULL)
            ok(tn_parametrize_parse(net, rows[i].second, "Identity"));
        ok(tn_prune_channels(net, &x, 1, HALF, &report));
        ck_assert_int_eq(report.channels_removed, rows[i].removed);
        result(net, x, before, 10);
        ok(tn_prune_compact(net, &x, 1, NULL, &report));
        ck_assert_int_eq(report.channels_removed, rows[i].removed);
        ck_assert(tn_is_parametrized(net, rows[i].name));
        expect_close(net, x, before, 10);
        tn_module_drop(net);
    }
}
END_TEST

START_TEST(a_parametrized_layer_is_named_if_a_channel_cannot_go)
{
    TN_SCOPE;
    tn_module *net = network(FIVE);
    tn_tensor *x = random_tensor(TN_SHAPE(5, 4));
    double before[10];
    tn_prune_report report;

    ok(tn_prune_channels(net, &x, 1, HALF, NULL));
    ok(tn_parametrize_with(net, "4.weight", "WeightNorm"));
    result(net, x, before, 10);
    ck_assert_int_eq(tn_prune_compact(net, &x, 1, NULL, NULL), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED,
                   "because \"4\" (Linear) uses it in a way that is not known: its weight is "
                   "parametrized; expected a plain tensor (tn_parametrize_remove)");
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "0.weight"), 0), 6);
    expect_close(net, x, before, 10);
    ok(tn_prune_compact(net, &x, 1, "ChannelGroups(strict=False)", &report));
    ck_assert_int_eq(report.channels_removed, 3);
    ck_assert_int_eq(report.channels_kept, 2);
    expect_close(net, x, before, 10);
    ok(tn_parametrize_remove(net, "4.weight", true));
    ok(tn_prune_compact(net, &x, 1, NULL, &report));
    ck_assert_int_eq(report.channels_removed, 2);
    expect_close(net, x, before, 10);
    tn_module_drop(net);
}
END_TEST

START_TEST(tensors_that_others_have_too_keep_their_size)
{
    TN_SCOPE;
    tn_tensor *x = random_tensor(TN_SHAPE(5, 4)), *tied;
    tn_prune_report report;

    /* the original of a parametrized tensor is the weight of another layer */
    tn_module *net = network("Sequential(Linear(4, 4), ReLU(), Linear(4, 4), ReLU(), "
                             "Linear(4, 2))");
    tied = tn_module_find_tensor(net, "0.weight");
    ok(tn_module_set(tn_module_child(net, "2"), "weight", tied));
    ok(tn_parametrize_with(net, "0.weight", "Symmetric"));
    ck_assert_ptr_eq(tn_module_find_tensor(net, "0.parametrizations.weight.original"), tied);
    ok(tn_prune_channels(net, &x, 1, HALF, &report));
    ck_assert_int_eq(report.channels_removed, 0);
    tn_module_drop(net);
    /* the parameter behind a mask is the weight of another layer */
    net = network("Sequential(Linear(4, 4), ReLU(), Linear(4, 4), ReLU(), Linear(4, 2))");
    tied = tn_module_find_tensor(net, "0.weight");
    ok(tn_module_set(tn_module_child(net, "2"), "weight", tied));
    ok(tn_prune(net, "0.weight", "Identity"));
    ck_assert_ptr_eq(tn_module_find_tensor(net, "0.weight_orig"), tied);
    ok(tn_prune_channels(net, &x, 1, HALF, &report));
    ck_assert_int_eq(report.channels_removed, 0);
    tn_module_drop(net);
}
END_TEST

static tn_tensor *twice(void *user, tn_module *module, const char *name)
{
    (void)user, (void)name;
    return tn_mul_scalar(tn_module_get(module, "half"), 2.0);
}

START_TEST(a_tensor_that_the_program_computes_keeps_its_size)
{
    TN_SCOPE;
    static const tn_computed how = { .get = twice };
    tn_module *net = network(FIVE), *layer = tn_module_child(net, "4");
    tn_tensor *x = random_tensor(TN_SHAPE(5, 4)), *weight;
    tn_prune_report report;

    ok(tn_prune_channels(net, &x, 1, HALF, NULL));
    weight = tn_tensor_keep(tn_module_get(layer, "weight"));
    ok(tn_module_remove(layer, "weight"));
    ok(tn_module_add_parameter(layer, "half", weight));
    ok(tn_module_add_computed(layer, "weight", &how, NULL));
    tn_tensor_drop(weight);
    ck_assert_int_eq(tn_prune_compact(net, &x, 1, NULL, NULL), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "because \"4\" (Linear) uses it in a way that is not "
                                           "known: its weight is computed, and not by pruning");
    ok(tn_prune_compact(net, &x, 1, "ChannelGroups(strict=False)", &report));
    ck_assert_int_eq(report.channels_removed, 3);
    tn_module_drop(net);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

/* Rotates the channels by one, so that their number decides where the first one is. */
static tn_tensor *shuffled(tn_module *self, tn_tensor *x)
{
    int64_t dim = 1;

    x = tn_module_call_child(self, "a", x);
    x = x != NULL ? tn_roll(x, TN_INTS(1), TN_INTS(dim)) : NULL;
    return tn_module_call_child(self, "b", x);
}

static tn_tensor *counted(tn_module *self, tn_tensor *x)
{
    x = tn_module_call_child(self, "a", x);
    /* depends on the number of channels */
    x = x != NULL ? tn_mul_scalar(x, (double)tn_tensor_size(x, 1)) : NULL;
    return tn_module_call_child(self, "b", x);
}

START_TEST(other_results_and_failures_of_the_smaller_network_undo_it)
{
    TN_SCOPE;
    tn_tensor *x = random_tensor(TN_SHAPE(5, 3));
    double before[10];
    tn_module *net = tn_module_plain("Counted");

    ok(tn_module_add_children(net, "a=Linear(3, 4), b=Linear(4, 2)"));
    ok(tn_module_set_forward(net, counted, NULL, NULL));
    ok(tn_prune(net, "a.weight", "LnStructured(amount=2, n=1, dim=0)"));
    ok(tn_prune_from_mask(net, "a.bias", tensor(TN_SHAPE(4), 0, 0, 0, 0)));
    result(net, x, before, 10);
    ck_assert_int_eq(tn_prune_compact(net, &x, 1, NULL, NULL), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "the network without these channels: the results "
                                           "change by");
    expect_close(net, x, before, 10);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(net, "a.weight_orig"), 0), 4);
    ck_assert(tn_module_is_training(net));
    tn_module_drop(net);
    /* Rotated channels: compaction may fail, but must not change the results. */
    net = tn_module_plain("Rolled");
    ok(tn_module_add_children(net, "a=Linear(3, 4), b=Linear(4, 2)"));
    ok(tn_module_set_forward(net, shuffled, NULL, NULL));
    ok(tn_prune_channels(net, &x, 1, "LnStructured(amount=1, n=1, dim=0)", NULL));
    result(net, x, before, 10);
    if (tn_prune_compact(net, &x, 1, NULL, NULL) != TN_OK)
        tn_error_clear();
    expect_close(net, x, before, 10);
    tn_module_drop(net);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
    TN_SCOPE;
    tn_module *net = network("Sequential(Linear(3, 4), ReLU(), Linear(4, 2))");
    tn_tensor *x = random_tensor(TN_SHAPE(5, 3)), *wrong = random_tensor(TN_SHAPE(5, 4));

    ck_assert_int_eq(tn_prune_channels(net, &x, 1, "L1Unstructured(amount=3)", NULL), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "it masks parts of channels, got L1Unstructured(amount=3); "
                                 "expected a structured method with dim=0");
    ck_assert_int_eq(tn_prune_channels(net, &x, 1, "ChannelGroups", NULL), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE,
                   "ChannelGroups: wrong type of pruning method, got one for whole networks");
    ck_assert_int_eq(tn_prune_compact(net, &x, 1, "Identity", NULL), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE,
                   "Identity: wrong type of pruning method, got one that computes a mask");
    ck_assert_int_eq(tn_prune(net, "0.weight", "ChannelGroups"), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_int_ne(tn_prune_compact(net, &wrong, 1, NULL, NULL), TN_OK);
    expect_failure(tn_error_last_code(), "calling the network with the example");
    ck_assert(!tn_is_pruned(net));
    ck_assert_int_eq(tn_module_parameter_count(net), 26);
    tn_module_drop(net);
}
END_TEST

START_TEST(layers_describe_their_channels)
{
    tn_channels channels;
    tn_module *m = parsed("ConvTranspose2d(2, 6, 3)");

    ok(tn_module_channels(m, &channels));
    ck_assert_int_eq(channels.n_rows, 3);
    ck_assert_str_eq(channels.rows[0].option, "out_channels");
    ck_assert_int_eq(channels.rows[0].dim, 1);
    ck_assert_int_eq(channels.out_axis, -3);
    tn_module_drop(m);
    m = parsed("Conv2d(4, 6, 3, groups=2)");
    ck_assert_int_eq(tn_module_channels(m, &channels), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "Conv2d: groups: its channels belong together in "
                                           "groups, got 2");
    tn_module_drop(m);
    m = parsed("LSTM(2, 3)");
    ck_assert_int_eq(tn_module_channels(m, &channels), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "LSTM: its layer does not describe channels");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rows_of_linear_layers_are_removed_prn_019,
        channels_go_through_convolutions_normalizations_and_flatten,
        channels_that_a_residual_connection_adds_go_together,
        a_module_reads_parts_of_several_modules,
        masks_alone_and_columns_that_nobody_reads,
        a_channel_with_a_value_of_its_own_stays,
        one_channel_stays_when_all_are_masked,
        an_unknown_structure_is_named_and_nothing_changes,
        a_parametrized_layer_stays_and_other_channels_go,
        a_parametrized_layer_is_named_if_a_channel_cannot_go,
        tensors_that_others_have_too_keep_their_size,
        a_tensor_that_the_program_computes_keeps_its_size,
        other_results_and_failures_of_the_smaller_network_undo_it,
        wrong_arguments_are_refused,
        layers_describe_their_channels,
        NULL,
    };

    return suite_run("prune networks", tests);
}
