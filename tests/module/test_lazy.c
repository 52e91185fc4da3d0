/* SPDX-License-Identifier: MIT
 *
 * Lazy modules, reset_parameters, skip_init, and where and of what dtype a spec makes its tensors.
 */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

#define PROBLEM(words)                                                                             \
    do {                                                                                           \
        ck_assert_msg(tn_failed() && strstr(tn_error_text(), words) != NULL, "%s",                 \
                      tn_error_text());                                                            \
        tn_error_clear();                                                                          \
    } while (0)

static tn_tensor *ones(tn_ints shape)
{
    return tn_tensor_full(shape, 1, TN_F32, NULL);
}

static tn_status first_tensor(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    *(tn_tensor **)user = tensor;
    return TN_ERR_VALUE; /* ends the walk */
}

START_TEST(a_lazy_module_takes_its_shapes_from_the_first_call)
{
    TN_SCOPE;
    tn_module *net = parsed("Sequential(LazyConv2d(4, 3), LazyBatchNorm2d(), ReLU(), Flatten(), "
                            "LazyLinear(5))");
    tn_module *linear = tn_module_child(net, "4"), *norm = tn_module_child(net, "1");
    tn_tensor *weight = NULL;
    ck_assert(tn_module_is_lazy(linear, "weight") && tn_module_is_lazy(norm, NULL));
    expect_repr(linear, "LazyLinear(in_features=0, out_features=5, bias=True)");
    tn_module *instance = parsed(
        "LazyInstanceNorm1d()"); /* unlike InstanceNorm1d, with parameters */
    expect_repr(instance, "LazyInstanceNorm1d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, "
                          "track_running_stats=True)");
    tn_module_drop(instance);
    ck_assert_ptr_null(tn_module_get(linear, "weight"));
    PROBLEM("no shape yet");
    tn_module_each_tensor(linear, TN_SLOT_PARAMETER, false, first_tensor, &weight);
    tn_error_clear();
    tn_state *before = tn_module_state(net);
    ck_assert_str_eq(tn_state_name(before, 0), "0.weight");
    ck_assert_int_ge(tn_state_find(before, "1.running_var"), 0);
    tn_optimizer *opt = tn_optimizer_new(net, "SGD(lr=0.5)"); /* with parameters without shapes */
    ck_assert_msg(opt != NULL && tn_module_to(net, NULL, TN_F64) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_reset_parameters(linear), TN_ERR_VALUE);
    PROBLEM("no shapes yet");

    tn_tensor *x = tn_uniform_(tn_tensor_full(TN_SHAPE(2, 3, 5, 5), 1, TN_F64, NULL));
    tn_tensor *y = tn_module_call(net, x);
    ck_assert_msg(y != NULL && tn_tensor_size(y, 1) == 5, "%s", tn_error_text());
    ck_assert_str_eq(tn_module_type(linear), "Linear");
    ck_assert_str_eq(tn_module_type(norm), "BatchNorm2d");
    expect_repr(linear, "Linear(in_features=36, out_features=5, bias=True)");
    expect_spec(tn_module_child(net, "0"),
                "Conv2d(in_channels=3, out_channels=4, kernel_size=(3,), stride=(1,), padding=0, "
                "dilation=(1,), groups=1, bias=True, padding_mode='zeros', dtype=float64)");
    ck_assert_ptr_eq(tn_module_get(linear, "weight"), weight); /* the same object, now shaped */
    ck_assert_int_eq(tn_tensor_dtype(weight), TN_F64);
    ck_assert_int_eq(tn_tensor_numel(weight), 5 * 36);
    double most = tn_item(tn_amax(tn_abs(weight)));
    ck_assert(most > 0.1 && most <= 1 / 6.0);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(norm, "running_var"))) > 0, 1);
    /* The optimizer steps what it holds. */
    double was = tn_item(tn_sum(weight));
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_int_eq(tn_optimizer_step(opt), TN_OK);
    ck_assert_double_ne(tn_item(tn_sum(weight)), was);
    ck_assert_ptr_nonnull(tn_module_call(net, x));
    tn_optimizer_drop(opt);
    tn_state_drop(before);
    tn_module_drop(net);
}
END_TEST

START_TEST(loading_gives_shapes_and_values)
{
    TN_SCOPE;
    tn_module *plain = parsed("Sequential(Linear(3, 2), BatchNorm1d(2))"), *lazy, *empty;
    tn_state *state = tn_module_state(plain), *waiting;
    tn_tensor *x = ones(TN_SHAPE(4, 3));
    lazy = parsed("Sequential(LazyLinear(2), LazyBatchNorm1d())");
    empty = parsed("Sequential(LazyLinear(2), LazyBatchNorm1d())");
    waiting = tn_module_state(empty);
    ck_assert_int_eq(tn_state_count(waiting), tn_state_count(state));
    ck_assert_int_eq(tn_module_load_state(lazy, waiting, true), TN_OK); /* still without shapes */
    ck_assert(tn_module_is_lazy(tn_module_child(lazy, "0"), "weight"));
    ck_assert_int_eq(tn_module_load_state(plain, waiting, true), TN_ERR_RUNTIME);
    PROBLEM("size mismatch for 0.weight");
    tn_module *copy = tn_module_copy(lazy); /* waits as well */
    ck_assert(tn_module_is_lazy(tn_module_child(copy, "0"), "weight"));
    ck_assert_ptr_nonnull(tn_module_call(copy, x));
    ck_assert_str_eq(tn_module_type(tn_module_child(copy, "0")), "Linear");
    ck_assert(tn_module_is_lazy(tn_module_child(lazy, "0"), "weight"));
    tn_module_drop(copy);
    ck_assert_msg(tn_module_load_state(lazy, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert(!tn_module_is_lazy(tn_module_child(lazy, "0"), NULL));
    tn_module_eval(plain);
    tn_module_eval(lazy);
    tn_tensor *way = tn_sub(tn_module_call(plain, x), tn_module_call(lazy, x));
    ck_assert_msg(way != NULL, "%s", tn_error_text());
    ck_assert_double_eq(tn_item(tn_amax(tn_abs(way))), 0); /* the loaded weights have stayed */
    ck_assert_str_eq(tn_module_type(tn_module_child(lazy, "0")), "Linear");
    /* A first call that does not fit leaves it as it was. */
    ck_assert_ptr_null(tn_module_call(tn_module_child(empty, "1"), ones(TN_SHAPE(3))));
    PROBLEM("expected 2D or 3D input");
    ck_assert_str_eq(tn_module_type(tn_module_child(empty, "1")), "LazyBatchNorm1d");
    TN_PROVES("INI-017");
    tn_state_drop(waiting);
    tn_state_drop(state);
    tn_module_drop(empty);
    tn_module_drop(lazy);
    tn_module_drop(plain);
}
END_TEST

START_TEST(device_and_dtype_go_into_every_spec)
{
    TN_SCOPE;
    tn_module *m = parsed("BatchNorm2d(3)");
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "weight")), TN_F32);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "running_var")), TN_F32);
    ck_assert_str_eq(tn_device_type(tn_tensor_device(tn_module_get(m, "weight"))), "cpu");
    TN_PROVES("INI-001");
    tn_module_drop(m);
    m = parsed("BatchNorm2d(3, dtype=float16)");
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "weight")), TN_F16);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "running_mean")), TN_F16);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "num_batches_tracked")), TN_I64);
    tn_module_drop(m);
    m = parsed("BatchNorm2d(3, device='meta', dtype=torch.float64)");
    ck_assert_str_eq(tn_device_type(tn_tensor_device(tn_module_get(m, "num_batches_tracked"))),
                     "meta");
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "running_mean")), TN_F64);
    tn_module_drop(m);
    /* The options of a container apply to its entries, unless an entry has options of its own. */
    m = parsed("Sequential(Linear(2, 3), LSTM(3, 2, dtype=float32), TransformerEncoderLayer(4, 2, "
               "8), dtype=float64)");
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "0.weight")), TN_F64);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "1.weight_ih_l0")), TN_F32);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "2.self_attn.in_proj_weight")),
                     TN_F64);
    ck_assert_int_eq(tn_default_dtype(), TN_F32); /* the thread's default is back */
    char text[4096];
    tn_module_spec(tn_module_child(m, "0"), text, sizeof text);
    ck_assert_str_eq(text, "Linear(in_features=2, out_features=3, bias=True, dtype=float64)");
    ck_assert_ptr_null(tn_module_parse("Linear(2, 3, dtype=int32)"));
    PROBLEM("column 14: layer Linear: dtype: parameter: wrong dtype, got int32");
    ck_assert_ptr_null(tn_module_parse("Linear(2, 3, device='nowhere:3')"));
    PROBLEM("device \"nowhere:3\": does not exist");
    TN_PROVES("INI-002");
    tn_module_drop(m);
    /* A key of a dictionary may have these names. */
    m = parsed("ModuleDict(device=ReLU(), dtype=Tanh())");
    ck_assert_int_eq(tn_dict_count(m), 2);
    tn_module_drop(m);
    m = parsed("Linear(2, 2, bias=False, dtype=complex128)");
    tn_tensor *weight = tn_module_get(m, "weight");
    ck_assert_int_eq(tn_tensor_dtype(weight), TN_C128);
    double parts[8];
    ck_assert_int_eq(tn_tensor_copy_out(weight, parts, sizeof parts), TN_OK);
    for (int i = 0; i < 8; i++) /* both parts are drawn */
        ck_assert(parts[i] != 0 && parts[i] >= -0.8 && parts[i] <= 0.8);
    static const double two[4] = { 1, 2, 3, -1 };
    double y[4];
    tn_init(weight, "ones()");
    tn_tensor *z = tn_module_call(m, tn_tensor_from(two, TN_C128, TN_SHAPE(1, 2)));
    ck_assert_msg(z != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_copy_out(z, y, sizeof y), TN_OK);
    ck_assert(y[0] == 4 && y[1] == 1 && y[2] == 4 && y[3] == 1); /* the sum of the row */
    TN_PROVES("LAY-003");
    tn_module_drop(m);
}
END_TEST

/* A layer of a program that makes its tensors with the defaults supports both options without code
 * of its own. */
static tn_status custom_build(tn_module *self)
{
    tn_tensor *w = tn_tensor_empty(TN_SHAPE(4, 3), TN_DTYPE_AUTO, NULL);
    tn_status status = tn_module_add_parameter(self, "weight", tn_parameter(w, true));
    return status == TN_OK ? tn_init(tn_module_get(self, "weight"), "normal()") : status;
}
static tn_tensor *custom_forward(tn_module *self, tn_tensor *x)
{
    return tn_matmul(x, tn_module_get(self, "weight"));
}
static const tn_layer_def custom = { TN_HEAD(tn_layer_def), .name = "MyLinear",
                                     .build = custom_build, .forward = custom_forward };

START_TEST(a_custom_layer_is_a_layer_like_the_others)
{
    TN_SCOPE;
    ck_assert_int_eq(tn_register(&custom), TN_OK);
    tn_random_seed(3);
    tn_module *m = parsed("MyLinear()"), *half = parsed("MyLinear(dtype=float64, device='meta')");
    tn_tensor *y = tn_module_call(m, ones(TN_SHAPE(4)));
    ck_assert_msg(y != NULL && tn_tensor_ndim(y) == 1 && tn_tensor_size(y, 0) == 3, "%s",
                  tn_error_text());
    float w[12], got[3];
    tn_tensor_copy_out(tn_module_get(m, "weight"), w, sizeof w);
    tn_tensor_copy_out(y, got, sizeof got);
    ck_assert_float_eq_tol(got[1], w[1] + w[4] + w[7] + w[10], 1e-5);
    expect_repr(m, "MyLinear()");
    TN_PROVES("LAY-001", "REP-013");
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(half, "weight")), TN_F64);
    ck_assert_str_eq(tn_device_type(tn_tensor_device(tn_module_get(half, "weight"))), "meta");
    TN_PROVES("INI-003");
    /* tn_module_parse_skip_init: the init of MyLinear does not run either, as it only calls
     * tn_init. */
    uint64_t seed = 9;
    tn_random_seed(seed);
    double first = tn_item(tn_sum(tn_uniform_(ones(TN_SHAPE(8)))));
    tn_random_seed(seed);
    tn_module *raw = tn_module_parse_skip_init(NULL,
                                               "Sequential(MyLinear(), Linear(3, 5), LSTM(2, 2))");
    ck_assert_msg(raw != NULL, "%s", tn_error_text());
    ck_assert_double_eq(tn_item(tn_sum(tn_uniform_(ones(TN_SHAPE(8))))), first);
    ck_assert_int_eq(tn_tensor_size(tn_module_find_tensor(raw, "1.weight"), 0), 5);
    ck_assert_str_eq(tn_device_type(tn_tensor_device(tn_module_find_tensor(raw, "1.weight"))),
                     "cpu");
    ck_assert_ptr_null(tn_module_parse_skip_init(NULL, "Nothing()"));
    tn_error_clear();
    ck_assert_int_eq(tn_init(tn_module_find_tensor(raw, "1.weight"), "ones()"), TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_find_tensor(raw, "1.weight"))), 15);
    TN_PROVES("INI-004", "INI-005");
    tn_module_drop(raw);
    tn_module_drop(half);
    tn_module_drop(m);
}
END_TEST

START_TEST(resetting_fills_the_same_tensors_again)
{
    TN_SCOPE;
    static const char *const specs[] = {
        "Linear(3, 4)", "Conv2d(2, 4, 3)", "ConvTranspose1d(2, 2, 2)", "Embedding(5, 3)",
        "LSTM(2, 3)",   "GRUCell(2, 3)",   "Bilinear(2, 3, 4)",        "MultiheadAttention(4, 2)",
    };
    for (int64_t i = 0; i < (int64_t)(sizeof specs / sizeof *specs); i++) {
        TN_SCOPE;
        tn_module *m = parsed(specs[i]);
        tn_tensor *before = NULL, *after = NULL;
        tn_module_each_tensor(m, TN_SLOT_PARAMETER, false, first_tensor, &before);
        tn_error_clear();
        const void *memory = tn_tensor_data(before);
        tn_init(before, "constant(7.0)");
        ck_assert_msg(tn_module_reset_parameters(m) == TN_OK, "%s", tn_error_text());
        tn_module_each_tensor(m, TN_SLOT_PARAMETER, false, first_tensor, &after);
        tn_error_clear();
        ck_assert_ptr_eq(before, after);
        ck_assert_ptr_eq(tn_tensor_data(after), memory);
        ck_assert(tn_tensor_requires_grad(after) && tn_tensor_is_leaf(after));
        ck_assert_double_lt(tn_item(tn_amax(after)), 6.5);
        tn_module_drop(m);
    }
    tn_module *norm = parsed("BatchNorm1d(3)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(4, 3), 5, TN_F32, NULL);
    ck_assert_ptr_nonnull(tn_module_call(norm, x));
    ck_assert_double_eq(tn_item(tn_module_get(norm, "num_batches_tracked")), 1);
    tn_init(tn_module_get(norm, "weight"), "constant(7.0)");
    ck_assert_int_eq(tn_module_reset_parameters(norm), TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(norm, "weight"))), 3);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(norm, "running_mean"))), 0);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(norm, "running_var"))), 3);
    ck_assert_double_eq(tn_item(tn_module_get(norm, "num_batches_tracked")), 0);
    TN_PROVES("INI-018");
    tn_module_drop(norm);
    tn_module *relu = parsed("ReLU()");
    ck_assert_int_eq(tn_module_reset_parameters(relu), TN_ERR_ATTR);
    PROBLEM("'ReLU' object has no attribute 'reset_parameters'");
    tn_module_drop(relu);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_lazy_module_takes_its_shapes_from_the_first_call,
        loading_gives_shapes_and_values,
        device_and_dtype_go_into_every_spec,
        a_custom_layer_is_a_layer_like_the_others,
        resetting_fills_the_same_tensors_again,
        NULL,
    };
    return suite_run("lazy", tests);
}
