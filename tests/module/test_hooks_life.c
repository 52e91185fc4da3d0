/* SPDX-License-Identifier: MIT
 *
 * The lifetime of hooks, handles and modules: hooks of all modules, modules that are dropped while
 * they are called. */
#include "tests/module/forward_hooks.h"

struct eviction {
    tn_module *parent;
    const char *name;
    bool put_back;
};

static tn_status evict(void *user, tn_module *module, const tn_pack *input, tn_pack *replacement,
                       tn_hook_outcome *outcome)
{
    const struct eviction *e = user;
    (void)input, (void)replacement, (void)outcome;
    if (e->put_back)
        tn_module_keep(module);
    tn_status status = tn_module_remove(e->parent, e->name);
    if (e->put_back) {
        tn_module_add_child(e->parent, "again", module);
        tn_module_drop(module);
    }
    return status;
}

/* In PyTorch the caller holds a reference to the module; in Tenon the call itself holds one. */
START_TEST(a_module_that_a_hook_takes_away_lives_until_its_call_ends)
{
    for (int put_back = 0; put_back < 2; put_back++) {
        TN_SCOPE;
        tn_module *m = tn_module_parse("Sequential(Sequential(Linear(3, 3)), ReLU())");
        struct eviction e = { m, "0", put_back };
        tn_module *taken = tn_module_child(m, "0");
        ck_assert(tn_module_hook_forward_pre(taken, evict, 0, &e, NULL) != 0);
        tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL);
        tn_tensor *y = tn_module_call(taken, x);
        ck_assert_msg(y != NULL, "%s", tn_error_text());
        ck_assert_int_eq(tn_tensor_size(y, 1), 3);
        ck_assert_int_eq(tn_module_child_count(m), 1 + put_back);
        if (put_back)
            ck_assert_ptr_eq(tn_module_child(m, "again"), taken);
        tn_module_drop(m);
    }
}
END_TEST

START_TEST(handles_are_numbers_that_grow_and_removal_is_harmless)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Scale()"), *other = parsed("ReLU()");
    tn_tensor *leaf = filled(1);
    tn_tensor_set_requires_grad(leaf, true);
    struct act a = { .letter = 'a' }, b = { .letter = 'b' }, c = { .letter = 'c' };
    int64_t before = tn__hook_count();
    tn_hook_handle one = after(m, &a, TN_HOOK_NAMED | TN_HOOK_ALWAYS), two = after(m, &b, 0),
                   three = pre(other, &c, 0), four = after(m, &c, 0),
                   five = tn_tensor_hook(leaf, (tn_grad_hook)(void (*)(void))act_release, NULL,
                                         NULL);
    ck_assert(one < two && two < three && three < four && four < five);
    TN_PROVES("HND-001");
    ck_assert_int_eq(tn__hook_count(), before + 5);
    ck_assert(tn_hook_remove(five));
    ck_assert(tn_hook_remove(two));
    ck_assert(!tn_hook_remove(two));
    ck_assert(!tn_hook_remove(0));
    ck_assert(!tn_hook_remove(UINT64_MAX));
    ck_assert_int_eq(tn__hook_count(), before + 3);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("ac");
    TN_PROVES("HND-005");
    ck_assert(tn_hook_remove(one));
    tn_hook_handle again = after(m, &a, 0);
    ck_assert_uint_gt(again, five);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("ca");
    TN_PROVES("HND-006");
    again = 0; /* forgotten: the hook stays */
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("ca");
    TN_PROVES("HND-004");
    tn_module_drop(m);
    ck_assert(!tn_hook_remove(four));
    ck_assert_int_eq(tn__hook_count(), before + 1);
    tn_module_drop(other);
    ck_assert(!tn_hook_remove(three));
    ck_assert_int_eq(tn__hook_count(), before);
    ck_assert_int_eq(released, 5);
    TN_PROVES("HND-002", "HND-003");
}
END_TEST

START_TEST(global_hooks_see_every_call_and_their_replacements_count)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Sequential(ReLU(), ReLU())");
    struct act p = { .letter = 'p', .add = 1 }, a = { .letter = 'a', .times = 2 };
    {
        TN_HOOK_BLOCK(tn_global_hook_forward_pre(on_forward_pre, 0, &p, act_release));
        tn_hook_handle h = tn_global_hook_forward(on_forward, 0, &a, act_release);
        TN_HOOK_BLOCK(h);
        /* ((1+1 +1)*2 +1)*2, and around it once more *2 */
        ck_assert_float_eq(first(tn_module_call(m, filled(1))), 28);
        expect_trace("ppapaa");
        ck_assert_int_eq(p.calls, 3);
        ck_assert_int_eq(a.calls, 3);
        ck_assert_ptr_eq(a.module, m);
        TN_PROVES("GLH-006");
        ck_assert(tn_hook_remove(h)); /* the block removes it a second time */
    }
    ck_assert_int_eq(released, 2);
    ck_assert_float_eq(first(tn_module_call(m, filled(1))), 1);
    expect_trace("");
    TN_PROVES("GLH-010");
    tn_module_drop(m);
}
END_TEST

START_TEST(hooks_move_to_another_module_with_their_handles)
{
    TN_SCOPE;
    register_hooked();
    tn_module *from = parsed("Scale()"), *to = parsed("Scale()");
    struct act a = { .letter = 'a' }, b = { .letter = 'b' }, c = { .letter = 'c' };
    tn_hook_handle one = after(from, &a, 0), two = after(to, &b, 0), three = pre(from, &c, 0);
    ck_assert(one != 0 && two != 0 && three != 0);
    ck_assert_int_eq(tn_module_move_hooks(from, to, TN_HOOKS_ALL), TN_OK);
    tn_module_call(from, filled(1));
    expect_trace("");
    tn_module_call(to, filled(1));
    expect_trace("cba"); /* before forward, then in order: what was there first */
    ck_assert_ptr_eq(a.module, to);
    ck_assert(tn_hook_remove(one));
    tn_module_call(to, filled(1));
    expect_trace("cb");
    ck_assert_int_eq(tn_module_move_hooks(to, to, TN_HOOKS_ALL), TN_OK);
    tn_module_drop(from); /* takes none of them along */
    tn_module_call(to, filled(1));
    expect_trace("cb");
    ck_assert_int_ne(tn_module_move_hooks(to, NULL, TN_HOOKS_ALL), TN_OK);
    tn_error_clear();
    tn_module_drop(to);
    ck_assert(!tn_hook_remove(two) && !tn_hook_remove(three));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_module_that_a_hook_takes_away_lives_until_its_call_ends,
        handles_are_numbers_that_grow_and_removal_is_harmless,
        global_hooks_see_every_call_and_their_replacements_count,
        hooks_move_to_another_module_with_their_handles,
        NULL,
    };
    return suite_run("life of hooks", tests);
}
