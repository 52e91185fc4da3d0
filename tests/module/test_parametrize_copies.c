/* SPDX-License-Identifier: MIT
 *
 * Parametrized modules: modes, copies, conversions, states and specs, transfer, optimizers. */
#include "tests/module/parametrize.h"

/* ---- modes, copies, conversion, types -------------------------------------------------------- */

/* test_parametrization_same_training_mode */
START_TEST(the_training_mode_is_that_of_the_module)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)"), *p = own("Double", doubled, NULL);

    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    ck_assert_int_eq(tn_parametrize(m, "weight", p, 0), TN_OK);
    ck_assert(!tn_module_is_training(p));
    ck_assert(!tn_module_is_training(tn_module_find(m, "parametrizations.weight")));
    ck_assert_int_eq(tn_module_train(m, true), TN_OK);
    ck_assert(tn_module_is_training(p));
    TN_PROVES("PRM-008");
    tn_module_drop(p);
    tn_module_drop(m);
}
END_TEST

/* test_deepcopy_after_parametrization, test_type_before_parametrizations */
START_TEST(copies_are_independent_and_conversions_follow)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)"), *copy;

    ck_assert_int_eq(tn_init(tn_module_get(m, "weight"), "ones()"), TN_OK);
    ck_assert_int_eq(with(m, "weight", own("Double", doubled, halved), 0), TN_OK);
    ck_assert_int_eq(with(m, "bias", own("PlusOne", plus_one, minus_one), 0), TN_OK);
    ck_assert_str_eq(tn_module_type(m), "Linear");
    ck_assert(tn_is_parametrized(m, NULL) && tn_is_parametrized(m, "bias"));
    ck_assert(!tn_is_parametrized(m, "foo") && !tn_is_parametrized(m, "no.foo"));
    FINE();
    copy = tn_module_copy(m);
    ck_assert_msg(copy != NULL, "%s", tn_error_text());
    ck_assert_str_eq(printed(copy), printed(m));
    ck_assert_int_eq(tn_module_set(copy, "weight", tn_zeros(TN_SHAPE(2, 2))), TN_OK);
    HAS(tn_module_get(copy, "weight"), 0, 0, 0, 0);
    HAS(tn_module_get(m, "weight"), 1, 1, 1, 1);
    ck_assert_ptr_ne(tn_parametrization(copy, "weight", 0), tn_parametrization(m, "weight", 0));
    ck_assert_int_eq(tn_module_double(copy), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(copy, "weight")), TN_F64);
    ck_assert(tn_module_call(copy, tn_cast(tn_ones(TN_SHAPE(1, 2)), TN_F64)) != NULL);
    ck_assert_int_eq(tn_parametrize_remove(copy, "weight", true), TN_OK);
    ck_assert(tn_is_parametrized(m, "weight") && !tn_is_parametrized(copy, "weight"));
    TN_PROVES("PRM-011", "PRM-013");
    tn_module_drop(copy);
    tn_module_drop(m);
}
END_TEST

/* test_serialization_parametrization: a state, a spec, and a whole module built from it. */
START_TEST(states_and_specs_of_parametrized_modules)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(3, 3), ReLU(), Linear(3, 2))"), *again;
    char spec[1024];

    ck_assert_int_eq(tn_parametrize_with(m, "0.weight", "Orthogonal()"), TN_OK);
    ck_assert_int_eq(tn_parametrize_with(m, "0.weight", "Symmetric()"), TN_OK);
    ck_assert_int_eq(tn_parametrize_with(m, "2.weight", "SpectralNorm(n_power_iterations=2)"),
                     TN_OK);
    ck_assert_int_gt(tn_module_spec(m, spec, sizeof spec), 0);
    again = parsed(spec);
    ck_assert_str_eq(printed(again), printed(m));
    tn_state *state = tn_module_state(m);
    ck_assert_msg(tn_module_load_state(again, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    ck_assert_int_eq(tn_module_eval(again), TN_OK);
    tn_tensor *x = tn_randn(TN_SHAPE(4, 3));
    ck_assert(equal_values(tn_module_call(m, x), tn_module_call(again, x)));
    TN_PROVES("PRM-012");
    tn_state_drop(state);
    tn_module_drop(again);
    tn_module_drop(m);
}
END_TEST

/* ---- transfer -------------------------------------------------------------------------------- */

/* test_transfer_parametrizations_and_params, ..._right_inverse, ..._single_param */
START_TEST(parametrizations_and_originals_are_transferred)
{
    TN_SCOPE;
    tn_module *from = parsed("Linear(2, 2)"), *to = parsed("Linear(2, 2)");

    ck_assert_int_eq(with(from, "weight", own("Double", doubled, halved), 0), TN_OK);
    ck_assert_int_eq(with(from, "weight", own("PlusOne", plus_one, minus_one), 0), TN_OK);
    ck_assert_int_eq(with(from, "bias", own("Double", doubled, halved), 0), TN_OK);
    ck_assert_int_eq(tn_parametrize_transfer(from, to, "weight"), TN_OK);
    ck_assert_str_eq(keys(to), "bias parametrizations.weight.original ");
    ck_assert_ptr_eq(tn_module_find_tensor(to, "parametrizations.weight.original"),
                     tn_module_find_tensor(from, "parametrizations.weight.original"));
    ck_assert_ptr_eq(tn_parametrization(to, "weight", 1), tn_parametrization(from, "weight", 1));
    ck_assert(equal_values(tn_module_get(to, "weight"), tn_module_get(from, "weight")));
    /* All of them: `weight` is parametrized already, and nothing changes. */
    ck_assert_int_eq(tn_parametrize_transfer(from, to, NULL), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE,
           "tn_parametrize_transfer: 'weight' of Linear: it is parametrized already; expected "
           "a plain parameter or buffer, or none");
    ck_assert_str_eq(keys(to), "bias parametrizations.weight.original ");
    ck_assert_int_eq(tn_parametrize_transfer(from, to, "foo"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "does not have a parametrization on foo");
    tn_module *other = parsed("Linear(3, 2)");
    ck_assert_int_eq(tn_parametrize_transfer(from, other, NULL), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "tn_parametrize_transfer: 'weight' of Linear: wrong tensor, got float32 "
                         "[2, 3]; expected float32 [2, 2], as the value of the parametrizations");
    ck_assert_str_eq(keys(other), "weight bias ");
    /* Nothing is parametrized: nothing to transfer, but a name must be parametrized. */
    ck_assert_int_eq(tn_parametrize_transfer(other, to, NULL), TN_OK);
    ck_assert_int_eq(tn_parametrize_transfer(other, to, "weight"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "does not have a parametrization on weight");
    ck_assert_str_eq(keys(to), "bias parametrizations.weight.original ");
    tn_module *empty = tn_module_plain("Net");
    ck_assert_int_eq(tn_parametrize_transfer(from, empty, NULL), TN_OK);
    ck_assert(equal_values(tn_module_get(empty, "bias"), tn_module_get(from, "bias")));
    TN_PROVES("PRM-011");
    tn_module_drop(empty);
    tn_module_drop(other);
    tn_module_drop(from);
    tn_module_drop(to);
}
END_TEST

/* test_transfer_parametrizations_and_params_many_to_one */
START_TEST(several_originals_are_transferred)
{
    TN_SCOPE;
    tn_module *from = parsed("Linear(2, 2)"), *to = parsed("Linear(2, 2)");

    ck_assert_int_eq(tn_init(tn_module_get(from, "weight"), "constant(2)"), TN_OK);
    ck_assert_int_eq(with(from, "weight", rank_one_module(), 0), TN_OK);
    ck_assert_int_eq(tn_parametrize_transfer(from, to, NULL), TN_OK);
    ck_assert_str_eq(keys(to), keys(from));
    HAS(tn_module_get(to, "weight"), 2, 2, 2, 2);
    tn_module_drop(from);
    HAS(tn_module_get(to, "weight"), 2, 2, 2, 2);
    tn_module_drop(to);
}
END_TEST

/* ---- optimizers ------------------------------------------------------------------------------ */

START_TEST(an_optimizer_goes_on_through_registration_and_removal)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");
    tn_optimizer *sgd = tn_optimizer_new(m, "SGD(lr=0.5)");
    tn_tensor *object = tn_module_get(m, "weight");

    ck_assert_int_eq(tn_init(object, "ones()"), TN_OK);
    ck_assert_int_eq(with(m, "weight", own("Double", doubled, halved), 0), TN_OK);
    for (int step = 0; step < 2; step++) {
        tn_optimizer_zero_grad(sgd);
        ck_assert_int_eq(tn_backward(tn_sum(tn_module_get(m, "weight"))), TN_OK);
        ck_assert_int_eq(tn_optimizer_step(sgd), TN_OK);
        if (step == 0) {
            HAS(object, -0.5, -0.5, -0.5, -0.5);
            HAS(tn_module_get(m, "weight"), -1, -1, -1, -1);
            ck_assert_int_eq(tn_parametrize_remove(m, "weight", true), TN_OK);
        }
    }
    HAS(tn_module_get(m, "weight"), -1.5, -1.5, -1.5, -1.5);
    TN_PROVES("PRM-019");
    tn_optimizer_drop(sgd);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_training_mode_is_that_of_the_module,
        copies_are_independent_and_conversions_follow,
        states_and_specs_of_parametrized_modules,
        parametrizations_and_originals_are_transferred,
        several_originals_are_transferred,
        an_optimizer_goes_on_through_registration_and_removal,
        NULL,
    };
    return suite_run("copies of parametrized modules", tests);
}
