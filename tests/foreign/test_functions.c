/* SPDX-License-Identifier: MIT
 *
 * The rules for functions of PyTorch's programs: files/functions_*.pt2 call hundreds of functions,
 * files/functions_*.npz have PyTorch's results and gradients; make_functions.py writes both. With
 * arguments, this program replays those files instead: NAME.pt2 and NAME.npz for each NAME. */
#include "tests/libcheck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops.h>
#include <tenon/tenon.h>

/* `layout` of an .npz file: the kinds of tensors, and the order of their dtypes. */
enum { INPUT, INPUT_WITH_GRADIENT, RESULT, GRADIENT };
static const tn_dtype dtypes[] = {
    TN_F64, TN_F32, TN_I64, TN_I32, TN_I8, TN_BOOL, TN_C128, TN_C64
};

struct record {
    int kind;
    tn_dtype dtype;
    int64_t shape[TN_MAX_DIMS], ndim;
    const double *values;
    int64_t count;    /* of numbers: two for a complex one */
    const char *name; /* of the function */
    int name_length;
};

struct records {
    tn_state *state;
    struct record *at;
    int64_t count;
};

static bool is_complex(tn_dtype dtype)
{
    return dtype == TN_C128 || dtype == TN_C64;
}

static struct records read_records(const char *path)
{
    struct records all = { .state = tn_state_load(path) };
    const int64_t *layout;
    const double *values;
    const char *names, *end;
    int64_t n;

    ck_assert_msg(all.state != NULL, "%s", tn_error_text());
    n = tn_tensor_numel(tn_state_get(all.state, "layout"));
    layout = tn_tensor_data(tn_state_get(all.state, "layout"));
    values = tn_tensor_data(tn_state_get(all.state, "values"));
    names = tn_tensor_data(tn_state_get(all.state, "names"));
    end = names + tn_tensor_numel(tn_state_get(all.state, "names")); /* nothing ends the last */
    all.at = calloc((size_t)n, sizeof *all.at);
    for (int64_t i = 0; i < n; i += 3 + layout[i + 2]) {
        struct record *record = &all.at[all.count++];

        *record = (struct record){ .kind = (int)layout[i], .dtype = dtypes[layout[i + 1]] };
        record->name = names;
        for (; names < end && *names != '\n'; names++)
            record->name_length++;
        names += names < end;
        record->ndim = layout[i + 2];
        record->count = is_complex(record->dtype) ? 2 : 1;
        for (int64_t d = 0; d < record->ndim; d++) {
            record->shape[d] = layout[i + 3 + d];
            record->count *= record->shape[d];
        }
        record->values = values;
        values += record->count;
    }
    return all;
}

static tn_tensor *input_of(const struct record *record)
{
    tn_ints shape = { record->shape, record->ndim };
    int64_t parts[TN_MAX_DIMS + 1];
    tn_tensor *x;

    if (!is_complex(record->dtype)) {
        x = tn_cast(tn_tensor_from(record->values, TN_F64, shape), record->dtype);
        if (record->kind == INPUT_WITH_GRADIENT)
            x = tn_tensor_set_requires_grad(x, true) == TN_OK ? x : NULL;
        return x;
    }
    memcpy(parts, record->shape, sizeof record->shape);
    parts[record->ndim] = 2;
    x = tn_tensor_from(record->values, TN_F64, (tn_ints){ parts, record->ndim + 1 });
    return tn_cast(tn_view_as_complex(x), record->dtype);
}

/* A result as float64; complex numbers become pairs. */
static tn_tensor *as_doubles(tn_tensor *x)
{
    return tn_cast(is_complex(tn_tensor_dtype(x)) ? tn_view_as_real(x) : x, TN_F64);
}

/* Says what is wrong with a tensor; NULL: nothing. */
static const char *difference(const struct record *record, tn_tensor *x, char *text, size_t size)
{
    bool rough = record->dtype == TN_F32 || record->dtype == TN_C64;
    double most = rough ? 1e-5 : record->dtype == TN_F64 || record->dtype == TN_C128 ? 1e-9 : 0;
    double largest = 1;
    const double *got;

    if (tn_tensor_dtype(x) != record->dtype) {
        tn_snprint(text, size, "dtype %s instead of %s", tn_dtype_name(tn_tensor_dtype(x)),
                   tn_dtype_name(record->dtype));
        return text;
    }
    if (tn_tensor_ndim(x) != record->ndim ||
        memcmp(tn_tensor_shape(x).at, record->shape, (size_t)record->ndim * sizeof(int64_t)) != 0)
        return "wrong shape";
    x = tn_copy(as_doubles(x));
    if (x == NULL)
        return tn_error_text();
    got = tn_tensor_data(x);
    for (int64_t i = 0; i < record->count; i++)
        if (isfinite(record->values[i]) && fabs(record->values[i]) > largest)
            largest = fabs(record->values[i]);
    for (int64_t i = 0; i < record->count; i++) {
        double wanted = record->values[i];

        if (got[i] == wanted || (isnan(got[i]) && isnan(wanted)) ||
            fabs(got[i] - wanted) <= most * largest)
            continue;
        tn_snprint(text, size, "element %lld is %.17g instead of %.17g", (long long)i, got[i],
                   wanted);
        return text;
    }
    return NULL;
}

/* Compares a tensor, and says so if it is wrong. */
static int wrong(const struct record *record, const char *what, tn_tensor *x)
{
    char text[256];
    const char *said = x != NULL ? difference(record, x, text, sizeof text) : "absent";

    if (said != NULL)
        fprintf(stderr, "%.*s: %s: %s\n", record->name_length, record->name, what, said);
    return said != NULL;
}

/* Element i of result `number` has the weight ((7 i + 3 number) mod 11 - 5) / 8 in the sum whose
 * gradients were recorded. */
static tn_tensor *weighted(tn_tensor *y, int64_t number)
{
    tn_tensor *doubles = as_doubles(y), *weights;
    int64_t n = tn_tensor_numel(doubles);
    double *values = calloc((size_t)n + 1, sizeof *values);

    for (int64_t i = 0; i < n; i++)
        values[i] = (double)((7 * i + 3 * number) % 11 - 5) / 8;
    weights = tn_tensor_from(values, TN_F64, tn_tensor_shape(doubles));
    free(values);
    return tn_sum(tn_mul(doubles, weights));
}

static int compare_results(const struct records *all, const tn_pack *output, tn_tensor **sum)
{
    int failures = 0;
    int64_t n = 0;

    for (int64_t i = 0; i < all->count; i++) {
        tn_value value;

        if (all->at[i].kind != RESULT)
            continue;
        value = n < tn_pack_count(output) ? tn_pack_at(output, n) : tn_value_none();
        if (value.kind != TN_VALUE_TENSOR) {
            failures += wrong(&all->at[i], "result", NULL);
        } else {
            failures += wrong(&all->at[i], "result", value.as.tensor);
            if (tn_tensor_requires_grad(value.as.tensor)) {
                tn_tensor *part = weighted(value.as.tensor, n);

                *sum = *sum != NULL ? tn_add(*sum, part) : part;
            }
        }
        n++;
    }
    if (n != tn_pack_count(output)) {
        fprintf(stderr, "%lld results instead of %lld\n", (long long)tn_pack_count(output),
                (long long)n);
        failures++;
    }
    return failures;
}

static int compare_gradients(const struct records *all, tn_tensor **inputs)
{
    int64_t at = 0, n = 0;
    int failures = 0;

    for (int64_t i = 0; i < all->count; i++) {
        const struct record *record = &all->at[i];
        tn_tensor *gradient;

        if (record->kind != GRADIENT)
            continue;
        while (all->at[at].kind != INPUT_WITH_GRADIENT)
            n += all->at[at++].kind <= INPUT_WITH_GRADIENT;
        gradient = tn_tensor_grad(inputs[n++]);
        at++;
        if (gradient == TN_NONE)
            gradient = tn_full(TN_NONE, ((tn_ints){ record->shape, record->ndim }), 0,
                               record->dtype);
        failures += wrong(record, "gradient", gradient);
    }
    return failures;
}

/* Returns the number of wrong tensors. */
static int replay(const char *stem)
{
    char path[600];
    struct records all;
    tn_module *module;
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    tn_tensor **inputs, *sum = NULL;
    int64_t n = 0;
    int failures = 0;
    uint64_t scope = tn_scope_begin();

    tn_snprint(path, sizeof path, "%s.npz", stem);
    all = read_records(path);
    inputs = calloc((size_t)all.count, sizeof(tn_tensor *));
    for (int64_t i = 0; i < all.count; i++)
        if (all.at[i].kind <= INPUT_WITH_GRADIENT) {
            inputs[n] = input_of(&all.at[i]);
            ck_assert_msg(inputs[n] != NULL, "%s", tn_error_text());
            ck_assert_int_eq(tn_pack_add(input, NULL, tn_value_tensor(inputs[n++])), TN_OK);
        }
    tn_snprint(path, sizeof path, "%s.pt2", stem);
    module = tn_module_from_file(path);
    if (module == NULL || tn_module_call_pack(module, input, output) != TN_OK) {
        fprintf(stderr, "%s: %s\n", path, tn_error_text());
        tn_error_clear();
        failures = 1;
    } else {
        failures = compare_results(&all, output, &sum);
        if (sum != NULL && tn_backward(sum) != TN_OK) {
            fprintf(stderr, "%s: backward: %s\n", path, tn_error_text());
            tn_error_clear();
            failures++;
        } else {
            failures += compare_gradients(&all, inputs);
        }
    }
    tn_pack_drop(input);
    tn_pack_drop(output);
    tn_module_drop(module);
    tn_scope_end(scope);
    tn_state_drop(all.state);
    free(all.at);
    free(inputs);
    return failures;
}

static const char *const groups[] = {
    "pointwise", "inplace",     "binary",   "views",   "index",  "creation", "reductions", "linear",
    "recurrent", "convolution", "training", "pooling", "losses", "fourier",  "aliases",
};

static char **stems; /* those of the arguments; NULL: those of the groups */

START_TEST(functions_have_the_results_and_gradients_of_pytorch)
{
    char stem[600];

    tn_snprint(stem, sizeof stem, TN_TEST_SRCDIR "/tests/foreign/files/functions_%s",
               groups[stems != NULL ? 0 : _i]);
    ck_assert_int_eq(replay(stems != NULL ? stems[_i] : stem), 0);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("functions");
    TCase *tcase = tcase_create("functions");
    int n = argc > 1 ? argc - 1 : (int)(sizeof groups / sizeof *groups), failed;
    SRunner *runner;

#ifndef TN_WITH_ZLIB
    puts("SKIP: built without zlib, which the files need");
    return 77;
#endif
    stems = argc > 1 ? argv + 1 : NULL;
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, functions_have_the_results_and_gradients_of_pytorch, 0, n);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
