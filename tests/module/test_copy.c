/* SPDX-License-Identifier: MIT
 *
 * Deep copies of modules, and modules in memory that processes share. */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

#include <sys/wait.h>
#include <unistd.h>

static tn_tensor *filled(int64_t n, double value)
{
    return tn_tensor_full(TN_SHAPE(n), value, TN_F32, NULL);
}

static tn_module *copied(tn_module *module)
{
    tn_module *copy = tn_module_copy(module);
    ck_assert_msg(copy != NULL, "%s", tn_error_text());
    return copy;
}

START_TEST(a_copy_has_storages_of_its_own_and_the_same_ties_reg_030)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(2, 2), BatchNorm1d(2), Dropout(p=0.25))"),
              *shared = parsed("Linear(1, 1)");
    tn_tensor *w = tn_module_find_parameter(m, "0.weight");
    tn_module_add_parameter(m, "tied", w);
    tn_module_add_parameter(m, "view", tn_parameter(tn_reshape(w, TN_SHAPE(4)), false));
    tn_module_add_parameter(m, "none", TN_NONE);
    tn_module_add_buffer(m, "scratch", filled(1, 7), TN_SLOT_FLAG_NOT_PERSISTENT);
    tn_module_add_child(m, "s1", shared);
    tn_module_add_child(m, "s2", shared);
    tn_module_reserve_child(m, "empty");
    tn_module_eval(tn_module_child(m, "1"));
    tn_tensor_set_grad(w, tn_tensor_full(TN_SHAPE(2, 2), 1, TN_F32, NULL));
    tn_module *copy = copied(m);
    tn_tensor *w2 = tn_module_find_parameter(copy, "0.weight");
    char one[2048], two[2048];
    tn_module_repr(m, one, sizeof one);
    tn_module_repr(copy, two, sizeof two);
    ck_assert_str_eq(one, two);
    tn_module_spec(m, one, sizeof one);
    tn_module_spec(copy, two, sizeof two);
    ck_assert_str_eq(one, two);
    ck_assert(w2 != w && !tn_tensor_shares_storage(w, w2));
    ck_assert(tn_tensor_is_parameter(w2) && tn_tensor_requires_grad(w2) && tn_tensor_is_leaf(w2));
    ck_assert_ptr_eq(tn_tensor_grad(w2), TN_NONE);
    ck_assert_ptr_eq(tn_module_get(copy, "tied"), w2);
    ck_assert(tn_tensor_shares_storage(tn_module_get(copy, "view"), w2));
    ck_assert(!tn_tensor_requires_grad(tn_module_get(copy, "view")));
    ck_assert_ptr_eq(tn_module_get(copy, "none"), TN_NONE);
    ck_assert_ptr_eq(tn_module_child(copy, "s1"), tn_module_child(copy, "s2"));
    ck_assert_ptr_ne(tn_module_child(copy, "s1"), shared);
    ck_assert_uint_eq(tn_module_slot_kind(copy, "empty"), TN_SLOT_CHILD);
    ck_assert(!tn_module_is_training(tn_module_child(copy, "1")));
    ck_assert(tn_module_is_training(copy));
    tn_state *state = tn_module_state(copy), *of_m = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(state), tn_state_count(of_m));
    ck_assert_int_lt(tn_state_find(state, "scratch"), 0);
    /* Changing the copy leaves the original as it was. */
    double before = tn_item(tn_sum(w));
    ck_assert_double_eq(tn_item(tn_sum(w2)), before);
    tn_init(w2, "ones()");
    ck_assert_double_eq(tn_item(tn_sum(w)), before);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(copy, "view"))), 4.0);
    tn_init(tn_module_get(copy, "scratch"), "zeros()");
    ck_assert_double_eq(tn_item(tn_module_get(m, "scratch")), 7.0);
    TN_PROVES("REG-030");
    tn_state_drop(state);
    tn_state_drop(of_m);
    tn_module_drop(m);
    tn_module_drop(shared);
    /* The copy does not need the original: what its options point to is copied, too. */
    ck_assert_double_eq(tn_item(tn_module_get(copy, "scratch")), 0.0);
    tn_module_spec(copy, one, sizeof one);
    ck_assert_str_eq(one, two);
    tn_module_drop(copy);
}
END_TEST

START_TEST(a_copy_computes_what_the_original_computes_and_learns_alone)
{
    TN_SCOPE;
    tn_module *m = parsed(
                  "Sequential(Conv2d(1, 2, (3, 2), padding='same'), Flatten(), Linear(24, 2))"),
              *copy;
    float a[2], b[2];
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 1, 4, 3), 0.5, TN_F32, NULL);
    copy = copied(m);
    tn_tensor_copy_out(tn_module_call(m, x), a, sizeof a);
    tn_module_drop(m);
    tn_tensor *y = tn_module_call(copy, x);
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    tn_tensor_copy_out(y, b, sizeof b);
    ck_assert_mem_eq(a, b, sizeof a);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_double_eq(
        tn_item(tn_select(tn_tensor_grad(tn_module_find_tensor(copy, "2.bias")), 0, 0)), 1.0);
    tn_module_drop(copy);
}
END_TEST

START_TEST(plain_buffers_take_their_gradient_along_and_results_cannot_be_copied)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential()");
    tn_tensor *buffer = filled(1, 2);
    tn_tensor_set_requires_grad(buffer, true);
    tn_tensor_set_grad(buffer, filled(1, 3));
    tn_module_add_buffer(m, "b", buffer, 0);
    tn_module *copy = copied(m);
    tn_tensor *b2 = tn_module_get(copy, "b");
    ck_assert(tn_tensor_requires_grad(b2));
    ck_assert_double_eq(tn_item(tn_tensor_grad(b2)), 3.0);
    ck_assert(!tn_tensor_shares_storage(tn_tensor_grad(b2), tn_tensor_grad(buffer)));
    tn_module_drop(copy);
    tn_module_set(m, "b", tn_mul_scalar(buffer, 2.0));
    ck_assert_ptr_null(tn_module_copy(m));
    expect_failure(TN_ERR_RUNTIME, "copying 'b' of Sequential: tensor: operator");
    tn_module_drop(m);
}
END_TEST

/* ---- data of layers -------------------------------------------------------------------------- */

struct box {
    const char *name;
    char *own;
};

static const tn_option box_options[] = { TN_OPTION_STRING(struct box, name, "''", "a word"),
                                         TN_OPTION_END };
static int boxes, copies_fail;

static tn_status box_build(tn_module *self)
{
    struct box *box = tn_module_data(self);
    box->own = tn_strdup(box->name);
    boxes++;
    return box->own != NULL ? TN_OK : TN_ERR_MEMORY;
}

static void box_destroy(tn_module *self)
{
    struct box *box = tn_module_data(self);
    tn_free(box->own);
    boxes--;
}

static tn_status box_copy(tn_module *self, tn_module *from)
{
    struct box *box = tn_module_data(self);
    const struct box *other = tn_module_data(from);
    if (copies_fail)
        return TN_ERR_DEVICE;
    box->own = tn_strdup(other->own);
    boxes++;
    return box->own != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_tensor *pass(tn_module *self, tn_tensor *x)
{
    (void)self;
    return x;
}

static const tn_layer_def box_layer = { TN_HEAD(tn_layer_def),  .name = "Box",
                                        .options = box_options, .data_size = sizeof(struct box),
                                        .build = box_build,     .destroy = box_destroy,
                                        .forward = pass,        .copy = box_copy };

START_TEST(a_layers_copy_makes_anew_what_its_data_point_to)
{
    ck_assert_int_eq(tn_register(&box_layer), TN_OK);
    register_probes();
    tn_module *m = parsed("Sequential(Box(name=\"words\"))"), *copy = copied(m);
    const struct box *a = tn_module_data(tn_module_child(m, "0")),
                     *b = tn_module_data(tn_module_child(copy, "0"));
    ck_assert_int_eq(boxes, 2);
    ck_assert(a->own != b->own);
    tn_module_drop(m);
    ck_assert_int_eq(boxes, 1);
    ck_assert_str_eq(b->own, "words");
    ck_assert_str_eq(b->name, "words");
    copies_fail = 1;
    ck_assert_ptr_null(tn_module_copy(copy));
    expect_failure(TN_ERR_DEVICE, "layer Box: copy: failed with");
    ck_assert_int_eq(boxes, 1);
    tn_module_drop(copy);
    ck_assert_int_eq(boxes, 0);
    m = parsed("Probe(2)"); /* has a destroy, and no copy */
    ck_assert_ptr_null(tn_module_copy(m));
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "Probe: cannot be copied; its layer has a `destroy` and "
                                           "no `copy`");
    tn_module_drop(m);
}
END_TEST

/* ---- computed slots -------------------------------------------------------------------------- */

static int values;

static tn_tensor *times(void *user, tn_module *module, const char *name)
{
    (void)name;
    return tn_mul_scalar(tn_module_get(module, "original"), *(const double *)user);
}

static void drop_value(void *user)
{
    values--;
    tn_free(user);
}

static tn_status copy_value(void *user, tn_module *copy, void **copied_user)
{
    (void)copy;
    double *value = tn_malloc(sizeof *value);
    if (value == NULL)
        return TN_ERR_MEMORY;
    *value = *(const double *)user;
    values++;
    *copied_user = value;
    return TN_OK;
}

START_TEST(computed_slots_are_copied_with_what_they_need)
{
    TN_SCOPE;
    tn_computed how = { .get = times, .release = drop_value, .copy = copy_value };
    tn_module *m = parsed("Sequential()");
    double *factor = tn_malloc(sizeof *factor);
    *factor = 3.0;
    values = 1;
    tn_module_add_parameter(m, "original", tn_parameter(filled(1, 2), true));
    ck_assert_int_eq(tn_module_add_computed(m, "x", &how, factor), TN_OK);
    tn_module *copy = copied(m);
    ck_assert_int_eq(values, 2);
    tn_init(tn_module_get(copy, "original"), "ones()");
    ck_assert_double_eq(tn_item(tn_module_get(copy, "x")), 3.0);
    ck_assert_double_eq(tn_item(tn_module_get(m, "x")), 6.0);
    tn_module_drop(copy);
    ck_assert_int_eq(values, 1);
    how.copy = NULL;
    tn_module_remove(m, "x");
    ck_assert_int_eq(values, 0);
    double *other = tn_malloc(sizeof *other);
    *other = 1.0;
    values = 1;
    tn_module_add_computed(m, "y", &how, other);
    ck_assert_ptr_null(tn_module_copy(m));
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "computed slot 'y' of Sequential: cannot be copied");
    tn_module_drop(m);
    ck_assert_int_eq(values, 0);
}
END_TEST

/* ---- shared memory --------------------------------------------------------------------------- */

START_TEST(a_forked_process_and_this_one_see_the_same_tensors_cnv_027)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(2, 2), BatchNorm1d(2))");
    tn_tensor *w = tn_module_find_parameter(m, "0.weight"),
              *count = tn_module_find_tensor(m, "1.num_batches_tracked");
    tn_tensor *gradient = tn_tensor_full(TN_SHAPE(2, 2), 1, TN_F32, NULL);
    tn_tensor_set_grad(w, gradient);
    tn_module_add_parameter(m, "view", tn_parameter(tn_reshape(w, TN_SHAPE(4)), false));
    double before = tn_item(tn_sum(w));
    ck_assert(!tn_tensor_is_shared(w));
    ck_assert_int_eq(tn_module_share_memory(m), TN_OK);
    ck_assert(tn_tensor_is_shared(w) && tn_tensor_is_shared(count) &&
              tn_tensor_is_shared(gradient));
    ck_assert(tn_tensor_shares_storage(w, tn_module_get(m, "view")));
    ck_assert_double_eq(tn_item(tn_sum(w)), before);
    ck_assert(tn_tensor_requires_grad(w));
    void *memory = tn_tensor_data(w);
    ck_assert_int_eq(tn_module_share_memory(m), TN_OK); /* they are there already */
    ck_assert_ptr_eq(tn_tensor_data(w), memory);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        float *values_there = tn_tensor_data(w);
        int64_t *counted = tn_tensor_data(count);
        if (values_there == NULL || counted == NULL)
            _exit(1);
        for (int i = 0; i < 4; i++)
            values_there[i] = (float)i;
        *counted = 77;
        tn_module_drop(m); /* the memory stays: the parent still uses it */
        _exit(0);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_double_eq(tn_item(tn_sum(w)), 6.0);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(m, "view"))), 6.0);
    ck_assert_double_eq(tn_item(count), 77.0);
    /* Memory that the host does not reach stays where it is. */
    tn_module *nowhere = parsed("Linear(1, 1)");
    tn_module_to_device(nowhere, "meta");
    ck_assert_int_eq(tn_module_share_memory(nowhere), TN_OK);
    ck_assert(!tn_tensor_is_shared(tn_module_get(nowhere, "weight")));
    TN_PROVES("CNV-027");
    tn_module_drop(nowhere);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_copy_has_storages_of_its_own_and_the_same_ties_reg_030,
        a_copy_computes_what_the_original_computes_and_learns_alone,
        plain_buffers_take_their_gradient_along_and_results_cannot_be_copied,
        a_layers_copy_makes_anew_what_its_data_point_to,
        computed_slots_are_copied_with_what_they_need,
        a_forked_process_and_this_one_see_the_same_tensors_cnv_027,
        NULL,
    };
    return suite_run("copy", tests);
}
