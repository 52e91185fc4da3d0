/* SPDX-License-Identifier: MIT
 *
 * tenon env: prints the environment variables of Tenon and of its plugins, with value and origin.
 */
#include "tool.h"

void tool_env_json(const tn_env_row *row)
{
    json_begin(NULL, '{');
    json_text("name", row->name);
    json_text("value", row->value);
    json_text("origin", row->origin);
    json_text("help", row->help);
    json_end('}');
}

static int run(int count, char **arguments, bool json)
{
    table t = { .columns = 4, .wraps = true };
    tn_env_row row;
    (void)count, (void)arguments;
    if (tn_plugin_count() < 0)
        return tool_fail("the variables of plugins cannot be listed");
    int64_t rows = tn_env_count();
    if (json) {
        json_begin(NULL, '{');
        json_begin("variables", '[');
    } else {
        table_row(&t, "NAME", "VALUE", "ORIGIN", "HELP");
    }
    for (int64_t i = 0; i < rows; i++) {
        if (tn_env_at(i, &row) != TN_OK)
            return tool_fail("the environment cannot be listed");
        if (json) {
            tool_env_json(&row);
        } else {
            table_row(&t, row.name, row.value ? row.value : "-", row.origin, row.help);
        }
    }
    if (json) {
        json_end(']');
        json_end('}');
    } else {
        table_print(&t);
    }
    return EXIT_OK;
}

const command env_command = {
    "env",
    "",
    "environment variables, their values and origins",
    "Prints every environment variable that the library or a plugin reads, its value, where it "
    "comes from, and its effect. All are ignored in set-uid programs.",
    0,
    0,
    run,
    0,
    NULL
};
