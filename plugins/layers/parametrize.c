/* SPDX-License-Identifier: MIT
 *
 * Parametrizations of one line, Symmetric and WeightNorm, and what all of them share. */
#include "parametrize.h"

/* ---- helpers ---- */

/* Writes "PREFIXparametrizations.NAME." and the new name of a row. */
static int64_t new_name(tn_module *self, tn_module *owner, const char *prefix, const char *name,
                        const char *now, char *out, size_t size)
{
    int64_t index = 0;

    if (now[0] != '.')
        return tn_snprint(out, size, "%sparametrizations.%s.%s", prefix, name, now);
    while (index < tn_parametrization_count(owner, name) &&
           tn_parametrization(owner, name, index) != self)
        index++;
    return tn_snprint(out, size, "%sparametrizations.%s.%lld%s", prefix, name, (long long)index,
                      now);
}

tn_status parametrize_rename(tn_module *self, tn_module *owner, const char *name,
                             tn_loading *loading, const parametrize_row *rows, int64_t count)
{
    size_t size = strlen(loading->prefix) + strlen(name) + 128;
    char *old = tn_malloc(2 * size), *now = old + size;
    tn_status status = old != NULL ? TN_OK : TN_ERR_MEMORY;
    bool all = status == TN_OK;

    for (int64_t i = 0; i < count && all; i++) {
        tn_snprint(old, size, "%s%s%s", loading->prefix, name, rows[i].old);
        all = tn_state_find(loading->state, old) >= 0;
    }
    for (int64_t i = 0; i < count && all && status == TN_OK; i++) {
        tn_snprint(old, size, "%s%s%s", loading->prefix, name, rows[i].old);
        new_name(self, owner, loading->prefix, name, rows[i].now, now, size);
        status = tn_state_rename(loading->state, old, now);
    }
    tn_free(old);
    return status;
}

const char *parametrize_shape(const tn_tensor *tensor, char *out, size_t size)
{
    tn_ints shape = tn_tensor_shape(tensor);
    layers_text text = { out, size, 0 };

    layers_put(&text, "[");
    for (int64_t i = 0; i < shape.count; i++)
        layers_put(&text, "%s%lld", i > 0 ? ", " : "", (long long)shape.at[i]);
    layers_put(&text, "]");
    return out;
}

tn_status parametrize_once(tn_module *self, bool attached)
{
    if (!attached)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: module: it parametrizes a tensor already; expected a module of its own for "
                   "each tensor (call tn_parametrize_transfer to share one)",
                   tn_module_type(self));
}

tn_status parametrize_dim(tn_module *self, const tn_tensor *tensor, int64_t *dim)
{
    int64_t ndim = tn_tensor_ndim(tensor);

    /* PyTorch's wording */
    if (*dim >= ndim || *dim < -ndim)
        return tn_fail(TN_ERR_INDEX,
                       "%s: dim: Dimension out of range (expected to be in range of [%lld, %lld], "
                       "but got %lld)",
                       tn_module_type(self), (long long)-ndim, (long long)ndim - 1,
                       (long long)*dim);
    *dim += *dim < 0 ? ndim : 0;
    return TN_OK;
}

tn_tensor *parametrize_adjoint(tn_tensor *x)
{
    bool complex = x != NULL && (TN_BIT(tn_tensor_dtype(x)) & TN_MASK_COMPLEX) != 0;

    x = tn_transpose(x, -2, -1);
    return complex ? tn_conj(x) : x;
}

/* ---- Symmetric ---- */

static tn_status symmetric_attach(tn_module *self, tn_module *owner, const char *name,
                                  tn_tensor *tensor)
{
    tn_ints shape = tn_tensor_shape(tensor);

    char text[256];

    if (shape.count >= 2 && shape.at[shape.count - 1] == shape.at[shape.count - 2])
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: '%s' of %s: no square matrix, got shape %s; expected [..., n, n]",
                   tn_module_type(self), name, tn_module_type(owner),
                   parametrize_shape(tensor, text, sizeof text));
}

static tn_tensor *symmetric_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_add(tn_triu(x), tn_transpose(tn_triu(x, 1), -2, -1));
}

static tn_status symmetric_inverse(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    (void)self;
    return layers_give(originals, tn_triu(value));
}

LAYER(symmetric, "Symmetric", .help = "a parametrization: a symmetric matrix",
      .forward = symmetric_forward, .attach = symmetric_attach, .right_inverse = symmetric_inverse);

/* ---- WeightNorm ---- */

struct weight_norm {
    int64_t dim;
};

static const tn_option weight_norm_options[] = {
    TN_OPTION_ROW(struct weight_norm, dim, "0",
                  "the dimension with a length for each index; None or -1: one length in all",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

/* Returns the norm of v over all dimensions but one. */
static tn_tensor *norm_except(tn_module *self, tn_tensor *v)
{
    const struct weight_norm *s = tn_module_data(self);
    tn_linalg_vector_norm_options o = TN_LINALG_VECTOR_NORM_OPTIONS;
    int64_t dims[TN_MAX_DIMS], ndim = v != NULL ? tn_tensor_ndim(v) : 0, dim = s->dim;

    /* -1 is one norm of all elements, as in PyTorch. */
    if (v == NULL || dim == INT64_MIN || dim == -1)
        return tn_linalg_vector_norm(v);
    if (parametrize_dim(self, v, &dim) != TN_OK)
        return NULL;
    for (int64_t i = 0; i < ndim; i++)
        if (i != dim)
            dims[o.dims.count++] = i;
    o.dims.at = dims;
    o.keepdim = true;
    return o.dims.count > 0 ? tn_linalg_vector_norm(v, o.ord, o.dims, o.keepdim) : tn_abs(v);
}

/* Weight norm computes a tensor from two originals, but a parametrization before it would give it
 * one tensor. So it must be the first. */
static tn_status weight_norm_attach(tn_module *self, tn_module *owner, const char *name,
                                    tn_tensor *tensor)
{
    (void)tensor;
    if (!tn_is_parametrized(owner, name))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: '%s' of %s: it is parametrized already, got %s; expected WeightNorm as the "
                   "first parametrization, because it has two originals",
                   tn_module_type(self), name, tn_module_type(owner),
                   tn_module_type(tn_parametrization(owner, name, 0)));
}

static tn_status weight_norm_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *g, *v;

    if (tn_pack_count(input) != 2)
        return tn_fail(TN_ERR_TYPE,
                       "%s: wrong arguments, got %lld; expected 2 tensors: length and direction",
                       tn_module_type(self), (long long)tn_pack_count(input));
    g = tn_pack_tensor(input, 0);
    v = g != NULL ? tn_pack_tensor(input, 1) : NULL;
    return layers_give(output, tn_mul(v, tn_div(g, norm_except(self, v))));
}

static tn_status weight_norm_inverse(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    tn_status status = layers_give(originals, norm_except(self, value));

    return status == TN_OK ? layers_give(originals, value) : status;
}

static tn_status weight_norm_load_owner(tn_module *self, tn_module *owner, const char *name,
                                        tn_loading *loading)
{
    static const parametrize_row rows[] = { { "_g", "original0" }, { "_v", "original1" } };

    return parametrize_rename(self, owner, name, loading, rows, 2);
}

LAYER(weight_norm, "WeightNorm", .printed = "_WeightNorm",
      .help = "a parametrization: length times direction, g * v / ||v||",
      .options = weight_norm_options, .data_size = sizeof(struct weight_norm),
      .call = weight_norm_call, .repr = layers_no_words, .attach = weight_norm_attach,
      .right_inverse = weight_norm_inverse, .load_owner = weight_norm_load_owner);
