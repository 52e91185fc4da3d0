/* SPDX-License-Identifier: MIT
 *
 * The table of plugins that are linked into the program: there are none. With `configure
 * --enable-static-plugins` this file is left out, and build-aux/static-plugins writes the table
 * (docs/abi.md, rule 17). */
#include "core/plugin/internal.h"

const tn__static_plugin tn__static_plugins[] = { { NULL, NULL } };
