/* SPDX-License-Identifier: MIT
 *
 * Rules for sequences, which are lists of tensors, and for optional values. */
#include "onnx/onnx_rules.h"
#include "rules_bound.h"

/* The sequence of an argument. */
static const tn_value *sequence(tn_rule_call *call, const char *name)
{
    static const tn_value empty = { .kind = TN_VALUE_LIST };
    const tn_value *value = rule_value(call, name);

    if (value->kind == TN_VALUE_LIST)
        return value;
    rule_fail(call, TN_ERR_TYPE, "%s: wrong kind, got %s; expected a sequence", name,
              tn_value_kind_name(value->kind));
    return &empty;
}

/* Gives a sequence of the items, which must be tensors. If a sequence could contain sequences, the
 * size of a value could double with each node, and a short file could fill the memory. */
static tn_status give_list(tn_rule_call *call, const tn_value *items, int64_t count)
{
    tn_value *copy = rule_memory(call, count, sizeof *copy);

    for (int64_t i = 0; i < count && copy != NULL; i++) {
        copy[i] = items[i];
        if (host_tensor(&copy[i]) != TN_OK)
            return rule_give(call, NULL);
        if (copy[i].kind != TN_VALUE_TENSOR)
            return rule_fail(call, TN_ERR_TYPE,
                             "a sequence: wrong element, got %s; expected a tensor",
                             tn_value_kind_name(copy[i].kind));
    }
    return copy != NULL ? rule_give_value(call, tn_value_list(copy, (uint32_t)count))
                        : call->status;
}

static tn_status construct(tn_rule_call *call)
{
    const tn_value *inputs = rule_value(call, "inputs");

    return give_list(call, inputs->as.list, inputs->count);
}

static tn_status empty(tn_rule_call *call)
{
    return rule_give_value(call, tn_value_list(NULL, 0));
}

/* A place from 0 on; at most `most`. */
static int64_t place(tn_rule_call *call, int64_t count, int64_t most, int64_t other)
{
    int64_t at = rule_has(call, "position") ? rule_int(call, "position") : other;

    at += at < 0 ? count : 0;
    if (call->status == TN_OK && at >= 0 && at <= most)
        return at;
    rule_fail(call, TN_ERR_INDEX, "position: out of range, got %lld; expected %lld to %lld",
              (long long)at, (long long)-count, (long long)most);
    return 0;
}

static tn_status sequence_at(tn_rule_call *call)
{
    const tn_value *list = sequence(call, "input_sequence");
    int64_t at = place(call, list->count, (int64_t)list->count - 1, 0);

    return call->status == TN_OK ? rule_give_value(call, list->as.list[at]) : call->status;
}

static tn_status insert(tn_rule_call *call)
{
    const tn_value *list = sequence(call, "input_sequence");
    int64_t n = list->count, at = place(call, n, n, n);
    tn_tensor *tensor = rule_tensor(call, "tensor");
    tn_value *items = rule_memory(call, n + 1, sizeof *items);

    for (int64_t i = 0; i <= n && items != NULL && tensor != NULL; i++)
        items[i] = i == at ? tn_value_tensor(tensor) : list->as.list[i - (i > at)];
    return call->status == TN_OK ? give_list(call, items, n + 1) : call->status;
}

static tn_status erase(tn_rule_call *call)
{
    const tn_value *list = sequence(call, "input_sequence");
    int64_t n = list->count, at = place(call, n, n - 1, n - 1);
    tn_value *items = rule_memory(call, n, sizeof *items);

    for (int64_t i = 0; i + 1 < n && items != NULL; i++)
        items[i] = list->as.list[i + (i >= at)];
    return call->status == TN_OK ? give_list(call, items, n - 1) : call->status;
}

static tn_status length(tn_rule_call *call)
{
    int64_t count = sequence(call, "input_sequence")->count;

    return call->status == TN_OK ? onnx_give_host(call, &count, -1) : call->status;
}

static tn_status concat(tn_rule_call *call)
{
    int64_t count, axis = rule_int(call, "axis");
    tn_tensor **in = rule_tensors(call, "input_sequence", &count);

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, rule_int(call, "new_axis") != 0 ? tn_stack(in, count, axis)
                                                           : tn_cat(in, count, axis));
}

/* Parts of one size, or of the sizes in a list; without both, single elements. */
static tn_status split(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), **out;
    int64_t dim = rule_axis(call, "axis", x), whole, count, at = 0;
    bool single = !rule_has(call, "split"), keep = !single || rule_int(call, "keepdims") != 0;
    bool list = !single &&
                (rule_value(call, "split")->kind == TN_VALUE_LIST ||
                 (rule_is_tensor(call, "split") && tn_tensor_ndim(rule_tensor(call, "split")) > 0));
    tn_ints sizes = single ? tn_no_ints() : rule_ints(call, "split");

    if (call->status != TN_OK)
        return call->status;
    whole = tn_tensor_size(x, dim);
    if (!single && !list && (sizes.count != 1 || sizes.at[0] < 1))
        return rule_fail(call, TN_ERR_VALUE, "split: expected a size of at least 1");
    count = single ? whole : list ? sizes.count : whole / sizes.at[0] + (whole % sizes.at[0] != 0);
    out = rule_memory(call, count, sizeof *out);
    for (int64_t i = 0; i < count && out != NULL; i++) {
        int64_t size = single ? 1 : list ? sizes.at[i] : sizes.at[0];

        if (!list && size > whole - at)
            size = whole - at;
        if (size < 0 || size > whole - at)
            return rule_fail(call, TN_ERR_VALUE, "split: sizes beyond %lld", (long long)whole);
        out[i] = keep ? tn_narrow(x, dim, at, size) : tn_select(x, dim, at);
        if (out[i] == NULL)
            return rule_give(call, NULL);
        at += size;
    }
    return out != NULL ? rule_give_list(call, out, count) : call->status;
}

/* ---- optional values ------------------------------------------------------------------------- */

static tn_status optional(tn_rule_call *call)
{
    return rule_give_value(call, *rule_value(call, "input"));
}

static tn_status get_element(tn_rule_call *call)
{
    if (!rule_has(call, "input"))
        return rule_fail(call, TN_ERR_VALUE, "input: None; expected a value");
    return rule_give_value(call, *rule_value(call, "input"));
}

static tn_status has_element(tn_rule_call *call)
{
    return rule_give(
        call, tn_full(TN_NONE, TN_SCALAR_SHAPE, tn_scalar_bool(rule_has(call, "input")), TN_BOOL));
}

const tn_rule_def onnx_rules_sequences[] = {
    { "SequenceConstruct(*inputs)", .call = construct },
    { "SequenceEmpty(dtype=*)", .call = empty },
    { "SequenceAt(input_sequence, position)", .call = sequence_at },
    { "SequenceInsert(input_sequence, tensor, position=None)", .call = insert },
    { "SequenceErase(input_sequence, position=None)", .call = erase },
    { "SequenceLength(input_sequence)", .call = length, .host = TN_RULE_HOST_ALWAYS },
    { "ConcatFromSequence(input_sequence, axis, new_axis=0)", .call = concat },
    { "SplitToSequence(input, split=None, axis=0, keepdims=1)", .call = split },
    { "Optional(input=None, type=*)", .call = optional },
    { "OptionalGetElement(input=None)", .call = get_element },
    { "OptionalHasElement(input=None)", .call = has_element },
    { .function = NULL },
};
