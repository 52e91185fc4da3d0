/* SPDX-License-Identifier: MIT
 *
 * Schedulers that raise and lower the rate, and the momentum in the opposite direction. */
#include "scheduler.h"

#include <math.h>
#include <string.h>

/* ---- the momentum ---------------------------------------------------------------------------- */

/* Returns the option that a scheduler changes: "betas[0]" or "momentum". Returns NULL and sets the
 * error if the optimizer has neither. */
static const char *momentum_option(tn_optimizer *optimizer)
{
    static const char *const options[] = { "betas[0]", "momentum" };
    uint64_t mark = tn_error_mark();
    double value;

    for (int i = 0; i < 2; i++) {
        if (tn_optimizer_get(optimizer, 0, options[i], &value) == TN_OK)
            return options[i];
        tn_error_restore(mark);
    }
    tn_fail(TN_ERR_VALUE,
            /* PyTorch's wording */
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled, got "
            "%s; expected another optimizer, or cycle_momentum=False",
            tn_optimizer_type(optimizer));
    return NULL;
}

/* Sets the momenta; if one is refused, sets those from before. */
static tn_status set_momenta(const char *option, tn_schedule_args *args, const double *momenta,
                             double *before)
{
    int64_t n = args->groups;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < n && status == TN_OK; i++)
        status = tn_optimizer_get(args->optimizer, i, option, &before[i]);
    if (status != TN_OK)
        return status;
    for (int64_t i = 0; i < n && status == TN_OK; i++)
        status = tn_optimizer_set(args->optimizer, i, option, momenta[i]);
    if (status != TN_OK) {
        uint64_t mark = tn_error_mark();
        for (int64_t i = 0; i < n; i++)
            (void)tn_optimizer_set(args->optimizer, i, option, before[i]);
        tn_error_restore(mark);
    }
    return status;
}

/* Computes rate and momentum of a group. */
typedef void compute(const void *data, const tn_schedule_args *args, int64_t group, double *rate,
                     double *momentum);

/* Changes the rates, and the momenta if `cycles`. */
static tn_status change(const void *data, tn_schedule_args *args, bool cycles, compute *of_group)
{
    size_t n = (size_t)args->groups;
    const char *option = cycles ? momentum_option(args->optimizer) : NULL;
    double *momenta;
    tn_status status = TN_OK;

    if (cycles && option == NULL)
        return tn_error_last_code();
    momenta = tn_malloc(2 * n * sizeof *momenta + 1);
    if (momenta == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < args->groups; i++)
        of_group(data, args, i, &args->rates[i], &momenta[i]);
    if (cycles)
        status = set_momenta(option, args, momenta, momenta + n);
    tn_free(momenta);
    return status;
}

/* ---- CyclicLR -------------------------------------------------------------------------------- */

struct cyclic_lr {
    tn_floats base_lr, max_lr;
    int64_t step_size_up, step_size_down;
    const char *mode;
    double gamma;
    const char *scale_mode;
    bool cycle_momentum;
    tn_floats base_momentum, max_momentum;
};

static const tn_option cyclic_options[] = {
    TN_OPTION_ROW(struct cyclic_lr, base_lr, NULL, "smallest rate, one or one for each group",
                  TN_OPTION_KIND_FLOATS, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct cyclic_lr, max_lr, NULL, "largest rate, one or one for each group",
                  TN_OPTION_KIND_FLOATS, TN_OPTION_REQUIRED),
    TN_OPTION_INT(struct cyclic_lr, step_size_up, "2000", "steps that the rate rises"),
    TN_OPTION_ROW(struct cyclic_lr, step_size_down, "None",
                  "steps that the rate falls; None: step_size_up", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_STRING(struct cyclic_lr, mode, "'triangular'",
                     "triangular, triangular2, exp_range, or function: the program's function"),
    TN_OPTION_FLOAT(struct cyclic_lr, gamma, "1.0", "factor of each step, for exp_range"),
    TN_OPTION_STRING(struct cyclic_lr, scale_mode, "'cycle'",
                     "what the program's function gets: the number of the cycle or of the step "
                     "(iterations)"),
    TN_OPTION_BOOL(struct cyclic_lr, cycle_momentum, "True", "changes the momentum too"),
    TN_OPTION_FLOATS(struct cyclic_lr, base_momentum, "0.8", "smallest momentum"),
    TN_OPTION_FLOATS(struct cyclic_lr, max_momentum, "0.9", "largest momentum"),
    TN_OPTION_END
};

static tn_status cyclic_check(tn_scheduler *self)
{
    const struct cyclic_lr *s = tn_scheduler_data(self);

    if (s->step_size_up < 1)
        return tn_fail(TN_ERR_VALUE,
                       "CyclicLR: step_size_up: out of range, got %lld; expected 1 or more",
                       (long long)s->step_size_up);
    if (s->step_size_down != INT64_MIN && s->step_size_down < 1)
        return tn_fail(TN_ERR_VALUE,
                       "CyclicLR: step_size_down: out of range, got %lld; expected 1 or more",
                       (long long)s->step_size_down);
    if (strcmp(s->scale_mode, "cycle") != 0 && strcmp(s->scale_mode, "iterations") != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "CyclicLR: scale_mode: unknown, got %q; expected \"cycle\" or \"iterations\"",
            s->scale_mode);
    return TN_OK;
}

static bool cyclic_mode_known(const struct cyclic_lr *s, bool function)
{
    return (function && strcmp(s->mode, "function") == 0) || strcmp(s->mode, "triangular") == 0 ||
           strcmp(s->mode, "triangular2") == 0 || strcmp(s->mode, "exp_range") == 0;
}

static double cyclic_scale(const struct cyclic_lr *s, const tn_schedule_args *args, int64_t group,
                           double cycle)
{
    bool by_cycle = strcmp(s->scale_mode, "cycle") == 0;

    if (strcmp(s->mode, "function") == 0)
        return args->function(args->function_user, group, by_cycle ? (int64_t)cycle : args->step);
    if (strcmp(s->mode, "triangular") == 0)
        return 1.0;
    return strcmp(s->mode, "triangular2") == 0 ? 1 / pow(2.0, cycle - 1)
                                               : pow(s->gamma, (double)args->step);
}

static void cyclic_compute(const void *data, const tn_schedule_args *args, int64_t group,
                           double *rate, double *momentum)
{
    const struct cyclic_lr *s = data;
    double up = (double)s->step_size_up,
           down = s->step_size_down == INT64_MIN ? up : (double)s->step_size_down,
           total = up + down, ratio = up / total, t = (double)args->step / total;
    double cycle = floor(1 + t), x = 1.0 + t - cycle,
           part = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
    double scale = cyclic_scale(s, args, group, cycle);
    double low = scheduler_of_group(&s->base_lr, group),
           high = scheduler_of_group(&s->max_lr, group);
    double least = scheduler_of_group(&s->base_momentum, group),
           most = scheduler_of_group(&s->max_momentum, group);

    *rate = low + (high - low) * part * scale;
    *momentum = most - (most - least) * part * scale;
}

static tn_status cyclic_start(const struct cyclic_lr *s, tn_schedule_args *args)
{
    tn_status status = scheduler_check_groups("base_lr", &s->base_lr, args->groups);

    if (status == TN_OK)
        status = scheduler_check_groups("max_lr", &s->max_lr, args->groups);
    if (status == TN_OK && !cyclic_mode_known(s, args->function != NULL))
        status = tn_fail(TN_ERR_VALUE, /* begins with PyTorch's wording */
                         "CyclicLR: mode is invalid and scale_fn is None, got mode %q; expected "
                         "\"triangular\", \"triangular2\" or \"exp_range\", or \"function\" if "
                         "tn_scheduler_lambda gives the function",
                         s->mode);
    if (status == TN_OK && s->cycle_momentum)
        status = scheduler_check_groups("base_momentum", &s->base_momentum, args->groups);
    if (status == TN_OK && s->cycle_momentum)
        status = scheduler_check_groups("max_momentum", &s->max_momentum, args->groups);
    for (int64_t i = 0; i < args->groups && (args->flags & TN_SCHEDULE_FIRST); i++)
        args->initial[i] = scheduler_of_group(&s->base_lr, i);
    return status;
}

static tn_status cyclic_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct cyclic_lr *s = tn_scheduler_data(self);
    tn_status status = args->step == 0 ? cyclic_start(s, args) : TN_OK;

    if (status == TN_OK)
        status = change(s, args, s->cycle_momentum, cyclic_compute);
    /* With another scheduler before it, the rate waits for the first step, as in PyTorch. */
    for (int64_t i = 0; i < args->groups && status == TN_OK && args->flags == TN_SCHEDULE_INITIAL;
         i++)
        args->rates[i] = args->initial[i];
    return status;
}

const tn_scheduler_def scheduler_cyclic = {
    TN_HEAD(tn_scheduler_def),
    .name = "CyclicLR",
    .help = "raises and lowers the rate between base_lr and max_lr, again and again",
    .options = cyclic_options,
    .data_size = sizeof(struct cyclic_lr),
    .check = cyclic_check,
    .step = cyclic_step,
};

/* ---- OneCycleLR ------------------------------------------------------------------------------ */

struct one_cycle_lr {
    tn_floats max_lr;
    int64_t total_steps, epochs, steps_per_epoch;
    double pct_start;
    const char *anneal_strategy;
    bool cycle_momentum;
    tn_floats base_momentum, max_momentum;
    double div_factor, final_div_factor;
    bool three_phase;
};

static const tn_option one_cycle_options[] = {
    TN_OPTION_ROW(struct one_cycle_lr, max_lr, NULL, "largest rate, one or one for each group",
                  TN_OPTION_KIND_FLOATS, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct one_cycle_lr, total_steps, "None", "number of steps", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct one_cycle_lr, epochs, "None", "with steps_per_epoch: total_steps",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct one_cycle_lr, steps_per_epoch, "None", "steps of an epoch",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_FLOAT(struct one_cycle_lr, pct_start, "0.3", "fraction of the steps that rise"),
    TN_OPTION_STRING(struct one_cycle_lr, anneal_strategy, "'cos'", "cos or linear"),
    TN_OPTION_BOOL(struct one_cycle_lr, cycle_momentum, "True", "changes the momentum too"),
    TN_OPTION_FLOATS(struct one_cycle_lr, base_momentum, "0.85", "smallest momentum"),
    TN_OPTION_FLOATS(struct one_cycle_lr, max_momentum, "0.95", "largest momentum"),
    TN_OPTION_FLOAT(struct one_cycle_lr, div_factor, "25.0",
                    "the first rate is max_lr divided by it"),
    TN_OPTION_FLOAT(struct one_cycle_lr, final_div_factor, "10000.0",
                    "the last rate is the first divided by it"),
    TN_OPTION_BOOL(struct one_cycle_lr, three_phase, "False",
                   "falls to the first rate as fast as it rose, then to the last"),
    TN_OPTION_END
};

static tn_status one_cycle_positive(const char *option, int64_t value)
{
    if (value > 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "OneCycleLR: Expected positive integer %s, but got %lld", option,
                   (long long)value);
}

static tn_status one_cycle_check(tn_scheduler *self)
{
    struct one_cycle_lr *s = tn_scheduler_data(self);
    tn_status status = TN_OK;

    if (s->total_steps != INT64_MIN) {
        status = one_cycle_positive("total_steps", s->total_steps);
    } else if (s->epochs != INT64_MIN && s->steps_per_epoch != INT64_MIN) {
        status = one_cycle_positive("epochs", s->epochs);
        if (status == TN_OK)
            status = one_cycle_positive("steps_per_epoch", s->steps_per_epoch);
        if (status == TN_OK && s->epochs > INT64_MAX / 4 / s->steps_per_epoch)
            status = tn_fail(TN_ERR_VALUE,
                             "OneCycleLR: epochs: too many steps, got %lld x %lld; expected at "
                             "most 2^61",
                             (long long)s->epochs, (long long)s->steps_per_epoch);
        if (status == TN_OK)
            s->total_steps = s->epochs * s->steps_per_epoch;
    } else {
        status = tn_fail(TN_ERR_VALUE, "OneCycleLR: You must define either total_steps OR (epochs "
                                       "AND steps_per_epoch)");
    }
    if (status == TN_OK && !(s->pct_start >= 0 && s->pct_start <= 1))
        status = tn_fail(TN_ERR_VALUE,
                         "OneCycleLR: Expected float between 0 and 1 pct_start, but got %g",
                         s->pct_start);
    return status == TN_OK ? scheduler_strategy(s->anneal_strategy, "be") : status;
}

static double between(const struct one_cycle_lr *s, double start, double end, double part)
{
    if (s->anneal_strategy[0] == 'l')
        return (end - start) * part + start;
    return end + (start - end) / 2.0 * (cos(SCHEDULE_PI * part) + 1);
}

static void one_cycle_compute(const void *data, const tn_schedule_args *args, int64_t group,
                              double *rate, double *momentum)
{
    const struct one_cycle_lr *s = data;
    double high = scheduler_of_group(&s->max_lr, group), first = high / s->div_factor,
           last = first / s->final_div_factor;
    double least = scheduler_of_group(&s->base_momentum, group),
           most = scheduler_of_group(&s->max_momentum, group);
    double total = (double)s->total_steps, t = (double)args->step;
    double ends[3] = { s->pct_start * total - 1, 2 * s->pct_start * total - 2, total - 1 };
    double rates[4] = { first, high, first, last }, momenta[4] = { most, least, most, most };
    int phases = 3, phase = 0;

    if (!s->three_phase) {
        phases = 2;
        ends[1] = ends[2];
        rates[2] = last;
    }
    while (phase < phases - 1 && t > ends[phase])
        phase++;
    double start = phase > 0 ? ends[phase - 1] : 0.0;
    double part = (t - start) / (ends[phase] - start);
    *rate = between(s, rates[phase], rates[phase + 1], part);
    *momentum = between(s, momenta[phase], momenta[phase + 1], part);
}

static tn_status one_cycle_start(const struct one_cycle_lr *s, tn_schedule_args *args)
{
    tn_status status = scheduler_check_groups("max_lr", &s->max_lr, args->groups);

    if (status == TN_OK && s->cycle_momentum)
        status = scheduler_check_groups("max_momentum", &s->max_momentum, args->groups);
    if (status == TN_OK && s->cycle_momentum)
        status = scheduler_check_groups("base_momentum", &s->base_momentum, args->groups);
    for (int64_t i = 0; i < args->groups && status == TN_OK; i++)
        args->initial[i] = scheduler_of_group(&s->max_lr, i) / s->div_factor;
    return status;
}

static tn_status one_cycle_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct one_cycle_lr *s = tn_scheduler_data(self);
    tn_status status = args->step == 0 ? one_cycle_start(s, args) : TN_OK;

    if (status == TN_OK && args->step > s->total_steps)
        status = tn_fail(TN_ERR_VALUE,
                         "OneCycleLR: Tried to step %lld times. The specified number of total "
                         "steps is %lld",
                         (long long)args->step, (long long)s->total_steps);
    return status == TN_OK ? change(s, args, s->cycle_momentum, one_cycle_compute) : status;
}

const tn_scheduler_def scheduler_one_cycle = {
    TN_HEAD(tn_scheduler_def),
    .name = "OneCycleLR",
    .help = "raises the rate to max_lr and lowers it to almost 0, once",
    .options = one_cycle_options,
    .data_size = sizeof(struct one_cycle_lr),
    .check = one_cycle_check,
    .step = one_cycle_step,
};
