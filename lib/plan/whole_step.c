/* SPDX-License-Identifier: MIT
 *
 * Whole steps of training (tn_step_new): a module of the core calls the network and the loss. Its
 * call is recorded with the gradients, as for plans of training, and the updates of the optimizer
 * are added. */
#include "lib/plan/whole_step.h"

#include "lib/parametrize/value_cache.h"
#include "core/grad/internal.h"
#include "core/module/hooks.h"
#include "core/tensor/autocast.h"
#include "core/tensor/thread.h"

enum { BINDINGS = 8 };

struct tn_step {
    tn_module *root; /* calls the network and the loss */
    tn_optimizer *optimizer;
    tn_step_options options;
    bool has_loss;
    int64_t n_out;    /* of the call that is being recorded */
    tn__whole *plans; /* the one used last comes first */
};

static void plan_drop(tn__whole *plan)
{
    if (plan == NULL)
        return;
    tn__plan_binding_drop(plan->steps); /* before what it refers to */
    tn__plan_binding_drop(plan->backward);
    tn__plan_train_drop(plan->train);
    if (plan->one != NULL)
        tn_tensor_drop(plan->one);
    tn_free(plan->parameters);
    tn_free(plan);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Returns the tensors of a pack, which the caller frees. */
static tn_tensor **tensors_of(const tn_pack *pack, int64_t *count)
{
    tn_tensor **list;

    *count = tn__values_count(pack, "results");
    list = *count >= 0 ? tn_calloc((size_t)*count + 1, sizeof(tn_tensor *)) : NULL;
    if (list != NULL)
        tn__values_list(pack, list);
    return list;
}

static tn_status call_loss(tn_module *self, tn_tensor *const *results, int64_t count,
                           tn_value target, tn_tensor **loss)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor **list = NULL;
    tn_status status = in != NULL && out != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK && count > 0)
        status = tn_pack_add(in, NULL, tn_value_tensor(results[0]));
    if (status == TN_OK)
        status = tn_pack_add(in, NULL, target);
    if (status == TN_OK)
        status = tn_module_call_pack(tn_module_child(self, "loss"), in, out);
    if (status == TN_OK && (list = tensors_of(out, &count)) == NULL)
        status = tn_error_last_code();
    *loss = status == TN_OK && count > 0 ? tn_tensor_to_scope(tn_tensor_keep(list[0])) : TN_NONE;
    tn_free(list);
    tn_pack_drop(in);
    tn_pack_drop(out);
    return status;
}

/* Adds to the output the loss and, without their history, the results. */
static tn_status add_results(const tn_step *step, tn_tensor *loss, tn_tensor *const *results,
                             int64_t count, tn_pack *output)
{
    tn_status status = TN_OK;

    if (!tn__tensor_ok(loss))
        return tn__tensor_bad(loss, "loss");
    if (step->n_out - 1 > count)
        return tn_fail(TN_ERR_VALUE, "out: too many, got %lld; expected at most %lld",
                       (long long)step->n_out, (long long)count + 1);
    status = tn_pack_add(output, NULL, tn_value_tensor(loss));
    for (int64_t i = 0; i < step->n_out - 1 && status == TN_OK; i++) {
        tn_tensor *result = results[i];

        /* A parameter has no history, and stays what it is. */
        if (tn__tensor_ok(result) && tn__requires_grad(result) && !tn_tensor_is_leaf(result))
            result = tn_tensor_detach(result);
        status = result != NULL ? tn_pack_add(output, NULL, tn_value_tensor(result))
                                : tn_error_last_code();
    }
    return status;
}

static tn_status forward(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const tn_step *step = tn_module_user(self);
    int64_t n_in = tn_pack_count(input) - (step->has_loss ? 1 : 0), count = 0;
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor **results = NULL, *loss = NULL;
    tn_status status = in != NULL && out != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        status = tn_pack_add(in, NULL, tn_pack_at(input, i));
    if (status == TN_OK)
        status = tn_module_call_pack(tn_module_child(self, "module"), in, out);
    if (status == TN_OK && (results = tensors_of(out, &count)) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK && step->has_loss)
        status = call_loss(self, results, count, tn_pack_at(input, n_in), &loss);
    else if (status == TN_OK)
        loss = count > 0 ? results[0] : TN_NONE;
    if (status == TN_OK)
        status = add_results(step, loss, results, count, output);
    tn_free(results);
    tn_pack_drop(in);
    tn_pack_drop(out);
    return status;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static tn_status record(tn_step *step, tn__whole *plan, const tn_pack *input, tn_tensor *const *in,
                        int64_t n_in)
{
    tn__plan_train *t = tn__plan_train_record(step->root, input, in, n_in, step->options.gradients,
                                              step->options.user);
    tn_tensor **gradients;

    plan->train = t;
    if (t == NULL)
        return tn_error_last_code();
    if (t->why != NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s", t->why);
    if (t->n_source_inputs > 0)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "input %lld: it requires a gradient, and a step returns none of inputs; "
                       "expected an input that does not require one (tn_detach)",
                       (long long)t->source_inputs[0]);
    if (t->n_wants == 0 || t->outs[0]->numel != 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "loss: wrong tensor, got %lld elements%s; expected one number that depends "
                       "on parameters that require gradients",
                       (long long)t->outs[0]->numel,
                       t->n_wants == 0 ? ", which require no gradient" : "");
    plan->one = tn__grad_ones(t->outs[0]);
    gradients = plan->one != NULL ? tn_malloc((size_t)t->n_out * sizeof(tn_tensor *)) : NULL;
    if (gradients == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < t->n_out; i++)
        gradients[i] = i == 0 ? plan->one : TN_NONE;
    plan->backward = tn__plan_backward(t, gradients);
    tn_free(gradients);
    return plan->backward != NULL ? tn__plan_whole_step_merge(plan, step->optimizer)
                                  : tn_error_last_code();
}

static tn__whole *make(tn_step *step, const tn_pack *input, tn_tensor *const *in, int64_t n_in)
{
    int64_t count = tn_optimizer_count(step->optimizer);
    tn__whole *plan = tn_calloc(1, sizeof *plan);
    tn_status status = TN_ERR_MEMORY;

    if (plan == NULL)
        return NULL;
    plan->n_out = step->n_out;
    plan->parameters = tn_malloc((size_t)(count + 1) * sizeof(tn_tensor *));
    if (plan->parameters != NULL) {
        for (; plan->n_parameters < count; plan->n_parameters++)
            plan->parameters[plan->n_parameters] = tn_optimizer_parameter(step->optimizer,
                                                                          plan->n_parameters);
        status = record(step, plan, input, in, n_in);
    }
    if (status == TN_OK)
        return plan;
    plan_drop(plan);
    return NULL;
}

static bool holds(const tn_step *step, const tn__whole *plan)
{
    bool same = tn_optimizer_count(step->optimizer) == plan->n_parameters;

    for (int64_t i = 0; i < plan->n_parameters && same; i++)
        same = tn_optimizer_parameter(step->optimizer, i) == plan->parameters[i];
    return same && tn__plan_train_holds(plan->train, step->root);
}

/* Returns the plan for these inputs, first in the list; drops those that hold no longer. */
static tn__whole *find(tn_step *step, const tn_pack *input, tn_tensor *const *in, int64_t n_in)
{
    for (tn__whole **at = &step->plans; *at != NULL;) {
        tn__whole *plan = *at;

        if (!holds(step, plan)) {
            *at = plan->next;
            plan_drop(plan);
        } else if (plan->n_out == step->n_out &&
                   tn__plan_train_fits(plan->train, input, in, n_in)) {
            *at = plan->next;
            plan->next = step->plans;
            return step->plans = plan;
        } else {
            at = &plan->next;
        }
    }
    return NULL;
}

static tn__whole *take(tn_step *step, const tn_pack *input, tn_tensor *const *in, int64_t n_in)
{
    tn__whole *plan = find(step, input, in, n_in);
    uint32_t count = 0;

    if (plan != NULL || (plan = make(step, input, in, n_in)) == NULL)
        return plan;
    plan->next = step->plans;
    step->plans = plan;
    for (tn__whole **at = &step->plans; *at != NULL; at = &(*at)->next)
        if (++count > step->options.bindings) {
            plan_drop(*at);
            *at = NULL;
            break;
        }
    return plan;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Refuses the modes in which an eager step would do more than a plan, or something else. */
static tn_status check_mode(const tn_step *step)
{
    const char *where = tn__tracer_here != NULL      ? "while this thread traces a module"
                        : tn__making.is.inference    ? "in inference mode"
                        : tn__autocast_on()          ? "in a region of autocast"
                        : tn__anomaly_on()           ? "in anomaly mode"
                        : tn__recompute_here != NULL ? "in the function of a recomputation"
                        : tn__value_cache_on()       ? "while parametrizations are cached"
                                                     : NULL;

    if (where != NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "not allowed %s; expected an eager step there",
                       where);
    if (tn__plan_parts_lazy(step->root))
        return tn_fail(TN_ERR_VALUE, "module: a parameter has no shape yet; expected a call of the "
                                     "module before");
    return tn__step_takes_gradients(step->optimizer);
}

static tn_status check_hooks(const tn__plan_train *t)
{
    for (int64_t i = 0; i < t->n_sources; i++)
        if (tn__grad_has_hooks(t->sources[i]))
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "module: a parameter has hooks for its gradient, which a plan does not "
                           "call; expected none");
    return TN_OK;
}

/* Runs the steps of a plan. `in` has space for one more input. The caller owns out[i]. */
static tn_status run(tn__whole *plan, tn_tensor **in, tn_tensor **out)
{
    tn__plan_train *t = plan->train;
    tn__plan_given given = { 0 };
    tn__plan_state *state;
    tn_status status = check_hooks(t);

    in[t->n_in] = plan->one;
    if (status == TN_OK && t->blocks > 0) /* four words are a block */
        status = tn_random_take(t->blocks * 4, 1, &given.seed, &given.block);
    if (status != TN_OK || (state = tn__plan_train_take(t, plan->steps)) == NULL)
        return tn_error_last_code();
    status = tn__plan_run(plan->steps, state, in, out, &given);
    tn__plan_train_give(t, plan->steps, state);
    return status;
}

/* Gives the results to the scope. */
static tn_status give(tn_tensor **out, int64_t n_out, tn_status status)
{
    for (int64_t i = 0; i < n_out; i++) {
        if (status == TN_OK && (out[i] = tn_tensor_to_scope(out[i])) == NULL)
            status = tn_error_last_code();
        else if (status != TN_OK && tn__tensor_ok(out[i]))
            tn_tensor_drop(out[i]);
    }
    for (int64_t i = 0; i < n_out && status != TN_OK; i++)
        out[i] = NULL;
    return status;
}

/* Parameters are updated before the last kernel of backward has run, so the inputs of a run must be
 * other memory. */
static tn_status check_inputs(const tn_step *step, tn_tensor *const *in, int64_t n_in)
{
    for (int64_t i = 0; i < n_in; i++) {
        int64_t writer = tn__tensor_ok(in[i]) ? tn__step_writer(step->optimizer, in[i]->storage)
                                              : -1;

        if (writer >= 0)
            return tn_fail(TN_ERR_VALUE,
                           "in: input %lld: it shares memory with parameter %lld of the optimizer, "
                           "or with a state of it, which the step writes; expected memory of its "
                           "own (tn_copy)",
                           (long long)i, (long long)writer);
    }
    return TN_OK;
}

/* Observers see one step of the optimizer, as of an eager step, and all updates in it. */
static tn_status run_whole(tn_step *step, tn__whole *plan, tn_tensor **in, tn_tensor **out)
{
    tn__range range;
    tn_status status;

    tn__range_begin(&range, TN_RANGE_STEP, tn_optimizer_type(step->optimizer), 0);
    status = give(out, step->n_out, run(plan, in, out));
    if (status == TN_OK)
        status = tn__step_hooks_after(step->optimizer);
    return tn__range_end(&range, status);
}

static tn_status run_pack(tn_step *step, const tn_pack *input, tn_tensor **out)
{
    int64_t n_in = tn__values_count(input, "in");
    tn_tensor **in = tn_calloc((size_t)n_in + 2, sizeof(tn_tensor *));
    tn__whole *plan = NULL;
    tn_status status = TN_ERR_MEMORY;

    if (in != NULL) {
        tn__values_list(input, in);
        status = check_inputs(step, in, n_in);
    }
    if (status == TN_OK && (status = tn_grad_begin(true)) == TN_OK) {
        plan = take(step, input, in, n_in);
        tn_grad_end();
        status = plan != NULL ? run_whole(step, plan, in, out) : tn_error_last_code();
    }
    tn_free(in);
    return status;
}

tn_status tn_step_run(tn_step *step, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                      int64_t n_out)
{
    tn_pack *input;
    tn_status status;

    if (!tn__given(step != NULL, "tn_step_run: step") ||
        !tn__given(in != NULL || n_in <= 0, "tn_step_run: in") ||
        !tn__given(out != NULL, "tn_step_run: out"))
        return TN_ERR_VALUE;
    if (n_in < (step->has_loss ? 2 : 1) || n_out < 1)
        return tn_fail(TN_ERR_VALUE,
                       "tn_step_run: wrong number of tensors, got %lld in, %lld out; expected %s, "
                       "and one result or more",
                       (long long)n_in, (long long)n_out,
                       step->has_loss ? "inputs and a target" : "an input");
    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    step->n_out = n_out;
    status = check_mode(step);
    input = status == TN_OK ? tn_pack_new() : NULL;
    if (status == TN_OK && input == NULL)
        status = TN_ERR_MEMORY;
    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        if (in[i] == NULL)
            status = tn_error_null("in");
        else
            status = tn_pack_add(input, NULL,
                                 tn__is_none(in[i]) ? tn_value_none() : tn_value_tensor(in[i]));
    }
    if (status == TN_OK)
        status = run_pack(step, input, out);
    tn_pack_drop(input);
    return status == TN_OK ? TN_OK : tn_error_prefix("tn_step_run: ");
}

/* ---- the step -------------------------------------------------------------------------------- */

static tn_status fill(tn_step *step, tn_module *module, tn_module *loss)
{
    tn_status status = tn__step_takes_gradients(step->optimizer);

    step->root = status == TN_OK ? tn_module_plain("Step") : NULL;
    if (step->root == NULL)
        return tn_error_last_code();
    status = tn_module_set_call(step->root, forward, step, NULL);
    if (status == TN_OK)
        status = tn_module_add_child(step->root, "module", module);
    if (status == TN_OK && loss != NULL)
        status = tn_module_add_child(step->root, "loss", loss);
    return status;
}

tn_step *tn_step_new(tn_module *module, tn_module *loss, tn_optimizer *optimizer,
                     const tn_step_options *options)
{
    tn_step *step;

    if (!tn__given(module != NULL, "tn_step_new: module") ||
        !tn__given(optimizer != NULL, "tn_step_new: optimizer"))
        return NULL;
    if (options != NULL && options->size < sizeof *options) {
        tn_fail(TN_ERR_VALUE,
                "tn_step_new: options.size: too small, got %u; initialize the struct with "
                "TN_STEP_OPTIONS",
                options->size);
        return NULL;
    }
    step = tn_calloc(1, sizeof *step);
    if (step == NULL)
        return NULL;
    if (options != NULL)
        step->options = *options;
    if (step->options.bindings == 0)
        step->options.bindings = BINDINGS;
    step->has_loss = loss != NULL;
    step->optimizer = tn__optimizer_keep(optimizer);
    if (fill(step, module, loss) == TN_OK)
        return step;
    tn_error_prefix("tn_step_new: ");
    tn_step_drop(step);
    return NULL;
}

void tn_step_drop(tn_step *step)
{
    if (step == NULL)
        return;
    while (step->plans != NULL) {
        tn__whole *plan = step->plans;

        step->plans = plan->next;
        plan_drop(plan);
    }
    if (step->root != NULL)
        tn_module_drop(step->root);
    tn_optimizer_drop(step->optimizer);
    tn_free(step);
}

/* ---- what a step is -------------------------------------------------------------------------- */

static const tn__plan_binding *used_last(const tn_step *step)
{
    if (step->plans != NULL)
        return step->plans->steps;
    tn_fail(TN_ERR_VALUE, "tn_step: no plan yet; call tn_step_run first");
    return NULL;
}

tn_status tn_step_describe(tn_step *step, tn_plan_stats *out)
{
    const tn__plan_binding *b;

    if (!tn__given(step != NULL, "tn_step_describe: step") ||
        !tn__given(out != NULL, "tn_step_describe: out"))
        return TN_ERR_VALUE;
    b = used_last(step);
    if (b == NULL)
        return tn_error_last_code();
    tn__plan_stats_of(b, out);
    for (const tn__whole *plan = step->plans; plan != NULL; plan = plan->next)
        out->bindings++;
    return TN_OK;
}

int64_t tn_step_print(tn_step *step, char *out, size_t size)
{
    tn__text text = { 0 };
    const tn__plan_binding *b;

    if (!tn__given(step != NULL, "tn_step_print: step") || (b = used_last(step)) == NULL)
        return -1;
    tn__plan_print_steps(&text, b);
    return tn__text_give(&text, out, size);
}
