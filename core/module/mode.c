/* SPDX-License-Identifier: MIT
 *
 * Settings for a whole tree: training or evaluation, gradients, requires_grad. */
#include "core/module/depth.h"
#include "core/module/mode_seen.h"
#include "core/op/needed.h"
#include "core/tensor/trace.h"

#include <tenon/ops.h>

/* ---- the mode that a trace sees -------------------------------------------------------------- */

static _Thread_local tn__mode_seen seen TN__TLS_NEAR;

tn__mode_seen tn__mode_see(tn__mode_seen mode)
{
    tn__mode_seen before = seen;

    seen = mode;
    return before;
}

bool tn__mode_is_training(const tn_module *module)
{
    return tn__likely(seen == TN__MODE_OWN || tn__tracer_here == NULL) ? module->training
                                                                       : seen == TN__MODE_TRAINING;
}

/* ---- training and eval ----------------------------------------------------------------------- */

tn_status tn__module_set_mode(tn_module *module, bool training)
{
    tn_status status = TN_OK;

    module->training = training;
    if (module->layer != NULL && module->layer->train != NULL) {
        const char *before = tn__error_plugin(module->plugin != NULL ? module->plugin->id : "");
        uint64_t failures = tn_error_mark();
        char what[128];
        tn_snprint(what, sizeof what, "layer %s: train", module->layer->name);
        status = tn_error_returned(module->layer->train(module, training), failures, what);
        tn__error_plugin(before);
    }
    return status;
}

static tn_status set_mode(tn_module *module, bool training, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    module->training = training;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++)
        if (module->children.at[i].child != NULL && tn__walk_child_is_first(module, i))
            status = set_mode(module->children.at[i].child, training, depth + 1);
    return status == TN_OK ? tn__module_set_mode(module, training) : status;
}

tn_status tn_module_train(tn_module *module, bool training)
{
    if (module == NULL)
        return tn_error_null("tn_module_train: module");
    return set_mode(module, training, 0);
}

/* ---- changing gradients without allocating --------------------------------------------------- */

/* Applies `change` to a module and to every module below it. A module that occurs several times is
 * changed several times, which does no harm. */
static tn_status apply(tn_module *module, tn_status (*change)(tn_module *module, bool value),
                       bool value, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    tn_status status = change(module, value);
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++)
        if (module->children.at[i].child != NULL)
            status = apply(module->children.at[i].child, change, value, depth + 1);
    return status;
}

static tn_status clear_gradients(tn_module *module, bool value)
{
    (void)value;
    for (int64_t i = 0; i < module->parameters.count; i++) {
        tn_tensor *tensor = module->parameters.at[i].tensor;
        if (tn__is_none(tensor))
            continue;
        tn_status status = tn_tensor_set_grad(tensor, TN_NONE);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status change_requires_grad(tn_module *module, bool value)
{
    for (int64_t i = 0; i < module->parameters.count; i++) {
        tn_tensor *tensor = module->parameters.at[i].tensor;
        if (tn__is_none(tensor))
            continue;
        tn_status status = tn_tensor_set_requires_grad(tensor, value);
        if (status != TN_OK) {
            tn_error_prefix("parameter '%s' of %s: ", module->parameters.at[i].name, module->type);
            return status;
        }
    }
    return TN_OK;
}

tn_status tn_module_zero_grad(tn_module *module)
{
    if (module == NULL)
        return tn_error_null("tn_module_zero_grad: module");
    return apply(module, clear_gradients, false, 0);
}

tn_status tn_module_set_requires_grad(tn_module *module, bool requires_grad)
{
    if (module == NULL)
        return tn_error_null("tn_module_set_requires_grad: module");
    return apply(module, change_requires_grad, requires_grad, 0);
}

/* ---- filling gradients with zeros ------------------------------------------------------------ */

tn_status tn__module_zero_grad(tn_tensor *tensor)
{
    tn_tensor *gradient = tn_tensor_grad(tensor);
    if (gradient == NULL || tn__is_none(gradient))
        return TN_OK;
    if (!tn_tensor_is_leaf(gradient)) {
        gradient = tn_tensor_detach(gradient);
        tn_status status = gradient != NULL ? tn_tensor_set_grad(tensor, gradient)
                                            : tn_error_last_code();
        if (status != TN_OK)
            return status;
    } else if (tn_tensor_requires_grad(gradient)) {
        tn_status status = tn_tensor_set_requires_grad(gradient, false);
        if (status != TN_OK)
            return status;
    }
    tn_fill_options zero = TN_FILL_OPTIONS;
    const tn_op *fill = tn__op_needed(TN__NEED_fill);
    zero.value = tn_scalar_float(0.0);
    return fill != NULL ? tn_op_call_into(fill, &gradient, 1, &zero, gradient)
                        : tn_error_last_code();
}

tn_status tn_module_zero_grad_in_place(tn_module *module)
{
    if (module == NULL)
        return tn_error_null("tn_module_zero_grad_in_place: module");
    tn__walk walk = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(module, TN_SLOT_PARAMETER, false, &walk);
    uint64_t scope = tn_scope_begin();
    tn_grad_begin(false);
    for (int64_t i = 0; i < walk.count && status == TN_OK; i++)
        status = tn__module_zero_grad(walk.at[i].tensor);
    tn_grad_end();
    tn_scope_end(scope);
    tn__walk_free(&walk);
    return status;
}
