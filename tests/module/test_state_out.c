/* SPDX-License-Identifier: MIT
 *
 * What a module's state is: names, order, versions, extra state, a layer's own way to save. Names
 * of rows are those of the behaviour specification. */
#include "tests/module/state_layers.h"

#define STATEFUL "Sequential(Linear(2, 3, bias=False), bn=BatchNorm1d(3))"

START_TEST(a_state_has_own_parameters_and_buffers_then_the_children)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(list=Sequential(Linear(2, 1)), linear=Linear(1, 1))");
    tn_module_add_parameter(m, "param1", tn_parameter(filled(1, 1), true));
    tn_module_add_buffer(m, "buffer1", filled(1, 1), 0);
    tn_module_add_parameter(m, "param2", tn_parameter(filled(1, 1), true));
    tn_module_add_parameter(m, "none", TN_NONE);
    tn_module_add_buffer(m, "nothing", TN_NONE, 0);
    tn_module_add_buffer(m, "scratch", filled(1, 1), TN_SLOT_FLAG_NOT_PERSISTENT);
    tn_state *state = taken(m);
    expect_names(state,
                 "param1 param2 buffer1 list.0.weight list.0.bias linear.weight linear.bias ");
    ck_assert_int_eq(tn_state_version(state, ""), 1);
    ck_assert_int_eq(tn_state_version(state, "list"), 1);
    ck_assert_int_eq(tn_state_version(state, "list.0"), 1);
    ck_assert_int_eq(tn_state_version(state, "none"), -1);
    ck_assert_int_eq(tn_state_version_count(state), 4);
    ck_assert_str_eq(tn_state_version_path(state, 3), "linear");
    TN_PROVES("SD-001", "SD-002", "SD-003", "SD-012");
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_module_under_two_names_is_saved_under_both)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(linear1=Linear(2, 2), bn=BatchNorm1d(2))");
    tn_module_add_child(m, "linear2", tn_module_child(m, "linear1"));
    tn_state *state = taken(m);
    expect_names(state, "linear1.weight linear1.bias bn.weight bn.bias bn.running_mean "
                        "bn.running_var bn.num_batches_tracked linear2.weight linear2.bias ");
    tn_tensor *one = tn_state_tensor(state, 0), *two = tn_state_tensor(state, 7);
    ck_assert_ptr_eq(tn_tensor_data(one), tn_tensor_data(two));
    ck_assert(tn_tensor_shares_storage(one, two));
    ck_assert_int_eq(tn_state_version_count(state), 4);
    ck_assert_int_eq(tn_state_version(state, "linear2"), 1);
    ck_assert_int_eq(tn_state_version(state, "bn"), 2);
    TN_PROVES("SD-004", "SD-011", "VER-001");
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

START_TEST(values_are_views_outside_the_graph_or_the_tensors_themselves)
{
    TN_SCOPE;
    tn_module *m = parsed(STATEFUL);
    tn_tensor *weight = tn_module_find_tensor(m, "0.weight");
    tn_state *state = taken(m), *vars = tn_state_new();
    tn_tensor *entry = tn_state_tensor(state, 0);
    ck_assert_ptr_ne(entry, weight);
    ck_assert(!tn_tensor_requires_grad(entry) && tn_tensor_requires_grad(weight));
    tn_fill_(entry, 3.5);
    ck_assert_double_eq(first(weight), 3.5);
    tn_grad_begin(false);
    tn_fill_(weight, -2);
    tn_grad_end();
    ck_assert_double_eq(first(entry), -2);
    ck_assert_int_eq(tn_module_state_into(m, vars, "", TN_STATE_KEEP_VARS), TN_OK);
    ck_assert_ptr_eq(tn_state_tensor(vars, 0), weight);
    ck_assert(tn_tensor_requires_grad(tn_state_tensor(vars, 0)));
    int64_t mean = tn_state_find(vars, "bn.running_mean");
    ck_assert_ptr_eq(tn_state_tensor(vars, mean), tn_module_find_tensor(m, "bn.running_mean"));
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        ck_assert(!tn_tensor_requires_grad(tn_state_tensor(state, i)));
        ck_assert(!tn_tensor_is_parameter(tn_state_tensor(state, i)));
    }
    ck_assert_int_eq(tn_module_state_into(m, vars, "", 8), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "flags: unknown, got 0x8");
    TN_PROVES("SD-005", "SD-006", "SER-006");
    tn_state_drop(state);
    tn_state_drop(vars);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_prefix_stands_in_front_as_it_is_and_two_modules_fit_into_one_state)
{
    TN_SCOPE;
    tn_module *a = parsed("Linear(2, 1)"), *b = parsed("Sequential(Linear(1, 1))");
    tn_state *state = tn_state_new();
    tn_state_set(state, "first", filled(1, 1));
    ck_assert_int_eq(tn_module_state_into(a, state, "foo.", 0), TN_OK);
    ck_assert_int_eq(tn_module_state_into(b, state, "bar", 0), TN_OK);
    expect_names(state, "first foo.weight foo.bias bar0.weight bar0.bias ");
    ck_assert_int_eq(tn_state_version(state, "foo"), 1);
    ck_assert_int_eq(tn_state_version(state, "bar"), 1);
    ck_assert_int_eq(tn_state_version(state, "bar0"), 1);
    ck_assert_int_eq(tn_state_version_count(state), 3);
    /* what a layer with a save_state of its own calls: nothing of its children */
    ck_assert_int_eq(tn_module_save_own(b, state, "own.", 0), TN_OK);
    ck_assert_int_eq(tn_module_save_own(tn_module_child(b, "0"), state, "own.", 0), TN_OK);
    expect_names(state, "first foo.weight foo.bias bar0.weight bar0.bias own.weight own.bias ");
    /* SD-009: there are no positional arguments that could be out of date. */
    TN_PROVES("SD-007", "SD-008", "SD-009");
    tn_state_drop(state);
    tn_module_drop(a);
    tn_module_drop(b);
}
END_TEST

START_TEST(a_layer_saves_and_loads_its_part_in_its_own_way)
{
    TN_SCOPE;
    register_state_layers();
    tn_module *m = parsed("Sequential(c=Custom())"), *to = parsed("Sequential(c=Custom())");
    fill(m, 4);
    tn_grad_begin(false);
    tn_fill_(tn_module_find_tensor(m, "c.param"), 10);
    tn_fill_(tn_module_find_tensor(m, "c.sub.weight"), 4);
    tn_grad_end();
    tn_state *state = taken(m);
    expect_names(state, "c.serialized c.sub.weight c.sub.bias ");
    ck_assert_double_eq(first(tn_state_tensor(state, 0)), 11);
    ck_assert_int_eq(tn_state_version(state, "c"), 7);
    ck_assert_msg(tn_module_load_state(to, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert_double_eq(first_of(to, "c.param"), 10);
    ck_assert_double_eq(first_of(to, "c.sub.weight"), 4);
    ck_assert_int_eq(custom_version, 7);
    ck_assert_int_eq(tn_state_count(state), 3);
    tn_state_set_version(state, "c", -1);
    ck_assert_int_eq(tn_module_load_state(to, state, true), TN_OK);
    ck_assert_int_eq(custom_version, -1);
    tn_state_remove(state, "c.serialized");
    ck_assert_int_eq(tn_module_load_state(to, state, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "Missing key(s) in state_dict: \"c.serialized\". ");
    TN_PROVES("SD-010", "LSD-027", "VER-002");
    tn_state_drop(state);
    tn_module_drop(m);
    tn_module_drop(to);
}
END_TEST

START_TEST(children_with_numbers_for_names_come_by_place)
{
    TN_SCOPE;
    char spec[512] = "Sequential(", name[16];
    for (int i = 0; i < 11; i++)
        strcat(spec, i < 10 ? "Linear(1, 1, bias=False), " : "Linear(1, 1, bias=False))");
    tn_module *m = parsed(spec);
    tn_state *state = taken(m);
    ck_assert_int_eq(tn_state_count(state), 11);
    for (int i = 0; i < 11; i++) {
        tn_snprint(name, sizeof name, "%d.weight", i);
        ck_assert_str_eq(tn_state_name(state, i), name);
    }
    TN_PROVES("SD-013");
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

/* ---- extra state ----------------------------------------------------------------------------- */

START_TEST(extra_state_stands_behind_the_buffers_of_layers_that_have_some)
{
    TN_SCOPE;
    register_state_layers();
    tn_module *m = parsed("Noted()"), *to = parsed("Noted()"), *inner = parsed("Noted()");
    tn_module_add_buffer(m, "b", filled(1, 1), 0);
    tn_module_add_parameter(m, "p", tn_parameter(filled(1, 1), true));
    tn_module_add_child(m, "inner", inner);
    tn_module_add_buffer(to, "b", filled(1, 0), 0);
    tn_module_add_parameter(to, "p", tn_parameter(filled(1, 0), true));
    tn_module *to_inner = parsed("Noted()");
    tn_module_add_child(to, "inner", to_inner);
    tn_module_set_extra_state(inner, tn_value_string("inside"));
    tn_state *state = taken(m);
    expect_names(state, "p b _extra_state inner._extra_state ");
    ck_assert_int_eq(tn_state_value(state, 2).as.i, 5);
    ck_assert_str_eq(tn_state_value(state, 3).as.s, "inside");
    ck_assert_ptr_null(tn_state_tensor(state, 2));
    expect_failure(TN_ERR_TYPE, "wrong kind, got int; expected a tensor");
    noted_sets = 0;
    ck_assert_msg(tn_module_load_state(to, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(noted_sets, 2);
    tn_pack *got = tn_pack_new();
    ck_assert_int_eq(tn_module_extra_state(to_inner, got), TN_OK);
    ck_assert_str_eq(tn_pack_at(got, 0).as.s, "inside");
    tn_pack_drop(got);
    TN_PROVES("XS-001", "XS-002");
    tn_state_drop(state);
    tn_module_drop(m);
    tn_module_drop(inner);
    tn_module_drop(to);
    tn_module_drop(to_inner);
}
END_TEST

START_TEST(a_layer_with_one_of_the_two_callbacks_misses_or_does_not_know_the_key)
{
    TN_SCOPE;
    register_state_layers();
    tn_module *sets = parsed("Sequential(s=OnlySets())"),
              *gets = parsed("Sequential(s=OnlyGets())");
    tn_state *empty = taken(sets), *full = taken(gets);
    expect_names(empty, "");
    expect_names(full, "s._extra_state ");
    ck_assert_int_eq(tn_module_load_state(sets, empty, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "Missing key(s) in state_dict: \"s._extra_state\". ");
    ck_assert_int_eq(tn_module_load_state(sets, empty, false), TN_OK);
    ck_assert_int_eq(tn_module_load_state(gets, full, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "Unexpected key(s) in state_dict: \"s._extra_state\". ");
    ck_assert_int_eq(tn_module_load_state(gets, full, false), TN_OK);
    TN_PROVES("XS-003", "XS-004");
    tn_pack *out = tn_pack_new();
    tn_module *plain = parsed("ReLU()");
    ck_assert_int_eq(tn_module_extra_state(plain, out), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "get_extra_state");
    ck_assert_int_eq(tn_module_set_extra_state(plain, tn_value_int(1)), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "set_extra_state");
    TN_PROVES("XS-005");
    noted_count = 2;
    ck_assert_ptr_null(tn_module_state(gets));
    expect_failure(TN_ERR_VALUE, "wrong result, got 2 values; expected one");
    tn_pack_drop(out);
    tn_state_drop(empty);
    tn_state_drop(full);
    tn_module_drop(plain);
    tn_module_drop(sets);
    tn_module_drop(gets);
}
END_TEST

START_TEST(extra_state_is_a_value_of_any_kind)
{
    TN_SCOPE;
    register_state_layers();
    tn_module *m = parsed("Noted()"), *to = parsed("Noted()"), *kept = parsed("Linear(1, 1)");
    tn_value list[] = { tn_value_float(0.5), tn_value_bool(true), tn_value_tensor(filled(1, 6)) };
    tn_value module = { .kind = TN_VALUE_MODULE, .as = { .module = kept } };
    tn_value row = { .kind = TN_VALUE_LIST, .count = 3, .as = { .list = list } };
    const tn_value values[] = { tn_value_int(-7), tn_value_string("text"),
                                tn_value_bytes("a\0b", 3), row, module };
    for (int i = 0; i < tn__countof(values); i++) {
        noted_gives = values[i];
        tn_state *state = taken(m);
        ck_assert_msg(tn_module_load_state(to, state, true) == TN_OK, "%s", tn_error_text());
        tn_pack *got = tn_pack_new();
        ck_assert_int_eq(tn_module_extra_state(to, got), TN_OK);
        tn_value value = tn_pack_at(got, 0);
        ck_assert_int_eq(value.kind, values[i].kind);
        if (i == 0)
            ck_assert_int_eq(value.as.i, -7);
        else if (i == 1)
            ck_assert_str_eq(value.as.s, "text");
        else if (i == 2)
            ck_assert(value.count == 3 && memcmp(value.as.s, "a\0b", 3) == 0);
        else if (i == 3)
            ck_assert(value.count == 3 && value.as.list[0].as.f == 0.5 &&
                      first(value.as.list[2].as.tensor) == 6);
        else
            ck_assert_ptr_eq(value.as.module, kept);
        tn_pack_drop(got);
        tn_state_drop(state);
    }
    noted_gives = (tn_value){ .kind = TN_VALUE_OPAQUE };
    ck_assert_ptr_null(tn_module_state(m));
    expect_failure(TN_ERR_TYPE, "cannot be saved, got an opaque value");
    /* XS-007 is said where the callbacks are declared (layer.h) and in docs/guides/state.md. */
    TN_PROVES("XS-006", "XS-007");
    tn_module_drop(m);
    tn_module_drop(to);
    tn_module_drop(kept);
}
END_TEST

START_TEST(a_slot_of_that_name_is_a_slot_and_collides_with_extra_state)
{
    TN_SCOPE;
    register_state_layers();
    tn_module *plain = parsed("Sequential()"), *m = parsed("Noted()");
    tn_module_add_buffer(plain, "_extra_state", filled(1, 2), 0);
    tn_module_add_buffer(m, "_extra_state", filled(1, 2), 0);
    tn_state *state = taken(plain);
    expect_names(state, "_extra_state ");
    ck_assert_msg(tn_module_load_state(plain, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert_ptr_null(tn_module_state(m));
    expect_failure(TN_ERR_KEY, "same name in a state as the parameter or buffer '_extra_state'");
    TN_PROVES("XS-008");
    tn_state_drop(state);
    tn_module_drop(plain);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_prefix_is_taken_off_names_and_versions_utl_004)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    tn_tensor *x = tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_F32, NULL);

    ck_assert_int_eq(tn_state_set(state, "module.a.weight", x), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "other", x), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "module.b", x), TN_OK);
    ck_assert_int_eq(tn_state_set_version(state, "module", 3), TN_OK);
    ck_assert_int_eq(tn_state_set_version(state, "module.a", 2), TN_OK);
    ck_assert_int_eq(tn_state_set_version(state, "moduleb", 7), TN_OK);
    ck_assert_int_eq(tn_state_strip_prefix(state, "module."), TN_OK);
    ck_assert_int_eq(tn_state_count(state), 3);
    ck_assert_str_eq(tn_state_name(state, 0), "a.weight");
    ck_assert_str_eq(tn_state_name(state, 1), "other");
    ck_assert_str_eq(tn_state_name(state, 2), "b");
    ck_assert_int_eq(tn_state_version(state, ""), 3);
    ck_assert_int_eq(tn_state_version(state, "a"), 2);
    ck_assert_int_eq(tn_state_version(state, "moduleb"), 7);
    ck_assert_int_eq(tn_state_version_count(state), 3);
    ck_assert_int_eq(tn_state_strip_prefix(state, "module."), TN_OK); /* there is none any more */
    ck_assert_int_eq(tn_state_set(state, "x.b", x), TN_OK);
    ck_assert_int_eq(tn_state_strip_prefix(state, "x."), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "x.b");
    ck_assert_int_ge(tn_state_find(state, "x.b"), 0);
    TN_PROVES("UTL-004");
    tn_state_drop(state);
}
END_TEST

START_TEST(entries_are_taken_out_and_renamed_in_their_place)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    char name[16], to[16];
    for (int i = 0; i < 200; i++) {
        tn_snprint(name, sizeof name, "n%d", i);
        tn_state_set_value(state, name, tn_value_int(i));
        tn_state_set_version(state, name, i);
        tn_state_set_meta(state, name, name);
    }
    for (int i = 0; i < 200; i += 3) {
        tn_snprint(name, sizeof name, "n%d", i);
        ck_assert_int_eq(tn_state_remove(state, name), TN_OK);
        ck_assert_int_eq(tn_state_set_version(state, name, -1), TN_OK);
        ck_assert_int_eq(tn_state_remove_meta(state, name), TN_OK);
    }
    for (int i = 1; i < 200; i += 3) {
        tn_snprint(name, sizeof name, "n%d", i);
        tn_snprint(to, sizeof to, "m%d", i);
        ck_assert_int_eq(tn_state_rename(state, name, to), TN_OK);
    }
    ck_assert_int_eq(tn_state_count(state), 133);
    ck_assert_int_eq(tn_state_version_count(state), 133);
    ck_assert_int_eq(tn_state_meta_count(state), 133);
    for (int i = 0; i < 200; i++) {
        tn_snprint(name, sizeof name, i % 3 == 1 ? "m%d" : "n%d", i);
        int64_t found = tn_state_find(state, name);
        ck_assert_int_eq(found, i % 3 == 0 ? -1 : i / 3 * 2 + i % 3 - 1);
        if (found >= 0)
            ck_assert_int_eq(tn_state_value(state, found).as.i, i);
        tn_snprint(name, sizeof name, "n%d", i);
        ck_assert_int_eq(tn_state_version(state, name), i % 3 == 0 ? -1 : i);
        ck_assert_int_eq(tn_state_meta(state, name) != NULL, i % 3 != 0);
    }
    ck_assert_int_eq(tn_state_rename(state, "m1", "n2"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "entry \"n2\": exists already");
    ck_assert_int_eq(tn_state_rename(state, "m1", "m1"), TN_OK);
    ck_assert_int_eq(tn_state_remove(state, "gone"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "no entry \"gone\"");
    ck_assert_int_eq(tn_state_set_version(state, "x", -2), TN_ERR_VALUE);
    tn_error_clear();
    tn_state_drop(state);
}
END_TEST

START_TEST(a_state_that_runs_out_of_memory_leaves_nothing_behind)
{
    TN_SCOPE;
    register_state_layers();
    tn_module *m = parsed("Sequential(c=Custom(), n=Noted(), bn=BatchNorm1d(2))");
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_state *state = tn_module_state(m);
        bool reached = tn__memory_fail(0) >= n;
        ck_assert(state != NULL || tn_error_code() == TN_ERR_MEMORY);
        tn_error_clear();
        tn_state_drop(state);
        if (!reached)
            break;
    }
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_state_has_own_parameters_and_buffers_then_the_children,
        a_module_under_two_names_is_saved_under_both,
        values_are_views_outside_the_graph_or_the_tensors_themselves,
        a_prefix_stands_in_front_as_it_is_and_two_modules_fit_into_one_state,
        a_layer_saves_and_loads_its_part_in_its_own_way,
        children_with_numbers_for_names_come_by_place,
        extra_state_stands_behind_the_buffers_of_layers_that_have_some,
        a_layer_with_one_of_the_two_callbacks_misses_or_does_not_know_the_key,
        extra_state_is_a_value_of_any_kind,
        a_slot_of_that_name_is_a_slot_and_collides_with_extra_state,
        entries_are_taken_out_and_renamed_in_their_place,
        a_prefix_is_taken_off_names_and_versions_utl_004,
        a_state_that_runs_out_of_memory_leaves_nothing_behind,
        NULL,
    };
    return suite_run("state out", tests);
}
