/* SPDX-License-Identifier: MIT
 *
 * Calls a quantized model and the float model that it was made from with the same data. */
#include "quantize.h"

#include <math.h>

enum { TIMED_LEAST = 3 }; /* calls of one batch that are timed, if there is only one */

/* Opens the data of a spec, or of --data; NULL without an error if there is none. */
static tn_status open_loader(const char *spec, quantize_outcome *out, tn_loader **loader)
{
    const char *text = spec != NULL ? spec : work_given.data;
    tn_dataset *dataset = text != NULL ? work_transformed(work_dataset(text)) : NULL;
    class_names data = { NULL, 0 };
    tn_status status = TN_OK;

    *loader = NULL;
    classes_map_free(&out->map);
    if (dataset != NULL && spec == NULL) /* calibration needs no classes */
        status = classes_of_dataset(dataset, &data);
    if (status == TN_OK)
        status = classes_match(&data, &out->names, &out->map);
    classes_free(&data);
    if (dataset != NULL && status == TN_OK)
        *loader = work_loader(dataset, work_given.batch);
    tn_dataset_drop(dataset);
    return text == NULL || *loader != NULL ? status : tn_error_last_code();
}

/* Returns how many entries of a batch are inputs: all but the target, which is the last of
 * several. */
static int64_t inputs_of(const tn_pack *batch)
{
    int64_t count = tn_pack_count(batch);

    return count > 1 ? count - 1 : count;
}

static tn_status end_of_data(tn_loader *loader, int64_t batches)
{
    if (tn_failed())
        return work_data_failed(tn_error_last());
    if (batches == 0)
        return tn_fail(TN_ERR_VALUE, "--data: no samples%s; expected at least one",
                       tn_loader_skipped(loader) > 0 ? " that can be read" : "");
    return TN_OK;
}

/* ---- calibration ----------------------------------------------------------------------------- */

tn_status quantize_calibrate(const quantize_request *wanted, quantize_outcome *out)
{
    tn_loader *loader;
    tn_pack *batch;
    int64_t batches = 0;
    tn_status status = open_loader(wanted->calibrate, out, &loader);

    if (status == TN_OK && loader == NULL)
        status = tn_fail(TN_ERR_VALUE, "--data: missing; expected a dataset, because the scheme "
                                       "needs calibration");
    if (status == TN_OK)
        tn_error_clear();
    while (status == TN_OK && batches < wanted->batches &&
           (batch = tn_loader_next(loader)) != NULL) {
        TN_SCOPE;

        if (work_call(out->after, batch, inputs_of(batch), out->dtype) == NULL)
            status = tn_error_last_code();
        batches++;
    }
    if (status == TN_OK && batches < wanted->batches)
        status = end_of_data(loader, batches);
    tn_loader_drop(loader);
    return status;
}

/* ---- an example ------------------------------------------------------------------------------ */

static tn_status keep_input(tn_tensor *tensor, tn_dtype dtype, tn_tensor **in, int64_t *count)
{
    if (tensor != NULL && dtype != TN_DTYPE_AUTO &&
        (TN_BIT(tn_tensor_dtype(tensor)) & TN_MASK_FLOAT) != 0)
        tensor = tn_cast(tensor, dtype);
    if (tensor == NULL)
        return tn_error_last_code();
    in[(*count)++] = tn_tensor_keep(tensor);
    return TN_OK;
}

tn_status quantize_example(const quantize_request *wanted, quantize_outcome *out, tn_tensor **in,
                           int64_t *count)
{
    TN_SCOPE;
    tn_loader *loader;
    tn_pack *batch;
    tn_status status = open_loader(wanted->calibrate, out, &loader);

    *count = 0;
    for (int i = 0; status == TN_OK && loader == NULL && i < wanted->inputs.count; i++)
        status = keep_input(input_example(wanted->inputs.at[i]), out->dtype, in, count);
    if (status != TN_OK || loader == NULL)
        return status;
    tn_error_clear();
    batch = tn_loader_next(loader);
    status = batch != NULL ? TN_OK : end_of_data(loader, 0);
    for (int64_t i = 0; status == TN_OK && i < inputs_of(batch) && i < INPUTS_MOST; i++)
        status = keep_input(tn_pack_tensor(batch, i), out->dtype, in, count);
    tn_loader_drop(loader);
    return status;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static tn_status add_product(tn_tensor *a, tn_tensor *b, double *sum)
{
    tn_tensor *all = tn_sum(tn_mul(a, b));
    tn_scalar number;

    if (all == NULL || tn_tensor_scalar(all, &number) != TN_OK)
        return tn_error_last_code();
    *sum += tn_scalar_as_float(number);
    return TN_OK;
}

static tn_status add_results(quantize_outcome *out, tn_tensor *before, tn_tensor *after)
{
    tn_tensor *a, *b, *error;

    if ((TN_BIT(tn_tensor_dtype(before)) & TN_MASK_FLOAT) == 0)
        return TN_OK;
    out->measured = true;
    a = tn_cast(before, TN_F32);
    b = tn_cast(after, TN_F32);
    error = tn_sub(a, b);
    if (add_product(a, a, &out->powers[0]) != TN_OK ||
        add_product(b, b, &out->powers[1]) != TN_OK || add_product(a, b, &out->powers[2]) != TN_OK)
        return tn_error_last_code();
    return add_product(error, error, &out->noise);
}

/* Counts the right answers of both. */
static tn_status add_answers(quantize_outcome *out, const tn_pack *batch, tn_tensor *before,
                             tn_tensor *after)
{
    int64_t last = tn_pack_count(batch) - 1;
    tn_tensor *target;

    if (last < 1 || tn_pack_at(batch, last).kind != TN_VALUE_TENSOR)
        return TN_OK;
    target = work_target(tn_pack_tensor(batch, last), TN_DTYPE_AUTO);
    target = classes_renumber(&out->map, target);
    before = work_scores(before, target);
    after = work_scores(after, target);
    if (target == NULL || before == NULL || after == NULL)
        return tn_error_last_code();
    if (!metrics_applies(before, target))
        return TN_OK;
    out->classifies = true;
    if (metrics_add(&out->right_before, before, target) != TN_OK)
        return tn_error_last_code();
    return metrics_add(&out->right_after, after, target);
}

static tn_tensor *timed_call(tn_module *module, const tn_pack *batch, tn_dtype dtype,
                             double *seconds)
{
    double begin = work_clock();
    tn_tensor *y = work_call(module, batch, inputs_of(batch), dtype);

    if (y == NULL || tn_device_sync(tn_tensor_device(y)) != TN_OK)
        return NULL;
    *seconds = work_clock() - begin;
    return y;
}

/* Calls both with a batch. The times are sums over all batches but the first, which warms up. */
static tn_status add_batch(quantize_outcome *out, const tn_pack *batch)
{
    TN_SCOPE;
    double one, other;
    tn_tensor *before = timed_call(out->before, batch, out->dtype, &one);
    tn_tensor *after = before != NULL ? timed_call(out->after, batch, out->dtype, &other) : NULL;

    if (after == NULL)
        return tn_error_last_code();
    if (out->batches++ > 0) {
        out->seconds_before += one;
        out->seconds_after += other;
    }
    if (add_results(out, before, after) != TN_OK)
        return tn_error_last_code();
    return add_answers(out, batch, before, after);
}

/* Calls both with --input. */
static tn_status compare_example(const quantize_request *wanted, quantize_outcome *out)
{
    TN_SCOPE;
    tn_pack *batch = tn_pack_new();
    tn_status status = batch != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int i = 0; status == TN_OK && i < wanted->inputs.count; i++) {
        tn_tensor *x = input_example(wanted->inputs.at[i]);

        status = x != NULL ? tn_pack_add(batch, NULL, tn_value_tensor(x)) : tn_error_last_code();
    }
    if (status == TN_OK) /* no entry is a target */
        status = tn_pack_add(batch, NULL, tn_value_none());
    for (int i = 0; status == TN_OK && i <= TIMED_LEAST; i++)
        status = add_batch(out, batch);
    tn_pack_drop(batch);
    return status;
}

tn_status quantize_compare(const quantize_request *wanted, quantize_outcome *out)
{
    tn_loader *loader;
    tn_pack *batch;
    tn_status status = open_loader(NULL, out, &loader);

    if (status != TN_OK || (loader == NULL && wanted->inputs.count == 0))
        return status;
    out->compared = true;
    if (loader == NULL)
        return compare_example(wanted, out);
    tn_error_clear();
    while (status == TN_OK && (batch = tn_loader_next(loader)) != NULL)
        status = add_batch(out, batch);
    if (status == TN_OK)
        status = end_of_data(loader, out->batches);
    out->skipped = tn_loader_skipped(loader);
    tn_loader_drop(loader);
    return status;
}

double quantize_loss(const quantize_outcome *out)
{
    if (!out->classifies || out->right_before.counted == 0)
        return NAN;
    return 100.0 * (double)(out->right_before.correct - out->right_after.correct) /
           (double)out->right_before.counted;
}
