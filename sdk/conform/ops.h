/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by the files of the levels ops and grad: running a case on a device, and
 * comparing its results. */
#ifndef TN_CONFORM_OPS_H
#define TN_CONFORM_OPS_H

#include <time.h>

#include "conform.h"

#define DTYPES ((tn_dtype)(TN_C128 + 1))

enum { OPERANDS = 64 };

/* What was counted for an operator in one dtype. */
typedef struct tally {
    int64_t cases, failed, missing;
    int64_t elements; /* compared elements; 0 if all tensors were empty, so that no kernel ran */
    bool repeated;    /* a case was called again, and from several threads */
    bool lengthened;  /* a case was called with its numbers repeated (conform_repeated()) */
    int64_t watched;  /* cases that were called by conform_after() */
    int64_t kept;     /* cases that were called as prepared calls */
    int64_t starved;  /* cases that were called while host memory failed */
    double worst;     /* the largest error, divided by the tolerance */
    char route[96];
} tally;

/* What the calls of an operator of the plugin did, to be compared with the flags of the operator
 * (ops_flags.c). */
struct conform_seen {
    int64_t cases;
    bool counted; /* a call succeeded on the device that counts reads */
    bool reads, draws, updates;
};

/* The operator under test. */
typedef struct subject {
    conform *c;
    const tn_device *device;
    uint64_t dtypes;  /* TN_BIT mask of the dtypes with which the device computes */
    bool gradients;   /* true: level grad; false: level ops */
    int64_t unjudged; /* number of cases that the reference device cannot run */
    tally row[DTYPES];
    int64_t refused, called;
    int seconds;        /* the number of cases whose second derivatives were checked */
    clock_t spent;      /* processor time of these checks */
    conform_case plain; /* a case that passed, called again after a refusal; op == NULL: none */
    tn_dtype plain_dtype;
    struct conform_seen flags;
    void *plain_bits[OPERANDS]; /* the bytes of the outputs of `plain` */
    size_t plain_size[OPERANDS];
} subject;

/* One call: inputs, outputs and the status. whole[i] is a tensor over all memory of input i, gaps
 * included. */
typedef struct attempt {
    tn_tensor *in[OPERANDS], *whole[OPERANDS], *out[OPERANDS];
    tn_status status;
} attempt;

/* Says in messages what was compared. */
typedef struct where_from {
    const conform_case *one;
    tn_dtype dtype;
    const char *layout, *what;
    int64_t index;
} where_from;

/* The words for each conform_layout in messages. */
extern const char *const conform_layout_names[];

/* Creates the inputs of a case on a device, and stores them in a->in and their memory in a->whole.
 * Inputs of dtype `from` are rounded to `dtype`; other inputs keep their dtype. With `wide`, floats
 * are then converted to float64 and complex64 to complex128. With `grad`, requires_grad is set for
 * the inputs whose gradient the case checks. */
tn_status conform_inputs(const conform_case *one, tn_dtype from, tn_dtype dtype, bool wide,
                         const tn_device *device, conform_layout layout, bool grad, attempt *a);
/* Returns the number of results of a call. The results of an operator without outputs are the
 * inputs that it writes to. */
int32_t conform_results(const conform_case *one);
/* Calls the operator. An operator without outputs writes to copies of its inputs, which become the
 * results, so that `in` can be used again. */
tn_status conform_operator(const conform_case *one, tn_tensor *const *in, tn_tensor **out);
/* Calls the operator with `device` as current device and random numbers from `seed`, and waits
 * until the device has finished. */
tn_status conform_call(const conform_case *one, const tn_device *device, uint64_t seed, attempt *a);
/* Reports a failure at `w`; returns false. */
bool conform_differ(subject *s, const where_from *w, const char *words);
/* Compares shape and elements of a result with those of the reference; returns false after a
 * difference. */
bool conform_compare(subject *s, const where_from *w, tn_tensor *got, tn_tensor *expected);
/* Checks that the inputs and the bytes around them are unchanged since `before`, except inputs that
 * the operator declares as updated (TN_OPERAND_UPDATED). */
bool conform_untouched(subject *s, const where_from *w, const attempt *a, void *const *before,
                       const size_t *sizes);
/* Checks that two calls with the same inputs returned the same bits. `how` describes the second
 * call in the message. */
bool conform_same_bits(subject *s, const where_from *w, tn_tensor *first, tn_tensor *second,
                       const char *how);
/* Checks that threads that call the operator at the same time get the same bits as alone. */
bool conform_in_threads(subject *s, const where_from *w, tn_dtype from);
/* Checks that prepared calls (tn_op_prepare) and, if the device can record, recorded calls give the
 * results of the plain call `a` (ops_kept.c). Changes the values of the inputs. */
bool conform_kept(subject *s, where_from *w, const attempt *a);
/* Checks that the kernel keeps no pointer into a call (ops_after.c): after the call, that memory
 * cannot be read, and later it holds another call. For level grad, which runs without TENON_CHECK:
 * with it, the core calls the kernels of plugins in another way. */
bool conform_after(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype);
/* Handles a call that failed: TN_ERR_NOT_IMPLEMENTED is counted as `missing`, any other error is
 * reported as a failure of the test. Returns false. */
bool conform_missing(subject *s, const conform_case *one, tn_dtype dtype);
/* Returns true if results are discontinuous or random, so that the reference must compute in the
 * dtype under test instead of float64. */
bool conform_jumps(const conform_case *one);
/* Checks of operators that the plugin defines (ops_own.c). The reference runs the plugin's own
 * decomposition, therefore the results `out` are compared with those written in the case. */
bool conform_own_results(subject *s, const conform_case *one, tn_tensor *const *out);
/* Checks that the defaults in the table of options are those of def->defaults. */
bool conform_own_defaults(conform *c, const tn_op_def *def);
/* Returns true if the plugin under test defines the operator. */
bool conform_is_own(const conform *c, const char *op);
/* Returns true if a call of the case on the reference draws from the random generator. */
bool conform_draws(const conform_case *one, tn_dtype dtype);
/* Check the flags of an operator of the plugin (ops_flags.c, ops_autocast.c). conform_flags_case()
 * and conform_autocast_case() check them with one case. conform_updated() is called after a call
 * with input `i`, which the operator declares as updated; `changed` says whether the call has
 * changed it. conform_flags_end() is called after all cases. */
bool conform_flags_case(subject *s, const conform_case *one, tn_dtype dtype);
bool conform_autocast_case(subject *s, const conform_case *one, tn_dtype from);
bool conform_updated(subject *s, const where_from *w, const attempt *a, int64_t i, bool changed);
void conform_flags_end(subject *s, const tn_op_def *def);
/* Passes on cases of some operators that are too long for a file (ops_long.c). Returns the number
 * of cases, 0 on failure. */
int64_t conform_long_cases(const char *op, bool (*take)(void *user, conform_case *one), void *user,
                           char *words, size_t size);
/* Calls a pointwise operator once in each dtype with the numbers of a case repeated to 5003
 * elements, and compares the results with the reference. */
bool conform_repeated(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype);
/* Creates the cotangent for output `index`. For output 0 it has the numbers of the case, if there
 * is one for each element; otherwise it has fixed numbers. Returns NULL on failure. */
tn_tensor *conform_cotangent(const conform_case *one, tn_tensor *out, int32_t index);
/* Compares the gradients of a case with those of the reference. */
bool conform_case_gradient(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype);
/* Compares the derivative with finite differences: at the values of the case and, if they disagree
 * there, at up to two points nearby, because the function may have a corner. `one` keeps the values
 * of the last point. */
bool conform_case_slopes(subject *s, conform_case *one);
/* Repeat a forward or backward pass while one allocation fails, or while it and all later ones
 * fail, for allocations spread over the pass. The pass must return an error or the correct result,
 * must not leak, and must give the same results when it is repeated. `a` is a call that passed; for
 * the backward pass, the graph of its outputs must exist, and is kept. */
bool conform_scarce_forward(subject *s, const where_from *w, attempt *a);
bool conform_scarce_backward(subject *s, const where_from *w, attempt *a);
/* Keeps a case that passed, and its results: after a refused call, the case must give the same
 * results again. conform_forget() frees the results. */
void conform_remember(subject *s, conform_case *one, tn_dtype dtype);
void conform_forget(subject *s);
/* Checks a case marked `refused`: the call must fail with a message, and the device must work
 * afterwards. */
void conform_refusal(subject *s, const conform_case *one);

#endif
