/* SPDX-License-Identifier: MIT
 *
 * Reading zip archives. The directory at the end of the file lists the members. The file is not
 * trusted: members must not overlap each other or the directory, names must be unique, and sizes
 * are compared with the size of the file before memory is allocated. */
#include "zip.h"

#include <stdlib.h>
#include <string.h>

#define END_SIZE 22
#define END64_SIZE 56
#define LOCATOR_SIZE 20
#define ENTRY_SIZE 46
#define LOCAL_SIZE 30
#define COMMENT_MAX 65535
#define DIRECTORY_MAX (UINT64_C(256) << 20)
/* The largest size that `packed` deflated bytes can have: one byte expands to at most 1032 bytes;
 * the added constant allows for the bits around the data. */
#define DEFLATE_MAX(packed) ((packed)*1032 + 1032)

static uint32_t get2(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get4(const unsigned char *at)
{
    return get2(at) | get2(at + 2) << 16;
}

static uint64_t get8(const unsigned char *at)
{
    return (uint64_t)get4(at) | (uint64_t)get4(at + 4) << 32;
}

static tn_status bad(const tn_source *source, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: zip: %s", source->path, what);
}

static tn_status bad_member(const tn_source *source, const char *name, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: zip, member %q: %s", source->path, name, what);
}

bool zip_recognize(const tn_source *source)
{
    char start[4];
    return source->size >= END_SIZE &&
           source->read(source->user, 0, start, sizeof start) == TN_OK &&
           (memcmp(start, "PK\3\4", 4) == 0 || memcmp(start, "PK\5\6", 4) == 0);
}

/* ---- the end of the file --------------------------------------------------------------------- */

struct place {
    uint64_t offset, size, count;
    uint64_t end; /* offset in the file at which the directory must end */
};

/* Finds the end record, which is the last in the file except for a comment of up to 65535 bytes.
 * Copies it to `end` and its offset to *at. */
static tn_status find_end(const tn_source *source, uint64_t *at, unsigned char *end)
{
    uint64_t reach = END_SIZE + COMMENT_MAX;
    size_t size = (size_t)(source->size < reach ? source->size : reach);
    if (size < END_SIZE)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: too short for a zip archive, got %llu bytes; expected at least %d",
                       source->path, (unsigned long long)source->size, END_SIZE);
    unsigned char *tail = tn_malloc(size);
    if (tail == NULL)
        return TN_ERR_MEMORY;
    tn_status status = source->read(source->user, source->size - size, tail, size);
    size_t found = size;
    for (size_t i = size - END_SIZE + 1; status == TN_OK && found == size && i-- > 0;)
        if (memcmp(tail + i, "PK\5\6", 4) == 0 && get2(tail + i + 20) == size - i - END_SIZE)
            found = i;
    if (status == TN_OK && found == size)
        status = bad(source,
                     "directory: missing at the end; the file is truncated or not an archive");
    if (status == TN_OK) {
        memcpy(end, tail + found, END_SIZE);
        *at = source->size - size + found;
    }
    tn_free(tail);
    return status;
}

/* Looks for the end record of zip64, which comes before the usual end record at `end_at` and holds
 * 64-bit numbers. Sets *place and *found if there is one. */
static tn_status find_end64(const tn_source *source, uint64_t end_at, struct place *place,
                            bool *found)
{
    unsigned char locator[LOCATOR_SIZE], end[END64_SIZE];
    *found = false;
    if (end_at < LOCATOR_SIZE + END64_SIZE)
        return TN_OK;
    tn_status status = source->read(source->user, end_at - LOCATOR_SIZE, locator, sizeof locator);
    if (status != TN_OK || memcmp(locator, "PK\6\7", 4) != 0)
        return status;
    uint64_t at = get8(locator + 8);
    if (at != end_at - LOCATOR_SIZE - END64_SIZE || get4(locator + 4) != 0 ||
        get4(locator + 16) > 1)
        return bad(source, "zip64 end record: wrong offset, or several volumes");
    status = source->read(source->user, at, end, sizeof end);
    if (status != TN_OK)
        return status;
    if (memcmp(end, "PK\6\6", 4) != 0 || get8(end + 4) != END64_SIZE - 12)
        return bad(source, "zip64 end record: malformed");
    if (get4(end + 16) != 0 || get4(end + 20) != 0 || get8(end + 24) != get8(end + 32))
        return bad(source, "volumes: several; expected one");
    *place = (struct place){ get8(end + 48), get8(end + 40), get8(end + 32), at };
    *found = true;
    return TN_OK;
}

static tn_status find_directory(const tn_source *source, struct place *place)
{
    unsigned char end[END_SIZE] = { 0 };
    uint64_t at = 0;
    bool large = false;
    tn_status status = find_end(source, &at, end);
    if (status == TN_OK)
        status = find_end64(source, at, place, &large);
    if (status != TN_OK)
        return status;
    if (!large) {
        if (get2(end + 4) != 0 || get2(end + 6) != 0 || get2(end + 8) != get2(end + 10))
            return bad(source, "volumes: several; expected one");
        *place = (struct place){ get4(end + 16), get4(end + 12), get2(end + 10), at };
    }
    if (place->offset > place->end || place->size != place->end - place->offset ||
        place->count > place->size / ENTRY_SIZE)
        return bad(source, "directory: wrong offset, size or number of entries");
    if (place->size > DIRECTORY_MAX)
        return bad(source, "directory: too large; expected at most 256 MiB");
    return TN_OK;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Reads the numbers that do not fit into four bytes: those fields of the entry are UINT32_MAX, and
 * the extra field of zip64 contains their 64-bit values. */
static tn_status read_extra(const tn_source *source, const unsigned char *extra, size_t size,
                            struct zip_member *member)
{
    uint64_t *const wanted[] = { &member->size, &member->packed, &member->header };
    bool some = false;
    for (int i = 0; i < 3; i++)
        some = some || *wanted[i] == UINT32_MAX;
    while (some && size >= 4) {
        size_t length = get2(extra + 2), at = 0;
        if (length > size - 4)
            break;
        if (get2(extra) == 1) {
            for (int i = 0; i < 3; i++) {
                if (*wanted[i] != UINT32_MAX)
                    continue;
                if (length - at < 8)
                    return bad_member(source, member->name, "zip64 field: too short");
                *wanted[i] = get8(extra + 4 + at);
                at += 8;
            }
            return TN_OK;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
    return some ? bad_member(source, member->name, "zip64 field: missing") : TN_OK;
}

/* Reads one entry of the directory and moves *at to the next entry. The name must end with a NUL,
 * but the byte after the name is still needed, so the name is moved one byte down. */
static tn_status read_entry(const tn_source *source, char **at, const char *end,
                            struct zip_member *member)
{
    unsigned char *entry = (unsigned char *)*at;
    if (end - *at < ENTRY_SIZE || memcmp(entry, "PK\1\2", 4) != 0)
        return bad(source, "directory: malformed");
    size_t name = get2(entry + 28), extra = get2(entry + 30), comment = get2(entry + 32);
    if ((size_t)(end - *at) - ENTRY_SIZE < name + extra + comment)
        return bad(source, "directory: truncated");
    uint32_t flags = get2(entry + 8);
    *member = (struct zip_member){ .header = get4(entry + 42),
                                   .packed = get4(entry + 20),
                                   .size = get4(entry + 24),
                                   .crc = get4(entry + 16),
                                   .method = (uint16_t)get2(entry + 10) };
    *at += ENTRY_SIZE + name + extra + comment;
    memmove(entry + ENTRY_SIZE - 1, entry + ENTRY_SIZE, name);
    entry[ENTRY_SIZE - 1 + name] = '\0';
    member->name = (const char *)entry + ENTRY_SIZE - 1;
    if (strlen(member->name) != name || name == 0)
        return bad(source, "name in the directory: empty or contains a NUL");
    if (flags & 1)
        return bad_member(source, member->name, "encrypted; expected no encryption");
    if (member->method != 0 && member->method != 8)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: zip, member %q: unknown compression method, got %d; expected stored "
                       "(0) or deflated (8)",
                       source->path, member->name, member->method);
    return read_extra(source, entry + ENTRY_SIZE + name, extra, member);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct zip_member *const *)a)->name, (*(struct zip_member *const *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = (*(struct zip_member *const *)a)->header,
             y = (*(struct zip_member *const *)b)->header;
    return x < y ? -1 : x > y;
}

/* Checks that each member ends before the next member or the directory begins, so that no byte of
 * the file belongs to two members, that its sizes are possible, and that names are unique. */
static tn_status check_members(struct zip *zip, uint64_t end)
{
    for (int64_t i = 0; i < zip->count; i++)
        zip->sorted[i] = &zip->at[i];
    qsort(zip->sorted, (size_t)zip->count, sizeof *zip->sorted, by_place);
    for (int64_t i = 0; i < zip->count; i++) {
        struct zip_member *member = zip->sorted[i];
        member->limit = i + 1 < zip->count ? zip->sorted[i + 1]->header : end;
        uint64_t least = LOCAL_SIZE + (uint64_t)strlen(member->name);
        if (member->header > member->limit || member->limit > end ||
            member->limit - member->header < least ||
            member->limit - member->header - least < member->packed)
            return bad_member(zip->source, member->name,
                              "bytes: overlap another member or the directory");
        if (member->method == 0 ? member->size != member->packed
                                : member->size > DEFLATE_MAX(member->packed))
            return bad_member(zip->source, member->name,
                              "size: impossible for the number of compressed bytes");
    }
    qsort(zip->sorted, (size_t)zip->count, sizeof *zip->sorted, by_name);
    for (int64_t i = 1; i < zip->count; i++)
        if (strcmp(zip->sorted[i - 1]->name, zip->sorted[i]->name) == 0)
            return bad_member(zip->source, zip->sorted[i]->name, "occurs twice; expected once");
    return TN_OK;
}

tn_status zip_open(const tn_source *source, zip_limit *limit, struct zip *zip)
{
    struct place place = { 0, 0, 0, 0 };
    memset(zip, 0, sizeof *zip);
    zip->source = source;
    zip->limit = limit;
    tn_status status = find_directory(source, &place);
    if (status != TN_OK)
        return status;
    zip->directory = tn_malloc((size_t)place.size + 1);
    zip->at = tn_calloc((size_t)place.count + 1, sizeof *zip->at);
    zip->sorted = tn_calloc((size_t)place.count + 1, sizeof *zip->sorted);
    if (zip->directory == NULL || zip->at == NULL || zip->sorted == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = source->read(source->user, place.offset, zip->directory, (size_t)place.size);
    char *at = zip->directory;
    for (uint64_t i = 0; status == TN_OK && i < place.count; i++)
        status = read_entry(source, &at, zip->directory + place.size, &zip->at[zip->count++]);
    if (status == TN_OK && at != zip->directory + place.size)
        status = bad(source, "directory: longer than the entries in it");
    if (status == TN_OK)
        status = check_members(zip, place.offset);
    if (status != TN_OK)
        zip_close(zip);
    else
        zip_crc_prepare(&zip->crc);
    return status;
}

void zip_close(struct zip *zip)
{
    tn_free(zip->directory);
    tn_free(zip->at);
    tn_free(zip->sorted);
    memset(zip, 0, sizeof *zip);
}

const struct zip_member *zip_find(const struct zip *zip, const char *name)
{
    struct zip_member wanted = { .name = name }, *key = &wanted;
    struct zip_member **found = zip->count > 0 ? bsearch(&key, zip->sorted, (size_t)zip->count,
                                                         sizeof *zip->sorted, by_name)
                                               : NULL;
    return found != NULL ? *found : NULL;
}

/* ---- a member -------------------------------------------------------------------------------- */

/* Checks whether the name at offset `at` of the file equals `name`; sets *same. */
static tn_status same_name(const tn_source *source, uint64_t at, const char *name, bool *same)
{
    char part[256];
    size_t left = strlen(name);
    *same = true;
    while (left > 0 && *same) {
        size_t size = left < sizeof part ? left : sizeof part;
        tn_status status = source->read(source->user, at, part, size);
        if (status != TN_OK)
            return status;
        *same = memcmp(part, name, size) == 0;
        at += size;
        name += size;
        left -= size;
    }
    return TN_OK;
}

/* Finds the member's data, which follow its local header. The length of the local extra field must
 * be read from there, because it may differ from the one in the directory. */
static tn_status find_data(const struct zip *zip, const struct zip_member *member, uint64_t *begin)
{
    unsigned char local[LOCAL_SIZE];
    tn_status status = zip->source->read(zip->source->user, member->header, local, sizeof local);
    if (status != TN_OK)
        return status;
    size_t name = strlen(member->name);
    bool same = memcmp(local, "PK\3\4", 4) == 0 && get2(local + 26) == name &&
                get2(local + 8) == member->method;
    if (same)
        status = same_name(zip->source, member->header + LOCAL_SIZE, member->name, &same);
    if (status != TN_OK)
        return status;
    if (!same)
        return bad_member(zip->source, member->name, "local header: differs from the directory");
    *begin = member->header + LOCAL_SIZE + name + get2(local + 28);
    if (*begin > member->limit || member->packed > member->limit - *begin)
        return bad_member(zip->source, member->name, "bytes: overlap the next member");
    return TN_OK;
}

/* The read function of a zip_reader. It adds the bytes to the checksum when they continue the bytes
 * summed up so far; bytes that were read before (a header, for example) are not added again. */
static tn_status read_member(void *user, uint64_t offset, void *to, size_t bytes)
{
    struct zip_reader *reader = user;
    const tn_source *file = reader->zip->source;
    if (offset > reader->member->size || bytes > reader->member->size - offset)
        return bad_member(file, reader->member->name, "read beyond the end of the member");
    if (bytes == 0)
        return TN_OK;
    tn_status status = TN_OK;
    if (reader->bytes != NULL)
        memcpy(to, reader->bytes + offset, bytes);
    else
        status = file->read(file->user, reader->begin + offset, to, bytes);
    if (status == TN_OK && offset <= reader->summed && reader->summed - offset < bytes) {
        size_t known = (size_t)(reader->summed - offset);
        reader->sum = zip_crc_add(&reader->zip->crc, reader->sum, (const char *)to + known,
                                  bytes - known);
        reader->summed = offset + bytes;
    }
    return status;
}

tn_status zip_reader_open(struct zip *zip, const struct zip_member *member,
                          struct zip_reader *reader)
{
    *reader = (struct zip_reader){
        .source = { reader, member->size, zip->source->path, read_member },
        .zip = zip,
        .member = member,
    };
    tn_status status = find_data(zip, member, &reader->begin);
    if (status != TN_OK || member->method == 0)
        return status;
    uint64_t more = member->size > member->packed ? member->size - member->packed : 0;
    status = zip->limit(zip->source, &zip->unpacked, more);
    if (status != TN_OK)
        return status;
    reader->bytes = tn_malloc((size_t)member->size + 1);
    if (reader->bytes == NULL)
        return TN_ERR_MEMORY;
    status = zip_inflate(zip->source, member, reader->begin, reader->bytes);
    if (status == TN_OK)
        return TN_OK;
    tn_free(reader->bytes);
    reader->bytes = NULL;
    return status;
}

tn_status zip_reader_close(struct zip_reader *reader, tn_status status)
{
    const struct zip_member *member = reader->member;
    tn_free(reader->bytes);
    reader->bytes = NULL;
    if (status != TN_OK || reader->summed != member->size || reader->sum == member->crc ||
        (member->crc == 0 && reader->zip->crc_is_absent))
        return status;
    return tn_fail(
        TN_ERR_FORMAT,
        "%s: zip, member %q: wrong checksum, got %08x; expected %08x: the file is damaged",
        reader->source.path, member->name, (unsigned)reader->sum, (unsigned)member->crc);
}
