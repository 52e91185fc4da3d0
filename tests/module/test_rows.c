/* SPDX-License-Identifier: MIT
 *
 * What the standard layers print, compute and refuse: the rows REP and LAY of the behaviour
 * specification that no other test of this folder proves. */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

#include <math.h>

#define PROBLEM(words)                                                                             \
    do {                                                                                           \
        ck_assert_msg(tn_failed() && strstr(tn_error_text(), words) != NULL, "%s",                 \
                      tn_error_text());                                                            \
        tn_error_clear();                                                                          \
    } while (0)

static void prints(const char *spec, const char *wanted)
{
    tn_module *m = parsed(spec);
    expect_repr(m, wanted);
    tn_module_drop(m);
}

/* The elements as doubles. */
static int64_t elements(tn_tensor *tensor, double *out)
{
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    tn_tensor *wide = tn_copy_(tn_tensor_empty(tn_tensor_shape(tensor), TN_F64, NULL),
                               tn_detach(tensor));
    int64_t count = tn_tensor_numel(tensor);
    ck_assert_int_eq(tn_tensor_copy_out(wide, out, (size_t)count * sizeof *out), TN_OK);
    return count;
}

static tn_tensor *zeros(tn_ints shape)
{
    return tn_tensor_full(shape, 0, TN_F32, NULL);
}

/* ---- REP ---- */

START_TEST(printed_forms_are_pytorchs)
{
    prints("Sequential()", "Sequential()");
    TN_PROVES("REP-001");
    prints("Linear(1, 1)", "Linear(in_features=1, out_features=1, bias=True)");
    TN_PROVES("REP-002");
    prints("Sequential(a=Sequential(b=Sequential(ReLU())), c=Tanh())",
           "Sequential(\n  (a): Sequential(\n    (b): Sequential(\n      (0): ReLU()\n    )\n  )\n"
           "  (c): Tanh()\n)");
    TN_PROVES("REP-003");
    tn_module *holder = parsed("Sequential(ReLU())");
    ck_assert_int_eq(tn_module_reserve_child(holder, "down"), TN_OK);
    ck_assert_int_eq(tn_module_reserve_child(holder, "0"), TN_OK);
    expect_repr(holder, "Sequential(\n  (0): None\n  (down): None\n)");
    TN_PROVES("REP-004");
    tn_module_drop(holder);
    register_probes();
    prints("Block(2)", "Block(\n  2\n  (fc): Linear(in_features=2, out_features=2, bias=True)\n)");
    prints("Sequential(Tanh(), ParameterList((2, 3), (1,)))",
           "Sequential(\n  (0): Tanh()\n  (1): ParameterList(\n"
           "      (0): Parameter containing: [torch.float32 of size 2x3]\n"
           "      (1): Parameter containing: [torch.float32 of size 1]\n  )\n)");
    TN_PROVES("REP-005");
    tn_module *relu = parsed("ReLU()"), *twice = parsed("Sequential()");
    ck_assert_int_eq(tn_list_append(twice, relu), TN_OK);
    ck_assert_int_eq(tn_list_append(twice, relu), TN_OK);
    expect_repr(twice, "Sequential(\n  (0): ReLU()\n  (1): ReLU()\n)");
    TN_PROVES("REP-006");
    tn_module_drop(twice);
    tn_module_drop(relu);
    prints("Conv2d(16, 33, 3, stride=2)", "Conv2d(16, 33, kernel_size=(3, 3), stride=(2, 2))");
    prints("Conv1d(4, 8, 3, padding=1, dilation=2, groups=2, bias=False, padding_mode='circular')",
           "Conv1d(4, 8, kernel_size=(3,), stride=(1,), padding=(1,), dilation=(2,), groups=2, "
           "bias=False, padding_mode=circular)");
    prints("ConvTranspose2d(2, 4, 3, 2, output_padding=1)",
           "ConvTranspose2d(2, 4, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 1))");
    TN_PROVES("REP-008");
    prints("BatchNorm2d(3)", "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, "
                             "track_running_stats=True)");
    prints("BatchNorm1d(3, momentum=None, eps=1e-3)",
           "BatchNorm1d(3, eps=0.001, momentum=None, affine=True, bias=True, "
           "track_running_stats=True)");
    TN_PROVES("REP-009");
    prints("Dropout()", "Dropout(p=0.5, inplace=False)");
    prints("ReLU()", "ReLU()");
    prints("ReLU(True)", "ReLU(inplace=True)");
    TN_PROVES("REP-010");
    prints("ModuleList()", "ModuleList()");
    prints("ModuleList(Linear(2, 3), Linear(2, 3), Linear(2, 3), ReLU(), Linear(2, 3))",
           "ModuleList(\n  (0-2): 3 x Linear(in_features=2, out_features=3, bias=True)\n"
           "  (3): ReLU()\n  (4): Linear(in_features=2, out_features=3, bias=True)\n)");
    prints("ModuleList(Sequential(ReLU()), Sequential(ReLU()))",
           "ModuleList(\n  (0-1): 2 x Sequential(\n    (0): ReLU()\n  )\n)");
    TN_PROVES("REP-011");
    prints("ParameterList((2, 3))",
           "ParameterList(  (0): Parameter containing: [torch.float32 of size 2x3])");
    prints("ParameterDict(a=(2, 3), b=(float64,))",
           "ParameterDict(\n    (a): Parameter containing: [torch.FloatTensor of size 2x3]\n"
           "    (b): Parameter containing: [torch.DoubleTensor of size ]\n)");
    TN_PROVES("REP-012");
}
END_TEST

START_TEST(printed_text_reads_back_also_runs_and_parameters)
{
    static const char *const texts[] = {
        "ModuleList(\n  (0-2): 3 x Sequential(\n    (0): Linear(in_features=2, out_features=3, "
        "bias=True)\n  )\n  (3): ReLU()\n)",
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n"
        "    (1): Parameter containing: [torch.float64 of size ]\n)",
        "ParameterDict(  (left): Parameter containing: [torch.DoubleTensor of size 7])",
        "ModuleDict(\n  (fc): Linear(in_features=2, out_features=3, bias=True)\n)",
        "MyNet(\n  (layers): ModuleList(\n    (0-1): 2 x Linear(in_features=1, out_features=1, "
        "bias=True)\n  )\n)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tn_module *m = parsed(texts[i]), *again;
        char spec[2048], second[2048];
        expect_repr(m, texts[i]);
        tn_module_spec(m, spec, sizeof spec);
        again = parsed(spec);
        tn_module_spec(again, second, sizeof second);
        ck_assert_str_eq(spec, second);
        tn_module_drop(again);
        tn_module_drop(m);
    }
    ck_assert_ptr_null(tn_module_parse("ModuleList((0-2): 2 x ReLU())"));
    PROBLEM("a count that fits the range");
    ck_assert_ptr_null(tn_module_parse("ParameterList((0): Parameter containing: [float32 of 2])"));
    PROBLEM("parameter: cannot be read; expected `Parameter containing: [torch.float32 of size "
            "2x3]`");
    ck_assert_ptr_null(tn_module_parse("ParameterList((2, -3))"));
    PROBLEM("expected a tensor, or its shape");
}
END_TEST

START_TEST(typed_arguments_build_what_a_spec_builds)
{
    TN_SCOPE;
    tn_module *fc = parsed("Linear(2, 3)"), *net, *list, *stack;
    tn_value modules[] = { { .kind = TN_VALUE_MODULE }, { .kind = TN_VALUE_SPEC } };
    modules[0].as.module = fc;
    modules[1].as.s = "Tanh()";
    net = tn_module_make("Sequential", modules, NULL, 2);
    ck_assert_ptr_eq(tn_module_child_at(net, 0), fc);
    expect_spec(net, "Sequential(Linear(in_features=2, out_features=3, bias=True), Tanh())");
    static const char *const names[] = { NULL, NULL, "dtype" };
    const tn_value sizes[] = { tn_value_int(4), tn_value_int(1), tn_value_string("float64") };
    tn_module *wide = tn_module_make("Linear", sizes, names, 3);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(wide, "weight")), TN_F64);
    tn_value tensors[] = { tn_value_tensor(zeros(TN_SHAPE(2))), { .kind = TN_VALUE_NONE } };
    list = tn_module_make("ParameterList", tensors, NULL, 2);
    ck_assert_int_eq(tn_list_count(list), 2);
    /* A module given as an option prints as its spec, and its values are copied. */
    tn_value stacked[] = { modules[0], tn_value_int(2) };
    stacked[0].as.module = fc;
    stack = tn_module_make("TransformerEncoder", stacked, NULL, 2);
    ck_assert_msg(stack != NULL, "%s", tn_error_text());
    double a[6], b[6];
    elements(tn_module_get(fc, "weight"), a);
    elements(tn_module_find_tensor(stack, "layers.1.weight"), b);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(a[i], b[i]);
    ck_assert_ptr_ne(tn_module_find_tensor(stack, "layers.0.weight"), tn_module_get(fc, "weight"));
    char spec[4096];
    tn_module_spec(stack, spec, sizeof spec);
    tn_module *again = parsed(spec);
    ck_assert_int_eq(tn_module_parameter_count(again), 18);
    tn_module_drop(again);
    tn_module_drop(stack);
    tn_module_drop(list);
    tn_module_drop(wide);
    tn_module_drop(net);
    tn_module_drop(fc);
}
END_TEST

/* ---- LAY ---- */

START_TEST(linear_and_convolution)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(4, 3, bias=False)");
    ck_assert_ptr_eq(tn_module_get(m, "bias"), TN_NONE);
    tn_state *state = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(state), 1);
    tn_state_drop(state);
    double w[64], y[64];
    elements(tn_module_get(m, "weight"), w);
    for (int i = 0; i < 12; i++)
        ck_assert_double_le(fabs(w[i]), 0.5);
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 1, 4), 1, TN_F32, NULL);
    ck_assert_int_eq(elements(tn_module_call(m, x), y), 6);
    ck_assert_double_eq_tol(y[4], w[4] + w[5] + w[6] + w[7], 1e-6);
    tn_module_drop(m);
    m = parsed("Linear(0, 3)");
    elements(tn_module_get(m, "bias"), w);
    ck_assert(w[0] == 0 && w[1] == 0 && w[2] == 0);
    tn_module_drop(m);
    TN_PROVES("LAY-002");

    m = parsed("Conv1d(4, 6, 3, stride=2, padding=1, groups=2)");
    double weight[36], bias[6], in[20];
    float floats[20];
    for (int i = 0; i < 20; i++)
        in[i] = floats[i] = (float)(i % 7) - 3;
    ck_assert_int_eq(elements(tn_module_get(m, "weight"), weight), 36);
    elements(tn_module_get(m, "bias"), bias);
    for (int i = 0; i < 36; i++)
        ck_assert_double_le(fabs(weight[i]), 1 / sqrt(6.0));
    ck_assert_int_eq(
        elements(tn_module_call(m, tn_tensor_from(floats, TN_F32, TN_SHAPE(1, 4, 5))), y), 18);
    for (int o = 0; o < 6; o++)
        for (int t = 0; t < 3; t++) {
            double sum = bias[o];
            for (int c = 0; c < 2; c++)
                for (int k = 0; k < 3; k++) {
                    int at = 2 * t - 1 + k;
                    if (at >= 0 && at < 5)
                        sum += weight[(o * 2 + c) * 3 + k] * in[(o / 3 * 2 + c) * 5 + at];
                }
            ck_assert_double_eq_tol(y[o * 3 + t], sum, 1e-5);
        }
    tn_module_drop(m);
    ck_assert_ptr_null(tn_module_parse("Conv2d(3, 4, 3, groups=2)"));
    PROBLEM("in_channels 3 must be divisible by groups 2");
    ck_assert_ptr_null(tn_module_parse("Conv2d(4, 4, 3, stride=2, padding='same')"));
    PROBLEM("stride: not possible with padding='same'");
    TN_PROVES("LAY-004");
}
END_TEST

START_TEST(batch_normalization)
{
    TN_SCOPE;
    static const float four[] = { 1, 2, 3, 6 };
    tn_tensor *x = tn_tensor_from(four, TN_F32, TN_SHAPE(4, 1));
    tn_module *m = parsed("BatchNorm1d(1)"), *bare, *mean, *none;
    tn_state *state = tn_module_state(m);
    double v[64];
    ck_assert_int_eq(tn_state_count(state), 5);
    ck_assert_str_eq(tn_state_name(state, 4), "num_batches_tracked");
    tn_state_drop(state);
    ck_assert_double_eq(tn_item(tn_module_get(m, "weight")), 1);
    ck_assert_double_eq(tn_item(tn_module_get(m, "bias")), 0);
    ck_assert_double_eq(tn_item(tn_module_get(m, "running_mean")), 0);
    ck_assert_double_eq(tn_item(tn_module_get(m, "running_var")), 1);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "num_batches_tracked")), TN_I64);
    bare = parsed("BatchNorm1d(1, affine=False)");
    none = parsed("BatchNorm1d(1, track_running_stats=False)");
    ck_assert_ptr_eq(tn_module_get(bare, "weight"), TN_NONE);
    state = tn_module_state(none);
    ck_assert_int_eq(tn_state_count(state), 2);
    tn_state_drop(state);
    TN_PROVES("LAY-005");
    /* mean 3, biased variance 3.5, unbiased 14 / 3 */
    elements(tn_module_call(m, x), v);
    ck_assert_double_eq_tol(v[3], 3 / sqrt(3.5 + 1e-5), 1e-5);
    ck_assert_double_eq_tol(tn_item(tn_module_get(m, "running_mean")), 0.3, 1e-6);
    ck_assert_double_eq_tol(tn_item(tn_module_get(m, "running_var")), 0.9 + 0.1 * 14 / 3, 1e-6);
    ck_assert_double_eq(tn_item(tn_module_get(m, "num_batches_tracked")), 1);
    mean = parsed("BatchNorm1d(1, momentum=None)");
    tn_module_call(mean, x);
    tn_module_call(mean, tn_add_scalar(x, 2));
    ck_assert_double_eq_tol(tn_item(tn_module_get(mean, "running_mean")), 4, 1e-6);
    TN_PROVES("LAY-006");
    tn_module_eval(m);
    elements(tn_module_call(m, x), v);
    ck_assert_double_eq_tol(v[0], 0.7 / sqrt(0.9 + 1.4 / 3 + 1e-5), 1e-5);
    ck_assert_double_eq(tn_item(tn_module_get(m, "num_batches_tracked")), 1);
    tn_module_eval(none);
    elements(tn_module_call(none, x), v);
    ck_assert_double_eq_tol(v[3], 3 / sqrt(3.5 + 1e-5), 1e-5);
    TN_PROVES("LAY-007");
    tn_module_train(m, true);
    ck_assert_ptr_null(tn_module_call(m, zeros(TN_SHAPE(1, 1))));
    PROBLEM("xpected more than 1 value per channel when training");
    ck_assert_double_eq(tn_item(tn_module_get(m, "running_var")) < 2, 1);
    tn_module *two = parsed("BatchNorm2d(3)");
    ck_assert_ptr_null(tn_module_call(two, zeros(TN_SHAPE(2, 3, 4))));
    PROBLEM("expected 4D input (got 3D input)");
    TN_PROVES("LAY-008");
    tn_module_drop(two);
    tn_module_drop(mean);
    tn_module_drop(none);
    tn_module_drop(bare);
    tn_module_drop(m);
}
END_TEST

START_TEST(dropout_and_stateless_layers)
{
    TN_SCOPE;
    static double v[10000];
    tn_module *m = parsed("Dropout(0.25)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(10000), 3, TN_F32, NULL), *y;
    int64_t dropped = 0;
    ck_assert_ptr_null(tn_module_parse("Dropout(1.5)"));
    PROBLEM("dropout probability has to be between 0 and 1, but got 1.5");
    tn_random_seed(4);
    elements(tn_module_call(m, x), v);
    for (int i = 0; i < 10000; i++) {
        ck_assert(v[i] == 0 || v[i] == 4);
        dropped += v[i] == 0;
    }
    ck_assert(dropped > 2300 && dropped < 2700);
    tn_module_eval(m);
    elements(tn_module_call(m, x), v);
    ck_assert(v[0] == 3 && v[9999] == 3);
    tn_module *all = parsed("Dropout(1.0)"), *nothing = parsed("Dropout(0.0)");
    ck_assert_double_eq(tn_item(tn_sum(tn_module_call(all, x))), 0);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_call(nothing, x))), 30000);
    TN_PROVES("LAY-009");
    tn_module_drop(nothing);
    tn_module_drop(all);
    tn_module_drop(m);
    static const float two[] = { -1, 2 };
    static const struct {
        const char *spec;
        double first, second;
    } rows[] = {
        { "ReLU()", 0, 2 },
        { "LeakyReLU()", -0.01, 2 },
        { "Sigmoid()", 0.26894142, 0.88079708 },
        { "Tanh()", -0.76159416, 0.96402758 },
        { "Softmax(dim=0)", 0.04742587, 0.95257413 },
        { "LogSoftmax(dim=-1)", -3.04858735, -0.04858735 },
        { "Identity()", -1, 2 },
        { "MaxPool1d(1)", -1, 2 },
        { "Flatten(0)", -1, 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool pool = strcmp(rows[i].spec, "MaxPool1d(1)") == 0;
        m = parsed(rows[i].spec);
        x = tn_tensor_from(two, TN_F32, TN_SHAPE(2));
        y = tn_module_call(m, pool ? tn_reshape(x, TN_SHAPE(1, 2)) : x);
        elements(y, v);
        ck_assert_double_eq_tol(v[0], rows[i].first, 1e-6);
        ck_assert_double_eq_tol(v[1], rows[i].second, 1e-6);
        ck_assert_int_eq(tn_module_parameter_count(m), 0);
        tn_module_drop(m);
    }
    m = parsed("ReLU(inplace=True)");
    x = tn_tensor_from(two, TN_F32, TN_SHAPE(2));
    tn_tensor_set_requires_grad(x, true);
    ck_assert_ptr_null(tn_module_call(m, x));
    ck_assert(tn_failed());
    tn_error_clear();
    tn_module_drop(m);
    TN_PROVES("LAY-010", "LAY-011");
    /* Weights are read through their slots at each call: there is no copy that could be stale. */
    tn_module *lstm = parsed("LSTM(2, 3)");
    x = tn_tensor_full(TN_SHAPE(4, 2), 1, TN_F32, NULL);
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_pack_add(in, NULL, tn_value_tensor(x));
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = { "weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
                                             "bias_hh_l0" };
        tn_tensor *old = tn_module_get(lstm, names[i]);
        ck_assert_int_eq(
            tn_module_set(lstm, names[i], tn_parameter(zeros(tn_tensor_shape(old)), true)), TN_OK);
    }
    ck_assert_int_eq(tn_module_to(lstm, NULL, TN_F64), TN_OK);
    ck_assert_int_eq(tn_module_to(lstm, NULL, TN_F32), TN_OK);
    ck_assert_int_eq(tn_module_call_pack(lstm, in, out), TN_OK);
    ck_assert_int_eq(elements(tn_pack_tensor(out, 0), v), 12);
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq(v[i], 0);
    TN_PROVES("LAY-012");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(lstm);
}
END_TEST

START_TEST(losses_reduce)
{
    TN_SCOPE;
    static const float xs[] = { 1, 2, 3, 4 }, ys[] = { 1, 4, 0, 3 };
    static const int64_t classes[] = { 1, 0 };
    static const struct {
        const char *spec;
        double mean, sum, last; /* the last of reduction='none' */
        bool classes;
    } rows[] = {
        { "MSELoss", 3.5, 14, 1, false },
        { "L1Loss", 1.5, 6, 1, false },
        { "CrossEntropyLoss", 0.81326169, 1.62652338, 1.31326169, true },
        { "NLLLoss", -2.5, -5, -3, true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int r = 0; r < 3; r++) {
            static const char *const words[] = { "mean", "sum", "none" };
            tn_module *m = tn_module_new("%s(reduction='%s')", rows[i].spec, words[r]);
            tn_tensor *x = tn_tensor_from(xs, TN_F32, TN_SHAPE(2, 2));
            tn_tensor *y = rows[i].classes ? tn_tensor_from(classes, TN_I64, TN_SHAPE(2))
                                           : tn_tensor_from(ys, TN_F32, TN_SHAPE(2, 2));
            tn_pack *in = tn_pack_new(), *out = tn_pack_new();
            double v[4];
            tn_pack_add(in, NULL, tn_value_tensor(x));
            tn_pack_add(in, NULL, tn_value_tensor(y));
            ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_OK);
            int64_t count = elements(tn_pack_tensor(out, 0), v);
            ck_assert_double_eq_tol(v[count - 1],
                                    r == 0   ? rows[i].mean
                                    : r == 1 ? rows[i].sum
                                             : rows[i].last,
                                    1e-6);
            tn_pack_drop(in);
            tn_pack_drop(out);
            tn_module_drop(m);
        }
    TN_PROVES("LAY-013");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        printed_forms_are_pytorchs,
        printed_text_reads_back_also_runs_and_parameters,
        typed_arguments_build_what_a_spec_builds,
        linear_and_convolution,
        batch_normalization,
        dropout_and_stateless_layers,
        losses_reduce,
        NULL,
    };
    return suite_run("rows", tests);
}
