/* SPDX-License-Identifier: MIT
 *
 * Helpers that several files of this plugin use; plugin.c has the list of models. Everything here
 * uses the public headers only, as a plugin of anybody else does. */
#ifndef TN_MODELS_MODELS_H
#define TN_MODELS_MODELS_H

#include <tenon/plugin.h>

#include <string.h>

/* Defines the descriptor of a model or a part of one: MODEL(unet, "unet", "UNet", .help = ...).
 * `printed_` is the name of the class in Python. Traces record what is inside. */
#define MODEL(id, name_, printed_, ...)                                                            \
    const tn_layer_def model_##id = { TN_HEAD(tn_layer_def),     .name = name_,                    \
                                      .printed = printed_,       .version = 1,                     \
                                      .flags = TN_LAYER_THROUGH, __VA_ARGS__ }

/* Rows of option tables. */
#define MODELS_NUM_CLASSES(type, def)                                                              \
    TN_OPTION_INT(type, num_classes, def, "classes: features of the result")
#define MODELS_IN_CHANNELS(type, def)                                                              \
    TN_OPTION_INT(type, in_channels, def, "channels of the images")
#define MODELS_STEM(type)                                                                          \
    TN_OPTION_STRING(type, stem, "'imagenet'",                                                     \
                     "imagenet, or small for small images: begins with fewer strides")

enum { MODELS_LARGEST = INT32_MAX }; /* of a size: products of two sizes fit in 64 bits then */

/* check.c: fail with a message that names the option, unless a size is between `least` and
 * MODELS_LARGEST, a number is a probability, or a word is one of those in `words`, which are
 * separated by spaces. */
TN_HIDDEN tn_status models_check_size(tn_module *self, const char *option, int64_t value,
                                      int64_t least);
/* As models_check_size() for a number of layers, 1 to 4096. */
TN_HIDDEN tn_status models_check_count(tn_module *self, const char *option, int64_t value);
TN_HIDDEN tn_status models_check_share(tn_module *self, const char *option, double value);
TN_HIDDEN tn_status models_check_word(tn_module *self, const char *option, const char *value,
                                      const char *words);
/* Sets *small to whether the word of the option `stem` is small. */
TN_HIDDEN tn_status models_check_stem(tn_module *self, const char *word, bool *small);
/* Checks the input of a model: [N, channels, H, W], or [N, L] of integers. */
TN_HIDDEN tn_status models_check_images(tn_module *self, tn_tensor *x, int64_t channels);
/* The same, and H and W must be `size`, the option image_size. */
TN_HIDDEN tn_status models_check_image_size(tn_module *self, tn_tensor *x, int64_t channels,
                                            int64_t size);
TN_HIDDEN tn_status models_check_tokens(tn_module *self, tn_tensor *x);

/* A repr without text: Python prints no options of these classes. */
TN_HIDDEN int64_t models_no_words(tn_module *self, char *out, size_t size);

/* init.c: fills the parameter `name` of all modules of a type below `self`, such as the weights of
 * all Conv2d, with an init. A type may be NULL for all types. Modules without that parameter are
 * skipped. */
TN_HIDDEN tn_status models_init_all(tn_module *self, const char *type, const char *name,
                                    const char *init);
/* Fills one tensor below `self`, such as "heads.head.weight". */
TN_HIDDEN tn_status models_init_one(tn_module *self, const char *path, const char *init);
/* Adds a parameter without values. */
TN_HIDDEN tn_status models_add_parameter(tn_module *self, const char *name, tn_ints shape);

/* Renames an entry of a state that is being loaded, below the module's prefix. Does nothing if the
 * state has no such entry. */
TN_HIDDEN tn_status models_rename(tn_loading *loading, const char *name, const char *to);

/* The status of an operator from its result, a tensor or NULL. */
static inline tn_status models_status(const tn_tensor *result)
{
    return result != NULL ? TN_OK : tn_error_last_code();
}

#endif
