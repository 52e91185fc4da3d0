/* SPDX-License-Identifier: MIT
 *
 * npz and the archives below it: files that NumPy wrote (make_pytorch_npz.py), a file that it
 * reads, hostile archives. */
#include "tests/base/suite.h"

#include "tests/io/memory.h"
#include "tests/io/state_values.h"
#include "tests/spec/proves.h"

#include <unistd.h>

static void expect_arrays(const tn_state *state)
{
    ck_assert_str_eq(tn_state_name(state, 0), "x");
    ck_assert_str_eq(tn_state_name(state, 3), "none");
    EXPECT(state, "x", TN_F32, TN_SHAPE(2, 3), float, 0, 0.25f, 0.5f, 0.75f, 1, 1.25f);
    EXPECT(state, "größe.weight", TN_I32, TN_SHAPE(2), int32_t, -5, 66051);
    EXPECT(state, "columns", TN_I16, TN_SHAPE(2, 3, 2), int16_t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
           11);
    expect_tensor(state, "none", TN_F64, TN_SHAPE(0, 4), NULL, 0);
}

START_TEST(files_that_numpy_wrote_read_to_the_bit)
{
    tn_state *state = loaded(FILES "python.npz");
    ck_assert_int_eq(tn_state_count(state), 4);
    expect_arrays(state);
    tn_state_drop(state);
}
END_TEST

#ifdef TN_WITH_ZLIB
START_TEST(deflated_files_of_numpy_read_to_the_bit)
{
    tn_state *state = loaded(FILES "python-deflated.npz");
    ck_assert_int_eq(tn_state_count(state), 5);
    expect_arrays(state);
    tn_tensor *zeros = tensor_of(state, "zeros");
    ck_assert_int_eq(tn_tensor_numel(zeros), 100000);
    const double *values = tn_tensor_data(zeros);
    for (int64_t i = 0; i < 100000; i++)
        ck_assert(values[i] == 0.0);
    tn_state_drop(state);
}
END_TEST
#endif

START_TEST(what_is_written_is_the_file_that_numpy_has_read)
{
    char path[64];
    size_t size, wanted;
    tn_snprint(path, sizeof path, "npz-%d.npz", (int)getpid());
    tn_state *state = loaded(FILES "python.npz");
    ck_assert_msg(tn_state_save(state, path) == TN_OK, "%s", tn_error_text());
    tn_state_drop(state);
    state = loaded(path);
    ck_assert_int_eq(tn_state_count(state), 4);
    expect_arrays(state);
    tn_state_drop(state);
    char *ours = slurp(path, &size);
    if (getenv("TENON_TEST_WRITE_FILES") != NULL)
        ck_assert_int_eq(rename(path, FILES "tenon.npz"), 0);
    char *theirs = slurp(FILES "tenon.npz", &wanted);
    ck_assert_uint_eq(size, wanted);
    ck_assert_mem_eq(ours, theirs, size);
    free(ours);
    free(theirs);
    unlink(path);
}
END_TEST

START_TEST(an_empty_state_and_many_tensors_are_kept)
{
    TN_SCOPE;
    char name[24];
    tn_state *state = tn_state_new();
    ck_assert_int_eq(tn_state_save(state, "many.npz"), TN_OK);
    tn_state *again = loaded("many.npz");
    ck_assert_int_eq(tn_state_count(again), 0);
    tn_state_drop(again);
    /* More than 65535: the directory needs the numbers of zip64. */
    for (int i = 0; i < 70000; i++) {
        TN_SCOPE;
        tn_snprint(name, sizeof name, "layer.%d.weight", i);
        tn_state_set(state, name, tn_tensor_from(&i, TN_I32, TN_SCALAR_SHAPE));
    }
    ck_assert_msg(tn_state_save(state, "many.npz") == TN_OK, "%s", tn_error_text());
    again = loaded("many.npz");
    ck_assert_int_eq(tn_state_count(again), 70000);
    for (int i = 0; i < 70000; i += 6999) {
        tn_snprint(name, sizeof name, "layer.%d.weight", i);
        ck_assert_str_eq(tn_state_name(again, i), name);
        EXPECT(again, name, TN_I32, TN_SCALAR_SHAPE, int32_t, i);
    }
    tn_state_drop(again);
    tn_state_drop(state);
    unlink("many.npz");
}
END_TEST

START_TEST(what_npz_cannot_hold_is_refused_and_nothing_is_written)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    tn_state_set(state, "fine", tn_tensor_full(TN_SHAPE(1), 1, TN_F32, NULL));
    tn_state_set(state, "a", tn_tensor_full(TN_SHAPE(1), 1, TN_BF16, NULL));
    ck_assert_int_eq(tn_state_save(state, "not.npz"), TN_ERR_TYPE);
    expect_failure(
        TN_ERR_TYPE,
        "not.npz: tensor \"a\": wrong dtype, got bfloat16; expected one that npy can store");
    tn_state_set(state, "a", tn_tensor_empty(TN_SHAPE(1), TN_F32, tn_device_find("meta")));
    ck_assert_int_eq(tn_state_save(state, "not.npz"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "\"a\": no values to save, got a tensor on meta:0");
    tn_state_drop(state);
    state = tn_state_new();
    tn_state_set(state, "", tn_tensor_full(TN_SHAPE(1), 1, TN_F32, NULL));
    ck_assert_int_eq(tn_state_save(state, "not.npz"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "tensor: empty name");
    ck_assert_int_ne(access("not.npz", F_OK), 0);
    tn_state_drop(state);
    ck_assert_ptr_null(tn_state_load(FILES "refused-object.npz"));
    expect_failure(TN_ERR_FORMAT, "unknown dtype, got \"|O\"");
}
END_TEST

/* ---- hostile archives ------------------------------------------------------------------------ */

/* A file of NumPy with some bytes changed at the last occurrence of `mark`. */
static void judge(const char *file, const char *mark, size_t mark_size, size_t skip,
                  const char *bytes, size_t count, const char *words)
{
    size_t size, at = SIZE_MAX;
    char *all = slurp(file, &size);
    for (size_t i = 0; i + mark_size <= size; i++)
        if (memcmp(all + i, mark, mark_size) == 0)
            at = i;
    ck_assert(at != SIZE_MAX && at + skip + count <= size);
    memcpy(all + at + skip, bytes, count);
    tn_state *state = tn_state_new();
    tn_status status = load_memory_as("npz", all, size, state);
    ck_assert_msg(status == TN_ERR_FORMAT || status == TN_ERR_REFUSED, "%s: %d %s", words,
                  (int)status, tn_error_text());
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in \"%s\"", words,
                  tn_error_text());
    tn_error_clear();
    tn_state_drop(state);
    free(all);
}

#define JUDGE(mark, skip, bytes, words)                                                            \
    judge(FILES "python.npz", mark, sizeof(mark) - 1, skip, bytes, sizeof(bytes) - 1, words)
#define END "PK\5\6"
#define ENTRY "PK\1\2"
#define LOCAL "PK\3\4"

START_TEST(hostile_archives_are_refused_with_words)
{
    JUDGE(END, 0, "PK\5\7", "directory: missing at the end");
    JUDGE(END, 4, "\1", "volumes: several");
    JUDGE(END, 10, "\5", "volumes: several");
    JUDGE(END, 8, "\5\0\5", "directory: wrong offset");
    JUDGE(END, 8, "\3\0\3", "directory: longer than the entries in it");
    JUDGE(END, 8, "\xff\xff\xff\xff", "directory: wrong offset");
    JUDGE(END, 16, "\xff\xff\xff\x7f", "directory: wrong offset");
    JUDGE(END, 12, "\1", "directory: wrong offset");
    JUDGE(END, 20, "\1", "directory: missing at the end");
    JUDGE(ENTRY, 0, "PK\1\3", "directory: malformed");
    JUDGE(ENTRY, 8, "\1", "encrypted; expected no encryption");
    JUDGE(ENTRY, 10, "\14", "compression method, got 12");
    JUDGE(ENTRY, 20, "\1", "size: impossible");
    JUDGE(ENTRY, 20, "\xff\xff\xff\x7f", "bytes: overlap another member or the directory");
    JUDGE(ENTRY, 20, "\xff\xff\xff\xff", "zip64 field: missing");
    JUDGE(ENTRY, 28, "\0", "empty or contains a NUL");
    JUDGE(ENTRY, 28, "\xff\xff", "directory: truncated");
    JUDGE(ENTRY, 46, "n\0", "empty or contains a NUL");
    JUDGE(ENTRY, 42, "\0\0\0\0", "bytes: overlap another member");
    JUDGE(ENTRY, 46, "nona", "local header: differs");
    JUDGE(LOCAL, 0, "PK\3\5", "local header: differs");
    JUDGE(LOCAL, 26, "\7", "local header: differs");
    JUDGE(LOCAL, 28, "\xff\xff", "bytes: overlap the next member");
    JUDGE(ENTRY, 16, "\1\2\3\4", "expected 04030201: the file is damaged");
    JUDGE("none.npy", 7, "z", /* in the directory */
          "not an array; expected a name that ends in .npy");
}
END_TEST

START_TEST(a_file_cut_at_every_length_or_changed_at_every_byte_is_an_error_or_loads)
{
    cut_and_change("npz", FILES "python.npz");
#ifdef TN_WITH_ZLIB
    cut_and_change("npz", FILES "python-deflated-small.npz");
    cut("npz", FILES "python-deflated.npz"); /* with 800 KB of zeros: a load takes a millisecond */
    change("npz", FILES "python-deflated.npz", "\x20");
#endif
    change_to_anything("npz", FILES "refused-object.npz");
    TN_PROVES("SER-005");
}
END_TEST

START_TEST(each_allocation_that_fails_is_an_error_and_nothing_is_left)
{
    fail_allocations(FILES "python.npz");
#ifdef TN_WITH_ZLIB
    fail_allocations(FILES "python-deflated.npz");
#endif
    tn_state *state = loaded(FILES "python.npz");
    uint64_t failures = 0;
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_status status = tn_state_save(state, "failing.npz");
        bool reached = tn__memory_fail(0) >= n;
        ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "%s", tn_error_text());
        ck_assert(status == TN_OK || access("failing.npz", F_OK) != 0);
        failures += status != TN_OK;
        tn_error_clear();
        unlink("failing.npz");
        if (!reached)
            break;
    }
    ck_assert_uint_gt(failures, 5);
    tn_state_drop(state);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        files_that_numpy_wrote_read_to_the_bit,
#ifdef TN_WITH_ZLIB
        deflated_files_of_numpy_read_to_the_bit,
#endif
        what_is_written_is_the_file_that_numpy_has_read,
        an_empty_state_and_many_tensors_are_kept,
        what_npz_cannot_hold_is_refused_and_nothing_is_written,
        hostile_archives_are_refused_with_words,
        a_file_cut_at_every_length_or_changed_at_every_byte_is_an_error_or_loads,
        each_allocation_that_fails_is_an_error_and_nothing_is_left,
        NULL,
    };
    return suite_run("npz", tests);
}
