/* SPDX-License-Identifier: MIT
 *
 * Schedulers that follow a cosine or lead to a fixed rate. */
#include "scheduler.h"

#include <math.h>
#include <string.h>

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
    if (s->T_max > 0 && s->T_max <= INT64_MAX / 4)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "CosineAnnealingLR: T_max: out of range, got %lld; expected 1 to %lld",
                   (long long)s->T_max, (long long)(INT64_MAX / 4));
}

/* The rule is recursive, so that other schedulers of the optimizer can change the rate too. At the
 * bottom of the cosine the recursion would divide 0 by 0. */
static tn_status cosine_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct cosine_lr *s = tn_scheduler_data(self);
    double T = (double)s->T_max, t = (double)args->step;
    bool rises = (args->step - 1 - s->T_max) % (2 * s->T_max) == 0;

    for (int64_t i = 0; i < args->groups; i++) {
        double *rate = &args->rates[i];

        if (args->flags & TN_SCHEDULE_JUMP)
            *rate = args->initial[i];
        else if ((args->flags & TN_SCHEDULE_INITIAL) == 0 && rises)
            *rate += (args->initial[i] - s->eta_min) * (1 - cos(SCHEDULE_PI / T)) / 2;
        else if ((args->flags & TN_SCHEDULE_INITIAL) == 0)
            *rate = (1 + cos(SCHEDULE_PI * t / T)) / (1 + cos(SCHEDULE_PI * (t - 1) / T)) *
                        (*rate - s->eta_min) +
                    s->eta_min;
    }
    return TN_OK;
}

const tn_scheduler_def scheduler_cosine = {
    TN_HEAD(tn_scheduler_def),
    .name = "CosineAnnealingLR",
    .help =
        "changes the rate along a cosine, from the initial rate to eta_min in T_max steps and back",
    .options = cosine_options,
    .data_size = sizeof(struct cosine_lr),
    .check = cosine_check,
    .step = cosine_step,
};

/* ---- CosineAnnealingWarmRestarts: half a cosine, again and again ----------------------------- */

struct restarts_lr {
    int64_t T_0, T_mult;
    double eta_min;
};

static const tn_option restarts_options[] = {
    TN_OPTION_INT_REQUIRED(struct restarts_lr, T_0, "steps until the first restart"),
    TN_OPTION_INT(struct restarts_lr, T_mult, "1", "factor of the steps after each restart"),
    TN_OPTION_FLOAT(struct restarts_lr, eta_min, "0.0", "the smallest rate"), TN_OPTION_END
};

struct restarts_state {
    double T_cur;
    int64_t T_i;
};

static const tn_option restarts_state_options[] = {
    TN_OPTION_FLOAT(struct restarts_state, T_cur, "0.0", "steps since the last restart"),
    TN_OPTION_INT(struct restarts_state, T_i, "1", "steps from the last restart to the next"),
    TN_OPTION_END
};

static tn_status restarts_check(tn_scheduler *self)
{
    const struct restarts_lr *s = tn_scheduler_data(self);
    if (s->T_0 <= 0)
        return tn_fail(TN_ERR_VALUE,
                       "CosineAnnealingWarmRestarts: Expected positive integer T_0, but got %lld",
                       (long long)s->T_0);
    if (s->T_mult < 1)
        return tn_fail(TN_ERR_VALUE,
                       "CosineAnnealingWarmRestarts: Expected integer T_mult >= 1, but got %lld",
                       (long long)s->T_mult);
    return TN_OK;
}

static int64_t longer(const struct restarts_lr *s, int64_t length)
{
    return length > INT64_MAX / s->T_mult ? INT64_MAX : length * s->T_mult;
}

/* Moves to a number of steps since the start, which may be a fraction. */
static tn_status restarts_go(const struct restarts_lr *s, struct restarts_state *now, double to)
{
    if (!(to >= 0) || isinf(to))
        return tn_fail(TN_ERR_VALUE,
                       "CosineAnnealingWarmRestarts: Expected non-negative epoch, but got %g", to);
    now->T_cur = to;
    now->T_i = s->T_0;
    if (s->T_mult == 1)
        now->T_cur = fmod(to, (double)s->T_0);
    while (now->T_cur >= (double)now->T_i && now->T_i < INT64_MAX) {
        now->T_cur -= (double)now->T_i;
        now->T_i = longer(s, now->T_i);
    }
    return TN_OK;
}

static tn_status restarts_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct restarts_lr *s = tn_scheduler_data(self);
    struct restarts_state *now = tn_scheduler_state(self);
    tn_status status = TN_OK;

    if (args->step == 0) {
        now->T_cur = 0;
        now->T_i = s->T_0;
    } else if (!isnan(args->metric)) {
        status = restarts_go(s, now, args->metric);
    } else if (!(now->T_cur >= 0) || now->T_i < 1 || now->T_cur >= (double)now->T_i) {
        status = tn_fail(TN_ERR_VALUE,
                         "CosineAnnealingWarmRestarts: state: got T_cur=%g, T_i=%lld; expected 0 "
                         "<= T_cur < T_i",
                         now->T_cur, (long long)now->T_i);
    } else if (++now->T_cur >= (double)now->T_i) {
        now->T_cur -= (double)now->T_i;
        now->T_i = longer(s, now->T_i);
    }
    double turn = 1 + cos(SCHEDULE_PI * now->T_cur / (double)now->T_i);
    for (int64_t i = 0; i < args->groups && status == TN_OK; i++)
        args->rates[i] = s->eta_min + (args->initial[i] - s->eta_min) * turn / 2;
    return status;
}

const tn_scheduler_def scheduler_restarts = {
    TN_HEAD(tn_scheduler_def),
    .name = "CosineAnnealingWarmRestarts",
    .help = "changes the rate along half a cosine to eta_min, then starts again; "
            "tn_scheduler_step_with goes to a step, which may be a fraction",
    .options = restarts_options,
    .data_size = sizeof(struct restarts_lr),
    .check = restarts_check,
    .step = restarts_step,
    .state = restarts_state_options,
    .state_size = sizeof(struct restarts_state),
};

/* ---- SWALR: from the current rate to swa_lr, then constant ----------------------------------- */

struct swa_lr {
    tn_floats swa_lr;
    int64_t anneal_epochs;
    const char *anneal_strategy;
};

static const tn_option swa_options[] = {
    TN_OPTION_ROW(struct swa_lr, swa_lr, NULL, "the last rate, one or one for each group",
                  TN_OPTION_KIND_FLOATS, TN_OPTION_REQUIRED),
    TN_OPTION_INT(struct swa_lr, anneal_epochs, "10", "steps until swa_lr is reached"),
    TN_OPTION_STRING(struct swa_lr, anneal_strategy, "'cos'", "cos or linear"), TN_OPTION_END
};

static tn_status swa_check(tn_scheduler *self)
{
    const struct swa_lr *s = tn_scheduler_data(self);
    tn_status status = scheduler_strategy(s->anneal_strategy, "by");

    if (status == TN_OK && s->anneal_epochs < 0)
        status = tn_fail(TN_ERR_VALUE, "anneal_epochs must be equal or greater than 0, got %lld",
                         (long long)s->anneal_epochs);
    return status;
}

static double swa_alpha(const struct swa_lr *s, int64_t step)
{
    double t = (double)step / (double)(s->anneal_epochs > 0 ? s->anneal_epochs : 1);

    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return s->anneal_strategy[0] == 'c' ? (1 - cos(SCHEDULE_PI * t)) / 2 : t;
}

/* The rate before annealing follows from the current one, which other schedulers may change. */
static tn_status swa_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct swa_lr *s = tn_scheduler_data(self);
    int64_t step = args->step > 0 || s->anneal_epochs > 0 ? args->step : 1;
    double before = swa_alpha(s, step - 1), now = swa_alpha(s, step);
    tn_status status = args->step == 0 ? scheduler_check_groups("swa_lr", &s->swa_lr, args->groups)
                                       : TN_OK;

    for (int64_t i = 0; i < args->groups && status == TN_OK; i++) {
        double last = scheduler_of_group(&s->swa_lr, i), rate = args->rates[i];
        double start = before == 1.0 ? last : (rate - before * last) / (1 - before);

        args->rates[i] = last * now + start * (1 - now);
    }
    return status;
}

const tn_scheduler_def scheduler_swa = {
    TN_HEAD(tn_scheduler_def),
    .name = "SWALR",
    .help = "anneals the rate to swa_lr, for stochastic weight averaging",
    .options = swa_options,
    .data_size = sizeof(struct swa_lr),
    .check = swa_check,
    .step = swa_step,
};
