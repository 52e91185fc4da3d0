/* SPDX-License-Identifier: MIT
 *
 * The lists of rules: finding one, and reading its arguments. */
#include "rules_bound.h"

#include <string.h>

static const struct rule *const lists[] = {
    rules_table, rules_layers, rules_arithmetic, rules_views,  rules_parts, rules_index,
    rules_make,  rules_norm,   rules_products,   rules_reduce, rules_rnn,   rules_numbers,
};

enum { LISTS = sizeof lists / sizeof *lists };

const struct rule *rules_at(int64_t index)
{
    for (int i = 0; i < LISTS; i++)
        for (const struct rule *rule = lists[i]; rule->function != NULL; rule++)
            if (index-- == 0)
                return rule;
    return NULL;
}

size_t rules_name_length(const struct rule *rule)
{
    return strcspn(rule->function, "(");
}

static const struct rule *find_name(const char *name, size_t length)
{
    for (int i = 0; i < LISTS; i++)
        for (const struct rule *rule = lists[i]; rule->function != NULL; rule++)
            if (rules_name_length(rule) == length && memcmp(rule->function, name, length) == 0)
                return rule;
    return NULL;
}

/* The length of a name without its overload: "aten.add" of "aten.add.Tensor". */
static size_t base_length(const char *name)
{
    const char *first = strchr(name, '.'), *second = first != NULL ? strchr(first + 1, '.') : NULL;

    return second != NULL ? (size_t)(second - name) : strlen(name);
}

static const struct rule *find_overloads(const char *name)
{
    const struct rule *rule = find_name(name, strlen(name));

    return rule != NULL ? rule : find_name(name, base_length(name));
}

const struct rule *rules_find(const char *function, bool *in_place)
{
    const struct rule *rule = find_overloads(function);
    size_t base = base_length(function);
    char name[256];

    *in_place = false;
    if (rule != NULL || base < 2 || base >= sizeof name || strlen(function) >= sizeof name ||
        function[base - 1] != '_' || function[base - 2] == '_')
        return rule;
    tn_snprint(name, sizeof name, "%.*s%s", (int)base - 1, function, function + base);
    *in_place = true;
    return find_overloads(name);
}

bool rules_is_ignored(const char *argument)
{
    static const char *const names[] = { "device", "layout", "memory_format", "pin_memory",
                                         "non_blocking" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(argument, names[i]) == 0)
            return true;
    return false;
}

static tn_status malformed(const struct rule *rule, const char *at)
{
    return tn_fail(TN_ERR_RUNTIME,
                   "rule %q: arguments: malformed at %q; expected NAME or "
                   "NAME=DEFAULT, separated by commas, in parentheses",
                   rule->function, at);
}

static tn_status read_argument(const struct rule *rule, const char **at, struct arena *arena,
                               struct rules_argument *out)
{
    size_t length = strcspn(*at, "=,) ");

    out->name = arena_text(arena, *at, length);
    if (out->name == NULL)
        return TN_ERR_MEMORY;
    *at += length;
    out->required = **at != '=';
    out->value = tn_value_none();
    if (length == 0)
        return malformed(rule, *at);
    if (out->required)
        return TN_OK;
    ++*at;
    out->unused = **at == '*';
    if (out->unused)
        ++*at;
    return out->unused ? TN_OK : rules_literal_read(at, arena, &out->value);
}

static tn_status read_arguments(struct rules_bound *bound, struct arena *arena)
{
    const struct rule *rule = bound->rule;
    const char *at = rule->function + rules_name_length(rule);

    if (*at++ != '(')
        return malformed(rule, rule->function);
    for (at += strspn(at, " "); *at != ')'; at += strspn(at, " ")) {
        tn_status status = bound->count < RULES_ARGUMENTS ? TN_OK : malformed(rule, at);

        if (status == TN_OK)
            status = read_argument(rule, &at, arena, &bound->arguments[bound->count]);
        if (status != TN_OK)
            return status;
        bound->names[bound->count] = bound->arguments[bound->count].name;
        bound->count++;
        if (*at != ',' && *at != ')')
            return malformed(rule, at);
        at += *at == ',';
    }
    return at[1] == '\0' ? TN_OK : malformed(rule, at);
}

static tn_status find_mode(struct rules_bound *bound)
{
    bound->mode = -1;
    if (bound->rule->mode == NULL)
        return TN_OK;
    for (int64_t i = 0; i < bound->count; i++)
        if (strcmp(bound->names[i], bound->rule->mode) == 0)
            bound->mode = i;
    return bound->mode >= 0 ? TN_OK
                            : tn_fail(TN_ERR_RUNTIME, "rule %q: mode: no such argument, got %q",
                                      bound->rule->function, bound->rule->mode);
}

tn_status rules_bind(const struct rule *rule, struct arena *arena, struct rules_bound *bound)
{
    tn_status status;

    *bound = (struct rules_bound){ .rule = rule };
    bound->arguments = arena_new(arena, RULES_ARGUMENTS, sizeof *bound->arguments);
    bound->names = arena_new(arena, RULES_ARGUMENTS, sizeof *bound->names);
    if (bound->arguments == NULL || bound->names == NULL)
        return TN_ERR_MEMORY;
    status = read_arguments(bound, arena);
    if (status == TN_OK)
        status = find_mode(bound);
    if (status == TN_OK && rule->text != NULL)
        status = rules_text_read(bound, arena);
    return status;
}
