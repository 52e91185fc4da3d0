/* SPDX-License-Identifier: MIT
 *
 * Walks over a tree of modules. A walk first collects everything that it will visit, with
 * references. Therefore a visitor may change the tree: the walk visits the tree as it was at the
 * start. */
#include "core/base/vector.h"
#include "core/module/depth.h"

/* ---- a set of modules ------------------------------------------------------------------------ */

struct tn_memo {
    tn__map seen;
};

tn_memo *tn_memo_new(void)
{
    return tn_calloc(1, sizeof(tn_memo));
}

void tn_memo_drop(tn_memo *memo)
{
    if (memo != NULL)
        tn__map_free(&memo->seen);
    tn_free(memo);
}

tn_status tn_memo_add(tn_memo *memo, const tn_module *module)
{
    if (memo == NULL || module == NULL)
        return tn__error_null_of("tn_memo_add", "memo, module", memo, module);
    return tn__map_add(&memo->seen, module) >= 0 ? TN_OK : TN_ERR_MEMORY;
}

bool tn_memo_has(const tn_memo *memo, const tn_module *module)
{
    return tn__not_null(memo, "tn_memo_has: memo") && tn__not_null(module, "tn_memo_has: module") &&
           tn__map_value(&memo->seen, module) != NULL;
}

/* ---- collecting ------------------------------------------------------------------------------ */

struct collector {
    tn__walk *walk;
    uint32_t kinds;
    bool duplicates, direct;
    tn__map *modules; /* the caller's memo, or `own` */
    tn__map own, tensors;
    tn__text path;
};

/* Appends a module, or a tensor of the module, to the walk. Its path is the current path plus
 * `name`. */
static tn_status met(struct collector *c, const char *name, tn_module *module, tn_tensor *tensor,
                     uint32_t kind, uint32_t flags)
{
    tn__walk *walk = c->walk;
    if (!tn__vector_room(&walk->at, &walk->capacity, walk->count + 1, sizeof *walk->at))
        return TN_ERR_MEMORY;
    size_t prefix = c->path.length, size = strlen(name);
    char *path = tn_malloc(prefix + size + 2);
    if (path == NULL)
        return TN_ERR_MEMORY;
    memcpy(path, c->path.at != NULL ? c->path.at : "", prefix);
    size_t length = prefix;
    if (prefix > 0 && size > 0)
        path[length++] = '.';
    memcpy(path + length, name, size + 1);
    walk->at[walk->count++] = (tn__met){
        .path = path,
        .module = tn_module_keep(module),
        .tensor = tensor != NULL ? tn_tensor_keep(tensor) : NULL,
        .kind = kind,
        .flags = flags & TN__SLOT_PUBLIC,
    };
    return TN_OK;
}

static tn_status meet_tensors(struct collector *c, tn_module *module, const tn__slots *slots,
                              uint32_t kind)
{
    if ((c->kinds & kind) == 0)
        return TN_OK;
    for (int64_t i = 0; i < slots->count; i++) {
        tn_tensor *tensor = slots->at[i].tensor;
        if (tn__is_none(tensor))
            continue;
        int is_new = c->duplicates ? 1 : tn__map_add(&c->tensors, tensor);
        if (is_new < 0)
            return TN_ERR_MEMORY;
        if (is_new == 0)
            continue;
        tn_status status = met(c, slots->at[i].name, module, tensor, kind, slots->at[i].flags);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status meet_own_tensors(struct collector *c, tn_module *module)
{
    tn_status status = meet_tensors(c, module, &module->parameters, TN_SLOT_PARAMETER);
    return status == TN_OK ? meet_tensors(c, module, &module->buffers, TN_SLOT_BUFFER) : status;
}

/* Returns 1 if the module must be visited, 0 if not, -1 if memory runs out. */
static int is_due(struct collector *c, const tn_module *module)
{
    if (c->duplicates)
        return tn__map_value(c->modules, module) == NULL;
    return tn__map_add(c->modules, module);
}

static tn_status collect(struct collector *c, tn_module *module, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    int due = is_due(c, module);
    if (due <= 0)
        return due == 0 ? TN_OK : TN_ERR_MEMORY;
    tn_status status = TN_OK;
    if ((c->kinds & TN_SLOT_CHILD) != 0)
        status = met(c, "", module, NULL, TN_SLOT_CHILD, 0);
    if (status == TN_OK)
        status = meet_own_tensors(c, module);
    size_t length = c->path.length;
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++) {
        const tn__slot *slot = &module->children.at[i];
        if (slot->child == NULL)
            continue;
        if (length > 0)
            tn__text_put(&c->path, ".", 1);
        tn__text_put(&c->path, slot->name, strlen(slot->name));
        if (c->path.failed)
            return tn_fail(TN_ERR_MEMORY, "module: out of memory for its path");
        status = collect(c, slot->child, depth + 1);
        c->path.length = length;
    }
    return status;
}

/* Collects the tensors and the children of the module itself. */
static tn_status collect_direct(struct collector *c, tn_module *module)
{
    tn_status status = meet_own_tensors(c, module);
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++) {
        const tn__slot *slot = &module->children.at[i];
        int due = slot->child != NULL && (c->kinds & TN_SLOT_CHILD) != 0 ? is_due(c, slot->child)
                                                                         : 0;
        if (due < 0)
            return TN_ERR_MEMORY;
        if (due > 0)
            status = met(c, slot->name, slot->child, NULL, TN_SLOT_CHILD, 0);
    }
    return status;
}

tn_status tn__walk_with(tn_module *module, uint32_t kinds, const tn_walk_options *options,
                        tn__walk *walk)
{
    const uint32_t known = TN_WALK_DUPLICATES | TN_WALK_DIRECT;
    struct collector c = { .walk = walk, .kinds = kinds };
    c.modules = &c.own;
    if (options != NULL && options->size < sizeof *options)
        return tn_fail(TN_ERR_VALUE,
                       "tn_walk_options: size: too small, got %u; expected at least %u, "
                       "sizeof(tn_walk_options)",
                       options->size, (unsigned)sizeof *options);
    if (options != NULL) {
        if ((options->flags & ~known) != 0)
            return tn_fail(TN_ERR_VALUE,
                           "tn_walk_options: flags: unknown, got 0x%x; expected TN_WALK_*",
                           options->flags & ~known);
        c.duplicates = (options->flags & TN_WALK_DUPLICATES) != 0;
        c.direct = (options->flags & TN_WALK_DIRECT) != 0;
        if (options->memo != NULL)
            c.modules = &options->memo->seen;
        if (options->prefix != NULL)
            tn__text_put(&c.path, options->prefix, strlen(options->prefix));
        if (c.path.failed)
            return tn_fail(TN_ERR_MEMORY, "tn_walk_options: prefix: out of memory");
    }
    tn_status status = c.direct ? collect_direct(&c, module) : collect(&c, module, 0);
    tn__map_free(&c.own);
    tn__map_free(&c.tensors);
    tn__text_free(&c.path);
    if (status != TN_OK)
        tn__walk_free(walk);
    return status;
}

tn_status tn__walk_collect(tn_module *module, uint32_t kinds, bool duplicates, tn__walk *walk)
{
    tn_walk_options options = { sizeof options, duplicates ? TN_WALK_DUPLICATES : 0, NULL, NULL };
    return tn__walk_with(module, kinds, &options, walk);
}

void tn__walk_free(tn__walk *walk)
{
    for (int64_t i = 0; i < walk->count; i++) {
        tn_free(walk->at[i].path);
        tn_module_drop(walk->at[i].module);
        tn_tensor_drop(walk->at[i].tensor);
    }
    tn_free(walk->at);
    *walk = (tn__walk){ NULL, 0, 0 };
}

/* ---- public walks ---------------------------------------------------------------------------- */

/* Returns what a visitor returned, with a message if that is a failure. */
static tn_status visited(tn_status status, uint64_t failures, const char *who)
{
    char what[64];

    if (tn__likely(status == TN_OK))
        return TN_OK;
    tn_snprint(what, sizeof what, "%s: visit", who);
    return tn_error_returned(status, failures, what);
}

tn_status tn_module_each_tensor(tn_module *module, uint32_t kinds, bool duplicates,
                                tn_status (*visit)(void *user, const char *path, tn_tensor *tensor),
                                void *user)
{
    if (module == NULL)
        return tn_error_null("tn_module_each_tensor: module");
    if (!tn__given(visit != NULL, "tn_module_each_tensor: visit"))
        return TN_ERR_VALUE;
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(module, kinds & (TN_SLOT_PARAMETER | TN_SLOT_BUFFER),
                                        duplicates, &walk);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++) {
        uint64_t failures = tn_error_mark();
        status = visited(visit(user, walk.at[i].path, walk.at[i].tensor), failures,
                         "tn_module_each_tensor");
    }
    tn__walk_free(&walk);
    return status;
}

tn_status tn_module_each(tn_module *module, bool duplicates,
                         tn_status (*visit)(void *user, const char *path, tn_module *module),
                         void *user)
{
    if (module == NULL)
        return tn_error_null("tn_module_each: module");
    if (!tn__given(visit != NULL, "tn_module_each: visit"))
        return TN_ERR_VALUE;
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(module, TN_SLOT_CHILD, duplicates, &walk);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++) {
        uint64_t failures = tn_error_mark();
        status = visited(visit(user, walk.at[i].path, walk.at[i].module), failures,
                         "tn_module_each");
    }
    tn__walk_free(&walk);
    return status;
}

tn_status tn_module_walk(tn_module *module, uint32_t kinds, const tn_walk_options *options,
                         tn_status (*visit)(void *user, const tn_visit *what), void *user)
{
    if (module == NULL || visit == NULL)
        return tn__error_null_of("tn_module_walk", "module, visit", module, visit);
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_with(module, kinds, options, &walk);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++) {
        const tn__met *met = &walk.at[i];
        const tn_visit what = { met->path, met->module, met->tensor, met->kind, met->flags };
        uint64_t failures = tn_error_mark();
        status = visited(visit(user, &what), failures, "tn_module_walk");
    }
    tn__walk_free(&walk);
    return status;
}

struct tn_walk {
    tn__walk met;
    int64_t next;
    tn_visit now;
};

tn_walk *tn_walk_begin(tn_module *module, uint32_t kinds, const tn_walk_options *options)
{
    tn_walk *walk;

    if (module == NULL) {
        tn_error_null("tn_walk_begin: module");
        return NULL;
    }
    walk = tn_calloc(1, sizeof *walk);
    if (walk != NULL && tn__walk_with(module, kinds, options, &walk->met) != TN_OK) {
        tn_free(walk);
        return NULL;
    }
    return walk;
}

const tn_visit *tn_walk_next(tn_walk *walk)
{
    const tn__met *met;

    if (walk == NULL || walk->next == walk->met.count)
        return NULL;
    met = &walk->met.at[walk->next++];
    walk->now = (tn_visit){ met->path, met->module, met->tensor, met->kind, met->flags };
    return &walk->now;
}

void tn_walk_end(tn_walk *walk)
{
    if (walk == NULL)
        return;
    tn__walk_free(&walk->met);
    tn_free(walk);
}

bool tn__walk_child_is_first(const tn_module *module, int64_t index)
{
    const tn_module *child = module->children.at[index].child;
    if (child != NULL && atomic_load(&child->holders) == 1)
        return true;
    for (int64_t i = 0; i < index; i++)
        if (module->children.at[i].child == child)
            return false;
    return true;
}

/* Modules in the order of tn_module_apply. The row owns references to them. */
struct row {
    tn_module **at;
    int64_t count, capacity;
};

static tn_status collect_after(tn_module *module, struct row *row, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    for (int64_t i = 0; i < module->children.count; i++) {
        tn_module *child = module->children.at[i].child;
        if (child == NULL || !tn__walk_child_is_first(module, i))
            continue;
        tn_status status = collect_after(child, row, depth + 1);
        if (status != TN_OK)
            return status;
    }
    if (!tn__vector_room(&row->at, &row->capacity, row->count + 1, sizeof(tn_module *)))
        return TN_ERR_MEMORY;
    row->at[row->count++] = tn_module_keep(module);
    return TN_OK;
}

tn_status tn_module_apply(tn_module *module, tn_status (*visit)(void *user, tn_module *module),
                          void *user)
{
    if (module == NULL || visit == NULL)
        return tn__error_null_of("tn_module_apply", "module, visit", module, visit);
    struct row row = { NULL, 0, 0 };
    tn_status status = collect_after(module, &row, 0);
    for (int64_t i = 0; i < row.count && status == TN_OK; i++) {
        uint64_t failures = tn_error_mark();
        status = visited(visit(user, row.at[i]), failures, "tn_module_apply");
    }
    for (int64_t i = 0; i < row.count; i++)
        tn_module_drop(row.at[i]);
    tn_free(row.at);
    return status;
}

static tn_status add_count(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    *(int64_t *)user += tn_tensor_numel(tensor);
    return TN_OK;
}

int64_t tn_module_parameter_count(tn_module *module)
{
    int64_t count = 0;
    tn_status status = tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, add_count, &count);
    return status == TN_OK ? count : -1;
}
