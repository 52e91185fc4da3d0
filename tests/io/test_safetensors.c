/* SPDX-License-Identifier: MIT
 *
 * safetensors: files of the reference library, files that it reads, hostile files. */
#include "tests/base/suite.h"

#include "tests/io/memory.h"
#include "tests/spec/proves.h"

#include <math.h>
#include <unistd.h>

static const char *const names[] = { "0.weight", "0.bias", "double", "half",         "brain",
                                     "long",     "int",    "short",  "byte",         "char",
                                     "bool",     "scalar", "empty",  "größe \"%s\"", "odd" };

static tn_state *loaded(const char *path)
{
    tn_state *state = tn_state_load(path);
    ck_assert_msg(state != NULL, "%s", tn_error_text());
    return state;
}

static void expect(const tn_state *state, const char *name, tn_dtype dtype, tn_ints shape,
                   const void *bytes, size_t size)
{
    char got[64];
    int64_t i = tn_state_find(state, name);
    ck_assert_msg(i >= 0, "%s", name);
    tn_tensor *tensor = tn_state_tensor(state, i);
    ck_assert_int_eq(tn_tensor_dtype(tensor), dtype);
    ck_assert_int_eq(tn_tensor_ndim(tensor), shape.count);
    for (int64_t d = 0; d < shape.count; d++)
        ck_assert_int_eq(tn_tensor_size(tensor, d), shape.at[d]);
    ck_assert_int_eq(tn_tensor_copy_out(tensor, got, size), TN_OK);
    if (size > 0)
        ck_assert_msg(memcmp(got, bytes, size) == 0, "%s", name);
}

#define EXPECT(name, dtype, shape, type, ...)                                                      \
    do {                                                                                           \
        type values_[] = { __VA_ARGS__ };                                                          \
        expect(state, name, dtype, shape, values_, sizeof values_);                                \
    } while (0)

static void expect_all(const tn_state *state)
{
    ck_assert_int_eq(tn_state_count(state), tn__countof(names));
    EXPECT("0.weight", TN_F32, TN_SHAPE(2, 3), float, 0, 0.25f, 0.5f, 0.75f, 1, 1.25f);
    EXPECT("0.bias", TN_F32, TN_SHAPE(2), float, -1, 1);
    EXPECT("double", TN_F64, TN_SHAPE(2, 1), double, 0.1, 1e300);
    EXPECT("half", TN_F16, TN_SHAPE(3), uint16_t, 0x3c00, 0xb800, 0x7bff);
    EXPECT("brain", TN_BF16, TN_SHAPE(3), uint16_t, 0x3f80, 0xbf00, 0x7f62);
    EXPECT("long", TN_I64, TN_SHAPE(2), int64_t, INT64_MIN, INT64_MAX);
    EXPECT("int", TN_I32, TN_SHAPE(2), int32_t, -5, 7);
    EXPECT("short", TN_I16, TN_SHAPE(1), int16_t, -300);
    EXPECT("byte", TN_U8, TN_SHAPE(2), uint8_t, 0, 255);
    EXPECT("char", TN_I8, TN_SHAPE(1), int8_t, -128);
    EXPECT("bool", TN_BOOL, TN_SHAPE(3), uint8_t, 1, 0, 1);
    EXPECT("scalar", TN_F32, TN_SCALAR_SHAPE, float, 3.25f);
    expect(state, "empty", TN_F32, TN_SHAPE(0, 4), NULL, 0);
    EXPECT("größe \"%s\"", TN_F32, TN_SHAPE(1), float, 9);
    EXPECT("odd", TN_F32, TN_SHAPE(5), uint32_t, 0x3fc00000, 0x80000000, 0x7f800000, 1, 0x7fc00000);
    ck_assert_str_eq(tn_state_meta(state, "format"), "pt");
    ck_assert_str_eq(tn_state_meta(state, "note"), "a b\n%d");
    ck_assert_int_eq(tn_state_meta_count(state), 2);
}

START_TEST(a_file_of_the_reference_library_reads_to_the_bit)
{
    tn_state *state = loaded(TN_TEST_SRCDIR "/tests/io/files/python.safetensors");
    expect_all(state);
    tn_state_drop(state);
}
END_TEST

START_TEST(what_is_written_is_the_file_that_the_reference_library_has_read_ser_001)
{
    tn_state *from = loaded(TN_TEST_SRCDIR "/tests/io/files/python.safetensors"),
             *ordered = tn_state_new();
    for (int64_t i = 0; i < tn__countof(names); i++)
        tn_state_set(ordered, names[i], tn_state_tensor(from, tn_state_find(from, names[i])));
    tn_state_set_meta(ordered, "format", "pt");
    tn_state_set_meta(ordered, "note", tn_state_meta(from, "note"));
    char path[64];
    tn_snprint(path, sizeof path, "written-%d.safetensors", (int)getpid());
    ck_assert_msg(tn_state_save(ordered, path) == TN_OK, "%s", tn_error_text());
    tn_state *again = loaded(path);
    expect_all(again);
    for (int64_t i = 0; i < tn__countof(names); i++)
        ck_assert_str_eq(tn_state_name(again, i), names[i]); /* SD-012: the order is kept */
    size_t size, wanted;
    char *bytes = slurp(path, &size);
    ck_assert_int_eq(bytes[0] % 8, 0);
    if (getenv("TENON_TEST_WRITE_FILES") != NULL)
        ck_assert_int_eq(rename(path, TN_TEST_SRCDIR "/tests/io/files/tenon.safetensors"), 0);
    char *known = slurp(TN_TEST_SRCDIR "/tests/io/files/tenon.safetensors", &wanted);
    ck_assert_uint_eq(size, wanted);
    ck_assert_mem_eq(bytes, known, size);
    free(bytes);
    free(known);
    unlink(path);
    tn_state_drop(again);
    tn_state_drop(ordered);
    tn_state_drop(from);
}
END_TEST

START_TEST(every_bit_of_a_value_survives_ser_001)
{
    TN_SCOPE;
    static const uint32_t bits[5] = { 0x7fc12345, 0xffa00001, 0x80000000, 0x00000001, 0x807fffff };
    static const uint64_t wide[3] = { UINT64_C(0x7ff0000000000001), UINT64_C(0xfff8dead0000beef),
                                      UINT64_C(0x8000000000000000) };
    tn_state *state = tn_state_new();
    tn_state_set(state, "b", tn_tensor_from(bits, TN_F32, TN_SHAPE(5)));
    tn_state_set(state, "a", tn_tensor_from(wide, TN_F64, TN_SHAPE(3, 1)));
    tn_state_set(state, "none", tn_tensor_empty(TN_SHAPE(3, 0), TN_F32, NULL));
    tn_state_set(state, "one", tn_tensor_from(bits, TN_F32, TN_SCALAR_SHAPE));
    tn_tensor_set_requires_grad(tn_state_tensor(state, 0), true);
    ck_assert_msg(tn_state_save(state, "bits.safetensors") == TN_OK, "%s", tn_error_text());
    tn_state_drop(state);
    state = loaded("bits.safetensors");
    unlink("bits.safetensors");
    static const char *const order[] = { "b", "a", "none", "one" };
    ck_assert_int_eq(tn_state_count(state), 4);
    for (int64_t i = 0; i < 4; i++) {
        ck_assert_str_eq(tn_state_name(state, i), order[i]);
        ck_assert(tn_tensor_is_contiguous(tn_state_tensor(state, i)));
        ck_assert(!tn_tensor_requires_grad(tn_state_tensor(state, i)));
    }
    expect(state, "b", TN_F32, TN_SHAPE(5), bits, sizeof bits);
    expect(state, "a", TN_F64, TN_SHAPE(3, 1), wide, sizeof wide);
    expect(state, "none", TN_F32, TN_SHAPE(3, 0), NULL, 0);
    expect(state, "one", TN_F32, TN_SCALAR_SHAPE, bits, sizeof *bits);
    tn_state_drop(state);
    TN_PROVES("SER-001", "SER-006");
}
END_TEST

START_TEST(every_type_of_element_survives_float8_among_them)
{
    TN_SCOPE;
    static const tn_dtype types[] = { TN_BOOL, TN_U8,  TN_U16,     TN_U32,    TN_U64,  TN_I8,
                                      TN_I16,  TN_I32, TN_I64,     TN_F16,    TN_BF16, TN_F32,
                                      TN_F64,  TN_C64, TN_F8_E4M3, TN_F8_E5M2 };
    unsigned char bytes[16];
    tn_state *state = tn_state_new();
    for (int64_t i = 0; i < tn__countof(types); i++) {
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (unsigned char)(types[i] == TN_BOOL ? k % 2 : 37 * k + 11 * (size_t)i);
        tn_tensor *x = tn_tensor_from(bytes, types[i], TN_SHAPE(2));
        ck_assert_int_eq(tn_state_set(state, tn_dtype_name(types[i]), x), TN_OK);
    }
    ck_assert_msg(tn_state_save(state, "types.safetensors") == TN_OK, "%s", tn_error_text());
    tn_state_drop(state);
    state = loaded("types.safetensors");
    unlink("types.safetensors");
    ck_assert_int_eq(tn_state_count(state), tn__countof(types));
    for (int64_t i = 0; i < tn__countof(types); i++) {
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (unsigned char)(types[i] == TN_BOOL ? k % 2 : 37 * k + 11 * (size_t)i);
        expect(state, tn_dtype_name(types[i]), types[i], TN_SHAPE(2), bytes,
               2 * tn_dtype_size(types[i]));
    }
    tn_state_drop(state);
}
END_TEST

START_TEST(strided_tensors_are_written_in_row_major_order)
{
    TN_SCOPE;
    static const float values[6] = { 1, 2, 3, 4, 5, 6 };
    tn_state *state = tn_state_new();
    tn_tensor *t = tn_tensor_from(values, TN_F32, TN_SHAPE(2, 3));
    tn_state_set(state, "t", tn_tensor_as_strided(t, TN_SHAPE(3, 2), TN_INTS(1, 3), 0));
    tn_state_set(state, "tail", tn_tensor_as_strided(t, TN_SHAPE(2), TN_INTS(1), 4));
    ck_assert_msg(tn_state_save(state, "strided.safetensors") == TN_OK, "%s", tn_error_text());
    tn_state_drop(state);
    state = loaded("strided.safetensors");
    EXPECT("t", TN_F32, TN_SHAPE(3, 2), float, 1, 4, 2, 5, 3, 6);
    EXPECT("tail", TN_F32, TN_SHAPE(2), float, 5, 6);
    unlink("strided.safetensors");
    tn_state_drop(state);
}
END_TEST

START_TEST(a_network_answers_the_same_from_its_file_ser_008)
{
    TN_SCOPE;
    tn_module *a = tn_module_new("Sequential(Linear(3, 4), ReLU(), Linear(4, 2))");
    tn_module *b = tn_module_new("Sequential(Linear(3, 4), ReLU(), Linear(4, 2))");
    tn_module *c = tn_module_new("Sequential(Linear(3, 4), ReLU(), Linear(4, 3))");
    float first[2], second[2];
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 3), 0.5, TN_F32, NULL);
    ck_assert_int_eq(tn_module_save(a, "network.safetensors"), TN_OK);
    ck_assert_msg(tn_module_load(b, "network.safetensors") == TN_OK, "%s", tn_error_text());
    tn_tensor_copy_out(tn_module_call(a, x), first, sizeof first);
    tn_tensor_copy_out(tn_module_call(b, x), second, sizeof second);
    ck_assert_mem_eq(first, second, sizeof first);
    ck_assert_int_eq(tn_module_load(c, "network.safetensors"), TN_ERR_RUNTIME);
    expect_failure(
        TN_ERR_RUNTIME,
        "network.safetensors: Error(s) in loading state_dict for Sequential:\n\tsize mismatch for "
        "2.weight");
    unlink("network.safetensors");
    tn_module_drop(a);
    tn_module_drop(b);
    tn_module_drop(c);
}
END_TEST

START_TEST(what_the_format_cannot_hold_is_refused_with_the_name)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    tn_state_set(state, "z", tn_tensor_empty(TN_SHAPE(1), TN_C128, NULL));
    ck_assert_int_eq(tn_state_save(state, "not.safetensors"), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "not.safetensors: tensor \"z\": wrong dtype, got complex128");
    tn_tensor *one = tn_tensor_full(TN_SHAPE(1), 1, TN_F32, NULL);
    tn_state_set(state, "z", one);
    tn_state_set(state, "__metadata__", one);
    ck_assert_int_eq(tn_state_save(state, "not.safetensors"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "__metadata__");
    tn_state_drop(state);
    state = tn_state_new();
    tn_state_set(state, "bad\xff", one);
    ck_assert_int_eq(tn_state_save(state, "not.safetensors"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "not UTF-8, got \"bad");
    tn_state_drop(state);
    state = tn_state_new();
    tn_state_set(state, "nothing", tn_tensor_empty(TN_SHAPE(1), TN_F32, tn_device_find("meta")));
    ck_assert_int_eq(tn_state_save(state, "not.safetensors"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "\"nothing\": no values to save, got a tensor on meta:0");
    ck_assert_int_ne(access("not.safetensors", F_OK), 0);
    tn_state_drop(state);
}
END_TEST

/* ---- hostile files, read from memory --------------------------------------------------------- */

#define load_memory(bytes, size, state) load_memory_as("safetensors", bytes, size, state)

static void refuse(const char *header, size_t data, const char *words)
{
    size_t length = strlen(header);
    char *bytes = calloc(1, 8 + length + data);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> (8 * i));
    memcpy(bytes + 8, header, length);
    tn_state *state = tn_state_new();
    tn_status status = load_memory(bytes, 8 + length + data, state);
    if (words == NULL) {
        ck_assert_msg(status == TN_OK, "%s: %s", header, tn_error_text());
    } else {
        ck_assert_msg(status == TN_ERR_FORMAT, "%s: %s", header, tn_error_text());
        ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s: \"%s\" is not in \"%s\"", header,
                      words, tn_error_text());
    }
    tn_error_clear();
    tn_state_drop(state);
    free(bytes);
}

START_TEST(hostile_headers_are_refused_with_words)
{
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, NULL);
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ", 8, NULL);
    refuse("{}", 0, NULL);
    refuse("{\"__metadata__\":{\"k\":\"v\"}}", 0, NULL);
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7,
           "got [0, 8]; expected [begin, end] with begin <= end, within the 7 bytes of data");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9,
           "tensors: wrong size, got 8 bytes; expected all 9 bytes");
    refuse("{}", 3, "tensors: wrong size, got 0 bytes; expected all 3 bytes");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
           "data: gap before the data");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
           6, "overlap");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
           "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
           8, "duplicate");
    refuse("{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
           "dtype: unknown, got \"F31\"");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
           "wrong size, got 8 bytes; expected 12");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,8]}}",
           8, "overflows");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8,
           "not an integer >= 0");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8,
           "not an integer >= 0");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}", 8,
           "integer");
    refuse(("{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"
            "\"data_offsets\":[0,1]}}"),
           1, "too many dimensions, got 17");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
           "out of range, got [8, 0]; expected [begin, end] with begin <= end, within");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8,
           "data_offsets: wrong elements");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8,
           "shape: wrong type, got an integer; expected a list");
    refuse("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype: wrong type, got nothing");
    refuse("{\"a\":7}", 0, "entry: wrong type, got an integer; expected an object");
    refuse("{\"__metadata__\":{\"k\":7}}", 0, "wrong type, got an integer; expected a string");
    refuse("{\"__metadata__\":7}", 0,
           "__metadata__: wrong type, got an integer; expected an object");
    refuse("[]", 0, "wrong type, got a list; expected an object");
    refuse(" {}", 0, "wrong first byte, got 20; expected {");
    refuse("{\"a\":", 0, "safetensors header, byte ");
    refuse("{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
           "safetensors header, byte ");
    refuse("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
           "unable to decode byte 0xff");
    char deep[20001];
    memset(deep, '[', 20000);
    deep[20000] = '\0';
    refuse(deep, 0, "depth");
    tn_state *state = tn_state_new();
    const char huge[16] = "\x01\xe1\xf5\x05\0\0\0\0{}";
    ck_assert_int_eq(load_memory(huge, sizeof huge, state), TN_ERR_FORMAT);
    expect_failure(TN_ERR_FORMAT, "safetensors header: too large, got 100000001 bytes");
    ck_assert_int_eq(load_memory("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, state), TN_ERR_FORMAT);
    tn_error_clear();
    ck_assert_int_eq(load_memory("\3\0\0\0\0\0\0\0{}", 10, state), TN_ERR_FORMAT);
    expect_failure(TN_ERR_FORMAT,
                   "truncated, got 2 bytes after the first 8; expected a header of 3");
    tn_state_drop(state);
}
END_TEST

/* A tensor without elements may be listed before or after the one that ends where it is. */
START_TEST(tensors_without_elements_may_be_listed_anywhere)
{
    static const char *const headers[] = {
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
        "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}",
        "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
    };
    for (int64_t i = 0; i < tn__countof(headers); i++) {
        char bytes[200] = "";
        size_t length = strlen(headers[i]);
        bytes[0] = (char)length;
        memcpy(bytes + 8, headers[i], length);
        memcpy(bytes + 8 + length, "\5\6", 2);
        tn_state *state = tn_state_new();
        ck_assert_msg(load_memory(bytes, 8 + length + 2, state) == TN_OK, "%s: %s", headers[i],
                      tn_error_text());
        EXPECT("b", TN_U8, TN_SHAPE(2), uint8_t, 5, 6);
        ck_assert_int_eq(tn_state_count(state), 2);
        tn_state_drop(state);
    }
}
END_TEST

START_TEST(bools_of_a_file_become_zero_or_one)
{
    const char *header = "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}";
    char bytes[80] = "";
    size_t length = strlen(header);
    bytes[0] = (char)length;
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, "\0\7\xff", 3);
    tn_state *state = tn_state_new();
    ck_assert_msg(load_memory(bytes, 8 + length + 3, state) == TN_OK, "%s", tn_error_text());
    EXPECT("a", TN_BOOL, TN_SHAPE(3), uint8_t, 0, 1, 1);
    tn_state_drop(state);
}
END_TEST

START_TEST(a_file_cut_at_every_length_or_changed_at_every_byte_is_an_error_or_loads)
{
    cut_and_change("safetensors", TN_TEST_SRCDIR "/tests/io/files/python.safetensors");
}
END_TEST

static bool refuse_to_go_on(void *user, const char *what, uint64_t done, uint64_t total)
{
    ck_assert_str_eq(what, "reading bytes");
    ck_assert_uint_le(done, total);
    return ++*(int *)user < 3;
}

START_TEST(loading_reports_progress_and_can_be_cancelled)
{
    int asked = 0;
    tn_set_progress(refuse_to_go_on, &asked);
    ck_assert_ptr_null(tn_state_load(TN_TEST_SRCDIR "/tests/io/files/python.safetensors"));
    tn_set_progress(NULL, NULL);
    ck_assert_int_eq(asked, 3);
    ck_assert_int_eq(tn_error_code(), TN_ERR_CANCELLED);
    tn_error_clear();
    ck_assert_ptr_null(tn_state_load(TN_TEST_SRCDIR "/tests/io/files/nothing.safetensors"));
    expect_failure(TN_ERR_IO, "nothing.safetensors: cannot open: No such file");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_file_of_the_reference_library_reads_to_the_bit,
        what_is_written_is_the_file_that_the_reference_library_has_read_ser_001,
        every_bit_of_a_value_survives_ser_001,
        every_type_of_element_survives_float8_among_them,
        strided_tensors_are_written_in_row_major_order,
        a_network_answers_the_same_from_its_file_ser_008,
        what_the_format_cannot_hold_is_refused_with_the_name,
        hostile_headers_are_refused_with_words,
        tensors_without_elements_may_be_listed_anywhere,
        bools_of_a_file_become_zero_or_one,
        a_file_cut_at_every_length_or_changed_at_every_byte_is_an_error_or_loads,
        loading_reports_progress_and_can_be_cancelled,
        NULL,
    };
    return suite_run("safetensors", tests);
}
