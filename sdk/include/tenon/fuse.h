/* SPDX-License-Identifier: MIT
 *
 * Fusion of batch norms into the layers before them, for inference: functions that are compiled
 * into the program that uses them, because the library itself computes nothing. */
#ifndef TENON_FUSE_H
#define TENON_FUSE_H

#include <string.h>

#include <tenon/convert.h>
#include <tenon/graph.h>
#include <tenon/ops.h>

TN_BEGIN_DECLS

/* The parameters of a batch norm, and of the layer before it. `bias` and the affine parameters of
 * the norm may be TN_NONE: 0, and 1 and 0. */
typedef struct tn_folding {
    tn_tensor *weight, *bias;
    tn_tensor *mean, *variance, *gamma, *beta;
    double eps;
    int32_t channel; /* the dimension of `weight` that has the output channels */
} tn_folding;

/* Computes the parameters of one layer that does the same: weight * s and (bias - mean) * s + beta,
 * with s = gamma / sqrt(variance + eps), in the dtype of `weight`. The results belong to the
 * scope. */
TN_ATTR(unused)
static inline tn_status tn_fold_batch_norm(const tn_folding *f, tn_tensor **weight,
                                           tn_tensor **bias)
{
    int64_t shape[TN_MAX_DIMS];
    tn_ints wide;
    int32_t ndim = tn_tensor_ndim(f->weight);
    tn_dtype dtype = tn_tensor_dtype(f->weight);
    tn_tensor *scale = tn_rsqrt(tn_add_scalar(f->variance, TN_SCALAR(f->eps))), *shift;

    if (f->gamma != TN_NONE)
        scale = tn_mul(f->gamma, scale);
    wide.at = shape;
    wide.count = ndim;
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = 1;
    shape[f->channel] = tn_tensor_size(f->variance, 0);
    *weight = tn_cast(tn_mul(f->weight, tn_view_to(scale, wide)), dtype);
    shift = f->bias != TN_NONE ? tn_sub(f->bias, f->mean) : tn_neg(f->mean);
    shift = tn_mul(shift, scale);
    if (f->beta != TN_NONE)
        shift = tn_add(shift, f->beta);
    *bias = tn_cast(shift, dtype);
    return *weight != NULL && *bias != NULL ? TN_OK : tn_error_last_code();
}

/* Stores a parameter that requires gradients as the old one did. */
TN_ATTR(unused)
static inline tn_status tn_fuse_store(tn_module *module, const char *name, tn_tensor *value)
{
    tn_tensor *old = tn_module_get(module, name);
    bool wanted = old != NULL && old != TN_NONE && tn_tensor_requires_grad(old);
    tn_tensor *parameter = tn_parameter(tn_detach(value), wanted);

    return parameter != NULL ? tn_module_set(module, name, parameter) : tn_error_last_code();
}

/* Returns a parameter or buffer, TN_NONE if the module has no slot of this name. */
TN_ATTR(unused)
static inline tn_tensor *tn_fuse_slot(tn_module *module, const char *name)
{
    return tn_module_slot_kind(module, name) != 0 ? tn_module_get(module, name) : TN_NONE;
}

/* Returns a copy of a convolution or linear layer that also does what the batch norm after it does
 * in evaluation mode. Both must be in evaluation mode, and the norm must have running statistics;
 * its number of features must be that of the outputs of the layer (of a linear layer, it may be 1).
 * The dtype of the layer stays, and whether its parameters require gradients. [owned] */
TN_ATTR(unused)
static inline tn_module *tn_fuse_batch_norm(tn_module *layer, tn_module *norm)
{
    TN_SCOPE;
    tn_folding f = { NULL, NULL, NULL, NULL, NULL, NULL, 1e-5, 0 };
    tn_pack *eps = tn_pack_new();
    tn_module *fused = NULL;
    tn_tensor *weight, *bias;
    bool good = eps != NULL && tn_grad_begin(false) == TN_OK;

    f.weight = good ? tn_fuse_slot(layer, "weight") : NULL;
    f.bias = f.weight != NULL ? tn_fuse_slot(layer, "bias") : NULL;
    f.mean = f.bias != NULL ? tn_fuse_slot(norm, "running_mean") : NULL;
    f.variance = f.mean != NULL ? tn_fuse_slot(norm, "running_var") : NULL;
    f.gamma = f.variance != NULL ? tn_fuse_slot(norm, "weight") : NULL;
    f.beta = f.gamma != NULL ? tn_fuse_slot(norm, "bias") : NULL;
    good = f.beta != NULL && tn_module_option_get(norm, "eps", eps) == TN_OK;
    if (good && (tn_module_is_training(layer) || tn_module_is_training(norm)))
        good = tn_fail(TN_ERR_ASSERT, "Fusion only for eval!") == TN_OK; /* PyTorch's wording */
    if (good && (f.mean == TN_NONE || f.variance == TN_NONE))
        good = tn_fail(TN_ERR_ASSERT, "tn_fuse_batch_norm: %s: it has no running statistics",
                       tn_module_type(norm)) == TN_OK;
    if (good) {
        int64_t features = tn_tensor_size(f.variance, 0);

        f.eps = tn_pack_at(eps, 0).as.f;
        f.channel = strstr(tn_module_type(layer), "Transpose") != NULL;
        good = features == tn_tensor_size(f.weight, f.channel) ||
               (features == 1 && tn_tensor_ndim(f.weight) == 2);
        if (!good)
            tn_fail(TN_ERR_ASSERT,
                    "tn_fuse_batch_norm: %s: wrong number of features, got %lld; expected %lld, "
                    "that of %s",
                    tn_module_type(norm), (long long)features,
                    (long long)tn_tensor_size(f.weight, f.channel), tn_module_type(layer));
    }
    fused = good ? tn_module_copy(layer) : NULL;
    if (fused != NULL &&
        (tn_fold_batch_norm(&f, &weight, &bias) != TN_OK ||
         (tn_tensor_ndim(bias) == 1 &&
          tn_tensor_size(bias, 0) != tn_tensor_size(f.weight, f.channel) &&
          (bias = tn_copy(tn_expand(bias, TN_SHAPE(tn_tensor_size(f.weight, 0))))) == NULL) ||
         tn_fuse_store(fused, "weight", weight) != TN_OK ||
         tn_fuse_store(fused, "bias", bias) != TN_OK)) {
        tn_module_drop(fused);
        fused = NULL;
    }
    if (eps != NULL)
        tn_grad_end();
    tn_pack_drop(eps);
    return fused;
}

/* Returns a module that computes what `module` computes in evaluation mode, with batch norms folded
 * into the convolutions and linear layers before them. The module itself is not changed. `input` is
 * an input, of which only dtype, shape and device matter. The passes conv_bn and linear_bn do the
 * work; tn_module_graph gives the graph. [owned] */
TN_ATTR(unused)
static inline tn_module *tn_module_fuse(tn_module *module, tn_tensor *input)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_module *copy = tn_module_copy(module), *fused = NULL;
    tn_graph *graph = NULL;

    if (copy != NULL && tn_module_train(copy, false) == TN_OK)
        graph = tn_module_trace(copy, input, &how);
    if (graph != NULL && tn_graph_pass(graph, "conv_bn, linear_bn, dead") == TN_OK)
        fused = tn_graph_module(graph);
    tn_graph_drop(graph);
    if (copy != NULL)
        tn_module_drop(copy);
    return fused;
}

TN_END_DECLS
#endif
