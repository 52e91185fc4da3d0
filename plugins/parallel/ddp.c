/* SPDX-License-Identifier: MIT
 *
 * The layer DistributedDataParallel: its options, its child, and the functions of the program. */
#include "ddp.h"

#include <math.h>
#include <string.h>

/* ---- options --------------------------------------------------------------------------------- */

static const tn_option options[] = {
    TN_OPTION_ROW(ddp_options, module, NULL, "the module that is trained", TN_OPTION_KIND_VALUE,
                  TN_OPTION_REQUIRED),
    TN_OPTION_FLOAT(ddp_options, bucket_cap_mb, "25",
                    "size of the parts in which gradients are combined, in MiB"),
    TN_OPTION_BOOL(ddp_options, broadcast_buffers, "True",
                   "in training, forward copies the buffers of rank 0 to all ranks"),
    TN_OPTION_BOOL(ddp_options, find_unused_parameters, "False",
                   "parameters that the loss does not depend on count as zeros"),
    TN_OPTION_ROW(ddp_options, average, "'ranks'",
                  "gradients are the mean over 'ranks' or 'samples', or, with 'none', the sum",
                  TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(ddp_options, comm_hook, "None",
                  "sends gradients in half precision: 'fp16' or 'bf16'", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD | TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(ddp_options, shards, "0",
                  "equal parts of a batch, one backward each; the same number gives the same bits "
                  "on 1, 2, 4, ... ranks. 0: none",
                  TN_OPTION_KIND_INT, TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static const char *const averages[] = { "ranks", "samples", "none" };
static const struct packing {
    const char *name;
    tn_dtype dtype;
} packings[] = { { "fp16", TN_F16 }, { "bf16", TN_BF16 } };

static bool is_power_of_two(int64_t number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

static tn_status check_shards(const ddp_options *o, int64_t size)
{
    if (o->shards == 0 || (is_power_of_two(o->shards) && o->shards <= DDP_SHARDS_MOST &&
                           is_power_of_two(size) && o->shards % size == 0))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "DistributedDataParallel: shards: wrong, got %lld with %lld rank%s; expected a "
                   "power of two up to %d, and as many ranks or 1/2, 1/4, ... of it",
                   (long long)o->shards, (long long)size, size == 1 ? "" : "s", DDP_SHARDS_MOST);
}

/* Checks the options and stores them in the state. */
static tn_status read_options(const ddp_options *o, ddp *d)
{
    bool known = false, packs = o->comm_hook == NULL;

    for (tn_ddp_average i = 0; i <= TN_DDP_AVERAGE_NONE && !known; i++) {
        known = strcmp(o->average, averages[i]) == 0;
        d->average = i;
    }
    d->packed = TN_DTYPE_AUTO;
    for (size_t i = 0; i < sizeof packings / sizeof *packings && !packs; i++) {
        packs = strcmp(o->comm_hook, packings[i].name) == 0;
        d->packed = packings[i].dtype;
    }
    d->copies_buffers = o->broadcast_buffers;
    d->find_unused = o->find_unused_parameters;
    d->shards = o->shards;
    d->shards_here = o->shards / d->size;
    if (!(o->bucket_cap_mb > 0) || o->bucket_cap_mb > 1 << 20)
        return tn_fail(
            TN_ERR_VALUE,
            "DistributedDataParallel: bucket_cap_mb: out of range, got %g; expected more "
            "than 0, up to 1048576",
            o->bucket_cap_mb);
    if (!known)
        return tn_fail(TN_ERR_VALUE,
                       "DistributedDataParallel: average: unknown, got %q; expected ranks, samples "
                       "or none",
                       o->average);
    if (!packs)
        return tn_fail(
            TN_ERR_VALUE,
            "DistributedDataParallel: comm_hook: unknown, got %q; expected fp16, bf16 or "
            "None",
            o->comm_hook);
    return check_shards(o, d->size);
}

/* ---- life ------------------------------------------------------------------------------------ */

void ddp_keep(ddp *d)
{
    d->references++;
}

tn_status ddp_failed(ddp *d)
{
    tn_status status = group_abort(d->group);

    bucket_abandon(d);
    return status;
}

void ddp_drop(void *user)
{
    ddp *d = user;

    if (--d->references > 0)
        return;
    for (int64_t i = 0; i < d->count; i++) {
        share_clear(&d->parameters[i]);
        tn_tensor_drop(d->parameters[i].view);
        tn_tensor_drop(d->parameters[i].tensor);
        tn_free(d->parameters[i].path);
    }
    for (int64_t i = 0; i < d->n_buffers; i++) {
        tn_tensor_drop(d->buffers[i]);
        tn_tensor_drop(d->snapshot[i]);
    }
    bucket_free_all(d);
    tn_free(d->buffers);
    tn_free(d->snapshot);
    tn_free(d->parameters);
    tn_free(d->message);
    tn_free(d->order);
    tn_free(d->arrivals);
    tn_free(d);
}

static void release_hook(void *parameter)
{
    ddp_drop(((ddp_parameter *)parameter)->ddp);
}

static void destroy(tn_module *self)
{
    ddp_options *o = tn_module_data(self);
    ddp *d = o->state;

    if (d == NULL)
        return;
    d->closed = true;
    if (d->walking && d->size > 1)
        tn_comm_abort(d->group);
    bucket_abandon(d);
    d->group = NULL;
    for (int64_t i = 0; i < d->count; i++)
        tn_hook_remove(d->parameters[i].hook);
    walk_forget(d);
    o->state = NULL;
    ddp_drop(d);
}

/* The copy has no state; its first forward in training makes one, with the same group. */
static tn_status copy(tn_module *self, tn_module *from)
{
    ddp_options *o = tn_module_data(self);

    (void)from;
    o->state = NULL;
    return TN_OK;
}

/* ---- wrapping -------------------------------------------------------------------------------- */

/* The group of the module that ddp_wrap makes in this thread. */
static _Thread_local tn_comm *wrapping;

static tn_status add_parameter(ddp *d, const tn_visit *at)
{
    ddp_parameter *p = &d->parameters[d->count];

    p->ddp = d;
    p->path = tn_strdup(at->path);
    if (p->path == NULL)
        return TN_ERR_MEMORY;
    p->tensor = tn_tensor_keep(at->tensor);
    p->numel = tn_tensor_numel(at->tensor);
    d->count++;
    p->hook = tn_tensor_hook_added(p->tensor, share_arrived, p, release_hook);
    if (p->hook == 0)
        return tn_error_last_code();
    ddp_keep(d);
    return TN_OK;
}

static tn_status check_place(const ddp *d, const tn_visit *at)
{
    const tn_device *device = d->group != NULL ? tn_comm_device(d->group) : NULL;

    if (device == NULL || tn_tensor_device(at->tensor) == device)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "DistributedDataParallel: %s: wrong device, got %s; expected %s, the device of "
                   "the group",
                   at->path, tn_device_name(tn_tensor_device(at->tensor)), tn_device_name(device));
}

/* Collects the parameters that require gradients and the buffers; in `all` all tensors. */
static tn_status collect(ddp *d, tn_module *module, tn_tensor **all, int64_t *n_all)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk)) {
        status = check_place(d, at);
        all[(*n_all)++] = at->tensor; /* the module keeps it */
        if (at->kind == TN_SLOT_BUFFER)
            d->buffers[d->n_buffers++] = tn_tensor_keep(at->tensor);
        else if (status == TN_OK && tn_tensor_requires_grad(at->tensor))
            status = add_parameter(d, at);
    }
    tn_walk_end(walk);
    return status;
}

static int64_t count_tensors(tn_module *module)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);
    int64_t count = 0;

    if (walk == NULL)
        return -1;
    while (tn_walk_next(walk) != NULL)
        count++;
    tn_walk_end(walk);
    return count;
}

/* Gives all ranks the tensors of rank 0; with shards also its random numbers, of which those of the
 * shards are made. */
static tn_status copy_first(const ddp *d, tn_tensor *const *all, int64_t count)
{
    uint64_t random[3];
    tn_status status = group_copy(d->group, all, count);

    if (status == TN_OK && d->shards > 0)
        status = tn_random_get_state(random);
    if (status == TN_OK && d->shards > 0)
        status = group_integers(d->group, (int64_t *)random, 3);
    return status == TN_OK && d->shards > 0 ? tn_random_set_state(random) : status;
}

static tn_status fill(ddp *d, tn_module *module, const ddp_options *o)
{
    int64_t count = count_tensors(module), n_all = 0;
    tn_tensor **all = count >= 0 ? tn_calloc((size_t)count + 1, sizeof *all) : NULL;
    tn_status status = TN_OK;

    d->buffers = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    d->snapshot = tn_calloc((size_t)count + 1, sizeof(tn_tensor *));
    d->parameters = tn_calloc((size_t)count + 1, sizeof *d->parameters);
    d->message = tn_calloc((size_t)count + DDP_SLOTS + 1, sizeof *d->message);
    d->order = tn_calloc((size_t)count + 1, sizeof *d->order);
    d->arrivals = tn_calloc((size_t)count + 1, sizeof *d->arrivals);
    if (all == NULL || d->order == NULL || d->arrivals == NULL || d->buffers == NULL ||
        d->snapshot == NULL || d->parameters == NULL || d->message == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = collect(d, module, all, &n_all);
    d->cap_mb = o->bucket_cap_mb;
    for (int64_t i = 0; i < d->count && status == TN_OK; i++)
        d->order[i] = d->count - 1 - i;
    if (status == TN_OK)
        status = bucket_divide(d);
    if (status == TN_OK)
        status = walk_prepare(d);
    if (status != TN_OK)
        group_abort(d->group);
    else if (d->count == 0) /* on all ranks; PyTorch's wording */
        status = tn_fail(TN_ERR_RUNTIME, "DistributedDataParallel is not needed when a module "
                                         "doesn't have any parameter that requires a gradient.");
    else
        status = copy_first(d, all, n_all);
    tn_free(all);
    return status;
}

/* The options as compare_ranks() compares them. */
static void options_text(const ddp_options *o, char *out, size_t size)
{
    tn_snprint(out, size,
               "bucket_cap_mb=%g, broadcast_buffers=%b, find_unused_parameters=%b, average=%s, "
               "comm_hook=%s, shards=%lld",
               o->bucket_cap_mb, o->broadcast_buffers, o->find_unused_parameters, o->average,
               o->comm_hook != NULL ? o->comm_hook : "None", (long long)o->shards);
}

/* Makes the state, unless there is one: the layers of a copy have none. */
static tn_status prepare(tn_module *self, tn_comm *group)
{
    ddp_options *o = tn_module_data(self);
    tn_module *module = tn_module_child(self, "module");
    char text[300];
    tn_status status;
    ddp *d;

    if (o->state != NULL)
        return TN_OK;
    d = module != NULL ? tn_calloc(1, sizeof *d) : NULL;
    if (d == NULL)
        return group_abort(group);
    *d = (ddp){ .references = 1, .group = group, .weight = NAN };
    d->rank = group_rank(group);
    d->size = group_size(group);
    o->state = d;
    o->group = group;
    status = read_options(o, d);
    if (status != TN_OK) {
        group_abort(group);
    } else {
        options_text(o, text, sizeof text);
        status = compare_ranks(module, group, text);
    }
    if (status == TN_OK)
        status = fill(d, module, o);
    if (status != TN_OK)
        destroy(self);
    return status;
}

tn_module *parallel_module(const tn_value *value)
{
    if (value->kind == TN_VALUE_SPEC)
        return tn_module_parse(value->as.s);
    if (value->kind == TN_VALUE_MODULE)
        return tn_module_keep(value->as.module);
    tn_fail(TN_ERR_TYPE, "module: wrong type, got %s; expected a module, as in Linear(4, 3)",
            tn_value_kind_name(value->kind));
    return NULL;
}

static tn_status build(tn_module *self)
{
    const ddp_options *o = tn_module_data(self);
    tn_module *module = parallel_module(&o->module);
    tn_comm *group = wrapping != NULL ? wrapping : group_default();
    tn_status status = module != NULL ? tn_module_add_child(self, "module", module)
                                      : tn_error_prefix("DistributedDataParallel: ");

    tn_module_drop(module);
    if (status != TN_OK)
        return group_abort(group);
    return prepare(self, group);
}

/* ---- forward --------------------------------------------------------------------------------- */

static tn_comm *group_of(const ddp_options *o)
{
    return o->group != NULL ? o->group : group_default();
}

/* The number of samples: the size of dimension 0 of the first tensor; 1 without one. */
static double batch_of(const tn_pack *input)
{
    for (int64_t i = 0; i < tn_pack_count(input); i++) {
        tn_value value = tn_pack_at(input, i);

        if (value.kind == TN_VALUE_TENSOR && value.as.tensor != TN_NONE &&
            tn_tensor_ndim(value.as.tensor) > 0)
            return (double)tn_tensor_size(value.as.tensor, 0);
    }
    return 1;
}

/* Checks that the parameters are those that were wrapped. With one rank, which has nobody to agree
 * with, others take their place. */
static tn_status check_parameters(tn_module *self, tn_module *module)
{
    const ddp_options *o = tn_module_data(self);
    uint64_t mark = tn_error_mark();
    tn_status status = compare_wrapped(o->state, module);
    int64_t no_sync = o->state->no_sync;
    tn_comm *group = o->state->group;

    if (status != TN_ERR_RUNTIME || !ddp_is_alone(o->state))
        return status;
    tn_error_restore(mark);
    destroy(self);
    status = prepare(self, group);
    if (status == TN_OK)
        o->state->no_sync = no_sync;
    return status;
}

static tn_status call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const ddp_options *o = tn_module_data(self);
    tn_module *module = tn_module_child(self, "module");
    bool learns = tn_grad_enabled(), training = tn_module_is_training(self);
    tn_status status = module != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && (learns || training)) /* the evaluation of a copy has no exchange */
        status = prepare(self, group_of(o));
    if (status == TN_OK && learns)
        status = check_parameters(self, module);
    if (status == TN_OK && learns)
        status = walk_prepare(o->state);
    if (status == TN_OK && training)
        status = compare_buffers(o->state, module);
    if (status == TN_OK && o->state != NULL)
        status = step_forward(o->state, training);
    if (status == TN_OK)
        status = tn_module_call_pack(module, input, output);
    if (status == TN_OK && learns)
        status = walk_watch(o->state, output, batch_of(input));
    if (status != TN_OK && o->state != NULL && learns)
        ddp_failed(o->state);
    return status;
}

/* As in PyTorch, only the child is printed. */
static int64_t no_words(tn_module *self, char *out, size_t size)
{
    (void)self;
    return tn_snprint(out, size, "%s", "");
}

const tn_layer_def layer_ddp = { TN_HEAD(tn_layer_def),
                                 .name = "DistributedDataParallel",
                                 .help = "trains a module on several ranks: backward combines the "
                                         "gradients",
                                 .options = options,
                                 .data_size = sizeof(ddp_options),
                                 .version = 1,
                                 .build = build,
                                 .destroy = destroy,
                                 .call = call,
                                 .repr = no_words,
                                 .copy = copy,
                                 .flags = TN_LAYER_THROUGH };

/* ---- functions of the program ---------------------------------------------------------------- */

tn_module *ddp_wrap(tn_module *module, tn_comm *group, const tn_ddp_options *given)
{
    static const char *const names[] = {
        NULL,        "bucket_cap_mb", "broadcast_buffers",     "average",
        "comm_hook", "shards",        "find_unused_parameters"
    };
    const tn_ddp_options none = { .size = sizeof none };
    const tn_ddp_options *o = given != NULL ? given : &none;
    tn_value values[7];
    tn_module *made;

    if (module == NULL || o->size != sizeof *o || o->average > TN_DDP_AVERAGE_NONE) {
        if (module != NULL)
            tn_fail(TN_ERR_VALUE,
                    "tn_ddp_new: options: wrong size or average, got %lld and %u; expected %zu, "
                    "sizeof(tn_ddp_options), and a TN_DDP_AVERAGE",
                    (long long)o->size, o->average, sizeof *o);
        return NULL;
    }
    values[0] = tn_value_module(module);
    values[1] = tn_value_float(o->bucket_cap_mb == 0 ? 25 : o->bucket_cap_mb);
    values[2] = tn_value_bool(!o->keep_buffers);
    values[3] = tn_value_string(averages[o->average]);
    values[4] = o->comm_hook != NULL ? tn_value_string(o->comm_hook) : tn_value_none();
    values[5] = tn_value_int(o->shards);
    values[6] = tn_value_bool(o->find_unused_parameters);
    wrapping = group;
    made = tn_module_make("DistributedDataParallel", values, names, 7);
    wrapping = NULL;
    return made;
}

ddp *ddp_of(tn_module *net, const char *who)
{
    const ddp_options *o = net != NULL ? tn_module_data(net) : NULL;

    if (net == NULL)
        return NULL;
    if (strcmp(tn_module_type(net), layer_ddp.name) != 0) {
        tn_fail(TN_ERR_TYPE, "%s: net: wrong type, got %s; expected DistributedDataParallel", who,
                tn_module_type(net));
        return NULL;
    }
    return prepare(net, group_of(o)) == TN_OK ? o->state : NULL;
}

tn_status ddp_no_sync(tn_module *net, bool begin)
{
    ddp *d = ddp_of(net, begin ? "tn_ddp_no_sync_begin" : "tn_ddp_no_sync_end");

    if (d == NULL)
        return tn_error_last_code();
    if (d->shards > 0)
        return tn_fail(TN_ERR_VALUE, "tn_ddp_no_sync_begin: the module has shards, which are "
                                     "accumulated without it; expected one backward for each");
    if (!begin && d->no_sync == 0)
        return tn_fail(TN_ERR_RUNTIME, "tn_ddp_no_sync_end: no tn_ddp_no_sync_begin before it");
    d->no_sync += begin ? 1 : -1;
    return TN_OK;
}

tn_status ddp_weight(tn_module *net, double weight)
{
    ddp *d = ddp_of(net, "tn_ddp_weight");

    if (d == NULL)
        return tn_error_last_code();
    if (weight < 0 || isinf(weight))
        return tn_fail(TN_ERR_VALUE,
                       "tn_ddp_weight: weight: out of range, got %g; expected a finite number of 0 "
                       "or more, or NaN",
                       weight);
    d->weight = weight;
    return TN_OK;
}

static tn_status skip(tn_module *net, ddp *d)
{
    double weight = d->weight;
    tn_status status = compare_wrapped(d, tn_module_child(net, "module"));

    if (status == TN_OK)
        status = compare_buffers(d, tn_module_child(net, "module"));
    if (status == TN_OK)
        status = step_forward(d, tn_module_is_training(net));
    d->weight = 0;
    if (status == TN_OK)
        status = walk_begin(d, d->no_sync == 0, 0);
    d->weight = weight;
    return status == TN_OK ? step_end(d, true) : ddp_failed(d);
}

tn_status ddp_skip(tn_module *net)
{
    ddp *d = ddp_of(net, "tn_ddp_skip");

    return d != NULL ? skip(net, d) : tn_error_last_code();
}

tn_status ddp_join(tn_module *net)
{
    ddp *d = ddp_of(net, "tn_ddp_join");
    tn_status status = d != NULL ? TN_OK : tn_error_last_code();

    if (d != NULL && d->shards > 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_ddp_join: the module has shards, of which all ranks have "
                       "equally many; expected tn_ddp_skip for those without samples");
    do
        status = status == TN_OK ? skip(net, d) : status;
    while (status == TN_OK && d->message[DDP_TAKING_PART] > 0);
    return status;
}

tn_status ddp_set_hook(tn_module *net, tn_ddp_bucket_hook hook, void *user)
{
    ddp *d = ddp_of(net, "tn_ddp_hook");

    if (d == NULL)
        return tn_error_last_code();
    if (d->began)
        return tn_fail(TN_ERR_RUNTIME, "tn_ddp_hook: net: its gradients are combined already; "
                                       "expected the hook before the first backward, or a new "
                                       "DistributedDataParallel");
    d->hook = hook;
    d->hook_user = user;
    return TN_OK;
}

tn_status ddp_buffers(tn_module *net)
{
    ddp *d = ddp_of(net, "tn_ddp_broadcast_buffers");

    if (d == NULL || compare_buffers(d, tn_module_child(net, "module")) != TN_OK)
        return tn_error_last_code();
    return step_buffers(d);
}
