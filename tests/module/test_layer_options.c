/* SPDX-License-Identifier: MIT
 *
 * Every layer is built and called with extreme values of every option: time and memory are bounded,
 * and the result or error is that of PyTorch (tests/oracle/layer_options.txt). `--list` prints what
 * make_layer_options.py reads. */
#include <math.h>

#include "tests/module/layer_inputs.h"
#include "tests/oracle/option_rows.h"
#include "tests/op/suite.h"

#define LAYERS_TXT TN_TEST_SRCDIR "/tests/oracle/layers.txt"
#define ROWS_TXT TN_TEST_SRCDIR "/tests/oracle/layer_options.txt"

enum { LINE = 1 << 16, MOST = 6, OPTIONS = 1024 };

static char line[LINE];

/* Where Tenon intentionally differs from PyTorch, with the reason. */
static difference differences[] = {
    { "*Conv*", "stride", "*", "kernels count strides in 32 bits", 0 },
    { "MaxPool1d", "stride", "*", "as above", 0 },
    { "Unfold", "stride", "*", "as above", 0 },
    { "InstanceNorm*", "num_features", "-*", "a number of channels is not negative", 0 },
    { "AvgPool*", "divisor_override", "-92*", "INT64_MIN is None in option structs", 0 },
    { "LinearCross*", "ignore_index", "-92*", "as above", 0 },
    { "Hardtanh", "max_val", "-1.0", "equal bounds: PyTorch's function takes them", 0 },
    { "PReLU", "init", "1e+308", "the value that its type gives it", 0 },
    { "Unflatten", "unflattened_size", "-1", "one number is a row of one", 0 },
    { "GaussianNLLLoss", "eps", "*", "a variance is not raised to a negative number", 0 },
    { "Triplet*", "margin", "nan", "NaN is not greater than 0", 0 },
    { "*CrossEntropyLoss", "label_smoothing", "*", "a share is between 0 and 1", 0 },
    { "ZeroPad*", "padding", "()", "an empty row is a mistake", 0 },
    { "ConstantPad*", "padding", "()", "as above", 0 },
    { "CircularPad*", "padding", "-92*", "PyTorch's sum overflows", 0 },
    { "MaxUnpool*", "kernel_size", "0", "a window has an element", 0 },
    { "MaxUnpool*", "stride", "-1", "windows go forward", 0 },
    { "MaxUnpool*", "padding", "-1", "no padding is less than none", 0 },
    { "Upsample", "scale_factor", "0.0", "PyTorch takes 0 together with a size for None", 0 },
    { "UpsamplingBilinear2d", "scale_factor", "0.0", "as above", 0 },
    { "MultiheadAttention", "dropout", "*", "a probability is between 0 and 1", 0 },
    { "FractionalMaxPool*", "output_size", "0", "a result has an element", 0 },
    { "AdaptiveLog*", "div_value", "1e+308", "PyTorch's power overflows; clusters get 0 features",
      0 },
    { NULL, NULL, NULL, NULL, 0 },
};

/* Options that are not compared: PyTorch has no such layer, or no option with this name. */
static const char *const unasked[] = {
    "*Loss.pos_weight", /* tensors in PyTorch: tests/module/test_loss_weights.c */
    "*Loss.weight",
    "CTCLoss.*",
    "ChannelShuffle.*",
    "DistributedDataParallel.*", /* tests/parallel */
    "LayerNorm2d.*",
    "LinearCross*.options", /* only None */
    "Upsampling*.mode",     /* only the one that PyTorch prints */
    "Lazy*.num_features",
    "LazyLinear.in_features",
    "NonDynamicallyQuantizableLinear.*",
    "Permute.*",
    /* parametrizations: tests/module/test_parametrize_values.c and test_parametrize_rules.c */
    "LoRA.*",
    "Orthogonal.*",
    "SpectralNorm.*",
    "StochasticDepth.*",
    "SyncBatchNorm.*", /* tests/parallel */
    "WeightNorm.*",
    /* quantization: tests/module/test_quantize_layers.c */
    "*Range.*",
    "FakeQuantize.*",
    "Quantized*",
    "int4_weight.*",
    "int8_*",
    "q4_0_weight.*",
    "q8_0_weight.*",
    /* networks of the plugin tenon.models: tests/models/test_models_plugin.c */
    "gpt2*",
    "lenet5.*",
    "lstm_lm.*",
    "mlp.*",
    "mobilenet*",
    "resnet*",
    "unet*",
    "vit*",
    NULL,
};

static char asked[OPTIONS][96]; /* "Conv2d.stride" */
static int n_asked;

static struct {
    tn_tensor *in[MOST];
    int64_t n_in;
    char type[32], option[32], value[32], verdict[64], spec[512];
} one;

/* The inputs of the first entry of layers.txt with that spec. */
static void take_inputs(const char *spec)
{
    FILE *file = fopen(LAYERS_TXT, "r");
    bool ours = false;

    ck_assert_ptr_nonnull(file);
    while (one.n_in > 0)
        tn_tensor_drop(one.in[--one.n_in]);
    while (fgets(line, LINE, file) != NULL) {
        TN_SCOPE;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "layer ", 6) == 0) {
            if (ours)
                break;
            ours = strcmp(line + 6, spec) == 0;
        } else if (ours && strncmp(line, "in ", 3) == 0) {
            one.in[one.n_in++] = layer_input(line + 3);
        }
    }
    fclose(file);
    ck_assert_msg(ours, "%s: layers.txt has no inputs", spec);
}

static tn_tensor *called(tn_module *module)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor *y = NULL;
    int status = TN_OK;

    for (int64_t i = 0; i < one.n_in && status == TN_OK; i++)
        status = tn_pack_add(in, NULL, tn_value_tensor(one.in[i]));
    if (status == TN_OK && tn_module_call_pack(module, in, out) == TN_OK)
        y = tn_pack_tensor(out, 0);
    if (y != NULL)
        y = tn_tensor_to_scope(tn_keep(y));
    tn_pack_drop(in);
    tn_pack_drop(out);
    return y;
}

static void try_row(void *user)
{
    TN_SCOPE;
    (void)user;
    tn_grad_begin(false);
    tn_module *module = tn_module_parse(one.spec);
    tn_tensor *y = NULL;

    if (module != NULL && tn_module_to(module, NULL, TN_F64) == TN_OK)
        y = called(module);
    judge(one.verdict, y, one.type, one.option,
          is_difference(differences, one.type, one.option, one.value));
    tn_error_clear();
    tn_module_drop(module);
    tn_grad_end();
}

static void read_try(const char *text)
{
    const char *spec = strstr(text, " : ");
    int used = 0;

    ck_assert_ptr_nonnull(spec);
    ck_assert_int_eq(sscanf(text, "%31s %31s %n", one.option, one.value, &used), 2);
    snprintf(one.verdict, sizeof one.verdict, "%.*s", (int)(spec - text) - used, text + used);
    snprintf(one.spec, sizeof one.spec, "%s", spec + 3);
    snprintf(one.type, sizeof one.type, "%.*s", (int)strcspn(one.spec, "("), one.spec);
    snprintf(current, sizeof current, "%s", one.spec);
    ck_assert_int_lt(n_asked, OPTIONS);
    snprintf(asked[n_asked], sizeof asked[0], "%s.%s", one.type, one.option);
    if (n_asked == 0 || strcmp(asked[n_asked], asked[n_asked - 1]) != 0)
        n_asked++;
    run_row(try_row, NULL);
}

START_TEST(every_option_of_every_layer_at_its_extremes_is_answered_as_pytorch_does)
{
    static char row[1024];
    FILE *file = fopen(ROWS_TXT, "r");

    bound_all();
    ck_assert_ptr_nonnull(file);
    while (fgets(row, sizeof row, file) != NULL) {
        row[strcspn(row, "\n")] = '\0';
        if (strncmp(row, "layer ", 6) == 0)
            take_inputs(row + 6);
        else if (strncmp(row, "try ", 4) == 0)
            read_try(row + 4);
    }
    fclose(file);
    while (one.n_in > 0)
        tn_tensor_drop(one.in[--one.n_in]);
    expect_all_right(differences, 1900);
}
END_TEST

/* ---- inputs of other dimensions ---- */

START_TEST(padding_layers_take_the_dimensions_that_those_of_pytorch_take)
{
    static const struct {
        const char *spec;
        int32_t least, most;
    } rows[] = {
        { "ZeroPad1d(1)", 1, 6 },          { "ZeroPad2d(1)", 2, 6 },
        { "ZeroPad3d(1)", 3, 6 },          { "ConstantPad1d(1, 2.0)", 1, 6 },
        { "ConstantPad2d(1, 2.0)", 2, 6 }, { "ConstantPad3d(1, 2.0)", 3, 6 },
        { "ReflectionPad1d(1)", 2, 3 },    { "ReflectionPad2d(1)", 3, 4 },
        { "ReflectionPad3d(1)", 4, 5 },    { "ReplicationPad1d(1)", 2, 3 },
        { "ReplicationPad2d(1)", 3, 4 },   { "ReplicationPad3d(1)", 4, 5 },
        { "CircularPad1d(1)", 2, 3 },      { "CircularPad2d(1)", 3, 4 },
        { "CircularPad3d(1)", 4, 5 },
    };
    static const int64_t threes[] = { 3, 3, 3, 3, 3, 3 };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_module *module = tn_module_parse(rows[i].spec);

        ck_assert_msg(module != NULL, "%s", tn_error_text());
        for (int32_t n = 1; n <= 6; n++) {
            TN_SCOPE;
            tn_tensor *x = tn_tensor_full((tn_ints){ threes, n }, 1.0, TN_F32, NULL),
                      *y = tn_module_call(module, x);
            bool taken = n >= rows[i].least && n <= rows[i].most;

            ck_assert_msg((y != NULL) == taken, "%s of %d dimensions: %s", rows[i].spec, (int)n,
                          y != NULL ? "taken" : tn_error_text());
            tn_error_clear();
        }
        tn_module_drop(module);
    }
}
END_TEST

/* PyTorch gives a ValueError where a layer in Python checks the rank, and a RuntimeError where an
 * operator does. */
START_TEST(a_wrong_rank_is_the_error_that_it_is_in_pytorch)
{
    enum { NONE = -1 }; /* no state */
    static const struct {
        const char *spec;
        int32_t x, h, c;
        tn_status code;
    } rows[] = {
        { "RNNCell(3, 3)", 0, NONE, NONE, TN_ERR_VALUE },
        { "RNNCell(3, 3)", 3, NONE, NONE, TN_ERR_VALUE },
        { "RNNCell(3, 3)", 1, NONE, NONE, TN_OK },
        { "RNNCell(3, 3)", 2, 0, NONE, TN_ERR_VALUE },
        { "RNNCell(3, 3)", 2, 3, NONE, TN_ERR_VALUE },
        { "RNNCell(3, 3)", 2, 1, NONE, TN_ERR_RUNTIME },
        { "RNNCell(3, 3)", 1, 2, NONE, TN_ERR_RUNTIME },
        { "RNNCell(3, 3)", 2, 2, NONE, TN_OK },
        { "GRUCell(3, 3)", 3, NONE, NONE, TN_ERR_VALUE },
        { "GRUCell(3, 3)", 2, 3, NONE, TN_ERR_VALUE },
        { "GRUCell(3, 3)", 2, 1, NONE, TN_ERR_RUNTIME },
        { "LSTMCell(3, 3)", 3, NONE, NONE, TN_ERR_VALUE },
        { "LSTMCell(3, 3)", 2, 3, 2, TN_ERR_VALUE },
        { "LSTMCell(3, 3)", 2, 2, 0, TN_ERR_VALUE },
        { "LSTMCell(3, 3)", 2, 2, 1, TN_ERR_RUNTIME },
        { "LSTMCell(3, 3)", 2, 2, 2, TN_OK },
        { "RNN(3, 3)", 1, NONE, NONE, TN_ERR_VALUE },
        { "LSTM(3, 3)", 4, NONE, NONE, TN_ERR_VALUE },
        { "GRU(3, 3)", 0, NONE, NONE, TN_ERR_VALUE },
        { "GRU(4, 3)", 3, NONE, NONE, TN_ERR_RUNTIME },
        { "GRU(3, 3)", 3, 1, NONE, TN_ERR_RUNTIME },
        { "CircularPad1d(1)", 1, NONE, NONE, TN_ERR_VALUE },
        { "CircularPad2d(1)", 5, NONE, NONE, TN_ERR_VALUE },
        { "CircularPad3d(1)", 3, NONE, NONE, TN_ERR_VALUE },
        { "ReflectionPad1d(1)", 1, NONE, NONE, TN_ERR_RUNTIME },
        { "ReplicationPad2d(1)", 5, NONE, NONE, TN_ERR_RUNTIME },
    };
    static const int64_t threes[] = { 3, 3, 3, 3, 3 };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_module *module = tn_module_parse(rows[i].spec);
        int32_t ranks[] = { rows[i].x, rows[i].h, rows[i].c };
        tn_pack *in = tn_pack_new(), *out = tn_pack_new();
        tn_status status;

        ck_assert_msg(module != NULL, "%s", tn_error_text());
        for (size_t k = 0; k < 3 && ranks[k] != NONE; k++)
            tn_pack_add(
                in, NULL,
                tn_value_tensor(tn_tensor_full((tn_ints){ threes, ranks[k] }, 1.0, TN_F32, NULL)));
        status = tn_module_call_pack(module, in, out);
        ck_assert_msg(status == rows[i].code, "%s, row %d: status %d: %s", rows[i].spec, (int)i,
                      (int)status, tn_error_text());
        tn_error_clear();
        tn_pack_drop(in);
        tn_pack_drop(out);
        tn_module_drop(module);
    }
}
END_TEST

/* Only the first dimension may be empty: the batch, or the channels where there is no batch. */
START_TEST(fractional_pools_take_an_empty_first_dimension_only)
{
    static const int64_t sizes[][5] = { { 0, 2, 6, 6, 6 }, { 2, 0, 6, 6, 6 }, { 0, 0, 6, 6, 6 },
                                        { 0, 6, 6, 6, 0 }, { 2, 6, 6, 6, 0 }, { 2, 2, 6, 0, 6 } };
    static const struct {
        const char *spec;
        int32_t size, ndim; /* the row of sizes */
        bool taken;
    } rows[] = {
        { "FractionalMaxPool2d(2, 3)", 0, 4, true },  { "FractionalMaxPool2d(2, 3)", 1, 4, false },
        { "FractionalMaxPool2d(2, 3)", 2, 4, false }, { "FractionalMaxPool2d(2, 3)", 3, 3, true },
        { "FractionalMaxPool2d(2, 3)", 1, 3, false }, { "FractionalMaxPool2d(2, 3)", 5, 4, false },
        { "FractionalMaxPool3d(2, 3)", 0, 5, true },  { "FractionalMaxPool3d(2, 3)", 1, 5, false },
        { "FractionalMaxPool3d(2, 3)", 2, 5, false }, { "FractionalMaxPool3d(2, 3)", 3, 4, true },
        { "FractionalMaxPool3d(2, 3)", 1, 4, false }, { "FractionalMaxPool3d(2, 3)", 4, 5, false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_module *module = tn_module_parse(rows[i].spec);
        tn_ints shape = { sizes[rows[i].size], rows[i].ndim };
        tn_tensor *y;

        ck_assert_msg(module != NULL, "%s", tn_error_text());
        y = tn_module_call(module, tn_tensor_full(shape, 1.0, TN_F32, NULL));
        ck_assert_msg((y != NULL) == rows[i].taken, "row %d: %s", (int)i,
                      y != NULL ? "taken" : tn_error_text());
        if (y == NULL)
            ck_assert_msg(tn_error_code() == TN_ERR_RUNTIME &&
                              strstr(tn_error_text(), "only the first dimension may be empty"),
                          "row %d: %s", (int)i, tn_error_text());
        for (int32_t d = 0; y != NULL && d < rows[i].ndim; d++)
            ck_assert_int_eq(tn_tensor_size(y, d), shape.at[d] == 6 ? 3 : shape.at[d]);
        tn_error_clear();
        tn_module_drop(module);
    }
}
END_TEST

START_TEST(adaptive_pools_keep_the_size_for_none_and_print_it)
{
    TN_SCOPE;
    char text[80];
    tn_module *module = tn_module_parse("AdaptiveAvgPool2d((2, None))");
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    tn_tensor *y = tn_module_call(module, tn_tensor_full(TN_SHAPE(1, 4, 5), 1.0, TN_F32, NULL));

    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_size(y, 1), 2);
    ck_assert_int_eq(tn_tensor_size(y, 2), 5);
    tn_module_repr(module, text, sizeof text);
    ck_assert_str_eq(text, "AdaptiveAvgPool2d(output_size=(2, None))");
    tn_module_drop(module);
}
END_TEST

START_TEST(a_loss_refuses_its_smoothing_when_it_is_built)
{
    ck_assert_ptr_null(tn_module_parse("LinearCrossEntropyLoss(4, 5, label_smoothing=2.0)"));
    ck_assert_ptr_nonnull(
        strstr(tn_error_text(), "label_smoothing: out of range, got 2.0; expected"));
    tn_error_clear();
}
END_TEST

/* ---- which options there are ---- */

static const char *kind_name(const tn_option *row)
{
    static const char *const names[] = {
        [TN_OPTION_KIND_INT] = "int",     [TN_OPTION_KIND_FLOAT] = "float",
        [TN_OPTION_KIND_INTS] = "ints",   [TN_OPTION_KIND_FLOATS] = "floats",
        [TN_OPTION_KIND_STRING] = "text", [TN_OPTION_KIND_VALUE] = "value",
        [TN_OPTION_KIND_BOOL] = NULL,     [TN_OPTION_KIND_DTYPE] = NULL,
    };

    return (row->flags & TN_OPTION_MANY) != 0 || row->kind >= sizeof names / sizeof *names
               ? NULL
               : names[row->kind];
}

static void each_option(void (*take)(const char *layer, const tn_option *row, const char *kind))
{
    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_layer_def); i++) {
        const char *name = tn_registry_name(TN_KIND_tn_layer_def, i);
        const tn_layer_def *layer = (const void *)tn_registry_find(TN_KIND_tn_layer_def, name);

        for (const tn_option *row = layer->options; row != NULL && row->kind != TN_OPTION_KIND_END;
             row++)
            if (kind_name(row) != NULL)
                take(name, row, kind_name(row));
    }
}

static void expect_asked(const char *layer, const tn_option *row, const char *kind)
{
    char name[96];

    (void)kind;
    snprintf(name, sizeof name, "%s.%s", layer, row->name);
    for (int i = 0; i < n_asked; i++)
        if (strcmp(asked[i], name) == 0)
            return;
    for (int i = 0; unasked[i] != NULL; i++)
        if (like(unasked[i], name))
            return;
    fprintf(stderr, "%s: no row\n", name);
    rows_wrong++;
}

START_TEST(no_option_of_a_layer_is_left_out)
{
    rows_wrong = 0;
    each_option(expect_asked);
    ck_assert_int_eq(rows_wrong, 0);
}
END_TEST

static void list_option(const char *layer, const tn_option *row, const char *kind)
{
    printf("layer %s %s %s\n", layer, row->name, kind);
}

int main(int argc, char **argv)
{
    TCase *tcase = tcase_create("options");
    Suite *suite = suite_create("options of layers");

    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        each_option(list_option);
        return 0;
    }
    each_alone = argc > 1 && strcmp(argv[1], "--each") == 0;
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, every_option_of_every_layer_at_its_extremes_is_answered_as_pytorch_does);
    tcase_add_test(tcase, no_option_of_a_layer_is_left_out);
    tcase_add_test(tcase, padding_layers_take_the_dimensions_that_those_of_pytorch_take);
    tcase_add_test(tcase, a_wrong_rank_is_the_error_that_it_is_in_pytorch);
    tcase_add_test(tcase, fractional_pools_take_an_empty_first_dimension_only);
    tcase_add_test(tcase, adaptive_pools_keep_the_size_for_none_and_print_it);
    tcase_add_test(tcase, a_loss_refuses_its_smoothing_when_it_is_built);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
