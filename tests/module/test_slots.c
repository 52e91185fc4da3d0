/* SPDX-License-Identifier: MIT
 *
 * Slots: registration, names, order, replacement, look-ups, walks. Names of rows are those of the
 * behaviour specification. */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

static tn_module *bare(void)
{
    tn_module *module = tn_module_new("Sequential()");
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    return module;
}

static tn_tensor *ones(int64_t n)
{
    return tn_tensor_full(TN_SHAPE(n), 1.0, TN_F32, NULL);
}

static tn_tensor *parameter(int64_t n)
{
    return tn_parameter(ones(n), true);
}

START_TEST(a_fresh_module_is_empty_and_training_reg_001)
{
    tn_module *m = bare();
    ck_assert_int_eq(tn_module_child_count(m), 0);
    ck_assert_int_eq(tn_module_parameter_count(m), 0);
    ck_assert(tn_module_is_training(m));
    ck_assert_str_eq(tn_module_type(m), "Sequential");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_parameter_is_the_very_tensor_and_requires_grad_reg_002)
{
    TN_SCOPE;
    tn_module *m = bare();
    tn_tensor *p = parameter(3),
              *i = tn_parameter(tn_tensor_full(TN_SHAPE(1), 1, TN_I64, NULL), false);
    ck_assert_int_eq(tn_module_add_parameter(m, "p", p), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "p"), p);
    ck_assert(tn_tensor_requires_grad(p));
    ck_assert_int_eq(tn_module_parameter_count(m), 3);
    tn_state *state = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(state), 1);
    ck_assert_str_eq(tn_state_name(state, 0), "p");
    tn_state_drop(state);
    ck_assert_ptr_eq(tn_module_find_parameter(m, "p"), p);
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(p), TN_F64);
    TN_PROVES("REG-002");
    ck_assert_int_eq(tn_module_add_parameter(m, "i", i), TN_OK);
    ck_assert(!tn_tensor_requires_grad(i));
    tn_module_drop(m);
}
END_TEST

START_TEST(a_reserved_slot_is_none_and_not_walked_reg_003_reg_020)
{
    tn_module *m = bare();
    ck_assert_int_eq(tn_module_add_parameter(m, "p", TN_NONE), TN_OK);
    ck_assert_int_eq(tn_module_add_buffer(m, "b", TN_NONE, 0), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "p"), TN_NONE);
    ck_assert_int_eq(tn_module_parameter_count(m), 0);
    tn_state *state = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(state), 0);
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

START_TEST(names_are_checked_in_pytorchs_order_reg_007_reg_008_reg_009)
{
    TN_SCOPE;
    tn_module *m = bare(), *child = bare();
    ck_assert_int_eq(tn_module_add_parameter(m, "a.b", parameter(1)), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "parameter name can't contain \".\"");
    ck_assert_int_eq(tn_module_add_buffer(m, "", ones(1), 0), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "buffer name can't be empty string \"\"");
    ck_assert_int_eq(tn_module_add_parameter(m, "a", parameter(1)), TN_OK);
    ck_assert_int_eq(tn_module_add_buffer(m, "a", ones(1), 0), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'a' already exists");
    ck_assert_int_eq(tn_module_add_child(m, "a", child), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'a' already exists");
    ck_assert_int_eq(tn_module_add_child(m, "x.y", child), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "module name can't contain \".\", got: \"x.y\"");
    ck_assert_int_eq(tn_module_add_child(m, "", child), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "module name can't be empty string");
    ck_assert_int_eq(tn_module_add_parameter(m, "a", parameter(2)), TN_OK);
    ck_assert_int_eq(tn_module_parameter_count(m), 2);
    ck_assert_int_eq(tn_module_add_buffer(m, "b", ones(1), 8), TN_ERR_VALUE);
    tn_error_clear();
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(only_a_parameter_stands_in_a_parameter_slot_reg_004_reg_005_reg_006)
{
    TN_SCOPE;
    tn_module *m = bare();
    tn_tensor *p = parameter(2), *frozen = tn_parameter(ones(2), false);
    ck_assert_int_eq(tn_module_add_parameter(m, "p", ones(2)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "cannot assign a plain tensor as parameter 'p': expected a "
                                "parameter or TN_NONE; tn_parameter makes one");
    ck_assert_int_eq(tn_module_add_parameter(m, "p", tn_mul_scalar(p, 2.0)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "cannot assign an operator's tensor as parameter 'p'");
    ck_assert_int_eq(tn_module_remove(m, "p"), TN_ERR_ATTR);
    tn_error_clear();
    ck_assert_int_eq(tn_module_parameter_count(m), 0);
    TN_PROVES("REG-005");
    ck_assert_int_eq(tn_module_add_parameter(m, "p", p), TN_OK);
    ck_assert_int_eq(tn_module_set(m, "p", ones(2)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "cannot assign a plain tensor as parameter 'p'");
    ck_assert_ptr_eq(tn_module_get(m, "p"), p);
    ck_assert_int_eq(tn_module_set(m, "p", TN_NONE), TN_OK);
    ck_assert_int_eq(tn_module_parameter_count(m), 0);
    TN_PROVES("REG-004");
    /* A frozen parameter into which an operator wrote is a result of the operator, not a leaf. */
    ck_assert_ptr_nonnull(tn_mul_(frozen, p));
    ck_assert(tn_tensor_is_parameter(frozen) && !tn_tensor_is_leaf(frozen));
    ck_assert_int_eq(tn_module_set(m, "p", frozen), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "cannot assign non-leaf Tensor to parameter 'p': operator mul");
    ck_assert_ptr_eq(tn_module_get(m, "p"), TN_NONE);
    TN_PROVES("REG-006");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_parameter_shares_storage_and_leaves_history_behind_reg_029)
{
    TN_SCOPE;
    tn_tensor *a = ones(3);
    tn_tensor_set_requires_grad(a, true);
    tn_tensor *b = tn_mul_scalar(a, 2.0), *p = tn_parameter(b, true);
    ck_assert(p != b && tn_tensor_shares_storage(p, b));
    ck_assert_ptr_eq(tn_tensor_data(p), tn_tensor_data(b));
    ck_assert(tn_tensor_is_leaf(p) && tn_tensor_requires_grad(p) && tn_tensor_is_parameter(p));
    ck_assert_str_eq(tn_tensor_grad_op(p), "");
    ck_assert(!tn_tensor_is_parameter(b) && !tn_tensor_is_leaf(b));
    ck_assert(!tn_tensor_requires_grad(tn_parameter(b, false)));
    ck_assert(!tn_tensor_is_parameter(tn_detach(p)));
    tn_tensor *integers = tn_tensor_full(TN_SHAPE(1), 1, TN_I64, NULL);
    ck_assert_ptr_null(tn_parameter(integers, true));
    expect_failure(TN_ERR_RUNTIME, "only Tensors of floating point and complex dtype can require "
                                   "gradients, not int64");
    ck_assert(tn_tensor_is_parameter(tn_parameter(integers, false)));
    ck_assert_ptr_eq(tn_parameter(TN_NONE, true), TN_NONE);
    ck_assert(!tn_tensor_is_parameter(TN_NONE));
    TN_PROVES("REG-029");
}
END_TEST

struct names {
    char text[512];
};

static tn_status note(void *user, const char *path, tn_tensor *tensor)
{
    (void)tensor;
    struct names *names = user;
    strcat(strcat(names->text, path), " ");
    return TN_OK;
}

static tn_status note_module(void *user, const char *path, tn_module *module)
{
    struct names *names = user;
    strcat(strcat(strcat(strcat(names->text, path), ":"), tn_module_type(module)), " ");
    return TN_OK;
}

#define expect_tensors(m, kinds, duplicates, expected)                                             \
    do {                                                                                           \
        struct names names_ = { "" };                                                              \
        ck_assert_int_eq(tn_module_each_tensor(m, kinds, duplicates, note, &names_), TN_OK);       \
        ck_assert_str_eq(names_.text, expected);                                                   \
    } while (0)
#define expect_modules(m, duplicates, expected)                                                    \
    do {                                                                                           \
        struct names names_ = { "" };                                                              \
        ck_assert_int_eq(tn_module_each(m, duplicates, note_module, &names_), TN_OK);              \
        ck_assert_str_eq(names_.text, expected);                                                   \
    } while (0)

START_TEST(replacing_keeps_the_place_removing_loses_it_reg_010_reg_022)
{
    TN_SCOPE;
    tn_module *m = bare(), *inner;
    tn_module_add_parameter(m, "a", parameter(1));
    tn_module_add_parameter(m, "b", parameter(1));
    ck_assert_int_eq(tn_module_set(m, "a", TN_NONE), TN_OK);
    expect_tensors(m, TN_SLOT_PARAMETER, false, "b ");
    ck_assert_int_eq(tn_module_set(m, "a", parameter(1)), TN_OK);
    expect_tensors(m, TN_SLOT_PARAMETER, false, "a b ");
    ck_assert_int_eq(tn_module_remove(m, "a"), TN_OK);
    tn_module_add_parameter(m, "a", parameter(1));
    expect_tensors(m, TN_SLOT_PARAMETER, false, "b a ");
    TN_PROVES("REG-010");
    ck_assert_int_eq(tn_module_set(m, "c", ones(1)), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR,
                   "'Sequential' object has no parameter or buffer 'c'; parameters: b, a");
    ck_assert_ptr_null(tn_module_get(m, "zzz"));
    expect_failure(TN_ERR_ATTR, "zzz");
    inner = tn_module_new("Sequential");
    ck_assert_int_eq(tn_module_add_child(m, "inner", inner), TN_OK);
    tn_module_drop(inner);
    ck_assert_ptr_null(tn_module_get(m, "inner"));
    expect_failure(TN_ERR_ATTR, "'inner': this is the name of a child, a module; parameters: ");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_buffer_is_persistent_as_the_last_registration_says_reg_018_reg_019)
{
    TN_SCOPE;
    tn_module *m = bare();
    tn_module_add_buffer(m, "b", ones(1), TN_SLOT_FLAG_NOT_PERSISTENT);
    tn_state *none = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(none), 0);
    ck_assert_int_eq(tn_module_load_state(m, none, true), TN_OK);
    tn_module_set(m, "b", ones(1));
    tn_state_set(none, "b", ones(1));
    ck_assert_int_eq(tn_module_load_state(m, none, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "Unexpected key(s) in state_dict: \"b\"");
    tn_module_add_buffer(m, "b", ones(1), 0);
    tn_state *one = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(one), 1);
    ck_assert(!tn_tensor_requires_grad(tn_module_get(m, "b")));
    tn_state_drop(none);
    tn_module_add_buffer(m, "b", ones(1), TN_SLOT_FLAG_NOT_PERSISTENT);
    none = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(none), 0);
    expect_tensors(m, TN_SLOT_BUFFER, false, "b ");
    TN_PROVES("REG-019");
    tn_state_drop(none);
    /* A removed buffer leaves no flags behind for the next buffer of its name. */
    ck_assert_int_eq(tn_module_remove(m, "b"), TN_OK);
    expect_tensors(m, TN_SLOT_BUFFER, false, "");
    tn_module_add_buffer(m, "b", ones(1), 0);
    none = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(none), 1);
    expect_tensors(m, TN_SLOT_BUFFER, false, "b ");
    TN_PROVES("REG-017");
    tn_state_drop(none);
    tn_state_drop(one);
    tn_module_drop(m);
}
END_TEST

START_TEST(children_are_found_by_name_place_and_path)
{
    tn_module *m = tn_module_new(
        "Sequential(Linear(2, 3), Sequential(ReLU(), Linear(3, 1, bias=False)))");
    ck_assert_msg(m != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_child_count(m), 2);
    ck_assert_str_eq(tn_module_child_name(m, -1), "1");
    ck_assert_ptr_eq(tn_module_child_at(m, -2), tn_module_child(m, "0"));
    ck_assert_ptr_eq(tn_module_find(m, ""), m);
    ck_assert_str_eq(tn_module_type(tn_module_find(m, "1.0")), "ReLU");
    ck_assert_ptr_eq(tn_module_find_tensor(m, "1.1.weight"),
                     tn_module_get(tn_module_find(m, "1.1"), "weight"));
    ck_assert_ptr_eq(tn_module_find_tensor(m, "1.1.bias"), TN_NONE);
    ck_assert_ptr_null(tn_module_child_at(m, 2));
    expect_failure(TN_ERR_INDEX, "index 2 is out of range");
    ck_assert_ptr_null(tn_module_child_at(m, -3));
    tn_error_clear();
    tn_module_drop(m);
}
END_TEST

START_TEST(a_path_that_leads_nowhere_names_the_part_and_the_type_get_003_get_004)
{
    tn_module *m = tn_module_new("Sequential(Linear(2, 3), ReLU())");
    ck_assert_ptr_null(tn_module_find(m, "7.weight"));
    expect_failure(TN_ERR_ATTR,
                   "Sequential has no attribute `7` (looking for \"7.weight\"); children: 0, 1");
    ck_assert_ptr_null(tn_module_find(m, "0.nope"));
    expect_failure(TN_ERR_ATTR, "Linear has no attribute `nope`");
    ck_assert_ptr_null(tn_module_find(m, "0.weight"));
    expect_failure(TN_ERR_ATTR,
                   "`weight` of Linear is not a module but a parameter (looking for \"0.weight\")");
    ck_assert_ptr_null(tn_module_find(m, "0."));
    expect_failure(TN_ERR_ATTR, "Linear has no attribute ``");
    ck_assert_ptr_null(tn_module_find(m, "0..x"));
    expect_failure(TN_ERR_ATTR, "has no attribute ``");
    ck_assert_ptr_null(tn_module_find_tensor(m, "0.wait"));
    expect_failure(TN_ERR_ATTR, "'Linear' object has no parameter or buffer 'wait'");
    ck_assert_ptr_null(tn_module_find_tensor(m, ".weight"));
    tn_error_clear();
    ck_assert_ptr_null(tn_module_child(m, "5"));
    expect_failure(TN_ERR_ATTR, "has no child '5'; children: 0, 1");
    tn_module_drop(m);
}
END_TEST

START_TEST(walks_are_in_order_and_visit_shared_things_once_trv_001_trv_002_trv_010_trv_012)
{
    TN_SCOPE;
    register_probes();
    tn_module *shared = tn_module_new("Probe(2)"),
              *m = tn_module_new("Sequential(first=Linear(1, 1), act=ReLU())");
    ck_assert_msg(m != NULL && shared != NULL, "%s", tn_error_text());
    tn_module_add_child(m, "x", shared);
    tn_module_add_child(m, "y", shared);
    tn_module_add_parameter(m, "own", parameter(1));
    expect_modules(m, false, ":Sequential first:Linear act:ReLU x:Probe ");
    expect_modules(m, true, ":Sequential first:Linear act:ReLU x:Probe y:Probe ");
    expect_tensors(m, TN_SLOT_PARAMETER, false, "own first.weight first.bias x.weight ");
    expect_tensors(m, TN_SLOT_PARAMETER, true, "own first.weight first.bias x.weight y.weight ");
    expect_tensors(m, TN_SLOT_BUFFER, false, "x.count x.scratch ");
    expect_tensors(m, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false,
                   "own first.weight first.bias x.weight x.count x.scratch ");
    tn_module_add_parameter(m, "alias", tn_module_get(shared, "weight"));
    expect_tensors(m, TN_SLOT_PARAMETER, false, "own alias first.weight first.bias ");
    ck_assert_int_eq(tn_module_parameter_count(m), 1 + 2 + 1 + 1);
    TN_PROVES("TRV-002", "TRV-012", "TRV-013");
    /* Another tensor over the same storage is another parameter. */
    tn_module_add_parameter(m, "twin", tn_parameter(tn_module_get(shared, "weight"), true));
    expect_tensors(m, TN_SLOT_PARAMETER, false, "own alias twin first.weight first.bias ");
    TN_PROVES("TRV-014");
    tn_module_drop(shared);
    tn_module_drop(m);
}
END_TEST

static tn_status remove_all(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    while (tn_module_child_count(user) > 0)
        tn_module_remove(user, tn_module_child_name(user, 0));
    return tn_tensor_numel(tensor) > 0 ? TN_OK : TN_ERR_ASSERT;
}

static tn_status stop(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    (void)tensor;
    ++*(int *)user;
    return tn_fail(TN_ERR_CANCELLED, "enough");
}

START_TEST(a_visitor_may_change_the_tree_and_end_the_walk_trv_017)
{
    tn_module *m = tn_module_new("Sequential(Linear(2, 2), Linear(2, 2))");
    int visits = 0;
    ck_assert_int_eq(tn_module_each_tensor(m, TN_SLOT_PARAMETER, false, stop, &visits),
                     TN_ERR_CANCELLED);
    ck_assert_int_eq(visits, 1);
    tn_error_clear();
    ck_assert_int_eq(tn_module_each_tensor(m, TN_SLOT_PARAMETER, false, remove_all, m), TN_OK);
    ck_assert_int_eq(tn_module_parameter_count(m), 0);
    TN_PROVES("TRV-017");
    tn_module_drop(m);
}
END_TEST

START_TEST(shared_trees_are_entered_once_or_under_every_path_trv_001_trv_003)
{
    tn_module *m = tn_module_new("Sequential(Sequential(ReLU(), Sequential(Tanh())))");
    ck_assert_msg(m != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_add_child(m, "1", tn_module_child(m, "0")), TN_OK);
    expect_modules(m, false, ":Sequential 0:Sequential 0.0:ReLU 0.1:Sequential 0.1.0:Tanh ");
    TN_PROVES("TRV-001");
    expect_modules(m, true,
                   ":Sequential 0:Sequential 0.0:ReLU 0.1:Sequential 0.1.0:Tanh "
                   "1:Sequential 1.0:ReLU 1.1:Sequential 1.1.0:Tanh ");
    TN_PROVES("TRV-003");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_module_cannot_be_its_own_descendant_trv_003)
{
    tn_module *a = bare(), *b = bare(), *c = bare();
    tn_module_add_child(a, "b", b);
    tn_module_add_child(b, "c", c);
    ck_assert_int_eq(tn_module_add_child(c, "a", a), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "modules form a tree");
    ck_assert_int_eq(tn_module_add_child(a, "self", a), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_module_child_count(c), 0);
    tn_module_drop(a);
    tn_module_drop(b);
    tn_module_drop(c);
}
END_TEST

START_TEST(a_very_deep_tree_is_freed_and_refused_with_words_where_walks_would_recurse)
{
    tn_module *top = bare(), *at = tn_module_keep(top);
    for (int i = 0; i < 1000; i++) {
        tn_module *next = bare();
        ck_assert_int_eq(tn_module_add_child(at, "x", next), TN_OK);
        tn_module_drop(at);
        at = next;
    }
    tn_module *next = bare();
    ck_assert_int_eq(tn_module_add_child(at, "x", next), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "modules: nested too deep; expected at most 1000 levels");
    tn_module_drop(next);
    tn_module_drop(at);
    /* A parent of `top` does not change the depth that was counted below `top`. */
    for (int i = 0; i < 900; i++) {
        next = bare();
        ck_assert_int_eq(tn_module_add_child(next, "x", top), TN_OK);
        tn_module_drop(top);
        top = next;
    }
    ck_assert_int_eq(tn_module_parameter_count(top), -1);
    expect_failure(TN_ERR_RUNTIME, "modules: nested too deep; expected at most 1000 levels");
    tn_module_drop(top);
}
END_TEST

START_TEST(modes_and_gradients_reach_the_whole_tree_mode_001_mode_007_mode_009)
{
    TN_SCOPE;
    tn_module *m = tn_module_new("Sequential(Linear(2, 2), Sequential(Linear(2, 1)))");
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    ck_assert(!tn_module_is_training(tn_module_find(m, "1.0")));
    tn_module_train(m, true);
    ck_assert(tn_module_is_training(tn_module_find(m, "1.0")));
    tn_tensor *x = tn_tensor_full(TN_SHAPE(3, 2), 1.0, TN_F32, NULL);
    ck_assert_msg(tn_backward(tn_sum(tn_module_call(m, x))) == TN_OK, "%s", tn_error_text());
    ck_assert_ptr_ne(tn_tensor_grad(tn_module_find_tensor(m, "0.weight")), TN_NONE);
    ck_assert_int_eq(tn_module_zero_grad(m), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(tn_module_find_tensor(m, "0.weight")), TN_NONE);
    ck_assert_ptr_eq(tn_tensor_grad(tn_module_find_tensor(m, "1.0.bias")), TN_NONE);
    TN_PROVES("MODE-001", "MODE-009");
    tn_module_set_requires_grad(tn_module_child(m, "0"), false);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, x))), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(tn_module_find_tensor(m, "0.weight")), TN_NONE);
    ck_assert_ptr_ne(tn_tensor_grad(tn_module_find_tensor(m, "1.0.weight")), TN_NONE);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_value_that_is_no_tensor_and_no_module_is_assigned_to_no_name)
{
    TN_SCOPE;
    tn_module *m = bare();
    const tn_value values[] = { tn_value_int(3), tn_value_float(1.5), tn_value_bool(true),
                                tn_value_string("text") };
    ck_assert_int_eq(tn_module_add_parameter(m, "p", parameter(2)), TN_OK);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(tn_module_assign(m, "free", values[i]), TN_ERR_TYPE);
        expect_failure(TN_ERR_TYPE, "to 'free' of ");
        ck_assert_int_eq(tn_module_assign(m, "p", values[i]), TN_ERR_TYPE);
        expect_failure(TN_ERR_TYPE, "as parameter 'p' (a tensor or None expected)");
    }
    ck_assert_uint_eq(tn_module_slot_kind(m, "free"), 0);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_fresh_module_is_empty_and_training_reg_001,
        a_parameter_is_the_very_tensor_and_requires_grad_reg_002,
        a_reserved_slot_is_none_and_not_walked_reg_003_reg_020,
        names_are_checked_in_pytorchs_order_reg_007_reg_008_reg_009,
        only_a_parameter_stands_in_a_parameter_slot_reg_004_reg_005_reg_006,
        a_parameter_shares_storage_and_leaves_history_behind_reg_029,
        replacing_keeps_the_place_removing_loses_it_reg_010_reg_022,
        a_buffer_is_persistent_as_the_last_registration_says_reg_018_reg_019,
        children_are_found_by_name_place_and_path,
        a_path_that_leads_nowhere_names_the_part_and_the_type_get_003_get_004,
        walks_are_in_order_and_visit_shared_things_once_trv_001_trv_002_trv_010_trv_012,
        a_visitor_may_change_the_tree_and_end_the_walk_trv_017,
        shared_trees_are_entered_once_or_under_every_path_trv_001_trv_003,
        a_module_cannot_be_its_own_descendant_trv_003,
        a_very_deep_tree_is_freed_and_refused_with_words_where_walks_would_recurse,
        modes_and_gradients_reach_the_whole_tree_mode_001_mode_007_mode_009,
        a_value_that_is_no_tensor_and_no_module_is_assigned_to_no_name,
        NULL,
    };
    return suite_run("slots", tests);
}
