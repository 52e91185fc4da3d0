/* SPDX-License-Identifier: MIT
 *
 * Divides a program into the calls of its modules. The nodes of a call of a module follow each
 * other in the main graph; they become a segment, with the segments of modules below it inside. A
 * segment takes values from outside, as the arguments of its module, and gives values, as its
 * results. Parameters and buffers below the module are not arguments: they are fetched from their
 * slots. */
#include "program.h"

#include <string.h>

struct use {
    int64_t defined; /* the node that makes it; -1: before all nodes */
    int64_t last;    /* the last node that uses it */
    int64_t local;   /* its number in the segment that is being numbered */
    int64_t segment; /* stamp of that segment */
    int64_t taken;   /* stamp of the segment whose lists have it */
};

struct dividing {
    struct program *program;
    struct use *uses; /* of the values of the main graph */
    int64_t stamp;
    struct segment *current; /* that is being numbered */
    int64_t *last_step;      /* of each value of `current`, by its number there */
};

/* ---- visiting values ------------------------------------------------------------------------- */

typedef tn_status visit(struct dividing *d, int64_t *value, int64_t user);

static tn_status visit_args(struct dividing *d, struct arg *args, int64_t count, visit *each,
                            int64_t user)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++)
        if (args[i].kind == ARG_VALUE)
            status = each(d, &args[i].as.value, user);
        else if (args[i].kind == ARG_LIST)
            status = visit_args(d, args[i].as.list, args[i].count, each, user);
    return status;
}

static tn_status visit_results(struct dividing *d, struct node *node, visit *each, int64_t user)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < node->n_results && status == TN_OK; i++) {
        struct result *result = &node->results[i];

        if (result->list == NULL && result->value >= 0)
            status = each(d, &result->value, user);
        for (int64_t k = 0; k < result->count && status == TN_OK; k++)
            if (result->list[k] >= 0)
                status = each(d, &result->list[k], user);
    }
    return status;
}

static tn_status note_use(struct dividing *d, int64_t *value, int64_t node)
{
    d->uses[*value].last = node;
    return TN_OK;
}

static tn_status note_definition(struct dividing *d, int64_t *value, int64_t node)
{
    d->uses[*value].defined = node;
    d->uses[*value].last = node;
    return TN_OK;
}

static tn_status find_uses(struct dividing *d)
{
    struct graph *main = &d->program->main;
    tn_status status = TN_OK;

    d->uses = arena_new(&d->program->arena, (uint64_t)main->n_values + 1, sizeof *d->uses);
    if (d->uses == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < main->n_values; i++)
        d->uses[i] = (struct use){ -1, -1, 0, -1, -1 };
    for (int64_t i = 0; i < main->n_nodes && status == TN_OK; i++) {
        status = visit_args(d, main->nodes[i].args, main->nodes[i].n_args, note_use, i);
        if (status == TN_OK)
            status = visit_results(d, &main->nodes[i], note_definition, i);
    }
    return status == TN_OK ? visit_args(d, main->outputs, main->n_outputs, note_use, main->n_nodes)
                           : status;
}

/* ---- segments of modules --------------------------------------------------------------------- */

/* Returns an array with space for one more element: the old one, or a larger copy of it. */
static void *one_more(struct arena *arena, void *array, int64_t count, int64_t *capacity,
                      size_t size)
{
    int64_t larger = 2 * *capacity + 4;
    void *copy;

    if (count < *capacity)
        return array;
    copy = arena_new(arena, (uint64_t)larger, size);
    if (copy == NULL)
        return NULL;
    if (count > 0)
        memcpy(copy, array, (size_t)count * size);
    *capacity = larger;
    return copy;
}

static tn_status add_step(struct program *program, struct segment *segment, struct step step)
{
    struct step *steps = one_more(&program->arena, segment->steps, segment->n_steps,
                                  &segment->steps_capacity, sizeof *steps);

    if (steps == NULL)
        return TN_ERR_MEMORY;
    segment->steps = steps;
    steps[segment->n_steps++] = step;
    return TN_OK;
}

/* The path of a module below another; NULL if it is not below it. */
static const char *path_below(const char *path, const char *above)
{
    size_t length = strlen(above);

    if (length == 0)
        return path;
    return strncmp(path, above, length) == 0 && path[length] == '.' ? path + length + 1 : NULL;
}

/* A segment to which nodes are still added. */
struct open {
    struct segment *segment;
    const char *call;
};

static tn_status open_segment(struct program *program, struct open *around,
                              const struct stack_level *level, int64_t first, struct open *out)
{
    struct part *part = &program->parts[level->part];
    struct segment *segment = arena_new(&program->arena, 1, sizeof *segment);
    struct segment **segments = one_more(&program->arena, part->segments, part->n_segments,
                                         &part->segments_capacity, sizeof *segments);

    if (segment == NULL || segments == NULL)
        return TN_ERR_MEMORY;
    segment->part = level->part;
    segment->first = first;
    segment->index = part->n_segments;
    segment->path = path_below(part->path, program->parts[around->segment->part].path);
    part->segments = segments;
    segments[part->n_segments++] = segment;
    *out = (struct open){ segment, level->call };
    return add_step(program, around->segment, (struct step){ NULL, segment });
}

/* Closes the segments from `depth` on. */
static int64_t close_segments(struct open *open, int64_t count, int64_t depth, int64_t end)
{
    while (count > depth)
        open[--count].segment->end = end;
    return depth;
}

/* Adds a node to the segment of its innermost module. A module in the stack that is not below the
 * one before it (a module that two modules share) has no segment: its parent's call computes it. */
static tn_status place_node(struct program *program, int64_t index, struct open *open,
                            int64_t *count)
{
    struct node *node = &program->main.nodes[index];
    int64_t depth = 1;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < node->n_stack && status == TN_OK; i++) {
        const struct stack_level *level = &node->stack[i];
        const struct part *above = &program->parts[open[depth - 1].segment->part];
        const char *below = path_below(program->parts[level->part].path, above->path);

        if (below == NULL || below[0] == '\0')
            continue;
        if (depth == *count || open[depth].segment->part != level->part ||
            strcmp(open[depth].call, level->call) != 0) {
            *count = close_segments(open, *count, depth, index);
            status = open_segment(program, &open[depth - 1], level, index, &open[depth]);
            ++*count;
        }
        depth++;
    }
    if (status == TN_OK && node->n_stack > 0)
        *count = close_segments(open, *count, depth, index);
    node->stack = NULL;
    return status == TN_OK
               ? add_step(program, open[*count - 1].segment, (struct step){ node, NULL })
               : status;
}

static tn_status make_segments(struct program *program)
{
    struct open open[PROGRAM_LEVELS + 2] = { { NULL, NULL } };
    int64_t count = 1;
    tn_status status = TN_OK;

    program->root = arena_new(&program->arena, 1, sizeof *program->root);
    if (program->root == NULL)
        return TN_ERR_MEMORY;
    open[0] = (struct open){ program->root, "" };
    for (int64_t i = 0; i < program->main.n_nodes && status == TN_OK; i++)
        status = place_node(program, i, open, &count);
    close_segments(open, count, 0, program->main.n_nodes);
    return status;
}

/* ---- what segments take and give ------------------------------------------------------------- */

/* Whether a value is a slot of the segment's module or of one below it. */
static bool is_own_slot(const struct program *program, const struct segment *segment, int64_t value)
{
    int64_t bound = program->main.values[value].bound;
    const char *path, *above = program->parts[segment->part].path;

    if (bound < 0)
        return false;
    path = program->parts[program->slots[bound].part].path;
    return strcmp(path, above) == 0 || path_below(path, above) != NULL;
}

struct listing {
    struct pass *at;
    int64_t count, capacity;
};

static tn_status list(struct program *program, struct listing *listing, int64_t value)
{
    struct pass *at = one_more(&program->arena, listing->at, listing->count, &listing->capacity,
                               sizeof *at);

    if (at == NULL)
        return TN_ERR_MEMORY;
    listing->at = at;
    at[listing->count++] = (struct pass){ value, value, program->main.values[value].kind,
                                          program->main.values[value].bound >= 0 };
    return TN_OK;
}

/* Adds the values that a segment takes and that are of one sort: 0 tensors, 1 slots of other
 * modules, 2 numbers. */
static tn_status list_taken(struct dividing *d, const struct segment *segment,
                            const struct arg *args, int64_t count, int sort,
                            struct listing *listing)
{
    struct program *program = d->program;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        int64_t value = args[i].as.value;

        if (args[i].kind == ARG_LIST) {
            status = list_taken(d, segment, args[i].as.list, args[i].count, sort, listing);
        } else if (args[i].kind == ARG_VALUE && d->uses[value].defined < segment->first &&
                   d->uses[value].taken != d->stamp && !is_own_slot(program, segment, value)) {
            const struct value *v = &program->main.values[value];

            if ((v->kind == VALUE_NUMBER ? 2 : v->bound >= 0) != sort)
                continue;
            d->uses[value].taken = d->stamp;
            status = list(program, listing, value);
        }
    }
    return status;
}

static tn_status find_takes(struct dividing *d, struct segment *segment)
{
    struct listing listing = { 0 };
    tn_status status = TN_OK;

    d->stamp++;
    for (int sort = 0; sort < 3; sort++) {
        for (int64_t i = segment->first; i < segment->end && status == TN_OK; i++)
            status = list_taken(d, segment, d->program->main.nodes[i].args,
                                d->program->main.nodes[i].n_args, sort, &listing);
        if (sort == 1)
            segment->n_tensors = listing.count;
    }
    segment->takes = listing.at;
    segment->n_takes = listing.count;
    return status;
}

static tn_status find_gives(struct dividing *d, struct segment *segment)
{
    struct program *program = d->program;
    struct listing listing = { 0 };
    tn_status status = TN_OK;

    for (int64_t i = segment->first; i < segment->end && status == TN_OK; i++) {
        const struct node *node = &program->main.nodes[i];

        for (int64_t k = 0; k < node->n_results && status == TN_OK; k++) {
            const struct result *result = &node->results[k];
            int64_t count = result->list != NULL ? result->count : 1;

            for (int64_t j = 0; j < count && status == TN_OK; j++) {
                int64_t value = result->list != NULL ? result->list[j] : result->value;

                if (value >= 0 && d->uses[value].last >= segment->end)
                    status = list(program, &listing, value);
            }
        }
    }
    segment->gives = listing.at;
    segment->n_gives = listing.count;
    return status;
}

static tn_status find_passes(struct dividing *d, struct segment *segment)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < segment->n_steps && status == TN_OK; i++) {
        struct segment *call = segment->steps[i].call;

        if (call == NULL)
            continue;
        status = find_takes(d, call);
        if (status == TN_OK)
            status = find_gives(d, call);
        if (status == TN_OK)
            status = find_passes(d, call);
    }
    return status;
}

/* ---- numbers of values ----------------------------------------------------------------------- */

static tn_status add_fetch(struct dividing *d, int64_t value, int64_t local)
{
    struct program *program = d->program;
    struct segment *segment = d->current;
    const struct slot *slot = &program->slots[program->main.values[value].bound];
    const char *path = path_below(program->parts[slot->part].path,
                                  program->parts[segment->part].path);
    struct fetch *fetches;

    /* Doubles at each power of two. */
    if ((segment->n_fetches & (segment->n_fetches - 1)) == 0) {
        fetches = arena_new(&program->arena, 2 * (uint64_t)segment->n_fetches + 1, sizeof *fetches);
        if (fetches == NULL)
            return TN_ERR_MEMORY;
        if (segment->n_fetches > 0)
            memcpy(fetches, segment->fetches, (size_t)segment->n_fetches * sizeof *fetches);
        segment->fetches = fetches;
    }
    segment->fetches[segment->n_fetches++] = (struct fetch){ local, path != NULL ? path : "",
                                                             slot->name };
    return TN_OK;
}

/* Replaces the number of a value in the main graph by the one in the current segment, and notes
 * that a step uses it. */
static tn_status number(struct dividing *d, int64_t *value, int64_t step)
{
    struct use *use = &d->uses[*value];
    tn_status status = TN_OK;

    if (use->segment != d->stamp) {
        use->segment = d->stamp;
        use->local = d->current->n_values++;
        d->last_step[use->local] = -1;
        if (is_own_slot(d->program, d->current, *value))
            status = add_fetch(d, *value, use->local);
    }
    *value = use->local;
    if (d->last_step[use->local] < step)
        d->last_step[use->local] = step;
    return status;
}

/* Writes the list of values whose last use each step has. */
static tn_status find_deaths(struct program *program, struct segment *segment,
                             const int64_t *last_step)
{
    int64_t *counts = arena_new(&program->arena, (uint64_t)segment->n_steps + 1, sizeof *counts);

    if (counts == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < segment->n_values; i++)
        if (last_step[i] >= 0 && last_step[i] < segment->n_steps)
            counts[last_step[i]]++;
    for (int64_t i = 0; i < segment->n_steps; i++) {
        struct step *step = &segment->steps[i];
        int64_t *list = arena_new(&program->arena, (uint64_t)counts[i], sizeof *list);

        if (list == NULL)
            return TN_ERR_MEMORY;
        *(step->node != NULL ? &step->node->dies : &step->call->dies) = list;
    }
    for (int64_t i = 0; i < segment->n_values; i++) {
        struct step *step;

        if (last_step[i] < 0 || last_step[i] >= segment->n_steps)
            continue;
        step = &segment->steps[last_step[i]];
        if (step->node != NULL)
            step->node->dies[step->node->n_dies++] = i;
        else
            step->call->dies[step->call->n_dies++] = i;
    }
    return TN_OK;
}

/* The values that a call passes, in the segment around it (`outside`), or in its own. */
static tn_status number_passes(struct dividing *d, struct pass *passes, int64_t count, bool outside,
                               int64_t step)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = number(d, outside ? &passes[i].outside : &passes[i].value, step);
    return status;
}

static tn_status number_steps(struct dividing *d, struct segment *segment)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < segment->n_steps && status == TN_OK; i++) {
        struct step *step = &segment->steps[i];

        if (step->node != NULL) {
            status = visit_args(d, step->node->args, step->node->n_args, number, i);
            if (status == TN_OK)
                status = visit_results(d, step->node, number, i);
            continue;
        }
        status = number_passes(d, step->call->takes, step->call->n_takes, true, i);
        if (status == TN_OK)
            status = number_passes(d, step->call->gives, step->call->n_gives, true, i);
    }
    return status;
}

/* Numbers the values of a segment, and then those of the segments in it. */
static tn_status number_segment(struct dividing *d, struct segment *segment)
{
    struct program *program = d->program;
    bool root = segment == program->root;
    tn_status status;

    d->stamp++;
    d->current = segment;
    status = number_passes(d, segment->takes, segment->n_takes, false, -1);
    for (int64_t i = 0; root && i < program->n_inputs && status == TN_OK; i++)
        if (program->inputs[i].to >= 0)
            status = number(d, &program->inputs[i].to, -1);
    if (status == TN_OK)
        status = number_steps(d, segment);
    if (status == TN_OK)
        status = number_passes(d, segment->gives, segment->n_gives, false, segment->n_steps);
    if (status == TN_OK && root)
        status = visit_args(d, program->main.outputs, program->main.n_outputs, number,
                            segment->n_steps);
    if (status == TN_OK)
        status = find_deaths(program, segment, d->last_step);
    for (int64_t i = 0; i < segment->n_steps && status == TN_OK; i++)
        if (segment->steps[i].call != NULL)
            status = number_segment(d, segment->steps[i].call);
    return status;
}

/* ---- graphs in arguments --------------------------------------------------------------------- */

static tn_status note_step(struct dividing *d, int64_t *value, int64_t step)
{
    d->last_step[*value] = step;
    return TN_OK;
}

/* A graph in an argument is one segment, whose values keep their numbers. */
static tn_status finish_graph(void *user, struct graph *graph)
{
    struct program *program = user;
    struct segment *whole = arena_new(&program->arena, 1, sizeof *whole);
    struct dividing d = { .program = program };
    tn_status status = TN_OK;

    d.last_step = arena_new(&program->arena, (uint64_t)graph->n_values + 1, sizeof *d.last_step);
    if (whole == NULL || d.last_step == NULL)
        return TN_ERR_MEMORY;
    whole->part = -1;
    whole->n_values = graph->n_values;
    graph->whole = whole;
    for (int64_t i = 0; i < graph->n_values; i++)
        d.last_step[i] = -1;
    for (int64_t i = 0; i < graph->n_nodes && status == TN_OK; i++) {
        struct node *node = &graph->nodes[i];

        status = visit_args(&d, node->args, node->n_args, note_step, i);
        if (status == TN_OK)
            status = visit_results(&d, node, note_step, i);
        if (status == TN_OK)
            status = program_graphs(node->args, node->n_args, finish_graph, program);
        if (status == TN_OK)
            status = add_step(program, whole, (struct step){ node, NULL });
    }
    if (status == TN_OK)
        status = visit_args(&d, graph->outputs, graph->n_outputs, note_step, graph->n_nodes);
    return status == TN_OK ? find_deaths(program, whole, d.last_step) : status;
}

static tn_status finish_graphs(struct program *program)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < program->main.n_nodes && status == TN_OK; i++)
        status = program_graphs(program->main.nodes[i].args, program->main.nodes[i].n_args,
                                finish_graph, program);
    return status;
}

/* ---- the program ----------------------------------------------------------------------------- */

tn_status segments_divide(struct program *program)
{
    struct dividing d = { .program = program };
    tn_status status = make_segments(program);

    if (status == TN_OK)
        status = finish_graphs(program);
    if (status == TN_OK)
        status = modes_find(program);
    if (status == TN_OK)
        status = find_uses(&d);
    if (status != TN_OK)
        return status;
    d.last_step = arena_new(&program->arena, (uint64_t)program->main.n_values + 1,
                            sizeof *d.last_step);
    status = d.last_step != NULL ? find_passes(&d, program->root) : TN_ERR_MEMORY;
    return status == TN_OK ? number_segment(&d, program->root) : status;
}
