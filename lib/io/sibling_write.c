/* SPDX-License-Identifier: MIT
 *
 * Other files in the folder of the file that is written, for the writers of formats. They get their
 * names when everything is written. The file that the caller asked for gets its name last. */
#include "lib/io/private.h"

struct tn__sibling_write {
    tn__sibling_write *next;
    char *name, *path;
    tn__writer writer;
};

static const char *wrong_in(const char *name)
{
    if (name[0] == '\0')
        return "it is empty";
    if (strchr(name, '/') != NULL || strchr(name, '\\') != NULL)
        return "it has a folder in it";
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return "it is a folder";
    return NULL;
}

/* Returns whether the file that the caller asked for, or a sibling, has that name. */
static bool is_taken(const tn__writer *writer, const char *name)
{
    const char *asked = writer->sink.path + tn__target_folder_length(writer->sink.path);

    if (strcmp(name, asked) == 0 || strcmp(name, writer->place.name) == 0)
        return true;
    for (const tn__sibling_write *known = writer->siblings; known != NULL; known = known->next)
        if (strcmp(known->name, name) == 0)
            return true;
    return false;
}

static void sibling_free(tn__sibling_write *sibling)
{
    tn_free(sibling->name);
    tn_free(sibling->path);
    tn_free(sibling);
}

const tn_sink *tn_sink_sibling(const tn_sink *sink, const char *name)
{
    if (!tn__given(sink != NULL, "tn_sink_sibling: sink") ||
        !tn__given(name != NULL, "tn_sink_sibling: name"))
        return NULL;
    tn__writer *writer = tn__writer_of(sink);
    const char *wrong = wrong_in(name);
    if (writer == NULL || writer->set != NULL) {
        tn_fail(
            TN_ERR_VALUE,
            "tn_sink_sibling: sink: wrong sink; expected the one that the format's function was "
            "called with, for a file that is not part of a set");
        return NULL;
    }
    if (wrong == NULL && is_taken(writer, name))
        wrong = "it is in use";
    if (wrong != NULL) {
        tn_fail(TN_ERR_VALUE,
                "%s: file %q: wrong name: %s; expected a new name in the folder of the file",
                sink->path, name, wrong);
        return NULL;
    }
    tn__sibling_write *made = tn_calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->name = tn_strdup(name);
    made->path = tn__file_set_path(sink->path, name);
    if (made->name == NULL || made->path == NULL ||
        tn__writer_open_sibling(&made->writer, writer, made->path) != TN_OK) {
        sibling_free(made);
        return NULL;
    }
    made->next = writer->siblings;
    writer->siblings = made;
    return &made->writer.sink;
}

tn_status tn__sibling_write_commit(tn__writer *writer)
{
    tn_status status = TN_OK;

    while (writer->siblings != NULL && status == TN_OK) {
        tn__sibling_write *sibling = writer->siblings;
        status = tn__writer_commit(&sibling->writer);
        writer->unlinkable = status != TN_OK && sibling->writer.unlinkable;
        writer->siblings = sibling->next;
        sibling_free(sibling);
    }
    return status;
}

void tn__sibling_write_abort(tn__writer *writer)
{
    while (writer->siblings != NULL) {
        tn__sibling_write *sibling = writer->siblings;
        writer->siblings = sibling->next;
        tn__writer_abort(&sibling->writer);
        sibling_free(sibling);
    }
}
