/* SPDX-License-Identifier: MIT
 *
 * MinMaxRange and MovingAverageRange: modules that record the range of what passes through them,
 * as the observers of PyTorch do. Buffers min_val and max_val: one number, or one for each channel.
 * layer_range_histogram.c has HistogramRange. */
#include "modules.h"

#include <math.h>

struct range {
    int64_t dim; /* INT64_MIN (None): one range for all */
    double averaging;
};

#define RANGE_DIM                                                                                  \
    TN_OPTION_ROW(struct range, dim, "None",                                                       \
                  "the dimension of channels, each with its own range; None: one range",           \
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL | TN_OPTION_KEYWORD)
static const tn_option minmax_options[] = { RANGE_DIM, TN_OPTION_END };
static const tn_option moving_options[] = { TN_OPTION_ROW(struct range, averaging, "0.01",
                                                          "share of a new batch in the range",
                                                          TN_OPTION_KIND_FLOAT, 0),
                                            RANGE_DIM, TN_OPTION_END };

/* As in PyTorch, a range without data is from inf to -inf, and that of channels has none. */
tn_status quant_range_build(tn_module *self, bool channels)
{
    tn_ints shape = channels ? TN_SHAPE(0) : tn_no_ints();
    tn_status status = quant_add_buffer(self, "min_val", TN_F32, shape, INFINITY, true);

    return status == TN_OK ? quant_add_buffer(self, "max_val", TN_F32, shape, -INFINITY, true)
                           : status;
}

static tn_status build(tn_module *self)
{
    const struct range *s = tn_module_data(self);

    if (!(s->averaging >= 0 && s->averaging <= 1))
        return tn_fail(TN_ERR_VALUE, "%s: averaging: out of range, got %g; expected 0 to 1",
                       tn_module_type(self), s->averaging);
    return quant_range_build(self, s->dim != INT64_MIN);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Sets the smallest and largest number of x, of each channel if there is a dimension of channels;
 * NaN counts as 0, which every range of integers has. */
static tn_status range_of(const struct range *s, tn_tensor *x, tn_tensor **low, tn_tensor **high)
{
    int64_t dims[TN_MAX_DIMS], count = 0, ndim = tn_tensor_ndim(x);
    int64_t dim = s->dim < 0 && s->dim != INT64_MIN ? s->dim + ndim : s->dim;

    if (s->dim != INT64_MIN && (dim < 0 || dim >= ndim))
        return tn_fail(TN_ERR_VALUE, "dim: out of range, got %lld; expected %lld to %lld",
                       (long long)s->dim, (long long)-ndim, (long long)ndim - 1);
    for (int64_t d = 0; d < ndim; d++)
        if (d != dim)
            dims[count++] = d;
    x = tn_nan_to_num(tn_cast(tn_detach(x), TN_F32), 0.0, INFINITY, -INFINITY);
    *low = count > 0 ? tn_amin(x, ((tn_ints){ dims, count })) : x;
    *high = count > 0 ? tn_amax(x, ((tn_ints){ dims, count })) : x;
    return *low != NULL && *high != NULL ? TN_OK : tn_error_last_code();
}

tn_status quant_range_store(tn_module *self, tn_tensor *low, tn_tensor *high)
{
    tn_status status = low != NULL && high != NULL ? tn_module_set(self, "min_val", low)
                                                   : tn_error_last_code();

    return status == TN_OK ? tn_module_set(self, "max_val", high) : status;
}

bool quant_range_is_empty(tn_module *self)
{
    tn_tensor *low = tn_fuse_slot(self, "min_val");

    if (low == NULL || low == TN_NONE) /* a range of another plugin, which knows itself */
        return false;
    return tn_tensor_numel(low) == 0 ||
           (tn_tensor_ndim(low) == 0 && tn_device_has_memory(tn_tensor_device(low)) &&
            isinf(tn_tensor_item(low)) && tn_tensor_item(low) > 0);
}

/* old + (new - old) averaging */
static tn_tensor *moved(tn_tensor *old, tn_tensor *new_, double averaging)
{
    return tn_add(old, tn_mul_scalar(tn_sub(new_, old), TN_SCALAR(averaging)));
}

static tn_status record(tn_module *self, tn_tensor *x)
{
    const struct range *s = tn_module_data(self);
    const bool moving = tn_module_user(self) != NULL;
    tn_tensor *low = NULL, *high = NULL, *old_low = tn_module_get(self, "min_val");
    tn_tensor *old_high = tn_module_get(self, "max_val");
    tn_status status = range_of(s, x, &low, &high);

    if (status != TN_OK)
        return tn_error_prefix("%s: ", tn_module_type(self));
    if (!quant_range_is_empty(self)) {
        low = moving ? moved(old_low, low, s->averaging) : tn_minimum(old_low, low);
        high = moving ? moved(old_high, high, s->averaging) : tn_maximum(old_high, high);
    }
    return quant_range_store(self, low, high);
}

tn_tensor *quant_range_pass(tn_module *self, tn_tensor *x,
                            tn_status (*record_it)(tn_module *self, tn_tensor *x))
{
    uint64_t scope;
    tn_status status;

    if (tn_tensor_numel(x) == 0)
        return x; /* as in PyTorch */
    scope = tn_scope_begin();
    status = tn_grad_begin(false);
    if (status == TN_OK) {
        status = record_it(self, x);
        tn_grad_end();
    }
    tn_scope_end(scope);
    return status == TN_OK ? x : NULL;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    return quant_range_pass(self, x, record);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Sets a buffer to the numbers of a state, in the dtype and on the device of the buffer. They are
 * loaded once more afterwards, unless the load has failed elsewhere. */
static tn_status take_numbers(tn_module *self, const char *name, tn_tensor *own, tn_tensor *value)
{
    tn_tensor *made = tn_tensor_empty(TN_SHAPE(tn_tensor_numel(value)), tn_tensor_dtype(own),
                                      tn_tensor_device(own));
    tn_status status = tn_grad_begin(false);

    if (status != TN_OK)
        return status;
    if (made != NULL && tn_device_has_memory(tn_tensor_device(own)) &&
        tn_device_has_memory(tn_tensor_device(value)))
        made = tn_copy_(made, value);
    tn_grad_end();
    return made != NULL ? tn_module_set(self, name, made) : tn_error_last_code();
}

/* Renames min_vals and max_vals, which versions before 3 have, and gives the buffers the shape of
 * the state's: the number of channels is not known before there is data. */
tn_status quant_range_entry(tn_module *self, tn_loading *loading, const char *name, const char *old)
{
    char *now = quant_joined(loading->prefix, name),
         *before = quant_joined(loading->prefix, old != NULL ? old : name);
    tn_status status = now != NULL && before != NULL ? TN_OK : TN_ERR_MEMORY;
    int64_t at = -1;

    if (status == TN_OK && tn_state_find(loading->state, before) >= 0 &&
        tn_state_find(loading->state, now) < 0)
        status = tn_state_rename(loading->state, before, now);
    if (status == TN_OK)
        at = tn_state_find(loading->state, now);
    if (at >= 0) {
        tn_tensor *value = tn_state_tensor(loading->state, at), *own = tn_module_get(self, name);

        if (value == NULL || own == NULL)
            status = tn_error_last_code();
        else if (tn_tensor_ndim(value) == 1 && tn_tensor_ndim(own) == 1 &&
                 tn_tensor_numel(value) != tn_tensor_numel(own))
            status = take_numbers(self, name, own, value);
    }
    tn_free(now);
    tn_free(before);
    return status;
}

tn_status quant_range_load(tn_module *self, tn_loading *loading)
{
    TN_SCOPE;
    tn_status status = quant_range_entry(self, loading, "min_val", "min_vals");

    if (status == TN_OK)
        status = quant_range_entry(self, loading, "max_val", "max_vals");
    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static tn_status number_of(tn_module *range, const char *computed, const char *buffer, bool most,
                           tn_tensor **out)
{
    bool has = tn_module_slot_kind(range, computed) != 0;
    tn_tensor *all = tn_module_get(range, has ? computed : buffer);
    tn_scalar number;

    all = all != NULL && all != TN_NONE ? tn_cast(all, TN_F32) : all;
    *out = most ? tn_amax(all) : tn_amin(all);
    if (*out != NULL && !tn_device_has_memory(tn_tensor_device(*out)))
        return TN_OK;
    if (*out == NULL || tn_tensor_scalar(*out, &number) != TN_OK)
        return tn_error_last_code();
    if (isfinite(tn_scalar_as_float(number)))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: %s: not finite, got %g; expected inputs without infinite numbers, or a "
                   "scheme that skips the module",
                   tn_module_type(range), has ? computed : buffer, tn_scalar_as_float(number));
}

tn_status quant_range_get(tn_module *range, tn_tensor **low, tn_tensor **high)
{
    tn_status status = number_of(range, "range_min", "min_val", false, low);

    return status == TN_OK ? number_of(range, "range_max", "max_val", true, high) : status;
}

/* ---- the layers ------------------------------------------------------------------------------ */

#define RANGE_LAYER(id, name_, help_, options_, moving)                                            \
    const tn_layer_def layer_##id = { TN_HEAD(tn_layer_def), .name = name_,                        \
                                      .help = help_,         .user = moving,                       \
                                      .options = options_,   .data_size = sizeof(struct range),    \
                                      .version = 3,          .build = build,                       \
                                      .forward = forward,    .load_state = quant_range_load }
RANGE_LAYER(min_max_range, "MinMaxRange",
            "y = x; records the smallest and the largest number of all calls", minmax_options,
            NULL);
static char yes;
RANGE_LAYER(moving_average_range, "MovingAverageRange",
            "y = x; records moving averages of the smallest and the largest number of calls",
            moving_options, &yes);
