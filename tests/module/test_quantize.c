/* SPDX-License-Identifier: MIT
 *
 * tn_module_quantize: networks, hooks, shared modules, layers and schemes of the program, refusals.
 */
#include "quantize.h"

static int hook_calls;

static tn_status count_call(void *user, tn_module *module, const tn_pack *input,
                            const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)input, (void)output, (void)replacement, (void)outcome;
    *(tn_module **)user = module;
    hook_calls++;
    return TN_OK;
}

static const char two[] = "ModuleDict(body=Sequential(Linear(16, 32), ReLU()), head=Linear(32, 4))";

static tn_tensor *run_two(tn_module *self, tn_tensor *x)
{
    return tn_module_call_chain(self, "body head", x);
}

static tn_module *make_two(void)
{
    tn_module *dict = eval_of(two), *net = tn_module_plain("Two");

    ck_assert_int_eq(tn_module_add_child(net, "body", tn_module_child(dict, "body")), TN_OK);
    ck_assert_int_eq(tn_module_add_child(net, "head", tn_module_child(dict, "head")), TN_OK);
    ck_assert_int_eq(tn_module_set_forward(net, run_two, NULL, NULL), TN_OK);
    tn_module_drop(dict);
    return net;
}

START_TEST(listed_types_are_replaced_in_place_with_their_hooks)
{
    TN_SCOPE;
    tn_module *net = make_two(), *seen = NULL;
    tn_tensor *x = tn_randn(TN_SHAPE(3, 16)), *y = called(net, x);
    tn_quantize_report report;
    tn_hook_handle hook = tn_module_hook_forward(tn_module_find(net, "body.0"), count_call, 0,
                                                 &seen, NULL);

    ck_assert(hook != 0);
    hook_calls = 0;
    ck_assert_int_eq(tn_module_train(net, true), TN_OK);
    ck_assert_int_eq(
        tn_module_quantize(net, "int8_dynamic(types=[Linear], skip=[head])", &x, 1, &report),
        TN_OK);
    ck_assert_int_eq(hook_calls, 1); /* of the call with x, and of no other */
    ck_assert_int_eq(report.count, 1);
    ck_assert_str_eq(report.rows[0].path, "body.0");
    ck_assert_str_eq(report.rows[0].type, "Linear");
    ck_assert_str_eq(report.rows[0].becomes, "QuantizedLinear");
    ck_assert_ptr_null(report.rows[0].why);
    ck_assert_int_eq(report.rows[0].bytes_before, (16 * 32 + 32) * 4);
    ck_assert_int_eq(report.rows[0].bytes_after, 16 * 32 + 32 * 4 + 32 * 4);
    ck_assert_float_gt(report.rows[0].sqnr, 35);
    ck_assert_float_gt(report.rows[0].seconds_after, 0);
    tn_quantize_report_free(&report);
    ck_assert_str_eq(tn_module_type(tn_module_find(net, "head")), "Linear");
    ck_assert(!tn_module_is_training(net) && !tn_module_is_training(tn_module_find(net, "body.0")));
    ck_assert_float_gt(sqnr(y, called(net, x)), 35);
    ck_assert_int_eq(hook_calls, 2);
    ck_assert_ptr_eq(seen, tn_module_find(net, "body.0"));
    ck_assert(tn_hook_remove(hook));
    tn_module_drop(net);
    TN_PROVES("QNT-007");
}
END_TEST

START_TEST(int8_weights_take_a_quarter_of_the_memory)
{
    TN_SCOPE;
    tn_module *net = eval_of("Sequential(Linear(256, 256), ReLU(), Linear(256, 256))");
    int64_t bytes[2] = { 0, 0 };
    tn_quantize_report report;

    ck_assert_int_eq(tn_module_quantize(net, "int8_dynamic", NULL, 0, &report), TN_OK);
    for (int64_t i = 0; i < report.count; i++) {
        bytes[0] += report.rows[i].bytes_before;
        bytes[1] += report.rows[i].bytes_after;
    }
    ck_assert_float_lt((double)bytes[1], 0.26 * (double)bytes[0]);
    tn_quantize_report_free(&report);
    tn_module_drop(net);
    TN_PROVES("QNT-001");
}
END_TEST

/* Modules that change their input in place do not spoil the comparison. */
START_TEST(an_activation_in_place_costs_nothing)
{
    TN_SCOPE;
    tn_module *net = eval_of("Sequential(Linear(8, 8), ReLU(inplace=True), Linear(8, 8))");
    tn_tensor *x = tn_randn(TN_SHAPE(16, 8));
    tn_quantize_report report;

    ck_assert_int_eq(tn_module_quantize(net, "int8_dynamic", &x, 1, &report), TN_OK);
    ck_assert_int_eq(report.quantized, 2);
    ck_assert_float_gt(report.rows[0].sqnr, 35);
    tn_quantize_report_free(&report);
    tn_module_drop(net);
}
END_TEST

/* The random input is as large as the windows need, and rows without elements are a weight, too. */
START_TEST(sizes_out_of_the_ordinary_are_quantized)
{
    static const char *const nets[][2] = {
        { "Sequential(Conv2d(3, 4, 32, stride=32))", "int8_dynamic" },
        { "Sequential(Conv1d(3, 4, 5, dilation=8))", "int8_dynamic" },
        { "Sequential(Conv1d(3, 4, 3, padding=30, padding_mode='reflect'))", "int8_dynamic" },
        { "Sequential(Linear(64, 0))", "int4_weight(group=32)" },
    };

    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        TN_SCOPE;
        tn_module *net = eval_of(nets[i][0]);

        quantized(net, nets[i][1], 1);
        tn_module_drop(net);
    }
}
END_TEST

START_TEST(a_shared_module_is_replaced_once_everywhere)
{
    TN_SCOPE;
    tn_module *net = eval_of("Sequential(Linear(8, 8), ReLU(), Sequential(Identity()))");

    ck_assert_int_eq(tn_module_set_child(net, "2.0", tn_module_child(net, "0"), true), TN_OK);
    quantized(net, "int8_dynamic", 1);
    ck_assert_ptr_eq(tn_module_find(net, "2.0"), tn_module_child(net, "0"));
    ck_assert_str_eq(tn_module_type(tn_module_child(net, "0")), "QuantizedLinear");
    tn_module_drop(net);
}
END_TEST

/* A row of the weight that four bits ruin: the module stays in float, and the report names it. */
START_TEST(modules_below_the_limit_stay_in_float)
{
    TN_SCOPE;
    tn_random_seed(1);
    tn_module *net = eval_of("Sequential(Identity(), Linear(64, 64, bias=False))"), *before;
    tn_tensor *weight = tn_detach(tn_module_find_tensor(net, "1.weight"));
    tn_quantize_report report;

    before = tn_module_child(net, "1");
    ck_assert_ptr_nonnull(tn_fill_(tn_select(weight, 1, 0), 5.0));
    ck_assert_ptr_nonnull(tn_fill_(tn_select(weight, 1, 32), -5.0));
    tn_tensor *x = tn_mul(tn_randn(TN_SHAPE(16, 64)), tn_ne(tn_arange(VEC(0), 0, 64), VEC(0)));
    x = tn_mul(x, tn_ne(tn_arange(VEC(0), 0, 64), VEC(32)));
    ck_assert_int_eq(tn_module_quantize(net, "int4_weight(group=0, limit=15)", &x, 1, &report),
                     TN_OK);
    ck_assert_int_eq(report.count, 1);
    ck_assert_ptr_null(report.rows[0].becomes);
    ck_assert(strstr(report.rows[0].why, "SQNR below 15.0 dB") != NULL);
    ck_assert_float_lt(report.rows[0].sqnr, 15);
    ck_assert_ptr_eq(tn_module_child(net, "1"), before);
    tn_quantize_report_free(&report);
    tn_module_drop(net);
}
END_TEST

/* ---- a layer and a scheme of the program ----------------------------------------------------- */

typedef struct scale {
    int64_t features;
    const char *weight;
    int64_t group;
    const char *activation;
} scale;

static const tn_option float_options[] = { TN_OPTION_INT_REQUIRED(scale, features, "of the input"),
                                           TN_OPTION_END };
static const tn_option own_options[] = { TN_OPTION_INT_REQUIRED(scale, features, "of the input"),
                                         TN_OPTION_STRING(scale, weight, "'int8'", "its format"),
                                         TN_OPTION_STRING(scale, activation, "'row'", "unused"),
                                         TN_OPTION_END };

static tn_status build_float(tn_module *self)
{
    const scale *s = tn_module_data(self);

    return tn_module_add_parameter(self, "weight",
                                   tn_parameter(tn_ones(TN_SHAPE(s->features)), true));
}

static tn_tensor *scale_float(tn_module *self, tn_tensor *x)
{
    return tn_mul(x, tn_module_get(self, "weight"));
}

static tn_status build_own(tn_module *self)
{
    const scale *s = tn_module_data(self);

    return tn_module_add_buffer(self, "weight", tn_cast(tn_zeros(TN_SHAPE(s->features)), TN_I8), 0);
}

/* from_float: eighths. */
static tn_status load_own(tn_module *self, tn_loading *loading)
{
    TN_SCOPE;
    int64_t at = tn_state_find(loading->state, "weight");
    tn_tensor *weight = at >= 0 ? tn_state_tensor(loading->state, at) : NULL;

    if (weight != NULL && tn_tensor_dtype(weight) == TN_F32)
        tn_state_set(loading->state, "weight",
                     tn_cast(tn_round(tn_mul_scalar(tn_detach(weight), 8.0)), TN_I8));
    return tn_module_load_own(self, loading);
}

static tn_tensor *scale_own(tn_module *self, tn_tensor *x)
{
    return tn_mul_scalar(tn_mul(x, tn_cast(tn_module_get(self, "weight"), TN_F32)), 0.125);
}

START_TEST(a_layer_of_a_plugin_joins_by_its_name)
{
    static const tn_layer_def plain = { TN_HEAD(tn_layer_def),      .name = "Scale",
                                        .help = "scales",           .options = float_options,
                                        .data_size = sizeof(scale), .build = build_float,
                                        .forward = scale_float };
    static const tn_layer_def own = { TN_HEAD(tn_layer_def),      .name = "QuantizedScale",
                                      .help = "scales",           .options = own_options,
                                      .data_size = sizeof(scale), .build = build_own,
                                      .forward = scale_own,       .load_state = load_own };
    TN_SCOPE;

    ck_assert_int_eq(tn_register(&plain), TN_OK);
    ck_assert_int_eq(tn_register(&own), TN_OK);
    tn_module *net = eval_of("Sequential(Scale(3), Linear(3, 2))");
    tn_tensor *weight = tn_detach(tn_module_find_tensor(net, "0.weight"));
    ck_assert_ptr_nonnull(tn_copy_(weight, VEC(0.5f, 0.26f, -2)));
    quantized(net, "int8_dynamic(limit=0)", 2);
    ck_assert_str_eq(tn_module_type(tn_module_child(net, "0")), "QuantizedScale");
    HAS(called(tn_module_child(net, "0"), VEC(1, 4, 1)), 0.5, 1, -2);
    ck_assert_str_eq(tn_module_type(tn_module_child(net, "1")), "QuantizedLinear");
    tn_module_drop(net);
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_layer_def, "QuantizedScale"), TN_OK);
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_layer_def, "Scale"), TN_OK);
    TN_PROVES("QNT-012");
}
END_TEST

/* A scheme that replaces ReLU by Identity: the module of a scheme maps modules. */
typedef struct own_scheme {
    tn_value types, skip;
    double limit;
} own_scheme;
static const tn_option scheme_options[] = {
    TN_OPTION_ROW(own_scheme, types, "None", "layers", TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_ROW(own_scheme, skip, "None", "paths", TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_FLOAT(own_scheme, limit, "0.0", "dB"), TN_OPTION_END
};

static tn_status map_relu(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_module *from = tn_pack_at(input, 0).as.module, *made = parsed("Identity()");
    tn_status status;

    (void)self;
    status = strcmp(tn_module_type(from), "ReLU") == 0
                 ? tn_pack_add(output, NULL, tn_value_module(made))
                 : tn_pack_add(output, NULL, tn_value_string("only ReLU"));
    tn_module_drop(made);
    return status;
}

START_TEST(a_plugin_adds_a_scheme_as_a_layer)
{
    static const tn_layer_def scheme = { TN_HEAD(tn_layer_def),
                                         .name = "no_relu",
                                         .help = "a scheme",
                                         .options = scheme_options,
                                         .data_size = sizeof(own_scheme),
                                         .call = map_relu };
    TN_SCOPE;
    tn_quantize_report report;

    ck_assert_int_eq(tn_register(&scheme), TN_OK);
    tn_module *net = eval_of("Sequential(Linear(3, 2), ReLU())");
    ck_assert_msg(tn_module_quantize(net, "no_relu()", NULL, 0, &report) == TN_OK, "%s",
                  tn_error_text());
    FINE();
    tn_quantize_report_free(&report);
    tn_module_drop(net);
    net = eval_of("Sequential(Linear(3, 2), ReLU())");
    ck_assert_int_eq(tn_module_quantize(net, "no_relu(types=[Linear, ReLU])", NULL, 0, &report),
                     TN_OK);
    ck_assert_int_eq(report.count, 2);
    ck_assert_str_eq(report.rows[0].why, "only ReLU");
    ck_assert_str_eq(report.rows[1].becomes, "Identity");
    tn_quantize_report_free(&report);
    tn_module_drop(net);
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_layer_def, "no_relu"), TN_OK);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused(const char *spec, const char *scheme, tn_status code, const char *words)
{
    tn_module *net = eval_of(spec);
    char before[2000], after[2000];

    tn_module_spec(net, before, sizeof before);
    ck_assert_int_ne(tn_module_quantize(net, scheme, NULL, 0, NULL), TN_OK);
    FAILED(code, words);
    tn_module_spec(net, after, sizeof after);
    ck_assert_str_eq(before, after);
    tn_module_drop(net);
}

START_TEST(what_cannot_be_quantized_is_refused_with_words)
{
    static const char net[] = "Sequential(Linear(8, 4))";

    refused(net, "nothing", TN_ERR_KEY, "no plugin provides a layer \"nothing\"");
    refused(net, "ReLU()", TN_ERR_TYPE, "ReLU is no scheme");
    refused(net, "int8_dynamic(types=[LSTM])", TN_ERR_KEY, "types: cannot be quantized, got");
    refused(net, "int8_dynamic(skip=[0])", TN_ERR_TYPE, "skip: wrong type, got list");
    refused(net, "int8_dynamic(limit=-2)", TN_ERR_VALUE, "limit: wrong, got -2");
    refused(net, "int8_dynamic(limit=nan)", TN_ERR_VALUE, "limit: wrong, got nan");
    refused(net, "int4_weight(group=-1)", TN_ERR_VALUE, "group: negative, got -1");
    refused(net, "int8_dynamic(activation=rows)", TN_ERR_VALUE, "expected row or tensor");
    refused(net, "int8_weight(activation=row)", TN_ERR_VALUE, "expected block or none");
    refused(net, "int8_static()", TN_ERR_VALUE, "needs calibration");
    refused("Linear(8, 4)", "int8_dynamic", TN_ERR_VALUE, "it is a Linear itself");
    ck_assert_int_ne(tn_module_quantize(NULL, "int8_dynamic", NULL, 0, NULL), TN_OK);
    FAILED(TN_ERR_VALUE, "net: it is NULL");

    tn_module *own = eval_of(net);
    ck_assert_int_ne(tn_module_quantize(own, NULL, NULL, 0, NULL), TN_OK);
    FAILED(TN_ERR_VALUE, "scheme: it is NULL");
    ck_assert_int_eq(tn_parametrize_with(own, "0.weight", "WeightNorm()"), TN_OK);
    ck_assert_int_ne(tn_module_quantize(own, "int8_dynamic", NULL, 0, NULL), TN_OK);
    FAILED(TN_ERR_VALUE, "0: it has a parametrization");
    tn_module_drop(own);
    own = eval_of(net);
    ck_assert_int_eq(tn_prune(own, "0.weight", "L1Unstructured(amount=0.5)"), TN_OK);
    ck_assert_int_ne(tn_module_quantize(own, "int8_dynamic", NULL, 0, NULL), TN_OK);
    FAILED(TN_ERR_VALUE, "0: it is pruned");
    tn_module_drop(own);
}
END_TEST

/* Sizes and options that a quantized layer cannot have: the module stays in float. */
START_TEST(what_has_no_quantized_form_stays_in_float)
{
    static const struct {
        const char *net, *scheme, *why;
    } cases[] = {
        { "Sequential(Linear(10, 4))", "int4_weight", "group: does not divide the row, got 32" },
        { "Sequential(Linear(33, 4))", "q8_0_weight", "q8_0 needs rows that are a multiple of 32" },
        { "Sequential(Linear(33, 4))", "int4_weight(group=0)", "int4 needs rows" },
        { "Sequential(Embedding(4, 32, max_norm=1))", "int8_weight", "has no option max_norm" },
    };
    TN_SCOPE;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_module *net = eval_of(cases[i].net);
        tn_quantize_report report;

        ck_assert_msg(tn_module_quantize(net, cases[i].scheme, NULL, 0, &report) == TN_OK, "%s",
                      tn_error_text());
        FINE();
        ck_assert_int_eq(report.quantized, 0);
        ck_assert_msg(strstr(report.rows[0].why, cases[i].why) != NULL, "%s", report.rows[0].why);
        tn_quantize_report_free(&report);
        tn_module_drop(net);
    }
}
END_TEST

/* A weight that training has ruined is not quantized: the report names the module. */
START_TEST(a_weight_with_nan_stays_in_float)
{
    TN_SCOPE;
    tn_module *net = eval_of("Sequential(Linear(8, 4), Linear(4, 2))");
    tn_quantize_report report;

    ck_assert_ptr_nonnull(
        tn_fill_(tn_select(tn_detach(tn_module_find_tensor(net, "0.weight")), 0, 1), (double)NAN));
    ck_assert_int_eq(tn_module_quantize(net, "int8_dynamic", NULL, 0, &report), TN_OK);
    ck_assert_int_eq(report.quantized, 1);
    ck_assert_str_eq(report.rows[0].path, "0");
    ck_assert_ptr_null(report.rows[0].becomes);
    ck_assert_msg(strstr(report.rows[0].why, "weight: wrong number, got nan at element 8") != NULL,
                  "%s", report.rows[0].why);
    ck_assert_str_eq(tn_module_type(tn_module_child(net, "0")), "Linear");
    tn_quantize_report_free(&report);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("quantize");
    Suite *suite = suite_create("quantized networks");

    tcase_add_test(tcase, listed_types_are_replaced_in_place_with_their_hooks);
    tcase_add_test(tcase, int8_weights_take_a_quarter_of_the_memory);
    tcase_add_test(tcase, an_activation_in_place_costs_nothing);
    tcase_add_test(tcase, sizes_out_of_the_ordinary_are_quantized);
    tcase_add_test(tcase, a_shared_module_is_replaced_once_everywhere);
    tcase_add_test(tcase, modules_below_the_limit_stay_in_float);
    tcase_add_test(tcase, a_layer_of_a_plugin_joins_by_its_name);
    tcase_add_test(tcase, a_plugin_adds_a_scheme_as_a_layer);
    tcase_add_test(tcase, what_cannot_be_quantized_is_refused_with_words);
    tcase_add_test(tcase, what_has_no_quantized_form_stays_in_float);
    tcase_add_test(tcase, a_weight_with_nan_stays_in_float);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
