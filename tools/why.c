/* SPDX-License-Identifier: MIT
 *
 * tenon why NAME|FILE: runs one plugin through all stages of loading. This happens in a child
 * process (this program, started again), because a plugin may crash; the parent then reports the
 * last stage and the signal. */
#include "tool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- the child ------------------------------------------------------------------------------- */

void plugin_stem(const char *path, char *out, size_t size)
{
    const char *base = base_name(path);
    base += !strncmp(base, "lib", 3) ? 3 : 0;
    const char *dot = strstr(base, ".so");
    snprintf(out, size, "%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
}

/* Returns true if `name` (or `real`, its absolute path) is the file, the file's name, the id, or
 * the last part of the id of a plugin. */
static bool is_named(const tn_plugin_report *r, const char *name, const char *real)
{
    char stem[256];
    const char *part = strrchr(r->id, '.');
    if (!strcmp(r->file, name) || (real && !strcmp(r->file, real)))
        return true;
    if (strchr(name, '/'))
        return false;
    plugin_stem(r->file, stem, sizeof stem);
    return !strcmp(r->id, name) || (part && !strcmp(part + 1, name)) ||
           !strcmp(base_name(r->file), name) || !strcmp(stem, name);
}

/* Finds the load report of a plugin by name; prefers a plugin that was loaded. */
static bool line_of(const char *name, const char *real, tn_plugin_report *r)
{
    tn_plugin_report each;
    bool found = false;
    for (int64_t i = 0; tn_plugin_report_at(i, &each) == TN_OK; i++)
        if (is_named(&each, name, real) &&
            (!found || (each.outcome == TN_OUTCOME_OK && r->outcome != TN_OUTCOME_OK))) {
            *r = each;
            found = true;
        }
    tn_error_clear();
    return found;
}

/* Opens and describes every device of a type. Returns false, with the message of the first failure
 * in `words`, if one fails. */
static bool devices_good(const char *type, char *words, size_t size)
{
    char name[64], step[80];
    bool good = true;
    for (int64_t i = 0;; i++) {
        tn_device_info info = { TN_HEAD(tn_device_info) };
        snprintf(name, sizeof name, "%s:%lld", type, (long long)i);
        snprintf(step, sizeof step, "opening %s ", name);
        const tn_device *device = tn_device_find(name);
        if (!device && !child_stepped(step)) /* there are no more devices */
            break;
        if (device && tn_device_describe(device, &info) == TN_OK)
            continue;
        if (good)
            snprintf(words, size, "%s%s%s", device ? name : "", device ? ": " : "",
                     tn_error_text());
        good = false;
        tn_error_clear();
    }
    return good;
}

/* Activates a plugin and opens the devices of its device types. Writes the message of a device that
 * fails to `words`. */
static void go_all_the_way(const tn_plugin_report *r, char *words, size_t size)
{
    int64_t types = tn_registry_count(TN_KIND_tn_backend_def);
    if (r->outcome != TN_OUTCOME_OK || !r->id[0])
        return;
    bool good = tn_plugin_activate(r->id) == TN_OK;
    for (int64_t i = 0; good && i < types; i++) {
        const char *type = tn_registry_name(TN_KIND_tn_backend_def, i);
        const char *owner = type ? tn_registry_plugin(TN_KIND_tn_backend_def, type) : NULL;
        if (owner && !strcmp(owner, r->id))
            devices_good(type, words, size);
    }
    tn_error_clear();
}

static void show(const tn_plugin_report *r, const char *crash, bool json)
{
    if (json) {
        json_begin(NULL, '{');
        report_json(r);
        if (crash)
            json_text("signal", crash);
        else
            gives_json(r->id);
        json_end('}');
        return;
    }
    print_wrapped("plugin", 15, r->id[0] ? r->id : "-");
    if (r->version[0])
        print_wrapped("version", 15, r->version);
    print_wrapped("file", 15, r->file);
    if (r->help[0])
        print_wrapped("help", 15, r->help);
    print_wrapped("outcome", 15, tn_outcome_name(r->outcome));
    print_wrapped("stage", 15, tn_stage_name(r->stage));
    if (r->reason[0])
        print_wrapped("reason", 15, r->reason);
    if (r->id[0])
        gives_print(r->id);
}

static int examine(const char *name, bool json)
{
    char path[PATH_MAX];
    const char *real = realpath(name, path) ? path : NULL;
    static char words[1200];
    tn_plugin_report r;
    if (tn_plugin_count() < 0)
        return tool_fail("the plugins cannot be listed");
    if (!line_of(name, real, &r)) {
        bool file = real && (strchr(name, '/') || strstr(name, ".so"));
        if (file)
            tn_plugin_load(real);
        tn_error_clear();
        if (!file || !line_of(name, real, &r)) {
            snprintf(
                words, sizeof words,
                "no plugin and no file has the name \"%.300s\"; `tenon plugins` lists all that "
                "were found",
                name);
            return tool_refuse(TN_ERR_KEY, words);
        }
    }
    go_all_the_way(&r, words, sizeof words);
    line_of(name, real, &r);
    if (r.outcome == TN_OUTCOME_OK && words[0]) {
        r.outcome = TN_OUTCOME_FAILED;
        r.stage = TN_STAGE_PROBE;
        r.reason = words;
    }
    show(&r, NULL, json);
    return r.outcome == TN_OUTCOME_OK ? EXIT_OK : EXIT_NOT_OK;
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* Returns true if the plugin that caused a fault is the requested one. */
static bool is_wanted(const fault *f, const char *name)
{
    char real[PATH_MAX];
    tn_plugin_report at = { .id = "", .file = f->file };
    return is_named(&at, name, realpath(name, real) ? real : NULL);
}

/* Prints the report of a plugin that crashed or stopped its child process. */
static int show_fault(const fault *f)
{
    tn_plugin_report r = { .id = "",
                           .version = "",
                           .file = f->file,
                           .help = "",
                           .reason = f->reason,
                           .outcome = TN_OUTCOME_FAILED,
                           .stage = f->stage };
    show(&r, f->signal, tool_json);
    return EXIT_NOT_OK;
}

static int run(int count, char **arguments, bool json)
{
    const char *again[] = { "tenon",
                            "why",
                            json ? "--json" : "--",
                            json ? "--" : arguments[0],
                            json ? arguments[0] : NULL,
                            NULL };
    (void)count;
    if (child_here())
        return examine(arguments[0], json);
    return child_run(again, is_wanted, arguments[0], show_fault);
}

const command why_command = {
    "why",
    "NAME",
    "runs one plugin through all stages",
    "Runs one plugin, named by id, by the last part of its id, by file name or by path, through "
    "all stages, including activation and the search for devices, and prints the outcome and its "
    "contributions. This happens in a child process: if the plugin crashes, or does not return "
    "from a step within --seconds, that is the reason printed.\n\nExit status 1 if its outcome is "
    "not OK or nothing has that name.",
    1,
    1,
    run,
    TOOL_LIMITED,
    NULL
};
