/* SPDX-License-Identifier: MIT
 *
 * Datasets that the core makes: of tensors, and of some samples of another dataset. */
#include "lib/data/private.h"

/* ---- tensors --------------------------------------------------------------------------------- */

struct of_tensors {
    tn_dataset dataset;
    int64_t tensors;
    tn_tensor *at[];
};

/* Appends element `index` of dimension 0 of a tensor: a view without a history of gradients. */
static tn_status add_element(const tn_tensor *tensor, int64_t index, tn_pack *out)
{
    tn_meta meta;
    tn_tensor *element;
    tn_status status;

    tn__tensor_meta(tensor, &meta);
    meta.offset += index * meta.strides[0];
    meta.ndim--;
    memmove(meta.shape, meta.shape + 1, (size_t)meta.ndim * sizeof *meta.shape);
    memmove(meta.strides, meta.strides + 1, (size_t)meta.ndim * sizeof *meta.strides);
    element = tn__tensor_over(tensor->storage, &meta);
    if (element == NULL)
        return tn_error_last_code();
    status = tn_pack_add(out, NULL, tn_value_tensor(element));
    tn_tensor_drop(element);
    return status;
}

static tn_status of_tensors_get(tn_dataset *dataset, const tn__sample *sample, tn_pack *out)
{
    const struct of_tensors *own = (const struct of_tensors *)(const void *)dataset;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < own->tensors && status == TN_OK; i++)
        status = add_element(own->at[i], sample->index, out);
    return status;
}

static void of_tensors_close(tn_dataset *dataset)
{
    struct of_tensors *own = (struct of_tensors *)(void *)dataset;

    for (int64_t i = 0; i < own->tensors; i++)
        tn_tensor_drop(own->at[i]);
}

static tn_status check_tensor(const tn_tensor *tensor, int64_t place, const tn_tensor *first)
{
    if (!tn__tensor_ok(tensor))
        return tn__tensor_bad_at(tensor, "tn_dataset_of_tensors: tensors", place);
    if ((tensor->device->flags & TN_BACKEND_HOST_MEMORY) == 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_dataset_of_tensors: tensor %lld: wrong device, got %s; expected a "
                       "device of the host",
                       (long long)place, tensor->device->name);
    if (tensor->view.ndim == 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_dataset_of_tensors: tensor %lld: no dimensions; expected at least one",
                       (long long)place);
    if (tensor->view.shape[0] != first->view.shape[0])
        return tn_fail(TN_ERR_VALUE,
                       "tn_dataset_of_tensors: tensor %lld: wrong size of dimension 0, got %lld; "
                       "expected %lld, that of tensor 0",
                       (long long)place, (long long)tensor->view.shape[0],
                       (long long)first->view.shape[0]);
    return TN_OK;
}

tn_dataset *tn_dataset_of_tensors(tn_tensor *const *tensors, int64_t count)
{
    static const tn__dataset_kind kind = { of_tensors_get, of_tensors_close };
    struct of_tensors *own;
    size_t size;

    if (!tn__given(tensors != NULL || count == 0, "tn_dataset_of_tensors: tensors"))
        return NULL;
    if (count < 1) {
        tn_fail(TN_ERR_VALUE,
                "tn_dataset_of_tensors: count: wrong, got %lld; expected at least one tensor",
                (long long)count);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++)
        if (check_tensor(tensors[i], i, tensors[0]) != TN_OK)
            return NULL;
    size = sizeof *own + (size_t)count * sizeof own->at[0];
    own = (struct of_tensors *)(void *)tn__dataset_make(&kind, size);
    if (own == NULL)
        return NULL;
    own->dataset.count = tensors[0]->view.shape[0];
    own->dataset.name = "of tensors";
    for (; own->tensors < count; own->tensors++)
        own->at[own->tensors] = tn_tensor_keep(tensors[own->tensors]);
    return &own->dataset;
}

/* ---- a part of another dataset --------------------------------------------------------------- */

static tn_status subset_get(tn_dataset *dataset, const tn__sample *sample, tn_pack *out)
{
    tn__sample inner = *sample;

    inner.index = dataset->indices[sample->index];
    return tn__dataset_read(dataset->source, &inner, out);
}

static void subset_close(tn_dataset *dataset)
{
    tn_free((void *)(uintptr_t)dataset->indices);
}

/* Copies the indices; negative ones count from the end. */
static int64_t *copy_indices(const tn_dataset *source, tn_ints indices)
{
    int64_t *own;

    if (indices.count < 0 || (indices.at == NULL && indices.count > 0)) {
        tn_fail(TN_ERR_VALUE,
                "tn_dataset_subset: indices: wrong list, got %lld indices at %s; expected 0 or "
                "more, and an address",
                (long long)indices.count, indices.at == NULL ? "NULL" : "an address");
        return NULL;
    }
    if ((uint64_t)indices.count > SIZE_MAX / sizeof *own - 1) {
        tn_fail(TN_ERR_MEMORY, "tn_dataset_subset: indices: out of memory for %lld of them",
                (long long)indices.count);
        return NULL;
    }
    own = tn_malloc(((size_t)indices.count + 1) * sizeof *own);
    for (int64_t i = 0; own != NULL && i < indices.count; i++) {
        int64_t at = indices.at[i];

        if (at < -source->count || at >= source->count) {
            tn_fail(TN_ERR_INDEX,
                    "tn_dataset_subset: indices: index %lld: out of range, got %lld; expected "
                    "%lld to %lld, a sample of the dataset",
                    (long long)i, (long long)at, -(long long)source->count,
                    (long long)source->count - 1);
            tn_free(own);
            return NULL;
        }
        own[i] = at < 0 ? at + source->count : at;
    }
    return own;
}

tn_dataset *tn_dataset_subset(tn_dataset *dataset, tn_ints indices)
{
    static const tn__dataset_kind kind = { subset_get, subset_close };
    tn_dataset *own;
    int64_t *copy;

    if (!tn__not_null(dataset, "tn_dataset_subset: dataset") ||
        (copy = copy_indices(dataset, indices)) == NULL)
        return NULL;
    own = tn__dataset_make(&kind, sizeof *own);
    if (own == NULL) {
        tn_free(copy);
        return NULL;
    }
    own->source = tn_dataset_keep(dataset);
    own->indices = copy;
    own->count = indices.count;
    own->transforms = dataset->transforms;
    return own;
}
