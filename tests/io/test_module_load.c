/* SPDX-License-Identifier: MIT
 *
 * Loading a file into a module without a second copy of its weights (tn_module_load and
 * TN_LOAD_TAKE), tensors that a module has under two names, and modules from files with a spec. */
#include "core/tensor/internal.h"
#include "tests/io/states.h"

#include <sys/wait.h>

#include <tenon/tenon.h>

#define NET "Sequential(fc=Linear(3, 2), bn=BatchNorm1d(2))"

static const char *const paths[] = { "n.safetensors", "n.checkpoint" };

static tn_module *parsed(const char *spec)
{
    tn_module *m = tn_module_parse(spec);
    ck_assert_msg(m != NULL, "%s", tn_error_text());
    return m;
}

/* A module without values: on `meta`, or with memory that no init has filled. */
static tn_module *empty_module(bool meta, const char *spec)
{
    tn_module *m = tn_module_parse_skip_init(meta ? tn_device_find("meta") : NULL, spec);
    ck_assert_msg(m != NULL, "%s", tn_error_text());
    return m;
}

static void expect_loads(tn_module *m, const char *path)
{
    ck_assert_msg(tn_module_load(m, path) == TN_OK, "%s: %s", path, tn_error_text());
}

static void expect_same_modules(tn_module *a, tn_module *b)
{
    tn_state *x = tn_module_state(a), *y = tn_module_state(b);
    expect_same_state(x, y);
    tn_state_drop(x);
    tn_state_drop(y);
}

static bool is_mapped(const tn_tensor *tensor)
{
    return (tensor->storage->flags & TN__STORAGE_FOREIGN) != 0;
}

START_TEST(a_module_without_values_takes_the_tensors_of_the_file)
{
    TN_SCOPE;
    in_folder();
    tn_module *from = parsed(NET);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_module_save(from, paths[i]), TN_OK);
        for (int meta = 0; meta < 2; meta++) {
            tn_module *to = empty_module(meta != 0, NET);
            tn_tensor *weight = tn_module_find_tensor(to, "fc.weight");
            tn_tensor *bias = tn_module_find_tensor(to, "fc.bias");
            tn_tensor_set_requires_grad(bias, false);
            expect_loads(to, paths[i]);
            ck_assert_ptr_eq(tn_module_find_tensor(to, "fc.weight"), weight);
            ck_assert(tn_tensor_is_parameter(weight) && tn_tensor_requires_grad(weight));
            ck_assert(!tn_tensor_requires_grad(bias));
            ck_assert(is_mapped(weight) && is_mapped(tn_module_find_tensor(to, "bn.running_var")));
            expect_same_modules(from, to);
            /* Training writes to the memory of this process only. */
            tn_grad_begin(false);
            ck_assert_ptr_nonnull(tn_fill_(weight, 7));
            tn_grad_end();
            tn_module *again = parsed(NET);
            expect_loads(again, paths[i]);
            ck_assert(!is_mapped(tn_module_find_tensor(again, "fc.weight")));
            expect_same_modules(from, again);
            tn_module_drop(again);
            tn_module_drop(to);
        }
    }
    tn_module_drop(from);
    leave_folder();
}
END_TEST

START_TEST(a_module_of_an_unknown_type_takes_its_parameters_from_the_file)
{
    TN_SCOPE;
    in_folder();
    const char *text = "Mine(\n  (fc): Linear(in_features=2, out_features=1)\n)";
    tn_module *from = parsed(text);
    tn_tensor *scale = tn_tensor_full(TN_SHAPE(2), 3.5, TN_F32, NULL);
    ck_assert_int_eq(tn_module_add_parameter(from, "scale", tn_parameter(scale, true)), TN_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_module_save(from, paths[i]), TN_OK);
        for (int meta = 0; meta < 2; meta++) {
            tn_module *to = empty_module(meta != 0, text);
            ck_assert_int_eq(tn_module_slot_kind(to, "scale"), 0);
            expect_loads(to, paths[i]);
            tn_tensor *loaded = tn_module_find_tensor(to, "scale");
            ck_assert(loaded != NULL && tn_tensor_is_parameter(loaded));
            ck_assert(is_mapped(loaded));
            expect_same_modules(from, to);
            tn_module_drop(to);
        }
        /* A module that has values gets copies. */
        tn_module *to = parsed(text);
        expect_loads(to, paths[i]);
        ck_assert(!is_mapped(tn_module_find_tensor(to, "scale")));
        expect_same_modules(from, to);
        tn_module_drop(to);
    }
    tn_module_drop(from);
    leave_folder();
}
END_TEST

START_TEST(a_file_that_does_not_fit_changes_nothing)
{
    TN_SCOPE;
    in_folder();
    tn_module *from = parsed("Sequential(fc=Linear(3, 2), bn=BatchNorm1d(3))");
    tn_module *to = empty_module(true, NET);
    ck_assert_int_eq(tn_module_save(from, paths[0]), TN_OK);
    ck_assert_int_eq(tn_module_load(to, paths[0]), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "size mismatch for bn.weight");
    ck_assert_str_eq(tn_device_name(tn_tensor_device(tn_module_find_tensor(to, "fc.weight"))),
                     "meta:0");
    tn_module_drop(from);
    tn_module_drop(to);
    leave_folder();
}
END_TEST

START_TEST(the_dtype_and_the_layout_of_the_module_stay)
{
    TN_SCOPE;
    in_folder();
    tn_module *from = parsed("Linear(3, 2)");
    ck_assert_int_eq(tn_module_to(from, NULL, TN_F16), TN_OK);
    ck_assert_int_eq(tn_module_save(from, paths[0]), TN_OK);
    ck_assert_int_eq(tn_module_to(from, NULL, TN_F32), TN_OK);
    for (int meta = 0; meta < 2; meta++) {
        tn_module *to = empty_module(meta != 0, "Linear(3, 2)");
        expect_loads(to, paths[0]);
        expect_same_modules(from, to);
        tn_module_drop(to);
    }
    /* A column-major tensor, and a part of a larger storage. */
    tn_tensor *large = tn_tensor_full(TN_SHAPE(3, 2), 0.5, TN_F32, NULL);
    tn_state *state = tn_state_new();
    tn_state_set(state, "weight", tn_transpose(large, 0, 1));
    tn_state_set(state, "bias", tn_select(large, 0, 0));
    tn_module *to = empty_module(true, "Linear(3, 2)");
    ck_assert_int_eq(tn_module_load_report(to, state, TN_LOAD_STRICT | TN_LOAD_TAKE, NULL), TN_OK);
    ck_assert(tn_tensor_is_contiguous(tn_module_get(to, "weight")));
    ck_assert_uint_eq(tn_module_get(to, "bias")->storage->size, 8);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(to, "weight"))), 3);
    tn_state_drop(state);
    tn_module_drop(to);
    tn_module_drop(from);
    leave_folder();
}
END_TEST

START_TEST(a_view_of_a_tensor_sees_the_values_that_are_loaded)
{
    TN_SCOPE;
    tn_module *to = empty_module(false, "Linear(3, 2)");
    tn_tensor *view = tn_detach(tn_module_get(to, "weight"));
    tn_state *state = tn_state_new();
    tn_state_set(state, "weight", tn_tensor_full(TN_SHAPE(2, 3), 2, TN_F32, NULL));
    tn_state_set(state, "bias", tn_tensor_full(TN_SHAPE(2), 1, TN_F32, NULL));
    ck_assert_int_eq(tn_module_load_report(to, state, TN_LOAD_TAKE, NULL), TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(view)), 12);
    ck_assert_ptr_eq(tn_module_get(to, "bias")->storage, tn_state_tensor(state, 1)->storage);
    ck_assert_int_eq(tn_module_load_report(to, state, TN_LOAD_TAKE | TN_LOAD_ASSIGN, NULL),
                     TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "TN_LOAD_ASSIGN and TN_LOAD_TAKE");
    tn_state_drop(state);
    tn_module_drop(to);
}
END_TEST

/* ---- ties ------------------------------------------------------------------------------------ */

/* A module whose `out.weight` is the tensor of `in.weight`. */
static tn_module *tied_module(bool meta)
{
    tn_module *m = empty_module(meta,
                                "Sequential(in=Embedding(4, 2), out=Linear(2, 4, bias=False))");
    ck_assert_int_eq(
        tn_module_set(tn_module_child(m, "out"), "weight", tn_module_find_tensor(m, "in.weight")),
        TN_OK);
    return m;
}

START_TEST(one_name_of_a_tied_tensor_suffices)
{
    TN_SCOPE;
    in_folder();
    static const char *const names[] = { "in.weight", "out.weight" };
    for (int i = 0; i < 4; i++) {
        tn_module *m = tied_module(i / 2 != 0);
        tn_state *state = tn_state_new();
        tn_load_report *report = tn_load_report_new();
        tn_state_set(state, names[i % 2], tn_tensor_full(TN_SHAPE(4, 2), 3, TN_F32, NULL));
        saved(state, paths[0]);
        expect_loads(m, paths[0]);
        ck_assert_ptr_eq(tn_module_find_tensor(m, "in.weight"),
                         tn_module_find_tensor(m, "out.weight"));
        ck_assert_double_eq(tn_item(tn_sum(tn_module_find_tensor(m, "out.weight"))), 24);
        ck_assert_int_eq(tn_module_load_report(m, state, TN_LOAD_STRICT, report), TN_OK);
        ck_assert_int_eq(tn_names_count(tn_load_report_missing(report)), 0);
        /* TN_LOAD_ASSIGN gives each name a tensor of its own, so it needs both names in the file.
         */
        ck_assert_int_eq(tn_module_load_report(m, state, TN_LOAD_STRICT | TN_LOAD_ASSIGN, report),
                         TN_ERR_RUNTIME);
        expect_failure(TN_ERR_RUNTIME, names[1 - i % 2]);
        /* Without either name both are missing. */
        tn_module_drop(m);
        m = tied_module(i / 2 != 0);
        tn_state_remove(state, names[i % 2]);
        ck_assert_int_eq(tn_module_load_report(m, state, 0, report), TN_OK);
        ck_assert_int_eq(tn_names_count(tn_load_report_missing(report)), 2);
        tn_load_report_drop(report);
        tn_state_drop(state);
        tn_module_drop(m);
    }
    leave_folder();
}
END_TEST

START_TEST(a_tie_takes_the_value_of_its_last_name_and_the_state_stays)
{
    TN_SCOPE;
    for (int meta = 0; meta < 2; meta++) {
        tn_module *m = tied_module(meta != 0);
        tn_state *state = tn_state_new();
        tn_state_set(state, "in.weight", tn_tensor_full(TN_SHAPE(4, 2), 1, TN_F32, NULL));
        tn_state_set(state, "out.weight", tn_tensor_full(TN_SHAPE(4, 2), 2, TN_F32, NULL));
        ck_assert_int_eq(tn_module_load_report(m, state, TN_LOAD_STRICT | TN_LOAD_TAKE, NULL),
                         TN_OK);
        ck_assert_double_eq(tn_item(tn_sum(tn_module_find_tensor(m, "in.weight"))), 16);
        ck_assert_double_eq(tn_item(tn_sum(tn_state_tensor(state, 0))), 8);
        tn_state_drop(state);
        tn_module_drop(m);
    }
}
END_TEST

START_TEST(tensors_that_only_the_file_ties_do_not_share_memory_in_the_module)
{
    TN_SCOPE;
    in_folder();
    tn_module *from = tied_module(false);
    tn_grad_begin(false);
    tn_fill_(tn_module_find_tensor(from, "in.weight"), 3);
    tn_grad_end();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_module_save(from, paths[i]), TN_OK);
        for (int meta = 0; meta < 2; meta++) {
            tn_module *m = empty_module(
                meta != 0, "Sequential(in=Embedding(4, 2), out=Linear(2, 4, bias=False))");
            expect_loads(m, paths[i]);
            expect_same_modules(from, m);
            ck_assert_ptr_ne(tn_module_find_tensor(m, "in.weight")->storage,
                             tn_module_find_tensor(m, "out.weight")->storage);
            tn_module_drop(m);
        }
    }
    tn_module_drop(from);
    leave_folder();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(members_of_a_pytorch_file_are_mapped)
{
    TN_SCOPE;
    const char *path = TN_TEST_SRCDIR "/tests/io/files/pytorch.pt";
    tn_state *read = loaded_as(path, 0), *mapped = loaded_as(path, TN_FILE_MAP);
    int64_t found = 0;
    for (int64_t i = 0; i < tn_state_count(mapped); i++)
        if (tn_state_value(mapped, i).kind == TN_VALUE_TENSOR)
            found += is_mapped(tn_state_tensor(mapped, i));
    ck_assert_int_gt(found, 0);
    expect_same_state(read, mapped);
    tn_state_drop(read);
    tn_state_drop(mapped);
    /* A compressed member cannot be mapped, and is read. */
    path = TN_TEST_SRCDIR "/tests/io/files/pytorch-deflated.pt";
    mapped = tn_state_load_as(path, TN_FILE_MAP);
    if (mapped != NULL) {
        read = loaded_as(path, 0);
        expect_same_state(read, mapped);
        tn_state_drop(read);
    }
    tn_error_clear(); /* without zlib, it says so */
    tn_state_drop(mapped);
}
END_TEST

/* The most memory that this process has had so far, in KiB. */
static int64_t peak(void)
{
    long long most = -1;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %lld", &most) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return most;
}

/* Runs in a new process: loads 64 MiB of weights and reads all of them. Returns 0 if this needed at
 * most 5 % more memory than the weights have, 5 if it needed more, or the number of another error.
 */
static int load_and_measure(const char *path)
{
    int64_t size = 64 << 20;
    tn_module *net = tn_module_parse_skip_init(tn_device_find(path[0] == 'm' ? "meta" : "cpu"),
                                               "Sequential(a=Linear(2048, 4096, bias=False), "
                                               "b=Linear(4096, 2048, bias=False))");
    int64_t before = peak();
    if (net == NULL || tn_module_load(net, path) != TN_OK)
        return 3;
    for (int i = 0; i < 2; i++) {
        const float *at = tn_tensor_data(
            tn_module_find_tensor(net, i == 0 ? "a.weight" : "b.weight"));
        for (int64_t k = 0; at != NULL && k < size / 8; k++)
            if (at[k] != (float)(i + 1))
                return 4;
    }
    int64_t most = peak() - before;
    tn_module_drop(net);
    return most * 1024 <= size + size / 20 ? 0 : 5;
}

START_TEST(the_weights_are_in_memory_once)
{
#if TN_BUILD_ASAN || TN_BUILD_TSAN
    return; /* sanitizers use additional memory for each byte */
#endif
    TN_SCOPE;
    in_folder();
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(length, 0);
    self[length] = '\0';
    static const char *const files[] = { "m.safetensors", "c.safetensors", "m.checkpoint" };
    tn_state *state = tn_state_new();
    tn_state_set(state, "a.weight", tn_tensor_full(TN_SHAPE(4096, 2048), 1, TN_F32, NULL));
    tn_state_set(state, "b.weight", tn_tensor_full(TN_SHAPE(2048, 4096), 2, TN_F32, NULL));
    for (int i = 0; i < 3; i++) {
        int status = -1;
        saved(state, files[i]);
        pid_t child = fork();
        if (child == 0) {
            execl(self, "test_module_load", "measure", files[i], (char *)NULL);
            _exit(99);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d", files[i], status);
    }
    tn_state_drop(state);
    leave_folder();
}
END_TEST

START_TEST(running_out_of_memory_is_an_error_and_leaves_nothing)
{
    TN_SCOPE;
    in_folder();
    tn_module *from = parsed(NET);
    ck_assert_int_eq(tn_module_save(from, paths[0]), TN_OK);
    for (uint64_t n = 1;; n++) {
        tn_module *to = empty_module(true, NET);
        tn__memory_fail(n);
        tn_status status = tn_module_load(to, paths[0]);
        bool reached = tn__memory_fail(0) >= n;
        ck_assert((status == TN_OK) != (tn_error_text()[0] != '\0'));
        tn_error_clear();
        if (status == TN_OK)
            expect_same_modules(from, to);
        tn_module_drop(to);
        if (!reached)
            break;
    }
    tn_module_drop(from);
    leave_folder();
}
END_TEST

/* ---- modules from files with a spec ---------------------------------------------------------- */

/* Saves the state of a module with a spec as its metadata. */
static void save_with_spec(tn_module *module, const char *spec, const char *path)
{
    tn_state *state = tn_module_state(module);
    ck_assert_int_eq(tn_state_set_meta(state, "tenon.spec", spec), TN_OK);
    saved(state, path);
    tn_state_drop(state);
}

/* Saves a checkpoint of a training, with an optimizer, under the names of `tenon train`. */
static void save_training(tn_module *module, tn_value spec, const char *path)
{
    tn_checkpoint *checkpoint = tn_checkpoint_new();
    tn_optimizer *optimizer = tn_optimizer_new(module, "SGD(lr=0.1, momentum=0.9)");
    ck_assert_int_eq(tn_checkpoint_add_module(checkpoint, "model", module), TN_OK);
    ck_assert_int_eq(tn_checkpoint_add_optimizer(checkpoint, "optimizer", optimizer), TN_OK);
    ck_assert_int_eq(tn_checkpoint_set(checkpoint, "spec", spec), TN_OK);
    ck_assert_msg(tn_checkpoint_save(checkpoint, path) == TN_OK, "%s", tn_error_text());
    tn_optimizer_drop(optimizer);
    tn_checkpoint_drop(checkpoint);
}

static void expect_opens(const char *path, tn_module *as)
{
    tn_module *m = tn_module_from_file(path);
    ck_assert_msg(m != NULL, "%s: %s", path, tn_error_text());
    ck_assert_str_eq(tn_module_type(m), tn_module_type(as));
    expect_same_modules(as, m);
    tn_module_drop(m);
}

START_TEST(a_file_with_a_spec_is_a_module)
{
    TN_SCOPE;
    in_folder();
    tn_module *last = parsed(NET), *best = parsed(NET);
    ck_assert_int_eq(mkdir("run", 0777), 0);
    save_training(last, tn_value_string(NET), "run.checkpoint");
    expect_opens("run.checkpoint", last);
    save_training(last, tn_value_string(NET), "checkpoint.safetensors");
    expect_opens("checkpoint.safetensors", last);
    save_with_spec(last, NET, "run/model.safetensors");
    expect_opens("run/model.safetensors", last);
    expect_opens("run", last);
    /* of a run, the best weights come first */
    save_with_spec(best, NET, "run/best.safetensors");
    expect_opens("run", best);
    expect_opens("run/model.safetensors", last);
    /* in parts, the index has the spec */
    tn_state *state = tn_module_state(best);
    ck_assert_int_eq(tn_state_set_meta(state, "tenon.spec", NET), TN_OK);
    ck_assert_int_eq(tn_state_save_parts(state, "parts.safetensors.index.json", 20), TN_OK);
    expect_opens("parts.safetensors.index.json", best);
    tn_state_drop(state);
    tn_module_drop(last);
    tn_module_drop(best);
    leave_folder();
}
END_TEST

static void expect_no_module(const char *path, tn_status code, const char *words)
{
    ck_assert_ptr_null(tn_module_from_file(path));
    ck_assert_msg(strstr(tn_error_text(), path) != NULL, "%s", tn_error_text());
    expect_failure(code, words);
}

START_TEST(a_file_whose_spec_is_wrong_makes_no_module)
{
    TN_SCOPE;
    in_folder();
    tn_module *m = parsed(NET);
    ck_assert_int_eq(tn_module_save(m, "plain.safetensors"), TN_OK);
    expect_no_module("plain.safetensors", TN_ERR_FORMAT, "metadata \"tenon.spec\"");
    save_with_spec(m, "Sequential(Liner(3, 2))", "typo.safetensors");
    expect_no_module("typo.safetensors", TN_ERR_KEY, "Liner");
    save_with_spec(m, "Sequential(", "cut.safetensors");
    expect_no_module("cut.safetensors", TN_ERR_FORMAT, "Sequential");
    save_with_spec(m, "Sequential(fc=Linear(3, 4), bn=BatchNorm1d(2))", "size.safetensors");
    expect_no_module("size.safetensors", TN_ERR_RUNTIME, "size mismatch for fc.weight");
    save_with_spec(m, "Sequential(fc=Linear(3, 2))", "more.safetensors");
    expect_no_module("more.safetensors", TN_ERR_RUNTIME, "bn.weight");
    save_training(m, tn_value_int(3), "number.checkpoint");
    expect_no_module("number.checkpoint", TN_ERR_FORMAT, "stores a state, not a module");
    /* a spec, but no model beside it */
    tn_state *state = tn_state_new();
    ck_assert_int_eq(tn_state_set_value(state, "value.spec", tn_value_string(NET)), TN_OK);
    saved(state, "alone.checkpoint");
    expect_no_module("alone.checkpoint", TN_ERR_KEY, "model.");
    tn_state_drop(state);
    tn_module_drop(m);
    leave_folder();
}
END_TEST

START_TEST(a_module_from_a_file_survives_a_lack_of_memory)
{
    in_folder();
    tn_module *from = parsed("Linear(2, 1)");
    save_with_spec(from, "Linear(2, 1)", "n.safetensors");
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_module *to = tn_module_from_file(".");
        bool reached = tn__memory_fail(0) >= n;
        ck_assert((to != NULL) != (tn_error_text()[0] != '\0'));
        tn_error_clear();
        if (to != NULL)
            expect_same_modules(from, to);
        tn_module_drop(to);
        if (!reached)
            break;
    }
    tn_module_drop(from);
    leave_folder();
}
END_TEST

int main(int count, char **arguments)
{
    if (count == 3)
        return load_and_measure(arguments[2]);
    const TTest *const tests[] = {
        a_module_without_values_takes_the_tensors_of_the_file,
        a_module_of_an_unknown_type_takes_its_parameters_from_the_file,
        a_file_that_does_not_fit_changes_nothing,
        the_dtype_and_the_layout_of_the_module_stay,
        a_view_of_a_tensor_sees_the_values_that_are_loaded,
        one_name_of_a_tied_tensor_suffices,
        a_tie_takes_the_value_of_its_last_name_and_the_state_stays,
        tensors_that_only_the_file_ties_do_not_share_memory_in_the_module,
        members_of_a_pytorch_file_are_mapped,
        the_weights_are_in_memory_once,
        running_out_of_memory_is_an_error_and_leaves_nothing,
        a_file_with_a_spec_is_a_module,
        a_file_whose_spec_is_wrong_makes_no_module,
        a_module_from_a_file_survives_a_lack_of_memory,
        NULL,
    };
    return suite_run("module_load", tests);
}
