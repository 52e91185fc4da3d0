/* SPDX-License-Identifier: MIT
 *
 * Training steps of whole networks (nets.c), compared with PyTorch with the same weights and data:
 * milliseconds a step, their ratio, the share of the machine's multiply-adds, the peak of memory,
 * and how far the losses of both are apart.
 *   train [--net GLOB] [--threads N] [--layout first|last] [--rounds N] [--seconds S]
 *         [--peer PYTHON SCRIPT]
 * Every network has processes of its own, ours and the peer's, so that peaks are its own. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "nets.h"
#include "ops.h"
#include "peer.h"

enum { LINE = 256, TIMES = 4096, COMPARED = 3 };

typedef struct run {
    const char *glob, *python, *script, *threads, *layout;
    int rounds;
    double seconds;
} run;

typedef struct side {
    double times[TIMES];
    int count;
} side;

typedef struct work {
    const bench_net *net;
    bench_model model;
    tn_tensor *x, *target;
    tn_optimizer *optimizer;
} work;

/* ---- steps ----------------------------------------------------------------------------------- */

/* The loss before the step; NAN after a failure. */
static double step(work *w)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *loss;
    double value = NAN;

    w->model.next_parameter = w->model.next_buffer = 0;
    loss = tn_cross_entropy(w->net->forward(&w->model, w->x), w->target, NULL);
    tn_backward(loss);
    if (loss != NULL && !tn_failed()) {
        tn_optimizer_step(w->optimizer);
        tn_optimizer_zero_grad(w->optimizer);
        value = tn_item(loss);
    }
    tn_scope_end(scope);
    return tn_failed() ? NAN : value;
}

static tn_tensor *channels_last(tn_tensor *x)
{
    tn_ints s = tn_tensor_shape(x);
    int64_t strides[4] = { s.at[1] * s.at[2] * s.at[3], 1, s.at[3] * s.at[1], s.at[1] };
    tn_tensor *to = tn_tensor_empty_strided(s, (tn_ints){ strides, 4 }, TN_F32, NULL);

    return to == NULL ? NULL : tn_copy_(to, x);
}

/* Makes weights and data; the peer gets them too. */
static bool begin(work *w, const run *r, bench_peer *p)
{
    const bench_net *net = w->net;
    uint64_t scope = tn_scope_begin(), state = 7;
    tn_ints shape = { net->input, net->n_input };
    const char *optimizer = strcmp(net->optimizer, "SGD") == 0 ? "SGD(lr=0.01, momentum=0.9)"
                                                               : "AdamW(lr=0.0003)";
    char line[LINE];
    bool good;

    w->model.state = 42;
    w->model.first = true;
    w->x = net->tokens > 0 ? bench_tensor("below", net->tokens, shape, TN_I64, &state)
                           : bench_tensor("normal", 0, shape, TN_F32, &state);
    w->target = bench_tensor("below", net->classes, TN_SHAPE(net->input[0]), TN_I64, &state);
    if (w->x != NULL && p->ask != NULL && !bench_peer_give(p, "x", w->x))
        return false;
    if (net->images && strcmp(r->layout, "last") == 0)
        w->x = channels_last(w->x);
    good = w->x != NULL && w->target != NULL;
    if (good) {
        tn_keep(w->x);
        tn_keep(w->target);
        good = net->forward(&w->model, w->x) != NULL;
        w->model.made = true;
    }
    if (good) {
        w->optimizer = tn_optimizer_parse(w->model.parameters, w->model.n_parameters, optimizer);
        for (int64_t i = 0; i < w->model.n_buffers; i++)
            good = good && tn_fill_(w->model.buffers[i], i % 2 == 0 ? 0 : 1) != NULL;
        good = good && w->optimizer != NULL;
    }
    for (int64_t i = 0; good && p->ask != NULL && i < w->model.n_parameters; i++)
        good = bench_peer_give(p, "parameter", w->model.parameters[i]);
    for (int64_t i = 0; good && p->ask != NULL && i < w->model.n_buffers; i++)
        good = bench_peer_give(p, "buffer", w->model.buffers[i]);
    if (good && p->ask != NULL)
        good = bench_peer_give(p, "target", w->target);
    tn_scope_end(scope);
    if (good && p->ask != NULL) {
        good = bench_peer_ask(p, "begin", line, LINE);
        if (good)
            printf("  peer: %s", line);
    }
    return good;
}

static void end(work *w)
{
    tn_optimizer_drop(w->optimizer);
    for (int64_t i = 0; i < w->model.n_parameters; i++)
        tn_tensor_drop(w->model.parameters[i]);
    for (int64_t i = 0; i < w->model.n_buffers; i++)
        tn_tensor_drop(w->model.buffers[i]);
    tn_tensor_drop(w->x);
    tn_tensor_drop(w->target);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(side *s)
{
    qsort(s->times, (size_t)s->count, sizeof s->times[0], by_size);
    return s->count > 0 ? s->times[s->count / 2] : NAN;
}

static void rest(void)
{
    struct timespec pause = { 0, 30000000 }; /* the other side's threads may still be spinning */

    nanosleep(&pause, NULL);
}

/* One round of both sides, a part of the time each. */
static bool take_turns(work *w, const run *r, bench_peer *p, side *ours, side *theirs)
{
    double start = bench_now(), part = r->seconds / r->rounds;
    char line[LINE], words[64];

    do {
        double begin = bench_now();

        if (isnan(step(w)))
            return false;
        ours->times[ours->count++] = bench_now() - begin;
    } while (ours->count < TIMES && bench_now() - start < part);
    rest();
    if (p->ask == NULL)
        return true;
    snprintf(words, sizeof words, "steps %g", part);
    if (!bench_peer_ask(p, words, line, LINE))
        return false;
    for (int64_t n = strtoll(line, NULL, 10); n > 0; n--) {
        if (fgets(line, sizeof line, p->answer) == NULL)
            return false;
        if (theirs->count < TIMES)
            theirs->times[theirs->count++] = strtod(line, NULL);
    }
    rest();
    return true;
}

static int measure(const run *r, const bench_net *net)
{
    static side ours, theirs;
    bench_peer p = { 0 };
    work w = { .net = net };
    double apart = 0, rate = bench_multiply_rate(), mine, other;
    struct rusage usage;
    char line[LINE];
    bool good;

    if (r->python != NULL && !bench_peer_start(&p, r->python, r->script, r->threads, net->name)) {
        fprintf(stderr, "train: the peer does not start\n");
        return 1;
    }
    printf("%s\n", net->title);
    fflush(stdout);
    good = begin(&w, r, &p);
    for (int i = 0; good && i < COMPARED; i++) {
        double loss = step(&w), same = NAN;

        good = !isnan(loss);
        if (good && p.ask != NULL) {
            good = bench_peer_ask(&p, "loss", line, LINE);
            same = strtod(line, NULL);
            apart = fmax(apart, fabs(loss - same) / fabs(same));
        }
        if (good && getenv("TENON_BENCH_LOSSES") != NULL)
            printf("  loss %.7g, peer %.7g\n", loss, same);
    }
    for (int i = 0; good && i < r->rounds; i++)
        good = take_turns(&w, r, &p, &ours, &theirs);
    if (!good) {
        fprintf(stderr, "train: %s: %s\n", net->name,
                tn_failed() ? tn_error_text() : "the peer is gone");
        return 1;
    }
    mine = median(&ours);
    other = median(&theirs);
    getrusage(RUSAGE_SELF, &usage);
    printf("  Tenon   %9.2f ms (least %.2f)  %4.0f%% of the ceiling  %5ld MiB\n", mine * 1e3,
           ours.times[0] * 1e3, 200 * w.model.multiply / mine / rate, usage.ru_maxrss / 1024);
    if (p.ask != NULL && bench_peer_ask(&p, "peak", line, LINE)) {
        printf("  PyTorch %9.2f ms (least %.2f)  %4.0f%% of the ceiling  %5ld MiB\n", other * 1e3,
               theirs.times[0] * 1e3, 200 * w.model.multiply / other / rate,
               strtol(line, NULL, 10));
        printf("  ratio   %9.2f    losses apart by %.1g\n", mine / other, apart);
        good = apart < 1e-3;
        if (!good)
            fprintf(stderr, "train: %s: the losses differ: not the same work\n", net->name);
    }
    bench_peer_end(&p);
    end(&w);
    return good && !tn_failed() ? 0 : 1;
}

static int usage_error(void)
{
    fprintf(stderr, "usage: train [--net GLOB] [--threads N] [--layout first|last] [--rounds N]\n"
                    "             [--seconds S] [--peer PYTHON SCRIPT]\n"
                    "networks:");
    for (int i = 0; i < bench_n_nets; i++)
        fprintf(stderr, " %s", bench_nets[i].name);
    fputc('\n', stderr);
    return 2;
}

int main(int argc, char **argv)
{
    run r = { "*", NULL, NULL, "1", "last", 5, 5.0 };
    int failed = 0, met = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--net") == 0 && i + 1 < argc) {
            r.glob = argv[++i];
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            r.threads = argv[++i];
        } else if (strcmp(argv[i], "--layout") == 0 && i + 1 < argc) {
            r.layout = argv[++i];
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            r.rounds = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            r.seconds = strtod(argv[++i], NULL);
        } else if (strcmp(argv[i], "--peer") == 0 && i + 2 < argc) {
            r.python = argv[++i];
            r.script = argv[++i];
        } else {
            return usage_error();
        }
    }
    if (r.rounds < 1 || atoi(r.threads) < 1 ||
        (strcmp(r.layout, "first") != 0 && strcmp(r.layout, "last") != 0))
        return usage_error();
    setenv("TENON_NUM_THREADS", r.threads, 1);
    for (int i = 0; i < bench_n_nets; i++) {
        pid_t child;
        int status;

        if (fnmatch(r.glob, bench_nets[i].name, 0) != 0)
            continue;
        met++;
        fflush(stdout);
        child = fork();
        if (child == 0)
            exit(measure(&r, &bench_nets[i]));
        if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
            failed = 1;
    }
    return met == 0 ? usage_error() : failed;
}
