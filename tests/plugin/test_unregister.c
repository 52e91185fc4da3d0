/* SPDX-License-Identifier: MIT
 *
 * A program removes a contribution that it registered: the name is free again, and objects that
 * were made with it keep working. */
#include "tests/base/suite.h"

static tn_tensor *same(tn_module *self, tn_tensor *x)
{
    ++*(int64_t *)tn_module_user(self);
    return x;
}

static int64_t calls[2];
static const tn_layer_def first = { TN_HEAD(tn_layer_def), .name = "Taken", .forward = same,
                                    .user = &calls[0] };
static const tn_layer_def second = { TN_HEAD(tn_layer_def), .name = "Taken", .forward = same,
                                     .user = &calls[1] };

START_TEST(a_layer_is_taken_back_and_its_modules_keep_it)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(1), TN_F32, tn_device_find("meta"));
    ck_assert_int_eq(tn_register(&first), TN_OK);
    tn_module *old = tn_module_new("Taken()");
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_layer_def, "Taken"), TN_OK);
    ck_assert_ptr_null(tn_module_new("Taken()"));
    expect_failure(TN_ERR_KEY, "Taken");
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_layer_def, "Taken"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "tn_unregister: no layer \"Taken\" is registered");
    ck_assert_int_eq(tn_register(&second), TN_OK);
    tn_module *fresh = tn_module_new("Taken()");
    ck_assert_ptr_nonnull(tn_module_call(old, x));
    ck_assert_ptr_nonnull(tn_module_call(fresh, x));
    ck_assert(calls[0] == 1 && calls[1] == 1);
    tn_module_drop(old);
    tn_module_drop(fresh);
    tn_plugin_report report;
    for (int64_t i = 0; i < tn_plugin_count(); i++)
        if (tn_plugin_report_at(i, &report) == TN_OK && strcmp(report.file, "(program)") == 0)
            ck_assert_int_eq(report.contributions, 1);
}
END_TEST

static uint64_t begin(void *user, const tn_op_event *event)
{
    (void)event;
    ++*(int64_t *)user;
    return 0;
}

START_TEST(an_observer_hears_nothing_any_more)
{
    TN_SCOPE;
    static int64_t heard;
    static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "heard",
                                              .user = &heard, .op_begin = begin };
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(1), TN_F32, tn_device_find("meta"));
    ck_assert_int_eq(tn_register(&observer), TN_OK);
    ck_assert_ptr_nonnull(tn_relu(x));
    ck_assert_int_ge(heard, 1);
    heard = 0;
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_observer_def, "heard"), TN_OK);
    ck_assert_ptr_nonnull(tn_relu(x));
    ck_assert_int_eq(heard, 0);
}
END_TEST

START_TEST(what_is_not_the_programs_stays)
{
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_layer_def, "Linear"), TN_ERR_REFUSED);
    expect_failure(TN_ERR_REFUSED, "layer \"Linear\" belongs to the plugin \"tenon.layers\"");
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_op_def, "relu"), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED,
                   "operators, kernels and backends stay until the process ends");
    ck_assert_int_eq(tn_unregister(999, "x"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "no contribution \"x\"");
    ck_assert_ptr_nonnull(tn_registry_find(TN_KIND_tn_layer_def, "Linear"));
}
END_TEST

START_TEST(a_layer_cannot_be_leaf_and_through)
{
    tn_layer_def both = first;
    both.flags = TN_LAYER_LEAF | TN_LAYER_THROUGH;
    ck_assert_int_eq(tn_register(&both), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE,
                   "flags: both TN_LAYER_LEAF and TN_LAYER_THROUGH; expected at most one");
    both.flags = TN_LAYER_LEAF;
    ck_assert_int_eq(tn_register(&both), TN_OK);
    const tn_layer_def *sequential = (const tn_layer_def *)tn_registry_find(TN_KIND_tn_layer_def,
                                                                            "Sequential");
    ck_assert(sequential != NULL && (sequential->flags & TN_LAYER_THROUGH) != 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_layer_is_taken_back_and_its_modules_keep_it,
        an_observer_hears_nothing_any_more,
        what_is_not_the_programs_stays,
        a_layer_cannot_be_leaf_and_through,
        NULL,
    };
    return suite_run("unregister", tests);
}
