/* SPDX-License-Identifier: MIT
 *
 * The state of the random number generator of the process: a seed and the number of the next block.
 * The numbers themselves are drawn by kernels, from Philox: sdk/operators/random.ops. */
#include "core/tensor/random_state.h"

#include "core/base/vector.h"
#include "core/tensor/capture.h"
#include "core/tensor/trace.h"

#include <sys/random.h>
#include <time.h>

#include <tenon/runtime.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool seeded;
static uint64_t seed_now, next_block;
_Thread_local tn__random_record *tn__random_here TN__TLS_NEAR;

/* Sets the seed: to TENON_SEED, or to a number that cannot be guessed. The caller holds the lock.
 * Fails if there is no memory to read the variable, because a seed that the user did not ask for
 * would stay. */
static tn_status seed_once(void)
{
    uint64_t before = tn__error_count();
    const char *text;
    int64_t number;
    struct timespec now;

    if (seeded)
        return TN_OK;
    text = tn_env_get("TENON_SEED");
    if (text == NULL && tn__error_count() != before)
        return tn_error_last_code();
    seeded = true;
    if (text != NULL && text[0] != '\0') {
        if (tn_read_int(text, &number)) {
            seed_now = (uint64_t)number;
            return TN_OK;
        }
        tn__log(TN_LOG_WARNING, "TENON_SEED=%q is not an integer; the seed comes from the system",
                text);
    }
    if (getrandom(&seed_now, sizeof seed_now, GRND_NONBLOCK) != (ssize_t)sizeof seed_now) {
        clock_gettime(CLOCK_REALTIME, &now);
        seed_now = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)now.tv_sec;
    }
    return TN_OK;
}

/* Returns the innermost record of this thread that replays. */
static tn__random_record *replayed(void)
{
    tn__random_record *record = tn__random_here;

    while (record != NULL && !record->replays)
        record = record->outer;
    return record;
}

/* Takes `blocks` random blocks: from the innermost record that replays, otherwise from the tracer
 * or the generator. Adds them to all records of this thread that were begun inside that record. */
static tn_status take(uint64_t blocks, uint64_t out[2])
{
    tn__random_record *replay = replayed();
    tn_status status = TN_OK;

    if (replay != NULL && replay->next == replay->count)
        return tn_fail(TN_ERR_RUNTIME,
                       "random numbers: a recomputed function draws more in its second run, "
                       "got call %lld; expected %lld calls",
                       (long long)replay->next + 1, (long long)replay->count);
    for (tn__random_record *r = tn__random_here; r != replay; r = r->outer)
        if (!tn__vector_room(&r->taken, &r->capacity, r->count + 1, sizeof *r->taken))
            return TN_ERR_MEMORY;
    if (replay == NULL && tn__unlikely(tn__tracer_here != NULL) && tn__tracer_here->take != NULL) {
        status = tn__tracer_here->take(tn__tracer_here, blocks, out);
    } else if (replay != NULL) {
        memcpy(out, replay->taken[replay->next++], sizeof replay->taken[0]);
    } else {
        pthread_mutex_lock(&lock);
        status = seed_once();
        out[0] = seed_now;
        out[1] = next_block;
        if (status == TN_OK)
            next_block += blocks;
        pthread_mutex_unlock(&lock);
    }
    for (tn__random_record *r = tn__random_here; r != replay && status == TN_OK; r = r->outer)
        memcpy(r->taken[r->count++], out, sizeof r->taken[0]);
    return status;
}

static void set(uint64_t seed, uint64_t block)
{
    if (replayed() != NULL || tn__trace_plan_refuse("tn_random_seed") != TN_OK)
        return; /* replay: the first run has set the seed already; plan: refused */
    pthread_mutex_lock(&lock);
    seeded = true;
    seed_now = seed;
    next_block = block;
    pthread_mutex_unlock(&lock);
}

void tn_random_seed(uint64_t seed)
{
    set(seed, 0);
}

tn_status tn_random_take(uint64_t count, uint32_t words, uint64_t *seed, uint64_t *block)
{
    uint64_t per_block = words <= 1 ? 4 : words == 2 ? 2 : 1, taken[2] = { 0 };
    tn_status status = tn__capture_refuse_here(
        "tn_random_take",
        "each launch would repeat the same numbers; draw them before the capture");

    if (status == TN_OK && tn__unlikely(tn__tracer_here != NULL) &&
        tn__tracer_here->take == NULL) { /* nothing is drawn */
        if (seed != NULL)
            *seed = 0;
        if (block != NULL)
            *block = 0;
        return tn__tracer_here->silent > 0 && tn__tracer_here->kernel == NULL
                   ? TN_OK
                   : tn__tracer_here->refuse(tn__tracer_here, NULL, "tn_random_take");
    }
    if (status == TN_OK)
        status = take(count / per_block + (count % per_block != 0), taken);
    if (status != TN_OK)
        return status;
    if (seed != NULL)
        *seed = taken[0];
    if (block != NULL)
        *block = taken[1];
    return TN_OK;
}

tn_status tn_random_get_state(uint64_t state[3])
{
    if (state == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_random_get_state: state: it is NULL; expected an array");
    state[2] = 0;
    if (tn__trace_plan_refuse("tn_random_get_state") != TN_OK)
        return tn_error_last_code();
    return take(0, state);
}

tn_status tn_random_set_state(const uint64_t state[3])
{
    if (state == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_random_set_state: state: it is NULL; expected an array");
    if (state[2] != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_random_set_state: state[2]: not the lane of this generator, got %llu; "
                       "expected 0",
                       (unsigned long long)state[2]);
    set(state[0], state[1]);
    return TN_OK;
}
