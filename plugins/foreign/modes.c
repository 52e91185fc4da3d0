/* SPDX-License-Identifier: MIT
 *
 * The modes of modules, training or evaluation, that a program has been exported in, and the counts
 * of batches of its norms. */
#include "program.h"

#include <string.h>

static void set_mode(struct part *part, const struct node *node);

static tn_status set_modes_below(void *part, struct graph *graph)
{
    for (int64_t i = 0; i < graph->n_nodes; i++)
        set_mode(part, &graph->nodes[i]);
    return TN_OK;
}

/* The mode of a module is that of its calls when the program was exported: training, if one was. */
static void set_mode(struct part *part, const struct node *node)
{
    const struct arg *arg;
    bool training;

    if (node->rule == NULL) {
        program_graphs(node->args, node->n_args, set_modes_below, part);
        return;
    }
    arg = node->rule->mode >= 0 ? &node->args[node->rule->mode] : NULL;
    if (arg == NULL || arg->kind != ARG_CONSTANT)
        return;
    training = arg->as.constant.kind == TN_VALUE_FLOAT ? arg->as.constant.as.f > 0
                                                       : arg->as.constant.as.i != 0;
    if (training)
        part->mode = 1;
    else if (part->mode < 0)
        part->mode = 0;
}

/* Finds the modules whose norm counts its batches, and whether the program increments the count: in
 * place, or by writing a result to the buffer. If it does not, because it was exported for
 * evaluation, the norm does so in training mode. */
static tn_status find_counters(struct program *program)
{
    bool *written = arena_new(&program->arena, (uint64_t)program->n_slots + 1, sizeof *written);
    int64_t *counter = arena_new(&program->arena, (uint64_t)program->main.n_values + 1,
                                 sizeof *counter); /* the slot that a value is */

    if (written == NULL || counter == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < program->n_outputs; i++)
        if (program->outputs[i].kind == OUTPUT_SLOT)
            written[program->outputs[i].index] = true;
    for (int64_t i = 0; i < program->main.n_values; i++)
        counter[i] = program->main.values[i].bound;
    for (int64_t i = 0; i < program->main.n_nodes; i++) {
        struct node *node = &program->main.nodes[i];
        int64_t bound = node->in_place && node->n_args > 0 && node->args[0].kind == ARG_VALUE
                            ? counter[node->args[0].as.value]
                            : -1;

        if (bound < 0 || strcmp(program->slots[bound].name, PROGRAM_COUNTER) != 0)
            continue;
        written[bound] = true;
        node->counts = true;
        if (node->n_results > 0 && node->results[0].value >= 0) /* the buffer again */
            counter[node->results[0].value] = bound;
    }
    for (int64_t i = 0; i < program->n_slots; i++)
        if (strcmp(program->slots[i].name, PROGRAM_COUNTER) == 0 && !program->slots[i].parameter)
            program->parts[program->slots[i].part].counts = !written[i];
    return TN_OK;
}

static void set_modes(struct program *program, struct segment *segment)
{
    struct part *part = &program->parts[segment->part];

    for (int64_t i = 0; i < segment->n_steps; i++) {
        struct step *step = &segment->steps[i];

        if (step->call != NULL) {
            set_modes(program, step->call);
            continue;
        }
        set_mode(part, step->node);
        step->node->normalizes = part->counts && step->node->rule != NULL &&
                                 step->node->rule->mode >= 0;
    }
}

tn_status modes_find(struct program *program)
{
    tn_status status = find_counters(program);

    if (status == TN_OK)
        set_modes(program, program->root);
    return status;
}
