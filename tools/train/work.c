/* SPDX-License-Identifier: MIT
 *
 * Shared by tenon eval, tenon predict and tenon bench. */
#include "work.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- options --------------------------------------------------------------------------------- */

work_options work_given = { .batch = 1 };

bool work_read_number(const char *value, int64_t least, int64_t most, int64_t *out)
{
    return tn_read_int(value, out) && *out >= least && *out <= most;
}

bool work_take_weights(const char *value)
{
    work_given.weights = value;
    return true;
}

bool work_take_loose(const char *value)
{
    (void)value;
    work_given.flags |= MODEL_LOOSE;
    return true;
}

bool work_take_device(const char *value)
{
    work_given.device = value;
    return true;
}

bool work_take_transform(const char *value)
{
    work_given.transform = value;
    return true;
}

bool work_take_data(const char *value)
{
    work_given.datasets++;
    work_given.data = value;
    return true;
}

bool work_take_batch(const char *value)
{
    return work_read_number(value, 1, INT32_MAX, &work_given.batch);
}

bool work_take_workers(const char *value)
{
    return work_read_number(value, 0, 1024, &work_given.workers);
}

bool work_take_skip(const char *value)
{
    (void)value;
    work_given.skip_damaged = true;
    return true;
}

/* ---- the device and the model ---------------------------------------------------------------- */

/* Adds the names of all devices to the message of the last failure. */
static void list_devices(const char *name)
{
    char all[512] = "", words[952];
    tn_status code = tn_error_last_code();
    int64_t used = 0;

    tn_snprint(words, sizeof words, "%s", tn_error_last()->message);
    tn_error_clear();
    for (int64_t i = 0, count = tn_device_count(); i < count && used < (int64_t)sizeof all; i++) {
        const tn_device *device = tn_device_at(i);
        if (device != NULL)
            used += tn_snprint(all + used, sizeof all - (size_t)used, "%s%s", used > 0 ? ", " : "",
                               tn_device_name(device));
    }
    tn_error_clear();
    tn_fail(code, "--device %s: not present; the devices are %s; %s", name, used > 0 ? all : "none",
            words);
}

const tn_device *work_device(const char *name)
{
    const tn_device *device = name != NULL ? tn_device_find(name) : tn_default_device();
    if (device == NULL && name != NULL)
        list_devices(name);
    if (device != NULL && !tn_device_has_memory(device)) {
        tn_fail(TN_ERR_VALUE,
                "--device: %s has no memory, so nothing can be computed on it; expected a device "
                "such as cpu",
                tn_device_name(device));
        return NULL;
    }
    if (device == NULL || tn_set_default_device(tn_device_name(device)) != TN_OK)
        return NULL;
    return device;
}

tn_module *work_model(const char *text, model_notes *notes)
{
    tn_module *module = model_open(text, work_given.weights, work_given.flags, notes);
    if (module != NULL && work_given.transform == NULL)
        work_given.transform = model_note(notes, MODEL_TRANSFORM);
    if (module == NULL || tn_module_train(module, false) == TN_OK)
        return module;
    tn_module_drop(module);
    return NULL;
}

static tn_status first_floating(void *user, const char *path, tn_tensor *tensor)
{
    tn_dtype *dtype = user;
    (void)path;
    if (*dtype == TN_DTYPE_AUTO && (TN_BIT(tn_tensor_dtype(tensor)) & TN_MASK_FLOAT) != 0)
        *dtype = tn_tensor_dtype(tensor);
    return TN_OK;
}

tn_dtype work_dtype(tn_module *module)
{
    tn_dtype dtype = TN_DTYPE_AUTO;
    tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, first_floating, &dtype);
    if (dtype == TN_DTYPE_AUTO) /* a quantized model has buffers only */
        tn_module_each_tensor(module, TN_SLOT_BUFFER, false, first_floating, &dtype);
    return dtype;
}

/* ---- data and calls -------------------------------------------------------------------------- */

tn_dataset *work_dataset(const char *text)
{
    tn_dataset *dataset;
    struct stat is;

    if (work_given.datasets > 1) {
        tn_fail(TN_ERR_VALUE, "--data: given %d times; expected one dataset",
                (int)work_given.datasets);
        return NULL;
    }
    dataset = tn_dataset_parse(text);
    if (dataset == NULL && stat(text, &is) == 0) {
        tn_error_clear();
        tn_fail(TN_ERR_VALUE, "%s: it is a %s; expected the spec of a dataset, such as %s(%q)",
                text, S_ISDIR(is.st_mode) ? "folder" : "file",
                S_ISDIR(is.st_mode) ? "ImageFolder" : "CSV", text);
    }
    return dataset;
}

tn_dataset *work_names(tn_dataset *dataset)
{
    uint64_t mark = tn_error_mark();
    tn_dataset *names = dataset != NULL ? tn_dataset_transform(dataset, "FileName()") : NULL;

    tn_error_restore(mark);
    return names;
}

bool work_name(tn_dataset *names, int64_t index, char *out, size_t size)
{
    TN_SCOPE;
    uint64_t mark = tn_error_mark();
    tn_pack *pack = names != NULL ? tn_pack_new() : NULL;
    bool found = false;

    if (pack != NULL && tn_dataset_get(names, index, 0, 0, pack) == TN_OK) {
        tn_value name = tn_pack_at(pack, 0);

        found = name.kind == TN_VALUE_STRING;
        if (found)
            tn_snprint(out, size, "%s", name.as.s);
    }
    tn_pack_drop(pack);
    tn_error_restore(mark);
    return found;
}

tn_dataset *work_transformed(tn_dataset *dataset)
{
    if (dataset == NULL || work_given.transform == NULL)
        return dataset;
    tn_dataset *made = tn_dataset_transform(dataset, work_given.transform);
    tn_dataset_drop(dataset);
    return made;
}

tn_loader *work_loader(tn_dataset *dataset, int64_t batch)
{
    return tn_loader_new(dataset, "batch_size=%lld, workers=%lld, skip_damaged=%b, seed=0",
                         (long long)batch, (long long)work_given.workers, work_given.skip_damaged);
}

tn_status work_data_failed(const tn_error *error)
{
    char message[sizeof error->message];
    tn_status code = error->code;
    const char *advice = "";

    tn_snprint(message, sizeof message, "%s", error->message);
    tn_error_clear();
    if (code == TN_ERR_FORMAT || code == TN_ERR_IO || code == TN_ERR_REFUSED ||
        ((code == TN_ERR_NOT_IMPLEMENTED || code == TN_ERR_VALUE) &&
         strncmp(message, "dataset ", 8) == 0))
        advice = "; --skip-damaged leaves such samples out";
    else if (strstr(message, "sizes differ") != NULL) /* text of a message of the loader */
        advice = "; for pictures: --transform '[Resize(256), CenterCrop(224), ToFloat()]'";
    return tn_fail(code, "%s%s", message, advice);
}

tn_tensor *work_scores(tn_tensor *output, const tn_tensor *target)
{
    const uint64_t integer = TN_BIT(tn_tensor_dtype(target)) & TN_MASK_INT;

    if (output == NULL || integer == 0 || tn_tensor_ndim(output) != 3 ||
        tn_tensor_ndim(target) != 2)
        return output;
    const int64_t *is = tn_tensor_shape(output).at, *of = tn_tensor_shape(target).at;
    if (is[0] != of[0] || is[1] != of[1] || is[2] == of[1])
        return output;
    return tn_transpose(output, 1, 2);
}

tn_tensor *work_target(tn_tensor *target, tn_dtype dtype)
{
    uint64_t kind = target != NULL ? TN_BIT(tn_tensor_dtype(target)) : 0;

    if ((kind & TN_MASK_FLOAT) == 0)
        dtype = (kind & TN_MASK_COMPLEX) == 0 ? TN_I64 : TN_DTYPE_AUTO;
    return target == NULL || dtype == TN_DTYPE_AUTO || kind == TN_BIT(dtype)
               ? target
               : tn_cast(target, dtype);
}

double work_entropy(const double *scores, int64_t count, int64_t truth)
{
    double largest = -INFINITY, sum = 0;

    for (int64_t i = 0; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    for (int64_t i = 0; i < count; i++)
        sum += exp(scores[i] - largest);
    return largest + log(sum) - scores[truth];
}

const char *work_shape(const tn_tensor *tensor, char *out, size_t size)
{
    tn_ints shape = tn_tensor_shape(tensor);
    int64_t used = tn_snprint(out, size, "%s [", tn_dtype_name(tn_tensor_dtype(tensor)));
    for (int64_t i = 0; i < shape.count && used < (int64_t)size; i++)
        used += tn_snprint(out + used, size - (size_t)used, "%s%lld", i > 0 ? ", " : "",
                           (long long)shape.at[i]);
    if (used < (int64_t)size)
        tn_snprint(out + used, size - (size_t)used, "]");
    return out;
}

static tn_tensor *first_tensor(const tn_value *value)
{
    tn_tensor *found = NULL;
    if (value->kind == TN_VALUE_TENSOR && value->as.tensor != TN_NONE)
        return value->as.tensor;
    for (uint32_t i = 0; i < tn_value_size(value) && found == NULL; i++)
        found = first_tensor(tn_value_item(value, i));
    return found;
}

/* Adds an entry of the batch to the input of a call. Writes a description of the entry to `words`.
 */
static tn_status add_input(tn_pack *in, const tn_pack *batch, int64_t index, tn_dtype dtype,
                           char *words, size_t size)
{
    char shape[256];
    tn_tensor *tensor;
    size_t used = strlen(words);
    if (tn_pack_at(batch, index).kind == TN_VALUE_DICT)
        return tn_fail(TN_ERR_TYPE,
                       "sample: entry %lld: it is a row of a table; expected a --transform that "
                       "makes numbers of it, as the file of a model has that was trained with "
                       "--standardize",
                       (long long)index);
    tensor = tn_pack_tensor(batch, index);
    if (tensor == NULL)
        return tn_error_prefix("sample: entry %lld: ", (long long)index);
    if (dtype != TN_DTYPE_AUTO && tn_tensor_dtype(tensor) != dtype &&
        (TN_BIT(tn_tensor_dtype(tensor)) & TN_MASK_FLOAT) != 0)
        tensor = tn_cast(tensor, dtype);
    if (tensor == NULL)
        return tn_error_last_code();
    tn_snprint(words + used, size - used, "%s%s", index > 0 ? ", " : "",
               work_shape(tensor, shape, sizeof shape));
    return tn_pack_add(in, NULL, tn_value_tensor(tensor));
}

tn_tensor *work_call(tn_module *module, const tn_pack *batch, int64_t inputs, tn_dtype dtype)
{
    char words[512] = "";
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_status status = in != NULL && out != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_tensor *result = NULL;

    for (int64_t i = 0; i < inputs && status == TN_OK; i++)
        status = add_input(in, batch, i, dtype, words, sizeof words);
    if (status == TN_OK) {
        status = tn_module_call_pack(module, in, out);
        if (status != TN_OK)
            tn_error_prefix("input %s: ", words);
    }
    for (int64_t i = 0; status == TN_OK && i < tn_pack_count(out) && result == NULL; i++) {
        tn_value value = tn_pack_at(out, i);
        result = first_tensor(&value);
    }
    if (status == TN_OK && result == NULL)
        tn_fail(TN_ERR_TYPE, "model: returned no tensor; expected one among its results");
    if (result != NULL)
        result = tn_tensor_to_scope(tn_tensor_keep(result));
    tn_pack_drop(in);
    tn_pack_drop(out);
    return result;
}

tn_status work_check_loss(tn_module *loss, const tn_tensor *output, const tn_tensor *target)
{
    TN_SCOPE;
    const bool classes = (TN_BIT(tn_tensor_dtype(target)) & TN_MASK_INT) != 0 &&
                         tn_tensor_ndim(target) == 1 && tn_tensor_ndim(output) == 2 &&
                         tn_tensor_size(output, 0) == tn_tensor_size(target, 0);
    int64_t count = classes ? tn_tensor_size(output, 1) : 0, samples = count != 2 ? 2 : 3;
    uint64_t mark = tn_error_mark();
    char got[256], with[256];
    tn_tensor *in[2], *result = NULL;
    tn_status status;

    if (count < 2)
        return TN_OK;
    in[0] = tn_tensor_full(TN_SHAPE(samples, count), TN_SCALAR(0.0), tn_tensor_dtype(output),
                           tn_tensor_device(output));
    in[1] = tn_tensor_full(TN_SHAPE(samples), TN_SCALAR(0.0), tn_tensor_dtype(target),
                           tn_tensor_device(target));
    if (in[0] == NULL || in[1] == NULL)
        return tn_error_last_code();
    tn_grad_begin(false);
    status = tn_module_call_many(loss, in, 2, &result, 1);
    tn_grad_end();
    if (status == TN_OK || status == TN_ERR_MEMORY)
        return status;
    tn_error_restore(mark);
    return tn_fail(TN_ERR_VALUE,
                   "--loss: %s is not for classes, got results %s with classes %s; expected a loss "
                   "such as CrossEntropyLoss(), or floating targets of the shape of the results",
                   tn_module_type(loss), work_shape(output, got, sizeof got),
                   work_shape(target, with, sizeof with));
}

double *work_numbers(tn_tensor *tensor)
{
    size_t count = (size_t)tn_tensor_numel(tensor);
    tn_tensor *host = tensor;
    double *numbers = NULL;

    if ((TN_BIT(tn_tensor_dtype(tensor)) & TN_MASK_COMPLEX) != 0) {
        tn_fail(TN_ERR_TYPE, "result: complex numbers, got %s; expected real numbers",
                tn_dtype_name(tn_tensor_dtype(tensor)));
        return NULL;
    }
    host = tn_tensor_empty(tn_tensor_shape(tensor), tn_tensor_dtype(tensor), tn_device_find("cpu"));
    if (host != NULL && tn_tensor_copy_async(host, tensor) == TN_OK)
        host = tn_cast(host, TN_F64);
    else
        host = NULL;
    if (host != NULL)
        numbers = tn_malloc((count + 1) * sizeof *numbers);
    if (numbers != NULL && tn_tensor_copy_out(host, numbers, count * sizeof *numbers) != TN_OK) {
        tn_free(numbers);
        numbers = NULL;
    }
    return numbers;
}

double work_clock(void)
{
    struct timespec now = { 0, 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
