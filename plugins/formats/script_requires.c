/* SPDX-License-Identifier: MIT
 *
 * The operators that a script needs (script.h): whether they are here, and the decompositions of
 * those that are not. */
#include "script.h"

#include <string.h>

struct requires
{
    const char *path; /* of the file */
    const tn_state *state;
    tn_state *operators; /* revisions, decompositions */
};

static tn_status wrong(const struct requires *r, const char *what, const char *expected)
{
    return tn_fail(TN_ERR_FORMAT, "%s: script: %s: missing or wrong; expected %s", r->path, what,
                   expected);
}

json_t *script_parse(const char *path, const tn_state *state, const char *key)
{
    const char *text = tn_state_meta(state, key);
    json_error_t error;
    json_t *value = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL;

    if (text == NULL)
        tn_fail(TN_ERR_FORMAT, "%s: script: %s: missing; expected a text in the metadata", path,
                key);
    else if (value == NULL)
        tn_fail(TN_ERR_FORMAT, "%s: script: %s: byte %d: %s", path, key, error.position,
                error.text);
    return value;
}

/* Returns whether the file has decompositions of an operator. */
static bool is_decomposed(const struct requires *r, const char *name)
{
    size_t length = strlen(name);

    for (int64_t i = 0; i < tn_state_count(r->operators); i++) {
        const char *key = tn_state_name(r->operators, i);

        if (strncmp(key, name, length) == 0 && (key[length] == '[' || key[length] == '('))
            return true;
    }
    return false;
}

/* Checks that there is an operator in this revision, or a decomposition of it. *missing becomes
 * true if there is no such operator. `inner`: checks only operators that only decompositions call;
 * otherwise only all others. */
static tn_status check_operator(const struct requires *r, const char *name, const json_t *row,
                                const json_t *plugins, bool inner, bool *missing)
{
    const json_t *revision = json_array_get(row, 0);
    const char *plugin = json_string_value(json_array_get(row, 1)), *version;
    uint64_t mark = tn_error_mark();
    const tn_op *op;
    tn_status status;

    if (!json_is_integer(revision) || plugin == NULL || json_integer_value(revision) < 1 ||
        json_integer_value(revision) > UINT32_MAX)
        return wrong(r, "operators", "a revision and a plugin for each");
    if (json_is_true(json_array_get(row, 2)) != inner)
        return TN_OK;
    status = tn_state_set_value(r->operators, name, tn_value_int(json_integer_value(revision)));
    if (status != TN_OK || tn_op_find(name, (uint32_t)json_integer_value(revision)) != NULL)
        return status;
    if (tn_error_code() == TN_ERR_MEMORY)
        return TN_ERR_MEMORY;
    tn_error_restore(mark);
    *missing = true;
    if (is_decomposed(r, name))
        return TN_OK;
    version = json_string_value(json_object_get(plugins, plugin));
    op = tn_op_find(name, 0);
    if (op == NULL) {
        tn_error_restore(mark);
        return tn_fail(TN_ERR_KEY,
                       "%s: script: operator %q: no plugin provides it; expected plugin %q%s%s, "
                       "which had it when the script was saved (tenon plugins lists those that "
                       "were found)",
                       r->path, name, plugin, version != NULL ? " " : "",
                       version != NULL ? version : "");
    }
    return tn_fail(TN_ERR_VERSION,
                   "%s: script: operator %q: wrong revision, got %lld; expected %lld, of plugin "
                   "%q%s%s",
                   r->path, name, (long long)tn_op_definition(op)->revision,
                   (long long)json_integer_value(revision), plugin, version != NULL ? " " : "",
                   version != NULL ? version : "");
}

/* Takes the decompositions from the file. */
static tn_status add_functions(const struct requires *r)
{
    json_t *all = tn_state_meta(r->state, SCRIPT_FUNCTIONS) != NULL
                      ? script_parse(r->path, r->state, SCRIPT_FUNCTIONS)
                      : json_array();
    tn_status status = all != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && !json_is_array(all))
        status = wrong(r, SCRIPT_FUNCTIONS, "a list");
    for (size_t i = 0; i < json_array_size(all) && status == TN_OK; i++) {
        const char *key, *text;
        json_error_t error;

        if (json_unpack_ex(json_array_get(all, i), &error, JSON_STRICT, "[ss]", &key, &text) != 0)
            status = tn_fail(TN_ERR_FORMAT, "%s: script: %s: %s", r->path, SCRIPT_FUNCTIONS,
                             error.text);
        else if (strpbrk(key, "[(") == NULL)
            status = wrong(r, SCRIPT_FUNCTIONS, "operator[options](types) for each");
        else if (tn_state_find(r->operators, key) >= 0) {
            status = tn_fail(TN_ERR_FORMAT,
                             "%s: script: decomposition %q: given twice; expected once", r->path,
                             key);
        } else
            status = tn_state_set_value(r->operators, key, tn_value_string(text));
    }
    json_decref(all);
    return status;
}

/* Checks the operators before the graphs are read, to name the plugin of one that is missing. */
tn_status script_check_requires(const char *path, const tn_state *state, tn_state *operators)
{
    const struct requires requires = { path, state, operators }, *r = &requires;
    json_t *all = script_parse(r->path, r->state, SCRIPT_REQUIRES), *row;
    const json_t *plugins = json_object_get(all, "plugins");
    json_t *rows = json_object_get(all, "operators");
    tn_status status = all != NULL ? add_functions(r) : tn_error_last_code();
    bool missing = false;
    const char *name;

    if (status == TN_OK && !json_is_object(rows))
        status = wrong(r, SCRIPT_REQUIRES, "an object with operators");
    for (int inner = 0; inner < (missing ? 2 : 1) && status == TN_OK; inner++)
        json_object_foreach(rows, name, row)
        {
            status = check_operator(r, name, row, plugins, inner == 1, &missing);
            if (status != TN_OK)
                break;
        }
    json_decref(all);
    return status;
}
