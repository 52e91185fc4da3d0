/* SPDX-License-Identifier: MIT
 *
 * Walks over a tree: order, prefix, memo, direct and with duplicates; apply. The rows are of the
 * area TRV of the behaviour specification. */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

struct names {
    char text[512];
};

static tn_status note(void *user, const tn_visit *what)
{
    struct names *names = user;
    strcat(strcat(names->text, what->path), " ");
    return TN_OK;
}

static tn_status note_type(void *user, tn_module *module)
{
    struct names *names = user;
    strcat(strcat(names->text, tn_module_type(module)), " ");
    return TN_OK;
}

static void walk(tn_module *m, uint32_t kinds, uint32_t flags, const char *prefix, tn_memo *memo,
                 const char *expected)
{
    struct names names = { "" };
    const tn_walk_options options = { sizeof options, flags, prefix, memo };
    ck_assert_int_eq(tn_module_walk(m, kinds, &options, note, &names), TN_OK);
    ck_assert_str_eq(names.text, expected);
}

START_TEST(a_memo_leaves_out_what_it_has_and_takes_in_what_was_visited_trv_004)
{
    tn_module *m = parsed("Sequential(Sequential(ReLU()), Tanh())");
    tn_memo *memo = tn_memo_new();
    ck_assert_int_eq(tn_memo_add(memo, tn_module_child(m, "0")), TN_OK);
    walk(m, TN_SLOT_CHILD, 0, NULL, memo, " 1 ");
    ck_assert(tn_memo_has(memo, m) && tn_memo_has(memo, tn_module_child(m, "1")));
    ck_assert(!tn_memo_has(memo, tn_module_find(m, "0.0")));
    walk(m, TN_SLOT_CHILD, 0, NULL, memo, "");
    walk(m, TN_SLOT_CHILD, TN_WALK_DUPLICATES, NULL, memo, "");
    tn_memo_drop(memo);
    memo = tn_memo_new();
    walk(m, TN_SLOT_CHILD, TN_WALK_DUPLICATES, NULL, memo, " 0 0.0 1 ");
    ck_assert(!tn_memo_has(memo, m));
    TN_PROVES("TRV-004");
    tn_memo_drop(memo);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_prefix_stands_in_front_of_every_path_trv_005)
{
    tn_module *m = parsed("Sequential(Linear(1, 1), Sequential(BatchNorm1d(1)))");
    walk(m, TN_SLOT_CHILD, 0, "p", NULL, "p p.0 p.1 p.1.0 ");
    walk(m, TN_SLOT_CHILD, 0, "", NULL, " 0 1 1.0 ");
    walk(m, TN_SLOT_PARAMETER, 0, "net.p", NULL,
         "net.p.0.weight net.p.0.bias net.p.1.0.weight net.p.1.0.bias ");
    walk(m, TN_SLOT_BUFFER, 0, "p", NULL,
         "p.1.0.running_mean p.1.0.running_var p.1.0.num_batches_tracked ");
    TN_PROVES("TRV-005");
    tn_module_drop(m);
}
END_TEST

START_TEST(reserved_children_are_skipped_by_all_walks_trv_006)
{
    TN_SCOPE;
    struct names names = { "" };
    tn_module *m = parsed("Sequential()"), *a = parsed("Linear(1, 1)"), *b = parsed("Linear(1, 1)");
    tn_module_add_child(m, "a", a);
    tn_module_reserve_child(m, "none");
    tn_module_add_child(m, "b", b);
    walk(m, TN_SLOT_CHILD, 0, NULL, NULL, " a b ");
    walk(m, TN_SLOT_CHILD, TN_WALK_DIRECT, NULL, NULL, "a b ");
    walk(m, TN_SLOT_PARAMETER, 0, NULL, NULL, "a.weight a.bias b.weight b.bias ");
    ck_assert_int_eq(tn_module_apply(m, note_type, &names), TN_OK);
    ck_assert_str_eq(names.text, "Linear Linear Sequential ");
    ck_assert_int_eq(tn_module_train(m, false), TN_OK);
    ck_assert(!tn_module_is_training(b));
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(b, "bias")), TN_F64);
    tn_state *state = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(state), 4);
    tn_state_drop(state);
    TN_PROVES("TRV-006");
    tn_module_drop(a);
    tn_module_drop(b);
    tn_module_drop(m);
}
END_TEST

START_TEST(children_are_direct_and_once_under_their_first_name_trv_007_trv_008_trv_009)
{
    struct names names = { "" };
    tn_module *m = parsed("Sequential()"), *l1 = parsed("ReLU()"), *l2 = parsed("Tanh()"),
              *sub = parsed("Sequential(Sigmoid())");
    tn_module_add_child(m, "layer1", l1);
    tn_module_add_child(m, "layer2", l2);
    tn_module_add_child(m, "layer3", l1);
    tn_module_add_child(m, "layer4", l2);
    tn_module_add_child(m, "subnet", sub);
    walk(m, TN_SLOT_CHILD, TN_WALK_DIRECT, NULL, NULL, "layer1 layer2 subnet ");
    TN_PROVES("TRV-008");
    ck_assert_int_eq(tn_module_apply(m, note_type, &names), TN_OK);
    ck_assert_str_eq(names.text, "ReLU Tanh Sigmoid Sequential Sequential ");
    TN_PROVES("TRV-009");
    walk(m, TN_SLOT_CHILD, 0, NULL, NULL, " layer1 layer2 subnet subnet.0 ");
    walk(m, TN_SLOT_CHILD, TN_WALK_DUPLICATES, NULL, NULL,
         " layer1 layer2 layer3 layer4 subnet subnet.0 ");
    TN_PROVES("TRV-007");
    tn_module_drop(l1);
    tn_module_drop(l2);
    tn_module_drop(sub);
    tn_module_drop(m);
}
END_TEST

static tn_tensor *parameter(void)
{
    return tn_parameter(tn_tensor_full(TN_SHAPE(1), 1.0, TN_F32, NULL), true);
}

START_TEST(own_parameters_come_before_those_of_children_trv_010_trv_011)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(l1=Linear(1, 1))");
    tn_module_add_parameter(m, "dummy", parameter());
    tn_module_add_parameter(tn_module_child(m, "l1"), "layer_dummy", parameter());
    walk(m, TN_SLOT_PARAMETER, 0, NULL, NULL, "dummy l1.weight l1.bias l1.layer_dummy ");
    TN_PROVES("TRV-010");
    walk(m, TN_SLOT_PARAMETER, TN_WALK_DIRECT, NULL, NULL, "dummy ");
    walk(m, TN_SLOT_PARAMETER, TN_WALK_DIRECT, "p", NULL, "p.dummy ");
    walk(tn_module_child(m, "l1"), TN_SLOT_PARAMETER, TN_WALK_DIRECT, "", NULL,
         "weight bias layer_dummy ");
    TN_PROVES("TRV-011");
    tn_module_drop(m);
}
END_TEST

struct tensors {
    tn_tensor *at[16];
    int count;
};

static tn_status gather(void *user, const char *path, tn_tensor *tensor)
{
    struct tensors *row = user;
    (void)path;
    row->at[row->count++] = tensor;
    return TN_OK;
}

START_TEST(a_tied_weight_is_given_once_and_in_the_order_of_the_state_trv_015_trv_021)
{
    TN_SCOPE;
    struct tensors row = { { NULL }, 0 };
    tn_module *m = parsed("Sequential(Linear(2, 2), BatchNorm1d(2), Linear(2, 2, bias=False))");
    ck_assert_int_eq(tn_module_each_tensor(m, TN_SLOT_PARAMETER, false, gather, &row), TN_OK);
    ck_assert_int_eq(row.count, 5);
    tn_state *state = tn_module_state(m);
    int at = 0;
    for (int64_t i = 0; i < tn_state_count(state); i++)
        if (tn_module_slot_kind(tn_module_find(m, (char[2]){ tn_state_name(state, i)[0], 0 }),
                                tn_state_name(state, i) + 2) == TN_SLOT_PARAMETER)
            ck_assert(tn_tensor_shares_storage(row.at[at++], tn_state_tensor(state, i)));
    ck_assert_int_eq(at, 5);
    ck_assert_int_eq(tn_state_count(state), 8);
    tn_state_drop(state);
    TN_PROVES("TRV-021");
    tn_module_set(tn_module_child(m, "2"), "weight", tn_module_find_parameter(m, "0.weight"));
    row.count = 0;
    tn_module_each_tensor(m, TN_SLOT_PARAMETER, false, gather, &row);
    ck_assert_int_eq(row.count, 4);
    ck_assert_int_eq(tn_module_parameter_count(m), 4 + 2 + 2 + 2);
    tn_optimizer *optimizer = tn_optimizer_new(m, "SGD(lr=1)");
    ck_assert_ptr_nonnull(optimizer);
    tn_tensor *weight = tn_module_find_parameter(m, "0.weight");
    tn_tensor_set_grad(weight, tn_tensor_full(TN_SHAPE(2, 2), 1.0, TN_F32, NULL));
    double before = tn_item(tn_select(tn_select(weight, 0, 0), 0, 0));
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    ck_assert_double_eq_tol(tn_item(tn_select(tn_select(weight, 0, 0), 0, 0)), before - 1, 1e-6);
    TN_PROVES("TRV-015");
    tn_optimizer_drop(optimizer);
    tn_module_drop(m);
}
END_TEST

START_TEST(buffers_are_walked_as_parameters_are_trv_016)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential()"), *child = parsed("Sequential()");
    tn_tensor *shared = tn_tensor_full(TN_SHAPE(1), 1.0, TN_F32, NULL);
    tn_module_add_buffer(m, "b1", shared, 0);
    tn_module_add_buffer(m, "b2", shared, TN_SLOT_FLAG_NOT_PERSISTENT);
    tn_module_add_buffer(m, "none", TN_NONE, 0);
    tn_module_add_buffer(child, "c", tn_tensor_full(TN_SHAPE(1), 1.0, TN_F32, NULL),
                         TN_SLOT_FLAG_NOT_PERSISTENT);
    tn_module_add_child(m, "x", child);
    tn_module_add_child(m, "y", child);
    walk(m, TN_SLOT_BUFFER, 0, NULL, NULL, "b1 x.c ");
    walk(m, TN_SLOT_BUFFER, TN_WALK_DUPLICATES, NULL, NULL, "b1 b2 x.c y.c ");
    walk(m, TN_SLOT_BUFFER, TN_WALK_DIRECT, "p", NULL, "p.b1 ");
    walk(m, TN_SLOT_BUFFER, TN_WALK_DIRECT | TN_WALK_DUPLICATES, NULL, NULL, "b1 b2 ");
    walk(m, TN_SLOT_BUFFER, 0, "p", NULL, "p.b1 p.x.c ");
    TN_PROVES("TRV-016");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

static tn_status ones_in_linear(void *user, tn_module *module)
{
    struct names *names = user;
    strcat(strcat(names->text, tn_module_type(module)), " ");
    return strcmp(tn_module_type(module), "Linear") == 0
               ? tn_init(tn_module_get(module, "weight"), "ones()")
               : TN_OK;
}

START_TEST(apply_goes_to_children_first_and_may_change_parameters_trv_018_trv_019_trv_020)
{
    TN_SCOPE;
    struct names names = { "" };
    tn_module *m = parsed("Sequential(Linear(2, 2), Linear(2, 2))");
    ck_assert_int_eq(tn_module_apply(m, ones_in_linear, &names), TN_OK);
    ck_assert_str_eq(names.text, "Linear Linear Sequential ");
    ck_assert_double_eq(tn_item(tn_sum(tn_module_find_tensor(m, "1.weight"))), 4.0);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_find_tensor(m, "0.weight"))), 4.0);
    TN_PROVES("TRV-019");
    /* A child of two parents is visited for each; one that a parent has twice, once. */
    tn_module *shared = parsed("Tanh()"), *a = parsed("Sequential()"), *b = parsed("Sequential()"),
              *top = parsed("Sequential()");
    tn_module_add_child(a, "s", shared);
    tn_module_add_child(b, "s", shared);
    tn_module_add_child(b, "again", shared);
    tn_module_reserve_child(b, "none");
    tn_module_add_child(top, "a", a);
    tn_module_add_child(top, "b", b);
    names.text[0] = '\0';
    ck_assert_int_eq(tn_module_apply(top, note_type, &names), TN_OK);
    ck_assert_str_eq(names.text, "Tanh Sequential Tanh Sequential Sequential ");
    TN_PROVES("TRV-018", "TRV-020");
    tn_module_drop(shared);
    tn_module_drop(a);
    tn_module_drop(b);
    tn_module_drop(top);
    tn_module_drop(m);
}
END_TEST

static tn_status cut(void *user, tn_module *module)
{
    int *visits = user;
    ++*visits;
    while (tn_module_child_count(module) > 0)
        tn_module_remove(module, tn_module_child_name(module, 0));
    return *visits == 3 ? tn_fail(TN_ERR_CANCELLED, "enough") : TN_OK;
}

START_TEST(walks_refuse_what_they_do_not_know_and_end_with_a_failing_visit)
{
    tn_module *m = parsed("Sequential(Sequential(ReLU()), Tanh(), Tanh())");
    struct names names = { "" };
    tn_walk_options options = { 4, 0, NULL, NULL };
    int visits = 0;
    ck_assert_int_eq(tn_module_walk(m, TN_SLOT_CHILD, &options, note, &names), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "size: too small, got 4");
    options = (tn_walk_options){ sizeof options, 64, NULL, NULL };
    ck_assert_int_eq(tn_module_walk(m, TN_SLOT_CHILD, &options, note, &names), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "flags: unknown, got 0x40");
    ck_assert_int_eq(tn_module_apply(m, cut, &visits), TN_ERR_CANCELLED);
    tn_error_clear();
    ck_assert_int_eq(visits, 3);
    ck_assert_int_eq(tn_module_child_count(tn_module_child(m, "0")), 0);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_walk_may_be_a_loop)
{
    tn_module *m = parsed("Sequential(Linear(2, 3), ReLU(), Linear(3, 1))");
    const tn_walk_options options = { sizeof options, 0, "net", NULL };
    tn_walk *walk = tn_walk_begin(m, TN_SLOT_PARAMETER, &options);
    char text[256] = "";
    for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk)) {
        ck_assert_int_eq(at->kind, TN_SLOT_PARAMETER);
        strcat(strcat(text, at->path), " ");
        if (strcmp(at->path, "net.0.weight") == 0) /* the walk keeps what it has yet to visit */
            ck_assert_int_eq(tn_module_remove(m, "2"), TN_OK);
    }
    ck_assert_str_eq(text, "net.0.weight net.0.bias net.2.weight net.2.bias ");
    ck_assert_ptr_null(tn_walk_next(walk));
    tn_walk_end(walk);
    walk = tn_walk_begin(NULL, TN_SLOT_PARAMETER, NULL);
    ck_assert_ptr_null(walk);
    expect_failure(TN_ERR_RUNTIME, "tn_walk_begin: module");
    ck_assert_ptr_null(tn_walk_next(walk));
    tn_walk_end(walk);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_memo_leaves_out_what_it_has_and_takes_in_what_was_visited_trv_004,
        a_prefix_stands_in_front_of_every_path_trv_005,
        reserved_children_are_skipped_by_all_walks_trv_006,
        children_are_direct_and_once_under_their_first_name_trv_007_trv_008_trv_009,
        own_parameters_come_before_those_of_children_trv_010_trv_011,
        a_tied_weight_is_given_once_and_in_the_order_of_the_state_trv_015_trv_021,
        buffers_are_walked_as_parameters_are_trv_016,
        apply_goes_to_children_first_and_may_change_parameters_trv_018_trv_019_trv_020,
        walks_refuse_what_they_do_not_know_and_end_with_a_failing_visit,
        a_walk_may_be_a_loop,
        NULL,
    };
    return suite_run("walks", tests);
}
