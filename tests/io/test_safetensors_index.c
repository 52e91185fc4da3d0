/* SPDX-License-Identifier: MIT
 *
 * Weights in several files with an index: how the tensors are distributed, that all files are
 * replaced together, indexes with names that must not be opened. */
#include "tests/io/states.h"

#include <dirent.h>
#include <sys/stat.h>

#define INDEX "model.safetensors.index.json"

static void expect_files(const char *expected)
{
    struct dirent **list;
    char names[1024] = "";
    int count = scandir(".", &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0)
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
    /* A tensor that is larger than the limit gets a file of its own. */
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
    expect_failure(TN_ERR_TYPE, "expected one that safetensors can store");
    static const char files[] = "model-00001-of-00003.safetensors model-00002-of-00003.safetensors "
                                "model-00003-of-00003.safetensors " INDEX " ";
    expect_files(files);
    tn_state *next = six(5);
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_status status = tn_state_save_parts(next, INDEX, 80);
        bool reached = tn__memory_fail(0) >= n;
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
    /* Files that could not be removed because memory ran out are removed by the next save. */
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(tn_state_save_parts(old, INDEX, 80), TN_OK);
    expect_files(files);
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
        { "{\"weight_map\": {\"t0\": \"../x.safetensors\"}}",
          "expected the name of a file in the same folder" },
        { "{\"weight_map\": {\"t0\": \"/etc/passwd\"}}",
          "expected the name of a file in the same folder" },
        { "{\"weight_map\": {\"t0\": \"\"}}", "expected the name of a file in the same folder" },
        { "{\"weight_map\": {\"t0\": \"gone.safetensors\"}}", "cannot open" },
        { "{\"weight_map\": {\"t0\": 7}}", "expected a string" },
        { "{\"weight_map\": {\"t0\": \"model.safetensors.index.json\"}}",
          "an index, named in another index" },
        { "{\"weight_map\": {\"t9\": \"p.safetensors\"}}", "missing in" },
        { "{\"weight_map\": {\"t0\": \"p.safetensors\"}}", "not in the index" },
        { "{\"weight_map\": [1]}", "weight_map: wrong type, got a list" },
        { "{\"metadata\": 3, \"weight_map\": {}}",
          "metadata: wrong type, got an integer; expected an object" },
        { "{\"metadata\": {\"a\": [1]}, \"weight_map\": {}}", "expected a string or an integer" },
        { "{\"weight_map\": {\"t0\": \"a\", \"t0\": \"b\"}}", "duplicate" },
        { "{", "index, byte" },
        { "{\"weight_map\": {\"t0\": \"a\\u0000.safetensors\"}}", "index, byte" },
        { "{\"weight_map\": {\"t0\": \"a\\nb\"}}", "cannot open" },
        { "{\"weight_map\": {\"t0\": \"..\"}}", "expected the name of a file in the same folder" },
        { "{\"weight_map\": {\"t0\": \"fifo\"}}", "not a regular file" },
        { "{\"weight_map\": {\"t0\": \"sub\"}}", "Is a directory" },
        { "{\"weight_map\": {\"t0\": \"loop\"}}", "cannot open" },
    };
    TN_SCOPE;
    in_folder();
    tn_state *state = six(0);
    saved(state, "p.safetensors");
    ck_assert_int_eq(mkfifo("fifo", 0600) | mkdir("sub", 0700) | symlink("loop", "loop"), 0);
    for (int i = 0; i < tn__countof(cases); i++) {
        write_text(INDEX, cases[i].text);
        ck_assert_msg(tn_state_load(INDEX) == NULL, "%s", cases[i].text);
        expect_failure(tn_error_last_code(), cases[i].words);
    }
    ck_assert_int_eq(tn_state_save(state, INDEX), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "tn_state_save_parts");
    ck_assert_int_eq(tn_state_save_parts(state, "model.safetensors", 100), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "expected .EXTENSION.index.json");
    ck_assert_int_eq(tn_state_save_parts(state, INDEX, 0), TN_ERR_VALUE);
    tn_error_clear();
    tn_state_drop(state);
    leave_folder();
}
END_TEST

#define SET(version, part) "model" version "-0000" part "-of-00002.safetensors"

/* For any names in an index, only files with names that Tenon gives are removed, and none that
 * another index names. */
START_TEST(a_save_removes_files_of_its_own_naming_only)
{
    static const char *const foreign[] = { "thesis.tex",
                                           ".bashrc",
                                           "../outside",
                                           "sub/" SET("", "1"),
                                           "model.safetensors",
                                           "model-1-of-2.safetensors",
                                           "model-00001-of-00002.safetensors.bak",
                                           "amodel-00001-of-00002.safetensors",
                                           "model-v-00001-of-00002.safetensors",
                                           "model-v1x-00001-of-00002.safetensors",
                                           "a\nb",
                                           "other-00001-of-00002.safetensors",
                                           "model-00001-of-00002.npz" };
    TN_SCOPE;
    in_folder();
    ck_assert_int_eq(mkdir("inner", 0700), 0);
    ck_assert_int_eq(chdir("inner"), 0);
    ck_assert_int_eq(mkdir("sub", 0700), 0);
    tn__text text = { 0 };
    tn__text_add(&text, "{\"weight_map\": {");
    for (int i = 0; i < tn__countof(foreign); i++) {
        char quoted[128];
        int64_t size = tn__print_quoted(quoted, sizeof quoted, '"', foreign[i]);
        write_text(foreign[i], "not ours");
        tn__text_add(&text, "\"f%d\": %.*s, ", i, (int)size, quoted);
    }
    /* Kinds of files that are not ours, under names that could be. */
    ck_assert_int_eq(mkdir(SET("-v2", "1"), 0700), 0);
    ck_assert_int_eq(mkfifo(SET("-v3", "1"), 0600), 0);
    ck_assert_int_eq(symlink("thesis.tex", SET("-v4", "1")), 0);
    ck_assert_int_eq(symlink("nowhere", SET("-v5", "1")), 0);
    write_text(SET("-v6", "1"), "of the other index");
    write_text(SET("-v7", "1"), "of no index");
    write_text(SET("-v8", "1"), "of the old set");
    for (int version = 2; version <= 8; version++)
        if (version != 7)
            tn__text_add(&text, "\"v%d\": \"model-v%d-00001-of-00002.safetensors\", ", version,
                         version);
    tn__text_add(&text, "\"absolute\": \"/etc/passwd\"}}");
    write_text(INDEX, text.at);
    tn__text_free(&text);
    write_text("copy.safetensors.index.json", "{\"weight_map\": {\"x\": \"" SET("-v6", "1") "\"}}");
    tn_state *state = six(0);
    for (int i = 0; i < 3; i++) {
        struct stat info;
        ck_assert_msg(tn_state_save_parts(state, INDEX, 120) == TN_OK, "%s", tn_error_text());
        for (int f = 0; f < tn__countof(foreign); f++) {
            size_t size;
            char *bytes = slurp(foreign[f], &size);
            ck_assert_msg(size == 8 && memcmp(bytes, "not ours", 8) == 0, "%s", foreign[f]);
            free(bytes);
        }
        for (int version = 2; version <= 7; version++) {
            char name[64];
            tn_snprint(name, sizeof name, "model-v%d-00001-of-00002.safetensors", version);
            ck_assert_msg(lstat(name, &info) == 0, "%s", name);
        }
        if (i == 0) /* its name is free again */
            ck_assert_int_ne(lstat(SET("-v8", "1"), &info), 0);
    }
    tn_state *got = loaded_as(INDEX, 0);
    expect_same_state(state, got);
    tn_state_drop(got);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

START_TEST(an_index_that_cannot_be_read_keeps_the_files_that_it_may_name)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = six(0);
    ck_assert_int_eq(tn_state_save_parts(state, INDEX, 120), TN_OK);
    write_text("copy.safetensors.index.json", "{\"weight_map\": {\"x\": \"" SET("", "1"));
    ck_assert_int_eq(tn_state_save_parts(state, INDEX, 120), TN_OK);
    struct stat info;
    ck_assert_int_eq(stat(SET("", "1"), &info), 0);
    ck_assert_int_eq(stat(SET("", "2"), &info), 0);
    /* When it is gone, the next save removes them. */
    unlink("copy.safetensors.index.json");
    ck_assert_int_eq(tn_state_save_parts(state, INDEX, 120), TN_OK);
    expect_files(SET("", "1") " " SET("", "2") " " INDEX " ");
    tn_state_drop(state);
    leave_folder();
}
END_TEST

/* One index may name a file of another set by any path: it is the file that counts. */
START_TEST(a_file_that_another_index_names_by_another_path_stays)
{
    static const char *const paths[] = {
        "./" SET("", "1"), ".//./" SET("", "1"), "sub/../" SET("", "1"), "alias", "sub/alias",
    };
    struct stat info;
    for (int i = 0; i <= tn__countof(paths); i++) {
        TN_SCOPE;
        in_folder();
        ck_assert_int_eq(mkdir("sub", 0700), 0);
        ck_assert_int_eq(symlink(SET("", "1"), "alias"), 0);
        ck_assert_int_eq(symlink("../" SET("", "1"), "sub/alias"), 0);
        tn_state *state = six(0);
        ck_assert_int_eq(tn_state_save_parts(state, INDEX, 120), TN_OK);
        char here[512], path[1024], text[2048];
        ck_assert_ptr_nonnull(getcwd(here, sizeof here));
        tn_snprint(path, sizeof path, "%s/" SET("", "1"), here);
        tn_snprint(text, sizeof text, "{\"weight_map\": {\"x\": \"%s\"}}",
                   i < tn__countof(paths) ? paths[i] : path);
        write_text("copy.safetensors.index.json", text);
        ck_assert_int_eq(tn_state_save_parts(state, INDEX, 120), TN_OK);
        ck_assert_msg(stat(SET("", "1"), &info) == 0, "%s", text);
        ck_assert_int_ne(stat(SET("", "2"), &info), 0);
        tn_state *got = loaded_as(INDEX, 0);
        expect_same_state(state, got);
        tn_state_drop(got);
        tn_state_drop(state);
        leave_folder();
    }
}
END_TEST

START_TEST(an_index_that_is_a_link_stays_in_the_folder_of_its_files)
{
    TN_SCOPE;
    in_folder();
    struct stat info;
    ck_assert_int_eq(mkdir("store", 0700) | mkdir("cache", 0700), 0);
    tn_state *state = six(0);
    ck_assert_int_eq(tn_state_save_parts(state, "store/" INDEX, 120), TN_OK);
    static const char *const names[] = { SET("", "1"), SET("", "2"), INDEX };
    for (int i = 0; i < 3; i++) {
        char from[128], to[128];
        tn_snprint(from, sizeof from, "../store/%s", names[i]);
        tn_snprint(to, sizeof to, "cache/%s", names[i]);
        ck_assert_int_eq(symlink(from, to), 0);
    }
    /* A folder of links can be loaded. A save to it is refused, because it would replace files in
     * one folder and write the index into another. */
    tn_state *got = loaded_as("cache/" INDEX, 0);
    expect_same_state(state, got);
    tn_state_drop(got);
    ck_assert_int_eq(
        symlink("../store/new.safetensors.index.json", "cache/new.safetensors.index.json"), 0);
    static const char *const refused[] = { "cache/" INDEX, "cache/new.safetensors.index.json" };
    for (int i = 0; i < 2; i++) {
        tn_error_clear();
        ck_assert_int_eq(tn_state_save_parts(state, refused[i], 120), TN_ERR_VALUE);
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "a link to a file in another folder"));
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "save to the target of the link"));
        tn_error_clear();
    }
    ck_assert_int_eq(chdir("cache"), 0);
    expect_files(SET("", "1") " " SET("", "2") " " INDEX " new.safetensors.index.json ");
    ck_assert_int_eq(chdir("../store"), 0);
    expect_files(SET("", "1") " " SET("", "2") " " INDEX " ");
    ck_assert_int_eq(chdir(".."), 0);
    /* A save through a link to the folder, or a link within it, is allowed. */
    ck_assert_int_eq(symlink("store", "way"), 0);
    ck_assert_int_eq(symlink(INDEX, "store/latest.safetensors.index.json"), 0);
    ck_assert_int_eq(tn_state_save_parts(state, "way/" INDEX, 120), TN_OK);
    ck_assert_int_eq(tn_state_save_parts(state, "way/latest.safetensors.index.json", 120), TN_OK);
    ck_assert_int_eq(lstat("store/latest.safetensors.index.json", &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    got = loaded_as("store/" INDEX, 0);
    expect_same_state(state, got);
    tn_state_drop(got);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

START_TEST(a_thousand_other_sets_do_not_stop_a_save)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = six(0);
    for (int version = 1; version <= 1100; version++) {
        char name[64];
        tn_snprint(name, sizeof name, "model-v%d-00001-of-00001.safetensors", version);
        if (version != 1050)
            write_text(name, "");
    }
    ck_assert_msg(tn_state_save_parts(state, INDEX, 120) == TN_OK, "%s", tn_error_text());
    struct stat info;
    ck_assert_int_eq(stat(SET("-v1050", "1"), &info), 0);
    ck_assert_int_eq(tn_state_save_parts(state, INDEX, 120), TN_OK);
    ck_assert_int_eq(stat(SET("-v1101", "1"), &info), 0);
    ck_assert_int_ne(stat(SET("-v1050", "1"), &info), 0);
    tn_state *got = loaded_as(INDEX, 0);
    expect_same_state(state, got);
    tn_state_drop(got);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

/* The files of a set have longer names than their index; a stem of many bytes is cut for them. */
START_TEST(an_index_may_have_the_longest_name)
{
    static const char ending[] = ".safetensors.index.json";
    TN_SCOPE;
    char name[256];
    size_t stem = 255 - (sizeof ending - 1);
    in_folder();
    tn_state *state = six(0);
    for (size_t i = 0; i + 1 < stem; i += 2)
        memcpy(name + i, "\xc3\xa4", 2); /* two bytes each: no character is cut */
    strcpy(name + stem, ending);
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(tn_state_save_parts(state, name, 120) == TN_OK, "%s", tn_error_text());
        tn_state *got = loaded_as(name, 0);
        expect_same_state(state, got);
        tn_state_drop(got);
    }
    struct dirent **list;
    int count = scandir(".", &list, NULL, alphasort);
    ck_assert_int_eq(count, 2 + 3);
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
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

/* The parts of a private model are private, too, and keep its owner. */
START_TEST(new_parts_get_the_owner_and_mode_of_the_old_index)
{
    TN_SCOPE;
    in_folder();
    tn_state *state = six(0);
    uid_t owner = geteuid() == 0 ? 65534 : geteuid();
    struct dirent **list;
    ck_assert_msg(tn_state_save_parts(state, INDEX, 100) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(chmod(INDEX, 0640), 0);
    ck_assert_int_eq(chown(INDEX, owner, (gid_t)-1), 0);
    ck_assert_msg(tn_state_save_parts(state, INDEX, 100) == TN_OK, "%s", tn_error_text());
    int count = scandir(".", &list, NULL, alphasort);
    ck_assert_int_eq(count, 6); /* three parts and the index, and the folder and its parent */
    for (int i = 0; i < count; i++) {
        struct stat info;
        ck_assert_int_eq(stat(list[i]->d_name, &info), 0);
        if (S_ISREG(info.st_mode)) {
            ck_assert_msg((info.st_mode & 07777) == 0640, "%s", list[i]->d_name);
            ck_assert_msg(info.st_uid == owner, "%s", list[i]->d_name);
        }
        free(list[i]);
    }
    free(list);
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
        a_save_removes_files_of_its_own_naming_only,
        an_index_that_cannot_be_read_keeps_the_files_that_it_may_name,
        a_file_that_another_index_names_by_another_path_stays,
        an_index_that_is_a_link_stays_in_the_folder_of_its_files,
        a_thousand_other_sets_do_not_stop_a_save,
        an_index_may_have_the_longest_name,
        new_parts_get_the_owner_and_mode_of_the_old_index,
        NULL,
    };
    return suite_run("parts", tests);
}
