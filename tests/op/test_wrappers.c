/* SPDX-License-Identifier: MIT
 *
 * Every wrapper of <tenon/ops.h> with NULL for each of its pointers: the call fails, and says why
 * unless the pointer is an input, which an earlier call may have failed to make. */
#include "tests/op/suite.h"

static tn_tensor *x, *out, *const *list;
static const int64_t one[] = { 1 };
static const double half[] = { 0.5 };
static int64_t calls, failures;

static void begin(void)
{
    tn_error_clear();
    out = NULL;
}

/* `may`: the pointer is a text, which can be None. */
static void expect(bool failed, bool may, const char *what)
{
    ck_assert_msg(failed || may, "%s: NULL is taken", what);
    ck_assert_msg(!failed || tn_failed(), "%s: NULL is refused without a message", what);
    ck_assert_msg(out == NULL || !failed, "%s: a failed call leaves a result", what);
    calls++;
    failures += failed;
}

#include "tests/op/wrapper_calls.h"

START_TEST(every_wrapper_refuses_null_for_each_of_its_pointers)
{
    for (size_t i = 0; i < sizeof every_wrapper / sizeof *every_wrapper; i++) {
        TN_SCOPE;
        tn_tensor *pair[2];

        x = pair[0] = pair[1] = tn_tensor_full(TN_SHAPE(2, 3), 1.0, TN_F32, NULL);
        list = pair;
        every_wrapper[i]();
    }
    ck_assert_int_ge(failures, calls - 20); /* few texts may be None */
    tn_error_clear();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wrappers");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, every_wrapper_refuses_null_for_each_of_its_pointers);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
