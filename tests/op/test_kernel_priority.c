/* SPDX-License-Identifier: MIT
 *
 * Which of several kernels is kept and runs (rule 22). */
#include "core/op/internal.h"
#include "tests/op/marked_kernel.h"

START_TEST(the_kernel_of_higher_priority_wins_and_carries_the_flag) /* rule 22 */
{
    TN_SCOPE;
    static const tn_op_def def = { TEST_OP("test_choice") };
    static tn__plugin first = { .id = "a", .file = "/plugins/a.so", .active = 1 },
                      second = { .id = "b", .file = "/plugins/b.so", .active = 1 };
    tn_kernel_def base = MARK("test_choice", "cpu", "base", 1),
                  same = MARK("test_choice", "cpu", "same", 2),
                  higher = MARK("test_choice", "cpu", "higher", 3),
                  earlier = MARK("test_choice", "cpu", "earlier", 4);
    char route[200];

    ck_assert_int_eq(tn_register(&def), TN_OK);
    ck_assert_ptr_null(call_op("test_choice", VEC(1)));
    FAILED(TN_ERR_NOT_IMPLEMENTED,
           "operator \"test_choice\": no kernel on device type \"cpu\" for float32, and no "
           "decomposition; available: no kernel at all");
    ck_assert_int_eq(tn__op_kernel_add(&base, &second), TN_OK);
    HAS(call_op("test_choice", VEC(0)), 1);
    ck_assert_ptr_null(call_op("test_choice", tn_cast(VEC(0), TN_F64)));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "available: base on cpu (float32)");

    earlier.dtypes = TN_BIT(TN_F64) | TN_BIT(TN_F32);
    ck_assert_int_eq(
        tn__op_kernel_add(&same, &(tn__plugin){ .id = "c", .file = "/plugins/c.so", .active = 1 }),
        TN_ERR_REFUSED);
    FAILED(TN_ERR_REFUSED, "/plugins/c.so");
    ck_assert_int_eq(
        tn__op_kernel_add(&same, &(tn__plugin){ .id = "c", .file = "/plugins/c.so", .active = 1 }),
        TN_ERR_REFUSED);
    FAILED(TN_ERR_REFUSED, "/plugins/b.so");
    HAS(call_op("test_choice", VEC(0)), 1);
    same.name = NULL;
    ck_assert_int_eq(
        tn__op_kernel_add(&same, &(tn__plugin){ .id = "c", .file = "/plugins/c.so", .active = 1 }),
        TN_ERR_REFUSED);
    FAILED(TN_ERR_REFUSED, "kernel (unnamed) for test_choice");

    higher.priority = 10;
    ck_assert_int_eq(tn__op_kernel_add(&higher, &first), TN_ERR_REFUSED);
    FAILED(TN_ERR_REFUSED, "TN_KERNEL_OVERRIDE");
    higher.flags = TN_KERNEL_OVERRIDE;
    ck_assert_int_eq(tn__op_kernel_add(&higher, &first), TN_OK);
    HAS(call_op("test_choice", VEC(0)), 3);
    tn_op_route(tn_op_find("test_choice", 0), "cpu", TN_F32, route, sizeof route);
    ck_assert_str_eq(route, "kernel higher (/plugins/a.so)");

    /* the first by path stays, in any order of registration */
    ck_assert_int_eq(tn__op_kernel_add(&earlier, &first), TN_OK);
    ck_assert_int_eq(second.report.refused, 1);
    tn_op_route(tn_op_find("test_choice", 0), "cpu", TN_F64, route, sizeof route);
    ck_assert_str_eq(route, "kernel earlier (/plugins/a.so)");
    ck_assert_int_eq(tn_register(&def), TN_ERR_REFUSED);
    FAILED(TN_ERR_REFUSED, "operator \"test_choice\": revision 1: already defined");
}
END_TEST

/* A stranger's kernel never takes the place of one of the device's plugin without the flag. */
START_TEST(the_plugin_of_the_device_keeps_its_kernel)
{
    TN_SCOPE;
    static const tn_op_def def = { TEST_OP("test_owner") }, tied = { TEST_OP("test_tied") };
    static tn__plugin stranger = { .id = "a", .file = "/a.so", .active = 1 };
    const tn_device *cpu = tn_device_find("cpu"); /* loads the plugins */
    tn__plugin *owner = cpu != NULL ? tn__device_type_find("cpu")->plugin : NULL;
    const int64_t refused = owner != NULL ? owner->report.refused : -1;
    tn_kernel_def low = MARK("test_owner", "cpu", "low", 1);
    tn_kernel_def own = MARK("test_owner", "cpu", "own", 2);
    tn_kernel_def first = MARK("test_tied", "cpu", "first", 3);
    tn_kernel_def its = MARK("test_tied", "cpu", "its", 4);

    ck_assert_ptr_nonnull(owner);
    tn_register(&def);
    tn_register(&tied);
    low.priority = -1;
    ck_assert_int_eq(tn__op_kernel_add(&low, &stranger), TN_OK);
    ck_assert_int_eq(tn__op_kernel_add(&own, owner), TN_OK);
    HAS(call_op("test_owner", VEC(0)), 2);
    low.priority = 5;
    ck_assert_int_eq(tn__op_kernel_add(&low, &stranger), TN_ERR_REFUSED);
    FAILED(TN_ERR_REFUSED, "TN_KERNEL_OVERRIDE");
    HAS(call_op("test_owner", VEC(0)), 2);
    low.flags = TN_KERNEL_OVERRIDE;
    low.priority = 0;
    ck_assert_int_eq(tn__op_kernel_add(&low, &stranger), TN_ERR_REFUSED);
    FAILED(TN_ERR_REFUSED, "by the plugin of the device, with the same priority");
    low.priority = 5;
    ck_assert_int_eq(tn__op_kernel_add(&low, &stranger), TN_OK);
    HAS(call_op("test_owner", VEC(0)), 1);

    /* a tie, in both orders of registration */
    ck_assert_int_eq(tn__op_kernel_add(&first, &stranger), TN_OK);
    HAS(call_op("test_tied", VEC(0)), 3);
    ck_assert_int_eq(tn__op_kernel_add(&its, owner), TN_OK);
    HAS(call_op("test_tied", VEC(0)), 4);
    ck_assert_int_eq(stranger.report.refused, 1);
    ck_assert_int_eq(tn__op_kernel_add(&first, &stranger), TN_ERR_REFUSED);
    FAILED(TN_ERR_REFUSED, "by the plugin of the device");
    HAS(call_op("test_tied", VEC(0)), 4);
    ck_assert_int_eq(owner->report.refused, refused);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel priority");
    TCase *tests = tcase_create("kernel priority");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_kernel_of_higher_priority_wins_and_carries_the_flag);
    tcase_add_test(tests, the_plugin_of_the_device_keeps_its_kernel);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
