/* SPDX-License-Identifier: MIT
 *
 * Containers: lists and dictionaries of modules or of parameters. An entry is a slot of the
 * container. Entries are added with the functions that register children and parameters, so that
 * the checks of these functions apply. This file keeps the order and the numbering of the
 * entries. */
#include "core/module/internal.h"

/* ---- what a container is --------------------------------------------------------------------- */

static bool of_parameters(const tn_module *module)
{
    return (module->layer->flags & TN_LAYER_PARAMETERS) != 0;
}

static tn__slots *entries(tn_module *module)
{
    return of_parameters(module) ? &module->parameters : &module->children;
}

/* Checks that the module is a container of this kind (TN_LAYER_LIST or TN_LAYER_DICT). */
static tn_status is_a(const tn_module *module, uint32_t kind, const char *function)
{
    if (module == NULL)
        return tn_error_null(function);
    if (module->layer != NULL && (module->layer->flags & kind) != 0)
        return TN_OK;
    return tn_fail(TN_ERR_TYPE, "%s: %s: wrong type, got %s; expected %s", function,
                   kind == TN_LAYER_LIST ? "list" : "dictionary", module->type,
                   kind == TN_LAYER_LIST ? "a layer whose entries are a list"
                                         : "a layer whose entries have keys");
}

/* Like is_a(), and checks whether the entries are parameters (`parameters`) or modules. */
static tn_status holds(const tn_module *module, uint32_t kind, bool parameters,
                       const char *function)
{
    tn_status status = is_a(module, kind, function);
    if (status == TN_OK && of_parameters(module) != parameters)
        status = tn_fail(
            TN_ERR_TYPE, "%s: %s: wrong kind of entries, got %s", function, module->type,
            parameters ? "modules; expected parameters" : "parameters; expected modules");
    return status;
}

static tn_status same_kind(tn_module *a, tn_module *b, uint32_t kind, const char *function)
{
    tn_status status = is_a(a, kind, function);
    if (status == TN_OK)
        status = is_a(b, kind, function);
    if (status == TN_OK && of_parameters(a) != of_parameters(b))
        status = tn_fail(TN_ERR_TYPE,
                         "%s: %s and %s: entries of different kinds; expected modules in both, or "
                         "parameters in both",
                         function, a->type, b->type);
    return status;
}

static tn_status place_of(tn_module *module, int64_t index, int64_t *place)
{
    int64_t count = entries(module)->count;
    *place = index < 0 ? index + count : index;
    if (*place >= 0 && *place < count)
        return TN_OK;
    return tn_fail(TN_ERR_INDEX, "index %lld is out of range: this %s has %lld %s",
                   (long long)index, module->type, (long long)count,
                   count == 1 ? "entry" : "entries");
}

/* ---- entries in and out ---------------------------------------------------------------------- */

static tn_status add_parameter(tn_module *module, const char *name, tn_tensor *tensor)
{
    uint64_t scope = tn_scope_begin();
    if (!tn__is_none(tensor) && !tn_tensor_is_parameter(tensor)) {
        const uint64_t real = TN_MASK_FLOAT | TN_MASK_COMPLEX;
        tensor = tn_parameter(tensor, (TN_BIT(tn_tensor_dtype(tensor)) & real) != 0);
    }
    tn_status status = tensor != NULL ? tn_module_add_parameter(module, name, tensor)
                                      : tn_error_last_code();
    tn_scope_end(scope);
    return status;
}

/* Adds an entry with the tensor or the module of the slot `from`. */
static tn_status add_entry(tn_module *module, const char *name, const tn__slot *from)
{
    return of_parameters(module) ? add_parameter(module, name, from->tensor)
           : from->child == NULL ? TN_OK
                                 : tn_module_add_child(module, name, from->child);
}

static tn_status append_entry(tn_module *list, const tn__slot *from)
{
    char name[24];
    tn_snprint(name, sizeof name, "%lld", (long long)entries(list)->count);
    if (tn__slots_find(entries(list), name) != NULL)
        return tn_fail(TN_ERR_KEY,
                       "%s: entry \"%s\": exists already, because a slice keeps the names of its "
                       "entries; tn_list_insert and tn_list_delete_range renumber them, "
                       "tn_module_add_child adds an entry under another name",
                       list->type, name);
    return add_entry(list, name, from);
}

/* Names the entries "0", "1", ... Changes no name if memory runs out. */
static tn_status renumber(tn__slots *slots)
{
    char **names = tn_calloc((size_t)(slots->count > 0 ? slots->count : 1), sizeof *names);
    bool failed = names == NULL;
    for (int64_t i = 0; i < slots->count && !failed; i++) {
        char name[24];
        tn_snprint(name, sizeof name, "%lld", (long long)i);
        names[i] = tn_strdup(name);
        failed = names[i] == NULL;
    }
    for (int64_t i = 0; i < slots->count && names != NULL; i++) {
        char *old = slots->at[i].name;
        if (failed) {
            tn_free(names[i]);
            continue;
        }
        slots->at[i].name = names[i];
        tn_free(old);
    }
    tn_free(names);
    tn__slots_reindex(slots);
    return failed ? TN_ERR_MEMORY : TN_OK;
}

/* Returns whether the entries are already named "0", "1", ... */
static bool is_numbered(const tn__slots *slots)
{
    for (int64_t i = 0; i < slots->count; i++) {
        const char *name = slots->at[i].name;
        int64_t number = 0, digits = 0;
        for (; name[digits] >= '0' && name[digits] <= '9' && digits < 18; digits++)
            number = number * 10 + (name[digits] - '0');
        if (number != i || digits == 0 || name[digits] != '\0' || (name[0] == '0' && digits > 1))
            return false;
    }
    return true;
}

/* Moves the last entry to `place`, and the entries from there on up by one. Only the values move;
 * the names stay in order, so that the index of names stays valid. */
static void move_last(tn__slots *slots, int64_t place)
{
    tn__slot last = slots->at[slots->count - 1];
    for (int64_t i = slots->count - 1; i >= place; i--) {
        char *name = slots->at[i].name;
        slots->at[i] = i > place ? slots->at[i - 1] : last;
        slots->at[i].name = name;
    }
}

static tn_module *like(const tn_module *module)
{
    return tn__module_make(module->type, NULL, NULL, NULL, NULL, NULL, 0);
}

/* Returns the container after success. After a failure, drops it and returns NULL. */
static tn_module *finished(tn_module *made, tn_status status)
{
    if (status == TN_OK)
        return made;
    tn_module_drop(made);
    return NULL;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct range {
    int64_t first, step, count;
};

static int64_t clamp(int64_t at, int64_t count, int64_t least, int64_t most)
{
    if (at < 0)
        at = at < -count ? least : at + count;
    return at < least ? least : at > most ? most : at;
}

static tn_status range_of(int64_t count, int64_t start, int64_t stop, int64_t step,
                          struct range *range)
{
    if (step == 0)
        return tn_fail(TN_ERR_VALUE, "slice step cannot be zero");
    if (step == TN_LIST_OPEN)
        step = 1;
    if (step > 0) {
        start = start == TN_LIST_OPEN ? 0 : clamp(start, count, 0, count);
        stop = stop == TN_LIST_OPEN ? count : clamp(stop, count, 0, count);
    } else {
        start = start == TN_LIST_OPEN ? count - 1 : clamp(start, count, -1, count - 1);
        stop = stop == TN_LIST_OPEN ? -1 : clamp(stop, count, -1, count - 1);
    }
    int64_t way = step > 0 ? stop - start : start - stop, size = step > 0 ? step : -(step + 1) + 1;
    *range = (struct range){ start, step, way <= 0 ? 0 : (way - 1) / size + 1 };
    return TN_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

int64_t tn_list_count(tn_module *list)
{
    return is_a(list, TN_LAYER_LIST, "tn_list_count") == TN_OK ? entries(list)->count : -1;
}

tn_status tn_list_append(tn_module *list, tn_module *child)
{
    if (child == NULL)
        return tn_error_null("tn_list_append: child");
    tn_status status = holds(list, TN_LAYER_LIST, false, "tn_list_append");
    return status == TN_OK ? append_entry(list, &(tn__slot){ .child = child }) : status;
}

tn_status tn_list_append_tensor(tn_module *list, tn_tensor *tensor)
{
    if (tensor == NULL)
        return tn_error_null("tn_list_append_tensor: tensor");
    tn_status status = holds(list, TN_LAYER_LIST, true, "tn_list_append_tensor");
    return status == TN_OK ? append_entry(list, &(tn__slot){ .tensor = tensor }) : status;
}

tn_status tn_list_insert(tn_module *list, int64_t index, tn_module *child)
{
    /* Neither a number nor an identifier: no entry has this name. */
    char name[24] = "to be inserted";
    if (child == NULL)
        return tn_error_null("tn_list_insert: child");
    tn_status status = holds(list, TN_LAYER_LIST, false, "tn_list_insert");
    if (status != TN_OK)
        return status;
    tn__slots *slots = entries(list);
    int64_t count = slots->count, place = index < 0 ? index + count : index;
    if (place < 0 || place > count)
        return tn_fail(TN_ERR_INDEX, "Index out of range: %lld; this %s has %lld %s",
                       (long long)index, list->type, (long long)count,
                       count == 1 ? "entry" : "entries");
    bool numbered = is_numbered(slots);
    if (numbered)
        tn_snprint(name, sizeof name, "%lld", (long long)count);
    status = tn_module_add_child(list, name, child);
    if (status != TN_OK || (numbered && place == count))
        return status;
    slots = entries(list); /* a hook may have added entries */
    if (numbered && slots->count == count + 1) {
        move_last(slots, place);
        return TN_OK;
    }
    count = slots->count - 1;
    tn__slot added = slots->at[count];
    memmove(slots->at + place + 1, slots->at + place, (size_t)(count - place) * sizeof added);
    slots->at[place] = added;
    status = renumber(slots);
    if (status != TN_OK)
        tn_module_remove(list, name);
    return status;
}

tn_status tn_list_set(tn_module *list, int64_t index, tn_module *child)
{
    int64_t place = 0;
    if (child == NULL)
        return tn_error_null("tn_list_set: child");
    tn_status status = holds(list, TN_LAYER_LIST, false, "tn_list_set");
    if (status == TN_OK)
        status = place_of(list, index, &place);
    return status == TN_OK ? tn_module_add_child(list, entries(list)->at[place].name, child)
                           : status;
}

tn_status tn_list_set_tensor(tn_module *list, int64_t index, tn_tensor *tensor)
{
    int64_t place = 0;
    if (tensor == NULL)
        return tn_error_null("tn_list_set_tensor: tensor");
    tn_status status = holds(list, TN_LAYER_LIST, true, "tn_list_set_tensor");
    if (status == TN_OK)
        status = place_of(list, index, &place);
    return status == TN_OK ? add_parameter(list, entries(list)->at[place].name, tensor) : status;
}

tn_tensor *tn_list_tensor(tn_module *list, int64_t index)
{
    int64_t place = 0;
    if (holds(list, TN_LAYER_LIST, true, "tn_list_tensor") != TN_OK ||
        place_of(list, index, &place) != TN_OK)
        return NULL;
    return entries(list)->at[place].tensor;
}

tn_status tn_list_delete_range(tn_module *list, int64_t start, int64_t stop, int64_t step)
{
    struct range range = { 0 };
    tn_status status = is_a(list, TN_LAYER_LIST, "tn_list_delete_range");
    if (status == TN_OK)
        status = range_of(entries(list)->count, start, stop, step, &range);
    if (status != TN_OK || range.count == 0)
        return status;
    tn__slots *slots = entries(list);
    /* Begins at the end, so that the indices of the remaining entries stay valid. */
    for (int64_t i = 0; i < range.count && status == TN_OK; i++) {
        int64_t k = range.step > 0 ? range.count - 1 - i : i;
        status = tn_module_remove(list, slots->at[range.first + k * range.step].name);
    }
    return status == TN_OK ? renumber(slots) : status;
}

tn_module *tn_list_pop(tn_module *list, int64_t index)
{
    int64_t place = 0;
    if (holds(list, TN_LAYER_LIST, false, "tn_list_pop") != TN_OK ||
        place_of(list, index, &place) != TN_OK)
        return NULL;
    tn_module *child = tn_module_keep(entries(list)->at[place].child);
    return finished(child, tn_list_delete_range(list, place, place + 1, 1));
}

tn_status tn_list_extend(tn_module *list, tn_module *other)
{
    tn_status status = same_kind(list, other, TN_LAYER_LIST, "tn_list_extend");
    if (status != TN_OK)
        return status;
    int64_t count = entries(other)->count;
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        /* A copy: the array may move when a list is appended to itself. */
        tn__slot from = entries(other)->at[i];
        status = append_entry(list, &from);
    }
    return status;
}

/* Appends the entries of `list` to `made` `count` times. */
static tn_status extend_times(tn_module *made, tn_module *list, int64_t count)
{
    int64_t once = entries(list)->count;
    tn_status status;
    if (count <= 0)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE, "Non-positive multiplication factor %lld for %s",
                       (long long)count, list->type);
    if (once > 0 && count > TN__BUILD_MAX / once)
        return tn_fail(TN_ERR_VALUE,
                       "%s of %lld entries times %lld: too many; expected at most %d in one call",
                       list->type, (long long)once, (long long)count, TN__BUILD_MAX);
    status = tn__build_limit_begin();
    if (status != TN_OK)
        return status;
    for (int64_t i = 0; status == TN_OK && i < once * count; i++)
        status = append_entry(made, &entries(list)->at[i % once]);
    tn__build_limit_end();
    return status;
}

tn_module *tn_list_slice(tn_module *list, int64_t start, int64_t stop, int64_t step)
{
    struct range range = { 0 };
    if (is_a(list, TN_LAYER_LIST, "tn_list_slice") != TN_OK ||
        range_of(entries(list)->count, start, stop, step, &range) != TN_OK)
        return NULL;
    tn_module *made = like(list);
    bool keep = (list->layer->flags & TN_LAYER_KEEP_KEYS) != 0;
    tn_status status = made != NULL ? TN_OK : tn_error_last_code();
    for (int64_t i = 0; i < range.count && status == TN_OK; i++) {
        const tn__slot *from = &entries(list)->at[range.first + i * range.step];
        status = keep ? add_entry(made, from->name, from) : append_entry(made, from);
    }
    return finished(made, status);
}

tn_module *tn_list_repeat(tn_module *list, int64_t count)
{
    if (is_a(list, TN_LAYER_LIST, "tn_list_repeat") != TN_OK)
        return NULL;
    tn_module *made = like(list);
    return finished(made, made != NULL ? extend_times(made, list, count) : tn_error_last_code());
}

/* ---- dictionaries ---------------------------------------------------------------------------- */

int64_t tn_dict_count(tn_module *dict)
{
    return is_a(dict, TN_LAYER_DICT, "tn_dict_count") == TN_OK ? entries(dict)->count : -1;
}

const char *tn_dict_key(tn_module *dict, int64_t index)
{
    int64_t place = 0;
    if (is_a(dict, TN_LAYER_DICT, "tn_dict_key") != TN_OK || place_of(dict, index, &place) != TN_OK)
        return NULL;
    return entries(dict)->at[place].name;
}

bool tn_dict_has(tn_module *dict, const char *key)
{
    return is_a(dict, TN_LAYER_DICT, "tn_dict_has") == TN_OK &&
           tn__given(key != NULL, "tn_dict_has: key") && tn__slots_find(entries(dict), key) != NULL;
}

static tn_status key_given(const char *key)
{
    return key != NULL ? TN_OK : tn_fail(TN_ERR_TYPE, "key: it is NULL; expected a string");
}

tn_status tn_dict_set(tn_module *dict, const char *key, tn_module *child)
{
    if (child == NULL)
        return tn_error_null("tn_dict_set: child");
    tn_status status = holds(dict, TN_LAYER_DICT, false, "tn_dict_set");
    if (status == TN_OK)
        status = key_given(key);
    return status == TN_OK ? tn_module_add_child(dict, key, child) : status;
}

tn_status tn_dict_set_tensor(tn_module *dict, const char *key, tn_tensor *tensor)
{
    if (tensor == NULL)
        return tn_error_null("tn_dict_set_tensor: tensor");
    tn_status status = holds(dict, TN_LAYER_DICT, true, "tn_dict_set_tensor");
    if (status == TN_OK)
        status = key_given(key);
    return status == TN_OK ? add_parameter(dict, key, tensor) : status;
}

/* Returns the entry to be removed; NULL and sets the error if there is none. */
static tn__slot *popped(tn_module *dict, const char *key)
{
    tn__slot *slot = key_given(key) == TN_OK ? tn__slots_find(entries(dict), key) : NULL;
    if (slot == NULL && key != NULL) {
        tn__text keys = { 0 };
        tn__slots_list(entries(dict), &keys);
        tn_fail(TN_ERR_KEY, "%s: no key %q%s%s", dict->type, key, keys.at != NULL ? "; keys: " : "",
                keys.at != NULL ? keys.at : "");
        tn__text_free(&keys);
    }
    return slot;
}

tn_module *tn_dict_pop(tn_module *dict, const char *key)
{
    tn__slot *slot = holds(dict, TN_LAYER_DICT, false, "tn_dict_pop") == TN_OK ? popped(dict, key)
                                                                               : NULL;
    if (slot == NULL)
        return NULL;
    tn_module *child = tn_module_keep(slot->child);
    return finished(child, tn_module_remove(dict, key));
}

tn_tensor *tn_dict_pop_tensor(tn_module *dict, const char *key)
{
    tn__slot *slot = holds(dict, TN_LAYER_DICT, true, "tn_dict_pop_tensor") == TN_OK
                         ? popped(dict, key)
                         : NULL;
    if (slot == NULL)
        return NULL;
    tn_tensor *tensor = tn__is_none(slot->tensor) ? slot->tensor : tn_tensor_keep(slot->tensor);
    tn_module_remove(dict, key);
    return tensor;
}

tn_status tn_dict_clear(tn_module *dict)
{
    tn_status status = is_a(dict, TN_LAYER_DICT, "tn_dict_clear");
    while (status == TN_OK && entries(dict)->count > 0)
        status = tn_module_remove(dict, entries(dict)->at[entries(dict)->count - 1].name);
    return status;
}

tn_status tn_dict_update(tn_module *dict, tn_module *other)
{
    tn_status status = same_kind(dict, other, TN_LAYER_DICT, "tn_dict_update");
    if (dict == other)
        return status;
    for (int64_t i = 0; status == TN_OK && i < entries(other)->count; i++)
        status = add_entry(dict, entries(other)->at[i].name, &entries(other)->at[i]);
    return status;
}
