/* SPDX-License-Identifier: MIT
 *
 * Quantization: networks whose layers compute with integers of 8 or 4 bits. The functions call the
 * plugin tenon.quant, which provides the interface tenon.quant.api; without the plugin they fail
 * and name the interface. docs/guides/quantization.md is the guide.
 *
 * A scheme says how layers are quantized: "int8_dynamic(types=[Linear], skip=[head])". It is the
 * spec of a layer, so that a plugin adds a scheme as it adds a layer. Schemes have the options
 * `types` (names of layers; None: all that the scheme can quantize), `skip` (paths, with * and ?)
 * and `limit` (the least SQNR in dB; 0: any); those with an option `range` need calibration. The
 * module of a scheme is called with one module, and for calibrated schemes with the tensors `low`
 * and `high`, the range of its input; the result is the quantized module, or a text that says why
 * there is none.
 *
 * The schemes of the plugin map a layer `Name` to the layer `QuantizedName` of any plugin: made
 * with the options that both have and those of the scheme (weight, group, activation), it gets the
 * state of the float module, whose weight its load_state turns into integers. */
#ifndef TENON_QUANTIZE_H
#define TENON_QUANTIZE_H

#ifndef TENON_PLUGIN_H
#include <tenon/tenon.h>

#include <tenon/query.h>
#endif

TN_BEGIN_DECLS

/* What became of a module. Numbers that were not measured are NaN. The layout never changes. */
typedef struct tn_quantize_row {
    char *path;    /* of the module in the network */
    char *type;    /* of the float module: "Linear" */
    char *becomes; /* the type of the quantized module; NULL: the module stays in float */
    char *why;     /* why it stays in float; NULL if it does not */
    double sqnr;   /* power of the results over that of the error, in dB */
    double cosine; /* of the results of both modules */
    double seconds_before, seconds_after; /* of a call, the shorter of two */
    int64_t bytes_before, bytes_after;    /* parameters and buffers */
    void *reserved[4];
} tn_quantize_row;

/* What a function did. Freed by tn_quantize_report_free. The layout never changes. */
typedef struct tn_quantize_report {
    tn_quantize_row *rows;
    int64_t count;
    int64_t quantized; /* rows whose module was replaced */
    void *reserved[4];
} tn_quantize_report;

/* The table of the interface. Programs call the functions below. */
typedef struct tn_quantize_api {
    tn_status (*quantize)(tn_module *net, const char *scheme, tn_tensor *const *inputs,
                          int64_t n_inputs, tn_quantize_report *report);
    tn_status (*prepare)(tn_module *net, const char *scheme);
    tn_status (*convert)(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs,
                         tn_quantize_report *report);
    tn_status (*fuse_list)(tn_module *net, const char *list);
} tn_quantize_api;

/* Returns the functions of the plugin; NULL and sets the error on failure. */
static inline const tn_quantize_api *tn_quantize_find(void)
{
    const struct tn_interface_need need = { "tenon.quant.api", 0, 0,
                                            (uint32_t)sizeof(tn_quantize_api), 0 };
    return (const tn_quantize_api *)tn_interface_find(NULL, &need, NULL);
}

/* Frees the texts and rows of a report, and sets it to zero. */
static inline void tn_quantize_report_free(tn_quantize_report *report)
{
    for (int64_t i = 0; i < report->count; i++) {
        tn_free(report->rows[i].path);
        tn_free(report->rows[i].type);
        tn_free(report->rows[i].becomes);
        tn_free(report->rows[i].why);
    }
    tn_free(report->rows);
    report->rows = NULL;
    report->count = report->quantized = 0;
}

/* Replaces the modules of a network that the scheme takes by quantized ones, in place, and puts the
 * network in evaluation mode. Hooks move to the new modules; a module that several parents share is
 * replaced in all of them. Each new module is compared with the float module, on what it gets when
 * the network is called with `inputs`, or without them on random numbers; below the limit of the
 * scheme the float module stays. `report` may be NULL. If the function fails, the network is
 * unchanged. */
static inline tn_status tn_module_quantize(tn_module *net, const char *scheme,
                                           tn_tensor *const *inputs, int64_t n_inputs,
                                           tn_quantize_report *report)
{
    const tn_quantize_api *api = tn_quantize_find();
    return api != NULL ? api->quantize(net, scheme, inputs, n_inputs, report)
                       : tn_error_last_code();
}

/* Prepares a network for calibration (int8_static, in evaluation mode) or for quantization-aware
 * training (int8_qat, in training mode): adds to the modules that the scheme takes a child
 * `input_range`, which records the range of the inputs, and a hook that calls it. The network is
 * then called with data, or trained. If the function fails, the network is unchanged. */
static inline tn_status tn_module_quantize_prepare(tn_module *net, const char *scheme)
{
    const tn_quantize_api *api = tn_quantize_find();
    return api != NULL ? api->prepare(net, scheme) : tn_error_last_code();
}

/* Replaces the prepared modules of a network by quantized ones, as tn_module_quantize does, with
 * the ranges that were recorded. */
static inline tn_status tn_module_quantize_convert(tn_module *net, tn_tensor *const *inputs,
                                                   int64_t n_inputs, tn_quantize_report *report)
{
    const tn_quantize_api *api = tn_quantize_find();
    return api != NULL ? api->convert(net, inputs, n_inputs, report) : tn_error_last_code();
}

/* Fuses modules, in place: "conv1, bn1, relu; layer1.0.conv2, layer1.0.bn2". Of each group the
 * first is replaced by the fused module and the others by Identity; the hooks of the first that run
 * before it, and those of the last that run after it, move to the fused module. Groups are a
 * convolution or linear layer, a batch norm in evaluation mode (of which the numbers are computed
 * in float64) and an activation, of which one may be missing. If the function fails, the network is
 * unchanged. */
static inline tn_status tn_module_fuse_list(tn_module *net, const char *list)
{
    const tn_quantize_api *api = tn_quantize_find();
    return api != NULL ? api->fuse_list(net, list) : tn_error_last_code();
}

TN_END_DECLS
#endif
