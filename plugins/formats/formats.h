/* SPDX-License-Identifier: MIT
 *
 * The contributions of this plugin, for its table in plugin.c. */
#ifndef TENON_PLUGIN_FORMATS_H
#define TENON_PLUGIN_FORMATS_H

#include <tenon/plugin.h>

/* safetensors.c, safetensors_index.c, checkpoint.c, npy.c, npz.c, pytorch.c */
TN_HIDDEN extern const tn_format_def format_safetensors, format_safetensors_index,
    format_checkpoint, format_npy, format_npz, format_pytorch;

/* plugin.c: adds to *sum bytes that a file claims in memory beyond its own size (deflated data,
 * tensors whose elements share memory), and refuses what passes the setting unpacked_max. */
TN_HIDDEN tn_status formats_unpacked(const tn_source *source, uint64_t *sum, uint64_t more);

/* npy.c: one array with its header, as tensor `name` of the state; tensor `index` of the state. */
TN_HIDDEN tn_status npy_load(const tn_source *source, const char *name, tn_state *state);
TN_HIDDEN tn_status npy_save(const tn_sink *sink, const tn_state *state, int64_t index);

/* values.c: values in row-major order, straight into the memory of the host or by way of a block.
 * `swap`: the size of the words whose bytes are swapped, 0 for none. A tensor without
 * memory is skipped. */
TN_HIDDEN tn_status formats_read_values(const tn_source *source, uint64_t offset, size_t size,
                                        size_t swap, tn_tensor *tensor);
TN_HIDDEN tn_status formats_write_values(const tn_sink *sink, tn_tensor *tensor);
/* Whether all elements of a bool view are 0 or 1; the view is within the `size` bytes. *visits: how
 * many bytes were looked at, at most `size`. */
TN_HIDDEN bool formats_are_bools(const unsigned char *bytes, uint64_t size, tn_ints shape,
                                 tn_ints strides, int64_t offset, uint64_t *visits);

/* safetensors_header.c: one tensor as the header describes it. */
struct safetensors_tensor {
    char *name;
    tn_dtype dtype;
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS];
    uint64_t begin, end; /* bytes from the start of the data */
};

struct safetensors_header {
    struct safetensors_tensor *at; /* in the order of the header */
    int64_t count;
    uint64_t data; /* where the data begin in the file */
};

TN_HIDDEN tn_status safetensors_header_read(const tn_source *source,
                                            struct safetensors_header *header, tn_state *state);
TN_HIDDEN void safetensors_header_free(struct safetensors_header *header);
/* The header's bytes with their length in front, padded (tn_free), and the order in which the
 * tensors' data follow. */
TN_HIDDEN tn_status safetensors_header_write(const tn_state *state, const char *path,
                                             int64_t *order, char **bytes, size_t *size);

/* checkpoint_read.c */
TN_HIDDEN tn_status checkpoint_load(const tn_format_def *self, const tn_source *source,
                                    tn_state *state);
/* checkpoint_sum.c: the sum that guards the header and every storage, XXH64. */
TN_HIDDEN uint64_t checkpoint_sum(const void *bytes, size_t count);

#endif
