/* SPDX-License-Identifier: MIT
 *
 * Checks options of layers, for tenon check. If a case sets an option to a value other than its
 * default, another value must change the behaviour in at least one case. Only bools and floats are
 * tried, because another value of them always exists. */
#include "layers.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64, TEXT = 640 };

/* The result for each option over all cases. */
static struct record {
    bool tried, counts;    /* another value was tried; it had an effect */
    char from[32], to[32]; /* the value in the case, and the value tried instead */
} records[MOST];

static const tn_option *options_of(const conform *c)
{
    const tn_layer_def *def = (const void *)tn_registry_find(TN_KIND_tn_layer_def, c->subject);

    return def != NULL ? def->options : NULL;
}

/* Writes another value of an option as text. Returns false if the kind of option is not tried. */
static bool other_value(const tn_option *option, const char *value, char *out, size_t size)
{
    double number;

    if (option->kind == TN_OPTION_KIND_BOOL && strcmp(value, "True") == 0)
        snprintf(out, size, "False");
    else if (option->kind == TN_OPTION_KIND_BOOL && strcmp(value, "False") == 0)
        snprintf(out, size, "True");
    else if (option->kind == TN_OPTION_KIND_FLOAT && tn_read_float(value, &number))
        snprintf(out, size, "%.6f", number < 0.6 ? number + 0.35 : number * 0.5);
    else
        return false;
    return true;
}

static bool is_default(const tn_option *option, const char *value)
{
    double a, b;

    if (option->def == NULL)
        return false;
    return strcmp(option->def, value) == 0 ||
           (tn_read_float(option->def, &a) && tn_read_float(value, &b) && a == b);
}

/* Finds the value of option `which` in a spec, by its name or its position. Returns NULL if the
 * spec does not contain it. */
static const char *find_value(const char *spec, const tn_option *options, int which, size_t *length)
{
    const char *at = strchr(spec, '('), *end;
    size_t name = strlen(options[which].name);

    for (int i = 0; at != NULL && *at != '\0' && *at != ')'; i++, at = end) {
        int depth = 0;

        at += 1 + strspn(at + 1, " ");
        for (end = at; *end != '\0' && (depth > 0 || strchr(",)", *end) == NULL); end++)
            depth += strchr("([", *end) != NULL ? 1 : strchr(")]", *end) != NULL ? -1 : 0;
        *length = (size_t)(end - at);
        if (strncmp(at, options[which].name, name) == 0 && at[name] == '=') {
            *length -= name + 1;
            return at + name + 1;
        }
        if (i == which && memchr(at, '=', *length) == NULL)
            return at;
    }
    return NULL;
}

/* Writes to `out` the spec with another value of the option, and stores both values in `r`. Returns
 * false if the option has its default value or is not tried. */
static bool other_spec(const char *spec, const tn_option *options, int which, struct record *r,
                       char *out)
{
    size_t length = 0;
    const char *at = find_value(spec, options, which, &length);

    if (at == NULL || length >= sizeof r->from)
        return false;
    snprintf(r->from, sizeof r->from, "%.*s", (int)length, at);
    if (is_default(&options[which], r->from) ||
        !other_value(&options[which], r->from, r->to, sizeof r->to))
        return false;
    snprintf(out, TEXT, "%.*s%s%s", (int)(at - spec), spec, r->to, at + length);
    return true;
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
    bool same = x != NULL && y != NULL && tn_state_count(x) == tn_state_count(y);

    for (int64_t i = 0; same && i < tn_state_count(x); i++)
        same = strcmp(tn_state_name(x, i), tn_state_name(y, i)) == 0 &&
               conform_same_value(tn_state_value(x, i), tn_state_value(y, i));
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

        if (r.counts || !other_spec(s->one->spec, options, i, &r, text))
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
                         options[i].name, records[i].from, records[i].to);
}
