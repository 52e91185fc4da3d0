/* SPDX-License-Identifier: MIT
 *
 * Element types: names, sizes, promotion, conversions on the host. */
#include "tests/tensor/fixture.h"
#include "tests/tensor/promotion.h"

START_TEST(every_type_has_a_name_that_parses_back)
{
    tn_dtype back;

    for (int i = 0; i < TN_DTYPE_COUNT; i++) {
        ok(tn_dtype_parse(tn_dtype_name((tn_dtype)i), &back));
        ck_assert_int_eq(back, i);
        ck_assert_uint_ge(tn_dtype_size((tn_dtype)i), 1);
    }
    ok(tn_dtype_parse("float", &back));
    ck_assert_int_eq(back, TN_F32);
    ok(tn_dtype_parse("bf16", &back));
    ck_assert_int_eq(back, TN_BF16);
    ck_assert_str_eq(tn_dtype_name(TN_DTYPE_COUNT), "?");
    ck_assert_uint_eq(tn_dtype_size(TN_C128), 16);
    ck_assert_uint_eq(tn_dtype_size(TN_DTYPE_AUTO), 0);
}
END_TEST

START_TEST(an_unknown_name_is_answered_with_the_nearest_and_the_list)
{
    tn_dtype out = TN_I8;

    ck_assert_int_eq(tn_dtype_parse("flaot32", &out), TN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(tn_error_last()->message, "float32?"));
    said("complex128");
    ck_assert_int_eq(out, TN_I8);
    fails(tn_dtype_parse(NULL, &out), TN_ERR_VALUE);
}
END_TEST

START_TEST(promotion_is_that_of_pytorch)
{
    for (int a = 0; a < 12; a++)
        for (int b = 0; b < 12; b++)
            ck_assert_msg(tn_dtype_promote((tn_dtype)a, (tn_dtype)b) == (tn_dtype)promotion[a][b],
                          "%s and %s", tn_dtype_name((tn_dtype)a), tn_dtype_name((tn_dtype)b));
    ck_assert(!tn_failed());
}
END_TEST

START_TEST(storage_only_types_promote_with_themselves_alone)
{
    ck_assert_int_eq(tn_dtype_promote(TN_U32, TN_U32), TN_U32);
    ck_assert_int_eq(tn_dtype_promote(TN_F8_E5M2, TN_F8_E5M2), TN_F8_E5M2);
    ck_assert(!tn_failed());
    ck_assert_int_eq(tn_dtype_promote(TN_U32, TN_F32), TN_DTYPE_AUTO);
    said("uint32 is for storage only");
    ck_assert_int_eq(tn_dtype_promote(TN_F32, TN_DTYPE_AUTO), TN_DTYPE_AUTO);
    tn_error_clear();
}
END_TEST

START_TEST(the_default_dtype_is_float32_and_floating)
{
    ck_assert_int_eq(tn_default_dtype(), TN_F32);
    ok(tn_set_default_dtype(TN_F64));
    ck_assert_int_eq(tn_default_dtype(), TN_F64);
    fails(tn_set_default_dtype(TN_I32), TN_ERR_TYPE);
    fails(tn_set_default_dtype((tn_dtype)99), TN_ERR_TYPE);
    ck_assert_int_eq(tn_default_dtype(), TN_F64);
}
END_TEST

START_TEST(the_dtype_of_a_thread_nests)
{
    ck_assert_int_eq(tn_dtype_begin(TN_F64), TN_OK);
    ck_assert_int_eq(tn_dtype_begin(TN_C64), TN_OK);
    ck_assert_int_eq(tn_default_dtype(), TN_C64);
    ck_assert_int_eq(tn_dtype_begin(TN_DTYPE_AUTO), TN_OK);
    ck_assert_int_eq(tn_dtype_begin(TN_I32), TN_OK);
    ck_assert_int_eq(tn_default_dtype(), TN_C64);
    for (int i = 0; i < 3; i++)
        tn_dtype_end();
    ck_assert_int_eq(tn_default_dtype(), TN_F64);
    tn_dtype_end();
    ck_assert_int_eq(tn_default_dtype(), TN_F32);
    ck_assert(!tn_failed());
    tn_dtype_end();
    ck_assert_int_eq(tn_error_code(), TN_ERR_RUNTIME);
    tn_error_clear();
    for (int i = 0; i < 1025; i++)
        ck_assert_int_eq(tn_dtype_begin(TN_F64), i < 1024 ? TN_OK : TN_ERR_RUNTIME);
    for (int i = 0; i < 1025; i++)
        tn_dtype_end();
    ck_assert_int_eq(tn_default_dtype(), TN_F32);
    tn_error_clear();
}
END_TEST

START_TEST(half_and_bfloat16_survive_the_way_through_double)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        double half = tn__convert_f16_value((uint16_t)bits),
               brain = tn__convert_bf16_value((uint16_t)bits);

        if (!isnan(half))
            ck_assert_uint_eq(tn__convert_f16_bits(half), bits);
        else
            ck_assert(isnan(tn__convert_f16_value(tn__convert_f16_bits(half))));
        if (!isnan(brain))
            ck_assert_uint_eq(tn__convert_bf16_bits(brain), bits);
    }
    for (uint32_t bits = 0; bits < 256; bits++) {
        double a = tn__convert_f8_e4m3_value((uint8_t)bits),
               b = tn__convert_f8_e5m2_value((uint8_t)bits);

        if (!isnan(a))
            ck_assert_uint_eq(tn__convert_f8_e4m3_bits(a), bits);
        if (!isnan(b))
            ck_assert_uint_eq(tn__convert_f8_e5m2_bits(b), bits);
    }
}
END_TEST

START_TEST(rounding_is_to_nearest_even)
{
    ck_assert_uint_eq(tn__convert_f16_bits(1.0), 0x3c00);
    ck_assert_uint_eq(tn__convert_f16_bits(1.0 + 0x1p-11), 0x3c00);     /* a tie: to even, down */
    ck_assert_uint_eq(tn__convert_f16_bits(1.0 + 3 * 0x1p-11), 0x3c02); /* a tie: to even, up */
    ck_assert_uint_eq(tn__convert_f16_bits(1.0 + 0x1.002p-11), 0x3c01);
    ck_assert_uint_eq(tn__convert_f16_bits(1.0 + 0x1.000001p-11),
                      0x3c00); /* by way of float32, as PyTorch */
    ck_assert_uint_eq(tn__convert_f16_bits(65504.0), 0x7bff);
    ck_assert_uint_eq(tn__convert_f16_bits(65519.9), 0x7bff);
    ck_assert_uint_eq(tn__convert_f16_bits(65520.0), 0x7c00);
    ck_assert_uint_eq(tn__convert_f16_bits(1e300), 0x7c00);
    ck_assert_uint_eq(tn__convert_f16_bits(0x1p-24), 1);
    ck_assert_uint_eq(tn__convert_f16_bits(0x1p-25), 0);
    ck_assert_uint_eq(tn__convert_f16_bits(-0.0), 0x8000);
    ck_assert_uint_eq(tn__convert_bf16_bits(0x1p127), 0x7f00);
    ck_assert_uint_eq(tn__convert_bf16_bits((double)3.4e38f), 0x7f80);
    ck_assert_uint_eq(tn__convert_bf16_bits(1.00390625), 0x3f80);
    /* float8_e4m3fn has no infinity: 448 is its largest, and what is above becomes that. */
    ck_assert_uint_eq(tn__convert_f8_e4m3_bits(448.0), 0x7e);
    ck_assert_uint_eq(tn__convert_f8_e4m3_bits(464.0), 0x7e);
    ck_assert_uint_eq(tn__convert_f8_e4m3_bits(-465.0), 0xfe);
    ck_assert_uint_eq(tn__convert_f8_e4m3_bits((double)INFINITY), 0x7e);
    ck_assert_uint_eq(tn__convert_f8_e4m3_bits((double)NAN), 0x7f);
    ck_assert_uint_eq(tn__convert_f8_e5m2_bits(57344.0), 0x7b);
    ck_assert_uint_eq(tn__convert_f8_e5m2_bits(61440.0), 0x7c);
}
END_TEST

START_TEST(numbers_are_written_as_the_nearest_of_their_type)
{
    int64_t i;
    uint8_t b;
    uint64_t u;
    float f[2];

    tn__convert_write(&i, TN_I64, TN_SCALAR(1e300));
    ck_assert_int_eq(i, INT64_MAX);
    tn__convert_write(&i, TN_I64, TN_SCALAR((double)NAN));
    ck_assert_int_eq(i, 0);
    tn__convert_write(&u, TN_U64, TN_SCALAR(0x1p63));
    ck_assert_uint_eq(u, (uint64_t)1 << 63);
    tn__convert_write(&b, TN_BOOL, TN_SCALAR(0.25));
    ck_assert_uint_eq(b, 1);
    tn__convert_write(f, TN_C64, TN_SCALAR(2.5));
    ck_assert(f[0] == 2.5f && f[1] == 0.0f);
}
END_TEST

RUN_TESTS("dtype", every_type_has_a_name_that_parses_back,
          an_unknown_name_is_answered_with_the_nearest_and_the_list, promotion_is_that_of_pytorch,
          storage_only_types_promote_with_themselves_alone,
          the_default_dtype_is_float32_and_floating, the_dtype_of_a_thread_nests,
          half_and_bfloat16_survive_the_way_through_double, rounding_is_to_nearest_even,
          numbers_are_written_as_the_nearest_of_their_type)
