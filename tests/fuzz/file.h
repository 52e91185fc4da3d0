/* SPDX-License-Identifier: MIT
 *
 * Files of tensors, with any bytes: the format must read a file or refuse it with a message. If the
 * format can write, a state that was read is written again, and must be the same when it is read
 * from the new file. The target of each format defines the name of the format. */
#ifndef TN_TESTS_FUZZ_FILE_H
#define TN_TESTS_FUZZ_FILE_H

#include "tests/fuzz/fuzz.h"

#include "core/base/internal.h"

#include <tenon/tenon.h>

struct bytes {
    uint8_t *at;
    size_t size;
};

static tn_status read_bytes(void *user, uint64_t offset, void *to, size_t count)
{
    const struct bytes *bytes = user;
    if (offset > bytes->size || count > bytes->size - offset)
        return tn_fail(TN_ERR_FORMAT, "beyond the end");
    if (count > 0)
        memcpy(to, bytes->at + offset, count);
    return TN_OK;
}

static tn_status write_bytes(void *user, const void *from, size_t count)
{
    struct bytes *bytes = user;
    uint8_t *grown = realloc(bytes->at, bytes->size + count + 1);
    fuzz_require(grown != NULL);
    if (count > 0)
        memcpy(grown + bytes->size, from, count);
    bytes->at = grown;
    bytes->size += count;
    return TN_OK;
}

static tn_state *load(const tn_format_def *format, struct bytes *bytes)
{
    tn_source source = { bytes, bytes->size, "input", read_bytes };
    tn_state *state = tn_state_new();
    format->recognize(format, &source);
    if (format->load(format, &source, state) == TN_OK)
        return state;
    fuzz_require(tn_failed() && *tn_error_text());
    tn_error_clear();
    tn_state_drop(state);
    return NULL;
}

static void expect_same(const tn_state *a, const tn_state *b)
{
    fuzz_require(tn_state_count(a) == tn_state_count(b));
    fuzz_require(tn_state_meta_count(a) == tn_state_meta_count(b));
    for (int64_t i = 0; i < tn_state_count(a); i++) {
        fuzz_require(strcmp(tn_state_name(a, i), tn_state_name(b, i)) == 0);
        fuzz_require(tn_state_value(a, i).kind == tn_state_value(b, i).kind);
        if (tn_state_value(a, i).kind != TN_VALUE_TENSOR)
            continue;
        tn_tensor *x = tn_state_tensor(a, i), *y = tn_state_tensor(b, i);
        fuzz_require(tn_tensor_dtype(x) == tn_tensor_dtype(y));
        fuzz_require(tn_tensor_numel(x) == tn_tensor_numel(y));
        if (tn_tensor_numel(x) > 1 << 20) /* one element many times, by a stride of zero */
            continue;
        size_t size = (size_t)tn_tensor_numel(x) * tn_dtype_size(tn_tensor_dtype(x));
        char *values = malloc(2 * size + 1); /* in row-major order, whatever the strides */
        fuzz_require(values != NULL);
        fuzz_require(tn_tensor_copy_out(x, values, size) == TN_OK);
        fuzz_require(tn_tensor_copy_out(y, values + size, size) == TN_OK);
        fuzz_require(memcmp(values, values + size, size) == 0);
        free(values);
    }
}

/* Reads every element, so that the sanitizer checks its address. */
static void touch(const tn_state *state)
{
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        if (tn_state_value(state, i).kind != TN_VALUE_TENSOR)
            continue;
        tn_tensor *tensor = tn_state_tensor(state, i);
        size_t size = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
        char *values = size < ((size_t)1 << 24) ? malloc(size + 1) : NULL;
        if (values != NULL)
            fuzz_require(tn_tensor_copy_out(tensor, values, size) == TN_OK);
        free(values);
    }
}

/* The format, whose plugin is active then: it has the settings. */
static inline const tn_format_def *find_format(const char *name)
{
    const tn_format_def *format = (const tn_format_def *)tn_registry_find(TN_KIND_tn_format_def,
                                                                          name);
    const char *plugin = tn_registry_plugin(TN_KIND_tn_format_def, name);
    fuzz_require(format != NULL);
    if (plugin != NULL && *plugin)
        fuzz_require(tn_plugin_activate(plugin) == TN_OK);
    return format;
}

static inline int fuzz_file(const char *name, const uint8_t *data, size_t size)
{
    TN_SCOPE;
    const tn_format_def *format = find_format(name);
    struct bytes input = { (uint8_t *)fuzz_text(data, size), size }, output = { NULL, 0 };
    tn_state *state = load(format, &input);
    if (state != NULL) {
        tn_sink sink = { &output, "output", write_bytes };
        if (format->save != NULL) {
            fuzz_require(format->save(format, &sink, state) == TN_OK);
            tn_state *again = load(format, &output);
            fuzz_require(again != NULL);
            expect_same(state, again);
            tn_state_drop(again);
        } else {
            touch(state);
        }
        tn_state_drop(state);
    }
    free(input.at);
    free(output.at);
    return 0;
}

#endif
