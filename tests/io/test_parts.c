/* SPDX-License-Identifier: MIT
 *
 * Weights in several files with an index: how they are divided, that they are replaced as a whole,
 * indexes that nobody should follow. */
#include "tests/io/states.h"

#include <dirent.h>

#define INDEX "model.safetensors.index.json"

static void expect_files(const char *expected)
{
    struct dirent **list;
    char names[1024] = "";
    int count = scandir(".", &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (list[i]->d_name[0] != '.')
            strcat(strcat(names, list[i]->d_name), " ");
        free(list[i]);
    }
    free(list);
    ck_assert_str_eq(names, expected);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

/* Six tensors of 40 bytes each. */
static tn_state *six(double value)
{
    tn_state *state = tn_state_new();
    char name[8];
    for (int i = 0; i < 6; i++) {
        tn_snprint(name, sizeof name, "t%d", 5 - i);
        tn_state_set(state, name, tn_tensor_full(TN_SHAPE(10), value + i, TN_F32, NULL));
    }
    return state;
}

START_TEST(a_state_is_divided_and_put_together)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = six(0);
    ck_assert_msg(tn_state_save_parts(state, INDEX, 100) == TN_OK, "%s", tn_error_text());
    expect_files("model-00001-of-00003.safetensors model-00002-of-00003.safetensors "
                 "model-00003-of-00003.safetensors model.safetensors.index.json ");
    for (uint32_t flags = 0; flags < 2; flags++) {
        tn_state *got = loaded_as(INDEX, flags);
        expect_same_state(state, got);
        tn_state_drop(got);
    }
    tn_state *one = loaded_as("model-00002-of-00003.safetensors", 0);
    ck_assert_int_eq(tn_state_count(one), 2);
    ck_assert_str_eq(tn_state_name(one, 0), "t3");
    size_t size;
    char *text = slurp(INDEX, &size);
    text[size] = '\0';
    ck_assert_ptr_nonnull(strstr(text, "\"total_size\": 240"));
    ck_assert_ptr_nonnull(strstr(text, "\"t3\": \"model-00002-of-00003.safetensors\""));
    free(text);
    tn_state_drop(one);
    tn_state_drop(state);
    /* A tensor larger than a file may be has one of its own. */
    state = sample(true);
    ck_assert_int_eq(tn_state_save_parts(state, "rich.safetensors.index.json", 1), TN_OK);
    tn_state *got = loaded_as("rich.safetensors.index.json", 0);
    expect_same_state(state, got);
    ck_assert(tn_tensor_shares_storage(entry(got, "z.weight"), entry(got, "a.weight")));
    tn_state_drop(got);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

START_TEST(a_new_set_takes_the_old_ones_place_and_its_files_go)
{
    TN_SCOPE;
    in_folder();
    tn_state *old = six(0), *fresh = six(10);
    ck_assert_int_eq(tn_state_save_parts(old, INDEX, 120), TN_OK);
    expect_files("model-00001-of-00002.safetensors model-00002-of-00002.safetensors " INDEX " ");
    ck_assert_int_eq(tn_state_save_parts(fresh, INDEX, 120), TN_OK);
    expect_files("model-v2-00001-of-00002.safetensors model-v2-00002-of-00002.safetensors " INDEX
                 " ");
    tn_state *got = loaded_as(INDEX, 0);
    expect_same_state(fresh, got);
    tn_state_drop(got);
    ck_assert_int_eq(tn_state_save_parts(old, INDEX, 120), TN_OK);
    expect_files("model-00001-of-00002.safetensors model-00002-of-00002.safetensors " INDEX " ");
    tn_state_drop(old);
    tn_state_drop(fresh);
    leave_folder();
}
END_TEST

START_TEST(a_save_that_fails_leaves_the_old_set)
{
    TN_SCOPE;
    in_folder();
    tn_state *old = six(0), *bad = six(1);
    ck_assert_int_eq(tn_state_save_parts(old, INDEX, 80), TN_OK);
    tn_state_set(bad, "t0", tn_tensor_empty(TN_SHAPE(1), TN_C128, NULL)); /* no type for it */
    ck_assert_int_eq(tn_state_save_parts(bad, INDEX, 80), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "which safetensors cannot hold");
    static const char files[] = "model-00001-of-00003.safetensors model-00002-of-00003.safetensors "
                                "model-00003-of-00003.safetensors " INDEX " ";
    expect_files(files);
    tn_state *next = six(5);
    for (uint64_t n = 1;; n++) {
        tn__fail_alloc(n);
        tn_status status = tn_state_save_parts(next, INDEX, 80);
        bool reached = tn__fail_alloc(0) >= n;
        tn_error_clear();
        tn_state *got = loaded_as(INDEX, 0);
        expect_same_state(status == TN_OK ? next : old, got);
        tn_state_drop(got);
        if (status == TN_OK) { /* and back */
            ck_assert_int_eq(tn_state_save_parts(old, INDEX, 80), TN_OK);
        }
        if (!reached)
            break;
    }
    tn_state_drop(next);
    tn_state_drop(old);
    tn_state_drop(bad);
    leave_folder();
}
END_TEST

START_TEST(an_index_that_cannot_be_right_is_refused)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "{\"weight_map\": {\"t0\": \"../x.safetensors\"}}", "only files beside it" },
        { "{\"weight_map\": {\"t0\": \"/etc/passwd\"}}", "only files beside it" },
        { "{\"weight_map\": {\"t0\": \"\"}}", "only files beside it" },
        { "{\"weight_map\": {\"t0\": \"gone.safetensors\"}}", "cannot open" },
        { "{\"weight_map\": {\"t0\": 7}}", "is not a text" },
        { "{\"weight_map\": {\"t0\": \"model.safetensors.index.json\"}}", "it is an index itself" },
        { "{\"weight_map\": {\"t9\": \"p.safetensors\"}}", "has no tensor of that name" },
        { "{\"weight_map\": {\"t0\": \"p.safetensors\"}}", "which the index does not name" },
        { "{\"weight_map\": [1]}", "weight_map is missing" },
        { "{\"metadata\": 3, \"weight_map\": {}}", "metadata is not an object" },
        { "{\"metadata\": {\"a\": [1]}, \"weight_map\": {}}", "neither a text nor a whole number" },
        { "{\"weight_map\": {\"t0\": \"a\", \"t0\": \"b\"}}", "duplicate" },
        { "{", "index, byte" },
    };
    TN_SCOPE;
    in_folder();
    tn_state *state = six(0);
    saved(state, "p.safetensors");
    for (int i = 0; i < tn__countof(cases); i++) {
        write_text(INDEX, cases[i].text);
        ck_assert_msg(tn_state_load(INDEX) == NULL, "%s", cases[i].text);
        expect_failure(tn_error_last()->code, cases[i].words);
    }
    ck_assert_int_eq(tn_state_save(state, INDEX), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "tn_state_save_parts");
    ck_assert_int_eq(tn_state_save_parts(state, "model.safetensors", 100), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "ends in .EXTENSION.index.json");
    ck_assert_int_eq(tn_state_save_parts(state, INDEX, 0), TN_ERR_VALUE);
    tn_error_clear();
    tn_state_drop(state);
    leave_folder();
}
END_TEST

START_TEST(an_index_cut_or_changed_anywhere_does_no_harm)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = six(0);
    ck_assert_int_eq(tn_state_save_parts(state, INDEX, 120), TN_OK);
    size_t size;
    char *bytes = slurp(INDEX, &size);
    for (size_t i = 0; i < size; i++) {
        FILE *file = fopen(INDEX, "wb");
        fwrite(bytes, 1, i, file);
        fclose(file);
        tn_state *got = tn_state_load(INDEX);
        ck_assert(got == NULL || i + 1 == size); /* without the newline at its end it is whole */
        tn_state_drop(got);
        tn_error_clear();
        bytes[i] ^= 0x11;
        file = fopen(INDEX, "wb");
        fwrite(bytes, 1, size, file);
        fclose(file);
        bytes[i] ^= 0x11;
        got = tn_state_load(INDEX);
        ck_assert(got != NULL || tn_failed());
        tn_state_drop(got);
        tn_error_clear();
    }
    free(bytes);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_state_is_divided_and_put_together,
        a_new_set_takes_the_old_ones_place_and_its_files_go,
        a_save_that_fails_leaves_the_old_set,
        an_index_that_cannot_be_right_is_refused,
        an_index_cut_or_changed_anywhere_does_no_harm,
        NULL,
    };
    return suite_run("parts", tests);
}
