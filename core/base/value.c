/* SPDX-License-Identifier: MIT
 *
 * Values: copies that own what is in them, and their text in the grammar of specs. */
#include "core/base/internal.h"

#include <math.h>

#define DEPTH_MAX 64

static const char *const kind_names[] = { "None",   "bool",  "int",           "float",  "string",
                                          "list",   "tuple", "spec",          "tensor", "module",
                                          "opaque", "bytes", "complex number" };

const char *tn__value_kind_name(uint32_t kind)
{
    return kind < tn__countof(kind_names) ? kind_names[kind] : "value of an unknown kind";
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool is_text(const tn_value *value)
{
    return value->kind == TN_VALUE_STRING || value->kind == TN_VALUE_SPEC;
}

static bool is_row(const tn_value *value)
{
    return value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE ||
           value->kind == TN_VALUE_COMPLEX;
}

bool tn__value_complex_ok(const tn_value *value)
{
    return value->count == 2 && value->as.list && value->as.list[0].kind == TN_VALUE_FLOAT &&
           value->as.list[1].kind == TN_VALUE_FLOAT;
}

/* Bytes that strings and lists need: all lists first, so that they stay aligned. Checks every value
 * on the way. */
static tn_status measure(const tn_value *value, int depth, size_t *lists, size_t *texts)
{
    if (depth > DEPTH_MAX)
        return tn_fail(TN_ERR_VALUE, "value: lists nested too deep; expected at most %d levels",
                       DEPTH_MAX);
    if (value->kind >= tn__countof(kind_names))
        return tn_fail(TN_ERR_TYPE, "value: unknown kind, got %u; expected TN_VALUE_*",
                       value->kind);
    if (is_text(value)) {
        if (!value->as.s)
            return tn_fail(TN_ERR_VALUE, "value of kind %s: it is NULL",
                           tn__value_kind_name(value->kind));
        *texts += strlen(value->as.s) + 1;
    } else if (value->kind == TN_VALUE_BYTES) {
        if (value->count && !value->as.s)
            return tn_fail(TN_ERR_VALUE, "value of %u bytes: it is NULL", value->count);
        *texts += value->count + (size_t)1;
    } else if (value->kind == TN_VALUE_TENSOR && !value->as.tensor) {
        return tn__error_null_input("tensor among the values");
    } else if (value->kind == TN_VALUE_MODULE && !value->as.module) {
        return tn__error_null_input("module among the values");
    } else if (value->kind == TN_VALUE_COMPLEX && !tn__value_complex_ok(value)) {
        return tn_fail(TN_ERR_VALUE,
                       "value of kind complex: wrong parts; expected a list of two values of kind "
                       "FLOAT");
    } else if (is_row(value)) {
        if (value->count && !value->as.list)
            return tn_fail(TN_ERR_VALUE, "%s of %u values: it is NULL",
                           tn__value_kind_name(value->kind), value->count);
        *lists += value->count * sizeof(tn_value);
        for (uint32_t i = 0; i < value->count; i++) {
            tn_status status = measure(&value->as.list[i], depth + 1, lists, texts);
            if (status != TN_OK)
                return status;
        }
    }
    return TN_OK;
}

static void copy(const tn_value *from, tn_value *to, tn_value **lists, char **texts)
{
    *to = *from;
    if (is_text(from)) {
        size_t size = strlen(from->as.s) + 1;
        to->as.s = memcpy(*texts, from->as.s, size);
        *texts += size;
    } else if (from->kind == TN_VALUE_BYTES) {
        to->as.s = *texts;
        if (from->count > 0)
            memcpy(*texts, from->as.s, from->count);
        (*texts)[from->count] = '\0';
        *texts += from->count + (size_t)1;
    } else if (from->kind == TN_VALUE_TENSOR) {
        tn__base_up.tensor_keep(from->as.tensor);
    } else if (from->kind == TN_VALUE_MODULE) {
        tn__base_up.module_keep(from->as.module);
    } else if (is_row(from)) {
        tn_value *list = from->count ? *lists : NULL;
        if (list)
            *lists += from->count;
        for (uint32_t i = 0; i < from->count; i++)
            copy(&from->as.list[i], &list[i], lists, texts);
        to->as.list = list;
    }
}

tn_status tn__value_copy(const tn_value *from, tn_value *to, void **block)
{
    size_t lists = 0, texts = 0;
    tn_status status = measure(from, 0, &lists, &texts);

    *block = NULL;
    if (status != TN_OK)
        return status;
    if (lists + texts > 0) {
        *block = tn_malloc(lists + texts);
        if (!*block)
            return TN_ERR_MEMORY;
    }
    tn_value *list = *block;
    char *text = *block ? (char *)*block + lists : NULL;
    copy(from, to, &list, &text);
    return TN_OK;
}

static void let_go(const tn_value *value)
{
    if (value->kind == TN_VALUE_TENSOR)
        tn__base_up.tensor_drop(value->as.tensor);
    else if (value->kind == TN_VALUE_MODULE)
        tn__base_up.module_drop(value->as.module);
    else if (is_row(value))
        for (uint32_t i = 0; i < value->count; i++)
            let_go(&value->as.list[i]);
}

void tn__value_free(const tn_value *value, void *block)
{
    let_go(value);
    tn_free(block);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put(tn__text *text, const char *words)
{
    tn__text_put(text, words, strlen(words));
}

/* As Python chooses: single quotes, unless there are some inside and no double ones. */
static void put_string(tn__text *text, const char *string)
{
    tn__text_quote(text, strchr(string, '\'') && !strchr(string, '"') ? '"' : '\'', string);
}

/* 1.0+2.0j; 2.0j where the real part is +0.0. The imaginary part always has a sign after another
 * number, so that each part is read as it is. */
static void print_complex(double re, double im, tn__text *text)
{
    bool plain = re == 0 && !signbit(re) && isfinite(im);

    if (!plain)
        tn__text_add(text, signbit(im) && !isnan(im) ? "%g" : "%g+", re);
    tn__text_add(text, "%gj", im);
}

static void print(const tn_value *value, int depth, tn__text *text)
{
    bool tuple = value->kind == TN_VALUE_TUPLE;

    switch (value->kind) {
    case TN_VALUE_NONE: put(text, "None"); break;
    case TN_VALUE_BOOL: put(text, value->as.i ? "True" : "False"); break;
    case TN_VALUE_INT: tn__text_add(text, "%lld", (long long)value->as.i); break;
    case TN_VALUE_FLOAT: tn__text_add(text, "%g", value->as.f); break;
    case TN_VALUE_COMPLEX:
        if (tn__value_complex_ok(value))
            print_complex(value->as.list[0].as.f, value->as.list[1].as.f, text);
        else
            put(text, "<complex number>");
        break;
    case TN_VALUE_STRING: put_string(text, value->as.s); break;
    case TN_VALUE_SPEC: put(text, value->as.s); break;
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
        if (depth > DEPTH_MAX) {
            put(text, "...");
            break;
        }
        put(text, tuple ? "(" : "[");
        for (uint32_t i = 0; i < value->count; i++) {
            if (i > 0)
                put(text, ", ");
            print(&value->as.list[i], depth + 1, text);
        }
        put(text, tuple ? value->count == 1 ? ",)" : ")" : "]");
        break;
    default: /* what has no text that could be read back */
        tn__text_add(text, "<%s>", tn__value_kind_name(value->kind));
        break;
    }
}

void tn__value_print(const tn_value *value, tn__text *text)
{
    print(value, 0, text);
}
