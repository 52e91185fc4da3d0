/* SPDX-License-Identifier: MIT
 *
 * Reads checkpoints, and gives the states in them to the objects. */
#include "checkpoint.h"

#include <string.h>

static tn_value entry(const tn_state *state, const char *name)
{
    int64_t index = tn_state_find(state, name);

    return index >= 0 ? tn_state_value(state, index) : tn_value_none();
}

static tn_status check_version(const tn_state *state, const char *path)
{
    tn_value version = entry(state, CHECKPOINT_NUMBER);

    if (version.kind != TN_VALUE_INT)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: not a checkpoint of a training; expected a file that tn_checkpoint_save "
            "wrote",
            path);
    if (version.as.i != CHECKPOINT_VERSION)
        return tn_fail(TN_ERR_VERSION,
                       "%s: version of the checkpoint: unknown, got %lld; expected %d", path,
                       (long long)version.as.i, CHECKPOINT_VERSION);
    return TN_OK;
}

/* Reads the file with its tensors on the host, whatever the default device is. */
static tn_state *read_file(const char *path)
{
    const tn_device *host = tn_device_find("cpu");
    tn_state *state = NULL;

    if (host == NULL)
        return NULL;
    if (tn_device_begin(host) == TN_OK)
        state = tn_state_load_as(path, 0);
    tn_device_end();
    return state;
}

tn_state *restoring_read(const char *path)
{
    tn_state *state;

    if (!checkpoint_given(path != NULL, "tn_checkpoint_read: path"))
        return NULL;
    state = read_file(path);
    if (state == NULL)
        return NULL;
    if (check_version(state, path) == TN_OK && plugins_check(state, path) == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static tn_status check_part(const checkpoint_part *part, const tn_state *state)
{
    const char *type = checkpoint_type(part);
    tn_value types = entry(state, CHECKPOINT_TYPES);
    const tn_value *saved = NULL;

    if (type == NULL) {
        if (entry(state, part->name).kind != TN_VALUE_STRING)
            return tn_fail(
                TN_ERR_KEY,
                "checkpoint: the file has no loader \"%s\"; expected the names with which "
                "it was saved",
                part->name);
        return TN_OK;
    }
    if (types.kind == TN_VALUE_DICT)
        saved = tn_value_get(&types, part->name);
    if (saved == NULL || saved->kind != TN_VALUE_STRING)
        return tn_fail(
            TN_ERR_KEY,
            "checkpoint: the file has no part \"%s\" of type %s; expected the names with "
            "which it was saved",
            part->name, type);
    if (strcmp(saved->as.s, type) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "checkpoint: \"%s\": another type, got %s; expected %s, as in the file",
                       part->name, type, saved->as.s);
    if (part->kind == PART_SCHEDULER && entry(state, part->name).kind != TN_VALUE_STRING)
        return tn_fail(
            TN_ERR_FORMAT,
            "checkpoint: \"%s\": its state: missing or of a wrong kind, got %s; expected "
            "a text",
            part->name, tn_value_kind_name(entry(state, part->name).kind));
    return TN_OK;
}

/* ---- restoring ------------------------------------------------------------------------------- */

/* Returns the state of a module or optimizer. One without entries has an empty state. */
static tn_state *part_of(const tn_state *state, const char *name)
{
    uint64_t mark = tn_error_mark();
    tn_state *part;
    char *prefix = NULL;

    checkpoint_append(&prefix, "%s.", name);
    part = prefix != NULL ? tn_state_part(state, prefix) : NULL;
    tn_free(prefix);
    if (part == NULL && prefix != NULL && tn_error_last_code() == TN_ERR_KEY) {
        tn_error_restore(mark);
        part = tn_state_new();
    }
    return part;
}

static tn_status restore_part(const checkpoint_part *part, const tn_state *state)
{
    tn_state *own;
    tn_status status;

    if (part->kind == PART_SCHEDULER)
        return tn_scheduler_set_state(part->as.scheduler, entry(state, part->name).as.s);
    if (part->kind == PART_LOADER)
        return tn_loader_set_state(part->as.loader, entry(state, part->name).as.s);
    own = part_of(state, part->name);
    if (own == NULL)
        return tn_error_last_code();
    if (part->kind == PART_OPTIMIZER)
        status = tn_optimizer_load_state(part->as.optimizer, own);
    else
        status = tn_module_load_report(part->as.module, own, TN_LOAD_STRICT | TN_LOAD_WHOLE, NULL);
    tn_state_drop(own);
    return status;
}

static tn_status restore_random(const tn_state *state)
{
    tn_value list = entry(state, CHECKPOINT_RANDOM);
    uint64_t random[3];

    /* Drafts before revision 1 wrote a fourth number, always 0. */
    if (list.kind != TN_VALUE_LIST || (list.count != 3 && list.count != 4))
        return tn_fail(TN_ERR_FORMAT,
                       "checkpoint: " CHECKPOINT_RANDOM
                       ": wrong type or count, got %s of %u; expected a list of 3 integers",
                       tn_value_kind_name(list.kind), tn_value_size(&list));
    for (int i = 0; i < 3; i++) {
        if (list.as.list[i].kind != TN_VALUE_INT)
            return tn_fail(TN_ERR_FORMAT,
                           "checkpoint: " CHECKPOINT_RANDOM
                           ": element %d: wrong type, got %s; expected an integer",
                           i, tn_value_kind_name(list.as.list[i].kind));
        random[i] = (uint64_t)list.as.list[i].as.i;
    }
    return tn_random_set_state(random);
}

/* Collects the values of the program. */
static tn_state *values_of(const tn_state *state)
{
    static const char prefix[] = CHECKPOINT_VALUES ".";
    tn_state *values = tn_state_new();
    tn_status status = values != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++) {
        const char *name = tn_state_name(state, i);

        if (strncmp(name, prefix, sizeof prefix - 1) == 0)
            status = tn_state_set_value(values, name + sizeof prefix - 1, tn_state_value(state, i));
    }
    if (status == TN_OK)
        return values;
    tn_state_drop(values);
    return NULL;
}

tn_status restoring_restore(tn_checkpoint *checkpoint, const tn_state *state)
{
    tn_state *values = NULL;
    tn_status status = TN_OK;

    if (!checkpoint_not_null(checkpoint, "tn_checkpoint_restore: checkpoint") ||
        !checkpoint_not_null(state, "tn_checkpoint_restore: state"))
        return tn_error_last_code();
    status = check_version(state, "tn_checkpoint_restore");
    for (int64_t i = 0; i < checkpoint->count && status == TN_OK; i++)
        status = check_part(&checkpoint->parts[i], state);
    if (status == TN_OK && (values = values_of(state)) == NULL)
        status = TN_ERR_MEMORY;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < checkpoint->count && status == TN_OK; i++) {
            const checkpoint_part *part = &checkpoint->parts[i];

            if ((part->kind == PART_MODULE) != (pass == 0))
                continue;
            status = restore_part(part, state);
            if (status != TN_OK)
                tn_error_prefix("checkpoint: \"%s\": ", part->name);
        }
    if (status == TN_OK)
        status = restore_random(state);
    if (status != TN_OK) {
        tn_state_drop(values);
        return status;
    }
    tn_state_drop(checkpoint->values);
    checkpoint->values = values;
    return TN_OK;
}

tn_status restoring_load(tn_checkpoint *checkpoint, const char *path)
{
    tn_state *state;
    tn_status status;

    if (!checkpoint_not_null(checkpoint, "tn_checkpoint_load: checkpoint"))
        return tn_error_last_code();
    if (!checkpoint_given(path != NULL, "tn_checkpoint_load: path"))
        return TN_ERR_VALUE;
    state = restoring_read(path);
    status = state != NULL ? restoring_restore(checkpoint, state) : tn_error_last_code();
    if (state != NULL && status != TN_OK)
        tn_error_prefix("%s: ", path);
    tn_state_drop(state);
    return status;
}
