/* SPDX-License-Identifier: MIT
 *
 * The printf of the library: a small set of conversions whose output is the same in every locale.
 * %g prints the shortest text that reads back as the same double. */
#include "core/base/internal.h"
#include "core/base/number.h"

/* Larger widths and precisions are reduced to this limit, so that a format cannot request gigabytes
 * of output. */
#define WIDTH_MAX 4096

struct writer {
    char *out;
    size_t size;
    int64_t length; /* of the whole text so far, including what did not fit in `out` */
};

struct conversion {
    bool left, zero, plus;
    int width;
    int precision; /* -1: none */
    int longs;     /* 1 for l, 2 for ll */
    bool is_size, is_max;
    char letter;
};

static void put(struct writer *w, const char *bytes, size_t count)
{
    if ((uint64_t)w->length < w->size) {
        size_t room = w->size - (size_t)w->length;
        memcpy(w->out + w->length, bytes, count < room ? count : room);
    }
    w->length += (int64_t)count;
}

static void fill(struct writer *w, char c, int64_t count)
{
    for (; count > 0; count--)
        put(w, &c, 1);
}

/* Writes a sign and a body, padded to the field's width: with zeros between the two, or with spaces
 * before or after them. */
static void put_field(struct writer *w, const struct conversion *c, const char *sign,
                      const char *body, size_t length, bool zero)
{
    int64_t room = c->width - (int64_t)strlen(sign) - (int64_t)length;

    if (!c->left && !zero)
        fill(w, ' ', room);
    put(w, sign, strlen(sign));
    if (!c->left && zero)
        fill(w, '0', room);
    put(w, body, length);
    if (c->left)
        fill(w, ' ', room);
}

/* ---- conversions ----------------------------------------------------------------------------- */

static void put_whole(struct writer *w, const struct conversion *c, bool negative, uint64_t value,
                      unsigned base)
{
    char digits[WIDTH_MAX + 32], *end = digits + sizeof digits, *at = end;
    const char *sign = negative ? "-" : c->plus && c->letter != 'u' && c->letter != 'x' ? "+" : "";

    for (; value; value /= base)
        *--at = "0123456789abcdef"[value % base];
    for (int least = c->precision < 0 ? 1 : c->precision; end - at < least;)
        *--at = '0';
    put_field(w, c, sign, at, (size_t)(end - at), c->zero && c->precision < 0);
}

/* Returns the length of the UTF-8 character at `text`, 0 if the bytes are not a valid character. */
static int character(const unsigned char *text)
{
    int length = text[0] < 0x80                      ? 1
                 : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                 : (text[0] & 0xf0) == 0xe0          ? 3
                                                     : 0;

    if (text[0] >= 0xf0 && text[0] < 0xf5)
        length = 4;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90) ||
        (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0; /* too long for its number, half of a pair of UTF-16, or above 0x10ffff */
    return length;
}

static void quote(struct writer *w, char mark, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    put(w, &mark, 1);
    while (*at) {
        static const char special[] = "\n\t\r\\", letters[] = "ntr\\";
        const char *found = strchr(special, *at);
        int length = character(at);

        if (found || *at == (unsigned char)mark) {
            char escape[2] = { '\\', found ? letters[found - special] : mark };
            put(w, escape, 2);
            length = 1;
        } else if (length == 0 || *at < 0x20 || *at == 0x7f) {
            char escape[4] = { '\\', 'x', "0123456789abcdef"[*at >> 4],
                               "0123456789abcdef"[*at & 15] };
            put(w, escape, 4);
            length = 1;
        } else {
            put(w, (const char *)at, (size_t)length);
        }
        at += length;
    }
    put(w, &mark, 1);
}

static void put_quoted(struct writer *w, const struct conversion *c, const char *text)
{
    struct writer measure = { NULL, 0, 0 };

    if (!text) {
        put_field(w, c, "", "None", 4, false);
        return;
    }
    quote(&measure, '"', text);
    if (!c->left)
        fill(w, ' ', c->width - measure.length);
    quote(w, '"', text);
    if (c->left)
        fill(w, ' ', c->width - measure.length);
}

int64_t tn__print_quoted(char *out, size_t size, char mark, const char *text)
{
    struct writer w = { out, size, 0 };

    quote(&w, mark, text);
    return w.length;
}

/* Writes digits in fixed notation: the first `point` digits, then the decimal point and `after`
 * more digits, with zeros for digits that do not exist. */
static void body_fixed(struct writer *b, const tn__digits *d, int after)
{
    if (d->point <= 0)
        put(b, "0", 1);
    for (int i = 0; i < d->point; i++)
        put(b, i < d->count ? &d->at[i] : "0", 1);
    if (after > 0)
        put(b, ".", 1);
    for (int i = d->point; i < d->point + after; i++)
        put(b, i >= 0 && i < d->count ? &d->at[i] : "0", 1);
}

static void body_exponent(struct writer *b, const tn__digits *d, int after)
{
    int exponent = d->count ? d->point - 1 : 0;
    char text[8];
    int length = 0, rest = exponent < 0 ? -exponent : exponent;

    put(b, d->count ? &d->at[0] : "0", 1);
    if (after > 0)
        put(b, ".", 1);
    for (int i = 1; i <= after; i++)
        put(b, i < d->count ? &d->at[i] : "0", 1);
    put(b, exponent < 0 ? "e-" : "e+", 2);
    do
        text[sizeof text - 1 - (size_t)length++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0 || length < 2);
    put(b, text + sizeof text - (size_t)length, (size_t)length);
}

static void put_float(struct writer *w, const struct conversion *c, double value)
{
    char space[WIDTH_MAX + 400];
    struct writer body = { space, sizeof space, 0 };
    bool negative = __builtin_signbit(value) != 0;
    const char *sign = negative ? "-" : c->plus ? "+" : "";
    int precision = c->precision < 0 ? 6 : c->precision;
    tn__digits d;

    if (value != value || value - value != 0) {
        sign = value != value && !c->plus ? "" : sign;
        put_field(w, c, sign, value != value ? "nan" : "inf", 3, false);
        return;
    }
    if (c->letter == 'f') {
        tn__number_digits(value, precision, true, &d);
        body_fixed(&body, &d, precision);
    } else if (c->letter == 'e') {
        tn__number_digits(value, precision + 1, false, &d);
        body_exponent(&body, &d, precision);
    } else if (c->precision < 0) {
        /* The format of Python's repr(): always with a decimal point or an exponent, so that the
         * text reads back as a float and not as an integer. */
        tn__number_shortest(value, TN__PRECISION_DOUBLE, &d);
        int more = d.count - d.point;
        if (d.point > -4 && d.point <= 16)
            body_fixed(&body, &d, d.count && more > 1 ? more : 1);
        else
            body_exponent(&body, &d, d.count - 1);
    } else {
        int least = precision ? precision : 1;
        tn__number_digits(value, least, false, &d);
        if (d.point > -4 && d.point <= least)
            body_fixed(&body, &d, d.count > d.point ? d.count - d.point : 0);
        else
            body_exponent(&body, &d, d.count - 1);
    }
    put_field(w, c, sign, space, (size_t)body.length, c->zero);
}

/* ---- the format ------------------------------------------------------------------------------ */

static int64_t limited(int64_t value)
{
    return value > WIDTH_MAX ? WIDTH_MAX : value < -WIDTH_MAX ? -WIDTH_MAX : value;
}

static const char *read_number(const char *at, int *out)
{
    int64_t value = 0;

    for (; *at >= '0' && *at <= '9'; at++)
        value = limited(value * 10 + (*at - '0'));
    *out = (int)value;
    return at;
}

/* Reads a conversion, from the character after its % to its letter. Arguments for `*` are taken
 * from the list. Returns the position after the letter. */
static const char *read_conversion(const char *at, struct conversion *c, va_list *args)
{
    *c = (struct conversion){ .precision = -1 };
    for (;; at++) {
        if (*at == '-')
            c->left = true;
        else if (*at == '0')
            c->zero = true;
        else if (*at == '+')
            c->plus = true;
        else
            break;
    }
    if (*at == '*') {
        int width = (int)limited(va_arg(*args, int));
        c->left |= width < 0;
        c->width = width < 0 ? -width : width;
        at++;
    } else {
        at = read_number(at, &c->width);
    }
    if (*at == '.') {
        at++;
        if (*at == '*') {
            int precision = (int)limited(va_arg(*args, int));
            c->precision = precision < 0 ? -1 : precision;
            at++;
        } else {
            at = read_number(at, &c->precision);
        }
    }
    for (; *at == 'l' && c->longs < 2; at++)
        c->longs++;
    if (c->longs == 0 && (*at == 'z' || *at == 'j')) {
        c->is_size = *at == 'z';
        c->is_max = *at == 'j';
        at++;
    }
    c->letter = *at;
    return *at ? at + 1 : at;
}

static int64_t signed_argument(const struct conversion *c, va_list *args)
{
    if (c->is_size)
        return (int64_t)va_arg(*args, ptrdiff_t);
    if (c->is_max)
        return (int64_t)va_arg(*args, intmax_t);
    if (c->longs == 2)
        return (int64_t)va_arg(*args, long long);
    return c->longs ? (int64_t)va_arg(*args, long) : (int64_t)va_arg(*args, int);
}

static uint64_t unsigned_argument(const struct conversion *c, va_list *args)
{
    if (c->is_size)
        return (uint64_t)va_arg(*args, size_t);
    if (c->is_max)
        return (uint64_t)va_arg(*args, uintmax_t);
    if (c->longs == 2)
        return (uint64_t)va_arg(*args, unsigned long long);
    return c->longs ? (uint64_t)va_arg(*args, unsigned long) : (uint64_t)va_arg(*args, unsigned);
}

static size_t length_up_to(const char *text, int most)
{
    if (most < 0)
        return strlen(text);
    const char *end = memchr(text, 0, (size_t)most);
    return end ? (size_t)(end - text) : (size_t)most;
}

/* Writes one converted argument. Returns false if the letter is not a conversion, or does not take
 * the given length modifier. */
static bool convert(struct writer *w, const struct conversion *c, va_list *args)
{
    bool sized = c->longs || c->is_size || c->is_max;

    switch (c->letter) {
    case 'd':
    case 'i': {
        int64_t value = signed_argument(c, args);
        put_whole(w, c, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
        return true;
    }
    case 'u':
    case 'x':
        put_whole(w, c, false, unsigned_argument(c, args), c->letter == 'x' ? 16 : 10);
        return true;
    case 'f':
    case 'e':
    case 'g':
        if (c->longs > 1 || c->is_size || c->is_max)
            return false;
        put_float(w, c, va_arg(*args, double));
        return true;
    default: break;
    }
    if (sized)
        return false;
    switch (c->letter) {
    case 'c': {
        char one = (char)va_arg(*args, int);
        put_field(w, c, "", &one, 1, false);
        return true;
    }
    case 's': {
        const char *text = va_arg(*args, const char *);
        text = text ? text : "(null)";
        put_field(w, c, "", text, length_up_to(text, c->precision), false);
        return true;
    }
    case 'q': put_quoted(w, c, va_arg(*args, const char *)); return true;
    case 'b': {
        const char *word = va_arg(*args, int) ? "True" : "False";
        put_field(w, c, "", word, strlen(word), false);
        return true;
    }
    case 'p': {
        struct conversion hex = *c;
        hex.letter = 'x';
        hex.zero = false;
        char text[20];
        struct writer number = { text, sizeof text, 0 };
        put_whole(&number, &(struct conversion){ .precision = -1, .letter = 'x' }, false,
                  (uint64_t)(uintptr_t)va_arg(*args, void *), 16);
        put_field(w, &hex, "0x", text, (size_t)number.length, false);
        return true;
    }
    case '%': put(w, "%", 1); return true;
    default: return false;
    }
}

int64_t tn_snprintv(char *out, size_t size, const char *format, va_list args)
{
    struct writer w = { out, out && size ? size - 1 : 0, 0 };
    va_list copy;
    bool good = true;

    if (!tn__given(format != NULL, "tn_snprint: format"))
        return -1;
    va_copy(copy, args); /* an array type decays in parameters, so &args may not be a va_list * */
    while (good && *format) {
        const char *percent = strchr(format, '%');

        if (percent != format) {
            size_t length = percent ? (size_t)(percent - format) : strlen(format);
            put(&w, format, length);
            format += length;
            continue;
        }
        struct conversion c;
        format = read_conversion(format + 1, &c, &copy);
        good = convert(&w, &c, &copy);
    }
    va_end(copy);
    if (out && size)
        out[(uint64_t)w.length < size - 1 ? (size_t)w.length : size - 1] = 0;
    return good ? w.length : -1;
}

int64_t tn_snprint(char *out, size_t size, const char *format, ...)
{
    va_list args;
    int64_t length;

    va_start(args, format);
    length = tn_snprintv(out, size, format, args);
    va_end(args);
    return length;
}
