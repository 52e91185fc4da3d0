/* SPDX-License-Identifier: MIT
 *
 * Selected elements and rows, and reductions that leave elements out, compared with loops in
 * float64: sizes beyond a vector and beyond a piece of a thread, in every float dtype. */
#include "tests/backend/backend.h"

enum { ROWS = 70, WIDE = 83, ALL = ROWS * WIDE, PICKED = 45 };

static const tn_dtype floats[] = { TN_F16, TN_BF16, TN_F32, TN_F64 };

/* Indices below `limit`, some of them twice; every third counts from the end if `negative`. */
static void indices(double *out, int count, int limit, bool negative)
{
    for (int i = 0; i < count; i++) {
        out[i] = (i * 31 + i / 7) % limit;
        if (negative && i % 3 == 0)
            out[i] -= limit;
    }
}

static int place(double index, int limit)
{
    return (int)(index < 0 ? index + limit : index);
}

static void rows_agree(tn_dtype dtype)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    double *x = room(ALL), *src = room(PICKED * WIDE), *y = room(ALL), at[PICKED];
    static const char *const reduces[] = { "prod", "amax", "amin" };
    tn_tensor *in, *index;

    numbers(x, ALL, -2, 2, dtype);
    numbers(src, PICKED * WIDE, -2, 2, dtype);
    indices(at, PICKED, ROWS, true);
    in = put(cpu, dtype, TN_SHAPE(ROWS, WIDE), x, DENSE);
    index = put(cpu, TN_I64, TN_SHAPE(PICKED), at, DENSE);
    memcpy(y, x, ALL * sizeof *y);
    for (int i = 0; i < PICKED; i++)
        for (int j = 0; j < WIDE; j++)
            y[place(at[i], ROWS) * WIDE + j] = 1.5;
    same("index_fill", cpu, dtype, tn_index_fill(in, index, 0, tn_scalar_float(1.5)), y, 0, 0);
    memcpy(y, x, ALL * sizeof *y);
    for (int i = 0; i < PICKED; i++)
        for (int j = 0; j < ROWS; j++)
            y[j * WIDE + place(at[i] < 0 ? at[i] + ROWS - WIDE : at[i], WIDE)] = -1;
    for (int i = 0; i < PICKED; i++)
        at[i] -= at[i] < 0 ? WIDE - ROWS : 0;
    same("index_fill", cpu, dtype,
         tn_index_fill(in, put(cpu, TN_I64, TN_SHAPE(PICKED), at, DENSE), 1, tn_scalar_float(-1)),
         y, 0, 0);

    indices(at, PICKED, ROWS, false);
    index = put(cpu, TN_I64, TN_SHAPE(PICKED), at, EVERY_SECOND);
    for (int r = 0; r < 3; r++) {
        memcpy(y, x, ALL * sizeof *y);
        for (int i = 0; i < PICKED; i++)
            for (int j = 0; j < WIDE; j++) {
                double *to = &y[(int)at[i] * WIDE + j], v = src[i * WIDE + j];

                *to = r == 0 ? stored(*to * v, dtype) : r == 1 ? fmax(*to, v) : fmin(*to, v);
            }
        same(reduces[r], cpu, dtype,
             tn_index_reduce(in, index, put(cpu, dtype, TN_SHAPE(PICKED, WIDE), src, DENSE), 0,
                             reduces[r]),
             y, 0, 0);
    }
}

static void elements_agree(tn_dtype dtype)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    enum { MANY = 40000 };
    double *x = room(ALL), *src = room(MANY), *y = room(MANY), *at = room(MANY);
    tn_tensor *in, *index, *values;

    numbers(x, ALL, -2, 2, dtype);
    numbers(src, MANY, -2, 2, dtype);
    indices(at, MANY, ALL, true);
    in = put(cpu, dtype, TN_SHAPE(ROWS, WIDE), x, DENSE);
    index = put(cpu, TN_I64, TN_SHAPE(MANY), at, DENSE);
    values = put(cpu, dtype, TN_SHAPE(MANY), src, DENSE);
    for (int i = 0; i < MANY; i++)
        y[i] = x[place(at[i], ALL)];
    same("take", cpu, dtype, tn_take(in, index), y, 0, 0);
    memcpy(y, x, ALL * sizeof *y);
    for (int i = 0; i < MANY; i++)
        y[place(at[i], ALL)] = src[i];
    same("put", cpu, dtype, tn_put(in, index, values), y, 0, 0);

    /* nothing is written by a call in place that fails */
    at[MANY - 1] = ALL;
    index = put(cpu, TN_I64, TN_SHAPE(MANY), at, DENSE);
    ck_assert(tn_take(in, index) == NULL);
    ck_assert_ptr_nonnull(strstr(tn_error_last()->message, "take: index 5810 is out of bounds"));
    tn_error_clear();
    ck_assert(tn_put_(in, index, values) == NULL);
    ck_assert_ptr_nonnull(strstr(tn_error_last()->message,
                                 "put: index 5810 is out of bounds for dimension 0 with size 5810: "
                                 "-5810 to 5809"));
    tn_error_clear();
    same("put", cpu, dtype, in, x, 0, 0);
}

static void bags_agree(tn_dtype dtype, int length)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    double *x = room(ALL), *at = room(20 * length), *y = room(20 * WIDE), *mean = room(20 * WIDE);
    tn_tensor *in, *index;

    numbers(x, ALL, 0.5, 2, dtype);
    indices(at, 20 * length, ROWS, false);
    for (int b = 0; b < 20; b++)
        for (int j = 0; j < WIDE; j++) {
            for (int i = 0; i < length; i++)
                y[b * WIDE + j] += x[(int)at[b * length + i] * WIDE + j];
            mean[b * WIDE + j] = stored(y[b * WIDE + j] / length, dtype);
            y[b * WIDE + j] = stored(y[b * WIDE + j], dtype);
        }
    in = put(cpu, dtype, TN_SHAPE(ROWS, WIDE), x, DENSE);
    index = put(cpu, TN_I64, TN_SHAPE(20, length), at, DENSE);
    same("embedding_bag mean", cpu, dtype, tn_embedding_bag(in, index), mean, 4, 0);
    same("embedding_bag sum", cpu, dtype, tn_embedding_bag(in, index, TN_NONE, TN_NONE, "sum"), y,
         4, 0);
    at[7] = ROWS;
    ck_assert(tn_embedding_bag(in, put(cpu, TN_I64, TN_SHAPE(20, length), at, DENSE)) == NULL);
    ck_assert_ptr_nonnull(strstr(tn_error_last()->message, "embedding_sum: index 70 is out of"));
    tn_error_clear();
}

static void reductions_agree(tn_dtype dtype)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    double *x = room(ALL), *sums = room(ROWS), *columns = room(WIDE), *norms = room(ROWS);
    double *most = room(ALL), *running = room(ALL);
    tn_nansum_options nansum = TN_NANSUM_OPTIONS;
    int64_t one = 1, zero = 0;
    tn_tensor *in, *values, *places;

    numbers(x, ALL, 0.5, 1.5, dtype);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < WIDE; j++) {
            double v = x[i * WIDE + j];

            norms[i] += v * v;
            running[i * WIDE + j] = v + (j > 0 ? running[i * WIDE + j - 1] : 0);
            most[i * WIDE + j] = j > 0 ? fmax(most[i * WIDE + j - 1], v) : v;
        }
    for (int i = 0; i < ROWS; i++)
        norms[i] = stored(sqrt(norms[i]), dtype);
    for (int i = 0; i < ALL; i++)
        running[i] = stored(running[i], dtype);
    in = put(cpu, dtype, TN_SHAPE(ROWS, WIDE), x, DENSE);
    same("norm", cpu, dtype, tn_norm(in, 2.0, TN_INTS(one)), norms, 2, 0);
    same("cumsum", cpu, dtype, tn_cumsum(in, 1), running, 2, 0);
    ok(tn_cummax(in, 1, &values, &places));
    same("cummax", cpu, dtype, values, most, 0, 0);
    for (int i = 0; i < ALL; i++)
        ck_assert(most[i] == x[i / WIDE * WIDE + (int)get(places)[i]]);

    for (int i = 0; i < ALL; i++) {
        x[i] = i % 5 == 3 ? NAN : x[i];
        sums[i / WIDE] += isnan(x[i]) ? 0 : x[i];
        columns[i % WIDE] += isnan(x[i]) ? 0 : x[i];
    }
    in = put(cpu, dtype, TN_SHAPE(ROWS, WIDE), x, DENSE);
    nansum.dims = (tn_ints){ &one, 1 };
    for (int i = 0; i < ROWS; i++)
        sums[i] = stored(sums[i], dtype);
    same("nansum", cpu, dtype, tn_nansum(in, nansum.dims, nansum.keepdim, nansum.dtype), sums, 4,
         0);
    nansum.dims = (tn_ints){ &zero, 1 };
    for (int j = 0; j < WIDE; j++)
        columns[j] = stored(columns[j], dtype);
    same("nansum", cpu, dtype, tn_nansum(in, nansum.dims, nansum.keepdim, nansum.dtype), columns, 4,
         0);
}

/* -w[c] x[n, c], where c is not ignored, for every reduction. */
static void weighted_loss_agrees(tn_dtype dtype)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    tn_nll_loss_weighted_options options = TN_NLL_LOSS_WEIGHTED_OPTIONS;
    double *x = room(ALL), weight[WIDE], target[ROWS], each[ROWS], sum = 0, shares = 0;
    tn_tensor *in, *classes, *weights;

    numbers(x, ALL, -3, 0, dtype);
    numbers(weight, WIDE, 0.5, 2, dtype);
    indices(target, ROWS, WIDE, false);
    options.ignore_index = 4;
    target[9] = 4;
    for (int i = 0; i < ROWS; i++) {
        int c = (int)target[i];

        each[i] = c == 4 ? 0 : stored(-weight[c] * x[i * WIDE + c], dtype);
        sum += each[i];
        shares += c == 4 ? 0 : weight[c];
    }
    in = put(cpu, dtype, TN_SHAPE(ROWS, WIDE), x, EVERY_SECOND);
    classes = put(cpu, TN_I64, TN_SHAPE(ROWS), target, DENSE);
    weights = put(cpu, dtype, TN_SHAPE(WIDE), weight, REVERSED);
    same("mean", cpu, dtype,
         tn_nll_loss_weighted(in, classes, weights, options.reduction, options.ignore_index),
         NUMBERS(stored(sum / shares, dtype)), 4, 0);
    options.reduction = "sum";
    same("sum", cpu, dtype,
         tn_nll_loss_weighted(in, classes, weights, options.reduction, options.ignore_index),
         NUMBERS(stored(sum, dtype)), 4, 0);
    options.reduction = "none";
    same("none", cpu, dtype,
         tn_nll_loss_weighted(in, classes, weights, options.reduction, options.ignore_index), each,
         1, 0);
}

static void diagonals_agree(tn_dtype dtype)
{
    TN_SCOPE;
    const tn_device *cpu = tn_default_device();
    tn_diag_embed_options options = TN_DIAG_EMBED_OPTIONS;
    double x[6] = { 1, 2, 3, 4, 5, 6 }, y[2 * 5 * 5] = { 0 }, turned[5 * 2 * 5] = { 0 };

    options.offset = -2;
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < 3; i++) {
            y[b * 25 + (i + 2) * 5 + i] = x[b * 3 + i];
            turned[(i + 2) * 10 + b * 5 + i] = x[b * 3 + i];
        }
    same("diag_embed", cpu, dtype,
         tn_diag_embed(put(cpu, dtype, TN_SHAPE(2, 3), x, DENSE), options.offset, options.dim1,
                       options.dim2),
         y, 0, 0);
    options.dim1 = 0;
    options.dim2 = 2;
    same("diag_embed", cpu, dtype,
         tn_diag_embed(put(cpu, dtype, TN_SHAPE(2, 3), x, DENSE), options.offset, options.dim1,
                       options.dim2),
         turned, 0, 0);
}

START_TEST(rows_and_elements_are_right_in_every_float_dtype)
{
    for (int i = 0; i < 4; i++) {
        rows_agree(floats[i]);
        elements_agree(floats[i]);
        bags_agree(floats[i], 3);
        bags_agree(floats[i], 37);
        diagonals_agree(floats[i]);
    }
}
END_TEST

START_TEST(reductions_are_right_in_every_float_dtype)
{
    for (int i = 0; i < 4; i++)
        reductions_agree(floats[i]);
    weighted_loss_agrees(TN_F32);
    weighted_loss_agrees(TN_F64);
}
END_TEST

RUN_SUITE("index_rows", rows_and_elements_are_right_in_every_float_dtype,
          reductions_are_right_in_every_float_dtype)
