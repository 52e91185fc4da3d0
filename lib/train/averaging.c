/* SPDX-License-Identifier: MIT
 *
 * Averaged models: a module of the program whose child is a copy of another module, with averages
 * of its tensors. All averages are steps from the current average to the new value, for which the
 * core calls one operator (core/op/needed.h), or a function of the program. */
#include "core/op/needed.h"
#include "lib/train/private.h"

#include <math.h>
#include <tenon/ops.h>

static const char child_name[] = "module", counter_name[] = "n_averaged";

/* The rule of an averaged model, which its copies share: `user` of its forward. */
struct rule {
    tn_average_options options;
};

static void rule_free(void *user)
{
    struct rule *rule = user;

    if (rule->options.release != NULL)
        rule->options.release(rule->options.user);
    tn_free(rule);
}

static tn_status forward(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_module *child = tn_module_child(self, child_name);

    if (child == NULL)
        return tn_fail(TN_ERR_ATTR, "averaged model: it has no child \"%s\"", child_name);
    return tn_module_call_pack(child, input, output);
}

/* ---- making ---------------------------------------------------------------------------------- */

static tn_status check_options(const tn_average_options *options)
{
    if (options->one != NULL && options->many != NULL)
        /* PyTorch's wording, with names of Tenon */
        return tn_fail(
            TN_ERR_VALUE,
            "tn_average_new: Only one of `one` (avg_fn) and `many` (multi_avg_fn) should "
            "be provided");
    if (options->kind != TN_AVERAGE_EQUAL && options->kind != TN_AVERAGE_EXPONENTIAL)
        return tn_fail(TN_ERR_VALUE,
                       "tn_average_new: kind: unknown, got %u; expected TN_AVERAGE_EQUAL or "
                       "TN_AVERAGE_EXPONENTIAL",
                       (unsigned)options->kind);
    if (options->kind == TN_AVERAGE_EXPONENTIAL && !(options->decay >= 0 && options->decay <= 1))
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE,
                       "tn_average_new: Invalid decay value %g provided. Please provide a value in "
                       "[0,1] range.",
                       options->decay);
    return TN_OK;
}

/* Adds the counter, and a copy of `module` on `device` (NULL: that of `module`) as the child, to
 * the averaged model. */
static tn_status fill(tn_module *average, tn_module *module, const tn_device *device)
{
    const int64_t zero = 0;
    tn_module *child = tn_module_copy(module);
    tn_status status = child != NULL ? TN_OK : tn_error_last_code();
    tn_tensor *counter = status == TN_OK ? tn_tensor_empty(TN_SCALAR_SHAPE, TN_I64, device) : NULL;

    if (status == TN_OK && device != NULL)
        status = tn_module_to(child, device, TN_DTYPE_AUTO);
    if (status == TN_OK)
        status = counter != NULL ? tn_tensor_copy_in(counter, &zero, sizeof zero)
                                 : tn_error_last_code();
    if (status == TN_OK)
        status = tn_module_add_buffer(average, counter_name, counter, 0);
    if (status == TN_OK)
        status = tn_module_add_child(average, child_name, child);
    tn_module_drop(child);
    return status;
}

tn_module *tn_average_new(tn_module *module, const tn_average_options *options)
{
    tn_average_options used = TN_AVERAGE_OPTIONS;
    struct rule *rule;
    tn_module *average;
    tn_status status;

    if (module == NULL) {
        tn__error_null_input("tn_average_new: module");
        return NULL;
    }
    if (options != NULL && options->size < sizeof used) {
        tn_fail(TN_ERR_VALUE,
                "tn_average_new: options.size: too small, got %u; initialize the struct with "
                "TN_AVERAGE_OPTIONS",
                options->size);
        return NULL;
    }
    if (options != NULL)
        used = *options;
    if (check_options(&used) != TN_OK)
        return NULL;
    rule = tn_malloc(sizeof *rule);
    average = rule != NULL ? tn_module_plain("AveragedModel") : NULL;
    if (average == NULL) {
        tn_free(rule);
        return NULL;
    }
    uint64_t scope = tn_scope_begin();
    status = fill(average, module, used.device);
    tn_scope_end(scope);
    rule->options = used;
    if (status == TN_OK)
        status = tn_module_set_call(average, forward, rule, rule_free);
    if (status == TN_OK)
        return average;
    tn_module_drop(average);
    tn_free(rule);
    return NULL;
}

/* Returns the rule of an averaged model; NULL and sets the error if the module is not an averaged
 * model. */
static const struct rule *rule_of(const tn_module *average, const char *what)
{
    const tn__own_forward *own;

    if (average == NULL) {
        tn__error_null_input(what);
        return NULL;
    }
    own = average->own_forward;
    if (own != NULL && own->call == forward)
        return own->user;
    tn_fail(TN_ERR_TYPE,
            "%s: average: wrong module, got %s; expected a module that "
            "tn_average_new made",
            what, average->type);
    return NULL;
}

/* ---- the counter ----------------------------------------------------------------------------- */

static tn_status count_get(tn_module *average, int64_t *count)
{
    tn_tensor *counter = tn_module_get(average, counter_name);
    tn_scalar number;
    tn_status status;

    if (counter == NULL || tn__is_none(counter))
        return tn_fail(TN_ERR_ATTR, "averaged model: it has no buffer \"%s\"", counter_name);
    status = tn_tensor_scalar(counter, &number);
    if (status == TN_OK) {
        *count = tn_scalar_as_int(number);
        *count -= *count == INT64_MAX; /* so that one more fits */
    }
    return status;
}

static tn_status count_set(tn_module *average, int64_t count)
{
    const tn_op *fill_op = tn__op_needed(TN__NEED_fill);
    tn_tensor *counter = tn_module_get(average, counter_name);
    tn_fill_options options = TN_FILL_OPTIONS;

    options.value = tn_scalar_int(count);
    return fill_op != NULL && counter != NULL
               ? tn_op_call_into(fill_op, &counter, 1, &options, counter)
               : tn_error_last_code();
}

int64_t tn_average_count(tn_module *average)
{
    int64_t count;

    return rule_of(average, "tn_average_count") != NULL && count_get(average, &count) == TN_OK
               ? count
               : -1;
}

/* ---- the pairs of tensors -------------------------------------------------------------------- */

/* Averages and the tensors that they are averages of, in the same order. Both are outside of the
 * graph, on the same device and of the same dtype, and belong to the scope. */
struct pairs {
    tn_tensor **averages, **values;
    int64_t count;
};

/* Returns a tensor of the source with the dtype and device of its average. */
static tn_tensor *like(tn_tensor *value, const tn_tensor *average)
{
    tn_tensor *copy;
    tn_meta meta;

    if (tn_tensor_device(value) == tn_tensor_device(average) &&
        tn_tensor_dtype(value) == tn_tensor_dtype(average))
        return tn_tensor_detach(value);
    tn__tensor_meta(value, &meta);
    meta.flags = 0;
    meta.offset = 0;
    meta.dtype = tn_tensor_dtype(average);
    copy = tn__tensor_make(&meta, tn_tensor_device(average));
    if (copy != NULL && tn__copy(copy, value) != TN_OK) {
        tn_tensor_drop(copy);
        return NULL;
    }
    return copy != NULL ? tn_tensor_to_scope(copy) : NULL;
}

static tn_status add_pair(struct pairs *pairs, const tn__met *average, const tn__met *value)
{
    tn_ints a = tn_tensor_shape(average->tensor), b = tn_tensor_shape(value->tensor);
    tn_tensor *to, *from;

    if (a.count != b.count ||
        (a.count > 0 && memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) != 0)) {
        tn__text text = { 0 };

        tn__tensor_text_ints(&text, b);
        tn__text_add(&text, "; expected ");
        tn__tensor_text_ints(&text, a);
        tn_fail(TN_ERR_VALUE, "tn_average_update: \"%s\": wrong shape, got %s", value->path,
                text.at != NULL ? text.at : "");
        tn__text_free(&text);
        return TN_ERR_VALUE;
    }
    to = tn_tensor_detach(average->tensor);
    from = to != NULL ? like(value->tensor, average->tensor) : NULL;
    if (from == NULL)
        return tn_error_last_code();
    pairs->averages[pairs->count] = to;
    pairs->values[pairs->count++] = from;
    return TN_OK;
}

/* Adds the parameters or the buffers of the two modules. */
static tn_status add_pairs(struct pairs *pairs, const tn__walk *averages, const tn__walk *values,
                           const char *what)
{
    size_t room = (size_t)(pairs->count + averages->count + 1);
    tn_tensor **both = tn_malloc(2 * room * sizeof *both);
    tn_status status = TN_OK;

    if (both == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < pairs->count; i++) {
        both[i] = pairs->averages[i];
        both[room + (size_t)i] = pairs->values[i];
    }
    tn_free(pairs->averages);
    pairs->averages = both;
    pairs->values = both + room;
    if (averages->count != values->count)
        return tn_fail(TN_ERR_VALUE,
                       "tn_average_update: module: wrong number of %s, got %lld; expected %lld, "
                       "those of the averaged model",
                       what, (long long)values->count, (long long)averages->count);
    for (int64_t i = 0; i < averages->count && status == TN_OK; i++)
        status = add_pair(pairs, &averages->at[i], &values->at[i]);
    return status;
}

static tn_status collect(struct pairs *pairs, tn_module *averages, tn_module *values, uint32_t kind)
{
    tn__walk a = { NULL, 0, 0 }, b = { NULL, 0, 0 };
    tn_status status = tn__walk_collect(averages, kind, false, &a);

    if (status == TN_OK)
        status = tn__walk_collect(values, kind, false, &b);
    if (status == TN_OK)
        status = add_pairs(pairs, &a, &b, kind == TN_SLOT_PARAMETER ? "parameters" : "buffers");
    tn__walk_free(&a);
    tn__walk_free(&b);
    return status;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static tn_status copy_all(const struct pairs *pairs)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < pairs->count && status == TN_OK; i++)
        status = tn__copy(pairs->averages[i], pairs->values[i]);
    return status;
}

/* Moves an average by `weight` of the way to the value. */
static tn_status approach(tn_tensor *average, tn_tensor *value, double weight)
{
    const tn_op *lerp = tn__op_needed(TN__NEED_lerp);
    tn_lerp_scalar_options options = TN_LERP_SCALAR_OPTIONS;
    tn_tensor *in[2] = { average, value };

    options.weight = tn_scalar_float(weight);
    return lerp != NULL ? tn_op_call_into(lerp, in, 2, &options, average) : tn_error_last_code();
}

/* Returns a tensor of integers times a factor, in float32; the caller owns it. */
static tn_tensor *scaled(tn_tensor *integers, double factor)
{
    const tn_op *mul = tn__op_needed(TN__NEED_mul);
    tn_mul_scalar_options options = TN_MUL_SCALAR_OPTIONS;
    tn_tensor *product = tn__call_cast(integers, TN_F32);

    options.value = tn_scalar_float(factor);
    if (product == NULL || mul == NULL ||
        tn_op_call_into(mul, &product, 1, &options, product) != TN_OK) {
        tn_tensor_drop(product);
        return NULL;
    }
    return product;
}

/* As PyTorch does it: the sum of two products in float32, which the copy truncates. */
static tn_status decay_integers(tn_tensor *average, tn_tensor *value, double decay)
{
    const tn_op *add = tn__op_needed(TN__NEED_add);
    tn_tensor *in[2] = { scaled(average, decay), NULL };
    tn_status status;

    in[1] = in[0] != NULL ? scaled(value, 1 - decay) : NULL;
    status = in[1] != NULL && add != NULL ? tn_op_call_into(add, in, 2, NULL, in[0])
                                          : tn_error_last_code();
    if (status == TN_OK)
        status = tn__copy(average, in[0]);
    tn_tensor_drop(in[0]);
    tn_tensor_drop(in[1]);
    return status;
}

/* An average of integers with equal weights, in float64; the copy to the integer tensor truncates
 * it. Rounding to float32 first makes a result integral again if only its last bits differ from an
 * integer. */
static tn_status approach_integers(tn_tensor *average, tn_tensor *value, double weight)
{
    tn_tensor *from = tn__call_cast(average, TN_F64), *single = NULL;
    tn_tensor *to = from != NULL ? tn__call_cast(value, TN_F64) : NULL;
    tn_status status = to != NULL ? approach(from, to, weight) : tn_error_last_code();

    if (status == TN_OK) {
        single = tn__call_cast(from, TN_F32);
        status = single != NULL ? tn__copy(average, single) : tn_error_last_code();
    }
    tn_tensor_drop(from);
    tn_tensor_drop(to);
    tn_tensor_drop(single);
    return status;
}

static tn_status average_one(const tn_average_options *options, tn_tensor *average,
                             tn_tensor *value, int64_t count)
{
    const uint64_t real = TN_MASK_FLOAT | TN_MASK_COMPLEX;
    const bool integers = (real & TN_BIT(tn_tensor_dtype(average))) == 0;
    const bool equal = options->kind == TN_AVERAGE_EQUAL;
    const double weight = equal ? 1.0 / (double)(count + 1) : 1.0 - options->decay;

    if (integers && !equal)
        return decay_integers(average, value, options->decay);
    return integers ? approach_integers(average, value, weight) : approach(average, value, weight);
}

static tn_status average_all(const tn_average_options *options, const struct pairs *pairs,
                             int64_t count)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < pairs->count && status == TN_OK; i++)
        status = average_one(options, pairs->averages[i], pairs->values[i], count);
    return status;
}

static tn_status call_one(const tn_average_options *options, tn_tensor *average, tn_tensor *value,
                          int64_t count)
{
    uint64_t scope = tn_scope_begin(), mark = tn_error_mark();
    tn_tensor *result = options->one(options->user, average, value, count);
    tn_status status = TN_OK;

    if (result == NULL)
        status = tn__error_returned_null(mark, "`one` of tn_average_options");

    if (status == TN_OK && result != average)
        status = tn__copy(average, result);
    tn_scope_end(scope);
    return status;
}

/* Calls `many` for the tensors with the dtype and device of the one at `first`, which then are NULL
 * in `pairs`. */
static tn_status call_many(const tn_average_options *options, struct pairs *pairs, int64_t first,
                           tn_tensor **row, int64_t count)
{
    const tn_device *device = tn_tensor_device(pairs->averages[first]);
    const tn_dtype dtype = tn_tensor_dtype(pairs->averages[first]);
    uint64_t scope = tn_scope_begin();
    tn_tensor **values = row + pairs->count;
    int64_t n = 0;
    tn_status status;

    for (int64_t i = first; i < pairs->count; i++) {
        tn_tensor *average = pairs->averages[i];

        if (average == NULL || tn_tensor_device(average) != device ||
            tn_tensor_dtype(average) != dtype)
            continue;
        row[n] = average;
        values[n++] = pairs->values[i];
        pairs->averages[i] = NULL;
    }
    uint64_t mark = tn_error_mark();
    status = tn__error_returned(options->many(options->user, row, values, n, count), mark,
                                "`many` of tn_average_options");
    tn_scope_end(scope);
    return status;
}

/* Calls the program's function. */
static tn_status average_own(const tn_average_options *options, struct pairs *pairs, int64_t count)
{
    const char *before = tn__error_plugin("");
    tn_tensor **row = tn_malloc((size_t)(2 * pairs->count + 1) * sizeof *row);
    tn_status status = row != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < pairs->count && status == TN_OK; i++)
        if (options->one != NULL)
            status = call_one(options, pairs->averages[i], pairs->values[i], count);
        else if (pairs->averages[i] != NULL)
            status = call_many(options, pairs, i, row, count);
    tn_free(row);
    tn__error_plugin_back(before);
    return status;
}

/* ---- an update ------------------------------------------------------------------------------- */

static tn_status update(tn_module *average, tn_module *module, const tn_average_options *options)
{
    tn_module *child = tn_module_child(average, child_name);
    struct pairs pairs = { 0 }, buffers = { 0 };
    int64_t count = 0;
    tn_status status = count_get(average, &count);

    if (status == TN_OK && child == NULL)
        status = tn_fail(TN_ERR_ATTR, "averaged model: it has no child \"%s\"", child_name);
    if (status == TN_OK)
        status = collect(&pairs, child, module, TN_SLOT_PARAMETER);
    if (status == TN_OK)
        status = collect(options->use_buffers ? &pairs : &buffers, child, module, TN_SLOT_BUFFER);
    if (status == TN_OK && count == 0)
        status = copy_all(&pairs);
    else if (status == TN_OK && (options->one != NULL || options->many != NULL))
        status = average_own(options, &pairs, count);
    else if (status == TN_OK)
        status = average_all(options, &pairs, count);
    if (status == TN_OK)
        status = copy_all(&buffers);
    if (status == TN_OK)
        status = count_set(average, count + 1);
    tn_free(pairs.averages);
    tn_free(buffers.averages);
    return status;
}

tn_status tn_average_update(tn_module *average, tn_module *module)
{
    const struct rule *rule = rule_of(average, "tn_average_update");
    tn_status status;
    uint64_t scope;

    if (rule == NULL)
        return tn_error_last_code();
    if (module == NULL)
        return tn__error_null_input("tn_average_update: module");
    scope = tn_scope_begin();
    tn_grad_begin(false);
    status = update(average, module, &rule->options);
    tn_grad_end();
    tn_scope_end(scope);
    return status;
}
