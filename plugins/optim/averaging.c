/* SPDX-License-Identifier: MIT
 *
 * Averaged models: a module of the program whose child is a copy of another module, with averages
 * of its tensors. All averages are steps from the current average to the new value, made by the
 * operator lerp_scalar or a function of the program. */
#include "optim.h"

#include <pthread.h>
#include <string.h>

static const char child_name[] = "module", counter_name[] = "n_averaged";

/* The rule of an averaged model, which its copies share: `user` of its forward. */
struct rule {
    tn_average_options options;
    struct rule *next;
};

/* All rules. A module whose `user` is one of them is an averaged model. */
static struct rule *rules;
static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;

static void rule_add(struct rule *rule)
{
    pthread_mutex_lock(&rules_lock);
    rule->next = rules;
    rules = rule;
    pthread_mutex_unlock(&rules_lock);
}

static bool rule_is(const void *user)
{
    const struct rule *at;

    pthread_mutex_lock(&rules_lock);
    for (at = rules; at != NULL && at != user; at = at->next)
        continue;
    pthread_mutex_unlock(&rules_lock);
    return at != NULL;
}

static void rule_free(void *user)
{
    struct rule *rule = user, **at;

    pthread_mutex_lock(&rules_lock);
    for (at = &rules; *at != NULL && *at != rule; at = &(*at)->next)
        continue;
    if (*at != NULL)
        *at = rule->next;
    pthread_mutex_unlock(&rules_lock);
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

static tn_module *average_new(tn_module *module, const tn_average_options *options)
{
    tn_average_options used = TN_AVERAGE_OPTIONS;
    struct rule *rule;
    tn_module *average;
    tn_status status;

    if (module == NULL) {
        tn_error_null("tn_average_new: module");
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
    if (status == TN_OK) {
        rule_add(rule);
        return average;
    }
    tn_module_drop(average);
    tn_free(rule);
    return NULL;
}

/* Returns the rule of an averaged model; NULL and sets the error if the module is not an averaged
 * model. */
static const struct rule *rule_of(const tn_module *average, const char *what)
{
    const void *user;

    if (average == NULL) {
        tn_error_null(what);
        return NULL;
    }
    user = tn_module_user(average);
    if (user != NULL && rule_is(user))
        return user;
    tn_fail(TN_ERR_TYPE,
            "%s: average: wrong module, got %s; expected a module that "
            "tn_average_new made",
            what, tn_module_type(average));
    return NULL;
}

/* ---- the counter ----------------------------------------------------------------------------- */

static tn_status count_get(tn_module *average, int64_t *count)
{
    tn_tensor *counter = tn_module_get(average, counter_name);
    tn_scalar number;
    tn_status status;

    if (counter == NULL || counter == TN_NONE)
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
    tn_tensor *counter = tn_module_get(average, counter_name);

    return tn_fill_(counter, tn_scalar_int(count)) != NULL ? TN_OK : tn_error_last_code();
}

static int64_t average_count(tn_module *average)
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

/* Copies a tensor to another one, which may have another dtype and device. */
static tn_status copy(tn_tensor *to, tn_tensor *from)
{
    return tn_copy_(to, from) != NULL ? TN_OK : tn_error_last_code();
}

/* Returns a tensor of the source with the dtype and device of its average. */
static tn_tensor *like(tn_tensor *value, const tn_tensor *average)
{
    tn_tensor *made;

    if (tn_tensor_device(value) == tn_tensor_device(average) &&
        tn_tensor_dtype(value) == tn_tensor_dtype(average))
        return tn_tensor_detach(value);
    made = tn_tensor_empty(tn_tensor_shape(value), tn_tensor_dtype(average),
                           tn_tensor_device(average));
    return made != NULL && copy(made, value) == TN_OK ? made : NULL;
}

/* Writes a shape as "[2, 3]". */
static const char *shape_text(tn_ints shape, char *out, size_t size)
{
    size_t length = (size_t)tn_snprint(out, size, "[");

    for (int64_t i = 0; i < shape.count && length < size; i++)
        length += (size_t)tn_snprint(out + length, size - length, "%s%lld", i > 0 ? ", " : "",
                                     (long long)shape.at[i]);
    if (length < size)
        tn_snprint(out + length, size - length, "]");
    return out;
}

static tn_status add_pair(struct pairs *pairs, const tn_visit *average, const tn_visit *value)
{
    tn_ints a = tn_tensor_shape(average->tensor), b = tn_tensor_shape(value->tensor);
    char wanted[512], got[512];
    tn_tensor *to, *from;

    if (a.count != b.count ||
        (a.count > 0 && memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) != 0))
        return tn_fail(TN_ERR_VALUE, "tn_average_update: \"%s\": wrong shape, got %s; expected %s",
                       value->path, shape_text(b, got, sizeof got),
                       shape_text(a, wanted, sizeof wanted));
    to = tn_tensor_detach(average->tensor);
    from = to != NULL ? like(value->tensor, average->tensor) : NULL;
    if (from == NULL)
        return tn_error_last_code();
    pairs->averages[pairs->count] = to;
    pairs->values[pairs->count++] = from;
    return TN_OK;
}

/* Makes room for more pairs. */
static tn_status make_room(struct pairs *pairs, int64_t more)
{
    size_t room = (size_t)(pairs->count + more + 1);
    tn_tensor **both = tn_malloc(2 * room * sizeof *both);

    if (both == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < pairs->count; i++) {
        both[i] = pairs->averages[i];
        both[room + (size_t)i] = pairs->values[i];
    }
    tn_free(pairs->averages);
    pairs->averages = both;
    pairs->values = both + room;
    return TN_OK;
}

/* Returns the number of parameters or buffers of a module; -1 and sets the error on failure. */
static int64_t count_slots(tn_module *module, uint32_t kind)
{
    tn_walk *walk = tn_walk_begin(module, kind, NULL);
    int64_t count = walk != NULL ? 0 : -1;

    while (walk != NULL && tn_walk_next(walk) != NULL)
        count++;
    tn_walk_end(walk);
    return count;
}

/* Adds the parameters or the buffers of the two modules. */
static tn_status collect(struct pairs *pairs, tn_module *averages, tn_module *values, uint32_t kind)
{
    int64_t expected = count_slots(averages, kind), count = count_slots(values, kind);
    tn_walk *a, *b;
    tn_status status;

    if (expected < 0 || count < 0 || make_room(pairs, expected) != TN_OK)
        return tn_error_last_code();
    if (expected != count)
        return tn_fail(TN_ERR_VALUE,
                       "tn_average_update: module: wrong number of %s, got %lld; expected %lld, "
                       "those of the averaged model",
                       kind == TN_SLOT_PARAMETER ? "parameters" : "buffers", (long long)count,
                       (long long)expected);
    a = tn_walk_begin(averages, kind, NULL);
    b = tn_walk_begin(values, kind, NULL);
    status = a != NULL && b != NULL ? TN_OK : tn_error_last_code();
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        const tn_visit *average = tn_walk_next(a), *value = tn_walk_next(b);
        status = add_pair(pairs, average, value);
    }
    tn_walk_end(a);
    tn_walk_end(b);
    return status;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static tn_status copy_all(const struct pairs *pairs)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < pairs->count && status == TN_OK; i++)
        status = copy(pairs->averages[i], pairs->values[i]);
    return status;
}

/* Moves an average by `weight` of the way to the value. */
static tn_status approach(tn_tensor *average, tn_tensor *value, double weight)
{
    return tn_lerp_scalar_(average, value, tn_scalar_float(weight)) != NULL ? TN_OK
                                                                            : tn_error_last_code();
}

/* As PyTorch does it: the sum of two products in float32, which the copy truncates. */
static tn_status decay_integers(tn_tensor *average, tn_tensor *value, double decay)
{
    tn_tensor *a = tn_mul_scalar(tn_cast(average, TN_F32), tn_scalar_float(decay));
    tn_tensor *b = tn_mul_scalar(tn_cast(value, TN_F32), tn_scalar_float(1 - decay));
    tn_tensor *sum = tn_add(a, b);

    return sum != NULL ? copy(average, sum) : tn_error_last_code();
}

/* An average of integers with equal weights, in float64; the copy to the integer tensor truncates
 * it. Rounding to float32 first makes a result integral again if only its last bits differ from an
 * integer. */
static tn_status approach_integers(tn_tensor *average, tn_tensor *value, double weight)
{
    tn_tensor *between = tn_lerp_scalar(tn_cast(average, TN_F64), tn_cast(value, TN_F64),
                                        tn_scalar_float(weight));
    tn_tensor *single = tn_cast(between, TN_F32);

    return single != NULL ? copy(average, single) : tn_error_last_code();
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

    if (result == NULL && tn_error_mark() == mark)
        status = tn_fail(TN_ERR_RUNTIME,
                         "`one` of tn_average_options: returned NULL and recorded no message");
    else if (result == NULL)
        status = tn_error_returned(TN_ERR_RUNTIME, mark, "`one` of tn_average_options");
    if (status == TN_OK && result != average)
        status = copy(average, result);
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
    status = tn_error_returned(options->many(options->user, row, values, n, count), mark,
                               "`many` of tn_average_options");
    tn_scope_end(scope);
    return status;
}

/* Calls the program's function. */
static tn_status average_own(const tn_average_options *options, struct pairs *pairs, int64_t count)
{
    tn_tensor **row = tn_malloc((size_t)(2 * pairs->count + 1) * sizeof *row);
    tn_status status = row != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < pairs->count && status == TN_OK; i++)
        if (options->one != NULL)
            status = call_one(options, pairs->averages[i], pairs->values[i], count);
        else if (pairs->averages[i] != NULL)
            status = call_many(options, pairs, i, row, count);
    tn_free(row);
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

static tn_status average_update(tn_module *average, tn_module *module)
{
    const struct rule *rule = rule_of(average, "tn_average_update");
    tn_status status;
    uint64_t scope;

    if (rule == NULL)
        return tn_error_last_code();
    if (module == NULL)
        return tn_error_null("tn_average_update: module");
    scope = tn_scope_begin();
    tn_grad_begin(false);
    status = update(average, module, &rule->options);
    tn_grad_end();
    tn_scope_end(scope);
    return status;
}

const tn_average_api optim_average = { average_new, average_update, average_count };
