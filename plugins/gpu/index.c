/* SPDX-License-Identifier: MIT
 *
 * Operators that read or write elements at given indices: gather, scatter, scatter_add; and
 * nonzero, which computes indices. */
#include "gpu.h"

#include <string.h>

/* Describes a tensor x in which elements are selected along dimension `dim`. `view` is x with the
 * shape of the index tensor. Its stride along `dim` is 0, so the offset of each of its elements is
 * that of the element of x with index 0 along `dim`. `at` has the size and stride of x along
 * `dim`. */
struct indexed {
    tn_view view;
    int64_t strides[TN_MAX_DIMS];
    gpu_index at;
    int64_t dim;
};

static void index_view(struct indexed *out, const tn_view *x, const tn_view *index, int64_t dim,
                       i32 op)
{
    if (dim < 0)
        dim += x->ndim > 0 ? x->ndim : 1;
    out->dim = dim;
    out->at = (gpu_index){ .bound = x->ndim > 0 ? x->shape[dim] : 1,
                           .step = x->ndim > 0 ? x->strides[dim] : 0,
                           .dim = (i32)dim,
                           .op = op };
    out->view = *x;
    out->view.ndim = index->ndim;
    out->view.shape = index->shape;
    out->view.strides = out->strides;
    for (int32_t d = 0; d < index->ndim; d++)
        out->strides[d] = d == dim || d >= x->ndim ? 0 : x->strides[d];
}

tn_status gpu_run_gather(const tn_call *call)
{
    const tn_view *x = call->in[0], *index = call->in[1], *y = call->out[0];
    void *errors = gpu_error_memory(call);
    struct indexed from;
    gpu_walk walk;

    index_view(&from, x, index, ((const tn_gather_options *)call->options)->dim, GPU_ERROR_GATHER);
    gpu_walk_make(&walk, (const tn_view *[]){ y, index, &from.view }, 3);
    {
        const gpu_arg args[] = { GPU_ARG(y->data), GPU_ARG(index->data), GPU_ARG(x->data),
                                 GPU_ARG(errors),  GPU_ARG(walk),        GPU_ARG(from.at) };

        return gpu_launch(call, GPU_gather, gpu_as_bits(y), walk.count, 1, args, 6);
    }
}

/* Copies x to y and then writes (or adds) elements of src at the indices. src may be larger than
 * the index tensor; only the part with the shape of the index tensor is used. */
static tn_status scatter(const tn_call *call, int64_t dim, enum gpu_kernel kernel, i32 op)
{
    const tn_view *index = call->in[1], *src = call->in[2], *y = call->out[0];
    tn_dtype type = kernel == GPU_scatter ? gpu_as_bits(y) : tn_view_dtype(y);
    void *errors = gpu_error_memory(call);
    int64_t strides[TN_MAX_DIMS];
    tn_view given = *src;
    struct indexed to;
    gpu_rows rows;
    tn_status status = gpu_copy_view(call, y, call->in[0]);

    if (status)
        return status;
    index_view(&to, y, index, dim, op);
    given.shape = index->shape;
    given.strides = strides;
    given.ndim = index->ndim;
    for (int32_t d = 0; d < index->ndim; d++)
        strides[d] = d < src->ndim ? src->strides[d] : 0;
    status = gpu_rows_make(&rows, (const tn_view *[]){ index, index, &given }, 3,
                           index->ndim > 0 ? to.dim : 0);
    if (status)
        return status;
    rows.offset[0] = gpu_offset(y);
    for (int32_t d = 0, n = 0; d < index->ndim; d++)
        if (d != to.dim && index->shape[d] != 1)
            rows.stride[0][n++] = to.strides[d];
    {
        const gpu_arg args[] = { GPU_ARG(y->data), GPU_ARG(index->data), GPU_ARG(src->data),
                                 GPU_ARG(errors),  GPU_ARG(rows),        GPU_ARG(to.at) };

        return gpu_launch(call, kernel, type, rows.rows, 1, args, 6);
    }
}

tn_status gpu_run_scatter(const tn_call *call)
{
    return scatter(call, ((const tn_scatter_options *)call->options)->dim, GPU_scatter,
                   GPU_ERROR_SCATTER);
}

tn_status gpu_run_scatter_add(const tn_call *call)
{
    return scatter(call, ((const tn_scatter_add_options *)call->options)->dim, GPU_scatter_add,
                   GPU_ERROR_SCATTER_ADD);
}

/* ---- nonzero --------------------------------------------------------------------------------- */

enum { NONZERO_PIECES = 256, NONZERO_PIECE_MIN = 2048 };

/* Divides `count` elements into at most NONZERO_PIECES pieces. Returns the number of elements of a
 * piece, at least NONZERO_PIECE_MIN. */
static int64_t nonzero_piece(int64_t count)
{
    int64_t piece = (count + NONZERO_PIECES - 1) / NONZERO_PIECES;

    return piece < NONZERO_PIECE_MIN ? NONZERO_PIECE_MIN : piece;
}

static int64_t nonzero_pieces(const tn_view *x, int64_t *piece)
{
    int64_t count = gpu_count(x);

    *piece = nonzero_piece(count);
    return (count + *piece - 1) / *piece;
}

size_t gpu_workspace_nonzero(const tn_call *call)
{
    int64_t piece;

    return (size_t)nonzero_pieces(call->in[0], &piece) * sizeof(int64_t);
}

/* Runs the kernel twice. The first launch counts the nonzero elements of each piece; the host reads
 * the counts to make the output. The second launch writes the indices. */
tn_status gpu_run_nonzero(const tn_call *call)
{
    const tn_view *x = call->in[0], *work = call->workspace, *y;
    int64_t counts[NONZERO_PIECES], piece, pieces = nonzero_pieces(x, &piece);
    int64_t shape[2] = { 0, x->ndim };
    int32_t write = 0;
    tn_dtype dtype = tn_view_dtype(x);
    gpu_walk walk;
    tn_status status = TN_OK;

    if (pieces == 0)
        return call->make_output(call, 0, (tn_ints){ shape, 2 });
    if (!work)
        return tn_fail(TN_ERR_ASSERT,
                       "%s: workspace: missing; the core must allocate it; please report this",
                       call->op);
    memset(&walk, 0, sizeof walk);
    walk.count = gpu_count(x);
    walk.ndim = x->ndim;
    walk.offset[0] = gpu_offset(x);
    walk.offset[2] = (int64_t)(work->byte_offset / sizeof(int64_t));
    for (int32_t d = 0; d < x->ndim; d++) {
        walk.shape[d] = x->shape[d];
        walk.stride[0][d] = x->strides[d];
    }
    {
        const gpu_arg args[] = { GPU_ARG(work->data), GPU_ARG(x->data), GPU_ARG(work->data),
                                 GPU_ARG(walk),       GPU_ARG(piece),   GPU_ARG(write) };

        status = gpu_launch(call, GPU_nonzero, dtype, pieces, 1, args, 6);
    }
    if (!status)
        status = gpu_read_bytes(call, counts, work->data, work->byte_offset,
                                (size_t)pieces * sizeof *counts);
    if (status)
        return status;
    for (int64_t k = 0; k < pieces; k++)
        shape[0] += counts[k];
    status = call->make_output(call, 0, (tn_ints){ shape, 2 });
    if (status || shape[0] * shape[1] == 0)
        return status;
    y = call->out[0];
    write = 1;
    walk.offset[1] = gpu_offset(y);
    walk.stride[1][0] = y->strides[0];
    walk.stride[1][1] = y->strides[1];
    {
        const gpu_arg args[] = { GPU_ARG(y->data), GPU_ARG(x->data), GPU_ARG(work->data),
                                 GPU_ARG(walk),    GPU_ARG(piece),   GPU_ARG(write) };

        return gpu_launch(call, GPU_nonzero, dtype, pieces, 1, args, 6);
    }
}
