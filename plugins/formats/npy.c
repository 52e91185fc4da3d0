/* SPDX-License-Identifier: MIT
 *
 * npy, NumPy's file of one array. It begins with a magic number, a version, the length of the
 * header and the header, which is a dictionary in Python's syntax:
 * {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 * The rest of the file is the data. The array has no name in the file; in a state it is called
 * arr_0, the name that NumPy gives to unnamed arrays. */
#include "formats.h"

#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define HEADER_MAX 10000 /* the same limit as in NumPy for files that are not trusted */
#define ALIGNMENT 64
#define ARRAY_NAME "arr_0"

/* ---- dtypes ---------------------------------------------------------------------------------- */

static const struct {
    const char *name; /* NumPy's type string without the byte order */
    tn_dtype dtype;
    size_t word; /* size of the units whose bytes are swapped for big-endian files */
} dtypes[] = {
    { "b1", TN_BOOL, 1 }, { "i1", TN_I8, 1 },    { "u1", TN_U8, 1 },  { "i2", TN_I16, 2 },
    { "u2", TN_U16, 2 },  { "i4", TN_I32, 4 },   { "u4", TN_U32, 4 }, { "i8", TN_I64, 8 },
    { "u8", TN_U64, 8 },  { "f2", TN_F16, 2 },   { "f4", TN_F32, 4 }, { "f8", TN_F64, 8 },
    { "c8", TN_C64, 4 },  { "c16", TN_C128, 8 },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- the header as text ---------------------------------------------------------------------- */

struct npy_header {
    int type; /* index in dtypes[] */
    bool swap, fortran;
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS];
    uint64_t data; /* offset of the data in the file */
    uint64_t bytes;
};

struct cursor {
    const tn_source *source;
    const char *start, *at, *end;
};

static tn_status bad(const struct cursor *c, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: npy header, byte %zu: %s", c->source->path,
                   (size_t)(c->at - c->start), what);
}

static char peek(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
    return c->at < c->end ? *c->at : '\0';
}

static bool take(struct cursor *c, char wanted)
{
    if (peek(c) != wanted || c->at == c->end)
        return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t length = strlen(word);
    peek(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* Reads a string in quotes. Fails if it contains an escape sequence or does not fit into `out`. */
static tn_status take_text(struct cursor *c, char *out, size_t size)
{
    char quote = peek(c);
    if (quote != '\'' && quote != '"')
        return bad(c, "string: missing; expected a string in quotes");
    const char *from = ++c->at;
    while (c->at < c->end && *c->at != quote) {
        if ((unsigned char)*c->at < ' ' || *c->at == '\\')
            return bad(c, "string: contains a control character or a backslash");
        c->at++;
    }
    if (c->at == c->end)
        return bad(c, "string: not terminated; expected a closing quote");
    size_t length = (size_t)(c->at - from);
    if (length >= size)
        return bad(c, "string: too long; expected a key or a dtype");
    memcpy(out, from, length);
    out[length] = '\0';
    c->at++;
    return TN_OK;
}

static tn_status take_size(struct cursor *c, int64_t *out)
{
    char digit = peek(c);
    if (digit < '0' || digit > '9')
        return bad(c, "shape: a size is not an integer >= 0");
    *out = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *c->at - '0', out))
            return bad(c, "shape: a size is too large; expected less than 2^63");
    return TN_OK;
}

static tn_status take_shape(struct cursor *c, struct npy_header *header)
{
    if (!take(c, '('))
        return bad(c, "shape: not a tuple; expected (");
    while (!take(c, ')')) {
        if (header->ndim == TN_MAX_DIMS)
            return tn_fail(
                TN_ERR_FORMAT,
                "%s: npy header: too many dimensions; expected at most %d, the limit of Tenon",
                c->source->path, TN_MAX_DIMS);
        tn_status status = take_size(c, &header->shape[header->ndim]);
        if (status != TN_OK)
            return status;
        header->ndim++;
        /* In Python, (3) is a number; a tuple of one element is written (3,). */
        if (!take(c, ',') && (header->ndim == 1 || peek(c) != ')'))
            return bad(c, "comma: missing in the shape");
    }
    return TN_OK;
}

static tn_status take_descr(struct cursor *c, struct npy_header *header)
{
    char text[64];
    if (peek(c) == '[')
        return tn_fail(TN_ERR_FORMAT, "%s: npy header: wrong dtype, got records; expected numbers",
                       c->source->path);
    tn_status status = take_text(c, text, sizeof text);
    if (status != TN_OK)
        return status;
    for (int i = 0; i < DTYPES && text[0] != '\0' && strchr("<>=|", text[0]) != NULL; i++) {
        if (strcmp(text + 1, dtypes[i].name) == 0 && (text[0] != '|' || dtypes[i].word == 1)) {
            header->type = i;
            header->swap = text[0] == '>' && dtypes[i].word > 1;
            return TN_OK;
        }
    }
    return tn_fail(TN_ERR_FORMAT,
                   "%s: npy header: unknown dtype, got %q; expected bool, integers, floats "
                   "of 2, 4 or 8 bytes or complex numbers",
                   c->source->path, text);
}

static tn_status take_entry(struct cursor *c, struct npy_header *header, unsigned *seen)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    char key[32];
    unsigned which = 0;
    int length = 0;
    tn_status status = take_text(c, key, sizeof key);
    if (status != TN_OK)
        return status;
    while (which < 3 && strcmp(key, keys[which]) != 0)
        which++;
    if (which == 3)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: npy header: unknown key, got %q; expected descr, fortran_order and shape",
            c->source->path, key);
    if (*seen & 1u << which)
        return bad(c, "key: occurs twice; expected once");
    *seen |= 1u << which;
    if (!take(c, ':'))
        return bad(c, "colon: missing after a key");
    if (which == 0)
        return take_descr(c, header);
    if (which == 2)
        return take_shape(c, header);
    header->fortran = take_word(c, "True");
    if (header->fortran || take_word(c, "False"))
        return TN_OK;
    while (length < 16 && c->at + length < c->end && c->at[length] > ' ' && c->at[length] <= '~' &&
           strchr(",}", c->at[length]) == NULL)
        length++;
    return tn_fail(TN_ERR_FORMAT,
                   "%s: npy header, byte %zu: fortran_order: wrong value, got \"%.*s\"; expected "
                   "True or False",
                   c->source->path, (size_t)(c->at - c->start), length, c->at);
}

static tn_status parse(struct cursor *c, struct npy_header *header)
{
    unsigned seen = 0;
    if (!take(c, '{'))
        return bad(c, "header: not a dictionary; expected {");
    while (!take(c, '}')) {
        tn_status status = take_entry(c, header, &seen);
        if (status != TN_OK)
            return status;
        if (!take(c, ',') && peek(c) != '}')
            return bad(c, "comma: missing");
    }
    if (seen != 7)
        return bad(c, "descr, fortran_order or shape: missing; expected all three keys");
    peek(c);
    return c->at == c->end
               ? TN_OK
               : bad(c, "text after the dictionary: unexpected; expected the end of the header");
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    char start[MAGIC_SIZE];
    return source->size >= MAGIC_SIZE &&
           source->read(source->user, 0, start, sizeof start) == TN_OK &&
           memcmp(start, MAGIC, MAGIC_SIZE) == 0;
}

/* Reads the bytes before the header's text (magic, version, length). Sets header->data to the
 * offset of that text, and *length to its length. */
static tn_status read_start(const tn_source *source, struct npy_header *header, size_t *length)
{
    unsigned char start[12] = { 0 };
    if (source->size < sizeof start)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: too short for an npy file, got %llu bytes; expected at least 12",
                       source->path, (unsigned long long)source->size);
    tn_status status = source->read(source->user, 0, start, sizeof start);
    if (status != TN_OK)
        return status;
    if (memcmp(start, MAGIC, MAGIC_SIZE) != 0)
        return tn_fail(TN_ERR_FORMAT, "%s: wrong magic number; expected that of an npy file",
                       source->path);
    if (start[6] < 1 || start[6] > 3 || start[7] != 0)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: unknown npy version, got %d.%d; expected 1.0, 2.0 or 3.0", source->path,
                       start[6], start[7]);
    *length = (size_t)start[8] | (size_t)start[9] << 8;
    header->data = 10;
    if (start[6] > 1) {
        *length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
        header->data = 12;
    }
    if (*length > source->size - header->data)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: npy: truncated, got %llu bytes after the first %d; expected a header of %zu "
            "bytes",
            source->path, (unsigned long long)(source->size - header->data), (int)header->data,
            *length);
    if (*length > HEADER_MAX)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: npy header: too large, got %zu bytes; expected at most %d",
                       source->path, *length, HEADER_MAX);
    return TN_OK;
}

/* Checks that the size of the data in the file agrees with dtype and shape. */
static tn_status check_size(const tn_source *source, struct npy_header *header)
{
    uint64_t product = tn_dtype_size(dtypes[header->type].dtype);
    for (int32_t i = 0; i < header->ndim; i++)
        if (__builtin_mul_overflow(product, (uint64_t)header->shape[i], &product))
            return tn_fail(TN_ERR_FORMAT, "%s: npy header: shape: too large, its product overflows",
                           source->path);
    header->bytes = product;
    if (product == source->size - header->data)
        return TN_OK;
    return tn_fail(
        TN_ERR_FORMAT,
        "%s: npy: wrong size, got %llu bytes of data; expected %llu for its dtype and shape",
        source->path, (unsigned long long)(source->size - header->data),
        (unsigned long long)product);
}

static tn_status read_header(const tn_source *source, struct npy_header *header)
{
    char text[HEADER_MAX];
    size_t length = 0;
    *header = (struct npy_header){ 0 };
    tn_status status = read_start(source, header, &length);
    if (status == TN_OK)
        status = source->read(source->user, header->data, text, length);
    if (status != TN_OK)
        return status;
    struct cursor cursor = { source, text, text, text + length };
    header->data += length;
    status = parse(&cursor, header);
    return status == TN_OK ? check_size(source, header) : status;
}

/* Returns a view in Fortran order (the first dimension has stride 1) of a contiguous tensor that
 * was filled with the data of the file. */
static tn_tensor *turned(const struct npy_header *header, tn_tensor *tensor)
{
    int64_t strides[TN_MAX_DIMS], stride = 1;
    for (int32_t i = 0; i < header->ndim; i++) {
        strides[i] = stride;
        stride *= header->shape[i];
    }
    return tn_tensor_as_strided(tensor, (tn_ints){ header->shape, header->ndim },
                                (tn_ints){ strides, header->ndim }, 0);
}

tn_status npy_load(const tn_source *source, const char *name, tn_state *state)
{
    struct npy_header header;
    tn_status status = read_header(source, &header);
    if (status != TN_OK)
        return status;
    tn_tensor *tensor = tn_tensor_empty((tn_ints){ header.shape, header.ndim },
                                        dtypes[header.type].dtype, NULL);
    if (tensor == NULL)
        return tn_error_last_code();
    status = formats_read_values(source, header.data, (size_t)header.bytes,
                                 header.swap ? dtypes[header.type].word : 0, tensor);
    if (status == TN_OK && header.fortran && header.ndim > 1 && header.bytes > 0)
        tensor = turned(&header, tensor);
    if (status == TN_OK && tensor == NULL)
        status = tn_error_last_code();
    return status == TN_OK ? tn_state_set(state, name, tensor) : status;
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    (void)self;
    tn_status status = npy_load(source, ARRAY_NAME, state);
    return status == TN_OK ? tn_progress_report("reading bytes", source->size, source->size)
                           : status;
}

/* ---- writing --------------------------------------------------------------------------------- */

tn_status npy_save(const tn_sink *sink, const tn_state *state, int64_t index)
{
    char out[1024]; /* enough for 16 sizes of at most 19 digits and the rest of the header */
    int type = 0;
    tn_tensor *tensor = tn_state_tensor(state, index);
    while (type < DTYPES && dtypes[type].dtype != tn_tensor_dtype(tensor))
        type++;
    if (type == DTYPES)
        return tn_fail(
            TN_ERR_TYPE,
            "%s: tensor %q: wrong dtype, got %s; expected one that npy can store: bool, an "
            "integer, float16, float32, float64 or complex (a .safetensors file stores more)",
            sink->path, tn_state_name(state, index), tn_dtype_name(tn_tensor_dtype(tensor)));
    if (!tn_device_has_memory(tn_tensor_device(tensor)))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: tensor %q: no values to save, got a tensor on %s; expected a device with memory",
            sink->path, tn_state_name(state, index), tn_device_name(tn_tensor_device(tensor)));
    tn_ints shape = tn_tensor_shape(tensor);
    size_t at = MAGIC_SIZE + 4;
    at += (size_t)tn_snprint(out + at, sizeof out - at,
                             "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                             dtypes[type].word > 1 ? "<" : "|", dtypes[type].name);
    for (int64_t i = 0; i < shape.count; i++)
        at += (size_t)tn_snprint(out + at, sizeof out - at, i > 0 ? " %lld," : "%lld,",
                                 (long long)shape.at[i]);
    if (shape.count > 1)
        at--;
    at += (size_t)tn_snprint(out + at, sizeof out - at, "), }");
    size_t padded = (at + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(out + at, ' ', padded - at);
    out[padded - 1] = '\n';
    memcpy(out, MAGIC "\1", MAGIC_SIZE + 2);
    out[8] = (char)(unsigned char)(padded - 10);
    out[9] = (char)(unsigned char)((padded - 10) >> 8);
    tn_status status = sink->write(sink->user, out, padded);
    return status == TN_OK ? formats_write_values(sink, tensor) : status;
}

static tn_status save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    (void)self;
    if (tn_state_count(state) != 1)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: npy: wrong number of tensors, got %lld; expected one; npz stores several",
            sink->path, (long long)tn_state_count(state));
    return npy_save(sink, state, 0);
}

const tn_format_def format_npy = {
    TN_HEAD(tn_format_def),
    .name = "npy",
    .help = "one array without a name, as NumPy saves it; it is arr_0 here",
    .extensions = ".npy",
    .recognize = recognize,
    .load = load,
    .save = save,
};
