/* SPDX-License-Identifier: MIT
 *
 * Every standard layer against PyTorch's module of the same spec: what it prints, the names and
 * order of its state, what it computes, its gradients, its buffers after the call; and the printed
 * text builds it again. tests/oracle/make_layers.py wrote the data. */
#include <ctype.h>
#include <stdio.h>

#include "tests/op/suite.h"

enum { LINE = 1 << 17, MOST = 6, VALUES = 4096 };

static double numbers[VALUES];
static char line[LINE], name[256];
static int layers_seen;

static tn_tensor *read_tensor(const char *text, const char *dtype_name, const char *shape_text)
{
    int64_t sizes[TN_MAX_DIMS], ndim = 0, count = 0;
    tn_dtype dtype;
    tn_tensor *wide, *tensor;

    ck_assert_int_eq(tn_dtype_parse(dtype_name, &dtype), TN_OK);
    for (char *end; isdigit((unsigned char)*shape_text) && *shape_text != '\0';
         shape_text = *end == ',' ? end + 1 : end)
        sizes[ndim++] = strtoll(shape_text, &end, 10);
    for (char *end; *text != '\0'; text = end) {
        numbers[count++] = strtod(text, &end);
        while (isspace((unsigned char)*end))
            end++;
    }
    if (strcmp(shape_text, "flat") == 0)
        sizes[ndim++] = count;
    wide = tn_tensor_from(numbers, TN_F64, (tn_ints){ sizes, ndim });
    tensor = dtype == TN_F64 ? wide : tn_cast(wide, dtype);
    ck_assert_msg(tensor != NULL, "%s: %s", name, tn_error_text());
    return tensor;
}

static void same(tn_tensor *got, const char *text, const char *what)
{
    int64_t count = 0;

    for (char *end; *text != '\0'; text = end) {
        numbers[count++] = strtod(text, &end);
        while (isspace((unsigned char)*end))
            end++;
    }
    ck_assert_msg(got != NULL && got != TN_NONE, "%s: no %s: %s", name, what, tn_error_text());
    ck_assert_msg(tn_tensor_numel(got) == count, "%s: %s has %lld elements, PyTorch's %lld", name,
                  what, (long long)tn_tensor_numel(got), (long long)count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(at(got, i) - numbers[i]) <= 1e-7 * (1 + fabs(numbers[i])),
                      "%s: %s, element %lld: %.12g, PyTorch says %.12g", name, what, (long long)i,
                      at(got, i), numbers[i]);
}

static void as_double(tn_module *module)
{
    ck_assert_int_eq(tn_module_to(module, NULL, TN_F64), TN_OK);
}

/* A backslash and an n encode the end of a line. */
static void lines_again(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++)
        if (text[0] == '\\' && text[1] == 'n')
            *to++ = '\n', text++;
        else
            *to++ = *text;
    *to = '\0';
}

/* Fails unless the module prints as in PyTorch, and its spec builds a module with the same spec. */
static void print_and_read(tn_module *module, const char *wanted)
{
    static char text[1 << 16], again[1 << 16];
    tn_module *second;

    tn_module_repr(module, text, sizeof text);
    ck_assert_msg(strcmp(text, wanted) == 0, "%s prints %s, PyTorch %s", name, text, wanted);
    ck_assert_int_lt(tn_module_spec(module, text, sizeof text), sizeof text);
    second = tn_module_parse(text);
    ck_assert_msg(second != NULL, "%s: its spec %s: %s", name, text, tn_error_text());
    tn_module_spec(second, again, sizeof again);
    ck_assert_str_eq(again, text);
    tn_module_drop(second);
}

struct run {
    tn_module *module;
    tn_state *state;
    tn_tensor *in[MOST], *out[MOST];
    int64_t n_in, n_out, compared;
    bool train, called, loaded;
};

static void load(struct run *r)
{
    if (r->loaded)
        return;
    r->loaded = true;
    ck_assert_msg(tn_module_load_state(r->module, r->state, true) == TN_OK, "%s: %s", name,
                  tn_error_text());
    ck_assert_int_eq(tn_module_train(r->module, r->train), TN_OK);
}

/* The tensors of a result, those within tuples in their order. */
static void take_results(struct run *r, tn_value value)
{
    if (value.kind == TN_VALUE_TENSOR)
        r->out[r->n_out++] = tn_keep(value.as.tensor);
    for (uint32_t i = 0; value.kind == TN_VALUE_TUPLE && i < value.count; i++)
        take_results(r, value.as.list[i]);
}

/* The arguments; those of an LSTM with states are two, as in PyTorch: x, (h, c). */
static void add_inputs(struct run *r, tn_pack *input)
{
    bool states = strncmp(name, "LSTM", 4) == 0 && r->n_in == 3;
    tn_value values[MOST];

    for (int64_t i = 0; i < r->n_in; i++)
        values[i] = tn_value_tensor(r->in[i]);
    for (int64_t i = 0; i < (states ? 1 : r->n_in); i++)
        ck_assert_int_eq(tn_pack_add(input, NULL, values[i]), TN_OK);
    if (states)
        ck_assert_int_eq(tn_pack_add(input, NULL, tn_value_tuple(values + 1, 2)), TN_OK);
}

static void call(struct run *r)
{
    tn_pack *input, *output;

    if (r->called)
        return;
    r->called = true;
    load(r);
    if (TN_MASK_FLOAT & TN_BIT(tn_tensor_dtype(r->in[0])))
        with_grad(r->in[0]);
    input = tn_pack_new();
    output = tn_pack_new();
    add_inputs(r, input);
    ck_assert_msg(tn_module_call_pack(r->module, input, output) == TN_OK, "%s: %s", name,
                  tn_error_text());
    for (int64_t i = 0; i < tn_pack_count(output); i++)
        take_results(r, tn_pack_at(output, i));
    tn_pack_drop(input);
    tn_pack_drop(output);
}

static void finish(struct run *r)
{
    if (r->module == NULL)
        return;
    load(r);
    ck_assert_msg(r->compared == r->n_out, "%s gives %d results, PyTorch %d", name, (int)r->n_out,
                  (int)r->compared);
    for (int64_t i = 0; i < r->n_out; i++)
        tn_tensor_drop(r->out[i]);
    tn_state_drop(r->state);
    tn_module_drop(r->module);
    memset(r, 0, sizeof *r);
}

static void step(struct run *r)
{
    char *text = strchr(line, ' '), word[64], dtype[16], shape[128];
    char *values = strstr(line, " : ");
    int index = 0;

    text = text != NULL ? text + 1 : line;
    values = values != NULL ? values + 3 : line + strlen(line);
    if (strncmp(line, "layer ", 6) == 0) {
        snprintf(name, sizeof name, "%.255s", text);
        r->module = tn_module_parse(text);
        ck_assert_msg(r->module != NULL, "%s: %s", name, tn_error_text());
        as_double(r->module);
        r->state = tn_state_new();
        layers_seen++;
    } else if (strncmp(line, "repr ", 5) == 0) {
        lines_again(text);
        print_and_read(r->module, text);
    } else if (strncmp(line, "train ", 6) == 0) {
        r->train = *text == '1';
    } else if (strncmp(line, "state ", 6) == 0) {
        tn_state *own = tn_module_state(r->module);

        ck_assert_int_eq(sscanf(text, "%63s %15s %127s", word, dtype, shape), 3);
        index = (int)tn_state_count(r->state);
        ck_assert_msg(index < tn_state_count(own) && strcmp(tn_state_name(own, index), word) == 0,
                      "%s: entry %d of the state is %s, PyTorch's is %s", name, index,
                      index < tn_state_count(own) ? tn_state_name(own, index) : "missing", word);
        tn_state_drop(own);
        tn_state_set(r->state, word, read_tensor(values, dtype, shape));
    } else if (strncmp(line, "in ", 3) == 0) {
        ck_assert_int_eq(sscanf(text, "%15s %127s", dtype, shape), 2);
        r->in[r->n_in++] = read_tensor(values, dtype, shape);
    } else if (strncmp(line, "out ", 4) == 0) {
        call(r);
        ck_assert_msg(r->compared < r->n_out, "%s gives %d results", name, (int)r->n_out);
        same(r->out[r->compared++], values, "result");
    } else if (strncmp(line, "cot ", 4) == 0) {
        tn_tensor *cot = tn_reshape(read_tensor(values, "f64", "flat"), tn_tensor_shape(r->out[0]));

        ck_assert_msg(tn_backward_from(r->out, &cot, 1, NULL) == TN_OK, "%s: %s", name,
                      tn_error_text());
    } else if (strncmp(line, "gin ", 4) == 0) {
        same(tn_tensor_grad(r->in[0]), values, "gradient of the input");
    } else if (strncmp(line, "grad ", 5) == 0) {
        sscanf(text, "%63s", word);
        same(tn_tensor_grad(tn_module_find_tensor(r->module, word)), values, word);
    } else if (strncmp(line, "after ", 6) == 0) {
        sscanf(text, "%63s", word);
        same(tn_module_find_tensor(r->module, word), values, word);
    }
}

START_TEST(layers_print_hold_and_compute_what_pytorchs_do)
{
    FILE *file = fopen(TN_TEST_SRCDIR "/tests/oracle/layers.txt", "r");
    struct run r = { 0 };
    uint64_t scope = tn_scope_begin();

    ck_assert_ptr_nonnull(file);
    while (fgets(line, LINE, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "layer ", 6) == 0 || strcmp(line, "end") == 0) {
            finish(&r);
            tn_scope_end(scope);
            scope = tn_scope_begin();
        }
        step(&r);
    }
    fclose(file);
    tn_scope_end(scope);
    ck_assert_int_gt(layers_seen, 150);
    FINE();
}
END_TEST

static void refused(const char *spec, tn_status code, const char *words)
{
    tn_module *module = tn_module_parse(spec);

    ck_assert_msg(module == NULL, "%s was built", spec);
    FAILED(code, words);
}

START_TEST(layers_refuse_what_pytorchs_refuse)
{
    TN_SCOPE;
    tn_module *module = tn_module_parse("BatchNorm2d(3)");

    refused("Conv2d(3, 4, 3, groups=2)", TN_ERR_VALUE,
            "in_channels 3 must be divisible by groups 2");
    refused("Conv2d(4, 3, 3, groups=2)", TN_ERR_VALUE,
            "out_channels 3 must be divisible by groups 2");
    refused("Conv2d(4, 4, 3, padding_mode='odd')", TN_ERR_VALUE,
            "padding_mode: unknown, got \"odd\"");
    refused("Conv2d(4, 4, 3, padding='odd')", TN_ERR_VALUE, "'same' or 'valid'");
    refused("Conv2d(4, 4, 3, stride=2, padding='same')", TN_ERR_VALUE,
            "stride: not possible with padding='same', got 2");
    refused("Conv2d(4, 4, (3, 3, 3))", TN_ERR_VALUE,
            "kernel_size: wrong count, got 3; expected 1 or 2 numbers");
    refused("Conv2d(4, 4, 0)", TN_ERR_VALUE, "kernel_size: out of range, got 0");
    refused("ConvTranspose2d(4, 4, 3, padding='same')", TN_ERR_VALUE,
            "padding: wrong value, got \"same\"; expected 1 or 2 numbers");
    refused("GroupNorm(3, 4)", TN_ERR_VALUE, "num_channels 4 must be divisible by num_groups 3");
    refused("Dropout(1.5)", TN_ERR_VALUE, "between 0 and 1, but got 1.5");
    refused("Embedding(3, 2, padding_idx=3)", TN_ERR_VALUE, "padding_idx 3");
    refused("Embedding(3, 2, sparse=True)", TN_ERR_NOT_IMPLEMENTED,
            "sparse: not supported, got True; expected False");
    refused("EmbeddingBag(3, 2, scale_grad_by_freq=True)", TN_ERR_NOT_IMPLEMENTED,
            "divide the gradient of weight by how often");
    refused("MSELoss(reduction='most')", TN_ERR_VALUE, "expected none, mean or sum");
    refused("Conv2d(1, 2)", TN_ERR_VALUE, "kernel_size");
    refused("RReLU(0.5, 0.25)", TN_ERR_VALUE, "lower or upper: out of range, got 0.5 and 0.25");
    refused("FractionalMaxPool2d(2)", TN_ERR_VALUE,
            "output_size or output_ratio: wrong number, got none");
    refused("FractionalMaxPool2d(2, 3, 0.5)", TN_ERR_VALUE, "got both");
    refused("FractionalMaxPool2d(0, 3)", TN_ERR_VALUE, "kernel_size: out of range, got 0");
    refused("FractionalMaxPool3d((2, 2), 3)", TN_ERR_VALUE, "1 or 3 numbers");
    refused("FractionalMaxPool3d(2, output_ratio=1.5)", TN_ERR_VALUE, "between 0 and 1");
    refused("TransformerEncoderLayer(4, 3)", TN_ERR_VALUE, "divisible by num_heads");
    refused("TransformerEncoderLayer(4, 2, activation='tanh')", TN_ERR_RUNTIME,
            "activation should be relu/gelu, not tanh");
    refused("TransformerDecoderLayer(4, 2, dropout=1.5)", TN_ERR_VALUE,
            "dropout: out of range, got 1.5");
    ck_assert_ptr_null(tn_module_call(module, tn_tensor_full(TN_SHAPE(2, 3, 4), 0, TN_F32, NULL)));
    FAILED(TN_ERR_VALUE, "expected 4D input (got 3D input)");
    tn_module_drop(module);
    FINE();
}
END_TEST

START_TEST(drawn_slopes_and_windows_stay_within_their_bounds)
{
    TN_SCOPE;
    tn_module *slopes = tn_module_parse("RReLU(0.25, 0.5)");
    tn_module *over = tn_module_parse("RReLU(0.25, 0.5, inplace=True)");
    tn_module *pool = tn_module_parse("FractionalMaxPool2d(2, output_size=5)");
    tn_tensor *x = with_grad(tn_tensor_full(TN_SHAPE(1000), -1, TN_F32, NULL)), *y, *again, *g;
    tn_tensor *image = tn_arange(TN_NONE, 0, 64);
    double least = 1, most = 0, sum = 0;

    tn_random_seed(5);
    y = tn_module_call(slopes, x);
    ck_assert_msg(y != NULL && tn_backward(tn_sum(y)) == TN_OK, "%s", tn_error_text());
    g = tn_tensor_grad(x);
    for (int64_t i = 0; i < 1000; i++) {
        double slope = -at(y, i);

        ck_assert_double_eq(at(g, i), slope);
        least = fmin(least, slope);
        most = fmax(most, slope);
        sum += slope;
    }
    ck_assert(least >= 0.25 && least < 0.26 && most > 0.49 && most <= 0.5);
    ck_assert_double_eq_tol(sum / 1000, 0.375, 0.01);
    tn_random_seed(5);
    again = tn_tensor_full(TN_SHAPE(1000), -1, TN_F32, NULL);
    ck_assert_ptr_eq(tn_module_call(over, again), again);
    for (int64_t i = 0; i < 1000; i++) /* the same seed, the same slopes; written into the input */
        ck_assert_double_eq(at(again, i), at(y, i));
    HAS(tn_module_call(slopes, VEC(0, 2, 3e30)), 0, 2, (double)3e30f);

    image = tn_reshape(tn_cast(image, TN_F32), TN_SHAPE(1, 8, 8));
    for (int round = 0; round < 20; round++) {
        y = tn_module_call(pool, image);
        ck_assert_msg(y != NULL && tn_tensor_numel(y) == 25, "%s", tn_error_text());
        ck_assert_double_eq(at(y, 24), 63); /* the last window ends with the image */
        ck_assert_double_eq(at(y, 0), 9);   /* the first begins with it */
        for (int64_t i = 1; i < 25; i++)
            if (i % 5 != 0) { /* windows move on by 1 or 2 */
                double way = at(y, i) - at(y, i - 1);

                ck_assert(way == 1 || way == 2);
            }
    }
    tn_module_drop(slopes);
    tn_module_drop(over);
    tn_module_drop(pool);
    FINE();
}
END_TEST

static void call_refused(tn_module *module, const tn_pack *input, tn_status code, const char *words)
{
    tn_pack *output = tn_pack_new();

    ck_assert_int_eq(tn_module_call_pack(module, input, output), code);
    FAILED(code, words);
    tn_pack_drop(output);
}

START_TEST(layers_of_a_transformer_say_what_is_wrong_with_a_call)
{
    TN_SCOPE;
    tn_module *encoder = tn_module_parse("TransformerEncoderLayer(4, 2, 8)");
    tn_module *decoder = tn_module_parse("TransformerDecoderLayer(4, 2, 8)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(3, 2, 4), 1, TN_F32, NULL);
    tn_pack *input = tn_pack_new();

    call_refused(encoder, input, TN_ERR_TYPE, "src: missing; expected a tensor");
    tn_pack_add(input, NULL, tn_value_tensor(x));
    call_refused(decoder, input, TN_ERR_TYPE, "memory: missing; expected a tensor");
    tn_pack_add(input, "is_causal", tn_value_bool(true));
    call_refused(encoder, input, TN_ERR_RUNTIME, "Need attn_mask");
    call_refused(decoder, input, TN_ERR_TYPE, "argument \"is_causal\": unknown name");
    tn_pack_add(input, "src", tn_value_tensor(x));
    call_refused(encoder, input, TN_ERR_TYPE, "argument \"src\": given twice");
    tn_pack_drop(input);
    input = tn_pack_new();
    tn_pack_add(input, NULL, tn_value_tensor(x));
    tn_pack_add(input, "is_causal", tn_value_int(1));
    call_refused(encoder, input, TN_ERR_TYPE,
                 "is_causal: wrong type, got int; expected True or False");
    tn_pack_drop(input);
    input = tn_pack_new();
    for (int i = 0; i < 5; i++)
        tn_pack_add(input, NULL, tn_value_tensor(x));
    call_refused(encoder, input, TN_ERR_TYPE, "inputs: too many, got 5; expected at most 4");
    tn_pack_drop(input);
    tn_module_drop(encoder);
    tn_module_drop(decoder);
    FINE();
}
END_TEST

START_TEST(a_convolutional_network_of_the_standard_layers_learns)
{
    TN_SCOPE;
    tn_module *net = tn_module_new(
        "Sequential(Conv2d(1, 4, 3, padding=1), BatchNorm2d(4), ReLU(), MaxPool2d(2), "
        "Dropout(0.1), "
        "Conv2d(4, 8, 3), GELU(), AdaptiveAvgPool2d(1), Flatten(), Linear(8, 2))");
    tn_optimizer *opt;
    double first = 0, last = 0;

    tn_random_seed(11);
    ck_assert_msg(net != NULL, "%s", tn_error_text());
    opt = tn_optimizer_new(net, "Adam(lr=0.02)");
    for (int i = 0; i < 30; i++) {
        TN_SCOPE;
        static float pictures[16][8][8];
        int64_t kinds[16];
        tn_tensor *loss;

        for (int k = 0; k < 16; k++) {
            kinds[k] = k % 2;
            for (int row = 0; row < 8; row++)
                for (int column = 0; column < 8; column++) /* stripes across or along */
                    pictures[k][row][column] = (float)(((k % 2 ? row : column) + k / 2) % 2);
        }
        loss = tn_cross_entropy(
            tn_module_call(net, tn_tensor_from(pictures, TN_F32, TN_SHAPE(16, 1, 8, 8))),
            tn_tensor_from(kinds, TN_I64, TN_SHAPE(16)));
        ck_assert_msg(loss != NULL, "%s", tn_error_text());
        tn_module_zero_grad(net);
        tn_backward(loss);
        tn_optimizer_step(opt);
        last = tn_item(loss);
        if (i == 0)
            first = last;
    }
    ck_assert_double_gt(first, 0.4);
    ck_assert_double_lt(last, 0.1);
    tn_optimizer_drop(opt);
    tn_module_drop(net);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *tests = tcase_create("pytorch");

    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, layers_print_hold_and_compute_what_pytorchs_do);
    tcase_add_test(tests, layers_refuse_what_pytorchs_refuse);
    tcase_add_test(tests, drawn_slopes_and_windows_stay_within_their_bounds);
    tcase_add_test(tests, layers_of_a_transformer_say_what_is_wrong_with_a_call);
    tcase_add_test(tests, a_convolutional_network_of_the_standard_layers_learns);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
