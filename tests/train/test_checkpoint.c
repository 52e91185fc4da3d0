/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: a training that continues from one computes the same numbers to the bit; a
 * checkpoint that does not match the objects is refused with a message that names the difference.
 */
#include "../libcheck.h"

#include <string.h>
#include <tenon/tenon.h>
#include <unistd.h>

enum { STEPS = 12, WIDTH = 4, SAMPLES = 24, NUMBERS = WIDTH * 3 + 3 };

static const char file[] = "test_checkpoint.checkpoint";

/* A training with dropout, momentum, a scheduler, an average and a loader. */
struct training {
    tn_module *net, *average;
    tn_optimizer *optimizer;
    tn_scheduler *scheduler;
    tn_dataset *data;
    tn_loader *loader;
    tn_checkpoint *checkpoint;
};

static void begin(struct training *t, const char *net, const char *optimizer)
{
    float xs[SAMPLES][WIDTH];
    int64_t ys[SAMPLES];
    tn_average_options options = TN_AVERAGE_OPTIONS;

    for (int i = 0; i < SAMPLES; i++) {
        ys[i] = i % 3;
        for (int j = 0; j < WIDTH; j++)
            xs[i][j] = (float)((i * 7 + j * 3) % 11) * 0.1f;
    }
    options.kind = TN_AVERAGE_EXPONENTIAL;
    options.decay = 0.9;
    tn_tensor *rows[] = { tn_tensor_from(xs, TN_F32, TN_SHAPE(SAMPLES, WIDTH)),
                          tn_tensor_from(ys, TN_I64, TN_SHAPE(SAMPLES)) };
    t->net = tn_module_parse(net);
    t->optimizer = tn_optimizer_new(t->net, "%s", optimizer);
    t->scheduler = tn_scheduler_parse(t->optimizer, "StepLR(4, gamma=0.5)");
    t->average = tn_average_new(t->net, &options);
    t->data = tn_dataset_of_tensors(rows, 2);
    t->loader = tn_loader_new(t->data, "batch_size=5, shuffle=True, seed=3");
    t->checkpoint = tn_checkpoint_new();
    ck_assert_msg(t->loader != NULL && t->average != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_checkpoint_add_module(t->checkpoint, "model", t->net), TN_OK);
    ck_assert_int_eq(tn_checkpoint_add_optimizer(t->checkpoint, "optimizer", t->optimizer), TN_OK);
    ck_assert_int_eq(tn_checkpoint_add_scheduler(t->checkpoint, "scheduler", t->scheduler), TN_OK);
    ck_assert_int_eq(tn_checkpoint_add_module(t->checkpoint, "average", t->average), TN_OK);
    ck_assert_int_eq(tn_checkpoint_add_loader(t->checkpoint, "loader", t->loader), TN_OK);
}

static void end(struct training *t)
{
    tn_checkpoint_drop(t->checkpoint);
    tn_loader_drop(t->loader);
    tn_dataset_drop(t->data);
    tn_scheduler_drop(t->scheduler);
    tn_optimizer_drop(t->optimizer);
    tn_module_drop(t->average);
    tn_module_drop(t->net);
}

static void step(struct training *t)
{
    TN_SCOPE;
    tn_pack *batch = tn_loader_next(t->loader);

    if (batch == NULL)
        batch = tn_loader_next(t->loader);
    tn_tensor *y = tn_module_call(t->net, tn_pack_tensor(batch, 0));
    tn_optimizer_zero_grad(t->optimizer);
    tn_backward(tn_cross_entropy(y, tn_pack_tensor(batch, 1)));
    tn_optimizer_step(t->optimizer);
    tn_scheduler_step(t->scheduler);
    tn_average_update(t->average, t->net);
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}

static void numbers_of(struct training *t, float out[2 * NUMBERS])
{
    static const char *const names[] = { "1.weight", "1.bias" };
    tn_module *nets[] = { t->net, tn_module_child(t->average, "module") };

    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(tn_tensor_copy_out(tn_module_find_tensor(nets[n], names[i]),
                                                out + n * NUMBERS + i * WIDTH * 3,
                                                (size_t)(i == 0 ? WIDTH * 3 : 3) * sizeof(float)),
                             TN_OK);
}

static const char net[] = "Sequential(Dropout(0.3), Linear(4, 3))", adam[] = "Adam(lr=0.05)";

START_TEST(a_training_continues_to_the_bit)
{
    TN_SCOPE;
    float wanted[2 * NUMBERS], got[2 * NUMBERS];
    struct training t;

    tn_random_seed(5);
    begin(&t, net, adam);
    for (int i = 0; i < STEPS; i++)
        step(&t);
    numbers_of(&t, wanted);
    end(&t);
    for (int cut = 0; cut < STEPS; cut++) {
        tn_random_seed(5);
        begin(&t, net, adam);
        for (int i = 0; i < cut; i++)
            step(&t);
        ck_assert_int_eq(tn_checkpoint_set(t.checkpoint, "step", tn_value_int(cut)), TN_OK);
        ck_assert_msg(tn_checkpoint_save(t.checkpoint, file) == TN_OK, "%s", tn_error_text());
        end(&t);
        tn_random_seed(77);
        begin(&t, net, adam);
        ck_assert_msg(tn_checkpoint_load(t.checkpoint, file) == TN_OK, "%s", tn_error_text());
        ck_assert_int_eq(tn_checkpoint_get(t.checkpoint, "step").as.i, cut);
        for (int i = cut; i < STEPS; i++)
            step(&t);
        numbers_of(&t, got);
        end(&t);
        ck_assert_msg(memcmp(wanted, got, sizeof wanted) == 0, "cut after step %d", cut);
    }
    unlink(file);
}
END_TEST

static tn_state *saved(struct training *t)
{
    ck_assert_int_eq(tn_checkpoint_save(t->checkpoint, file), TN_OK);
    return tn_checkpoint_read(file);
}

static void refused(struct training *t, tn_state *state, const char *words)
{
    ck_assert_int_ne(tn_checkpoint_restore(t->checkpoint, state), TN_OK);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s", tn_error_text());
    tn_error_clear();
}

START_TEST(what_does_not_fit_is_refused)
{
    TN_SCOPE;
    struct training t, other;
    tn_state *state, *empty = tn_state_new();

    begin(&t, net, adam);
    step(&t);
    state = saved(&t);
    ck_assert_ptr_nonnull(state);
    begin(&other, "Sequential(Dropout(0.3), Linear(4, 2))", adam);
    refused(&other, state, "1.weight");
    end(&other);
    begin(&other, net, "SGD(lr=0.1)");
    refused(&other, state, "checkpoint: \"optimizer\": another type, got SGD; expected Adam");
    end(&other);
    refused(&t, empty, "not a checkpoint of a training");
    ck_assert_int_eq(tn_state_set_value(state, "run.version", tn_value_int(9)), TN_OK);
    refused(&t, state, "version of the checkpoint: unknown, got 9; expected 1");
    ck_assert_int_ne(tn_checkpoint_add_module(t.checkpoint, "model", t.net), TN_OK);
    ck_assert_int_ne(tn_checkpoint_add_module(t.checkpoint, "a.b", t.net), TN_OK);
    ck_assert_int_ne(tn_checkpoint_add_module(t.checkpoint, "value", t.net), TN_OK);
    tn_error_clear();
    tn_state_drop(state);
    tn_state_drop(empty);
    end(&t);
}
END_TEST

START_TEST(missing_plugins_are_named_with_the_folders)
{
    TN_SCOPE;
    struct training t;
    tn_state *state;
    tn_value list[] = { tn_value_string("org.example.absent"), tn_value_string("1.2") };

    begin(&t, net, adam);
    state = saved(&t);
    ck_assert_int_eq(tn_state_set_value(state, "run.plugins", tn_value_dict(list, 2)), TN_OK);
    ck_assert_int_eq(tn_state_save(state, file), TN_OK);
    ck_assert_ptr_null(tn_checkpoint_read(file));
    ck_assert_int_eq(tn_error_code(), TN_ERR_NOT_IMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "\"org.example.absent\" 1.2"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "searched: "));
    tn_error_clear();
    unlink(file);
    tn_state_drop(state);
    end(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_test(all, a_training_continues_to_the_bit);
    tcase_add_test(all, what_does_not_fit_is_refused);
    tcase_add_test(all, missing_plugins_are_named_with_the_folders);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    tn_shutdown();
    return failed != 0;
}
