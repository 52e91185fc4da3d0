/* SPDX-License-Identifier: MIT
 *
 * Replaces modules of a network by quantized ones: finds them, makes the new ones, measures them,
 * and swaps all of them at the end, so that a failure leaves the network as it was. */
#include "flow.h"

#include <math.h>

/* ---- lists ----------------------------------------------------------------------------------- */

tn_status flow_add(flow_list *list, const char *path, tn_module *module, tn_module *scheme)
{
    flow_item *item;

    if (list->count == list->room) {
        int64_t room = 2 * list->room + 16;
        flow_item *more = tn_realloc(list->at, (size_t)room * sizeof *more);

        if (more == NULL)
            return TN_ERR_MEMORY;
        list->at = more;
        list->room = room;
    }
    item = &list->at[list->count];
    memset(item, 0, sizeof *item);
    item->path = tn_strdup(path);
    if (item->path == NULL)
        return TN_ERR_MEMORY;
    item->module = tn_module_keep(module);
    item->scheme = scheme;
    item->row.sqnr = item->row.cosine = NAN;
    item->row.seconds_before = item->row.seconds_after = NAN;
    list->count++;
    return TN_OK;
}

static void free_row(tn_quantize_row *row)
{
    tn_free(row->path);
    tn_free(row->type);
    tn_free(row->becomes);
    tn_free(row->why);
}

void flow_free(flow_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        flow_item *item = &list->at[i];

        tn_module_drop(item->module);
        tn_module_drop(item->made);
        tn_free(item->path);
        tn_tensor_drop(item->input);
        tn_tensor_drop(item->low);
        tn_tensor_drop(item->high);
        free_row(&item->row);
    }
    tn_free(list->at);
    tn_walk_end(list->modes);
    tn_free(list->training);
    memset(list, 0, sizeof *list);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Returns whether the path is below that of the last module, which will be replaced as a whole. */
static bool is_inside_last(const flow_list *list, const char *path)
{
    const char *last = list->count > 0 ? list->at[list->count - 1].path : "";
    size_t length = strlen(last);

    return length > 0 && strncmp(path, last, length) == 0 && path[length] == '.';
}

static tn_status check_module(const flow_list *list, const char *path, tn_module *module)
{
    if (path[0] == '\0')
        return tn_fail(TN_ERR_VALUE,
                       "%s: net: it is a %s itself, which only a parent could replace; expected a "
                       "network that contains it, such as Sequential(...)",
                       list->who, tn_module_type(module));
    if (tn_is_parametrized(module, NULL))
        return tn_fail(TN_ERR_VALUE,
                       "%s: %s: it has a parametrization; expected plain parameters: remove it "
                       "(tn_parametrize_remove), or skip the module",
                       list->who, path);
    if (tn_is_pruned(module))
        return tn_fail(TN_ERR_VALUE,
                       "%s: %s: it is pruned; expected plain parameters: make the mask permanent "
                       "(tn_prune_remove), or skip the module",
                       list->who, path);
    return TN_OK;
}

tn_status flow_collect(flow_list *list, tn_module *scheme)
{
    tn_walk *walk = tn_walk_begin(list->net, TN_SLOT_CHILD, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();
    char known[512];

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk)) {
        if (is_inside_last(list, at->path) || !quant_scheme_takes(scheme, at->module) ||
            quant_scheme_skips(scheme, at->path))
            continue;
        status = check_module(list, at->path, at->module);
        if (status == TN_OK)
            status = flow_add(list, at->path, at->module, scheme);
    }
    tn_walk_end(walk);
    if (status == TN_OK && list->count == 0) {
        quant_scheme_types(scheme, known, sizeof known);
        tn_log(TN_LOG_WARNING, "%s: no module of the network fits %s; it takes %s", list->who,
               tn_module_type(scheme), known);
    }
    return status;
}

/* ---- modes ----------------------------------------------------------------------------------- */

/* Puts the network into evaluation mode and remembers the modes. */
static tn_status begin_eval(flow_list *list)
{
    int64_t count = 0, i = 0;
    tn_walk *walk = tn_walk_begin(list->net, TN_SLOT_CHILD, NULL);

    while (tn_walk_next(walk) != NULL)
        count++;
    tn_walk_end(walk);
    list->training = tn_malloc((size_t)count + 1);
    walk = tn_walk_begin(list->net, TN_SLOT_CHILD, NULL);
    list->modes = tn_walk_begin(list->net, TN_SLOT_CHILD, NULL);
    for (const tn_visit *at = tn_walk_next(walk); at != NULL && i < count; at = tn_walk_next(walk))
        if (list->training != NULL)
            list->training[i++] = tn_module_is_training(at->module);
    tn_walk_end(walk);
    if (list->training == NULL || list->modes == NULL)
        return tn_error_last_code();
    return tn_module_train(list->net, false);
}

/* Restores the modes, parents before their children, without changing the last error. */
static void end_eval(flow_list *list)
{
    uint64_t mark = tn_error_mark();
    int64_t i = 0;

    if (list->training != NULL)
        for (const tn_visit *at = tn_walk_next(list->modes); at != NULL;
             at = tn_walk_next(list->modes))
            tn_module_train(at->module, list->training[i++]);
    tn_error_restore(mark);
}

/* ---- making ---------------------------------------------------------------------------------- */

static tn_status add_bytes(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    *(int64_t *)user += tn_tensor_numel(tensor) * (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
    return TN_OK;
}

/* Returns the bytes of the parameters and buffers, without those of a range. */
static int64_t bytes_of(tn_module *module)
{
    int64_t bytes = 0, ranges = 0;
    tn_module *range = tn_module_slot_kind(module, FLOW_RANGE) == TN_SLOT_CHILD
                           ? tn_module_child(module, FLOW_RANGE)
                           : NULL;

    tn_module_each_tensor(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false, add_bytes, &bytes);
    if (range != NULL)
        tn_module_each_tensor(range, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false, add_bytes, &ranges);
    return bytes - ranges;
}

static tn_status stays(flow_item *item, const char *why)
{
    tn_module_drop(item->made);
    item->made = NULL;
    item->row.why = tn_strdup(why);
    return item->row.why != NULL ? TN_OK : TN_ERR_MEMORY;
}

/* Calls the scheme with the module and the range. */
static tn_status call_scheme(flow_item *item)
{
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    tn_status status = input != NULL && output != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_value result;

    if (status == TN_OK)
        status = tn_pack_add(input, NULL, tn_value_module(item->module));
    if (status == TN_OK && item->low != NULL)
        status = tn_pack_add(input, "low", tn_value_tensor(item->low));
    if (status == TN_OK && item->high != NULL)
        status = tn_pack_add(input, "high", tn_value_tensor(item->high));
    if (status == TN_OK)
        status = tn_module_call_pack(item->scheme, input, output);
    result = status == TN_OK && tn_pack_count(output) > 0 ? tn_pack_at(output, 0) : tn_value_none();
    if (status == TN_OK && result.kind == TN_VALUE_MODULE)
        item->made = tn_module_keep(result.as.module);
    else if (status == TN_OK)
        status = stays(item, result.kind == TN_VALUE_STRING ? result.as.s : "the scheme has none");
    tn_pack_drop(input);
    tn_pack_drop(output);
    return status;
}

/* Calls flow_measure without the hooks of the user. */
static tn_status measure(flow_item *item)
{
    tn_module *holder = tn_module_plain("Hooks");
    tn_status status = holder != NULL ? tn_module_move_hooks(item->module, holder, TN_HOOKS_ALL)
                                      : tn_error_last_code();

    if (status == TN_OK) {
        tn_status back;

        status = flow_measure(item);
        back = tn_module_move_hooks(holder, item->module, TN_HOOKS_ALL);
        status = status == TN_OK ? back : status;
    }
    tn_module_drop(holder);
    return status;
}

static tn_status make(flow_item *item)
{
    const double limit = quant_option_number(item->scheme, "limit", 0);
    tn_status status;
    char why[80];

    item->row.path = tn_strdup(item->path);
    item->row.type = tn_strdup(tn_module_type(item->module));
    item->row.bytes_before = item->row.bytes_after = bytes_of(item->module);
    if (item->row.path == NULL || item->row.type == NULL)
        return TN_ERR_MEMORY;
    status = call_scheme(item);
    if (status != TN_OK || item->made == NULL)
        return status;
    status = tn_module_train(item->made, false);
    if (status == TN_OK)
        status = measure(item);
    if (status != TN_OK)
        return status;
    if (limit > 0 && item->row.sqnr < limit) {
        tn_snprint(why, sizeof why, "SQNR below %g dB", limit);
        return stays(item, why);
    }
    item->row.bytes_after = bytes_of(item->made);
    item->row.becomes = tn_strdup(tn_module_type(item->made));
    return item->row.becomes != NULL ? TN_OK : TN_ERR_MEMORY;
}

/* ---- swapping -------------------------------------------------------------------------------- */

/* Stores `to` in place of `from` in all parents that have it. */
static tn_status set_children(tn_module *net, tn_module *from, tn_module *to)
{
    const tn_walk_options all = { sizeof all, TN_WALK_DUPLICATES, NULL, NULL };
    tn_walk *walk = tn_walk_begin(net, TN_SLOT_CHILD, &all);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk))
        if (at->module == from && at->path[0] != '\0')
            status = tn_module_set_child(net, at->path, to, true);
    tn_walk_end(walk);
    return status;
}

static tn_status swap(flow_list *list, flow_item *item, bool back)
{
    tn_module *from = back ? item->made : item->module, *to = back ? item->module : item->made;
    tn_status status = tn_module_move_hooks(from, to, TN_HOOKS_ALL);

    return status == TN_OK ? set_children(list->net, from, to) : status;
}

static tn_status swap_all(flow_list *list)
{
    tn_status status = TN_OK;
    int64_t i = 0;

    for (; i < list->count && status == TN_OK; i++)
        if (list->at[i].made != NULL)
            status = swap(list, &list->at[i], false);
    if (status != TN_OK) {
        uint64_t mark = tn_error_mark();

        while (i-- > 0)
            if (list->at[i].made != NULL)
                swap(list, &list->at[i], true);
        tn_error_restore(mark);
    }
    return status;
}

static void give_report(flow_list *list, tn_quantize_report *report, tn_quantize_row *rows)
{
    report->rows = rows;
    report->count = list->count;
    report->quantized = 0;
    for (int64_t i = 0; i < list->count; i++) {
        rows[i] = list->at[i].row;
        memset(&list->at[i].row, 0, sizeof list->at[i].row);
        report->quantized += rows[i].becomes != NULL;
    }
}

tn_status flow_replace(flow_list *list, tn_tensor *const *inputs, int64_t n_inputs,
                       tn_quantize_report *report)
{
    TN_SCOPE;
    tn_quantize_row *rows = tn_calloc((size_t)list->count + 1, sizeof *rows);
    tn_status status = rows != NULL ? tn_grad_begin(false) : TN_ERR_MEMORY;

    if (status != TN_OK) {
        tn_free(rows);
        return status;
    }
    status = begin_eval(list);
    if (status == TN_OK && n_inputs > 0)
        status = flow_capture(list, inputs, n_inputs);
    for (int64_t i = 0; i < list->count && status == TN_OK; i++)
        status = make(&list->at[i]);
    if (status == TN_OK)
        status = swap_all(list);
    if (status != TN_OK)
        end_eval(list);
    else if (report != NULL)
        give_report(list, report, rows);
    if (status != TN_OK || report == NULL)
        tn_free(rows);
    tn_grad_end();
    return status;
}

tn_module *flow_begin(const flow_list *list, const char *scheme)
{
    if (list->net != NULL && scheme != NULL)
        return quant_scheme_parse(list->who, scheme);
    tn_fail(TN_ERR_VALUE, "%s: %s: it is NULL; expected %s", list->who,
            list->net == NULL ? "net" : "scheme",
            list->net == NULL ? "a module" : "a spec, such as int8_dynamic()");
    return NULL;
}

/* ---- the interface --------------------------------------------------------------------------- */

tn_status flow_quantize(tn_module *net, const char *scheme, tn_tensor *const *inputs,
                        int64_t n_inputs, tn_quantize_report *report)
{
    flow_list list = { .who = "tn_module_quantize", .net = net };
    tn_module *how;
    tn_status status = TN_OK;

    if (report != NULL)
        memset(report, 0, sizeof *report);
    how = flow_begin(&list, scheme);
    if (how == NULL)
        return tn_error_last_code();
    if (quant_has_option(tn_module_type(how), "range"))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: scheme: %s needs calibration; expected tn_module_quantize_prepare, "
                         "calls with data, and tn_module_quantize_convert",
                         list.who, tn_module_type(how));
    if (status == TN_OK)
        status = flow_collect(&list, how);
    if (status == TN_OK)
        status = flow_replace(&list, inputs, n_inputs, report);
    flow_free(&list);
    tn_module_drop(how);
    return status;
}
