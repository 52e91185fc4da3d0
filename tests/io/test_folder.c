/* SPDX-License-Identifier: MIT
 *
 * Loading by the name of a folder: which of its files is read. */
#include "tests/io/states.h"

/* Saves a state with one tensor of one value. */
static void put(const char *path, double value)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    tn_state_set(state, "w", tn_tensor_full(TN_SHAPE(2), value, TN_F32, NULL));
    if (strstr(path, ".index.json") != NULL)
        ck_assert_msg(tn_state_save_parts(state, path, 4) == TN_OK, "%s", tn_error_text());
    else
        saved(state, path);
    tn_state_drop(state);
}

static void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void expect_loads(const char *path, double value)
{
    TN_SCOPE;
    tn_state *state = loaded_as(path, 0);
    ck_assert_int_eq(tn_state_count(state), 1);
    ck_assert_double_eq(tn_item(tn_sum(tn_state_tensor(state, 0))), 2 * value);
    tn_state_drop(state);
}

static void expect_refused(const char *path, const char *words)
{
    ck_assert_ptr_null(tn_state_load(path));
    expect_failure(TN_ERR_IO, words);
}

START_TEST(the_files_of_hugging_face_come_first)
{
    in_folder();
    ck_assert_int_eq(mkdir("net", 0777), 0);
    expect_refused("net", "net: this folder has no file of tensors");
    put_text("net/config.json", "{}");
    put_text("net/README.md", "weight_map");
    ck_assert_int_eq(mkdir("net/model.safetensors.d", 0777), 0);
    expect_refused("net/", "no file of tensors");
    put("net/other.npy", 1);
    expect_loads("net", 1);
    put("net/.hidden.safetensors", 9);
    expect_loads("net/", 1);
    put("net/weights.npz", 2);
    ck_assert_ptr_null(tn_state_load("net"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "weights.npz"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "other.npy"));
    expect_failure(TN_ERR_IO, "several files of tensors");
    put("net/parts.safetensors.index.json", 3);
    expect_loads("net", 3);
    put("net/pytorch_model.safetensors", 4);
    expect_loads("net", 4);
    put("net/model.safetensors.index.json", 5);
    expect_loads("net", 5);
    put("net/model.safetensors", 6);
    expect_loads("net", 6);
    put("net/model.checkpoint", 7);
    expect_refused("net", "several files of tensors: model.");
    /* the best weights of a run */
    put("net/best.safetensors", 8);
    expect_loads("net", 8);
    leave_folder();
}
END_TEST

START_TEST(a_module_loads_from_a_folder_of_links)
{
    TN_SCOPE;
    in_folder();
    ck_assert_int_eq(mkdir("blobs", 0777), 0);
    ck_assert_int_eq(mkdir("snapshot", 0777), 0);
    tn_module *from = tn_module_parse("Linear(3, 2)"),
              *to = tn_module_parse_skip_init(NULL, "Linear(3, 2)");
    tn_state *state = tn_module_state(from);
    ck_assert_int_eq(tn_state_save_parts(state, "blobs/model.safetensors.index.json", 24), TN_OK);
    static const char *const names[] = { "model.safetensors.index.json",
                                         "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors" };
    for (int i = 0; i < 3; i++) {
        char blob[128], link[128];
        snprintf(blob, sizeof blob, "../blobs/%s", names[i]);
        snprintf(link, sizeof link, "snapshot/%s", names[i]);
        ck_assert_int_eq(symlink(blob, link), 0);
    }
    ck_assert_msg(tn_module_load(to, "snapshot") == TN_OK, "%s", tn_error_text());
    tn_state *got = tn_module_state(to);
    expect_same_state(state, got);
    tn_state_drop(got);
    tn_state_drop(state);
    tn_module_drop(from);
    tn_module_drop(to);
    leave_folder();
}
END_TEST

START_TEST(an_index_leads_to_files_of_its_folder_only)
{
    static const char *const names[] = { "../model.safetensors",   "/etc/passwd", "..", ".", "",
                                         "below/model.safetensors" };
    in_folder();
    ck_assert_int_eq(mkdir("net", 0777), 0);
    ck_assert_int_eq(mkdir("net/below", 0777), 0);
    put("model.safetensors", 1);
    put("net/below/model.safetensors", 1);
    for (int64_t i = 0; i < tn__countof(names); i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"weight_map\": {\"w\": \"%s\"}}", names[i]);
        put_text("net/model.safetensors.index.json", text);
        ck_assert_ptr_null(tn_state_load("net"));
        expect_failure(TN_ERR_FORMAT, "expected the name of a file in the same folder");
    }
    put_text("net/model.safetensors.index.json",
             "{\"weight_map\": {\"w\": \"model.safetensors.index.json\"}}");
    ck_assert_ptr_null(tn_state_load("net"));
    expect_failure(TN_ERR_FORMAT, "named in another index");
    leave_folder();
}
END_TEST

START_TEST(running_out_of_memory_is_an_error_and_leaves_nothing)
{
    in_folder();
    ck_assert_int_eq(mkdir("net", 0777), 0);
    put("net/a.npz", 1);
    put("net/b.npy", 1);
    put("net/model.safetensors", 2);
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_state *state = tn_state_load("net");
        bool reached = tn__memory_fail(0) >= n;
        ck_assert((state != NULL) != (tn_error_text()[0] != '\0'));
        tn_error_clear();
        tn_state_drop(state);
        if (!reached)
            break;
    }
    leave_folder();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_files_of_hugging_face_come_first,
        a_module_loads_from_a_folder_of_links,
        an_index_leads_to_files_of_its_folder_only,
        running_out_of_memory_is_an_error_and_leaves_nothing,
        NULL,
    };
    return suite_run("folder", tests);
}
