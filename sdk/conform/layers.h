/* SPDX-License-Identifier: MIT
 *
 * Cases of layers for tenon check: how one is built, and its inputs. */
#ifndef TENON_CONFORM_LAYERS_H
#define TENON_CONFORM_LAYERS_H

#include "conform.h"

enum { CONFORM_LAYER_INPUTS = 8, CONFORM_LAYER_RESULTS = 16 };

/* A parameter or buffer that the author gives. */
typedef struct conform_layer_state {
    char name[128];
    conform_tensor tensor;
} conform_layer_state;

typedef struct conform_layer_case {
    char spec[512];
    bool eval;                               /* it is checked in eval mode alone */
    bool random;                             /* it draws random numbers in eval mode */
    conform_tensor in[CONFORM_LAYER_INPUTS]; /* `grad`: a gradient is checked */
    int64_t n_in;
    /* What the author expects of the module with that state, in training unless given_eval. */
    conform_tensor out[CONFORM_LAYER_RESULTS];
    int64_t n_out;
    conform_layer_state *state;
    int64_t n_state;
    bool given_eval;
} conform_layer_case;

/* Passes on the cases of a layer type from a file, or from the files *.txt of a folder; `take`
 * returns false to stop. Returns their number; -1 and a message for a malformed file. */
int64_t conform_layer_cases(const char *path, const char *type,
                            bool (*take)(void *user, conform_layer_case *one), void *user,
                            char *words, size_t size);

/* ---- what the checks share (layers_calls.c) ---- */

/* A case on a device, in a dtype. */
typedef struct conform_subject {
    conform *c;
    const conform_layer_case *one;
    const tn_device *device;
    tn_dtype dtype; /* of its floating numbers */
} conform_subject;

/* The results of a call: tensors and numbers, those in lists too. */
typedef struct conform_results {
    tn_tensor *at[CONFORM_LAYER_RESULTS];
    double number[CONFORM_LAYER_RESULTS];
    int64_t count, n_numbers;
} conform_results;

/* A failure of the test, with the spec and the device in front; false. */
bool conform_layer_say(const conform_subject *s, const char *format, ...)
    TN_ATTR(format(printf, 2, 3));
/* The module of the case on the device, in the mode of the case; NULL after a message. */
tn_module *conform_layer_build(const conform_subject *s);
bool conform_layer_inputs(const conform_subject *s, tn_dtype dtype, tn_tensor **in);
/* Calls it; every call draws the same random numbers. The second form reports failures. */
tn_status conform_layer_call(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                             conform_results *out);
bool conform_layer_called(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                          conform_results *out, const char *when);
/* Whether tensors, results or states agree within `tolerance` (0: equal); a message if not. */
bool conform_layer_near(const conform_subject *s, tn_tensor *got, tn_tensor *expected,
                        double tolerance, const char *what);
bool conform_layer_all_near(const conform_subject *s, const conform_results *got,
                            const conform_results *expected, double tolerance, const char *what);
/* A visitor of tensors that puts them into the state `user`. */
tn_status conform_layer_remember(void *user, const char *path, tn_tensor *tensor);

/* ---- layers_state.c ---- */

/* Whether two states have the same names in the same order and, with `values`, equal tensors and
 * equal other values; a message if not. */
bool conform_layer_same_state(const conform_subject *s, const tn_state *got,
                              const tn_state *expected, bool values, const char *what);
/* The same for the state that the module has now. */
bool conform_layer_state_is(const conform_subject *s, tn_module *module, const tn_state *expected,
                            const char *what);
/* The state with memory of its own, every floating number in it times `factor`; extra state as it
 * is. */
tn_state *conform_layer_state_times(tn_module *module, double factor);
/* Replaces the tensor in every slot of `module` by another object with the values that `from` has
 * there; the extra state becomes that of `from`. */
bool conform_layer_replace_slots(const conform_subject *s, tn_module *module, tn_module *from);

/* ---- layers_calls.c ---- */

/* The spec or the repr of a module, by the function that prints it; the caller frees it. NULL on
 * failure. */
typedef int64_t conform_layer_printer(tn_module *module, char *out, size_t size);
char *conform_layer_printed(tn_module *module, conform_layer_printer *print);

/* ---- layers_hooks.c ---- */

/* How often hooks ran. */
typedef struct conform_hook_counts {
    int pre, after, back;
} conform_hook_counts;

/* A call and its backward, whose results are `plain` and in which each counting hook runs once. */
bool conform_layer_hooked(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                          const conform_results *plain, conform_hook_counts *counts,
                          const char *when);
/* Hooks that count and change nothing. */
tn_hook_handle conform_layer_count_pre(tn_module *module, conform_hook_counts *counts);
tn_hook_handle conform_layer_count_after(tn_module *module, conform_hook_counts *counts);
tn_hook_handle conform_layer_count_back(tn_module *module, conform_hook_counts *counts);
bool conform_layer_hooks(const conform_subject *s, tn_module *module);
/* The inputs whose gradient the case asks for, with requires_grad. */
bool conform_layer_inputs_with_grad(const conform_subject *s, tn_tensor **in);

/* ---- layers_given.c ---- */

/* Whether it computes the results that the case gives. */
bool conform_layer_as_given(const conform_subject *s);

/* ---- layers_copies.c ---- */

bool conform_layer_copies(const conform_subject *s, tn_module *module);

/* ---- layers_options.c ---- */

/* Tries other values of the options in a case; says after all cases which have no effect. */
void conform_layer_try_options(const conform_subject *s);
void conform_layer_judge_options(conform *c);

/* ---- layers_life.c ---- */

bool conform_layer_lives(const conform_subject *s, tn_module *module);

/* ---- layers_gradients.c ---- */

bool conform_layer_gradients(const conform_subject *s, tn_module *module);

#endif
