/* SPDX-License-Identifier: MIT
 *
 * For tests of warnings: what Tenon has logged since the test began. */
#ifndef TN_TESTS_PLUGIN_LOGGED_H
#define TN_TESTS_PLUGIN_LOGGED_H

#include "tests/plugin/suite.h"

static char logged[8192];

static inline void collect(void *user, int level, const char *plugin, const char *text)
{
    (void)user, (void)level, (void)plugin;
    size_t length = strlen(logged);
    snprintf(logged + length, sizeof logged - length, "%s\n", text);
}

static inline void set_up_log(void)
{
    set_up();
    tn_set_log_sink(collect, NULL);
}

#endif
