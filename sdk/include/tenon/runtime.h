/* SPDX-License-Identifier: MIT
 *
 * The plugins of this process, the result of loading each, and the environment.
 * tenon-interface: tenon.runtime 0 */
#ifndef TENON_RUNTIME_H
#define TENON_RUNTIME_H

#include <tenon/contrib.h>

TN_BEGIN_DECLS

struct tn_plugin;
struct tn_interface_need;

typedef uint32_t tn_outcome;
enum {
    TN_OUTCOME_OK = 0,
    TN_OUTCOME_NOT_APPLICABLE = 1, /* no such hardware */
    TN_OUTCOME_REFUSED = 2,        /* version, policy */
    TN_OUTCOME_FAILED = 3          /* broken */
};

typedef uint32_t tn_stage;
enum {
    TN_STAGE_FOUND = 0,
    TN_STAGE_READABLE = 1,
    TN_STAGE_OWNER = 2,
    TN_STAGE_DLOPEN = 3,
    TN_STAGE_SYMBOL = 4,
    TN_STAGE_QUERY = 5,
    TN_STAGE_VERSION = 6,
    TN_STAGE_ACTIVATE = 7,
    TN_STAGE_PROBE = 8 /* a backend looked for devices */
};

/* One line of the load report. Strings live until the process ends. It has no tn_head;
 * its size of 128 bytes never changes. */
typedef struct tn_plugin_report {
    const char *id; /* "" when the plugin could not be queried */
    const char *version;
    const char *file; /* "(program)" for tn_register, "(static)" for preloaded ones */
    const char *help;
    const char *reason; /* "" on success */
    int32_t outcome;    /* tn_outcome */
    int32_t stage;      /* the last one it reached */
    int32_t active;
    int32_t contributions;
    int64_t refused; /* contributions that were refused; the reason names them */
    void *reserved[8];
} tn_plugin_report;

/* Searches for plugins, if not done yet, and returns the number of lines of the report. */
TN_API int64_t tn_plugin_count(void);
/* Line `index`. */
TN_API tn_status tn_plugin_report_at(int64_t index, tn_plugin_report *out);
/* Loads one file now, by path. */
TN_API tn_status tn_plugin_load(const char *path);
/* Activates a plugin by id, as the first need of it would. */
TN_API tn_status tn_plugin_activate(const char *id);
/* "OK", "NOT APPLICABLE", "REFUSED", "FAILED"; "found" ... "probe". [static] */
TN_API const char *tn_outcome_name(int32_t outcome);
TN_API const char *tn_stage_name(int32_t stage);

/* Names in a registry (kind: a tn_kind of a contribution), sorted, and what each name refers to:
 * the descriptor as the core copied it, and the plugin that provides it. NULL and TN_ERR_KEY if
 * unknown, with the nearest name. */
TN_API int64_t tn_registry_count(uint32_t kind);
/* The name of an entry by its place; its descriptor and the id of its plugin by name. [static] */
TN_API const char *tn_registry_name(uint32_t kind, int64_t index);
TN_API const tn_head *tn_registry_find(uint32_t kind, const char *name);
TN_API const char *tn_registry_plugin(uint32_t kind, const char *name);

/* The device's description of itself. [inout: out] */
TN_API tn_status tn_device_describe(const tn_device *device, tn_device_info *out);
/* Adds what is known of the device to `out`, as named values: first what its tn_device_info says,
 * then what the backend adds (docs/plugins/backends.md lists the names). */
TN_API tn_status tn_device_properties(const tn_device *device, tn_pack *out);
/* A native interface that a backend published: tn_device_native(d, "tenon.opencl.queue/1"). NULL
 * and an error if it has none. [static] */
TN_API const void *tn_device_native(const tn_device *device, const char *id);

/* One variable of the environment table. Strings live until the process ends. Frozen. */
typedef struct tn_env_row {
    const char *name;
    const char *value;  /* in force */
    const char *origin; /* "environment", "default", "program", "ignored (set-uid)" */
    const char *help;
    void *reserved[4];
} tn_env_row;

/* The rows of the environment variables that Tenon knows. */
TN_API int64_t tn_env_count(void);
TN_API tn_status tn_env_at(int64_t index, tn_env_row *out);
/* A variable's value in force, NULL if not set; only names that are in the table.
 * [static] */
TN_API const char *tn_env_get(const char *name);

#ifdef TN_PROGRAM
/* Contributes a descriptor from inside a program. */
TN_PROGRAM tn_status tn_register_contribution(const void *contribution);
#define tn_register(contribution) tn_register_contribution(contribution)
/* Takes back what tn_register registered: the name is unknown, and free again. Layers, optimizers,
 * schedulers, inits, formats, observers, passes, compilers and communicators only. What was made
 * from it keeps working, so the descriptor and its functions stay valid as long as a module, an
 * optimizer, a scheduler, a group or a graph that it changed lives. [main] */
TN_PROGRAM tn_status tn_unregister(uint32_t kind, const char *name);
#endif

/* An interface that another plugin gives (tn_plugin.interfaces), the newest of the revisions that
 * `need` accepts; `*revision` is its revision. `self` is the plugin that asks, which lists the
 * other one among its requirements; NULL in a program. The other one is activated first. NULL and
 * an error where there is none, or where the size of its table is less than need->size (for a
 * draft, another). [static] [null-ok: self, revision] */
TN_API const void *tn_interface_find(const struct tn_plugin *self,
                                     const struct tn_interface_need *need, uint32_t *revision);

TN_END_DECLS
#endif
