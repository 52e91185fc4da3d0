/* SPDX-License-Identifier: MIT
 *
 * Hooks on the registration of parameters, buffers and children; hooks that are added and removed
 * while other threads call modules. */
#include "tests/module/hooks.h"

#include <pthread.h>

/* ---- hooks on registration ------------------------------------------------------------------- */

struct registered {
    int parameters, buffers, children, none;
    char names[256];
};

static tn_status on_tensor(void *user, tn_module *module, const char *name, tn_tensor *tensor,
                           tn_tensor **replacement)
{
    struct registered *r = user;
    (void)module;
    strcat(strcat(r->names, name), " ");
    r->parameters++;
    r->none += tensor == TN_NONE;
    if (strcmp(name, "replace") == 0)
        *replacement = tn_tensor_is_parameter(tensor) ? tn_parameter(filled(42), true) : filled(42);
    return strcmp(name, "refuse") == 0 ? tn_fail(TN_ERR_VALUE, "not this name") : TN_OK;
}

static tn_status on_buffer(void *user, tn_module *module, const char *name, tn_tensor *tensor,
                           tn_tensor **replacement)
{
    struct registered *r = user;
    tn_status status = on_tensor(user, module, name, tensor, replacement);
    r->parameters--;
    r->buffers++;
    return status;
}

static tn_status on_child(void *user, tn_module *module, const char *name, tn_module *child,
                          tn_module **replacement)
{
    struct registered *r = user;
    ck_assert_ptr_nonnull(module);
    ck_assert_ptr_nonnull(child);
    r->children++;
    if (strcmp(name, "replace") == 0)
        *replacement = parsed("ReLU()");
    return strcmp(name, "refuse") == 0 ? TN_ERR_VALUE : TN_OK;
}

START_TEST(hooks_on_registration_see_every_name_and_may_put_another_value)
{
    TN_SCOPE;
    register_hooked();
    struct registered r = { 0 };
    TN_HOOK_BLOCK(tn_global_hook_parameter(on_tensor, &r, act_release));
    TN_HOOK_BLOCK(tn_global_hook_buffer(on_buffer, &r, act_release));
    TN_HOOK_BLOCK(tn_global_hook_child(on_child, &r, act_release));
    tn_module *m = parsed("Sequential(Probe(1), Identity())"), *act = parsed("Scale()");
    ck_assert_str_eq(r.names, "weight count scratch weight "); /* not the reserved parameter */
    ck_assert_int_eq(r.parameters, 2);
    ck_assert_int_eq(r.buffers, 2);
    ck_assert_int_eq(r.children, 2);
    ck_assert_int_eq(tn_module_add_buffer(m, "empty", TN_NONE, 0), TN_OK);
    ck_assert_int_eq(r.none, 1);
    ck_assert_int_eq(tn_module_add_parameter(m, "replace", tn_parameter(filled(1), true)), TN_OK);
    ck_assert_float_eq(first(tn_module_get(m, "replace")), 42);
    ck_assert(tn_tensor_requires_grad(tn_module_get(m, "replace")));
    ck_assert_int_eq(tn_module_set(m, "replace", tn_parameter(filled(2), true)), TN_OK);
    ck_assert_float_eq(first(tn_module_get(m, "replace")), 42);
    ck_assert_int_eq(tn_module_add_parameter(m, "refuse", tn_parameter(filled(1), true)),
                     TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "not this name");
    ck_assert_ptr_null(tn_module_get(m, "refuse"));
    tn_error_clear();
    tn_module_remove(m, "replace");
    ck_assert_int_eq(tn_module_add_child(m, "replace", act), TN_OK);
    ck_assert_str_eq(tn_module_type(tn_module_child(m, "replace")), "ReLU");
    ck_assert_int_eq(tn_module_add_child(m, "refuse", act), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "a hook on the registration of modules: failed with TN_ERR_VALUE");
    TN_PROVES("GLH-007");
    int before = r.children;
    ck_assert_int_eq(tn_module_set_child(m, "1", act, true), TN_OK);
    ck_assert_int_eq(tn_module_add_child(m, "1", act), TN_OK);
    ck_assert_int_eq(r.children, before + 2);
    ck_assert_ptr_eq(tn_module_child(m, "1"), act);
    TN_PROVES("GLH-008", "GET-017");
    tn_module_drop(act);
    tn_module_drop(m);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic int counted;

static tn_status count(void *user, tn_module *module, const tn_pack *input, const tn_pack *output,
                       tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    (void)input;
    (void)output;
    (void)replacement;
    (void)outcome;
    atomic_fetch_add(&counted, 1);
    return TN_OK;
}

static _Atomic int count_released;

static void count_release(void *user)
{
    (void)user;
    atomic_fetch_add(&count_released, 1);
}

static void *call_often(void *user)
{
    for (int i = 0; i < 300; i++) {
        TN_SCOPE;
        if (tn_module_call(user, filled(1)) == NULL)
            return user;
    }
    return NULL;
}

static void *hook_often(void *user)
{
    for (int i = 0; i < 300; i++) {
        tn_hook_handle own = tn_module_hook_forward(user, count, 0, NULL, count_release);
        tn_hook_handle all = tn_global_hook_forward(count, 0, NULL, count_release);
        if (own == 0 || all == 0 || !tn_hook_remove(own) || !tn_hook_remove(all))
            return user;
    }
    return NULL;
}

START_TEST(hooks_come_and_go_while_other_threads_call)
{
    register_hooked();
    tn_module *m = parsed("Sequential(ReLU(), Sigmoid())");
    tn_module_eval(m);
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, i < 3 ? call_often : hook_often, m), 0);
    for (int i = 0; i < 6; i++) {
        void *failure = NULL;
        pthread_join(threads[i], &failure);
        ck_assert_ptr_null(failure);
    }
    ck_assert_int_eq(atomic_load(&count_released), 3 * 300 * 2);
    ck_assert_int_eq(tn__hook_count(), 0);
    TN_PROVES("GLH-009");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        hooks_on_registration_see_every_name_and_may_put_another_value,
        hooks_come_and_go_while_other_threads_call,
        NULL,
    };
    return suite_run("hooks on registration", tests);
}
