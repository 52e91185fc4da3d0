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

enum { DEPTH = 1000, STACK = 2 << 20, SMALL = 192 << 10 };

static const char *failure;

static tn_module *nested(const char *type, int depth)
{
    tn_module *module = tn_module_new("Linear(2, 2)");

    for (int i = 0; i < depth && module != NULL; i++) {
        tn_module *outer = tn_module_parse(type);

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
static const char *walk_and_call(const char *type)
{
    TN_SCOPE;
    int64_t visited = 0;
    tn_module *module = nested(type, DEPTH), *copied, *read, *script;
    tn_graph *graph;
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
    graph = tn_module_trace(module, x, NULL);
    script = tn_module_script(module, x, NULL);
    if (graph == NULL || script == NULL)
        return "traces";
    tn_graph_drop(graph);
    tn_module_drop(script);
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
    const char *what = walk_and_call(user);
    static char text[2048];

    if (what == NULL && tn_failed())
        what = "a function";
    if (what != NULL) {
        tn_snprint(text, sizeof text, "%s: %s", what, tn_error_text());
        failure = text;
    }
    return NULL;
}

static void in_thread(size_t stack, void *(*start)(void *), void *user)
{
    pthread_attr_t attr;
    pthread_t thread;

    tn_module_drop(parsed("Linear(2, 2)")); /* the plugins are loaded */
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, stack * TIMES), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, start, user), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}

START_TEST(the_deepest_nesting_fits_into_the_smallest_stack_that_is_documented)
{
    static char types[][16] = { "Sequential()", "Residual()" };

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        in_thread(STACK, run, types[i]);
        ck_assert_msg(failure == NULL, "%s %s", types[i], failure);
    }
}
END_TEST

/* What a thread with a small stack does with a tree that is deeper than the stack carries. */
static struct deep {
    tn_module *module;
    tn_tensor *x;
    tn_state *state;
    char *spec;
} deep;

static bool calls(void)
{
    return tn_module_call(deep.module, deep.x) != NULL;
}

static bool traces(void)
{
    tn_graph *graph = tn_module_trace(deep.module, deep.x, NULL);

    tn_graph_drop(graph);
    return graph != NULL;
}

static bool copies(void)
{
    tn_module *copied = tn_module_copy(deep.module);

    tn_module_drop(copied);
    return copied != NULL;
}

static bool reads(void)
{
    tn_module *read = tn_module_parse(deep.spec);

    tn_module_drop(read);
    return read != NULL;
}

static bool prints(void)
{
    return tn_module_repr(deep.module, NULL, 0) >= 0;
}

static bool prints_its_spec(void)
{
    return tn_module_spec(deep.module, NULL, 0) >= 0;
}

static bool gives_its_state(void)
{
    tn_state *state = tn_module_state(deep.module);

    tn_state_drop(state);
    return state != NULL;
}

static bool takes_its_state(void)
{
    return tn_module_load_state(deep.module, deep.state, true) == TN_OK;
}

static bool is_converted(void)
{
    return tn_module_to(deep.module, NULL, TN_F64) == TN_OK &&
           tn_module_to(deep.module, NULL, TN_F32) == TN_OK;
}

static bool is_walked(void)
{
    int64_t visited = 0;

    return tn_module_each(deep.module, false, count_one, &visited) == TN_OK;
}

static bool changes_its_mode(void)
{
    return tn_module_train(deep.module, true) == TN_OK;
}

static bool loses_its_gradients(void)
{
    return tn_module_zero_grad(deep.module) == TN_OK;
}

/* `refused`: it needs more than the small stack for certain. What needs less may succeed. */
static const struct attempt {
    const char *what;
    bool (*run)(void);
    bool refused;
} attempts[] = {
    { "call", calls, true },
    { "trace", traces, true },
    { "read", reads, true },
    { "copy", copies, true },
    { "load", takes_its_state, true },
    { "print", prints, true },
    { "spec", prints_its_spec, false },
    { "state", gives_its_state, false },
    { "convert", is_converted, false },
    { "walk", is_walked, false },
    { "train", changes_its_mode, false },
    { "zero_grad", loses_its_gradients, false },
};

static void *attempt_all(void *user)
{
    static char text[2048];

    (void)user;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts && failure == NULL; i++) {
        TN_SCOPE;
        const struct attempt *at = &attempts[i];
        uint64_t mark = tn_error_mark();
        bool done = at->run();

        tn_snprint(text, sizeof text, "%s: %s", at->what, tn_error_text());
        if (done ? at->refused
                 : strstr(text, "nested too deep for the stack of this thread") == NULL)
            failure = text;
        tn_error_restore(mark);
    }
    return NULL;
}

START_TEST(a_stack_that_is_too_small_is_an_error)
{
    TN_SCOPE;
    tn_tensor *y;

    if (TIMES > 1)
        return; /* with a sanitizer the innermost level needs more than what is kept for it */
    deep.module = nested("Sequential()", DEPTH);
    deep.x = tn_tensor_full(TN_SHAPE(1, 2), 1, TN_F32, NULL);
    deep.state = tn_module_state(deep.module);
    deep.spec = text_of(deep.module, tn_module_spec);
    ck_assert(deep.x != NULL && deep.state != NULL && deep.spec != NULL);
    y = tn_module_call(deep.module, deep.x);
    in_thread(SMALL, attempt_all, NULL);
    ck_assert_msg(failure == NULL, "%s", failure);
    ck_assert_int_eq(tn_equal(tn_module_call(deep.module, deep.x), y), true); /* as before */
    free(deep.spec);
    tn_state_drop(deep.state);
    tn_module_drop(deep.module);
}
END_TEST

START_TEST(one_level_more_is_refused)
{
    ck_assert_ptr_null(nested("Sequential()", DEPTH + 1));
    ck_assert_msg(strstr(tn_error_text(), "nested too deep; expected at most 1000 levels") != NULL,
                  "%s", tn_error_text());
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_deepest_nesting_fits_into_the_smallest_stack_that_is_documented,
        a_stack_that_is_too_small_is_an_error, one_level_more_is_refused, NULL
    };
    return suite_run("depth", tests);
}
