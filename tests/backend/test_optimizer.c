/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers for many parameters in one call, on every device: the numbers of the
 * formulas, the same bits with any number of threads, what is refused, and that what was written
 * counts as changed. */
#include "backend.h"

enum { TENSORS = 6, MOST = 5 };

/* Shapes of the parameters: one element, none, several pieces of the kernel. */
static const int64_t shapes[TENSORS][2] = { { 3, 5 },    { 1, 1 }, { 0, 4 },
                                            { 70, 300 }, { 7, 1 }, { 130, 257 } };

typedef struct set {
    int group;
    double *numbers[TENSORS][MOST]; /* the reference, in float64 */
    tn_tensor *list[TENSORS * MOST];
} set;

static int64_t size_of(int i)
{
    return shapes[i][0] * shapes[i][1];
}

/* Numbers for every tensor; averages of squares are positive. In the order of a transposed matrix
 * where `turned`. */
static void fill(set *s, int group, const tn_device *device, tn_dtype dtype, bool turned)
{
    s->group = group;
    for (int i = 0; i < TENSORS; i++) {
        for (int k = 0; k < group; k++) {
            tn_ints shape = { shapes[i], 2 };
            double *x = room(size_of(i));

            numbers(x, size_of(i), k >= 3 ? 0.1 : -1, 1, dtype);
            s->numbers[i][k] = x;
            if (turned && k == 1) {
                int64_t strides[2] = { 1, shapes[i][0] > 0 ? shapes[i][0] : 1 };
                tn_tensor *to = tn_tensor_empty_strided(shape, (tn_ints){ strides, 2 }, dtype,
                                                        device);
                s->list[i * group + k] = tn_copy_(to, put(device, dtype, shape, x, DENSE));
            } else {
                s->list[i * group + k] = put(device, dtype, shape, x, DENSE);
            }
            there(s->list[i * group + k]);
        }
    }
}

static void check(const char *what, const set *s, const tn_device *device, tn_dtype dtype)
{
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < s->group; k++)
            same(what, device, dtype, s->list[i * s->group + k], s->numbers[i][k],
                 dtype == TN_F32 ? 16 : 64, 1);
}

static void sgd_reference(set *s, double lr, const tn_sgd_step_options *o)
{
    for (int i = 0; i < TENSORS; i++)
        for (int64_t j = 0; j < size_of(i); j++) {
            double *p = &s->numbers[i][0][j];
            double g = (o->maximize ? -1 : 1) * s->numbers[i][1][j] + o->weight_decay * *p;
            if (o->momentum != 0) {
                double *b = &s->numbers[i][2][j];
                *b = o->first ? g : o->momentum * *b + (1 - o->dampening) * g;
                g = o->nesterov ? g + o->momentum * *b : *b;
            }
            *p -= lr * g;
        }
}

static void adam_reference(set *s, int64_t step, double lr, const tn_adam_step_options *o)
{
    double one = 1 - pow(o->beta1, (double)step), two = 1 - pow(o->beta2, (double)step);
    for (int i = 0; i < TENSORS; i++)
        for (int64_t j = 0; j < size_of(i); j++) {
            double *p = &s->numbers[i][0][j], *m = &s->numbers[i][2][j], *v = &s->numbers[i][3][j];
            double g = (o->maximize ? -1 : 1) * s->numbers[i][1][j], d;
            if (o->decoupled)
                *p *= 1 - lr * o->weight_decay;
            else
                g += o->weight_decay * *p;
            *m += (1 - o->beta1) * (g - *m);
            *v = o->beta2 * *v + (1 - o->beta2) * g * g;
            d = *v;
            if (o->amsgrad) {
                s->numbers[i][4][j] = fmax(s->numbers[i][4][j], *v);
                d = s->numbers[i][4][j];
            }
            *p -= lr / one * *m / (sqrt(d) / sqrt(two) + o->eps);
        }
}

static const tn_dtype dtypes[] = { TN_F32, TN_F64 };

START_TEST(sgd_steps_all_parameters_by_the_formula)
{
    for (int variant = 0; variant < 6; variant++) {
        tn_sgd_step_options o = TN_SGD_STEP_OPTIONS;

        o.momentum = variant == 0 ? 0 : 0.9;
        o.weight_decay = variant == 1 ? 0 : 0.01;
        o.dampening = variant == 2 ? 0.3 : 0;
        o.nesterov = variant == 3;
        o.maximize = variant == 4;
        o.first = variant == 5;
        EACH_DEVICE(device)
        {
            for (int d = 0; d < 2; d++) {
                TN_SCOPE;
                set s;

                if (!device_has(device, "add", dtypes[d]))
                    continue;
                fill(&s, o.momentum != 0 ? 3 : 2, device, dtypes[d], variant == 2);
                ok(tn_sgd_step(s.list, TENSORS * s.group, 0.1, &o));
                sgd_reference(&s, 0.1, &o);
                check("sgd_step", &s, device, dtypes[d]);
            }
        }
    }
    ck_assert_int_gt(checks_made, 0);
}
END_TEST

START_TEST(adam_steps_all_parameters_by_the_formula)
{
    for (int variant = 0; variant < 5; variant++) {
        tn_adam_step_options o = TN_ADAM_STEP_OPTIONS;

        o.weight_decay = variant == 0 ? 0 : 0.05;
        o.amsgrad = variant == 2;
        o.decoupled = variant == 3;
        o.maximize = variant == 4;
        EACH_DEVICE(device)
        {
            for (int d = 0; d < 2; d++) {
                TN_SCOPE;
                set s;

                if (!device_has(device, "add", dtypes[d]))
                    continue;
                fill(&s, o.amsgrad ? 5 : 4, device, dtypes[d], variant == 1);
                ok(tn_adam_step(s.list, TENSORS * s.group, 3, 0.01, &o));
                adam_reference(&s, 3, 0.01, &o);
                check("adam_step", &s, device, dtypes[d]);
            }
        }
    }
}
END_TEST

START_TEST(a_first_step_ignores_what_the_buffers_hold)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_sgd_step_options o = TN_SGD_STEP_OPTIONS;
        tn_tensor *list[3] = { put(device, TN_F32, TN_SHAPE(2), NUMBERS(1, 2), DENSE),
                               put(device, TN_F32, TN_SHAPE(2), NUMBERS(4, 8), DENSE),
                               put(device, TN_F32, TN_SHAPE(2), NUMBERS(NAN, INFINITY), DENSE) };

        o.momentum = 0.5;
        o.dampening = 0.5;
        o.first = true;
        ok(tn_sgd_step(list, 3, 0.25, &o));
        same("p", device, TN_F32, list[0], NUMBERS(0, 0), 0, 1);
        same("b", device, TN_F32, list[2], NUMBERS(4, 8), 0, 1);
    }
}
END_TEST

START_TEST(the_norm_of_many_tensors_is_that_of_all_their_elements)
{
    static const double ps[] = { 2, 1, INFINITY, 3, 0.5, -INFINITY };

    for (size_t i = 0; i < sizeof ps / sizeof *ps; i++) {
        tn_total_norm_options o = TN_TOTAL_NORM_OPTIONS;

        o.p = ps[i];
        EACH_DEVICE(device)
        {
            for (int d = 0; d < 2; d++) {
                TN_SCOPE;
                set s;
                tn_tensor *list[TENSORS];
                double sum = 0, largest = 0, least = INFINITY, expected;
                int count = 0;

                if (!device_has(device, "add", dtypes[d]))
                    continue;
                fill(&s, 2, device, dtypes[d], true);
                for (int k = 0; k < TENSORS; k++) {
                    if (size_of(k) == 0 && isinf(ps[i]))
                        continue; /* the largest of nothing is refused */
                    list[count++] = s.list[k * 2 + 1];
                    for (int64_t j = 0; j < size_of(k); j++) {
                        double a = fabs(s.numbers[k][1][j]);
                        sum += pow(a, ps[i]);
                        largest = fmax(largest, a);
                        least = fmin(least, a);
                    }
                }
                expected = ps[i] == INFINITY    ? largest
                           : ps[i] == -INFINITY ? least
                                                : pow(sum, 1 / ps[i]);
                same("total_norm", device, dtypes[d], tn_total_norm(list, count, &o), &expected,
                     dtypes[d] == TN_F32 ? 64 : 4096, 0);
            }
        }
    }
}
END_TEST

START_TEST(the_norm_can_be_differentiated)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *list[2] = { put(cpu, TN_F64, TN_SHAPE(1), NUMBERS(3), DENSE),
                           put(cpu, TN_F64, TN_SHAPE(1), NUMBERS(-4), DENSE) };

    for (int i = 0; i < 2; i++)
        ok(tn_tensor_set_requires_grad(list[i], true));
    ok(tn_backward(tn_total_norm(list, 2, NULL)));
    same("gradient", cpu, TN_F64, tn_tensor_grad(list[0]), NUMBERS(0.6), 4, 1);
    same("gradient", cpu, TN_F64, tn_tensor_grad(list[1]), NUMBERS(-0.8), 4, 1);
}
END_TEST

START_TEST(bits_do_not_depend_on_the_threads)
{
    double *first = NULL;

    for (int threads = 1; threads <= 4; threads *= 2) {
        TN_SCOPE;
        tn_adam_step_options o = TN_ADAM_STEP_OPTIONS;
        int64_t n = 100003;
        double *x = calloc((size_t)n, sizeof *x);
        tn_tensor *list[4];

        ck_assert_ptr_nonnull(x);
        ok(tn_set_num_threads(threads));
        for (int64_t i = 0; i < n; i++)
            x[i] = sin((double)i) / 2 + 0.6;
        for (int k = 0; k < 4; k++)
            list[k] = put(tn_device_find("cpu"), TN_F32, TN_SHAPE(n), x, DENSE);
        ok(tn_adam_step(list, 4, 1, 0.1, &o));
        free(x);
        if (first == NULL)
            first = get(list[0]);
        else
            ck_assert_mem_eq(get(list[0]), first, (size_t)n * sizeof *first);
    }
}
END_TEST

static void refused(tn_status status, tn_status code, const char *words)
{
    ck_assert_int_eq(status, code);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" lacks \"%s\"", tn_error_text(),
                  words);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "_step"));
    tn_error_clear();
}

START_TEST(what_does_not_fit_is_refused_and_changes_nothing)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *x = put(cpu, TN_F32, TN_SHAPE(4), NUMBERS(1, 2, 3, 4), DENSE);
    tn_tensor *g = put(cpu, TN_F32, TN_SHAPE(4), NUMBERS(1, 1, 1, 1), DENSE);
    tn_tensor *short_ = tn_narrow(g, 0, 0, 3), *wide = tn_cast(g, TN_F64);
    tn_tensor *lower = tn_narrow(x, 0, 0, 3), *upper = tn_narrow(x, 0, 1, 3);
    tn_tensor *many = tn_expand(put(cpu, TN_F32, TN_SHAPE(1), NUMBERS(1), DENSE), TN_SHAPE(4));

    refused(tn_sgd_step((tn_tensor *[]){ x, g, g }, 3, 0.1, NULL), TN_ERR_VALUE,
            "wrong number of tensors, got 3");
    refused(tn_sgd_step((tn_tensor *[]){ x, short_ }, 2, 0.1, NULL), TN_ERR_VALUE, "[3]");
    refused(tn_sgd_step((tn_tensor *[]){ x, wide }, 2, 0.1, NULL), TN_ERR_TYPE, "float64");
    refused(tn_sgd_step((tn_tensor *[]){ lower, upper }, 2, 0.1, NULL), TN_ERR_RUNTIME,
            "inputs 0 and 1 share memory");
    refused(tn_sgd_step((tn_tensor *[]){ many, g }, 2, 0.1, NULL), TN_ERR_RUNTIME,
            "elements share memory");
    refused(tn_adam_step((tn_tensor *[]){ x, g, short_, short_ }, 4, 1, 0.1, NULL), TN_ERR_VALUE,
            "[3]");
    refused(tn_adam_step((tn_tensor *[]){ x, g, tn_copy(g), tn_copy(g) }, 4, 0, 0.1, NULL),
            TN_ERR_VALUE, "step: out of range, got 0");
    same("x", cpu, TN_F32, x, NUMBERS(1, 2, 3, 4), 0, 1);
    ok(tn_tensor_set_requires_grad(x, true));
    refused(tn_sgd_step((tn_tensor *[]){ x, g }, 2, 0.1, NULL), TN_ERR_RUNTIME, "requires grad");
    same("x", cpu, TN_F32, tn_detach(x), NUMBERS(1, 2, 3, 4), 0, 1);
}
END_TEST

START_TEST(what_was_written_counts_as_changed)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *x = put(cpu, TN_F32, TN_SHAPE(2), NUMBERS(1, 2), DENSE);
    tn_tensor *g = put(cpu, TN_F32, TN_SHAPE(2), NUMBERS(1, 1), DENSE);

    ok(tn_tensor_set_requires_grad(x, true));
    tn_tensor *y = tn_sum(tn_mul(x, x), NULL);
    uint64_t before = tn_tensor_version(g);
    tn_grad_begin(false);
    ok(tn_sgd_step((tn_tensor *[]){ x, g }, 2, 0.5, NULL));
    tn_grad_end();
    ck_assert_uint_eq(tn_tensor_version(g), before); /* gradients are only read */
    ck_assert_int_ne(tn_backward(y), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "modified by an inplace operation"));
    tn_error_clear();
    same("x", cpu, TN_F32, tn_detach(x), NUMBERS(0.5, 1.5), 0, 1);
}
END_TEST

RUN_SUITE("optimizer", sgd_steps_all_parameters_by_the_formula,
          adam_steps_all_parameters_by_the_formula, a_first_step_ignores_what_the_buffers_hold,
          the_norm_of_many_tensors_is_that_of_all_their_elements, the_norm_can_be_differentiated,
          bits_do_not_depend_on_the_threads, what_does_not_fit_is_refused_and_changes_nothing,
          what_was_written_counts_as_changed)
