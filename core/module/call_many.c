/* SPDX-License-Identifier: MIT
 *
 * Calling a module with several tensors, for several results. */
#include "core/module/internal.h"

/* Stores the tensors of a value in `out`: those of lists, tuples and dictionaries in their order,
 * and TN_NONE for None. Stores at most `room` tensors. Returns the number of tensors in the value;
 * -1 and sets the error, which begins with `what`, if it contains a value of another kind. */
static int64_t flatten(const char *what, const tn_value *value, tn_tensor **out, int64_t room)
{
    int64_t count = 0;

    if (value->kind == TN_VALUE_TENSOR || value->kind == TN_VALUE_NONE) {
        if (room > 0)
            out[0] = value->kind == TN_VALUE_TENSOR ? value->as.tensor : TN_NONE;
        return 1;
    }
    if (value->kind != TN_VALUE_LIST && value->kind != TN_VALUE_TUPLE &&
        value->kind != TN_VALUE_DICT) {
        tn_fail(TN_ERR_TYPE,
                "%s: wrong type, got %s; expected tensors, and lists, tuples and dicts of them "
                "(tn_module_call_pack and tn_pack_at have other values)",
                what, tn__value_kind_name(value->kind));
        return -1;
    }
    for (uint32_t i = 0; i < tn_value_size(value); i++) {
        int64_t here = flatten(what, tn_value_item(value, i), out + (count < room ? count : room),
                               room > count ? room - count : 0);
        if (here < 0)
            return -1;
        count += here;
    }
    return count;
}

/* Stores the first tensors of a pack; the scope gets references to them. Returns the number of
 * tensors in the pack, at most `count` if `all` is false; -1 and sets the error for a value of
 * another kind among them. */
static int64_t take(const char *what, const tn_pack *pack, bool all, tn_tensor **out, int64_t count)
{
    int64_t found = 0;

    for (int64_t i = 0; i < tn_pack_count(pack) && (all || found < count); i++) {
        tn_value value = tn_pack_at(pack, i);
        int64_t here = flatten(what, &value, out + (found < count ? found : count),
                               count > found ? count - found : 0);
        if (here < 0)
            return -1;
        found += here;
    }
    for (int64_t i = 0; i < count && found >= count; i++)
        if (!tn__is_none(out[i]))
            tn_tensor_to_scope(tn_tensor_keep(out[i]));
    return found;
}

static tn_status results(const tn_module *module, const tn_pack *pack, tn_tensor **outputs,
                         int64_t count)
{
    int64_t found = take("tn_module_call_many: result", pack, true, outputs, count);

    if (found < 0)
        return tn_error_last_code();
    return found >= count
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         "tn_module_call_many: outputs: too many, got %lld; %s returned %lld "
                         "tensors",
                         (long long)count, module->type, (long long)found);
}

static tn_status check_list(const char *what, const void *pack, tn_tensor *const *tensors,
                            int64_t n)
{
    if (pack == NULL || (tensors == NULL && n > 0))
        return tn__error_null_of(what, "pack, tensors", pack, tensors);
    return n >= 0 ? TN_OK
                  : tn_fail(TN_ERR_VALUE, "%s: n: out of range, got %lld; expected 0 or more", what,
                            (long long)n);
}

tn_status tn_pack_add_tensors(tn_pack *pack, tn_tensor *const *tensors, int64_t n)
{
    tn_status status = check_list("tn_pack_add_tensors", pack, tensors, n);

    for (int64_t i = 0; status == TN_OK && i < n; i++)
        if (tensors[i] == NULL)
            status = tn__tensor_bad_at(NULL, "tn_pack_add_tensors: tensors", i);
    if (status == TN_OK && n > 0 && tn_pack_positional(pack) < tn_pack_count(pack))
        status = tn_fail(TN_ERR_VALUE, "tn_pack_add_tensors: pack: has named values; expected only "
                                       "positional ones, which come first");
    for (int64_t i = 0; status == TN_OK && i < n; i++)
        status = tn_pack_add(
            pack, NULL, tn__is_none(tensors[i]) ? tn_value_none() : tn_value_tensor(tensors[i]));
    return status;
}

tn_status tn_pack_take(const tn_pack *pack, tn_tensor **tensors, int64_t n)
{
    tn_status status = check_list("tn_pack_take", pack, tensors, n);
    int64_t found;

    if (status != TN_OK)
        return status;
    found = take("tn_pack_take: value", pack, false, tensors, n);
    if (found < 0)
        status = tn_error_last_code();
    else if (found < n)
        status = tn_fail(
            TN_ERR_VALUE,
            "tn_pack_take: n: too many, got %lld; expected at most %lld, the number of tensors",
            (long long)n, (long long)found);
    for (int64_t i = 0; status != TN_OK && i < n; i++)
        tensors[i] = NULL;
    return status;
}

tn_status tn_module_call_many(tn_module *module, tn_tensor *const *inputs, int64_t n_inputs,
                              tn_tensor **outputs, int64_t n_outputs)
{
    tn_pack *in, *out;
    tn_status status = TN_OK;

    if (module == NULL || (inputs == NULL && n_inputs > 0) || (outputs == NULL && n_outputs > 0))
        return tn_error_null(module == NULL                   ? "tn_module_call_many: module"
                             : inputs == NULL && n_inputs > 0 ? "tn_module_call_many: inputs"
                                                              : "tn_module_call_many: outputs");
    if (n_inputs < 0 || n_outputs < 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_call_many: wrong counts, got %lld inputs and %lld outputs; "
                       "expected 0 or more",
                       (long long)n_inputs, (long long)n_outputs);
    for (int64_t i = 0; i < n_outputs; i++)
        outputs[i] = NULL;
    in = tn_pack_new();
    out = tn_pack_new();
    if (in == NULL || out == NULL)
        status = TN_ERR_MEMORY;
    for (int64_t i = 0; status == TN_OK && i < n_inputs; i++) {
        if (inputs[i] == NULL)
            status = tn__tensor_bad_at(NULL, "tn_module_call_many: inputs", i);
        else
            status = tn_pack_add(
                in, NULL, tn__is_none(inputs[i]) ? tn_value_none() : tn_value_tensor(inputs[i]));
    }
    if (status == TN_OK)
        status = tn_module_call_pack(module, in, out);
    if (status == TN_OK)
        status = results(module, out, outputs, n_outputs);
    tn_pack_drop(in);
    tn_pack_drop(out);
    for (int64_t i = 0; status != TN_OK && i < n_outputs; i++)
        outputs[i] = NULL;
    return status;
}
