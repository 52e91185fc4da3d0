/* SPDX-License-Identifier: MIT
 *
 * LoRA (Hu et al., 2021): adds a product of two small matrices to a weight. They are trained in its
 * place. */
#include "parametrize.h"

#include <math.h>

struct lora {
    int64_t rank;
    double alpha;
    double dropout;
    const char *layout;
    bool in_out; /* whether the weight is [in, out]; from `attach` on */
};

static const tn_option options[] = {
    TN_OPTION_INT(struct lora, rank, "8", "rows of lora_A and columns of lora_B"),
    TN_OPTION_FLOAT(struct lora, alpha, "8", "the product is multiplied by alpha / rank"),
    TN_OPTION_FLOAT(struct lora, dropout, "0",
                    "probability with which a call in training leaves out an input"),
    TN_OPTION_STRING(struct lora, layout, "auto",
                     "of the weight: out_in, in_out, or auto: in_out of layers called Conv1D"),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    const struct lora *s = tn_module_data(self);

    if (s->rank < 1)
        return tn_fail(TN_ERR_VALUE, "%s: rank: too small, got %lld; expected 1 or more",
                       tn_module_type(self), (long long)s->rank);
    if (!isfinite(s->alpha))
        return tn_fail(TN_ERR_VALUE, "%s: alpha: out of range, got %g; expected a finite number",
                       tn_module_type(self), s->alpha);
    if (!(s->dropout >= 0 && s->dropout < 1))
        return tn_fail(TN_ERR_VALUE,
                       "%s: dropout: no probability, got %g; expected 0 or more and less than 1",
                       tn_module_type(self), s->dropout);
    if (strcmp(s->layout, "auto") != 0 && strcmp(s->layout, "out_in") != 0 &&
        strcmp(s->layout, "in_out") != 0)
        return tn_fail(TN_ERR_VALUE, "%s: layout: unknown, got %q; expected auto, out_in or in_out",
                       tn_module_type(self), s->layout);
    return TN_OK;
}

static tn_status add_matrix(tn_module *self, const char *name, const tn_tensor *like, int64_t rows,
                            int64_t columns, const char *init)
{
    tn_tensor *x = tn_parameter(
        tn_tensor_empty(TN_SHAPE(rows, columns), tn_tensor_dtype(like), tn_tensor_device(like)),
        true);
    tn_status status = x != NULL ? tn_init_parse(x, init) : tn_error_last_code();

    return status == TN_OK ? tn_module_add_parameter(self, name, x) : status;
}

/* A weight of a convolution, [out, in, ...], is a matrix with a row for each output. */
static tn_status attach(tn_module *self, tn_module *owner, const char *name, tn_tensor *tensor)
{
    struct lora *s = tn_module_data(self);
    tn_ints shape = tn_tensor_shape(tensor);
    const char *type = tn_module_type(owner), *transposed = "Conv1D";
    size_t length = strlen(type), tail = strlen(transposed);
    int64_t in = 1, out;
    char text[256];
    tn_status status = parametrize_once(self, tn_module_slot_kind(self, "lora_A") != 0);

    if (status != TN_OK)
        return status;
    if (shape.count < 2 || tn_tensor_numel(tensor) == 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: '%s' of %s: wrong shape, got %s; expected 2 dimensions or more, none "
                       "of size 0",
                       tn_module_type(self), name, type,
                       parametrize_shape(tensor, text, sizeof text));
    s->in_out = strcmp(s->layout, "in_out") == 0 ||
                (strcmp(s->layout, "auto") == 0 && length >= tail &&
                 strcmp(type + length - tail, transposed) == 0);
    if (s->in_out && shape.count != 2)
        return tn_fail(TN_ERR_VALUE,
                       "%s: '%s' of %s: wrong shape for the layout in_out, got %s; expected 2 "
                       "dimensions",
                       tn_module_type(self), name, type,
                       parametrize_shape(tensor, text, sizeof text));
    for (int64_t i = 1; i < shape.count; i++)
        in *= shape.at[i];
    out = shape.at[0];
    status = add_matrix(self, "lora_A", tensor, s->rank, s->in_out ? out : in,
                        "kaiming_uniform(a=2.2360679774997896)");
    return status == TN_OK
               ? add_matrix(self, "lora_B", tensor, s->in_out ? in : out, s->rank, "zeros()")
               : status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct lora *s = tn_module_data(self);
    tn_tensor *a, *b, *product;

    /* Before `attach` there are no matrices. The weight is unchanged, as it is just after `attach`,
     * when lora_B is zero. */
    if (tn_module_slot_kind(self, "lora_A") == 0)
        return x;
    a = tn_module_get(self, "lora_A");
    b = tn_module_get(self, "lora_B");
    if (a != NULL && s->dropout > 0 && tn_module_is_training(self)) {
        tn_tensor *inputs = tn_tensor_full(TN_SHAPE(tn_tensor_shape(a).at[1]), 1.0,
                                           tn_tensor_dtype(a), tn_tensor_device(a));
        a = tn_mul(a, tn_dropout(inputs, s->dropout, true));
    }
    product = tn_mul_scalar(tn_matmul(b, a), s->alpha / (double)s->rank);
    product = s->in_out ? tn_transpose(product, 0, 1) : product;
    return tn_add(x, tn_reshape(product, tn_tensor_shape(x)));
}

/* The weights of a model without adapters. */
static tn_status load_owner(tn_module *self, tn_module *owner, const char *name,
                            tn_loading *loading)
{
    static const parametrize_row rows[] = { { "", "original" } };

    return parametrize_rename(self, owner, name, loading, rows, 1);
}

/* The data has `in_out` besides the options, so a change of an option must not replace it. */
static tn_status copy(tn_module *self, tn_module *from)
{
    (void)self;
    (void)from;
    return TN_OK;
}

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct lora *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "rank=%lld, alpha=%g", (long long)s->rank, s->alpha);
    if (s->dropout > 0)
        layers_put(&text, ", dropout=%g", s->dropout);
    return text.used;
}

LAYER(lora, "LoRA", .help = "a parametrization: adds lora_B . lora_A * alpha / rank",
      .options = options, .data_size = sizeof(struct lora), .build = build, .forward = forward,
      .copy = copy, .repr = repr, .attach = attach, .load_owner = load_owner);
