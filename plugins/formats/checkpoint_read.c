/* SPDX-License-Identifier: MIT
 *
 * Reading a checkpoint (see checkpoint.c). The checksum of the header is checked first. Because the
 * file is not trusted, everything in the header is then checked as well. */
#include "formats.h"

#include <stdlib.h>
#include <string.h>

#define START_SIZE 32
#define ALIGNMENT 64
#define DEPTH_MAX 64

struct storage {
    uint64_t place, size, sum; /* place: offset from the start of the data */
    tn_tensor *bytes;          /* uint8, owned; NULL until a tensor uses the storage */
};

struct reading {
    const tn_source *source;
    const unsigned char *at, *end; /* next byte to read, and end, of the header in memory */
    const unsigned char *start;    /* first byte of the header */
    uint64_t data;                 /* offset of the data in the file */
    struct storage *storages;
    uint64_t count;
    uint64_t visits; /* how many bytes of bools may still be checked */
    tn_value **rows; /* memory of an entry's lists and strings, freed after the entry */
    size_t n_rows, room_rows;
};

static tn_status bad(const struct reading *r, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: checkpoint, byte %zu of the header: %s", r->source->path,
                   (size_t)(r->at - r->start), what);
}

static tn_status bad_number(const struct reading *r, const char *what, uint64_t got, int most)
{
    return tn_fail(TN_ERR_FORMAT,
                   "%s: checkpoint, byte %zu of the header: %s: unknown, got %llu; expected 0 to "
                   "%d",
                   r->source->path, (size_t)(r->at - r->start), what, (unsigned long long)got,
                   most);
}

static tn_status take_number(struct reading *r, uint64_t *number)
{
    if (r->end - r->at < 8)
        return bad(r, "number: cut off by the end of the header");
    memcpy(number, r->at, 8);
    r->at += 8;
    return TN_OK;
}

/* Reads a count of items of at least `least` bytes each; fails when the rest of the header is too
 * short for that many. */
static tn_status take_count(struct reading *r, uint64_t least, uint64_t *count)
{
    tn_status status = take_number(r, count);
    if (status == TN_OK && *count > (uint64_t)(r->end - r->at) / least)
        status = bad(r, "count: larger than the rest of the header");
    return status;
}

/* Reads a length and that many bytes; *bytes points into the header. */
static tn_status take_bytes(struct reading *r, const char **bytes, size_t *length)
{
    uint64_t count = 0;
    tn_status status = take_count(r, 1, &count);
    *bytes = (const char *)r->at;
    *length = (size_t)count;
    if (status == TN_OK)
        r->at += count;
    return status;
}

/* Reads a string to a new copy with a NUL at the end, which the caller frees with tn_free. Fails if
 * the string contains a NUL. */
static tn_status take_text(struct reading *r, char **text)
{
    const char *bytes = NULL;
    size_t length = 0;
    tn_status status = take_bytes(r, &bytes, &length);
    *text = NULL;
    if (status == TN_OK && memchr(bytes, '\0', length) != NULL)
        return bad(r, "string: contains a NUL byte");
    if (status != TN_OK)
        return status;
    *text = tn_malloc(length + 1);
    if (*text == NULL)
        return TN_ERR_MEMORY;
    memcpy(*text, bytes, length);
    (*text)[length] = '\0';
    return TN_OK;
}

/* ---- storages -------------------------------------------------------------------------------- */

/* Checks that the padding between a storage and the next one is zero. */
static tn_status check_padding(const struct reading *r, uint64_t at, size_t count)
{
    static const char zeros[ALIGNMENT];
    char bytes[ALIGNMENT];
    tn_status status = r->source->read(r->source->user, r->data + at, bytes, count);
    if (status == TN_OK && memcmp(bytes, zeros, count) != 0)
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: checkpoint, byte %llu: padding after a storage: not zero; expected 0",
                         r->source->path, (unsigned long long)(r->data + at));
    return status;
}

/* Reads the rows of the storages. The storages must be in the order of their rows and, apart from
 * padding, without gaps. */
static tn_status take_storages(struct reading *r)
{
    uint64_t at = 0, count = 0, available = r->source->size - r->data;
    tn_status status = take_count(r, 24, &count);
    if (status != TN_OK)
        return status;
    r->storages = tn_calloc((size_t)count + 1, sizeof *r->storages);
    if (r->storages == NULL)
        return TN_ERR_MEMORY;
    for (r->count = 0; r->count < count && status == TN_OK; r->count++) {
        struct storage *s = &r->storages[r->count];
        status = take_number(r, &s->place);
        if (status == TN_OK)
            status = take_number(r, &s->size);
        if (status == TN_OK)
            status = take_number(r, &s->sum);
        if (status == TN_OK && (s->place != at || at > available || s->size > available - at))
            status = bad(r, "offset of a storage: out of order or beyond the end");
        if (status != TN_OK)
            break;
        size_t padding = (size_t)((ALIGNMENT - s->size % ALIGNMENT) % ALIGNMENT);
        if (padding > 0 && padding <= available - at - s->size)
            status = check_padding(r, at + s->size, padding);
        at += s->size + padding;
    }
    if (status == TN_OK && at != available)
        status = tn_fail(
            TN_ERR_FORMAT,
            "%s: checkpoint: wrong size, got %llu bytes; expected %llu for the storages",
            r->source->path, (unsigned long long)available, (unsigned long long)at);
    return status;
}

/* Checks the checksum of a storage whose values have been read. Skipped for a mapped file, because
 * the check would read all of it, and for values that are not in host memory. */
static tn_status check_sum(const struct reading *r, const struct storage *s, bool mapped)
{
    if (mapped || s->size == 0 || !tn_device_is_host(tn_tensor_device(s->bytes)))
        return TN_OK;
    const void *bytes = tn_tensor_data(s->bytes);
    if (bytes == NULL)
        return tn_error_last_code();
    if (checkpoint_sum(bytes, (size_t)s->size) == s->sum)
        return TN_OK;
    return tn_fail(TN_ERR_FORMAT, "%s: checkpoint: storage of %llu bytes: damaged (wrong checksum)",
                   r->source->path, (unsigned long long)s->size);
}

static tn_status open_storage(struct reading *r, uint64_t number, tn_tensor **bytes)
{
    if (number >= r->count)
        return bad(r, "tensor: uses a storage that does not exist");
    struct storage *s = &r->storages[number];
    tn_status status = TN_OK;
    if (s->bytes == NULL) {
        int64_t size = (int64_t)s->size;
        s->bytes = tn_source_tensor(r->source, r->data + s->place, TN_U8, (tn_ints){ &size, 1 });
        if (s->bytes == NULL)
            return tn_error_last_code();
        tn_tensor_keep(s->bytes);
        status = check_sum(r, s, tn_source_is_mapped(r->source));
    }
    *bytes = s->bytes;
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Fails if a bool tensor contains a byte other than 0 or 1. Such bytes cannot be replaced, because
 * tensors of other dtypes may share them. */
static tn_status check_bools(struct reading *r, const struct storage *s, tn_ints shape,
                             tn_ints strides, int64_t offset)
{
    const tn_device *device = tn_tensor_device(s->bytes);
    uint64_t visits = 0;
    if (s->size == 0 || !tn_device_has_memory(device))
        return TN_OK;
    bool direct = tn_device_is_host(device);
    void *bytes = direct ? tn_tensor_data(s->bytes) : tn_malloc((size_t)s->size);
    if (bytes == NULL)
        return tn_error_last_code();
    tn_status status = direct ? TN_OK
                              : r->source->read(r->source->user, r->data + s->place, bytes,
                                                (size_t)s->size);
    if (status == TN_OK && !formats_are_bools(bytes, s->size, shape, strides, offset, &visits))
        status = bad(r, "bool tensor: wrong byte; expected 0 or 1");
    if (!direct)
        tn_free(bytes);
    /* The total number of bytes checked is limited: a small file could list the same bytes in a
     * million tensors. Files that Tenon writes stay far below the limit. */
    if (status == TN_OK && visits > r->visits)
        status = bad(r, "bool tensors: too many share the same bytes; expected fewer");
    r->visits -= visits < r->visits ? visits : r->visits;
    return status;
}

static tn_status take_tensor(struct reading *r, tn_tensor **tensor)
{
    uint64_t dtype = 0, storage = 0, offset = 0, ndim = 0;
    int64_t dims[2 * TN_MAX_DIMS];
    tn_tensor *bytes = NULL;
    tn_status status = take_number(r, &dtype);
    if (status == TN_OK)
        status = take_number(r, &storage);
    if (status == TN_OK)
        status = take_number(r, &offset);
    if (status == TN_OK)
        status = take_count(r, 16, &ndim);
    if (status != TN_OK)
        return status;
    if (dtype >= TN_DTYPE_COUNT)
        return bad_number(r, "dtype", dtype, TN_DTYPE_COUNT - 1);
    if (ndim > TN_MAX_DIMS)
        return bad(r, "tensor: too many dimensions; expected at most 16");
    if (offset > INT64_MAX)
        return bad(r, "tensor: offset: too large; expected less than 2^63");
    memcpy(dims, r->at, (size_t)ndim * 16);
    r->at += ndim * 16;
    status = open_storage(r, storage, &bytes);
    if (status != TN_OK)
        return status;
    tn_ints shape = { dims, (int64_t)ndim }, strides = { dims + ndim, (int64_t)ndim };
    *tensor = tn_tensor_over(bytes, (tn_dtype)dtype, shape, strides.at, (int64_t)offset);
    if (*tensor == NULL) {
        tn_error_prefix("%s: checkpoint: ", r->source->path);
        return TN_ERR_FORMAT;
    }
    if (dtype == TN_BOOL)
        return check_bools(r, &r->storages[storage], shape, strides, (int64_t)offset);
    return TN_OK;
}

static tn_status take_value(struct reading *r, int depth, tn_value *out);

/* Takes ownership of the memory of a list or string until the state has copied the value. Fails if
 * `row` is NULL (an allocation failed). */
static tn_status keep_row(struct reading *r, void *row)
{
    if (row != NULL && r->n_rows == r->room_rows) {
        size_t room = r->room_rows > 0 ? r->room_rows * 2 : 16;
        tn_value **grown = tn_realloc(r->rows, room * sizeof *grown);
        if (grown != NULL) {
            r->rows = grown;
            r->room_rows = room;
        }
    }
    if (row == NULL || r->n_rows == r->room_rows) {
        tn_free(row);
        return TN_ERR_MEMORY;
    }
    r->rows[r->n_rows++] = row;
    return TN_OK;
}

static tn_status take_row(struct reading *r, int depth, uint32_t kind, tn_value *out)
{
    uint64_t count = 0;
    tn_status status = take_count(r, 8, &count);
    if (status == TN_OK && count > UINT32_MAX)
        status = bad(r, "list: too long; expected less than 2^32 elements");
    if (status != TN_OK)
        return status;
    tn_value *row = tn_calloc((size_t)count + 1, sizeof *row);
    status = keep_row(r, row);
    for (uint64_t i = 0; i < count && status == TN_OK; i++)
        status = take_value(r, depth + 1, &row[i]);
    *out = (tn_value){ .kind = kind, .count = (uint32_t)count, .as = { .list = row } };
    if (status == TN_OK && kind == TN_VALUE_COMPLEX &&
        (count != 2 || row[0].kind != TN_VALUE_FLOAT || row[1].kind != TN_VALUE_FLOAT))
        return bad(r, "complex number: wrong parts; expected two floats");
    return status;
}

static tn_status take_value(struct reading *r, int depth, tn_value *out)
{
    uint64_t kind = 0, bits = 0;
    size_t length = 0;
    char *text = NULL;
    tn_status status = take_number(r, &kind);
    if (status == TN_OK && depth > DEPTH_MAX)
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: checkpoint, byte %zu of the header: lists nested too deep; expected "
                         "at most %d levels",
                         r->source->path, (size_t)(r->at - r->start), DEPTH_MAX);
    if (status != TN_OK)
        return status;
    *out = (tn_value){ .kind = (uint32_t)kind };
    switch (kind) {
    case TN_VALUE_NONE: return TN_OK;
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
    case TN_VALUE_COMPLEX:
    case TN_VALUE_DICT: return take_row(r, depth, (uint32_t)kind, out);
    case TN_VALUE_TENSOR: return take_tensor(r, &out->as.tensor);
    case TN_VALUE_BYTES:
        status = take_bytes(r, &out->as.s, &length);
        out->count = (uint32_t)length;
        return length > UINT32_MAX ? bad(r, "byte string: too long; expected less than 2^32 bytes")
                                   : status;
    case TN_VALUE_STRING:
    case TN_VALUE_SPEC:
        status = take_text(r, &text);
        out->as.s = text;
        return status == TN_OK ? keep_row(r, text) : status;
    case TN_VALUE_BOOL:
    case TN_VALUE_INT:
    case TN_VALUE_UINT:
    case TN_VALUE_FLOAT:
        status = take_number(r, &bits);
        if (status == TN_OK && kind == TN_VALUE_BOOL && bits > 1)
            return bad(r, "bool: wrong byte; expected 0 or 1");
        if (status == TN_OK && kind == TN_VALUE_UINT && bits <= INT64_MAX)
            return bad(r, "uint: too small; expected a number above 2^63 - 1");
        memcpy(&out->as, &bits, sizeof bits);
        return status;
    default: return bad_number(r, "kind of a value", kind, TN_VALUE_UINT);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static tn_status take_entry(struct reading *r, tn_state *state)
{
    char *name = NULL;
    tn_value value = { .kind = TN_VALUE_NONE };
    uint64_t scope = tn_scope_begin();
    tn_status status = take_text(r, &name);
    if (status == TN_OK && tn_state_find(state, name) >= 0)
        status = bad(r, "name: occurs twice; expected once");
    if (status == TN_OK)
        status = take_value(r, 0, &value);
    if (status == TN_OK) {
        status = tn_state_set_value(state, name, value);
        if (status != TN_OK)
            tn_error_prefix("%s: checkpoint: entry %q: ", r->source->path, name);
    }
    tn_free(name);
    for (size_t i = 0; i < r->n_rows; i++)
        tn_free(r->rows[i]);
    r->n_rows = 0;
    tn_scope_end(scope);
    return status;
}

static tn_status take_version(struct reading *r, tn_state *state)
{
    char *path = NULL;
    uint64_t version = 0;
    tn_status status = take_text(r, &path);
    if (status == TN_OK)
        status = take_number(r, &version);
    if (status == TN_OK && version > INT64_MAX)
        status = bad(r, "version: negative; expected 0 or more");
    if (status == TN_OK)
        status = tn_state_set_version(state, path, (int64_t)version);
    tn_free(path);
    return status;
}

static tn_status take_meta(struct reading *r, tn_state *state)
{
    char *key = NULL, *text = NULL;
    tn_status status = take_text(r, &key);
    if (status == TN_OK)
        status = take_text(r, &text);
    if (status == TN_OK)
        status = tn_state_set_meta(state, key, text);
    tn_free(key);
    tn_free(text);
    return status;
}

static tn_status take_all(struct reading *r, tn_state *state)
{
    static tn_status (*const takers[])(struct reading *, tn_state *) = { take_entry, take_version,
                                                                         take_meta };
    for (int i = 0; i < 3; i++) {
        uint64_t count = 0;
        tn_status status = take_count(r, 16, &count);
        for (uint64_t k = 0; k < count && status == TN_OK; k++) {
            status = takers[i](r, state);
            if (status == TN_OK && i == 0 && k % 64 == 0)
                status = tn_progress_report("reading entries", k, count);
        }
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* Reads the header. The rows of the storages are at its end, at the offset in its first number;
 * they are read first, because the entries refer to them. */
static tn_status take_header(struct reading *r, tn_state *state)
{
    uint64_t storages = 0;
    tn_status status = take_number(r, &storages);
    if (status == TN_OK && storages > (uint64_t)(r->end - r->start))
        status = bad(r, "descriptions of the storages: beyond the end");
    if (status != TN_OK)
        return status;
    const unsigned char *entries = r->at, *rows = r->start + storages;
    r->at = rows;
    status = take_storages(r);
    for (const unsigned char *at = r->at; at < r->end && status == TN_OK; at++)
        if (*at != 0)
            status = bad(r,
                         "data after the last storage: unexpected; expected the end of the header");
    const unsigned char *end = r->end;
    r->at = entries;
    r->end = rows;
    if (status == TN_OK && entries > rows)
        status = bad(
            r,
            "descriptions of the storages: wrong place, before the entries; expected after them");
    if (status == TN_OK)
        status = take_all(r, state);
    if (status == TN_OK && r->at != r->end)
        status = bad(r, "data between the metadata and the storages: unexpected; expected none");
    r->end = end;
    return status;
}

/* Reads the first 32 bytes of the file: magic number, version, byte order, length and checksum of
 * the header. */
static tn_status read_start(const tn_source *source, uint64_t *length, uint64_t *sum)
{
    unsigned char start[START_SIZE];
    uint32_t version, order;
    if (source->size < START_SIZE)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: too short for a checkpoint, got %llu bytes; expected at least %d",
                       source->path, (unsigned long long)source->size, START_SIZE);
    tn_status status = source->read(source->user, 0, start, sizeof start);
    if (status != TN_OK)
        return status;
    if (memcmp(start, "TNCKPT\r\n", 8) != 0)
        return tn_fail(TN_ERR_FORMAT, "%s: wrong magic number; expected that of a checkpoint",
                       source->path);
    memcpy(&version, start + 8, 4);
    memcpy(&order, start + 12, 4);
    memcpy(length, start + 16, 8);
    memcpy(sum, start + 24, 8);
    if (order != 0x01020304)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: checkpoint: wrong byte order, got mark %08x; expected 01020304",
                       source->path, order);
    if (version != 1)
        return tn_fail(TN_ERR_VERSION, "%s: checkpoint: unknown version, got %u; expected 1",
                       source->path, version);
    if (*length > source->size - START_SIZE)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: checkpoint: truncated, got %llu bytes after the first %d; expected a "
                       "header of %llu bytes",
                       source->path, (unsigned long long)(source->size - START_SIZE), START_SIZE,
                       (unsigned long long)*length);
    if ((*length + START_SIZE) % ALIGNMENT != 0)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: checkpoint: wrong length of the header, got %llu; expected a multiple "
                       "of %d less %d",
                       source->path, (unsigned long long)*length, ALIGNMENT, START_SIZE);
    return TN_OK;
}

tn_status checkpoint_load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    (void)self;
    uint64_t length = 0, sum = 0;
    tn_status status = read_start(source, &length, &sum);
    if (status != TN_OK)
        return status;
    unsigned char *header = tn_malloc((size_t)length + 1);
    if (header == NULL)
        return TN_ERR_MEMORY;
    struct reading r = { .source = source,
                         .at = header,
                         .start = header,
                         .end = header + length,
                         .data = START_SIZE + length,
                         .visits = source->size * 64 };
    status = source->read(source->user, START_SIZE, header, (size_t)length);
    if (status == TN_OK && checkpoint_sum(header, (size_t)length) != sum)
        status = tn_fail(TN_ERR_FORMAT, "%s: checkpoint: header: damaged (wrong checksum)",
                         source->path);
    if (status == TN_OK)
        status = take_header(&r, state);
    for (uint64_t i = 0; i < r.count; i++)
        tn_tensor_drop(r.storages[i].bytes);
    tn_free(r.storages);
    tn_free(r.rows);
    tn_free(header);
    return status;
}
