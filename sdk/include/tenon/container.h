/* SPDX-License-Identifier: MIT
 *
 * Containers: modules whose entries, modules or parameters, are a list (Sequential, ModuleList,
 * ParameterList) or have keys (ModuleDict, ParameterDict). The layer declares the type:
 * TN_LAYER_LIST, TN_LAYER_DICT, TN_LAYER_PARAMETERS.
 * tenon-interface: tenon.container 0
 *
 * An entry is a child or a parameter of the container, so the functions for these work here:
 * tn_module_child_at, tn_module_child, tn_module_get, tn_module_remove. A negative index counts
 * from the end; one that is out of range is TN_ERR_INDEX. The container keeps its own references; a
 * new container shares its entries with those it was made from. */
#ifndef TENON_CONTAINER_H
#define TENON_CONTAINER_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* A bound of a range that is left open, as in [1:] or [::-1]. */
#define TN_LIST_OPEN INT64_MIN

/* ---- lists ----------------------------------------------------------------------------------- */

/* Number of entries; -1 and an error if it is not a list. */
TN_API int64_t tn_list_count(tn_module *list);
/* Adds at the end, named by its place. A list that has that name already (a slice that kept its
 * keys) refuses: TN_ERR_KEY. [null-through] */
TN_API tn_status tn_list_append(tn_module *list, tn_module *child);
/* Adds before entry `index` (the count: at the end); all are renumbered.
 * [null-through] */
TN_API tn_status tn_list_insert(tn_module *list, int64_t index, tn_module *child);
/* Replaces an entry, whose name stays. [null-through] */
TN_API tn_status tn_list_set(tn_module *list, int64_t index, tn_module *child);
/* Removes and returns an entry; the others are renumbered. [owned] */
TN_API tn_module *tn_list_pop(tn_module *list, int64_t index);

/* The same for lists of parameters. A tensor that is not a parameter becomes one that shares its
 * memory. [null-through] */
TN_API tn_status tn_list_append_tensor(tn_module *list, tn_tensor *tensor);
TN_API tn_status tn_list_set_tensor(tn_module *list, int64_t index, tn_tensor *tensor);
/* TN_NONE where the entry is reserved. [borrowed] */
TN_API tn_tensor *tn_list_tensor(tn_module *list, int64_t index);

/* For both kinds. Deletes one entry / those of a range, as Python's [start:stop:step] has them; the
 * others are renumbered from 0. */
TN_API tn_status tn_list_delete(tn_module *list, int64_t index);
TN_API tn_status tn_list_delete_range(tn_module *list, int64_t start, int64_t stop, int64_t step);
/* Adds the entries of another list (or the list itself). */
TN_API tn_status tn_list_extend(tn_module *list, tn_module *other);
/* Repeats the entries until the list has them `count` times. */
TN_API tn_status tn_list_multiply(tn_module *list, int64_t count);
/* New lists of the type of the first: the entries of a range, of two lists, of a list `count`
 * times. [owned] */
TN_API tn_module *tn_list_slice(tn_module *list, int64_t start, int64_t stop, int64_t step);
TN_API tn_module *tn_list_join(tn_module *first, tn_module *second);
TN_API tn_module *tn_list_repeat(tn_module *list, int64_t count);

/* ---- dictionaries ---------------------------------------------------------------------------- */

/* Number of entries; -1 and an error if it is not a dictionary. */
TN_API int64_t tn_dict_count(tn_module *dict);
/* The key of an entry by its place. [borrowed] */
TN_API const char *tn_dict_key(tn_module *dict, int64_t index);
/* Whether an entry has the key. */
TN_API bool tn_dict_has(tn_module *dict, const char *key);
/* Adds an entry at the end, or replaces the one with the same key. [null-through] */
TN_API tn_status tn_dict_set(tn_module *dict, const char *key, tn_module *child);
TN_API tn_status tn_dict_set_tensor(tn_module *dict, const char *key, tn_tensor *tensor);
/* The parameter of a key, `absent` (may be NULL) when there is none, which is not an error.
 * [borrowed] [null-ok: absent] */
TN_API tn_tensor *tn_dict_tensor(tn_module *dict, const char *key, tn_tensor *absent);
/* The parameter of a key; stores `tensor` there first when there is none. [borrowed]
 * [null-through] */
TN_API tn_tensor *tn_dict_default_tensor(tn_module *dict, const char *key, tn_tensor *tensor);
/* Remove and return an entry; TN_ERR_KEY when there is none. [owned] */
TN_API tn_module *tn_dict_pop(tn_module *dict, const char *key);
TN_API tn_tensor *tn_dict_pop_tensor(tn_module *dict, const char *key);
/* Takes all entries out. */
TN_API tn_status tn_dict_clear(tn_module *dict);
/* Sets all entries of another dictionary, in its order. */
TN_API tn_status tn_dict_update(tn_module *dict, tn_module *other);
/* New dictionaries of the type of the first: a shallow copy / the entries of both, the second's
 * where a key is in both / `count` keys with one tensor. [owned] [array: keys count]
 */
TN_API tn_module *tn_dict_copy(tn_module *dict);
TN_API tn_module *tn_dict_union(tn_module *first, tn_module *second);
TN_API tn_module *tn_dict_from_keys(tn_module *dict, const char *const *keys, int64_t count,
                                    tn_tensor *tensor);

TN_END_DECLS
#endif
