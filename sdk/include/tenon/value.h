/* SPDX-License-Identifier: MIT
 *
 * Values, option tables and value packs: how options, arguments and results that are not plain
 * tensors cross the boundary.
 * tenon-interface: tenon.value 0 */
#ifndef TENON_VALUE_H
#define TENON_VALUE_H

#include <tenon/base.h>

TN_BEGIN_DECLS

typedef struct tn_tensor tn_tensor;
typedef struct tn_module tn_module;
typedef struct tn_device tn_device;

/* An array of integers: a shape, strides, dims. It does not own what it points to. */
typedef struct tn_ints {
    const int64_t *at;
    int64_t count;
} tn_ints;

/* TN_INTS(2, 3): an array that lives until the end of the block (C) or of the expression (C++).
 * TN_SHAPE is the same, for shapes. */
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
/* The shape of a 0-d tensor; as an option: "not given". */
#define TN_SCALAR_SHAPE tn_no_ints()

/* ---- numbers of any kind --------------------------------------------------------------------- */

typedef uint32_t tn_scalar_kind;
enum {
    TN_SCALAR_NONE = 0,    /* not given */
    TN_SCALAR_BOOL = 1,    /* as.i, 0 or 1 */
    TN_SCALAR_INT = 2,     /* as.i */
    TN_SCALAR_FLOAT = 3,   /* as.f */
    TN_SCALAR_COMPLEX = 4, /* as.c, the real and the imaginary part */
    TN_SCALAR_UINT = 5     /* as.u, above 2^63 - 1: smaller ones are INT */
};

/* One number, with nothing lost: where an operator computes with it, its kind decides what the
 * result is. Frozen: 24 bytes. In C++ plain numbers convert to it. */
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
    tn_scalar(const volatile void *) = delete; /* else a pointer would be a bool */
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

/* For kernels: the number as int64, a fraction dropped, what is out of range the nearest, NaN 0, of
 * UINT the same 64 bits; of COMPLEX the real part. */
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
/* The number as a double, of COMPLEX the real part; NAN for none. */
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
/* The imaginary part; 0 of what is not COMPLEX. */
static inline double tn_scalar_imag(tn_scalar scalar)
{
    return scalar.kind == TN_SCALAR_COMPLEX ? scalar.as.c[1] : 0.0;
}

/* TN_SCALAR(2), TN_SCALAR(0.5), TN_SCALAR(x): a tn_scalar of a number of C; a tn_scalar stays as it
 * is. `true` is an int in C before C23: TN_SCALAR((bool)true), or tn_scalar_bool. The initializers
 * are for static structs. */
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
#define TN_SCALAR(number)                                                                          \
    _Generic((number), tn_scalar                                                                   \
             : tn_scalar_same, bool                                                                \
             : tn_scalar_bool, char                                                                \
             : tn_scalar_int, signed char                                                          \
             : tn_scalar_int, unsigned char                                                        \
             : tn_scalar_int, short                                                                \
             : tn_scalar_int, unsigned short                                                       \
             : tn_scalar_int, int                                                                  \
             : tn_scalar_int, unsigned                                                             \
             : tn_scalar_int, long                                                                 \
             : tn_scalar_int, long long                                                            \
             : tn_scalar_int, unsigned long                                                        \
             : tn_scalar_uint, unsigned long long                                                  \
             : tn_scalar_uint, float                                                               \
             : tn_scalar_float, double                                                             \
             : tn_scalar_float, long double                                                        \
             : tn_scalar_float, float _Complex                                                     \
             : tn_scalar_c99, double _Complex                                                      \
             : tn_scalar_c99)(number)
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
    TN_VALUE_BOOL = 1,    /* as.i, 0 or 1 */
    TN_VALUE_INT = 2,     /* as.i */
    TN_VALUE_FLOAT = 3,   /* as.f */
    TN_VALUE_STRING = 4,  /* as.s, UTF-8 */
    TN_VALUE_LIST = 5,    /* as.list, `count` values, [1, 2] */
    TN_VALUE_TUPLE = 6,   /* as.list, (1, 2) */
    TN_VALUE_SPEC = 7,    /* as.s: the text of a nested spec, Linear(4, 3) */
    TN_VALUE_TENSOR = 8,  /* as.tensor */
    TN_VALUE_MODULE = 9,  /* as.module */
    TN_VALUE_OPAQUE = 10, /* as.opaque: passed through, known only to sender and receiver */
    TN_VALUE_BYTES = 11,  /* as.s, `count` arbitrary bytes */
    TN_VALUE_COMPLEX = 12 /* as.list, two values of kind FLOAT: real part, imaginary part */
};

/* One value. Frozen: 16 bytes. */
typedef struct tn_value {
    uint32_t kind;
    uint32_t count;
    union {
        int64_t i;
        double f;
        const char *s;
        const struct tn_value *list;
        tn_tensor *tensor;
        tn_module *module;
        void *opaque;
    } as;
} tn_value;

/* ---- option tables --------------------------------------------------------------------------- */

/* How an option is stored in the provider's struct. */
typedef uint32_t tn_option_kind;
enum {
    TN_OPTION_KIND_END = 0,
    TN_OPTION_KIND_BOOL = 1,   /* bool */
    TN_OPTION_KIND_INT = 2,    /* int64_t */
    TN_OPTION_KIND_FLOAT = 3,  /* double */
    TN_OPTION_KIND_STRING = 4, /* const char *; lives as long as the struct */
    TN_OPTION_KIND_INTS = 5,   /* tn_ints; a single number is a row of one */
    TN_OPTION_KIND_FLOATS = 6, /* struct tn_floats */
    TN_OPTION_KIND_DTYPE = 7,  /* tn_dtype, by name: float32 */
    TN_OPTION_KIND_VALUE = 8,  /* tn_value: anything, nested specs too */
    TN_OPTION_KIND_SCALAR = 9  /* tn_scalar: 2, 2.0, True, 1+2j */
};

typedef struct tn_floats {
    const double *at;
    int64_t count;
} tn_floats;

enum {
    TN_OPTION_REQUIRED = 1, /* no default: required */
    TN_OPTION_KEYWORD = 2,  /* by name only */
    TN_OPTION_MANY = 4, /* last in the table, kind VALUE stored as tn_values: all further arguments,
                           named ones too */
    TN_OPTION_OPTIONAL = 8, /* None is accepted: FLOAT becomes NAN, INT INT64_MIN, STRING NULL, rows
                               count -1, SCALAR kind NONE */
    TN_OPTION_REPR_KEYWORD = 16 /* repr prints name=value; without it the value alone */
};

/* One row of an option table, which ends with TN_OPTION_END. Frozen. */
typedef struct tn_option {
    const char *name;
    const char *def; /* default, in the spec grammar; NULL when required */
    const char *help;
    uint32_t kind; /* tn_option_kind */
    uint32_t flags;
    uint32_t offset; /* in the provider's struct */
    uint32_t reserved[3];
} tn_option;

/* What TN_OPTION_MANY is stored as. `names[i]` is NULL for a positional argument. */
typedef struct tn_values {
    const tn_value *at;
    const char *const *names;
    int64_t count;
} tn_values;

#define TN_OPTION_ROW(type, member, def, help, kind, flags)                                        \
    {                                                                                              \
#member, def, help, kind, flags, (uint32_t)offsetof(type, member),                         \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }
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
        NULL, NULL, NULL, TN_OPTION_KIND_END, 0, 0,                                                \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }

/* ---- value packs ----------------------------------------------------------------------------- */

/* Positional values and named ones: the arguments and results of a module call with more than one
 * tensor. Holds references to its tensors and modules, copies strings and lists. */
typedef struct tn_pack tn_pack;

/* A new, empty pack. [owned] */
TN_API tn_pack *tn_pack_new(void);
/* [null-ok: pack] */
TN_API void tn_pack_drop(tn_pack *pack);
/* Adds a value at the end; named when `name` is not NULL. [null-ok: name] */
TN_API tn_status tn_pack_add(tn_pack *pack, const char *name, tn_value value);
/* Replaces value `index`. */
TN_API tn_status tn_pack_set(tn_pack *pack, int64_t index, tn_value value);
/* Number of values; of them the positional ones come first. */
TN_API int64_t tn_pack_count(const tn_pack *pack);
TN_API int64_t tn_pack_positional(const tn_pack *pack);
/* Value `index`; kind NONE and an error when out of range. [borrowed] */
TN_API tn_value tn_pack_at(const tn_pack *pack, int64_t index);
/* Name of value `index`, NULL for a positional one. [borrowed] */
TN_API const char *tn_pack_name(const tn_pack *pack, int64_t index);
/* Index of a name, -1 if absent (not an error). */
TN_API int64_t tn_pack_find(const tn_pack *pack, const char *name);
/* Tensor `index`; an error that names what it is instead. [borrowed] */
TN_API tn_tensor *tn_pack_tensor(const tn_pack *pack, int64_t index);

static inline tn_value tn_value_tensor(tn_tensor *tensor)
{
    tn_value value;
    value.kind = TN_VALUE_TENSOR;
    value.count = 0;
    value.as.tensor = tensor;
    return value;
}
static inline tn_value tn_value_int(int64_t number)
{
    tn_value value;
    value.kind = TN_VALUE_INT;
    value.count = 0;
    value.as.i = number;
    return value;
}
static inline tn_value tn_value_float(double number)
{
    tn_value value;
    value.kind = TN_VALUE_FLOAT;
    value.count = 0;
    value.as.f = number;
    return value;
}
static inline tn_value tn_value_bool(bool flag)
{
    tn_value value;
    value.kind = TN_VALUE_BOOL;
    value.count = 0;
    value.as.i = flag;
    return value;
}
static inline tn_value tn_value_string(const char *text)
{
    tn_value value;
    value.kind = TN_VALUE_STRING;
    value.count = 0;
    value.as.s = text;
    return value;
}
static inline tn_value tn_value_bytes(const void *bytes, uint32_t count)
{
    tn_value value;
    value.kind = TN_VALUE_BYTES;
    value.count = count;
    value.as.s = (const char *)bytes;
    return value;
}

TN_END_DECLS
#endif
