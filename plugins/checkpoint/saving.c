/* SPDX-License-Identifier: MIT
 *
 * Collects the states of the objects of a checkpoint, and saves them. */
#include "checkpoint.h"

#include <string.h>

/* Returns the text of a scheduler or loader, which the caller frees. */
static char *part_text(const checkpoint_part *part)
{
    const bool loads = part->kind == PART_LOADER;
    int64_t length = loads ? tn_loader_state_text(part->as.loader, NULL, 0)
                           : tn_scheduler_state_text(part->as.scheduler, NULL, 0);
    char *text = length >= 0 ? tn_malloc((size_t)length + 1) : NULL;

    if (text == NULL)
        return NULL;
    if (loads)
        length = tn_loader_state_text(part->as.loader, text, (size_t)length + 1);
    else
        length = tn_scheduler_state_text(part->as.scheduler, text, (size_t)length + 1);
    if (length >= 0)
        return text;
    tn_free(text);
    return NULL;
}

static tn_status save_part(const checkpoint_part *part, tn_state *state)
{
    char *text;
    tn_status status;

    if (part->kind == PART_MODULE || part->kind == PART_OPTIMIZER) {
        size_t size = strlen(part->name) + 2;
        char *prefix = tn_malloc(size);

        if (prefix == NULL)
            return TN_ERR_MEMORY;
        tn_snprint(prefix, size, "%s.", part->name);
        status = part->kind == PART_MODULE
                     ? tn_module_state_into(part->as.module, state, prefix, 0)
                     : tn_optimizer_save_state_into(part->as.optimizer, state, prefix);
        tn_free(prefix);
        return status;
    }
    text = part_text(part);
    if (text == NULL)
        return tn_error_last_code();
    status = tn_state_set_value(state, part->name, tn_value_string(text));
    tn_free(text);
    return status;
}

static tn_status save_types(const tn_checkpoint *checkpoint, tn_state *state)
{
    tn_value *list = tn_malloc((size_t)(checkpoint->count + 1) * 2 * sizeof *list);
    uint32_t count = 0;
    tn_status status;

    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < checkpoint->count; i++) {
        const char *type = checkpoint_type(&checkpoint->parts[i]);

        if (type == NULL)
            continue;
        list[count++] = tn_value_string(checkpoint->parts[i].name);
        list[count++] = tn_value_string(type);
    }
    status = tn_state_set_value(state, CHECKPOINT_TYPES, tn_value_dict(list, count));
    tn_free(list);
    return status;
}

static tn_status save_random(tn_state *state)
{
    uint64_t random[3];
    tn_value list[3];
    tn_status status = tn_random_get_state(random);

    for (int i = 0; i < 3; i++)
        list[i] = tn_value_int((int64_t)random[i]);
    return status == TN_OK ? tn_state_set_value(state, CHECKPOINT_RANDOM, tn_value_list(list, 3))
                           : status;
}

static tn_status save_values(const tn_checkpoint *checkpoint, tn_state *state)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_state_count(checkpoint->values) && status == TN_OK; i++) {
        char *name = NULL;

        status = checkpoint_append(&name, CHECKPOINT_VALUES ".%s",
                                   tn_state_name(checkpoint->values, i));
        if (status == TN_OK)
            status = tn_state_set_value(state, name, tn_state_value(checkpoint->values, i));
        tn_free(name);
    }
    return status;
}

static tn_state *whole_state(tn_checkpoint *checkpoint)
{
    tn_state *state = tn_state_new();
    tn_status status;

    if (state == NULL)
        return NULL;
    status = tn_state_set_value(state, CHECKPOINT_NUMBER, tn_value_int(CHECKPOINT_VERSION));
    if (status == TN_OK)
        status = save_types(checkpoint, state);
    if (status == TN_OK)
        status = plugins_save(checkpoint, state);
    if (status == TN_OK)
        status = save_random(state);
    if (status == TN_OK)
        status = save_values(checkpoint, state);
    for (int64_t i = 0; i < checkpoint->count && status == TN_OK; i++)
        status = save_part(&checkpoint->parts[i], state);
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

tn_status saving_save(tn_checkpoint *checkpoint, const char *path)
{
    tn_state *state;
    tn_status status;

    if (!checkpoint_not_null(checkpoint, "tn_checkpoint_save: checkpoint"))
        return tn_error_last_code();
    if (!checkpoint_given(path != NULL, "tn_checkpoint_save: path"))
        return TN_ERR_VALUE;
    state = whole_state(checkpoint);
    status = state != NULL ? tn_state_save(state, path) : tn_error_last_code();
    tn_state_drop(state);
    return status;
}
