/* SPDX-License-Identifier: MIT
 *
 * Contributions of plugins and programs. Each descriptor is copied into a zero-filled struct of the
 * host (docs/abi.md, rule 4), checked, and added to the registry of its kind. If a contribution is
 * refused, its plugin and the plugin's other contributions still load. */
#include "core/plugin/private.h"

static const char *name_in(const tn__kind *kind, const tn_head *copy)
{
    return tn__kind_pointer(copy, kind->name);
}

/* Checks the names in a descriptor: specs, files and lines of reports must be able to contain
 * them. */
static tn_status names_acceptable(const tn__kind *kind, const tn_head *copy)
{
    const char *name = name_in(kind, copy);

    if (!name || !name[0])
        return tn_fail(TN_ERR_VALUE, "%s: name: it is missing", kind->type);
    if (kind->names)
        return kind->names(copy);
    return kind->signs ? tn__name_check(name, kind->signs, "%s: name", kind->type)
                       : tn__name_check_type(name, kind->type);
}

/* Checks that a descriptor has the members that its kind requires. */
static tn_status complete(const tn__kind *kind, const tn_head *copy)
{
    const char *missing = NULL;
    tn_status status = kind->complete ? kind->complete(copy, &missing) : TN_OK;

    for (const tn__kind_need *need = kind->needs; need && need->name && !missing; need++)
        if (!tn__kind_pointer(copy, need->offset))
            missing = need->name;
    if (status != TN_OK || !missing)
        return status;
    return tn_fail(TN_ERR_VALUE, "%s %q: %s: it is missing", kind->type, name_in(kind, copy),
                   missing);
}

static tn_status options_acceptable(const tn__kind *kind, const tn_head *copy)
{
    uint64_t size = 0;
    size_t begin = 0;
    char what[128];

    if (!kind->options)
        return TN_OK;
    if (kind->options_size)
        size = kind->options_size(copy, &begin);
    else
        memcpy(&size, (const char *)copy + kind->data_size, sizeof size);
    tn_snprint(what, sizeof what, "%s %s", kind->type, name_in(kind, copy));
    return tn__options_check(tn__kind_pointer(copy, kind->options), begin, (size_t)size, what);
}

static tn_status add(const tn__kind *kind, tn_head *copy, tn__plugin *plugin)
{
    tn_status status = tn__boundary_on() ? tn__plugin_up.check(copy, plugin) : TN_OK;

    if (status == TN_OK)
        status = kind->add ? kind->add(kind, copy, plugin)
                           : tn__registry_add(kind->kind, name_in(kind, copy), copy, plugin);
    if (status == TN_OK && kind->changed)
        kind->changed();
    return status;
}

tn_status tn__contribute_one(const tn_head *head, tn__plugin *plugin)
{
    if (!head)
        return tn_fail(TN_ERR_VALUE, "contribution: it is NULL");
    const tn__kind *kind = tn__kind_of(head->kind);
    if (!kind)
        return tn_fail(
            TN_ERR_REFUSED,
            "contribution: unknown kind, got %u; expected one that Tenon %s knows: was its first "
            "member initialized with TN_HEAD, or was it compiled for a newer Tenon?",
            head->kind, tn_version());
    tn_head *copy = tn__plugin_alloc(plugin, kind->size);
    if (!copy)
        return TN_ERR_MEMORY;
    tn_status status = tn__load_copy_struct(copy, kind->size, kind->least, head, kind->type);
    if (status != TN_OK)
        return status;
    status = names_acceptable(kind, copy);
    if (status == TN_OK) {
        char what[128];
        tn_snprint(what, sizeof what, "%s %s", kind->type, name_in(kind, copy));
        status = tn__reserved_check(copy, kind->members, what);
    }
    if (status == TN_OK)
        status = complete(kind, copy);
    if (status == TN_OK)
        status = options_acceptable(kind, copy);
    if (status == TN_OK)
        status = add(kind, copy, plugin);
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
    if (own->kernel_size < tn__kind_of(TN_KIND_tn_kernel_def)->least) {
        tn_snprint(words, sizeof words,
                   "its table of %lld kernels has a wrong kernel_size, got %llu; expected "
                   "sizeof(tn_kernel_def)",
                   (long long)own->n_kernels, (unsigned long long)own->kernel_size);
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
        private->handed = tn__plugin_alloc(plugin, (size_t)(count + rows) + 1);
        if (!private->handed)
            return TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        const tn_head *head = own->contributions[i];
        const tn__kind *kind = head ? tn__kind_of(head->kind) : NULL;
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
    const tn__kind *row = tn__kind_of(kind);
    if (row && row->stays)
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
    if (status == TN_OK && row && row->changed)
        row->changed();
    return status;
}
