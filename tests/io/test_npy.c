/* SPDX-License-Identifier: MIT
 *
 * npy: files that NumPy wrote, files that it reads, hostile files. */
#include "tests/base/suite.h"

#include "tests/io/memory.h"
#include "tests/spec/proves.h"

#include <unistd.h>

#define FILES TN_TEST_SRCDIR "/tests/io/files/"

static void expect(const char *path, tn_dtype dtype, tn_ints shape, const void *bytes, size_t size)
{
    char got[64];
    tn_state *state = tn_state_load(path);
    ck_assert_msg(state != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_state_count(state), 1);
    ck_assert_int_eq(tn_state_meta_count(state), 0);
    ck_assert_str_eq(tn_state_name(state, 0), "arr_0");
    tn_tensor *tensor = tn_state_tensor(state, 0);
    ck_assert_msg(tn_tensor_dtype(tensor) == dtype, "%s", path);
    ck_assert_int_eq(tn_tensor_ndim(tensor), shape.count);
    for (int64_t d = 0; d < shape.count; d++)
        ck_assert_int_eq(tn_tensor_size(tensor, d), shape.at[d]);
    ck_assert_int_eq(tn_tensor_copy_out(tensor, got, size), TN_OK);
    if (size > 0)
        ck_assert_msg(memcmp(got, bytes, size) == 0, "%s", path);
    tn_state_drop(state);
}

#define EXPECT(path, dtype, shape, type, ...)                                                      \
    do {                                                                                           \
        type values_[] = { __VA_ARGS__ };                                                          \
        expect(path, dtype, shape, values_, sizeof values_);                                       \
    } while (0)

START_TEST(files_that_numpy_wrote_read_to_the_bit)
{
    EXPECT(FILES "matrix.npy", TN_F32, TN_SHAPE(2, 3), float, 0, 0.25f, 0.5f, 0.75f, 1, 1.25f);
    EXPECT(FILES "version2.npy", TN_U16, TN_SHAPE(2), uint16_t, 1, 65535);
    EXPECT(FILES "half.npy", TN_F16, TN_SHAPE(3), uint16_t, 0x3c00, 0xb800, 0x7bff);
    EXPECT(FILES "bool.npy", TN_BOOL, TN_SHAPE(3, 1), uint8_t, 1, 0, 1);
    EXPECT(FILES "scalar.npy", TN_F64, TN_SCALAR_SHAPE, uint64_t, UINT64_C(0x7ff8000000000123));
    expect(FILES "empty.npy", TN_I64, TN_SHAPE(0, 4), NULL, 0);
    /* Column-major data, and bytes in the order of other machines. */
    EXPECT(FILES "columns.npy", TN_I16, TN_SHAPE(2, 3, 2), int16_t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
           10, 11);
    EXPECT(FILES "big.npy", TN_I32, TN_SHAPE(2), int32_t, -5, 66051);
    EXPECT(FILES "complex.npy", TN_C128, TN_SHAPE(2), double, 1.5, -2, 0, 1e300);
    EXPECT(FILES "complex-big.npy", TN_C64, TN_SHAPE(2), float, 1.5f, -2, 0, 3);
}
END_TEST

START_TEST(what_is_written_is_the_file_that_numpy_has_read)
{
    static const char *const names[] = { "matrix", "scalar",  "empty",   "bool",
                                         "half",   "complex", "columns", "version2" };
    for (int64_t i = 0; i < tn__countof(names); i++) {
        char from[256], to[64], known[256];
        size_t size, wanted;
        tn_snprint(from, sizeof from, FILES "%s.npy", names[i]);
        tn_snprint(known, sizeof known, FILES "tenon-%s.npy", names[i]);
        tn_snprint(to, sizeof to, "npy-%d-%s.npy", (int)getpid(), names[i]);
        tn_state *state = tn_state_load(from);
        ck_assert_msg(state != NULL, "%s", tn_error_text());
        ck_assert_msg(tn_state_save(state, to) == TN_OK, "%s", tn_error_text());
        tn_state_drop(state);
        if (getenv("TENON_TEST_WRITE_FILES") != NULL)
            ck_assert_int_eq(rename(to, known), 0);
        char *theirs = slurp(known, &wanted),
             *ours = slurp(getenv("TENON_TEST_WRITE_FILES") != NULL ? known : to, &size);
        ck_assert_uint_eq(size, wanted);
        ck_assert_mem_eq(ours, theirs, size);
        free(ours);
        free(theirs);
        unlink(to);
    }
}
END_TEST

START_TEST(what_npy_cannot_hold_is_refused_and_nothing_is_written)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    ck_assert_int_eq(tn_state_save(state, "not.npy"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "not.npy: npy: wrong number of tensors, got 0; expected one");
    tn_state_set(state, "a", tn_tensor_full(TN_SHAPE(1), 1, TN_BF16, NULL));
    ck_assert_int_eq(tn_state_save(state, "not.npy"), TN_ERR_TYPE);
    expect_failure(
        TN_ERR_TYPE,
        "not.npy: tensor \"a\": wrong dtype, got bfloat16; expected one that npy can store");
    tn_state_set(state, "a", tn_tensor_empty(TN_SHAPE(1), TN_F32, tn_device_find("meta")));
    ck_assert_int_eq(tn_state_save(state, "not.npy"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "\"a\": no values to save, got a tensor on meta:0");
    tn_state_set(state, "b", tn_tensor_full(TN_SHAPE(1), 1, TN_F32, NULL));
    ck_assert_int_eq(tn_state_save(state, "not.npy"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "npy: wrong number of tensors, got 2");
    ck_assert_int_ne(access("not.npy", F_OK), 0);
    tn_state_drop(state);
}
END_TEST

/* ---- hostile files --------------------------------------------------------------------------- */

static void judge(const char *what, const char *bytes, size_t size, const char *words)
{
    tn_state *state = tn_state_new();
    tn_status status = load_memory_as("npy", bytes, size, state);
    if (words == NULL) {
        ck_assert_msg(status == TN_OK, "%s: %s", what, tn_error_text());
        ck_assert_int_eq(tn_state_count(state), 1);
    } else {
        ck_assert_msg(status == TN_ERR_FORMAT, "%s: %d %s", what, (int)status, tn_error_text());
        ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s: \"%s\" is not in \"%s\"", what,
                      words, tn_error_text());
        ck_assert_int_eq(tn_state_count(state), 0);
    }
    tn_error_clear();
    tn_state_drop(state);
}

/* Loads a file with this header and so many bytes of data. The load must fail with these words in
 * the message, or succeed if `words` is NULL. */
static void header(const char *text, size_t data, const char *words)
{
    size_t length = strlen(text);
    char *bytes = calloc(1, 10 + length + data);
    memcpy(bytes, "\x93NUMPY\1", 7);
    bytes[8] = (char)length;
    bytes[9] = (char)(length >> 8);
    memcpy(bytes + 10, text, length);
    judge(text, bytes, 10 + length + data, words);
    free(bytes);
}

#define F4 "{'descr':'<f4','fortran_order':False,'shape':"

START_TEST(hostile_headers_are_refused_with_words)
{
    header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 8, NULL);
    header("{\"shape\":(2,1),\"fortran_order\":True,\"descr\":\"=f4\"}", 8, NULL);
    header(F4 "()}", 4, NULL);
    header(F4 "(0,9000000000000000000)}", 0, NULL);
    header(F4 "(2,)}", 7, "got 7 bytes of data; expected 8");
    header(F4 "(2,)}", 9, "got 9 bytes of data; expected 8");
    header(F4 "(4294967296,4294967296,4)}", 8, "shape: too large, its product overflows");
    header(F4 "(4294967296,1073741824)}", 8, "shape: too large, its product overflows");
    header(F4 "(99999999999999999999,)}", 8, "too large");
    header(F4 "(-2,)}", 8, "not an integer >= 0");
    header(F4 "(2.0,)}", 8, "comma: missing in the shape");
    header(F4 "(2)}", 8, "comma: missing in the shape");
    header(F4 "(2 2)}", 16, "comma: missing in the shape");
    header(F4 "(,)}", 4, "not an integer >= 0");
    header(F4 "[2]}", 8, "shape: not a tuple; expected (");
    header(F4 "(2,", 8, "not an integer >= 0");
    header(F4 "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 4,
           "too many dimensions; expected at most 16");
    header(F4 "(2,)} x", 8, "text after the dictionary: unexpected");
    header(F4 "(2,),'shape':(2,)}", 8, "key: occurs twice");
    header(F4 "(2,),'more':(2,)}", 8, "unknown key, got \"more\"");
    header(F4 "(2,) 'descr':'<f4'}", 8, "comma: missing");
    header(F4 "(2,)", 8, "comma: missing");
    header("{'descr':'<f4','shape':(2,)}", 8, "descr, fortran_order or shape: missing");
    header("{'descr' '<f4'}", 8, "colon: missing");
    header("{'descr':'<f4','fortran_order':0,'shape':(2,)}", 8, "expected True or False");
    header("{'descr':<f4}", 8, "string: missing; expected a string in quotes");
    header("{'descr':'<f4}", 8, "string: not terminated");
    header("{'de\\'scr':'<f4'}", 8, "a backslash");
    header("{'descr':[('a','<f4')],'fortran_order':False,'shape':(2,)}", 8,
           "wrong dtype, got records");
    header("[]", 0, "not a dictionary; expected {");
    header("", 2, "not a dictionary; expected {");
    static const char *const types[] = {
        "|O", "<f3", "f4", "|f4", "<U4", "<M8[s]", "", "<", "<f16"
    };
    for (int64_t i = 0; i < tn__countof(types); i++) {
        char text[128], words[64];
        tn_snprint(text, sizeof text, "{'descr':'%s','fortran_order':False,'shape':(1,)}",
                   types[i]);
        tn_snprint(words, sizeof words, "unknown dtype, got %q", types[i]);
        header(text, 8, words);
    }
    judge("magic", "\x93NUMPX\1\0\2\0{}", 12, "expected that of an npy file");
    judge("version", "\x93NUMPY\4\0\2\0{}", 12, "npy version, got 4.0; expected 1.0, 2.0 or 3.0");
    judge("minor", "\x93NUMPY\1\1\2\0{}", 12, "npy version, got 1.1");
    judge("short", "\x93NUMPY\1\0\3\0{}", 12,
          "truncated, got 2 bytes after the first 10; expected a header of 3");
    judge("long", "\x93NUMPY\2\0\xff\xff\xff\xff", 12, "expected a header of 4294967295");
    char *large = calloc(1, 10 + 10001);
    memcpy(large, "\x93NUMPY\1\0\x11\x27", 10);
    judge("large", large, 10 + 10001, "npy header: too large, got 10001 bytes");
    free(large);
    TN_PROVES("SER-007"); /* "|O" is the type of pickled objects */
}
END_TEST

START_TEST(a_file_cut_at_every_length_or_changed_at_every_byte_is_an_error_or_loads)
{
    cut_and_change("npy", FILES "matrix.npy");
    cut_and_change("npy", FILES "columns.npy");
    cut_and_change("npy", FILES "complex-big.npy");
    TN_PROVES("SER-005");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        files_that_numpy_wrote_read_to_the_bit,
        what_is_written_is_the_file_that_numpy_has_read,
        what_npy_cannot_hold_is_refused_and_nothing_is_written,
        hostile_headers_are_refused_with_words,
        a_file_cut_at_every_length_or_changed_at_every_byte_is_an_error_or_loads,
        NULL,
    };
    return suite_run("npy", tests);
}
