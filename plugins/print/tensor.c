/* SPDX-License-Identifier: MIT
 *
 * A tensor as text, as NumPy 2.4 prints an array (str() with precision 8, threshold 1000, three
 * items at each edge, 75 columns). The dtype follows, unless it is the default dtype, int64, bool
 * or complex64.
 *
 * The rules are those of numpy/_core/arrayprint.py. Floating-point numbers are written with the
 * fewest digits that read back as the same number of the dtype, at most 8 after the point. All of
 * them are written in exponent form if, of the absolute values that are finite and not 0, the
 * smallest is below 1e-4, the ratio of the largest and the smallest is above 1000, or the largest
 * is at least 1e8 (double precision), 1e6 (single) or 1e3 (smaller dtypes). Columns are aligned at
 * the point. */
#include "print.h"

#include <math.h>
#include <string.h>

#define EDGE 3
#define THRESHOLD 1000
#define LINE_WIDTH 75
#define PRECISION 8

/* ---- how the numbers of a tensor are written ---- */

typedef struct float_format {
    tn_dtype dtype;
    bool scientific, plus; /* plus: every number gets a sign */
    int left, right;       /* characters before and after the point */
    int places;            /* digits after the point, in exponent form */
    int exponent_digits;
} float_format;

typedef struct printer {
    const unsigned char *data; /* row-major */
    tn_dtype dtype;
    size_t item;
    int32_t ndim;
    const int64_t *shape;
    const int64_t *index_step; /* the strides of `data`, in elements */
    const bool *cut;           /* dimensions of which only the edges are printed */
    int int_width;
    float_format re, im;
    output *text;
} printer;

static bool is_whole(tn_dtype dtype)
{
    return !(TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) && dtype != TN_F8_E4M3 &&
           dtype != TN_F8_E5M2;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static double part_of(const printer *p, const void *at, bool imaginary)
{
    return element_real(at, p->dtype, imaginary);
}

static int exponent_text(char *out, size_t size, int exponent, int digits)
{
    return (int)tn_snprint(out, size, "e%c%0*d", exponent < 0 ? '-' : '+', digits,
                           exponent < 0 ? -exponent : exponent);
}

/* Calls `visit` for each element that is printed. */
static void each(const printer *p, int32_t dim, int64_t at,
                 void (*visit)(void *user, const void *element), void *user)
{
    if (dim == p->ndim) {
        visit(user, p->data + (size_t)at * p->item);
        return;
    }
    for (int64_t i = 0; i < p->shape[dim]; i++)
        each(p, dim + 1, at + i * p->index_step[dim], visit, user);
}

struct scan {
    const printer *p;
    float_format *format;
    bool imaginary;
    double largest, smallest;
    bool any_finite, any_other, any_nonzero, negative_infinity;
};

static void scan_range(void *user, const void *element)
{
    struct scan *scan = user;
    double value = part_of(scan->p, element, scan->imaginary), magnitude = fabs(value);

    if (!isfinite(value)) {
        scan->any_other = true;
        scan->negative_infinity |= isinf(value) && value < 0;
        return;
    }
    scan->any_finite = true;
    if (magnitude == 0)
        return;
    if (!scan->any_nonzero || magnitude > scan->largest)
        scan->largest = magnitude;
    if (!scan->any_nonzero || magnitude < scan->smallest)
        scan->smallest = magnitude;
    scan->any_nonzero = true;
}

static void scan_width(void *user, const void *element)
{
    struct scan *scan = user;
    float_format *f = scan->format;
    double value = part_of(scan->p, element, scan->imaginary);
    char text[16];
    decimal d;
    int sign;

    if (!isfinite(value))
        return;
    decimal_shortest(value, f->dtype, &d);
    sign = d.negative || f->plus;
    if (f->scientific) {
        decimal_cut_scientific(value, PRECISION, &d);
        f->left = max_int(f->left, 1 + sign);
        f->places = max_int(f->places, d.count - 1);
        f->exponent_digits = max_int(
            f->exponent_digits,
            exponent_text(text, sizeof text, value == 0 ? 0 : d.point - 1, 2) - 2);
    } else {
        decimal_cut_positional(value, PRECISION, &d);
        f->left = max_int(f->left, (d.point > 0 ? d.point : 1) + sign);
        f->right = max_int(f->right, d.count - d.point);
    }
}

/* Returns whether numbers are written in exponent form. Compares in the precision of the dtype (for
 * all dtypes below float32, in that of float16), as NumPy does: there the ratio is rounded and may
 * overflow. */
static bool wants_exponents(tn_dtype dtype, double largest, double smallest)
{
    switch (dtype) {
    case TN_F64:
    case TN_C128: return largest >= 1e8 || smallest < 0.0001 || largest / smallest > 1000.0;
    case TN_F32:
    case TN_C64:
        return largest >= 1e6 || (float)smallest < 0.0001f ||
               (float)largest / (float)smallest > 1000.0f;
    default:
        return largest >= 1e3 || smallest < element_as_f16(0.0001) ||
               element_as_f16(largest / smallest) > 1000.0;
    }
}

static void find_format(const printer *p, float_format *f, bool imaginary)
{
    struct scan scan = { p, f, imaginary, 0, 0, false, false, false, false };
    int width;

    f->dtype = p->dtype;
    f->plus = imaginary;
    f->left = f->right = f->places = f->exponent_digits = 0;
    each(p, 0, 0, scan_range, &scan);
    f->scientific = scan.any_nonzero && wants_exponents(p->dtype, scan.largest, scan.smallest);
    each(p, 0, 0, scan_width, &scan);
    if (f->scientific)
        f->right = f->exponent_digits + 2 + f->places;
    if (scan.any_other) {
        width = 3 + (scan.negative_infinity || f->plus) - (f->right + 1);
        f->left = max_int(f->left, max_int(3 - (f->right + 1), width));
    }
}

static void spaces(output *text, int count)
{
    while (count-- > 0)
        text_put(text, " ", 1);
}

/* Writes a number with its padding. `tail` ("j" or "") comes before the padding on the right. */
static void put_float(output *text, const float_format *f, double value, const char *tail)
{
    char number[64], exponent[16];
    int length = 0, right;
    decimal d;

    if (!isfinite(value)) {
        const char *word = isnan(value) ? (f->plus ? "+nan" : "nan")
                           : value < 0  ? "-inf"
                           : f->plus    ? "+inf"
                                        : "inf";
        spaces(text, f->left + f->right + 1 - (int)strlen(word));
        text_add(text, "%s%s", word, tail);
        return;
    }
    if (f->scientific) {
        /* All numbers get as many digits as the longest one needs; digits after the shortest form
         * are those of the exact value. */
        decimal_scientific(value, f->places, &d);
    } else {
        decimal_shortest(value, f->dtype, &d);
        decimal_cut_positional(value, PRECISION, &d);
    }
    if (d.negative || f->plus)
        number[length++] = d.negative ? '-' : '+';
    if (f->scientific) {
        number[length++] = d.digits[0];
        spaces(text, f->left - length);
        number[length++] = '.';
        for (int i = 1; i <= f->places; i++)
            number[length++] = i < d.count ? d.digits[i] : '0';
        exponent_text(exponent, sizeof exponent, value == 0 ? 0 : d.point - 1, f->exponent_digits);
        text_add(text, "%.*s%s%s", length, number, exponent, tail);
        return;
    }
    if (d.point <= 0)
        number[length++] = '0';
    for (int i = 0; i < d.point; i++)
        number[length++] = i < d.count ? d.digits[i] : '0';
    spaces(text, f->left - length);
    number[length++] = '.';
    right = d.count - d.point;
    for (int i = 0; i < right; i++)
        number[length++] = d.point + i < 0 ? '0' : d.digits[d.point + i];
    text_add(text, "%.*s%s", length, number, tail);
    spaces(text, f->right - (right > 0 ? right : 0));
}

static int int_text(char *out, size_t size, const printer *p, const void *at)
{
    uint64_t whole = element_whole(at, p->dtype);

    if (p->dtype == TN_BOOL)
        return (int)tn_snprint(out, size, whole != 0 ? "True" : "False");
    if (p->dtype == TN_U64)
        return (int)tn_snprint(out, size, "%llu", (unsigned long long)whole);
    return (int)tn_snprint(out, size, "%lld", (long long)(int64_t)whole);
}

static void scan_int(void *user, const void *element)
{
    printer *p = user;
    char text[32];

    p->int_width = max_int(p->int_width, int_text(text, sizeof text, p, element));
}

static void put_element(const printer *p, output *text, const void *at)
{
    char number[32];
    int length;

    if (is_whole(p->dtype)) {
        length = int_text(number, sizeof number, p, at);
        spaces(text, p->int_width - length);
        text_put(text, number, (size_t)length);
        return;
    }
    put_float(text, &p->re, part_of(p, at, false), "");
    if (TN_BIT(p->dtype) & TN_MASK_COMPLEX)
        put_float(text, &p->im, part_of(p, at, true), "j");
}

/* ---- brackets and lines ---- */

static void trim_line(output *text)
{
    while (text->at != NULL && text->length > 0 && text->at[text->length - 1] == ' ')
        text->at[--text->length] = '\0';
}

/* Writes the last dimension, and begins a new line when the width is reached. Each new line begins
 * with `indent` spaces. */
static void put_row(const printer *p, int64_t at, int indent, int width)
{
    int64_t count = p->shape[p->ndim - 1], step = p->index_step[p->ndim - 1];
    int64_t gap = p->cut[p->ndim - 1] ? EDGE : -1; /* the turn that writes "..." */
    int column = indent, limit = width - 1;

    for (int64_t i = 0, turn = 0; i < count; turn++) {
        output word = { 0 };

        if (turn == gap)
            text_put(&word, "...", 3);
        else
            put_element(p, &word, p->data + (size_t)(at + i++ * step) * p->item);
        if (word.failed) {
            p->text->failed = true;
            text_free(&word);
            return;
        }
        if (column + (int)word.length > limit && column > indent) {
            trim_line(p->text);
            text_put(p->text, "\n", 1);
            spaces(p->text, indent);
            column = indent;
        }
        text_put(p->text, word.at, word.length);
        column += (int)word.length;
        if (i < count) {
            text_put(p->text, " ", 1);
            column++;
        }
        text_free(&word);
    }
}

static void put_dim(const printer *p, int32_t dim, int64_t at, int indent, int width)
{
    int64_t count = p->shape[dim], gap = p->cut[dim] ? EDGE : -1;

    text_put(p->text, "[", 1);
    if (dim == p->ndim - 1) {
        put_row(p, at, indent, width);
    } else {
        for (int64_t i = 0, turn = 0; i < count; turn++) {
            if (turn > 0)
                spaces(p->text, indent);
            if (turn == gap)
                text_put(p->text, "...", 3);
            else
                put_dim(p, dim + 1, at + i++ * p->index_step[dim], indent + 1, width - 1);
            for (int32_t k = dim; i < count && k < p->ndim - 1; k++)
                text_put(p->text, "\n", 1);
        }
    }
    text_put(p->text, "]", 1);
}

/* Writes the number of a tensor without dimensions: 1.0 or 1e-05, never with the point at the
 * end. */
static void put_scalar(const printer *p, output *text, double value, bool plus)
{
    decimal d;
    double magnitude = fabs(value);

    if (!isfinite(value)) {
        text_add(text, isnan(value) ? (plus ? "+nan" : "nan")
                       : value < 0  ? "-inf"
                       : plus       ? "+inf"
                                    : "inf");
        return;
    }
    decimal_shortest(value, p->dtype, &d);
    if (d.negative || plus)
        text_put(text, d.negative ? "-" : "+", 1);
    if (magnitude != 0 && (magnitude >= 1e16 || magnitude < 1e-4)) {
        char exponent[16];
        text_put(text, d.digits, 1);
        if (d.count > 1)
            text_add(text, ".%s", d.digits + 1);
        exponent_text(exponent, sizeof exponent, d.point - 1, 2);
        text_add(text, "%s", exponent);
        return;
    }
    if (d.point <= 0)
        text_put(text, "0", 1);
    for (int i = 0; i < d.point; i++)
        text_put(text, i < d.count ? d.digits + i : "0", 1);
    if (d.count <= d.point) {
        if ((TN_BIT(p->dtype) & TN_MASK_COMPLEX) == 0)
            text_put(text, ".0", 2); /* a part of a complex number gets no ".0" */
        return;
    }
    text_put(text, ".", 1);
    for (int i = d.point; i < d.count; i++)
        text_put(text, i < 0 ? "0" : d.digits + i, 1);
}

static void put_number(printer *p)
{
    char number[32];
    bool complex = (TN_BIT(p->dtype) & TN_MASK_COMPLEX) != 0;
    double re, im;

    if (is_whole(p->dtype)) {
        int_text(number, sizeof number, p, p->data);
        text_add(p->text, "%s", number);
        return;
    }
    re = part_of(p, p->data, false);
    if (!complex) {
        put_scalar(p, p->text, re, false);
        return;
    }
    im = part_of(p, p->data, true);
    if (re == 0 && !signbit(re)) {
        put_scalar(p, p->text, im, false);
        text_put(p->text, "j", 1);
        return;
    }
    text_put(p->text, "(", 1);
    put_scalar(p, p->text, re, false);
    put_scalar(p, p->text, im, true);
    text_put(p->text, "j)", 2);
}

/* ---- the tensor ---- */

struct fetch {
    tn_tensor *tensor;
    unsigned char *data;
    const int64_t *steps;
    const bool *cut;
};

/* Copies row-major elements to their places. */
static void scatter(unsigned char *to, const unsigned char **from, size_t item, tn_ints shape,
                    const int64_t *steps)
{
    if (shape.count == 0) {
        memcpy(to, *from, item);
        *from += item;
        return;
    }
    for (int64_t i = 0; i < shape.at[0]; i++)
        scatter(to + (size_t)(i * steps[0]) * item, from, item,
                (tn_ints){ shape.at + 1, shape.count - 1 }, steps + 1);
}

/* Copies the elements that are printed from the device: of a cut dimension, the first and the last
 * three. Each corner of the tensor is a view of its own, so that a large tensor is not copied as a
 * whole. `shape` is that of the part, `offset` its place in the storage. */
static tn_status fetch(const struct fetch *f, int32_t dim, tn_ints shape, int64_t offset,
                       int64_t at)
{
    tn_ints strides = tn_tensor_strides(f->tensor);
    size_t item = tn_dtype_size(tn_tensor_dtype(f->tensor)), bytes = item;
    int64_t part[TN_MAX_DIMS];
    tn_tensor *piece;
    unsigned char *dense;
    tn_status status;

    while (dim < shape.count && !f->cut[dim])
        dim++;
    for (int64_t i = 0; i < shape.count; i++) {
        part[i] = i == dim ? EDGE : shape.at[i];
        bytes *= (size_t)part[i];
    }
    shape.at = part;
    if (dim < shape.count) {
        int64_t whole = tn_tensor_size(f->tensor, dim);

        status = fetch(f, dim + 1, shape, offset, at);
        offset += (whole - EDGE) * strides.at[dim];
        return status == TN_OK ? fetch(f, dim + 1, shape, offset, at + EDGE * f->steps[dim])
                               : status;
    }
    piece = tn_tensor_as_strided(f->tensor, shape, strides, offset);
    dense = piece != NULL ? tn_malloc(bytes) : NULL;
    status = dense != NULL ? tn_tensor_copy_out(piece, dense, bytes) : tn_error_last_code();
    if (status == TN_OK) {
        const unsigned char *from = dense;
        scatter(f->data + (size_t)at * item, &from, item, shape, f->steps);
    }
    tn_free(dense);
    return status;
}

static void put_tensor(printer *p)
{
    if (is_whole(p->dtype)) {
        each(p, 0, 0, scan_int, p);
        /* NumPy writes a space before True, so that True and False have the same width. */
        if (p->dtype == TN_BOOL)
            p->int_width = 5;
    } else {
        find_format(p, &p->re, false);
        if (TN_BIT(p->dtype) & TN_MASK_COMPLEX)
            find_format(p, &p->im, true);
    }
    put_dim(p, 0, 0, 1, LINE_WIDTH);
}

/* Writes a tensor whose memory cannot be read. */
static void put_no_values(output *text, const tn_tensor *tensor)
{
    tn_ints shape = tn_tensor_shape(tensor);

    text_add(text, "(no values: %s[", tn_dtype_name(tn_tensor_dtype(tensor)));
    for (int64_t i = 0; i < shape.count; i++)
        text_add(text, i > 0 ? ", %lld" : "%lld", (long long)shape.at[i]);
    text_add(text, "] on %s)", tn_device_name(tn_tensor_device(tensor)));
}

/* Reads the elements that are printed, and writes them. */
static tn_status put_values(output *text, tn_tensor *tensor)
{
    const tn_ints whole = tn_tensor_shape(tensor);
    const tn_dtype dtype = tn_tensor_dtype(tensor);
    const int64_t numel = tn_tensor_numel(tensor);
    int64_t shape[TN_MAX_DIMS], steps[TN_MAX_DIMS], count = 1;
    bool cut[TN_MAX_DIMS] = { false };
    unsigned char *data = NULL;
    tn_status status = TN_OK;

    /* of a tensor without elements the other sizes may have any product */
    for (int64_t i = whole.count - 1; i >= 0 && numel > 0; i--) {
        cut[i] = numel > THRESHOLD && whole.at[i] > 2 * EDGE;
        shape[i] = cut[i] ? 2 * EDGE : whole.at[i];
        steps[i] = count;
        count *= shape[i];
    }
    if (numel == 0) {
        text_put(text, "[]", 2);
        return TN_OK;
    }
    data = tn_malloc((size_t)count * tn_dtype_size(dtype));
    status = data != NULL ? fetch(&(struct fetch){ tensor, data, steps, cut }, 0, whole,
                                  tn_tensor_offset(tensor), 0)
                          : TN_ERR_MEMORY;
    if (status == TN_OK) {
        printer p = { .data = data,
                      .dtype = dtype,
                      .item = tn_dtype_size(dtype),
                      .ndim = (int32_t)whole.count,
                      .shape = shape,
                      .index_step = steps,
                      .cut = cut,
                      .text = text };
        if (whole.count == 0)
            put_number(&p);
        else
            put_tensor(&p);
    }
    tn_free(data);
    return status;
}

int64_t print_tensor(tn_tensor *tensor, char *out, size_t size)
{
    output text = { 0 };
    uint64_t scope;
    tn_dtype dtype;
    tn_status status;

    if (tensor == NULL) {
        tn_error_null("tn_tensor_text: tensor");
        return -1;
    }
    if (tensor == TN_NONE) {
        tn_fail(TN_ERR_TYPE, "tn_tensor_text: no tensor, got TN_NONE; expected a tensor");
        return -1;
    }
    if (!tn_device_has_memory(tn_tensor_device(tensor))) {
        put_no_values(&text, tensor);
        return text_give(&text, out, size);
    }
    scope = tn_scope_begin();
    status = put_values(&text, tensor);
    tn_scope_end(scope);
    if (status != TN_OK) {
        text_free(&text);
        return -1;
    }
    dtype = tn_tensor_dtype(tensor);
    if (dtype != tn_default_dtype() && dtype != TN_I64 && dtype != TN_BOOL && dtype != TN_C64)
        text_add(&text, " dtype=%s", tn_dtype_name(dtype));
    return text_give(&text, out, size);
}
