/* SPDX-License-Identifier: MIT
 *
 * tn_module_fuse_list: hooks, and what cannot be fused. test_quantize_pytorch.c has its numbers. */
#include "quantize.h"

static char trace[16], letters[] = "abcd";

static tn_status note(void *user, tn_module *module, const tn_pack *input, const tn_pack *output,
                      tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)module, (void)input, (void)output, (void)replacement, (void)outcome;
    strncat(trace, user, 1);
    return TN_OK;
}

static tn_status note_before(void *user, tn_module *module, const tn_pack *input,
                             tn_pack *replacement, tn_hook_outcome *outcome)
{
    return note(user, module, input, NULL, replacement, outcome);
}

START_TEST(hooks_of_the_first_and_the_last_move_to_the_fused_module)
{
    TN_SCOPE;
    tn_module *net = eval_of("Sequential(conv=Conv1d(2, 2, 1), bn=BatchNorm1d(2), relu=ReLU())");
    tn_tensor *x = tn_randn(TN_SHAPE(1, 2, 3));
    tn_module *conv = tn_module_child(net, "conv"), *relu = tn_module_child(net, "relu");

    ck_assert(tn_module_hook_forward_pre(conv, note_before, 0, &letters[0], NULL) != 0);
    ck_assert(tn_module_hook_forward(conv, note, 0, &letters[1], NULL) != 0);
    ck_assert(tn_module_hook_forward_pre(relu, note_before, 0, &letters[2], NULL) != 0);
    ck_assert(tn_module_hook_forward(relu, note, 0, &letters[3], NULL) != 0);
    ck_assert_int_eq(tn_module_fuse_list(net, " conv , bn,relu ;"), TN_OK);
    trace[0] = '\0';
    called(net, x);
    ck_assert_str_eq(trace, "acd"); /* relu is within the fused module, with what runs before it */
    tn_module_drop(net);
}
END_TEST

START_TEST(what_cannot_be_fused_is_refused_with_words)
{
    static const struct {
        const char *net, *list;
        bool training;
        tn_status code;
        const char *words;
    } cases[] = {
        { "Sequential(Linear(2, 2), Linear(2, 2))", "0,1", false, TN_ERR_NOT_IMPLEMENTED,
          "Cannot fuse modules: Linear, Linear" },
        { "Sequential(Conv2d(2, 2, 1), BatchNorm1d(2))", "0,1", false, TN_ERR_NOT_IMPLEMENTED,
          "Cannot fuse modules: Conv2d, BatchNorm1d" },
        { "Sequential(Conv1d(2, 2, 1))", "0", false, TN_ERR_NOT_IMPLEMENTED,
          "Cannot fuse modules: Conv1d" },
        { "Sequential(Conv1d(2, 2, 1), BatchNorm1d(2))", "0,1", true, TN_ERR_ASSERT,
          "Fusion only for eval!" },
        { "Sequential(Conv1d(2, 2, 1), BatchNorm1d(3))", "0,1", false, TN_ERR_ASSERT,
          "wrong number of features, got 3; expected 2" },
        { "Sequential(Conv1d(2, 2, 1), BatchNorm1d(2, track_running_stats=False))", "0,1", false,
          TN_ERR_ASSERT, "it has no running statistics" },
        { "Sequential(Conv1d(2, 2, 1), ReLU())", "0,1; 0,1", false, TN_ERR_VALUE, "given twice" },
        { "Sequential(Conv1d(2, 2, 1), ReLU())", "0,1;,", false, TN_ERR_VALUE, "an empty path" },
        { "Sequential(Conv1d(2, 2, 1), ReLU())", "0,1,0,1", false, TN_ERR_VALUE, "given twice" },
        { "Sequential(Conv1d(2, 2, 1), ReLU())", "0,5", false, TN_ERR_ATTR, "fuse_list" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_module *net = eval_of(cases[i].net);

        ck_assert_int_eq(tn_module_train(net, cases[i].training), TN_OK);
        ck_assert_int_ne(tn_module_fuse_list(net, cases[i].list), TN_OK);
        FAILED(cases[i].code, cases[i].words);
        ck_assert_str_ne(tn_module_type(tn_module_child_at(net, -1)), "Identity");
        tn_module_drop(net);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("fuse");
    Suite *suite = suite_create("fusion by list");

    tcase_add_test(tcase, hooks_of_the_first_and_the_last_move_to_the_fused_module);
    tcase_add_test(tcase, what_cannot_be_fused_is_refused_with_words);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
