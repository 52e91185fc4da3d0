/* SPDX-License-Identifier: MIT
 *
 * Helpers that several files of this plugin use; layer_list.h has the list of layers. */
#ifndef TN_LAYERS_HELPERS_H
#define TN_LAYERS_HELPERS_H

#include <tenon/plugin.h>

#include <string.h>

/* Defines the descriptor of a layer: LAYER(linear, "Linear", .help = ..., ...). */
#define LAYER(id, name_, ...)                                                                      \
    const tn_layer_def layer_##id = { TN_HEAD(tn_layer_def), .name = name_, .version = 1,          \
                                      __VA_ARGS__ }

/* Returns the number of dimensions of a layer such as "Conv2d", which is the digit in its name. */
static inline int layers_dims(const tn_module *self)
{
    const char *type = tn_module_type(self);

    return type[strlen(type) - 2] - '0';
}

/* parameters.c: sets *out to size * by for the shape of a parameter. Fails if the product
 * overflows. */
TN_HIDDEN tn_status layers_times(tn_module *self, const char *option, int64_t size, int64_t by,
                                 int64_t *out);
/* Adds a parameter that has no values yet. If `wanted` is false, adds only its name, without a
 * tensor. */
TN_HIDDEN tn_status layers_add(tn_module *self, const char *name, bool wanted, tn_ints shape);
/* Fill a parameter: with an init, with one number, or uniformly from -bound to bound. Do nothing if
 * the slot has no tensor. */
TN_HIDDEN tn_status layers_init(tn_module *self, const char *name, const char *init);
TN_HIDDEN tn_status layers_fill(tn_module *self, const char *name, double value);
TN_HIDDEN tn_status layers_spread(tn_module *self, const char *name, double bound);
/* layers_add_affine() adds weight and bias; those that are not wanted are only names without a
 * tensor. layers_reset_affine() sets weight to 1 and bias to 0. */
TN_HIDDEN tn_status layers_add_affine(tn_module *self, bool weight, bool bias, tn_ints shape);
TN_HIDDEN tn_status layers_reset_affine(tn_module *self);

/* loss.c: returns TN_OK if `word` is none, mean or sum; if not, fails. */
TN_HIDDEN tn_status layers_check_reduction(tn_module *self, const char *word);

/* loss_weight.c: a row for an option that is a tensor, a list of numbers or None, and the function
 * that `build` calls for it: adds the buffer `name`, which is reserved if the value is None. */
#define LAYERS_WEIGHT(type, member, help, flags)                                                   \
    TN_OPTION_ROW(type, member, "None", help, TN_OPTION_KIND_VALUE, TN_OPTION_OPTIONAL | (flags))
TN_HIDDEN tn_status layers_weight_add(tn_module *self, const char *name, tn_value *value);

/* init.c: sets *gain to the factor that keeps the variance after a nonlinearity. `value` is this
 * number, the name of the nonlinearity, or its name and its parameter. */
#define LAYERS_GAIN_HELP "factor, or the nonlinearity that follows: relu, tanh, ('leaky_relu', 0.2)"
TN_HIDDEN tn_status layers_gain(const tn_value *value, double *gain);

/* call_children.c: returns "True" or "False", the words of specs. */
TN_HIDDEN const char *layers_truth(bool value);
/* Add a child: from a spec with printf formatting, or from an option that has a spec or a
 * module. */
TN_HIDDEN tn_status layers_child(tn_module *self, const char *name, const char *format, ...)
    TN_ATTR(format(printf, 3, 4));
TN_HIDDEN tn_status layers_child_value(tn_module *self, const char *name, const tn_value *value);
/* Returns the module that an option has as a spec or as a module. The caller owns the reference. */
TN_HIDDEN tn_module *layers_module(const tn_value *value);
/* A repr without text, as in PyTorch. */
TN_HIDDEN int64_t layers_no_words(tn_module *self, char *out, size_t size);
/* layers_take() sorts the arguments of a call, given by position or name, into `count` values;
 * absent arguments have kind TN_VALUE_NONE. layers_tensor_of() returns a value as a tensor, which
 * must be present; layers_flag_of() returns it as a bool, false if it is absent. */
TN_HIDDEN tn_status layers_take(tn_module *self, const tn_pack *input, const char *const *names,
                                int64_t count, tn_value *values);
TN_HIDDEN tn_status layers_tensor_of(tn_module *self, const char *name, const tn_value *value,
                                     tn_tensor **out);
TN_HIDDEN tn_status layers_flag_of(tn_module *self, const char *name, const tn_value *value,
                                   bool *out);

/* Calls a child with these tensors and with those of the named values that are present. Returns its
 * first result. Returns NULL without a new error if the child or an input is NULL. */
TN_HIDDEN tn_tensor *layers_call(tn_module *part, tn_tensor *const *in, int64_t n_in,
                                 const char *const *names, const tn_value *values, int64_t count);
/* Adds y to the results of a call. If y is NULL, returns the status of the error that caused
 * this. */
TN_HIDDEN tn_status layers_give(tn_pack *output, tn_tensor *y);

/* Collects the text of a repr piece by piece. `used` is the length of the whole text, even if `out`
 * has no space for it. */
typedef struct layers_text {
    char *out;
    size_t size;
    int64_t used;
} layers_text;
TN_HIDDEN void layers_put(layers_text *text, const char *format, ...);
/* Appends 3 or (3, 4), as PyTorch prints it. If `dims` is more than 0, always prints that many
 * numbers in parentheses. */
TN_HIDDEN void layers_put_row(layers_text *text, tn_ints row, int64_t dims);
/* Appends the value of an option, for messages: a number, a text, None, or a list of them. */
TN_HIDDEN void layers_put_value(layers_text *text, const tn_value *value);

/* For tn_layer_def.fuse, in fuse.c. layers_norm_fits() returns whether all tensors of a norm have
 * the dtype and device of x and one number for each of `channels` channels, whether the norm takes
 * inputs with the number of dimensions of x, and whether its eps is more than 0. layers_skip()
 * returns the index of the first follower from `at` on that changes something. */
TN_HIDDEN bool layers_norm_fits(const tn_channel_norm *norm, const tn_tensor *x, int64_t channels);
TN_HIDDEN int64_t layers_skip(const tn_follower *followers, int64_t count, int64_t at);
/* Returns the parameter `weight` if it has the shape `shape`, in which a negative size stands for
 * any, and it and x are both float32 or both float64 (results of other types are rounded by each
 * operator). Otherwise returns NULL,
 * without an error; also if the weight is computed, because computing it may have effects. */
TN_HIDDEN tn_tensor *layers_plain_weight(tn_module *self, const tn_tensor *x, tn_ints shape);
/* Returns whether `sum` has the dtype, the device and the shape of x, with `last` as the last size
 * if it is not negative, so that adding it broadcasts and promotes nothing. */
TN_HIDDEN bool layers_has_shape(const tn_tensor *sum, const tn_tensor *x, int64_t last);

/* The status of an operator from its result, a tensor or NULL. */
static inline tn_status status_of(const tn_tensor *result)
{
    return result != NULL ? TN_OK : tn_error_last_code();
}

#endif
