/* SPDX-License-Identifier: MIT
 *
 * PyTorch's .pt2 files as modules: files/module_*.pt2 are networks in float64, files/module_*.npz
 * what PyTorch computes with them; make_modules.py writes both and describes the names. */
#include "tests/libcheck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/foreign.h>
#include <tenon/ops.h>
#include <tenon/tenon.h>

#include "core/base/internal.h"

#define FILES TN_TEST_SRCDIR "/tests/foreign/files/"

/* ---- files, numbers -------------------------------------------------------------------------- */

static tn_module *opened(const char *name)
{
    char path[600];
    tn_module *module;

    tn_snprint(path, sizeof path, FILES "%s.pt2", name);
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

/* The tensor PREFIX NAME, or NULL. */
static tn_tensor *numbers(const tn_state *state, const char *prefix, const char *name)
{
    char key[200];

    tn_snprint(key, sizeof key, "%s%s", prefix, name);
    return tn_state_find(state, key) >= 0 ? tn_state_get(state, key) : NULL;
}

static void expect_close(tn_tensor *got, tn_tensor *want, const char *what)
{
    tn_tensor *a, *b;
    const double *x, *y;
    double most = 0.0;

    ck_assert_msg(got != NULL && got != TN_NONE, "%s: missing: %s", what, tn_error_text());
    ck_assert_int_eq(tn_tensor_dtype(got), tn_tensor_dtype(want));
    ck_assert_int_eq(tn_tensor_numel(got), tn_tensor_numel(want));
    a = tn_reshape(tn_cast(tn_tensor_detach(got), TN_F64), TN_SHAPE(-1));
    b = tn_reshape(tn_cast(want, TN_F64), TN_SHAPE(-1));
    a = tn_clone(a);
    x = tn_tensor_data(a);
    y = tn_tensor_data(b);
    for (int64_t i = 0; i < tn_tensor_numel(a); i++)
        most = fmax(most, fabs(y[i]));
    for (int64_t i = 0; i < tn_tensor_numel(a); i++)
        ck_assert_msg(fabs(x[i] - y[i]) <= 1e-12 * fmax(most, 1e-2),
                      "%s: element %lld is %.17g; expected %.17g", what, (long long)i, x[i], y[i]);
}

static tn_pack *inputs_of(const tn_state *state, const char *prefix)
{
    tn_pack *pack = tn_pack_new();
    char name[20];

    for (int i = 0;; i++) {
        tn_tensor *tensor;

        tn_snprint(name, sizeof name, "in.%d", i);
        tensor = numbers(state, prefix, name);
        if (tensor == NULL)
            return pack;
        ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_tensor(tn_clone(tensor))), TN_OK);
    }
}

/* The same weights as in make_modules.py. */
static tn_tensor *weighted(tn_tensor *y, int number)
{
    int64_t n = tn_tensor_numel(y);
    double *values = calloc((size_t)n, sizeof *values);
    tn_tensor *weights;

    for (int64_t i = 0; i < n; i++)
        values[i] = ((7 * i + 3 * number) % 11 - 5) / 8.0;
    weights = tn_tensor_from(values, TN_F64, tn_tensor_shape(y));
    free(values);
    return tn_sum(tn_mul(y, weights));
}

/* Calls the module with the recorded inputs and compares results, gradients and buffers. */
static void replay(tn_module *module, const tn_state *state, const char *prefix)
{
    TN_SCOPE;
    tn_pack *in = inputs_of(state, prefix), *out = tn_pack_new();
    tn_tensor *loss = NULL, *want;
    int compared = 0;
    tn_walk *walk;

    ck_assert_msg(tn_module_call_pack(module, in, out) == TN_OK, "%s", tn_error_text());
    for (int64_t i = 0; i < tn_pack_count(out); i++) {
        tn_value value = tn_pack_at(out, i);
        char name[20];

        tn_snprint(name, sizeof name, "out.%d", (int)i);
        want = numbers(state, prefix, name);
        ck_assert_int_eq(want != NULL, value.kind == TN_VALUE_TENSOR);
        if (want == NULL)
            continue;
        expect_close(value.as.tensor, want, name);
        compared++;
        if (tn_tensor_requires_grad(value.as.tensor))
            loss = loss == NULL ? weighted(value.as.tensor, (int)i)
                                : tn_add(loss, weighted(value.as.tensor, (int)i));
    }
    ck_assert_int_ge(compared, 1);
    ck_assert_msg(tn_backward(loss) == TN_OK, "%s", tn_error_text());
    walk = tn_walk_begin(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);
    for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk)) {
        char name[200];
        bool parameter = tn_tensor_is_parameter(at->tensor);

        tn_snprint(name, sizeof name, "%s.%s", parameter ? "grad" : "after", at->path);
        want = numbers(state, prefix, name);
        ck_assert_msg(want != NULL || !parameter, "%s: not recorded", name);
        if (want != NULL)
            expect_close(parameter ? tn_tensor_grad(at->tensor) : at->tensor, want, name);
        if (parameter)
            tn_tensor_set_grad(at->tensor, TN_NONE);
    }
    tn_walk_end(walk);
    tn_pack_drop(in);
    tn_pack_drop(out);
}

static void expect_text(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "%s\nexpected: %s", text, part);
}

/* ---- values ---------------------------------------------------------------------------------- */

START_TEST(results_gradients_and_buffers_are_those_of_pytorch)
{
    static const struct {
        const char *file, *prefix;
    } rows[] = { { "module_net", "" },         { "module_net", "more." },
                 { "module_train", "train." }, { "module_flow", "" },
                 { "module_flow", "more." },   { "module_decomposed", "train." },
                 { "module_old", "" },         { "module_vision", "" },
                 { "module_grouped", "" } };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_module *module = opened(rows[i].file);
        tn_state *state = numbers_of(rows[i].file);

        replay(module, state, rows[i].prefix);
        tn_state_drop(state);
        tn_module_drop(module);
    }
}
END_TEST

START_TEST(the_mode_of_a_module_decides_whatever_the_file_was_exported_in)
{
    static const char *const files[] = { "module_net", "module_train" };

    for (int i = 0; i < 2; i++) {
        tn_module *module = opened(files[i]);
        tn_state *state = numbers_of(files[i]);

        ck_assert_int_eq(tn_module_is_training(module), i == 1);
        ck_assert_int_eq(tn_module_is_training(tn_module_find(module, "block.norm")), i == 1);
        if (i == 1) /* the numbers for evaluation follow those for training */
            replay(module, state, "train.");
        ck_assert_int_eq(tn_module_train(module, i == 0), TN_OK);
        replay(module, state, i == 0 ? "train." : "");
        tn_state_drop(state);
        tn_module_drop(module);
    }
}
END_TEST

START_TEST(buffers_and_arguments_are_written_in_place_or_by_the_signature)
{
    static const char *const files[] = { "module_write", "module_written" };
    const double start[] = { 0, 1, 2, 3, 4, 5 }, counts[] = { 3, 5, 7 };
    const double twice[] = { 0, 2, 4, 6, 8, 10 }, sums[] = { 3, 7, 11, 9, 13, 17 };

    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_module *module = opened(files[i]);
        tn_tensor *x = tn_tensor_from(start, TN_F64, TN_SHAPE(2, 3));
        tn_tensor *y = tn_module_call(module, x);

        expect_close(y, tn_tensor_from(sums, TN_F64, TN_SHAPE(2, 3)), "result");
        expect_close(x, tn_tensor_from(twice, TN_F64, TN_SHAPE(2, 3)), "argument");
        expect_close(tn_module_find_tensor(module, "count"),
                     tn_tensor_from(counts, TN_F64, TN_SHAPE(3)), "buffer");
        tn_module_drop(module);
    }
}
END_TEST

/* ---- the tree -------------------------------------------------------------------------------- */

START_TEST(names_types_ties_and_state_are_those_of_pytorch)
{
    static const char *const names[] = { "block.conv.weight",
                                         "block.norm.weight",
                                         "block.norm.bias",
                                         "block.norm.running_mean",
                                         "block.norm.running_var",
                                         "block.norm.num_batches_tracked",
                                         "head.1.weight",
                                         "head.1.bias",
                                         "out.weight",
                                         "back.weight",
                                         "lower",
                                         "shift" };
    tn_module *module = opened("module_net");
    tn_state *state = tn_module_state(module), *file = tn_state_load(FILES "module_net.pt2");
    char text[500];

    tn_module_repr(module, text, sizeof text);
    ck_assert_str_eq(text, "Net(\n"
                           "  (block): Block(\n"
                           "    (conv): Conv2d()\n"
                           "    (norm): BatchNorm2d()\n"
                           "    (act): ReLU()\n"
                           "    (drop): Dropout()\n"
                           "  )\n"
                           "  (head): Sequential(\n"
                           "    (0): Flatten()\n"
                           "    (1): Linear()\n"
                           "    (2): Tanh()\n"
                           "  )\n"
                           "  (out): Linear()\n"
                           "  (back): Linear()\n"
                           ")");
    ck_assert_int_eq(tn_state_count(state), sizeof names / sizeof *names);
    ck_assert_msg(file != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_state_count(file), sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_msg(tn_state_find(state, names[i]) >= 0, "%s", names[i]);
        ck_assert_msg(tn_state_find(file, names[i]) >= 0, "%s", names[i]);
    }
    /* Tied weights are one tensor; views of one storage share it. */
    ck_assert_ptr_eq(tn_module_find_tensor(module, "out.weight"),
                     tn_module_find_tensor(module, "back.weight"));
    ck_assert(tn_tensor_shares_storage(tn_module_find_tensor(module, "lower"),
                                       tn_module_find_tensor(module, "shift")));
    ck_assert_int_eq(tn_module_slot_kind(module, "constant"), TN_SLOT_BUFFER);
    tn_state_drop(file);
    tn_state_drop(state);
    tn_module_drop(module);
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

START_TEST(submodules_are_called_so_that_hooks_frozen_weights_and_new_heads_work)
{
    TN_SCOPE;
    tn_module *module = opened("module_net"), *copy = tn_module_copy(module), *head;
    tn_state *state = numbers_of("module_net");
    tn_pack *in = inputs_of(state, ""), *out = tn_pack_new();
    tn_tensor *before = tn_module_find_tensor(module, "block.conv.weight"), *y;
    int blocks = 0, tanhs = 0;

    tn_module_hook_forward(tn_module_find(module, "block"), count_call, 0, &blocks, NULL);
    tn_module_hook_forward(tn_module_find(module, "head.2"), count_call, 0, &tanhs, NULL);
    replay(module, state, "");
    ck_assert_int_eq(blocks, 2);
    ck_assert_int_eq(tanhs, 1);

    ck_assert_int_eq(tn_tensor_set_requires_grad(before, false), TN_OK);
    head = tn_module_new("Sequential(Flatten(), Linear(18, 4))");
    ck_assert_int_eq(tn_module_to(head, NULL, TN_F64), TN_OK);
    ck_assert_int_eq(tn_module_set_child(module, "head", head, true), TN_OK);
    ck_assert_msg(tn_module_call_pack(module, in, out) == TN_OK, "%s", tn_error_text());
    y = tn_pack_at(out, 0).as.tensor;
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_int_eq(tanhs, 1); /* the old head is not called any more */
    ck_assert_ptr_eq(tn_tensor_grad(before), TN_NONE);
    ck_assert_ptr_ne(tn_tensor_grad(tn_module_find_tensor(head, "1.weight")), TN_NONE);

    /* A copy has tensors of its own, and the old head. */
    ck_assert_msg(copy != NULL, "%s", tn_error_text());
    replay(copy, state, "more.");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(head);
    tn_module_drop(copy);
    tn_state_drop(state);
    tn_module_drop(module);
}
END_TEST

START_TEST(scripts_have_the_bits_of_the_module_and_other_sizes)
{
    static const char *const files[] = { "module_net", "module_flow", "module_old" };

    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        tn_module *module = opened(files[i]), *script;
        tn_state *state = numbers_of(files[i]);
        tn_pack *in = inputs_of(state, ""), *a = tn_pack_new(), *b = tn_pack_new();
        tn_tracing_options options = TN_TRACING_OPTIONS;

        options.dynamic = i == 0 ? "[N, 2, 3, 3], [4]" : NULL;
        script = tn_module_script_pack(module, in, &options);
        ck_assert_msg(script != NULL, "%s", tn_error_text());
        ck_assert_int_eq(tn_module_call_pack(module, in, a), TN_OK);
        ck_assert_msg(tn_module_call_pack(script, in, b) == TN_OK, "%s", tn_error_text());
        ck_assert(tn_equal(tn_pack_at(a, 0).as.tensor, tn_pack_at(b, 0).as.tensor));
        if (i < 2)
            replay(script, state, "more.");
        tn_pack_drop(in);
        tn_pack_drop(a);
        tn_pack_drop(b);
        tn_module_drop(script);
        tn_state_drop(state);
        tn_module_drop(module);
    }
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(files_that_cannot_run_are_refused_with_words)
{
    static const struct {
        const char *file, *words;
        tn_status code;
    } rows[] = {
        { "schema", "schema_version: major version unknown, got 9; expected 8", TN_ERR_VERSION },
        { "functions", "mylib.unknown.default (1), aten.unheard_of.default (1)",
          TN_ERR_NOT_IMPLEMENTED },
        { "argument", "aten.linear.default with loudness (1)", TN_ERR_NOT_IMPLEMENTED },
        { "undefined",
          "node linear (aten.linear.default): argument input: value nowhere: used "
          "before it is defined",
          TN_ERR_FORMAT },
        { "custom", "input thing: a custom object", TN_ERR_REFUSED },
        { "twice", "node linear (aten.linear.default): argument input: given twice",
          TN_ERR_FORMAT },
        { "result",
          "user_input: missing or wrong; expected an input of the graph that no other "
          "spec names",
          TN_ERR_FORMAT },
        { "output",
          "output_specs: missing or wrong; expected the names of the outputs of the graph",
          TN_ERR_FORMAT },
        { "doubled", "duplicate object key near '\"target\"'", TN_ERR_FORMAT },
        { "several", "several programs in one archive, got 2; expected one", TN_ERR_REFUSED },
        { "compiled", "compiled code of AOTInductor", TN_ERR_REFUSED },
        { "beyond", "tensor fc.weight: view: beyond its storage", TN_ERR_VALUE },
        { "pickle", "tensor fc.weight: a pickled object", TN_ERR_REFUSED },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[600];

        tn_snprint(path, sizeof path, FILES "refused_%s.pt2", rows[i].file);
        ck_assert_msg(tn_module_from_file(path) == NULL, "%s", path);
        expect_text(tn_error_text(), path);
        expect_text(tn_error_text(), rows[i].words);
        ck_assert_int_eq(tn_error_code(), rows[i].code);
        tn_error_clear();
    }
}
END_TEST

START_TEST(a_list_in_a_list_of_results_is_refused_when_the_program_runs)
{
    TN_SCOPE;
    tn_module *module = opened("refused_nested");
    tn_state *state = numbers_of("module_old");

    ck_assert_ptr_null(tn_module_call(module, numbers(state, "", "in.0")));
    expect_text(tn_error_text(), "element 0 of a result is a list; expected a tensor or a number");
    tn_error_clear();
    tn_state_drop(state);
    tn_module_drop(module);
}
END_TEST

START_TEST(arguments_are_taken_by_place_or_name_and_wrong_ones_are_refused)
{
    TN_SCOPE;
    tn_module *module = opened("module_net");
    tn_state *state = numbers_of("module_net");
    tn_tensor *x = numbers(state, "", "in.0"), *mask = numbers(state, "", "in.1");
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();

    ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tensor(x)), TN_OK);
    ck_assert_int_ne(tn_module_call_pack(module, in, out), TN_OK);
    expect_text(tn_error_text(), "argument 2 (mask): wrong, got nothing; expected a value");
    tn_error_clear();
    ck_assert_int_eq(tn_pack_add(in, "mask", tn_value_tensor(mask)), TN_OK);
    ck_assert_msg(tn_module_call_pack(module, in, out) == TN_OK, "%s", tn_error_text());
    expect_close(tn_pack_at(out, tn_pack_find(out, "y")).as.tensor, numbers(state, "", "out.0"),
                 "y");
    ck_assert_int_eq(tn_pack_at(out, tn_pack_find(out, "n")).as.i, 4);
    ck_assert_int_eq(tn_pack_add(in, "noise", tn_value_int(3)), TN_OK);
    tn_pack_drop(out);
    out = tn_pack_new();
    ck_assert_int_ne(tn_module_call_pack(module, in, out), TN_OK);
    expect_text(tn_error_text(), "argument \"noise\": the program has none with this name");
    tn_error_clear();
    tn_pack_drop(in);
    in = tn_pack_new();
    for (int i = 0; i < 3; i++)
        tn_pack_add(in, NULL, tn_value_tensor(x));
    ck_assert_int_ne(tn_module_call_pack(module, in, out), TN_OK);
    expect_text(tn_error_text(), "too many arguments, got 3; expected 2");
    tn_error_clear();
    /* The message of a function that fails names it and its node. */
    ck_assert_ptr_null(tn_module_call(tn_module_find(module, "head.1"), x));
    expect_text(tn_error_text(), "aten.linear.default (node linear): ");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_state_drop(state);
    tn_module_drop(module);
    tn_error_clear();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Opens a program and runs it, while allocation n fails. Returns whether there were as many. */
static bool try_allocation(const tn_state *state, uint64_t n)
{
    TN_SCOPE;
    tn_tensor *x = tn_clone(numbers(state, "", "in.0")), *y = NULL;
    tn_module *module;
    bool reached;

    tn__memory_fail(n);
    module = tn_module_from_file(FILES "module_flow.pt2");
    if (module != NULL) {
        tn_pack *in = tn_pack_new(), *out = tn_pack_new();

        if (in != NULL && out != NULL && tn_pack_add(in, NULL, tn_value_tensor(x)) == TN_OK &&
            tn_module_call_pack(module, in, out) == TN_OK)
            y = tn_tensor_to_scope(tn_tensor_keep(tn_pack_at(out, 0).as.tensor));
        tn_pack_drop(in);
        tn_pack_drop(out);
    }
    reached = tn__memory_fail(0) >= n;
    ck_assert_msg(y != NULL || (tn_failed() && tn_error_code() == TN_ERR_MEMORY),
                  "allocation %d: %s", (int)n, tn_error_text());
    tn_error_clear();
    if (y != NULL)
        expect_close(y, numbers(state, "", "out.0"), "result");
    tn_module_drop(module);
    return reached;
}

START_TEST(memory_that_runs_out_is_an_error_and_the_next_try_succeeds)
{
    tn_state *state = numbers_of("module_flow");
    tn_module *module = opened("module_flow");
    uint64_t n = 1;

    while (try_allocation(state, n))
        n++;
    ck_assert_int_gt((int64_t)n, 150);
    replay(module, state, "");
    tn_state_drop(state);
    tn_module_drop(module);
}
END_TEST

START_TEST(a_written_program_keeps_what_is_frozen_its_values_and_its_files)
{
    TN_SCOPE;
    const char *const path = "written_pt2.pt2", *const frozen = "out.weight";
    tn_module *module = opened("module_net"), *again;
    tn_state *files = tn_program_files(module), *before, *after;
    char name[1100];

    ck_assert_ptr_nonnull(files);
    ck_assert_int_eq(tn_state_set_value(files, "classes", tn_value_string("a\nb")), TN_OK);
    before = tn_module_state(module);
    ck_assert(tn_tensor_requires_grad(tn_module_find_tensor(module, frozen)));
    ck_assert_int_eq(tn_tensor_set_requires_grad(tn_module_find_tensor(module, frozen), false),
                     TN_OK);
    ck_assert_msg(tn_module_save(module, path) == TN_OK, "%s", tn_error_text());
    again = tn_module_from_file(path);
    ck_assert_msg(again != NULL, "%s", tn_error_text());
    after = tn_module_state(again);
    ck_assert_int_eq(tn_state_count(after), tn_state_count(before));
    for (int64_t i = 0; i < tn_state_count(before); i++) {
        ck_assert_str_eq(tn_state_name(after, i), tn_state_name(before, i));
        ck_assert_int_eq(
            tn_tensor_requires_grad(tn_module_find_tensor(again, tn_state_name(after, i))),
            tn_tensor_requires_grad(tn_module_find_tensor(module, tn_state_name(before, i))));
        ck_assert_int_eq(tn_equal(tn_state_tensor(after, i), tn_state_tensor(before, i)), 1);
    }
    ck_assert_str_eq(tn_state_value(tn_program_files(again), 0).as.s, "a\nb");
    tn_state_drop(after);
    tn_module_drop(again);

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(tn_state_set_value(files, name, tn_value_string("text")), TN_OK);
    ck_assert_int_eq(tn_module_save(module, path), TN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "the name is too long"));
    ck_assert_int_eq(remove(path), 0); /* the file before is still there */
    tn_state_drop(before);
    tn_module_drop(module);
}
END_TEST

/* ---- rules of other plugins ------------------------------------------------------------------ */

/* examples/rules.c: a rule that is a text, and one in C with two results. Before the plugin is
 * there the message names both functions. */
START_TEST(a_plugin_adds_rules_for_its_own_operators)
{
    tn_state *state = numbers_of("module_custom");
    tn_module *module = tn_module_from_file(FILES "module_custom.pt2");
    tn_pack *in = inputs_of(state, ""), *out = tn_pack_new();

    ck_assert_ptr_null(module);
    ck_assert_int_eq(tn_error_last_code(), TN_ERR_NOT_IMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "acme.swirl.default (1)"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "acme.scale.default (2)"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "a plugin can add rules: <tenon/foreign.h>"));
    ck_assert_msg(tn_plugin_load(TN_TEST_BUILDDIR "/examples/.libs/rules.so") == TN_OK, "%s",
                  tn_error_text());
    module = opened("module_custom");
    ck_assert_msg(tn_module_call_pack(module, in, out) == TN_OK, "%s", tn_error_text());
    expect_close(tn_pack_at(out, 0).as.tensor, numbers(state, "", "out.0"), "y");
    expect_close(tn_pack_at(out, 1).as.tensor, numbers(state, "", "out.1"), "sum");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_state_drop(state);
    tn_module_drop(module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pt2");
    TCase *tcase = tcase_create("pt2");
    SRunner *runner;
    int failed;

#ifndef TN_WITH_ZLIB
    puts("SKIP: built without zlib, which the files need");
    return 77;
#endif
    tcase_add_test(tcase, results_gradients_and_buffers_are_those_of_pytorch);
    tcase_add_test(tcase, the_mode_of_a_module_decides_whatever_the_file_was_exported_in);
    tcase_add_test(tcase, buffers_and_arguments_are_written_in_place_or_by_the_signature);
    tcase_add_test(tcase, names_types_ties_and_state_are_those_of_pytorch);
    tcase_add_test(tcase, submodules_are_called_so_that_hooks_frozen_weights_and_new_heads_work);
    tcase_add_test(tcase, scripts_have_the_bits_of_the_module_and_other_sizes);
    tcase_add_test(tcase, files_that_cannot_run_are_refused_with_words);
    tcase_add_test(tcase, a_list_in_a_list_of_results_is_refused_when_the_program_runs);
    tcase_add_test(tcase, arguments_are_taken_by_place_or_name_and_wrong_ones_are_refused);
    tcase_add_test(tcase, memory_that_runs_out_is_an_error_and_the_next_try_succeeds);
    tcase_add_test(tcase, a_written_program_keeps_what_is_frozen_its_values_and_its_files);
    tcase_add_test(tcase, a_plugin_adds_rules_for_its_own_operators);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
