/* SPDX-License-Identifier: MIT
 *
 * What a training writes into its report. */
#include "train.h"

#include <math.h>
#include <string.h>

/* Only the first parameters of a model have histograms, because the page would be too long. */
enum { HISTOGRAMS_MOST = 100 };

/* Writes what the run is in words, such as "run: Sequential trained on Digits". The specs are among
 * the settings. */
static void write_title(const run *r, char *out, size_t size)
{
    const char *data = setting_text(r->set, SET_DATA), *name = r->folder;
    size_t length = strlen(name), start = 0;

    while (length > 1 && name[length - 1] == '/')
        length--;
    for (size_t i = 0; i + 1 < length; i++)
        if (name[i] == '/')
            start = i + 1;
    snprintf(out, size, "%.*s: %.80s %s on %.*s", (int)(length - start), name + start,
             tn_module_type(r->model), r->set->of == OF_FINETUNE ? "fine-tuned" : "trained",
             (int)strcspn(data, "( \t\n"), data);
}

tn_status record_open(run *r)
{
    report_row rows[SETTINGS];
    const char **classes = tn_calloc((size_t)r->classes + 1, sizeof *classes);
    char title[400];
    report_setup setup = { .folder = r->folder,
                           .how = REPORT_REPLACE,
                           .settings = rows,
                           .classes = classes,
                           .class_count = r->classes,
                           .epochs = setting_count(r->set, SET_EPOCHS) };
    tn_status status;

    if (classes == NULL)
        return TN_ERR_MEMORY;
    for (int i = 0; i < SETTINGS; i++)
        if (setting_text(r->set, (setting)i) != NULL)
            rows[setup.setting_count++] = (report_row){ settings_row((setting)i)->name,
                                                        setting_text(r->set, (setting)i) };
    for (int64_t i = 0; i < r->classes; i++)
        classes[i] = tn_dataset_class_name(r->data, i);
    write_title(r, title, sizeof title);
    setup.title = title;
    /* The checkpoint from which a run continues was written after its rows. */
    if (r->step > 0 || tn_loader_epoch(r->loader) > 0) {
        setup.how = REPORT_RESUME;
        setup.resume_step = r->step;
    }
    status = report_open(&r->report, &setup);
    tn_free(classes);
    return status == TN_OK ? TN_OK : tn_error_prefix("report: ");
}

/* Records the learning rate of the first group, if the optimizer has one. */
static tn_status record_rate(run *r)
{
    uint64_t mark = tn_error_mark();
    double rate;

    if (tn_optimizer_get(r->optimizer, 0, "lr", &rate) != TN_OK) {
        tn_error_restore(mark);
        return TN_OK;
    }
    return report_scalar(r->report, "learning_rate", r->step, rate);
}

tn_status record_step(run *r, double loss)
{
    tn_status status = TN_OK;

    if (r->report == NULL)
        return TN_OK;
    status = report_scalar(r->report, "loss/step", r->step, loss);
    return status == TN_OK ? record_rate(r) : status;
}

/* Records the metrics that are known, of which the loss is one. */
static tn_status record_score(run *r, const score *of, const char *part)
{
    tn_status status = TN_OK;

    for (int i = 0; i < METRIC_COUNT && of->known && status == TN_OK; i++) {
        char name[40];

        snprintf(name, sizeof name, "%s/%s", metric_names[i], part);
        if (i == METRIC_LOSS || !isnan(of->at[i]))
            status = report_scalar(r->report, name, r->step, of->at[i]);
    }
    return status;
}

static tn_status record_histograms(run *r)
{
    tn_walk *walk = tn_walk_begin(r->model, TN_SLOT_PARAMETER, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();
    const tn_visit *visit;

    for (int i = 0; i < HISTOGRAMS_MOST && status == TN_OK && (visit = tn_walk_next(walk)) != NULL;
         i++) {
        TN_SCOPE;
        tn_tensor *gradient = tn_tensor_grad(visit->tensor);

        status = report_histogram(r->report, REPORT_WEIGHTS, visit->path, r->step, visit->tensor);
        if (status == TN_OK && gradient != NULL && gradient != TN_NONE)
            status = report_histogram(r->report, REPORT_GRADIENTS, visit->path, r->step, gradient);
    }
    tn_walk_end(walk);
    return status;
}

tn_status record_epoch(run *r, int64_t epoch, const score *train, const score *val)
{
    double seconds = run_clock() - r->began;
    tn_status status = TN_OK;

    if (r->report == NULL)
        return TN_OK;
    status = record_score(r, train, "train");
    if (status == TN_OK)
        status = record_score(r, val, "validation");
    if (status == TN_OK && seconds > 0 && r->counted > 0)
        status = report_scalar(r->report, "samples_per_second", r->step,
                               (double)r->counted / seconds);
    if (status == TN_OK)
        status = record_histograms(r);
    if (status == TN_OK)
        status = report_epoch(r->report, epoch, r->step, seconds);
    return status;
}
