/* SPDX-License-Identifier: MIT
 *
 * Declarations for the format "pytorch". A file contains a pickle, which describes the saved
 * objects, and storages, which contain the elements of tensors. Since PyTorch 1.6 a file is a zip
 * archive and each storage is one member; before, the storages followed the pickle one after the
 * other. */
#ifndef TN_FORMATS_PYTORCH_H
#define TN_FORMATS_PYTORCH_H

#include "formats.h"
#include "pickle.h"
#include "zip.h"

/* A storage, read as elements of one dtype. If tensors of several dtypes use one storage of the
 * file, there is one of these structs, with memory of its own, for each dtype. */
struct pytorch_storage {
    const struct pickle_value *key;
    tn_dtype dtype;
    int64_t size;      /* in elements of dtype */
    uint64_t place;    /* offset of its bytes in a file before 1.6; 0: not known */
    tn_tensor *values; /* one-dimensional; NULL until a tensor needs it */
};

struct pytorch_file {
    const tn_source *source;
    tn_state *state;
    struct zip *zip;      /* NULL for a file before 1.6 */
    const char *folder;   /* prefix of the members' names, such as "archive/" */
    const char *members;  /* folder below it with the storages of the pickle: "data" */
    uint64_t expanded;    /* memory beyond the size of the file, for formats_unpacked() */
    uint64_t values_size; /* bytes of values that are not tensors */
    uint64_t done;        /* bytes read so far, for the progress report */
    struct pytorch_storage *at;
    int64_t count, capacity;
    int64_t *index; /* hash table by key and dtype: index in `at` + 1, or 0; size is a power of 2 */
    int64_t index_size;
};

/* pytorch_storage.c: returns the entry for a storage of the pickle, read as elements of `dtype`,
 * and adds the entry if it is new. Returns NULL and sets the error on failure. */
TN_HIDDEN struct pytorch_storage *pytorch_storage_of(struct pytorch_file *file,
                                                     const struct pickle_value *storage,
                                                     tn_dtype dtype);
/* Returns the entry for this key and dtype; NULL, without setting an error, if there is none. */
TN_HIDDEN struct pytorch_storage *pytorch_storage_find(const struct pytorch_file *file,
                                                       const struct pickle_value *key,
                                                       tn_dtype dtype);
/* Makes the tensor that a value of the pickle describes, and reads its storage if that has not been
 * read yet. `name` is for messages. Returns NULL and sets the error on failure. */
TN_HIDDEN tn_tensor *pytorch_tensor_of(struct pytorch_file *file, const struct pickle_value *value,
                                       const char *name);
TN_HIDDEN void pytorch_storages_free(struct pytorch_file *file);

/* pytorch_state.c: adds the result of the pickle to the state, under dotted names. */
TN_HIDDEN tn_status pytorch_fill_state(struct pytorch_file *file, struct pickle *pk);
/* Adds the tensors of constants.pkl of a TorchScript archive under the names that its code uses,
 * CONSTANTS.c0 and so on. */
TN_HIDDEN tn_status pytorch_fill_constants(struct pytorch_file *file, struct pickle *pk);

/* pytorch_value.c: adds a value that is not a tensor to the state. */
TN_HIDDEN tn_status pytorch_add_value(struct pytorch_file *file, struct pickle *pk,
                                      const char *name, const struct pickle_value *value);

/* Counts `size` bytes towards the limit for the values of a file. */
TN_HIDDEN tn_status pytorch_count_values(struct pytorch_file *file, size_t size);

/* pytorch_legacy.c: files of PyTorch before 1.6. */
TN_HIDDEN bool pytorch_legacy_recognize(const tn_source *source);
TN_HIDDEN tn_status pytorch_legacy_load(const tn_source *source, tn_state *state);

#endif
