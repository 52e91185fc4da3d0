/* SPDX-License-Identifier: MIT
 *
 * Integers of the host. Programs of ONNX compute shapes with tensors of int64; here an integer
 * stands for one without dimensions, and a list of integers for one with one dimension, so that
 * shapes need no work of a device, and a script can be made of the program. */
#include "program.h"

#include <string.h>

enum { NUMBERS_MOST = 1 << 24 }; /* elements of a tensor that is read as numbers */

/* Integers, or truths, which comparisons of integers give. */
static bool is_host(const tn_value *value)
{
    if (value->kind != TN_VALUE_LIST)
        return value->kind == TN_VALUE_INT || value->kind == TN_VALUE_BOOL;
    for (uint32_t i = 0; i < value->count; i++)
        if (value->as.list[i].kind != value->as.list[0].kind ||
            (value->as.list[i].kind != TN_VALUE_INT && value->as.list[i].kind != TN_VALUE_BOOL))
            return false;
    return true;
}

tn_status host_tensor(tn_value *value)
{
    int64_t one = value->as.i, *numbers = &one, count = 1;
    bool list = value->kind == TN_VALUE_LIST, truths;
    tn_tensor *made;

    if (!is_host(value))
        return TN_OK;
    if (list) {
        count = value->count;
        numbers = tn_calloc((size_t)count + 1, sizeof *numbers);
        if (numbers == NULL)
            return TN_ERR_MEMORY;
        for (int64_t i = 0; i < count; i++)
            numbers[i] = value->as.list[i].as.i;
    }
    truths = list && count > 0 ? value->as.list[0].kind == TN_VALUE_BOOL
                               : value->kind == TN_VALUE_BOOL;
    made = tn_tensor_from(numbers, TN_I64, (tn_ints){ &count, list ? 1 : 0 });
    if (truths && made != NULL)
        made = tn_cast(made, TN_BOOL);
    if (list)
        tn_free(numbers);
    *value = tn_value_tensor(made);
    return made != NULL ? TN_OK : tn_error_last_code();
}

/* An element of memory as a number. */
static tn_value number_at(tn_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case TN_I64: return tn_value_int(((const int64_t *)data)[i]);
    case TN_I32: return tn_value_int(((const int32_t *)data)[i]);
    case TN_I16: return tn_value_int(((const int16_t *)data)[i]);
    case TN_I8: return tn_value_int(((const int8_t *)data)[i]);
    case TN_U8: return tn_value_int(((const uint8_t *)data)[i]);
    case TN_BOOL: return tn_value_bool(((const uint8_t *)data)[i] != 0);
    case TN_F32: return tn_value_float((double)((const float *)data)[i]);
    default: return tn_value_float(((const double *)data)[i]);
    }
}

tn_status host_numbers(tn_rule_call *call, tn_value *value)
{
    static const uint64_t known = TN_MASK_INT | TN_BIT(TN_BOOL) | TN_BIT(TN_F32) | TN_BIT(TN_F64);
    tn_tensor *tensor = value->as.tensor;
    tn_dtype dtype;
    int64_t count;
    void *data;
    tn_value *items;
    tn_status status;

    if (value->kind != TN_VALUE_TENSOR)
        return TN_OK;
    count = tn_tensor_numel(tensor);
    if (tn_tensor_ndim(tensor) > 1 || count > NUMBERS_MOST)
        return rule_fail(call, TN_ERR_VALUE,
                         "numbers: a tensor with %d dimensions and %lld elements; expected at most "
                         "one dimension, and %d elements",
                         (int)tn_tensor_ndim(tensor), (long long)count, NUMBERS_MOST);
    if ((TN_BIT(tn_tensor_dtype(tensor)) & known) == 0)
        tensor = tn_cast(tensor, TN_F64);
    if (tensor == NULL)
        return rule_give(call, NULL);
    dtype = tn_tensor_dtype(tensor);
    data = rule_memory(call, count, tn_dtype_size(dtype));
    items = rule_memory(call, count, sizeof *items);
    if (data == NULL || items == NULL)
        return call->status;
    status = tn_tensor_copy_out(tensor, data, (size_t)count * tn_dtype_size(dtype));
    if (status != TN_OK)
        return rule_give(call, NULL);
    for (int64_t i = 0; i < count; i++)
        items[i] = number_at(dtype, data, i);
    *value = tn_tensor_ndim(tensor) == 0 ? items[0] : tn_value_list(items, (uint32_t)count);
    return TN_OK;
}

/* ---- values that are such in any case -------------------------------------------------------- */

static bool is_number(const struct program *program, const struct arg *arg)
{
    if (arg->kind == ARG_LIST) {
        for (int64_t i = 0; i < arg->count; i++)
            if (!is_number(program, &arg->as.list[i]))
                return false;
        return true;
    }
    return arg->kind == ARG_CONSTANT ||
           (arg->kind == ARG_VALUE && program->main.values[arg->as.value].kind == VALUE_NUMBER);
}

void host_find(struct program *program)
{
    for (int64_t i = 0; i < program->main.n_nodes; i++) {
        const struct node *node = &program->main.nodes[i];
        uint32_t host = node->rule != NULL ? node->rule->rule->host : TN_RULE_HOST_NEVER;
        bool all = host == TN_RULE_HOST_KEEPS;

        for (int64_t k = 0; k < node->n_args && all; k++)
            all = is_number(program, &node->args[k]);
        if (!all && host != TN_RULE_HOST_ALWAYS)
            continue;
        for (int64_t k = 0; k < node->n_results; k++)
            if (node->results[k].value >= 0)
                program->main.values[node->results[k].value].kind = VALUE_NUMBER;
    }
}
