/* SPDX-License-Identifier: MIT
 *
 * The tensors of a file in any format that is installed, such as .npz or .safetensors. Sample i has
 * element i of each tensor. */
#include "data.h"

#include <string.h>

struct tensors_options {
    const char *path;
    tn_value names;
    const char *target;
};
static const tn_option tensors_options[] = {
    TN_OPTION_ROW(struct tensors_options, path, NULL, "a file, or a folder with files of weights",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct tensors_options, names, "None",
                  "list with the names of the tensors; None: all tensors in the order of the file",
                  TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_ROW(
        struct tensors_options, target, "None",
        "the last tensor is a 'class' from 0 on, or a 'number'; None: classes if it is a row of "
        "integers after one other tensor",
        TN_OPTION_KIND_STRING, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

struct tensors {
    tn_state *state; /* owns the tensors */
    tn_tensor **at;
    int64_t count;
    float *numbers; /* of the last tensor, with target='number' */
};

static void tensors_close(void *handle)
{
    struct tensors *t = handle;

    if (t == NULL)
        return;
    tn_free(t->numbers);
    tn_free(t->at);
    tn_state_drop(t->state);
    tn_free(t);
}

/* Adds a tensor; all must have the same size in dimension 0. */
static tn_status add(struct tensors *t, const char *path, const char *name, tn_tensor *tensor)
{
    tn_tensor *first = t->count > 0 ? t->at[0] : tensor;

    if (tn_tensor_ndim(tensor) < 1)
        return tn_fail(TN_ERR_VALUE, "%s: tensor %q: no dimensions; expected one for the samples",
                       path, name);
    if (tn_tensor_size(tensor, 0) != tn_tensor_size(first, 0))
        return tn_fail(TN_ERR_VALUE,
                       "%s: tensor %q: has %lld samples, the first tensor has %lld; expected as "
                       "many in each",
                       path, name, (long long)tn_tensor_size(tensor, 0),
                       (long long)tn_tensor_size(first, 0));
    t->at[t->count++] = tensor;
    return TN_OK;
}

static tn_status add_named(struct tensors *t, const char *path, const tn_value *names)
{
    tn_status status = TN_OK;

    if (names->kind != TN_VALUE_LIST && names->kind != TN_VALUE_TUPLE)
        return tn_fail(TN_ERR_TYPE, "names: wrong type, got %s; expected a list of names",
                       tn_value_kind_name(names->kind));
    for (uint32_t i = 0; i < names->count && status == TN_OK; i++) {
        const tn_value *name = &names->as.list[i];
        tn_tensor *tensor;

        if (name->kind != TN_VALUE_STRING)
            return tn_fail(TN_ERR_TYPE, "names: entry %u: wrong type, got %s; expected a string", i,
                           tn_value_kind_name(name->kind));
        tensor = tn_state_get(t->state, name->as.s);
        status = tensor != NULL ? add(t, path, name->as.s, tensor) : tn_error_last_code();
    }
    return status;
}

static tn_status add_all(struct tensors *t, const char *path)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_state_count(t->state) && status == TN_OK; i++)
        if (tn_state_value(t->state, i).kind == TN_VALUE_TENSOR)
            status = add(t, path, tn_state_name(t->state, i), tn_state_tensor(t->state, i));
    return status;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Finds the classes of a row of labels: their numbers are those of the classes. Sets *classes to 0
 * if they are no classes and `target` does not ask for them. */
static tn_status find_classes(const char *path, tn_tensor *labels, bool asked, int64_t *classes)
{
    TN_SCOPE;
    size_t count = (size_t)tn_tensor_size(labels, 0), bad = count;
    tn_tensor *row = tn_cast(labels, TN_I64);
    int64_t *at = tn_malloc((count + 1) * sizeof *at), most = -1;
    tn_status status = row != NULL && at != NULL ? tn_tensor_copy_out(row, at, count * sizeof *at)
                                                 : tn_error_last_code();

    for (size_t i = 0; i < count && status == TN_OK && bad == count; i++) {
        bad = at[i] < 0 || at[i] > INT32_MAX ? i : count;
        most = at[i] > most ? at[i] : most;
    }
    if (status == TN_OK && bad < count && asked)
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: sample %zu: class out of range, got %lld; expected 0 to %d, or "
                         "target='number'",
                         path, bad, (long long)at[bad], INT32_MAX);
    *classes = status == TN_OK && bad == count ? most + 1 : 0;
    tn_free(at);
    return status;
}

/* Copies a row of labels as float32. */
static tn_status take_numbers(struct tensors *t, tn_tensor *labels)
{
    TN_SCOPE;
    size_t count = (size_t)tn_tensor_size(labels, 0);
    tn_tensor *row = tn_cast(labels, TN_F32);

    t->numbers = tn_malloc((count + 1) * sizeof *t->numbers);
    if (row == NULL || t->numbers == NULL)
        return tn_error_last_code();
    return tn_tensor_copy_out(row, t->numbers, count * sizeof *t->numbers);
}

static tn_status read_target(struct tensors *t, const struct tensors_options *o, int64_t *classes)
{
    const uint64_t floats = TN_MASK_FLOAT | TN_MASK_COMPLEX;
    tn_tensor *last = t->count > 1 ? t->at[t->count - 1] : NULL;
    bool row = last != NULL && tn_tensor_ndim(last) == 1;
    bool integers = row && (TN_BIT(tn_tensor_dtype(last)) & floats) == 0;
    bool number = o->target != NULL && strcmp(o->target, "number") == 0;

    if (o->target != NULL && !number && strcmp(o->target, "class") != 0)
        return tn_fail(TN_ERR_VALUE, "target: unknown, got %q; expected 'class' or 'number'",
                       o->target);
    if (o->target != NULL && !integers && !(number && row))
        return tn_fail(TN_ERR_VALUE,
                       "target: %s: the last tensor is no row of labels; expected inputs, and then "
                       "a tensor with one integer for each sample",
                       o->path);
    if (number)
        return take_numbers(t, last);
    return integers && (o->target != NULL || t->count == 2)
               ? find_classes(o->path, last, o->target != NULL, classes)
               : TN_OK;
}

static tn_status tensors_open(tn_dataset_open *args)
{
    const struct tensors_options *o = args->options;
    struct tensors *t = tn_calloc(1, sizeof *t);
    tn_status status = TN_OK;
    int64_t most;

    if (t == NULL)
        return TN_ERR_MEMORY;
    t->state = tn_state_load_as(o->path, TN_FILE_MAP);
    most = t->state != NULL ? tn_state_count(t->state) : 0;
    if (most < o->names.count)
        most = o->names.count;
    t->at = tn_calloc((size_t)most + 1, sizeof *t->at);
    if (t->state == NULL || t->at == NULL)
        status = tn_error_last_code();
    else if (o->names.kind == TN_VALUE_NONE)
        status = add_all(t, o->path);
    else
        status = add_named(t, o->path, &o->names);
    if (status == TN_OK && t->count == 0)
        status = tn_fail(TN_ERR_VALUE, "%s: no tensors; expected at least one", o->path);
    if (status == TN_OK)
        status = read_target(t, o, &args->classes);
    if (status != TN_OK) {
        tensors_close(t);
        return status;
    }
    args->handle = t;
    args->count = tn_tensor_size(t->at[0], 0);
    return TN_OK;
}

static tn_status tensors_get(const tn_sample_args *args)
{
    const struct tensors *t = args->handle;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < t->count && status == TN_OK; i++) {
        bool number = t->numbers != NULL && i + 1 == t->count;
        tn_tensor *one = number ? tn_tensor_from(&t->numbers[args->index], TN_F32, TN_SCALAR_SHAPE)
                                : tn_select(t->at[i], 0, args->index);

        status = one != NULL ? tn_pack_add(args->out, NULL, tn_value_tensor(one))
                             : tn_error_last_code();
    }
    return status;
}

const tn_dataset_def data_tensors = {
    TN_HEAD(tn_dataset_def),
    .name = "TensorFile",
    .help = "the tensors of a file (.npz, .safetensors, ...): element i of each is sample i",
    .options = tensors_options,
    .data_size = sizeof(struct tensors_options),
    .open = tensors_open,
    .get = tensors_get,
    .close = tensors_close,
};
