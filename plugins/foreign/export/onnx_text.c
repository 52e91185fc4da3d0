/* SPDX-License-Identifier: MIT
 *
 * Rules that are texts: "Mul(x, Sigmoid(x))", "LeakyRelu(x, alpha=negative_slope)". A word is an
 * input of the operator, or an option, which becomes a number of the dtype of the inputs. After the
 * inputs come attributes, whose values are options, numbers or words in quotes. */
#include "export/onnx.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 60 };

struct text {
    struct onnx_call *call;
    const char *at;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void skip(struct text *t)
{
    t->at += strspn(t->at, " ,");
}

static void read_word(struct text *t, char *out)
{
    size_t length = 0;

    while (is_word(t->at[length]) && length < WORD - 1)
        length++;
    memcpy(out, t->at, length);
    out[length] = '\0';
    t->at += length;
}

static const tn_option *option_of(const struct onnx_call *call, const char *name)
{
    for (const tn_option *row = call->def->options; row != NULL && row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* An option as a number without dimensions. */
static const struct onnx_value *option_value(struct onnx_call *call, const char *name)
{
    const tn_option *row = option_of(call, name);
    const void *at = row != NULL ? (const char *)call->options + row->offset : NULL;
    tn_dtype dtype = call->compute != TN_DTYPE_AUTO ? call->compute : call->meta.dtype;

    if (row != NULL && row->kind == TN_OPTION_KIND_SCALAR)
        return onnx_make_scalar(call, *(const tn_scalar *)at, dtype);
    if (row != NULL && row->kind == TN_OPTION_KIND_FLOAT)
        return onnx_make_number(call, *(const double *)at, dtype);
    if (row != NULL && row->kind == TN_OPTION_KIND_INT)
        return onnx_make_number(call, (double)*(const int64_t *)at, dtype);
    onnx_make_fail(call, "its rule has a word that is neither an input nor an option");
    return NULL;
}

/* An attribute with the value of an option or a number. */
static void attribute(struct text *t, const char *name)
{
    struct onnx_call *call = t->call;
    char word[WORD], *end;
    const tn_option *row;
    const void *at;

    if ((*t->at >= '0' && *t->at <= '9') || *t->at == '-') {
        double number = strtod(t->at, &end);

        if (memchr(t->at, '.', (size_t)(end - t->at)) != NULL)
            onnx_make_float(call, name, number);
        else
            onnx_make_int(call, name, (int64_t)number);
        t->at = end;
        return;
    }
    if (*t->at == '\'') {
        t->at++;
        read_word(t, word);
        t->at++;
        onnx_make_word(call, name, word);
        return;
    }
    read_word(t, word);
    row = option_of(call, word);
    at = row != NULL ? (const char *)call->options + row->offset : NULL;
    if (row == NULL)
        onnx_make_fail(call, "its rule has an attribute that is no option");
    else if (row->kind == TN_OPTION_KIND_FLOAT)
        onnx_make_float(call, name, *(const double *)at);
    else if (row->kind == TN_OPTION_KIND_INT)
        onnx_make_int(call, name, *(const int64_t *)at);
    else if (row->kind == TN_OPTION_KIND_BOOL)
        onnx_make_int(call, name, *(const bool *)at);
    else if (row->kind == TN_OPTION_KIND_STRING)
        onnx_make_word(call, name, *(const char *const *)at);
    else
        onnx_make_fail(call,
                       "its rule has an attribute of another kind; expected a number or a text");
}

static const struct onnx_value *value(struct text *t);

/* A node, after its name and the bracket. */
static const struct onnx_value *node(struct text *t, const char *op)
{
    const char *copy = arena_text(&t->call->model->arena, op, strlen(op));

    onnx_make_begin(t->call, copy != NULL ? copy : "", 1);
    for (skip(t); *t->at != ')' && *t->at != '\0'; skip(t)) {
        const char *before = t->at;
        char word[WORD];

        read_word(t, word);
        if (*t->at == '=') {
            t->at++;
            attribute(t, word);
            continue;
        }
        t->at = before;
        onnx_make_add(t->call, value(t));
    }
    t->at += *t->at == ')';
    return onnx_make_end(t->call);
}

static const struct onnx_value *value(struct text *t)
{
    struct onnx_call *call = t->call;
    tn_dtype dtype = call->compute != TN_DTYPE_AUTO ? call->compute : call->meta.dtype;
    char word[WORD], *end;

    if ((*t->at >= '0' && *t->at <= '9') || *t->at == '-') {
        double number = strtod(t->at, &end);

        t->at = end;
        return onnx_make_number(call, number, dtype);
    }
    read_word(t, word);
    if (*t->at == '(') {
        t->at++;
        return node(t, word);
    }
    if (word[0] == '\0') {
        onnx_make_fail(call, "its rule cannot be read");
        t->at += *t->at != '\0';
        return NULL;
    }
    for (int32_t i = 0; i < call->def->n_inputs; i++)
        if (strcmp(call->def->inputs[i].name, word) == 0)
            return onnx_make_in(call, word);
    return option_value(call, word);
}

void onnx_text_write(struct onnx_call *call, const struct onnx_rule *rule)
{
    struct text t = { call, rule->text };

    onnx_make_opset(call, rule->opset);
    onnx_make_give(call, 0, value(&t));
}
