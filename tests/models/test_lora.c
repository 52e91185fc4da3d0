/* SPDX-License-Identifier: MIT
 *
 * LoRA adapters of a small GPT-2, trained as peft and PyTorch train them (make_lora.py): losses,
 * adapters, results; adapters that are saved alone, loaded, and merged; and patterns. */
#include "tests/module/parametrize.h"

#include "lora_values.h"

#include <unistd.h>

#define SPEC                                                                                       \
    "gpt2_small(vocab_size=13, n_positions=12, n_embd=8, n_layer=2, n_head=2, dropout=0, "         \
    "dtype='float64')"
#define LORA "LoRA(rank=2, alpha=4)"

enum { COUNT = (int)(sizeof losses / sizeof *losses), LENGTH = 8, WORDS = 13 };

static const char *const file = "lora-adapters.safetensors";

/* The formula of make_lora.py. */
static tn_status fill(void *user, const char *path, tn_tensor *tensor)
{
    int64_t seed = 0, count = tn_tensor_numel(tensor);
    double *values = malloc((size_t)count * sizeof *values);
    (void)user;

    if (strstr(path, "lora_B") != NULL || (user != NULL && strstr(path, "lora_A") == NULL)) {
        free(values);
        return TN_OK;
    }
    for (const char *c = path; *c != '\0'; c++)
        seed += (unsigned char)*c;
    for (int64_t k = 0; k < count; k++)
        values[k] = (double)((7 * k + 13 * seed) % 29 - 14) / 58.0;
    ck_assert_int_eq(tn_tensor_copy_in(tensor, values, (size_t)count * sizeof *values), TN_OK);
    free(values);
    return TN_OK;
}

/* A frozen network with the weights of the formula, and with adapters. */
static tn_module *network(void)
{
    tn_module *net = parsed(SPEC);

    ck_assert_int_eq(tn_module_each_tensor(net, TN_SLOT_PARAMETER, false, fill, NULL), TN_OK);
    ck_assert_int_eq(tn_module_set_requires_grad(net, false), TN_OK);
    ck_assert_msg(tn_parametrize_each(net, "gpt2.Conv1D:*.weight", "%s", LORA) == 8, "%s",
                  tn_error_text());
    ck_assert_int_eq(tn_module_each_tensor(net, TN_SLOT_PARAMETER, false, fill, (void *)file),
                     TN_OK);
    return net;
}

static tn_tensor *tokens(void)
{
    int64_t ids[2 * LENGTH];

    for (int i = 0; i < 2 * LENGTH; i++)
        ids[i] = i * 5 % WORDS;
    return tn_tensor_from(ids, TN_I64, TN_SHAPE(2, LENGTH));
}

static double step(tn_module *net, tn_optimizer *optimizer)
{
    TN_SCOPE;
    tn_tensor *y = tn_narrow(tn_module_call(net, tokens()), 1, 0, LENGTH - 1);
    tn_tensor *next = tn_flatten(tn_narrow(tokens(), 1, 1, LENGTH - 1), 0, 1);
    tn_tensor *loss = tn_cross_entropy(tn_flatten(y, 0, 1), next);

    ck_assert_int_eq(tn_optimizer_zero_grad(optimizer), TN_OK);
    ck_assert_msg(tn_backward(loss) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    return tn_tensor_item(loss);
}

static void has_results(tn_module *net)
{
    tn_tensor *y = tn_flatten(tn_module_call(net, tokens()), 0, -1);

    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(y), (int64_t)(sizeof results / sizeof *results));
    for (int64_t i = 0; i < tn_tensor_numel(y); i++)
        ck_assert_double_eq_tol(tn_tensor_item(tn_select(y, 0, i)), results[i], 1e-9);
}

START_TEST(adapters_train_as_in_pytorch_and_are_saved_alone_and_merged)
{
    TN_SCOPE;
    tn_module *net = network(), *again = network(), *plain = parsed(SPEC);
    tn_optimizer *optimizer = tn_optimizer_new(net, "AdamW(lr=0.01)");
    int64_t seen = 0;
    char text[4096];

    ck_assert_int_eq(tn_module_eval(net), TN_OK);
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_eq_tol(step(net, optimizer), losses[i], 1e-10);
    tn_state *adapters = tn_parametrize_state(net), *whole = tn_module_state(net);
    ck_assert_msg(adapters != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_state_count(adapters), 16);
    ck_assert_int_gt(tn_state_count(whole), 40);
    ck_assert_str_eq(tn_state_name(adapters, 0),
                     "transformer.h.0.attn.c_attn.parametrizations.weight.0.lora_A");
    for (int64_t k = 0; k < tn_state_count(adapters); k++) {
        tn_tensor *flat = tn_flatten(tn_state_tensor(adapters, k), 0, -1);
        for (int64_t i = 0; i < tn_tensor_numel(flat); i++)
            ck_assert_double_eq_tol(tn_tensor_item(tn_select(flat, 0, i)), trained[seen++], 1e-9);
    }
    ck_assert_int_eq(seen, (int64_t)(sizeof trained / sizeof *trained));
    has_results(net);

    ck_assert_msg(tn_state_save(adapters, file) == TN_OK, "%s", tn_error_text());
    tn_state *loaded = tn_state_load(file);
    ck_assert_msg(tn_parametrize_load(again, loaded) == TN_OK, "%s", tn_error_text());
    has_results(again);
    ck_assert_int_eq(tn_parametrize_remove_each(again, "*.nothing", true), 0);
    ck_assert_int_eq(tn_parametrize_remove_each(again, NULL, true), 8);
    has_results(again);
    ck_assert(!tn_is_parametrized(again, "transformer.h.0.attn.c_attn.weight"));
    snprintf(text, sizeof text, "%s", printed(plain));
    ck_assert_str_eq(printed(again), text);

    /* A file of other adapters changes nothing. */
    ck_assert_int_eq(tn_parametrize_load(again, loaded), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "Unexpected key(s)");
    ck_assert_int_eq(tn_state_remove(loaded, tn_state_name(loaded, 3)), TN_OK);
    ck_assert_int_eq(tn_parametrize_load(net, loaded), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "Missing key(s)");
    ck_assert_int_eq(tn_parametrize_load(net, whole), TN_ERR_KEY);
    FAILED(TN_ERR_KEY, "belongs to no parametrization");
    has_results(net);
    unlink(file);
    tn_state_drop(loaded);
    tn_state_drop(whole);
    tn_state_drop(adapters);
    tn_optimizer_drop(optimizer);
    tn_module_drop(plain);
    tn_module_drop(again);
    tn_module_drop(net);
}
END_TEST

START_TEST(patterns_choose_parameters_and_failures_change_nothing)
{
    TN_SCOPE;
    tn_module *net = parsed("Sequential(a=Linear(3, 3), b=Sequential(Linear(3, 2), ReLU()), "
                            "c=LayerNorm(2))");
    char before[1024];
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3));

    snprintf(before, sizeof before, "%s", printed(net));
    ck_assert_int_eq(tn_parametrize_each(net, "*.waits", "WeightNorm()"), -1);
    FAILED(TN_ERR_KEY, "fits no parameter of Sequential, got \"*.waits\"");
    /* c.weight is no matrix: the parametrizations of a.weight and b.0.weight are undone. */
    tn_tensor *a = tn_module_find_tensor(net, "a.weight"), *y = tn_clone(tn_module_call(net, x));
    ck_assert_int_eq(tn_parametrize_each(net, "*.weight", "Orthogonal()"), -1);
    FAILED(TN_ERR_VALUE, "Got a tensor of 1 dimensions.");
    ck_assert_str_eq(printed(net), before);
    ck_assert_ptr_eq(tn_module_find_tensor(net, "a.weight"), a);
    ck_assert(equal_values(tn_module_call(net, x), y));
    ck_assert_str_eq(keys(net), "a.weight a.bias b.0.weight b.0.bias c.weight c.bias ");
    ck_assert_int_eq(tn_parametrize_each(net, "Linear:*.weight  c.weight", "%s", "WeightNorm()"),
                     3);
    ck_assert_int_eq(tn_parametrize_each(net, "b.?.weight", "LoRA(rank=%d)", 1), 1);
    ck_assert_int_eq(tn_parametrization_count(net, "b.0.weight"), 2);
    ck_assert_int_eq(tn_parametrize_remove_each(net, "b.*", true), 1);
    ck_assert(tn_is_parametrized(net, "a.weight") && !tn_is_parametrized(net, "b.0.weight"));
    ck_assert_int_eq(tn_parametrize_remove_each(net, NULL, false), -1);
    FAILED(TN_ERR_VALUE, "Cannot leave unparametrized");
    ck_assert_int_eq(tn_parametrize_remove_each(net, NULL, true), 2);
    for (int64_t i = 0; i < 4; i++)
        ck_assert_double_eq_tol(at(tn_module_call(net, x), i), at(y, i), 1e-5);
    tn_module_drop(net);
}
END_TEST

START_TEST(layouts_convolutions_and_dropout_of_lora)
{
    TN_SCOPE;
    tn_module *conv = parsed("Conv2d(2, 3, (2, 3))"), *m = parsed("Linear(4, 3)");
    tn_module *plain;

    ck_assert_int_eq(tn_parametrize_with(conv, "weight", "LoRA(rank=2, alpha=2)"), TN_OK);
    tn_tensor *a = tn_module_find_tensor(conv, "parametrizations.weight.0.lora_A");
    tn_tensor *b = tn_module_find_tensor(conv, "parametrizations.weight.0.lora_B");
    ck_assert_int_eq(tn_tensor_shape(a).at[1], 12);
    tn_tensor *before = tn_clone(tn_module_get(conv, "weight"));
    ck_assert(
        equal_values(before, tn_module_find_tensor(conv, "parametrizations.weight.original")));
    ck_assert_int_eq(tn_init(b, "ones()"), TN_OK);
    double sum = at(a, 5) + at(a, 12 + 5);
    ck_assert_double_eq_tol(at(tn_module_get(conv, "weight"), 5), at(before, 5) + sum, 1e-6);

    /* Dropout leaves out columns of the weight in training, and nothing in evaluation. */
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "LoRA(rank=1, alpha=1, dropout=0.5)"), TN_OK);
    ck_assert_int_eq(
        tn_init(tn_module_find_tensor(m, "parametrizations.weight.0.lora_A"), "ones()"), TN_OK);
    ck_assert_int_eq(
        tn_init(tn_module_find_tensor(m, "parametrizations.weight.0.lora_B"), "ones()"), TN_OK);
    tn_tensor *original = tn_module_find_tensor(m, "parametrizations.weight.original");
    int kept = 0, dropped = 0;
    for (int round = 0; round < 40; round++) {
        tn_tensor *more = tn_sub(tn_module_get(m, "weight"), original);
        for (int64_t i = 0; i < 4; i++) {
            ck_assert_double_eq_tol(at(more, i), at(more, i + 8), 1e-6);
            kept += fabs(at(more, i) - 2) < 1e-6;
            dropped += fabs(at(more, i)) < 1e-6;
        }
    }
    ck_assert_int_eq(kept + dropped, 160);
    ck_assert(kept > 40 && dropped > 40);
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    ck_assert_double_eq_tol(at(tn_sub(tn_module_get(m, "weight"), original), 3), 1, 1e-6);
    ck_assert(strstr(printed(m), "(0): LoRA(rank=1, alpha=1.0, dropout=0.5)") != NULL);

    /* Weights of a model without adapters, and what is refused. */
    plain = parsed("Linear(4, 3)");
    tn_state *state = tn_module_state(plain);
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "Missing key(s)"); /* the adapters */
    ck_assert_int_eq(tn_module_load_state(m, state, false), TN_OK);
    ck_assert(equal_values(original, tn_module_get(plain, "weight")));
    ck_assert_int_eq(tn_parametrize_with(m, "bias", "LoRA()"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "wrong shape, got [3]; expected 2 dimensions or more");
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "LoRA(rank=0)"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "rank: too small, got 0; expected 1 or more");
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "LoRA(dropout=1)"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "dropout: no probability, got 1");
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "LoRA(layout='row')"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "layout: unknown, got \"row\"; expected auto, out_in or in_out");
    ck_assert_int_eq(tn_parametrize_with(conv, "weight", "LoRA(layout='in_out')"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "for the layout in_out, got [3, 2, 2, 3]; expected 2");
    tn_state_drop(state);
    tn_module_drop(plain);
    tn_module_drop(conv);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        adapters_train_as_in_pytorch_and_are_saved_alone_and_merged,
        patterns_choose_parameters_and_failures_change_nothing,
        layouts_convolutions_and_dropout_of_lora,
        NULL,
    };
    return suite_run("LoRA", tests);
}
