/* SPDX-License-Identifier: MIT
 *
 * Programs: their memory, and the rules of their functions. */
#include "program.h"

#include "names.h"

#include <stdatomic.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

struct program *program_new(const char *path)
{
    struct program *program = tn_calloc(1, sizeof *program);

    if (program == NULL)
        return NULL;
    atomic_init(&program->references, 1);
    program->path = arena_text(&program->arena, path, strlen(path));
    program->files = tn_state_new();
    if (program->path != NULL && program->files != NULL)
        return program;
    program_drop(program);
    return NULL;
}

void program_keep(struct program *program)
{
    atomic_fetch_add(&program->references, 1);
}

void program_drop(struct program *program)
{
    if (program == NULL || atomic_fetch_sub(&program->references, 1) > 1)
        return;
    programs_remove(program);
    for (int64_t i = 0; i < program->n_slots; i++)
        tn_tensor_drop(program->slots[i].tensor);
    tn_state_drop(program->files);
    tn_free(program->text);
    arena_free(&program->arena);
    tn_free(program);
}

/* ---- what no rule takes ---------------------------------------------------------------------- */

enum { MISSING = 100 }; /* functions and arguments that are counted, at most */

/* Functions without a rule, and arguments that no rule takes, each with the number of its calls. */
struct missing {
    struct names names;
    struct arena arena;
    struct {
        const char *text;
        int64_t calls;
    } rows[MISSING];
    int64_t count;
};

/* The rule of a function: looked for once. */
struct found {
    const tn_rule_def *rule; /* NULL: none */
    int64_t version;
    bool in_place;
};

struct binding {
    struct program *program;
    struct missing missing;
    struct rules_set rules;
    struct names functions; /* numbers in `found` */
    struct found *found;
    int64_t count, capacity;
};

static tn_status add_missing(struct missing *missing, const char *function, const char *argument)
{
    char text[400];
    char *copy;
    int64_t at;

    tn_snprint(text, sizeof text, argument != NULL ? "%.250s with %.100s" : "%.250s", function,
               argument);
    at = names_find(&missing->names, text);
    if (at >= 0) {
        missing->rows[at].calls++;
        return TN_OK;
    }
    if (missing->count == MISSING)
        return TN_OK;
    copy = arena_text(&missing->arena, text, strlen(text));
    if (copy == NULL)
        return TN_ERR_MEMORY;
    missing->rows[missing->count].text = copy;
    missing->rows[missing->count].calls = 1;
    return names_add(&missing->names, copy, missing->count++);
}

static tn_status refuse(const struct binding *b)
{
    const struct missing *missing = &b->missing;
    char list[2000] = "";
    size_t length = 0;
    int64_t shown = 0;

    for (; shown < missing->count && length + 400 < sizeof list; shown++)
        length += (size_t)tn_snprint(list + length, sizeof list - length, "%s%s (%lld)",
                                     shown > 0 ? ", " : "", missing->rows[shown].text,
                                     (long long)missing->rows[shown].calls);
    return tn_fail(
        TN_ERR_NOT_IMPLEMENTED,
        "%s: functions without a rule, with the number of their calls: %s%s; "
        "a plugin can add rules: <tenon/foreign.h> says how, and %s what else can be done",
        b->program->path, list, shown < missing->count ? ", and more" : "",
        b->rules.dialect->guide);
}

/* ---- rules of calls -------------------------------------------------------------------------- */

static tn_status find_rule(struct binding *b, const struct node *node, struct found *out)
{
    const char *function = node->function;
    int64_t at = names_find(&b->functions, function);

    if (at >= 0 && b->found[at].version == node->version) {
        *out = b->found[at];
        return TN_OK;
    }
    out->version = node->version;
    out->rule = rules_find(&b->rules, function, node->version, &out->in_place);
    if (at >= 0)
        return TN_OK;
    if (b->count == b->capacity) {
        int64_t capacity = 2 * b->capacity + 64;
        struct found *more = tn_realloc(b->found, (size_t)capacity * sizeof *more);

        if (more == NULL)
            return TN_ERR_MEMORY;
        b->found = more;
        b->capacity = capacity;
    }
    b->found[b->count] = *out;
    return names_add(&b->functions, function, b->count++);
}

/* Returns the rule, read once for the program. */
static const struct rules_bound *bound_of(struct program *program, const tn_rule_def *rule)
{
    struct rules_bound *bound;

    for (int64_t i = 0; i < program->n_rules; i++)
        if (program->rules[i]->rule == rule)
            return program->rules[i];
    if (program->n_rules == program->rules_capacity) {
        int64_t capacity = 2 * program->rules_capacity + 32;
        struct rules_bound **more = arena_new(&program->arena, (uint64_t)capacity, sizeof *more);

        if (more == NULL)
            return NULL;
        if (program->n_rules > 0)
            memcpy(more, program->rules, (size_t)program->n_rules * sizeof *more);
        program->rules = more;
        program->rules_capacity = capacity;
    }
    bound = arena_new(&program->arena, 1, sizeof *bound);
    if (bound == NULL || rules_bind(rule, &program->arena, bound) != TN_OK)
        return NULL;
    return program->rules[program->n_rules++] = bound;
}

static bool is_none(const struct arg *arg)
{
    return arg->kind == ARG_CONSTANT && arg->as.constant.kind == TN_VALUE_NONE;
}

/* The argument of a rule that argument `index` of a call is: by its name, or by its place. */
static int64_t place_of(const struct rules_bound *bound, const struct node *node, int64_t index)
{
    if (node->names[index][0] == '\0') {
        for (int64_t i = 0; i <= index && i < bound->count; i++)
            if (bound->arguments[i].rest)
                return i;
        return index < bound->count ? index : -1;
    }
    for (int64_t i = 0; i < bound->count; i++)
        if (strcmp(bound->names[i], node->names[index]) == 0)
            return i;
    return -1;
}

/* Adds an argument to the list of those that have no place of their own. */
static tn_status add_rest(struct program *program, const struct node *node, int64_t index,
                          struct arg *rest)
{
    if (rest->kind != ARG_LIST) {
        rest->kind = ARG_LIST;
        rest->as.list = arena_new(&program->arena, (uint64_t)(node->n_args - index),
                                  sizeof *rest->as.list);
        if (rest->as.list == NULL)
            return TN_ERR_MEMORY;
    }
    rest->as.list[rest->count++] = node->args[index];
    return TN_OK;
}

/* Puts the arguments of a call into the order of the rule, and adds the defaults. */
static tn_status order_args(struct binding *b, struct node *node)
{
    struct program *program = b->program;
    const struct rules_bound *bound = node->rule;
    struct arg *args = arena_new(&program->arena, (uint64_t)bound->count + 1, sizeof *args);
    bool given[RULES_ARGUMENTS] = { false };
    tn_status status = args != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < node->n_args && status == TN_OK; i++) {
        int64_t place = place_of(bound, node, i);

        if (place >= 0 && bound->arguments[place].rest && node->names[i][0] == '\0') {
            status = add_rest(program, node, i, &args[place]);
            given[place] = true;
            continue;
        }
        if (place >= 0 && given[place])
            return tn_fail(TN_ERR_FORMAT,
                           "%s: node %.100s (%s): argument %s: given twice; expected once",
                           program->path, node->name, node->function, bound->names[place]);
        if (place >= 0) {
            args[place] = node->args[i];
            given[place] = true;
        } else if (!is_none(&node->args[i]) && !rules_is_ignored(node->names[i])) {
            status = add_missing(&b->missing, node->function,
                                 node->names[i][0] != '\0' ? node->names[i] : "more arguments");
        }
    }
    for (int64_t i = 0; i < bound->count && status == TN_OK; i++) {
        if (given[i])
            continue;
        if (bound->arguments[i].required)
            return tn_fail(TN_ERR_FORMAT,
                           "%s: node %.100s (%s): argument %s: missing; expected a value",
                           program->path, node->name, node->function, bound->names[i]);
        args[i].as.constant = bound->arguments[i].rest ? tn_value_list(NULL, 0)
                                                       : bound->arguments[i].value;
    }
    node->args = args;
    node->n_args = bound->count;
    node->names = NULL;
    return status;
}

tn_status program_graphs(const struct arg *args, int64_t count, program_graph_fn *each, void *user)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++)
        if (args[i].kind == ARG_GRAPH)
            status = each(user, args[i].as.graph);
        else if (args[i].kind == ARG_LIST)
            status = program_graphs(args[i].as.list, args[i].count, each, user);
    return status;
}

static tn_status bind_graph(void *binding, struct graph *graph);

static tn_status bind_node(struct binding *b, struct node *node)
{
    struct found found = { 0 };
    tn_status status;

    node->control = control_find(b->program->rules_of, node->function);
    if (node->control != NULL)
        return program_graphs(node->args, node->n_args, bind_graph, b);
    status = find_rule(b, node, &found);
    if (status != TN_OK)
        return status;
    if (found.rule == NULL)
        return add_missing(&b->missing, node->function, NULL);
    node->in_place = found.in_place;
    node->rule = bound_of(b->program, found.rule);
    return node->rule != NULL ? order_args(b, node) : tn_error_last_code();
}

static tn_status bind_graph(void *binding, struct graph *graph)
{
    struct binding *b = binding;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < graph->n_nodes && status == TN_OK; i++)
        status = bind_node(b, &graph->nodes[i]);
    return status;
}

tn_status program_bind(struct program *program)
{
    struct binding b = { .program = program };
    tn_status status = rules_set_open(&b.rules, program->rules_of);

    if (status == TN_OK)
        status = bind_graph(&b, &program->main);
    if (status == TN_OK && b.missing.count > 0)
        status = refuse(&b);
    names_free(&b.missing.names);
    arena_free(&b.missing.arena);
    names_free(&b.functions);
    rules_set_close(&b.rules);
    tn_free(b.found);
    return status;
}
