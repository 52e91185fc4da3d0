/* SPDX-License-Identifier: MIT
 *
 * The group of this process, and small exchanges: numbers, texts, tensors in pieces. */
#include "parallel.h"

#include <stdatomic.h>
#include <string.h>

static tn_comm *_Atomic the_group;

enum { PIECE_BYTES = 25 << 20 }; /* tensors are copied in pieces of at least this size */

tn_status group_set(tn_comm *group)
{
    atomic_store(&the_group, group);
    return TN_OK;
}

tn_comm *group_default(void)
{
    return atomic_load(&the_group);
}

int32_t group_rank(tn_comm *group)
{
    return group != NULL ? tn_comm_rank(group) : 0;
}

int32_t group_size(tn_comm *group)
{
    return group != NULL ? tn_comm_size(group) : 1;
}

tn_status group_abort(tn_comm *group)
{
    tn_status status = tn_error_last_code();
    uint64_t mark = tn_error_mark();

    if (group != NULL && tn_comm_size(group) > 1)
        tn_comm_abort(group);
    tn_error_restore(mark);
    return status;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Returns a tensor of the device of the group with the numbers of the host. */
static tn_tensor *from_host(tn_comm *group, const void *data, tn_dtype dtype, int64_t count)
{
    tn_tensor *tensor = tn_tensor_empty(TN_SHAPE(count), dtype, tn_comm_device(group));

    if (tensor != NULL && tn_tensor_copy_in(tensor, data, (size_t)count * 8) != TN_OK)
        return NULL;
    return tensor;
}

tn_status group_sum(tn_comm *group, double *numbers, int64_t count)
{
    TN_SCOPE;
    tn_tensor *tensor;
    tn_status status;

    if (group_size(group) == 1)
        return TN_OK;
    tensor = from_host(group, numbers, TN_F64, count);
    status = tensor != NULL ? tn_comm_all_reduce(group, tensor, TN_REDUCTION_SUM)
                            : tn_error_last_code();
    return status == TN_OK ? tn_tensor_copy_out(tensor, numbers, (size_t)count * 8) : status;
}

tn_status group_integers(tn_comm *group, int64_t *numbers, int64_t count)
{
    TN_SCOPE;
    tn_tensor *tensor;
    tn_status status;

    if (group_size(group) == 1)
        return TN_OK;
    tensor = from_host(group, numbers, TN_I64, count);
    status = tensor != NULL ? tn_comm_broadcast(group, tensor, 0) : tn_error_last_code();
    return status == TN_OK ? tn_tensor_copy_out(tensor, numbers, (size_t)count * 8) : status;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Sets *longest to the largest length of all ranks. */
static tn_status longest_of(tn_comm *group, int64_t length, int64_t *longest)
{
    TN_SCOPE;
    tn_tensor *tensor = from_host(group, &length, TN_I64, 1);
    tn_status status = tensor != NULL ? tn_comm_all_reduce(group, tensor, TN_REDUCTION_MAX)
                                      : tn_error_last_code();

    return status == TN_OK ? tn_tensor_copy_out(tensor, longest, 8) : status;
}

char *group_texts(tn_comm *group, const char *text, int64_t length, int64_t *stride)
{
    TN_SCOPE;
    const int64_t size = group_size(group);
    int64_t longest = length;
    tn_tensor *mine, *all;
    char *texts = NULL;

    if (size > 1 && longest_of(group, length, &longest) != TN_OK)
        return NULL;
    *stride = longest + 1;
    if (longest < length || longest > INT64_MAX / size - 1 ||
        (texts = tn_calloc((size_t)size, (size_t)*stride)) == NULL)
        return NULL;
    memcpy(texts, text, (size_t)length);
    if (size == 1)
        return texts;
    mine = tn_tensor_empty(TN_SHAPE(*stride), TN_U8, tn_comm_device(group));
    all = tn_tensor_empty(TN_SHAPE(*stride * size), TN_U8, tn_comm_device(group));
    if (mine == NULL || all == NULL || tn_tensor_copy_in(mine, texts, (size_t)*stride) != TN_OK ||
        tn_comm_all_gather(group, all, mine) != TN_OK ||
        tn_tensor_copy_out(all, texts, (size_t)(*stride * size)) != TN_OK) {
        tn_free(texts);
        return NULL;
    }
    return texts;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Copies the tensors to a flat one, or back. */
static tn_status move_pieces(tn_tensor *flat, tn_tensor *const *tensors, int64_t count, bool back)
{
    for (int64_t i = 0, at = 0; i < count; i++) {
        TN_SCOPE;
        int64_t numel = tn_tensor_numel(tensors[i]);
        const tn_view *view = tn_tensor_view(tensors[i]);
        tn_tensor *part = tn_narrow(flat, 0, at, numel);

        part = tn_reshape(part, (tn_ints){ view->shape, view->ndim });
        if (part == NULL ||
            (back ? tn_copy_(tensors[i], part) : tn_copy_(part, tensors[i])) == NULL)
            return tn_error_last_code();
        at += numel;
    }
    return TN_OK;
}

static tn_status copy_piece(tn_comm *group, tn_tensor *const *tensors, int64_t count, int64_t numel)
{
    TN_SCOPE;
    tn_tensor *flat = tn_tensor_empty(TN_SHAPE(numel), tn_tensor_dtype(tensors[0]),
                                      tn_comm_device(group));
    tn_status status = flat != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && tn_comm_rank(group) == 0)
        status = move_pieces(flat, tensors, count, false);
    if (status == TN_OK)
        status = tn_comm_broadcast(group, flat, 0);
    return status == TN_OK && tn_comm_rank(group) != 0 ? move_pieces(flat, tensors, count, true)
                                                       : status;
}

/* Copies tensors of one dtype. */
static tn_status copy_alike(tn_comm *group, tn_tensor *const *tensors, int64_t count)
{
    int64_t most = count > 0 ? PIECE_BYTES / (int64_t)tn_dtype_size(tn_tensor_dtype(tensors[0]))
                             : 0;
    tn_status status = TN_OK;

    for (int64_t i = 0, end; i < count && status == TN_OK; i = end) {
        int64_t numel = 0;

        for (end = i; end < count && numel < most; end++)
            numel += tn_tensor_numel(tensors[end]);
        if (numel > 0)
            status = copy_piece(group, tensors + i, end - i, numel);
    }
    return status;
}

tn_status group_copy(tn_comm *group, tn_tensor *const *tensors, int64_t count)
{
    tn_tensor **alike;
    tn_status status = TN_OK;

    if (group_size(group) == 1)
        return TN_OK;
    alike = tn_malloc((size_t)(count + 1) * sizeof *alike);
    if (alike == NULL)
        return TN_ERR_MEMORY;
    tn_grad_begin(false);
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_COUNT && status == TN_OK; dtype++) {
        int64_t n = 0;

        for (int64_t i = 0; i < count; i++)
            if (tn_tensor_dtype(tensors[i]) == dtype)
                alike[n++] = tensors[i];
        status = copy_alike(group, alike, n);
    }
    tn_grad_end();
    tn_free(alike);
    return status;
}
