/* SPDX-License-Identifier: MIT
 *
 * Cases of layers for tenon check (a spec, inputs and expected results), and what the checks of
 * layers share. */
#ifndef TN_CONFORM_LAYERS_H
#define TN_CONFORM_LAYERS_H

#include "conform.h"

enum { CONFORM_LAYER_INPUTS = 8, CONFORM_LAYER_RESULTS = 16 };

/* A parameter or buffer whose values the case gives. */
typedef struct conform_layer_state {
    char name[128];
    conform_tensor tensor;
} conform_layer_state;

typedef struct conform_layer_case {
    char spec[512];
    bool eval;    /* the layer is checked only in eval mode */
    bool random;  /* the layer draws random numbers in eval mode, too */
    bool records; /* calls change buffers in eval mode, too: what is recorded is the purpose */
    conform_tensor in[CONFORM_LAYER_INPUTS]; /* `grad` is set: the gradient is checked */
    int64_t n_in;
    /* The expected results of a module with the values `state`, in training mode unless `eval` or
     * `given_eval` is set. */
    conform_tensor out[CONFORM_LAYER_RESULTS];
    int64_t n_out;
    conform_layer_state *state;
    int64_t n_state;
    bool given_eval;
} conform_layer_case;

/* Reads the cases of a layer type from a file, or from the files *.txt of a folder, and passes them
 * to `take` one by one; `take` returns false to stop. Returns the number of cases passed; -1, with
 * the reason in `words`, if a file cannot be read or is malformed. */
int64_t conform_layer_cases(const char *path, const char *type,
                            bool (*take)(void *user, conform_layer_case *one), void *user,
                            char *words, size_t size);

/* ---- what the checks share (layers_calls.c) ---- */

/* A case on a device, in a dtype. */
typedef struct conform_subject {
    conform *c;
    const conform_layer_case *one;
    const tn_device *device;
    tn_dtype dtype; /* of floating-point inputs, parameters and buffers */
} conform_subject;

/* The tensors and numbers that a call returned, including those inside lists. */
typedef struct conform_results {
    tn_tensor *at[CONFORM_LAYER_RESULTS];
    double number[CONFORM_LAYER_RESULTS];
    int64_t count, n_numbers;
} conform_results;

/* Reports a failure of the test; the message begins with spec and device. Returns false. */
bool conform_layer_say(const conform_subject *s, const char *format, ...)
    TN_ATTR(format(printf, 2, 3));
/* Builds the module of the case on the device, in the mode of the case. Returns NULL after
 * reporting a failure. */
tn_module *conform_layer_build(const conform_subject *s);
/* Creates the inputs of the case; floats get `dtype`. Returns false after reporting a failure. */
bool conform_layer_inputs(const conform_subject *s, tn_dtype dtype, tn_tensor **in);
/* Calls the module; every call draws the same random numbers. conform_layer_called() reports a
 * failed call, `when` completing the message; conform_layer_call() only returns the status. */
tn_status conform_layer_call(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                             conform_results *out);
bool conform_layer_called(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                          conform_results *out, const char *when);
/* Check that two tensors, or the results of two calls, agree within `tolerance` (0: are equal),
 * which is multiplied by 1 + the largest expected number. Return false after reporting a
 * difference. */
bool conform_layer_near(const conform_subject *s, tn_tensor *got, tn_tensor *expected,
                        double tolerance, const char *what);
bool conform_layer_all_near(const conform_subject *s, const conform_results *got,
                            const conform_results *expected, double tolerance, const char *what);
/* A visitor for tn_module_each_tensor() that stores each tensor in the tn_state `user`. */
tn_status conform_layer_remember(void *user, const char *path, tn_tensor *tensor);

/* ---- layers_state.c ---- */

/* Checks that two states have the same names in the same order and, with `values`, equal values.
 * Returns false after reporting a difference. */
bool conform_layer_same_state(const conform_subject *s, const tn_state *got,
                              const tn_state *expected, bool values, const char *what);
/* Checks that the current state of a module equals `expected`, including values. */
bool conform_layer_state_is(const conform_subject *s, tn_module *module, const tn_state *expected,
                            const char *what);
/* Returns a copy of the state of a module, with new memory. Floating-point tensors are multiplied
 * by `factor`, except those in extra state. Returns NULL on failure. */
tn_state *conform_layer_state_times(tn_module *module, double factor);
/* Puts a new tensor into every parameter and buffer slot of `module`, with the values of the same
 * slot of `from`, and copies the extra state of `from`. */
bool conform_layer_replace_slots(const conform_subject *s, tn_module *module, tn_module *from);

/* ---- layers_calls.c ---- */

/* Returns the text that `print` (tn_module_spec or tn_module_repr) writes for a module; the caller
 * frees it. Returns NULL on failure. */
typedef int64_t conform_layer_printer(tn_module *module, char *out, size_t size);
char *conform_layer_printed(tn_module *module, conform_layer_printer *print);

/* ---- layers_hooks.c ---- */

/* How often hooks ran. */
typedef struct conform_hook_counts {
    int pre, after, back;
} conform_hook_counts;

/* Checks that a call of a module with counting hooks returns the results `plain`, that pre-hook and
 * forward hook run once in the call, and, if a result requires a gradient, that the backward hook
 * runs once in the backward pass. */
bool conform_layer_hooked(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                          const conform_results *plain, conform_hook_counts *counts,
                          const char *when);
/* Add hooks that only count their calls in `counts`. */
tn_hook_handle conform_layer_count_pre(tn_module *module, conform_hook_counts *counts);
tn_hook_handle conform_layer_count_after(tn_module *module, conform_hook_counts *counts);
tn_hook_handle conform_layer_count_back(tn_module *module, conform_hook_counts *counts);
bool conform_layer_hooks(const conform_subject *s, tn_module *module);
/* Creates the inputs of the case; those marked `g` get requires_grad. */
bool conform_layer_inputs_with_grad(const conform_subject *s, tn_tensor **in);

/* ---- layers_given.c ---- */

/* Checks that the module computes the results that the case gives (lines `out`). */
bool conform_layer_as_given(const conform_subject *s);

/* ---- layers_copies.c ---- */

bool conform_layer_copies(const conform_subject *s, tn_module *module);

/* ---- layers_options.c ---- */

/* Forgets the options of another layer that the process has tested. */
void conform_layer_forget_options(void);
/* conform_layer_try_options() tries other values of the options that a case sets; after all cases,
 * conform_layer_judge_options() reports the options that had no effect in any case. */
void conform_layer_try_options(const conform_subject *s);
void conform_layer_judge_options(conform *c);

/* ---- layers_life.c ---- */

bool conform_layer_lives(const conform_subject *s, tn_module *module);

/* ---- layers_gradients.c ---- */

bool conform_layer_gradients(const conform_subject *s, tn_module *module);

#endif
