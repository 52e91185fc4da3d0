/* SPDX-License-Identifier: MIT
 *
 * Characters, numbers and strings of specs; the description of a position in a spec for
 * messages. */
#include "core/base/number.h"
#include "core/base/spec.h"
#include "core/base/dtype.h"

/* ---- messages -------------------------------------------------------------------------------- */

void tn__spec_place(const char *text, int32_t column, char *out, size_t size)
{
    enum { SHOWN = 72 };
    char excerpt[SHOWN + 1];
    size_t place = column > 0 ? (size_t)column - 1 : 0, start = 0, end, from, count;
    int line = 1, letters = 1;
    bool lines = strchr(text, '\n') != NULL;

    for (size_t i = 0; i < place && text[i]; i++)
        if (text[i] == '\n') {
            line++;
            start = i + 1;
        }
    for (size_t i = start; i < place && text[i]; i++)
        letters += ((unsigned char)text[i] & 0xc0) != 0x80;
    while (text[start] == ' ' && start < place)
        start++;
    end = start + strcspn(text + start, "\n");
    from = end - start > SHOWN && place > start + SHOWN / 2 ? place - SHOWN / 2 : start;
    while (from > start && ((unsigned char)text[from] & 0xc0) == 0x80)
        from--;
    count = end - from > SHOWN ? SHOWN : end - from;
    while (count > 0 && count < end - from && ((unsigned char)text[from + count] & 0xc0) == 0x80)
        count--;
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)text[from + i];
        excerpt[i] = (char)(c < 0x20 || c == 0x7f ? ' ' : c);
    }
    excerpt[count] = 0;
    if (count == 0) /* the text is empty, or the line is blank */
        memcpy(excerpt, "\"\"", 3);
    const char *before = from > start ? "..." : "", *after = from + count < end ? "..." : "";
    if (lines)
        tn_snprint(out, size, "%s%s%s: line %d, column %d: ", before, excerpt, after, line,
                   letters);
    else
        tn_snprint(out, size, "%s%s%s: column %d: ", before, excerpt, after, letters);
}

tn_status tn__spec_fail(const struct tn__parser *p, size_t at, const char *format, ...)
{
    char place[256];
    va_list args;

    va_start(args, format);
    tn_failv(TN_ERR_FORMAT, format, args);
    va_end(args);
    tn__spec_place(p->text, (int32_t)at + 1, place, sizeof place);
    return tn_error_prefix("%s", place);
}

tn_status tn__spec_fail_text(const struct tn__parser *p, size_t at, const char *words)
{
    static const char around[] = "()[]{},= \t\r\n'\"";
    size_t from = at, count;
    bool path = false;

    while (from > 0 && strchr(around, p->text[from - 1]) == NULL)
        from--;
    count = strcspn(p->text + from, around);
    for (size_t i = 0; i < count; i++) {
        char c = p->text[from + i];

        path |= c == '/' || c == '\\' || (i == 0 && c == '~') ||
                (i > 0 && c == '-' && tn__spec_starts_word(p->text[from]));
    }
    if (!path)
        return tn__spec_fail(p, at, "%s", words);
    return tn__spec_fail(p, at, "%s; a text such as a path needs quotes: '%.*s'", words,
                         count < 100 ? (int)count : 100, p->text + from);
}

/* ---- letters --------------------------------------------------------------------------------- */

static bool in_word(char c)
{
    return tn__spec_starts_word(c) || tn__spec_is_digit(c) || c == '.';
}

size_t tn__spec_after_space(const struct tn__parser *p, size_t at)
{
    while (p->text[at] == ' ' || p->text[at] == '\t' || p->text[at] == '\n' || p->text[at] == '\r')
        at++;
    return at;
}

size_t tn__spec_after_word(const struct tn__parser *p, size_t at)
{
    while (in_word(p->text[at]))
        at++;
    return at;
}

bool tn__spec_is(const struct tn__parser *p, size_t at, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(p->text + at, word, length) == 0;
}

/* ---- numbers and strings --------------------------------------------------------------------- */

/* Reads a number without a sign, inf or nan at `at` as a double; *used is its length. Returns false
 * if there is no number (*used is 0) or if it is too large. */
static bool read_double(const struct tn__parser *p, size_t at, double *out, size_t *used)
{
    bool inf = strncmp(p->text + at, "inf", 3) == 0, nan = strncmp(p->text + at, "nan", 3) == 0;

    if (!inf && !nan)
        return tn__number_read(p->text + at, p->length - at, out, used);
    *out = inf ? __builtin_inf() : __builtin_nan("");
    *used = 3;
    return true;
}

/* Returns whether the imaginary unit j is at `at`, directly after a number. */
static bool is_imaginary(const struct tn__parser *p, size_t at)
{
    return p->text[at] == 'j' && !in_word(p->text[at + 1]);
}

static tn_status make_complex(struct tn__parser *p, double re, double im, size_t end, tn_value *out)
{
    *out = (tn_value){ .kind = TN_VALUE_COMPLEX, .count = 2 };
    p->at = end;
    if (p->dry)
        return TN_OK;
    tn_value *parts = tn__arena_alloc(p->arena, 2 * sizeof *parts);
    if (!parts)
        return TN_ERR_MEMORY;
    parts[0] = tn_value_float(re);
    parts[1] = tn_value_float(im);
    out->as.list = parts;
    return TN_OK;
}

/* Reads the rest of a complex number, such as 2j or 1+2j, whose first part ends at `after`. Returns
 * false if the number is not complex. */
static bool complex_number(struct tn__parser *p, double first, size_t after, tn_value *out,
                           tn_status *status)
{
    char sign = p->text[after];
    double second;
    size_t used;

    if (is_imaginary(p, after)) {
        *status = make_complex(p, 0.0, first, after + 1, out);
        return true;
    }
    if ((sign != '+' && sign != '-') || !read_double(p, after + 1, &second, &used) ||
        !is_imaginary(p, after + 1 + used))
        return false;
    *status = make_complex(p, first, sign == '-' ? -second : second, after + used + 2, out);
    return true;
}

tn_status tn__spec_number(struct tn__parser *p, tn_value *out)
{
    size_t start = p->at, at = start, used = 0;
    bool minus = p->text[at] == '-', whole = true;
    double value = 0.0;
    tn_status status;

    if (p->text[at] == '-' || p->text[at] == '+')
        at++;
    bool good = read_double(p, at, &value, &used);
    value = minus ? -value : value;
    if (good && complex_number(p, value, at + used, out, &status))
        return status;
    if (used == 0 || in_word(p->text[at + used]))
        return tn__spec_fail_text(p, start, "number: cannot be read");
    for (size_t i = 0; i < used; i++)
        whole = whole && tn__spec_is_digit(p->text[at + i]);
    p->at = at + used;
    if (whole) {
        const uint64_t most = minus ? (uint64_t)INT64_MAX + 1 : UINT64_MAX;
        uint64_t number = 0;
        for (size_t i = 0; i < used; i++) {
            const uint64_t digit = (uint64_t)(p->text[at + i] - '0');
            if (number > (most - digit) / 10)
                return tn__spec_fail(p, start,
                                     "number: does not fit 64 bits; expected -2^63 to 2^64 - 1");
            number = number * 10 + digit;
        }
        *out = minus ? tn_value_int((int64_t)(0 - number)) : tn_value_uint(number);
        return TN_OK;
    }
    if (!good)
        return tn__spec_fail(p, start, "number: too large for a float64; infinity is written inf");
    *out = tn_value_float(value);
    return TN_OK;
}

static int hex(char c)
{
    return tn__spec_is_digit(c)   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int put_utf8(char *to, unsigned letter)
{
    if (letter < 0x80) {
        to[0] = (char)letter;
        return 1;
    }
    if (letter < 0x800) {
        to[0] = (char)(0xc0 | letter >> 6);
        to[1] = (char)(0x80 | (letter & 0x3f));
        return 2;
    }
    to[0] = (char)(0xe0 | letter >> 12);
    to[1] = (char)(0x80 | (letter >> 6 & 0x3f));
    to[2] = (char)(0x80 | (letter & 0x3f));
    return 3;
}

/* Reads an escape in a string; p->at is after the backslash. `bytes` receives the UTF-8 bytes of
 * the character. */
static tn_status parse_escape(struct tn__parser *p, char bytes[4], int *count)
{
    static const char letters[] = "ntr\\'\"", meanings[] = "\n\t\r\\'\"";
    size_t start = p->at - 1;
    char c = p->text[p->at++];
    const char *found = c ? strchr(letters, c) : NULL;
    unsigned value = 0;

    *count = 1;
    if (found) {
        bytes[0] = meanings[found - letters];
        return TN_OK;
    }
    if (c != 'x' && c != 'u')
        return tn__spec_fail(
            p, start,
            "string: unknown escape; expected one of \\n \\t \\r \\\\ \\' \\\" \\xHH and \\uHHHH");
    for (int digits = c == 'x' ? 2 : 4; digits > 0; digits--) {
        int digit = hex(p->text[p->at]);
        if (digit < 0)
            return tn__spec_fail(p, start,
                                 "escape \\%c: not enough digits; expected %d hexadecimal digits",
                                 c, c == 'x' ? 2 : 4);
        value = value * 16 + (unsigned)digit;
        p->at++;
    }
    if (value == 0 || (value >= 0xd800 && value < 0xe000))
        return tn__spec_fail(p, start,
                             "string: a character that strings cannot contain (zero or half a "
                             "surrogate pair)");
    if (c == 'x')
        bytes[0] = (char)value;
    else
        *count = put_utf8(bytes, value);
    return TN_OK;
}

size_t tn__spec_after_string(const struct tn__parser *p, size_t at)
{
    const char *text = p->text;
    size_t end = at + 1;

    if (text[at] != '"' && text[at] != '\'')
        return at;
    while (text[end] != text[at] && text[end] != '\0' && text[end] != '\n')
        end += text[end] == '\\' && text[end + 1] != '\0' ? 2 : 1;
    return text[end] == text[at] ? end + 1 : at;
}

tn_status tn__spec_string(struct tn__parser *p, tn_value *out)
{
    size_t start = p->at, longest;
    char mark = p->text[p->at++], *to = NULL;
    size_t count = 0;

    for (longest = 0; p->text[p->at + longest] && p->text[p->at + longest] != mark; longest++)
        longest += p->text[p->at + longest] == '\\' && p->text[p->at + longest + 1];
    if (!p->dry) {
        to = tn__arena_alloc(p->arena, longest + 1);
        if (!to)
            return TN_ERR_MEMORY;
    }
    while (p->text[p->at] != mark) {
        char bytes[4] = { p->text[p->at] };
        int length = 1;

        if (!bytes[0] || bytes[0] == '\n')
            return tn__spec_fail(p, start, "string: not closed; expected %c", mark);
        p->at++;
        if (bytes[0] == '\\') {
            tn_status status = parse_escape(p, bytes, &length);
            if (status != TN_OK)
                return status;
        }
        if (to)
            memcpy(to + count, bytes, (size_t)length);
        count += (size_t)length;
    }
    p->at++;
    if (to)
        to[count] = 0;
    *out = tn_value_string(to ? to : "");
    return TN_OK;
}

/* ---- printed parameters ---------------------------------------------------------------------- */

static const char parameter_words[] = "Parameter containing: [";

bool tn__spec_at_parameter(const struct tn__parser *p)
{
    return strncmp(p->text + p->at, parameter_words, sizeof parameter_words - 1) == 0;
}

static bool take_words(struct tn__parser *p, const char *words)
{
    if (strncmp(p->text + p->at, words, strlen(words)) != 0)
        return false;
    p->at += strlen(words);
    return true;
}

tn_status tn__spec_parameter(struct tn__parser *p, tn_value *out)
{
    size_t start = p->at, word = start + sizeof parameter_words - 1;
    tn_value list[TN_MAX_DIMS + 1];
    uint32_t count = 0;
    bool good;

    p->at = tn__spec_after_word(p, word);
    size_t length = p->at - word;
    good = length > 0 && take_words(p, " of size ");
    while (good && tn__spec_is_digit(p->text[p->at])) {
        size_t end = p->at;

        while (tn__spec_is_digit(p->text[end]))
            end++;
        good = count < TN_MAX_DIMS && end - p->at < 19;
        if (!good)
            break;
        list[count] = tn_value_int(0);
        for (; p->at < end; p->at++)
            list[count].as.i = list[count].as.i * 10 + (p->text[p->at] - '0');
        count++;
        if (p->text[p->at] == 'x' && tn__spec_is_digit(p->text[p->at + 1]))
            p->at++;
        else
            break;
    }
    if (good && take_words(p, " (GPU ")) {
        while (tn__spec_is_digit(p->text[p->at]))
            p->at++;
        good = take_words(p, ")");
    }
    if (!good || !take_words(p, "]"))
        return tn__spec_fail(
            p, start,
            "parameter: cannot be read; expected `Parameter containing: [torch.float32 of size "
            "2x3]`");
    *out = (tn_value){ .kind = TN_VALUE_TUPLE, .count = count + 1 };
    if (p->dry)
        return TN_OK;
    const char *dtype = tn__arena_text(p->arena, p->text + word, length);
    tn_value *kept = tn__arena_alloc(p->arena, (count + 1) * sizeof *kept);
    if (dtype == NULL || kept == NULL)
        return TN_ERR_MEMORY;
    memcpy(kept, list, count * sizeof *kept);
    kept[count] = tn_value_string(dtype);
    out->as.list = kept;
    return TN_OK;
}
