/* SPDX-License-Identifier: MIT
 *
 * What the files of the format "pytorch" share. A file holds a pickle, which says what there is,
 * and storages, which hold the values: in a zip archive a member each (since 1.6), before that one
 * after the other behind the pickle. */
#ifndef TENON_PLUGIN_FORMATS_PYTORCH_H
#define TENON_PLUGIN_FORMATS_PYTORCH_H

#include "formats.h"
#include "pickle.h"
#include "zip.h"

/* A storage as elements of one type. Tensors that look at the same storage as different types have
 * one each: Tenon's tensors of different types share no memory. */
struct pytorch_storage {
    const struct pickle_value *key;
    tn_dtype dtype;
    int64_t size;      /* elements */
    uint64_t place;    /* of its bytes, in files before 1.6 */
    tn_tensor *values; /* one-dimensional; NULL until a tensor needs it */
};

struct pytorch_file {
    const tn_source *source;
    tn_state *state;
    struct zip *zip;      /* NULL for a file before 1.6 */
    const char *folder;   /* of the members: "archive/" */
    uint64_t expanded;    /* bytes of tensors beyond those of their storages */
    uint64_t values_size; /* bytes of values that are not tensors */
    uint64_t done;        /* bytes that were read, for progress */
    struct pytorch_storage *at;
    int64_t count, capacity;
    int64_t *index; /* by key and dtype: place + 1, 0 is empty; a power of two long */
    int64_t index_size;
};

/* pytorch_storage.c: the storage with that key as elements of `dtype`, added if it is new; NULL and
 * an error. */
TN_HIDDEN struct pytorch_storage *pytorch_storage_of(struct pytorch_file *file,
                                                     const struct pickle_value *storage,
                                                     tn_dtype dtype);
/* The same if it is there already; NULL, not an error, if not. */
TN_HIDDEN struct pytorch_storage *pytorch_storage_find(const struct pytorch_file *file,
                                                       const struct pickle_value *key,
                                                       tn_dtype dtype);
/* The tensor that a value of the pickle describes. */
TN_HIDDEN tn_tensor *pytorch_tensor_of(struct pytorch_file *file, const struct pickle_value *value,
                                       const char *name);
TN_HIDDEN void pytorch_storages_free(struct pytorch_file *file);

/* pytorch_state.c: what the pickle made goes into the state, by dotted name. */
TN_HIDDEN tn_status pytorch_fill_state(struct pytorch_file *file, struct pickle *pk);

/* pytorch_value.c: a value that is not a tensor. */
TN_HIDDEN tn_status pytorch_add_value(struct pytorch_file *file, struct pickle *pk,
                                      const char *name, const struct pickle_value *value);

/* pytorch_legacy.c: files before 1.6. */
TN_HIDDEN bool pytorch_legacy_recognize(const tn_source *source);
TN_HIDDEN tn_status pytorch_legacy_load(const tn_source *source, tn_state *state);

#endif
