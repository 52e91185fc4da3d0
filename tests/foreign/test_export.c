/* SPDX-License-Identifier: MIT
 *
 * Scripts as models of ONNX and programs of PyTorch: what is written is read again and computes the
 * same. The readers are tested with files of others (test_onnx.c, test_pt2.c); export_cases.py runs
 * the written files in onnxruntime and PyTorch. */
#include "tests/libcheck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/foreign.h>
#include <tenon/graph.h>
#include <tenon/ops.h>
#include <tenon/tenon.h>
#include <unistd.h>

#ifdef TN_TEST_PT2
static const char *const extensions[] = { ".onnx", ".pt2" };
#else
static const char *const extensions[] = { ".onnx" };
#endif

enum { FORMATS = sizeof extensions / sizeof *extensions };

static int format; /* that the test writes */

static const char *path_here(void)
{
    static char path[600];

    tn_snprint(path, sizeof path, "%s/tenon-export-%d%s",
               getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (int)getpid(),
               extensions[format]);
    return path;
}

/* Sizes of an input; with `most`, it has indices below that. */
struct shape {
    int64_t at[6];
    int64_t ndim, most;
};

#define SHAPE(...)                                                                                 \
    {                                                                                              \
        { __VA_ARGS__ }, (int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), 0        \
    }
#define INDICES(below, ...)                                                                        \
    {                                                                                              \
        { __VA_ARGS__ }, (int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), below    \
    }

struct network {
    const char *spec;
    struct shape in;
    const char *dynamic; /* NULL: sizes are fixed */
    struct shape other;  /* further sizes */
    double tolerance;    /* of the largest element; 0: the same bits */
};

static tn_tensor *sample(const struct shape *shape)
{
    tn_ints sizes = { shape->at, shape->ndim };
    tn_tensor *x = tn_tensor_full(sizes, 0.0, TN_F32, NULL);

    if (shape->most > 0)
        return tn_cast(tn_uniform(x, 0.0, (double)shape->most), TN_I64);
    return tn_normal(x, 0.0, 1.0);
}

/* The script of the graph of evaluation. */
static tn_module *script_of(tn_module *net, tn_tensor *x, const char *dynamic)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_pack *in = tn_pack_new();
    tn_graph *graph;
    tn_module *script;

    ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tensor(x)), TN_OK);
    how.flags = TN_TRACE_THROUGH;
    how.dynamic = dynamic;
    ck_assert_int_eq(tn_module_eval(net), TN_OK);
    graph = tn_module_trace_pack(net, in, &how);
    tn_pack_drop(in);
    ck_assert_msg(graph != NULL, "%s", tn_error_text());
    script = tn_script_new(net, &graph, 1);
    ck_assert_msg(script != NULL, "%s", tn_error_text());
    tn_graph_drop(graph);
    return script;
}

static tn_module *written(tn_module *net, tn_tensor *x, const char *dynamic)
{
    tn_module *script = script_of(net, x, dynamic), *again;

    ck_assert_msg(tn_module_save(script, path_here()) == TN_OK, "%s", tn_error_text());
    again = tn_module_from_file(path_here());
    ck_assert_msg(again != NULL, "%s", tn_error_text());
    unlink(path_here());
    tn_module_drop(script);
    return again;
}

static void expect_close(tn_tensor *got, tn_tensor *want, const struct network *net)
{
    tn_tensor *a, *b;
    const double *x, *y;
    double most = 0;

    ck_assert_msg(got != NULL && want != NULL, "%s: %s", net->spec, tn_error_text());
    ck_assert_int_eq(tn_tensor_dtype(got), tn_tensor_dtype(want));
    ck_assert_int_eq(tn_tensor_numel(got), tn_tensor_numel(want));
    a = tn_copy(tn_cast(tn_detach(got), TN_F64));
    b = tn_copy(tn_cast(tn_detach(want), TN_F64));
    x = tn_tensor_data(a);
    y = tn_tensor_data(b);
    for (int64_t i = 0; i < tn_tensor_numel(b); i++)
        most = fmax(most, fabs(y[i]));
    ck_assert_msg(most > 0, "%s: all results are 0", net->spec);
    for (int64_t i = 0; i < tn_tensor_numel(b); i++)
        ck_assert_msg(fabs(x[i] - y[i]) <= net->tolerance * most,
                      "%s: element %lld is %.9g; expected %.9g", net->spec, (long long)i, x[i],
                      y[i]);
}

static const struct network networks[] = {
    { "Sequential(Conv2d(3, 8, 3, stride=2, padding=1), BatchNorm2d(8), ReLU(inplace=True), "
      "MaxPool2d(2), AdaptiveAvgPool2d(1), Flatten(), Linear(8, 5))",
      SHAPE(2, 3, 16, 16), "[N, 3, 16*H, 16*H]", SHAPE(3, 3, 32, 32), 1e-5 },
    { "Sequential(Conv2d(3, 4, 4, padding='same', bias=False), GELU(), GroupNorm(2, 4))",
      SHAPE(2, 3, 7, 8), "[N, 3, 7, 8]", SHAPE(5, 3, 7, 8), 1e-5 },
    { "Sequential(ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), SiLU(), "
      "InstanceNorm2d(4, affine=True), PReLU(4), Upsample(scale_factor=2.0, mode='bilinear'))",
      SHAPE(2, 3, 4, 5), NULL, SHAPE(2, 3, 4, 5), 1e-5 },
    { "Sequential(AdaptiveAvgPool2d((3, 2)), MaxPool2d(2, stride=1, padding=1, ceil_mode=True), "
      "AvgPool2d(2), PixelShuffle(2), ReflectionPad2d(1))",
      SHAPE(1, 4, 7, 8), NULL, SHAPE(1, 4, 7, 8), 1e-5 },
    { "LSTM(5, 7, num_layers=2, bidirectional=True)", SHAPE(6, 3, 5), "[T, N, 5]", SHAPE(9, 2, 5),
      1e-5 },
    { "GRU(5, 7, batch_first=True)", SHAPE(3, 6, 5), "[N, T, 5]", SHAPE(2, 4, 5), 1e-5 },
    { "RNN(5, 7, nonlinearity='relu', bias=False)", SHAPE(4, 3, 5), NULL, SHAPE(4, 3, 5), 1e-5 },
    { "TransformerEncoder(TransformerEncoderLayer(8, 2, 16), 2)", SHAPE(5, 2, 8), NULL,
      SHAPE(5, 2, 8), 1e-5 },
    { "gpt2_small(vocab_size=20, n_positions=16, n_embd=12, n_layer=2, n_head=3)",
      INDICES(20, 2, 7), "[N, T]", INDICES(20, 3, 11), 1e-5 },
    { "Sequential(Embedding(9, 4), LayerNorm(4, elementwise_affine=False), RMSNorm(4), "
      "Softmax(1), Unflatten(2, (2, 2)))",
      INDICES(9, 3, 6), "[N, 6]", INDICES(9, 4, 6), 1e-5 },
};

START_TEST(a_written_network_computes_the_same)
{
    TN_SCOPE;
    const struct network *row = &networks[_i / FORMATS];
    tn_module *net, *again;
    tn_tensor *x;

    format = _i % FORMATS;
    tn_random_seed(3);
    net = tn_module_new(row->spec);
    ck_assert_msg(net != NULL, "%s", tn_error_text());
    x = sample(&row->in);
    again = written(net, x, row->dynamic);
    if (strncmp(row->spec, "LSTM", 4) != 0 && strncmp(row->spec, "GRU", 3) != 0 &&
        strncmp(row->spec, "RNN", 3) != 0)
        expect_close(tn_module_call(again, x), tn_module_call(net, x), row);
    x = sample(&row->other);
    for (int i = 0; i < 2; i++) {
        tn_pack *in = tn_pack_new(), *got = tn_pack_new(), *want = tn_pack_new();

        ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tensor(x)), TN_OK);
        ck_assert_msg(tn_module_call_pack(again, in, got) == TN_OK, "%s", tn_error_text());
        ck_assert_msg(tn_module_call_pack(net, in, want) == TN_OK, "%s", tn_error_text());
        expect_close(tn_pack_at(got, 0).as.tensor, tn_pack_at(want, 0).as.tensor, row);
        tn_pack_drop(in);
        tn_pack_drop(got);
        tn_pack_drop(want);
    }
    tn_module_drop(again);
    tn_module_drop(net);
}
END_TEST

START_TEST(the_names_of_the_state_and_the_types_of_modules_stay)
{
    TN_SCOPE;
    const struct network *row = &networks[0];
    tn_module *net = tn_module_new(row->spec), *again, *part;
    tn_state *state, *other;

    format = _i;
    again = written(net, sample(&row->in), row->dynamic);
    state = tn_module_state(net);
    other = tn_module_state(again);
    for (int64_t i = 0; i < tn_state_count(other); i++) {
        const char *name = tn_state_name(other, i);
        int64_t at = tn_state_find(state, name);

        ck_assert_msg(at >= 0, "%s is no name of the network", name);
        ck_assert_msg(tn_item(tn_all(tn_eq(tn_state_tensor(other, i), tn_state_tensor(state, at)),
                                     tn_none_ints(), false)) != 0,
                      "%s: other values", name);
    }
    /* ONNX has no tensor that nothing uses, such as num_batches_tracked */
    ck_assert_int_eq(tn_state_count(other), tn_state_count(state) - (format == 0));
    ck_assert_int_eq(tn_module_parameter_count(again), tn_module_parameter_count(net));
    part = tn_module_find(again, "1");
    ck_assert_msg(part != NULL, "%s", tn_error_text());
    ck_assert_str_eq(tn_module_type(part), "BatchNorm2d");
    tn_state_drop(state);
    tn_state_drop(other);
    tn_module_drop(again);
    tn_module_drop(net);
}
END_TEST

/* The last format: the tied weight is one tensor, and gets the gradient of both its uses. */
START_TEST(ties_and_gradients_stay)
{
    TN_SCOPE;
    const struct network row = { "gpt2_small(vocab_size=9, n_positions=16, n_embd=4, n_layer=1, "
                                 "n_head=2)",
                                 INDICES(9, 2, 5), "[N, T]", INDICES(9, 1, 6), 1e-5 };
    tn_module *net = tn_module_new(row.spec), *again;
    tn_tensor *x = sample(&row.in), *weights[2], *y;

    format = FORMATS - 1;
    again = written(net, x, row.dynamic);
    y = tn_module_call(net, x);
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y, y))), TN_OK);
    y = tn_module_call(again, x);
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y, y))), TN_OK);
    ck_assert_int_eq(tn_module_parameter_count(again), tn_module_parameter_count(net));
    weights[0] = tn_module_find_tensor(net, "transformer.wte.weight");
    weights[1] = tn_module_find_tensor(again, "transformer.wte.weight");
    if (format == 1)
        ck_assert_ptr_eq(tn_module_find_tensor(again, "lm_head.weight"), weights[1]);
    expect_close(tn_tensor_grad(weights[1]), tn_tensor_grad(weights[0]), &row);
    tn_module_drop(again);
    tn_module_drop(net);
}
END_TEST

/* ---- operators ------------------------------------------------------------------------------- */

typedef tn_tensor *calculation(tn_tensor *x);

static tn_tensor *promotes(tn_tensor *x)
{
    tn_tensor *i = tn_arange(x, tn_scalar_int(0), tn_scalar_int(4), tn_scalar_int(1), TN_I64);

    return tn_where(tn_lt(tn_add(x, i), tn_cast(i, TN_F64)), tn_mul(x, tn_cast(i, TN_BOOL)),
                    tn_div(x, tn_add_scalar(i, tn_scalar_int(1)), "floor"));
}

static tn_tensor *reduces(tn_tensor *x)
{
    tn_tensor *y = tn_sub(tn_amax(x, TN_SHAPE(1), true),
                          tn_mean(x, TN_SHAPE(0), true, TN_DTYPE_AUTO));

    y = tn_add(y, tn_var(x, TN_SHAPE(1), 1.0, true));
    y = tn_mul(y, tn_norm(x, 2.0, TN_SHAPE(0), true, TN_DTYPE_AUTO));
    return tn_add(y, tn_logsumexp(x, TN_SHAPE(1), true));
}

static tn_tensor *cuts(tn_tensor *x)
{
    tn_tensor *parts[2] = { tn_narrow(x, 1, 1, 3), tn_flip(tn_slice(x, 1, 0, -1, 1), TN_SHAPE(0)) };
    tn_tensor *y = tn_cat(parts, 2, 0);

    y = tn_add(tn_roll(y, TN_SHAPE(1), TN_SHAPE(1)), tn_repeat(tn_select(y, 0, 2), TN_SHAPE(6, 1)));
    return tn_tril(tn_permute(tn_unsqueeze(y, 0), TN_SHAPE(0, 2, 1)), 1);
}

static tn_tensor *orders(tn_tensor *x)
{
    tn_tensor *indices = tn_argmax(x, 0, true), *two[2], *y, *sorted, *places;

    if (tn_sort(x, &sorted, &places, 1, false) != TN_OK)
        return NULL;
    two[0] = tn_flatten(indices, 0, -1);
    two[1] = tn_flip(two[0], TN_SHAPE(0));
    y = tn_add(tn_gather(x, indices, 0), tn_unsqueeze(tn_index(x, two, 2, tn_none_ints()), 0));
    return tn_add(tn_mul(sorted, tn_mul(y, tn_cast(places, TN_F64))),
                  tn_cumsum(x, 1, false, TN_DTYPE_AUTO));
}

/* Writes into parts of a tensor, and into all of it. */
static tn_tensor *writes(tn_tensor *x)
{
    tn_tensor *y = tn_add(x, x), *part = tn_narrow(tn_slice(y, 0, 1, 3, 1), 1, 1, 2);

    if (tn_fill_(part, tn_scalar_int(7)) == NULL || tn_relu_(tn_select(y, 1, 3)) == NULL ||
        tn_add_(y, x) == NULL)
        return NULL;
    return tn_mul(y, y);
}

static const struct {
    const char *name;
    calculation *run;
} calculations[] = {
    { "promotes", promotes }, { "reduces", reduces }, { "cuts", cuts },
    { "orders", orders },     { "writes", writes },
};

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    return calculations[(intptr_t)tn_module_user(self)].run(x);
}

static tn_module *plain(int number)
{
    tn_module *net = tn_module_plain("Calculation");

    ck_assert_msg(net != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_set_forward(net, forward, (void *)(intptr_t)number, NULL), TN_OK);
    return net;
}

START_TEST(operators_and_promotions_compute_the_same)
{
    TN_SCOPE;
    const struct network row = { .spec = calculations[_i / FORMATS].name, .tolerance = 1e-12 };
    tn_module *net = plain(_i / FORMATS), *again;
    tn_tensor *x;

    format = _i % FORMATS;
    tn_random_seed(4);
    x = tn_normal(tn_tensor_full(TN_SHAPE(3, 4), 0.0, TN_F64, NULL), 0.0, 1.0);
    again = written(net, x, NULL);
    expect_close(tn_module_call(again, x), tn_module_call(net, x), &row);
    tn_module_drop(again);
    tn_module_drop(net);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

static tn_tensor *impossible(tn_tensor *x)
{
    return tn_add(tn_erfinv(x), tn_matmul(tn_linalg_cholesky(x), tn_uniform(x, 0.0, 1.0)));
}

static tn_tensor *shared(tn_tensor *x)
{
    tn_tensor *y = tn_add(x, x), *flat = tn_flatten(y, 0, -1);

    return tn_relu_(flat) != NULL ? y : NULL;
}

static tn_tensor *forward_impossible(tn_module *self, tn_tensor *x)
{
    (void)self;
    return impossible(x);
}

static tn_tensor *forward_shared(tn_module *self, tn_tensor *x)
{
    (void)self;
    return shared(x);
}

/* Fails with all of these words, and leaves the old file as it is. */
static void expect_refused(tn_module *script, const char *const *words)
{
    FILE *file = fopen(path_here(), "w+");
    char old[8] = "";

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("old", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_ne(tn_module_save(script, path_here()), TN_OK);
    for (; *words != NULL; words++)
        ck_assert_msg(strstr(tn_error_text(), *words) != NULL, "no \"%s\" in: %s", *words,
                      tn_error_text());
    tn_error_clear();
    file = fopen(path_here(), "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(old, sizeof old, file));
    ck_assert_str_eq(old, "old");
    fclose(file);
    unlink(path_here());
}

START_TEST(what_cannot_be_written_is_refused_with_all_its_names)
{
    TN_SCOPE;
    static const char *const names[] = { "3 operators", "erfinv", "cholesky", "uniform", NULL };
    static const char *const writes[] = { "relu_ writes", "shares", NULL };
    static const char *const modules[] = { "expected", NULL };
    tn_tensor *x = tn_tensor_full(TN_SHAPE(3, 3), 1.0, TN_F32, NULL);
    tn_module *net = tn_module_plain("Calculation"), *script;

    format = _i;
    ck_assert_int_eq(tn_module_set_forward(net, forward_impossible, NULL, NULL), TN_OK);
    script = script_of(net, x, NULL);
    expect_refused(script, names);
    tn_module_drop(script);
    ck_assert_int_eq(tn_module_set_forward(net, forward_shared, NULL, NULL), TN_OK);
    script = script_of(net, x, NULL);
    expect_refused(script, writes);
    tn_module_drop(script);
    tn_module_drop(net);
    net = tn_module_new("Linear(2, 3)");
    expect_refused(net, modules);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("export");
    TCase *tcase = tcase_create("export");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tcase, a_written_network_computes_the_same, 0,
                        FORMATS * sizeof networks / sizeof *networks);
    tcase_add_loop_test(tcase, the_names_of_the_state_and_the_types_of_modules_stay, 0, FORMATS);
    tcase_add_test(tcase, ties_and_gradients_stay);
    tcase_add_loop_test(tcase, operators_and_promotions_compute_the_same, 0,
                        FORMATS * sizeof calculations / sizeof *calculations);
    tcase_add_loop_test(tcase, what_cannot_be_written_is_refused_with_all_its_names, 0, FORMATS);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
