/* SPDX-License-Identifier: MIT
 *
 * The state of a loader as text, for checkpoints: its position, and the options that must be equal
 * in the loader that continues from it. */
#include "lib/data/loader.h"

struct state {
    int64_t seed, epoch, position;
    int64_t samples, batch_size, ranks;
    bool shuffle, drop_last, weights;
};

#define REQUIRED(member, help, kind)                                                               \
    TN_OPTION_ROW(struct state, member, NULL, help, kind, TN_OPTION_REQUIRED | TN_OPTION_KEYWORD)

static const tn_option table[] = {
    REQUIRED(seed, "seed of the order and of transforms", TN_OPTION_KIND_INT),
    REQUIRED(epoch, "the present epoch", TN_OPTION_KIND_INT),
    REQUIRED(position, "batches of this epoch that were returned", TN_OPTION_KIND_INT),
    REQUIRED(samples, "samples of an epoch, of all ranks", TN_OPTION_KIND_INT),
    REQUIRED(batch_size, "samples in a batch", TN_OPTION_KIND_INT),
    REQUIRED(ranks, "number of processes", TN_OPTION_KIND_INT),
    REQUIRED(shuffle, "random order", TN_OPTION_KIND_BOOL),
    REQUIRED(drop_last, "without a smaller last batch", TN_OPTION_KIND_BOOL),
    REQUIRED(weights, "draws by weights", TN_OPTION_KIND_BOOL),
    TN_OPTION_END
};

static struct state state_of(const tn_loader *loader)
{
    const tn__loader_options *o = &loader->options;

    return (struct state){ .seed = (int64_t)loader->seed,
                           .epoch = atomic_load(&loader->epoch),
                           .position = atomic_load(&loader->position),
                           .samples = loader->order.draws,
                           .batch_size = o->batch_size,
                           .ranks = o->ranks,
                           .shuffle = o->shuffle,
                           .drop_last = o->drop_last,
                           .weights = loader->order.tree != NULL };
}

int64_t tn_loader_state_text(const tn_loader *loader, char *out, size_t size)
{
    pthread_mutex_t *gate;
    struct state state;
    tn__text text = { 0 };

    if (!tn__not_null(loader, "tn_loader_state_text: loader") ||
        !tn__given(out != NULL || size == 0, "tn_loader_state_text: out"))
        return -1;
    gate = &((tn_loader *)(uintptr_t)loader)->gate;
    pthread_mutex_lock(gate);
    state = state_of(loader);
    pthread_mutex_unlock(gate);
    tn__options_print(table, &state, true, &text);
    return tn__text_give(&text, out, size);
}

/* ---- continuing ------------------------------------------------------------------------------ */

static void differ(tn__text *text, const char *name, int64_t theirs, int64_t ours)
{
    if (theirs != ours)
        tn__text_add(text, "%s%s %lld (here %lld)", text->length > 0 ? ", " : "", name,
                     (long long)theirs, (long long)ours);
}

static void differ_bool(tn__text *text, const char *name, bool theirs, bool ours)
{
    if (theirs != ours)
        tn__text_add(text, "%s%s %b (here %b)", text->length > 0 ? ", " : "", name, theirs, ours);
}

/* Checks that a state is of a loader like this one. */
static tn_status check_state(const tn_loader *loader, const struct state *state)
{
    const struct state own = state_of(loader);
    tn__text text = { 0 };
    tn_status status = TN_OK;

    differ(&text, "samples", state->samples, own.samples);
    differ(&text, "batch_size", state->batch_size, own.batch_size);
    differ(&text, "ranks", state->ranks, own.ranks);
    differ_bool(&text, "shuffle", state->shuffle, own.shuffle);
    differ_bool(&text, "drop_last", state->drop_last, own.drop_last);
    differ_bool(&text, "weights", state->weights, own.weights);
    if (text.length > 0 || text.failed)
        status = tn_fail(TN_ERR_VALUE,
                         "tn_loader_set_state: the state of another loader, got %s; expected the "
                         "same options and samples",
                         text.failed ? "other options" : text.at);
    else if (state->epoch < 0 || state->epoch == INT64_MAX || state->position < 0 ||
             state->position > atomic_load(&loader->batches))
        status = tn_fail(TN_ERR_VALUE,
                         "tn_loader_set_state: out of range, got epoch %lld and position %lld; "
                         "expected an epoch of 0 to 2^63 - 2, and a position of 0 to %lld",
                         (long long)state->epoch, (long long)state->position,
                         (long long)atomic_load(&loader->batches));
    tn__text_free(&text);
    return status;
}

tn_status tn_loader_set_state(tn_loader *loader, const char *text)
{
    struct state state = { 0 };
    tn__option_block *block;
    tn_status status;

    if (!tn__not_null(loader, "tn_loader_set_state: loader"))
        return tn_error_last_code();
    if (!tn__given(text != NULL, "tn_loader_set_state: text"))
        return TN_ERR_VALUE;
    if (tn__loader_is_lost(loader))
        return tn_fail(TN_ERR_RUNTIME, "tn_loader_set_state: the process was forked after the "
                                       "loader had started its threads; create a loader in the "
                                       "child");
    status = tn__loader_parse(table, "tn_loader_set_state", text, &state, &block);
    tn__options_release(block);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&loader->gate);
    status = check_state(loader, &state);
    if (status == TN_OK) {
        tn__loader_rewind(loader, state.position);
        loader->seed = (uint64_t)state.seed;
        loader->order.ready = false;
        atomic_store(&loader->epoch, state.epoch);
        atomic_store(&loader->position, state.position);
    }
    pthread_mutex_unlock(&loader->gate);
    return status;
}
