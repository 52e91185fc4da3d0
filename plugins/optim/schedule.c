/* SPDX-License-Identifier: MIT
 *
 * Learning-rate schedules in closed form. lr0 is the initial rate, t the number of steps. */
#include "optim.h"

#include <math.h>

/* Computes the rate of each group from its initial rate. */
static tn_status set_rates(tn_scheduler *self, tn_schedule_args *args,
                           double (*rate)(const void *data, int64_t t, double initial))
{
    for (int64_t i = 0; i < args->groups; i++)
        args->rates[i] = rate(tn_scheduler_data(self), args->step, args->initial[i]);
    return TN_OK;
}

/* ---- StepLR: lr0 * gamma^floor(t / step_size) ------------------------------------------------ */

struct step_lr {
    int64_t step_size;
    double gamma;
};

static const tn_option step_options[] = {
    TN_OPTION_INT_REQUIRED(struct step_lr, step_size, "steps between two changes"),
    TN_OPTION_FLOAT(struct step_lr, gamma, "0.1", "factor of each change"), TN_OPTION_END
};

static tn_status step_check(tn_scheduler *self)
{
    const struct step_lr *s = tn_scheduler_data(self);
    if (s->step_size > 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "StepLR: step_size: out of range, got %lld; expected 1 or more",
                   (long long)s->step_size);
}

static double step_rate(const void *data, int64_t t, double initial)
{
    const struct step_lr *s = data;
    return initial * pow(s->gamma, (double)(t / s->step_size));
}

static tn_status step_step(tn_scheduler *self, tn_schedule_args *args)
{
    return set_rates(self, args, step_rate);
}

const tn_scheduler_def schedule_step = {
    TN_HEAD(tn_scheduler_def),
    .name = "StepLR",
    .help = "multiplies the rate by gamma every step_size steps",
    .options = step_options,
    .data_size = sizeof(struct step_lr),
    .check = step_check,
    .step = step_step,
};

/* ---- CosineAnnealingLR: eta_min + (lr0 - eta_min) * (1 + cos(pi * t / T_max)) / 2 ------------ */

struct cosine_lr {
    int64_t T_max;
    double eta_min;
};

static const tn_option cosine_options[] = {
    TN_OPTION_INT_REQUIRED(struct cosine_lr, T_max, "number of steps until eta_min is reached"),
    TN_OPTION_FLOAT(struct cosine_lr, eta_min, "0.0", "the smallest rate"), TN_OPTION_END
};

static tn_status cosine_check(tn_scheduler *self)
{
    const struct cosine_lr *s = tn_scheduler_data(self);
    if (s->T_max > 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "CosineAnnealingLR: T_max: out of range, got %lld; expected 1 or "
                   "more",
                   (long long)s->T_max);
}

static double cosine_rate(const void *data, int64_t t, double initial)
{
    const struct cosine_lr *s = data;
    const double pi = 3.14159265358979323846;
    return s->eta_min +
           (initial - s->eta_min) * (1.0 + cos(pi * (double)t / (double)s->T_max)) / 2.0;
}

static tn_status cosine_step(tn_scheduler *self, tn_schedule_args *args)
{
    return set_rates(self, args, cosine_rate);
}

const tn_scheduler_def schedule_cosine = {
    TN_HEAD(tn_scheduler_def),
    .name = "CosineAnnealingLR",
    .help =
        "changes the rate along a cosine, from the initial rate to eta_min in T_max steps and back",
    .options = cosine_options,
    .data_size = sizeof(struct cosine_lr),
    .check = cosine_check,
    .step = cosine_step,
};

/* ---- LinearLR: lr0 * (start + (end - start) * min(t, total) / total) ------------------------- */

struct linear_lr {
    double start_factor;
    double end_factor;
    int64_t total_iters;
};

static const tn_option linear_options[] = {
    TN_OPTION_FLOAT(struct linear_lr, start_factor, "0.3333333333333333", "factor at the start"),
    TN_OPTION_FLOAT(struct linear_lr, end_factor, "1.0", "factor after total_iters steps"),
    TN_OPTION_INT(struct linear_lr, total_iters, "5", "steps from start_factor to end_factor"),
    TN_OPTION_END
};

static tn_status linear_check(tn_scheduler *self)
{
    const struct linear_lr *s = tn_scheduler_data(self);
    if (!(s->start_factor > 0.0 && s->start_factor <= 1.0))
        return tn_fail(TN_ERR_VALUE,
                       "LinearLR: Starting multiplicative factor expected to be greater than 0 and "
                       "less or equal to 1, got %g",
                       s->start_factor);
    if (!(s->end_factor >= 0.0 && s->end_factor <= 1.0))
        return tn_fail(
            TN_ERR_VALUE,
            "LinearLR: Ending multiplicative factor expected to be between 0 and 1, got %g",
            s->end_factor);
    if (s->total_iters < 1)
        return tn_fail(TN_ERR_VALUE,
                       "LinearLR: total_iters: out of range, got %lld; expected 1 or "
                       "more",
                       (long long)s->total_iters);
    return TN_OK;
}

static double linear_rate(const void *data, int64_t t, double initial)
{
    const struct linear_lr *s = data;
    double done = (double)(t < s->total_iters ? t : s->total_iters) / (double)s->total_iters;
    return initial * (s->start_factor + (s->end_factor - s->start_factor) * done);
}

static tn_status linear_step(tn_scheduler *self, tn_schedule_args *args)
{
    return set_rates(self, args, linear_rate);
}

const tn_scheduler_def schedule_linear = {
    TN_HEAD(tn_scheduler_def),
    .name = "LinearLR",
    .help = "multiplies the rate by a factor that goes linearly from start_factor to end_factor",
    .options = linear_options,
    .data_size = sizeof(struct linear_lr),
    .check = linear_check,
    .step = linear_step,
};

/* ---- ExponentialLR: lr0 * gamma^t ------------------------------------------------------------ */

struct exponential_lr {
    double gamma;
};

static const tn_option exponential_options[] = {
    TN_OPTION_ROW(struct exponential_lr, gamma, NULL, "factor of every step", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static double exponential_rate(const void *data, int64_t t, double initial)
{
    const struct exponential_lr *s = data;
    return initial * pow(s->gamma, (double)t);
}

static tn_status exponential_step(tn_scheduler *self, tn_schedule_args *args)
{
    return set_rates(self, args, exponential_rate);
}

const tn_scheduler_def schedule_exponential = {
    TN_HEAD(tn_scheduler_def),
    .name = "ExponentialLR",
    .help = "multiplies the rate by gamma every step",
    .options = exponential_options,
    .data_size = sizeof(struct exponential_lr),
    .step = exponential_step,
};
