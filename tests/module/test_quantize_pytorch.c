/* SPDX-License-Identifier: MIT
 *
 * Ranges, fake quantization, fusion and dynamic modules beside PyTorch: quantize.txt, which
 * make_quantize.py wrote. */
#include "tests/op/suite.h"

#include <tenon/quantize.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "tests/spec/proves.h"

enum { ENTRIES = 16, LINE = 1 << 16 };

/* A case of the file. */
typedef struct sample {
    char kind[32], text[160];
    char names[ENTRIES][32];
    tn_tensor *at[ENTRIES];
    int count;
} sample;

static tn_tensor *find(const sample *s, const char *name, int which)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->names[i], name) == 0 && which-- == 0)
            return s->at[i];
    return NULL;
}

static tn_tensor *get(const sample *s, const char *name)
{
    tn_tensor *found = find(s, name, 0);

    ck_assert_msg(found != NULL, "%s %s: no entry %s", s->kind, s->text, name);
    return found;
}

/* Reads `NAME SIZES : NUMBERS`. */
static void read_entry(sample *s, char *line)
{
    int64_t sizes[8], dims = 0, count = 1;
    char *word = strtok(line, " \n");
    float *numbers;

    ck_assert_int_lt(s->count, ENTRIES);
    snprintf(s->names[s->count], sizeof s->names[0], "%s", word);
    for (word = strtok(NULL, " \n"); strcmp(word, ":") != 0; word = strtok(NULL, " \n"))
        if (strcmp(word, "-") != 0)
            count *= sizes[dims++] = atoll(word);
    numbers = calloc((size_t)count + 1, sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = strtof(strtok(NULL, " \n"), NULL);
    s->at[s->count++] = tn_tensor_from(numbers, TN_F32, (tn_ints){ sizes, dims });
    free(numbers);
}

/* Calls `check` for all cases of a kind; returns their number. */
static int each_case(const char *kind, void (*check)(const sample *s))
{
    char path[4096], *line = malloc(LINE);
    static sample s;
    int cases = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/tests/module/quantize.txt", getenv("abs_srcdir"));
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    uint64_t scope = tn_scope_begin();
    for (bool more = true; more;) {
        more = fgets(line, LINE, file) != NULL;
        if (more && line[0] == '#')
            continue;
        if (!more || strncmp(line, "case ", 5) == 0) {
            if (s.count > 0 && strcmp(s.kind, kind) == 0) {
                check(&s);
                cases++;
            }
            tn_scope_end(scope);
            scope = tn_scope_begin();
            memset(&s, 0, sizeof s);
            if (more)
                ck_assert_int_ge(sscanf(line, "case %31s %159[^\n]", s.kind, s.text), 1);
            continue;
        }
        read_entry(&s, line);
    }
    tn_scope_end(scope);
    fclose(file);
    free(line);
    return cases;
}

static double largest_difference(tn_tensor *a, tn_tensor *b)
{
    ck_assert_msg(a != NULL && b != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(a), tn_tensor_numel(b));
    if (tn_tensor_numel(a) == 0)
        return 0;
    return tn_item(tn_amax(tn_abs(tn_sub(tn_reshape(tn_cast(a, TN_F64), TN_SHAPE(-1)),
                                         tn_reshape(tn_cast(b, TN_F64), TN_SHAPE(-1))))));
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void check_range(const sample *s)
{
    tn_module *range = parsed(s->text);
    const bool symmetric = find(s, "symmetric", 0) != NULL;
    const bool is_signed = tn_item(get(s, symmetric ? "symmetric" : "affine")) != 0;
    tn_tensor *x, *low, *high, *scale, *zero_point;

    for (int i = 0; (x = find(s, "x", i)) != NULL; i++)
        ck_assert_ptr_eq(tn_module_call(range, x), x);
    low = tn_module_get(range, "min_val");
    high = tn_module_get(range, "max_val");
    ck_assert_int_eq(tn_tensor_ndim(low), tn_tensor_ndim(get(s, "min_val")));
    ck_assert_float_lt(largest_difference(low, get(s, "min_val")), 1e-6);
    ck_assert_float_lt(largest_difference(high, get(s, "max_val")), 1e-6);
    tn_tensor *both = tn_stack(((tn_tensor *[]){ low, high }), 2, -1);
    ck_assert_int_eq(tn_choose_qparams(both, &scale, &zero_point, TN_INTS(-1), false, INT64_MIN,
                                       is_signed ? TN_I8 : TN_U8, symmetric),
                     TN_OK);
    ck_assert_float_lt(largest_difference(scale, get(s, "scale")), 1e-8);
    ck_assert_float_eq(largest_difference(zero_point, get(s, "zero_point")), 0);
    tn_module_drop(range);
}

START_TEST(ranges_and_scales_are_those_of_pytorch)
{
    ck_assert_int_eq(each_case("range", check_range), 13);
    TN_PROVES("QNT-003", "QNT-004", "QNT-005", "QNT-006");
}
END_TEST

/* The squared error of the range is not larger than that of PyTorch's. */
static void check_histogram(const sample *s)
{
    tn_module *range = parsed(s->text);
    tn_tensor *parts[3], *every, *scale, *zero_point, *ends[2];
    double error;

    for (int i = 0; i < 3; i++) {
        parts[i] = find(s, "x", i);
        ck_assert_ptr_eq(tn_module_call(range, parts[i]), parts[i]);
    }
    ends[0] = tn_module_get(range, "range_min");
    ends[1] = tn_module_get(range, "range_max");
    ck_assert_msg(ends[0] != NULL && ends[1] != NULL, "%s", tn_error_text());
    every = tn_cat(parts, 3, 0);
    ck_assert_int_eq(tn_choose_qparams(tn_stack(ends, 2, 0), &scale, &zero_point), TN_OK);
    every = tn_sub(tn_dequantize(tn_quantize(every, scale, zero_point), scale, zero_point), every);
    error = tn_item(tn_sum(tn_mul(every, every)));
    ck_assert_float_le(error, 1.02 * tn_item(get(s, "error")));
    ck_assert_float_gt(error, 0.2 * tn_item(get(s, "error")));
    tn_module_drop(range);
}

START_TEST(the_range_of_a_histogram_loses_no_more_than_that_of_pytorch)
{
    ck_assert_int_eq(each_case("histogram", check_histogram), 3);
}
END_TEST

/* ---- fake quantization ----------------------------------------------------------------------- */

static void check_fake(const sample *s)
{
    int low, high, dim = 0;
    tn_tensor *x = get(s, "x"), *y, *zero_point = tn_cast(get(s, "zero_point"), TN_I32);

    ck_assert_int_ge(sscanf(s->text, "%d %d %d", &low, &high, &dim), 2);
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    y = tn_fake_quantize(x, get(s, "scale"), zero_point, low, high, dim);
    ck_assert_float_lt(largest_difference(y, get(s, "y")), 1e-5);
    ck_assert_int_eq(tn_backward_with(y,
                                      tn_tensor_full(tn_tensor_shape(y),
                                                     TN_SCALAR(dim == 0 ? 2.0 : 1.0), TN_F32, NULL),
                                      false),
                     TN_OK);
    ck_assert_float_eq(largest_difference(tn_tensor_grad(x), get(s, "grad")), 0);
}

START_TEST(fake_quantization_has_the_mask_of_pytorch)
{
    ck_assert_int_eq(each_case("fake", check_fake), 4);
}
END_TEST

/* ---- fusion ---------------------------------------------------------------------------------- */

static void store(tn_module *net, const char *path, tn_tensor *value)
{
    tn_tensor *own = value != NULL ? tn_module_find_tensor(net, path) : NULL;

    if (value == NULL)
        return;
    ck_assert_ptr_nonnull(own);
    ck_assert_int_eq(tn_tensor_copy_async(tn_detach(own), value), TN_OK);
}

static void check_fuse(const sample *s)
{
    char spec[400];
    const char *bar = strstr(s->text, " | ");
    tn_module *net;

    snprintf(spec, sizeof spec, "Sequential(%.*s, %s, ReLU())", (int)(bar - s->text), s->text,
             bar + 3);
    net = parsed(spec);
    ck_assert_int_eq(tn_module_train(net, false), TN_OK);
    for (int i = 0; i < s->count; i++)
        if (s->names[i][1] == '.' && s->names[i][0] < '2')
            store(net, s->names[i], s->at[i]);
    tn_module *copy = tn_module_copy(net);
    ck_assert_msg(tn_module_fuse_list(copy, "0, 1") == TN_OK, "%s", tn_error_text());
    ck_assert_float_lt(
        largest_difference(tn_module_find_tensor(copy, "0.weight"), get(s, "fused.weight")), 2e-6);
    ck_assert_float_lt(
        largest_difference(tn_module_find_tensor(copy, "0.bias"), get(s, "fused.bias")), 2e-6);
    ck_assert_str_eq(tn_module_type(tn_module_find(copy, "1")), "Identity");
    ck_assert_float_lt(largest_difference(tn_module_call(copy, get(s, "x")), get(s, "y")), 2e-5);
    ck_assert_msg(tn_module_fuse_list(net, "0,1,2") == TN_OK, "%s", tn_error_text());
    ck_assert_str_eq(tn_module_type(tn_module_find(net, "0")), "Sequential");
    ck_assert_str_eq(tn_module_type(tn_module_find(net, "2")), "Identity");
    ck_assert_float_lt(largest_difference(tn_module_call(net, get(s, "x")), get(s, "y")), 2e-5);
    tn_module_drop(copy);
    tn_module_drop(net);
}

START_TEST(fused_layers_have_the_numbers_of_pytorch)
{
    ck_assert_int_eq(each_case("fuse", check_fuse), 5);
    TN_PROVES("QNT-010");
}
END_TEST

/* ---- dynamic modules ------------------------------------------------------------------------- */

/* Our scales of inputs are of rows, those of weights of channels: the error is at most PyTorch's,
 * and with one scale for all inputs the results are near. */
static void check_dynamic(const sample *s)
{
    char spec[400];
    tn_quantize_report report;
    tn_tensor *x = get(s, "x"), *float_result = get(s, "y"), *theirs = get(s, "quantized");
    double their_error = largest_difference(theirs, float_result);

    snprintf(spec, sizeof spec, "Sequential(%s)", s->text);
    for (int i = 0; i < 2; i++) {
        tn_module *net = parsed(spec);

        store(net, "0.weight", get(s, "weight"));
        store(net, "0.bias", find(s, "bias", 0));
        ck_assert_msg(
            tn_module_quantize(net, i == 0 ? "int8_dynamic()" : "int8_dynamic(activation=tensor)",
                               &x, 1, &report) == TN_OK,
            "%s", tn_error_text());
        ck_assert_int_eq(report.quantized, 1);
        ck_assert_float_gt(report.rows[0].sqnr, 35);
        ck_assert_float_gt(report.rows[0].cosine, 0.9998);
        tn_quantize_report_free(&report);
        tn_tensor *y = tn_module_call(net, x);
        ck_assert_float_lt(largest_difference(y, theirs), 2 * their_error);
        ck_assert_float_lt(largest_difference(y, float_result), 1.2 * their_error);
        tn_module_drop(net);
    }
}

START_TEST(dynamic_modules_are_near_those_of_pytorch)
{
    ck_assert_int_eq(each_case("dynamic", check_dynamic), 2);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("pytorch");
    Suite *suite = suite_create("quantization beside PyTorch");

    tcase_add_test(tcase, ranges_and_scales_are_those_of_pytorch);
    tcase_add_test(tcase, the_range_of_a_histogram_loses_no_more_than_that_of_pytorch);
    tcase_add_test(tcase, fake_quantization_has_the_mask_of_pytorch);
    tcase_add_test(tcase, fused_layers_have_the_numbers_of_pytorch);
    tcase_add_test(tcase, dynamic_modules_are_near_those_of_pytorch);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
