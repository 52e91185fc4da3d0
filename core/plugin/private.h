/* SPDX-License-Identifier: MIT
 *
 * What the files of core/plugin share: the private half of a plugin's record, and the steps of
 * loading in the order in which a file goes through them (rule 18). */
#ifndef TN_CORE_PLUGIN_PRIVATE_H
#define TN_CORE_PLUGIN_PRIVATE_H

#include <sys/stat.h>

#include "core/plugin/internal.h"

/* A reason or a contribution's copy: kept as long as the process lives, because reports point
 * there. */
typedef struct tn__kept {
    struct tn__kept *next;
} tn__kept;

typedef struct tn__plugin_private {
    tn_status code;         /* what a use of it fails with, when the outcome is not OK */
    uint64_t device, inode; /* of the file; 0, 0 for static ones and the program */
    tn_plugin_query_fn *query;
    const tn_build_facts *build;
    tn_plugin descriptor; /* the host's zero-filled copy */
    tn__kept *kept;
    tn__keep *options; /* strings and rows that options_data points to */
    tn__text refusals; /* contributions that were refused */
    /* kernels that nothing calls: while they are counted, and as the line says */
    tn__text idle;
    int64_t idle_count;
    const char *idle_line;
    char name[256];  /* of its file, without "lib" and ".so": what TENON_PLUGINS is about */
    bool denied;     /* by TENON_PLUGINS */
    bool negotiated; /* asked, and the versions fit */
    bool again;      /* memory ran out while it was loaded: the next look tries again */
    uint8_t *handed; /* by contribution, then by row of its table: 1 taken or refused for good */
    bool distributed;
    int32_t mark; /* walk over requirements: 0 new, 1 under way, 2 done, 3 handed in */
    /* activation under way: by which thread, and on which plugin that thread waits */
    bool activating;
    pthread_t thread;
    tn__plugin *waits_for;
} tn__plugin_private;

/* A recursive lock over the list and the reports. Nothing of another folder is called while it
 * is held: contributions are handed over and plugins activated outside of it. */
void tn__plugins_lock(void);
void tn__plugins_unlock(void);

/* ---- the list ---- */

extern _Atomic(tn__plugin *) tn__plugins_first; /* lines are added at the end and never go */

/* A new line of the report; NULL and TN_ERR_MEMORY. `file` is copied. */
tn__plugin *tn__plugin_add(const char *file);
tn__plugin *tn__plugin_by_id(const char *id); /* only those that were negotiated */
tn__plugin *tn__plugin_by_file(const char *file);
tn__plugin *tn__plugin_by_inode(const struct stat *at);
/* Memory that lives as long as the process; zeroed. */
void *tn__plugin_keep(tn__plugin *plugin, size_t size);

/* Its outcome. The message is kept; without memory for it, a fixed text is put in. */
void tn__plugin_outcome(tn__plugin *plugin, tn_outcome outcome, tn_stage stage, tn_status code,
                        const char *format, ...);
void tn__plugin_reason(tn__plugin *plugin, const char *format, ...);
/* "plugin "id" (file): FAILED at dlopen: reason" */
void tn__plugin_line(const tn__plugin *plugin, tn__text *text);
/* Records that line as a failure of this thread. */
tn_status tn__plugin_fail(const tn__plugin *plugin);

/* The message of the failure that a call just recorded, taken off the thread: `mark` is from
 * before the call. */
void tn__report_take_words(uint64_t mark, char *words, size_t size);

/* ---- the steps ---- */

/* Every file of a folder list, in order; each becomes a line of the report unless it is known. */
tn_status tn__discover_path(const char *folders, bool must_exist);
/* One file: found, readable, owner, dlopen, symbol, query, version. The line of the
 * report has the result. */
tn__plugin *tn__load_file(const char *path);
/* A query that was linked in. */
tn_status tn__load_static(const char *name, tn_plugin_query_fn *query);
/* Whether TENON_PLUGINS lets a plugin of that name (the file's, without "lib" and ".so") in. */
bool tn__plugin_allowed(const char *name);
bool tn__filter_allows(const char *list, const char *name);
/* That name, of the path of a file. */
void tn__plugin_stem(const char *path, char *name, size_t size);
/* Warns about names in TENON_PLUGINS that no plugin has. */
void tn__filter_warn(void);
/* Where plugins are looked for without TENON_PLUGIN_PATH: the folder that was compiled in, or,
 * where the library was moved, the one that moved with it; valid for good. */
const char *tn__plugin_folder(void);
/* For a library in `own` the folder in place of `compiled`; false where that is the right one. */
bool tn__folder_beside(const char *compiled, const char *own, char *out, size_t size);
/* Number by number: < 0, 0, > 0. */
int tn__plugin_compare_versions(const char *a, const char *b);
/* Owner and permissions (rule 14): a message when they are not acceptable. */
bool tn__file_check_owner(const struct stat *at, const char *what, char *words, size_t size);
/* The same of the folders above `path`, by which it is reached: one that anybody may write to lets
 * everything below it be replaced, but for the sticky bit. */
bool tn__file_check_above(const char *path, char *words, size_t size);
/* What an ELF file says before it is mapped: another outcome than OK, with a message, when
 * mapping it would end the process. */
tn_outcome tn__file_check_elf(const char *path, char *words, size_t size);
/* Whether an address is in memory that a file was mapped to as code; how many bytes of what was
 * mapped follow it (SIZE_MAX where that is not known). */
bool tn__address_is_code(const void *address);
size_t tn__address_left(const void *address);
/* Asks and negotiates: query, version. */
void tn__plugin_ask(tn__plugin *plugin, tn_plugin_query_fn *query);
/* Resolves requirements and hands the contributions of all new plugins to the registries. Stops
 * with TN_ERR_MEMORY where memory runs out, and goes on from there the next time. */
tn_status tn__plugins_settle(void);
/* Reads TENON_<NAME>_<OPTION>; false when a value is not accepted (the outcome is set). */
bool tn__plugin_options(tn__plugin *plugin);
/* A failure when TENON_CHECK has a value that means neither yes nor no. */
tn_status tn__host_check_mode(void);
/* Warns about variables TENON_* that nothing reads, once each. */
void tn__options_warn_unknown(void);
/* Warns once about two OpenMP or BLAS runtimes in the process (rule 13). */
void tn__file_check_runtimes(void);

/* ---- contributions ---- */

enum { TN__PASS_OPS, TN__PASS_BACKENDS, TN__PASS_NAMED, TN__PASS_KERNELS, TN__PASS_COUNT };
/* Hands over what belongs to the pass and was not yet; refusals go to the plugin's line. Fails with
 * TN_ERR_MEMORY only. */
tn_status tn__contribute(tn__plugin *plugin, int pass);
/* One contribution; the failure is recorded. */
tn_status tn__contribute_one(const tn_head *head, tn__plugin *plugin);

/* The zero-filled full-size copy of a plugin's struct: at least `least` bytes must exist. */
tn_status tn__load_copy_struct(void *to, size_t size, size_t least, const tn_head *from,
                               const char *what);

/* Refuses flags and reserved members of a copied struct that this host gives no meaning to; `what`
 * begins the message. */
tn_status tn__reserved_check(const tn_head *copy, const char *what);

/* The interfaces that it gives to other plugins; under the lock. */
tn_status tn__interfaces_check(const tn__plugin *plugin);

/* Something was registered: kernels may have become of use, or new ones may be of none. */
void tn__unused_kernels_stale(void);
/* Brings the lines of plugins with kernels that never run up to date; `aloud`: the log, too, says
 * what is new. */
void tn__unused_kernels_update(bool aloud);
/* Puts the reason of a plugin that is OK together: refused contributions, kernels that never
 * run. */
void tn__plugin_reason_compose(tn__plugin *plugin);

/* Takes back what the program registered; the copy of the descriptor stays. */
tn_status tn__registry_remove(uint32_t kind, const char *name, const tn__plugin *plugin);
void tn__registry_shutdown(void);

#endif
