/* SPDX-License-Identifier: MIT
 *
 * Prepares networks for calibration and for quantization-aware training, and converts them
 * afterwards. */
#include "flow.h"

#include <math.h>

/* ---- the hook of a prepared module ----------------------------------------------------------- */

/* While this thread calls a prepared network only to see what its modules get. */
static _Thread_local bool paused;

void flow_pause(bool pause)
{
    paused = pause;
}

static bool has_child(tn_module *module, const char *name)
{
    return tn_module_slot_kind(module, name) == TN_SLOT_CHILD;
}

/* Calls the child that records the range. What it returns becomes the input: the input itself, or
 * in training one that is rounded. Without the child the hook does nothing: it was copied with its
 * module and could not be removed. */
static tn_status call_range(void *user, tn_module *module, const tn_pack *input,
                            tn_pack *replacement, tn_hook_outcome *outcome)
{
    tn_module *range;
    tn_tensor *x, *y;
    (void)user;

    if (!has_child(module, FLOW_RANGE) || tn_pack_count(input) < 1 ||
        tn_pack_at(input, 0).kind != TN_VALUE_TENSOR)
        return TN_OK;
    range = tn_module_child(module, FLOW_RANGE);
    if (paused && !has_child(range, "range")) /* it only records; a rounding keeps its scale */
        return TN_OK;
    x = tn_pack_at(input, 0).as.tensor;
    y = tn_module_call(range, x);
    if (y == NULL)
        return tn_error_last_code();
    if (y == x)
        return TN_OK;
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(replacement, NULL, tn_value_tensor(y));
}

/* The slot FLOW_HOOK has the handle, so that the hook can be removed. A copy of the module has a
 * hook without a handle, which stays: the slot, with the handle 0, tells the next prepare that it
 * is there. */
static tn_tensor *get_handle(void *user, tn_module *module, const char *name)
{
    int64_t handle = (int64_t)(uintptr_t)user;

    (void)module;
    (void)name;
    return tn_tensor_from(&handle, TN_I64, tn_no_ints());
}

static tn_status copy_handle(void *user, tn_module *copy, void **copied)
{
    (void)user;
    (void)copy;
    *copied = NULL;
    return TN_OK;
}

static tn_status add_hook(tn_module *module)
{
    static const tn_computed how = { .get = get_handle, .copy = copy_handle };
    tn_hook_handle handle;
    tn_status status;

    if (tn_module_slot_kind(module, FLOW_HOOK) == TN_SLOT_COMPUTED)
        return TN_OK;
    handle = tn_module_hook_forward_pre(module, call_range, 0, NULL, NULL);
    status = handle != 0
                 ? tn_module_add_computed(module, FLOW_HOOK, &how, (void *)(uintptr_t)handle)
                 : tn_error_last_code();

    if (status != TN_OK && handle != 0)
        tn_hook_remove(handle);
    return status;
}

static tn_status remove_hook(tn_module *module, bool moved)
{
    TN_SCOPE;
    tn_tensor *handle;
    int64_t number = 0;
    tn_status status = TN_OK;

    if (tn_module_slot_kind(module, FLOW_HOOK) != TN_SLOT_COMPUTED)
        return TN_OK;
    handle = tn_module_get(module, FLOW_HOOK);
    status = handle != NULL ? tn_tensor_copy_out(handle, &number, sizeof number)
                            : tn_error_last_code();
    if (status == TN_OK && number == 0 && !moved)
        return TN_OK;
    if (status == TN_OK && number != 0)
        tn_hook_remove((tn_hook_handle)number);
    return status == TN_OK ? tn_module_remove(module, FLOW_HOOK) : status;
}

/* ---- prepare --------------------------------------------------------------------------------- */

tn_status flow_unprepare(tn_module *module, bool moved)
{
    tn_status status = remove_hook(module, moved);

    if (status == TN_OK && has_child(module, FLOW_RANGE))
        status = tn_module_remove(module, FLOW_RANGE);
    if (status == TN_OK && has_child(module, FLOW_SCHEME))
        status = tn_module_remove(module, FLOW_SCHEME);
    if (status == TN_OK && tn_is_parametrized(module, "weight"))
        status = tn_parametrize_remove(module, "weight", false);
    return status;
}

/* Makes the module that an option of a scheme names. */
static tn_module *made_by(tn_module *scheme, const char *option)
{
    tn_pack *pack = tn_pack_new();
    tn_module *made = NULL;
    tn_status status = pack != NULL ? tn_module_option_get(scheme, option, pack) : TN_ERR_MEMORY;
    tn_value value = status == TN_OK ? tn_pack_at(pack, 0) : tn_value_none();

    if (status == TN_OK && value.kind == TN_VALUE_SPEC)
        made = tn_module_parse(value.as.s);
    else if (status == TN_OK && value.kind == TN_VALUE_MODULE)
        made = tn_module_copy(value.as.module);
    else if (status == TN_OK)
        tn_fail(TN_ERR_TYPE,
                "%s: %s: wrong type, got %s; expected a module, such as "
                "HistogramRange()",
                tn_module_type(scheme), option, tn_value_kind_name(value.kind));
    tn_pack_drop(pack);
    return made;
}

/* Adds what records, and in training what rounds the weight. */
static tn_status prepare_module(tn_module *module, tn_module *scheme)
{
    tn_module *range = made_by(scheme, "range"), *weight = NULL;
    tn_tensor *first = tn_fuse_slot(module, "weight");
    tn_status status = range != NULL && first != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && first != TN_NONE)
        status = tn_module_to(range, tn_tensor_device(first), TN_DTYPE_AUTO);
    if (status == TN_OK)
        status = tn_module_train(range, tn_module_is_training(module));
    if (status == TN_OK)
        status = tn_module_add_child(module, FLOW_RANGE, range);
    if (status == TN_OK)
        status = tn_module_add_child(module, FLOW_SCHEME, scheme);
    if (status == TN_OK)
        status = add_hook(module);
    if (status == TN_OK && quant_has_option(tn_module_type(scheme), "weight_range")) {
        weight = made_by(scheme, "weight_range");
        status = weight != NULL ? tn_module_to(weight, tn_tensor_device(first), TN_DTYPE_AUTO)
                                : tn_error_last_code();
        if (status == TN_OK)
            status = tn_parametrize(module, "weight", weight, 0);
    }
    tn_module_drop(range);
    tn_module_drop(weight);
    return status;
}

static tn_status check_mode(const flow_list *list, tn_module *scheme)
{
    const bool trains = quant_has_option(tn_module_type(scheme), "weight_range");

    if (tn_module_is_training(list->net) == trains)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "%s: net: it is in %s mode; expected %s mode for %s "
                   "(tn_module_train(net, %s))",
                   list->who, trains ? "evaluation" : "training",
                   trains ? "training" : "evaluation", tn_module_type(scheme),
                   trains ? "true" : "false");
}

/* Fails if a module of the network is prepared already. */
static tn_status check_first(const flow_list *list)
{
    tn_walk *walk = tn_walk_begin(list->net, TN_SLOT_CHILD, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk))
        if (has_child(at->module, FLOW_SCHEME))
            status = tn_fail(TN_ERR_RUNTIME,
                             "%s: %s: it is prepared already; expected "
                             "tn_module_quantize_convert, or a copy made before",
                             list->who, at->path);
    tn_walk_end(walk);
    return status;
}

tn_status flow_prepare(tn_module *net, const char *scheme)
{
    flow_list list = { .who = "tn_module_quantize_prepare", .net = net };
    tn_module *how = flow_begin(&list, scheme);
    tn_status status = how != NULL ? TN_OK : tn_error_last_code();
    int64_t done = 0;

    if (status == TN_OK && !quant_has_option(tn_module_type(how), "range"))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: scheme: %s needs no calibration; expected tn_module_quantize, or a "
                         "scheme with the option range, such as int8_static()",
                         list.who, tn_module_type(how));
    if (status == TN_OK)
        status = check_first(&list);
    if (status == TN_OK)
        status = check_mode(&list, how);
    if (status == TN_OK)
        status = flow_collect(&list, how);
    for (; done < list.count && status == TN_OK; done++)
        status = prepare_module(list.at[done].module, how);
    if (status != TN_OK) {
        uint64_t mark = tn_error_mark();

        while (done-- > 0)
            flow_unprepare(list.at[done].module, false);
        tn_error_restore(mark);
    }
    flow_free(&list);
    tn_module_drop(how);
    return status;
}

/* ---- convert --------------------------------------------------------------------------------- */

/* Finds the prepared modules. */
static tn_status collect_prepared(flow_list *list)
{
    tn_walk *walk = tn_walk_begin(list->net, TN_SLOT_CHILD, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk))
        if (has_child(at->module, FLOW_SCHEME) && has_child(at->module, FLOW_RANGE))
            status = flow_add(list, at->path, at->module, tn_module_child(at->module, FLOW_SCHEME));
    tn_walk_end(walk);
    if (status == TN_OK && list->count == 0)
        status = tn_fail(TN_ERR_RUNTIME,
                         "%s: net: no module is prepared; expected tn_module_quantize_prepare, "
                         "and calls with data, before",
                         list->who);
    return status;
}

/* Reads the ranges. Modules that saw nothing are an error that names all of them. */
static tn_status read_ranges(flow_list *list)
{
    TN_SCOPE;
    char names[512] = "";
    int64_t used = 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < list->count && status == TN_OK; i++) {
        flow_item *item = &list->at[i];
        tn_module *range = tn_module_child(item->module, FLOW_RANGE);
        tn_tensor *low, *high;

        if (has_child(range, "range"))
            range = tn_module_child(range, "range");
        if (quant_range_is_empty(range)) {
            quant_put(names, sizeof names, &used, "%s%s", used > 0 ? ", " : "", item->path);
            continue;
        }
        status = quant_range_get(range, &low, &high);
        if (status != TN_OK)
            return tn_error_prefix("%s: %s: ", list->who, item->path);
        item->low = tn_tensor_keep(low);
        item->high = tn_tensor_keep(high);
    }
    if (status == TN_OK && used > 0)
        status = tn_fail(TN_ERR_RUNTIME,
                         "%s: net: modules without data: %s; expected calls of the network that "
                         "reach them, or a scheme that skips them",
                         list->who, names);
    return status;
}

tn_status flow_convert(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs,
                       tn_quantize_report *report)
{
    flow_list list = { .who = "tn_module_quantize_convert", .net = net };
    tn_status status = TN_OK;

    if (report != NULL)
        memset(report, 0, sizeof *report);
    if (net == NULL)
        return tn_fail(TN_ERR_VALUE, "%s: net: it is NULL; expected a module", list.who);
    status = collect_prepared(&list);
    if (status == TN_OK)
        status = read_ranges(&list);
    if (status == TN_OK)
        status = flow_replace(&list, inputs, n_inputs, report);
    for (int64_t i = 0; i < list.count && status == TN_OK; i++)
        status = flow_unprepare(list.at[i].module, list.at[i].made != NULL);
    flow_free(&list);
    return status;
}
