/* SPDX-License-Identifier: MIT
 *
 * tenon predict MODEL INPUT...: the results of a model for pictures, tables and files of tensors.
 */
#include "predict.h"

#include <limits.h>
#include <signal.h>
#include <string.h>

static predict_output output;
static const char *format, *labels;
static bool single;
static int64_t data_inputs = 1;

static bool take_top(const char *value)
{
    return work_read_number(value, 1, INT32_MAX, &output.top);
}

static bool take_labels(const char *value)
{
    labels = value;
    return true;
}

static bool take_format(const char *value)
{
    format = value;
    return true;
}

static bool take_output(const char *value)
{
    output.path = value;
    return value[0] != '\0';
}

static bool take_raw(const char *value)
{
    (void)value;
    return output.raw = true;
}

static bool take_single(const char *value)
{
    (void)value;
    return single = true;
}

static bool take_inputs(const char *value)
{
    return work_read_number(value, 1, 64, &data_inputs);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Returns the number of entries of a batch that are inputs: as given, else all tensors that come
 * first. */
static int64_t count_inputs(const predict_group *group, const tn_pack *batch)
{
    int64_t count = 0;
    if (group->inputs > 0)
        return group->inputs;
    while (count < tn_pack_count(batch) && tn_pack_at(batch, count).kind == TN_VALUE_TENSOR)
        count++;
    return count;
}

/* Returns the name of a sample, which the caller frees. If it begins with `standard`, the path of
 * standard input, "-" replaces that path. */
static char *sample_name(const char *name, const char *standard)
{
    size_t length = strlen(standard);
    if (length > 0 && strncmp(name, standard, length) == 0) {
        size_t size = strlen(name) + 2;
        char *made = tn_malloc(size);
        if (made != NULL)
            tn_snprint(made, size, "-%s", name + length);
        return made;
    }
    return tn_strdup(name);
}

/* Returns the names of the samples of a batch, which the caller frees. */
static char **names_of(const predict_inputs *inputs, const predict_group *group,
                       const tn_pack *batch, int64_t count, int64_t first)
{
    char **names = tn_calloc((size_t)count + 1, sizeof *names);
    int64_t entries = tn_pack_count(batch);
    tn_value list = group->has_names && entries > 0 ? tn_pack_at(batch, entries - 1)
                                                    : tn_value_none();
    for (int64_t i = 0; names != NULL && i < count; i++) {
        char text[4200];
        const tn_value *item = i < (int64_t)tn_value_size(&list) ? tn_value_item(&list, (uint32_t)i)
                                                                 : NULL;
        if (item != NULL && item->kind == TN_VALUE_STRING)
            snprintf(text, sizeof text, "%s", item->as.s);
        else
            snprintf(text, sizeof text, "%s[%lld]", group->name != NULL ? group->name : "sample",
                     (long long)(first + i));
        names[i] = sample_name(text, inputs->standard_path);
    }
    return names;
}

/* Adds to the message of a failed call what may be wrong with a file of several tensors. */
static tn_status call_failed(const predict_group *group)
{
    char words[sizeof tn_error_last()->message];
    tn_status code = tn_error_last_code();

    if (group->tensors < 2)
        return code;
    tn_snprint(words, sizeof words, "%s", tn_error_last()->message);
    tn_error_clear();
    return tn_fail(code,
                   "%s; all %lld tensors of %s are inputs; if the last one has the targets: --data "
                   "'TensorFile(%q)'",
                   words, (long long)group->tensors, group->name, group->name);
}

static tn_status add_batch(tn_module *module, tn_dtype dtype, const predict_inputs *inputs,
                           const predict_group *group, const tn_pack *batch, int64_t *first)
{
    TN_SCOPE;
    char got[256];
    int64_t entries = count_inputs(group, batch), count = 0;
    tn_tensor *start = entries > 0 ? tn_pack_tensor(batch, 0) : NULL, *result = NULL;
    if (entries == 0)
        return tn_fail(
            TN_ERR_TYPE,
            "samples: the first entry is not a tensor; expected the inputs of the model first");
    if (start == NULL)
        return tn_error_last_code();
    count = tn_tensor_size(start, 0);
    result = work_call(module, batch, entries, dtype);
    if (result == NULL)
        return call_failed(group);
    if (tn_tensor_ndim(result) == 0 || tn_tensor_size(result, 0) != count)
        return tn_fail(TN_ERR_VALUE,
                       "model: wrong result, got %s for %lld samples; expected one for each",
                       work_shape(result, got, sizeof got), (long long)count);
    char **names = names_of(inputs, group, batch, count, *first);
    tn_status status = names != NULL ? predict_output_add(&output, result, names) : TN_ERR_MEMORY;
    for (int64_t i = 0; i < count && names != NULL; i++)
        tn_free(names[i]);
    tn_free(names);
    *first += count;
    return status;
}

static tn_status run_group(tn_module *module, tn_dtype dtype, const predict_inputs *inputs,
                           predict_group *group, int64_t *skipped)
{
    int64_t first = 0;
    tn_status status = TN_OK;
    tn_loader *loader = NULL;

    group->dataset = work_transformed(group->dataset);
    if (group->dataset != NULL)
        loader = work_loader(group->dataset, work_given.batch);
    if (loader == NULL)
        return tn_error_last_code();
    for (tn_pack *batch; status == TN_OK && (batch = tn_loader_next(loader)) != NULL;) {
        if (!group->has_names && tn_loader_skipped(loader) > 0)
            status = tn_fail(TN_ERR_VALUE,
                             "--skip-damaged: samples of %s have no names, so results "
                             "could not be told apart; expected no --skip-damaged",
                             group->name);
        else
            status = add_batch(module, dtype, inputs, group, batch, &first);
    }
    *skipped += tn_loader_skipped(loader);
    tn_loader_drop(loader);
    return status == TN_OK && tn_failed() ? work_data_failed(tn_error_last()) : status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static tn_status open_names(const model_notes *notes)
{
    output.learned = labels == NULL;
    if (labels != NULL)
        return classes_read(labels, &output.names);
    return classes_of_model(notes, &output.names);
}

static tn_status predict(tn_module *module, predict_inputs *inputs, const model_notes *notes)
{
    int64_t skipped = inputs->skipped;
    tn_dtype dtype = work_dtype(module);
    tn_status status = open_names(notes);

    if (status == TN_OK)
        status = predict_output_begin(&output);
    tn_grad_begin(false);
    for (int64_t i = 0; i < inputs->count && status == TN_OK; i++)
        status = run_group(module, dtype, inputs, &inputs->at[i], &skipped);
    tn_grad_end();
    if (status == TN_OK)
        status = predict_output_end(&output, skipped);
    if (status == TN_OK && skipped > 0)
        fprintf(stderr, "tenon: %lld damaged sample%s left out\n", (long long)skipped,
                skipped == 1 ? " was" : "s were");
    return status;
}

/* Names standard input "-" in the message of the last failure, which has the path of its copy. */
static void name_standard(const predict_inputs *inputs)
{
    const char *path = inputs->standard_path, *text = tn_error_text(), *found = strstr(text, path);
    char message[1024];
    tn_status code = tn_error_code();

    if (path[0] == '\0' || found == NULL)
        return;
    tn_snprint(message, sizeof message, "%.*s-%s", (int)(found - text), text, found + strlen(path));
    tn_error_clear();
    tn_fail(code, "%s", message);
}

static int usage(const char *words)
{
    fprintf(stderr, "tenon predict: %s; `tenon predict --help` lists its arguments\n", words);
    return EXIT_USAGE;
}

static int run_predict(int count, char **arguments, bool json)
{
    predict_inputs inputs = { .at = NULL };
    model_notes notes = { 0 };
    tn_module *module = NULL;
    tn_status status;

    if (count < 2 && work_given.data == NULL)
        return usage("no INPUT and no --data");
    if (count > 1 && work_given.data != NULL)
        return usage("INPUT and --data exclude each other");
    signal(SIGPIPE, SIG_IGN); /* writing then fails, and what was begun is removed */
    if (json && format == NULL)
        format = "json";
    status = predict_output_choose(format, &output);
    const tn_device *device = status == TN_OK ? work_device(work_given.device) : NULL;
    if (device != NULL)
        module = work_model(arguments[0], &notes);
    output.device = tn_device_name(device);
    status = module != NULL ? TN_OK : tn_error_last_code();
    if (status == TN_OK && work_given.data != NULL)
        status = predict_inputs_data(work_given.data, data_inputs, &inputs);
    else if (status == TN_OK)
        status = predict_inputs_open(arguments + 1, count - 1, single, &inputs);
    if (status == TN_OK)
        status = predict(module, &inputs, &notes);
    if (status != TN_OK)
        name_standard(&inputs);
    bool closed = status != TN_OK && predict_output_close(&output);
    predict_output_free(&output, status != TN_OK);
    predict_inputs_free(&inputs);
    tn_module_drop(module);
    model_notes_free(&notes);
    if (closed)
        fprintf(stderr, "tenon: %s\n", tn_error_text());
    return status == TN_OK ? EXIT_OK : closed ? EXIT_NOT_OK : tool_fail(NULL);
}

static const tool_option options[] = {
    { "--data", "SPEC", "a dataset in place of INPUT: 'CSV(\"a.csv\", header=True)'",
      work_take_data },
    { "--inputs", "N", "entries of a sample of --data that are inputs of the model; default: 1",
      take_inputs },
    { "--single", NULL, "a file of tensors is one sample, without a dimension for samples",
      take_single },
    WORK_DATA_OPTIONS,
    { "--batch-size", "N", "samples in a call; default: 1, so sizes may differ", work_take_batch },
    WORK_MODEL_OPTIONS,
    WORK_DEVICE_OPTION,
    { "--top", "K",
      "shows the K best classes with their probabilities; default: 3 if names of "
      "classes are known",
      take_top },
    { "--labels", "FILE",
      "names of the classes, one in a line or a JSON list; default: those in the file of the model",
      take_labels },
    { "--raw", NULL, "shows the results of classes as they are, not as probabilities", take_raw },
    { "--format", "FORMAT", "table, json, csv, png, or a format of tensors such as npy",
      take_format },
    { "--output", "FILE",
      "writes to a file, whose extension is the default of --format; for png a "
      "folder, or a file for one picture",
      take_output },
    { NULL, NULL, NULL, NULL }
};

const command predict_command = {
    "predict",
    "MODEL INPUT...",
    "results of a model for pictures, tables, tensors",
    "Calls a model with each input and prints the results. An INPUT is a file that a dataset with "
    "an option `paths` reads (`tenon info ImageFiles`), a folder of such files, a file of tensors, "
    "whose dimension 0 counts the samples, or - for standard input. If the names of the classes "
    "are known, or with --top, results [N, C] are shown as probabilities of classes: results that "
    "do not sum to 1 go through softmax first. Other results are shown as numbers.\n\n" MODEL_HELP,
    1,
    INT_MAX,
    run_predict,
    0,
    options
};
