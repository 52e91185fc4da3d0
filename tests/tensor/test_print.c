/* SPDX-License-Identifier: MIT
 *
 * Tensors as text, against NumPy. */
#include "tests/tensor/fixture.h"
#include "tests/tensor/numpy_text.h"

#include <locale.h>

#include <tenon/print.h>
#include <tenon/runtime.h>

static char text[1 << 16];

/* The room has no plugins; a static build has all. */
static void open_room(void)
{
    const char *is_static = getenv("TN_STATIC");

    room_open();
    if (is_static == NULL || strcmp(is_static, "yes") != 0)
        ck_assert_msg(tn_plugin_load(TN_TEST_BUILDDIR "/plugins/.libs/print.so") == TN_OK, "%s",
                      tn_error_text());
}

static unsigned char *bytes_of_case(const struct numpy_case *c, int64_t count)
{
    size_t item = tn_dtype_size(c->dtype), size = (size_t)count * item, given;
    unsigned char *data = calloc(size + 1, 1);
    const char *hex = c->bytes;
    unsigned value;

    if (strcmp(hex, "count") == 0) {
        for (int64_t i = 0; i < count; i++)
            tn__convert_write(data + (size_t)i * item, c->dtype, TN_SCALAR((double)i));
        return data;
    }
    if (strncmp(hex, "repeat ", 7) == 0)
        hex += 7;
    given = strlen(hex) / 2;
    for (size_t i = 0; i < given && i < size; i++) {
        sscanf(hex + 2 * i, "%2x", &value);
        data[i] = (unsigned char)value;
    }
    for (size_t i = given; i < size; i++)
        data[i] = data[i - given];
    return data;
}

static void check_case(const struct numpy_case *c, int index, const tn_device *on)
{
    int64_t count = 1, length;
    unsigned char *data;
    tn_tensor *x;
    char *expected = malloc(strlen(c->text) + 64);
    const char *suffix = "";

    for (int i = 0; i < c->ndim; i++)
        count *= c->shape[i];
    data = bytes_of_case(c, count);
    tn_device_begin(on);
    x = tn_tensor_from(data, c->dtype, (tn_ints){ c->shape, c->ndim });
    tn_device_end();
    if (c->dtype != TN_F32 && c->dtype != TN_I64 && c->dtype != TN_BOOL && c->dtype != TN_C64)
        suffix = " dtype=";
    sprintf(expected, "%s%s%s", c->text, suffix, suffix[0] != '\0' ? tn_dtype_name(c->dtype) : "");
    length = tn_tensor_text(x, text, sizeof text);
    ck_assert_msg(strcmp(text, expected) == 0, "case %d (%s):\n%s\nNumPy:\n%s", index,
                  tn_dtype_name(c->dtype), text, expected);
    ck_assert_int_eq(length, (int64_t)strlen(expected));
    free(expected);
    free(data);
}

START_TEST(the_text_is_numpys)
{
    open_room();
    for (int i = 0; i < (int)(sizeof numpy_cases / sizeof *numpy_cases); i++) {
        TN_SCOPE;
        check_case(&numpy_cases[i], i, NULL);
    }
    room_close();
}
END_TEST

START_TEST(devices_without_host_memory_print_the_same)
{
    open_room();
    for (int i = 0; i < (int)(sizeof numpy_cases / sizeof *numpy_cases); i += 7) {
        TN_SCOPE;
        check_case(&numpy_cases[i], i, device(i % 2 ? "brick" : "vault"));
    }
    room_close();
}
END_TEST

START_TEST(a_comma_decimal_locale_changes_nothing)
{
    static const char *const locales[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
    const char *set = NULL;

    for (int i = 0; i < 4 && set == NULL; i++)
        set = setlocale(LC_ALL, locales[i]);
    if (set == NULL)
        printf("SKIP a_comma_decimal_locale_changes_nothing: no such locale is installed\n");
    open_room();
    tn_tensor_text(tn_tensor_full(TN_SHAPE(2), 0.5, TN_F32, NULL), text, sizeof text);
    ck_assert_str_eq(text, "[0.5 0.5]");
    room_close();
}
END_TEST

START_TEST(a_view_prints_what_it_shows_and_no_values_are_said)
{
    static const float values[6] = { 1, 2, 3, 4, 5, 6 };
    char little[6];
    tn_tensor *x;

    open_room();
    x = tn_tensor_from(values, TN_F32, TN_SHAPE(2, 3));
    tn_tensor_text(tn_tensor_as_strided(x, TN_SHAPE(3, 2), TN_INTS(1, 3), 0), text, sizeof text);
    ck_assert_str_eq(text, "[[1. 4.]\n [2. 5.]\n [3. 6.]]");
    ck_assert_int_eq(tn_tensor_text(x, little, sizeof little), 24);
    ck_assert_str_eq(little, "[[1. ");
    ck_assert_int_eq(tn_tensor_text(x, NULL, 0), 24);
    tn_tensor_text(tn_tensor_empty(TN_SHAPE(2), TN_F32, device("ghost")), text, sizeof text);
    ck_assert_str_eq(text, "(no values: float32[2] on ghost:0)");
    ck_assert_int_eq(tn_tensor_text(NULL, text, sizeof text), -1);
    tn_error_clear();
    tn_tensor_text(tn_tensor_full(TN_SHAPE(2), 0.1, TN_BF16, NULL), text, sizeof text);
    ck_assert_str_eq(text, "[0.1 0.1] dtype=bfloat16");
    tn_tensor_text(tn_tensor_full(TN_SHAPE(1), 448, TN_F8_E4M3, NULL), text, sizeof text);
    ck_assert_str_eq(text, "[448.] dtype=float8_e4m3fn");
    room_close();
}
END_TEST

START_TEST(every_allocation_fails_once)
{
    static const int64_t shape[] = { 40, 40 };
    int64_t length = -1;
    uint64_t n = 0;

    open_room();
    tn_tensor *x = tn_tensor_full((tn_ints){ shape, 2 }, 0.5, TN_F32, NULL);
    ck_assert_int_gt(tn_tensor_text(x, text, sizeof text), 0);
    while (length < 0) {
        tn__memory_fail(++n);
        length = tn_tensor_text(x, text, sizeof text);
        tn__memory_fail(0);
        ck_assert_msg(length > 0 || tn_error_last_code() == TN_ERR_MEMORY, "%s", tn_error_text());
        tn_error_clear();
    }
    ck_assert_uint_gt(n, 5);
    room_close();
}
END_TEST

RUN_TESTS("print", the_text_is_numpys, devices_without_host_memory_print_the_same,
          a_comma_decimal_locale_changes_nothing,
          a_view_prints_what_it_shows_and_no_values_are_said, every_allocation_fails_once)
