/* SPDX-License-Identifier: MIT
 *
 * Texts as windows of bytes or of tokens, for models that predict the next one. */
#include "bpe.h"

#include <string.h>

struct text {
    unsigned char *bytes; /* or NULL */
    struct bpe_ids ids;   /* without bytes */
    uint64_t count;       /* of bytes or tokens */
    int64_t length, stride;
};

static void text_close(void *handle)
{
    struct text *t = handle;

    if (t == NULL)
        return;
    tn_free(t->bytes);
    tn_free(t->ids.at);
    tn_free(t);
}

static tn_status check_windows(int64_t length, int64_t stride)
{
    if (length < 1 || length > INT32_MAX)
        return tn_fail(TN_ERR_VALUE, "length: out of range, got %lld; expected 1 to %d",
                       (long long)length, INT32_MAX);
    if (stride != INT64_MIN && (stride < 1 || stride > INT32_MAX))
        return tn_fail(TN_ERR_VALUE, "stride: out of range, got %lld; expected 1 to %d",
                       (long long)stride, INT32_MAX);
    return TN_OK;
}

/* Reads a whole file. */
static unsigned char *read_text(const char *path, uint64_t *size)
{
    struct data_file *file = data_file_open(path);
    char *bytes = file != NULL ? data_file_rest(file, size) : NULL;

    data_file_close(file);
    return (unsigned char *)bytes;
}

/* Makes each window a sample. `what` is "bytes" or "tokens", for the message. */
static tn_status give(struct text *t, tn_dataset_open *args, const char *path, int64_t length,
                      int64_t stride, int64_t classes, const char *what)
{
    t->length = length;
    t->stride = stride != INT64_MIN ? stride : length;
    if (t->count < (uint64_t)length + 1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: too short, got %llu %s; expected at least length + 1 = %lld", path,
                       (unsigned long long)t->count, what, (long long)length + 1);
    args->handle = t;
    args->count = (int64_t)((t->count - 1 - (uint64_t)length) / (uint64_t)t->stride) + 1;
    args->classes = classes;
    return TN_OK;
}

/* The numbers from `first` on. */
static tn_status add_window(const struct text *t, uint64_t first, tn_pack *out)
{
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(t->length), TN_I64, tn_default_device());
    int64_t *to = x != NULL ? tn_tensor_data(x) : NULL;

    if (to == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < t->length; i++)
        to[i] = t->bytes != NULL ? t->bytes[first + (uint64_t)i] : t->ids.at[first + (uint64_t)i];
    return tn_pack_add(out, NULL, tn_value_tensor(x));
}

static tn_status text_get(const tn_sample_args *args)
{
    const struct text *t = args->handle;
    uint64_t first = (uint64_t)args->index * (uint64_t)t->stride;
    tn_status status = add_window(t, first, args->out);

    return status == TN_OK ? add_window(t, first + 1, args->out) : status;
}

/* ---- TextBytes ------------------------------------------------------------------------------- */

#define LENGTH_ROW(type)                                                                           \
    TN_OPTION_ROW(type, length, NULL, "length of a sample", TN_OPTION_KIND_INT,                    \
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD)
#define STRIDE_ROW(type)                                                                           \
    TN_OPTION_ROW(type, stride, "None", "distance of the samples; None: length",                   \
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL)

struct bytes_options {
    const char *path;
    int64_t length, stride;
};
static const tn_option bytes_table[] = { TN_OPTION_ROW(struct bytes_options, path, NULL, "any file",
                                                       TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
                                         LENGTH_ROW(struct bytes_options),
                                         STRIDE_ROW(struct bytes_options), TN_OPTION_END };

static tn_status bytes_open(tn_dataset_open *args)
{
    const struct bytes_options *o = args->options;
    tn_status status = check_windows(o->length, o->stride);
    struct text *t = status == TN_OK ? tn_calloc(1, sizeof *t) : NULL;

    if (t == NULL)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    t->bytes = read_text(o->path, &t->count);
    status = t->bytes != NULL ? give(t, args, o->path, o->length, o->stride, 256, "bytes")
                              : tn_error_last_code();
    if (status != TN_OK)
        text_close(t);
    return status;
}

/* ---- TextBPE --------------------------------------------------------------------------------- */

struct bpe_options {
    const char *path, *vocabulary;
    int64_t length, stride;
};
static const tn_option bpe_table[] = {
    TN_OPTION_ROW(struct bpe_options, path, NULL, "a text in UTF-8", TN_OPTION_KIND_STRING,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct bpe_options, vocabulary, NULL,
                  "folder with vocab.json and merges.txt, as those of GPT-2", TN_OPTION_KIND_STRING,
                  TN_OPTION_REQUIRED),
    LENGTH_ROW(struct bpe_options), STRIDE_ROW(struct bpe_options), TN_OPTION_END
};

static tn_status encode(struct text *t, const struct bpe_options *o, int64_t *classes)
{
    struct bpe *bpe = bpe_open(o->vocabulary);
    uint64_t size = 0;
    unsigned char *bytes = bpe != NULL ? read_text(o->path, &size) : NULL;
    tn_status status = bytes != NULL ? bpe_encode(bpe, o->path, bytes, size, &t->ids)
                                     : tn_error_last_code();

    *classes = bpe != NULL ? bpe->size : 0;
    t->count = t->ids.count;
    tn_free(bytes);
    bpe_free(bpe);
    return status;
}

static tn_status bpe_dataset_open(tn_dataset_open *args)
{
    const struct bpe_options *o = args->options;
    tn_status status = check_windows(o->length, o->stride);
    struct text *t = status == TN_OK ? tn_calloc(1, sizeof *t) : NULL;
    int64_t classes;

    if (t == NULL)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    status = encode(t, o, &classes);
    if (status == TN_OK)
        status = give(t, args, o->path, o->length, o->stride, classes, "tokens");
    if (status != TN_OK)
        text_close(t);
    return status;
}

/* ---- tables ---------------------------------------------------------------------------------- */

const tn_dataset_def data_text_bytes = {
    TN_HEAD(tn_dataset_def),
    .name = "TextBytes",
    .help = "windows of the bytes of a file: (int64 [length], the same one byte later)",
    .options = bytes_table,
    .data_size = sizeof(struct bytes_options),
    .open = bytes_open,
    .get = text_get,
    .close = text_close,
};
const tn_dataset_def data_text_bpe = {
    TN_HEAD(tn_dataset_def),
    .name = "TextBPE",
    .help = "windows of the tokens of a text, by GPT-2's encoding: (int64 [length], the same one "
            "token later)",
    .options = bpe_table,
    .data_size = sizeof(struct bpe_options),
    .open = bpe_dataset_open,
    .get = text_get,
    .close = text_close,
};
