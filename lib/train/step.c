/* SPDX-License-Identifier: MIT
 *
 * A step of an optimizer: the closure that evaluates the loss, the parameters of each group, and
 * the call of the rule. Gradients are clipped by <tenon/parameters.h> and scaled by
 * <tenon/scaler.h>, whose functions call operators and are compiled into the program. */
#include "core/tensor/capture.h"
#include "lib/train/private.h"

/* Checks the state of the thread after the plugin's rule was called (TENON_CHECK). Returns the
 * status to continue with. */
static tn_status judge(const tn_optimizer *optimizer, const tn__boundary_thread *thread,
                       tn_status status)
{
    return tn__boundary_leave(thread, optimizer->plugin != NULL ? optimizer->plugin->id : "",
                              optimizer->def->name,
                              tn__error_status_of(status, optimizer->def->name));
}

/* Moves the state tensors of a parameter to the parameter's device, which tn_module_to may have
 * changed. */
static tn_status follow(tn__param *param)
{
    const tn_device *device = tn_tensor_device(param->tensor);
    for (int64_t i = 0; i < param->count; i++) {
        tn_tensor *state = param->states[i].tensor;
        if (tn__likely(tn_tensor_device(state) == device))
            continue;
        tn_meta meta;
        tn__tensor_meta(state, &meta);
        meta.flags = 0;
        meta.offset = 0;
        tn_tensor *moved = tn__tensor_make(&meta, device);
        if (moved == NULL)
            return tn_error_last_code();
        tn_status status = tn__copy(moved, state);
        if (status == TN_OK)
            status = tn_tensor_swap(state, moved);
        tn_tensor_drop(moved);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_tensor *gradient_of(const tn__param *param)
{
    tn_tensor *gradient = tn_tensor_grad(param->tensor);
    return gradient != NULL && !tn__is_none(gradient) ? gradient : NULL;
}

/* The parameters of a group that have a gradient, or all of them if the rule takes a closure. The
 * arrays have space for all parameters that the optimizer had when the step began. */
struct batch {
    tn_tensor **parameters, **gradients;
    int64_t *index;
    int64_t count, room;
    const struct given *given; /* NULL: .grad has the gradients */
};

static bool takes_closure(const tn_optimizer *optimizer)
{
    return (optimizer->def->flags & TN_OPTIMIZER_CLOSURE) != 0;
}

/* The gradients of a plan of whole steps. */
struct given {
    const int64_t *index;
    tn_tensor *const *gradients;
    int64_t count;
};

static tn_status batch_fill_given(tn_optimizer *optimizer, int64_t group, struct batch *batch)
{
    const struct given *given = batch->given;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < given->count && status == TN_OK; i++) {
        tn__param *param = &optimizer->params[given->index[i]];

        if (param->group != group)
            continue;
        status = follow(param);
        batch->parameters[batch->count] = param->tensor;
        batch->gradients[batch->count] = given->gradients[i];
        batch->index[batch->count++] = given->index[i];
    }
    return status;
}

static tn_status batch_fill(tn_optimizer *optimizer, int64_t group, struct batch *batch)
{
    tn_status status = TN_OK;

    batch->count = 0;
    if (batch->given != NULL)
        return batch_fill_given(optimizer, group, batch);
    for (int64_t i = 0; i < batch->room && status == TN_OK; i++) {
        tn__param *param = &optimizer->params[i];
        tn_tensor *gradient = param->group == group ? gradient_of(param) : NULL;

        if (param->group != group || (gradient == NULL && !takes_closure(optimizer)))
            continue;
        status = follow(param);
        batch->parameters[batch->count] = param->tensor;
        batch->gradients[batch->count] = gradient;
        batch->index[batch->count++] = i;
    }
    return status;
}

static void count_steps(tn_optimizer *optimizer, const struct batch *batch, int64_t by)
{
    for (int64_t i = 0; i < batch->count; i++)
        optimizer->params[batch->index[i]].steps += by;
}

/* ---- the closure ----------------------------------------------------------------------------- */

/* The closure of a step, as the rule gets it. */
struct evaluation {
    const tn_optimizer *optimizer;
    tn_tensor *(*closure)(void *user);
    void *user;
    tn_tensor *first;    /* the loss of the first call, with a reference; NULL before */
    struct batch *batch; /* gets the new gradients; NULL outside of the rule */
    bool autocast;       /* whether the caller of the step has autocast on */
};

/* Calls the program's closure with recording on; `user` is a struct evaluation. The loss belongs to
 * the scope of the caller, and everything else that the closure made is dropped. */
static tn_tensor *evaluate(void *user)
{
    struct evaluation *evaluation = user;
    struct batch *batch = evaluation->batch;
    const char *before = tn__error_plugin(""); /* the closure is code of the program */
    uint64_t scope = tn_scope_begin();
    tn_tensor *loss = NULL;
    tn_status status = tn_grad_begin(true);

    if (status == TN_OK) {
        bool autocast = tn__autocast_pause();
        uint64_t mark = tn_error_mark();

        tn__autocast_resume(evaluation->autocast);
        loss = evaluation->closure(evaluation->user);
        if (loss == NULL)
            status = tn__error_returned_null(mark, "the closure of tn_optimizer_step_with");
        tn__autocast_resume(autocast);
    }
    tn_grad_end();
    tn_scope_end_with(scope, &loss, loss != NULL ? 1 : 0);
    tn__error_plugin_back(before);
    if (loss != NULL && evaluation->first == NULL)
        evaluation->first = tn_tensor_keep(loss);
    for (int64_t i = 0; batch != NULL && i < batch->count; i++)
        batch->gradients[i] = gradient_of(&evaluation->optimizer->params[batch->index[i]]);
    return loss;
}

/* ---- the rule -------------------------------------------------------------------------------- */

/* Returns the value of the option `capturable` of a group, with which a rule keeps the number of
 * the step and the learning rate on the device; NULL if the rule does not have the option. */
static const bool *capturable(const tn_optimizer *optimizer, int64_t group)
{
    const tn_option *options = optimizer->def->options;
    const tn_option *row = options != NULL ? tn__options_find(options, "capturable") : NULL;

    if (row == NULL || row->kind != TN_OPTION_KIND_BOOL)
        return NULL;
    return (const bool *)((const char *)optimizer->groups[group].data + row->offset);
}

/* Fails if the step would be recorded with numbers of the host, which each launch would repeat. */
static tn_status may_record(const tn_optimizer *optimizer, int64_t group, const struct batch *batch)
{
    const bool *asked = capturable(optimizer, group);
    tn_status status = TN_OK;
    char what[128];

    if (asked != NULL && *asked)
        return TN_OK;
    tn_snprint(what, sizeof what, "optimizer %s: step", optimizer->def->name);
    for (int64_t i = 0; i < batch->count && status == TN_OK; i++)
        status = tn__capture_refuse_on(
            tn_tensor_device(batch->parameters[i]), what,
            asked != NULL ? "each launch would repeat the number of this step and its learning "
                            "rate; expected the option capturable=True"
                          : "each launch would repeat the number of this step and its learning "
                            "rate, and the optimizer has no option capturable");
    return status;
}

/* Performs the step of one group: one call of the rule. */
static tn_status step_group(tn_optimizer *optimizer, int64_t group, struct batch *batch,
                            struct evaluation *evaluation)
{
    uint64_t scope = tn_scope_begin();
    tn_status status = batch_fill(optimizer, group, batch);

    if (status == TN_OK && may_record(optimizer, group, batch) != TN_OK) {
        tn_scope_end(scope);
        return tn_error_last_code();
    }
    if (status == TN_OK && batch->count > 0) {
        const bool closure = takes_closure(optimizer);
        const tn_step_args args = { TN_HEAD(tn_step_args),
                                    .options = optimizer->groups[group].data,
                                    .group = group,
                                    .count = batch->count,
                                    .index = batch->index,
                                    .parameters = batch->parameters,
                                    .gradients = batch->gradients,
                                    .closure = closure ? evaluate : NULL,
                                    .closure_user = closure ? evaluation : NULL };
        tn__boundary_thread thread;

        count_steps(optimizer, batch, 1);
        evaluation->batch = batch;
        tn__boundary_enter(&thread);
        status = judge(optimizer, &thread, optimizer->def->step(optimizer, &args));
        evaluation->batch = NULL;
        if (status != TN_OK)
            count_steps(optimizer, batch, -1);
    }
    tn_scope_end(scope);
    if (status != TN_OK)
        tn_error_prefix("optimizer %s: ", optimizer->def->name);
    return status;
}

static tn_status step_groups(tn_optimizer *optimizer, struct evaluation *evaluation,
                             const struct given *given)
{
    size_t room = (size_t)optimizer->count;
    tn_tensor **tensors = tn_malloc(2 * room * sizeof(tn_tensor *) + room * sizeof(int64_t));
    struct batch batch = { 0 };
    tn_status status = TN_OK;

    if (tensors == NULL)
        return TN_ERR_MEMORY;
    batch.parameters = tensors;
    batch.gradients = tensors + room;
    batch.index = (int64_t *)(void *)(tensors + 2 * room);
    batch.room = (int64_t)room;
    batch.given = given;
    for (int64_t i = 0; i < optimizer->n_groups && status == TN_OK; i++)
        status = step_group(optimizer, i, &batch, evaluation);
    tn_free(tensors);
    return status;
}

/* Performs a step without recording. If the rule does not call the closure itself, the closure is
 * called first. */
static tn_status step_plain(tn_optimizer *optimizer, struct evaluation *evaluation,
                            const struct given *given)
{
    const char *before;
    bool autocast;
    tn_status status;

    evaluation->autocast = tn__autocast_on();
    if (evaluation->closure != NULL && !takes_closure(optimizer)) {
        uint64_t scope = tn_scope_begin();

        status = evaluate(evaluation) != NULL ? TN_OK : tn_error_last_code();
        tn_scope_end(scope);
        if (status != TN_OK)
            return status;
    }
    before = tn__error_plugin(optimizer->plugin != NULL ? optimizer->plugin->id : "");
    tn_grad_begin(false);
    autocast = tn__autocast_pause();
    status = step_groups(optimizer, evaluation, given);
    tn__autocast_resume(autocast);
    tn_grad_end();
    tn__error_plugin(before);
    return status;
}

/* Performs a step between its hooks. */
static tn_status step(tn_optimizer *optimizer, struct evaluation *evaluation)
{
    tn__range range;
    tn_status status;

    tn__optimizer_keep(optimizer); /* a hook or the closure may drop it */
    tn__range_begin(&range, TN_RANGE_STEP, optimizer->def->name, 0);
    status = tn__step_hooks_run(optimizer, TN__STEP_PRE, NULL, NULL);
    if (status == TN_OK)
        status = step_plain(optimizer, evaluation, NULL);
    if (status == TN_OK)
        status = tn__step_hooks_run(optimizer, TN__STEP_POST, NULL, NULL);
    tn__range_end(&range, status);
    tn_optimizer_drop(optimizer);
    return status;
}

tn_status tn_optimizer_step(tn_optimizer *optimizer)
{
    struct evaluation evaluation = { .optimizer = optimizer };

    if (optimizer == NULL)
        return tn_error_null("tn_optimizer_step: optimizer");
    if (takes_closure(optimizer))
        /* PyTorch's wording */
        return tn_fail(TN_ERR_TYPE,
                       "optimizer %s: step() missing 1 required positional argument: 'closure'; "
                       "expected a call of tn_optimizer_step_with",
                       optimizer->def->name);
    return step(optimizer, &evaluation);
}

tn_tensor *tn_optimizer_step_with(tn_optimizer *optimizer, tn_tensor *(*closure)(void *user),
                                  void *user)
{
    struct evaluation evaluation = { .optimizer = optimizer, .closure = closure, .user = user };
    tn_status status;

    if (optimizer == NULL || closure == NULL) {
        tn__error_null_of("tn_optimizer_step_with", "optimizer, closure", optimizer, closure);
        return NULL;
    }
    status = step(optimizer, &evaluation);
    if (status == TN_OK && evaluation.first == NULL)
        status = tn_fail(TN_ERR_RUNTIME,
                         "tn_optimizer_step_with: the rule did not call the closure; expected at "
                         "least one call");
    if (status != TN_OK) {
        tn_tensor_drop(evaluation.first);
        return NULL;
    }
    return tn_tensor_to_scope(evaluation.first);
}

/* ---- plans of whole steps -------------------------------------------------------------------- */

tn_status tn__step_takes_gradients(const tn_optimizer *optimizer)
{
    if (takes_closure(optimizer))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "optimizer %s: it evaluates the loss itself; expected one that takes a step "
                       "after backward",
                       optimizer->def->name);
    if (tn__step_hooks_any(optimizer, TN__STEP_PRE))
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "optimizer %s: hooks run before its step, and a plan of whole steps leaves no "
            "gradients in .grad for them; expected no such hooks",
            optimizer->def->name);
    return TN_OK;
}

bool tn__step_is_elementwise(const tn_optimizer *optimizer)
{
    return (optimizer->def->flags & TN_OPTIMIZER_ELEMENTWISE) != 0;
}

int64_t tn__step_writer(tn_optimizer *optimizer, const tn__storage *storage)
{
    int64_t count = tn_optimizer_count(optimizer);

    for (int64_t i = 0; i < count; i++) {
        const tn__param *param = tn__optimizer_param(optimizer, i);

        if (tn_optimizer_parameter(optimizer, i)->storage == storage)
            return i;
        for (int64_t k = 0; k < param->count; k++)
            if (tn__tensor_ok(param->states[k].tensor) &&
                param->states[k].tensor->storage == storage)
                return i;
    }
    return -1;
}

tn_status tn__step_update(tn_optimizer *optimizer, const int64_t *index,
                          tn_tensor *const *gradients, int64_t count)
{
    const struct given given = { index, gradients, count };
    struct evaluation evaluation = { .optimizer = optimizer };

    return step_plain(optimizer, &evaluation, &given);
}

tn_status tn__step_hooks_after(tn_optimizer *optimizer)
{
    return tn__step_hooks_run(optimizer, TN__STEP_POST, NULL, NULL);
}

/* ---- gradients ------------------------------------------------------------------------------- */

tn_status tn_optimizer_zero_grad(tn_optimizer *optimizer)
{
    tn__range range;
    tn_status status = TN_OK;

    if (optimizer == NULL)
        return tn_error_null("tn_optimizer_zero_grad: optimizer");
    tn__range_begin(&range, TN_RANGE_ZERO_GRAD, optimizer->def->name, 0);
    for (int64_t i = 0; i < optimizer->count && status == TN_OK; i++)
        status = tn_tensor_set_grad(optimizer->params[i].tensor, TN_NONE);
    return tn__range_end(&range, status);
}

tn_status tn_optimizer_zero_grad_in_place(tn_optimizer *optimizer)
{
    tn__range range;
    tn_status status = TN_OK;
    uint64_t scope;

    if (optimizer == NULL)
        return tn_error_null("tn_optimizer_zero_grad_in_place: optimizer");
    tn__range_begin(&range, TN_RANGE_ZERO_GRAD, optimizer->def->name, 0);
    scope = tn_scope_begin();
    tn_grad_begin(false);
    for (int64_t i = 0; i < optimizer->count && status == TN_OK; i++)
        status = tn__module_zero_grad(optimizer->params[i].tensor);
    tn_grad_end();
    tn_scope_end(scope);
    return tn__range_end(&range, status);
}
