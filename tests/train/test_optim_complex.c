/* SPDX-License-Identifier: MIT
 *
 * Complex parameters: 100 steps of each rule with two groups against PyTorch's numbers, capturable
 * or not, with a state that is saved half way; complex64 on every device; the optimizers that
 * refuse them. */
#include "tests/base/suite.h"

#include <math.h>

#include "optim_complex.h"

enum { PARAMETERS = 2, HALF = 50 };

static const int64_t shapes[PARAMETERS][2] = { { 2, 3 }, { 3, 0 } };
static const int64_t dims[PARAMETERS] = { 2, 1 };
static const int64_t counts[PARAMETERS] = { 6, 3 };

/* The numbers that make_optim_hundred.py uses, too. */
static double next(uint32_t *state)
{
    *state = (uint32_t)(((uint64_t)*state * 1103515245u + 12345u) % (1u << 31));
    return (double)*state / (1u << 30) - 1;
}

static tn_tensor *numbers(uint32_t *state, int which, tn_dtype dtype, const tn_device *device)
{
    tn_ints shape = { shapes[which], dims[which] };
    double values[COMPLEX_SIZE];
    tn_tensor *tensor;

    for (int64_t i = 0; i < 2 * counts[which]; i++)
        values[i] = next(state);
    tensor = tn_copy_(tn_tensor_empty(shape, dtype, device),
                      tn_tensor_from(values, TN_C128, shape));
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    return tensor;
}

struct training {
    tn_optimizer *optimizer;
    tn_tensor *parameter[PARAMETERS];
    uint32_t numbers;
};

static struct training begin(int64_t rule, bool capturable, tn_dtype dtype, const tn_device *device)
{
    struct training t = { .numbers = 1 };
    const char *options = complex_rules[rule].options;
    char spec[256];

    for (int i = 0; i < PARAMETERS; i++)
        t.parameter[i] = tn_parameter(numbers(&t.numbers, i, dtype, device), true);
    snprintf(spec, sizeof spec, "%s(%s%s%s)", complex_rules[rule].name, options,
             capturable && options[0] != '\0' ? ", " : "", capturable ? "capturable=True" : "");
    t.optimizer = tn_optimizer_parse(t.parameter, 1, spec);
    ck_assert_msg(t.optimizer != NULL, "%s: %s", spec, tn_error_text());
    ck_assert_msg(
        tn_optimizer_add_group(t.optimizer, t.parameter + 1, 1, complex_rules[rule].other) == TN_OK,
        "%s: %s", complex_rules[rule].other, tn_error_text());
    return t;
}

static void step(struct training *t, int64_t rule)
{
    TN_SCOPE;
    for (int i = 0; i < PARAMETERS; i++) {
        tn_tensor *p = t->parameter[i];
        tn_tensor *gradient = numbers(&t->numbers, i, tn_tensor_dtype(p), tn_tensor_device(p));

        ck_assert_int_eq(tn_tensor_set_grad(p, gradient), TN_OK);
    }
    ck_assert_msg(tn_optimizer_step(t->optimizer) == TN_OK, "%s: %s", complex_rules[rule].name,
                  tn_error_text());
}

static void compare(const struct training *t, int64_t rule, int row, double tolerance,
                    const char *what)
{
    TN_SCOPE;
    const double *expected = complex_rules[rule].values[row];
    int at = 0;

    for (int i = 0; i < PARAMETERS; i++) {
        double got[COMPLEX_SIZE];
        tn_tensor *p = tn_detach(t->parameter[i]);

        p = tn_copy_(tn_tensor_empty(tn_tensor_shape(p), TN_C128, tn_device_find("cpu")), p);
        ck_assert_msg(
            p != NULL && tn_tensor_copy_out(p, got, (size_t)(2 * counts[i]) * sizeof *got) == TN_OK,
            "%s", tn_error_text());
        for (int k = 0; k < 2 * counts[i]; k++, at++)
            ck_assert_msg(fabs(got[k] - expected[at]) <= tolerance,
                          "%s(%s) %s, step %d, number %d: %.17g is not %.17g",
                          complex_rules[rule].name, complex_rules[rule].options, what,
                          complex_at[row], at, got[k], expected[at]);
    }
    ck_assert_int_eq(at, COMPLEX_SIZE);
}

/* Continues in a new optimizer with new parameters, from the state of the whole optimizer. */
static void reload(struct training *t, int64_t rule, bool capturable)
{
    const tn_device *device = tn_tensor_device(t->parameter[0]);
    struct training fresh = begin(rule, capturable, tn_tensor_dtype(t->parameter[0]), device);
    tn_state *state = tn_optimizer_save_state(t->optimizer);

    ck_assert_msg(state != NULL, "%s", tn_error_text());
    fresh.numbers = t->numbers;
    tn_grad_begin(false);
    for (int i = 0; i < PARAMETERS; i++)
        ck_assert_ptr_nonnull(tn_copy_(fresh.parameter[i], t->parameter[i]));
    tn_grad_end();
    ck_assert_msg(tn_optimizer_load_state(fresh.optimizer, state) == TN_OK, "%s: %s",
                  complex_rules[rule].name, tn_error_text());
    tn_state_drop(state);
    tn_optimizer_drop(t->optimizer);
    *t = fresh;
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
    for (int i = 1; i <= COMPLEX_STEPS; i++) {
        step(&t, rule);
        if (i == HALF)
            reload(&t, rule, capturable);
        if (i == complex_at[row])
            compare(&t, rule, row++, tolerance, what);
    }
    ck_assert_int_eq(row, COMPLEX_ROWS);
    for (int64_t i = 0; i < tn_optimizer_state_count(t.optimizer, 0); i++) {
        tn_tensor *state = tn_optimizer_state(t.optimizer, 0,
                                              tn_optimizer_state_name(t.optimizer, 0, i));

        /* As PyTorch's: like the parameter, but for the numbers that all elements share. */
        if (tn_tensor_ndim(state) != 0)
            ck_assert_int_eq(tn_tensor_dtype(state), dtype);
    }
    tn_optimizer_drop(t.optimizer);
}

static bool has_dtype(const tn_device *device, tn_dtype dtype)
{
    tn_device_info info = { .head.size = sizeof info };

    return tn_device_describe(device, &info) == TN_OK && (info.dtypes & TN_BIT(dtype)) != 0;
}

START_TEST(rules_follow_pytorch_on_every_device)
{
    static const tn_dtype dtypes[] = { TN_C128, TN_C64 };
    int64_t made = 0;

    for (int64_t d = 0; d < tn_device_count(); d++)
        for (int k = 0; k < 2; k++) {
            const tn_device *device = tn_device_at(d);

            if (!tn_device_has_memory(device) || !has_dtype(device, dtypes[k]))
                continue;
            for (int64_t i = 0; i < tn__countof(complex_rules); i++) {
                follow(i, false, dtypes[k], device, k == 0 ? 1e-10 : 3e-4);
                follow(i, true, dtypes[k], device, k == 0 ? 1e-10 : 3e-4);
                made++;
            }
        }
    ck_assert_int_ge(made, 2 * tn__countof(complex_rules));
}
END_TEST

/* PyTorch refuses complex parameters for the same two optimizers, with the same messages. */
START_TEST(adafactor_and_muon_refuse_them)
{
    static const char *const all[] = { "Adafactor", "Muon" };

    for (int64_t i = 0; i < tn__countof(all); i++) {
        TN_SCOPE;
        tn_tensor *p = tn_parameter(tn_tensor_full(TN_SHAPE(2, 2), 1, TN_C128, NULL), true);
        tn_optimizer *optimizer = tn_optimizer_parse(&p, 1, all[i]);
        char words[128];

        ck_assert_ptr_nonnull(optimizer);
        tn_tensor_set_grad(p, tn_tensor_full(TN_SHAPE(2, 2), 1, TN_C128, NULL));
        ck_assert_msg(tn_optimizer_step(optimizer) == TN_ERR_TYPE, "%s took it", all[i]);
        snprintf(words, sizeof words,
                 "%s does not support complex parameters: parameter 0: wrong dtype, got "
                 "complex128; expected a real one",
                 all[i]);
        expect_failure(TN_ERR_TYPE, words);
        tn_optimizer_drop(optimizer);
    }
}
END_TEST

/* The gradient of a real loss for complex parameters has PyTorch's sign convention: a step against
 * the gradient decreases the loss. */
START_TEST(a_complex_parameter_is_trained_with_its_own_gradient)
{
    TN_SCOPE;
    const double start[] = { 3, -4, 0.5, 2 };
    double got[4];
    tn_tensor *p = tn_parameter(tn_tensor_from(start, TN_C128, TN_SHAPE(2)), true);
    tn_optimizer *optimizer = tn_optimizer_parse(&p, 1, "SGD(lr=0.25)");
    tn_tensor *parts = tn_view_as_real(p);

    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(parts, parts))), TN_OK);
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(tn_detach(p), got, sizeof got), TN_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(got[i], start[i] / 2); /* x - 0.25 * 2 x */
    tn_optimizer_drop(optimizer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rules_follow_pytorch_on_every_device,
        adafactor_and_muon_refuse_them,
        a_complex_parameter_is_trained_with_its_own_gradient,
        NULL,
    };
    return suite_run("optim-complex", tests);
}
