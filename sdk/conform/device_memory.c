/* SPDX-License-Identifier: MIT
 *
 * Tests of the memory of a device, for the level contract: allocations are aligned, do not overlap
 * and are freed; copies and fills change exactly the bytes that they should. */
#include "device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool conform_device_is_blamed(void)
{
    return strstr(tn_error_text(), "checked boundary: plugin") != NULL ||
           strstr(tn_error_last()->message, "checked boundary: plugin") != NULL;
}

/* ---- bytes ---- */

/* Fills `to` with bytes that depend on `seed` and on their index. */
static void pattern(unsigned char *to, int64_t count, int seed)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (unsigned char)(i * 31 + seed * 53 + 7);
}

static tn_tensor *tensor_of(const tn_device *device, const unsigned char *bytes, int64_t count)
{
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(count), TN_U8, device);

    return x != NULL && tn_tensor_copy_in(x, bytes, (size_t)count) == TN_OK ? x : NULL;
}

/* ---- allocations ---- */

/* Several allocations at the same time must not overlap. On a host device, where addresses are
 * visible, they must be aligned. */
void conform_device_own_memory(conform *c)
{
    enum { COUNT = 12, SIZE = 3000 };
    const tn_device *device = c->plugin->device;
    tn_device_info info = { TN_HEAD(tn_device_info) };
    unsigned char bytes[SIZE], now[SIZE];
    uint64_t scope = tn_scope_begin();
    tn_tensor *x[COUNT];

    if (tn_device_describe(device, &info) != TN_OK)
        conform_fail(c, "info: %s", tn_error_text());
    for (int i = 0; i < COUNT && c->verdict == CONFORM_PASS; i++, c->checks++) {
        int64_t count = SIZE - 7 * i;

        pattern(bytes, count, i);
        x[i] = tensor_of(device, bytes, count);
        if (x[i] == NULL)
            conform_fail(c, "%" PRId64 " bytes: %s", count, tn_error_text());
        else if (tn_device_is_host(device) &&
                 (uintptr_t)tn_tensor_data(x[i]) % (uint64_t)info.alignment != 0)
            conform_fail(c,
                         "alloc: memory: wrong alignment, got an address that is a multiple of "
                         "%" PRIu64 " bytes; expected %" PRId64 ", as info says",
                         (uint64_t)(uintptr_t)tn_tensor_data(x[i]) &
                             (0 - (uint64_t)(uintptr_t)tn_tensor_data(x[i])),
                         info.alignment);
    }
    for (int i = 0; i < COUNT && c->verdict == CONFORM_PASS; i++, c->checks++) {
        int64_t count = SIZE - 7 * i;

        pattern(bytes, count, i);
        if (tn_tensor_copy_out(x[i], now, (size_t)count) != TN_OK)
            conform_fail(c, "copy to the host: %s", tn_error_text());
        else if (memcmp(now, bytes, (size_t)count) != 0)
            conform_fail(c,
                         "alloc: memory that is in use was allocated again: tensor %d of %d "
                         "changed when others were written",
                         i + 1, COUNT);
    }
    tn_error_clear();
    tn_scope_end(scope);
}

/* Returns the size of the address space of this process in bytes, -1 if it is unknown. */
static int64_t mapped(void)
{
    const char *why = NULL;
    FILE *file = conform_open("/proc/self/statm", &why);
    long long pages = -1;

    if (file == NULL)
        return -1;
    if (fscanf(file, "%lld", &pages) != 1)
        pages = -1;
    fclose(file);
    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

static int64_t free_on(const tn_device *device)
{
    tn_device_info info = { TN_HEAD(tn_device_info) };

    return tn_device_describe(device, &info) == TN_OK ? info.memory_free : -1;
}

/* Allocates and frees TURNS times and stores in *lost how many bytes are no longer free. Returns
 * false if the device is too small for it, or cannot say what is free. */
enum { TURNS = 12 };
static bool lost_memory(conform *c, int64_t size, int64_t *lost)
{
    const tn_device *device = c->plugin->device;
    bool host = tn_device_is_host(device);
    int64_t before = 0, free_before = -1;

    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t scope = tn_scope_begin();
        bool none = tn_tensor_empty(TN_SHAPE(size + turn * 4096), TN_U8, device) == NULL;

        tn_error_clear();
        tn_scope_end(scope);
        if (tn_device_sync(device) != TN_OK || tn_device_trim(device) != TN_OK)
            conform_fail(c, "trim: %s", tn_error_text());
        if (none)
            return false;
        if (turn == 0) /* after one-time allocations */
        {
            free_before = free_on(device);
            before = host ? mapped() : free_before;
        }
    }
    *lost = host ? mapped() - before : before - free_on(device);
    if (host && free_before >= 0 && free_before - free_on(device) > *lost)
        *lost = free_before - free_on(device); /* the device has a count of its own */
    return before > 0;
}

/* Checks that the backend frees the memory that the core gives back: for host memory by the size of
 * the process, otherwise by memory_free of the device. Other processes may allocate on the device
 * meanwhile, so only memory that is lost in every round is a fault. */
static void frees_memory(conform *c)
{
    /* Few repetitions, because a device may write all of the memory (to find uses of freed memory),
     * which takes seconds each time. More may be missing than AddressSanitizer withholds, 256 MiB.
     * The size is one that malloc always maps, so the process shrinks. */
    enum { ROUNDS = 8 };
    static const int64_t size = INT64_C(32) << 20, most = 8 * (INT64_C(32) << 20);
    const struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
    int64_t lost = 0;

    for (int round = 0; round < ROUNDS; round++) {
        if (!lost_memory(c, size, &lost))
            return;
        if (lost <= most)
            break;
        nanosleep(&pause, NULL);
    }
    c->checks++;
    if (lost > most)
        conform_fail(c,
                     "free: the memory is not available again, lost %lld MiB in %d allocations of "
                     "32 MiB, in each of %d rounds",
                     (long long)(lost >> 20), TURNS - 1, ROUNDS);
}

/* ---- copies by the device ---- */

/* Copies `count` bytes from offset `from` of one tensor to offset `to` of another, inside the
 * device or between device and host. Only those bytes may change. */
static bool copy_part(conform *c, const tn_device *from_device, const tn_device *to_device,
                      int64_t from, int64_t to, int64_t count, const char *what)
{
    enum { EDGE = 16 };
    int64_t size_from = from + count + EDGE, size_to = to + count + EDGE;
    unsigned char *source = malloc((size_t)size_from), *target = malloc((size_t)size_to),
                  *now = malloc((size_t)(size_from + size_to));
    tn_tensor *x, *y;
    bool well = false;

    c->checks++;
    if (source == NULL || target == NULL || now == NULL) {
        conform_fail(c, "out of memory");
        goto end;
    }
    pattern(source, size_from, 1);
    pattern(target, size_to, 2);
    x = tensor_of(from_device, source, size_from);
    y = tensor_of(to_device, target, size_to);
    memcpy(target + to, source + from, (size_t)count);
    if (x == NULL || y == NULL ||
        tn_copy_(tn_narrow(y, 0, to, count), tn_narrow(x, 0, from, count)) == NULL ||
        tn_tensor_copy_out(y, now, (size_t)size_to) != TN_OK ||
        tn_tensor_copy_out(x, now + size_to, (size_t)size_from) != TN_OK)
        conform_fail(c, "%s of %" PRId64 " bytes: %s", what, count, tn_error_text());
    else if (memcmp(now + size_to, source, (size_t)size_from) != 0)
        conform_fail(c, "%s of %" PRId64 " bytes: changes its source", what, count);
    else if (memcmp(now + to, target + to, (size_t)count) != 0)
        conform_fail(c,
                     "%s of %" PRId64 " bytes: copies other bytes than those from offset %" PRId64
                     " to offset %" PRId64,
                     what, count, from, to);
    else if (memcmp(now, target, (size_t)size_to) != 0)
        conform_fail(c, "%s of %" PRId64 " bytes: changes bytes outside the destination", what,
                     count);
    else
        well = true;
end:
    free(source);
    free(target);
    free(now);
    return well;
}

void conform_device_copies(conform *c)
{
    static const int64_t sizes[] = { 1, 3, 64, 1001, 4099, (1 << 20) + 5 };
    const tn_device *device = c->plugin->device, *host = tn_device_find("cpu");
    bool well = true;

    for (size_t i = 0; well && i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t scope = tn_scope_begin();

        well = copy_part(c, device, device, 5, 11, sizes[i], "copy inside the device") &&
               copy_part(c, device, device, 0, 0, sizes[i], "copy inside the device");
        if (well && host != NULL && host != device)
            well = copy_part(c, host, device, 3, 9, sizes[i], "copy from a tensor of the host") &&
                   copy_part(c, device, host, 13, 2, sizes[i], "copy to a tensor of the host");
        tn_error_clear();
        tn_scope_end(scope);
    }
}

/* ---- fills ---- */

/* Fills a tensor and compares it with one on cpu. The device uses its kernel or, in a dtype without
 * one, the fill function of the backend. */
static void fill_one(conform *c, tn_dtype dtype, int64_t count)
{
    double value = dtype == TN_BOOL ? 1 : dtype == TN_U8 || dtype == TN_I8 ? 77 : 1234;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(count), value, dtype, c->plugin->device), *y;
    size_t size = tn_dtype_size(dtype) * (size_t)count;
    unsigned char *got = malloc(size), *expected = malloc(size);

    c->checks++;
    y = tn_tensor_full(TN_SHAPE(count), value, dtype, tn_device_find("cpu"));
    if (got == NULL || expected == NULL || x == NULL || y == NULL ||
        tn_tensor_copy_out(x, got, size) != TN_OK || tn_tensor_copy_out(y, expected, size) != TN_OK)
        conform_fail(c, "fill: %" PRId64 " of %s: %s", count, tn_dtype_name(dtype),
                     tn_error_text());
    for (size_t i = 0; c->verdict == CONFORM_PASS && i < size; i++)
        if (got[i] != expected[i])
            conform_fail(c, "fill: %" PRId64 " of %s: byte %zu: wrong, got 0x%02x; expected 0x%02x",
                         count, tn_dtype_name(dtype), i, got[i], expected[i]);
    free(got);
    free(expected);
}

void conform_device_fills(conform *c)
{
    static const int64_t sizes[] = { 1, 2, 7, 64, 1003 };

    for (int dtype = 0; dtype <= TN_C128 && c->verdict == CONFORM_PASS; dtype++) {
        uint64_t scope = tn_scope_begin();

        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && c->verdict == CONFORM_PASS; i++)
            fill_one(c, (tn_dtype)dtype, sizes[i]);
        tn_error_clear();
        tn_scope_end(scope); /* with TENON_CHECK=1, fails if the memory around a tensor changed */
        if (tn_failed())
            conform_fail(c, "fill of %s: %s", tn_dtype_name((tn_dtype)dtype), tn_error_text());
    }
}

/* ---- bytes in and out ---- */

void conform_device_keeps_bytes(conform *c)
{
    static const int64_t sizes[] = { 1, 2, 3, 63, 64, 65, 4095, 4097, 1 << 20, (1 << 20) + 7 };

    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t scope = tn_scope_begin();
        int64_t n = sizes[k];
        unsigned char *in = malloc((size_t)n), *out = calloc(1, (size_t)n + 2);
        tn_tensor *x = tn_tensor_empty(TN_SHAPE(n), TN_U8, c->plugin->device), *middle;

        for (int64_t i = 0; in != NULL && i < n; i++)
            in[i] = (unsigned char)(i * 31 + 7);
        if (in == NULL || out == NULL || x == NULL ||
            tn_tensor_copy_in(x, in, (size_t)n) != TN_OK) {
            conform_fail(c, "%lld bytes: %s", (long long)n, tn_error_text());
        } else {
            out[n + 1] = 0x5a;
            if (tn_tensor_copy_out(x, out + 1, (size_t)n) != TN_OK)
                conform_fail(c, "%lld bytes: %s", (long long)n, tn_error_text());
            else if (memcmp(in, out + 1, (size_t)n) != 0)
                conform_fail(c, "%lld bytes: copied to the device and back, they differ",
                             (long long)n);
            else if (out[0] != 0 || out[n + 1] != 0x5a)
                conform_fail(c,
                             "copy to the host of %lld bytes: the backend writes outside the "
                             "destination",
                             (long long)n);
            /* copies to a part of the tensor: the bytes before and after it must not change */
            if (n >= 64) {
                middle = tn_narrow(x, 0, 5, n - 12);
                memset(out + 1, 0xEE, (size_t)n);
                if (middle == NULL || tn_tensor_copy_in(middle, out + 1, (size_t)n - 12) != TN_OK ||
                    tn_tensor_copy_out(x, out + 1, (size_t)n) != TN_OK)
                    conform_fail(c, "part of %lld bytes: %s", (long long)n, tn_error_text());
                else if (memcmp(in, out + 1, 5) != 0 || memcmp(in + n - 7, out + 1 + n - 7, 7) != 0)
                    conform_fail(c,
                                 "copy from the host to a part of a tensor of %lld bytes: the "
                                 "backend changes bytes outside that part",
                                 (long long)n);
                else if (out[1 + 5] != 0xEE || out[1 + n - 8] != 0xEE)
                    conform_fail(
                        c,
                        "copy from the host to a part of a tensor of %lld bytes: does not write "
                        "the first or last byte of that part",
                        (long long)n);
            }
        }
        c->checks += 3;
        free(in);
        free(out);
        tn_error_clear();
        tn_scope_end(scope);
    }
}

void conform_device_too_large(conform *c)
{
    static const int64_t sizes[] = { INT64_C(1) << 46, INT64_C(1) << 56 };
    uint64_t scope = tn_scope_begin();

    for (int i = 0; i < 4; i++, c->checks++) {
        if (tn_tensor_empty(TN_SHAPE(sizes[i % 2]), TN_F32, c->plugin->device) != NULL)
            conform_fail(c, "memory for %lld floats: allocated; expected a failure",
                         (long long)sizes[i % 2]);
        else if (tn_error_code() != TN_ERR_MEMORY || tn_error_text()[0] == '\0' ||
                 conform_device_is_blamed())
            conform_fail(c,
                         "memory for %lld floats: wrong error, got %s: %s; expected TN_ERR_MEMORY "
                         "with a message",
                         (long long)sizes[i % 2], tn_status_name(tn_error_code()), tn_error_text());
        tn_error_clear();
    }
    if (conform_device_numbers(c->plugin->device, 100) == NULL)
        conform_fail(c, "after allocations that were too large: a small one fails: %s",
                     tn_error_text());
    tn_error_clear();
    tn_scope_end(scope);
}

void conform_device_gives_back(conform *c)
{
    const tn_device *device = c->plugin->device;
    tn_memory_stats before, after;

    if (tn_device_memory(device, &before) != TN_OK) {
        conform_fail(c, "%s", tn_error_text());
        return;
    }
    for (int turn = 0; turn < 20; turn++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *x = conform_device_numbers(device, 1000 + turn * 777);

        if (x == NULL || (tn_mul_scalar(x, 2) == NULL && tn_error_code() != TN_ERR_NOT_IMPLEMENTED))
            conform_fail(c, "%s", tn_error_text());
        tn_error_clear();
        tn_scope_end(scope);
    }
    if (tn_device_sync(device) != TN_OK || tn_device_trim(device) != TN_OK ||
        tn_device_memory(device, &after) != TN_OK)
        conform_fail(c, "%s", tn_error_text());
    else if (after.live != before.live)
        conform_fail(c, "memory: in use after all tensors were freed, got %lld bytes; expected 0",
                     (long long)(after.live - before.live));
    else if (after.cached > before.cached)
        conform_fail(c, "cache: not empty after a trim, got %lld bytes; expected 0",
                     (long long)(after.cached - before.cached));
    c->checks += 2;
    if (c->verdict == CONFORM_PASS)
        frees_memory(c);
}
