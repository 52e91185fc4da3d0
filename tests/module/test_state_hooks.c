/* SPDX-License-Identifier: MIT
 *
 * Hooks around states: when they run, what they see, what they may change. */
#include "tests/module/state_layers.h"

static char trace[512];

static void note(const char *what, const char *prefix)
{
    strcat(strcat(strcat(trace, what), prefix), " ");
}

static tn_status on_state_pre(void *user, tn_module *module, const char *prefix, uint32_t flags)
{
    note(user != NULL ? user : "pre:", prefix);
    ck_assert_ptr_nonnull(module);
    ck_assert_uint_eq(flags, 0);
    return TN_OK;
}

static tn_status on_state(void *user, tn_module *module, tn_state *state, const char *prefix)
{
    char key[64];
    note(user != NULL ? user : "post:", prefix);
    ck_assert_ptr_nonnull(module);
    /* Own entries and those of all below are there; the version, too. */
    tn_snprint(key, sizeof key, "%sweight", prefix);
    if (strcmp(tn_module_type(module), "Linear") == 0)
        ck_assert_int_ge(tn_state_find(state, key), 0);
    tn_snprint(key, sizeof key, "%sadded", prefix);
    return tn_state_set_value(state, key, tn_value_int(1));
}

static tn_status fail_state(void *user, tn_module *module, tn_state *state, const char *prefix)
{
    (void)user;
    (void)module;
    (void)state;
    (void)prefix;
    return tn_fail(TN_ERR_RUNTIME, "state_dict post-hook must return None");
}

START_TEST(hooks_on_a_state_run_before_and_after_every_module_that_has_them)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(a=Linear(1, 1), b=Sequential(Linear(1, 1)))");
    tn_module *a = tn_module_child(m, "a"), *b = tn_module_child(m, "b");
    tn_hook_handle pre = tn_module_hook_state_pre(a, on_state_pre, NULL, NULL);
    tn_module_hook_state_pre(m, on_state_pre, NULL, NULL);
    tn_hook_handle post = tn_module_hook_state(a, on_state, NULL, NULL);
    tn_module_hook_state(b, on_state, (char *)"one:", NULL);
    tn_module_hook_state(b, on_state, (char *)"two:", NULL);
    tn_module_hook_state(m, on_state, NULL, NULL);
    ck_assert(pre != 0 && post != 0 && pre != post);
    tn_state *state = taken(m);
    ck_assert_str_eq(trace, "pre: pre:a. post:a. one:b. two:b. post: ");
    expect_names(state, "a.weight a.bias a.added b.0.weight b.0.bias b.added added ");
    TN_PROVES("SDH-001", "SDH-002", "SDH-003", "SDH-004");
    tn_state_drop(state);
    ck_assert(tn_hook_remove(pre));
    ck_assert(!tn_hook_remove(pre));
    ck_assert(tn_hook_remove(post));
    trace[0] = '\0';
    state = taken(m);
    ck_assert_str_eq(trace, "pre: one:b. two:b. post: ");
    tn_state_drop(state);
    tn_module_hook_state(b, fail_state, NULL, NULL);
    ck_assert_ptr_null(tn_module_state(m));
    expect_failure(TN_ERR_RUNTIME, "state_dict post-hook must return None");
    ck_assert_uint_eq(tn_module_hook_state(b, NULL, NULL, NULL), 0);
    tn_error_clear();
    tn_module_drop(m);
}
END_TEST

/* ---- loading --------------------------------------------------------------------------------- */

static int64_t keys_seen;

static tn_status rename_old(void *user, tn_module *module, tn_loading *loading)
{
    char from[64], to[64];
    (void)module;
    note("load-pre:", loading->prefix);
    ck_assert_uint_ne(loading->flags & TN_LOAD_STRICT, 0);
    ck_assert(TN_HAS(loading, tn_loading, errors));
    keys_seen = tn_state_count(loading->state);
    if (user == NULL)
        return TN_OK;
    tn_snprint(from, sizeof from, "%sold", loading->prefix);
    tn_snprint(to, sizeof to, "%sweight", loading->prefix);
    return tn_state_rename(loading->state, from, to);
}

static tn_status after_load(void *user, tn_module *module, tn_load_report *report)
{
    const char *what = user;
    ck_assert_ptr_nonnull(module);
    note("load:", what);
    ck_assert_int_eq(tn_names_count(tn_load_report_errors(report)), 0);
    if (what[0] == 'c') {
        tn_names *missing = tn_load_report_missing(report);
        ck_assert_int_eq(tn_names_remove(missing, tn_names_count(missing)), TN_ERR_INDEX);
        tn_error_clear();
        while (tn_names_count(missing) > 0)
            ck_assert_int_eq(tn_names_remove(missing, 0), TN_OK);
        tn_names_clear(tn_load_report_unexpected(report));
    }
    if (what[0] == 'a')
        return tn_names_add(tn_load_report_missing(report), "invented");
    return what[0] == 'f' ? tn_fail(TN_ERR_ASSERT, "a hook after loading returned a value") : TN_OK;
}

START_TEST(a_hook_before_loading_sees_its_own_keys_and_may_rename_them)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(a=Linear(1, 1), b=Linear(1, 1), ab=Linear(1, 1))");
    fill(m, 2);
    tn_state *state = taken(m);
    ck_assert_int_eq(tn_state_rename(state, "a.weight", "a.old"), TN_OK);
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
    tn_error_clear();
    fill(m, 0);
    tn_state_drop(state);
    state = tn_state_new();
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = { "a.old",  "a.bias",    "b.weight",
                                             "b.bias", "ab.weight", "ab.bias" };
        tn_state_set(state, names[i],
                     i % 2 == 0 ? tn_tensor_full(TN_SHAPE(1, 1), 2, TN_F32, NULL) : filled(1, 2));
    }
    tn_hook_handle handle = tn_module_hook_load_pre(tn_module_child(m, (char *)"a"), rename_old, m,
                                                    NULL);
    trace[0] = '\0';
    ck_assert_msg(tn_module_load_state(m, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert_str_eq(trace, "load-pre:a. ");
    ck_assert_int_eq(keys_seen, 2);
    ck_assert_double_eq(first_of(m, "a.weight"), 2);
    ck_assert_double_eq(first_of(m, "ab.bias"), 2);
    expect_names(state, "a.old a.bias b.weight b.bias ab.weight ab.bias ");
    TN_PROVES("SDH-005", "LSD-017");
    ck_assert(tn_hook_remove(handle));
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
    tn_error_clear();
    TN_PROVES("SDH-010");
    /* A hook of the root changes a copy, too. */
    tn_module *one = parsed("Linear(1, 1)");
    tn_state *old = taken(one);
    tn_state_rename(old, "weight", "old");
    tn_module_hook_load_pre(one, rename_old, m, NULL);
    ck_assert_int_eq(tn_module_load_state(one, old, true), TN_OK);
    expect_names(old, "old bias ");
    TN_PROVES("LSD-018");
    tn_state_drop(old);
    tn_state_drop(state);
    tn_module_drop(one);
    tn_module_drop(m);
}
END_TEST

static tn_status take_extra(tn_module *self, const tn_value *value)
{
    (void)value;
    note("extra:",
         tn_module_get(self, "p") != NULL && first_of(self, "p") == 3 ? "loaded" : "early");
    return TN_OK;
}

static tn_status give_extra(tn_module *self, tn_pack *out)
{
    (void)self;
    return tn_pack_add(out, NULL, tn_value_int(0));
}

static tn_status build_p(tn_module *self)
{
    return tn_module_add_parameter(self, "p", tn_parameter(filled(1, 0), true));
}

static const tn_layer_def traced = { TN_HEAD(tn_layer_def),
                                     .name = "Traced",
                                     .build = build_p,
                                     .forward = same,
                                     .get_extra_state = give_extra,
                                     .set_extra_state = take_extra };

START_TEST(a_module_loads_hooks_own_state_extra_state_children_hooks)
{
    TN_SCOPE;
    ck_assert_int_eq(tn_register(&traced), TN_OK);
    tn_module *m = parsed("Traced()"), *child = parsed("Linear(1, 1)");
    tn_module_add_child(m, "child", child);
    fill(m, 3);
    tn_state *state = taken(m);
    fill(m, 0);
    tn_state *copy = tn_state_new();
    tn_state_set(copy, "p", filled(1, 3));
    tn_state_set_value(copy, "_extra_state", tn_value_int(0));
    tn_state_set(copy, "child.weight", tn_tensor_full(TN_SHAPE(1, 1), 3, TN_F32, NULL));
    tn_state_set(copy, "child.bias", filled(1, 3));
    tn_module_hook_load_pre(m, rename_old, NULL, NULL);
    tn_module_hook_load_pre(child, rename_old, NULL, NULL);
    tn_module_hook_load(child, after_load, (char *)"below", NULL);
    tn_module_hook_load(m, after_load, (char *)"root", NULL);
    trace[0] = '\0';
    ck_assert_msg(tn_module_load_state(m, copy, true) == TN_OK, "%s", tn_error_text());
    ck_assert_str_eq(trace, "load-pre: extra:loaded load-pre:child. load:below load:root ");
    TN_PROVES("LSD-020");
    tn_state_drop(state);
    tn_state_drop(copy);
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_hook_after_loading_may_change_the_lists_before_they_are_judged)
{
    TN_SCOPE;
    tn_module *inner = parsed("Sequential(l=Linear(1, 1))"), *m = parsed("Sequential()");
    tn_module_add_child(m, "wrapped", inner);
    tn_state *state = tn_state_new();
    tn_state_set(state, "wrapped.l.weight", tn_tensor_full(TN_SHAPE(1, 1), 1, TN_F32, NULL));
    tn_state_set(state, "wrapped.l.odd", filled(1, 1));
    tn_hook_handle handle = tn_module_hook_load(inner, after_load, (char *)"nothing", NULL);
    trace[0] = '\0';
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "\"wrapped.l.bias\"");
    ck_assert_str_eq(trace, "load:nothing ");
    TN_PROVES("SDH-008");
    tn_hook_remove(handle);
    handle = tn_module_hook_load(inner, after_load, (char *)"clear", NULL);
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_OK);
    ck_assert_int_eq(tn_module_load_state(m, state, false), TN_OK);
    /* What does not fit is not in the lists. */
    tn_state_set(state, "wrapped.l.weight", filled(9, 1));
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "size mismatch for wrapped.l.weight");
    TN_PROVES("SDH-009");
    tn_hook_remove(handle);
    tn_state_set(state, "wrapped.l.weight", tn_tensor_full(TN_SHAPE(1, 1), 1, TN_F32, NULL));
    tn_state_rename(state, "wrapped.l.odd", "wrapped.l.bias");
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_OK);
    handle = tn_module_hook_load(m, after_load, (char *)"add", NULL);
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "Missing key(s) in state_dict: \"invented\"");
    ck_assert_int_eq(tn_module_load_state(m, state, false), TN_OK);
    tn_hook_remove(handle);
    tn_module_hook_load(m, after_load, (char *)"fail", NULL);
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_ASSERT);
    expect_failure(TN_ERR_ASSERT, "returned a value");
    TN_PROVES("SDH-007");
    tn_state_drop(state);
    tn_module_drop(inner);
    tn_module_drop(m);
}
END_TEST

static int released;

static void release(void *user)
{
    (void)user;
    released++;
}

START_TEST(a_hook_goes_with_its_module)
{
    tn_module *m = parsed("Linear(1, 1)");
    tn_hook_handle handles[] = {
        tn_module_hook_state_pre(m, on_state_pre, NULL, release),
        tn_module_hook_state(m, on_state, NULL, release),
        tn_module_hook_load_pre(m, rename_old, NULL, release),
        tn_module_hook_load(m, after_load, (char *)"x", release),
    };
    ck_assert(tn_hook_remove(handles[3]));
    ck_assert_int_eq(released, 1);
    tn_module_drop(m);
    ck_assert_int_eq(released, 4);
    for (int i = 0; i < 4; i++)
        ck_assert(!tn_hook_remove(handles[i]));
    /* A module to which no hook was ever added has no table of them, and behaves as with an empty
     * one. */
    tn_module *plain = parsed("Linear(1, 1)");
    tn_state *state = taken(plain);
    ck_assert_int_eq(tn_module_load_state(plain, state, true), TN_OK);
    TN_PROVES("SDH-006", "SDH-011");
    tn_state_drop(state);
    tn_module_drop(plain);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        hooks_on_a_state_run_before_and_after_every_module_that_has_them,
        a_hook_before_loading_sees_its_own_keys_and_may_rename_them,
        a_module_loads_hooks_own_state_extra_state_children_hooks,
        a_hook_after_loading_may_change_the_lists_before_they_are_judged,
        a_hook_goes_with_its_module,
        NULL,
    };
    return suite_run("state hooks", tests);
}
