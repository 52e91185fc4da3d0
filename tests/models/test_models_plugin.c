/* SPDX-License-Identifier: MIT
 *
 * The networks of the plugin tenon.models: the published numbers of parameters, and small networks
 * compared with what PyTorch, torchvision and transformers computed (files/models_plugin.txt, which
 * make_models_plugin.py writes): printed text, names and shapes of the state, results in both
 * modes, gradients. Weights and inputs come from formulas that make_models_plugin.py has too. */
#include "tests/backend/backend.h"
#include "tests/folders.h"

enum { LINE = 1 << 14, TEXT = 1 << 15, NAMES = 256 };
#define NEAR 1e-9

/* ---- the recorded networks ---- */

static char line[LINE], printed[TEXT];
static FILE *file;
static tn_module *net;
static tn_tensor *input;
static int64_t entries, gradients;

static void fill(tn_tensor *tensor, const char *name, int64_t index)
{
    int64_t count = tn_tensor_numel(tensor);
    bool vector = tn_tensor_ndim(tensor) == 1;
    size_t length = strlen(name);
    bool variance = length >= 11 && strcmp(name + length - 11, "running_var") == 0;
    bool weight = length >= 6 && strcmp(name + length - 6, "weight") == 0;
    double *values = malloc((size_t)(count + 1) * sizeof *values);

    for (int64_t i = 0; i < count; i++) {
        double wave = sin((double)i * 1.7 + (double)index + 1);

        if (variance)
            wave = 1 + 0.3 * wave;
        else if (vector && weight)
            wave = 1 + 0.2 * wave;
        else if (tn_tensor_ndim(tensor) > 1)
            wave *= 1.2 / sqrt((double)count / (double)tn_tensor_size(tensor, 0));
        values[i] = wave;
    }
    ok(tn_tensor_copy_in(tensor, values, (size_t)count * sizeof *values));
    free(values);
}

static int64_t read_shape(const char *text, int64_t *shape)
{
    int64_t ndim = 0;

    for (char *end; *text != '-' && *text != '\0' && *text != '\n';
         text = *end == ',' ? end + 1 : end)
        shape[ndim++] = strtoll(text, &end, 10);
    return ndim;
}

static void check_state(const char *text)
{
    char name[NAMES], sizes[64];
    int64_t shape[TN_MAX_DIMS];
    tn_state *state = tn_module_state(net);
    tn_tensor *tensor;
    tn_ints got;

    ck_assert_int_eq(sscanf(text, "%255s %63s", name, sizes), 2);
    ck_assert_int_lt(entries, tn_state_count(state));
    ck_assert_str_eq(tn_state_name(state, entries), name);
    tensor = tn_state_tensor(state, entries);
    got = tn_tensor_shape(tensor);
    ck_assert_int_eq(got.count, read_shape(sizes, shape));
    for (int64_t i = 0; i < got.count; i++)
        ck_assert_int_eq(got.at[i], shape[i]);
    if (tn_tensor_dtype(tensor) == TN_F64)
        fill(tensor, name, entries);
    entries++;
    tn_state_drop(state);
}

static void make_input(const char *text)
{
    int64_t shape[TN_MAX_DIMS], count = 1, ndim;
    char sizes[64];
    int most;

    ck_assert_int_eq(sscanf(text, "%d %63s", &most, sizes), 2);
    ndim = read_shape(sizes, shape);
    for (int64_t i = 0; i < ndim; i++)
        count *= shape[i];
    input = tn_keep(tn_tensor_empty((tn_ints){ shape, ndim }, most > 0 ? TN_I64 : TN_F64, NULL));
    if (most > 0) {
        int64_t *values = malloc((size_t)count * sizeof *values);

        for (int64_t i = 0; i < count; i++)
            values[i] = i * 7 % most;
        ok(tn_tensor_copy_in(input, values, (size_t)count * sizeof *values));
        free(values);
    } else {
        double *values = malloc((size_t)count * sizeof *values);

        for (int64_t i = 0; i < count; i++)
            values[i] = sin((double)i * 0.37);
        ok(tn_tensor_copy_in(input, values, (size_t)count * sizeof *values));
        free(values);
    }
}

static void check_result(const char *spec, char *text, bool training)
{
    long long count, step;
    int used;
    double *values;
    tn_tensor *y;

    ck_assert_int_eq(sscanf(text, "%lld %lld %n", &count, &step, &used), 2);
    text += used;
    ok(tn_module_train(net, training));
    y = tn_module_call(net, input);
    there(y);
    ck_assert_int_eq(tn_tensor_numel(y), count);
    values = malloc((size_t)count * sizeof *values);
    ok(tn_tensor_copy_out(tn_detach(y), values, (size_t)count * sizeof *values));
    for (int64_t i = 0; i < count; i += step) {
        double wanted = strtod(text, &text);

        ck_assert_msg(fabs(values[i] - wanted) <= NEAR * (1 + fabs(wanted)),
                      "%s, %s: result %lld is %.12g, PyTorch's %.12g", spec,
                      training ? "training" : "eval", (long long)i, values[i], wanted);
    }
    if (training) {
        tn_tensor *weights = tn_tensor_empty(tn_tensor_shape(y), TN_F64, NULL);

        for (int64_t i = 0; i < count; i++)
            values[i] = cos((double)i * 0.9);
        ok(tn_tensor_copy_in(weights, values, (size_t)count * sizeof *values));
        ok(tn_backward_from(&y, &weights, 1, NULL));
    }
    free(values);
}

static void check_gradient(const char *spec, const char *text)
{
    char name[NAMES];
    double wanted, sum = 0, size = 0, *values;
    tn_tensor *gradient;
    int64_t count;

    ck_assert_int_eq(sscanf(text, "%255s %lf", name, &wanted), 2);
    gradient = tn_tensor_grad(tn_module_find_parameter(net, name));
    ck_assert_msg(gradient != NULL && gradient != TN_NONE, "%s: no gradient of %s", spec, name);
    count = tn_tensor_numel(gradient);
    values = malloc((size_t)count * sizeof *values);
    ok(tn_tensor_copy_out(gradient, values, (size_t)count * sizeof *values));
    for (int64_t i = 0; i < count; i++) {
        sum += values[i] * cos((double)i * 0.9);
        size += fabs(values[i]);
    }
    ck_assert_msg(fabs(sum - wanted) <= NEAR * (1 + size),
                  "%s: the gradient of %s is %.12g, PyTorch's %.12g", spec, name, sum, wanted);
    free(values);
    gradients++;
}

static void check_end(const char *spec)
{
    static char text[TEXT];
    tn_state *state = tn_module_state(net);

    ck_assert_msg(!tn_failed(), "%s: %s", spec, tn_error_text());
    ck_assert_int_gt(tn_module_repr(net, text, sizeof text), 0);
    ck_assert_msg(strcmp(text, printed) == 0, "%s prints\n%s\nPyTorch's prints\n%s", spec, text,
                  printed);
    ck_assert_int_eq(entries, tn_state_count(state));
    ck_assert_int_eq(gradients, tn_module_parameters(net, NULL, 0));
    tn_state_drop(state);
    tn_module_drop(net);
    tn_tensor_drop(input);
    net = NULL;
}

/* Builds the network anew from its spec with the children in it: it has the same results. */
static void check_copy(const char *spec)
{
    static char text[TEXT];
    tn_module *again;
    tn_state *state = tn_module_state(net);
    tn_tensor *y, *wanted;

    ck_assert_int_lt(tn_module_spec(net, text, sizeof text), TEXT);
    again = tn_module_parse(text);
    ck_assert_msg(again != NULL, "%s: %s", spec, tn_error_text());
    ok(tn_module_to(again, NULL, TN_F64));
    ok(tn_module_load_state(again, state, true));
    ck_assert_int_eq(tn_module_parameter_count(again), tn_module_parameter_count(net));
    tn_module_eval(net);
    tn_module_eval(again);
    wanted = tn_module_call(net, input);
    y = tn_module_call(again, input);
    there(y);
    ck_assert_double_le(get(tn_sum(tn_abs(tn_sub(y, wanted))))[0], 0.0);
    tn_state_drop(state);
    tn_module_drop(again);
}

START_TEST(small_networks_are_those_of_pytorch)
{
    char path[TEST_PATH], spec[512] = "";
    int models = 0;

    file = fopen(source_path(path, "tests/models/files/models_plugin.txt"), "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, LINE, file) != NULL) {
        TN_SCOPE;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "model ", 6) == 0) {
            snprintf(spec, sizeof spec, "%.500s", line + 6);
            net = tn_module_parse(spec);
            ck_assert_msg(net != NULL, "%s: %s", spec, tn_error_text());
            ok(tn_module_to(net, NULL, TN_F64));
            printed[0] = '\0';
            entries = gradients = 0;
            models++;
        } else if (strncmp(line, "printed ", 8) == 0) {
            size_t used = strlen(printed);

            snprintf(printed + used, sizeof printed - used, "%s%s", used > 0 ? "\n" : "", line + 8);
        } else if (strncmp(line, "input ", 6) == 0) {
            make_input(line + 6);
        } else if (strncmp(line, "state ", 6) == 0) {
            check_state(line + 6);
        } else if (strncmp(line, "eval ", 5) == 0) {
            check_result(spec, line + 5, false);
            check_copy(spec);
        } else if (strncmp(line, "train ", 6) == 0) {
            check_result(spec, line + 6, true);
        } else if (strncmp(line, "gradient ", 9) == 0) {
            check_gradient(spec, line + 9);
        } else if (strcmp(line, "end") == 0) {
            check_end(spec);
        }
    }
    fclose(file);
    ck_assert_int_eq(models, 13);
}
END_TEST

/* ---- published numbers ---- */

START_TEST(networks_have_the_published_numbers_of_parameters)
{
    static const struct {
        const char *spec;
        int64_t count;
    } rows[] = {
        { "lenet5()", 61706 },
        { "lenet5(image_size=28)", 61706 },
        { "resnet18()", 11689512 },
        { "resnet34()", 21797672 },
        { "resnet50()", 25557032 },
        { "resnet50(groups=32, width_per_group=4)", 25028904 }, /* resnext50_32x4d */
        { "resnet50(width_per_group=128)", 68883240 },          /* wide_resnet50_2 */
        { "mobilenet_v2()", 3504872 },
        { "vit_tiny()", 5717416 },
        { "vit_base()", 86567656 },
        { "vit_base(patch_size=32)", 88224232 }, /* vit_b_32 */
        { "unet(3, 2)", 31037698 },
        { "unet(3, 2, bilinear=True)", 17262977 + 65 }, /* with one class: 17262977 */
        { "gpt2_small()", 124439808 },
        { "gpt2_small(n_embd=1024, n_layer=24, n_head=16)", 354823168 }, /* gpt2-medium */
        { "mlp([784, 128, 10])", 101770 },
    };
    const tn_device *meta = tn_device_find("meta");

    ck_assert_ptr_nonnull(meta);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_module *module = tn_module_parse_skip_init(meta, rows[i].spec);

        ck_assert_msg(module != NULL, "%s: %s", rows[i].spec, tn_error_text());
        ck_assert_msg(tn_module_parameter_count(module) == rows[i].count,
                      "%s has %lld parameters, published are %lld", rows[i].spec,
                      (long long)tn_module_parameter_count(module), (long long)rows[i].count);
        tn_module_drop(module);
    }
}
END_TEST

/* ---- options ---- */

START_TEST(a_wrong_option_is_refused_by_its_name)
{
    static const char *const rows[][2] = {
        { "mlp([3])", "mlp: sizes: too few, got 1" },
        { "mlp([3, 0])", "mlp: sizes: out of range, got 0" },
        { "mlp([3, 4], activation='swish')", "mlp: activation: unknown, got \"swish\"" },
        { "mlp([3, 4], norm='group')", "mlp: norm: unknown, got" },
        { "mlp([3, 4], dropout=1.5)", "mlp: dropout: out of range, got 1.5" },
        { "lenet5(image_size=3)", "lenet5: image_size: out of range, got 3" },
        { "lenet5(pool='sum')", "lenet5: pool: unknown, got" },
        { "resnet18(num_classes=0)", "resnet18: num_classes: out of range, got 0" },
        { "resnet18(in_channels=-1)", "resnet18: in_channels: out of range, got -1" },
        { "resnet18(stem='tiny')", "resnet18: stem: unknown, got \"tiny\"" },
        { "resnet18(width=9223372036854775807)", "resnet18: width: out of range" },
        { "resnet18(width=2147483647)", "resnet18: width: channels of the last stage" },
        { "resnet18(layers=[])", "resnet18: layers: wrong number of stages, got 0" },
        { "resnet18(layers=[1, 0])", "resnet18: layers: out of range, got 0" },
        { "resnet18(layers=[1, 1, 1, 1, 1])", "resnet18: layers: wrong number of stages, got 5" },
        { "resnet18(layers=[2147483647])", "resnet18: layers: out of range, got 2147483647" },
        { "resnet18(groups=2)", "no option \"groups\"" },
        { "resnet50(groups=0)", "groups: out of range, got 0" },
        { "mobilenet_v2(width_mult=nan)", "mobilenet_v2: width_mult: out of range, got nan" },
        { "mobilenet_v2(round_nearest=0)", "mobilenet_v2: round_nearest: out of range, got 0" },
        { "mobilenet_v2(dropout=-0.1)", "mobilenet_v2: dropout: out of range, got -0.1" },
        { "mobilenet.InvertedResidual(8, 8, 3)", "stride: out of range, got 3" },
        { "mobilenet.InvertedResidual(0, 8)", "inp: out of range, got 0" },
        { "mobilenet.InvertedResidual(8, 0)", "oup: out of range, got 0" },
        { "mobilenet.InvertedResidual(8, 8, 1, 0)", "expand_ratio: out of range, got 0" },
        { "vit_tiny(image_size=225)", "vit_tiny: image_size: not a multiple of patch_size" },
        { "vit_tiny(patch_size=0)", "vit_tiny: patch_size: out of range, got 0" },
        { "vit_tiny(num_heads=5)", "vit_tiny: num_heads: does not divide hidden_dim, got 5" },
        { "vit_base(num_layers=0)", "vit_base: num_layers: out of range, got 0" },
        { "vit_base(attention_dropout=2.0)", "vit_base: attention_dropout: out of range" },
        { "vit_base(image_size=2147483632, patch_size=16)", "image_size: patches" },
        { "unet(depth=9)", "unet: depth: out of range, got 9" },
        { "unet(base=0)", "unet: base: out of range, got 0" },
        { "unet(base=3, bilinear=True)", "unet: base: wrong number, got 3" },
        { "gpt2_small(n_head=5)", "gpt2_small: n_head: does not divide n_embd, got 5 and 768" },
        { "gpt2_small(vocab_size=0)", "gpt2_small: vocab_size: out of range, got 0" },
        { "gpt2_small(n_layer=5000)", "gpt2_small: n_layer: out of range, got 5000" },
        { "gpt2_small(n_inner=0)", "gpt2_small: n_inner: out of range, got 0" },
        { "lstm_lm()", "\"vocab_size\": missing" },
        { "lstm_lm(9, hidden_size=4, tie_weights=True)", "lstm_lm: tie_weights: embedding_dim" },
    };
    const tn_device *meta = tn_device_find("meta");

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_module *module;

        tn_error_clear();
        module = tn_module_parse_skip_init(meta, rows[i][0]);
        ck_assert_msg(module == NULL, "%s is built", rows[i][0]);
        ck_assert_msg(strstr(tn_error_text(), rows[i][1]) != NULL, "%s: %s; expected %s",
                      rows[i][0], tn_error_text(), rows[i][1]);
    }
    tn_error_clear();
}
END_TEST

START_TEST(a_wrong_input_is_refused)
{
    TN_SCOPE;
    static const struct {
        const char *spec;
        int64_t shape[4], ndim;
        tn_dtype dtype;
        const char *text;
    } rows[] = {
        { "lenet5()", { 1, 1, 28, 28 }, 4, TN_F32, "lenet5: input: wrong size, got 28 x 28" },
        { "resnet18()", { 1, 1, 8, 8 }, 4, TN_F32, "wrong number of channels, got 1; expected 3" },
        { "resnet18()", { 3, 8, 8 }, 3, TN_F32, "input: wrong number of dimensions, got 3" },
        { "vit_tiny()", { 1, 3, 32, 32 }, 4, TN_F32, "vit_tiny: input: wrong size, got 32 x 32" },
        { "unet()", { 1, 3, 32, 8 }, 4, TN_F32, "unet: input: too small, got 32 x 8" },
        { "gpt2_small(n_positions=4)", { 1, 5 }, 2, TN_I64, "input: too long, got 5 tokens" },
        { "gpt2_small(n_positions=4)", { 1, 4 }, 2, TN_F32, "input: wrong dtype, got float32" },
        { "mlp([64, 10])",
          { 2, 1, 8, 8 },
          4,
          TN_F32,
          "mlp: input: wrong size of the last dimension, got 8; expected 64, the first of sizes; "
          "flatten=True merges" },
        { "mlp([64, 10])", { 2, 9 }, 2, TN_F32, "got 9; expected 64, the first of sizes" },
        { "mlp([64, 10], flatten=True)", { 2, 9, 9 }, 3, TN_F32, "got 81; expected 64" },
        { "lstm_lm(9)", { 4 }, 1, TN_I64, "lstm_lm: input: wrong shape, got 1 dimensions" },
    };
    const tn_device *meta = tn_device_find("meta");

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_module *module = tn_module_parse_skip_init(meta, rows[i].spec);
        tn_tensor *x = tn_tensor_empty((tn_ints){ rows[i].shape, rows[i].ndim }, rows[i].dtype,
                                       meta);

        there(x);
        ck_assert_ptr_null(tn_module_call(module, x));
        ck_assert_msg(strstr(tn_error_text(), rows[i].text) != NULL, "%s: %s; expected %s",
                      rows[i].spec, tn_error_text(), rows[i].text);
        tn_error_clear();
        tn_module_drop(module);
    }
}
END_TEST

/* ---- initialization, modes, states of other programs ---- */

static double spread(tn_module *module, const char *path)
{
    TN_SCOPE;
    tn_tensor *tensor = tn_module_find_tensor(module, path);

    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    return get(tn_std(tn_detach(tensor)))[0];
}

START_TEST(networks_are_initialized_as_in_torchvision_and_transformers)
{
    tn_module *module = tn_module_new("resnet18(zero_init_residual=True)");

    ck_assert_double_eq_tol(spread(module, "layer4.1.conv2.weight"), sqrt(2.0 / (512 * 9)), 1e-4);
    ck_assert_double_eq_tol(spread(module, "conv1.weight"), sqrt(2.0 / (64 * 49)), 1e-3);
    ck_assert_double_eq(get(tn_module_find_tensor(module, "layer1.0.bn2.weight"))[0], 0);
    ck_assert_double_eq(get(tn_module_find_tensor(module, "layer1.0.bn1.weight"))[0], 1);
    tn_module_drop(module);
    module = tn_module_new("mobilenet_v2()");
    ck_assert_double_eq_tol(spread(module, "classifier.1.weight"), 0.01, 1e-4);
    ck_assert_double_eq_tol(spread(module, "features.18.0.weight"), sqrt(2.0 / 1280), 1e-3);
    tn_module_drop(module);
    module = tn_module_new("vit_tiny()");
    ck_assert_double_eq_tol(spread(module, "encoder.pos_embedding"), 0.02, 1e-3);
    ck_assert_double_eq(spread(module, "heads.head.weight"), 0);
    ck_assert_double_eq_tol(spread(module, "encoder.layers.encoder_layer_3.mlp.0.weight"),
                            sqrt(2.0 / (192 + 768)), 1e-3);
    ck_assert_double_eq_tol(spread(module, "conv_proj.weight"), sqrt(1.0 / 768), 1e-3);
    tn_module_drop(module);
    module = tn_module_new("gpt2_small(vocab_size=500, n_embd=192, n_layer=8)");
    ck_assert_double_eq_tol(spread(module, "transformer.wte.weight"), 0.02, 1e-3);
    ck_assert_double_eq_tol(spread(module, "transformer.h.7.attn.c_attn.weight"), 0.02, 1e-3);
    ck_assert_double_eq_tol(spread(module, "transformer.h.7.mlp.c_proj.weight"), 0.005, 2e-4);
    ck_assert_ptr_eq(tn_module_find_tensor(module, "lm_head.weight"),
                     tn_module_find_tensor(module, "transformer.wte.weight"));
    tn_module_drop(module);
    module = tn_module_new("lstm_lm(50)");
    ck_assert_double_eq_tol(spread(module, "encoder.weight"), 0.2 / sqrt(12), 2e-3);
    tn_module_drop(module);
}
END_TEST

/* The module that a spec with all children gives shares the table, too. */
START_TEST(a_tie_survives_a_spec_a_copy_and_a_state)
{
    static char text[TEXT];
    tn_module *module = tn_module_new(
        "gpt2_small(vocab_size=7, n_positions=4, n_embd=4, n_layer=1, "
        "n_head=1)");
    tn_module *again, *copy = tn_module_copy(module);
    tn_state *state = tn_module_state(module);

    ck_assert_int_lt(tn_module_spec(module, text, sizeof text), TEXT);
    again = tn_module_parse(text);
    ck_assert_ptr_eq(tn_module_find_tensor(again, "lm_head.weight"),
                     tn_module_find_tensor(again, "transformer.wte.weight"));
    ck_assert_ptr_eq(tn_module_find_tensor(copy, "lm_head.weight"),
                     tn_module_find_tensor(copy, "transformer.wte.weight"));
    ok(tn_state_remove(state, "lm_head.weight")); /* as in the published file */
    ok(tn_module_load_state(again, state, true));
    tn_state_drop(state);
    tn_module_drop(again);
    tn_module_drop(copy);
    tn_module_drop(module);
}
END_TEST

static void rename_entry(tn_state *state, const char *from, const char *to)
{
    ok(tn_state_rename(state, from, to));
}

START_TEST(states_with_the_names_of_other_programs_load_strictly)
{
    TN_SCOPE;
    static const char *const timm[][2] = {
        { "class_token", "cls_token" },
        { "encoder.pos_embedding", "pos_embed" },
        { "conv_proj.weight", "patch_embed.proj.weight" },
        { "conv_proj.bias", "patch_embed.proj.bias" },
        { "encoder.layers.encoder_layer_0.ln_1.weight", "blocks.0.norm1.weight" },
        { "encoder.layers.encoder_layer_0.ln_1.bias", "blocks.0.norm1.bias" },
        { "encoder.layers.encoder_layer_0.self_attention.in_proj_weight",
          "blocks.0.attn.qkv.weight" },
        { "encoder.layers.encoder_layer_0.self_attention.in_proj_bias", "blocks.0.attn.qkv.bias" },
        { "encoder.layers.encoder_layer_0.self_attention.out_proj.weight",
          "blocks.0.attn.proj.weight" },
        { "encoder.layers.encoder_layer_0.self_attention.out_proj.bias",
          "blocks.0.attn.proj.bias" },
        { "encoder.layers.encoder_layer_0.ln_2.weight", "blocks.0.norm2.weight" },
        { "encoder.layers.encoder_layer_0.ln_2.bias", "blocks.0.norm2.bias" },
        { "encoder.layers.encoder_layer_0.mlp.0.weight", "blocks.0.mlp.fc1.weight" },
        { "encoder.layers.encoder_layer_0.mlp.0.bias", "blocks.0.mlp.fc1.bias" },
        { "encoder.layers.encoder_layer_0.mlp.3.weight", "blocks.0.mlp.fc2.weight" },
        { "encoder.layers.encoder_layer_0.mlp.3.bias", "blocks.0.mlp.fc2.bias" },
        { "encoder.ln.weight", "norm.weight" },
        { "encoder.ln.bias", "norm.bias" },
        { "heads.head.weight", "head.weight" },
        { "heads.head.bias", "head.bias" }
    };
    static const char vit[] = "vit_tiny(image_size=4, patch_size=2, num_layers=1, num_heads=1, "
                              "hidden_dim=4)";
    static const char gpt[] = "gpt2_small(vocab_size=7, n_positions=4, n_embd=4, n_layer=1, "
                              "n_head=1)";
    tn_module *module = tn_module_parse(vit), *other = tn_module_parse(vit);
    tn_state *state = tn_module_state(module);
    tn_tensor *mask = tn_tensor_full(TN_SHAPE(1, 1, 4, 4), 1, TN_F32, NULL);

    for (size_t i = 0; i < sizeof timm / sizeof *timm; i++)
        rename_entry(state, timm[i][0], timm[i][1]);
    ok(tn_module_load_state(other, state, true));
    for (size_t i = 0; i < sizeof timm / sizeof *timm; i++)
        ck_assert_double_eq(get(tn_module_find_tensor(other, timm[i][0]))[1],
                            get(tn_module_find_tensor(module, timm[i][0]))[1]);
    tn_state_drop(state);
    state = tn_module_state(module); /* before torchvision 0.14 */
    rename_entry(state, "encoder.layers.encoder_layer_0.mlp.0.weight",
                 "encoder.layers.encoder_layer_0.mlp.linear_1.weight");
    rename_entry(state, "encoder.layers.encoder_layer_0.mlp.0.bias",
                 "encoder.layers.encoder_layer_0.mlp.linear_1.bias");
    rename_entry(state, "encoder.layers.encoder_layer_0.mlp.3.weight",
                 "encoder.layers.encoder_layer_0.mlp.linear_2.weight");
    rename_entry(state, "encoder.layers.encoder_layer_0.mlp.3.bias",
                 "encoder.layers.encoder_layer_0.mlp.linear_2.bias");
    ok(tn_module_load_state(other, state, true));
    tn_state_drop(state);
    tn_module_drop(module);
    tn_module_drop(other);
    module = tn_module_parse(gpt), other = tn_module_parse(gpt); /* the file of GPT-2 */
    state = tn_module_state(module);
    ok(tn_state_remove(state, "lm_head.weight"));
    ok(tn_state_strip_prefix(state, "transformer."));
    ok(tn_state_set(state, "h.0.attn.bias", mask));
    ck_assert_int_ge(tn_state_find(state, "h.0.mlp.c_fc.weight"), 0);
    ok(tn_module_load_state(other, state, true));
    ck_assert_double_eq(get(tn_module_find_tensor(other, "transformer.h.0.mlp.c_fc.weight"))[3],
                        get(tn_module_find_tensor(module, "transformer.h.0.mlp.c_fc.weight"))[3]);
    tn_state_drop(state);
    tn_module_drop(module);
    tn_module_drop(other);
}
END_TEST

START_TEST(dropout_acts_in_training_only)
{
    TN_SCOPE;
    static const int64_t tokens[] = { 1, 2, 3, 4 };
    static const char *const specs[] = {
        "gpt2_small(vocab_size=7, n_positions=4, n_embd=8, n_layer=1, n_head=2, dropout=0.5)",
        "lstm_lm(7, embedding_dim=8, hidden_size=8, dropout=0.5)"
    };
    tn_tensor *x = tn_tensor_from(tokens, TN_I64, TN_SHAPE(1, 4));

    for (int i = 0; i < 2; i++) {
        tn_module *module = tn_module_parse(specs[i]);
        double a, b;

        a = get(tn_sum(tn_abs(tn_module_call(module, x))))[0];
        b = get(tn_sum(tn_abs(tn_module_call(module, x))))[0];
        ck_assert_double_ne(a, b);
        tn_module_eval(module);
        a = get(tn_sum(tn_abs(tn_module_call(module, x))))[0];
        b = get(tn_sum(tn_abs(tn_module_call(module, x))))[0];
        ck_assert_double_eq(a, b);
        tn_module_drop(module);
    }
}
END_TEST

/* A text in two halves, where the second one starts with the states that the first one returned,
 * has the logits of the whole text. */
START_TEST(lstm_lm_takes_and_returns_states)
{
    TN_SCOPE;
    static const int64_t tokens[] = { 1, 2, 3, 4, 5, 6 };
    tn_module *module = tn_module_new("lstm_lm(7, embedding_dim=5, hidden_size=4)");
    tn_tensor *x = tn_tensor_from(tokens, TN_I64, TN_SHAPE(1, 6)), *whole, *out[3], *in[3];

    tn_module_eval(module);
    whole = tn_module_call(module, x);
    in[0] = tn_narrow(x, 1, 0, 3), in[1] = in[2] = TN_NONE;
    ok(tn_module_call_many(module, in, 2, out, 3));
    in[0] = tn_narrow(x, 1, 3, 3), in[1] = out[1], in[2] = out[2];
    ok(tn_module_call_many(module, in, 3, out, 3));
    ck_assert_double_le(get(tn_sum(tn_abs(tn_sub(out[0], tn_narrow(whole, 1, 3, 3)))))[0], 1e-6);
    tn_module_drop(module);
}
END_TEST

RUN_SUITE("models-plugin", small_networks_are_those_of_pytorch,
          networks_have_the_published_numbers_of_parameters, a_wrong_option_is_refused_by_its_name,
          a_wrong_input_is_refused, networks_are_initialized_as_in_torchvision_and_transformers,
          a_tie_survives_a_spec_a_copy_and_a_state,
          states_with_the_names_of_other_programs_load_strictly, dropout_acts_in_training_only,
          lstm_lm_takes_and_returns_states)
