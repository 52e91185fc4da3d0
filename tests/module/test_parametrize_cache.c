/* SPDX-License-Identifier: MIT
 *
 * Scopes in which a thread computes each parametrized tensor once, and several threads. */
#include "tests/module/parametrize.h"

#include <pthread.h>
#include <tenon/convert.h>
#include <tenon/prune.h>

/* ---- caching --------------------------------------------------------------------------------- */

static int evaluations;

static tn_tensor *counted(tn_module *self, tn_tensor *x)
{
    (void)self;
    evaluations++;
    return tn_mul_scalar(x, 3.0);
}

/* test_caching_parametrization, test_caching_parametrization_with_transfer_... */
START_TEST(a_cached_scope_computes_once)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)"), *n = parsed("Linear(2, 2)");

    ck_assert_int_eq(with(m, "weight", own("Counted", counted, NULL), 0), TN_OK);
    ck_assert_int_eq(with(n, "weight", own("Counted", counted, NULL), 0), TN_OK);
    evaluations = 0;
    ck_assert_int_eq(tn_parametrize_cache_begin(), TN_OK);
    tn_tensor *value = tn_module_get(m, "weight");
    ck_assert_int_eq(tn_parametrize_cache_begin(), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "weight"), value);
    ck_assert_ptr_ne(tn_module_get(n, "weight"), value);
    tn_parametrize_cache_end();
    ck_assert_ptr_eq(tn_module_get(m, "weight"), value);
    ck_assert_int_eq(evaluations, 2);
    /* Both uses are in one graph, and both contribute to the gradient. */
    tn_tensor *sum = tn_add(tn_sum(tn_module_get(m, "weight")), tn_sum(tn_module_get(m, "weight")));
    ck_assert_int_eq(tn_backward(sum), TN_OK);
    HAS(tn_tensor_grad(tn_module_find_tensor(m, "parametrizations.weight.original")), 6, 6, 6, 6);
    /* A change of the list of parametrizations drops the cached values. */
    ck_assert_int_eq(with(m, "weight", own("PlusOne", plus_one, NULL), 0), TN_OK);
    ck_assert_ptr_ne(tn_module_get(m, "weight"), value);
    tn_module *to = parsed("Linear(2, 2)");
    ck_assert_int_eq(tn_parametrize_transfer(m, to, NULL), TN_OK);
    ck_assert(equal_values(tn_module_get(to, "weight"), tn_module_get(m, "weight")));
    tn_module_drop(to);
    tn_parametrize_cache_end();
    evaluations = 0;
    ck_assert_ptr_ne(tn_module_get(m, "weight"), tn_module_get(m, "weight"));
    ck_assert_int_eq(evaluations, 2);
    tn_parametrize_cache_end(); /* one too many does nothing */
    TN_PROVES("PRM-009");
    tn_module_drop(m);
    tn_module_drop(n);
}
END_TEST

/* ---- what ends a cached value ---------------------------------------------------------------- */

/* Changes a Linear(2, 2) whose weight is twice its original, which is parametrized, too. */
struct change {
    const char *name;
    tn_status (*act)(tn_module *m);
    bool seen;
};

static tn_tensor *original(tn_module *m)
{
    return tn_module_find_tensor(m, "parametrizations.weight.parametrizations.original.original");
}

static tn_module *list(tn_module *m)
{
    return tn_module_find(m, "parametrizations.weight");
}

static tn_status assigns(tn_module *m)
{
    return tn_module_set(m, "weight", tn_ones(TN_SHAPE(2, 2)));
}

static tn_status assigns_original(tn_module *m)
{
    return tn_module_set(list(m), "original", tn_ones(TN_SHAPE(2, 2)));
}

static tn_status replaces_original(tn_module *m)
{
    return tn_module_set(tn_module_find(list(m), "parametrizations.original"), "original",
                         tn_parameter(tn_ones(TN_SHAPE(2, 2)), true));
}

static tn_status appends(tn_module *m)
{
    return with(m, "weight", own("PlusOne", plus_one, NULL), 0);
}

static tn_status appends_below(tn_module *m)
{
    return with(list(m), "original", own("PlusOne", plus_one, NULL), 0);
}

static tn_status removes_below(tn_module *m)
{
    return tn_parametrize_remove(list(m), "original", false);
}

static tn_status replaces_parametrization(tn_module *m)
{
    tn_module *fresh = own("PlusOne", plus_one, NULL);
    tn_status status = tn_module_assign(list(m), "0", tn_value_module(fresh));

    tn_module_drop(fresh);
    return status;
}

static tn_status loads(tn_module *m)
{
    tn_module *other = tn_module_copy(m);
    tn_status status = tn_init(original(other), "zeros()");
    tn_state *state = tn_module_state(other);

    if (status == TN_OK)
        status = tn_module_load_state(m, state, true);
    tn_state_drop(state);
    tn_module_drop(other);
    return status;
}

static tn_status converts(tn_module *m)
{
    return tn_module_to(m, NULL, TN_F64);
}

static tn_status empties(tn_module *m)
{
    tn_status status = tn_module_to_empty(m, tn_tensor_device(original(m)), true);

    return status == TN_OK ? tn_init(original(m), "zeros()") : status;
}

static tn_status becomes_zero(void *user, tn_tensor *tensor, tn_tensor **out)
{
    (void)user;
    *out = tn_zeros(tn_tensor_shape(tensor));
    return TN_OK;
}

static tn_status maps(tn_module *m)
{
    return tn_module_map(m, true, becomes_zero, NULL);
}

static tn_status changes_another(tn_module *m)
{
    return tn_module_set(m, "bias", tn_parameter(tn_ones(TN_SHAPE(2)), true));
}

static tn_status fills_in_place(tn_module *m)
{
    return tn_init(original(m), "zeros()");
}

static tn_status evaluates(tn_module *m)
{
    return tn_module_eval(m);
}

/* The changes that take effect within a cached scope, and those that do not, as the comment of
 * tn_parametrize_cache_begin says. */
START_TEST(changes_within_a_cached_scope_are_seen)
{
    static const struct change changes[] = {
        { "assign", assigns, true },
        { "assign the original", assigns_original, true },
        { "replace the original", replaces_original, true },
        { "append", appends, true },
        { "append to the original", appends_below, true },
        { "remove from the original", removes_below, true },
        { "replace a parametrization", replaces_parametrization, true },
        { "load", loads, true },
        { "to f64", converts, true },
        { "to_empty", empties, true },
        { "map", maps, true },
        { "another parameter", changes_another, false },
        { "in place", fills_in_place, false },
        { "eval", evaluates, false },
    };

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        TN_SCOPE;
        tn_module *m = parsed("Linear(2, 2)");
        tn_tensor *before, *within, *after;

        ck_assert_int_eq(tn_init(tn_module_get(m, "weight"), "constant(12)"), TN_OK);
        ck_assert_int_eq(with(m, "weight", own("Double", doubled, halved), 0), TN_OK);
        ck_assert_int_eq(with(list(m), "original", own("PlusOne", plus_one, minus_one), 0), TN_OK);
        ck_assert_int_eq(tn_parametrize_cache_begin(), TN_OK);
        before = tn_module_get(m, "weight");
        ck_assert_ptr_eq(tn_module_get(m, "weight"), before);
        ck_assert_msg(changes[i].act(m) == TN_OK, "%s: %s", changes[i].name, tn_error_text());
        within = tn_module_get(m, "weight");
        ck_assert_msg(within != NULL, "%s: %s", changes[i].name, tn_error_text());
        ck_assert_msg((within != before) == changes[i].seen, "%s", changes[i].name);
        tn_parametrize_cache_end();
        after = tn_module_get(m, "weight");
        if (changes[i].seen) {
            ck_assert_msg(equal_values(within, after), "%s", changes[i].name);
            ck_assert_int_eq(tn_tensor_dtype(within), tn_tensor_dtype(after));
            ck_assert_msg(!equal_values(before, after) ||
                              tn_tensor_dtype(before) != tn_tensor_dtype(after),
                          "%s", changes[i].name);
        }
        FINE();
        tn_module_drop(m);
    }
}
END_TEST

/* A tensor or an option of a parametrization, such as the A of LoRA. */
START_TEST(changes_of_a_parametrization_are_seen)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)"), *lora;

    ck_assert_int_eq(tn_parametrize_with(m, "weight", "LoRA(rank=1, alpha=1)"), TN_OK);
    lora = tn_parametrization(m, "weight", 0);
    ck_assert_int_eq(
        tn_init(tn_module_find_tensor(m, "parametrizations.weight.original"), "zeros()"), TN_OK);
    ck_assert_int_eq(tn_init(tn_module_get(lora, "lora_B"), "ones()"), TN_OK);
    ck_assert_int_eq(tn_parametrize_cache_begin(), TN_OK);
    ck_assert_ptr_nonnull(tn_module_get(m, "weight"));
    ck_assert_int_eq(
        tn_module_set(lora, "lora_A", tn_parameter(tn_reshape(VEC(3, 4), TN_SHAPE(1, 2)), true)),
        TN_OK);
    HAS(tn_module_get(m, "weight"), 3, 4, 3, 4);
    ck_assert_int_eq(tn_prune(lora, "lora_A", "L1Unstructured(amount=1)"), TN_OK);
    HAS(tn_module_get(m, "weight"), 0, 4, 0, 4);
    tn_parametrize_cache_end();
    tn_module_drop(m);
}
END_TEST

static tn_tensor *minus_ones(void *user, tn_module *module, const char *name)
{
    (void)user, (void)module, (void)name;
    return tn_mul_scalar(tn_ones(TN_SHAPE(2, 2)), -1.0);
}

START_TEST(an_option_and_a_computed_original_are_seen)
{
    static const tn_computed how = { .get = minus_ones };
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)"), *leaky;

    ck_assert_int_eq(tn_init(tn_module_get(m, "weight"), "constant(-2)"), TN_OK);
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "LeakyReLU(negative_slope=0.5)"), TN_OK);
    leaky = tn_parametrization(m, "weight", 0);
    ck_assert_int_eq(tn_parametrize_cache_begin(), TN_OK);
    HAS(tn_module_get(m, "weight"), -1, -1, -1, -1);
    ck_assert_int_eq(tn_module_option_set(leaky, "negative_slope", tn_value_float(2)), TN_OK);
    HAS(tn_module_get(m, "weight"), -4, -4, -4, -4);
    ck_assert_int_eq(tn_module_remove(list(m), "original"), TN_OK);
    ck_assert_int_eq(tn_module_add_computed(list(m), "original", &how, NULL), TN_OK);
    HAS(tn_module_get(m, "weight"), -2, -2, -2, -2);
    ck_assert_int_eq(tn_module_add_computed(list(m), "original", &how, NULL), TN_OK);
    tn_parametrize_cache_end();
    tn_module_drop(m);
}
END_TEST

/* A value that was computed while nothing was recorded has no graph. */
START_TEST(a_cached_value_without_a_graph_is_not_used_for_training)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");
    tn_tensor *plain, *recorded;

    ck_assert_int_eq(with(m, "weight", own("Counted", counted, NULL), 0), TN_OK);
    evaluations = 0;
    ck_assert_int_eq(tn_parametrize_cache_begin(), TN_OK);
    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    plain = tn_module_get(m, "weight");
    tn_grad_end();
    recorded = tn_module_get(m, "weight");
    ck_assert(!tn_tensor_requires_grad(plain) && tn_tensor_requires_grad(recorded));
    ck_assert_int_eq(tn_backward(tn_sum(recorded)), TN_OK);
    HAS(tn_tensor_grad(tn_module_find_tensor(m, "parametrizations.weight.original")), 3, 3, 3, 3);
    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "weight"), plain);
    tn_grad_end();
    ck_assert_ptr_eq(tn_module_get(m, "weight"), recorded);
    ck_assert_int_eq(evaluations, 2);
    /* A change drops both. */
    ck_assert_int_eq(tn_module_set(tn_module_find(m, "parametrizations.weight"), "original",
                                   tn_parameter(tn_ones(TN_SHAPE(2, 2)), true)),
                     TN_OK);
    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    HAS(tn_module_get(m, "weight"), 3, 3, 3, 3);
    tn_grad_end();
    HAS(tn_module_get(m, "weight"), 3, 3, 3, 3);
    tn_parametrize_cache_end();
    tn_module_drop(m);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

struct call {
    pthread_t thread;
    tn_module *module;
    double sum;
};

static void *call_in_eval(void *user)
{
    struct call *c = user;

    for (int i = 0; i < 20; i++) {
        TN_SCOPE;
        tn_grad_begin(false);
        tn_parametrize_cache_begin();
        c->sum = tn_tensor_item(tn_sum(tn_module_call(c->module, tn_ones(TN_SHAPE(3, 4)))));
        tn_parametrize_cache_end();
        tn_grad_end();
    }
    return NULL;
}

START_TEST(several_threads_evaluate_one_module)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(4, 5), Linear(5, 3))");
    struct call calls[4];

    ck_assert_int_eq(tn_parametrize_with(m, "0.weight", "SpectralNorm()"), TN_OK);
    ck_assert_int_eq(tn_parametrize_with(m, "0.bias", "WeightNorm()"), TN_OK);
    ck_assert_int_eq(tn_parametrize_with(m, "1.weight", "Orthogonal()"), TN_OK);
    ck_assert_int_eq(tn_parametrize_with(m, "1.weight", "LoRA(rank=2)"), TN_OK);
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    double expected = tn_tensor_item(tn_sum(tn_module_call(m, tn_ones(TN_SHAPE(3, 4)))));
    for (int i = 0; i < 4; i++) {
        calls[i].module = m;
        ck_assert_int_eq(pthread_create(&calls[i].thread, NULL, call_in_eval, &calls[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(calls[i].thread, NULL);
        ck_assert_double_eq(calls[i].sum, expected);
    }
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_cached_scope_computes_once,
        changes_within_a_cached_scope_are_seen,
        changes_of_a_parametrization_are_seen,
        an_option_and_a_computed_original_are_seen,
        a_cached_value_without_a_graph_is_not_used_for_training,
        several_threads_evaluate_one_module,
        NULL,
    };
    return suite_run("cached parametrized tensors", tests);
}
