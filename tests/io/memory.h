/* SPDX-License-Identifier: MIT
 *
 * Files for the tests of formats, read from memory, damaged in every place. */
#ifndef TN_TESTS_IO_MEMORY_H
#define TN_TESTS_IO_MEMORY_H

#include "tests/base/suite.h"

#include <tenon/tenon.h>

struct memory {
    const char *bytes;
    size_t size;
};

static inline tn_status read_memory(void *user, uint64_t offset, void *to, size_t bytes)
{
    const struct memory *memory = user;
    if (offset > memory->size || bytes > memory->size - offset)
        return tn_fail(TN_ERR_FORMAT, "beyond the end");
    memcpy(to, memory->bytes + offset, bytes);
    return TN_OK;
}

static inline tn_status load_memory_as(const char *name, const char *bytes, size_t size,
                                       tn_state *state)
{
    TN_SCOPE;
    struct memory memory = { bytes, size };
    tn_source source = { &memory, size, "a file", read_memory };
    const tn_format_def *format = (const tn_format_def *)tn_registry_find(TN_KIND_tn_format_def,
                                                                          name);
    ck_assert_ptr_nonnull(format);
    return format->load(format, &source, state);
}

static inline char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    char *bytes = malloc(1 << 20);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* Every load of a damaged file must return a state or fail with a message; a truncated file must
 * never load. */
static inline void cut(const char *format, const char *path)
{
    size_t size;
    char *bytes = slurp(path, &size);
    for (size_t left = 0; left < size; left++) {
        char *part = malloc(left > 0 ? left : 1); /* of its exact size, for the sanitizer */
        memcpy(part, bytes, left);
        tn_state *state = tn_state_new();
        ck_assert_int_ne(load_memory_as(format, part, left, state), TN_OK);
        ck_assert(tn_error_text()[0] != '\0');
        ck_assert_int_eq(tn_state_count(state), 0);
        tn_error_clear();
        tn_state_drop(state);
        free(part);
    }
    free(bytes);
}

/* Loads a file once for each byte and each change, with this byte XORed with this change. */
static inline void change(const char *format, const char *path, const char *changes)
{
    size_t size, count = strlen(changes);
    char *bytes = slurp(path, &size);
    for (size_t i = 0; i < size * count; i++) {
        char *at = &bytes[i / count], before = *at;
        *at = (char)(before ^ changes[i % count]);
        tn_state *state = tn_state_new();
        if (load_memory_as(format, bytes, size, state) == TN_OK)
            for (int64_t k = 0; k < tn_state_count(state); k++)
                ck_assert(tn_state_value(state, k).kind != TN_VALUE_TENSOR ||
                          tn_state_tensor(state, k) != NULL);
        else
            ck_assert(tn_error_text()[0] != '\0');
        tn_error_clear();
        tn_state_drop(state);
        *at = before;
    }
    free(bytes);
}

static inline void cut_and_change(const char *format, const char *path)
{
    cut(format, path);
    change(format, path, "\x01\x02\x20\x80\xff");
}

/* Loads a small file with each byte replaced by each other value. */
static inline void change_to_anything(const char *format, const char *path)
{
    size_t size;
    char *bytes = slurp(path, &size);
    for (size_t i = 0; i < size; i++) {
        char before = bytes[i];
        for (int value = 0; value < 256; value++) {
            bytes[i] = (char)value;
            tn_state *state = tn_state_new();
            tn_status status = load_memory_as(format, bytes, size, state);
            ck_assert((status == TN_OK) != (tn_error_text()[0] != '\0'));
            tn_error_clear();
            tn_state_drop(state);
        }
        bytes[i] = before;
    }
    free(bytes);
}

/* Every allocation of a load is made to fail in turn: each load fails with TN_ERR_MEMORY or has the
 * same outcome as without failing allocations. A sanitizer finds leaks. */
static inline void fail_allocations(const char *path)
{
    tn_state *state = tn_state_load(path);
    bool loads = state != NULL;
    tn_state_drop(state);
    tn_status wanted = tn_error_take(NULL);
    uint64_t failures = 0;
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        state = tn_state_load(path);
        bool reached = tn__memory_fail(0) >= n;
        tn_status code = tn_error_take(NULL);
        ck_assert_msg(code == TN_ERR_MEMORY || (code == wanted && (state != NULL) == loads),
                      "%s, allocation %d: %s", path, (int)n, tn_error_last()->message);
        ck_assert((state != NULL) == (code == TN_OK));
        failures += code == TN_ERR_MEMORY;
        tn_state_drop(state);
        if (!reached)
            break;
    }
    ck_assert_uint_gt(failures, 5);
}

#endif
