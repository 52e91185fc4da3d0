/* SPDX-License-Identifier: MIT
 *
 * States: the named, ordered values of a module, which can be saved, loaded and stored in files.
 * tenon-interface: tenon.state 0
 *
 * A state corresponds to PyTorch's state_dict. It contains tensors and other values (extra state)
 * by name, the version of each module by its path, and metadata as text. See
 * docs/guides/state.md.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_STATE_H
#define TENON_STATE_H

#include <tenon/hooks.h>
#include <tenon/module.h>

TN_BEGIN_DECLS

struct tn_source;
struct tn_sink;

/* ---- states ---------------------------------------------------------------------------------- */

/* A state. Only one thread at a time may change it; several threads may read it. */
typedef struct tn_state tn_state;

/* Returns a new, empty state. [owned] */
TN_API tn_state *tn_state_new(void);
/* Frees the state. [null-ok: state] */
TN_API void tn_state_drop(tn_state *state);
/* Stores a tensor under a name: replaces an existing entry, or adds an entry at the end. The state
 * adds its own reference. */
TN_API tn_status tn_state_set(tn_state *state, const char *name, tn_tensor *tensor);
/* Like tn_state_set, for a value of any kind except TN_VALUE_OPAQUE. Strings, bytes and lists are
 * copied. */
TN_API tn_status tn_state_set_value(tn_state *state, const char *name, tn_value value);
/* tn_state_remove removes an entry. tn_state_rename gives an entry another name; its place stays
 * the same. Both fail with TN_ERR_KEY if there is no such entry, tn_state_rename also if the new
 * name is taken. */
TN_API tn_status tn_state_remove(tn_state *state, const char *name);
TN_API tn_status tn_state_rename(tn_state *state, const char *name, const char *to);
/* Returns the number of entries. */
TN_API int64_t tn_state_count(const tn_state *state);
/* Returns the name of entry `index`. [borrowed] */
TN_API const char *tn_state_name(const tn_state *state, int64_t index);
/* Returns the tensor of entry `index`. Returns NULL and records TN_ERR_TYPE if the entry is no
 * tensor. [borrowed] */
TN_API tn_tensor *tn_state_tensor(const tn_state *state, int64_t index);
/* Returns entry `index` as a value, of kind TN_VALUE_TENSOR if it is a tensor. [borrowed] */
TN_API tn_value tn_state_value(const tn_state *state, int64_t index);
/* Returns the index of the entry with this name; -1, without an error, if there is none. */
TN_API int64_t tn_state_find(const tn_state *state, const char *name);

/* Metadata: texts, each with a key. tn_state_meta returns the text of a key, NULL if there is none.
 * tn_state_set_meta stores a text, tn_state_remove_meta removes one, and tn_state_meta_count
 * returns their number. [borrowed] */
TN_API const char *tn_state_meta(const tn_state *state, const char *key);
TN_API tn_status tn_state_set_meta(tn_state *state, const char *key, const char *value);
TN_API tn_status tn_state_remove_meta(tn_state *state, const char *key);
TN_API int64_t tn_state_meta_count(const tn_state *state);
/* Returns the key of text `index`. [borrowed] */
TN_API const char *tn_state_meta_key(const tn_state *state, int64_t index);

/* Versions: for each module whose entries the state has, the version of its layer (tn_layer_def),
 * stored under the path of the module ("" for the root). tn_state_version returns -1 if the version
 * is unknown; tn_state_set_version with -1 removes it; tn_state_version_count returns the number of
 * versions. */
TN_API int64_t tn_state_version(const tn_state *state, const char *path);
TN_API tn_status tn_state_set_version(tn_state *state, const char *path, int64_t version);
TN_API int64_t tn_state_version_count(const tn_state *state);
/* Returns the path of version `index`. [borrowed] */
TN_API const char *tn_state_version_path(const tn_state *state, int64_t index);

/* ---- the state of a module ------------------------------------------------------------------- */

/* With this flag a state contains the module's own tensors. Without it, a state contains detached
 * views of them (tn_tensor_detach). */
enum { TN_STATE_KEEP_VARS = 1 };

/* Returns the state of a module: the parameters, persistent buffers and extra state of the module
 * and of all modules below it, by dotted name. The tensors share storage with those of the module.
 * [owned] */
TN_API tn_state *tn_module_state(tn_module *module);
/* Like tn_module_state, but adds the entries to an existing state. `prefix` is inserted before
 * every name as it is: "net." gives net.weight; "" for none. If the function fails, entries that it
 * has already added stay. `flags`: 0 or TN_STATE_KEEP_VARS. */
TN_API tn_status tn_module_state_into(tn_module *module, tn_state *state, const char *prefix,
                                      uint32_t flags);
/* Adds the parameters and persistent buffers of this module alone, as for a layer without
 * `save_state`. To be called by the `save_state` of a layer. */
TN_API tn_status tn_module_save_own(tn_module *module, tn_state *state, const char *prefix,
                                    uint32_t flags);

/* ---- lists of names -------------------------------------------------------------------------- */

typedef struct tn_names tn_names;

/* Returns the number of names. */
TN_API int64_t tn_names_count(const tn_names *names);
/* Returns name `index`. [borrowed] */
TN_API const char *tn_names_at(const tn_names *names, int64_t index);
/* tn_names_add adds a copy of a name at the end, tn_names_remove removes the name at `index`,
 * tn_names_clear removes all names. */
TN_API tn_status tn_names_add(tn_names *names, const char *name);
TN_API tn_status tn_names_remove(tn_names *names, int64_t index);
TN_API void tn_names_clear(tn_names *names);

/* ---- loading a state into a module ----------------------------------------------------------- */

/* The result of loading a state: the names that only the module has (missing), the names that only
 * the state has (unexpected), and sentences that describe all other errors. */
typedef struct tn_load_report tn_load_report;

/* Returns a new, empty report. [owned] */
TN_API tn_load_report *tn_load_report_new(void);
/* Frees a report. [null-ok: report] */
TN_API void tn_load_report_drop(tn_load_report *report);
/* Each returns one of the three lists of a report. A program may change the list. [borrowed] */
TN_API tn_names *tn_load_report_missing(tn_load_report *report);
TN_API tn_names *tn_load_report_unexpected(tn_load_report *report);
TN_API tn_names *tn_load_report_errors(tn_load_report *report);
/* Writes "<All keys matched successfully>", or the lists as PyTorch prints them. Writes at most
 * `size` bytes including the final NUL; returns the length of the complete text. [null-ok: out] */
TN_API int64_t tn_load_report_text(const tn_load_report *report, char *out, size_t size);

enum {
    TN_LOAD_STRICT = 1, /* missing and unexpected names are errors */
    /* The tensors of the state replace those of the module, with their dtype, device and strides.
     * requires_grad stays that of the module. Existing optimizers keep the old tensors. */
    TN_LOAD_ASSIGN = 2,
    /* Values are loaded only if all of them fit. Without this flag, those that fit are loaded even
     * if the call fails, as in PyTorch. */
    TN_LOAD_WHOLE = 4,
    /* Avoids a second copy of the weights. A tensor of the module that has no values yet takes over
     * the memory of the state's tensor. Such a tensor is on a device without memory, and then gets
     * the device of the state, or was made by tn_module_parse_skip_init, and then the state must be
     * on its device. The values are copied if dtype, layout or device differ, if the state's tensor
     * is only a part of its storage or was already taken, or if the module's tensor has views. All
     * else is as without this flag: the tensor objects, ties, dtype and requires_grad stay. From
     * then on module and state share memory. Not with TN_LOAD_ASSIGN. */
    TN_LOAD_TAKE = 8
};

/* Copies the values of a state into the tensors of a module, without recording. The values are
 * converted to the dtype and device of the module's tensors; the shapes must be equal, but a tensor
 * without dimensions takes the first element of one with one dimension, as in PyTorch. With
 * `strict`, missing and unexpected names are errors; the error message lists all of them. If the
 * module has one tensor under several names (tied), one of these names suffices: without
 * TN_LOAD_ASSIGN, the others are not missing. */
TN_API tn_status tn_module_load_state(tn_module *module, const tn_state *state, bool strict);
/* Like tn_module_load_state, with flags (TN_LOAD_*). `report` receives the lists of names and
 * errors even if the call fails; its earlier content is removed. [null-ok: report] */
TN_API tn_status tn_module_load_report(tn_module *module, const tn_state *state, uint32_t flags,
                                       tn_load_report *report);

/* The argument of a layer's `load_state` and of the hooks before loading. In a strict load, an
 * entry that load_state reads (tn_state_tensor, tn_state_value) counts as expected and need not be
 * removed; an entry that load_state only searches for (tn_state_find) does not. */
typedef struct tn_loading {
    tn_head head;
    /* All entries for this module and the modules below it, under their full names. May be changed;
     * only these modules see the change. */
    tn_state *state;
    const char *prefix; /* the prefix of the names of this module: "" or "encoder.0." */
    int64_t version;    /* the version of the saved module; -1: unknown */
    /* TN_LOAD_*. TN_LOAD_STRICT is always set, because all names are collected first and checked at
     * the end. */
    uint32_t flags;
    uint32_t reserved;
    tn_names *missing; /* the names found so far in the whole tree; may be changed */
    tn_names *unexpected;
    tn_names *errors;
    void *host; /* for the core */
} tn_loading;

/* Loads the parameters and persistent buffers of this module alone, under their own names, as for a
 * layer without `load_state`. To be called by the `load_state` of a layer. [inout: loading] */
TN_API tn_status tn_module_load_own(tn_module *module, tn_loading *loading);

/* tn_module_extra_state adds the extra state of this module alone to `out`, as one value;
 * tn_module_set_extra_state sets it. Both call the callbacks of the layer, and fail with
 * TN_ERR_NOT_IMPLEMENTED if the layer has none. */
TN_API tn_status tn_module_extra_state(tn_module *module, tn_pack *out);
TN_API tn_status tn_module_set_extra_state(tn_module *module, tn_value value);

/* ---- hooks ----------------------------------------------------------------------------------- */

/* Runs before a module adds its own entries to a state. The version of the module is already
 * set. */
typedef tn_status (*tn_state_pre_hook)(void *user, tn_module *module, const char *prefix,
                                       uint32_t flags);
/* Runs after a module and all modules below it have added their entries to a state. May change the
 * state. */
typedef tn_status (*tn_state_hook)(void *user, tn_module *module, tn_state *state,
                                   const char *prefix);
/* Runs before a module loads its own entries. May change `loading`, for example to rename old
 * entries or add missing ones. */
typedef tn_status (*tn_load_pre_hook)(void *user, tn_module *module, tn_loading *loading);
/* Runs after a module and all modules below it have been loaded. May change the lists of missing
 * and unexpected names, which contain the names of the whole tree so far. At the end these lists
 * decide whether the load succeeds. The hook cannot read or remove errors: the list of errors in
 * `report` is empty. With TN_LOAD_WHOLE the values are copied after all hooks have run. */
typedef tn_status (*tn_load_hook)(void *user, tn_module *module, tn_load_report *report);

/* Registers a hook of one module and returns its handle for tn_hook_remove. Hooks run in the order
 * of their registration; if a hook returns a status other than TN_OK, the call fails. `release`
 * (may be NULL) frees `user` when the hook is removed or its module is freed. tn_module_copy copies
 * the hooks. Returns 0 and records a failure if the hook cannot be registered.
 * [null-ok: user, release] */
TN_API tn_hook_handle tn_module_hook_state_pre(tn_module *module, tn_state_pre_hook hook,
                                               void *user, void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_state(tn_module *module, tn_state_hook hook, void *user,
                                           void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_load_pre(tn_module *module, tn_load_pre_hook hook, void *user,
                                              void (*release)(void *user));
TN_API tn_hook_handle tn_module_hook_load(tn_module *module, tn_load_hook hook, void *user,
                                          void (*release)(void *user));

/* ---- files ----------------------------------------------------------------------------------- */

/* tn_module_save writes a module to a file, in the format of the file extension; most formats store
 * only the state of the module. It is atomic: after a crash either the old or the new file is
 * intact. tn_module_load reads a state from a file, whose format it recognizes by the content, into
 * the module. It is strict, and changes nothing if it fails.
 *
 * Values are copied into the tensors of the module. A module without values (on a device without
 * memory, or made by tn_module_parse_skip_init) takes over the tensors of the file instead
 * (TN_LOAD_TAKE), on the default device; if this is the host, they refer to the mapped file as with
 * TN_FILE_MAP, so the weights are in memory once, and the content of the file must not be changed
 * while the module lives. `path` may be a folder, see tn_state_load. [null-through] */
TN_API tn_status tn_module_save(tn_module *module, const char *path);
TN_API tn_status tn_module_load(tn_module *module, const char *path);
/* Writes a state to a file, as tn_module_save does. [null-through] */
TN_API tn_status tn_state_save(const tn_state *state, const char *path);
/* Reads a state from a file. The tensors are created on the default device. If `path` is a folder,
 * reads the file of weights in it: `best.*`, then `model.*`, then `pytorch_model.*` (of each name a
 * single file, then an index, such as model.safetensors.index.json), then the only index, then the
 * only file with the extension of a format. Fails if several files are equally good. [owned] */
TN_API tn_state *tn_state_load(const char *path);

enum {
    /* On a device with memory of the host, the tensors refer to the mapped file; writing to them
     * does not change the file. As long as one of these tensors lives, the file may be replaced or
     * removed, but its content must not be changed. */
    TN_FILE_MAP = 1,
    TN_FILE_READ_ONLY = 2 /* with TN_FILE_MAP: operators refuse to write to the tensors */
};
/* Like tn_state_load, with flags (TN_FILE_*). [owned] */
TN_API tn_state *tn_state_load_as(const char *path, uint32_t flags);
/* Saves a state in several files with at most `most` bytes of tensors each; a tensor that is larger
 * has a file of its own. `path` must end in ".index.json"; this file lists for each tensor the name
 * of its file, as PyTorch and Hugging Face do. The index is written last, so after a crash either
 * the old or the new set of files is intact. [null-through] */
TN_API tn_status tn_state_save_parts(const tn_state *state, const char *path, uint64_t most);

/* For `load` of a format: returns a tensor on the default device with the values that begin at byte
 * `offset` of the file, row-major, in the byte order of the host. If the file is mapped, the tensor
 * refers to the mapping. [callback] [scoped] */
TN_API tn_tensor *tn_source_tensor(const struct tn_source *source, uint64_t offset, tn_dtype dtype,
                                   tn_ints shape);
/* Returns whether the file is mapped. The content of a mapped file should not be read before it is
 * needed. [callback] */
TN_API bool tn_source_is_mapped(const struct tn_source *source);

/* Removes `prefix`, such as "module.", from all names that begin with it, and from the paths of the
 * versions (the version of "module" becomes that of the root). Other names stay. If two entries
 * would then have the same name, fails with TN_ERR_KEY and changes nothing. */
TN_API tn_status tn_state_strip_prefix(tn_state *state, const char *prefix);

/* ---- whole modules, and several files -------------------------------------------------------- */

/* Creates the module that a file stores, or whose spec its metadata has ("tenon.spec"; in a
 * checkpoint the value "spec"), with its state. Fails with TN_ERR_FORMAT for other states: use
 * tn_module_load. `path` may be a folder, see tn_state_load. [owned] */
TN_API tn_module *tn_module_from_file(const char *path);

/* For `load` of a format: opens another file that the current file names, and returns `bytes` bytes
 * of it from `offset` on (UINT64_MAX: to its end). `name` is relative to the folder of the current
 * file, with `/` between folders. Returns NULL and records a failure for absolute names, empty
 * parts, `.`, `..`, `\\`, symbolic links in the path, files that are not regular files, and ranges
 * beyond the end of the file. The other file is mapped if `source` is, and valid as long as
 * `source`. [callback] [borrowed] */
TN_API const struct tn_source *tn_source_sibling(const struct tn_source *source, const char *name,
                                                 uint64_t offset, uint64_t bytes);
/* For `save` of a format: creates another file in the folder of the file that is being written.
 * `name` must not contain a folder, and each name may be used only once. When the save has
 * succeeded, the new file replaces an existing file of that name, which must be a regular file and
 * no symbolic link; the file that the program asked for is replaced last. Returns NULL and records
 * a failure otherwise. [callback] [borrowed] */
TN_API const struct tn_sink *tn_sink_sibling(const struct tn_sink *sink, const char *name);

/* For `load_state` and the hooks before loading: returns a text of the metadata of the state that
 * is being loaded; NULL if there is none. [callback] [borrowed] */
TN_API const char *tn_loading_text(const tn_loading *loading, const char *key);

/* Returns the tensor of that name; NULL and TN_ERR_KEY if there is no such entry, TN_ERR_TYPE if
 * the entry is not a tensor. [borrowed] */
TN_API tn_tensor *tn_state_get(const tn_state *state, const char *name);

/* Returns a new state with the entries, versions and texts whose names begin with `prefix`, without
 * the prefix: with "model." the part that tn_module_state_into added under this prefix. The tensors
 * are the same. Fails with TN_ERR_KEY if no entry has this prefix. [owned] */
TN_API tn_state *tn_state_part(const tn_state *state, const char *prefix);

TN_END_DECLS
#endif
