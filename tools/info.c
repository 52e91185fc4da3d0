/* SPDX-License-Identifier: MIT
 *
 * tenon info [NAME]: lists all contributions by kind, or describes the contributions and plugins
 * with that name. */
#include "tool.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void operands(const char *title, const tn_operand *list, int32_t count)
{
    char text[1024] = "";
    for (int32_t i = 0; i < count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s%s", i ? ", " : "", list[i].name,
                 list[i].flags & TN_OPERAND_LIST       ? "..."
                 : list[i].flags & TN_OPERAND_OPTIONAL ? " (optional)"
                                                       : "");
    }
    print_wrapped(title, 15, count ? text : "none");
}

void op_print(const tn_op_def *def)
{
    const tn_op *op = tn_op_find(def->name, def->revision);
    int64_t types = tn_registry_count(TN_KIND_tn_backend_def);
    if (def->math)
        print_wrapped("math", 15, def->math);
    operands("inputs", def->inputs, def->n_inputs);
    operands("outputs", def->outputs, def->n_outputs);
    print_wrapped("gradient", 15,
                  def->derive      ? "derivative"
                  : def->decompose ? "through its decomposition"
                                   : "none");
    if (def->flags & TN_OP_VIEW)
        print_wrapped("kernel", 15, "none: the result is a view");
    else if (def->dispatch_input >= 0 || def->n_outputs > 0) {
        char by[96];

        snprintf(by, sizeof by, "the dtype of %s",
                 def->dispatch_input >= 0 ? def->inputs[def->dispatch_input].name
                                          : def->outputs[0].name);
        print_wrapped("kernel by", 15, by);
    }
    for (int64_t i = 0; op && i < types; i++) {
        const char *type = tn_registry_name(TN_KIND_tn_backend_def, i);
        char lead[64], text[512];
        snprintf(lead, sizeof lead, "on %s", type);
        if (tn_op_route(op, type, TN_F32, text, sizeof text) >= 0)
            print_wrapped(lead, 15, text);
    }
    tn_error_clear();
}

/* Describes how tracing a graph treats a layer. Returns NULL if the flags of the layer do not
 * say. */
static const char *traced_as(const tn_layer_def *layer)
{
    return layer->flags & TN_LAYER_LEAF      ? "one node (leaf)"
           : layer->flags & TN_LAYER_THROUGH ? "what it calls (through)"
                                             : NULL;
}

static void shown(uint32_t kind, const char *name, const tn_head *head, bool json)
{
    const char *plugin = tn_registry_plugin(kind, name);
    if (json) {
        json_begin(NULL, '{');
        json_text("kind", tn_kind_name(kind));
        json_text("name", name);
        json_text("plugin", plugin);
        json_text("help", tn_contribution_help(head));
        if (head->kind == TN_KIND_tn_op_def)
            json_text("math", ((const tn_op_def *)head)->math);
        if (head->kind == TN_KIND_tn_format_def)
            json_text("extensions", ((const tn_format_def *)head)->extensions);
        if (head->kind == TN_KIND_tn_pass_def)
            json_text("after", ((const tn_pass_def *)head)->after);
        if (head->kind == TN_KIND_tn_compiler_def)
            json_text("device", ((const tn_compiler_def *)head)->device);
        if (head->kind == TN_KIND_tn_layer_def)
            json_text("traced_as", traced_as((const tn_layer_def *)head));
        options_json(tn_contribution_options(head));
        json_end('}');
        return;
    }
    printf("%s %s, from %s\n", tn_kind_name(kind), name, plugin ? plugin : "?");
    if (*tn_contribution_help(head))
        print_wrapped("", 0, tn_contribution_help(head));
    if (head->kind == TN_KIND_tn_op_def)
        op_print((const tn_op_def *)head);
    if (head->kind == TN_KIND_tn_layer_def && traced_as((const tn_layer_def *)head))
        print_wrapped("traced as", 15, traced_as((const tn_layer_def *)head));
    if (head->kind == TN_KIND_tn_format_def && ((const tn_format_def *)head)->extensions)
        print_wrapped("files", 15, ((const tn_format_def *)head)->extensions);
    if (head->kind == TN_KIND_tn_pass_def && ((const tn_pass_def *)head)->after)
        print_wrapped("after", 15, ((const tn_pass_def *)head)->after);
    if (head->kind == TN_KIND_tn_compiler_def)
        print_wrapped("device", 15, ((const tn_compiler_def *)head)->device);
    if (tn_contribution_options(head) && tn_contribution_options(head)->kind) {
        putchar('\n');
        options_print(tn_contribution_options(head));
    }
    putchar('\n');
}

/* Returns true if an environment variable belongs to the plugin: its name begins with TENON_<LAST
 * PART OF ID>_. */
static bool is_setting(const tn_env_row *row, const char *id)
{
    const char *part = strrchr(id, '.'), *name = row->name;
    part = part ? part + 1 : id;
    if (strncmp(name, "TENON_", 6))
        return false;
    for (name += 6; *part; part++, name++)
        if (*name != (isalnum((unsigned char)*part) ? toupper((unsigned char)*part) : '_'))
            return false;
    return *name == '_';
}

static void settings(const char *id, bool json)
{
    table t = { .columns = 4, .wraps = true };
    int64_t count = tn_env_count();
    tn_env_row row;
    if (json)
        json_begin("settings", '[');
    for (int64_t i = 0; i < count; i++) {
        if (tn_env_at(i, &row) != TN_OK || !is_setting(&row, id))
            continue;
        if (json) {
            tool_env_json(&row);
            continue;
        }
        if (!t.count)
            table_row(&t, "VARIABLE", "VALUE", "ORIGIN", "HELP");
        table_row(&t, row.name, row.value ? row.value : "-", row.origin, row.help);
    }
    if (json)
        json_end(']');
    else if (t.count)
        putchar('\n');
    table_print(&t);
}

static void plugin_shown(const tn_plugin_report *r, bool json)
{
    if (json) {
        json_begin(NULL, '{');
        json_text("kind", "plugin");
        json_text("name", r->id);
        report_json(r);
        gives_json(r->id);
        settings(r->id, true);
        json_end('}');
        return;
    }
    printf("plugin %s %s\n", r->id, r->version);
    if (r->help[0])
        print_wrapped("", 0, r->help);
    print_wrapped("file", 15, r->file);
    gives_print(r->id);
    settings(r->id, false);
    putchar('\n');
}

/* Returns true if `name` is the id of the plugin or the last part of the id. */
static bool is_named(const tn_plugin_report *r, const char *name)
{
    const char *part = strrchr(r->id, '.');
    return r->id[0] && (!strcmp(r->id, name) || (part && !strcmp(part + 1, name)));
}

/* Returns the names of all contributions of a kind, separated by commas. The caller frees the
 * text. */
static char *names_of(uint32_t kind, int64_t count)
{
    size_t size = 1;
    for (int64_t i = 0; i < count; i++)
        size += strlen(tn_registry_name(kind, i)) + 2;
    char *text = calloc(1, size), *at = text;
    for (int64_t i = 0; text && i < count; i++)
        at += sprintf(at, "%s%s", i ? ", " : "", tn_registry_name(kind, i));
    return text;
}

static int list_all(bool json)
{
    if (json)
        json_begin(NULL, '{');
    for (uint32_t kind = 0; (kind = kind_after(kind));) {
        int64_t count = tn_registry_count(kind);
        if (json) {
            json_begin(kind_many(kind), '[');
            for (int64_t i = 0; i < count; i++)
                json_text(NULL, tn_registry_name(kind, i));
            json_end(']');
        } else if (kind == TN_KIND_tn_op_def) {
            printf("%-17s%lld; `tenon ops` lists them\n", kind_many(kind), (long long)count);
        } else {
            char *names = names_of(kind, count);
            print_wrapped(kind_many(kind), 17, names && *names ? names : "none");
            free(names);
        }
    }
    if (json)
        json_end('}');
    else
        printf("\n`tenon info NAME` lists the options of one.\n");
    return EXIT_OK;
}

/* Names the plugins that did not load completely: one of them may provide the requested name.
 * Plugins refused at stage "found" are left out: TENON_PLUGINS excludes them, or they are the same
 * file as another plugin. */
static void note_missing_plugins(void)
{
    tn_plugin_report r;
    for (int64_t i = 0; i < tn_plugin_count(); i++) {
        if (tn_plugin_report_at(i, &r) != TN_OK || r.outcome == TN_OUTCOME_NOT_APPLICABLE ||
            (r.outcome == TN_OUTCOME_REFUSED && r.stage == TN_STAGE_FOUND) ||
            (r.outcome == TN_OUTCOME_OK && !r.refused))
            continue;
        fprintf(stderr,
                "tenon: plugin %s, which may provide this name, did not load completely: %s at "
                "%s: %s\n",
                r.file, tn_outcome_name(r.outcome), tn_stage_name(r.stage), r.reason);
    }
}

static int run(int count, char **arguments, bool json)
{
    const char *name = count ? arguments[0] : NULL;
    int64_t found = 0, lines = tn_plugin_count();
    tn_plugin_report r;
    if (lines < 0)
        return tool_fail("the plugins cannot be listed");
    if (!name)
        return list_all(json);
    if (json) {
        json_begin(NULL, '{');
        json_begin("found", '[');
    }
    for (uint32_t kind = 0; (kind = kind_after(kind));) {
        uint64_t mark = tn_error_mark();
        const tn_head *head = tn_registry_find(kind, name);
        tn_error_restore(mark);
        if (!head)
            continue;
        shown(kind, name, head, json);
        found++;
    }
    for (int64_t i = 0; i < lines; i++)
        if (tn_plugin_report_at(i, &r) == TN_OK && is_named(&r, name)) {
            plugin_shown(&r, json);
            found++;
        }
    if (json) {
        json_end(']');
        json_end('}');
    }
    if (found)
        return EXIT_OK;
    fprintf(stderr,
            "tenon: unknown name \"%s\" (expected the name of a contribution, an operator or a "
            "plugin; `tenon info` lists them)\n",
            name);
    for (uint32_t kind = 0; (kind = kind_after(kind));) {
        tn_error_clear();
        tn_registry_find(kind, name);
        const char *nearest = strstr(tn_error_text(), "did you mean ");
        if (nearest)
            fprintf(stderr, "tenon: among %s: %.*s\n", kind_many(kind),
                    (int)strcspn(nearest, "?;.") + 1, nearest);
    }
    note_missing_plugins();
    tn_error_clear();
    return EXIT_NOT_OK;
}

const command info_command = {
    "info",
    "[NAME]",
    "lists layers, optimizers, formats ..., or describes one",
    "Without a name, lists all contributions by kind: device types, layers, optimizers, "
    "schedulers, inits, formats, observers, passes, compilers, communicators, datasets, transforms "
    "and pruning methods. With one, describes the contribution, operator or plugin of that name: "
    "who provides it, and its options with type, default and help.\n\n"
    "Exit status 1 if nothing has that name.",
    0,
    1,
    run,
    0,
    NULL
};
