/* SPDX-License-Identifier: MIT
 *
 * The structs that the host fills and kernels read. This file is compiled as C, OpenCL C and CUDA;
 * the includer defines i32 and i64 (4 and 8 bytes). All sizes, strides and offsets are in elements,
 * not bytes. */
#ifndef GPU_LAYOUT_H
#define GPU_LAYOUT_H

#define GPU_DIMS 16
#define GPU_OPERANDS 3

/* A loop over `count` elements in row-major order of `shape`. For the element with indices i[d],
 * operand k is at offset[k] + the sum of i[d] * stride[k][d]. */
typedef struct gpu_walk {
    i64 count;
    i32 ndim;  /* at least 1 */
    i32 small; /* whether `count` fits into an i32: kernels then divide in 32 bits */
    i64 offset[GPU_OPERANDS];
    i64 shape[GPU_DIMS];
    i64 stride[GPU_OPERANDS][GPU_DIMS];
} gpu_walk;

/* Like gpu_walk, for four operands. It is a struct of its own because few kernels need it. */
typedef struct gpu_walk4 {
    i64 count;
    i32 ndim;
    i32 small;
    i64 offset[4];
    i64 shape[GPU_DIMS];
    i64 stride[4][GPU_DIMS];
} gpu_walk4;

/* A reduction of x to y. Dimensions 0 to kept - 1 are kept and have `outputs` elements; dimensions
 * kept to ndim - 1 are reduced and have `length` elements. The reduced elements of an output can be
 * divided into several pieces of `piece` elements; y is then an array of partial results of shape
 * [outputs, pieces]. */
typedef struct gpu_reduce {
    i64 outputs;
    i64 length;
    i64 piece;
    i64 pieces;
    i64 offset_y;
    i64 offset_x;
    i32 kept;
    i32 ndim;
    i64 shape[GPU_DIMS];
    i64 stride_y[GPU_DIMS];
    i64 stride_x[GPU_DIMS];
} gpu_reduce;

/* y[b, m, n] = sum over k of a[b, m, k] * b[b, k, n]. The strides of each operand are in the order
 * of these indices. */
typedef struct gpu_bmm {
    i64 batch, m, n, k;
    i64 offset_y, offset_a, offset_b;
    i64 stride_y[3], stride_a[3], stride_b[3];
} gpu_bmm;

/* The rows along one dimension of up to three operands: `rows` rows of `length` elements. */
typedef struct gpu_rows {
    i64 rows;
    i64 length;
    i32 ndim; /* number of the other dimensions, which `shape` and `stride` describe */
    i32 reserved;
    i64 offset[GPU_OPERANDS];
    i64 along[GPU_OPERANDS]; /* stride from one element of a row to the next */
    i64 shape[GPU_DIMS];
    i64 stride[GPU_OPERANDS][GPU_DIMS];
} gpu_rows;

/* A loss with input x of shape [n, classes] and target of shape [n]. */
typedef struct gpu_loss {
    i64 n;
    i64 classes;
    i64 ignore;
    i32 reduction; /* GPU_REDUCE_* */
    i32 op;        /* GPU_ERROR_*, for a gpu_error */
    i64 offset_x, offset_target, offset_y, offset_total;
    i64 stride_x[2];
    i64 stride_target;
    i64 stride_y;
} gpu_loss;

enum { GPU_REDUCE_NONE = 0, GPU_REDUCE_MEAN = 1, GPU_REDUCE_SUM = 2 };

/* Key and first block of the random generator; see sdk/operators/random.ops. If has_state is set,
 * the kernel reads a state tensor of three numbers: the seed, a number to add to `block`, and the
 * lane. Otherwise the lane is 0. */
typedef struct gpu_philox {
    i64 seed;
    i64 block;
    i64 lane;
    i64 seed_at, step; /* of the state tensor: the offset of the seed, and the stride */
    i32 has_state;
    i32 reserved;
} gpu_philox;

/* The dimension of a tensor along which elements are selected by index. */
typedef struct gpu_index {
    i64 bound; /* the dimension's size */
    i64 step;  /* the dimension's stride */
    i32 dim;
    i32 op; /* GPU_ERROR_*, for a gpu_error */
} gpu_index;

/* The record of an error that a kernel found: an index out of bounds or a divisor of 0. Only the
 * first error of a stream is kept. 32 bytes. */
typedef struct gpu_error {
    i32 taken; /* 0: there was no error */
    i32 op;    /* GPU_ERROR_* */
    i64 index;
    i64 bound;
    i64 place; /* element or target with the error; for gather and scatter, the dimension */
} gpu_error;

enum { GPU_ERROR_NLL_LOSS = 1, GPU_ERROR_NLL_LOSS_GRAD = 2, GPU_ERROR_DIVISION = 3,
       GPU_ERROR_GATHER = 4, GPU_ERROR_SCATTER = 5, GPU_ERROR_SCATTER_ADD = 6 };

/* The functions of the kernels map, zip and compare. Functions from GPU_F_DIVIDES on divide; for
 * integers they record an error if the divisor is 0. */
enum {
    GPU_F_ABS,
    GPU_F_SIGN,
    GPU_F_FLOOR,
    GPU_F_CEIL,
    GPU_F_TRUNC,
    GPU_F_ROUND,
    GPU_F_NOT,
    GPU_F_EXPM1,
    GPU_F_LOG1P,
    GPU_F_LOG2,
    GPU_F_LOG10,
    GPU_F_SIN,
    GPU_F_COS,
    GPU_F_TAN,
    GPU_F_ASIN,
    GPU_F_ACOS,
    GPU_F_ATAN,
    GPU_F_SINH,
    GPU_F_COSH,
    GPU_F_TANH,
    GPU_F_ERF,
    GPU_F_ERFC,
    GPU_F_ERFINV,
    GPU_F_EQ,
    GPU_F_LT,
    GPU_F_LE,
    GPU_F_MINIMUM,
    GPU_F_POW,
    GPU_F_ATAN2,
    GPU_F_AND,
    GPU_F_OR,
    GPU_F_XOR,
    GPU_F_DIVIDES,
    GPU_F_FMOD = GPU_F_DIVIDES,
    GPU_F_REMAINDER,
    GPU_F_DIV_TRUNC,
    GPU_F_DIV_FLOOR,
    GPU_F_COUNT
};

#endif
