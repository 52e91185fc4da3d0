/* SPDX-License-Identifier: MIT
 *
 * Orthogonal: a matrix with orthonormal columns, or rows if it is wide, as a function of any
 * matrix. See Lezcano-Casado (2019) for the base, `trivialization`. */
#include "parametrize.h"

struct orthogonal {
    const char *orthogonal_map;
    bool use_trivialization;
    int64_t shape[TN_MAX_DIMS]; /* of the tensor; from `attach` on */
    int64_t ndim;
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct orthogonal, orthogonal_map, "None",
                  "matrix_exp, cayley, householder, or None: matrix_exp of square and of complex "
                  "matrices, else householder",
                  TN_OPTION_KIND_STRING, TN_OPTION_OPTIONAL),
    TN_OPTION_BOOL(struct orthogonal, use_trivialization, "True",
                   "multiplies by a base, so that any orthogonal matrix can be assigned"),
    TN_OPTION_END
};

static const char *const maps[] = { "matrix_exp", "cayley", "householder" };

static bool is_complex(const tn_tensor *x)
{
    return (TN_BIT(tn_tensor_dtype(x)) & TN_MASK_COMPLEX) != 0;
}

static tn_status build(tn_module *self)
{
    const struct orthogonal *s = tn_module_data(self);

    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        if (s->orthogonal_map == NULL || strcmp(s->orthogonal_map, maps[i]) == 0)
            return s->use_trivialization ? tn_module_add_buffer(self, "base", TN_NONE, 0) : TN_OK;
    /* PyTorch's wording */
    return tn_fail(TN_ERR_VALUE,
                   "%s: orthogonal_map has to be one of \"matrix_exp\", \"cayley\", "
                   "\"householder\". Got: %s",
                   tn_module_type(self), s->orthogonal_map);
}

static tn_status attach(tn_module *self, tn_module *owner, const char *name, tn_tensor *tensor)
{
    struct orthogonal *s = tn_module_data(self);
    tn_ints shape = tn_tensor_shape(tensor);

    (void)owner;
    if (s->ndim > 0)
        return parametrize_once(self, true);
    /* PyTorch's wording, here and below */
    if (shape.count < 2)
        return tn_fail(TN_ERR_VALUE,
                       "%s: '%s': Expected a matrix or batch of matrices. Got a tensor of %lld "
                       "dimensions.",
                       tn_module_type(self), name, (long long)shape.count);
    if (is_complex(tensor) && s->orthogonal_map != NULL &&
        strcmp(s->orthogonal_map, "householder") == 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: '%s': The householder parametrization does not support complex "
                       "tensors.",
                       tn_module_type(self), name);
    memcpy(s->shape, shape.at, (size_t)shape.count * sizeof *s->shape);
    s->ndim = shape.count;
    return TN_OK;
}

/* ---- forward ---- */

static tn_tensor *strictly_lower(tn_tensor *x)
{
    return tn_tril(x, -1);
}

static tn_tensor *diagonal_of(tn_tensor *x)
{
    return tn_diagonal(x, 0, -2, -1);
}

/* Returns zeros of the shape of x, but with `size` columns. */
static tn_tensor *zero_columns(tn_tensor *x, int64_t size)
{
    int64_t shape[TN_MAX_DIMS];
    tn_ints all = tn_tensor_shape(x);

    memcpy(shape, all.at, (size_t)all.count * sizeof *shape);
    shape[all.count - 1] = size;
    return tn_tensor_full((tn_ints){ shape, all.count }, 0.0, tn_tensor_dtype(x),
                          tn_tensor_device(x));
}

static tn_tensor *identity(tn_tensor *like, int64_t size)
{
    return tn_eye(like, size, size, TN_DTYPE_AUTO);
}

static tn_tensor *matrix_exp(tn_tensor *a, int64_t size)
{
    (void)size;
    return tn_linalg_matrix_exp(a);
}

/* (I + a/2) (I - a/2)^-1 */
static tn_tensor *cayley(tn_tensor *a, int64_t size)
{
    tn_tensor *one = identity(a, size), *half = tn_mul_scalar(a, 0.5);

    return tn_linalg_solve(tn_sub(one, half), tn_add(one, half));
}

/* Returns the first k columns of map(A), where A is the skew-symmetric n x n matrix whose lower
 * triangle is x. */
static tn_tensor *of_skew(tn_tensor *x, int64_t n, int64_t k,
                          tn_tensor *(*map)(tn_tensor *, int64_t))
{
    x = tn_tril(x);
    if (n != k && x != NULL) {
        tn_tensor *parts[] = { x, zero_columns(x, n - k) };
        x = parts[1] != NULL ? tn_cat(parts, 2, -1) : NULL;
    }
    x = map(tn_sub(x, parametrize_adjoint(x)), n);
    return n != k ? tn_narrow(x, -1, 0, k) : x;
}

static tn_tensor *sum_of_rows(tn_tensor *x, bool keepdim)
{
    const int64_t rows = -2;

    return tn_sum(x, TN_INTS(rows), keepdim);
}

/* The product of k reflections; the signs on the diagonal of x are those of the columns. */
static tn_tensor *householder(tn_tensor *x)
{
    tn_tensor *a = strictly_lower(x);
    tn_tensor *tau = tn_reciprocal(tn_add_scalar(sum_of_rows(tn_square(a), false), 1.0));
    tn_tensor *q = tn_linalg_householder_product(a, tn_mul_scalar(tau, 2.0));

    return tn_mul(q, tn_unsqueeze(tn_sign(diagonal_of(tn_tensor_detach(x))), -2));
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct orthogonal *s = tn_module_data(self);
    const char *map = s->orthogonal_map;
    tn_ints shape = tn_tensor_shape(x);
    tn_tensor *q, *base;
    int64_t n, k;
    bool wide;

    if (shape.count < 2) {
        tn_fail(TN_ERR_VALUE,
                "%s: Expected a matrix or batch of matrices. Got a tensor of %lld dimensions.",
                tn_module_type(self), (long long)shape.count);
        return NULL;
    }
    n = shape.at[shape.count - 2];
    k = shape.at[shape.count - 1];
    wide = n < k;
    if (map == NULL)
        map = n == k || is_complex(x) ? "matrix_exp" : "householder";
    if (wide) {
        int64_t rows = n;
        x = tn_transpose(x, -2, -1);
        n = k;
        k = rows;
    }
    if (strcmp(map, "householder") == 0)
        q = householder(x);
    else
        q = of_skew(x, n, k, strcmp(map, "cayley") == 0 ? cayley : matrix_exp);
    /* The operators of linear algebra compute float16 in float32. */
    if (q != NULL && tn_tensor_dtype(q) != tn_tensor_dtype(x))
        q = tn_cast(q, tn_tensor_dtype(x));
    if (s->use_trivialization) {
        base = tn_module_get(self, "base");
        q = base == NULL || base == TN_NONE ? q : tn_matmul(base, q);
    }
    return wide ? tn_transpose(q, -2, -1) : q;
}

/* ---- the right inverse ---- */

/* Returns the Q of a = QR, where the diagonal of R is not negative. `a` is a tall matrix. */
static tn_tensor *make_orthogonal(tn_tensor *a)
{
    tn_tensor *q, *r;

    if (tn_linalg_qr(a, &q, &r) != TN_OK)
        return NULL;
    return tn_mul(q, tn_unsqueeze(tn_sgn(diagonal_of(r)), -2));
}

/* Sets *is to whether the columns are orthonormal. */
static tn_status is_orthogonal(tn_tensor *q, bool *is)
{
    int64_t n = tn_tensor_shape(q).at[tn_tensor_ndim(q) - 2];
    int64_t k = tn_tensor_shape(q).at[tn_tensor_ndim(q) - 1];
    bool single = tn_tensor_dtype(q) == TN_F32 || tn_tensor_dtype(q) == TN_C64;
    double eps = 10.0 * (double)n * (single ? 1.1920928955078125e-07 : 2.220446049250313e-16);
    tn_tensor *one = identity(q, k), *off;

    *is = true;
    if (!tn_device_has_memory(tn_tensor_device(q)) || tn_tensor_numel(q) == 0)
        return one != NULL ? TN_OK : tn_error_last_code();
    off = tn_abs(tn_sub(tn_matmul(parametrize_adjoint(q), q), one));
    /* The tolerance of torch.allclose: eps + 1e-5 of the expected value. */
    off = tn_amax(tn_sub(off, tn_mul_scalar(tn_abs(one), 1e-5)));
    if (off == NULL)
        return tn_error_last_code();
    *is = tn_tensor_item(off) <= eps;
    return TN_OK;
}

/* Returns the base for a tall matrix q: an orthogonal n x n matrix that begins with the columns of
 * q, or of its Q. */
static tn_tensor *base_for(tn_tensor *q, int64_t n, int64_t k)
{
    tn_tensor *parts[2];
    bool good;

    if (n == k)
        return is_orthogonal(q, &good) != TN_OK ? NULL : good ? tn_clone(q) : make_orthogonal(q);
    parts[0] = q;
    parts[1] = tn_normal_(zero_columns(q, n - k));
    return parts[1] != NULL ? make_orthogonal(tn_cat(parts, 2, -1)) : NULL;
}

/* One step of the QR decomposition by reflections: works on column j of w, and returns 1, -1 or 0
 * for the sign of the column. Writes the reflection below the diagonal. */
static tn_status reflect(tn_tensor *w, int64_t n, int64_t k, int64_t j)
{
    tn_tensor *down = tn_narrow(w, -2, j, n - j);
    tn_tensor *column = tn_narrow(down, -1, j, 1);
    tn_tensor *alpha = tn_clone(tn_narrow(column, -2, 0, 1));
    tn_tensor *tail = tn_clone(tn_narrow(column, -2, 1, n - j - 1));
    tn_tensor *squares = sum_of_rows(tn_square(tail), true);
    tn_tensor *zero = squares != NULL ? tn_fill(squares, TN_SCALAR(0.0)) : NULL;
    tn_tensor *plain = tn_eq(squares, zero); /* nothing to reflect */
    tn_tensor *length = tn_sqrt(tn_add(tn_square(alpha), squares));
    tn_tensor *beta = tn_where(tn_lt(alpha, zero), length, tn_neg(length));
    tn_tensor *one = zero != NULL ? tn_fill(squares, TN_SCALAR(1.0)) : NULL;
    tn_tensor *divisor = tn_where(plain, one, tn_sub(alpha, beta));
    tn_tensor *tau = tn_where(plain, zero, tn_div(tn_sub(beta, alpha), tn_where(plain, one, beta)));
    tn_tensor *v = tn_div(tail, divisor), *parts[2];
    /* forward reflects a column without tail as well, which changes its sign. */
    tn_tensor *sign = tn_where(plain, tn_neg(tn_sign(alpha)), tn_sign(beta));

    parts[0] = one;
    parts[1] = v;
    if (sign == NULL || v == NULL)
        return tn_error_last_code();
    if (j + 1 < k) {
        tn_tensor *whole = tn_cat(parts, 2, -2);
        tn_tensor *rest = tn_narrow(down, -1, j + 1, k - j - 1);
        tn_tensor *by = tn_matmul(tn_transpose(whole, -2, -1), rest);
        if (tn_sub_(rest, tn_mul(tau, tn_matmul(whole, by))) == NULL)
            return tn_error_last_code();
    }
    parts[0] = sign;
    return status_of(tn_copy_(column, tn_cat(parts, 2, -2)));
}

/* Returns the matrix of which householder() makes the Q of a tall matrix. */
static tn_tensor *reflections(tn_tensor *q, int64_t n, int64_t k)
{
    tn_tensor *w = tn_clone(q);

    for (int64_t j = 0; j < k && w != NULL; j++)
        if (reflect(w, n, k, j) != TN_OK)
            return NULL;
    return w;
}

static tn_status check_shape(tn_module *self, tn_ints shape)
{
    const struct orthogonal *s = tn_module_data(self);

    if (s->ndim == 0 || (s->ndim == shape.count &&
                         memcmp(s->shape, shape.at, (size_t)s->ndim * sizeof *s->shape) == 0))
        return TN_OK;
    return tn_fail(
        TN_ERR_VALUE,
        "%s: Expected a matrix or batch of matrices of shape [..., %lld, %lld]. Got a "
        "tensor of shape [..., %lld, %lld] with %lld dimensions.",
        tn_module_type(self), (long long)s->shape[s->ndim - 2], (long long)s->shape[s->ndim - 1],
        (long long)(shape.count > 1 ? shape.at[shape.count - 2] : 1),
        (long long)(shape.count > 0 ? shape.at[shape.count - 1] : 1), (long long)shape.count);
}

/* Without a base, only the map by reflections can be inverted. */
static tn_status invert_plain(tn_module *self, tn_tensor *q, int64_t n, int64_t k, bool wide,
                              tn_pack *originals)
{
    const struct orthogonal *s = tn_module_data(self);
    bool by_reflections = s->orthogonal_map != NULL ? strcmp(s->orthogonal_map, "householder") == 0
                                                    : n != k && !is_complex(q);

    if (!by_reflections)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: It is not possible to assign to the matrix exponential or the Cayley "
                       "parametrizations when use_trivialization=False.",
                       tn_module_type(self));
    q = reflections(q, n, k);
    return layers_give(originals, wide ? tn_transpose(q, -2, -1) : q);
}

static tn_status inverse(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    const struct orthogonal *s = tn_module_data(self);
    tn_ints shape = tn_tensor_shape(value);
    tn_status status = check_shape(self, shape);
    tn_tensor *q = value, *base, *negative;
    int64_t n, k;
    bool wide;

    if (status != TN_OK)
        return status;
    n = shape.at[shape.count - 2];
    k = shape.at[shape.count - 1];
    wide = n < k;
    if (wide) {
        q = tn_transpose(value, -2, -1);
        n = k;
        k = shape.at[shape.count - 2];
    }
    if (!s->use_trivialization)
        return invert_plain(self, q, n, k, wide, originals);
    base = base_for(q, n, k);
    /* householder() of -I is the identity, and the other maps do not read the diagonal. */
    negative = tn_tensor_full(shape, 0.0, tn_tensor_dtype(value), tn_tensor_device(value));
    if (base == NULL || negative == NULL ||
        tn_fill_(diagonal_of(negative), TN_SCALAR(-1.0)) == NULL)
        return tn_error_last_code();
    status = layers_give(originals, negative);
    return status == TN_OK ? tn_module_set(self, "base", base) : status;
}

/* The data has the shape besides the options, so a change of an option must not replace it. */
static tn_status copy(tn_module *self, tn_module *from)
{
    (void)self;
    (void)from;
    return TN_OK;
}

LAYER(orthogonal, "Orthogonal", .printed = "_Orthogonal",
      .help = "a parametrization: a matrix with orthonormal columns, or rows if it is wide",
      .options = options, .data_size = sizeof(struct orthogonal), .build = build,
      .forward = forward, .copy = copy, .repr = layers_no_words, .attach = attach,
      .right_inverse = inverse);
