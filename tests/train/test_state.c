/* SPDX-License-Identifier: MIT
 *
 * The state of an optimizer: what it contains, what is refused, files of PyTorch, and resuming. */
#include "whole.h"

#include <unistd.h>

static const char *file_of(const char *name)
{
    static char path[1024];
    const char *folder = getenv("abs_srcdir");

    tn_snprint(path, sizeof path, "%s/tests/train/files/%s.pt", folder != NULL ? folder : ".",
               name);
    return path;
}

static tn_value value_of(const tn_state *state, const char *name)
{
    int64_t found = tn_state_find(state, name);

    ck_assert_msg(found >= 0, "no entry %s", name);
    return tn_state_value(state, found);
}

START_TEST(a_state_of_pytorch_resumes_to_its_numbers)
{
    for (int64_t i = 0; i < tn__countof(states); i++) {
        struct pair pair = pair_new(states[i].spec, states[i].middle);
        tn_state *state = tn_state_load(file_of(states[i].file));
        double got[2 * STATE_SIZE];

        ck_assert_msg(state != NULL, "%s", tn_error_text());
        ck_assert_msg(tn_optimizer_load_state(pair.optimizer, state) == TN_OK, "%s: %s",
                      states[i].file, tn_error_text());
        tn_state_drop(state);
        for (int step = 3; step < STATE_STEPS; step++)
            pair_step(&pair, step);
        pair_values(&pair, got);
        for (int k = 0; k < 2 * STATE_SIZE; k++)
            ck_assert_msg(fabs(got[k] - states[i].end[k]) < 1e-12,
                          "%s, element %d: %.17g not %.17g", states[i].file, k, got[k],
                          states[i].end[k]);
        /* The names of the optimizer stay if the state has none. */
        ck_assert_str_eq(tn_optimizer_parameter_name(pair.optimizer, 1), "second");
        pair_free(&pair);
    }
    TN_PROVES("OPT-018");
}
END_TEST

/* Writes to `out` the lines of a text without the options that only Tenon or only PyTorch prints,
 * and with 0.0 instead of the integer 0. */
static void reduced(const char *text, char *out)
{
    static const char *const some[] = { "foreach", "fused", "differentiable",
                                        "decoupled_weight_decay", "capturable" };

    while (*text != '\0') {
        size_t length = strcspn(text, "\n"), rest = text[length] == '\n';
        bool skip = false;

        for (int i = 0; i < 5; i++)
            skip |= strncmp(text, "    ", 4) == 0 &&
                    strncmp(text + 4, some[i], strlen(some[i])) == 0;
        if (!skip) {
            memcpy(out, text, length);
            out += length;
            if (length > 3 && strncmp(text + length - 3, ": 0", 3) == 0) {
                memcpy(out, ".0", 2);
                out += 2;
            }
            if (rest)
                *out++ = '\n';
        }
        text += length + rest;
    }
    *out = '\0';
}

START_TEST(an_optimizer_prints_itself_as_in_pytorch)
{
    for (int64_t i = 0; i < tn__countof(states); i++) {
        struct pair pair = pair_new(states[i].spec, states[i].middle);
        tn_state *state = tn_state_load(file_of(states[i].file));
        char got[1024], without[1024], wanted[1024];

        ck_assert_int_eq(tn_optimizer_load_state(pair.optimizer, state), TN_OK);
        ck_assert_int_lt(tn_optimizer_repr(pair.optimizer, got, sizeof got), 1024);
        reduced(states[i].printed, wanted);
        reduced(got, without);
        ck_assert_str_eq(without, wanted);
        tn_state_drop(state);
        pair_free(&pair);
    }
    TN_PROVES("OPT-022");
}
END_TEST

START_TEST(a_state_has_the_structure_of_pytorchs)
{
    struct pair pair = pair_new("Adam(lr=0.05, betas=(0.5, 0.75))", states[0].middle);
    tn_state *state = tn_optimizer_save_state(pair.optimizer);
    tn_value value;

    ck_assert_int_eq(tn_state_find(state, "state.0.step"), -1); /* no step yet */
    tn_state_drop(state);
    for (int step = 0; step < 3; step++)
        pair_step(&pair, step);
    state = tn_optimizer_save_state(pair.optimizer);
    ck_assert_str_eq(tn_state_name(state, 0), "state.0.step");
    ck_assert_double_eq(tn_item(tn_state_tensor(state, 0)), 3);
    ck_assert_int_eq(tn_tensor_dtype(tn_state_tensor(state, 0)), TN_F32);
    ck_assert_int_eq(tn_tensor_ndim(tn_state_tensor(state, 0)), 0);
    ck_assert_ptr_eq(tn_state_get(state, "state.1.exp_avg"),
                     tn_optimizer_state(pair.optimizer, 1, "exp_avg"));
    value = value_of(state, "param_groups.1.params");
    ck_assert_uint_eq(value.count, 1);
    ck_assert_int_eq(value.as.list[0].as.i, 1);
    value = value_of(state, "param_groups.1.param_names");
    ck_assert_str_eq(value.as.list[0].as.s, "second");
    ck_assert_double_eq(value_of(state, "param_groups.0.lr").as.f, 0.05);
    ck_assert_double_eq(value_of(state, "param_groups.1.lr").as.f, 0.02);
    value = value_of(state, "param_groups.1.betas");
    ck_assert_int_eq(value.kind, TN_VALUE_TUPLE);
    ck_assert_double_eq(value.as.list[1].as.f, 0.75);
    ck_assert_int_eq(value_of(state, "param_groups.0.amsgrad").kind, TN_VALUE_BOOL);
    tn_state_drop(state);
    pair_free(&pair);
    TN_PROVES("OPT-017");
}
END_TEST

/* Trains, saves model and optimizer to one file, loads both into new objects, and trains on. */
START_TEST(a_run_that_is_resumed_from_a_file_ends_in_the_same_bits)
{
    static const char *const specs[] = { "SGD(lr=0.1, momentum=0.9, dampening=0.25)",
                                         "Adam(lr=0.05, amsgrad=True)", "AdamW(lr=0.05)",
                                         "Adam(lr=0.05, capturable=True)" };
    static const char *const extensions[] = { "safetensors", "checkpoint" };
    const double begin[2 * STATE_SIZE] = { 1, 2, 3, 4, 5, 6, 7, 8 };

    for (int i = 0; i < 8; i++) {
        struct pair first = pair_new(specs[i / 2], begin), second = pair_new(specs[i / 2], begin);
        double wanted[2 * STATE_SIZE], got[2 * STATE_SIZE];
        tn_state *state = tn_state_new(), *part;
        char path[64];

        for (int step = 0; step < 3; step++)
            pair_step(&first, step);
        tn_snprint(path, sizeof path, "resume-%d.%s", (int)getpid(), extensions[i % 2]);
        ck_assert_int_eq(tn_state_set(state, "model.0", first.parameters[0]), TN_OK);
        ck_assert_int_eq(tn_state_set(state, "model.1", first.parameters[1]), TN_OK);
        ck_assert_int_eq(tn_optimizer_set(first.optimizer, -1, "lr", 0.125), TN_OK);
        ck_assert_int_eq(tn_optimizer_save_state_into(first.optimizer, state, "optimizer."), TN_OK);
        ck_assert_msg(tn_state_save(state, path) == TN_OK, "%s", tn_error_text());
        tn_state_drop(state);

        state = tn_state_load(path);
        ck_assert_msg(state != NULL, "%s", tn_error_text());
        unlink(path);
        part = tn_state_part(state, "optimizer.");
        ck_assert_msg(tn_optimizer_load_state(second.optimizer, part) == TN_OK, "%s",
                      tn_error_text());
        tn_state_drop(part);
        part = tn_state_part(state, "model.");
        ck_assert_int_eq(tn_state_count(part), 2);
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(tn_tensor_copy_async(second.parameters[k], tn_state_tensor(part, k)),
                             TN_OK);
        tn_state_drop(part);
        tn_state_drop(state);
        for (int step = 3; step < STATE_STEPS; step++) {
            pair_step(&first, step); /* the run that was not interrupted */
            pair_step(&second, step);
        }
        pair_values(&second, got);
        pair_values(&first, wanted);
        ck_assert_msg(memcmp(got, wanted, sizeof got) == 0, "%s, .%s", specs[i / 2],
                      extensions[i % 2]);
        pair_free(&first);
        pair_free(&second);
    }
    TN_PROVES("OPT-019");
}
END_TEST

/* Expects the failure, and that nothing has changed. */
static void refuse(struct pair *pair, const tn_state *state, tn_status code, const char *words)
{
    double before = 0, after = 0;

    ck_assert_int_eq(tn_optimizer_get(pair->optimizer, 0, "lr", &before), TN_OK);
    ck_assert_int_eq(tn_optimizer_load_state(pair->optimizer, state), code);
    expect_failure(code, words);
    ck_assert_int_eq(tn_optimizer_get(pair->optimizer, 0, "lr", &after), TN_OK);
    ck_assert_double_eq(before, after);
    ck_assert_int_eq(tn_optimizer_steps(pair->optimizer, 0), 1);
    ck_assert_int_eq(tn_optimizer_state_count(pair->optimizer, 0), 2);
}

START_TEST(a_state_that_does_not_fit_is_refused_and_changes_nothing)
{
    const double zeros[2 * STATE_SIZE] = { 0 };
    struct pair pair = pair_new("Adam(lr=0.05)", zeros), other = pair_new("Adam(lr=0.5)", zeros);
    tn_value twice[2] = { tn_value_int(0), tn_value_int(5) };
    tn_state *state;

    pair_step(&pair, 0);
    pair_step(&other, 0);
    state = tn_optimizer_save_state(other.optimizer);
    ck_assert_int_eq(tn_state_set_value(state, "param_groups.2.lr", tn_value_float(1)), TN_OK);
    refuse(&pair, state, TN_ERR_VALUE,
           "loaded state dict has a different number of parameter groups, got 3; expected 2");
    ck_assert_int_eq(tn_state_remove(state, "param_groups.2.lr"), TN_OK);

    ck_assert_int_eq(tn_state_set_value(state, "param_groups.1.params", tn_value_list(twice, 2)),
                     TN_OK);
    refuse(&pair, state, TN_ERR_VALUE,
           "loaded state dict contains a parameter group that doesn't match the size of "
           "optimizer's group: group 1, got 2 parameters; expected 1");
    ck_assert_int_eq(tn_state_set_value(state, "param_groups.1.params", tn_value_list(twice, 1)),
                     TN_OK);
    refuse(&pair, state, TN_ERR_VALUE, "no parameter group contains 1");
    ck_assert_int_eq(
        tn_state_set_value(state, "param_groups.1.params", tn_value_list(twice + 1, 1)), TN_OK);
    ck_assert_int_eq(tn_state_rename(state, "state.1.step", "state.5.step"), TN_OK);
    ck_assert_int_eq(tn_state_rename(state, "state.1.exp_avg", "state.5.exp_avg"), TN_OK);
    ck_assert_int_eq(tn_state_rename(state, "state.1.exp_avg_sq", "state.5.exp_avg_sq"), TN_OK);

    ck_assert_int_eq(tn_state_set_value(state, "param_groups.1.lr", tn_value_float(-1)), TN_OK);
    refuse(&pair, state, TN_ERR_VALUE, "Invalid learning rate: -1.0");
    ck_assert_int_eq(tn_state_set_value(state, "param_groups.1.lr", tn_value_string("x")), TN_OK);
    refuse(&pair, state, TN_ERR_TYPE, "lr");
    ck_assert_int_eq(tn_state_set_value(state, "param_groups.1.lr", tn_value_float(2)), TN_OK);

    ck_assert_int_eq(tn_state_set_value(state, "state.5.step", tn_value_float(0.5)), TN_OK);
    refuse(&pair, state, TN_ERR_VALUE, "\"state.5.step\": wrong value, got 0.5");
    ck_assert_int_eq(tn_state_set_value(state, "state.5.step", tn_value_string("x")), TN_OK);
    refuse(&pair, state, TN_ERR_TYPE, "\"state.5.step\": wrong kind, got str");
    ck_assert_int_eq(tn_state_set_value(state, "state.5.step", tn_value_int(41)), TN_OK);

    ck_assert_int_eq(tn_state_set_value(state, "0.weight", tn_value_int(1)), TN_OK);
    refuse(&pair, state, TN_ERR_KEY, "\"0.weight\": does not belong to an optimizer");
    ck_assert_int_eq(tn_state_remove(state, "0.weight"), TN_OK);

    /* Matched by position: parameter 5 of the state is the one of the second group. */
    ck_assert_msg(tn_optimizer_load_state(pair.optimizer, state) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_optimizer_steps(pair.optimizer, 1), 41);
    ck_assert_ptr_null(tn_state_part(state, "net."));
    expect_failure(TN_ERR_KEY, "prefix \"net.\": no entry begins with it");
    tn_state_drop(state);
    pair_free(&pair);
    pair_free(&other);
}
END_TEST

START_TEST(a_state_is_cast_to_its_parameter_except_the_step)
{
    TN_SCOPE;
    const double zeros[2 * STATE_SIZE] = { 0 };
    struct pair pair = pair_new("Adam(lr=0.05)", zeros);
    tn_tensor *small[2];
    tn_optimizer *optimizer;
    tn_state *state;

    for (int i = 0; i < 2; i++)
        small[i] = tn_parameter(tn_tensor_full(TN_SHAPE(STATE_SIZE), 0, TN_BF16, NULL), true);
    optimizer = tn_optimizer_parse(small, 1, "Adam(lr=0.05)");
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, small + 1, 1, NULL), TN_OK);
    for (int step = 0; step < 300; step++)
        pair_step(&pair, step % STATE_STEPS);
    state = tn_optimizer_save_state(pair.optimizer);
    ck_assert_int_eq(tn_optimizer_load_state(optimizer, state), TN_OK);
    ck_assert_int_eq(tn_optimizer_steps(optimizer, 1), 300); /* bfloat16 has no 299 */
    ck_assert_int_eq(tn_tensor_dtype(tn_optimizer_state(optimizer, 1, "exp_avg")), TN_BF16);
    ck_assert_ptr_ne(tn_optimizer_state(optimizer, 1, "exp_avg"),
                     tn_state_get(state, "state.1.exp_avg"));
    tn_state_drop(state);
    tn_optimizer_drop(optimizer);
    pair_free(&pair);
    TN_PROVES("OPT-018");
}
END_TEST

START_TEST(parameters_have_the_names_of_the_module)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(2, 3), ReLU(), Linear(3, 1))");
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1)");
    tn_tensor *more = tn_parameter(tn_tensor_full(TN_SHAPE(2), 0, TN_F32, NULL), true);
    const char *names[2] = { "a", NULL };
    tn_tensor *two[2] = { more, tn_module_find_tensor(net, "0.weight") };
    tn_state *state;

    ck_assert_str_eq(tn_optimizer_parameter_name(optimizer, 0), "0.weight");
    ck_assert_str_eq(tn_optimizer_parameter_name(optimizer, 3), "2.bias");
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, &more, 1, NULL), TN_OK);
    ck_assert_ptr_null(tn_optimizer_parameter_name(optimizer, 4));
    ck_assert(!tn_failed());
    state = tn_optimizer_save_state(optimizer);
    ck_assert_str_eq(value_of(state, "param_groups.0.param_names").as.list[2].as.s, "2.weight");
    ck_assert_int_eq(tn_state_find(state, "param_groups.1.param_names"), -1);
    tn_state_drop(state);
    tn_optimizer_drop(optimizer);

    ck_assert_ptr_null(tn_optimizer_parse_named(two, names, 2, "SGD(lr=0.1)"));
    expect_failure(TN_ERR_VALUE, "all optimizer params should be with/without names. Some param "
                                 "names are missing");
    optimizer = tn_optimizer_parse_named(two, names, 1, "SGD(lr=0.1)");
    ck_assert_int_eq(tn_optimizer_add_group(optimizer, two + 1, 1, NULL), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "all optimizer param groups should be with/without names. cannot "
                                 "add param group without names to the optimizer");
    ck_assert_int_eq(tn_optimizer_group_count(optimizer), 1);
    tn_optimizer_drop(optimizer);
    optimizer = tn_optimizer_parse(two, 1, "SGD(lr=0.1)");
    names[0] = "b";
    ck_assert_int_eq(tn_optimizer_add_group_named(optimizer, two + 1, names, 1, NULL),
                     TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "cannot add param group with names");
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    TN_PROVES("OPT-002");
}
END_TEST

START_TEST(a_state_keeps_the_initial_rate_of_a_scheduler)
{
    const double zeros[2 * STATE_SIZE] = { 0 };
    struct pair pair = pair_new("SGD(lr=0.5)", zeros);
    tn_scheduler *scheduler = tn_scheduler_new(pair.optimizer, "ExponentialLR(gamma=0.5)");
    tn_state *state;
    char text[512];

    ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
    state = tn_optimizer_save_state(pair.optimizer);
    ck_assert_double_eq(value_of(state, "param_groups.0.initial_lr").as.f, 0.5);
    ck_assert_double_eq(value_of(state, "param_groups.0.lr").as.f, 0.25);
    tn_optimizer_repr(pair.optimizer, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "    initial_lr: 0.5\n    lr: 0.25\n"));
    ck_assert_int_eq(tn_optimizer_load_state(pair.optimizer, state), TN_OK);
    tn_state_drop(state);
    tn_scheduler_drop(scheduler);
    pair_free(&pair);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_state_of_pytorch_resumes_to_its_numbers,
                                   an_optimizer_prints_itself_as_in_pytorch,
                                   a_state_has_the_structure_of_pytorchs,
                                   a_run_that_is_resumed_from_a_file_ends_in_the_same_bits,
                                   a_state_that_does_not_fit_is_refused_and_changes_nothing,
                                   a_state_is_cast_to_its_parameter_except_the_step,
                                   parameters_have_the_names_of_the_module,
                                   a_state_keeps_the_initial_rate_of_a_scheduler,
                                   NULL };
    return suite_run("optimizer state", tests);
}
