/* SPDX-License-Identifier: MIT
 *
 * Output that several subcommands share: options, and the contributions of a plugin. */
#include "tool.h"

#include <string.h>

const kind_name kind_names[] = {
    { TN_KIND_tn_backend_def, "device", "devices" },
    { TN_KIND_tn_op_def, "operator", "operators" },
    { TN_KIND_tn_layer_def, "layer", "layers" },
    { TN_KIND_tn_optimizer_def, "optimizer", "optimizers" },
    { TN_KIND_tn_scheduler_def, "scheduler", "schedulers" },
    { TN_KIND_tn_init_def, "init", "inits" },
    { TN_KIND_tn_format_def, "format", "formats" },
    { TN_KIND_tn_observer_def, "observer", "observers" },
    { TN_KIND_tn_pass_def, "pass", "passes" },
    { TN_KIND_tn_compiler_def, "compiler", "compilers" },
    { TN_KIND_tn_comm_def, "communicator", "communicators" },
    { TN_KIND_tn_dataset_def, "dataset", "datasets" },
    { TN_KIND_tn_transform_def, "transform", "transforms" },
    { TN_KIND_tn_prune_def, "pruning method", "pruning methods" },
    { 0, NULL, NULL },
};

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const tn_option *options_of(const tn_head *head)
{
    switch (head->kind) {
    case TN_KIND_tn_op_def: return ((const tn_op_def *)head)->options;
    case TN_KIND_tn_layer_def: return ((const tn_layer_def *)head)->options;
    case TN_KIND_tn_optimizer_def: return ((const tn_optimizer_def *)head)->options;
    case TN_KIND_tn_scheduler_def: return ((const tn_scheduler_def *)head)->options;
    case TN_KIND_tn_init_def: return ((const tn_init_def *)head)->options;
    case TN_KIND_tn_pass_def: return ((const tn_pass_def *)head)->options;
    case TN_KIND_tn_comm_def: return ((const tn_comm_def *)head)->options;
    case TN_KIND_tn_dataset_def: return ((const tn_dataset_def *)head)->options;
    case TN_KIND_tn_transform_def: return ((const tn_transform_def *)head)->options;
    case TN_KIND_tn_prune_def: return ((const tn_prune_def *)head)->options;
    default: return NULL;
    }
}

const char *help_of(const tn_head *head)
{
    const char *help = NULL;
    switch (head->kind) {
    case TN_KIND_tn_backend_def: help = ((const tn_backend_def *)head)->help; break;
    case TN_KIND_tn_op_def: help = ((const tn_op_def *)head)->help; break;
    case TN_KIND_tn_layer_def: help = ((const tn_layer_def *)head)->help; break;
    case TN_KIND_tn_optimizer_def: help = ((const tn_optimizer_def *)head)->help; break;
    case TN_KIND_tn_scheduler_def: help = ((const tn_scheduler_def *)head)->help; break;
    case TN_KIND_tn_init_def: help = ((const tn_init_def *)head)->help; break;
    case TN_KIND_tn_format_def: help = ((const tn_format_def *)head)->help; break;
    case TN_KIND_tn_pass_def: help = ((const tn_pass_def *)head)->help; break;
    case TN_KIND_tn_compiler_def: help = ((const tn_compiler_def *)head)->help; break;
    case TN_KIND_tn_comm_def: help = ((const tn_comm_def *)head)->help; break;
    case TN_KIND_tn_dataset_def: help = ((const tn_dataset_def *)head)->help; break;
    case TN_KIND_tn_transform_def: help = ((const tn_transform_def *)head)->help; break;
    case TN_KIND_tn_prune_def: help = ((const tn_prune_def *)head)->help; break;
    default: break;
    }
    return help ? help : "";
}

static const char *type_of(const tn_option *option)
{
    static const char *const names[] = { "?",    "bool",   "int",   "float", "text",
                                         "ints", "floats", "dtype", "value", "number" };
    return option->kind < sizeof names / sizeof *names ? names[option->kind] : "?";
}

void options_print(const tn_option *options)
{
    table t = { .columns = 4, .wraps = true };
    if (!options || !options->kind)
        return;
    table_row(&t, "OPTION", "TYPE", "DEFAULT", "HELP");
    for (; options->kind && options->name; options++)
        table_row(&t, options->name, type_of(options), options->def ? options->def : "(required)",
                  options->help);
    table_print(&t);
}

void options_json(const tn_option *options)
{
    json_begin("options", '[');
    for (; options && options->kind && options->name; options++) {
        json_begin(NULL, '{');
        json_text("name", options->name);
        json_text("type", type_of(options));
        json_text("default", options->def);
        json_bool("required", options->flags & TN_OPTION_REQUIRED);
        json_bool("keyword", options->flags & TN_OPTION_KEYWORD);
        json_bool("none", options->flags & TN_OPTION_OPTIONAL);
        json_bool("many", options->flags & TN_OPTION_MANY);
        json_text("help", options->help ? options->help : "");
        json_end('}');
    }
    json_end(']');
}

void report_json(const tn_plugin_report *report)
{
    json_text("id", report->id);
    json_text("version", report->version);
    json_text("file", report->file);
    json_text("help", report->help);
    json_text("outcome", tn_outcome_name(report->outcome));
    json_text("stage", tn_stage_name(report->stage));
    json_text("reason", report->reason);
    json_bool("active", report->active);
    json_int("contributions", report->contributions);
    json_int("refused", report->refused);
}

/* Calls `each` (unless NULL) for every contribution of a kind that the plugin provides, with the
 * name and the number of earlier calls. Returns how many there are. */
static int64_t given(uint32_t kind, const char *plugin,
                     void (*each)(const char *name, int64_t before))
{
    int64_t count = tn_registry_count(kind), found = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *name = tn_registry_name(kind, i),
                   *owner = name ? tn_registry_plugin(kind, name) : NULL;
        if (owner && !strcmp(owner, plugin)) {
            if (each)
                each(name, found);
            found++;
        }
    }
    return found;
}

static void each_json(const char *name, int64_t before)
{
    (void)before;
    json_text(NULL, name);
}

void gives_json(const char *plugin)
{
    json_begin("gives", '{');
    for (const kind_name *k = kind_names; k->kind; k++) {
        if (!given(k->kind, plugin, NULL))
            continue;
        json_begin(k->many, '[');
        given(k->kind, plugin, each_json);
        json_end(']');
    }
    json_end('}');
}

static char names[8192];
static void each_text(const char *name, int64_t before)
{
    size_t length = strlen(names);
    snprintf(names + length, sizeof names - length, "%s%s", before ? ", " : "", name);
}

void gives_print(const char *plugin)
{
    for (const kind_name *k = kind_names; k->kind; k++) {
        names[0] = 0;
        if (given(k->kind, plugin, each_text))
            print_wrapped(k->many, 17, names);
    }
}
