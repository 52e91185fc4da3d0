/* SPDX-License-Identifier: MIT
 *
 * The list of the parametrizations of one tensor: a module that computes the tensor from its
 * originals; and the computed slot through which the owner of the tensor reads and assigns it. */
#include "lib/parametrize/parametrize.h"

/* ---- the modules ----------------------------------------------------------------------------- */

static tn_status list_call(tn_module *self, const tn_pack *input, tn_pack *output);

/* Their names are those that PyTorch prints. The core has these two layers for itself: they are not
 * registered, so a spec does not find them. */
static const tn_layer_def list_layer = {
    TN_HEAD(tn_layer_def),
    .name = "ParametrizationList",
    .data_size = sizeof(tn__parametrize_data),
    .flags = TN_LAYER_COLLAPSE,
    .call = list_call,
};
static const tn_layer_def dict_layer = { TN_HEAD(tn_layer_def), .name = "ModuleDict" };

bool tn__parametrize_is_list(const tn_module *module)
{
    return module->layer == &list_layer;
}

static tn_module *module_of(const tn_layer_def *layer)
{
    tn_module *module = tn__module_new(layer->name);

    if (module == NULL)
        return NULL;
    module->data = tn_calloc(1, layer->data_size > 0 ? layer->data_size : 1);
    if (module->data == NULL) {
        tn_module_drop(module);
        return NULL;
    }
    module->layer = layer;
    return module;
}

static tn_module *dict_of(const tn_module *module)
{
    const tn__slot *slot = tn__slots_find(&module->children, TN__PARAMETRIZE_CHILD);

    return slot != NULL && slot->child != NULL && slot->child->layer == &dict_layer ? slot->child
                                                                                    : NULL;
}

tn_module *tn__parametrize_list(const tn_module *module, const char *name)
{
    const tn_module *dict = dict_of(module);
    const tn__slot *slot = dict != NULL ? tn__slots_find(&dict->children, name) : NULL;

    return slot != NULL && slot->child != NULL && slot->child->layer == &list_layer ? slot->child
                                                                                    : NULL;
}

tn_module *tn__parametrize_list_new(tn_module *parametrization, bool unsafe)
{
    tn_module *list = module_of(&list_layer);

    if (list == NULL)
        return NULL;
    tn__parametrize_data_of(list)->unsafe = unsafe;
    list->training = parametrization->training;
    if (tn_module_add_child(list, "0", parametrization) == TN_OK)
        return list;
    tn_module_drop(list);
    return NULL;
}

int64_t tn__parametrize_originals(const tn_module *list)
{
    int64_t count = tn__parametrize_data_of(list)->originals;

    return count > 0 ? count : 1;
}

void tn__parametrize_original(const tn_module *list, int64_t index, tn__parametrize_name name)
{
    if (tn__parametrize_data_of(list)->originals == 0)
        memcpy(name, "original", sizeof "original");
    else
        tn_snprint(name, sizeof(tn__parametrize_name), "original%lld", (long long)index);
}

tn_module *tn__parametrize_at(const tn_module *list, int64_t index)
{
    tn__parametrize_name name;
    const tn__slot *slot;

    tn_snprint(name, sizeof name, "%lld", (long long)index);
    slot = tn__slots_find(&list->children, name);
    return slot != NULL ? slot->child : NULL;
}

int64_t tn__parametrize_count(const tn_module *list)
{
    int64_t count = 0;

    while (tn__parametrize_at(list, count) != NULL)
        count++;
    return count;
}

/* ---- the value ------------------------------------------------------------------------------- */

static tn_status add_originals(tn_module *list, tn_pack *out)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn__parametrize_originals(list) && status == TN_OK; i++) {
        tn__parametrize_name name;
        tn__parametrize_original(list, i, name);
        tn_tensor *original = tn_module_get(list, name);
        status = original != NULL ? tn_pack_add(out, NULL, tn_value_tensor(original))
                                  : tn_error_last_code();
    }
    return status;
}

/* Replaces the values in *pack by the result of the parametrization for them, one tensor. */
static tn_status apply(tn_module *parametrization, tn_pack **pack)
{
    tn_pack *out = tn_pack_new();
    tn_status status = out != NULL ? tn_module_call_pack(parametrization, *pack, out)
                                   : TN_ERR_MEMORY;

    /* PyTorch's wording */
    if (status == TN_OK && tn_pack_count(out) != 1)
        status = tn_fail(TN_ERR_VALUE,
                         "A parametrization must return a tensor. Got %lld results of %s.",
                         (long long)tn_pack_count(out), parametrization->type);
    else if (status == TN_OK && tn_pack_at(out, 0).kind != TN_VALUE_TENSOR)
        status = tn_fail(TN_ERR_VALUE, "A parametrization must return a tensor. Got %s of %s.",
                         tn__value_kind_name(tn_pack_at(out, 0).kind), parametrization->type);
    if (status != TN_OK) {
        tn_pack_drop(out);
        return status;
    }
    tn_pack_drop(*pack);
    *pack = out;
    return TN_OK;
}

static tn_status list_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_pack *pack;
    tn_status status;
    tn_module *parametrization;

    if (tn_pack_count(input) != 0)
        return tn_fail(TN_ERR_TYPE,
                       "forward: wrong arguments, got %lld; expected none: a list of "
                       "parametrizations has its originals itself",
                       (long long)tn_pack_count(input));
    pack = tn_pack_new();
    status = pack != NULL ? add_originals(self, pack) : TN_ERR_MEMORY;
    for (int64_t i = 0; status == TN_OK && (parametrization = tn__parametrize_at(self, i)); i++)
        status = apply(parametrization, &pack);
    if (status == TN_OK)
        status = tn_pack_add(output, NULL, tn_pack_at(pack, 0));
    tn_pack_drop(pack);
    return status;
}

tn_tensor *tn__parametrize_value(tn_module *list)
{
    tn_tensor *value = NULL;

    return tn_module_call_many(list, NULL, 0, &value, 1) == TN_OK ? value : NULL;
}

/* ---- the slot of the tensor ------------------------------------------------------------------ */

static tn_tensor *get(void *user, tn_module *module, const char *name)
{
    tn_module *list = tn__parametrize_list(module, name);
    tn_tensor *value;

    (void)user;
    if (list == NULL) {
        tn_fail(TN_ERR_ATTR, "'%s' of %s: its parametrizations were removed; expected %s.%s", name,
                module->type, TN__PARAMETRIZE_CHILD, name);
        return NULL;
    }
    value = tn__value_cache_get(list);
    if (value != NULL)
        return tn_tensor_to_scope(tn_tensor_keep(value));
    value = tn__parametrize_value(list);
    return value != NULL && tn__value_cache_put(list, value) == TN_OK ? value : NULL;
}

static tn_status set(void *user, tn_module *module, const char *name, tn_tensor *tensor)
{
    tn_module *list = tn__parametrize_list(module, name);

    (void)user;
    if (list == NULL)
        return tn_fail(TN_ERR_ATTR, "'%s' of %s: its parametrizations were removed; expected %s.%s",
                       name, module->type, TN__PARAMETRIZE_CHILD, name);
    if (tn__is_none(tensor))
        return tn_fail(TN_ERR_TYPE, "'%s' of %s: it is parametrized, got None; expected a tensor",
                       name, module->type);
    return tn__parametrize_assign(list, tensor);
}

static const tn_computed computed = { .get = get, .set = set };

tn_status tn__parametrize_list_add(tn_module *module, const char *name, tn_module *list)
{
    tn_module *dict = dict_of(module);
    bool fresh = dict == NULL;
    tn_status status = TN_OK;

    if (fresh) {
        status = tn__slot_name_check(module, TN_SLOT_CHILD, TN__PARAMETRIZE_CHILD);
        if (status == TN_OK && tn__slots_find(&module->children, TN__PARAMETRIZE_CHILD) != NULL)
            status = tn_fail(TN_ERR_KEY,
                             "'%s' of %s: a child has this name already; expected no such child, "
                             "because parametrizations need the name",
                             TN__PARAMETRIZE_CHILD, module->type);
        dict = status == TN_OK ? module_of(&dict_layer) : NULL;
        if (dict == NULL)
            return status != TN_OK ? status : tn_error_last_code();
        dict->training = module->training;
    } else {
        tn_module_keep(dict);
    }
    status = tn_module_add_child(dict, name, list);
    if (status == TN_OK)
        status = tn__computed_add(module, name, &computed, NULL);
    if (status == TN_OK && fresh) {
        status = tn_module_add_child(module, TN__PARAMETRIZE_CHILD, dict);
        if (status != TN_OK)
            tn__slots_remove(&module->computed, tn__slots_find(&module->computed, name));
    }
    if (status != TN_OK && !fresh) {
        tn__slot *slot = tn__slots_find(&dict->children, name);
        if (slot != NULL)
            tn__slots_remove(&dict->children, slot);
    }
    tn_module_drop(dict);
    tn__value_cache_forget(); /* a cached value may have been computed from this tensor */
    return status;
}

void tn__parametrize_list_remove(tn_module *module, const char *name)
{
    tn_module *dict = dict_of(module);
    tn__slot *slot = tn__slots_find(&module->computed, name);

    if (slot != NULL)
        tn__slots_remove(&module->computed, slot);
    slot = dict != NULL ? tn__slots_find(&dict->children, name) : NULL;
    if (slot == NULL)
        return;
    tn__value_cache_forget();
    tn__slots_remove(&dict->children, slot);
    if (dict->children.count == 0)
        tn__slots_remove(&module->children,
                         tn__slots_find(&module->children, TN__PARAMETRIZE_CHILD));
}

/* ---- queries --------------------------------------------------------------------------------- */

tn_status tn__parametrize_find(tn_module **module, const char **name)
{
    const char *dot = strrchr(*name, '.');
    char *path;

    if (dot == NULL)
        return TN_OK;
    path = tn_strdup(*name);
    if (path == NULL)
        return TN_ERR_MEMORY;
    path[dot - *name] = '\0';
    *module = tn_module_find(*module, path);
    tn_free(path);
    *name = dot + 1;
    return *module != NULL ? TN_OK : tn_error_last_code();
}

bool tn_is_parametrized(tn_module *module, const char *name)
{
    uint64_t mark = tn_error_mark();

    if (!tn__not_null(module, "tn_is_parametrized: module"))
        return false;
    if (name == NULL)
        return dict_of(module) != NULL;
    if (tn__parametrize_find(&module, &name) == TN_OK)
        return tn__parametrize_list(module, name) != NULL;
    tn_error_restore(mark);
    return false;
}

/* Returns the list of a tensor by its path, NULL without an error if it is not parametrized. */
static tn_module *list_at(tn_module *module, const char *name)
{
    if (module == NULL || name == NULL) {
        tn__error_null_of("tn_parametrization", "module, name", module, name);
        return NULL;
    }
    return tn__parametrize_find(&module, &name) == TN_OK ? tn__parametrize_list(module, name)
                                                         : NULL;
}

tn_module *tn_parametrization(tn_module *module, const char *name, int64_t index)
{
    const tn_module *list = list_at(module, name);

    return list != NULL && index >= 0 ? tn__parametrize_at(list, index) : NULL;
}

int64_t tn_parametrization_count(tn_module *module, const char *name)
{
    const tn_module *list = list_at(module, name);

    return list != NULL ? tn__parametrize_count(list) : 0;
}

bool tn_parametrization_is_unsafe(tn_module *module, const char *name)
{
    const tn_module *list = list_at(module, name);

    return list != NULL && tn__parametrize_data_of(list)->unsafe;
}

/* ---- old states, and modules from text ------------------------------------------------------- */

/* Calls load_owner of every parametrization of the module; without `loading`, returns at the first
 * one that has it. */
static bool each_owner_loader(tn_module *module, tn_loading *loading, tn_status *status)
{
    const tn_module *dict = dict_of(module);

    *status = TN_OK;
    for (int64_t i = 0; dict != NULL && i < dict->children.count && *status == TN_OK; i++) {
        const char *name = dict->children.at[i].name;
        const tn_module *list = tn__parametrize_list(module, name);
        tn_module *p;
        for (int64_t k = 0; list != NULL && *status == TN_OK && (p = tn__parametrize_at(list, k));
             k++) {
            if (p->layer == NULL || p->layer->load_owner == NULL)
                continue;
            if (loading == NULL)
                return true;
            const char *plugin = tn__module_enter(p);
            *status = tn__error_status_of(p->layer->load_owner(p, module, name, loading), p->type);
            tn__error_plugin_back(plugin);
        }
    }
    return false;
}

bool tn__parametrize_renames(const tn_module *module)
{
    tn_status status;

    return each_owner_loader((tn_module *)module, NULL, &status);
}

tn_status tn__parametrize_rename(tn_module *module, tn_loading *loading)
{
    tn_status status;

    each_owner_loader(module, loading, &status);
    return status;
}

tn_status tn__parametrize_printed(tn_module *module, const char *child)
{
    tn__slot *slot = tn__slots_find(&module->children, TN__PARAMETRIZE_CHILD);
    const tn__slots *lists = slot != NULL && slot->child != NULL ? &slot->child->children : NULL;
    tn_module *printed;
    tn_status status = TN_OK;

    if (strcmp(child, TN__PARAMETRIZE_CHILD) != 0 || module->layer == NULL || lists == NULL ||
        dict_of(module) != NULL)
        return TN_OK;
    for (int64_t i = 0; i < lists->count; i++)
        if (lists->at[i].child == NULL || strcmp(lists->at[i].child->type, list_layer.name) != 0)
            return TN_OK;
    printed = tn_module_keep(slot->child);
    tn__slots_remove(&module->children, slot);
    for (int64_t i = 0; i < lists->count; i++) {
        const tn__slots *list = &lists->at[i].child->children;
        for (int64_t k = 0; k < list->count && status == TN_OK; k++)
            if (list->at[k].child != NULL)
                status = tn_parametrize(module, lists->at[i].name, list->at[k].child,
                                        TN_PARAMETRIZE_UNSAFE);
    }
    tn_module_drop(printed);
    return status;
}
