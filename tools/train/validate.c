/* SPDX-License-Identifier: MIT
 *
 * Validation: loss and accuracy of the validation set, the confusion matrix and the worst samples
 * of the report. */
#include "metrics.h"
#include "train.h"

#include <math.h>

/* Sums, and the space for the classes of a batch. */
struct sums {
    tally tally;
    metrics counts;
    tn_loader *loader;
    int64_t position; /* number of samples before the batch */
    int64_t *truth, *predicted;
};

/* ---- worst samples --------------------------------------------------------------------------- */

static tn_status tell_sample(run *r, tn_pack *batch, const struct sums *s, int64_t i, double loss)
{
    TN_SCOPE;
    tn_tensor *input = tn_pack_tensor(batch, 0);
    tn_tensor *row = tn_select(input, 0, i);
    report_sample sample = { .image = NULL,
                             /* after a sample that was left out the places are not known */
                             .index = tn_loader_skipped(s->loader) > 0 ? -1 : s->position + i,
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
    double *rows = work_numbers(output);
    tn_status status = rows != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        double loss = work_entropy(rows + i * classes, classes, s->truth[i]);

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
    if (status == TN_OK && known)
        status = metrics_add(&s->counts, output, step_target(r, batch));
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

static bool name_of(void *user, int64_t index, char *out, size_t size)
{
    return work_name(((const run *)user)->names, index, out, size);
}

static tn_status score_of(struct sums *s, score *out)
{
    const tally *t = &s->tally;
    const metrics *m = &s->counts;
    double auc = NAN;
    tn_status status = metrics_mean_auc(m, &auc);

    *out = (score){ .known = true,
                    .at = { t->loss / (double)t->samples,
                            t->compared > 0 ? (double)t->right / (double)t->compared : NAN,
                            m->k > 0 && m->counted > 0 ? (double)m->in_top / (double)m->counted
                                                       : NAN,
                            metrics_mean_f1(m), auc } };
    return status;
}

tn_status validate(run *r, int64_t epoch, score *out)
{
    int64_t size = setting_count(r->set, SET_BATCH_SIZE);
    tn_module *module = r->average != NULL ? r->average : r->model;
    struct sums s = { .counts = { .wants_auc = true, .k = r->classes > 5 ? 5 : 0 },
                      .truth = tn_malloc((size_t)size * 2 * sizeof(int64_t)) };
    tn_loader *loader;
    tn_status status;

    *out = (score){ .known = false };
    if (s.truth == NULL)
        return TN_ERR_MEMORY;
    s.predicted = s.truth + size;
    loader = tn_loader_new(r->val, "batch_size=%lld, seed=0, workers=%lld, skip_damaged=%b",
                           (long long)size, (long long)setting_count(r->set, SET_WORKERS),
                           (int)setting_on(r->set, SET_SKIP_DAMAGED));
    s.loader = loader;
    status = loader != NULL ? tn_module_eval(module) : tn_error_last_code();
    if (status == TN_OK) {
        progress_begin(r->progress, epoch, "validate", tn_loader_count(loader));
        tn_grad_begin(false);
        status = all_batches(r, module, loader, &s);
        tn_grad_end();
    }
    tn_loader_drop(loader);
    tn_free(s.truth);
    if (status == TN_OK && s.tally.samples == 0)
        status = tn_fail(TN_ERR_VALUE, "no sample could be read");
    if (status == TN_OK)
        status = score_of(&s, out);
    if (status == TN_OK && r->report != NULL && r->names != NULL)
        status = report_name_worst(r->report, name_of, r);
    metrics_free(&s.counts);
    return status == TN_OK ? freeze_mode(r) : tn_error_prefix("validation: ");
}
