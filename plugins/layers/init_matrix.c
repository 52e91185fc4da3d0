/* SPDX-License-Identifier: MIT
 *
 * Initializations of matrices and kernels, and the truncated normal. Names and parameters are those
 * of torch.nn.init. Values that no operator can compute are computed on the host and copied to the
 * tensor. */
#include "helpers.h"

#include <math.h>
#include <string.h>

/* ---- truncated normal ------------------------------------------------------------------------ */

struct truncated {
    double mean;
    double std;
    double a;
    double b;
};

static const tn_option truncated_options[] = {
    TN_OPTION_FLOAT(struct truncated, mean, "0.0", "mean before truncation"),
    TN_OPTION_FLOAT(struct truncated, std, "1.0", "standard deviation"),
    TN_OPTION_FLOAT(struct truncated, a, "-2.0", "the smallest value"),
    TN_OPTION_FLOAT(struct truncated, b, "2.0", "the largest value"), TN_OPTION_END
};

static tn_status trunc_normal(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    const struct truncated *s = data;

    if (!(s->std > 0.0) || !(s->a < s->b))
        return tn_fail(
            TN_ERR_VALUE,
            "trunc_normal: std, a or b: out of range, got %g, %g and %g; expected std > 0 and a < "
            "b",
            s->std, s->a, s->b);
    if (s->mean < s->a - 2 * s->std || s->mean > s->b + 2 * s->std)
        tn_log(TN_LOG_WARNING,
               "mean is more than 2 std from [a, b] in trunc_normal. The distribution of values "
               "may be incorrect.");
    return status_of(tn_truncated_normal_(tensor, s->mean, s->std, s->a, s->b));
}

/* ---- numbers on the host --------------------------------------------------------------------- */

/* Returns the dtype in which numbers are copied between host and device: float64 if the tensor has
 * this dtype, else float32, because a device may lack float64. */
static tn_dtype wide_of(const tn_tensor *tensor)
{
    return tn_tensor_dtype(tensor) == TN_F64 ? TN_F64 : TN_F32;
}

static bool has_values(const tn_tensor *tensor)
{
    return tn_tensor_numel(tensor) > 0 && tn_device_has_memory(tn_tensor_device(tensor));
}

/* Allocates a double for each element of the tensor, set to 0. The caller frees it with
 * tn_free(). */
static double *room_for(const tn_tensor *tensor)
{
    return tn_calloc((size_t)tn_tensor_numel(tensor), sizeof(double));
}

/* Draws standard normal or uniform numbers on the tensor's device and copies them to `numbers`. */
static tn_status draw(const tn_tensor *tensor, bool normal, double *numbers)
{
    int64_t count = tn_tensor_numel(tensor);
    tn_dtype dtype = wide_of(tensor);
    tn_tensor *drawn = tn_tensor_empty(TN_SHAPE(count), dtype, tn_tensor_device(tensor));
    size_t bytes = (size_t)count * (dtype == TN_F64 ? sizeof(double) : sizeof(float));

    drawn = normal ? tn_normal_(drawn) : tn_uniform_(drawn);
    if (drawn == NULL || tn_tensor_copy_out(drawn, numbers, bytes) != TN_OK)
        return tn_error_last_code();
    /* Widens from the end, so that no float at the start of `numbers` is overwritten too early. */
    if (dtype != TN_F64) {
        const char *floats = (const char *)numbers;

        for (int64_t i = count; i-- > 0;) {
            float one;

            memcpy(&one, floats + (size_t)i * sizeof one, sizeof one);
            numbers[i] = (double)one;
        }
    }
    return TN_OK;
}

/* Copies the numbers, in row-major order, to the tensor. */
static tn_status put(tn_tensor *tensor, const double *numbers)
{
    int64_t count = tn_tensor_numel(tensor);
    tn_tensor *from = tn_tensor_empty(tn_tensor_shape(tensor), wide_of(tensor),
                                      tn_tensor_device(tensor));
    float *floats;
    tn_status status;

    if (from == NULL)
        return tn_error_last_code();
    if (tn_tensor_dtype(from) == TN_F64) {
        status = tn_tensor_copy_in(from, numbers, (size_t)count * sizeof *numbers);
        return status == TN_OK ? status_of(tn_copy_(tensor, from)) : status;
    }
    floats = tn_malloc((size_t)count * sizeof *floats);
    if (floats == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        floats[i] = (float)numbers[i];
    status = tn_tensor_copy_in(from, floats, (size_t)count * sizeof *floats);
    tn_free(floats);
    return status == TN_OK ? status_of(tn_copy_(tensor, from)) : status;
}

/* ---- eye, dirac ------------------------------------------------------------------------------ */

static tn_status only_matrix(const tn_tensor *tensor)
{
    return tn_tensor_ndim(tensor) == 2
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, /* PyTorch's wording */
                         "Only tensors with 2 dimensions are supported; this has %d",
                         (int)tn_tensor_ndim(tensor));
}

static tn_status eye(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    tn_status status = only_matrix(tensor);
    int64_t rows, columns;
    double *numbers;

    (void)data;
    if (status != TN_OK || !has_values(tensor))
        return status;
    rows = tn_tensor_size(tensor, 0);
    columns = tn_tensor_size(tensor, 1);
    numbers = room_for(tensor);
    if (numbers == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < rows && i < columns; i++)
        numbers[i * columns + i] = 1;
    status = put(tensor, numbers);
    tn_free(numbers);
    return status;
}

struct dirac {
    int64_t groups;
};

static const tn_option dirac_options[] = {
    TN_OPTION_INT(struct dirac, groups, "1", "number of groups of channels"), TN_OPTION_END
};

/* In each group, output channel i is a copy of input channel i: 1 at the middle of the kernel. */
static tn_status dirac(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    const struct dirac *s = data;
    tn_ints shape = tn_tensor_shape(tensor);
    int64_t kernel = 1, middle = 0, out;
    double *numbers;
    tn_status status;

    if (shape.count < 3 || shape.count > 5)
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */
                       "Only tensors with 3, 4, or 5 dimensions are supported; this has %lld",
                       (long long)shape.count);
    if (s->groups < 1 || shape.at[0] % s->groups != 0)
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */ "dim 0 (%lld) must be divisible by groups (%lld)",
                       (long long)shape.at[0], (long long)s->groups);
    if (!has_values(tensor))
        return TN_OK;
    for (int64_t i = 2; i < shape.count; i++) {
        kernel *= shape.at[i];
        middle = middle * shape.at[i] + shape.at[i] / 2;
    }
    numbers = room_for(tensor);
    if (numbers == NULL)
        return TN_ERR_MEMORY;
    out = shape.at[0] / s->groups;
    for (int64_t g = 0; g < s->groups; g++)
        for (int64_t i = 0; i < out && i < shape.at[1]; i++)
            numbers[((g * out + i) * shape.at[1] + i) * kernel + middle] = 1;
    status = put(tensor, numbers);
    tn_free(numbers);
    return status;
}

/* ---- orthogonal ------------------------------------------------------------------------------ */

struct orthogonal {
    tn_value gain;
};

static const tn_option orthogonal_options[] = {
    TN_OPTION_ROW(struct orthogonal, gain, "1.0", LAYERS_GAIN_HELP, TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_END
};

/* Makes `count` vectors of `length` orthonormal (Gram-Schmidt). Each vector is orthogonalized twice
 * to remove the rounding errors of the first pass. Vectors keep their direction, which corresponds
 * to a QR decomposition with a positive diagonal. */
static tn_status orthonormal(double *vectors, int64_t count, int64_t length)
{
    for (int64_t i = 0; i < count; i++) {
        double *v = vectors + i * length, square = 0;

        for (int pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < i; k++) {
                const double *u = vectors + k * length;
                double dot = 0;

                for (int64_t j = 0; j < length; j++)
                    dot += u[j] * v[j];
                for (int64_t j = 0; j < length; j++)
                    v[j] -= dot * u[j];
            }
        for (int64_t j = 0; j < length; j++)
            square += v[j] * v[j];
        if (!(square > 0))
            return tn_fail(
                TN_ERR_RUNTIME,
                "orthogonal: drawn matrix: dependent vectors; expected independent vectors");
        for (int64_t j = 0; j < length; j++)
            v[j] /= sqrt(square);
    }
    return TN_OK;
}

static tn_status orthogonal(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    const struct orthogonal *s = data;
    int64_t rows, columns, count, length;
    double gain, *vectors, *numbers;
    tn_status status = layers_gain(&s->gain, &gain);

    if (status != TN_OK)
        return status;
    if (tn_tensor_ndim(tensor) < 2)
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */
                       "Only tensors with 2 or more dimensions are supported; this has %d",
                       (int)tn_tensor_ndim(tensor));
    if (!has_values(tensor))
        return TN_OK;
    rows = tn_tensor_size(tensor, 0);
    columns = tn_tensor_numel(tensor) / rows;
    count = rows < columns ? rows : columns;
    length = rows < columns ? columns : rows;
    vectors = room_for(tensor);
    numbers = room_for(tensor);
    status = vectors == NULL || numbers == NULL ? TN_ERR_MEMORY : draw(tensor, true, vectors);
    if (status == TN_OK)
        status = orthonormal(vectors, count, length);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        for (int64_t j = 0; j < length; j++)
            numbers[rows < columns ? i * columns + j : j * columns + i] = gain *
                                                                          vectors[i * length + j];
    if (status == TN_OK)
        status = put(tensor, numbers);
    tn_free(vectors);
    tn_free(numbers);
    return status;
}

/* ---- sparse ---------------------------------------------------------------------------------- */

struct sparse {
    double sparsity;
    double std;
};

static const tn_option sparse_options[] = {
    TN_OPTION_ROW(struct sparse, sparsity, NULL, "fraction of zeros in each column",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_REQUIRED),
    TN_OPTION_FLOAT(struct sparse, std, "0.01", "standard deviation of the other elements"),
    TN_OPTION_END
};

/* Sets `zeros` random elements of a column to 0: those with the smallest numbers in `draws`. */
static void thin_out(double *numbers, const double *draws, int64_t column, int64_t rows,
                     int64_t columns, int64_t zeros)
{
    for (int64_t i = 0; i < rows; i++) {
        double own = draws[i * columns + column];
        int64_t before = 0;

        for (int64_t k = 0; k < rows; k++) {
            double other = draws[k * columns + column];

            before += other < own || (other == own && k < i);
        }
        if (before < zeros)
            numbers[i * columns + column] = 0;
    }
}

static tn_status sparse(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    const struct sparse *s = data;
    int64_t rows, columns, zeros;
    double *numbers, *draws;
    tn_status status = only_matrix(tensor);

    if (status == TN_OK && !(s->sparsity >= 0 && s->sparsity <= 1 && s->std >= 0))
        status = tn_fail(
            TN_ERR_VALUE,
            "sparse: sparsity or std: out of range, got %g and %g; expected sparsity from 0 to 1 "
            "and std of 0 or more",
            s->sparsity, s->std);
    if (status != TN_OK || !has_values(tensor))
        return status;
    rows = tn_tensor_size(tensor, 0);
    columns = tn_tensor_size(tensor, 1);
    zeros = (int64_t)ceil(s->sparsity * (double)rows);
    numbers = room_for(tensor);
    draws = room_for(tensor);
    status = numbers == NULL || draws == NULL ? TN_ERR_MEMORY : draw(tensor, true, numbers);
    if (status == TN_OK)
        status = draw(tensor, false, draws);
    for (int64_t i = 0; i < rows * columns && status == TN_OK; i++)
        numbers[i] *= s->std;
    for (int64_t j = 0; j < columns && status == TN_OK; j++)
        thin_out(numbers, draws, j, rows, columns, zeros);
    if (status == TN_OK)
        status = put(tensor, numbers);
    tn_free(numbers);
    tn_free(draws);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define INIT(name_, help_, options_, size_, fill_)                                                 \
    {                                                                                              \
        TN_HEAD(tn_init_def), .name = name_, .help = help_, .options = options_,                   \
                              .data_size = size_, .fill = fill_                                    \
    }

const tn_init_def init_trunc_normal = INIT("trunc_normal", "N(mean, std) within [a, b]",
                                           truncated_options, sizeof(struct truncated),
                                           trunc_normal);
const tn_init_def init_eye = INIT("eye", "1 on the diagonal of a matrix, 0 elsewhere", NULL, 0,
                                  eye);
const tn_init_def init_dirac = INIT("dirac",
                                    "weights of a convolution that copies its input channels",
                                    dirac_options, sizeof(struct dirac), dirac);
const tn_init_def init_orthogonal = INIT("orthogonal", "rows or columns orthonormal, times gain",
                                         orthogonal_options, sizeof(struct orthogonal), orthogonal);
const tn_init_def init_sparse = INIT("sparse", "N(0, std) with zeros in each column",
                                     sparse_options, sizeof(struct sparse), sparse);
