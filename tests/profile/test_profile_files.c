/* SPDX-License-Identifier: MIT
 *
 * The files of a profile, and what happens when memory is short: the limit of the records, failing
 * allocations, files that cannot be written. */
#include "core/base/internal.h"
#include "tests/profile/json_checker.h"
#include "tests/profile/suite.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[256], path_[512];

static const char *path_of(const char *name)
{
    snprintf(path_, sizeof path_, "%s/%s", folder, name);
    return path_;
}

static void make_folder(void)
{
    const char *root = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/tenon-test-profile-XXXXXX", root != NULL ? root : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    rmdir(folder);
}

/* Reads a file and removes it. The caller frees the text. */
static char *read_file(const char *path)
{
    FILE *in = fopen(path, "re");
    char *text = calloc(1, 1 << 22);

    ck_assert_msg(in != NULL, "%s", path);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_lt(fread(text, 1, (1 << 22) - 1, in), (1 << 22) - 1);
    fclose(in);
    unlink(path);
    return text;
}

static int occurrences(const char *text, const char *piece)
{
    int count = 0;

    for (; (text = strstr(text, piece)) != NULL; text += strlen(piece))
        count++;
    return count;
}

/* ---- files ----------------------------------------------------------------------------------- */

START_TEST(the_trace_is_valid_json_whatever_the_names_prf_007)
{
    TN_SCOPE;
    static const char *const names[] = { "quote \" and \\",
                                         "line\nbreak\ttab\x01",
                                         "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8d\xa9",
                                         "bad \xff\xc3( \xed\xa0\x80 \xc0\xaf",
                                         "<script>alert('&')</script>",
                                         "" };
    ok(tn_profile_start(NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ok(tn_range_begin(names[i]));
        ok(tn_backward(tn_sum(tn_exp(LEAF(1, 2)))));
        tn_range_end();
    }
    ok(tn_profile_stop());
    ok(tn_profile_write(path_of("trace.json")));
    char *text = read_file(path_of("trace.json"));
    ck_assert(json_is_valid(text));
    ck_assert_int_eq(occurrences(text, "\"traceEvents\":["), 1);
    ck_assert_int_eq(occurrences(text, "\"ph\":\"X\""), (int)totals().events);
    ck_assert_int_eq(occurrences(text, ",\"dur\":"), (int)totals().events);
    ck_assert_int_eq(occurrences(text, "\"quote \\\" and \\\\\""), 1);
    ck_assert_int_eq(occurrences(text, "\"line\\u000abreak\\u0009tab\\u0001\""), 1);
    ck_assert_int_eq(occurrences(text, names[2]), 1);
    /* each byte that is not UTF-8 is one U+FFFD */
    ck_assert_int_eq(occurrences(text, "bad \xef\xbf\xbd\xef\xbf\xbd( \xef\xbf\xbd\xef\xbf\xbd"
                                       "\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd"),
                     1);
    /* an arrow for each derivative of exp and of sum */
    ck_assert_int_eq(occurrences(text, "\"ph\":\"s\""), 12);
    ck_assert_int_eq(occurrences(text, "\"ph\":\"f\""), 12);
    ck_assert_int_gt(occurrences(text, "\"ph\":\"C\""), 0);
    free(text);

    ok(tn_profile_write(path_of("page.html")));
    text = read_file(path_of("page.html"));
    ck_assert_int_eq(occurrences(text, "<script>alert"), 0);
    ck_assert_int_gt(occurrences(text, "&lt;script&gt;alert"), 0);
    ck_assert_int_eq(occurrences(text, "http"), 0); /* refers to nothing else */
    free(text);
    ok(tn_profile_write(path_of("tables.txt")));
    text = read_file(path_of("tables.txt"));
    ck_assert_int_gt(occurrences(text, "exp"), 0);
    ck_assert_int_gt(occurrences(text, "of ceiling"), 0);
    free(text);
    TN_PROVES("PRF-007");
}
END_TEST

START_TEST(an_empty_profile_can_be_written)
{
    char table[256];
    ok(tn_profile_start(NULL));
    ok(tn_profile_stop());
    ck_assert_int_eq(tn_profile_rows(TN_PROFILE_BY_MODULE, TN_PROFILE_SORT_SELF, NULL, 0), 0);
    ck_assert_int_gt(tn_profile_table(TN_PROFILE_BY_MODULE, TN_PROFILE_SORT_SELF, 0, table, 256),
                     0);
    ck_assert_double_gt(totals().ceiling, 0); /* the first table measures it */
    ok(tn_profile_write(path_of("trace.json")));
    char *text = read_file(path_of("trace.json"));
    ck_assert(json_is_valid(text));
    free(text);
    ok(tn_profile_write(path_of("page.html")));
    free(read_file(path_of("page.html")));
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_an_error)
{
    tn_profile_event event;
    ok(tn_profile_start(NULL));
    ok(tn_range_begin("r"));
    tn_range_end();
    ok(tn_profile_stop());
    refused(tn_profile_write(path_of("none/trace.json")), TN_ERR_IO, "cannot be written");
    refused(tn_profile_write(path_of("trace.xml")), TN_ERR_VALUE,
            "trace.xml\"; expected NAME.json, NAME.html or NAME.txt");
    refused(tn_profile_write(path_of(".json") + strlen(folder) + 1), TN_ERR_VALUE,
            "got \".json\"; expected NAME.json, NAME.html or NAME.txt");
    refused(tn_profile_write(NULL), TN_ERR_VALUE, "unknown kind of file, got None");
    if (access("/dev/full", W_OK) == 0) {
        ok(symlink("/dev/full", path_of("full.json")) == 0 ? TN_OK : TN_ERR_IO);
        refused(tn_profile_write(path_of("full.json")), TN_ERR_IO, "No space left");
        ck_assert_int_eq(access("/dev/full", W_OK), 0);
        unlink(path_of("full.json"));
    }
    ck_assert_int_eq(find_event("r", 0, &event), 0);
    refused(tn_profile_event_at(1, &event), TN_ERR_INDEX, "got 1; expected 0 or more, below 1");
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

START_TEST(records_beyond_the_limit_are_counted)
{
    tn_profile_options options = { .size = sizeof options, .limit = 1 << 20 };
    ok(tn_profile_start(&options));
    for (int i = 0; i < 20000; i++) {
        ok(tn_range_begin("r"));
        tn_range_end();
    }
    ok(tn_profile_stop());
    ck_assert_int_gt(totals().dropped, 0);
    ck_assert_int_gt(totals().events, 0);
    ck_assert_int_eq(totals().events + totals().dropped, 20000);
    ck_assert_int_lt(totals().events * (int64_t)sizeof(tn_profile_event), 4 << 20);
    options.limit = 1000; /* not even one thread fits, unless it has its buffer already */
    ok(tn_profile_start(&options));
    ok(tn_range_begin("r"));
    tn_range_end();
    ok(tn_profile_stop());
    ck_assert_int_eq(totals().events, 0);
    ck_assert_int_eq(totals().dropped, 1);
    ok(tn_profile_start(NULL)); /* and again with room */
    ok(tn_range_begin("r"));
    tn_range_end();
    ok(tn_profile_stop());
    ck_assert_int_eq(totals().dropped, 0);
    ck_assert_int_eq(totals().events, 1);
}
END_TEST

START_TEST(ranges_that_are_too_deep_are_counted)
{
    tn_profile_event event;
    ok(tn_profile_start(NULL));
    for (int i = 0; i < 1000; i++)
        ok(tn_range_begin("deep"));
    for (int i = 0; i < 1000; i++)
        tn_range_end();
    ok(tn_range_begin("flat"));
    tn_range_end();
    ok(tn_profile_stop());
    ck_assert_int_eq(totals().events, 256 + 1);
    ck_assert_int_eq(totals().dropped, 1000 - 256);
    ck_assert_int_eq(totals().unbalanced, 0);
    ck_assert_int_ge(find_event("flat", 0, &event), 0);
    ck_assert_int_eq(event.depth, 0);
}
END_TEST

/* Profiles a little and writes all files. Returns the first failure. */
static tn_status whole_profile(void)
{
    TN_SCOPE;
    char table[512];
    tn_status status = tn_profile_start(NULL);
    if (status != TN_OK)
        return status;
    if (tn_range_begin("r") == TN_OK)
        tn_range_end();
    status = tn_profile_stop();
    if (status != TN_OK)
        return status;
    for (uint32_t group = 0; group < 3; group++)
        if (tn_profile_table(group, TN_PROFILE_SORT_SELF, 0, table, sizeof table) < 0)
            return tn_error_code();
    status = tn_profile_write(path_of("m.json"));
    return status == TN_OK ? tn_profile_write(path_of("m.html")) : status;
}

START_TEST(each_allocation_fails_in_turn_law_4)
{
    int64_t failed = 0;
    ok(whole_profile());
    for (uint64_t nth = 1; nth < 1000; nth++) {
        tn__memory_fail(nth);
        tn_status status = whole_profile();
        bool met = tn__memory_fail(0) >= nth;
        if (!met)
            break;
        failed++;
        /* a record that is lost is no failure of the program */
        ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "%s", tn_error_text());
        tn_error_clear();
    }
    ck_assert_int_gt(failed, 8);
    ok(whole_profile());
    ck_assert_int_eq(totals().events, 1);
    unlink(path_of("m.json"));
    unlink(path_of("m.html"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile files");
    TCase *tests = tcase_create("profile files");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, the_trace_is_valid_json_whatever_the_names_prf_007);
    tcase_add_test(tests, an_empty_profile_can_be_written);
    tcase_add_test(tests, a_file_that_cannot_be_written_is_an_error);
    tcase_add_test(tests, records_beyond_the_limit_are_counted);
    tcase_add_test(tests, ranges_that_are_too_deep_are_counted);
    tcase_add_test(tests, each_allocation_fails_in_turn_law_4);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
