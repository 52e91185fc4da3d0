/* SPDX-License-Identifier: MIT
 *
 * The internal interface of core/plugin for the other folders of the core: plugins and
 * registries. */
#ifndef TN_CORE_PLUGIN_INTERNAL_H
#define TN_CORE_PLUGIN_INTERNAL_H

#include "core/base/internal.h"

#include <tenon/query.h>
#include <tenon/runtime.h>

typedef struct tn__plugin {
    const char *id;
    const char *version;
    const char *file;
    /* the host's copy of the descriptor; members that the plugin lacks are zero */
    const tn_plugin *plugin;
    tn_plugin_report report;
    _Atomic int32_t active; /* 0: not activated yet, 1: active, -1: failed */
    _Atomic bool ended;     /* tn_shutdown deactivated it */
    _Atomic(struct tn__plugin *) next;
    /* used by core/plugin only; NULL in tests that make up a plugin */
    struct tn__plugin_private *private;
} tn__plugin;

/* Returns the file of a plugin for messages; "(program)" for NULL, which means the program
 * itself. */
static inline const char *tn__plugin_file(const tn__plugin *plugin)
{
    return plugin != NULL && plugin->file != NULL ? plugin->file : "(program)";
}

/* Finds and queries all plugins on the plugin path when it is first called; later calls return at
 * once. Every look-up by name calls this function before it takes a lock, because this function
 * registers contributions. Returns TN_ERR_MEMORY if
 * memory runs out; the next call continues. */
tn_status tn__plugins_discover(void);

/* Activates the plugin, after the plugins that it requires, unless it is active already; that case
 * is fast. */
tn_status tn__plugin_use(tn__plugin *plugin);

/* Allocates zeroed memory that lives as long as the process. Returns NULL and sets the error if
 * memory runs out. */
void *tn__plugin_alloc(tn__plugin *plugin, size_t size);

/* Records in the load report (stage "probe") the result of looking for the devices of a backend of
 * this plugin. If `status` is a failure, the message is the thread's last error. */
void tn__plugin_probed(tn__plugin *plugin, tn_status status);

/* Returns the id of the plugin whose file contains a code address, such as a return address. If no
 * plugin does, for example because the last call of a function was compiled as a jump, returns the
 * id of the plugin whose code this thread runs. */
const char *tn__address_plugin(const void *address);

/* Appends, for error messages, the lines of the load report about a device type or name that is not
 * available: "plugin X (file): FAILED at dlopen: ...". Appends nothing if there are none. */
void tn__plugins_explain(const char *name, tn__text *text);

/* Appends, for error messages, why there are no contributions of some kind: "; " and the plugins
 * that TENON_PLUGINS excludes, or the folders without plugins. Appends nothing if neither is the
 * reason. */
void tn__plugins_explain_none(tn__text *text);

/* An entry of the registries, which find contributions by kind and name: layers, optimizers,
 * schedulers, inits, formats, observers, passes, compilers, communicators, datasets, transforms
 * and pruning methods. Look-ups take no lock because a registry is an immutable snapshot. */
typedef struct tn__entry {
    const char *name;
    const tn_head *contribution; /* the host's copy; members that the plugin lacks are zero */
    tn__plugin *plugin;
    _Atomic int32_t on; /* of observers: 1 on, -1 off, 0 not decided yet */
} tn__entry;

/* Returns the entry with that name after activating its plugin. Returns NULL and sets the error on
 * failure; TN_ERR_KEY, with the known names and the nearest, if there is no such entry. */
const tn__entry *tn__registry_use(uint32_t kind, const char *name);
/* Fails with TN_ERR_KEY: no plugin provides the name, the nearest name or all known names, and what
 * the load report says about plugins with such a name. */
void tn__registry_unknown(uint32_t kind, const char *name);
/* Sets *entries to all entries of a kind, sorted by name, and returns their number. The array stays
 * valid until tn_shutdown. */
int64_t tn__registry_all(uint32_t kind, const tn__entry *const **entries);
/* Adds an entry. Fails with TN_ERR_REFUSED, and names both files, if the name is taken. */
tn_status tn__registry_add(uint32_t kind, const char *name, const tn_head *contribution,
                           tn__plugin *plugin);

const tn_host_info *tn__host_info(void);

/* Plugins that are linked into the program (configure --enable-static-plugins). The last element
 * has a NULL name. The load report shows "(static)" as their file. */
typedef struct tn__static_plugin {
    const char *name;
    tn_plugin_query_fn *query;
} tn__static_plugin;
extern TN_HIDDEN const tn__static_plugin tn__static_plugins[];

/* Whether TENON_CHECK is on (1) or off (0); -1: not read yet. */
extern _Atomic int32_t tn__boundary_mode;
bool tn__host_ask_check_mode(void);
static inline bool tn__boundary_on(void)
{
    int32_t now = atomic_load_explicit(&tn__boundary_mode, memory_order_relaxed);

    return tn__likely(now >= 0) ? now : tn__host_ask_check_mode();
}
void tn__plugins_shutdown(void);

enum { TN__OBSERVERS = 16 }; /* the most observers that can be registered */

/* ---- calls to the folders above -------------------------------------------------------------- */

/* Functions of folders above core/plugin that core/plugin needs: the checked boundary.
 * lib/library/upward_calls.c fills the table. */
typedef struct tn__plugin_calls {
    /* Returns the host's table of functions for an interface (generated), NULL if the host does not
     * have it. */
    const void *(*host_interface)(const char *id, uint32_t min, uint32_t max, uint32_t *revision,
                                  uint32_t *size);
    /* While checking is on, puts checking functions into the host's copy of a descriptor. */
    tn_status (*check)(tn_head *copy, tn__plugin *plugin);
    /* Calls the plugin's `activate`. */
    tn_status (*activate)(const tn_plugin *plugin);
} tn__plugin_calls;
extern TN_HIDDEN const tn__plugin_calls tn__plugin_up;

#endif
