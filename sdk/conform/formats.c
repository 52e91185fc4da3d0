/* SPDX-License-Identifier: MIT
 *
 * Checks formats, for tenon check. What a format writes must be read back completely; a truncated
 * or damaged file must be refused with a message or read, without a crash. The "files" are in
 * memory: nothing is written to disk. */
#include "conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Files of up to EVERY bytes are damaged at every position, longer ones at about SAMPLES
 * positions. */
enum { EVERY = 600, SAMPLES = 240, LONGEST = 1 << 24, MANY = 340 };

/* A file in memory, which a format reads or writes. */
typedef struct image {
    unsigned char *at;
    size_t size, room;
    size_t limit; /* writing fails after this many bytes */
} image;

static tn_status image_read(void *user, uint64_t offset, void *to, size_t bytes)
{
    const image *file = user;

    if (offset > file->size || bytes > file->size - offset)
        return tn_fail(TN_ERR_FORMAT, "%zu bytes at offset %llu: beyond the end (%zu bytes)", bytes,
                       (unsigned long long)offset, file->size);
    if (bytes > 0)
        memcpy(to, file->at + offset, bytes);
    return TN_OK;
}

static tn_status image_write(void *user, const void *from, size_t bytes)
{
    image *file = user;

    if (bytes > file->limit - file->size)
        return tn_fail(TN_ERR_IO, "write: no space left, simulated by tenon check");
    if (file->size + bytes > file->room) {
        size_t room = 2 * (file->size + bytes);
        unsigned char *more = realloc(file->at, room);

        if (more == NULL)
            return TN_ERR_MEMORY;
        file->at = more;
        file->room = room;
    }
    if (bytes > 0)
        memcpy(file->at + file->size, from, bytes);
    file->size += bytes;
    return TN_OK;
}

static tn_status save(const tn_format_def *format, const tn_state *state, image *file, size_t limit)
{
    tn_sink sink = { file, "memory", image_write };
    uint64_t scope = tn_scope_begin();
    tn_status status;

    file->size = 0;
    file->limit = limit;
    status = format->save(format, &sink, state);
    tn_scope_end(scope);
    return status;
}

/* Loads a state from a file in memory. Returns NULL if the format refuses the file. */
static tn_state *load(const tn_format_def *format, image *file)
{
    tn_source source = { file, file->size, "memory", image_read };
    tn_state *state = tn_state_new();
    uint64_t scope = tn_scope_begin();
    tn_status status = state != NULL ? format->load(format, &source, state) : TN_ERR_MEMORY;

    tn_scope_end(scope);
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

/* ---- what is written ---- */

/* Sets the first two elements of an integer tensor to the largest and the smallest signed integer
 * of its size (uint8: 127 and 128), which a format that converts numbers may lose. Leaves tensors
 * of fewer than 4 elements as they are. */
static void put_extremes(tn_tensor *t, tn_dtype dtype)
{
    size_t size = tn_dtype_size(dtype);
    unsigned char *at = t != NULL && tn_tensor_numel(t) >= 4 ? tn_tensor_data(t) : NULL;

    if (at == NULL || dtype == TN_BOOL || is_float(dtype) || is_complex(dtype))
        return;
    memset(at, 0xff, size);
    at[size - 1] = 0x7f;
    memset(at + size, 0, size);
    at[2 * size - 1] = 0x80;
}

/* Creates a tensor of at most 64 elements: the numbers from 1 on, from 21 on or from 41 on, for the
 * places 0, 1 and 2 (modulo 3). Exceptions: bool has 0 and 1, elements 1 to 4 of floats and complex
 * numbers are NaN, -0 and the infinities, and put_extremes() sets the first two of four or more
 * integers. */
static tn_tensor *sample(tn_dtype dtype, tn_ints shape, int place)
{
    conform_tensor t = { .there = true, .dtype = dtype, .ndim = (int32_t)shape.count, .count = 1 };
    double values[64];
    tn_tensor *made;

    for (int32_t d = 0; d < t.ndim; d++) {
        t.shape[d] = shape.at[d];
        t.count *= shape.at[d];
    }
    for (int i = 0; i < 64; i++)
        values[i] = dtype == TN_BOOL ? (i + place) % 3 == 1 : (double)(1 + i + 20 * (place % 3));
    if (is_float(dtype) || is_complex(dtype)) {
        values[1] = NAN;
        values[2] = -0.0;
        values[3] = INFINITY;
        values[4] = -INFINITY;
    }
    t.values = values;
    made = conform_tensor_make(&t, dtype, tn_device_find("cpu"), CONFORM_PLAIN, NULL);
    put_extremes(made, dtype);
    return made;
}

static bool put(tn_state *state, const char *name, tn_tensor *tensor)
{
    return tensor != NULL && tn_state_set(state, name, tensor) == TN_OK;
}

/* Returns the state, or drops it and returns NULL if it is not complete. */
static tn_state *complete(tn_state *state, bool well)
{
    if (well)
        return state;
    tn_state_drop(state);
    return NULL;
}

/* Creates a state of four tensors of a dtype: a matrix, a tensor without dimensions, an empty one
 * and a transposed one. One name is short, one is long, one contains a space, and one is not ASCII.
 * Returns NULL on failure. */
static tn_state *shapes_of(tn_dtype dtype)
{
    static const char *const names[] = {
        "weight", "model.encoder.layers.0.self_attention.projection.parametrizations.weight.0",
        "a b", "\xc3\xbc.\xe2\x82\xac"
    };
    tn_state *state = tn_state_new();
    bool well = state != NULL && put(state, names[0], sample(dtype, TN_SHAPE(2, 3), 0)) &&
                put(state, names[1], sample(dtype, TN_SCALAR_SHAPE, 1)) &&
                put(state, names[2], sample(dtype, TN_SHAPE(0, 3), 2)) &&
                put(state, names[3], tn_transpose(sample(dtype, TN_SHAPE(2, 1, 3), 3), 0, 2));

    return complete(state, well);
}

/* Returns a new state with `count` entries of `from`, beginning with entry `first`; NULL on
 * failure. */
static tn_state *part(const tn_state *from, int64_t first, int64_t count)
{
    tn_state *state = tn_state_new();

    for (int64_t i = first; state != NULL && i < first + count; i++)
        if (tn_state_set(state, tn_state_name(from, i), tn_state_tensor(from, i)) != TN_OK) {
            tn_state_drop(state);
            state = NULL;
        }
    return state;
}

/* Creates a state of MANY tensors: of all dtypes up to complex128 in turn, with 0 to 2 dimensions,
 * some of them empty. Names have no order, some differ only in case, and some begin like others. */
static tn_state *many_tensors(void)
{
    static const char *const forms[] = { "layers.%d.weight", "layers.%d.Weight", "layers.%d", "%d",
                                         "z%d/a\\b" };
    tn_state *state = tn_state_new();
    bool well = state != NULL;

    for (int i = 0; well && i < MANY; i++) {
        const int64_t sizes[] = { i % 7 == 3 ? 0 : 1 + i % 4, 1 + i % 3 };
        const tn_dtype dtype = (tn_dtype)(i % (TN_C128 + 1));
        char name[64];

        snprintf(name, sizeof name, forms[i % 5], MANY - i / 5);
        well = put(state, name, sample(dtype, (tn_ints){ sizes, i / 5 % 3 }, i));
    }
    return complete(state, well);
}

/* Creates a state of tensors with names of 100 to 1000 bytes that differ only at their end. */
static tn_state *long_names(void)
{
    static const int lengths[] = { 100, 101, 128, 200, 255, 256, 257, 512, 1000 };
    tn_state *state = tn_state_new();
    bool well = state != NULL;

    for (int i = 0; well && i < 18; i++) {
        char name[1001];
        int length = lengths[i / 2];

        memset(name, 'n', sizeof name);
        for (int at = 9; at < length - 1; at += 10)
            name[at] = '.';
        name[length - 1] = (char)('a' + i);
        name[length] = '\0';
        well = put(state, name, sample(TN_F32, TN_SHAPE(2), i));
    }
    return complete(state, well);
}

/* Creates a state whose second tensor has 5 MB, all elements different. */
static tn_state *with_large_tensor(void)
{
    enum { ROWS = 1250, COLUMNS = 1001 };
    tn_state *state = tn_state_new();
    tn_tensor *large = tn_tensor_empty(TN_SHAPE(ROWS, COLUMNS), TN_I32, tn_device_find("cpu"));
    int32_t *at = large != NULL ? tn_tensor_data(large) : NULL;
    bool well = state != NULL && at != NULL;

    for (int32_t i = 0; well && i < ROWS * COLUMNS; i++)
        at[i] = i - 1000;
    well = well && put(state, "first", sample(TN_F16, TN_SHAPE(3), 0)) &&
           put(state, "large", large) && put(state, "last", sample(TN_F64, TN_SHAPE(2, 2), 1));
    return complete(state, well);
}

/* ---- comparing ---- */

/* Returns true if two states differ, and writes the first difference to `words`. In a state of one
 * tensor, the name may differ, because some formats store no name. */
static bool differ(const tn_state *got, const tn_state *expected, char *words, size_t size)
{
    if (tn_state_count(got) != tn_state_count(expected)) {
        snprintf(words, size, "entries: wrong number, got %lld; expected %lld",
                 (long long)tn_state_count(got), (long long)tn_state_count(expected));
        return true;
    }
    for (int64_t i = 0; i < tn_state_count(expected); i++) {
        const char *name = tn_state_name(expected, i);
        int64_t at = tn_state_count(expected) == 1 ? 0 : tn_state_find(got, name);
        tn_value a, b = tn_state_value(expected, i);

        if (at < 0) {
            snprintf(words, size, "`%s`: missing", name);
            return true;
        }
        a = tn_state_value(got, at);
        if (!conform_same_value(a, b)) {
            char is[64] = "", was[64] = "";

            if (a.kind == TN_VALUE_TENSOR && b.kind == TN_VALUE_TENSOR) {
                snprintf(is, sizeof is, " (%s of %d dimensions)",
                         tn_dtype_name(tn_tensor_dtype(a.as.tensor)), tn_tensor_ndim(a.as.tensor));
                snprintf(was, sizeof was, " (%s of %d)",
                         tn_dtype_name(tn_tensor_dtype(b.as.tensor)), tn_tensor_ndim(b.as.tensor));
            }
            snprintf(words, size, "`%s` differs%s from what was written%s", name, is, was);
            return true;
        }
    }
    return false;
}

/* ---- the checks ---- */

typedef struct trial {
    conform *c;
    const tn_format_def *format;
    image file, largest;  /* the current file; the longest file that was written */
    tn_state *of_largest; /* the state that `largest` contains */
    int64_t written;
} trial;

/* Keeps the current file if it is the longest, with the `state` that it contains. */
static void remember(trial *t, const tn_state *state)
{
    image before = t->largest;

    if (t->file.size <= t->largest.size)
        return;
    t->largest = t->file;
    t->file = before;
    tn_state_drop(t->of_largest);
    t->of_largest = part(state, 0, tn_state_count(state));
}

/* Writes a state, reads it back and compares. The format may refuse to save the state, with a
 * message. */
static bool round_trip(trial *t, tn_state *state, const char *what)
{
    char words[800];
    tn_state *got;
    bool well = true;

    t->c->checks++;
    if (state == NULL)
        return conform_fail(t->c, "%s: state: cannot be created: %s", what, tn_error_text());
    if (save(t->format, state, &t->file, LONGEST) != TN_OK) {
        well = tn_error_text()[0] != '\0' ||
               conform_fail(t->c, "%s: saving fails without a message", what);
        tn_error_clear();
        return well;
    }
    t->written++;
    got = load(t->format, &t->file);
    if (got == NULL)
        well = conform_fail(t->c, "%s: does not read what it wrote: %s", what, tn_error_text());
    else if (differ(got, state, words, sizeof words))
        well = conform_fail(t->c, "%s: %s", what, words);
    tn_state_drop(got);
    return well;
}

static bool all_dtypes(trial *t)
{
    for (int dtype = 0; dtype <= TN_C128; dtype++) {
        tn_state *state = shapes_of((tn_dtype)dtype), *one;
        char what[96];
        bool well;

        snprintf(what, sizeof what, "four tensors of %s", tn_dtype_name((tn_dtype)dtype));
        well = round_trip(t, state, what);
        if (well)
            remember(t, state);
        for (int64_t i = 0; well && i < tn_state_count(state); i++) {
            snprintf(what, sizeof what, "a tensor of %s with %d dimensions",
                     tn_dtype_name((tn_dtype)dtype), tn_tensor_ndim(tn_state_tensor(state, i)));
            one = part(state, i, 1);
            well = round_trip(t, one, what);
            if (well)
                remember(t, one);
            tn_state_drop(one);
        }
        tn_state_drop(state);
        if (!well)
            return false;
    }
    return t->written > 0 || conform_fail(t->c, "save: refuses every state: %s", tn_error_text());
}

/* Saves and loads long states. Damage is not tried with their files, because that takes too long.
 */
static bool long_states(trial *t)
{
    static const struct {
        const char *what;
        tn_state *(*make)(void);
    } all[] = { { "a state of 340 tensors", many_tensors },
                { "names of up to 1000 bytes", long_names },
                { "a tensor of 5 MB between two small ones", with_large_tensor } };
    bool well = true;

    for (size_t i = 0; well && i < sizeof all / sizeof *all; i++) {
        tn_state *state = all[i].make();

        well = round_trip(t, state, all[i].what);
        tn_state_drop(state);
    }
    return well;
}

/* Saves and loads texts and values other than tensors, if the flags of the format declare them. */
static bool texts_and_values(trial *t)
{
    static const tn_value inner[] = { { TN_VALUE_INT, 0, { .i = 3 } },
                                      { TN_VALUE_FLOAT, 0, { .f = 0.1 } } };
    tn_state *state = shapes_of(TN_F32), *got = NULL;
    tn_value list = { TN_VALUE_LIST, 2, { .list = inner } };
    const char *text;
    char words[400];
    bool well = state != NULL;

    if (well && (t->format->flags & TN_FORMAT_TEXTS) != 0)
        well = tn_state_set_meta(state, "note", "a \"quoted\" text\nof two lines") == TN_OK;
    if (well && (t->format->flags & TN_FORMAT_VALUES) != 0)
        well = tn_state_set_value(state, "list", list) == TN_OK &&
               tn_state_set_value(state, "text", tn_value_string("words")) == TN_OK &&
               tn_state_set_value(state, "bytes", tn_value_bytes("\0\1\377", 3)) == TN_OK &&
               tn_state_set_value(state, "yes", tn_value_bool(true)) == TN_OK &&
               tn_state_set_version(state, "", 2) == TN_OK;
    t->c->checks++;
    if (!well)
        conform_fail(t->c, "state: cannot be created: %s", tn_error_text());
    else if (save(t->format, state, &t->file, LONGEST) != TN_OK ||
             (got = load(t->format, &t->file)) == NULL)
        well = conform_fail(
            t->c, "flags: promise metadata or values, but saving or loading some fails: %s",
            tn_error_text());
    else if (differ(got, state, words, sizeof words))
        well = conform_fail(t->c, "metadata or values, which its flags promise: %s", words);
    else if ((text = tn_state_meta(state, "note")) != NULL &&
             (tn_state_meta(got, "note") == NULL || strcmp(tn_state_meta(got, "note"), text) != 0))
        well = conform_fail(t->c, "flags: promise metadata, but `note` differs");
    else if ((t->format->flags & TN_FORMAT_VALUES) != 0 && tn_state_version(got, "") != 2)
        well = conform_fail(t->c,
                            "version of the root: wrong, got %lld; expected 2, because the flags "
                            "promise versions",
                            (long long)tn_state_version(got, ""));
    tn_state_drop(state);
    tn_state_drop(got);
    return well;
}

/* Returns the next position to damage: every position of a short file; of a long file every
 * position near both ends, and a sample in between. */
static size_t next_position(size_t at, size_t size)
{
    size_t step = size <= EVERY || at < EVERY / 4 || at + EVERY / 4 > size ? 1 : size / SAMPLES + 1;

    return at + step;
}

/* Checks that a damaged file is either refused with a message, or loaded so that all tensors are
 * readable. With `same`, a loaded state must also equal the one that was written. */
static bool judge(trial *t, image *file, bool same, const char *what, size_t at)
{
    tn_state *got;
    char words[400];
    bool well = true;

    t->c->checks++;
    tn_error_clear();
    got = load(t->format, file);
    if (got == NULL)
        well = tn_error_text()[0] != '\0' ||
               conform_fail(t->c, "%s %zu of %zu: refused without a message", what, at,
                            t->largest.size);
    else if (same && differ(got, t->of_largest, words, sizeof words))
        well = conform_fail(t->c, "%s %zu of %zu: was read, and %s", what, at, t->largest.size,
                            words);
    for (int64_t i = 0; well && got != NULL && i < tn_state_count(got); i++) {
        tn_value value = tn_state_value(got, i);
        size_t size = 0;
        void *bytes = value.kind == TN_VALUE_TENSOR ? conform_bytes(value.as.tensor, &size) : NULL;

        if (value.kind == TN_VALUE_TENSOR && bytes == NULL)
            well = conform_fail(t->c, "%s %zu of %zu: entry %lld exists but cannot be read: %s",
                                what, at, t->largest.size, (long long)i, tn_error_text());
        free(bytes);
    }
    tn_state_drop(got);
    tn_error_clear();
    return well;
}

/* Like judge(), for a file that is loaded twice before and once more: memory that stays in use each
 * time is lost. */
static bool judge_memory(trial *t, image *file, bool same, const char *what, size_t at)
{
    int64_t before, after;

    if (!judge(t, file, same, what, at) || !judge(t, file, same, what, at))
        return false;
    before = conform_memory_blocks();
    if (!judge(t, file, same, what, at))
        return false;
    after = conform_memory_blocks();
    return after <= before ||
           conform_fail(t->c, "%s %zu of %zu: a leak: loading it keeps %lld blocks of memory", what,
                        at, t->largest.size, (long long)(after - before));
}

/* Loads files that are cut at each position, and files with one changed byte. */
static bool damaged(trial *t)
{
    image cut = t->largest;
    bool well = true;

    /* memory of the exact length, so that tools such as AddressSanitizer detect reads beyond the
     * end */
    for (size_t at = 0; well && at < t->largest.size; at = next_position(at, t->largest.size)) {
        cut.size = at;
        cut.at = malloc(at + (at == 0));
        if (cut.at == NULL)
            return conform_fail(t->c, "out of memory");
        memcpy(cut.at, t->largest.at, at);
        well = judge_memory(t, &cut, true, "a file cut after byte", at);
        free(cut.at);
    }
    cut = t->largest;
    for (size_t at = 0; well && at < t->largest.size; at = next_position(at, t->largest.size)) {
        static const unsigned char changes[] = { 0x01, 0x80, 0xff };

        for (size_t k = 0; well && k < sizeof changes; k++) {
            cut.at[at] ^= changes[k];
            well = judge(t, &cut, false, "a file with a changed byte at", at);
            cut.at[at] ^= changes[k];
        }
    }
    return well && judge(t, &cut, true, "after damaged files, the whole file, byte", 0);
}

/* Lets writing fail after each number of bytes: save() must return an error. */
static bool notices_that_writing_failed(trial *t)
{
    image file = { NULL, 0, 0, 0 };
    bool well = true;

    for (size_t at = 0; well && at < t->largest.size; at = next_position(at, t->largest.size)) {
        t->c->checks++;
        if (save(t->format, t->of_largest, &file, at) == TN_OK)
            well = conform_fail(t->c,
                                "save: returns TN_OK, but writing failed after %zu of %zu bytes",
                                at, t->largest.size);
        tn_error_clear();
    }
    free(file.at);
    return well;
}

static bool recognizes(trial *t)
{
    static const char zeros[64];
    static const struct {
        const char *what, *bytes;
        size_t size;
    } others[] = { { "an empty file", "", 0 },
                   { "a text", "Dear Sir or Madam,\n", 19 },
                   { "64 zeros", zeros, sizeof zeros } };
    tn_source own = { &t->largest, t->largest.size, "memory", image_read };

    if (t->format->recognize == NULL)
        return true;
    t->c->checks++;
    if (t->written > 0 && !t->format->recognize(t->format, &own))
        return conform_fail(t->c, "recognize: does not recognize what it wrote");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++, t->c->checks++) {
        image file = { (unsigned char *)(uintptr_t)others[i].bytes, others[i].size, 0, 0 };
        tn_source source = { &file, file.size, "memory", image_read };

        if (t->format->recognize(t->format, &source))
            return conform_fail(t->c, "recognize: accepts %s as one of its files", others[i].what);
    }
    tn_error_clear();
    return true;
}

/* Loads random bytes, but first an empty file and one of zeros. The format may refuse them, but
 * only with a message. */
static bool refuses_noise(trial *t)
{
    unsigned char bytes[256];
    uint64_t draw = 0x9e3779b97f4a7c15u;

    for (int turn = 0; turn < 32; turn++) {
        image file = { bytes, (size_t)(turn * 8), sizeof bytes, 0 };
        tn_state *got;

        for (size_t i = 0; i < sizeof bytes; i++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = turn < 2 ? 0 : (unsigned char)(draw >> 56);
        }
        t->c->checks++;
        got = load(t->format, &file);
        if (got == NULL && tn_error_text()[0] == '\0')
            return conform_fail(t->c, "%zu random bytes: refused without a message", file.size);
        tn_state_drop(got);
        tn_error_clear();
    }
    return true;
}

void conform_format(conform *c)
{
    trial t = { .c = c,
                .format = (const tn_format_def *)(const void *)tn_registry_find(
                    TN_KIND_tn_format_def, c->subject) };
    uint64_t scope = tn_scope_begin();

    if (t.format == NULL)
        conform_fail(c, "%s", tn_error_text());
    else if (t.format->flags & TN_FORMAT_INDEX)
        conform_skip(c, "the format stores names of files, which the core reads and writes");
    else if (t.format->load == NULL && t.format->save == NULL && t.format->load_module == NULL &&
             t.format->save_module == NULL)
        conform_fail(c, "format: no function; expected at least one of load, save, load_module "
                        "and save_module");
    else if (tn_plugin_activate(c->plugin->id) != TN_OK)
        conform_skip(c, "%s", tn_error_text());
    if (c->verdict == CONFORM_PASS && t.format->load != NULL && refuses_noise(&t) &&
        t.format->save != NULL && all_dtypes(&t))
        (void)(((t.format->flags & (TN_FORMAT_TEXTS | TN_FORMAT_VALUES)) == 0 ||
                texts_and_values(&t)) &&
               damaged(&t) && notices_that_writing_failed(&t) && long_states(&t));
    if (c->verdict == CONFORM_PASS)
        recognizes(&t);
    tn_state_drop(t.of_largest);
    free(t.file.at);
    free(t.largest.at);
    tn_error_clear();
    tn_scope_end(scope);
}
