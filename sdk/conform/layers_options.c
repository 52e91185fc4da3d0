/* SPDX-License-Identifier: MIT
 *
 * Checks options of layers, for tenon check. If a case sets an option to a value other than its
 * default, another value must change the behaviour in at least one case. Only bools and floats are
 * tried, because they always have another value. */
#include "layers.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64, TEXT = 640 };

/* The result for each option over all cases. */
static struct record {
    bool tried, counts; /* another value was tried; it had an effect */
    conform_other_value value;
} records[MOST];

void conform_layer_forget_options(void)
{
    memset(records, 0, sizeof records);
}

static const tn_option *options_of(const conform *c)
{
    const tn_layer_def *def = (const void *)tn_registry_find(TN_KIND_tn_layer_def, c->subject);

    return def != NULL ? def->options : NULL;
}

static bool same_bits(const conform_results *a, const conform_results *b)
{
    bool same = a->count == b->count && a->n_numbers == b->n_numbers &&
                memcmp(a->number, b->number, (size_t)a->n_numbers * sizeof *a->number) == 0;

    for (int64_t i = 0; same && i < a->count; i++) {
        size_t n = 0, m = 0;
        void *x = conform_bytes(a->at[i], &n), *y = conform_bytes(b->at[i], &m);

        same = x != NULL && y != NULL && n == m && memcmp(x, y, n) == 0 &&
               tn_tensor_dtype(a->at[i]) == tn_tensor_dtype(b->at[i]) &&
               tn_tensor_ndim(a->at[i]) == tn_tensor_ndim(b->at[i]);
        free(x);
        free(y);
    }
    return same;
}

/* Returns true if two modules have equal states. Unlike conform_layer_same_state(), reports
 * nothing: a difference is what the caller looks for. */
static bool same_state(tn_module *a, tn_module *b)
{
    tn_state *x = tn_module_state(a), *y = tn_module_state(b);
    bool same = x != NULL && y != NULL && conform_same_state(x, y);

    tn_state_drop(x);
    tn_state_drop(y);
    return same;
}

/* Returns true if `other`, after loading the state of `module`, gives the same results and state in
 * both modes. */
static bool same_behaviour(const conform_subject *s, tn_module *module, tn_module *other)
{
    tn_state *state = tn_module_state(module);
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    bool same = state != NULL && tn_module_load_state(other, state, true) == TN_OK &&
                same_state(module, other);

    for (int training = 0; same && training <= (s->one->eval ? 0 : 1); training++) {
        conform_results a, b;

        same = conform_layer_inputs_with_grad(s, in) &&
               tn_module_train(module, training) == TN_OK &&
               tn_module_train(other, training) == TN_OK &&
               conform_layer_call(s, module, in, &a) == TN_OK &&
               conform_layer_inputs_with_grad(s, in) &&
               conform_layer_call(s, other, in, &b) == TN_OK && same_bits(&a, &b) &&
               same_state(module, other);
    }
    tn_state_drop(state);
    return same;
}

void conform_layer_try_options(const conform_subject *s)
{
    const tn_option *options = options_of(s->c);
    tn_module *module = conform_layer_build(s);
    char text[TEXT];

    for (int i = 0; module != NULL && options != NULL && options[i].name != NULL && i < MOST; i++) {
        uint64_t scope;
        tn_module *other;
        struct record r = records[i];

        if (r.counts ||
            (options[i].kind != TN_OPTION_KIND_BOOL && options[i].kind != TN_OPTION_KIND_FLOAT) ||
            !conform_other_spec(s->one->spec, options, i, 0, &r.value, text, sizeof text))
            continue;
        scope = tn_scope_begin();
        other = tn_module_parse(text);
        r.tried = true;
        r.counts = other == NULL || tn_module_to(other, s->device, s->dtype) != TN_OK ||
                   !same_behaviour(s, module, other);
        records[i] = r;
        s->c->checks++;
        tn_error_clear();
        tn_module_drop(other);
        tn_scope_end(scope);
    }
    tn_module_drop(module);
    tn_error_clear();
}

/* Returns true for options that must not change results. */
static bool has_no_effect(const char *name)
{
    return strcmp(name, "inplace") == 0;
}

void conform_layer_judge_options(conform *c)
{
    const tn_option *options = options_of(c);

    for (int i = 0; options != NULL && options[i].name != NULL && i < MOST; i++)
        if (records[i].tried && !records[i].counts && !has_no_effect(options[i].name))
            conform_fail(c, "option `%s`: has no effect in any case, as %s and as %s",
                         options[i].name, records[i].value.from, records[i].value.to);
}
