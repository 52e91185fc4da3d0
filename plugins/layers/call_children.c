/* SPDX-License-Identifier: MIT
 *
 * Helpers for layers that make and call children: children from specs, the arguments of a call by
 * position or name. The options of a layer are a table in its own file. */
#include "helpers.h"

#include <string.h>

/* ---- building ---- */

const char *layers_truth(bool value)
{
    return value ? "True" : "False";
}

tn_status layers_child(tn_module *self, const char *name, const char *format, ...)
{
    tn_module *part;
    tn_status status;
    va_list args;

    va_start(args, format);
    part = tn_module_newv(format, args);
    va_end(args);
    status = part == NULL ? tn_error_prefix("%s: %s: ", tn_module_type(self), name)
                          : tn_module_add_child(self, name, part);
    tn_module_drop(part);
    return status;
}

tn_status layers_child_value(tn_module *self, const char *name, const tn_value *value)
{
    tn_module *part = layers_module(value);
    tn_status status = part == NULL ? tn_error_prefix("%s: %s: ", tn_module_type(self), name)
                                    : tn_module_add_child(self, name, part);

    tn_module_drop(part);
    return status;
}

tn_module *layers_module(const tn_value *value)
{
    if (value->kind == TN_VALUE_SPEC)
        return tn_module_parse(value->as.s);
    if (value->kind == TN_VALUE_MODULE)
        return tn_module_keep(value->as.module);
    tn_fail(TN_ERR_TYPE, "module: wrong type, got %s; expected a module, as in Linear(4, 3)",
            tn_value_kind_name(value->kind));
    return NULL;
}

int64_t layers_no_words(tn_module *self, char *out, size_t size)
{
    (void)self;
    return tn_snprint(out, size, "%s", "");
}

/* ---- calling ---- */

static tn_status unknown_name(const char *type, const char *name, const char *const *names,
                              int64_t count)
{
    char known[256] = "";
    int64_t used = 0;

    for (int64_t i = 0; i < count && used < (int64_t)sizeof known; i++)
        used += tn_snprint(known + used, sizeof known - (size_t)used, "%s%s", i > 0 ? ", " : "",
                           names[i]);
    return tn_fail(TN_ERR_TYPE, "%s: argument %q: unknown name; expected one of %s", type, name,
                   known);
}

/* Arguments that are absent get kind TN_VALUE_NONE. */
tn_status layers_take(tn_module *self, const tn_pack *input, const char *const *names,
                      int64_t count, tn_value *values)
{
    const char *type = tn_module_type(self);
    int64_t positional = tn_pack_positional(input), given = tn_pack_count(input);

    memset(values, 0, (size_t)count * sizeof *values);
    if (positional > count)
        return tn_fail(TN_ERR_TYPE, "%s: inputs: too many, got %lld; expected at most %lld", type,
                       (long long)positional, (long long)count);
    for (int64_t i = 0; i < given; i++) {
        int64_t at = i;

        if (i >= positional)
            for (at = 0; at < count && strcmp(names[at], tn_pack_name(input, i)) != 0;)
                at++;
        if (at == count)
            return unknown_name(type, tn_pack_name(input, i), names, count);
        if (i >= positional && at < positional)
            return tn_fail(TN_ERR_TYPE, "%s: argument %q: given twice; expected once", type,
                           names[at]);
        values[at] = tn_pack_at(input, i);
    }
    return TN_OK;
}

tn_status layers_tensor_of(tn_module *self, const char *name, const tn_value *value,
                           tn_tensor **out)
{
    if (value->kind == TN_VALUE_NONE)
        return tn_fail(TN_ERR_TYPE, "%s: %s: missing; expected a tensor", tn_module_type(self),
                       name);
    if (value->kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE, "%s: %s: wrong type, got %s; expected a tensor",
                       tn_module_type(self), name, tn_value_kind_name(value->kind));
    *out = value->as.tensor;
    return TN_OK;
}

tn_status layers_flag_of(tn_module *self, const char *name, const tn_value *value, bool *out)
{
    if (value->kind != TN_VALUE_BOOL && value->kind != TN_VALUE_NONE)
        return tn_fail(TN_ERR_TYPE, "%s: %s: wrong type, got %s; expected True or False",
                       tn_module_type(self), name, tn_value_kind_name(value->kind));
    *out = value->kind == TN_VALUE_BOOL && value->as.i != 0;
    return TN_OK;
}

tn_tensor *layers_call(tn_module *part, tn_tensor *const *in, int64_t n_in,
                       const char *const *names, const tn_value *values, int64_t count)
{
    tn_pack *input, *output;
    tn_tensor *y = NULL;
    tn_status status;

    for (int64_t i = 0; i < n_in; i++)
        if (in[i] == NULL)
            return NULL;
    if (part == NULL)
        return NULL;
    input = tn_pack_new();
    output = tn_pack_new();
    status = input == NULL || output == NULL ? tn_error_last_code() : TN_OK;
    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        status = tn_pack_add(input, NULL, tn_value_tensor(in[i]));
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        if (values[i].kind != TN_VALUE_NONE)
            status = tn_pack_add(input, names[i], values[i]);
    if (status == TN_OK)
        status = tn_module_call_pack(part, input, output);
    if (status == TN_OK)
        y = tn_pack_tensor(output, 0);
    if (y != NULL)
        y = tn_tensor_to_scope(tn_keep(y));
    tn_pack_drop(input);
    tn_pack_drop(output);
    return y;
}

tn_status layers_give(tn_pack *output, tn_tensor *y)
{
    return y == NULL ? tn_error_last_code() : tn_pack_add(output, NULL, tn_value_tensor(y));
}
