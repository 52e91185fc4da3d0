/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of quantization. */
#ifndef TN_TESTS_MODULE_QUANTIZE_H
#define TN_TESTS_MODULE_QUANTIZE_H

#include "tests/op/suite.h"

#include <tenon/quantize.h>

#include "tests/module/suite.h"
#include "tests/spec/proves.h"

TN_ATTR(unused) static tn_module *eval_of(const char *spec)
{
    tn_module *net = parsed(spec);

    ck_assert_int_eq(tn_module_train(net, false), TN_OK);
    return net;
}

TN_ATTR(unused) static tn_tensor *called(tn_module *net, tn_tensor *x)
{
    tn_tensor *y = tn_module_call(net, x);

    ck_assert_msg(y != NULL, "%s", tn_error_text());
    return y;
}

/* Power of `wanted` over that of the error, in dB. */
TN_ATTR(unused) static double sqnr(tn_tensor *wanted, tn_tensor *got)
{
    tn_tensor *error = tn_sub(wanted, got);

    return 10 *
           log10(tn_item(tn_sum(tn_mul(wanted, wanted))) / tn_item(tn_sum(tn_mul(error, error))));
}

TN_ATTR(unused) static void same_bits(tn_tensor *a, tn_tensor *b)
{
    ck_assert(tn_tensor_dtype(a) == tn_tensor_dtype(b));
    ck_assert_float_eq(tn_item(tn_amax(tn_abs(tn_sub(a, b)))), 0);
}

TN_ATTR(unused) static void quantized(tn_module *net, const char *scheme, int64_t expected)
{
    tn_quantize_report report;

    ck_assert_msg(tn_module_quantize(net, scheme, NULL, 0, &report) == TN_OK, "%s",
                  tn_error_text());
    ck_assert_int_eq(report.quantized, expected);
    tn_quantize_report_free(&report);
}

#endif
