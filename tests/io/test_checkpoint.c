/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: storages that are shared, strides, and files that are cut or changed in every place.
 */
#include "lib/io/private.h"
#include "tests/io/states.h"
#include "tests/io/checkpoint_sum.h"

#include <tenon/tenon.h>

START_TEST(views_of_one_storage_are_views_of_one_storage_again)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = tn_state_new();
    static const float values[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
    tn_tensor *all = tn_tensor_from(values, TN_F32, TN_SHAPE(3, 4));
    tn_tensor *turned = tn_tensor_as_strided(all, TN_SHAPE(4, 3), TN_INTS(1, 4), 0);
    tn_tensor *part = tn_tensor_as_strided(all, TN_SHAPE(2), TN_INTS(5), 2);
    tn_tensor *spread = tn_tensor_as_strided(all, TN_SHAPE(3), TN_INTS(0), 7);
    tn_state_set(state, "turned", turned);
    tn_state_set(state, "part", part);
    tn_state_set(state, "other", tn_tensor_full(TN_SHAPE(2), 1, TN_I64, NULL));
    tn_state_set(state, "spread", spread);
    tn_state_set(state, "as bytes",
                 tn_tensor_over(all, TN_U8, TN_SHAPE(4), NULL, 4)); /* the second element's */
    saved(state, "v.checkpoint");
    for (uint32_t flags = 0; flags < 2; flags++) {
        tn_state *got = loaded_as("v.checkpoint", flags);
        expect_same_state(state, got);
        tn_tensor *a = entry(got, "turned");
        ck_assert(tn_tensor_shares_storage(a, entry(got, "part")));
        ck_assert(tn_tensor_shares_storage(a, entry(got, "as bytes")));
        ck_assert(tn_tensor_shares_storage(a, entry(got, "spread")));
        ck_assert(!tn_tensor_shares_storage(a, entry(got, "other")));
        ck_assert_int_eq(tn_tensor_strides(a).at[0], 1);
        ck_assert_int_eq(tn_tensor_strides(a).at[1], 4);
        ck_assert_int_eq(tn_tensor_offset(entry(got, "part")), 2);
        ck_assert_int_eq(tn_tensor_strides(entry(got, "part")).at[0], 5);
        /* Writing through one is seen through the other: element 7 is in both. */
        ck_assert_ptr_nonnull(tn_fill_(entry(got, "part"), 99));
        ck_assert_double_eq(tn_item(tn_select(entry(got, "spread"), 0, 2)), 99);
        /* The whole storage is kept. */
        ck_assert_uint_eq(tn_tensor_storage_size(a), sizeof values);
        tn_state_drop(got);
    }
    TN_PROVES("SER-002");
    tn_state_drop(state);
    leave_folder();
}
END_TEST

/* Padding has no checksum; it must be zero. */
START_TEST(a_checkpoint_cut_or_changed_anywhere_is_refused)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = sample(true);
    saved(state, "c.checkpoint");
    size_t size;
    char *bytes = slurp("c.checkpoint", &size);
    ck_assert_uint_gt(size, 500);
    for (size_t cut = 0; cut < size; cut++) {
        char *part = malloc(cut > 0 ? cut : 1);
        memcpy(part, bytes, cut);
        tn_state *got = tn_state_new();
        ck_assert_int_ne(load_memory_as("checkpoint", part, cut, got), TN_OK);
        ck_assert(tn_failed());
        tn_error_clear();
        tn_state_drop(got);
        free(part);
    }
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
            tn_state *got = tn_state_new();
            ck_assert_msg(load_memory_as("checkpoint", bytes, size, got) != TN_OK, "bit %d of %zu",
                          bit, i);
            ck_assert(tn_failed());
            tn_error_clear();
            tn_state_drop(got);
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
        }
    TN_PROVES("SER-005");
    free(bytes);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

/* ---- files whose sums are right and whose contents are not ----------------------------------- */

START_TEST(the_sum_is_xxh64)
{
    ck_assert_uint_eq(sum_of((const unsigned char *)"", 0), UINT64_C(0xEF46DB3751D8E999));
    ck_assert_uint_eq(sum_of((const unsigned char *)"abc", 3), UINT64_C(0x44BC2CF5AD770999));
}
END_TEST

START_TEST(a_header_with_any_byte_changed_and_its_sum_put_right_does_no_harm)
{
    TN_SCOPE;
    static const unsigned char changes[] = { 0x01, 0x02, 0x10, 0x80, 0xff };
    in_folder();
    tn_state *state = sample(true);
    saved(state, "h.checkpoint");
    size_t size;
    char *bytes = slurp("h.checkpoint", &size);
    uint64_t length, sum;
    memcpy(&length, bytes + 16, 8);
    memcpy(&sum, bytes + 24, 8);
    ck_assert_uint_eq(sum, sum_of((unsigned char *)bytes + 32, (size_t)length));
    int refused = 0;
    for (size_t i = 0; i < length * sizeof changes; i++) {
        char *at = &bytes[32 + i / sizeof changes], before = *at;
        *at = (char)((unsigned char)before ^ changes[i % sizeof changes]);
        sum = sum_of((unsigned char *)bytes + 32, (size_t)length);
        memcpy(bytes + 24, &sum, 8);
        tn_state *got = tn_state_new();
        if (load_memory_as("checkpoint", bytes, size, got) == TN_OK) {
            for (int64_t k = 0; k < tn_state_count(got); k++)
                ck_assert_ptr_nonnull(tn_state_name(got, k));
        } else {
            ck_assert(tn_failed());
            refused++;
        }
        tn_error_clear();
        tn_state_drop(got);
        *at = before;
    }
    ck_assert_int_gt(refused, 100);
    free(bytes);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

/* ---- bools ----------------------------------------------------------------------------------- */

/* A file of one storage with its bytes changed and the sums put right. */
static void put_bytes(const char *path, const unsigned char *from, size_t count)
{
    size_t size;
    unsigned char *bytes = (unsigned char *)slurp(path, &size);
    uint64_t length, rows, sum;
    memcpy(&length, bytes + 16, 8);
    memcpy(&rows, bytes + 32, 8);
    memcpy(bytes + 32 + length, from, count);
    sum = sum_of(bytes + 32 + length, count);
    memcpy(bytes + 32 + rows + 24, &sum, 8); /* after the count, the place and the size */
    sum = sum_of(bytes + 32, (size_t)length);
    memcpy(bytes + 24, &sum, 8);
    FILE *file = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
    free(bytes);
}

START_TEST(bytes_of_a_bool_other_than_0_and_1_are_refused)
{
    static const struct {
        int64_t shape[2], strides[2], offset;
        unsigned char bytes[12];
        bool right;
    } cases[] = {
        { { 3, 4 }, { 4, 1 }, 0, { 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0 }, true },
        { { 3, 4 }, { 4, 1 }, 0, { 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 2 }, false },
        { { 3, 4 }, { 4, 1 }, 0, { 255, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0 }, false },
        { { 3, 2 }, { 4, 1 }, 1, { 9, 1, 1, 9, 9, 0, 0, 9, 9, 1, 0, 9 }, true }, /* of others */
        { { 3, 2 }, { 4, 1 }, 1, { 9, 1, 1, 9, 9, 0, 3, 9, 9, 1, 0, 9 }, false },
        { { 2, 3 }, { 1, 4 }, 1, { 9, 1, 1, 9, 9, 0, 0, 9, 9, 1, 128, 9 }, false },
        { { 1000000, 1000000 }, { 0, 0 }, 5, { 9, 9, 9, 9, 9, 1, 9, 9, 9, 9, 9, 9 }, true },
        { { 1000000, 1000000 }, { 0, 0 }, 5, { 9, 9, 9, 9, 9, 4, 9, 9, 9, 9, 9, 9 }, false },
        { { 4, 4 }, { 1, 1 }, 2, { 9, 9, 1, 1, 0, 0, 1, 1, 0, 9, 9, 9 }, true },
        { { 4, 4 }, { 1, 1 }, 2, { 9, 9, 1, 1, 0, 0, 1, 1, 5, 9, 9, 9 }, false },
        { { 0, 4 }, { 4, 1 }, 0, { 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9 }, true },
    };
    static const unsigned char zeros[12];
    in_folder();
    for (int i = 0; i < tn__countof(cases); i++) {
        TN_SCOPE;
        tn_tensor *blank = tn_tensor_from(zeros, TN_U8, TN_SHAPE(12));
        tn_tensor *raw = tn_tensor_from(cases[i].bytes, TN_U8, TN_SHAPE(12));
        tn_ints shape = { cases[i].shape, 2 };
        for (int saving = 0; saving < 2; saving++) {
            tn_state *state = tn_state_new();
            tn_state_set(state, "x",
                         tn_tensor_over(saving ? raw : blank, TN_BOOL, shape, cases[i].strides,
                                        cases[i].offset));
            tn_status status = tn_state_save(state, "b.checkpoint");
            tn_state_drop(state);
            if (saving && !cases[i].right) {
                ck_assert_int_eq(status, TN_ERR_VALUE);
                expect_failure(TN_ERR_VALUE, "wrong byte");
                continue;
            }
            ck_assert_msg(status == TN_OK, "%s", tn_error_text());
            put_bytes("b.checkpoint", cases[i].bytes, 12);
            for (uint32_t flags = 0; flags < 2; flags++) {
                tn_state *got = tn_state_load_as("b.checkpoint", flags);
                ck_assert_msg((got != NULL) == cases[i].right, "case %d", i);
                tn_state_drop(got);
                if (!cases[i].right)
                    expect_failure(TN_ERR_FORMAT, "wrong byte");
            }
        }
    }
    leave_folder();
}
END_TEST

/* Other formats write one byte for each element, and write it as 0 or 1. */
START_TEST(files_of_other_formats_have_bools_of_0_and_1)
{
    static const unsigned char odd[] = { 0, 1, 2, 255, 128, 0 }, right[] = { 0, 1, 1, 1, 1, 0 };
    static const char *const paths[] = { "b.npy", "b.npz", "b.safetensors" };
    TN_SCOPE;
    in_folder();
    tn_tensor *raw = tn_tensor_from(odd, TN_U8, TN_SHAPE(6));
    for (int i = 0; i < (tn__file_format("x.safetensors") != NULL ? 3 : 2); i++) {
        tn_state *state = tn_state_new();
        unsigned char got[6];
        size_t size;
        tn_state_set(state, "arr_0", tn_tensor_over(raw, TN_BOOL, TN_SHAPE(6), NULL, 0));
        saved(state, paths[i]);
        char *bytes = slurp(paths[i], &size);
        ck_assert_ptr_nonnull(memmem(bytes, size, right, 6));
        ck_assert_ptr_null(memmem(bytes, size, odd, 6));
        free(bytes);
        tn_state_drop(state);
        state = loaded_as(paths[i], TN_FILE_MAP);
        ck_assert_int_eq(tn_tensor_copy_out(entry(state, "arr_0"), got, 6), TN_OK);
        ck_assert_mem_eq(got, right, 6);
        tn_state_drop(state);
    }
    leave_folder();
}
END_TEST

START_TEST(an_empty_state_is_a_file_too)
{
    in_folder();
    tn_state *state = tn_state_new();
    saved(state, "e.checkpoint");
    tn_state *got = loaded_as("e.checkpoint", TN_FILE_MAP);
    expect_same_state(state, got);
    tn_state_drop(got);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        views_of_one_storage_are_views_of_one_storage_again,
        a_checkpoint_cut_or_changed_anywhere_is_refused,
        the_sum_is_xxh64,
        a_header_with_any_byte_changed_and_its_sum_put_right_does_no_harm,
        bytes_of_a_bool_other_than_0_and_1_are_refused,
        files_of_other_formats_have_bools_of_0_and_1,
        an_empty_state_is_a_file_too,
        NULL,
    };
    return suite_run("checkpoint", tests);
}
