/* SPDX-License-Identifier: MIT
 *
 * Copies between layouts and dtypes, and the operators copy, fill, flip and narrow_grad. */
#include <string.h>

#include "base/span.h"
#include "op/copy.h"
#include "simd/simd.h"

enum { GRAIN = 24576 };

struct job {
    struct tn__span span; /* operands: to, from */
    int64_t item;
    tn__load *load; /* load and store are NULL if both views have the same dtype */
    tn__store *store;
    bool whole;    /* `to` has the compute type, so that loaded numbers need no store */
    int64_t given; /* the element size of `from` if it has the compute type; otherwise 0 */
    _Alignas(16) char value[16]; /* fill: the element */
};

/* ---- without conversion ---------------------------------------------------------------------- */

#define MOVE(T)                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                              \
        T x;                                                                                       \
        memcpy(&x, at[1] + i * stride[1], sizeof x);                                               \
        memcpy(at[0] + i * stride[0], &x, sizeof x);                                               \
    }

/* Fast ways to write n contiguous elements: repeats one element (stride 0), or copies a contiguous
 * row in reverse order. Returns false if neither applies. */
static bool move_specially(int64_t item, int64_t n, char *const *at, const int64_t *stride)
{
    if (stride[1] == 0) {
        int64_t done = 1;
        memcpy(at[0], at[1], (size_t)item);
        for (; done < n; done += done < 256 ? done : 256) {
            int64_t step = done < 256 ? done : 256;
            memcpy(at[0] + done * item, at[0],
                   (size_t)((n - done < step ? n - done : step) * item));
        }
        return true;
    }
    if (stride[1] != -item || item > 8)
        return false;
    tn__simd.copy->reverse[tn__copy_index(item)](n, at[0], at[1]);
    return true;
}

static void move(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    if (stride[0] == job->item && stride[1] == job->item) {
        memcpy(at[0], at[1], (size_t)(n * job->item));
        return;
    }
    if (stride[0] == job->item && n > 4 && move_specially(job->item, n, at, stride))
        return;
    struct wide {
        uint64_t low, high;
    };
    switch (job->item) {
    case 1: MOVE(uint8_t) break;
    case 2: MOVE(uint16_t) break;
    case 4: MOVE(uint32_t) break;
    case 8: MOVE(uint64_t) break;
    default: MOVE(struct wide) break;
    }
}

/* ---- with conversion from one dtype to another ----------------------------------------------- */

static void convert(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    if (job->whole && stride[0] == job->item) {
        job->load(n, at[1], stride[1], at[0]);
        return;
    }
    if (job->given && stride[1] == job->given) {
        job->store(n, at[1], at[0], stride[0]);
        return;
    }
    _Alignas(64) char numbers[TN__CHUNK * TN__CT_MAX_SIZE];
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        job->load(count, at[1] + done * stride[1], stride[1], numbers);
        job->store(count, numbers, at[0] + done * stride[0], stride[0]);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, job->load ? convert : move, job);
    return TN_OK;
}

/* ---- short rows ---- */

/* Bytes of rows that a loop copies faster than one memcpy() each. */
enum { ROW_LEAST = 64, ROW_MOST = 4096 };

/* Copies rows [begin, end) of a span of two dimensions, whose rows are contiguous. */
static tn_status rows_part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    const struct tn__span *span = &job->span;
    int64_t sy = span->stride[0][0], sx = span->stride[1][0];
    tn__simd.copy->rows(end - begin, span->shape[1] * job->item, span->base[0] + begin * sy, sy,
                        span->base[1] + begin * sx, sx);
    return TN_OK;
}

static bool has_short_rows(const struct job *job)
{
    const struct tn__span *span = &job->span;
    int64_t bytes = span->shape[1] * job->item;
    return !job->load && span->ndim == 2 && span->stride[0][1] == job->item &&
           span->stride[1][1] == job->item && bytes >= ROW_LEAST && bytes <= ROW_MOST;
}

/* ---- transposed ---- */

enum { TILE = 32 };

typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));

static inline void turn_four(char *to, int64_t sy, const char *from, int64_t sx)
{
    four a = *(const four *)(const void *)from, b = *(const four *)(const void *)(from + sx),
         c = *(const four *)(const void *)(from + 2 * sx),
         d = *(const four *)(const void *)(from + 3 * sx);
    four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
         cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
         ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
         cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(four *)(void *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(four *)(void *)(to + sy) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(four *)(void *)(to + 2 * sy) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
    *(four *)(void *)(to + 3 * sy) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

void tn__copy_transpose_4(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x,
                          int64_t sx)
{
    /* If rows of y are close together, 16 elements of each line of x, a whole cache line, are read
     * at a time: lines of x a power of two apart would evict each other between two reads. */
    const int64_t deep = sy <= 4 * TILE && sy > 0 ? 16 : 4, whole = rows / 4 * 4;
    for (int64_t j0 = 0; j0 < whole; j0 += deep) {
        const int64_t end = j0 + deep < whole ? j0 + deep : whole;
        int64_t i = 0;
        for (; i + 4 <= columns; i += 4)
            for (int64_t j = j0; j < end; j += 4)
                turn_four(y + j * sy + i * 4, sy, x + i * sx + j * 4, sx);
        for (; i < columns; i++)
            for (int64_t j = j0; j < end; j++)
                memcpy(y + j * sy + i * 4, x + i * sx + j * 4, 4);
    }
    for (int64_t j = whole; j < rows; j++)
        for (int64_t i = 0; i < columns; i++)
            memcpy(y + j * sy + i * 4, x + i * sx + j * 4, 4);
}

typedef uint16_t eight __attribute__((vector_size(16), aligned(2), may_alias));

/* Each round interleaves rows k and k + 4: the position of an element in the 8 x 8 elements, a
 * number of 6 bits, is rotated by one bit. Three rounds exchange row and column. */
static inline void turn_eight(char *to, int64_t sy, const char *from, int64_t sx)
{
    eight a[8], b[8];
    for (int k = 0; k < 8; k++)
        a[k] = *(const eight *)(const void *)(from + k * sx);
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 4; k++) {
            b[2 * k] = __builtin_shufflevector(a[k], a[k + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * k + 1] = __builtin_shufflevector(a[k], a[k + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        for (int k = 0; k < 8; k++)
            a[k] = b[k];
    }
    for (int k = 0; k < 8; k++)
        *(eight *)(void *)(to + k * sy) = a[k];
}

static void transpose_2(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x,
                        int64_t sx)
{
    const int64_t deep = rows / 8 * 8, wide = columns / 8 * 8;
    for (int64_t i = 0; i < wide; i += 8)
        for (int64_t j = 0; j < deep; j += 8)
            turn_eight(y + j * sy + i * 2, sy, x + i * sx + j * 2, sx);
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = j < deep ? wide : 0; i < columns; i++)
            memcpy(y + j * sy + i * 2, x + i * sx + j * 2, 2);
}

void tn__copy_transpose_8(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x,
                          int64_t sx)
{
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < columns; i++)
            memcpy(y + j * sy + i * 8, x + i * sx + j * 8, 8);
}

/* Copies pieces [begin, end) of a transposition. The last two dimensions of the span are y[j][i]
 * and x[i][j]; a piece is TILE rows of y. */
static tn_status tiles_part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    const struct tn__span *span = &job->span;
    int32_t row = span->ndim - 2, column = span->ndim - 1;
    int64_t blocks = (span->shape[row] + TILE - 1) / TILE, sy = span->stride[0][row],
            sx = span->stride[1][column];
    for (int64_t p = begin; p < end; p++) {
        int64_t first = p % blocks * TILE, rest = p / blocks;
        int64_t rows = span->shape[row] - first < TILE ? span->shape[row] - first : TILE;
        char *y = span->base[0] + first * sy, *x = span->base[1] + first * job->item;
        for (int32_t d = row; d-- > 0;) {
            int64_t at = rest % span->shape[d];
            rest /= span->shape[d];
            y += at * span->stride[0][d];
            x += at * span->stride[1][d];
        }
        for (int64_t i = 0; i < span->shape[column]; i += TILE) {
            int64_t left = span->shape[column] - i, columns = left < TILE ? left : TILE;
            if (job->item == 2)
                transpose_2(rows, columns, y + i * 2, sy, x + i * sx, sx);
            else if (job->item == 4)
                tn__copy_transpose_4(rows, columns, y + i * 4, sy, x + i * sx, sx);
            else
                tn__copy_transpose_8(rows, columns, y + i * 8, sy, x + i * sx, sx);
        }
    }
    return TN_OK;
}

/* Returns whether the copy is a transposition that pays: `to` is contiguous along one dimension,
 * `from` along another, and both have at least 8 elements. If so, makes these two dimensions the
 * last ones of the span. */
static bool transposed(struct job *job)
{
    struct tn__span *span = &job->span;
    int32_t inner = span->ndim - 1;
    if (job->load || (job->item != 2 && job->item != 4 && job->item != 8) || inner < 1 ||
        span->stride[0][inner] != job->item || span->stride[1][inner] < 8 * job->item ||
        span->shape[inner] < 8)
        return false;
    for (int32_t d = 0; d < inner; d++) {
        if (span->stride[1][d] != job->item || span->shape[d] < 8 || span->stride[0][d] < job->item)
            continue;
        int64_t shape = span->shape[d];
        span->shape[d] = span->shape[inner - 1];
        span->shape[inner - 1] = shape;
        for (int k = 0; k < 2; k++) {
            int64_t stride = span->stride[k][d];
            span->stride[k][d] = span->stride[k][inner - 1];
            span->stride[k][inner - 1] = stride;
        }
        return true;
    }
    return false;
}

tn_status tn__copy_views(const tn_view *to, const tn_view *from)
{
    tn_dtype a = tn_view_dtype(from), b = tn_view_dtype(to);
    struct job job = { .item = tn__view_item(to) };
    tn__span_make(&job.span, 2, (const tn_view *[]){ to, from }, false);
    if (a != b) {
        enum tn__ct ct = tn__dtype_ct_between(a, b);
        job.load = tn__dtype_load(a, ct);
        job.store = tn__dtype_store(ct, b);
        job.whole = tn__dtype_of_ct(ct) == b;
        job.given = tn__dtype_of_ct(ct) == a ? (int64_t)tn__dtype_ct_size(ct) : 0;
    }
    if (job.span.count > 0 && transposed(&job)) {
        int64_t rows = job.span.shape[job.span.ndim - 2],
                columns = job.span.shape[job.span.ndim - 1],
                pieces = job.span.count / rows / columns * ((rows + TILE - 1) / TILE),
                grain = GRAIN / (columns * TILE) + 1;
        return tn_parallel_for(pieces, grain, tiles_part, &job);
    }
    if (has_short_rows(&job))
        return tn_parallel_for(job.span.shape[0], GRAIN / job.span.shape[1] + 1, rows_part, &job);
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
}

static tn_status run_copy(const tn_call *call)
{
    return tn__copy_views(call->out[0], call->in[0]);
}

/* Copies a view of x whose strides are negative, and which begins at the last index, in the flipped
 * dimensions. */
static tn_status run_flip(const tn_call *call)
{
    const tn_flip_options *o = call->options;
    const tn_view *x = call->in[0];
    int64_t strides[TN_MAX_DIMS];
    tn_view back = *x;
    back.strides = strides;
    for (int32_t d = 0; d < x->ndim; d++)
        strides[d] = x->strides[d];
    if (tn__span_view_count(x) == 0)
        return TN_OK;
    for (int64_t i = 0; i < o->dims.count && x->ndim > 0; i++) {
        int64_t d = o->dims.at[i] < 0 ? o->dims.at[i] + x->ndim : o->dims.at[i];
        back.byte_offset += (uint64_t)((x->shape[d] - 1) * strides[d] * tn__view_item(x));
        strides[d] = -strides[d];
    }
    return tn__copy_views(call->out[0], &back);
}

/* ---- fill ------------------------------------------------------------------------------------ */

static void set(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    if (stride[0] == job->item) {
        bool same = true;
        for (int64_t i = 1; i < job->item; i++)
            same &= job->value[i] == job->value[0];
        if (same) {
            memset(at[0], job->value[0], (size_t)(n * job->item));
            return;
        }
        if (job->item <= 8) {
            tn__simd.copy->fill[tn__copy_index(job->item)](n, at[0], job->value);
            return;
        }
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(at[0] + i * stride[0], job->value, (size_t)job->item);
}

static tn_status set_part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, set, job);
    return TN_OK;
}

/* Stores `value`, converted to `dtype`, at `to`. */
static void store_number(tn_dtype dtype, tn_scalar value, char *to)
{
    double parts[2] = { tn_scalar_as_float(value), tn_scalar_imag(value) };
    int64_t whole = tn_scalar_as_int(value);
    bool inexact = value.kind == TN_SCALAR_FLOAT || value.kind == TN_SCALAR_COMPLEX;
    if (dtype == TN_BOOL && inexact)
        whole = parts[0] != 0 || parts[1] != 0;
    else if (dtype == TN_BOOL)
        whole = whole != 0;
    if (dtype == TN_F32 && value.kind == TN_SCALAR_INT)
        parts[0] = (double)(float)value.as.i; /* through float64 it would be rounded twice */
    if (TN_MASK_COMPLEX & TN_BIT(dtype))
        tn__dtype_store(TN__C128, dtype)(1, parts, to, 0);
    else if ((TN_MASK_FLOAT & TN_BIT(dtype)) || (dtype == TN_U64 && inexact) ||
             (dtype != TN_BOOL && tn_dtype_size(dtype) == 1)) /* float8 is not in TN_MASK_FLOAT */
        tn__dtype_store(TN__F64, dtype)(1, parts, to, 0);
    else
        tn__dtype_store(TN__I64, dtype)(1, &whole, to, 0);
}

static tn_status fill_view(const tn_view *to, tn_scalar value)
{
    struct job job = { .item = tn__view_item(to) };
    store_number(tn_view_dtype(to), value, job.value);
    tn__span_make(&job.span, 1, &to, false);
    if (job.span.count <= GRAIN)
        return set_part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, set_part, &job);
}

tn_status tn__copy_value(const tn_view *to, tn_scalar value)
{
    return fill_view(to, value);
}

tn_status tn__copy_zero(const tn_view *to)
{
    return fill_view(to, tn_scalar_int(0));
}

static tn_status run_fill(const tn_call *call)
{
    return fill_view(call->out[0], ((const tn_fill_options *)call->options)->value);
}

/* ---- gx = 0, gx[..., start : start + length, ...] = gy --------------------------------------- */

static tn_status run_narrow_grad(const tn_call *call)
{
    const tn_narrow_grad_options *options = call->options;
    const tn_view *gx = call->out[0], *gy = call->in[0];
    int64_t dim = options->dim < 0 ? options->dim + gx->ndim : options->dim;
    if (dim < 0 || dim >= gx->ndim || gy->ndim != gx->ndim)
        return tn__span_bad_dim(call->op, options->dim, gx->ndim);
    int64_t start = options->start < 0 ? options->start + gx->shape[dim] : options->start;
    if (start < 0 || start > gx->shape[dim] - gy->shape[dim])
        return tn_fail(
            TN_ERR_INDEX,
            "%s: start or length: out of range, got %lld and %lld; expected within size %lld",
            call->op, (long long)options->start, (long long)gy->shape[dim],
            (long long)gx->shape[dim]);
    tn_status status = tn__copy_zero(gx);
    if (status != TN_OK)
        return status;
    int64_t shape[TN_MAX_DIMS];
    tn_view slice = *gx;
    memcpy(shape, gx->shape, (size_t)gx->ndim * sizeof *shape);
    shape[dim] = gy->shape[dim];
    slice.shape = shape;
    slice.byte_offset += (uint64_t)(start * gx->strides[dim] * tn__view_item(gx));
    return tn__copy_views(&slice, gy);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(copy, TN_MASK_ALL),
    TN__KERNEL(fill, TN_MASK_ALL),
    TN__KERNEL(flip, TN_MASK_ALL),
    TN__KERNEL(narrow_grad, TN__NUMBERS_BOOL),
};
TN__KERNEL_TABLE(copy);
