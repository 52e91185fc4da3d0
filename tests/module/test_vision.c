/* SPDX-License-Identifier: MIT
 *
 * Layers of torchvision: what they print and compute. */
#include "tests/op/suite.h"
#include "tests/module/suite.h"

static void expect_print(const char *spec, const char *wanted)
{
    tn_module *module = parsed(spec);
    char text[256];

    tn_module_repr(module, text, sizeof text);
    ck_assert_str_eq(text, wanted);
    tn_module_drop(module);
}

START_TEST(layers_print_what_torchvision_prints)
{
    expect_print("LayerNorm2d(96, eps=1e-06)",
                 "LayerNorm2d((96,), eps=1e-06, elementwise_affine=True, bias=True)");
    expect_print("Permute([0, 2, 3, 1])", "Permute()");
    expect_print("StochasticDepth(0.011111111111111112, 'row')",
                 "StochasticDepth(p=0.011111111111111112, mode=row)");
    expect_print("StochasticDepth(p=0.0, mode=batch)", "StochasticDepth(p=0.0, mode=batch)");
}
END_TEST

START_TEST(layer_norm_2d_normalizes_the_channels_of_each_pixel)
{
    TN_SCOPE;
    static const float pixels[4] = { 1, 2, 3, 6 }; /* two channels of two pixels */
    tn_module *norm = parsed("LayerNorm2d(2, eps=0.0)");
    tn_tensor *x = tn_tensor_from(pixels, TN_F32, TN_SHAPE(1, 2, 1, 2)), *y;

    y = tn_module_call(norm, x);
    HAS(y, -1, -1, 1, 1);
    ck_assert_ptr_null(tn_module_call(norm, tn_reshape(x, TN_SHAPE(2, 2))));
    FAILED(TN_ERR_VALUE, "LayerNorm2d: input: wrong number of dimensions, got 2");
    tn_module_drop(norm);
}
END_TEST

START_TEST(a_permute_that_was_read_without_its_dims_says_so)
{
    TN_SCOPE;
    tn_module *known = parsed("Permute((1, 0))"), *unknown = parsed("Permute()");
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 3));

    ck_assert_int_eq(tn_tensor_size(tn_module_call(known, x), 0), 3);
    ck_assert_ptr_null(tn_module_call(unknown, x));
    FAILED(TN_ERR_VALUE, "Permute: dims: not given");
    tn_module_drop(known);
    tn_module_drop(unknown);
}
END_TEST

START_TEST(stochastic_depth_drops_samples_or_the_batch)
{
    TN_SCOPE;
    tn_tensor *x = tn_ones(TN_SHAPE(64, 3)), *y;
    tn_module *row = parsed("StochasticDepth(0.5, 'row')");
    tn_module *batch = parsed("StochasticDepth(0.5, 'batch')");
    tn_module *all = parsed("StochasticDepth(1.0, 'row')");
    double kept = 0;

    y = tn_module_call(row, x);
    for (int n = 0; n < 64; n++) {
        ck_assert(at(y, 3 * n) == 0 || at(y, 3 * n) == 2);
        ck_assert(at(y, 3 * n + 1) == at(y, 3 * n) && at(y, 3 * n + 2) == at(y, 3 * n));
        kept += at(y, 3 * n) / 2;
    }
    ck_assert(kept > 8 && kept < 56);
    y = tn_module_call(batch, x);
    for (int i = 0; i < 192; i++)
        ck_assert(at(y, i) == at(y, 0) && (at(y, 0) == 0 || at(y, 0) == 2));
    ck_assert_double_eq(tn_item(tn_sum(tn_module_call(all, x))), 0);
    ck_assert_int_eq(tn_module_eval(row), TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_call(row, x))), 192);
    tn_module_drop(row);
    tn_module_drop(batch);
    tn_module_drop(all);
    ck_assert_ptr_null(tn_module_parse("StochasticDepth(1.5, 'row')"));
    FAILED(TN_ERR_VALUE, "drop probability has to be between 0 and 1, but got 1.5");
    ck_assert_ptr_null(tn_module_parse("StochasticDepth(0.5, 'column')"));
    FAILED(TN_ERR_VALUE, "StochasticDepth: mode: unknown, got \"column\"; expected batch or row");
}
END_TEST

/* A block of a vision transformer as PyTorch prints it: the attention's sizes come from the state.
 */
START_TEST(a_printed_attention_takes_its_sizes_from_the_state)
{
    TN_SCOPE;
    static const char text[] =
        "EncoderBlock(\n"
        "  (self_attention): MultiheadAttention(\n"
        "    (out_proj): NonDynamicallyQuantizableLinear(in_features=4, out_features=4, "
        "bias=True)\n"
        "  )\n"
        "  (dropout): Dropout(p=0.0, inplace=False)\n"
        ")";
    tn_module *block = parsed(text), *attention = tn_module_find(block, "self_attention");
    tn_module *plain = parsed("ModuleDict(self_attention=MultiheadAttention(4, 2))");
    tn_state *state = tn_module_state(plain);
    tn_tensor *in[3], *got, *wanted;
    char again[512];

    tn_module_repr(block, again, sizeof again);
    ck_assert_str_eq(again, text);
    in[0] = in[1] = in[2] = tn_randn(TN_SHAPE(3, 1, 4));
    ck_assert_int_eq(tn_module_call_many(attention, in, 3, &got, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "num_heads: not known");
    ck_assert_int_eq(tn_module_option_set(attention, "num_heads", tn_value_int(2)), TN_OK);
    ck_assert_int_eq(tn_module_call_many(attention, in, 3, &got, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "embed_dim: not known");
    ck_assert_msg(tn_module_load_state(block, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert_msg(tn_module_call_many(attention, in, 3, &got, 1) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(
        tn_module_call_many(tn_module_child(plain, "self_attention"), in, 3, &wanted, 1), TN_OK);
    ck_assert_double_eq(tn_item(tn_amax(tn_abs(tn_sub(got, wanted)))), 0);
    tn_module_repr(block, again, sizeof again);
    ck_assert_str_eq(again, text);
    ck_assert_ptr_null(tn_module_parse("MultiheadAttention(4)"));
    FAILED(TN_ERR_VALUE, "MultiheadAttention: num_heads: missing");
    tn_state_drop(state);
    tn_module_drop(plain);
    tn_module_drop(block);
}
END_TEST

/* The text of a block does not name its own parameters: they come from the state. */
START_TEST(an_unknown_type_gets_its_parameters_from_the_state)
{
    TN_SCOPE;
    tn_module *net = parsed("Sequential(\n  (0): CNBlock(\n    (fc): Linear(in_features=2, "
                            "out_features=1, bias=False)\n  )\n)");
    tn_module *plain = tn_module_plain("Net"), *block = tn_module_find(net, "0"), *copy;
    const int64_t places[2] = { 1, 0 };
    tn_state *state = tn_state_new(), *again;

    tn_state_set(state, "0.fc.weight", tn_ones(TN_SHAPE(1, 2)));
    tn_state_set(state, "0.layer_scale", tn_tensor_full(TN_SHAPE(3), 0.5, TN_F32, NULL));
    tn_state_set(state, "0.index", tn_tensor_from(places, TN_I64, TN_SHAPE(2)));
    ck_assert_msg(tn_module_load_state(net, state, true) == TN_OK, "%s", tn_error_text());
    HAS(tn_module_get(block, "layer_scale"), 0.5, 0.5, 0.5);
    HAS(tn_module_get(block, "index"), 1, 0);
    ck_assert_int_eq(tn_module_slot_kind(block, "layer_scale"), TN_SLOT_PARAMETER);
    ck_assert_int_eq(tn_module_slot_kind(block, "index"), TN_SLOT_BUFFER);
    copy = tn_module_copy(net);
    again = tn_module_state(copy);
    ck_assert_int_eq(tn_state_count(again), 3);
    /* what belongs to a known layer, or to a module of the program, stays unexpected */
    tn_state_set(state, "0.fc.scale", tn_ones(TN_SHAPE(1)));
    ck_assert_int_ne(tn_module_load_state(net, state, true), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "0.fc.scale"));
    tn_error_clear();
    ck_assert_int_ne(tn_module_load_state(plain, again, true), TN_OK);
    tn_error_clear();
    tn_state_drop(again);
    tn_state_drop(state);
    tn_module_drop(copy);
    tn_module_drop(plain);
    tn_module_drop(net);
}
END_TEST

/* Types that no plugin provides occur as leaves and as parents; an error of a call names the type.
 */
START_TEST(unknown_types_are_read_everywhere_and_named_when_called)
{
    TN_SCOPE;
    static const char text[] = "MaxVit(\n"
                               "  (blocks): ModuleList(\n"
                               "    (0): Sequential(\n"
                               "      (0): SwapAxes()\n"
                               "      (1): Block(\n"
                               "        64, mode=row\n"
                               "        (part): WindowPartition()\n"
                               "        (none): None\n"
                               "      )\n"
                               "    )\n"
                               "  )\n"
                               "  (pool): Odd(size=(3, 4))\n"
                               ")";
    tn_module *net = parsed(text);
    char again[512];

    tn_module_repr(net, again, sizeof again);
    ck_assert_ptr_nonnull(strstr(again, "(0): SwapAxes()"));
    ck_assert_ptr_nonnull(strstr(again, "(part): WindowPartition()"));
    ck_assert_ptr_nonnull(strstr(again, "(pool): Odd(size=(3, 4))"));
    ck_assert_ptr_null(tn_module_call(tn_module_find(net, "blocks.0"), tn_ones(TN_SHAPE(2))));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "SwapAxes"));
    tn_error_clear();
    tn_module_drop(net);
}
END_TEST

/* torchvision's detectors print transforms on lines of their own, without commas. Only a type that
 * no plugin provides may have such arguments. */
START_TEST(arguments_on_lines_of_their_own_need_no_comma)
{
    TN_SCOPE;
    static const char text[] = "Detector(\n"
                               "  (transform): Scaler(\n"
                               "      Normalize(mean=[0.5, 0.25], std=[1.0])\n"
                               "      Resize(min_size=(800,), max_size=1333, mode='bilinear')\n"
                               "  )\n"
                               "  (box): Pair(\n"
                               "    One()\n"
                               "    Two()\n"
                               "    (part): ReLU()\n"
                               "  )\n"
                               ")";
    tn_module *net = parsed(text);
    char again[512], spec[512];

    tn_module_repr(net, again, sizeof again);
    ck_assert_str_eq(again, text);
    ck_assert_int_gt(tn_module_spec(net, spec, sizeof spec), 0);
    tn_module *second = parsed(spec);
    tn_module_repr(second, again, sizeof again);
    ck_assert_str_eq(again, text);
    tn_module_drop(second);
    tn_module_drop(net);

    ck_assert_ptr_null(tn_module_parse("Sequential(\n  ReLU()\n  Tanh()\n)"));
    FAILED(TN_ERR_FORMAT, "line 3, column 3: expected a comma or )");
    ck_assert_ptr_null(tn_module_parse("Linear(4\n 3)"));
    FAILED(TN_ERR_FORMAT, "line 2, column 2: expected a comma or )");
    ck_assert_ptr_null(tn_module_parse("Scaler(One() Two(), (a): ReLU())"));
    FAILED(TN_ERR_FORMAT, "expected a comma or )");
    ck_assert_ptr_null(tn_optimizer_parse(NULL, 0, "SGD(0.1\n 0.9)"));
    FAILED(TN_ERR_FORMAT, "expected a comma or )");
}
END_TEST

/* A printed module that lacks children of the layer with its name is of another class: the
 * Transformer of DistilBERT. */
START_TEST(a_printed_class_may_have_the_name_of_a_layer)
{
    TN_SCOPE;
    static const char text[] = "Transformer(\n"
                               "  (layer): ModuleList(\n"
                               "    (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
                               "  )\n"
                               ")";
    static const char more[] = "Linear(\n"
                               "  in_features=2, out_features=3, bias=True\n"
                               "  (extra): ReLU()\n"
                               ")";
    tn_module *net = parsed(text), *linear = parsed(more);
    char again[512];

    tn_module_repr(net, again, sizeof again);
    ck_assert_str_eq(again, text);
    ck_assert_int_eq(tn_module_child_count(net), 1);
    ck_assert_ptr_null(tn_module_call(net, tn_ones(TN_SHAPE(2))));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "Transformer"));
    tn_error_clear();
    ck_assert_int_eq(tn_module_set_forwards(net, "Transformer", tn_module_call_children), TN_OK);
    /* a layer remains the layer of its type if the program adds a child */
    ck_assert_int_eq(tn_tensor_size(tn_module_call(linear, tn_ones(TN_SHAPE(2))), 0), 3);
    tn_module_drop(linear);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        layers_print_what_torchvision_prints,
        layer_norm_2d_normalizes_the_channels_of_each_pixel,
        a_permute_that_was_read_without_its_dims_says_so,
        stochastic_depth_drops_samples_or_the_batch,
        a_printed_attention_takes_its_sizes_from_the_state,
        an_unknown_type_gets_its_parameters_from_the_state,
        unknown_types_are_read_everywhere_and_named_when_called,
        arguments_on_lines_of_their_own_need_no_comma,
        a_printed_class_may_have_the_name_of_a_layer,
        NULL,
    };
    return suite_run("layers of torchvision", tests);
}
