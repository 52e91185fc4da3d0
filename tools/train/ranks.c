/* SPDX-License-Identifier: MIT
 *
 * Trains with several processes, and in equal parts of a batch (shards). The part of the batch that
 * a process reads and the order in which it takes its shards are such that the gradients of one
 * number of shards are added in the same order on 1, 2, 4, ... processes.
 *
 * The loader gives process q, of W, the samples at the places q, q + W, q + 2 W, ... of the order.
 * Shard s of S has the places whose remainder by S is s. With the bits of the rank reversed as q, a
 * rank has those shards that come one after the other when the bits of all s are reversed: these
 * are a branch of the tree in which the gradients of the shards are added. */
#include "train.h"

#include <math.h>
#include <signal.h>
#include <string.h>

/* What a part of a batch found. */
enum { SLOT_LOSS, SLOT_SAMPLES, SLOT_COMPARED, SLOT_RIGHT, SLOTS };

/* ---- the group ------------------------------------------------------------------------------- */

tn_status ranks_join(run *r)
{
    tn_comm *group;

    r->ranks = 1;
    if (tn_registry_count(TN_KIND_tn_comm_def) == 0) /* one process needs no communicator */
        return TN_OK;
    group = tn_comm_new(NULL, NULL);
    if (group == NULL)
        return tn_error_last_code();
    if (tn_comm_size(group) == 1) {
        tn_comm_drop(group);
        return TN_OK;
    }
    r->group = group;
    r->rank = tn_comm_rank(group);
    r->ranks = tn_comm_size(group);
    return TN_OK;
}

void ranks_leave(run *r)
{
    tn_module_drop(r->wrapped);
    tn_comm_drop(r->group);
    tn_free(r->slots);
    r->wrapped = NULL;
    r->group = NULL;
    r->slots = NULL;
}

/* Replaces numbers by their sums over all processes. */
static tn_status sum_up(const run *r, double *numbers, int64_t count)
{
    TN_SCOPE;
    tn_tensor *sums;
    tn_status status;

    if (r->group == NULL)
        return TN_OK;
    sums = tn_tensor_empty(TN_SHAPE(count), TN_F64, tn_comm_device(r->group));
    status = sums != NULL ? tn_tensor_copy_in(sums, numbers, (size_t)count * sizeof *numbers)
                          : tn_error_last_code();
    if (status == TN_OK)
        status = tn_comm_all_reduce(r->group, sums, TN_REDUCTION_SUM);
    return status == TN_OK ? tn_tensor_copy_out(sums, numbers, (size_t)count * sizeof *numbers)
                           : status;
}

/* ---- settings -------------------------------------------------------------------------------- */

static bool is_power_of_two(int64_t number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

static tn_status refuse(setting which, const char *expected)
{
    return tn_fail(TN_ERR_VALUE, "--%s: not possible with several processes or shards; expected %s",
                   settings_row(which)->name, expected);
}

/* Refuses what makes the steps of the processes differ. */
static tn_status check_settings(const run *r)
{
    if (setting_on(r->set, SET_FIND_LR))
        return refuse(SET_FIND_LR, "one process, without --shards");
    if (setting_on(r->set, SET_COMPILE_STEP))
        return refuse(SET_COMPILE_STEP, "--compile, or neither");
    if (setting_on(r->set, SET_SKIP_DAMAGED))
        return refuse(SET_SKIP_DAMAGED, "data without damaged samples");
    if (setting_text(r->set, SET_MIX) != NULL)
        return refuse(SET_MIX, "--augment, which transforms samples");
    if (setting_count(r->set, SET_ACCUMULATE) > 1)
        return refuse(SET_ACCUMULATE, "a larger --batch-size with more --shards");
    return TN_OK;
}

static tn_status check_sizes(const run *r)
{
    int64_t batch = setting_count(r->set, SET_BATCH_SIZE),
            by = r->shards > r->ranks ? r->shards : r->ranks;

    if (r->shards > 0 &&
        (!is_power_of_two(r->shards) || !is_power_of_two(r->ranks) || r->shards % r->ranks != 0))
        return tn_fail(TN_ERR_VALUE,
                       "--shards: wrong, got %lld with %d process%s; expected a power of two, and "
                       "as many processes or 1/2, 1/4, ... of it",
                       (long long)r->shards, (int)r->ranks, r->ranks == 1 ? "" : "es");
    if (batch % by != 0)
        return tn_fail(TN_ERR_VALUE,
                       "--batch-size: it is the batch of all processes and shards, got %lld; "
                       "expected a multiple of %lld",
                       (long long)batch, (long long)by);
    return TN_OK;
}

tn_status ranks_check(run *r)
{
    char number[24];
    tn_status status;

    r->shards = setting_count(r->set, SET_SHARDS);
    if (r->shards == 0 && r->ranks > 1 && is_power_of_two(r->ranks)) {
        r->shards = r->ranks;
        /* a checkpoint has the number, so that it can continue on others */
        snprintf(number, sizeof number, "%d", (int)r->ranks);
        status = settings_put(r->set, SET_SHARDS, number, r->set->origin[SET_SHARDS]);
        if (status != TN_OK)
            return status;
    }
    r->parts = r->shards > 0 ? r->shards / r->ranks : 1;
    if (r->shards == 0 && r->ranks == 1)
        return TN_OK;
    status = check_settings(r);
    return status == TN_OK ? check_sizes(r) : status;
}

/* Reverses the lowest bits of a number, as many as `size`, a power of two, has numbers. */
static int64_t reversed(int64_t number, int64_t size)
{
    int64_t out = 0;

    for (int64_t bit = 1; bit < size; bit *= 2, number /= 2)
        out = out * 2 + number % 2;
    return out;
}

/* The number of this process for its loader. */
static int64_t place(const run *r)
{
    return r->shards > 0 ? reversed(r->rank, r->ranks) : r->rank;
}

void ranks_loader(const run *r, char *out, size_t size)
{
    snprintf(out, size, "batch_size=%lld, rank=%lld, ranks=%lld",
             (long long)(setting_count(r->set, SET_BATCH_SIZE) / r->ranks), (long long)place(r),
             (long long)r->ranks);
}

/* ---- checkpoints of other numbers of processes ----------------------------------------------- */

tn_status ranks_resume(run *r)
{
    int64_t at = tn_state_find(r->resumed, "loader");
    tn_value value = at >= 0 ? tn_state_value(r->resumed, at) : tn_value_none();
    char text[512];
    tn_status status;

    if (value.kind != TN_VALUE_STRING)
        return TN_OK; /* tn_checkpoint_restore refuses it */
    status = tn_ddp_loader_state(value.as.s, r->ranks, text, sizeof text);
    return status == TN_OK ? tn_state_set_value(r->resumed, "loader", tn_value_string(text))
                           : tn_error_prefix("checkpoint: ");
}

/* ---- steps ----------------------------------------------------------------------------------- */

tn_status ranks_wrap(run *r)
{
    /* as one process, which needs no gradient for each parameter */
    const tn_ddp_options options = { .size = sizeof options,
                                     .shards = r->shards,
                                     .average = TN_DDP_AVERAGE_SAMPLES,
                                     .find_unused_parameters = true };

    if (r->shards == 0 && r->ranks == 1)
        return TN_OK;
    if (r->evaluates)
        return tn_fail(TN_ERR_VALUE,
                       "--optim: %s evaluates the loss itself, which is not possible with several "
                       "processes or shards; expected another optimizer",
                       tn_optimizer_type(r->optimizer));
    r->slots = tn_calloc((size_t)(r->ranks * r->parts * SLOTS + 1), sizeof *r->slots);
    r->wrapped = r->slots != NULL ? tn_ddp_new(r->model, r->group, &options) : NULL;
    return r->wrapped != NULL ? TN_OK : tn_error_last_code();
}

/* Appends every `parts`-th sample of an entry, from `first` on. */
static tn_status add_entry(const run *r, tn_pack *part, tn_tensor *whole, int64_t first,
                           int64_t real)
{
    tn_tensor *own = whole != NULL ? tn_slice(whole, 0, first, real, r->parts) : NULL;

    own = tn_clone(own);
    return own != NULL ? tn_pack_add(part, NULL, tn_value_tensor(own)) : tn_error_last_code();
}

/* Runs forward and backward of part `k`. */
static tn_status run_part(run *r, tn_pack *batch, int64_t real, int64_t k)
{
    TN_SCOPE;
    double *slot = r->slots + (r->rank * r->parts + k) * SLOTS, loss = 0;
    int64_t first = reversed(k, r->parts), counted = r->counted;
    tally before = r->now;
    tn_pack *part;
    tn_status status = TN_OK;

    if (first >= real)
        return tn_ddp_skip(r->wrapped);
    part = tn_pack_new();
    for (int64_t i = 0; i < 2 && part != NULL && status == TN_OK; i++)
        status = add_entry(r, part, tn_pack_tensor(batch, i), first, real);
    r->now = (tally){ 0 };
    if (status == TN_OK)
        status = part != NULL ? step_batch(r, part, 1, &loss) : TN_ERR_MEMORY;
    tn_pack_drop(part);
    slot[SLOT_LOSS] = r->now.loss;
    slot[SLOT_SAMPLES] = (double)r->now.samples;
    slot[SLOT_COMPARED] = (double)r->now.compared;
    slot[SLOT_RIGHT] = (double)r->now.right;
    r->now = before;
    r->counted = counted;
    return status;
}

/* Adds what all parts found, in their order, which is the same on any number of processes. */
static void take_slots(run *r, double *loss)
{
    double samples = 0, sum = 0;

    for (int64_t i = 0; i < r->ranks * r->parts; i++) {
        const double *slot = r->slots + i * SLOTS;

        sum += slot[SLOT_LOSS];
        samples += slot[SLOT_SAMPLES];
        r->now.compared += (int64_t)slot[SLOT_COMPARED];
        r->now.right += (int64_t)slot[SLOT_RIGHT];
    }
    r->now.loss += sum;
    r->now.samples += (int64_t)samples;
    r->counted += (int64_t)samples;
    *loss = samples > 0 ? sum / samples : 0;
}

tn_status ranks_batch(run *r, tn_pack *batch, int64_t position, double *loss)
{
    int64_t count = r->ranks * r->parts * SLOTS,
            real = tn_ddp_real_samples(tn_dataset_count(r->data), position,
                                       setting_count(r->set, SET_BATCH_SIZE) / r->ranks,
                                       (int32_t)place(r), r->ranks);
    tn_status status = step_samples(batch) >= 0 ? tn_optimizer_zero_grad(r->optimizer)
                                                : tn_error_last_code();

    memset(r->slots, 0, (size_t)(count + 1) * sizeof *r->slots);
    for (int64_t k = 0; k < r->parts && status == TN_OK; k++)
        status = run_part(r, batch, real, k);
    r->slots[count] = signals_asked() != 0;
    if (status == TN_OK)
        status = sum_up(r, r->slots, count + 1);
    if (status != TN_OK)
        return status;
    if (r->slots[count] > 0)
        r->asked = signals_asked() != 0 ? signals_asked() : SIGTERM;
    r->pending = 1;
    take_slots(r, loss);
    return TN_OK;
}

int ranks_asked(run *r)
{
    return r->group != NULL ? r->asked : signals_asked();
}

/* ---- scores ---------------------------------------------------------------------------------- */

tn_status ranks_before_score(run *r)
{
    return r->group != NULL ? tn_ddp_broadcast_buffers(r->wrapped) : TN_OK;
}

tn_status ranks_score(const run *r, score *all)
{
    double numbers[2 * METRIC_COUNT] = { 0 }; /* whether it is a number, and the number */

    for (int i = 0; i < METRIC_COUNT && ranks_first(r); i++) {
        numbers[2 * i] = !isnan(all->at[i]);
        numbers[2 * i + 1] = isnan(all->at[i]) ? 0 : all->at[i];
    }
    if (r->group == NULL)
        return TN_OK;
    if (sum_up(r, numbers, 2 * METRIC_COUNT) != TN_OK)
        return tn_error_last_code();
    for (int i = 0; i < METRIC_COUNT; i++)
        all->at[i] = numbers[2 * i] > 0 ? numbers[2 * i + 1] : NAN;
    return TN_OK;
}
