/* SPDX-License-Identifier: MIT
 *
 * The registry of operators and kernels. Readers use immutable snapshots and take no lock. A
 * snapshot that was replaced is kept until tn_shutdown, because another thread may still be reading
 * it. */
#include "core/base/vector.h"
#include "core/op/private.h"

static const char unnamed[] = "(unnamed)"; /* a kernel whose descriptor has no name */

typedef struct snapshot {
    struct snapshot *older;
    int64_t count;   /* operators, sorted by name and then by revision */
    int64_t n_names; /* number of different names */
    const char **names;
    tn_op *at[];
} snapshot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(snapshot *) operators;
static tn__kernel_entry **kernels; /* protected by the lock, in the order of registration */
static int64_t n_kernels, kernel_capacity;
static struct tn__kernel_list *lists; /* protected by the lock: all lists that were ever built */

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
    for (const tn_option *row = op->def.options; row != NULL && row->kind != TN_OPTION_KIND_END;
         row++) {
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

/* ---- kernels -------------------------------------------------------------------- */

/* Returns whether a kernel comes from the plugin of its device. */
static bool is_own(const tn__kernel_entry *entry)
{
    const tn__device_type *type = tn__device_type_find(entry->kernel.device);

    return type != NULL && type->plugin == entry->plugin;
}

/* Which of two kernels must be refused because both serve the same operator, device and dtype: the
 * first (-1), the second (1) or neither (0). The kernel of the device's own plugin is never
 * refused; a kernel of another plugin may be asked before it only with TN_KERNEL_OVERRIDE. */
static int loser(const tn__kernel_entry *a, const tn__kernel_entry *b)
{
    if (a->kernel.revision != b->kernel.revision || (a->kernel.dtypes & b->kernel.dtypes) == 0 ||
        strcmp(a->kernel.op, b->kernel.op) != 0 || strcmp(a->kernel.device, b->kernel.device) != 0)
        return 0;
    if (a->kernel.priority == b->kernel.priority) {
        if (a->plugin == b->plugin) /* both may stay if one of them decides by the call */
            return a->asks || b->asks ? 0 : 1;
        if (is_own(a) || is_own(b))
            return is_own(a) ? 1 : -1;
        return strcmp(tn__plugin_file(a->plugin), tn__plugin_file(b->plugin)) <= 0 ? 1 : -1;
    }
    if (a->plugin == b->plugin)
        return 0;
    if (a->kernel.priority > b->kernel.priority)
        return a->kernel.flags & TN_KERNEL_OVERRIDE || is_own(a) ? 0 : -1;
    return b->kernel.flags & TN_KERNEL_OVERRIDE || is_own(b) ? 0 : 1;
}

static tn_status refuse(const tn__kernel_entry *out, const tn__kernel_entry *kept)
{
    const char *why =
        out->kernel.priority != kept->kernel.priority
            ? "and the refused kernel has a higher priority, but not TN_KERNEL_OVERRIDE"
        : out->plugin == kept->plugin
            ? "by the same plugin with the same priority; expected another priority or dtype"
        : is_own(kept) ? "by the plugin of the device, with the same priority; expected a higher "
                         "priority and TN_KERNEL_OVERRIDE"
                       : "with the same priority, and the first by path is kept";

    return tn_fail(
        TN_ERR_REFUSED, "kernel %s for %s on %s (%s): refused; %s (%s) is registered, %s",
        out->kernel.name, out->kernel.op, out->kernel.device, tn__plugin_file(out->plugin),
        kept->kernel.name, tn__plugin_file(kept->plugin), why);
}

/* Forgets the kernel lists of an operator that gets a new kernel. Readers of an old list continue
 * to use it. */
static void forget_lists(const char *name, uint32_t revision)
{
    tn_op *op = find(atomic_load_explicit(&operators, memory_order_relaxed), name, revision);

    for (int i = 0; op != NULL && i < TN__MAX_DEVICE_TYPES; i++)
        atomic_store_explicit(&op->kernels[i], NULL, memory_order_release);
}

static tn_status add_entry(tn__kernel_entry *entry)
{
    if (!tn__vector_room(&kernels, &kernel_capacity, n_kernels + 1, sizeof *kernels))
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < n_kernels; i++) {
        tn_status status;
        uint64_t mark;

        if (kernels[i]->refused)
            continue;
        switch (loser(kernels[i], entry)) {
        case 1: return refuse(entry, kernels[i]);
        case -1:
            mark = tn_error_mark();
            status = refuse(kernels[i], entry);
            tn_log(TN_LOG_WARNING, "%s", tn_error_last()->message);
            tn_error_restore(mark);
            kernels[i]->refused = status != TN_OK;
            if (kernels[i]->plugin != NULL)
                kernels[i]->plugin->report.refused++;
            break;
        default: break;
        }
    }
    kernels[n_kernels++] = entry;
    forget_lists(entry->kernel.op, entry->kernel.revision);
    return TN_OK;
}

tn_status tn__op_kernel_add(const tn_kernel_def *kernel, tn__plugin *plugin)
{
    size_t size = kernel->head.size < sizeof *kernel ? kernel->head.size : sizeof *kernel;
    const char *missing = kernel->op == NULL       ? "op"
                          : kernel->device == NULL ? "device"
                          : kernel->dtypes == 0    ? "dtypes"
                          : kernel->run == NULL && (kernel->flags & TN_KERNEL_DECOMPOSE) == 0
                              ? "run"
                              : NULL;
    tn__kernel_entry *entry;
    tn_status status;

    if (missing != NULL)
        return tn_fail(TN_ERR_VALUE, "kernel %s (%s): %s: missing; expected op, device, dtypes%s",
                       kernel->name != NULL ? kernel->name : unnamed, tn__plugin_file(plugin),
                       missing,
                       kernel->flags & TN_KERNEL_DECOMPOSE
                           ? ""
                           : " and run (only a kernel with TN_KERNEL_DECOMPOSE has no run)");
    if ((kernel->flags & TN__KERNEL_ORDERS) == TN__KERNEL_ORDERS)
        return tn_fail(
            TN_ERR_VALUE, "kernel %s (%s): flags: both orders of channels, got 0x%x; expected one",
            kernel->name != NULL ? kernel->name : unnamed, tn__plugin_file(plugin), kernel->flags);
    entry = tn_calloc(1, sizeof *entry);
    if (entry == NULL)
        return TN_ERR_MEMORY;
    memcpy(&entry->kernel, kernel, size);
    if (entry->kernel.prepare_key != NULL &&
        (entry->kernel.prepare == NULL || __builtin_popcountll(entry->kernel.weights) != 1)) {
        tn_free(entry);
        return tn_fail(TN_ERR_VALUE,
                       "kernel %s (%s): prepare_key: incomplete; expected `prepare` "
                       "and one bit in `weights` with it",
                       kernel->name != NULL ? kernel->name : unnamed, tn__plugin_file(plugin));
    }
    entry->kernel.head.size = sizeof entry->kernel;
    if (entry->kernel.name == NULL)
        entry->kernel.name = unnamed;
    entry->asks = entry->kernel.supports != NULL || entry->kernel.operand_dtypes != NULL;
    entry->plugin = plugin;
    entry->id = plugin != NULL ? plugin->id : "";
    pthread_mutex_lock(&lock);
    status = add_entry(entry);
    pthread_mutex_unlock(&lock);
    if (status != TN_OK)
        tn_free(entry);
    return status;
}

struct tn__kernel_list *tn__op_kernels_build(const tn_op *op, const tn__device_type *type)
{
    struct tn__kernel_list *list;
    int64_t count = 0;

    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < n_kernels; i++)
        count += !kernels[i]->refused && kernels[i]->kernel.revision == op->def.revision &&
                 strcmp(kernels[i]->kernel.op, op->def.name) == 0 &&
                 strcmp(kernels[i]->kernel.device, type->backend.type) == 0;
    list = tn_malloc(sizeof *list + (size_t)count * sizeof list->at[0]);
    if (list == NULL) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    list->count = 0;
    list->ordered = false;
    for (int64_t i = 0; i < n_kernels; i++) {
        tn__kernel_entry *entry = kernels[i];
        int32_t at = list->count;

        if (entry->refused || entry->kernel.revision != op->def.revision ||
            strcmp(entry->kernel.op, op->def.name) != 0 ||
            strcmp(entry->kernel.device, type->backend.type) != 0)
            continue;
        for (; at > 0 && list->at[at - 1]->kernel.priority < entry->kernel.priority; at--)
            list->at[at] = list->at[at - 1];
        list->at[at] = entry;
        list->count++;
        list->ordered |= (entry->kernel.flags & TN__KERNEL_ORDERS) != 0;
    }
    list->older = lists;
    lists = list;
    atomic_store_explicit(&((tn_op *)(uintptr_t)op)->kernels[type->index], list,
                          memory_order_release);
    pthread_mutex_unlock(&lock);
    return list;
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
    while (lists != NULL) {
        struct tn__kernel_list *next = lists->older;

        tn_free(lists);
        lists = next;
    }
    pthread_mutex_unlock(&lock);
}

/* Returns whether nothing can ever call a kernel; `words` then says why. */
static bool is_idle(const snapshot *all, const tn_kernel_def *kernel, char *words, size_t size)
{
    const char *name = kernel->name, *nearest;
    const tn_op *newest = find(all, kernel->op, 0);

    if (find(all, kernel->op, kernel->revision) != NULL && kernel->revision != 0) {
        if (tn__device_type_find(kernel->device) != NULL)
            return false;
        tn_snprint(words, size, "%s, because no plugin provides the device type %q", name,
                   kernel->device);
    } else if (newest != NULL) {
        tn_snprint(words, size, "%s, because operator %q has no revision %u (the newest is %u)",
                   name, kernel->op, kernel->revision, newest->def.revision);
    } else {
        nearest = all != NULL ? tn__name_nearest(kernel->op, all->names, all->n_names) : NULL;
        tn_snprint(words, size, "%s, because no plugin provides the operator %q%s%s%s", name,
                   kernel->op, nearest != NULL ? " (did you mean \"" : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "\"?)" : "");
    }
    return true;
}

void tn__op_kernels_unused(void (*tell)(tn__plugin *plugin, const char *words))
{
    char words[400];

    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < n_kernels; i++)
        if (!kernels[i]->refused && kernels[i]->plugin != NULL &&
            is_idle(atomic_load_explicit(&operators, memory_order_relaxed), &kernels[i]->kernel,
                    words, sizeof words))
            tell(kernels[i]->plugin, words);
    pthread_mutex_unlock(&lock);
}

/* ---- looking up ----------------------------------------------------------------- */

bool tn__op_is_newest(const tn_op *op)
{
    return find(atomic_load_explicit(&operators, memory_order_acquire), op->def.name, 0) == op;
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
            return tn_snprint(out, size, "kernel %s (%s)", list->at[i]->kernel.name,
                              tn__plugin_file(list->at[i]->plugin));
    if ((unsigned)dtype < TN_DTYPE_COUNT && tn__is_decomposed(op, dtype))
        return tn_snprint(out, size, "decomposition");
    if (type->backend.flags & TN_BACKEND_NO_MEMORY)
        return tn_snprint(out, size, "shapes only");
    return tn_snprint(out, size, "missing");
}

tn_status tn__op_missing(const tn__work *work, tn_dtype dtype, const char *reasons)
{
    const tn_op *op = work->op;
    const char *type = work->device->type->backend.type;
    tn__text text = { 0 };
    tn_status status;
    int64_t found = 0;

    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < n_kernels; i++) {
        const tn_kernel_def *kernel = &kernels[i]->kernel;

        if (kernels[i]->refused || kernel->revision != op->def.revision ||
            strcmp(kernel->op, op->def.name) != 0)
            continue;
        if (++found > 16)
            break;
        tn__text_add(&text, "%s%s on %s (", found > 1 ? ", " : "", kernel->name, kernel->device);
        for (int d = 0, n = 0; d < TN_DTYPE_COUNT; d++)
            if (kernel->dtypes & TN_BIT(d))
                tn__text_add(&text, "%s%s", n++ > 0 ? " " : "", tn_dtype_name(d));
        tn__text_add(&text, ")");
    }
    pthread_mutex_unlock(&lock);
    tn__text_put(&text, "", 1);
    status = tn_fail(
        TN_ERR_NOT_IMPLEMENTED,
        "operator %q: no kernel on device type %q for %s, and no decomposition; available: %s%s%s. "
        "TENON_FALLBACK=DEVICE runs it on another device",
        op->def.name, type, tn_dtype_name(dtype),
        text.failed ? "(out of memory)"
        : found > 0 ? text.at
                    : "no kernel at all",
        reasons[0] != '\0' ? "; refused: " : "", reasons);
    tn__text_free(&text);
    return status;
}
