/* SPDX-License-Identifier: MIT
 *
 * Groups of optimizers, and gradients of zeros, for tenon check. A group with options of its own
 * must take the steps of an optimizer that has these options. */
#include "optimizers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, ROWS = 3, COLUMNS = 2 };

static const tn_optimizer_def *def_of(const conform_rule *r)
{
    return (const void *)tn_registry_find(TN_KIND_tn_optimizer_def, r->c->subject);
}

/* Creates a matrix of float32 numbers between -2 and 2; with `zero`, of zeros. */
static tn_tensor *matrix(const conform_rule *r, int which, bool zero)
{
    float values[ROWS * COLUMNS];
    tn_tensor *made = tn_tensor_empty(TN_SHAPE(ROWS, COLUMNS), TN_F32, r->c->plugin->device);

    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = zero ? 0 : 2 * sinf((float)(1 + 5 * which + 3 * i));
    return made != NULL && tn_tensor_copy_in(made, values, sizeof values) == TN_OK ? made : NULL;
}

static tn_tensor *parameter(const conform_rule *r, int which)
{
    return tn_parameter(matrix(r, which, false), true);
}

static bool step(const conform_rule *r, tn_optimizer *optimizer, tn_tensor *const *all, int count,
                 int number, bool zero)
{
    for (int i = 0; i < count; i++) {
        /* the gradient of the last parameter is the same in both optimizers that are compared */
        tn_tensor *gradient = matrix(r, 10 * number + (i == count - 1 ? 1 : 2), zero);

        if (gradient == NULL || tn_tensor_set_grad(all[i], gradient) != TN_OK)
            return conform_rule_fail(r, "a gradient cannot be set: %s", tn_error_text());
    }
    tn_random_seed(r->c->plugin->options->seed + (uint64_t)number);
    r->c->checks++;
    return tn_optimizer_step(optimizer) == TN_OK ||
           conform_rule_fail(r, "step %d fails: %s", number + 1, tn_error_text());
}

/* ---- gradients of zeros ---------------------------------------------------------------------- */

/* Three steps with gradients of zeros leave finite numbers. */
static bool bears_zeros(const conform_rule *r)
{
    tn_tensor *p = parameter(r, 0);
    tn_optimizer *optimizer = p != NULL ? tn_optimizer_parse(&p, 1, r->spec) : NULL;
    int64_t count = 0;
    double *values = NULL;
    bool well = optimizer != NULL ||
                conform_rule_fail(r, "the optimizer cannot be built: %s", tn_error_text());

    for (int i = 0; well && i < STEPS; i++)
        well = step(r, optimizer, &p, 1, i, true);
    if (well)
        values = conform_values(p, &count);
    for (int64_t i = 0; values != NULL && well && i < count; i++)
        if (!isfinite(values[i]))
            well = conform_rule_fail(r,
                                     "gradients of zeros: element %lld of the parameter is %g "
                                     "after %d steps; expected a finite number",
                                     (long long)i, values[i], STEPS);
    free(values);
    tn_optimizer_drop(optimizer);
    return well;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Changes each float option, one after the other: of group 1 of `both`, and of `alone`. Writes the
 * options that were changed to `names`. */
static bool change_options(const conform_rule *r, tn_optimizer *both, tn_optimizer *alone,
                           char *names, size_t size)
{
    const tn_option *options = def_of(r)->options;
    size_t used = 0;

    names[0] = '\0';
    for (int i = 0; options != NULL && options[i].name != NULL; i++) {
        double value;

        if (options[i].kind != TN_OPTION_KIND_FLOAT ||
            tn_optimizer_get(alone, 0, options[i].name, &value) != TN_OK ||
            tn_optimizer_set(alone, 0, options[i].name, value != 0 ? value / 2 : 0.01) != TN_OK) {
            tn_error_clear(); /* an option that is no number, or may not have this one */
            continue;
        }
        if (tn_optimizer_set(both, 1, options[i].name, value != 0 ? value / 2 : 0.01) != TN_OK)
            return conform_rule_fail(r, "option %s of the second group cannot be set: %s",
                                     options[i].name, tn_error_text());
        if (used < size)
            used += (size_t)snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     options[i].name);
    }
    return true;
}

static bool same_steps(const conform_rule *r, tn_optimizer *both, tn_tensor *const *pair,
                       tn_optimizer *alone, tn_tensor *one, const char *names)
{
    size_t n = 0, m = 0;
    void *a, *b;
    bool well = true;

    for (int i = 0; well && i < STEPS; i++)
        well = step(r, both, pair, 2, i, false) && step(r, alone, &one, 1, i, false);
    if (!well)
        return false;
    a = conform_bytes(pair[1], &n);
    b = conform_bytes(one, &m);
    well = a != NULL && b != NULL && n == m && memcmp(a, b, n) == 0;
    free(a);
    free(b);
    return well || conform_rule_fail(r,
                                     "second group, with options of its own (%s): other steps than "
                                     "those of an optimizer with these options; read the options "
                                     "of the group that is stepped",
                                     names);
}

/* Returns whether a step draws random numbers: then a group before changes those of the next. */
static bool draws(const conform_rule *r)
{
    tn_tensor *p = parameter(r, 0);
    tn_optimizer *optimizer = p != NULL ? tn_optimizer_parse(&p, 1, r->spec) : NULL;
    uint64_t before[3] = { 0 }, after[3] = { 1 };
    bool known = optimizer != NULL && tn_tensor_set_grad(p, matrix(r, 1, false)) == TN_OK &&
                 tn_random_get_state(before) == TN_OK && tn_optimizer_step(optimizer) == TN_OK &&
                 tn_random_get_state(after) == TN_OK;

    tn_optimizer_drop(optimizer);
    tn_error_clear();
    return !known || memcmp(before, after, sizeof before) != 0;
}

static bool keeps_groups_apart(const conform_rule *r)
{
    tn_tensor *pair[] = { parameter(r, 0), parameter(r, 1) }, *one = parameter(r, 1);
    tn_optimizer *both, *alone;
    char names[300];
    bool well;

    if (draws(r))
        return true;
    both = tn_optimizer_parse(pair, 1, r->spec);
    alone = tn_optimizer_parse(&one, 1, r->spec);
    well = both != NULL && alone != NULL &&
           tn_optimizer_add_group(both, &pair[1], 1, NULL) == TN_OK;
    if (!well)
        conform_rule_fail(r, "a second group cannot be added: %s", tn_error_text());
    well = well && change_options(r, both, alone, names, sizeof names) &&
           same_steps(r, both, pair, alone, one, names);
    tn_optimizer_drop(both);
    tn_optimizer_drop(alone);
    return well;
}

bool conform_rule_groups(const conform_rule *r)
{
    uint64_t scope;
    bool well;

    if (def_of(r) == NULL || (def_of(r)->flags & TN_OPTIMIZER_CLOSURE) != 0)
        return true; /* such a rule has one group, and evaluates the loss itself */
    scope = tn_scope_begin();
    well = bears_zeros(r) && keeps_groups_apart(r);
    tn_error_clear();
    tn_scope_end(scope);
    return well;
}
