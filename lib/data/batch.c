/* SPDX-License-Identifier: MIT
 *
 * Collects samples in a batch, as default_collate of PyTorch does. The memory of the batch is
 * allocated when the first sample is added; the values of every sample are written to their part of
 * it. */
#include "lib/data/batch.h"

/* Nested lists are read recursively. */
enum { DEPTH_MOST = 32 };

struct tn__column {
    uint32_t kind; /* of the entry of the samples */
    char *name;    /* of a named entry, or of a string key in a dictionary; NULL: none */
    /* numbers and tensors: the values of all samples */
    tn_tensor *tensor;
    char *data;
    size_t bytes; /* of one sample */
    /* strings and bytes */
    char **texts;
    uint32_t *lengths;
    /* lists, tuples and dictionaries: a column for each element */
    tn__column *columns;
    int64_t count;
    tn_value *keys; /* of a dictionary */
    void **key_blocks;
};

/* Where a value is in a sample. */
struct place {
    const struct place *above; /* NULL: the value is an entry of the sample */
    int64_t index;
    const char *name; /* NULL: `index` counts */
};

/* ---- messages -------------------------------------------------------------------------------- */

static void add_place(tn__text *text, const struct place *place)
{
    if (place->above != NULL)
        add_place(text, place->above);
    else
        tn__text_add(text, "entry ");
    if (place->name != NULL)
        tn__text_add(text, place->above != NULL ? "[%q]" : "%q", place->name);
    else
        tn__text_add(text, place->above != NULL ? "[%lld]" : "%lld", (long long)place->index);
}

/* Fails because the value at `place` of the sample `index` does not fit. `format` says what is
 * wrong with it. */
static tn_status misfit(const struct place *place, int64_t index, tn_status code,
                        const char *format, ...)
{
    tn__text text = { 0 };
    va_list args;
    char *words;

    va_start(args, format);
    words = tn__text_from_format(format, args);
    va_end(args);
    tn__text_add(&text, "loader: sample %lld: ", (long long)index);
    add_place(&text, place);
    tn__text_add(&text, ": %s", words != NULL ? words : "does not fit");
    tn_free(words);
    code = text.failed ? tn_fail(code, "loader: sample %lld: does not fit", (long long)index)
                       : tn_fail(code, "%s", text.at);
    tn__text_free(&text);
    return code;
}

static tn_status misfit_shape(const tn__batch *batch, const tn_tensor *tensor,
                              const tn__column *column, const struct place *place, int64_t index)
{
    const tn_tensor *all = column->tensor;
    const tn_ints first = { all->view.shape + 1, all->view.ndim - 1 };
    tn__text here = { 0 }, there = { 0 };
    tn_status status;

    tn__tensor_text_ints(&here, tn__shape(tensor));
    tn__text_put(&here, "", 1);
    tn__tensor_text_ints(&there, first);
    tn__text_put(&there, "", 1);
    status = misfit(place, index, TN_ERR_VALUE,
                    "sizes differ, got %s; expected %s, those of sample %lld",
                    here.failed ? "other sizes" : here.at, there.failed ? "the sizes" : there.at,
                    (long long)batch->first);
    tn__text_free(&here);
    tn__text_free(&there);
    return status;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Returns a tensor of this dtype and shape that buffer_give() has kept, NULL if there is none. */
static tn_tensor *buffer_take(tn__buffers *buffers, tn_dtype dtype, tn_ints shape)
{
    tn_tensor *found = NULL;

    pthread_mutex_lock(&buffers->lock);
    for (int64_t i = 0; i < buffers->count && found == NULL; i++) {
        tn_tensor *tensor = buffers->at[i];

        if (tensor->dtype != dtype || tensor->view.ndim != shape.count ||
            memcmp(tensor->view.shape, shape.at, (size_t)shape.count * sizeof *shape.at) != 0)
            continue;
        found = tensor;
        memmove(&buffers->at[i], &buffers->at[i + 1],
                (size_t)(--buffers->count - i) * sizeof(tn_tensor *));
    }
    pthread_mutex_unlock(&buffers->lock);
    return found;
}

/* Keeps a tensor for the next batches, or drops it. If there are too many, drops the oldest. */
static void buffer_give(tn__buffers *buffers, tn_tensor *tensor)
{
    uint64_t mark = tn_error_mark();
    tn_tensor *old = NULL;

    pthread_mutex_lock(&buffers->lock);
    if (buffers->count >= buffers->most && buffers->count > 0) {
        old = buffers->at[0];
        memmove(&buffers->at[0], &buffers->at[1], (size_t)--buffers->count * sizeof(tn_tensor *));
    }
    if (buffers->most > 0 && tn__vector_room(&buffers->at, &buffers->capacity, buffers->count + 1,
                                             sizeof(tn_tensor *))) {
        buffers->at[buffers->count++] = tensor;
        tensor = NULL;
    }
    pthread_mutex_unlock(&buffers->lock);
    tn_error_restore(mark);
    tn_tensor_drop(old);
    tn_tensor_drop(tensor);
}

void tn__batch_buffers_free(tn__buffers *buffers)
{
    for (int64_t i = 0; i < buffers->count; i++)
        tn_tensor_drop(buffers->at[i]);
    tn_free(buffers->at);
    pthread_mutex_destroy(&buffers->lock);
}

/* ---- the first sample ------------------------------------------------------------------------ */

static tn_status begin_column(tn__batch *batch, tn__column *column, const tn_value *value,
                              const struct place *place, int64_t index, int depth);

/* Allocates the tensor of a column: a new dimension 0, then `shape`. */
static tn_status begin_tensor(tn__batch *batch, tn__column *column, tn_dtype dtype, tn_ints shape)
{
    const tn_device *host = tn_default_device();
    int64_t sizes[TN_MAX_DIMS + 1] = { batch->most };
    const tn_ints all = { sizes, shape.count + 1 };
    tn_tensor *tensor;

    if (host == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < shape.count; i++)
        sizes[i + 1] = shape.at[i];
    column->tensor = batch->device != host ? buffer_take(batch->buffers, dtype, all) : NULL;
    if (column->tensor == NULL) {
        tensor = batch->device == host
                     ? tn_tensor_empty(all, dtype, host)
                     : tn_tensor_empty_in(all, dtype, batch->device, TN_MEMORY_PINNED);
        if (tensor == NULL)
            return tn_error_prefix("loader: batch of %lld samples: ", (long long)batch->most);
        column->tensor = tn_tensor_keep(tensor);
    }
    tensor = column->tensor;
    column->data = tn_tensor_data(tensor); /* waits until a copy from it is done */
    column->bytes = tn_dtype_size(dtype);
    for (int64_t i = 0; i < shape.count; i++)
        column->bytes *= (size_t)shape.at[i];
    return column->data != NULL || tensor->numel == 0 ? TN_OK : tn_error_last_code();
}

static tn_status begin_texts(const tn__batch *batch, tn__column *column)
{
    column->texts = tn_calloc((size_t)batch->most, sizeof *column->texts);
    column->lengths = tn_calloc((size_t)batch->most, sizeof *column->lengths);
    return column->texts != NULL && column->lengths != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status begin_key(tn__column *column, int64_t i, const tn_value *key)
{
    tn_status status = tn__value_copy(key, &column->keys[i], &column->key_blocks[i]);

    if (status == TN_OK && key->kind == TN_VALUE_STRING) {
        column->columns[i].name = tn_strdup(key->as.s);
        status = column->columns[i].name != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    return status;
}

static tn_status begin_list(tn__batch *batch, tn__column *column, const tn_value *value,
                            const struct place *place, int64_t index, int depth)
{
    size_t count = tn_value_size(value);
    tn_status status;

    column->columns = tn_calloc(count + 1, sizeof *column->columns);
    if (column->columns == NULL)
        return TN_ERR_MEMORY;
    column->count = (int64_t)count;
    status = value->kind == TN_VALUE_DICT ? tn__value_check_dict(value) : TN_OK;
    if (status == TN_OK && value->kind == TN_VALUE_DICT) {
        column->keys = tn_calloc(count + 1, sizeof *column->keys);
        column->key_blocks = tn_calloc(count + 1, sizeof *column->key_blocks);
        status = column->keys != NULL && column->key_blocks != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        struct place inner = { place, i, NULL };

        if (value->kind == TN_VALUE_DICT)
            status = begin_key(column, i, &value->as.list[2 * i]);
        inner.name = column->columns[i].name;
        if (status == TN_OK)
            status = begin_column(batch, &column->columns[i], tn_value_item(value, i), &inner,
                                  index, depth + 1);
    }
    return status;
}

static tn_status begin_column(tn__batch *batch, tn__column *column, const tn_value *value,
                              const struct place *place, int64_t index, int depth)
{
    const tn_tensor *tensor = value->as.tensor;

    column->kind = value->kind;
    if (depth > DEPTH_MOST)
        return misfit(place, index, TN_ERR_VALUE, "nested too deep; expected at most %d levels",
                      DEPTH_MOST);
    switch (value->kind) {
    case TN_VALUE_TENSOR:
        if (!tn__tensor_ok(tensor))
            break;
        if (tensor->view.ndim >= TN_MAX_DIMS)
            return misfit(place, index, TN_ERR_VALUE,
                          "too many dimensions, got %d; a batch has one more, expected at most %d",
                          (int)tensor->view.ndim, TN_MAX_DIMS - 1);
        return begin_tensor(batch, column, tensor->dtype, tn__shape(tensor));
    case TN_VALUE_BOOL: return begin_tensor(batch, column, TN_BOOL, TN_SCALAR_SHAPE);
    case TN_VALUE_INT: return begin_tensor(batch, column, TN_I64, TN_SCALAR_SHAPE);
    case TN_VALUE_FLOAT: return begin_tensor(batch, column, TN_F64, TN_SCALAR_SHAPE);
    case TN_VALUE_STRING:
    case TN_VALUE_BYTES: return begin_texts(batch, column);
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
    case TN_VALUE_DICT: return begin_list(batch, column, value, place, index, depth);
    default: break;
    }
    return misfit(place, index, TN_ERR_TYPE,
                  "cannot be collected in a batch, got %s; expected a tensor, an int, a float, a "
                  "bool, a string, bytes, a list, a tuple or a dict",
                  value->kind == TN_VALUE_TENSOR ? tensor == NULL ? "NULL" : "TN_NONE"
                                                 : tn__value_kind_name(value->kind));
}

/* ---- every sample ---------------------------------------------------------------------------- */

static tn_status put_value(const tn__batch *batch, tn__column *column, const tn_value *value,
                           const struct place *place, int64_t index);

/* Copies a sample that is not contiguous, or not on the host, to its place in the batch. */
static tn_status put_strided(const tn__batch *batch, const tn__column *column,
                             const tn_tensor *tensor)
{
    tn_meta meta;
    tn_tensor *slot;
    tn_status status;

    tn__tensor_meta(column->tensor, &meta);
    meta.offset += batch->samples * meta.strides[0];
    meta.ndim--;
    memmove(meta.shape, meta.shape + 1, (size_t)meta.ndim * sizeof *meta.shape);
    memmove(meta.strides, meta.strides + 1, (size_t)meta.ndim * sizeof *meta.strides);
    slot = tn__tensor_over(column->tensor->storage, &meta);
    if (slot == NULL)
        return tn_error_last_code();
    status = tn__copy(slot, tensor);
    tn_tensor_drop(slot);
    return status;
}

static tn_status put_tensor(const tn__batch *batch, const tn__column *column, tn_tensor *tensor,
                            const struct place *place, int64_t index)
{
    const tn_tensor *all = column->tensor;
    const void *data;

    if (!tn__tensor_ok(tensor))
        return misfit(place, index, TN_ERR_TYPE, "no tensor, got %s; expected a tensor",
                      tensor == NULL ? "NULL" : "TN_NONE");
    if (tensor->dtype != all->dtype)
        return misfit(
            place, index, TN_ERR_TYPE, "types differ, got %s; expected %s, that of sample %lld",
            tn_dtype_name(tensor->dtype), tn_dtype_name(all->dtype), (long long)batch->first);
    if (tensor->view.ndim != all->view.ndim - 1 ||
        memcmp(tensor->view.shape, all->view.shape + 1,
               (size_t)tensor->view.ndim * sizeof *tensor->view.shape) != 0)
        return misfit_shape(batch, tensor, column, place, index);
    if (column->bytes == 0)
        return TN_OK;
    if (!tensor->contiguous || (tensor->device->flags & TN_BACKEND_HOST_MEMORY) == 0)
        return put_strided(batch, column, tensor);
    data = tn_tensor_data(tensor);
    if (data == NULL)
        return tn_error_last_code();
    memcpy(column->data + (size_t)batch->samples * column->bytes, data, column->bytes);
    return TN_OK;
}

static tn_status put_text(const tn__batch *batch, tn__column *column, const tn_value *value,
                          const struct place *place, int64_t index)
{
    bool string = value->kind == TN_VALUE_STRING;
    size_t length;
    char *copy;

    if (value->as.s == NULL && (string || value->count > 0))
        return misfit(place, index, TN_ERR_VALUE, "%s: it is NULL; expected a text",
                      tn__value_kind_name(value->kind));
    length = string ? strlen(value->as.s) : value->count;
    copy = tn_malloc(length + 1);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    if (length > 0)
        memcpy(copy, value->as.s, length);
    copy[length] = '\0';
    column->texts[batch->samples] = copy;
    column->lengths[batch->samples] = string ? 0 : value->count;
    return TN_OK;
}

static bool same_key(const tn_value *a, const tn_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case TN_VALUE_STRING: return a->as.s != NULL && b->as.s != NULL && !strcmp(a->as.s, b->as.s);
    case TN_VALUE_NONE: return true;
    case TN_VALUE_FLOAT: return a->as.f == b->as.f;
    default: return a->as.i == b->as.i;
    }
}

/* Returns the value of a key, NULL if there is none. `guess` is where it probably is. */
static const tn_value *find_key(const tn_value *dict, const tn_value *key, uint32_t guess)
{
    if (2 * guess < dict->count && same_key(&dict->as.list[2 * guess], key))
        return &dict->as.list[2 * guess + 1];
    for (uint32_t i = 0; i + 1 < dict->count; i += 2)
        if (same_key(&dict->as.list[i], key))
            return &dict->as.list[i + 1];
    return NULL;
}

static tn_status put_list(const tn__batch *batch, tn__column *column, const tn_value *value,
                          const struct place *place, int64_t index)
{
    bool dict = column->kind == TN_VALUE_DICT;
    tn_status status = dict ? tn__value_check_dict(value) : TN_OK;

    if (status == TN_OK && (int64_t)tn_value_size(value) != column->count)
        return misfit(place, index, TN_ERR_VALUE,
                      "lengths differ, got %u; expected %lld, that of sample %lld",
                      tn_value_size(value), (long long)column->count, (long long)batch->first);
    for (uint32_t i = 0; i < (uint32_t)column->count && status == TN_OK; i++) {
        const struct place inner = { place, i, column->columns[i].name };
        const tn_value *item = dict ? find_key(value, &column->keys[i], i)
                                    : tn_value_item(value, i);

        status = item != NULL
                     ? put_value(batch, &column->columns[i], item, &inner, index)
                     : misfit(&inner, index, TN_ERR_KEY, "missing; sample %lld has this key",
                              (long long)batch->first);
    }
    return status;
}

static tn_status put_value(const tn__batch *batch, tn__column *column, const tn_value *value,
                           const struct place *place, int64_t index)
{
    size_t at = (size_t)batch->samples;

    if (value->kind != column->kind)
        return misfit(place, index, TN_ERR_TYPE,
                      "kinds differ, got %s; expected %s, that of sample %lld",
                      tn__value_kind_name(value->kind), tn__value_kind_name(column->kind),
                      (long long)batch->first);
    switch (value->kind) {
    case TN_VALUE_TENSOR: return put_tensor(batch, column, value->as.tensor, place, index);
    case TN_VALUE_BOOL: ((bool *)column->data)[at] = value->as.i != 0; return TN_OK;
    case TN_VALUE_INT: ((int64_t *)(void *)column->data)[at] = value->as.i; return TN_OK;
    case TN_VALUE_FLOAT: ((double *)(void *)column->data)[at] = value->as.f; return TN_OK;
    case TN_VALUE_STRING:
    case TN_VALUE_BYTES: return put_text(batch, column, value, place, index);
    default: return put_list(batch, column, value, place, index);
    }
}

static tn_status begin_batch(tn__batch *batch, const tn_pack *sample, int64_t index)
{
    size_t count = (size_t)tn_pack_count(sample);
    tn_status status = TN_OK;

    batch->first = index;
    batch->columns = tn_calloc(count + 1, sizeof *batch->columns);
    if (batch->columns == NULL)
        return TN_ERR_MEMORY;
    batch->count = (int64_t)count;
    for (int64_t i = 0; i < batch->count && status == TN_OK; i++) {
        const char *name = tn_pack_name(sample, i);
        const struct place place = { NULL, i, name };
        const tn_value value = tn_pack_at(sample, i);

        if (name != NULL && (batch->columns[i].name = tn_strdup(name)) == NULL)
            return TN_ERR_MEMORY;
        status = begin_column(batch, &batch->columns[i], &value, &place, index, 0);
    }
    return status;
}

tn_status tn__batch_add(tn__batch *batch, const tn_pack *sample, int64_t index)
{
    tn_status status = batch->columns == NULL ? begin_batch(batch, sample, index) : TN_OK;

    if (status == TN_OK && tn_pack_count(sample) != batch->count)
        return tn_fail(TN_ERR_VALUE,
                       "loader: sample %lld: wrong number of entries, got %lld; expected %lld, "
                       "that of sample %lld",
                       (long long)index, (long long)tn_pack_count(sample), (long long)batch->count,
                       (long long)batch->first);
    for (int64_t i = 0; i < batch->count && status == TN_OK; i++) {
        tn__column *column = &batch->columns[i];
        const struct place place = { NULL, i, column->name };
        int64_t at = column->name != NULL ? tn_pack_find(sample, column->name) : i;
        tn_value value;

        if (at < 0 || (column->name == NULL && tn_pack_name(sample, i) != NULL))
            return misfit(&place, index, TN_ERR_KEY, "missing; sample %lld has this entry",
                          (long long)batch->first);
        value = tn_pack_at(sample, at);
        status = put_value(batch, column, &value, &place, index);
    }
    if (status == TN_OK)
        batch->samples++;
    return status;
}

/* ---- the finished batch ---------------------------------------------------------------------- */

/* Returns the tensor of a column, with the samples that there are, on the device of the batch. The
 * caller owns it. */
static tn_tensor *finish_tensor(const tn__batch *batch, const tn__column *column)
{
    tn_tensor *host, *tensor;
    tn_meta meta;
    tn_status status;

    tn__tensor_meta(column->tensor, &meta);
    meta.shape[0] = batch->samples;
    host = batch->samples == batch->most ? tn_tensor_keep(column->tensor)
                                         : tn__tensor_over(column->tensor->storage, &meta);
    if (host == NULL || host->device == batch->device)
        return host;
    meta.flags = 0;
    meta.offset = 0;
    tensor = tn__tensor_make(&meta, batch->device);
    status = tensor != NULL ? tn_tensor_copy_async(tensor, host) : tn_error_last_code();
    tn_tensor_drop(host);
    if (status == TN_OK)
        return tensor;
    tn_tensor_drop(tensor);
    return NULL;
}

/* Sets *out to the value of a column. What it refers to belongs to the arena, and the tensors to
 * the innermost scope. */
static tn_status finish(const tn__batch *batch, const tn__column *column, tn__arena *arena,
                        tn_value *out)
{
    bool text = column->texts != NULL, dict = column->kind == TN_VALUE_DICT;
    int64_t count = text ? batch->samples : column->count;
    tn_value *list;
    tn_status status = TN_OK;

    if (column->tensor != NULL) {
        tn_tensor *tensor = finish_tensor(batch, column);

        if (tensor == NULL || (tensor = tn_tensor_to_scope(tensor)) == NULL)
            return tn_error_last_code();
        *out = tn_value_tensor(tensor);
        return TN_OK;
    }
    list = tn__arena_alloc(arena, ((size_t)count * (dict ? 2 : 1) + 1) * sizeof *list);
    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        if (text)
            list[i] = (tn_value){ column->kind, column->lengths[i], { .s = column->texts[i] } };
        else if (dict) {
            list[2 * i] = column->keys[i];
            status = finish(batch, &column->columns[i], arena, &list[2 * i + 1]);
        } else
            status = finish(batch, &column->columns[i], arena, &list[i]);
    *out = text
               ? tn_value_list(list, (uint32_t)count)
               : (tn_value){ column->kind, (uint32_t)(dict ? 2 * count : count), { .list = list } };
    return status;
}

tn_pack *tn__batch_pack(const tn__batch *batch)
{
    tn_pack *pack = tn_pack_new();
    tn__arena *arena = pack != NULL ? tn__arena_new() : NULL;
    tn_status status = arena != NULL ? TN_OK : TN_ERR_MEMORY;
    uint64_t scope = tn_scope_begin();

    for (int64_t i = 0; i < batch->count && status == TN_OK; i++) {
        tn_value value;

        status = finish(batch, &batch->columns[i], arena, &value);
        if (status == TN_OK)
            status = tn_pack_add(pack, batch->columns[i].name, value);
    }
    tn_scope_end(scope);
    tn__arena_free(arena);
    if (status == TN_OK)
        return pack;
    tn_pack_drop(pack);
    return NULL;
}

static void clear_columns(const tn__batch *batch, tn__column *columns, int64_t count)
{
    for (int64_t i = 0; i < count && columns != NULL; i++) {
        tn__column *column = &columns[i];

        clear_columns(batch, column->columns, column->count);
        for (int64_t k = 0; column->texts != NULL && k < batch->most; k++)
            tn_free(column->texts[k]);
        for (int64_t k = 0; column->keys != NULL && column->key_blocks != NULL && k < column->count;
             k++)
            tn__value_free(&column->keys[k], column->key_blocks[k]);
        if (column->tensor != NULL && column->tensor->device != batch->device)
            buffer_give(batch->buffers, column->tensor);
        else
            tn_tensor_drop(column->tensor);
        tn_free(column->texts);
        tn_free(column->lengths);
        tn_free(column->keys);
        tn_free(column->key_blocks);
        tn_free(column->name);
    }
    tn_free(columns);
}

void tn__batch_clear(tn__batch *batch)
{
    clear_columns(batch, batch->columns, batch->count);
    tn_pack_drop(batch->made);
    tn_free(batch->skipped_words);
    *batch = (tn__batch){ 0 };
}
