/* SPDX-License-Identifier: MIT
 *
 * A reader for the part of Python's pickle format that describes data. A pickle is a program for a
 * small stack machine, and in Python it can call any function. Here it can name only the functions
 * in the table of pickle_calls.c, which make tensors, dictionaries and similar values; no other
 * code runs. The result of a pickle is a graph of the values below: several values can refer to
 * the same value. */
#ifndef TN_FORMATS_PICKLE_H
#define TN_FORMATS_PICKLE_H

#include <tenon/plugin.h>

#define PK_SIZE_MAX (UINT64_C(64) << 20) /* most bytes of a pickle */
#define PK_VALUES_MAX (1 << 24)          /* most values made, plus later visits of values */
#define PK_DEPTH_MAX 64                  /* most levels of nested values */

typedef enum pickle_kind {
    PK_NONE,
    PK_BOOL,
    PK_INT,
    PK_LONG, /* an integer of more than 8 bytes: little-endian, two's complement, in as.text */
    PK_FLOAT,
    PK_COMPLEX,
    PK_TEXT,
    PK_BYTES,
    PK_LIST,
    PK_TUPLE,
    PK_SET,
    PK_DICT,   /* as.list has key, value, key, value ... */
    PK_NAME,   /* a function or a type of the table in pickle_calls.c */
    PK_OBJECT, /* an object of TorchScript; as.list.attributes is a PK_DICT, or NULL */
    PK_STORAGE,
    PK_TENSOR
} pickle_kind;

struct pickle_name;

struct pickle_value {
    uint8_t kind;
    uint8_t dtype; /* a tn_dtype for PK_STORAGE, PK_TENSOR, PK_NAME; for PK_BYTES: 1 if as.text is
                    * UTF-8 text whose characters are the bytes */
    union {
        int64_t i;
        double f[2]; /* PK_FLOAT uses the first, PK_COMPLEX both */
        struct {
            const char *at; /* points into the bytes of the pickle */
            size_t size;
        } text;
        struct {
            struct pickle_value **at;
            uint32_t count, capacity;
            struct pickle_value *attributes; /* of a dictionary: those set by BUILD, or NULL */
        } list;
        const struct pickle_name *name;
        struct {
            struct pickle_value *key;
            int64_t size; /* in elements of its dtype */
        } storage;
        struct {
            struct pickle_value *
                *at; /* storage, offset, shape, strides; borrowed from the argument tuple */
        } tensor;
    } as;
};

struct pickle {
    const char *path; /* of the file, for messages */
    const char *bytes;
    size_t size, at;
    size_t op;   /* offset of the current opcode */
    bool cut;    /* reading failed because the bytes ended too early */
    bool script; /* the pickle is from a TorchScript archive: objects of its classes are data */
    struct pickle_value *result;
    struct pickle_value *storages; /* list of all storages that the pickle names; NULL: none */
    /* The members below are the state of the stack machine. */
    struct pickle_chunk *chunks;
    int64_t used, values;
    struct pickle_value **stack, **memo;
    int64_t height, stack_room, memo_size, memoized, *marks, mark_count, mark_room;
};

/* pickle.c: reads one pickle up to its STOP opcode; pk->at is then the offset after STOP. With
 * `script`, objects of the classes of a TorchScript archive are read as their attributes. The
 * values live until pickle_free(); texts point into `bytes`, so the caller must keep `bytes` as
 * long. pickle_free() must be called, even after a failure. */
TN_HIDDEN tn_status pickle_read(struct pickle *pk, const char *path, const char *bytes, size_t size,
                                bool script);
TN_HIDDEN void pickle_free(struct pickle *pk);
/* Sets the error `what` with the file and the offset of the opcode; returns TN_ERR_FORMAT. */
TN_HIDDEN tn_status pickle_bad(const struct pickle *pk, const char *what);
/* The same for a value of the wrong kind: "WHAT: wrong type, got a list; expected EXPECTED". */
TN_HIDDEN tn_status pickle_bad_type(const struct pickle *pk, const char *what,
                                    const struct pickle_value *got, const char *expected);
/* Returns the name of a kind of values, such as "a list". */
TN_HIDDEN const char *pickle_kind_name(uint8_t kind);

/* pickle_values.c */
TN_HIDDEN struct pickle_value *pickle_new(struct pickle *pk, pickle_kind kind);
TN_HIDDEN tn_status pickle_add(struct pickle *pk, struct pickle_value *list,
                               struct pickle_value *item);
TN_HIDDEN void pickle_free_values(struct pickle *pk);
TN_HIDDEN bool pickle_is_text(const struct pickle_value *value, const char *text);
/* Returns the value under a text key; NULL if there is none or `dict` is not a dictionary. */
TN_HIDDEN struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key);
/* Prints a value in Python's syntax; a value that is a text is printed without quotes. Fails if the
 * value contains a tensor, a storage, a type or a function. The caller frees *out with tn_free. */
TN_HIDDEN tn_status pickle_print(struct pickle *pk, const struct pickle_value *value, char **out);
/* Must be called for each visit of a value when a graph is walked. Fails if `depth` or the number
 * of visits is too large: because values can be shared, a pickle of a few bytes can describe an
 * enormous tree, or a value that contains itself. */
TN_HIDDEN tn_status pickle_visit(struct pickle *pk, int depth);

/* pickle_calls.c: the opcodes GLOBAL, REDUCE, BUILD and BINPERSID. Those that return a value return
 * NULL and set the error on failure. */
TN_HIDDEN struct pickle_value *pickle_global(struct pickle *pk, const char *module,
                                             size_t module_size, const char *name,
                                             size_t name_size);
TN_HIDDEN struct pickle_value *pickle_call(struct pickle *pk, const struct pickle_value *name,
                                           struct pickle_value *arguments);
/* The opcode NEWOBJ: a new object of a class of TorchScript, without attributes. */
TN_HIDDEN struct pickle_value *pickle_object(struct pickle *pk, const struct pickle_value *name,
                                             const struct pickle_value *arguments);
TN_HIDDEN tn_status pickle_build(struct pickle *pk, struct pickle_value *object,
                                 struct pickle_value *state);
TN_HIDDEN struct pickle_value *pickle_persistent(struct pickle *pk, const struct pickle_value *id);

#endif
