/* SPDX-License-Identifier: MIT
 *
 * tenon quantize MODEL --scheme SPEC --out FILE: quantizes a model, compares it with the float
 * model, and writes the weights with the spec of the quantized model. */
#include "quantize.h"

#include <math.h>
#include <string.h>

enum { EXIT_LOSS = 3 }; /* more was lost than --max-loss allows */

static quantize_request wanted = { .batches = 32, .max_loss = NAN };

/* ---- the work -------------------------------------------------------------------------------- */

static tn_status add_bytes(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    *(int64_t *)user += tn_tensor_numel(tensor) * (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
    return TN_OK;
}

static int64_t bytes_of(tn_module *module)
{
    int64_t bytes = 0;

    tn_module_each_tensor(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false, add_bytes, &bytes);
    return bytes;
}

/* Returns whether a scheme has the option `range`: it needs calibration. A wrong spec is for the
 * library to refuse. */
static bool needs_calibration(const char *scheme)
{
    char name[64];
    uint64_t mark = tn_error_mark();
    const tn_head *head;
    const tn_option *row;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(scheme, "( "), scheme);
    head = tn_registry_find(TN_KIND_tn_layer_def, name);
    row = head != NULL ? tn_contribution_options(head) : NULL;
    tn_error_restore(mark);
    while (row != NULL && row->kind != TN_OPTION_KIND_END && strcmp(row->name, "range") != 0)
        row++;
    return row != NULL && row->kind != TN_OPTION_KIND_END;
}

/* Quantizes out->after in place. */
static tn_status quantize_model(quantize_outcome *out)
{
    tn_tensor *in[INPUTS_MOST];
    int64_t count = 0;
    const bool calibrates = needs_calibration(wanted.scheme);
    tn_status status = quantize_example(&wanted, out, in, &count);

    if (status == TN_OK && wanted.fuse != NULL)
        status = tn_module_fuse_list(out->after, wanted.fuse);
    if (status == TN_OK && calibrates)
        status = tn_module_quantize_prepare(out->after, wanted.scheme);
    if (status == TN_OK && calibrates)
        status = quantize_calibrate(&wanted, out);
    if (status == TN_OK)
        status = calibrates
                     ? tn_module_quantize_convert(out->after, in, count, &out->report)
                     : tn_module_quantize(out->after, wanted.scheme, in, count, &out->report);
    for (int64_t i = 0; i < count; i++)
        tn_tensor_drop(in[i]);
    if (status == TN_OK && out->report.count == 0)
        status = tn_fail(TN_ERR_VALUE,
                         "--scheme: no module of the model fits %s; expected a model with such "
                         "modules, which `tenon summary` lists",
                         wanted.scheme);
    return status;
}

static tn_status open_model(quantize_outcome *out, model_notes *notes)
{
    out->after = work_model(wanted.model, notes);
    out->before = out->after != NULL ? tn_module_copy(out->after) : NULL;
    if (out->before == NULL)
        return tn_error_last_code();
    out->dtype = work_dtype(out->before);
    out->bytes_before = bytes_of(out->before);
    return classes_of_model(notes, &out->names);
}

static bool loses_too_much(const quantize_outcome *out)
{
    return !isnan(wanted.max_loss) && quantize_loss(out) > wanted.max_loss;
}

static tn_status do_all(quantize_outcome *out, model_notes *notes)
{
    tn_status status = model_writable(wanted.out, wanted.model, work_given.weights);

    if (status == TN_OK)
        status = open_model(out, notes);
    if (status == TN_OK)
        status = tn_grad_begin(false);
    if (status != TN_OK)
        return status;
    status = quantize_model(out);
    if (status == TN_OK)
        status = quantize_compare(&wanted, out);
    tn_grad_end();
    if (status == TN_OK && !isnan(wanted.max_loss) && isnan(quantize_loss(out)))
        status = tn_fail(TN_ERR_VALUE, "--max-loss: the accuracy is not known; expected --data "
                                       "whose targets are classes");
    out->bytes_after = bytes_of(out->after);
    if (status == TN_OK && !loses_too_much(out))
        status = model_write(out->after, notes, wanted.out);
    return status;
}

static int quantize(bool json)
{
    TN_SCOPE;
    quantize_outcome out = { .dtype = TN_DTYPE_AUTO };
    model_notes notes = { 0 };
    int code = EXIT_NOT_OK;

    if (work_device(work_given.device) != NULL && do_all(&out, &notes) == TN_OK) {
        code = loses_too_much(&out) ? EXIT_LOSS : EXIT_OK;
        (json ? quantize_answer_json : quantize_answer_text)(&wanted, &out, code == EXIT_OK);
    }
    tn_quantize_report_free(&out.report);
    classes_free(&out.names);
    classes_map_free(&out.map);
    metrics_free(&out.right_before);
    metrics_free(&out.right_after);
    tn_module_drop(out.before);
    tn_module_drop(out.after);
    model_notes_free(&notes);
    return code == EXIT_NOT_OK ? tool_fail(NULL) : code;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool take_scheme(const char *value)
{
    wanted.scheme = value;
    return value[0] != '\0';
}

static bool take_out(const char *value)
{
    wanted.out = value;
    return value[0] != '\0';
}

static bool take_fuse(const char *value)
{
    wanted.fuse = value;
    return true;
}

static bool take_calibrate(const char *value)
{
    wanted.calibrate = value;
    return true;
}

static bool take_batches(const char *value)
{
    return work_read_number(value, 1, INT32_MAX, &wanted.batches);
}

static bool take_input(const char *value)
{
    return inputs_take(&wanted.inputs, value);
}

static bool take_max_loss(const char *value)
{
    return tn_read_float(value, &wanted.max_loss) && isfinite(wanted.max_loss);
}

static int run(int count, char **arguments, bool json)
{
    const char *missing = wanted.scheme == NULL ? "--scheme" : wanted.out == NULL ? "--out" : NULL;

    (void)count;
    wanted.model = arguments[0];
    if (missing != NULL) {
        fprintf(stderr,
                "tenon quantize: %s is missing; `tenon quantize --help` lists the arguments\n",
                missing);
        return EXIT_USAGE;
    }
    return quantize(json);
}

static const tool_option options[] = {
    { "--scheme", "SPEC",
      "how layers are quantized: int8_dynamic, int8_static, int8_weight, int4_weight, with options "
      "as in 'int8_dynamic(types=[Linear], skip=[head])'; docs/guides/quantization.md lists them",
      take_scheme },
    { "--out", "FILE", "the file that is written, such as small.safetensors", take_out },
    { "--data", "SPEC",
      "a dataset, for calibration and to compare accuracy and time: 'Digits(split=\"test\")'",
      work_take_data },
    { "--calibrate", "SPEC", "another dataset for calibration", take_calibrate },
    { "--batches", "N", "batches for calibration; default: 32", take_batches },
    { "--batch-size", "N", "samples in a batch; default: 1", work_take_batch },
    WORK_DATA_OPTIONS,
    { "--input", "SHAPE",
      "without --data: an example of an input, 1,3,32,32 or 1,20:int64; repeat it for each (at "
      "most 8)",
      take_input },
    { "--fuse", "LIST", "modules that are fused before: 'conv1, bn1, relu; conv2, bn2'",
      take_fuse },
    { "--max-loss", "X",
      "if more than X points of accuracy are lost, nothing is written and the exit status is 3",
      take_max_loss },
    WORK_MODEL_OPTIONS,
    WORK_DEVICE_OPTION,
    { NULL, NULL, NULL, NULL }
};

const command quantize_command = {
    "quantize",
    "MODEL --scheme SPEC --out FILE",
    "makes a model compute with integers",
    "Replaces layers of a model by layers whose weights are integers of 8 or 4 bits, and writes "
    "the weights with the spec of the quantized model in the metadata, so that the file is a "
    "MODEL for the other commands. Prints for each layer how much the results differ (the power "
    "of the results over that of the error, SQNR, in dB), the size and the time of a call; "
    "layers below the limit of the scheme, 20 dB, stay in float. With --data, prints accuracy "
    "and time of both models. " MODEL_HELP,
    1,
    1,
    run,
    0,
    options
};
