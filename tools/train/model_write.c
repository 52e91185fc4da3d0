/* SPDX-License-Identifier: MIT
 *
 * Writes models as files that are a MODEL for the other commands. */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <tenon/format.h>

#include "model.h"

static bool ends_with_one_of(const char *path, const char *extensions)
{
    size_t size = strlen(path);

    for (const char *at = extensions; at != NULL && *(at += strspn(at, " ")) != '\0';) {
        size_t length = strcspn(at, " ");

        if (length < size && strncasecmp(path + size - length, at, length) == 0)
            return true;
        at += length;
    }
    return false;
}

bool model_is_tensors(const char *path)
{
    int64_t count = tn_registry_count(TN_KIND_tn_format_def);

    for (int64_t i = 0; i < count; i++) {
        const tn_format_def *format = (const tn_format_def *)tn_registry_find(
            TN_KIND_tn_format_def, tn_registry_name(TN_KIND_tn_format_def, i));

        if (format != NULL && ends_with_one_of(path, format->extensions))
            return true;
    }
    return false;
}

/* Returns whether both paths lead to the same file. */
static bool is_same_file(const char *path, const char *other)
{
    struct stat one, two;

    return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

tn_status model_writable(const char *path, const char *model, const char *weights)
{
    int64_t count = tn_registry_count(TN_KIND_tn_format_def);

    if (is_same_file(path, model + (model[0] == '@')) ||
        (weights != NULL && is_same_file(path, weights)))
        return tn_fail(TN_ERR_VALUE,
                       "--out: %q is the file that is read; expected another file, so that the "
                       "model is not lost",
                       path);
    for (int64_t i = 0; i < count; i++) {
        const char *name = tn_registry_name(TN_KIND_tn_format_def, i);
        const tn_format_def *format = (const tn_format_def *)tn_registry_find(TN_KIND_tn_format_def,
                                                                              name);

        if (format != NULL && ends_with_one_of(path, format->extensions) && format->save != NULL &&
            (format->flags & (TN_FORMAT_TEXTS | TN_FORMAT_VALUES | TN_FORMAT_INDEX)) == 0)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "--out: the format %s has no metadata for the spec of the model, got "
                           "%q; expected a file such as small.safetensors",
                           name, path);
    }
    return count >= 0 ? TN_OK : tn_error_last_code();
}

tn_status model_write(tn_module *net, const model_notes *notes, const char *path)
{
    int64_t length = tn_module_spec(net, NULL, 0);
    char *spec = length >= 0 ? tn_malloc((size_t)length + 1) : NULL;
    tn_state *state = spec != NULL ? tn_module_state(net) : NULL;
    tn_status status = state != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < tn_state_meta_count(notes->texts) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(notes->texts, i);

        status = tn_state_set_meta(state, key, tn_state_meta(notes->texts, key));
    }
    if (status == TN_OK && tn_module_spec(net, spec, (size_t)length + 1) < 0)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = tn_state_set_meta(state, MODEL_SPEC, spec);
    if (status == TN_OK)
        status = tn_state_save(state, path);
    tn_state_drop(state);
    tn_free(spec);
    return status;
}
