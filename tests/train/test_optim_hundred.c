/* SPDX-License-Identifier: MIT
 *
 * All optimizers but LBFGS: 100 steps with two groups against PyTorch's numbers, on every device,
 * capturable or not, and with a state that is saved half way; their options and what they
 * refuse. */
#include "tests/base/suite.h"

#include <math.h>

#include "optim_hundred.h"

enum { PARAMETERS = 3, HALF = 50, STATES = 16 };

/* Two matrices and a vector; Muon takes only the matrices. */
static const int64_t shapes[PARAMETERS][2] = { { 2, 3 }, { 3, 0 }, { 3, 2 } };
static const int64_t dims[PARAMETERS] = { 2, 1, 2 };

/* The numbers that make_optim_hundred.py uses, too. */
static double next(uint32_t *state)
{
    *state = (uint32_t)(((uint64_t)*state * 1103515245u + 12345u) % (1u << 31));
    return (double)*state / (1u << 30) - 1;
}

static tn_tensor *numbers(uint32_t *state, int which, tn_dtype dtype, const tn_device *device)
{
    tn_ints shape = { shapes[which], dims[which] };
    int64_t count = dims[which] == 2 ? shapes[which][0] * shapes[which][1] : shapes[which][0];
    double values[RULE_SIZE];
    tn_tensor *tensor;

    for (int64_t i = 0; i < count; i++)
        values[i] = next(state);
    tensor = tn_copy_(tn_tensor_empty(shape, dtype, device), tn_tensor_from(values, TN_F64, shape));
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    return tensor;
}

struct training {
    tn_optimizer *optimizer;
    tn_tensor *parameter[PARAMETERS];
    int which[PARAMETERS]; /* the index of the shape */
    int count;
    uint32_t numbers;
};

static bool has_option(const char *name, const char *option)
{
    return strcmp(option, "capturable") != 0 ||
           (strcmp(name, "Adafactor") != 0 && strcmp(name, "Muon") != 0);
}

static struct training begin(int64_t rule, bool capturable, tn_dtype dtype, const tn_device *device)
{
    struct training t = { .numbers = 1 };
    char spec[256];

    for (int i = 0; i < PARAMETERS; i++) {
        if (strcmp(rules[rule].name, "Muon") == 0 && dims[i] != 2)
            continue;
        t.which[t.count] = i;
        t.parameter[t.count++] = tn_parameter(numbers(&t.numbers, i, dtype, device), true);
    }
    snprintf(spec, sizeof spec, "%s(%s%s%s)", rules[rule].name, rules[rule].options,
             capturable && rules[rule].options[0] != '\0' ? ", " : "",
             capturable ? "capturable=True" : "");
    t.optimizer = tn_optimizer_parse(t.parameter, t.count - 1, spec);
    ck_assert_msg(t.optimizer != NULL, "%s: %s", spec, tn_error_text());
    ck_assert_msg(tn_optimizer_add_group(t.optimizer, t.parameter + t.count - 1, 1,
                                         rules[rule].other) == TN_OK,
                  "%s: %s", rules[rule].other, tn_error_text());
    return t;
}

static void step(struct training *t, int64_t rule)
{
    TN_SCOPE;
    for (int i = 0; i < t->count; i++) {
        tn_tensor *p = t->parameter[i];

        ck_assert_int_eq(tn_tensor_set_grad(p, numbers(&t->numbers, t->which[i], tn_tensor_dtype(p),
                                                       tn_tensor_device(p))),
                         TN_OK);
    }
    ck_assert_msg(tn_optimizer_step(t->optimizer) == TN_OK, "%s: %s", rules[rule].name,
                  tn_error_text());
}

/* The elements of all parameters, in their order. Returns how many. */
static int values_of(const struct training *t, double *out)
{
    TN_SCOPE;
    int count = 0;

    for (int i = 0; i < t->count; i++) {
        tn_tensor *p = tn_detach(t->parameter[i]);
        size_t n = (size_t)tn_tensor_numel(p);

        p = tn_copy_(tn_tensor_empty(tn_tensor_shape(p), TN_F64, tn_device_find("cpu")), p);
        ck_assert_msg(p != NULL && tn_tensor_copy_out(p, out + count, n * sizeof *out) == TN_OK,
                      "%s", tn_error_text());
        count += (int)n;
    }
    return count;
}

static void compare(const struct training *t, int64_t rule, int row, double tolerance,
                    const char *what)
{
    double got[RULE_SIZE];
    int count = values_of(t, got);

    for (int i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - rules[rule].values[row][i]) <= tolerance,
                      "%s(%s) %s, step %d, element %d: %.17g is not %.17g", rules[rule].name,
                      rules[rule].options, what, rule_at[row], i, got[i],
                      rules[rule].values[row][i]);
}

static void follow(int64_t rule, bool capturable, tn_dtype dtype, const tn_device *device,
                   double tolerance)
{
    TN_SCOPE;
    struct training t = begin(rule, capturable, dtype, device);
    int row = 0;
    char what[64];

    snprintf(what, sizeof what, "%s, %s%s", tn_device_name(device), tn_dtype_name(dtype),
             capturable ? ", capturable" : "");
    for (int i = 1; i <= RULE_STEPS; i++) {
        step(&t, rule);
        if (i == rule_at[row])
            compare(&t, rule, row++, tolerance, what);
    }
    ck_assert_int_eq(row, RULE_ROWS);
    tn_optimizer_drop(t.optimizer);
}

/* Muon rounds to bfloat16: a difference in the last place of a momentum can become a difference of
 * 1/256 in elements of a step, and grows in the iterations of Newton-Schulz. */
static double tolerance_of(int64_t rule, tn_dtype dtype)
{
    if (strcmp(rules[rule].name, "Muon") == 0)
        return dtype == TN_F64 ? 2e-5 : 5e-3;
    return dtype == TN_F64 ? 1e-10 : 3e-4;
}

static bool has_dtype(const tn_device *device, tn_dtype dtype)
{
    tn_device_info info = { .head.size = sizeof info };

    return tn_device_describe(device, &info) == TN_OK && (info.dtypes & TN_BIT(dtype)) != 0;
}

START_TEST(rules_follow_pytorch_on_every_device)
{
    static const tn_dtype dtypes[] = { TN_F64, TN_F32 };
    int64_t made = 0;

    for (int64_t d = 0; d < tn_device_count(); d++)
        for (int k = 0; k < 2; k++) {
            const tn_device *device = tn_device_at(d);

            if (!tn_device_has_memory(device) || !has_dtype(device, dtypes[k]))
                continue;
            for (int64_t i = 0; i < tn__countof(rules); i++) {
                follow(i, false, dtypes[k], device, tolerance_of(i, dtypes[k]));
                if (has_option(rules[i].name, "capturable"))
                    follow(i, true, dtypes[k], device, tolerance_of(i, dtypes[k]));
                made++;
            }
        }
    ck_assert_int_ge(made, 2 * tn__countof(rules));
}
END_TEST

/* An eps of 1e-8 and squares of small gradients are 0 in float16, as in PyTorch. */
static bool fits_float16(const char *name)
{
    static const char *const names[] = { "Rprop", "ASGD", "Lion", "Muon" };

    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Parameters and states in float16 or bfloat16 round in every step, so only the first steps are
 * compared. */
START_TEST(short_floats_follow_for_some_steps)
{
    static const tn_dtype dtypes[] = { TN_F16, TN_BF16 };

    for (int64_t i = 0; i < tn__countof(rules); i++)
        for (int k = 0; k < 4; k++) {
            TN_SCOPE;
            const bool capturable = k >= 2;
            const tn_dtype dtype = dtypes[k % 2];
            struct training t;

            if ((capturable && !has_option(rules[i].name, "capturable")) ||
                (dtype == TN_F16 && !fits_float16(rules[i].name)))
                continue;
            t = begin(i, capturable, dtype, tn_device_find("cpu"));
            for (int n = 1; n <= rule_at[1]; n++) {
                step(&t, i);
                if (n == rule_at[0])
                    compare(&t, i, 0, dtype == TN_F16 ? 4e-3 : 2e-2, tn_dtype_name(dtype));
            }
            compare(&t, i, 1, dtype == TN_F16 ? 2e-2 : 1e-1, tn_dtype_name(dtype));
            tn_optimizer_drop(t.optimizer);
        }
}
END_TEST

/* ---- state ---- */

/* Gives a fresh optimizer the parameters, the states by name and the numbers of steps of `from`. */
static struct training again(const struct training *from, int64_t rule, bool capturable)
{
    struct training t = begin(rule, capturable, TN_F64, tn_tensor_device(from->parameter[0]));

    t.numbers = from->numbers;
    for (int i = 0; i < t.count; i++) {
        int64_t count = tn_optimizer_state_count(from->optimizer, i);

        tn_grad_begin(false);
        ck_assert_ptr_nonnull(tn_copy_(t.parameter[i], from->parameter[i]));
        tn_grad_end();
        for (int64_t k = 0; k < count; k++) {
            const char *name = tn_optimizer_state_name(from->optimizer, i, k);
            tn_tensor *copy = tn_clone(tn_optimizer_state(from->optimizer, i, name));

            ck_assert_int_eq(tn_optimizer_set_state(t.optimizer, i, name, copy), TN_OK);
        }
        ck_assert_int_eq(
            tn_optimizer_set_steps(t.optimizer, i, tn_optimizer_steps(from->optimizer, i)), TN_OK);
    }
    return t;
}

/* The same through the state of the whole optimizer. */
static struct training loaded(const struct training *from, int64_t rule, bool capturable)
{
    struct training t = begin(rule, capturable, TN_F64, tn_tensor_device(from->parameter[0]));
    tn_state *state = tn_optimizer_save_state(from->optimizer);

    ck_assert_msg(state != NULL, "%s", tn_error_text());
    t.numbers = from->numbers;
    tn_grad_begin(false);
    for (int i = 0; i < t.count; i++)
        ck_assert_ptr_nonnull(tn_copy_(t.parameter[i], from->parameter[i]));
    tn_grad_end();
    ck_assert_msg(tn_optimizer_load_state(t.optimizer, state) == TN_OK, "%s: %s", rules[rule].name,
                  tn_error_text());
    tn_state_drop(state);
    return t;
}

START_TEST(a_state_that_is_saved_half_way_continues_with_the_same_bits)
{
    for (int64_t i = 0; i < tn__countof(rules); i++)
        for (int way = 0; way < 4; way++) {
            TN_SCOPE;
            bool capturable = way >= 2;
            double whole[RULE_SIZE], other[RULE_SIZE];
            struct training t, fresh;

            if (capturable && !has_option(rules[i].name, "capturable"))
                continue;
            t = begin(i, capturable, TN_F64, tn_device_find("cpu"));
            for (int k = 0; k < HALF; k++)
                step(&t, i);
            fresh = way % 2 == 0 ? again(&t, i, capturable) : loaded(&t, i, capturable);
            for (int k = HALF; k < RULE_STEPS; k++) {
                step(&t, i);
                step(&fresh, i);
            }
            ck_assert_int_eq(values_of(&t, whole), values_of(&fresh, other));
            for (int k = 0; k < (int)(t.count == 3 ? RULE_SIZE : RULE_SIZE - 3); k++)
                ck_assert_msg(whole[k] == other[k], "%s(%s), way %d, element %d: %.17g, %.17g",
                              rules[i].name, rules[i].options, way, k, whole[k], other[k]);
            tn_optimizer_drop(t.optimizer);
            tn_optimizer_drop(fresh.optimizer);
        }
}
END_TEST

/* The names of the states of a matrix, in their order; those that PyTorch gives, except for "step",
 * which tn_optimizer_steps returns. */
START_TEST(states_have_the_names_of_pytorch)
{
    static const struct {
        const char *spec, *names;
    } all[] = {
        { "NAdam()", "exp_avg exp_avg_sq mu_product " },
        { "RAdam()", "exp_avg exp_avg_sq " },
        { "Adagrad()", "sum " },
        { "Adadelta()", "square_avg acc_delta " },
        { "Adamax()", "exp_avg exp_inf " },
        { "RMSprop()", "square_avg " },
        { "RMSprop(momentum=0.5)", "square_avg momentum_buffer " },
        { "RMSprop(centered=True)", "square_avg grad_avg " },
        { "RMSprop(momentum=0.5, centered=True)", "square_avg momentum_buffer grad_avg " },
        { "Rprop()", "prev step_size " },
        { "ASGD()", "ax eta mu " },
        { "Lion()", "exp_avg " },
        { "Adafactor()", "row_var col_var " },
        { "Muon()", "momentum_buffer " },
        { "Adamax(capturable=True)", "exp_avg exp_inf lr step " },
        { "RMSprop(capturable=True)", "square_avg lr " },
    };

    for (int64_t i = 0; i < tn__countof(all); i++) {
        TN_SCOPE;
        char names[128] = "";
        uint32_t state = 1;
        tn_tensor *p = tn_parameter(numbers(&state, 0, TN_F64, tn_device_find("cpu")), true);
        tn_optimizer *optimizer = tn_optimizer_parse(&p, 1, all[i].spec);

        ck_assert_msg(optimizer != NULL, "%s", tn_error_text());
        tn_tensor_set_grad(p, numbers(&state, 0, TN_F64, tn_device_find("cpu")));
        ck_assert_msg(tn_optimizer_step(optimizer) == TN_OK, "%s", tn_error_text());
        for (int64_t k = 0; k < tn_optimizer_state_count(optimizer, 0); k++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s ",
                     tn_optimizer_state_name(optimizer, 0, k));
        ck_assert_msg(strcmp(names, all[i].names) == 0, "%s: %s", all[i].spec, names);
        tn_optimizer_drop(optimizer);
    }
}
END_TEST

/* Each parameter has its own number of steps, which does not count the steps that it missed. */
START_TEST(parameters_that_missed_steps_have_numbers_of_their_own)
{
    static const char *const specs[] = { "NAdam()", "ASGD(lr=0.1, lambd=0.5, t0=1)", "RAdam()" };

    for (int64_t i = 0; i < tn__countof(specs); i++)
        for (int capturable = 0; capturable < 2; capturable++) {
            TN_SCOPE;
            const tn_device *cpu = tn_device_find("cpu");
            uint32_t a = 1, b = 1;
            char spec[80];
            double got[2][6];
            tn_tensor *both[2] = { tn_parameter(numbers(&a, 0, TN_F64, cpu), true),
                                   tn_parameter(numbers(&b, 0, TN_F64, cpu), true) };
            tn_optimizer *optimizer;

            snprintf(spec, sizeof spec, "%.*s%s)", (int)strlen(specs[i]) - 1, specs[i],
                     !capturable             ? ""
                     : strchr(specs[i], '=') ? ", capturable=True"
                                             : "capturable=True");
            optimizer = tn_optimizer_parse(both, 2, spec);
            ck_assert_msg(optimizer != NULL, "%s: %s", spec, tn_error_text());
            for (int k = 0; k < 8; k++) { /* the second gets the same gradients, two steps later */
                tn_tensor_set_grad(both[0], k < 6 ? numbers(&a, 0, TN_F64, cpu) : TN_NONE);
                tn_tensor_set_grad(both[1], k >= 2 ? numbers(&b, 0, TN_F64, cpu) : TN_NONE);
                ck_assert_msg(tn_optimizer_step(optimizer) == TN_OK, "%s", tn_error_text());
            }
            for (int k = 0; k < 2; k++)
                ck_assert_int_eq(tn_tensor_copy_out(both[k], got[k], sizeof got[k]), TN_OK);
            for (int k = 0; k < 6; k++)
                ck_assert_msg(got[0][k] == got[1][k], "%s: %.17g, %.17g", spec, got[0][k],
                              got[1][k]);
            tn_optimizer_drop(optimizer);
        }
}
END_TEST

/* ---- options ---- */

/* Options by position come in PyTorch's order. */
START_TEST(options_have_the_order_and_the_defaults_of_pytorch)
{
    static const struct {
        const char *spec, *printed;
    } all[] = {
        { "NAdam()", "NAdam(lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.0, "
                     "momentum_decay=0.004, decoupled_weight_decay=False, maximize=False, "
                     "capturable=False)" },
        { "NAdam(1, (0.5, 0.25), 2, 3, 4, True)",
          "NAdam(lr=1.0, betas=(0.5, 0.25), eps=2.0, weight_decay=3.0, momentum_decay=4.0, "
          "decoupled_weight_decay=True, maximize=False, capturable=False)" },
        { "RAdam(1, (0.5, 0.25), 2, 3, True)",
          "RAdam(lr=1.0, betas=(0.5, 0.25), eps=2.0, weight_decay=3.0, "
          "decoupled_weight_decay=True, maximize=False, capturable=False)" },
        { "Adagrad(1, 2, 3, 4, 5)",
          "Adagrad(lr=1.0, lr_decay=2.0, weight_decay=3.0, initial_accumulator_value=4.0, eps=5.0, "
          "maximize=False, capturable=False)" },
        { "Adadelta(1, 0.5, 3, 4)", "Adadelta(lr=1.0, rho=0.5, eps=3.0, weight_decay=4.0, "
                                    "maximize=False, capturable=False)" },
        { "Adamax(1, (0.5, 0.25), 2, 3)",
          "Adamax(lr=1.0, betas=(0.5, 0.25), eps=2.0, weight_decay=3.0, maximize=False, "
          "capturable=False)" },
        { "RMSprop(1, 2, 3, 4, 5, True, True)",
          "RMSprop(lr=1.0, alpha=2.0, eps=3.0, weight_decay=4.0, momentum=5.0, centered=True, "
          "capturable=True, maximize=False)" },
        { "Rprop(1, (0.5, 2), (3, 4))", "Rprop(lr=1.0, etas=(0.5, 2.0), step_sizes=(3.0, 4.0), "
                                        "maximize=False, capturable=False)" },
        { "ASGD(1, 2, 3, 4, 5)", "ASGD(lr=1.0, lambd=2.0, alpha=3.0, t0=4.0, weight_decay=5.0, "
                                 "maximize=False, capturable=False)" },
        { "Lion()", "Lion(lr=0.0001, betas=(0.9, 0.99), weight_decay=0.0, maximize=False, "
                    "capturable=False)" },
        { "Adafactor(1, -2, (None, 4), 5, 6)",
          "Adafactor(lr=1.0, beta2_decay=-2.0, eps=(None, 4.0), d=5.0, weight_decay=6.0, "
          "maximize=False)" },
        { "Muon(1, 2, 3, False, (4, 5, 6), 7, 8, 'original')",
          "Muon(lr=1.0, weight_decay=2.0, momentum=3.0, nesterov=False, "
          "ns_coefficients=(4.0, 5.0, 6.0), eps=7.0, ns_steps=8, adjust_lr_fn='original')" },
    };

    for (int64_t i = 0; i < tn__countof(all); i++) {
        TN_SCOPE;
        uint32_t state = 1;
        char text[300];
        tn_tensor *p = tn_parameter(numbers(&state, 0, TN_F64, tn_device_find("cpu")), true);
        tn_optimizer *optimizer = tn_optimizer_parse(&p, 1, all[i].spec);

        ck_assert_msg(optimizer != NULL, "%s: %s", all[i].spec, tn_error_text());
        ck_assert_int_gt(tn_optimizer_spec(optimizer, text, sizeof text), 0);
        ck_assert_str_eq(text, all[i].printed);
        tn_optimizer_drop(optimizer);
        optimizer = tn_optimizer_parse(&p, 1, text);
        ck_assert_msg(optimizer != NULL, "%s: %s", text, tn_error_text());
        tn_optimizer_drop(optimizer);
    }
}
END_TEST

START_TEST(what_pytorch_refuses_is_refused_with_its_words)
{
    static const struct {
        const char *spec, *words;
        tn_status code;
    } wrong[] = {
        { "NAdam(lr=-1)", "NAdam: Invalid learning rate: -1.0; expected 0 or more", TN_ERR_VALUE },
        { "NAdam(eps=-1)", "NAdam: Invalid epsilon value: -1.0", TN_ERR_VALUE },
        { "NAdam(betas=(1, 0.9))", "Invalid beta parameter at index 0: 1.0", TN_ERR_VALUE },
        { "NAdam(betas=(0.9, -0.5))", "Invalid beta parameter at index 1: -0.5", TN_ERR_VALUE },
        { "NAdam(betas=0.9)", "NAdam: betas: wrong count, got 1; expected two", TN_ERR_VALUE },
        { "NAdam(weight_decay=-1)", "Invalid weight_decay value: -1.0", TN_ERR_VALUE },
        { "NAdam(momentum_decay=-1)", "Invalid momentum_decay value: -1.0", TN_ERR_VALUE },
        { "NAdam(lr=nan)", "Invalid learning rate: nan", TN_ERR_VALUE },
        { "RAdam(lr=-1)", "RAdam: Invalid learning rate: -1.0", TN_ERR_VALUE },
        { "RAdam(betas=(0.9, 1))", "Invalid beta parameter at index 1: 1.0", TN_ERR_VALUE },
        { "Adagrad(lr_decay=-1)", "Adagrad: Invalid lr_decay value: -1.0", TN_ERR_VALUE },
        { "Adagrad(initial_accumulator_value=-1)", "Invalid initial_accumulator_value value: -1.0",
          TN_ERR_VALUE },
        { "Adagrad(eps=-1)", "Invalid epsilon value: -1.0", TN_ERR_VALUE },
        { "Adadelta(rho=1.5)", "Adadelta: Invalid rho value: 1.5", TN_ERR_VALUE },
        { "Adadelta(rho=-1)", "Invalid rho value: -1.0", TN_ERR_VALUE },
        { "Adamax(eps=-1)", "Adamax: Invalid epsilon value: -1.0", TN_ERR_VALUE },
        { "RMSprop(momentum=-1)", "RMSprop: Invalid momentum value: -1.0", TN_ERR_VALUE },
        { "RMSprop(alpha=-1)", "RMSprop: Invalid alpha value: -1.0", TN_ERR_VALUE },
        { "Rprop(lr=-1)", "Rprop: Invalid learning rate: -1.0", TN_ERR_VALUE },
        { "Rprop(etas=(1, 1.2))", "Rprop: Invalid eta values: 1.0, 1.2", TN_ERR_VALUE },
        { "Rprop(etas=(0.5, 1))", "Rprop: Invalid eta values: 0.5, 1.0", TN_ERR_VALUE },
        { "Rprop(step_sizes=(1, 2, 3))", "Rprop: step_sizes: wrong count, got 3", TN_ERR_VALUE },
        { "ASGD(lambd=-1)", "ASGD: Invalid lambd value: -1.0", TN_ERR_VALUE },
        { "ASGD(alpha=-1)", "ASGD: Invalid alpha value: -1.0", TN_ERR_VALUE },
        { "ASGD(weight_decay=-1)", "ASGD: Invalid weight_decay value: -1.0", TN_ERR_VALUE },
        { "Lion(betas=(0.9, 1))", "Lion: Invalid beta parameter at index 1: 1.0", TN_ERR_VALUE },
        { "Adafactor(lr=-1)", "Adafactor: Learning rate should be >= 0 but is: -1.0",
          TN_ERR_VALUE },
        { "Adafactor(beta2_decay=1)", "beta2_decay should be <= 0 but is: 1.0", TN_ERR_VALUE },
        { "Adafactor(eps=(-1, 1))", "epsilon1 should be >= 0 but is: -1.0", TN_ERR_VALUE },
        { "Adafactor(eps=(None, -1))", "epsilon2 should be >= 0 but is: -1.0", TN_ERR_VALUE },
        { "Adafactor(eps=None)", "Adafactor: eps: wrong count", TN_ERR_VALUE },
        { "Adafactor(d=0.5)", "Clipping threshold d should be >= 1 but is: 0.5", TN_ERR_VALUE },
        { "Adafactor(weight_decay=-1)", "weight_decay should be >= 0 but is: -1.0", TN_ERR_VALUE },
        { "Muon(lr=-1)", "Muon: Learning rate should be >= 0 but is: -1.0", TN_ERR_VALUE },
        { "Muon(momentum=-1)", "Muon: momentum should be >= 0 but is: -1.0", TN_ERR_VALUE },
        { "Muon(weight_decay=-1)", "Muon: weight decay should be >= 0 but is: -1.0", TN_ERR_VALUE },
        { "Muon(adjust_lr_fn='other')", "Adjust learning rate function other is not supported",
          TN_ERR_VALUE },
        { "Muon(ns_steps=100)", "ns_steps: out of range, got 100", TN_ERR_VALUE },
        { "Muon(ns_coefficients=(1, 2))", "ns_coefficients: wrong count, got 2; expected three",
          TN_ERR_VALUE },
        { "NAdam(foreach=True)", "foreach", TN_ERR_KEY },
        { "Adagrad(differentiable=True)", "differentiable", TN_ERR_KEY },
        { "Rprop(weight_decay=1)", "weight_decay", TN_ERR_KEY },
        { "NAdam(betas=(None, 0.9))", "betas", TN_ERR_TYPE },
    };

    for (int64_t i = 0; i < tn__countof(wrong); i++) {
        TN_SCOPE;
        uint32_t state = 1;
        tn_tensor *p = tn_parameter(numbers(&state, 0, TN_F64, tn_device_find("cpu")), true);

        ck_assert_msg(tn_optimizer_parse(&p, 1, wrong[i].spec) == NULL, "%s was taken",
                      wrong[i].spec);
        expect_failure(wrong[i].code, wrong[i].words);
    }
}
END_TEST

START_TEST(muon_takes_only_matrices)
{
    TN_SCOPE;
    uint32_t state = 1;
    tn_tensor *p = tn_parameter(numbers(&state, 1, TN_F64, tn_device_find("cpu")), true);
    tn_optimizer *optimizer = tn_optimizer_parse(&p, 1, "Muon()");

    tn_tensor_set_grad(p, numbers(&state, 1, TN_F64, tn_device_find("cpu")));
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "Muon only supports 2D parameters: parameter 0: wrong number of "
                                 "dimensions, got 1; expected 2");
    tn_optimizer_drop(optimizer);
}
END_TEST

/* A failed step changes neither the number of steps nor the product of NAdam. */
START_TEST(a_step_that_fails_leaves_the_numbers)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    uint32_t state = 1;
    tn_tensor *p = tn_parameter(numbers(&state, 0, TN_F64, cpu), true);
    tn_optimizer *optimizer = tn_optimizer_parse(&p, 1, "NAdam(capturable=True)");
    double product, steps;

    tn_tensor_set_grad(p, numbers(&state, 0, TN_F64, cpu));
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    product = tn_tensor_item(tn_optimizer_state(optimizer, 0, "mu_product"));
    steps = tn_tensor_item(tn_optimizer_state(optimizer, 0, "step"));
    ck_assert_double_eq(steps, 1);
    ck_assert_int_eq(tn_optimizer_set_state(optimizer, 0, "exp_avg",
                                            tn_tensor_full(TN_SHAPE(5, 1), 0, TN_F64, cpu)),
                     TN_OK);
    ck_assert_int_ne(tn_optimizer_step(optimizer), TN_OK);
    tn_error_clear();
    ck_assert_double_eq(tn_tensor_item(tn_optimizer_state(optimizer, 0, "mu_product")), product);
    ck_assert_double_eq(tn_tensor_item(tn_optimizer_state(optimizer, 0, "step")), steps);
    ck_assert_int_eq(tn_optimizer_steps(optimizer, 0), 1);
    tn_optimizer_drop(optimizer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rules_follow_pytorch_on_every_device,
        short_floats_follow_for_some_steps,
        a_state_that_is_saved_half_way_continues_with_the_same_bits,
        states_have_the_names_of_pytorch,
        parameters_that_missed_steps_have_numbers_of_their_own,
        options_have_the_order_and_the_defaults_of_pytorch,
        what_pytorch_refuses_is_refused_with_its_words,
        muon_takes_only_matrices,
        a_step_that_fails_leaves_the_numbers,
        NULL,
    };
    return suite_run("optim-hundred", tests);
}
