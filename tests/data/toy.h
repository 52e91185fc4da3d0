/* SPDX-License-Identifier: MIT
 *
 * A dataset and two transforms that the tests register: samples whose values follow from their
 * index, and samples that are wrong on purpose. */
#ifndef TN_TESTS_DATA_TOY_H
#define TN_TESTS_DATA_TOY_H

#include "tests/base/suite.h"

#include <stdatomic.h>
#include <unistd.h>

typedef struct toy_options {
    int64_t count, classes, bad, damaged, other, slow;
    const char *form;
} toy_options;

static _Atomic int64_t toys_open, toys_read;

static const tn_option toy_table[] = {
    TN_OPTION_INT_REQUIRED(toy_options, count, "number of samples"),
    TN_OPTION_INT(toy_options, classes, "3", "number of classes"),
    TN_OPTION_INT(toy_options, bad, "-1", "a sample that fails"),
    TN_OPTION_INT(toy_options, damaged, "0", "each sample whose index is a multiple is damaged"),
    TN_OPTION_INT(toy_options, other, "-1", "a sample of another form"),
    TN_OPTION_INT(toy_options, slow, "0", "microseconds that a sample takes"),
    TN_OPTION_STRING(toy_options, form, "'pair'", "the entries of a sample"),
    TN_OPTION_END
};

static tn_status toy_open(tn_dataset_open *args)
{
    static const char *const names[] = { "red", "green", "blue" };
    const toy_options *options = args->options;

    if (options->count == 13)
        return tn_fail(TN_ERR_VALUE, "Toy: count: unlucky, got 13; expected another number");
    args->handle = (void *)(uintptr_t)options;
    args->count = options->count;
    args->classes = options->classes;
    args->class_names = options->classes == 3 ? names : NULL;
    toys_open++;
    return TN_OK;
}

static void toy_close(void *handle)
{
    (void)handle;
    toys_open--;
}

static tn_status toy_tensor(tn_pack *out, int64_t index, tn_dtype dtype, bool transposed)
{
    float at[6];
    tn_tensor *x;

    for (int i = 0; i < 6; i++)
        at[i] = (float)(index * 10 + i);
    x = tn_tensor_from(at, TN_F32, TN_SHAPE(2, 3));
    if (transposed)
        x = tn_tensor_as_strided(x, TN_SHAPE(3, 2), TN_INTS(1, 3), 0);
    if (dtype != TN_F32) {
        tn_tensor *y = tn_tensor_empty(TN_SHAPE(2, 3), dtype, NULL);

        if (y == NULL || tn_tensor_copy_async(y, x) != TN_OK)
            return tn_error_last_code();
        x = y;
    }
    return x != NULL ? tn_pack_add(out, NULL, tn_value_tensor(x)) : tn_error_last_code();
}

/* ({'x': ..., 'more': (index, 'name')}, [bool, float], bytes), and one named entry. */
static tn_status toy_nested(tn_pack *out, int64_t index, bool other)
{
    char name[16];
    tn_value pair[2], dict[4], row[2];
    uint8_t bytes[2] = { 0, (uint8_t)index };
    tn_status status;

    tn_snprint(name, sizeof name, "n%lld", (long long)index);
    pair[0] = tn_value_int(index);
    pair[1] = tn_value_string(name);
    /* dictionaries with the same keys in another order */
    dict[index % 2 * 2] = tn_value_string("x");
    dict[index % 2 * 2 + 1] = tn_value_float((double)index / 2);
    dict[2 - index % 2 * 2] = tn_value_string(other ? "less" : "more");
    dict[3 - index % 2 * 2] = tn_value_tuple(pair, 2);
    row[0] = tn_value_bool(index % 3 == 0);
    row[1] = tn_value_float(0.5);
    status = tn_pack_add(out, NULL, tn_value_dict(dict, 4));
    if (status == TN_OK)
        status = tn_pack_add(out, NULL, tn_value_list(row, 2));
    if (status == TN_OK)
        status = tn_pack_add(out, "raw", tn_value_bytes(bytes, 2));
    return status;
}

static tn_status toy_get(const tn_sample_args *args)
{
    const toy_options *options = args->handle;
    int64_t index = args->index;
    bool other = index == options->other;
    tn_status status;

    toys_read++;
    if (options->slow > 0)
        usleep((useconds_t)options->slow);
    if (index == options->bad)
        return tn_fail(TN_ERR_VALUE, "Toy: it is bad");
    if (options->damaged > 0 && index % options->damaged == 0)
        return tn_fail(TN_ERR_FORMAT, "it is damaged");
    if (strcmp(options->form, "nested") == 0)
        return toy_nested(args->out, index, other);
    if (strcmp(options->form, "empty") == 0)
        return TN_OK;
    if (strcmp(options->form, "none") == 0)
        return tn_pack_add(args->out, NULL, tn_value_none());
    if (strcmp(options->form, "silent") == 0)
        return TN_ERR_IO;
    status = toy_tensor(
        args->out, index, other && strcmp(options->form, "dtype") == 0 ? TN_F64 : TN_F32,
        strcmp(options->form, "strided") == 0 || (other && strcmp(options->form, "shape") == 0));
    if (status == TN_OK && !(other && strcmp(options->form, "fewer") == 0))
        status = tn_pack_add(args->out, NULL,
                             other && strcmp(options->form, "kind") == 0 ? tn_value_float(1)
                                                                         : tn_value_int(index));
    return status;
}

static const tn_dataset_def toy = { TN_HEAD(tn_dataset_def),
                                    .name = "Toy",
                                    .help = "samples for tests",
                                    .options = toy_table,
                                    .data_size = sizeof(toy_options),
                                    .open = toy_open,
                                    .get = toy_get,
                                    .close = toy_close };

/* ---- transforms ------------------------------------------------------------------------------ */

typedef struct noise_options {
    double high;
} noise_options;

static const tn_option noise_table[] = {
    TN_OPTION_FLOAT(noise_options, high, "1.0", "the largest number"), TN_OPTION_END
};

static tn_status noise_check(const tn_transform_def *self, const void *options)
{
    double high = ((const noise_options *)options)->high;

    return high > 0 ? TN_OK
                    : tn_fail(TN_ERR_VALUE, "%s: high: wrong, got %g; expected more than 0",
                              self->name, high);
}

/* Adds a random number as an entry. */
static tn_status noise_apply(tn_transform_args *args)
{
    double high = ((const noise_options *)args->options)->high;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_pack_count(args->in) && status == TN_OK; i++)
        status = tn_pack_add(args->out, tn_pack_name(args->in, i), tn_pack_at(args->in, i));
    if (status == TN_OK)
        status = tn_pack_add(args->out, NULL,
                             tn_value_float(tn_random_between(&args->random, 0, high)));
    return status;
}

static const tn_transform_def noise = { TN_HEAD(tn_transform_def),
                                        .name = "Noise",
                                        .help = "adds a random number",
                                        .options = noise_table,
                                        .data_size = sizeof(noise_options),
                                        .check = noise_check,
                                        .apply = noise_apply };

/* Fails for samples whose class is 5. */
static tn_status picky_apply(tn_transform_args *args)
{
    if (tn_pack_at(args->in, 1).as.i == 5)
        return tn_fail(TN_ERR_VALUE, "Picky: does not like it");
    return noise_apply(args);
}

static const tn_transform_def picky = { TN_HEAD(tn_transform_def), .name = "Picky",
                                        .options = noise_table, .data_size = sizeof(noise_options),
                                        .apply = picky_apply };

static void toys_register(void)
{
    ck_assert_int_eq(tn_register(&toy), TN_OK);
    ck_assert_int_eq(tn_register(&noise), TN_OK);
    ck_assert_int_eq(tn_register(&picky), TN_OK);
}

static void toys_unregister(void)
{
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_dataset_def, "Toy"), TN_OK);
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_transform_def, "Noise"), TN_OK);
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_transform_def, "Picky"), TN_OK);
    ck_assert_int_eq(toys_open, 0);
}

static tn_dataset *toys(const char *spec)
{
    tn_dataset *dataset = tn_dataset_parse(spec);

    ck_assert_msg(dataset != NULL, "%s: %s", spec, tn_error_text());
    return dataset;
}

static TN_ATTR(unused) void failed(tn_status code, const char *words)
{
    ck_assert_msg(tn_error_code() == code && strstr(tn_error_text(), words) != NULL,
                  "got %s: %s; expected %s: %s", tn_status_name(tn_error_code()), tn_error_text(),
                  tn_status_name(code), words);
    tn_error_clear();
}

#endif
