/* SPDX-License-Identifier: MIT
 *
 * The grammar of specs: texts that are accepted, and the messages for texts that are refused. */
#include "tests/base/suite.h"

/* Returns the parsed spec; the test fails if the text is refused. */
static tn__spec *parse(const char *text)
{
    tn_error_clear();
    tn__spec *spec = tn__spec_parse(text);

    if (!spec)
        ck_abort_msg("%s", tn_error_text());
    ck_assert(!tn_failed());
    return spec;
}

static void refused(const char *text, const char *words)
{
    tn_error_clear();
    tn__spec *spec = tn__spec_parse(text);

    ck_assert_msg(spec == NULL, "\"%s\" was read", text);
    expect_failure(TN_ERR_FORMAT, words);
}

/* All arguments as text: "a, b=c, (0): d". */
static const char *arguments(const tn__spec *spec)
{
    static char out[4096];
    tn__text text = { 0 };

    for (int64_t i = 0; i < spec->count; i++) {
        tn__text_add(&text, "%s", i ? ", " : "");
        if (spec->names[i])
            tn__text_add(&text, spec->children[i] ? "(%s): " : "%s=", spec->names[i]);
        tn__value_print(&spec->values[i], &text);
    }
    tn__text_give(&text, out, sizeof out);
    return out;
}

static void reads(const char *text, const char *type, const char *expected)
{
    tn__spec *spec = parse(text);

    ck_assert_str_eq(spec->type, type);
    ck_assert_str_eq(arguments(spec), expected);
    ck_assert_str_eq(spec->text, text);
    tn__spec_free(spec);
}

START_TEST(positional_and_named_arguments_are_read)
{
    reads("Linear(4, 3)", "Linear", "4, 3");
    reads(" Linear ( 4 , out_features = 3,bias=False ) ", "Linear",
          "4, out_features=3, bias=False");
    reads("ReLU()", "ReLU", "");
    reads("ReLU", "ReLU", "");
    reads("Linear(4, 3,)", "Linear", "4, 3");
    reads("torch.nn.Linear(4, 3)", "torch.nn.Linear", "4, 3");
    tn__spec *spec = parse("Linear(4, out=3)");
    ck_assert_ptr_null(spec->names[0]);
    ck_assert_str_eq(spec->names[1], "out");
    ck_assert_int_eq(spec->columns[0], 8);
    ck_assert_int_eq(spec->columns[1], 11);
    ck_assert_int_eq(spec->children[0] + spec->children[1], 0);
    tn__spec_free(spec);
}
END_TEST

START_TEST(the_name_of_a_child_may_begin_with_a_digit)
{
    tn__spec *spec = tn__spec_parse("Tree(0=Linear(4, 3), 1a = 2, 10=1e-3)");

    ck_assert_msg(spec != NULL, "%s", tn_error_text());
    ck_assert_int_eq(spec->count, 3);
    ck_assert_str_eq(spec->names[0], "0");
    ck_assert_str_eq(spec->values[0].as.s, "Linear(4, 3)");
    ck_assert_str_eq(spec->names[1], "1a");
    ck_assert_int_eq(spec->values[1].as.i, 2);
    ck_assert_str_eq(spec->names[2], "10");
    ck_assert_double_eq(spec->values[2].as.f, 1e-3);
    tn__spec_free(spec);
    static const char *const wrong[] = { "Tree(1.5=2)", "Tree(-1=2)", "Tree(1 2=3)" };
    for (int64_t i = 0; i < tn__countof(wrong); i++) {
        ck_assert_msg(tn__spec_parse(wrong[i]) == NULL, "%s", wrong[i]);
        tn_error_clear();
    }
    spec = tn__spec_parse("Tree(1, 2.5, 1e3, 0x=1)");
    ck_assert_msg(spec != NULL, "%s", tn_error_text());
    ck_assert_int_eq(spec->count, 4);
    tn__spec_free(spec);
}
END_TEST

START_TEST(every_kind_of_value_is_read)
{
    reads("f(1, -2, +3, 007, 9223372036854775807, -9223372036854775808)", "f",
          "1, -2, 3, 7, 9223372036854775807, -9223372036854775808");
    reads("f(1.0, .5, 5., 1e-3, -1E+2, inf, -inf, nan, +inf)", "f",
          "1.0, 0.5, 5.0, 0.001, -100.0, inf, -inf, nan, inf");
    reads("f(True, False, None, mean, torch.float32, Trueish)", "f",
          "True, False, None, 'mean', 'torch.float32', 'Trueish'");
    reads("f([1, 2], (1, 2), (3,), (), [], [[1], (2, [3.5])], (4), ((5)))", "f",
          "[1, 2], (1, 2), (3,), (), [], [[1], (2, [3.5])], 4, 5");
    reads("f(a=Linear(4, 3), b=[ReLU(), x])", "f", "a=Linear(4, 3), b=[ReLU(), 'x']");
    reads("f({}, { 'a' : 1, b: [2], 3: (4,), None: {0.5: True}, }, x={'m': Linear(4, 3)})", "f",
          "{}, {'a': 1, 'b': [2], 3: (4,), None: {0.5: True}}, x={'m': Linear(4, 3)}");
    reads("f(2j, 1+2j, -1.5-2e3j, +1-0j, -0.0+1.0j, (1+2j), [0.5j])", "f",
          "2.0j, 1.0+2.0j, -1.5-2000.0j, 1.0-0.0j, -0.0+1.0j, 1.0+2.0j, [0.5j]");
    reads("f(inf+2j, nan-infj, 1+nanj, -infj, nanj, x=-inf-infj)", "f",
          "inf+2.0j, nan-infj, 1.0+nanj, 0.0-infj, 'nanj', x=-inf-infj");
    tn__spec *spec = parse("f(1, 1.0, True, None, a, g(), [1], (1,))");
    static const uint32_t kinds[] = {
        TN_VALUE_INT,    TN_VALUE_FLOAT, TN_VALUE_BOOL, TN_VALUE_NONE,
        TN_VALUE_STRING, TN_VALUE_SPEC,  TN_VALUE_LIST, TN_VALUE_TUPLE
    };
    ck_assert_int_eq(spec->count, 8);
    for (int i = 0; i < 8; i++)
        ck_assert_uint_eq(spec->values[i].kind, kinds[i]);
    tn__spec_free(spec);
}
END_TEST

START_TEST(strings_have_two_quotes_and_escapes)
{
    tn__spec *spec = parse(
        "f('it', \"is\", 'a\\'b\\\"c\\\\', '\\n\\t\\r', '\\x41\\xe4', '\\u00e4\\u20ac\\u0041', "
        "'%s %n', 'a(b)=[c]', \"'\", '\xc3\xa4')");
    static const char *const expected[] = { "it",
                                            "is",
                                            "a'b\"c\\",
                                            "\n\t\r",
                                            "A\xe4",
                                            ("\xc3\xa4\xe2\x82\xac"
                                             "A"),
                                            "%s %n",
                                            "a(b)=[c]",
                                            "'",
                                            "\xc3\xa4" };
    ck_assert_int_eq(spec->count, tn__countof(expected));
    for (int i = 0; i < 10; i++)
        ck_assert_str_eq(spec->values[i].as.s, expected[i]);
    tn__spec_free(spec);
    reads("f('it\\'s', \"it's\", 'a\"b', '\\'\"')", "f", "\"it's\", \"it's\", 'a\"b', '\\'\"'");
}
END_TEST

START_TEST(a_text_that_is_no_call_is_one_value)
{
    reads("3", "", "3");
    reads(" (1, 2) ", "", "(1, 2)");
    reads("None", "", "None");
    reads("-inf", "", "-inf");
    reads("'text'", "", "'text'");
}
END_TEST

START_TEST(the_text_of_a_printed_module_is_read)
{
    static const char *const text = "Sequential(\n"
                                    "  (0): Linear(in_features=4, out_features=3, bias=True)\n"
                                    "  (1): ReLU()\n"
                                    "  (fc): Sequential(\n"
                                    "    (0): Conv2d(1, 20, kernel_size=(5, 5), stride=(1, 1))\n"
                                    "    (1): Dropout(p=0.5, inplace=False)\n"
                                    "  )\n"
                                    "  (gone): None\n"
                                    ")";
    tn__spec *spec = parse(text);
    ck_assert_str_eq(spec->type, "Sequential");
    ck_assert_int_eq(spec->count, 4);
    ck_assert_str_eq(spec->names[0], "0");
    ck_assert_str_eq(spec->values[0].as.s, "Linear(in_features=4, out_features=3, bias=True)");
    ck_assert_str_eq(spec->names[2], "fc");
    ck_assert_uint_eq(spec->values[3].kind, TN_VALUE_NONE);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(spec->children[i], 1);
    tn__spec *inner = parse(spec->values[2].as.s);
    ck_assert_int_eq(inner->count, 2);
    ck_assert_str_eq(inner->values[1].as.s, "Dropout(p=0.5, inplace=False)");
    tn__spec_free(inner);
    tn__spec_free(spec);
    reads("Block(\n  64, eps=1e-05\n  (norm): LayerNorm((64,), eps=1e-05, "
          "elementwise_affine=True)\n)",
          "Block", "64, eps=1e-05, (norm): LayerNorm((64,), eps=1e-05, elementwise_affine=True)");
    reads("A((x): B(), (y): C())", "A", "(x): B(), (y): C()");
    reads("A(3\r\n\t(x): B())", "A", "3, (x): B()");
}
END_TEST

START_TEST(a_range_in_a_name_is_as_many_arguments)
{
    reads("A(layer_{0..2}=B(1), out=C())", "A",
          "layer_0=B(1), layer_1=B(1), layer_2=B(1), out=C()");
    reads("A({3..4}=B(), x{7..7}_y=2)", "A", "3=B(), 4=B(), x7_y=2");
    reads("A(B(l{0..1}=C()))", "A", "B(l{0..1}=C())"); /* read when B is made */
    refused("A(l{2..1}=B())", "column 4: ");
    refused("A(l{0-2}=B())", "column 4: ");
    refused("A(l{0..}=B())", "column 4: ");
    refused("A(l{0..99999999999999999999}=B())", "column 4: ");
    refused("A(l{0..65536}=B())", "too many values; expected at most 65536");
}
END_TEST

START_TEST(a_repeated_child_is_as_many_children)
{
    reads("ModuleList(\n  (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)\n  (3): "
          "ReLU()\n)",
          "ModuleList",
          "(0): Linear(in_features=4, out_features=4, bias=True), (1): Linear(in_features=4, "
          "out_features=4, "
          "bias=True), (2): Linear(in_features=4, out_features=4, bias=True), (3): ReLU()");
    refused("", "\"\": column 1: ");
    refused("A((0-2): 2 x B())", "repeated child: cannot be read; expected `(0-2): 3 x Type(...)`");
    refused("A((a-b): 2 x B())", "column 10: repeated child: cannot be read");
    refused("A((0-2): 3 B())", "repeated child: cannot be read");
    refused("A((0-99999999): 100000000 x B())", "repeated child: cannot be read");
    refused("A((0-69999): 70000 x B())", "too many values; expected at most 65536");
    refused("A((0-65535): 65536 x B(), 1)", "too many values; expected at most 65536");
}
END_TEST

START_TEST(what_is_wrong_is_said_with_its_column)
{
    refused("Linear(4, 3", "Linear(4, 3: column 7: bracket (: not closed; expected )");
    refused("Linear(4 3)", "Linear(4 3): column 10: expected a comma or )");
    refused("Linear(4, )x", "column 12: text after the end");
    refused("Linear(, 4)", "column 8: expected a value");
    /* A path without quotes. */
    refused("ImageFolder(a/b)",
            "ImageFolder(a/b): column 14: expected a comma or ); a text such as "
            "a path needs quotes: 'a/b'");
    refused("F(root=photos/train, n=3)", "a text such as a path needs quotes: 'photos/train'");
    refused("F(/tmp/x)",
            "column 3: expected a value; a text such as a path needs quotes: '/tmp/x'");
    refused("F(../x)", "number: cannot be read; a text such as a path needs quotes: '../x'");
    refused("F(~/x.csv)", "expected a value; a text such as a path needs quotes: '~/x.csv'");
    refused("F([c\\d])", "column 5: expected a comma or ]; a text such as a path needs quotes: "
                         "'c\\d'");
    refused("F(my-photos)", "a text such as a path needs quotes: 'my-photos'");
    refused("Linear(4,, 3)", "column 10: expected a value");
    refused("Linear(a=)", "column 10: expected a value");
    refused("Linear(a=1, 2)", "column 13: argument: positional after a named one");
    refused("Linear(3x)", "column 8: number: cannot be read");
    refused("Linear(0x10)", "column 8: number: cannot be read");
    refused("Linear(1e)", "column 8: number: cannot be read");
    refused("Linear(1.2.3)", "column 8: number: cannot be read");
    refused("Linear(-)", "column 8: number: cannot be read");
    refused("Linear(2jj)", "column 8: number: cannot be read");
    refused("Linear(1+2)", "column 9: expected a comma or )");
    refused("Linear(1+2j3)", "column 9: expected a comma or )");
    refused("Linear(1 + 2j)", "column 10: expected a comma or )");
    refused("Linear(-x)", "column 8: number: cannot be read");
    refused("Linear(18446744073709551616)",
            "column 8: number: does not fit 64 bits; expected -2^63 to 2^64 - 1");
    refused("Linear(-9223372036854775809)", "column 8: number: does not fit 64 bits");
    refused("Linear(1e999)", "column 8: number: too large for a float64");
    refused("f('abc)", "column 3: string: not closed; expected '");
    refused("f('a\nb')", "string: not closed; expected '");
    refused("f('\\", "unknown escape");
    refused("f('\\y')", "column 4: string: unknown escape");
    refused("f('\\x4')", "escape \\x: not enough digits; expected 2 hexadecimal digits");
    refused("f('\\u123g')", "escape \\u: not enough digits; expected 4 hexadecimal digits");
    refused("f('\\x00')", "a character that strings cannot contain (zero or half a surrogate");
    refused("f('\\ud800')", "a character that strings cannot contain");
    refused("f([1, 2)", "column 8: expected a comma or ]");
    refused("f([1, 2", "column 3: bracket [: not closed; expected ]");
    refused("f((1, 2", "column 3: bracket (: not closed; expected )");
    refused("f({'a' 1})", "column 8: expected a colon after the key of a dictionary");
    refused("f({'a'})", "column 7: expected a colon after the key");
    refused("f({'a':})", "column 8: expected a value after the colon");
    refused("f({'a': 1, 'b': 2", "column 3: bracket {: not closed; expected }");
    refused("f({'a': 1 'b': 2})", "column 11: expected a comma or }");
    refused("f({[1]: 1})", "column 3: dictionary: wrong key; expected strings, numbers, True");
    refused("f({g(1): 1})", "column 3: dictionary: wrong key");
    refused("", "column 1: the text ends; expected a value");
    refused("   ", "the text ends; expected a value");
    refused("%s", "column 1: expected a value");
    refused("f(%n)", "f(%n): column 3: expected a value");
    refused("f(x\x01)", "expected a comma or )");
    refused("f(a)(b)", "column 5: text after the end");
    refused("A((x): 't')", "column 8: not a child; expected a module such as Type(...), a param");
    refused("A((x): b)", "column 8: not a child; expected a module");
    refused("f(\xc3\xa4)", "column 3: expected a value");
    refused("f('\xc3\xa4', ?)", "column 8: expected a value");
}
END_TEST

START_TEST(a_place_in_long_and_in_many_lines_is_named)
{
    char text[1000];

    refused("Sequential(\n  (0): Linear(4, 3)\n  (1): ReLU(x y)\n)",
            "(1): ReLU(x y): line 3, column 15: expected a comma or )");
    memset(text, ' ', sizeof text);
    memcpy(text, "f(", 2);
    memcpy(text + 500, "?", 1);
    text[999] = 0;
    refused(text, "... ");
    refused(text, "...: column 501: expected a value");
}
END_TEST

START_TEST(length_depth_and_number_of_values_are_bounded)
{
    enum { LONG = 1 << 21 };
    char *text = malloc(LONG);

    memset(text, '(', LONG);
    text[LONG - 1] = 0;
    refused(text, "spec: too long, got more than 1048576 bytes; expected at most 1048576");
    text[1 << 20] = 0;
    refused(text, "too deep; expected at most 1064 levels");
    text[0] = 'f';
    refused(text, "too deep; expected at most 1064 levels");
    for (int i = 0; i < 1100; i++)
        memcpy(text + 2 * i, "f(", 3);
    refused(text, "too deep; expected at most 1064 levels");
    for (int i = 0; i < 1001; i++)
        memcpy(text + 2 * i, "f(", 3);
    memset(text + 2002, ')', 1001);
    text[3003] = 0;
    tn__spec_free(parse(text));
    /* Building reads a text once for every call around it, so a long text must not be nested so
     * deep. */
    for (int i = 0; i < 200; i++)
        memcpy(text + 2 * i, "f(", 3);
    text[400] = '"';
    memset(text + 401, 'x', 500000);
    text[500401] = '"';
    memset(text + 500402, ')', 200);
    text[500602] = 0;
    refused(text, "spec: too many long nested calls");
    memcpy(text, "f([", 3);
    for (int i = 0; i < 70000; i++)
        memcpy(text + 3 + 2 * i, "1,", 2);
    memcpy(text + 3 + 140000, "])", 3);
    refused(text, "too many values; expected at most 65536");
    free(text);
}
END_TEST

/* ---- random specs ---------------------------------------------------------------------------- */

static uint64_t state = 1234567;

static uint32_t below(uint32_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % bound;
}

static void put_random(tn__text *text, int depth)
{
    static const char *const strings[] = { "",   "a",        "it's", "\"",   "'\"", "\n\\",
                                           "%s", "\xc3\xa4", "\xff", "True", "1" };
    tn_value value = { .kind = TN_VALUE_NONE };
    uint64_t bits = state * 2654435761u;

    tn_value parts[2];

    switch (below(depth > 0 ? 10 : 7)) {
    case 0: value = below(2) ? tn_value_int((int64_t)bits) : tn_value_uint(bits); break;
    case 1: value = tn_value_int(below(100)); break;
    case 2: {
        double number;
        memcpy(&number, &bits, sizeof number);
        value = tn_value_float(number != number ? 0.5 : number);
        break;
    }
    case 3: value = tn_value_bool(below(2)); break;
    case 4: value = tn_value_string(strings[below((uint32_t)tn__countof(strings))]); break;
    case 5: break;
    case 6:
        parts[0] = tn_value_float(below(2) ? -0.0 : (double)(int64_t)bits);
        parts[1] = tn_value_float(below(3) ? (double)(int64_t)(bits * 3) / 7 : -0.0);
        value.kind = TN_VALUE_COMPLEX;
        value.count = 2;
        value.as.list = parts;
        break;
    default: {
        static const char *const open[] = { "[", "(", "Name(" };
        uint32_t which = below(3), count = below(4);
        tn__text_add(text, "%s", open[which]);
        for (uint32_t i = 0; i < count; i++) {
            tn__text_add(text, "%s", i ? ", " : "");
            if (which == 2 && (i > 0 || below(2)))
                tn__text_add(text, "n%u=", i);
            put_random(text, depth - 1);
        }
        tn__text_add(text, "%s", which == 0 ? "]" : which == 1 && count == 1 ? ",)" : ")");
        return;
    }
    }
    tn__value_print(&value, text);
}

START_TEST(what_is_printed_is_read_as_it_was)
{
    for (int i = 0; i < 3000; i++) {
        tn__text text = { 0 }, again = { 0 };
        put_random(&text, 4);
        tn__spec *spec = parse(text.at);
        if (*spec->type)
            tn__text_add(&again, "%s(%s)", spec->type, arguments(spec));
        else
            tn__value_print(&spec->values[0], &again);
        ck_assert_str_eq(again.at, text.at);
        tn__spec_free(spec);
        tn__text_free(&text);
        tn__text_free(&again);
    }
}
END_TEST

START_TEST(random_bytes_are_read_or_refused_with_words)
{
    static const char letters[] = "()[]'\"\\,=: \n-+.0123456789abefnxuTrueFalseNoneinf\xc3\xa4%";
    char text[64];

    for (int i = 0; i < 20000; i++) {
        uint32_t length = below(40);
        for (uint32_t k = 0; k < length; k++)
            text[k] = letters[below(sizeof letters - 1)];
        text[length] = 0;
        tn_error_clear();
        tn__spec *spec = tn__spec_parse(text);
        ck_assert(spec ? !tn_failed()
                       : tn_error_code() == TN_ERR_FORMAT && strstr(tn_error_text(), "column "));
        tn__spec_free(spec);
    }
    tn_error_clear();
}
END_TEST

START_TEST(every_allocation_of_the_parser_may_fail)
{
    static const char text[] =
        "Sequential(\n  (0-1): 2 x Linear(4, 3)\n  (a): ReLU()\n  x='a\\n', "
        "y=[1, (2, [3, 'four']), 5], z=word, "
        "u=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, "
        "25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40])";
    tn__spec *spec = NULL;
    uint64_t nth = 0;

    while (!spec) {
        tn_error_clear();
        tn__memory_fail(++nth);
        spec = tn__spec_parse(text);
        tn__memory_fail(0);
        if (!spec)
            expect_failure(TN_ERR_MEMORY, "out of host memory");
        ck_assert_uint_lt(nth, 1000);
    }
    ck_assert_uint_gt(nth, 4);
    ck_assert(!tn_failed());
    tn__spec_free(spec);
}
END_TEST

static char *take(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = tn__text_from_format(format, args);
    va_end(args);
    return text;
}

START_TEST(a_format_becomes_text_or_is_refused)
{
    char *text = take("Linear(%d, %d, bias=%b, x=%g, name=%q)", 4, 3, 1, 0.1, "a\"%s");
    ck_assert_str_eq(text, "Linear(4, 3, bias=True, x=0.1, name=\"a\\\"%s\")");
    tn_free(text);
    tn_error_clear();
    ck_assert_ptr_null(take("Linear(%y)"));
    expect_failure(TN_ERR_VALUE, "format \"Linear(%y)\"");
    tn__memory_fail(1);
    ck_assert_ptr_null(take("x"));
    tn__memory_fail(0);
    expect_failure(TN_ERR_MEMORY, "out of host memory");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        positional_and_named_arguments_are_read,
        the_name_of_a_child_may_begin_with_a_digit,
        every_kind_of_value_is_read,
        strings_have_two_quotes_and_escapes,
        a_text_that_is_no_call_is_one_value,
        the_text_of_a_printed_module_is_read,
        a_range_in_a_name_is_as_many_arguments,
        a_repeated_child_is_as_many_children,
        what_is_wrong_is_said_with_its_column,
        a_place_in_long_and_in_many_lines_is_named,
        length_depth_and_number_of_values_are_bounded,
        what_is_printed_is_read_as_it_was,
        random_bytes_are_read_or_refused_with_words,
        every_allocation_of_the_parser_may_fail,
        a_format_becomes_text_or_is_refused,
        NULL,
    };

    return suite_run("spec", tests);
}
