/* SPDX-License-Identifier: MIT
 *
 * Rules that are texts (rules.h): reading a text, and calling the operator of the form that
 * fits. */
#include "rules_bound.h"

#include <string.h>

enum { FORMS = 8, WORDS = 8, OPTIONS = 512 };

/* A part of a form: an argument of the function, or a value. */
struct term {
    int64_t argument; /* -1: `value` */
    tn_value value;
    const char **words; /* an integer chooses one of them; NULL: none */
    int64_t n_words;
};

struct option_term {
    const tn_option *option;
    struct term term;
};

struct rules_form {
    const tn_op *op; /* NULL: the result is inputs[0] */
    const tn_op_def *def;
    struct term inputs[TN_MAX_OPERANDS];
    int64_t n_inputs;
    struct option_term *options;
    int64_t n_options;
    int64_t pick;  /* the output that is the result; -1: all */
    uint64_t used; /* bit i: the form has argument i */
};

_Static_assert(RULES_ARGUMENTS <= 64, "`used` has a bit for each argument");

struct reading {
    struct rules_bound *bound;
    struct arena *arena;
    const char *at;
    uint64_t used;
};

static tn_status malformed(const struct reading *r, const char *expected)
{
    return tn_fail(TN_ERR_RUNTIME, "rule %q: text: malformed at %q; expected %s",
                   r->bound->rule->function, r->at, expected);
}

static void skip(struct reading *r)
{
    r->at += strspn(r->at, " ");
}

static bool take(struct reading *r, char c)
{
    skip(r);
    if (*r->at != c)
        return false;
    r->at++;
    skip(r);
    return true;
}

static size_t name_length(const char *at)
{
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

    return *at >= '0' && *at <= '9' ? 0 : length;
}

static int64_t find_argument(const struct rules_bound *bound, const char *name, size_t length)
{
    for (int64_t i = 0; i < bound->count; i++)
        if (strlen(bound->names[i]) == length && memcmp(bound->names[i], name, length) == 0)
            return i;
    return -1;
}

/* Reads "{none, mean, sum}". */
static tn_status read_words(struct reading *r, struct term *term)
{
    term->words = arena_new(r->arena, WORDS, sizeof *term->words);
    if (term->words == NULL)
        return TN_ERR_MEMORY;
    do {
        size_t length = name_length(r->at);

        if (length == 0 || term->n_words == WORDS)
            return malformed(r, "a word");
        term->words[term->n_words] = arena_text(r->arena, r->at, length);
        if (term->words[term->n_words++] == NULL)
            return TN_ERR_MEMORY;
        r->at += length;
    } while (take(r, ','));
    return take(r, '}') ? TN_OK : malformed(r, "'}'");
}

static tn_status read_term(struct reading *r, struct term *term)
{
    size_t length = name_length(r->at);

    *term = (struct term){ .argument = find_argument(r->bound, r->at, length) };
    if (term->argument < 0)
        return rules_literal_read(&r->at, r->arena, &term->value);
    r->used |= UINT64_C(1) << term->argument;
    r->at += length;
    return take(r, '{') ? read_words(r, term) : TN_OK;
}

static const tn_option *find_option(const tn_op_def *def, const char *name, size_t length)
{
    for (const tn_option *row = def->options; row != NULL && row->kind != TN_OPTION_KIND_END; row++)
        if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
            return row;
    return NULL;
}

static tn_status read_input_or_option(struct reading *r, struct rules_form *form)
{
    size_t length = name_length(r->at);

    if (length > 0 && r->at[length] == '=') {
        struct option_term *term = &form->options[form->n_options];

        term->option = find_option(form->def, r->at, length);
        if (term->option == NULL || form->n_options == RULES_ARGUMENTS)
            return malformed(r, "an option of the operator");
        form->n_options++;
        r->at += length + 1;
        return read_term(r, &term->term);
    }
    if (form->n_inputs == form->def->n_inputs)
        return malformed(r, "no more inputs than the operator has");
    return read_term(r, &form->inputs[form->n_inputs++]);
}

static tn_status read_operator(struct reading *r, size_t length, struct rules_form *form)
{
    char name[128];

    if (length >= sizeof name)
        return malformed(r, "the name of an operator");
    memcpy(name, r->at, length);
    name[length] = '\0';
    form->op = tn_op_find(name, 0);
    if (form->op == NULL)
        return tn_error_prefix("rule %q: ", r->bound->rule->function);
    form->def = tn_op_definition(form->op);
    form->options = arena_new(r->arena, RULES_ARGUMENTS, sizeof *form->options);
    if (form->options == NULL)
        return TN_ERR_MEMORY;
    if (form->def->options_size > OPTIONS)
        return malformed(r, "an operator with fewer options");
    r->at += length;
    return TN_OK;
}

/* Reads "[1]", the number of an output. */
static tn_status read_pick(struct reading *r, struct rules_form *form)
{
    form->pick = -1;
    if (!take(r, '['))
        return TN_OK;
    form->pick = *r->at - '0';
    if (form->pick < 0 || form->pick >= form->def->n_outputs)
        return malformed(r, "the number of an output");
    r->at++;
    return take(r, ']') ? TN_OK : malformed(r, "']'");
}

static tn_status read_form(struct reading *r, struct rules_form *form)
{
    size_t length;
    tn_status status;

    skip(r);
    r->used = 0;
    length = name_length(r->at);
    form->pick = -1;
    if (r->at[length] != '(') { /* an argument itself */
        form->n_inputs = 1;
        status = read_term(r, &form->inputs[0]);
        form->used = r->used;
        return status;
    }
    status = read_operator(r, length, form);
    r->at += status == TN_OK;
    while (status == TN_OK && !take(r, ')')) {
        status = read_input_or_option(r, form);
        if (status == TN_OK && !take(r, ',') && *r->at != ')')
            status = malformed(r, "',' or ')'");
    }
    form->used = r->used;
    return status == TN_OK ? read_pick(r, form) : status;
}

tn_status rules_text_read(struct rules_bound *bound, struct arena *arena)
{
    struct reading r = { bound, arena, bound->rule->text, 0 };
    tn_status status = TN_OK;

    bound->forms = arena_new(arena, FORMS, sizeof *bound->forms);
    if (bound->forms == NULL)
        return TN_ERR_MEMORY;
    do {
        if (bound->n_forms == FORMS)
            return malformed(&r, "fewer forms");
        status = read_form(&r, &bound->forms[bound->n_forms++]);
    } while (status == TN_OK && take(&r, '|'));
    while (status == TN_OK && take(&r, ',')) {
        if (!take(&r, '-'))
            return malformed(&r, "'-'");
        bound->absent++;
    }
    return status != TN_OK || *r.at == '\0' ? status : malformed(&r, "'|', ',' or the end");
}

/* ---- calling --------------------------------------------------------------------------------- */

static const tn_value *value_of(const struct term *term, const tn_rule_call *call)
{
    return term->argument >= 0 ? &call->values[term->argument] : &term->value;
}

static bool is_number(const tn_value *value)
{
    return value->kind == TN_VALUE_BOOL || value->kind == TN_VALUE_INT ||
           value->kind == TN_VALUE_FLOAT || value->kind == TN_VALUE_COMPLEX;
}

static bool is_list_of_tensors(const tn_value *value)
{
    if (value->kind != TN_VALUE_LIST || value->count == 0)
        return false;
    for (uint32_t i = 0; i < value->count; i++)
        if (value->as.list[i].kind != TN_VALUE_TENSOR)
            return false;
    return true;
}

/* Whether the inputs can be those of the operator; with `numbers`, numbers may be inputs. */
static bool inputs_fit(const struct rules_form *form, const tn_rule_call *call, bool numbers)
{
    for (int64_t i = 0; i < form->n_inputs; i++) {
        const tn_value *value = value_of(&form->inputs[i], call);
        uint64_t flags = form->def->inputs[i].flags;

        if ((flags & TN_OPERAND_LIST) != 0
                ? !is_list_of_tensors(value)
                : value->kind != TN_VALUE_TENSOR && !(numbers && is_number(value)) &&
                      (value->kind != TN_VALUE_NONE || (flags & TN_OPERAND_OPTIONAL) == 0))
            return false;
    }
    return true;
}

static bool fits(const struct rules_bound *bound, const struct rules_form *form,
                 const tn_rule_call *call, bool numbers)
{
    for (int64_t i = 0; i < bound->count; i++)
        if ((form->used >> i & 1) == 0 && !bound->arguments[i].unused &&
            !rules_literal_equal(&call->values[i], &bound->arguments[i].value))
            return false;
    if (form->op == NULL)
        return true;
    for (int64_t i = 0; i < form->n_options; i++)
        if (value_of(&form->options[i].term, call)->kind == TN_VALUE_TENSOR)
            return false;
    return inputs_fit(form, call, numbers);
}

static tn_status wrong_option(tn_rule_call *call, const tn_option *option, const tn_value *value,
                              const char *expected)
{
    return rule_fail(call, TN_ERR_TYPE, "option %s: wrong kind, got %s; expected %s", option->name,
                     tn_value_kind_name(value->kind), expected);
}

/* Returns the numbers of a list, or a single number as a list of one, as `size` bytes each. */
static void *numbers_of(tn_rule_call *call, const struct option_term *option, const tn_value *value,
                        int64_t *count)
{
    bool floats = option->option->kind == TN_OPTION_KIND_FLOATS;
    const tn_value *items = value->kind == TN_VALUE_LIST ? value->as.list : value;
    void *at;

    *count = value->kind == TN_VALUE_LIST ? value->count : 1;
    at = rule_memory(call, *count, 8);
    for (int64_t i = 0; i < *count && at != NULL; i++) {
        bool whole = items[i].kind == TN_VALUE_INT;

        if (!whole && !(floats && items[i].kind == TN_VALUE_FLOAT)) {
            wrong_option(call, option->option, &items[i], "a list of numbers");
            return NULL;
        }
        if (floats)
            ((double *)at)[i] = whole ? (double)items[i].as.i : items[i].as.f;
        else
            ((int64_t *)at)[i] = items[i].as.i;
    }
    return at;
}

/* The word that an integer chooses. */
static tn_status choose(tn_rule_call *call, const struct option_term *option,
                        const tn_value **value, tn_value *word)
{
    const struct term *term = &option->term;

    if (term->words == NULL)
        return TN_OK;
    if ((*value)->kind != TN_VALUE_INT || (*value)->as.i < 0 || (*value)->as.i >= term->n_words)
        return rule_fail(call, TN_ERR_VALUE, "%s: unknown choice, got %s; expected 0 to %lld",
                         option->option->name, tn_value_kind_name((*value)->kind),
                         (long long)term->n_words - 1);
    *word = tn_value_string(term->words[(*value)->as.i]);
    *value = word;
    return TN_OK;
}

static bool set_number(const tn_option *row, const tn_value *value, void *to)
{
    bool whole = value->kind == TN_VALUE_INT || value->kind == TN_VALUE_BOOL;

    if (!whole && value->kind != TN_VALUE_FLOAT)
        return false;
    if (row->kind == TN_OPTION_KIND_FLOAT)
        *(double *)to = whole ? (double)value->as.i : value->as.f;
    else if (!whole)
        return false;
    else if (row->kind == TN_OPTION_KIND_BOOL)
        *(bool *)to = value->as.i != 0;
    else
        *(int64_t *)to = value->as.i;
    return true;
}

static tn_status set_list(tn_rule_call *call, const struct option_term *option,
                          const tn_value *value, void *to)
{
    int64_t count;
    void *at = numbers_of(call, option, value, &count);

    if (at == NULL)
        return call->status;
    if (option->option->kind == TN_OPTION_KIND_FLOATS)
        *(tn_floats *)to = (tn_floats){ at, count };
    else if ((option->option->flags & TN_OPTION_LISTS) != 0)
        *(tn_ints_given *)to = (tn_ints_given){ { at, count }, value->kind == TN_VALUE_LIST };
    else
        *(tn_ints *)to = (tn_ints){ at, count };
    return TN_OK;
}

/* Stores the value of an option; None leaves the default. */
static tn_status set_option(tn_rule_call *call, const struct option_term *option,
                            unsigned char *options)
{
    const tn_option *row = option->option;
    const tn_value *value = value_of(&option->term, call);
    void *to = options + row->offset;
    tn_value word;

    if (value->kind == TN_VALUE_NONE)
        return TN_OK;
    if (choose(call, option, &value, &word) != TN_OK)
        return call->status;
    switch (row->kind) {
    case TN_OPTION_KIND_BOOL:
    case TN_OPTION_KIND_INT:
    case TN_OPTION_KIND_FLOAT:
        return set_number(row, value, to) ? TN_OK : wrong_option(call, row, value, "a number");
    case TN_OPTION_KIND_STRING:
        if (value->kind != TN_VALUE_STRING)
            return wrong_option(call, row, value, "a text");
        *(const char **)to = value->as.s;
        return TN_OK;
    case TN_OPTION_KIND_DTYPE:
        if (value->kind != TN_VALUE_STRING)
            return wrong_option(call, row, value, "a dtype");
        return tn_dtype_parse(value->as.s, to);
    case TN_OPTION_KIND_SCALAR:
        return rules_scalar(value, to) ? TN_OK : wrong_option(call, row, value, "a number");
    case TN_OPTION_KIND_INTS:
    case TN_OPTION_KIND_FLOATS: return set_list(call, option, value, to);
    default: *(tn_value *)to = *value; return TN_OK;
    }
}

/* The first tensor among the inputs; NULL if all are numbers. */
static const tn_tensor *first_tensor(const struct rules_form *form, const tn_rule_call *call)
{
    for (int64_t i = 0; i < form->n_inputs; i++) {
        const tn_value *value = value_of(&form->inputs[i], call);

        if (value->kind == TN_VALUE_TENSOR)
            return value->as.tensor;
    }
    return NULL;
}

/* Makes the array of inputs. */
static tn_tensor **take_inputs(const struct rules_form *form, tn_rule_call *call, int64_t *n)
{
    const tn_tensor *like = first_tensor(form, call);
    const tn_value *last = form->n_inputs > 0 ? value_of(&form->inputs[form->n_inputs - 1], call)
                                              : NULL;
    int64_t most = form->def->n_inputs + (last != NULL ? last->count : 0);
    tn_tensor **in = rule_memory(call, most, sizeof *in);

    *n = 0;
    for (int64_t i = 0; i < form->n_inputs && in != NULL; i++) {
        const tn_value *value = value_of(&form->inputs[i], call);

        if (value->kind == TN_VALUE_LIST) {
            for (uint32_t k = 0; k < value->count; k++)
                in[(*n)++] = value->as.list[k].as.tensor;
            continue;
        }
        in[*n] = value->kind == TN_VALUE_TENSOR ? value->as.tensor
                 : value->kind == TN_VALUE_NONE ? TN_NONE
                                                : rules_number(value, like);
        if (in[(*n)++] == NULL)
            return NULL;
    }
    /* Optional inputs at the end that the form does not name. */
    for (int64_t i = form->n_inputs; i < form->def->n_inputs && in != NULL; i++)
        in[(*n)++] = TN_NONE;
    return in;
}

/* The result of an operator without an in-place form is copied to call->into afterwards. If the
 * operator keeps its input for the derivative, that must be another tensor. */
static tn_status keep_input(tn_rule_call *call, tn_tensor **in, int64_t n)
{
    if (call->into == NULL || !tn_tensor_requires_grad(call->into))
        return TN_OK;
    for (int64_t i = 0; i < n; i++)
        if (in[i] == call->into) {
            in[i] = tn_clone(call->into);
            if (in[i] == NULL)
                return rule_give(call, NULL);
        }
    return TN_OK;
}

static tn_status call_form(const struct rules_form *form, tn_rule_call *call)
{
    const tn_op_def *def = form->def;
    _Alignas(16) unsigned char options[OPTIONS];
    tn_tensor *out[TN_MAX_OPERANDS] = { 0 };
    int64_t n = 0;
    tn_tensor **in = take_inputs(form, call, &n);
    tn_status status = in != NULL ? TN_OK : tn_error_last_code();

    if (def->options_size > 0)
        memcpy(options, def->defaults, def->options_size);
    for (int64_t i = 0; i < form->n_options && status == TN_OK; i++)
        status = set_option(call, &form->options[i], options);
    if (status != TN_OK)
        return status;
    if (call->into != NULL && (def->flags & TN_OP_INPLACE) != 0 && n > 0 && in[0] == call->into) {
        status = tn_op_call_into(form->op, in, n, def->options_size > 0 ? options : NULL,
                                 call->into);
        return status == TN_OK ? rule_give(call, call->into) : status;
    }
    if (keep_input(call, in, n) != TN_OK)
        return call->status;
    status = tn_op_call(form->op, in, n, def->options_size > 0 ? options : NULL, out,
                        def->n_outputs);
    if (status != TN_OK)
        return status;
    return form->pick >= 0 ? rule_give(call, out[form->pick])
                           : rule_give_all(call, out, def->n_outputs);
}

/* Says which arguments no form takes. */
static tn_status no_form(const struct rules_bound *bound, tn_rule_call *call)
{
    char given[400] = "";
    size_t length = 0;

    for (int64_t i = 0; i < bound->count && length + 80 < sizeof given; i++)
        if (bound->arguments[i].required ||
            !rules_literal_equal(&call->values[i], &bound->arguments[i].value)) {
            const tn_value *value = &call->values[i];
            const char *kind = value->kind == TN_VALUE_LIST && value->count > 0
                                   ? "list"
                                   : tn_value_kind_name(value->kind);

            length += (size_t)tn_snprint(given + length, sizeof given - length, "%s%.40s: %s",
                                         length > 0 ? ", " : "", bound->names[i], kind);
        }
    return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                     "arguments: no rule for these, got (%s); expected those of %s", given,
                     bound->rule->text);
}

/* In ONNX integers stand for tensors, and tensors for options: makes each what the form needs. */
static tn_status convert(const struct rules_form *form, tn_rule_call *call, tn_value *values)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < form->n_inputs && form->op != NULL && status == TN_OK; i++) {
        tn_value *value = form->inputs[i].argument >= 0 ? &values[form->inputs[i].argument] : NULL;
        tn_value *items;

        if (value == NULL)
            continue;
        if (value->kind != TN_VALUE_LIST || (form->def->inputs[i].flags & TN_OPERAND_LIST) == 0) {
            status = host_tensor(value);
            continue;
        }
        items = rule_memory(call, value->count, sizeof *items);
        if (items == NULL)
            return call->status;
        for (uint32_t k = 0; k < value->count && status == TN_OK; k++) {
            items[k] = value->as.list[k];
            status = host_tensor(&items[k]);
        }
        *value = tn_value_list(items, value->count);
    }
    for (int64_t i = 0; i < form->n_options && status == TN_OK; i++)
        if (form->options[i].term.argument >= 0)
            status = host_numbers(call, &values[form->options[i].term.argument]);
    return status;
}

tn_status rules_text_call(const struct rules_bound *bound, tn_rule_call *call)
{
    tn_value values[RULES_ARGUMENTS];

    if (call->host) {
        tn_status status = TN_OK;

        memcpy(values, call->values, (size_t)call->count * sizeof *values);
        for (int64_t i = 0; i < bound->n_forms && status == TN_OK; i++)
            status = convert(&bound->forms[i], call, values);
        if (status != TN_OK)
            return status;
        call->values = values;
    }
    for (int numbers = 0; numbers < 2; numbers++)
        for (int64_t i = 0; i < bound->n_forms; i++) {
            const struct rules_form *form = &bound->forms[i];
            tn_status status;

            if (!fits(bound, form, call, numbers != 0))
                continue;
            status = form->op != NULL ? call_form(form, call)
                                      : rule_give_value(call, *value_of(&form->inputs[0], call));
            for (int64_t k = 0; k < bound->absent && status == TN_OK; k++)
                status = rule_give_none(call);
            return status;
        }
    return no_form(bound, call);
}
