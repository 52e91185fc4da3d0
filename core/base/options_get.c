/* SPDX-License-Identifier: MIT
 *
 * Reads one option of an option struct as a value, as a spec could give it. */
#include "core/base/internal.h"
#include "core/base/dtype.h"

/* Adds a row of integers or numbers as a tuple, or as the list that it was written as. */
static tn_status add_row(tn_pack *out, const tn_option *option, const tn_ints *row, bool ints)
{
    const double *numbers = ((const tn_floats *)(const void *)row)->at;
    tn_value *list, value;
    tn_status status;

    if (row->count < 0)
        return tn_pack_add(out, option->name, tn_value_none());
    list = tn_malloc((size_t)(row->count > 0 ? row->count : 1) * sizeof *list);
    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < row->count; i++)
        list[i] = ints ? tn_value_int(row->at[i]) : tn_value_float(numbers[i]);
    value = tn_value_tuple(list, (uint32_t)row->count);
    if ((option->flags & TN_OPTION_LISTS) != 0 && ((const tn_ints_given *)(const void *)row)->list)
        value.kind = TN_VALUE_LIST;
    status = tn_pack_add(out, option->name, value);
    tn_free(list);
    return status;
}

static tn_status add_scalar(tn_pack *out, const char *name, const tn_scalar *scalar)
{
    tn_value parts[2] = { tn_value_float(scalar->as.c[0]), tn_value_float(scalar->as.c[1]) };
    tn_value value = tn_value_tuple(parts, 2);

    switch (scalar->kind) {
    case TN_SCALAR_BOOL: value = tn_value_bool(scalar->as.i != 0); break;
    case TN_SCALAR_INT: value = tn_value_int(scalar->as.i); break;
    case TN_SCALAR_FLOAT: value = tn_value_float(scalar->as.f); break;
    case TN_SCALAR_COMPLEX: value.kind = TN_VALUE_COMPLEX; break;
    case TN_SCALAR_UINT: value = tn_value_uint(scalar->as.u); break;
    default: value = tn_value_none(); break;
    }
    return tn_pack_add(out, name, value);
}

tn_status tn__options_get(const tn_option *row, const void *data, tn_pack *out)
{
    const void *from = (const char *)data + row->offset;
    bool optional = (row->flags & TN_OPTION_OPTIONAL) != 0;
    tn_value value = tn_value_none();

    switch (row->kind) {
    case TN_OPTION_KIND_BOOL: value = tn_value_bool(*(const bool *)from); break;
    case TN_OPTION_KIND_INT:
        if (!optional || *(const int64_t *)from != INT64_MIN)
            value = tn_value_int(*(const int64_t *)from);
        break;
    case TN_OPTION_KIND_FLOAT:
        if (!optional || *(const double *)from == *(const double *)from)
            value = tn_value_float(*(const double *)from);
        break;
    case TN_OPTION_KIND_STRING:
        if (*(const char *const *)from != NULL)
            value = tn_value_string(*(const char *const *)from);
        break;
    case TN_OPTION_KIND_INTS: return add_row(out, row, from, true);
    case TN_OPTION_KIND_FLOATS: return add_row(out, row, from, false);
    case TN_OPTION_KIND_DTYPE:
        if (*(const tn_dtype *)from != TN_DTYPE_AUTO)
            value = tn_value_string(tn_dtype_name(*(const tn_dtype *)from));
        break;
    case TN_OPTION_KIND_SCALAR: return add_scalar(out, row->name, from);
    default: value = *(const tn_value *)from; break;
    }
    return tn_pack_add(out, row->name, value);
}
