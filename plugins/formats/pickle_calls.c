/* SPDX-License-Identifier: MIT
 *
 * The Python functions and types that a pickle may name, and what a call of each one makes. No
 * Python code is run: each row of the table describes one way to store data, and reading fails at a
 * name that is not in the table. */
#include "pickle.h"

#include <string.h>

enum call {
    CALL_NOTHING, /* a type or dtype that can be named but not called */
    CALL_DICT,
    CALL_COPY,   /* Counter(dict), Size(tuple): the result is the argument itself */
    CALL_LIST,   /* build_intlist(list), restore_type_tag(value, type): the first argument itself */
    CALL_OBJECT, /* a class of TorchScript: NEWOBJ makes its objects, it is not called */
    CALL_SET,
    CALL_COMPLEX,
    CALL_BYTES,  /* bytes(): an empty byte string */
    CALL_ENCODE, /* encode(text, 'latin1'): protocol 2 writes bytes in this way */
    CALL_DEVICE,
    /* For the calls below, the comments list the arguments. */
    CALL_TENSOR,    /* storage, offset, shape, strides, ... */
    CALL_TENSOR_3,  /* storage, offset, shape, strides, requires_grad, hooks, dtype, ... */
    CALL_PARAMETER, /* tensor, requires_grad, hooks ... */
    CALL_TYPED,     /* function, type, arguments, attributes */
    CALL_STORAGE
};

struct pickle_name {
    const char *module, *name;
    enum call call;
    int dtype; /* of a storage type or a dtype; TN_DTYPE_AUTO for all other names */
};

#define OTHER TN_DTYPE_AUTO
#define DTYPE(name, dtype)                                                                         \
    {                                                                                              \
        "torch", name, CALL_NOTHING, dtype                                                         \
    }
#define STORAGE(name, dtype)                                                                       \
    {                                                                                              \
        "torch", name, CALL_STORAGE, dtype                                                         \
    }

static const struct pickle_name names[] = {
    { "collections", "OrderedDict", CALL_DICT, OTHER },
    { "collections", "Counter", CALL_COPY, OTHER },
    { "__builtin__", "set", CALL_SET, OTHER },
    { "__builtin__", "frozenset", CALL_SET, OTHER },
    { "__builtin__", "complex", CALL_COMPLEX, OTHER },
    { "__builtin__", "bytes", CALL_BYTES, OTHER },
    { "builtins", "set", CALL_SET, OTHER },
    { "builtins", "frozenset", CALL_SET, OTHER },
    { "builtins", "complex", CALL_COMPLEX, OTHER },
    { "builtins", "bytes", CALL_BYTES, OTHER },
    { "_codecs", "encode", CALL_ENCODE, OTHER },
    { "torch", "Size", CALL_COPY, OTHER },
    { "torch", "device", CALL_DEVICE, OTHER },
    { "torch", "Tensor", CALL_NOTHING, OTHER },
    { "torch.nn.parameter", "Parameter", CALL_NOTHING, OTHER },
    { "torch.nn.parameter", "Buffer", CALL_NOTHING, OTHER },
    { "torch._tensor", "_rebuild_from_type_v2", CALL_TYPED, OTHER },
    { "torch._utils", "_rebuild_tensor", CALL_TENSOR, OTHER },
    { "torch._utils", "_rebuild_tensor_v2", CALL_TENSOR, OTHER },
    { "torch._utils", "_rebuild_tensor_v3", CALL_TENSOR_3, OTHER },
    { "torch._utils", "_rebuild_parameter", CALL_PARAMETER, OTHER },
    { "torch._utils", "_rebuild_parameter_with_state", CALL_PARAMETER, OTHER },
    { "torch.storage", "UntypedStorage", CALL_STORAGE, TN_U8 },
    STORAGE("UntypedStorage", TN_U8),
    STORAGE("BoolStorage", TN_BOOL),
    STORAGE("ByteStorage", TN_U8),
    STORAGE("CharStorage", TN_I8),
    STORAGE("ShortStorage", TN_I16),
    STORAGE("IntStorage", TN_I32),
    STORAGE("LongStorage", TN_I64),
    STORAGE("HalfStorage", TN_F16),
    STORAGE("BFloat16Storage", TN_BF16),
    STORAGE("FloatStorage", TN_F32),
    STORAGE("DoubleStorage", TN_F64),
    STORAGE("ComplexFloatStorage", TN_C64),
    STORAGE("ComplexDoubleStorage", TN_C128),
    DTYPE("bool", TN_BOOL),
    DTYPE("uint8", TN_U8),
    DTYPE("int8", TN_I8),
    DTYPE("int16", TN_I16),
    DTYPE("int32", TN_I32),
    DTYPE("int64", TN_I64),
    DTYPE("uint16", TN_U16),
    DTYPE("uint32", TN_U32),
    DTYPE("uint64", TN_U64),
    DTYPE("float16", TN_F16),
    DTYPE("bfloat16", TN_BF16),
    DTYPE("float32", TN_F32),
    DTYPE("float64", TN_F64),
    DTYPE("complex64", TN_C64),
    DTYPE("complex128", TN_C128),
    DTYPE("float8_e4m3fn", TN_F8_E4M3),
    DTYPE("float8_e5m2", TN_F8_E5M2),
};

/* What TorchScript's pickles name in addition to the table above: lists with a type, and the
 * classes that the archive itself defines in its code, which is not read. */
static const struct pickle_name script_names[] = {
    { "torch.jit._pickle", "build_tensorlist", CALL_LIST, OTHER },
    { "torch.jit._pickle", "build_intlist", CALL_LIST, OTHER },
    { "torch.jit._pickle", "build_doublelist", CALL_LIST, OTHER },
    { "torch.jit._pickle", "build_boollist", CALL_LIST, OTHER },
    { "torch.jit._pickle", "restore_type_tag", CALL_LIST, OTHER },
};
static const struct pickle_name script_class = { "__torch__", "a class", CALL_OBJECT, OTHER };

static bool same(const char *text, const char *bytes, size_t size)
{
    return strlen(text) == size && memcmp(text, bytes, size) == 0;
}

static const struct pickle_name *find_name(const struct pickle *pk, const char *module,
                                           size_t module_size, const char *name, size_t name_size)
{
    static const char classes[] = "__torch__";
    const size_t length = sizeof classes - 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (same(names[i].module, module, module_size) && same(names[i].name, name, name_size))
            return &names[i];
    if (!pk->script)
        return NULL;
    for (size_t i = 0; i < sizeof script_names / sizeof *script_names; i++)
        if (same(script_names[i].module, module, module_size) &&
            same(script_names[i].name, name, name_size))
            return &script_names[i];
    return module_size >= length && memcmp(module, classes, length) == 0 &&
                   (module_size == length || module[length] == '.')
               ? &script_class
               : NULL;
}

struct pickle_value *pickle_global(struct pickle *pk, const char *module, size_t module_size,
                                   const char *name, size_t name_size)
{
    const struct pickle_name *known = find_name(pk, module, module_size, name, name_size);
    if (known != NULL) {
        struct pickle_value *value = pickle_new(pk, PK_NAME);
        if (value != NULL) {
            value->as.name = known;
            value->dtype = (uint8_t)(known->call == CALL_NOTHING ? known->dtype : OTHER);
        }
        return value;
    }
    int shown = module_size < 200 ? (int)module_size : 200;
    tn_fail(TN_ERR_REFUSED,
            "%s: pickle, byte %zu: %.*s.%.*s: not data that Tenon can read; expected tensors, "
            "numbers, strings, lists and dictionaries (to save a module, save its state_dict())",
            pk->path, pk->op, shown, module, name_size < 200 ? (int)name_size : 200, name);
    return NULL;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static bool is_sizes(const struct pickle_value *value)
{
    /* Only a tuple is accepted: the pickle could still change a list after this check. */
    bool good = value->kind == PK_TUPLE && value->as.list.count <= TN_MAX_DIMS;
    for (uint32_t i = 0; good && i < value->as.list.count; i++)
        good = value->as.list.at[i]->kind == PK_INT && value->as.list.at[i]->as.i >= 0;
    return good;
}

static bool is_empty(const struct pickle_value *value)
{
    return value->kind == PK_NONE || (value->kind == PK_DICT && value->as.list.count == 0);
}

static struct pickle_value *make_tensor(struct pickle *pk, struct pickle_value *arguments,
                                        bool with_dtype)
{
    struct pickle_value **at = arguments->as.list.at;
    uint32_t count = arguments->as.list.count, extra = with_dtype ? 7 : 6;
    if (count < (with_dtype ? 7u : 4u) || at[0]->kind != PK_STORAGE || at[1]->kind != PK_INT ||
        at[1]->as.i < 0 || !is_sizes(at[2]) || !is_sizes(at[3]) ||
        at[2]->as.list.count != at[3]->as.list.count) {
        pickle_bad(
            pk,
            "tensor: wrong arguments; expected a storage, an offset, at most 16 sizes and as many "
            "strides");
        return NULL;
    }
    if (with_dtype && (at[6]->kind != PK_NAME || at[6]->dtype == OTHER)) {
        pickle_bad_type(pk, "tensor: dtype", at[6], "a torch.dtype that Tenon has");
        return NULL;
    }
    /* The last argument says that the values must still be conjugated or negated, which is not
     * implemented. */
    if (count > extra && !is_empty(at[extra])) {
        pickle_bad(pk, "tensor: conjugate or negative bit is set; expected none; save "
                       "tensor.resolve_conj() or tensor.resolve_neg() instead");
        return NULL;
    }
    struct pickle_value *tensor = pickle_new(pk, PK_TENSOR);
    if (tensor != NULL) {
        tensor->dtype = with_dtype ? at[6]->dtype : at[0]->dtype;
        tensor->as.tensor.at = at;
    }
    return tensor;
}

/* _rebuild_from_type_v2(function, type, arguments, attributes): the result is that of
 * function(*arguments); type and attributes are ignored. */
static struct pickle_value *make_typed(struct pickle *pk, struct pickle_value *arguments)
{
    struct pickle_value **at = arguments->as.list.at;
    if (arguments->as.list.count < 3 || at[0]->kind != PK_NAME || at[1]->kind != PK_NAME ||
        at[2]->kind != PK_TUPLE || at[0]->as.name->call == CALL_TYPED) {
        pickle_bad(
            pk, "tensor of a subclass: wrong arguments; expected a function, a type and arguments");
        return NULL;
    }
    return pickle_call(pk, at[0], at[2]);
}

/* ---- values ---------------------------------------------------------------------------------- */

static struct pickle_value *make_complex(struct pickle *pk, struct pickle_value **at,
                                         uint32_t count)
{
    if (count != 2 || at[0]->kind != PK_FLOAT || at[1]->kind != PK_FLOAT) {
        pickle_bad(pk, "complex number: wrong arguments; expected two numbers");
        return NULL;
    }
    struct pickle_value *value = pickle_new(pk, PK_COMPLEX);
    if (value != NULL) {
        value->as.f[0] = at[0]->as.f[0];
        value->as.f[1] = at[1]->as.f[0];
    }
    return value;
}

/* OrderedDict(), or OrderedDict([[key, value], ...]), which Python 2 wrote. */
static struct pickle_value *make_dict(struct pickle *pk, struct pickle_value **at, uint32_t count)
{
    struct pickle_value *dict = pickle_new(pk, PK_DICT);
    if (dict == NULL || count == 0)
        return dict;
    bool good = count == 1 && at[0]->kind == PK_LIST;
    for (uint32_t i = 0; good && i < at[0]->as.list.count; i++) {
        struct pickle_value *pair = at[0]->as.list.at[i];
        good = (pair->kind == PK_LIST || pair->kind == PK_TUPLE) && pair->as.list.count == 2;
        if (good && (pickle_add(pk, dict, pair->as.list.at[0]) != TN_OK ||
                     pickle_add(pk, dict, pair->as.list.at[1]) != TN_OK))
            return NULL;
    }
    if (!good)
        pickle_bad(pk, "OrderedDict: wrong arguments; expected a list of [key, value] pairs");
    return good ? dict : NULL;
}

static struct pickle_value *make_set(struct pickle *pk, struct pickle_value **at, uint32_t count)
{
    if (count > 1 || (count == 1 && at[0]->kind != PK_LIST && at[0]->kind != PK_TUPLE)) {
        pickle_bad(pk, "set: wrong arguments; expected a list");
        return NULL;
    }
    struct pickle_value *set = pickle_new(pk, PK_SET);
    for (uint32_t i = 0; set != NULL && count == 1 && i < at[0]->as.list.count; i++)
        if (pickle_add(pk, set, at[0]->as.list.at[i]) != TN_OK)
            return NULL;
    return set;
}

/* encode(text, 'latin1'): each character of the text, at most 255, is one byte. The value keeps the
 * UTF-8 text (dtype 1), which is converted to bytes when the value is used. */
static struct pickle_value *make_bytes(struct pickle *pk, struct pickle_value **at, uint32_t count)
{
    bool good = count == 2 && at[0]->kind == PK_TEXT && pickle_is_text(at[1], "latin1");
    for (size_t i = 0; good && i < at[0]->as.text.size; i++) {
        const unsigned char *c = (const unsigned char *)at[0]->as.text.at + i;
        if (*c < 128)
            continue;
        good = (*c & 0xfe) == 0xc2 && i + 1 < at[0]->as.text.size && (c[1] & 0xc0) == 0x80;
        i++;
    }
    struct pickle_value *bytes = good ? pickle_new(pk, PK_BYTES) : NULL;
    if (bytes != NULL) {
        bytes->as.text = at[0]->as.text;
        bytes->dtype = 1;
    } else if (!good) {
        pickle_bad(pk, "encode: wrong arguments; expected a Latin-1 string and 'latin1'");
    }
    return bytes;
}

struct pickle_value *pickle_call(struct pickle *pk, const struct pickle_value *name,
                                 struct pickle_value *arguments)
{
    struct pickle_value **at = arguments->as.list.at;
    uint32_t count = arguments->as.list.count;
    switch (name->as.name->call) {
    case CALL_DICT: return make_dict(pk, at, count);
    case CALL_SET: return make_set(pk, at, count);
    case CALL_COMPLEX: return make_complex(pk, at, count);
    case CALL_ENCODE: return make_bytes(pk, at, count);
    case CALL_TENSOR: return make_tensor(pk, arguments, false);
    case CALL_TENSOR_3: return make_tensor(pk, arguments, true);
    case CALL_TYPED: return make_typed(pk, arguments);
    case CALL_BYTES:
        if (count == 0)
            return pickle_new(pk, PK_BYTES);
        break;
    case CALL_COPY:
        if (count == 1 && (at[0]->kind == PK_DICT || at[0]->kind == PK_TUPLE))
            return at[0];
        break;
    case CALL_LIST:
        if (count >= 1 && (at[0]->kind == PK_LIST || at[0]->kind == PK_DICT))
            return at[0];
        break;
    case CALL_DEVICE:
        if (count >= 1 && at[0]->kind == PK_TEXT)
            return count == 1 ? at[0] : arguments;
        break;
    case CALL_PARAMETER:
        if (count >= 1 && at[0]->kind == PK_TENSOR)
            return at[0];
        break;
    case CALL_NOTHING:
    case CALL_OBJECT:
    case CALL_STORAGE: break;
    }
    tn_fail(TN_ERR_FORMAT,
            "%s: pickle, byte %zu: %s.%s: wrong arguments; expected those that PyTorch writes",
            pk->path, pk->op, name->as.name->module, name->as.name->name);
    return NULL;
}

struct pickle_value *pickle_object(struct pickle *pk, const struct pickle_value *name,
                                   const struct pickle_value *arguments)
{
    if (name->kind != PK_NAME || name->as.name->call != CALL_OBJECT)
        pickle_bad_type(pk, "new object", name, "a class of TorchScript");
    else if (arguments->kind != PK_TUPLE)
        pickle_bad_type(pk, "new object: arguments", arguments, "an empty tuple");
    else if (arguments->as.list.count > 0)
        pickle_bad(pk, "new object: arguments: given; expected none");
    else
        return pickle_new(pk, PK_OBJECT);
    return NULL;
}

/* BUILD sets the attributes of an object: of a dictionary, because state_dict() stores the versions
 * of modules as an attribute of its OrderedDict, or of an object of TorchScript. */
tn_status pickle_build(struct pickle *pk, struct pickle_value *object, struct pickle_value *state)
{
    if (object->kind == PK_OBJECT && state->kind != PK_DICT)
        return pickle_bad_type(pk, "attributes of an object", state,
                               "a dictionary (objects with a state of their own, such as "
                               "quantized layers, cannot be read)");
    if (object->kind != PK_DICT && object->kind != PK_OBJECT)
        return pickle_bad_type(pk, "attributes: owner", object, "an OrderedDict");
    if (state->kind != PK_DICT)
        return pickle_bad_type(pk, "attributes", state, "a dictionary");
    if (object->as.list.attributes != NULL)
        return pickle_bad(pk, "attributes: set twice; expected once");
    object->as.list.attributes = state;
    return TN_OK;
}

/* BINPERSID of ('storage', type, key, location, size[, view]). The location is the device on which
 * the storage was saved; it is ignored. */
struct pickle_value *pickle_persistent(struct pickle *pk, const struct pickle_value *id)
{
    struct pickle_value **at = id->as.list.at;
    uint32_t count = id->kind == PK_TUPLE ? id->as.list.count : 0;
    if (count < 5 || count > 6 || !pickle_is_text(at[0], "storage") || at[1]->kind != PK_NAME ||
        at[1]->as.name->call != CALL_STORAGE || at[2]->kind != PK_TEXT || at[4]->kind != PK_INT ||
        at[4]->as.i < 0) {
        pickle_bad(pk,
                   "external object: wrong arguments; expected a storage with type, key and size");
        return NULL;
    }
    if (count == 6 && at[5]->kind != PK_NONE) {
        pickle_bad(
            pk, "storage: a view of another storage, as in files of PyTorch before 0.4; expected a "
                "whole storage; save the file again with a later PyTorch");
        return NULL;
    }
    if (pk->storages == NULL)
        pk->storages = pickle_new(pk, PK_LIST);
    struct pickle_value *storage = pk->storages != NULL ? pickle_new(pk, PK_STORAGE) : NULL;
    if (storage == NULL)
        return NULL;
    storage->dtype = (uint8_t)at[1]->as.name->dtype;
    storage->as.storage.key = at[2];
    storage->as.storage.size = at[4]->as.i;
    return pickle_add(pk, pk->storages, storage) == TN_OK ? storage : NULL;
}
