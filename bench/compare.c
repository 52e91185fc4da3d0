/* SPDX-License-Identifier: MIT */
#include "compare.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ops.h"
#include "peer.h"

enum { LINE = 512, TIMES = 4096, ROUNDS = 64, CONTENDERS = 4 };

typedef struct run {
    const bench_program *program;
    const char *glob, *python, *script, *threads, *contenders, *batches, *types, *compiled;
    clockid_t clock;
    int rounds;
    double seconds;
    bool beside_itself; /* a second column: the same without a plan */
} run;

/* Medians of the rounds, in seconds. */
typedef struct side {
    double medians[ROUNDS], least;
} side;

typedef struct contender {
    char about[LINE];
    const char *name;
    bench_peer peer;
    side side;
    double apart; /* the largest difference of what is compared, as a share of its size */
    long memory;  /* MiB */
} contender;

/* ---- our side -------------------------------------------------------------------------------- */

static double now(const run *r)
{
    struct timespec t;

    clock_gettime(r->clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tn_status begin(bench_task *task)
{
    const bench_network *net = task->network;
    uint64_t scope = tn_scope_begin(), state = 7;
    int64_t sizes[4] = { task->batch, net->input[0], net->input[1], net->input[2] };
    tn_ints shape = { sizes, net->n_input + 1 };

    task->module = bench_network_new(net);
    task->x = net->tokens > 0 ? bench_tensor("below", net->tokens, shape, TN_I64, &state)
                              : bench_tensor("normal", 0, shape, TN_F32, &state);
    tn_keep(task->x);
    for (int i = 0; net->cache != NULL && i < BENCH_CACHE; i++)
        task->cache[i] = tn_keep(
            bench_tensor("normal", 0, net->cache(task->batch), TN_F32, &state));
    if (task->module != NULL && task->x != NULL && net->optimizer != NULL) {
        tn_tensor *y;

        tn_grad_begin(false);
        tn_module_eval(task->module); /* this call changes no running statistics */
        y = bench_network_call(net, task->module, task->x, task->cache);
        tn_module_train(task->module, true);
        tn_grad_end();
        if (y != NULL)
            task->target = tn_keep(bench_network_target(net, y, &state));
    }
    tn_scope_end(scope);
    return tn_failed() ? tn_error_last_code() : TN_OK;
}

static void end(bench_task *task)
{
    tn_step_drop(task->whole);
    tn_optimizer_drop(task->optimizer);
    tn_plan_drop(task->plan);
    tn_module_drop(task->module);
    tn_tensor_drop(task->x);
    tn_tensor_drop(task->target);
    for (int i = 0; i < BENCH_CACHE; i++)
        tn_tensor_drop(task->cache[i]);
}

static bool step(const run *r, bench_task *task)
{
    uint64_t scope = tn_scope_begin();
    bool good = r->program->step(task) != NULL;

    if (good && !tn_device_is_host(tn_default_device())) /* its kernels may still run */
        good = tn_device_sync(tn_default_device()) == TN_OK;
    tn_scope_end(scope);
    return good;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

static bool our_round(const run *r, bench_task *task, side *ours, int round)
{
    static double times[TIMES];
    double start = bench_now();
    int count = 0;

    do {
        double begin = now(r);

        if (!step(r, task))
            return false;
        times[count++] = now(r) - begin;
    } while (count < TIMES && bench_now() - start < r->seconds / r->rounds);
    ours->medians[round] = median(times, count);
    ours->least = round == 0 ? times[0] : fmin(ours->least, times[0]);
    return true;
}

/* Sets *beside to the same task without a plan: a copy of the module, the same data. Must be called
 * before `task` is prepared. */
static tn_status begin_beside(const bench_task *task, bench_task *beside)
{
    *beside = *task;
    beside->compiled = NULL;
    beside->module = tn_module_copy(task->module);
    tn_tensor_keep(task->x);
    if (task->target != NULL)
        tn_tensor_keep(task->target);
    for (int i = 0; i < BENCH_CACHE; i++)
        if (task->cache[i] != NULL)
            tn_tensor_keep(task->cache[i]);
    return beside->module != NULL ? TN_OK : tn_error_last_code();
}

/* ---- contenders ------------------------------------------------------------------------------ */

static void rest(void)
{
    struct timespec pause = { 0, 30000000 }; /* the other side's threads may still be spinning */

    nanosleep(&pause, NULL);
}

static tn_status give_slot(void *user, const tn_visit *what)
{
    char words[LINE];

    snprintf(words, sizeof words, "state %s", what->path);
    return bench_peer_give(user, words, what->tensor) ? TN_OK
                                                      : tn_fail(TN_ERR_IO, "the peer is gone");
}

/* Starts a contender and sends it the network and its data; it answers with a line about its
 * options. */
static bool enter(const run *r, bench_task *task, contender *c)
{
    const bench_network *net = task->network;
    char word[LINE];
    bool good;

    snprintf(word, sizeof word, "%s:%s", r->program->name, c->name);
    good = bench_peer_start(&c->peer, r->python, r->script, r->threads, word);
    if (good) {
        fprintf(c->peer.ask, "network %s %s %s %s\n%s\n", net->name, tn_dtype_name(task->dtype),
                net->optimizer != NULL ? net->optimizer : "none",
                r->clock == CLOCK_MONOTONIC ? "wall" : "cpu", net->spec);
        good = tn_module_walk(task->module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL, give_slot,
                              &c->peer) == TN_OK &&
               bench_peer_give(&c->peer, "x", task->x);
    }
    if (good && task->target != NULL)
        good = bench_peer_give(&c->peer, "target", task->target);
    for (int i = 0; good && i < BENCH_CACHE && task->cache[i] != NULL; i++)
        good = bench_peer_give(&c->peer, "cache", task->cache[i]);
    return good && bench_peer_ask(&c->peer, "begin", c->about, LINE);
}

static bool their_round(const run *r, contender *c, int round)
{
    char words[64], line[LINE], *at = line;
    double least;

    snprintf(words, sizeof words, "run %g", r->seconds / r->rounds);
    if (!bench_peer_ask(&c->peer, words, line, LINE))
        return false;
    c->side.medians[round] = strtod(line, &at);
    least = strtod(at, NULL);
    c->side.least = round == 0 ? least : fmin(c->side.least, least);
    return true;
}

/* The contender makes its step, compares the result with ours, and answers with the difference. */
static bool compare(contender *c, tn_tensor *y)
{
    char line[LINE];

    if (!bench_peer_give(&c->peer, "result", y) || !bench_peer_ask(&c->peer, "compare", line, LINE))
        return false;
    c->apart = fmax(c->apart, strtod(line, NULL));
    return true;
}

/* ---- one network ----------------------------------------------------------------------------- */

static double ratio(const side *ours, const side *theirs, int rounds)
{
    double ratios[ROUNDS];

    for (int i = 0; i < rounds; i++)
        ratios[i] = ours->medians[i] / theirs->medians[i];
    return median(ratios, rounds);
}

static void print_row(const run *r, const bench_task *task, side *ours, side *eager, contender *all,
                      int count)
{
    struct rusage usage;
    double copy[ROUNDS], apart = 0;

    getrusage(RUSAGE_SELF, &usage);
    memcpy(copy, ours->medians, sizeof copy);
    printf("| %s | %lld | %s | %s | %.3g (%.3g) |", task->network->title, (long long)task->batch,
           r->threads, tn_dtype_name(task->dtype), median(copy, r->rounds) * 1e3,
           ours->least * 1e3);
    if (r->beside_itself) {
        memcpy(copy, eager->medians, sizeof copy);
        printf(" %.3g (%.3g) | **%.2f** |", median(copy, r->rounds) * 1e3, eager->least * 1e3,
               ratio(ours, eager, r->rounds));
    }
    for (int i = 0; i < count; i++) {
        double rate = ratio(ours, &all[i].side, r->rounds);

        memcpy(copy, all[i].side.medians, sizeof copy);
        printf(" %.3g (%.3g) | **%.2f** |", median(copy, r->rounds) * 1e3, all[i].side.least * 1e3,
               rate);
        apart = fmax(apart, all[i].apart);
    }
    printf(" %ld", usage.ru_maxrss / 1024);
    for (int i = 0; i < count; i++)
        printf(" / %ld", all[i].memory);
    printf(" | %.1g |\n", apart);
    fflush(stdout);
}

/* The same step without a plan; both results must have the same bits. */
static bool step_beside(const run *r, bench_task *eager, tn_tensor *y)
{
    tn_tensor *expected = r->program->step(eager);

    if (expected == NULL || tn_equal(y, expected))
        return expected != NULL;
    fprintf(stderr, "%s: %s: the plan has another result than eager calls\n", r->program->name,
            eager->network->name);
    return false;
}

static bool rounds(const run *r, bench_task *task, bench_task *beside, side *ours, side *eager,
                   contender *all, int count)
{
    char line[LINE];
    bool good = true;

    for (int i = 0; i < r->program->compared && good; i++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *y = r->program->step(task);

        good = y != NULL && (!r->beside_itself || step_beside(r, beside, y));
        for (int j = 0; j < count && good; j++)
            good = compare(&all[j], y);
        tn_scope_end(scope);
    }
    for (int i = 0; i < r->rounds && good; i++) {
        good = our_round(r, task, ours, i) && (!r->beside_itself || our_round(r, beside, eager, i));
        for (int j = 0; j < count && good; j++) {
            rest();
            good = their_round(r, &all[j], i);
        }
        rest();
    }
    for (int j = 0; j < count && good; j++) {
        good = bench_peer_ask(&all[j].peer, "peak", line, LINE);
        all[j].memory = strtol(line, NULL, 10);
    }
    return good;
}

static int measure(const run *r, bench_task *task)
{
    static contender all[CONTENDERS];
    side ours = { .least = 0 }, eager = { .least = 0 };
    bench_task beside = { .network = task->network };
    int count = 0;
    char names[LINE];
    double limit = task->dtype == TN_F32 ? 1e-3 : 0.05;
    bool good = begin(task) == TN_OK;

    snprintf(names, sizeof names, "%s", r->python != NULL ? r->contenders : "");
    for (char *name = strtok(names, ","); good && name != NULL && count < CONTENDERS;
         name = strtok(NULL, ",")) {
        all[count].name = name;
        good = enter(r, task, &all[count]);
        fprintf(stderr, "  %s %s: %s", task->network->name, name,
                good ? all[count].about : "the peer is gone\n");
        count++;
    }
    if (good && r->beside_itself)
        good = begin_beside(task, &beside) == TN_OK && r->program->prepare(&beside) == TN_OK;
    good = good && r->program->prepare(task) == TN_OK &&
           rounds(r, task, &beside, &ours, &eager, all, count);
    if (good)
        print_row(r, task, &ours, &eager, all, count);
    else
        fprintf(stderr, "%s: %s: %s\n", r->program->name, task->network->name,
                tn_failed() ? tn_error_text() : "a peer is gone");
    for (int i = 0; i < count; i++) {
        if (good && !(all[i].apart < limit)) {
            fprintf(stderr, "%s: %s: %s: results differ by %g: not the same work\n",
                    r->program->name, task->network->name, all[i].name, all[i].apart);
            good = false;
        }
        bench_peer_end(&all[i].peer);
    }
    end(task);
    if (r->beside_itself)
        end(&beside);
    return good && !tn_failed() ? 0 : 1;
}

/* ---- all networks ---------------------------------------------------------------------------- */

static int usage_error(const run *r)
{
    fprintf(stderr,
            "usage: %s [--net GLOB] [--batch N,..] [--type f32,bf16] [--threads N] [--rounds N]\n"
            "             [--seconds S] [--clock wall|cpu] [--beside NAME,..]\n"
            "             [--compiled PASSES|none|step] [--peer PYTHON SCRIPT]\n"
            "beside: %s, compile\nnetworks:",
            r->program->name, r->program->contenders);
    for (int i = 0; i < bench_n_networks; i++)
        fprintf(stderr, " %s", bench_networks[i].name);
    fputc('\n', stderr);
    return 2;
}

static void print_head(const run *r)
{
    char names[LINE], rule[LINE] = "|---|---|---|---|---|";

    snprintf(names, sizeof names, "%s", r->python != NULL ? r->contenders : "");
    printf("| network | batch | threads | type | Tenon, ms: median (least) |");
    if (r->beside_itself) {
        printf(" without a plan, ms | ratio |");
        strcat(rule, "---|---|");
    }
    for (char *name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) {
        printf(" %s, ms | ratio |", name);
        strncat(rule, "---|---|", sizeof rule - strlen(rule) - 1);
    }
    printf(" memory, MiB | apart |\n%s---|---|\n", rule);
    fflush(stdout);
}

/* A process of its own, so that the peak of memory is that of this network. */
static int in_process(const run *r, bench_task task)
{
    pid_t child;
    int status;

    fflush(stdout);
    child = fork();
    if (child == 0)
        exit(measure(r, &task));
    return child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
}

static int run_network(const run *r, const bench_network *net)
{
    char types[LINE], batches[LINE], *type_at, *batch_at;
    int failed = 0;

    snprintf(types, sizeof types, "%s", r->types);
    for (char *type = strtok_r(types, ",", &type_at); type != NULL;
         type = strtok_r(NULL, ",", &type_at)) {
        snprintf(batches, sizeof batches, "%s", r->batches);
        for (char *batch = strtok_r(batches, ",", &batch_at); batch != NULL;
             batch = strtok_r(NULL, ",", &batch_at)) {
            bench_task task = {
                .network = net, .batch = atoi(batch), .dtype = TN_F32, .compiled = r->compiled
            };

            if (task.batch < 1)
                task.batch = net->batch;
            if (strcmp(type, "bf16") == 0)
                task.dtype = TN_BF16;
            failed |= in_process(r, task);
        }
    }
    return failed;
}

int bench_compare(int argc, char **argv, const bench_program *program)
{
    run r = { .program = program,
              .glob = "*",
              .threads = "1",
              .contenders = program->contenders,
              .batches = program->batches,
              .types = "f32",
              .clock = CLOCK_MONOTONIC,
              .rounds = 5,
              .seconds = 5.0 };
    const struct {
        const char *name;
        const char **to;
    } words[] = { { "--net", &r.glob },          { "--threads", &r.threads },
                  { "--batch", &r.batches },     { "--type", &r.types },
                  { "--compiled", &r.compiled }, { "--beside", &r.contenders } };
    int failed = 0, met = 0;

    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;

        while (k < sizeof words / sizeof *words && strcmp(argv[i], words[k].name) != 0)
            k++;
        if (i + 1 >= argc) {
            return usage_error(&r);
        } else if (k < sizeof words / sizeof *words) {
            *words[k].to = argv[i + 1];
        } else if (strcmp(argv[i], "--rounds") == 0) {
            r.rounds = atoi(argv[i + 1]);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            r.seconds = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--clock") == 0) {
            r.clock = strcmp(argv[i + 1], "cpu") == 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
        } else if (strcmp(argv[i], "--peer") == 0 && i + 2 < argc) {
            r.python = argv[i + 1];
            r.script = argv[i++ + 2];
        } else {
            return usage_error(&r);
        }
    }
    if (r.rounds < 1 || r.rounds > ROUNDS || atoi(r.threads) < 1)
        return usage_error(&r);
    r.beside_itself = program->beside_itself && r.compiled != NULL;
    setenv("TENON_NUM_THREADS", r.threads, 1);
    for (int i = 0; i < bench_n_networks; i++) {
        const bench_network *net = &bench_networks[i];

        if (fnmatch(r.glob, net->name, 0) != 0 ||
            (net->batch == 0 && strcmp(program->name, "train") == 0))
            continue;
        if (met++ == 0)
            print_head(&r);
        failed |= run_network(&r, net);
    }
    return met == 0 ? usage_error(&r) : failed;
}
