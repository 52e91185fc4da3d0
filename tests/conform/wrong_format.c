/* SPDX-License-Identifier: MIT
 *
 * A format for tests of tenon check. Each value of WRONG puts one error into it, which tenon check
 * must find; with WRONG=RIGHT it has none. A file has: "TOY1", the number of tensors and of texts,
 * and for each tensor the length of its name, dtype, number of dimensions, sizes, name, elements.
 */
#include <stdlib.h>
#include <string.h>

#include <tenon/plugin.h>

#define RIGHT 0
#define FLATTENS 1 /* loses the shape */
#define WIDENS 2   /* float16 comes back as float32 */
#define EMPTIES 3  /* leaves out tensors without elements */
#define TRUSTS 4   /* reads beyond the end of the file if a number is too large */
#define DEAF 5     /* ignores that reading failed */
#define MUTE 6     /* ignores that writing failed */
#define WORDLESS 7 /* fails without a message */
#define GREEDY 8   /* recognizes every file as its own */
#define TEXTLESS 9 /* has the flag for texts, but stores none */
#define REFUSES 10 /* every state */
#define PACKS 11   /* writes a transposed tensor with its strides in memory */

struct entry {
    int64_t name, dtype, ndim, sizes[8];
};

static tn_status get(const tn_source *source, uint64_t *at, void *to, size_t bytes)
{
    tn_status status = source->read(source->user, *at, to, bytes);

    *at += bytes;
    if (WRONG == DEAF && status != TN_OK) {
        tn_error_clear();
        return TN_OK;
    }
    return status;
}

static tn_status wrong(const char *what)
{
    return WRONG == WORDLESS ? TN_ERR_FORMAT : tn_fail(TN_ERR_FORMAT, "toy: %s", what);
}

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    char magic[4];

    if (WRONG == GREEDY)
        return true;
    return source->size >= 4 && source->read(source->user, 0, magic, 4) == TN_OK &&
           memcmp(magic, "TOY1", 4) == 0;
}

static tn_status load_one(const tn_source *source, uint64_t *at, tn_state *state)
{
    struct entry e = { .name = 0 };
    char name[256] = "";
    tn_tensor *t;
    tn_status status = get(source, at, &e, sizeof e);

    if (status != TN_OK)
        return status;
    if (e.ndim < 0 || e.ndim > 8 || e.dtype < 0 || e.dtype > TN_C128)
        return wrong("no such dtype or number of dimensions");
    if (WRONG == TRUSTS ? e.name < 0 : e.name < 1 || e.name > 255)
        return wrong("no such length of a name");
    if (WRONG == TRUSTS && e.name > 255)
        abort();
    status = get(source, at, name, (size_t)e.name);
    if (status != TN_OK)
        return status;
    if (WRONG != TRUSTS && WRONG != DEAF && strlen(name) != (size_t)e.name)
        return wrong("a name with a zero byte");
    if (WRONG == FLATTENS && e.ndim == 2) {
        e.sizes[0] *= e.sizes[1];
        e.ndim = 1;
    }
    t = tn_source_tensor(source, *at, (tn_dtype)e.dtype, (tn_ints){ e.sizes, e.ndim });
    if (t == NULL) {
        if (WRONG == DEAF)
            tn_error_clear();
        return WRONG == DEAF ? TN_OK : TN_ERR_FORMAT;
    }
    *at += (uint64_t)tn_tensor_numel(t) * tn_dtype_size((tn_dtype)e.dtype);
    return tn_state_set(state, name, WRONG == WIDENS && e.dtype == TN_F16 ? tn_cast(t, TN_F32) : t);
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    (void)self;
    char magic[4] = "";
    int64_t count = 0;
    uint64_t at = 0;
    tn_status status = source->size >= 12 ? get(source, &at, magic, 4) : wrong("too short");

    if (status == TN_OK && memcmp(magic, "TOY1", 4) != 0)
        status = wrong("no such file");
    if (status == TN_OK)
        status = get(source, &at, &count, sizeof count);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = at > source->size && WRONG == DEAF ? TN_OK : load_one(source, &at, state);
    return status == TN_OK && at != source->size && WRONG != DEAF ? wrong("more than was said")
                                                                  : status;
}

static tn_status put(const tn_sink *sink, const void *from, size_t bytes)
{
    tn_status status = sink->write(sink->user, from, bytes);

    if (WRONG == MUTE && status != TN_OK) {
        tn_error_clear();
        return TN_OK;
    }
    return status;
}

static tn_tensor *in_rows(tn_tensor *t)
{
    tn_tensor *rows = tn_tensor_empty(tn_tensor_shape(t), tn_tensor_dtype(t), tn_tensor_device(t));

    return rows != NULL && tn_tensor_numel(t) > 0 ? tn_copy_(rows, t) : rows;
}

static tn_status save_one(const tn_sink *sink, const char *name, tn_tensor *t)
{
    tn_tensor *plain = WRONG == PACKS ? t : in_rows(t);
    struct entry e = { (int64_t)strlen(name), tn_tensor_dtype(t), tn_tensor_ndim(t), { 0 } };
    size_t bytes = (size_t)tn_tensor_numel(t) * tn_dtype_size(tn_tensor_dtype(t));
    const tn_ints shape = tn_tensor_shape(t);
    tn_status status;

    if (e.name > 255 || e.ndim > 8 || plain == NULL)
        return tn_fail(TN_ERR_VALUE, "toy: a name of at most 255 bytes, at most 8 dimensions");
    for (int64_t d = 0; d < shape.count; d++)
        e.sizes[d] = shape.at[d];
    status = put(sink, &e, sizeof e);
    if (status == TN_OK)
        status = put(sink, name, (size_t)e.name);
    if (status == TN_OK && bytes > 0)
        status = put(sink, tn_tensor_data(plain), bytes);
    return status;
}

static tn_status save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    (void)self;
    int64_t count = 0;
    tn_status status;

    if (WRONG == REFUSES)
        return tn_fail(TN_ERR_VALUE, "toy: not this one");
    for (int64_t i = 0; i < tn_state_count(state); i++)
        count += WRONG != EMPTIES || tn_tensor_numel(tn_state_tensor(state, i)) > 0;
    status = put(sink, "TOY1", 4);
    if (status == TN_OK)
        status = put(sink, &count, sizeof count);
    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++)
        if (WRONG != EMPTIES || tn_tensor_numel(tn_state_tensor(state, i)) > 0)
            status = save_one(sink, tn_state_name(state, i), tn_state_tensor(state, i));
    return status;
}

static const tn_format_def format = { TN_HEAD(tn_format_def),
                                      .name = "toy",
                                      .help = "a format of the tests",
                                      .extensions = ".toy",
                                      .recognize = recognize,
                                      .load = load,
                                      .save = save,
                                      .flags = WRONG == TEXTLESS ? TN_FORMAT_TEXTS : 0 };
TN_PLUGIN("org.example.toy", "1.0.0", &format);
