/* SPDX-License-Identifier: MIT
 *
 * The part of pickle that is data. A pickle is a program for a small stack machine that may name
 * any function of Python; here it may name those of the table in pickle_calls.c, which make
 * tensors, dictionaries and their like, and nothing else is ever called. What a pickle makes is a
 * tree (rather: a graph, for it may share) of these values. */
#ifndef TENON_PLUGIN_FORMATS_PICKLE_H
#define TENON_PLUGIN_FORMATS_PICKLE_H

#include <tenon/plugin.h>

#define PK_SIZE_MAX (UINT64_C(64) << 20) /* bytes of a pickle */
#define PK_VALUES_MAX (1 << 24)          /* values that it makes, and that are visited in them */
#define PK_DEPTH_MAX 64                  /* of what is nested in each other */

typedef enum pk_kind {
    PK_NONE,
    PK_BOOL,
    PK_INT,
    PK_LONG, /* does not fit 64 bits: its bytes, two's complement, the lowest first */
    PK_FLOAT,
    PK_COMPLEX,
    PK_TEXT,
    PK_BYTES,
    PK_LIST,
    PK_TUPLE,
    PK_SET,
    PK_DICT, /* key, value, key, value ... */
    PK_NAME, /* a function or a type of the table */
    PK_STORAGE,
    PK_TENSOR
} pk_kind;

struct pk_name;

struct pk_value {
    uint8_t kind;
    uint8_t dtype; /* of a storage, a tensor, a name; of bytes: 1 when they stand there as UTF-8 */
    union {
        int64_t i;
        double f[2]; /* a complex number has both */
        struct {
            const char *at; /* in the pickle */
            size_t size;
        } text;
        struct {
            struct pk_value **at;
            uint32_t count, capacity;
            struct pk_value *attributes; /* of an OrderedDict: the dictionary that BUILD gave */
        } list;
        const struct pk_name *name;
        struct {
            struct pk_value *key;
            int64_t size; /* in elements of its dtype */
        } storage;
        struct {
            struct pk_value **at; /* storage, offset, shape, strides; the list is another value's */
        } tensor;
    } as;
};

struct pk {
    const char *path; /* for messages */
    const char *bytes;
    size_t size, at;
    size_t op; /* where the opcode that runs stands */
    bool cut;  /* it failed because there were no more bytes */
    struct pk_value *result;
    struct pk_value *storages; /* a list of all that it names; NULL: none */
    /* the rest is the machine's */
    struct pk_chunk *chunks;
    int64_t used, values;
    struct pk_value **stack, **memo;
    int64_t height, stack_room, memo_size, memoized, *marks, mark_count, mark_room;
};

/* pickle.c: reads one pickle, up to its STOP; `at` is behind it then. Values live until pk_free,
 * texts as long as the bytes. pk_free has to be called, whatever came out. */
TN_HIDDEN tn_status pk_read(struct pk *pk, const char *path, const char *bytes, size_t size);
TN_HIDDEN void pk_free(struct pk *pk);
/* TN_ERR_FORMAT with file and place. */
TN_HIDDEN tn_status pk_bad(const struct pk *pk, const char *what);

/* pickle_values.c */
TN_HIDDEN struct pk_value *pk_new(struct pk *pk, pk_kind kind);
TN_HIDDEN tn_status pk_add(struct pk *pk, struct pk_value *list, struct pk_value *item);
TN_HIDDEN void pk_free_values(struct pk *pk);
TN_HIDDEN bool pk_is_text(const struct pk_value *value, const char *text);
/* The value under a text key; NULL if there is none or this is no dictionary. */
TN_HIDDEN struct pk_value *pk_get(const struct pk_value *dict, const char *key);
/* A value without tensors as Python would write it, a text as it is; `*out` is the caller's
 * (tn_free). */
TN_HIDDEN tn_status pk_print(struct pk *pk, const struct pk_value *value, char **out);
/* Counts a visit of a value at a depth: a pickle of a few bytes can share its values into a tree
 * without end. */
TN_HIDDEN tn_status pk_visit(struct pk *pk, int depth);

/* pickle_calls.c: the value of GLOBAL; what REDUCE, BUILD and BINPERSID do. */
TN_HIDDEN struct pk_value *pk_global(struct pk *pk, const char *module, size_t module_size,
                                     const char *name, size_t name_size);
TN_HIDDEN struct pk_value *pk_call(struct pk *pk, const struct pk_value *name,
                                   struct pk_value *arguments);
TN_HIDDEN tn_status pk_build(struct pk *pk, struct pk_value *object, struct pk_value *state);
TN_HIDDEN struct pk_value *pk_persistent(struct pk *pk, const struct pk_value *id);

#endif
