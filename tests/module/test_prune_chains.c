/* SPDX-License-Identifier: MIT
 *
 * Several pruning methods one after the other, ranks and masks: the other part of PyTorch's
 * test_pruning.py, by the names of its tests. */
#include <math.h>

#include "tests/module/prune.h"

/* ---- several methods ------------------------------------------------------------------------- */

START_TEST(test_multiple_pruning_calls)
{
    TN_SCOPE;
    tn_module *m = parsed("Conv3d(2, 2, 2)");
    double first[32], second[32];
    char text[64];

    ok(tn_prune(m, "weight", "L1Unstructured(amount=0.1)"));
    values_of(tn_module_get(m, "weight_mask"), first, 32);
    ok(tn_prune(m, "weight", "LnStructured(amount=0.3, n=2, dim=1)"));
    ck_assert_int_eq(tn_prune_count(m, "weight"), 2);
    values_of(tn_module_get(m, "weight_mask"), second, 32);
    for (int i = 0; i < 32; i++)
        ck_assert(second[i] <= first[i]);
    ok(tn_prune(m, "weight", "RandomUnstructured(amount=0.1)"));
    ck_assert_int_eq(tn_prune_count(m, "weight"), 3);
    ck_assert_int_eq(tn_prune_method(m, "weight", 1, text, sizeof text), 36);
    ck_assert_str_eq(text, "LnStructured(amount=0.3, n=2, dim=1)");
    tn_prune_method(m, "weight", 2, text, sizeof text);
    ck_assert_str_eq(text, "RandomUnstructured(amount=0.1)");
    ck_assert_int_eq(tn_prune_method(m, "weight", 3, NULL, 0), -1);
    expect_failure(TN_ERR_INDEX, "expected that of one of the 3 methods");
    ok(tn_prune_remove(m, "weight"));
    ck_assert_int_eq(tn_prune_count(m, "weight"), 0);
    tn_module_drop(m);
}
END_TEST

START_TEST(test_pruning_container)
{
    tn_module *m = parsed("Linear(4, 3)");

    ck_assert_int_eq(tn_prune(m, "weight", "weight=L1Unstructured(amount=2), bias=Identity"),
                     TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "can only add methods acting on the parameter named 'weight', "
                                 "found 'bias'");
    ck_assert_int_eq(tn_prune(m, "weight", "Identity, 10"), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "int is not a pruning method");
    ck_assert_int_eq(tn_prune(m, "weight", "None"), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_int_eq(tn_prune(m, "weight", "Linear(3, 4)"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "no plugin provides a pruning method \"Linear\"");
    ck_assert_int_eq(tn_prune(m, "weight", ""), TN_ERR_FORMAT);
    tn_error_clear();
    ck_assert(!tn_is_pruned(m));
    expect_names(m, "weight bias ");
    ok(tn_prune(m, "weight", "Identity, weight=L1Unstructured(amount=2)"));
    ck_assert_int_eq(tn_prune_count(m, "weight"), 2);
    TN_PROVES("PRN-010");
    tn_module_drop(m);
}
END_TEST

START_TEST(test_pruning_container_compute_mask)
{
    TN_SCOPE;
    tn_tensor *t = tensor(TN_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8);
    tn_tensor *mask = tensor(TN_SHAPE(2, 4), 1, 1, 1, 0, 1, 1, 0, 1);

    expect(tn_prune_mask(t, mask, TN_NONE, "L1Unstructured(amount=2)"), 0, 0, 1, 0, 1, 1, 0, 1);
    expect(tn_prune_mask(t, mask, TN_NONE, "LnStructured(amount=1, n=2, dim=0)"), 0, 0, 0, 0, 1, 1,
           0, 1);
    t = tensor(TN_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8);
    expect(tn_prune_mask(t, mask, TN_NONE, "LnStructured(amount=1, n=2, dim=1)"), 0, 1, 1, 0, 0, 1,
           0, 1);
}
END_TEST

START_TEST(test_l1_unstructured_pruning)
{
    TN_SCOPE;
    tn_module *m = holder(tensor(TN_SHAPE(1, 5), 1, -2, 3, -4, 5));

    ok(tn_prune(m, "weight", "L1Unstructured(amount=2)"));
    expect(tn_module_get(m, "weight"), 0, 0, 3, -4, 5);
    ok(tn_prune(m, "weight", "L1Unstructured(amount=2)"));
    expect(tn_module_get(m, "weight"), 0, 0, 0, 0, 5);
    TN_PROVES("PRN-009");
    tn_module_drop(m);
}
END_TEST

START_TEST(test_l1_unstructured_pruning_with_importance_scores)
{
    TN_SCOPE;
    tn_module *m = holder(tensor(TN_SHAPE(1, 5), 1, 2, 3, 4, 5));

    ok(tn_prune_by(m, "weight", "L1Unstructured(amount=2)", tensor(TN_SHAPE(1, 5), 4, 2, 1, 3, 5)));
    expect(tn_module_get(m, "weight"), 1, 0, 0, 4, 5);
    ok(tn_prune_by(m, "weight", "L1Unstructured(amount=2)", tensor(TN_SHAPE(1, 5), 4, 0, 0, 3, 5)));
    expect(tn_module_get(m, "weight"), 0, 0, 0, 0, 5);
    ck_assert_int_eq(tn_prune_by(m, "weight", "Identity", tensor(TN_SHAPE(5), 4, 0, 0, 3, 5)),
                     TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "scores: wrong shape, got [5]; expected [1, 5]");
    tn_module_drop(m);
}
END_TEST

START_TEST(test_unstructured_pruning_same_magnitude)
{
    TN_SCOPE;
    tn_module *m = holder(tensor(TN_SHAPE(3, 3), 1, -1, 1, 1, 1, -1, 1, 1, 1));

    ok(tn_prune(m, "weight", "L1Unstructured(amount=0.2)"));
    ck_assert_int_eq(zeros_of(tn_module_get(m, "weight")), 2);
    TN_PROVES("PRN-007");
    tn_module_drop(m);
}
END_TEST

START_TEST(test_random_structured_pruning_amount)
{
    TN_SCOPE;
    static const char *const texts[] = { "RandomStructured(amount=5, dim=0)",
                                         "RandomStructured(amount=5, dim=1)",
                                         "RandomStructured(amount=0.34, dim=0)",
                                         "RandomStructured(amount=1)" };
    static const int64_t zeros[] = { 5 * 8, 5 * 12, 4 * 8, 12 };

    for (int i = 0; i < 4; i++) {
        tn_module *m = holder(tn_tensor_full(TN_SHAPE(12, 8), 1.0, TN_F32, NULL));
        double mask[96];
        int64_t whole = 0;

        ok(tn_prune(m, "weight", texts[i]));
        ck_assert_int_eq(zeros_of(tn_module_get(m, "weight_mask")), zeros[i]);
        values_of(tn_module_get(m, "weight_mask"), mask, 96);
        for (int64_t k = 0; k < (i % 2 == 0 ? 12 : 8); k++)
            whole += i % 2 == 0 ? mask[k * 8] == 0 && mask[k * 8 + 7] == 0
                                : mask[k] == 0 && mask[88 + k] == 0;
        ck_assert_int_eq(whole * (i % 2 == 0 ? 8 : 12), zeros[i]);
        tn_module_drop(m);
    }
}
END_TEST

START_TEST(test_ln_structured_pruning)
{
    TN_SCOPE;
    tn_tensor *t = tensor(TN_SHAPE(2, 3), 1, 5, 2, 3, 0, -4);
    static const char *const orders[] = { "1", "2", "inf", "-inf", "'fro'" };

    expect(tn_prune_mask(t, TN_NONE, TN_NONE, "LnStructured(amount=1, n=1, dim=1)"), 0, 1, 1, 0, 1,
           1);
    expect(tn_prune_mask(t, TN_NONE, TN_NONE, "LnStructured(amount=1, n=-inf, dim=1)"), 1, 0, 1, 1,
           0, 1);
    expect(tn_prune_mask(t, TN_NONE, TN_NONE, "LnStructured(amount=1, n=inf, dim=0)"), 1, 1, 1, 0,
           0, 0);
    expect(tn_prune_mask(t, TN_NONE, TN_NONE, "LnStructured(amount=1, n=0, dim=-2)"), 1, 1, 1, 0, 0,
           0);
    for (int i = 0; i < 5; i++) {
        char text[96];

        tn_snprint(text, sizeof text, "LnStructured(amount=0.3, n=%s, dim=-1)", orders[i]);
        ck_assert_int_eq(zeros_of(tn_prune_mask(t, TN_NONE, TN_NONE, text)), 2);
    }
    ck_assert_ptr_null(tn_prune_mask(t, TN_NONE, TN_NONE, "LnStructured(amount=1, n='x', dim=0)"));
    expect_failure(TN_ERR_VALUE, "n: not the order of a norm");
    ck_assert_ptr_null(tn_prune_mask(t, TN_NONE, TN_NONE, "LnStructured(amount=1, n=2, dim=2)"));
    expect_failure(TN_ERR_INDEX, "dim: out of range, got 2");
    ck_assert_ptr_null(tn_prune_mask(t, TN_NONE, TN_NONE, "LnStructured(amount=1, n=2, dim=-3)"));
    expect_failure(TN_ERR_INDEX, "dim: out of range, got -3");
    ck_assert_ptr_null(tn_prune_mask(tensor(TN_SHAPE(3), 1, 2, 3), TN_NONE, TN_NONE,
                                     "RandomStructured(amount=1, dim=0)"));
    expect_failure(TN_ERR_VALUE, "no slices, got 1 dimension; expected at least 2");
    TN_PROVES("PRN-008");
}
END_TEST

START_TEST(test_ln_structured_pruning_importance_scores)
{
    TN_SCOPE;
    tn_module *m = holder(tensor(TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6));

    ok(tn_prune_by(m, "weight", "LnStructured(amount=1, n=2, dim=1)",
                   tensor(TN_SHAPE(2, 3), 9, 1, 5, 9, 1, 5)));
    expect(tn_module_get(m, "weight"), 1, 0, 3, 4, 0, 6);
    tn_module_drop(m);
}
END_TEST

START_TEST(test_global_pruning)
{
    TN_SCOPE;
    tn_module *m = holder(tensor(TN_SHAPE(1, 5), 1, 2, 3, 4, 5));
    tn_module *n = holder(tensor(TN_SHAPE(1, 3), -1, -2, -3));
    tn_prune_target both[] = { { m, "weight", NULL }, { n, "weight", NULL } };
    char text[32];

    ok(tn_prune_global(both, 2, "L1Unstructured(amount=2)"));
    expect(tn_module_get(m, "weight"), 0, 2, 3, 4, 5);
    expect(tn_module_get(n, "weight"), 0, -2, -3);
    tn_prune_method(n, "weight", 0, text, sizeof text);
    ck_assert_str_eq(text, "CustomFromMask");
    ok(tn_prune_global(both, 2, "L1Unstructured(amount=2)"));
    expect(tn_module_get(m, "weight"), 0, 0, 3, 4, 5);
    expect(tn_module_get(n, "weight"), 0, 0, -3);
    ck_assert_int_eq(tn_prune_global(both, 2, "RandomStructured(amount=1, dim=0)"), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "only one method of the type \"unstructured\" is supported");
    ck_assert_int_eq(tn_prune_global(both, 2, "Identity, Identity"), TN_ERR_TYPE);
    tn_error_clear();
    ok(tn_prune_global(NULL, 0, "Identity"));
    TN_PROVES("PRN-012");
    tn_module_drop(m);
    tn_module_drop(n);
}
END_TEST

START_TEST(test_global_pruning_importance_scores)
{
    TN_SCOPE;
    tn_module *m = holder(tensor(TN_SHAPE(1, 5), 1, 2, 3, 4, 5));
    tn_module *n = holder(tensor(TN_SHAPE(1, 3), -1, -2, -3));
    tn_prune_target both[] = { { m, "weight", tensor(TN_SHAPE(1, 5), 4, 2, 1, 3, 5) },
                               { n, "weight", tensor(TN_SHAPE(1, 3), 1, 2, 0.5) } };

    ok(tn_prune_global(both, 2, "L1Unstructured(amount=3)"));
    expect(tn_module_get(m, "weight"), 1, 2, 0, 4, 5);
    expect(tn_module_get(n, "weight"), 0, -2, 0);
    tn_module_drop(m);
    tn_module_drop(n);
}
END_TEST

START_TEST(test_custom_from_mask_pruning)
{
    TN_SCOPE;
    tn_module *m = holder(tensor(TN_SHAPE(2, 2), 1, 2, 3, 4));

    ok(tn_prune_from_mask(m, "weight", tensor(TN_SHAPE(2, 2), 0, 1, 1, 0)));
    expect(tn_module_get(m, "weight_mask"), 0, 1, 1, 0);
    ok(tn_prune_from_mask(m, "weight", tn_tensor_full(TN_SHAPE(2, 2), true, TN_BOOL, NULL)));
    expect(tn_module_get(m, "weight_mask"), 0, 1, 1, 0);
    ok(tn_prune_from_mask(m, "weight", tensor(TN_SHAPE(2, 2), 1, 0, 1, 1)));
    expect(tn_module_get(m, "weight_mask"), 0, 0, 1, 0);
    ck_assert_int_eq(tn_prune_count(m, "weight"), 3);
    ck_assert_int_eq(tn_prune_from_mask(m, "weight", tensor(TN_SHAPE(4), 1, 0, 1, 1)),
                     TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "mask: wrong shape, got [4]; expected [2, 2]");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_multiple_pruning_calls,
        test_pruning_container,
        test_pruning_container_compute_mask,
        test_l1_unstructured_pruning,
        test_l1_unstructured_pruning_with_importance_scores,
        test_unstructured_pruning_same_magnitude,
        test_random_structured_pruning_amount,
        test_ln_structured_pruning,
        test_ln_structured_pruning_importance_scores,
        test_global_pruning,
        test_global_pruning_importance_scores,
        test_custom_from_mask_pruning,
        NULL,
    };

    return suite_run("prune chains", tests);
}
