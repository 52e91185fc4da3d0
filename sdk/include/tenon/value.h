/* SPDX-License-Identifier: MIT
 *
 * Values, option tables and value packs: how options, arguments and results other than plain
 * tensors are passed between programs, core and plugins.
 * tenon-interface: tenon.value 0
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_VALUE_H
#define TENON_VALUE_H

#include <tenon/base.h>

TN_BEGIN_DECLS

typedef struct tn_tensor tn_tensor;
typedef struct tn_module tn_module;
typedef struct tn_device tn_device;

/* An array of integers, such as a shape, strides or dimensions. The struct does not own the
 * array. */
typedef struct tn_ints {
    const int64_t *at;
    int64_t count;
} tn_ints;

/* TN_INTS(2, 3) makes a tn_ints of literal numbers. In C the array lives until the end of the
 * enclosing block, in C++ until the end of the full expression. TN_SHAPE is the same macro, for
 * shapes. */
#ifdef __cplusplus
TN_END_DECLS
#include <initializer_list>
static inline tn_ints tn_ints_of(std::initializer_list<int64_t> list)
{
    tn_ints row = { list.begin(), (int64_t)list.size() };
    return row;
}
TN_BEGIN_DECLS
#define TN_INTS(...) tn_ints_of({ __VA_ARGS__ })
#else
#define TN_INTS(...)                                                                               \
    ((tn_ints){ (const int64_t[]){ __VA_ARGS__ },                                                  \
                (int64_t)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)) })
#endif
#define TN_SHAPE(...) TN_INTS(__VA_ARGS__)

static inline tn_ints tn_no_ints(void)
{
    tn_ints row = { NULL, 0 };
    return row;
}
/* The shape of a tensor without dimensions: an empty list. An option that is None has the value
 * tn_none_ints() instead. */
#define TN_SCALAR_SHAPE tn_no_ints()

/* A list of integers that is not given: the value None of an option. */
static inline tn_ints tn_none_ints(void)
{
    tn_ints row = { NULL, -1 };
    return row;
}

/* ---- numbers of any kind --------------------------------------------------------------------- */

typedef uint32_t tn_scalar_kind;
enum {
    TN_SCALAR_NONE = 0,    /* not given */
    TN_SCALAR_BOOL = 1,    /* as.i, 0 or 1 */
    TN_SCALAR_INT = 2,     /* as.i */
    TN_SCALAR_FLOAT = 3,   /* as.f */
    TN_SCALAR_COMPLEX = 4, /* as.c, the real and the imaginary part */
    TN_SCALAR_UINT = 5     /* as.u; only for numbers above 2^63 - 1, smaller ones are of kind INT */
};

/* One number of any kind, without loss of precision. In an operator, the kind of the number takes
 * part in the choice of the dtype of the result. The layout (24 bytes) never changes. In C++ plain
 * numbers convert to a tn_scalar. */
typedef struct tn_scalar {
    uint32_t kind; /* tn_scalar_kind */
    uint32_t reserved;
    union {
        int64_t i;
        uint64_t u;
        double f;
        double c[2];
    } as;
#ifdef __cplusplus
    tn_scalar() = default;
    tn_scalar(bool v) : kind(TN_SCALAR_BOOL), reserved(0)
    {
        set(v);
    }
    tn_scalar(int v) : kind(TN_SCALAR_INT), reserved(0)
    {
        set(v);
    }
    tn_scalar(long v) : kind(TN_SCALAR_INT), reserved(0)
    {
        set(v);
    }
    tn_scalar(long long v) : kind(TN_SCALAR_INT), reserved(0)
    {
        set(v);
    }
    tn_scalar(unsigned v) : kind(TN_SCALAR_INT), reserved(0)
    {
        set(v);
    }
    tn_scalar(unsigned long v) : kind(unsigned_kind(v)), reserved(0)
    {
        set((int64_t)v);
    }
    tn_scalar(unsigned long long v) : kind(unsigned_kind(v)), reserved(0)
    {
        set((int64_t)v);
    }
    tn_scalar(double v) : kind(TN_SCALAR_FLOAT), reserved(0)
    {
        as.c[0] = v;
        as.c[1] = 0;
    }
    tn_scalar(float v) : tn_scalar((double)v)
    {
    }
    tn_scalar(long double v) : tn_scalar((double)v)
    {
    }
    tn_scalar(double re, double im) : tn_scalar(re)
    {
        kind = TN_SCALAR_COMPLEX;
        as.c[1] = im;
    }
    tn_scalar(const volatile void *) = delete; /* otherwise a pointer would convert to bool */
    tn_scalar(decltype(nullptr)) = delete;

  private:
    void set(int64_t v)
    {
        as.c[1] = 0;
        as.i = v;
    }
    static uint32_t unsigned_kind(unsigned long long v)
    {
        return v > INT64_MAX ? TN_SCALAR_UINT : TN_SCALAR_INT;
    }
#endif
} tn_scalar;

static inline tn_scalar tn_scalar_none(void)
{
    tn_scalar scalar;
    scalar.kind = TN_SCALAR_NONE;
    scalar.reserved = 0;
    scalar.as.c[0] = 0;
    scalar.as.c[1] = 0;
    return scalar;
}
static inline tn_scalar tn_scalar_int(int64_t number)
{
    tn_scalar scalar = tn_scalar_none();
    scalar.kind = TN_SCALAR_INT;
    scalar.as.i = number;
    return scalar;
}
static inline tn_scalar tn_scalar_bool(bool flag)
{
    tn_scalar scalar = tn_scalar_int(flag);
    scalar.kind = TN_SCALAR_BOOL;
    return scalar;
}
static inline tn_scalar tn_scalar_uint(uint64_t number)
{
    tn_scalar scalar = tn_scalar_int((int64_t)number);
    if (number > (uint64_t)INT64_MAX)
        scalar.kind = TN_SCALAR_UINT;
    return scalar;
}
static inline tn_scalar tn_scalar_complex(double re, double im)
{
    tn_scalar scalar = tn_scalar_none();
    scalar.kind = TN_SCALAR_COMPLEX;
    scalar.as.c[0] = re;
    scalar.as.c[1] = im;
    return scalar;
}
static inline tn_scalar tn_scalar_float(double number)
{
    tn_scalar scalar = tn_scalar_complex(number, 0);
    scalar.kind = TN_SCALAR_FLOAT;
    return scalar;
}

/* For kernels: returns the number as int64_t. Fractions are truncated, values out of range become
 * the nearest int64_t, NaN becomes 0. Of a number of kind UINT, the 64 bits are returned unchanged;
 * of COMPLEX, the real part. */
static inline int64_t tn_scalar_as_int(tn_scalar scalar)
{
    double f = scalar.as.f;
    if (scalar.kind != TN_SCALAR_FLOAT && scalar.kind != TN_SCALAR_COMPLEX)
        return scalar.as.i;
    return f != f                       ? 0
           : f >= 9223372036854775808.0 ? INT64_MAX
           : f < -9223372036854775808.0 ? INT64_MIN
                                        : (int64_t)f;
}
/* Returns the number as a double, of COMPLEX the real part; NaN if there is no number. */
static inline double tn_scalar_as_float(tn_scalar scalar)
{
    switch (scalar.kind) {
    case TN_SCALAR_BOOL:
    case TN_SCALAR_INT: return (double)scalar.as.i;
    case TN_SCALAR_UINT: return (double)scalar.as.u;
    case TN_SCALAR_NONE: return __builtin_nan("");
    default: return scalar.as.f;
    }
}
/* Returns the imaginary part; 0 if the number is not COMPLEX. */
static inline double tn_scalar_imag(tn_scalar scalar)
{
    return scalar.kind == TN_SCALAR_COMPLEX ? scalar.as.c[1] : 0.0;
}

/* TN_SCALAR(2), TN_SCALAR(0.5) or TN_SCALAR(x) makes a tn_scalar from any number; a tn_scalar stays
 * unchanged. Before C23 `true` has type int in C, so write TN_SCALAR((bool)true) or
 * tn_scalar_bool(true). The TN_SCALAR_INIT macros are initializers for static structs. */
#ifdef __cplusplus
#define TN_SCALAR(number) tn_scalar(number)
#define TN_SCALAR_INIT_NONE tn_scalar_none()
#define TN_SCALAR_INIT_INT(number) tn_scalar_int(number)
#define TN_SCALAR_INIT_FLOAT(number) tn_scalar_float(number)
#else
static inline tn_scalar tn_scalar_same(tn_scalar scalar)
{
    return scalar;
}
static inline tn_scalar tn_scalar_c99(double _Complex number)
{
    union {
        double _Complex number;
        double part[2];
    } of = { number };
    return tn_scalar_complex(of.part[0], of.part[1]);
}
/* clang-format off */
/* A macro, because only _Generic can select by the type of a number. */
#define TN_SCALAR(number)                                                                          \
    _Generic((number), tn_scalar: tn_scalar_same, bool: tn_scalar_bool, char: tn_scalar_int,       \
        signed char: tn_scalar_int, unsigned char: tn_scalar_int, short: tn_scalar_int,            \
        unsigned short: tn_scalar_int, int: tn_scalar_int, unsigned: tn_scalar_int,                \
        long: tn_scalar_int, long long: tn_scalar_int, unsigned long: tn_scalar_uint,              \
        unsigned long long: tn_scalar_uint, float: tn_scalar_float, double: tn_scalar_float,       \
        long double: tn_scalar_float, float _Complex: tn_scalar_c99,                               \
        double _Complex: tn_scalar_c99)(number)
/* clang-format on */
#define TN_SCALAR_INIT_NONE                                                                        \
    {                                                                                              \
        0, 0,                                                                                      \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define TN_SCALAR_INIT_INT(number)                                                                 \
    {                                                                                              \
        TN_SCALAR_INT, 0,                                                                          \
        {                                                                                          \
            .i = number                                                                            \
        }                                                                                          \
    }
#define TN_SCALAR_INIT_FLOAT(number)                                                               \
    {                                                                                              \
        TN_SCALAR_FLOAT, 0,                                                                        \
        {                                                                                          \
            .f = number                                                                            \
        }                                                                                          \
    }
#endif

typedef uint32_t tn_value_kind;
enum {
    TN_VALUE_NONE = 0,
    TN_VALUE_BOOL = 1,     /* as.i, 0 or 1 */
    TN_VALUE_INT = 2,      /* as.i */
    TN_VALUE_FLOAT = 3,    /* as.f */
    TN_VALUE_STRING = 4,   /* as.s, UTF-8 */
    TN_VALUE_LIST = 5,     /* as.list: `count` values, written [1, 2] */
    TN_VALUE_TUPLE = 6,    /* as.list: `count` values, written (1, 2) */
    TN_VALUE_SPEC = 7,     /* as.s: the text of a nested spec, such as Linear(4, 3) */
    TN_VALUE_TENSOR = 8,   /* as.tensor */
    TN_VALUE_MODULE = 9,   /* as.module */
    TN_VALUE_OPAQUE = 10,  /* as.opaque: a pointer that only sender and receiver understand */
    TN_VALUE_BYTES = 11,   /* as.s: `count` arbitrary bytes */
    TN_VALUE_COMPLEX = 12, /* as.list: two values of kind FLOAT, the real and the imaginary part */
    TN_VALUE_DICT = 13, /* as.list: `count` values, a key and its value in turn: {'a': 1, 'b': 2} */
    TN_VALUE_UINT = 14  /* as.u; only for numbers above 2^63 - 1, smaller ones are of kind INT */
};

/* One value of any kind. The layout (16 bytes) never changes. */
typedef struct tn_value {
    uint32_t kind;
    uint32_t count;
    union {
        int64_t i;
        uint64_t u;
        double f;
        const char *s;
        const struct tn_value *list;
        tn_tensor *tensor;
        tn_module *module;
        void *opaque;
    } as;
} tn_value;

/* ---- option tables --------------------------------------------------------------------------- */

/* The type of the member that stores an option in the plugin's option struct. */
typedef uint32_t tn_option_kind;
enum {
    TN_OPTION_KIND_END = 0,
    TN_OPTION_KIND_BOOL = 1,   /* bool */
    TN_OPTION_KIND_INT = 2,    /* int64_t */
    TN_OPTION_KIND_FLOAT = 3,  /* double */
    TN_OPTION_KIND_STRING = 4, /* const char *; the string lives as long as the struct */
    TN_OPTION_KIND_INTS = 5,   /* tn_ints; a single number is read as an array of one */
    TN_OPTION_KIND_FLOATS = 6, /* struct tn_floats */
    TN_OPTION_KIND_DTYPE = 7,  /* tn_dtype; written as a name: float32 */
    TN_OPTION_KIND_VALUE = 8,  /* tn_value; any value, also a nested spec */
    TN_OPTION_KIND_SCALAR = 9  /* tn_scalar; written as 2, 2.0, True or 1+2j */
};

typedef struct tn_floats {
    const double *at;
    int64_t count;
} tn_floats;

static inline tn_floats tn_no_floats(void)
{
    tn_floats row = { NULL, 0 };
    return row;
}
static inline tn_floats tn_none_floats(void)
{
    tn_floats row = { NULL, -1 };
    return row;
}

enum {
    TN_OPTION_REQUIRED = 1, /* the option has no default and must be given */
    TN_OPTION_KEYWORD = 2,  /* the option can be given by name only */
    /* Takes all further arguments, positional and named. Only for the last row of a table; the kind
     * is VALUE, and the member has type tn_values. */
    TN_OPTION_MANY = 4,
    /* The value None is accepted. It is stored as NaN in a FLOAT, INT64_MIN in an INT, NULL in a
     * STRING, count -1 in INTS and FLOATS, TN_DTYPE_AUTO in a DTYPE, kind NONE in a SCALAR. In
     * FLOATS an element may be None, too, and is stored as NaN. Not for BOOL; a VALUE accepts None
     * without this flag. */
    TN_OPTION_OPTIONAL = 8,
    TN_OPTION_REPR_KEYWORD = 16, /* repr prints NAME=VALUE instead of only the value */
    /* For INTS: the member has type tn_ints_given, which also says whether the value was written as
     * a list, [2, 2]. It is printed in the same form. */
    TN_OPTION_LISTS = 32
};

typedef struct tn_ints_given {
    tn_ints row;
    bool list;
} tn_ints_given;

/* One row of an option table. A table ends with TN_OPTION_END. The layout never changes. */
typedef struct tn_option {
    const char *name;
    const char *def; /* the default as text, in the spec grammar; NULL: required, or None */
    const char *help;
    uint32_t kind; /* tn_option_kind */
    uint32_t flags;
    uint32_t offset; /* offset of the member in the plugin's option struct */
    /* Of an operator: the version that added the option; 0: the first (<tenon/operator.h>). */
    uint32_t since;
    uint32_t reserved[2];
} tn_option;

/* How an option with TN_OPTION_MANY is stored. `names[i]` is NULL for a positional argument. */
typedef struct tn_values {
    const tn_value *at;
    const char *const *names;
    int64_t count;
} tn_values;

/* A row for an option whose name is not that of its member. */
#define TN_OPTION_NAMED_SINCE(name, type, member, def, help, kind, flags, since)                   \
    {                                                                                              \
        name, def, help, kind, flags, (uint32_t)offsetof(type, member), since,                     \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }
#define TN_OPTION_NAMED(name, type, member, def, help, kind, flags)                                \
    TN_OPTION_NAMED_SINCE(name, type, member, def, help, kind, flags, 0)
/* In the declaration of the first option that a version adds to the options of an operator
 * (<tenon/operator.h>): double scale TN_OPTION_ADDED; */
#define TN_OPTION_ADDED TN_ATTR(aligned(8))
#define TN_OPTION_ROW_SINCE(type, member, def, help, kind, flags, since)                           \
    TN_OPTION_NAMED_SINCE(#member, type, member, def, help, kind, flags, since)
#define TN_OPTION_ROW(type, member, def, help, kind, flags)                                        \
    TN_OPTION_ROW_SINCE(type, member, def, help, kind, flags, 0)
#define TN_OPTION_BOOL(type, member, def, help)                                                    \
    TN_OPTION_ROW(type, member, def, help, TN_OPTION_KIND_BOOL, 0)
#define TN_OPTION_INT(type, member, def, help)                                                     \
    TN_OPTION_ROW(type, member, def, help, TN_OPTION_KIND_INT, 0)
#define TN_OPTION_FLOAT(type, member, def, help)                                                   \
    TN_OPTION_ROW(type, member, def, help, TN_OPTION_KIND_FLOAT, 0)
#define TN_OPTION_STRING(type, member, def, help)                                                  \
    TN_OPTION_ROW(type, member, def, help, TN_OPTION_KIND_STRING, 0)
#define TN_OPTION_INTS(type, member, def, help)                                                    \
    TN_OPTION_ROW(type, member, def, help, TN_OPTION_KIND_INTS, 0)
#define TN_OPTION_FLOATS(type, member, def, help)                                                  \
    TN_OPTION_ROW(type, member, def, help, TN_OPTION_KIND_FLOATS, 0)
#define TN_OPTION_SCALAR(type, member, def, help)                                                  \
    TN_OPTION_ROW(type, member, def, help, TN_OPTION_KIND_SCALAR, 0)
#define TN_OPTION_INT_REQUIRED(type, member, help)                                                 \
    TN_OPTION_ROW(type, member, NULL, help, TN_OPTION_KIND_INT, TN_OPTION_REQUIRED)
#define TN_OPTION_END                                                                              \
    {                                                                                              \
        NULL, NULL, NULL, TN_OPTION_KIND_END, 0, 0, 0,                                             \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

/* ---- value packs ----------------------------------------------------------------------------- */

/* A value pack: positional values followed by named ones. Holds the arguments or results of a
 * module call if these are not just one tensor. A pack holds references to its tensors and modules,
 * and copies of its strings and lists. */
typedef struct tn_pack tn_pack;

/* Returns a new, empty pack. [owned] */
TN_API tn_pack *tn_pack_new(void);
/* Frees a pack. [null-ok: pack] */
TN_API void tn_pack_drop(tn_pack *pack);
/* Adds a value at the end, with a name if `name` is not NULL. Fails with TN_ERR_KEY if the pack has
 * this name already, and with TN_ERR_VALUE for a positional value after a named one.
 * [null-ok: name] */
TN_API tn_status tn_pack_add(tn_pack *pack, const char *name, tn_value value);
/* Replaces the value at `index`. Its name stays the same. */
TN_API tn_status tn_pack_set(tn_pack *pack, int64_t index, tn_value value);
/* tn_pack_count returns the number of values. tn_pack_positional returns how many of them are
 * positional; these come first. */
TN_API int64_t tn_pack_count(const tn_pack *pack);
TN_API int64_t tn_pack_positional(const tn_pack *pack);
/* Returns the value at `index`. If the index is out of range, returns a value of kind NONE and
 * records a failure. [borrowed] */
TN_API tn_value tn_pack_at(const tn_pack *pack, int64_t index);
/* Returns the name of the value at `index`; NULL for a positional value. [borrowed] */
TN_API const char *tn_pack_name(const tn_pack *pack, int64_t index);
/* Returns the index of the value with this name; -1, without an error, if there is none. */
TN_API int64_t tn_pack_find(const tn_pack *pack, const char *name);
/* Returns the tensor at `index`. If the value is no tensor, returns NULL and records a failure that
 * names its kind. [borrowed] */
TN_API tn_tensor *tn_pack_tensor(const tn_pack *pack, int64_t index);
/* Returns the value of the string `key` in a dictionary; NULL, without an error, if there is
 * none. For a value that is no dictionary, returns NULL and records a failure. [borrowed] */
TN_API const tn_value *tn_value_get(const tn_value *dict, const char *key);

static inline tn_value tn_value_none(void)
{
    tn_value value;
    value.kind = TN_VALUE_NONE;
    value.count = 0;
    value.as.i = 0;
    return value;
}
static inline tn_value tn_value_tensor(tn_tensor *tensor)
{
    tn_value value = tn_value_none();
    value.kind = TN_VALUE_TENSOR;
    value.as.tensor = tensor;
    return value;
}
static inline tn_value tn_value_module(tn_module *module)
{
    tn_value value = tn_value_none();
    value.kind = TN_VALUE_MODULE;
    value.as.module = module;
    return value;
}
/* tn_value_list and tn_value_tuple return a list and a tuple of `count` values. The list refers to
 * the array `values`, which must live as long as the list is used. */
static inline tn_value tn_value_list(const tn_value *values, uint32_t count)
{
    tn_value value = tn_value_none();
    value.kind = TN_VALUE_LIST;
    value.count = count;
    value.as.list = values;
    return value;
}
static inline tn_value tn_value_tuple(const tn_value *values, uint32_t count)
{
    tn_value value = tn_value_list(values, count);
    value.kind = TN_VALUE_TUPLE;
    return value;
}
/* tn_value_dict returns a dictionary of `count` / 2 entries. `values` has a key, its value, the
 * next key and so on. A key is a string, an integer, a bool, a float or None; of entries with the
 * same key the last one counts. The dictionary refers to the array `values`, as a list does. */
static inline tn_value tn_value_dict(const tn_value *values, uint32_t count)
{
    tn_value value = tn_value_list(values, count);
    value.kind = TN_VALUE_DICT;
    return value;
}
/* Returns the name of a kind of values, as in messages: "list" for TN_VALUE_LIST. */
static inline const char *tn_value_kind_name(uint32_t kind)
{
    static const char *const names[] = { "None",           "bool",   "int",    "float",
                                         "string",         "list",   "tuple",  "spec",
                                         "tensor",         "module", "opaque", "bytes",
                                         "complex number", "dict",   "uint" };

    return kind < sizeof names / sizeof *names ? names[kind] : "value of an unknown kind";
}
/* tn_value_size returns the number of elements of a list or tuple, or of entries of a dictionary;
 * 0 for other values. tn_value_item returns element `index`, of a dictionary the value of entry
 * `index`. The index must be smaller than tn_value_size. */
static inline uint32_t tn_value_size(const tn_value *value)
{
    switch (value->kind) {
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE: return value->count;
    case TN_VALUE_DICT: return value->count / 2;
    default: return 0;
    }
}
static inline const tn_value *tn_value_item(const tn_value *value, uint32_t index)
{
    return value->kind == TN_VALUE_DICT ? &value->as.list[2 * index + 1] : &value->as.list[index];
}
static inline tn_value tn_value_int(int64_t number)
{
    tn_value value = tn_value_none();
    value.kind = TN_VALUE_INT;
    value.as.i = number;
    return value;
}
/* Returns a value of kind INT, or UINT if the number is above 2^63 - 1. */
static inline tn_value tn_value_uint(uint64_t number)
{
    tn_value value = tn_value_none();
    value.kind = number > INT64_MAX ? TN_VALUE_UINT : TN_VALUE_INT;
    value.as.u = number;
    return value;
}
static inline tn_value tn_value_float(double number)
{
    tn_value value = tn_value_none();
    value.kind = TN_VALUE_FLOAT;
    value.as.f = number;
    return value;
}
static inline tn_value tn_value_bool(bool flag)
{
    tn_value value = tn_value_none();
    value.kind = TN_VALUE_BOOL;
    value.as.i = flag;
    return value;
}
static inline tn_value tn_value_string(const char *text)
{
    tn_value value = tn_value_none();
    value.kind = TN_VALUE_STRING;
    value.as.s = text;
    return value;
}
static inline tn_value tn_value_bytes(const void *bytes, uint32_t count)
{
    tn_value value = tn_value_none();
    value.kind = TN_VALUE_BYTES;
    value.count = count;
    value.as.s = (const char *)bytes;
    return value;
}

/* Adds several tensors at the end of a pack, as positional values: TN_NONE is None. Fails if the
 * pack has named values already. If memory runs out, the values before stay. [array: tensors n] */
TN_API tn_status tn_pack_add_tensors(tn_pack *pack, tn_tensor *const *tensors, int64_t n);
/* The inverse: `tensors` gets the first `n` tensors of a pack, those within tuples, lists and
 * dictionaries in their order, TN_NONE for None. They stay valid when the pack is dropped. A pack
 * with fewer tensors, or with another value among them, is an error; then all are NULL. [scoped]
 * [array: tensors n] */
TN_API tn_status tn_pack_take(const tn_pack *pack, tn_tensor **tensors, int64_t n);

TN_END_DECLS
#endif
