/* SPDX-License-Identifier: MIT
 *
 * Modules that are nested as deep as is allowed, in a thread with the smallest stack that is
 * documented (docs/guides/modules.md). */
#include "tests/module/suite.h"

#include <pthread.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TIMES 8 /* frames are larger with a sanitizer */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TIMES 8
#endif
#endif
#ifndef TIMES
#define TIMES 1
#endif

enum { DEPTH = 1000, STACK = 2 << 20 };

static const char *failure;

static tn_module *nested(int depth)
{
    tn_module *module = tn_module_new("Linear(2, 2)");

    for (int i = 0; i < depth && module != NULL; i++) {
        tn_module *outer = tn_module_new("Sequential()");

        if (tn_module_add_child(outer, "0", module) != TN_OK) {
            tn_module_drop(outer);
            outer = NULL;
        }
        tn_module_drop(module);
        module = outer;
    }
    return module;
}

static tn_status count_one(void *user, const char *path, tn_module *module)
{
    (void)path, (void)module;
    ++*(int64_t *)user;
    return TN_OK;
}

static char *text_of(tn_module *module, int64_t (*print)(tn_module *, char *, size_t))
{
    int64_t length = print(module, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;

    if (text != NULL)
        print(module, text, (size_t)length + 1);
    return text;
}

/* Returns what went wrong; NULL: nothing. */
static const char *walk_and_call(void)
{
    TN_SCOPE;
    int64_t visited = 0;
    tn_module *module = nested(DEPTH), *copied, *read;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 2), 1, TN_F32, NULL), *y, *loss;
    tn_state *state;
    char *repr, *spec;

    if (module == NULL)
        return "building";
    y = tn_module_call(module, x);
    loss = tn_sum(y);
    if (tn_backward(loss) != TN_OK)
        return "backward";
    if (tn_module_train(module, true) != TN_OK || tn_module_zero_grad(module) != TN_OK ||
        tn_module_each(module, false, count_one, &visited) != TN_OK || visited != DEPTH + 1)
        return "walks";
    state = tn_module_state(module);
    copied = tn_module_copy(module);
    if (state == NULL || copied == NULL || tn_module_load_state(copied, state, true) != TN_OK)
        return "states and copies";
    repr = text_of(module, tn_module_repr);
    spec = text_of(module, tn_module_spec);
    read = spec != NULL ? tn_module_parse(spec) : NULL;
    if (repr == NULL || read == NULL)
        return "texts";
    if (tn_module_to(read, NULL, TN_F64) != TN_OK)
        return "converting";
    free(repr);
    free(spec);
    tn_state_drop(state);
    tn_module_drop(read);
    tn_module_drop(copied);
    tn_module_drop(module);
    return NULL;
}

static void *run(void *user)
{
    const char *what = walk_and_call();
    static char text[2048];

    (void)user;
    if (what == NULL && tn_failed())
        what = "a function";
    if (what != NULL) {
        tn_snprint(text, sizeof text, "%s: %s", what, tn_error_text());
        failure = text;
    }
    return NULL;
}

START_TEST(the_deepest_nesting_fits_into_the_smallest_stack_that_is_documented)
{
    pthread_attr_t attr;
    pthread_t thread;
    tn_module_drop(parsed("Linear(2, 2)")); /* the plugins are loaded */
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, (size_t)STACK * TIMES), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, run, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    ck_assert_msg(failure == NULL, "%s", failure);
}
END_TEST

START_TEST(one_level_more_is_refused)
{
    ck_assert_ptr_null(nested(DEPTH + 1));
    ck_assert_msg(strstr(tn_error_text(), "nested too deep; expected at most 1000 levels") != NULL,
                  "%s", tn_error_text());
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_deepest_nesting_fits_into_the_smallest_stack_that_is_documented,
        one_level_more_is_refused, NULL
    };
    return suite_run("depth", tests);
}
