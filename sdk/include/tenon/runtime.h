/* SPDX-License-Identifier: MIT
 *
 * The plugins of this process, the report on how each was loaded, the registries of their
 * contributions, and the environment variables.
 * tenon-interface: tenon.runtime 0
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_RUNTIME_H
#define TENON_RUNTIME_H

#include <tenon/backend.h>

TN_BEGIN_DECLS

struct tn_plugin;
struct tn_interface_need;

typedef uint32_t tn_outcome;
enum {
    TN_OUTCOME_OK = 0,
    TN_OUTCOME_NOT_APPLICABLE = 1, /* the hardware that the plugin serves is absent */
    TN_OUTCOME_REFUSED = 2,        /* wrong version, or a rule forbids the plugin */
    TN_OUTCOME_FAILED = 3          /* the plugin is broken */
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
    TN_STAGE_PROBE = 8 /* the backend has looked for devices */
};

/* The result of loading one plugin: one line of the load report. The strings live until the process
 * ends. The struct has no tn_head; its size of 128 bytes never changes. */
typedef struct tn_plugin_report {
    const char *id; /* "" if the plugin could not be queried */
    const char *version;
    /* Path; "(program)" for tn_register, "(static)" for plugins linked into the program. */
    const char *file;
    const char *help;
    const char *reason; /* "" on success */
    int32_t outcome;    /* tn_outcome */
    int32_t stage;      /* tn_stage: the last stage that the plugin reached */
    int32_t active;
    int32_t contributions;
    int64_t refused; /* number of contributions that the core refused; `reason` names them */
    void *reserved[8];
} tn_plugin_report;

/* Returns the number of lines of the load report. The first call searches for plugins. */
TN_API int64_t tn_plugin_count(void);
/* Copies line `index` of the load report to `out`. */
TN_API tn_status tn_plugin_report_at(int64_t index, tn_plugin_report *out);
/* Loads one plugin from a file. */
TN_API tn_status tn_plugin_load(const char *path);
/* Activates the plugin with this id. Without this call, a plugin is activated when the first of its
 * contributions is needed. */
TN_API tn_status tn_plugin_activate(const char *id);
/* tn_outcome_name returns the name of a tn_outcome ("OK", "NOT APPLICABLE", "REFUSED", "FAILED"),
 * tn_stage_name that of a tn_stage ("found", "readable", ... "probe"); "?" if the number is
 * unknown. [static] */
TN_API const char *tn_outcome_name(int32_t outcome);
TN_API const char *tn_stage_name(int32_t stage);

/* The contributions of one kind form a registry, sorted by name. `kind` is the tn_kind of a
 * descriptor, such as TN_KIND_tn_layer_def. Returns the number of names in the registry. */
TN_API int64_t tn_registry_count(uint32_t kind);
/* tn_registry_name returns the name at `index`. tn_registry_find returns the core's copy of the
 * descriptor called `name`, tn_registry_plugin the id of the plugin that provides it; for an
 * unknown name both return NULL and record TN_ERR_KEY with the nearest known name. [static] */
TN_API const char *tn_registry_name(uint32_t kind, int64_t index);
TN_API const tn_head *tn_registry_find(uint32_t kind, const char *name);
TN_API const char *tn_registry_plugin(uint32_t kind, const char *name);

/* Fills `out` with the device's description of itself. The caller sets out->head.size.
 * [inout: out] */
TN_API tn_status tn_device_describe(const tn_device *device, tn_device_info *out);
/* Adds the properties of the device to `out` as named values: first the members of its
 * tn_device_info, then the properties that the backend adds (docs/plugins/backends.md lists their
 * names). */
TN_API tn_status tn_device_properties(const tn_device *device, tn_pack *out);
/* Returns a native interface that the backend publishes, for example tn_device_native(device,
 * "tenon.opencl.queue/1"). Returns NULL and records a failure if the backend does not publish it.
 * [static] */
TN_API const void *tn_device_native(const tn_device *device, const char *id);

/* One environment variable that Tenon reads. The strings live until the process ends. The layout
 * never changes. */
typedef struct tn_env_row {
    const char *name;
    const char *value; /* the value that Tenon uses; NULL: none */
    /* Where the value comes from: "environment", "default", "program", "ignored (set-uid)". */
    const char *origin;
    const char *help;
    void *reserved[4];
} tn_env_row;

/* tn_env_count returns the number of environment variables that Tenon reads; tn_env_at copies the
 * row of one of them to `out`. */
TN_API int64_t tn_env_count(void);
TN_API tn_status tn_env_at(int64_t index, tn_env_row *out);
/* Returns the value of an environment variable that Tenon reads: the one that is set or the
 * default. Returns NULL if there is neither, or if Tenon does not read a variable of this name.
 * [static] */
TN_API const char *tn_env_get(const char *name);

#ifdef TN_PROGRAM
/* Registers a contribution of the program, as a plugin contributes it. `contribution` points to a
 * descriptor (<tenon/contrib.h>). */
TN_PROGRAM tn_status tn_register_contribution(const void *contribution);
#define tn_register(contribution) tn_register_contribution(contribution)
/* Removes a contribution that tn_register added; its name may then be registered again. Possible
 * only for layers, optimizers, schedulers, inits, pruning methods, formats, observers, passes,
 * compilers, communicators, datasets and transforms. Modules, optimizers, schedulers, groups,
 * graphs, datasets and loaders that were made with the contribution keep working, so its descriptor
 * and functions must stay valid as long as any of them lives. [main] */
TN_PROGRAM tn_status tn_unregister(uint32_t kind, const char *name);
#endif

/* Returns the function table of an interface that another plugin offers (tn_plugin.interfaces), in
 * the newest revision that `need` accepts, and stores that revision in `*revision`. `self` is the
 * plugin that asks, whose list of requirements must contain the other plugin; a program passes
 * NULL. Activates the other plugin first. Returns NULL and records a failure if there is no such
 * interface, or if its table is smaller than need->size (for a draft: has another size). [static]
 * [null-ok: self, revision] */
TN_API const void *tn_interface_find(const struct tn_plugin *self,
                                     const struct tn_interface_need *need, uint32_t *revision);

/* Switches an observer on or off. An observer that is off costs nothing and is not called, except
 * for the end of calls whose begin it has received. Records TN_ERR_KEY for an unknown name. */
TN_API tn_status tn_observer_set_on(const char *name, bool on);
/* A range of the program, which profilers show under its name. Ranges of a thread may be nested:
 * tn_range_end ends the innermost one. Without an observer both return at once. An end without a
 * begin has no effect. */
TN_API tn_status tn_range_begin(const char *name);
TN_API void tn_range_end(void);

/* What all contributions have, for programs that list them. tn_kind_name returns the name of a kind
 * of contributions, such as "layer" for TN_KIND_tn_layer_def, and NULL for any other number; kinds
 * have numbers from TN_KIND_tn_backend_def to TN_KIND_END, with gaps. tn_contribution_options
 * returns the option table of a descriptor, NULL if its kind has none, and tn_contribution_help its
 * help text, "" if there is none. [static] [null-ok: contribution] */
TN_API const char *tn_kind_name(uint32_t kind);
TN_API const tn_option *tn_contribution_options(const tn_head *contribution);
TN_API const char *tn_contribution_help(const tn_head *contribution);

TN_END_DECLS
#endif
