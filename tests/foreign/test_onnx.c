/* SPDX-License-Identifier: MIT
 *
 * ONNX files as modules: files/onnx_*.onnx have operators, control flow and a network in float64,
 * files/onnx_*.npz what NumPy and PyTorch compute with them; make_onnx.py writes both and describes
 * the names. Broken files are made here. */
#include "tests/foreign/onnx_file.h"
#include "tests/libcheck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/foreign.h>
#include <tenon/ops.h>
#include <tenon/tenon.h>
#include <unistd.h>

#define FILES TN_TEST_SRCDIR "/tests/foreign/files/"

/* ---- files, numbers -------------------------------------------------------------------------- */

static tn_module *opened(const char *name)
{
    char path[600];
    tn_module *module;

    tn_snprint(path, sizeof path, FILES "%s.onnx", name);
    module = tn_module_from_file(path);
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    return module;
}

static tn_state *numbers_of(const char *name)
{
    char path[600];
    tn_state *state;

    tn_snprint(path, sizeof path, FILES "%s.npz", name);
    state = tn_state_load(path);
    ck_assert_msg(state != NULL, "%s", tn_error_text());
    return state;
}

static tn_tensor *numbers(const tn_state *state, const char *prefix, const char *name)
{
    char key[200];

    tn_snprint(key, sizeof key, "%s%s", prefix, name);
    return tn_state_find(state, key) >= 0 ? tn_state_get(state, key) : NULL;
}

/* Numbers in attributes have 32 bits, so that a network differs more from PyTorch's. */
static double tolerance = 1e-12;

static void expect_close(tn_tensor *got, tn_tensor *want, const char *what)
{
    tn_tensor *a, *b;
    const double *x, *y;
    double most = 1.0;

    ck_assert_msg(got != NULL && got != TN_NONE, "%s: missing: %s", what, tn_error_text());
    ck_assert_msg(tn_tensor_dtype(got) == tn_tensor_dtype(want), "%s: dtype %s", what,
                  tn_dtype_name(tn_tensor_dtype(got)));
    ck_assert_msg(tn_tensor_ndim(got) == tn_tensor_ndim(want), "%s: %d dimensions", what,
                  (int)tn_tensor_ndim(got));
    for (int64_t i = 0; i < tn_tensor_ndim(got); i++)
        ck_assert_msg(tn_tensor_size(got, i) == tn_tensor_size(want, i), "%s: shape", what);
    a = tn_copy(tn_cast(tn_tensor_detach(got), TN_F64));
    b = tn_copy(tn_cast(want, TN_F64));
    x = tn_tensor_data(a);
    y = tn_tensor_data(b);
    for (int64_t i = 0; i < tn_tensor_numel(a); i++)
        most = fmax(most, fabs(y[i]));
    for (int64_t i = 0; i < tn_tensor_numel(a); i++)
        ck_assert_msg(x[i] == y[i] || fabs(x[i] - y[i]) <= tolerance * most,
                      "%s: element %lld is %.17g; expected %.17g", what, (long long)i, x[i], y[i]);
}

/* Calls the module with inputs times `sign`, and compares all results. */
static tn_pack *replay(tn_module *module, const tn_state *state, const char *prefix, double sign)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    char name[40];

    for (int i = 0;; i++) {
        tn_tensor *x;

        tn_snprint(name, sizeof name, "in.%d", i);
        x = numbers(state, "", name);
        if (x == NULL)
            break;
        if (sign < 0 && tn_tensor_dtype(x) == TN_F64)
            x = tn_neg(x);
        ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tensor(x)), TN_OK);
    }
    ck_assert_msg(tn_module_call_pack(module, in, out) == TN_OK, "%s", tn_error_text());
    for (int i = 0; i < tn_pack_count(out); i++) {
        tn_snprint(name, sizeof name, "out.%d", i);
        ck_assert_msg(numbers(state, prefix, name) != NULL, "result %d was not recorded", i);
        expect_close(tn_pack_at(out, i).as.tensor, numbers(state, prefix, name),
                     tn_pack_name(out, i));
    }
    tn_snprint(name, sizeof name, "out.%d", (int)tn_pack_count(out));
    ck_assert_msg(numbers(state, prefix, name) == NULL, "a result is missing");
    tn_pack_drop(in);
    return out;
}

/* ---- values ---------------------------------------------------------------------------------- */

static const int opsets[] = { 11, 17, 18, 20, 21, 23, 26, 27 };

START_TEST(operators_have_the_values_of_float64)
{
    TN_SCOPE;
    char name[60];
    tn_state *state;
    tn_module *module;

    tn_snprint(name, sizeof name, "onnx_operators_%d", opsets[_i]);
    state = numbers_of(name);
    module = opened(name);
    tn_pack_drop(replay(module, state, "", 1));
    tn_module_drop(module);
    tn_state_drop(state);
}
END_TEST

START_TEST(control_flow_functions_and_sequences_run)
{
    TN_SCOPE;
    tn_state *state = numbers_of("onnx_flow");
    tn_module *module = opened("onnx_flow");

    tn_pack_drop(replay(module, state, "", 1));
    tn_pack_drop(replay(module, state, "more.", -1)); /* the other branch */
    tn_module_drop(module);
    tn_state_drop(state);
}
END_TEST

/* The same weights as in make_onnx.py. */
static tn_tensor *weighted(tn_tensor *y)
{
    int64_t n = tn_tensor_numel(y);
    double *values = calloc((size_t)n, sizeof *values);
    tn_tensor *weights;

    for (int64_t i = 0; i < n; i++)
        values[i] = (double)((7 * i) % 11 - 5) / 8.0;
    weights = tn_tensor_from(values, TN_F64, tn_tensor_shape(y));
    free(values);
    return tn_sum(tn_mul(y, weights));
}

START_TEST(a_network_has_the_names_values_gradients_and_modes_of_pytorch)
{
    TN_SCOPE;
    tn_state *state = numbers_of("onnx_net");
    tn_module *module = opened("onnx_net");
    tn_pack *out;
    static const char *const names[] = { "features.0.weight",
                                         "features.1.weight",
                                         "features.1.bias",
                                         "norm.weight",
                                         "norm.bias",
                                         "fc.weight",
                                         "fc.bias",
                                         "attention.in_proj_bias",
                                         "attention.out_proj.bias" };

    tolerance = 1e-7;
    out = replay(module, state, "", 1);
    ck_assert_int_eq(tn_backward(weighted(tn_pack_at(out, 0).as.tensor)), TN_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tn_tensor *parameter = tn_module_find_tensor(module, names[i]);

        ck_assert_msg(parameter != NULL, "%s", tn_error_text());
        expect_close(tn_tensor_grad(parameter), numbers(state, "grad.", names[i]), names[i]);
    }
    tn_pack_drop(out);
    ck_assert_int_eq(
        tn_tensor_requires_grad(tn_module_find_tensor(module, "features.1.running_mean")), 0);
    ck_assert_str_eq(tn_module_type(tn_module_find(module, "features.1")), "BatchNorm2d");
    ck_assert_str_eq(tn_module_type(tn_module_find(module, "fc")), "Linear");
    ck_assert_int_eq(tn_module_train(module, true), TN_OK);
    tn_pack_drop(replay(module, state, "train.", 1));
    expect_close(tn_module_find_tensor(module, "features.1.running_mean"),
                 numbers(state, "after.", "features.1.running_mean"), "running_mean");
    expect_close(tn_module_find_tensor(module, "features.1.running_var"),
                 numbers(state, "after.", "features.1.running_var"), "running_var");
    tn_module_drop(module);
    tn_state_drop(state);
}
END_TEST

static tn_status count_call(void *user, tn_module *module, const tn_pack *input,
                            const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)module;
    (void)output;
    (void)replacement;
    (void)outcome;
    ck_assert_int_eq(tn_pack_positional(input), 1);
    ++*(int *)user;
    return TN_OK;
}

START_TEST(modules_are_called_and_scripts_have_other_batches)
{
    TN_SCOPE;
    tn_state *state = numbers_of("onnx_net");
    tn_module *module = opened("onnx_net"), *script, *head = tn_module_new("Linear(3, 2)");
    tn_tensor *x = numbers(state, "", "in.0"), *larger = tn_repeat(x, TN_INTS(3, 1, 1, 1));
    tn_tracing_options options = TN_TRACING_OPTIONS;
    int calls = 0;

    tolerance = 1e-7;
    options.dynamic = "[N, 2, 5, 4]";
    script = tn_module_script(module, x, &options);
    ck_assert_msg(script != NULL, "%s", tn_error_text());
    expect_close(tn_module_call(script, x), numbers(state, "", "out.0"), "script");
    ck_assert_int_eq(tn_equal(tn_module_call(script, larger), tn_module_call(module, larger)), 1);
    ck_assert_int_ne(
        tn_module_hook_forward(tn_module_find(module, "fc"), count_call, 0, &calls, NULL), 0);
    ck_assert_msg(tn_module_call(module, x) != NULL, "%s", tn_error_text());
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(tn_module_to(head, NULL, TN_F64), TN_OK);
    ck_assert_int_eq(tn_module_set_child(module, "fc", head, true), TN_OK);
    ck_assert_int_eq(tn_tensor_size(tn_module_call(module, x), 1), 2);
    tn_module_drop(head);
    tn_module_drop(script);
    tn_module_drop(module);
    tn_state_drop(state);
}
END_TEST

/* ---- files that are made here ---------------------------------------------------------------- */

static void refused(struct bytes *graph, tn_status code, const char *words)
{
    tn_module *module = model_of(graph, 17);

    ck_assert_msg(module == NULL, "not refused: %s", words);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s", tn_error_text());
    ck_assert_msg(tn_error_last_code() == code, "%s: %s", tn_status_name(tn_error_last_code()),
                  tn_error_text());
}

START_TEST(what_cannot_run_is_refused_with_words)
{
    static struct bytes graph, attribute, tensor, entry, inner;

    put_named(&graph, 11, "x");
    put_node(&graph, "Softmaxx", "", "x", "a", NULL);
    put_node(&graph, "Swirl", "com.acme", "a", "b", NULL);
    put_node(&graph, "Softmaxx", "", "b", "y", NULL);
    put_named(&graph, 12, "y");
    refused(&graph, TN_ERR_NOT_IMPLEMENTED,
            "Softmaxx (2), com.acme.Swirl (1); a plugin can add rules: <tenon/foreign.h> says how, "
            "and docs/guides/from-onnx.md");

    put_named(&graph, 11, "x");
    put_node(&graph, "Relu", "", "z", "y", NULL);
    put_named(&graph, 12, "y");
    refused(&graph, TN_ERR_FORMAT, "value z: used before it is defined");

    put_named(&graph, 11, "x");
    put_node(&graph, "Relu", "", "x", "x", NULL);
    put_named(&graph, 12, "x");
    refused(&graph, TN_ERR_FORMAT, "value x: given twice");

    put_named(&graph, 11, "x");
    put_text(&attribute, 1, "sharpness");
    put_int(&attribute, 3, 1);
    put_int(&attribute, 20, 2);
    put_node(&graph, "Relu", "", "x", "y", &attribute);
    put_named(&graph, 12, "y");
    refused(&graph, TN_ERR_NOT_IMPLEMENTED, "Relu with sharpness (1)");

    put_named(&graph, 11, "x");
    put_named(&graph, 12, "x");
    ck_assert_ptr_null(model_of(&graph, 99));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "version 99"));

    /* 2^40 floats that are not there; data of a file outside the folder */
    put_int(&tensor, 1, UINT64_C(1) << 40);
    put_int(&tensor, 2, 1);
    put_text(&tensor, 8, "w");
    put(&graph, 5, &tensor);
    put_named(&graph, 12, "w");
    refused(&graph, TN_ERR_FORMAT, "tensor w: data: fewer values than the shape has");

    put_int(&tensor, 1, 2);
    put_int(&tensor, 2, 1);
    put_text(&tensor, 8, "w");
    put_text(&entry, 1, "location");
    put_text(&entry, 2, "../weights.bin");
    put(&tensor, 13, &entry);
    put_int(&tensor, 14, 1);
    put(&graph, 5, &tensor);
    put_named(&graph, 12, "w");
    refused(&graph, TN_ERR_FORMAT, "\"../weights.bin\": a part of it is `..`");

    /* graphs in graphs */
    put_named(&inner, 12, "x");
    for (int i = 0; i < 80; i++) {
        put_text(&attribute, 1, "then_branch");
        put(&attribute, 6, &inner);
        put_int(&attribute, 20, 5);
        put_node(&inner, "If", "", "x", "y", &attribute);
        put_named(&inner, 12, "y");
    }
    put_named(&graph, 11, "x");
    put_bytes(&graph, 1, inner.at, 0);
    memcpy(graph.at + graph.count, inner.at, inner.count);
    graph.count += inner.count;
    ck_assert_ptr_null(model_of(&graph, 17));
    unlink(path_here());
}
END_TEST

/* A written file has the weights that the module has now, and the texts; it is small without the
 * old ones. */
START_TEST(a_written_file_has_the_values_of_now)
{
    TN_SCOPE;
    tn_state *state = numbers_of("onnx_net");
    tn_module *module = opened("onnx_net"), *again, *other = tn_module_new("Linear(3, 4)");
    tn_tensor *x = numbers(state, "", "in.0"), *before = tn_module_call(module, x), *y;
    tn_state *files = tn_program_files(module);
    size_t size, size_again;
    const char *text;

    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    ck_assert_ptr_nonnull(
        tn_mul_scalar_(tn_module_find_tensor(module, "fc.weight"), tn_scalar_float(2.0)));
    tn_grad_end();
    y = tn_module_call(module, x);
    ck_assert_int_eq(tn_equal(before, y), 0);
    ck_assert_msg(files != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_state_set_value(files, "note", tn_value_string("a text")), TN_OK);
    ck_assert_msg(tn_module_save(module, path_here()) == TN_OK, "%s", tn_error_text());
    again = tn_module_from_file(path_here());
    ck_assert_msg(again != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_equal(tn_module_call(again, x), y), 1);
    ck_assert_str_eq(tn_state_value(tn_program_files(again), 0).as.s, "a text");
    text = tn_program_text(module, &size);
    ck_assert_int_eq(memcmp(text, tn_program_text(again, &size_again), size), 0);
    ck_assert_uint_eq(size, size_again);
    ck_assert_str_eq(tn_program_extension(again), ".onnx");
    ck_assert_int_ne(tn_module_save(module, "net.pt2"), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "expected one of a .pt2 file"));
    tn_error_clear();
    ck_assert_int_eq(tn_module_to(other, NULL, TN_F64), TN_OK);
    ck_assert_int_eq(tn_module_set_child(module, "fc", other, true), TN_OK);
    ck_assert_int_ne(tn_module_save(module, path_here()), TN_OK);
    ck_assert_msg(strstr(tn_error_text(), "module fc: another took its place") != NULL, "%s",
                  tn_error_text());
    unlink(path_here());
    tn_module_drop(other);
    tn_module_drop(again);
    tn_module_drop(module);
    tn_state_drop(state);
}
END_TEST

/* Names below names, tensors with two names (the last counts), and sizes whose square has no 64
 * bits. */
START_TEST(names_and_sizes_that_no_exporter_writes)
{
    TN_SCOPE;
    static struct bytes graph, attribute;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 4, 2, 2), 2.0, TN_F32, NULL), *y;
    tn_module *module;

    put_named(&graph, 11, "x");
    put_tensor(&graph, "a", NULL, false);
    put_tensor(&graph, "a.b", NULL, false);
    put_tensor(&graph, "a.b.c", NULL, false);
    put_node(&graph, "Neg", "", "a.b.c", "y", NULL);
    put_named(&graph, 12, "y");
    module = model_of(&graph, 17);
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    ck_assert_ptr_nonnull(tn_module_find_tensor(module, "a"));
    ck_assert_ptr_nonnull(tn_module_find_tensor(module, "a_b"));
    ck_assert_ptr_nonnull(tn_module_find_tensor(module, "a_b_c"));
    tn_module_drop(module);

    put_named(&graph, 11, "x");
    put_tensor(&graph, "a", NULL, false);
    for (int i = 0; i < 300; i++) {
        char name[20];
        tn_snprint(name, sizeof name, "h%d", i);
        put_tensor(&graph, "a", name, true);
    }
    put_node(&graph, "Neg", "", "a", "y", NULL);
    put_named(&graph, 12, "y");
    module = model_of(&graph, 17);
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    ck_assert_ptr_nonnull(tn_mul_scalar_(tn_module_find_tensor(module, "a"), tn_scalar_float(3.0)));
    tn_grad_end();
    ck_assert_msg(tn_module_save(module, path_here()) == TN_OK, "%s", tn_error_text());
    tn_module_drop(module);
    module = tn_module_from_file(path_here());
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    y = tn_module_call(module, x);
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_double_eq(tn_tensor_item(y), -3.0);
    tn_module_drop(module);

    for (int back = 0; back < 2; back++) {
        put_named(&graph, 11, "x");
        put_text(&attribute, 1, "blocksize");
        put_int(&attribute, 3, UINT64_C(1) << 32);
        put_int(&attribute, 20, 2);
        put_node(&graph, back ? "SpaceToDepth" : "DepthToSpace", "", "x", "y", &attribute);
        put_named(&graph, 12, "y");
        module = model_of(&graph, 17);
        ck_assert_msg(module != NULL, "%s", tn_error_text());
        ck_assert_ptr_null(tn_module_call(module, x));
        ck_assert_msg(strstr(tn_error_text(), "blocksize: out of range, got 4294967296") != NULL,
                      "%s", tn_error_text());
        tn_module_drop(module);
    }
    unlink(path_here());
}
END_TEST

/* The largest of [-inf, 1] and slopes of channels, as early versions have them. */
START_TEST(early_versions_have_their_own_rules)
{
    TN_SCOPE;
    static struct bytes graph;
    const float rows[] = { -INFINITY, 1, 3, 2 }, columns[] = { 0, 0, 1, 0 };
    tn_tensor *x = tn_tensor_from(rows, TN_F32, TN_SHAPE(1, 2, 2));
    tn_tensor *flat = tn_tensor_from(columns, TN_F32, TN_SHAPE(1, 2, 2));

    for (uint64_t version = 11; version <= 13; version += 2) {
        tn_module *module;
        tn_tensor *y;

        put_named(&graph, 11, "x");
        put_node(&graph, "Hardmax", "", "x", "y", NULL);
        put_named(&graph, 12, "y");
        module = model_of(&graph, version);
        ck_assert_msg(module != NULL, "%s", tn_error_text());
        y = tn_module_call(module, x);
        ck_assert_msg(y != NULL, "%s", tn_error_text());
        if (version == 11) /* dimension 1 and those that follow are one */
            ck_assert_int_eq(tn_equal(y, flat), 1);
        else
            ck_assert_double_eq(tn_tensor_item(tn_sum(y)), 2.0);
        tn_module_drop(module);
    }
    for (uint64_t version = 5; version <= 6; version++) { /* constants with fewer digits */
        const double scale = version == 5 ? 1.0507 * 1.6732
                                          : 1.0507009873554805 * 1.6732632423543772;
        tn_tensor *one = tn_tensor_full(TN_SHAPE(1), -1.0, TN_F64, NULL);
        tn_module *module;

        put_named(&graph, 11, "x");
        put_node(&graph, "Selu", "", "x", "y", NULL);
        put_named(&graph, 12, "y");
        module = model_of(&graph, version);
        ck_assert_msg(module != NULL, "%s", tn_error_text());
        one = tn_module_call(module, one);
        ck_assert_msg(one != NULL, "%s", tn_error_text());
        ck_assert_double_eq_tol(tn_tensor_item(one), scale * (exp(-1.0) - 1), 1e-7);
        tn_module_drop(module);
    }
    unlink(path_here());
}
END_TEST

/* Each file that is cut short, and files with changed bits: an error, or a module. */
START_TEST(broken_files_are_errors_or_modules)
{
    static unsigned char whole[1 << 16];
    FILE *file = fopen(FILES "onnx_flow.onnx", "rb");
    size_t size;
    uint64_t random = 88172645463325252u;
    int opened_files = 0, refused_files = 0;

    ck_assert_ptr_nonnull(file);
    size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t i = 0; i < size + 600; i++) {
        unsigned char kept = 0;
        size_t at = 0;
        tn_module *module;

        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        if (i >= size) {
            at = random % size;
            kept = whole[at];
            whole[at] ^= (unsigned char)(1 << (random >> 32 & 7));
        }
        write_file(whole, i < size ? i : size);
        module = tn_module_from_file(path_here());
        if (module == NULL)
            ck_assert_msg(strlen(tn_error_text()) > 0, "no words");
        opened_files += module != NULL;
        refused_files += module == NULL;
        tn_module_drop(module);
        tn_error_clear();
        if (i >= size)
            whole[at] = kept;
    }
    unlink(path_here());
    ck_assert_int_ge(refused_files, (int)size - 200); /* what follows the graph can be missing */
    ck_assert_int_ge(opened_files, 10);               /* changed numbers */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx");
    TCase *tcase = tcase_create("onnx");
    SRunner *runner;
    int failed;

#ifndef TN_WITH_ZLIB
    puts("SKIP: built without zlib, which the files need");
    return 77;
#endif
    tcase_add_loop_test(tcase, operators_have_the_values_of_float64, 0,
                        sizeof opsets / sizeof *opsets);
    tcase_add_test(tcase, control_flow_functions_and_sequences_run);
    tcase_add_test(tcase, a_network_has_the_names_values_gradients_and_modes_of_pytorch);
    tcase_add_test(tcase, modules_are_called_and_scripts_have_other_batches);
    tcase_add_test(tcase, what_cannot_run_is_refused_with_words);
    tcase_add_test(tcase, a_written_file_has_the_values_of_now);
    tcase_add_test(tcase, names_and_sizes_that_no_exporter_writes);
    tcase_add_test(tcase, early_versions_have_their_own_rules);
    tcase_add_test(tcase, broken_files_are_errors_or_modules);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
