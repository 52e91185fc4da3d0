/* SPDX-License-Identifier: MIT
 *
 * Tenon inside of a program that has an allocator and a log of its own: all memory of the library
 * comes from the program, within a limit, and its messages go into the program's log. Nothing is
 * printed by the library, and after a failure the program continues. */
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

/* ---- memory: counted, and limited ------------------------------------------------------------ */

struct arena {
    atomic_size_t used, peak, limit;
};

/* Threads of the library call these functions at the same time. */
static void *arena_alloc(void *user, size_t size, size_t alignment)
{
    struct arena *arena = user;
    size_t used = atomic_fetch_add(&arena->used, size) + size;
    size_t peak = atomic_load(&arena->peak);
    void *block = NULL;

    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (used > arena->limit || posix_memalign(&block, alignment, size) != 0) {
        atomic_fetch_sub(&arena->used, size);
        return NULL; /* the call that needs the memory fails with TN_ERR_MEMORY */
    }
    while (used > peak && !atomic_compare_exchange_weak(&arena->peak, &peak, used))
        ;
    return block;
}

static void arena_free(void *user, void *block, size_t size, size_t alignment)
{
    struct arena *arena = user;

    (void)alignment;
    if (block != NULL)
        atomic_fetch_sub(&arena->used, size);
    free(block);
}

static void *arena_resize(void *user, void *block, size_t old_size, size_t size, size_t alignment)
{
    void *other = arena_alloc(user, size, alignment);

    if (other == NULL)
        return NULL; /* the old block stays */
    if (block != NULL)
        memcpy(other, block, old_size < size ? old_size : size);
    arena_free(user, block, old_size, alignment);
    return other;
}

/* ---- the log --------------------------------------------------------------------------------- */

struct journal {
    int count;
};

/* Called by one thread at a time; `plugin` is "" for the core. */
static void journal_write(void *user, int level, const char *plugin, const char *text)
{
    static const char *const names[] = { "?", "error", "warning", "info", "debug" };
    struct journal *journal = user;

    printf("[journal %d] %s %s: %s\n", ++journal->count, names[level], plugin[0] ? plugin : "tenon",
           text);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Returns the mean of the results of a small network for so many rows; NaN if it fails. */
static double compute(int64_t rows)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(64, 256), Sigmoid(), Linear(256, 8))");
    tn_tensor *y = tn_module_call(net, tn_ones(TN_SHAPE(rows, 64)));
    double mean = tn_item(tn_mean(y));

    tn_module_drop(net);
    return mean;
}

int main(void)
{
    static struct arena arena;
    struct journal journal = { 0 };
    const tn_allocator allocator = {
        .alloc = arena_alloc, .resize = arena_resize, .free = arena_free, .user = &arena
    };

    atomic_init(&arena.limit, (size_t)64 << 20);
    tn_set_log_sink(journal_write, &journal);
    if (tn_set_allocator(&allocator) != TN_OK) { /* before any other call that allocates */
        printf("%s\n", tn_error_text());
        return 1;
    }
    if (isfinite(compute(100)))
        printf("100 rows: a result\n");
    compute(1000000); /* needs more than the limit */
    printf("1000000 rows: %s: %s\n", tn_status_name(tn_error_code()), tn_error_text());
    tn_error_clear();

    compute(100); /* the program continues, and the library can allocate again */
    size_t before = arena.used;
    for (int i = 0; i < 100 && !tn_failed(); i++)
        compute(100);
    printf("100 calls later: %s, %td KiB more\n", tn_failed() ? tn_error_text() : "no failure",
           (ptrdiff_t)(arena.used - before) / 1024);
    tn_log(TN_LOG_WARNING, "a message of the program, in the same log");
    printf("peak: %s the limit\n", arena.peak <= arena.limit ? "below" : "above");
    int failed = tn_failed();
    tn_shutdown();
    printf("after the end: %s 4 MiB\n", arena.used < (size_t)4 << 20 ? "below" : "above");
    return failed;
}
