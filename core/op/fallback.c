/* SPDX-License-Identifier: MIT
 *
 * Fallback: operators that a device lacks run on another device. This happens only if the program
 * or TENON_FALLBACK asks for it, and is counted. */
#include "core/base/vector.h"
#include "core/op/private.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const tn_device *) target;
static _Atomic int32_t chosen; /* whether the environment or the program has set `target` */
static tn_fallback_count *rows;
static int64_t n_rows, rows_capacity;

static tn_status choose(const char *policy)
{
    const tn_device *device = NULL;

    if (policy != NULL && policy[0] != '\0' && strcmp(policy, "error") != 0) {
        device = tn_device_find(policy);
        if (device == NULL)
            return tn_error_prefix("fallback to %q: ", policy);
    }
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&target, device, memory_order_release);
    atomic_store_explicit(&chosen, 1, memory_order_release);
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

tn_status tn_set_fallback(const char *policy)
{
    return choose(policy);
}

static tn_status count(const char *op, const tn_device *from, const tn_device *to, uint64_t bytes)
{
    tn_status status = TN_OK;
    int64_t i = 0;

    pthread_mutex_lock(&lock);
    while (i < n_rows && (strcmp(rows[i].op, op) != 0 || rows[i].from != tn_device_name(from) ||
                          rows[i].to != tn_device_name(to)))
        i++;
    if (i == n_rows) {
        if (!tn__vector_room(&rows, &rows_capacity, n_rows + 1, sizeof *rows)) {
            status = TN_ERR_MEMORY;
            goto end;
        }
        memset(&rows[n_rows], 0, sizeof rows[0]);
        rows[n_rows].op = op;
        rows[n_rows].from = tn_device_name(from);
        rows[n_rows].to = tn_device_name(to);
        n_rows++;
    }
    rows[i].calls++;
    rows[i].bytes += bytes;
end:
    pthread_mutex_unlock(&lock);
    return status;
}

int64_t tn_fallback_counts(tn_fallback_count *out, int64_t capacity)
{
    int64_t found;

    pthread_mutex_lock(&lock);
    found = n_rows;
    for (int64_t i = 0; out != NULL && i < found && i < capacity; i++)
        out[i] = rows[i];
    pthread_mutex_unlock(&lock);
    return found;
}

/* Returns a copy of a tensor on another device, which the caller owns. Adds its size to *bytes. */
static tn_tensor *moved(tn_tensor *tensor, const tn_device *device, uint64_t *bytes)
{
    tn_tensor *copy;
    tn_meta meta;

    tn__tensor_meta(tensor, &meta);
    meta.flags = 0;
    meta.offset = 0;
    copy = tn__tensor_make(&meta, device);
    if (copy == NULL)
        return NULL;
    if (tn__copy(copy, tensor) != TN_OK) {
        tn_tensor_drop(copy);
        return NULL;
    }
    *bytes += (uint64_t)tensor->numel * tn_dtype_size((tn_dtype)tensor->dtype);
    return copy;
}

tn_status tn__fallback(tn__work *work, tn_tensor **out, bool *done)
{
    const tn_device *to;
    tn_tensor **in;
    uint64_t bytes = 0;
    tn_status status = TN_OK;

    *done = false;
    if (atomic_load_explicit(&chosen, memory_order_acquire) == 0) {
        const char *policy;

        status = tn__env_read("TENON_FALLBACK", &policy);
        if (status == TN_OK)
            status = choose(policy);
        if (status != TN_OK)
            return status;
    }
    to = atomic_load_explicit(&target, memory_order_acquire);
    if (to == NULL || to == work->device)
        return TN_OK;
    in = tn_calloc((size_t)work->n_in + (size_t)work->n_out, sizeof *in);
    if (in == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < work->n_in && status == TN_OK; i++) {
        in[i] = tn__is_none(work->in[i]) ? TN_NONE : moved(work->in[i], to, &bytes);
        if (in[i] == NULL)
            status = tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn__op_run(work->op, in, work->n_in, work->options, in + work->n_in, work->n_out,
                            NULL);
    for (int64_t i = 0; i < work->n_in && status == TN_OK; i++)
        if ((work->op->flags & (TN__OP_WRITES | TN__OP_UPDATES)) != 0 && tn__write_into(work, i)) {
            status = tn__copy(work->in[i], in[i]);
            bytes += (uint64_t)in[i]->numel * tn_dtype_size((tn_dtype)in[i]->dtype);
        }
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++) {
        tn_tensor *result = in[work->n_in + i];

        if (work->into != NULL) {
            status = tn__copy(work->into, result);
            out[i] = status == TN_OK ? tn_tensor_keep(work->into) : NULL;
            bytes += (uint64_t)result->numel * tn_dtype_size((tn_dtype)result->dtype);
        } else {
            out[i] = moved(result, work->device, &bytes);
            status = out[i] != NULL ? TN_OK : tn_error_last_code();
        }
        for (int32_t k = 0; status != TN_OK && k < i; k++) {
            tn_tensor_drop(out[k]);
            out[k] = NULL;
        }
    }
    if (status == TN_OK) {
        status = count(work->op->def.name, work->device, to, bytes);
        for (int32_t k = 0; status != TN_OK && k < work->n_out; k++) {
            tn_tensor_drop(out[k]);
            out[k] = NULL;
        }
    }
    for (int64_t i = 0; i < work->n_in + work->n_out; i++)
        if (in[i] != NULL && !tn__is_none(in[i]))
            tn_tensor_drop(in[i]);
    tn_free(in);
    *done = status == TN_OK;
    return status;
}
