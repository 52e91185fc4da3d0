/* SPDX-License-Identifier: MIT
 *
 * Checks options of optimizers, for tenon check. If a case sets an option to a value other than its
 * default, another value must change the parameters or the states in at least one case. */
#include "optimizers.h"

#include <string.h>

enum { MOST = 64, ELEMENTS = 4, TEXT = 640 };

/* The result for each option, and for each element of a list, over all cases. */
static struct record {
    bool tried, counts; /* another value was tried; it had an effect */
    conform_other_value value;
} records[MOST][ELEMENTS];

static const tn_option *options_of(const conform *c)
{
    const tn_optimizer_def *def = (const void *)tn_registry_find(TN_KIND_tn_optimizer_def,
                                                                 c->subject);

    return def != NULL ? def->options : NULL;
}

/* Returns true if the steps with another spec fail, or give other parameters or states. */
static bool differs(const conform_rule *r, const tn_state *state, const char *spec)
{
    conform quiet = *r->c; /* reports nothing, because it has failed already */
    conform_rule other = { &quiet, spec };
    uint64_t scope = tn_scope_begin();
    tn_state *after;
    bool different;

    quiet.verdict = CONFORM_FAIL;
    after = conform_rule_after(&other, TN_F32);
    different = after == NULL || !conform_same_state(state, after);
    tn_state_drop(after);
    tn_error_clear();
    tn_scope_end(scope);
    return different;
}

void conform_rule_try_options(const conform_rule *r)
{
    const tn_option *options = options_of(r->c);
    uint64_t scope = tn_scope_begin();
    tn_state *state = conform_rule_after(r, TN_F32);
    char text[TEXT];

    for (int i = 0; state != NULL && options != NULL && options[i].name != NULL && i < MOST; i++)
        for (int k = 0; k < (options[i].kind == TN_OPTION_KIND_FLOATS ? ELEMENTS : 1); k++) {
            struct record one = records[i][k];

            if (one.counts ||
                !conform_other_spec(r->spec, options, i, k, &one.value, text, sizeof text))
                continue;
            one.tried = true;
            one.counts = differs(r, state, text);
            records[i][k] = one;
            r->c->checks++;
        }
    tn_state_drop(state);
    tn_scope_end(scope);
}

/* Returns true for options that choose a way to compute, with PyTorch's names. */
static bool has_no_effect(const char *name)
{
    return strcmp(name, "capturable") == 0 || strcmp(name, "foreach") == 0 ||
           strcmp(name, "fused") == 0 || strcmp(name, "differentiable") == 0;
}

void conform_rule_judge_options(conform *c)
{
    const tn_option *options = options_of(c);

    for (int i = 0; options != NULL && options[i].name != NULL && i < MOST; i++)
        for (int k = 0; k < ELEMENTS && !has_no_effect(options[i].name); k++)
            if (records[i][k].tried && !records[i][k].counts)
                conform_fail(c, "option `%s`: has no effect in any case, as %s and as %s",
                             options[i].name, records[i][k].value.from, records[i][k].value.to);
}
