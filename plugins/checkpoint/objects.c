/* SPDX-License-Identifier: MIT
 *
 * The objects and values of a checkpoint. */
#include "checkpoint.h"

#include <string.h>

tn_checkpoint *objects_new(void)
{
    tn_checkpoint *checkpoint = tn_calloc(1, sizeof *checkpoint);

    if (checkpoint == NULL)
        return NULL;
    checkpoint->values = tn_state_new();
    if (checkpoint->values != NULL)
        return checkpoint;
    tn_free(checkpoint);
    return NULL;
}

void objects_drop(tn_checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    for (int64_t i = 0; i < checkpoint->count; i++)
        tn_free(checkpoint->parts[i].name);
    for (int64_t i = 0; i < checkpoint->n_needed; i++)
        tn_free(checkpoint->needed[i].name);
    tn_free(checkpoint->parts);
    tn_free(checkpoint->needed);
    tn_state_drop(checkpoint->values);
    tn_free(checkpoint);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_word(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    return name[0] != '\0' && name[strspn(name, letters)] == '\0';
}

static tn_status check_name(const tn_checkpoint *checkpoint, const char *name)
{
    if (!is_word(name) || strcmp(name, CHECKPOINT_RESERVED) == 0 ||
        strcmp(name, CHECKPOINT_VALUES) == 0)
        return tn_fail(TN_ERR_VALUE,
                       "checkpoint: name: wrong, got %q; expected letters, digits and _, and "
                       "neither \"" CHECKPOINT_RESERVED "\" nor \"" CHECKPOINT_VALUES "\"",
                       name);
    for (int64_t i = 0; i < checkpoint->count; i++)
        if (strcmp(checkpoint->parts[i].name, name) == 0)
            return tn_fail(TN_ERR_KEY, "checkpoint: name: %q is in use; expected another name",
                           name);
    return TN_OK;
}

/* ---- objects --------------------------------------------------------------------------------- */

static tn_status add(tn_checkpoint *checkpoint, const char *name, checkpoint_part part)
{
    tn_status status;

    if (!checkpoint_not_null(checkpoint, "tn_checkpoint_add: checkpoint"))
        return tn_error_last_code();
    if (!checkpoint_given(name != NULL, "tn_checkpoint_add: name"))
        return TN_ERR_VALUE;
    status = check_name(checkpoint, name);
    if (status == TN_OK && checkpoint->count == checkpoint->capacity)
        status = checkpoint_grow((void **)&checkpoint->parts, &checkpoint->capacity,
                                 sizeof *checkpoint->parts);
    if (status == TN_OK && (part.name = tn_strdup(name)) == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        checkpoint->parts[checkpoint->count++] = part;
    return status;
}

tn_status objects_add_module(tn_checkpoint *checkpoint, const char *name, tn_module *module)
{
    if (!checkpoint_not_null(module, "tn_checkpoint_add_module: module"))
        return tn_error_last_code();
    return add(checkpoint, name, (checkpoint_part){ NULL, PART_MODULE, { .module = module } });
}

tn_status objects_add_optimizer(tn_checkpoint *checkpoint, const char *name,
                                tn_optimizer *optimizer)
{
    if (!checkpoint_not_null(optimizer, "tn_checkpoint_add_optimizer: optimizer"))
        return tn_error_last_code();
    return add(checkpoint, name,
               (checkpoint_part){ NULL, PART_OPTIMIZER, { .optimizer = optimizer } });
}

tn_status objects_add_scheduler(tn_checkpoint *checkpoint, const char *name,
                                tn_scheduler *scheduler)
{
    if (!checkpoint_not_null(scheduler, "tn_checkpoint_add_scheduler: scheduler"))
        return tn_error_last_code();
    return add(checkpoint, name,
               (checkpoint_part){ NULL, PART_SCHEDULER, { .scheduler = scheduler } });
}

tn_status objects_add_loader(tn_checkpoint *checkpoint, const char *name, tn_loader *loader)
{
    if (!checkpoint_not_null(loader, "tn_checkpoint_add_loader: loader"))
        return tn_error_last_code();
    return add(checkpoint, name, (checkpoint_part){ NULL, PART_LOADER, { .loader = loader } });
}

const char *checkpoint_type(const checkpoint_part *part)
{
    switch (part->kind) {
    case PART_MODULE: return tn_module_type(part->as.module);
    case PART_OPTIMIZER: return tn_optimizer_type(part->as.optimizer);
    case PART_SCHEDULER: return tn_scheduler_type(part->as.scheduler);
    default: return NULL;
    }
}

/* ---- plugins and values ---------------------------------------------------------------------- */

tn_status objects_add_plugin(tn_checkpoint *checkpoint, uint32_t kind, const char *name)
{
    checkpoint_needed needed = { kind, NULL };

    if (!checkpoint_not_null(checkpoint, "tn_checkpoint_add_plugin: checkpoint"))
        return tn_error_last_code();
    if (!checkpoint_given(name != NULL, "tn_checkpoint_add_plugin: name"))
        return TN_ERR_VALUE;
    if (tn_registry_plugin(kind, name) == NULL)
        return tn_error_last_code();
    if (checkpoint->n_needed == checkpoint->needed_capacity &&
        checkpoint_grow((void **)&checkpoint->needed, &checkpoint->needed_capacity,
                        sizeof *checkpoint->needed) != TN_OK)
        return TN_ERR_MEMORY;
    needed.name = tn_strdup(name);
    if (needed.name == NULL)
        return TN_ERR_MEMORY;
    checkpoint->needed[checkpoint->n_needed++] = needed;
    return TN_OK;
}

tn_status objects_set(tn_checkpoint *checkpoint, const char *name, tn_value value)
{
    if (!checkpoint_not_null(checkpoint, "tn_checkpoint_set: checkpoint"))
        return tn_error_last_code();
    if (!checkpoint_given(name != NULL, "tn_checkpoint_set: name"))
        return TN_ERR_VALUE;
    return tn_state_set_value(checkpoint->values, name, value);
}

tn_value objects_get(const tn_checkpoint *checkpoint, const char *name)
{
    int64_t index;

    if (!checkpoint_not_null(checkpoint, "tn_checkpoint_get: checkpoint") ||
        !checkpoint_given(name != NULL, "tn_checkpoint_get: name"))
        return tn_value_none();
    index = tn_state_find(checkpoint->values, name);
    return index >= 0 ? tn_state_value(checkpoint->values, index) : tn_value_none();
}
