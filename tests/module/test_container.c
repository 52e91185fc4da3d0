/* SPDX-License-Identifier: MIT
 *
 * Containers: lists and dictionaries of modules and of parameters, compared with PyTorch's. */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

#define PROBLEM(words)                                                                             \
    do {                                                                                           \
        ck_assert_msg(tn_failed() && strstr(tn_error_text(), words) != NULL, "%s",                 \
                      tn_error_text());                                                            \
        tn_error_clear();                                                                          \
    } while (0)

/* "0=ReLU 1=Linear": the children's names and types. */
static void expect_children(tn_module *module, const char *wanted)
{
    char text[512] = "";
    size_t used = 0;
    for (int64_t i = 0; i < tn_module_child_count(module); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", i > 0 ? " " : "",
                                 tn_module_child_name(module, i),
                                 tn_module_type(tn_module_child_at(module, i)));
    ck_assert_str_eq(text, wanted);
}

static tn_tensor *numbers(double first, int64_t count)
{
    float values[64];
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(first + (double)i);
    return tn_tensor_from(values, TN_F32, TN_SHAPE(count));
}

static void append(tn_module *list, const char *text)
{
    tn_module *child = parsed(text);
    ck_assert_int_eq(tn_list_append(list, child), TN_OK);
    tn_module_drop(child);
}

START_TEST(a_sequential_names_its_modules_and_feeds_one_value_through)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(ReLU(), Tanh())"), *named, *empty = parsed("Sequential()");
    tn_tensor *x = numbers(-1, 3);
    expect_children(m, "0=ReLU 1=Tanh");
    named = parsed("Sequential(act=ReLU(), squash=Tanh())");
    expect_children(named, "act=ReLU squash=Tanh");
    TN_PROVES("CTR-001");
    ck_assert_ptr_eq(tn_module_call(empty, x), x);
    tn_tensor *y = tn_module_call(m, x);
    float got[3];
    ck_assert_int_eq(tn_tensor_copy_out(y, got, sizeof got), TN_OK);
    ck_assert_float_eq_tol(got[0], 0, 1e-6);
    ck_assert_float_eq_tol(got[2], tanhf(1), 1e-6);
    /* A module that returns several values passes them on as one tuple. */
    register_probes();
    tn_module *lstm = parsed("Sequential(Identity(), LSTM(2, 3))");
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_pack_add(in, NULL, tn_value_tensor(tn_tensor_full(TN_SHAPE(4, 2), 1, TN_F32, NULL)));
    ck_assert_msg(tn_module_call_pack(lstm, in, out) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_pack_count(out), 2);
    tn_pack_drop(out);
    append(lstm, "ReLU()");
    out = tn_pack_new();
    ck_assert_int_ne(tn_module_call_pack(lstm, in, out), TN_OK); /* ReLU takes no tuple */
    tn_error_clear();
    TN_PROVES("CTR-002");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(lstm);
    tn_module_drop(empty);
    tn_module_drop(named);
    tn_module_drop(m);
}
END_TEST

START_TEST(indices_count_from_both_ends_and_slices_share_modules_and_keep_keys)
{
    tn_module *m = parsed("Sequential(ReLU(), Tanh(), Sigmoid(), Linear(2, 3), Flatten())");
    ck_assert_str_eq(tn_module_type(tn_module_child_at(m, -2)), "Linear");
    ck_assert_ptr_null(tn_module_child_at(m, 5));
    PROBLEM("index 5 is out of range");
    tn_module *tail = tn_list_slice(m, 1, TN_LIST_OPEN, 1);
    expect_children(tail, "1=Tanh 2=Sigmoid 3=Linear 4=Flatten");
    ck_assert_ptr_eq(tn_module_child_at(tail, 2), tn_module_child_at(m, 3));
    tn_module *odd = tn_list_slice(m, -2, TN_LIST_OPEN, -2);
    expect_children(odd, "3=Linear 1=Tanh");
    tn_module *none = tn_list_slice(m, 3, 1, 1);
    ck_assert_int_eq(tn_list_count(none), 0);
    ck_assert_ptr_null(tn_list_slice(m, 0, 2, 0));
    PROBLEM("slice step cannot be zero");
    TN_PROVES("CTR-003");
    /* Editing renumbers. */
    ck_assert_int_eq(tn_list_delete_range(tail, 0, 1, 1), TN_OK);
    expect_children(tail, "0=Sigmoid 1=Linear 2=Flatten");
    tn_module_drop(none);
    tn_module_drop(odd);
    tn_module_drop(tail);
    tn_module_drop(m);
}
END_TEST

START_TEST(setting_replaces_in_place_and_deleting_renumbers)
{
    tn_module *m = parsed(
        "Sequential(a=ReLU(), b=Tanh(), c=Sigmoid(), d=Flatten(), e=Linear(1, 1))");
    tn_module *gelu = parsed("GELU()");
    ck_assert_int_eq(tn_list_set(m, -4, gelu), TN_OK);
    expect_children(m, "a=ReLU b=GELU c=Sigmoid d=Flatten e=Linear");
    ck_assert_int_eq(tn_list_set(m, 5, gelu), TN_ERR_INDEX);
    PROBLEM("index 5 is out of range");
    TN_PROVES("CTR-004");
    ck_assert_int_eq(tn_list_delete_range(m, 0, TN_LIST_OPEN, 2), TN_OK);
    expect_children(m, "0=GELU 1=Flatten");
    ck_assert_int_eq(tn_list_delete_range(m, -1, TN_LIST_OPEN, 1), TN_OK);
    expect_children(m, "0=GELU");
    ck_assert_int_eq(tn_list_delete_range(m, 5, 9, 1), TN_OK);
    expect_children(m, "0=GELU");
    TN_PROVES("CTR-005");
    tn_module_drop(gelu);
    tn_module_drop(m);
}
END_TEST

START_TEST(lists_grow_at_the_end_and_in_between)
{
    tn_module *m = parsed("Sequential(ReLU())"), *more = parsed("Sequential(Tanh(), Sigmoid())");
    tn_module *gelu = parsed("GELU()");
    append(m, "Flatten()");
    ck_assert_int_eq(tn_list_extend(m, more), TN_OK);
    expect_children(m, "0=ReLU 1=Flatten 2=Tanh 3=Sigmoid");
    ck_assert_int_eq(tn_list_insert(m, 1, gelu), TN_OK);
    ck_assert_int_eq(tn_list_insert(m, -1, gelu), TN_OK);
    ck_assert_int_eq(tn_list_insert(m, 6, gelu), TN_OK);
    expect_children(m, "0=ReLU 1=GELU 2=Flatten 3=Tanh 4=GELU 5=Sigmoid 6=GELU");
    ck_assert_int_eq(tn_list_insert(m, 8, gelu), TN_ERR_INDEX);
    PROBLEM("Index out of range: 8");
    ck_assert_int_eq(tn_list_insert(m, 0, m), TN_ERR_VALUE); /* itself */
    tn_error_clear();
    ck_assert_int_eq(tn_list_count(m), 7);
    ck_assert_int_eq(tn_list_append(gelu, m), TN_ERR_TYPE);
    PROBLEM("wrong type, got GELU; expected a layer whose entries are a list");
    /* PyTorch silently replaces an entry of that name; here the call fails and nothing is lost. */
    tn_module *tail = tn_list_slice(more, 1, TN_LIST_OPEN, 1);
    ck_assert_int_eq(tn_list_append(tail, gelu), TN_ERR_KEY);
    PROBLEM("entry \"1\": exists already");
    expect_children(tail, "1=Sigmoid");
    TN_PROVES("CTR-006");
    ck_assert_int_eq(tn_list_extend(more, more), TN_OK);
    expect_children(more, "0=Tanh 1=Sigmoid 2=Tanh 3=Sigmoid");
    tn_module_drop(tail);
    tn_module_drop(gelu);
    tn_module_drop(more);
    tn_module_drop(m);
}
END_TEST

START_TEST(lists_join_and_repeat_with_shared_modules)
{
    tn_module *a = parsed("Sequential(Linear(2, 2), ReLU())"), *b = parsed("Sequential(x=Tanh())");
    tn_module *joined = parsed("Sequential()"), *thrice = tn_list_repeat(a, 3);
    ck_assert_int_eq(tn_list_extend(joined, a), TN_OK);
    ck_assert_int_eq(tn_list_extend(joined, b), TN_OK);
    expect_children(joined, "0=Linear 1=ReLU 2=Tanh");
    ck_assert_ptr_eq(tn_module_child_at(joined, 0), tn_module_child_at(a, 0));
    expect_children(thrice, "0=Linear 1=ReLU 2=Linear 3=ReLU 4=Linear 5=ReLU");
    ck_assert_ptr_eq(tn_module_child_at(thrice, 4), tn_module_child_at(a, 0));
    ck_assert_int_eq(tn_module_parameter_count(thrice), 6);
    ck_assert_ptr_null(tn_list_repeat(a, 0));
    PROBLEM("Non-positive multiplication factor 0 for Sequential");
    ck_assert_ptr_null(tn_list_repeat(a, -1));
    PROBLEM("Non-positive multiplication factor -1 for Sequential");
    ck_assert_ptr_null(tn_list_repeat(a, INT64_MAX / 2 + 1));
    PROBLEM("Sequential of 2 entries times 4611686018427387904: too many");
    ck_assert_int_eq(tn_list_extend(a, a), TN_OK);
    expect_children(a, "0=Linear 1=ReLU 2=Linear 3=ReLU");
    TN_PROVES("CTR-007");
    tn_module *popped = tn_list_pop(a, 1);
    ck_assert_str_eq(tn_module_type(popped), "ReLU");
    expect_children(a, "0=Linear 1=Linear 2=ReLU");
    ck_assert_ptr_null(tn_list_pop(a, 3));
    PROBLEM("index 3 is out of range");
    TN_PROVES("CTR-008");
    tn_module_drop(popped);
    tn_module_drop(thrice);
    tn_module_drop(joined);
    tn_module_drop(b);
    tn_module_drop(a);
}
END_TEST

START_TEST(a_module_list_has_places_and_no_forward)
{
    TN_SCOPE;
    tn_module *m = parsed("ModuleList(ReLU(), Linear(2, 3))"),
              *other = parsed("ModuleList(Tanh())");
    append(m, "Tanh()");
    ck_assert_int_eq(tn_list_extend(m, other), TN_OK);
    tn_module *first = parsed("GELU()");
    ck_assert_int_eq(tn_list_insert(m, 0, first), TN_OK);
    expect_children(m, "0=GELU 1=ReLU 2=Linear 3=Tanh 4=Tanh");
    ck_assert_int_eq(tn_list_extend(m, first), TN_ERR_TYPE);
    PROBLEM("wrong type, got GELU; expected a layer whose entries are a list");
    ck_assert_ptr_null(tn_module_call(m, numbers(0, 2)));
    ck_assert_int_eq(tn_error_last_code(), TN_ERR_NOT_IMPLEMENTED);
    tn_error_clear();
    tn_module *popped = tn_list_pop(m, -1), *joined = parsed("ModuleList()");
    ck_assert_int_eq(tn_list_extend(joined, m), TN_OK);
    ck_assert_int_eq(tn_list_extend(joined, other), TN_OK);
    expect_children(joined, "0=GELU 1=ReLU 2=Linear 3=Tanh 4=Tanh");
    ck_assert_int_eq(tn_list_delete_range(m, 1, 3, 1), TN_OK);
    expect_children(m, "0=GELU 1=Tanh");
    TN_PROVES("CTR-009");
    tn_module *slice = tn_list_slice(joined, 2, TN_LIST_OPEN, 1);
    expect_children(slice, "0=Linear 1=Tanh 2=Tanh");
    TN_PROVES("CTR-010");
    ck_assert_ptr_null(tn_module_parse("ModuleList(a=ReLU())"));
    PROBLEM("expected no name");
    tn_module *holder = parsed("Sequential(linears=ModuleList(Linear(2, 3), Linear(3, 4)))");
    ck_assert_ptr_nonnull(tn_module_find_parameter(holder, "linears.0.weight"));
    tn_state *state = tn_module_state(holder);
    ck_assert_str_eq(tn_state_name(state, 3), "linears.1.bias");
    TN_PROVES("CTR-011");
    tn_state_drop(state);
    tn_module_drop(holder);
    tn_module_drop(slice);
    tn_module_drop(joined);
    tn_module_drop(popped);
    tn_module_drop(first);
    tn_module_drop(other);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_module_dict_keeps_its_order)
{
    tn_module *m = parsed("ModuleDict(act=ReLU(), fc=Linear(2, 3))"), *tanh = parsed("Tanh()");
    tn_module *more = parsed("ModuleDict(zeta=GELU(), act=Sigmoid(), alpha=Flatten())");
    ck_assert_int_eq(tn_dict_count(m), 2);
    ck_assert_str_eq(tn_dict_key(m, -1), "fc");
    ck_assert_int_eq(tn_dict_set(m, "act", tanh), TN_OK);
    expect_children(m, "act=Tanh fc=Linear");
    ck_assert(tn_dict_has(m, "fc") && !tn_dict_has(m, "none"));
    ck_assert_int_eq(tn_dict_set(m, "a.b", tanh), TN_ERR_KEY);
    PROBLEM("can't contain \".\"");
    ck_assert_int_eq(tn_dict_set(m, "", tanh), TN_ERR_KEY);
    PROBLEM("can't be empty");
    ck_assert_int_eq(tn_dict_set(m, NULL, tanh), TN_ERR_TYPE);
    PROBLEM("it is NULL; expected a string");
    /* Names of functions are not attributes in C: such keys are as good as others. */
    ck_assert_int_eq(tn_dict_set(m, "keys", tanh), TN_OK);
    tn_module *popped = tn_dict_pop(m, "keys");
    ck_assert_ptr_eq(popped, tanh);
    ck_assert_ptr_null(tn_dict_pop(m, "keys"));
    PROBLEM("no key \"keys\"; keys: act, fc");
    ck_assert_int_eq(tn_dict_update(m, more), TN_OK);
    expect_children(m, "act=Sigmoid fc=Linear zeta=GELU alpha=Flatten");
    ck_assert_int_eq(tn_dict_update(m, tanh), TN_ERR_TYPE);
    PROBLEM("wrong type, got Tanh; expected a layer whose entries have keys");
    TN_PROVES("CTR-012", "CTR-013");
    ck_assert_int_eq(tn_dict_update(more, m), TN_OK);
    expect_children(more, "zeta=GELU act=Sigmoid alpha=Flatten fc=Linear");
    ck_assert_int_eq(tn_dict_clear(m), TN_OK);
    ck_assert_int_eq(tn_dict_count(m), 0);
    ck_assert_ptr_null(tn_module_parse("ModuleDict(ReLU())"));
    PROBLEM("entry 0: no key");
    ck_assert_int_eq(tn_list_append(m, tanh), TN_ERR_TYPE);
    PROBLEM("wrong type, got ModuleDict; expected a layer whose entries are a list");
    tn_module_drop(popped);
    tn_module_drop(more);
    tn_module_drop(tanh);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_parameter_list_makes_parameters_of_tensors)
{
    TN_SCOPE;
    tn_module *m = parsed("ParameterList((2, 3), (4, float64))");
    tn_tensor *x = numbers(1, 3), *a;
    ck_assert_int_eq(tn_list_count(m), 2);
    ck_assert_int_eq(tn_list_append_tensor(m, x), TN_OK);
    a = tn_list_tensor(m, -1);
    ck_assert(tn_tensor_is_parameter(a) && tn_tensor_requires_grad(a) && a != x);
    ck_assert_ptr_eq(tn_tensor_data(a), tn_tensor_data(x));
    ck_assert_int_eq(tn_list_append_tensor(m, a), TN_OK); /* a parameter goes in as it is */
    ck_assert_ptr_eq(tn_list_tensor(m, 3), a);
    ck_assert_int_eq(tn_list_append_tensor(m, TN_NONE), TN_OK);
    ck_assert_int_eq(tn_list_count(m), 5); /* the reserved one counts, too */
    ck_assert_int_eq(tn_tensor_dtype(tn_list_tensor(m, 1)), TN_F64);
    ck_assert_int_eq(tn_list_set_tensor(m, 1, numbers(7, 1)), TN_OK);
    ck_assert_int_eq(tn_tensor_numel(tn_list_tensor(m, 1)), 1);
    ck_assert_ptr_null(tn_list_tensor(m, 5));
    PROBLEM("index 5 is out of range");
    tn_module *slice = tn_list_slice(m, 2, 4, 1);
    ck_assert_ptr_eq(tn_list_tensor(slice, 0), a);
    ck_assert_int_eq(tn_module_parameter_count(slice), 3); /* once */
    ck_assert_ptr_null(tn_module_call(m, x));
    PROBLEM("ParameterList should not be called.");
    TN_PROVES("CTR-014");
    tn_module *holder = parsed(
        "Sequential(w=ParameterList((2,), (3,)), v=ParameterDict(left=(2,)))");
    tn_state *state = tn_module_state(holder);
    ck_assert_str_eq(tn_state_name(state, 1), "w.1");
    ck_assert_str_eq(tn_state_name(state, 2), "v.left");
    ck_assert_int_eq(tn_dict_set_tensor(tn_module_child(holder, "v"), "a.b", x), TN_ERR_KEY);
    tn_error_clear();
    TN_PROVES("CTR-017");
    ck_assert_int_eq(tn_module_train(holder, false), TN_OK);
    ck_assert(!tn_module_is_training(tn_module_child(holder, "w")) && !tn_failed());
    ck_assert_int_eq(tn_tensor_numel(tn_list_tensor(tn_module_child(holder, "w"), 1)), 3);
    TN_PROVES("CTR-018");
    ck_assert_int_eq(tn_module_to(holder, NULL, TN_F64), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_list_tensor(tn_module_child(holder, "w"), 0)), TN_F64);
    ck_assert_int_eq(tn_module_load_state(holder, state, true), TN_OK);
    TN_PROVES("CTR-019");
    tn_state_drop(state);
    tn_module_drop(holder);
    tn_module_drop(slice);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_parameter_dict_has_the_operations_of_a_dictionary)
{
    TN_SCOPE;
    tn_module *m = parsed("ParameterDict(foo=(2,), bar=(3,))"), *copy;
    tn_tensor *x = numbers(0, 4), *got;
    ck_assert_str_eq(tn_dict_key(m, 0), "foo"); /* keys stay in the order of the spec */
    ck_assert_str_eq(tn_dict_key(m, 1), "bar");
    ck_assert_int_eq(tn_dict_set_tensor(m, "new", x), TN_OK);
    got = tn_module_get(m, "new");
    ck_assert(tn_tensor_is_parameter(got));
    ck_assert(tn_dict_has(m, "new") && !tn_dict_has(m, "absent") && !tn_failed());
    ck_assert_int_eq(tn_dict_set_tensor(m, "more", numbers(1, 1)), TN_OK);
    copy = parsed("ParameterDict()");
    ck_assert_int_eq(tn_dict_update(copy, m), TN_OK);
    ck_assert_int_eq(tn_dict_count(copy), 4);
    ck_assert_ptr_eq(tn_module_get(copy, "new"), got);     /* shallow */
    got = tn_dict_pop_tensor(copy, tn_dict_key(copy, -1)); /* the last one: popitem */
    ck_assert_int_eq(tn_tensor_numel(got), 1);
    tn_tensor_drop(got);
    ck_assert_ptr_null(tn_dict_pop_tensor(copy, "more"));
    PROBLEM("no key \"more\"");
    ck_assert_str_eq(tn_dict_key(copy, -1), "new");
    ck_assert_int_eq(tn_dict_set_tensor(m, NULL, x), TN_ERR_TYPE);
    PROBLEM("it is NULL; expected a string");
    ck_assert_int_eq(tn_dict_clear(copy), TN_OK);
    ck_assert_int_eq(tn_dict_count(copy), 0);
    ck_assert_int_eq(tn_dict_count(m), 4);
    TN_PROVES("CTR-015", "CTR-016");
    tn_module_drop(copy);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_residual_adds_what_its_branch_makes)
{
    TN_SCOPE;
    tn_module *m = parsed("Residual(Linear(2, 2, bias=False), activation=ReLU())");
    tn_module *wide = parsed("Residual(a=Linear(2, 3), b=Tanh(), shortcut=Linear(2, 3))");
    tn_tensor *weight = tn_module_find_parameter(m, "0.weight"), *x = numbers(1, 2), *y;
    static const float values[4] = { 1, 0, -3, -1 };
    float got[2];
    ck_assert_int_eq(tn_tensor_copy_in(weight, values, sizeof values), TN_OK);
    y = tn_module_call(m, x); /* relu((1, -5) + (1, 2)) */
    ck_assert_int_eq(tn_tensor_copy_out(y, got, sizeof got), TN_OK);
    ck_assert(got[0] == 2 && got[1] == 0);
    y = tn_module_call(wide, x);
    ck_assert_int_eq(tn_tensor_numel(y), 3);
    tn_tensor *by_hand = tn_add(tn_tanh(tn_module_call(tn_module_child(wide, "a"), x)),
                                tn_module_call(tn_module_child(wide, "shortcut"), x));
    ck_assert_double_eq(tn_item(tn_sum(tn_sub(y, by_hand))), 0);
    expect_spec(m, "Residual((0): Linear(in_features=2, out_features=2, bias=False), (activation): "
                   "ReLU(inplace=False))");
    tn_module_drop(wide);
    tn_module_drop(m);
}
END_TEST

/* Each function names itself and the module that is of another kind, and does nothing. */
START_TEST(functions_of_containers_refuse_other_modules)
{
    TN_SCOPE;
    tn_module *m = parsed("ReLU()"), *child = parsed("Tanh()"), *modules = parsed("ModuleDict()");
    tn_tensor *x = numbers(0, 2);
    ck_assert_int_eq(tn_list_count(m), -1);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_int_eq(tn_list_insert(m, 0, child), TN_ERR_TYPE);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_int_eq(tn_list_set(m, 0, child), TN_ERR_TYPE);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_ptr_null(tn_list_pop(m, 0));
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_int_eq(tn_list_append_tensor(m, x), TN_ERR_TYPE);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_ptr_null(tn_list_tensor(m, 0));
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_int_eq(tn_list_delete_range(m, 0, 1, 1), TN_ERR_TYPE);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_ptr_null(tn_list_slice(m, 0, 1, 1));
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_ptr_null(tn_list_repeat(m, 2));
    PROBLEM("wrong type, got ReLU; expected a layer whose entries are a list");
    ck_assert_int_eq(tn_dict_count(m), -1);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    ck_assert_ptr_null(tn_dict_key(m, 0));
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    ck_assert(!tn_dict_has(m, "a"));
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    ck_assert_int_eq(tn_dict_set(m, "a", child), TN_ERR_TYPE);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    ck_assert_int_eq(tn_dict_set_tensor(m, "a", x), TN_ERR_TYPE);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    ck_assert_int_eq(tn_dict_set_tensor(modules, "a", x), TN_ERR_TYPE);
    PROBLEM("ModuleDict: wrong kind of entries, got modules; expected parameters");
    ck_assert_ptr_null(tn_dict_pop(m, "a"));
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    ck_assert_ptr_null(tn_dict_pop_tensor(m, "a"));
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    ck_assert_int_eq(tn_dict_clear(m), TN_ERR_TYPE);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    ck_assert_int_eq(tn_dict_update(modules, m), TN_ERR_TYPE);
    PROBLEM("wrong type, got ReLU; expected a layer whose entries have keys");
    tn_module *tensors = parsed("ParameterDict()");
    ck_assert_ptr_null(tn_dict_pop_tensor(tensors, NULL));
    PROBLEM("key: it is NULL; expected a string");
    tn_module *list = parsed("ParameterList()");
    ck_assert_int_eq(tn_list_append_tensor(list, NULL), TN_ERR_RUNTIME);
    PROBLEM("tn_list_append_tensor: tensor: it is NULL");
    ck_assert_int_eq(tn_list_count(list), 0);
    tn_module_drop(list);
    tn_module_drop(tensors);
    tn_module_drop(modules);
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_sequential_names_its_modules_and_feeds_one_value_through,
        indices_count_from_both_ends_and_slices_share_modules_and_keep_keys,
        setting_replaces_in_place_and_deleting_renumbers,
        lists_grow_at_the_end_and_in_between,
        lists_join_and_repeat_with_shared_modules,
        a_module_list_has_places_and_no_forward,
        a_module_dict_keeps_its_order,
        a_parameter_list_makes_parameters_of_tensors,
        a_parameter_dict_has_the_operations_of_a_dictionary,
        a_residual_adds_what_its_branch_makes,
        functions_of_containers_refuse_other_modules,
        NULL,
    };
    return suite_run("container", tests);
}
