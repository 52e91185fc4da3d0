/* SPDX-License-Identifier: MIT
 *
 * Failures on demand. TENON_STRICT_FAIL (or the published function `inject`) is a list, separated
 * by commas, of:
 * - alloc:N: the N-th allocation from now fails; alloc:N+: all later ones, too;
 * - memory:BYTES: the device has no more memory than BYTES;
 * - lost:N: the device is lost at its N-th piece of work from now;
 * - slow:MICROS: every piece of work takes MICROS microseconds longer;
 * - kernel:OP:N: the N-th run of operator OP from now fails; kernel:OP:N+: all later ones, too. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "strict.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int64_t alloc_at, memory, lost_at, slow, kernel_at;
    bool alloc_on, kernel_on;
    char kernel[64];
} plan;

static tn_status bad(const char *part)
{
    return tn_fail(
        TN_ERR_VALUE,
        "option fail: unknown, got %q; expected alloc:N, memory:BYTES, lost:N, slow:MICROS or "
        "kernel:OP:N, with numbers above 0 (alloc and kernel also with N+)",
        part);
}

/* Reads a number above 0; sets `on` to whether `+` follows it. Returns false if it is malformed. */
static bool read_count(char *text, int64_t *out, bool *on)
{
    size_t length = strlen(text);
    *on = length > 0 && text[length - 1] == '+';
    if (*on)
        text[length - 1] = 0;
    return tn_read_int(text, out) && *out > 0;
}

static bool read_part(char *part)
{
    bool on = false;
    char *colon = strchr(part, ':');
    if (!colon)
        return false;
    *colon = 0;
    if (strcmp(part, "alloc") == 0)
        return read_count(colon + 1, &plan.alloc_at, &plan.alloc_on);
    if (strcmp(part, "memory") == 0)
        return read_count(colon + 1, &plan.memory, &on) && !on;
    if (strcmp(part, "lost") == 0)
        return read_count(colon + 1, &plan.lost_at, &on) && !on;
    if (strcmp(part, "slow") == 0)
        return read_count(colon + 1, &plan.slow, &on) && !on;
    char *last = strrchr(colon + 1, ':');
    if (strcmp(part, "kernel") != 0 || !last || (size_t)(last - colon) > sizeof plan.kernel)
        return false;
    *last = 0;
    tn_snprint(plan.kernel, sizeof plan.kernel, "%s", colon + 1);
    return read_count(last + 1, &plan.kernel_at, &plan.kernel_on);
}

tn_status strict_inject(const char *text)
{
    char copy[256], part[256];
    if (strlen(text) >= sizeof copy)
        return tn_fail(TN_ERR_VALUE, "option fail: too long, got %zu bytes; expected at most %zu",
                       strlen(text), sizeof copy - 1);
    tn_status status = TN_OK;
    pthread_mutex_lock(&lock);
    memset(&plan, 0, sizeof plan);
    memcpy(copy, text, strlen(text) + 1);
    for (char *at = copy; *at && status == TN_OK;) {
        size_t length = strcspn(at, ",");
        bool more = at[length] == ',';
        at[length] = 0;
        tn_snprint(part, sizeof part, "%s", at);
        if (!read_part(at))
            status = bad(part);
        at += length + more;
    }
    if (status != TN_OK)
        memset(&plan, 0, sizeof plan);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Counts down to the event that fails, and returns true for that event. With `on`, all later events
 * fail, too. */
static bool reached(int64_t *at, bool on)
{
    if (*at == 0 || (*at == 1 && on))
        return *at == 1;
    return --*at == 0;
}

bool strict_inject_alloc(uint64_t bytes, uint64_t live)
{
    pthread_mutex_lock(&lock);
    bool fails = reached(&plan.alloc_at, plan.alloc_on) ||
                 (plan.memory > 0 && live + bytes > (uint64_t)plan.memory);
    pthread_mutex_unlock(&lock);
    return fails;
}

bool strict_inject_work(void)
{
    pthread_mutex_lock(&lock);
    int64_t slow = plan.slow;
    bool lost = reached(&plan.lost_at, false);
    pthread_mutex_unlock(&lock);
    if (slow > 0) {
        struct timespec time = { slow / 1000000, slow % 1000000 * 1000 };
        nanosleep(&time, NULL);
    }
    return lost;
}

bool strict_inject_kernel(const char *op)
{
    pthread_mutex_lock(&lock);
    bool fails = plan.kernel_at > 0 && strcmp(plan.kernel, op) == 0 &&
                 reached(&plan.kernel_at, plan.kernel_on);
    pthread_mutex_unlock(&lock);
    return fails;
}
