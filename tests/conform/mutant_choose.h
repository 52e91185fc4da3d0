/* SPDX-License-Identifier: MIT
 *
 * Plugins with one error each. The environment variable MUTANT chooses the error, so that one
 * plugin file contains many errors. Without this variable the plugin has no error. mutants.txt
 * lists them. */
#ifndef TN_TESTS_CONFORM_MUTANT_CHOOSE_H
#define TN_TESTS_CONFORM_MUTANT_CHOOSE_H

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
