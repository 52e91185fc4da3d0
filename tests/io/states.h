/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of files of whole states. */
#ifndef TN_TESTS_IO_STATES_H
#define TN_TESTS_IO_STATES_H

#include "tests/base/suite.h"
#include "tests/io/memory.h"
#include "tests/spec/proves.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

/* A folder of the test's own; it becomes the current one. */
static inline void in_folder(void)
{
    strcpy(folder, "/tmp/tenon-states-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static inline void leave_folder(void)
{
    char command[128];
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static inline tn_state *loaded_as(const char *path, uint32_t flags)
{
    tn_state *state = tn_state_load_as(path, flags);
    ck_assert_msg(state != NULL, "%s: %s", path, tn_error_text());
    return state;
}

static inline void saved(const tn_state *state, const char *path)
{
    ck_assert_msg(tn_state_save(state, path) == TN_OK, "%s: %s", path, tn_error_text());
}

static inline void expect_same_value(const char *name, tn_value a, tn_value b)
{
    ck_assert_msg(a.kind == b.kind, "%s: kind %u, not %u", name, b.kind, a.kind);
    if (a.kind == TN_VALUE_TENSOR) {
        char left[4096], right[4096];
        tn_tensor *x = a.as.tensor, *y = b.as.tensor;
        size_t size = (size_t)tn_tensor_numel(x) * tn_dtype_size(tn_tensor_dtype(x));
        ck_assert_int_eq(tn_tensor_dtype(x), tn_tensor_dtype(y));
        ck_assert_int_eq(tn_tensor_ndim(x), tn_tensor_ndim(y));
        for (int32_t d = 0; d < tn_tensor_ndim(x); d++)
            ck_assert_int_eq(tn_tensor_size(x, d), tn_tensor_size(y, d));
        ck_assert_uint_le(size, sizeof left);
        ck_assert_int_eq(tn_tensor_copy_out(x, left, size), TN_OK);
        ck_assert_int_eq(tn_tensor_copy_out(y, right, size), TN_OK);
        ck_assert_msg(memcmp(left, right, size) == 0, "%s: its values differ", name);
    } else if (a.kind == TN_VALUE_STRING || a.kind == TN_VALUE_SPEC) {
        ck_assert_str_eq(a.as.s, b.as.s);
    } else if (a.kind == TN_VALUE_BYTES) {
        ck_assert_uint_eq(a.count, b.count);
        ck_assert(memcmp(a.as.s, b.as.s, a.count) == 0);
    } else if (a.kind == TN_VALUE_LIST || a.kind == TN_VALUE_TUPLE || a.kind == TN_VALUE_DICT ||
               a.kind == TN_VALUE_COMPLEX) {
        ck_assert_uint_eq(a.count, b.count);
        for (uint32_t i = 0; i < a.count; i++)
            expect_same_value(name, a.as.list[i], b.as.list[i]);
    } else if (a.kind != TN_VALUE_NONE) {
        ck_assert_msg(a.as.i == b.as.i, "%s", name); /* floats to the bit, too */
    }
}

/* The same names in the same order, with the same values, versions and texts. */
static inline void expect_same_state(const tn_state *a, const tn_state *b)
{
    ck_assert_int_eq(tn_state_count(a), tn_state_count(b));
    for (int64_t i = 0; i < tn_state_count(a); i++) {
        ck_assert_str_eq(tn_state_name(a, i), tn_state_name(b, i));
        expect_same_value(tn_state_name(a, i), tn_state_value(a, i), tn_state_value(b, i));
    }
    ck_assert_int_eq(tn_state_version_count(a), tn_state_version_count(b));
    for (int64_t i = 0; i < tn_state_version_count(a); i++) {
        const char *path = tn_state_version_path(a, i);
        ck_assert_str_eq(path, tn_state_version_path(b, i));
        ck_assert_int_eq(tn_state_version(a, path), tn_state_version(b, path));
    }
    ck_assert_int_eq(tn_state_meta_count(a), tn_state_meta_count(b));
    for (int64_t i = 0; i < tn_state_meta_count(a); i++) {
        const char *key = tn_state_meta_key(a, i);
        ck_assert_ptr_nonnull(tn_state_meta(b, key));
        ck_assert_str_eq(tn_state_meta(a, key), tn_state_meta(b, key));
    }
}

static inline tn_tensor *bits(tn_dtype dtype, const void *from, int64_t count)
{
    return tn_tensor_from(from, dtype, TN_SHAPE(count));
}

/* A state with tensors of many kinds; `rich`: with values that are not tensors, too. */
static inline tn_state *sample(bool rich)
{
    static const uint32_t odd[] = { 0x7fc12345, 0xffa00001, 0x80000000, 1, 0x807fffff, 0x7f800000 };
    static const uint64_t odd_double[] = { UINT64_C(0x7ff8000000abcdef), UINT64_C(1),
                                           UINT64_C(0x8000000000000000) };
    static const uint8_t truths[] = { 1, 0, 1 };
    static const uint16_t halves[] = { 0x7e01, 0x8000, 1 };
    tn_state *state = tn_state_new();
    tn_tensor *tied = tn_tensor_full(TN_SHAPE(2, 3), 0.5, TN_F32, NULL);
    tn_value inner[] = { tn_value_int(INT64_MIN), tn_value_tensor(bits(TN_F32, odd, 2)),
                         tn_value_string("a\\b\n\"c\" ä"), tn_value_uint(UINT64_MAX) };
    tn_value parts[] = { tn_value_float(0.1), tn_value_float(-0.0) };
    tn_value entries[] = {
        tn_value_string("a\nb"), tn_value_tensor(tied),
        tn_value_int(3),         { .kind = TN_VALUE_COMPLEX, .count = 2, .as = { .list = parts } },
        tn_value_none(),         tn_value_dict(NULL, 0)
    };
    tn_value outer[] = { { .kind = TN_VALUE_TUPLE, .count = 4, .as = { .list = inner } },
                         { .kind = TN_VALUE_NONE },
                         tn_value_tensor(tied) };
    if (rich)
        tn_state_set_value(state, "first", tn_value_bytes("\0\x01\xff bytes", 9));
    tn_state_set(state, "z.weight", tied);
    tn_state_set(state, "odd \"name\"\n", bits(TN_F32, odd, 6));
    tn_state_set(state, "double", bits(TN_F64, odd_double, 3));
    if (rich) {
        tn_state_set_value(
            state, "m._extra_state",
            (tn_value){ .kind = TN_VALUE_LIST, .count = 3, .as = { .list = outer } });
        tn_state_set_value(state, "float", tn_value_float(0.1));
        tn_state_set_value(state, "true", tn_value_bool(true));
        tn_state_set_value(state, "empty list", (tn_value){ .kind = TN_VALUE_LIST });
        tn_state_set_value(state, "dict", tn_value_dict(entries, 6));
    }
    tn_state_set(state, "truth", bits(TN_BOOL, truths, 3));
    tn_state_set(state, "half", bits(TN_F16, halves, 3));
    tn_state_set(state, "scalar", tn_tensor_full(TN_SCALAR_SHAPE, -0.0, TN_F32, NULL));
    tn_state_set(state, "nothing", tn_tensor_full(TN_SHAPE(0, 3), 0, TN_F32, NULL));
    tn_state_set(state, "a.weight", tn_detach(tied));
    if (rich)
        tn_state_set_value(state, "last", tn_value_string(""));
    tn_state_set_version(state, "", 1);
    tn_state_set_version(state, "m.path\nwith a line", 2);
    tn_state_set_meta(state, "note", "a b");
    return state;
}

static inline tn_tensor *entry(const tn_state *state, const char *name)
{
    int64_t i = tn_state_find(state, name);
    ck_assert_msg(i >= 0, "%s", name);
    return tn_state_tensor(state, i);
}

#endif
