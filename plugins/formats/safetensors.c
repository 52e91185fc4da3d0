/* SPDX-License-Identifier: MIT
 *
 * The format "safetensors". The header of a file is read and written in safetensors_header.c. */
#include "formats.h"

/* ---- reading --------------------------------------------------------------------------------- */

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    unsigned char start[9];
    if (source->size < 10 || source->read(source->user, 0, start, sizeof start) != TN_OK)
        return false;
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | start[i];
    return length >= 2 && length <= source->size - 8 && start[8] == '{' &&
           !script_recognize(self, source);
}

static tn_status load_one(const tn_source *source, const struct safetensors_header *header,
                          int64_t i, tn_state *state)
{
    const struct safetensors_tensor *entry = &header->at[i];
    uint64_t scope = tn_scope_begin();
    tn_tensor *tensor = tn_source_tensor(source, header->data + entry->begin, entry->dtype,
                                         (tn_ints){ entry->shape, entry->ndim });
    tn_status status = tensor != NULL ? tn_state_set(state, entry->name, tensor)
                                      : tn_error_last_code();
    tn_scope_end(scope);
    return status;
}

tn_status safetensors_load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    (void)self;
    struct safetensors_header header;
    tn_status status = safetensors_header_read(source, &header, state);
    uint64_t done = 0;
    for (int64_t i = 0; status == TN_OK && i < header.count; i++) {
        status = load_one(source, &header, i, state);
        done += header.at[i].end - header.at[i].begin;
        if (status == TN_OK)
            status = tn_progress_report("reading bytes", done, source->size - header.data);
    }
    safetensors_header_free(&header);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

tn_status safetensors_save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    (void)self;
    int64_t count = tn_state_count(state);
    int64_t *order = tn_calloc((size_t)count + 1, sizeof *order);
    if (order == NULL)
        return TN_ERR_MEMORY;
    char *header = NULL;
    size_t size = 0;
    tn_status status = safetensors_header_write(state, sink->path, order, &header, &size);
    if (status == TN_OK)
        status = sink->write(sink->user, header, size);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = formats_write_values(sink, tn_state_tensor(state, order[i]));
    tn_free(header);
    tn_free(order);
    return status;
}

const tn_format_def format_safetensors = {
    TN_HEAD(tn_format_def),
    .name = "safetensors",
    .help = "named tensors, without code; used by PyTorch, JAX, NumPy and others",
    .extensions = ".safetensors",
    .recognize = recognize,
    .load = safetensors_load,
    .save = safetensors_save,
    .flags = TN_FORMAT_TEXTS,
};
