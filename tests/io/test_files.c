/* SPDX-License-Identifier: MIT
 *
 * Files: the format by extension and content, atomic writing, progress, files that cannot be read
 * or written. The test defines its own format, so that it can fail at any step. */
#include "tests/base/suite.h"

#include <errno.h>
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a format: "TEST" and then one byte for each tensor -------------------------------------- */

static int fail_after = -1; /* tensors */

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    char start[4];
    return source->size >= 4 && source->read(source->user, 0, start, 4) == TN_OK &&
           memcmp(start, "TEST", 4) == 0;
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    char bytes[64], name[8];
    if (!recognize(self, source))
        return tn_fail(TN_ERR_FORMAT, "%s: does not begin with TEST", source->path);
    tn_status status = source->read(source->user, 4, bytes, (size_t)source->size - 4);
    for (uint64_t i = 0; i + 4 < source->size && status == TN_OK; i++) {
        tn_snprint(name, sizeof name, "%c", bytes[i]);
        status = tn_state_set(state, name, tn_tensor_full(TN_SHAPE(1), (double)i, TN_F32, NULL));
    }
    return status;
}

static tn_status save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    (void)self;
    tn_status status = sink->write(sink->user, "TEST", 4);
    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++) {
        if (i == fail_after)
            return tn_fail(TN_ERR_DEVICE, "the device is gone");
        status = sink->write(sink->user, tn_state_name(state, i), 1);
    }
    static char padding[300000];
    if (status == TN_OK && tn_state_meta(state, "padding") != NULL)
        status = sink->write(sink->user, padding, sizeof padding);
    return status;
}

static tn_status silent_save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    (void)self;
    (void)sink;
    (void)state;
    return TN_ERR_TYPE;
}

static const tn_format_def test_format = {
    TN_HEAD(tn_format_def), .name = "test.format", .extensions = ".tst .test",
    .recognize = recognize, .load = load,          .save = save
};
static const tn_format_def mute_format = { TN_HEAD(tn_format_def), .name = "test.mute",
                                           .extensions = ".mute", .save = silent_save };

static char folder[64], path[128];

static tn_state *prepare(void)
{
    static const char *const letters[] = { "a", "b", "c" };
    TN_SCOPE;
    ck_assert_int_eq(tn_register(&test_format), TN_OK);
    ck_assert_int_eq(tn_register(&mute_format), TN_OK);
    tn_snprint(folder, sizeof folder, "files-%d", (int)getpid());
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    tn_snprint(path, sizeof path, "%s/old.tst", folder);
    tn_state *state = tn_state_new();
    for (int i = 0; i < 3; i++)
        tn_state_set(state, letters[i], tn_tensor_full(TN_SHAPE(1), i, TN_F32, NULL));
    return state;
}

/* Everything in the folder, sorted; removed afterwards. */
static void expect_folder(const char *expected)
{
    struct dirent **entries;
    char all[512] = "", name[320];
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0) {
            strcat(strcat(all, entries[i]->d_name), " ");
            tn_snprint(name, sizeof name, "%s/%s", folder, entries[i]->d_name);
            remove(name);
        }
        free(entries[i]);
    }
    free(entries);
    rmdir(folder);
    ck_assert_str_eq(all, expected);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void expect_content(const char *name, const char *text)
{
    char got[64] = "";
    FILE *file = fopen(name, "r");
    ck_assert_ptr_nonnull(file);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(got, text);
}

START_TEST(the_extension_chooses_the_writer_and_the_content_the_reader)
{
    tn_state *state = prepare();
    char other[128], odd[128];
    tn_snprint(other, sizeof other, "%s/x.TEST", folder);
    tn_snprint(odd, sizeof odd, "%s/x.other", folder);
    ck_assert_msg(tn_state_save(state, path) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_state_save(state, other), TN_OK);
    expect_content(path, "TESTabc");
    ck_assert_int_eq(rename(other, odd), 0);
    tn_state *again = tn_state_load(odd);
    ck_assert_msg(again != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_state_count(again), 3);
    tn_state_drop(again);
    ck_assert_int_eq(tn_state_save(state, odd), TN_ERR_FORMAT);
    expect_failure(TN_ERR_FORMAT, "no format has this extension; formats: ");
    write_file(odd, "something");
    ck_assert_ptr_null(tn_state_load(odd));
    expect_failure(TN_ERR_FORMAT, "test.format (.tst .test)");
    write_file(path, "TES");
    ck_assert_ptr_null(tn_state_load(path));
    expect_failure(TN_ERR_FORMAT, "does not begin with TEST");
    tn_state_drop(state);
    expect_folder("old.tst x.other ");
}
END_TEST

START_TEST(a_save_that_fails_leaves_the_old_file_and_nothing_else)
{
    tn_state *state = prepare();
    write_file(path, "the old one");
    fail_after = 2;
    ck_assert_int_eq(tn_state_save(state, path), TN_ERR_DEVICE);
    expect_failure(TN_ERR_DEVICE, "the device is gone");
    fail_after = -1;
    expect_content(path, "the old one");
    char mute[128];
    tn_snprint(mute, sizeof mute, "%s/x.mute", folder);
    ck_assert_int_eq(tn_state_save(state, mute), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "test.mute");
    ck_assert_ptr_null(tn_state_load(mute));
    expect_failure(TN_ERR_IO, "No such file");
    write_file(mute, "x");
    ck_assert_ptr_null(tn_state_load(mute));
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "can be written, not read");
    tn_state_drop(state);
    expect_folder("old.tst x.mute ");
}
END_TEST

static bool stop_at(void *user, const char *what, uint64_t done, uint64_t total)
{
    (void)total;
    ck_assert_str_eq(what, "writing bytes");
    return done < *(uint64_t *)user;
}

START_TEST(a_cancelled_save_leaves_the_old_file)
{
    tn_state *state = prepare();
    uint64_t limit = 200000;
    tn_state_set_meta(state, "padding", "yes");
    write_file(path, "the old one");
    tn_set_progress(stop_at, &limit);
    ck_assert_int_eq(tn_state_save(state, path), TN_ERR_CANCELLED);
    tn_error_clear();
    expect_content(path, "the old one");
    limit = UINT64_MAX;
    ck_assert_int_eq(tn_state_save(state, path), TN_OK);
    tn_set_progress(NULL, NULL);
    tn_state_drop(state);
    expect_folder("old.tst ");
}
END_TEST

START_TEST(a_disk_that_takes_no_more_leaves_the_old_file)
{
    tn_state *state = prepare();
    struct rlimit before, small = { 100000, 100000 };
    tn_state_set_meta(state, "padding", "yes");
    write_file(path, "the old one");
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    tn_status status = tn_state_save(state, path);
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_eq(status, TN_ERR_IO);
    ck_assert_int_eq(tn_error_last()->native, EFBIG);
    expect_failure(TN_ERR_IO, "old.tst: cannot write: File too large");
    expect_content(path, "the old one");
    tn_state_drop(state);
    expect_folder("old.tst ");
}
END_TEST

START_TEST(mode_and_links_of_the_old_file_stay)
{
    tn_state *state = prepare();
    char link[128];
    struct stat info;
    write_file(path, "the old one");
    ck_assert_int_eq(chmod(path, 0640), 0);
    tn_snprint(link, sizeof link, "%s/link.tst", folder);
    ck_assert_int_eq(symlink("old.tst", link), 0);
    ck_assert_msg(tn_state_save(state, link) == TN_OK, "%s", tn_error_text());
    expect_content(path, "TESTabc");
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    tn_state_drop(state);
    expect_folder("link.tst old.tst ");
}
END_TEST

static char *in(const char *name)
{
    static char paths[4][320];
    static int turn;
    char *path_of = paths[turn++ % 4];
    tn_snprint(path_of, sizeof paths[0], "%s/%s", folder, name);
    return path_of;
}

/* A save to a link whose target does not exist writes the target. The link, and further links
 * between it and the target, remain links. */
START_TEST(dangling_links_stay_links)
{
    tn_state *state = prepare();
    char absolute[512], here[256];
    struct stat info;
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    tn_snprint(absolute, sizeof absolute, "%s/%s/sub/c.tst", here, folder);
    ck_assert_int_eq(mkdir(in("sub"), 0700), 0);
    ck_assert_int_eq(symlink("sub/a.tst", in("one.tst")), 0);
    ck_assert_int_eq(symlink("../sub/back.tst", in("two.tst")), 0);
    ck_assert_int_eq(symlink("../b.tst", in("sub/back.tst")), 0);
    ck_assert_int_eq(symlink(absolute, in("three.tst")), 0);
    ck_assert_int_eq(unlink(in("two.tst")), 0);
    ck_assert_int_eq(symlink("sub/back.tst", in("two.tst")), 0);
    static const char *const links[] = { "one.tst", "two.tst", "three.tst" };
    static const char *const targets[] = { "sub/a.tst", "b.tst", "sub/c.tst" };
    for (int i = 0; i < 3; i++) {
        for (int twice = 0; twice < 2; twice++) {
            ck_assert_msg(tn_state_save(state, in(links[i])) == TN_OK, "%s", tn_error_text());
            ck_assert(lstat(in(links[i]), &info) == 0 && S_ISLNK(info.st_mode));
            ck_assert(lstat(in(targets[i]), &info) == 0 && S_ISREG(info.st_mode));
            expect_content(in(targets[i]), "TESTabc");
        }
    }
    ck_assert_int_eq(symlink("loop.tst", in("loop.tst")), 0);
    ck_assert_int_eq(tn_state_save(state, in("loop.tst")), TN_ERR_IO);
    ck_assert_int_eq(tn_error_last()->native, ELOOP);
    expect_failure(TN_ERR_IO, "cannot follow the links");
    ck_assert_int_eq(symlink("gone/a.tst", in("lost.tst")), 0);
    ck_assert_int_eq(tn_state_save(state, in("lost.tst")), TN_ERR_IO);
    expect_failure(TN_ERR_IO, "lost.tst: a link to \"gone/a.tst\", whose folder cannot be opened: "
                              "No such file or directory");
    ck_assert_int_eq(unlink(in("lost.tst")), 0);
    ck_assert_int_eq(symlink("no-folder/x.tst", in("lost.tst")), 0);
    ck_assert_int_eq(tn_state_save(state, in("lost.tst")), TN_ERR_IO);
    ck_assert_int_eq(tn_error_last()->native, ENOENT);
    tn_error_clear();
    unlink(in("sub/a.tst"));
    unlink(in("sub/back.tst"));
    unlink(in("sub/c.tst"));
    tn_state_drop(state);
    expect_folder("b.tst loop.tst lost.tst one.tst sub three.tst two.tst ");
}
END_TEST

/* As the system does with fs.protected_symlinks. */
START_TEST(a_link_of_another_user_in_a_shared_folder_is_not_followed)
{
    if (geteuid() != 0) {
        printf("SKIP a_link_of_another_user_in_a_shared_folder_is_not_followed: takes root\n");
        return;
    }
    tn_state *state = prepare();
    ck_assert_int_eq(chmod(folder, 01777), 0);
    write_file(in("mine.tst"), "precious");
    ck_assert_int_eq(symlink("mine.tst", in("link.tst")), 0);
    ck_assert_int_eq(lchown(in("link.tst"), 65534, 65534), 0);
    ck_assert_int_eq(tn_state_save(state, in("link.tst")), TN_ERR_IO);
    expect_failure(TN_ERR_IO, "a link of another user in a world-writable folder");
    expect_content(in("mine.tst"), "precious");
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_int_eq(tn_state_save(state, in("link.tst")), TN_OK);
    expect_content(in("mine.tst"), "TESTabc");
    tn_state_drop(state);
    expect_folder("link.tst mine.tst ");
}
END_TEST

START_TEST(set_uid_bits_go_and_the_owner_stays)
{
    tn_state *state = prepare();
    struct stat info;
    write_file(path, "the old one");
    uid_t owner = geteuid() == 0 ? 65534 : geteuid();
    gid_t group = geteuid() == 0 ? 65533 : getegid();
    ck_assert_int_eq(chown(path, owner, group), 0);
    ck_assert_int_eq(chmod(path, 06751), 0);
    ck_assert_msg(tn_state_save(state, path) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0751);
    ck_assert_uint_eq(info.st_uid, owner);
    ck_assert_uint_eq(info.st_gid, group);
    expect_content(path, "TESTabc");
    tn_state_drop(state);
    expect_folder("old.tst ");
}
END_TEST

/* If a user may replace a file but cannot keep its group, the new group gets only the permissions
 * that all users had. */
START_TEST(a_group_that_cannot_be_kept_gets_no_rights)
{
    if (geteuid() != 0) {
        printf("SKIP a_group_that_cannot_be_kept_gets_no_rights: takes root\n");
        return;
    }
    tn_state *state = prepare();
    struct stat info;
    write_file(path, "the old one");
    ck_assert_int_eq(chown(path, 65534, 65533), 0);
    ck_assert_int_eq(chmod(path, 0664), 0);
    ck_assert_int_eq(chown(folder, 1234, 1234), 0);
    ck_assert_int_eq(setegid(1234) | seteuid(1234), 0);
    tn_status status = tn_state_save(state, path);
    ck_assert_int_eq(seteuid(0) | setegid(0), 0);
    ck_assert_msg(status == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0644);
    ck_assert_uint_eq(info.st_uid, 1234);
    tn_state_drop(state);
    expect_folder("old.tst ");
}
END_TEST

START_TEST(names_of_255_bytes_are_saved)
{
    tn_state *state = prepare();
    for (size_t length = 240; length <= 256; length++) {
        char name[300];
        memset(name, 'n', length);
        strcpy(name + length - 4, ".tst");
        if (length > 255) {
            ck_assert_int_eq(tn_state_save(state, in(name)), TN_ERR_IO);
            ck_assert_int_eq(tn_error_last()->native, ENAMETOOLONG);
            tn_error_clear();
            continue;
        }
        for (int twice = 0; twice < 2; twice++)
            ck_assert_msg(tn_state_save(state, in(name)) == TN_OK, "%s", tn_error_text());
        expect_content(in(name), "TESTabc");
        unlink(in(name));
    }
    tn_state_drop(state);
    expect_folder("");
}
END_TEST

START_TEST(what_is_no_regular_file_is_left_alone)
{
    tn_state *state = prepare();
    char pipe_name[128], sub[128];
    tn_snprint(pipe_name, sizeof pipe_name, "%s/pipe.tst", folder);
    tn_snprint(sub, sizeof sub, "%s/sub.tst", folder);
    ck_assert_int_eq(mkfifo(pipe_name, 0600), 0);
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    ck_assert_int_eq(tn_state_save(state, pipe_name), TN_ERR_IO);
    expect_failure(TN_ERR_IO, "not a regular file");
    ck_assert_ptr_null(tn_state_load(pipe_name));
    expect_failure(TN_ERR_IO, "not a regular file");
    ck_assert_int_eq(tn_state_save(state, sub), TN_ERR_IO);
    expect_failure(TN_ERR_IO, "Is a directory");
    ck_assert_ptr_null(tn_state_load(sub));
    expect_failure(TN_ERR_IO, "no file of tensors");
    ck_assert_int_eq(tn_state_save(state, "no-such-folder/x.tst"), TN_ERR_IO);
    ck_assert_int_eq(tn_error_last()->native, ENOENT);
    expect_failure(
        TN_ERR_IO,
        "no-such-folder/x.tst: cannot create a file in its folder: No such file or directory");
    ck_assert_ptr_null(tn_state_load("no-such-folder/%s%n.tst"));
    expect_failure(TN_ERR_IO, "no-such-folder/%s%n.tst: cannot open");
    tn_state_drop(state);
    expect_folder("pipe.tst sub.tst ");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_extension_chooses_the_writer_and_the_content_the_reader,
        a_save_that_fails_leaves_the_old_file_and_nothing_else,
        a_cancelled_save_leaves_the_old_file,
        a_disk_that_takes_no_more_leaves_the_old_file,
        mode_and_links_of_the_old_file_stay,
        dangling_links_stay_links,
        a_link_of_another_user_in_a_shared_folder_is_not_followed,
        set_uid_bits_go_and_the_owner_stays,
        a_group_that_cannot_be_kept_gets_no_rights,
        names_of_255_bytes_are_saved,
        what_is_no_regular_file_is_left_alone,
        NULL,
    };
    return suite_run("files", tests);
}
