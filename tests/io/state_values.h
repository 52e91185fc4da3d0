/* SPDX-License-Identifier: MIT
 *
 * What a loaded state has to hold, for the tests of formats. */
#ifndef TN_TESTS_IO_STATE_VALUES_H
#define TN_TESTS_IO_STATE_VALUES_H

#include "core/base/internal.h"
#include "tests/base/suite.h"

#define FILES TN_TEST_SRCDIR "/tests/io/files/"

static inline tn_state *loaded(const char *path)
{
    tn_state *state = tn_state_load(path);
    ck_assert_msg(state != NULL, "%s: %s", path, tn_error_text());
    ck_assert(!tn_failed());
    return state;
}

static inline tn_tensor *tensor_of(const tn_state *state, const char *name)
{
    int64_t i = tn_state_find(state, name);
    ck_assert_msg(i >= 0, "%s is not there", name);
    return tn_state_tensor(state, i);
}

static inline void expect_tensor(const tn_state *state, const char *name, tn_dtype dtype,
                                 tn_ints shape, const void *bytes, size_t size)
{
    char got[256];
    tn_tensor *tensor = tensor_of(state, name);
    ck_assert_msg(tn_tensor_dtype(tensor) == dtype, "%s: %s", name,
                  tn_dtype_name(tn_tensor_dtype(tensor)));
    ck_assert_msg(tn_tensor_ndim(tensor) == shape.count, "%s", name);
    for (int64_t d = 0; d < shape.count; d++)
        ck_assert_int_eq(tn_tensor_size(tensor, d), shape.at[d]);
    ck_assert_uint_le(size, sizeof got);
    ck_assert_int_eq(tn_tensor_copy_out(tensor, got, size), TN_OK);
    if (size > 0)
        ck_assert_msg(memcmp(got, bytes, size) == 0, "%s: other values", name);
}

#define EXPECT(state, name, dtype, shape, type, ...)                                               \
    do {                                                                                           \
        type values_[] = { __VA_ARGS__ };                                                          \
        expect_tensor(state, name, dtype, shape, values_, sizeof values_);                         \
    } while (0)

/* Text metadata. */
static inline TN_ATTR(unused) void expect_meta(const tn_state *state, const char *name,
                                               const char *text)
{
    const char *got = tn_state_meta(state, name);
    ck_assert_msg(got != NULL, "%s is not there", name);
    ck_assert_msg(strcmp(got, text) == 0, "%s is %s", name, got);
}

/* A value that is not a tensor, by its kind and its text in the grammar of specs. */
static inline TN_ATTR(unused) void expect_value(const tn_state *state, const char *name,
                                                uint32_t kind, const char *text)
{
    int64_t i = tn_state_find(state, name);
    ck_assert_msg(i >= 0, "%s is not there", name);
    tn_value value = tn_state_value(state, i);
    tn__text got = { 0 };
    tn__value_print(&value, &got);
    ck_assert_msg(value.kind == kind && strcmp(got.at, text) == 0, "%s is %s, of kind %u", name,
                  got.at, value.kind);
    tn__text_free(&got);
}

#endif
