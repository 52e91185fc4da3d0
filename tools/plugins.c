/* SPDX-License-Identifier: MIT
 *
 * tenon plugins: prints the load report as a table. */
#include "tool.h"

#include <string.h>
#include <unistd.h>

static int run(int count, char **arguments, bool json)
{
    static const char *const text[] = { "tenon", "plugins", NULL }, *const as_json[] = {
        "tenon", "plugins", "--json", NULL
    };
    char folder[4096] = "";
    fault what;
    table t = { .columns = 5 };
    tn_plugin_report r;
    (void)count, (void)arguments;
    /* Without /proc no child can be started, so this process inspects the plugins itself. */
    if (!child_here() && !access("/proc/self/exe", X_OK))
        return child_run(json ? as_json : text, NULL, NULL, NULL);
    int64_t lines = tn_plugin_count();
    if (lines < 0)
        return tool_fail("the plugins cannot be listed");
    if (json) {
        json_begin(NULL, '{');
        json_begin("plugins", '[');
    } else if (!lines) {
        printf("no plugins found; TENON_PLUGIN_PATH names the folders to search (tenon env)\n");
    } else {
        table_row(&t, "NAME", "VERSION", "FILE", "OUTCOME", "STAGE");
    }
    for (int64_t i = 0; i < lines; i++) {
        if (tn_plugin_report_at(i, &r) != TN_OK)
            return tool_fail("the plugins cannot be listed");
        if (child_fault(r.file, &what)) {
            r.outcome = TN_OUTCOME_FAILED;
            r.stage = what.stage;
            r.reason = what.reason;
        }
        if (json) {
            json_begin(NULL, '{');
            report_json(&r);
            json_end('}');
            continue;
        }
        const char *base = base_name(r.file);
        if (base > r.file && !folder[0])
            snprintf(folder, sizeof folder, "%.*s", (int)(base - r.file), r.file);
        bool here = base > r.file && strlen(folder) == (size_t)(base - r.file) &&
                    !strncmp(folder, r.file, strlen(folder));
        table_row(&t, r.id[0] ? r.id : "-", r.version[0] ? r.version : "-", here ? base : r.file,
                  tn_outcome_name(r.outcome),
                  r.active && r.stage < TN_STAGE_ACTIVATE ? "activate" : tn_stage_name(r.stage));
        if (r.reason[0])
            table_note(&t, "%s", r.reason);
    }
    if (json) {
        json_end(']');
        json_end('}');
        return EXIT_OK;
    }
    table_print(&t);
    if (folder[0])
        printf("\nFiles shown without a folder are in %s\n", folder);
    return EXIT_OK;
}

const command plugins_command = {
    "plugins",
    "",
    "lists every plugin that was found, and its outcome",
    "Prints a line for every plugin file that was found: name, version, file, outcome, and the "
    "last stage that it reached.\nThe next line is the reason if it was not loaded or has a "
    "problem.\n\nOutcomes: OK; NOT APPLICABLE (no such hardware); REFUSED (version or policy); "
    "FAILED (broken).\nStages: found, readable, owner, dlopen, symbol, query, version, activate, "
    "probe. A plugin is activated at its first use, so an OK plugin shows version here; `tenon why "
    "NAME` runs all stages. The listing runs in a child process: a plugin that crashes, or does "
    "not return within --seconds, is FAILED, and the others are listed.",
    0,
    0,
    run,
    TOOL_LIMITED,
    NULL
};
