/* SPDX-License-Identifier: MIT
 *
 * Helpers for schedulers, and the schedulers that multiply the rate by a factor from step to step.
 */
#include "scheduler.h"

#include <math.h>
#include <string.h>

/* ---- helpers --------------------------------------------------------------------------------- */

tn_status scheduler_check_groups(const char *option, const tn_floats *row, int64_t groups)
{
    if (row->count == 1 || row->count == groups)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s must have the same length as optimizer.param_groups. %s has %lld values, "
                   "param_groups has %lld.",
                   option, option, (long long)row->count, (long long)groups);
}

double scheduler_of_group(const tn_floats *row, int64_t group)
{
    return row->at[row->count > group ? group : row->count - 1];
}

void scheduler_times(tn_schedule_args *args, double factor)
{
    for (int64_t i = 0; i < args->groups; i++)
        args->rates[i] *= factor;
}

tn_status scheduler_strategy(const char *word, const char *by)
{
    if (strcmp(word, "cos") == 0 || strcmp(word, "linear") == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "anneal_strategy must %s one of 'cos' or 'linear', instead got %s",
                   by, word);
}

static bool initial(const tn_schedule_args *args)
{
    return (args->flags & TN_SCHEDULE_INITIAL) != 0;
}

/* If the step does not follow the last one (TN_SCHEDULE_JUMP), sets the rates to the initial ones
 * times `factor` and returns true; otherwise returns false. */
static bool jump(tn_schedule_args *args, double factor)
{
    if ((args->flags & TN_SCHEDULE_JUMP) == 0)
        return false;
    for (int64_t i = 0; i < args->groups; i++)
        args->rates[i] = args->initial[i] * factor;
    return true;
}

static tn_status positive(const char *name, const char *option, int64_t value)
{
    if (value > 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: out of range, got %lld; expected 1 or more", name, option,
                   (long long)value);
}

/* ---- StepLR: times gamma every step_size steps ----------------------------------------------- */

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
    return positive("StepLR", "step_size", s->step_size);
}

static tn_status step_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct step_lr *s = tn_scheduler_data(self);

    if (!jump(args, 1.0) && args->step > 0 && args->step % s->step_size == 0)
        scheduler_times(args, s->gamma);
    return TN_OK;
}

const tn_scheduler_def scheduler_step = {
    TN_HEAD(tn_scheduler_def),
    .name = "StepLR",
    .help = "multiplies the rate by gamma every step_size steps",
    .options = step_options,
    .data_size = sizeof(struct step_lr),
    .check = step_check,
    .step = step_step,
};

/* ---- MultiStepLR: times gamma at each milestone ---------------------------------------------- */

struct multi_step_lr {
    tn_ints milestones;
    double gamma;
};

static const tn_option multi_step_options[] = {
    TN_OPTION_ROW(struct multi_step_lr, milestones, NULL, "steps at which the rate changes",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_FLOAT(struct multi_step_lr, gamma, "0.1", "factor of each change"), TN_OPTION_END
};

/* A milestone may be repeated, and the milestones need not be sorted. */
static tn_status multi_step_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct multi_step_lr *s = tn_scheduler_data(self);
    int64_t here = 0;

    for (int64_t i = 0; i < s->milestones.count; i++)
        here += s->milestones.at[i] == args->step;
    double factor = here > 0 ? pow(s->gamma, (double)here) : 1.0;
    if (!jump(args, factor) && here > 0)
        scheduler_times(args, factor);
    return TN_OK;
}

const tn_scheduler_def scheduler_multi_step = {
    TN_HEAD(tn_scheduler_def),
    .name = "MultiStepLR",
    .help = "multiplies the rate by gamma at each of the steps in milestones",
    .options = multi_step_options,
    .data_size = sizeof(struct multi_step_lr),
    .step = multi_step_step,
};

/* ---- ConstantLR: times factor, until step total_iters ---------------------------------------- */

struct constant_lr {
    double factor;
    int64_t total_iters;
};

static const tn_option constant_options[] = {
    TN_OPTION_FLOAT(struct constant_lr, factor, "0.3333333333333333", "factor until total_iters"),
    TN_OPTION_INT(struct constant_lr, total_iters, "5", "step at which the factor ends"),
    TN_OPTION_END
};

static tn_status constant_check(tn_scheduler *self)
{
    const struct constant_lr *s = tn_scheduler_data(self);
    if (s->factor >= 0.0 && s->factor <= 1.0)
        return TN_OK;
    return tn_fail(
        TN_ERR_VALUE,
        "ConstantLR: Constant multiplicative factor expected to be between 0 and 1, got %g",
        s->factor);
}

static tn_status constant_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct constant_lr *s = tn_scheduler_data(self);

    if (jump(args, s->total_iters <= 0 ? 1.0 : s->factor))
        return TN_OK;
    if (args->step == 0) {
        scheduler_times(args, s->factor);
    } else if (args->step == s->total_iters) {
        if (s->factor == 0.0)
            return tn_fail(TN_ERR_VALUE, "ConstantLR: factor: the rate cannot grow from 0 again at "
                                         "step total_iters, got 0.0; expected more than 0");
        scheduler_times(args, 1.0 / s->factor);
    }
    return TN_OK;
}

const tn_scheduler_def scheduler_constant = {
    TN_HEAD(tn_scheduler_def),
    .name = "ConstantLR",
    .help = "multiplies the rate by factor until step total_iters",
    .options = constant_options,
    .data_size = sizeof(struct constant_lr),
    .check = constant_check,
    .step = constant_step,
};

/* ---- LinearLR: a factor that goes linearly from start_factor to end_factor ------------------- */

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
    return positive("LinearLR", "total_iters", s->total_iters);
}

static tn_status linear_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct linear_lr *s = tn_scheduler_data(self);
    double rise = s->end_factor - s->start_factor;

    if (jump(args, s->start_factor))
        return TN_OK;
    if (args->step == 0)
        scheduler_times(args, s->start_factor);
    else if (args->step <= s->total_iters)
        scheduler_times(args, 1.0 + rise / ((double)s->total_iters * s->start_factor +
                                            (double)(args->step - 1) * rise));
    return TN_OK;
}

const tn_scheduler_def scheduler_linear = {
    TN_HEAD(tn_scheduler_def),
    .name = "LinearLR",
    .help = "multiplies the rate by a factor that goes linearly from start_factor to end_factor",
    .options = linear_options,
    .data_size = sizeof(struct linear_lr),
    .check = linear_check,
    .step = linear_step,
};

/* ---- ExponentialLR: times gamma every step --------------------------------------------------- */

struct exponential_lr {
    double gamma;
};

static const tn_option exponential_options[] = {
    TN_OPTION_ROW(struct exponential_lr, gamma, NULL, "factor of every step", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static tn_status exponential_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct exponential_lr *s = tn_scheduler_data(self);

    if (!jump(args, 1.0) && !initial(args))
        scheduler_times(args, s->gamma);
    return TN_OK;
}

const tn_scheduler_def scheduler_exponential = {
    TN_HEAD(tn_scheduler_def),
    .name = "ExponentialLR",
    .help = "multiplies the rate by gamma every step",
    .options = exponential_options,
    .data_size = sizeof(struct exponential_lr),
    .step = exponential_step,
};

/* ---- PolynomialLR: lr0 * (1 - t / total_iters)^power ----------------------------------------- */

struct polynomial_lr {
    int64_t total_iters;
    double power;
};

static const tn_option polynomial_options[] = {
    TN_OPTION_INT(struct polynomial_lr, total_iters, "5", "steps until the rate is 0"),
    TN_OPTION_FLOAT(struct polynomial_lr, power, "1.0", "exponent"), TN_OPTION_END
};

static tn_status polynomial_check(tn_scheduler *self)
{
    const struct polynomial_lr *s = tn_scheduler_data(self);
    return positive("PolynomialLR", "total_iters", s->total_iters);
}

static tn_status polynomial_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct polynomial_lr *s = tn_scheduler_data(self);
    double t = (double)args->step, total = (double)s->total_iters;

    if (!jump(args, 1.0) && !initial(args) && args->step <= s->total_iters)
        scheduler_times(args, pow((1.0 - t / total) / (1.0 - (t - 1) / total), s->power));
    return TN_OK;
}

const tn_scheduler_def scheduler_polynomial = {
    TN_HEAD(tn_scheduler_def),
    .name = "PolynomialLR",
    .help = "lowers the rate to 0 in total_iters steps, along a polynomial",
    .options = polynomial_options,
    .data_size = sizeof(struct polynomial_lr),
    .check = polynomial_check,
    .step = polynomial_step,
};

/* ---- LambdaLR, MultiplicativeLR: a factor from the program's function ------------------------ */

/* Multiplies the rates `from` by the factors of the program's function. */
static tn_status by_function(const char *name, tn_schedule_args *args, const double *from)
{
    if (args->function == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "%s: function: it is missing; expected one by "
                       "tn_scheduler_lambda",
                       name);
    for (int64_t i = 0; i < args->groups; i++) {
        double factor = args->function(args->function_user, i, args->step);

        if (isnan(factor))
            return tn_fail(
                TN_ERR_VALUE,
                "%s: function: wrong result for group %lld at step %lld, got NaN; expected a "
                "factor",
                name, (long long)i, (long long)args->step);
        args->rates[i] = from[i] * factor;
    }
    return TN_OK;
}

static tn_status lambda_step(tn_scheduler *self, tn_schedule_args *args)
{
    (void)self;
    return by_function("LambdaLR", args, args->initial);
}

static tn_status multiplicative_step(tn_scheduler *self, tn_schedule_args *args)
{
    (void)self;
    if (initial(args) && args->function != NULL)
        return TN_OK;
    return by_function("MultiplicativeLR", args, args->rates);
}

static const tn_option no_options[] = { TN_OPTION_END };

const tn_scheduler_def scheduler_lambda = {
    TN_HEAD(tn_scheduler_def),
    .name = "LambdaLR",
    .help = "multiplies the initial rate by the program's function of group and step",
    .options = no_options,
    .step = lambda_step,
};

const tn_scheduler_def scheduler_multiplicative = {
    TN_HEAD(tn_scheduler_def),
    .name = "MultiplicativeLR",
    .help = "multiplies the rate by the program's function of group and step",
    .options = no_options,
    .step = multiplicative_step,
};
