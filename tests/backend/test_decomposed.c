/* SPDX-License-Identifier: MIT
 *
 * Fused kernels of operators that also have a decomposition, and gradients that a kernel writes
 * directly into a larger tensor. On every device the results agree with the definition; on the CPU
 * they have the same bits with any number of threads. */
#include "tests/backend/backend.h"

static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
enum { FLOATS = sizeof floats / sizeof *floats };

#define EACH_FLOAT(device, t, op)                                                                  \
    EACH_DEVICE(device)                                                                            \
    for (int t = 0; t < FLOATS; t++)                                                               \
        for (int layout = 0; layout < LAYOUTS; layout++)                                           \
            if (device_has(device, op, floats[t]) &&                                               \
                (t < 2 || strcmp(tn_device_type(device), "strict") != 0))

START_TEST(prelu_takes_its_weights_from_the_channel)
{
    EACH_FLOAT(device, t, "prelu")
    {
        TN_SCOPE;
        tn_tensor *x = put(device, floats[t], TN_SHAPE(2, 2, 2),
                           NUMBERS(-1, 2, -3, 4, -5, NAN, 7, -8), (enum layout)layout),
                  *two = put(device, floats[t], TN_SHAPE(2), NUMBERS(0.5, -2), (enum layout)layout),
                  *one = put(device, floats[t], TN_SHAPE(1), NUMBERS(4), DENSE);
        same("prelu", device, floats[t], tn_prelu(x, two), NUMBERS(-0.5, 2, 6, 4, -2.5, NAN, 7, 16),
             0, 0);
        same("prelu", device, floats[t], tn_prelu(x, one), NUMBERS(-4, 2, -12, 4, -20, NAN, 7, -32),
             0, 0);
        same("prelu", device, floats[t], tn_prelu(tn_select(tn_select(x, 0, 0), 0, 0), one),
             NUMBERS(-4, 2), 0, 0);
    }
    ck_assert_int_gt(checks_made, 30);
}
END_TEST

START_TEST(third_powers)
{
    EACH_FLOAT(device, t, "pow_scalar")
    {
        TN_SCOPE;
        tn_tensor *x = put(device, floats[t], TN_SHAPE(4), NUMBERS(-2, 0, 3, -INFINITY),
                           (enum layout)layout);
        same("pow_scalar", device, floats[t], tn_pow_scalar(x, 3), NUMBERS(-8, 0, 27, -INFINITY), 0,
             0);
    }
    ck_assert_int_gt(checks_made, 20);
}
END_TEST

START_TEST(bounds_may_be_what_is_written)
{
    EACH_FLOAT(device, t, "clamp_tensor")
    {
        TN_SCOPE;
        tn_tensor *x = put(device, floats[t], TN_SHAPE(4), NUMBERS(-2, 0, 3, NAN),
                           (enum layout)layout),
                  *low = put(device, floats[t], TN_SHAPE(1), NUMBERS(-1), DENSE),
                  *high = put(device, floats[t], TN_SHAPE(4), NUMBERS(1, 1, -4, 1), DENSE);
        same("clamp_tensor", device, floats[t], tn_clamp_tensor(x, low, high),
             NUMBERS(-1, 0, -4, NAN), 0, 0);
        for (int i = 0; i < 2; i++) { /* with a bound of NaN the result is NaN */
            tn_tensor *odd = put(device, floats[t], TN_SHAPE(1), NUMBERS(NAN), DENSE);
            same("clamp_tensor", device, floats[t],
                 i ? tn_clamp_tensor(x, low, odd) : tn_clamp_tensor(x, odd, high),
                 NUMBERS(NAN, NAN, NAN, NAN), 0, 0);
        }
        there(tn_clamp_tensor_(x, low, x));
        same("clamp_tensor", device, floats[t], x, NUMBERS(-2, 0, 3, NAN), 0, 0);
        there(tn_clamp_tensor_(x, x, high));
        same("clamp_tensor", device, floats[t], x, NUMBERS(-2, 0, -4, NAN), 0, 0);
    }
    ck_assert_int_gt(checks_made, 30);
}
END_TEST

START_TEST(a_square_becomes_a_line)
{
    static const double differences[6] = { -3, -0.5, 0, 0.25, 2, INFINITY };
    EACH_DEVICE(device)
    for (int beta = 0; beta < 2; beta++) {
        TN_SCOPE;
        tn_smooth_l1_loss_options smooth = TN_SMOOTH_L1_LOSS_OPTIONS;
        tn_huber_loss_options huber = TN_HUBER_LOSS_OPTIONS;
        tn_tensor *x = put(device, TN_F64, TN_SHAPE(6), differences, DENSE), *gx,
                  *zero = put(device, TN_F64, TN_SHAPE(1), NUMBERS(0), DENSE), *y;
        smooth.reduction = huber.reduction = "none";
        smooth.beta = beta;
        huber.delta = 2;
        same("smooth_l1_loss", device, TN_F64,
             tn_smooth_l1_loss(x, zero, smooth.reduction, smooth.beta),
             beta ? NUMBERS(2.5, 0.125, 0, 0.03125, 1.5, INFINITY)
                  : NUMBERS(3, 0.5, 0, 0.25, 2, INFINITY),
             4, 0);
        same("huber_loss", device, TN_F64, tn_huber_loss(x, zero, huber.reduction, huber.delta),
             NUMBERS(4, 0.125, 0, 0.03125, 2, INFINITY), 4, 0);
        ok(tn_tensor_set_requires_grad(x, true));
        smooth.reduction = "mean";
        y = tn_smooth_l1_loss(x, zero, smooth.reduction, smooth.beta);
        ok(tn_grad(&y, NULL, 1, &x, &gx, 1, NULL));
        same("smooth_l1_loss", device, TN_F64, tn_mul_scalar(gx, 6),
             beta ? NUMBERS(-1, -0.5, 0, 0.25, 1, 1) : NUMBERS(-1, -1, 0, 1, 1, 1), 4, 0);
    }
}
END_TEST

/* Elementwise losses with each reduction (none, sum, mean), in every layout, with inputs that
 * broadcast, with more elements than one thread computes at once, with one element and with none.
 */
enum { LOSSES = 9 };
static double loss_of(int loss, double x, double t, double s)
{
    double d = x - t, size = fabs(d);
    switch (loss) {
    case 0: return d * d;
    case 1: return size;
    case 2: return size < 0.5 ? d * d / (2 * 0.5) : size - 0.5 / 2;
    case 3: return size;
    case 4: return size < 2 ? d * d / 2 : 2 * (size - 1);
    case 5: return log1p(exp(-t * x));
    case 6: return fmax(0, 0.25 - s * d);
    case 7: return exp(x) - t * x;
    default: return x - t * log(x + 1e-8);
    }
}

static tn_tensor *lost(int loss, tn_tensor *x, tn_tensor *t, tn_tensor *s, const char *reduction)
{
    tn_mse_loss_options mse = TN_MSE_LOSS_OPTIONS;
    tn_l1_loss_options l1 = TN_L1_LOSS_OPTIONS;
    tn_smooth_l1_loss_options smooth = TN_SMOOTH_L1_LOSS_OPTIONS;
    tn_huber_loss_options huber = TN_HUBER_LOSS_OPTIONS;
    tn_soft_margin_loss_options soft = TN_SOFT_MARGIN_LOSS_OPTIONS;
    tn_margin_ranking_loss_options margin = TN_MARGIN_RANKING_LOSS_OPTIONS;
    tn_poisson_nll_loss_options poisson = TN_POISSON_NLL_LOSS_OPTIONS;
    mse.reduction = l1.reduction = smooth.reduction = huber.reduction = soft.reduction =
        margin.reduction = poisson.reduction = reduction;
    smooth.beta = loss == 2 ? 0.5 : 0;
    huber.delta = 2;
    margin.margin = 0.25;
    poisson.log_input = loss == 7;
    switch (loss) {
    case 0: return tn_mse_loss(x, t, mse.reduction);
    case 1: return tn_l1_loss(x, t, l1.reduction);
    case 2:
    case 3: return tn_smooth_l1_loss(x, t, smooth.reduction, smooth.beta);
    case 4: return tn_huber_loss(x, t, huber.reduction, huber.delta);
    case 5: return tn_soft_margin_loss(x, t, soft.reduction);
    case 6: return tn_margin_ranking_loss(x, t, s, margin.reduction, margin.margin);
    default: return tn_poisson_nll_loss(x, t, poisson.reduction, poisson.log_input);
    }
}

START_TEST(losses_are_added_up_as_they_come)
{
    enum { ROWS = 131, WIDE = 260 }; /* more than two pieces, the last one cut short */
    double *x = room(ROWS * WIDE), *t = room(ROWS * WIDE), *s = room(WIDE);
    double *each = room(ROWS * WIDE);
    EACH_DEVICE(device)
    for (int type = 0; type < 2; type++)
        for (int loss = 0; loss < LOSSES; loss++)
            for (int layout = 0; layout < LAYOUTS; layout++)
                for (int narrow = 0; narrow < 3;
                     narrow++) { /* the target: whole, a row, a column */
                    TN_SCOPE;
                    tn_dtype dtype = floats[type];
                    int64_t rows = layout == DENSE ? ROWS : 3;
                    double sum = 0;
                    tn_tensor *a, *b, *c;
                    numbers(x, rows * WIDE, loss == 8 ? 0.1 : -3, 3, dtype);
                    numbers(t, rows * WIDE, -3, 3, dtype);
                    numbers(s, WIDE, -1, 1, dtype);
                    for (int64_t i = 0; i < rows * WIDE; i++) {
                        int64_t of = narrow == 0 ? i : narrow == 1 ? i % WIDE : i / WIDE;
                        each[i] = loss_of(loss, x[i], t[of], s[i % WIDE]);
                        sum += each[i];
                    }
                    a = put(device, dtype, TN_SHAPE(rows, WIDE), x, (enum layout)layout);
                    b = narrow == 0   ? put(device, dtype, TN_SHAPE(rows, WIDE), t, DENSE)
                        : narrow == 1 ? put(device, dtype, TN_SHAPE(WIDE), t, (enum layout)layout)
                                      : put(device, dtype, TN_SHAPE(rows, 1), t, DENSE);
                    c = put(device, dtype, TN_SHAPE(WIDE), s, DENSE);
                    same("none", device, dtype, lost(loss, a, b, c, "none"), each, 16, 16);
                    same("sum", device, dtype, lost(loss, a, b, c, "sum"), &sum, 64, 0);
                    sum /= (double)(rows * WIDE);
                    same("mean", device, dtype, lost(loss, a, b, c, "mean"), &sum, 64, 0);
                    /* the first input may be the one that broadcasts */
                    if (loss == 0 && narrow > 0)
                        same("mean", device, dtype, lost(0, b, a, c, "mean"), &sum, 64, 0);
                }
    ck_assert_int_gt(checks_made, 300);
}
END_TEST

START_TEST(losses_of_one_number_and_of_none)
{
    EACH_DEVICE(device)
    for (int loss = 0; loss < LOSSES; loss++) {
        TN_SCOPE;
        tn_tensor *one = put(device, TN_F32, (tn_ints){ NULL, 0 }, NUMBERS(2), DENSE),
                  *none = put(device, TN_F32, TN_SHAPE(0, 3), NUMBERS(0), DENSE),
                  *odd = put(device, TN_F32, TN_SHAPE(3), NUMBERS(1, NAN, 2), DENSE);
        double expected = loss_of(loss, 2, 2, 2);
        same("sum", device, TN_F32, lost(loss, one, one, one, "sum"), &expected, 4, 0);
        same("mean", device, TN_F32, lost(loss, one, one, one, "mean"), &expected, 4, 0);
        same("sum", device, TN_F32, lost(loss, none, one, one, "sum"), NUMBERS(0), 0, 0);
        same("mean", device, TN_F32, lost(loss, none, none, one, "mean"), NUMBERS(NAN), 0, 0);
        ck_assert_int_eq(tn_tensor_numel(lost(loss, none, none, none, "none")), 0);
        same("mean", device, TN_F32, lost(loss, odd, one, one, "mean"), NUMBERS(NAN), 0, 0);
        ck_assert_ptr_null(
            lost(loss, none, put(device, TN_F32, TN_SHAPE(2), NUMBERS(1, 2), DENSE), one, "sum"));
        tn_error_clear();
    }
}
END_TEST

START_TEST(equal_steps_meet_both_ends)
{
    enum { COUNT = 1003 };
    double *expected = room(COUNT);
    EACH_DEVICE(device)
    for (int t = 0; t < 2; t++) {
        TN_SCOPE;
        tn_tensor *like = put(device, floats[t], TN_SHAPE(1), NUMBERS(0), DENSE), *y;
        for (int i = 0; i < COUNT; i++)
            expected[i] = stored(-1.5 + 4.7 * i / (COUNT - 1), floats[t]);
        y = tn_linspace(like, -1.5, 3.2, COUNT, floats[t]);
        same("linspace", device, floats[t], y, expected, 2, 4);
        ck_assert(get(y)[0] == -1.5 && get(y)[COUNT - 1] == stored(3.2, floats[t]));
        same("linspace", device, floats[t], tn_linspace(like, 7, 9, 1, floats[t]), NUMBERS(7), 0,
             0);
        ck_assert_int_eq(tn_tensor_numel(tn_linspace(like, 7, 9, 0, floats[t])), 0);
    }
}
END_TEST

static void is_like(tn_tensor *y, tn_dtype dtype, double value)
{
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_dtype(y), dtype);
    ck_assert_double_eq(get(y)[0], value);
}

START_TEST(new_tensors_have_the_dtype_of_like)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *wide = tn_tensor_full(TN_SHAPE(1), 0, TN_F64, device);
        tn_tensor *whole = tn_tensor_full(TN_SHAPE(1), 0, TN_I64, device);
        is_like(tn_full(wide, TN_SHAPE(2), 3), TN_F64, 3);
        is_like(tn_full(whole, TN_SHAPE(2), 3), TN_I64, 3);
        is_like(tn_eye(wide, 2), TN_F64, 1);
        is_like(tn_eye(whole, 2), TN_I64, 1);
        is_like(tn_linspace(wide, 2, 3, 2), TN_F64, 2);
        is_like(tn_full(TN_NONE, TN_SHAPE(2), 3), TN_F32, 3);
        /* the numbers decide, as they do without `like` */
        is_like(tn_arange(wide, 1, 3), TN_I64, 1);
        is_like(tn_full(whole, TN_SHAPE(2), 0.5, TN_F32), TN_F32, 0.5);
        ck_assert_ptr_null(tn_linspace(whole, 0, 1, 2));
        ck_assert_int_eq(tn_error_code(), TN_ERR_TYPE);
        tn_error_clear();
        is_like(tn_full(whole, TN_SHAPE(2), 2.5), TN_I64, 2); /* as in PyTorch */
    }
}
END_TEST

START_TEST(ones_stand_where_the_index_points)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_one_hot_options o = TN_ONE_HOT_OPTIONS;
        tn_tensor *x = put(device, TN_I64, TN_SHAPE(2, 1), NUMBERS(2, 0), DENSE), *y;
        o.classes = 4;
        y = tn_one_hot(x, o.classes);
        same("one_hot", device, TN_I64, y, NUMBERS(0, 0, 1, 0, 1, 0, 0, 0), 0, 0);
        ck_assert_int_eq(tn_tensor_ndim(y), 3);
        same("one_hot", device, TN_I64, tn_one_hot(x), NUMBERS(0, 0, 1, 1, 0, 0), 0, 0);
        o.classes = 2;
        ck_assert_ptr_null(tn_one_hot(x, o.classes));
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "smaller than classes: 2, of 2 classes"));
        tn_error_clear();
        ck_assert_ptr_null(tn_one_hot(tn_neg(x)));
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "must be non-negative, not -2"));
        tn_error_clear();
    }
}
END_TEST

START_TEST(rows_are_put_where_one_index_says)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_index_put_options o = TN_INDEX_PUT_OPTIONS;
        tn_tensor *x = put(device, TN_F32, TN_SHAPE(3, 2), NUMBERS(1, 2, 3, 4, 5, 6), DENSE),
                  *row = put(device, TN_F32, TN_SHAPE(2), NUMBERS(7, 8), DENSE),
                  *index = put(device, TN_I64, TN_SHAPE(2), NUMBERS(-1, 0), DENSE),
                  *twice = put(device, TN_I64, TN_SHAPE(2, 1), NUMBERS(1, -2), DENSE), *y;
        same("index_put", device, TN_F32, tn_index_put(x, row, &index, 1, o.accumulate),
             NUMBERS(7, 8, 3, 4, 7, 8), 0, 0);
        o.accumulate = true;
        same("index_put", device, TN_F32, tn_index_put(x, row, &twice, 1, o.accumulate),
             NUMBERS(1, 2, 17, 20, 5, 6), 0, 0);
        index = put(device, TN_I64, TN_SHAPE(2), NUMBERS(-4, 0), DENSE);
        y = tn_index_put(x, row, &index, 1, o.accumulate);
        ck_assert(y == NULL || tn_tensor_copy_out(y, room(6), 24) != TN_OK);
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "out of bounds"));
        tn_error_clear();
    }
}
END_TEST

static tn_status squared(tn_tensor *y, tn_tensor **out)
{
    out[0] = y != NULL ? tn_mul(y, y) : NULL;
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status strided(void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    return squared(tn_slice(in[0], 1, 1, INT64_MIN, 3), out);
}

static tn_status crossing(void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    return squared(tn_diagonal(in[0], -1, 2, 0), out);
}

static tn_status bent(void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    return squared(tn_huber_loss(in[0], tn_mul_scalar(in[0], 3)), out);
}

static tn_status smooth(void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    return squared(tn_smooth_l1_loss(in[0], tn_mul_scalar(in[0], 3)), out);
}

START_TEST(gradients_of_views_and_bends_can_be_derived_again)
{
    tn_status (*const codes[])(void *, tn_tensor *const *, tn_tensor **) = { strided, crossing,
                                                                             bent, smooth };
    double values[48];
    numbers(values, 48, -1, 1, TN_F64);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from(values, TN_F64, TN_SHAPE(3, 8, 2));
        ok(tn_tensor_set_requires_grad(x, true));
        ck_assert_msg(tn_gradcheck(codes[i], NULL, &x, 1, 1, 0, 0) == TN_OK, "%zu: %s", i,
                      tn_error_text());
        ck_assert_msg(tn_gradgradcheck(codes[i], NULL, &x, 1, 1, 0, 0) == TN_OK, "%zu: %s", i,
                      tn_error_text());
    }
}
END_TEST

START_TEST(products_that_leave_the_range_of_float32)
{
    enum { COUNT = 200000 };
    double *values = room(COUNT), expected = 1;
    TN_SCOPE;
    tn_tensor *x;
    for (int i = 0; i < COUNT; i++)
        values[i] = i % 2 ? 2 : 0.5; /* partial products of a lane get very small or large */
    x = put(tn_default_device(), TN_F32, TN_SHAPE(COUNT), values, DENSE);
    same("prod", tn_default_device(), TN_F32, tn_prod(tn_narrow(x, 0, 0, 900)), &expected, 0, 0);
    for (int i = 0; i < COUNT; i++)
        values[i] = -0.7;
    x = put(tn_default_device(), TN_F32, TN_SHAPE(COUNT), values, DENSE);
    ck_assert(get(tn_prod(x))[0] == 0);
    values[COUNT - 1] = NAN;
    x = put(tn_default_device(), TN_F32, TN_SHAPE(COUNT), values, DENSE);
    ck_assert(isnan(get(tn_prod(x))[0]));
    values[COUNT - 1] = INFINITY; /* 0 times infinity */
    x = put(tn_default_device(), TN_F32, TN_SHAPE(COUNT), values, DENSE);
    ck_assert(isnan(get(tn_prod(x))[0]));
}
END_TEST

/* Reductions and running sums and products of contiguous rows, with lengths just below and above
 * those of vectors and blocks. */
START_TEST(rows_of_all_lengths)
{
    static const int64_t lengths[] = { 1, 3, 15, 16, 17, 63, 64, 65, 320, 1000, 4097 }, last = 1;
    enum { ROWS = 7, MOST = 4097 };
    double *x = room(ROWS * MOST), *sums = room(ROWS * MOST), *products = room(ROWS * MOST);
    static const tn_dtype types[] = { TN_F32, TN_F64, TN_BF16, TN_I64 };
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (int t = 0; t < 4; t++) {
            TN_SCOPE;
            int64_t n = lengths[k];
            double all[ROWS], most[ROWS], least[ROWS], product[ROWS];
            tn_sum_options s = TN_SUM_OPTIONS;
            tn_amax_options a = TN_AMAX_OPTIONS;
            tn_amin_options b = TN_AMIN_OPTIONS;
            tn_prod_options p = TN_PROD_OPTIONS;
            const tn_device *device = tn_default_device();
            tn_tensor *in;
            s.dims = a.dims = b.dims = p.dims = (tn_ints){ &last, 1 };
            for (int64_t r = 0; r < ROWS; r++) {
                all[r] = 0;
                product[r] = 1;
                most[r] = -INFINITY;
                least[r] = INFINITY;
                for (int64_t i = 0; i < n; i++) {
                    int64_t at = r * n + i;
                    x[at] = i % 11 == r ? -2 : i % 13 == r ? 2 : (i % 2 ? 1 : -1);
                    if (i >= 20 && (i % 11 == r || i % 13 == r))
                        x[at] = 1;
                    sums[at] = all[r] += x[at];
                    products[at] = product[r] *= x[at];
                    most[r] = fmax(most[r], x[at]);
                    least[r] = fmin(least[r], x[at]);
                }
            }
            in = put(device, types[t], TN_SHAPE(ROWS, n), x, DENSE);
            same("amax", device, types[t], tn_amax(in, a.dims), most, 0, 0);
            same("amin", device, types[t], tn_amin(in, b.dims), least, 0, 0);
            same("prod", device, types[t], tn_prod(in, p.dims), product, 0, 0);
            if (types[t] == TN_BF16)
                continue; /* these need more bits */
            same("sum", device, types[t], tn_sum(in, s.dims), all, 0, 0);
            same("cumsum", device, types[t], tn_cumsum(in, 1), sums, 0, 0);
            same("cumprod", device, types[t], tn_cumprod(in, 1), products, 0, 0);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t i = n; i-- > 0;)
                    sums[r * n + i] = x[r * n + i] + (i < n - 1 ? sums[r * n + i + 1] : 0);
            same("cumsum", device, types[t], tn_cumsum(in, 1, true), sums, 0, 0);
        }
    ck_assert_int_gt(checks_made, 10000);
}
END_TEST

START_TEST(the_same_bits_whatever_the_threads)
{
    enum { ROWS = 700, WIDE = 150 };
    double *x = room(ROWS * WIDE), *first[8 + LOSSES] = { NULL };
    static const int64_t last = 1;
    numbers(x, ROWS * WIDE, -1.2, 1.2, TN_F32);
    for (int threads = 1; threads <= 4; threads *= 2) {
        TN_SCOPE;
        tn_tensor *in, *results[8 + LOSSES];
        ok(tn_set_num_threads(threads));
        in = put(tn_default_device(), TN_F32, TN_SHAPE(ROWS, WIDE), x, DENSE);
        results[0] = tn_sum(in, TN_INTS(last));
        results[1] = tn_prod(in);
        results[2] = tn_cumsum(in, 1);
        results[3] = tn_cumprod(in, 1);
        results[4] = tn_cast(in, TN_F16);
        results[5] = tn_huber_loss(in, tn_flip(in, TN_INTS(0)));
        results[6] = tn_linspace(in, 0, 1, ROWS * WIDE);
        results[7] = tn_clamp_tensor(in, tn_neg(in), tn_flip(in, TN_INTS(0)));
        for (int i = 0; i < LOSSES; i++)
            results[8 + i] = lost(i, i == 8 ? tn_exp(in) : in, tn_flip(in, TN_INTS(0)), in, "mean");
        for (int i = 0; i < 8 + LOSSES; i++) {
            double *got = get(results[i]);
            if (threads == 1)
                first[i] = got;
            else
                ck_assert_msg(
                    memcmp(got, first[i], (size_t)tn_tensor_numel(results[i]) * sizeof *got) == 0,
                    "%d: %d threads", i, threads);
        }
    }
}
END_TEST

/* Every float16, to float32 and back; and numbers around halves of its steps. */
START_TEST(float16_there_and_back)
{
    enum { ALL = 65536 };
    static uint16_t bits[ALL], back[ALL];
    TN_SCOPE;
    tn_tensor *half, *wide;
    double *seen;
    for (int i = 0; i < ALL; i++)
        bits[i] = (uint16_t)i;
    half = tn_tensor_from(bits, TN_F16, TN_SHAPE(ALL));
    wide = tn_cast(half, TN_F32);
    ok(tn_tensor_copy_out(tn_cast(wide, TN_F16), back, sizeof back));
    seen = get(wide);
    for (int i = 0; i < ALL; i++) {
        int exponent = i >> 10 & 31, fraction = i & 1023;
        double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                     : ldexp(fraction, -24);
        double value = i & 0x8000 ? -size : size;
        ck_assert_msg(seen[i] == value || (value != value && seen[i] != seen[i]), "%04x: %g", i,
                      seen[i]);
        if (value == value)
            ck_assert_msg(back[i] == i, "%04x became %04x", i, back[i]);
        else /* a quiet NaN of the same sign */
            ck_assert_msg(back[i] == (i | 0x200), "%04x became %04x", i, back[i]);
    }
    half = tn_cast(put(tn_default_device(), TN_F32, TN_SHAPE(6),
                       NUMBERS(1.00048828125, 1.00146484375, 65519.99, 65520, 0x1p-25, 0x1.8p-25),
                       DENSE),
                   TN_F16);
    same("cast", tn_default_device(), TN_F16, half,
         NUMBERS(1, 1.001953125, 65504, INFINITY, 0, 0x1p-24), 0, 0);
}
END_TEST

RUN_SUITE("decomposed", prelu_takes_its_weights_from_the_channel, third_powers,
          bounds_may_be_what_is_written, a_square_becomes_a_line, losses_are_added_up_as_they_come,
          losses_of_one_number_and_of_none, equal_steps_meet_both_ends,
          new_tensors_have_the_dtype_of_like, ones_stand_where_the_index_points,
          rows_are_put_where_one_index_says, gradients_of_views_and_bends_can_be_derived_again,
          products_that_leave_the_range_of_float32, rows_of_all_lengths,
          the_same_bits_whatever_the_threads, float16_there_and_back)
