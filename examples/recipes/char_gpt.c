/* SPDX-License-Identifier: MIT
 *
 * Trains a small GPT on a text, character by character, and then generates text with it:
 *
 *     char_gpt TEXT [STEPS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

enum { CONTEXT = 64, BATCH = 32, LETTERS = 500 };

/* One step of training on a batch; returns the loss. */
static double learn(tn_module *net, tn_optimizer *optimizer, tn_pack *batch)
{
    TN_SCOPE;
    tn_tensor *x = tn_pack_tensor(batch, 0), *next = tn_pack_tensor(batch, 1);
    tn_tensor *logits = tn_flatten(tn_module_call(net, x), 0, 1); /* [N * L, 256] */
    tn_tensor *loss = tn_cross_entropy(logits, tn_flatten(next, 0, 1));

    tn_optimizer_zero_grad(optimizer);
    tn_backward(loss);
    tn_module_clip_grad_norm(net, 1.0, 2.0, false, NULL);
    tn_optimizer_step(optimizer);
    return tn_item(loss);
}

static void train(tn_module *net, tn_loader *loader, int steps)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, "AdamW(lr=3e-3, betas=(0.9, 0.99))");
    tn_scheduler *scheduler = tn_scheduler_new(
        optimizer, "OneCycleLR(max_lr=3e-3, total_steps=%d, pct_start=0.1)", steps + 1);
    double sum = 0;

    for (int step = 1; step <= steps && !tn_failed(); step++) {
        tn_pack *batch = tn_loader_next(loader);
        if (batch == NULL) /* the next epoch */
            batch = tn_loader_next(loader);
        sum += learn(net, optimizer, batch);
        tn_scheduler_step(scheduler);
        if (step % 100 == 0 || step == steps) {
            int since = step % 100 == 0 ? 100 : step % 100;
            printf("step %4d  loss %.3f\n", step, sum / since);
            fflush(stdout);
            sum = 0;
        }
    }
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
}

/* Draws the next character after `text`, one of the ten that are most likely. */
static int draw(tn_module *net, const unsigned char *text, int64_t length)
{
    TN_SCOPE;
    int64_t tokens[CONTEXT], count = length < CONTEXT ? length : CONTEXT;
    tn_tensor *likely = NULL, *which = NULL;

    for (int64_t i = 0; i < count; i++)
        tokens[i] = text[length - count + i];
    tn_tensor *x = tn_tensor_from(tokens, TN_I64, TN_SHAPE(1, count));
    tn_tensor *last = tn_select(tn_select(tn_module_call(net, x), 0, 0), 0, -1); /* [256] */
    tn_topk(last, 10, &likely, &which);
    tn_tensor *chance = tn_softmax(tn_mul_scalar(likely, 1 / 0.8), 0);
    tn_tensor *place = tn_multinomial(chance, 1);
    return (int)tn_item(tn_index_select(which, place, 0));
}

static void speak(tn_module *net, const char *prompt)
{
    unsigned char text[LETTERS + 64];
    int64_t length = (int64_t)strlen(prompt);

    memcpy(text, prompt, (size_t)length);
    tn_module_eval(net);
    tn_grad_begin(false);
    while (length < LETTERS && !tn_failed()) {
        text[length] = (unsigned char)draw(net, text, length);
        length++;
    }
    tn_grad_end();
    if (!tn_failed())
        printf("%.*s\n", (int)length, (const char *)text);
}

int main(int count, char **arguments)
{
    if (count < 2) {
        fprintf(stderr, "usage: char_gpt TEXT [STEPS]\n");
        return 2;
    }
    tn_random_seed(1);
    tn_dataset *text = tn_dataset_new("TextBytes(%q, length=%d, stride=1)", arguments[1], CONTEXT);
    tn_loader *loader = tn_loader_new(text, "batch_size=%d, shuffle=True, seed=1", BATCH);
    tn_module *net = tn_module_new(
        "gpt2_small(vocab_size=256, n_positions=%d, n_embd=128, n_layer=3, n_head=4, dropout=0.0)",
        CONTEXT);

    if (!tn_failed())
        train(net, loader, count > 2 ? atoi(arguments[2]) : 1500);
    if (!tn_failed())
        speak(net, "Alice ");
    tn_module_save(net, "char_gpt.safetensors");
    if (tn_failed())
        fprintf(stderr, "char_gpt: %s\n", tn_error_text());
    tn_module_drop(net);
    tn_loader_drop(loader);
    tn_dataset_drop(text);
    return tn_failed();
}
