/* SPDX-License-Identifier: MIT
 *
 * One step of a training: forward, loss, backward, optimizer. */
#include "train.h"
#include "work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t step_samples(tn_pack *batch)
{
    tn_tensor *input = tn_pack_count(batch) > 0 ? tn_pack_tensor(batch, 0) : NULL;

    if (input == NULL || tn_tensor_ndim(input) < 1 || tn_pack_count(batch) < 2) {
        tn_fail(TN_ERR_VALUE,
                "data: samples of the wrong form, got %lld entries; expected an input, which is a "
                "tensor, and a target",
                (long long)tn_pack_count(batch));
        return -1;
    }
    if (tn_pack_at(batch, 1).kind != TN_VALUE_TENSOR) {
        tn_fail(TN_ERR_VALUE,
                "data: samples without a target, entry 1 of a batch is %s; expected numbers or "
                "classes, such as those of ImageFolder in place of ImageFiles",
                tn_value_kind_name(tn_pack_at(batch, 1).kind));
        return -1;
    }
    return tn_tensor_size(input, 0);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Adds dimensions of size 1 at the end of a floating target that has as many elements as the output
 * and fewer dimensions: [N] becomes [N, 1]. */
static tn_tensor *fitting_target(tn_tensor *target, tn_tensor *output)
{
    bool numbers = target != NULL && (TN_BIT(tn_tensor_dtype(target)) & TN_MASK_FLOAT) != 0;
    int64_t more;

    if (!numbers || output == NULL || tn_tensor_numel(target) != tn_tensor_numel(output))
        return target;
    more = tn_tensor_ndim(output) - tn_tensor_ndim(target);
    for (; more > 0 && target != NULL; more--)
        target = tn_unsqueeze(target, -1);
    return target;
}

tn_tensor *step_input(const run *r, tn_pack *batch)
{
    tn_tensor *input = tn_pack_tensor(batch, 0);

    if (input == NULL || r->dtype == TN_DTYPE_AUTO || tn_tensor_dtype(input) == r->dtype ||
        (TN_BIT(tn_tensor_dtype(input)) & TN_MASK_FLOAT) == 0)
        return input;
    return tn_cast(input, r->dtype);
}

tn_tensor *step_target(const run *r, tn_pack *batch)
{
    return work_target(tn_pack_tensor(batch, 1), r->dtype);
}

/* Explains a failure of the model with an input of integers, of which those of int64 may be tokens,
 * and of a normalization with the last sample of an epoch alone. */
static tn_status input_failed(tn_tensor *input)
{
    tn_status status = tn_error_last_code();
    tn_dtype dtype = tn_tensor_dtype(input);
    bool floats = (TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) != 0;

    if (!floats && (dtype != TN_I64 || strstr(tn_error_last()->message, "dtype") != NULL))
        tn_error_prefix("the input is %s, which --transform 'ToFloat()' converts: ",
                        tn_dtype_name(dtype));
    else if (tn_tensor_size(input, 0) == 1 &&
             strstr(tn_error_last()->message, "more than 1 value per channel") != NULL)
        tn_error_prefix("this batch, the last one of an epoch, has 1 sample, which another "
                        "--batch-size avoids: ");
    return status;
}

/* Returns whether a batch has one class for each sample, and the output a row of scores for each
 * sample. */
static bool is_classified(const run *r, tn_tensor *target, tn_tensor *output)
{
    return r->classes > 0 && tn_tensor_dtype(target) == TN_I64 && tn_tensor_ndim(target) == 1 &&
           tn_tensor_ndim(output) == 2 && tn_tensor_size(output, 0) == tn_tensor_size(target, 0);
}

/* Computes the loss of a result of the model. *output becomes that result as the loss gets it. */
static tn_status compute_loss(const run *r, tn_tensor *target, tn_tensor **output, tn_tensor **loss)
{
    tn_tensor *given[2];
    tn_status status;

    *output = work_scores(*output, target);
    if (*output == NULL)
        return tn_error_last_code();
    if (is_classified(r, target, *output) && tn_tensor_size(*output, 1) < r->classes)
        return tn_fail(TN_ERR_VALUE,
                       "model: too few outputs, got %lld; expected one for each of the %lld "
                       "classes of the data",
                       (long long)tn_tensor_size(*output, 1), (long long)r->classes);
    given[0] = *output;
    given[1] = fitting_target(target, *output);
    /* not while a whole step is recorded, of which the call would become a part */
    if (given[1] != NULL && r->step == 0 && r->whole == NULL && r->pending == 0 &&
        work_check_loss(r->criterion, *output, target) != TN_OK)
        return tn_error_last_code();
    status = given[1] != NULL ? tn_module_call_many(r->criterion, given, 2, loss, 1)
                              : tn_error_last_code();
    if (status == TN_OK && tn_tensor_numel(*loss) != 1)
        return tn_fail(TN_ERR_VALUE, "--loss: the result has %lld elements; expected one number",
                       (long long)tn_tensor_numel(*loss));
    return status;
}

static tn_status forward(run *r, tn_module *module, tn_pack *batch, tn_tensor **output,
                         tn_tensor **loss)
{
    tn_tensor *input = step_input(r, batch), *target = step_target(r, batch);
    tn_status status;

    if (input == NULL || target == NULL)
        return tn_error_last_code();
    status = tn_module_call_many(module, &input, 1, output, 1);
    return status == TN_OK ? compute_loss(r, target, output, loss) : input_failed(input);
}

tn_status step_forward(run *r, tn_module *module, tn_pack *batch, tn_tensor **output,
                       tn_tensor **loss)
{
    tn_status status = TN_OK;

    if (r->amp == NULL)
        return forward(r, module, batch, output, loss);
    status = tn_autocast_begin(r->amp, TN_DTYPE_AUTO, true);
    if (status == TN_OK)
        status = forward(r, module, batch, output, loss);
    tn_autocast_end();
    return status;
}

/* ---- classes --------------------------------------------------------------------------------- */

static tn_status check_classes(const run *r, const int64_t *truth, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (truth[i] < 0 || truth[i] >= r->classes)
            return tn_fail(TN_ERR_VALUE,
                           "data: class out of range, got %lld in sample %lld of a batch; expected "
                           "0 to %lld",
                           (long long)truth[i], (long long)i, (long long)r->classes - 1);
    return TN_OK;
}

tn_status step_compare(run *r, tn_pack *batch, tn_tensor *output, int64_t *truth,
                       int64_t *predicted, bool *known)
{
    TN_SCOPE;
    tn_tensor *target = step_target(r, batch), *largest;
    int64_t count;
    tn_status status;

    if (target == NULL)
        return tn_error_last_code();
    count = tn_tensor_ndim(target) > 0 ? tn_tensor_size(target, 0) : 0;
    *known = is_classified(r, target, output);
    if (!*known)
        return TN_OK;
    status = tn_tensor_copy_out(target, truth, (size_t)count * sizeof *truth);
    if (status == TN_OK)
        status = check_classes(r, truth, count);
    if (status != TN_OK)
        return status;
    tn_grad_begin(false);
    largest = tn_argmax(output, 1);
    tn_grad_end();
    return largest != NULL
               ? tn_tensor_copy_out(largest, predicted, (size_t)count * sizeof *predicted)
               : tn_error_last_code();
}

/* Compares the labels with the classes before the loss reads them. */
static tn_status check_labels(run *r, tn_pack *batch)
{
    tn_tensor *target = step_target(r, batch);
    int64_t count = target != NULL ? tn_tensor_numel(target) : 0, *truth;
    tn_status status;

    if (target == NULL)
        return tn_error_last_code();
    if (r->classes == 0 || tn_tensor_dtype(target) != TN_I64 || tn_tensor_ndim(target) != 1)
        return TN_OK;
    truth = tn_malloc((size_t)(count + 1) * sizeof *truth);
    if (truth == NULL)
        return TN_ERR_MEMORY;
    status = tn_tensor_copy_out(target, truth, (size_t)count * sizeof *truth);
    if (status == TN_OK)
        status = check_classes(r, truth, count);
    tn_free(truth);
    return status;
}

/* Adds the correct predictions of a batch to the sums of the epoch. */
static tn_status count_right(run *r, tn_pack *batch, tn_tensor *output, int64_t samples)
{
    int64_t *truth = tn_malloc((size_t)samples * 2 * sizeof *truth), *predicted;
    bool known = false;
    tn_status status;

    if (truth == NULL)
        return TN_ERR_MEMORY;
    predicted = truth + samples;
    status = step_compare(r, batch, output, truth, predicted, &known);
    if (known && status == TN_OK)
        r->now.compared += samples;
    for (int64_t i = 0; i < samples && known && status == TN_OK; i++)
        r->now.right += truth[i] == predicted[i];
    tn_free(truth);
    return status;
}

/* ---- the step -------------------------------------------------------------------------------- */

static tn_status backward(run *r, tn_tensor *loss, int64_t share)
{
    tn_tensor *part = share > 1 ? tn_mul_scalar(loss, 1.0 / (double)share) : loss;

    if (part != NULL && r->scaler != NULL)
        part = tn_grad_scaler_scale(r->scaler, part);

    return part != NULL ? tn_backward(part) : tn_error_last_code();
}

static tn_status clip(const run *r)
{
    return setting_text(r->set, SET_CLIP_NORM) == NULL
               ? TN_OK
               : tn_clip_grad_norm(r->learning, r->n_learning,
                                   setting_number(r->set, SET_CLIP_NORM), 2.0, false, NULL);
}

/* ---- whole steps ----------------------------------------------------------------------------- */

/* The loss of a whole step: a module that gets the result of the model and the target. */
static tn_status call_loss(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *result = tn_pack_tensor(input, 0), *target = tn_pack_tensor(input, 1), *loss = NULL;
    tn_status status = result != NULL && target != NULL
                           ? compute_loss(tn_module_user(self), target, &result, &loss)
                           : tn_error_last_code();

    return status == TN_OK ? tn_pack_add(output, NULL, tn_value_tensor(loss)) : status;
}

static tn_status clip_whole(void *user)
{
    return clip(user);
}

tn_status step_compile(run *r)
{
    tn_step_options options = TN_STEP_OPTIONS;
    tn_status status;

    if (setting_count(r->set, SET_ACCUMULATE) > 1)
        return tn_fail(TN_ERR_VALUE,
                       "--compile-step: a step has one batch, got --accumulate %lld; expected "
                       "--accumulate 1, or --compile instead of --compile-step",
                       (long long)setting_count(r->set, SET_ACCUMULATE));
    r->loss = tn_module_plain("Loss");
    status = r->loss != NULL ? tn_module_set_call(r->loss, call_loss, r, NULL)
                             : tn_error_last_code();
    if (status == TN_OK)
        status = tn_module_add_child(r->loss, "criterion", r->criterion);
    if (status != TN_OK)
        return status;
    options.gradients = setting_text(r->set, SET_CLIP_NORM) != NULL ? clip_whole : NULL;
    options.user = r;
    r->whole = tn_step_new(r->model, r->loss, r->optimizer, &options);
    return r->whole != NULL ? TN_OK : tn_error_prefix("--compile-step: ");
}

/* Takes a step with a batch. */
static tn_status run_whole(const run *r, tn_pack *batch, tn_tensor **output, tn_tensor **loss)
{
    tn_tensor *in[] = { step_input(r, batch), step_target(r, batch) }, *out[2];
    tn_status status = in[0] != NULL && in[1] != NULL ? tn_step_run(r->whole, in, 2, out, 2)
                                                      : tn_error_last_code();

    if (status != TN_OK)
        return status;
    *loss = out[0];
    *output = work_scores(out[1], in[1]);
    return *output != NULL ? TN_OK : tn_error_last_code();
}

tn_status step_batch(run *r, tn_pack *batch, int64_t share, double *loss)
{
    TN_SCOPE;
    tn_tensor *output = NULL, *result = NULL;
    uint64_t random[3], mark = tn_error_mark();
    int64_t samples = step_samples(batch);
    tn_status status = samples > 0 ? check_labels(r, batch) : tn_error_last_code();

    if (status == TN_OK)
        status = tn_random_get_state(random);
    if (status == TN_OK && r->pending == 0)
        status = tn_optimizer_zero_grad(r->optimizer);
    if (status == TN_OK)
        status = r->whole != NULL ? run_whole(r, batch, &output, &result)
                                  : step_forward(r, r->wrapped != NULL ? r->wrapped : r->model,
                                                 batch, &output, &result);
    if (status == TN_OK && r->whole == NULL)
        status = backward(r, result, share);
    if (status != TN_OK)
        return status;
    *loss = tn_item(result);
    if (!isfinite(*loss))
        return tn_error_mark() != mark ? tn_error_last_code()
                                       : nonfinite_find(r, batch, random, *loss);
    r->now.loss += *loss * (double)samples;
    r->now.samples += samples;
    r->counted += samples;
    r->pending++;
    return count_right(r, batch, output, samples);
}

/* What the closure of a step needs. */
struct evaluation {
    run *run;
    tn_pack *batch;
};

/* Computes the loss of a batch and its gradients for an optimizer that asks for them. */
static tn_tensor *evaluate(void *user)
{
    struct evaluation *e = user;
    tn_tensor *output = NULL, *loss = NULL;
    tn_status status = tn_optimizer_zero_grad(e->run->optimizer);

    if (status == TN_OK)
        status = step_forward(e->run, e->run->model, e->batch, &output, &loss);
    if (status == TN_OK)
        status = backward(e->run, loss, 1);
    if (status == TN_OK)
        status = clip(e->run);
    return status == TN_OK ? loss : NULL;
}

static tn_status step_evaluating(run *r, tn_pack *batch)
{
    struct evaluation e = { r, batch };

    return tn_optimizer_step_with(r->optimizer, evaluate, &e) != NULL ? TN_OK
                                                                      : tn_error_last_code();
}

tn_status step_take(run *r, tn_pack *batch)
{
    TN_SCOPE;
    tn_status status = TN_OK;
    bool taken = true;

    if (r->scaler != NULL)
        status = tn_grad_scaler_unscale_(r->scaler, r->optimizer);
    if (status == TN_OK && r->whole == NULL)
        status = clip(r);
    if (status == TN_OK && r->evaluates)
        status = step_evaluating(r, batch);
    else if (status == TN_OK && r->scaler == NULL && r->whole == NULL)
        status = tn_optimizer_step(r->optimizer);
    else if (status == TN_OK && r->scaler != NULL)
        status = tn_grad_scaler_step(r->scaler, r->optimizer, &taken);
    if (status == TN_OK && r->scaler != NULL)
        status = tn_grad_scaler_update(r->scaler);
    if (status == TN_OK && taken && r->average != NULL)
        status = tn_average_update(r->average, r->model);
    if (status != TN_OK)
        return status;
    r->pending = 0;
    r->step++;
    return TN_OK;
}
