/* SPDX-License-Identifier: MIT
 *
 * Checks, for tenon check, that modules do not leak, do not keep their inputs, and can initialize
 * their parameters again. */
#include "layers.h"

#include <stdlib.h>
#include <string.h>

/* ---- leaks ---- */

static bool live_once(const conform_subject *s)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    tn_module *module = conform_layer_build(s);
    conform_results out;
    bool well = module != NULL && conform_layer_inputs_with_grad(s, in) &&
                conform_layer_called(s, module, in, &out,
                                     "in a module that is dropped afterwards") &&
                conform_layer_called(s, module, in, &out, "the second time");

    tn_module_drop(module);
    tn_scope_end(scope);
    return well;
}

/* Counts blocks of memory in use, after the device is idle: a queue holds memory until its work is
 * done. */
static bool count_blocks(const conform_subject *s, tn_memory_stats *device, int64_t *host)
{
    if (tn_device_sync(s->device) != TN_OK || tn_device_memory(s->device, device) != TN_OK)
        return conform_layer_say(s, "after it was dropped: %s", tn_error_text());
    *host = conform_memory_blocks();
    return true;
}

/* Checks that rounds of building, calling and dropping a module do not increase the memory in use.
 * The first rounds are not counted, because they may fill caches. */
static bool leaks(const conform_subject *s)
{
    enum { ROUNDS = 7, FIRST = 3 };
    tn_memory_stats before = { 0 }, after = { 0 };
    int64_t host_before = 0, host_after = 0, blocks, tensors;

    for (int round = 0; round < ROUNDS; round++) {
        if (round == FIRST && !count_blocks(s, &before, &host_before))
            return false;
        if (!live_once(s))
            return false;
    }
    if (!count_blocks(s, &after, &host_after))
        return false;
    blocks = host_after - host_before;
    tensors = after.live_blocks - before.live_blocks;
    s->c->checks++;
    if (tensors >= ROUNDS - FIRST)
        return conform_layer_say(s,
                                 "a leak: %lld tensors stay after %d modules were built, called "
                                 "and dropped",
                                 (long long)tensors, ROUNDS - FIRST);
    return blocks < ROUNDS - FIRST ||
           conform_layer_say(s,
                             "a leak: %lld blocks of memory stay after %d modules were built, "
                             "called and dropped",
                             (long long)blocks, ROUNDS - FIRST);
}

/* ---- inputs ---- */

typedef struct watched {
    tn_dlpack own;   /* the first member: note_freed() casts its address to watched */
    tn_dlpack *real; /* the export of the original tensor */
    bool *freed;
} watched;

static void note_freed(tn_dlpack *own)
{
    watched *w = (watched *)(void *)own;

    *w->freed = true;
    w->real->deleter(w->real);
    free(w);
}

/* Returns a tensor with the memory of `tensor` that sets `freed` when its last owner drops it.
 * Returns NULL if the device does not support DLPack. */
static tn_tensor *watch(tn_tensor *tensor, bool *freed)
{
    watched *w = calloc(1, sizeof *w);
    tn_tensor *made = NULL;

    if (w != NULL)
        w->real = tn_tensor_to_dlpack(tensor, NULL);
    if (w == NULL || w->real == NULL) {
        free(w);
        tn_error_clear();
        return NULL;
    }
    w->own = *w->real;
    w->own.deleter = note_freed;
    w->freed = freed;
    made = tn_tensor_from_dlpack(&w->own);
    if (made == NULL) {
        w->real->deleter(w->real);
        free(w);
        tn_error_clear();
    }
    return made;
}

/* Checks that a module does not keep its inputs: when the results of a call without gradients are
 * dropped, the inputs must be freed. */
static bool keeps_inputs(const conform_subject *s, tn_module *module)
{
    bool freed[CONFORM_LAYER_INPUTS] = { false }, seen[CONFORM_LAYER_INPUTS] = { false };
    uint64_t scope = tn_scope_begin();
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    conform_results out;
    bool well = conform_layer_inputs(s, s->dtype, in);

    for (int64_t i = 0; well && i < s->one->n_in; i++) {
        tn_tensor *one = watch(in[i], &freed[i]);

        seen[i] = one != NULL;
        in[i] = one != NULL ? one : in[i];
    }
    tn_grad_begin(false);
    well = well && conform_layer_called(s, module, in, &out, "with inputs imported through DLPack");
    tn_grad_end();
    tn_scope_end(scope);
    for (int64_t i = 0; well && i < s->one->n_in; i++, s->c->checks++)
        if (seen[i] && !freed[i])
            well = conform_layer_say(s, "input %d: still in use after the call and its results",
                                     (int)i);
    return well;
}

/* ---- initializing again ---- */

static const double marked = 12345;

/* Sets all elements of a float tensor to a number that no init produces. */
static bool put_marks(tn_tensor *t)
{
    int64_t count = tn_tensor_numel(t);
    double *wide = malloc((size_t)(count + 1) * sizeof *wide);
    float *narrow = malloc((size_t)(count + 1) * sizeof *narrow);
    bool well = wide != NULL && narrow != NULL;

    for (int64_t i = 0; well && i < count; i++) {
        wide[i] = marked;
        narrow[i] = (float)marked;
    }
    if (well && tn_tensor_dtype(t) == TN_F64)
        well = tn_tensor_copy_in(t, wide, (size_t)count * sizeof *wide) == TN_OK;
    else if (well && tn_tensor_dtype(t) == TN_F32)
        well = tn_tensor_copy_in(t, narrow, (size_t)count * sizeof *narrow) == TN_OK;
    else
        well = false;
    free(wide);
    free(narrow);
    return well;
}

static bool has_marks(tn_tensor *t)
{
    int64_t count = 0;
    double *values = conform_values(t, &count);
    bool same = values != NULL && count > 0;

    for (int64_t i = 0; same && i < count; i++)
        same = values[i] == marked;
    free(values);
    return same;
}

/* Checks one module of the tree: if it supports reset, then reset must initialize all its
 * parameters. */
static tn_status reset_one(void *user, const char *path, tn_module *module)
{
    const conform_subject *s = user;
    tn_state *own = tn_state_new();
    bool given = own != NULL && tn_module_each_tensor(module, TN_SLOT_PARAMETER, false,
                                                      conform_layer_remember, own) == TN_OK;

    (void)path;
    tn_grad_begin(false);
    for (int64_t i = 0; given && i < tn_state_count(own); i++)
        if (strchr(tn_state_name(own, i), '.') == NULL)
            put_marks(tn_state_tensor(own, i));
    if (given && tn_module_reset_parameters(module) != TN_OK) {
        if (tn_error_code() != TN_ERR_ATTR)
            conform_layer_say(s, "reset: %s", tn_error_text());
        given = false;
        tn_error_clear();
    }
    tn_grad_end();
    for (int64_t i = 0; given && i < tn_state_count(own); i++, s->c->checks++)
        if (strchr(tn_state_name(own, i), '.') == NULL && has_marks(tn_state_tensor(own, i)))
            conform_layer_say(s, "reset: leaves `%s` as it was", tn_state_name(own, i));
    tn_state_drop(own);
    return TN_OK;
}

static bool resets(const conform_subject *s)
{
    tn_module *module = conform_layer_build(s);
    bool well = module != NULL &&
                tn_module_each(module, true, reset_one, (void *)(uintptr_t)s) == TN_OK;

    tn_module_drop(module);
    return well && s->c->verdict == CONFORM_PASS;
}

/* Checks that a module built twice with the same random numbers has the same parameters. */
static bool is_made_again(const conform_subject *s)
{
    tn_module *both[2];
    tn_state *parameters[2];
    bool well = true;

    for (int i = 0; i < 2; i++) {
        tn_random_seed(s->c->plugin->options->seed + 2);
        both[i] = conform_layer_build(s);
        parameters[i] = tn_state_new();
        well = well && both[i] != NULL && parameters[i] != NULL &&
               tn_module_each_tensor(both[i], TN_SLOT_PARAMETER, false, conform_layer_remember,
                                     parameters[i]) == TN_OK;
    }
    well = well && conform_layer_same_state(s, parameters[1], parameters[0], true,
                                            "an instance built from the same random numbers");
    for (int i = 0; i < 2; i++) {
        tn_state_drop(parameters[i]);
        tn_module_drop(both[i]);
    }
    return well;
}

bool conform_layer_lives(const conform_subject *s, tn_module *module)
{
    return keeps_inputs(s, module) && is_made_again(s) && resets(s) && leaks(s);
}
