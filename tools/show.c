/* SPDX-License-Identifier: MIT
 *
 * Output that several subcommands share: options, and the contributions of a plugin. */
#include "tool.h"

#include <string.h>

uint32_t kind_after(uint32_t kind)
{
    kind = kind ? kind + 1 : TN_KIND_tn_backend_def;
    for (; kind < TN_KIND_END; kind++)
        if (kind != TN_KIND_tn_kernel_def && tn_kind_name(kind)) /* operators find kernels */
            return kind;
    return 0;
}

const char *kind_many(uint32_t kind)
{
    static char many[64];
    const char *one = tn_kind_name(kind);
    size_t length = strlen(one);
    snprintf(many, sizeof many, "%s%s", one, length && one[length - 1] == 's' ? "es" : "s");
    return many;
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
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
    for (uint32_t kind = 0; (kind = kind_after(kind));) {
        if (!given(kind, plugin, NULL))
            continue;
        json_begin(kind_many(kind), '[');
        given(kind, plugin, each_json);
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
    for (uint32_t kind = 0; (kind = kind_after(kind));) {
        names[0] = 0;
        if (given(kind, plugin, each_text))
            print_wrapped(kind_many(kind), 17, names);
    }
}
