/* SPDX-License-Identifier: MIT
 *
 * Normalization layers: over the batch, single images, or groups of channels. norm_last.c has those
 * over the last dimensions. */
#include "helpers.h"

#include <math.h>

static tn_status add_moment(tn_module *self, const char *name, tn_ints shape, tn_dtype dtype)
{
    tn_tensor *tensor = tn_tensor_empty(shape, dtype, NULL);

    return tensor == NULL ? tn_error_last_code() : tn_module_add_buffer(self, name, tensor, 0);
}

/* ---- BatchNorm and InstanceNorm, with running statistics ---- */

struct running {
    int64_t num_features;
    double eps;
    double momentum; /* NAN (None): cumulative mean of all batches */
    bool affine;
    bool track_running_stats;
    bool bias;
    bool collecting; /* no option: all batches count alike, whatever momentum says */
};

static const char *const moments[] = { "running_mean", "running_var" }; /* initialized to 0 and 1 */

/* Macros, because two tables have the same rows with other defaults. */
#define RUNNING(affine_, track_)                                                                   \
    TN_OPTION_ROW(struct running, num_features, NULL, "channels", TN_OPTION_KIND_INT,              \
                  TN_OPTION_REQUIRED),                                                             \
        RUNNING_MORE(affine_, track_), TN_OPTION_END
#define RUNNING_MORE(affine_, track_) RUNNING_NUMBERS, RUNNING_CHOICES(affine_, track_)
#define RUNNING_NUMBERS                                                                            \
    TN_OPTION_ROW(struct running, eps, "1e-05", "added to the variance, for stability",            \
                  TN_OPTION_KIND_FLOAT, TN_OPTION_REPR_KEYWORD),                                   \
        TN_OPTION_ROW(struct running, momentum, "0.1",                                             \
                      "weight of a batch in the running statistics; None: equal weights for all",  \
                      TN_OPTION_KIND_FLOAT, TN_OPTION_OPTIONAL | TN_OPTION_REPR_KEYWORD)
#define RUNNING_CHOICES(affine_, track_)                                                           \
    TN_OPTION_ROW(struct running, affine, affine_, "whether weight and bias are learned",          \
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),                                    \
        TN_OPTION_ROW(struct running, track_running_stats, track_,                                 \
                      "whether running statistics are kept", TN_OPTION_KIND_BOOL,                  \
                      TN_OPTION_REPR_KEYWORD),                                                     \
        TN_OPTION_ROW(struct running, bias, "True", "whether affine includes a bias",              \
                      TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD | TN_OPTION_REPR_KEYWORD)
static const tn_option batch_options[] = { RUNNING("True", "True") };
static const tn_option instance_options[] = { RUNNING("False", "False") };

static tn_status running_build(tn_module *self)
{
    const struct running *s = tn_module_data(self);
    tn_ints shape = { &s->num_features, 1 };
    tn_status status;

    if (s->num_features < 0)
        return tn_fail(TN_ERR_VALUE, "%s: num_features: negative, got %lld; expected 0 or more",
                       tn_module_type(self), (long long)s->num_features);
    status = layers_add_affine(self, s->affine, s->affine && s->bias, shape);
    for (int i = 0; i < 2 && status == TN_OK && s->track_running_stats; i++)
        status = add_moment(self, moments[i], shape, TN_DTYPE_AUTO);
    if (status == TN_OK && s->track_running_stats)
        status = add_moment(self, "num_batches_tracked", TN_SCALAR_SHAPE, TN_I64);
    return status;
}

static tn_status reset_moments(tn_module *self)
{
    const struct running *s = tn_module_data(self);
    tn_status status = TN_OK;

    for (int i = 0; i < 2 && status == TN_OK && s->track_running_stats; i++)
        status = layers_fill(self, moments[i], i);
    if (status == TN_OK && s->track_running_stats)
        status = layers_fill(self, "num_batches_tracked", 0);
    return status;
}

static tn_status running_reset(tn_module *self)
{
    tn_status status = layers_reset_affine(self);

    return status == TN_OK ? reset_moments(self) : status;
}

/* Returns the option momentum, NAN (None) while statistics are collected. */
static double momentum_of(const struct running *s)
{
    return s->collecting ? (double)NAN : s->momentum;
}

static tn_status batch_collect(tn_module *self, bool begin)
{
    struct running *s = tn_module_data(self);
    tn_status status = begin ? reset_moments(self) : TN_OK;

    s->collecting = begin && status == TN_OK;
    return status;
}

static tn_status check_dims(tn_module *self, tn_tensor *x, int32_t least, int32_t most)
{
    int32_t ndim = tn_tensor_ndim(x);

    if (ndim >= least && ndim <= most)
        return TN_OK;
    if (least == most)
        return tn_fail(TN_ERR_VALUE, "%s: expected %dD input (got %dD input)", tn_module_type(self),
                       (int)least, (int)ndim);
    return tn_fail(TN_ERR_VALUE, "%s: expected %dD or %dD input (got %dD input)",
                   tn_module_type(self), (int)least, (int)most, (int)ndim);
}

/* ---- lazy layers: the first input determines num_features ---- */

#define LAZY_ROWS(affine_, track_)                                                                 \
    RUNNING_MORE(affine_, track_),                                                                 \
        TN_OPTION_ROW(struct running, num_features, "0", "must be 0: taken from the first input",  \
                      TN_OPTION_KIND_INT, TN_OPTION_KEYWORD),                                      \
        TN_OPTION_END
static const tn_option lazy_batch_options[] = { LAZY_ROWS("True", "True") };
static const tn_option lazy_instance_options[] = { LAZY_ROWS("True", "True") };

static tn_status lazy_build(tn_module *self)
{
    static const char *const names[] = { "weight", "bias" };
    const struct running *s = tn_module_data(self);
    tn_status status = TN_OK;

    if (s->num_features != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: num_features: out of range, got %lld; expected 0, because the first input "
            "determines it",
            tn_module_type(self), (long long)s->num_features);
    for (int i = 0; i < 2 && status == TN_OK; i++)
        status = s->affine && (i == 0 || s->bias)
                     ? tn_module_add_lazy(self, TN_SLOT_PARAMETER, names[i])
                     : tn_module_add_parameter(self, names[i], TN_NONE);
    for (int i = 0; i < 2 && status == TN_OK && s->track_running_stats; i++)
        status = tn_module_add_lazy(self, TN_SLOT_BUFFER, moments[i]);
    if (status == TN_OK && s->track_running_stats)
        status = add_moment(self, "num_batches_tracked", TN_SCALAR_SHAPE, TN_I64);
    return status == TN_OK && s->track_running_stats ? layers_fill(self, "num_batches_tracked", 0)
                                                     : status;
}

/* Sets num_features from the first input. `batched` is the number of dimensions of an input with a
 * batch dimension. */
static tn_status lazy_infer(tn_module *self, const tn_pack *input, int32_t least, int32_t most,
                            int32_t batched)
{
    struct running *s = tn_module_data(self);
    tn_tensor *x = tn_pack_tensor(input, 0);
    tn_ints shape = { &s->num_features, 1 };
    tn_status status = x == NULL ? tn_error_last_code() : check_dims(self, x, least, most);

    if (status != TN_OK)
        return status;
    s->num_features = tn_tensor_size(x, tn_tensor_ndim(x) < batched ? 0 : 1);
    if (s->affine)
        status = tn_module_materialize(self, "weight", shape);
    if (status == TN_OK && s->affine && s->bias)
        status = tn_module_materialize(self, "bias", shape);
    for (int i = 0; i < 2 && status == TN_OK && s->track_running_stats; i++)
        status = tn_module_materialize(self, moments[i], shape);
    return status;
}

/* Loads the state. Before version 2 there was no num_batches_tracked; for such a state the module
 * keeps its own value. */
static tn_status running_load(tn_module *self, tn_loading *loading)
{
    const struct running *s = tn_module_data(self);
    char key[1024];
    tn_tensor *count;
    tn_status status = TN_OK;

    if (s->track_running_stats && loading->version < 2) {
        if (tn_snprint(key, sizeof key, "%snum_batches_tracked", loading->prefix) >=
            (int64_t)sizeof key)
            return tn_fail(TN_ERR_VALUE,
                           "path of the module: too long, got %q; expected a shorter path",
                           loading->prefix);
        count = tn_module_get(self, "num_batches_tracked");
        if (count != NULL && count != TN_NONE && !tn_device_has_memory(tn_tensor_device(count)))
            count = tn_tensor_full(TN_SCALAR_SHAPE, 0, TN_I64, NULL);
        if (count == NULL)
            return tn_error_last_code();
        if (count != TN_NONE && tn_state_find(loading->state, key) < 0)
            status = tn_state_set(loading->state, key, count);
    }
    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

static int64_t running_repr(tn_module *self, char *out, size_t size)
{
    const struct running *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "%lld, eps=%g, momentum=", (long long)s->num_features, s->eps);
    if (isnan(s->momentum))
        layers_put(&text, "None");
    else
        layers_put(&text, "%g", s->momentum);
    layers_put(&text, ", affine=%s, bias=%s, track_running_stats=%s", layers_truth(s->affine),
               layers_truth(s->affine && s->bias), layers_truth(s->track_running_stats));
    return text.used;
}

/* Returns whether the module has running statistics. As in PyTorch, they stay and are used in
 * evaluation if track_running_stats was set to False later. */
static bool has_moments(const tn_module *self, const struct running *s)
{
    return s->track_running_stats || tn_module_slot_kind(self, moments[0]) == TN_SLOT_BUFFER;
}

static tn_tensor *moment_of(tn_module *self, const char *name)
{
    const struct running *s = tn_module_data(self);
    bool used = s->track_running_stats || (!tn_module_is_training(self) && has_moments(self, s));

    return used ? tn_module_get(self, name) : TN_NONE;
}

/* Increments num_batches_tracked and sets *momentum to the weight of this batch in the running
 * statistics. */
static tn_status count_batch(tn_module *self, double *momentum)
{
    const struct running *s = tn_module_data(self);
    tn_tensor *count = moment_of(self, "num_batches_tracked");

    *momentum = isnan(momentum_of(s)) ? 0 : s->momentum;
    if (count == NULL)
        return tn_error_last_code();
    if (count == TN_NONE)
        return TN_OK;
    if (tn_add_scalar_(count, 1) == NULL)
        return tn_error_last_code();
    if (isnan(momentum_of(s))) {
        tn_scalar batches;
        tn_status status = tn_tensor_scalar(count, &batches);

        if (status != TN_OK)
            return status;
        *momentum = 1 / tn_scalar_as_float(batches);
    }
    return TN_OK;
}

/* Counts the batch in training and describes the call of the operator in *o. Changes and records
 * nothing if the input does not fit (TN_ERR_VALUE without `tell`). */
static tn_status batch_begin(tn_module *self, tn_tensor *x, int32_t least, int32_t most, bool tell,
                             tn_batch_norm_options *o)
{
    const struct running *s = tn_module_data(self);

    if (!tell && (tn_tensor_ndim(x) < least || tn_tensor_ndim(x) > most))
        return TN_ERR_VALUE;
    if (check_dims(self, x, least, most) != TN_OK)
        return tn_error_last_code();
    o->eps = s->eps;
    o->momentum = isnan(momentum_of(s)) ? 0 : s->momentum;
    o->training = tn_module_is_training(self) || !has_moments(self, s);
    if (tn_module_is_training(self) && tn_tensor_size(x, 1) > 0 &&
        tn_tensor_numel(x) == tn_tensor_size(x, 1))
        return !tell ? TN_ERR_VALUE
                     : tn_fail(TN_ERR_VALUE,
                               /* PyTorch's wording */
                               "Expected more than 1 value per channel when training, got input of "
                               "%d dimensions with %lld values in %lld channels",
                               (int)tn_tensor_ndim(x), (long long)tn_tensor_numel(x),
                               (long long)tn_tensor_size(x, 1));
    if (tn_module_is_training(self) && s->track_running_stats)
        return count_batch(self, &o->momentum);
    return TN_OK;
}

static tn_tensor *batch_forward(tn_module *self, tn_tensor *x, int32_t least, int32_t most)
{
    tn_batch_norm_options o = TN_BATCH_NORM_OPTIONS;

    if (batch_begin(self, x, least, most, true, &o) != TN_OK)
        return NULL;
    return tn_batch_norm(x, moment_of(self, "running_mean"), moment_of(self, "running_var"),
                         tn_module_get(self, "weight"), tn_module_get(self, "bias"), o.training,
                         o.momentum, o.eps);
}

/* Returns the parameter, TN_NONE if there is none; NULL if it is computed, which may have
 * effects. */
static tn_tensor *stored(tn_module *self, const char *name)
{
    return tn_module_slot_kind(self, name) == TN_SLOT_PARAMETER ? tn_module_get(self, name) : NULL;
}

static bool batch_channel_norm(tn_module *self, tn_channel_norm *out)
{
    const struct running *s = tn_module_data(self);
    int32_t dims = layers_dims(self);

    if (tn_module_is_training(self) || !has_moments(self, s) ||
        tn_module_slot_kind(self, moments[0]) != TN_SLOT_BUFFER ||
        tn_module_slot_kind(self, moments[1]) != TN_SLOT_BUFFER)
        return false;
    out->mean = moment_of(self, moments[0]);
    out->var = moment_of(self, moments[1]);
    out->weight = stored(self, "weight");
    out->bias = stored(self, "bias");
    out->eps = s->eps;
    out->least_dims = dims == 1 ? 2 : dims + 2;
    out->most_dims = dims + 2;
    return out->mean != NULL && out->mean != TN_NONE && out->var != NULL && out->var != TN_NONE &&
           out->weight != NULL && out->bias != NULL;
}

/* BatchNorm, then maybe a sum, then ReLU or ReLU6. */
static tn_tensor *batch_fuse(tn_module *self, tn_tensor *x, const tn_follower *followers,
                             int64_t count, int64_t *done)
{
    tn_batch_norm_options plain = TN_BATCH_NORM_OPTIONS;
    int32_t dims = layers_dims(self);
    int64_t n = layers_skip(followers, count, 0);
    tn_tensor *weight, *more = TN_NONE;
    const char *name;

    *done = 0;
    if (tn_tensor_ndim(x) < 2)
        return NULL;
    weight = layers_plain_weight(self, x, TN_SHAPE(tn_tensor_size(x, 1)));
    if (n < count && followers[n].add != NULL && layers_has_shape(followers[n].add, x, -1)) {
        more = followers[n].add;
        n = layers_skip(followers, count, n + 1);
    }
    name = n < count ? followers[n].pointwise : NULL;
    if (name == NULL || (strcmp(name, "relu") != 0 && strcmp(name, "relu6") != 0) ||
        weight == NULL ||
        batch_begin(self, x, dims == 1 ? 2 : dims + 2, dims + 2, false, &plain) != TN_OK)
        return NULL;
    *done = n + 1;
    return tn_batch_norm_relu(x, moment_of(self, "running_mean"), moment_of(self, "running_var"),
                              weight, tn_module_get(self, "bias"), more, plain.training,
                              plain.momentum, plain.eps, strcmp(name, "relu6") == 0 ? 6.0 : NAN);
}

static tn_tensor *instance_forward(tn_module *self, tn_tensor *x)
{
    int32_t batched = layers_dims(self) + 2;
    const struct running *s = tn_module_data(self);
    int64_t zero = 0;
    bool single = tn_tensor_ndim(x) == batched - 1;
    tn_tensor *y;

    if (check_dims(self, x, batched - 1, batched) != TN_OK)
        return NULL;
    y = tn_instance_norm(single ? tn_unsqueeze(x, 0) : x, moment_of(self, "running_mean"),
                         moment_of(self, "running_var"), tn_module_get(self, "weight"),
                         tn_module_get(self, "bias"),
                         tn_module_is_training(self) || !s->track_running_stats,
                         isnan(s->momentum) ? 0 : s->momentum, s->eps);
    return single && y != NULL ? tn_squeeze(y, TN_INTS(zero)) : y;
}

static tn_tensor *batch1d_forward(tn_module *self, tn_tensor *x)
{
    return batch_forward(self, x, 2, 3);
}

static tn_tensor *batch2d_forward(tn_module *self, tn_tensor *x)
{
    return batch_forward(self, x, 4, 4);
}

static tn_tensor *batch3d_forward(tn_module *self, tn_tensor *x)
{
    return batch_forward(self, x, 5, 5);
}

/* num_features is the number of channels. The position of this dimension depends on whether there
 * is a batch dimension. */
static tn_status lazy_batch_infer(tn_module *self, const tn_pack *input)
{
    int dims = layers_dims(self), least = dims == 1 ? 2 : dims + 2;

    return lazy_infer(self, input, least, dims + 2, least);
}

static tn_status lazy_instance_infer(tn_module *self, const tn_pack *input)
{
    int dims = layers_dims(self);

    return lazy_infer(self, input, dims + 1, dims + 2, dims + 2);
}

static tn_status running_channels(tn_module *self, tn_channels *out)
{
    static const tn_channel_row rows[] = {
        { "weight", "num_features", 0, TN_CHANNELS_SAME },
        { "bias", NULL, 0, TN_CHANNELS_SAME },
        { "running_mean", NULL, 0, TN_CHANNELS_SAME },
        { "running_var", NULL, 0, TN_CHANNELS_SAME },
    };
    bool batch = tn_module_type(self)[0] == 'B'; /* an InstanceNorm also takes one image */

    out->rows = rows;
    out->n_rows = (int64_t)(sizeof rows / sizeof *rows);
    out->in_axis = out->out_axis = batch ? 1 : -1 - layers_dims(self);
    return TN_OK;
}

/* Version 2 of the state includes num_batches_tracked. */
#define NORM_LAYER(id, name_, ...)                                                                 \
    const tn_layer_def layer_##id = { TN_HEAD(tn_layer_def), .name = name_, .version = 2,          \
                                      __VA_ARGS__ }
#define BATCH                                                                                      \
    .help = "normalizes each channel: (x - mean) / std * weight + bias", .options = batch_options, \
    .collect = batch_collect, .fuse = batch_fuse, .channel_norm = batch_channel_norm,              \
    .flags = TN_LAYER_READS_INPUT, RUNNING_LAYER
#define INSTANCE                                                                                   \
    .help = "normalizes each channel of each image: (x - mean) / std",                             \
    .options = instance_options, .forward = instance_forward, RUNNING_LAYER
#define RUNNING_LAYER                                                                              \
    .data_size = sizeof(struct running), .build = running_build, .load_state = running_load,       \
    .reset = running_reset, .repr = running_repr, .channels = running_channels
NORM_LAYER(batch_norm1d, "BatchNorm1d", BATCH, .forward = batch1d_forward);
NORM_LAYER(batch_norm2d, "BatchNorm2d", BATCH, .forward = batch2d_forward);
NORM_LAYER(batch_norm3d, "BatchNorm3d", BATCH, .forward = batch3d_forward);
NORM_LAYER(instance_norm1d, "InstanceNorm1d", INSTANCE);
NORM_LAYER(instance_norm2d, "InstanceNorm2d", INSTANCE);
NORM_LAYER(instance_norm3d, "InstanceNorm3d", INSTANCE);

#define LAZY(name)                                                                                 \
    "Lazy" name, .help = "a " name " that takes num_features from its first input",                \
                 .becomes = name, .data_size = sizeof(struct running), .build = lazy_build,        \
                 .repr = running_repr
#define LAZY_BATCH(name)                                                                           \
    LAZY(name), .options = lazy_batch_options, .infer = lazy_batch_infer, .collect = batch_collect
#define LAZY_INSTANCE(name)                                                                        \
    LAZY(name), .options = lazy_instance_options, .infer = lazy_instance_infer,                    \
                .forward = instance_forward
NORM_LAYER(lazy_batch_norm1d, LAZY_BATCH("BatchNorm1d"), .forward = batch1d_forward);
NORM_LAYER(lazy_batch_norm2d, LAZY_BATCH("BatchNorm2d"), .forward = batch2d_forward);
NORM_LAYER(lazy_batch_norm3d, LAZY_BATCH("BatchNorm3d"), .forward = batch3d_forward);
NORM_LAYER(lazy_instance_norm1d, LAZY_INSTANCE("InstanceNorm1d"));
NORM_LAYER(lazy_instance_norm2d, LAZY_INSTANCE("InstanceNorm2d"));
NORM_LAYER(lazy_instance_norm3d, LAZY_INSTANCE("InstanceNorm3d"));

/* ---- GroupNorm, LocalResponseNorm ---- */

struct group {
    int64_t num_groups;
    int64_t num_channels;
    double eps;
    bool affine;
    bool bias;
};

static const tn_option group_options[] = {
    TN_OPTION_ROW(struct group, num_groups, NULL, "must divide num_channels", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct group, num_channels, NULL, "channels", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct group, eps, "1e-05", "added to the variance, for stability",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct group, affine, "True", "whether weight and bias are learned",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct group, bias, "True", "whether affine includes a bias", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status group_build(tn_module *self)
{
    const struct group *s = tn_module_data(self);
    tn_ints shape = { &s->num_channels, 1 };

    if (s->num_groups < 1 || s->num_channels % s->num_groups != 0)
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */
                       "GroupNorm: num_channels %lld must be divisible by num_groups "
                       "%lld",
                       (long long)s->num_channels, (long long)s->num_groups);
    return layers_add_affine(self, s->affine, s->affine && s->bias, shape);
}

static int64_t group_repr(tn_module *self, char *out, size_t size)
{
    const struct group *s = tn_module_data(self);

    return tn_snprint(out, size, "%lld, %lld, eps=%g, affine=%s, bias=%s", (long long)s->num_groups,
                      (long long)s->num_channels, s->eps, layers_truth(s->affine),
                      layers_truth(s->affine && s->bias));
}

static tn_tensor *group_forward(tn_module *self, tn_tensor *x)
{
    const struct group *s = tn_module_data(self);

    return tn_group_norm(x, tn_module_get(self, "weight"), tn_module_get(self, "bias"),
                         s->num_groups, s->eps);
}

const tn_layer_def layer_group_norm = {
    TN_HEAD(tn_layer_def),
    .name = "GroupNorm",
    .help = "normalizes groups of channels of each image: (x - mean) / std",
    .options = group_options,
    .data_size = sizeof(struct group),
    .version = 1,
    .build = group_build,
    .reset = layers_reset_affine,
    .repr = group_repr,
    .forward = group_forward,
};

struct response {
    int64_t size;
    double alpha;
    double beta;
    double k;
};

static const tn_option response_options[] = {
    TN_OPTION_ROW(struct response, size, NULL, "number of neighbouring channels",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct response, alpha, "0.0001", "factor of the mean of squares",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct response, beta, "0.75", "exponent", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct response, k, "1.0", "added to alpha times the mean of squares",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_tensor *response_forward(tn_module *self, tn_tensor *x)
{
    const struct response *s = tn_module_data(self);

    return tn_local_response_norm(x, s->size, s->alpha, s->beta, s->k);
}

const tn_layer_def layer_local_response_norm = {
    TN_HEAD(tn_layer_def),
    .name = "LocalResponseNorm",
    .help = "divides each channel by (k + alpha * mean of squares of its neighbours)^beta",
    .options = response_options,
    .data_size = sizeof(struct response),
    .version = 1,
    .forward = response_forward,
};
