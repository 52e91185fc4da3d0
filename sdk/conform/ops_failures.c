/* SPDX-License-Identifier: MIT
 *
 * Tests operators when something goes wrong: host memory fails in the middle of the forward or
 * backward pass, or the call is refused. The operator must return an error with a message and must
 * not leak; afterwards, a call without failures must give the same result as before. */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

/* The number of cases of each dtype in which memory fails, and about how many allocations of each
 * case fail. */
enum { CASES = 2, PLACES = 24 };

/* A forward or backward pass that is repeated while memory fails. */
typedef struct trial {
    subject *s;
    where_from w;
    attempt *a; /* the inputs; for the backward pass, outputs that have a graph */
    bool gradients;
    tn_tensor *cotangents[OPERANDS], *roots[OPERANDS];
    int64_t n_roots;
    tn_tensor *peaceful[OPERANDS]; /* the results when memory does not fail */
    int64_t n_results;
    int64_t at; /* the number of the allocation that fails */
    bool all;   /* all later allocations fail, too */
} trial;

/* Reports a failure of the test: `what`, which allocation failed, and `words`. Returns false. */
static bool complain(trial *t, const char *what, const char *words)
{
    char text[500];

    snprintf(text, sizeof text, "%s allocation %lld of the %s pass%s failed%s%.300s", what,
             (long long)t->at + 1, t->gradients ? "backward" : "forward",
             t->all ? ", and all after it," : "", words[0] != '\0' ? ": " : "", words);
    return conform_differ(t->s, &t->w, text);
}

/* Runs the pass once and stores the outputs or gradients in `results`; a missing gradient is
 * TN_NONE. */
static tn_status once(trial *t, tn_tensor **results)
{
    const conform_case *one = t->w.one;
    tn_backward_options options = { .size = sizeof options, .retain_graph = 1 };
    tn_status status;

    if (!t->gradients) {
        status = conform_operator(one, t->a->in, results);
        return status == TN_OK ? tn_device_sync(t->s->device) : status;
    }
    status = tn_backward_from(t->roots, t->cotangents, t->n_roots, &options);
    if (status == TN_OK)
        status = tn_device_sync(t->s->device);
    for (int64_t i = 0; i < one->n_in && status == TN_OK; i++)
        results[i] = one->in[i].there && one->in[i].grad ? tn_tensor_grad(t->a->in[i]) : TN_NONE;
    return status;
}

/* Drops the gradients of the inputs after a backward pass. */
static void forget(trial *t)
{
    const conform_case *one = t->w.one;

    for (int64_t i = 0; i < one->n_in && t->gradients; i++)
        if (one->in[i].there && one->in[i].grad)
            tn_tensor_set_grad(t->a->in[i], TN_NONE);
}

/* Checks results against those without failing memory: bit by bit, or within the tolerance. */
static bool as_in_peace(trial *t, tn_tensor *const *results, bool to_the_bit)
{
    const char *what = t->w.what;
    bool well = true;

    if (!to_the_bit)
        t->w.what = t->gradients ? "no error was reported when memory failed, and gradient"
                                 : "no error was reported when memory failed, and output";
    for (int64_t i = 0; i < t->n_results && well; i++) {
        tn_tensor *expected = t->peaceful[i];

        t->w.index = i;
        if ((results[i] == TN_NONE) != (expected == TN_NONE))
            well = complain(t, "a gradient is missing, or one too many, when", "");
        else if (expected != TN_NONE && to_the_bit)
            well = conform_same_bits(t->s, &t->w, expected, results[i], "after memory failed");
        else if (expected != TN_NONE)
            well = conform_compare(t->s, &t->w, results[i], expected);
    }
    t->w.index = 0;
    t->w.what = what;
    return well;
}

/* Runs the pass while allocation t->at fails, then once more without failures. Sets `broke` if an
 * allocation did fail. */
static bool fail_there(trial *t, bool *broke)
{
    tn_tensor *results[OPERANDS] = { NULL };
    uint64_t scope = tn_scope_begin();
    tn_status status;
    bool well = true;

    tn_random_seed(7);
    conform_memory_fails(t->at, t->all);
    status = once(t, results);
    *broke = conform_memory_is_back() > 0;
    t->s->c->checks++;
    if (status != TN_OK && tn_error_text()[0] == '\0')
        well = complain(t, "an error has no message when", "");
    else if (status != TN_OK && *broke && tn_error_code() != TN_ERR_MEMORY)
        well = complain(t, "the error is not TN_ERR_MEMORY when", tn_error_text());
    else if (status != TN_OK && !*broke)
        well = complain(t, "the call returned an error before", tn_error_text());
    else if (status == TN_OK && *broke)
        well = as_in_peace(t, results, false);
    tn_error_clear();
    forget(t);
    tn_scope_end(scope);
    if (!well || !*broke)
        return well;
    scope = tn_scope_begin();
    tn_random_seed(7);
    if (once(t, results) != TN_OK)
        well = complain(t, "the call no longer works after", tn_error_text());
    else
        well = as_in_peace(t, results, true);
    tn_error_clear();
    forget(t);
    tn_scope_end(scope);
    return well;
}

/* Blocks of host memory plus bytes of device memory in use: the sum only serves to detect
 * growth. */
static int64_t in_use(const subject *s)
{
    tn_memory_stats stats = { 0 };

    if (tn_device_memory(s->device, &stats) != TN_OK)
        tn_error_clear();
    return conform_memory_blocks() + stats.live;
}

/* Repeats a failing pass up to four times. Memory use may grow at first, when a cache fills; growth
 * in each repetition is a leak. */
static bool nothing_lost(trial *t)
{
    int64_t before = in_use(t->s), after = before;
    bool broke;

    for (int turn = 0; turn < 4; turn++) {
        if (!fail_there(t, &broke))
            return false;
        after = in_use(t->s);
        if (after <= before)
            return true;
        before = after;
    }
    return complain(t, "a leak: memory stays in use each time", "");
}

/* Lets memory fail at allocations spread over the whole pass: only that allocation, then all later
 * ones, too. */
static bool everywhere(trial *t)
{
    tn_tensor *results[OPERANDS] = { NULL };
    int64_t taken, step;
    bool well = true;
    uint64_t scope;

    tn_random_seed(7);
    if (once(t, t->peaceful) != TN_OK) {
        tn_error_clear();
        forget(t);
        return true; /* other checks report this failure */
    }
    for (int64_t i = 0; i < t->n_results && t->gradients && well; i++)
        if (t->peaceful[i] != TN_NONE) { /* a copy, because later passes may accumulate in it */
            t->peaceful[i] = tn_clone(tn_detach(t->peaceful[i]));
            well = t->peaceful[i] != NULL || conform_missing(t->s, t->w.one, t->w.dtype);
        }
    forget(t);
    if (!well)
        return false;
    scope = tn_scope_begin();
    tn_random_seed(7);
    conform_memory_fails(INT64_MAX, false);
    if (once(t, results) != TN_OK)
        well = conform_missing(t->s, t->w.one, t->w.dtype);
    taken = conform_memory_taken();
    forget(t);
    tn_scope_end(scope);
    step = taken / PLACES + 1;
    for (int all = 0; all < 2; all++)
        for (t->all = all, t->at = 0; t->at < taken && well; t->at += step)
            well = nothing_lost(t);
    return well;
}

bool conform_scarce_forward(subject *s, const where_from *w, attempt *a)
{
    trial t = { .s = s, .w = *w, .a = a, .n_results = conform_results(w->one) };
    bool well;

    if (s->row[w->dtype].starved == CASES)
        return true;
    s->row[w->dtype].starved++;
    t.w.what = "output";
    tn_device_begin(s->device);
    well = everywhere(&t);
    tn_device_end();
    return well;
}

bool conform_scarce_backward(subject *s, const where_from *w, attempt *a)
{
    trial t = { .s = s, .w = *w, .a = a, .gradients = true, .n_results = w->one->n_in };
    bool well = true;

    if (s->row[w->dtype].starved == CASES)
        return true;
    s->row[w->dtype].starved++;
    t.w.what = "gradient";
    tn_device_begin(s->device);
    for (int32_t i = 0; i < conform_results(w->one) && well; i++) {
        if (!tn_tensor_requires_grad(a->out[i]))
            continue;
        t.roots[t.n_roots] = a->out[i];
        t.cotangents[t.n_roots] = conform_cotangent(w->one, a->out[i], i);
        well = t.cotangents[t.n_roots++] != NULL || conform_missing(s, w->one, w->dtype);
    }
    if (well && t.n_roots > 0)
        well = everywhere(&t);
    tn_device_end();
    return well;
}

/* ---- refusals ---- */

/* Calls the case that was kept. If `first`, stores the bytes of its outputs; otherwise sets `same`
 * to whether they are unchanged. Returns false if the call fails. */
static bool plain_results(subject *s, bool first, bool *same)
{
    const conform_case *one = &s->plain;
    attempt a;

    *same = true;
    if (conform_inputs(one, s->plain_dtype, s->plain_dtype, false, s->device, CONFORM_AS_GIVEN,
                       false, &a) != TN_OK ||
        conform_call(one, s->device, 7, &a) != TN_OK)
        return false;
    for (int32_t i = 0; i < conform_results(one) && *same; i++) {
        size_t size;
        void *bits = conform_bytes(a.out[i], &size);

        if (bits == NULL)
            return false;
        if (first) {
            s->plain_bits[i] = bits;
            s->plain_size[i] = size;
            continue;
        }
        *same = size == s->plain_size[i] && memcmp(bits, s->plain_bits[i], size) == 0;
        free(bits);
    }
    return true;
}

void conform_remember(subject *s, conform_case *one, tn_dtype dtype)
{
    bool same;

    one->keep = true;
    s->plain = *one;
    s->plain_dtype = dtype;
    if (!plain_results(s, true, &same))
        conform_fail(s->c, "case %s as %s, once more: %s", one->name, tn_dtype_name(dtype),
                     tn_error_text());
}

void conform_forget(subject *s)
{
    for (int i = 0; i < OPERANDS; i++)
        free(s->plain_bits[i]);
}

/* Checks after a refused call that the device still works: with the case that was kept, if there is
 * one, and with a sum. */
static bool still_computes(subject *s, const conform_case *refused)
{
    static const float numbers[] = { 0.5F, -1, 2, 0.25F, 3, -4 };
    uint64_t scope = tn_scope_begin();
    float sums[6] = { 0 };
    tn_tensor *x, *y = NULL;
    bool well = true, same;

    if (s->plain.op != NULL && !plain_results(s, false, &same))
        well = conform_fail(s->c, "after refused case %s: case %s fails: %s", refused->name,
                            s->plain.name, tn_error_text());
    else if (s->plain.op != NULL && !same)
        well = conform_fail(s->c, "after refused case %s: case %s returns another result",
                            refused->name, s->plain.name);
    x = well ? tn_tensor_empty(TN_SHAPE(6), TN_F32, s->device) : NULL;
    if (x != NULL && tn_tensor_copy_in(x, numbers, sizeof numbers) == TN_OK) {
        y = tn_add(x, x);
        if (y == NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED)
            y = x; /* a device that does not implement sums yet */
    }
    if (well && (y == NULL || tn_tensor_copy_out(y, sums, sizeof sums) != TN_OK))
        well = conform_fail(s->c, "after refused case %s: the device cannot compute a sum: %s",
                            refused->name, tn_error_text());
    for (int i = 0; i < 6 && well && y != x; i++)
        if (sums[i] != 2 * numbers[i])
            well = conform_fail(s->c, "after refused case %s: wrong sum of %g and %g, got %g",
                                refused->name, (double)numbers[i], (double)numbers[i],
                                (double)sums[i]);
    s->c->checks++;
    tn_error_clear();
    tn_scope_end(scope);
    return well;
}

void conform_refusal(subject *s, const conform_case *one)
{
    attempt a;
    tn_status status;

    memset(&a, 0, sizeof a);
    if (conform_inputs(one, TN_DTYPE_AUTO, TN_DTYPE_AUTO, false, s->device, CONFORM_AS_GIVEN, false,
                       &a) != TN_OK) {
        tn_error_clear();
        return;
    }
    status = conform_call(one, s->device, 7, &a);
    s->refused++;
    s->c->checks++;
    if (status == TN_OK)
        conform_fail(s->c, "case %s: accepted; expected a failure", one->name);
    else if (tn_error_text()[0] == '\0')
        conform_fail(s->c, "case %s: refused without a message", one->name);
    /* A part of a refused call may have been queued; what it reports later belongs to this call. */
    (void)tn_device_sync(s->device);
    tn_error_clear();
    if (s->c->verdict != CONFORM_FAIL)
        still_computes(s, one);
}
