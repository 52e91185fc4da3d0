/* SPDX-License-Identifier: MIT
 *
 * Writes the files of a run: checkpoints and weights. */
#include "report_private.h"
#include "train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model.h"
#include "program.h"
#include "work.h"

enum { PATH_SIZE = 4200 };
static const char before[] = "step-", after[] = ".checkpoint", best_name[] = "best.checkpoint",
                  best_link[] = "best.new";

/* ---- names ----------------------------------------------------------------------------------- */

static void path_of(const run *r, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/" SAVE_CHECKPOINTS "/%s", r->folder, name);
}

/* Returns the step in the name of a checkpoint, -1 for other files. */
static int64_t step_of(const char *name)
{
    size_t length = strlen(name), rest = sizeof after - 1, begin = sizeof before - 1;
    char digits[24];
    int64_t step;

    if (length <= begin + rest || length - begin - rest >= sizeof digits ||
        strncmp(name, before, begin) != 0 || strcmp(name + length - rest, after) != 0)
        return -1;
    snprintf(digits, sizeof digits, "%.*s", (int)(length - begin - rest), name + begin);
    return tn_read_int(digits, &step) && step >= 0 ? step : -1;
}

static int downwards(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return one < other ? 1 : one > other ? -1 : 0;
}

/* Lists the steps of the checkpoints, the newest first. Sets *count to their number. Returns the
 * list, which the caller frees; NULL without checkpoints, or if there is no memory. */
static int64_t *list_steps(const run *r, int64_t *count)
{
    char path[PATH_SIZE];
    struct dirent *entry;
    int64_t *steps = NULL, capacity = 0;
    DIR *folder;

    *count = 0;
    path_of(r, "", path, sizeof path);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int64_t step = step_of(entry->d_name);

        if (step < 0)
            continue;
        if (*count == capacity) {
            int64_t *more = realloc(steps, (size_t)(capacity = 2 * capacity + 8) * sizeof *more);

            if (more == NULL)
                break;
            steps = more;
        }
        steps[(*count)++] = step;
    }
    if (folder != NULL)
        closedir(folder);
    if (*count > 0)
        qsort(steps, (size_t)*count, sizeof *steps, downwards);
    return steps;
}

static void step_path(const run *r, int64_t step, char *out, size_t size)
{
    char name[64];

    snprintf(name, sizeof name, "%s%08lld%s", before, (long long)step, after);
    path_of(r, name, out, size);
}

int64_t save_newest(const run *r, char *path, size_t size)
{
    int64_t count, *steps = list_steps(r, &count), newest = count > 0 ? steps[0] : -1;

    free(steps);
    if (newest >= 0)
        step_path(r, newest, path, size);
    return newest;
}

bool save_has_best(const run *r, char *path, size_t size)
{
    struct stat is;

    path_of(r, best_name, path, size);
    return stat(path, &is) == 0;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Returns whether a path, of which only the beginning may exist, is a folder or lies inside it. */
static bool is_inside(const char *path, const char *folder)
{
    char part[PATH_MAX], *whole = NULL, *root = realpath(folder, NULL);
    size_t length = root != NULL ? strlen(root) : 0;
    bool inside;

    snprintf(part, sizeof part, "%s", path);
    while (root != NULL && (whole = realpath(part, NULL)) == NULL && errno == ENOENT) {
        char *slash = strrchr(part, '/');

        if (slash == part || strcmp(part, ".") == 0)
            break;
        if (slash != NULL)
            *slash = '\0';
        else
            snprintf(part, sizeof part, ".");
    }
    inside = whole != NULL && strncmp(whole, root, length) == 0 &&
             (whole[length] == '/' || whole[length] == '\0');
    free(whole);
    free(root);
    return inside;
}

/* Returns whether the first sample of a dataset is a file in a folder. */
static bool has_files_in(const char *spec, const char *folder)
{
    uint64_t mark = tn_error_mark();
    tn_dataset *data = tn_dataset_parse(spec), *names = work_names(data);
    char first[PATH_MAX];
    bool found = work_name(names, 0, first, sizeof first) && is_inside(first, folder);

    tn_dataset_drop(names);
    tn_dataset_drop(data);
    tn_error_restore(mark);
    return found;
}

/* Refuses a folder inside that of the samples, of which it would become a class. */
static tn_status check_outside(const run *r, setting which)
{
    const char *spec = setting_text(r->set, which), *at = spec;
    char folder[PATH_MAX];
    struct stat is;

    while (at != NULL && *(at += strcspn(at, "\"'")) != '\0') {
        const char quote[] = { *at, '\0' };
        size_t length = strcspn(++at, quote);

        snprintf(folder, sizeof folder, "%.*s", length < PATH_MAX ? (int)length : 0, at);
        at += length + (at[length] != '\0');
        if (stat(folder, &is) == 0 && S_ISDIR(is.st_mode) && is_inside(r->folder, folder) &&
            has_files_in(spec, folder))
            return tn_fail(TN_ERR_VALUE,
                           "--out: %s is in the folder of --%s, %s, where its files would become "
                           "samples; expected another folder",
                           r->folder, settings_row(which)->name, folder);
    }
    return TN_OK;
}

static tn_status make_folder(const char *path)
{
    char part[PATH_SIZE];

    if (strlen(path) >= sizeof part)
        return tn_fail(TN_ERR_VALUE, "--out: too long, got %zu bytes; expected at most %zu",
                       strlen(path), sizeof part - 1);
    for (size_t i = 1; i <= strlen(path); i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return tn_fail_native(TN_ERR_IO, errno, "--out: the folder %s cannot be made: %s", part,
                                  strerror(errno));
    }
    return TN_OK;
}

tn_status save_begin(run *r)
{
    char path[PATH_SIZE];
    int64_t newest;
    tn_status status;

    path_of(r, "", path, sizeof path);
    status = check_outside(r, SET_DATA);
    if (status == TN_OK)
        status = check_outside(r, SET_VAL);
    if (status == TN_OK)
        status = make_folder(path);
    if (status != TN_OK)
        return status;
    r->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->lock < 0)
        return tn_fail_native(TN_ERR_IO, errno, "--out: %s: %s", path, strerror(errno));
    if (flock(r->lock, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? tn_fail_native(TN_ERR_REFUSED, errno,
                                    "--out: %s: another process trains in this folder; expected "
                                    "another folder, or to wait for its end",
                                    r->folder)
                   : tn_fail_native(TN_ERR_REFUSED, errno, "--out: %s: cannot be locked: %s",
                                    r->folder, strerror(errno));
    newest = save_newest(r, path, sizeof path);
    if (newest >= 0 && !setting_on(r->set, SET_RESUME))
        return tn_fail(TN_ERR_REFUSED,
                       "--out: %s has a run with %lld steps; expected --resume to continue it, or "
                       "another folder",
                       r->folder, (long long)newest);
    return TN_OK;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void remove_old(const run *r)
{
    int64_t count, *steps = list_steps(r, &count), keep = setting_count(r->set, SET_KEEP);
    char path[PATH_SIZE];

    for (int64_t i = keep; i < count; i++) {
        step_path(r, steps[i], path, sizeof path);
        unlink(path);
    }
    free(steps);
}

void save_clean(const run *r)
{
    char path[PATH_SIZE];

    if (!ranks_first(r))
        return;
    path_of(r, best_link, path, sizeof path);
    unlink(path);
    remove_old(r);
}

/* The report is flushed first: a run that continues here finds all of its rows. */
tn_status save_checkpoint(run *r)
{
    char path[PATH_SIZE];
    tn_status status = r->report != NULL ? report_flush(r->report) : TN_OK;

    if (!ranks_first(r))
        return TN_OK;
    if (status == TN_OK)
        status = program_keep(r);
    if (status == TN_OK)
        status = resume_keep(r);
    step_path(r, r->step, path, sizeof path);
    if (status == TN_OK)
        status = tn_checkpoint_save(r->checkpoint, path);
    if (status != TN_OK)
        return tn_error_prefix("checkpoint of step %lld: ", (long long)r->step);
    remove_old(r);
    return TN_OK;
}

tn_status save_best(run *r)
{
    char newest[PATH_SIZE], best[PATH_SIZE], fresh[PATH_SIZE];
    tn_status status;

    if (!ranks_first(r))
        return TN_OK;
    step_path(r, r->step, newest, sizeof newest);
    path_of(r, best_name, best, sizeof best);
    path_of(r, best_link, fresh, sizeof fresh);
    unlink(fresh);
    if (link(newest, fresh) == 0 && rename(fresh, best) == 0) {
        unlink(fresh); /* rename leaves it if both are links to one file */
        return TN_OK;
    }
    unlink(fresh);
    /* File systems without hard links. */
    status = tn_checkpoint_save(r->checkpoint, best);
    return status == TN_OK ? TN_OK : tn_error_prefix("best checkpoint: ");
}

/* ---- weights --------------------------------------------------------------------------------- */

tn_status save_class_names(const run *r, report_text *text)
{
    for (int64_t i = 0; i < r->classes; i++) {
        const char *name = tn_dataset_class_name(r->data, i);
        char number[24];

        snprintf(number, sizeof number, "%lld", (long long)i);
        report_text_put(text, i == 0 ? "[" : ", ");
        report_text_json(text, name != NULL ? name : number);
    }
    report_text_put(text, "]");
    return text->status;
}

const char *save_extension(const run *r)
{
    return r->program != NULL ? program_extension(r->program) : ".safetensors";
}

/* Writes the weights of a module that has a spec. */
static tn_status save_state(run *r, tn_module *module, const char *path)
{
    tn_state *state = tn_module_state(module);
    const char *transform = fit_text(r);
    report_text classes = { .status = TN_OK };
    tn_status status = state != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK)
        status = tn_state_set_meta(state, MODEL_SPEC, r->spec);
    if (status == TN_OK && r->classes > 0) {
        status = save_class_names(r, &classes);
        if (status == TN_OK)
            status = tn_state_set_meta(state, MODEL_CLASSES, classes.bytes);
    }
    if (status == TN_OK && transform != NULL)
        status = tn_state_set_meta(state, MODEL_TRANSFORM, transform);
    if (status == TN_OK)
        status = tn_state_save(state, path);
    tn_state_drop(state);
    report_text_drop(&classes);
    return status;
}

tn_status save_weights(run *r, const char *name)
{
    tn_module *module = r->average != NULL ? tn_module_child(r->average, "module") : r->model;
    char path[PATH_SIZE];

    if (!ranks_first(r))
        return TN_OK;
    snprintf(path, sizeof path, "%s/%s%s", r->folder, name, save_extension(r));
    if (module == NULL)
        return tn_error_last_code();
    return r->program != NULL ? program_save(r, module, path) : save_state(r, module, path);
}
