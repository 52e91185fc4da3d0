/* SPDX-License-Identifier: MIT
 *
 * SpectralNorm: divides a weight by its largest singular value, which a power iteration
 * approximates. */
#include "parametrize.h"

#include <math.h>

/* The iteration has long converged then, or never does; a call must end. */
enum { ITERATIONS_MOST = 10000 };

struct spectral {
    int64_t n_power_iterations;
    double eps;
    int64_t dim;
    int64_t row; /* the dimension of the rows, from `attach` on */
};

static const tn_option options[] = {
    TN_OPTION_INT(struct spectral, n_power_iterations, "1",
                  "steps of the power iteration for each call in training"),
    TN_OPTION_FLOAT(struct spectral, eps, "1e-12", "smallest length that is divided by"),
    TN_OPTION_ROW(struct spectral, dim, "None",
                  "the dimension of the outputs; None: 1 of ConvTranspose layers, else 0",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    const struct spectral *s = tn_module_data(self);

    /* PyTorch's wording */
    if (s->n_power_iterations <= 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: Expected n_power_iterations to be positive, but got "
                       "n_power_iterations=%lld",
                       tn_module_type(self), (long long)s->n_power_iterations);
    if (s->n_power_iterations > ITERATIONS_MOST)
        return tn_fail(TN_ERR_VALUE,
                       "%s: n_power_iterations: too many, got %lld; expected at most %d",
                       tn_module_type(self), (long long)s->n_power_iterations, ITERATIONS_MOST);
    if (isfinite(s->eps) && s->eps >= 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: eps: out of range, got %g; expected a finite number of 0 or "
                   "more",
                   tn_module_type(self), s->eps);
}

static tn_tensor *unit(const struct spectral *s, tn_tensor *x)
{
    return tn_normalize(x, 2, 0, s->eps);
}

/* Returns the weight as a matrix with one row for each index of the dimension of the outputs. */
static tn_tensor *matrix(const struct spectral *s, tn_tensor *weight)
{
    int64_t dims[TN_MAX_DIMS], count = 0, ndim = tn_tensor_ndim(weight);

    if (s->row != 0) {
        dims[count++] = s->row;
        for (int64_t i = 0; i < ndim; i++)
            if (i != s->row)
                dims[count++] = i;
        weight = tn_permute(weight, (tn_ints){ dims, count });
    }
    return tn_flatten(weight, 1, -1);
}

/* Improves the singular vectors in the buffers. */
static tn_status iterate(tn_module *self, tn_tensor *weight, int64_t steps)
{
    const struct spectral *s = tn_module_data(self);
    tn_tensor *u = tn_module_get(self, "_u"), *v = tn_module_get(self, "_v");

    tn_grad_begin(false);
    for (int64_t i = 0; i < steps && u != NULL && v != NULL; i++) {
        u = tn_copy_(u, unit(s, tn_mv(weight, v)));
        v = u != NULL ? tn_copy_(v, unit(s, tn_mv(parametrize_adjoint(weight), u))) : NULL;
    }
    tn_grad_end();
    return u != NULL && v != NULL ? TN_OK : tn_error_last_code();
}

static tn_status add_vector(tn_module *self, const char *name, const tn_tensor *like, int64_t size)
{
    const struct spectral *s = tn_module_data(self);
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(size), tn_tensor_dtype(like), tn_tensor_device(like));

    x = unit(s, tn_normal_(x));
    return x != NULL ? tn_module_add_buffer(self, name, x, 0) : tn_error_last_code();
}

static tn_status attach(tn_module *self, tn_module *owner, const char *name, tn_tensor *tensor)
{
    struct spectral *s = tn_module_data(self);
    const char *transposed = "ConvTranspose";
    tn_tensor *weight;
    tn_status status = parametrize_once(self, tn_module_slot_kind(self, "_u") != 0);

    (void)name;
    if (status != TN_OK)
        return status;
    s->row = s->dim;
    if (s->dim == INT64_MIN)
        s->row = strncmp(tn_module_type(owner), transposed, strlen(transposed)) == 0 ? 1 : 0;
    status = parametrize_dim(self, tensor, &s->row);
    if (status != TN_OK || tn_tensor_ndim(tensor) == 1)
        return status;
    weight = matrix(s, tensor);
    if (weight == NULL)
        return tn_error_last_code();
    status = add_vector(self, "_u", weight, tn_tensor_shape(weight).at[0]);
    if (status == TN_OK)
        status = add_vector(self, "_v", weight, tn_tensor_shape(weight).at[1]);
    return status == TN_OK ? iterate(self, weight, 15) : status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct spectral *s = tn_module_data(self);
    tn_tensor *weight, *u, *v;

    if (tn_tensor_ndim(x) == 1)
        return unit(s, x);
    if (tn_module_slot_kind(self, "_u") == 0) {
        tn_fail(TN_ERR_VALUE,
                "%s: module: it parametrizes no tensor yet; expected tn_parametrize with it first",
                tn_module_type(self));
        return NULL;
    }
    weight = matrix(s, x);
    if (weight == NULL ||
        (tn_module_is_training(self) && iterate(self, weight, s->n_power_iterations) != TN_OK))
        return NULL;
    /* Copies: the buffers may change again before backward reads them. */
    u = tn_clone(tn_module_get(self, "_u"));
    v = tn_clone(tn_module_get(self, "_v"));
    return tn_div(x, tn_dot(u, tn_mv(weight, v)));
}

static tn_status inverse(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    (void)self;
    return layers_give(originals, value);
}

static tn_status load_owner(tn_module *self, tn_module *owner, const char *name,
                            tn_loading *loading)
{
    static const parametrize_row rows[] = { { "_orig", "original" },
                                            { "_u", "._u" },
                                            { "_v", "._v" } };

    return parametrize_rename(self, owner, name, loading, rows, 3);
}

/* The data has `row` besides the options, so a change of an option must not replace it. */
static tn_status copy(tn_module *self, tn_module *from)
{
    (void)self;
    (void)from;
    return TN_OK;
}

LAYER(spectral_norm, "SpectralNorm", .printed = "_SpectralNorm",
      .help = "a parametrization: divides by the largest singular value", .options = options,
      .data_size = sizeof(struct spectral), .build = build, .forward = forward, .copy = copy,
      .repr = layers_no_words, .attach = attach, .right_inverse = inverse,
      .load_owner = load_owner);
