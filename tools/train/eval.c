/* SPDX-License-Identifier: MIT
 *
 * tenon eval MODEL --data SPEC: the loss of a model on a dataset and, where its results are scores
 * of classes, how often it is right. The command knows no layers but the losses in `losses`, which
 * apply if no other loss is given. */
#include "eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The default losses. */
static const struct {
    bool classes; /* results are scores of classes, targets are classes; else numbers, both */
    const char *loss;
} losses[] = { { true, "CrossEntropyLoss()" }, { false, "MSELoss()" } };

static const char *wanted_loss;
static int64_t wanted_k;
static bool wants_confusion;
static int64_t wanted_worst;

static bool take_loss(const char *value)
{
    wanted_loss = value;
    return true;
}

static bool take_k(const char *value)
{
    return work_read_number(value, 1, INT32_MAX, &wanted_k);
}

static bool take_worst(const char *value)
{
    return work_read_number(value, 1, 10000, &wanted_worst);
}

static bool take_confusion(const char *value)
{
    (void)value;
    return wants_confusion = true;
}

/* ---- the worst samples ----------------------------------------------------------------------- */

static void keep_bad(evaluation *e, const bad_sample *sample)
{
    int64_t at = e->n_worst;

    if (at == wanted_worst && !work_is_larger(sample->loss, e->worst[at - 1].loss))
        return;
    at -= at == wanted_worst;
    e->n_worst = at + 1;
    for (; at > 0 && work_is_larger(sample->loss, e->worst[at - 1].loss); at--)
        e->worst[at] = e->worst[at - 1];
    e->worst[at] = *sample;
}

/* Keeps the worst of results [N, C] with classes [N]; `before` samples came before them. */
static tn_status add_worst(evaluation *e, tn_tensor *output, tn_tensor *target, int64_t before)
{
    int64_t count = tn_tensor_numel(target), classes = e->counts.classes;
    double *scores, *truth;

    if (wanted_worst == 0 || tn_tensor_ndim(target) != 1)
        return TN_OK;
    scores = work_numbers(output);
    truth = scores != NULL ? work_numbers(target) : NULL;
    for (int64_t i = 0; truth != NULL && i < count; i++) {
        const double *row = scores + i * classes;
        bad_sample sample = { before >= 0 ? before + i : -1, (int64_t)truth[i], 0, 0 };

        if (sample.truth < 0 || sample.truth >= classes)
            continue;
        for (int64_t c = 1; c < classes; c++)
            if (work_is_larger(row[c], row[sample.result]))
                sample.result = c;
        sample.loss = work_entropy(row, classes, sample.truth);
        keep_bad(e, &sample);
    }
    tn_free(scores);
    if (truth == NULL)
        return tn_error_last_code();
    tn_free(truth);
    return TN_OK;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Chooses the loss by the first batch. */
static tn_status choose_loss(evaluation *e, const tn_tensor *output, const tn_tensor *target)
{
    const char *spec = wanted_loss;
    char got[256], with[256];
    bool numbers = (TN_BIT(tn_tensor_dtype(target)) & TN_MASK_FLOAT) != 0;

    e->classifies = metrics_applies(output, target);
    for (size_t i = 0; i < sizeof losses / sizeof *losses && spec == NULL; i++)
        if (losses[i].classes ? e->classifies : numbers)
            spec = losses[i].loss;
    if (spec == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "--loss: no default for results %s with targets %s; expected a loss, or "
                       "results [N, C, ...] with integer targets [N, ...], or floating targets",
                       work_shape(output, got, sizeof got), work_shape(target, with, sizeof with));
    if (!e->classifies && (wanted_k > 0 || wants_confusion || wanted_worst > 0))
        return tn_fail(TN_ERR_VALUE,
                       "%s: results are no scores of classes, got %s with targets %s; expected "
                       "[N, C, ...] with integers [N, ...]",
                       wanted_k > 0      ? "--topk"
                       : wants_confusion ? "--confusion"
                                         : "--worst",
                       work_shape(output, got, sizeof got), work_shape(target, with, sizeof with));
    if (wanted_worst > 0 && tn_tensor_ndim(target) != 1)
        return tn_fail(TN_ERR_VALUE,
                       "--worst: samples with several classes each, got results %s with targets "
                       "%s; expected [N, C] with integers [N]",
                       work_shape(output, got, sizeof got), work_shape(target, with, sizeof with));
    e->loss = tn_module_parse(spec);
    if (e->loss == NULL)
        return tn_error_prefix("--loss: ");
    tn_snprint(e->loss_text, sizeof e->loss_text, "%s", spec);
    return tn_module_train(e->loss, false);
}

/* Fits a floating target to the result: gives it the dtype and, if it is [N] and the result is
 * [N, 1], the shape. */
static tn_tensor *fitting(tn_tensor *target, const tn_tensor *output)
{
    tn_ints from = tn_tensor_shape(target), to = tn_tensor_shape(output);
    char got[256], with[256];

    if ((TN_BIT(tn_tensor_dtype(target)) & TN_MASK_FLOAT) == 0)
        return target;
    if (from.count + 1 == to.count && to.at[to.count - 1] == 1 &&
        tn_tensor_numel(target) == tn_tensor_numel(output))
        target = tn_reshape(target, to);
    else if (wanted_loss == NULL &&
             (from.count != to.count ||
              memcmp(from.at, to.at, (size_t)to.count * sizeof *to.at) != 0)) {
        tn_fail(TN_ERR_VALUE, "target: wrong shape, got %s for results %s; expected the same shape",
                work_shape(target, got, sizeof got), work_shape(output, with, sizeof with));
        return NULL;
    }
    return target != NULL ? tn_cast(target, tn_tensor_dtype(output)) : NULL;
}

/* `known`: no sample before was left out. */
static tn_status add_batch(evaluation *e, const tn_pack *batch, bool known)
{
    TN_SCOPE;
    int64_t last = tn_pack_count(batch) - 1;
    tn_tensor *target = NULL, *output = NULL, *loss = NULL;

    if (last < 1)
        return tn_fail(TN_ERR_VALUE,
                       "--data: samples without a target, got %lld entry; expected the inputs of "
                       "the model and then the target",
                       (long long)last + 1);
    if (tn_pack_at(batch, last).kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE, "--data: the last entry of a sample is no target; expected a "
                                    "number or a tensor");
    target = work_target(tn_pack_tensor(batch, last), TN_DTYPE_AUTO);
    target = classes_renumber(&e->map, target);
    output = target != NULL ? work_call(e->module, batch, last, e->dtype) : NULL;
    output = output != NULL ? work_scores(output, target) : NULL;
    if (output == NULL)
        return tn_error_last_code();
    if (e->loss == NULL && choose_loss(e, output, target) != TN_OK)
        return tn_error_last_code();
    target = fitting(target, output);
    if (target == NULL)
        return tn_error_last_code();
    if (wanted_loss != NULL && e->batches == 0 && work_check_loss(e->loss, output, target) != TN_OK)
        return tn_error_last_code();
    tn_tensor *const arguments[] = { output, target };
    if (tn_module_call_many(e->loss, arguments, 2, &loss, 1) != TN_OK)
        return tn_error_prefix("--loss: ");
    if (tn_tensor_numel(loss) != 1) {
        char got[256];
        return tn_fail(TN_ERR_VALUE, "--loss: wrong result, got %s; expected one number",
                       work_shape(loss, got, sizeof got));
    }
    int64_t count = tn_tensor_ndim(output) > 0 ? tn_tensor_size(output, 0) : 1;
    double *value = work_numbers(loss);
    if (value == NULL)
        return tn_error_last_code();
    e->loss_sum += *value * (double)count;
    e->samples += count;
    e->batches++;
    tn_free(value);
    if (!e->classifies)
        return TN_OK;
    if (metrics_add(&e->counts, output, target) != TN_OK)
        return tn_error_last_code();
    return add_worst(e, output, target, known ? e->samples - count : -1);
}

static tn_status run_batches(evaluation *e, tn_loader *loader)
{
    double begin = work_clock();
    tn_status status = TN_OK;

    tn_grad_begin(false);
    for (;;) {
        double asked = work_clock();
        tn_pack *batch = tn_loader_next(loader);
        e->waiting += work_clock() - asked;
        if (batch == NULL)
            break;
        status = add_batch(e, batch, tn_loader_skipped(loader) == 0);
        if (status != TN_OK)
            break;
    }
    tn_grad_end();
    e->seconds = work_clock() - begin;
    e->skipped = tn_loader_skipped(loader);
    if (status == TN_OK && tn_failed())
        return work_data_failed(tn_error_last());
    if (status == TN_OK && e->samples == 0)
        return tn_fail(TN_ERR_VALUE, "--data: no samples%s",
                       e->skipped > 0 ? " that can be read" : "");
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Takes the names of the classes from the model, else from the dataset. A dataset may have only
 * some of the classes of the model, so their numbers are those of the model. */
static tn_status name_classes(evaluation *e, const tn_dataset *dataset, const model_notes *notes)
{
    class_names data = { NULL, 0 };
    tn_status status = classes_of_dataset(dataset, &data);

    if (status == TN_OK)
        status = classes_of_model(notes, &e->names);
    if (status == TN_OK)
        status = classes_match(&data, &e->names, &e->map);
    if (status == TN_OK && e->names.count == 0)
        e->names = data;
    else
        classes_free(&data);
    return status;
}

static tn_status find_areas(evaluation *e)
{
    const metrics *m = &e->counts;
    tn_status status = TN_OK;
    double sum = 0;
    int64_t count = 0;

    e->areas = tn_calloc((size_t)m->classes + 1, sizeof *e->areas);
    if (e->areas == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < m->classes && status == TN_OK; i++) {
        status = metrics_auc(m, i, &e->areas[i]);
        if (status == TN_OK && !isnan(e->areas[i])) {
            sum += e->areas[i];
            count++;
        }
    }
    e->mean_area = count > 0 ? sum / (double)count : NAN;
    return status;
}

static int run_eval(int count, char **arguments, bool json)
{
    evaluation e = {
        .counts = { .k = wanted_k, .wants_confusion = wants_confusion, .wants_auc = true },
        .most_worst = wanted_worst
    };
    model_notes notes = { 0 };
    tn_dataset *dataset = NULL;
    tn_loader *loader = NULL;
    tn_status status = TN_ERR_RUNTIME;
    (void)count;

    if (work_given.data == NULL) {
        fprintf(stderr, "tenon eval: --data is missing; expected the spec of a dataset; `tenon "
                        "eval --help` lists the arguments\n");
        return EXIT_USAGE;
    }
    const tn_device *device = work_device(work_given.device);
    if (device != NULL)
        e.module = work_model(arguments[0], &notes);
    if (e.module != NULL)
        dataset = work_dataset(work_given.data);
    if (dataset != NULL && wanted_worst > 0)
        e.files = work_names(dataset);
    dataset = work_transformed(dataset);
    if (dataset != NULL)
        loader = work_loader(dataset, work_given.batch);
    if (loader != NULL)
        status = name_classes(&e, dataset, &notes);
    if (status == TN_OK) {
        e.device = tn_device_name(device);
        e.dtype = work_dtype(e.module);
        if (wanted_worst > 0)
            e.worst = tn_calloc((size_t)wanted_worst, sizeof *e.worst);
        status = wanted_worst > 0 && e.worst == NULL ? TN_ERR_MEMORY : run_batches(&e, loader);
    }
    if (status == TN_OK)
        status = find_areas(&e);
    if (status == TN_OK && json)
        eval_answer_json(&e);
    else if (status == TN_OK)
        eval_answer_text(&e);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    tn_dataset_drop(e.files);
    tn_free(e.areas);
    tn_free(e.worst);
    tn_module_drop(e.loss);
    tn_module_drop(e.module);
    metrics_free(&e.counts);
    classes_free(&e.names);
    classes_map_free(&e.map);
    model_notes_free(&notes);
    return status == TN_OK ? EXIT_OK : tool_fail(NULL);
}

static const tool_option options[] = {
    { "--data", "SPEC", "the dataset: 'Digits(split=\"test\")', 'ImageFolder(\"photos\")'",
      work_take_data },
    WORK_DATA_OPTIONS,
    { "--batch-size", "N", "samples in a batch; default: 1", work_take_batch },
    WORK_MODEL_OPTIONS,
    WORK_DEVICE_OPTION,
    { "--loss", "SPEC",
      "the loss; default: CrossEntropyLoss() for results [N, C, ...] with integer targets "
      "[N, ...], MSELoss() for floating targets",
      take_loss },
    { "--topk", "K", "also counts how often the target is among the K best classes", take_k },
    { "--confusion", NULL,
      "also counts which classes are taken for which; as text a matrix of at most 11 classes, or "
      "the 20 most frequent pairs",
      take_confusion },
    { "--worst", "N",
      "also lists the N samples with the largest cross entropy, by the names of their files",
      take_worst },
    { NULL, NULL, NULL, NULL }
};

const command eval_command = {
    "eval",
    "MODEL --data SPEC",
    "loss and accuracy of a model on a dataset",
    "Calls a model with all samples of a dataset and prints the mean loss. If the results are "
    "scores of classes [N, C, ...] and the targets are integers [N, ...], it also prints the "
    "accuracy and, for each class, recall, precision, their harmonic mean F1, and the area under "
    "the ROC curve (AUC) of its probability against all other classes. The last entry of a sample "
    "is the target, the entries before it are the inputs of the model. Floating inputs are "
    "converted to the dtype of the model's parameters. Classes are compared by their names, if the "
    "data and the file of the model have names.\n\n" MODEL_HELP
    "\n\nThe loss is the mean of the losses of the batches, weighted by their numbers of samples.",
    1,
    1,
    run_eval,
    0,
    options
};
