/* SPDX-License-Identifier: MIT
 *
 * Ports of PyTorch's tests of optimizers (test/test_optim.py), with each optimizer and each of the
 * settings of these tests (ported_inputs.h). docs/reference/ported-tests.md lists all names. */
#include "tests/base/suite.h"

#include <math.h>
#include <unistd.h>

#include "ported_inputs.h"

enum { ROWS = 10, COLUMNS = 5, WHOLE = ROWS * COLUMNS + ROWS };

static bool is(const char *spec, const char *name)
{
    size_t length = strlen(name);

    return strncmp(spec, name, length) == 0 && spec[length] == '(';
}

static bool has(const char *spec, const char *option)
{
    return strstr(spec, option) != NULL;
}

/* Writes the spec with more options at its end. */
static const char *with(char *out, size_t size, const char *spec, const char *options)
{
    int length = (int)strlen(spec) - 1;

    tn_snprint(out, size, "%.*s%s%s)", length, spec, spec[length - 1] == '(' ? "" : ", ", options);
    return out;
}

/* ---- the loss (weight input + bias)^2 -------------------------------------------------------- */

struct problem {
    tn_tensor *weight, *bias, *input;
    tn_optimizer *optimizer;
};

/* A parameter with numbers in [-1, 1); `strided`: every second element of a larger one. */
static tn_tensor *parameter_of(int64_t rows, int64_t columns, uint32_t seed, bool strided)
{
    TN_SCOPE;
    double values[2 * WHOLE];
    tn_tensor *all;

    for (int64_t i = 0; i < rows * columns; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[2 * i] = (double)seed / (1u << 31) - 1;
        values[2 * i + 1] = 99;
    }
    all = tn_cast(tn_tensor_from(values, TN_F64, TN_SHAPE(rows, columns, 2)), TN_F32);
    all = tn_select(all, 2, 0);
    all = tn_parameter(strided ? all : tn_copy(all), true);
    ck_assert_msg(all != NULL, "%s", tn_error_text());
    return tn_tensor_keep(all);
}

static struct problem problem_of(const char *spec, bool strided)
{
    struct problem p = { .weight = parameter_of(ROWS, COLUMNS, 1, strided),
                         .bias = parameter_of(ROWS, 1, 2, strided),
                         .input = parameter_of(COLUMNS, 1, 3, false) };

    ck_assert_int_eq(tn_tensor_set_requires_grad(p.input, false), TN_OK);
    p.optimizer = tn_optimizer_parse((tn_tensor *[]){ p.weight, p.bias }, 2, spec);
    ck_assert_msg(p.optimizer != NULL, "%s: %s", spec, tn_error_text());
    return p;
}

static void problem_free(struct problem *p)
{
    tn_optimizer_drop(p->optimizer);
    tn_tensor_drop(p->weight);
    tn_tensor_drop(p->bias);
    tn_tensor_drop(p->input);
}

static tn_tensor *loss_of(void *user)
{
    struct problem *p = user;
    tn_tensor *loss;

    ck_assert_int_eq(tn_optimizer_zero_grad(p->optimizer), TN_OK);
    loss = tn_sum(tn_square(tn_add(tn_matmul(p->weight, p->input), p->bias)));
    return tn_backward(loss) == TN_OK ? loss : NULL;
}

static double loss_now(struct problem *p)
{
    TN_SCOPE;
    return tn_item(tn_detach(loss_of(p)));
}

static void step(struct problem *p, const char *spec)
{
    TN_SCOPE;
    ck_assert_msg(tn_optimizer_step_with(p->optimizer, loss_of, p) != NULL, "%s: %s", spec,
                  tn_error_text());
}

static void values_of(const struct problem *p, float *out)
{
    TN_SCOPE;
    ck_assert_int_eq(tn_tensor_copy_out(p->weight, out, ROWS * COLUMNS * sizeof *out), TN_OK);
    ck_assert_int_eq(
        tn_tensor_copy_out(p->bias, out + (ptrdiff_t)ROWS * COLUMNS, ROWS * sizeof *out), TN_OK);
}

static void expect_same(const struct problem *a, const struct problem *b, const char *spec)
{
    float one[WHOLE], other[WHOLE];

    values_of(a, one);
    values_of(b, other);
    ck_assert_msg(memcmp(one, other, sizeof one) == 0, "%s: other parameters", spec);
}

/* Takes `count` steps, but only one for LBFGS with maximize: the loss has no maximum, and LBFGS
 * reaches 1e22 in one step and infinity in the next, as in PyTorch. */
static void steps(struct problem *p, const char *spec, int count)
{
    if (is(spec, "LBFGS") && has(spec, "maximize"))
        count = 1;
    for (int i = 0; i < count; i++)
        step(p, spec);
}

/* Copies the parameters of the other problem. */
static void take(struct problem *p, const struct problem *from)
{
    TN_SCOPE;
    tn_grad_begin(false);
    ck_assert_ptr_nonnull(tn_copy_(p->weight, from->weight));
    ck_assert_ptr_nonnull(tn_copy_(p->bias, from->bias));
    tn_grad_end();
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void expect_direction(struct problem *p, double before, const char *spec)
{
    double after = loss_now(p);

    ck_assert_msg(has(spec, "maximize=True") ? after > before : after < before,
                  "%s: the loss went from %g to %g", spec, before, after);
}

/* test_forloop_goes_right_direction, test_foreach_matches_forloop (there is one form) */
START_TEST(every_optimizer_goes_in_the_right_direction)
{
    for (int64_t i = 0; i < tn__countof(inputs); i++)
        for (int strided = 0; strided < 2; strided++) {
            struct problem p = problem_of(inputs[i], strided == 1);
            double before = loss_now(&p);

            steps(&p, inputs[i], 20);
            expect_direction(&p, before, inputs[i]);
            problem_free(&p);
        }
}
END_TEST

/* test_param_groups_weight_decay */
START_TEST(groups_have_weight_decays_of_their_own)
{
    int64_t tried = 0;

    for (int64_t i = 0; i < tn__countof(inputs); i++) {
        struct problem p = problem_of(inputs[i], false);
        double decay = 0, before;

        tn_optimizer_drop(p.optimizer);
        p.optimizer = tn_optimizer_parse(&p.weight, 1, inputs[i]);
        if (tn_optimizer_get(p.optimizer, 0, "weight_decay", &decay) == TN_OK) {
            ck_assert_int_eq(tn_optimizer_add_group(p.optimizer, &p.bias, 1, "weight_decay=0.0"),
                             TN_OK);
            before = loss_now(&p);
            for (int k = 0; k < 20; k++)
                step(&p, inputs[i]);
            expect_direction(&p, before, inputs[i]);
            ck_assert_int_eq(tn_optimizer_get(p.optimizer, 1, "weight_decay", &decay), TN_OK);
            ck_assert_double_eq(decay, 0);
            tried++;
        }
        tn_error_clear();
        problem_free(&p);
    }
    ck_assert_int_gt(tried, 80);
}
END_TEST

/* test_param_groups_lr: a group with a rate of almost 0 stays as it is. */
START_TEST(groups_have_rates_of_their_own)
{
    for (int64_t i = 0; i < tn__countof(inputs); i++) {
        struct problem p;
        tn_tensor *other;
        float start[2], end[2];
        double before;

        if (is(inputs[i], "LBFGS"))
            continue; /* it has one group */
        p = problem_of(inputs[i], false);
        other = parameter_of(2, 1, 9, false);
        ck_assert_int_eq(tn_tensor_copy_out(other, start, sizeof start), TN_OK);
        ck_assert_msg(tn_optimizer_add_group(p.optimizer, &other, 1,
                                             is(inputs[i], "Rprop") ? "lr=1e-28, step_sizes=(0, 50)"
                                                                    : "lr=1e-28") == TN_OK,
                      "%s: %s", inputs[i], tn_error_text());
        before = loss_now(&p);
        for (int k = 0; k < 20; k++) {
            TN_SCOPE;
            ck_assert_ptr_nonnull(loss_of(&p));
            tn_tensor_set_grad(other, tn_tensor_full(TN_SHAPE(2, 1), 0.5, TN_F32, NULL));
            ck_assert_msg(tn_optimizer_step(p.optimizer) == TN_OK, "%s: %s", inputs[i],
                          tn_error_text());
        }
        expect_direction(&p, before, inputs[i]);
        ck_assert_int_eq(tn_tensor_copy_out(other, end, sizeof end), TN_OK);
        /* Adafactor's step is min(lr, 1 / sqrt(steps)) times max(eps[1], rms of p). */
        ck_assert_msg(fabsf(start[0] - end[0]) + fabsf(start[1] - end[1]) <= 1e-7F, "%s: it moved",
                      inputs[i]);
        tn_tensor_drop(other);
        problem_free(&p);
    }
}
END_TEST

static tn_tensor *constant_loss(void *user)
{
    (void)user;
    return tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_F32, NULL);
}

/* test_step_is_noop_when_params_have_no_grad, test_step_is_noop_for_zero_grads */
START_TEST(a_step_without_gradients_or_with_zeros_changes_nothing)
{
    for (int64_t i = 0; i < tn__countof(inputs); i++)
        for (int zeros = 0; zeros < 2; zeros++) {
            TN_SCOPE;
            bool decays = is(inputs[i], "AdamW") || is(inputs[i], "Muon");
            struct problem p;
            float before[WHOLE], after[WHOLE];
            char spec[256];

            /* A weight decay and lambd of ASGD change parameters without a gradient, too. */
            if (zeros == 1 && (has(inputs[i], "weight_decay") || has(inputs[i], "lambd")))
                continue;
            p = problem_of(!decays ? inputs[i]
                                   : with(spec, sizeof spec, inputs[i],
                                          has(inputs[i], "weight_decay") ? "" : "weight_decay=0.0"),
                           false);
            values_of(&p, before);
            if (zeros == 1) {
                ck_assert_ptr_nonnull(loss_of(&p));
                ck_assert_int_eq(tn_optimizer_zero_grad_in_place(p.optimizer), TN_OK);
            }
            ck_assert_msg(tn_optimizer_step_with(p.optimizer, constant_loss, NULL) != NULL,
                          "%s: %s", inputs[i], tn_error_text());
            values_of(&p, after);
            for (int k = 0; k < WHOLE; k++)
                ck_assert_msg(fabsf(before[k] - after[k]) <=
                                  (is(inputs[i], "ASGD") ? 1e-5F : 0) * fabsf(before[k]),
                              "%s: %g became %g", inputs[i], (double)before[k], (double)after[k]);
            problem_free(&p);
        }
}
END_TEST

/* test_mixed_device_dtype, test_foreach_matches_forloop with a parameter without dimensions: in one
 * optimizer, parameters of several dtypes, shapes and sizes end as in optimizers of their own. */
START_TEST(parameters_of_several_kinds_step_as_they_do_alone)
{
    static const tn_dtype dtypes[] = { TN_F64, TN_F32, TN_F64, TN_F32, TN_BF16 };
    enum { KINDS = 5 };

    for (int64_t i = 0; i < tn__countof(inputs); i++) {
        TN_SCOPE;
        tn_tensor *all[KINDS], *alone[KINDS];
        tn_optimizer *one;

        if (is(inputs[i], "LBFGS"))
            continue; /* its step depends on all parameters */
        for (int k = 0; k < KINDS; k++) {
            bool matrices = is(inputs[i], "Muon");
            tn_ints shape = k == 2 && !matrices   ? TN_SCALAR_SHAPE
                            : k == 3 && !matrices ? TN_SHAPE(0)
                                                  : TN_SHAPE(2, 3);

            all[k] = tn_parameter(tn_tensor_full(shape, 0.5 + k, dtypes[k], NULL), true);
            alone[k] = tn_parameter(tn_tensor_full(shape, 0.5 + k, dtypes[k], NULL), true);
        }
        one = tn_optimizer_parse(all, KINDS, inputs[i]);
        ck_assert_ptr_nonnull(one);
        for (int n = 0; n < 3; n++) {
            for (int k = 0; k < KINDS; k++)
                tn_tensor_set_grad(all[k], tn_mul_scalar(tn_detach(all[k]), 0.25));
            ck_assert_msg(tn_optimizer_step(one) == TN_OK, "%s: %s", inputs[i], tn_error_text());
        }
        for (int k = 0; k < KINDS; k++) {
            tn_optimizer *own = tn_optimizer_parse(alone + k, 1, inputs[i]);

            for (int n = 0; n < 3; n++) {
                tn_tensor_set_grad(alone[k], tn_mul_scalar(tn_detach(alone[k]), 0.25));
                ck_assert_int_eq(tn_optimizer_step(own), TN_OK);
            }
            ck_assert_msg(tn_equal(all[k], alone[k]), "%s: parameter %d differs", inputs[i], k);
            tn_optimizer_drop(own);
        }
        tn_optimizer_drop(one);
    }
}
END_TEST

/* ---- states ---------------------------------------------------------------------------------- */

static void load(struct problem *p, const tn_state *state, const char *spec)
{
    ck_assert_msg(tn_optimizer_load_state(p->optimizer, state) == TN_OK, "%s: %s", spec,
                  tn_error_text());
}

/* Compares all entries. */
static void expect_same_state(const tn_state *a, const tn_state *b, const char *spec)
{
    ck_assert_int_eq(tn_state_count(a), tn_state_count(b));
    for (int64_t i = 0; i < tn_state_count(a); i++) {
        const char *name = tn_state_name(a, i);
        tn_tensor *one = tn_state_get(a, name), *other = tn_state_get(b, name);

        ck_assert_str_eq(name, tn_state_name(b, i));
        ck_assert_msg((one == NULL) == (other == NULL) &&
                          (one == NULL || tn_equal(tn_detach(one), tn_detach(other))),
                      "%s: %s differs", spec, name);
        tn_error_clear();
    }
}

/* test_state_dict_deterministic, test_optimizer_can_be_printed, test_non_empty_state */
START_TEST(an_optimizer_continues_from_the_state_of_another)
{
    for (int64_t i = 0; i < tn__countof(inputs); i++) {
        TN_SCOPE;
        struct problem a = problem_of(inputs[i], false), b = problem_of(inputs[i], false);
        tn_state *state, *again;
        char text[2048];
        size_t name = strcspn(inputs[i], "(");

        ck_assert_int_gt(tn_optimizer_repr(a.optimizer, text, sizeof text), 0);
        ck_assert_mem_eq(text, inputs[i], name);
        steps(&a, inputs[i], 10);
        take(&b, &a);
        state = tn_optimizer_save_state(a.optimizer);
        ck_assert_int_ge(tn_state_find(state, "state.0.step"), is(inputs[i], "LBFGS") ? -1 : 0);
        load(&b, state, inputs[i]);
        tn_state_drop(state);
        for (int k = 0; k < 10 && !(is(inputs[i], "LBFGS") && has(inputs[i], "maximize")); k++) {
            step(&a, inputs[i]);
            step(&b, inputs[i]);
            expect_same(&a, &b, inputs[i]);
        }
        state = tn_optimizer_save_state(a.optimizer);
        again = tn_optimizer_save_state(b.optimizer);
        expect_same_state(state, again, inputs[i]);
        tn_state_drop(state);
        tn_state_drop(again);
        problem_free(&a);
        problem_free(&b);
    }
}
END_TEST

/* test_save_load_equality_with_weights_only */
START_TEST(a_state_is_the_same_after_a_file)
{
    for (int64_t i = 0; i < tn__countof(inputs); i++) {
        TN_SCOPE;
        struct problem p = problem_of(inputs[i], false);
        tn_state *state, *again;
        char path[64];

        steps(&p, inputs[i], 3);
        tn_snprint(path, sizeof path, "ported-%d.checkpoint", (int)getpid());
        state = tn_optimizer_save_state(p.optimizer);
        ck_assert_int_eq(tn_state_save(state, path), TN_OK);
        again = tn_state_load(path);
        unlink(path);
        ck_assert_ptr_nonnull(again);
        expect_same_state(state, again, inputs[i]);
        tn_state_drop(state);
        tn_state_drop(again);
        problem_free(&p);
    }
}
END_TEST

/* test_can_load_older_state_dict: old files do not have options that were added later; the
 * optimizer keeps its own values. test_load_nontensor_step: in old files, numbers of steps are not
 * tensors. */
START_TEST(older_states_are_loaded)
{
    static const char *const later[] = { "maximize",       "foreach",    "fused",
                                         "differentiable", "capturable", "decoupled_weight_decay" };

    for (int64_t i = 0; i < tn__countof(inputs); i++) {
        TN_SCOPE;
        struct problem a = problem_of(inputs[i], false), b = problem_of(inputs[i], false);
        tn_state *state;
        char name[64];

        for (int k = 0; k < 3; k++)
            step(&a, inputs[i]);
        state = tn_optimizer_save_state(a.optimizer);
        for (int64_t k = 0; k < tn__countof(later); k++) {
            tn_snprint(name, sizeof name, "param_groups.0.%s", later[k]);
            if (tn_state_find(state, name) >= 0)
                ck_assert_int_eq(tn_state_remove(state, name), TN_OK);
        }
        for (int k = 0; k < 2; k++) {
            tn_snprint(name, sizeof name, "state.%d.step", k);
            if (tn_state_find(state, name) >= 0)
                ck_assert_int_eq(
                    tn_state_set_value(state, name, k == 0 ? tn_value_int(3) : tn_value_float(3)),
                    TN_OK);
        }
        take(&b, &a);
        load(&b, state, inputs[i]);
        step(&a, inputs[i]);
        step(&b, inputs[i]);
        expect_same(&a, &b, inputs[i]);
        tn_state_drop(state);
        problem_free(&a);
        problem_free(&b);
    }
}
END_TEST

/* test_can_load_from_to_named_state_dict: the optimizer that loads has the names
 * if its own parameters or those of the state are named. */
START_TEST(names_of_parameters_may_be_missing_on_either_side)
{
    static const char *const names[2] = { "0.weight", "0.bias" };

    for (int64_t i = 0; i < tn__countof(inputs); i++)
        for (int which = 0; which < 4; which++) {
            TN_SCOPE;
            struct problem p[2];
            tn_state *state;

            for (int k = 0; k < 2; k++) {
                p[k] = problem_of(inputs[i], false);
                tn_optimizer_drop(p[k].optimizer);
                p[k].optimizer = tn_optimizer_parse_named((tn_tensor *[]){ p[k].weight, p[k].bias },
                                                          which >> k & 1 ? names : NULL, 2,
                                                          inputs[i]);
                ck_assert_ptr_nonnull(p[k].optimizer);
            }
            for (int k = 0; k < 3; k++)
                step(&p[0], inputs[i]);
            state = tn_optimizer_save_state(p[0].optimizer);
            load(&p[1], state, inputs[i]);
            tn_state_drop(state);
            step(&p[1], inputs[i]);
            for (int k = 0; k < 2; k++) {
                const char *got = tn_optimizer_parameter_name(p[1].optimizer, k);

                ck_assert_msg(which == 0 ? got == NULL : got != NULL && strcmp(got, names[k]) == 0,
                              "%s, %d: name %d is %s", inputs[i], which, k, got);
            }
            problem_free(&p[0]);
            problem_free(&p[1]);
        }
}
END_TEST

/* ---- hooks ----------------------------------------------------------------------------------- */

static char order[64];
static char zero[] = "0", one[] = "1", two[] = "2", five[] = "5";

static tn_status note(void *user, tn_optimizer *optimizer)
{
    (void)optimizer;
    strncat(order, user, sizeof order - strlen(order) - 1);
    return TN_OK;
}

/* test_step_all_hooks, test_step_pre_hook, test_step_post_hook */
START_TEST(hooks_run_around_the_step_of_every_optimizer)
{
    for (int64_t i = 0; i < tn__countof(inputs); i++) {
        struct problem p = problem_of(inputs[i], false), q = problem_of("SGD()", false);
        tn_hook_handle handles[6] = {
            tn_global_hook_step_pre(note, 0, zero, NULL),
            tn_global_hook_step(note, 0, five, NULL),
            tn_optimizer_hook_step_pre(p.optimizer, note, 0, one, NULL),
            tn_optimizer_hook_step(p.optimizer, note, 0, two, NULL),
            tn_optimizer_hook_step_pre(q.optimizer, note, 0, one, NULL),
            tn_optimizer_hook_step(q.optimizer, note, 0, two, NULL),
        };

        order[0] = '\0';
        for (int removed = 0; removed < 2; removed++) {
            step(&p, inputs[i]);
            step(&q, "SGD()");
            step(&p, inputs[i]);
            ck_assert_msg(strcmp(order, "012501250125") == 0, "%s: %s", inputs[i], order);
            for (int k = 0; k < 6 && removed == 0; k++)
                tn_hook_remove(handles[k]);
        }
        problem_free(&p);
        problem_free(&q);
    }
}
END_TEST

/* ---- errors: test_errors --------------------------------------------------------------------- */

START_TEST(what_constructors_of_pytorch_refuse_is_refused)
{
    struct problem p = problem_of("SGD()", false);
    tn_tensor *twice[2] = { p.weight, p.weight };
    static const char *const names[2] = { "weight", NULL };

    for (int64_t i = 0; i < tn__countof(refused); i++) {
        ck_assert_msg(tn_optimizer_parse(&p.weight, 1, refused[i].spec) == NULL, "%s was taken",
                      refused[i].spec);
        expect_failure(TN_ERR_VALUE, refused[i].words);
    }
    for (int64_t i = 0; i < tn__countof(inputs); i++) {
        tn_optimizer *optimizer = tn_optimizer_parse(&p.weight, 1, inputs[i]);

        if (!is(inputs[i], "LBFGS")) {
            ck_assert_int_eq(tn_optimizer_add_group(optimizer, &p.weight, 1, NULL), TN_ERR_VALUE);
            expect_failure(TN_ERR_VALUE, "some parameters appear in more than one parameter group");
            ck_assert_int_eq(tn_optimizer_add_group_named(optimizer, &p.bias, names, 1, NULL),
                             TN_ERR_VALUE);
            expect_failure(TN_ERR_VALUE, "cannot add param group with names to the optimizer");
        }
        tn_optimizer_drop(optimizer);
        twice[1] = p.bias;
        ck_assert_ptr_null(tn_optimizer_parse_named(twice, names, 2, inputs[i]));
        expect_failure(TN_ERR_VALUE, "Some param names are missing");
        twice[1] = p.weight; /* PyTorch warns and steps the parameter twice */
        optimizer = tn_optimizer_parse(twice, 2, inputs[i]);
        ck_assert_int_eq(tn_optimizer_count(optimizer), 1);
        tn_optimizer_drop(optimizer);
    }
    problem_free(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_optimizer_goes_in_the_right_direction,
        groups_have_weight_decays_of_their_own,
        groups_have_rates_of_their_own,
        a_step_without_gradients_or_with_zeros_changes_nothing,
        parameters_of_several_kinds_step_as_they_do_alone,
        an_optimizer_continues_from_the_state_of_another,
        a_state_is_the_same_after_a_file,
        older_states_are_loaded,
        names_of_parameters_may_be_missing_on_either_side,
        hooks_run_around_the_step_of_every_optimizer,
        what_constructors_of_pytorch_refuse_is_refused,
        NULL,
    };
    return suite_run("ported-optim", tests);
}
