/* SPDX-License-Identifier: MIT
 *
 * States: the named, ordered values of a module; saving, loading, files.
 * tenon-interface: tenon.state 0
 *
 * A state is PyTorch's state_dict: names to tensors, and to other values (extra state); a version
 * for each module it came from, by path; and text metadata. See docs/guides/state.md. */
#ifndef TENON_STATE_H
#define TENON_STATE_H

#include <tenon/hooks.h>
#include <tenon/module.h>

TN_BEGIN_DECLS

struct tn_source;
struct tn_sink;

/* ---- the state itself ------------------------------------------------------------------------ */

/* One thread at a time changes a state; several may read it. */
typedef struct tn_state tn_state;

/* An empty state. [owned] */
TN_API tn_state *tn_state_new(void);
/* Frees the state. [null-ok: state] */
TN_API void tn_state_drop(tn_state *state);
/* Stores a tensor under a name: replaces an existing entry, else adds one at the end. The state
 * keeps its own reference. */
TN_API tn_status tn_state_set(tn_state *state, const char *name, tn_tensor *tensor);
/* The same for any value but an opaque one; strings, bytes and lists are copied. */
TN_API tn_status tn_state_set_value(tn_state *state, const char *name, tn_value value);
/* Removes an entry / renames it, keeping its place. TN_ERR_KEY when there is no such entry, or the
 * new name is taken. */
TN_API tn_status tn_state_remove(tn_state *state, const char *name);
TN_API tn_status tn_state_rename(tn_state *state, const char *name, const char *to);
/* The number of entries. */
TN_API int64_t tn_state_count(const tn_state *state);
/* The name of an entry by its place. [borrowed] */
TN_API const char *tn_state_name(const tn_state *state, int64_t index);
/* NULL and TN_ERR_TYPE for an entry that is not a tensor. [borrowed] */
TN_API tn_tensor *tn_state_tensor(const tn_state *state, int64_t index);
/* Kind TN_VALUE_TENSOR for a tensor. [borrowed] */
TN_API tn_value tn_state_value(const tn_state *state, int64_t index);
/* -1 if absent, not an error. */
TN_API int64_t tn_state_find(const tn_state *state, const char *name);

/* Text metadata. A NULL value when there is none. [borrowed] */
TN_API const char *tn_state_meta(const tn_state *state, const char *key);
TN_API tn_status tn_state_set_meta(tn_state *state, const char *key, const char *value);
TN_API tn_status tn_state_remove_meta(tn_state *state, const char *key);
TN_API int64_t tn_state_meta_count(const tn_state *state);
/* The key of a text by its place. [borrowed] */
TN_API const char *tn_state_meta_key(const tn_state *state, int64_t index);

/* The version of the module that was at `path` ("" is the root), -1 if unknown. Setting -1 forgets
 * it. */
TN_API int64_t tn_state_version(const tn_state *state, const char *path);
TN_API tn_status tn_state_set_version(tn_state *state, const char *path, int64_t version);
TN_API int64_t tn_state_version_count(const tn_state *state);
/* The path of a version by its place. [borrowed] */
TN_API const char *tn_state_version_path(const tn_state *state, int64_t index);

/* ---- out of a module ------------------------------------------------------------------------- */

enum { TN_STATE_KEEP_VARS = 1 }; /* the module's own tensors, not views outside the graph */

/* Parameters, persistent buffers and extra state of the whole tree by dotted name, module by
 * module; the tensors share storage with the module's. [owned] */
TN_API tn_state *tn_module_state(tn_module *module);
/* The same into an existing state, with `prefix` ("" for none) prepended to every name unchanged:
 * "net." gives net.weight. On failure, entries already added stay. */
TN_API tn_status tn_module_state_into(tn_module *module, tn_state *state, const char *prefix,
                                      uint32_t flags);
/* What a layer's own save_state would replace: parameters and persistent buffers of this module
 * alone. For that callback. */
TN_API tn_status tn_module_save_own(tn_module *module, tn_state *state, const char *prefix,
                                    uint32_t flags);

/* ---- lists of names -------------------------------------------------------------------------- */

typedef struct tn_names tn_names;

/* The number of names. */
TN_API int64_t tn_names_count(const tn_names *names);
/* [borrowed] */
TN_API const char *tn_names_at(const tn_names *names, int64_t index);
/* Adds a copy at the end / removes one / removes all. */
TN_API tn_status tn_names_add(tn_names *names, const char *name);
TN_API tn_status tn_names_remove(tn_names *names, int64_t index);
TN_API void tn_names_clear(tn_names *names);

/* ---- into a module --------------------------------------------------------------------------- */

/* What a load found: names that only the module has (missing), names that only the state has
 * (unexpected), and the errors of others, as sentences. */
typedef struct tn_load_report tn_load_report;

/* [owned] */
TN_API tn_load_report *tn_load_report_new(void);
/* [null-ok: report] */
TN_API void tn_load_report_drop(tn_load_report *report);
/* [borrowed] */
TN_API tn_names *tn_load_report_missing(tn_load_report *report);
TN_API tn_names *tn_load_report_unexpected(tn_load_report *report);
TN_API tn_names *tn_load_report_errors(tn_load_report *report);
/* "<All keys matched successfully>", or the lists as PyTorch prints them. Writes at most `size`
 * bytes; returns the length of the whole. [null-ok: out] */
TN_API int64_t tn_load_report_text(const tn_load_report *report, char *out, size_t size);

enum {
    TN_LOAD_STRICT = 1, /* missing and unexpected names are an error */
    TN_LOAD_ASSIGN = 2, /* the state's tensors replace the module's, with their dtype, device and
                           strides; requires_grad stays the module's; existing optimizers keep the
                           old tensors */
    TN_LOAD_WHOLE = 4   /* all or nothing: values are loaded only when all of them fit. Without it
                           those that fit are loaded even when the call fails, as in PyTorch */
};

/* Copies values in, without recording it: dtype and device are converted, the module's tensors
 * stay. Shapes have to fit. With `strict`, missing and unexpected names are errors; the message
 * lists them all. */
TN_API tn_status tn_module_load_state(tn_module *module, const tn_state *state, bool strict);
/* The same with flags (TN_LOAD_*); `report` receives the lists whether or not the call succeeds;
 * its earlier content is dropped. [null-ok: report] */
TN_API tn_status tn_module_load_report(tn_module *module, const tn_state *state, uint32_t flags,
                                       tn_load_report *report);

/* The argument of a layer's load_state and of the hooks before loading. An entry of `state` that
 * load_state reads (tn_state_tensor, tn_state_value) counts as expected in a strict load, and need
 * not be removed; one that it only looks for (tn_state_find) does not count. [callback] */
typedef struct tn_loading {
    tn_head head;
    tn_state *state;    /* all entries for this module and those below it, under full names; may be
                           changed: only these modules see the change */
    const char *prefix; /* of this module: "" or "encoder.0." */
    int64_t version;    /* of the module that was saved; -1: unknown */
    uint32_t flags;     /* TN_LOAD_*; strict is always set: all names are listed and checked at the
                           end */
    uint32_t reserved;
    tn_names *missing; /* so far, of the whole tree; may be changed */
    tn_names *unexpected;
    tn_names *errors;
    void *host; /* the core's */
} tn_loading;

/* Loads the parameters and persistent buffers of this module alone, by their own names: what a
 * layer without load_state does. For that callback. [inout: loading] */
TN_API tn_status tn_module_load_own(tn_module *module, tn_loading *loading);

/* The extra state of this module alone, by its layer's callbacks; TN_ERR_NOT_IMPLEMENTED where the
 * layer has none. Getting adds one value to `out`. */
TN_API tn_status tn_module_extra_state(tn_module *module, tn_pack *out);
TN_API tn_status tn_module_set_extra_state(tn_module *module, tn_value value);

/* ---- hooks ----------------------------------------------------------------------------------- */

/* Before a module adds its own part to a state; its version is already set. */
typedef tn_status (*tn_state_pre_hook)(void *user, tn_module *module, const char *prefix,
                                       uint32_t flags);
/* After the module and those below it have added theirs; may change the state. */
typedef tn_status (*tn_state_hook)(void *user, tn_module *module, tn_state *state,
                                   const char *prefix);
/* Before a module loads its own part; may change `loading`: rename old names, add missing ones. */
typedef tn_status (*tn_load_pre_hook)(void *user, tn_module *module, tn_loading *loading);
/* After the module and those below it have loaded; may change the lists of missing and unexpected
 * names, of the whole tree so far, which decide at the end whether the load succeeds. Errors are
 * not in this report and remain. With TN_LOAD_WHOLE the values are copied afterwards. */
typedef tn_status (*tn_load_hook)(void *user, tn_module *module, tn_load_report *report);

/* Hooks of one module, in the order of their registration; a status other than TN_OK ends the call.
 * tn_hook_remove removes one; `release` (may be NULL) frees `user` then, or with the module. Deep
 * copies have them, too. 0 and a failure otherwise. [null-ok: user, release] */
TN_API tn_hook_handle tn_module_hook_state_pre(tn_module *module, tn_state_pre_hook hook,
                                               void *user, void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_state(tn_module *module, tn_state_hook hook, void *user,
                                           void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_load_pre(tn_module *module, tn_load_pre_hook hook, void *user,
                                              void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_load(tn_module *module, tn_load_hook hook, void *user,
                                          void (*release)(void *user));

/* ---- files ----------------------------------------------------------------------------------- */

/* The format follows from the extension (writing) or the content (reading). Writing is atomic: a
 * crash leaves either the old or the new file intact. Loading is strict, and all or nothing.
 * [null-through] */
TN_API tn_status tn_module_save(tn_module *module, const char *path);
TN_API tn_status tn_module_load(tn_module *module, const char *path);
/* [null-through] */
TN_API tn_status tn_state_save(const tn_state *state, const char *path);
/* Tensors go to the default device. [owned] */
TN_API tn_state *tn_state_load(const char *path);

enum {
    TN_FILE_MAP = 1, /* on a device with host memory the tensors are the mapped file; writes to them
                        stay in this process. The file may be replaced and removed, but not changed
                        in place, as long as one of them lives */
    TN_FILE_READ_ONLY = 2 /* with TN_FILE_MAP: operators refuse to write to them */
};
/* The same with flags (TN_FILE_*). [owned] */
TN_API tn_state *tn_state_load_as(const char *path, uint32_t flags);
/* Saves in several files with at most `most` bytes of tensors each (one that is larger has a file
 * of its own), and `path`, which ends in ".index.json", with the name of the file of each:
 * PyTorch's and Hugging Face's convention. The index is written last: a crash leaves either the old
 * or the new set intact. [null-through] */
TN_API tn_status tn_state_save_parts(const tn_state *state, const char *path, uint64_t most);

/* For the readers of formats: a tensor on the default device with the values that begin at `offset`
 * of the file, row-major, in the byte order of the host; where the file is mapped, the tensor
 * refers to the mapping. [callback] [scoped] */
TN_API tn_tensor *tn_source_tensor(const struct tn_source *source, uint64_t offset, tn_dtype dtype,
                                   tn_ints shape);
/* Whether it is mapped: then its content should not be read before it is needed. [callback] */
TN_API bool tn_source_is_mapped(const struct tn_source *source);

/* Removes `prefix` ("module.") from every name that begins with it, and from the paths of versions
 * (that of "module" becomes that of the root); others stay. TN_ERR_KEY, without any change, where
 * two entries would then have the same name. */
TN_API tn_status tn_state_strip_prefix(tn_state *state, const char *prefix);

/* ---- whole modules, and several files -------------------------------------------------------- */

/* The module in a file of a format that stores modules: its types, and its state where the format
 * has one. TN_ERR_FORMAT for a file that has a state only: make the module, then tn_module_load.
 * [owned] */
TN_API tn_module *tn_module_from_file(const char *path);

/* For the readers of formats: another file that the file names, `bytes` of it from `offset` on
 * (UINT64_MAX: to its end). `name` is relative to the folder of the file, with `/` between folders;
 * absolute names, empty parts, `.`, `..`, `\\`, links on the way, files that are not regular ones
 * and ranges beyond the end are refused. NULL and an error then. It is mapped where `source` is,
 * and valid as long as `source`. [callback] [borrowed] */
TN_API const struct tn_source *tn_source_sibling(const struct tn_source *source, const char *name,
                                                 uint64_t offset, uint64_t bytes);
/* For the writers of formats: another file in the folder of the one that is written. `name` has no
 * folder in it; one name is given once. It replaces an older file of that name, which is a regular
 * one and no link, when save is over and was successful; the file that was asked for is replaced
 * last. NULL and an error otherwise. [callback] [borrowed] */
TN_API const struct tn_sink *tn_sink_sibling(const struct tn_sink *sink, const char *name);

/* In load_state and the hooks before loading: a text of the whole state that is loaded; NULL when
 * there is none. [callback] [borrowed] */
TN_API const char *tn_loading_text(const tn_loading *loading, const char *key);

TN_END_DECLS
#endif
