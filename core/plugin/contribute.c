/* SPDX-License-Identifier: MIT
 *
 * Contributions of plugins and programs. Each descriptor is copied into a zero-filled struct of the
 * host (docs/abi.md, rule 4), checked, and added to the registry of its kind. If a contribution is
 * refused, its plugin and the plugin's other contributions still load. */
#include "core/plugin/private.h"

struct kind {
    const char *type;
    size_t size;
    size_t least; /* the smallest size that a descriptor may have */
    size_t name;  /* offset of the name */
    int pass;
    size_t options; /* offset of the option table, 0: it has none */
    tn_status (*add)(uint32_t kind, const char *name, const tn_head *copy, tn__plugin *plugin);
};

static tn_status add_op(uint32_t kind, const char *name, const tn_head *copy, tn__plugin *plugin)
{
    (void)kind, (void)name;
    return tn__plugin_up.op_add((const tn_op_def *)copy, plugin);
}

static tn_status add_backend(uint32_t kind, const char *name, const tn_head *copy,
                             tn__plugin *plugin)
{
    tn_backend_def *backend = (tn_backend_def *)copy;
    (void)kind, (void)name;
    if (tn__checked() && tn__plugin_up.check_backend(backend, plugin) != TN_OK)
        return TN_ERR_MEMORY;
    return tn__plugin_up.backend_add(backend, plugin);
}

static tn_status add_kernel(uint32_t kind, const char *name, const tn_head *copy,
                            tn__plugin *plugin)
{
    tn_kernel_def *kernel = (tn_kernel_def *)copy;
    (void)kind, (void)name;
    if (!kernel->device || !kernel->device[0])
        return tn_fail(TN_ERR_VALUE,
                       "kernel %q for operator %q: device: it is missing; expected a device type",
                       kernel->name ? kernel->name : "", kernel->op);
    if (tn__checked()) {
        void *shadow = tn__plugin_keep(plugin, tn__plugin_up.check_kernel_size());
        if (!shadow)
            return TN_ERR_MEMORY;
        tn__plugin_up.check_kernel(kernel, shadow, plugin);
    }
    return tn__plugin_up.kernel_add(kernel, plugin);
}

static tn_status add_observer(uint32_t kind, const char *name, const tn_head *contribution,
                              tn__plugin *plugin)
{
    if (tn__registry_all(kind, NULL) >= TN__OBSERVERS)
        return tn_fail(TN_ERR_REFUSED, "observer %q: too many observers; expected at most %d", name,
                       TN__OBSERVERS);
    tn_status status = tn__registry_add(kind, name, contribution, plugin);
    if (status == TN_OK)
        tn__plugin_up.observers_changed();
    return status;
}

#define END(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#define ROW(type, name_, last, pass, options, add)                                                 \
    [TN_KIND_##type - TN_KIND_tn_backend_def] = {                                                  \
        #type, sizeof(type), END(type, last), offsetof(type, name_), pass, options, add            \
    }
#define OPTIONS(type) offsetof(type, options)

static const struct kind kinds[] = {
    ROW(tn_backend_def, type, copy, TN__PASS_BACKENDS, 0, add_backend),
    ROW(tn_op_def, name, infer, TN__PASS_OPS, OPTIONS(tn_op_def), add_op),
    ROW(tn_kernel_def, op, run, TN__PASS_KERNELS, 0, add_kernel),
    ROW(tn_layer_def, name, forward, TN__PASS_NAMED, OPTIONS(tn_layer_def), tn__registry_add),
    ROW(tn_optimizer_def, name, step, TN__PASS_NAMED, OPTIONS(tn_optimizer_def), tn__registry_add),
    ROW(tn_scheduler_def, name, step, TN__PASS_NAMED, OPTIONS(tn_scheduler_def), tn__registry_add),
    ROW(tn_init_def, name, fill, TN__PASS_NAMED, OPTIONS(tn_init_def), tn__registry_add),
    ROW(tn_format_def, name, extensions, TN__PASS_NAMED, 0, tn__registry_add),
    ROW(tn_observer_def, name, user, TN__PASS_NAMED, 0, add_observer),
    ROW(tn_pass_def, name, run, TN__PASS_NAMED, OPTIONS(tn_pass_def), tn__registry_add),
    ROW(tn_compiler_def, name, run, TN__PASS_NAMED, 0, tn__registry_add),
    ROW(tn_comm_def, name, close, TN__PASS_NAMED, OPTIONS(tn_comm_def), tn__registry_add),
    ROW(tn_dataset_def, name, get, TN__PASS_NAMED, OPTIONS(tn_dataset_def), tn__registry_add),
    ROW(tn_transform_def, name, apply, TN__PASS_NAMED, OPTIONS(tn_transform_def), tn__registry_add),
    ROW(tn_prune_def, name, mask, TN__PASS_NAMED, OPTIONS(tn_prune_def), tn__registry_add),
};

static const struct kind *kind_of(const tn_head *head)
{
    int64_t index = (int64_t)head->kind - TN_KIND_tn_backend_def;
    return index >= 0 && index < tn__countof(kinds) && kinds[index].size ? &kinds[index] : NULL;
}

static const char *name_in(const struct kind *kind, const void *copy)
{
    const char *name;
    memcpy(&name, (const char *)copy + kind->name, sizeof name);
    return name;
}

/* Checks that a descriptor has the members that its kind requires. core/tensor checks backends
 * itself. */
static tn_status complete(const struct kind *kind, const tn_head *copy)
{
    const char *what = NULL;
    switch (copy->kind) {
    case TN_KIND_tn_layer_def: {
        const tn_layer_def *l = (const tn_layer_def *)copy;
        /* A container (list or dictionary) need not be callable. */
        what = !l->forward && !l->call && !(l->flags & (TN_LAYER_LIST | TN_LAYER_DICT))
                   ? "forward or call"
               : !l->infer != !l->becomes ? "infer or becomes (set both or neither)"
                                          : NULL;
        if (!what && (l->flags & TN_LAYER_LEAF) && (l->flags & TN_LAYER_THROUGH))
            return tn_fail(TN_ERR_VALUE,
                           "tn_layer_def %q: flags: both TN_LAYER_LEAF and TN_LAYER_THROUGH; "
                           "expected at most one of them",
                           l->name);
        break;
    }
    case TN_KIND_tn_optimizer_def:
        what = ((const tn_optimizer_def *)copy)->step ? NULL : "step";
        break;
    case TN_KIND_tn_scheduler_def:
        what = ((const tn_scheduler_def *)copy)->step ? NULL : "step";
        break;
    case TN_KIND_tn_init_def: what = ((const tn_init_def *)copy)->fill ? NULL : "fill"; break;
    case TN_KIND_tn_kernel_def: {
        const tn_kernel_def *k = (const tn_kernel_def *)copy;
        what = k->run || (k->flags & TN_KERNEL_DECOMPOSE) ? NULL : "run";
        break;
    }
    case TN_KIND_tn_op_def: what = ((const tn_op_def *)copy)->infer ? NULL : "infer"; break;
    case TN_KIND_tn_pass_def: what = ((const tn_pass_def *)copy)->run ? NULL : "run"; break;
    case TN_KIND_tn_compiler_def: {
        const tn_compiler_def *c = (const tn_compiler_def *)copy;
        what = !c->device || !c->device[0] ? "device"
               : !c->claim                 ? "claim"
               : !c->compile               ? "compile"
               : !c->run                   ? "run"
                                           : NULL;
        break;
    }
    case TN_KIND_tn_comm_def: {
        const tn_comm_def *c = (const tn_comm_def *)copy;
        what = !c->open ? "open" : !c->close ? "close" : NULL;
        break;
    }
    case TN_KIND_tn_dataset_def: {
        const tn_dataset_def *d = (const tn_dataset_def *)copy;
        what = !d->open ? "open" : !d->get ? "get" : NULL;
        break;
    }
    case TN_KIND_tn_transform_def:
        what = ((const tn_transform_def *)copy)->apply ? NULL : "apply";
        break;
    case TN_KIND_tn_prune_def: {
        const tn_prune_def *p = (const tn_prune_def *)copy;
        if (p->type < TN_PRUNE_UNSTRUCTURED || p->type > TN_PRUNE_NETWORK)
            return tn_fail(TN_ERR_VALUE,
                           "tn_prune_def %q: type: unknown, got %u; expected TN_PRUNE_UNSTRUCTURED "
                           "(1), STRUCTURED (2), GLOBAL (3) or NETWORK (4)",
                           p->name, p->type);
        what = p->type == TN_PRUNE_NETWORK                 ? (!p->channels  ? "channels"
                                                              : !p->compact ? "compact"
                                                                            : NULL)
               : !p->mask                                  ? "mask"
               : p->type == TN_PRUNE_STRUCTURED && !p->dim ? "dim"
                                                           : NULL;
        break;
    }
    default: break;
    }
    if (!what)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s %q: %s: it is missing", kind->type, name_in(kind, copy), what);
}

/* ---- names ----------------------------------------------------------------------------------- */

static tn_status operand_names(const tn_operand *rows, int32_t count, const char *what)
{
    tn_status status = TN_OK;

    for (int32_t i = 0; rows && i < count && i < TN_MAX_OPERANDS && status == TN_OK; i++)
        if (rows[i].name)
            status = tn__name_check(rows[i].name, "", "%s %d", what, i + 1);
    return status;
}

static tn_status op_names(const tn_op_def *def)
{
    char side[128];
    tn_status status = tn__name_check(def->name, ".", "tn_op_def: name");

    if (status != TN_OK)
        return status;
    tn_snprint(side, sizeof side, "tn_op_def %s: input", def->name);
    status = operand_names(def->inputs, def->n_inputs, side);
    if (status != TN_OK)
        return status;
    tn_snprint(side, sizeof side, "tn_op_def %s: output", def->name);
    return operand_names(def->outputs, def->n_outputs, side);
}

/* The name of a kernel is used in reports only and may be absent. */
static tn_status kernel_names(const tn_kernel_def *kernel)
{
    tn_status status = tn__name_check(kernel->op, ".", "tn_kernel_def: op");

    if (status == TN_OK && kernel->name)
        status = tn__name_check(kernel->name, ".-", "tn_kernel_def for %s: name", kernel->op);
    if (status == TN_OK && kernel->device && kernel->device[0])
        status = tn__name_check(kernel->device, "", "tn_kernel_def for %s: device", kernel->op);
    return status;
}

static tn_status compiler_names(const tn_compiler_def *compiler)
{
    tn_status status = tn__name_check(compiler->name, ".-", "tn_compiler_def: name");

    if (status == TN_OK && compiler->device && compiler->device[0])
        status = tn__name_check(compiler->device, "", "tn_compiler_def %s: device", compiler->name);
    return status;
}

/* Checks the name of a pass, and the names in its member `after`. */
static tn_status pass_names(const tn_pass_def *pass)
{
    tn_status status = tn__name_check_type(pass->name, "tn_pass_def");
    const char *at = pass->after ? pass->after : "";
    char name[TN__NAME_LONGEST + 2];

    while (status == TN_OK && *at) {
        size_t length = strcspn(at, " ");
        tn_snprint(name, sizeof name, "%.*s", (int)(length < 1000 ? length : 1000), at);
        if (length)
            status = tn__name_check_type(name, "tn_pass_def: after");
        at += length + strspn(at + length, " ");
    }
    return status;
}

/* Checks the names in a descriptor: specs, files and lines of reports must be able to contain
 * them. */
static tn_status names_acceptable(const struct kind *kind, const tn_head *copy)
{
    const char *name = name_in(kind, copy);
    tn_status status = TN_OK;

    if (!name || !name[0])
        return tn_fail(TN_ERR_VALUE, "%s: name: it is missing", kind->type);
    if (copy->kind == TN_KIND_tn_backend_def) /* core/tensor checks the names of backends */
        return TN_OK;
    if (copy->kind == TN_KIND_tn_kernel_def)
        return kernel_names((const tn_kernel_def *)copy);
    if (copy->kind == TN_KIND_tn_op_def)
        status = op_names((const tn_op_def *)copy);
    else if (copy->kind == TN_KIND_tn_compiler_def)
        status = compiler_names((const tn_compiler_def *)copy);
    else if (copy->kind == TN_KIND_tn_pass_def)
        status = pass_names((const tn_pass_def *)copy);
    else if (copy->kind == TN_KIND_tn_format_def || copy->kind == TN_KIND_tn_observer_def)
        status = tn__name_check(name, ".-", "%s: name", kind->type);
    else
        status = tn__name_check_type(name, kind->type);
    if (status == TN_OK && copy->kind == TN_KIND_tn_layer_def &&
        ((const tn_layer_def *)copy)->printed)
        status = tn__name_check(((const tn_layer_def *)copy)->printed, "",
                                "tn_layer_def %s: printed", name);
    return status;
}

/* ---- options --------------------------------------------------------------------------------- */

/* Returns the size of the struct that the options of a descriptor are stored in. */
static size_t options_size(const tn_head *copy)
{
    switch (copy->kind) {
    case TN_KIND_tn_layer_def: return ((const tn_layer_def *)copy)->data_size;
    case TN_KIND_tn_op_def: return ((const tn_op_def *)copy)->options_size;
    case TN_KIND_tn_optimizer_def: return ((const tn_optimizer_def *)copy)->data_size;
    case TN_KIND_tn_scheduler_def: return ((const tn_scheduler_def *)copy)->data_size;
    case TN_KIND_tn_pass_def: return ((const tn_pass_def *)copy)->data_size;
    case TN_KIND_tn_comm_def: return ((const tn_comm_def *)copy)->data_size;
    case TN_KIND_tn_dataset_def: return ((const tn_dataset_def *)copy)->data_size;
    case TN_KIND_tn_transform_def: return ((const tn_transform_def *)copy)->data_size;
    case TN_KIND_tn_prune_def: return ((const tn_prune_def *)copy)->data_size;
    default: return ((const tn_init_def *)copy)->data_size;
    }
}

static tn_status options_acceptable(const struct kind *kind, const tn_head *copy)
{
    const tn_option *options;
    char what[128];
    if (!kind->options)
        return TN_OK;
    memcpy(&options, (const char *)copy + kind->options, sizeof options);
    tn_snprint(what, sizeof what, "%s %s", kind->type, name_in(kind, copy));
    /* The option struct of an operator begins with its size, which no option may overlap. */
    tn_status status = tn__options_check(
        options, copy->kind == TN_KIND_tn_op_def ? sizeof(uint32_t) : 0, options_size(copy), what);
    if (status != TN_OK || copy->kind != TN_KIND_tn_scheduler_def)
        return status;
    tn_snprint(what, sizeof what, "%s %s: state", kind->type, name_in(kind, copy));
    return tn__options_check(((const tn_scheduler_def *)copy)->state, 0,
                             ((const tn_scheduler_def *)copy)->state_size, what);
}

tn_status tn__contribute_one(const tn_head *head, tn__plugin *plugin)
{
    if (!head)
        return tn_fail(TN_ERR_VALUE, "contribution: it is NULL");
    const struct kind *kind = kind_of(head);
    if (!kind)
        return tn_fail(
            TN_ERR_REFUSED,
            "contribution: unknown kind, got %u; expected one that Tenon %s knows: was its first "
            "member initialized with TN_HEAD, or was it compiled for a newer Tenon?",
            head->kind, tn_version());
    tn_head *copy = tn__plugin_keep(plugin, kind->size);
    if (!copy)
        return TN_ERR_MEMORY;
    tn_status status = tn__load_copy_struct(copy, kind->size, kind->least, head, kind->type);
    if (status != TN_OK)
        return status;
    status = names_acceptable(kind, copy);
    if (status == TN_OK) {
        char what[128];
        tn_snprint(what, sizeof what, "%s %s", kind->type, name_in(kind, copy));
        status = tn__reserved_check(copy, what);
    }
    if (status == TN_OK)
        status = complete(kind, copy);
    if (status == TN_OK)
        status = options_acceptable(kind, copy);
    if (status == TN_OK)
        status = kind->add(copy->kind, name_in(kind, copy), copy, plugin);
    if (status == TN_OK)
        tn__unused_kernels_stale();
    return status;
}

/* ---- the plugin's line of the load report ---------------------------------------------------- */

enum { REFUSALS_SHOWN = 3 };

void tn__plugin_reason_compose(tn__plugin *plugin)
{
    const tn__plugin_private *own = plugin->private;
    const char *words = own->refusals.at ? own->refusals.at : "",
               *idle = own->idle_line ? own->idle_line : "";
    int64_t count = plugin->report.refused, hidden = count - REFUSALS_SHOWN;
    tn__text text = { 0 };
    if (count)
        tn__text_add(&text, "%lld contribution%s refused: %s", (long long)count,
                     count == 1 ? " was" : "s were", words);
    if (hidden > 0)
        tn__text_add(&text, "; and %lld more", (long long)hidden);
    tn__text_add(&text, "%s%s", count && idle[0] ? "; " : "", idle);
    if (text.failed)
        tn__plugin_reason(plugin, "out of memory for the names of the refused contributions");
    else
        tn__plugin_reason(plugin, "%s", text.at ? text.at : "");
    tn__text_free(&text);
}

static void refused(tn__plugin *plugin, const char *words, int64_t count)
{
    tn__text *all = &plugin->private->refusals;
    if (plugin->report.refused < REFUSALS_SHOWN)
        tn__text_add(all, "%s%s", all->length ? "; " : "", words);
    plugin->report.refused += count;
    tn__plugin_reason_compose(plugin);
}

/* Contributes one descriptor and counts the result in the plugin's report. *handed is 1 if this was
 * done before. If memory runs out, the contribution is not refused: it is contributed again
 * later. */
static tn_status contribute_counted(tn__plugin *plugin, const tn_head *head, uint8_t *handed)
{
    char words[800];
    uint64_t mark = tn_error_mark();
    if (*handed)
        return TN_OK;
    tn_status status = tn__contribute_one(head, plugin);
    if (status == TN_ERR_MEMORY)
        return status;
    *handed = 1;
    if (status != TN_OK)
        tn__report_take_words(mark, words, sizeof words);
    tn__plugins_lock();
    if (status == TN_OK)
        plugin->report.contributions++;
    else
        refused(plugin, words, 1);
    tn__plugins_unlock();
    return TN_OK;
}

/* Contributes the plugin's table of kernels; `handed` has one element for each row. */
static tn_status contribute_table(tn__plugin *plugin, uint8_t *handed)
{
    const tn_plugin *own = plugin->plugin;
    tn_status status = TN_OK;
    char words[200];
    if (!own->kernels || own->n_kernels <= 0)
        return TN_OK;
    if (own->kernel_size < kinds[TN_KIND_tn_kernel_def - TN_KIND_tn_backend_def].least) {
        tn_snprint(words, sizeof words,
                   "its table of %lld kernels has a wrong kernel_size, got %u; expected "
                   "sizeof(tn_kernel_def)",
                   (long long)own->n_kernels, own->kernel_size);
        tn__plugins_lock();
        if (!handed[0])
            refused(plugin, words, own->n_kernels);
        handed[0] = 1;
        tn__plugins_unlock();
        return TN_OK;
    }
    for (int64_t i = 0; i < own->n_kernels && status == TN_OK; i++)
        status = contribute_counted(
            plugin, (const tn_head *)((const char *)own->kernels + (size_t)i * own->kernel_size),
            &handed[i]);
    return status;
}

tn_status tn__contribute(tn__plugin *plugin, int pass)
{
    const tn_plugin *own = plugin->plugin;
    tn__plugin_private *private = plugin->private;
    tn_status status = TN_OK;
    if (!own)
        return TN_OK;
    int64_t rows = own->n_kernels > 0 ? own->n_kernels : 0,
            count = own->contributions && own->n_contributions > 0 ? own->n_contributions : 0;
    if (!private->handed) {
        private->handed = tn__plugin_keep(plugin, (size_t)(count + rows) + 1);
        if (!private->handed)
            return TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        const tn_head *head = own->contributions[i];
        const struct kind *kind = head ? kind_of(head) : NULL;
        if (pass == (kind ? kind->pass : TN__PASS_NAMED))
            status = contribute_counted(plugin, head, &private->handed[i]);
    }
    return status == TN_OK && pass == TN__PASS_KERNELS
               ? contribute_table(plugin, private->handed + count)
               : status;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Returns the line of the load report for contributions that the program registers itself. */
static tn__plugin *program(void)
{
    tn__plugin *plugin = tn__plugin_by_file("(program)");
    if (plugin)
        return plugin;
    plugin = tn__plugin_add("(program)");
    if (!plugin)
        return NULL;
    plugin->id = plugin->report.id = "program";
    plugin->version = plugin->report.version = tn_version();
    plugin->report.help = "registered by this program";
    plugin->report.stage = TN_STAGE_ACTIVATE;
    plugin->private->mark = 3;
    atomic_store_explicit(&plugin->active, 1, memory_order_release);
    return plugin;
}

tn_status tn_register_contribution(const void *contribution)
{
    if (!contribution)
        return tn_fail(TN_ERR_VALUE, "tn_register: contribution: it is NULL");
    tn_status status = tn__plugins_discover();
    if (status != TN_OK)
        return status;
    tn__plugins_lock();
    tn__plugin *plugin = program();
    tn__plugins_unlock();
    if (!plugin)
        return TN_ERR_MEMORY;
    status = tn__contribute_one(contribution, plugin);
    tn__plugins_lock();
    if (status == TN_OK)
        plugin->report.contributions++;
    tn__plugins_unlock();
    return status;
}

tn_status tn_unregister(uint32_t kind, const char *name)
{
    if (!tn__given(name != NULL, "tn_unregister: name"))
        return TN_ERR_VALUE;
    if (kind == TN_KIND_tn_op_def || kind == TN_KIND_tn_kernel_def ||
        kind == TN_KIND_tn_backend_def)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "tn_unregister: %q: operators, kernels and backends stay until the process "
                       "ends",
                       name);
    tn_status status = tn__plugins_discover();
    if (status != TN_OK)
        return status;
    tn__plugins_lock();
    tn__plugin *plugin = program();
    status = plugin ? tn__registry_remove(kind, name, plugin) : TN_ERR_MEMORY;
    if (status == TN_OK)
        plugin->report.contributions--;
    tn__plugins_unlock();
    if (status == TN_OK && kind == TN_KIND_tn_observer_def)
        tn__plugin_up.observers_changed();
    return status;
}
