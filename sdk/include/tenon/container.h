/* SPDX-License-Identifier: MIT
 *
 * Containers: modules whose entries form a list (Sequential, ModuleList, ParameterList) or have
 * keys (ModuleDict, ParameterDict). The entries are modules or parameters. A layer says which
 * kind of container it is with the flags TN_LAYER_LIST, TN_LAYER_DICT and TN_LAYER_PARAMETERS.
 * tenon-interface: tenon.container 0
 *
 * Every entry is a child or a parameter of the container, so the functions for children and
 * parameters work here too: tn_module_child_at, tn_module_child, tn_module_get, tn_module_remove. A
 * negative index counts from the end; an index out of range is TN_ERR_INDEX. The container keeps
 * its own references. A function that makes a new container out of another puts the same entries
 * into it, not copies.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_CONTAINER_H
#define TENON_CONTAINER_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* An omitted bound of a range, as in Python's [1:] or [::-1]. */
#define TN_LIST_OPEN INT64_MIN

/* ---- lists ----------------------------------------------------------------------------------- */

/* Returns the number of entries. Returns -1 and records a failure if `list` is not a list. */
TN_API int64_t tn_list_count(tn_module *list);
/* Adds a child at the end. Its name is its index. Fails with TN_ERR_KEY if an entry already has
 * this name, which can happen in a slice whose entries kept their names (TN_LAYER_KEEP_KEYS).
 * [null-through] */
TN_API tn_status tn_list_append(tn_module *list, tn_module *child);
/* Inserts a child before entry `index`; an index equal to the number of entries adds it at the end.
 * All entries are renumbered. [null-through] */
TN_API tn_status tn_list_insert(tn_module *list, int64_t index, tn_module *child);
/* Replaces an entry. Its name stays the same. [null-through] */
TN_API tn_status tn_list_set(tn_module *list, int64_t index, tn_module *child);
/* Removes an entry and returns it. The other entries are renumbered. [owned] */
TN_API tn_module *tn_list_pop(tn_module *list, int64_t index);

/* Like tn_list_append and tn_list_set, for lists of parameters. If `tensor` is not a parameter, a
 * new parameter that shares its memory is stored. [null-through] */
TN_API tn_status tn_list_append_tensor(tn_module *list, tn_tensor *tensor);
TN_API tn_status tn_list_set_tensor(tn_module *list, int64_t index, tn_tensor *tensor);
/* Returns an entry of a list of parameters; TN_NONE if the entry is reserved. [borrowed] */
TN_API tn_tensor *tn_list_tensor(tn_module *list, int64_t index);

/* Removes the entries that Python's [start:stop:step] selects, from a list of modules or of
 * parameters. The remaining entries are renumbered from 0. */
TN_API tn_status tn_list_delete_range(tn_module *list, int64_t start, int64_t stop, int64_t step);
/* Adds the entries of `other` at the end. `other` may be the list itself. */
TN_API tn_status tn_list_extend(tn_module *list, tn_module *other);
/* Each returns a new list of the same type: tn_list_slice with the entries of a range,
 * tn_list_repeat with all entries, repeated `count` times. [owned] */
TN_API tn_module *tn_list_slice(tn_module *list, int64_t start, int64_t stop, int64_t step);
TN_API tn_module *tn_list_repeat(tn_module *list, int64_t count);

/* ---- dictionaries ---------------------------------------------------------------------------- */

/* Returns the number of entries. Returns -1 and records a failure if `dict` is not a dictionary. */
TN_API int64_t tn_dict_count(tn_module *dict);
/* Returns the key of entry `index`. [borrowed] */
TN_API const char *tn_dict_key(tn_module *dict, int64_t index);
/* Returns whether there is an entry with this key. */
TN_API bool tn_dict_has(tn_module *dict, const char *key);
/* Adds an entry at the end, or replaces the entry with the same key. [null-through] */
TN_API tn_status tn_dict_set(tn_module *dict, const char *key, tn_module *child);
TN_API tn_status tn_dict_set_tensor(tn_module *dict, const char *key, tn_tensor *tensor);
/* Removes an entry, which is a module (tn_dict_pop) or a parameter (tn_dict_pop_tensor), and
 * returns it. Fails with TN_ERR_KEY if no entry has this key. [owned] */
TN_API tn_module *tn_dict_pop(tn_module *dict, const char *key);
TN_API tn_tensor *tn_dict_pop_tensor(tn_module *dict, const char *key);
/* Removes all entries. */
TN_API tn_status tn_dict_clear(tn_module *dict);
/* Sets all entries of `other` in `dict`, in their order. */
TN_API tn_status tn_dict_update(tn_module *dict, tn_module *other);

TN_END_DECLS
#endif
