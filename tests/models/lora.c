/* SPDX-License-Identifier: MIT
 *
 * Trains LoRA adapters of a GPT-2 for 20 steps, for make_lora.py:
 *
 *     lora SPEC RANK ALPHA OPTIMIZER WEIGHTS START DATA ADAPTERS RESULTS
 *
 * Loads WEIGHTS into the network and START into the adapters, and prints the loss of each step on
 * the tokens in DATA. Writes ADAPTERS alone, and to RESULTS the results of the trained network
 * (trained), of a new one that loads WEIGHTS and ADAPTERS (loaded), and of this one with the
 * adapters merged into the weights (merged). */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { STEPS = 20 };

/* A network with its weights, and with adapters from a file. */
static tn_module *network(char **argv, const char *adapters)
{
    tn_module *net = tn_module_parse_skip_init(NULL, argv[1]);
    tn_state *state = tn_state_load(adapters);
    tn_status status = tn_module_load(net, argv[5]);

    if (status == TN_OK)
        status = tn_module_set_requires_grad(net, false);
    if (status == TN_OK && tn_parametrize_each(net, "gpt2.Conv1D:*.weight",
                                               "LoRA(rank=%s, alpha=%s)", argv[2], argv[3]) < 0)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = tn_parametrize_load(net, state);
    tn_state_drop(state);
    if (status == TN_OK)
        return net;
    tn_module_drop(net);
    return NULL;
}

static tn_status step(tn_module *net, tn_optimizer *optimizer, tn_tensor *tokens)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *logits = tn_module_call(net, tokens), *loss, *next;
    int64_t length = tn_tensor_shape(tokens).at[1];
    tn_status status = TN_ERR_RUNTIME;

    if (logits != NULL) {
        logits = tn_narrow(logits, 1, 0, length - 1);
        logits = tn_flatten(logits, 0, 1);
        next = tn_flatten(tn_narrow(tokens, 1, 1, length - 1), 0, 1);
        loss = tn_cross_entropy(logits, next);
        status = tn_optimizer_zero_grad(optimizer);
        if (status == TN_OK)
            status = tn_backward(loss);
        if (status == TN_OK)
            status = tn_optimizer_step(optimizer);
        if (status == TN_OK)
            printf("%.17g\n", tn_tensor_item(loss));
    }
    tn_scope_end(scope);
    return status;
}

static tn_status keep(tn_module *net, tn_tensor *tokens, tn_state *results, const char *name)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *y;
    tn_status status;

    tn_module_eval(net);
    tn_grad_begin(false);
    y = tn_module_call(net, tokens);
    tn_grad_end();
    status = y != NULL ? tn_state_set(results, name, y) : tn_error_last_code();
    tn_scope_end(scope);
    return status;
}

static tn_status train(char **argv, tn_tensor *tokens, tn_state *results)
{
    tn_module *net = network(argv, argv[6]);
    tn_optimizer *optimizer = tn_optimizer_new(net, "%s", argv[4]);
    tn_status status = optimizer != NULL ? TN_OK : tn_error_last_code();
    tn_state *adapters = NULL;

    for (int i = 0; i < STEPS && status == TN_OK; i++)
        status = step(net, optimizer, tokens);
    if (status == TN_OK)
        status = keep(net, tokens, results, "trained");
    if (status == TN_OK)
        adapters = tn_parametrize_state(net);
    if (status == TN_OK)
        status = tn_state_save(adapters, argv[8]);
    tn_state_drop(adapters);
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    return status;
}

static tn_status load_and_merge(char **argv, tn_tensor *tokens, tn_state *results)
{
    tn_module *net = network(argv, argv[8]);
    tn_status status = keep(net, tokens, results, "loaded");

    if (status == TN_OK && tn_parametrize_remove_each(net, NULL, true) < 0)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = keep(net, tokens, results, "merged");
    tn_module_drop(net);
    return status;
}

int main(int argc, char **argv)
{
    uint64_t scope = tn_scope_begin();
    tn_state *data = argc == 10 ? tn_state_load(argv[7]) : NULL, *results = tn_state_new();
    tn_status status = TN_ERR_VALUE;

    if (data != NULL) {
        tn_tensor *tokens = tn_state_tensor(data, 0);
        status = train(argv, tokens, results);
        if (status == TN_OK)
            status = load_and_merge(argv, tokens, results);
        if (status == TN_OK)
            status = tn_state_save(results, argv[9]);
    }
    if (status != TN_OK)
        fprintf(stderr, "lora: %s\n", tn_error_text());
    tn_state_drop(data);
    tn_state_drop(results);
    tn_scope_end(scope);
    tn_shutdown();
    return status == TN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
