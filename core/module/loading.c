/* SPDX-License-Identifier: MIT
 *
 * Loads a state into a module. For each module, in this order: its own entries (by its layer or by
 * default), its extra state, the check for unexpected names, its children. All failures are listed
 * and reported at the end. */
#include "core/base/vector.h"
#include "core/module/depth.h"
#include "core/module/name_table.h"
#include "core/module/loading.h"

/* A change of the module that is postponed until the whole state was checked (TN_LOAD_WHOLE). */
struct step {
    tn_module *module; /* owned reference */
    char *key;
    size_t name; /* index in `key` at which the name of the slot begins */
    tn_value value;
    void *block;
};

struct loader {
    const tn_state *root;
    tn_load_report *report;
    tn_names errors; /* separate from the report, which hooks may change */
    uint32_t flags;
    bool later; /* collect steps, to do them at the end */
    struct step *steps;
    int64_t count, capacity;
    tn__load_ties ties; /* not with TN_LOAD_ASSIGN, which gives each name its own tensor */
    tn__load_taken taken;
};

/* The entries of a state whose names begin with the prefix of one module. `at` has their
 * indices. */
struct part {
    tn_state *state;
    int64_t *at;
    int64_t count;
};

/* ---- one entry ------------------------------------------------------------------------------- */

/* Adds a sentence to the list of errors. */
static tn_status complain(struct loader *l, const char *format, ...)
{
    va_list args;
    tn__text text = { 0 };
    va_start(args, format);
    tn__text_addv(&text, format, args);
    va_end(args);
    tn_status status = text.failed
                           ? tn_fail(TN_ERR_MEMORY, "loading a state: out of memory for the report")
                           : tn_names_add(&l->errors, text.at);
    tn__text_free(&text);
    return status;
}

static void shape_text(const tn_tensor *tensor, tn__text *text)
{
    tn__text_add(text, "torch.Size(");
    tn__tensor_text_ints(text, tn__shape(tensor));
    tn__text_add(text, ")");
}

/* Adds an error about copying `from` to `to`. `what` says what is wrong; NULL: the shapes
 * differ. */
static tn_status complain_of(struct loader *l, const char *key, const tn_tensor *to,
                             const tn_tensor *from, const char *what)
{
    tn__text a = { 0 }, b = { 0 };
    shape_text(to, &a);
    shape_text(from, &b);
    const char *model = a.failed ? "?" : a.at, *file = b.failed ? "?" : b.at;
    tn_status status =
        what == NULL
            ? complain(l,
                       "size mismatch for %s: copying a param with shape %s from checkpoint, "
                       "the shape in current model is %s.",
                       key, file, model)
            : complain(l,
                       "While copying the parameter named \"%s\", whose dimensions in the model "
                       "are %s and whose dimensions in the checkpoint are %s, an exception "
                       "occurred : (%s).",
                       key, model, file, what);
    tn__text_free(&a);
    tn__text_free(&b);
    return status;
}

/* Returns whether `from` is a scalar from an old file, which has shape [1]. As in PyTorch, a tensor
 * without dimensions takes the first element of a tensor with one dimension (row LSD-010 of
 * tests/spec/rows.txt). */
static bool is_old_scalar(const tn_tensor *to, const tn_tensor *from)
{
    return tn_tensor_ndim(to) == 0 && tn_tensor_ndim(from) == 1 && tn_tensor_numel(from) > 0;
}

static bool shapes_fit(const tn_tensor *to, const tn_tensor *from)
{
    tn_ints a = tn__shape(to), b = tn__shape(from);
    return a.count == b.count &&
           (a.count == 0 || memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) == 0);
}

/* Stores the tensor itself in the slot. A plain tensor for the slot of a parameter becomes a
 * parameter. */
static tn_status assign(tn_module *module, const char *name, bool parameter, tn_tensor *to,
                        tn_tensor *from)
{
    if (parameter) {
        if (!tn_tensor_is_parameter(from))
            from = tn_parameter(from, false);
        tn_status status = from != NULL
                               ? tn_tensor_set_requires_grad(from, tn_tensor_requires_grad(to))
                               : tn_error_last_code();
        if (status != TN_OK)
            return status;
    }
    return tn_module_set(module, name, from);
}

/* Copies a tensor to the slot `name`, or assigns it with TN_LOAD_ASSIGN. A failure becomes a
 * sentence of the report; only lack of memory is returned as an error. */
static tn_status put_tensor(struct loader *l, tn_module *module, const char *key, const char *name,
                            tn_tensor *from)
{
    tn__slot *slot = tn__slots_find(&module->parameters, name);
    bool parameter = slot != NULL;
    if (slot == NULL)
        slot = tn__slots_find(&module->buffers, name);
    if (slot == NULL || tn__is_none(slot->tensor))
        return TN_OK; /* a hook has removed the slot */
    tn_tensor *to = tn_tensor_keep(slot->tensor);
    uint64_t mark = tn_error_mark(), scope = tn_scope_begin();
    tn_status status = TN_OK;
    tn_tensor *given = from;
    tn_grad_begin(false);
    if (is_old_scalar(to, from))
        from = tn_tensor_as_strided(from, TN_SCALAR_SHAPE, TN_SCALAR_SHAPE, tn_tensor_offset(from));
    if (from == NULL)
        status = tn_error_last_code();
    else if ((l->flags & TN_LOAD_ASSIGN) != 0)
        status = assign(module, name, parameter, to, from);
    else
        status = tn__load_values((l->flags & TN_LOAD_TAKE) != 0 ? &l->taken : NULL, key, to, from);
    tn_grad_end();
    tn_scope_end(scope);
    if (status != TN_OK && status != TN_ERR_MEMORY) {
        char what[sizeof(tn_error)];
        tn_snprint(what, sizeof what, "%s", tn_error_last()->message);
        tn_error_restore(mark);
        status = complain_of(l, key, to, given, what);
    }
    tn_tensor_drop(to);
    return status;
}

static tn_status put_extra_state(struct loader *l, tn_module *module, const char *key,
                                 tn_value value)
{
    uint64_t mark = tn_error_mark();
    tn_status status = tn_module_set_extra_state(module, value);
    if (status == TN_OK || status == TN_ERR_MEMORY)
        return status;
    char what[sizeof(tn_error)];
    tn_snprint(what, sizeof what, "%s", tn_error_last()->message);
    tn_error_restore(mark);
    return complain(l, "While setting the extra state \"%s\", an exception occurred : (%s).", key,
                    what);
}

static tn_status do_step(struct loader *l, tn_module *module, const char *key, const char *name,
                         tn_value value)
{
    if (value.kind == TN_VALUE_TENSOR && (tn__slots_find(&module->parameters, name) != NULL ||
                                          tn__slots_find(&module->buffers, name) != NULL))
        return put_tensor(l, module, key, name, value.as.tensor);
    return put_extra_state(l, module, key, value);
}

/* Loads a value now or, if `later`, adds a step. `name` is where in `key` the name of the slot
 * begins. */
static tn_status step(struct loader *l, tn_module *module, const char *key, size_t name,
                      tn_value value)
{
    if (!l->later)
        return do_step(l, module, key, key + name, value);
    if (!tn__vector_room(&l->steps, &l->capacity, l->count + 1, sizeof *l->steps))
        return TN_ERR_MEMORY;
    struct step fresh = { .name = name, .key = tn_strdup(key) };
    tn_status status = fresh.key != NULL ? tn__value_copy(&value, &fresh.value, &fresh.block)
                                         : TN_ERR_MEMORY;
    if (status != TN_OK) {
        tn_free(fresh.key);
        return status;
    }
    fresh.module = tn_module_keep(module);
    l->steps[l->count++] = fresh;
    return TN_OK;
}

/* ---- one module's own part ------------------------------------------------------------------- */

static tn_status load_slot(struct loader *l, tn_module *module, const tn_loading *loading,
                           const tn__slot *slot, const char *key, size_t prefix)
{
    int64_t found = tn_state_find(loading->state, key);
    bool ties = (l->flags & TN_LOAD_ASSIGN) == 0;
    tn_status status = TN_OK;
    if (ties)
        status = found < 0 ? tn__load_ties_missing(&l->ties, slot->tensor, key)
                           : tn__load_ties_found(&l->ties, slot->tensor);
    if (status != TN_OK)
        return status;
    if (found < 0)
        return tn_names_add(loading->missing, key);
    tn_value value = tn_state_value(loading->state, found);
    if (value.kind != TN_VALUE_TENSOR)
        return complain(l,
                        "While copying the parameter named \"%s\", expected torch.Tensor or "
                        "Tensor-like object from checkpoint but received %s",
                        key, tn__value_kind_name(value.kind));
    if (!is_old_scalar(slot->tensor, value.as.tensor) && !shapes_fit(slot->tensor, value.as.tensor))
        return complain_of(l, key, slot->tensor, value.as.tensor, NULL);
    return step(l, module, key, prefix, value);
}

const char *tn_loading_text(const tn_loading *loading, const char *key)
{
    const struct loader *l = loading != NULL ? loading->host : NULL;

    if (!tn__given(l != NULL, "tn_loading_text: loading"))
        return NULL;
    return tn_state_meta(l->root, key);
}

tn_status tn_module_load_own(tn_module *module, tn_loading *loading)
{
    if (module == NULL || loading == NULL)
        return tn__error_null_of("tn_module_load_own", "module, loading", module, loading);
    const tn__slots *kinds[] = { &module->parameters, &module->buffers };
    size_t prefix = strlen(loading->prefix);
    tn__text key = { 0 };
    tn_status status = TN_OK;
    tn__text_put(&key, loading->prefix, prefix);
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < kinds[k]->count && status == TN_OK; i++) {
            const tn__slot *slot = &kinds[k]->at[i];
            if (tn__is_none(slot->tensor) || (slot->flags & TN_SLOT_FLAG_NOT_PERSISTENT) != 0)
                continue;
            key.length = prefix;
            tn__text_put(&key, slot->name, strlen(slot->name));
            status = key.failed ? tn_fail(TN_ERR_MEMORY, "loading a state: out of memory for a "
                                                         "name")
                                : load_slot(loading->host, module, loading, slot, key.at, prefix);
        }
    }
    tn__text_free(&key);
    return status;
}

static bool has_slot(const tn_module *module, const char *name)
{
    const tn__slot *slot = tn__slots_find(&module->parameters, name);
    if (slot == NULL)
        slot = tn__slots_find(&module->buffers, name);
    return slot != NULL && !tn__is_none(slot->tensor) &&
           (slot->flags & TN_SLOT_FLAG_NOT_PERSISTENT) == 0;
}

static tn_status load_extra_state(struct loader *l, tn_module *module, const tn_loading *loading)
{
    bool takes = module->layer != NULL && module->layer->set_extra_state != NULL;
    size_t prefix = strlen(loading->prefix);
    tn__text key = { 0 };
    tn__text_add(&key, "%s%s", loading->prefix, TN__EXTRA_STATE);
    if (key.failed) {
        tn__text_free(&key);
        return tn_fail(TN_ERR_MEMORY, "loading a state: out of memory for a name");
    }
    tn_status status = TN_OK;
    int64_t found = tn_state_find(loading->state, key.at);
    if (takes && found >= 0)
        status = step(l, module, key.at, prefix, tn_state_value(loading->state, found));
    else if (takes)
        status = tn_names_add(loading->missing, key.at);
    else if (found >= 0 && !has_slot(module, TN__EXTRA_STATE) &&
             !tn__state_was_read(loading->state, found))
        status = tn_names_add(loading->unexpected, key.at);
    tn__text_free(&key);
    return status;
}

/* ---- unexpected names, and the names of the children ----------------------------------------- */

/* Finds the child to which each entry of a part belongs: child_of[i] is the index of the child, -1
 * if there is none. Adds the names for which the module has neither slot nor child to
 * `unexpected`. */
static tn_status sort_out(tn_module *module, const struct part *part, size_t prefix,
                          tn_names *unexpected, int32_t *child_of)
{
    tn__name_table names = { 0 };
    tn_status status = TN_OK;
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++)
        if (tn__name_table_add(&names, module->children.at[i].name) < 0)
            status = tn_error_last_code();
    for (int64_t i = 0; i < part->count && status == TN_OK; i++) {
        const char *key = tn_state_name(part->state, part->at[i]), *rest = key + prefix;
        const char *dot = strchr(rest, '.');
        child_of[i] = dot != NULL ? (int32_t)tn__name_table_find(&names, rest, (size_t)(dot - rest))
                                  : -1;
        bool known = dot != NULL ? child_of[i] >= 0
                                 : strcmp(rest, TN__EXTRA_STATE) == 0 || has_slot(module, rest);
        if (!known && !tn__state_was_read(part->state, part->at[i]))
            status = tn_names_add(unexpected, key);
    }
    tn__name_table_free(&names);
    return status;
}

/* Sorts the entries of a part by child. The entries of child c are sorted[first[c]] to
 * sorted[first[c + 1] - 1]. */
static void gather(const struct part *part, const int32_t *child_of, int64_t children,
                   int64_t *first, int64_t *sorted)
{
    for (int64_t c = 0; c <= children; c++)
        first[c] = 0;
    for (int64_t i = 0; i < part->count; i++)
        if (child_of[i] >= 0)
            first[child_of[i] + 1]++;
    for (int64_t c = 0; c < children; c++)
        first[c + 1] += first[c];
    for (int64_t i = 0; i < part->count; i++)
        if (child_of[i] >= 0)
            sorted[first[child_of[i]]++] = part->at[i];
    for (int64_t c = children; c > 0; c--)
        first[c] = first[c - 1];
    first[0] = 0;
}

/* Finds the entries of a state whose names begin with the prefix. */
static tn_status part_of(tn_state *state, const char *prefix, struct part *part)
{
    int64_t count = tn_state_count(state);
    size_t length = strlen(prefix);
    *part = (struct part){ state, tn_malloc(((size_t)count + 1) * sizeof *part->at), 0 };
    if (part->at == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        if (strncmp(tn_state_name(state, i), prefix, length) == 0)
            part->at[part->count++] = i;
    return TN_OK;
}

/* Returns a new state with the entries of a part, which hooks and layers may change. */
static tn_state *copy_of(const struct part *part)
{
    tn_state *state = tn_state_new();
    tn_status status = state != NULL ? TN_OK : TN_ERR_MEMORY;
    for (int64_t i = 0; i < part->count && status == TN_OK; i++) {
        int64_t from = part->at[i];
        status = tn_state_set_value(state, tn_state_name(part->state, from),
                                    tn_state_value(part->state, from));
        if (status == TN_OK && tn__state_was_read(part->state, from))
            tn__state_mark_read(state, i); /* a load_state of an ancestor has read it */
    }
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static tn_status load_tree(struct loader *l, tn_module *module, const struct part *part,
                           const char *prefix, int depth);

static tn_status load_children(struct loader *l, tn_module *module, const struct part *part,
                               const char *prefix, const int64_t *first, const int64_t *sorted,
                               int64_t children, int depth)
{
    tn_status status = TN_OK;
    tn__text path = { 0 };
    size_t length = strlen(prefix);
    tn__text_put(&path, prefix, length);
    for (int64_t c = 0; c < children && c < module->children.count && status == TN_OK; c++) {
        const tn__slot *slot = &module->children.at[c];
        if (slot->child == NULL)
            continue;
        struct part below = { part->state, (int64_t *)sorted + first[c], first[c + 1] - first[c] };
        path.length = length;
        tn__text_put(&path, slot->name, strlen(slot->name));
        tn__text_put(&path, ".", 1);
        tn_module *child = tn_module_keep(slot->child); /* a hook may remove it from the tree */
        status = path.failed ? tn_fail(TN_ERR_MEMORY, "loading a state: out of memory for the path "
                                                      "of a module")
                             : load_tree(l, child, &below, path.at, depth + 1);
        tn_module_drop(child);
    }
    tn__text_free(&path);
    return status;
}

/* Lists unexpected names, then loads the children from their entries. */
static tn_status load_below(struct loader *l, tn_module *module, const struct part *part,
                            const char *prefix, int depth)
{
    int64_t children = module->children.count;
    int32_t *child_of = tn_malloc(((size_t)part->count + 1) * sizeof *child_of);
    int64_t *first = tn_malloc(((size_t)children + 1) * sizeof *first);
    int64_t *sorted = tn_malloc(((size_t)part->count + 1) * sizeof *sorted);
    tn_status status = TN_ERR_MEMORY;
    if (child_of != NULL && first != NULL && sorted != NULL)
        status = sort_out(module, part, strlen(prefix), &l->report->unexpected, child_of);
    if (status == TN_OK) {
        gather(part, child_of, children, first, sorted);
        status = load_children(l, module, part, prefix, first, sorted, children, depth);
    }
    tn_free(child_of);
    tn_free(first);
    tn_free(sorted);
    return status;
}

/* Gets the version that the state has for the module. The path of the module is the prefix without
 * the dot at its end. */
static tn_status version_of(const tn_state *root, const char *prefix, int64_t *version)
{
    size_t length = strlen(prefix);
    char *path = tn_strdup(prefix);
    if (path == NULL)
        return TN_ERR_MEMORY;
    if (length > 0)
        path[length - 1] = '\0';
    *version = tn_state_version(root, path);
    tn_free(path);
    return TN_OK;
}

static tn_status load_own(tn_module *module, tn_loading *loading)
{
    if (module->layer == NULL || module->layer->load_state == NULL)
        return tn_module_load_own(module, loading);
    const char *plugin = tn__module_enter(module);
    uint64_t scope = tn_scope_begin();
    tn_state *state = loading->state;
    tn__state_watch(state, true);
    tn_status status = tn__error_status_of(module->layer->load_state(module, loading),
                                           module->type);
    tn__state_watch(state, false);
    tn_scope_end(scope);
    tn__error_plugin_back(plugin);
    return status;
}

/* Loads a module and the modules below it. If hooks or the layer may change the state, they get a
 * copy, from which this module and the modules below are loaded. */
static tn_status load_tree(struct loader *l, tn_module *module, const struct part *part,
                           const char *prefix, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    bool changes = (module->layer != NULL && module->layer->load_state != NULL) ||
                   tn__has_hooks(module, TN__HOOK_LOAD_PRE) || tn__module_up.renames(module);
    tn_state *copy = changes ? copy_of(part) : NULL;
    if (changes && copy == NULL)
        return tn_error_last_code();
    tn_loading loading = {
        TN_HEAD(tn_loading),
        .state = copy != NULL ? copy : part->state,
        .prefix = prefix,
        .flags = l->flags | TN_LOAD_STRICT,
        .missing = &l->report->missing,
        .unexpected = &l->report->unexpected,
        .errors = &l->errors,
        .host = l,
    };
    tn_status status = version_of(l->root, prefix, &loading.version);
    if (status == TN_OK)
        status = tn__state_hooks_run_load(module, TN__HOOK_LOAD_PRE, &loading, NULL);
    if (status == TN_OK)
        status = tn__module_up.rename(module, &loading);
    if (status == TN_OK)
        status = load_own(module, &loading);
    if (status == TN_OK)
        status = load_extra_state(l, module, &loading);
    if (status == TN_OK && copy != NULL) {
        struct part changed;
        status = part_of(copy, prefix, &changed);
        if (status == TN_OK)
            status = load_below(l, module, &changed, prefix, depth);
        tn_free(changed.at);
    } else if (status == TN_OK) {
        status = load_below(l, module, part, prefix, depth);
    }
    tn_state_drop(copy);
    return status == TN_OK ? tn__state_hooks_run_load(module, TN__HOOK_LOAD, NULL, l->report)
                           : status;
}

/* ---- all modules, and the errors at the end -------------------------------------------------- */

static tn_status judge(struct loader *l, const tn_module *module)
{
    bool strict = (l->flags & TN_LOAD_STRICT) != 0;
    tn_load_report *report = l->report;
    tn__load_ties_settle(&l->ties, &report->missing);
    tn__load_report_free_names(&report->errors);
    report->errors = l->errors;
    l->errors = (tn_names){ 0 };
    if (report->errors.count == 0 &&
        (!strict || report->missing.count + report->unexpected.count == 0))
        return TN_OK;
    return tn__load_report_fail(report, module->type, strict);
}

static tn_status load_all(struct loader *l, tn_module *module)
{
    struct part part;
    tn_status status = part_of((tn_state *)l->root, "", &part); /* only copies of it are changed */
    if (status == TN_OK)
        status = load_tree(l, module, &part, "", 0);
    tn_free(part.at);
    if (status == TN_OK)
        status = judge(l, module);
    if (l->later && status == TN_OK) {
        for (int64_t i = 0; i < l->count && status == TN_OK; i++)
            status = do_step(l, l->steps[i].module, l->steps[i].key,
                             l->steps[i].key + l->steps[i].name, l->steps[i].value);
        if (status == TN_OK)
            status = judge(l, module);
    }
    for (int64_t i = 0; i < l->count; i++) {
        tn_module_drop(l->steps[i].module);
        tn__value_free(&l->steps[i].value, l->steps[i].block);
        tn_free(l->steps[i].key);
    }
    tn_free(l->steps);
    tn__load_ties_free(&l->ties);
    tn__load_taken_free(&l->taken);
    tn__load_report_free_names(&l->errors);
    return status;
}

tn_status tn_module_load_report(tn_module *module, const tn_state *state, uint32_t flags,
                                tn_load_report *report)
{
    const uint32_t known = TN_LOAD_STRICT | TN_LOAD_ASSIGN | TN_LOAD_WHOLE | TN_LOAD_TAKE;
    if (module == NULL)
        return tn_error_null("loading a state: module");
    if (state == NULL)
        return tn_failed() ? tn_error_code()
                           : tn_fail(TN_ERR_TYPE, "Expected state_dict to be dict-like, got NULL.");
    if ((flags & ~known) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "loading a state: flags: unknown, got 0x%x; expected TN_LOAD_*",
                       flags & ~known);
    if ((flags & TN_LOAD_ASSIGN) != 0 && (flags & TN_LOAD_TAKE) != 0)
        return tn_fail(TN_ERR_VALUE, "loading a state: flags: TN_LOAD_ASSIGN and TN_LOAD_TAKE; "
                                     "expected one of them");
    tn_load_report own = { 0 };
    struct loader l = { .root = state,
                        .report = report != NULL ? report : &own,
                        .flags = flags,
                        .later = (flags & TN_LOAD_WHOLE) != 0 };
    tn_names_clear(&l.report->missing);
    tn_names_clear(&l.report->unexpected);
    tn_names_clear(&l.report->errors);
    tn_status status = tn__lazy_load(module, state);
    if (status == TN_OK)
        status = load_all(&l, module);
    tn__module_changed(NULL);
    tn__load_report_free_names(&own.missing);
    tn__load_report_free_names(&own.unexpected);
    tn__load_report_free_names(&own.errors);
    return status;
}

tn_status tn_module_load_state(tn_module *module, const tn_state *state, bool strict)
{
    return tn_module_load_report(module, state, strict ? TN_LOAD_STRICT : 0, NULL);
}
