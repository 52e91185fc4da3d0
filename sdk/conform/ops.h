/* SPDX-License-Identifier: MIT
 *
 * What the files of the levels ops and grad share: a case that runs on a device, and how its
 * results are compared. */
#ifndef TN_CONFORM_OPS_H
#define TN_CONFORM_OPS_H

#include <time.h>

#include "conform.h"

#define DTYPES ((tn_dtype)(TN_C128 + 1))

enum { OPERANDS = 64 };

typedef struct tally {
    int64_t cases, failed, missing;
    int64_t elements; /* that were compared: a call with empty tensors runs nothing */
    bool repeated;    /* and called from several threads */
    int64_t kept;     /* cases that were called as kept calls */
    int64_t starved;  /* cases that were called while memory failed */
    double worst;
    char route[96];
} tally;

/* What the cases of an operator of the plugin did, to compare with its flags (ops_flags.c). */
struct conform_seen {
    int64_t cases;
    bool reads, draws, updates;
};

typedef struct subject {
    conform *c;
    const tn_device *device;
    uint64_t dtypes; /* that the device computes with */
    bool gradients;
    tally row[DTYPES];
    int64_t refused, called;
    int seconds; /* cases whose second derivatives were checked */
    clock_t spent;
    conform_case plain; /* one that passed, for use after a refusal; op is NULL: none yet */
    tn_dtype plain_dtype;
    struct conform_seen flags;
    void *plain_bits[OPERANDS]; /* what it gave */
    size_t plain_size[OPERANDS];
} subject;

typedef struct attempt {
    tn_tensor *in[OPERANDS], *whole[OPERANDS], *out[OPERANDS];
    tn_status status;
} attempt;

typedef struct where_from {
    const conform_case *one;
    tn_dtype dtype;
    const char *layout, *what;
    int64_t index;
} where_from;

/* Words for each conform_layout. */
extern const char *const conform_layout_names[];

/* Inputs in `dtype` where the case has `from`; on the reference in float64 where `wide` says so. */
tn_status conform_inputs(const conform_case *one, tn_dtype from, tn_dtype dtype, bool wide,
                         const tn_device *device, conform_layout layout, bool grad, attempt *a);
/* How many tensors a call returns: of an operator that has no outputs, those that it writes into.
 */
int32_t conform_results(const conform_case *one);
/* The operator alone; what is written into are copies, so that the inputs can be reused. */
tn_status conform_operator(const conform_case *one, tn_tensor *const *in, tn_tensor **out);
/* With the device chosen, random numbers from `seed`, until it is done. */
tn_status conform_call(const conform_case *one, const tn_device *device, uint64_t seed, attempt *a);
bool conform_differ(subject *s, const where_from *w, const char *words);
/* Compares shapes, then elements, with the reference. */
bool conform_compare(subject *s, const where_from *w, tn_tensor *got, tn_tensor *expected);
/* Whether the inputs and the bytes around them are unchanged, but for those that are updated. */
bool conform_untouched(subject *s, const where_from *w, const attempt *a, void *const *before,
                       const size_t *sizes);
/* Twice the same call: twice the same bits. */
bool conform_same_bits(subject *s, const where_from *w, tn_tensor *first, tn_tensor *second,
                       const char *how);
bool conform_in_threads(subject *s, const where_from *w, tn_dtype from);
/* Kept calls, and recorded ones where the device records, give what a plain call gave (ops_kept.c);
 * the values of the inputs change. */
bool conform_kept(subject *s, where_from *w, const attempt *a);
/* An unsupported call is not a failure if the device reports it. */
bool conform_missing(subject *s, const conform_case *one, tn_dtype dtype);
bool conform_jumps(const conform_case *one);
/* Of an operator of the plugin: the reference runs its decomposition, so its results are compared
 * with those that the case gives, and its table of options with its defaults (ops_own.c). */
bool conform_own_results(subject *s, const conform_case *one, tn_tensor *const *out);
bool conform_own_defaults(conform *c, const tn_op_def *def);
bool conform_is_own(const conform *c, const char *op);
/* Whether a case draws from the generator, on the reference. */
bool conform_draws(const conform_case *one, tn_dtype dtype);
/* The flags of an operator of the plugin: by a case, by an input that may be updated, and after all
 * cases (ops_flags.c). */
bool conform_flags_case(subject *s, const conform_case *one, tn_dtype dtype);
bool conform_updated(subject *s, const where_from *w, const attempt *a, int64_t i, bool changed);
void conform_flags_end(subject *s, const tn_op_def *def);
/* Cases that no file has, for some operators (ops_long.c); as conform_cases. */
int64_t conform_long_cases(const char *op, bool (*take)(void *user, conform_case *one), void *user,
                           char *words, size_t size);
/* A cotangent for output `index`. */
tn_tensor *conform_cotangent(const conform_case *one, tn_tensor *out, int32_t index);
bool conform_case_gradient(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype);
/* A derivative is right when it is the slope: at the case's own values or, where the function has a
 * corner there, next to them. */
bool conform_case_slopes(subject *s, conform_case *one);
/* Each allocation of a pass fails in turn: an error, no leak, and the repeated call gives the same.
 * `a` is a call that passed; for the backward pass with a graph behind its outputs, which stays. */
bool conform_scarce_forward(subject *s, const where_from *w, attempt *a);
bool conform_scarce_backward(subject *s, const where_from *w, attempt *a);
/* Keeps a case that passed, and its result: after a refusal it must give the same. */
void conform_remember(subject *s, conform_case *one, tn_dtype dtype);
void conform_forget(subject *s);
/* A case that must be refused: an error with a message, and the device still works. */
void conform_refusal(subject *s, const conform_case *one);

#endif
