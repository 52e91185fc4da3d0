/* SPDX-License-Identifier: MIT
 *
 * Environment variables of the loader: the folders of plugins, their options, and the variables of
 * the program. */
#include "tests/plugin/logged.h"

#include <sys/wait.h>

enum { OK = TN_OUTCOME_OK, REFUSED = TN_OUTCOME_REFUSED, FAILED = TN_OUTCOME_FAILED };

static bool is_there(const char *name)
{
    tn_plugin_report report;
    int64_t count = tn_plugin_count();
    for (int64_t i = 0; i < count; i++)
        if (tn_plugin_report_at(i, &report) == TN_OK && !strcmp(report.file, path_of(name)))
            return true;
    return false;
}

START_TEST(files_are_taken_sorted_and_only_those_that_end_in_so_rule_14)
{
    tn_plugin_report report;
    int64_t at[3] = { -1, -1, -1 };
    const char *names[3] = { "a.so", "b.so", "c.so" };
    place("good", "counting", "older", "text", NULL);
    ck_assert_int_eq(rename(path_of("good.so"), path_of("b.so")), 0);
    ck_assert_int_eq(rename(path_of("counting.so"), path_of("c.so")), 0);
    ck_assert_int_eq(rename(path_of("older.so"), path_of("a.so")), 0);
    ck_assert_int_eq(rename(path_of("text.so"), path_of("text.so.bak")), 0);
    int64_t count = tn_plugin_count();
    for (int64_t i = 0; i < count; i++) {
        ck_assert_int_eq(tn_plugin_report_at(i, &report), TN_OK);
        for (int n = 0; n < 3; n++)
            if (!strcmp(report.file, path_of(names[n])))
                at[n] = i;
    }
    ck_assert(at[0] >= 0 && at[0] < at[1] && at[1] < at[2]);
    ck_assert(!is_there("text.so.bak"));
    expect_failure(tn_plugin_report_at(count, &report), TN_ERR_INDEX,
                   "load report: index: out of range");
    expect_failure(tn_plugin_report_at(-1, &report), TN_ERR_INDEX, "-1");
}
END_TEST

START_TEST(the_added_path_comes_after_and_keeps_the_first)
{
    place("good", NULL);
    ck_assert_int_eq(mkdir(path_of("more"), 0755), 0);
    copy_file(FIXTURES "good.so", path_of("more/good.so"));
    copy_file(FIXTURES "counting.so", path_of("more/counting.so"));
    setenv("TENON_PLUGIN_PATH_ADD", path_of("more"), 1);
    expect("more/counting.so", OK, TN_STAGE_VERSION, "");
    expect("more/good.so", REFUSED, TN_STAGE_VERSION, path_of("good.so"));
    expect_good_beside();
}
END_TEST

START_TEST(a_folder_that_is_not_there_and_a_relative_one_have_a_line_rule_14)
{
    char paths[3 * PATH_MAX];
    place("good", "counting", NULL);
    snprintf(paths, sizeof paths, "::%s:relative/folder:.:%s:%s:", path_of("absent"),
             path_of("good.so"), folder);
    setenv("TENON_PLUGIN_PATH", paths, 1);
    ck_assert_int_eq(chdir(folder), 0);
    expect("absent", FAILED, TN_STAGE_FOUND, "No such file");
    ck_assert_ptr_nonnull(strstr(logged, "/absent: the folder cannot be found: No such file"));
    expect("relative/folder", REFUSED, TN_STAGE_FOUND, "the current folder is never searched");
    expect(".", REFUSED, TN_STAGE_FOUND, "the current folder is never searched");
    expect("counting.so", OK, TN_STAGE_VERSION, "");
}
END_TEST

START_TEST(a_path_without_plugins_is_named_in_every_error)
{
    char words[PATH_MAX + 64];
    snprintf(words, sizeof words, "TENON_PLUGIN_PATH=\"%s\"", folder);
    if (tn_plugin_count() > 0)
        return; /* a static build has plugins of its own */
    ck_assert_ptr_null(tn_device_find("cpu"));
    expect_failure(TN_ERR_UNAVAILABLE, tn_error_code(), words);
    ck_assert_ptr_null(tn_op_find("add", 0));
    expect_failure(TN_ERR_NOT_IMPLEMENTED, tn_error_code(), words);
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "Linear"));
    expect_failure(TN_ERR_KEY, tn_error_code(), words);
}
END_TEST

START_TEST(a_device_that_nothing_gives_is_warned_about_when_another_is_taken)
{
    place("fails_to_open", NULL);
    setenv("TENON_DEVICE", "bord, board:x, board:7, board:1, board", 1);
    const tn_device *device = tn_default_device();
    ck_assert_msg(device != NULL, "%s", tn_error_text());
    ck_assert_str_eq(tn_device_name(device), "board:0");
    ck_assert_ptr_nonnull(strstr(logged, "new tensors are on board:0; in the list "));
    ck_assert_ptr_nonnull(
        strstr(logged, "device \"bord\": does not exist; did you mean \"board\"?"));
    ck_assert_ptr_nonnull(strstr(logged, "wrong name, got \"board:x\""));
    ck_assert_ptr_nonnull(
        strstr(logged, "device \"board:7\": does not exist; the 2 devices of type \"board\" are "
                       "\"board:0\" to "));
    /* board:1 exists but cannot be opened. The list is not wrong there, so the line about the list
     * does not contain the failure. */
    char *first = strstr(logged, "in the list ");
    *strchr(first, '\n') = 0;
    ck_assert_ptr_null(strstr(first, "noise"));
}
END_TEST

START_TEST(a_list_of_known_devices_is_not_warned_about)
{
    place("fails_to_open", NULL);
    setenv("TENON_DEVICE", "board:1,board", 1);
    ck_assert_str_eq(tn_device_name(tn_default_device()), "board:0");
    ck_assert_ptr_null(strstr(logged, "in the list "));
}
END_TEST

/* Calls a kernel that writes beyond its output, which the checked boundary reports. */
static tn_status overrun(void)
{
    tn_tensor *out = NULL, *in = tn_tensor_empty(TN_SHAPE(5), TN_F32, tn_device_find("probe"));
    const tn_op *op = tn_op_find("test_overruns", 0);
    return in && op ? tn_op_call(op, &in, 1, NULL, &out, 1) : TN_ERR_RUNTIME;
}

START_TEST(the_word_of_the_checked_boundary_is_yes_or_no)
{
    static const char *const words[] = { "1", "true", "ON", "0", "False", "off" };
    int count = 6;
#if TN_BUILD_ASAN
    count = 3; /* where nothing checks, the sanitizer ends the process */
#endif
    place("misbehaving", NULL);
    for (int i = 0; i < count; i++) {
        int status = -1;
        setenv("TENON_CHECK", words[i], 1);
        pid_t child = fork();
        if (!child)
            _exit(overrun());
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status), "TENON_CHECK=%s", words[i]);
        ck_assert_msg(WEXITSTATUS(status) == (i < 3 ? TN_ERR_ASSERT : TN_OK), "TENON_CHECK=%s: %d",
                      words[i], WEXITSTATUS(status));
    }
}
END_TEST

START_TEST(another_word_for_the_checked_boundary_is_an_error)
{
    place("good", NULL);
    setenv("TENON_CHECK", "yse", 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_plugin_count(), -1);
        expect_failure(TN_ERR_VALUE, tn_error_code(),
                       "TENON_CHECK: wrong value, got \"yse\"; expected 0, 1, false, true, off or "
                       "on");
    }
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "GoodLayer"));
    expect_failure(TN_ERR_VALUE, tn_error_code(), "TENON_CHECK: wrong value");
}
END_TEST

START_TEST(a_fallback_that_is_no_device_is_warned_about)
{
    place("fails_to_open", NULL);
    setenv("TENON_FALLBACK", "bord:0", 1);
    ck_assert_int_ge(tn_plugin_count(), 1);
    ck_assert_str_eq(logged,
                     "TENON_FALLBACK=\"bord:0\" is neither error nor a device that a plugin "
                     "provides; did you mean \"board\"?\n");
}
END_TEST

START_TEST(a_fallback_that_is_a_device_is_not_warned_about)
{
    place("fails_to_open", NULL);
    setenv("TENON_FALLBACK", "board:0", 1);
    ck_assert_int_ge(tn_plugin_count(), 1);
    ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(a_number_of_threads_beyond_the_limit_is_warned_about)
{
    setenv("TENON_NUM_THREADS", "5000", 1);
    ck_assert_int_ge(tn_num_threads(), 1);
    ck_assert_ptr_nonnull(
        strstr(logged, "TENON_NUM_THREADS=\"5000\" is not an integer from 1 to 256"));
}
END_TEST

START_TEST(kernels_that_nothing_calls_are_told_until_what_they_are_for_comes)
{
    ck_assert_int_eq(mkdir(path_of("aside"), 0755), 0);
    copy_file(FIXTURES "late_operator.so", path_of("aside/late_operator.so"));
    place("idle_kernels", "fails_to_open", NULL);
    const char *all = "3 kernels never run: "
                      "tn_future, because operator \"test_present\" has no revision 7 (the newest "
                      "is 1); "
                      "tn_early, because no plugin provides the operator \"test_later\"; "
                      "tn_elsewhere, because no plugin provides the device type \"bord\"";
    expect("idle_kernels.so", OK, TN_STAGE_VERSION, all);
    ck_assert_ptr_nonnull(strstr(logged, all));
    ck_assert_int_eq(line_of("idle_kernels.so").contributions, 5);
    ck_assert_int_eq(line_of("idle_kernels.so").refused, 0);
    ck_assert_int_eq(tn_plugin_load(path_of("aside/late_operator.so")), TN_OK);
    ck_assert_ptr_null(strstr(line_of("idle_kernels.so").reason, "tn_early"));
    expect("idle_kernels.so", OK, TN_STAGE_VERSION, "2 kernels never run: tn_future, ");
    char where[200];
    ck_assert_int_gt(tn_op_route(tn_op_find("test_later", 0), "board", TN_F32, where, sizeof where),
                     0);
    ck_assert_ptr_nonnull(strstr(where, "kernel tn_early"));
}
END_TEST

START_TEST(options_have_their_defaults)
{
    place("options", NULL);
    ck_assert_int_eq(tn_plugin_activate("org.tenon.test.options"), TN_OK);
    ck_assert_str_eq(logged, "beta 1.5 label none depth 3 sizes 2\n");
}
END_TEST

START_TEST(options_come_from_variables_of_the_plugins_name)
{
    place("options", NULL);
    setenv("TENON_OPTIONS_BETA", "-2.5e-1", 1);
    setenv("TENON_OPTIONS_LABEL", "a, \"b\" and 100% (c", 1);
    setenv("TENON_OPTIONS_SIZES", "(3, 4, 5)", 1);
    ck_assert_int_eq(tn_plugin_activate("org.tenon.test.options"), TN_OK);
    ck_assert_str_eq(logged, "beta -0.25 label a, \"b\" and 100% (c depth 3 sizes 3\n");
    ck_assert_str_eq(tn_env_get("TENON_OPTIONS_BETA"), "-2.5e-1");
}
END_TEST

START_TEST(a_value_that_is_not_accepted_refuses_the_plugin)
{
    place("good", "options", NULL);
    setenv("TENON_OPTIONS_DEPTH", "deep", 1);
    expect("options.so", REFUSED, TN_STAGE_VERSION, "depth");
    expect("options.so", REFUSED, TN_STAGE_VERSION, "TENON_OPTIONS_DEPTH: option \"depth\"");
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "Optioned"));
    tn_error_clear();
    expect_good_beside();
}
END_TEST

START_TEST(a_value_that_is_malformed_or_two_refuses_the_plugin)
{
    place("good", "options", NULL);
    setenv("TENON_OPTIONS_BETA", "1, depth=2", 1);
    expect("options.so", REFUSED, TN_STAGE_VERSION, "expected one");
    expect_good_beside();
}
END_TEST

START_TEST(a_variable_that_nobody_reads_is_warned_about)
{
    place("options", NULL);
    setenv("TENON_OPTIONS_BETTA", "1", 1);
    setenv("TENON_TEST_OF_SOMETHING", "1", 1);
    ck_assert_int_ge(tn_plugin_count(), 1);
    ck_assert_ptr_nonnull(strstr(logged, "TENON_OPTIONS_BETTA is unknown"));
    ck_assert_ptr_nonnull(strstr(logged, "nearest: TENON_OPTIONS_BETA"));
    ck_assert_ptr_null(strstr(logged, "TENON_TEST"));
    ck_assert_ptr_null(strstr(logged, "TENON_PLUGIN_PATH is"));
}
END_TEST

START_TEST(a_wrong_word_for_the_arithmetic_is_warned_about)
{
    place("good", NULL);
    setenv("TENON_MATH", "wild", 1);
    ck_assert_int_ge(tn_plugin_count(), 1);
    ck_assert_ptr_nonnull(strstr(logged, "TENON_MATH=\"wild\" is unknown; expected exact, default "
                                         "or fast"));
}
END_TEST

START_TEST(one_file_can_be_loaded_by_path)
{
    ck_assert_int_eq(mkdir(path_of("aside"), 0755), 0);
    copy_file(FIXTURES "good.so", path_of("aside/good.so"));
    copy_file(FIXTURES "text.so", path_of("aside/text.so"));
    copy_file(FIXTURES "needs_good.so", path_of("aside/needs_good.so"));
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "GoodLayer"));
    tn_error_clear();
    expect_failure(tn_plugin_load(path_of("aside/text.so")), TN_ERR_FORMAT, "FAILED at dlopen");
    expect_failure(tn_plugin_load(path_of("aside/absent.so")), TN_ERR_IO, "No such file");
    ck_assert_int_eq(tn_plugin_load(path_of("aside/good.so")), TN_OK);
    ck_assert_int_eq(tn_plugin_load(path_of("aside/good.so")), TN_OK);
    ck_assert_int_eq(tn_plugin_load(path_of("aside/needs_good.so")), TN_OK);
    expect("aside/good.so", OK, TN_STAGE_VERSION, "");
    ck_assert_ptr_nonnull(tn_registry_find(TN_KIND_tn_layer_def, "GoodLayer"));
}
END_TEST

START_TEST(the_nearest_name_and_the_report_are_in_the_error)
{
    place("good", "cycle_a", NULL);
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "GoodLair"));
    expect_failure(TN_ERR_KEY, TN_ERR_KEY, "did you mean \"GoodLayer\"?");
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "cycle_a"));
    expect_failure(TN_ERR_KEY, TN_ERR_KEY,
                   "REFUSED at version: requires the plugin \"org.tenon.test.cycle_b\"");
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_format_def, "x"));
    expect_failure(TN_ERR_KEY, TN_ERR_KEY, "file format");
}
END_TEST

static tn_tensor *forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

START_TEST(a_program_registers_like_a_plugin)
{
    static const tn_layer_def own = { TN_HEAD(tn_layer_def), .name = "Own", .forward = forward };
    static const tn_layer_def taken = { TN_HEAD(tn_layer_def), .name = "GoodLayer",
                                        .forward = forward };
    static const tn_layer_def empty = { TN_HEAD(tn_layer_def), .name = "Empty" };
    place("good", NULL);
    ck_assert_int_eq(tn_register(&own), TN_OK);
    expect_failure(tn_register(&own), TN_ERR_REFUSED, "(program)");
    expect_failure(tn_register(&taken), TN_ERR_REFUSED, path_of("good.so"));
    expect_failure(tn_register(&empty), TN_ERR_VALUE, "forward or call: it is missing");
    expect_failure(tn_register(NULL), TN_ERR_VALUE, "NULL");
    ck_assert_str_eq(tn_registry_plugin(TN_KIND_tn_layer_def, "Own"), "program");
    ck_assert_int_eq(line_of("(program)").contributions, 1);
    ck_assert_int_eq(line_of("(program)").active, 1);
    ck_assert_str_eq(line_of("(program)").version, tn_version());
    ck_assert_str_eq(line_of("(program)").help, "registered by this program");
}
END_TEST

START_TEST(the_checked_boundary_names_plugin_function_and_argument_rule_12)
{
    place("careless", NULL);
    setenv("TENON_CHECK", "1", 1);
    expect_failure(
        tn_plugin_activate("org.tenon.test.careless"), TN_ERR_REFUSED,
        "checked boundary: plugin \"org.tenon.test.careless\" called tn_dtype_parse, argument "
        "out: it is NULL");
}
END_TEST

START_TEST(shutdown_deactivates_once_and_says_so_afterwards_rule_16)
{
    place("counting", "good", NULL);
    ck_assert_int_eq(tn_plugin_activate("org.tenon.test.counting"), TN_OK);
    ck_assert_int_eq(tn_plugin_activate("org.tenon.test.counting"), TN_OK);
    tn_shutdown();
    tn_shutdown();
    ck_assert_str_eq(logged, "activated\ndeactivated\n");
    expect_failure(tn_plugin_activate("org.tenon.test.counting"), TN_ERR_RUNTIME,
                   "the library was shut down: tn_shutdown deactivated the plugin");
    ck_assert_ptr_nonnull(tn_registry_find(TN_KIND_tn_layer_def, "GoodLayer"));
}
END_TEST

START_TEST(what_is_required_comes_first_and_goes_last_rule_0)
{
    place("above_counting", "counting", NULL);
    expect("counting.so", OK, TN_STAGE_VERSION, "");
    ck_assert_str_eq(tn_registry_plugin(TN_KIND_tn_layer_def, "Counted"),
                     "org.tenon.test.counting");
    expect("above_counting.so", OK, TN_STAGE_VERSION, path_of("counting.so"));
    ck_assert_int_eq(tn_plugin_activate("org.tenon.test.above_counting"), TN_OK);
    tn_shutdown();
    ck_assert_str_eq(logged, "activated\nabove activated\nabove deactivated\ndeactivated\n");
}
END_TEST

static tn_tensor *twice(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_add(input, input);
}

START_TEST(an_observer_hears_nothing_before_its_plugin_is_activated_rule_1)
{
    static const tn_layer_def layer = { TN_HEAD(tn_layer_def), .name = "Twice", .forward = twice };
    place("observing", "observing_in_vain", NULL);
    setenv("TENON_PLUGIN_PATH_ADD", TN_TEST_BUILDDIR "/plugins/.libs", 1);
    ck_assert_int_eq(tn_register(&layer), TN_OK);
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2), 1.0, TN_F32, NULL);
    expect("observing.so", OK, TN_STAGE_VERSION, "");
    tn_module *module = tn_module_new("Twice()");
    logged[0] = 0;
    ck_assert_ptr_nonnull(tn_module_call(module, x));
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    ck_assert_ptr_nonnull(strstr(logged, "activated\n"));
    ck_assert_ptr_nonnull(strstr(logged, "1 calls Twice\n1 begins add\n1 ends 7\n1 called 8\n"));
    ck_assert_ptr_null(strstr(logged, "\n0 "));
    ck_assert_ptr_null(strstr(logged, "memory before"));
    expect("observing.so", OK, TN_STAGE_ACTIVATE, "");
    /* The other one is reported and warned about once, and has no other effect. */
    expect("observing_in_vain.so", TN_OUTCOME_NOT_APPLICABLE, TN_STAGE_ACTIVATE, "trace file");
    char *warning = strstr(logged, "the observer \"observing_in_vain\" is not called: ");
    ck_assert_ptr_nonnull(warning);
    ck_assert_ptr_nonnull(strstr(warning, "there is no trace file of 100% to write to"));
    ck_assert_ptr_null(strstr(warning + 1, "the observer \"observing_in_vain"));
    logged[0] = 0;
    ck_assert_ptr_nonnull(tn_add(x, x));
    ck_assert_str_eq(logged, "1 begins add\n1 ends 7\n");
    tn_module_drop(module);
    tn_shutdown();
}
END_TEST

START_TEST(an_observer_too_many_is_refused_law_5)
{
    static tn_observer_def many[17];
    static char names[17][24];
    for (int i = 0; i < 17; i++) {
        snprintf(names[i], sizeof names[i], "test.observer%d", i);
        many[i] = (tn_observer_def){ TN_HEAD(tn_observer_def), .name = names[i] };
        if (i < 16)
            ck_assert_int_eq(tn_register(&many[i]), TN_OK);
    }
    expect_failure(tn_register(&many[16]), TN_ERR_REFUSED,
                   "too many observers; expected at most 16");
}
END_TEST

START_TEST(threads_of_openmp_that_a_plugin_does_not_declare_are_warned_about_rule_13)
{
    place("openmp", "openmp_said", NULL);
    expect("openmp.so", OK, TN_STAGE_VERSION, "");
    expect("openmp_said.so", OK, TN_STAGE_VERSION, "");
    ck_assert_ptr_nonnull(strstr(logged, "plugin \"org.tenon.test.openmp\" ("));
    ck_assert_ptr_nonnull(strstr(logged, "set TN_PLUGIN_OWN_THREADS"));
    ck_assert_ptr_null(strstr(logged, "openmp_said"));
}
END_TEST

/* Two OpenMP runtimes compete for the cores. Two BLAS libraries that were opened privately do not
 * disturb each other, and every program that uses NumPy has two, so the message has the level info.
 */
START_TEST(two_runtimes_of_openmp_are_warned_about_once_and_both_named_rule_13)
{
    place("runtimes_a", NULL);
    ck_assert_int_ge(tn_plugin_count(), 1);
    expect("runtimes_a.so", OK, TN_STAGE_VERSION, "");
    ck_assert_ptr_null(strstr(logged, "runtimes are in this process"));
    ck_assert_int_eq(tn_plugin_load(FIXTURES "runtimes_b.so"), TN_OK);
    char *openmp = strstr(logged, "two OpenMP runtimes are in this process, ");
    ck_assert_ptr_nonnull(openmp);
    ck_assert_ptr_nonnull(strstr(openmp, "/lib/libgomp.so.1"));
    ck_assert_ptr_nonnull(strstr(openmp, "/lib/libomp.so.5"));
    ck_assert_int_eq(tn_plugin_activate("org.tenon.test.runtimes_b"), TN_OK);
    ck_assert_ptr_null(strstr(openmp + 1, "two OpenMP"));
    ck_assert_ptr_null(strstr(logged, "BLAS"));
}
END_TEST

START_TEST(two_blas_runtimes_are_told_at_level_info)
{
    setenv("TENON_LOG", "info", 1);
    place("runtimes_a", NULL);
    ck_assert_int_ge(tn_plugin_count(), 1);
    ck_assert_int_eq(tn_plugin_load(FIXTURES "runtimes_b.so"), TN_OK);
    char *blas = strstr(logged, "two BLAS runtimes are in this process, ");
    ck_assert_ptr_nonnull(blas);
    ck_assert_ptr_nonnull(strstr(blas, "/lib/libopenblas.so.0"));
    ck_assert_ptr_nonnull(strstr(blas, "/lib/libblis.so.4"));
    ck_assert_ptr_null(strstr(blas + 1, "two BLAS"));
}
END_TEST

static Suite *environment(void)
{
    Suite *suite = suite_create("environment of plugins");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up_log, take_down);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, files_are_taken_sorted_and_only_those_that_end_in_so_rule_14);
    tcase_add_test(all, the_added_path_comes_after_and_keeps_the_first);
    tcase_add_test(all, a_folder_that_is_not_there_and_a_relative_one_have_a_line_rule_14);
    tcase_add_test(all, a_path_without_plugins_is_named_in_every_error);
    tcase_add_test(all, a_device_that_nothing_gives_is_warned_about_when_another_is_taken);
    tcase_add_test(all, a_list_of_known_devices_is_not_warned_about);
    tcase_add_test(all, the_word_of_the_checked_boundary_is_yes_or_no);
    tcase_add_test(all, another_word_for_the_checked_boundary_is_an_error);
    tcase_add_test(all, a_fallback_that_is_no_device_is_warned_about);
    tcase_add_test(all, a_fallback_that_is_a_device_is_not_warned_about);
    tcase_add_test(all, a_number_of_threads_beyond_the_limit_is_warned_about);
    tcase_add_test(all, kernels_that_nothing_calls_are_told_until_what_they_are_for_comes);
    tcase_add_test(all, options_have_their_defaults);
    tcase_add_test(all, options_come_from_variables_of_the_plugins_name);
    tcase_add_test(all, a_value_that_is_not_accepted_refuses_the_plugin);
    tcase_add_test(all, a_value_that_is_malformed_or_two_refuses_the_plugin);
    tcase_add_test(all, a_variable_that_nobody_reads_is_warned_about);
    tcase_add_test(all, a_wrong_word_for_the_arithmetic_is_warned_about);
    tcase_add_test(all, one_file_can_be_loaded_by_path);
    tcase_add_test(all, the_nearest_name_and_the_report_are_in_the_error);
    tcase_add_test(all, a_program_registers_like_a_plugin);
    tcase_add_test(all, the_checked_boundary_names_plugin_function_and_argument_rule_12);
    tcase_add_test(all, shutdown_deactivates_once_and_says_so_afterwards_rule_16);
    tcase_add_test(all, what_is_required_comes_first_and_goes_last_rule_0);
    tcase_add_test(all, an_observer_hears_nothing_before_its_plugin_is_activated_rule_1);
    tcase_add_test(all, an_observer_too_many_is_refused_law_5);
    tcase_add_test(all, threads_of_openmp_that_a_plugin_does_not_declare_are_warned_about_rule_13);
    tcase_add_test(all, two_runtimes_of_openmp_are_warned_about_once_and_both_named_rule_13);
    tcase_add_test(all, two_blas_runtimes_are_told_at_level_info);
    suite_add_tcase(suite, all);
    return suite;
}

int main(void)
{
    return run_suite(environment());
}
