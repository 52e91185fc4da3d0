/* SPDX-License-Identifier: MIT
 *
 * Cross entropy on every device, against PyTorch's numbers. The other losses are in
 * tests/oracle/loss.txt. */
#include "tests/backend/backend.h"
#include "tests/backend/loss_reference.h"

static const tn_dtype floats[] = { TN_F32, TN_F64 };

START_TEST(cross_entropy_and_its_gradient_are_those_of_PyTorch)
{
    static const struct {
        const char *reduction;
        double smoothing;
        const double *loss, *gradient;
    } cases[] = { { "mean", 0, reference_mean, reference_grad_mean },
                  { "sum", 0, reference_sum, reference_grad_sum },
                  { "none", 0, reference_none, reference_grad_none },
                  { "mean", 0.1, reference_smooth, reference_grad_smooth } };
    EACH_DEVICE(device)
    for (int t = 0; t < 2; t++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                TN_SCOPE;
                tn_tensor *x = put(device, floats[t], TN_SHAPE(5, 4), reference_x,
                                   (enum layout)layout);
                tn_tensor *target = put(device, TN_I64, TN_SHAPE(5), reference_target,
                                        (enum layout)layout);
                ok(tn_tensor_set_requires_grad(x, true));
                tn_tensor *loss = tn_cross_entropy(x, target, cases[c].reduction, -100,
                                                   cases[c].smoothing);
                same("cross_entropy", device, floats[t], loss, cases[c].loss, 8, 1);
                ok(tn_backward(strcmp(cases[c].reduction, "none") == 0 ? tn_sum(loss) : loss));
                same("its gradient", device, floats[t], tn_tensor_grad(x), cases[c].gradient, 16,
                     1);
            }
}
END_TEST

START_TEST(a_target_out_of_range_is_an_error_that_names_operator_index_and_bound)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *x = put(device, TN_F32, TN_SHAPE(3, 4), (double[12]){ 0 }, DENSE);
        tn_tensor *target = put(device, TN_I64, TN_SHAPE(3), NUMBERS(0, 4, 1), DENSE);
        tn_tensor *loss = tn_cross_entropy(x, target);
        tn_status status = loss ? tn_device_sync(device) : tn_error_code();
        ck_assert_msg(status == TN_ERR_INDEX, "%s: %d, %s", tn_device_name(device), (int)status,
                      tn_error_text());
        ck_assert_msg(strstr(tn_error_text(), "nll_loss") && strstr(tn_error_text(), "4"), "%s: %s",
                      tn_device_name(device), tn_error_text());
        tn_error_clear();
        /* the device continues to work */
        same("add", device, TN_F32, tn_add_scalar(x, 1),
             (double[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 0, 0);
    }
}
END_TEST

RUN_SUITE("loss", cross_entropy_and_its_gradient_are_those_of_PyTorch,
          a_target_out_of_range_is_an_error_that_names_operator_index_and_bound)
