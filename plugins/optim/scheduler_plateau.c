/* SPDX-License-Identifier: MIT
 *
 * The scheduler that lowers the rate when a metric stops improving. */
#include "scheduler.h"

#include <math.h>
#include <string.h>

struct plateau_lr {
    const char *mode;
    double factor;
    int64_t patience;
    double threshold;
    const char *threshold_mode;
    int64_t cooldown;
    tn_floats min_lr;
    double eps;
};

static const tn_option plateau_options[] = {
    TN_OPTION_STRING(struct plateau_lr, mode, "'min'", "min or max: the better metric"),
    TN_OPTION_FLOAT(struct plateau_lr, factor, "0.1", "factor of each reduction"),
    TN_OPTION_INT(struct plateau_lr, patience, "10", "steps without improvement that are allowed"),
    TN_OPTION_FLOAT(struct plateau_lr, threshold, "0.0001", "smallest change that is improvement"),
    TN_OPTION_STRING(struct plateau_lr, threshold_mode, "'rel'",
                     "rel: the threshold is a fraction of the best metric; abs: a difference"),
    TN_OPTION_INT(struct plateau_lr, cooldown, "0", "steps to wait after a reduction"),
    TN_OPTION_FLOATS(struct plateau_lr, min_lr, "0.0", "smallest rate, one or one for each group"),
    TN_OPTION_FLOAT(struct plateau_lr, eps, "1e-08", "smaller reductions are ignored"),
    TN_OPTION_END
};

struct plateau_state {
    double best;
    int64_t num_bad_epochs, cooldown_counter;
};

static const tn_option plateau_state_options[] = {
    TN_OPTION_FLOAT(struct plateau_state, best, "inf", "best metric"),
    TN_OPTION_INT(struct plateau_state, num_bad_epochs, "0", "steps without improvement"),
    TN_OPTION_INT(struct plateau_state, cooldown_counter, "0", "steps still to wait"), TN_OPTION_END
};

static tn_status plateau_check(tn_scheduler *self)
{
    const struct plateau_lr *s = tn_scheduler_data(self);

    if (!(s->factor < 1.0))
        return tn_fail(TN_ERR_VALUE, "ReduceLROnPlateau: Factor should be < 1.0, got %g",
                       s->factor);
    if (strcmp(s->mode, "min") != 0 && strcmp(s->mode, "max") != 0)
        return tn_fail(TN_ERR_VALUE, "ReduceLROnPlateau: mode %s is unknown! Expected min or max",
                       s->mode);
    if (strcmp(s->threshold_mode, "rel") != 0 && strcmp(s->threshold_mode, "abs") != 0)
        return tn_fail(TN_ERR_VALUE,
                       "ReduceLROnPlateau: threshold mode %s is unknown! Expected rel or abs",
                       s->threshold_mode);
    return TN_OK;
}

static bool better(const struct plateau_lr *s, double metric, double best)
{
    bool relative = strcmp(s->threshold_mode, "rel") == 0;

    if (strcmp(s->mode, "min") == 0)
        return metric < (relative ? best * (1.0 - s->threshold) : best - s->threshold);
    return metric > (relative ? best * (s->threshold + 1.0) : best + s->threshold);
}

static tn_status plateau_start(const struct plateau_lr *s, struct plateau_state *now,
                               int64_t groups)
{
    *now = (struct plateau_state){ strcmp(s->mode, "min") == 0 ? INFINITY : -INFINITY, 0, 0 };
    if (s->min_lr.count == 1 || s->min_lr.count == groups)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "ReduceLROnPlateau: expected %lld min_lrs, got %lld",
                   (long long)groups, (long long)s->min_lr.count);
}

static tn_status plateau_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct plateau_lr *s = tn_scheduler_data(self);
    struct plateau_state *now = tn_scheduler_state(self);

    if (args->step == 0)
        return plateau_start(s, now, args->groups);
    if (better(s, args->metric, now->best)) {
        now->best = args->metric;
        now->num_bad_epochs = 0;
    } else {
        now->num_bad_epochs++;
    }
    if (now->cooldown_counter > 0) {
        now->cooldown_counter--;
        now->num_bad_epochs = 0;
    }
    if (now->num_bad_epochs <= s->patience)
        return TN_OK;
    if (s->min_lr.count != 1 && s->min_lr.count != args->groups)
        return tn_fail(TN_ERR_RUNTIME,
                       "ReduceLROnPlateau: min_lr: The number of param groups in the `optimizer` "
                       "(%lld) differs from when `ReduceLROnPlateau` was initialized (%lld), "
                       "usually due to a new param group being added to the optimizer; expected "
                       "one min_lr, or one for each group",
                       (long long)args->groups, (long long)s->min_lr.count);
    for (int64_t i = 0; i < args->groups; i++) {
        double least = scheduler_of_group(&s->min_lr, i), rate = args->rates[i] * s->factor;

        rate = rate > least ? rate : least;
        if (args->rates[i] - rate > s->eps)
            args->rates[i] = rate;
    }
    now->cooldown_counter = s->cooldown;
    now->num_bad_epochs = 0;
    return TN_OK;
}

const tn_scheduler_def scheduler_plateau = {
    TN_HEAD(tn_scheduler_def),
    .name = "ReduceLROnPlateau",
    .help = "multiplies the rate by factor when a metric has stopped improving",
    .options = plateau_options,
    .data_size = sizeof(struct plateau_lr),
    .check = plateau_check,
    .step = plateau_step,
    .state = plateau_state_options,
    .state_size = sizeof(struct plateau_state),
    .flags = TN_SCHEDULER_METRIC,
};
