/* SPDX-License-Identifier: MIT
 *
 * Compares a quantized module with the float module that it replaces. */
#include "flow.h"

#include <math.h>
#include <time.h>

/* ---- what the modules get -------------------------------------------------------------------- */

/* Keeps a copy: a later module may change the tensor in place, as ReLU(inplace=True) does. */
static tn_status keep_call(void *user, tn_module *module, const tn_pack *input,
                           const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    flow_item *item = user;

    (void)module;
    (void)replacement;
    (void)outcome;
    if (item->input != NULL || tn_pack_count(input) != 1 || tn_pack_count(output) != 1 ||
        tn_pack_at(input, 0).kind != TN_VALUE_TENSOR ||
        tn_pack_at(output, 0).kind != TN_VALUE_TENSOR)
        return TN_OK;
    item->input = tn_tensor_keep(tn_clone(tn_pack_at(input, 0).as.tensor));
    return item->input != NULL ? TN_OK : tn_error_last_code();
}

static tn_status call_net(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs)
{
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    tn_status status = input != NULL && output != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = tn_pack_add_tensors(input, inputs, n_inputs);
    if (status == TN_OK)
        status = tn_module_call_pack(net, input, output);
    tn_pack_drop(input);
    tn_pack_drop(output);
    return status;
}

tn_status flow_capture(flow_list *list, tn_tensor *const *inputs, int64_t n_inputs)
{
    tn_hook_handle *hooks = tn_calloc((size_t)list->count + 1, sizeof *hooks);
    tn_status status = hooks != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < list->count && status == TN_OK; i++) {
        hooks[i] = tn_module_hook_forward(list->at[i].module, keep_call, 0, &list->at[i], NULL);
        status = hooks[i] != 0 ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK) {
        flow_pause(true);
        status = call_net(list->net, inputs, n_inputs);
        flow_pause(false);
    }
    for (int64_t i = 0; i < list->count && hooks != NULL; i++)
        tn_hook_remove(hooks[i]);
    tn_free(hooks);
    return status == TN_OK ? TN_OK : tn_error_prefix("%s: inputs: ", list->who);
}

/* ---- random inputs --------------------------------------------------------------------------- */

enum { ROWS = 64, SPACE = 24 };

/* Scales normal numbers to the range that was observed. */
static tn_tensor *within(tn_tensor *x, tn_tensor *low, tn_tensor *high)
{
    if (low == NULL || high == NULL)
        return x;
    x = tn_mul(x, tn_mul_scalar(tn_sub(high, low), TN_SCALAR(1 / 6.0)));
    return tn_minimum(tn_maximum(x, low), high);
}

/* Returns the largest number of an option that is a number or several, at least `least`. */
static int64_t largest(tn_module *module, const char *name, int64_t least)
{
    tn_pack *pack = tn_pack_new();
    int64_t most = least;

    if (pack != NULL && quant_has_option(tn_module_type(module), name) &&
        tn_module_option_get(module, name, pack) == TN_OK) {
        tn_value value = tn_pack_at(pack, 0);
        const bool list = value.kind == TN_VALUE_LIST || value.kind == TN_VALUE_TUPLE;

        for (uint32_t i = 0; i < (list ? value.count : 1); i++) {
            const tn_value *item = list ? &value.as.list[i] : &value;

            if (item->kind == TN_VALUE_INT && item->as.i > most && item->as.i <= INT32_MAX)
                most = item->as.i;
        }
    }
    tn_pack_drop(pack);
    return most;
}

/* Returns a size of images that a window fits into, and padding by reflection. */
static int64_t space_for(tn_module *module, int64_t kernel, int64_t least)
{
    const int64_t padding = largest(module, "padding", 0);
    const int64_t reach = (kernel - 1) * largest(module, "dilation", 1) + 1 - 2 * padding;

    least = reach > least ? reach : least;
    return padding + 1 > least ? padding + 1 : least;
}

/* Makes an input for a layer whose options say what it takes, of normal numbers or of indices;
 * *out is NULL for other layers. */
static tn_status random_input(flow_item *item, tn_tensor **out)
{
    tn_module *module = item->module;
    const int64_t features = (int64_t)quant_option_number(module, "in_features", 0);
    const int64_t channels = (int64_t)quant_option_number(module, "in_channels", 0);
    const int64_t rows = (int64_t)quant_option_number(module, "num_embeddings", 0);
    tn_tensor *weight = tn_fuse_slot(module, "weight");
    int64_t shape[TN_MAX_DIMS] = { ROWS, features };
    int32_t count = 2;

    *out = NULL;
    if (weight == NULL)
        return tn_error_last_code();
    if (weight == TN_NONE || (rows <= 0 && features <= 0 && channels <= 0))
        return TN_OK;
    if (rows > 0) {
        *out = tn_tensor_empty(TN_SHAPE(ROWS), TN_I64, tn_tensor_device(weight));
        *out = tn_randint_(*out, 0, rows);
        return *out != NULL ? TN_OK : tn_error_last_code();
    }
    if (features <= 0) {
        shape[0] = 2;
        shape[1] = channels;
        count = tn_tensor_ndim(weight);
        for (int32_t d = 2; d < count; d++)
            shape[d] = space_for(module, tn_tensor_size(weight, d), count < 5 ? SPACE : SPACE / 2);
    }
    *out = tn_tensor_empty((tn_ints){ shape, count }, tn_tensor_dtype(weight),
                           tn_tensor_device(weight));
    *out = within(tn_normal_(*out), item->low, item->high);
    return *out != NULL ? TN_OK : tn_error_last_code();
}

/* ---- comparison ------------------------------------------------------------------------------ */

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Calls a module twice and sets *seconds to the shorter time. */
static tn_tensor *timed_call(tn_module *module, tn_tensor *x, double *seconds)
{
    tn_tensor *y = NULL;

    for (int i = 0; i < 2; i++) {
        double begin = seconds_now(), took;

        y = tn_module_call(module, x);
        if (y == NULL || tn_device_sync(tn_tensor_device(y)) != TN_OK)
            return NULL;
        took = seconds_now() - begin;
        *seconds = i == 0 || took < *seconds ? took : *seconds;
    }
    return y;
}

static tn_status product(tn_tensor *a, tn_tensor *b, double *out)
{
    tn_tensor *sum = tn_sum(tn_mul(a, b));
    tn_scalar number;
    tn_status status = sum != NULL ? tn_tensor_scalar(sum, &number) : tn_error_last_code();

    *out = status == TN_OK ? tn_scalar_as_float(number) : NAN;
    return status;
}

/* Results that are not finite have the SQNR -inf, which no limit allows. */
static tn_status compare(tn_tensor *wanted, tn_tensor *got, tn_quantize_row *row)
{
    tn_tensor *a = tn_cast(wanted, TN_F32), *b = tn_cast(got, TN_F32), *error = tn_sub(a, b);
    double signal, noise, mixed, other;

    if (product(a, a, &signal) != TN_OK || product(error, error, &noise) != TN_OK ||
        product(a, b, &mixed) != TN_OK || product(b, b, &other) != TN_OK)
        return tn_error_last_code();
    row->sqnr = noise == 0 ? INFINITY : 10 * log10(signal / noise);
    row->cosine = noise == 0 ? 1 : mixed / sqrt(signal * other);
    if (isnan(row->sqnr))
        row->sqnr = -INFINITY;
    return TN_OK;
}

static tn_status measure(flow_item *item)
{
    tn_tensor *x = item->input, *wanted, *got;
    tn_status status = x != NULL ? TN_OK : random_input(item, &x);

    if (status != TN_OK || x == NULL)
        return status;
    wanted = timed_call(item->module, x, &item->row.seconds_before);
    got = wanted != NULL ? timed_call(item->made, x, &item->row.seconds_after) : NULL;
    if (got == NULL)
        return tn_error_prefix("%s: ", item->path);
    return compare(wanted, got, &item->row);
}

/* Random numbers of the user are as without the measurement. */
tn_status flow_measure(flow_item *item)
{
    TN_SCOPE;
    uint64_t state[3];
    tn_status status = tn_random_get_state(state), restored;

    if (status != TN_OK)
        return status;
    tn_random_seed(0);
    status = measure(item);
    restored = tn_random_set_state(state);
    return status == TN_OK ? restored : status;
}
