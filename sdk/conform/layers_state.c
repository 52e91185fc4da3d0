/* SPDX-License-Identifier: MIT
 *
 * Compares and scales states of layers, for tenon check, and puts the tensors of one module into
 * the slots of another. Entries of a state are tensors; extra state may be any value. */
#include "layers.h"

#include <string.h>

static const char extra_name[] = "_extra_state";

/* Splits the path of an entry: writes the path of its module to `owner` ("" for the root) and
 * returns the name within the module. */
static const char *owner_of(const char *path, char *owner, size_t size)
{
    const char *dot = strrchr(path, '.');

    snprintf(owner, size, "%.*s", dot != NULL ? (int)(dot - path) : 0, path);
    return dot != NULL ? dot + 1 : path;
}

/* Returns true if an entry of a state is extra state, not a parameter or buffer. */
static bool is_extra(const char *path)
{
    char owner[512];

    return strcmp(owner_of(path, owner, sizeof owner), extra_name) == 0;
}

/* ---- comparing ---- */

/* Compares one entry of two states; tensors by their elements, other values as a whole. */
static bool same_entry(const conform_subject *s, const tn_state *got, const tn_state *expected,
                       int64_t i, bool values, const char *words)
{
    tn_value a = tn_state_value(got, i), b = tn_state_value(expected, i);

    if (a.kind == TN_VALUE_TENSOR && b.kind == TN_VALUE_TENSOR) {
        if (tn_tensor_numel(a.as.tensor) != tn_tensor_numel(b.as.tensor))
            return conform_layer_say(s, "%s: wrong size, got %lld elements; expected %lld", words,
                                     (long long)tn_tensor_numel(a.as.tensor),
                                     (long long)tn_tensor_numel(b.as.tensor));
        return !values || conform_layer_near(s, a.as.tensor, b.as.tensor, 0, words);
    }
    if (a.kind != b.kind)
        return conform_layer_say(s, "%s: wrong kind, got %u; expected %u", words, a.kind, b.kind);
    return !values || conform_same_value(a, b) || conform_layer_say(s, "%s: another value", words);
}

bool conform_layer_same_state(const conform_subject *s, const tn_state *got,
                              const tn_state *expected, bool values, const char *what)
{
    if (got == NULL || expected == NULL)
        return conform_layer_say(s, "%s: the state cannot be read: %s", what, tn_error_text());
    if (tn_state_count(got) != tn_state_count(expected))
        return conform_layer_say(s, "%s: state: wrong number of entries, got %lld; expected %lld",
                                 what, (long long)tn_state_count(got),
                                 (long long)tn_state_count(expected));
    for (int64_t i = 0; i < tn_state_count(got); i++) {
        char words[512];

        snprintf(words, sizeof words, "%s: `%s`", what, tn_state_name(expected, i));
        s->c->checks++;
        if (strcmp(tn_state_name(got, i), tn_state_name(expected, i)) != 0)
            return conform_layer_say(
                s, "%s: state: entry %lld: wrong name, got `%s`; expected `%s`", what, (long long)i,
                tn_state_name(got, i), tn_state_name(expected, i));
        if (!same_entry(s, got, expected, i, values, words))
            return false;
    }
    return true;
}

bool conform_layer_state_is(const conform_subject *s, tn_module *module, const tn_state *expected,
                            const char *what)
{
    tn_state *now = tn_module_state(module);
    bool well = conform_layer_same_state(s, now, expected, true, what);

    tn_state_drop(now);
    return well;
}

/* ---- making ---- */

/* Copies an entry to the state `own`. Tensors are cloned, also in extra state, because a later call
 * must not change the copy. */
static tn_status put_copy(tn_state *own, const char *name, tn_value value, double factor)
{
    tn_tensor *t, *copy;

    if (value.kind != TN_VALUE_TENSOR || value.as.tensor == TN_NONE)
        return tn_state_set_value(own, name, value);
    t = value.as.tensor;
    copy = is_float(tn_tensor_dtype(t)) && !is_extra(name) ? tn_mul_scalar(t, factor) : tn_clone(t);
    return copy != NULL ? tn_state_set(own, name, copy) : TN_ERR_RUNTIME;
}

tn_state *conform_layer_state_times(tn_module *module, double factor)
{
    tn_state *state = tn_module_state(module), *own = tn_state_new();
    bool well = state != NULL && own != NULL;

    tn_grad_begin(false);
    for (int64_t i = 0; well && i < tn_state_count(state); i++)
        well = put_copy(own, tn_state_name(state, i), tn_state_value(state, i), factor) == TN_OK;
    for (int64_t i = 0; well && i < tn_state_version_count(state); i++) {
        const char *path = tn_state_version_path(state, i);

        well = tn_state_set_version(own, path, tn_state_version(state, path)) == TN_OK;
    }
    tn_grad_end();
    tn_state_drop(state);
    if (!well) {
        tn_state_drop(own);
        own = NULL;
    }
    return own;
}

tn_status conform_layer_remember(void *user, const char *path, tn_tensor *tensor)
{
    tn_state *state = user;
    (void)path;
    return tn_state_set(state, path, tensor);
}

/* ---- other tensors in the slots ---- */

static bool replace_one(const conform_subject *s, tn_module *module, const char *path,
                        tn_tensor *value)
{
    char holder[512];
    const char *name = owner_of(path, holder, sizeof holder);
    tn_tensor *old = tn_module_find_tensor(module, path), *fresh = tn_clone(tn_detach(value));

    if (old == NULL || fresh == NULL)
        return conform_layer_say(s, "`%s` cannot be replaced: %s", path, tn_error_text());
    if (tn_tensor_is_parameter(old))
        fresh = tn_parameter(fresh, tn_tensor_requires_grad(old));
    return tn_module_set(tn_module_find(module, holder), name, fresh) == TN_OK ||
           conform_layer_say(s, "`%s` cannot be replaced: %s", path, tn_error_text());
}

static bool replace_extra(const conform_subject *s, tn_module *module, const char *path,
                          tn_value value)
{
    char holder[512];

    owner_of(path, holder, sizeof holder);
    if (tn_module_set_extra_state(tn_module_find(module, holder), value) == TN_OK)
        return true;
    if (tn_error_code() != TN_ERR_NOT_IMPLEMENTED)
        return conform_layer_say(s, "`%s` cannot be set again: %s", path, tn_error_text());
    tn_error_clear(); /* a layer may return extra state but not accept it */
    return true;
}

bool conform_layer_replace_slots(const conform_subject *s, tn_module *module, tn_module *from)
{
    tn_state *slots = tn_state_new(), *state = tn_module_state(from);
    bool well = slots != NULL && state != NULL &&
                tn_module_each_tensor(from, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, true,
                                      conform_layer_remember, slots) == TN_OK;

    if (!well)
        conform_layer_say(s, "its tensors cannot be walked: %s", tn_error_text());
    for (int64_t i = 0; well && i < tn_state_count(slots); i++)
        well = replace_one(s, module, tn_state_name(slots, i), tn_state_tensor(slots, i));
    for (int64_t i = 0; well && i < tn_state_count(state); i++)
        if (is_extra(tn_state_name(state, i)))
            well = replace_extra(s, module, tn_state_name(state, i), tn_state_value(state, i));
    tn_state_drop(slots);
    tn_state_drop(state);
    return well;
}
