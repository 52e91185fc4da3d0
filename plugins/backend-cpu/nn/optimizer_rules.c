/* SPDX-License-Identifier: MIT
 *
 * The kernels of NAdam, RAdam, Adamax, Adagrad, Adadelta, RMSprop, Rprop, ASGD and Lion: each
 * computes the numbers of its step from the options. sdk/operators/optimizer.ops has the
 * formulas. */
#include <math.h>

#include "base/kernel.h"
#include "nn/optimizer.h"

/* Positions of the inputs: numbers, then the list of tensors. */
enum {
    STEP,
    LR,
    STEP_LIST,
    NADAM_MU = 2,
    NADAM_LIST,
    ONLY_LR = 0,
    RATE_LIST,
    RPROP_LIST = 0,
    ETA = 0,
    MU,
    ASGD_LIST
};

static tn_status check_step(const char *op, double step)
{
    if (step >= 1)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: step_tensor: out of range, got %g; expected 1 or more", op,
                   step);
}

static bool supports_nadam_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, NADAM_LIST, 4, reason, size);
}

static double momentum_at(const tn_nadam_step_options *o, double step)
{
    return o->beta1 * (1 - 0.5 * pow(0.96, step * o->momentum_decay));
}

static tn_status run_nadam_step(const tn_call *call)
{
    const tn_nadam_step_options *o = call->options;
    double step = tn__optimizer_number(call->in[STEP], (double)o->step);
    double lr = tn__optimizer_number(call->in[LR], o->lr);
    double product = tn__optimizer_number(call->in[NADAM_MU], 0);
    double mu = momentum_at(o, step), next = momentum_at(o, step + 1);
    const struct tn__rule numbers = {
        .decay = o->decoupled ? 0 : o->weight_decay,
        .shrink = o->decoupled ? 1 - lr * o->weight_decay : 1,
        .follow1 = 1 - o->beta1,
        .keep2 = o->beta2,
        .follow2 = 1 - o->beta2,
        .rate = lr * (1 - mu) / (1 - product),
        .other = lr * next / (1 - product * next),
        .scale = 1 / sqrt(1 - pow(o->beta2, step)),
        .eps = o->eps,
        .maximize = o->maximize,
    };
    tn_status status = check_step("nadam_step", step);

    return status == TN_OK
               ? tn__optimizer_run(call, NADAM_LIST, 4, tn__simd.optimizer->nadam, &numbers)
               : status;
}

static bool supports_radam_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, STEP_LIST, 4, reason, size);
}

static tn_status run_radam_step(const tn_call *call)
{
    const tn_radam_step_options *o = call->options;
    double step = tn__optimizer_number(call->in[STEP], (double)o->step);
    double lr = tn__optimizer_number(call->in[LR], o->lr);
    double power = pow(o->beta2, step), most = 2 / (1 - o->beta2) - 1;
    double rho = most - 2 * step * power / (1 - power);
    double rect = (rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho);
    struct tn__rule numbers = {
        .decay = o->decoupled ? 0 : o->weight_decay,
        .shrink = o->decoupled ? 1 - lr * o->weight_decay : 1,
        .follow1 = 1 - o->beta1,
        .keep2 = o->beta2,
        .follow2 = 1 - o->beta2,
        .rate = lr / (1 - pow(o->beta1, step)),
        .eps = o->eps,
        .maximize = o->maximize,
        .rectified = rho > 5,
    };
    tn_status status = check_step("radam_step", step);

    if (numbers.rectified)
        numbers.rate *= sqrt(rect * (1 - power));
    return status == TN_OK
               ? tn__optimizer_run(call, STEP_LIST, 4, tn__simd.optimizer->radam, &numbers)
               : status;
}

static bool supports_adamax_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, STEP_LIST, 4, reason, size);
}

static tn_status run_adamax_step(const tn_call *call)
{
    const tn_adamax_step_options *o = call->options;
    double step = tn__optimizer_number(call->in[STEP], (double)o->step);
    const struct tn__rule numbers = {
        .decay = o->weight_decay,
        .follow1 = 1 - o->beta1,
        .keep2 = o->beta2,
        .rate = tn__optimizer_number(call->in[LR], o->lr) / (1 - pow(o->beta1, step)),
        .eps = o->eps,
        .maximize = o->maximize,
    };
    tn_status status = check_step("adamax_step", step);

    return status == TN_OK
               ? tn__optimizer_run(call, STEP_LIST, 4, tn__simd.optimizer->adamax, &numbers)
               : status;
}

static bool supports_adagrad_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, STEP_LIST, 3, reason, size);
}

static tn_status run_adagrad_step(const tn_call *call)
{
    const tn_adagrad_step_options *o = call->options;
    double step = tn__optimizer_number(call->in[STEP], (double)o->step);
    const struct tn__rule numbers = {
        .decay = o->weight_decay,
        .rate = tn__optimizer_number(call->in[LR], o->lr) / (1 + (step - 1) * o->lr_decay),
        .eps = o->eps,
        .maximize = o->maximize,
    };
    tn_status status = check_step("adagrad_step", step);

    return status == TN_OK
               ? tn__optimizer_run(call, STEP_LIST, 3, tn__simd.optimizer->adagrad, &numbers)
               : status;
}

static bool supports_adadelta_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, RATE_LIST, 4, reason, size);
}

static tn_status run_adadelta_step(const tn_call *call)
{
    const tn_adadelta_step_options *o = call->options;
    const struct tn__rule numbers = {
        .decay = o->weight_decay,
        .keep2 = o->rho,
        .follow2 = 1 - o->rho,
        .rate = tn__optimizer_number(call->in[ONLY_LR], o->lr),
        .eps = o->eps,
        .maximize = o->maximize,
    };

    return tn__optimizer_run(call, RATE_LIST, 4, tn__simd.optimizer->adadelta, &numbers);
}

static int64_t rmsprop_group(const tn_rmsprop_step_options *o)
{
    return 3 + (o->momentum != 0) + o->centered;
}

static bool supports_rmsprop_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, RATE_LIST, rmsprop_group(call->options), reason, size);
}

static tn_status run_rmsprop_step(const tn_call *call)
{
    const tn_rmsprop_step_options *o = call->options;
    const struct tn__rule numbers = {
        .decay = o->weight_decay,
        .keep2 = o->alpha,
        .follow2 = 1 - o->alpha,
        .rate = tn__optimizer_number(call->in[ONLY_LR], o->lr),
        .other = o->momentum,
        .eps = o->eps,
        .maximize = o->maximize,
        .momentum = o->momentum != 0,
        .centered = o->centered,
    };

    return tn__optimizer_run(call, RATE_LIST, rmsprop_group(o), tn__simd.optimizer->rmsprop,
                             &numbers);
}

static bool supports_rprop_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, RPROP_LIST, 4, reason, size);
}

static tn_status run_rprop_step(const tn_call *call)
{
    const tn_rprop_step_options *o = call->options;
    const struct tn__rule numbers = { .less = o->eta_minus,
                                      .more = o->eta_plus,
                                      .low = o->step_min,
                                      .high = o->step_max,
                                      .maximize = o->maximize };

    return tn__optimizer_run(call, RPROP_LIST, 4, tn__simd.optimizer->rprop, &numbers);
}

static bool supports_asgd_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, ASGD_LIST, 3, reason, size);
}

static tn_status run_asgd_step(const tn_call *call)
{
    const tn_asgd_step_options *o = call->options;
    double eta = tn__optimizer_number(call->in[ETA], 0);
    const struct tn__rule numbers = {
        .decay = o->weight_decay,
        .shrink = 1 - o->lambd * eta,
        .rate = eta,
        .other = tn__optimizer_number(call->in[MU], 0),
        .maximize = o->maximize,
    };

    return tn__optimizer_run(call, ASGD_LIST, 3, tn__simd.optimizer->asgd, &numbers);
}

static bool supports_lion_step(const tn_call *call, char *reason, size_t size)
{
    return tn__optimizer_takes(call, RATE_LIST, 3, reason, size);
}

static tn_status run_lion_step(const tn_call *call)
{
    const tn_lion_step_options *o = call->options;
    double lr = tn__optimizer_number(call->in[ONLY_LR], o->lr);
    const struct tn__rule numbers = {
        .shrink = 1 - lr * o->weight_decay,
        .follow1 = 1 - o->beta1,
        .follow2 = 1 - o->beta2,
        .rate = lr,
        .other = o->beta1,
        .maximize = o->maximize,
    };

    return tn__optimizer_run(call, RATE_LIST, 3, tn__simd.optimizer->lion, &numbers);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(nadam_step, TN__F32_F64, supports_nadam_step),
    TN__KERNEL_SUPPORTS(radam_step, TN__F32_F64, supports_radam_step),
    TN__KERNEL_SUPPORTS(adamax_step, TN__F32_F64, supports_adamax_step),
    TN__KERNEL_SUPPORTS(adagrad_step, TN__F32_F64, supports_adagrad_step),
    TN__KERNEL_SUPPORTS(adadelta_step, TN__F32_F64, supports_adadelta_step),
    TN__KERNEL_SUPPORTS(rmsprop_step, TN__F32_F64, supports_rmsprop_step),
    TN__KERNEL_SUPPORTS(rprop_step, TN__F32_F64, supports_rprop_step),
    TN__KERNEL_SUPPORTS(asgd_step, TN__F32_F64, supports_asgd_step),
    TN__KERNEL_SUPPORTS(lion_step, TN__F32_F64, supports_lion_step),
};
TN__KERNEL_TABLE(optimizer_rules);
