/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers for many parameters in one call, on every device: results of the formulas,
 * the same bits with any number of threads, errors, and the versions of the tensors that a step
 * changes. */
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

/* Numbers for every tensor; averages of squares are positive. With `turned`, gradients are
 * column-major. */
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
                o.lr = 0.1;
                ok(tn_sgd_step(TN_NONE, s.list, TENSORS * s.group, o.lr, o.momentum, o.dampening,
                               o.weight_decay, o.nesterov, o.maximize, o.first));
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
                o.step = 3;
                o.lr = 0.01;
                ok(tn_adam_step(TN_NONE, TN_NONE, s.list, TENSORS * s.group, o.step, o.lr, o.beta1,
                                o.beta2, o.eps, o.weight_decay, o.amsgrad, o.maximize,
                                o.decoupled));
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
        tn_tensor *list[3] = { put(device, TN_F32, TN_SHAPE(2), NUMBERS(1, 2), DENSE),
                               put(device, TN_F32, TN_SHAPE(2), NUMBERS(4, 8), DENSE),
                               put(device, TN_F32, TN_SHAPE(2), NUMBERS(NAN, INFINITY), DENSE) };

        ok(tn_sgd_step(TN_NONE, list, 3, 0.25, 0.5, 0.5, 0.0, false, false, true));
        same("p", device, TN_F32, list[0], NUMBERS(0, 0), 0, 1);
        same("b", device, TN_F32, list[2], NUMBERS(4, 8), 0, 1);
    }
}
END_TEST

START_TEST(the_norm_of_many_tensors_is_that_of_all_their_elements)
{
    static const double ps[] = { 2, 1, INFINITY, 3, 0.5, -INFINITY };

    for (size_t i = 0; i < sizeof ps / sizeof *ps; i++) {
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
                same("total_norm", device, dtypes[d], tn_total_norm(list, count, ps[i]), &expected,
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
    ok(tn_backward(tn_total_norm(list, 2)));
    same("gradient", cpu, TN_F64, tn_tensor_grad(list[0]), NUMBERS(0.6), 4, 1);
    same("gradient", cpu, TN_F64, tn_tensor_grad(list[1]), NUMBERS(-0.8), 4, 1);
}
END_TEST

START_TEST(bits_do_not_depend_on_the_threads)
{
    double *first = NULL;

    for (int threads = 1; threads <= 4; threads *= 2) {
        TN_SCOPE;
        int64_t n = 100003;
        double *x = calloc((size_t)n, sizeof *x);
        tn_tensor *list[4];

        ck_assert_ptr_nonnull(x);
        ok(tn_set_num_threads(threads));
        for (int64_t i = 0; i < n; i++)
            x[i] = sin((double)i) / 2 + 0.6;
        for (int k = 0; k < 4; k++)
            list[k] = put(tn_device_find("cpu"), TN_F32, TN_SHAPE(n), x, DENSE);
        ok(tn_adam_step(TN_NONE, TN_NONE, list, 4, 1, 0.1));
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

static tn_status sgd(tn_tensor **list, int64_t n)
{
    return tn_sgd_step(TN_NONE, list, n, 0.1);
}

static tn_status adam(tn_tensor **list, int64_t n, int64_t step)
{
    return tn_adam_step(TN_NONE, TN_NONE, list, n, step, 0.1);
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

    refused(sgd((tn_tensor *[]){ x, g, g }, 3), TN_ERR_VALUE, "wrong number of tensors, got 3");
    refused(sgd((tn_tensor *[]){ x, short_ }, 2), TN_ERR_VALUE, "[3]");
    refused(sgd((tn_tensor *[]){ x, wide }, 2), TN_ERR_TYPE, "float64");
    refused(sgd((tn_tensor *[]){ lower, upper }, 2), TN_ERR_RUNTIME, "inputs 1 and 2 share memory");
    refused(sgd((tn_tensor *[]){ many, g }, 2), TN_ERR_RUNTIME, "elements share memory");
    refused(adam((tn_tensor *[]){ x, g, short_, short_ }, 4, 1), TN_ERR_VALUE, "[3]");
    refused(adam((tn_tensor *[]){ x, g, tn_copy(g), tn_copy(g) }, 4, 0), TN_ERR_VALUE,
            "step: out of range, got 0");
    same("x", cpu, TN_F32, x, NUMBERS(1, 2, 3, 4), 0, 1);
    ok(tn_tensor_set_requires_grad(x, true));
    refused(sgd((tn_tensor *[]){ x, g }, 2), TN_ERR_RUNTIME, "requires grad");
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
    tn_tensor *y = tn_sum(tn_mul(x, x));
    uint64_t before = tn_tensor_version(g);
    tn_grad_begin(false);
    ok(tn_sgd_step(TN_NONE, ((tn_tensor *[]){ x, g }), 2, 0.5));
    tn_grad_end();
    ck_assert_uint_eq(tn_tensor_version(g), before); /* gradients are only read */
    ck_assert_int_ne(tn_backward(y), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "modified by an inplace operation"));
    tn_error_clear();
    same("x", cpu, TN_F32, tn_detach(x), NUMBERS(0.5, 1.5), 0, 1);
}
END_TEST

/* ---- numbers that are tensors ---------------------------------------------------------------- */

/* A 0-d tensor on the device of the parameters. */
static tn_tensor *number(const tn_device *device, tn_dtype dtype, double value)
{
    tn_tensor *x = put(device, dtype, TN_SCALAR_SHAPE, &value, DENSE);

    there(x);
    return x;
}

static const tn_dtype step_types[] = { TN_F32, TN_F64, TN_I64 };

START_TEST(a_step_with_its_numbers_in_tensors_agrees_with_the_formula)
{
    for (int variant = 0; variant < 12; variant++) {
        tn_adam_step_options o = TN_ADAM_STEP_OPTIONS;
        tn_sgd_step_options sgd_options = TN_SGD_STEP_OPTIONS;
        tn_dtype step_type = step_types[variant % 3], lr_type = dtypes[variant % 2];
        double lr = lr_type == TN_F32 ? (double)0.01f : 0.01;
        int64_t step = variant < 3 ? 1 : variant < 6 ? 3 : 100000;

        o.weight_decay = variant % 4 == 0 ? 0 : 0.05;
        o.amsgrad = variant % 5 == 2;
        o.decoupled = variant % 3 == 1;
        o.beta1 = variant == 7 ? 0 : 0.9;
        sgd_options.momentum = variant % 2 ? 0.9 : 0;
        EACH_DEVICE(device)
        {
            for (int d = 0; d < 2; d++) {
                TN_SCOPE;
                set s;

                if (!device_has(device, "add", dtypes[d]) || !device_has(device, "add", lr_type) ||
                    !device_has(device, "cast", step_type))
                    continue;
                fill(&s, o.amsgrad ? 5 : 4, device, dtypes[d], variant == 1);
                ok(tn_adam_step(number(device, step_type, (double)step),
                                number(device, lr_type, lr), s.list, TENSORS * s.group, o.step,
                                o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad,
                                o.maximize, o.decoupled));
                adam_reference(&s, step, lr, &o);
                check("adam_step", &s, device, dtypes[d]);
                fill(&s, sgd_options.momentum != 0 ? 3 : 2, device, dtypes[d], variant == 1);
                ok(tn_sgd_step(number(device, lr_type, lr), s.list, TENSORS * s.group,
                               sgd_options.lr, sgd_options.momentum, sgd_options.dampening,
                               sgd_options.weight_decay, sgd_options.nesterov, sgd_options.maximize,
                               sgd_options.first));
                sgd_reference(&s, lr, &sgd_options);
                check("sgd_step", &s, device, dtypes[d]);
            }
        }
    }
}
END_TEST

/* A step with options, and one with tensors of the same numbers, leave the same bits everywhere. */
START_TEST(on_the_cpu_tensors_give_the_bits_of_options)
{
    const tn_device *cpu = tn_device_find("cpu");

    for (int variant = 0; variant < 6; variant++) {
        TN_SCOPE;
        tn_dtype dtype = dtypes[variant / 3];
        tn_adam_step_options by_option = TN_ADAM_STEP_OPTIONS, by_tensor = TN_ADAM_STEP_OPTIONS;
        tn_sgd_step_options sgd_option = TN_SGD_STEP_OPTIONS;
        set a, b;

        by_option.step = 7;
        by_option.lr = sgd_option.lr = variant % 3 == 0 ? (double)0.01f : 0.01;
        by_option.decoupled = by_tensor.decoupled = variant % 2;
        by_option.weight_decay = by_tensor.weight_decay = 0.03;
        for (int adam = 0; adam < 2; adam++) {
            tn_tensor *lr = number(cpu, variant % 3 == 0 ? TN_F32 : TN_F64, by_option.lr);
            tn_tensor *step = number(cpu, step_types[variant % 3], 7);

            fill(&a, adam ? 4 : 2, cpu, dtype, false);
            b = a;
            for (int i = 0; i < TENSORS * a.group; i++)
                there(b.list[i] = tn_clone(a.list[i]));
            if (adam) {
                ok(tn_adam_step(TN_NONE, TN_NONE, a.list, TENSORS * a.group, by_option.step,
                                by_option.lr, by_option.beta1, by_option.beta2, by_option.eps,
                                by_option.weight_decay, by_option.amsgrad, by_option.maximize,
                                by_option.decoupled));
                ok(tn_adam_step(step, lr, b.list, TENSORS * b.group, by_tensor.step, by_tensor.lr,
                                by_tensor.beta1, by_tensor.beta2, by_tensor.eps,
                                by_tensor.weight_decay, by_tensor.amsgrad, by_tensor.maximize,
                                by_tensor.decoupled));
            } else {
                ok(tn_sgd_step(TN_NONE, a.list, TENSORS * a.group, sgd_option.lr));
                ok(tn_sgd_step(lr, b.list, TENSORS * b.group));
            }
            for (int i = 0; i < TENSORS * a.group; i++)
                ck_assert_mem_eq(get(a.list[i]), get(b.list[i]),
                                 (size_t)tn_tensor_numel(a.list[i]) * sizeof(double));
        }
    }
}
END_TEST

/* What a captured graph does: the same call again, after the tensors were changed in place. */
START_TEST(tensors_that_change_in_place_change_the_step)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *step = number(device, TN_F32, 0), *lr = number(device, TN_F32, 0.5);
        tn_adam_step_options o = TN_ADAM_STEP_OPTIONS;
        set s;

        fill(&s, 4, device, TN_F32, false);
        for (int i = 1; i <= 3; i++) {
            there(tn_add_scalar_(step, 1));
            there(tn_mul_scalar_(lr, 0.5));
            ok(tn_adam_step(step, lr, s.list, TENSORS * 4, o.step, o.lr, o.beta1, o.beta2, o.eps,
                            o.weight_decay, o.amsgrad, o.maximize, o.decoupled));
            adam_reference(&s, i, ldexp(0.5, -i), &o);
        }
        check("adam_step", &s, device, TN_F32);
    }
}
END_TEST

/* Half precision has no kernel: the update is computed in float32 and rounded once. */
START_TEST(a_rate_below_half_precision_still_counts)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *list[2] = { put(cpu, TN_F16, TN_SHAPE(1), NUMBERS(0), DENSE),
                           put(cpu, TN_F16, TN_SHAPE(1), NUMBERS(32768), DENSE) };

    ok(tn_sgd_step(number(cpu, TN_F32, 0x1p-25), list, 2));
    same("p", cpu, TN_F16, list[0], NUMBERS(-0x1p-10), 0, 1);
}
END_TEST

START_TEST(numbers_that_do_not_fit_are_refused)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    tn_tensor *list[4], *one = number(cpu, TN_F32, 1), *half = number(cpu, TN_F16, 1);
    tn_tensor *row = put(cpu, TN_F32, TN_SHAPE(1), NUMBERS(1), DENSE);
    tn_tensor *whole = number(cpu, TN_I64, 1);
    tn_tensor *elsewhere = tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_F32, tn_device_find("strict"));
    tn_adam_step_options both = TN_ADAM_STEP_OPTIONS;
    tn_sgd_step_options with_lr = TN_SGD_STEP_OPTIONS;
    static const double outside[] = { 0, -3, 0.5, NAN };

    there(elsewhere);
    for (int i = 0; i < 4; i++)
        list[i] = put(cpu, TN_F32, TN_SHAPE(2), NUMBERS(1, 2), DENSE);
    both.step = 3;
    both.lr = with_lr.lr = 0.1;
    refused(tn_adam_step(one, TN_NONE, list, 4, both.step, both.lr), TN_ERR_VALUE,
            "step and step_tensor: too many, got both");
    refused(tn_adam_step(TN_NONE, one, list, 4, both.step, both.lr), TN_ERR_VALUE,
            "lr and lr_tensor: too many, got both");
    refused(tn_sgd_step(one, list, 2, with_lr.lr), TN_ERR_VALUE, "lr and lr_tensor: too many");
    refused(tn_adam_step(TN_NONE, one, list, 4), TN_ERR_VALUE, "step: missing");
    refused(tn_adam_step(one, TN_NONE, list, 4), TN_ERR_VALUE, "lr: missing");
    refused(tn_sgd_step(TN_NONE, list, 2), TN_ERR_VALUE, "lr: missing");
    refused(tn_adam_step(row, one, list, 4), TN_ERR_VALUE,
            "step_tensor: wrong shape, got [1]; expected no dimensions");
    refused(tn_sgd_step(row, list, 2), TN_ERR_VALUE, "lr_tensor: wrong shape, got [1]");
    refused(tn_adam_step(half, one, list, 4), TN_ERR_TYPE, "float16");
    refused(tn_sgd_step(whole, list, 2), TN_ERR_TYPE, "int64");
    refused(tn_sgd_step(elsewhere, list, 2), TN_ERR_RUNTIME, "expected all on one device");
    refused(tn_sgd_step(tn_narrow(list[0], 0, 0, 1), list, 2), TN_ERR_VALUE, "[1]");
    refused(tn_sgd_step(tn_select(list[0], 0, 0), list, 2), TN_ERR_RUNTIME, "share memory");
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        refused(tn_adam_step(number(cpu, TN_F64, outside[i]), one, list, 4), TN_ERR_VALUE,
                "step_tensor: out of range");
    for (int i = 0; i < 4; i++)
        same("untouched", cpu, TN_F32, list[i], NUMBERS(1, 2), 0, 1);
}
END_TEST

/* The wrapper has space for TN_MAX_DIMS tensors after others, and takes memory for more. */
START_TEST(a_list_behind_others_may_be_long_or_wrong)
{
    TN_SCOPE;
    const tn_device *cpu = tn_device_find("cpu");
    enum { MANY = 400 };
    tn_tensor *list[MANY], *lr = number(cpu, TN_F32, 0.5);

    for (int i = 0; i < MANY; i++)
        list[i] = put(cpu, TN_F32, TN_SHAPE(1), NUMBERS(i), DENSE);
    ok(tn_sgd_step(lr, list, MANY));
    for (int i = 0; i < MANY; i += 2) {
        same("p", cpu, TN_F32, list[i], NUMBERS(i - 0.5 * (i + 1)), 0, 1);
        same("dp", cpu, TN_F32, list[i + 1], NUMBERS(i + 1), 0, 1);
    }
    refused(tn_sgd_step(lr, list, -1), TN_ERR_VALUE, "wrong list, got -1 tensors");
    refused(tn_sgd_step(lr, NULL, 2), TN_ERR_VALUE, "got 2 tensors and NULL");
    refused(tn_sgd_step(lr, list, INT64_MAX), TN_ERR_VALUE, "wrong list");
    refused(tn_sgd_step(lr, list, 0), TN_ERR_VALUE, "inputs: wrong number, got 1");
}
END_TEST

RUN_SUITE("optimizer", sgd_steps_all_parameters_by_the_formula,
          adam_steps_all_parameters_by_the_formula, a_first_step_ignores_what_the_buffers_hold,
          the_norm_of_many_tensors_is_that_of_all_their_elements, the_norm_can_be_differentiated,
          bits_do_not_depend_on_the_threads, what_does_not_fit_is_refused_and_changes_nothing,
          what_was_written_counts_as_changed,
          a_step_with_its_numbers_in_tensors_agrees_with_the_formula,
          on_the_cpu_tensors_give_the_bits_of_options, tensors_that_change_in_place_change_the_step,
          a_rate_below_half_precision_still_counts, numbers_that_do_not_fit_are_refused,
          a_list_behind_others_may_be_long_or_wrong)
