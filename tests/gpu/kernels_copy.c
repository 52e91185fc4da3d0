/* SPDX-License-Identifier: MIT
 *
 * copy, fill and narrow_grad. */
#include "tests/gpu/kernels.h"

START_TEST(copies_convert_between_all_types)
{
    for (int from = 0; from <= TN_U64; from++)
        for (int to = 0; to <= TN_U64; to++) {
            if (!(tried & TN_BIT(to)))
                continue;
            struct array *x = array_new(&here, (tn_dtype)from, 3, shape3,
                                        (enum layout)((from + to) % LAYOUTS));
            struct array *y = array_new(&here, (tn_dtype)to, 3, shape3, (enum layout)(to % 3));
            struct array *const in[] = { x }, *const out[] = { y };
            bool narrow = to == TN_BOOL;

            for (int64_t i = 0; i < COUNT3; i++)
                array_set(x, i, from == TN_BOOL ? (double)(i % 2) : (double)(i * 3 % 100));
            array_up(x);
            CALL(&here, "copy", NULL, in, out);
            array_down(y);
            for (int64_t i = 0; i < COUNT3; i++) {
                double want = array_get(x, i);
                close_to(array_get(y, i), narrow ? want != 0 : want, 0, tn_dtype_name((tn_dtype)to),
                         i);
            }
            array_drop(x);
            array_drop(y);
        }
}
END_TEST

START_TEST(rounding_to_short_floats_is_to_nearest_even)
{
    static const struct {
        double from;
        uint16_t half, brain;
    } rows[] = { { 1.0 + 1.0 / 2048, 0x3c00, 0x3f80 }, /* a tie goes to even */
                 { 1.0 + 3.0 / 2048, 0x3c02, 0x3f80 },
                 { 1.00390625, 0x3c04, 0x3f80 }, /* for bfloat16 a tie */
                 { 1.01171875, 0x3c0c, 0x3f82 },
                 { 65519, 0x7bff, 0x4780 },
                 { 65520, 0x7c00, 0x4780 },
                 { -5.9604644775390625e-08, 0x8001, 0xb380 },
                 { 2.98023223876953125e-08, 0x0000, 0x3300 },
                 { INFINITY, 0x7c00, 0x7f80 } };
    const int64_t shape[] = { 9 };
    struct array *x = array_new(&here, TN_F32, 1, shape, PLAIN),
                 *h = array_new(&here, TN_F16, 1, shape, PLAIN);
    struct array *b = array_new(&here, TN_BF16, 1, shape, PLAIN);
    struct array *const in[] = { x }, *const half[] = { h }, *const brain[] = { b };

    for (int i = 0; i < 9; i++)
        array_set(x, i, rows[i].from);
    array_up(x);
    CALL(&here, "copy", NULL, in, half);
    CALL(&here, "copy", NULL, in, brain);
    array_down(h);
    array_down(b);
    for (int i = 0; i < 9; i++) {
        ck_assert_msg(((uint16_t *)h->host)[i] == rows[i].half, "%.17g as float16: %04x",
                      rows[i].from, ((uint16_t *)h->host)[i]);
        ck_assert_msg(((uint16_t *)b->host)[i] == rows[i].brain, "%.17g as bfloat16: %04x",
                      rows[i].from, ((uint16_t *)b->host)[i]);
    }
    array_drop(x);
    array_drop(h);
    array_drop(b);
}
END_TEST

START_TEST(fill_writes_its_view_and_nothing_else)
{
    for (int dtype = 0; dtype <= TN_U64; dtype++)
        for (int layout = 0; layout < REPEATED; layout++) {
            const tn_fill_options options = { sizeof options,
                                              TN_SCALAR_INIT_INT(dtype == TN_BOOL ? 1 : 3) };
            struct array *y = array_new(&here, (tn_dtype)dtype, 3, shape3, (enum layout)layout);
            struct array *const in[] = { y }, *const out[] = { y };
            size_t others = 0;

            array_up(y);
            CALL(&here, "fill", &options, in, out);
            array_down(y);
            for (int64_t i = 0; i < COUNT3; i++) {
                close_to(array_get(y, i), tn_scalar_as_float(options.value), 0, "fill", i);
                memset(array_at(y, i), 0, (size_t)y->item);
            }
            for (size_t i = 0; i < y->bytes; i++)
                others += y->host[i] == 0x5a;
            ck_assert_uint_eq(others, y->bytes - (size_t)(COUNT3 * y->item));
            array_drop(y);
        }
}
END_TEST

START_TEST(narrow_grad_is_zero_around_its_place)
{
    const int64_t inner[] = { 3, 2, 7 };
    const tn_narrow_grad_options options = { sizeof options, { shape3, 3 }, 1, 2 };
    struct array *gy = array_new(&here, TN_F32, 3, inner, TURNED),
                 *gx = array_new(&here, TN_F32, 3, shape3, GAPS);
    struct array *const in[] = { gy }, *const out[] = { gx };

    numbers(gy, 3);
    CALL(&here, "narrow_grad", &options, in, out);
    array_down(gx);
    for (int64_t i = 0; i < COUNT3; i++) {
        int64_t row = i / 7 % 5;
        double want = row == 2 || row == 3 ? array_get(gy, i / 35 * 14 + (row - 2) * 7 + i % 7) : 0;
        close_to(array_get(gx, i), want, 0, "narrow_grad", i);
    }
    array_drop(gy);
    array_drop(gx);
}
END_TEST

void add_copy(TCase *to, bool slow)
{
    if (slow)
        return;
    tcase_add_test(to, copies_convert_between_all_types);
    tcase_add_test(to, rounding_to_short_floats_is_to_nearest_even);
    tcase_add_test(to, fill_writes_its_view_and_nothing_else);
    tcase_add_test(to, narrow_grad_is_zero_around_its_place);
}
