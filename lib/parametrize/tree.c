/* SPDX-License-Identifier: MIT
 *
 * Parametrizing all tensors of a tree that fit a pattern, and the state of the parametrizations
 * alone: adapters. */
#include "core/base/vector.h"
#include "lib/parametrize/parametrize.h"

#include <fnmatch.h>

/* ---- patterns -------------------------------------------------------------------------------- */

/* Returns whether a word of a pattern, "GLOB" or "TYPE:GLOB", fits a tensor. */
static bool word_fits(char *word, const char *type, const char *path)
{
    char *colon = strchr(word, ':');

    if (colon != NULL) {
        *colon = '\0';
        if (fnmatch(word, type, 0) != 0)
            return false;
        word = colon + 1;
    }
    return fnmatch(word, path, 0) == 0;
}

/* Returns 1 if one word of the pattern fits, 0 if none does, -1 if memory runs out. */
static int fits(const char *pattern, const char *type, const char *path)
{
    char *words = tn_strdup(pattern), *rest = words;
    int found = words != NULL ? 0 : -1;

    while (found == 0 && *(rest += strspn(rest, " ")) != '\0') {
        char *word = rest;
        rest += strcspn(rest, " ");
        if (*rest != '\0')
            *rest++ = '\0';
        found = word_fits(word, type, path);
    }
    tn_free(words);
    return found;
}

/* Returns whether a dotted path leads through a child `parametrizations`. */
static bool is_inside(const char *path)
{
    const char *word = TN__PARAMETRIZE_CHILD;
    size_t length = strlen(word);

    for (const char *at = path; (at = strstr(at, word)) != NULL; at += length)
        if ((at == path || at[-1] == '.') && (at[length] == '.' || at[length] == '\0'))
            return true;
    return false;
}

/* ---- the tensors of a tree ------------------------------------------------------------------- */

/* A function for a tensor of a module. */
typedef tn_status (*each_function)(void *user, tn_module *module, const char *name);

/* Calls `each` for the tensors in `slots` that fit. The slots may change during the calls. */
static tn_status each_slot(const tn__met *at, const tn__slots *slots, const char *pattern,
                           each_function each, void *user)
{
    char **names = tn_calloc((size_t)slots->count + 1, sizeof *names);
    int64_t count = 0;
    tn__text path = { 0 };
    tn_status status = names != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < slots->count && status == TN_OK; i++) {
        const tn__slot *slot = &slots->at[i];
        int found = 1;
        if (slot->computed == NULL && tn__is_none(slot->tensor))
            continue;
        if (slot->computed != NULL && tn__parametrize_list(at->module, slot->name) == NULL)
            continue;
        path.length = 0;
        tn__text_add(&path, "%s%s%s", at->path, at->path[0] != '\0' ? "." : "", slot->name);
        if (path.failed)
            status = tn_fail(TN_ERR_MEMORY, "module: out of memory for the path of a tensor");
        else if (pattern != NULL)
            found = fits(pattern, at->module->type, path.at);
        if (status == TN_OK && found > 0)
            names[count++] = tn_strdup(slot->name);
        if (status == TN_OK && (found < 0 || (found > 0 && names[count - 1] == NULL)))
            status = TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        status = each(user, at->module, names[i]);
        if (status != TN_OK)
            tn_error_prefix("\"%s%s%s\": ", at->path, at->path[0] != '\0' ? "." : "", names[i]);
    }
    for (int64_t i = 0; i < count; i++)
        tn_free(names[i]);
    tn_free(names);
    tn__text_free(&path);
    return status;
}

/* Calls `each` for all parametrized tensors that fit and, if `plain` is true, for all plain
 * parameters that fit. */
static tn_status each_tensor(tn_module *root, const char *pattern, bool plain, each_function each,
                             void *user)
{
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(root, TN_SLOT_CHILD, false, &walk);

    for (int64_t i = 0; i < walk.count && status == TN_OK; i++) {
        const tn__met *at = &walk.at[i];
        if (is_inside(at->path))
            continue;
        /* The computed slots first: parameters become such slots. */
        status = each_slot(at, &at->module->computed, pattern, each, user);
        if (status == TN_OK && plain)
            status = each_slot(at, &at->module->parameters, pattern, each, user);
    }
    tn__walk_free(&walk);
    return status;
}

/* ---- parametrizing --------------------------------------------------------------------------- */

struct adding {
    const char *text;
    tn__parametrize_step *at;
    int64_t count, capacity;
};

static tn_status add_one(void *user, tn_module *module, const char *name)
{
    struct adding *a = user;
    tn_module *parametrization;
    tn_status status;

    if (!tn__vector_room(&a->at, &a->capacity, a->count + 1, sizeof *a->at))
        return TN_ERR_MEMORY;
    parametrization = tn_module_parse(a->text);
    if (parametrization == NULL)
        return tn_error_last_code();
    status = tn__parametrize_step_begin(module, name, parametrization, 0, &a->at[a->count]);
    a->count += status == TN_OK;
    tn_module_drop(parametrization);
    return status;
}

int64_t tn_parametrize_parse_each(tn_module *root, const char *pattern, const char *text)
{
    struct adding a = { .text = text };
    tn_status status;

    if (root == NULL || pattern == NULL || text == NULL) {
        tn__error_null_of("tn_parametrize_each", "root, pattern, text", root, pattern, text);
        return -1;
    }
    status = each_tensor(root, pattern, true, add_one, &a);
    if (status == TN_OK && a.count == 0)
        status = tn_fail(TN_ERR_KEY,
                         "tn_parametrize_each: pattern: fits no parameter of %s, got %q; expected "
                         "dotted paths with * and ?, such as *.weight",
                         root->type, pattern);
    for (int64_t i = a.count - 1; i >= 0; i--)
        (status == TN_OK ? tn__parametrize_step_finish : tn__parametrize_step_undo)(&a.at[i]);
    tn_free(a.at);
    return status == TN_OK ? a.count : -1;
}

int64_t tn_parametrize_eachv(tn_module *root, const char *pattern, const char *format, va_list args)
{
    char *text;
    int64_t count;

    if (format == NULL) {
        tn_error_null("tn_parametrize_each: format");
        return -1;
    }
    text = tn__text_from_format(format, args);
    count = text != NULL ? tn_parametrize_parse_each(root, pattern, text) : -1;
    tn_free(text);
    return count;
}

int64_t tn_parametrize_each(tn_module *root, const char *pattern, const char *format, ...)
{
    va_list args;
    int64_t count;

    va_start(args, format);
    count = tn_parametrize_eachv(root, pattern, format, args);
    va_end(args);
    return count;
}

struct removing {
    int64_t count;
    bool keep_value;
};

static tn_status remove_one(void *user, tn_module *module, const char *name)
{
    struct removing *r = user;
    tn_status status = tn_parametrize_remove(module, name, r->keep_value);

    r->count += status == TN_OK;
    return status;
}

int64_t tn_parametrize_remove_each(tn_module *root, const char *pattern, bool keep_value)
{
    struct removing r = { 0, keep_value };

    if (root == NULL) {
        tn_error_null("tn_parametrize_remove_each: root");
        return -1;
    }
    return each_tensor(root, pattern, false, remove_one, &r) == TN_OK ? r.count : -1;
}

/* ---- the state of the parametrizations ------------------------------------------------------- */

/* Returns whether an entry of a state belongs to a parametrizing module:
 * ...parametrizations.NAME.INDEX.... */
static bool is_adapter(const char *key)
{
    const char *word = TN__PARAMETRIZE_CHILD ".";
    size_t length = strlen(word);

    for (const char *at = key; (at = strstr(at, word)) != NULL; at += length) {
        const char *index = at == key || at[-1] == '.' ? strchr(at + length, '.') : NULL;
        size_t digits = index != NULL ? strspn(index + 1, "0123456789") : 0;
        if (digits > 0 && index[1 + digits] == '.')
            return true;
    }
    return false;
}

tn_state *tn_parametrize_state(tn_module *root)
{
    tn_state *state;
    tn_status status = TN_OK;

    if (root == NULL) {
        tn_error_null("tn_parametrize_state: root");
        return NULL;
    }
    state = tn_module_state(root);
    for (int64_t i = state != NULL ? tn_state_count(state) : 0; i-- > 0 && status == TN_OK;)
        if (!is_adapter(tn_state_name(state, i)))
            status = tn_state_remove(state, tn_state_name(state, i));
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

tn_status tn_parametrize_load(tn_module *root, const tn_state *state)
{
    tn_state *all;
    tn_status status = TN_OK;

    if (root == NULL)
        return tn_error_null("tn_parametrize_load: root");
    if (state == NULL)
        return tn_failed() ? tn_error_code() : tn_error_null("tn_parametrize_load: state");
    all = tn_module_state(root);
    if (all == NULL)
        return tn_error_last_code();
    /* All other entries are those of the module itself. */
    for (int64_t i = tn_state_count(all); i-- > 0 && status == TN_OK;)
        if (is_adapter(tn_state_name(all, i)))
            status = tn_state_remove(all, tn_state_name(all, i));
    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++) {
        const char *key = tn_state_name(state, i);
        if (!is_adapter(key))
            status = tn_fail(TN_ERR_KEY,
                             "tn_parametrize_load: state: wrong entry, got %q, which belongs to no "
                             "parametrization; expected a state of tn_parametrize_state",
                             key);
        else
            status = tn_state_set_value(all, key, tn_state_value(state, i));
    }
    if (status == TN_OK)
        status = tn_module_load_report(root, all, TN_LOAD_STRICT | TN_LOAD_WHOLE, NULL);
    tn_state_drop(all);
    return status;
}
