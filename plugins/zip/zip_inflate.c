/* SPDX-License-Identifier: MIT
 *
 * Unpacks deflated members with zlib. Without zlib, deflated members are refused. */
#include "zip.h"

#ifdef TN_WITH_ZLIB

#include <string.h>
#include <zlib.h>

#define BLOCK 65536

static void *take(void *user, unsigned count, unsigned size)
{
    (void)user;
    return tn_calloc(count, size);
}

static void deallocate(void *user, void *block)
{
    (void)user;
    tn_free(block);
}

static tn_status bad(const tn_source *source, const struct zip_member *member, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: zip, member %q: %s", source->path, member->name, what);
}

/* Reads `take_` bytes of the file into `block` and inflates them to stream->next_out. *room, the
 * free space there, decreases. *code gets the result of inflate(). */
static tn_status feed(const tn_source *source, uint64_t offset, unsigned char *block, size_t take_,
                      z_stream *stream, uint64_t *room, int *code)
{
    tn_status status = source->read(source->user, offset, block, take_);
    if (status != TN_OK)
        return status;
    stream->next_in = block;
    stream->avail_in = (unsigned)take_;
    do {
        unsigned given = *room < (1u << 30) ? (unsigned)*room : 1u << 30;
        stream->avail_out = given;
        *code = inflate(stream, Z_NO_FLUSH);
        *room -= given - stream->avail_out;
    } while (*code == Z_OK && stream->avail_out == 0 && *room > 0);
    if (*code == Z_BUF_ERROR) /* inflate() needs the next block to continue */
        *code = Z_OK;
    return TN_OK;
}

tn_status zip_inflate(const tn_source *source, const struct zip_member *member, uint64_t offset,
                      unsigned char *out)
{
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    stream.zalloc = take;
    stream.zfree = deallocate;
    unsigned char *block = tn_malloc(BLOCK);
    if (block == NULL)
        return TN_ERR_MEMORY;
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        tn_free(block);
        return tn_fail(TN_ERR_MEMORY, "%s: inflating: out of memory", source->path);
    }
    uint64_t left = member->packed, room = member->size;
    int code = Z_OK;
    tn_status status = TN_OK;
    stream.next_out = out;
    while (status == TN_OK && code == Z_OK && left > 0) {
        size_t part = left < BLOCK ? (size_t)left : BLOCK;
        status = feed(source, offset, block, part, &stream, &room, &code);
        offset += part;
        left -= part;
        if (status == TN_OK && code == Z_OK && stream.avail_in > 0)
            break; /* the data inflate to more than member->size bytes */
    }
    if (status == TN_OK && code == Z_MEM_ERROR)
        status = tn_fail(TN_ERR_MEMORY, "%s: inflating: out of memory", source->path);
    else if (status == TN_OK && code != Z_OK && code != Z_STREAM_END)
        status = bad(source, member, "deflated data: damaged");
    else if (status == TN_OK &&
             (code != Z_STREAM_END || room > 0 || left > 0 || stream.avail_in > 0))
        status = bad(source, member,
                     "deflated data: wrong length; expected the length in the directory");
    inflateEnd(&stream);
    tn_free(block);
    return status;
}

#else

tn_status zip_inflate(const tn_source *source, const struct zip_member *member, uint64_t offset,
                      unsigned char *out)
{
    (void)offset, (void)out;
    return tn_fail(
        TN_ERR_NOT_IMPLEMENTED,
        "%s: zip, member %q: deflated; expected a stored member, because Tenon was built without "
        "zlib (configure --with-zlib)",
        source->path, member->name);
}

#endif
