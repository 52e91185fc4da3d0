/* SPDX-License-Identifier: MIT
 *
 * Checks of operators that the plugin defines. The reference runs the plugin's decomposition, so
 * only the numbers that the author writes in a case can show that the decomposition is wrong. */
#include "ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool conform_is_own(const conform *c, const char *op)
{
    const char *owner = tn_registry_plugin(TN_KIND_tn_op_def, op);

    return owner != NULL && strcmp(owner, c->plugin->id) == 0;
}

bool conform_own_defaults(conform *c, const tn_op_def *def)
{
    const tn_option *o = def->options;

    for (; o != NULL && def->defaults != NULL && o->name != NULL; o++) {
        const char *at = (const char *)def->defaults + o->offset;
        double expected = 0, got;

        if (o->def == NULL || strcmp(o->def, "None") == 0)
            continue;
        if (o->kind == TN_OPTION_KIND_BOOL) {
            expected = strcmp(o->def, "True") == 0;
            got = *(const bool *)at;
        } else if (o->kind == TN_OPTION_KIND_FLOAT && tn_read_float(o->def, &expected)) {
            got = *(const double *)(const void *)at;
        } else if (o->kind == TN_OPTION_KIND_SCALAR && tn_read_float(o->def, &expected)) {
            got = tn_scalar_as_float(*(const tn_scalar *)(const void *)at);
        } else if (o->kind == TN_OPTION_KIND_INT && tn_read_float(o->def, &expected)) {
            got = (double)*(const int64_t *)(const void *)at;
        } else {
            continue;
        }
        c->checks++;
        if (got != expected && !(isnan(got) && isnan(expected)))
            return conform_fail(c,
                                "option `%s`: wrong default, got %g in `defaults`; expected %s as "
                                "in the table",
                                o->name, got, o->def);
    }
    return true;
}

/* Returns the largest tolerance among the dtypes of inputs and result: that of the narrowest dtype.
 */
static double widest(const conform_case *one, tn_tensor *out)
{
    double allowed = conform_tolerance(tn_tensor_dtype(out));

    for (int64_t i = 0; i < one->n_in; i++)
        if (one->in[i].there && conform_tolerance(one->in[i].dtype) > allowed)
            allowed = conform_tolerance(one->in[i].dtype);
    return allowed;
}

bool conform_own_results(subject *s, const conform_case *one, tn_tensor *const *out)
{
    bool well = true;

    if (!conform_is_own(s->c, one->def->name))
        return true;
    well = conform_own_defaults(s->c, one->def);
    if (one->loose || one->draws || one->n_given != one->def->n_outputs)
        return well;
    for (int32_t i = 0; i < one->n_given && well; i++) {
        const conform_tensor *given = &one->given[i];
        double allowed = 4 * widest(one, out[i]), scale = 0;
        int64_t count = 0;
        double *got = conform_values(out[i], &count);

        if (allowed < 1e-6)
            allowed = 1e-6; /* numbers in files have about six digits */
        if (got != NULL && given->there && count != given->count)
            well = conform_fail(s->c,
                                "case %s: result %d: wrong number of elements, got %lld; expected "
                                "%lld as in the case",
                                one->name, (int)i, (long long)count, (long long)given->count);
        for (int64_t k = 0; well && got != NULL && k < count && k < given->count; k++)
            if (isfinite(given->values[k]) && fabs(given->values[k]) > scale)
                scale = fabs(given->values[k]);
        for (int64_t k = 0; well && got != NULL && given->there && k < count; k++)
            /* infinite values are skipped: in float64, the reference may not overflow */
            if (isfinite(given->values[k]) &&
                !(fabs(got[k] - given->values[k]) <= allowed * (1 + scale)))
                well = conform_fail(s->c,
                                    "case %s: result %d, element %lld: wrong value, got %.17g; "
                                    "expected %.17g as in the case",
                                    one->name, (int)i, (long long)k, got[k], given->values[k]);
        s->c->checks++;
        free(got);
    }
    return well;
}
