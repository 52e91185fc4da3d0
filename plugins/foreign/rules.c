/* SPDX-License-Identifier: MIT
 *
 * The lists of rules: finding one, and reading its arguments. */
#include "rules_bound.h"

#include "onnx/onnx_rules.h"

#include <string.h>

#define LIST(rows)                                                                                 \
    {                                                                                              \
        sizeof(tn_rule_def), 0, rows                                                               \
    }

static const tn_rule_list aten_lists[] = {
    LIST(rules_table),    LIST(rules_layers), LIST(rules_arithmetic), LIST(rules_views),
    LIST(rules_parts),    LIST(rules_index),  LIST(rules_make),       LIST(rules_norm),
    LIST(rules_products), LIST(rules_reduce), LIST(rules_rnn),        LIST(rules_numbers),
};

static const tn_rule_list onnx_lists[] = {
    LIST(onnx_rules_elements),  LIST(onnx_rules_numbers),   LIST(onnx_rules_shapes),
    LIST(onnx_rules_parts),     LIST(onnx_rules_index),     LIST(onnx_rules_reduce),
    LIST(onnx_rules_windows),   LIST(onnx_rules_resize),    LIST(onnx_rules_layers),
    LIST(onnx_rules_attention), LIST(onnx_rules_vision),    LIST(onnx_rules_signal),
    LIST(onnx_rules_training),  LIST(onnx_rules_recurrent), LIST(onnx_rules_quantized),
    LIST(onnx_rules_sequences),
};

static const struct rules_dialect dialects[] = {
    [RULES_ATEN] = { "aten", aten_lists, sizeof aten_lists / sizeof *aten_lists, true,
                     "docs/guides/from-pytorch.md" },
    [RULES_ONNX] = { "onnx", onnx_lists, sizeof onnx_lists / sizeof *onnx_lists, false,
                     "docs/guides/from-onnx.md" },
};

/* ---- lists ----------------------------------------------------------------------------------- */

static tn_status add_list(struct rules_set *set, const tn_rule_list *list)
{
    const tn_rule_list **more;

    if (set->count == set->capacity) {
        set->capacity = 2 * set->capacity + 32;
        more = tn_realloc(set->lists, (size_t)set->capacity * sizeof *more);
        if (more == NULL)
            return TN_ERR_MEMORY;
        set->lists = more;
    }
    set->lists[set->count++] = list;
    return TN_OK;
}

/* Adds the rules of another plugin, if it has such. */
static tn_status add_plugin(struct rules_set *set, const char *plugin)
{
    char id[300];
    const tn_interface_need need = { id, 0, 0, (uint32_t)sizeof(tn_rule_list), 0 };
    const tn_rule_list *list;
    uint64_t mark = tn_error_mark();

    tn_snprint(id, sizeof id, "%s.rules.%s", plugin, set->dialect->name);
    list = tn_interface_find(NULL, &need, NULL);
    if (list == NULL && tn_error_last_code() != TN_ERR_KEY)
        return tn_error_prefix("rules of the plugin %s: ", plugin);
    if (list == NULL) {
        tn_error_restore(mark);
        return TN_OK;
    }
    if (list->row_size != sizeof(tn_rule_def) || list->reserved != 0 || list->rows == NULL)
        return tn_fail(TN_ERR_VERSION,
                       "interface %q: compiled against another draft, rows of %u bytes; expected "
                       "%zu: compile it again",
                       id, list->row_size, sizeof(tn_rule_def));
    return add_list(set, list);
}

tn_status rules_set_open(struct rules_set *set, enum rules_of of)
{
    tn_status status = TN_OK;
    int64_t plugins = tn_plugin_count();

    *set = (struct rules_set){ .dialect = &dialects[of] };
    for (int64_t i = 0; i < set->dialect->count && status == TN_OK; i++)
        status = add_list(set, &set->dialect->lists[i]);
    set->own = set->count;
    for (int64_t i = 0; i < plugins && status == TN_OK; i++) {
        tn_plugin_report report;

        status = tn_plugin_report_at(i, &report);
        if (status == TN_OK && report.outcome == TN_OUTCOME_OK && report.id[0] != '\0')
            status = add_plugin(set, report.id);
    }
    return status;
}

void rules_set_close(struct rules_set *set)
{
    tn_free(set->lists);
    *set = (struct rules_set){ .dialect = set->dialect };
}

/* ---- finding --------------------------------------------------------------------------------- */

static size_t name_length(const tn_rule_def *rule)
{
    return strcspn(rule->function, "(");
}

/* Of the rows with this name that with the largest version up to `version`. */
static const tn_rule_def *find_among(const struct rules_set *set, int64_t first, int64_t end,
                                     const char *name, size_t length, int64_t version)
{
    const tn_rule_def *found = NULL;

    for (int64_t i = first; i < end; i++)
        for (const tn_rule_def *rule = set->lists[i]->rows; rule->function != NULL; rule++)
            if (name_length(rule) == length && memcmp(rule->function, name, length) == 0 &&
                rule->since <= version && (found == NULL || rule->since > found->since))
                found = rule;
    return found;
}

/* Tenon's own rules come first, then those of each plugin. */
static const tn_rule_def *find_name(const struct rules_set *set, const char *name, size_t length,
                                    int64_t version)
{
    const tn_rule_def *rule = find_among(set, 0, set->own, name, length, version);

    for (int64_t i = set->own; i < set->count && rule == NULL; i++)
        rule = find_among(set, i, i + 1, name, length, version);
    return rule;
}

/* The length of a name without its overload: "aten.add" of "aten.add.Tensor". */
static size_t base_length(const char *name)
{
    const char *first = strchr(name, '.'), *second = first != NULL ? strchr(first + 1, '.') : NULL;

    return second != NULL ? (size_t)(second - name) : strlen(name);
}

static const tn_rule_def *find_overloads(const struct rules_set *set, const char *name)
{
    const tn_rule_def *rule = find_name(set, name, strlen(name), 0);

    return rule != NULL ? rule : find_name(set, name, base_length(name), 0);
}

const tn_rule_def *rules_find(const struct rules_set *set, const char *function, int64_t version,
                              bool *in_place)
{
    const tn_rule_def *rule;
    size_t base = base_length(function);
    char name[256];

    *in_place = false;
    if (!set->dialect->overloads)
        return find_name(set, function, strlen(function), version);
    rule = find_overloads(set, function);
    if (rule != NULL || base < 2 || base >= sizeof name || strlen(function) >= sizeof name ||
        function[base - 1] != '_' || function[base - 2] == '_')
        return rule;
    tn_snprint(name, sizeof name, "%.*s%s", (int)base - 1, function, function + base);
    *in_place = true;
    return find_overloads(set, name);
}

bool rules_is_ignored(const char *argument)
{
    static const char *const names[] = { "device",     "layout",       "memory_format",
                                         "pin_memory", "non_blocking", "consumed_inputs" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(argument, names[i]) == 0)
            return true;
    return false;
}

static tn_status malformed(const tn_rule_def *rule, const char *at)
{
    return tn_fail(TN_ERR_RUNTIME,
                   "rule %q: arguments: malformed at %q; expected NAME or "
                   "NAME=DEFAULT, separated by commas, in parentheses",
                   rule->function, at);
}

static tn_status read_argument(const tn_rule_def *rule, const char **at, struct arena *arena,
                               struct rules_argument *out)
{
    size_t length;

    out->rest = **at == '*';
    *at += out->rest;
    length = strcspn(*at, "=,) ");
    out->name = arena_text(arena, *at, length);
    if (out->name == NULL)
        return TN_ERR_MEMORY;
    *at += length;
    out->required = !out->rest && **at != '=';
    out->value = tn_value_none();
    if (length == 0 || (out->rest && **at == '='))
        return malformed(rule, *at);
    if (out->required || out->rest)
        return TN_OK;
    ++*at;
    out->unused = **at == '*';
    if (out->unused)
        ++*at;
    return out->unused ? TN_OK : rules_literal_read(at, arena, &out->value);
}

static tn_status read_arguments(struct rules_bound *bound, struct arena *arena)
{
    const tn_rule_def *rule = bound->rule;
    const char *at = rule->function + name_length(rule);

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

tn_status rules_bind(const tn_rule_def *rule, struct arena *arena, struct rules_bound *bound)
{
    tn_status status;

    if (rule->text == NULL && rule->call == NULL)
        return tn_fail(TN_ERR_RUNTIME, "rule %q: neither text nor call; expected one of them",
                       rule->function);
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
