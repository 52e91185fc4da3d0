/* SPDX-License-Identifier: MIT
 *
 * What the files of this plugin share; plugin.c has the list of layers. */
#ifndef TENON_PLUGIN_LAYERS_H
#define TENON_PLUGIN_LAYERS_H

#include <tenon/plugin.h>

#include <string.h>

/* The descriptor of a layer: LAYER(linear, "Linear", .help = ..., ...). */
#define LAYER(id, name_, ...)                                                                      \
    const tn_layer_def layer_##id = { TN_HEAD(tn_layer_def), .name = name_, .version = 1,          \
                                      __VA_ARGS__ }

/* How many dimensions a layer such as "Conv2d" works on: the digit in its name. */
static inline int layers_dims(const tn_module *self)
{
    const char *type = tn_module_type(self);

    return type[strlen(type) - 2] - '0';
}

/* parameters.c: size * by, for the shape of one; an error if that exceeds the range of sizes. */
TN_HIDDEN tn_status layers_times(tn_module *self, const char *option, int64_t size, int64_t by,
                                 int64_t *out);
/* A parameter without values yet, or, where it is not wanted, its name alone. */
TN_HIDDEN tn_status layers_add(tn_module *self, const char *name, bool wanted, tn_ints shape);
/* The values of a parameter from an init, a number everywhere; nothing where the slot is empty. */
TN_HIDDEN tn_status layers_init(tn_module *self, const char *name, const char *init);
TN_HIDDEN tn_status layers_fill(tn_module *self, const char *name, double value);
TN_HIDDEN tn_status layers_spread(tn_module *self, const char *name, double bound);

/* loss.c: TN_OK where `word` is none, mean or sum. */
TN_HIDDEN tn_status layers_check_reduction(tn_module *self, const char *word);

/* init.c: the factor that keeps the variance after a nonlinearity: a number, its name, or the name
 * and its parameter. */
#define LAYERS_GAIN_HELP "factor, or the nonlinearity that follows: relu, tanh, ('leaky_relu', 0.2)"
TN_HIDDEN tn_status layers_gain(const tn_value *value, double *gain);

/* arguments.c: True or False, as specs have them. */
TN_HIDDEN const char *layers_truth(bool value);
/* A child from a spec that is formatted first / from a spec or module that an option holds. */
TN_HIDDEN tn_status layers_child(tn_module *self, const char *name, const char *format, ...)
    TN_ATTR(format(printf, 3, 4));
TN_HIDDEN tn_status layers_child_value(tn_module *self, const char *name, const tn_value *value);
/* The module that an option holds; the caller's. */
TN_HIDDEN tn_module *layers_module(const tn_value *value);
/* An empty repr, as PyTorch has it. */
TN_HIDDEN int64_t layers_no_words(tn_module *self, char *out, size_t size);
/* The values of a call by place or name, `count` of them; kind TN_VALUE_NONE where one was not
 * given. Then one of them as a tensor, which must be present, or as a bool, false if absent. */
TN_HIDDEN tn_status layers_take(tn_module *self, const tn_pack *input, const char *const *names,
                                int64_t count, tn_value *values);
TN_HIDDEN tn_status layers_tensor_of(tn_module *self, const char *name, const tn_value *value,
                                     tn_tensor **out);
TN_HIDDEN tn_status layers_flag_of(tn_module *self, const char *name, const tn_value *value,
                                   bool *out);

/* Calls a child with these tensors and those of the named values that were given; its first result.
 * NULL inputs give NULL without a new error. */
TN_HIDDEN tn_tensor *layers_call(tn_module *part, tn_tensor *const *in, int64_t n_in,
                                 const char *const *names, const tn_value *values, int64_t count);
/* One more result of a call; NULL is the error that made it so. */
TN_HIDDEN tn_status layers_give(tn_pack *output, tn_tensor *y);

/* What a repr writes: pieces one after the other; `used` counts what the whole needs. */
typedef struct layers_text {
    char *out;
    size_t size;
    int64_t used;
} layers_text;
TN_HIDDEN void layers_put(layers_text *text, const char *format, ...);
/* 3 or (3, 4), as PyTorch prints what it was given; `dims` more than 0: always that many, in
 * parentheses. */
TN_HIDDEN void layers_put_row(layers_text *text, tn_ints row, int64_t dims);

/* The status of an operator that returned a tensor or NULL. */
static inline tn_status status_of(const tn_tensor *result)
{
    return result != NULL ? TN_OK : tn_error_last_code();
}

#endif
