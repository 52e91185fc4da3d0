/* SPDX-License-Identifier: MIT
 *
 * The registry of kernels, and which kernel wins: the kernels of an operator on a device type are
 * asked in the order of their priority; of two that claim the same calls, one is refused. kernel.c
 * says whether a kernel takes a call. */
#include "core/base/vector.h"
#include "core/op/private.h"

static const char unnamed[] = "(unnamed)"; /* a kernel whose descriptor has no name */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all that follows */
static tn__kernel_entry **kernels;                       /* in the order of registration */
static int64_t n_kernels, kernel_capacity;
static struct tn__kernel_list *lists; /* all lists that were ever built */

/* ---- registering ----------------------------------------------------------------------------- */

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
    tn_op *op = tn__op_known(name, revision);

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

/* ---- the order ------------------------------------------------------------------------------- */

/* Returns the version up to which a kernel knows its operator: all of one of its own plugin. */
static uint32_t knows(const tn_op *op, const tn__kernel_entry *entry)
{
    return entry->plugin == op->plugin
               ? UINT32_MAX
               : tn__op_later(entry->kernel.head.target, entry->kernel.knows);
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
        if (entry->knows == 0) { /* for the first list that has it */
            entry->knows = knows(op, entry);
            entry->asks |= entry->knows < op->newest;
        }
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

void tn__kernel_lists_free(void)
{
    pthread_mutex_lock(&lock);
    while (lists != NULL) {
        struct tn__kernel_list *next = lists->older;

        tn_free(lists);
        lists = next;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Returns whether nothing can ever call a kernel, or a call of its operator is never given to it;
 * `words` then says why. */
static bool is_idle(const tn__kernel_entry *entry, char *words, size_t size)
{
    const tn_kernel_def *kernel = &entry->kernel;
    const char *name = kernel->name, *nearest;
    const tn_op *newest = tn__op_known(kernel->op, 0);
    const tn_op *op = kernel->revision != 0 ? tn__op_known(kernel->op, kernel->revision) : NULL;
    char reason[160];

    if (op != NULL) {
        if (tn__device_type_find(kernel->device) == NULL)
            tn_snprint(words, size, "%s, because no plugin provides the device type %q", name,
                       kernel->device);
        else if (tn__op_uses_newer(op, knows(op, entry), UINT32_MAX, NULL, reason, sizeof reason))
            tn_snprint(words, size, "%s, for some calls, because %s", name, reason);
        else
            return false;
    } else if (newest != NULL) {
        tn_snprint(words, size, "%s, because operator %q has no revision %u (the newest is %u)",
                   name, kernel->op, kernel->revision, newest->def.revision);
    } else {
        nearest = tn__op_nearest(kernel->op);
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
            is_idle(kernels[i], words, sizeof words))
            tell(kernels[i]->plugin, words);
    pthread_mutex_unlock(&lock);
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
