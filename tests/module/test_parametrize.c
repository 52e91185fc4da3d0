/* SPDX-License-Identifier: MIT
 *
 * Parametrizations: registering, chains, right inverses, checks, removal. PyTorch's tests of
 * test/nn/test_parametrization.py are named at the tests that port them, here and in
 * test_parametrize_copies and test_parametrize_cache. */
#include "tests/module/parametrize.h"

#define LINEAR "Linear(in_features=2, out_features=2, bias=True)"

/* ---- registering and removing ---------------------------------------------------------------- */

/* test_register_and_remove_parametrization */
START_TEST(a_parameter_becomes_an_original_and_comes_back)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");
    tn_tensor *object = tn_module_get(m, "weight");
    tn_tensor *before = tn_clone(tn_detach(object));

    ck_assert_int_eq(with(m, "weight", own("Skew", skew, NULL), 0), TN_OK);
    ck_assert_str_eq(keys(m), "bias parametrizations.weight.original ");
    ck_assert_ptr_eq(tn_module_find_tensor(m, "parametrizations.weight.original"), object);
    ck_assert_int_eq(tn_module_slot_kind(m, "weight"), TN_SLOT_COMPUTED);
    ck_assert_double_eq(at(tn_module_get(m, "weight"), 1), at(before, 1));
    ck_assert_double_eq(at(tn_module_get(m, "weight"), 2), -at(before, 1));
    ck_assert_str_eq(printed(m), "ParametrizedLinear(\n"
                                 "  in_features=2, out_features=2, bias=True\n"
                                 "  (parametrizations): ModuleDict(\n"
                                 "    (weight): ParametrizationList(\n"
                                 "      (0): Skew()\n"
                                 "    )\n"
                                 "  )\n"
                                 ")");
    /* The value is computed on each access, from what the original is now. */
    ck_assert_int_eq(tn_init(object, "ones()"), TN_OK);
    HAS(tn_module_get(m, "weight"), 0, 1, -1, 0);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, tn_ones(TN_SHAPE(1, 2))))), TN_OK);
    HAS(tn_tensor_grad(object), 0, 0, 0, 0);
    ck_assert_int_eq(tn_module_remove(m, "weight"), TN_ERR_ATTR);
    FAILED(TN_ERR_ATTR, "tn_parametrize_remove");

    /* With the raw original, and with the value: the tensor stays the same object. */
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", false), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "weight"), object);
    HAS(object, 1, 1, 1, 1);
    ck_assert_str_eq(printed(m), LINEAR);
    ck_assert_str_eq(keys(m), "bias weight ");
    ck_assert_int_eq(with(m, "weight", own("Skew", skew, NULL), 0), TN_OK);
    ck_assert_int_eq(with(m, "bias", own("Double", doubled, NULL), 0), TN_OK);
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", true), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "weight"), object);
    ck_assert(tn_tensor_is_parameter(object) && tn_tensor_requires_grad(object));
    HAS(object, 0, 1, -1, 0);
    ck_assert_str_eq(keys(m), "weight parametrizations.bias.original ");
    ck_assert(tn_is_parametrized(m, NULL) && !tn_is_parametrized(m, "weight"));
    ck_assert_int_eq(tn_parametrize_remove(m, "bias", true), TN_OK);
    ck_assert_str_eq(printed(m), LINEAR);
    ck_assert_int_eq(tn_parametrize_remove(m, "bias", true), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "Module " LINEAR " does not have a parametrization on bias");
    TN_PROVES("PRM-001", "PRM-010", "PRM-015", "REP-007");
    tn_module_drop(m);
}
END_TEST

START_TEST(names_that_do_not_exist_are_refused)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2, bias=False)");

    ck_assert_int_eq(with(m, "foo", own("Skew", skew, NULL), 0), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "Module 'Linear(in_features=2, out_features=2, bias=False)' does not have "
                         "a parameter, a buffer, or a parametrized element with name 'foo'");
    ck_assert_int_eq(with(m, "bias", own("Skew", skew, NULL), 0), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "'bias' of Linear: it is None; expected a tensor to parametrize");
    ck_assert_int_eq(with(m, "no.weight", own("Skew", skew, NULL), 0), TN_ERR_ATTR);
    FAILED(TN_ERR_ATTR, "Linear has no attribute `no`");
    ck_assert_int_eq(with(m, "weight", own("Skew", skew, NULL), 2), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "flags: unknown, got 0x2; expected TN_PARAMETRIZE_UNSAFE (1) or 0");
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "Symetric()"), TN_ERR_KEY);
    FAILED(TN_ERR_KEY, "Symetric");
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "Dropout(p=%g)", 2.0), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_str_eq(keys(m), "weight ");
    TN_PROVES("PRM-002");
    tn_module_drop(m);
}
END_TEST

/* test_register_and_remove_buffer_parametrization */
START_TEST(buffers_and_chains)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");

    ck_assert_int_eq(tn_module_add_buffer(m, "mask", VEC(1, 2), TN_SLOT_FLAG_NOT_PERSISTENT),
                     TN_OK);
    tn_tensor *object = tn_module_get(m, "mask");
    ck_assert_int_eq(with(m, "mask", own("Double", doubled, NULL), 0), TN_OK);
    ck_assert_int_eq(with(m, "mask", own("PlusOne", plus_one, NULL), 0), TN_OK);
    HAS(tn_module_get(m, "mask"), 3, 5);
    ck_assert_int_eq(tn_parametrization_count(m, "mask"), 2);
    ck_assert_str_eq(tn_module_type(tn_parametrization(m, "mask", 1)), "PlusOne");
    ck_assert_ptr_null(tn_parametrization(m, "mask", 2));
    ck_assert_ptr_null(tn_parametrization(m, "weight", 0));
    FINE();
    ck_assert(tn_module_find_buffer(m, "parametrizations.mask.original") == object);
    ck_assert_str_eq(keys(m), "weight bias ");
    ck_assert_int_eq(tn_parametrize_remove(m, "mask", true), TN_OK);
    ck_assert_ptr_eq(tn_module_find_buffer(m, "mask"), object);
    HAS(object, 3, 5);
    ck_assert_int_eq(with(m, "weight", own("Double", doubled, NULL), 0), TN_OK);
    ck_assert_int_eq(with(m, "weight", own("Double", doubled, NULL), 0), TN_OK);
    ck_assert(strstr(printed(m), "(0-1): 2 x Double()") != NULL);
    TN_PROVES("PRM-003");
    tn_module_drop(m);
}
END_TEST

/* test_register_and_remove_nested_parametrization */
START_TEST(an_original_may_be_parametrized)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");

    ck_assert_int_eq(tn_init(tn_module_get(m, "bias"), "ones()"), TN_OK);
    tn_tensor *object = tn_module_get(m, "bias");
    ck_assert_int_eq(with(m, "bias", own("Double", doubled, halved), 0), TN_OK);
    ck_assert_int_eq(
        with(m, "parametrizations.bias.original", own("PlusOne", plus_one, minus_one), 0), TN_OK);
    ck_assert_str_eq(keys(m), "weight parametrizations.bias.parametrizations.original.original ");
    HAS(tn_module_get(m, "bias"), 1, 1);
    ck_assert(tn_is_parametrized(m, "parametrizations.bias.original"));
    ck_assert_ptr_eq(
        tn_module_find_tensor(m, "parametrizations.bias.parametrizations.original.original"),
        object);
    ck_assert_int_eq(tn_module_set(m, "bias", VEC(6, 8)), TN_OK);
    HAS(object, 2, 3);
    HAS(tn_module_get(m, "bias"), 6, 8);
    ck_assert_int_eq(tn_parametrize_remove(m, "bias", true), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "its original is parametrized too");
    ck_assert(strstr(printed(m), "(bias): ParametrizedParametrizationList(\n") != NULL);
    tn_module *copy = tn_module_copy(m);
    HAS(tn_module_get(copy, "bias"), 6, 8);
    tn_module_drop(copy);
    ck_assert_int_eq(tn_parametrize_remove(m, "parametrizations.bias.original", true), TN_OK);
    ck_assert_int_eq(tn_parametrize_remove(m, "bias", true), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "bias"), object);
    HAS(object, 6, 8);
    TN_PROVES("PRM-014");
    tn_module_drop(m);
}
END_TEST

/* ---- right inverses -------------------------------------------------------------------------- */

static tn_status not_implemented(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    (void)self;
    (void)value;
    (void)originals;
    return tn_fail(TN_ERR_NOT_IMPLEMENTED, "there is no inverse of this");
}

/* test_initialization_parametrization */
START_TEST(right_inverses_initialize_and_assign)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");
    tn_tensor *object = tn_module_get(m, "bias");

    ck_assert_int_eq(tn_init(object, "constant(6)"), TN_OK);
    ck_assert_int_eq(with(m, "bias", own("Double", doubled, halved), 0), TN_OK);
    ck_assert_ptr_eq(tn_module_find_tensor(m, "parametrizations.bias.original"), object);
    HAS(object, 3, 3);
    HAS(tn_module_get(m, "bias"), 6, 6);
    /* A second parametrization gets the first one's value; an assignment goes back through both. */
    ck_assert_int_eq(with(m, "bias", own("PlusOne", plus_one, minus_one), 0), TN_OK);
    HAS(object, 3, 3);
    HAS(tn_module_get(m, "bias"), 7, 7);
    tn_tensor *value = VEC(5, 9);
    ck_assert_int_eq(tn_module_set(m, "bias", value), TN_OK);
    HAS(object, 2, 4);
    HAS(tn_module_get(m, "bias"), 5, 9);
    HAS(value, 5, 9);
    ck_assert_int_eq(tn_module_set(m, "bias", TN_NONE), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "'bias' of Linear: it is parametrized, got None; expected a tensor");
    ck_assert_int_eq(tn_module_set(m, "bias", tn_cast(value, TN_F64)), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "The tensor returned by `right_inverse` has dtype float64 while "
                         "`original` has dtype float32");
    HAS(object, 2, 4);

    ck_assert_int_eq(with(m, "weight", own("Skew", skew, NULL), 0), TN_OK);
    ck_assert_int_eq(tn_module_set(m, "weight", tn_ones(TN_SHAPE(2, 2))), TN_ERR_NOT_IMPLEMENTED);
    FAILED(TN_ERR_NOT_IMPLEMENTED, "parametrization Skew does not implement right_inverse.");
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", false), TN_OK);
    ck_assert_int_eq(with(m, "weight", own("Double", doubled, not_implemented), 0), TN_OK);
    FINE();
    ck_assert_int_eq(tn_module_set(m, "weight", tn_ones(TN_SHAPE(2, 2))), TN_ERR_NOT_IMPLEMENTED);
    FAILED(TN_ERR_NOT_IMPLEMENTED, "there is no inverse of this");
    TN_PROVES("PRM-004");
    tn_module_drop(m);
}
END_TEST

/* test_multiple_inputs_parametrization */
START_TEST(several_originals_are_parameters)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");

    ck_assert_int_eq(tn_init(tn_module_get(m, "weight"), "constant(2)"), TN_OK);
    ck_assert_int_eq(with(m, "weight", rank_one_module(), 0), TN_OK);
    ck_assert_str_eq(keys(m),
                     "bias parametrizations.weight.original0 parametrizations.weight.original1 ");
    ck_assert(tn_module_find_parameter(m, "parametrizations.weight.original1") != NULL);
    ck_assert_int_eq(tn_module_parameter_count(m), 6);
    HAS(tn_module_get(m, "weight"), 2, 2, 2, 2);
    ck_assert_int_eq(with(m, "weight", own("Double", doubled, halved), 0), TN_OK);
    ck_assert_int_eq(tn_module_set(m, "weight", tn_reshape(VEC(2, 4, 6, 12), TN_SHAPE(2, 2))),
                     TN_OK);
    HAS(tn_module_find_tensor(m, "parametrizations.weight.original0"), 1, 3);
    HAS(tn_module_find_tensor(m, "parametrizations.weight.original1"), 1, 2);
    HAS(tn_module_get(m, "weight"), 2, 4, 6, 12);
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", false), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is"
                         " parametrized in terms of a sequence of tensors.");
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", true), TN_OK);
    HAS(tn_module_find_parameter(m, "weight"), 2, 4, 6, 12);
    ck_assert(tn_tensor_requires_grad(tn_module_get(m, "weight")));
    ck_assert_str_eq(keys(m), "bias weight ");
    TN_PROVES("PRM-005");
    tn_module_drop(m);
}
END_TEST

/* ---- checks ---------------------------------------------------------------------------------- */

static tn_tensor *to_f64(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_cast(x, TN_F64);
}

static tn_tensor *first_row(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_select(x, 0, 0);
}

static tn_status inverse_f64(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    return tn_pack_add(originals, NULL, tn_value_tensor(to_f64(self, value)));
}

static tn_status inverse_nothing(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    (void)self;
    (void)value;
    (void)originals;
    return TN_OK;
}

static tn_status inverse_number(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    (void)self;
    (void)value;
    return tn_pack_add(originals, NULL, tn_value_int(3));
}

static tn_status inverse_fails(tn_module *self, tn_tensor *value, tn_pack *originals)
{
    (void)self;
    (void)value;
    (void)originals;
    return tn_fail(TN_ERR_RUNTIME, "it went wrong");
}

static tn_status gives_a_number(tn_module *self, const tn_pack *input, tn_pack *output)
{
    (void)self;
    (void)input;
    return tn_pack_add(output, NULL, tn_value_int(3));
}

static tn_module *number_module(void)
{
    tn_module *module = tn_module_plain("Number");

    ck_assert_int_eq(tn_module_set_call(module, gives_a_number, NULL, NULL), TN_OK);
    return module;
}

/* Fails unless the parametrization is refused with these words and the module is as before. */
static void refused(tn_module *m, tn_module *parametrization, uint32_t flags, const char *words)
{
    tn_tensor *value = tn_clone(tn_detach(tn_module_get(m, "weight")));
    tn_tensor *after;
    char text[4096], names[4096];

    snprintf(text, sizeof text, "%s", printed(m));
    snprintf(names, sizeof names, "%s", keys(m));
    ck_assert_int_ne(with(m, "weight", parametrization, flags), TN_OK);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in: %s", words,
                  tn_error_text());
    tn_error_clear();
    ck_assert_str_eq(printed(m), text);
    ck_assert_str_eq(keys(m), names);
    after = tn_module_get(m, "weight");
    ck_assert(equal_values(value, after));
}

/* test_errors_unparametrized_tensor_parametrization, test_errors_parametrized_tensor_... */
START_TEST(checks_leave_the_module_unchanged_unless_unsafe)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");

    for (int second = 0; second < 2; second++) {
        if (second)
            ck_assert_int_eq(with(m, "weight", own("Double", doubled, halved), 0), TN_OK);
        refused(m, own("Wide", to_f64, NULL), 0,
                "Registering a parametrization may not change the dtype of the tensor, unless the "
                "`unsafe` flag is enabled. Wide: got dtype float64; expected float32, that of "
                "'weight'");
        refused(m, own("Row", first_row, NULL), 0,
                "Registering a parametrization may not change the shape of the tensor, unless the "
                "`unsafe` flag is enabled. Row: got shape [2]; expected [2, 2], that of 'weight'");
        refused(m, number_module(), 0, second ? "wrong type, got int" : "must return a tensor");
        refused(m, own("I", unchanged, inverse_f64), 0,
                second ? "right_inverse: got dtype float64" : "it may not change the dtype");
        refused(m, own("I", unchanged, inverse_nothing), 0, "'right_inverse' must return a Tensor");
        refused(m, own("I", unchanged, inverse_number), 0,
                "Got element 0 of the sequence with type int.");
        refused(m, own("I", unchanged, inverse_fails), 0, "it went wrong");
    }
    /* Only the first parametrization may have several originals. */
    refused(m, rank_one_module(), 0, "");
    /* With the flag, a first parametrization is checked only for the dtype of its inverse. */
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", false), TN_OK);
    refused(m, own("I", unchanged, inverse_f64), TN_PARAMETRIZE_UNSAFE,
            "it may not change the dtype");
    ck_assert_int_eq(with(m, "weight", own("Row", first_row, NULL), TN_PARAMETRIZE_UNSAFE), TN_OK);
    ck_assert_int_eq(tn_tensor_ndim(tn_module_get(m, "weight")), 1);
    ck_assert(tn_parametrization_is_unsafe(m, "weight"));
    ck_assert_int_eq(with(m, "weight", own("Double", doubled, halved), 0), TN_OK);
    ck_assert(tn_parametrization_is_unsafe(m, "weight")); /* the flag stays */
    ck_assert_int_eq(with(m, "bias", own("Double", doubled, halved), 0), TN_OK);
    ck_assert(!tn_parametrization_is_unsafe(m, "bias"));
    ck_assert(!tn_parametrization_is_unsafe(m, "foo"));
    ck_assert_int_eq(with(m, "bias", own("I", unchanged, NULL), TN_PARAMETRIZE_UNSAFE), TN_OK);
    ck_assert(tn_parametrization_is_unsafe(m, "bias"));
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", true), TN_OK);
    ck_assert_int_eq(tn_tensor_ndim(tn_module_find_parameter(m, "weight")), 1);
    TN_PROVES("PRM-006", "PRM-007");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_parameter_becomes_an_original_and_comes_back,
        names_that_do_not_exist_are_refused,
        buffers_and_chains,
        an_original_may_be_parametrized,
        right_inverses_initialize_and_assign,
        several_originals_are_parameters,
        checks_leave_the_module_unchanged_unless_unsafe,
        NULL,
    };
    return suite_run("parametrizations", tests);
}
