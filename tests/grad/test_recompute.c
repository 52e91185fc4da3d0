/* SPDX-License-Identifier: MIT
 *
 * Recomputation (tn_recompute_call): gradients equal to the bit with and without it, random
 * numbers, autocast, nesting, several inputs and outputs, memory, what is refused, and allocations
 * that fail. */
#include <stdio.h>

#include "core/base/internal.h"
#include "tests/op/suite.h"

enum { WIDTH = 32, DEPTH = 24 };

static const char deep[] = "Sequential(Linear(8, 8), Tanh(), Dropout(0.5), Linear(8, 8), GELU(), "
                           "BatchNorm1d(8), Linear(8, 8), Sigmoid())";

/* Runs `net` with the seed 5: plainly (0), recomputed as a whole (1) or in three segments (2), and
 * copies the gradients of all parameters and of the input. Returns how many numbers. */
static int64_t gradients(tn_module *net, int how, bool autocast, float *out)
{
    TN_SCOPE;
    float values[32];
    tn_tensor *x, *y = NULL, *list[16];
    int64_t count = tn_module_parameters(net, list, 15), used = 0;

    for (int i = 0; i < 32; i++)
        values[i] = (float)(i * 7 % 11 - 5) / 4;
    x = with_grad(tn_tensor_from(values, TN_F32, TN_SHAPE(4, 8)));
    tn_random_seed(5);
    ck_assert_int_eq(tn_module_zero_grad(net), TN_OK);
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, autocast), TN_OK);
    if (how == 0)
        y = tn_module_call(net, x);
    else if (how == 1)
        ck_assert_msg(tn_module_recompute(net, &x, 1, &y, 1, 0) == TN_OK, "%s", tn_error_text());
    else
        y = tn_module_recompute_sequential(net, 3, x, 0);
    tn_autocast_end();
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    tn_rand(TN_SHAPE(3)); /* the second run must not depend on what was drawn in between */
    ck_assert_int_eq(tn_anomaly_begin(true), TN_OK);
    ck_assert_msg(tn_backward(tn_sum(tn_cast(y, TN_F32))) == TN_OK, "%s", tn_error_text());
    tn_anomaly_end();
    list[count++] = x;
    for (int64_t i = 0; i < count; i++) {
        tn_tensor *gradient = tn_tensor_grad(list[i]);

        if (gradient == TN_NONE)
            continue;
        ck_assert_int_eq(tn_tensor_copy_out(gradient, out + used,
                                            (size_t)tn_tensor_numel(gradient) * sizeof *out),
                         TN_OK);
        used += tn_tensor_numel(gradient);
    }
    return used;
}

START_TEST(gradients_are_those_without_recompute_to_the_bit)
{
    for (int round = 0; round < 3; round++) {
        static float plain[1024], again[1024];
        tn_module *net = tn_module_new("%s", deep);
        int64_t count;

        ck_assert_msg(net != NULL, "%s", tn_error_text());
        if (round == 2) /* a frozen part */
            ck_assert_int_eq(
                tn_tensor_set_requires_grad(tn_module_find_tensor(net, "0.weight"), false), TN_OK);
        count = gradients(net, 0, round == 1, plain);
        ck_assert_int_gt(count, 100);
        for (int how = 1; how < 3; how++) {
            ck_assert_int_eq(gradients(net, how, round == 1, again), count);
            ck_assert_int_eq(memcmp(plain, again, (size_t)count * sizeof *plain), 0);
        }
        tn_module_drop(net);
        ck_assert_int_eq(tn_grad_node_count(), 0);
    }
    FINE();
}
END_TEST

/* ---- functions ------------------------------------------------------------------------------- */

static int calls, released, changes;
static tn_tensor *weight;

static void release(void *user)
{
    (void)user;
    released++;
}

/* tanh(a) * tanh(b) and exp(a) * weight */
static tn_status two(void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    calls++;
    out[0] = tn_mul(tn_tanh(in[0]), tn_tanh(in[1]));
    out[1] = tn_mul(tn_exp(in[0]), weight);
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_code();
}

static tn_status outer(void *user, tn_tensor *const *in, tn_tensor **out)
{
    tn_tensor *inner[2], *both[2] = { tn_sin(in[0]), tn_cos(in[0]) };
    tn_status status = tn_recompute_call(two, user, NULL, both, 2, inner, 2, 0);

    out[0] = status == TN_OK ? tn_mul(tn_sin(inner[0]), tn_cos(inner[1])) : NULL;
    return out[0] != NULL ? TN_OK : tn_error_code();
}

START_TEST(several_inputs_and_outputs_and_second_derivatives)
{
    TN_SCOPE;
    tn_tensor *a = LEAF(0.5, -1), *b = LEAF(2, 0.25), *in[3] = { a, b, TN_NONE }, *out[2], *g[2];
    tn_tensor *all[2];
    tn_backward_options options = { sizeof options, 1, 1, 0, 0 };

    weight = LEAF(3, 4);
    calls = released = 0;
    ck_assert_int_eq(tn_recompute_call(two, NULL, release, in, 3, out, 2, 0), TN_OK);
    ck_assert_int_eq(calls, 1);
    all[0] = a;
    all[1] = weight;
    ck_assert_msg(tn_grad(&out[1], (tn_tensor *[]){ VEC(1, 1) }, 1, all, g, 2, &options) == TN_OK,
                  "%s", tn_error_text());
    ck_assert_int_eq(calls, 2);
    HAS(g[0], 3 * exp(0.5), 4 * exp(-1));
    HAS(g[1], exp(0.5), exp(-1));
    /* the graph was retained: the function runs again for another gradient */
    ck_assert_int_eq(tn_backward(tn_sum(tn_add(out[0], tn_mul(g[0], g[0])))), TN_OK);
    ck_assert_int_eq(calls, 3);
    ck_assert_double_eq_tol(at(tn_tensor_grad(a), 0),
                            (1 - tanh(0.5) * tanh(0.5)) * tanh(2) + 18 * exp(1.0), 1e-4);
    ck_assert_double_eq_tol(at(tn_tensor_grad(a), 1),
                            (1 - tanh(1) * tanh(1)) * tanh(0.25) + 32 * exp(-2.0), 1e-4);
    ck_assert_int_ne(tn_backward(tn_sum(out[0])), TN_OK);
    FAILED(TN_ERR_RUNTIME, "backward through the graph a second time");
    FINE();
}
END_TEST

START_TEST(nested_recomputed_parts_run_from_the_outside_in)
{
    TN_SCOPE;
    tn_tensor *a = LEAF(0.5, -1), *plain = LEAF(0.5, -1), *y, *z;

    weight = LEAF(3, 4);
    calls = released = 0;
    tn_grad_begin(true);
    ck_assert_int_eq(outer(NULL, &plain, &z), TN_OK);
    ck_assert_int_eq(tn_backward(tn_sum(z)), TN_OK);
    tn_grad_end();
    ck_assert_int_eq(tn_recompute_call(outer, NULL, release, &a, 1, &y, 1, 0), TN_OK);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(a), at(tn_tensor_grad(plain), 0), at(tn_tensor_grad(plain), 1));
    ck_assert_int_eq(released, 1);
    FINE();
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

static tn_status differs(void *user, tn_tensor *const *in, tn_tensor **out)
{
    int kind = *(int *)user;
    tn_tensor *x = in[0];

    if (changes++ > 0)
        x = kind == 0 ? tn_exp(x) : tn_cat(in, 1, 0);
    if (changes > 1 && kind == 1)
        x = tn_cast(x, TN_F64);
    out[0] = tn_exp(x);
    if (kind == 2) {
        tn_tensor *gradient;

        return tn_grad(out, (tn_tensor *[]){ VEC(1, 1) }, 1, in, &gradient, 1, NULL);
    }
    return out[0] != NULL ? TN_OK : tn_error_code();
}

START_TEST(another_second_run_and_changed_inputs_are_refused)
{
    static const char *const words[] = { "A different number of tensors was saved",
                                         "different metadata than during the forward pass",
                                         "before the function returned" };

    for (int kind = 0; kind < 3; kind++) {
        TN_SCOPE;
        tn_tensor *a = LEAF(0.5, -1), *y;
        tn_status status;

        changes = 0;
        status = tn_recompute_call(differs, &kind, NULL, &a, 1, &y, 1, 0);
        if (kind < 2) {
            ck_assert_int_eq(status, TN_OK);
            status = tn_backward(tn_sum(y));
        }
        ck_assert_int_ne(status, TN_OK);
        FAILED(TN_ERR_RUNTIME, words[kind]);
    }
    TN_SCOPE;
    tn_tensor *a = LEAF(0.5, -1), *b = tn_mul_scalar(a, 2.0), *y[2], *in[2] = { b, b };

    weight = VEC(1, 2);
    ck_assert_int_eq(tn_recompute_call(two, NULL, NULL, in, 2, y, 2, 0), TN_OK);
    ck_assert_ptr_nonnull(tn_mul_scalar_(b, 2.0));
    ck_assert_int_ne(tn_backward(tn_sum(y[0])), TN_OK);
    FAILED(TN_ERR_RUNTIME, "modified by an inplace operation");
    ck_assert_int_ne(tn_recompute_call(two, NULL, NULL, in, 2, y, 2, 6), TN_OK);
    FAILED(TN_ERR_VALUE, "flags: unknown, got 0x6");
    tn_module *net = tn_module_new("%s", deep);
    ck_assert_ptr_null(tn_module_recompute_sequential(net, 9, a, 0));
    FAILED(TN_ERR_VALUE, "segments: out of range, got 9; expected 1 to 8");
    tn_module_drop(net);
    FINE();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t peak_of(tn_module *net, int64_t segments)
{
    TN_SCOPE;
    const tn_device *device = tn_device_find("cpu");
    tn_memory_stats stats = { 0 };
    tn_tensor *x = tn_ones(TN_SHAPE(2048, WIDTH)), *y;
    int64_t before;

    ck_assert_int_eq(tn_module_zero_grad(net), TN_OK);
    ck_assert_int_eq(tn_device_memory(device, &stats), TN_OK);
    before = stats.live;
    ck_assert_int_eq(tn_device_reset_peak(device), TN_OK);
    y = segments > 0 ? tn_module_recompute_sequential(net, segments, x, 0) : tn_module_call(net, x);
    ck_assert_msg(tn_backward(tn_sum(y)) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_device_memory(device, &stats), TN_OK);
    return stats.peak - before;
}

START_TEST(a_deep_network_needs_less_memory)
{
    char text[2048] = "Sequential(";
    tn_module *net;
    int64_t plain, less;

    for (int i = 0; i < DEPTH; i++)
        tn_snprint(text + strlen(text), sizeof text - strlen(text), "%sLinear(%d, %d), Tanh()",
                   i > 0 ? ", " : "", WIDTH, WIDTH);
    net = tn_module_new("%s)", text);
    ck_assert_msg(net != NULL, "%s", tn_error_text());
    plain = peak_of(net, 0);
    less = peak_of(net, 6);
    printf("peak of %d layers: %lld bytes, in 6 segments: %lld bytes\n", DEPTH, (long long)plain,
           (long long)less);
    ck_assert_int_lt(less * 2, plain);
    tn_module_drop(net);
    FINE();
}
END_TEST

START_TEST(every_allocation_of_a_recompute_can_fail)
{
    bool done = false;
    int64_t nodes = tn_grad_node_count();

    calls = 0;
    for (int64_t n = 1; !done; n++) {
        TN_SCOPE;
        tn_tensor *a = LEAF(0.5, -1), *y;
        tn_status status;

        weight = VEC(3, 4);
        ck_assert_int_lt(n, 3000);
        released = 0;
        tn__memory_fail((uint64_t)n);
        status = tn_recompute_call(outer, NULL, release, &a, 1, &y, 1, 0);
        if (status == TN_OK)
            status = tn_backward(tn_sum(y));
        done = (int64_t)tn__memory_fail(0) < n;
        ck_assert(done ? status == TN_OK : tn_failed() && tn_error_code() == TN_ERR_MEMORY);
        tn_error_clear();
        tn_scope_end(tn_scope_begin());
    }
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recompute");
    TCase *tcase = tcase_create("recompute");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, gradients_are_those_without_recompute_to_the_bit);
    tcase_add_test(tcase, several_inputs_and_outputs_and_second_derivatives);
    tcase_add_test(tcase, nested_recomputed_parts_run_from_the_outside_in);
    tcase_add_test(tcase, another_second_run_and_changed_inputs_are_refused);
    tcase_add_test(tcase, a_deep_network_needs_less_memory);
    tcase_add_test(tcase, every_allocation_of_a_recompute_can_fail);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
