/* SPDX-License-Identifier: MIT
 *
 * The table of plugins that are linked into the program. It is empty here; with `configure
 * --enable-static-plugins`, build-aux/static-plugins writes a table that replaces it (docs/abi.md,
 * rule 17). */
#include "core/plugin/internal.h"

#ifndef TN_STATIC_PLUGINS
const tn__static_plugin tn__static_plugins[] = { { NULL, NULL } };
#endif
