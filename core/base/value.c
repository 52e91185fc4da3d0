/* SPDX-License-Identifier: MIT
 *
 * Values: deep copies, and printing in the grammar of specs. */
#include "core/base/internal.h"

#include <math.h>

#define DEPTH_MAX 64

const char *tn__value_kind_name(uint32_t kind)
{
    return tn_value_kind_name(kind);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool is_text(const tn_value *value)
{
    return value->kind == TN_VALUE_STRING || value->kind == TN_VALUE_SPEC;
}

static bool is_row(const tn_value *value)
{
    return value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE ||
           value->kind == TN_VALUE_COMPLEX || value->kind == TN_VALUE_DICT;
}

/* Checks that a dictionary has a value for each key, and only simple values as keys. Stops before
 * the first key that is wrong. */
tn_status tn__value_check_dict(const tn_value *value)
{
    if (value->count % 2 != 0)
        return tn_fail(TN_ERR_VALUE,
                       "dict of %u values: odd count; expected a key and a value in turn",
                       value->count);
    if (value->count && !value->as.list)
        return tn_fail(TN_ERR_VALUE, "dict: as.list: it is NULL; expected %u values", value->count);
    for (uint32_t i = 0; i < value->count; i += 2) {
        uint32_t kind = value->as.list[i].kind;

        if (kind != TN_VALUE_STRING && kind != TN_VALUE_INT && kind != TN_VALUE_BOOL &&
            kind != TN_VALUE_FLOAT && kind != TN_VALUE_UINT && kind != TN_VALUE_NONE)
            return tn_fail(TN_ERR_TYPE,
                           "dict: key %u: wrong kind, got %s; expected a string, a number, a bool "
                           "or None",
                           i / 2, tn__value_kind_name(kind));
    }
    return TN_OK;
}

const tn_value *tn_value_get(const tn_value *dict, const char *key)
{
    if (!dict || !key) {
        tn_error_null(dict ? "tn_value_get: key" : "tn_value_get: dict");
        return NULL;
    }
    if (dict->kind != TN_VALUE_DICT) {
        tn_fail(TN_ERR_TYPE, "tn_value_get: dict: wrong kind, got %s; expected a dict",
                tn__value_kind_name(dict->kind));
        return NULL;
    }
    if (tn__value_check_dict(dict) != TN_OK)
        return NULL;
    for (uint32_t i = dict->count; i > 0; i -= 2) {
        const tn_value *at = &dict->as.list[i - 2];

        if (at->kind == TN_VALUE_STRING && at->as.s && strcmp(at->as.s, key) == 0)
            return &dict->as.list[i - 1];
    }
    return NULL;
}

/* Computes the memory for a copy of the value: *lists for lists, which come first in the block so
 * that they are aligned, and *texts for strings. Also checks the value and everything in it. */
static tn_status measure(const tn_value *value, int depth, size_t *lists, size_t *texts)
{
    if (depth > DEPTH_MAX)
        return tn_fail(TN_ERR_VALUE, "value: lists nested too deep; expected at most %d levels",
                       DEPTH_MAX);
    if (value->kind > TN_VALUE_UINT)
        return tn_fail(TN_ERR_TYPE, "value: unknown kind, got %u; expected TN_VALUE_*",
                       value->kind);
    if (is_text(value)) {
        if (!value->as.s)
            return tn_fail(TN_ERR_VALUE, "%s: as.s: it is NULL; expected a text",
                           tn__value_kind_name(value->kind));
        *texts += strlen(value->as.s) + 1;
    } else if (value->kind == TN_VALUE_BYTES) {
        if (value->count && !value->as.s)
            return tn_fail(TN_ERR_VALUE, "bytes: as.s: it is NULL; expected %u bytes",
                           value->count);
        *texts += value->count + (size_t)1;
    } else if (value->kind == TN_VALUE_TENSOR && !value->as.tensor) {
        return tn_error_null("tensor among the values");
    } else if (value->kind == TN_VALUE_MODULE && !value->as.module) {
        return tn_error_null("module among the values");
    } else if (value->kind == TN_VALUE_COMPLEX && !tn__value_complex_ok(value)) {
        return tn_fail(TN_ERR_VALUE,
                       "value of kind complex: wrong parts; expected a list of two values of kind "
                       "FLOAT");
    } else if (is_row(value)) {
        tn_status status = value->kind == TN_VALUE_DICT ? tn__value_check_dict(value) : TN_OK;
        if (status != TN_OK)
            return status;
        if (value->count && !value->as.list)
            return tn_fail(TN_ERR_VALUE, "%s: as.list: it is NULL; expected %u values",
                           tn__value_kind_name(value->kind), value->count);
        *lists += value->count * sizeof(tn_value);
        for (uint32_t i = 0; i < value->count; i++) {
            status = measure(&value->as.list[i], depth + 1, lists, texts);
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

/* Quotes a string as Python does: with single quotes, unless the string contains single quotes but
 * no double quotes. */
static void put_string(tn__text *text, const char *string)
{
    tn__text_quote(text, strchr(string, '\'') && !strchr(string, '"') ? '"' : '\'', string);
}

/* Prints a complex number: 1.0+2.0j, or 2.0j if the real part is +0.0 and the imaginary part is
 * finite. The imaginary part always has a sign if a real part precedes it, so that the text reads
 * back as the same two parts. */
static void print_complex(double re, double im, tn__text *text)
{
    bool plain = re == 0 && !signbit(re) && isfinite(im);

    if (!plain)
        tn__text_add(text, signbit(im) && !isnan(im) ? "%g" : "%g+", re);
    tn__text_add(text, "%gj", im);
}

static void print(const tn_value *value, int depth, tn__text *text)
{
    bool tuple = value->kind == TN_VALUE_TUPLE, dict = value->kind == TN_VALUE_DICT;

    switch (value->kind) {
    case TN_VALUE_NONE: put(text, "None"); break;
    case TN_VALUE_BOOL: put(text, value->as.i ? "True" : "False"); break;
    case TN_VALUE_INT: tn__text_add(text, "%lld", (long long)value->as.i); break;
    case TN_VALUE_UINT: tn__text_add(text, "%llu", (unsigned long long)value->as.u); break;
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
    case TN_VALUE_DICT:
        if (depth > DEPTH_MAX) {
            put(text, "...");
            break;
        }
        put(text, tuple ? "(" : dict ? "{" : "[");
        for (uint32_t i = 0; i < value->count; i++) {
            if (i > 0)
                put(text, dict && i % 2 != 0 ? ": " : ", ");
            print(&value->as.list[i], depth + 1, text);
        }
        put(text, tuple ? value->count == 1 ? ",)" : ")" : dict ? "}" : "]");
        break;
    default: /* values that have no textual form in specs */
        tn__text_add(text, "<%s>", tn__value_kind_name(value->kind));
        break;
    }
}

void tn__value_print(const tn_value *value, tn__text *text)
{
    print(value, 0, text);
}
