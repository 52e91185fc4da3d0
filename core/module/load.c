/* SPDX-License-Identifier: MIT
 *
 * A module's state: taken out, put back with PyTorch's checks, saved to and loaded from files. */
#include "core/module/internal.h"

#define MESSAGE_ROOM 900 /* of an error record's text; what does not fit is counted */

/* ---- out ------------------------------------------------------------------------------------- */

tn_state *tn_module_state(tn_module *module)
{
    if (module == NULL) {
        tn__null_input("an argument of tn_module_state");
        return NULL;
    }
    tn__walk walk = { NULL, 0, 0 };
    if (tn__walk_collect(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, true, &walk) != TN_OK)
        return NULL;
    tn_state *state = tn_state_new();
    uint64_t scope = tn_scope_begin();
    tn_status status = state != NULL ? TN_OK : TN_ERR_MEMORY;
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++) {
        if ((walk.at[i].flags & TN_SLOT_NOT_PERSISTENT) != 0)
            continue;
        tn_tensor *tensor = tn_tensor_detach(walk.at[i].tensor);
        status = tensor != NULL ? tn_state_set(state, walk.at[i].path, tensor) : TN_ERR_RUNTIME;
    }
    tn_scope_end(scope);
    tn__walk_free(&walk);
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

/* ---- in: what fits and what does not --------------------------------------------------------- */

/* A list in an error text, cut with a count when the record cannot hold it. */
struct names {
    tn__text text;
    int64_t count, left_out;
};

static void names_add(struct names *names, const char *name, size_t used)
{
    if (used + names->text.length + strlen(name) + 32 > MESSAGE_ROOM) {
        names->left_out++;
    } else {
        tn__text_add(&names->text, "%s\"%s\"", names->text.length > 0 ? ", " : "", name);
    }
    names->count++;
}

static void put_names(tn__text *message, const char *title, const struct names *names)
{
    if (names->count == 0)
        return;
    tn__text_add(message, "\n\t%s key(s) in state_dict: %s", title,
                 names->text.at != NULL ? names->text.at : "");
    if (names->left_out > 0)
        tn__text_add(message, " and %lld more", (long long)names->left_out);
    tn__text_put(message, ". ", 2);
}

/* PyTorch takes the first element of a row for a tensor without dimensions, as old files had it (LSD-010). */
static bool is_old_scalar(const tn_tensor *to, const tn_tensor *from)
{
    return tn_tensor_ndim(to) == 0 && tn_tensor_ndim(from) == 1 && tn_tensor_numel(from) > 0;
}

static bool shapes_fit(const tn_tensor *to, const tn_tensor *from)
{
    tn_ints a = tn__shape(to), b = tn__shape(from);
    if (is_old_scalar(to, from))
        return true;
    return a.count == b.count &&
           (a.count == 0 || memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) == 0);
}

/* Whether a key names something that the module expects; keys below a reserved child are nobody's business (LSD-015). */
static bool is_expected(const tn_module *module, const char *key)
{
    for (;;) {
        const char *dot = strchr(key, '.');
        if (dot == NULL)
            break;
        const tn__slot *child = NULL;
        for (int64_t i = 0; i < module->children.count && child == NULL; i++) {
            const char *name = module->children.at[i].name;
            size_t size = (size_t)(dot - key);
            if (strlen(name) == size && memcmp(name, key, size) == 0)
                child = &module->children.at[i];
        }
        if (child == NULL)
            return false;
        if (child->child == NULL)
            return true;
        module = child->child;
        key = dot + 1;
    }
    const tn__slot *slot = tn__slots_find(&module->parameters, key);
    if (slot == NULL) {
        slot = tn__slots_find(&module->buffers, key);
        if (slot != NULL && (slot->flags & TN_SLOT_NOT_PERSISTENT) != 0)
            return false;
    }
    return slot != NULL && !tn__is_none(slot->tensor);
}

static void put_mismatch(tn__text *text, const char *key, const tn_tensor *from,
                         const tn_tensor *to)
{
    tn__text_add(text, "\n\tsize mismatch for %s: copying a param with shape torch.Size(", key);
    tn__text_ints(text, tn__shape(from));
    tn__text_add(text, ") from checkpoint, the shape in current model is torch.Size(");
    tn__text_ints(text, tn__shape(to));
    tn__text_add(text, ").");
}

/* All that is wrong in one message; nothing has been copied yet. */
static tn_status check(tn_module *module, const tn__walk *walk, const tn_state *state, bool strict)
{
    struct names missing = { 0 }, unexpected = { 0 };
    tn__text mismatches = { 0 };
    int64_t mismatched = 0, unshown = 0;
    for (int64_t i = 0; i < walk->count; i++) {
        const tn__met *met = &walk->at[i];
        if ((met->flags & TN_SLOT_NOT_PERSISTENT) != 0)
            continue;
        int64_t found = tn_state_find(state, met->path);
        if (found < 0) {
            names_add(&missing, met->path, 0);
        } else if (!shapes_fit(met->tensor, tn_state_tensor(state, found))) {
            mismatched++;
            if (mismatches.length < MESSAGE_ROOM / 2)
                put_mismatch(&mismatches, met->path, tn_state_tensor(state, found), met->tensor);
            else
                unshown++;
        }
    }
    for (int64_t i = 0; i < tn_state_count(state); i++)
        if (!is_expected(module, tn_state_name(state, i)))
            names_add(&unexpected, tn_state_name(state, i), missing.text.length);
    tn_status status = TN_OK;
    if (mismatched > 0 || (strict && missing.count + unexpected.count > 0)) {
        tn__text message = { 0 };
        tn__text_add(&message, "Error(s) in loading state_dict for %s:", module->type);
        if (strict) {
            put_names(&message, "Missing", &missing);
            put_names(&message, "Unexpected", &unexpected);
        }
        if (mismatches.at != NULL)
            tn__text_put(&message, mismatches.at, mismatches.length);
        if (unshown > 0)
            tn__text_add(&message, "\n\tand %lld more size mismatches.", (long long)unshown);
        status = tn_fail(TN_ERR_RUNTIME, "%s",
                         message.at != NULL && !message.failed
                             ? message.at
                             : "the state does not fit the module");
        tn__text_free(&message);
    }
    tn__text_free(&missing.text);
    tn__text_free(&unexpected.text);
    tn__text_free(&mismatches);
    return status;
}

static tn_status copy_one(const char *key, tn_tensor *to, tn_tensor *from)
{
    if (is_old_scalar(to, from))
        from = tn_tensor_as_strided(from, TN_SCALAR_SHAPE, TN_SCALAR_SHAPE, tn_tensor_offset(from));
    if (from == NULL)
        return TN_ERR_RUNTIME;
    if (tn_tensor_numel(to) == 0)
        return TN_OK;
    if (!tn_device_has_memory(tn_tensor_device(to))) {
        tn_log(TN_LOG_WARNING,
               "for %s: copying from the checkpoint to a tensor on %s, which has no values, does "
               "nothing",
               key, tn_device_name(tn_tensor_device(to)));
        return TN_OK;
    }
    if (!tn_device_has_memory(tn_tensor_device(from)))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "the tensor to copy from is on %s, which has no values",
                       tn_device_name(tn_tensor_device(from)));
    return tn__copy(to, from);
}

tn_status tn_module_load_state(tn_module *module, const tn_state *state, bool strict)
{
    if (module == NULL || state == NULL)
        return tn__null_input("an argument of tn_module_load_state");
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, true, &walk);
    if (status == TN_OK)
        status = check(module, &walk, state, strict);
    uint64_t scope = tn_scope_begin();
    tn_grad_begin(false);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++) {
        int64_t found = (walk.at[i].flags & TN_SLOT_NOT_PERSISTENT) != 0
                            ? -1
                            : tn_state_find(state, walk.at[i].path);
        if (found < 0)
            continue;
        status = copy_one(walk.at[i].path, walk.at[i].tensor, tn_state_tensor(state, found));
        if (status != TN_OK)
            tn_error_prefix("While copying the parameter named \"%s\": ", walk.at[i].path);
    }
    tn_grad_end();
    tn_scope_end(scope);
    tn__walk_free(&walk);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

tn_status tn_state_save(const tn_state *state, const char *path)
{
    if (state == NULL || path == NULL)
        return tn__null_input("an argument of tn_state_save");
    return tn__file_save(path, state);
}

tn_state *tn_state_load(const char *path)
{
    if (path == NULL) {
        tn__null_input("an argument of tn_state_load");
        return NULL;
    }
    tn_state *state = tn_state_new();
    if (state != NULL && tn__file_load(path, state) != TN_OK) {
        tn_state_drop(state);
        return NULL;
    }
    return state;
}

tn_status tn_module_save(tn_module *module, const char *path)
{
    if (module == NULL || path == NULL)
        return tn__null_input("an argument of tn_module_save");
    tn_state *state = tn_module_state(module);
    tn_status status = state != NULL ? tn__file_save(path, state) : tn_error_last()->code;
    tn_state_drop(state);
    return status;
}

tn_status tn_module_load(tn_module *module, const char *path)
{
    if (module == NULL || path == NULL)
        return tn__null_input("an argument of tn_module_load");
    tn_state *state = tn_state_load(path);
    if (state == NULL)
        return tn_error_last()->code;
    tn_status status = tn_module_load_state(module, state, true);
    if (status != TN_OK)
        tn_error_prefix("%s: ", path);
    tn_state_drop(state);
    return status;
}
