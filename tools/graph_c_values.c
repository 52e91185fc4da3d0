/* SPDX-License-Identifier: MIT
 *
 * The C form of graphs: strings, numbers, options and the values of tensors. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph_c.h"

void graph_c_string(FILE *to, const char *text)
{
    putc('"', to);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        if (*at == '"' || *at == '\\' || *at == '?') /* "??" could begin a trigraph */
            fprintf(to, "\\%c", *at);
        else if (*at < 0x20 || *at > 0x7e)
            fprintf(to, "\\%03o", *at);
        else
            putc(*at, to);
    putc('"', to);
}

void graph_c_dtype(FILE *to, tn_dtype dtype)
{
    static const char *const names[TN_DTYPE_COUNT] = {
        [TN_BOOL] = "BOOL",      [TN_U8] = "U8",   [TN_I8] = "I8",   [TN_I16] = "I16",
        [TN_I32] = "I32",        [TN_I64] = "I64", [TN_F16] = "F16", [TN_BF16] = "BF16",
        [TN_F32] = "F32",        [TN_F64] = "F64", [TN_C64] = "C64", [TN_C128] = "C128",
        [TN_U16] = "U16",        [TN_U32] = "U32", [TN_U64] = "U64", [TN_F8_E4M3] = "F8_E4M3",
        [TN_F8_E5M2] = "F8_E5M2"
    };

    fprintf(to, "TN_%s", dtype < TN_DTYPE_COUNT ? names[dtype] : "DTYPE_AUTO");
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void put_int(FILE *to, int64_t number)
{
    if (number == INT64_MIN)
        fputs("INT64_MIN", to);
    else
        fprintf(to, "%" PRId64, number);
}

/* Writes the shortest decimal number that is read back as the same one. */
static void put_double(FILE *to, double number)
{
    char text[40];
    int digits = 1;

    if (isnan(number) || isinf(number)) {
        fputs(isnan(number) ? "NAN" : number < 0 ? "-INFINITY" : "INFINITY", to);
        return;
    }
    do
        snprintf(text, sizeof text, "%.*g", digits, number);
    while (strtod(text, NULL) != number && digits++ < 17);
    fprintf(to, "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

static void put_float(FILE *to, float number)
{
    char text[40];
    int digits = 1;

    do
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
    while (strtof(text, NULL) != number && digits++ < 9);
    fprintf(to, "%s%sf", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

static void put_scalar(FILE *to, tn_scalar scalar)
{
    switch (scalar.kind) {
    case TN_SCALAR_BOOL:
        fprintf(to, "tn_scalar_bool(%s)", scalar.as.i != 0 ? "true" : "false");
        break;
    case TN_SCALAR_INT:
        fputs("tn_scalar_int(", to);
        put_int(to, scalar.as.i);
        putc(')', to);
        break;
    case TN_SCALAR_UINT: fprintf(to, "tn_scalar_uint(%" PRIu64 "u)", scalar.as.u); break;
    case TN_SCALAR_FLOAT:
        fputs("tn_scalar_float(", to);
        put_double(to, scalar.as.f);
        putc(')', to);
        break;
    case TN_SCALAR_COMPLEX:
        fputs("tn_scalar_complex(", to);
        put_double(to, scalar.as.c[0]);
        fputs(", ", to);
        put_double(to, scalar.as.c[1]);
        putc(')', to);
        break;
    default: fputs("tn_scalar_none()", to);
    }
}

/* ---- options --------------------------------------------------------------------------------- */

static void put_ints(FILE *to, tn_ints ints)
{
    if (ints.count <= 0) {
        fputs(ints.count < 0 ? "tn_none_ints()" : "tn_no_ints()", to);
        return;
    }
    for (int64_t i = 0; i < ints.count; i++) {
        fputs(i == 0 ? "TN_INTS(" : ", ", to);
        put_int(to, ints.at[i]);
    }
    putc(')', to);
}

static void put_floats(FILE *to, tn_floats floats)
{
    if (floats.count <= 0) {
        fputs(floats.count < 0 ? "tn_none_floats()" : "tn_no_floats()", to);
        return;
    }
    for (int64_t i = 0; i < floats.count; i++) {
        fputs(i == 0 ? "((tn_floats){ (const double[]){ " : ", ", to);
        put_double(to, floats.at[i]);
    }
    fprintf(to, " }, %d })", (int)floats.count);
}

void graph_c_option(FILE *to, const tn_option *option, const void *options)
{
    const void *at = (const char *)options + option->offset;

    switch (option->kind) {
    case TN_OPTION_KIND_BOOL: fputs(*(const bool *)at ? "true" : "false", to); break;
    case TN_OPTION_KIND_INT: put_int(to, *(const int64_t *)at); break;
    case TN_OPTION_KIND_FLOAT: put_double(to, *(const double *)at); break;
    case TN_OPTION_KIND_INTS: put_ints(to, *(const tn_ints *)at); break;
    case TN_OPTION_KIND_FLOATS: put_floats(to, *(const tn_floats *)at); break;
    case TN_OPTION_KIND_DTYPE: graph_c_dtype(to, *(const tn_dtype *)at); break;
    case TN_OPTION_KIND_SCALAR: put_scalar(to, *(const tn_scalar *)at); break;
    case TN_OPTION_KIND_STRING:
        if (*(const char *const *)at != NULL)
            graph_c_string(to, *(const char *const *)at);
        else
            fputs("NULL", to);
        break;
    default: fputs("0", to); /* operators have no other kinds (sdk/operators/README.md) */
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool graph_c_is_default(const tn_option *option, const void *options, const void *defaults)
{
    const void *a = (const char *)options + option->offset;
    const void *b = (const char *)defaults + option->offset;

    switch (option->kind) {
    case TN_OPTION_KIND_BOOL: return *(const bool *)a == *(const bool *)b;
    case TN_OPTION_KIND_INT:
    case TN_OPTION_KIND_FLOAT: return memcmp(a, b, sizeof(int64_t)) == 0;
    case TN_OPTION_KIND_DTYPE: return *(const tn_dtype *)a == *(const tn_dtype *)b;
    case TN_OPTION_KIND_STRING: return same_text(*(const char *const *)a, *(const char *const *)b);
    case TN_OPTION_KIND_INTS: {
        const tn_ints *x = a, *y = b;
        return x->count == y->count &&
               (x->count <= 0 || memcmp(x->at, y->at, (size_t)x->count * sizeof *x->at) == 0);
    }
    case TN_OPTION_KIND_FLOATS: {
        const tn_floats *x = a, *y = b;
        return x->count == y->count &&
               (x->count <= 0 || memcmp(x->at, y->at, (size_t)x->count * sizeof *x->at) == 0);
    }
    case TN_OPTION_KIND_SCALAR: {
        const tn_scalar *x = a, *y = b;
        return x->kind == y->kind && memcmp(&x->as, &y->as, sizeof x->as) == 0;
    }
    default: return false;
    }
}

/* ---- values of tensors ----------------------------------------------------------------------- */

/* The C type of the elements; NULL: the bytes are written. */
static const char *type_of(tn_dtype dtype)
{
    static const char *const types[] = {
        [TN_BOOL] = "bool",   [TN_U8] = "uint8_t",  [TN_I8] = "int8_t", [TN_I16] = "int16_t",
        [TN_I32] = "int32_t", [TN_I64] = "int64_t", [TN_F32] = "float", [TN_F64] = "double"
    };

    return dtype < sizeof types / sizeof *types ? types[dtype] : NULL;
}

/* Returns whether all numbers can be written with digits. */
static bool all_finite(const void *data, tn_dtype dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if ((dtype == TN_F32 && !isfinite(((const float *)data)[i])) ||
            (dtype == TN_F64 && !isfinite(((const double *)data)[i])))
            return false;
    return true;
}

static void put_element(FILE *to, const void *data, tn_dtype dtype, int64_t i)
{
    switch (dtype) {
    case TN_BOOL: fputs(((const bool *)data)[i] ? "true" : "false", to); break;
    case TN_I8: fprintf(to, "%d", ((const int8_t *)data)[i]); break;
    case TN_I16: fprintf(to, "%d", ((const int16_t *)data)[i]); break;
    case TN_I32:
        if (((const int32_t *)data)[i] == INT32_MIN)
            fputs("INT32_MIN", to);
        else
            fprintf(to, "%" PRId32, ((const int32_t *)data)[i]);
        break;
    case TN_I64: put_int(to, ((const int64_t *)data)[i]); break;
    case TN_F32: put_float(to, ((const float *)data)[i]); break;
    case TN_F64: put_double(to, ((const double *)data)[i]); break;
    default: fprintf(to, "%u", ((const unsigned char *)data)[i]);
    }
}

tn_status graph_c_data(FILE *to, const char *name, tn_tensor *tensor)
{
    tn_dtype dtype = tn_tensor_dtype(tensor);
    int64_t count = tn_tensor_numel(tensor);
    size_t bytes = (size_t)count * tn_dtype_size(dtype);
    void *data = calloc(1, bytes + 1);
    tn_status status = data != NULL ? tn_tensor_copy_out(tensor, data, bytes)
                                    : tn_fail(TN_ERR_MEMORY, "out of memory");
    long column = 0;

    if (status == TN_OK) {
        if (type_of(dtype) == NULL || !all_finite(data, dtype, count)) {
            count = (int64_t)bytes;
            dtype = TN_U8;
        }
        fprintf(to, "static const %s %s[] = {", type_of(dtype), name);
        for (int64_t i = 0; i < count; i++) {
            if (i == 0 || ftell(to) - column > 84) {
                fputs("\n    ", to);
                column = ftell(to);
            } else {
                putc(' ', to);
            }
            put_element(to, data, dtype, i);
            fputs(i + 1 < count ? "," : "", to);
        }
        fputs(count > 0 ? "\n};\n" : " 0 };\n", to); /* an array needs an element */
    }
    free(data);
    return status;
}
