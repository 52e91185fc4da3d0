/* SPDX-License-Identifier: MIT
 *
 * SyncBatchNorm: batch normalization with the mean and variance of the batches of all ranks, which
 * may have different sizes, and be empty. Forward gathers the mean, the sum of squared differences
 * and the count of each rank, and combines them in the order of the ranks; backward adds up two
 * sums for each channel. With one rank, and in evaluation, it is BatchNorm. */
#include "parallel.h"

#include <math.h>
#include <string.h>

struct norm {
    int64_t num_features;
    double eps;
    double momentum; /* NAN (None): cumulative mean of all batches */
    bool affine;
    bool track_running_stats;
    bool bias;
    bool collecting; /* no options from here on: all batches count alike */
    tn_comm *group;  /* NULL: the one of tn_parallel_set_group at the time of the call */
};

static const tn_option options[] = {
    TN_OPTION_INT_REQUIRED(struct norm, num_features, "channels"),
    TN_OPTION_ROW(struct norm, eps, "1e-05", "added to the variance, for stability",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct norm, momentum, "0.1",
                  "weight of a batch in the running statistics; None: equal weights for all",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_OPTIONAL | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct norm, affine, "True", "whether weight and bias are learned",
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct norm, track_running_stats, "True", "whether running statistics are kept",
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct norm, bias, "True", "whether affine includes a bias", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

/* ---- parameters and buffers ------------------------------------------------------------------ */

static const struct slot {
    const char *name;
    bool buffer;
    double first;
} slots[] = { { "weight", false, 1 },
              { "bias", false, 0 },
              { "running_mean", true, 0 },
              { "running_var", true, 1 },
              { "num_batches_tracked", true, 0 } };
enum { WEIGHT, BIAS, MEAN, VAR, BATCHES, SLOTS };

static bool is_wanted(const struct norm *s, int slot)
{
    if (slots[slot].buffer)
        return s->track_running_stats;
    return s->affine && (slot == WEIGHT || s->bias);
}

static tn_status add_slot(tn_module *self, int slot)
{
    TN_SCOPE;
    const struct norm *s = tn_module_data(self);
    tn_ints shape = slot == BATCHES ? TN_SCALAR_SHAPE : (tn_ints){ &s->num_features, 1 };
    tn_tensor *tensor = TN_NONE;

    if (is_wanted(s, slot))
        tensor = tn_tensor_empty(shape, slot == BATCHES ? TN_I64 : TN_DTYPE_AUTO, NULL);
    else if (slots[slot].buffer)
        return TN_OK;
    if (tensor == NULL)
        return tn_error_last_code();
    if (slots[slot].buffer)
        return tn_module_add_buffer(self, slots[slot].name, tensor, 0);
    return tn_module_add_parameter(self, slots[slot].name, tn_parameter(tensor, true));
}

static tn_status build(tn_module *self)
{
    struct norm *s = tn_module_data(self);
    tn_status status = TN_OK;

    s->group = NULL;
    if (s->num_features < 0)
        return tn_fail(TN_ERR_VALUE,
                       "SyncBatchNorm: num_features: negative, got %lld; expected 0 or more",
                       (long long)s->num_features);
    for (int slot = 0; slot < SLOTS && status == TN_OK; slot++)
        status = add_slot(self, slot);
    return status;
}

static tn_status fill_slots(tn_module *self, int from)
{
    const struct norm *s = tn_module_data(self);
    tn_status status = TN_OK;

    tn_grad_begin(false);
    for (int slot = from; slot < SLOTS && status == TN_OK; slot++) {
        tn_tensor *tensor = is_wanted(s, slot) ? tn_module_get(self, slots[slot].name) : TN_NONE;

        if (tensor == NULL || (tensor != TN_NONE && tn_fill_(tensor, slots[slot].first) == NULL))
            status = tn_error_last_code();
    }
    tn_grad_end();
    return status;
}

static tn_status reset(tn_module *self)
{
    return fill_slots(self, WEIGHT);
}

static tn_status collect(tn_module *self, bool begin)
{
    struct norm *s = tn_module_data(self);
    tn_status status = begin ? fill_slots(self, MEAN) : TN_OK;

    s->collecting = begin && status == TN_OK;
    return status;
}

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct norm *s = tn_module_data(self);
    char momentum[32] = "None";

    if (!isnan(s->momentum))
        tn_snprint(momentum, sizeof momentum, "%g", s->momentum);
    return tn_snprint(
        out, size, "%lld, eps=%g, momentum=%s, affine=%s, bias=%s, track_running_stats=%s",
        (long long)s->num_features, s->eps, momentum, s->affine ? "True" : "False",
        s->affine && s->bias ? "True" : "False", s->track_running_stats ? "True" : "False");
}

/* ---- the function with its derivative -------------------------------------------------------- */

/* What a call keeps for its derivative. Tensors are owned, with the shape [1, C, 1, ...]. */
struct call {
    tn_comm *group;
    double eps;
    tn_tensor *mean, *scale; /* scale: 1 / sqrt(var + eps) */
    tn_tensor *count;        /* of elements of a channel in all ranks, [1] */
    bool weighted;
    /* For forward alone: running statistics or TN_NONE, not owned, and the weight of the batch. */
    tn_tensor *running[2];
    double momentum;
};

static void call_release(void *user)
{
    struct call *c = user;

    tn_tensor_drop(c->mean);
    tn_tensor_drop(c->scale);
    tn_tensor_drop(c->count);
    tn_free(c);
}

/* All dimensions but 1. */
static tn_ints other_dims(const tn_tensor *x, int64_t dims[TN_MAX_DIMS])
{
    int64_t count = 0;

    for (int32_t d = 0; d < tn_tensor_ndim(x); d++)
        if (d != 1)
            dims[count++] = d;
    return (tn_ints){ dims, count };
}

/* Gives a tensor of C elements the shape [1, C, 1, ...] of x. */
static tn_tensor *by_channel(tn_tensor *tensor, const tn_tensor *x)
{
    int64_t shape[TN_MAX_DIMS];

    for (int32_t d = 0; d < tn_tensor_ndim(x); d++)
        shape[d] = d == 1 ? tn_tensor_size(x, 1) : 1;
    return tn_reshape(tensor, (tn_ints){ shape, tn_tensor_ndim(x) });
}

/* Statistics are computed in float32, those of float64 in float64. */
static tn_tensor *widened(tn_tensor *x)
{
    tn_dtype dtype = tn_tensor_dtype(x);

    return dtype == TN_F64 || dtype == TN_F32 ? x : tn_cast(x, TN_F32);
}

/* Returns [2 C + 1]: means, sums of squared differences, count. */
static tn_tensor *statistics_of(tn_tensor *x)
{
    int64_t at[TN_MAX_DIMS], channels = tn_tensor_size(x, 1);
    tn_ints dims = other_dims(x, at);
    double count = channels > 0 ? (double)(tn_tensor_numel(x) / channels) : 0;
    tn_tensor *parts[3], *apart;

    if (count == 0)
        return tn_tensor_full(TN_SHAPE(2 * channels + 1), tn_scalar_float(0), tn_tensor_dtype(x),
                              tn_tensor_device(x));
    parts[0] = tn_mean(x, dims);
    apart = tn_sub(x, by_channel(parts[0], x));
    parts[1] = tn_sum(tn_square(apart), dims);
    parts[2] = tn_tensor_full(TN_SHAPE(1), tn_scalar_float(count), tn_tensor_dtype(x),
                              tn_tensor_device(x));
    return tn_cat(parts, 3, 0);
}

/* running = running (1 - momentum) + value momentum */
static tn_status update(tn_tensor *running, tn_tensor *value, double momentum)
{
    tn_tensor *more;

    if (running == TN_NONE)
        return TN_OK;
    more = tn_mul_scalar(value, momentum);
    if (more != NULL && tn_tensor_dtype(more) != tn_tensor_dtype(running))
        more = tn_cast(more, tn_tensor_dtype(running));
    return tn_add_(tn_mul_scalar_(running, 1 - momentum), more) != NULL ? TN_OK
                                                                        : tn_error_last_code();
}

/* Fails on all ranks if their batches have no variance. */
static tn_status check_count(const struct call *c, int64_t channels)
{
    double count = c->count != NULL ? tn_item(c->count) : 0;

    if (c->count == NULL)
        return tn_error_last_code();
    if (count > 1 || channels == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "SyncBatchNorm: input: too few values in each channel, got %g of all ranks; "
                   "expected more than 1 value per channel when training",
                   count);
}

/* Combines the rows of all ranks into mean, variance and count. */
static tn_status combine(struct call *c, tn_tensor *rows, const tn_tensor *x)
{
    int64_t channels = tn_tensor_size(x, 1), zero = 0;
    tn_ints ranks = { &zero, 1 };
    tn_tensor *means = tn_narrow(rows, 1, 0, channels);
    tn_tensor *squares = tn_narrow(rows, 1, channels, channels);
    tn_tensor *counts = tn_narrow(rows, 1, 2 * channels, 1), *mean, *apart, *var;
    tn_status status;

    c->count = tn_tensor_keep(tn_sum(counts, ranks));
    if (check_count(c, channels) != TN_OK)
        return tn_error_last_code();
    mean = tn_div(tn_sum(tn_mul(means, counts), ranks), c->count);
    apart = tn_sub(means, tn_reshape(mean, TN_SHAPE(1, channels)));
    squares = tn_sum(tn_add(squares, tn_mul(tn_square(apart), counts)), ranks);
    var = tn_div(squares, c->count);
    c->mean = tn_tensor_keep(by_channel(mean, x));
    c->scale = tn_tensor_keep(by_channel(tn_rsqrt(tn_add_scalar(var, c->eps)), x));
    status = c->mean != NULL && c->scale != NULL ? update(c->running[0], mean, c->momentum)
                                                 : tn_error_last_code();
    if (status != TN_OK)
        return status;
    return update(c->running[1], tn_div(squares, tn_add_scalar(c->count, -1.0)), c->momentum);
}

static tn_status exchange(struct call *c, tn_tensor *x)
{
    int64_t size = tn_comm_size(c->group);
    tn_tensor *mine = statistics_of(x), *rows = NULL;
    tn_status status = TN_ERR_MEMORY;

    if (mine != NULL)
        rows = tn_tensor_empty(TN_SHAPE(size, tn_tensor_numel(mine)), tn_tensor_dtype(x),
                               tn_tensor_device(x));
    status = rows != NULL ? tn_comm_all_gather(c->group, rows, mine) : tn_error_last_code();
    return status == TN_OK ? combine(c, rows, x) : status;
}

/* The normalized x. */
static tn_tensor *centered(const struct call *c, tn_tensor *x)
{
    return tn_mul(tn_sub(x, c->mean), c->scale);
}

static tn_status norm_forward(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                              tn_tensor **out)
{
    struct call *c = user;
    tn_tensor *x = widened(in[0]), *y;
    tn_status status = x != NULL ? exchange(c, x) : tn_error_last_code();

    if (status != TN_OK)
        return status;
    y = centered(c, x);
    if (in[1] != TN_NONE)
        y = tn_mul(y, by_channel(in[1], x));
    if (in[2] != TN_NONE)
        y = tn_add(y, by_channel(in[2], x));
    out[0] = y != NULL && tn_tensor_dtype(y) != tn_tensor_dtype(in[0])
                 ? tn_cast(y, tn_tensor_dtype(in[0]))
                 : y;
    if (out[0] == NULL)
        return tn_error_last_code();
    status = tn_function_save(ctx, in[0]);
    return status == TN_OK && in[1] != TN_NONE ? tn_function_save(ctx, in[1]) : status;
}

/* Returns sums over all ranks of two rows [2, C], divided by the count. */
static tn_tensor *means_of(const struct call *c, tn_tensor *const rows[2])
{
    tn_tensor *sums = tn_clone(tn_cat(rows, 2, 0));

    if (sums == NULL || tn_comm_all_reduce(c->group, sums, TN_REDUCTION_SUM) != TN_OK)
        return NULL;
    return tn_div(sums, c->count);
}

/* gx = (gy - mean(gy) - xhat mean(gy xhat)) scale weight, with means over all ranks. */
static tn_tensor *input_gradient(const struct call *c, tn_tensor *gy, tn_tensor *hat,
                                 tn_tensor *means, tn_tensor *weight)
{
    int64_t channels = tn_tensor_size(hat, 1);
    tn_tensor *first = by_channel(tn_narrow(means, 0, 0, channels), hat);
    tn_tensor *second = by_channel(tn_narrow(means, 0, channels, channels), hat);
    tn_tensor *g = tn_mul(tn_sub(tn_sub(gy, first), tn_mul(hat, second)), c->scale);

    return weight != NULL ? tn_mul(g, by_channel(weight, hat)) : g;
}

static tn_status norm_backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                               tn_tensor **gin)
{
    const struct call *c = user;
    tn_tensor *weight = c->weighted ? tn_function_saved(ctx, 1) : NULL;
    tn_tensor *x = tn_function_saved(ctx, 0), *gy = gout[0], *hat, *sums[2], *means;
    int64_t at[TN_MAX_DIMS];

    gin[0] = gin[1] = gin[2] = TN_NONE;
    if (tn_grad_enabled())
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "SyncBatchNorm: create_graph: no second derivative; "
                                               "expected create_graph false");
    x = x != NULL ? widened(x) : NULL;
    gy = widened(gy);
    if (x == NULL || gy == NULL || (c->weighted && weight == NULL))
        return tn_error_last_code();
    hat = centered(c, x);
    sums[0] = tn_sum(gy, other_dims(x, at));
    sums[1] = tn_sum(tn_mul(gy, hat), other_dims(x, at));
    means = means_of(c, sums);
    if (means == NULL)
        return tn_error_last_code();
    if (tn_function_needs_grad(ctx, 0))
        gin[0] = input_gradient(c, gy, hat, means, weight);
    if (tn_function_needs_grad(ctx, 1))
        gin[1] = sums[1];
    if (tn_function_needs_grad(ctx, 2))
        gin[2] = sums[0];
    return gin[0] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_function norm_function = { .name = "SyncBatchNorm",
                                           .forward = norm_forward,
                                           .backward = norm_backward,
                                           .release = call_release };

/* ---- the layer ------------------------------------------------------------------------------- */

static tn_tensor *moment_of(tn_module *self, int slot)
{
    const struct norm *s = tn_module_data(self);

    return s->track_running_stats ? tn_module_get(self, slots[slot].name) : TN_NONE;
}

/* Counts the batch, and sets *momentum to its weight in the running statistics. */
static tn_status count_batch(tn_module *self, double *momentum)
{
    const struct norm *s = tn_module_data(self);
    tn_tensor *count = moment_of(self, BATCHES);
    tn_scalar batches;
    tn_status status;

    *momentum = s->momentum;
    if (count == TN_NONE)
        return TN_OK;
    if (count == NULL || tn_add_scalar_(count, 1) == NULL)
        return tn_error_last_code();
    if (!isnan(s->momentum) && !s->collecting)
        return TN_OK;
    status = tn_tensor_scalar(count, &batches);
    *momentum = status == TN_OK ? 1 / tn_scalar_as_float(batches) : 0;
    return status;
}

/* Normalizes with the statistics of all ranks. */
static tn_tensor *forward_over_ranks(tn_module *self, tn_comm *group, tn_tensor *x, double momentum)
{
    const struct norm *s = tn_module_data(self);
    tn_tensor *in[3] = { x, tn_module_get(self, "weight"), tn_module_get(self, "bias") };
    struct call *c = tn_calloc(1, sizeof *c);
    tn_tensor *out = NULL;

    if (c == NULL)
        return NULL;
    *c = (struct call){ .group = group,
                        .eps = s->eps,
                        .weighted = in[1] != TN_NONE,
                        .running = { moment_of(self, MEAN), moment_of(self, VAR) },
                        .momentum = momentum };
    if (in[1] == NULL || in[2] == NULL || c->running[0] == NULL || c->running[1] == NULL) {
        tn_free(c);
        return NULL;
    }
    return tn_function_call(&norm_function, c, in, 3, &out, 1) == TN_OK ? out : NULL;
}

static tn_status check(tn_module *self, const tn_tensor *x, int32_t ranks, bool by_batch)
{
    const struct norm *s = tn_module_data(self);
    int64_t channels = tn_tensor_ndim(x) > 1 ? tn_tensor_size(x, 1) : 0;

    if (tn_tensor_ndim(x) < 2)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE, "expected at least 2D input (got %dD input)",
                       (int)tn_tensor_ndim(x));
    if (channels != s->num_features)
        return tn_fail(
            TN_ERR_VALUE,
            "SyncBatchNorm: input: wrong channels, got %lld; expected %lld, num_features",
            (long long)channels, (long long)s->num_features);
    if (by_batch && ranks == 1 && channels > 0 && tn_tensor_numel(x) == channels)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE,
                       "Expected more than 1 value per channel when training, got input of %d "
                       "dimensions with %lld values in %lld channels",
                       (int)tn_tensor_ndim(x), (long long)channels, (long long)channels);
    return TN_OK;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct norm *s = tn_module_data(self);
    tn_comm *group = s->group != NULL ? s->group : group_default();
    bool training = tn_module_is_training(self), by_batch = training || !s->track_running_stats;
    double momentum = 0;

    if (check(self, x, group_size(group), by_batch) != TN_OK ||
        (training && count_batch(self, &momentum) != TN_OK))
        return NULL;
    if (training && group_size(group) > 1)
        return forward_over_ranks(self, group, x, momentum);
    return tn_batch_norm(x, moment_of(self, MEAN), moment_of(self, VAR),
                         tn_module_get(self, "weight"), tn_module_get(self, "bias"), by_batch,
                         momentum, s->eps);
}

const tn_layer_def layer_sync_batch_norm = {
    TN_HEAD(tn_layer_def),
    .name = "SyncBatchNorm",
    .help = "batch normalization with the statistics of the batches of all ranks",
    .options = options,
    .data_size = sizeof(struct norm),
    .version = 2,
    .build = build,
    .forward = forward,
    .repr = repr,
    .reset = reset,
    .collect = collect,
    .flags = TN_LAYER_READS_INPUT
};

/* ---- conversion ------------------------------------------------------------------------------ */

static bool is_batch_norm(const tn_module *module)
{
    static const char *const types[] = { "BatchNorm1d", "BatchNorm2d", "BatchNorm3d" };

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(tn_module_type(module), types[i]) == 0)
            return true;
    return false;
}

/* Makes a SyncBatchNorm with the options of a BatchNorm. */
static tn_module *make_like(tn_module *norm)
{
    static const char *const names[] = { "num_features", "eps",  "momentum",
                                         "affine",       "bias", "track_running_stats" };
    enum { COUNT = sizeof names / sizeof *names };
    tn_pack *pack = tn_pack_new();
    tn_status status = pack != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_value values[COUNT];
    tn_module *made = NULL;

    for (int i = 0; i < COUNT && status == TN_OK; i++) {
        status = tn_module_option_get(norm, names[i], pack);
        if (status == TN_OK)
            values[i] = tn_pack_at(pack, i);
    }
    if (status == TN_OK)
        made = tn_module_make("SyncBatchNorm", values, names, COUNT);
    tn_pack_drop(pack);
    return made;
}

static tn_status share_slot(tn_module *to, tn_module *from, int slot)
{
    const char *name = slots[slot].name;
    tn_tensor *tensor;

    if (tn_module_slot_kind(to, name) == 0)
        return TN_OK;
    if (tn_module_slot_kind(from, name) == TN_SLOT_COMPUTED)
        return tn_fail(TN_ERR_VALUE,
                       "tn_sync_batch_norm_convert: %s of a %s is parametrized; expected "
                       "parametrizations after the conversion",
                       name, tn_module_type(from));
    tensor = tn_module_get(from, name);
    return tensor != NULL ? tn_module_set(to, name, tensor) : tn_error_last_code();
}

/* Returns the SyncBatchNorm that takes the place of a BatchNorm. */
static tn_module *converted(tn_module *norm, tn_comm *group)
{
    tn_module *made = make_like(norm);
    tn_status status = made != NULL ? TN_OK : tn_error_last_code();

    for (int slot = 0; slot < SLOTS && status == TN_OK; slot++)
        status = share_slot(made, norm, slot);
    if (status == TN_OK)
        status = tn_module_train(made, tn_module_is_training(norm));
    if (status == TN_OK) {
        ((struct norm *)tn_module_data(made))->group = group;
        return made;
    }
    tn_module_drop(made);
    return NULL;
}

/* Replaces a norm at all paths at which the module has it. */
static tn_status replace(tn_module *root, tn_module *norm, tn_module *made)
{
    const tn_walk_options all = { .size = sizeof all, .flags = TN_WALK_DUPLICATES };
    tn_walk *walk = tn_walk_begin(root, TN_SLOT_CHILD, &all);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk))
        if (at->module == norm)
            status = tn_module_set_child(root, at->path, made, true);
    tn_walk_end(walk);
    return status;
}

tn_module *sync_norms(tn_module *module, tn_comm *group)
{
    tn_walk *walk;
    tn_status status = TN_OK;

    if (module == NULL)
        return NULL;
    if (is_batch_norm(module))
        return converted(module, group);
    walk = tn_walk_begin(module, TN_SLOT_CHILD, NULL);
    if (walk == NULL)
        return NULL;
    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk)) {
        tn_module *made;

        if (!is_batch_norm(at->module))
            continue;
        made = converted(at->module, group);
        status = made != NULL ? replace(module, at->module, made)
                              : tn_error_prefix("%s: ", at->path);
        tn_module_drop(made);
    }
    tn_walk_end(walk);
    return status == TN_OK ? tn_module_keep(module) : NULL;
}
