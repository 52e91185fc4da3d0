/* SPDX-License-Identifier: MIT
 *
 * Formatting and reading numbers. The first eight bytes of the input are used as a float and as an
 * integer, the ninth byte is a precision. After them, the first line is a conversion, the other
 * lines are a text. Floats are compared with the C library, which is exact in the C locale.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_number new/ tests/fuzz/corpus/number */
#include "tests/fuzz/fuzz.h"

#include "core/base/internal.h"

#include <math.h>

static void try_float(double value, int precision)
{
    static const char *const formats[] = { "%.*f", "%.*e", "%.*g", "%+.*f", "%-40.*e|", "%040.*g" };
    char ours[1600], theirs[1600];
    double back;

    for (int64_t i = 0; i < tn__countof(formats) && isfinite(value); i++) {
        int64_t length = tn_snprint(ours, sizeof ours, formats[i], precision, value);
        snprintf(theirs, sizeof theirs, formats[i], precision, value);
        fuzz_require(length == (int64_t)strlen(ours) && strcmp(ours, theirs) == 0);
    }
    tn_snprint(ours, sizeof ours, "%g", value);
    fuzz_require(tn_read_float(ours, &back));
    fuzz_require(value != value ? back != back : memcmp(&value, &back, sizeof value) == 0);
}

static void try_number(const char *text)
{
    double ours;
    int64_t whole;

    if (tn_read_float(text, &ours)) {
        double theirs = strtod(text, NULL);
        fuzz_require(ours != ours || memcmp(&ours, &theirs, sizeof ours) == 0);
    }
    if (tn_read_int(text, &whole))
        fuzz_require(whole == strtoll(text, NULL, 10));
}

/* A text in quotes is read by the parser of specs as it was. */
static void try_quoted(const char *text)
{
    int64_t length = tn_snprint(NULL, 0, "f(%q)", text);
    char *quoted = malloc((size_t)length + 1);

    fuzz_require(quoted);
    tn_snprint(quoted, (size_t)length + 1, "f(%q)", text);
    tn__spec *spec = tn__spec_parse(quoted);
    fuzz_require(spec && spec->count == 1 && strcmp(spec->values[0].as.s, text) == 0);
    tn__spec_free(spec);
    free(quoted);
}

/* One conversion with an argument of the kind that its letter takes. */
static void try_conversion(const char *line, long long number, double real, const char *text)
{
    char format[40], out[64];
    size_t length = strlen(line), stars = 0;
    int64_t whole;

    if (length == 0 || length > 30)
        return;
    for (size_t i = 0; i < length; i++)
        stars += line[i] == '*';
    char letter = line[length - 1];
    if (stars > 2 || strspn(line, "-+0123456789.*lzj") < length - 1)
        return;
    snprintf(format, sizeof format, "<%%%s>", line);
    for (size_t size = 0; size <= sizeof out; size += 21) {
        memset(out, '#', sizeof out);
#define TRY(argument)                                                                              \
    (stars == 0   ? tn_snprint(out, size, format, argument)                                        \
     : stars == 1 ? tn_snprint(out, size, format, (int)number, argument)                           \
                  : tn_snprint(out, size, format, (int)number, (int)(number >> 32), argument))
        if (letter == 'f' || letter == 'e' || letter == 'g')
            whole = TRY(real);
        else if (letter == 's' || letter == 'q')
            whole = TRY(text);
        else
            whole = TRY(number);
        fuzz_require(whole >= -1 && (size == 0 || memchr(out, 0, size)));
        for (size_t i = size; i < sizeof out; i++)
            fuzz_require(out[i] == '#');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    long long number = 0;
    double real = 0.0;

    if (size < 9)
        return 0;
    memcpy(&number, data, sizeof number);
    memcpy(&real, data, sizeof real);
    char *rest = fuzz_text(data + 9, size - 9);
    char *text = strchr(rest, '\n');
    if (text)
        *text++ = 0;
    else
        text = rest + strlen(rest);
    try_float(real, data[8] % 64);
    try_number(rest);
    try_number(text);
    try_quoted(text);
    try_conversion(rest, number, real, text);
    fuzz_require(!tn_failed());
    free(rest);
    return 0;
}
