/* SPDX-License-Identifier: MIT
 *
 * Tables as spreadsheets write them: CSV, Table and the transform Columns. */
#include "tests/base/suite.h"

#include <math.h>
#include <unistd.h>

static char path[64];

/* Writes the text to a new file, and opens a dataset of it. */
static tn_dataset *of_text(const char *format, const char *text)
{
    int file;

    snprintf(path, sizeof path, "/tmp/tenon-table-XXXXXX");
    file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(close(file), 0);
    return tn_dataset_new(format, path);
}

static tn_dataset *opened(const char *format, const char *text)
{
    tn_dataset *dataset = of_text(format, text);

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    unlink(path);
    return dataset;
}

static tn_pack *sample_of(tn_dataset *dataset, int64_t index)
{
    tn_pack *pack = tn_pack_new();

    ck_assert_msg(tn_dataset_get(dataset, index, 0, 0, pack) == TN_OK, "%s", tn_error_text());
    return pack;
}

/* Sample `index` must have these numbers and, unless it is negative, this class. */
static void has(tn_dataset *dataset, int64_t index, int count, const float *values, int64_t class)
{
    TN_SCOPE;
    tn_pack *pack = sample_of(dataset, index);
    tn_tensor *x = tn_pack_tensor(pack, 0);

    ck_assert_int_eq(tn_tensor_dtype(x), TN_F32);
    ck_assert_int_eq(tn_tensor_numel(x), count);
    for (int i = 0; i < count; i++)
        ck_assert_msg(((const float *)tn_tensor_data(x))[i] == values[i],
                      "sample %lld, value %d: %.9g is not %.9g", (long long)index, i,
                      (double)((const float *)tn_tensor_data(x))[i], (double)values[i]);
    if (class >= 0)
        ck_assert_int_eq(tn_pack_at(pack, 1).as.i, class);
    tn_pack_drop(pack);
}

static void classes_are(const tn_dataset *dataset, int count, const char *const *names)
{
    ck_assert_int_eq(tn_dataset_classes(dataset), count);
    for (int i = 0; i < count; i++)
        ck_assert_str_eq(tn_dataset_class_name(dataset, i), names[i]);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

START_TEST(csv_reads_what_spreadsheets_write)
{
    static const char text[] = "\xEF\xBB\xBF\"a, b\",kind,\"c\"\r\n\"1\",cat,\"2.5\"\r\n\r\n"
                               " -3 ,\"big \"\"dog\"\"\nold\",4\r\n,,\r\n";
    tn_dataset *dataset = opened("CSV(%q, label='kind')", text);

    ck_assert_int_eq(tn_dataset_count(dataset), 2);
    classes_are(dataset, 2, (const char *const[]){ "big \"dog\"\nold", "cat" });
    has(dataset, 0, 2, (float[]){ 1, 2.5f }, 1);
    has(dataset, 1, 2, (float[]){ -3, 4 }, 0);
    tn_dataset_drop(dataset);
    /* a quote inside a field is a character, and the last record has no end of line */
    dataset = opened("CSV(%q, separator='\t')", "1\t5\" pipe\n2\tit's");
    classes_are(dataset, 2, (const char *const[]){ "5\" pipe", "it's" });
    tn_dataset_drop(dataset);
    dataset = opened("CSV(%q, label=None)", "\xEF\xBB\xBF"
                                            "1,2\n");
    has(dataset, 0, 2, (float[]){ 1, 2 }, -1);
    tn_dataset_drop(dataset);
    /* lines that end with CR alone */
    dataset = opened("CSV(%q)", "a,b,c\r1,2 ,\"x\"\r\r\"3\",4,y");
    ck_assert_int_eq(tn_dataset_count(dataset), 2);
    classes_are(dataset, 2, (const char *const[]){ "x", "y" });
    has(dataset, 0, 2, (float[]){ 1, 2 }, 0);
    has(dataset, 1, 2, (float[]){ 3, 4 }, 1);
    tn_dataset_drop(dataset);
}
END_TEST

START_TEST(the_first_line_has_names_if_none_is_a_number)
{
    tn_dataset *dataset = opened("CSV(%q)", "x,y,z\n1,2,0\n");

    ck_assert_int_eq(tn_dataset_count(dataset), 1);
    tn_dataset_drop(dataset);
    dataset = opened("CSV(%q)", "1,2,z\n3,4,w\n");
    ck_assert_int_eq(tn_dataset_count(dataset), 2);
    tn_dataset_drop(dataset);
    dataset = opened("CSV(%q, header=True)", "1,2,3\n4,5,0\n");
    ck_assert_int_eq(tn_dataset_count(dataset), 1);
    tn_dataset_drop(dataset);
    dataset = opened("CSVRows(%q)", "x,y\n1,2\n");
    has(dataset, 0, 2, (float[]){ 1, 2 }, -1);
    tn_dataset_drop(dataset);
    dataset = opened("CSVRows(%q, header=False, missing=7)", "1,NA\n");
    has(dataset, 0, 2, (float[]){ 1, 7 }, -1);
    tn_dataset_drop(dataset);
    /* the numbers are those of CSV, to the last bit */
    dataset = opened("CSVRows(%q, header=False, missing=0.1234567, scale=0.00392156862745098)",
                     "3,NA\n");
    has(dataset, 0, 2,
        (float[]){ (float)(3 * 0.00392156862745098), (float)(0.1234567 * 0.00392156862745098) },
        -1);
    tn_dataset_drop(dataset);
}
END_TEST

START_TEST(missing_values_get_a_number)
{
    tn_dataset *dataset = opened("CSV(%q, label=None, missing=-1, scale=2)",
                                 "1,,3\nNA,nan,?\n#N/A,null,4\n");

    has(dataset, 0, 3, (float[]){ 2, -2, 6 }, -1);
    has(dataset, 1, 3, (float[]){ -2, -2, -2 }, -1);
    has(dataset, 2, 3, (float[]){ -2, -2, 8 }, -1);
    tn_dataset_drop(dataset);
}
END_TEST

START_TEST(labels_that_do_not_begin_at_0_are_names)
{
    tn_dataset *dataset = opened("CSV(%q)", "1,10\n2,9\n3,10\n");

    classes_are(dataset, 2, (const char *const[]){ "9", "10" });
    has(dataset, 0, 1, (float[]){ 1 }, 1);
    has(dataset, 1, 1, (float[]){ 2 }, 0);
    tn_dataset_drop(dataset);
    dataset = opened("CSV(%q)", "1,2\n2,1\n"); /* from 1 on */
    classes_are(dataset, 2, (const char *const[]){ "1", "2" });
    has(dataset, 0, 1, (float[]){ 1 }, 1);
    tn_dataset_drop(dataset);
    dataset = opened("CSV(%q)", "1,0\n2,3\n"); /* from 0 on they are the classes */
    ck_assert_int_eq(tn_dataset_classes(dataset), 4);
    ck_assert_ptr_null(tn_dataset_class_name(dataset, 0));
    has(dataset, 1, 1, (float[]){ 2 }, 3);
    tn_dataset_drop(dataset);
    dataset = opened("CSV(%q, classes=['b', 'a', 'c'])", "1,a\n2,b\n");
    classes_are(dataset, 3, (const char *const[]){ "b", "a", "c" });
    has(dataset, 0, 1, (float[]){ 1 }, 1);
    tn_dataset_drop(dataset);
}
END_TEST

START_TEST(wrong_tables_are_refused)
{
    static const struct {
        const char *text, *spec, *words;
    } wrong[] = {
        { "1;2\n3;4\n", "CSV(%q)",
          "no columns besides the label; expected numbers in some, or another "
          "separator" },
        { "1;2\n3;4\n", "CSV(%q, label=None)", "got \"3;4\"; expected a number, or separator=';'" },
        { "1,2\nred,3\n", "CSV(%q)",
          "got \"red\"; expected a number; the dataset Table reads texts" },
        { "1,2\n,3\n", "CSV(%q)", "line 2, column 0: missing value" },
        { "\"a\nb\",2\n1,1\nx,1\n", "CSV(%q)", "line 4, column 0" },
        { "1,\n", "CSV(%q)", "label: missing" },
        { "1,2\n", "CSV(%q, label='x', header=False)", "columns have no names, got \"x\"" },
        { "a,b\n1,2\n", "CSV(%q, label='x')",
          "no column \"x\"; expected a column of the file: a, b" },
        { "1,2\n", "CSV(%q, label=1.5)", "label: wrong type, got float" },
        { "1,2\n", "CSV(%q, header=3)", "header: wrong type, got int" },
        { "1,a\n", "CSV(%q, classes=['b'])", "label: \"a\" is none of the option classes" },
        { "1,a\n", "CSV(%q, classes=[1])", "classes: entry 0: wrong type" },
        { "1,a\n", "CSV(%q, classes='a')", "classes: wrong type" },
        { "1,\xE4\n", "CSV(%q)", "label: not UTF-8, got the byte 228" },
        { "1,nan\n", "CSV(%q, label=None)", "column 1: missing value, got \"nan\"" },
        { "1,inf\n", "CSV(%q, label=None)", "got \"inf\"; expected a number, finite as float32" },
        { "1,-2e38\n", "CSV(%q, label=None, scale=2)", "expected a number, finite as float32" },
        { "1,1e39\n", "CSV(%q, target='number')",
          "label: wrong value, got \"1e39\"; expected a "
          "number that float32 can hold" },
        { "1,\"2\n3,4\n", "CSV(%q)", "line 1, column 1: a quote that does not end" },
        { "1,\"2\"3\n", "CSV(%q)", "column 1: text after a field in quotes" },
        { "\xFF\xFE"
          "1,2",
          "CSV(%q)", "text in UTF-16; expected UTF-8" },
        { "a,a\n1,2\n", "Table(%q)", "two columns have the name \"a\"" },
        { "\xFF\xFE"
          "1,2",
          "TableRows(%q)", "text in UTF-16; expected UTF-8" },
        { "a\n1\n", "Table(%q, label='a')", "no columns are left" },
        { "a;b\n1;2\n", "Table(%q, label=-1)", "or the option separator, such as separator=';'" },
        { "a,b\n1,2\n", "Table(%q, without=['c'])", "without: " },
        { "a,b\n1,2\n", "Table(%q, columns='a')", "columns: wrong type, got str" },
        { "a,b\n", "Table(%q)", "no samples" },
        { "a,b\n1,\xC0\xAF\n", "Table(%q)", "line 2: b: not UTF-8" },
        { "a,b\n1,\xED\xA0\x80\n", "Table(%q)", "line 2: b: not UTF-8" },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(of_text(wrong[i].spec, wrong[i].text) == NULL, "%d is opened", (int)i);
        unlink(path);
        ck_assert_msg(strstr(tn_error_text(), wrong[i].words) != NULL, "\"%s\" is not in \"%s\"",
                      wrong[i].words, tn_error_text());
        tn_error_clear();
    }
}
END_TEST

/* ---- Table and Columns ----------------------------------------------------------------------- */

static const char pets[] = "name,age,zip,kind\nRex,7,00123,dog\n\"\",NA,10,cat\n12,0.5,x,dog\n";

START_TEST(rows_have_numbers_texts_and_none)
{
    tn_dataset *dataset = opened("Table(%q, label='kind', texts=['zip'])", pets);
    tn_pack *pack = sample_of(dataset, 0);
    tn_value row = tn_pack_at(pack, 0);

    classes_are(dataset, 2, (const char *const[]){ "cat", "dog" });
    ck_assert_int_eq(row.kind, TN_VALUE_DICT);
    ck_assert_int_eq(tn_value_size(&row), 3);
    ck_assert_str_eq(tn_value_get(&row, "name")->as.s, "Rex");
    ck_assert(tn_value_get(&row, "age")->as.f == 7);
    ck_assert_str_eq(tn_value_get(&row, "zip")->as.s, "00123");
    ck_assert_int_eq(tn_pack_at(pack, 1).as.i, 1);
    tn_pack_drop(pack);
    pack = sample_of(dataset, 1);
    row = tn_pack_at(pack, 0);
    ck_assert_int_eq(tn_value_get(&row, "name")->kind, TN_VALUE_NONE);
    ck_assert_int_eq(tn_value_get(&row, "age")->kind, TN_VALUE_NONE);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    dataset = opened("Table(%q, label=1, target='number', columns=['0', 3], without=[0], "
                     "header=False)",
                     "a,1,2,3\nb,4,5,6\n");
    pack = sample_of(dataset, 1);
    row = tn_pack_at(pack, 0);
    ck_assert_int_eq(tn_value_size(&row), 1);
    ck_assert(tn_value_get(&row, "3")->as.f == 6);
    ck_assert(*(const float *)tn_tensor_data(tn_pack_tensor(pack, 1)) == 4);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
}
END_TEST

START_TEST(columns_are_numbers_in_the_order_of_the_option)
{
    static const char spec[] = "Columns({'zip': ['00123', '10'], 'age': (5, 2), 'name': ['12', "
                               "'Rex']})";
    tn_dataset *plain = opened("Table(%q, label='kind')", pets);
    tn_dataset *dataset = tn_dataset_transform(plain, spec);

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    has(dataset, 0, 5, (float[]){ 1, 0, 1, 0, 1 }, 1);
    has(dataset, 1, 5, (float[]){ 0, 1, 0, 0, 0 }, 0);
    has(dataset, 2, 5, (float[]){ 0, 0, -2.25f, 1, 0 }, 1);
    tn_dataset_drop(dataset);
    tn_dataset_drop(plain);
    plain = opened("TableRows([%q])", "zip,age,name,more\n10,5,Rex,1\n");
    dataset = tn_dataset_transform(plain, spec);
    has(dataset, 0, 5, (float[]){ 0, 1, 0, 0, 1 }, -1);
    tn_dataset_drop(dataset);
    tn_dataset_drop(plain);
}
END_TEST

START_TEST(wrong_columns_are_refused)
{
    static const struct {
        const char *spec, *words;
    } wrong[] = {
        { "Columns({})", "columns: wrong value, got {}" },
        { "Columns([1])", "columns: wrong value, got list" },
        { "Columns({'a': (1, 0)})", "column \"a\": wrong numbers" },
        { "Columns({'a': (1, inf)})", "column \"a\": wrong numbers" },
        { "Columns({'a': (1, 2, 3)})", "column \"a\": wrong numbers" },
        { "Columns({'a': [1]})", "column \"a\": text 0: wrong type" },
        { "Columns({'a': 'b'})", "column \"a\": wrong type, got str" },
        { "Columns({1: (1, 2)})", "a name is int" },
        { "Columns({'b': (1, 2)})", "the row has no column \"b\"" },
        { "Columns({'a': (1, 2)})", "column \"a\": wrong value, got \"x\"" },
    };
    tn_dataset *plain = opened("Table(%q)", "a\nx\n"), *numbers = opened("CSV(%q)", "1,0\n");
    tn_pack *pack = tn_pack_new();

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_dataset *dataset = tn_dataset_transform(plain, wrong[i].spec);

        ck_assert_msg(dataset == NULL || tn_dataset_get(dataset, 0, 0, 0, pack) != TN_OK, "%s",
                      wrong[i].spec);
        ck_assert_msg(strstr(tn_error_text(), wrong[i].words) != NULL, "\"%s\" is not in \"%s\"",
                      wrong[i].words, tn_error_text());
        tn_error_clear();
        tn_dataset_drop(dataset);
    }
    tn_dataset_drop(plain);
    plain = tn_dataset_transform(numbers, "Columns({'a': (1, 2)})");
    ck_assert_int_eq(tn_dataset_get(plain, 0, 0, 0, pack), TN_ERR_TYPE);
    ck_assert_msg(strstr(tn_error_text(), "expected the row of a table") != NULL, "%s",
                  tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    tn_dataset_drop(plain);
    tn_dataset_drop(numbers);
}
END_TEST

/* Each column of a table, and each channel of another tensor, has its mean and deviation. */
START_TEST(numbers_of_any_shape_are_normalized)
{
    tn_dataset *plain = opened("CSV(%q, label=None)", "1,2\n5,8\n");
    tn_dataset *dataset = tn_dataset_transform(plain, "Normalize(mean=(3, 5), std=(2, 3))");

    has(dataset, 0, 2, (float[]){ -1, -1 }, -1);
    has(dataset, 1, 2, (float[]){ 1, 1 }, -1);
    tn_dataset_drop(dataset);
    tn_dataset_drop(plain);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        csv_reads_what_spreadsheets_write,
        the_first_line_has_names_if_none_is_a_number,
        missing_values_get_a_number,
        labels_that_do_not_begin_at_0_are_names,
        wrong_tables_are_refused,
        rows_have_numbers_texts_and_none,
        columns_are_numbers_in_the_order_of_the_option,
        wrong_columns_are_refused,
        numbers_of_any_shape_are_normalized,
        NULL,
    };
    return suite_run("tables", tests);
}
