/* SPDX-License-Identifier: MIT
 *
 * Names of slots: which names are allowed, the order of the checks, slots that an assignment
 * replaces, reserved names, and names of computed slots. The rows are of the area REG of the
 * behaviour specification. */
#include "core/module/internal.h"
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

#include <tenon/tenon.h>

static tn_module *bare(void)
{
    tn_module *module = tn_module_new("Sequential()");
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    return module;
}

static tn_tensor *filled(int64_t n, double value)
{
    return tn_tensor_full(TN_SHAPE(n), value, TN_F32, NULL);
}

static tn_tensor *parameter(int64_t n)
{
    return tn_parameter(filled(n, 1.0), true);
}

/* The module's own slots that hold something, as a text such as "p:weight b:mean m:child ". */
struct own {
    char text[256];
};

static tn_status note(void *user, const tn_visit *what)
{
    struct own *own = user;
    const char *kind = what->kind == TN_SLOT_PARAMETER ? "p:"
                       : what->kind == TN_SLOT_BUFFER  ? "b:"
                                                       : "m:";
    strcat(strcat(strcat(own->text, kind), what->path), " ");
    return TN_OK;
}

#define expect_own(m, expected)                                                                    \
    do {                                                                                           \
        struct own own_ = { "" };                                                                  \
        const tn_walk_options options_ = { sizeof options_, TN_WALK_DIRECT, NULL, NULL };          \
        ck_assert_int_eq(tn_module_walk(m, 7, &options_, note, &own_), TN_OK);                     \
        ck_assert_str_eq(own_.text, expected);                                                     \
    } while (0)

static int64_t keys(tn_module *m)
{
    tn_state *state = tn_module_state(m);
    int64_t count = tn_state_count(state);
    tn_state_drop(state);
    return count;
}

START_TEST(a_fresh_module_has_nothing_and_trains_reg_001)
{
    tn_module *m = bare();
    expect_own(m, "");
    ck_assert(tn_module_is_training(m));
    ck_assert_uint_eq(tn_module_slot_kind(m, "weight"), 0);
    TN_PROVES("REG-001");
    tn_module_drop(m);
}
END_TEST

START_TEST(reserved_parameters_and_buffers_are_empty_names_reg_003_reg_020)
{
    TN_SCOPE;
    tn_module *m = bare();
    ck_assert_int_eq(tn_module_add_parameter(m, "p", TN_NONE), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "p"), TN_NONE);
    ck_assert_int_eq(tn_module_parameter_count(m), 0);
    ck_assert_int_eq(keys(m), 0);
    expect_own(m, "");
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "p"), TN_NONE);
    ck_assert_int_eq(tn_module_set(m, "p", filled(1, 0)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "as parameter 'p'");
    ck_assert_int_eq(tn_module_set(m, "p", parameter(1)), TN_OK);
    ck_assert_int_eq(tn_module_parameter_count(m), 1);
    TN_PROVES("REG-003");
    ck_assert_int_eq(tn_module_add_buffer(m, "b", TN_NONE, TN_SLOT_FLAG_NOT_PERSISTENT), TN_OK);
    expect_own(m, "p:p ");
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "b"), TN_NONE);
    ck_assert_int_eq(tn_module_set(m, "b", filled(1, 0)), TN_OK);
    expect_own(m, "p:p b:b ");
    ck_assert_int_eq(keys(m), 1); /* it was reserved as not persistent */
    ck_assert_int_eq(tn_module_add_buffer(m, "c", TN_NONE, 0), TN_OK);
    ck_assert_int_eq(keys(m), 1);
    ck_assert_int_eq(tn_module_set(m, "c", filled(1, 0)), TN_OK);
    ck_assert_int_eq(keys(m), 2);
    TN_PROVES("REG-020");
    tn_module_drop(m);
}
END_TEST

START_TEST(names_of_tensors_are_checked_for_text_dot_empty_taken_reg_007)
{
    TN_SCOPE;
    tn_module *m = bare(), *child = bare();
    ck_assert_int_eq(tn_module_add_child(m, "taken", child), TN_OK);
    ck_assert_int_eq(tn_module_add_parameter(m, NULL, parameter(1)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "parameter name: it is NULL; expected a string");
    ck_assert_int_eq(tn_module_add_buffer(m, NULL, filled(1, 0), 0), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "buffer name: it is NULL; expected a string");
    ck_assert_int_eq(tn_module_add_parameter(m, "taken.x", parameter(1)), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "parameter name can't contain \".\"");
    ck_assert_int_eq(tn_module_add_buffer(m, "a.b", filled(1, 0), 0), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "buffer name can't contain \".\"");
    ck_assert_int_eq(tn_module_add_parameter(m, "", parameter(1)), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "parameter name can't be empty string \"\"");
    ck_assert_int_eq(tn_module_add_buffer(m, "", filled(1, 0), 0), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "buffer name can't be empty string \"\"");
    ck_assert_int_eq(tn_module_add_parameter(m, "taken", parameter(1)), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'taken' already exists");
    /* The name is looked at before the tensor. */
    ck_assert_int_eq(tn_module_add_parameter(m, "a.b", filled(1, 0)), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "can't contain");
    expect_own(m, "m:taken ");
    TN_PROVES("REG-007");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(names_of_children_are_checked_for_text_taken_dot_empty_reg_008)
{
    TN_SCOPE;
    tn_module *m = bare(), *child = bare();
    ck_assert_int_eq(tn_module_add_buffer(m, "b", filled(1, 0), 0), TN_OK);
    tn_fail(TN_ERR_IO, "the child failed"); /* NULL passes on the earlier failure */
    ck_assert_int_eq(tn_module_add_child(m, NULL, NULL), TN_ERR_IO);
    expect_failure(TN_ERR_IO, "the child failed");
    ck_assert_int_eq(tn_module_add_child(m, NULL, child), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "module name: it is NULL; expected a string");
    ck_assert_int_eq(tn_module_add_child(m, "b", child), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'b' already exists");
    ck_assert_int_eq(tn_module_add_child(m, "x.y", child), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "module name can't contain \".\", got: \"x.y\"");
    ck_assert_int_eq(tn_module_add_child(m, "", child), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "module name can't be empty string \"\"");
    ck_assert_int_eq(tn_module_reserve_child(m, "b"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'b' already exists");
    ck_assert_int_eq(tn_module_reserve_child(m, "x.y"), TN_ERR_KEY);
    tn_error_clear();
    expect_own(m, "b:b ");
    TN_PROVES("REG-008");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_name_has_one_kind_and_the_same_kind_replaces_in_place_reg_009_reg_014)
{
    TN_SCOPE;
    tn_module *m = bare(), *child = bare();
    tn_tensor *first = parameter(1), *second = parameter(2);
    ck_assert_int_eq(tn_module_add_parameter(m, "a", first), TN_OK);
    ck_assert_int_eq(tn_module_add_parameter(m, "z", parameter(1)), TN_OK);
    ck_assert_int_eq(tn_module_add_buffer(m, "a", filled(1, 0), 0), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'a' already exists: it is a parameter");
    ck_assert_int_eq(tn_module_add_child(m, "a", child), TN_ERR_KEY);
    tn_error_clear();
    ck_assert_int_eq(tn_module_add_child(m, "c", child), TN_OK);
    ck_assert_int_eq(tn_module_add_buffer(m, "c", filled(1, 0), 0), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'c' already exists: it is a module");
    ck_assert_int_eq(tn_module_add_buffer(m, "b", filled(1, 0), 0), TN_OK);
    ck_assert_int_eq(tn_module_add_parameter(m, "b", first), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'b' already exists: it is a buffer");
    ck_assert_ptr_eq(tn_module_get(m, "a"), first);
    TN_PROVES("REG-014");
    ck_assert_int_eq(tn_module_add_parameter(m, "a", second), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "a"), second);
    expect_own(m, "p:a p:z b:b m:c ");
    TN_PROVES("REG-009");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(assigning_a_parameter_takes_the_name_reg_011)
{
    TN_SCOPE;
    tn_module *m = bare(), *child = bare();
    tn_tensor *p = parameter(2);
    tn_module_add_buffer(m, "x", filled(1, 0), TN_SLOT_FLAG_NOT_PERSISTENT);
    tn_module_add_child(m, "y", child);
    ck_assert_int_eq(tn_module_set(m, "x", p), TN_OK);
    ck_assert_uint_eq(tn_module_slot_kind(m, "x"), TN_SLOT_PARAMETER);
    expect_own(m, "p:x m:y ");
    ck_assert_int_eq(keys(m), 1);
    ck_assert_int_eq(tn_module_assign(m, "y", tn_value_tensor(p)), TN_OK);
    ck_assert_int_eq(tn_module_set(m, "new", p), TN_OK);
    expect_own(m, "p:x ");
    ck_assert_ptr_eq(tn_module_get(m, "new"), p);
    ck_assert_int_eq(tn_module_set(m, "a.b", p), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "parameter name can't contain \".\"");
    /* A tensor that is refused does not replace the one of that name. */
    tn_tensor *made = tn_parameter(filled(1, 1), false);
    tn_module_add_buffer(m, "b", filled(1, 0), 0);
    ck_assert_ptr_nonnull(tn_mul_(made, parameter(1)));
    ck_assert_int_eq(tn_module_set(m, "b", made), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "non-leaf");
    ck_assert_uint_eq(tn_module_slot_kind(m, "b"), TN_SLOT_BUFFER);
    TN_PROVES("REG-011");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

static tn_value module_value(tn_module *module)
{
    tn_value value = tn_value_int(0);
    value.kind = TN_VALUE_MODULE;
    value.as.module = module;
    return value;
}

static tn_value none_value(void)
{
    tn_value value = tn_value_int(0);
    value.kind = TN_VALUE_NONE;
    return value;
}

START_TEST(assigning_a_module_takes_the_name_and_a_child_slot_holds_modules_reg_012)
{
    TN_SCOPE;
    tn_module *m = bare(), *child = tn_module_new("ReLU()");
    tn_module_add_parameter(m, "p", parameter(1));
    tn_module_add_buffer(m, "b", filled(1, 0), TN_SLOT_FLAG_NOT_PERSISTENT);
    ck_assert_int_eq(tn_module_assign(m, "p", module_value(child)), TN_OK);
    ck_assert_ptr_eq(tn_module_child(m, "p"), child);
    ck_assert_int_eq(tn_module_assign(m, "b", module_value(child)), TN_OK);
    ck_assert_uint_eq(tn_module_slot_kind(m, "b"), TN_SLOT_CHILD);
    ck_assert_int_eq(tn_module_parameter_count(m), 0);
    ck_assert_int_eq(keys(m), 0);
    ck_assert_int_eq(tn_module_set(m, "p", filled(1, 0)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE,
                   "cannot assign 'tensor' as child module 'p' (a module or None expected)");
    ck_assert_int_eq(tn_module_assign(m, "p", tn_value_int(3)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "cannot assign 'int' as child module 'p'");
    ck_assert_ptr_eq(tn_module_child(m, "p"), child);
    ck_assert_int_eq(tn_module_assign(m, "p", none_value()), TN_OK);
    ck_assert_ptr_null(tn_module_child(m, "p"));
    ck_assert_uint_eq(tn_module_slot_kind(m, "p"), TN_SLOT_CHILD);
    ck_assert_int_eq(tn_module_assign(m, "me", module_value(m)), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "modules form a tree");
    TN_PROVES("REG-012");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_tensor_assigned_to_a_buffer_is_the_buffer_reg_013_reg_015_reg_016)
{
    TN_SCOPE;
    tn_module *m = bare();
    tn_tensor *mean = filled(2, 5.0);
    tn_module_add_buffer(m, "mean", filled(2, 0), TN_SLOT_FLAG_NOT_PERSISTENT);
    tn_module_add_buffer(m, "last", filled(2, 0), 0);
    ck_assert_int_eq(tn_module_set(m, "mean", mean), TN_OK);
    ck_assert_ptr_eq(tn_module_find_buffer(m, "mean"), mean);
    ck_assert_int_eq(keys(m), 1);
    ck_assert_int_eq(tn_module_set(m, "mean", TN_NONE), TN_OK);
    expect_own(m, "b:last ");
    ck_assert_int_eq(tn_module_assign(m, "mean", tn_value_tensor(mean)), TN_OK);
    expect_own(m, "b:mean b:last ");
    ck_assert_int_eq(keys(m), 1);
    TN_PROVES("REG-013");
    ck_assert_int_eq(tn_module_assign(m, "mean", tn_value_string("words")), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "cannot assign 'string' as buffer 'mean' (a tensor or None "
                                "expected)");
    ck_assert_ptr_eq(tn_module_get(m, "mean"), mean);
    TN_PROVES("REG-015");
    ck_assert_int_eq(tn_module_set(m, "other", filled(1, 0)), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "'Sequential' object has no parameter or buffer 'other'; buffers: "
                                "mean, last");
    ck_assert_int_eq(tn_module_assign(m, "other", tn_value_int(1)), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_uint_eq(tn_module_slot_kind(m, "other"), 0);
    expect_own(m, "b:mean b:last ");
    TN_PROVES("REG-016");
    tn_module_drop(m);
}
END_TEST

START_TEST(what_c_cannot_be_given_is_an_error_where_it_can_be_null_reg_021_reg_025_reg_027)
{
    TN_SCOPE;
    tn_module *m = tn_module_new("Sequential()");

    ck_assert_int_ne(tn_module_add_buffer(m, "b", NULL, 0), TN_OK);
    tn_error_clear();
    ck_assert_int_eq(tn_module_assign(m, "b", tn_value_int(3)), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_int_eq(
        tn_module_add_buffer(m, "b", tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_F32, NULL), 0), TN_OK);
    ck_assert_int_eq(tn_module_assign(m, "b", tn_value_int(3)), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_double_eq(tn_item(tn_module_get(m, "b")), 1.0);
    TN_PROVES("REG-021");
    ck_assert_int_ne(tn_module_add_child(m, "c", NULL), TN_OK);
    tn_error_clear();
    ck_assert_int_eq(tn_module_child_count(m), 0);
    TN_PROVES("REG-025");
    ck_assert_int_ne(tn_module_add_parameter(NULL, "p", TN_NONE), TN_OK);
    tn_error_clear();
    ck_assert_int_ne(tn_module_add_buffer(NULL, "b", TN_NONE, 0), TN_OK);
    tn_error_clear();
    ck_assert_int_ne(tn_module_add_child(NULL, "c", m), TN_OK);
    tn_error_clear();
    TN_PROVES("REG-027");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_removed_name_is_gone_from_its_map_with_its_mark_reg_018_reg_022)
{
    TN_SCOPE;
    tn_module *m = bare(), *child = bare();
    tn_module_add_parameter(m, "p", parameter(1));
    tn_module_add_buffer(m, "b", filled(1, 0), TN_SLOT_FLAG_NOT_PERSISTENT);
    tn_module_add_child(m, "c", child);
    tn_module_to(m, NULL, TN_F64);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "b")), TN_F64);
    ck_assert_int_eq(tn_module_remove(m, "p"), TN_OK);
    expect_own(m, "b:b m:c ");
    tn_state *empty = tn_state_new();
    ck_assert_int_eq(tn_module_load_state(m, empty, true), TN_OK);
    tn_state_set(empty, "b", filled(1, 0));
    ck_assert_int_eq(tn_module_load_state(m, empty, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "Unexpected key(s) in state_dict: \"b\"");
    tn_state_drop(empty);
    TN_PROVES("REG-018");
    ck_assert_int_eq(tn_module_remove(m, "b"), TN_OK);
    ck_assert_int_eq(tn_module_remove(m, "c"), TN_OK);
    expect_own(m, "");
    ck_assert_int_eq(tn_module_add_buffer(m, "b", filled(1, 0), 0), TN_OK);
    ck_assert_int_eq(keys(m), 1);
    ck_assert_int_eq(tn_module_remove(m, "nothing"), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "'Sequential' object has no attribute 'nothing'");
    TN_PROVES("REG-022");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_reserved_child_is_a_name_without_a_module_reg_023)
{
    TN_SCOPE;
    tn_module *m = bare(), *child = tn_module_new("Linear(1, 1)");
    ck_assert_int_eq(tn_module_reserve_child(m, "down"), TN_OK);
    expect_own(m, "");
    ck_assert_int_eq(keys(m), 0);
    ck_assert_ptr_null(tn_module_find(m, "down"));
    expect_failure(TN_ERR_ATTR, "`down` of Sequential is not a module");
    ck_assert_int_eq(tn_module_train(m, false), TN_OK);
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    ck_assert_int_eq(tn_module_assign(m, "down", module_value(child)), TN_OK);
    ck_assert_int_eq(keys(m), 2);
    /* Reserving the name of a child takes it out. */
    ck_assert_int_eq(tn_module_reserve_child(m, "down"), TN_OK);
    ck_assert_int_eq(keys(m), 0);
    ck_assert_int_eq(tn_module_child_count(m), 1);
    TN_PROVES("REG-023");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_child_is_replaced_in_its_place_and_may_have_many_names_reg_024_reg_031)
{
    tn_module *m = tn_module_new("Sequential(ReLU(), Linear(2, 2), Tanh())"),
              *other = tn_module_new("Sigmoid()");
    ck_assert_int_eq(keys(m), 2);
    ck_assert_ptr_nonnull(tn_module_find_tensor(m, "1.weight"));
    TN_PROVES("REG-031");
    ck_assert_int_eq(tn_module_add_child(m, "1", other), TN_OK);
    ck_assert_int_eq(tn_module_child_count(m), 3);
    ck_assert_str_eq(tn_module_type(tn_module_child_at(m, 1)), "Sigmoid");
    ck_assert_int_eq(tn_module_add_child(m, "again", other), TN_OK);
    ck_assert_int_eq(tn_module_child_count(m), 4);
    expect_own(m, "m:0 m:1 m:2 ");
    TN_PROVES("REG-024");
    tn_module_drop(other);
    tn_module_drop(m);
}
END_TEST

/* ---- any sequence of changes ----------------------------------------------------------------- */

START_TEST(after_any_changes_a_name_is_in_one_map_at_most_reg_026)
{
    static const char *const names[] = { "a", "b", "c" };
    tn_module *m = bare(), *child = bare();
    uint32_t random = 12345;
    int accepted = 0, refused = 0;

    for (int i = 0; i < 3000; i++) {
        TN_SCOPE;
        random = random * 1664525u + 1013904223u;
        const char *name = names[(random >> 8) % 3];
        tn_status status = TN_OK;
        switch ((random >> 16) % 9) {
        case 0: status = tn_module_add_parameter(m, name, parameter(1)); break;
        case 1: status = tn_module_add_buffer(m, name, filled(1, 0), random & 1); break;
        case 2: status = tn_module_add_child(m, name, child); break;
        case 3: status = tn_module_set(m, name, parameter(1)); break;
        case 4: status = tn_module_set(m, name, filled(1, 0)); break;
        case 5: status = tn_module_assign(m, name, module_value(child)); break;
        case 6: status = tn_module_remove(m, name); break;
        case 7: status = tn_module_set(m, name, TN_NONE); break;
        default: status = tn_module_reserve_child(m, name); break;
        }
        accepted += status == TN_OK;
        refused += status != TN_OK;
        tn_error_clear();
        for (int k = 0; k < 3; k++) {
            int maps = (tn__slots_find(&m->parameters, names[k]) != NULL) +
                       (tn__slots_find(&m->buffers, names[k]) != NULL) +
                       (tn__slots_find(&m->children, names[k]) != NULL) +
                       (tn__slots_find(&m->computed, names[k]) != NULL);
            ck_assert_int_eq(maps, tn_module_slot_kind(m, names[k]) != 0);
        }
    }
    ck_assert_int_gt(accepted, 1000);
    ck_assert_int_gt(refused, 300);
    ck_assert_ptr_null(tn_module_get(m, "zzz"));
    expect_failure(TN_ERR_ATTR, "'Sequential' object has no");
    TN_PROVES("REG-026");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(an_option_that_a_layer_does_not_have_is_refused_reg_028)
{
    ck_assert_ptr_null(tn_module_new("Linear(2, 3, colour=1)"));
    expect_failure(tn_error_last_code(), "colour");
    ck_assert_ptr_null(tn_module_new("ReLU(1, 2, 3)"));
    ck_assert_int_ne(tn_error_last_code(), TN_OK);
    tn_error_clear();
    TN_PROVES("REG-028");
}
END_TEST

/* ---- computed slots -------------------------------------------------------------------------- */

static int computed, released;

static tn_tensor *twice_of(void *user, tn_module *module, const char *name)
{
    (void)user;
    (void)name;
    computed++;
    return tn_mul_scalar(tn_module_get(module, "original"), 2.0);
}

static tn_status halve_into(void *user, tn_module *module, const char *name, tn_tensor *tensor)
{
    (void)user;
    (void)name;
    return tn_module_set(module, "original", tn_parameter(tn_mul_scalar(tensor, 0.5), true));
}

static void count_release(void *user)
{
    released += *(int *)user;
}

static tn_tensor *ask_again(void *user, tn_module *module, const char *name)
{
    (void)user;
    return tn_module_get(module, name);
}

static tn_tensor *say_nothing(void *user, tn_module *module, const char *name)
{
    (void)user;
    (void)module;
    (void)name;
    return NULL;
}

START_TEST(a_computed_slot_gives_its_tensor_anew_each_time_get_009)
{
    TN_SCOPE;
    static int one = 1;
    const tn_computed how = { .get = twice_of, .set = halve_into, .release = count_release };
    tn_module *m = tn_module_new("Linear(1, 1, bias=False)");
    tn_tensor *x = filled(1, 3.0);
    tn_module_set(m, "weight",
                  tn_parameter(tn_tensor_full(TN_SHAPE(1, 1), 5.0, TN_F32, NULL), true));
    tn_module_add_parameter(m, "original", tn_module_get(m, "weight"));
    ck_assert_int_eq(tn_module_add_computed(m, "weight", &how, &one), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'weight' already exists");
    tn_module_remove(m, "weight");
    ck_assert_int_eq(tn_module_add_computed(m, "weight", &how, &one), TN_OK);
    /* forward reads through the slot, the gradient goes to what it is computed from */
    tn_tensor *y = tn_module_call(m, x);
    ck_assert_double_eq(tn_item(y), 30.0);
    ck_assert_int_eq(computed, 1);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    ck_assert_double_eq(tn_item(tn_tensor_grad(tn_module_get(m, "original"))), 6.0);
    ck_assert_int_eq(tn_module_set(m, "weight", tn_tensor_full(TN_SHAPE(1, 1), 8.0, TN_F32, NULL)),
                     TN_OK);
    ck_assert_double_eq(tn_item(tn_module_get(m, "original")), 4.0);
    ck_assert_double_eq(tn_item(tn_module_find_tensor(m, "weight")), 8.0);
    ck_assert_uint_eq(tn_module_slot_kind(m, "weight"), TN_SLOT_COMPUTED);
    expect_own(m, "p:original ");
    ck_assert_int_eq(keys(m), 1);
    ck_assert_ptr_null(tn_module_find_parameter(m, "weight"));
    expect_failure(TN_ERR_ATTR, "`weight` of Linear is not a parameter but a computed tensor");
    ck_assert_ptr_null(tn_module_find_buffer(m, "weight"));
    expect_failure(TN_ERR_ATTR, "`weight` of Linear is not a buffer");
    TN_PROVES("GET-009");
    ck_assert_int_eq(tn_module_assign(m, "weight", tn_value_int(1)), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "cannot assign 'int' as computed tensor 'weight'");
    ck_assert_int_eq(tn_module_remove(m, "weight"), TN_OK);
    ck_assert_int_eq(released, 1);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_computed_slot_fails_with_words)
{
    TN_SCOPE;
    const tn_computed loop = { .get = ask_again }, mute = { .get = say_nothing },
                      nothing = { .get = NULL };
    tn_module *m = bare();
    ck_assert_int_eq(tn_module_add_computed(m, "x", &nothing, NULL), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "get: it is NULL");
    ck_assert_int_eq(tn_module_add_computed(m, "x", &loop, NULL), TN_OK);
    ck_assert_ptr_null(tn_module_get(m, "x"));
    expect_failure(TN_ERR_RUNTIME, "100 computed slots depend on one another");
    ck_assert_int_eq(tn_module_set(m, "x", filled(1, 0)), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "computed slot 'x' of Sequential: cannot be set");
    ck_assert_int_eq(tn_module_add_computed(m, "x", &mute, NULL), TN_OK);
    ck_assert_ptr_null(tn_module_get(m, "x"));
    expect_failure(TN_ERR_RUNTIME, "'x' of Sequential: get: returned NULL");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_fresh_module_has_nothing_and_trains_reg_001,
        reserved_parameters_and_buffers_are_empty_names_reg_003_reg_020,
        names_of_tensors_are_checked_for_text_dot_empty_taken_reg_007,
        names_of_children_are_checked_for_text_taken_dot_empty_reg_008,
        a_name_has_one_kind_and_the_same_kind_replaces_in_place_reg_009_reg_014,
        assigning_a_parameter_takes_the_name_reg_011,
        assigning_a_module_takes_the_name_and_a_child_slot_holds_modules_reg_012,
        a_tensor_assigned_to_a_buffer_is_the_buffer_reg_013_reg_015_reg_016,
        what_c_cannot_be_given_is_an_error_where_it_can_be_null_reg_021_reg_025_reg_027,
        a_removed_name_is_gone_from_its_map_with_its_mark_reg_018_reg_022,
        a_reserved_child_is_a_name_without_a_module_reg_023,
        a_child_is_replaced_in_its_place_and_may_have_many_names_reg_024_reg_031,
        after_any_changes_a_name_is_in_one_map_at_most_reg_026,
        an_option_that_a_layer_does_not_have_is_refused_reg_028,
        a_computed_slot_gives_its_tensor_anew_each_time_get_009,
        a_computed_slot_fails_with_words,
        NULL,
    };
    return suite_run("names", tests);
}
