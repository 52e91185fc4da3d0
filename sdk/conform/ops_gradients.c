/* SPDX-License-Identifier: MIT
 *
 * The level grad of tenon check: compares gradients with those of the reference. First and second
 * derivatives of operators that the plugin defines are also compared with finite differences. */
#include "ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

/* For each operator, the second derivatives of at most SECOND_CASES cases are checked, and only
 * while these checks, with an estimate of the next one, take less than WORTH seconds of processor
 * time. */
enum { SECOND_CASES = 12, WORTH = 4 };

/* ---- gradients ---- */

tn_tensor *conform_cotangent(const conform_case *one, tn_tensor *out, int32_t index)
{
    int64_t count = tn_tensor_numel(out), parts = is_complex(tn_tensor_dtype(out)) ? 2 : 1;
    conform_tensor t = { .there = true, .ndim = tn_tensor_ndim(out), .count = count };
    double *values = malloc((size_t)(count * parts + 1) * sizeof *values);
    bool given = index == 0 && one->has_cotangent && one->cotangent.count == count * parts;
    int64_t step = 1;
    tn_tensor *to;

    if (values == NULL)
        return NULL;
    t.dtype = parts == 2 ? TN_C128 : TN_F64;
    for (int32_t d = t.ndim - 1; d >= 0; d--) {
        t.shape[d] = tn_tensor_size(out, d);
        t.strides[d] = step;
        step *= t.shape[d] > 0 ? t.shape[d] : 1;
    }
    for (int64_t i = 0; i < count * parts; i++)
        values[i] = given ? one->cotangent.values[i]
                          : 0.25 * (double)((i * 7 + index * 3) % 11) - 1;
    t.values = values;
    to = conform_tensor_make(&t, tn_tensor_dtype(out), tn_tensor_device(out), CONFORM_AS_GIVEN,
                             NULL);
    free(values);
    return to;
}

/* Backward starts at one output, or (ALL) at all differentiable outputs. */
enum { ALL = -1 };

/* Runs backward after dropping earlier gradients, so that gradients do not accumulate. Keeps the
 * graph. */
static tn_status backward(const conform_case *one, attempt *a, int32_t which)
{
    tn_backward_options options = { .size = sizeof options, .retain_graph = 1 };
    tn_tensor *roots[OPERANDS], *cotangents[OPERANDS];
    int64_t count = 0;

    for (int64_t i = 0; i < one->n_in; i++)
        if (one->in[i].there && one->in[i].grad && tn_tensor_set_grad(a->in[i], TN_NONE) != TN_OK)
            return tn_error_last_code();
    for (int32_t i = 0; i < conform_results(one); i++) {
        if ((which != ALL && which != i) || !tn_tensor_requires_grad(a->out[i]))
            continue;
        roots[count] = a->out[i];
        cotangents[count] = conform_cotangent(one, a->out[i], i);
        if (cotangents[count++] == NULL)
            return tn_error_last_code();
    }
    return count == 0 ? TN_OK : tn_backward_from(roots, cotangents, count, &options);
}

static bool same_gradients(subject *s, where_from *w, const attempt *ref, const attempt *a)
{
    const conform_case *one = w->one;
    bool well = true;

    for (int64_t i = 0; i < one->n_in && well; i++) {
        tn_tensor *got, *expected;

        if (!one->in[i].there || !one->in[i].grad)
            continue;
        got = tn_tensor_grad(a->in[i]);
        expected = tn_tensor_grad(ref->in[i]);
        w->index = i;
        if ((got == TN_NONE) != (expected == TN_NONE))
            well = conform_differ(s, w,
                                  got == TN_NONE ? "no gradient; the reference has one"
                                                 : "a gradient; the reference has none");
        else if (got != TN_NONE)
            well = conform_compare(s, w, got, expected);
    }
    return well;
}

bool conform_case_gradient(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype)
{
    attempt ref, a;
    where_from w = { one, dtype, conform_layout_names[0], "gradient", 0 };
    bool any = false, well = true;
    int32_t outputs = 0;
    char what[64];

    for (int64_t i = 0; i < one->n_in; i++)
        any = any || (one->in[i].there && one->in[i].grad);
    if (!any)
        return true;
    if (conform_inputs(one, from, dtype, !conform_jumps(one), tn_device_find("reference"),
                       CONFORM_AS_GIVEN, true, &ref) != TN_OK ||
        conform_call(one, tn_device_find("reference"), 7, &ref) != TN_OK ||
        backward(one, &ref, ALL) != TN_OK) {
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED) { /* the operator has no derivative */
            tn_error_clear();
            return true;
        }
        return conform_fail(s->c, "case %s as %s: reference: %s", one->name, tn_dtype_name(dtype),
                            tn_error_text());
    }
    if (conform_inputs(one, from, dtype, false, s->device, CONFORM_AS_GIVEN, true, &a) != TN_OK ||
        conform_call(one, s->device, 7, &a) != TN_OK || backward(one, &a, ALL) != TN_OK ||
        tn_device_sync(s->device) != TN_OK)
        return conform_missing(s, one, dtype);
    s->called++;
    well = same_gradients(s, &w, &ref, &a);
    for (int32_t i = 0; i < conform_results(one); i++)
        outputs += tn_tensor_requires_grad(ref.out[i]);
    /* with several outputs, also the gradients through each output alone */
    for (int32_t i = 0; i < conform_results(one) && outputs > 1 && well; i++) {
        snprintf(what, sizeof what, "gradient through output %d alone, of input", i);
        w.what = what;
        if (backward(one, &ref, i) != TN_OK)
            well = conform_fail(s->c, "case %s as %s: reference: output %d alone: %s", one->name,
                                tn_dtype_name(dtype), i, tn_error_text());
        else if (backward(one, &a, i) != TN_OK || tn_device_sync(s->device) != TN_OK)
            well = conform_differ(s, &w, tn_error_text());
        else
            well = same_gradients(s, &w, &ref, &a);
    }
    if (well && from == dtype) {
        for (int64_t i = 0; i < one->n_in; i++)
            if (one->in[i].there && one->in[i].grad)
                tn_tensor_set_grad(a.in[i], TN_NONE);
        well = conform_scarce_backward(s, &w, &a);
    }
    return well;
}

/* ---- finite differences ---- */

/* The function whose derivatives are compared with finite differences. */
typedef struct closure {
    const conform_case *one;
    tn_tensor *const *in;     /* all inputs; those with a gradient are replaced in each call */
    int32_t chosen[OPERANDS]; /* the outputs that the function returns */
    int64_t n_chosen;
} closure;

static tn_status again_with(void *user, tn_tensor *const *in, tn_tensor **out)
{
    closure *code = user;
    tn_tensor *all[OPERANDS], *results[OPERANDS];
    tn_status status;
    int64_t next = 0;

    for (int64_t i = 0; i < code->one->n_in; i++)
        all[i] = code->one->in[i].there && code->one->in[i].grad ? in[next++] : code->in[i];
    tn_random_seed(7);
    status = tn_op_call(code->one->op, all, code->one->n_in, code->one->options, results,
                        code->one->def->n_outputs);
    for (int64_t i = 0; i < code->n_chosen && status == TN_OK; i++)
        out[i] = results[code->chosen[i]];
    return status;
}

/* Operators whose derivative intentionally differs from finite differences. */
static const struct exception {
    const char *op, *reason;
} exceptions[] = {
    { "ctc_loss", "log_probs get the gradient of the scores before a log_softmax" },
    { "embedding", "the row padding_idx gets no gradient" },
    { "embedding_bag", "the row padding_idx gets no gradient" },
    { "gaussian_nll_loss", "variances below eps get a gradient as if they were not raised to it" },
    { "linalg_cholesky", "reads one triangle; the gradient is that of a symmetric matrix" },
    { "linalg_eigh", "reads one triangle; the gradient is that of a symmetric matrix" },
    { NULL, NULL },
};

/* Returns the number of inputs with a gradient. Returns 0 if finite differences do not suit the
 * case: its operator is one of the exceptions, an input is complex or has infinite or large values,
 * one with a gradient has more than 64 elements, or the results are random. */
static int64_t differentiable(const conform_case *one)
{
    int64_t n = 0;

    if (one->draws)
        return 0;
    for (const struct exception *e = exceptions; e->op != NULL; e++)
        if (strcmp(e->op, one->def->name) == 0)
            return 0;
    for (int64_t i = 0; i < one->n_in; i++) {
        const conform_tensor *t = &one->in[i];

        if (!t->there)
            continue;
        if (is_complex(t->dtype) || (t->grad && t->count > 64))
            return 0;
        for (int64_t k = 0; k < t->count; k++)
            if (!isfinite(t->values[k]) || fabs(t->values[k]) > 1e3)
                return 0;
        n += t->grad;
    }
    return n;
}

/* Creates the inputs of a case with all floats as float64. */
static tn_status make_doubles(const conform_case *one, const tn_device *device, attempt *a)
{
    for (int64_t i = 0; i < one->n_in; i++) {
        const conform_tensor *t = &one->in[i];

        a->in[i] = TN_NONE;
        if (!t->there)
            continue;
        a->in[i] = conform_tensor_make(t, is_float(t->dtype) ? TN_F64 : t->dtype, device,
                                       CONFORM_PLAIN, NULL);
        if (a->in[i] == NULL || (t->grad && tn_tensor_set_requires_grad(a->in[i], true) != TN_OK))
            return tn_error_last_code();
    }
    return TN_OK;
}

/* Second derivatives need a backward pass for each element, therefore only small cases are
 * checked. */
static bool second_too(const conform_case *one)
{
    int64_t count = 0;

    for (int64_t i = 0; i < one->n_in; i++)
        count += one->in[i].there && one->in[i].grad ? one->in[i].count : 0;
    return count <= 24;
}

/* Returns true if tn_gradcheck failed because the finite difference is not a finite number. A
 * derivative that is NaN where the finite difference is finite is an error. */
static bool no_slope(const char *words)
{
    const char *found = strstr(words, "wrong derivative, got ");
    const char *number = found != NULL ? strstr(found, "; expected ") : NULL;

    return number != NULL && !isfinite(strtod(number + 11, NULL));
}

/* Compares with finite differences: all differentiable outputs together, then each alone, then
 * second derivatives. Writes to `words` which comparison was the last. */
static tn_status compare_slopes(subject *s, closure *code, tn_tensor *const *in, int64_t n_in,
                                char *words, size_t size)
{
    closure alone = *code;
    clock_t began = clock(), first;
    tn_status status = tn_gradcheck(again_with, code, in, n_in, code->n_chosen, 1e-6, 1e-4);

    first = clock() - began;
    words[0] = '\0';
    for (int64_t i = 0; i < code->n_chosen && code->n_chosen > 1 && status == TN_OK; i++) {
        alone.chosen[0] = code->chosen[i];
        alone.n_chosen = 1;
        snprintf(words, size, "output %d alone: ", code->chosen[i]);
        status = tn_gradcheck(again_with, &alone, in, n_in, 1, 1e-6, 1e-4);
    }
    if (status == TN_OK && s->seconds < SECOND_CASES &&
        s->spent + 20 * first < WORTH * CLOCKS_PER_SEC && second_too(code->one)) {
        began = clock();
        s->seconds++;
        snprintf(words, size, "second derivatives: ");
        status = tn_gradgradcheck(again_with, code, in, n_in, code->n_chosen, 1e-6, 1e-3);
        s->spent += clock() - began;
    }
    return status;
}

bool conform_case_slopes(subject *s, conform_case *one)
{
    char words[400] = "";
    int64_t n = differentiable(one);

    if (one->def->flags & TN_OP_STRAIGHT_THROUGH)
        return true; /* the derivative is intentionally not that of the values */
    for (int turn = 0; turn < 3 && n > 0; turn++) {
        attempt a;
        tn_tensor *in[OPERANDS];
        closure code = { .one = one, .in = a.in };
        char which[64];
        int64_t next = 0;
        tn_status status;

        if (make_doubles(one, s->device, &a) != TN_OK ||
            conform_call(one, s->device, 7, &a) != TN_OK) {
            tn_error_clear();
            return true; /* conform_case_gradient() reports this failure */
        }
        for (int32_t i = 0; i < one->def->n_outputs; i++)
            if (tn_tensor_dtype(a.out[i]) == TN_F64 && tn_tensor_requires_grad(a.out[i]))
                code.chosen[code.n_chosen++] = i;
        if (code.n_chosen == 0)
            return true;
        for (int64_t i = 0; i < one->n_in; i++)
            if (one->in[i].there && one->in[i].grad)
                in[next++] = a.in[i];
        tn_device_begin(s->device);
        status = compare_slopes(s, &code, in, n, which, sizeof which);
        tn_device_end();
        s->c->checks++;
        if (status == TN_OK)
            return true;
        if (status == TN_ERR_NOT_IMPLEMENTED || no_slope(tn_error_text())) {
            tn_error_clear();
            return true; /* no derivative at all, or none at these values */
        }
        if (words[0] == '\0')
            snprintf(words, sizeof words, "%s%.330s", which, tn_error_text());
        tn_error_clear();
        for (int64_t i = 0; i < one->n_in; i++) /* tries a point nearby */
            for (int64_t k = 0; one->in[i].there && one->in[i].grad && k < one->in[i].count; k++)
                one->in[i].values[k] += 0.00713 * (double)((k * 7 + i) % 23 + 1);
    }
    return words[0] == '\0' ||
           conform_fail(s->c, "case %s: finite differences: %s", one->name, words);
}
