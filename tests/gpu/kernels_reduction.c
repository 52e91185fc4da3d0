/* SPDX-License-Identifier: MIT
 *
 * Reductions: sum, amax, argmax. */
#include "tests/gpu/kernels.h"

static void try_reduce(tn_dtype dtype, int ndim, const int64_t *shape, enum layout layout,
                       const int64_t *dims, int n_dims, bool keepdim)
{
    const tn_sum_options options = { sizeof options, { dims, n_dims }, keepdim, TN_DTYPE_AUTO };
    bool goes[TN_MAX_DIMS] = { false }, integral = !(FLOATS & TN_BIT(dtype));
    int64_t kept[TN_MAX_DIMS] = { 0 }, outputs = 1;
    int n_kept = 0;
    struct array *x = array_new(&here, dtype, ndim, shape, layout), *s, *m;
    double *sums, *tops;

    for (int i = 0; i < n_dims; i++)
        goes[dims[i] < 0 ? dims[i] + ndim : dims[i]] = true;
    for (int i = 0; i < ndim; i++)
        if (n_dims == 0)
            goes[i] = true;
    for (int i = 0; i < ndim; i++) {
        if (!goes[i] || keepdim)
            kept[n_kept++] = goes[i] ? 1 : shape[i];
        outputs *= goes[i] ? 1 : shape[i];
    }
    s = array_new(&here, integral ? TN_I64 : dtype, n_kept, kept, n_kept > 1 ? TURNED : PLAIN);
    m = array_new(&here, dtype, n_kept, kept, PLAIN);
    sums = calloc((size_t)outputs, sizeof *sums);
    tops = calloc((size_t)outputs, sizeof *tops);
    for (int64_t o = 0; o < outputs; o++)
        tops[o] = -INFINITY;
    numbers(x, 1);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t rest = i, o = 0, step = 1;

        for (int d = ndim - 1; d >= 0; d--) {
            if (!goes[d]) {
                o += rest % shape[d] * step;
                step *= shape[d];
            }
            rest /= shape[d];
        }
        sums[o] += array_get(x, i);
        tops[o] = fmax(tops[o], array_get(x, i));
    }
    {
        struct array *const in[] = { x }, *const sum[] = { s }, *const top[] = { m };

        CALL(&here, "sum", &options, in, sum);
        CALL(&here, "amax", &options, in, top);
    }
    array_down(s);
    array_down(m);
    for (int64_t o = 0; o < outputs; o++) {
        close_to(array_get(s, o), sums[o], 4 * tolerance(dtype), "sum", o);
        close_to(array_get(m, o), tops[o], 0, "amax", o);
    }
    free(sums);
    free(tops);
    array_drop(x);
    array_drop(s);
    array_drop(m);
}

START_TEST(sums_and_largest_ones_over_any_dimensions)
{
    static const int64_t dims[][3] = { { 0 }, { 1 }, { -1 }, { 0, 2 }, { 1, 2 }, { 0, 1, 2 } };
    static const int counts[] = { 1, 1, 1, 2, 2, 3 };

    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int i = 0; i < 6; i++)
            try_reduce(TN_F32, 3, shape3, (enum layout)layout, dims[i], counts[i], i % 2);
    for (int dtype = 0; dtype <= TN_F64; dtype++) {
        if (!(tried & TN_BIT(dtype)))
            continue;
        try_reduce((tn_dtype)dtype, 3, shape3, TURNED, dims[3], 2, false);
        try_reduce((tn_dtype)dtype, 3, shape3, GAPS, NULL, 0, false);
    }
    try_reduce(TN_F32, 1, (const int64_t[]){ 300 }, PLAIN, NULL, 0, true);
    try_reduce(TN_F32, 2, (const int64_t[]){ 5, 300 }, TURNED, (const int64_t[]){ 1 }, 1, false);
    try_reduce(TN_F32, 2, (const int64_t[]){ 5000, 2 }, TURNED, (const int64_t[]){ 1 }, 1, false);
}
END_TEST

START_TEST(a_long_sum_is_cut_into_pieces)
{
    for (int dtype = TN_I32; dtype <= TN_F64; dtype++) {
        if (dtype == TN_F16 || dtype == TN_BF16 || !(tried & TN_BIT(dtype)))
            continue;
        try_reduce((tn_dtype)dtype, 1, (const int64_t[]){ 66001 }, PLAIN, NULL, 0, false);
        try_reduce((tn_dtype)dtype, 2, (const int64_t[]){ 2, 33333 }, TURNED,
                   (const int64_t[]){ 1 }, 1, true);
    }
}
END_TEST

START_TEST(a_long_sum_of_short_floats_adds_up_in_float32)
{
    /* 40000 ones: added in float16 they would stop at 2048 */
    const int64_t shape[] = { 40000 };
    const tn_sum_options options = TN_SUM_OPTIONS;
    struct array *x = array_new(&here, TN_F16, 1, shape, PLAIN),
                 *y = array_new(&here, TN_F16, 0, NULL, PLAIN);
    struct array *const in[] = { x }, *const out[] = { y };

    for (int64_t i = 0; i < 40000; i++)
        array_set(x, i, 1);
    array_up(x);
    CALL(&here, "sum", &options, in, out);
    array_down(y);
    close_to(array_get(y, 0), 40000, 0, "sum", 0);
    array_drop(x);
    array_drop(y);
}
END_TEST

START_TEST(an_empty_sum_is_zero)
{
    const int64_t shape[] = { 2, 0, 3 }, kept[] = { 2, 3 }, dim = 1;
    const tn_sum_options options = { sizeof options, { &dim, 1 }, false, TN_DTYPE_AUTO };
    struct array *x = array_new(&here, TN_F32, 3, shape, PLAIN),
                 *y = array_new(&here, TN_F32, 2, kept, PLAIN);
    struct array *const in[] = { x }, *const out[] = { y };

    array_up(y);
    CALL(&here, "sum", &options, in, out);
    array_down(y);
    for (int i = 0; i < 6; i++)
        close_to(array_get(y, i), 0, 0, "sum", i);
    array_drop(x);
    array_drop(y);
}
END_TEST

START_TEST(argmax_gives_the_first_of_equals_and_nan_is_largest)
{
    const int64_t shape[] = { 3, 600 }, kept[] = { 3 };
    const tn_argmax_options along = { sizeof along, 1, false },
                            all = { sizeof all, INT64_MIN, false };
    struct array *x = array_new(&here, TN_F32, 2, shape, TURNED),
                 *y = array_new(&here, TN_I64, 1, kept, GAPS);
    struct array *z = array_new(&here, TN_I64, 0, NULL, PLAIN);
    struct array *const in[] = { x }, *const out[] = { y }, *const out0[] = { z };

    for (int64_t i = 0; i < 1800; i++)
        array_set(x, i, -5);
    array_set(x, 17, 3);
    array_set(x, 555, 3);
    array_set(x, 600 + 599, NAN);
    array_set(x, 600 + 300, NAN);
    array_up(x);
    CALL(&here, "argmax", &along, in, out);
    CALL(&here, "argmax", &all, in, out0);
    array_down(y);
    array_down(z);
    close_to(array_get(y, 0), 17, 0, "argmax", 0);
    close_to(array_get(y, 1), 300, 0, "argmax", 1);
    close_to(array_get(y, 2), 0, 0, "argmax", 2);
    close_to(array_get(z, 0), 900, 0, "argmax", 0);
    array_drop(x);
    array_drop(y);
    array_drop(z);
}
END_TEST

/* For a slow device (oclgrind): kernels whose work items share memory, one type and layout each. */
START_TEST(groups_reduce_together)
{
    const int64_t dim = 1;

    try_reduce(TN_F32, 2, (const int64_t[]){ 2, 70 }, PLAIN, &dim, 1, false);
    try_reduce(TN_F32, 2, (const int64_t[]){ 2, 7 }, TURNED, &dim, 1, false);
}
END_TEST

void add_reduction(TCase *to, bool slow)
{
    if (slow) {
        tcase_add_test(to, an_empty_sum_is_zero);
        tcase_add_test(to, argmax_gives_the_first_of_equals_and_nan_is_largest);
        tcase_add_test(to, groups_reduce_together);
        return;
    }
    tcase_add_test(to, sums_and_largest_ones_over_any_dimensions);
    tcase_add_test(to, a_long_sum_is_cut_into_pieces);
    tcase_add_test(to, a_long_sum_of_short_floats_adds_up_in_float32);
    tcase_add_test(to, an_empty_sum_is_zero);
    tcase_add_test(to, argmax_gives_the_first_of_equals_and_nan_is_largest);
}
