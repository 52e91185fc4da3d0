/* SPDX-License-Identifier: MIT
 *
 * Every kind of bad plugin file: outcome, stage and reason in the load report, and that all other
 * plugins are loaded. */
#include "tests/plugin/suite.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>

enum {
    OK = TN_OUTCOME_OK,
    NA = TN_OUTCOME_NOT_APPLICABLE,
    REFUSED = TN_OUTCOME_REFUSED,
    FAILED = TN_OUTCOME_FAILED
};

/* Takes the place of the C library's. Reading a folder fails when `entries_left` are read; -1:
 * never. */
static int entries_left = -1;

TN_ATTR(visibility("default")) struct dirent *readdir(DIR *open)
{
    struct dirent *(*next)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    if (entries_left != 0) {
        entries_left -= entries_left > 0;
        return next(open);
    }
    errno = EIO;
    return NULL;
}

START_TEST(a_folder_that_is_not_read_to_its_end_is_told_rule_18)
{
    place("good", NULL);
    entries_left = 0;
    ck_assert_int_ge(tn_plugin_count(), 0);
    expect(folder, FAILED, TN_STAGE_READABLE,
           "the folder cannot be read to its end: Input/output error");
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "GoodLayer"));
    tn_error_clear();
}
END_TEST

START_TEST(a_good_plugin_is_asked_and_not_activated_rule_1)
{
    place("good", NULL);
    tn_plugin_report report = line_of("good.so");
    ck_assert_str_eq(report.id, "org.tenon.test.good");
    ck_assert_str_eq(report.version, "1.2.0");
    ck_assert_int_eq(report.contributions, 1);
    ck_assert_int_eq(report.refused, 0);
    ck_assert_int_eq(report.active, 0);
    expect_good_beside();
}
END_TEST

START_TEST(files_that_are_no_libraries_are_named_with_the_linkers_reason_rule_15)
{
    place("good", "text", "folder", "elf32", "cut", "empty", NULL);
    expect("text.so", FAILED, TN_STAGE_DLOPEN, "");
    ck_assert_ptr_nonnull(strstr(line_of("text.so").reason, "text.so: "));
    expect("folder.so", FAILED, TN_STAGE_FOUND, "got a folder");
    expect("elf32.so", REFUSED, TN_STAGE_DLOPEN, "compiled for another processor");
    expect("cut.so", FAILED, TN_STAGE_DLOPEN, "cut.so: ");
    expect("empty.so", FAILED, TN_STAGE_DLOPEN, "empty.so: ");
    expect_good_beside();
}
END_TEST

START_TEST(a_file_that_lost_its_end_does_not_end_the_process_rule_15)
{
    place("good", "torn", NULL);
    expect("torn.so", FAILED, TN_STAGE_DLOPEN, "the file is truncated: it has 4096 bytes");
    expect_good_beside();
}
END_TEST

START_TEST(an_unknown_name_is_told_in_whole_words)
{
    place("good", NULL);
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_init_def, "nowhere"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "no plugin provides an init \"nowhere\""));
    tn_error_clear();
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "Nowhere"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "no plugin provides a layer \"Nowhere\""));
    tn_error_clear();
}
END_TEST

START_TEST(a_file_without_the_symbol_is_told_so_rule_1)
{
    place("good", "nosymbol", NULL);
    expect("nosymbol.so", FAILED, TN_STAGE_SYMBOL, "symbol tn_plugin_query: missing");
    expect_good_beside();
}
END_TEST

START_TEST(a_symbol_that_is_data_is_told_so_rule_1)
{
    place("good", "query_is_data", NULL);
    expect("query_is_data.so", FAILED, TN_STAGE_SYMBOL,
           "symbol tn_plugin_query: it is data; expected a function");
    expect_good_beside();
}
END_TEST

START_TEST(numbers_of_contributions_that_cannot_be_are_told)
{
    place("good", "too_many", "some_too_many", "fewer_than_none", "null_list", "null_kernels",
          "fewer_kernels_than_none", NULL);
    expect("too_many.so", FAILED, TN_STAGE_QUERY,
           "tn_plugin: wrong, got 1099511627776 contributions; expected 0 to 65536");
    expect("some_too_many.so", FAILED, TN_STAGE_QUERY,
           "tn_plugin: wrong, got 60000 contributions; the memory at the pointer is shorter");
    expect("fewer_than_none.so", FAILED, TN_STAGE_QUERY,
           "tn_plugin: wrong, got -1 contributions; expected 0 to 65536");
    expect("null_list.so", FAILED, TN_STAGE_QUERY,
           "tn_plugin: wrong, got 3 contributions; the pointer is NULL");
    expect("null_kernels.so", FAILED, TN_STAGE_QUERY,
           "tn_plugin: wrong, got 3 kernels; the pointer is NULL");
    expect("fewer_kernels_than_none.so", FAILED, TN_STAGE_QUERY,
           "tn_plugin: wrong, got -1 kernels; expected 0 to 65536");
    expect_good_beside();
}
END_TEST

START_TEST(a_plugin_that_closes_itself_stays_mapped_rule_16)
{
    place("good", "closes_itself", NULL);
    expect("closes_itself.so", OK, TN_STAGE_VERSION, "");
    ck_assert_int_eq(tn_plugin_activate("org.tenon.test.closes_itself"), TN_OK);
    const tn_layer_def *layer = (const tn_layer_def *)tn_registry_find(TN_KIND_tn_layer_def,
                                                                       "ClosesItself");
    ck_assert_ptr_nonnull(layer);
    ck_assert_ptr_null(layer->forward(NULL, NULL));
    expect_good_beside();
}
END_TEST

START_TEST(a_symbol_that_lives_in_a_dependency_does_not_count_rule_2)
{
    place("good", "borrowed", NULL);
    expect("borrowed.so", FAILED, TN_STAGE_SYMBOL,
           "libdependency.so.1, a library that the file depends on");
    expect_good_beside();
}
END_TEST

START_TEST(an_unresolved_function_and_a_missing_library_are_named_rule_15)
{
    place("good", "unresolved", "missing_library", NULL);
    expect("unresolved.so", FAILED, TN_STAGE_DLOPEN, "function_that_nobody_has");
    expect("missing_library.so", FAILED, TN_STAGE_DLOPEN, "libtenon_test_gone.so.1");
    expect_good_beside();
}
END_TEST

START_TEST(an_older_plugin_loads_and_what_it_lacks_is_null_rules_4_and_6)
{
    place("good", "older", NULL);
    expect("older.so", OK, TN_STAGE_VERSION, "");
    ck_assert_int_eq(line_of("older.so").contributions, 1);
    const tn_layer_def *layer = (const tn_layer_def *)tn_registry_find(TN_KIND_tn_layer_def,
                                                                       "OldLayer");
    ck_assert_ptr_nonnull(layer);
    ck_assert_ptr_nonnull(layer->forward);
    ck_assert(layer->call == NULL && layer->repr == NULL);
    ck_assert_uint_eq(layer->head.size, sizeof(tn_layer_def));
    expect_good_beside();
}
END_TEST

START_TEST(a_newer_plugin_is_refused_with_words_rules_4_and_6)
{
    place("good", "newer", "newer_major", NULL);
    expect("newer.so", REFUSED, TN_STAGE_VERSION, "a newer Tenon would load it");
    expect("newer_major.so", REFUSED, TN_STAGE_VERSION, "a newer Tenon would load it");
    expect_good_beside();
}
END_TEST

START_TEST(a_short_struct_is_refused_rule_4)
{
    place("good", "short", "long", "no_plugin", NULL);
    expect("short.so", REFUSED, TN_STAGE_VERSION, "expected at least");
    expect("long.so", REFUSED, TN_STAGE_VERSION, "expected in ABI");
    expect("no_plugin.so", FAILED, TN_STAGE_QUERY, "TN_HEAD(tn_plugin)");
    expect_good_beside();
}
END_TEST

START_TEST(a_short_contribution_is_refused_alone_rule_4)
{
    place("good", "short_layer", NULL);
    expect("short_layer.so", OK, TN_STAGE_VERSION, "3 contributions were refused: tn_layer_def: ");
    tn_plugin_report report = line_of("short_layer.so");
    ck_assert_int_eq(report.contributions, 1);
    ck_assert_int_eq(report.refused, 3);
    ck_assert_ptr_nonnull(strstr(report.reason, "forward or call: it is missing"));
    ck_assert_ptr_nonnull(tn_registry_find(TN_KIND_tn_layer_def, "Whole"));
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "Cut"));
    tn_error_clear();
    expect_good_beside();
}
END_TEST

START_TEST(interfaces_are_negotiated_by_id_and_revision_rules_6_and_8)
{
    place("good", "future_interface", "unknown_interface", "other_draft", NULL);
    expect("future_interface.so", REFUSED, TN_STAGE_VERSION,
           "requires revision 7 to 9 of the interface tenon.base");
    expect("unknown_interface.so", REFUSED, TN_STAGE_VERSION, "org.example.telepathy");
    expect("other_draft.so", REFUSED, TN_STAGE_VERSION, "another draft of interface tenon.base");
    expect_good_beside();
}
END_TEST

static const void *no_interface(const char *id, uint32_t min, uint32_t max, uint32_t *revision,
                                uint32_t *size)
{
    (void)id, (void)min, (void)max, (void)revision;
    *size = 0;
    return NULL;
}

static const void *short_interface(const char *id, uint32_t min, uint32_t max, uint32_t *revision,
                                   uint32_t *size)
{
    (void)id, (void)min, (void)max;
    *revision = 0;
    *size = 16;
    return short_interface;
}

/* Calls the query of a plugin, which must fail with this code. Returns the message. */
static const char *refusal(tn_plugin_query_fn *query, const tn_host_info *host, uint32_t size,
                           tn_status code)
{
    static tn_error error;
    tn_plugin_info info = { TN_HEAD(tn_plugin_info) };

    info.head.size = size;
    ck_assert_int_eq(query(host, &info, &error), code);
    ck_assert_int_eq(error.code, code);
    ck_assert_str_eq(error.plugin, "org.tenon.test.good");
    return error.message;
}

START_TEST(a_plugin_says_which_numbers_of_a_host_it_refuses_rule_4)
{
    tn_host_info host = { TN_HEAD(tn_host_info), .version = "7.1", .interface_find = no_interface };
    const uint32_t size = sizeof(tn_plugin_info);
    tn_plugin_query_fn *query;
    char expected[128];
    void *plugin;

    place("good", NULL);
    plugin = dlopen(path_of("good.so"), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(plugin != NULL, "%s", dlerror());
    *(void **)&query = dlsym(plugin, TN_PLUGIN_SYMBOL);
    ck_assert_ptr_nonnull(*(void **)&query);
    snprintf(expected, sizeof expected,
             "tn_plugin_info is too short, got 24 bytes; expected at "
             "least %zu",
             offsetof(tn_plugin_info, reserved));
    ck_assert_ptr_nonnull(strstr(refusal(query, &host, 24, TN_ERR_VERSION), expected));
    ck_assert_ptr_nonnull(strstr(refusal(query, &host, size, TN_ERR_VERSION),
                                 "compiled for, of interface tenon.base"));
    host.interface_find = short_interface;
    ck_assert_ptr_nonnull(strstr(refusal(query, &host, size, TN_ERR_VERSION),
                                 "interface tenon.base, got 16 bytes; expected "));
    host.head.abi_major = 65535;
    snprintf(expected, sizeof expected, "got 65535 from version 7.1; expected %d", TN_ABI_MAJOR);
    ck_assert_ptr_nonnull(strstr(refusal(query, &host, size, TN_ERR_VERSION), expected));
    host.interface_find = NULL;
    ck_assert_ptr_nonnull(strstr(refusal(query, &host, size, TN_ERR_VALUE), "not a Tenon host"));
    dlclose(plugin);
}
END_TEST

START_TEST(build_facts_that_do_not_fit_are_refused_rule_7)
{
    place("good", "sanitized", "other_bits", NULL);
    expect("sanitized.so", REFUSED, TN_STAGE_VERSION, "memory sanitizer");
    expect("other_bits.so", REFUSED, TN_STAGE_VERSION, "pointers: wrong size, got 16 bits");
    expect_good_beside();
}
END_TEST

START_TEST(a_sanitizer_that_comes_too_late_is_refused_before_it_ends_the_process_law_4)
{
    struct stat at;
    place("good", NULL);
    if (stat(FIXTURES "asan.so", &at)) {
        printf("SKIP: this compiler makes no shared object with a sanitizer of its own\n");
        return;
    }
    place("asan", NULL);
#if TN_BUILD_ASAN
    expect("asan.so", OK, TN_STAGE_VERSION, "");
#else
    expect("asan.so", REFUSED, TN_STAGE_DLOPEN,
           "compiled with a sanitizer whose runtime (libasan.so");
#endif
    expect_good_beside();
}
END_TEST

/* Writes `machine` into the ELF header of a file. */
static void set_machine(const char *name, uint16_t machine)
{
    int fd = open(path_of(name), O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, &machine, sizeof machine, offsetof(ElfW(Ehdr), e_machine)),
                     sizeof machine);
    close(fd);
}

START_TEST(a_file_for_another_processor_is_refused_with_both_names_rule_15)
{
#ifdef __aarch64__
    const uint16_t other = EM_X86_64;
    const char *words = "got x86-64, 64 bits; expected aarch64, 64 bits";
#else
    const uint16_t other = EM_AARCH64;
    const char *words = "got aarch64, 64 bits; expected";
#endif
    place("good", "counting", "gives", NULL);
    set_machine("counting.so", other);
    set_machine("gives.so", 9999);
    expect("counting.so", REFUSED, TN_STAGE_DLOPEN, words);
    expect("gives.so", REFUSED, TN_STAGE_DLOPEN, "got machine 9999");
    expect_good_beside();
}
END_TEST

START_TEST(an_unreadable_file_is_named_with_the_reason_rule_18)
{
    place("good", NULL);
    ck_assert_int_eq(symlink("nowhere", path_of("broken.so")), 0);
    expect("broken.so", FAILED, TN_STAGE_FOUND, "No such file");
    expect_good_beside();
}
END_TEST

START_TEST(a_second_copy_through_a_symlink_is_reported_rule_14)
{
    place("good", NULL);
    ck_assert_int_eq(symlink("good.so", path_of("twin.so")), 0);
    ck_assert_int_eq(link(path_of("good.so"), path_of("hard.so")), 0);
    expect("twin.so", REFUSED, TN_STAGE_FOUND, "same file as");
    expect("hard.so", REFUSED, TN_STAGE_FOUND, path_of("good.so"));
    expect_good_beside();
}
END_TEST

START_TEST(a_failing_query_is_reported_with_its_words_rule_18)
{
    place("good", "failing_query", "wordless_query", "modest_query", NULL);
    expect("failing_query.so", FAILED, TN_STAGE_QUERY, "wrong phase: 100% of it");
    expect("wordless_query.so", FAILED, TN_STAGE_QUERY, "failed without a message");
    expect("modest_query.so", NA, TN_STAGE_QUERY, "not for this processor");
    expect_good_beside();
}
END_TEST

START_TEST(a_missing_requirement_is_named_rule_0)
{
    place("good", "needs_good", "needs_absent", "needs_newer", "needs_older", NULL);
    expect("needs_good.so", OK, TN_STAGE_VERSION, "");
    expect("needs_absent.so", REFUSED, TN_STAGE_VERSION,
           "requires the plugin \"org.nowhere.absent\", which was not found");
    expect("needs_newer.so", REFUSED, TN_STAGE_VERSION, "in a version from 1.10;");
    expect("needs_older.so", REFUSED, TN_STAGE_VERSION, "in a version from 1.0 below 1.2;");
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "NeedsAbsent"));
    tn_error_clear();
    expect_good_beside();
}
END_TEST

START_TEST(a_cycle_of_requirements_is_refused_rule_0)
{
    place("good", "cycle_a", "cycle_b", NULL);
    expect("cycle_a.so", REFUSED, TN_STAGE_VERSION, "cycle");
    expect("cycle_b.so", REFUSED, TN_STAGE_VERSION, "cycle");
    expect_good_beside();
}
END_TEST

START_TEST(a_taken_name_is_refused_and_both_files_are_named_rule_22)
{
    place("good", "taken_name", NULL);
    expect("taken_name.so", OK, TN_STAGE_VERSION, path_of("good.so"));
    ck_assert_ptr_nonnull(strstr(line_of("taken_name.so").reason, path_of("taken_name.so")));
    ck_assert_ptr_nonnull(tn_registry_find(TN_KIND_tn_layer_def, "NotTaken"));
    ck_assert_str_eq(tn_registry_plugin(TN_KIND_tn_layer_def, "GoodLayer"), "org.tenon.test.good");
    expect_good_beside();
}
END_TEST

START_TEST(a_taken_id_is_refused_and_the_first_file_is_named)
{
    place("good", "taken_id", "bad_id", NULL);
    expect("taken_id.so", REFUSED, TN_STAGE_VERSION, path_of("good.so"));
    expect("bad_id.so", FAILED, TN_STAGE_QUERY, "org.example.name");
    expect_good_beside();
}
END_TEST

START_TEST(an_unknown_kind_of_contribution_is_refused_alone)
{
    place("good", "unknown_kind", "bad_kernels", NULL);
    expect("unknown_kind.so", OK, TN_STAGE_VERSION, "unknown kind, got 60");
    ck_assert_int_eq(line_of("unknown_kind.so").refused, 2);
    ck_assert_ptr_nonnull(tn_registry_find(TN_KIND_tn_layer_def, "BesideUnknown"));
    expect("bad_kernels.so", OK, TN_STAGE_VERSION, "kernel_size, got 8");
    expect_good_beside();
}
END_TEST

START_TEST(a_failing_activation_is_told_at_every_use_rule_18)
{
    place("good", "failing_activation", "wordless_activation", "not_applicable", "needs_failing",
          NULL);
    expect_good_beside();
    expect("failing_activation.so", OK, TN_STAGE_VERSION, "");
    for (int i = 0; i < 2; i++)
        expect_failure(tn_plugin_activate("org.tenon.test.failing_activation"), TN_ERR_IO,
                       "FAILED at activate: the licence file of the accelerator is unreadable");
    expect("failing_activation.so", FAILED, TN_STAGE_ACTIVATE, "licence file");
    expect_failure(tn_plugin_activate("org.tenon.test.wordless_activation"), TN_ERR_RUNTIME,
                   "recorded no message");
    expect_failure(tn_plugin_activate("org.tenon.test.not_applicable"), TN_ERR_UNAVAILABLE,
                   "no accelerator in this machine");
    expect("not_applicable.so", NA, TN_STAGE_ACTIVATE, "no accelerator in this machine");
    expect_failure(tn_plugin_activate("org.tenon.test.needs_failing"), TN_ERR_IO,
                   "requires the plugin \"org.tenon.test.failing_activation\"");
    expect("needs_failing.so", FAILED, TN_STAGE_ACTIVATE, "requires the plugin");
    expect_failure(tn_plugin_activate("org.tenon.test.faling_activation"), TN_ERR_KEY,
                   "org.tenon.test.failing_activation");
    expect_good_beside();
}
END_TEST

START_TEST(an_activation_may_use_what_its_plugin_gives)
{
    place("needs_itself", NULL);
    ck_assert_int_eq(tn_plugin_activate("org.tenon.test.needs_itself"), TN_OK);
    expect("needs_itself.so", OK, TN_STAGE_ACTIVATE, "");
    ck_assert_int_eq(line_of("needs_itself.so").active, 1);
}
END_TEST

static Suite *loader(void)
{
    Suite *suite = suite_create("loader");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, set_up, take_down);
    tcase_set_timeout(files, 60);
    tcase_add_test(files, a_folder_that_is_not_read_to_its_end_is_told_rule_18);
    tcase_add_test(files, a_good_plugin_is_asked_and_not_activated_rule_1);
    tcase_add_test(files, files_that_are_no_libraries_are_named_with_the_linkers_reason_rule_15);
    tcase_add_test(files, a_file_that_lost_its_end_does_not_end_the_process_rule_15);
    tcase_add_test(files, an_unknown_name_is_told_in_whole_words);
    tcase_add_test(files, a_file_without_the_symbol_is_told_so_rule_1);
    tcase_add_test(files, a_symbol_that_is_data_is_told_so_rule_1);
    tcase_add_test(files, numbers_of_contributions_that_cannot_be_are_told);
    tcase_add_test(files, a_plugin_that_closes_itself_stays_mapped_rule_16);
    tcase_add_test(files, a_symbol_that_lives_in_a_dependency_does_not_count_rule_2);
    tcase_add_test(files, an_unresolved_function_and_a_missing_library_are_named_rule_15);
    tcase_add_test(files, an_older_plugin_loads_and_what_it_lacks_is_null_rules_4_and_6);
    tcase_add_test(files, a_newer_plugin_is_refused_with_words_rules_4_and_6);
    tcase_add_test(files, a_short_struct_is_refused_rule_4);
    tcase_add_test(files, a_short_contribution_is_refused_alone_rule_4);
    tcase_add_test(files, interfaces_are_negotiated_by_id_and_revision_rules_6_and_8);
    tcase_add_test(files, a_plugin_says_which_numbers_of_a_host_it_refuses_rule_4);
    tcase_add_test(files, build_facts_that_do_not_fit_are_refused_rule_7);
    tcase_add_test(files,
                   a_sanitizer_that_comes_too_late_is_refused_before_it_ends_the_process_law_4);
    tcase_add_test(files, a_file_for_another_processor_is_refused_with_both_names_rule_15);
    tcase_add_test(files, an_unreadable_file_is_named_with_the_reason_rule_18);
    tcase_add_test(files, a_second_copy_through_a_symlink_is_reported_rule_14);
    tcase_add_test(files, a_failing_query_is_reported_with_its_words_rule_18);
    tcase_add_test(files, a_missing_requirement_is_named_rule_0);
    tcase_add_test(files, a_cycle_of_requirements_is_refused_rule_0);
    tcase_add_test(files, a_taken_name_is_refused_and_both_files_are_named_rule_22);
    tcase_add_test(files, a_taken_id_is_refused_and_the_first_file_is_named);
    tcase_add_test(files, an_unknown_kind_of_contribution_is_refused_alone);
    tcase_add_test(files, a_failing_activation_is_told_at_every_use_rule_18);
    tcase_add_test(files, an_activation_may_use_what_its_plugin_gives);
    suite_add_tcase(suite, files);
    return suite;
}

int main(void)
{
    return run_suite(loader());
}
