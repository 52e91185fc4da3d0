/* SPDX-License-Identifier: MIT
 *
 * Comparisons and nan_to_num, element by element. */
#include <math.h>

#include "op/elementwise.h"

/* An option that was not given has the value NaN. The default is 0 for elements that are NaN, and
 * the largest finite number of the dtype, with the same sign, for infinite elements. */
static tn_status run_nan_to_num(const tn_call *call)
{
    const tn_nan_to_num_options *o = call->options;
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    double most = dtype == TN_F16    ? 65504.0
                  : dtype == TN_BF16 ? 0x1.fep127
                  : dtype == TN_F64  ? 1.7976931348623157e308
                                     : 0x1.fffffep127;
    const double numbers[3] = { isnan(o->nan) ? 0 : o->nan, isnan(o->posinf) ? most : o->posinf,
                                isnan(o->neginf) ? -most : o->neginf };
    return tn__elementwise_run(call, TN__EW_nan_to_num, 1, numbers);
}

static const tn_kernel_def kernels[] = {
    TN__BINARY_KERNEL(eq, TN__NUMBERS_BOOL, TN__EW_eq),
    TN__BINARY_KERNEL(ne, TN__NUMBERS_BOOL, TN__EW_ne),
    TN__BINARY_KERNEL(lt, TN__REALS_BOOL &TN__NOT_U64, TN__EW_lt),
    TN__BINARY_KERNEL(le, TN__REALS_BOOL &TN__NOT_U64, TN__EW_le),
    TN__BINARY_KERNEL(gt, TN__REALS_BOOL &TN__NOT_U64, TN__EW_gt),
    TN__BINARY_KERNEL(ge, TN__REALS_BOOL &TN__NOT_U64, TN__EW_ge),
    TN__KERNEL_OVER(nan_to_num, TN__FLOATS, 1),
};
TN__KERNEL_TABLE(compare);
