/* SPDX-License-Identifier: MIT
 *
 * Modules of the program, with a forward of their own; calls with several tensors. */
#include "tests/op/suite.h"
#include "tests/module/suite.h"

/* ---- a network of the program ---------------------------------------------------------------- */

static int released;

static void count_release(void *user)
{
    (void)user;
    released++;
}

/* y = scale * relu(fc(x)) + x */
static tn_tensor *residual(tn_module *self, tn_tensor *x)
{
    const double *scale = tn_module_user(self);

    return tn_add(tn_mul_scalar(tn_relu(tn_module_call_child(self, "fc", x)), *scale), x);
}

static tn_module *net(double *scale)
{
    tn_module *m = tn_module_plain("Net");

    ck_assert_msg(m != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_add_children(m, "fc=Linear(2, 2)"), TN_OK);
    ck_assert_int_eq(tn_init(tn_module_find_tensor(m, "fc.weight"), "ones()"), TN_OK);
    ck_assert_int_eq(tn_init(tn_module_find_tensor(m, "fc.bias"), "zeros()"), TN_OK);
    ck_assert_int_eq(tn_module_set_forward(m, residual, scale, count_release), TN_OK);
    return m;
}

START_TEST(a_plain_module_gets_a_forward)
{
    TN_SCOPE;
    double two = 2, three = 3;
    char text[256];
    tn_module *m = net(&two);
    tn_tensor *x = tn_reshape(VEC(1, 4), TN_SHAPE(1, 2));

    ck_assert_str_eq(tn_module_type(m), "Net");
    tn_module_repr(m, text, sizeof text);
    ck_assert_str_eq(text, "Net(\n  (fc): Linear(in_features=2, out_features=2, bias=True)\n)");
    HAS(tn_module_call(m, x), 11, 14);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, x))), TN_OK);
    HAS(tn_tensor_grad(tn_module_find_tensor(m, "fc.bias")), 2, 2);
    released = 0;
    ck_assert_int_eq(tn_module_set_forward(m, residual, &three, count_release), TN_OK);
    ck_assert_int_eq(released, 1); /* the first user */
    HAS(tn_module_call(m, x), 16, 19);
    tn_module_drop(m);
    ck_assert_int_eq(released, 2);
}
END_TEST

START_TEST(copies_share_the_forward)
{
    TN_SCOPE;
    double two = 2;
    tn_module *m = net(&two), *copy = tn_module_copy(m);
    tn_tensor *x = tn_reshape(VEC(1, 4), TN_SHAPE(1, 2));

    ck_assert_msg(copy != NULL, "%s", tn_error_text());
    released = 0;
    tn_module_drop(m);
    ck_assert_int_eq(released, 0);
    HAS(tn_module_call(copy, x), 11, 14);
    tn_module_drop(copy);
    ck_assert_int_eq(released, 1);
}
END_TEST

static tn_tensor *only_fc(tn_module *self, tn_tensor *x)
{
    return tn_module_call_child(self, "fc", x);
}

START_TEST(a_printed_type_that_no_plugin_has_gets_a_forward)
{
    TN_SCOPE;
    tn_module *m = parsed("Mine(\n  (fc): Linear(in_features=2, out_features=1, bias=False)\n)");
    tn_tensor *x = tn_reshape(VEC(1, 4), TN_SHAPE(1, 2));

    ck_assert_ptr_null(tn_module_call(m, x));
    FAILED(
        TN_ERR_NOT_IMPLEMENTED,
        "Module [Mine] is missing the required \"forward\" function; load a plugin that provides "
        "this layer, or set the forward with tn_module_set_forward");
    ck_assert_ptr_null(tn_module_user(m));
    ck_assert_int_eq(tn_init(tn_module_find_tensor(m, "fc.weight"), "ones()"), TN_OK);
    ck_assert_int_eq(tn_module_set_forward(m, only_fc, NULL, NULL), TN_OK);
    HAS(tn_module_call(m, x), 5);
    tn_module_drop(m);
}
END_TEST

/* ---- a forward that sets another one while it runs ------------------------------------------- */

struct stage {
    double factor;
    bool *ended;
};

static void end_stage(void *user)
{
    struct stage *stage = user;

    *stage->ended = true;
    free(stage);
}

static tn_tensor *doubled(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_mul_scalar(x, 2);
}

static tn_tensor *replaces_itself(tn_module *self, tn_tensor *x)
{
    struct stage *stage = tn_module_user(self);

    ck_assert_int_eq(tn_module_set_forward(self, doubled, NULL, NULL), TN_OK);
    ck_assert(!*stage->ended);
    return tn_mul_scalar(x, stage->factor);
}

START_TEST(a_forward_may_be_replaced_while_it_runs)
{
    TN_SCOPE;
    bool ended = false;
    struct stage *stage = malloc(sizeof *stage);
    tn_module *m = tn_module_plain("Stages");

    *stage = (struct stage){ 5, &ended };
    ck_assert_int_eq(tn_module_set_forward(m, replaces_itself, stage, end_stage), TN_OK);
    HAS(tn_module_call(m, VEC(1, 2)), 5, 10);
    ck_assert(ended);
    HAS(tn_module_call(m, VEC(1, 2)), 2, 4);
    tn_module_drop(m);
}
END_TEST

START_TEST(what_has_a_forward_or_no_name_is_refused)
{
    tn_module *linear = parsed("Linear(2, 2)");

    released = 0;
    ck_assert_int_eq(tn_module_set_forward(linear, doubled, linear, count_release), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "tn_module_set_forward: wrong module, got Linear, whose forward is that of "
                        "its layer");
    ck_assert_int_eq(released, 0);
    tn_module_drop(linear);
    ck_assert_ptr_null(tn_module_plain("Net(1)"));
    FAILED(TN_ERR_VALUE, "tn_module_plain: type: not a name, got \"Net(1)\"");
    ck_assert_ptr_null(tn_module_plain(""));
    FAILED(TN_ERR_VALUE, "not a name");
    ck_assert_ptr_null(tn_module_plain("1x"));
    FAILED(TN_ERR_VALUE, "not a name");
    ck_assert_ptr_null(tn_module_plain(NULL));
    tn_error_clear();
    ck_assert_int_ne(tn_module_set_forward(NULL, doubled, NULL, NULL), TN_OK);
    tn_error_clear();
}
END_TEST

/* ---- several tensors ------------------------------------------------------------------------- */

/* (a + b, (a - b, None), [a * b]) */
static tn_status arithmetic(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *a = tn_pack_tensor(in, 0), *b = a != NULL ? tn_pack_tensor(in, 1) : NULL;
    tn_value inner[2], list;
    tn_status status;

    (void)self;
    if (b == NULL)
        return tn_error_code();
    inner[0] = tn_value_tensor(tn_sub(a, b));
    inner[1] = tn_value_none();
    list = tn_value_tensor(tn_mul(a, b));
    status = tn_pack_add(out, NULL, tn_value_tensor(tn_add(a, b)));
    if (status == TN_OK)
        status = tn_pack_add(out, NULL, tn_value_tuple(inner, 2));
    return status == TN_OK ? tn_pack_add(out, NULL, tn_value_list(&list, 1)) : status;
}

/* {'sum': a + b, 'product': a * b} */
static tn_status in_a_dictionary(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *a = tn_pack_tensor(in, 0), *b = tn_pack_tensor(in, 1);
    tn_value entries[] = { tn_value_string("sum"), tn_value_tensor(tn_add(a, b)),
                           tn_value_string("product"), tn_value_tensor(tn_mul(a, b)) };

    (void)self;
    return tn_pack_add(out, NULL, tn_value_dict(entries, 4));
}

static tn_status a_word(tn_module *self, const tn_pack *in, tn_pack *out)
{
    (void)self;
    (void)in;
    return tn_pack_add(out, NULL, tn_value_string("word"));
}

START_TEST(results_within_tuples_and_lists_are_flat)
{
    TN_SCOPE;
    tn_module *m = tn_module_plain("Arithmetic");
    tn_tensor *in[2] = { VEC(5, 7), VEC(1, 2) }, *out[5];

    ck_assert_int_eq(tn_module_set_call(m, arithmetic, NULL, NULL), TN_OK);
    ck_assert_int_eq(tn_module_call_many(m, in, 2, out, 4), TN_OK);
    HAS(out[0], 6, 9);
    HAS(out[1], 4, 5);
    ck_assert_ptr_eq(out[2], TN_NONE);
    HAS(out[3], 5, 14);
    out[1] = NULL;
    ck_assert_int_eq(tn_module_call_many(m, in, 2, out, 1), TN_OK); /* the others are left out */
    HAS(out[0], 6, 9);
    ck_assert_ptr_null(out[1]);
    ck_assert_int_eq(tn_module_call_many(m, in, 2, NULL, 0), TN_OK);
    ck_assert_int_eq(tn_module_call_many(m, in, 2, out, 5), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE,
           "tn_module_call_many: outputs: too many, got 5; Arithmetic returned 4 tensors");
    for (int i = 0; i < 5; i++)
        ck_assert_ptr_null(out[i]);
    in[1] = NULL;
    ck_assert_int_ne(tn_module_call_many(m, in, 2, out, 1), TN_OK);
    tn_error_clear();
    ck_assert_int_eq(tn_module_call_many(m, in, -1, out, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "wrong counts, got -1 inputs");
    in[1] = VEC(1, 2);
    ck_assert_int_eq(tn_module_set_call(m, in_a_dictionary, NULL, NULL), TN_OK);
    ck_assert_int_eq(tn_module_call_many(m, in, 2, out, 2), TN_OK);
    HAS(out[0], 6, 9);
    HAS(out[1], 5, 14);
    ck_assert_int_eq(tn_module_call_many(m, in, 2, out, 3), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "returned 2 tensors");
    ck_assert_int_eq(tn_module_set_call(m, a_word, NULL, NULL), TN_OK);
    ck_assert_int_eq(tn_module_call_many(m, NULL, 0, out, 1), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "tn_module_call_many: result: wrong type, got string");
    tn_module_drop(m);
}
END_TEST

/* A forward with packs: all inputs, and all results, in one line each. */
static tn_status sum_and_product(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *x[3], *y[3];
    tn_status status = tn_pack_take(in, x, 3);

    (void)self;
    if (status != TN_OK)
        return status;
    y[0] = tn_add(x[0], x[1]);
    y[1] = x[2];
    y[2] = tn_mul(x[0], x[1]);
    return tn_pack_add_tensors(out, y, 3);
}

START_TEST(packs_are_filled_and_emptied_in_one_line)
{
    TN_SCOPE;
    tn_module *m = tn_module_plain("Both");
    tn_tensor *in[3] = { VEC(5, 7), VEC(1, 2), TN_NONE }, *out[4] = { NULL };
    tn_value inner[2] = { tn_value_tensor(in[0]), tn_value_none() };
    tn_pack *pack = tn_pack_new();

    ck_assert_int_eq(tn_module_set_call(m, sum_and_product, NULL, NULL), TN_OK);
    ck_assert_int_eq(tn_module_call_many(m, in, 3, out, 3), TN_OK);
    HAS(out[0], 6, 9);
    ck_assert_ptr_eq(out[1], TN_NONE);
    HAS(out[2], 5, 14);
    ck_assert_int_eq(tn_module_call_many(m, in, 2, out, 3), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "tn_pack_take: n: too many, got 3; expected at most 2, the");

    /* the tensors outlive the pack, and are those that it has */
    ck_assert_int_eq(tn_pack_add_tensors(pack, in + 1, 1), TN_OK);
    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_tuple(inner, 2)), TN_OK);
    ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_string("word")), TN_OK);
    ck_assert_int_eq(tn_pack_take(pack, out, 2), TN_OK);
    ck_assert_int_eq(tn_pack_take(pack, NULL, 0), TN_OK);
    ck_assert_int_eq(tn_pack_take(pack, out, 4), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "tn_pack_take: value: wrong type, got string");
    ck_assert_ptr_null(out[0]);
    ck_assert_int_eq(tn_pack_take(pack, out, 3), TN_OK);
    tn_pack_drop(pack);
    ck_assert_ptr_eq(out[0], in[1]);
    HAS(out[1], 5, 7);
    ck_assert_ptr_eq(out[2], TN_NONE);

    pack = tn_pack_new();
    ck_assert_int_eq(tn_pack_add(pack, "named", tn_value_int(1)), TN_OK);
    ck_assert_int_eq(tn_pack_add_tensors(pack, in, 2), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "tn_pack_add_tensors: pack: has named values");
    in[1] = NULL;
    ck_assert_int_ne(tn_pack_add_tensors(pack, in, 2), TN_OK);
    tn_error_clear();
    ck_assert_int_eq(tn_pack_count(pack), 1);
    ck_assert_int_eq(tn_pack_take(pack, out, -1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "tn_pack_take: n: out of range, got -1; expected 0 or more");
    tn_pack_drop(pack);
    tn_module_drop(m);
}
END_TEST

/* Without states the results are those for states of zeros. */
START_TEST(an_lstm_is_called_in_one_line)
{
    TN_SCOPE;
    tn_module *lstm = parsed("LSTM(3, 4)");
    tn_tensor *x = tn_randn(TN_SHAPE(5, 2, 3)), *out[3], *first[3];
    tn_tensor *in[3] = { x, tn_zeros(TN_SHAPE(1, 2, 4)), tn_zeros(TN_SHAPE(1, 2, 4)) };

    ck_assert_msg(tn_module_call_many(lstm, &x, 1, first, 3) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_size(first[0], 0), 5);
    ck_assert_int_eq(tn_tensor_ndim(first[2]), 3);
    ck_assert_msg(tn_module_call_many(lstm, in, 3, out, 3) == TN_OK, "%s", tn_error_text());
    for (int i = 0; i < 3; i++)
        HAS(tn_amax(tn_abs(tn_sub(out[i], first[i]))), 0);
    tn_module_drop(lstm);
}
END_TEST

/* y = body(x) + x */
static tn_tensor *skip(tn_module *self, tn_tensor *x)
{
    return tn_add(tn_module_call_child(self, "body", x), x);
}

START_TEST(all_modules_of_a_type_get_a_forward)
{
    TN_SCOPE;
    tn_module *m = tn_module_parse("Net(\n  (a): Skip(\n    (body): Tanh()\n  )\n  (none): None\n  "
                                   "(b): Skip(\n    (body): ReLU()\n  )\n)");
    tn_tensor *x = VEC(0, 3);

    ck_assert_msg(m != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_set_forwards(m, "Skip", skip), TN_OK);
    ck_assert_int_eq(tn_module_set_forwards(m, "Net", tn_module_call_children), TN_OK);
    HAS(tn_sub(tn_module_call(m, x), tn_mul_scalar(tn_add(x, tn_tanh(x)), 2)), 0, 0);
    HAS(tn_module_call_children(tn_module_find(m, "b"), x), 0, 3);
    HAS(tn_module_call_children(tn_module_find(m, "b.body"), x), 0, 3); /* no children */
    ck_assert_ptr_null(tn_module_call_children(m, NULL));
    FAILED(TN_ERR_RUNTIME, "tn_module_call_children: input: it is NULL");
    ck_assert_ptr_null(tn_module_call_children(NULL, x));
    FAILED(TN_ERR_RUNTIME, "tn_module_call_children: module: it is NULL");
    ck_assert_int_eq(tn_module_set_forwards(m, "Skap", skip), TN_ERR_KEY);
    FAILED(TN_ERR_KEY, "no module of the tree is a Skap; the root is a Net");
    ck_assert_int_eq(tn_module_set_forwards(m, "ReLU", skip), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "tn_module_set_forwards: wrong module, got ReLU");
    ck_assert_int_ne(tn_module_set_forwards(NULL, "Skip", skip), TN_OK);
    FAILED(TN_ERR_RUNTIME, "tn_module_set_forwards");
    ck_assert_int_ne(tn_module_set_forwards(m, NULL, skip), TN_OK);
    FAILED(TN_ERR_RUNTIME, "tn_module_set_forwards: type");
    ck_assert_int_ne(tn_module_set_forwards(m, "Skip", NULL), TN_OK);
    FAILED(TN_ERR_RUNTIME, "tn_module_set_forwards: forward");
    tn_module_drop(m);
}
END_TEST

START_TEST(children_are_called_in_a_chain)
{
    TN_SCOPE;
    tn_module *m = tn_module_plain("Net");
    tn_tensor *x = VEC(-1, 3);
    char long_name[300];

    ck_assert_int_eq(tn_module_add_children(m, "a=ReLU(), b=Softshrink(1)"), TN_OK);
    HAS(tn_module_call_chain(m, "b", x), 0, 2);
    HAS(tn_module_call_chain(m, "a b  b ", x), 0, 1);
    HAS(tn_module_call_chain(m, " b a", x), 0, 2);
    ck_assert_ptr_null(tn_module_call_chain(m, "a c b", x));
    FAILED(TN_ERR_ATTR, "c");
    ck_assert_int_eq(tn_module_add_children(m, "d=Sequential(Tanh(), Softshrink(2))"), TN_OK);
    HAS(tn_module_call_chain(m, "d.1 a", x), 0, 1);
    ck_assert_int_eq(tn_module_add_children(m, "e=Sequential(ReLU(), Softshrink(1))"), TN_OK);
    HAS(tn_module_call_chain(m, "e.*", x), 0, 2);
    HAS(tn_module_call_chain(m, "e.* b", x), 0, 1);
    HAS(tn_module_call_chain(tn_module_find(m, "e"), "* 1", x), 0, 1);
    ck_assert_ptr_null(tn_module_call_chain(m, "a f.*", x));
    FAILED(TN_ERR_ATTR, "f");
    ck_assert_ptr_null(tn_module_call_chain(m, "a d.2", x));
    FAILED(TN_ERR_ATTR, "d.2");
    ck_assert_int_eq(tn_module_reserve_child(m, "c"), TN_OK);
    ck_assert_ptr_null(tn_module_call_chain(m, "a c b", x));
    FAILED(TN_ERR_TYPE, "child slot 'c': empty");
    ck_assert_ptr_null(tn_module_call_chain(m, "  ", x));
    FAILED(TN_ERR_VALUE, "tn_module_call_chain: names: none given");
    memset(long_name, 'n', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    ck_assert_ptr_null(tn_module_call_chain(m, long_name, x));
    FAILED(TN_ERR_VALUE, "a name is too long, got 299 bytes; expected at most 255");
    ck_assert_ptr_null(tn_module_call_chain(m, NULL, x));
    FAILED(TN_ERR_RUNTIME, "tn_module_call_chain: names: it is NULL");
    ck_assert_ptr_null(tn_module_call_chain(NULL, "a", x));
    FAILED(TN_ERR_RUNTIME, "tn_module_call_chain: module: it is NULL");
    ck_assert_ptr_null(tn_module_call_chain(m, "a", NULL));
    FAILED(TN_ERR_RUNTIME, "tn_module_call_chain: input: it is NULL");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_plain_module_gets_a_forward,
        copies_share_the_forward,
        a_printed_type_that_no_plugin_has_gets_a_forward,
        a_forward_may_be_replaced_while_it_runs,
        what_has_a_forward_or_no_name_is_refused,
        results_within_tuples_and_lists_are_flat,
        packs_are_filled_and_emptied_in_one_line,
        an_lstm_is_called_in_one_line,
        all_modules_of_a_type_get_a_forward,
        children_are_called_in_a_chain,
        NULL,
    };
    return suite_run("modules of the program", tests);
}
