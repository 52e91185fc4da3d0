/* SPDX-License-Identifier: MIT
 *
 * A dataset and transforms with one error each (mutant_choose.h). */
#include <stdlib.h>

#include "mutant_choose.h"

typedef struct options {
    int64_t count;
} options;

static const tn_option table[] = { TN_OPTION_INT(options, count, "100", "number of samples"),
                                   TN_OPTION_END };

static double *shared;

static tn_status open_data(tn_dataset_open *args)
{
    double *values = is("shares") && shared ? shared : tn_malloc(3 * sizeof *values);

    if (!values)
        return TN_ERR_MEMORY;
    for (int i = 0; i < 3; i++)
        values[i] = 10 + i;
    args->count = ((const options *)args->options)->count;
    args->handle = shared = values;
    return TN_OK;
}

static void close_data(void *handle)
{
    double *values = handle;

    if (is("shares") && !shared)
        return;
    values[0] = -1;
    if (is("shares")) { /* not freed: a later read of it must not crash */
        return;
    }
    tn_free(values);
}

static tn_status get(const tn_sample_args *args)
{
    static _Atomic int64_t calls;
    const double *values = args->handle;
    tn_tensor *x = tn_tensor_from(values, TN_F64, TN_SHAPE(3));

    if (is("fails") && args->index == 99)
        return tn_fail(TN_ERR_FORMAT, "it ends in the middle");
    if (is("opens"))
        (void)tn_scope_begin();
    if (!x || tn_pack_add(args->out, NULL, tn_value_tensor(x)) != TN_OK)
        return tn_error_last_code();
    return tn_pack_add(args->out, NULL, tn_value_int(is("counts") ? ++calls : args->index));
}

static const tn_dataset_def dataset = {
    TN_HEAD(tn_dataset_def),      .name = "Counts",  .help = "for a test", .options = table,
    .data_size = sizeof(options), .open = open_data, .get = get,           .close = close_data
};

/* Multiplies a float image by a random number. */
static tn_status apply(tn_transform_args *args)
{
    tn_tensor *x = tn_pack_tensor(args->in, 0);
    double by = is("draws") ? (double)rand() : tn_random_between(&args->random, 0, 1);

    if (is("picky") || tn_tensor_dtype(x) != TN_F32)
        return tn_fail(TN_ERR_TYPE, "Dims: image: wrong type; expected float32");
    if (is("writes"))
        *(float *)tn_tensor_data(x) = 2;
    x = tn_mul(x, tn_tensor_full(TN_SCALAR_SHAPE, by, TN_F32, NULL));
    return x ? tn_pack_add(args->out, NULL, tn_value_tensor(x)) : tn_error_last_code();
}

static const tn_transform_def transform = { TN_HEAD(tn_transform_def), .name = "Dims",
                                            .help = "for a test", .apply = apply };

/* Multiplies a batch of floats by a random number. */
static tn_status apply_batch(tn_transform_args *args)
{
    tn_tensor *x = tn_pack_tensor(args->in, 0);
    double by = is("rolls") ? (double)rand() : tn_random_between(&args->random, 0, 1);

    if (tn_tensor_dtype(x) != TN_F32 || tn_tensor_ndim(x) != 4)
        return tn_fail(TN_ERR_TYPE, "Rows: images: wrong type; expected float32");
    if (is("erases"))
        *(float *)tn_tensor_data(x) = 2;
    x = tn_mul(x, tn_tensor_full(TN_SCALAR_SHAPE, by, TN_F32, NULL));
    if (!x || tn_pack_add(args->out, NULL, tn_value_tensor(x)) != TN_OK)
        return tn_error_last_code();
    return tn_pack_add(args->out, NULL, tn_pack_at(args->in, 1));
}

static const tn_transform_def batches = { TN_HEAD(tn_transform_def), .name = "Rows",
                                          .help = "for a test", .flags = TN_TRANSFORM_BATCH,
                                          .apply = apply_batch };
TN_PLUGIN("org.example.mutant", "1.0.0", &dataset, &transform, &batches);
