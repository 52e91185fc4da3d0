/* SPDX-License-Identifier: MIT
 *
 * The plugins that a checkpoint needs: collects them when it is saved, looks for them when it is
 * read. */
#include "checkpoint.h"

#include <string.h>

/* ---- collecting ------------------------------------------------------------------------------ */

/* The ids of plugins, and their versions. The texts belong to the load report. */
struct ids {
    tn_value *at; /* id, version, id, version, ... */
    int64_t count, capacity;
};

/* Finds the line of the load report of a plugin that can be used. */
static bool find_report(const char *id, tn_plugin_report *out)
{
    for (int64_t i = 0; i < tn_plugin_count(); i++) {
        *out = (tn_plugin_report){ 0 };
        if (tn_plugin_report_at(i, out) == TN_OK && out->outcome == TN_OUTCOME_OK &&
            strcmp(out->id, id) == 0)
            return true;
    }
    return false;
}

static tn_status add_id(struct ids *ids, const char *id)
{
    tn_plugin_report report;

    for (int64_t i = 0; i < ids->count; i += 2)
        if (strcmp(ids->at[i].as.s, id) == 0)
            return TN_OK;
    if (!find_report(id, &report))
        return TN_OK; /* contributions of the program */
    if (ids->count + 2 > ids->capacity &&
        checkpoint_grow((void **)&ids->at, &ids->capacity, sizeof *ids->at) != TN_OK)
        return TN_ERR_MEMORY;
    ids->at[ids->count++] = tn_value_string(report.id);
    ids->at[ids->count++] = tn_value_string(report.version);
    return TN_OK;
}

/* Adds the plugin of a contribution. A type that no plugin provides, such as that of a module of
 * the program, needs none. */
static tn_status add_name(struct ids *ids, uint32_t kind, const char *name)
{
    uint64_t mark = tn_error_mark();
    const char *id = tn_registry_plugin(kind, name);

    tn_error_restore(mark);
    return id != NULL && id[0] != '\0' ? add_id(ids, id) : TN_OK;
}

static tn_status add_modules(struct ids *ids, tn_module *module)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_CHILD, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();
    const tn_visit *visit;

    while (status == TN_OK && (visit = tn_walk_next(walk)) != NULL)
        status = add_name(ids, TN_KIND_tn_layer_def, tn_module_type(visit->module));
    tn_walk_end(walk);
    return status;
}

static tn_status add_schedulers(struct ids *ids, const tn_scheduler *scheduler)
{
    tn_status status = add_name(ids, TN_KIND_tn_scheduler_def, tn_scheduler_type(scheduler));

    for (int64_t i = 0; i < tn_scheduler_child_count(scheduler) && status == TN_OK; i++)
        status = add_schedulers(ids, tn_scheduler_child(scheduler, i));
    return status;
}

tn_status plugins_save(tn_checkpoint *checkpoint, tn_state *state)
{
    struct ids ids = { 0 };
    tn_status status = TN_OK;

    for (int64_t i = 0; i < checkpoint->count && status == TN_OK; i++) {
        const checkpoint_part *part = &checkpoint->parts[i];

        if (part->kind == PART_MODULE)
            status = add_modules(&ids, part->as.module);
        else if (part->kind == PART_OPTIMIZER)
            status = add_name(&ids, TN_KIND_tn_optimizer_def, checkpoint_type(part));
        else if (part->kind == PART_SCHEDULER)
            status = add_schedulers(&ids, part->as.scheduler);
    }
    for (int64_t i = 0; i < checkpoint->n_needed && status == TN_OK; i++)
        status = add_name(&ids, checkpoint->needed[i].kind, checkpoint->needed[i].name);
    if (status == TN_OK)
        status = tn_state_set_value(state, CHECKPOINT_PLUGINS,
                                    tn_value_dict(ids.at, (uint32_t)ids.count));
    tn_free(ids.at);
    return status;
}

/* ---- looking for them ------------------------------------------------------------------------ */

/* Adds, for a plugin that is not usable, its id and version and, if there is one, its line of the
 * load report. */
static tn_status describe(char **text, const char *id, const char *version)
{
    tn_plugin_report report;
    tn_status status = checkpoint_append(text, "%s\"%s\" %s", *text != NULL ? ", " : "", id,
                                         version);

    for (int64_t i = 0; i < tn_plugin_count() && status == TN_OK; i++) {
        report = (tn_plugin_report){ 0 };
        if (tn_plugin_report_at(i, &report) == TN_OK && strcmp(report.id, id) == 0)
            return checkpoint_append(text, " (%s: %s: %s)", report.file,
                                     tn_outcome_name(report.outcome), report.reason);
    }
    return status;
}

/* Says where plugins were searched. Without TENON_PLUGIN_PATH that is the folder of the plugins
 * that come with Tenon, such as this one. */
static tn_status describe_folders(char **text)
{
    const char *list = tn_env_get("TENON_PLUGINS"), *path = tn_env_get("TENON_PLUGIN_PATH"),
               *more = tn_env_get("TENON_PLUGIN_PATH_ADD"), *end;
    tn_plugin_report own = { .file = "" };
    tn_status status;

    if (path == NULL && find_report("tenon.checkpoint", &own) &&
        (end = strrchr(own.file, '/')) != NULL)
        status = checkpoint_append(text, "searched: %.*s", (int)(end - own.file), own.file);
    else
        status = path != NULL ? checkpoint_append(text, "searched: TENON_PLUGIN_PATH=%q", path)
                              : checkpoint_append(text, "searched: the folder of the plugins");
    if (status == TN_OK && more != NULL)
        status = checkpoint_append(text, " and TENON_PLUGIN_PATH_ADD=%q", more);
    if (status == TN_OK && list != NULL)
        status = checkpoint_append(text, ", with TENON_PLUGINS=%q", list);
    return status;
}

tn_status plugins_check(const tn_state *state, const char *path)
{
    int64_t index = tn_state_find(state, CHECKPOINT_PLUGINS);
    tn_value list = index >= 0 ? tn_state_value(state, index) : tn_value_none();
    char *missing = NULL, *folders = NULL;
    int64_t count = 0;
    tn_status status = TN_OK;

    if (list.kind != TN_VALUE_DICT)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: not a checkpoint: entry \"" CHECKPOINT_PLUGINS
                       "\" is missing or not a dict; expected a file that tn_checkpoint_save wrote",
                       path);
    for (uint32_t i = 0; i + 1 < list.count; i += 2) {
        const tn_value id = list.as.list[i], version = list.as.list[i + 1];
        tn_plugin_report report;

        if (id.kind != TN_VALUE_STRING || version.kind != TN_VALUE_STRING) {
            status = tn_fail(TN_ERR_FORMAT,
                             "%s: " CHECKPOINT_PLUGINS ": plugin %u: wrong kind, got %s and %s; "
                             "expected its id and its version, two texts",
                             path, i / 2, tn_value_kind_name(id.kind),
                             tn_value_kind_name(version.kind));
            break;
        }
        if (!find_report(id.as.s, &report)) {
            status = describe(&missing, id.as.s, version.as.s);
            count++;
            if (status != TN_OK)
                break;
        } else if (strcmp(report.version, version.as.s) != 0) {
            tn_log(TN_LOG_WARNING,
                   "%s: plugin \"%s\": the checkpoint was written with version %s, loaded is %s "
                   "(%s)",
                   path, id.as.s, version.as.s, report.version, report.file);
        }
    }
    if (status == TN_OK && count > 0) {
        status = describe_folders(&folders);
        if (status == TN_OK)
            status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                             "%s: it needs the plugin%s %s, which %s not loaded; %s", path,
                             count == 1 ? "" : "s", missing, count == 1 ? "is" : "are", folders);
    }
    tn_free(folders);
    tn_free(missing);
    return status;
}
