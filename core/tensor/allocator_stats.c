/* SPDX-License-Identifier: MIT
 *
 * Statistics of the allocator, and the text that says what holds the memory of a device. */
#include "core/tensor/allocator.h"

/* ---- statistics ---- */

tn_status tn_device_memory(const tn_device *device, tn_memory_stats *out)
{
    struct tn__allocator *allocator;
    tn_memory_stats stats = { 0 };

    if (!tn__given(device != NULL, "tn_device_memory: device") ||
        !tn__given(out != NULL, "tn_device_memory: out"))
        return TN_ERR_VALUE;
    allocator = device->allocator;
    if (allocator == NULL) { /* closed by tn_shutdown: no memory is in use */
        *out = stats;
        return TN_OK;
    }
    pthread_mutex_lock(&allocator->lock);
    stats.live = tn__allocator_counter(&allocator->live);
    stats.live_blocks = tn__allocator_counter(&allocator->blocks);
    stats.requests = tn__allocator_counter(&allocator->requests);
    for (const tn__cache *cache = allocator->caches; cache != NULL; cache = cache->next) {
        stats.live += tn__allocator_counter(&cache->live);
        stats.live_blocks += tn__allocator_counter(&cache->blocks);
        stats.requests += tn__allocator_counter(&cache->requests);
    }
    /* Exact for one thread. With several threads, each may add up to 64 KiB that it has not
     * settled. */
    stats.peak = tn__allocator_counter(&allocator->peak) > stats.live
                     ? tn__allocator_counter(&allocator->peak)
                     : stats.live;
    for (const tn__cache *cache = allocator->caches; cache != NULL; cache = cache->next)
        if (stats.live - tn__allocator_counter(&cache->live) + tn__allocator_counter(&cache->high) >
            stats.peak)
            stats.peak = stats.live - tn__allocator_counter(&cache->live) +
                         tn__allocator_counter(&cache->high);
    stats.cached = tn__allocator_counter(&allocator->reserved) - stats.live;
    stats.device_allocs = tn__allocator_counter(&allocator->device_allocs);
    stats.trims = tn__allocator_counter(&allocator->trims);
    stats.prepared = tn__allocator_counter(&allocator->prepared);
    pthread_mutex_unlock(&allocator->lock);
    *out = stats;
    return TN_OK;
}

void tn__allocator_count_prepared(const tn_device *device, int64_t bytes)
{
    const tn__memory_hooks *hooks = atomic_load_explicit(&tn__memory_hook, memory_order_acquire);

    if (bytes == 0)
        return;
    if (hooks != NULL)
        hooks->bytes(device, bytes);
    atomic_fetch_add_explicit(&device->allocator->prepared, bytes, memory_order_relaxed);
}

tn_status tn_device_reset_peak(const tn_device *device)
{
    struct tn__allocator *allocator = device != NULL ? device->allocator : NULL;
    int64_t live;

    if (device == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_device_reset_peak: device: it is NULL; expected a device");
    if (allocator == NULL)
        return TN_OK;
    pthread_mutex_lock(&allocator->lock);
    live = tn__allocator_counter(&allocator->live);
    for (tn__cache *cache = allocator->caches; cache != NULL; cache = cache->next) {
        live += tn__allocator_counter(&cache->live);
        tn__allocator_set_counter(&cache->high, tn__allocator_counter(&cache->live));
    }
    tn__allocator_set_counter(&allocator->peak, live);
    pthread_mutex_unlock(&allocator->lock);
    return TN_OK;
}

void tn__allocator_text_bytes(tn__text *text, uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
    double value = (double)bytes;
    int unit = -1;

    while (value >= 1024 && unit < 3) {
        value /= 1024;
        unit++;
    }
    if (unit < 0)
        tn__text_add(text, "%llu bytes", (unsigned long long)bytes);
    else
        tn__text_add(text, value < 10 ? "%.2f %s" : "%.1f %s", value, units[unit]);
}

/* ---- explaining ---- */

#define SIZES 48

typedef struct size_table {
    struct {
        uint64_t bytes, count;
    } rows[SIZES];
    int count;
} size_table;

/* Counts a block in the table of sizes. If the table is full, a new size replaces the size that
 * holds the least memory, provided that the new size holds more. */
static void note_size(void *user, uint64_t bytes)
{
    size_table *table = user;
    int least = 0;

    for (int i = 0; i < table->count; i++) {
        if (table->rows[i].bytes == bytes) {
            table->rows[i].count++;
            return;
        }
        if (table->rows[i].bytes * table->rows[i].count <
            table->rows[least].bytes * table->rows[least].count)
            least = i;
    }
    if (table->count < SIZES)
        least = table->count++;
    else if (bytes <= table->rows[least].bytes * table->rows[least].count)
        return;
    table->rows[least].bytes = bytes;
    table->rows[least].count = 1;
}

void tn__allocator_explain(struct tn__allocator *allocator, tn__text *text)
{
    size_table table = { .count = 0 };
    tn_memory_stats stats;

    tn_device_memory(allocator->device, &stats);
    pthread_mutex_lock(&allocator->lock);
    if (allocator->guarded)
        tn__guard_each(allocator, note_size, &table);
    for (const tn__segment *segment = allocator->segments; segment != NULL; segment = segment->next)
        for (const tn__block *block = segment->first; block != NULL; block = block->after) {
            uint64_t bytes = atomic_load_explicit(&block->live, memory_order_relaxed);
            if (bytes > 0)
                note_size(&table, bytes);
        }
    pthread_mutex_unlock(&allocator->lock);
    tn__allocator_text_bytes(text, (uint64_t)(stats.live > 0 ? stats.live : 0));
    tn__text_add(text, " in %lld tensors, ", (long long)stats.live_blocks);
    tn__allocator_text_bytes(text, (uint64_t)(stats.cached > 0 ? stats.cached : 0));
    tn__text_add(text, " cached");
    for (int shown = 0; shown < 5; shown++) {
        int most = -1;
        for (int i = 0; i < table.count; i++)
            if (table.rows[i].count > 0 &&
                (most < 0 || table.rows[i].bytes * table.rows[i].count >
                                 table.rows[most].bytes * table.rows[most].count))
                most = i;
        if (most < 0)
            break;
        tn__text_add(text, shown == 0 ? "; the largest sizes: %llu x " : ", %llu x ",
                     (unsigned long long)table.rows[most].count);
        tn__allocator_text_bytes(text, table.rows[most].bytes);
        table.rows[most].count = 0;
    }
}

tn_status tn__allocator_out_of_memory(struct tn__allocator *allocator, uint64_t bytes,
                                      uint64_t mark)
{
    tn__text text = { 0 };
    char said[256];
    tn_status status;

    tn_snprint(said, sizeof said, "%s", tn_error_last()->message);
    tn_error_restore(mark);
    tn__text_add(&text, "out of memory on %s: ", allocator->device->name);
    tn__allocator_text_bytes(&text, bytes);
    tn__text_add(&text, " requested; ");
    tn__allocator_explain(allocator, &text);
    tn__text_add(&text, "; drop tensors or use smaller batches (the device reports: %s)", said);
    status = tn_fail(TN_ERR_MEMORY, "%s",
                     text.failed || text.at == NULL ? "out of memory" : text.at);
    tn__text_free(&text);
    return status;
}
