/* SPDX-License-Identifier: MIT
 *
 * What a call costs: nanoseconds of a 4-element add through the public API, without and with a
 * gradient recorded; and of a module whose forward hands its input on: what modules add to their
 * operators. The numbers of libtorch are quoted (its C++ API, a 2-core x86-64 machine,
 * 2026); `--peer PYTHON` measures PyTorch of that interpreter in the same run.
 *   dispatch [--peer PYTHON] [--rounds N] [--instructions N]
 * --instructions runs N adds and prints nothing: for callgrind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

enum { BATCH = 1000, MAX_ROUNDS = 1000 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* One result at a time lives, as in a program that computes step by step. */
static void adds(tn_tensor *a, tn_tensor *b, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t scope = tn_scope_begin();

        tn_add(a, b, NULL);
        tn_scope_end(scope);
    }
}

static double median(tn_tensor *a, tn_tensor *b, int rounds)
{
    static double times[MAX_ROUNDS];

    adds(a, b, BATCH);
    for (int i = 0; i < rounds; i++) {
        double start = now();

        adds(a, b, BATCH);
        times[i] = (now() - start) / BATCH;
    }
    qsort(times, (size_t)rounds, sizeof times[0], by_size);
    return times[rounds / 2];
}

static tn_tensor *pass_on(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

static const tn_layer pass = { TN_HEAD(tn_layer), .name = "Pass", .forward = pass_on };

static double median_call(tn_module *module, tn_tensor *x, int rounds)
{
    static double times[MAX_ROUNDS];

    for (int i = 0; i < rounds; i++) {
        double start = now();

        for (int k = 0; k < BATCH; k++) {
            uint64_t scope = tn_scope_begin();

            tn_module_call(module, x);
            tn_scope_end(scope);
        }
        times[i] = (now() - start) / BATCH;
    }
    qsort(times, (size_t)rounds, sizeof times[0], by_size);
    return times[rounds / 2];
}

/* What a module adds in a Sequential of ten, which is one of eleven; without a hook anywhere. */
static int modules(tn_tensor *x, int rounds)
{
    tn_module *module =
        tn_register(&pass) == TN_OK
            ? tn_module_parse("Sequential(Pass(), Pass(), Pass(), Pass(), Pass(), Pass(), Pass(), "
                              "Pass(), Pass(), Pass())")
            : NULL;

    if (module == NULL)
        return 1;
    printf("Tenon, a module of a Sequential of ten %4.0f\n", median_call(module, x, rounds) / 10);
    tn_module_drop(module);
    return 0;
}

static const char peer_program[] =
    "import time, torch, statistics\n"
    "torch.set_num_threads(1)\n"
    "a = torch.ones(4); b = torch.ones(4)\n"
    "def cost(a, b):\n"
    "    times = []\n"
    "    for _ in range(101):\n"
    "        start = time.perf_counter_ns()\n"
    "        for _ in range(1000): torch.add(a, b)\n"
    "        times.append((time.perf_counter_ns() - start) / 1000)\n"
    "    return statistics.median(times)\n"
    "plain = cost(a, b)\n"
    "a.requires_grad_()\n"
    "print('PyTorch %s from Python, this run    %7.0f %14.0f' % (torch.__version__, plain, "
    "cost(a, b)))\n"
    "m = torch.nn.Sequential(*(torch.nn.Identity() for _ in range(10)))\n"
    "times = []\n"
    "for _ in range(101):\n"
    "    start = time.perf_counter_ns()\n"
    "    for _ in range(100): m(b)\n"
    "    times.append((time.perf_counter_ns() - start) / 1000)\n"
    "print('PyTorch, a module of a Sequential of ten %6.0f' % statistics.median(times))\n";

static int peer(const char *python)
{
    char command[4096];
    FILE *pipe;
    int status;

    if (snprintf(command, sizeof command, "'%s' -", python) >= (int)sizeof command)
        return 1;
    pipe = popen(command, "w");
    if (pipe == NULL)
        return 1;
    fputs(peer_program, pipe);
    status = pclose(pipe);
    if (status != 0)
        fprintf(stderr, "dispatch: %s could not measure PyTorch\n", python);
    return status != 0;
}

int main(int argc, char **argv)
{
    static const float values[4] = { 1, 2, 3, 4 };
    const char *python = NULL;
    int rounds = 201, instructions = 0, failed = 0;
    tn_tensor *a, *b, *leaf;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--peer") == 0 && i + 1 < argc) {
            python = argv[++i];
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--instructions") == 0 && i + 1 < argc) {
            instructions = atoi(argv[++i]);
        } else {
            fprintf(stderr, "usage: dispatch [--peer PYTHON] [--rounds N] [--instructions N]\n");
            return 2;
        }
    }
    if (rounds < 1 || rounds > MAX_ROUNDS)
        rounds = MAX_ROUNDS;

    a = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    b = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    leaf = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    tn_tensor_set_requires_grad(leaf, true);
    adds(a, b, 10);
    if (tn_failed()) {
        fprintf(stderr, "dispatch: %s\n", tn_error_text());
        return 1;
    }
    if (instructions > 0) {
        adds(a, b, instructions);
        return tn_failed();
    }
    printf("4-element float32 add, ns a call     no gradient       gradient\n");
    fflush(stdout);
    printf("Tenon, C API, this run              %9.0f %14.0f\n", median(a, b, rounds),
           median(leaf, b, rounds));
    failed = modules(a, rounds);
    printf("libtorch, C++ API, quoted           %9.0f %14.0f\n", 634.0, 1162.0);
    fflush(stdout);
    if (python != NULL)
        failed |= peer(python);
    if (tn_failed()) {
        fprintf(stderr, "dispatch: %s\n", tn_error_text());
        return 1;
    }
    return failed;
}
