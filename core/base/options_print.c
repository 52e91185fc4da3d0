/* SPDX-License-Identifier: MIT
 *
 * Prints an option struct as arguments: either all options, so that the text builds an equal struct
 * again, or only what PyTorch's repr prints. */
#include "core/base/internal.h"
#include "core/base/dtype.h"

static void put(tn__text *text, const char *words)
{
    tn__text_put(text, words, strlen(words));
}

static void print_value(tn__text *text, tn_value value)
{
    tn__value_print(&value, text);
}

/* Returns whether an option of kind INTS was written as a list. */
static bool is_list(const tn_option *row, const void *from)
{
    return (row->flags & TN_OPTION_LISTS) != 0 && ((const tn_ints_given *)from)->list;
}

/* None reads back only in an optional list; elsewhere operators take it for an empty one. */
static void print_no_list(bool optional, tn__text *text)
{
    put(text, optional ? "None" : "()");
}

static void print_ints(const tn_ints *row, bool list, bool optional, tn__text *text)
{
    if (row->count < 0) {
        print_no_list(optional, text);
        return;
    }
    put(text, list ? "[" : "(");
    for (int64_t i = 0; i < row->count; i++)
        tn__text_add(text, "%s%lld", i ? ", " : "", (long long)row->at[i]);
    put(text, list ? "]" : row->count == 1 ? ",)" : ")");
}

/* In an optional list, NaN stands for None. */
static void print_floats(const tn_floats *row, bool optional, tn__text *text)
{
    if (row->count < 0) {
        print_no_list(optional, text);
        return;
    }
    put(text, "(");
    for (int64_t i = 0; i < row->count; i++)
        if (optional && row->at[i] != row->at[i])
            tn__text_add(text, "%sNone", i ? ", " : "");
        else
            tn__text_add(text, "%s%g", i ? ", " : "", row->at[i]);
    put(text, row->count == 1 ? ",)" : ")");
}

static void print_scalar(const tn_scalar *scalar, tn__text *text)
{
    tn_value parts[2] = { tn_value_float(scalar->as.c[0]), tn_value_float(scalar->as.c[1]) };
    tn_value value = { .kind = TN_VALUE_NONE };

    switch (scalar->kind) {
    case TN_SCALAR_BOOL: value = tn_value_bool(scalar->as.i != 0); break;
    case TN_SCALAR_INT: value = tn_value_int(scalar->as.i); break;
    case TN_SCALAR_FLOAT: value = tn_value_float(scalar->as.f); break;
    case TN_SCALAR_COMPLEX:
        value.kind = TN_VALUE_COMPLEX;
        value.count = 2;
        value.as.list = parts;
        break;
    case TN_SCALAR_UINT: value = tn_value_uint(scalar->as.u); break;
    default: break;
    }
    tn__value_print(&value, text);
}

static void print_option(const tn_option *row, const char *data, tn__text *text)
{
    const void *from = data + row->offset;
    bool optional = (row->flags & TN_OPTION_OPTIONAL) != 0;
    tn_value none = { .kind = TN_VALUE_NONE };

    switch (row->kind) {
    case TN_OPTION_KIND_BOOL: print_value(text, tn_value_bool(*(const bool *)from)); break;
    case TN_OPTION_KIND_INT: {
        int64_t number = *(const int64_t *)from;
        print_value(text, optional && number == INT64_MIN ? none : tn_value_int(number));
        break;
    }
    case TN_OPTION_KIND_FLOAT: {
        double number = *(const double *)from;
        print_value(text, optional && number != number ? none : tn_value_float(number));
        break;
    }
    case TN_OPTION_KIND_STRING: {
        const char *string = *(const char *const *)from;
        print_value(text, string ? tn_value_string(string) : none);
        break;
    }
    case TN_OPTION_KIND_INTS: print_ints(from, is_list(row, from), optional, text); break;
    case TN_OPTION_KIND_FLOATS: print_floats(from, optional, text); break;
    case TN_OPTION_KIND_DTYPE: {
        tn_dtype dtype = *(const tn_dtype *)from;
        put(text, dtype == TN_DTYPE_AUTO ? "None" : tn_dtype_name(dtype));
        break;
    }
    case TN_OPTION_KIND_SCALAR: print_scalar(from, text); break;
    default: tn__value_print(from, text); break;
    }
}

static bool is_part(const tn_value *value)
{
    return value->kind == TN_VALUE_SPEC || value->kind == TN_VALUE_MODULE;
}

static bool is_word(const char *name)
{
    bool digit = *name >= '0' && *name <= '9';

    return *name && !digit &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")] ==
               0;
}

/* Prints the further arguments (TN_OPTION_MANY): the named ones if `named`, otherwise the
 * positional ones. */
static void print_many(const tn_values *many, bool named, bool complete, tn__text *text,
                       const char **comma)
{
    for (int64_t i = 0; i < many->count; i++) {
        if ((many->names[i] != NULL) != named || (!complete && is_part(&many->at[i])))
            continue;
        put(text, *comma);
        if (named) /* a name that is not a word, such as "0", is the name of a child module */
            tn__text_add(text, is_word(many->names[i]) ? "%s=" : "(%s): ", many->names[i]);
        tn__value_print(&many->at[i], text);
        *comma = ", ";
    }
}

void tn__options_print(const tn_option *table, const void *data, bool complete, tn__text *text)
{
    const tn_option *row = tn__options_many(table);
    const tn_values none = { NULL, NULL, 0 };
    const tn_values *many = row ? (const tn_values *)((const char *)data + row->offset) : &none;
    const char *comma = "";
    bool positional = false;

    /* If there are positional further arguments, the options before them must be printed as
     * positional arguments, too. */
    for (int64_t i = 0; i < many->count; i++)
        positional = positional || (!many->names[i] && (complete || !is_part(&many->at[i])));
    for (int pass = 0; pass < 2; pass++) {
        for (row = table; row && row->kind != TN_OPTION_KIND_END; row++) {
            bool keyword_only = (row->flags & TN_OPTION_KEYWORD) != 0;
            bool first = positional
                             ? !keyword_only
                             : !complete && !keyword_only && !(row->flags & TN_OPTION_REPR_KEYWORD);
            if (row->flags & TN_OPTION_MANY || first != (pass == 0))
                continue;
            put(text, comma);
            if (!first)
                tn__text_add(text, "%s=", row->name);
            print_option(row, data, text);
            comma = ", ";
        }
        print_many(many, pass == 1, complete, text, &comma);
    }
}
