/* SPDX-License-Identifier: MIT
 *
 * The passes conv_bn and linear_bn: fold a batch norm into the convolution or linear layer before
 * it, for inference. Both work on calls of operators and on calls of layers. */
#include "passes.h"

#include <string.h>

/* Layers and operators that end with the number of their dimensions. */
static const char *const convolutions[] = {
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",  "ConvTranspose2d",  "ConvTranspose3d"
};

/* What a node calls: the name of an operator, or the type of a module. */
static const char *callee_of(const tn_node *node)
{
    return tn_node_kind_of(node) == TN_NODE_CALL ? tn_module_type(tn_node_module(node))
                                                 : tn_node_target(node);
}

static bool is_convolution(const tn_node *node)
{
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        if (strcmp(callee_of(node), convolutions[i]) == 0)
            return true;
    return false;
}

static bool is_linear(const tn_node *node)
{
    return strcmp(callee_of(node), "linear") == 0 || strcmp(callee_of(node), "Linear") == 0;
}

/* Without a batch dimension, dimension 1, which the norm normalizes, is not that of the channels.
 * Returns why the norm cannot be folded, NULL if the result of the layer has a batch dimension. */
static const char *without_batch(const tn_node *layer)
{
    const char *name = callee_of(layer);
    int32_t expected = is_linear(layer) ? 2 : name[strlen(name) - 2] - '0' + 2; /* "conv2d" */
    tn_meta meta = { .ndim = -1 };

    if (tn_node_meta(layer, &meta) == TN_OK && meta.ndim == expected)
        return NULL;
    if (meta.ndim < 0)
        return "the number of dimensions of its input is not known";
    return !is_linear(layer) ? "the input of the convolution has no batch"
           : tn_node_kind_of(layer) == TN_NODE_CALL
               ? "the input of the linear layer does not have 2 dimensions"
               : "the input of the linear operator does not have 2 dimensions";
}

/* Returns whether no other node calls the same module. */
static bool called_once(const tn_graph *graph, const tn_node *node)
{
    int64_t calls = 0;

    for (const tn_node *at = tn_graph_first(graph); at; at = tn_node_next(at))
        calls += tn_node_kind_of(at) == TN_NODE_CALL && tn_node_module(at) == tn_node_module(node);
    return calls == 1;
}

/* ---- layers ---------------------------------------------------------------------------------- */

static bool norm_fits(const tn_node *layer, const tn_node *norm)
{
    const char *type = callee_of(norm), *of = callee_of(layer);

    if (strncmp(type, "BatchNorm", 9) != 0 || type[9] == '\0' || strcmp(type + 10, "d") != 0)
        return false;
    return is_linear(layer) ? type[9] == '1' : type[9] == of[strlen(of) - 2];
}

/* Returns why the norm cannot be folded into the layer, NULL if it can. */
static const char *layers_apart(const tn_graph *graph, const tn_node *layer, const tn_node *norm)
{
    tn_module *of = tn_node_module(norm);

    if (!norm_fits(layer, norm))
        return "it has other dimensions than the layer before it";
    if (!called_once(graph, layer))
        return "the layer before it is called more than once";
    if (tn_module_is_training(of) || tn_module_is_training(tn_node_module(layer)))
        return "it is in training mode";
    if (tn_fuse_slot(of, "running_mean") == TN_NONE)
        return "it has no running statistics";
    return without_batch(layer);
}

static tn_status fold_layers(tn_graph *graph, tn_node *layer, tn_node *norm, const char **why,
                             int64_t *folded)
{
    tn_module *fused, *of = tn_node_module(norm);
    tn_status status;

    *why = layers_apart(graph, layer, norm);
    if (*why != NULL)
        return TN_OK;
    fused = tn_fuse_batch_norm(tn_node_module(layer), of);
    if (fused == NULL)
        return tn_error_last_code();
    status = tn_node_set_module(layer, fused);
    tn_module_drop(fused);
    if (status == TN_OK && tn_node_replace_uses(norm, layer) < 0)
        status = tn_error_last_code();
    ++*folded;
    return status == TN_OK ? tn_node_erase(norm) : status;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Returns the tensor of a slot or constant, TN_NONE for an absent input, NULL for other values. */
static tn_tensor *held(const tn_node *node)
{
    if (node == TN_NODE_NONE)
        return TN_NONE;
    return tn_node_kind_of(node) == TN_NODE_SLOT || tn_node_kind_of(node) == TN_NODE_CONSTANT
               ? tn_node_tensor(node)
               : NULL;
}

static tn_status build(tn_graph *graph, tn_node *layer, tn_node *norm, const tn_folding *f)
{
    tn_node *in[3] = { tn_node_input(layer, 0) }, *fused;
    tn_tensor *weight, *bias;

    if (tn_fold_batch_norm(f, &weight, &bias) != TN_OK)
        return tn_error_last_code();
    in[1] = passes_constant(graph, tn_node_name(layer), "weight", weight);
    in[2] = in[1] ? passes_constant(graph, tn_node_name(layer), "bias", bias) : NULL;
    fused = in[2] ? tn_graph_add_call(graph, norm, tn_node_op(layer), tn_node_options(layer), in, 3)
                  : NULL;
    if (!fused || tn_node_replace_uses(norm, fused) < 0 || tn_node_erase(norm) != TN_OK)
        return tn_error_last_code();
    return tn_node_erase(layer);
}

/* Finds the parameters of both. Returns why the norm cannot be folded into the layer, NULL if it
 * can. */
static const char *operators_apart(const tn_node *layer, const tn_node *norm, tn_folding *f)
{
    const char *why;

    if (((const tn_batch_norm_options *)tn_node_options(norm))->training)
        return "it is in training mode";
    if (tn_node_is_no_grad(layer))
        return "the operator before it records no gradients";
    why = without_batch(layer);
    if (why != NULL)
        return why;
    f->weight = held(tn_node_input(layer, 1));
    f->bias = held(tn_node_input(layer, 2));
    f->mean = held(tn_node_input(norm, 1));
    f->variance = held(tn_node_input(norm, 2));
    f->gamma = held(tn_node_input(norm, 3));
    f->beta = held(tn_node_input(norm, 4));
    f->channel = strstr(callee_of(layer), "transpose") != NULL;
    if (!f->weight || !f->bias || !f->mean || !f->variance || !f->gamma || !f->beta ||
        f->weight == TN_NONE)
        return "a parameter is computed, and not a slot or constant";
    if (f->mean == TN_NONE || f->variance == TN_NONE)
        return "it has no running statistics";
    return tn_tensor_size(f->weight, f->channel) != tn_tensor_size(f->variance, 0)
               ? "the operator before it has another number of channels, as with groups"
               : NULL;
}

static tn_status fold_operators(tn_graph *graph, tn_node *layer, tn_node *norm, const char **why,
                                int64_t *folded)
{
    const tn_batch_norm_options *o = tn_node_options(norm);
    tn_folding f = { .eps = o->eps };
    uint64_t scope;
    tn_status status;

    *why = tn_node_input_count(layer) == 3 ? operators_apart(layer, norm, &f)
                                           : "the operator before it has other inputs";
    if (*why != NULL)
        return TN_OK;
    scope = tn_scope_begin();
    status = tn_grad_begin(false);
    if (status == TN_OK)
        status = build(graph, layer, norm, &f);
    tn_grad_end();
    tn_scope_end(scope);
    ++*folded;
    return status;
}

/* ---- the passes ------------------------------------------------------------------------------ */

static bool is_norm(const tn_node *node)
{
    return tn_node_kind_of(node) == TN_NODE_CALL ? strncmp(callee_of(node), "BatchNorm", 9) == 0
                                                 : passes_is_op(node, "batch_norm");
}

/* Folds a norm if it can. Else *why says why not. */
static tn_status fold(const tn_pass_args *args, bool (*is_wanted)(const tn_node *node),
                      tn_node *norm, const char **why, int64_t *folded)
{
    tn_node *layer = tn_node_input(norm, 0);

    if (tn_node_kind_of(layer) != tn_node_kind_of(norm) || tn_node_item_count(layer) != 1 ||
        !is_wanted(layer)) {
        *why = is_wanted == is_linear ? "no linear layer is before it"
                                      : "no convolution is before it";
        return TN_OK;
    }
    if (tn_node_user_count(layer) != 1) {
        *why = "its input has other users";
        return TN_OK;
    }
    return tn_node_kind_of(norm) == TN_NODE_CALL
               ? fold_layers(args->graph, layer, norm, why, folded)
               : fold_operators(args->graph, layer, norm, why, folded);
}

static tn_status fold_all(const tn_pass_args *args, bool (*is_wanted)(const tn_node *node))
{
    int64_t folded = 0;
    tn_status status = TN_OK;

    for (tn_node *node = tn_graph_first(args->graph), *next; node && status == TN_OK; node = next) {
        const char *why = NULL;

        next = tn_node_next(node);
        if (tn_node_input_count(node) == 0 || !is_norm(node))
            continue;
        status = fold(args, is_wanted, node, &why, &folded);
        if (status == TN_OK && why != NULL)
            status = passes_report_left(args, node, why);
    }
    return status == TN_OK ? passes_report(args, folded, "batch norms folded") : status;
}

static tn_status conv_bn(const tn_pass_def *self, const tn_pass_args *args)
{
    (void)self;
    return fold_all(args, is_convolution);
}

static tn_status linear_bn(const tn_pass_def *self, const tn_pass_args *args)
{
    (void)self;
    return fold_all(args, is_linear);
}

const tn_pass_def pass_conv_bn = { TN_HEAD(tn_pass_def), .name = "conv_bn",
                                   .help = "folds batch norms into the convolutions before them",
                                   .flags = TN_PASS_INFERENCE | TN_PASS_WEIGHTS, .run = conv_bn };
const tn_pass_def pass_linear_bn = { TN_HEAD(tn_pass_def), .name = "linear_bn",
                                     .help = "folds batch norms into the linear layers before them",
                                     .flags = TN_PASS_INFERENCE | TN_PASS_WEIGHTS,
                                     .run = linear_bn };
