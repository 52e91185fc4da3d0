/* SPDX-License-Identifier: MIT
 *
 * The state of the random number generator of the process: a seed and the number of the next block.
 * The numbers themselves are drawn by kernels. */
#include "core/tensor/capture.h"
#include "core/tensor/trace.h"

#include <sys/random.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool seeded;
static uint64_t seed_now, next_block;

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

void tn_random_seed(uint64_t seed)
{
    pthread_mutex_lock(&lock);
    seeded = true;
    seed_now = seed;
    next_block = 0;
    pthread_mutex_unlock(&lock);
}

tn_status tn_random_take(uint64_t count, uint32_t words, uint64_t *seed, uint64_t *block)
{
    uint64_t per_block = words <= 1 ? 4 : words == 2 ? 2 : 1;
    tn_status status = tn__capture_refuse_here(
        "tn_random_take",
        "each launch would repeat the same numbers; draw them before the capture");

    if (status == TN_OK && tn__unlikely(tn__tracer_here != NULL)) { /* nothing is drawn */
        if (seed != NULL)
            *seed = 0;
        if (block != NULL)
            *block = 0;
        return tn__tracer_here->silent > 0
                   ? TN_OK
                   : tn__tracer_here->refuse(tn__tracer_here, NULL, "tn_random_take");
    }
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = seed_once();
    if (seed != NULL)
        *seed = seed_now;
    if (block != NULL)
        *block = next_block;
    if (status == TN_OK)
        next_block += count / per_block + (count % per_block != 0);
    pthread_mutex_unlock(&lock);
    return status;
}

tn_status tn_random_get_state(uint64_t state[4])
{
    if (state == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_random_get_state: state: it is NULL");
    pthread_mutex_lock(&lock);
    tn_status status = seed_once();
    state[0] = seed_now;
    state[1] = next_block;
    state[2] = state[3] = 0;
    pthread_mutex_unlock(&lock);
    return status;
}

tn_status tn_random_set_state(const uint64_t state[4])
{
    if (state == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_random_set_state: state: it is NULL");
    for (int i = 2; i < 4; i++)
        if (state[i] != 0)
            return tn_fail(TN_ERR_VERSION,
                           "tn_random_set_state: state[%d]: reserved in Tenon %s, got %llu; "
                           "expected 0",
                           i, tn_version(), (unsigned long long)state[i]);
    pthread_mutex_lock(&lock);
    seeded = true;
    seed_now = state[0];
    next_block = state[1];
    pthread_mutex_unlock(&lock);
    return TN_OK;
}
