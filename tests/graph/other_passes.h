/* SPDX-License-Identifier: MIT
 *
 * Passes that may change how results are rounded: results of the changed graph may differ from
 * those of the original by 2e-5 times the largest result. */
#ifndef TN_TESTS_GRAPH_OTHER_PASSES_H
#define TN_TESTS_GRAPH_OTHER_PASSES_H

#include <math.h>

#include "tests/graph/suite.h"

enum { RESULTS = 64 };

/* Passes, then a compiler; how often they changed a graph. */
struct other_pass {
    const char *passes, *compiler;
    int changed;
};

/* Numbers of a tensor, those of complex numbers one after the other; the caller frees them. */
static TN_ATTR(unused) double *doubles_of(tn_tensor *tensor, int64_t *count)
{
    tn_dtype dtype = tn_tensor_dtype(tensor), wide = TN_F64;
    double *numbers;

    *count = tn_tensor_numel(tensor);
    if (dtype == TN_C64 || dtype == TN_C128) {
        wide = TN_C128;
        *count *= 2;
    }
    numbers = malloc((size_t)(*count + 1) * sizeof *numbers);
    tensor = tn_cast(tn_detach(tensor), wide);
    ck_made(tensor);
    ck_ok(tn_tensor_copy_out(tensor, numbers, (size_t)*count * sizeof *numbers));
    return numbers;
}

/* The allowed difference, relative to the largest result; for 16-bit dtypes a few of their last
 * bits. */
static TN_ATTR(unused) double tolerance_of(tn_dtype dtype)
{
    return dtype == TN_F16 ? 2e-3 : dtype == TN_BF16 ? 1.6e-2 : 2e-5;
}

static TN_ATTR(unused) int failed_passes;

/* Prints and counts a failure, so that all failures are printed; the test fails at its end. */
static TN_ATTR(unused) void pass_failed(const char *what, const struct other_pass *pass,
                                        const char *why)
{
    printf("%s: %s%s%s: %s\n", what, pass->passes != NULL ? pass->passes : "",
           pass->compiler != NULL ? " " : "", pass->compiler != NULL ? pass->compiler : "", why);
    tn_error_clear();
    failed_passes++;
}

static TN_ATTR(unused) bool same_form(tn_tensor *a, tn_tensor *b)
{
    bool same = tn_tensor_dtype(a) == tn_tensor_dtype(b) && tn_tensor_ndim(a) == tn_tensor_ndim(b);

    for (int64_t d = 0; same && d < tn_tensor_ndim(a); d++)
        same = tn_tensor_size(a, d) == tn_tensor_size(b, d);
    return same;
}

static TN_ATTR(unused) void near_result(tn_tensor *got, tn_tensor *expected, const char *what,
                                        const struct other_pass *pass)
{
    int64_t count, n;
    double *a, *b, unit = 1;
    char why[160];

    if (!same_form(got, expected)) {
        pass_failed(what, pass, "another dtype or shape");
        return;
    }
    a = doubles_of(got, &n);
    b = doubles_of(expected, &count);
    for (int64_t i = 0; i < count; i++)
        unit = isfinite(b[i]) ? fmax(unit, fabs(b[i])) : unit;
    for (int64_t i = 0; i < count; i++)
        if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])) &&
            !(fabs(a[i] - b[i]) <= tolerance_of(tn_tensor_dtype(got)) * unit)) {
            snprintf(why, sizeof why, "element %lld is %.9g, without it %.9g (the largest %.3g)",
                     (long long)i, a[i], b[i], unit);
            pass_failed(what, pass, why);
            break;
        }
    free(a);
    free(b);
}

/* Returns a changed copy of the graph; NULL if nothing has changed or the passes failed. */
static TN_ATTR(unused) tn_graph *changed_graph(const tn_graph *graph, const char *text,
                                               const struct other_pass *pass, const char *what)
{
    tn_graph *copy = tn_graph_copy(graph);
    char *now;
    bool well;

    ck_made(copy);
    well = pass->passes == NULL || tn_graph_pass(copy, pass->passes) == TN_OK;
    if (well && pass->compiler != NULL)
        well = tn_graph_compile(copy, tn_default_device(), pass->compiler) == TN_OK;
    if (!well) {
        pass_failed(what, pass, tn_error_text());
        tn_graph_drop(copy);
        return NULL;
    }
    now = printed(copy, "table");
    if (strcmp(now, text) == 0) {
        tn_graph_drop(copy);
        copy = NULL;
    }
    free(now);
    return copy;
}

static TN_ATTR(unused) int64_t
    call_graph(tn_graph *graph, int64_t (*call)(tn_module *, tn_tensor **, void *), tn_tensor **out,
               void *user)
{
    tn_module *module = tn_graph_module(graph);
    int64_t count;

    ck_made(module);
    count = call(module, out, user);
    tn_module_drop(module);
    return count;
}

/* Tries passes on a graph. `call` calls a module, keeps its results in the scope and returns how
 * many, -1 on failure; it is for evaluation, without gradients. */
static TN_ATTR(unused) void try_passes(tn_graph *graph, struct other_pass *passes, int64_t n_passes,
                                       int64_t (*call)(tn_module *, tn_tensor **, void *),
                                       void *user, const char *what)
{
    TN_SCOPE;
    char *text = printed(graph, "table");
    tn_tensor *expected[RESULTS];
    int64_t count = -1;

    for (int64_t i = 0; i < n_passes; i++) {
        struct other_pass *pass = &passes[i];
        tn_graph *changed = changed_graph(graph, text, pass, what);
        tn_tensor *got[RESULTS];

        if (changed == NULL)
            continue;
        if (count < 0)
            count = call_graph(graph, call, expected, user);
        ck_assert_msg(count >= 0, "%s: %s", what, tn_error_text());
        if (call_graph(changed, call, got, user) != count)
            pass_failed(what, pass, tn_error_text());
        else
            for (int64_t k = 0; k < count; k++)
                near_result(got[k], expected[k], what, pass);
        tn_graph_drop(changed);
        pass->changed++;
    }
    free(text);
}

#endif
