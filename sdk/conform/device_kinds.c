/* SPDX-License-Identifier: MIT
 *
 * Checks the kinds of memory besides ordinary memory of the device: pinned, managed and shared. */
#include "device.h"

#include <string.h>

enum { COUNT = 5000 };

/* Creates a tensor in memory of a kind. Skips or fails the test, and returns NULL, if there is no
 * such memory. */
static tn_tensor *kind_tensor(conform *c, tn_memory_kind kind, const char *name)
{
    tn_tensor *x = tn_tensor_empty_in(TN_SHAPE(COUNT), TN_F32, c->plugin->device, kind);

    c->checks++;
    if (x == NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED && !conform_device_is_blamed())
        conform_skip(c, "the device has no %s memory", name);
    else if (x == NULL)
        conform_fail(c, "%s memory: %s", name, tn_error_text());
    tn_error_clear();
    return x;
}

/* Copies from pinned memory to the device and back to other pinned memory. Only the stream orders
 * the two copies. */
void conform_device_pinned(conform *c)
{
    const tn_device *device = c->plugin->device;
    uint64_t scope = tn_scope_begin();
    tn_tensor *in = tn_tensor_empty_in(TN_SHAPE(COUNT), TN_F32, device, TN_MEMORY_PINNED);
    tn_tensor *out = tn_tensor_empty_in(TN_SHAPE(COUNT), TN_F32, device, TN_MEMORY_PINNED);
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(COUNT), TN_F32, device);
    float *values = in != NULL ? tn_tensor_data(in) : NULL;

    for (int i = 0; values != NULL && i < COUNT; i++)
        values[i] = (float)i;
    if (values == NULL || out == NULL || x == NULL || tn_tensor_copy_async(x, in) != TN_OK ||
        tn_tensor_copy_async(out, x) != TN_OK || (values = tn_tensor_data(out)) == NULL) {
        conform_fail(c, "copies with pinned memory: %s", tn_error_text());
    } else {
        for (int i = 0; i < COUNT && c->verdict == CONFORM_PASS; i++)
            if (values[i] != (float)i)
                conform_fail(c, "copy with TN_COPY_ASYNC: element %d: wrong, got %g; expected %d",
                             i, (double)values[i], i);
        if (c->verdict == CONFORM_PASS && tn_tensor_memory_kind(in) != TN_MEMORY_PINNED)
            conform_skip(c, "the device has no pinned memory");
    }
    c->checks++;
    tn_error_clear();
    tn_scope_end(scope);
}

/* Fails unless element i of `values` is first + i. */
static bool counts_from(conform *c, const float *values, int first, const char *what)
{
    for (int i = 0; i < COUNT; i++)
        if (values[i] != (float)(first + i)) {
            conform_fail(c, "%s: element %d: wrong, got %g; expected %d", what, i,
                         (double)values[i], first + i);
            return false;
        }
    return true;
}

/* The device reads what the host has written through its pointer, and the host what the device has
 * written. */
void conform_device_managed(conform *c)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = kind_tensor(c, TN_MEMORY_MANAGED, "managed");
    float *values = x != NULL ? tn_tensor_data(x) : NULL, there[COUNT];

    if (values != NULL) {
        for (int i = 0; i < COUNT; i++)
            values[i] = (float)i;
        if (tn_tensor_copy_out(x, there, sizeof there) != TN_OK)
            conform_fail(c, "managed memory: %s", tn_error_text());
        else if (counts_from(c, there, 0, "managed memory: written by the host, read by a copy")) {
            for (int i = 0; i < COUNT; i++)
                there[i] = (float)(100 + i);
            if (tn_tensor_copy_in(x, there, sizeof there) != TN_OK ||
                (values = tn_tensor_data(x)) == NULL)
                conform_fail(c, "managed memory: %s", tn_error_text());
            else
                counts_from(c, values, 100, "managed memory: written by a copy, read by the host");
        }
        c->checks += 2;
    } else if (x != NULL) {
        conform_fail(c, "managed memory: %s", tn_error_text());
    }
    tn_error_clear();
    tn_scope_end(scope);
}

/* Opens memory in this process; some devices refuse that. Returns NULL after a refusal, and fails
 * the test if something else happens. */
static tn_tensor *opened(conform *c, const tn_shared *shared)
{
    tn_tensor *x = tn_tensor_open_shared(shared, TN_SHAPE(8), TN_F32, c->plugin->device);

    c->checks++;
    if (x == NULL && (tn_error_code() != TN_ERR_VALUE || tn_error_text()[0] == '\0' ||
                      conform_device_is_blamed()))
        conform_fail(c, "memory_open: wrong error, got %s: %s; expected TN_ERR_VALUE",
                     tn_status_name(tn_error_code()), tn_error_text());
    tn_error_clear();
    return x;
}

static void opens_only_what_is_there(conform *c, const tn_shared *shared)
{
    tn_shared wrong = *shared;

    memset(wrong.handle, 0x5a, sizeof wrong.handle);
    if (opened(c, &wrong) != NULL)
        conform_fail(c, "memory_open: a handle that memory_share never wrote: accepted; expected "
                        "TN_ERR_VALUE");
    wrong = *shared;
    wrong.bytes = UINT64_C(1) << 40;
    if (c->verdict == CONFORM_PASS && opened(c, &wrong) != NULL)
        conform_fail(c, "memory_open: memory->bytes above the size of the memory: accepted; "
                        "expected TN_ERR_VALUE");
}

void conform_device_shared(conform *c)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = kind_tensor(c, TN_MEMORY_SHARED, "shared"), *y;
    float values[COUNT], other[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
    tn_shared shared;

    if (x != NULL) {
        for (int i = 0; i < COUNT; i++)
            values[i] = (float)i;
        if (tn_tensor_copy_in(x, values, sizeof values) != TN_OK ||
            tn_tensor_share(x, 0, &shared) != TN_OK) {
            conform_fail(c, "shared memory: %s", tn_error_text());
        } else {
            opens_only_what_is_there(c, &shared);
            y = c->verdict == CONFORM_PASS ? opened(c, &shared) : NULL;
            if (y != NULL && (tn_tensor_copy_in(y, other, sizeof other) != TN_OK ||
                              tn_device_sync(c->plugin->device) != TN_OK ||
                              tn_tensor_copy_out(x, values, sizeof values) != TN_OK))
                conform_fail(c, "shared memory: %s", tn_error_text());
            else if (y != NULL && memcmp(values, other, sizeof other) != 0)
                conform_fail(c,
                             "memory_open: what is written there does not reach the memory that "
                             "was shared, got %g; expected 8",
                             (double)values[0]);
        }
    }
    tn_error_clear();
    tn_scope_end(scope);
}
