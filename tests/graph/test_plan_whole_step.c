/* SPDX-License-Identifier: MIT
 *
 * Plans of whole steps: losses, results, parameters and states of the optimizer have the bits of
 * eager steps; what changes between steps, what is refused, memory. */
#include "tests/graph/plan_training.h"

/* ---- pairs ----------------------------------------------------------------------------------- */

struct steps {
    tn_module *nets[2]; /* eager, planned */
    tn_module *loss;
    tn_optimizer *rules[2];
    tn_step *step;
};

static void *clipped; /* the module whose gradients are clipped; NULL: none */

static tn_status clip(void *user)
{
    return tn_module_clip_grad_norm(user, 0.05, 2, false, NULL);
}

static struct steps steps_of(tn_module *net, const char *loss, const char *rule, bool clips)
{
    struct steps s = { .nets = { NULL, net } };
    tn_step_options how = TN_STEP_OPTIONS;

    ck_made(net);
    s.nets[0] = tn_module_copy(net);
    s.loss = tn_module_new("%s", loss);
    ck_made(s.loss);
    for (int i = 0; i < 2; i++) {
        s.rules[i] = tn_optimizer_new(s.nets[i], "%s", rule);
        ck_made(s.rules[i]);
    }
    clipped = clips ? s.nets[0] : NULL;
    how.gradients = clips ? clip : NULL;
    how.user = net;
    s.step = tn_step_new(net, s.loss, s.rules[1], &how);
    ck_made(s.step);
    return s;
}

static void drop_steps(struct steps *s)
{
    tn_step_drop(s->step);
    for (int i = 0; i < 2; i++) {
        tn_optimizer_drop(s->rules[i]);
        tn_module_drop(s->nets[i]);
    }
    tn_module_drop(s->loss);
}

/* An eager step; returns the loss. */
static tn_tensor *eager_step(struct steps *s, tn_tensor *x, tn_tensor *target, tn_tensor **y)
{
    tn_tensor *in[2], *loss;

    ck_ok(tn_optimizer_zero_grad(s->rules[0]));
    *y = call_of(s->nets[0], x);
    ck_made(*y);
    in[0] = *y;
    in[1] = target;
    ck_ok(tn_module_call_many(s->loss, in, 2, &loss, 1));
    ck_ok(tn_backward(loss));
    if (clipped != NULL)
        ck_ok(clip(clipped));
    ck_ok(tn_optimizer_step(s->rules[0]));
    return loss;
}

static void same_rules(struct steps *s)
{
    for (int64_t i = 0; i < tn_optimizer_count(s->rules[0]); i++) {
        int64_t count = tn_optimizer_state_count(s->rules[0], i);

        ck_assert_int_eq(tn_optimizer_state_count(s->rules[1], i), count);
        ck_assert_int_eq(tn_optimizer_steps(s->rules[1], i), tn_optimizer_steps(s->rules[0], i));
        for (int64_t k = 0; k < count; k++) {
            const char *name = tn_optimizer_state_name(s->rules[0], i, k);

            ck_same(tn_optimizer_state(s->rules[1], i, name),
                    tn_optimizer_state(s->rules[0], i, name));
        }
    }
}

/* A step of each, with the same random numbers. */
static void both(struct steps *s, tn_tensor *x, tn_tensor *target, uint64_t seed)
{
    tn_tensor *in[2] = { x, target }, *out[2], *y, *loss;
    uint64_t state[3];

    tn_random_seed(seed);
    loss = eager_step(s, x, target, &y);
    ck_ok(tn_random_get_state(state));
    tn_random_seed(seed);
    ck_ok(tn_step_run(s->step, in, 2, out, 2));
    same_draws(state);
    ck_same(out[0], loss);
    ck_same(out[1], y);
    ck_assert(!tn_tensor_requires_grad(out[0]));
}

static int64_t plans(struct steps *s)
{
    tn_plan_stats stats;

    ck_ok(tn_step_describe(s->step, &stats));
    return stats.bindings;
}

static tn_tensor *classes(int64_t count, int64_t of, int from)
{
    int64_t *values = malloc((size_t)count * sizeof *values);
    tn_tensor *tensor;

    for (int64_t i = 0; i < count; i++)
        values[i] = (i * 7 + from) % of;
    tensor = tn_tensor_from(values, TN_I64, TN_SHAPE(count));
    free(values);
    return tensor;
}

/* ---- a hundred steps ------------------------------------------------------------------------- */

#define MLP "Sequential(Linear(6, 16), ReLU(), Linear(16, 16), GELU(), Linear(16, 3))"
#define LENET                                                                                      \
    "Sequential(Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), Tanh(), "      \
    "AvgPool2d(2), Flatten(), Linear(16, 12), ReLU(), Linear(12, 4))"
#define NORMS                                                                                      \
    "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Conv2d(8, 8, 3, groups=2), "              \
    "BatchNorm2d(8), SiLU(), Flatten(), Linear(128, 4))"
#define DROPS                                                                                      \
    "Sequential(Linear(6, 16), Dropout(0.3), ReLU(), Dropout(0.5), Linear(16, 8), "                \
    "AlphaDropout(0.2), RReLU(), Linear(8, 3))"

static const struct row {
    const char *spec;
    int64_t shape[4];
    int32_t ndim;
    int64_t classes; /* 0: the target is like the first result */
} rows[] = { { MLP, { 4, 6 }, 2, 3 },
             { LENET, { 3, 1, 12, 12 }, 4, 4 },
             { NORMS, { 2, 3, 8, 8 }, 4, 4 },
             { DROPS, { 4, 6 }, 2, 3 },
             { "LSTM(5, 7, 2, dropout=0.25)", { 3, 2, 5 }, 3, 0 } };

static const char *const rules[] = { "SGD(lr=0.05, momentum=0.9, weight_decay=0.01)",
                                     "Adam(lr=0.01)", "AdamW(lr=0.01, amsgrad=True)" };

static void hundred_steps(const struct row *row, const char *rule, bool clips)
{
    tn_ints shape = { row->shape, row->ndim };
    struct steps s;
    tn_scheduler *rates[2];

    tn_random_seed(7);
    s = steps_of(tn_module_new("%s", row->spec),
                 row->classes > 0 ? "CrossEntropyLoss()" : "MSELoss()", rule, clips);
    for (int i = 0; i < 2; i++) {
        rates[i] = tn_scheduler_new(s.rules[i], "StepLR(30, gamma=0.5)");
        ck_made(rates[i]);
    }
    for (int i = 0; i < 100; i++) {
        TN_SCOPE;
        tn_tensor *target = row->classes > 0 ? classes(row->shape[0], row->classes, i)
                                             : numbered(TN_SHAPE(3, 2, 7), i + 3);

        both(&s, numbered(shape, i), target, (uint64_t)i);
        for (int k = 0; k < 2; k++)
            ck_ok(tn_scheduler_step(rates[k]));
    }
    same_states(s.nets[1], s.nets[0]);
    same_rules(&s);
    ck_assert_int_eq(plans(&s), 1);
    tn_scheduler_drop(rates[0]);
    tn_scheduler_drop(rates[1]);
    drop_steps(&s);
}

START_TEST(a_hundred_steps_have_the_bits_of_eager_ones)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
            TN_SCOPE;

            hundred_steps(&rows[i], rules[k], false);
        }
}
END_TEST

START_TEST(gradients_that_are_clipped)
{
    TN_SCOPE;

    hundred_steps(&rows[0], rules[0], true);
    hundred_steps(&rows[2], rules[1], true);
}
END_TEST

/* Gradients of more than a mebibyte are used before backward ends, or only after it by rules that
 * need all of them. */
START_TEST(updates_between_the_steps_of_backward)
{
    static const char *const each[] = { "SGD(lr=0.01, momentum=0.9)", "Adafactor(lr=0.01)" };

    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        struct steps s = steps_of(tn_module_new("Sequential(Linear(8, 600), ReLU(), Linear(600, "
                                                "600), ReLU(), Linear(600, 600), ReLU(), "
                                                "Linear(600, 4))"),
                                  "CrossEntropyLoss()", each[i], false);
        static char text[1 << 14];
        int64_t updates = 0;

        for (int k = 0; k < 4; k++)
            both(&s, numbered(TN_SHAPE(3, 8), k), classes(3, 4, k), 1);
        same_states(s.nets[1], s.nets[0]);
        same_rules(&s);
        ck_assert_int_gt(tn_step_print(s.step, text, sizeof text), 0);
        for (const char *at = text; (at = strstr(at, "update: ")) != NULL; at++)
            updates++;
        ck_assert_int_eq(updates, i == 0 ? 3 : 1);
        drop_steps(&s);
    }
}
END_TEST

/* ---- what changes between steps -------------------------------------------------------------- */

START_TEST(changes_of_inputs_modules_and_options)
{
    TN_SCOPE;
    struct steps s = steps_of(tn_module_new(NORMS), "CrossEntropyLoss()", rules[0], false);
    tn_tensor *x = numbered(TN_SHAPE(2, 3, 8, 8), 1), *more = numbered(TN_SHAPE(5, 3, 8, 8), 2);

    both(&s, x, classes(2, 4, 1), 1);
    both(&s, more, classes(5, 4, 1), 1);
    both(&s, x, classes(2, 4, 2), 1);
    ck_assert_int_eq(plans(&s), 2);
    for (int i = 0; i < 2; i++) /* other options of the rule need no other plan */
        ck_ok(tn_optimizer_set(s.rules[i], -1, "momentum", 0.5));
    both(&s, x, classes(2, 4, 3), 1);
    ck_assert_int_eq(plans(&s), 2);
    for (int i = 0; i < 2; i++) /* a layer that does not train: the gradient ends there */
        ck_ok(tn_module_set_requires_grad(tn_module_child(s.nets[i], "0"), false));
    both(&s, x, classes(2, 4, 4), 1);
    ck_assert_int_eq(plans(&s), 1);
    for (int i = 0; i < 2; i++)
        ck_ok(tn_module_train(tn_module_child(s.nets[i], "1"), false));
    both(&s, x, classes(2, 4, 5), 1);
    ck_assert_int_eq(plans(&s), 1);
    same_states(s.nets[1], s.nets[0]);
    same_rules(&s);
    drop_steps(&s);
}
END_TEST

START_TEST(groups_and_parameters_of_the_optimizer)
{
    TN_SCOPE;
    struct steps s = steps_of(tn_module_new(MLP), "CrossEntropyLoss()", "SGD(lr=0.1)", false);
    tn_tensor *x = numbered(TN_SHAPE(4, 6), 1), *parameter;

    for (int i = 0; i < 2; i++) { /* only the last layer, then the first with another rate */
        tn_tensor *last = tn_module_find_parameter(s.nets[i], "4.weight");

        tn_optimizer_drop(s.rules[i]);
        s.rules[i] = tn_optimizer_parse(&last, 1, "SGD(lr=0.1, momentum=0.9)");
        ck_made(s.rules[i]);
    }
    tn_step_drop(s.step);
    s.step = tn_step_new(s.nets[1], s.loss, s.rules[1], NULL);
    both(&s, x, classes(4, 3, 1), 1);
    for (int i = 0; i < 2; i++) {
        parameter = tn_module_find_parameter(s.nets[i], "0.weight");
        ck_ok(tn_optimizer_add_group(s.rules[i], &parameter, 1, "lr=0.01"));
    }
    both(&s, x, classes(4, 3, 2), 1);
    both(&s, x, classes(4, 3, 3), 1);
    ck_assert_int_eq(plans(&s), 1);
    same_states(s.nets[1], s.nets[0]);
    same_rules(&s);
    drop_steps(&s);
}
END_TEST

static tn_status count_step(void *user, tn_optimizer *rule)
{
    (void)rule;
    ++*(int *)user;
    return TN_OK;
}

static tn_tensor *own_loss(tn_module *self, tn_tensor *x)
{
    return loss_of(tn_module_call_child(self, "fc", x));
}

START_TEST(a_module_that_returns_the_loss)
{
    TN_SCOPE;
    tn_module *net = own(own_loss), *other = tn_module_copy(net);
    tn_optimizer *rule = tn_optimizer_new(net, "SGD(lr=0.1)"),
                 *same = tn_optimizer_new(other, "SGD(lr=0.1)");
    tn_step *step = tn_step_new(net, NULL, rule, NULL);
    tn_tensor *x = numbered(TN_SHAPE(2, 3), 1), *loss, *expected;
    int count = 0;

    ck_assert_int_ne(tn_optimizer_hook_step(rule, count_step, 0, &count, NULL), 0);
    for (int i = 0; i < 3; i++) {
        ck_ok(tn_optimizer_zero_grad(same));
        expected = tn_module_call(other, x);
        ck_ok(tn_backward(expected));
        ck_ok(tn_optimizer_step(same));
        ck_ok(tn_step_run(step, &x, 1, &loss, 1));
        ck_same(loss, expected);
    }
    ck_assert_int_eq(count, 3); /* hooks after a step run */
    same_states(net, other);
    ck_assert(tn_tensor_grad(tn_module_find_parameter(net, "fc.weight")) == TN_NONE);
    tn_step_drop(step);
    tn_optimizer_drop(rule);
    tn_optimizer_drop(same);
    tn_module_drop(net);
    tn_module_drop(other);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

static void refused(struct steps *s, tn_tensor *x, tn_tensor *target, const char *why)
{
    tn_tensor *in[2] = { x, target }, *out = x;

    ck_assert_int_ne(tn_step_run(s->step, in, 2, &out, 1), TN_OK);
    ck_assert_ptr_null(out);
    ck_assert_msg(strncmp(tn_error_text(), "tn_step_run: ", 13) == 0 &&
                      strstr(tn_error_text(), why) != NULL,
                  "%s", tn_error_text());
    tn_error_clear();
}

static tn_status read_norm(void *user)
{
    double norm;

    return tn_module_clip_grad_norm(user, 1, 2, false, &norm);
}

static tn_status see_gradient(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)user, (void)gradient, (void)replacement;
    return TN_OK;
}

START_TEST(what_cannot_be_a_plan_is_refused_with_the_reason)
{
    TN_SCOPE;
    struct steps s = steps_of(tn_module_new(MLP), "CrossEntropyLoss()", "SGD(lr=0.1)", false);
    tn_tensor *x = numbered(TN_SHAPE(4, 6), 1), *target = classes(4, 3, 1), *out;
    tn_step_options how = TN_STEP_OPTIONS;
    tn_optimizer *rule = tn_optimizer_new(s.nets[1], "LBFGS()");
    tn_module *mean = tn_module_new("Identity()");
    tn_hook_handle hook;
    tn_step *step;
    int count = 0;

    ck_assert_ptr_null(tn_step_new(s.nets[1], s.loss, rule, NULL));
    ck_assert_str_eq(tn_error_text(), "tn_step_new: optimizer LBFGS: it evaluates the loss itself; "
                                      "expected one that takes a step after backward");
    tn_error_clear();
    tn_optimizer_drop(rule);

    refused(&s, tn_reshape(tn_detach(tn_optimizer_parameter(s.rules[1], 0)), TN_SHAPE(-1, 6)),
            target, "in: input 0: it shares memory with parameter 0 of the optimizer");

    hook = tn_optimizer_hook_step_pre(s.rules[1], count_step, 0, &count, NULL);
    refused(&s, x, target, "optimizer SGD: hooks run before its step");
    ck_assert(tn_hook_remove(hook));

    ck_ok(tn_inference_begin(true));
    refused(&s, x, target, "in inference mode");
    tn_inference_end();
    ck_ok(tn_autocast_begin("cpu", TN_BF16, true));
    refused(&s, x, target, "in a region of autocast");
    tn_autocast_end();

    refused(&s, tn_parameter(numbered(TN_SHAPE(4, 6), 1), true), target,
            "input 0: it requires a gradient");
    hook = tn_tensor_hook(tn_module_find_parameter(s.nets[1], "0.weight"), see_gradient, NULL,
                          NULL);
    ck_assert_int_ne(hook, 0);
    refused(&s, x, target, "a parameter has hooks for its gradient");
    ck_assert(tn_hook_remove(hook));

    ck_ok(tn_module_set_requires_grad(s.nets[1], false));
    refused(&s, x, target, "which require no gradient");
    ck_ok(tn_module_set_requires_grad(s.nets[1], true));

    step = s.step;
    s.step = tn_step_new(s.nets[1], mean, s.rules[1], NULL);
    tn_step_drop(s.step);
    s.step = tn_step_new(s.nets[1], NULL, s.rules[1], NULL);
    ck_assert_int_ne(tn_step_run(s.step, &x, 1, &out, 1), TN_OK);
    ck_assert_msg(strstr(tn_error_text(), "loss: wrong tensor, got 12 elements") != NULL, "%s",
                  tn_error_text());
    tn_step_drop(s.step);
    how.gradients = read_norm;
    how.user = s.nets[1];
    s.step = tn_step_new(s.nets[1], s.loss, s.rules[1], &how);
    refused(&s, x, target, "expected");
    tn_step_drop(s.step);
    s.step = step;

    both(&s, x, target, 1); /* nothing of this has changed the module */
    same_states(s.nets[1], s.nets[0]);
    tn_module_drop(mean);
    drop_steps(&s);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Weights of over 1 MiB each, which would be updated one by one. */
START_TEST(parameters_that_overlap_are_refused_as_by_an_eager_step)
{
    TN_SCOPE;
    enum { SIDE = 600 };
    tn_module *net = tn_module_new("Sequential(Linear(600, 600), Tanh(), Linear(600, 600))");
    tn_tensor *flat = numbered(TN_SHAPE(SIDE * SIDE + SIDE), 1), *out;
    tn_tensor *in[2] = { numbered(TN_SHAPE(2, SIDE), 1), numbered(TN_SHAPE(2, SIDE), 2) };
    tn_module *loss = tn_module_new("MSELoss()");
    tn_optimizer *rule;
    tn_step *step;

    for (int i = 0; i < 2; i++) {
        tn_tensor *weight = tn_narrow(flat, 0, i * SIDE, SIDE * SIDE);

        weight = tn_parameter(tn_reshape(weight, TN_SHAPE(SIDE, SIDE)), true);
        ck_ok(tn_module_set(tn_module_find(net, i == 0 ? "0" : "2"), "weight", weight));
    }
    rule = tn_optimizer_new(net, "SGD(lr=0.1)");
    step = tn_step_new(net, loss, rule, NULL);
    ck_made(step);
    ck_assert_int_ne(tn_step_run(step, in, 2, &out, 1), TN_OK);
    ck_assert_msg(strstr(tn_error_text(), "share memory, and one is written") != NULL, "%s",
                  tn_error_text());
    tn_error_clear();
    tn_step_drop(step);
    tn_optimizer_drop(rule);
    tn_module_drop(loss);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_step_needs_less_memory_than_an_eager_one)
{
    TN_SCOPE;
    struct steps s = steps_of(tn_module_new("Sequential(Linear(64, 600), ReLU(), Dropout(0.5), "
                                            "Linear(600, 600), ReLU(), Linear(600, 600), Tanh(), "
                                            "Linear(600, 8))"),
                              "CrossEntropyLoss()", "SGD(lr=0.01)", false);
    tn_tensor *in[2] = { numbered(TN_SHAPE(32, 64), 1), classes(32, 8, 1) }, *loss;
    const tn_device *device = tn_tensor_device(in[0]);
    tn_memory_stats stats;
    int64_t nodes = tn_grad_node_count(), peak[2] = { 0 }, before;

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) {
            TN_SCOPE;
            tn_tensor *y;

            ck_ok(tn_optimizer_zero_grad(s.rules[0]));
            ck_ok(tn_device_memory(device, &stats));
            before = stats.live;
            ck_ok(tn_device_reset_peak(device));
            if (k == 0) {
                eager_step(&s, in[0], in[1], &y);
            } else {
                if (i == 1) { /* the slab, which stays, counts too */
                    tn_plan_stats plan;

                    ck_ok(tn_step_describe(s.step, &plan));
                    before -= plan.bytes;
                    ck_assert_int_le(plan.bytes, plan.bytes_apart / 2);
                }
                ck_ok(tn_step_run(s.step, in, 2, &loss, 1));
            }
            ck_ok(tn_device_memory(device, &stats));
            peak[k] = stats.peak - before;
        }
    ck_assert_msg(peak[1] * 10 <= peak[0] * 8, "%lld bytes, eager %lld", (long long)peak[1],
                  (long long)peak[0]);
    ck_assert_int_le(nodes, tn_grad_node_count());
    drop_steps(&s);
}
END_TEST

struct failing {
    tn_module *net, *loss;
    tn_tensor *in[2];
};

static bool make_and_run(void *user)
{
    TN_SCOPE;
    struct failing *f = user;
    tn_step_options how = { sizeof how, 1, clip, f->net };
    tn_optimizer *rule = tn_optimizer_new(f->net, "SGD(lr=0, momentum=0.9)");
    tn_step *step = rule != NULL ? tn_step_new(f->net, f->loss, rule, &how) : NULL;
    tn_tensor *out[2];
    bool well = step != NULL;

    for (int i = 0; i < 2 && well; i++)
        well = tn_step_run(step, f->in, 2, out, 2) == TN_OK;
    tn_step_drop(step);
    tn_optimizer_drop(rule);
    return well;
}

START_TEST(each_allocation_that_fails_is_an_error)
{
    TN_SCOPE;
    struct failing f = { tn_module_new("Sequential(Linear(3, 4), Dropout(0.5), Sigmoid())"),
                         tn_module_new("MSELoss()"),
                         { numbered(TN_SHAPE(2, 3), 1), numbered(TN_SHAPE(2, 4), 2) } };
    int64_t nodes = tn_grad_node_count();

    ck_assert(make_and_run(&f));
    ck_assert_int_gt(fail_each_allocation(make_and_run, &f), 100);
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    tn_module_drop(f.net);
    tn_module_drop(f.loss);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_hundred_steps_have_the_bits_of_eager_ones,
                                   gradients_that_are_clipped,
                                   updates_between_the_steps_of_backward,
                                   changes_of_inputs_modules_and_options,
                                   groups_and_parameters_of_the_optimizer,
                                   a_module_that_returns_the_loss,
                                   what_cannot_be_a_plan_is_refused_with_the_reason,
                                   parameters_that_overlap_are_refused_as_by_an_eager_step,
                                   a_step_needs_less_memory_than_an_eager_one,
                                   each_allocation_that_fails_is_an_error,
                                   NULL };
    return suite_run("plan whole", tests);
}
