/* SPDX-License-Identifier: MIT
 *
 * The training: epochs and steps, until the end or an interrupt. */
#include "train.h"
#include "work.h"

#include <math.h>
#include <string.h>

enum { METRICS = 4 };

static bool by_step(const run *r)
{
    return strcmp(setting_text(r->set, SET_SCHEDULE_BY), "step") == 0;
}

/* Returns whether each step of the scheduler needs a metric. */
static bool needs_metric(const run *r)
{
    uint64_t mark = tn_error_mark();
    const tn_scheduler_def *def = (const tn_scheduler_def *)tn_registry_find(
        TN_KIND_tn_scheduler_def, tn_scheduler_type(r->scheduler));

    tn_error_restore(mark);
    return def != NULL && (def->flags & TN_SCHEDULER_METRIC) != 0;
}

static score train_score(const run *r)
{
    const tally *now = &r->now;

    return (score){ .known = now->samples > 0,
                    .at = { now->samples > 0 ? now->loss / (double)now->samples : NAN,
                            now->compared > 0 ? (double)now->right / (double)now->compared : NAN,
                            NAN, NAN, NAN } };
}

/* Writes the metrics of a training and a validation. Returns their number. */
static int64_t metrics_of(const score *train, const score *val, progress_metric *out)
{
    int64_t count = 0;

    if (train->known)
        out[count++] = (progress_metric){ "loss", train->at[METRIC_LOSS], false };
    if (train->known && !isnan(train->at[METRIC_ACCURACY]))
        out[count++] = (progress_metric){ "accuracy", train->at[METRIC_ACCURACY], true };
    if (val->known)
        out[count++] = (progress_metric){ "val_loss", val->at[METRIC_LOSS], false };
    if (val->known && !isnan(val->at[METRIC_ACCURACY]))
        out[count++] = (progress_metric){ "val_accuracy", val->at[METRIC_ACCURACY], true };
    return count;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void show_step(run *r)
{
    static const score none = { .known = false };
    progress_metric metrics[METRICS];
    score train = train_score(r);

    progress_step(r->progress, tn_loader_position(r->loader), r->counted, metrics,
                  metrics_of(&train, &none, metrics));
}

static tn_status after_step(run *r, double loss)
{
    int64_t every = setting_count(r->set, SET_CHECKPOINT_EVERY);
    tn_status status = record_step(r, loss);

    if (status == TN_OK && r->scheduler != NULL && by_step(r))
        status = tn_scheduler_step(r->scheduler);
    if (status == TN_OK && every > 0 && r->step % every == 0)
        status = save_checkpoint(r);
    return status;
}

/* ---- an epoch -------------------------------------------------------------------------------- */

static void begin_epoch(run *r)
{
    r->began = run_clock();
    r->counted = 0;
    progress_begin(r->progress, tn_loader_epoch(r->loader) + 1, "train",
                   tn_loader_count(r->loader));
}

static tn_status step_scheduler(run *r, const score *train, const score *val)
{
    if (r->scheduler == NULL || by_step(r))
        return TN_OK;
    if (needs_metric(r))
        return tn_scheduler_step_with(r->scheduler, (val->known ? val : train)->at[METRIC_LOSS]);
    return tn_scheduler_step(r->scheduler);
}

/* Returns what decides which epoch is the best one: --best, else the accuracy of the validation,
 * else a loss. */
static metric best_by(const run *r, const score *val)
{
    const char *asked = setting_text(r->set, SET_BEST);

    if (asked != NULL)
        return metric_find(asked);
    return val->known && !isnan(val->at[METRIC_ACCURACY]) ? METRIC_ACCURACY : METRIC_LOSS;
}

/* Fails if an epoch lacks the metric of --best for a reason that only its results tell; build_best
 * has refused the others. */
static tn_status check_best(const run *r, const score *train, const score *val)
{
    metric by = best_by(r, val);

    if (by == METRIC_LOSS || !isnan((val->known ? val : train)->at[by]))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "--best %s: the %s has none; expected %s, or --best loss",
                   metric_names[by], val->known ? "validation" : "training",
                   by == METRIC_AUC ? "results for classes, at most 4,194,304 in all, with samples "
                                      "of two classes or more"
                                    : "results for classes");
}

/* Returns whether an epoch is the best one so far. */
static bool is_best(run *r, int64_t epoch, const score *train, const score *val)
{
    metric by = best_by(r, val);
    double value = (val->known ? val : train)->at[by];

    if (by != METRIC_LOSS && isnan(value))
        return false;
    value = by == METRIC_LOSS ? -value : value;
    if (r->has_best && !(value > r->best))
        return false;
    r->has_best = true;
    r->best = value;
    r->best_by = by;
    r->best_epoch = epoch;
    r->best_step = r->step;
    return true;
}

/* Writes the best weights so far, whose checkpoint is the newest one. */
static tn_status keep_best(run *r)
{
    tn_status status = save_best(r);

    return status == TN_OK && r->val != NULL ? save_weights(r, "best") : status;
}

/* If the run continues from its best step, writes the files of that step again: the checkpoint says
 * that it is the best one, but the process may have ended before they were written. */
static tn_status keep_resumed_best(run *r)
{
    return r->has_best && r->best_step == r->step ? keep_best(r) : TN_OK;
}

/* Saves a checkpoint where the page of an epoch could not be written, for example because the disk
 * is full: the epoch need not be trained again. A run that continues from it has the rows of the
 * epoch, so without them nothing is saved. Returns the failure of the report. */
static tn_status report_failed(run *r)
{
    tn_error error = *tn_error_last();

    tn_error_clear();
    if (report_epoch_step(r->report) == r->step && save_checkpoint(r) == TN_OK)
        progress_say(r->progress, "saved the checkpoint of step %lld; --resume continues there",
                     (long long)r->step);
    tn_error_clear();
    return tn_fail(error.code, "%s", error.message);
}

/* Validates and records at the end of an epoch or, with `part`, of a run that ends within it. Then
 * keeps what is best so far. */
static tn_status score_epoch(run *r, int64_t epoch, bool part)
{
    progress_metric metrics[METRICS];
    score train = train_score(r), val = { .known = false };
    tn_status status = TN_OK;
    bool best;

    if (!train.known)
        status = tn_fail(TN_ERR_VALUE,
                         "--data: no sample of epoch %lld could be read; expected at least one",
                         (long long)epoch);
    if (status == TN_OK && r->val != NULL)
        status = ranks_before_score(r);
    if (status == TN_OK && r->val != NULL)
        status = validate(r, epoch, &val);
    if (status == TN_OK && r->val != NULL)
        status = ranks_score(r, &val);
    if (status == TN_OK && !part)
        status = step_scheduler(r, &train, &val);
    if (status != TN_OK)
        return status;
    status = record_epoch(r, epoch, &train, &val);
    progress_epoch(r->progress, metrics, metrics_of(&train, &val, metrics));
    best = is_best(r, epoch, &train, &val);
    r->scored = r->step;
    if (!part)
        r->now = (tally){ 0 };
    if (status != TN_OK)
        return report_failed(r);
    status = save_checkpoint(r);
    if (status == TN_OK)
        status = check_best(r, &train, &val);
    return status == TN_OK && best ? keep_best(r) : status;
}

/* The loader has moved on to the next epoch already, so a checkpoint continues there. */
static tn_status end_epoch(run *r)
{
    tn_status status = r->pending > 0 ? step_take(r, NULL) : TN_OK;

    if (status == TN_OK)
        status = score_epoch(r, tn_loader_epoch(r->loader), false);
    if (status == TN_OK)
        begin_epoch(r);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Returns whether --patience ends the run. */
static bool is_stopped_early(const run *r)
{
    int64_t patience = setting_count(r->set, SET_PATIENCE);

    return patience > 0 && r->has_best && tn_loader_epoch(r->loader) - r->best_epoch >= patience;
}

static bool is_done(const run *r)
{
    int64_t most = setting_count(r->set, SET_MAX_STEPS);

    return tn_loader_epoch(r->loader) >= setting_count(r->set, SET_EPOCHS) ||
           (most > 0 && r->step >= most) || is_stopped_early(r);
}

/* Returns how many batches share the next step: fewer at the end of an epoch. */
static int64_t share_of(const run *r)
{
    int64_t share = setting_count(r->set, SET_ACCUMULATE),
            left = tn_loader_count(r->loader) - tn_loader_position(r->loader);

    return left < share ? left : share;
}

/* Fails because a batch could not be read. If all gradients went into steps, saves a checkpoint
 * first. The next batch of the loader is still this batch, so a resumed run reads it again after
 * the data was repaired. */
static tn_status data_failed(run *r)
{
    tn_error error = *tn_error_last();

    if (r->pending == 0 && r->step > 0 && save_checkpoint(r) == TN_OK)
        progress_say(r->progress, "saved the checkpoint of step %lld; --resume continues there",
                     (long long)r->step);
    return work_data_failed(&error);
}

static tn_status one_batch(run *r, int64_t *share)
{
    int64_t next = r->pending == 0 ? share_of(r) : *share, position = tn_loader_position(r->loader);
    double loss = 0;
    tn_pack *batch;
    tn_status status;

    /* Not tn_error_mark, which also counts failures that the loader has recovered from. */
    tn_error_clear();
    batch = tn_loader_next(r->loader);
    if (batch == NULL)
        return tn_failed() ? data_failed(r) : end_epoch(r);
    *share = next;
    status = r->wrapped != NULL ? ranks_batch(r, batch, position, &loss)
                                : step_batch(r, batch, next, &loss);
    if (status == TN_OK && r->pending >= next) {
        status = step_take(r, batch);
        if (status == TN_OK)
            status = after_step(r, loss);
    }
    if (status == TN_OK)
        show_step(r);
    return status;
}

/* Ends a run. A last step within an epoch counts as its end; a run that is continued may be there
 * already. */
static tn_status finish(run *r)
{
    tn_status status = TN_OK;

    if (tn_loader_position(r->loader) > 0 && r->scored != r->step)
        status = score_epoch(r, tn_loader_epoch(r->loader) + 1, true);
    r->stopped_early = is_stopped_early(r);
    return status == TN_OK ? save_weights(r, "model") : status;
}

tn_status epochs_run(run *r)
{
    int64_t share = 1;
    tn_status status = freeze_mode(r);

    if (status == TN_OK && r->scheduler != NULL && by_step(r) && needs_metric(r))
        status = tn_fail(TN_ERR_VALUE,
                         "--schedule: %s needs a metric; expected --schedule-by epoch",
                         tn_scheduler_type(r->scheduler));
    if (status == TN_OK && r->step > 0) {
        save_clean(r);
        status = keep_resumed_best(r);
    }
    begin_epoch(r);
    while (status == TN_OK && !is_done(r)) {
        if (ranks_asked(r) != 0 && r->pending == 0) {
            status = save_checkpoint(r);
            return status == TN_OK ? TN_ERR_CANCELLED : status;
        }
        status = one_batch(r, &share);
    }
    return status == TN_OK ? finish(r) : status;
}
