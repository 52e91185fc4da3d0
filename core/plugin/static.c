/* SPDX-License-Identifier: MIT
 *
 * The table of plugins that were linked in: empty here; `configure --enable-static-plugins` has
 * build-aux/static-plugins write one in its place (rule 17). */
#include "core/plugin/internal.h"

#ifndef TN_STATIC_PLUGINS
const tn__static_plugin tn__static_plugins[] = { { NULL, NULL } };
#endif
