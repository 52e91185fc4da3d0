/* SPDX-License-Identifier: MIT
 *
 * Status names and the failures of a thread. */
#include "tests/base/suite.h"

START_TEST(every_status_has_its_name)
{
    ck_assert_str_eq(tn_status_name(TN_OK), "TN_OK");
    ck_assert_str_eq(tn_status_name(TN_ERR_VALUE), "TN_ERR_VALUE");
    ck_assert_str_eq(tn_status_name(TN_ERR_CANCELLED), "TN_ERR_CANCELLED");
    ck_assert_str_eq(tn_status_name(TN_ERR_COUNT), "TN_ERR_?");
    ck_assert_str_eq(tn_status_name(-1), "TN_ERR_?");
    for (tn_status code = 0; code < TN_ERR_COUNT; code++)
        ck_assert_int_eq(strncmp(tn_status_name(code), code ? "TN_ERR_" : "TN_OK", 5), 0);
}
END_TEST

START_TEST(texts_that_are_no_formats_are_taken_as_they_are)
{
    ck_assert_int_eq(tn_fail_text(TN_ERR_IO, 5, "100% of %s, %q and %n"), TN_ERR_IO);
    ck_assert_str_eq(tn_error_text(), "100% of %s, %q and %n");
    ck_assert_int_eq(tn_error_last()->native, 5);
    ck_assert_int_eq(tn_error_prefix_text("50%d: "), TN_ERR_IO);
    ck_assert_str_eq(tn_error_text(), "50%d: 100% of %s, %q and %n");
    tn_error_clear();
    ck_assert_int_eq(tn_fail_text(TN_ERR_IO, 0, NULL), TN_ERR_VALUE);
    tn_error_clear();
}
END_TEST

START_TEST(an_error_record_is_1024_bytes_and_frozen) /* rule 10 */
{
    ck_assert_uint_eq(sizeof(tn_error), 1024);
    ck_assert_uint_eq(offsetof(tn_error, native), 4);
    ck_assert_uint_eq(offsetof(tn_error, plugin), 8);
    ck_assert_uint_eq(offsetof(tn_error, message), 72);
}
END_TEST

START_TEST(the_thread_keeps_the_first_and_the_last_failure)
{
    tn_error_clear();
    ck_assert(!tn_failed());
    ck_assert_str_eq(tn_error_text(), "");
    ck_assert_int_eq(tn_error_code(), TN_OK);
    ck_assert_int_eq(tn_fail(TN_ERR_VALUE, "one %d", 1), TN_ERR_VALUE);
    ck_assert_int_eq(tn_fail_native(TN_ERR_IO, 13, "two"), TN_ERR_IO);
    ck_assert(tn_failed());
    ck_assert_str_eq(tn_error_text(), "one 1");
    ck_assert_int_eq(tn_error_code(), TN_ERR_VALUE);
    ck_assert_str_eq(tn_error_last()->message, "two");
    ck_assert_int_eq(tn_error_last()->native, 13);
    ck_assert_str_eq(tn_error_last()->plugin, "");

    tn_error out;
    ck_assert_int_eq(tn_error_take(&out), TN_ERR_VALUE);
    ck_assert_str_eq(out.message, "one 1");
    ck_assert(!tn_failed());
    ck_assert_str_eq(tn_error_last()->message, "two");
    ck_assert_int_eq(tn_error_take(NULL), TN_OK);
    tn_error_clear();
    ck_assert_int_eq(tn_error_last_code(), TN_OK);
}
END_TEST

START_TEST(a_mark_puts_back_what_was_held)
{
    tn_error_clear();
    uint64_t nothing = tn_error_mark();
    tn_fail(TN_ERR_KEY, "a");
    uint64_t one = tn_error_mark();
    tn_fail(TN_ERR_IO, "b");
    tn_error_restore(one);
    ck_assert_str_eq(tn_error_text(), "a");
    ck_assert_str_eq(tn_error_last()->message, "a");
    tn_error_restore(one); /* again changes nothing */
    ck_assert_str_eq(tn_error_text(), "a");
    tn_error_restore(nothing);
    ck_assert(!tn_failed());
    ck_assert_int_eq(tn_error_last_code(), TN_OK);
}
END_TEST

START_TEST(a_failure_after_a_clear_inside_a_mark_is_forgotten)
{
    tn_error_clear();
    tn_fail(TN_ERR_KEY, "old");
    uint64_t mark = tn_error_mark();
    tn_error_clear();
    tn_fail(TN_ERR_IO, "new");
    tn_error_restore(mark);
    ck_assert(!tn_failed());
}
END_TEST

START_TEST(a_prefix_goes_in_front_of_the_last_and_of_the_first_if_it_is_the_same)
{
    tn_error_clear();
    ck_assert_int_eq(tn_error_prefix("nothing: "), TN_OK);
    ck_assert(!tn_failed());
    tn_fail(TN_ERR_VALUE, "x");
    ck_assert_int_eq(tn_error_prefix("layer %q: ", "fc1"), TN_ERR_VALUE);
    ck_assert_str_eq(tn_error_text(), "layer \"fc1\": x");
    tn_fail(TN_ERR_IO, "y");
    ck_assert_int_eq(tn_error_prefix("z: "), TN_ERR_IO);
    ck_assert_str_eq(tn_error_text(), "layer \"fc1\": x");
    ck_assert_str_eq(tn_error_last()->message, "z: y");
    tn_error_clear();
}
END_TEST

START_TEST(a_long_message_is_cut_at_a_whole_character_with_dots)
{
    char text[2001];

    tn_error_clear();
    for (int i = 0; i < 1000; i++)
        memcpy(text + 2 * i, "\xc3\xa4", 2); /* a letter of two bytes */
    text[2000] = 0;
    for (int shift = 0; shift < 2; shift++) {
        tn_fail(TN_ERR_VALUE, "%s%s", shift ? "x" : "", text);
        const char *message = tn_error_last()->message;
        size_t length = strlen(message);
        /* a record has room for 951 bytes; the cut may be a few bytes before that */
        ck_assert_uint_le(length, 951);
        ck_assert_uint_ge(length, 948);
        ck_assert_str_eq(message + length - 3, "...");
        ck_assert_uint_eq((length - 3 - (size_t)shift) % 2, 0);
    }
    tn_error_clear();
}
END_TEST

START_TEST(percent_signs_in_names_are_only_text)
{
    tn_error_clear();
    tn_fail(TN_ERR_KEY, "no layer %q", "100%s%n%d");
    ck_assert_str_eq(tn_error_text(), "no layer \"100%s%n%d\"");
    tn_error_prefix("%s: ", "%s%n");
    ck_assert_str_eq(tn_error_text(), "%s%n: no layer \"100%s%n%d\"");
    tn_error_clear();
    tn_fail(TN_ERR_KEY, "a bad format %k stays readable");
    ck_assert_str_eq(tn_error_text(), "a bad format %k stays readable");
    tn_error_clear();
}
END_TEST

START_TEST(the_record_names_the_plugin_whose_code_failed)
{
    tn_error_clear();
    const char *before = tn__error_plugin("org.example.swish");
    tn_fail(TN_ERR_RUNTIME, "x");
    ck_assert_str_eq(tn__error_plugin(before), "org.example.swish");
    ck_assert_str_eq(tn_error_last()->plugin, "org.example.swish");
    tn_fail(TN_ERR_RUNTIME, "y");
    ck_assert_str_eq(tn_error_last()->plugin, "");
    tn_error_clear();
}
END_TEST

START_TEST(a_plugin_that_fails_without_words_gets_some)
{
    tn_error_clear();
    ck_assert_int_eq(tn__error_status_of(TN_OK, "it"), TN_OK);
    ck_assert_int_eq(tn__error_status_of(TN_ERR_IO, "layer \"x\""), TN_ERR_IO);
    ck_assert_str_eq(tn_error_text(), "layer \"x\": failed with TN_ERR_IO and recorded no message");
    tn_error_clear();
    const char *before = tn__error_plugin("p");
    tn_fail(TN_ERR_IO, "own words");
    tn__error_plugin(before);
    ck_assert_int_eq(tn__error_status_of(TN_ERR_IO, "it"), TN_ERR_IO);
    ck_assert_str_eq(tn_error_text(), "own words");
    tn_error_clear();
    ck_assert_int_eq(tn__error_status_of(-7, "kernel k"), TN_ERR_RUNTIME);
    ck_assert_str_eq(tn_error_text(), "kernel k: returned an unknown status, got -7; expected 0 to "
                                      "19");
    tn_error_clear();
}
END_TEST

START_TEST(a_null_input_fails_with_the_code_of_what_failed_before)
{
    tn_error_clear();
    tn_fail(TN_ERR_MEMORY, "before");
    uint64_t count = tn__error_count();
    ck_assert_int_eq(tn_error_null("x"), TN_ERR_MEMORY);
    ck_assert_uint_eq(tn__error_count(), count);
    tn_error_clear();
    ck_assert_int_eq(tn_error_null("the input"), TN_ERR_RUNTIME);
    ck_assert_uint_eq(tn__error_count(), count + 1);
    expect_failure(TN_ERR_RUNTIME, "the input: it is NULL");
}
END_TEST

START_TEST(a_failure_takes_no_memory)
{
    tn_error_clear();
    tn__memory_fail(1);
    tn_fail(TN_ERR_VALUE, "words %s %g %q", "and", 0.5, "more");
    tn_error_prefix("in front: ");
    ck_assert_uint_eq(tn__memory_fail(0), 0);
    ck_assert_str_eq(tn_error_text(), "in front: words and 0.5 \"more\"");
    tn_error_clear();
}
END_TEST

static void *other_thread(void *user)
{
    int *failed = user;

    *failed = tn_failed();
    tn_fail(TN_ERR_KEY, "in the other thread");
    return NULL;
}

START_TEST(failures_belong_to_their_thread)
{
    pthread_t thread;
    int failed = -1;

    tn_error_clear();
    tn_fail(TN_ERR_VALUE, "here");
    ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, &failed), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(failed, 0);
    ck_assert_str_eq(tn_error_last()->message, "here");
    tn_error_clear();
}
END_TEST

static bool no(void *user, const char *what, uint64_t done, uint64_t total)
{
    tn_snprint(user, 64, "%s %llu/%llu", what, (unsigned long long)done, (unsigned long long)total);
    return false;
}

START_TEST(the_progress_callback_can_cancel)
{
    char seen[64] = "";

    tn_error_clear();
    ck_assert_int_eq(tn_progress_report("bytes", 1, 2), TN_OK);
    tn_set_progress(no, seen);
    ck_assert_int_eq(tn_progress_report("bytes", 5, 10), TN_ERR_CANCELLED);
    ck_assert_str_eq(seen, "bytes 5/10");
    expect_failure(TN_ERR_CANCELLED,
                   "bytes: cancelled by the progress callback of the program, at 5 of 10");
    ck_assert_int_eq(tn_progress_report("samples", 5, 0), TN_ERR_CANCELLED);
    expect_failure(TN_ERR_CANCELLED,
                   "samples: cancelled by the progress callback of the program, at 5");
    tn_set_progress(NULL, NULL);
    ck_assert_int_eq(tn_progress_report("bytes", 5, 10), TN_OK);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_status_has_its_name,
        texts_that_are_no_formats_are_taken_as_they_are,
        an_error_record_is_1024_bytes_and_frozen,
        the_thread_keeps_the_first_and_the_last_failure,
        a_mark_puts_back_what_was_held,
        a_failure_after_a_clear_inside_a_mark_is_forgotten,
        a_prefix_goes_in_front_of_the_last_and_of_the_first_if_it_is_the_same,
        a_long_message_is_cut_at_a_whole_character_with_dots,
        percent_signs_in_names_are_only_text,
        the_record_names_the_plugin_whose_code_failed,
        a_plugin_that_fails_without_words_gets_some,
        a_null_input_fails_with_the_code_of_what_failed_before,
        a_failure_takes_no_memory,
        failures_belong_to_their_thread,
        the_progress_callback_can_cancel,
        NULL,
    };

    return suite_run("error", tests);
}
