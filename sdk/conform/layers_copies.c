/* SPDX-License-Identifier: MIT
 *
 * Checks deep copies of layers, for tenon check. A copy must have the same properties and hooks,
 * compute the same results, and share no memory with the original. */
#include "layers.h"

#include <stdlib.h>
#include <string.h>

typedef struct pair {
    const conform_subject *s;
    tn_module *module, *copy;
    tn_state *of, *of_copy; /* the tensors of each by path; a tied tensor has several paths */
} pair;

static tn_status compare_module(void *user, const tn_visit *what)
{
    const pair *p = user;
    tn_module *other = tn_module_find(p->copy, what->path);

    p->s->c->checks++;
    if (other == NULL)
        conform_layer_say(p->s, "deep copy: module `%s`: missing", what->path);
    else if (other == what->module)
        conform_layer_say(p->s, "deep copy: module `%s`: is the module of the original",
                          what->path);
    else if (strcmp(tn_module_type(other), tn_module_type(what->module)) != 0)
        conform_layer_say(p->s, "`%s` of a deep copy: wrong type, got %s; expected %s", what->path,
                          tn_module_type(other), tn_module_type(what->module));
    else if (tn_module_is_training(other) != tn_module_is_training(what->module))
        conform_layer_say(p->s, "`%s` of a deep copy: another mode", what->path);
    return TN_OK;
}

static bool compare_tensor(const conform_subject *s, const char *path, tn_tensor *from,
                           tn_tensor *copied)
{
    const tn_ints a = tn_tensor_shape(from), b = tn_tensor_shape(copied);

    s->c->checks++;
    if (copied == from)
        return conform_layer_say(s,
                                 "`%s` of a deep copy: the tensor of the original; expected "
                                 "another",
                                 path);
    if (tn_tensor_dtype(copied) != tn_tensor_dtype(from) ||
        tn_tensor_device(copied) != tn_tensor_device(from) || a.count != b.count ||
        memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) != 0) {
        char was[128], is[128];

        conform_shape_text(a.at, a.count, was, sizeof was);
        conform_shape_text(b.at, b.count, is, sizeof is);
        return conform_layer_say(s,
                                 "`%s` of a deep copy: wrong tensor, got %s%s on %s; expected %s%s "
                                 "on %s",
                                 path, tn_dtype_name(tn_tensor_dtype(copied)), is,
                                 tn_device_name(tn_tensor_device(copied)),
                                 tn_dtype_name(tn_tensor_dtype(from)), was,
                                 tn_device_name(tn_tensor_device(from)));
    }
    if (tn_tensor_is_parameter(copied) != tn_tensor_is_parameter(from) ||
        tn_tensor_requires_grad(copied) != tn_tensor_requires_grad(from))
        return conform_layer_say(s,
                                 "`%s` of a deep copy is not a parameter, or its requires_grad "
                                 "differs",
                                 path);
    return true;
}

/* Compares the order of the names, dtypes, shapes, flags and values, and checks that two names are
 * tied in the copy exactly if they are tied in the original. */
static bool same_tensors(const pair *p)
{
    bool well = conform_layer_same_state(p->s, p->of_copy, p->of, true, "a deep copy");

    for (int64_t i = 0; well && i < tn_state_count(p->of); i++) {
        tn_tensor *from = tn_state_tensor(p->of, i), *copied = tn_state_tensor(p->of_copy, i);

        well = compare_tensor(p->s, tn_state_name(p->of, i), from, copied);
        for (int64_t j = 0; well && j < i; j++)
            if ((tn_state_tensor(p->of, j) == from) != (tn_state_tensor(p->of_copy, j) == copied))
                well = conform_layer_say(
                    p->s,
                    "`%s` and `%s` of a deep copy are %s; this differs from the "
                    "original",
                    tn_state_name(p->of, j), tn_state_name(p->of, i),
                    tn_state_tensor(p->of, j) == from ? "two tensors" : "one tensor");
    }
    return well;
}

/* Compares the specs of module and copy. */
static bool same_words(const pair *p)
{
    char *one = conform_layer_printed(p->module, tn_module_spec);
    char *two = conform_layer_printed(p->copy, tn_module_spec);
    bool well = one != NULL && two != NULL && strcmp(one, two) == 0;

    p->s->c->checks++;
    if (!well)
        conform_layer_say(p->s, "a deep copy of %s prints %s", one != NULL ? one : "it",
                          two != NULL ? two : "nothing");
    free(one);
    free(two);
    return well;
}

static bool same(pair *p)
{
    bool well = same_words(p);

    if (tn_module_walk(
            p->module, TN_SLOT_CHILD,
            &(tn_walk_options){ .size = sizeof(tn_walk_options), .flags = TN_WALK_DUPLICATES },
            compare_module, p) != TN_OK ||
        tn_module_each_tensor(p->module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, true,
                              conform_layer_remember, p->of) != TN_OK ||
        tn_module_each_tensor(p->copy, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, true,
                              conform_layer_remember, p->of_copy) != TN_OK)
        well = conform_layer_say(p->s, "a deep copy cannot be walked: %s", tn_error_text());
    return well && p->s->c->verdict == CONFORM_PASS && same_tensors(p);
}

static bool load(const conform_subject *s, tn_module *module, const tn_state *state,
                 const char *what)
{
    return tn_module_load_state(module, state, true) == TN_OK ||
           conform_layer_say(s, "%s does not load a state: %s", what, tn_error_text());
}

/* Checks that writing to the copy does not change the original, and the reverse. */
static bool independent(const pair *p, tn_tensor *const *in, const conform_results *plain)
{
    const conform_subject *s = p->s;
    tn_state *before = conform_layer_state_times(p->module, 1);
    tn_state *more = conform_layer_state_times(p->module, 1.25);
    conform_results one, two;
    bool well = before != NULL && more != NULL;

    if (!well)
        conform_layer_say(s, "its state cannot be read: %s", tn_error_text());
    well = well && conform_layer_state_is(s, p->copy, before, "a deep copy") &&
           load(s, p->copy, more, "a deep copy") &&
           conform_layer_state_is(s, p->module, before,
                                  "loading a state into a deep copy changed the original") &&
           conform_layer_called(s, p->copy, in, &one, "of a deep copy that loaded a state") &&
           conform_layer_called(s, p->module, in, &two, "") &&
           conform_layer_all_near(s, &two, plain, 0,
                                  "after its deep copy loaded a state, the original") &&
           load(s, p->module, more, "the module") &&
           conform_layer_called(s, p->module, in, &two, "") &&
           conform_layer_all_near(s, &one, &two, 0,
                                  "a deep copy that loaded a state does not compute with it") &&
           load(s, p->module, before, "the module") &&
           conform_layer_called(s, p->copy, in, &two, "of a deep copy") &&
           conform_layer_all_near(s, &two, &one, 0,
                                  "after the original loaded a state, the deep copy");
    tn_state_drop(before);
    tn_state_drop(more);
    return well;
}

bool conform_layer_copies(const conform_subject *s, tn_module *module)
{
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    pair p = { s, module, NULL, tn_state_new(), tn_state_new() };
    conform_hook_counts counts;
    conform_results plain;
    bool well = conform_layer_inputs_with_grad(s, in);

    tn_module_train(module, false);
    {
        TN_HOOK_BLOCK(conform_layer_count_pre(module, &counts));
        TN_HOOK_BLOCK(conform_layer_count_after(module, &counts));
        TN_HOOK_BLOCK(conform_layer_count_back(module, &counts));
        p.copy = tn_module_copy(module);
    }
    if (p.copy == NULL)
        well = conform_layer_say(s, "the module cannot be copied: %s", tn_error_text());
    well = well && same(&p) && conform_layer_called(s, module, in, &plain, "") &&
           conform_layer_hooked(s, p.copy, in, &plain, &counts, "a deep copy") &&
           independent(&p, in, &plain);
    tn_module_drop(p.copy);
    tn_state_drop(p.of);
    tn_state_drop(p.of_copy);
    tn_module_train(module, !s->one->eval);
    tn_module_zero_grad(module);
    return well;
}
