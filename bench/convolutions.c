/* SPDX-License-Identifier: MIT
 *
 * Convolutions with channels last, and their two gradients: compares the device's own kernels with
 * those of a kernel pack.
 *   convolutions [--threads N] [--plugin GLOB] [--shape GLOB] [--turns N]
 * Two processes measure alternately with the same numbers: one loads the plugin that GLOB names
 * (kernels-onednn) and lets it compute every shape that it supports, the other does not load it.
 * Prints the shortest times in milliseconds, the ratio of the pack's time to that of the device's
 * own kernel, and the difference of the results. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "ops.h"

typedef struct figure {
    const char *name;
    int64_t images, inputs, outputs, groups, size, kernel, stride, padding, dilation;
} figure;

static const figure figures[] = {
    { "lenet-1", 64, 1, 6, 1, 28, 5, 1, 2, 1 },
    { "lenet-2", 64, 6, 16, 1, 14, 5, 1, 0, 1 },
    { "cifar-stem", 32, 3, 64, 1, 32, 3, 1, 1, 1 },
    { "cifar-64", 32, 64, 64, 1, 32, 3, 1, 1, 1 },
    { "cifar-64-half", 32, 64, 128, 1, 32, 3, 2, 1, 1 },
    { "cifar-64-point", 32, 64, 128, 1, 32, 1, 2, 0, 1 },
    { "cifar-128", 32, 128, 128, 1, 16, 3, 1, 1, 1 },
    { "cifar-128-half", 32, 128, 256, 1, 16, 3, 2, 1, 1 },
    { "cifar-128-point", 32, 128, 256, 1, 16, 1, 2, 0, 1 },
    { "cifar-256", 32, 256, 256, 1, 8, 3, 1, 1, 1 },
    { "cifar-256-half", 32, 256, 512, 1, 8, 3, 2, 1, 1 },
    { "cifar-512", 32, 512, 512, 1, 4, 3, 1, 1, 1 },
    { "photo-stem", 8, 3, 64, 1, 224, 7, 2, 3, 1 },
    { "photo-64", 8, 64, 64, 1, 56, 3, 1, 1, 1 },
    { "photo-64-half", 8, 64, 128, 1, 56, 3, 2, 1, 1 },
    { "photo-64-point", 8, 64, 128, 1, 56, 1, 2, 0, 1 },
    { "photo-128", 8, 128, 128, 1, 28, 3, 1, 1, 1 },
    { "photo-128-half", 8, 128, 256, 1, 28, 3, 2, 1, 1 },
    { "photo-256", 8, 256, 256, 1, 14, 3, 1, 1, 1 },
    { "photo-512", 8, 512, 512, 1, 7, 3, 1, 1, 1 },
    { "wide-point", 8, 64, 256, 1, 56, 1, 1, 0, 1 },
    { "narrow-point", 8, 256, 64, 1, 28, 1, 1, 0, 1 },
    { "point-64-256", 4, 64, 256, 1, 56, 1, 1, 0, 1 },
    { "point-256-64", 4, 256, 64, 1, 56, 1, 1, 0, 1 },
    { "point-128-512", 4, 128, 512, 1, 28, 1, 1, 0, 1 },
    { "point-512-128", 4, 512, 128, 1, 28, 1, 1, 0, 1 },
    { "point-256-1024", 4, 256, 1024, 1, 14, 1, 1, 0, 1 },
    { "point-1024-256", 4, 1024, 256, 1, 14, 1, 1, 0, 1 },
    { "point-512-2048", 4, 512, 2048, 1, 7, 1, 1, 0, 1 },
    { "point-2048-512", 4, 2048, 512, 1, 7, 1, 1, 0, 1 },
    { "few-8", 8, 8, 8, 1, 56, 3, 1, 1, 1 },
    { "few-16", 8, 16, 16, 1, 56, 3, 1, 1, 1 },
    { "few-48", 8, 48, 40, 1, 28, 3, 1, 1, 1 },
    { "five-32", 8, 32, 32, 1, 28, 5, 1, 2, 1 },
    { "dilated", 8, 64, 64, 1, 28, 3, 1, 2, 2 },
    { "dilated-few", 8, 16, 24, 1, 28, 3, 1, 2, 2 },
    { "grouped-4", 8, 128, 128, 4, 28, 3, 1, 1, 1 },
    { "depthwise", 8, 64, 64, 64, 56, 3, 1, 1, 1 },
    { "depthwise-half", 8, 128, 128, 128, 28, 3, 2, 1, 1 },
};
enum { PASSES = 3 };
static const char *const passes[PASSES] = { "forward", "input", "weight" };

typedef struct question {
    int figure, pass;
} question;
typedef struct answer {
    double seconds, norm;
} answer;

typedef struct side {
    pid_t process;
    int ask, answer;
} side;

/* ---- one of the two processes ---------------------------------------------------------------- */

static tn_tensor *numbers(tn_ints shape, uint64_t *state)
{
    return bench_tensor("normal", 0, shape, TN_F32, state);
}

/* [N, C, H, H] with the channels last. */
static tn_tensor *images(int64_t n, int64_t channels, int64_t size, uint64_t *state)
{
    return tn_permute(numbers(TN_SHAPE(n, size, size, channels), state), TN_INTS(0, 3, 1, 2));
}

typedef struct operands {
    tn_tensor *x, *w, *gy;
} operands;

static tn_tensor *compute(const figure *f, int pass, const operands *from)
{
    tn_ints stride = TN_INTS(f->stride, f->stride), padding = TN_INTS(f->padding, f->padding),
            dilation = TN_INTS(f->dilation, f->dilation);

    if (pass == 0)
        return tn_convolution(from->x, from->w, TN_NONE, stride, padding, dilation, f->groups);
    if (pass == 1)
        return tn_convolution_grad_input(from->gy, from->w, TN_INTS(f->size, f->size), stride,
                                         padding, dilation, f->groups);
    return tn_convolution_grad_weight(from->gy, from->x, TN_INTS(f->kernel, f->kernel), stride,
                                      padding, dilation, f->groups);
}

static answer measure(const question *q)
{
    const figure *f = &figures[q->figure];
    uint64_t scope = tn_scope_begin(), state = 11;
    int64_t after = (f->size + 2 * f->padding - (f->kernel - 1) * f->dilation - 1) / f->stride + 1;
    operands from = { images(f->images, f->inputs, f->size, &state),
                      numbers(TN_SHAPE(f->outputs, f->inputs / f->groups, f->kernel, f->kernel),
                              &state),
                      images(f->images, f->outputs, after, &state) };
    tn_tensor *first = compute(f, q->pass, &from);
    answer a = { 1e30, sqrt(tn_item(tn_sum(tn_square(first)))) };
    double start = bench_now();

    for (int i = 0; !tn_failed() && (i < 3 || bench_now() - start < 0.04); i++) {
        uint64_t inner = tn_scope_begin();
        double begin = bench_now(), now;

        compute(f, q->pass, &from);
        now = bench_now() - begin;
        a.seconds = now < a.seconds ? now : a.seconds;
        tn_scope_end(inner);
    }
    tn_scope_end(scope);
    return a;
}

static int serve(int in, int out)
{
    question q;

    while (read(in, &q, sizeof q) == (ssize_t)sizeof q) {
        answer a = measure(&q);

        if (tn_failed()) {
            fprintf(stderr, "convolutions: %s\n", tn_error_text());
            return 1;
        }
        if (write(out, &a, sizeof a) != (ssize_t)sizeof a)
            return 1;
    }
    return 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

static bool start(side *s, const char *plugins)
{
    int to[2], from[2];

    if (pipe(to) != 0 || pipe(from) != 0)
        return false;
    s->process = fork();
    if (s->process == 0) {
        close(to[1]);
        close(from[0]);
        if (plugins != NULL)
            setenv("TENON_PLUGINS", plugins, 1);
        else
            setenv("TENON_ONEDNN_SHAPES", "all", 1);
        _exit(serve(to[0], from[1]));
    }
    close(to[0]);
    close(from[1]);
    s->ask = to[1];
    s->answer = from[0];
    return s->process > 0;
}

static bool ask(side *s, question q, answer *best)
{
    answer a;

    if (write(s->ask, &q, sizeof q) != (ssize_t)sizeof q ||
        read(s->answer, &a, sizeof a) != (ssize_t)sizeof a)
        return false;
    a.seconds = a.seconds < best->seconds ? a.seconds : best->seconds;
    *best = a;
    return true;
}

static int usage_error(void)
{
    fprintf(stderr,
            "usage: convolutions [--threads N] [--plugin GLOB] [--shape GLOB] [--turns N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *threads = "1", *plugin = "kernels-onednn", *shape = "*";
    int turns = 3, failed = 0;
    char without[128];
    side own, pack;

    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (value != NULL && strcmp(argv[i], "--threads") == 0)
            threads = value;
        else if (value != NULL && strcmp(argv[i], "--plugin") == 0)
            plugin = value;
        else if (value != NULL && strcmp(argv[i], "--shape") == 0)
            shape = value;
        else if (value != NULL && strcmp(argv[i], "--turns") == 0)
            turns = atoi(value);
        else
            return usage_error();
    }
    if (turns < 1 || atoi(threads) < 1)
        return usage_error();
    setenv("TENON_NUM_THREADS", threads, 1);
    snprintf(without, sizeof without, "!%s", plugin);
    if (!start(&own, without) || !start(&pack, NULL)) {
        fprintf(stderr, "convolutions: no process could be started\n");
        return 1;
    }
    printf("%-16s %-7s %9s %9s %6s  apart\n", "shape", "pass", "own ms", "pack ms", "ratio");
    for (int i = 0; i < (int)(sizeof figures / sizeof *figures); i++)
        for (int pass = 0; pass < PASSES && fnmatch(shape, figures[i].name, 0) == 0; pass++) {
            answer a = { .seconds = 1e30 }, b = { .seconds = 1e30 };
            bool good = true;

            for (int turn = 0; good && turn < turns; turn++)
                good = ask(&own, (question){ i, pass }, &a) &&
                       ask(&pack, (question){ i, pass }, &b);
            if (!good)
                return 1;
            double apart = fabs(a.norm - b.norm) / a.norm;

            failed |= !(apart < 1e-4);
            printf("%-16s %-7s %9.3f %9.3f %6.2f  %.0e\n", figures[i].name, passes[pass],
                   a.seconds * 1e3, b.seconds * 1e3, b.seconds / a.seconds, apart);
            fflush(stdout);
        }
    close(own.ask);
    close(pack.ask);
    waitpid(own.process, NULL, 0);
    waitpid(pack.process, NULL, 0);
    return failed;
}
