/* SPDX-License-Identifier: MIT
 *
 * Plugins and registries as the other folders of the core see them. */
#ifndef TN_CORE_PLUGIN_INTERNAL_H
#define TN_CORE_PLUGIN_INTERNAL_H

#include "core/base/internal.h"

typedef struct tn__plugin {
    const char *id;
    const char *version;
    const char *file;
    const tn_plugin *plugin; /* the host's zero-filled copy */
    tn_plugin_report report;
    _Atomic int32_t active; /* 0 not yet, 1 yes, -1 failed */
    _Atomic bool ended;     /* tn_shutdown deactivated it */
    _Atomic(struct tn__plugin *) next;
    struct tn__plugin_private *private; /* core/plugin's; NULL in a stand-in of a test */
} tn__plugin;

/* The file of a plugin, for messages; NULL: the program itself. */
static inline const char *tn__plugin_file(const tn__plugin *plugin)
{
    return plugin != NULL && plugin->file != NULL ? plugin->file : "(program)";
}

/* Finds and queries all plugins on the path, once per process; cheap afterwards. Every look-up
 * by name calls it, before it takes any lock of its own (contributions are handed to tn__op_add
 * and its like from inside). TN_ERR_MEMORY when memory ran out: the next call goes on. */
tn_status tn__plugins_discover(void);

/* Activates the plugin (and first what it requires) if that was not done; fast when it was. */
tn_status tn__plugin_use(tn__plugin *plugin);

/* What came of looking for the devices of a backend of this plugin; for the report (stage
 * "probe"). The message of a failure is the thread's last error. */
void tn__plugin_probed(tn__plugin *plugin, tn_status status);

/* The id of the plugin in whose file an address of code is; where that is unknown (a call that
 * ended a function was compiled as a jump), of the one that this thread entered last. */
const char *tn__address_plugin(const void *address);

/* The load report's line about a device type or name that is not available: "plugin X (file):
 * FAILED at dlopen: ...", for error texts. Appends nothing when the report knows nothing of it. */
void tn__plugins_explain(const char *name, tn__text *text);

/* Why there is nothing of some kind: what TENON_PLUGINS keeps out, and the folders without plugins;
 * appended to an error text, "; " first. Appends nothing when neither is the reason. */
void tn__plugins_explain_none(tn__text *text);

/* Registries by kind and name for contributions that need nothing more (layer, optimizer,
 * scheduler, init, format, observer, dataset). Look-ups take no lock: an immutable snapshot. */
typedef struct tn__entry {
    const char *name;
    const tn_head *contribution; /* the host's zero-filled full-size copy */
    tn__plugin *plugin;
} tn__entry;

/* The entry, its plugin activated; NULL and TN_ERR_KEY with what is known and the nearest. */
const tn__entry *tn__registry_use(uint32_t kind, const char *name);
/* All of a kind, sorted; the array stays valid for good. */
int64_t tn__registry_all(uint32_t kind, const tn__entry *const **entries);
/* Adds; refused when the name is taken (both files named). */
tn_status tn__registry_add(uint32_t kind, const char *name, const tn_head *contribution,
                           tn__plugin *plugin);

const tn_host_info *tn__host_info(void);

/* Plugins that were linked in (configure --enable-static-plugins): ends with a NULL name. The
 * report says "(static)" for a file. */
typedef struct tn__static_plugin {
    const char *name;
    tn_plugin_query_fn *query;
} tn__static_plugin;
extern TN_HIDDEN const tn__static_plugin tn__static_plugins[];

/* TENON_CHECK=1; -1: not asked yet. */
extern _Atomic int32_t tn__check_mode;
bool tn__host_ask_check_mode(void);
static inline bool tn__checked(void)
{
    int32_t now = atomic_load_explicit(&tn__check_mode, memory_order_relaxed);

    return tn__likely(now >= 0) ? now : tn__host_ask_check_mode();
}
void tn__plugins_shutdown(void);

enum { TN__OBSERVERS = 16 }; /* further ones are refused when they are registered */

/* ---- calls to the folders above -------------------------------------------------------------- */

struct tn__check_thread;

/* Operators, kernels and backends have registries in the folders above, which also know what the
 * checked boundary looks at. core/library/upward_calls.c fills the table. */
typedef struct tn__plugin_calls {
    /* The table for plugins of an interface (generated). */
    const void *(*host_interface)(const char *id, uint32_t min, uint32_t max, uint32_t *revision,
                                  uint32_t *size);
    tn_status (*backend_add)(const tn_backend_def *backend, tn__plugin *plugin);
    tn_status (*op_add)(const tn_op_def *def, tn__plugin *plugin);
    tn_status (*kernel_add)(const tn_kernel_def *kernel, tn__plugin *plugin);
    void (*kernels_idle)(void (*tell)(tn__plugin *plugin, const char *words));
    void (*observers_changed)(void);
    int64_t (*op_count)(void);
    const char *(*op_name)(int64_t index);
    /* The descriptor and the plugin of a name; NULL and an error. */
    const tn_head *(*op_find)(const char *name, tn__plugin **plugin);
    int64_t (*device_type_count)(void);
    const char *(*device_type_name)(int64_t index); /* NULL when there is none */
    /* The same of a device type; NULL without an error. */
    const tn_head *(*device_type_find)(const char *name, tn__plugin **plugin);
    /* Checking functions for the copies of descriptors (core/check/check.h). */
    tn_status (*check_backend)(tn_backend_def *backend, const tn__plugin *plugin);
    size_t (*check_kernel_size)(void);
    void (*check_kernel)(tn_kernel_def *kernel, void *shadow, const tn__plugin *plugin);
    void (*check_thread_note)(struct tn__check_thread *before);
    void (*check_threads_note)(struct tn__check_thread *before);
    tn_status (*check_thread_judge)(const struct tn__check_thread *before, const char *plugin,
                                    const char *what, tn_status status);
} tn__plugin_calls;
extern TN_HIDDEN const tn__plugin_calls tn__plugin_up;

#endif
