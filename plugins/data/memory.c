/* SPDX-License-Identifier: MIT
 *
 * Samples that are in memory as one array: a tensor of fixed shape and a class each. */
#include "data.h"

#include <string.h>

int64_t data_elements(const int64_t *shape, int32_t ndim)
{
    int64_t count = 1;

    for (int32_t i = 0; i < ndim; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count))
            return -1;
    return count;
}

void data_memory_free(void *handle)
{
    struct data_memory *memory = handle;

    if (memory == NULL)
        return;
    for (int64_t i = 0; memory->names != NULL && i < memory->classes; i++)
        tn_free(memory->names[i]);
    tn_free(memory->names);
    tn_free(memory->labels);
    tn_free(memory->values);
    tn_free(memory);
}

void data_memory_give(struct data_memory *memory, tn_dataset_open *args)
{
    args->handle = memory;
    args->count = memory->count;
    args->classes = memory->classes;
    args->class_names = (const char *const *)memory->names;
}

tn_status data_add_tensor(tn_pack *out, const void *values, tn_dtype dtype, tn_ints shape)
{
    tn_tensor *tensor = tn_tensor_from(values, dtype, shape);

    return tensor != NULL ? tn_pack_add(out, NULL, tn_value_tensor(tensor)) : tn_error_last_code();
}

tn_status data_memory_get(const tn_sample_args *args)
{
    const struct data_memory *memory = args->handle;
    size_t size = (size_t)data_elements(memory->shape, memory->ndim) *
                  (size_t)tn_dtype_size(memory->dtype);
    tn_status status = data_add_tensor(args->out,
                                       (const char *)memory->values + (size_t)args->index * size,
                                       memory->dtype, (tn_ints){ memory->shape, memory->ndim });

    if (status == TN_OK && memory->labels != NULL)
        status = tn_pack_add(args->out, NULL, tn_value_int(memory->labels[args->index]));
    return status;
}

tn_status data_memory_labels(struct data_memory *memory, const uint8_t *bytes, int64_t classes,
                             const char *path)
{
    memory->labels = tn_malloc((size_t)(memory->count > 0 ? memory->count : 1) * sizeof(int64_t));
    if (memory->labels == NULL)
        return TN_ERR_MEMORY;
    memory->classes = classes;
    for (int64_t i = 0; i < memory->count; i++) {
        if (bytes[i] >= classes)
            return tn_fail(TN_ERR_FORMAT,
                           "%s: sample %lld: class: out of range, got %d; expected 0 to %lld", path,
                           (long long)i, bytes[i], (long long)classes - 1);
        memory->labels[i] = bytes[i];
    }
    return TN_OK;
}

tn_status data_memory_names(struct data_memory *memory, const char *const *names, int64_t count)
{
    memory->names = tn_calloc((size_t)count + 1, sizeof(char *));
    if (memory->names == NULL)
        return TN_ERR_MEMORY;
    memory->classes = count;
    for (int64_t i = 0; i < count; i++) {
        memory->names[i] = tn_strdup(names[i]);
        if (memory->names[i] == NULL)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}
