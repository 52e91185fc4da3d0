/* SPDX-License-Identifier: MIT
 *
 * Internal interface between the files of core/plugin: the private half of a plugin's record, and
 * the steps of loading in their order (docs/abi.md, rule 18). */
#ifndef TN_CORE_PLUGIN_PRIVATE_H
#define TN_CORE_PLUGIN_PRIVATE_H

#include <sys/stat.h>

#include "core/plugin/kind.h"

/* The head of a block that lives as long as the process, such as the text of a reason or the copy
 * of a descriptor: reports point to it. */
typedef struct tn__plugin_block {
    struct tn__plugin_block *next;
} tn__plugin_block;

typedef struct tn__plugin_private {
    /* the code with which a use of the plugin fails if its outcome is not OK */
    tn_status code;
    uint64_t device, inode; /* device and inode of the file; 0 for static plugins and the program */
    tn_plugin_query_fn *query;
    const tn_build_facts *build;
    tn_plugin descriptor; /* the host's copy; members that the plugin lacks are zero */
    tn__plugin_block *blocks;
    tn__option_block *options; /* owns the strings and arrays that options_data points to */
    tn__text refusals;         /* messages of refused contributions */
    /* kernels that nothing calls: their names while they are counted, their number, and the text in
     * the plugin's line */
    tn__text idle;
    int64_t idle_count;
    const char *idle_line;
    char name[256];  /* name of the file without "lib" and ".so", which TENON_PLUGINS matches */
    bool folder;     /* no plugin: a folder that is not searched */
    bool denied;     /* TENON_PLUGINS excludes the plugin */
    bool negotiated; /* the query was answered, and the versions fit */
    bool again;      /* memory ran out during loading: the next discovery tries again */
    /* for each contribution, then for each row of the table of kernels: 1 if it was registered, or
     * refused and is not tried again */
    uint8_t *handed;
    bool distributed;
    /* state of loading: 0 new, 1 requirements are being checked, 2 checked, 3 contributions
     * registered */
    int32_t mark;
    /* while the plugin is being activated: the thread that does it, and the plugin that this thread
     * waits for */
    bool activating;
    pthread_t thread;
    tn__plugin *waits_for;
} tn__plugin_private;

/* A recursive lock that guards the list of plugins and the reports. It is not held while
 * contributions are registered or plugins are activated. */
void tn__plugins_lock(void);
void tn__plugins_unlock(void);

/* Appends, for error messages, "; " and the line of each folder that is not searched. */
void tn__plugins_explain_folders(tn__text *text);

/* ---- the list of plugins ---- */

extern _Atomic(tn__plugin *) tn__plugins_first; /* lines are appended and never removed */

/* Adds a line to the report; copies `file`. Returns NULL and sets the error if memory runs out. */
tn__plugin *tn__plugin_add(const char *file);
tn__plugin *tn__plugin_by_id(const char *id); /* only if `negotiated` */
tn__plugin *tn__plugin_by_file(const char *file);
tn__plugin *tn__plugin_by_inode(const struct stat *at);

/* Sets outcome, stage and reason of a plugin. If there is no memory for the reason, a fixed text is
 * used. */
void tn__plugin_outcome(tn__plugin *plugin, tn_outcome outcome, tn_stage stage, tn_status code,
                        const char *format, ...);
void tn__plugin_reason(tn__plugin *plugin, const char *format, ...);
/* Appends the plugin's line of the report: `plugin "id" (file): FAILED at dlopen: reason`. */
void tn__plugin_line(const tn__plugin *plugin, tn__text *text);
/* Fails with the plugin's line of the report as the message. */
tn_status tn__plugin_fail(const tn__plugin *plugin);

/* Copies the message of the last failure to `words`, and removes from the thread's records all
 * failures since `mark`, which the caller read before the call that failed. */
void tn__report_take_words(uint64_t mark, char *words, size_t size);

/* ---- the steps of loading ---- */

/* Loads every plugin file in a list of folders, in order. Each file that is not in the report yet
 * becomes a line of it. */
tn_status tn__discover_path(const char *folders, bool must_exist);
/* Loads one file: found, readable, owner, dlopen, symbol, query, version. Returns its line of the
 * report, which has the result; NULL and sets the error if memory runs out. */
tn__plugin *tn__load_file(const char *path);
/* Loads a plugin that is linked into the program. */
tn_status tn__load_static(const char *name, tn_plugin_query_fn *query);
/* Returns whether TENON_PLUGINS, or `list`, allows a plugin; `name` is the name of its file without
 * "lib" and ".so". */
bool tn__plugin_allowed(const char *name, const char *id);
bool tn__filter_allows(const char *list, const char *name, const char *id);
/* Writes that name for the path of a file to `name`. */
void tn__plugin_stem(const char *path, char *name, size_t size);
/* Warns about names in TENON_PLUGINS that no plugin has. */
void tn__filter_warn(void);
/* Returns the folder of plugins that is used if TENON_PLUGIN_PATH is not set: the folder that was
 * compiled in or, if the library was moved, the folder that moved with it. The result stays
 * valid. */
const char *tn__plugin_folder(void);
/* Writes to `out` the plugin folder that belongs to a library in the folder `own`. Returns false if
 * the compiled-in folder `compiled` must be used. */
bool tn__folder_beside(const char *compiled, const char *own, char *out, size_t size);
/* Compares versions number by number. Returns < 0, 0 or > 0. */
int tn__plugin_compare_versions(const char *a, const char *b);
/* Checks owner and permissions of a file or folder (rule 14). Returns false and writes a message to
 * `words` if they are not acceptable. */
bool tn__file_check_owner(const struct stat *at, const char *what, char *words, size_t size);
/* Like tn__file_check_owner() for all folders above `path`: in a world-writable folder without the
 * sticky bit, anybody could replace the entry that leads to the file. */
bool tn__file_check_above(const char *path, char *words, size_t size);
/* Checks an ELF file before it is mapped. Returns another outcome than OK, and writes a message, if
 * mapping the file would end the process. */
tn_outcome tn__file_check_elf(const char *path, char *words, size_t size);
/* tn__address_is_code() returns whether an address is in executable memory that is mapped from a
 * file; tn__address_left() returns how many bytes of the mapping follow it, SIZE_MAX if that is not
 * known. */
bool tn__address_is_code(const void *address);
size_t tn__address_left(const void *address);
/* Calls the query of a plugin and checks versions and descriptor; sets the outcome. */
void tn__plugin_ask(tn__plugin *plugin, tn_plugin_query_fn *query);
/* Resolves requirements and registers the contributions of all new plugins. Returns TN_ERR_MEMORY
 * if memory runs out; the next call continues. */
tn_status tn__plugins_settle(void);
/* Reads the variables TENON_<NAME>_<OPTION>. Returns false and sets the outcome if a value is not
 * accepted. */
bool tn__plugin_options(tn__plugin *plugin);
/* Fails if the value of TENON_CHECK means neither yes nor no. */
tn_status tn__host_check_mode(void);
/* Warns about variables TENON_* that nothing reads, once each. */
void tn__options_warn_unknown(void);
/* Warns once about two OpenMP or BLAS runtimes in the process (rule 13). */
void tn__file_check_runtimes(void);

/* ---- contributions ---- */

/* Registers the contributions that belong to the pass and are not registered yet. Refusals go to
 * the plugin's line. Fails only with TN_ERR_MEMORY. */
tn_status tn__contribute(tn__plugin *plugin, int pass);
/* Registers one contribution. Sets the error on failure. */
tn_status tn__contribute_one(const tn_head *head, tn__plugin *plugin);

/* Copies a struct of a plugin, which may be shorter or longer than the host's struct, to `to`, and
 * fills the rest of `size` bytes with zeros. Fails if the struct has less than `least` bytes. */
tn_status tn__load_copy_struct(void *to, size_t size, size_t least, const tn_head *from,
                               const char *what);

/* Refuses flags and reserved members of a copied struct that mean nothing to this host. `what`
 * begins the message. */
tn_status tn__reserved_check(const tn_head *copy, const tn__kind_member *members, const char *what);

/* Checks the interfaces that a plugin provides to other plugins. The caller holds the lock. */
tn_status tn__interfaces_check(const tn__plugin *plugin);

/* Records that something was registered: unused kernels may have become used, or there may be new
 * ones. */
void tn__unused_kernels_stale(void);
/* Updates what the lines of plugins say about unused kernels. If `aloud`, also logs what is new. */
void tn__unused_kernels_update(bool aloud);
/* Composes the reason of a plugin whose outcome is OK: refused contributions and unused kernels. */
void tn__plugin_reason_compose(tn__plugin *plugin);

/* Removes what the program registered. The copy of the descriptor is not freed. */
tn_status tn__registry_remove(uint32_t kind, const char *name, const tn__plugin *plugin);
void tn__registry_shutdown(void);

#endif
