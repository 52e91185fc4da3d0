/* SPDX-License-Identifier: MIT
 *
 * softmax and nll_loss, also with targets out of range. */
#include "tests/gpu/kernels.h"

START_TEST(softmax_sums_to_one_along_any_dimension)
{
    for (int dim = -1; dim < 3; dim++)
        for (int dtype = TN_F16; dtype <= TN_F64; dtype++) {
            if (!(tried & TN_BIT(dtype)))
                continue;
            const tn_softmax_options options = { sizeof options, dim };
            struct array *x = array_new(&here, (tn_dtype)dtype, 3, shape3,
                                        (enum layout)((dim + 1) % LAYOUTS));
            struct array *y = array_new(&here, (tn_dtype)dtype, 3, shape3, TURNED);
            struct array *l = array_new(&here, (tn_dtype)dtype, 3, shape3, GAPS);
            struct array *g = array_new(&here, (tn_dtype)dtype, 3, shape3, PLAIN);
            struct array *const in[] = { x }, *const out[] = { y }, *const logs[] = { l };
            struct array *const back[] = { y, l }, *const grads[] = { g };
            int64_t inner = dim == 0 ? 35 : dim == 1 ? 7 : 1, length = shape3[dim < 0 ? 2 : dim];

            numbers(x, 1);
            CALL(&here, "softmax", &options, in, out);
            CALL(&here, "log_softmax", &options, in, logs);
            array_down(y);
            array_down(l);
            CALL(&here, "log_softmax_grad", &options, back, grads);
            array_down(g);
            for (int64_t i = 0; i < COUNT3; i++) {
                int64_t first = i / (inner * length) * (inner * length) + i % inner;
                double total = 0, gy = 0, want;

                for (int64_t j = 0; j < length; j++) {
                    total += exp(array_get(x, first + j * inner));
                    gy += array_get(y, first + j * inner);
                }
                want = exp(array_get(x, i)) / total;
                close_to(array_get(y, i), want, tolerance((tn_dtype)dtype), "softmax", i);
                close_to(array_get(l, i), log(want), 2 * tolerance((tn_dtype)dtype), "log_softmax",
                         i);
                close_to(array_get(g, i), array_get(y, i) - exp(array_get(l, i)) * gy,
                         4 * tolerance((tn_dtype)dtype), "log_softmax_grad", i);
            }
            array_drop(x);
            array_drop(y);
            array_drop(l);
            array_drop(g);
        }
}
END_TEST

static const int64_t classes[] = { 6, 4 };
static const int64_t six[] = { 6 };
static const int64_t targets[] = { 3, -100, 0, 1, 1, 2 };

static void try_loss(tn_dtype dtype, const char *reduction)
{
    const tn_nll_loss_options options = { sizeof options, reduction, -100 };
    const tn_nll_loss_grad_options back_options = { sizeof back_options, 4, reduction, -100 };
    bool each = strcmp(reduction, "none") == 0, mean = strcmp(reduction, "mean") == 0;
    struct array *x = array_new(&here, dtype, 2, classes, TURNED),
                 *t = array_new(&here, TN_I64, 1, six, GAPS);
    struct array *y = array_new(&here, dtype, each, six, each ? GAPS : PLAIN),
                 *total = array_new(&here, dtype, 0, NULL, PLAIN);
    struct array *gx = array_new(&here, dtype, 2, classes, TURNED);
    struct array *const in[] = { x, t }, *const out[] = { y, total },
                        *const back[] = { y, t, total }, *const grads[] = { gx };
    double sum = 0;

    numbers(x, 1);
    for (int i = 0; i < 6; i++)
        array_set(t, i, (double)targets[i]);
    array_up(t);
    CALL(&here, "nll_loss", &options, in, out);
    ck_assert_int_eq(here.backend->stream_sync(here.device, here.stream), TN_OK);
    array_down(y);
    array_down(total);
    close_to(array_get(total, 0), 5, 0, "total", 0);
    for (int i = 0; i < 6; i++) {
        double v = targets[i] < 0 ? 0 : -array_get(x, i * 4 + targets[i]);

        sum += v;
        if (each)
            close_to(array_get(y, i), v, 0, "nll_loss", i);
    }
    if (!each)
        close_to(array_get(y, 0), mean ? sum / 5 : sum, tolerance(dtype), "nll_loss", 0);
    /* the loss itself serves as gy */
    CALL(&here, "nll_loss_grad", &back_options, back, grads);
    array_down(gx);
    for (int64_t i = 0; i < 24; i++) {
        double gy = array_get(y, each ? i / 4 : 0) / (mean ? 5 : 1);
        close_to(array_get(gx, i), targets[i / 4] == i % 4 ? -gy : 0, tolerance(dtype),
                 "nll_loss_grad", i);
    }
    array_drop(x);
    array_drop(t);
    array_drop(y);
    array_drop(total);
    array_drop(gx);
}

START_TEST(losses_and_their_derivatives)
{
    for (int dtype = TN_F16; dtype <= TN_F64; dtype++) {
        if (!(tried & TN_BIT(dtype)))
            continue;
        try_loss((tn_dtype)dtype, "mean");
        try_loss((tn_dtype)dtype, "sum");
        try_loss((tn_dtype)dtype, "none");
    }
}
END_TEST

START_TEST(a_target_out_of_range_is_said_at_the_next_synchronisation_and_once)
{
    const tn_nll_loss_options options = { sizeof options, "mean", -100 };
    struct array *x = array_new(&here, TN_F32, 2, classes, PLAIN),
                 *t = array_new(&here, TN_I64, 1, six, PLAIN);
    struct array *y = array_new(&here, TN_F32, 0, NULL, PLAIN),
                 *total = array_new(&here, TN_F32, 0, NULL, PLAIN);
    struct array *const in[] = { x, t }, *const out[] = { y, total };
    float loss;

    numbers(x, 1);
    for (int i = 0; i < 6; i++)
        array_set(t, i, i == 2 ? 4 : 0);
    array_up(t);
    CALL(&here, "nll_loss", &options, in, out);
    ck_assert_int_eq(here.backend->stream_sync(here.device, here.stream), TN_ERR_INDEX);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "nll_loss on"));
    ck_assert_ptr_nonnull(
        strstr(tn_error_text(), "target[2]: out of range, got 4; expected 0 to 3"));
    tn_error_clear();
    ck_assert_int_eq(here.backend->stream_sync(here.device, here.stream), TN_OK);
    /* reading the result waits for the stream, too */
    CALL(&here, "nll_loss", &options, in, out);
    ck_assert_int_eq(
        direct_copy_out(here.backend, here.device, here.stream, &loss, y->memory, 0, sizeof loss),
        TN_ERR_INDEX);
    tn_error_clear();
    ck_assert_int_eq(here.backend->stream_sync(here.device, here.stream), TN_OK);
    ck_assert(call_into(&here, "nll_loss", &(tn_nll_loss_options){ sizeof options, "average", 0 },
                        in, 2, out, 2) == TN_ERR_VALUE);
    tn_error_clear();
    array_drop(x);
    array_drop(t);
    array_drop(y);
    array_drop(total);
}
END_TEST

/* For a slow device, as in kernels_reduction.c. */
START_TEST(groups_add_losses_up)
{
    try_loss(TN_F32, "mean");
}
END_TEST

void add_loss(TCase *to, bool slow)
{
    if (slow) {
        tcase_add_test(to, groups_add_losses_up);
        return;
    }
    tcase_add_test(to, softmax_sums_to_one_along_any_dimension);
    tcase_add_test(to, losses_and_their_derivatives);
    tcase_add_test(to, a_target_out_of_range_is_said_at_the_next_synchronisation_and_once);
}
