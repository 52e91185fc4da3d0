/* SPDX-License-Identifier: MIT
 *
 * Whole states in files: order, versions, values and ties in safetensors, mapped files, a module
 * that another process loads. Names of rows are those of the behaviour specification. */
#include "tests/io/states.h"

#include <sys/wait.h>

static const char *const paths[] = { "s.safetensors", "s.checkpoint" };

START_TEST(a_state_survives_its_file_whole)
{
    TN_SCOPE;
    in_folder();
    for (int rich = 0; rich < 2; rich++) {
        tn_state *state = sample(rich != 0);
        for (int i = 0; i < 2; i++) {
            saved(state, paths[i]);
            for (uint32_t flags = 0; flags < 4; flags += flags == 1 ? 2 : 1) {
                tn_state *got = loaded_as(paths[i], flags);
                expect_same_state(state, got);
                tn_state_drop(got);
            }
        }
        tn_state_drop(state);
    }
    TN_PROVES("SER-001", "SER-003");
    leave_folder();
}
END_TEST

START_TEST(ties_are_ties_again_and_stay_two_where_their_values_differ)
{
    TN_SCOPE;
    in_folder();
    for (int i = 0; i < 2; i++) {
        tn_state *state = sample(true);
        saved(state, paths[i]);
        tn_state *got = loaded_as(paths[i], 0);
        ck_assert(tn_tensor_shares_storage(entry(got, "z.weight"), entry(got, "a.weight")));
        ck_assert(!tn_tensor_shares_storage(entry(got, "z.weight"), entry(got, "double")));
        ck_assert_int_eq(tn_state_meta_count(got), 1);
        /* Written again it is the same file. */
        saved(got, "again.safetensors");
        saved(state, "once.safetensors");
        size_t a, b;
        char *one = slurp("once.safetensors", &a), *two = slurp("again.safetensors", &b);
        ck_assert_uint_eq(a, b);
        ck_assert_int_eq(memcmp(one, two, a), 0);
        free(one);
        free(two);
        tn_state_drop(got);
        tn_state_drop(state);
    }
    /* One of the two was changed in the file: they are no longer tied. */
    tn_state *state = tn_state_new();
    tn_tensor *t = tn_tensor_full(TN_SHAPE(2), 1, TN_F32, NULL);
    tn_state_set(state, "a", t);
    tn_state_set(state, "b", t);
    saved(state, "t.safetensors");
    size_t size;
    char *bytes = slurp("t.safetensors", &size);
    bytes[size - 1] ^= 1;
    FILE *file = fopen("t.safetensors", "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
    free(bytes);
    tn_state *got = loaded_as("t.safetensors", 0);
    ck_assert(!tn_tensor_shares_storage(entry(got, "a"), entry(got, "b")));
    tn_state_drop(got);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

START_TEST(versions_are_in_the_file_and_unknown_in_a_plain_one)
{
    TN_SCOPE;
    in_folder();
    tn_module *m = tn_module_parse("Sequential(bn=BatchNorm1d(2))");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_module_save(m, paths[i]), TN_OK);
        tn_state *state = loaded_as(paths[i], 0);
        ck_assert_int_eq(tn_state_version(state, "bn"), 2);
        ck_assert_int_eq(tn_state_version(state, ""), 1);
        tn_state_remove(state, "bn.num_batches_tracked");
        ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
        tn_error_clear();
        tn_state_drop(state);
    }
    tn_state *plain = loaded_as(TN_TEST_SRCDIR "/tests/io/files/python.safetensors", 0);
    ck_assert_int_eq(tn_state_version_count(plain), 0);
    ck_assert_int_eq(tn_state_version(plain, ""), -1);
    TN_PROVES("VER-005");
    tn_state_drop(plain);
    tn_module_drop(m);
    leave_folder();
}
END_TEST

START_TEST(a_file_goes_to_the_device_that_is_there)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = sample(true);
    for (int i = 0; i < 2; i++) {
        saved(state, paths[i]);
        tn_device_begin(tn_device_find("meta"));
        tn_state *got = loaded_as(paths[i], 0);
        tn_device_end();
        ck_assert_int_eq(tn_state_count(got), tn_state_count(state));
        ck_assert_str_eq(tn_device_name(tn_tensor_device(entry(got, "z.weight"))), "meta:0");
        ck_assert_int_eq(tn_tensor_size(entry(got, "z.weight"), 1), 3);
        ck_assert_int_eq(tn_state_save(got, "none.safetensors"), TN_ERR_VALUE);
        expect_failure(TN_ERR_VALUE, "no values to save");
        tn_state_drop(got);
    }
    ck_assert_ptr_null(tn_device_find("warp:3"));
    expect_failure(tn_error_last_code(), "warp");
    TN_PROVES("SER-004");
    tn_state_drop(state);
    leave_folder();
}
END_TEST

START_TEST(loading_and_saving_name_what_is_missing)
{
    tn_module *m = tn_module_parse("Linear(2, 2)");
    ck_assert_int_ne(tn_module_load(m, NULL), TN_OK);
    expect_failure(TN_ERR_RUNTIME, "tn_module_load: path: it is NULL");
    ck_assert_int_ne(tn_module_load(NULL, "weights.safetensors"), TN_OK);
    expect_failure(TN_ERR_RUNTIME, "tn_module_load: module: it is NULL");
    tn_module_drop(m);
}
END_TEST

START_TEST(no_file_runs_code)
{
    ck_assert_ptr_null(tn_state_load(TN_TEST_SRCDIR "/tests/io/files/refused-system.pt"));
    expect_failure(TN_ERR_REFUSED, "system");
    TN_PROVES("SER-007");
}
END_TEST

/* ---- texts that a file may claim ------------------------------------------------------------- */

static const char *const texts[] = {
    "",
    "x\n",
    "0\n",
    "0\na\n",
    "0\na\nint\n",
    "0\na\nint\nx\n",
    "0\na\nfloat\n1,5\n",
    "0\na\nbytes\nabc\n",
    "0\na\nbytes\nzz\n",
    "0\na\nlist\n99999999999\n",
    "0\na\nlist\n-1\n",
    "0\na\nlist\n2\nnone\n",
    "0\na\ntensor\nnot there\n",
    "0\na\nmodule\nx\n",
    "0\na\nstring\nno end",
    "0\na\nstring\nbad \\x escape\n",
    "0\na\nnone\n0\na\nnone\n",
    "-4\na\nnone\n",
    "0\na\na kind with a name that is long\n",
};

START_TEST(texts_that_nobody_wrote_are_refused_with_their_line)
{
    TN_SCOPE;
    in_folder();
    for (int i = 1; i < tn__countof(texts); i++) {
        const tn_format_def *format = (const tn_format_def *)tn_registry_find(TN_KIND_tn_format_def,
                                                                              "safetensors");
        ck_assert_ptr_nonnull(format);
        /* tn_state_save refuses this text, so the file is written without it. */
        tn_state *state = tn_state_new();
        tn_state_set_meta(state, "tenon.values", texts[i]);
        ck_assert_int_eq(tn_state_save(state, "x.safetensors"), TN_ERR_KEY);
        expect_failure(TN_ERR_KEY, "reserved");
        FILE *file = fopen("x.safetensors", "wb");
        char json[512], escaped[256] = "";
        for (const char *c = texts[i]; *c != '\0'; c++) {
            char one[3] = { *c, 0, 0 };
            strcat(escaped, *c == '\n' ? "\\n" : *c == '\\' ? "\\\\" : one);
        }
        uint64_t length = (uint64_t)snprintf(
            json, sizeof json, "{\"__metadata__\":{\"tenon.values\":\"%s\"}}", escaped);
        fwrite(&length, 8, 1, file);
        fwrite(json, 1, (size_t)length, file);
        fclose(file);
        tn_state_drop(state);
        ck_assert_msg(tn_state_load("x.safetensors") == NULL, "%d", i);
        expect_failure(TN_ERR_FORMAT, "x.safetensors: metadata tenon.values, line ");
    }
    leave_folder();
}
END_TEST

START_TEST(other_texts_of_tenon_are_kept_as_they_are)
{
    in_folder();
    for (int i = 0; i < 2; i++) {
        tn_state *state = tn_state_new(), *back;
        ck_assert_int_eq(tn_state_set_meta(state, "tenon.spec", "Linear(4, 2)"), TN_OK);
        ck_assert_int_eq(tn_state_set_value(state, "n", tn_value_int(7)), TN_OK);
        ck_assert_int_eq(tn_state_save(state, paths[i]), TN_OK);
        back = tn_state_load(paths[i]);
        ck_assert_ptr_nonnull(back);
        ck_assert_str_eq(tn_state_meta(back, "tenon.spec"), "Linear(4, 2)");
        ck_assert_int_eq(tn_state_meta_count(back), 1);
        ck_assert_int_eq(tn_state_value(back, 0).as.i, 7);
        tn_state_drop(back);
        tn_state_drop(state);
    }
    leave_folder();
}
END_TEST

START_TEST(what_no_file_can_hold_is_refused_by_name)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = tn_state_new();
    tn_module *m = tn_module_parse("ReLU()");
    tn_state_set_value(state, "m", (tn_value){ .kind = TN_VALUE_MODULE, .as = { .module = m } });
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_state_save(state, paths[i]), TN_ERR_TYPE);
        expect_failure(TN_ERR_TYPE, "entry \"m\":");
        ck_assert_int_ne(access(paths[i], F_OK), 0);
    }
    tn_state_set_value(state, "m", tn_value_int(1));
    ck_assert_int_eq(tn_state_save(state, "s.npy"), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "entry \"m\": wrong kind, got int; expected a tensor (format npy "
                                "stores nothing else)");
    tn_state_drop(state);
    tn_module_drop(m);
    leave_folder();
}
END_TEST

/* ---- mapped ---------------------------------------------------------------------------------- */

static tn_state *four_floats(void)
{
    static const float values[] = { 1, 2, 3, 4 };
    tn_state *state = tn_state_new();
    tn_state_set(state, "w", tn_tensor_from(values, TN_F32, TN_SHAPE(4)));
    return state;
}

START_TEST(a_mapped_file_is_written_to_in_this_process_only)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = four_floats();
    for (int i = 0; i < 2; i++) {
        saved(state, paths[i]);
        int64_t before = 0;
        tn_memory_stats stats;
        tn_device_memory(tn_default_device(), &stats);
        before = stats.requests;
        tn_state *got = loaded_as(paths[i], TN_FILE_MAP);
        tn_device_memory(tn_default_device(), &stats);
        ck_assert_int_eq(stats.requests, before); /* no memory was asked for */
        tn_tensor *w = tn_keep(entry(got, "w"));
        tn_state_drop(got);
        ck_assert_double_eq(tn_item(tn_sum(w)), 10);
        ck_assert_ptr_nonnull(tn_fill_(w, 7));
        ck_assert_double_eq(tn_item(tn_sum(w)), 28);
        tn_state *again = loaded_as(paths[i], 0);
        ck_assert_double_eq(tn_item(tn_sum(entry(again, "w"))), 10);
        tn_state_drop(again);
        /* The file may be replaced and removed meanwhile. */
        ck_assert_int_eq(unlink(paths[i]), 0);
        ck_assert_double_eq(tn_item(tn_sum(w)), 28);
        tn_tensor_drop(w);
    }
    tn_state_drop(state);
    leave_folder();
}
END_TEST

START_TEST(a_file_mapped_read_only_is_not_written_to)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = four_floats();
    for (int i = 0; i < 2; i++) {
        saved(state, paths[i]);
        tn_state *got = loaded_as(paths[i], TN_FILE_MAP | TN_FILE_READ_ONLY);
        ck_assert_double_eq(tn_item(tn_sum(entry(got, "w"))), 10);
        ck_assert_ptr_null(tn_fill_(entry(got, "w"), 7));
        expect_failure(TN_ERR_REFUSED, "read");
        tn_state_drop(got);
    }
    ck_assert_ptr_null(tn_state_load_as(paths[0], TN_FILE_READ_ONLY));
    expect_failure(TN_ERR_VALUE, "expected 0, TN_FILE_MAP (1)");
    tn_state_drop(state);
    leave_folder();
}
END_TEST

/* ---- another process ------------------------------------------------------------------------- */

#define NET "Sequential(fc1=Linear(4, 3), act=ReLU(), bn=BatchNorm1d(3), fc2=Linear(3, 2))"

/* Runs in a new process: builds the net, loads its state and calls it. Returns 0, or the number of
 * the step that failed. */
static int load_and_say(const char *path)
{
    char text[64];
    tn_module *net = tn_module_parse(NET);
    tn_state *state = tn_state_load(path);
    tn_load_report *report = tn_load_report_new();
    if (net == NULL || state == NULL ||
        tn_module_load_report(net, state, TN_LOAD_STRICT, report) != TN_OK)
        return 3;
    tn_load_report_text(report, text, sizeof text);
    if (strcmp(text, "<All keys matched successfully>") != 0)
        return 4;
    tn_module_eval(net);
    TN_SCOPE;
    tn_tensor *y = tn_module_call(net, tn_tensor_full(TN_SHAPE(1, 4), 1, TN_F32, NULL));
    int status = y != NULL && tn_item(tn_sum(y)) == 8 ? 0 : 5;
    tn_load_report_drop(report);
    tn_state_drop(state);
    tn_module_drop(net);
    return status;
}

START_TEST(a_new_process_builds_the_net_and_all_keys_match)
{
    TN_SCOPE;
    in_folder();
    tn_module *net = tn_module_parse(NET);
    tn_state *state = tn_module_state(net);
    for (int64_t i = 0; i < tn_state_count(state); i++)
        tn_fill_(tn_state_tensor(state, i), 0);
    tn_fill_(entry(state, "fc2.bias"), 4);
    tn_state_drop(state);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        char self[4096]; /* this program, and not valgrind, where that runs it */
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        ck_assert_int_gt(length, 0);
        self[length] = '\0';
        ck_assert_int_eq(tn_module_save(net, paths[i]), TN_OK);
        pid_t child = fork();
        if (child == 0) {
            execl(self, "test_states", "load", paths[i], (char *)NULL);
            _exit(99);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    }
    TN_PROVES("SER-008");
    tn_module_drop(net);
    leave_folder();
}
END_TEST

START_TEST(running_out_of_memory_is_an_error_and_leaves_nothing)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = sample(true);
    for (int i = 0; i < 2; i++) {
        for (uint64_t n = 1;; n++) {
            tn__memory_fail(n);
            tn_status status = tn_state_save(state, paths[i]);
            bool reached = tn__memory_fail(0) >= n;
            ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "%s", tn_error_text());
            tn_error_clear();
            if (!reached)
                break;
        }
        for (uint64_t n = 1;; n++) {
            tn__memory_fail(n);
            tn_state *got = tn_state_load_as(paths[i], n % 2 != 0 ? TN_FILE_MAP : 0);
            bool reached = tn__memory_fail(0) >= n;
            ck_assert(got != NULL || tn_failed());
            tn_error_clear();
            if (got != NULL)
                expect_same_state(state, got);
            tn_state_drop(got);
            if (!reached && n % 2 == 0)
                break;
        }
    }
    tn_state_drop(state);
    leave_folder();
}
END_TEST

int main(int count, char **arguments)
{
    if (count == 3)
        return load_and_say(arguments[2]);
    const TTest *const tests[] = {
        a_state_survives_its_file_whole,
        ties_are_ties_again_and_stay_two_where_their_values_differ,
        versions_are_in_the_file_and_unknown_in_a_plain_one,
        a_file_goes_to_the_device_that_is_there,
        loading_and_saving_name_what_is_missing,
        no_file_runs_code,
        texts_that_nobody_wrote_are_refused_with_their_line,
        other_texts_of_tenon_are_kept_as_they_are,
        what_no_file_can_hold_is_refused_by_name,
        a_mapped_file_is_written_to_in_this_process_only,
        a_file_mapped_read_only_is_not_written_to,
        a_new_process_builds_the_net_and_all_keys_match,
        running_out_of_memory_is_an_error_and_leaves_nothing,
        NULL,
    };
    return suite_run("states", tests);
}
