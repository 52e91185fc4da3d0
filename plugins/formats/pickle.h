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

typedef enum pickle_kind {
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
} pickle_kind;

struct pickle_name;

struct pickle_value {
    uint8_t kind;
    uint8_t dtype; /* of a storage, a tensor, a name; of bytes: 1 when they are stored as UTF-8 */
    union {
        int64_t i;
        double f[2]; /* a complex number has both */
        struct {
            const char *at; /* in the pickle */
            size_t size;
        } text;
        struct {
            struct pickle_value **at;
            uint32_t count, capacity;
            struct pickle_value *attributes; /* of an OrderedDict: the dictionary that BUILD gave */
        } list;
        const struct pickle_name *name;
        struct {
            struct pickle_value *key;
            int64_t size; /* in elements of its dtype */
        } storage;
        struct {
            struct pickle_value *
                *at; /* storage, offset, shape, strides; the list is another value's */
        } tensor;
    } as;
};

struct pickle {
    const char *path; /* for messages */
    const char *bytes;
    size_t size, at;
    size_t op; /* offset of the current opcode */
    bool cut;  /* it failed because there were no more bytes */
    struct pickle_value *result;
    struct pickle_value *storages; /* a list of all that it names; NULL: none */
    /* the rest is the machine's */
    struct pickle_chunk *chunks;
    int64_t used, values;
    struct pickle_value **stack, **memo;
    int64_t height, stack_room, memo_size, memoized, *marks, mark_count, mark_room;
};

/* pickle.c: reads one pickle, up to its STOP; `at` is behind it then. Values live until
 * pickle_free, texts as long as the bytes. pickle_free must be called, also after a failure. */
TN_HIDDEN tn_status pickle_read(struct pickle *pk, const char *path, const char *bytes,
                                size_t size);
TN_HIDDEN void pickle_free(struct pickle *pk);
/* TN_ERR_FORMAT with file and place. */
TN_HIDDEN tn_status pickle_bad(const struct pickle *pk, const char *what);

/* pickle_values.c */
TN_HIDDEN struct pickle_value *pickle_new(struct pickle *pk, pickle_kind kind);
TN_HIDDEN tn_status pickle_add(struct pickle *pk, struct pickle_value *list,
                               struct pickle_value *item);
TN_HIDDEN void pickle_free_values(struct pickle *pk);
TN_HIDDEN bool pickle_is_text(const struct pickle_value *value, const char *text);
/* The value under a text key; NULL if there is none or this is not a dictionary. */
TN_HIDDEN struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key);
/* A value without tensors as Python would write it, a text as it is; `*out` is the caller's
 * (tn_free). */
TN_HIDDEN tn_status pickle_print(struct pickle *pk, const struct pickle_value *value, char **out);
/* Counts a visit of a value at a depth: a pickle of a few bytes can share its values into a tree
 * without end. */
TN_HIDDEN tn_status pickle_visit(struct pickle *pk, int depth);

/* pickle_calls.c: the value of GLOBAL; what REDUCE, BUILD and BINPERSID do. */
TN_HIDDEN struct pickle_value *pickle_global(struct pickle *pk, const char *module,
                                             size_t module_size, const char *name,
                                             size_t name_size);
TN_HIDDEN struct pickle_value *pickle_call(struct pickle *pk, const struct pickle_value *name,
                                           struct pickle_value *arguments);
TN_HIDDEN tn_status pickle_build(struct pickle *pk, struct pickle_value *object,
                                 struct pickle_value *state);
TN_HIDDEN struct pickle_value *pickle_persistent(struct pickle *pk, const struct pickle_value *id);

#endif
