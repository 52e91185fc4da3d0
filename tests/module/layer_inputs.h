/* SPDX-License-Identifier: MIT
 *
 * The inputs of a layer as tests/oracle/layers.txt has them. */
#ifndef TN_TESTS_MODULE_LAYER_INPUTS_H
#define TN_TESTS_MODULE_LAYER_INPUTS_H

#include <ctype.h>

#include "tests/base/suite.h"

/* "float32 2,3 : 1 2 3 4 5 6": dtype, shape, values. The caller drops it. */
static tn_tensor *layer_input(const char *text)
{
    static double numbers[4096];
    char dtype_name[16], shape_text[128];
    int64_t sizes[TN_MAX_DIMS], ndim = 0, count = 0;
    const char *values = strstr(text, " : "), *shape = shape_text;
    tn_dtype dtype;
    ck_assert_ptr_nonnull(values);
    ck_assert_int_eq(sscanf(text, "%15s %127s", dtype_name, shape_text), 2);
    ck_assert_int_eq(tn_dtype_parse(dtype_name, &dtype), TN_OK);
    for (char *end; isdigit((unsigned char)*shape); shape = *end == ',' ? end + 1 : end)
        sizes[ndim++] = strtoll(shape, &end, 10);
    values += 3;
    for (char *end; *values != '\0'; values = end) {
        numbers[count++] = strtod(values, &end);
        while (isspace((unsigned char)*end))
            end++;
    }
    tn_tensor *wide = tn_tensor_from(numbers, TN_F64, (tn_ints){ sizes, ndim });
    return tn_tensor_keep(dtype == TN_F64 ? wide : tn_cast(wide, dtype));
}

#endif
