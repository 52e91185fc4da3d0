/* SPDX-License-Identifier: MIT
 *
 * npz, NumPy's file of several arrays: a zip archive whose members are named NAME.npy. */
#include "formats.h"
#include "zip.h"

#include <string.h>

#define ENDING ".npy"
#define ENDING_SIZE (sizeof ENDING - 1)

static bool is_array(const char *name)
{
    size_t length = strlen(name);
    return length > ENDING_SIZE && strcmp(name + length - ENDING_SIZE, ENDING) == 0;
}

/* Recognizes a zip archive in which every member is an array. */
static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    struct zip zip;
    if (!zip_recognize(source) || zip_open(source, formats_unpacked, &zip) != TN_OK)
        return false;
    bool arrays = true;
    for (int64_t i = 0; i < zip.count; i++)
        arrays = arrays && is_array(zip.at[i].name);
    zip_close(&zip);
    return arrays;
}

static tn_status load_one(struct zip *zip, const struct zip_member *member, tn_state *state)
{
    struct zip_reader reader;
    if (!is_array(member->name))
        return tn_fail(TN_ERR_FORMAT,
                       "%s: member %q: not an array; expected a name that ends in .npy",
                       zip->source->path, member->name);
    char *name = tn_strdup(member->name);
    if (name == NULL)
        return TN_ERR_MEMORY;
    name[strlen(name) - ENDING_SIZE] = '\0';
    uint64_t scope = tn_scope_begin();
    tn_status status = zip_reader_open(zip, member, &reader);
    if (status == TN_OK) {
        status = npy_load(&reader.source, name, state);
        status = zip_reader_close(&reader, status);
    }
    if (status != TN_OK && status != TN_ERR_MEMORY)
        tn_error_prefix("array %q: ", name);
    tn_scope_end(scope);
    tn_free(name);
    return status;
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    (void)self;
    struct zip zip;
    tn_status status = zip_open(source, formats_unpacked, &zip);
    if (status != TN_OK)
        return status;
    uint64_t done = 0;
    for (int64_t i = 0; i < zip.count && status == TN_OK; i++) {
        status = load_one(&zip, &zip.at[i], state);
        done += zip.at[i].packed;
        if (status == TN_OK)
            status = tn_progress_report("reading bytes", done, source->size);
    }
    zip_close(&zip);
    return status;
}

struct array {
    const tn_state *state;
    int64_t index;
};

static tn_status produce(const tn_sink *sink, const void *user)
{
    const struct array *array = user;
    return npy_save(sink, array->state, array->index);
}

static tn_status save_one(struct zip_writer *writer, const tn_state *state, int64_t index)
{
    struct array array = { state, index };
    const char *name = tn_state_name(state, index);
    size_t room = strlen(name) + ENDING_SIZE + 1;
    char *member = tn_malloc(room);
    if (member == NULL)
        return TN_ERR_MEMORY;
    tn_snprint(member, room, "%s" ENDING, name);
    tn_status status = *name != '\0'
                           ? zip_writer_add(writer, member, produce, &array)
                           : tn_fail(TN_ERR_VALUE,
                                     "%s: tensor: empty name; expected a name, which npz requires",
                                     writer->sink->path);
    tn_free(member);
    return status;
}

static tn_status save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    (void)self;
    struct zip_writer writer;
    zip_writer_open(&writer, sink);
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++)
        status = save_one(&writer, state, i);
    if (status == TN_OK)
        status = zip_writer_finish(&writer);
    zip_writer_close(&writer);
    return status;
}

const tn_format_def format_npz = {
    TN_HEAD(tn_format_def),
    .name = "npz",
    .help = "named arrays in a zip archive, as NumPy saves them",
    .extensions = ".npz",
    .recognize = recognize,
    .load = load,
    .save = save,
};
