/* SPDX-License-Identifier: MIT
 *
 * Option tables: arguments into structs and back to text; and value packs. */
#include "tests/base/suite.h"

#include <math.h>

struct linear {
    int64_t in_features, out_features;
    bool bias;
};

static const tn_option linear_options[] = {
    TN_OPTION_ROW(struct linear, in_features, NULL, "size of each input sample", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, out_features, NULL, "size of each output sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, bias, "True", "add a bias", TN_OPTION_KIND_BOOL,
                  TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END,
};

struct all {
    bool flag;
    int64_t number;
    double real;
    const char *mode;
    tn_ints size;
    tn_floats betas;
    tn_dtype dtype;
    tn_value any;
    tn_values more;
};

struct numbers {
    tn_scalar a, b, c, d, e;
};

#define OPTIONAL TN_OPTION_OPTIONAL
#define KEYWORD (TN_OPTION_KEYWORD | TN_OPTION_REPR_KEYWORD)
static const tn_option all_options[] = {
    TN_OPTION_BOOL(struct all, flag, "False", "a flag"),
    TN_OPTION_ROW(struct all, number, "None", "a number", TN_OPTION_KIND_INT, OPTIONAL),
    TN_OPTION_ROW(struct all, real, "1e-3", "a real", TN_OPTION_KIND_FLOAT, OPTIONAL),
    TN_OPTION_ROW(struct all, mode, "mean", "a word", TN_OPTION_KIND_STRING, OPTIONAL),
    TN_OPTION_ROW(struct all, size, "(1, 1)", "a row", TN_OPTION_KIND_INTS, OPTIONAL | KEYWORD),
    TN_OPTION_ROW(struct all, betas, "(0.9, 0.999)", "a row", TN_OPTION_KIND_FLOATS,
                  OPTIONAL | KEYWORD),
    TN_OPTION_ROW(struct all, dtype, "float32", "a type", TN_OPTION_KIND_DTYPE, OPTIONAL | KEYWORD),
    TN_OPTION_ROW(struct all, any, "None", "anything", TN_OPTION_KIND_VALUE, KEYWORD),
    TN_OPTION_ROW(struct all, more, NULL, "the rest", TN_OPTION_KIND_VALUE, TN_OPTION_MANY),
    TN_OPTION_END,
};

static const tn_option number_options[] = {
    TN_OPTION_SCALAR(struct numbers, a, "2", "an integer"),
    TN_OPTION_SCALAR(struct numbers, b, "2.0", "a float"),
    TN_OPTION_SCALAR(struct numbers, c, "True", "a flag"),
    TN_OPTION_SCALAR(struct numbers, d, "1+2j", "a complex number"),
    TN_OPTION_ROW(struct numbers, e, "None", "a bound", TN_OPTION_KIND_SCALAR, TN_OPTION_OPTIONAL),
    TN_OPTION_END,
};

/* Fills from the text of a spec. */
static tn_status fill(const tn_option *table, void *data, size_t size, const char *text,
                      tn__option_block **keep)
{
    tn__spec *spec = tn__spec_parse(text);
    char what[64];

    if (!spec) {
        *keep = NULL;
        return tn_error_last_code();
    }
    memset(data, 0, size);
    tn_snprint(what, sizeof what, "layer %s", spec->type);
    tn_status status = tn__options_fill(table, data, what, spec->text, spec->values, spec->names,
                                        spec->columns, spec->count, keep);
    tn__spec_free(spec); /* what was stored is the struct's own */
    return status;
}

static void refused(const tn_option *table, const char *text, tn_status code, const char *words)
{
    struct all data, zero;
    tn__option_block *keep = (tn__option_block *)&data;

    memset(&zero, 0, sizeof zero);
    memset(&data, 0, sizeof data);
    tn_error_clear();
    tn_status status = fill(table, &data, sizeof data, text, &keep);
    ck_assert_msg(status == code, "%s: %s: %s", text, tn_status_name(status), tn_error_text());
    expect_failure(code, words);
    ck_assert_ptr_null(keep);
    ck_assert_mem_eq(&data, &zero, sizeof data);
}

static const char *printed(const tn_option *table, const void *data, bool complete)
{
    static char out[2048];
    tn__text text = { 0 };

    tn__options_print(table, data, complete, &text);
    tn__text_give(&text, out, sizeof out);
    return out;
}

START_TEST(positional_and_named_arguments_fill_the_struct)
{
    struct linear data;
    tn__option_block *keep;

    ck_assert_int_eq(fill(linear_options, &data, sizeof data, "Linear(4, 3)", &keep), TN_OK);
    ck_assert(data.in_features == 4 && data.out_features == 3 && data.bias);
    ck_assert_str_eq(printed(linear_options, &data, false),
                     "in_features=4, out_features=3, bias=True");
    ck_assert_str_eq(printed(linear_options, &data, true),
                     "in_features=4, out_features=3, bias=True");
    tn__options_release(keep);
    ck_assert_int_eq(fill(linear_options, &data, sizeof data,
                          "Linear(out_features=5, bias=False, in_features=6)", &keep),
                     TN_OK);
    ck_assert(data.in_features == 6 && data.out_features == 5 && !data.bias);
    tn__options_release(keep);
    tn__options_release(NULL);
}
END_TEST

START_TEST(a_wrong_argument_is_refused_with_column_accepted_names_and_nearest_match)
{
    refused(linear_options, "Linear(in_featurs=4)", TN_ERR_KEY,
            "Linear(in_featurs=4): column 8: no option \"in_featurs\"; did you mean "
            "\"in_features\"? accepted: in_features, "
            "out_features, bias");
    refused(linear_options, "Linear(4, 3, momentum=1)", TN_ERR_KEY,
            "column 14: no option \"momentum\"; accepted: in_features");
    refused(linear_options, "Linear(4, 3, True, 5)", TN_ERR_VALUE,
            "column 20: too many positional arguments; expected at most 3; accepted: in_features");
    refused(linear_options, "Linear(4)", TN_ERR_VALUE,
            "Linear(4): option \"out_features\": missing (size of each output sample); accepted: "
            "in_features");
    refused(linear_options, "Linear(4, 3, in_features=5)", TN_ERR_VALUE,
            "column 14: option \"in_features\": given twice");
    refused(linear_options, "Linear(4, 3, bias=1)", TN_ERR_TYPE,
            "column 14: option \"bias\": wrong type, got 1 (int); expected True or False");
    refused(linear_options, "Linear(4.0, 3)", TN_ERR_TYPE,
            "column 8: option \"in_features\": wrong type, got 4.0 (float); expected an integer");
    refused(linear_options, "Linear(None, 3)", TN_ERR_TYPE,
            "wrong type, got None (None); expected an integer");
    refused(linear_options, "Linear('%s%n', 3)", TN_ERR_TYPE, "got '%s%n' (string)");
    refused(linear_options, "Linear(4, True)", TN_ERR_TYPE,
            "wrong type, got True (bool); expected an integer");
    refused(linear_options, "Linear(\n  4,\n  3,\n  bais=True)", TN_ERR_KEY,
            "bais=True): line 4, column 3: no option \"bais\"; did you mean \"bias\"?");
}
END_TEST

START_TEST(every_kind_of_option_is_stored)
{
    struct all data;
    tn__option_block *keep;

    ck_assert_int_eq(fill(all_options, &data, sizeof data, "f()", &keep), TN_OK);
    ck_assert(!data.flag && data.number == INT64_MIN && data.real == 1e-3 &&
              strcmp(data.mode, "mean") == 0);
    ck_assert(data.size.count == 2 && data.size.at[1] == 1 && data.betas.count == 2 &&
              data.betas.at[0] == 0.9);
    ck_assert(data.dtype == TN_F32 && data.any.kind == TN_VALUE_NONE && data.more.count == 0);
    tn__options_release(keep);

    ck_assert_int_eq(
        fill(
            all_options, &data, sizeof data,
            "f(True, 7, 2, 'sum', size=5, betas=[1, 0.5], dtype=torch.float32, any=[1, (a, g(2))], "
            "x=[1, 'y'], z=ReLU())",
            &keep),
        TN_OK);
    ck_assert(data.flag && data.number == 7 && data.real == 2.0 && strcmp(data.mode, "sum") == 0);
    ck_assert(data.size.count == 1 && data.size.at[0] == 5 && data.betas.at[0] == 1.0 &&
              data.betas.at[1] == 0.5);
    ck_assert(data.any.kind == TN_VALUE_LIST && data.any.count == 2 &&
              data.any.as.list[1].kind == TN_VALUE_TUPLE);
    ck_assert_str_eq(data.any.as.list[1].as.list[1].as.s, "g(2)");
    ck_assert_int_eq(data.more.count, 2);
    ck_assert_str_eq(data.more.names[0], "x");
    ck_assert_str_eq(data.more.at[0].as.list[1].as.s, "y");
    ck_assert_uint_eq(data.more.at[1].kind, TN_VALUE_SPEC);
    ck_assert_str_eq(
        printed(all_options, &data, true),
        "flag=True, number=7, real=2.0, mode='sum', size=(5,), betas=(1.0, 0.5), dtype=float32, "
        "any=[1, ('a', "
        "g(2))], x=[1, 'y'], z=ReLU()");
    ck_assert_str_eq(
        printed(all_options, &data, false),
        "True, 7, 2.0, 'sum', size=(5,), betas=(1.0, 0.5), dtype=float32, any=[1, ('a', g(2))], "
        "x=[1, 'y']");
    tn__options_release(keep);
}
END_TEST

START_TEST(numbers_keep_their_kind_and_their_bits)
{
    static const char *const texts[] = {
        "a=9007199254740993, b=-9223372036854775808, c=9223372036854775807, d=0, e=-1",
        "a=-0.0, b=0.1, c=5e-324, d=1.7976931348623157e+308, e=nan",
        "a=inf, b=-inf, c=False, d=True, e=None",
        "a=9223372036854775807, b=9223372036854775808, c=18446744073709551615, d=0, e=None",
        "a=2.0j, b=-0.0+2.0j, c=0.1-0.0j, d=nan+nanj, e=-inf-infj",
        "a=0.0+infj, b=1e-05-5e-324j, c=0.0j, d=-0.0-0.0j, e=0.0+nanj"
    };
    struct numbers data;
    tn__option_block *keep;
    char text[256];

    ck_assert_int_eq(fill(number_options, &data, sizeof data, "f()", &keep), TN_OK);
    ck_assert(data.a.kind == TN_SCALAR_INT && data.a.as.i == 2);
    ck_assert(data.b.kind == TN_SCALAR_FLOAT && data.b.as.f == 2.0);
    ck_assert(data.c.kind == TN_SCALAR_BOOL && data.c.as.i == 1);
    ck_assert(data.d.kind == TN_SCALAR_COMPLEX && data.d.as.c[0] == 1 && data.d.as.c[1] == 2);
    ck_assert(data.e.kind == TN_SCALAR_NONE && data.e.reserved == 0);
    tn__options_release(keep);
    tn_snprint(text, sizeof text, "f(%s)", texts[3]);
    ck_assert_int_eq(fill(number_options, &data, sizeof data, text, &keep), TN_OK);
    ck_assert(data.b.kind == TN_SCALAR_UINT && data.b.as.u == (uint64_t)INT64_MAX + 1);
    ck_assert(data.c.kind == TN_SCALAR_UINT && data.c.as.u == UINT64_MAX);
    tn__options_release(keep);
    refused(all_options, "f(number=9223372036854775808)", TN_ERR_TYPE,
            "wrong type, got 9223372036854775808 (uint); expected an integer");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tn_snprint(text, sizeof text, "f(%s)", texts[i]);
        ck_assert_int_eq(fill(number_options, &data, sizeof data, text, &keep), TN_OK);
        ck_assert_str_eq(printed(number_options, &data, true), texts[i]);
        tn__options_release(keep);
    }
    ck_assert_int_eq(fill(number_options, &data, sizeof data, "f(a='2')", &keep), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "expected a number, True or False");
    ck_assert_int_eq(fill(number_options, &data, sizeof data, "f(a=None)", &keep), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "got None (None); expected a number, True or False");
    ck_assert_int_eq(fill(all_options, &(struct all){ 0 }, sizeof(struct all), "f(real=2j)", &keep),
                     TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "wrong type, got 2.0j (complex number); expected a number");
}
END_TEST

START_TEST(a_row_that_was_written_as_a_list_is_printed_as_one)
{
    static const tn_option table[] = { TN_OPTION_ROW(tn_ints_given, row, "1", "a size",
                                                     TN_OPTION_KIND_INTS,
                                                     OPTIONAL | TN_OPTION_LISTS),
                                       TN_OPTION_END };
    static const char *const rows[][2] = { { "F([2, 3])", "[2, 3]" }, { "F((2, 3))", "(2, 3)" },
                                           { "F([4])", "[4]" },       { "F(4)", "(4,)" },
                                           { "F()", "(1,)" },         { "F(None)", "None" } };

    for (int64_t i = 0; i < tn__countof(rows); i++) {
        tn_ints_given data;
        tn__option_block *keep;

        ck_assert_int_eq(fill(table, &data, sizeof data, rows[i][0], &keep), TN_OK);
        ck_assert_int_eq(data.list, rows[i][1][0] == '[');
        ck_assert_str_eq(printed(table, &data, true) + strlen("row="), rows[i][1]);
        tn__options_release(keep);
    }
}
END_TEST

START_TEST(none_is_stored_where_the_option_allows_it)
{
    struct all data;
    tn__option_block *keep;

    ck_assert_int_eq(fill(all_options, &data, sizeof data,
                          "f(number=None, real=None, mode=None, size=None, betas=None, dtype=None)",
                          &keep),
                     TN_OK);
    ck_assert(data.number == INT64_MIN && isnan(data.real) && !data.mode && data.size.count == -1);
    ck_assert(data.betas.count == -1 && data.dtype == TN_DTYPE_AUTO);
    ck_assert_str_eq(
        printed(all_options, &data, true),
        "flag=False, number=None, real=None, mode=None, size=None, betas=None, dtype=None, "
        "any=None");
    tn__options_release(keep);
    refused(all_options, "f(flag=None)", TN_ERR_TYPE,
            "wrong type, got None (None); expected True or False");
    refused(all_options, "f(size=(1, 2.5))", TN_ERR_TYPE,
            "wrong type, got (1, 2.5) (tuple); expected an integer or a list of integers or None");
    refused(all_options, "f(betas=(1, x))", TN_ERR_TYPE, "expected a number or a list of numbers");
    refused(all_options, "f(dtype=float33)", TN_ERR_VALUE,
            "f(dtype=float33): column 3: option \"dtype\": ");
    refused(all_options, "f(mode=3)", TN_ERR_TYPE,
            "wrong type, got 3 (int); expected a string or None");
}
END_TEST

START_TEST(further_positional_arguments_come_behind_the_positions)
{
    struct all data;
    tn__option_block *keep;

    ck_assert_int_eq(
        fill(all_options, &data, sizeof data, "f(True, 1, 2.0, 'm', 8, A(1), size=1, n=9)", &keep),
        TN_OK);
    ck_assert_int_eq(data.more.count, 3);
    ck_assert_ptr_null(data.more.names[0]);
    ck_assert(data.more.at[0].as.i == 8 && data.more.at[2].as.i == 9);
    /* A text that was printed in full gives the same values when it is read. */
    char first[2048], text[2100];
    tn_snprint(first, sizeof first, "%s", printed(all_options, &data, true));
    ck_assert_str_eq(
        first,
        "True, 1, 2.0, 'm', 8, A(1), size=(1,), betas=(0.9, 0.999), dtype=float32, any=None, n=9");
    tn__options_release(keep);
    tn_snprint(text, sizeof text, "f(%s)", first);
    ck_assert_int_eq(fill(all_options, &data, sizeof data, text, &keep), TN_OK);
    ck_assert_str_eq(printed(all_options, &data, true), first);
    tn__options_release(keep);
}
END_TEST

START_TEST(keyword_only_options_take_no_position)
{
    static const tn_option table[] = {
        TN_OPTION_INT(struct linear, in_features, "1", ""),
        TN_OPTION_ROW(struct linear, bias, "True", "", TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
        TN_OPTION_INT(struct linear, out_features, "2", ""),
        TN_OPTION_END,
    };
    struct linear data;
    tn__option_block *keep;

    ck_assert_int_eq(fill(table, &data, sizeof data, "f(5, 6)", &keep), TN_OK);
    ck_assert(data.in_features == 5 && data.out_features == 6 && data.bias);
    ck_assert_str_eq(printed(table, &data, false), "5, 6, bias=True");
    tn__options_release(keep);
    refused(table, "f(5, 6, True)", TN_ERR_VALUE,
            "too many positional arguments; expected at most 2");
    refused(NULL, "f(5)", TN_ERR_VALUE,
            "too many positional arguments; expected at most 0; layer f has no options");
    ck_assert_int_eq(fill(NULL, &data, sizeof data, "f()", &keep), TN_OK);
    tn__options_release(keep);
}
END_TEST

START_TEST(a_wrong_table_of_a_provider_is_named)
{
    static const tn_option bad_default[] = { TN_OPTION_INT(struct linear, in_features, "1.5", ""),
                                             TN_OPTION_END };
    static const tn_option bad_kind[] = { TN_OPTION_ROW(struct linear, in_features, "1", "", 99, 0),
                                          TN_OPTION_END };

    refused(bad_default, "f()", TN_ERR_TYPE, "layer f: default of \"in_features\": ");
    refused(bad_kind, "f()", TN_ERR_TYPE, "unknown kind, got 99");
}
END_TEST

START_TEST(typed_values_fill_as_texts_do)
{
    struct all data;
    tn__option_block *keep;
    char word[] = "sum";
    tn_value list[] = { tn_value_int(3), tn_value_int(4) };
    tn_value row = { .kind = TN_VALUE_LIST, .count = 2, .as.list = list };
    tn_value values[] = { tn_value_bool(true), tn_value_string(word), row };
    static const char *const names[] = { NULL, "mode", "size" };

    memset(&data, 0, sizeof data);
    ck_assert_int_eq(
        tn__options_fill(all_options, &data, "layer f", NULL, values, names, NULL, 3, &keep),
        TN_OK);
    memset(word, 'x', 3);
    list[0].as.i = 0;
    ck_assert(data.flag && strcmp(data.mode, "sum") == 0 && data.size.at[0] == 3);
    tn__options_release(keep);
    values[0] = tn_value_int(1);
    tn_error_clear();
    memset(&data, 0, sizeof data);
    ck_assert_int_eq(
        tn__options_fill(all_options, &data, "layer f", NULL, values, NULL, NULL, 3, &keep),
        TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "layer f: option \"flag\": wrong type");
    values[0] = (tn_value){ .kind = 77 };
    static const char *const any[] = { "any" };
    ck_assert_int_eq(
        tn__options_fill(all_options, &data, "layer f", NULL, values, any, NULL, 1, &keep),
        TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "kind, got 77");
}
END_TEST

START_TEST(every_allocation_of_filling_may_fail)
{
    static const char text[] =
        "f(True, 7, 2, 'sum', size=(5, 6), betas=[1, 0.5], any=[1, (a, g(2))], x=[1, 'y'], z=R())";
    struct all data;
    uint64_t nth = 0;
    bool done = false;

    tn__spec *spec = tn__spec_parse(text);
    while (!done) {
        tn__option_block *keep = (tn__option_block *)&data;
        memset(&data, 0, sizeof data);
        tn_error_clear();
        tn__memory_fail(++nth);
        done = tn__options_fill(all_options, &data, "layer f", spec->text, spec->values,
                                spec->names, spec->columns, spec->count, &keep) == TN_OK;
        tn__memory_fail(0);
        if (!done) {
            expect_failure(TN_ERR_MEMORY, "out of host memory");
            ck_assert_ptr_null(keep);
            ck_assert_ptr_null(data.mode);
        }
        tn__options_release(keep);
        ck_assert_uint_lt(nth, 1000);
    }
    ck_assert_uint_gt(nth, 5);
    tn__spec_free(spec);
}
END_TEST

/* ---- packs ----------------------------------------------------------------------------------- */

START_TEST(a_pack_owns_copies_of_what_is_in_it)
{
    char word[] = "word", name[] = "name";
    tn_value inner[] = { tn_value_string(word), tn_value_int(2) };
    tn_value list = { .kind = TN_VALUE_LIST, .count = 2, .as.list = inner };
    tn_pack *pack = tn_pack_new();

    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_float(0.5)), TN_OK);
    ck_assert_int_eq(tn_pack_add(pack, NULL, list), TN_OK);
    ck_assert_int_eq(tn_pack_add(pack, name, tn_value_string(word)), TN_OK);
    memset(word, 'x', 4);
    memset(name, 'x', 4);
    inner[1].as.i = 0;
    ck_assert_int_eq(tn_pack_count(pack), 3);
    ck_assert_int_eq(tn_pack_positional(pack), 2);
    ck_assert_double_eq(tn_pack_at(pack, 0).as.f, 0.5);
    ck_assert_str_eq(tn_pack_at(pack, 1).as.list[0].as.s, "word");
    ck_assert_int_eq(tn_pack_at(pack, 1).as.list[1].as.i, 2);
    ck_assert_str_eq(tn_pack_at(pack, 2).as.s, "word");
    ck_assert_str_eq(tn_pack_name(pack, 2), "name");
    ck_assert_ptr_null(tn_pack_name(pack, 0));
    ck_assert_int_eq(tn_pack_find(pack, "name"), 2);
    ck_assert_int_eq(tn_pack_find(pack, "none"), -1);
    ck_assert_int_eq(tn_pack_set(pack, 1, tn_value_string("other")), TN_OK);
    ck_assert_str_eq(tn_pack_at(pack, 1).as.s, "other");
    for (int i = 0; i < 20; i++) {
        char number[8];
        tn_snprint(number, sizeof number, "n%d", i);
        ck_assert_int_eq(tn_pack_add(pack, number, tn_value_int(i)), TN_OK);
    }
    ck_assert_int_eq(tn_pack_at(pack, tn_pack_find(pack, "n17")).as.i, 17);
    tn_pack_drop(pack);
    tn_pack_drop(NULL);
}
END_TEST

START_TEST(a_dictionary_is_copied_and_searched)
{
    tn_tensor *x = tn_ones(TN_SHAPE(2));
    tn_value inner[] = { tn_value_string("deep"), tn_value_tensor(x) };
    tn_value entries[] = { tn_value_string("a"),    tn_value_int(1),      tn_value_int(3),
                           tn_value_dict(inner, 2), tn_value_string("a"), tn_value_int(2) };
    tn_value wrong[] = { tn_value_tensor(x), tn_value_int(1) }, got;
    tn_pack *pack = tn_pack_new();

    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_dict(entries, 6)), TN_OK);
    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_dict(NULL, 0)), TN_OK);
    memset(entries, 0, sizeof entries);
    got = tn_pack_at(pack, 0);
    ck_assert_uint_eq(got.count, 6);
    ck_assert_int_eq(tn_value_get(&got, "a")->as.i, 2); /* the last one */
    ck_assert_ptr_null(tn_value_get(&got, "b"));
    ck_assert(!tn_failed());
    ck_assert_ptr_eq(tn_value_get(&got.as.list[3], "deep")->as.tensor, x);
    got = tn_pack_at(pack, 1);
    ck_assert_ptr_null(tn_value_get(&got, "a"));
    ck_assert(!tn_failed());

    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_dict(inner, 1)), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "dict of 1 values: odd count");
    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_dict(NULL, 2)), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "dict: as.list: it is NULL; expected 2 values");
    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_dict(wrong, 2)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "dict: key 0: wrong kind, got tensor");
    got = tn_value_list(inner, 2);
    ck_assert_ptr_null(tn_value_get(&got, "a"));
    expect_failure(TN_ERR_TYPE, "tn_value_get: dict: wrong kind, got list");
    ck_assert_int_eq(tn_pack_count(pack), 2);
    tn_pack_drop(pack);
    tn_tensor_drop(x);
}
END_TEST

START_TEST(a_pack_refuses_with_words)
{
    tn_pack *pack = tn_pack_new();
    tn_value deep[80];

    tn_error_clear();
    ck_assert_int_eq(tn_pack_add(pack, "a", tn_value_int(1)), TN_OK);
    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_int(1)), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "after the named value \"a\"");
    ck_assert_int_eq(tn_pack_add(pack, "a", tn_value_int(1)), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "in the pack already, got \"a\"");
    ck_assert_int_eq(tn_pack_add(pack, "", tn_value_int(1)), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "empty");
    ck_assert_int_eq(tn_pack_add(pack, "b", (tn_value){ .kind = 15 }), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "kind, got 15");
    ck_assert_int_eq(tn_pack_add(pack, "b", tn_value_string(NULL)), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "string: as.s: it is NULL");
    ck_assert_int_eq(tn_pack_add(pack, "b", tn_value_tensor(NULL)), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "tensor among the values: it is NULL");
    deep[0] = tn_value_int(1);
    for (int i = 1; i < 80; i++)
        deep[i] = (tn_value){ .kind = TN_VALUE_TUPLE, .count = 1, .as.list = &deep[i - 1] };
    ck_assert_int_eq(tn_pack_add(pack, "b", deep[79]), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "at most 64 levels");
    ck_assert_int_eq(tn_pack_at(pack, 5).kind, TN_VALUE_NONE);
    expect_failure(TN_ERR_INDEX, "pack: index: out of range, got 5; expected 0 to 0");
    ck_assert_int_eq(tn_pack_set(pack, -1, tn_value_int(1)), TN_ERR_INDEX);
    expect_failure(TN_ERR_INDEX, "out of range, got -1");
    ck_assert_ptr_null(tn_pack_tensor(pack, 0));
    expect_failure(TN_ERR_TYPE, "wrong kind, got int");
    ck_assert_int_eq(tn_pack_count(pack), 1);
    tn_pack_drop(pack);
}
END_TEST

START_TEST(a_pack_without_memory_stays_as_it_was)
{
    tn_error_clear();
    for (uint64_t nth = 1;; nth++) {
        tn__memory_fail(nth);
        tn_pack *pack = tn_pack_new();
        int64_t added = 0;
        for (int i = 0; pack && i < 6; i++) {
            char name[8];
            tn_snprint(name, sizeof name, "n%d", i);
            if (tn_pack_add(pack, name, tn_value_string("text")) != TN_OK)
                break;
            added++;
        }
        tn__memory_fail(0);
        if (pack != NULL)
            ck_assert_int_eq(tn_pack_count(pack), added);
        tn_pack_drop(pack);
        if (added == 6)
            break;
        expect_failure(TN_ERR_MEMORY, "out of host memory");
        ck_assert_uint_lt(nth, 100);
    }
    ck_assert(!tn_failed());
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        positional_and_named_arguments_fill_the_struct,
        a_wrong_argument_is_refused_with_column_accepted_names_and_nearest_match,
        every_kind_of_option_is_stored,
        numbers_keep_their_kind_and_their_bits,
        a_row_that_was_written_as_a_list_is_printed_as_one,
        none_is_stored_where_the_option_allows_it,
        further_positional_arguments_come_behind_the_positions,
        keyword_only_options_take_no_position,
        a_wrong_table_of_a_provider_is_named,
        typed_values_fill_as_texts_do,
        every_allocation_of_filling_may_fail,
        a_pack_owns_copies_of_what_is_in_it,
        a_dictionary_is_copied_and_searched,
        a_pack_refuses_with_words,
        a_pack_without_memory_stays_as_it_was,
        NULL,
    };

    return suite_run("options", tests);
}
