/* SPDX-License-Identifier: MIT
 *
 * Lists the formats that can write, from the registry (a new format needs no change here), and
 * compares the contents of folders. */
#ifndef TN_TESTS_IO_REGISTERED_FORMATS_H
#define TN_TESTS_IO_REGISTERED_FORMATS_H

#include "core/plugin/internal.h"
#include "tests/io/states.h"

#include <dirent.h>
#include <fcntl.h>

enum { SAVING_ELEMENTS = 30000 }; /* more than one write each */

/* A path for each format that the plugins can write: "w" and its first extension. */
enum { SAVING_PATHS_MOST = 32, SAVING_PATH = 64 };
static char saving_paths[SAVING_PATHS_MOST][SAVING_PATH];

static inline int saving_count(void)
{
    const tn__entry *const *all = NULL;
    int paths = 0;

    ck_assert_int_eq(tn__plugins_discover(), TN_OK);
    for (int64_t i = 0, count = tn__registry_all(TN_KIND_tn_format_def, &all); i < count; i++) {
        const tn_format_def *format = (const tn_format_def *)all[i]->contribution;
        if (format->save == NULL)
            continue;
        ck_assert_int_lt(paths, SAVING_PATHS_MOST);
        snprintf(saving_paths[paths++], SAVING_PATH, "w%.*s", (int)strcspn(format->extensions, " "),
                 format->extensions);
    }
    ck_assert_int_gt(paths, 0);
    return paths;
}

static inline bool is_set(const char *path)
{
    return strstr(path, ".index.json") != NULL;
}

/* Three tensors of one value; npy holds one. */
static inline tn_state *saving_state(const char *path, double value)
{
    TN_SCOPE;
    static const char *const names[] = { "arr_0", "b", "c" };
    tn_state *state = tn_state_new();
    for (int i = 0; i < (strcmp(path, "w.npy") == 0 ? 1 : 3); i++)
        tn_state_set(state, names[i],
                     tn_tensor_full(TN_SHAPE(SAVING_ELEMENTS), value, TN_F32, NULL));
    return state;
}

static inline tn_status save_as(const tn_state *state, const char *path)
{
    return is_set(path) ? tn_state_save_parts(state, path, 4 * SAVING_ELEMENTS)
                        : tn_state_save(state, path);
}

/* The one value of a whole file. */
static inline double value_of(const char *path)
{
    static float values[SAVING_ELEMENTS];
    tn_state *state = tn_state_load(path);
    ck_assert_msg(state != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_state_count(state), strcmp(path, "w.npy") == 0 ? 1 : 3);
    double value = 0;
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        ck_assert_int_eq(tn_tensor_copy_out(tn_state_tensor(state, i), values, sizeof values),
                         TN_OK);
        value = i == 0 ? values[0] : value;
        bool same = true;
        for (int k = 0; k < SAVING_ELEMENTS; k++)
            same = same && values[k] == (float)value;
        ck_assert_msg(same, "%s: a mix of old and new values", path);
    }
    tn_state_drop(state);
    return value;
}

/* Names, kinds, modes, owners and checksums of all that is in the current folder, hidden files
 * too. */
static inline char *folder_text(void)
{
    struct dirent **list;
    char *text = calloc(1, 1 << 17);
    int count = scandir(".", &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = list[i]->d_name;
        struct stat info;
        uint64_t sum = 14695981039346656037u;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && lstat(name, &info) == 0) {
            int file = S_ISREG(info.st_mode) ? open(name, O_RDONLY | O_CLOEXEC) : -1;
            unsigned char bytes[4096];
            for (ssize_t got; file >= 0 && (got = read(file, bytes, sizeof bytes)) > 0;)
                for (ssize_t k = 0; k < got; k++)
                    sum = (sum ^ bytes[k]) * 1099511628211u;
            if (file >= 0)
                close(file);
            size_t at = strlen(text);
            snprintf(text + at, (1 << 17) - at, "%s %o %u:%u %llx\n", name, info.st_mode,
                     info.st_uid, info.st_gid, (unsigned long long)sum);
        }
        free(list[i]);
    }
    free(list);
    return text;
}

/* The folder is as `before` (which is freed) has it. */
static inline void expect_folder_text(char *before, const char *what)
{
    char *now = folder_text();
    ck_assert_msg(strcmp(before, now) == 0, "%s: before:\n%safterwards:\n%s", what, before, now);
    free(before);
    free(now);
}

/* Makes files that no save may touch, some of them with names like those of Tenon's own files. */
static inline void put_foreign(void)
{
    static const char *const names[] = { "thesis.tex",
                                         ".bashrc",
                                         "w.safetensors.tmp",
                                         ".tenon-x.tmp",
                                         ".tenon-00000000-0000000000000000.tmp.bak",
                                         "w-00001-of-00009.npz",
                                         "w-00001-of-3.safetensors" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int file = open(names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
        ck_assert_int_ge(file, 0);
        ck_assert_int_eq(write(file, names[i], strlen(names[i])), (ssize_t)strlen(names[i]));
        close(file);
    }
}

#endif
