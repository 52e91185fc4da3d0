/* SPDX-License-Identifier: MIT
 *
 * Internals of this plugin that several files use: weights as integers, what quantized layers have
 * in common, schemes, and the flow that replaces the modules of a network. */
#ifndef TN_QUANT_MODULES_H
#define TN_QUANT_MODULES_H

#include <tenon/plugin.h>

#include <tenon/quantize.h>

#include <string.h>

/* ---- weights (weight.c) ---------------------------------------------------------------------- */

/* How a weight [out, in] is stored. */
typedef struct quant_format {
    const char *name;
    bool scales;      /* it has a tensor of scales: [out], or [out, in / group] */
    int64_t per_byte; /* numbers in a byte; 0: blocks of `block` numbers in `bytes` bytes */
    int64_t block, bytes;
    int64_t least, most; /* of the integers */
} quant_format;

/* Returns a format; NULL and an error that begins with `who` if there is none of this name. */
TN_HIDDEN const quant_format *quant_format_find(const char *who, const char *name);
/* Fails unless `group` (0: one scale for each row) and the format fit rows of `in` numbers. */
TN_HIDDEN tn_status quant_format_check(const quant_format *format, const char *who, int64_t group,
                                       int64_t in);
/* Returns the number of bytes of a row of `in` numbers. */
TN_HIDDEN int64_t quant_format_row(const quant_format *format, int64_t in);
/* Stores a float weight of any shape as integers of the same shape, those of formats with several
 * numbers in a byte as [out, bytes], and their scales. If *scale is TN_NONE, each scale becomes the
 * one with the least squared error among some that clip the largest numbers; for formats without
 * scales it stays TN_NONE. */
TN_HIDDEN tn_status quant_weight(const quant_format *format, int64_t group, tn_tensor *weight,
                                 tn_tensor **integers, tn_tensor **scale);

/* ---- quantized layers (layer.c) -------------------------------------------------------------- */

/* How a layer gets the scale of its input. */
enum {
    QUANT_NONE = 1,    /* the input stays float */
    QUANT_BLOCK = 2,   /* a scale for each 32 elements (linear_packed) */
    QUANT_ROW = 4,     /* a scale for each row, or each sample of a convolution */
    QUANT_TENSOR = 8,  /* a scale for each call */
    QUANT_STATIC = 16, /* fixed, in the buffers input_scale and input_zero_point */
};

/* Returns the QUANT_ value of a word. Fails, beginning with the type of `self`, if it is not one of
 * `allowed`; returns 0 then. */
TN_HIDDEN uint32_t quant_activation(const tn_module *self, const char *word, uint32_t allowed);
/* Adds a buffer filled with one number. With `fixed` it keeps its dtype in conversions. */
TN_HIDDEN tn_status quant_add_buffer(tn_module *self, const char *name, tn_dtype dtype,
                                     tn_ints shape, double value, bool fixed);
/* Adds the buffers that all quantized layers have: bias [out] if it is wanted, else only its name,
 * weight_scale with `scales`, and the two of the input if it is QUANT_STATIC. */
TN_HIDDEN tn_status quant_add_scales(tn_module *self, bool bias, int64_t out, tn_ints scales,
                                     uint32_t activation);
/* Fails if a tensor of a state, called `name`, has a number that is not finite, or, with `scale`,
 * not positive. */
TN_HIDDEN tn_status quant_check_numbers(const tn_module *self, const char *name, tn_tensor *x,
                                        bool scale);
/* Before the scales of a buffer are loaded: fails if those of the state are no scales. */
TN_HIDDEN tn_status quant_check_scale(tn_module *self, tn_loading *loading, const char *name);
/* For tn_layer_def.load_state: quantizes a weight that the state has as floats, with the scales of
 * the state if it has some, then loads. */
TN_HIDDEN tn_status quant_load(tn_module *self, tn_loading *loading, const quant_format *format,
                               int64_t group);
/* Fails if a gradient for the input x would be recorded. */
TN_HIDDEN tn_status quant_without_gradient(const tn_module *self, tn_tensor *x);
/* An input as integers, with its scale and zero point. `row`: the dimensions that share a scale if
 * the activation is QUANT_ROW; NULL: the last one. */
typedef struct quant_input {
    tn_tensor *integers, *scale, *zero_point;
} quant_input;
TN_HIDDEN tn_status quant_take_input(tn_module *self, tn_tensor *x, uint32_t activation,
                                     const tn_ints *row, quant_input *out);
/* Returns the bias in a dtype, TN_NONE if there is none. */
TN_HIDDEN tn_tensor *quant_bias(tn_module *self, tn_dtype dtype);
/* Appends text to out[size] at *used, which counts also what has no room. */
TN_HIDDEN void quant_put(char *out, size_t size, int64_t *used, const char *format, ...)
    TN_ATTR(format(printf, 4, 5));
/* Returns a new text of both, which the caller frees with tn_free; NULL and an error if there is no
 * memory. */
TN_HIDDEN char *quant_joined(const char *a, const char *b);

/* ---- ranges (layer_range.c) ------------------------------------------------------------------ */

/* Adds the buffers min_val and max_val; with `channels`, their number follows from the data. */
TN_HIDDEN tn_status quant_range_build(tn_module *self, bool channels);
/* Sets both. */
TN_HIDDEN tn_status quant_range_store(tn_module *self, tn_tensor *low, tn_tensor *high);
/* Returns whether a module has recorded nothing yet. */
TN_HIDDEN bool quant_range_is_empty(tn_module *self);
/* Calls `record_it` without recording gradients, unless x has no elements; returns x. */
TN_HIDDEN tn_tensor *quant_range_pass(tn_module *self, tn_tensor *x,
                                      tn_status (*record_it)(tn_module *self, tn_tensor *x));
/* Before a buffer is loaded: renames its entry from `old` (NULL: there is no older name), and gives
 * the buffer the number of elements of the entry, and its numbers. */
TN_HIDDEN tn_status quant_range_entry(tn_module *self, tn_loading *loading, const char *name,
                                      const char *old);
/* For tn_layer_def.load_state, for states of all versions. */
TN_HIDDEN tn_status quant_range_load(tn_module *self, tn_loading *loading);
/* Sets the range that a module of any plugin has recorded: its slots range_min and range_max, or
 * else min_val and max_val. Fails if they are not finite. */
TN_HIDDEN tn_status quant_range_get(tn_module *range, tn_tensor **low, tn_tensor **high);

/* ---- schemes (scheme.c) ---------------------------------------------------------------------- */

/* Returns a scheme from its spec; NULL and an error if it is none. The caller drops it. */
TN_HIDDEN tn_module *quant_scheme_parse(const char *who, const char *text);
/* Returns whether the scheme names the type of a module, or names none and has a mapping for it;
 * schemes of other plugins that name none take the modules without children. */
TN_HIDDEN bool quant_scheme_takes(tn_module *scheme, tn_module *module);
/* Returns whether the scheme leaves out the module at a path. */
TN_HIDDEN bool quant_scheme_skips(tn_module *scheme, const char *path);
/* Writes the types that the scheme can quantize, separated by commas. */
TN_HIDDEN void quant_scheme_types(tn_module *scheme, char *out, size_t size);
/* Returns a number of an option, `otherwise` if there is none. */
TN_HIDDEN double quant_option_number(tn_module *module, const char *name, double otherwise);
/* Returns whether a layer, by its name, has an option. */
TN_HIDDEN bool quant_has_option(const char *layer, const char *option);

#endif
