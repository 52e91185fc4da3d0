/* SPDX-License-Identifier: MIT
 *
 * The cost of building modules, in steps (names compared, modules visited), and the limits of what
 * one call may build. */
#include "core/module/internal.h"
#include "tests/module/toy_layers.h"

static tn_module *list_of(int64_t count)
{
    tn_module *list = tn_module_new("ModuleList()");

    ck_assert_msg(list != NULL, "%s", tn_error_text());
    for (int64_t i = 0; i < count; i++) {
        tn_module *child = tn_module_new("ReLU()");
        ck_assert_msg(tn_list_append(list, child) == TN_OK, "%s", tn_error_text());
        tn_module_drop(child);
    }
    return list;
}

/* Returns how many steps in maps of slots `build` takes for size n; the result is dropped. */
static uint64_t steps_of(tn_module *(*build)(int64_t n), int64_t n)
{
    uint64_t before = tn__slot_steps;
    tn_module *made = build(n);

    ck_assert_msg(made != NULL, "%s", tn_error_text());
    tn_module_drop(made);
    return tn__slot_steps - before;
}

static tn_module *printed(int64_t n)
{
    return tn_module_new("Sequential((0-%lld): %lld x ReLU())", (long long)n - 1, (long long)n);
}

/* A layer looks whether each name was given before. */
static tn_module *named(int64_t n)
{
    tn__text text = { 0 };

    tn__text_add(&text, "Sequential(");
    for (int64_t i = 0; i < n; i++)
        tn__text_add(&text, "layer%lld=ReLU(), ", (long long)i);
    text.at[text.length - 2] = ')';
    text.at[text.length - 1] = '\0';
    tn_module *made = tn_module_parse(text.at);
    tn__text_free(&text);
    return made;
}

static tn_module *inserted(int64_t n)
{
    tn_module *list = list_of(1), *child = tn_module_new("Tanh()");

    for (int64_t i = 0; i < n; i++)
        ck_assert_int_eq(tn_list_insert(list, 0, child), TN_OK);
    ck_assert_int_eq(tn_list_count(list), n + 1);
    ck_assert_str_eq(tn_module_type(tn_module_child(list, "0")), "Tanh");
    ck_assert_str_eq(tn_module_type(tn_module_child_at(list, -1)), "ReLU");
    for (int64_t i = 0; i <= n; i += n) {
        char name[24];
        tn_snprint(name, sizeof name, "%lld", (long long)i);
        ck_assert_str_eq(tn_module_child_name(list, i), name);
        ck_assert_ptr_eq(tn_module_child(list, name), tn_module_child_at(list, i));
    }
    tn_module_drop(child);
    return list;
}

static tn_module *repeated(int64_t n)
{
    tn_module *once = list_of(10), *made = tn_list_repeat(once, n / 10);

    tn_module_drop(once);
    return made;
}

/* Each level holds one linear layer and the level below. */
static tn_module *nested(int64_t n)
{
    tn_module *inner = tn_module_new("Linear(1, 1)");

    for (int64_t i = 0; i < n; i++) {
        tn_module *outer = tn_module_new("Sequential(Linear(1, 1))");
        ck_assert_msg(tn_module_add_child(outer, "below", inner) == TN_OK, "%s", tn_error_text());
        tn_module_drop(inner);
        inner = outer;
    }
    return inner;
}

static tn_module *recurrent(int64_t n)
{
    return tn_module_new("LSTM(1, 1, num_layers=%lld)", (long long)n);
}

START_TEST(building_takes_steps_in_proportion_to_what_is_built)
{
    static const struct {
        const char *name;
        tn_module *(*build)(int64_t n);
        int64_t n;
    } rows[] = {
        { "appending", list_of, 5000 },          { "a printed list", printed, 1000 },
        { "a repeated list", repeated, 2500 },   { "nesting", nested, 200 },
        { "layers of an LSTM", recurrent, 500 }, { "names in a spec", named, 500 },
        { "inserting in front", inserted, 500 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t once = steps_of(rows[i].build, rows[i].n),
                 more = steps_of(rows[i].build, 4 * rows[i].n);

        ck_assert_msg(once >= (uint64_t)rows[i].n, "%s: %llu steps are counted only", rows[i].name,
                      (unsigned long long)once);
        ck_assert_msg(more <= 5 * once, "%s: %llu steps for %lld, %llu for four times as many",
                      rows[i].name, (unsigned long long)once, (long long)rows[i].n,
                      (unsigned long long)more);
    }
}
END_TEST

START_TEST(a_short_spec_cannot_ask_for_more_than_one_call_builds)
{
    static const char *const specs[] = {
        "LSTM(2, 2, num_layers=2147483648)",
        "Sequential((0-999): 1000 x Sequential((0-999): 1000 x Identity()))",
        "TransformerEncoder(TransformerEncoderLayer(2, 1, 2), 4611686018427387904)",
    };

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        uint64_t before = tn__slot_steps;

        ck_assert_msg(tn_module_parse(specs[i]) == NULL, "%s", specs[i]);
        ck_assert_msg(strstr(tn_error_text(), "262144") != NULL, "%s: %s", specs[i],
                      tn_error_text());
        ck_assert_msg(strncmp(specs[i], tn_error_text(), strcspn(specs[i], "(")) == 0, "%s: %s",
                      specs[i], tn_error_text());
        ck_assert_int_eq(tn_error_code(), TN_ERR_VALUE);
        ck_assert_uint_lt(tn__slot_steps - before, 64 * TN__BUILD_MAX);
        tn_error_clear();
    }
    tn_module *list = list_of(1);
    ck_assert_ptr_null(tn_list_repeat(list, 1000000));
    ck_assert_msg(strstr(tn_error_text(), "262144") != NULL, "%s", tn_error_text());
    tn_error_clear();
    /* A program that builds more by further calls is not stopped. */
    tn_module *half = tn_list_repeat(list, TN__BUILD_MAX - 2);
    ck_assert_msg(half != NULL, "%s", tn_error_text());
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(tn_list_extend(half, list), TN_OK);
    ck_assert_int_eq(tn_list_count(half), TN__BUILD_MAX + 8);
    tn_module_drop(half);
    tn_module_drop(list);
}
END_TEST

struct asked {
    int calls, most;
    uint64_t done;
};

static bool go_on(void *user, const char *what, uint64_t done, uint64_t total)
{
    struct asked *asked = user;

    ck_assert_str_eq(what, "modules and tensors built");
    ck_assert_uint_ge(done, asked->done);
    ck_assert_uint_eq(total, 0);
    asked->done = done;
    return ++asked->calls <= asked->most;
}

START_TEST(the_program_is_asked_while_a_spec_is_built_and_may_cancel)
{
    struct asked all = { 0, 1000000, 0 }, some = { 0, 3, 0 };

    tn_set_progress(go_on, &all);
    tn_module *made = printed(1000);
    ck_assert_msg(made != NULL, "%s", tn_error_text());
    tn_module_drop(made);
    ck_assert_int_ge(all.calls, 10);
    ck_assert_uint_ge(all.done, 900);
    tn_set_progress(go_on, &some);
    ck_assert_ptr_null(recurrent(1000));
    ck_assert_int_eq(tn_error_code(), TN_ERR_CANCELLED);
    ck_assert_int_eq(some.calls, 4);
    tn_error_clear();
    tn_set_progress(NULL, NULL);
    made = printed(1000);
    ck_assert_ptr_nonnull(made);
    tn_module_drop(made);
}
END_TEST

START_TEST(many_names_are_found_while_some_come_and_go)
{
    enum { COUNT = 300 };
    tn_module *m = tn_module_new("ModuleDict()"), *child = tn_module_new("ReLU()");
    char name[24];

    for (int i = 0; i < COUNT; i++) {
        tn_snprint(name, sizeof name, "n%d", i * 7919 % COUNT);
        ck_assert_int_eq(tn_dict_set(m, name, child), TN_OK);
    }
    ck_assert_int_eq(tn_dict_count(m), COUNT);
    for (int gone = 0; gone < COUNT; gone++) {
        /* from the end, from the front and from between */
        int64_t count = tn_dict_count(m), at = gone % 3 == 0   ? count - 1
                                               : gone % 3 == 1 ? 0
                                                               : count / 2;
        tn_snprint(name, sizeof name, "%s", tn_dict_key(m, at));
        ck_assert_int_eq(tn_module_remove(m, name), TN_OK);
        ck_assert(!tn_dict_has(m, name));
        for (int64_t i = 0; i < tn_dict_count(m); i++)
            ck_assert(tn_dict_has(m, tn_dict_key(m, i)));
        ck_assert_int_eq(tn_dict_count(m), count - 1);
    }
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

static tn_module *level(void)
{
    tn_module *made = tn_module_new("Sequential()");

    ck_assert_msg(made != NULL, "%s", tn_error_text());
    return made;
}

/* Adds up to `levels` levels below `root`, from above, two at a time. Returns the number of levels
 * that it could add. */
static int64_t go_down(tn_module *root, int64_t levels)
{
    tn_module *at = root;
    int64_t made = 0;

    while (made < levels) {
        tn_module *outer = level(), *inner = level();

        ck_assert_int_eq(tn_module_add_child(outer, "0", inner), TN_OK);
        tn_module_drop(inner);
        tn_status status = tn_module_add_child(at, "0", outer);
        tn_module_drop(outer);
        if (status != TN_OK)
            break;
        at = inner;
        made += 2;
    }
    return made;
}

static void expect_nesting(tn_module *root)
{
    int64_t size = tn_module_spec(root, NULL, 0);

    ck_assert_msg(size > 0 && tn_module_repr(root, NULL, 0) > 0, "%s", tn_error_text());
    char *text = malloc((size_t)size + 1);
    tn_module_spec(root, text, (size_t)size + 1);
    tn_module *again = tn_module_parse(text), *copy = tn_module_copy(root);
    ck_assert_msg(again != NULL && copy != NULL, "%s", tn_error_text());
    tn_module_drop(again);
    tn_module_drop(copy);
    free(text);
}

START_TEST(modules_nest_a_thousand_deep_and_no_deeper)
{
    /* From below. */
    tn_module *inner = level();
    for (int i = 0; i < TN__MODULE_DEPTH; i++) {
        tn_module *outer = level();
        ck_assert_msg(tn_module_add_child(outer, "0", inner) == TN_OK, "%d: %s", i,
                      tn_error_text());
        tn_module_drop(inner);
        inner = outer;
    }
    expect_nesting(inner);
    tn_module *more = level();
    ck_assert_int_eq(tn_module_add_child(more, "0", inner), TN_ERR_VALUE);
    ck_assert_str_eq(tn_error_text(), "modules: nested too deep; expected at most 1000 levels");
    tn_error_clear();
    tn_module_drop(more);
    tn_module_drop(inner);
    /* From above. */
    tn_module *root = level();
    ck_assert_int_eq(go_down(root, 5000), TN__MODULE_DEPTH);
    ck_assert_str_eq(tn_error_text(), "modules: nested too deep; expected at most 1000 levels");
    tn_error_clear();
    expect_nesting(root);
    /* A module that was removed and added again at a higher level may get children again. */
    tn_module *at = root;
    for (int i = 0; i < 900; i++)
        at = tn_module_child(at, "0");
    tn_module_keep(at);
    ck_assert_int_eq(tn_module_add_child(root, "0", at), TN_OK);
    tn_module_drop(at);
    while (tn_module_child_count(at) > 0)
        at = tn_module_child_at(at, 0);
    ck_assert_int_eq(go_down(at, 800), 800);
    expect_nesting(root);
    tn_module_drop(root);
}
END_TEST

/* Each level of lists prints its entries once, so that the time does not double with every level.
 */
START_TEST(lists_in_lists_print_in_proportion_to_their_size)
{
    tn_module *list = list_of(1);
    for (int i = 0; i < 60; i++) {
        tn_module *outer = list_of(1);
        ck_assert_int_eq(tn_list_append(outer, list), TN_OK);
        tn_module_drop(list);
        list = outer;
    }
    ck_assert_int_gt(tn_module_repr(list, NULL, 0), 60);
    tn_module_drop(list);
}
END_TEST

START_TEST(a_module_cannot_come_to_contain_itself)
{
    tn_module *a = tn_module_new("Sequential()"), *b = tn_module_new("Sequential()"),
              *c = tn_module_new("Sequential()");

    ck_assert_int_eq(tn_module_add_child(a, "b", b), TN_OK);
    ck_assert_int_eq(tn_module_add_child(b, "c", c), TN_OK);
    ck_assert_int_eq(tn_module_add_child(c, "a", a), TN_ERR_VALUE);
    ck_assert_int_eq(tn_module_add_child(b, "a", a), TN_ERR_VALUE);
    ck_assert_int_eq(tn_module_add_child(a, "a", a), TN_ERR_VALUE);
    tn_error_clear();
    /* b was removed from a, so it may contain a, its former parent */
    ck_assert_int_eq(tn_module_remove(a, "b"), TN_OK);
    ck_assert_int_eq(tn_module_add_child(c, "a", a), TN_OK);
    ck_assert_int_eq(tn_module_add_child(a, "b", b), TN_ERR_VALUE);
    tn_error_clear();
    tn_module_drop(a);
    tn_module_drop(b);
    tn_module_drop(c);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        building_takes_steps_in_proportion_to_what_is_built,
        a_short_spec_cannot_ask_for_more_than_one_call_builds,
        the_program_is_asked_while_a_spec_is_built_and_may_cancel,
        many_names_are_found_while_some_come_and_go,
        modules_nest_a_thousand_deep_and_no_deeper,
        lists_in_lists_print_in_proportion_to_their_size,
        a_module_cannot_come_to_contain_itself,
        NULL,
    };
    return suite_run("building", tests);
}
