/* SPDX-License-Identifier: MIT
 *
 * Writing zip archives. Members are stored, with size and checksum in the local header before the
 * data, because not every zip reader supports them after the data. The 64-bit fields of zip64 are
 * written only if a number needs them. */
#include "zip.h"

#include <string.h>

#define LOCAL_MAX (30 + 20)
#define ENTRY_MAX (46 + 28)
#define DATE 0x21 /* always 1 January 1980, so that equal states give equal files */

static unsigned char *put(unsigned char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (unsigned char)(number >> (8 * i));
    return at;
}

static uint64_t small(uint64_t number)
{
    return number < UINT32_MAX ? number : UINT32_MAX;
}

static tn_status emit(struct zip_writer *writer, const void *bytes, size_t size)
{
    writer->written += size;
    return writer->sink->write(writer->sink->user, bytes, size);
}

/* ---- a member -------------------------------------------------------------------------------- */

/* State of the sinks of the two passes of zip_writer_add(). The first pass counts the bytes and
 * computes their checksum; the second pass (`real`) counts and writes them. */
struct pass {
    struct zip_writer *writer;
    uint64_t size;
    uint32_t crc;
    bool real;
};

static tn_status take(void *user, const void *from, size_t bytes)
{
    struct pass *pass = user;
    pass->size += bytes;
    if (pass->real)
        return emit(pass->writer, from, bytes);
    pass->crc = zip_crc_add(&pass->writer->crc, pass->crc, from, bytes);
    return TN_OK;
}

static tn_status write_local(struct zip_writer *writer, const struct zip_entry *entry)
{
    unsigned char out[LOCAL_MAX];
    bool large = entry->size >= UINT32_MAX;
    unsigned char *at = put(out, 0x04034b50, 4);
    at = put(at, large ? 45 : 20, 2); /* version of zip that a reader needs */
    at = put(at, 0x800, 2);           /* flags: names are UTF-8 */
    at = put(at, 0, 2);               /* method: stored */
    at = put(at, (uint64_t)DATE << 16, 4);
    at = put(at, entry->crc, 4);
    at = put(at, small(entry->size), 4);
    at = put(at, small(entry->size), 4);
    at = put(at, strlen(entry->name), 2);
    at = put(at, large ? 20 : 0, 2);
    tn_status status = emit(writer, out, (size_t)(at - out));
    if (status == TN_OK)
        status = emit(writer, entry->name, strlen(entry->name));
    if (status != TN_OK || !large)
        return status;
    at = put(out, 1, 2);
    at = put(at, 16, 2);
    at = put(at, entry->size, 8);
    at = put(at, entry->size, 8);
    return emit(writer, out, (size_t)(at - out));
}

static tn_status grow(struct zip_writer *writer)
{
    if (writer->count < writer->capacity)
        return TN_OK;
    int64_t capacity = writer->capacity > 0 ? writer->capacity * 2 : 16;
    struct zip_entry *grown = tn_realloc(writer->at, (size_t)capacity * sizeof *grown);
    if (grown == NULL)
        return TN_ERR_MEMORY;
    writer->at = grown;
    writer->capacity = capacity;
    return TN_OK;
}

void zip_writer_open(struct zip_writer *writer, const tn_sink *sink)
{
    memset(writer, 0, sizeof *writer);
    writer->sink = sink;
    zip_crc_prepare(&writer->crc);
}

tn_status zip_writer_add(struct zip_writer *writer, const char *name,
                         tn_status (*produce)(const tn_sink *sink, const void *user),
                         const void *user)
{
    struct pass first = { writer, 0, 0, false }, second = { writer, 0, 0, true };
    tn_sink counting = { &first, writer->sink->path, take },
            writing = { &second, writer->sink->path, take };
    if (strlen(name) > UINT16_MAX)
        return tn_fail(TN_ERR_VALUE,
                       "%s: name: too long for zip, got %zu bytes; expected at most 65535",
                       writer->sink->path, strlen(name));
    tn_status status = grow(writer);
    if (status == TN_OK)
        status = produce(&counting, user);
    if (status != TN_OK)
        return status;
    struct zip_entry *entry = &writer->at[writer->count];
    *entry = (struct zip_entry){ tn_strdup(name), writer->written, first.size, first.crc };
    if (entry->name == NULL)
        return TN_ERR_MEMORY;
    writer->count++;
    status = write_local(writer, entry);
    if (status == TN_OK)
        status = produce(&writing, user);
    if (status == TN_OK && second.size != first.size)
        status = tn_fail(TN_ERR_RUNTIME,
                         "%s: member %q: changed while it was written; expected the same bytes",
                         writer->sink->path, name);
    return status;
}

/* ---- the directory --------------------------------------------------------------------------- */

static tn_status write_entry(struct zip_writer *writer, const struct zip_entry *entry)
{
    unsigned char out[ENTRY_MAX], extra[28], *more = extra + 4;
    bool large = entry->size >= UINT32_MAX, far = entry->header >= UINT32_MAX;
    if (large) {
        more = put(more, entry->size, 8);
        more = put(more, entry->size, 8);
    }
    if (far)
        more = put(more, entry->header, 8);
    size_t extra_size = large || far ? (size_t)(more - extra) : 0;
    put(put(extra, 1, 2), extra_size > 4 ? extra_size - 4 : 0, 2);
    unsigned char *at = put(out, 0x02014b50, 4);
    at = put(at, 45, 2); /* version of zip that the writer supports */
    at = put(at, large || far ? 45 : 20, 2);
    at = put(at, 0x800, 2);
    at = put(at, 0, 2);
    at = put(at, (uint64_t)DATE << 16, 4);
    at = put(at, entry->crc, 4);
    at = put(at, small(entry->size), 4);
    at = put(at, small(entry->size), 4);
    at = put(at, strlen(entry->name), 2);
    at = put(at, extra_size, 2);
    at = put(at, 0, 8); /* comment length, volume, internal and half of external attributes */
    at = put(at, 0, 2); /* the other half of the external attributes */
    at = put(at, small(entry->header), 4);
    tn_status status = emit(writer, out, (size_t)(at - out));
    if (status == TN_OK)
        status = emit(writer, entry->name, strlen(entry->name));
    return status == TN_OK && extra_size > 0 ? emit(writer, extra, extra_size) : status;
}

tn_status zip_writer_finish(struct zip_writer *writer)
{
    unsigned char out[56 + 20 + 22], *at = out;
    uint64_t begin = writer->written, count = (uint64_t)writer->count;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < writer->count && status == TN_OK; i++)
        status = write_entry(writer, &writer->at[i]);
    if (status != TN_OK)
        return status;
    uint64_t size = writer->written - begin;
    if (count >= UINT16_MAX || size >= UINT32_MAX || begin >= UINT32_MAX) {
        uint64_t here = writer->written;
        at = put(at, 0x06064b50, 4);
        at = put(at, 44, 8);
        at = put(at, 45, 2);
        at = put(at, 45, 2);
        at = put(at, 0, 8);
        at = put(at, count, 8);
        at = put(at, count, 8);
        at = put(at, size, 8);
        at = put(at, begin, 8);
        at = put(at, 0x07064b50, 4);
        at = put(at, 0, 4);
        at = put(at, here, 8);
        at = put(at, 1, 4);
    }
    uint64_t few = count < UINT16_MAX ? count : UINT16_MAX;
    at = put(at, 0x06054b50, 4);
    at = put(at, 0, 4);
    at = put(at, few, 2);
    at = put(at, few, 2);
    at = put(at, small(size), 4);
    at = put(at, small(begin), 4);
    at = put(at, 0, 2);
    return emit(writer, out, (size_t)(at - out));
}

void zip_writer_close(struct zip_writer *writer)
{
    for (int64_t i = 0; i < writer->count; i++)
        tn_free(writer->at[i].name);
    tn_free(writer->at);
    writer->at = NULL;
    writer->count = 0;
}
