/* SPDX-License-Identifier: MIT
 *
 * The registry of operators. Readers use immutable snapshots and take no lock. A snapshot that was
 * replaced is kept until tn_shutdown, because another thread may still be reading it. */
#include "core/op/private.h"

typedef struct snapshot {
    struct snapshot *older;
    int64_t count;   /* operators, sorted by name and then by revision */
    int64_t n_names; /* number of different names */
    const char **names;
    tn_op *at[];
} snapshot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(snapshot *) operators;

static int compare(const tn_op *op, const char *name, uint32_t revision)
{
    int order = strcmp(op->def.name, name);

    if (order != 0)
        return order;
    return op->def.revision < revision ? -1 : op->def.revision > revision;
}

/* Returns the place of the first operator that does not come before (name, revision). */
static int64_t lower_bound(const snapshot *all, const char *name, uint32_t revision)
{
    int64_t low = 0, high = all->count;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (compare(all->at[middle], name, revision) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tn_op *find(const snapshot *all, const char *name, uint32_t revision)
{
    int64_t at;

    if (all == NULL)
        return NULL;
    if (revision == 0) { /* the newest revision: the last of that name */
        at = lower_bound(all, name, UINT32_MAX);
        return at > 0 && strcmp(all->at[at - 1]->def.name, name) == 0 ? all->at[at - 1] : NULL;
    }
    at = lower_bound(all, name, revision);
    return at < all->count && compare(all->at[at], name, revision) == 0 ? all->at[at] : NULL;
}

static snapshot *snapshot_with(const snapshot *old, tn_op *op)
{
    int64_t count = old != NULL ? old->count : 0;
    size_t size = sizeof(snapshot) + (size_t)(count + 1) * (sizeof(tn_op *) + sizeof(char *));
    snapshot *new = tn_malloc(size);
    int64_t at;

    if (new == NULL)
        return NULL;
    at = old != NULL ? lower_bound(old, op->def.name, op->def.revision) : 0;
    new->older = (snapshot *)(uintptr_t)old;
    new->count = count + 1;
    for (int64_t i = 0; i < at; i++)
        new->at[i] = old->at[i];
    new->at[at] = op;
    for (int64_t i = at; i < count; i++)
        new->at[i + 1] = old->at[i];
    new->names = (const char **)&new->at[count + 1];
    new->n_names = 0;
    for (int64_t i = 0; i <= count; i++)
        if (i == 0 || strcmp(new->at[i]->def.name, new->at[i - 1]->def.name) != 0)
            new->names[new->n_names++] = new->at[i]->def.name;
    return new;
}

tn_status tn__op_add(const tn_op_def *def, tn__plugin *plugin)
{
    size_t size = def->head.size < sizeof *def ? def->head.size : sizeof *def;
    tn_op *op = tn_calloc(1, sizeof *op);
    const tn_op *taken;
    snapshot *new;
    tn_status status;

    if (op == NULL)
        return tn_error_last_code();
    memcpy(&op->def, def, size);
    op->def.head.size = sizeof op->def;
    op->plugin = plugin;
    op->id = plugin != NULL ? plugin->id : "";
    if (op->def.options == NULL)
        op->def.defaults = NULL;
    status = tn__definition_check(&op->def);
    if (status != TN_OK)
        goto fail;
    op->flags = op->def.flags;
    for (int32_t i = 0; i < op->def.n_inputs; i++) {
        op->newest = tn__op_later(op->newest, tn__operand_since(&op->def.inputs[i]));
        if (op->def.inputs[i].flags & TN_OPERAND_WRITTEN)
            op->flags |= TN__OP_WRITES;
        if (op->def.inputs[i].flags & TN_OPERAND_UPDATED)
            op->flags |= TN__OP_UPDATES;
        if ((op->def.inputs[i].flags & TN_OPERAND_LIST) == 0)
            continue;
        op->flags |= TN__OP_LIST;
        if (i + 1 < op->def.n_inputs) {
            status = tn_fail(TN_ERR_VALUE,
                             "operator %q: inputs: %s is a list before the last input; "
                             "expected a list only as the last input",
                             op->def.name, op->def.inputs[i].name);
            goto fail;
        }
    }
    for (int32_t i = 0; i < op->def.n_outputs; i++)
        op->newest = tn__op_later(op->newest, tn__operand_since(&op->def.outputs[i]));
    for (const tn_option *row = op->def.options; row != NULL && row->kind != TN_OPTION_KIND_END;
         row++) {
        op->newest = tn__op_later(op->newest, row->since);
        op->needs_options |= (row->flags & TN_OPTION_REQUIRED) != 0;
        op->points |= row->kind == TN_OPTION_KIND_STRING || row->kind == TN_OPTION_KIND_INTS ||
                      row->kind == TN_OPTION_KIND_FLOATS;
        if (row->kind == TN_OPTION_KIND_DTYPE)
            op->dtype_option = row;
    }

    pthread_mutex_lock(&lock);
    taken = find(atomic_load_explicit(&operators, memory_order_relaxed), op->def.name,
                 op->def.revision);
    if (taken != NULL) {
        pthread_mutex_unlock(&lock);
        status = tn_fail(TN_ERR_REFUSED,
                         "operator %q: revision %u: already defined by %s; %s is refused",
                         op->def.name, op->def.revision, tn__plugin_file(taken->plugin),
                         tn__plugin_file(plugin));
        goto fail;
    }
    new = snapshot_with(atomic_load_explicit(&operators, memory_order_relaxed), op);
    if (new == NULL) {
        pthread_mutex_unlock(&lock);
        status = TN_ERR_MEMORY;
        goto fail;
    }
    op->ordinal = (int32_t) new->count - 1;
    atomic_store_explicit(&operators, new, memory_order_release);
    pthread_mutex_unlock(&lock);
    return TN_OK;
fail:
    tn_free(op);
    return status;
}

/* Operators and kernels stay, because objects and the variables of wrappers refer to them. */
void tn__op_registry_shutdown(void)
{
    snapshot *now = atomic_load_explicit(&operators, memory_order_acquire);
    snapshot *old = now != NULL ? now->older : NULL;

    pthread_mutex_lock(&lock);
    while (old != NULL) {
        snapshot *next = old->older;

        tn_free(old);
        old = next;
    }
    if (now != NULL)
        now->older = NULL;
    for (int64_t i = 0; now != NULL && i < now->count; i++)
        for (int k = 0; k < TN__MAX_DEVICE_TYPES; k++)
            atomic_store_explicit(&now->at[i]->kernels[k], NULL, memory_order_release);
    pthread_mutex_unlock(&lock);
    tn__kernel_lists_free();
}

/* ---- looking up ----------------------------------------------------------------- */

tn_op *tn__op_known(const char *name, uint32_t revision)
{
    return find(atomic_load_explicit(&operators, memory_order_acquire), name, revision);
}

const char *tn__op_nearest(const char *name)
{
    const snapshot *all = atomic_load_explicit(&operators, memory_order_acquire);

    return all != NULL ? tn__name_nearest(name, all->names, all->n_names) : NULL;
}

const tn_op *tn_op_find(const char *name, uint32_t revision)
{
    const snapshot *all;
    const char *nearest;
    const tn_op *op;

    if (!tn__given(name != NULL, "tn_op_find: name") || tn__plugins_discover() != TN_OK)
        return NULL;
    all = atomic_load_explicit(&operators, memory_order_acquire);
    op = find(all, name, revision);
    if (op != NULL)
        return op->plugin == NULL || tn__plugin_use(op->plugin) == TN_OK ? op : NULL;
    if (all == NULL) {
        tn__text why = { 0 };
        tn__plugins_explain_none(&why);
        tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "operator %q: no plugin that defines operators was found; `tenon plugins` lists the "
            "files, TENON_PLUGIN_PATH the folders to search%s",
            name, why.at && !why.failed ? why.at : "");
        tn__text_free(&why);
        return NULL;
    }
    op = find(all, name, 0);
    if (op != NULL) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED, "operator %q: no revision %u; the newest is %u", name,
                revision, op->def.revision);
        return NULL;
    }
    nearest = tn__name_nearest(name, all->names, all->n_names);
    if (nearest != NULL)
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "operator %q: no loaded plugin defines it; did you mean %q?", name, nearest);
    else
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "operator %q: no loaded plugin defines it; `tenon ops` lists all %lld", name,
                (long long)all->n_names);
    return NULL;
}

const tn_op *tn_op_lookup(tn_op_ref *ref)
{
    if (!tn__given(ref != NULL, "tn_op_lookup: ref"))
        return NULL;
    const tn_op *op = __atomic_load_n(&ref->op, __ATOMIC_ACQUIRE);

    if (tn__likely(op != NULL))
        return op;
    op = tn_op_find(ref->name, ref->revision);
    if (op != NULL)
        __atomic_store_n(&ref->op, op, __ATOMIC_RELEASE);
    return op;
}

int64_t tn_op_count(void)
{
    const snapshot *all;

    if (tn__plugins_discover() != TN_OK)
        return -1;
    all = atomic_load_explicit(&operators, memory_order_acquire);
    return all != NULL ? all->n_names : 0;
}

const char *tn_op_name_at(int64_t index)
{
    const snapshot *all;

    if (tn__plugins_discover() != TN_OK)
        return NULL;
    all = atomic_load_explicit(&operators, memory_order_acquire);
    if (all == NULL || index < 0 || index >= all->n_names) {
        tn__error_index(index, all != NULL ? all->n_names : 0, "operators: index: ");
        return NULL;
    }
    return all->names[index];
}

const tn_op_def *tn_op_definition(const tn_op *op)
{
    return tn__given(op != NULL, "tn_op_definition: op") ? &op->def : NULL;
}

static int64_t route_kernel(const tn_op *op, const tn__kernel_entry *entry, char *out, size_t size)
{
    char less[160];
    bool limited = tn__op_uses_newer(op, entry->knows, UINT32_MAX, NULL, less, sizeof less);

    return tn_snprint(out, size, "kernel %s (%s)%s%s", entry->kernel.name,
                      tn__plugin_file(entry->plugin), limited ? "; " : "", limited ? less : "");
}

int64_t tn_op_route(const tn_op *op, const char *device_type, tn_dtype dtype, char *out,
                    size_t size)
{
    const tn__device_type *type;
    const struct tn__kernel_list *list;

    if (!tn__given(op != NULL, "tn_op_route: op") ||
        !tn__given(device_type != NULL, "tn_op_route: device_type") ||
        tn__plugins_discover() != TN_OK)
        return -1;
    type = tn__device_type_find(device_type);
    if (type == NULL) {
        tn_fail(TN_ERR_KEY,
                "device type %q: no loaded plugin provides it; `tenon devices` lists all",
                device_type);
        return -1;
    }
    if (op->def.flags & TN_OP_VIEW)
        return tn_snprint(out, size, "view");
    list = tn__kernels_of(op, type);
    if (list == NULL)
        return -1;
    for (int32_t i = 0; i < list->count; i++)
        if ((unsigned)dtype < TN_DTYPE_COUNT && (list->at[i]->kernel.dtypes & TN_BIT(dtype)) &&
            (list->at[i]->kernel.flags & TN_KERNEL_DECOMPOSE) == 0)
            return route_kernel(op, list->at[i], out, size);
    if ((unsigned)dtype < TN_DTYPE_COUNT && tn__is_decomposed(op, dtype))
        return tn_snprint(out, size, "decomposition");
    if (type->backend.flags & TN_BACKEND_NO_MEMORY)
        return tn_snprint(out, size, "shapes only");
    return tn_snprint(out, size, "missing");
}
