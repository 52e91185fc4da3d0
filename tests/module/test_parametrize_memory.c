/* SPDX-License-Identifier: MIT
 *
 * Law 4: every allocation of parametrizing, assigning, transferring and removing is made to fail in
 * turn. After a failure the module is as before, and nothing is lost. */
#include "tests/module/parametrize.h"

enum { MOST = 20000 };

/* What is tried: it returns a status, and gets a fresh module each time. */
struct trial {
    const char *name;
    tn_status (*prepare)(tn_module *m);
    tn_status (*act)(tn_module *m);
};

static tn_status nothing(tn_module *m)
{
    (void)m;
    return TN_OK;
}

static tn_status add_weight_norm(tn_module *m)
{
    return tn_parametrize_with(m, "weight", "WeightNorm(dim=%d)", 0);
}

static tn_status add_symmetric(tn_module *m)
{
    return tn_parametrize_with(m, "weight", "Symmetric()");
}

static tn_status add_orthogonal(tn_module *m)
{
    return tn_parametrize_with(m, "weight", "Orthogonal()");
}

static tn_status add_spectral_norm(tn_module *m)
{
    return tn_parametrize_with(m, "weight", "SpectralNorm()");
}

static tn_status add_lora(tn_module *m)
{
    return tn_parametrize_each(m, "w*", "LoRA(rank=1)") == 1 ? TN_OK : tn_error_last_code();
}

static tn_status add_two(tn_module *m)
{
    tn_status status = add_symmetric(m);

    return status == TN_OK ? tn_parametrize_with(m, "bias", "WeightNorm()") : status;
}

static tn_status add_all(tn_module *m)
{
    return tn_parametrize_each(m, "weight bias", "SpectralNorm()") == 2 ? TN_OK
                                                                        : tn_error_last_code();
}

static tn_status remove_it(tn_module *m)
{
    return tn_parametrize_remove(m, "weight", true);
}

static tn_status assign(tn_module *m)
{
    return tn_module_set(m, "weight", tn_tensor_full(TN_SHAPE(3, 3), 2, TN_F32, NULL));
}

static tn_status copy(tn_module *m)
{
    tn_module *made = tn_module_copy(m);

    tn_module_drop(made);
    return made != NULL ? TN_OK : tn_error_last_code();
}

static tn_status transfer(tn_module *m)
{
    tn_module *to = tn_module_plain("Net");
    tn_status status = to != NULL ? tn_parametrize_transfer(m, to, NULL) : tn_error_last_code();

    tn_module_drop(to);
    return status;
}

static tn_status evaluate(tn_module *m)
{
    tn_status status = tn_parametrize_cache_begin();
    tn_tensor *value = tn_module_get(m, "weight");

    tn_parametrize_cache_end();
    return value != NULL ? status : tn_error_last_code();
}

static tn_status adapters(tn_module *m)
{
    tn_state *state = tn_parametrize_state(m);
    tn_status status = state != NULL ? tn_parametrize_load(m, state) : tn_error_last_code();

    tn_state_drop(state);
    return status;
}

static const struct trial trials[] = {
    { "WeightNorm", nothing, add_weight_norm },
    { "Symmetric", nothing, add_symmetric },
    { "Orthogonal", nothing, add_orthogonal },
    { "SpectralNorm", nothing, add_spectral_norm },
    { "LoRA", nothing, add_lora },
    { "a second one", add_symmetric, add_orthogonal },
    { "a second name", add_symmetric, add_all },
    { "all", nothing, add_all },
    { "remove WeightNorm", add_weight_norm, remove_it },
    { "remove Symmetric", add_symmetric, remove_it },
    { "remove one of two", add_two, remove_it },
    { "assign to WeightNorm", add_weight_norm, assign },
    { "assign to Symmetric", add_symmetric, assign },
    { "assign to Orthogonal", add_orthogonal, assign },
    { "copy", add_two, copy },
    { "transfer", add_two, transfer },
    { "evaluate", add_weight_norm, evaluate },
    { "adapters", add_lora, adapters },
};

static tn_module *module_with(const struct trial *trial)
{
    tn_module *m = parsed("Linear(3, 3)");

    ck_assert_msg(trial->prepare(m) == TN_OK, "%s: %s", trial->name, tn_error_text());
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    return m;
}

static void try_allocation(const struct trial *trial, uint64_t n, bool *reached, int *failures)
{
    TN_SCOPE;
    tn_module *m = module_with(trial);
    tn_tensor *before = tn_clone(tn_detach(tn_module_get(m, "weight")));
    char text[1024], names[1024];

    snprintf(text, sizeof text, "%s", printed(m));
    snprintf(names, sizeof names, "%s", keys(m));
    tn__memory_fail(n);
    tn_status status = trial->act(m);
    *reached = tn__memory_fail(0) >= n;
    ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "%s, allocation %d: %s", trial->name,
                  (int)n, tn_error_text());
    if (status != TN_OK) {
        ++*failures;
        tn_error_clear();
        ck_assert_str_eq(printed(m), text);
        ck_assert_str_eq(keys(m), names);
        ck_assert_msg(equal_values(before, tn_module_get(m, "weight")), "%s, allocation %d",
                      trial->name, (int)n);
        ck_assert_msg(trial->act(m) == TN_OK, "%s, after allocation %d: %s", trial->name, (int)n,
                      tn_error_text());
    }
    tn_module_drop(m);
}

START_TEST(each_allocation_fails_in_turn_law_4)
{
    tn_module *warm = parsed("Linear(3, 3)");

    for (int64_t i = 0; i < tn__countof(trials); i++) {
        int failures = 0;
        bool reached = true;
        int64_t nodes = tn_grad_node_count();
        for (uint64_t n = 1; reached; n++) {
            ck_assert_uint_lt(n, MOST);
            try_allocation(&trials[i], n, &reached, &failures);
        }
        ck_assert_msg(failures > 3, "%s: %d failures", trials[i].name, failures);
        ck_assert_int_eq(tn_grad_node_count(), nodes);
    }
    tn_module_drop(warm);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { each_allocation_fails_in_turn_law_4, NULL };

    return suite_run("memory of parametrizations", tests);
}
