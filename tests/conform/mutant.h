/* SPDX-License-Identifier: MIT
 *
 * Plugins with one error each: the environment variable MUTANT chooses it, so that one file has
 * many. Without it the plugin is right. mutants.txt lists them. */
#ifndef TN_TESTS_CONFORM_MUTANT_H
#define TN_TESTS_CONFORM_MUTANT_H

#include <stdlib.h>
#include <string.h>

#include <tenon/plugin.h>

static const char *mutant_name = "";

__attribute__((constructor)) static void mutant_choose(void)
{
    const char *name = getenv("MUTANT");

    mutant_name = name != NULL ? name : "";
}

/* Whether the plugin has the error `name`. */
static inline bool is(const char *name)
{
    return strcmp(mutant_name, name) == 0;
}

#endif
