/* SPDX-License-Identifier: MIT
 *
 * tenon eval MODEL --data SPEC: the loss of a model on a dataset and, where its results are scores
 * of classes, how often it is right. The command knows no layers but the losses in `losses`, which
 * apply if no other loss is given. */
#include "metrics.h"
#include "progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The default losses. */
static const struct {
    bool classes; /* results are scores of classes, targets are classes; else numbers, both */
    const char *loss;
} losses[] = { { true, "CrossEntropyLoss()" }, { false, "MSELoss()" } };

enum { MATRIX_MOST = 11, PAIRS = 20 };

static const char *wanted_loss;
static int64_t wanted_k;
static bool wants_confusion;

/* An evaluation. */
typedef struct evaluation {
    tn_module *module, *loss;
    char loss_text[512];
    tn_dtype dtype;
    metrics counts;
    bool classifies;
    int64_t samples, batches, skipped;
    double loss_sum, seconds, waiting;
    const char *device;
    class_names names;
} evaluation;

static bool take_loss(const char *value)
{
    wanted_loss = value;
    return true;
}

static bool take_k(const char *value)
{
    return work_read_number(value, 1, INT32_MAX, &wanted_k);
}

static bool take_confusion(const char *value)
{
    (void)value;
    return wants_confusion = true;
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
    if (!e->classifies && (wanted_k > 0 || wants_confusion))
        return tn_fail(TN_ERR_VALUE,
                       "%s: results are no scores of classes, got %s with targets %s; expected "
                       "[N, C, ...] with integers [N, ...]",
                       wanted_k > 0 ? "--topk" : "--confusion", work_shape(output, got, sizeof got),
                       work_shape(target, with, sizeof with));
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

static tn_status add_batch(evaluation *e, const tn_pack *batch)
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
    return e->classifies ? metrics_add(&e->counts, output, target) : TN_OK;
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
        status = add_batch(e, batch);
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

/* ---- results --------------------------------------------------------------------------------- */

static const char *fixed(double number, char *out, size_t size)
{
    snprintf(out, size, isnan(number) ? "-" : "%.4f", number);
    return out;
}

static void print_classes(const evaluation *e)
{
    const metrics *m = &e->counts;
    table t = { .columns = 6 };
    char name[32], seen[32], hit[32], recall[32], precision[32], f1[32];

    putchar('\n');
    table_row(&t, "CLASS", "SAMPLES", "CORRECT", "RECALL", "PRECISION", "F1");
    for (int64_t i = 0; i < m->classes; i++) {
        snprintf(seen, sizeof seen, "%lld", (long long)m->seen[i]);
        snprintf(hit, sizeof hit, "%lld", (long long)m->hit[i]);
        table_row(&t, classes_name(&e->names, i, name, sizeof name), seen, hit,
                  fixed(metrics_recall(m, i), recall, sizeof recall),
                  fixed(metrics_precision(m, i), precision, sizeof precision),
                  fixed(metrics_f1(m, i), f1, sizeof f1));
    }
    table_print(&t);
}

/* Prints a small matrix as lines of at most TABLE_COLUMNS cells. */
static void print_matrix(const evaluation *e)
{
    const metrics *m = &e->counts;
    const char *cells[MATRIX_MOST + 1];
    char texts[MATRIX_MOST][32], name[32];
    table t = { .columns = (int)m->classes + 1 };

    for (int64_t row = -1; row < m->classes; row++) {
        cells[0] = row < 0 ? "TRUE \\ RESULT" : classes_name(&e->names, row, name, sizeof name);
        for (int64_t i = 0; i < MATRIX_MOST; i++) {
            cells[i + 1] = texts[i];
            if (i < m->classes && row < 0)
                cells[i + 1] = classes_name(&e->names, i, texts[i], sizeof texts[i]);
            else if (i < m->classes)
                snprintf(texts[i], sizeof texts[i], "%lld",
                         (long long)m->confusion[row * m->classes + i]);
        }
        table_row(&t, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6],
                  cells[7], cells[8], cells[9], cells[10], cells[11]);
    }
    table_print(&t);
}

/* Prints the pairs of classes that are confused most often. */
static void print_pairs(const evaluation *e)
{
    const metrics *m = &e->counts;
    int64_t last = INT64_MAX, at = -1, shown = 0;
    table t = { .columns = 3 };
    char name[32], other[32], number[32];

    table_row(&t, "TRUE", "RESULT", "SAMPLES");
    while (shown < PAIRS) {
        /* The next pair: the largest count below the last one, or an equal count after it. */
        int64_t best = -1;
        for (int64_t i = 0; i < m->classes * m->classes; i++) {
            int64_t here = m->confusion[i];
            bool left = here < last || (here == last && i > at);
            if (i / m->classes != i % m->classes && here > 0 && left &&
                (best < 0 || here > m->confusion[best]))
                best = i;
        }
        if (best < 0)
            break;
        last = m->confusion[best];
        at = best;
        shown++;
        snprintf(number, sizeof number, "%lld", (long long)last);
        table_row(&t, classes_name(&e->names, best / m->classes, name, sizeof name),
                  classes_name(&e->names, best % m->classes, other, sizeof other), number);
    }
    table_print(&t);
}

static void print_line(const char *name, const char *format, ...)
{
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_wrapped(name, 12, text);
}

static void answer_text(const evaluation *e)
{
    const metrics *m = &e->counts;
    char loss[32];

    print_line("samples", "%lld in %lld batches of %lld on %s", (long long)e->samples,
               (long long)e->batches, (long long)work_given.batch, e->device);
    if (work_given.transform != NULL)
        print_line("transform", "%s", work_given.transform);
    if (e->skipped > 0)
        print_line("skipped", "%lld damaged sample%s", (long long)e->skipped,
                   e->skipped == 1 ? "" : "s");
    print_line("loss", "%s  %s",
               progress_number(e->loss_sum / (double)e->samples, 6, loss, sizeof loss),
               e->loss_text);
    if (e->classifies && m->counted > 0) {
        print_line("accuracy", "%.4f  (%lld of %lld)", (double)m->correct / (double)m->counted,
                   (long long)m->correct, (long long)m->counted);
        if (m->k > 0)
            print_line("top", "%.4f  (%lld within the first %lld)",
                       (double)m->in_top / (double)m->counted, (long long)m->in_top,
                       (long long)m->k);
    }
    if (m->ignored > 0)
        print_line("ignored", "%lld targets that are no class of the model", (long long)m->ignored);
    print_line("time", "%.3f s, of which %.3f s waiting for data; %.1f samples/s", e->seconds,
               e->waiting, (double)e->samples / e->seconds);
    if (!e->classifies || m->classes == 0)
        return;
    print_classes(e);
    if (m->confusion == NULL)
        return;
    putchar('\n');
    if (m->classes <= MATRIX_MOST)
        print_matrix(e);
    else
        print_pairs(e);
}

static void classes_json(const evaluation *e)
{
    const metrics *m = &e->counts;
    char name[32];
    json_begin("classes", '[');
    for (int64_t i = 0; i < m->classes; i++) {
        json_begin(NULL, '{');
        json_text("name", classes_name(&e->names, i, name, sizeof name));
        json_int("samples", m->seen[i]);
        json_int("results", m->predicted[i]);
        json_int("correct", m->hit[i]);
        json_float("recall", metrics_recall(m, i));
        json_float("precision", metrics_precision(m, i));
        json_float("f1", metrics_f1(m, i));
        json_end('}');
    }
    json_end(']');
    if (m->confusion == NULL)
        return;
    json_begin("confusion", '[');
    for (int64_t row = 0; row < m->classes; row++) {
        json_begin(NULL, '[');
        for (int64_t i = 0; i < m->classes; i++)
            json_int(NULL, m->confusion[row * m->classes + i]);
        json_end(']');
    }
    json_end(']');
}

static void answer_json(const evaluation *e)
{
    const metrics *m = &e->counts;
    json_begin(NULL, '{');
    json_text("device", e->device);
    json_int("samples", e->samples);
    json_int("batches", e->batches);
    json_int("skipped", e->skipped);
    if (work_given.transform != NULL)
        json_text("transform", work_given.transform);
    json_text("loss_spec", e->loss_text);
    json_float("loss", e->loss_sum / (double)e->samples);
    if (e->classifies) {
        json_int("counted", m->counted);
        json_int("ignored", m->ignored);
        json_int("correct", m->correct);
        json_float("accuracy", (double)m->correct / (double)m->counted);
        if (m->k > 0) {
            json_int("k", m->k);
            json_float("top_accuracy", (double)m->in_top / (double)m->counted);
        }
    }
    json_float("seconds", e->seconds);
    json_float("seconds_waiting", e->waiting);
    json_float("samples_per_second", (double)e->samples / e->seconds);
    if (e->classifies)
        classes_json(e);
    json_end('}');
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Takes the names of the classes from the dataset, else from the model. If both have names, says on
 * standard error where they differ, because the model may have learned another order. */
static tn_status name_classes(evaluation *e, const tn_dataset *dataset, const model_notes *notes)
{
    const char *json = model_note(notes, MODEL_CLASSES);
    class_names learned = { NULL, 0 };
    tn_status status = classes_of_dataset(dataset, &e->names);

    if (status == TN_OK && json != NULL)
        status = classes_parse(json, MODEL_CLASSES, &learned);
    for (int64_t i = 0; i < e->names.count && i < learned.count; i++)
        if (strcmp(e->names.at[i], learned.at[i]) != 0) {
            fprintf(stderr,
                    "tenon: class %lld is \"%s\" in the data, and \"%s\" in the model; the results "
                    "compare numbers of classes\n",
                    (long long)i, e->names.at[i], learned.at[i]);
            break;
        }
    if (status == TN_OK && e->names.count == 0) {
        e->names = learned;
        return TN_OK;
    }
    classes_free(&learned);
    return status;
}

static int run_eval(int count, char **arguments, bool json)
{
    evaluation e = { .counts = { .k = wanted_k, .wants_confusion = wants_confusion } };
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
        dataset = work_transformed(work_dataset(work_given.data));
    if (dataset != NULL)
        loader = work_loader(dataset, work_given.batch);
    if (loader != NULL)
        status = name_classes(&e, dataset, &notes);
    if (status == TN_OK) {
        e.device = tn_device_name(device);
        e.dtype = work_dtype(e.module);
        status = run_batches(&e, loader);
    }
    if (status == TN_OK && json)
        answer_json(&e);
    else if (status == TN_OK)
        answer_text(&e);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    tn_module_drop(e.loss);
    tn_module_drop(e.module);
    metrics_free(&e.counts);
    classes_free(&e.names);
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
    { NULL, NULL, NULL, NULL }
};

const command eval_command = {
    "eval",
    "MODEL --data SPEC",
    "loss and accuracy of a model on a dataset",
    "Calls a model with all samples of a dataset and prints the mean loss. If the results are "
    "scores of classes [N, C, ...] and the targets are integers [N, ...], it also prints the "
    "accuracy and, for each class, recall, precision and their harmonic mean F1. The last entry of "
    "a sample is the target, the entries before it are the inputs of the model. Floating inputs "
    "are converted to the dtype of the model's parameters.\n\n" MODEL_HELP
    "\n\nThe loss is the mean of the losses of the batches, weighted by their numbers of samples.",
    1,
    1,
    run_eval,
    0,
    options
};
