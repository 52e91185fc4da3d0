/* SPDX-License-Identifier: MIT
 *
 * The rules for operators of ONNX (rules.h describes rules). A row is right from version `since` of
 * the operator set on, until the next row of the same operator; arguments are the inputs in their
 * order, then the attributes. Integers of the host stand for tensors (host.c). */
#ifndef TN_FOREIGN_ONNX_ONNX_RULES_H
#define TN_FOREIGN_ONNX_ONNX_RULES_H

#include "rules.h"

/* Lists, as in rules.h. */
extern const tn_rule_def onnx_rules_elements[];  /* functions of each element */
extern const tn_rule_def onnx_rules_numbers[];   /* arithmetic, comparisons */
extern const tn_rule_def onnx_rules_shapes[];    /* shapes, and integers of the host */
extern const tn_rule_def onnx_rules_parts[];     /* tensors cut into several, or put together */
extern const tn_rule_def onnx_rules_index[];     /* elements by their indices */
extern const tn_rule_def onnx_rules_reduce[];    /* sums, largest elements, orders */
extern const tn_rule_def onnx_rules_windows[];   /* convolutions, pooling */
extern const tn_rule_def onnx_rules_resize[];    /* resampling */
extern const tn_rule_def onnx_rules_layers[];    /* products, normalization, losses */
extern const tn_rule_def onnx_rules_attention[]; /* attention, decoders */
extern const tn_rule_def onnx_rules_vision[];    /* boxes, regions, images */
extern const tn_rule_def onnx_rules_signal[];    /* Fourier transforms, windows */
extern const tn_rule_def onnx_rules_training[];  /* steps of optimizers */
extern const tn_rule_def onnx_rules_recurrent[]; /* recurrent networks */
extern const tn_rule_def onnx_rules_quantized[]; /* quantized numbers */
extern const tn_rule_def onnx_rules_sequences[]; /* sequences, optional values */

/* rules_shapes.c: whether an argument is integers of the host. */
TN_HIDDEN bool onnx_is_host(tn_rule_call *call, const char *name);
/* Gives integers of the host: a list, or with count -1 a single one. */
TN_HIDDEN tn_status onnx_give_host(tn_rule_call *call, const int64_t *numbers, int64_t count);
/* The dtype for a number of ONNX in an attribute; TN_DTYPE_AUTO for None. */
TN_HIDDEN tn_dtype onnx_rule_dtype(tn_rule_call *call, const char *name);
/* Dimensions in an argument, each from 0 to ndim - 1, without repetition; the array lives as long
 * as the call. None: count -1. */
TN_HIDDEN tn_ints onnx_rule_dims(tn_rule_call *call, const char *name, int64_t ndim);
/* A number as a tensor without dimensions of the dtype of another. */
TN_HIDDEN tn_tensor *onnx_number(double value, tn_tensor *like);
/* Whether a text argument is this word. */
TN_HIDDEN bool onnx_is(tn_rule_call *call, const char *name, const char *word);
/* Whether a shape has no more than 2^32 elements; else the call has failed. */
TN_HIDDEN bool onnx_check_size(tn_rule_call *call, tn_ints shape);

/* rules_unsigned.c: whether a tensor has unsigned integers of 16 to 64 bits; an operator of two
 * tensors by name, the first of which has. */
TN_HIDDEN bool onnx_is_unsigned(const tn_tensor *tensor);
TN_HIDDEN tn_tensor *onnx_unsigned(tn_rule_call *call, const char *op, tn_tensor *a, tn_tensor *b);
/* Its numbers as int64 in the same order. */
TN_HIDDEN tn_tensor *onnx_unsigned_order(tn_tensor *tensor);
/* An operator of two tensors by name, of any dtype. */
TN_HIDDEN tn_tensor *onnx_binary(tn_rule_call *call, const char *op, tn_tensor *a, tn_tensor *b);

/* rules_windows.c: the rule of Conv. */
TN_HIDDEN tn_status onnx_conv(tn_rule_call *call);

#endif
