/* SPDX-License-Identifier: MIT
 *
 * Tensors in ONNX files: in the message, or in a file beside it. */
#include "onnx/onnx.h"

#include <string.h>

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* The dtypes by their numbers in files, and the typed field that can have their values. */
static const struct {
    const char *name;
    tn_dtype dtype; /* TN_DTYPE_AUTO: none */
    uint32_t field;
} types[] = {
    { "undefined", TN_DTYPE_AUTO, 0 },
    { "float", TN_F32, 4 },
    { "uint8", TN_U8, 5 },
    { "int8", TN_I8, 5 },
    { "uint16", TN_U16, 5 },
    { "int16", TN_I16, 5 },
    { "int32", TN_I32, 5 },
    { "int64", TN_I64, 7 },
    { "string", TN_DTYPE_AUTO, 0 },
    { "bool", TN_BOOL, 5 },
    { "float16", TN_F16, 5 },
    { "double", TN_F64, 10 },
    { "uint32", TN_U32, 11 },
    { "uint64", TN_U64, 11 },
    { "complex64", TN_C64, 4 },
    { "complex128", TN_C128, 10 },
    { "bfloat16", TN_BF16, 5 },
    { "float8e4m3fn", TN_F8_E4M3, 5 },
    { "float8e4m3fnuz", TN_DTYPE_AUTO, 0 },
    { "float8e5m2", TN_F8_E5M2, 5 },
    { "float8e5m2fnuz", TN_DTYPE_AUTO, 0 },
    { "uint4", TN_DTYPE_AUTO, 0 },
    { "int4", TN_DTYPE_AUTO, 0 },
    { "float4e2m1", TN_DTYPE_AUTO, 0 },
    { "float8e8m0", TN_DTYPE_AUTO, 0 },
    { "uint2", TN_DTYPE_AUTO, 0 },
    { "int2", TN_DTYPE_AUTO, 0 },
};

enum { TYPES = sizeof types / sizeof *types };

tn_status onnx_tensor_dtype(int64_t type, tn_dtype *out)
{
    if (type < 0 || type >= TYPES)
        return tn_fail(TN_ERR_FORMAT, "data type: unknown, got %lld; expected 1 to %d",
                       (long long)type, TYPES - 1);
    if (types[type].dtype == TN_DTYPE_AUTO)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "data type: wrong, got %s; expected numbers that Tenon has as a dtype",
                       types[type].name);
    *out = types[type].dtype;
    return TN_OK;
}

uint64_t onnx_tensor_type(tn_dtype dtype)
{
    for (int64_t type = 1; type < TYPES; type++)
        if (types[type].dtype == dtype && dtype != TN_DTYPE_AUTO)
            return (uint64_t)type;
    return 0;
}

/* ---- the description ------------------------------------------------------------------------- */

static tn_status add_dim(struct onnx_tensor *tensor, uint64_t size)
{
    if (tensor->ndim == TN_MAX_DIMS)
        return tn_fail(TN_ERR_FORMAT, "dims: too many; expected at most %d", TN_MAX_DIMS);
    if (size > INT64_MAX)
        return tn_fail(TN_ERR_FORMAT, "dims: negative size %lld", (long long)size);
    tensor->dims[tensor->ndim++] = (int64_t)size;
    return TN_OK;
}

static tn_status read_dims(struct onnx_tensor *tensor, const struct wire_field *field)
{
    struct wire packed = field->bytes;
    tn_status status = TN_OK;
    uint64_t size;

    if (field->type != WIRE_BYTES) {
        status = wire_need(field, WIRE_VARINT, "dims");
        return status == TN_OK ? add_dim(tensor, field->value) : status;
    }
    while (status == TN_OK && packed.at != packed.end) {
        status = wire_varint(&packed, &size);
        if (status == TN_OK)
            status = add_dim(tensor, size);
    }
    return status;
}

/* "location", "offset", "length"; others, such as a checksum, are not needed. */
static tn_status read_external(struct onnx_file *file, struct onnx_tensor *tensor,
                               struct wire message)
{
    struct wire_field field;
    const char *key = "", *value = "";
    int64_t number;
    tn_status status = TN_OK;

    while (wire_next(&message, &field, &status)) {
        if (field.number > 2 || field.type != WIRE_BYTES)
            continue;
        *(field.number == 1 ? &key : &value) = onnx_model_text(file, field.bytes);
        if (key == NULL || value == NULL)
            return tn_error_last_code();
    }
    if (status != TN_OK)
        return status;
    if (strcmp(key, "location") == 0)
        tensor->location = value;
    if (strcmp(key, "offset") != 0 && strcmp(key, "length") != 0)
        return TN_OK;
    if (!tn_read_int(value, &number) || number < 0)
        return tn_fail(TN_ERR_FORMAT, "external data: %s: not valid, got %.40s; expected a number",
                       key, value);
    *(key[0] == 'o' ? &tensor->offset : &tensor->length) = (uint64_t)number;
    return TN_OK;
}

static tn_status count_elements(struct onnx_tensor *tensor)
{
    tensor->numel = 1;
    for (int64_t i = 0; i < tensor->ndim; i++)
        if (__builtin_mul_overflow(tensor->numel, tensor->dims[i], &tensor->numel) ||
            tensor->numel > INT64_MAX / 16)
            return tn_fail(TN_ERR_FORMAT, "dims: too large; expected less than 2^59 elements");
    return TN_OK;
}

/* So that nothing is allocated for data that is not there. Typed values have at least a byte
 * each. */
static tn_status check_size(const struct onnx_tensor *tensor)
{
    uint64_t bytes = (uint64_t)tensor->numel * tensor->size;

    if (tensor->location != NULL)
        return TN_OK;
    if (tensor->raw.at != NULL && (uint64_t)(tensor->raw.end - tensor->raw.at) != bytes)
        return tn_fail(TN_ERR_FORMAT, "raw_data: %llu bytes; expected %llu",
                       (unsigned long long)(tensor->raw.end - tensor->raw.at),
                       (unsigned long long)bytes);
    if (tensor->raw.at == NULL && tensor->numel > tensor->message.end - tensor->message.at)
        return tn_fail(TN_ERR_FORMAT, "data: fewer values than the shape has");
    return TN_OK;
}

tn_status onnx_tensor_read(struct onnx_file *file, struct wire message, struct onnx_tensor *out)
{
    struct wire rest = message;
    struct wire_field field;
    bool external = false;
    tn_status status = TN_OK;

    *out = (struct onnx_tensor){ .name = "", .message = message, .length = UINT64_MAX };
    while (status == TN_OK && wire_next(&rest, &field, &status)) {
        if (field.number == 1) {
            status = read_dims(out, &field);
        } else if (field.number == 2 && field.type == WIRE_VARINT) {
            out->type = (int64_t)field.value;
        } else if (field.number == 8 && field.type == WIRE_BYTES) {
            out->name = onnx_model_text(file, field.bytes);
            status = out->name != NULL ? TN_OK : tn_error_last_code();
        } else if (field.number == 9 && field.type == WIRE_BYTES) {
            out->raw = field.bytes;
        } else if (field.number == 13 && field.type == WIRE_BYTES) {
            status = read_external(file, out, field.bytes);
        } else if (field.number == 14 && field.type == WIRE_VARINT) {
            external = field.value == 1;
        } else if (field.number == 3) {
            status = tn_fail(TN_ERR_NOT_IMPLEMENTED, "segment: expected a whole tensor");
        }
    }
    if (status == TN_OK)
        status = onnx_tensor_dtype(out->type, &out->dtype);
    if (status == TN_OK)
        status = count_elements(out);
    out->size = status == TN_OK ? tn_dtype_size(out->dtype) : 0;
    if (status == TN_OK && external && out->location == NULL)
        status = tn_fail(TN_ERR_FORMAT, "external data: no location");
    if (!external)
        out->location = NULL;
    if (status == TN_OK)
        status = check_size(out);
    return status == TN_OK ? TN_OK
                           : tn_error_prefix("tensor %.100s: ", out->name != NULL ? out->name : "");
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Values that are written one after the other. */
struct writer {
    const struct onnx_tensor *tensor;
    unsigned char *to;
    int64_t count, most; /* of numbers: two for a complex one */
};

static tn_status write_value(struct writer *w, const struct wire_field *field)
{
    size_t size = w->tensor->size;
    double number = wire_float(field);
    float single = (float)number;
    const void *from = &field->value; /* the low bytes come first */

    if (types[w->tensor->type].field == 4) {
        from = &single;
        size = 4;
    } else if (types[w->tensor->type].field == 10) {
        from = &number;
        size = 8;
    }
    if (w->count == w->most)
        return tn_fail(TN_ERR_FORMAT, "data: more values than the shape has");
    memcpy(w->to + (size_t)w->count++ * size, from, size);
    return TN_OK;
}

static tn_status write_field(struct writer *w, const struct wire_field *field)
{
    static const unsigned char wires[] = { [4] = WIRE_FIXED32,
                                           [5] = WIRE_VARINT,
                                           [7] = WIRE_VARINT,
                                           [10] = WIRE_FIXED64,
                                           [11] = WIRE_VARINT };
    uint32_t wire = wires[field->number];
    struct wire packed = field->bytes;
    struct wire_field one = { .number = field->number, .type = wire };
    tn_status status = TN_OK;

    if (field->type != WIRE_BYTES) {
        status = wire_need(field, wire, "data");
        return status == TN_OK ? write_value(w, field) : status;
    }
    while (status == TN_OK && packed.at != packed.end) {
        size_t size = wire == WIRE_FIXED32 ? 4 : 8;

        one.value = 0;
        if (wire == WIRE_VARINT) {
            status = wire_varint(&packed, &one.value);
        } else if ((size_t)(packed.end - packed.at) < size) {
            status = tn_fail(TN_ERR_FORMAT, "data: a number beyond the end");
        } else {
            for (size_t i = 0; i < size; i++)
                one.value |= (uint64_t)packed.at[i] << 8 * i;
            packed.at += size;
        }
        if (status == TN_OK)
            status = write_value(w, &one);
    }
    return status;
}

/* Copies the values of the typed fields. */
static tn_status read_typed(const struct onnx_tensor *tensor, void *to)
{
    uint32_t number = types[tensor->type].field;
    bool complex = tensor->dtype == TN_C64 || tensor->dtype == TN_C128;
    struct writer w = { tensor, to, 0, complex ? 2 * tensor->numel : tensor->numel };
    struct wire rest = tensor->message;
    struct wire_field field;
    tn_status status = TN_OK;

    while (wire_next(&rest, &field, &status)) {
        if (field.number == number)
            status = write_field(&w, &field);
    }
    if (status == TN_OK && w.count != w.most)
        status = tn_fail(TN_ERR_FORMAT, "data: wrong number of values, got %lld; expected %lld",
                         (long long)w.count, (long long)w.most);
    return status;
}

static tn_status check_bools(const struct onnx_tensor *tensor, const unsigned char *bytes)
{
    if (tensor->dtype == TN_BOOL)
        for (int64_t i = 0; i < tensor->numel; i++)
            if (bytes[i] > 1)
                return tn_fail(TN_ERR_FORMAT, "data: element %lld is %d; expected 0 or 1",
                               (long long)i, bytes[i]);
    return TN_OK;
}

static tn_tensor *load_external(struct onnx_file *file, const struct onnx_tensor *tensor)
{
    uint64_t bytes = (uint64_t)tensor->numel * tensor->size;
    const tn_source *other;

    if (tensor->length != UINT64_MAX && tensor->length != bytes) {
        tn_fail(TN_ERR_FORMAT, "external data: %llu bytes; expected %llu",
                (unsigned long long)tensor->length, (unsigned long long)bytes);
        return NULL;
    }
    if (tensor->dtype == TN_BOOL) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED, "external data: bool; expected numbers");
        return NULL;
    }
    other = tn_source_sibling(file->source, tensor->location, tensor->offset, bytes);
    return other != NULL
               ? tn_source_tensor(other, 0, tensor->dtype, (tn_ints){ tensor->dims, tensor->ndim })
               : NULL;
}

static tn_tensor *load_typed(const struct onnx_tensor *tensor)
{
    unsigned char *values = tn_calloc((size_t)tensor->numel + 1, tensor->size);
    tn_status status = values != NULL ? read_typed(tensor, values) : TN_ERR_MEMORY;
    tn_tensor *made = NULL;

    if (status == TN_OK)
        status = check_bools(tensor, values);
    if (status == TN_OK)
        made = tn_tensor_from(values, tensor->dtype, (tn_ints){ tensor->dims, tensor->ndim });
    tn_free(values);
    return made;
}

tn_tensor *onnx_tensor_load(struct onnx_file *file, const struct onnx_tensor *tensor)
{
    tn_tensor *made;

    if (tensor->location != NULL)
        made = load_external(file, tensor);
    else if (tensor->raw.at == NULL)
        made = load_typed(tensor);
    else if (check_bools(tensor, tensor->raw.at) != TN_OK)
        made = NULL;
    else
        made = tn_source_tensor(file->source, (uint64_t)(tensor->raw.at - file->start),
                                tensor->dtype, (tn_ints){ tensor->dims, tensor->ndim });
    if (made == NULL)
        tn_error_prefix("tensor %.100s: ", tensor->name);
    return made;
}

bool onnx_tensor_is_host(const struct onnx_tensor *tensor)
{
    return tensor->dtype == TN_I64 && tensor->ndim <= 1 && tensor->numel <= ONNX_HOST_MOST &&
           tensor->location == NULL;
}

tn_status onnx_tensor_host(struct onnx_file *file, const struct onnx_tensor *tensor, tn_value *out)
{
    int64_t values[ONNX_HOST_MOST] = { 0 };
    tn_value *items = arena_new(&file->program->arena, (uint64_t)tensor->numel + 1, sizeof *items);
    tn_status status = items != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK && tensor->raw.at != NULL && tensor->numel > 0)
        memcpy(values, tensor->raw.at, (size_t)tensor->numel * sizeof *values);
    else if (status == TN_OK && tensor->raw.at == NULL)
        status = read_typed(tensor, values);
    if (status != TN_OK)
        return tn_error_prefix("tensor %.100s: ", tensor->name);
    for (int64_t i = 0; i < tensor->numel; i++)
        items[i] = tn_value_int(values[i]);
    *out = tensor->ndim == 0 ? items[0] : tn_value_list(items, (uint32_t)tensor->numel);
    return TN_OK;
}
