/* SPDX-License-Identifier: MIT
 *
 * A format with the errors (mutant_choose.h) that formats can have. A file has: "TOY1", the numbers
 * of tensors and of texts, and for each tensor the length of its name, dtype, number of dimensions,
 * sizes, name, elements; for each text the lengths of name and text, and both. */
#include <ctype.h>
#include <math.h>

#include "mutant_choose.h"

struct entry {
    int64_t name, dtype, ndim, sizes[8];
};

/* ---- reading --------------------------------------------------------------------------------- */

static tn_status get(const tn_source *source, uint64_t *at, void *to, size_t bytes)
{
    tn_status status;

    if (is("cut-accepted") && *at + bytes > source->size) {
        memset(to, 0, bytes);
        *at += bytes;
        return TN_OK;
    }
    status = source->read(source->user, *at, to, bytes);
    *at += bytes;
    return status;
}

static tn_status refused(const char *what)
{
    return is("refuses-silently") ? TN_ERR_FORMAT : tn_fail(TN_ERR_FORMAT, "toy: %s", what);
}

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    char magic[4];

    (void)self;
    if (is("recognizes-all"))
        return true;
    return source->size >= 4 && source->read(source->user, 0, magic, 4) == TN_OK &&
           memcmp(magic, is("recognizes-none") ? "TOY2" : "TOY1", 4) == 0;
}

static tn_tensor *cut_tensor(const tn_source *source, uint64_t at, const struct entry *e)
{
    tn_tensor *t = tn_tensor_full((tn_ints){ e->sizes, e->ndim }, 0, (tn_dtype)e->dtype,
                                  tn_device_find("cpu"));
    uint64_t bytes = t != NULL ? (uint64_t)tn_tensor_numel(t) * tn_dtype_size((tn_dtype)e->dtype)
                               : 0;
    uint64_t left = at < source->size ? source->size - at : 0;

    if (t != NULL && bytes > 0 &&
        source->read(source->user, at, tn_tensor_data(t), bytes < left ? bytes : left) != TN_OK)
        return NULL;
    return t;
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
        return refused("no such dtype or number of dimensions");
    if (e.name < 1 || (e.name > 255 && !is("length-trusted")))
        return refused("no such length of a name");
    if (is("length-trusted") && e.name > 255)
        abort(); /* as a write past the end of `name` may */
    status = get(source, at, name, (size_t)e.name);
    if (status != TN_OK)
        return status;
    if (strlen(name) != (size_t)e.name)
        return refused("a name with a zero byte");
    for (char *letter = name; is("case-lost") && *letter != '\0'; letter++)
        *letter = (char)tolower((unsigned char)*letter);
    if (is("shape-lost") && e.ndim == 2) {
        e.sizes[0] *= e.sizes[1];
        e.ndim = 1;
    }
    if (is("dims-reversed") && e.ndim == 2) {
        int64_t first = e.sizes[0];

        e.sizes[0] = e.sizes[1];
        e.sizes[1] = first;
    }
    t = is("cut-accepted") || is("cut-data-accepted")
            ? cut_tensor(source, *at, &e)
            : tn_source_tensor(source, *at + (is("offset-shifted") ? 1 : 0), (tn_dtype)e.dtype,
                               (tn_ints){ e.sizes, e.ndim });
    if (t == NULL)
        return TN_ERR_FORMAT;
    *at += (uint64_t)tn_tensor_numel(t) * tn_dtype_size((tn_dtype)e.dtype);
    if (is("dtype-lost") && e.dtype == TN_F16)
        t = tn_cast(t, TN_F32);
    return tn_state_set(state, name, t);
}

static tn_status load_text(const tn_source *source, uint64_t *at, tn_state *state)
{
    int64_t sizes[2] = { 0 };
    char name[256] = "", text[1024] = "";
    tn_status status = get(source, at, sizes, sizeof sizes);

    if (status == TN_OK && (sizes[0] < 1 || sizes[0] > 255 || sizes[1] < 0 || sizes[1] > 1023))
        return refused("no such length of a text");
    if (status == TN_OK)
        status = get(source, at, name, (size_t)sizes[0]);
    if (status == TN_OK)
        status = get(source, at, text, (size_t)sizes[1]);
    if (status == TN_OK && (strlen(name) != (size_t)sizes[0] || strlen(text) != (size_t)sizes[1]))
        return refused("a text with a zero byte");
    return status == TN_OK ? tn_state_set_meta(state, name, text) : status;
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    static bool failed_before;
    char magic[4] = "";
    int64_t counts[2] = { 0 };
    uint64_t at = 0;
    tn_status status = source->size >= 20 ? get(source, &at, magic, 4) : refused("too short");

    (void)self;
    if (status == TN_OK && memcmp(magic, "TOY1", 4) != 0)
        status = refused("no such file");
    if (status == TN_OK)
        status = get(source, &at, counts, sizeof counts);
    for (int64_t i = 0; i < counts[0] && status == TN_OK; i++)
        status = load_one(source, &at, state);
    for (int64_t i = 0; i < counts[1] && status == TN_OK; i++)
        status = load_text(source, &at, state);
    if (status == TN_OK && at != source->size && !is("cut-accepted") && !is("cut-data-accepted"))
        status = refused("more than was said");
    if (status != TN_OK && is("leaks"))
        (void)!tn_malloc(64);
    if (is("failure-kept")) {
        failed_before = failed_before || status != TN_OK;
        return failed_before ? refused("a file before this one was wrong") : TN_OK;
    }
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static tn_status put(const tn_sink *sink, const void *from, size_t bytes)
{
    tn_status status = sink->write(sink->user, from, bytes);

    if (is("write-error-ignored") && status != TN_OK) {
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

/* Changes the numbers that the error of this mutant loses: NaN, -0, infinity or large integers. */
static void change_numbers(tn_tensor *t)
{
    double *at = tn_tensor_dtype(t) == TN_F64 ? tn_tensor_data(t) : NULL;
    int64_t *whole = tn_tensor_dtype(t) == TN_I64 ? tn_tensor_data(t) : NULL;

    for (int64_t i = 0; i < tn_tensor_numel(t); i++) {
        if (at != NULL && is("nan-lost") && isnan(at[i]))
            at[i] = 0;
        if (at != NULL && is("minus-zero-lost") && at[i] == 0)
            at[i] = 0;
        if (at != NULL && is("infinity-lost") && isinf(at[i]))
            at[i] = at[i] > 0 ? 1.7e308 : -1.7e308;
        if (whole != NULL && is("long-as-double"))
            whole[i] = (int64_t)(double)(whole[i] / 2) * 2 + whole[i] % 2 * (whole[i] < 1 << 30);
    }
}

/* The dtype of the first tensor of the file that is being written. */
static tn_dtype first;

static tn_status save_one(const tn_sink *sink, const char *name, tn_tensor *t)
{
    tn_tensor *plain = is("strides-kept") ? t : in_rows(t);
    struct entry e = { (int64_t)strlen(name), tn_tensor_dtype(t), tn_tensor_ndim(t), { 0 } };
    size_t bytes = (size_t)tn_tensor_numel(t) * tn_dtype_size(tn_tensor_dtype(t));
    const tn_ints shape = tn_tensor_shape(t);
    tn_status status;

    if ((e.name > 255 && !is("name-cut") && !is("long-name-cut")) || e.ndim > 8 || plain == NULL)
        return tn_fail(TN_ERR_VALUE, "toy: a name of at most 255 bytes, at most 8 dimensions");
    if (e.name > 32 && is("name-cut"))
        e.name = 32;
    if (e.name > 255)
        e.name = 255;
    if (is("dtype-of-first")) {
        if (first == TN_DTYPE_AUTO)
            first = (tn_dtype)e.dtype;
        plain = tn_cast(plain, first);
        e.dtype = first;
        bytes = (size_t)tn_tensor_numel(t) * tn_dtype_size(first);
    }
    if (is("large-cut") && bytes > 1 << 20)
        memset((char *)tn_tensor_data(plain) + (1 << 20), 0, bytes - (1 << 20));
    if (bytes > 0 && !is("strides-kept"))
        change_numbers(plain);
    for (int64_t d = 0; d < shape.count; d++)
        e.sizes[d] = shape.at[d];
    status = put(sink, &e, sizeof e);
    if (status == TN_OK)
        status = put(sink, name, (size_t)e.name);
    if (status == TN_OK && bytes > 0)
        status = put(sink, tn_tensor_data(plain), bytes);
    return status;
}

static tn_status save_text(const tn_sink *sink, const char *name, const char *text)
{
    int64_t sizes[2] = { (int64_t)strlen(name), (int64_t)strlen(text) };
    tn_status status = put(sink, sizes, sizeof sizes);

    if (sizes[0] > 255 || sizes[1] > 1023)
        return tn_fail(TN_ERR_VALUE, "toy: texts of at most 1023 bytes");
    if (status == TN_OK)
        status = put(sink, name, (size_t)sizes[0]);
    return status == TN_OK && sizes[1] > 0 ? put(sink, text, (size_t)sizes[1]) : status;
}

static tn_status save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    int64_t counts[2] = { 0, is("texts-lost") ? 0 : tn_state_meta_count(state) };
    int64_t total = tn_state_count(state);
    tn_status status;

    (void)self;
    first = TN_DTYPE_AUTO;
    if (is("many-cut") && total > 256)
        total = 256;
    if (is("save-refuses"))
        return tn_fail(TN_ERR_VALUE, "toy: not this one");
    if (is("save-silent") && total > 1)
        return TN_ERR_VALUE;
    for (int64_t i = 0; i < total; i++)
        counts[0] += !is("empty-left-out") || tn_tensor_numel(tn_state_tensor(state, i)) > 0;
    status = put(sink, "TOY1", 4);
    if (status == TN_OK)
        status = put(sink, counts, sizeof counts);
    for (int64_t i = 0; i < total && status == TN_OK; i++)
        if (!is("empty-left-out") || tn_tensor_numel(tn_state_tensor(state, i)) > 0)
            status = save_one(sink, tn_state_name(state, is("names-rotated") ? (i + 1) % total : i),
                              tn_state_tensor(state, i));
    for (int64_t i = 0; i < counts[1] && status == TN_OK; i++)
        status = save_text(sink, tn_state_meta_key(state, i),
                           tn_state_meta(state, tn_state_meta_key(state, i)));
    return status;
}

static const tn_format_def format = {
    TN_HEAD(tn_format_def), .name = "toy",           .help = "a format of the tests",
    .extensions = ".toy",   .recognize = recognize,  .load = load,
    .save = save,           .flags = TN_FORMAT_TEXTS
};
TN_PLUGIN("org.example.mutant", "1.0.0", &format);
