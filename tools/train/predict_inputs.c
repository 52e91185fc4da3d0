/* SPDX-License-Identifier: MIT
 *
 * The inputs of tenon predict. The command knows no formats: datasets of plugins that have an
 * option `paths` say which files they read, and files of tensors are read by the formats of
 * plugins. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "predict.h"

/* A spec has at most 1 MiB of text, so many paths become several datasets. */
enum { PATHS_MOST = 1000, LENGTH_MOST = 1 << 17 };

/* ---- groups ---------------------------------------------------------------------------------- */

static predict_group *add_group(predict_inputs *to)
{
    predict_group *grown = tn_realloc(to->at, (size_t)(to->count + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    to->at = grown;
    grown += to->count++;
    *grown = (predict_group){ .dataset = NULL };
    return grown;
}

static tn_status add_path(predict_group *group, const char *path)
{
    char **grown = tn_realloc(group->paths, (size_t)(group->count + 1) * sizeof *grown);
    if (grown == NULL)
        return TN_ERR_MEMORY;
    group->paths = grown;
    grown[group->count] = tn_strdup(path);
    if (grown[group->count] == NULL)
        return TN_ERR_MEMORY;
    group->length += strlen(path);
    group->count++;
    return TN_OK;
}

static void free_group(predict_group *group)
{
    tn_dataset_drop(group->dataset);
    for (int64_t p = 0; p < group->count; p++)
        tn_free(group->paths[p]);
    tn_free(group->paths);
    tn_free(group->reader);
}

void predict_inputs_free(predict_inputs *inputs)
{
    for (int64_t i = 0; i < inputs->count; i++)
        free_group(&inputs->at[i]);
    tn_free(inputs->at);
    if (inputs->standard != NULL)
        fclose(inputs->standard);
    *inputs = (predict_inputs){ .at = NULL };
}

/* ---- datasets that read files ---------------------------------------------------------------- */

static bool has_paths(const char *name)
{
    const tn_head *head = tn_registry_find(TN_KIND_tn_dataset_def, name);
    const tn_option *option = head != NULL ? tn_contribution_options(head) : NULL;
    for (; option != NULL && option->kind != TN_OPTION_KIND_END; option++)
        if (strcmp(option->name, "paths") == 0)
            return true;
    return false;
}

/* Finds the dataset that reads a file or a folder, and sets *reader to its name. If no dataset
 * does, *reader is NULL and `why` has the failure of each dataset. */
static tn_status find_reader(const char *path, const char **reader, char *why, size_t size)
{
    int64_t count = tn_registry_count(TN_KIND_tn_dataset_def), used = 0;
    why[0] = '\0';
    *reader = NULL;
    for (int64_t i = 0; i < count; i++) {
        const char *name = tn_registry_name(TN_KIND_tn_dataset_def, i);
        uint64_t mark = tn_error_mark();
        tn_dataset *dataset = NULL;
        if (!has_paths(name) || !work_reads(name, work_given.transform))
            continue;
        dataset = tn_dataset_new("%s(%q)", name, path);
        if (dataset != NULL) {
            tn_dataset_drop(dataset);
            *reader = name;
            return TN_OK;
        }
        if (tn_error_last_code() != TN_ERR_FORMAT)
            return tn_error_last_code();
        if (used < (int64_t)size)
            used += tn_snprint(why + used, size - (size_t)used, "%s%s", used > 0 ? "; " : "",
                               tn_error_last()->message);
        tn_error_restore(mark);
    }
    return TN_OK;
}

/* Adds a path to the last group if that has the same reader, else to a new group. */
static tn_status add_file(predict_inputs *to, const char *path, const char *reader)
{
    predict_group *group = to->count > 0 ? &to->at[to->count - 1] : NULL;
    if (group == NULL || group->reader == NULL || strcmp(group->reader, reader) != 0 ||
        group->count >= PATHS_MOST || group->length > LENGTH_MOST) {
        group = add_group(to);
        if (group == NULL || (group->reader = tn_strdup(reader)) == NULL)
            return TN_ERR_MEMORY;
        group->has_names = true;
    }
    return add_path(group, path);
}

static tn_status open_group(predict_group *group)
{
    size_t size = 4 * group->length + 4 * (size_t)group->count + 16, used = 0;
    char *text = tn_malloc(size + strlen(group->reader));
    if (text == NULL)
        return TN_ERR_MEMORY;
    size += strlen(group->reader);
    used = (size_t)tn_snprint(text, size, "%s([", group->reader);
    for (int64_t i = 0; i < group->count; i++)
        used += (size_t)tn_snprint(text + used, size - used, "%q,", group->paths[i]);
    tn_snprint(text + used, size - used, "])");
    group->dataset = tn_dataset_parse(text);
    tn_free(text);
    return group->dataset != NULL ? TN_OK : tn_error_last_code();
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Makes a dataset of all tensors of a file. */
static tn_status add_tensors(predict_inputs *to, const char *path, bool single)
{
    TN_SCOPE;
    const tn_device *host = tn_device_find("cpu");
    predict_group *group = add_group(to);
    tn_state *state = NULL;
    tn_tensor **tensors = NULL;
    int64_t count = 0;
    tn_status status = group != NULL ? add_path(group, path) : TN_ERR_MEMORY;

    if (status == TN_OK && host != NULL && tn_device_begin(host) == TN_OK) {
        state = tn_state_load_as(path, TN_FILE_MAP);
        tn_device_end();
    }
    if (state != NULL)
        tensors = tn_malloc((size_t)(tn_state_count(state) + 1) * sizeof *tensors);
    if (tensors == NULL) {
        tn_state_drop(state);
        return tn_error_last_code();
    }
    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind != TN_VALUE_TENSOR)
            continue;
        tensors[count] = single ? tn_unsqueeze(value.as.tensor, 0) : value.as.tensor;
        if (tensors[count] == NULL)
            status = tn_error_last_code();
        else if (tn_tensor_ndim(tensors[count]) == 0)
            status = tn_fail(TN_ERR_VALUE,
                             "%s: %s: no dimensions; expected one for the samples, or --single",
                             path, tn_state_name(state, i));
        count++;
    }
    if (status == TN_OK && count == 0)
        status = tn_fail(TN_ERR_VALUE, "%s: no tensors", path);
    if (status == TN_OK) {
        group->dataset = tn_dataset_of_tensors(tensors, count);
        group->name = group->paths[0];
        group->tensors = count;
        status = group->dataset != NULL ? TN_OK : tn_error_prefix("%s: ", path);
    }
    tn_free(tensors);
    tn_state_drop(state);
    return status;
}

/* ---- standard input -------------------------------------------------------------------------- */

/* Copies standard input to a file without a name, because datasets and formats read files. */
static tn_status copy_standard(predict_inputs *to)
{
    char block[1 << 16];
    size_t got;

    if (to->standard != NULL)
        return tn_fail(TN_ERR_VALUE, "-: standard input can be read once, but was given twice");
    to->standard = tmpfile();
    if (to->standard == NULL)
        return tn_fail(TN_ERR_IO, "-: no temporary file: %s", strerror(errno));
    while ((got = fread(block, 1, sizeof block, stdin)) > 0)
        if (fwrite(block, 1, got, to->standard) != got)
            break;
    if (ferror(stdin))
        return tn_fail(TN_ERR_IO, "-: standard input cannot be read");
    if (fflush(to->standard) != 0 || ferror(to->standard))
        return tn_fail(TN_ERR_IO, "-: the copy of standard input cannot be written: %s",
                       strerror(errno));
    snprintf(to->standard_path, sizeof to->standard_path, "/dev/fd/%d", fileno(to->standard));
    return TN_OK;
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static tn_status add_input(predict_inputs *to, const char *path, bool single)
{
    char why[600], tried[400];
    const char *reader;
    struct stat found;
    uint64_t mark;

    if (strcmp(path, "-") == 0) {
        tn_status status = copy_standard(to);
        if (status != TN_OK)
            return status;
        path = to->standard_path;
    }
    if (stat(path, &found) != 0)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    tn_status status = find_reader(path, &reader, why, sizeof why);
    if (status == TN_OK && reader != NULL)
        status = add_file(to, path, reader);
    if (status != TN_OK || reader != NULL)
        return status;
    mark = tn_error_mark();
    status = add_tensors(to, path, single);
    if (status == TN_OK || (status != TN_ERR_FORMAT && !S_ISDIR(found.st_mode)))
        return status;
    tn_snprint(tried, sizeof tried, "%s", tn_error_last()->message);
    tn_error_restore(mark);
    return tn_fail(TN_ERR_FORMAT, "%s: cannot be read as an input: %s%s%s", path, tried,
                   why[0] != '\0' ? "; " : "", why);
}

/* With --skip-damaged, leaves out an input that cannot be read; a loader leaves out those that the
 * transform does not take. `groups` is the number of groups before it. Returns TN_OK, or the
 * status of the input. */
static tn_status leave_out(predict_inputs *to, tn_status status, int64_t groups)
{
    if (!work_given.skip_damaged || (status != TN_ERR_FORMAT && status != TN_ERR_IO &&
                                     status != TN_ERR_NOT_IMPLEMENTED && status != TN_ERR_REFUSED))
        return status;
    fprintf(stderr, "tenon: input left out: %s\n", tn_error_text());
    tn_error_clear();
    while (to->count > groups)
        free_group(&to->at[--to->count]);
    to->skipped++;
    return TN_OK;
}

tn_status predict_inputs_open(char **paths, int count, bool single, predict_inputs *out)
{
    tn_status status = TN_OK;
    for (int i = 0; i < count && status == TN_OK; i++) {
        int64_t groups = out->count;
        status = add_input(out, paths[i], single);
        if (status != TN_OK)
            status = leave_out(out, status, groups);
    }
    for (int64_t i = 0; i < out->count && status == TN_OK; i++)
        if (out->at[i].dataset == NULL)
            status = open_group(&out->at[i]);
    return status;
}

/* Whether the dataset that a spec begins with names its samples. */
static bool names_samples(const char *spec)
{
    char name[64];
    spec += strspn(spec, " \t\n");
    size_t length = strcspn(spec, "( \t\n");
    if (length >= sizeof name)
        return false;
    memcpy(name, spec, length);
    name[length] = '\0';
    return has_paths(name);
}

tn_status predict_inputs_data(const char *spec, int64_t inputs, predict_inputs *out)
{
    predict_group *group = add_group(out);
    if (group == NULL)
        return TN_ERR_MEMORY;
    group->inputs = inputs;
    group->name = "sample";
    group->has_names = names_samples(spec);
    group->dataset = work_dataset(spec);
    return group->dataset != NULL ? TN_OK : tn_error_last_code();
}
