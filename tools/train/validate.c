/* SPDX-License-Identifier: MIT
 *
 * Validation: loss and accuracy of the validation set, the confusion matrix and the worst samples
 * of the report. */
#include "train.h"
#include "work.h"

#include <math.h>

/* Sums, and the space for the classes of a batch. */
struct sums {
    tally tally;
    int64_t position; /* number of samples before the batch */
    int64_t *truth, *predicted;
};

/* ---- worst samples --------------------------------------------------------------------------- */

/* Returns the cross entropy of a row of scores. */
static double row_loss(const float *scores, int64_t count, int64_t truth)
{
    double largest = -INFINITY, sum = 0;

    for (int64_t i = 0; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    for (int64_t i = 0; i < count; i++)
        sum += exp(scores[i] - largest);
    return largest + log(sum) - scores[truth];
}

static tn_status tell_sample(run *r, tn_pack *batch, const struct sums *s, int64_t i, double loss)
{
    TN_SCOPE;
    tn_tensor *input = tn_pack_tensor(batch, 0);
    tn_tensor *row = tn_select(input, 0, i);
    report_sample sample = { .image = NULL,
                             .index = s->position + i,
                             .truth = s->truth[i],
                             .predicted = s->predicted[i],
                             .loss = loss };

    if (row == NULL)
        return tn_error_last_code();
    if (report_can_draw(row))
        sample.image = row;
    return report_worst(r->report, &sample);
}

/* Tells the report about the samples with the largest losses. */
static tn_status tell_worst(run *r, tn_pack *batch, tn_tensor *output, const struct sums *s)
{
    TN_SCOPE;
    int64_t count = tn_tensor_size(output, 0), classes = tn_tensor_size(output, 1);
    tn_tensor *scores = tn_cast(output, TN_F32);
    float *rows = tn_malloc((size_t)(count * classes + 1) * sizeof *rows);
    tn_status status = scores != NULL && rows != NULL
                           ? tn_tensor_copy_out(scores, rows,
                                                (size_t)(count * classes) * sizeof *rows)
                           : tn_error_last_code();

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        double loss = row_loss(rows + i * classes, classes, s->truth[i]);

        if (report_is_bad(r->report, loss))
            status = tell_sample(r, batch, s, i, loss);
    }
    tn_free(rows);
    return status;
}

/* ---- batches --------------------------------------------------------------------------------- */

static tn_status one_batch(run *r, tn_module *module, tn_pack *batch, struct sums *s)
{
    TN_SCOPE;
    tn_tensor *output = NULL, *loss = NULL;
    int64_t samples = step_samples(batch);
    double value;
    bool known = false;
    tn_status status = samples > 0 ? step_forward(r, module, batch, &output, &loss)
                                   : tn_error_last_code();

    if (status != TN_OK)
        return status;
    value = tn_item(loss);
    status = step_compare(r, batch, output, s->truth, s->predicted, &known);
    if (known && status == TN_OK)
        s->tally.compared += samples;
    for (int64_t i = 0; i < samples && known && status == TN_OK; i++)
        s->tally.right += s->truth[i] == s->predicted[i];
    if (status == TN_OK && known && r->report != NULL)
        status = report_predictions(r->report, s->truth, s->predicted, samples);
    if (status == TN_OK && known && r->report != NULL)
        status = tell_worst(r, batch, output, s);
    s->tally.loss += value * (double)samples;
    s->tally.samples += samples;
    s->position += samples;
    return status;
}

static tn_status all_batches(run *r, tn_module *module, tn_loader *loader, struct sums *s)
{
    tn_pack *batch;
    int64_t done = 0;
    tn_status status = TN_OK;

    tn_error_clear();
    while (status == TN_OK && (batch = tn_loader_next(loader)) != NULL) {
        status = one_batch(r, module, batch, s);
        progress_step(r->progress, ++done, s->tally.samples, NULL, 0);
    }
    if (status == TN_OK && tn_failed())
        status = work_data_failed(tn_error_last());
    r->skipped += tn_loader_skipped(loader);
    return status;
}

tn_status validate(run *r, int64_t epoch, score *out)
{
    int64_t size = setting_count(r->set, SET_BATCH_SIZE);
    tn_module *module = r->average != NULL ? r->average : r->model;
    struct sums s = { .truth = tn_malloc((size_t)size * 2 * sizeof(int64_t)) };
    tn_loader *loader;
    tn_status status;

    *out = (score){ .known = false };
    if (s.truth == NULL)
        return TN_ERR_MEMORY;
    s.predicted = s.truth + size;
    loader = tn_loader_new(r->val, "batch_size=%lld, seed=0, workers=%lld, skip_damaged=%b",
                           (long long)size, (long long)setting_count(r->set, SET_WORKERS),
                           (int)setting_on(r->set, SET_SKIP_DAMAGED));
    status = loader != NULL ? tn_module_eval(module) : tn_error_last_code();
    if (status == TN_OK) {
        progress_begin(r->progress, epoch, "validate", tn_loader_count(loader));
        tn_grad_begin(false);
        status = all_batches(r, module, loader, &s);
        tn_grad_end();
    }
    tn_loader_drop(loader);
    tn_free(s.truth);
    if (status != TN_OK)
        return tn_error_prefix("validation: ");
    if (s.tally.samples == 0)
        return tn_fail(TN_ERR_VALUE, "validation: no sample could be read");
    *out = (score){ .known = true,
                    .has_accuracy = s.tally.compared > 0,
                    .loss = s.tally.loss / (double)s.tally.samples,
                    .accuracy = (double)s.tally.right /
                                (double)(s.tally.compared > 0 ? s.tally.compared : 1) };
    return freeze_mode(r);
}
