/* SPDX-License-Identifier: MIT
 *
 * Tests of parts that are optional for a backend, and that both backends for GPUs have: pinned
 * memory with asynchronous copies, streams and events of the program, fills. */
#ifndef TN_TESTS_GPU_OPTIONAL_H
#define TN_TESTS_GPU_OPTIONAL_H

#include "direct.h"

/* Copies to the device and back; only the order of the stream synchronizes them. */
static inline void copies_with_pinned_memory(struct direct *d)
{
    enum { COUNT = 1000 };
    tn_memory in = { TN_HEAD(tn_memory), .bytes = COUNT * sizeof(float), .kind = TN_MEMORY_PINNED };
    tn_memory out = in, there = { TN_HEAD(tn_memory), .bytes = in.bytes };
    tn_copy_args args = { TN_HEAD(tn_copy_args), .bytes = in.bytes, .stream = d->stream,
                          .flags = TN_COPY_ASYNC };

    ck_assert(d->info.memory_kinds & TN_MEMORY_BIT(TN_MEMORY_PINNED));
    ck_assert_int_eq(d->backend->alloc(d->device, &in), TN_OK);
    ck_assert_int_eq(d->backend->alloc(d->device, &out), TN_OK);
    ck_assert_int_eq(d->backend->alloc(d->device, &there), TN_OK);
    ck_assert_ptr_nonnull(in.host);
    ck_assert_ptr_null(there.host);
    for (int i = 0; i < COUNT; i++) {
        ((float *)in.host)[i] = (float)i;
        ((float *)out.host)[i] = -1;
    }
    args.to = (tn_copy_end){ d->device, there.handle, 0 };
    args.from = (tn_copy_end){ NULL, in.host, 0 };
    ck_assert_int_eq(d->backend->copy(d->device, &args), TN_OK);
    args.to = (tn_copy_end){ NULL, out.host, 4 * sizeof(float) };
    args.from = (tn_copy_end){ d->device, there.handle, 8 * sizeof(float) };
    args.bytes -= 8 * sizeof(float);
    ck_assert_int_eq(d->backend->copy(d->device, &args), TN_OK);
    ck_assert_int_eq(d->backend->stream_sync(d->device, d->stream), TN_OK);
    ck_assert_float_eq(((float *)out.host)[3], -1);
    ck_assert_float_eq(((float *)out.host)[4], 8);
    ck_assert_float_eq(((float *)out.host)[COUNT - 5], COUNT - 1);
    ck_assert_float_eq(((float *)out.host)[COUNT - 4], -1);
    d->backend->free(d->device, &in);
    d->backend->free(d->device, &out);
    d->backend->free(d->device, &there);
    in.kind = 9;
    ck_assert_int_eq(d->backend->alloc(d->device, &in), TN_ERR_NOT_IMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(tn_error_last()->message, "kind, got 9"));
}

/* Fills with patterns of every size; bytes before and after do not change. */
static inline void fills_with_patterns(struct direct *d)
{
    enum { BYTES = 8192 + 64 };
    unsigned char bytes[BYTES];
    void *memory;

    ck_assert_int_eq(direct_alloc(d->backend, d->device, BYTES, &memory), TN_OK);
    for (uint32_t size = 1; size <= 16; size *= 2) {
        tn_fill_args args = { TN_HEAD(tn_fill_args), .memory = memory,      .offset = 16,
                              .bytes = BYTES - 48,   .pattern_bytes = size, .stream = d->stream };

        memset(bytes, 0xEE, sizeof bytes);
        for (uint32_t i = 0; i < size; i++)
            args.pattern[i] = (unsigned char)(i + size);
        ck_assert_int_eq(direct_copy_in(d->backend, d->device, d->stream, memory, 0, bytes, BYTES),
                         TN_OK);
        ck_assert_int_eq(d->backend->fill(d->device, &args), TN_OK);
        ck_assert_int_eq(direct_copy_out(d->backend, d->device, d->stream, bytes, memory, 0, BYTES),
                         TN_OK);
        for (int i = 0; i < BYTES; i++)
            ck_assert_uint_eq(bytes[i], i < 16 || i >= BYTES - 32
                                            ? 0xEE
                                            : (unsigned)((uint32_t)(i - 16) % size + size));
    }
    direct_free(d->backend, d->device, memory, BYTES);
}

/* Makes a stream from the native handle of another one, which remains usable when the new one is
 * dropped. */
static inline void uses_a_stream_of_the_program(struct direct *d)
{
    tn_stream_args args = { TN_HEAD(tn_stream_args),
                            .external = d->backend->native_stream(d->device, d->stream) };
    float from = 3, to = 0;
    void *stream, *memory;

    ck_assert_int_eq(direct_alloc(d->backend, d->device, sizeof from, &memory), TN_OK);
    ck_assert_int_eq(d->backend->stream_new(d->device, &args, &stream), TN_OK);
    ck_assert_ptr_eq(d->backend->native_stream(d->device, stream), args.external);
    ck_assert_int_eq(direct_copy_in(d->backend, d->device, stream, memory, 0, &from, sizeof from),
                     TN_OK);
    d->backend->stream_drop(d->device, stream);
    ck_assert_int_eq(direct_copy_out(d->backend, d->device, d->stream, &to, memory, 0, sizeof to),
                     TN_OK);
    ck_assert_float_eq(to, 3);
    direct_free(d->backend, d->device, memory, sizeof from);
}

/* Makes an event from the native handle of another one, which remains usable when the new one is
 * dropped. */
static inline void uses_an_event_of_the_program(struct direct *d)
{
    tn_event_args args = { TN_HEAD(tn_event_args) };
    void *event, *other;
    bool done = false;

    ck_assert_int_eq(d->backend->event_new(d->device, &args, &event), TN_OK);
    ck_assert_int_eq(d->backend->event_record(d->device, event, d->stream), TN_OK);
    args.external = d->backend->native_event(d->device, event);
    ck_assert_ptr_nonnull(args.external);
    ck_assert_int_eq(d->backend->event_new(d->device, &args, &other), TN_OK);
    ck_assert_ptr_eq(d->backend->native_event(d->device, other), args.external);
    ck_assert_int_eq(d->backend->event_wait(d->device, other, d->stream), TN_OK);
    ck_assert_int_eq(d->backend->event_sync(d->device, other), TN_OK);
    ck_assert_int_eq(d->backend->event_query(d->device, other, &done), TN_OK);
    ck_assert(done);
    d->backend->event_drop(d->device, other);
    done = false;
    ck_assert_int_eq(d->backend->event_query(d->device, event, &done), TN_OK);
    ck_assert(done);
    d->backend->event_drop(d->device, event);
}

#endif
