/* SPDX-License-Identifier: MIT
 *
 * Formatting and reading numbers: what is printed, and that it is the same in every locale. */
#include "tests/base/suite.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

/* The text of a format, in one of a few buffers. */
static const char *text(const char *format, ...)
{
    static char buffers[4][6000];
    static int next;
    char *buffer = buffers[next++ % 4];
    va_list args;

    va_start(args, format);
    int64_t length = tn_snprintv(buffer, sizeof buffers[0], format, args);
    va_end(args);
    if (length < 0)
        return "(refused)";
    ck_assert_int_eq(length, (int64_t)strlen(buffer));
    return buffer;
}

START_TEST(whole_numbers_print_as_in_c)
{
    ck_assert_str_eq(text("%d %i %u %x", -5, 7, 8u, 255u), "-5 7 8 ff");
    ck_assert_str_eq(text("%ld %lld %zd %jd", -1L, INT64_MIN, (ptrdiff_t)-3, INTMAX_MAX),
                     "-1 -9223372036854775808 -3 9223372036854775807");
    ck_assert_str_eq(text("%lu %llx %zu %ju", ~0ul, ~0ull, SIZE_MAX, UINTMAX_MAX),
                     "18446744073709551615 ffffffffffffffff 18446744073709551615 "
                     "18446744073709551615");
    ck_assert_str_eq(text("[%5d][%-5d][%05d][%+d][%+5d][%+05d]", 42, 42, 42, 42, 42, 42),
                     "[   42][42   ][00042][+42][  +42][+0042]");
    ck_assert_str_eq(text("[%.3d][%8.3d][%08.3d][%.0d][%-8.3d]", 7, -7, 7, 0, 7),
                     "[007][    -007][     007][][007     ]");
    ck_assert_str_eq(text("[%*d][%*d][%.*d]", 4, 1, -4, 1, 3, 1), "[   1][1   ][001]");
}
END_TEST

START_TEST(texts_print_as_in_c)
{
    ck_assert_str_eq(text("%s|%c|%%|%5s|%-5s|%.2s|%.*s", "a", 'b', "c", "d", "efg", 1, "hij"),
                     "a|b|%|    c|d    |ef|h");
    ck_assert_str_eq(text("%s", (char *)NULL), "(null)");
    ck_assert_str_eq(text("%p|%10p", (void *)0x1f, (void *)0x2), "0x1f|       0x2");
    ck_assert_str_eq(text("%b %b|%6b|%-6b|", 0, 7, 1, 0), "False True|  True|False |");
    ck_assert_str_eq(text("%.3s", "no end after three"), "no ");
    char three[3] = { 'a', 'b', 'c' }; /* not ended */
    ck_assert_str_eq(text("%.3s", three), "abc");
}
END_TEST

START_TEST(strings_in_quotes_have_the_escapes_of_the_spec_grammar)
{
    ck_assert_str_eq(text("%q", "plain"), "\"plain\"");
    ck_assert_str_eq(text("%q", "a\"b\\c\n\t\r'"), "\"a\\\"b\\\\c\\n\\t\\r'\"");
    ck_assert_str_eq(text("%q", "\x01\x7f"), "\"\\x01\\x7f\"");
    ck_assert_str_eq(text("%q", "\xc3\xa4 \xe2\x82\xac"), "\"\xc3\xa4 \xe2\x82\xac\"");
    ck_assert_str_eq(text("%q", "\xff\xc3"), "\"\\xff\\xc3\"");
    /* too long for the number, half of a pair of UTF-16, above 0x10ffff */
    ck_assert_str_eq(text("%q", "\xe0\x9f\xbf"), "\"\\xe0\\x9f\\xbf\"");
    ck_assert_str_eq(text("%q", "\xf0\x8f\xbf\xbf"), "\"\\xf0\\x8f\\xbf\\xbf\"");
    ck_assert_str_eq(text("%q", "\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"");
    ck_assert_str_eq(text("%q", "\xf4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\"");
    ck_assert_str_eq(text("%q", "\xed\x9f\xbf\xf4\x8f\xbf\xbf"),
                     "\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\"");
    ck_assert_str_eq(text("%8q|%-8q|", "ab", "ab"), "    \"ab\"|\"ab\"    |");
    ck_assert_str_eq(text("%q", (char *)NULL), "None");
}
END_TEST

START_TEST(a_float_without_precision_is_the_shortest_that_reads_back)
{
    ck_assert_str_eq(text("%g %g %g %g %g", 0.1, 1.0, 1e-5, 0.0001, -0.0),
                     "0.1 1.0 1e-05 0.0001 -0.0");
    ck_assert_str_eq(text("%g %g %g", 1e15, 1e16, 123456789.0),
                     "1000000000000000.0 1e+16 123456789.0");
    ck_assert_str_eq(text("%g %g %g", 5e-324, DBL_MAX, DBL_MIN),
                     "5e-324 1.7976931348623157e+308 2.2250738585072014e-308");
    ck_assert_str_eq(text("%g %g %g", 0.1 + 0.2, 1.0 / 3, 1e23),
                     "0.30000000000000004 0.3333333333333333 1e+23");
    ck_assert_str_eq(text("%g %g %g", INFINITY, -INFINITY, NAN), "inf -inf nan");
    ck_assert_str_eq(text("%+g %8g|%-8g|%08g %+g", 1.5, 0.25, 0.25, -0.25, INFINITY),
                     "+1.5     0.25|0.25    |-0000.25 +inf");
    ck_assert_str_eq(text("%g", 0x1p-44), "5.684341886080802e-14");
    ck_assert_str_eq(text("%g", 9007199254740993.0), "9007199254740992.0");
}
END_TEST

START_TEST(a_float_with_precision_prints_as_in_c)
{
    static const double values[] = {
        0.0,  -0.0,    0.5,  1.5,    2.5,     0.05,    0.95,     9.5,   99.95,       999999.5,
        1e-7, 123.456, 1e22, 5e-324, DBL_MAX, DBL_MIN, -1.0 / 3, 1e100, 0.000123456, 1234567.0,
    };
    static const char *const formats[] = { "%.*f", "%.*e", "%.*g", "%+.*f", "%020.*f", "%-20.*e|" };
    char expected[6000];

    for (int64_t i = 0; i < tn__countof(values); i++)
        for (int64_t k = 0; k < tn__countof(formats); k++)
            for (int precision = 0; precision < 40; precision++) {
                /* The C library prints exactly too, as long as the locale is C. */
                snprintf(expected, sizeof expected, formats[k], precision, values[i]);
                ck_assert_str_eq(text(formats[k], precision, values[i]), expected);
            }
    snprintf(expected, sizeof expected, "%f %e %.1200f %.1000e", 1.5, 1.5, 5e-324, DBL_MAX);
    ck_assert_str_eq(text("%f %e %.1200f %.1000e", 1.5, 1.5, 5e-324, DBL_MAX), expected);
}
END_TEST

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

START_TEST(every_float_reads_back_to_its_bits_and_no_shorter_text_does)
{
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = random_bits();
        double value, back, c;
        char shorter[64];

        if (i % 4 == 1)
            bits &= 0x800fffffffffffffu; /* denormals */
        if (i % 4 == 2)
            bits &= 0xfff0000000000000u; /* powers of two */
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        const char *printed = text("%g", value);
        ck_assert_msg(tn_read_float(printed, &back), "%s", printed);
        ck_assert_msg(memcmp(&back, &value, sizeof value) == 0, "%s", printed);
        ck_assert_msg(strtod(printed, NULL) == value, "%s", printed);
        /* One significant digit less does not give the same number. */
        int digits = 0, zeros = 0;
        for (const char *at = printed; *at && *at != 'e'; at++)
            if (*at >= '1' && *at <= '9') {
                digits += zeros + 1;
                zeros = 0;
            } else if (*at == '0' && digits > 0) {
                zeros++;
            }
        if (digits > 1) {
            tn_snprint(shorter, sizeof shorter, "%.*e", digits - 2, value);
            ck_assert_msg(!tn_read_float(shorter, &c) || c != value, "%s %s", printed, shorter);
        }
    }
}
END_TEST

START_TEST(texts_are_read_to_the_nearest_float)
{
    double value;

    for (int i = 0; i < 20000; i++) {
        char digits[900];
        int count = 1 + (int)(random_bits() % (i % 100 ? 30u : 850u));
        for (int k = 0; k < count; k++)
            digits[k] = (char)('0' + random_bits() % 10);
        if (count > 3 && i % 3 == 0)
            digits[random_bits() % (unsigned)count] = '.';
        tn_snprint(digits + count, sizeof digits - (size_t)count, "e%d",
                   (int)(random_bits() % 640) - 320 - (i % 100 ? 0 : count / 2));
        double expected = strtod(digits, NULL);
        bool good = tn_read_float(digits, &value);
        ck_assert_msg(good == !isinf(expected), "%s", digits);
        ck_assert_msg(!good || memcmp(&value, &expected, sizeof value) == 0, "%s", digits);
    }
    /* Halfway between two floats; then above it, by a digit far behind the point. */
    ck_assert(tn_read_float("9007199254740993", &value));
    ck_assert_double_eq(value, 9007199254740992.0);
    char hair[1100] = "9007199254740993.";
    memset(hair + strlen(hair), '0', 1000);
    memcpy(hair + 1050, "1", 2);
    ck_assert_uint_eq(strlen(hair), 1017);
    hair[1016] = '1';
    ck_assert(tn_read_float(hair, &value));
    ck_assert_double_eq(value, 9007199254740994.0);
    ck_assert(tn_read_float("2.4703282292062327e-324", &value));
    ck_assert_double_eq(value, 0.0);
    ck_assert(tn_read_float("2.4703282292062329e-324", &value));
    ck_assert_double_eq(value, 5e-324);
    ck_assert(tn_read_float("1.7976931348623158e308", &value));
    ck_assert_double_eq(value, DBL_MAX);
    ck_assert(!tn_read_float("1.7976931348623159e308", &value));
}
END_TEST

START_TEST(only_whole_texts_are_numbers)
{
    static const char *const bad[] = { "",       " 1",    "1 ",       "1,5", "0x10",  "1e",
                                       "e1",     ".",     "+",        "-",   "--1",   "1e+",
                                       "1.2.3",  "in",    "infinity", "NaN", "1_000", "1f",
                                       "nan(1)", "1e999", "-1e999" };
    double value = 7.0;
    int64_t number = 7;

    for (int64_t i = 0; i < tn__countof(bad); i++)
        ck_assert_msg(!tn_read_float(bad[i], &value), "%s", bad[i]);
    ck_assert_double_eq(value, 7.0);
    ck_assert(tn_read_float("-.5e+1", &value) && value == -5.0);
    ck_assert(tn_read_float("5.", &value) && value == 5.0);
    ck_assert(tn_read_float("+inf", &value) && isinf(value));
    ck_assert(tn_read_float("-inf", &value) && value < 0 && isinf(value));
    ck_assert(tn_read_float("nan", &value) && isnan(value));
    ck_assert(tn_read_float("1e-999999999999", &value) && value == 0.0);
    ck_assert(tn_read_float("0e999999999999", &value) && value == 0.0);
    ck_assert(tn_read_float("-0", &value) && value == 0.0 && signbit(value));

    ck_assert(tn_read_int("-9223372036854775808", &number) && number == INT64_MIN);
    ck_assert(tn_read_int("9223372036854775807", &number) && number == INT64_MAX);
    ck_assert(tn_read_int("+007", &number) && number == 7);
    ck_assert(!tn_read_int("9223372036854775808", &number));
    ck_assert(!tn_read_int("-9223372036854775809", &number));
    ck_assert(!tn_read_int("", &number) && !tn_read_int("-", &number));
    ck_assert(!tn_read_int("1.0", &number) && !tn_read_int(" 1", &number));
    ck_assert_int_eq(number, 7);
}
END_TEST

START_TEST(an_unknown_conversion_is_refused_and_writes_nothing_foreign)
{
    static const char *const bad[] = { "%n", "%a", "%y",  "%hd", "%lc", "%llg", "%zs", "%",
                                       "%5", "%l", "%#x", "% d", "%'d", "%1$d", "%Lf", "%lllx" };
    char out[32];

    for (int64_t i = 0; i < tn__countof(bad); i++)
        ck_assert_msg(tn_snprint(out, sizeof out, bad[i], 1) == -1, "%s", bad[i]);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(tn_snprint(out, sizeof out, "ab%y"), -1);
    ck_assert_str_eq(out, "ab");
}
END_TEST

START_TEST(a_short_buffer_gets_what_fits_and_the_whole_length_is_returned)
{
    char out[8] = "#######";

    ck_assert_int_eq(tn_snprint(out, 4, "%d", 123456), 6);
    ck_assert_str_eq(out, "123");
    ck_assert_int_eq(out[4], '#');
    ck_assert_int_eq(tn_snprint(out, 1, "xyz"), 3);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(tn_snprint(NULL, 0, "%s", "xyz"), 3);
    ck_assert_int_eq(tn_snprint(NULL, 100, "%1000d", 1), 1000);
    /* Widths are bounded: a format cannot ask for gigabytes. */
    ck_assert_int_eq(tn_snprint(NULL, 0, "%999999999d", 1), 4096);
    ck_assert_int_eq(tn_snprint(NULL, 0, "%.*d", 2147483647, 1), 4096);
}
END_TEST

/* A locale with a decimal comma: an installed one, else one made by localedef for this test. */
static bool use_comma_locale(void)
{
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
    char folder[] = "/tmp/tenon-locale-XXXXXX", command[256];

    for (int64_t i = 0; i < tn__countof(names); i++)
        if (setlocale(LC_ALL, names[i]) && *localeconv()->decimal_point == ',')
            return true;
    if (!mkdtemp(folder))
        return false;
    tn_snprint(command, sizeof command,
               "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1", folder);
    int status = system(command);
    setenv("LOCPATH", folder, 1);
    bool good = WIFEXITED(status) && setlocale(LC_ALL, "de_DE.UTF-8") &&
                *localeconv()->decimal_point == ',';
    tn_snprint(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        good = false;
    return good;
}

START_TEST(a_comma_locale_changes_nothing)
{
    double value;
    char c[32];

    if (!use_comma_locale()) {
        printf("SKIP a_comma_locale_changes_nothing: there is no locale with a decimal comma\n");
        return;
    }
    snprintf(c, sizeof c, "%.1f", 1.5);
    ck_assert_str_eq(c, "1,5"); /* it is in force */
    ck_assert_str_eq(text("%g %f %e %.2g %d", 1.5, 1.5, 1.5, 1.5, 1234567),
                     "1.5 1.500000 1.500000e+00 1.5 1234567");
    ck_assert(tn_read_float("1.5", &value) && value == 1.5);
    ck_assert(!tn_read_float("1,5", &value));
    tn__spec *spec = tn__spec_parse("SGD(lr=0.5, momentum=1e-3)");
    ck_assert_ptr_nonnull(spec);
    ck_assert_double_eq(spec->values[0].as.f, 0.5);
    ck_assert_double_eq(spec->values[1].as.f, 1e-3);
    tn__spec_free(spec);
    setlocale(LC_ALL, "C");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        whole_numbers_print_as_in_c,
        texts_print_as_in_c,
        strings_in_quotes_have_the_escapes_of_the_spec_grammar,
        a_float_without_precision_is_the_shortest_that_reads_back,
        a_float_with_precision_prints_as_in_c,
        every_float_reads_back_to_its_bits_and_no_shorter_text_does,
        texts_are_read_to_the_nearest_float,
        only_whole_texts_are_numbers,
        an_unknown_conversion_is_refused_and_writes_nothing_foreign,
        a_short_buffer_gets_what_fits_and_the_whole_length_is_returned,
        a_comma_locale_changes_nothing,
        NULL,
    };

    return suite_run("format", tests);
}
