/* SPDX-License-Identifier: MIT
 *
 * A kind of contributions that the library does not know: this program has a list of kinds of its
 * own in place of lib/library/kind_list.c, and nothing else has to change. */
#include "core/plugin/kind.h"
#include "tests/base/suite.h"

enum { KIND = 4711, KNOWN_FLAG = 1 };

typedef struct greeting_def {
    tn_head head;
    const char *name;
    const char *help;
    const tn_option *options;
    uint64_t data_size;
    uint64_t flags;
    int (*greet)(void);
} greeting_def;

static int changes;

static void changed(void)
{
    changes++;
}

static const tn__kind_need needs[] = {
    TN__KIND_NEED(greeting_def, greet),
    { 0 },
};

static const tn__kind_member members[] = {
    TN__KIND_MEMBER(greeting_def, flags, KNOWN_FLAG),
    { 0 },
};

static const tn__kind greeting = {
    .type = "greeting_def",
    .word = "greeting",
    .kind = KIND,
    .pass = TN__PASS_NAMED,
    .size = sizeof(greeting_def),
    .least = sizeof(greeting_def),
    .name = offsetof(greeting_def, name),
    .help = offsetof(greeting_def, help),
    .options = offsetof(greeting_def, options),
    .data_size = offsetof(greeting_def, data_size),
    .members = members,
    .needs = needs,
    .changed = changed,
};
extern TN_HIDDEN const tn__kind tn__kind_backend, tn__kind_op, tn__kind_kernel, tn__kind_layer;
const tn__kind *const tn__kinds[] = { &tn__kind_backend, &tn__kind_op, &tn__kind_kernel,
                                      &tn__kind_layer,   &greeting,    NULL };

static int seven(void)
{
    return 7;
}

typedef struct loudness {
    int64_t times;
} loudness;
static const tn_option options[] = {
    TN_OPTION_INT(loudness, times, "1", "how often"),
    TN_OPTION_END,
};

static greeting_def hello(void)
{
    return (greeting_def){
        .head = { .size = sizeof(greeting_def),
                  .kind = KIND,
                  .abi_major = TN_ABI_MAJOR,
                  .abi_minor = TN_ABI_MINOR },
        .name = "Hello",
        .help = "says hello",
        .options = options,
        .data_size = sizeof(loudness),
        .greet = seven,
    };
}

START_TEST(a_kind_needs_a_row_and_nothing_else)
{
    greeting_def def = hello();
    ck_assert_int_eq(tn_registry_count(KIND), 0);
    ck_assert_int_eq(tn_register(&def), TN_OK);
    ck_assert_int_eq(changes, 1);
    ck_assert_int_eq(tn_registry_count(KIND), 1);
    ck_assert_str_eq(tn_registry_name(KIND, 0), "Hello");
    ck_assert_str_eq(tn_registry_plugin(KIND, "Hello"), "program");
    const greeting_def *found = (const greeting_def *)tn_registry_find(KIND, "Hello");
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(found->greet(), 7);
    ck_assert_str_eq(tn_contribution_help(&found->head), "says hello");
    ck_assert_ptr_eq(tn_contribution_options(&found->head), options);
    ck_assert_str_eq(tn_kind_name(KIND), "greeting");
    ck_assert_str_eq(tn_kind_name(TN_KIND_tn_backend_def), "device");
    ck_assert_ptr_null(tn_kind_name(KIND + 1));

    ck_assert_ptr_null(tn_registry_find(KIND, "Helo"));
    expect_failure(TN_ERR_KEY, "no plugin provides a greeting \"Helo\"; did you mean \"Hello\"?");
    ck_assert_int_eq(tn_register(&def), TN_ERR_REFUSED);
    expect_failure(TN_ERR_REFUSED, "greeting \"Hello\" of (program): refused");
    ck_assert_int_eq(tn_unregister(KIND, "Hello"), TN_OK);
    ck_assert_int_eq(changes, 2);
    ck_assert_int_eq(tn_registry_count(KIND), 0);
}
END_TEST

START_TEST(what_a_row_requires_is_checked)
{
    typedef struct louder {
        int64_t before, times;
    } louder;
    static const tn_option beyond[] = {
        TN_OPTION_INT(louder, times, "1", "how often"),
        TN_OPTION_END,
    };
    greeting_def def = hello();
    def.greet = NULL;
    ck_assert_int_eq(tn_register(&def), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "greeting_def \"Hello\": greet: it is missing");
    def = hello();
    def.flags = 6;
    ck_assert_int_eq(tn_register(&def), TN_ERR_VERSION);
    expect_failure(TN_ERR_VERSION, "greeting_def Hello: flags: bits 0x6 are unknown");
    def = hello();
    def.name = "no name";
    ck_assert_int_eq(tn_register(&def), TN_ERR_VALUE);
    def = hello();
    def.options = beyond;
    ck_assert_int_ne(tn_register(&def), TN_OK);
    def = hello();
    def.head.size = 40;
    ck_assert_int_ne(tn_register(&def), TN_OK);
    def = hello();
    def.head.kind = KIND + 1;
    ck_assert_int_eq(tn_register(&def), TN_ERR_REFUSED);
    expect_failure(TN_ERR_REFUSED, "contribution: unknown kind, got 4712");
    ck_assert_int_eq(changes, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_kind_needs_a_row_and_nothing_else,
        what_a_row_requires_is_checked,
        NULL,
    };
    return suite_run("kinds", tests);
}
