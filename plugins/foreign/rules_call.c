/* SPDX-License-Identifier: MIT
 *
 * A call of a rule: its arguments, its results, and what C functions of rules need (rules.h). */
#include "rules_bound.h"

#include <stdarg.h>
#include <string.h>

/* ---- failures, memory ------------------------------------------------------------------------ */

tn_status rule_fail(tn_rule_call *call, tn_status code, const char *format, ...)
{
    va_list args;

    if (call->status != TN_OK)
        return call->status;
    va_start(args, format);
    call->status = tn_failv(code, format, args);
    va_end(args);
    return call->status;
}

/* Notes a failure that has been recorded. */
static tn_status failed(tn_rule_call *call)
{
    if (call->status == TN_OK)
        call->status = tn_error_last_code();
    return call->status;
}

static tn_status wrong(tn_rule_call *call, const char *name, const tn_value *value,
                       const char *expected)
{
    return rule_fail(call, TN_ERR_TYPE, "%s: wrong kind, got %s; expected %s", name,
                     tn_value_kind_name(value->kind), expected);
}

struct memory {
    struct memory *before;
    size_t unused; /* keeps the bytes aligned to 16 */
    unsigned char bytes[];
};

void *rule_memory(tn_rule_call *call, int64_t count, size_t size)
{
    size_t bytes;
    struct memory *memory;

    if (call->status != TN_OK)
        return NULL;
    if (count < 0 || __builtin_mul_overflow((uint64_t)count, size, &bytes) ||
        bytes > SIZE_MAX / 2) {
        rule_fail(call, TN_ERR_VALUE, "%lld elements are too many", (long long)count);
        return NULL;
    }
    memory = tn_calloc(1, sizeof *memory + bytes + 1);
    if (memory == NULL) {
        failed(call);
        return NULL;
    }
    memory->before = call->memory;
    call->memory = memory;
    return memory->bytes;
}

void rules_call_end(tn_rule_call *call)
{
    struct memory *memory = call->memory;

    while (memory != NULL) {
        struct memory *before = memory->before;

        tn_free(memory);
        memory = before;
    }
    call->memory = NULL;
    call->results = NULL;
}

/* ---- arguments ------------------------------------------------------------------------------- */

const tn_value *rule_value(tn_rule_call *call, const char *name)
{
    static const tn_value none = { 0 };

    for (int64_t i = 0; i < call->count; i++)
        if (strcmp(call->names[i], name) == 0)
            return &call->values[i];
    rule_fail(call, TN_ERR_RUNTIME, "the rule has no argument %q", name);
    return &none;
}

/* An argument of ONNX as a tensor, or as numbers, where it is the other. */
static const tn_value *converted(tn_rule_call *call, const char *name, bool to_tensor)
{
    const tn_value *value = rule_value(call, name);
    tn_value *copy;

    if (!call->host || (value->kind == TN_VALUE_TENSOR) == to_tensor || call->status != TN_OK)
        return value;
    copy = rule_memory(call, 1, sizeof *copy);
    if (copy == NULL)
        return value;
    *copy = *value;
    if ((to_tensor ? host_tensor(copy) : host_numbers(call, copy)) != TN_OK)
        failed(call);
    return copy;
}

/* A number where the argument is a list of one. */
static const tn_value *number(tn_rule_call *call, const char *name)
{
    const tn_value *value = converted(call, name, false);

    return call->host && value->kind == TN_VALUE_LIST && value->count == 1 ? value->as.list : value;
}

bool rule_has(tn_rule_call *call, const char *name)
{
    return rule_value(call, name)->kind != TN_VALUE_NONE;
}

bool rule_is_tensor(tn_rule_call *call, const char *name)
{
    return rule_value(call, name)->kind == TN_VALUE_TENSOR;
}

tn_tensor *rule_tensor(tn_rule_call *call, const char *name)
{
    const tn_value *value = converted(call, name, true);

    if (value->kind == TN_VALUE_TENSOR)
        return value->as.tensor;
    wrong(call, name, value, "a tensor");
    return NULL;
}

tn_tensor *rule_optional(tn_rule_call *call, const char *name)
{
    return rule_has(call, name) ? rule_tensor(call, name) : TN_NONE;
}

bool rules_scalar(const tn_value *value, tn_scalar *out)
{
    switch (value->kind) {
    case TN_VALUE_BOOL: *out = tn_scalar_bool(value->as.i != 0); return true;
    case TN_VALUE_INT: *out = tn_scalar_int(value->as.i); return true;
    case TN_VALUE_FLOAT: *out = tn_scalar_float(value->as.f); return true;
    case TN_VALUE_COMPLEX:
        *out = tn_scalar_complex(value->as.list[0].as.f, value->as.list[1].as.f);
        return true;
    default: return false;
    }
}

/* The category of a dtype in promotion: bool, integer, floating, complex. */
static int category(tn_dtype dtype)
{
    return dtype == TN_BOOL                         ? 0
           : (TN_BIT(dtype) & TN_MASK_COMPLEX) != 0 ? 3
           : (TN_BIT(dtype) & TN_MASK_FLOAT) != 0   ? 2
                                                    : 1;
}

tn_tensor *rules_number(const tn_value *value, const tn_tensor *like)
{
    static const tn_dtype own[] = { TN_BOOL, TN_I64, TN_F32, TN_C64 };
    tn_scalar scalar;
    int kind;
    tn_dtype dtype;

    if (!rules_scalar(value, &scalar)) {
        tn_fail(TN_ERR_TYPE, "wrong kind, got %s; expected a number",
                tn_value_kind_name(value->kind));
        return NULL;
    }
    kind = value->kind == TN_VALUE_BOOL ? 0 : value->kind == TN_VALUE_INT ? 1 : 2;
    kind = value->kind == TN_VALUE_COMPLEX ? 3 : kind;
    dtype = kind == 2 ? tn_default_dtype() : own[kind];
    if (like != NULL && category(tn_tensor_dtype(like)) >= kind)
        dtype = tn_tensor_dtype(like);
    else if (like != NULL && kind == 3 && tn_tensor_dtype(like) == TN_F64)
        dtype = TN_C128;
    return (tn_full)(like != NULL ? (tn_tensor *)like : TN_NONE, tn_no_ints(), scalar, dtype);
}

tn_tensor *rule_operand(tn_rule_call *call, const char *name, const tn_tensor *like)
{
    const tn_value *value = rule_value(call, name);
    tn_tensor *tensor;

    if (value->kind == TN_VALUE_TENSOR)
        return value->as.tensor;
    if (call->status != TN_OK)
        return NULL;
    tensor = rules_number(value, like);
    if (tensor == NULL)
        failed(call);
    return tensor;
}

tn_tensor **rule_tensors(tn_rule_call *call, const char *name, int64_t *count)
{
    const tn_value *value = rule_value(call, name);
    tn_tensor **tensors;

    *count = 0;
    if (value->kind != TN_VALUE_LIST) {
        wrong(call, name, value, "a list of tensors");
        return NULL;
    }
    tensors = rule_memory(call, value->count, sizeof(tn_tensor *));
    for (uint32_t i = 0; i < value->count && tensors != NULL; i++) {
        tn_value item = value->as.list[i];

        if (call->host && host_tensor(&item) != TN_OK) {
            failed(call);
            return NULL;
        }
        if (item.kind != TN_VALUE_TENSOR && item.kind != TN_VALUE_NONE) {
            wrong(call, name, &item, "a list of tensors");
            return NULL;
        }
        tensors[i] = item.kind == TN_VALUE_TENSOR ? item.as.tensor : TN_NONE;
    }
    *count = tensors != NULL ? value->count : 0;
    return tensors;
}

int64_t rule_int(tn_rule_call *call, const char *name)
{
    const tn_value *value = number(call, name);

    if (value->kind == TN_VALUE_INT || value->kind == TN_VALUE_BOOL)
        return value->as.i;
    wrong(call, name, value, "an integer");
    return 0;
}

double rule_float(tn_rule_call *call, const char *name)
{
    const tn_value *value = number(call, name);

    if (value->kind == TN_VALUE_FLOAT)
        return value->as.f;
    if (value->kind == TN_VALUE_INT || value->kind == TN_VALUE_BOOL)
        return (double)value->as.i;
    wrong(call, name, value, "a number");
    return 0.0;
}

bool rule_bool(tn_rule_call *call, const char *name)
{
    const tn_value *value = number(call, name);

    if (value->kind == TN_VALUE_BOOL || value->kind == TN_VALUE_INT)
        return value->as.i != 0;
    wrong(call, name, value, "a bool");
    return false;
}

tn_scalar rule_scalar(tn_rule_call *call, const char *name)
{
    const tn_value *value = number(call, name);
    tn_scalar scalar = tn_scalar_none();

    if (!rules_scalar(value, &scalar))
        wrong(call, name, value, "a number");
    return scalar;
}

const char *rule_text(tn_rule_call *call, const char *name)
{
    const tn_value *value = rule_value(call, name);

    if (value->kind == TN_VALUE_STRING)
        return value->as.s;
    wrong(call, name, value, "a text");
    return NULL;
}

tn_dtype rule_dtype(tn_rule_call *call, const char *name)
{
    const tn_value *value = rule_value(call, name);
    tn_dtype dtype = TN_DTYPE_AUTO;

    if (value->kind == TN_VALUE_NONE)
        return TN_DTYPE_AUTO;
    if (value->kind != TN_VALUE_STRING)
        wrong(call, name, value, "a dtype");
    else if (call->status == TN_OK && tn_dtype_parse(value->as.s, &dtype) != TN_OK)
        failed(call);
    return dtype;
}

tn_ints rule_ints(tn_rule_call *call, const char *name)
{
    const tn_value *value = converted(call, name, false);
    bool one = value->kind == TN_VALUE_INT;
    uint32_t count = one ? 1 : value->count;
    int64_t *at;

    if (value->kind == TN_VALUE_NONE)
        return (tn_ints){ NULL, -1 };
    if (!one && value->kind != TN_VALUE_LIST) {
        wrong(call, name, value, "a list of integers");
        return tn_no_ints();
    }
    at = rule_memory(call, count, sizeof *at);
    for (uint32_t i = 0; i < count && at != NULL; i++) {
        const tn_value *item = one ? value : &value->as.list[i];

        if (item->kind != TN_VALUE_INT) {
            wrong(call, name, item, "a list of integers");
            return tn_no_ints();
        }
        at[i] = item->as.i;
    }
    return at != NULL ? (tn_ints){ at, count } : tn_no_ints();
}

tn_floats rule_floats(tn_rule_call *call, const char *name)
{
    const tn_value *value = converted(call, name, false);
    double *at;

    if (value->kind == TN_VALUE_NONE)
        return tn_none_floats();
    if (value->kind != TN_VALUE_LIST) {
        wrong(call, name, value, "a list of numbers");
        return tn_no_floats();
    }
    at = rule_memory(call, value->count, sizeof *at);
    for (uint32_t i = 0; i < value->count && at != NULL; i++) {
        const tn_value *item = &value->as.list[i];

        if (item->kind != TN_VALUE_FLOAT && item->kind != TN_VALUE_INT) {
            wrong(call, name, item, "a list of numbers");
            return tn_no_floats();
        }
        at[i] = item->kind == TN_VALUE_INT ? (double)item->as.i : item->as.f;
    }
    return at != NULL ? (tn_floats){ at, value->count } : tn_no_floats();
}

int64_t rule_dim(tn_rule_call *call, const char *name, const tn_tensor *tensor)
{
    int64_t dim = rule_int(call, name);
    int64_t ndim = tensor != NULL && call->status == TN_OK ? tn_tensor_ndim(tensor) : 0;

    ndim = ndim > 0 ? ndim : 1;
    if (call->status != TN_OK || tensor == NULL)
        return 0;
    if (dim >= -ndim && dim < ndim)
        return dim < 0 ? dim + ndim : dim;
    rule_fail(call, TN_ERR_INDEX, "%s: out of range, got %lld; expected %lld to %lld", name,
              (long long)dim, (long long)-ndim, (long long)ndim - 1);
    return 0;
}

int64_t rule_axis(tn_rule_call *call, const char *name, const tn_tensor *tensor)
{
    int64_t dim = rule_dim(call, name, tensor);

    if (call->status == TN_OK && tensor != NULL && tn_tensor_ndim(tensor) == 0)
        rule_fail(call, TN_ERR_INDEX,
                  "%s: out of range, got %lld; expected a tensor with at least one dimension", name,
                  (long long)dim);
    return dim;
}

/* ---- results --------------------------------------------------------------------------------- */

tn_status rule_give_value(tn_rule_call *call, tn_value value)
{
    if (call->n_results == call->capacity) {
        int64_t capacity = 2 * call->capacity + 4;
        tn_value *more = rule_memory(call, capacity, sizeof *more);

        if (more == NULL)
            return call->status;
        if (call->n_results > 0)
            memcpy(more, call->results, (size_t)call->n_results * sizeof *more);
        call->results = more;
        call->capacity = capacity;
    }
    if (call->status == TN_OK)
        call->results[call->n_results++] = value;
    return call->status;
}

tn_status rule_give(tn_rule_call *call, tn_tensor *tensor)
{
    if (tensor == NULL)
        return failed(call);
    return rule_give_value(call, tensor == TN_NONE ? tn_value_none() : tn_value_tensor(tensor));
}

tn_status rule_give_all(tn_rule_call *call, tn_tensor *const *tensors, int64_t n)
{
    for (int64_t i = 0; i < n && call->status == TN_OK; i++)
        rule_give(call, tensors[i]);
    return call->status;
}

tn_status rule_give_list(tn_rule_call *call, tn_tensor *const *tensors, int64_t n)
{
    tn_value *items = rule_memory(call, n, sizeof *items);

    for (int64_t i = 0; i < n && items != NULL; i++) {
        if (tensors[i] == NULL)
            return failed(call);
        items[i] = tn_value_tensor(tensors[i]);
    }
    return items != NULL ? rule_give_value(call, tn_value_list(items, (uint32_t)n)) : call->status;
}

tn_status rule_give_none(tn_rule_call *call)
{
    return rule_give_value(call, tn_value_none());
}

/* ---- help for C functions -------------------------------------------------------------------- */

tn_tensor *rule_cast(tn_tensor *tensor, tn_dtype dtype)
{
    return tensor == NULL || dtype == TN_DTYPE_AUTO || tn_tensor_dtype(tensor) == dtype
               ? tensor
               : tn_cast(tensor, dtype);
}

/* Tensors without dimensions change the dtype only if they are of a higher category than the
 * others, as in PyTorch. */
tn_status rule_promote(tn_rule_call *call, tn_tensor **tensors, int64_t count)
{
    tn_dtype of[2] = { TN_DTYPE_AUTO, TN_DTYPE_AUTO }, dtype; /* of 0-d tensors, of the others */

    for (int64_t i = 0; i < count && call->status == TN_OK; i++) {
        tn_dtype *sum = tensors[i] == NULL ? NULL : &of[tn_tensor_ndim(tensors[i]) > 0];

        if (sum == NULL)
            return failed(call);
        *sum = *sum == TN_DTYPE_AUTO ? tn_tensor_dtype(tensors[i])
                                     : tn_dtype_promote(*sum, tn_tensor_dtype(tensors[i]));
        if (*sum == TN_DTYPE_AUTO)
            return failed(call);
    }
    dtype = of[1] == TN_DTYPE_AUTO ? of[0]
            : of[0] == TN_DTYPE_AUTO || category(of[1]) >= category(of[0])
                ? of[1]
                : tn_dtype_promote(of[0], of[1]);
    for (int64_t i = 0; i < count && call->status == TN_OK; i++) {
        tensors[i] = rule_cast(tensors[i], dtype);
        if (tensors[i] == NULL)
            failed(call);
    }
    return call->status;
}

tn_tensor *rule_op(tn_rule_call *call, const char *name, tn_tensor *const *in, int64_t n_in)
{
    const tn_op *op = call->status == TN_OK ? tn_op_find(name, 0) : NULL;
    tn_tensor *out = NULL;

    if (call->status == TN_OK && (op == NULL || tn_op_call(op, in, n_in, NULL, &out, 1) != TN_OK))
        failed(call);
    return out;
}

/* ---- the call -------------------------------------------------------------------------------- */

static tn_status copy_result(tn_rule_call *call, tn_value *value)
{
    bool list = value->kind == TN_VALUE_LIST;
    tn_value *items = list ? rule_memory(call, value->count, sizeof *items) : NULL;
    tn_tensor *copy;

    for (uint32_t i = 0; items != NULL && i < value->count; i++) {
        items[i] = value->as.list[i];
        copy_result(call, &items[i]);
    }
    if (items != NULL)
        *value = tn_value_list(items, value->count);
    if (value->kind != TN_VALUE_TENSOR || call->status != TN_OK)
        return call->status;
    copy = tn_copy(value->as.tensor);
    if (copy == NULL)
        return failed(call);
    *value = tn_value_tensor(copy);
    return TN_OK;
}

/* For rules whose operators give views where PyTorch's results have memory of their own. */
static tn_status copy_results(tn_rule_call *call)
{
    for (int64_t i = 0; i < call->n_results && call->status == TN_OK; i++)
        copy_result(call, &call->results[i]);
    return call->status;
}

/* The first result of a function that works in place is written to its first argument. */
static tn_status write_in_place(tn_rule_call *call)
{
    if (call->n_results == 0 || call->results[0].kind != TN_VALUE_TENSOR)
        return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                         "in place: the function has no tensor as its first result");
    if (call->results[0].as.tensor == call->into)
        return TN_OK;
    if (tn_copy_(call->into, call->results[0].as.tensor) == NULL)
        return failed(call);
    call->results[0] = tn_value_tensor(call->into);
    return TN_OK;
}

static const tn_rule_api api = {
    .value = rule_value,
    .tensor = rule_tensor,
    .optional = rule_optional,
    .operand = rule_operand,
    .tensors = rule_tensors,
    .to_int = rule_int,
    .to_float = rule_float,
    .to_bool = rule_bool,
    .scalar = rule_scalar,
    .text = rule_text,
    .dtype = rule_dtype,
    .ints = rule_ints,
    .floats = rule_floats,
    .memory = rule_memory,
    .give = rule_give,
    .give_list = rule_give_list,
    .give_value = rule_give_value,
};

tn_status rules_call_run(const struct rules_bound *bound, tn_rule_call *call)
{
    tn_status status;

    call->api = &api;
    status = bound->rule->text != NULL ? rules_text_call(bound, call) : bound->rule->call(call);

    if (status == TN_OK)
        status = call->status;
    else if (call->status == TN_OK)
        call->status = status;
    if (status != TN_OK)
        return status;
    if (call->into != NULL)
        return write_in_place(call);
    return bound->rule->copies ? copy_results(call) : TN_OK;
}
