/* SPDX-License-Identifier: MIT
 *
 * Models that are programs of another framework, such as PyTorch's .pt2. They have no spec: the
 * folder of checkpoints has a copy of the program, and files of weights are programs, too. */
#include "program.h"

#include <string.h>
#include <sys/stat.h>

#include <tenon/foreign.h>

#include "model.h"
#include "report_private.h"
#include "train.h"

enum { PATH_SIZE = 4300 };
static const char copy_stem[] = "program";
static const char onnx[] = ".onnx";

/* ---- which program --------------------------------------------------------------------------- */

char *program_digest(tn_module *module)
{
    uint64_t mark = tn_error_mark(), sum = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    size_t size = 0;
    const char *text = tn_program_text(module, &size);
    char digest[30];

    if (text == NULL) {
        tn_error_restore(mark);
        return NULL;
    }
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    tn_snprint(digest, sizeof digest, "%s%016llx",
               strcmp(tn_program_extension(module), onnx) == 0 ? "onnx " : "",
               (unsigned long long)sum);
    return tn_strdup(digest);
}

const char *program_extension(const char *digest)
{
    return strncmp(digest, "onnx ", 5) == 0 ? onnx : ".pt2";
}

/* ---- the copy beside the checkpoints --------------------------------------------------------- */

tn_status program_keep(run *r)
{
    char path[PATH_SIZE];
    tn_status status;

    if (r->program == NULL || r->program_kept)
        return TN_OK;
    tn_snprint(path, sizeof path, "%s/" SAVE_CHECKPOINTS "/%s%s", r->folder, copy_stem,
               program_extension(r->program));
    status = tn_module_save(r->model, path);
    r->program_kept = status == TN_OK;
    return status == TN_OK ? TN_OK : tn_error_prefix("copy of the program: ");
}

tn_module *program_open(const char *checkpoint, const char *digest)
{
    const char *slash = strrchr(checkpoint, '/');
    char path[PATH_SIZE], *found;
    struct stat info;
    tn_module *module;

    if (stat(checkpoint, &info) == 0 && S_ISDIR(info.st_mode))
        tn_snprint(path, sizeof path, "%s/%s%s", checkpoint, copy_stem, program_extension(digest));
    else
        tn_snprint(path, sizeof path, "%.*s%s%s", slash != NULL ? (int)(slash - checkpoint) + 1 : 0,
                   checkpoint, copy_stem, program_extension(digest));
    module = tn_module_from_file(path);
    if (module == NULL) {
        tn_error_prefix("%s: the copy of the program, which the run wrote beside its checkpoints; "
                        "without a copy, a %s file of the run, or the file that --model named if "
                        "it has the same shapes, can take its place: ",
                        checkpoint, program_extension(digest));
        return NULL;
    }
    found = program_digest(module);
    if (found != NULL && strcmp(found, digest) == 0) {
        tn_free(found);
        return module;
    }
    tn_fail(
        TN_ERR_FORMAT,
        "%s: %s: another program, got %s; expected %s, the one that the run wrote: a %s file of "
        "the run, or the file that --model named if it has the same shapes, can take its "
        "place",
        checkpoint, path, found != NULL ? found : "none", digest, program_extension(digest));
    tn_free(found);
    tn_module_drop(module);
    return NULL;
}

/* ---- weights --------------------------------------------------------------------------------- */

tn_status program_save(run *r, tn_module *module, const char *path)
{
    tn_state *files = tn_program_files(module);
    const char *transform = fit_text(r);
    report_text classes = { .status = TN_OK };
    tn_status status = files != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && r->classes > 0) {
        status = save_class_names(r, &classes);
        if (status == TN_OK)
            status = tn_state_set_value(files, MODEL_CLASSES, tn_value_string(classes.bytes));
    }
    if (status == TN_OK && transform != NULL)
        status = tn_state_set_value(files, MODEL_TRANSFORM, tn_value_string(transform));
    report_text_drop(&classes);
    return status == TN_OK ? tn_module_save(module, path) : status;
}
